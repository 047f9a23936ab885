//! One slot table: the leases and waiting requests of all nodes in pools that share limits.
//!
//! Each node keeps its own leases and requests, and the newest table that it has seen. It computes the table that
//! should follow, and swaps it in. Only the success of the swap grants a lease; a conflict means that the table was
//! not the newest, so it is read and computed again.
//!
//! ```text
//!   Asking ──▶ Granting ──▶ Held ──▶ Closing ──▶ Returned      the own view of a lease
//!   waiter     (unknown)    held     closing     cooling       its place in the table
//! ```
//!
//! - A write whose outcome is unknown is settled by the first table with a higher revision than it expected: by then it
//!   was applied, or never will be. If the entry is there, the node adopts it, else it asks again.
//! - An own entry without a lease, such as that of a request that was cancelled in the meantime, is removed.
//! - Entries of ended incarnations cool; any node may write that. A node grants a cooling slot only after it has itself
//!   seen the entry for the whole time, so clocks are never compared. The panel of an account may shorten that time, see
//!   [`super::panel_count`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::member::Member;
use super::outbox::{NodeEffect, Outbox, next_after};
use super::record::{
    ClusterRecord, CoolingReason, Incarnation, LeaseId, PoolId, PoolTable, RecordKey, Revision, SlotEntry,
    SlotPurpose, SlotState, Waiter,
};
use super::rules::{CRASH_COOLING, ClusterRule, PANEL_COOLING_MIN, WAITERS_MAX, YIELD_TIMEOUT};
use super::tracked::{Tracked, WriteResult};
use super::{BootTime, SwapOutcome, WriteNumber};
use crate::limits::{self, HeldSlot, LimitScope, SlotDecision, SlotDemand};
use crate::plan::SlotPool;

/// Stands for the holders of other nodes, which are never the requester.
const FOREIGN_HOLDER: u64 = u64::MAX;

/// A request for the first free slot of some candidates, all of which belong to one slot table.
#[derive(Debug, Clone)]
pub struct SlotRequest {
    /// The pools of the candidates, best first. At least one limit applies to each: an unlimited pool needs no lease of
    /// the cluster.
    pub order: Arc<[SlotPool]>,
    /// The live channel or session that asks. A slot that it returns itself is worth waiting for.
    pub holder: u64,
    pub purpose: SlotPurpose,
    pub wait: SlotWait,
    /// Time at which the request is refused.
    pub until: BootTime,
}

/// The slots that a request waits for if none is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotWait {
    /// A slot that its holder is returning itself.
    OwnReturn,
    /// Slots that are being returned, or that cool.
    Returns,
    /// Also slots in use. Their holders are asked to yield.
    Others,
}

/// A slot table, as one node sees it.
#[derive(Debug, Clone)]
pub struct Slots {
    id: PoolId,
    table: Tracked<PoolTable>,
    /// The leases and requests of this process, by number.
    leases: BTreeMap<u64, OwnLease>,
    /// The cooling entries, with the times at which their slots become free for this node.
    cooling: BTreeMap<(LeaseId, CoolingReason), CoolingEntry>,
    /// Time before which requests wait, because a pause has just ended.
    grant_at: Option<BootTime>,
    /// The first write since the engine has restarted. If one is applied, the entries of all leases are written again.
    confirm_from: WriteNumber,
}

#[derive(Debug, Clone, Copy)]
struct CoolingEntry {
    /// Time at which this node saw it first.
    since: BootTime,
    release_delay: Duration,
    until: BootTime,
    is_own: bool,
}

#[derive(Debug, Clone)]
struct OwnLease {
    request: SlotRequest,
    /// The incarnation for which it was granted. None for requests.
    incarnation: Incarnation,
    stage: Stage,
    /// The engine has restarted, and may have lost the entry. If it is not confirmed by this time, the source closes.
    confirm_by: Option<BootTime>,
}

