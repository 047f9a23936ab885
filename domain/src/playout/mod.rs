//! Decides which stream a live channel plays next, and when it pauses between attempts.
//!
//! The playout is a pure state machine. Its owner, the live channel, reports what happened ([`Input`]) and carries out
//! the returned [`Action`]s. Time is an argument, so a test runs a day of failures within a millisecond.
//!
//! ```text
//!            Start, TakeOver     Granted, Opened, Playing
//!   Idle ───────────▶ Opening ─────────────────────────────▶ Playing ◀────────┐
//!    ▲                 ▲  │ ▲                                 │  │  │          │ the new source failed,
//!    │            Tick │  │ └────────────── Lost ─────────────┘  │  │ Switch,  │ or the old one recovers
//!    │                 │  ▼ every candidate was tried            │  ▼ Silent,  │
//!    │                Backoff                                   │ Beside ─────┘
//!    │                    │ give_up_after                       │     │ Ready: the state becomes Opening, because
//!    └── Yield, from any  └──────────▶ Stopped ◀── Stop, any ───┘     ▼ the pump drops the old source
//! ```
//!
//! Invariants, which `model.rs` checks against random schedules:
//! - one source plays or one attempt is in progress; both at once only in Beside, and never two attempts;
//! - the slot of an attempt beside a source is requested as such, so that it is refused where a second connection is
//!   not known to be allowed;
//! - every state except Idle, Playing and Stopped has a deadline, and a `Tick` at the deadline always changes something;
//! - a message about a finished attempt changes nothing;
//! - the same candidate is not tried again unless time passed, a retry token was spent or a client asked for it.
//!
//! An *incident* begins when a channel is started, or when it loses a source that had played well, and ends with the
//! next source that plays well. A *round* is one pass over the candidates; an incident may take several rounds, with
//! backoffs between them.

mod candidates;
mod incident;
mod lack;
mod machine;
mod messages;
#[cfg(any(test, feature = "fuzzing"))]
pub mod model;
mod pauses;
mod replan;
mod session;
mod settings;
mod silence;
mod state;
mod switch;
#[cfg(test)]
mod tests;

use std::time::Instant;

use self::candidates::Candidates;
use self::incident::Incident;
use self::lack::Lacking;
use self::pauses::Jitter;
use self::session::Session;
use self::silence::Silence;
use self::switch::Switches;
use crate::ids::ProfileId;

pub use self::messages::{
    Action, Attempt, AttemptReason, Failure, FailureKind, FailureScope, GiveUp, Input, Lack, Patience,
    PlayoutCandidate, PlayoutChange, SwitchRefusal, SwitchTarget,
};
pub use self::settings::PlayoutSettings;
pub use self::state::{AttemptStep, OpeningAttempt, PlayingSource, PlayoutState};

/// The playout of one channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Playout {
    settings: PlayoutSettings,
    candidates: Candidates,
    state: PlayoutState,
    session: Session,
    incident: Incident,
    switches: Switches,
    silence: Silence,
    lacking: Lacking,
    /// The account profile whose candidates are requested first after a start.
    first_choice: Option<ProfileId>,
    last_attempt: u64,
    jitter: Jitter,
    /// Actions of the current step, in order. The caller of [`Playout::on`] collects them, so no action re-enters.
    actions: Vec<Action>,
}

impl Playout {
    /// Creates an idle playout. `seed` determines the jitter of its backoffs and nothing else.
    pub fn new(candidates: Vec<PlayoutCandidate>, settings: PlayoutSettings, seed: u64) -> Self {
        let candidates = Candidates::new(candidates, &settings);
        Self {
            incident: Incident::new(None, candidates.len()),
            candidates,
            settings,
            state: PlayoutState::Idle,
            session: Session::default(),
            switches: Switches::default(),
            silence: Silence::default(),
            lacking: Lacking::default(),
            first_choice: None,
            last_attempt: 0,
            jitter: Jitter(seed),
            actions: Vec::new(),
        }
    }

    /// Sets the account profile whose candidates are requested first at the next start, except those that failed lately.
    pub fn choose_first(&mut self, profile: Option<ProfileId>) {
        self.first_choice = profile;
    }

    /// Processes an input and returns the actions to carry out. `now` must not go backwards.
    pub fn on(&mut self, input: Input, now: Instant) -> Vec<Action> {
        match input.attempt() {
            Some(attempt) if !self.is_current(attempt) => {
                // A late message. A lease or source that came with it must still be dropped.
                if matches!(input, Input::Granted { .. } | Input::Opened { .. }) {
                    self.act(Action::Abandon { attempt });
                }
            }
            None if input == Input::Tick && self.deadline().is_none_or(|it| now < it) => {}
            _ => {
                let state = std::mem::replace(&mut self.state, PlayoutState::Stopped);
                self.state = self.next(state, input, now);
            }
        }
        std::mem::take(&mut self.actions)
    }

