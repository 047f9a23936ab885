//! Transitions of the playout: start, attempts, losses, backoffs and the end.

use std::ops::ControlFlow::{self, Break, Continue};
use std::time::{Duration, Instant};

use super::Playout;
use super::candidates::put_first;
use super::incident::Incident;
use super::lack::Lacking;
use super::messages::{
    Action, Attempt, AttemptReason, Failure, FailureKind, FailureScope, GiveUp, Input, PlayoutChange,
};
use super::pauses::after;
use super::session::Session;
use super::settings::MARGIN;
use super::silence::Silence;
use super::state::{AttemptStep, OpeningAttempt, PlayingSource, PlayoutState, join};

impl Playout {
    /// Returns the next state. `self.state` is undefined in here, and messages about finished attempts do not arrive.
    pub(super) fn next(&mut self, state: PlayoutState, input: Input, now: Instant) -> PlayoutState {
        if state == PlayoutState::Stopped {
            return state;
        }
        match input {
            Input::Start if state == PlayoutState::Idle => self.start(now),
            Input::TakeOver { silent_since } if state == PlayoutState::Idle => {
                self.take_over(silent_since, now)
            }
            Input::Start | Input::TakeOver { .. } => state,
            Input::Granted { attempt, index } => self.granted(state, attempt, index, now),
            Input::Full { attempt } => self.full(state, attempt, now),
            Input::Opened { attempt } => self.opened(state, attempt, now),
            Input::Ready { attempt } => self.ready(state, attempt, now),
            Input::Playing { .. } => self.plays(state, now),
            Input::Silent { attempt } => self.fell_silent(state, attempt, now),
            Input::Resumed { attempt } => self.resumed(state, attempt, now),
            Input::Lacks { attempt, lack, avoid } => self.lacks(state, attempt, lack, &avoid, now),
            Input::Complete { attempt, lack } => self.complete(state, attempt, lack, now),
            Input::Lost { attempt, failure } => self.lost(state, attempt, failure, now),
            Input::Switch(to) => self.switch_requested(state, to, now),
            Input::Tick => self.tick(state, now),
            Input::Replan(candidates) => self.replan(state, &candidates, now),
            Input::Yield => {
                self.release_all(state, now);
                PlayoutState::Idle
            }
            Input::Stop => {
                self.release_all(state, now);
                PlayoutState::Stopped
            }
        }
    }

    fn start(&mut self, now: Instant) -> PlayoutState {
        self.session = Session::default();
        self.begin_incident(now);
        self.ask_first(now)
    }

    /// Starts a channel whose clients have watched it at another node. They wait no longer than after a loss here.
    fn take_over(&mut self, silent_since: Instant, now: Instant) -> PlayoutState {
        self.session = Session::taking_over();
        self.incident = Incident::new(Some(silent_since.min(now)), self.candidates.len());
        if self.give_up_at().is_some_and(|at| at <= now) {
            return self.give_up_silent();
        }
        self.ask_first(now)
    }

    /// Sends the first request after a start. Until a client was told to wait for packets, the first candidate that
    /// would play may be a redirect, so candidates behind a redirect are not requested yet. A client that has watched the
    /// channel at another node cannot be redirected.
    pub(super) fn ask_first(&mut self, now: Instant) -> PlayoutState {
        let is_take_over = self.session.is_taking_over();
        let mut order = self
            .candidates
            .sorted(None, now, &self.settings, |it| !is_take_over || self.candidates.can_play(it));
        if let Some(chosen) = self.first_choice {
            let is_chosen = |it: usize| {
                self.candidates.get(it).profile == chosen
                    && !self.candidates.failed_lately(it, now, &self.settings)
            };
            order.sort_by_key(|it| !is_chosen(*it));
        }
        if let Some(requested) = self.switches.take_request() {
            put_first(&mut order, requested);
        }
        match order.iter().position(|it| self.candidates.get(*it).redirect) {
            Some(0) => return self.redirect(order[0]),
            Some(n) => order.truncate(n),
            None if order.is_empty() => return self.give_up(GiveUp::NoStreams),
            None => {}
        }
        PlayoutState::Opening(self.ask(order, self.reason(), None, false, now))
    }

