//! Membership: the renewal of the own record, its deadline, and the take-over of members that no longer renew.
//!
//! ```text
//!             first record written               15 s after the sending of the last
//!   Joining ──────────────────────▶ Active ────── confirmed renewal, or expired ──────▶ Closing
//!      ▲                                                                                  │ all sources
//!      └──────────────────────────────────────────────────────────────────────────────────┤ are closed
//!                                                                Left ◀── Leaving ◀───────┘
//!   Active ── a process takes over that serves beside it ──▶ HandedOver ── deadline ──▶ Closing ──▶ Left
//! ```
//!
//! A renewal replaces the own last revision and nothing else. If it conflicts, the record is read: either an earlier
//! renewal without a known outcome was applied, which confirms it, or another node has swapped the record to `expired`.
//!
//! A restart that keeps viewers has two processes of one node: the old one is *handed over* and writes nothing any
//! more. The new one, see [`predecessor`](super::predecessor), writes records in which the incarnation of the old one is
//! not over, and passes on until when they are valid. So the leases of the old process count as they are, for all nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use super::outbox::{NodeEffect, Outbox, next_after};
use super::predecessor::{MemberPredecessor, Predecessor};
use super::record::{
    BootId, ClusterRecord, CoolingReason, Incarnation, LeaseId, MemberRecord, MemberState, NodeId, RecordKey,
    Revision,
};
use super::rules::{CLOSING, ClusterRule, DEADLINE, PAUSE, RENEW_INTERVAL, RETRY_INTERVAL, TAKE_OVER};
use super::{BootTime, SwapOutcome, WriteNumber};

/// The membership of this node, and its view of the others.
#[derive(Debug, Clone)]
pub struct Member {
    boot: BootId,
    phase: Phase,
    /// The own record that the next write replaces. `None`: it has to be read.
    base: Option<(Revision, Option<MemberRecord>)>,
    /// The newest own record, which tells which earlier incarnations are over.
    own: Option<MemberRecord>,
    writing: Option<(WriteNumber, MemberRecord)>,
    /// The last write conflicted, so there is a newer record than `base`.
    is_outdated: bool,
    is_reading: bool,
    read_at: BootTime,
    write_at: BootTime,
    /// Own writes that are not confirmed, with the times of their sending; none older than [`DEADLINE`].
    sent: Vec<(WriteNumber, BootTime)>,
    last_incarnation: Incarnation,
    /// Revision of the first record of this process.
    first_revision: Option<Revision>,
    /// The last write before the engine restarted, as far as this node knows. Later ones confirm that the node is
    /// registered again.
    last_before_restart: WriteNumber,
    is_registered: bool,
    pause: Option<Pause>,
    /// Time at which the last pause ended.
    resumed_at: Option<BootTime>,
    others: BTreeMap<NodeId, Watched>,
    /// The process before this one, if it served viewers when this one began.
    predecessor: Option<Predecessor>,
    /// Grows when an incarnation of any node ends or when grants become possible.
    version: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Joining,
    Active {
        incarnation: Incarnation,
        valid_until: BootTime,
    },
    /// Another process of this node renews the membership, and this one only serves its viewers.
    HandedOver {
        incarnation: Incarnation,
        valid_until: BootTime,
    },
    Closing {
        then: AfterClosing,
        since: BootTime,
    },
    Leaving,
    /// Also of a process that was handed over, after its sources are closed.
    Left,
}

/// The phase after all limited sources are closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterClosing {
    Join,
    Leave,
    /// The record belongs to another process.
    End,
}

/// A time without grants.
#[derive(Debug, Clone, Copy)]
struct Pause {
    /// `None`: it has not begun, because the engine has not answered yet.
    until: Option<BootTime>,
    /// The process has just started and remembers nothing. The pause ends as soon as a member that remembers the last
    /// 20 s shows that the engine has not restarted.
    is_of_start: bool,
}