    /// Returns the time at which the owner must send `Tick`. It may be in the past, and then means at once.
    pub fn deadline(&self) -> Option<Instant> {
        let switch = self.switches.deadline();
        match &self.state {
            PlayoutState::Idle | PlayoutState::Stopped => None,
            PlayoutState::Playing(playing) => earliest([playing.return_at, self.lacking.look_again_at()]),
            PlayoutState::Opening(opening) => {
                earliest([Some(opening.step.until()), self.give_up_at(), switch])
            }
            PlayoutState::Beside { next, .. } => earliest([Some(next.step.until()), switch]),
            PlayoutState::Backoff { until } => earliest([Some(*until), self.give_up_at(), switch]),
        }
    }

    pub fn state(&self) -> &PlayoutState {
        &self.state
    }

    /// Returns the name of the state for status pages and logs.
    pub fn state_name(&self) -> &'static str {
        match &self.state {
            PlayoutState::Idle => "idle",
            PlayoutState::Opening(_) => "opening",
            PlayoutState::Playing(_) => "playing",
            PlayoutState::Beside { next, .. } if next.why.is_speculative() => "playing",
            PlayoutState::Beside { .. } => "switching",
            // The name that clients of the API know.
            PlayoutState::Backoff { .. } => "resting",
            PlayoutState::Stopped => "stopped",
        }
    }

    /// Returns the source that plays, also while the next one is opened.
    pub fn playing(&self) -> Option<(Attempt, usize)> {
        match &self.state {
            PlayoutState::Playing(playing) | PlayoutState::Beside { playing, .. } => {
                Some((playing.attempt, playing.index))
            }
            _ => None,
        }
    }

    /// Returns whether clients have seen something of the channel since it was started, here or at another node before.
    pub fn has_played(&self) -> bool {
        self.session.has_played()
    }

    /// Returns the candidates that indices refer to: those of the plan in its order, followed by those that left the
    /// plan but still play or are still referred to.
    pub fn candidates(&self) -> impl ExactSizeIterator<Item = PlayoutCandidate> {
        self.candidates.all()
    }

    /// Queues an action for the caller of this step.
    fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    fn report(&mut self, change: PlayoutChange) {
        self.act(Action::Changed(change));
    }

    /// Returns whether a message about this attempt is up to date.
    fn is_current(&self, attempt: Attempt) -> bool {
        let is_opening =
            |it: &OpeningAttempt| it.attempt == attempt && !matches!(it.step, AttemptStep::Waiting { .. });
        match &self.state {
            PlayoutState::Opening(opening) => is_opening(opening),
            PlayoutState::Playing(playing) => playing.attempt == attempt,
            PlayoutState::Beside { playing, next } => playing.attempt == attempt || is_opening(next),
            PlayoutState::Idle | PlayoutState::Backoff { .. } | PlayoutState::Stopped => false,
        }
    }

    fn give_up_at(&self) -> Option<Instant> {
        self.incident.give_up_at(&self.settings)
    }

    /// Returns whether the source that plays was opened so long ago that its end now would be no failure.
    pub fn has_played_well(&self, now: Instant) -> bool {
        match &self.state {
            PlayoutState::Playing(playing) | PlayoutState::Beside { playing, .. } => {
                playing.has_played_well(now, &self.settings)
            }
            _ => false,
        }
    }

    /// Returns how long this candidate may take to open if no other candidate could use the time: at a start what is left
    /// of it, and after the first play as long as a start may take.
    fn patience(&self, index: usize, now: Instant) -> Option<Patience> {
        if self.can_other_use_time(index, now) {
            return None;
        }
        let extends_connect = !self.session.has_played();
        let first_packet = match extends_connect {
            true => self.incident.start_time_left(now, &self.settings)?,
            false => {
                let longest = self.settings.start_timeout;
                let give_up_in = self.give_up_at().map_or(longest, |it| it.saturating_duration_since(now));
                // Others that failed lately get their turn before the channel gives up.
                let has_others = self.candidates.playable().any(|it| it != index);
                longest.min(if has_others { give_up_in / 2 } else { give_up_in })
            }
        };
        (!first_packet.is_zero()).then_some(Patience { first_packet, extends_connect })
    }

    /// Returns whether another candidate than this one could use the time of this one: it has not had its turn in this
    /// round and, after the first play, has not failed lately.
    fn can_other_use_time(&self, index: usize, now: Instant) -> bool {
        self.candidates.playable().any(|it| {
            let may_play =
                !self.session.has_played() || !self.candidates.failed_lately(it, now, &self.settings);
            it != index && !self.incident.is_tried(it) && may_play
        })
    }

    /// Returns the candidates that have not had their turn in this round and may be opened.
    fn untried(&self, now: Instant) -> Vec<usize> {
        self.candidates.sorted(self.session.position(), now, &self.settings, |it| {
            self.candidates.can_play(it)
                && !self.incident.is_tried(it)
                && self.held_until(it).is_none_or(|held_until| held_until <= now)
        })
    }

    /// Returns the time before which this candidate must not be opened again because its stream was silent. A start does
    /// not wait for it.
    fn held_until(&self, index: usize) -> Option<Instant> {
        self.candidates.held_until(index, false, &self.settings).filter(|_| self.session.has_played())
    }
}

fn earliest<const N: usize>(times: [Option<Instant>; N]) -> Option<Instant> {
    times.into_iter().flatten().min()
}
