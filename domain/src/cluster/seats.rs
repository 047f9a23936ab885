//! The sessions of one user with a limit, on all nodes.
//!
//! The record of the user lists them. Each node keeps those of its own viewers, computes the record that should follow,
//! and swaps it in; a session begins when its entry is written. Unlike a lease, a session costs no connection to a
//! provider: if the engine does not answer in time, it begins without, and is written later. So a limit can be exceeded
//! while the engine is away, and nobody is sent away for that.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::member::Member;
use super::outbox::{NodeEffect, Outbox, next_after};
use super::record::{
    ClusterRecord, Incarnation, LeaseId, RecordKey, Revision, SeatEnd, SeatEntry, SeatRecord,
};
use super::rules::{SEAT_ANSWER, SEAT_RETURN, SEATS_MAX};
use super::tracked::{RecordFollower, Tracked, WriteResult};
use super::{BootTime, SwapOutcome, WriteNumber};
use crate::ids::UserId;
use crate::limits::{HeldSeat, SeatDecision, SeatHolder, SeatRules, decide_seat};

/// A request for a session of a user.
#[derive(Debug, Clone)]
pub struct SeatRequest {
    /// Maximum number of sessions of the user at the same time; at least 1.
    pub limit: u32,
    /// Identifies the address and the program.
    pub device: Uuid,
    /// The channel or title.
    pub target: Uuid,
    pub rules: SeatRules,
    /// Targets that other users watch. They matter only if the rules end sessions of other devices.
    pub shared: Arc<[Uuid]>,
    /// Time at which the request is refused if all seats are taken.
    pub until: BootTime,
}

/// The sessions of a user, as one node sees them.
#[derive(Debug, Clone)]
pub struct Seats {
    record: Tracked<SeatRecord>,
    user: UserId,
    /// The sessions and requests of this process, by number.
    own: BTreeMap<u64, OwnSeat>,
    /// Time until which the entry of an ended session may stay, so that it leaves with the next write.
    remove_at: Option<BootTime>,
}

#[derive(Debug, Clone)]
struct OwnSeat {
    request: SeatRequest,
    /// Time after which the session begins without a confirmation.
    answer_by: BootTime,
    stage: SeatStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeatStage {
    /// The session has not begun.
    Asking,
    /// The entry was written, and the outcome is unknown. The write expected this revision.
    Writing { expected: Revision },
    /// The session has begun.
    Seated,
    /// The session was told to end. Its entry stays until it has.
    Ending(SeatEnd),
}

impl Seats {
    pub(super) fn new(user: UserId, out: &Outbox) -> Self {
        let record = Tracked::new(RecordKey::Seats(user), out);
        Self { record, user, own: BTreeMap::new(), remove_at: None }
    }

    /// Returns whether a session has begun and was not told to end.
    pub fn is_seated(&self, seat: u64) -> bool {
        self.own.get(&seat).is_some_and(|it| it.stage == SeatStage::Seated)
    }

    /// Returns whether this process has neither sessions of the user, nor entries to remove. A write that is still on
    /// its way may add one: [`has_own_entry`] notices it.
    pub(super) fn is_idle(&self, member: &Member, out: &Outbox) -> bool {
        let has_none = |it: &(Revision, SeatRecord)| !has_own_entry(&it.1, member, out);
        self.own.is_empty() && self.record.is_settled() && self.record.view().is_none_or(has_none)
    }

    /// Adds a request. Its number is chosen by the caller and never reused by the process.
    pub(super) fn take(&mut self, seat: u64, request: SeatRequest, member: &Member, out: &mut Outbox) {
        let answer_by = out.now + SEAT_ANSWER;
        self.own.insert(seat, OwnSeat { request, answer_by, stage: SeatStage::Asking });
        self.advance(member, out);
    }

    /// Ends a session or a request.
    pub(super) fn give_back(&mut self, seat: u64, member: &Member, out: &mut Outbox) {
        if self.own.remove(&seat).is_some() {
            self.remove_at.get_or_insert(out.now + SEAT_RETURN);
        }
        self.advance(member, out);
    }

