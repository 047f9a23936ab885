//! Attempts: from a slot to a source that plays, and the handling of losses.

use std::time::Duration;

use domain::ids::ProfileId;
use domain::playout::{Attempt, AttemptReason, Failure, FailureKind, FailureScope, Input, Lack, Patience};
use domain::recording::RecordingClaim;
use domain::settings::AtLimit;
use media::Permit;
use media::error::{self, Cause, LossKind, UpstreamError};
use media::ring::EndReason;
use media::source::{self, Source};
use media::splice::PictureEvent;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use super::change::ChannelChange;
use super::context::DropAlarm;
use super::state::State;
use super::upstream::LostAttempt;
use crate::channel::{Message, open_request};
use crate::plans::Target;
use crate::slots::{Asking, Lease, LeasePurpose, ProviderRefusal, Request, SlotCandidate, SlotMessage};
use crate::viewer::Viewer;

/// Recordings move to another account at most once in this time to make room for others.
const MOVE_PAUSE: Duration = Duration::from_secs(600);

impl State {
    pub(super) fn slots(&mut self, message: SlotMessage) {
        match message {
            SlotMessage::Granted { attempt, index, lease } => {
                if self.upstream.granted(attempt, index, lease) {
                    self.purpose = None;
                    self.push(Input::Granted { attempt, index });
                    self.run_queue();
                    self.upstream.drop_unused_grant(attempt);
                }
            }
            SlotMessage::Full { attempt, full } => {
                let is_watched = self.upstream.has_played() && self.upstream.playing().is_none();
                let begins_to_wait = self.history.no_slot(full.clone()) && is_watched;
                self.push_reported(Input::Full { attempt }, ChannelChange::NoSlot { full, begins_to_wait });
            }
            SlotMessage::Yield { asked_by, viewer, claim } => {
                self.yield_slot(asked_by, viewer.as_ref(), claim.as_ref());
            }
            SlotMessage::Revoked { lease, within } => self.revoked(lease, within),
        }
    }

    /// Closes the source of a lease that ends. The channel looks for another one, which needs no lease or waits for one.
    fn revoked(&mut self, lease: u64, within: Duration) {
        let Some(attempt) = self.upstream.revoke(lease) else { return };
        warn!(
            channel.target = %self.context.target,
            "closed the source of \"{}\" because this node has lost contact with the cluster ({} ms before others may \
             open it)",
            self.upstream.name(), within.as_millis()
        );
        self.lost(attempt, UpstreamError::new(Cause::Revoked));
    }

    /// Gives up the slot to the next origin of the channel, if nobody watches, if all viewers are the device that asks for the
    /// other channel, or to a recording that precedes those of this channel or for which these can move to another account.
    fn yield_slot(&mut self, asked_by: u64, viewer: Option<&Viewer>, claim: Option<&RecordingClaim>) {
        // A new viewer of another channel would have to wait.
        if viewer.is_none() && claim.is_none() && self.is_succeeded() {
            return self.own_source_lost();
        }
        let is_deserted = self.is_deserted();
        let n_edges = self.sharing.n_edges();
        let is_replaced = self.context.env.settings().at_limit == AtLimit::ReplaceOwn
            && n_edges == 0
            && viewer.is_some_and(|it| self.audience.is_of_device(it));
        let playing = self.upstream.profile();
        let is_preceded = claim.is_some_and(|it| {
            self.audience.yields_to(it, playing, n_edges) || (it.moves() && self.moves_elsewhere(playing))
        });
        if !is_deserted && !is_replaced && !is_preceded {
            return self.context.env.slots.kept(self.context.serial, asked_by);
        }
        if is_replaced {
            self.audience.kick_all("replaced by the same device");
        } else if is_preceded && !is_deserted {
            self.audience.kick_all("a recording needs the connection");
        }
        self.audience.stop_admitting();
        self.sharing.viewers_left();
        self.push_reported(Input::Yield, ChannelChange::Yielded { is_replaced });
    }

    /// Returns whether the recordings of the channel can move to the account that the forecast gives them. They do it once
    /// in a while only, because that account may fail.
    fn moves_elsewhere(&mut self, playing: Option<ProfileId>) -> bool {
        let expected = self.audience.forecast_profile().filter(|it| Some(*it) != playing);
        let pool = expected.and_then(|it| self.upstream.pool(it));
        let has_moved = self.moved_at.is_some_and(|it| it.elapsed() < MOVE_PAUSE);
        let slots = &self.context.env.slots;
        let moves = !has_moved
            && self.audience.is_recorded_only()
            && pool.is_some_and(|it| slots.has_room_beside_recordings(self.context.serial, it));
        if moves {
            self.moved_at = Some(Instant::now());
        }
        moves
    }

