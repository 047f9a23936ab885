//! What the playout decides, carried out and told.

use domain::event::{EventBody, StreamRef};
use domain::plan::Candidate;
use domain::playout::{Action, GiveUp, Input, PlayoutChange, PlayoutState, SwitchRefusal, SwitchTarget};
use media::ring::EndReason;
use ractor::RpcReplyPort;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info, warn};

use super::telling::stream_ref;
use super::{State, Switching};
use crate::ask::answer;
use crate::channel::{Message, SwitchOutcome, SwitchTo, WatchRefusal, WatchReply};
use crate::timeline::{RunEntry, RunEntryKind};

impl State {
    pub(super) fn input(&mut self, input: Input) {
        self.advance(input, None);
    }

    /// The same, with a line about why; it stands before those about what comes of it.
    pub(super) fn input_told(&mut self, input: Input, line: RunEntry) {
        self.advance(input, Some(line));
    }

    fn advance(&mut self, input: Input, line: Option<RunEntry>) {
        let actions = self.playout.on(input, Instant::now().into_std());
        if let Some(line) = line {
            self.write(line);
        }
        for action in actions {
            self.carry_out(action);
        }
        self.arm();
    }

    pub(super) fn carry_out(&mut self, action: Action) {
        match action {
            Action::Ask { attempt, order, why } => self.ask(attempt, &order, why),
            Action::Open { attempt, .. } => self.open(attempt),
            Action::Follow { attempt } => self.follow(attempt),
            Action::Abandon { attempt } => {
                self.tries.remove(&attempt);
                self.env.slots.cancel(self.serial, attempt);
            }
            Action::Release => self.release(),
            Action::Redirect { index } => self.redirect(index),
            Action::Changed(change) => self.changed(change),
            Action::GiveUp(reason) => self.give_up(reason),
        }
    }

    /// Wakes the playout up at its deadline.
    pub(super) fn arm(&mut self) {
        let deadline = self.playout.deadline().map(Instant::from_std);
        match (deadline, &self.deadline) {
            (None, _) => self.deadline = None,
            (Some(at), Some((armed, _))) if at == *armed => {}
            (Some(at), _) => {
                let myself = self.myself.clone();
                let timer = tokio::spawn(async move {
                    tokio::time::sleep_until(at).await;
                    let _ = myself.cast(Message::Tick);
                });
                self.deadline = Some((at, AbortOnDropHandle::new(timer)));
            }
        }
    }

    pub(super) fn redirect(&mut self, index: usize) {
        let Some(candidate) = self.candidate(index) else { return };
        self.write(RunEntry::new(RunEntryKind::Redirected).about(&candidate));
        let Candidate { url, .. } = candidate;
        for join in self.waiting.drain(..) {
            answer(join.reply, WatchReply::Redirect(url.clone()));
        }
    }

    pub(super) fn changed(&mut self, change: PlayoutChange) {
        let gap_ms = self.gap.as_ref().map_or(0, |it| it.since.elapsed().as_millis() as u64);
        let label = self.gap.as_ref().map_or("", |it| it.cause);
        let cause = label.to_owned();
        let happened = |what| RunEntry::new(what).cause(label).gap(gap_ms);
        let channel = self.channel_ref();
        match change {
            PlayoutChange::Started { index } => {
                let Some(stream) = self.now_playing(index) else { return };
                if let Some(asked) = self.asked_to_start.take() {
                    self.env.registry.started_after(asked.elapsed());
                }
                info!(channel.target = %self.target, stream.id = %stream.id, "channel plays");
                self.has_played = true;
                self.first_played.get_or_insert_with(Instant::now);
                self.write_playing(RunEntry::new(RunEntryKind::Started));
                self.happened(EventBody::ChannelStart { channel, stream });
            }
            PlayoutChange::Reconnected { index } => {
                let Some(stream) = self.now_playing(index) else { return };
                self.env.registry.reconnects.add_one();
                info!(channel.target = %self.target, stream.id = %stream.id, gap_ms, "channel reconnected");
                self.write_playing(happened(RunEntryKind::Reconnected));
                self.happened(EventBody::ChannelReconnect { channel, stream, cause, gap_ms });
            }
            PlayoutChange::FailedOver { to, .. } => {
                let (Some(from), Some(to)) = (self.last_stream.clone(), self.now_playing(to)) else { return };
                self.n_failovers += 1;
                self.env.registry.failovers.add_one();
                warn!(
                    channel.target = %self.target, stream.from = %from.id, stream.to = %to.id, gap_ms,
                    "channel failed over"
                );
                self.write_playing(
                    happened(RunEntryKind::FailedOver).detail(format_args!("from stream {}", from.id)),
                );
                self.happened(EventBody::ChannelFailover { channel, from, to, cause, gap_ms });
            }
            PlayoutChange::Switched { to, .. } => {
                let (Some(from), Some(to)) = (self.last_stream.clone(), self.now_playing(to)) else { return };
                self.env.registry.switches.add_one();
                info!(
                    channel.target = %self.target, stream.from = %from.id, stream.to = %to.id, gap_ms,
                    "channel switched"
                );
                let detail = format!("from stream {}", from.id);
                self.write_playing(RunEntry::new(RunEntryKind::Switched).gap(gap_ms).detail(detail));
                let (cause, previous, stream) = ("manual".to_owned(), Some(from.id), to.id);
                self.happened(EventBody::StreamSwitch { channel, from, to, cause, gap_ms });
                self.answer_switch(|_| SwitchOutcome::Switched { stream, previous, gap_ms });
            }
            PlayoutChange::SwitchFailed { .. } => {
                let reason = self.why_nothing_plays();
                self.write_playing(RunEntry::new(RunEntryKind::SwitchFailed).detail(&reason));
                warn!(channel.target = %self.target, "switch failed: {reason}");
                return self.answer_switch(|it| SwitchOutcome::Failed {
                    playing: it.playing.as_ref().map(|it| it.1.stream),
                    reason,
                });
            }
            PlayoutChange::SwitchRefused(why) => {
                self.write(RunEntry::new(RunEntryKind::SwitchRefused).cause(match why {
                    SwitchRefusal::Busy => "busy",
                    SwitchRefusal::NoSuchCandidate => "no_such_stream",
                }));
                return self.answer_switch(|_| match why {
                    SwitchRefusal::Busy => SwitchOutcome::Busy,
                    SwitchRefusal::NoSuchCandidate => SwitchOutcome::NoSuchStream,
                });
            }
            PlayoutChange::SwitchNoted { to } => {
                let noted = self.candidate(to).map(|it| it.stream);
                if let Some(switching) = &mut self.switching {
                    switching.noted = noted;
                }
                return;
            }
            PlayoutChange::BackingOff { until } => {
                let pause = Instant::from_std(until).saturating_duration_since(Instant::now());
                debug!(channel.target = %self.target, pause_ms = pause.as_millis() as u64, "channel rests");
                let detail = format_args!("the next round is in {} ms", pause.as_millis());
                self.write(RunEntry::new(RunEntryKind::Backoff).detail(detail));
                return;
            }
        }
        let noted = self.switching.as_ref().and_then(|it| it.noted);
        if let Some(stream) = self.playing.as_ref().map(|it| it.1.stream).filter(|it| noted == Some(*it)) {
            let previous = self.switching.as_ref().and_then(|it| it.from);
            self.answer_switch(|_| SwitchOutcome::Switched { stream, previous, gap_ms });
        }
    }

