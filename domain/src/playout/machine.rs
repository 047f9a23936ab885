//! What leads from one state to the next: start, attempts, losses, rests and the end.

use std::time::Instant;

use super::{
    Action, AttemptReason, AttemptStep, Failure, FailureScope, GiveUp, Input, OpeningAttempt, PlayingSource,
    Playout, PlayoutChange, PlayoutState, after,
};
use crate::playout::Attempt;

impl Playout {
    /// The next state. `self.state` means nothing in here; news of old attempts does not get here.
    pub(super) fn next(
        &mut self,
        state: PlayoutState,
        input: Input,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        if state == PlayoutState::Stopped {
            return state;
        }
        match input {
            Input::Start if state == PlayoutState::Idle => self.start(now, out),
            Input::Start => state,
            Input::Granted { attempt, index } => self.granted(state, attempt, index, now, out),
            Input::Full { attempt } => self.full(state, attempt, now, out),
            Input::Opened { attempt } => self.opened(state, attempt, now, out),
            Input::Playing { .. } => self.plays(state, now, out),
            Input::Lost { attempt, failure } => self.lost(state, attempt, failure, now, out),
            Input::Switch(to) => self.switch_wanted(state, to, now, out),
            Input::Tick => self.tick(state, now, out),
            Input::Replan(places) => self.replan(state, &places, now, out),
            Input::Yield => {
                self.let_go(state, now, out);
                PlayoutState::Idle
            }
            Input::Stop => {
                self.let_go(state, now, out);
                PlayoutState::Stopped
            }
        }
    }

    fn start(&mut self, now: Instant, out: &mut Vec<Action>) -> PlayoutState {
        self.has_played = false;
        self.has_lease_been_granted = false;
        self.last_played = None;
        self.position = None;
        self.silent_since = Some(now);
        self.n_rests = 0;
        self.is_hopeless = true;
        self.candidates.begin_incident();
        self.ask_cold(now, out)
    }

    /// The first question after a start. As long as nobody has been told to wait for packets, the first place
    /// that would play may be a redirect; so places behind one are not asked for yet.
    pub(super) fn ask_cold(&mut self, now: Instant, out: &mut Vec<Action>) -> PlayoutState {
        let mut order = self.candidates.sorted(None, now, &self.settings, |_| true);
        if let Some(wish) = self.wish.take() {
            put_first(&mut order, wish);
        }
        match order.iter().position(|it| self.candidates.place(*it).redirect) {
            Some(0) => return redirect(order[0], out),
            Some(n) => order.truncate(n),
            None if order.is_empty() => return self.give_up(GiveUp::NoStreams, out),
            None => {}
        }
        PlayoutState::Opening(self.ask(order, AttemptReason::Start, None, now, out))
    }

    fn granted(
        &mut self,
        state: PlayoutState,
        attempt: Attempt,
        index: usize,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        let (playing, mut next) = match split_at(state, attempt) {
            Ok(both) => both,
            Err(state) => return state,
        };
        match &next.step {
            AttemptStep::Asked { order, .. } if order.contains(&index) => {
                self.has_lease_been_granted = true;
                if let Some(switch) = self.switch.as_mut().filter(|it| it.order.contains(&index)) {
                    switch.to = index;
                }
                out.push(Action::Open { attempt, index });
                next.step = AttemptStep::Dialling { index, until: after(now, self.settings.open_timeout) };
                join(playing, next)
            }
            AttemptStep::Asked { .. } => {
                // A lease for something else is no answer, but it has to be returned.
                out.push(Action::Abandon { attempt });
                self.unanswered(playing, next, now, out)
            }
            _ => join(playing, next),
        }
    }

    fn full(
        &mut self,
        state: PlayoutState,
        attempt: Attempt,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        let (playing, next) = match split_at(state, attempt) {
            Ok((playing, next)) if matches!(next.step, AttemptStep::Asked { .. }) => (playing, next),
            Ok((playing, next)) => return join(playing, next),
            Err(state) => return state,
        };
        if let Some(playing) = playing {
            return self.switch_is_full(playing, now, out);
        }
        if next.why == AttemptReason::Switch {
            // Only the places of the switch were asked for.
            return self.go_on(now, out);
        }
        if self.has_played {
            return self.rest(now, out);
        }
        let is_redirect = |it: &usize| self.candidates.place(*it).redirect;
        let order = self.candidates.sorted(None, now, &self.settings, |_| true);
        match order.into_iter().find(is_redirect) {
            Some(index) if !self.has_lease_been_granted => redirect(index, out),
            _ => self.give_up(GiveUp::NoSlot, out),
        }
    }