/// Another member, as it was last seen.
#[derive(Debug, Clone)]
struct Watched {
    revision: Revision,
    record: MemberRecord,
    /// Time since which this revision is known.
    since: BootTime,
    taking_over: Option<(WriteNumber, MemberRecord)>,
    retry_at: BootTime,
}

impl Member {
    /// Creates the membership of a process that has just started. The programs of earlier processes of this boot have
    /// ended: their watchdogs end them with the process.
    pub(super) fn new(boot: BootId, predecessor: Option<MemberPredecessor>, out: &Outbox) -> Self {
        let is_paused = out.rules.hold(ClusterRule::PauseAtStart);
        Self {
            boot,
            phase: Phase::Joining,
            base: None,
            own: None,
            writing: None,
            is_outdated: false,
            is_reading: false,
            read_at: out.now,
            write_at: out.now,
            sent: Vec::new(),
            last_incarnation: Incarnation::default(),
            first_revision: None,
            last_before_restart: 0,
            is_registered: true,
            pause: is_paused.then_some(Pause { until: None, is_of_start: true }),
            resumed_at: None,
            others: BTreeMap::new(),
            predecessor: predecessor.map(Predecessor::new),
            version: 0,
        }
    }

    /// Returns the present incarnation, if it is valid.
    pub fn active(&self, now: BootTime) -> Option<Incarnation> {
        match self.phase {
            Phase::Active { incarnation, valid_until } if now < valid_until => Some(incarnation),
            _ => None,
        }
    }

    /// Returns the time at which the present incarnation ends, unless a renewal is confirmed.
    pub fn valid_until(&self) -> Option<BootTime> {
        match self.phase {
            Phase::Active { valid_until, .. } | Phase::HandedOver { valid_until, .. } => Some(valid_until),
            _ => None,
        }
    }

    /// Returns whether another process of this node is the member now, and this one may serve its viewers.
    pub fn is_handed_over(&self) -> bool {
        matches!(self.phase, Phase::HandedOver { .. })
    }

    /// Returns whether a lease of this node is one of the process before this one, or of a process between both, and
    /// its connection is closed.
    pub(super) fn has_predecessor_closed(
        &self,
        incarnation: Incarnation,
        lease: LeaseId,
        out: &Outbox,
    ) -> bool {
        self.predecessor.as_ref().is_some_and(|it| it.has_closed(incarnation, lease, out))
    }

    /// Returns whether an incarnation of this node is that of the process before this one, or of one between both.
    pub(super) fn is_of_predecessor(&self, incarnation: Incarnation) -> bool {
        self.predecessor.as_ref().is_some_and(|it| incarnation >= it.incarnation())
    }

    pub(super) fn predecessor(&self) -> Option<&Predecessor> {
        self.predecessor.as_ref()
    }

    /// Returns whether a renewal was confirmed since the engine restarted.
    pub fn is_registered(&self) -> bool {
        self.is_registered
    }

    /// Returns whether this node may grant itself slots.
    pub fn may_grant(&self, now: BootTime) -> bool {
        self.active(now).is_some() && self.is_registered && !self.is_paused(now)
    }

    /// Returns the time at which the last pause ended. A node that did not register again within the pause has closed
    /// its connections by then, but the provider counts them for another release delay.
    pub fn resumed_at(&self) -> Option<BootTime> {
        self.resumed_at
    }

    fn is_paused(&self, now: BootTime) -> bool {
        self.pause.is_some_and(|it| it.until.is_none_or(|it| now < it))
    }

    /// Returns how an incarnation of a node ended. `None`: it is not known to be over.
    pub fn ending_of(&self, node: NodeId, incarnation: Incarnation, me: NodeId) -> Option<CoolingReason> {
        let record = if node == me { self.own.as_ref() } else { self.others.get(&node).map(|it| &it.record) };
        record?.ending_of(incarnation)
    }

