//! Switches to another source while one plays, manual or automatic to a preferred stream.
//!
//! With a slot for a second connection, the new source is opened while the old one plays, which is dropped when the
//! output can continue with the new one. Without one the old source is released first, and tried again if the new one
//! fails.

use std::time::{Duration, Instant};

use super::Playout;
use super::candidates::put_first;
use super::messages::{Action, AttemptReason, Lack, PlayoutChange, SwitchRefusal, SwitchTarget};
use super::pauses::after;
use super::state::{PlayingSource, PlayoutState};
use crate::ids::StreamId;

/// Shortest interval between two returns to a preferred stream, whatever the setting.
const RETURN_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// The switch in progress, and requests that outlast it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Switches {
    /// The switch in progress, also when its old source is gone.
    running: Option<RunningSwitch>,
    /// The candidate that was requested while nothing played.
    requested: Option<usize>,
    /// The stream of the last manual switch. The channel does not return from it to a preferred one.
    chosen: Option<StreamId>,
}

/// A switch in progress.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunningSwitch {
    /// Candidates each of which fulfils the request.
    order: Vec<usize>,
    /// The candidate that is being tried.
    to: usize,
    /// The candidate that played when the switch began.
    from: usize,
    /// Deadline for the answer to the caller.
    until: Instant,
    /// A caller waits for the outcome. Otherwise it is a return to a preferred stream, which is not reported.
    is_manual: bool,
}

impl RunningSwitch {
    pub(super) fn accepts(&self, index: usize) -> bool {
        self.order.contains(&index)
    }

    pub(super) fn from(&self) -> usize {
        self.from
    }

    pub(super) fn is_manual(&self) -> bool {
        self.is_manual
    }

    pub(super) fn failed(&self, returned_to: Option<usize>) -> PlayoutChange {
        PlayoutChange::SwitchFailed { to: self.to, returned_to }
    }
}

impl Switches {
    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.running.as_ref().map(|it| it.until)
    }

    pub(super) fn order(&self) -> Option<&[usize]> {
        self.running.as_ref().map(|it| &*it.order)
    }

    /// Returns the candidate that played when the switch in progress began.
    pub(super) fn old_source(&self) -> Option<usize> {
        self.running.as_ref().map(|it| it.from)
    }

    /// Returns the candidates that the switch in progress refers to.
    pub(super) fn referred(&self) -> impl Iterator<Item = usize> {
        self.running.iter().flat_map(|it| [it.from, it.to])
    }

    /// A lease for this candidate was granted.
    pub(super) fn granted(&mut self, index: usize) {
        if let Some(switch) = self.running.as_mut().filter(|it| it.accepts(index)) {
            switch.to = index;
        }
    }

    /// Ends the switch in progress and returns it.
    pub(super) fn finish(&mut self) -> Option<RunningSwitch> {
        self.running.take()
    }

    pub(super) fn has_request(&self) -> bool {
        self.requested.is_some()
    }

    pub(super) fn take_request(&mut self) -> Option<usize> {
        self.requested.take()
    }

    /// Moves all indices to those of a new plan. Requested candidates that cannot be played any more are dropped.
    pub(super) fn move_candidates(&mut self, moved: &[Option<usize>], can_play: impl Fn(usize) -> bool) {
        let playable = |it: usize| moved[it].filter(|it| can_play(*it));
        self.requested = self.requested.and_then(playable);
        if let Some(switch) = &mut self.running {
            let kept = |it: usize| moved[it].expect("candidates of a running switch are kept");
            (switch.from, switch.to) = (kept(switch.from), kept(switch.to));
            switch.order = switch.order.iter().filter_map(|it| playable(*it)).collect();
        }
    }
}

impl Playout {
    pub(super) fn switch_requested(
        &mut self,
        state: PlayoutState,
        target: SwitchTarget,
        now: Instant,
    ) -> PlayoutState {
        if self.switches.running.as_ref().is_some_and(RunningSwitch::is_manual) {
            self.report(PlayoutChange::SwitchRefused(SwitchRefusal::Busy));
            return state;
        }
        let Some(order) = self.switch_order(&state, target, now) else {
            self.report(PlayoutChange::SwitchRefused(SwitchRefusal::NoSuchCandidate));
            return state;
        };
        self.switches.chosen = Some(self.candidates.get(order[0]).stream);
        match state {
            PlayoutState::Playing(playing) => self.begin_switch(playing, order, true, now),
            PlayoutState::Beside { playing, next } => {
                // No caller waits for this attempt: it is a return to a preferred stream, or speculative.
                self.drop_attempt(&next);
                self.begin_switch(playing, order, true, now)
            }
            other => {
                self.switches.requested = Some(order[0]);
                self.report(PlayoutChange::SwitchNoted { to: order[0] });
                other
            }
        }
    }

    /// Returns the candidates that fulfil the request, best first; `None` if there are none.
    fn switch_order(&self, state: &PlayoutState, target: SwitchTarget, now: Instant) -> Option<Vec<usize>> {
        let playing = match state {
            PlayoutState::Playing(playing) | PlayoutState::Beside { playing, .. } => Some(playing.index),
            _ => None,
        };
        let to = match target {
            SwitchTarget::To(index) => index,
            SwitchTarget::Preferred => self.candidates.playable().next()?,
            SwitchTarget::Next => {
                let from =
                    playing.or(self.session.position()).or_else(|| self.candidates.playable().next())?;
                let stream = self.candidates.get(from).stream;
                let others = self.candidates.sorted(Some(from), now, &self.settings, |it| {
                    self.candidates.can_play(it) && self.candidates.get(it).stream != stream
                });
                if !others.is_empty() {
                    return Some(others);
                }
                from
            }
        };
        if !self.candidates.can_play(to) {
            return None;
        }
        // The playing candidate does not fulfil a request for another profile of its stream.
        let stream = self.candidates.get(to).stream;
        let mut order = self.candidates.sorted(Some(to), now, &self.settings, |it| {
            self.candidates.can_play(it) && self.candidates.get(it).stream == stream && Some(it) != playing
        });
        put_first(&mut order, to);
        Some(order)
    }