    fn opened(
        &mut self,
        state: PlayoutState,
        attempt: Attempt,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        let (playing, mut next) = match split_at(state, attempt) {
            Ok(both) => both,
            Err(state) => return state,
        };
        let AttemptStep::Dialling { index, .. } = next.step else { return join(playing, next) };
        if let Some(playing) = playing {
            self.has_ended(&playing, now);
        }
        out.push(Action::Follow { attempt });
        next.step = AttemptStep::Following { index, until: after(now, self.settings.follow_timeout) };
        PlayoutState::Opening(next)
    }

    fn plays(&mut self, state: PlayoutState, now: Instant, out: &mut Vec<Action>) -> PlayoutState {
        let (attempt, index) = match &state {
            PlayoutState::Opening(OpeningAttempt {
                attempt,
                step: AttemptStep::Following { index, .. },
                ..
            }) => (*attempt, *index),
            _ => return state,
        };
        let switch = self.switch.take();
        match &switch {
            Some(switch) if switch.order.contains(&index) => {
                out.push(Action::Changed(PlayoutChange::Switched { from: switch.from, to: index }));
            }
            _ => {
                out.push(Action::Changed(match self.last_played {
                    None => PlayoutChange::Started { index },
                    Some(last) if last == index => PlayoutChange::Reconnected { index },
                    Some(from) => PlayoutChange::FailedOver { from, to: index },
                }));
                if let Some(failed) = switch.filter(|it| it.is_manual) {
                    out.push(failed.failed(Some(index)));
                }
            }
        }
        self.candidates.plays(index);
        self.has_played = true;
        self.last_played = Some(index);
        self.position = Some(index);
        self.silent_since = None;
        let playing = PlayingSource { attempt, index, since: now, return_at: self.return_at(index, now) };
        self.grant_wish(playing, now, out)
    }

    fn lost(
        &mut self,
        state: PlayoutState,
        attempt: Attempt,
        failure: Failure,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        match state {
            PlayoutState::Playing(playing) => {
                self.has_ended(&playing, now);
                out.push(Action::Release);
                self.failed(playing.index, failure.scope, failure.retry, now, out)
            }
            PlayoutState::Switching { playing, next } if playing.attempt == attempt => {
                self.has_ended(&playing, now);
                out.push(Action::Release);
                self.candidates.failed(playing.index, failure.scope, now);
                if !failure.retry {
                    self.candidates.had_its_turn(playing.index);
                }
                PlayoutState::Opening(next)
            }
            other => match split_at(other, attempt) {
                Ok((playing, next)) => match next.step {
                    AttemptStep::Dialling { index, .. } | AttemptStep::Following { index, .. } => {
                        self.attempt_failed(playing, next, index, failure, now, out)
                    }
                    _ => join(playing, next),
                },
                Err(state) => state,
            },
        }
    }

    fn tick(&mut self, state: PlayoutState, now: Instant, out: &mut Vec<Action>) -> PlayoutState {
        let is_silent = matches!(state, PlayoutState::Opening(_) | PlayoutState::Backoff { .. });
        if is_silent && self.give_up_at().is_some_and(|at| at <= now) {
            if let PlayoutState::Opening(opening) = &state {
                drop_attempt(opening, out);
            }
            return self.give_up_silent(out);
        }
        if self.switch.as_ref().is_some_and(|it| it.until <= now) {
            return self.switch_takes_too_long(state, now, out);
        }
        match state {
            PlayoutState::Playing(playing) => self.return_to_preferred(playing, now, out),
            PlayoutState::Backoff { .. } => {
                self.candidates.begin_round();
                self.is_hopeless = true;
                self.go_on(now, out)
            }
            other => match split(other) {
                Ok((playing, next)) => self.step_takes_too_long(playing, next, now, out),
                Err(state) => state,
            },
        }
    }

