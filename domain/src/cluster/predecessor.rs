//! The process before this one after a restart that keeps viewers, as the membership of the new process sees it.
//!
//! ```text
//!   Kept ── the incarnation of this process ends ──▶ Ending ── the next one begins ──▶ Over
//!     │                                                │                                 │
//!     └────────────────────────────────────────────────┴─────────────────────────────────┴──▶ Closed
//! ```
//!
//! While it is kept, the records of this node say that its incarnation is not over, so its leases count as they are. It
//! closes its connections at the deadline that it was told last. This process tells it a later one only after a
//! renewal, and only while all its leases are in their tables: after a restart of the engine that has lost one, nobody
//! could write it again.

use std::collections::BTreeMap;

use super::BootTime;
use super::outbox::{NodeEffect, Outbox};
use super::record::{Incarnation, LeaseId, MemberRecord, MemberState, PoolId, Revision};
use super::rules::ClusterRule;

/// The part of a process in the cluster that its successor takes over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberPredecessor {
    /// Its incarnation, which was valid.
    pub incarnation: Incarnation,
    /// The leases whose connections may be open, each with its table.
    pub leases: BTreeMap<LeaseId, PoolId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PredecessorState {
    Kept,
    /// It was asked to close its connections, and its deadline is not prolonged. Its incarnation is not over yet.
    Ending,
    /// Its incarnation is over, but it may still be closing connections.
    Over,
    Closed,
}

/// The process before this one.
#[derive(Debug, Clone)]
pub(super) struct Predecessor {
    incarnation: Incarnation,
    leases: BTreeMap<LeaseId, PoolId>,
    state: PredecessorState,
    /// The deadline that it was told last.
    valid_until: Option<BootTime>,
}

impl Predecessor {
    pub(super) fn new(parts: MemberPredecessor) -> Self {
        let MemberPredecessor { incarnation, leases } = parts;
        Self { incarnation, leases, state: PredecessorState::Kept, valid_until: None }
    }

    pub(super) fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Returns the leases that have to be in their tables.
    pub(super) fn leases(&self) -> impl Iterator<Item = (LeaseId, PoolId)> {
        let leases = self.leases.iter().filter(|_| self.state == PredecessorState::Kept);
        leases.map(|(lease, pool)| (*lease, *pool))
    }

    /// Returns whether it may have connections with leases.
    pub(super) fn has_leases(&self) -> bool {
        !self.leases.is_empty()
    }

    /// Returns whether its incarnation is to stay valid.
    pub(super) fn is_kept(&self) -> bool {
        self.state == PredecessorState::Kept
    }

    /// Returns whether it may have connections.
    pub(super) fn is_serving(&self) -> bool {
        self.state != PredecessorState::Closed
    }

    /// Returns whether the connection of a lease is closed that belongs to it, or to a process that was started after it
    /// and did not run.
    pub(super) fn has_closed(&self, incarnation: Incarnation, lease: LeaseId, out: &Outbox) -> bool {
        let is_closed = match self.state {
            PredecessorState::Kept | PredecessorState::Ending => !self.leases.contains_key(&lease),
            PredecessorState::Over => false,
            PredecessorState::Closed => true,
        };
        incarnation >= self.incarnation && (is_closed || !out.rules.hold(ClusterRule::PredecessorCounts))
    }

    /// Decides whether its incarnation can stay valid when this node becomes a member: only with the first record of
    /// this process, and if no other node has ended it.
    pub(super) fn join(
        &mut self,
        expected: Revision,
        before: Option<&MemberRecord>,
        last: Incarnation,
        out: &mut Outbox,
    ) {
        if !out.rules.hold(ClusterRule::KeepPredecessor) {
            self.state = PredecessorState::Closed;
        }
        let can_stay = |it: &MemberRecord| {
            let is_over = it.state != MemberState::Alive || it.over >= self.incarnation;
            // Otherwise the engine has lost its first record, and this process may get the same number.
            !is_over && self.incarnation <= it.incarnation_at(expected) && expected.0 >= self.incarnation.0
        };
        let stays = last == Incarnation::default() && before.is_some_and(can_stay);
        if self.is_serving() && !(stays && self.is_kept()) {
            self.end(out);
            self.state = PredecessorState::Over;
        }
    }

    /// Passes a deadline on to it.
    pub(super) fn prolong(&mut self, until: BootTime, out: &mut Outbox) {
        if self.is_kept() && self.valid_until.is_none_or(|it| it < until) {
            self.valid_until = Some(until);
            out.push(NodeEffect::ProlongPredecessor { until });
        }
    }

    /// Lets it close its connections. The message may be lost: its deadline ends them in any case.
    pub(super) fn end(&mut self, out: &mut Outbox) {
        if self.is_kept() {
            self.state = PredecessorState::Ending;
            out.push(NodeEffect::EndPredecessor);
        }
    }

    /// Notes that the connection of a lease is closed. `None`: all are.
    pub(super) fn closed(&mut self, lease: Option<LeaseId>) {
        match lease {
            Some(lease) => drop(self.leases.remove(&lease)),
            None => {
                self.leases.clear();
                self.state = PredecessorState::Closed;
            }
        }
    }

    /// Returns `over`, `closed_after` and `closed` of a renewal of this incarnation, after the record `before`. `None`:
    /// as without a predecessor.
    pub(super) fn endings(
        &self,
        incarnation: Incarnation,
        before: Option<&MemberRecord>,
    ) -> Option<[Incarnation; 3]> {
        match self.state {
            PredecessorState::Kept | PredecessorState::Ending => {
                let [after, closed] = before.map(|it| [it.closed_after, it.closed]).unwrap_or_default();
                Some([Incarnation(self.incarnation.0.saturating_sub(1)), after, closed])
            }
            PredecessorState::Closed => {
                let before = before.filter(|it| it.over < self.incarnation)?;
                // An incarnation that was lost before must not become one that was closed.
                let is_contiguous = before.closed_after < before.closed && before.closed == before.over;
                let after = if is_contiguous { before.closed_after } else { before.over };
                let over = Incarnation(incarnation.0 - 1);
                Some([over, after, over])
            }
            PredecessorState::Over => None,
        }
    }
}