    /// Returns the time at which the guard must kill a process that has reported nothing since: it has not noticed its
    /// deadline, or has not closed its connections. `None`: it has no limited connections.
    pub(super) fn guard_at(&self) -> Option<BootTime> {
        match self.phase {
            Phase::Active { valid_until, .. } | Phase::HandedOver { valid_until, .. } => {
                Some(valid_until + CLOSING)
            }
            Phase::Closing { since, .. } => Some(since + CLOSING),
            Phase::Joining | Phase::Leaving | Phase::Left => None,
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing { .. })
    }

    /// Ends the incarnation at its deadline. Called first in each step, because a process may have been frozen.
    pub(super) fn check_deadline(&mut self, out: &mut Outbox) {
        let is_due = self.valid_until().is_some_and(|it| out.now >= it);
        let rule = match self.phase {
            Phase::HandedOver { .. } => ClusterRule::CloseHandedOver,
            _ => ClusterRule::CloseAtDeadline,
        };
        if is_due && out.rules.hold(rule) {
            self.lose(AfterClosing::Join, out);
        }
    }

    /// Leaves the record to another process of this node, which keeps the present incarnation valid. A last renewal
    /// gives that process the most time.
    pub(super) fn hand_over(&mut self, out: &mut Outbox) {
        match self.phase {
            Phase::Active { incarnation, valid_until } => {
                self.write_at = out.now;
                self.advance_own(out);
                self.phase = Phase::HandedOver { incarnation, valid_until };
            }
            Phase::Closing { since, .. } => self.phase = Phase::Closing { then: AfterClosing::End, since },
            Phase::Joining | Phase::Leaving => self.phase = Phase::Left,
            Phase::HandedOver { .. } | Phase::Left => {}
        }
        self.version += 1;
    }

    /// Notes that the other process has renewed the membership.
    pub(super) fn prolong(&mut self, until: BootTime) {
        if let Phase::HandedOver { valid_until, .. } = &mut self.phase {
            *valid_until = (*valid_until).max(until);
        }
    }

    /// Ends the incarnation of a process that was handed over before its deadline.
    pub(super) fn end_handed_over(&mut self, out: &mut Outbox) {
        if self.is_handed_over() {
            self.lose(AfterClosing::End, out);
        }
    }

    /// Passes on until when the incarnation of the predecessor is valid. All its leases are in the tables.
    pub(super) fn prolong_predecessor(&mut self, out: &mut Outbox) {
        if let Phase::Active { valid_until, .. } = self.phase
            && let Some(predecessor) = &mut self.predecessor
        {
            predecessor.prolong(valid_until, out);
        }
    }

    /// Lets the predecessor close its sources: its leases may be granted to others.
    pub(super) fn end_predecessor(&mut self, out: &mut Outbox) {
        if let Some(predecessor) = &mut self.predecessor {
            predecessor.end(out);
        }
    }

    /// Notes that the predecessor has closed the connection of a lease. `None`: all of them.
    pub(super) fn predecessor_closed(&mut self, lease: Option<LeaseId>, out: &Outbox) {
        if let Some(predecessor) = &mut self.predecessor {
            predecessor.closed(lease);
            self.version += 1;
            if lease.is_none() && matches!(self.phase, Phase::Leaving) {
                self.write_at = out.now;
            }
        }
    }

    /// Begins to leave the cluster.
    pub(super) fn leave(&mut self, out: &mut Outbox) {
        match self.phase {
            Phase::Active { .. } => self.lose(AfterClosing::Leave, out),
            Phase::Closing { then: AfterClosing::Join, since } => {
                self.phase = Phase::Closing { then: AfterClosing::Leave, since };
            }
            Phase::Joining => self.phase = Phase::Left,
            Phase::HandedOver { .. } => self.lose(AfterClosing::End, out),
            Phase::Closing { .. } | Phase::Leaving | Phase::Left => {}
        }
    }

    fn lose(&mut self, then: AfterClosing, out: &mut Outbox) {
        if let Phase::Active { incarnation, .. } | Phase::HandedOver { incarnation, .. } = self.phase {
            out.push(NodeEffect::Lost(incarnation));
        }
        let then = if self.is_handed_over() { AfterClosing::End } else { then };
        self.phase = Phase::Closing { then, since: out.now };
        // Nothing renews its incarnation until this node is a member again, which ends it.
        self.end_predecessor(out);
        self.base = None;
        self.is_outdated = false;
        self.sent.clear();
        self.version += 1;
    }