    fn granted(&mut self, state: PlayoutState, attempt: Attempt, index: usize, now: Instant) -> PlayoutState {
        let (playing, mut next) = match split_at(state, attempt) {
            Continue(both) => both,
            Break(state) => return state,
        };
        match &next.step {
            AttemptStep::Asked { order, .. } if order.contains(&index) => {
                self.session.lease_granted();
                self.switches.granted(index);
                // A switch has its own deadline, and the source before it may still play.
                let patience = match (&playing, next.why) {
                    (Some(_), AttemptReason::Switch) => None,
                    _ => self.patience(index, now),
                };
                self.act(Action::Open { attempt, index, patience });
                let silent =
                    playing.as_ref().filter(|_| next.why == AttemptReason::Silence).map(|it| it.index);
                let is_silence = silent
                    .is_some_and(|it| self.candidates.get(it).stream == self.candidates.get(index).stream);
                self.candidates.stream_opens(index, is_silence, now);
                let extended = patience.map_or(Duration::ZERO, |it| it.first_packet.saturating_add(MARGIN));
                let until = after(now, self.settings.open_timeout.max(extended));
                next.step = AttemptStep::Dialling { index, until };
                join(playing, next)
            }
            AttemptStep::Asked { .. } => {
                // A lease for another candidate does not answer the request, but it has to be returned.
                self.act(Action::Abandon { attempt });
                self.unanswered(playing, next, now)
            }
            _ => join(playing, next),
        }
    }

    fn full(&mut self, state: PlayoutState, attempt: Attempt, now: Instant) -> PlayoutState {
        let (playing, next) = match split_at(state, attempt) {
            Continue((playing, next)) if matches!(next.step, AttemptStep::Asked { .. }) => (playing, next),
            Continue((playing, next)) => return join(playing, next),
            Break(state) => return state,
        };
        match (playing, next.why) {
            // The present source has some time left to send again.
            (Some(playing), AttemptReason::Silence) => return PlayoutState::Playing(playing),
            (Some(playing), AttemptReason::Lack(lack)) => {
                return self.lack_is_full(playing, lack, next.is_beside, now);
            }
            (Some(playing), _) => return self.switch_is_full(playing, next.is_beside, now),
            (None, _) => {}
        }
        if next.why == AttemptReason::Switch {
            // Only the candidates of the switch were requested.
            return self.try_next(now);
        }
        if self.session.is_taking_over() && !self.candidates.playable().any(|it| self.incident.is_tried(it)) {
            return self.wait_for_slot(now);
        }
        // A candidate that had its turn in this round may play in the next one.
        let may_recover =
            !self.incident.is_hopeless() && self.candidates.playable().any(|it| self.incident.is_tried(it));
        if self.session.has_played() || may_recover {
            return self.back_off(now);
        }
        let is_redirect = |it: &usize| self.candidates.get(*it).redirect;
        let order = self.candidates.sorted(None, now, &self.settings, |_| true);
        match order.into_iter().find(is_redirect) {
            Some(index) if !self.session.has_lease_been_granted() => self.redirect(index),
            _ => self.give_up(GiveUp::NoSlot),
        }
    }

    fn opened(&mut self, state: PlayoutState, attempt: Attempt, now: Instant) -> PlayoutState {
        let (playing, mut next) = match split_at(state, attempt) {
            Continue(both) => both,
            Break(state) => return state,
        };
        let AttemptStep::Dialling { index, .. } = next.step else { return join(playing, next) };
        next.opened = Some(now);
        if playing.is_some() {
            self.act(Action::Prepare { attempt });
            let until = after(now, self.settings.prepare_timeout);
            next.step = AttemptStep::Preparing { index, until };
            return join(playing, next);
        }
        self.follow(next, index, now)
    }

    fn ready(&mut self, state: PlayoutState, attempt: Attempt, now: Instant) -> PlayoutState {
        match state {
            PlayoutState::Beside {
                playing,
                next: next @ OpeningAttempt { step: AttemptStep::Preparing { index, .. }, .. },
            } if next.attempt == attempt => {
                self.source_ended(&playing, now);
                match next.why {
                    AttemptReason::Silence => self.replaced_in_silence(&playing, index, now),
                    AttemptReason::Lack(lack) => self.left_lacking(&playing, lack, now),
                    _ => {}
                }
                self.follow(next, index, now)
            }
            other => other,
        }
    }