#[derive(Debug, Clone)]
enum Stage {
    /// Not granted.
    Asking {
        /// Leases whose holders were asked to yield. Bounded by the entries of the table.
        asked: BTreeSet<LeaseId>,
        /// The holder that has not answered yet, and the time at which the next one is asked.
        asking: Option<(LeaseId, BootTime)>,
    },
    /// The entry was written, and the outcome is unknown. The write expected this revision.
    Granting {
        index: usize,
        expected: Revision,
    },
    Held {
        index: usize,
    },
    Closing {
        index: usize,
    },
    /// The connection is closed. Kept for as long as the slot cools, in case that the engine loses the entry.
    Returned {
        index: usize,
        until: BootTime,
    },
}

impl Stage {
    fn new() -> Self {
        Self::Asking { asked: BTreeSet::new(), asking: None }
    }
}

/// The table that should follow, and the reasons to write it.
struct Proposal {
    table: PoolTable,
    granted: Vec<(u64, usize)>,
    refused: Vec<u64>,
    must_write: bool,
}

impl Slots {
    pub(super) fn new(id: PoolId, out: &Outbox) -> Self {
        Self {
            id,
            table: Tracked::new(RecordKey::Pool(id), out),
            leases: BTreeMap::new(),
            cooling: BTreeMap::new(),
            grant_at: None,
            confirm_from: 0,
        }
    }

    /// Returns the newest table that was seen, with its revision.
    pub fn view(&self) -> Option<&(Revision, PoolTable)> {
        self.table.view()
    }

    /// Returns whether a lease is held and confirmed: its connection may be open.
    pub fn holds(&self, lease: u64) -> bool {
        self.leases.get(&lease).is_some_and(|it| matches!(it.stage, Stage::Held { .. }))
    }

    /// Returns whether any connection may be open.
    pub(super) fn has_open(&self) -> bool {
        self.leases.values().any(|it| matches!(it.stage, Stage::Held { .. } | Stage::Closing { .. }))
    }

    /// Adds a request. Its number is chosen by the caller and never reused by the process.
    pub(super) fn ask(&mut self, lease: u64, request: SlotRequest, member: &Member, out: &mut Outbox) {
        let incarnation = Incarnation::default();
        let asking = OwnLease { request, incarnation, stage: Stage::new(), confirm_by: None };
        self.leases.insert(lease, asking);
        self.advance(member, out);
    }

    /// Cancels a request. If its lease was granted, the entry is removed again; its connection was never opened.
    pub(super) fn cancel(&mut self, lease: u64, member: &Member, out: &mut Outbox) {
        let is_asking = |it: &mut OwnLease| matches!(it.stage, Stage::Asking { .. } | Stage::Granting { .. });
        if self.leases.get_mut(&lease).is_some_and(is_asking) {
            self.leases.remove(&lease);
            self.advance(member, out);
        }
    }

    /// Notes that the connection of a lease is being closed.
    pub(super) fn closing(&mut self, lease: u64, member: &Member, out: &mut Outbox) {
        if let Some(it) = self.leases.get_mut(&lease)
            && let Stage::Held { index } = it.stage
        {
            it.stage = Stage::Closing { index };
            self.advance(member, out);
        }
    }

    /// Notes that the connection of a lease is closed.
    pub(super) fn returned(&mut self, lease: u64, member: &Member, out: &mut Outbox) {
        let Some(it) = self.leases.get_mut(&lease) else { return };
        let (Stage::Held { index } | Stage::Closing { index }) = it.stage else { return };
        if member.active(out.now) == Some(it.incarnation) {
            it.stage = Stage::Returned { index, until: out.now + it.request.order[index].release_delay };
        } else {
            // The entry ends with its incarnation.
            self.leases.remove(&lease);
        }
        self.advance(member, out);
    }

    /// Notes that a holder that was asked to yield keeps its lease.
    pub(super) fn kept(&mut self, asked_by: u64, by: LeaseId, member: &Member, out: &mut Outbox) {
        if let Some(OwnLease { stage: Stage::Asking { asking, .. }, .. }) = self.leases.get_mut(&asked_by)
            && asking.is_some_and(|it| it.0 == by)
        {
            *asking = None;
            self.advance(member, out);
        }
    }