    fn purpose(&self) -> LeasePurpose {
        match self.context.target {
            Target::Channel(_) if self.audience.is_recorded_only() && self.sharing.n_edges() == 0 => {
                LeasePurpose::Recording
            }
            Target::Channel(_) => LeasePurpose::Live,
            Target::Stream(_) => LeasePurpose::Preview,
            Target::Movie(_) | Target::Episode(_) | Target::Recording(_) => LeasePurpose::Vod,
            Target::Archive(_) => LeasePurpose::Catchup,
        }
    }

    /// Called after every message: the purpose of a slot changes when viewers join recordings or leave them. A channel
    /// without clients keeps it.
    pub(super) fn update_purpose(&mut self) {
        let purpose = self.purpose();
        if self.purpose != Some(purpose) && !self.audience.is_deserted() {
            self.purpose = Some(purpose);
            self.context.env.slots.set_purpose(self.context.serial, purpose);
        }
    }

    pub(super) fn request_slot(
        &mut self,
        attempt: Attempt,
        order: &[usize],
        why: AttemptReason,
        is_beside: bool,
    ) {
        if let Some(index) = self.pulled_candidate(order, why, is_beside) {
            self.report(ChannelChange::SlotRequested { why });
            let message = SlotMessage::Granted { attempt, index, lease: Lease::pulled() };
            // Not handled here, because an action must not lead to another input at once.
            let _ = self.context.myself.cast(Message::Slots(message));
            return;
        }
        let candidate = |it: &usize| Some(SlotCandidate::new(*it, &self.upstream.candidate(*it)?));
        let order = order.iter().filter_map(candidate).collect();
        self.report(ChannelChange::SlotRequested { why });
        let asking = match why {
            AttemptReason::Start => Asking::Join(self.audience.starting_viewer()),
            _ if is_beside => Asking::Beside,
            AttemptReason::Failover | AttemptReason::Silence => Asking::Failover,
            AttemptReason::Switch | AttemptReason::Lack(_) => Asking::Switch,
        };
        let purpose = self.purpose();
        self.context.env.slots.request(Request {
            holder: self.context.serial,
            target: self.context.target,
            port: self.context.myself.get_derived(),
            attempt,
            order,
            asking,
            claim: self.audience.claim(),
            purpose,
        });
    }

    /// Returns the candidate that the process before this one plays, if the channel can be read from there.
    fn pulled_candidate(&self, order: &[usize], why: AttemptReason, is_beside: bool) -> Option<usize> {
        let may_pull = matches!(why, AttemptReason::Start | AttemptReason::Failover) && !is_beside;
        if !may_pull || self.has_lost_predecessor {
            return None;
        }
        let played = self.context.env.predecessor.plays(&self.context.target)?;
        let is_played = |it: &usize| {
            self.upstream.candidate(*it).is_some_and(|it| (it.stream, it.pool.profile) == played)
        };
        order.iter().copied().find(is_played).or(order.first().copied())
    }

    /// Opens the stream of an attempt with the lease just granted.
    pub(super) fn open(&mut self, attempt: Attempt, patience: Option<Patience>) {
        let Some(grant) = self.upstream.take_grant(attempt) else { return };
        let is_speculative = self.upstream.is_speculative();
        self.report(ChannelChange::Opening { candidate: grant.candidate.clone(), is_speculative });
        let context = &self.context;
        let known = self.upstream.known_source(&grant.candidate.url);
        self.upstream.opening(attempt, grant, |candidate, lease| {
            let mut request = open_request(candidate, &context.env.plans.conditions(), known);
            request.other_addresses = context.env.plans.addresses().other_forms(candidate);
            let link = context.env.plans.link(candidate);
            request.address_maker = link.clone().map(|it| it as _);
            let mut upstream = context.env.upstream();
            if let Some(patience) = patience {
                let connect_timeout = upstream.settings.connect_timeout;
                upstream.settings.extend_to(patience.first_packet);
                if !patience.extends_connect {
                    upstream.settings.connect_timeout = connect_timeout;
                }
            }
            let myself = context.myself.clone();
            let panicked = UpstreamError::new(Cause::Panicked);
            let mut alarm = DropAlarm::new(myself.clone(), Message::Lost(attempt, panicked));
            let (predecessor, target) = (context.env.predecessor.clone(), context.target);
            AbortOnDropHandle::new(context.env.packets.spawn(async move {
                let opened = match lease.is_pulled() {
                    true => predecessor.open(target, lease, &upstream).await,
                    false => {
                        let permit: Box<dyn Permit> = match link {
                            Some(link) => link.held_by(Box::new(lease)),
                            None => Box::new(lease),
                        };
                        source::open(request, permit, upstream).await
                    }
                };
                let message = match opened {
                    Ok(source) => Message::Opened(attempt, source),
                    Err(cause) => Message::Lost(attempt, cause),
                };
                alarm.disarm();
                // If the channel is gone, the source is dropped together with the message.
                let _ = myself.cast(message);
            }))
        });
        self.admit_waiting();
    }

