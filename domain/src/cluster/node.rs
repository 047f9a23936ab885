//! The machines of one node together: they share its clock, its membership, and its view of the engine.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::jobs::JobOwner;
use super::member::Member;
use super::outbox::{NodeEffect, Outbox};
use super::owner::ChannelOwner;
use super::predecessor::{MemberPredecessor, Predecessor};
use super::record::{
    BootId, ClusterRecord, Incarnation, JobName, LeaseId, NodeId, PoolId, ProcessId, RecordKey, Revision,
};
use super::rules::{ClusterRule, ClusterRules, GUARD};
use super::seats::{SeatRequest, Seats, has_own_entry};
use super::slots::{SlotRequest, Slots};
use super::tracked::RecordFollower;
use super::{BootTime, SwapOutcome, WriteNumber};
use crate::ids::UserId;

/// A report of the surroundings.
#[derive(Debug, Clone)]
pub enum NodeInput {
    /// A connection to the engine exists, and the engine has restarted since the last one, or its bucket was created
    /// anew. Reported before any request is sent over the new connection. Requests sent before never reach the engine
    /// any more; all records are delivered anew. Not reported for the first connection of a process.
    EngineRestarted,
    /// A record was read or watched. It may be stale. `None`: it does not exist.
    Seen {
        key: RecordKey,
        revision: Revision,
        record: Option<ClusterRecord>,
    },
    ReadFailed(RecordKey),
    Written {
        key: RecordKey,
        number: WriteNumber,
        outcome: SwapOutcome,
    },
    /// Someone needs a slot. `lease` is a number that the process never used before.
    Ask {
        pool: PoolId,
        lease: u64,
        request: SlotRequest,
    },
    /// The request is not needed any more.
    Cancel {
        pool: PoolId,
        lease: u64,
    },
    /// The connection of this lease is being closed.
    Closing {
        pool: PoolId,
        lease: u64,
    },
    /// The connection of this lease is closed, or was never opened.
    Returned {
        pool: PoolId,
        lease: u64,
    },
    /// A holder that was asked to yield keeps its lease.
    Kept {
        pool: PoolId,
        asked_by: u64,
        by: LeaseId,
    },
    /// Nobody watches the source of a holder any more that was asked to yield and kept its lease.
    Lingering {
        pool: PoolId,
        asked_by: u64,
        by: LeaseId,
    },
    /// The panel of the account shows that the connections of these leases, whose nodes were lost, are gone.
    ConnectionsGone {
        pool: PoolId,
        leases: BTreeSet<LeaseId>,
    },
    /// Whether viewers of this node watch a channel, and whether this node may open its sources.
    WantChannel {
        channel: Uuid,
        is_wanted: bool,
        may_originate: bool,
    },
    /// The channel is pulled from the origin of this epoch.
    Pulled {
        channel: Uuid,
        epoch: u64,
    },
    /// The origin of this epoch has not answered for 1 s.
    PullLost {
        channel: Uuid,
        epoch: u64,
    },
    /// This node takes the place of the origin of this epoch, because another node has asked for it.
    ReplaceOrigin {
        channel: Uuid,
        epoch: u64,
    },
    /// The source that this node played alone has ended.
    SourceLost {
        channel: Uuid,
    },
    /// Whether this node would run a job.
    WantJob {
        job: JobName,
        is_wanted: bool,
    },
    /// A user with a limit would begin a session. `seat` is a number that the process never used before.
    TakeSeat {
        user: UserId,
        seat: u64,
        request: SeatRequest,
    },
    /// The session is over, or is not wanted any more.
    ReturnSeat {
        user: UserId,
        seat: u64,
    },
    /// Another process of this node takes over, and this one serves its viewers beside it. From now on, this one writes
    /// nothing.
    HandOver,
    /// The other process has renewed the membership, so the incarnation of this one is valid until then.
    Prolonged {
        until: BootTime,
    },
    /// The other process does not keep the incarnation of this one any more, or has ended.
    EndHandedOver,
    /// All connections with leases of this process, which was handed over, are closed.
    HandedOverClosed,
    /// The process before this one has closed the connection of a lease; `None`: all of them.
    PredecessorClosed {
        lease: Option<LeaseId>,
    },
    /// The node leaves the cluster for good.
    Leave,
    /// The time of [`ClusterNode::deadline`] has come. An earlier tick is harmless.
    Tick,
}

