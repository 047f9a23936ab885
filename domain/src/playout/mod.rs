//! Decides which stream a live channel plays next, and when it pauses between attempts.
//!
//! The playout is a pure state machine. Its owner, the live channel, reports what happened ([`Input`]) and carries out
//! the returned [`Action`]s. Time is an argument, so a test runs a day of failures within a millisecond.
//!
//! ```text
//!            Start, TakeOver     Granted, Opened, Playing
//!   Idle ───────────▶ Opening ─────────────────────────────▶ Playing ◀────────┐
//!    ▲                 ▲  │ ▲                                 │  │  │          │ the new source failed,
//!    │            Tick │  │ └────────────── Lost ─────────────┘  │  │ Switch,  │ or the old one sends again
//!    │                 │  ▼ every candidate was tried            │  ▼ Silent   │
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
mod machine;
#[cfg(any(test, feature = "fuzzing"))]
pub mod model;
mod replan;
mod session;
mod settings;
mod silence;
mod switch;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::{Duration, Instant};

use self::candidates::Candidates;
use self::incident::Incident;
use self::session::Session;
pub use self::settings::PlayoutSettings;
use self::silence::Silence;
use self::switch::Switches;
use crate::ids::{ProfileId, StreamId};

/// The number of one attempt to play one candidate. Never reused, so that late messages are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(pub u64);

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A candidate as the playout sees it. Stream and profile identify it across changes of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlayoutCandidate {
    pub stream: StreamId,
    pub profile: ProfileId,
    /// The client is redirected to the address; the gateway opens nothing.
    pub redirect: bool,
}

impl PlayoutCandidate {
    fn is_same(self, other: Self) -> bool {
        (self.stream, self.profile) == (other.stream, other.profile)
    }
}

/// The candidates that a failure affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureScope {
    /// The stream is missing or unplayable: all candidates of this stream are tried last.
    Stream,
    /// This account profile was refused: another profile of the same stream may succeed.
    Candidate,
}

/// Describes how an attempt failed, or how a playing source was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Failure {
    pub scope: FailureScope,
    /// Trying the same candidate again at once can help.
    pub retry: bool,
    /// Waiting cannot help either: this candidate fails until somebody changes something.
    pub is_permanent: bool,
    /// The provider refused shortly after a slot of this account profile was freed, so it may still count the closed
    /// connection. Such a candidate is requested again after a pause, a few times, before it counts as failed.
    pub just_released: bool,
}

/// The reason for an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptReason {
    /// Nothing has played since the channel was started.
    Start,
    /// A source played and was lost.
    Failover,
    /// Another source was requested; the present one may still play.
    Switch,
    /// The source that plays is silent. The attempt is speculative: it ends if that source sends again.
    Silence,
}

/// The target of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SwitchTarget {
    /// The next stream in channel order; streams that failed lately come last. A channel with one stream opens it again.
    Next,
    /// This candidate, or another one of its stream if it is full. A playing candidate is opened again.
    To(usize),
    /// The first playable candidate of the channel.
    Preferred,
}

/// A report of the owner. Indices are those of [`Playout::candidates`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A client wants to watch. Has an effect in Idle only.
    Start,
    /// The channel played at another node until now, and its clients have seen nothing since `silent_since`. It looks for
    /// a source as after a loss: a full account does not end it before its time. Has an effect in Idle only.
    TakeOver {
        silent_since: Instant,
    },
    /// The owner holds a lease for this candidate under this attempt.
    Granted {
        attempt: Attempt,
        index: usize,
    },
    /// None of the requested candidates got a slot in time.
    Full {
        attempt: Attempt,
    },
    /// The opener delivered a source that sends packets.
    Opened {
        attempt: Attempt,
    },
    /// The pump reads this source beside the one that plays, and can continue the output with it.
    Ready {
        attempt: Attempt,
    },
    /// The first chunk of this source is in the ring.
    Playing {
        attempt: Attempt,
    },
    /// The source that plays has sent no payload for longer than usual.
    Silent {
        attempt: Attempt,
    },
    /// The source that was silent sends payload again.
    Resumed {
        attempt: Attempt,
    },
    /// The opener failed, the source ended, or it was judged too slow.
    Lost {
        attempt: Attempt,
        failure: Failure,
    },
    Switch(SwitchTarget),
    /// The time of [`Playout::deadline`] has come. An earlier tick has no effect.
    Tick,
    /// The slot is needed elsewhere, or the last client left. The owner decides whether that is acceptable.
    Yield,
    /// The records changed; these are the candidates from now on.
    Replan(Vec<PlayoutCandidate>),
    /// Ends the playout for good.
    Stop,
}