    /// The stream at this place of the plan plays from now on.
    pub(super) fn now_playing(&mut self, index: usize) -> Option<StreamRef> {
        self.gap = None;
        self.last_full = None;
        let (attempt, _) = self.playout.playing()?;
        let candidate = self.candidate(index)?;
        // Whoever played before is done with: the pump dropped its source when it followed this one.
        self.tries.retain(|it, _| *it >= attempt);
        let stream = stream_ref(&candidate);
        self.playing = Some((attempt, candidate));
        self.last_stream = Some(stream.clone());
        Some(stream)
    }

    pub(super) fn give_up(&mut self, reason: GiveUp) {
        let why = self.why_nothing_plays();
        let (refusal, end) = match reason {
            GiveUp::NoStreams => {
                let unplayable = self.plan.as_ref().and_then(|it| it.unplayable.first());
                let refusal = unplayable
                    .map_or(WatchRefusal::NoStreams, |(_, why)| WatchRefusal::Unplayable(why.to_string()));
                let end = EndReason::NothingPlays(refusal.to_string().into());
                (refusal, end)
            }
            GiveUp::NoSlot => {
                self.env.registry.refused_full.add_one();
                let refusal = self.last_full.clone().map_or(WatchRefusal::Stopping, WatchRefusal::Full);
                let end = EndReason::NoSlot(refusal.to_string().into());
                (refusal, end)
            }
            GiveUp::NothingPlays => {
                (WatchRefusal::NothingPlays(why.clone()), EndReason::NothingPlays(why.into()))
            }
            GiveUp::Silent => (WatchRefusal::NothingPlays(why), EndReason::Silent),
        };
        warn!(channel.target = %self.target, "channel gives up: {refusal}");
        self.write(RunEntry::new(RunEntryKind::GaveUp).detail(&refusal));
        self.happened(EventBody::ChannelError {
            channel: self.channel_ref(),
            error_message: refusal.to_string(),
            stream: self.last_stream.clone(),
        });
        self.refuse_waiting(&refusal);
        self.end(end);
    }

    pub(super) fn why_nothing_plays(&self) -> String {
        match (&self.last_cause, &self.last_full) {
            (Some(cause), _) => cause.to_string(),
            (None, Some(full)) => WatchRefusal::Full(full.clone()).to_string(),
            (None, None) => "no stream answered in time".to_owned(),
        }
    }

    pub(super) fn switch(&mut self, to: SwitchTo, reply: RpcReplyPort<SwitchOutcome>) {
        let to = match (to, &self.plan) {
            (SwitchTo::Next, _) => Some(SwitchTarget::Next),
            (SwitchTo::Stream(stream), Some(plan)) => {
                plan.candidates.iter().position(|it| it.stream == stream).map(SwitchTarget::To)
            }
            (SwitchTo::Stream(_), None) => None,
        };
        let Some(to) = to else { return answer(reply, SwitchOutcome::NoSuchStream) };
        if matches!(self.playout.state(), PlayoutState::Idle) || self.ending.is_some() {
            return answer(reply, SwitchOutcome::NotLive);
        }
        // One whose asker went away keeps nobody out.
        if self.switching.as_ref().is_some_and(|it| !it.reply.is_closed()) {
            return answer(reply, SwitchOutcome::Busy);
        }
        let from = self.last_stream.as_ref().map(|it| it.id);
        self.switching = Some(Switching { reply, noted: None, from });
        let line = RunEntry::new(RunEntryKind::SwitchRequested).cause("manual");
        let line = match &to {
            SwitchTarget::To(index) => match self.candidate(*index) {
                Some(candidate) => line.about(&candidate),
                None => line,
            },
            SwitchTarget::Next | SwitchTarget::Preferred => line,
        };
        self.input_told(Input::Switch(to), line);
    }

    pub(super) fn answer_switch(&mut self, outcome: impl FnOnce(&Self) -> SwitchOutcome) {
        if let Some(switching) = self.switching.take() {
            answer(switching.reply, outcome(self));
        }
    }
}