    /// Notes that nobody watches the source of a holder any more that kept its lease: it can be asked again.
    pub(super) fn lingering(&mut self, asked_by: u64, by: LeaseId, member: &Member, out: &mut Outbox) {
        if let Some(OwnLease { stage: Stage::Asking { asked, .. }, .. }) = self.leases.get_mut(&asked_by)
            && asked.remove(&by)
        {
            self.advance(member, out);
        }
    }

    /// Notes that the panel shows that the connections of these lost leases are gone. Their slots cool for
    /// [`PANEL_COOLING_MIN`] or the release delay only, counted from when this node saw them cooling.
    pub(super) fn connections_gone(&mut self, gone: &BTreeSet<LeaseId>, member: &Member, out: &mut Outbox) {
        for ((lease, reason), it) in &mut self.cooling {
            if *reason == CoolingReason::Lost && gone.contains(lease) {
                it.until = it.until.min(it.since + it.release_delay.max(PANEL_COOLING_MIN));
            }
        }
        self.advance(member, out);
    }

    /// Ends all requests, and forgets the leases, which are counted by another process of this node from now on. Those
    /// that are closing because the incarnation is over stay.
    pub(super) fn hand_over(&mut self, member: &Member, out: &mut Outbox) {
        let pool = self.id;
        let is_over = member.is_closing();
        self.leases.retain(|&lease, it| match it.stage {
            Stage::Asking { .. } | Stage::Granting { .. } => {
                out.push(NodeEffect::Refused { pool, lease });
                false
            }
            Stage::Closing { .. } => is_over,
            Stage::Held { .. } | Stage::Returned { .. } => false,
        });
    }

    /// Returns whether a lease has a counted entry in the newest table, which is read if it is not known.
    pub(super) fn has_entry(&mut self, lease: LeaseId, out: &mut Outbox) -> bool {
        let is_entry = |it: &SlotEntry| it.lease == lease && !matches!(it.state, SlotState::Cooling(_));
        self.table.is_known_or_read(out)
            && self.table.view().is_some_and(|it| it.1.entries.iter().any(is_entry))
    }

    /// Closes all sources, because the incarnation is over.
    pub(super) fn lost(&mut self, out: &mut Outbox) {
        let pool = self.id;
        self.leases.retain(|&lease, it| match it.stage {
            Stage::Held { index } => {
                it.stage = Stage::Closing { index };
                out.push(NodeEffect::Close { pool, lease });
                true
            }
            Stage::Granting { .. } => {
                out.push(NodeEffect::Refused { pool, lease });
                false
            }
            Stage::Asking { .. } | Stage::Closing { .. } => true,
            Stage::Returned { .. } => false,
        });
    }

    /// Notes that the engine has restarted, and may have lost entries. Leases stay valid until `confirm_by`, the
    /// deadline that follows from renewals before; by then they must be in the table again.
    pub(super) fn restarted(&mut self, confirm_by: Option<BootTime>, out: &Outbox) {
        self.table.restarted(out);
        self.confirm_from = out.next_write();
        self.cooling.clear();
        for it in self.leases.values_mut() {
            match it.stage {
                Stage::Asking { .. } | Stage::Granting { .. } => it.stage = Stage::new(),
                _ if out.rules.hold(ClusterRule::RegisterAgain) => {
                    it.confirm_by = it.confirm_by.or(confirm_by);
                }
                _ => {}
            }
        }
    }

    /// Processes a table that was read or watched. It may be stale.
    pub(super) fn seen(
        &mut self,
        revision: Revision,
        table: Option<PoolTable>,
        member: &Member,
        out: &mut Outbox,
    ) {
        if self.table.seen(revision, table, out) {
            self.settle(out);
        }
        self.advance(member, out);
    }

    pub(super) fn read_failed(&mut self, out: &Outbox) {
        self.table.read_failed(out);
    }