    /// Notes that all limited sources of the ended incarnation are closed.
    pub(super) fn closed(&mut self, out: &Outbox) {
        if let Phase::Closing { then, .. } = self.phase {
            self.phase = match then {
                AfterClosing::Join => Phase::Joining,
                AfterClosing::Leave => Phase::Leaving,
                AfterClosing::End => Phase::Left,
            };
            self.write_at = out.now;
            self.read_at = out.now;
        }
    }

    /// Notes that the engine has restarted, and may have lost records. Everything that was seen is doubtful: revisions
    /// may be lower now. Only the deadline stays, because it follows from the own clock.
    pub(super) fn restarted(&mut self, out: &Outbox) {
        if out.rules.hold(ClusterRule::PauseAfterRestart) {
            self.pause = Some(Pause { until: Some(out.now + PAUSE), is_of_start: false });
        }
        self.base = None;
        self.own = None;
        self.writing = None;
        self.is_outdated = false;
        self.is_reading = false;
        self.read_at = out.now;
        self.write_at = out.now;
        self.last_before_restart = out.next_write() - 1;
        self.is_registered = false;
        self.others.clear();
        self.version += 1;
    }

    /// Notes that the engine has answered. It may have restarted just before this process connected to it for the first
    /// time, so the pause of its start begins now.
    pub(super) fn heard(&mut self, out: &Outbox) {
        if let Some(Pause { until: until @ None, .. }) = &mut self.pause {
            *until = Some(out.now + PAUSE);
        }
    }

    /// Processes a member's record that was read or watched. It may be stale.
    pub(super) fn seen(
        &mut self,
        node: NodeId,
        revision: Revision,
        record: Option<MemberRecord>,
        out: &mut Outbox,
    ) {
        if node == out.node {
            self.is_reading = false;
            self.read_at = out.now + RETRY_INTERVAL;
            if !self.owns_record() {
                return;
            }
            let known = self.base.as_ref().map(|it| it.0);
            if known.is_none_or(|it| revision > it || self.is_outdated && revision < it) {
                self.seen_own(revision, record, out);
            }
        } else if let Some(record) = record {
            self.seen_other(node, revision, record, out);
        }
        self.advance(out);
    }

    /// Returns whether this process writes the record of the node, and not a successor.
    fn owns_record(&self) -> bool {
        !matches!(self.phase, Phase::HandedOver { .. } | Phase::Closing { then: AfterClosing::End, .. })
    }

    pub(super) fn read_failed(&mut self, node: NodeId, out: &Outbox) {
        if node == out.node {
            self.is_reading = false;
            self.read_at = out.now + RETRY_INTERVAL;
        }
    }

    fn seen_own(&mut self, revision: Revision, record: Option<MemberRecord>, out: &mut Outbox) {
        // A lower revision after a conflict is a stale read, or the engine has lost writes. A write from it tells: it
        // conflicts, or its revision proves the loss.
        let is_lower = self.base.as_ref().is_some_and(|it| revision < it.0);
        let is_first_look = self.base.is_none() || is_lower;
        self.is_outdated = false;
        self.writing = None;
        self.base = Some((revision, record.clone()));
        self.set_own(record.clone());
        let incarnation = record.as_ref().map(|it| it.incarnation_at(revision));
        let is_own =
            record.as_ref().is_some_and(|it| it.process == out.process && it.state == MemberState::Alive);
        match (self.phase, record) {
            (Phase::Joining, Some(record)) if is_own && self.has_sent(record.write) => {
                self.confirm(record.write, revision, out);
                return;
            }
            (Phase::Active { incarnation: present, .. }, Some(record)) => {
                if is_own && incarnation == Some(present) {
                    self.confirm(record.write, revision, out);
                    if !is_first_look {
                        return;
                    }
                } else if out.rules.hold(ClusterRule::RenewFromOwnRevision) {
                    // After a restart of the engine, an older record of this node is replaced. A newer one is the end.
                    let is_older = record.over < present && incarnation.is_some_and(|it| it <= present);
                    if !(is_first_look && is_older) {
                        self.lose(AfterClosing::Join, out);
                        self.base = Some((revision, Some(record)));
                    }
                }
            }
            (Phase::Leaving, Some(record))
                if record.process == out.process && record.state == MemberState::Left =>
            {
                self.phase = Phase::Left;
            }
            _ => {}
        }
        let wait = if is_lower { RETRY_INTERVAL } else { Duration::ZERO };
        self.write_at = self.write_at.min(out.now + wait);
    }