/// One node of the cluster.
#[derive(Debug, Clone)]
pub struct ClusterNode {
    out: Outbox,
    member: Member,
    pools: BTreeMap<PoolId, Slots>,
    channels: BTreeMap<Uuid, ChannelOwner>,
    jobs: BTreeMap<JobName, JobOwner>,
    /// The users with sessions on this node.
    seats: BTreeMap<UserId, Seats>,
    /// The version of the membership that the other machines know.
    known_version: u64,
    /// The end of the present incarnation has not been passed on to the other machines.
    is_open: bool,
    /// Another process counts the leases of this one, whose connections may be open.
    has_handed_over: bool,
    /// Another process of this node has taken over.
    is_retired: bool,
    /// The last record that proved that the engine has lost writes. It proves it once.
    last_evidence: Option<(ProcessId, WriteNumber)>,
}

impl ClusterNode {
    /// Creates the node of a process that has just started. The programs of earlier processes of this boot have ended,
    /// so no connection of theirs is open.
    pub fn new(node: NodeId, boot: BootId, process: ProcessId, rules: ClusterRules, now: BootTime) -> Self {
        Self::after(None, node, boot, process, rules, now)
    }

    /// Creates the node of a process that has just started, while the one before it serves viewers.
    pub fn after(
        predecessor: Option<MemberPredecessor>,
        node: NodeId,
        boot: BootId,
        process: ProcessId,
        rules: ClusterRules,
        now: BootTime,
    ) -> Self {
        let out = Outbox::new(node, process, rules, now);
        let member = Member::new(boot, predecessor, &out);
        Self {
            out,
            member,
            pools: BTreeMap::new(),
            channels: BTreeMap::new(),
            jobs: BTreeMap::new(),
            seats: BTreeMap::new(),
            known_version: 0,
            is_open: false,
            has_handed_over: false,
            is_retired: false,
            last_evidence: None,
        }
    }

    pub fn member(&self) -> &Member {
        &self.member
    }

    pub fn pool(&self, id: PoolId) -> Option<&Slots> {
        self.pools.get(&id)
    }

    pub fn channel(&self, channel: Uuid) -> Option<&ChannelOwner> {
        self.channels.get(&channel)
    }

    pub fn job(&self, job: JobName) -> Option<&JobOwner> {
        self.jobs.get(&job)
    }

    /// Returns the sessions of a user. `None`: none is on this node.
    pub fn seats(&self, user: UserId) -> Option<&Seats> {
        self.seats.get(&user)
    }

    /// Returns the present incarnation, if it is valid.
    pub fn incarnation(&self, now: BootTime) -> Option<Incarnation> {
        self.member.active(now)
    }

    /// Processes an input and returns the effects to carry out. `now` must not go backwards.
    pub fn on(&mut self, input: NodeInput, now: BootTime) -> Vec<NodeEffect> {
        self.out.now = now;
        // First, because the process may have been frozen beyond its deadline.
        self.member.check_deadline(&mut self.out);
        self.end_incarnation();
        let is_tick = matches!(input, NodeInput::Tick);
        self.dispatch(input);
        self.end_incarnation();
        self.prolong_predecessor();
        let has_open = self.has_handed_over || self.pools.values().any(Slots::has_open);
        if self.member.is_closing() && !has_open {
            self.member.closed(&self.out);
            self.member.advance(&mut self.out);
        }
        if is_tick || self.known_version != self.member.version() {
            self.advance();
        }
        let Self { out, member, seats, .. } = self;
        seats.retain(|_, it| !it.is_idle(member, out));
        std::mem::take(&mut self.out.effects)
    }