    /// Makes the pump follow the source of an attempt.
    fn follow(&mut self, mut next: OpeningAttempt, index: usize, now: Instant) -> PlayoutState {
        self.act(Action::Follow { attempt: next.attempt });
        // The pump has its own limits. Only at a start is there nothing that the time could be used for.
        let start = self.patience(index, now).filter(|it| it.extends_connect);
        let until = after(now, start.map_or(Duration::ZERO, |it| it.first_packet).max(self.follow_timeout()));
        next.step = AttemptStep::Following { index, until };
        self.alone(next)
    }

    /// Returns the time that the pump takes at most until a source plays.
    fn follow_timeout(&self) -> Duration {
        match self.session.has_played() {
            true => self.settings.follow_timeout,
            false => self.settings.first_follow_timeout,
        }
    }

    /// Nothing plays any more, so an attempt that began beside a source continues as an ordinary one.
    fn alone(&self, mut next: OpeningAttempt) -> PlayoutState {
        if next.why.is_speculative() {
            next.why = self.reason();
        }
        next.is_beside = false;
        PlayoutState::Opening(next)
    }

    fn plays(&mut self, state: PlayoutState, now: Instant) -> PlayoutState {
        let (attempt, opened, index) = match &state {
            PlayoutState::Opening(OpeningAttempt {
                attempt,
                opened,
                step: AttemptStep::Following { index, .. },
                ..
            }) => (*attempt, opened.unwrap_or(now), *index),
            _ => return state,
        };
        let switch = self.switches.finish();
        match &switch {
            Some(switch) if switch.accepts(index) => {
                self.report(PlayoutChange::Switched {
                    from: switch.from(),
                    to: index,
                    is_manual: switch.is_manual(),
                });
            }
            _ => {
                self.report(match self.session.last_played() {
                    None => PlayoutChange::Started { index },
                    Some(last) if last == index => PlayoutChange::Reconnected { index },
                    Some(from) => PlayoutChange::FailedOver { from, to: index },
                });
                if let Some(failed) = switch.filter(|it| it.is_manual()) {
                    self.report(failed.failed(Some(index)));
                }
            }
        }
        self.candidates.source_plays(index);
        self.session.source_plays(index);
        self.incident.source_plays(index);
        (self.silence, self.lacking) = (Silence::default(), Lacking::default());
        let playing =
            PlayingSource { attempt, index, since: now, opened, return_at: self.return_at(index, now) };
        self.begin_requested_switch(playing, now)
    }

    fn lost(
        &mut self,
        state: PlayoutState,
        attempt: Attempt,
        failure: Failure,
        now: Instant,
    ) -> PlayoutState {
        match state {
            PlayoutState::Playing(playing) => {
                self.source_ended(&playing, now);
                self.candidates.stream_lost(playing.index, failure.kind == FailureKind::Silent);
                self.act(Action::Release);
                self.source_lost(&playing, failure, now)
            }
            PlayoutState::Beside { playing, next } if playing.attempt == attempt => {
                self.source_ended(&playing, now);
                self.candidates.stream_lost(playing.index, failure.kind == FailureKind::Silent);
                if next.why.is_speculative() && matches!(next.step, AttemptStep::Asked { .. }) {
                    // That request would be refused if no slot is free; an ordinary one waits for a slot.
                    self.act(Action::Release);
                    self.drop_attempt(&next);
                    return self.source_lost(&playing, failure, now);
                }
                if self.is_healthy_end(&playing, failure, now) {
                    self.begin_incident(now);
                } else {
                    self.candidates.failed(playing.index, failure.scope, now);
                    if !failure.retry {
                        self.incident.mark_tried(playing.index);
                    }
                }
                if let AttemptStep::Preparing { index, .. } = next.step {
                    return self.follow(next, index, now);
                }
                self.act(Action::Release);
                self.alone(next)
            }
            other => match split_at(other, attempt) {
                Continue((playing, next)) => match next.step {
                    AttemptStep::Dialling { index, .. }
                    | AttemptStep::Preparing { index, .. }
                    | AttemptStep::Following { index, .. } => {
                        self.attempt_failed(playing, next, index, failure, now)
                    }
                    _ => join(playing, next),
                },
                Break(state) => state,
            },
        }
    }