    fn set_own(&mut self, record: Option<MemberRecord>) {
        if self.own.as_ref().map(endings) != record.as_ref().map(endings) {
            self.version += 1;
        }
        self.own = record;
    }

    fn has_sent(&self, number: WriteNumber) -> bool {
        self.sent.iter().any(|it| it.0 == number)
    }

    /// Notes that a write of this process was applied.
    fn confirm(&mut self, number: WriteNumber, revision: Revision, out: &mut Outbox) {
        let Some(sent_at) = self.sent.iter().find(|it| it.0 == number).map(|it| it.1) else { return };
        self.sent.retain(|it| it.0 > number);
        if number > self.last_before_restart && !self.is_registered {
            self.is_registered = true;
            self.version += 1;
        }
        let from = if out.rules.hold(ClusterRule::DeadlineFromSending) { sent_at } else { out.now };
        match &mut self.phase {
            Phase::Active { valid_until, .. } | Phase::HandedOver { valid_until, .. } => {
                *valid_until = (*valid_until).max(from + DEADLINE);
            }
            Phase::Joining => {
                let Some((_, Some(record))) = &self.base else { return };
                let incarnation = record.incarnation_at(revision);
                self.phase = Phase::Active { incarnation, valid_until: from + DEADLINE };
                self.last_incarnation = incarnation;
                self.first_revision = self.first_revision.or(Some(revision));
                self.version += 1;
                out.push(NodeEffect::Joined(incarnation));
                self.check_deadline(out);
            }
            Phase::Closing { .. } | Phase::Leaving | Phase::Left => {}
        }
    }

    fn seen_other(&mut self, node: NodeId, revision: Revision, record: MemberRecord, out: &Outbox) {
        if self.others.get(&node).is_some_and(|it| revision <= it.revision) {
            return;
        }
        let is_after_start = self.first_revision.is_some_and(|it| revision > it);
        let knows = is_after_start && record.state == MemberState::Alive && record.settled;
        if knows && self.pause.take_if(|it| it.is_of_start).is_some() {
            self.resumed_at = Some(out.now);
            self.version += 1;
        }
        let taking_over = None;
        let seen = Watched { revision, record, since: out.now, taking_over, retry_at: out.now };
        let before = self.others.insert(node, seen);
        if before.is_none_or(|it| endings(&it.record) != endings(&self.others[&node].record)) {
            self.version += 1;
        }
    }

    /// Processes the outcome of a write of a member's record.
    pub(super) fn written(
        &mut self,
        node: NodeId,
        number: WriteNumber,
        outcome: SwapOutcome,
        out: &mut Outbox,
    ) {
        if node == out.node {
            self.written_own(number, outcome, out);
        } else {
            self.taken_over(node, number, outcome, out);
        }
        self.advance(out);
    }

