//! Which stream a live channel plays next, and when it rests.
//!
//! A pure state machine: its owner, the live channel, tells it what happened ([`Input`]) and carries out what
//! it answers ([`Action`]). Time is an argument, so a day of failures is tested in a millisecond.
//!
//! ```text
//!            Start               Granted, Opened, Playing
//!   Idle ───────────▶ Opening ─────────────────────────────▶ Playing ◀────────┐
//!    ▲                 ▲  │ ▲                                 │  │  │          │ the new one failed
//!    │            Tick │  │ └────────────── Lost ─────────────┘  │  │ Switch   │
//!    │                 │  ▼ nobody left in this round            │  ▼          │
//!    │                Resting                                   │ Switching ──┘
//!    │                    │ give_up_after                       │     │ Opened: from here on it is an Opening,
//!    └── Yield, from any  └──────────▶ Stopped ◀── Stop, any ───┘     ▼ because the pump dropped the old one
//! ```
//!
//! What holds, whatever happens (`model.rs` holds it against random schedules):
//! - one source plays or one attempt is under way; both at once only while switching, never more;
//! - every state but Idle, Playing and Stopped has a deadline, and a `Tick` at the deadline always moves;
//! - news of an attempt that is over changes nothing;
//! - no path leads back to the same place without time passing, a token spent or somebody asking for it.
//!
//! Words: a *place* is a candidate as far as it matters here. An *incident* begins when a channel is started or
//! loses a source that had played well, and ends with the next one that does. A *round* is one pass over the
//! places; an incident may take several, with rests in between.

mod candidates;
mod machine;
#[cfg(any(test, fuzzing))]
pub mod model;
mod replan;
mod settings;
mod switch;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::{Duration, Instant};

use self::candidates::Candidates;
pub use self::settings::PlayoutSettings;
use self::switch::Running;
use crate::ids::{ProfileId, StreamId};

/// One try at one place. Numbered, so that late news is recognised; a number is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(pub u64);

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A candidate as the playout sees it. Stream and profile are its identity over changes of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlayoutCandidate {
    pub stream: StreamId,
    pub profile: ProfileId,
    /// The viewer is sent to the address; nothing is opened.
    pub redirect: bool,
}

impl PlayoutCandidate {
    fn is_same(self, other: Self) -> bool {
        (self.stream, self.profile) == (other.stream, other.profile)
    }
}

/// Whom a failure blames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureScope {
    /// What is broadcast is not there or not playable: all candidates of this stream are tried last.
    Stream,
    /// This account profile was refused: its sisters may do better.
    Candidate,
}

/// How an attempt failed, or how a source that played was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Failure {
    pub scope: FailureScope,
    /// Trying the same place again at once can help.
    pub retry: bool,
    /// The provider refused shortly after a slot of this account profile came back: it may still count the
    /// closed connection. Such a place is asked again, after a pause, before it counts as failed.
    pub just_released: bool,
}

/// What an attempt is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptReason {
    /// Nothing has played since the channel was started.
    Start,
    /// Something has played, and is lost.
    Failover,
    /// Somebody wants another source; the present one may still play.
    Switch,
}

/// Where to switch to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SwitchTarget {
    /// The next stream in channel order, those that failed lately last. With one stream: that one, anew.
    Next,
    /// This place, or another of its stream if it is full. The place that plays is opened anew.
    To(usize),
    /// The first place of the channel.
    Preferred,
}

/// What the owner tells. Indices are those of [`Playout::places`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Somebody wants to watch. Means something in Idle only.
    Start,
    /// The lease for this place is there, held by the owner under this attempt.
    Granted {
        attempt: Attempt,
        index: usize,
    },
    /// None of the places asked for came free in time.
    Full {
        attempt: Attempt,
    },
    /// The opener delivered a source with packets in it.
    Opened {
        attempt: Attempt,
    },
    /// The first chunk of this source is in the ring.
    Playing {
        attempt: Attempt,
    },
    /// The opener failed, the source ended, or somebody judged it too slow: all the same here.
    Lost {
        attempt: Attempt,
        failure: Failure,
    },
    Switch(SwitchTarget),
    /// The time of [`Playout::deadline`] has come. Any earlier it is harmless.
    Tick,
    /// The slot is wanted by somebody else, or nobody watches any more. The owner knows whether it may be.
    Yield,
    /// The records changed: these are the places now.
    Replan(Vec<PlayoutCandidate>),
    /// The end, for ever.
    Stop,
}

