//! From a slot to a source that plays, and what is done when it is lost.

use std::time::Duration;

use domain::plan::Candidate;
use domain::playout::{Attempt, AttemptReason, Failure, FailureScope, Input};
use domain::settings::AtLimit;
use media::error::{Cause, UpstreamError};
use media::source::{self, OpenRequest, Source};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info, warn};

use super::{Alarm, Gap, Stage, State, Try};
use crate::channel::{Message, Viewer, WatchRefusal};
use crate::plans::Target;
use crate::slots::{Asking, LeasePurpose, Request, SlotMessage};
use crate::timeline::{RunEntry, RunEntryKind};

impl State {
    pub(super) fn slots(&mut self, news: SlotMessage) {
        match news {
            SlotMessage::Granted { attempt, index, lease } => {
                let Some(candidate) = self.candidate(index) else { return };
                let (id, just_released) = (lease.id(), lease.just_released());
                let stage = Stage::Granted(lease);
                self.tries.insert(attempt, Try { candidate, lease: id, just_released, stage });
                self.input(Input::Granted { attempt, index });
                // A stale grant is dropped with its lease.
                if matches!(self.tries.get(&attempt), Some(Try { stage: Stage::Granted(_), .. })) {
                    self.tries.remove(&attempt);
                }
            }
            SlotMessage::Full { attempt, full } => {
                debug!(channel.target = %self.target, account = full.account, "no slot came free");
                let line = RunEntry::new(RunEntryKind::NoSlot).detail(WatchRefusal::Full(full.clone()));
                self.last_full = Some(full);
                self.input_told(Input::Full { attempt }, line);
            }
            SlotMessage::Yield { asked_by, viewer } => self.yield_slot(asked_by, viewer.as_ref()),
        }
    }

    /// Gives the slot up when nobody watches, or when the one who does is the one who asks.
    pub(super) fn yield_slot(&mut self, asked_by: u64, viewer: Option<&Viewer>) {
        let deserted = self.is_deserted();
        let replaced = self.env.settings().at_limit == AtLimit::ReplaceOwn
            && self.waiting.is_empty()
            && viewer.zip(self.clients.only()).is_some_and(|(new, own)| own.is_same_device(new));
        if !deserted && !replaced {
            return self.env.slots.kept(self.serial, asked_by);
        }
        info!(channel.target = %self.target, "channel gives its slot up for another");
        if replaced {
            self.clients.kick_all("replaced by the same device");
        }
        self.admitting = false;
        let cause = if replaced { "same_device" } else { "nobody_watches" };
        self.input_told(Input::Yield, RunEntry::new(RunEntryKind::Yielded).cause(cause));
    }

    pub(super) fn ask(&mut self, attempt: Attempt, order: &[usize], why: AttemptReason) {
        let pools = order.iter().filter_map(|it| Some((*it, self.candidate(*it)?.pool))).collect();
        self.write(RunEntry::new(RunEntryKind::SlotRequested).cause(match why {
            AttemptReason::Start => "start",
            AttemptReason::Failover => "failover",
            AttemptReason::Switch => "switch",
        }));
        let asking = match why {
            AttemptReason::Start => Asking::Join(self.waiting.last().map(|it| it.wish.viewer.clone())),
            AttemptReason::Failover => Asking::Failover,
            AttemptReason::Switch => Asking::Switch,
        };
        let purpose = match self.target {
            Target::Channel(_) => LeasePurpose::Live,
            Target::Stream(_) => LeasePurpose::Preview,
        };
        self.env.slots.request(Request {
            holder: self.serial,
            port: self.myself.get_derived(),
            attempt,
            order: pools,
            asking,
            purpose,
        });
    }

    pub(super) fn open(&mut self, attempt: Attempt) {
        let Some(Try { candidate, just_released, stage: Stage::Granted(lease), .. }) =
            self.tries.remove(&attempt)
        else {
            return;
        };
        let lease_id = lease.id();
        debug!(
            channel.target = %self.target, stream.id = %candidate.stream, account = candidate.pool.account_name,
            "channel opens a stream"
        );
        self.write(RunEntry::new(RunEntryKind::Opening).about(&candidate));
        let request = open_request(&candidate);
        let upstream = self.env.upstream();
        let myself = self.myself.clone();
        let panicked = UpstreamError::new(Cause::Panicked);
        let mut alarm = Alarm::new(myself.clone(), Message::Lost(attempt, panicked));
        let opener = self.env.packets.spawn(async move {
            let news = match source::open(request, Box::new(lease), upstream).await {
                Ok(source) => Message::Opened(attempt, source),
                Err(cause) => Message::Lost(attempt, cause),
            };
            alarm.disarm();
            // A channel that is gone drops the source with the message.
            let _ = myself.cast(news);
        });
        let stage = Stage::Opening { _opener: AbortOnDropHandle::new(opener) };
        self.tries.insert(attempt, Try { candidate, lease: lease_id, just_released, stage });
        if !self.admitting {
            self.admitting = true;
            self.admit_waiting();
        }
    }