    /// Notes that the engine has restarted, and may have lost entries.
    pub(super) fn restarted(&mut self, out: &Outbox) {
        self.record.restarted(out);
        for it in self.own.values_mut() {
            if matches!(it.stage, SeatStage::Writing { .. }) {
                it.stage = SeatStage::Asking;
            }
        }
    }

    /// Settles what was unknown, after a newer record was seen.
    fn settle(&mut self, out: &mut Outbox) {
        let Some((revision, record)) = self.record.view() else { return };
        let (user, process) = (self.user, out.process);
        for (&seat, it) in &mut self.own {
            let is_entry = |entry: &&SeatEntry| entry.seat == LeaseId { process, number: seat };
            let entry = record.sessions.iter().find(is_entry);
            match (it.stage, entry.map(|it| it.ended)) {
                (SeatStage::Writing { expected }, Some(None)) if expected < *revision => {
                    it.stage = SeatStage::Seated;
                    out.push(NodeEffect::Seated { user, seat, is_certain: true });
                }
                // Another session took its place before its node knew that it had begun.
                (SeatStage::Writing { expected }, Some(Some(why))) if expected < *revision => {
                    it.stage = SeatStage::Ending(why);
                    out.push(NodeEffect::Seated { user, seat, is_certain: true });
                    out.push(NodeEffect::EndSession { user, seat, why });
                }
                (SeatStage::Writing { expected }, None) if expected < *revision => {
                    it.stage = SeatStage::Asking;
                }
                (SeatStage::Seated, Some(Some(why))) => {
                    it.stage = SeatStage::Ending(why);
                    out.push(NodeEffect::EndSession { user, seat, why });
                }
                _ => {}
            }
        }
    }

    /// Refuses requests whose time is over, and begins sessions for which the engine did not answer in time.
    fn check_times(&mut self, member: &Member, out: &mut Outbox) {
        let due: Vec<u64> = self.own.iter().filter(|(_, it)| it.is_due(out.now)).map(|it| *it.0).collect();
        for seat in due {
            let Some(it) = self.own.get(&seat) else { continue };
            let user = self.user;
            let is_known = self.record.view().is_some() && self.record.is_current();
            let sessions = self.known_entries(member, out);
            let decided = decide(&it.request, &sessions);
            let is_full = it.stage == SeatStage::Asking && decided.is_none();
            if is_full && (is_known || out.now >= it.answer_by) {
                self.own.remove(&seat);
                out.push(NodeEffect::NotSeated { user, seat });
            } else if out.now >= it.answer_by {
                let asked = it.stage == SeatStage::Asking;
                if let Some(it) = self.own.get_mut(&seat) {
                    it.stage = SeatStage::Seated;
                }
                out.push(NodeEffect::Seated { user, seat, is_certain: false });
                // Those of other nodes cannot be told now. A write on its way ends what it has to.
                for (index, why) in decided.into_iter().flatten().filter(|_| asked) {
                    self.end_own(sessions[index].seat, why, out);
                }
            }
        }
    }

    /// Ends a session if it is one of this process.
    fn end_own(&mut self, id: LeaseId, why: SeatEnd, out: &mut Outbox) {
        let is_own = id.process == out.process;
        if let Some(it) = self.own.get_mut(&id.number).filter(|it| is_own && it.stage == SeatStage::Seated) {
            it.stage = SeatStage::Ending(why);
            out.push(NodeEffect::EndSession { user: self.user, seat: id.number, why });
        }
    }

    /// Returns the entries of all sessions that this node knows, for decisions without a write: those of the newest record,
    /// and its own that are not in it.
    fn known_entries(&self, member: &Member, out: &Outbox) -> Vec<SeatEntry> {
        let mut entries = self.record.view().map_or_else(Vec::new, |it| self.live(&it.1, member, out));
        for (&number, it) in &self.own {
            let id = LeaseId { process: out.process, number };
            let entry = entries.iter_mut().find(|entry| entry.seat == id);
            match (it.stage, entry) {
                (SeatStage::Seated, None) => entries.push(it.entry(number, Incarnation::default(), out)),
                (SeatStage::Ending(why), Some(entry)) => entry.ended = Some(why),
                _ => {}
            }
        }
        entries
    }

