//! A model of the owner of a playout and of its surroundings, driven by random schedules.
//!
//! The model carries out every action as a live channel would, and checks after each one that both sides agree: who
//! holds a lease, which source the pump follows, which request is pending, and what a caller of a switch was told. Any
//! answer may arrive at any time, late, twice or never. The property test and the fuzz target use it.

use std::time::{Duration, Instant};

use super::{
    Action, Attempt, AttemptReason, AttemptStep, Failure, FailureKind, FailureScope, GiveUp, Input, Lack,
    Playout, PlayoutCandidate, PlayoutChange, PlayoutSettings, PlayoutState, SwitchTarget,
};
use crate::ids::{ProfileId, StreamId};

/// One step of a schedule.
#[derive(Debug, Clone, Copy)]
pub enum Op {
    Start,
    /// The channel played at another node, and has been silent for this many seconds.
    TakeOver(u8),
    /// The attempt in progress succeeds one step further: granted (the nth requested candidate), opened, ready, playing.
    Good(u8),
    /// The attempt in progress is answered with "full", or fails.
    Bad(Failure),
    /// The playing source is lost.
    Lose(Failure),
    /// The playing source is judged too slow, while the pump still follows it.
    Slow(Failure),
    /// The playing source falls silent, or sends again.
    Silence(bool),
    /// The playing source lacks this part, or has it again.
    Lack(Lack, bool),
    /// A message about an attempt that is over or never existed.
    Stale(u8),
    /// A message about the current attempt that does not fit its progress.
    Rogue(u8),
    Switch(SwitchTarget),
    /// This much time passes, in units of 10 ms. Ticks arrive when they are due.
    Wait(u16),
    /// This much time passes while the owner is busy, so the tick arrives late.
    Late(u16),
    /// Time passes until the next deadline, and the tick arrives.
    Deadline,
    Yield,
    /// The plan changes to the one that this byte encodes.
    Replan(u8),
    Stop,
}

impl Op {
    /// Decodes an operation. Any three bytes are valid.
    pub fn from_bytes([kind, a, b]: [u8; 3]) -> Self {
        let number = u16::from_le_bytes([a, b]);
        let failure = Failure {
            scope: if a & 1 == 0 { FailureScope::Stream } else { FailureScope::Candidate },
            retry: a & 2 == 0,
            is_permanent: a & 18 == 18,
            just_released: a & 12 == 12,
            kind: match a >> 5 & 3 {
                1 => FailureKind::Ended,
                2 => FailureKind::Silent,
                _ => FailureKind::Other,
            },
        };
        match kind % 32 {
            0 | 1 => Self::Start,
            2 => Self::TakeOver(a),
            3..=10 => Self::Good(a),
            11..=15 => Self::Bad(failure),
            16 | 17 => Self::Lose(failure),
            18 => Self::Slow(failure),
            19 => Self::Stale(a),
            20 => Self::Rogue(a),
            21 => Self::Switch(SwitchTarget::Next),
            22 => Self::Switch(SwitchTarget::To(usize::from(a % 8))),
            23 => Self::Switch(if a % 4 == 0 {
                SwitchTarget::Preferred
            } else {
                SwitchTarget::To(usize::from(a % 4))
            }),
            24 | 25 => Self::Wait(number % 8192),
            26 => Self::Late(number),
            27 => Self::Deadline,
            28 if a & 8 == 0 => Self::Silence(a & 3 != 0),
            28 => Self::Lack(Lack::ALL[usize::from(a >> 4) % Lack::ALL.len()], a & 3 != 0),
            29 => Self::Replan(a),
            30 => Self::Yield,
            // Rare, because nothing happens after a stop.
            _ if b == 0 => Self::Stop,
            _ => Self::Deadline,
        }
    }
}

/// Runs a schedule encoded as bytes, then every way to end it. Panics if an invariant is broken.
pub fn run_bytes(bytes: &[u8]) {
    let [plan, options, rest @ ..] = bytes else { return };
    let ops: Vec<Op> = rest.as_chunks::<3>().0.iter().copied().map(Op::from_bytes).collect();
    run(*plan, *options, &ops);
}