    /// Returns when the next tick is due.
    pub fn deadline(&self) -> Option<BootTime> {
        let now = self.out.now;
        let pools = self.pools.values().filter_map(|it| it.deadline(now));
        let channels = self.channels.values().filter_map(|it| it.deadline(now));
        let jobs = self.jobs.values().filter_map(|it| it.deadline(now));
        let seats = self.seats.values().filter_map(|it| it.deadline(now));
        self.member.deadline(now).into_iter().chain(pools).chain(channels).chain(jobs).chain(seats).min()
    }

    /// Returns the time at which the guard kills this process unless it reports again before. The process reports it
    /// after each step, and at least every few seconds.
    pub fn guard_at(&self, now: BootTime) -> BootTime {
        let latest = now + GUARD;
        self.member.guard_at().map_or(latest, |it| it.min(latest))
    }

    /// Returns this process, of which its guard says that it has ended when it has. `None`: the guard says nothing then,
    /// because the record of the node belongs to another process, or the one before this one may have connections with
    /// leases.
    pub fn guarded(&self) -> Option<ProcessId> {
        let is_counted = self.out.rules.hold(ClusterRule::GuardCountsPredecessor);
        let has_leases = self.member.predecessor().is_some_and(Predecessor::has_leases);
        (!(self.is_retired || has_leases && is_counted)).then_some(self.out.process)
    }

    fn dispatch(&mut self, input: NodeInput) {
        let Self { out, member, .. } = self;
        match input {
            // It gets nothing any more. Sessions of users are not counted beside a successor.
            NodeInput::Ask { pool, lease, .. } if self.is_retired => {
                out.push(NodeEffect::Refused { pool, lease });
            }
            NodeInput::TakeSeat { .. } | NodeInput::WantJob { .. } if self.is_retired => {}
            NodeInput::EngineRestarted => self.restarted(),
            NodeInput::Seen { key, revision, record } => self.seen(key, revision, record),
            NodeInput::ReadFailed(key) => self.read_failed(key),
            NodeInput::Written { key, number, outcome } => self.written(key, number, outcome),
            NodeInput::Ask { pool, lease, request } => {
                let slots = self.pools.entry(pool).or_insert_with(|| Slots::new(pool, out));
                slots.ask(lease, request, member, out);
            }
            NodeInput::Cancel { pool, lease } => {
                if let Some(it) = self.pools.get_mut(&pool) {
                    it.cancel(lease, member, out);
                }
            }
            NodeInput::Closing { pool, lease } => {
                if let Some(it) = self.pools.get_mut(&pool) {
                    it.closing(lease, member, out);
                }
            }
            NodeInput::Returned { pool, lease } => {
                if let Some(it) = self.pools.get_mut(&pool) {
                    it.returned(lease, member, out);
                }
            }
            NodeInput::Kept { pool, asked_by, by } => {
                if let Some(it) = self.pools.get_mut(&pool) {
                    it.kept(asked_by, by, member, out);
                }
            }
            NodeInput::Lingering { pool, asked_by, by } => {
                if let Some(it) = self.pools.get_mut(&pool) {
                    it.lingering(asked_by, by, member, out);
                }
            }
            NodeInput::ConnectionsGone { pool, leases } => {
                if let Some(it) = self.pools.get_mut(&pool) {
                    it.connections_gone(&leases, member, out);
                }
            }
            NodeInput::WantChannel { channel, is_wanted, may_originate } => {
                let new = || ChannelOwner::new(channel, may_originate, out);
                self.channels.entry(channel).or_insert_with(new).want(is_wanted, may_originate, member, out);
            }
            NodeInput::Pulled { channel, epoch } => {
                if let Some(it) = self.channels.get_mut(&channel) {
                    it.pulled(epoch, member, out);
                }
            }
            NodeInput::PullLost { channel, epoch } => {
                if let Some(it) = self.channels.get_mut(&channel) {
                    it.pull_lost(epoch, member, out);
                }
            }
            NodeInput::ReplaceOrigin { channel, epoch } => {
                if let Some(it) = self.channels.get_mut(&channel) {
                    it.replace(epoch, member, out);
                }
            }
            NodeInput::SourceLost { channel } => {
                if let Some(it) = self.channels.get_mut(&channel) {
                    it.source_lost(member, out);
                }
            }
            NodeInput::WantJob { job, is_wanted } => {
                let new = || JobOwner::new(job, out);
                self.jobs.entry(job).or_insert_with(new).want(is_wanted, member, out);
            }
            NodeInput::TakeSeat { user, seat, request } => {
                let seats = self.seats.entry(user).or_insert_with(|| Seats::new(user, out));
                seats.take(seat, request, member, out);
            }
            NodeInput::ReturnSeat { user, seat } => {
                if let Some(it) = self.seats.get_mut(&user) {
                    it.give_back(seat, member, out);
                }
            }
            NodeInput::HandOver => self.hand_over(),
            NodeInput::Prolonged { until } => member.prolong(until),
            NodeInput::EndHandedOver => member.end_handed_over(out),
            NodeInput::HandedOverClosed => self.has_handed_over = false,
            NodeInput::PredecessorClosed { lease } => member.predecessor_closed(lease, out),
            NodeInput::Leave => member.leave(out),
            NodeInput::Tick => member.advance(out),
        }
    }

