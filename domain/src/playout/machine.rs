//! What leads from one state to the next: start, attempts, losses, rests and the end.

use std::time::Instant;

use super::{
    Action, Change, Failure, GiveUp, Input, Opening, Playing, Playout, Scope, State, Step, Why, after,
};
use crate::playout::Attempt;

impl Playout {
    /// The next state. `self.state` means nothing in here; news of old attempts does not get here.
    pub(super) fn next(&mut self, state: State, input: Input, now: Instant, out: &mut Vec<Action>) -> State {
        if state == State::Stopped {
            return state;
        }
        match input {
            Input::Start if state == State::Idle => self.start(now, out),
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
                State::Idle
            }
            Input::Stop => {
                self.let_go(state, now, out);
                State::Stopped
            }
        }
    }

    fn start(&mut self, now: Instant, out: &mut Vec<Action>) -> State {
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
    pub(super) fn ask_cold(&mut self, now: Instant, out: &mut Vec<Action>) -> State {
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
        State::Opening(self.ask(order, Why::Start, None, now, out))
    }

    fn granted(
        &mut self,
        state: State,
        attempt: Attempt,
        index: usize,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> State {
        let (playing, mut next) = match split_at(state, attempt) {
            Ok(both) => both,
            Err(state) => return state,
        };
        match &next.step {
            Step::Asked { order, .. } if order.contains(&index) => {
                self.has_lease_been_granted = true;
                if let Some(switch) = self.switch.as_mut().filter(|it| it.order.contains(&index)) {
                    switch.to = index;
                }
                out.push(Action::Open { attempt, index });
                next.step = Step::Dialling { index, until: after(now, self.settings.open_timeout) };
                join(playing, next)
            }
            Step::Asked { .. } => {
                // A lease for something else is no answer, but it has to be returned.
                out.push(Action::Abandon { attempt });
                self.unanswered(playing, next, now, out)
            }
            _ => join(playing, next),
        }
    }

    fn full(&mut self, state: State, attempt: Attempt, now: Instant, out: &mut Vec<Action>) -> State {
        let (playing, next) = match split_at(state, attempt) {
            Ok((playing, next)) if matches!(next.step, Step::Asked { .. }) => (playing, next),
            Ok((playing, next)) => return join(playing, next),
            Err(state) => return state,
        };
        if let Some(playing) = playing {
            return self.switch_is_full(playing, now, out);
        }
        if next.why == Why::Switch {
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

    fn opened(&mut self, state: State, attempt: Attempt, now: Instant, out: &mut Vec<Action>) -> State {
        let (playing, mut next) = match split_at(state, attempt) {
            Ok(both) => both,
            Err(state) => return state,
        };
        let Step::Dialling { index, .. } = next.step else { return join(playing, next) };
        if let Some(playing) = playing {
            self.has_ended(&playing, now);
        }
        out.push(Action::Follow { attempt });
        next.step = Step::Following { index, until: after(now, self.settings.follow_timeout) };
        State::Opening(next)
    }

    fn plays(&mut self, state: State, now: Instant, out: &mut Vec<Action>) -> State {
        let (attempt, index) = match &state {
            State::Opening(Opening { attempt, step: Step::Following { index, .. }, .. }) => {
                (*attempt, *index)
            }
            _ => return state,
        };
        let switch = self.switch.take();
        match &switch {
            Some(switch) if switch.order.contains(&index) => {
                out.push(Action::Changed(Change::Switched { from: switch.from, to: index }));
            }
            _ => {
                out.push(Action::Changed(match self.last_played {
                    None => Change::Started { index },
                    Some(last) if last == index => Change::Reconnected { index },
                    Some(from) => Change::FailedOver { from, to: index },
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
        let playing = Playing { attempt, index, since: now, return_at: self.return_at(index, now) };
        self.grant_wish(playing, now, out)
    }

    fn lost(
        &mut self,
        state: State,
        attempt: Attempt,
        failure: Failure,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> State {
        match state {
            State::Playing(playing) => {
                self.has_ended(&playing, now);
                out.push(Action::Release);
                self.failed(playing.index, failure.scope, failure.retry, now, out)
            }
            State::Switching { playing, next } if playing.attempt == attempt => {
                self.has_ended(&playing, now);
                out.push(Action::Release);
                self.candidates.failed(playing.index, failure.scope, now);
                if !failure.retry {
                    self.candidates.had_its_turn(playing.index);
                }
                State::Opening(next)
            }
            other => match split_at(other, attempt) {
                Ok((playing, next)) => match next.step {
                    Step::Dialling { index, .. } | Step::Following { index, .. } => {
                        self.attempt_failed(playing, next, index, failure, now, out)
                    }
                    _ => join(playing, next),
                },
                Err(state) => state,
            },
        }
    }

    fn tick(&mut self, state: State, now: Instant, out: &mut Vec<Action>) -> State {
        let is_silent = matches!(state, State::Opening(_) | State::Resting { .. });
        if is_silent && self.give_up_at().is_some_and(|at| at <= now) {
            if let State::Opening(opening) = &state {
                drop_attempt(opening, out);
            }
            return self.give_up_silent(out);
        }
        if self.switch.as_ref().is_some_and(|it| it.until <= now) {
            return self.switch_takes_too_long(state, now, out);
        }
        match state {
            State::Playing(playing) => self.return_to_preferred(playing, now, out),
            State::Resting { .. } => {
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
        playing: Option<Playing>,
        next: Opening,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> State {
        match next.step {
            Step::Asked { .. } => {
                drop_attempt(&next, out);
                self.unanswered(playing, next, now, out)
            }
            Step::Dialling { index, .. } | Step::Following { index, .. } => {
                if matches!(next.step, Step::Dialling { .. }) {
                    drop_attempt(&next, out);
                }
                // Whose fault it was is unknown, so waiting may help.
                self.is_hopeless = false;
                let failure = Failure { scope: Scope::Candidate, retry: false, just_released: false };
                self.attempt_failed(playing, next, index, failure, now, out)
            }
            Step::Waiting { index, .. } => {
                let mut order = match &self.switch {
                    Some(switch) if next.why == Why::Switch => switch.order.clone(),
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
        playing: Option<Playing>,
        next: Opening,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> State {
        self.is_hopeless = false;
        match playing {
            Some(playing) => self.switch_failed(playing, now, out),
            None if next.why == Why::Switch => self.go_on(now, out),
            None => self.rest(now, out),
        }
    }

    /// An attempt with a lease failed.
    fn attempt_failed(
        &mut self,
        playing: Option<Playing>,
        mut next: Opening,
        index: usize,
        failure: Failure,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> State {
        if matches!(next.step, Step::Following { .. }) {
            out.push(Action::Release);
        }
        self.is_hopeless &= !failure.retry && !failure.just_released;
        if failure.just_released
            && let Some(pause) = self.candidates.next_release_pause(index, &self.settings)
        {
            next.step = Step::Waiting { index, until: after(now, pause) };
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
        scope: Scope,
        may_retry: bool,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> State {
        self.position = Some(index);
        let may_retry = may_retry && self.candidates.can_play(index) && self.wish.is_none();
        if may_retry && self.candidates.take_token(index, &self.settings) {
            let mut order = self.candidates.untried(self.position, now, &self.settings);
            put_first(&mut order, index);
            return State::Opening(self.ask(order, self.why(), Some(index), now, out));
        }
        self.candidates.failed(index, scope, now);
        self.candidates.had_its_turn(index);
        self.go_on(now, out)
    }

    /// Asks for the places that have not had their turn; without any, rests.
    pub(super) fn go_on(&mut self, now: Instant, out: &mut Vec<Action>) -> State {
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
        State::Opening(self.ask(order, self.why(), None, now, out))
    }

    fn rest(&mut self, now: Instant, out: &mut Vec<Action>) -> State {
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
        out.push(Action::Changed(Change::Resting { until }));
        State::Resting { until }
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
        why: Why,
        retry_of: Option<usize>,
        now: Instant,
        out: &mut Vec<Action>,
    ) -> Opening {
        self.last_attempt += 1;
        let attempt = Attempt(self.last_attempt);
        out.push(Action::Ask { attempt, order: order.clone(), why });
        let step = Step::Asked { order, until: after(now, self.settings.ask_timeout) };
        Opening { attempt, why, step, retry_of }
    }

    fn why(&self) -> Why {
        if self.has_played { Why::Failover } else { Why::Start }
    }

    /// This source plays no more, whoever ended it.
    pub(super) fn has_ended(&mut self, playing: &Playing, now: Instant) {
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
    fn let_go(&mut self, state: State, now: Instant, out: &mut Vec<Action>) {
        match state {
            State::Opening(next) => drop_attempt(&next, out),
            State::Playing(playing) => {
                self.has_ended(&playing, now);
                out.push(Action::Release);
            }
            State::Switching { playing, next } => {
                drop_attempt(&next, out);
                self.has_ended(&playing, now);
                out.push(Action::Release);
            }
            State::Idle | State::Resting { .. } | State::Stopped => {}
        }
        self.end_switch(out);
        self.last_played = None;
    }

    fn give_up_silent(&mut self, out: &mut Vec<Action>) -> State {
        self.give_up(if self.has_played { GiveUp::Silent } else { GiveUp::NothingPlays }, out)
    }

    fn give_up(&mut self, reason: GiveUp, out: &mut Vec<Action>) -> State {
        self.end_switch(out);
        out.push(Action::GiveUp(reason));
        State::Stopped
    }
}

/// The two halves of a state in which an attempt is under way.
pub(super) fn split(state: State) -> Result<(Option<Playing>, Opening), State> {
    match state {
        State::Opening(next) => Ok((None, next)),
        State::Switching { playing, next } => Ok((Some(playing), next)),
        other => Err(other),
    }
}

/// The same, if the attempt under way is this one.
fn split_at(state: State, attempt: Attempt) -> Result<(Option<Playing>, Opening), State> {
    match &state {
        State::Opening(next) | State::Switching { next, .. } if next.attempt == attempt => split(state),
        _ => Err(state),
    }
}

pub(super) fn join(playing: Option<Playing>, next: Opening) -> State {
    match playing {
        Some(playing) => State::Switching { playing, next },
        None => State::Opening(next),
    }
}

/// Drops what there is of an attempt, wherever it has got to.
pub(super) fn drop_attempt(opening: &Opening, out: &mut Vec<Action>) {
    match opening.step {
        Step::Asked { .. } | Step::Dialling { .. } => {
            out.push(Action::Abandon { attempt: opening.attempt });
        }
        Step::Following { .. } => out.push(Action::Release),
        Step::Waiting { .. } => {}
    }
}

pub(super) fn put_first(order: &mut Vec<usize>, index: usize) {
    order.retain(|it| *it != index);
    order.insert(0, index);
}

fn redirect(index: usize, out: &mut Vec<Action>) -> State {
    out.push(Action::Redirect { index });
    State::Idle
}