    /// Settles what was unknown, after a newer table was seen.
    fn settle(&mut self, out: &mut Outbox) {
        let Some((revision, table)) = self.table.view() else { return };
        let (pool, process) = (self.id, out.process);
        for (&lease, it) in &mut self.leases {
            let is_entry = |entry: &&SlotEntry| {
                entry.lease == LeaseId { process, number: lease } && entry.incarnation == it.incarnation
            };
            let entry = table.entries.iter().find(is_entry);
            let is_counted = entry.is_some_and(|it| !matches!(it.state, SlotState::Cooling(_)));
            match it.stage {
                Stage::Granting { index, expected } if expected < *revision => {
                    if is_counted {
                        it.stage = Stage::Held { index };
                        out.push(NodeEffect::Granted { pool, lease, index });
                    } else {
                        it.stage = Stage::new();
                    }
                }
                // Nobody removes the entry of a valid lease. So the lease is not valid.
                Stage::Held { index }
                    if !is_counted
                        && it.confirm_by.is_none()
                        && out.rules.hold(ClusterRule::RegisterAgain)
                        && out.rules.hold(ClusterRule::GrantBySwap)
                        && out.rules.hold(ClusterRule::TimeOutIsNoSuccess) =>
                {
                    it.stage = Stage::Closing { index };
                    out.push(NodeEffect::Close { pool, lease });
                }
                _ => {}
            }
        }
    }

    /// Processes the outcome of a write of this table.
    pub(super) fn written(
        &mut self,
        number: WriteNumber,
        outcome: SwapOutcome,
        member: &Member,
        out: &mut Outbox,
    ) {
        // Also if its table was seen before its answer.
        if matches!(outcome, SwapOutcome::Applied(_)) && number >= self.confirm_from {
            self.leases.values_mut().for_each(|it| it.confirm_by = None);
        }
        match self.table.written(number, outcome, out) {
            WriteResult::Applied => self.settle(out),
            WriteResult::Unknown => self.misread_time_out(out),
            WriteResult::Conflict | WriteResult::Settled => {}
        }
        self.advance(member, out);
    }

    /// Draws a wrong conclusion from a time-out, if the model says so.
    fn misread_time_out(&mut self, out: &mut Outbox) {
        let pool = self.id;
        let granting = self.leases.iter().filter_map(|(&lease, it)| match it.stage {
            Stage::Granting { index, .. } => Some((lease, index)),
            _ => None,
        });
        for (lease, index) in granting.collect::<Vec<_>>() {
            if !out.rules.hold(ClusterRule::TimeOutIsNoFailure) {
                self.leases.remove(&lease);
                out.push(NodeEffect::Refused { pool, lease });
            } else if !out.rules.hold(ClusterRule::TimeOutIsNoSuccess)
                && let Some(it) = self.leases.get_mut(&lease)
            {
                it.stage = Stage::Held { index };
                out.push(NodeEffect::Granted { pool, lease, index });
            }
        }
    }

    /// Does what is due now.
    pub(super) fn advance(&mut self, member: &Member, out: &mut Outbox) {
        self.check_times(out);
        let may_write = self.table.is_known_or_read(out) && self.table.can_write(out);
        if !may_write || !member.is_registered() {
            return;
        }
        let Some(incarnation) = member.active(out.now) else { return };
        let Some(Proposal { table, granted, refused, must_write }) = self.proposal(incarnation, member, out)
        else {
            return;
        };
        let pool = self.id;
        for lease in refused {
            self.leases.remove(&lease);
            out.push(NodeEffect::Refused { pool, lease });
        }
        let Some(expected) = self.table.view().map(|it| it.0) else { return };
        for (lease, index) in granted {
            let Some(it) = self.leases.get_mut(&lease) else { continue };
            it.incarnation = incarnation;
            it.stage = Stage::Granting { index, expected };
            if !out.rules.hold(ClusterRule::GrantBySwap) {
                it.stage = Stage::Held { index };
                out.push(NodeEffect::Granted { pool, lease, index });
            }
        }
        self.ask_to_yield(&table, out);
        if must_write {
            // A repeated write expects the same revision; it settles together with the first one.
            self.table.write(table, ClusterRecord::Pool, out);
        }
    }