/// Does the same with a decoded schedule.
pub fn run(plan: u8, options: u8, ops: &[Op]) {
    let mut world = World::new(plan, options);
    for op in ops {
        world.happens(*op);
    }
    world.clone().no_answers();
    world.clone().everything_fails();
    world.clone().everything_works();
    world.clone().everything_plays_for_a_moment();
    world.stops();
}

/// Returns the candidates that a byte encodes: up to six, of up to three streams and two profiles, some of them
/// redirects.
fn plan(byte: u8) -> Vec<PlayoutCandidate> {
    let n_candidates = usize::from(byte % 7);
    (0..n_candidates as u32)
        .map(|it| {
            let twist = u32::from(byte / 7);
            PlayoutCandidate {
                stream: StreamId((it + twist) / (1 + twist % 2) % 6),
                profile: ProfileId((it + twist) % (1 + twist % 3)),
                redirect: twist >= 24 && (it + twist) % 4 == 0,
                leaves_still_picture: twist % 4 >= 2,
            }
        })
        .collect()
}

fn a_reset() -> Failure {
    Failure {
        scope: FailureScope::Candidate,
        retry: true,
        is_permanent: false,
        just_released: false,
        kind: FailureKind::Ended,
    }
}

#[derive(Debug, Clone)]
struct World {
    playout: Playout,
    settings: PlayoutSettings,
    begin: Instant,
    now: Instant,
    /// The current plan.
    plan: Vec<PlayoutCandidate>,
    /// The pending request to the slots actor.
    request: Option<(Attempt, Vec<usize>)>,
    /// Whether the attempt in progress asked for permission to open a second connection.
    is_beside: bool,
    /// A lease that was just granted, for `Open`.
    granted: Option<(Attempt, usize)>,
    /// The running opener, with its lease.
    opener: Option<(Attempt, usize)>,
    /// A source that was just opened, for `Follow`.
    opened: Option<Attempt>,
    /// The source that the pump follows.
    pump: Option<Attempt>,
    /// The source that the pump reads beside that one, of which nothing is played.
    prepared: Option<Attempt>,
    /// The reason of the request that was granted last.
    why: AttemptReason,
    /// The last openings of streams beside themselves.
    reopened: Vec<(StreamId, Instant)>,
    /// The last times at which streams were left for what they lacked.
    left_lacking: Vec<(StreamId, Lack, Instant)>,
    last_attempt: u64,
    /// Time by which the caller of a switch must have its outcome.
    switch_due: Option<Instant>,
    /// Time of the start, until a source plays.
    starting_since: Option<Instant>,
    /// An attempt of this round failed in a way that waiting may cure.
    may_recover: bool,
    /// Number of requests since time last advanced or an outside request arrived.
    n_asks_at_once: usize,
    /// The largest number of candidates and of requests so far, from which the limits are computed.
    n_candidates_max: usize,
    n_asks: usize,
    n_requested: usize,
}

impl World {
    fn new(byte: u8, options: u8) -> Self {
        let settings = PlayoutSettings {
            return_to_preferred_after: (options & 1 == 1)
                .then_some(Duration::from_secs(u64::from(options) / 4)),
            give_up_after: if options & 2 == 0 { Duration::from_secs(60) } else { Duration::from_secs(7) },
            ..PlayoutSettings::default()
        };
        #[expect(clippy::disallowed_methods, reason = "time is simulated from here on")]
        let now = Instant::now();
        let plan = plan(byte);
        Self {
            playout: Playout::new(plan.clone(), settings.clone(), u64::from(options)),
            settings,
            begin: now,
            now,
            n_candidates_max: plan.len(),
            plan,
            request: None,
            is_beside: false,
            granted: None,
            opener: None,
            opened: None,
            pump: None,
            prepared: None,
            why: AttemptReason::Start,
            reopened: Vec::new(),
            left_lacking: Vec::new(),
            last_attempt: 0,
            switch_due: None,
            starting_since: None,
            may_recover: false,
            n_asks_at_once: 0,
            n_asks: 0,
            n_requested: 0,
        }
    }

