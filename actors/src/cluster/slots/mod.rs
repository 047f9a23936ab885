//! The leases of a node of a cluster: those of pools with a limit are granted by the cluster's slot tables.
//!
//! ```text
//!   holder ── request ──▶ ClusterLeases ── no limit ──▶ SlotTable (grants by itself)
//!                            │      ▲
//!                        Ask ▼      │ Granted, Refused, Close, AskToYield
//!                       the member's task ──▶ the engine
//! ```
//!
//! - [`requests`] decides which tables a request asks, and in which order.
//! - The local [`SlotTable`] lists all leases of this node, also those of the cluster, and knows the slots of the other
//!   nodes, for people and for messages about limits. It grants only slots of pools without a limit.
//! - Observed limits and slots reserved for recordings are those of this node: the first concern pools without a limit
//!   only, the second make a request ask for less.
//! - Requests to yield go to the node of the holder as a message, see [`node_messages`].

mod node_messages;
mod requests;
#[cfg(test)]
mod tests;
mod yields;

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use cluster::Message;
use domain::cluster::record::{LeaseId, NodeId, PoolId, SlotEntry, SlotPurpose};
use domain::cluster::rules::CLOSING;
use domain::cluster::slots::{SlotRequest, SlotWait};
use domain::cluster::{NodeEffect, NodeInput};
use domain::ids::{ProfileId, StreamId};
use domain::plan::SlotPool;
use domain::playout::Attempt;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use self::node_messages::SlotsMessage;
use self::requests::{Ask, Pending, Step, limits_left, table_of};
use self::yields::Yields;
use super::link::SlotTables;
use super::{BootTimeReader, ClusterLink, ClusterParts};
use crate::slots::{
    Asking, FullPool, HolderPort, Lease, LeaseInfo, LeasePurpose, LeaseTable, OtherSlot, PARKED_MAX, Request,
    ReservedSlots, SharedLease, SlotElsewhere, SlotMessage, SlotTable, SlotsSnapshot,
};
use crate::tasks::{self, RespawnedTask};

/// Longest wait for the answer of one table while others can be tried.
const TRY_TIMEOUT: Duration = Duration::from_secs(1);

/// Time after the deadline of a request at which it is refused without an answer of the cluster. The holder waits longer.
const ANSWER_MARGIN: Duration = Duration::from_millis(250);

/// The leases of a node of a cluster.
pub(crate) struct ClusterLeases {
    me: Weak<Self>,
    local: Arc<SlotTable>,
    link: ClusterLink,
    node: NodeId,
    clock: BootTimeReader,
    tables: watch::Receiver<SlotTables>,
    /// Messages to other nodes. If too many wait, one is dropped.
    messages: mpsc::Sender<(NodeId, SlotsMessage)>,
    inner: Mutex<Inner>,
    tasks: Mutex<Option<(RespawnedTask, AbortOnDropHandle<()>)>>,
}

#[derive(Default)]
struct Inner {
    /// The number of the last request to a table, and that of the last request of a holder.
    last_number: u64,
    last_pending: u64,
    /// At most [`PARKED_MAX`], in order of arrival.
    pending: BTreeMap<u64, Pending>,
    /// The request of each ask.
    asks: HashMap<u64, u64>,
    /// By their numbers in the local table.
    leases: HashMap<u64, GrantedLease>,
    /// The local number of each lease, by its number in the cluster.
    local_ids: HashMap<u64, u64>,
    yields: Yields,
    /// Another process of this node counts the leases that were granted here, until their holders end. A holder may open
    /// its connections again with them; nothing else is granted.
    is_handed_over: bool,
}

/// A lease of the cluster.
struct GrantedLease {
    pool: PoolId,
    number: u64,
    holder: u64,
    port: HolderPort,
}

/// Messages to holders. They are sent without the lock, because a lease that cannot be delivered returns at once.
type Outgoing = Vec<(HolderPort, SlotMessage)>;

/// The inputs of the task. They outlive a run that panics.
struct Receivers {
    effects: mpsc::UnboundedReceiver<NodeEffect>,
    tables: watch::Receiver<SlotTables>,
    messages: mpsc::Receiver<Message>,
}