    fn written_own(&mut self, number: WriteNumber, outcome: SwapOutcome, out: &mut Outbox) {
        let Some((_, record)) = self.writing.take_if(|it| it.0 == number) else { return };
        match outcome {
            // Sent before the record was left to another process.
            SwapOutcome::Applied(revision) if !self.owns_record() => self.confirm(number, revision, out),
            SwapOutcome::Applied(revision) => {
                let is_left = record.state == MemberState::Left;
                self.set_own(Some(record.clone()));
                self.base = Some((revision, Some(record)));
                if is_left {
                    self.phase = Phase::Left;
                } else {
                    self.confirm(number, revision, out);
                }
            }
            SwapOutcome::Conflict => {
                self.is_outdated = true;
                self.read_at = out.now;
            }
            SwapOutcome::Unknown => self.write_at = self.write_at.min(out.now + RETRY_INTERVAL),
        }
    }

    fn taken_over(&mut self, node: NodeId, number: WriteNumber, outcome: SwapOutcome, out: &mut Outbox) {
        let Some(watched) = self.others.get_mut(&node) else { return };
        let Some((_, record)) = watched.taking_over.take_if(|it| it.0 == number) else { return };
        match outcome {
            SwapOutcome::Applied(revision) => {
                (watched.revision, watched.record, watched.since) = (revision, record, out.now);
                self.version += 1;
            }
            SwapOutcome::Conflict => {
                watched.retry_at = out.now + RENEW_INTERVAL;
                out.read(RecordKey::Member(node));
            }
            SwapOutcome::Unknown => watched.retry_at = out.now + RENEW_INTERVAL,
        }
    }

    /// Does what is due now.
    pub(super) fn advance(&mut self, out: &mut Outbox) {
        if let Some(until) = self.pause.and_then(|it| it.until).filter(|it| out.now >= *it) {
            self.pause = None;
            self.resumed_at = Some(until);
            self.version += 1;
        }
        if matches!(self.phase, Phase::Joining | Phase::Active { .. } | Phase::Leaving) {
            self.advance_own(out);
        }
        if self.active(out.now).is_some() {
            self.take_over(out);
        }
    }

    /// Returns whether this node has to wait with its farewell, which says that nothing of it is open.
    fn waits_for_predecessor(&self) -> bool {
        self.phase == Phase::Leaving && self.predecessor.as_ref().is_some_and(Predecessor::is_serving)
    }

    fn advance_own(&mut self, out: &mut Outbox) {
        if self.waits_for_predecessor() {
            return;
        }
        let Some((revision, before)) = self.base.as_ref().filter(|_| !self.is_outdated) else {
            if !self.is_reading && out.now >= self.read_at {
                self.is_reading = true;
                out.read(RecordKey::Member(out.node));
            }
            return;
        };
        if self.writing.is_some() || out.now < self.write_at {
            return;
        }
        let expected = *revision;
        if self.phase == Phase::Joining
            && let Some(predecessor) = &mut self.predecessor
        {
            predecessor.join(expected, before.as_ref(), self.last_incarnation, out);
        }
        let record = self.next_record(expected, before.as_ref(), out);
        let number =
            out.write(RecordKey::Member(out.node), Some(expected), ClusterRecord::Member(record.clone()));
        self.writing = Some((number, record));
        self.write_at = out.now + RENEW_INTERVAL;
        self.sent.retain(|it| out.now < it.1 + DEADLINE);
        self.sent.push((number, out.now));
    }