    pub(super) fn opened(&mut self, attempt: Attempt, source: Source) {
        if let Some(it) = self.tries.get_mut(&attempt) {
            it.stage = Stage::Opened(source);
            self.input(Input::Opened { attempt });
        }
    }

    pub(super) fn follow(&mut self, attempt: Attempt) {
        let Some(it) = self.tries.get_mut(&attempt) else { return };
        if let Stage::Opened(source) = std::mem::replace(&mut it.stage, Stage::Followed) {
            self.pump.follow(attempt.0, source);
        }
    }

    pub(super) fn lost(&mut self, attempt: Attempt, cause: UpstreamError) {
        let was_playing = self.playing.as_ref().is_some_and(|it| it.0 == attempt);
        let Some(it) = self.tries.remove(&attempt) else { return };
        // The pump or the opener has let go already, but where the loss was judged from outside.
        self.env.slots.closing(it.lease);
        self.n_losses += 1;
        self.env.registry.losses.add_one();
        warn!(
            channel.target = %self.target, stream.id = %it.candidate.stream,
            account = it.candidate.pool.account_name, cause = cause.label(), "channel lost its upstream: {cause}"
        );
        if was_playing {
            self.playing = None;
            self.gap.get_or_insert_with(|| Gap { since: Instant::now(), cause: cause.label() });
        }
        let scope = match cause.scope() {
            media::error::Scope::Stream => FailureScope::Stream,
            media::error::Scope::Candidate => FailureScope::Candidate,
        };
        // An account that refuses right after a slot came back may still count the closed connection.
        let waits = self.plan.as_ref().is_some_and(|plan| plan.waits_for_release(&it.candidate.pool));
        let just_released = it.just_released && scope == FailureScope::Candidate && waits;
        let failure = Failure { scope, retry: cause.can_retry(), just_released };
        let mut line =
            RunEntry::new(RunEntryKind::Lost).about(&it.candidate).cause(cause.label()).detail(&cause);
        if let Cause::Status(status) = cause.cause() {
            line.upstream_status = Some(*status);
        }
        self.last_cause = Some(cause);
        self.input_told(Input::Lost { attempt, failure }, line);
    }

    pub(super) fn slow(&mut self, attempt: u64, behind: Duration) {
        let attempt = Attempt(attempt);
        if self.playing.as_ref().is_some_and(|it| it.0 == attempt) {
            debug!(channel.target = %self.target, behind_ms = behind.as_millis() as u64, "source is too slow");
            self.lost(attempt, UpstreamError::new(Cause::ClockBehind));
        }
    }

    /// Has the pump let go of its source. Its slot counts as coming back from now on, so that whoever is asked for
    /// next on the same account waits for it.
    pub(super) fn release(&mut self) {
        self.pump.release();
        let slots = &self.env.slots;
        self.tries.retain(|_, it| {
            let is_followed = matches!(it.stage, Stage::Followed);
            if is_followed {
                slots.closing(it.lease);
            }
            !is_followed
        });
        if self.playing.take().is_some() {
            self.gap.get_or_insert_with(|| Gap { since: Instant::now(), cause: "released" });
        }
    }
}

/// What is opened to play a candidate.
pub(crate) fn open_request(candidate: &Candidate) -> OpenRequest {
    let referrer = candidate.headers.referrer.iter().map(|it| ("Referer".to_owned(), it.clone()));
    OpenRequest {
        url: candidate.url.expose().to_owned(),
        user_agent: candidate.headers.user_agent.clone(),
        headers: referrer.chain(candidate.headers.extra.iter().cloned()).collect(),
        command: candidate.command.as_ref().map(|it| {
            let program = std::iter::once(it.program.clone());
            program.chain(it.arguments.iter().cloned()).collect()
        }),
    }
}