impl ClusterLeases {
    /// Begins to grant leases through the cluster, in front of the table of this node.
    pub(crate) fn start(local: Arc<SlotTable>, parts: ClusterParts, clock: BootTimeReader) -> Arc<Self> {
        let ClusterParts { link, slots: effects, tables, engine, node } = parts;
        let (messages, to_send) = mpsc::channel(node_messages::MESSAGES_MAX);
        let of_task = Receivers {
            effects,
            tables: tables.clone(),
            messages: engine.subscribe(node_messages::subject(node)),
        };
        let sending = AbortOnDropHandle::new(tasks::spawn(node_messages::send(engine, to_send)));
        let leases = Arc::new_cyclic(|me| Self {
            me: me.clone(),
            local,
            link,
            node,
            clock,
            tables,
            messages,
            inner: Mutex::default(),
            tasks: Mutex::default(),
        });
        let (me, of_task) = (leases.me.clone(), Arc::new(tokio::sync::Mutex::new(of_task)));
        let following = tasks::respawn("the leases of the cluster", move || {
            let (me, of_task) = (me.clone(), of_task.clone());
            async move { follow(&me, &mut *of_task.lock().await).await }
        });
        *leases.tasks.lock() = Some((following, sending));
        leases
    }

    fn on_effect(&self, effect: NodeEffect) {
        let mut inner = self.inner.lock();
        let mut out = Outgoing::new();
        match effect {
            NodeEffect::Granted { pool, lease, index } => {
                self.granted(&mut inner, pool, lease, index, &mut out);
            }
            NodeEffect::Refused { lease, .. } => {
                if let Some(id) = inner.asks.remove(&lease)
                    && let Some(pending) = inner.pending.get_mut(&id)
                {
                    pending.asks.retain(|it| it.number != lease);
                    self.advance(&mut inner, id, &mut out);
                }
            }
            NodeEffect::Close { lease, .. } => {
                if let Some(id) = inner.local_ids.get(&lease)
                    && let Some(it) = inner.leases.get(id)
                {
                    out.push((it.port.clone(), SlotMessage::Revoked { lease: *id, within: CLOSING }));
                }
            }
            NodeEffect::CloseHandedOver => {
                let limited = self.local.end_allowance(is_shared);
                out.extend(limited.into_iter().map(|(lease, port)| {
                    let revoked = SlotMessage::Revoked { lease, within: CLOSING };
                    (port, revoked)
                }));
                let (local, link) = (Arc::clone(&self.local), self.link.clone());
                // Bounded by the closer: the holders are told below.
                tasks::spawn(async move {
                    local.closed(is_shared).await;
                    link.send(NodeInput::HandedOverClosed);
                    local.all_shared_closed();
                });
            }
            NodeEffect::AskToYield { node, pool, lease, asked_by } => {
                self.ask_to_yield(&mut inner, node, pool, lease, asked_by, &mut out);
            }
            _ => {}
        }
        send(inner, out);
    }

    /// Passes a slot on to its holder. A slot that nobody needs any more is returned; its connection was never opened.
    fn granted(&self, inner: &mut Inner, pool: PoolId, number: u64, index: usize, out: &mut Outgoing) {
        let granted = (|| {
            let id = inner.asks.remove(&number)?;
            let pending = inner.pending.get(&id)?;
            let place = *pending.asks.iter().find(|it| it.number == number)?.places.get(index)?;
            Some((self.remove(inner, id)?, place, self.me.upgrade()?))
        })();
        let Some((pending, place, table)) = granted else {
            return self.link.send(NodeInput::Returned { pool, lease: number });
        };
        let Request { holder, attempt, .. } = pending.request;
        let (index, lease) = self.local.add(&pending.request, place, table);
        let port = pending.request.port.clone();
        inner.local_ids.insert(number, lease.id());
        inner.leases.insert(lease.id(), GrantedLease { pool, number, holder, port: port.clone() });
        out.push((port, SlotMessage::Granted { attempt, index, lease }));
    }

