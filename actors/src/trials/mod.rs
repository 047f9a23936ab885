//! Trials: run a stream profile for some seconds and report what it produces. A trial has no viewers and stores
//! nothing.
//!
//! A trial is a future of its caller and ends with it: it takes a lease like a live channel, opens the source in the
//! same way, and reads it in a task on the packet runtime. The **holder** receives the messages about its slot; a
//! viewer who needs that slot gets it.
//!
//! ```text
//!   place ─► plan ─► Request ─► slots ─► Granted ─► open ─► sample ─► time is up
//!     └ Busy    └ redirect         └ Full              └──────┴─ lost, Yield, stop
//! ```

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::account::{Account, AccountProfile, PlaylistLocation, RefreshRecord};
use domain::ids::{AccountId, ProfileId, StreamId};
use domain::plan::{self, Candidate, Plan, PlanContext, TrialAddresses};
use domain::playout::Attempt;
use domain::server_group::ServerGroupMembers;
use domain::settings::LEASE_WAIT;
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use domain::stream_profile::{Delivery, StreamProfile};
use media::Permit;
use media::error::{Cause, UpstreamError};
use media::sample::{Sample, Sampler};
use media::source::{self, KnownSource, ProgramOutput, SourceInfo, Upstream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::info;

use crate::addresses::AccountAddresses;
use crate::ask::ANSWER_TIMEOUT;
use crate::channel::{LiveEnv, open_request};
use crate::plans::Target;
use crate::portals::PortalLink;
use crate::slots::{
    Asking, CloseReason, FullPool, Holder, Lease, LeasePurpose, Request, SlotCandidate, SlotMessage,
};

/// Maximum number of simultaneous trials. Each is a connection and possibly a program that uses a processor.
const TRIALS_MAX: usize = 2;

/// Maximum wait for trials to close their sources when the system stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// The number of the only attempt of a trial.
const ATTEMPT: Attempt = Attempt(1);

/// A request for a trial.
#[derive(Clone, Debug)]
pub struct TrialRequest {
    /// The profile; may be inactive.
    pub profile: Arc<StreamProfile>,
    pub source: TrialSource,
    /// Time to read after the first data.
    pub reading: Duration,
}

/// The source of a trial.
#[derive(Clone, Debug)]
pub enum TrialSource {
    /// A stream, with its own headers, a slot of its account, and the last refresh of it. The account has to be active.
    Stream {
        stream: Arc<Stream>,
        account: Arc<Account>,
        refresh: Option<Arc<RefreshRecord>>,
        /// The server group of the account.
        members: Option<ServerGroupMembers>,
    },
    /// An address without an account.
    Url(SourceUrl),
}

/// The result of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The delivery that was used. It differs from that of the profile if the kind of the address requires it.
    pub delivery: Delivery,
    pub outcome: TrialOutcome,
    /// Account name and account profile of the slot that was used.
    pub account: Option<(String, ProfileId)>,
    /// The opened source; `None` if none was opened.
    pub opened: Option<SourceInfo>,
    /// The data that was read.
    pub sample: Sample,
    /// The last output lines of the program that read the source, without secrets.
    pub said: Vec<String>,
}

/// Outcome of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrialOutcome {
    /// The source played until the time was up.
    Played,
    /// Viewers are redirected to the provider; nothing was opened.
    Redirects,
    /// The source is of an unsupported kind; contains the reason.
    Unplayable(String),
    /// The source could not be opened, or ended.
    Lost(UpstreamError),
    /// A viewer needed the slot.
    Yielded,
}

/// Reason why a trial did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrialRefusal {
    /// The maximum number of trials is running.
    #[error("{TRIALS_MAX} tests are already running")]
    Busy,
    /// All slots are in use and none came free in time.
    #[error("{0}")]
    Full(FullPool),
    /// The slots actor did not reply.
    #[error("the gateway did not answer in time")]
    NoAnswer,
    /// The gateway is stopping.
    #[error("the gateway is stopping")]
    Stopping,
}

/// The handle for trials, shared between clones.
#[derive(Clone)]
pub struct Trials {
    env: Arc<LiveEnv>,
    /// Serials of live channels and trials: both hold slots.
    counter: Arc<AtomicU64>,
    places: Arc<Semaphore>,
    stop: CancellationToken,
}