impl Input {
    /// Returns the attempt that this input reports on.
    fn attempt(&self) -> Option<Attempt> {
        match self {
            Self::Granted { attempt, .. }
            | Self::Full { attempt }
            | Self::Opened { attempt }
            | Self::Ready { attempt }
            | Self::Playing { attempt }
            | Self::Silent { attempt }
            | Self::Resumed { attempt }
            | Self::Lost { attempt, .. } => Some(*attempt),
            _ => None,
        }
    }
}

/// An instruction to the owner, which carries out all of them in order. None of them waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Ask the slots actor for the first free one of these candidates. `beside`: for a second connection beside the
    /// source that plays, which is granted only where that is known to be allowed, or refused at once.
    Ask { attempt: Attempt, order: Vec<usize>, why: AttemptReason, beside: bool },
    /// Open this candidate with the lease just granted. `time_left` is what is left of the start time, for the last
    /// untried candidate of a start: shorter time limits of the opener are extended to it.
    Open { attempt: Attempt, index: usize, time_left: Option<Duration> },
    /// Hand the opened source to the pump, which reads it beside the one that plays, until it can continue the output
    /// with it. Nothing of it is played yet.
    Prepare { attempt: Attempt },
    /// Make the pump continue the output with the source of this attempt, opened or prepared, and drop any other.
    Follow { attempt: Attempt },
    /// Drop everything that belongs to this attempt: request, lease, opener, opened or prepared source.
    Abandon { attempt: Attempt },
    /// Make the pump release the source that it plays, if it still has one.
    Release,
    /// Redirect the waiting clients to this address. The state is Idle.
    Redirect { index: usize },
    /// Report this change.
    Changed(PlayoutChange),
    /// Close the channel. The state is Stopped.
    GiveUp(GiveUp),
}

/// A change that is reported to viewers, admins and logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlayoutChange {
    /// The first source since the start plays.
    Started { index: usize },
    /// The candidate that played last plays again, after a gap.
    Reconnected { index: usize },
    /// Another candidate plays, after a gap.
    FailedOver { from: usize, to: usize },
    /// The source that plays is given up, because it is silent and another one is ready.
    LeftSilent { index: usize },
    /// A manual switch or a return to a preferred stream succeeded. Both indices are equal when the source was opened
    /// again.
    Switched { from: usize, to: usize, is_manual: bool },
    /// A manual switch failed. `returned_to` is the candidate that plays now, if any.
    SwitchFailed { to: usize, returned_to: Option<usize> },
    /// A manual switch was rejected.
    SwitchRefused(SwitchRefusal),
    /// Nothing plays yet, so this candidate is tried first in the next attempt.
    SwitchNoted { to: usize },
    /// Every candidate of a round failed; the next round begins at `until`.
    BackingOff { until: Instant },
}

/// The reason why a manual switch was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SwitchRefusal {
    /// Another manual switch is in progress.
    Busy,
    /// The candidate does not exist, or the gateway cannot play it itself.
    NoSuchCandidate,
}

