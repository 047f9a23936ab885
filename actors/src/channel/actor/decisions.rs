//! Carries out the decisions of the playout.
//!
//! Inputs go through a queue. Carrying out an action never calls the playout: an action that leads to another input
//! appends it to the queue, so that nothing re-enters.

use domain::event::{Event, StreamRef};
use domain::plan::Redirection;
use domain::playout::{Action, GiveUp, Input, PlayoutChange, SwitchRefusal};
use media::ring::EndReason;
use tokio::time::Instant;

use super::change::{ChannelChange, stream_ref};
use super::state::State;
use crate::channel::{ChannelReport, Message, SwitchOutcome, WatchRefusal, WatchReply};
use crate::clock::now_ms;
use crate::events::account_full;

impl State {
    /// Appends an input to the queue; [`Self::run_queue`] passes it to the playout.
    pub(super) fn push(&mut self, input: Input) {
        self.inputs.push(input, None);
    }

    /// Appends an input together with the change that explains it.
    pub(super) fn push_reported(&mut self, input: Input, change: ChannelChange) {
        self.inputs.push(input, Some(change));
    }

    /// Passes the queued inputs to the playout, one after the other, and carries out its actions.
    pub(super) fn run_queue(&mut self) {
        while let Some((input, change)) = self.inputs.pop() {
            let is_stop = input == Input::Stop;
            let actions = self.upstream.decide(input);
            if let Some(change) = change {
                self.report(change);
            }
            for action in actions {
                self.carry_out(action);
            }
            if is_stop {
                self.stopped();
            }
        }
        self.upstream.arm_deadline(&self.context);
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Ask { attempt, order, why, beside } => self.request_slot(attempt, &order, why, beside),
            Action::Open { attempt, patience, .. } => self.open(attempt, patience),
            Action::Prepare { attempt } => self.upstream.prepare(attempt),
            Action::Follow { attempt } => self.upstream.follow(attempt),
            Action::Abandon { attempt } => self.abandon(attempt),
            Action::Release => self.release(),
            Action::Redirect { index } => self.redirect(index),
            Action::Changed(change) => self.changed(change),
            Action::GiveUp(reason) => self.give_up(reason),
        }
    }

    /// Sends the waiting clients to the provider, or starts again if the plan has changed. A change is announced after the
    /// commit; until then, the address of a provider that players may no longer see would be given away.
    fn redirect(&mut self, index: usize) {
        let Some(plan) = self.current_plan() else { return self.end(EndReason::Stopped) };
        if self.upstream.plan() != Some(&plan) {
            self.use_plan(plan);
            return self.start();
        }
        let Some(candidate) = self.upstream.candidate(index) else { return };
        let to = Redirection { url: candidate.url.clone(), without_login: candidate.redirect_without_login };
        self.report(ChannelChange::Redirected { candidate });
        self.audience.answer_waiting(|| WatchReply::Redirect(to.clone()));
    }

    fn changed(&mut self, change: PlayoutChange) {
        let gap = self.history.gap();
        match change {
            PlayoutChange::Started { index } => {
                let Some((_, stream)) = self.now_playing(index) else { return };
                let took = self.history.started_playing();
                self.report(ChannelChange::Started { stream, took });
            }
            PlayoutChange::Reconnected { index } => {
                let Some((_, stream)) = self.now_playing(index) else { return };
                self.report(ChannelChange::Reconnected { stream, gap });
            }
            PlayoutChange::FailedOver { to, .. } => {
                let Some((Some(from), to)) = self.now_playing(to) else { return };
                self.report(ChannelChange::FailedOver { from, to, gap });
            }
            PlayoutChange::Switched { to, is_manual, .. } => {
                let Some((Some(from), to)) = self.now_playing(to) else { return };
                let (stream, previous) = (to.id, Some(from.id));
                self.report(ChannelChange::Switched { from, to, is_manual, gap });
                self.answer_switch(SwitchOutcome::Switched { stream, previous, gap_ms: gap.gap_ms });
            }
            PlayoutChange::LeftSilent { .. } => return self.left_silent(),
            PlayoutChange::LeftLacking { lack, .. } => return self.left_lacking(lack),
            PlayoutChange::PlaysLacking { lack, .. } => return self.plays_lacking(lack),
            PlayoutChange::SwitchFailed { .. } => {
                let reason = self.history.why_nothing_plays();
                self.report(ChannelChange::SwitchFailed { reason: reason.clone() });
                let playing = self.upstream.playing().map(|it| it.stream);
                self.answer_switch(SwitchOutcome::Failed { playing, reason });
                return self.drop_outside_streams();
            }
            PlayoutChange::SwitchRefused(why) => {
                self.report(ChannelChange::SwitchRefused { why });
                return self.answer_switch(match why {
                    SwitchRefusal::Busy => SwitchOutcome::Busy,
                    SwitchRefusal::NoSuchCandidate => SwitchOutcome::NoSuchStream,
                });
            }
            PlayoutChange::SwitchNoted { to } => {
                let stream = self.upstream.candidate(to).map(|it| it.stream);
                if let Some(switch) = &mut self.manual_switch {
                    switch.note(stream);
                }
                return;
            }
            PlayoutChange::BackingOff { until } => {
                let delay = Instant::from_std(until).saturating_duration_since(Instant::now());
                return self.report(ChannelChange::Backoff { delay });
            }
        }
        self.answer_noted_switch(gap.gap_ms);
        self.drop_outside_streams();
    }

    /// Takes streams that are not of the channel out of the plan once another one plays.
    fn drop_outside_streams(&mut self) {
        if self.manual_switch.is_none() && self.upstream.drop_outside_streams() {
            // Later, because other actions of this decision name places of this plan. The cast fails when the channel ends.
            let _ = self.context.myself.cast(Message::Reload);
        }
    }

    /// Notes that the stream at this index plays from now on. Returns the stream that played last, and this one.
    fn now_playing(&mut self, index: usize) -> Option<(Option<StreamRef>, StreamRef)> {
        let stream = stream_ref(self.upstream.plays(index)?);
        let previous = self.history.last_stream().cloned();
        self.history.plays(stream.clone());
        Some((previous, stream))
    }

    fn give_up(&mut self, reason: GiveUp) {
        let reason = match reason {
            GiveUp::NothingPlays if self.history.is_full_now() => GiveUp::NoSlot,
            reason => reason,
        };
        let why = self.history.why_nothing_plays();
        let (refusal, end) = match reason {
            GiveUp::NoStreams => {
                let unplayable = self.upstream.plan().and_then(|it| it.unplayable.first());
                let refusal = unplayable
                    .map_or(WatchRefusal::NoStreams, |(_, why)| WatchRefusal::Unplayable(why.to_string()));
                let end = EndReason::NothingPlays(refusal.to_string().into());
                (refusal, end)
            }
            GiveUp::NoSlot => {
                self.context.env.registry.refused_full.add_one();
                let refusal = self.history.full_refusal();
                self.report_full(&refusal);
                let end = EndReason::NoSlot(refusal.to_string().into());
                (refusal, end)
            }
            GiveUp::NothingPlays => {
                (WatchRefusal::NothingPlays(why.clone()), EndReason::NothingPlays(why.into()))
            }
            GiveUp::Silent => (WatchRefusal::NothingPlays(why), EndReason::Silent),
        };
        self.report(ChannelChange::GaveUp { refusal: refusal.clone() });
        self.audience.answer_waiting(|| WatchReply::Refused(refusal.clone()));
        self.end(end);
    }

    /// Emits that an account is at its limit. Not if only the other nodes of the cluster could not be asked.
    fn report_full(&self, refusal: &WatchRefusal) {
        if let WatchRefusal::Full(pool) = refusal
            && let Some(body) = account_full(pool, &self.upstream.name())
        {
            self.context.env.events.emit_paced(pool.account.clone(), Event { at: now_ms(), body });
        }
    }

    /// Finishes what [`Self::end`] began, after the playout stopped.
    fn stopped(&mut self) {
        self.upstream.drop_attempts();
        (self.context.report)(ChannelReport::Ending);
        if !self.audience.has_clients() {
            self.context.myself.stop(None);
        }
    }
}
