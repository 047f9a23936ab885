//! The vocabulary of a playout: candidates, the reports of its owner, and the actions that it asks for.

use std::fmt;
use std::time::{Duration, Instant};

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
    /// Its stream is left when its picture stands still.
    pub leaves_still_picture: bool,
}

impl PlayoutCandidate {
    pub(super) fn is_same(self, other: Self) -> bool {
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

/// The kind of a loss, for the next attempt at the same stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The response ended, the connection broke or the program exited: after healthy play that does not count as a failure.
    Ended,
    /// A source that had sent stopped sending. The same stream is not opened again for this more often than now and then.
    Silent,
    Other,
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
    pub kind: FailureKind,
}

/// The time limits of an opening that is longer than usual. Longer limits of the opener stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Patience {
    /// Limit until the first packet.
    pub first_packet: Duration,
    /// The time to connect is extended, too. Otherwise a host that is down is asked again soon.
    pub extends_connect: bool,
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
    /// The source that plays lacks this part. The attempt is speculative, too: it ends if that part comes again.
    Lack(Lack),
}

impl AttemptReason {
    /// Returns whether the attempt ends if the source that plays recovers.
    pub fn is_speculative(self) -> bool {
        matches!(self, Self::Silence | Self::Lack(_))
    }
}

/// A part that is missing of a source that otherwise goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lack {
    Picture,
    Sound,
    /// The picture stands still. Only some streams are left for this.
    Motion,
}

impl Lack {
    /// Every part; a part is its place here.
    pub const ALL: [Self; 3] = [Self::Picture, Self::Sound, Self::Motion];
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

/// A report of the owner. Indices are those of [`super::Playout::candidates`].
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
    /// The source that plays goes on without this part. `avoid`: other streams that lacked it the last time.
    Lacks {
        attempt: Attempt,
        lack: Lack,
        avoid: Vec<StreamId>,
    },
    /// The source that plays has this part again.
    Complete {
        attempt: Attempt,
        lack: Lack,
    },
    /// The opener failed, the source ended, or it was judged too slow.
    Lost {
        attempt: Attempt,
        failure: Failure,
    },
    Switch(SwitchTarget),
    /// The time of [`super::Playout::deadline`] has come. An earlier tick has no effect.
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
    pub(super) fn attempt(&self) -> Option<Attempt> {
        match self {
            Self::Granted { attempt, .. }
            | Self::Full { attempt }
            | Self::Opened { attempt }
            | Self::Ready { attempt }
            | Self::Playing { attempt }
            | Self::Silent { attempt }
            | Self::Resumed { attempt }
            | Self::Lacks { attempt, .. }
            | Self::Complete { attempt, .. }
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
    /// Open this candidate with the lease just granted; with `patience` if no other candidate could use the time.
    Open { attempt: Attempt, index: usize, patience: Option<Patience> },
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
    /// The source that plays is given up, because it lacks this part and another one may have it.
    LeftLacking { index: usize, lack: Lack },
    /// The source that plays lacks this part, and plays on because no other one can help.
    PlaysLacking { index: usize, lack: Lack },
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