    /// Ends requests and unconfirmed leases whose time is over.
    fn check_times(&mut self, out: &mut Outbox) {
        let (pool, now) = (self.id, out.now);
        self.leases.retain(|&lease, it| match it.stage {
            Stage::Asking { .. } if now >= it.request.until => {
                out.push(NodeEffect::Refused { pool, lease });
                false
            }
            Stage::Held { index } if it.confirm_by.is_some_and(|at| now >= at) => {
                it.stage = Stage::Closing { index };
                out.push(NodeEffect::Close { pool, lease });
                true
            }
            _ => true,
        });
    }

    /// Computes the table that should follow. `None`: there is nothing to do.
    fn proposal(&mut self, incarnation: Incarnation, member: &Member, out: &Outbox) -> Option<Proposal> {
        let table = self.table.view()?.1.clone();
        let must_write = self.leases.values().any(|it| it.confirm_by.is_some());
        let mut proposal = Proposal { table, granted: Vec::new(), refused: Vec::new(), must_write };
        let has_requests = self.leases.values().any(|it| matches!(it.stage, Stage::Asking { .. }));
        end_incarnations(&mut proposal, has_requests, member, out);
        end_predecessor(&mut proposal, member, out);
        self.put_own_entries(&mut proposal, incarnation, out);
        self.remove_cooled(&mut proposal, out);
        let table = self.table.view().map(|it| &it.1);
        self.leases.retain(|number, it| match it.stage {
            Stage::Returned { until, .. } => {
                let is_lease = |it: &SlotEntry| it.lease == LeaseId { process: out.process, number: *number };
                let is_done = |it: &SlotEntry| !is_lease(it) || matches!(it.state, SlotState::Cooling(_));
                it.confirm_by.is_some()
                    || out.now < until
                    || !table.is_none_or(|it| it.entries.iter().all(is_done))
            }
            _ => true,
        });
        self.remove_waiters(&mut proposal, member, out);
        let longest =
            self.leases.values().flat_map(|it| it.request.order.iter()).map(|it| it.release_delay).max();
        self.grant_at = member.resumed_at().map(|it| it + longest.unwrap_or_default());
        if member.may_grant(out.now) && self.grant_at.is_none_or(|it| out.now >= it) {
            self.grant(&mut proposal, incarnation, out);
        }
        Some(proposal)
    }

    /// Makes the entries of this incarnation follow its leases.
    fn put_own_entries(&self, proposal: &mut Proposal, incarnation: Incarnation, out: &Outbox) {
        let rules = out.rules;
        let cools = |it: &OwnLease, index: usize| {
            !it.request.order[index].release_delay.is_zero() && rules.hold(ClusterRule::CoolingAfterReturn)
        };
        // The state that an entry should have; `None`: it should not be in the table.
        let target = |it: &OwnLease| match it.stage {
            Stage::Asking { .. } => None,
            Stage::Granting { .. } | Stage::Held { .. } => Some(SlotState::Held),
            Stage::Closing { .. } => rules.hold(ClusterRule::ClosingCounts).then_some(SlotState::Closing),
            Stage::Returned { index, .. } => {
                cools(it, index).then_some(SlotState::Cooling(CoolingReason::Closed))
            }
        };
        let mut present = BTreeSet::new();
        proposal.table.entries.retain_mut(|entry| {
            if entry.lease.process != out.process || entry.incarnation != incarnation {
                return true;
            }
            present.insert(entry.lease.number);
            if matches!(entry.state, SlotState::Cooling(_)) {
                return true;
            }
            let lease = self.leases.get(&entry.lease.number);
            if lease.is_none() && !rules.hold(ClusterRule::TimeOutIsNoFailure) {
                return true;
            }
            let target = lease.and_then(&target);
            proposal.must_write |= target != Some(entry.state);
            entry.state = target.unwrap_or(entry.state);
            target.is_some()
        });
        for (number, it) in &self.leases {
            let is_new = matches!(it.stage, Stage::Granting { .. });
            if it.incarnation == incarnation
                && !present.contains(number)
                && (is_new || it.confirm_by.is_some())
                && let Some(state) = target(it)
            {
                proposal.table.entries.push(it.entry(*number, state, out));
                proposal.must_write = true;
            }
        }
    }