    fn happens(&mut self, op: Op) {
        match op {
            Op::Start => self.requested(Input::Start),
            Op::TakeOver(seconds) => {
                let silence = Duration::from_secs(u64::from(seconds));
                let silent_since = self.now.checked_sub(silence).unwrap_or(self.now);
                self.requested(Input::TakeOver { silent_since });
            }
            Op::Yield => self.requested(Input::Yield),
            Op::Switch(to) => self.requested(Input::Switch(to)),
            Op::Stop => self.requested(Input::Stop),
            Op::Replan(byte) => {
                let candidates = plan(byte);
                if self.playout.state() != &PlayoutState::Stopped {
                    self.plan.clone_from(&candidates);
                    // What was known of a stream that leaves the plan may be forgotten.
                    self.reopened.retain(|it| candidates.iter().any(|known| known.stream == it.0));
                    self.left_lacking.retain(|it| candidates.iter().any(|known| known.stream == it.0));
                    self.n_candidates_max = self.n_candidates_max.max(candidates.len());
                }
                self.requested(Input::Replan(candidates));
            }
            Op::Good(pick) => self.good(pick),
            Op::Bad(failure) => self.bad(failure),
            Op::Lose(failure) => {
                if let Some((attempt, _)) = self.playout.playing() {
                    self.pump = None;
                    self.send(Input::Lost { attempt, failure });
                }
            }
            Op::Slow(failure) => {
                if let Some((attempt, _)) = self.playout.playing() {
                    self.send(Input::Lost { attempt, failure });
                }
            }
            Op::Silence(is_silent) => {
                if let Some((attempt, _)) = self.playout.playing() {
                    self.n_requested += 1;
                    self.send(if is_silent { Input::Silent { attempt } } else { Input::Resumed { attempt } });
                }
            }
            Op::Lack(lack, is_missing) => {
                if let Some((attempt, _)) = self.playout.playing() {
                    self.n_requested += 1;
                    self.send(match is_missing {
                        true => Input::Lacks { attempt, lack, avoid: Vec::new() },
                        false => Input::Complete { attempt, lack },
                    });
                }
            }
            Op::Stale(byte) => self.stale(byte),
            Op::Rogue(byte) => self.rogue(byte),
            Op::Wait(time) => self.wait(Duration::from_millis(u64::from(time) * 10)),
            Op::Late(time) => {
                self.now += Duration::from_millis(u64::from(time) * 10);
                self.n_asks_at_once = 0;
                self.wait(Duration::ZERO);
            }
            Op::Deadline => {
                if let Some(deadline) = self.playout.deadline() {
                    self.wait(deadline.saturating_duration_since(self.now));
                }
            }
        }
    }

    /// An outside request arrives, so another request for a slot may follow.
    fn requested(&mut self, input: Input) {
        self.n_asks_at_once = 0;
        self.n_requested += 1;
        self.send(input);
    }

    fn good(&mut self, pick: u8) {
        if let Some((attempt, order)) = self.request.take() {
            let index = order[usize::from(pick) % order.len()];
            self.granted = Some((attempt, index));
            self.send(Input::Granted { attempt, index });
        } else if let Some((attempt, _)) = self.opener.take() {
            self.opened = Some(attempt);
            self.send(Input::Opened { attempt });
        } else if let Some(attempt) = self.prepared {
            self.send(Input::Ready { attempt });
        } else if let PlayoutState::Opening(opening) = self.playout.state()
            && let AttemptStep::Following { .. } = opening.step
        {
            self.send(Input::Playing { attempt: opening.attempt });
        }
    }

    fn bad(&mut self, failure: Failure) {
        if let Some((attempt, _)) = self.request.take() {
            self.send(Input::Full { attempt });
        } else if let Some((attempt, _)) = self.opener.take() {
            self.send(Input::Lost { attempt, failure });
        } else if let Some(attempt) = self.prepared.take() {
            self.send(Input::Lost { attempt, failure });
        } else if let PlayoutState::Opening(opening) = self.playout.state()
            && let AttemptStep::Following { .. } = opening.step
        {
            self.pump = None;
            self.send(Input::Lost { attempt: opening.attempt, failure });
        }
    }