    fn step_takes_too_long(
        &mut self,
        playing: Option<PlayingSource>,
        next: OpeningAttempt,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        match next.step {
            AttemptStep::Asked { .. } => {
                drop_attempt(&next, out);
                self.unanswered(playing, next, now, out)
            }
            AttemptStep::Dialling { index, .. } | AttemptStep::Following { index, .. } => {
                if matches!(next.step, AttemptStep::Dialling { .. }) {
                    drop_attempt(&next, out);
                }
                // Whose fault it was is unknown, so waiting may help.
                self.is_hopeless = false;
                let failure = Failure { scope: FailureScope::Candidate, retry: false, just_released: false };
                self.attempt_failed(playing, next, index, failure, now, out)
            }
            AttemptStep::Waiting { index, .. } => {
                let mut order = match &self.switch {
                    Some(switch) if next.why == AttemptReason::Switch => switch.order.clone(),
                    _ => self.candidates.untried(self.position, now, &self.settings),
                };
                put_first(&mut order, index);
                join(playing, self.ask(order, next.why, next.retry_of, now, out))
            }
        }
    }

    /// Slots is silent. That says nothing about the places, so nobody gives up because of it.
    fn unanswered(
        &mut self,
        playing: Option<PlayingSource>,
        next: OpeningAttempt,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        self.is_hopeless = false;
        match playing {
            Some(playing) => self.switch_failed(playing, now, out),
            None if next.why == AttemptReason::Switch => self.go_on(now, out),
            None => self.rest(now, out),
        }
    }

    /// An attempt with a lease failed.
    fn attempt_failed(
        &mut self,
        playing: Option<PlayingSource>,
        mut next: OpeningAttempt,
        index: usize,
        failure: Failure,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        if matches!(next.step, AttemptStep::Following { .. }) {
            out.push(Action::Release);
        }
        self.is_hopeless &= !failure.retry && !failure.just_released;
        if failure.just_released
            && let Some(pause) = self.candidates.next_release_pause(index, &self.settings)
        {
            next.step = AttemptStep::Waiting { index, until: after(now, pause) };
            return join(playing, next);
        }
        if let Some(playing) = playing {
            self.candidates.failed(index, failure.scope, now);
            return self.switch_failed(playing, now, out);
        }
        // A retry that did not even open has answered the question. The old stream comes before a retry of the
        // one that was switched to.
        let may_retry = failure.retry && next.retry_of != Some(index) && self.switch.is_none();
        self.failed(index, failure.scope, may_retry, now, out)
    }