    /// Returns the entries of a record whose sessions can still run.
    fn live(&self, record: &SeatRecord, member: &Member, out: &Outbox) -> Vec<SeatEntry> {
        let is_live = |it: &&SeatEntry| match it.seat.process == out.process {
            true => self.own.contains_key(&it.seat.number),
            // Its viewers are counted by nobody.
            false if is_of_predecessor(it, member, out) => false,
            false => member.ending_of(it.node, it.incarnation, out.node).is_none(),
        };
        record.sessions.iter().filter(is_live).copied().collect()
    }

    /// Computes the record that should follow, and the requests that get a seat by it.
    fn proposal(
        &self,
        before: &SeatRecord,
        incarnation: Incarnation,
        member: &Member,
        out: &Outbox,
    ) -> (SeatRecord, Vec<u64>) {
        let mut sessions = self.live(before, member, out);
        for it in sessions.iter_mut().filter(|it| it.seat.process == out.process) {
            it.incarnation = incarnation;
            // It was told to end while the engine did not answer.
            if let Some(OwnSeat { stage: SeatStage::Ending(why), .. }) = self.own.get(&it.seat.number) {
                it.ended = Some(*why);
            }
        }
        let mut asked = Vec::new();
        for (&seat, it) in &self.own {
            let id = LeaseId { process: out.process, number: seat };
            let is_there = sessions.iter().any(|entry| entry.seat == id);
            match it.stage {
                // It was lost with the engine, or has begun without it.
                SeatStage::Seated if !is_there => sessions.push(it.entry(seat, incarnation, out)),
                // A repeated write. Until it is settled, the entry belongs to the record that it expects to replace.
                SeatStage::Asking | SeatStage::Writing { .. } if !is_there && sessions.len() < SEATS_MAX => {
                    let Some(ended) = decide(&it.request, &sessions) else { continue };
                    for (index, why) in ended {
                        sessions[index].ended = Some(why);
                    }
                    sessions.push(it.entry(seat, incarnation, out));
                    asked.push(seat);
                }
                _ => {}
            }
        }
        (SeatRecord { sessions }, asked)
    }

    /// Returns when [`RecordFollower::advance`] has to be called next.
    pub(super) fn deadline(&self, now: BootTime) -> Option<BootTime> {
        let times = self.own.values().filter(|it| it.stage != SeatStage::Seated);
        let times = times.flat_map(|it| [it.request.until, it.answer_by]);
        next_after(now, times.chain(self.record.retries()).chain(self.remove_at))
    }
}

impl RecordFollower for Seats {
    type Record = SeatRecord;

    fn record(&mut self) -> &mut Tracked<SeatRecord> {
        &mut self.record
    }

    fn seen(&mut self, revision: Revision, record: Option<SeatRecord>, member: &Member, out: &mut Outbox) {
        if self.record.seen(revision, record, out) {
            self.settle(out);
        }
        self.advance(member, out);
    }

    fn written(&mut self, number: WriteNumber, outcome: SwapOutcome, member: &Member, out: &mut Outbox) {
        match self.record.written(number, outcome, out) {
            WriteResult::Applied => self.settle(out),
            WriteResult::Settled => return,
            WriteResult::Conflict | WriteResult::Unknown => {}
        }
        self.advance(member, out);
    }