impl Trials {
    /// Creates the handle. Trials end when `stop` is cancelled.
    pub(crate) fn new(env: Arc<LiveEnv>, counter: Arc<AtomicU64>, stop: CancellationToken) -> Self {
        Self { env, counter, places: Arc::new(Semaphore::new(TRIALS_MAX)), stop }
    }

    /// Runs a profile and returns what it produced: at the latest after three seconds for a slot, the start time of the
    /// source, and the reading time. Dropping the future ends the trial.
    ///
    /// # Errors
    /// The trial did not start.
    pub async fn run(&self, request: TrialRequest) -> Result<Trial, TrialRefusal> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| TrialRefusal::Busy)?;
        let TrialRequest { profile, source, reading } = request;
        let trial = self.execute(&profile, source, reading, place).await?;
        info!(
            stream_profile.id = %profile.id, delivery = %trial.delivery, bytes = trial.sample.bytes,
            "stream profile \"{}\" tested: {}", profile.name, trial.outcome
        );
        Ok(trial)
    }

    async fn execute(
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
        // Cancelled when the system stops, or when the slot has to be given up.
        let end = self.stop.child_token();
        let run = TrialReader {
            upstream: self.env.upstream(),
            conditions: self.env.plans.conditions(),
            addresses: self.env.plans.addresses(),
            link: self.env.plans.link(&candidate),
            stall_timeout: self.env.settings().stall_timeout,
            reading,
            end: end.clone(),
        };
        let reading = run.read(candidate.clone(), lease);
        let running = self.env.packets.spawn(async move {
            let done = reading.await;
            // Dropped after the source: the stop of the system waits until the source is closed too.
            drop(place);
            done
        });
        let mut running = AbortOnDropHandle::new(running);
        let mut closed_for = None;
        let done = tokio::select! {
            done = &mut running => done,
            reason = holder.must_close() => {
                closed_for = Some(reason);
                // Marked immediately, so that the waiting request knows that the slot will be returned.
                self.env.slots.closing(lease_id);
                end.cancel();
                running.await
            }
        };
        if self.stop.is_cancelled() {
            return Err(TrialRefusal::Stopping);
        }
        let mut done = done.unwrap_or_else(|_| ReadResult::lost(Cause::Panicked.into()));
        if closed_for == Some(CloseReason::Revoked) {
            done.lost = Some(Cause::Revoked.into());
        }
        if let Some(error) = &done.lost {
            // After a limit, the next trial makes channels yield that nobody watches.
            self.env.slots.provider_refused(lease_id, &candidate.pool, candidate.stream, error);
        }
        Ok(done.into_trial(&candidate, closed_for.is_some()))
    }

    fn plan(&self, profile: &StreamProfile, source: TrialSource) -> Plan {
        let conditions = self.env.plans.conditions();
        match source {
            TrialSource::Stream { stream, account, refresh, members } => {
                let addresses = self.env.plans.addresses().for_trial(&account);
                plan::plan_trial(&stream, &account, refresh, members, addresses, profile, conditions)
            }
            TrialSource::Url(url) => {
                let (stream, addresses) = (stream_at(url), TrialAddresses::default());
                plan::plan_trial(&stream, &no_account(), None, None, addresses, profile, conditions)
            }
        }
    }

    fn serial(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Takes the first free slot of the plan. Returns its candidate.
    async fn lease(&self, plan: &Plan, holder: &mut Holder) -> Result<(Candidate, Lease), TrialRefusal> {
        self.env.slots.request(Request {
            holder: holder.number(),
            target: Target::Stream(plan.candidates.first().map_or(StreamId(0), |it| it.stream)),
            port: holder.port(),
            attempt: ATTEMPT,
            order: plan.candidates.iter().enumerate().map(|(at, it)| SlotCandidate::new(at, it)).collect(),
            // Without a viewer: only channels without viewers make room.
            asking: Asking::Join(None),
            claim: None,
            purpose: LeasePurpose::Trial,
        });
        let answer = timeout(LEASE_WAIT + ANSWER_TIMEOUT, holder.next()).await;
        match answer.map_err(|_| TrialRefusal::NoAnswer)? {
            Some(SlotMessage::Granted { index, lease, .. }) => match plan.candidates.get(index) {
                Some(candidate) => Ok((candidate.clone(), lease)),
                None => Err(TrialRefusal::NoAnswer),
            },
            Some(SlotMessage::Full { full, .. }) => Err(TrialRefusal::Full(full)),
            Some(SlotMessage::Yield { .. } | SlotMessage::Revoked { .. }) | None => {
                Err(TrialRefusal::NoAnswer)
            }
        }
    }

    /// Waits until every trial has closed its source, after they were cancelled.
    pub(crate) async fn ended(&self) {
        let all = self.places.acquire_many(TRIALS_MAX as u32);
        // A trial that does not end in time ends with the runtime.
        let _ = timeout(STOP_TIMEOUT, all).await;
    }
}

