//! Trials: a stream profile is run for some seconds, to see what comes out. Nobody watches, nothing is kept.
//!
//! *Dramatis personae.* The **trial** is a future of whoever asks, and ends with it: it takes a lease as a live channel
//! does, opens the source in the same way, and reads it in a task on the side of the packets. The **holder** is the
//! address at which it hears of its slot; a viewer who needs that slot gets it.
//!
//! ```text
//!   place ─► plan ─► Request ─► slots ─► Granted ─► open ─► sample ─► time is up
//!     └ Busy    └ redirect         └ Full              └──────┴─ lost, Yield, stop
//! ```

mod holder;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::ids::{AccountId, ProfileId, StreamId};
use domain::plan::{self, Candidate, Plan};
use domain::playout::Attempt;
use domain::settings::LEASE_WAIT;
use domain::source_url::SourceUrl;
use domain::stream::{RequestHeaders, Stream, StreamProperties};
use domain::stream_profile::{Delivery, StreamProfile};
use media::error::{Cause, UpstreamError};
use media::sample::{Sample, Sampler};
use media::source::{self, ProgramOutput, SourceInfo, Upstream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::info;

use self::holder::Holder;
use crate::ask::ANSWER_TIMEOUT;
use crate::channel::{LiveEnv, open_request};
use crate::slots::{Asking, FullPool, Lease, LeasePurpose, Request, SlotMessage};

/// Trials at one time. Each is a connection, and maybe a program that takes a processor.
pub const TRIALS_MAX: usize = 2;

/// How long trials have to let go of their sources when the system stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// The only attempt of a trial.
const ATTEMPT: Attempt = Attempt(1);

/// What is to be tried.
#[derive(Clone, Debug)]
pub struct TrialRequest {
    /// Also an inactive one.
    pub profile: Arc<StreamProfile>,
    pub source: TrialSource,
    /// For how long is read, once something has come.
    pub reading: Duration,
}

/// On what a profile is tried.
#[derive(Clone, Debug)]
pub enum TrialSource {
    /// A stream, with its own headers and on a slot of its account. The account has to be active.
    Stream { stream: Arc<Stream>, account: Arc<Account> },
    /// An address by itself, of no account.
    Url(SourceUrl),
}

/// What came of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// How the source is handed on: by another way than the profile says, where the kind of the address asks for it.
    pub delivery: Delivery,
    pub outcome: TrialOutcome,
    /// Account and account profile whose slot was used.
    pub account: Option<(String, ProfileId)>,
    /// What was opened; `None` where it did not come so far.
    pub opened: Option<SourceInfo>,
    /// What was read of it.
    pub sample: Sample,
    /// The last lines of the program that read it, without secrets.
    pub said: Vec<String>,
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrialOutcome {
    /// It played until the time was up.
    Played,
    /// Viewers are sent to the provider; nothing was opened.
    Redirects,
    /// It is of a kind that cannot be played; says why.
    Unplayable(String),
    /// It did not begin, or ended by itself.
    Lost(UpstreamError),
    /// A viewer needed the slot.
    Yielded,
}

/// Why there was no trial.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrialRefusal {
    /// As many as there may be run already.
    #[error("{TRIALS_MAX} tests run already")]
    Busy,
    /// Every slot is taken and none came free.
    #[error("account \"{}\" is at its limit of {} streams", .0.account, .0.max_streams)]
    Full(FullPool),
    /// Nobody said whether there is a slot.
    #[error("the gateway does not answer in time")]
    NoAnswer,
    /// The gateway stops.
    #[error("the gateway is stopping")]
    Stopping,
}

/// The door to trials. Clones are the same.
#[derive(Clone)]
pub struct Trials {
    env: Arc<LiveEnv>,
    /// Numbers of live channels, and of trials among them: both hold slots.
    counter: Arc<AtomicU64>,
    places: Arc<Semaphore>,
    stop: CancellationToken,
}

impl Trials {
    /// Trials that end when `stop` is cancelled.
    pub(crate) fn new(env: Arc<LiveEnv>, counter: Arc<AtomicU64>, stop: CancellationToken) -> Self {
        Self { env, counter, places: Arc::new(Semaphore::new(TRIALS_MAX)), stop }
    }