    /// Does the next steps of a request that waits for no answer.
    fn advance(&self, inner: &mut Inner, id: u64, out: &mut Outgoing) {
        while let Some(pending) = inner.pending.get_mut(&id)
            && pending.asks.is_empty()
        {
            match pending.step() {
                Step::Local(places) => {
                    if let Some((index, lease)) =
                        self.local.take_now(&pending.request.with_candidates(&places))
                    {
                        return self.granted_locally(inner, id, index, lease, out);
                    }
                }
                Step::Try(pool, places) => self.ask(inner, id, pool, &places, SlotWait::OwnReturn),
                Step::Wait(pools) => {
                    let wait = match pending.request.asking {
                        Asking::Join(_) | Asking::Failover => SlotWait::Others,
                        Asking::Switch | Asking::Beside => SlotWait::Returns,
                    };
                    pending.listed = Some(self.local.wait(&pending.request));
                    for (pool, places) in pools {
                        self.ask(inner, id, pool, &places, wait);
                    }
                }
                Step::Refuse => return self.refuse(inner, id, out),
            }
        }
    }

    /// Asks a slot table of the cluster, if a slot is left.
    fn ask(&self, inner: &mut Inner, id: u64, pool: PoolId, places: &[usize], wait: SlotWait) {
        let Some(pending) = inner.pending.get_mut(&id) else { return };
        let request = &pending.request;
        let (order, places): (Vec<_>, Vec<_>) = {
            let seen = self.tables.borrow();
            let left = |place: &usize| {
                let of_candidate = &request.order[*place].pool;
                let reserved = self.local.reserved_for_others(request, of_candidate);
                Some((limits_left(of_candidate, pool, reserved, &seen.tables)?, *place))
            };
            places.iter().filter_map(left).unzip()
        };
        if order.is_empty() {
            return;
        }
        let can_be_late = wait != SlotWait::OwnReturn || !pending.has_more_to_try();
        let until =
            if can_be_late { pending.until } else { pending.until.min(self.clock.now() + TRY_TIMEOUT) };
        let request = SlotRequest {
            order: order.into(),
            holder: request.holder,
            purpose: purpose_of(request.purpose),
            wait,
            until,
        };
        inner.last_number += 1;
        let number = inner.last_number;
        pending.asks.push(Ask { number, pool, places });
        inner.asks.insert(number, id);
        self.link.send(NodeInput::Ask { pool, lease: number, request });
    }

    fn granted_locally(&self, inner: &mut Inner, id: u64, index: usize, lease: Lease, out: &mut Outgoing) {
        if let Some(Pending { request, .. }) = self.remove(inner, id) {
            out.push((request.port, SlotMessage::Granted { attempt: request.attempt, index, lease }));
        }
    }

    /// Refuses a request, unless one of its candidates without a limit has a slot now.
    fn refuse(&self, inner: &mut Inner, id: u64, out: &mut Outgoing) {
        let Some(pending) = inner.pending.get(&id) else { return };
        let unlimited = pending.unlimited();
        if !unlimited.is_empty() && !matches!(pending.request.asking, Asking::Beside) {
            let request = pending.request.with_candidates(&unlimited);
            let taken = self.local.take_now(&request).or_else(|| self.local.take_beyond_discovered(&request));
            if let Some((index, lease)) = taken {
                return self.granted_locally(inner, id, index, lease, out);
            }
        }
        if let Some(Pending { request, .. }) = self.remove(inner, id) {
            let full = self.full(&request);
            out.push((request.port, SlotMessage::Full { attempt: request.attempt, full }));
        }
    }

    fn full(&self, request: &Request) -> FullPool {
        let is_unknown = !self.tables.borrow().is_member;
        FullPool { is_unknown, ..self.local.full(request) }
    }

    /// Removes a request, and cancels its asks.
    fn remove(&self, inner: &mut Inner, id: u64) -> Option<Pending> {
        let pending = inner.pending.remove(&id)?;
        for Ask { number, pool, .. } in &pending.asks {
            // One that was granted in this moment is returned when the grant arrives.
            if inner.asks.remove(number).is_some() {
                self.link.send(NodeInput::Cancel { pool: *pool, lease: *number });
            }
        }
        Some(pending)
    }