    /// Removes the entries that this node has seen cooling for long enough.
    fn remove_cooled(&mut self, proposal: &mut Proposal, out: &Outbox) {
        let mut seen = BTreeSet::new();
        let cooling = &mut self.cooling;
        let has_requests = self.leases.values().any(|it| matches!(it.stage, Stage::Asking { .. }));
        proposal.table.entries.retain(|entry| {
            let SlotState::Cooling(reason) = entry.state else { return true };
            let release_delay = Duration::from_millis(u64::from(entry.release_delay_ms));
            let wait = match reason {
                CoolingReason::Lost if out.rules.hold(ClusterRule::CoolingAfterCrash) => {
                    let own = entry.crash_cooling_ms.map(|it| Duration::from_millis(it.into()));
                    release_delay.max(own.unwrap_or(CRASH_COOLING))
                }
                _ => release_delay,
            };
            let is_own = entry.node == out.node;
            let trusts = !is_own && !out.rules.hold(ClusterRule::CoolingSeenByItself);
            let until = if trusts { out.now } else { out.now + wait };
            let key = (entry.lease, reason);
            seen.insert(key);
            let new = CoolingEntry { since: out.now, release_delay, until, is_own };
            let is_cooling = out.now < cooling.entry(key).or_insert(new).until;
            proposal.must_write |= !is_cooling && (is_own || has_requests);
            is_cooling
        });
        cooling.retain(|key, _| seen.contains(key));
    }

    /// Removes the waiters of ended incarnations, and own ones that no longer wait.
    fn remove_waiters(&self, proposal: &mut Proposal, member: &Member, out: &Outbox) {
        let waits =
            |number| self.leases.get(&number).is_some_and(|it| matches!(it.stage, Stage::Asking { .. }));
        let Proposal { table, must_write, .. } = proposal;
        table.waiters.retain(|it| {
            let is_over = member.ending_of(it.node, it.incarnation, out.node).is_some();
            let is_ended = is_over && out.rules.hold(ClusterRule::RemoveEndedWaiters);
            let is_own = it.lease.process == out.process;
            let stays = !is_ended && (!is_own || waits(it.lease.number));
            *must_write |= !stays && (is_own || !self.leases.is_empty());
            stays
        });
    }