    /// Runs a profile, and answers what came out: after three seconds for a slot, the time a source has to begin, and
    /// the time it is read for, at the latest. Dropping the future ends it.
    ///
    /// # Errors
    /// Why nothing was tried.
    pub async fn run(&self, request: TrialRequest) -> Result<Trial, TrialRefusal> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| TrialRefusal::Busy)?;
        let TrialRequest { profile, source, reading } = request;
        let trial = self.tried(&profile, source, reading, place).await?;
        info!(
            stream_profile.id = %profile.id, delivery = %trial.delivery, bytes = trial.sample.bytes,
            "stream profile \"{}\" was tried: {}", profile.name, trial.outcome
        );
        Ok(trial)
    }

    async fn tried(
        &self,
        profile: &StreamProfile,
        source: TrialSource,
        reading: Duration,
        place: OwnedSemaphorePermit,
    ) -> Result<Trial, TrialRefusal> {
        let plan = self.plan(profile, source);
        let Some(first) = plan.candidates.first() else {
            let why = plan.unplayable.first().map(|it| it.1.to_string());
            let why = why.unwrap_or_else(|| "the account has no active profile".to_owned());
            return Ok(Trial::nothing(profile.delivery, TrialOutcome::Unplayable(why)));
        };
        if first.profile == Delivery::Redirect {
            return Ok(Trial::nothing(Delivery::Redirect, TrialOutcome::Redirects));
        }
        let mut holder = Holder::start(self.env.slots.clone(), self.serial(), ATTEMPT)
            .await
            .map_err(|_| TrialRefusal::Stopping)?;
        let (candidate, lease) = tokio::select! {
            granted = self.lease(&plan, &mut holder) => granted?,
            () = self.stop.cancelled() => return Err(TrialRefusal::Stopping),
        };
        let lease_id = lease.id();
        // Cancelled when the system stops, or when the slot is needed elsewhere.
        let end = self.stop.child_token();
        let run = Run {
            upstream: self.env.upstream(),
            stall_timeout: self.env.settings().stall_timeout,
            reading,
            end: end.clone(),
        };
        let reading = run.read(candidate.clone(), lease);
        let running = self.env.packets.spawn(async move {
            let done = reading.await;
            // After the source: whoever waits for the end of trials waits for its closing too.
            drop(place);
            done
        });
        let mut running = AbortOnDropHandle::new(running);
        let mut has_yielded = false;
        let done = tokio::select! {
            done = &mut running => done,
            () = holder.asked_to_yield() => {
                has_yielded = true;
                // At once, so that whoever asked knows that it comes back.
                self.env.slots.closing(lease_id);
                end.cancel();
                running.await
            }
        };
        if self.stop.is_cancelled() {
            return Err(TrialRefusal::Stopping);
        }
        let done = done.unwrap_or_else(|_| Done::lost(Cause::Panicked.into()));
        Ok(done.into_trial(&candidate, has_yielded))
    }

    fn plan(&self, profile: &StreamProfile, source: TrialSource) -> Plan {
        let conditions = self.env.plans.conditions();
        match source {
            TrialSource::Stream { stream, account } => {
                plan::plan_trial(&stream, &account, profile, conditions)
            }
            TrialSource::Url(url) => plan::plan_trial(&stream_at(url), &nobodys(), profile, conditions),
        }
    }

    fn serial(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The first free slot of the plan, and what is played on it.
    async fn lease(&self, plan: &Plan, holder: &mut Holder) -> Result<(Candidate, Lease), TrialRefusal> {
        self.env.slots.request(Request {
            holder: holder.number(),
            port: holder.port(),
            attempt: ATTEMPT,
            order: plan.candidates.iter().map(|it| it.pool.clone()).enumerate().collect(),
            // Of nobody in particular: a channel that nobody watches any more makes room, others do not.
            asking: Asking::Join(None),
            purpose: LeasePurpose::Trial,
        });
        let answer = timeout(LEASE_WAIT + ANSWER_TIMEOUT, holder.next()).await;
        match answer.map_err(|_| TrialRefusal::NoAnswer)? {
            Some(SlotMessage::Granted { index, lease, .. }) => match plan.candidates.get(index) {
                Some(candidate) => Ok((candidate.clone(), lease)),
                None => Err(TrialRefusal::NoAnswer),
            },
            Some(SlotMessage::Full { full, .. }) => Err(TrialRefusal::Full(full)),
            Some(SlotMessage::Yield { .. }) | None => Err(TrialRefusal::NoAnswer),
        }
    }

    /// Waits until every trial has let go of its source, once they were told to end.
    pub(crate) async fn ended(&self) {
        let all = self.places.acquire_many(TRIALS_MAX as u32);
        // One that does not let go in time ends with the runtime.
        let _ = timeout(STOP_TIMEOUT, all).await;
    }
}