/// The part of a trial that runs on the packet runtime.
struct TrialReader {
    upstream: Upstream,
    conditions: PlanContext,
    addresses: AccountAddresses,
    link: Option<Arc<PortalLink>>,
    stall_timeout: Duration,
    reading: Duration,
    end: CancellationToken,
}

/// The result of reading.
struct ReadResult {
    opened: Option<SourceInfo>,
    sample: Sample,
    said: ProgramOutput,
    lost: Option<UpstreamError>,
}

impl TrialReader {
    async fn read(self, candidate: Candidate, lease: Lease) -> ReadResult {
        let mut said = ProgramOutput::default();
        let mut request = open_request(&candidate, &self.conditions, KnownSource::default());
        request.other_addresses = self.addresses.other_forms(&candidate);
        request.address_maker = self.link.clone().map(|it| it as _);
        let permit: Box<dyn Permit> = match self.link {
            Some(link) => link.held_by(Box::new(lease)),
            None => Box::new(lease),
        };
        let opened = tokio::select! {
            opened = source::open_with_output(request, permit, self.upstream, &mut said) => Some(opened),
            () = self.end.cancelled() => None,
        };
        let source = match opened {
            Some(Ok(source)) => source,
            Some(Err(cause)) => return ReadResult { said, ..ReadResult::lost(cause) },
            None => return ReadResult { said, ..ReadResult::nothing() },
        };
        let opened = source.info().clone();
        let mut sampler = Sampler::new(source);
        let lost = tokio::select! {
            read = sampler.read(self.reading, self.stall_timeout) => read.err(),
            () = self.end.cancelled() => None,
        };
        let mut sample = sampler.sample();
        ReadResult { opened: Some(opened), said: sample.program.take().unwrap_or_default(), sample, lost }
    }
}

impl ReadResult {
    fn nothing() -> Self {
        Self { opened: None, sample: Sample::default(), said: ProgramOutput::default(), lost: None }
    }

    fn lost(cause: UpstreamError) -> Self {
        Self { lost: Some(cause), ..Self::nothing() }
    }

    fn into_trial(self, candidate: &Candidate, has_yielded: bool) -> Trial {
        let pool = &candidate.pool;
        Trial {
            delivery: match &self.opened {
                Some(SourceInfo { known: KnownSource { playlist: Some(_), .. }, .. }) => Delivery::Command,
                _ => candidate.profile,
            },
            outcome: match self.lost {
                Some(cause) => TrialOutcome::Lost(cause),
                None if has_yielded => TrialOutcome::Yielded,
                None => TrialOutcome::Played,
            },
            account: (pool.account != NO_ACCOUNT).then(|| (pool.account_name.clone(), pool.profile)),
            opened: self.opened,
            sample: self.sample,
            said: self.said.lines,
        }
    }
}

impl Trial {
    /// Creates the result of a trial that opened no source.
    fn nothing(delivery: Delivery, outcome: TrialOutcome) -> Self {
        let done = ReadResult::nothing();
        let (opened, sample, said) = (done.opened, done.sample, done.said.lines);
        Self { delivery, outcome, account: None, opened, sample, said }
    }
}

impl std::fmt::Display for TrialOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Played => f.write_str("it plays"),
            Self::Redirects => f.write_str("viewers are redirected to the provider"),
            Self::Unplayable(why) => f.write_str(why),
            Self::Lost(cause) => cause.fmt(f),
            Self::Yielded => f.write_str("a viewer needed the account's connection"),
        }
    }
}

/// The account of an address without an account. No record has this id.
const NO_ACCOUNT: AccountId = AccountId(0);

fn no_account() -> Account {
    let profile = AccountProfile::default_of(ProfileId(0), "", 0);
    Account::new(NO_ACCOUNT, "", PlaylistLocation::None, profile, 0)
}

fn stream_at(url: SourceUrl) -> Stream {
    let facts = StreamProperties::new("", url);
    Stream::new(StreamId(0), NO_ACCOUNT, facts, 0)
}