    fn seen(&mut self, key: RecordKey, revision: Revision, record: Option<ClusterRecord>) {
        if let Some(ClusterRecord::Member(it)) = &record {
            // Its node had seen this revision or a higher one before it wrote the record: the engine has lost writes.
            let evidence = Some((it.process, it.write));
            if revision <= it.highest && self.last_evidence != evidence {
                self.last_evidence = evidence;
                self.restarted();
            }
            self.out.highest = self.out.highest.max(it.highest);
        }
        self.out.highest = self.out.highest.max(revision);
        let Self { out, member, .. } = self;
        member.heard(out);
        match (key, record) {
            (RecordKey::Member(node), Some(ClusterRecord::Member(it))) => {
                member.seen(node, revision, Some(it), out);
            }
            (RecordKey::Member(node), None) => member.seen(node, revision, None, out),
            (RecordKey::Pool(id), record) => {
                let table = match record {
                    Some(ClusterRecord::Pool(it)) => Some(it),
                    _ => None,
                };
                // Also without a lease of its own, because the time of cooling entries counts from now.
                let slots = self.pools.entry(id).or_insert_with(|| Slots::new(id, out));
                slots.seen(revision, table, member, out);
            }
            (RecordKey::Channel(channel), record) => {
                let owner = match record {
                    Some(ClusterRecord::Channel(it)) => Some(it),
                    _ => None,
                };
                if let Some(it) = self.channels.get_mut(&channel) {
                    it.seen(revision, owner, member, out);
                }
            }
            (RecordKey::Job(job), record) => {
                let owner = match record {
                    Some(ClusterRecord::Job(it)) => Some(it),
                    _ => None,
                };
                if let Some(it) = self.jobs.get_mut(&job) {
                    it.seen(revision, owner, member, out);
                }
            }
            (RecordKey::Seats(user), record) => {
                let sessions = match record {
                    Some(ClusterRecord::Seats(it)) => Some(it),
                    _ => None,
                };
                if sessions.as_ref().is_some_and(|it| has_own_entry(it, member, out)) {
                    self.seats.entry(user).or_insert_with(|| Seats::new(user, out));
                }
                if let Some(it) = self.seats.get_mut(&user) {
                    it.seen(revision, sessions, member, out);
                }
            }
            (RecordKey::Member(_), Some(_)) => {}
        }
    }

    fn read_failed(&mut self, key: RecordKey) {
        let out = &self.out;
        match key {
            RecordKey::Member(node) => self.member.read_failed(node, out),
            RecordKey::Pool(id) => {
                if let Some(it) = self.pools.get_mut(&id) {
                    it.read_failed(out);
                }
            }
            RecordKey::Channel(channel) => {
                if let Some(it) = self.channels.get_mut(&channel) {
                    it.read_failed(out);
                }
            }
            RecordKey::Job(job) => {
                if let Some(it) = self.jobs.get_mut(&job) {
                    it.read_failed(out);
                }
            }
            RecordKey::Seats(user) => {
                if let Some(it) = self.seats.get_mut(&user) {
                    it.read_failed(out);
                }
            }
        }
    }