    /// Grants own requests the slots that are free, in the order of arrival, and lets the others wait.
    fn grant(&self, proposal: &mut Proposal, incarnation: Incarnation, out: &Outbox) {
        let is_asking =
            |number: &u64| self.leases.get(number).is_some_and(|it| matches!(it.stage, Stage::Asking { .. }));
        let own = proposal.table.waiters.iter().filter(|it| it.lease.process == out.process);
        let mut order: Vec<u64> = own.map(|it| it.lease.number).filter(is_asking).collect();
        let new = self.leases.keys().copied().filter(|it| is_asking(it) && !order.contains(it));
        order.extend(new.collect::<Vec<_>>());
        for number in order {
            let Some(it) = self.leases.get(&number) else { continue };
            let id = LeaseId { process: out.process, number };
            let place = proposal.table.waiters.iter().position(|it| it.lease == id);
            let held = self.held(&proposal.table, place, out);
            let decision = limits::decide_slot(&it.demands(), &held, it.request.holder);
            let is_own_return = |slot: &HeldSlot| slot.closing && slot.holder == Some(it.request.holder);
            let comes_back = decision != SlotDecision::Full;
            let may_wait = match it.request.wait {
                SlotWait::Others => true,
                SlotWait::Returns => comes_back,
                // Once it waits, the slot may cool.
                SlotWait::OwnReturn => comes_back && (place.is_some() || held.iter().any(is_own_return)),
            };
            match decision {
                SlotDecision::Grant(index) => {
                    let granted = OwnLease { incarnation, stage: Stage::Held { index }, ..it.clone() };
                    proposal.table.entries.push(granted.entry(number, SlotState::Held, out));
                    proposal.table.waiters.retain(|it| it.lease != id);
                    proposal.granted.push((number, index));
                    proposal.must_write = true;
                }
                SlotDecision::Wait(_) | SlotDecision::Full if !may_wait => proposal.refused.push(number),
                SlotDecision::Wait(_) | SlotDecision::Full if place.is_some() => {}
                SlotDecision::Wait(_) | SlotDecision::Full => {
                    if proposal.table.waiters.len() >= WAITERS_MAX {
                        proposal.refused.push(number);
                        continue;
                    }
                    let profiles = it.request.order.iter().map(|it| (it.profile, it.account)).collect();
                    proposal.table.waiters.push(Waiter { lease: id, node: out.node, incarnation, profiles });
                    proposal.must_write = true;
                }
            }
        }
        proposal
            .table
            .waiters
            .retain(|it| it.lease.process != out.process || !proposal.refused.contains(&it.lease.number));
    }

    /// Returns the slots that count against a request at this place among the waiters: all entries, and one slot of
    /// each profile for which an earlier request waits.
    fn held(&self, table: &PoolTable, place: Option<usize>, out: &Outbox) -> Vec<HeldSlot> {
        let entry = |it: &SlotEntry| {
            let own = self.leases.get(&it.lease.number).filter(|_| it.lease.process == out.process);
            let holder = own.map_or(FOREIGN_HOLDER, |it| it.request.holder);
            let holder = (!matches!(it.state, SlotState::Cooling(_))).then_some(holder);
            HeldSlot {
                pool: it.profile,
                scope: LimitScope::Unknown,
                account: it.account,
                holder,
                closing: it.state != SlotState::Held,
            }
        };
        let waiting = |(pool, account)| HeldSlot {
            pool,
            scope: LimitScope::Unknown,
            account,
            holder: Some(FOREIGN_HOLDER),
            closing: false,
        };
        let earlier = &table.waiters[..place.unwrap_or(table.waiters.len())];
        let mut held: Vec<_> = table.entries.iter().map(entry).collect();
        for it in earlier {
            let mut profiles = it.profiles.clone();
            profiles.sort_unstable();
            profiles.dedup();
            held.extend(profiles.into_iter().map(waiting));
        }
        held
    }

    /// Asks holders to yield for each waiting request: one at a time, so that no more slots are given up than needed.
    fn ask_to_yield(&mut self, table: &PoolTable, out: &mut Outbox) {
        let holders: BTreeMap<u64, u64> =
            self.leases.iter().map(|(number, it)| (*number, it.request.holder)).collect();
        let process = out.process;
        for waiter in table.waiters.iter().filter(|it| it.lease.process == process) {
            let Some(it) = self.leases.get_mut(&waiter.lease.number) else { continue };
            let Stage::Asking { asked, asking } = &mut it.stage else { continue };
            let is_held = |id| table.entries.iter().any(|it| it.lease == id && it.state == SlotState::Held);
            if asking.is_some_and(|(id, until)| out.now < until && is_held(id))
                || it.request.wait != SlotWait::Others
            {
                continue;
            }
            let request = &it.request;
            let could_yield = |entry: &&SlotEntry| {
                let is_own_holder = entry.lease.process == process
                    && holders.get(&entry.lease.number) == Some(&request.holder);
                let shares = |pool: &SlotPool| {
                    let is_in_group =
                        pool.shared.as_ref().is_some_and(|it| it.accounts.contains(&entry.account));
                    pool.profile == entry.profile || is_in_group
                };
                let is_new = !asked.contains(&entry.lease);
                entry.state == SlotState::Held && is_new && !is_own_holder && request.order.iter().any(shares)
            };
            let next = table.entries.iter().find(could_yield).map(|it| (it.node, it.lease));
            *asking = next.map(|it| (it.1, out.now + YIELD_TIMEOUT));
            if let Some((node, lease)) = next {
                asked.insert(lease);
                let asked_by = waiter.lease.number;
                out.push(NodeEffect::AskToYield { node, pool: self.id, lease, asked_by });
            }
        }
    }