    /// Refuses the requests that the cluster did not answer in time.
    fn expire(&self, now: Instant) {
        let mut inner = self.inner.lock();
        let mut out = Outgoing::new();
        let expired: Vec<u64> =
            inner.pending.iter().filter(|it| it.1.expires <= now).map(|it| *it.0).collect();
        for id in expired {
            self.refuse(&mut inner, id, &mut out);
        }
        send(inner, out);
    }

    /// Shows the slots of other nodes to the local table.
    fn show_elsewhere(&self, seen: &SlotTables) {
        let entries = seen.tables.values().flat_map(|it| &it.entries);
        // Those of the process before this one are known by their holders.
        let predecessor = self.local.predecessor_process();
        let is_other = |it: &&SlotEntry| {
            let process = Some(it.lease.process);
            process != seen.process && process != predecessor
        };
        let elsewhere = entries.filter(is_other).map(|it| SlotElsewhere {
            node: it.node,
            profile: it.profile,
            account: it.account,
            purpose: it.purpose,
            state: it.state,
        });
        self.local.set_elsewhere(elsewhere.collect());
    }
}

/// Follows the cluster until the leases are not needed any more.
async fn follow(leases: &Weak<ClusterLeases>, receivers: &mut Receivers) {
    // After a run that panicked, the last change may not be shown.
    receivers.tables.mark_changed();
    loop {
        let expiry = match leases.upgrade() {
            Some(it) => it.inner.lock().pending.values().map(|it| it.expires).min(),
            None => return,
        };
        let expired = async {
            match expiry {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // In this order: what is shown is not older than the effects.
            biased;
            changed = receivers.tables.changed() => match (changed, leases.upgrade()) {
                (Ok(()), Some(it)) => it.show_elsewhere(&receivers.tables.borrow_and_update()),
                // The member has ended with the process.
                _ => return,
            },
            effect = receivers.effects.recv() => match (effect, leases.upgrade()) {
                (Some(effect), Some(it)) => it.on_effect(effect),
                _ => return,
            },
            Some(message) = receivers.messages.recv() => {
                if let (Some(it), Some(message)) = (leases.upgrade(), node_messages::read(&message.payload)) {
                    it.on_message(message);
                }
            }
            () = expired => {
                if let Some(it) = leases.upgrade() {
                    it.expire(Instant::now());
                }
            }
        }
    }
}

fn send(inner: MutexGuard<'_, Inner>, out: Outgoing) {
    drop(inner);
    for (port, message) in out {
        // If the holder is gone, the lease is dropped with the undelivered message.
        let _ = port.send_message(message);
    }
}

/// Returns whether the slots of a pool are granted by the cluster.
fn is_shared(pool: &SlotPool) -> bool {
    table_of(pool).is_some()
}

fn purpose_of(purpose: LeasePurpose) -> SlotPurpose {
    match purpose {
        LeasePurpose::Live => SlotPurpose::Live,
        LeasePurpose::Preview => SlotPurpose::Preview,
        LeasePurpose::Trial => SlotPurpose::Trial,
        LeasePurpose::Vod => SlotPurpose::Vod,
        LeasePurpose::Catchup => SlotPurpose::Catchup,
        LeasePurpose::Recording => SlotPurpose::Recording,
    }
}

impl LeaseTable for ClusterLeases {
    fn request(&self, request: Request) {
        if request.order.iter().all(|it| table_of(&it.pool).is_none()) {
            return self.local.request(request);
        }
        let mut inner = self.inner.lock();
        if inner.is_handed_over {
            drop(inner);
            return self.local.request(request);
        }
        let mut out = Outgoing::new();
        if inner.pending.len() >= PARKED_MAX {
            let full = self.full(&request);
            out.push((request.port, SlotMessage::Full { attempt: request.attempt, full }));
        } else {
            let wait = self.local.longest_wait(&request);
            let until = self.clock.now() + wait;
            let expires = Instant::now() + wait + ANSWER_MARGIN;
            inner.last_pending += 1;
            let id = inner.last_pending;
            inner.pending.insert(id, Pending::new(request, until, expires));
            self.advance(&mut inner, id, &mut out);
        }
        send(inner, out);
    }

    fn cancel(&self, holder: u64, attempt: Attempt) {
        let mut inner = self.inner.lock();
        let is_it = |it: &Pending| (it.request.holder, it.request.attempt) == (holder, attempt);
        let found: Vec<u64> = inner.pending.iter().filter(|it| is_it(it.1)).map(|it| *it.0).collect();
        for id in found {
            self.remove(&mut inner, id);
        }
        drop(inner);
        self.local.cancel(holder, attempt);
    }

    fn kept(&self, holder: u64, asked_by: u64) {
        let kept = self.inner.lock().yields.kept(holder, asked_by);
        match kept {
            Some(it) => self.answer(SlotsMessage::Kept(it)),
            None => self.local.kept(holder, asked_by),
        }
    }

    fn lingering(&self, holder: u64) {
        let kept = self.inner.lock().yields.lingering(holder);
        kept.into_iter().for_each(|it| self.answer(SlotsMessage::Lingering(it)));
        self.local.lingering(holder);
    }

    fn make_room(&self, holder: u64, pool: SlotPool) {
        self.make_room_elsewhere(&pool);
        self.local.make_room(holder, pool);
    }

    fn delivers(&self, lease: u64) {
        self.local.delivers(lease);
    }

    fn closing(&self, lease: u64) {
        self.local.closing(lease);
        let inner = self.inner.lock();
        if let Some(it) = inner.leases.get(&lease).filter(|_| !inner.is_handed_over) {
            self.link.send(NodeInput::Closing { pool: it.pool, lease: it.number });
        }
    }

    fn give_back(&self, lease: u64) {
        let mut inner = self.inner.lock();
        if let Some(it) = inner.leases.remove(&lease) {
            inner.local_ids.remove(&it.number);
            if !inner.is_handed_over {
                // First, so that a request that waits for the return is later in the queue.
                self.link.send(NodeInput::Returned { pool: it.pool, lease: it.number });
            }
        }
        drop(inner);
        self.local.give_back(lease);
    }

    fn refused(&self, lease: u64, pool: &SlotPool, stream: StreamId) -> bool {
        self.local.refused(lease, pool, stream)
    }

    fn full_now(&self, lease: u64, pool: &SlotPool) -> u32 {
        self.local.full_now(lease, pool)
    }

    fn reserve(&self, reserved: ReservedSlots) {
        self.local.reserve(reserved);
    }

    fn set_purpose(&self, holder: u64, purpose: LeasePurpose) {
        self.local.set_purpose(holder, purpose);
    }

    fn has_room_beside_recordings(&self, holder: u64, pool: &SlotPool) -> bool {
        self.local.has_room_beside_recordings(holder, pool)
    }

    fn discovered_limit(&self, profile: ProfileId, changed_at: i64) -> Option<u32> {
        self.local.discovered_limit(profile, changed_at)
    }

    fn snapshot(&self) -> SlotsSnapshot {
        self.local.snapshot()
    }

    fn counts(&self) -> (usize, usize) {
        self.local.counts()
    }

    fn leases(&self) -> Vec<LeaseInfo> {
        self.local.leases()
    }

    fn holds(&self, holder: u64) -> bool {
        self.local.holds(holder)
    }

    fn hand_over(&self) -> Vec<OtherSlot> {
        let mut inner = self.inner.lock();
        inner.is_handed_over = true;
        let mut out = Outgoing::new();
        for id in inner.pending.keys().copied().collect::<Vec<_>>() {
            if let Some(Pending { request, .. }) = self.remove(&mut inner, id) {
                let full = self.full(&request);
                out.push((request.port, SlotMessage::Full { attempt: request.attempt, full }));
            }
        }
        let process = self.tables.borrow().process;
        let shared_lease = |id| {
            let GrantedLease { pool, number, .. } = *inner.leases.get(&id)?;
            Some(SharedLease { pool, lease: LeaseId { process: process?, number } })
        };
        let slots = self.local.hand_over_with(shared_lease, is_shared);
        send(inner, out);
        slots
    }

    fn all_back(&self, holder: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.local.all_back(holder)
    }
}