    fn written(&mut self, key: RecordKey, number: WriteNumber, outcome: SwapOutcome) {
        if self.out.is_rollback(number, outcome) {
            return self.restarted();
        }
        let Self { out, member, .. } = self;
        match key {
            RecordKey::Member(node) => member.written(node, number, outcome, out),
            RecordKey::Pool(id) => {
                if let Some(it) = self.pools.get_mut(&id) {
                    it.written(number, outcome, member, out);
                }
            }
            RecordKey::Channel(channel) => {
                if let Some(it) = self.channels.get_mut(&channel) {
                    it.written(number, outcome, member, out);
                }
            }
            RecordKey::Job(job) => {
                if let Some(it) = self.jobs.get_mut(&job) {
                    it.written(number, outcome, member, out);
                }
            }
            RecordKey::Seats(user) => {
                if let Some(it) = self.seats.get_mut(&user) {
                    it.written(number, outcome, member, out);
                }
            }
        }
    }

    /// Begins anew with what the engine has now.
    fn restarted(&mut self) {
        let Self { out, member, .. } = self;
        let confirm_by = member.valid_until();
        out.restarted();
        member.restarted(out);
        self.pools.values_mut().for_each(|it| it.restarted(confirm_by, out));
        self.channels.values_mut().for_each(|it| it.restarted(out));
        self.jobs.values_mut().for_each(|it| it.restarted(out));
        self.seats.values_mut().for_each(|it| it.restarted(out));
        out.push(NodeEffect::ReadAll);
        member.advance(out);
    }

    /// Leaves everything that is written to another process of this node.
    fn hand_over(&mut self) {
        let Self { out, member, .. } = self;
        self.is_retired = true;
        member.hand_over(out);
        self.has_handed_over = member.is_handed_over();
        self.pools.values_mut().for_each(|it| it.hand_over(member, out));
        self.jobs.values_mut().for_each(|it| it.lost(out));
        self.jobs.clear();
        self.seats.clear();
    }

    /// Tells the process before this one until when its incarnation is valid, if all its leases are in the tables. One
    /// that the engine has lost could be granted to another node when the pause after its restart is over.
    fn prolong_predecessor(&mut self) {
        let Self { out, member, pools, .. } = self;
        let Some(predecessor) = member.predecessor() else { return };
        let leases: Vec<_> = predecessor.leases().collect();
        let mut is_complete = true;
        for (lease, pool) in leases {
            let slots = pools.entry(pool).or_insert_with(|| Slots::new(pool, out));
            is_complete &= slots.has_entry(lease, out);
        }
        if is_complete || !out.rules.hold(ClusterRule::PredecessorIsRegistered) {
            member.prolong_predecessor(out);
        }
    }

    /// Tells the other machines once that the incarnation is over.
    fn end_incarnation(&mut self) {
        let Self { out, member, .. } = self;
        if member.valid_until().is_some() {
            self.is_open = true;
        } else if self.is_open {
            self.is_open = false;
            if self.has_handed_over {
                out.push(NodeEffect::CloseHandedOver);
            }
            self.pools.values_mut().for_each(|it| it.lost(out));
            self.channels.values_mut().for_each(ChannelOwner::lost);
            self.jobs.values_mut().for_each(|it| it.lost(out));
        }
    }

    fn advance(&mut self) {
        let Self { out, member, .. } = self;
        self.known_version = member.version();
        self.pools.values_mut().for_each(|it| it.advance(member, out));
        self.channels.values_mut().for_each(|it| it.advance(member, out));
        self.jobs.values_mut().for_each(|it| it.advance(member, out));
        self.seats.values_mut().for_each(|it| it.advance(member, out));
    }
}