    fn advance(&mut self, member: &Member, out: &mut Outbox) {
        self.check_times(member, out);
        if self.own.is_empty() && self.record.view().is_none() {
            return;
        }
        let may_write = self.record.is_known_or_read(out) && self.record.can_write(out);
        if !may_write || !member.is_registered() {
            return;
        }
        let (Some(incarnation), Some((expected, before))) = (member.active(out.now), self.record.view())
        else {
            return;
        };
        let expected = *expected;
        let (record, asked) = self.proposal(before, incarnation, member, out);
        if record == *before {
            self.remove_at = None;
            return;
        }
        if asked.is_empty() && self.remove_at.is_some_and(|it| out.now < it) {
            return;
        }
        self.remove_at = None;
        for seat in asked {
            if let Some(it) = self.own.get_mut(&seat) {
                it.stage = SeatStage::Writing { expected };
            }
        }
        self.record.write(record, ClusterRecord::Seats, out);
    }
}

impl OwnSeat {
    fn is_due(&self, now: BootTime) -> bool {
        match self.stage {
            SeatStage::Asking => now >= self.request.until.min(self.answer_by),
            SeatStage::Writing { .. } => now >= self.answer_by,
            SeatStage::Seated | SeatStage::Ending(_) => false,
        }
    }

    fn entry(&self, seat: u64, incarnation: Incarnation, out: &Outbox) -> SeatEntry {
        SeatEntry {
            seat: LeaseId { process: out.process, number: seat },
            node: out.node,
            incarnation,
            device: self.request.device,
            target: self.request.target,
            ended: None,
        }
    }
}

/// Returns whether a record has an entry of this process, or of the one before it that serves viewers beside it.
pub(super) fn has_own_entry(record: &SeatRecord, member: &Member, out: &Outbox) -> bool {
    let is_own = |it: &SeatEntry| it.seat.process == out.process || is_of_predecessor(it, member, out);
    record.sessions.iter().any(is_own)
}

fn is_of_predecessor(entry: &SeatEntry, member: &Member, out: &Outbox) -> bool {
    entry.node == out.node && entry.seat.process != out.process && member.is_of_predecessor(entry.incarnation)
}

/// Decides about a request. Returns the entries that end for it, by index; `None`: all seats are taken.
fn decide(request: &SeatRequest, entries: &[SeatEntry]) -> Option<Vec<(usize, SeatEnd)>> {
    // Sessions with the index of their first entry, oldest first.
    let mut sessions: Vec<(usize, &SeatEntry)> = Vec::new();
    for (index, entry) in entries.iter().enumerate().filter(|it| it.1.ended.is_none()) {
        if !sessions.iter().any(|it| is_one_session(it.1, entry)) {
            sessions.push((index, entry));
        }
    }
    let channel_of = |target: Uuid| sessions.iter().position(|it| it.1.target == target);
    let held = |(_, it): &(usize, &SeatEntry)| HeldSeat {
        holder: match (it.device == request.device, it.target == request.target) {
            (true, true) => SeatHolder::Same,
            (true, false) => SeatHolder::Own,
            (false, _) => SeatHolder::Other,
        },
        channel: channel_of(it.target).unwrap_or(sessions.len()),
        is_alone: !request.shared.contains(&it.target)
            && sessions.iter().filter(|other| other.1.target == it.target).count() == 1,
    };
    let held: Vec<HeldSeat> = sessions.iter().map(held).collect();
    let channel = channel_of(request.target).unwrap_or(sessions.len());
    match decide_seat(request.limit, channel, &held, request.rules) {
        SeatDecision::Full => None,
        SeatDecision::Take | SeatDecision::Share(_) => Some(Vec::new()),
        SeatDecision::Replace(ended) => {
            let mut entries_ended = Vec::new();
            for index in ended {
                let is_own = held[index].holder == SeatHolder::Own;
                let why = if is_own { SeatEnd::Replaced } else { SeatEnd::OverLimit };
                let is_of = |it: &(usize, &SeatEntry)| {
                    it.1.ended.is_none() && is_one_session(sessions[index].1, it.1)
                };
                entries_ended.extend(entries.iter().enumerate().filter(is_of).map(|it| (it.0, why)));
            }
            Some(entries_ended)
        }
    }
}

fn is_one_session(one: &SeatEntry, other: &SeatEntry) -> bool {
    (one.device, one.target) == (other.device, other.target)
}