    /// Returns when [`Self::advance`] has to be called next.
    pub(super) fn deadline(&self, now: BootTime) -> Option<BootTime> {
        let has_requests = self.leases.values().any(|it| matches!(it.stage, Stage::Asking { .. }));
        let cooling = self.cooling.values().filter(|it| it.is_own || has_requests).map(|it| it.until);
        let leases = self.leases.values().flat_map(|it| {
            let of_stage = match &it.stage {
                Stage::Asking { asking, .. } => [Some(it.request.until), asking.map(|it| it.1)],
                Stage::Returned { until, .. } => [Some(*until), None],
                _ => [None, None],
            };
            of_stage.into_iter().flatten().chain(it.confirm_by)
        });
        let grant_at = self.grant_at.filter(|_| has_requests);
        next_after(now, self.table.retries().chain(cooling).chain(leases).chain(grant_at))
    }
}

impl OwnLease {
    /// Returns its candidate's index; that of a request is not known yet.
    fn index(&self) -> usize {
        match self.stage {
            Stage::Asking { .. } => 0,
            Stage::Granting { index, .. }
            | Stage::Held { index }
            | Stage::Closing { index }
            | Stage::Returned { index, .. } => index,
        }
    }

    fn entry(&self, number: u64, state: SlotState, out: &Outbox) -> SlotEntry {
        let pool = &self.request.order[self.index()];
        SlotEntry {
            lease: LeaseId { process: out.process, number },
            node: out.node,
            incarnation: self.incarnation,
            profile: pool.profile,
            account: pool.account,
            purpose: self.request.purpose,
            release_delay_ms: milliseconds(pool.release_delay),
            crash_cooling_ms: pool.crash_cooling.map(milliseconds),
            state,
        }
    }

    fn demands(&self) -> Vec<SlotDemand<'_>> {
        let pools = self.request.order.iter();
        let demands = pools.map(|it| SlotDemand {
            pool: it.profile,
            // Limits of a cluster are configured ones.
            scope: LimitScope::Unknown,
            max: it.max_streams,
            shared: it.shared.as_ref().map(|it| (&*it.accounts, it.max_streams)),
        });
        demands.collect()
    }
}

fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// Lets the entries of ended incarnations cool. A node with requests writes that, so that all see for what it waits.
fn end_incarnations(proposal: &mut Proposal, has_requests: bool, member: &Member, out: &Outbox) {
    for entry in &mut proposal.table.entries {
        if let Some(reason) = member.ending_of(entry.node, entry.incarnation, out.node)
            && ![SlotState::Cooling(reason), SlotState::Cooling(CoolingReason::Closed)].contains(&entry.state)
        {
            entry.state = SlotState::Cooling(reason);
            proposal.must_write |= has_requests || entry.node == out.node;
        }
    }
}

/// Lets the entries cool of connections that the process before this one has closed.
fn end_predecessor(proposal: &mut Proposal, member: &Member, out: &Outbox) {
    for entry in &mut proposal.table.entries {
        let is_own = entry.node == out.node && entry.lease.process != out.process;
        if is_own
            && !matches!(entry.state, SlotState::Cooling(_))
            && member.has_predecessor_closed(entry.incarnation, entry.lease, out)
        {
            entry.state = SlotState::Cooling(CoolingReason::Closed);
            proposal.must_write = true;
        }
    }
}
