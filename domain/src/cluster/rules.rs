//! The times of the cluster, and switches by which the model breaks single rules on purpose.

use std::time::Duration;

/// Interval between renewals of a member's record.
pub const RENEW_INTERVAL: Duration = Duration::from_secs(3);

/// Time after the sending of the last confirmed renewal at which an incarnation ends. Longer than the engine needs to
/// replace a leader (4 to 7 s).
pub const DEADLINE: Duration = Duration::from_secs(15);

/// Time for which another node must have seen one revision of a member before it takes over. The difference to
/// [`DEADLINE`] covers the closing of connections (0.6 s) and clocks that differ by 10 % in both directions (3 s).
pub const TAKE_OVER: Duration = Duration::from_secs(20);

/// Longest time for the closing of all connections after the end of an incarnation.
pub const CLOSING: Duration = Duration::from_millis(600);

/// Time without a report after which the guard kills the process. If its deadline comes first, the guard waits for
/// [`CLOSING`] after that.
pub const GUARD: Duration = Duration::from_secs(10);

/// Time for which an entry of a lost node cools, unless its account has another one, or a longer release delay. A machine
/// without power sends no FIN, so the provider counts its connections until a time-out of its own.
pub const CRASH_COOLING: Duration = Duration::from_secs(30);

/// The shortest cooling of a lost entry when the panel of the account shows that its connection is gone.
pub const PANEL_COOLING_MIN: Duration = Duration::from_secs(5);

/// Time without grants after a restart of the engine, which may have lost records; a release delay follows. Nodes that
/// do not reach the engine within that time have passed their [`DEADLINE`].
pub const PAUSE: Duration = TAKE_OVER;

/// Interval between attempts to read or write again after an unknown outcome.
pub const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Longest time for which a request to yield waits for its answer before another holder is asked.
pub const YIELD_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum number of waiting requests in one slot table.
pub const WAITERS_MAX: usize = 64;

/// Time after which a user gets a seat although the engine has not confirmed it: limits of users hold only while the
/// engine answers.
pub const SEAT_ANSWER: Duration = Duration::from_secs(2);

/// Longest time for which the entry of a session that has ended stays. A player that changes the channel begins the next
/// session within it, and both are one write. Requests of other nodes wait longer for a seat.
pub const SEAT_RETURN: Duration = Duration::from_millis(100);

/// Maximum number of sessions in the record of one user.
pub const SEATS_MAX: usize = 256;

/// A rule that the model can break, to show that it notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClusterRule {
    /// A node renews only from its own last revision, and returns with a new incarnation.
    RenewFromOwnRevision,
    /// The deadline counts from the sending of a renewal, not from its confirmation.
    DeadlineFromSending,
    /// Sources close at the deadline.
    CloseAtDeadline,
    /// A member is taken over after 20 s, not 14 s.
    TakeOverAfter20s,
    /// A member is taken over by a swap of the revision that was seen, not by a plain write.
    TakeOverBySwap,
    /// An incarnation counts as closed only after a restart on the same boot.
    ClosedOnSameBoot,
    /// Returned slots cool for the release delay.
    CoolingAfterReturn,
    /// Slots of lost nodes cool for [`CRASH_COOLING`], or for the time of their account.
    CoolingAfterCrash,
    /// A node grants a cooling slot only after it has itself seen the entry that long.
    CoolingSeenByItself,
    /// An entry counts until its connection is closed.
    ClosingCounts,
    /// A grant needs a successful swap; what was read is not enough.
    GrantBySwap,
    /// A write that timed out may have been applied: its entry is looked for and removed.
    TimeOutIsNoFailure,
    /// A write that timed out may not have been applied: no source opens.
    TimeOutIsNoSuccess,
    /// Nobody grants for a while after a restart of the engine.
    PauseAfterRestart,
    /// A process that starts does not grant until a settled member has renewed, or for as long as the pause.
    PauseAtStart,
    /// Holders write their entries again after a restart of the engine.
    RegisterAgain,
    /// An owner of a channel or job changes by a successful swap only.
    OwnBySwap,
    /// Waiting requests of ended incarnations are removed.
    RemoveEndedWaiters,
    /// A process whose successor is a member closes its sources at the deadline that it knows.
    CloseHandedOver,
    /// The incarnation of a process that still serves viewers beside its successor is not over.
    KeepPredecessor,
    /// The successor prolongs that incarnation only while all its leases are in the tables.
    PredecessorIsRegistered,
    /// The leases of the predecessor count until it has closed their connections.
    PredecessorCounts,
    /// Clocks are monotonic. (Broken in the model's clocks.)
    MonotonicClock,
    /// Clocks count suspend. (Broken in the model's clocks.)
    SuspendCounts,
    /// A guard kills a frozen process. (Broken in the model's guard.)
    GuardKillsFrozen,
    /// The message of a guard ends the incarnation of its process only.
    GuardNamesProcess,
    /// A guard does not speak while the process before the guarded one may have connections with leases.
    GuardCountsPredecessor,
}

/// The rules of a node: all of them, unless the model breaks one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClusterRules {
    #[cfg(test)]
    pub(super) broken: Option<ClusterRule>,
}

impl ClusterRules {
    /// Returns whether a rule holds. Always, outside of the model.
    #[cfg(not(test))]
    pub(super) const fn hold(self, _: ClusterRule) -> bool {
        true
    }

    /// Returns whether a rule holds.
    #[cfg(test)]
    pub(super) fn hold(self, rule: ClusterRule) -> bool {
        self.broken != Some(rule)
    }
}
