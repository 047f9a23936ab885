//! The way from the machines of a node to its surroundings: effects, the numbers of writes, and the check that the
//! engine has lost nothing.

use uuid::Uuid;

use super::record::{
    ClusterRecord, Incarnation, JobName, LeaseId, NodeId, PoolId, ProcessId, RecordKey, Revision, SeatEnd,
};
use super::rules::ClusterRules;
use super::{BootTime, SwapOutcome, WriteNumber};
use crate::ids::UserId;

/// An instruction to the surroundings of a node. They carry out all of them in order; none of them waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeEffect {
    /// Read a record. Answered by `Seen` or `ReadFailed`.
    Read(RecordKey),
    /// Deliver all records anew, as after a new connection to the engine.
    ReadAll,
    /// Write a record if it has the expected revision. Answered by one `Written`.
    Write {
        key: RecordKey,
        number: WriteNumber,
        /// `None` writes in any case; only the model does that, to break a rule.
        expected: Option<Revision>,
        record: ClusterRecord,
    },
    /// The node is a member, with a new incarnation.
    Joined(Incarnation),
    /// The incarnation is over. A `Close` follows for each lease.
    Lost(Incarnation),
    /// Tell the process before this one that its incarnation is valid until this time.
    ProlongPredecessor {
        until: BootTime,
    },
    /// Let the process before this one close all its connections with leases.
    EndPredecessor,
    /// Close all connections with leases of this process, which was handed over, within 0.6 s. Answered by
    /// `HandedOverClosed`.
    CloseHandedOver,
    /// The lease is granted, for this index in the order of the request. Its connection may open now.
    Granted {
        pool: PoolId,
        lease: u64,
        index: usize,
    },
    /// No slot came free in time, or the request cannot wait.
    Refused {
        pool: PoolId,
        lease: u64,
    },
    /// Close the connection of this lease, within 0.6 s. Answered by `Returned`.
    Close {
        pool: PoolId,
        lease: u64,
    },
    /// Send a request to yield to the holder of a lease. Answered by `Kept`, by the return of the lease, or never.
    AskToYield {
        node: NodeId,
        pool: PoolId,
        lease: LeaseId,
        asked_by: u64,
    },
    /// Open a source for this channel, or continue with the present one, as its origin.
    Originate {
        channel: Uuid,
        epoch: u64,
    },
    /// Pull this channel from its origin. Answered by `Pulled` or `PullLost`. A source that plays continues until then.
    Pull {
        channel: Uuid,
        from: NodeId,
        epoch: u64,
    },
    /// Nobody plays this channel, or this node cannot reach its origin, and this node may not open it: ask a node that
    /// may. Not repeated until the origin changes.
    SeekOrigin {
        channel: Uuid,
        /// The epoch whose origin cannot be reached; `None`: no node is the origin.
        replaces: Option<u64>,
    },
    /// Drop the source of this channel, and return its lease.
    ReleaseSource {
        channel: Uuid,
    },
    /// Begin a job, or continue it with this fencing number, which its writes carry.
    RunJob {
        job: JobName,
        fence: Revision,
    },
    StopJob {
        job: JobName,
    },
    /// The session may begin.
    Seated {
        user: UserId,
        seat: u64,
        /// The engine has confirmed it. Otherwise it did not answer in time, and the limit may be exceeded.
        is_certain: bool,
    },
    /// All seats of the user are taken.
    NotSeated {
        user: UserId,
        seat: u64,
    },
    /// End the session. Answered by the return of its seat.
    EndSession {
        user: UserId,
        seat: u64,
        why: SeatEnd,
    },
}

/// Effects of the present step, and the writes without an outcome.
#[derive(Debug, Clone)]
pub(super) struct Outbox {
    pub(super) node: NodeId,
    pub(super) process: ProcessId,
    pub(super) rules: ClusterRules,
    pub(super) now: BootTime,
    /// The highest revision of any record that this node has seen, or of which another node has told.
    pub(super) highest: Revision,
    last_write: WriteNumber,
    /// The writes without an outcome, each with the value of `highest` when it was sent. Bounded by the number of
    /// records that this node writes.
    sent: Vec<(WriteNumber, Revision)>,
    pub(super) effects: Vec<NodeEffect>,
}

impl Outbox {
    pub(super) fn new(node: NodeId, process: ProcessId, rules: ClusterRules, now: BootTime) -> Self {
        let (highest, last_write) = (Revision::default(), 0);
        Self { node, process, rules, now, highest, last_write, sent: Vec::new(), effects: Vec::new() }
    }

    pub(super) fn push(&mut self, effect: NodeEffect) {
        self.effects.push(effect);
    }

    pub(super) fn read(&mut self, key: RecordKey) {
        self.push(NodeEffect::Read(key));
    }

    /// Returns the number that the next write will get.
    pub(super) fn next_write(&self) -> WriteNumber {
        self.last_write + 1
    }

    pub(super) fn write(
        &mut self,
        key: RecordKey,
        expected: Option<Revision>,
        record: ClusterRecord,
    ) -> WriteNumber {
        self.last_write += 1;
        let number = self.last_write;
        self.sent.push((number, self.highest));
        self.push(NodeEffect::Write { key, number, expected, record });
        number
    }

    /// Takes note of the outcome of a write. Returns true if it proves that the engine has lost writes: a new revision
    /// that is not higher than one that was seen before the write was sent.
    pub(super) fn is_rollback(&mut self, number: WriteNumber, outcome: SwapOutcome) -> bool {
        let Some(at) = self.sent.iter().position(|it| it.0 == number) else { return false };
        let (_, highest) = self.sent.swap_remove(at);
        let SwapOutcome::Applied(revision) = outcome else { return false };
        self.highest = self.highest.max(revision);
        revision <= highest
    }

    /// Forgets the revisions that were seen, because the engine counts from a lower one now.
    pub(super) fn restarted(&mut self) {
        self.highest = Revision::default();
        self.sent.clear();
    }
}

/// Returns the earliest of these times that is still to come.
pub(super) fn next_after(now: BootTime, times: impl Iterator<Item = BootTime>) -> Option<BootTime> {
    times.filter(|it| *it > now).min()
}