    /// A late or invented message is answered by returning what came with it, and nothing else happens.
    fn stale(&mut self, byte: u8) {
        let attempt = Attempt(u64::from(byte) % (self.last_attempt + 3));
        let known =
            [self.request.as_ref().map(|it| it.0), self.opener.map(|it| it.0), self.pump, self.prepared];
        if known.contains(&Some(attempt)) {
            return;
        }
        let failure = Failure { scope: FailureScope::Stream, just_released: true, ..a_reset() };
        let before = self.playout.clone();
        let abandon = vec![Action::Abandon { attempt }];
        for (input, expected) in [
            (Input::Granted { attempt, index: 0 }, abandon.clone()),
            (Input::Opened { attempt }, abandon),
            (Input::Full { attempt }, Vec::new()),
            (Input::Ready { attempt }, Vec::new()),
            (Input::Playing { attempt }, Vec::new()),
            (Input::Silent { attempt }, Vec::new()),
            (Input::Resumed { attempt }, Vec::new()),
            (Input::Lacks { attempt, lack: Lack::Picture, avoid: vec![StreamId(1)] }, Vec::new()),
            (Input::Complete { attempt, lack: Lack::Sound }, Vec::new()),
            (Input::Lost { attempt, failure }, Vec::new()),
        ] {
            let answer = self.playout.on(input.clone(), self.now);
            assert_eq!(answer, expected, "answer to {input:?}, which is late");
        }
        assert_eq!(self.playout, before, "a late message changed something");
    }

    fn rogue(&mut self, byte: u8) {
        if byte.is_multiple_of(4) {
            // A lease for a candidate that was not requested is returned.
            if let Some((attempt, order)) = self.request.take() {
                let index = (0..).find(|it| !order.contains(it)).expect("orders are finite");
                self.granted = Some((attempt, index));
                self.send(Input::Granted { attempt, index });
                assert_eq!(self.granted, None, "a lease for a candidate that was not requested was kept");
            }
            return;
        }
        let before = self.playout.clone();
        let mut wrong = Vec::new();
        if let Some((attempt, _)) = self.request {
            wrong.extend([
                Input::Opened { attempt },
                Input::Ready { attempt },
                Input::Playing { attempt },
                Input::Silent { attempt },
                Input::Resumed { attempt },
                Input::Lacks { attempt, lack: Lack::Picture, avoid: Vec::new() },
                Input::Complete { attempt, lack: Lack::Picture },
            ]);
        }
        if let Some((attempt, index)) = self.opener {
            wrong.extend([
                Input::Granted { attempt, index },
                Input::Full { attempt },
                Input::Ready { attempt },
                Input::Playing { attempt },
                Input::Silent { attempt },
                Input::Resumed { attempt },
                Input::Lacks { attempt, lack: Lack::Picture, avoid: Vec::new() },
                Input::Complete { attempt, lack: Lack::Picture },
            ]);
        }
        if let Some(attempt) = self.prepared {
            let index = 0;
            wrong.extend([
                Input::Granted { attempt, index },
                Input::Full { attempt },
                Input::Opened { attempt },
                Input::Playing { attempt },
                Input::Silent { attempt },
                Input::Resumed { attempt },
                Input::Lacks { attempt, lack: Lack::Picture, avoid: Vec::new() },
                Input::Complete { attempt, lack: Lack::Picture },
            ]);
        }
        if let Some(attempt) = self.pump {
            let index = 0;
            wrong.extend([
                Input::Granted { attempt, index },
                Input::Full { attempt },
                Input::Opened { attempt },
                Input::Ready { attempt },
            ]);
        }
        for input in wrong {
            assert_eq!(self.playout.on(input.clone(), self.now), [], "answer to {input:?}, out of order");
        }
        assert_eq!(self.playout, before, "a message out of order changed something");
    }