impl Input {
    /// The attempt that this is news of.
    fn attempt(&self) -> Option<Attempt> {
        match self {
            Self::Granted { attempt, .. }
            | Self::Full { attempt }
            | Self::Opened { attempt }
            | Self::Playing { attempt }
            | Self::Lost { attempt, .. } => Some(*attempt),
            _ => None,
        }
    }
}

/// What the owner is to do, in this order. None of these waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Ask Slots for the first free one of these places.
    Ask { attempt: Attempt, order: Vec<usize>, why: AttemptReason },
    /// Open this place with the lease just granted.
    Open { attempt: Attempt, index: usize },
    /// Hand the opened source to the pump, which drops the one it follows.
    Follow { attempt: Attempt },
    /// Drop whatever there is of this attempt: request, lease, opener or opened source.
    Abandon { attempt: Attempt },
    /// Have the pump let go of its source, if it still has one.
    Release,
    /// Send whoever waits to this address. The state is Idle.
    Redirect { index: usize },
    /// Something to tell.
    Changed(PlayoutChange),
    /// Close the channel. The state is Stopped.
    GiveUp(GiveUp),
}

/// What viewers, admins and logs hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlayoutChange {
    /// The first source since the start plays.
    Started { index: usize },
    /// The place that played last plays again, after a gap.
    Reconnected { index: usize },
    /// After a gap another place plays.
    FailedOver { from: usize, to: usize },
    /// A switch succeeded. The two are the same when the source was opened anew.
    Switched { from: usize, to: usize },
    /// A manual switch failed. What plays now, if anything does yet.
    SwitchFailed { to: usize, returned_to: Option<usize> },
    /// A manual switch was not begun.
    SwitchRefused(SwitchRefusal),
    /// Nothing plays, so there is nothing to switch from: this place is tried first at the next attempt.
    SwitchNoted { to: usize },
    /// A round was without luck; the next begins then.
    BackingOff { until: Instant },
}

/// Why a manual switch is not even begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SwitchRefusal {
    /// Another one is under way.
    Busy,
    /// There is no such place, or it is not one that the gateway plays itself.
    NoSuchCandidate,
}

/// Why a channel ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GiveUp {
    /// The plan has no place that could be played.
    NoStreams,
    /// Every slot is taken, and nothing has played since the start.
    NoSlot,
    /// Every place failed, and nothing has played since the start.
    NothingPlays,
    /// It played, then for too long not a packet came.
    Silent,
}

/// What a channel is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlayoutState {
    Idle,
    Opening(OpeningAttempt),
    Playing(PlayingSource),
    /// The old source plays on while the new one is opened.
    Switching {
        playing: PlayingSource,
        next: OpeningAttempt,
    },
    /// A round was without luck.
    Backoff {
        until: Instant,
    },
    Stopped,
}

/// An attempt on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpeningAttempt {
    pub attempt: Attempt,
    pub why: AttemptReason,
    pub step: AttemptStep,
    /// The place that gets a second chance with this attempt, if that place is granted.
    retry_of: Option<usize>,
}

/// How far an attempt has come. Each step ends at `until` at the latest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptStep {
    /// Waiting for a lease.
    Asked { order: Vec<usize>, until: Instant },
    /// Waiting for the opener.
    Dialling { index: usize, until: Instant },
    /// Waiting for the pump.
    Following { index: usize, until: Instant },
    /// The provider refused because it still counts a closed connection: asked again at `until`.
    /// There is no request, lease or source in the meantime, and the attempt is over.
    Waiting { index: usize, until: Instant },
}

impl AttemptStep {
    fn until(&self) -> Instant {
        match self {
            Self::Asked { until, .. }
            | Self::Dialling { until, .. }
            | Self::Following { until, .. }
            | Self::Waiting { until, .. } => *until,
        }
    }
}

/// A source that plays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayingSource {
    pub attempt: Attempt,
    pub index: usize,
    pub since: Instant,
    /// When a return to a preferred stream is tried.
    pub return_at: Option<Instant>,
}

/// The playout of one channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Playout {
    settings: PlayoutSettings,
    candidates: Candidates,
    state: PlayoutState,
    last_attempt: u64,
    /// Something has played since the start.
    has_played: bool,
    /// A lease was granted since the start: whoever asked has been told to wait for packets.
    has_lease_been_granted: bool,
    /// The place that plays, or played last since the start.
    last_played: Option<usize>,
    /// The place after which the next round goes on.
    position: Option<usize>,
    /// Since when there has been no packet.
    silent_since: Option<Instant>,
    /// Rests since a source last played well.
    n_rests: u32,
    /// Every attempt of this round failed in a way that waiting does not mend.
    is_hopeless: bool,
    /// The switch under way, also when its old source is gone.
    switch: Option<Running>,
    /// Where somebody wanted to switch to while nothing played.
    wish: Option<usize>,
    /// The stream that somebody chose by hand last: no return to a preferred one from it.
    chosen: Option<StreamId>,
    random: u64,
}