    pub(super) fn opened(&mut self, attempt: Attempt, source: Source) {
        let notes = source.info().notes.clone();
        if let Some((candidate, took)) = self.upstream.opened(attempt, source) {
            self.context.env.health.opened(candidate.stream, took);
            for note in notes {
                self.context.env.health.noted(candidate.stream, note.label());
                self.report(ChannelChange::Noted { candidate: candidate.clone(), note });
            }
            self.push(Input::Opened { attempt });
        }
    }

    pub(super) fn lost(&mut self, attempt: Attempt, cause: UpstreamError) {
        let Some(lost) = self.upstream.lost(attempt) else { return };
        // The pump or the opener has already released the source, except when the loss was detected elsewhere.
        self.context.env.slots.closing(lost.lease);
        if lost.was_playing {
            self.history.begin_gap(cause.label());
        }
        self.history.lost(cause.clone());
        if lost.lease == Lease::PULLED {
            return self.lost_predecessor(attempt, lost, cause);
        }
        let played = lost.was_playing.then(|| lost.played.unwrap_or_default());
        let kind = match cause.kind() {
            LossKind::Ended => FailureKind::Ended,
            LossKind::Silent => FailureKind::Silent,
            LossKind::Other => FailureKind::Other,
        };
        if kind == FailureKind::Ended && lost.played_well {
            self.context.env.health.ended(lost.candidate.stream, &cause);
        } else if *cause.cause() != Cause::Revoked {
            self.context.env.health.lost(lost.candidate.stream, &cause, played);
        }
        let scope = match cause.scope() {
            error::Scope::Stream => FailureScope::Stream,
            error::Scope::Candidate => FailureScope::Candidate,
        };
        let (candidate, was_playing) = (lost.candidate, lost.was_playing);
        // The same stream is tried at the next address of its account, before others.
        let has_moved =
            self.context.env.plans.addresses().stream_failed(candidate.pool.account, &candidate.url, &cause);
        if has_moved {
            self.reload();
        }
        let can_be_limit = cause.can_be_connection_limit();
        let slots = &self.context.env.slots;
        let ProviderRefusal { is_crowded, full } =
            slots.provider_refused(lost.lease, &candidate.pool, candidate.stream, &cause);
        if let Some(full) = full {
            self.history.no_slot(full);
        }
        if is_crowded && lost.waits_for_release {
            slots.make_room(self.context.serial, candidate.pool.clone());
        }
        // An account that refuses right after a slot was released may still count the closed connection. Without a
        // configured limit this is assumed of refusals that can mean a limit, and of nothing else.
        let is_refused =
            if candidate.pool.max_streams == 0 { can_be_limit } else { scope == FailureScope::Candidate };
        let counts_late = lost.waits_for_release && lost.just_released && is_refused;
        let failure = Failure {
            scope,
            retry: cause.can_retry() || has_moved,
            // A device that is full is not waited for: its viewers are told at once.
            is_permanent: (cause.is_permanent() || cause.is_full_now()) && !counts_late && !has_moved,
            just_released: counts_late || (is_crowded && lost.waits_for_release),
            kind,
        };
        self.push_reported(
            Input::Lost { attempt, failure },
            ChannelChange::Lost { candidate, cause, was_playing },
        );
        if was_playing {
            self.own_source_lost();
        }
    }

    /// The channel of the process before this one has ended there: the same stream is opened here, once its slot is back.
    fn lost_predecessor(&mut self, attempt: Attempt, lost: LostAttempt, cause: UpstreamError) {
        self.has_lost_predecessor = true;
        if self.is_deserted() {
            // It was kept for other nodes, and none reads it.
            return self.end(EndReason::Closed);
        }
        let failure = Failure {
            scope: FailureScope::Candidate,
            retry: true,
            is_permanent: false,
            just_released: false,
            kind: FailureKind::Other,
        };
        let LostAttempt { candidate, was_playing, .. } = lost;
        self.push_reported(
            Input::Lost { attempt, failure },
            ChannelChange::Lost { candidate, cause, was_playing },
        );
    }