    fn begin_switch(
        &mut self,
        playing: PlayingSource,
        order: Vec<usize>,
        is_manual: bool,
        now: Instant,
    ) -> PlayoutState {
        let next = self.ask(order.clone(), AttemptReason::Switch, None, true, now);
        let until = after(now, self.settings.switch_timeout);
        self.switches.running =
            Some(RunningSwitch { to: order[0], order, from: playing.index, until, is_manual });
        PlayoutState::Beside { playing, next }
    }

    /// A source plays: begins the switch that was requested in the meantime, if it is to another stream.
    pub(super) fn begin_requested_switch(&mut self, playing: PlayingSource, now: Instant) -> PlayoutState {
        match self.switches.take_request() {
            Some(requested)
                if self.candidates.get(requested).stream != self.candidates.get(playing.index).stream =>
            {
                self.begin_switch(playing, vec![requested], true, now)
            }
            _ => PlayoutState::Playing(playing),
        }
    }

    /// The new source gets no slot while the old one plays. Releasing the old one helps if it uses such a slot.
    /// Otherwise a manual switch requests an ordinary slot, as a viewer of another channel would.
    pub(super) fn switch_is_full(
        &mut self,
        playing: PlayingSource,
        was_beside: bool,
        now: Instant,
    ) -> PlayoutState {
        let profile = self.candidates.get(playing.index).profile;
        let Some(switch) = &self.switches.running else { return self.keep_playing(playing, now) };
        let frees_slot = switch.order.iter().any(|it| self.candidates.get(*it).profile == profile);
        if !switch.is_manual || !frees_slot && !was_beside {
            return self.switch_failed(playing, now);
        }
        let mut order = switch.order.clone();
        if !frees_slot {
            let next = self.ask(order, AttemptReason::Switch, None, false, now);
            return PlayoutState::Beside { playing, next };
        }
        // The old source returns at once if another channel takes the slot first.
        if self.candidates.can_play(playing.index) && !order.contains(&playing.index) {
            order.push(playing.index);
        }
        self.source_ended(&playing, now);
        self.act(Action::Release);
        PlayoutState::Opening(self.ask(order, AttemptReason::Switch, None, false, now))
    }

    /// The new source is unavailable, and the old one still plays.
    pub(super) fn switch_failed(&mut self, mut playing: PlayingSource, now: Instant) -> PlayoutState {
        self.end_switch_with(Some(playing.index));
        playing.return_at = self.return_at(playing.index, now);
        self.keep_playing(playing, now)
    }

    /// The deadline for the answer to the caller has passed.
    pub(super) fn switch_timed_out(&mut self, state: PlayoutState, now: Instant) -> PlayoutState {
        match state {
            PlayoutState::Beside { playing, next } => {
                self.drop_attempt(&next);
                self.switch_failed(playing, now)
            }
            other => {
                self.end_switch();
                other
            }
        }
    }

    /// Ends a switch while nothing plays.
    pub(super) fn end_switch(&mut self) {
        self.end_switch_with(None);
    }

    fn end_switch_with(&mut self, returned_to: Option<usize>) {
        if let Some(switch) = self.switches.finish().filter(RunningSwitch::is_manual) {
            self.report(switch.failed(returned_to));
        }
    }

    /// Returns the time of the return from this candidate to a preferred one. `None` if there is no better stream, or
    /// if this one was chosen manually.
    pub(super) fn return_at(&self, index: usize, now: Instant) -> Option<Instant> {
        let pause = self.settings.return_to_preferred_after?.max(RETURN_INTERVAL_MIN);
        if self.switches.chosen == Some(self.candidates.get(index).stream) {
            return None;
        }
        let best = *self.preferred_to(index, now).first()?;
        let memory_ends = self.candidates.failed_at(best).map(|at| after(at, self.settings.candidate_memory));
        let lack_ends = self.candidates.left_lacking_at(best).map(|at| after(at, self.settings.lack_memory));
        Some(after(now, pause)).max(memory_ends).max(lack_ends)
    }

    pub(super) fn return_to_preferred(&mut self, playing: PlayingSource, now: Instant) -> PlayoutState {
        let mut order = self.preferred_to(playing.index, now);
        order.retain(|it| !self.was_left_lacking(*it, now));
        if order.is_empty() {
            return PlayoutState::Playing(PlayingSource { return_at: None, ..playing });
        }
        self.begin_switch(playing, order, false, now)
    }

    /// Returns the candidates of other streams that come before this one. Streams that were left lately for what they lacked
    /// come last.
    fn preferred_to(&self, index: usize, now: Instant) -> Vec<usize> {
        let stream = self.candidates.get(index).stream;
        let mut order = self.candidates.sorted(None, now, &self.settings, |it| {
            it < index && self.candidates.can_play(it) && self.candidates.get(it).stream != stream
        });
        order.sort_by_key(|it| self.was_left_lacking(*it, now));
        order
    }

    fn was_left_lacking(&self, index: usize, now: Instant) -> bool {
        Lack::ALL.iter().any(|it| self.candidates.left_lacking_lately(index, *it, now, &self.settings))
    }
}