impl Playout {
    /// A playout at rest. `seed` decides about the jitter of its pauses and nothing else.
    pub fn new(places: Vec<PlayoutCandidate>, settings: PlayoutSettings, seed: u64) -> Self {
        Self {
            candidates: Candidates::new(places, &settings),
            settings,
            state: PlayoutState::Idle,
            last_attempt: 0,
            has_played: false,
            has_lease_been_granted: false,
            last_played: None,
            position: None,
            silent_since: None,
            n_rests: 0,
            is_hopeless: true,
            switch: None,
            wish: None,
            chosen: None,
            random: seed,
        }
    }

    /// Takes an input and says what is to be done about it. `now` must not go back.
    pub fn on(&mut self, input: Input, now: Instant) -> Vec<Action> {
        let mut out = Vec::new();
        match input.attempt() {
            Some(attempt) if !self.is_current(attempt) => {
                // Late news. What it brought with it must be dropped all the same.
                if matches!(input, Input::Granted { .. } | Input::Opened { .. }) {
                    out.push(Action::Abandon { attempt });
                }
            }
            None if input == Input::Tick && self.deadline().is_none_or(|it| now < it) => {}
            _ => {
                let state = std::mem::replace(&mut self.state, PlayoutState::Stopped);
                self.state = self.next(state, input, now, &mut out);
            }
        }
        out
    }

    /// When the owner must send `Tick`. May be in the past; then at once.
    pub fn deadline(&self) -> Option<Instant> {
        let switch = self.switch.as_ref().map(|it| it.until);
        match &self.state {
            PlayoutState::Idle | PlayoutState::Stopped => None,
            PlayoutState::Playing(playing) => playing.return_at,
            PlayoutState::Opening(opening) => {
                earliest([Some(opening.step.until()), self.give_up_at(), switch])
            }
            PlayoutState::Switching { next, .. } => earliest([Some(next.step.until()), switch]),
            PlayoutState::Backoff { until } => earliest([Some(*until), self.give_up_at(), switch]),
        }
    }

    pub fn state(&self) -> &PlayoutState {
        &self.state
    }

    /// One word for status pages and logs.
    pub fn state_name(&self) -> &'static str {
        match &self.state {
            PlayoutState::Idle => "idle",
            PlayoutState::Opening(_) => "opening",
            PlayoutState::Playing(_) => "playing",
            PlayoutState::Switching { .. } => "switching",
            PlayoutState::Backoff { .. } => "resting",
            PlayoutState::Stopped => "stopped",
        }
    }

    /// The source that plays, also while the next is opened.
    pub fn playing(&self) -> Option<(Attempt, usize)> {
        match &self.state {
            PlayoutState::Playing(playing) | PlayoutState::Switching { playing, .. } => {
                Some((playing.attempt, playing.index))
            }
            _ => None,
        }
    }

    /// The places that indices mean: those of the plan, in its order, then those that left the plan but still
    /// play, or are still talked about.
    pub fn candidates(&self) -> impl ExactSizeIterator<Item = PlayoutCandidate> {
        self.candidates.all()
    }

    /// Whether news of this attempt means anything.
    fn is_current(&self, attempt: Attempt) -> bool {
        let is_opening =
            |it: &OpeningAttempt| it.attempt == attempt && !matches!(it.step, AttemptStep::Waiting { .. });
        match &self.state {
            PlayoutState::Opening(opening) => is_opening(opening),
            PlayoutState::Playing(playing) => playing.attempt == attempt,
            PlayoutState::Switching { playing, next } => playing.attempt == attempt || is_opening(next),
            PlayoutState::Idle | PlayoutState::Backoff { .. } | PlayoutState::Stopped => false,
        }
    }

    fn give_up_at(&self) -> Option<Instant> {
        self.silent_since.map(|it| after(it, self.settings.give_up_after))
    }
}

fn earliest<const N: usize>(times: [Option<Instant>; N]) -> Option<Instant> {
    times.into_iter().flatten().min()
}

/// A point in time that far away. Absurd settings end up far away too, not in a panic.
fn after(now: Instant, pause: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
    now + pause.min(FAR)
}