    fn tick(&mut self, state: PlayoutState, now: Instant) -> PlayoutState {
        let is_silent = matches!(state, PlayoutState::Opening(_) | PlayoutState::Backoff { .. });
        if is_silent && self.give_up_at().is_some_and(|at| at <= now) {
            if let PlayoutState::Opening(opening) = &state {
                self.drop_attempt(opening);
            }
            return self.give_up_silent();
        }
        if self.switches.deadline().is_some_and(|at| at <= now) {
            return self.switch_timed_out(state, now);
        }
        match state {
            PlayoutState::Playing(playing) if self.lacking.look_again_at().is_some_and(|at| at <= now) => {
                self.look_again(playing, now)
            }
            PlayoutState::Playing(playing) => self.return_to_preferred(playing, now),
            PlayoutState::Backoff { .. } => {
                self.incident.begin_round();
                self.try_next(now)
            }
            other => match split(other) {
                Continue((playing, next)) => self.step_timed_out(playing, next, now),
                Break(state) => state,
            },
        }
    }

    fn step_timed_out(
        &mut self,
        playing: Option<PlayingSource>,
        next: OpeningAttempt,
        now: Instant,
    ) -> PlayoutState {
        match next.step {
            AttemptStep::Asked { .. } => {
                self.drop_attempt(&next);
                self.unanswered(playing, next, now)
            }
            AttemptStep::Dialling { index, .. }
            | AttemptStep::Preparing { index, .. }
            | AttemptStep::Following { index, .. } => {
                if !matches!(next.step, AttemptStep::Following { .. }) {
                    self.drop_attempt(&next);
                }
                let failure = Failure {
                    scope: FailureScope::Candidate,
                    retry: false,
                    is_permanent: false,
                    just_released: false,
                    kind: FailureKind::Other,
                };
                self.attempt_failed(playing, next, index, failure, now)
            }
            AttemptStep::Waiting { index, .. } => {
                let mut order = match self.switches.order() {
                    Some(order) if next.why == AttemptReason::Switch => order.to_vec(),
                    _ => self.untried(now),
                };
                put_first(&mut order, index);
                join(playing, self.ask(order, next.why, next.retry_of, next.is_beside, now))
            }
        }
    }

    /// The slots actor did not answer. That does not concern the candidates, so the channel does not give up.
    fn unanswered(
        &mut self,
        playing: Option<PlayingSource>,
        next: OpeningAttempt,
        now: Instant,
    ) -> PlayoutState {
        self.incident.request_unanswered();
        match playing {
            Some(playing) if next.why.is_speculative() => {
                self.accept_lack(&playing, now);
                PlayoutState::Playing(playing)
            }
            Some(playing) => self.switch_failed(playing, now),
            None if next.why == AttemptReason::Switch => self.try_next(now),
            None => self.back_off(now),
        }
    }

    /// An attempt that had a lease failed.
    fn attempt_failed(
        &mut self,
        playing: Option<PlayingSource>,
        mut next: OpeningAttempt,
        index: usize,
        failure: Failure,
        now: Instant,
    ) -> PlayoutState {
        if matches!(next.step, AttemptStep::Following { .. }) {
            self.act(Action::Release);
        }
        self.incident.attempt_failed(failure);
        self.candidates.stream_lost(index, failure.kind == FailureKind::Silent);
        if let Some(playing) = playing.as_ref().filter(|_| next.why == AttemptReason::Silence) {
            self.ended_in_vain(playing, &next, now);
        }
        if failure.just_released
            && !next.why.is_speculative()
            && let Some(pause) = self.incident.next_release_pause(index, &self.settings)
        {
            next.step = AttemptStep::Waiting { index, until: after(now, pause) };
            return join(playing, next);
        }
        if let Some(playing) = playing {
            self.candidates.failed(index, failure.scope, now);
            return match next.why.is_speculative() {
                true => self.keep_playing(playing, now),
                false => self.switch_failed(playing, now),
            };
        }
        // A retry that did not even open is not repeated. During a switch, a return to the old stream comes before a
        // retry of the new one.
        let may_retry = failure.retry && next.retry_of != Some(index) && !self.switches.is_running();
        self.failed(index, failure.scope, may_retry, now)
    }

    /// Nothing plays because this source was lost.
    fn source_lost(&mut self, playing: &PlayingSource, failure: Failure, now: Instant) -> PlayoutState {
        match self.is_healthy_end(playing, failure, now) {
            true => self.response_ended(playing.index, now),
            false => self.failed(playing.index, failure.scope, failure.retry, now),
        }
    }