/// What the part of a trial needs that runs on the side of the packets.
struct Run {
    upstream: Upstream,
    stall_timeout: Duration,
    reading: Duration,
    end: CancellationToken,
}

/// How far it came.
struct Done {
    opened: Option<SourceInfo>,
    sample: Sample,
    said: ProgramOutput,
    lost: Option<UpstreamError>,
}

impl Run {
    async fn read(self, candidate: Candidate, lease: Lease) -> Done {
        let mut said = ProgramOutput::default();
        let request = open_request(&candidate);
        let opened = tokio::select! {
            opened = source::open_with_output(request, Box::new(lease), self.upstream, &mut said) => Some(opened),
            () = self.end.cancelled() => None,
        };
        let source = match opened {
            Some(Ok(source)) => source,
            Some(Err(cause)) => return Done { said, ..Done::lost(cause) },
            None => return Done { said, ..Done::nothing() },
        };
        let opened = source.info().clone();
        let mut sampler = Sampler::new(source);
        let lost = tokio::select! {
            read = sampler.read(self.reading, self.stall_timeout) => read.err(),
            () = self.end.cancelled() => None,
        };
        let mut sample = sampler.sample();
        Done { opened: Some(opened), said: sample.program.take().unwrap_or_default(), sample, lost }
    }
}

impl Done {
    fn nothing() -> Self {
        Self { opened: None, sample: Sample::default(), said: ProgramOutput::default(), lost: None }
    }

    fn lost(cause: UpstreamError) -> Self {
        Self { lost: Some(cause), ..Self::nothing() }
    }

    fn into_trial(self, candidate: &Candidate, has_yielded: bool) -> Trial {
        let pool = &candidate.pool;
        Trial {
            delivery: candidate.profile,
            outcome: match self.lost {
                Some(cause) => TrialOutcome::Lost(cause),
                None if has_yielded => TrialOutcome::Yielded,
                None => TrialOutcome::Played,
            },
            account: (pool.account != NOBODY).then(|| (pool.account_name.clone(), pool.profile)),
            opened: self.opened,
            sample: self.sample,
            said: self.said.lines,
        }
    }
}

impl Trial {
    /// One that came to no source.
    fn nothing(delivery: Delivery, outcome: TrialOutcome) -> Self {
        let done = Done::nothing();
        let (opened, sample, said) = (done.opened, done.sample, done.said.lines);
        Self { delivery, outcome, account: None, opened, sample, said }
    }
}

impl std::fmt::Display for TrialOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Played => f.write_str("it plays"),
            Self::Redirects => f.write_str("viewers are sent to the provider"),
            Self::Unplayable(why) => f.write_str(why),
            Self::Lost(cause) => cause.fmt(f),
            Self::Yielded => f.write_str("a viewer needed the account's connection"),
        }
    }
}

/// The account of an address by itself. No record has this id.
const NOBODY: AccountId = AccountId(0);

fn nobodys() -> Account {
    let profile = AccountProfile::default_of(ProfileId(0), "", 0);
    Account::new(NOBODY, "", PlaylistLocation::None, profile, 0)
}

fn stream_at(url: SourceUrl) -> Stream {
    let facts = StreamProperties {
        name: String::new(),
        url,
        headers: RequestHeaders::default(),
        tvg_id: None,
        group: None,
        logo: None,
        number: None,
    };
    Stream::new(StreamId(0), NOBODY, facts, 0)
}