    /// Returns the own record that replaces `before`.
    fn next_record(&self, revision: Revision, before: Option<&MemberRecord>, out: &Outbox) -> MemberRecord {
        let earlier = before.map(|it| it.incarnation_at(revision)).unwrap_or_default();
        let earlier_over = before.map(|it| it.over).unwrap_or_default();
        let over = earlier.max(earlier_over).max(self.last_incarnation);
        let predecessor = self.predecessor.as_ref();
        let over = predecessor.map_or(over, |it| over.max(it.incarnation()));
        let is_same_boot =
            !out.rules.hold(ClusterRule::ClosedOnSameBoot) || before.is_some_and(|it| it.boot == self.boot);
        let common = MemberRecord {
            state: MemberState::Alive,
            boot: self.boot,
            process: out.process,
            write: out.next_write(),
            incarnation: None,
            over,
            closed_after: before.filter(|_| is_same_boot).map_or(over, |it| it.closed_after),
            closed: over,
            highest: out.highest,
            settled: !self.is_paused(out.now),
        };
        // It still serves, but its incarnation has to end: it may be that its connections close later.
        let common = match predecessor.filter(|it| it.is_serving()) {
            Some(it) => MemberRecord { closed_after: common.closed_after.max(it.incarnation()), ..common },
            None => common,
        };
        match self.phase {
            Phase::Active { incarnation, .. } => {
                let kept = self.own.as_ref().filter(|it| it.over < incarnation);
                let of_predecessor = predecessor.and_then(|it| it.endings(incarnation, kept));
                if let Some([over, closed_after, closed]) = of_predecessor {
                    let incarnation = Some(incarnation);
                    return MemberRecord { incarnation, over, closed_after, closed, ..common };
                }
                MemberRecord {
                    incarnation: Some(incarnation),
                    over: Incarnation(incarnation.0 - 1),
                    closed_after: kept.map(|it| it.closed_after).unwrap_or_default(),
                    closed: kept.map(|it| it.closed).unwrap_or_default(),
                    ..common
                }
            }
            Phase::Joining
                if let Some(before) = before
                    && predecessor.is_some_and(Predecessor::is_kept) =>
            {
                let MemberRecord { over, closed_after, closed, .. } = *before;
                MemberRecord { over, closed_after, closed, ..common }
            }
            Phase::Leaving => MemberRecord { state: MemberState::Left, incarnation: Some(over), ..common },
            _ if !out.rules.hold(ClusterRule::RenewFromOwnRevision) && earlier.0 > 0 => {
                let closed_after = before.map(|it| it.closed_after).unwrap_or_default();
                MemberRecord { incarnation: Some(earlier), over: earlier_over, closed_after, ..common }
            }
            _ => common,
        }
    }

    /// Swaps the records of members that have not renewed for [`TAKE_OVER`] to `expired`.
    fn take_over(&mut self, out: &mut Outbox) {
        let is_patient = out.rules.hold(ClusterRule::TakeOverAfter20s);
        let wait = if is_patient { TAKE_OVER } else { Duration::from_secs(14) };
        for (node, watched) in &mut self.others {
            let is_due = out.now >= watched.since + wait && out.now >= watched.retry_at;
            if watched.record.state != MemberState::Alive || watched.taking_over.is_some() || !is_due {
                continue;
            }
            let over = watched.record.incarnation_at(watched.revision);
            let record = MemberRecord {
                state: MemberState::Expired,
                incarnation: Some(over),
                over,
                highest: out.highest,
                ..watched.record.clone()
            };
            let expected = out.rules.hold(ClusterRule::TakeOverBySwap).then_some(watched.revision);
            let number = out.write(RecordKey::Member(*node), expected, ClusterRecord::Member(record.clone()));
            watched.taking_over = Some((number, record));
        }
    }

    /// Returns when [`Self::advance`] has to be called next.
    pub(super) fn deadline(&self, now: BootTime) -> Option<BootTime> {
        let own = match self.phase {
            Phase::Closing { .. } | Phase::HandedOver { .. } | Phase::Left => None,
            _ if self.waits_for_predecessor() => None,
            _ if self.base.is_none() || self.is_outdated => (!self.is_reading).then_some(self.read_at),
            _ => self.writing.is_none().then_some(self.write_at),
        };
        let is_active = self.active(now).is_some();
        let alive = |it: &&Watched| it.record.state == MemberState::Alive && it.taking_over.is_none();
        let others = self.others.values().filter(alive).map(|it| (it.since + TAKE_OVER).max(it.retry_at));
        let times = own.into_iter().chain(self.valid_until()).chain(self.pause.and_then(|it| it.until));
        next_after(now, times.chain(others.filter(|_| is_active)))
    }
}

/// Returns the part of a record that tells which incarnations are over.
fn endings(record: &MemberRecord) -> [Incarnation; 3] {
    [record.over, record.closed_after, record.closed]
}