    fn is_healthy_end(&self, playing: &PlayingSource, failure: Failure, now: Instant) -> bool {
        failure.kind == FailureKind::Ended && playing.has_played_well(now, &self.settings)
    }

    /// A response ended after healthy play: the same candidate is requested again at once, and no pause grows. If the
    /// responses of a candidate end close together, another one is to play, once: some providers answer a blocked account
    /// with a clip of some seconds. Where the responses of all others ended like that, it stays.
    fn response_ended(&mut self, index: usize, now: Instant) -> PlayoutState {
        self.begin_incident(now);
        self.session.moved_on_from(index);
        if self.switches.has_request() || !self.candidates.can_play(index) {
            return self.try_next(now);
        }
        let stays = self.candidates.take_token(index, &self.settings) || {
            self.candidates.ends_early(index, now);
            !self.candidates.playable().any(|it| {
                it != index
                    && !self.candidates.failed_lately(it, now, &self.settings)
                    && !self.candidates.ended_early_lately(it, now, &self.settings)
            })
        };
        let mut order = self.untried(now);
        if stays {
            put_first(&mut order, index);
        } else {
            order.sort_by_key(|it| self.rank_after_end(*it, index, now));
        }
        let retry_of = stays.then_some(index);
        PlayoutState::Opening(self.ask(order, self.reason(), retry_of, false, now))
    }

    /// Returns the rank of a candidate after the responses of `ended` ended close together; the lowest is requested first.
    fn rank_after_end(&self, index: usize, ended: usize, now: Instant) -> u8 {
        let is_same_stream = self.candidates.get(index).stream == self.candidates.get(ended).stream;
        if index == ended {
            2
        } else if self.candidates.failed_lately(index, now, &self.settings)
            || self.candidates.ended_early_lately(index, now, &self.settings)
        {
            3
        } else {
            u8::from(is_same_stream)
        }
    }

    /// Nothing plays because this candidate failed: retries it or tries the next one.
    fn failed(&mut self, index: usize, scope: FailureScope, may_retry: bool, now: Instant) -> PlayoutState {
        self.session.moved_on_from(index);
        let may_retry = may_retry && self.candidates.can_play(index) && !self.switches.has_request();
        if may_retry && self.candidates.take_token(index, &self.settings) {
            let mut order = self.untried(now);
            put_first(&mut order, index);
            return PlayoutState::Opening(self.ask(order, self.reason(), Some(index), false, now));
        }
        self.candidates.failed(index, scope, now);
        self.incident.mark_tried(index);
        self.try_next(now)
    }

    /// Requests the candidates that have not had their turn in this round; backs off when none is left.
    pub(super) fn try_next(&mut self, now: Instant) -> PlayoutState {
        if self.give_up_at().is_some_and(|at| at <= now) {
            return self.give_up_silent();
        }
        if self.candidates.playable().next().is_none() {
            return self.give_up(GiveUp::NoStreams);
        }
        let mut order = self.untried(now);
        if let Some(old) = self.switches.old_source().filter(|it| order.contains(it)) {
            put_first(&mut order, old);
        }
        if let Some(requested) = self.switches.take_request() {
            put_first(&mut order, requested);
        }
        if order.is_empty() {
            return self.back_off(now);
        }
        PlayoutState::Opening(self.ask(order, self.reason(), None, false, now))
    }

    fn back_off(&mut self, now: Instant) -> PlayoutState {
        if !self.session.has_played() && self.incident.is_hopeless() {
            return self.give_up(GiveUp::NothingPlays);
        }
        let (shortest, longest) = self.backoffs();
        let pause = self.incident.next_backoff(shortest, longest);
        self.back_off_for(pause, now)
    }

    /// No slot came free for a channel that another node has lost. No provider was asked in this round, so no longer pause
    /// is needed, and the slot of that node may come free at any time.
    fn wait_for_slot(&mut self, now: Instant) -> PlayoutState {
        let (shortest, _) = self.backoffs();
        self.back_off_for(shortest, now)
    }

    /// Returns the shortest and the longest backoff.
    fn backoffs(&self) -> (Duration, Duration) {
        let settings = &self.settings;
        if self.candidates.is_single() {
            (settings.single_backoff_min, settings.single_backoff_max)
        } else {
            (settings.backoff_min, settings.backoff_max)
        }
    }

