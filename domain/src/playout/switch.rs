//! Switching to another source while one plays: make before break where a slot is free, else break, try, and
//! return. By hand, or by itself to a preferred stream.

use std::time::{Duration, Instant};

use super::machine::{drop_attempt, put_first};
use super::{
    Action, AttemptReason, PlayingSource, Playout, PlayoutChange, PlayoutState, SwitchRefusal, SwitchTarget,
    after,
};

/// A preferred stream is not tried more often than this, whatever the setting says.
const RETURN_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// A switch under way.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Running {
    /// Any of these is what was wanted.
    pub(super) order: Vec<usize>,
    /// The one that is being tried.
    pub(super) to: usize,
    /// What played when it began.
    pub(super) from: usize,
    /// Whoever wants it is told by then, whatever has happened.
    pub(super) until: Instant,
    /// Somebody wants it and hears how it ended. Else it is a silent return to a preferred stream.
    pub(super) is_manual: bool,
}

impl Running {
    pub(super) fn failed(&self, returned_to: Option<usize>) -> Action {
        Action::Changed(PlayoutChange::SwitchFailed { to: self.to, returned_to })
    }
}

impl Playout {
    pub(super) fn switch_wanted(
        &mut self,
        state: PlayoutState,
        switch: SwitchTarget,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        if self.switch.as_ref().is_some_and(|it| it.is_manual) {
            out.push(Action::Changed(PlayoutChange::SwitchRefused(SwitchRefusal::Busy)));
            return state;
        }
        let Some(order) = self.switch_order(&state, switch, now) else {
            out.push(Action::Changed(PlayoutChange::SwitchRefused(SwitchRefusal::NoSuchCandidate)));
            return state;
        };
        self.chosen = Some(self.candidates.place(order[0]).stream);
        match state {
            PlayoutState::Playing(playing) => self.begin_switch(playing, order, true, now, out),
            PlayoutState::Switching { playing, next } => {
                // Only a return to a preferred stream, which nobody waits for.
                drop_attempt(&next, out);
                self.begin_switch(playing, order, true, now, out)
            }
            other => {
                self.wish = Some(order[0]);
                out.push(Action::Changed(PlayoutChange::SwitchNoted { to: order[0] }));
                other
            }
        }
    }

    /// The places that would fulfil the wish, best first. `None` if there is none.
    fn switch_order(&self, state: &PlayoutState, switch: SwitchTarget, now: Instant) -> Option<Vec<usize>> {
        let playing = match state {
            PlayoutState::Playing(playing) | PlayoutState::Switching { playing, .. } => Some(playing.index),
            _ => None,
        };
        let to = match switch {
            SwitchTarget::To(index) => index,
            SwitchTarget::Preferred => self.candidates.playable().next()?,
            SwitchTarget::Next => {
                let from = playing.or(self.position).or_else(|| self.candidates.playable().next())?;
                let stream = self.candidates.place(from).stream;
                let others = self.candidates.sorted(Some(from), now, &self.settings, |it| {
                    self.candidates.can_play(it) && self.candidates.place(it).stream != stream
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
        // The place that plays is no substitute for its sister.
        let stream = self.candidates.place(to).stream;
        let mut order = self.candidates.sorted(Some(to), now, &self.settings, |it| {
            self.candidates.can_play(it) && self.candidates.place(it).stream == stream && Some(it) != playing
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
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        let next = self.ask(order.clone(), AttemptReason::Switch, None, now, out);
        let until = after(now, self.settings.switch_timeout);
        self.switch = Some(Running { to: order[0], order, from: playing.index, until, is_manual });
        PlayoutState::Switching { playing, next }
    }

    /// Something plays. If somebody wished for another stream in the meantime, that comes next.
    pub(super) fn grant_wish(
        &mut self,
        playing: PlayingSource,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        match self.wish.take() {
            Some(wish)
                if self.candidates.place(wish).stream != self.candidates.place(playing.index).stream =>
            {
                self.begin_switch(playing, vec![wish], true, now, out)
            }
            _ => PlayoutState::Playing(playing),
        }
    }

    /// No slot for the new source beside the old one. Letting the old one go helps if it sits on such a slot.
    pub(super) fn switch_is_full(
        &mut self,
        playing: PlayingSource,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        let profile = self.candidates.place(playing.index).profile;
        let Some(switch) = &self.switch else { return PlayoutState::Playing(playing) };
        let is_in_the_way = switch.order.iter().any(|it| self.candidates.place(*it).profile == profile);
        if !switch.is_manual || !is_in_the_way {
            return self.switch_failed(playing, now, out);
        }
        let mut order = switch.order.clone();
        // So that the old one returns at once if somebody else was quicker.
        if self.candidates.can_play(playing.index) && !order.contains(&playing.index) {
            order.push(playing.index);
        }
        self.has_ended(&playing, now);
        out.push(Action::Release);
        PlayoutState::Opening(self.ask(order, AttemptReason::Switch, None, now, out))
    }

    /// The new source cannot be had, and the old one still plays.
    pub(super) fn switch_failed(
        &mut self,
        mut playing: PlayingSource,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        if let Some(switch) = self.switch.take().filter(|it| it.is_manual) {
            out.push(switch.failed(Some(playing.index)));
        }
        playing.return_at = self.return_at(playing.index, now);
        PlayoutState::Playing(playing)
    }

    /// Whoever wants it has waited long enough.
    pub(super) fn switch_takes_too_long(
        &mut self,
        state: PlayoutState,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        match state {
            PlayoutState::Switching { playing, next } => {
                drop_attempt(&next, out);
                self.switch_failed(playing, now, out)
            }
            other => {
                self.end_switch(out);
                other
            }
        }
    }

    /// The switch ends, and nothing plays.
    pub(super) fn end_switch(&mut self, out: &mut Vec<Action>) {
        if let Some(switch) = self.switch.take().filter(|it| it.is_manual) {
            out.push(switch.failed(None));
        }
    }

    /// When a return from this place is due: never, if there is nothing better, or if it was chosen by hand.
    pub(super) fn return_at(&self, index: usize, now: Instant) -> Option<Instant> {
        let pause = self.settings.return_to_preferred_after?.max(RETURN_INTERVAL_MIN);
        if self.chosen == Some(self.candidates.place(index).stream) {
            return None;
        }
        let best = *self.preferred_to(index, now).first()?;
        let memory_ends = self.candidates.failed_at(best).map(|at| after(at, self.settings.candidate_memory));
        Some(after(now, pause)).max(memory_ends)
    }

    pub(super) fn return_to_preferred(
        &mut self,
        playing: PlayingSource,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        let order = self.preferred_to(playing.index, now);
        if order.is_empty() {
            return PlayoutState::Playing(PlayingSource { return_at: None, ..playing });
        }
        self.begin_switch(playing, order, false, now, out)
    }

    /// Places of other streams that come before this one.
    fn preferred_to(&self, index: usize, now: Instant) -> Vec<usize> {
        let stream = self.candidates.place(index).stream;
        self.candidates.sorted(None, now, &self.settings, |it| {
            it < index && self.candidates.can_play(it) && self.candidates.place(it).stream != stream
        })
    }
}