/// The reason why a channel ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GiveUp {
    /// The plan has no playable candidate.
    NoStreams,
    /// Every slot is taken, nothing has played since the start, and trying again what failed cannot help.
    NoSlot,
    /// Every candidate failed, and nothing has played since the start.
    NothingPlays,
    /// It played, then no packet arrived for too long.
    Silent,
}

/// The state of a playout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlayoutState {
    Idle,
    Opening(OpeningAttempt),
    Playing(PlayingSource),
    /// A source plays, and another one is opened beside it: for a switch, or because the first one is silent.
    Beside {
        playing: PlayingSource,
        next: OpeningAttempt,
    },
    /// Every candidate of a round failed; the next round begins at `until`.
    Backoff {
        until: Instant,
    },
    Stopped,
}

/// An attempt in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpeningAttempt {
    pub attempt: Attempt,
    pub why: AttemptReason,
    pub step: AttemptStep,
    /// Its slot was requested for a second connection beside the source that plays.
    is_beside: bool,
    /// The candidate for which this attempt is an immediate retry, if that candidate is granted.
    retry_of: Option<usize>,
}

/// The progress of an attempt. Each step ends at `until` at the latest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptStep {
    /// Waiting for a lease.
    Asked { order: Vec<usize>, until: Instant },
    /// Waiting for the opener.
    Dialling { index: usize, until: Instant },
    /// Waiting for the pump, which reads the source beside the one that plays.
    Preparing { index: usize, until: Instant },
    /// Waiting for the pump.
    Following { index: usize, until: Instant },
    /// The provider refused because it still counts a closed connection; the candidate is requested again at `until`.
    /// Until then the attempt is over, without request, lease or source.
    Waiting { index: usize, until: Instant },
}

impl AttemptStep {
    fn until(&self) -> Instant {
        match self {
            Self::Asked { until, .. }
            | Self::Dialling { until, .. }
            | Self::Preparing { until, .. }
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
    /// Time at which a return to a preferred stream is tried.
    pub return_at: Option<Instant>,
}

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
            PlayoutState::Playing(playing) => playing.return_at,
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
            PlayoutState::Beside { next, .. } if next.why == AttemptReason::Silence => "playing",
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

    /// Returns what is left of the start time, if this is the last untried candidate of a start. No other candidate
    /// could use that time, so the attempt may take all of it.
    fn start_time_left(&self, index: usize, now: Instant) -> Option<Duration> {
        if self.session.has_played() || self.has_untried_beside(index) {
            return None;
        }
        let left = self.incident.start_time_left(now, &self.settings)?;
        (!left.is_zero()).then_some(left)
    }

    /// Returns whether another candidate than this one has not had its turn in this round.
    fn has_untried_beside(&self, index: usize) -> bool {
        self.candidates.playable().any(|it| it != index && !self.incident.is_tried(it))
    }

    /// Returns the candidates that have not had their turn in this round.
    fn untried(&self, now: Instant) -> Vec<usize> {
        self.candidates.sorted(self.session.position(), now, &self.settings, |it| {
            self.candidates.can_play(it) && !self.incident.is_tried(it)
        })
    }
}

/// The pseudorandom numbers that spread backoffs, so that the channels of a dead provider do not retry together.
#[derive(Debug, Clone, PartialEq)]
struct Jitter(u64);

impl Jitter {
    /// Returns a factor that differs from 1 by `share` at most.
    fn factor(&mut self, share: f64) -> f64 {
        // SplitMix64: three lines, and good enough for this purpose.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let unit = ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        1.0 + share.clamp(0.0, 1.0) * (2.0 * unit - 1.0)
    }
}

fn earliest<const N: usize>(times: [Option<Instant>; N]) -> Option<Instant> {
    times.into_iter().flatten().min()
}

/// Returns the time after this pause. Very long pauses are shortened to a year, because adding them could panic.
fn after(now: Instant, pause: Duration) -> Instant {
    const PAUSE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
    now + pause.min(PAUSE_MAX)
}