    /// The source that plays is silent: the playout may open another one beside it. A channel without viewers waits.
    pub(super) fn silent(&mut self, attempt: Attempt, silence: Duration) {
        if self.is_deserted() {
            return;
        }
        if let Some(candidate) = self.upstream.played_by(attempt).cloned() {
            self.history.begin_silence(silence);
            self.push_reported(Input::Silent { attempt }, ChannelChange::Silent { candidate, silence });
        }
    }

    pub(super) fn resumed(&mut self, attempt: Attempt) {
        if let Some(candidate) = self.upstream.played_by(attempt).cloned() {
            let silence = self.history.end_silence();
            self.push_reported(Input::Resumed { attempt }, ChannelChange::Resumed { candidate, silence });
        }
    }

    pub(super) fn picture(&mut self, attempt: Attempt, event: PictureEvent) {
        if let Some(candidate) = self.upstream.played_by(attempt).cloned() {
            self.report(ChannelChange::Picture { candidate, event });
        }
    }

    /// The source that plays is given up because it is silent and another one is ready. Its gap began with the silence.
    pub(super) fn left_silent(&mut self) {
        self.source_left(UpstreamError::new(Cause::Stall));
    }

    fn source_left(&mut self, cause: UpstreamError) {
        let Some(candidate) = self.upstream.playing().cloned() else { return };
        self.history.begin_gap(cause.label());
        self.history.lost(cause.clone());
        let played = self.upstream.end_play().unwrap_or_default();
        self.context.env.health.lost(candidate.stream, &cause, Some(played));
        self.report(ChannelChange::Lost { candidate, cause, was_playing: true });
    }

    /// A part is missing in the source that plays: the playout may open another one beside it. Streams in which it never
    /// came lately, or whose picture stood still, are not tried for it.
    pub(super) fn lacks(&mut self, attempt: Attempt, lack: Lack, never: bool) {
        let Some(candidate) = self.upstream.played_by(attempt).cloned() else { return };
        let health = &self.context.env.health;
        if never || lack == Lack::Motion {
            health.lacks(candidate.stream, lack, true);
        }
        let avoid = health.lacking_lately(self.upstream.other_streams(), lack);
        self.push_reported(
            Input::Lacks { attempt, lack, avoid },
            ChannelChange::Lacks { candidate, lack, never },
        );
    }

    pub(super) fn complete(&mut self, attempt: Attempt, lack: Lack) {
        let Some(candidate) = self.upstream.played_by(attempt).cloned() else { return };
        self.context.env.health.lacks(candidate.stream, lack, false);
        self.push_reported(Input::Complete { attempt, lack }, ChannelChange::Complete { candidate, lack });
    }

    /// The source that plays is given up because it lacks a part. Viewers miss nothing else until it ends.
    pub(super) fn left_lacking(&mut self, lack: Lack) {
        self.source_left(UpstreamError::new(lost_part(lack)));
    }

    /// The source that plays lacks a part, and plays on.
    pub(super) fn plays_lacking(&mut self, lack: Lack) {
        let Some(candidate) = self.upstream.playing().cloned() else { return };
        let cause = UpstreamError::new(lost_part(lack));
        self.context.env.health.ended(candidate.stream, &cause);
        self.report(ChannelChange::PlaysLacking { candidate, cause });
    }

    /// Drops everything that belongs to an attempt.
    pub(super) fn abandon(&mut self, attempt: Attempt) {
        if let Some(lease) = self.upstream.abandon(attempt) {
            self.context.env.slots.closing(lease);
        }
        self.context.env.slots.cancel(self.context.serial, attempt);
    }

    pub(super) fn slow(&mut self, attempt: u64, behind: Duration) {
        let attempt = Attempt(attempt);
        if self.upstream.is_playing(attempt) {
            self.report(ChannelChange::TooSlow { behind });
            self.lost(attempt, UpstreamError::new(Cause::ClockBehind));
        }
    }

    /// Makes the pump drop its source. The slot counts as closing from now on, so that the next request for the same
    /// account waits for it.
    pub(super) fn release(&mut self) {
        let released = self.upstream.release();
        for lease in released.leases {
            self.context.env.slots.closing(lease);
        }
        if released.was_playing {
            self.history.begin_gap("released");
        }
    }
}

/// Returns the cause of the loss of a source that lacks this part.
pub(super) fn lost_part(lack: Lack) -> Cause {
    match lack {
        Lack::Picture => Cause::PictureLost,
        Lack::Sound => Cause::SoundLost,
        Lack::Motion => Cause::PictureStill,
    }
}