    /// Nothing plays, because this place failed: it gets a second chance, or the next its first.
    fn failed(
        &mut self,
        index: usize,
        scope: FailureScope,
        may_retry: bool,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> PlayoutState {
        self.position = Some(index);
        let may_retry = may_retry && self.candidates.can_play(index) && self.wish.is_none();
        if may_retry && self.candidates.take_token(index, &self.settings) {
            let mut order = self.candidates.untried(self.position, now, &self.settings);
            put_first(&mut order, index);
            return PlayoutState::Opening(self.ask(order, self.why(), Some(index), now, out));
        }
        self.candidates.failed(index, scope, now);
        self.candidates.had_its_turn(index);
        self.go_on(now, out)
    }

    /// Asks for the places that have not had their turn; without any, rests.
    pub(super) fn go_on(&mut self, now: Instant, out: &mut Vec<Action>) -> PlayoutState {
        if self.give_up_at().is_some_and(|at| at <= now) {
            return self.give_up_silent(out);
        }
        if self.candidates.playable().next().is_none() {
            return self.give_up(GiveUp::NoStreams, out);
        }
        let mut order = self.candidates.untried(self.position, now, &self.settings);
        if let Some(old) = self.switch.as_ref().map(|it| it.from).filter(|it| order.contains(it)) {
            put_first(&mut order, old);
        }
        if let Some(wish) = self.wish.take() {
            put_first(&mut order, wish);
        }
        if order.is_empty() {
            return self.rest(now, out);
        }
        PlayoutState::Opening(self.ask(order, self.why(), None, now, out))
    }

    fn rest(&mut self, now: Instant, out: &mut Vec<Action>) -> PlayoutState {
        if !self.has_played && self.is_hopeless {
            return self.give_up(GiveUp::NothingPlays, out);
        }
        let settings = &self.settings;
        let (shortest, longest) = if self.candidates.is_single() {
            (settings.single_rest_min, settings.single_rest_max)
        } else {
            (settings.rest_min, settings.rest_max)
        };
        let pause = shortest.saturating_mul(1 << self.n_rests.min(16)).min(longest);
        self.n_rests = self.n_rests.saturating_add(1);
        let until = after(now, pause.mul_f64(self.jitter()));
        out.push(Action::Changed(PlayoutChange::BackingOff { until }));
        PlayoutState::Backoff { until }
    }

    /// A factor around 1.
    fn jitter(&mut self) -> f64 {
        // SplitMix64: three lines, and good enough to spread channels out.
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = (self.random ^ (self.random >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let unit = ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        1.0 + self.settings.rest_jitter.clamp(0.0, 1.0) * (2.0 * unit - 1.0)
    }

    pub(super) fn ask(
        &mut self,
        order: Vec<usize>,
        why: AttemptReason,
        retry_of: Option<usize>,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> OpeningAttempt {
        self.last_attempt += 1;
        let attempt = Attempt(self.last_attempt);
        out.push(Action::Ask { attempt, order: order.clone(), why });
        let step = AttemptStep::Asked { order, until: after(now, self.settings.ask_timeout) };
        OpeningAttempt { attempt, why, step, retry_of }
    }

    fn why(&self) -> AttemptReason {
        if self.has_played { AttemptReason::Failover } else { AttemptReason::Start }
    }

    /// This source plays no more, whoever ended it.
    pub(super) fn has_ended(&mut self, playing: &PlayingSource, now: Instant) {
        let time = now.saturating_duration_since(playing.since);
        self.candidates.has_played_for(playing.index, time, &self.settings);
        if time >= self.settings.stable_play {
            self.candidates.begin_incident();
            self.n_rests = 0;
        }
        self.silent_since = Some(now);
        self.position = Some(playing.index);
    }

    /// Drops all there is.
    fn let_go(&mut self, state: PlayoutState, now: Instant, out: &mut Vec<Action>) {
        match state {
            PlayoutState::Opening(next) => drop_attempt(&next, out),
            PlayoutState::Playing(playing) => {
                self.has_ended(&playing, now);
                out.push(Action::Release);
            }
            PlayoutState::Switching { playing, next } => {
                drop_attempt(&next, out);
                self.has_ended(&playing, now);
                out.push(Action::Release);
            }
            PlayoutState::Idle | PlayoutState::Backoff { .. } | PlayoutState::Stopped => {}
        }
        self.end_switch(out);
        self.last_played = None;
    }

    fn give_up_silent(&mut self, out: &mut Vec<Action>) -> PlayoutState {
        self.give_up(if self.has_played { GiveUp::Silent } else { GiveUp::NothingPlays }, out)
    }

    fn give_up(&mut self, reason: GiveUp, out: &mut Vec<Action>) -> PlayoutState {
        self.end_switch(out);
        out.push(Action::GiveUp(reason));
        PlayoutState::Stopped
    }
}

/// The two halves of a state in which an attempt is under way.
pub(super) fn split(state: PlayoutState) -> Result<(Option<PlayingSource>, OpeningAttempt), PlayoutState> {
    match state {
        PlayoutState::Opening(next) => Ok((None, next)),
        PlayoutState::Switching { playing, next } => Ok((Some(playing), next)),
        other => Err(other),
    }
}

/// The same, if the attempt under way is this one.
fn split_at(
    state: PlayoutState,
    attempt: Attempt,
) -> Result<(Option<PlayingSource>, OpeningAttempt), PlayoutState> {
    match &state {
        PlayoutState::Opening(next) | PlayoutState::Switching { next, .. } if next.attempt == attempt => {
            split(state)
        }
        _ => Err(state),
    }
}

pub(super) fn join(playing: Option<PlayingSource>, next: OpeningAttempt) -> PlayoutState {
    match playing {
        Some(playing) => PlayoutState::Switching { playing, next },
        None => PlayoutState::Opening(next),
    }
}

/// Drops what there is of an attempt, wherever it has got to.
pub(super) fn drop_attempt(opening: &OpeningAttempt, out: &mut Vec<Action>) {
    match opening.step {
        AttemptStep::Asked { .. } | AttemptStep::Dialling { .. } => {
            out.push(Action::Abandon { attempt: opening.attempt });
        }
        AttemptStep::Following { .. } => out.push(Action::Release),
        AttemptStep::Waiting { .. } => {}
    }
}

pub(super) fn put_first(order: &mut Vec<usize>, index: usize) {
    order.retain(|it| *it != index);
    order.insert(0, index);
}

fn redirect(index: usize, out: &mut Vec<Action>) -> PlayoutState {
    out.push(Action::Redirect { index });
    PlayoutState::Idle
}