    /// Time passes; ticks arrive exactly when they are due.
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        let mut n_ticks_at_once = 0;
        while let Some(deadline) = self.playout.deadline().filter(|it| *it <= end) {
            if deadline > self.now {
                (self.now, self.n_asks_at_once, n_ticks_at_once) = (deadline, 0, 0);
            }
            n_ticks_at_once += 1;
            assert!(n_ticks_at_once < 16, "the deadline stays in the past: {:?}", self.playout);
            let before = self.playout.clone();
            self.send(Input::Tick);
            assert_ne!(self.playout, before, "a tick at the deadline changed nothing");
        }
        if end > self.now {
            (self.now, self.n_asks_at_once) = (end, 0);
        }
    }

    /// Sends an input to the playout, carries out its actions, and compares.
    fn send(&mut self, input: Input) {
        let state_before = self.playout.state().clone();
        self.note(&input, &state_before);
        let actions = self.playout.on(input.clone(), self.now);
        if input == Input::Stop {
            assert_eq!(self.playout.state(), &PlayoutState::Stopped);
        }
        if state_before == PlayoutState::Stopped {
            assert_eq!(actions, [], "an action after the end");
        }
        let last = actions.len().wrapping_sub(1);
        for (it, action) in actions.iter().enumerate() {
            if let Action::GiveUp(_) | Action::Redirect { .. } = action {
                assert_eq!(it, last, "an action after the last one: {actions:?}");
            }
            self.carry_out(action, &input, &state_before);
        }
        self.check();
    }

    /// Notes what decides whether a start may give up.
    fn note(&mut self, input: &Input, state: &PlayoutState) {
        match (input, state) {
            (Input::Start, PlayoutState::Idle) => {
                (self.starting_since, self.may_recover) = (Some(self.now), false);
            }
            (Input::TakeOver { .. }, PlayoutState::Idle) => self.starting_since = None,
            // The next round begins.
            (Input::Tick, PlayoutState::Backoff { .. }) => self.may_recover = false,
            // A pause before the next request is over: the failure before it counts like any other.
            (Input::Tick, PlayoutState::Opening(it)) if matches!(it.step, AttemptStep::Waiting { .. }) => {}
            // A step of an attempt timed out.
            (Input::Tick, PlayoutState::Opening(_)) => self.may_recover = true,
            (Input::Lost { failure, .. }, PlayoutState::Opening(_)) => {
                self.may_recover |= !failure.is_permanent;
            }
            (Input::Playing { .. }, PlayoutState::Opening(_)) => self.starting_since = None,
            _ => {}
        }
    }

    fn carry_out(&mut self, action: &Action, input: &Input, state_before: &PlayoutState) {
        match action {
            Action::Ask { attempt, order, why, beside } => {
                assert!(attempt.0 > self.last_attempt, "attempt {attempt} was used before");
                self.last_attempt = attempt.0;
                assert!(
                    self.request.is_none() && self.opener.is_none() && self.prepared.is_none(),
                    "two attempts at once"
                );
                self.check_permission(order, *why, *beside);
                assert!(!order.is_empty(), "an empty request");
                for (at, index) in order.iter().enumerate() {
                    assert!(!order[..at].contains(index), "requests one candidate twice: {order:?}");
                    assert!(!self.plan[*index].redirect, "requests a redirect: {order:?}");
                }
                assert!(*why != AttemptReason::Start || self.pump.is_none(), "starts while something plays");
                self.request = Some((*attempt, order.clone()));
                self.why = *why;
                self.n_asks += 1;
                self.n_asks_at_once += 1;
                let is_manual = match input {
                    Input::Switch(_) => true,
                    // A request noted before, or none.
                    Input::Playing { .. } => *why == AttemptReason::Switch,
                    _ => false,
                };
                if is_manual {
                    assert_eq!(self.switch_due, None, "a second switch was begun");
                    self.switch_due = Some(self.now + self.settings.switch_timeout);
                }
            }
            Action::Open { attempt, index, patience } => {
                assert_eq!(self.granted.take(), Some((*attempt, *index)), "opens without a lease");
                if let Some(patience) = patience {
                    let used = self.starting_since.map(|it| self.now - it);
                    assert_eq!(patience.extends_connect, used.is_some(), "only at a start");
                    let longest = self.settings.start_timeout - used.unwrap_or_default();
                    assert!(
                        patience.first_packet == longest || used.is_none() && patience.first_packet < longest
                    );
                }
                self.check_interval(*index);
                self.opener = Some((*attempt, *index));
            }
            Action::Prepare { attempt } => {
                assert_eq!(self.opened.take(), Some(*attempt), "prepares a source that was not opened");
                assert_eq!(self.prepared.replace(*attempt), None, "prepares two sources");
            }
            Action::Follow { attempt } => {
                let source = self.opened.take().or(self.prepared.take());
                assert_eq!(source, Some(*attempt), "follows a source that was not opened");
                self.pump = Some(*attempt);
            }
            Action::Abandon { attempt } => {
                let n_before = self.n_in_hand();
                self.request.take_if(|it| it.0 == *attempt);
                self.opener.take_if(|it| it.0 == *attempt);
                self.granted.take_if(|it| it.0 == *attempt);
                self.prepared.take_if(|it| *it == *attempt);
                assert_eq!(self.n_in_hand(), n_before - 1, "abandons a missing attempt");
            }
            Action::Release => {
                assert_eq!(self.prepared, None, "a release would drop the prepared source as well");
                self.pump = None;
            }
            Action::Redirect { index } => {
                assert!(self.plan[*index].redirect, "redirects to a candidate that is not a redirect");
                assert_eq!(self.playout.state(), &PlayoutState::Idle);
            }
            Action::GiveUp(reason) => {
                assert_eq!(self.playout.state(), &PlayoutState::Stopped);
                if *reason == GiveUp::NothingPlays {
                    let since = self.starting_since.expect("only a start ends because nothing plays");
                    let is_late = self.now >= since + self.settings.give_up_after;
                    assert!(is_late || !self.may_recover, "gives up although waiting may help: {self:?}");
                }
            }
            Action::Changed(change) => self.changed(change, input, state_before),
        }
    }

    /// Because of silence a stream is opened beside itself at most every 15 s.
    fn check_interval(&mut self, index: usize) {
        let streams: Vec<_> = self.playout.candidates().map(|it| it.stream).collect();
        let playing = self.playout.playing().map(|it| streams[it.1]);
        if self.why != AttemptReason::Silence || playing != Some(streams[index]) {
            return;
        }
        let interval = self.settings.silence_reopen_interval;
        let is_recent = |it: &(StreamId, Instant)| self.now - it.1 < interval;
        self.reopened.retain(is_recent);
        assert!(self.reopened.iter().all(|it| it.0 != streams[index]), "opened again too early: {self:?}");
        self.reopened.push((streams[index], self.now));
    }

    /// A second connection is requested as one; only a manual switch to another account, or because of a missing part, may
    /// fall back to an ordinary request while the old source plays.
    fn check_permission(&mut self, order: &[usize], why: AttemptReason, beside: bool) {
        self.is_beside = beside;
        let playing = self.playout.playing().map(|it| it.1);
        let Some(playing) = playing else {
            return assert!(!beside && !why.is_speculative(), "asks for a second connection as the first");
        };
        let candidates: Vec<_> = self.playout.candidates().collect();
        let is_same_account = |it: &usize| candidates[*it].profile == candidates[playing].profile;
        assert!(
            beside || why != AttemptReason::Silence && !order.iter().any(is_same_account),
            "a second connection without permission: {self:?}"
        );
    }

    /// Returns whether a candidate may be left because it lacks this part.
    fn may_be_left(&self, index: usize, lack: Lack) -> bool {
        lack != Lack::Motion || self.playout.candidates().nth(index).is_some_and(|it| it.leaves_still_picture)
    }

    fn changed(&mut self, change: &PlayoutChange, input: &Input, state_before: &PlayoutState) {
        let n_candidates = self.playout.candidates().len();
        let begins_to_play = matches!(input, Input::Playing { .. });
        match change {
            PlayoutChange::Started { index } | PlayoutChange::Reconnected { index } => {
                assert!(begins_to_play && *index < self.plan.len(), "{change:?}");
            }
            PlayoutChange::LeftSilent { index } => {
                assert!(matches!(input, Input::Ready { .. }) && *index < n_candidates, "{change:?}");
            }
            PlayoutChange::LeftLacking { index, lack } => {
                assert!(*index < n_candidates && self.may_be_left(*index, *lack), "{change:?}");
                let is_recent = |it: &(StreamId, Lack, Instant)| self.now - it.2 < self.settings.lack_memory;
                self.left_lacking.retain(is_recent);
                let stream = self.playout.candidates().nth(*index).expect("a candidate").stream;
                let is_repeated = self.left_lacking.iter().any(|it| (it.0, it.1) == (stream, *lack));
                assert!(!is_repeated, "left again for {lack:?}: {self:?}");
                self.left_lacking.push((stream, *lack, self.now));
            }
            PlayoutChange::PlaysLacking { index, lack } => {
                let playing = self.playout.playing().map(|it| it.1);
                assert_eq!(playing, Some(*index), "{change:?}");
                assert!(self.may_be_left(*index, *lack), "{change:?}");
            }
            PlayoutChange::FailedOver { from, to } => {
                assert!(begins_to_play && from != to && *from < n_candidates && *to < self.plan.len());
            }
            PlayoutChange::Switched { from, to, .. } => {
                assert!(begins_to_play && *from < n_candidates && *to < self.plan.len(), "{change:?}");
                self.switch_due = None;
            }
            PlayoutChange::SwitchFailed { to, returned_to } => {
                assert!(*to < n_candidates, "{change:?}");
                assert!(self.switch_due.take().is_some(), "nobody waits for {change:?}");
                assert_eq!(*returned_to, self.playout.playing().map(|it| it.1), "wrong: {change:?}");
            }
            PlayoutChange::SwitchRefused(_) => {
                assert!(matches!(input, Input::Switch(_)));
                assert_eq!(self.playout.state(), state_before, "a refused switch changed something");
            }
            PlayoutChange::SwitchNoted { to } => {
                assert!(matches!(input, Input::Switch(_)) && *to < self.plan.len());
                assert_eq!(self.playout.state(), state_before, "a noted switch changed something");
            }
            PlayoutChange::BackingOff { until } => {
                assert_eq!(self.playout.state(), &PlayoutState::Backoff { until: *until });
                assert!(*until > self.now, "an empty backoff");
            }
        }
    }

    /// Returns the number of requests, leases and sources held by anyone but the pump.
    fn n_in_hand(&self) -> usize {
        usize::from(self.request.is_some())
            + usize::from(self.granted.is_some())
            + usize::from(self.opener.is_some())
            + usize::from(self.opened.is_some())
            + usize::from(self.prepared.is_some())
    }

    fn check(&self) {
        let playout = &self.playout;
        assert!(self.granted.is_none() && self.opened.is_none(), "a lease or source was forgotten: {self:?}");
        let n_leases = usize::from(self.opener.is_some())
            + usize::from(self.pump.is_some())
            + usize::from(self.prepared.is_some());
        let n_under_way = |step: &AttemptStep| usize::from(!matches!(step, AttemptStep::Waiting { .. }));
        let deadline = playout.deadline();
        match playout.state() {
            PlayoutState::Idle | PlayoutState::Stopped => {
                assert_eq!((n_leases, self.n_in_hand(), deadline), (0, 0, None), "{self:?}");
                assert_eq!(self.switch_due, None, "a caller still waits for the outcome of a switch");
            }
            PlayoutState::Backoff { .. } => assert_eq!((n_leases, self.n_in_hand()), (0, 0), "{self:?}"),
            PlayoutState::Opening(opening) => {
                let n_followed = usize::from(self.pump.is_some());
                assert_eq!(self.n_in_hand() + n_followed, n_under_way(&opening.step), "{self:?}");
            }
            PlayoutState::Playing(playing) => {
                assert_eq!((self.pump, self.n_in_hand()), (Some(playing.attempt), 0), "{self:?}");
            }
            PlayoutState::Beside { playing, next } => {
                assert_eq!(self.prepared.is_some(), matches!(next.step, AttemptStep::Preparing { .. }));
                assert_eq!(self.pump, Some(playing.attempt), "{self:?}");
                assert_eq!(self.n_in_hand(), n_under_way(&next.step), "{self:?}");
            }
        }
        assert!(n_leases <= 2, "{self:?}");
        assert_eq!(playout.playing().is_some(), matches!(playout.state_name(), "playing" | "switching"));
        assert!(playout.candidates().take(self.plan.len()).eq(self.plan.iter().copied()), "{self:?}");

        let needs_deadline = matches!(playout.state_name(), "opening" | "switching" | "resting");
        assert!(!needs_deadline || deadline.is_some(), "no deadline in this state: {self:?}");
        if needs_deadline && let Some(deadline) = deadline {
            assert!(deadline <= self.now + self.settings.give_up_after.max(self.settings.switch_timeout));
        }
        if let Some(due) = self.switch_due {
            assert!(deadline.is_some_and(|it| it <= due), "a switch is answered too late: {self:?}");
        }
        if deadline.is_none_or(|it| it > self.now) {
            let mut early = playout.clone();
            assert_eq!(early.on(Input::Tick, self.now), [], "an early tick did something");
            assert_eq!(&early, playout, "an early tick changed something");
        }

        // No busy loop: at one instant each candidate may be tried once and retried with its two tokens, and one switch
        // may run. Over time, no round is shorter than the shortest backoff, and a pause takes half a second.
        let n_round = 3 * self.n_candidates_max + 3;
        assert!(self.n_asks_at_once <= n_round, "{} requests at once", self.n_asks_at_once);
        let n_seconds = (self.now - self.begin).as_secs() as usize + 1;
        assert!(self.n_asks <= n_round * (6 * n_seconds + self.n_requested + 1), "{} requests", self.n_asks);
    }

    /// From here on nobody answers: the channel ends unless a source plays already.
    fn no_answers(mut self) {
        self.wait(self.settings.give_up_after + self.settings.switch_timeout);
        assert!(
            matches!(self.playout.state_name(), "idle" | "playing" | "switching" | "stopped"),
            "{self:?}"
        );
    }

    /// From here on everything fails: the channel ends in time.
    fn everything_fails(mut self) {
        let failure = a_reset();
        self.happens(Op::Lose(failure));
        let end = self.now + self.settings.give_up_after;
        while self.now <= end && self.playout.state() != &PlayoutState::Idle {
            if self.request.is_none() && self.opener.is_none() && self.pump.is_none() {
                self.happens(Op::Deadline);
            }
            if let Some((attempt, _)) = self.request {
                // Not "full", which would end a cold start at once.
                self.good(0);
                assert_ne!(self.request.as_ref().map(|it| it.0), Some(attempt));
            }
            self.bad(failure);
            if self.playout.state() == &PlayoutState::Stopped {
                return;
            }
        }
        assert!(matches!(self.playout.state_name(), "idle" | "stopped"), "{self:?}");
    }

    /// From here on everything works: a playable candidate plays soon.
    fn everything_works(mut self) {
        let has_playable = self.plan.iter().any(|it| !it.redirect);
        for _ in 0..8 {
            self.good(0);
            if self.request.is_none() && self.opener.is_none() && self.pump.is_none() {
                self.happens(Op::Deadline);
            }
        }
        let state = self.playout.state_name();
        assert!(matches!(state, "playing" | "switching" | "idle" | "stopped") || !has_playable, "{self:?}");
    }

    /// From here on every source plays and is lost at once, which must not cause a busy loop.
    fn everything_plays_for_a_moment(mut self) {
        let failure = a_reset();
        for _ in 0..200 {
            self.good(0);
            self.happens(Op::Lose(failure));
            if self.request.is_none() && self.opener.is_none() && self.pump.is_none() {
                self.happens(Op::Deadline);
            }
        }
    }

    fn stops(mut self) {
        self.happens(Op::Stop);
        for op in
            [Op::Start, Op::Stale(0), Op::Switch(SwitchTarget::Next), Op::Replan(3), Op::Yield, Op::Stop]
        {
            self.happens(op);
        }
        assert_eq!(self.playout.on(Input::Tick, self.now), []);
        assert_eq!((self.pump, self.n_in_hand()), (None, 0));
    }
}