    fn back_off_for(&mut self, pause: Duration, now: Instant) -> PlayoutState {
        let pause = pause.mul_f64(self.jitter.factor(self.settings.backoff_jitter));
        let may_open_at = self.candidates.playable().map(|it| self.held_until(it).unwrap_or(now)).min();
        let until = after(now, pause).max(may_open_at.unwrap_or(now));
        self.report(PlayoutChange::BackingOff { until });
        PlayoutState::Backoff { until }
    }

    pub(super) fn ask(
        &mut self,
        order: Vec<usize>,
        why: AttemptReason,
        retry_of: Option<usize>,
        is_beside: bool,
        now: Instant,
    ) -> OpeningAttempt {
        self.last_attempt += 1;
        let attempt = Attempt(self.last_attempt);
        self.act(Action::Ask { attempt, order: order.clone(), why, beside: is_beside });
        let step = AttemptStep::Asked { order, until: after(now, self.settings.ask_timeout) };
        OpeningAttempt { attempt, why, step, opened: None, is_beside, retry_of }
    }

    fn reason(&self) -> AttemptReason {
        if self.session.has_played() { AttemptReason::Failover } else { AttemptReason::Start }
    }

    /// This source no longer plays, for whatever reason. After stable play a new incident begins.
    pub(super) fn source_ended(&mut self, playing: &PlayingSource, now: Instant) {
        let time = now.saturating_duration_since(playing.since);
        self.candidates.add_play(playing.index, time, &self.settings);
        if time >= self.settings.stable_play {
            self.begin_incident(now);
        } else {
            self.incident.source_lost(now);
        }
        self.session.moved_on_from(playing.index);
    }

    fn begin_incident(&mut self, now: Instant) {
        self.incident = Incident::new(Some(now), self.candidates.len());
    }

    /// Releases sources and attempts, and ends a switch.
    fn release_all(&mut self, state: PlayoutState, now: Instant) {
        match state {
            PlayoutState::Opening(next) => self.drop_attempt(&next),
            PlayoutState::Playing(playing) => {
                self.source_ended(&playing, now);
                self.act(Action::Release);
            }
            PlayoutState::Beside { playing, next } => {
                self.drop_attempt(&next);
                self.source_ended(&playing, now);
                self.act(Action::Release);
            }
            PlayoutState::Idle | PlayoutState::Backoff { .. } | PlayoutState::Stopped => {}
        }
        self.end_switch();
        self.session.end();
    }

    fn give_up_silent(&mut self) -> PlayoutState {
        self.give_up(if self.session.has_played() { GiveUp::Silent } else { GiveUp::NothingPlays })
    }

    fn give_up(&mut self, reason: GiveUp) -> PlayoutState {
        self.end_switch();
        self.act(Action::GiveUp(reason));
        PlayoutState::Stopped
    }

    fn redirect(&mut self, index: usize) -> PlayoutState {
        self.act(Action::Redirect { index });
        PlayoutState::Idle
    }

    /// Drops the request, lease or source of an attempt, depending on its progress.
    pub(super) fn drop_attempt(&mut self, opening: &OpeningAttempt) {
        match opening.step {
            AttemptStep::Asked { .. } | AttemptStep::Dialling { .. } | AttemptStep::Preparing { .. } => {
                self.act(Action::Abandon { attempt: opening.attempt });
            }
            AttemptStep::Following { .. } => self.act(Action::Release),
            AttemptStep::Waiting { .. } => {}
        }
    }
}

/// Splits a state with an attempt in progress into the playing source and the attempt. Any other state is returned as a break.
pub(super) fn split(
    state: PlayoutState,
) -> ControlFlow<PlayoutState, (Option<PlayingSource>, OpeningAttempt)> {
    match state {
        PlayoutState::Opening(next) => Continue((None, next)),
        PlayoutState::Beside { playing, next } => Continue((Some(playing), next)),
        other => Break(other),
    }
}

/// Does the same if the attempt in progress has this number.
fn split_at(
    state: PlayoutState,
    attempt: Attempt,
) -> ControlFlow<PlayoutState, (Option<PlayingSource>, OpeningAttempt)> {
    match &state {
        PlayoutState::Opening(next) | PlayoutState::Beside { next, .. } if next.attempt == attempt => {
            split(state)
        }
        _ => Break(state),
    }
}
