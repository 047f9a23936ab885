//! Requests to yield: those of the cluster to holders of this node, and those of this node to other nodes.

use std::collections::BTreeMap;

use domain::cluster::NodeInput;
use domain::cluster::record::{LeaseId, NodeId, PoolId, SlotState};
use domain::plan::SlotPool;
use domain::recording::RecordingClaim;

use super::node_messages::{SlotsMessage, YieldId};
use super::requests::table_of;
use super::{ClusterLeases, Inner, Outgoing, send};
use crate::slots::{Asking, SlotMessage};
use crate::viewer::Viewer;

/// The numbers of requests to yield of the cluster begin here. Those of the local slots actor are lower.
const FIRST_NUMBER: u64 = 1 << 63;

/// Maximum number of requests to yield that are known. Beyond it, the oldest one is forgotten: its request is over.
const YIELDS_MAX: usize = 1024;

/// The requests to yield to holders of this node.
#[derive(Default)]
pub(super) struct Yields {
    n_all: u64,
    all: BTreeMap<u64, AskedHolder>,
}

struct AskedHolder {
    id: YieldId,
    holder: u64,
    has_kept: bool,
}

impl Yields {
    /// Adds a request. Returns its number for the holder.
    fn add(&mut self, id: YieldId, holder: u64) -> u64 {
        let number = FIRST_NUMBER + self.n_all;
        self.n_all += 1;
        self.all.insert(number, AskedHolder { id, holder, has_kept: false });
        if self.all.len() > YIELDS_MAX {
            self.all.pop_first();
        }
        number
    }

    /// Notes that a holder keeps its lease. `None`: the cluster did not ask for it.
    pub(super) fn kept(&mut self, holder: u64, number: u64) -> Option<YieldId> {
        let asked = self.all.get_mut(&number).filter(|it| it.holder == holder)?;
        asked.has_kept = true;
        Some(asked.id)
    }

    /// Returns the requests that a holder refused, and forgets them.
    pub(super) fn lingering(&mut self, holder: u64) -> Vec<YieldId> {
        self.all.extract_if(.., |_, it| it.holder == holder && it.has_kept).map(|it| it.1.id).collect()
    }
}

impl ClusterLeases {
    /// Asks the holder of a lease, on any node, to yield for a request of this node.
    pub(super) fn ask_to_yield(
        &self,
        inner: &mut Inner,
        node: NodeId,
        pool: PoolId,
        lease: LeaseId,
        asked_by: u64,
        out: &mut Outgoing,
    ) {
        let Some(pending) = inner.asks.get(&asked_by).and_then(|it| inner.pending.get(it)) else { return };
        let viewer = match &pending.request.asking {
            Asking::Join(viewer) => viewer.clone(),
            Asking::Failover | Asking::Switch | Asking::Beside => None,
        };
        let claim = pending.request.claim;
        let asked = YieldId { from: self.node, pool, asked_by, lease };
        if node == self.node && self.tables.borrow().process == Some(lease.process) {
            self.asked_to_yield(inner, asked, viewer, claim, out);
        } else {
            self.tell(node, SlotsMessage::Yield { asked, viewer, claim });
        }
    }

    /// Asks a holder of this node to yield, if it has the lease.
    fn asked_to_yield(
        &self,
        inner: &mut Inner,
        asked: YieldId,
        viewer: Option<Viewer>,
        claim: Option<RecordingClaim>,
        out: &mut Outgoing,
    ) {
        let is_own = self.tables.borrow().process == Some(asked.lease.process);
        let id = inner.local_ids.get(&asked.lease.number).filter(|_| is_own);
        let Some(lease) = id.and_then(|it| inner.leases.get(it)).filter(|it| it.pool == asked.pool) else {
            return;
        };
        let asked_by = inner.yields.add(asked, lease.holder);
        out.push((lease.port.clone(), SlotMessage::Yield { asked_by, viewer, claim }));
    }

    /// Asks the holders of other nodes on an account profile and in its server group to yield.
    pub(super) fn make_room_elsewhere(&self, pool: &SlotPool) {
        let Some(table) = table_of(pool) else { return };
        let seen = self.tables.borrow();
        let entries = seen.tables.get(&table).into_iter().flat_map(|it| &it.entries);
        for it in entries.filter(|it| it.node != self.node && it.state == SlotState::Held) {
            let is_in_group = pool.shared.as_ref().is_some_and(|group| group.accounts.contains(&it.account));
            if it.profile == pool.profile || is_in_group {
                let asked = YieldId { from: self.node, pool: table, asked_by: 0, lease: it.lease };
                self.tell(it.node, SlotsMessage::Yield { asked, viewer: None, claim: None });
            }
        }
    }

    pub(super) fn on_message(&self, message: SlotsMessage) {
        match message {
            SlotsMessage::Yield { asked, viewer, claim } => {
                let mut inner = self.inner.lock();
                let mut out = Outgoing::new();
                self.asked_to_yield(&mut inner, asked, viewer, claim, &mut out);
                send(inner, out);
            }
            SlotsMessage::Kept(YieldId { pool, asked_by, lease, .. }) => {
                self.link.send(NodeInput::Kept { pool, asked_by, by: lease });
            }
            SlotsMessage::Lingering(YieldId { pool, asked_by, lease, .. }) => {
                self.link.send(NodeInput::Lingering { pool, asked_by, by: lease });
            }
        }
    }

    /// Answers the node that asked.
    pub(super) fn answer(&self, message: SlotsMessage) {
        let (SlotsMessage::Yield { asked: YieldId { from, .. }, .. }
        | SlotsMessage::Kept(YieldId { from, .. })
        | SlotsMessage::Lingering(YieldId { from, .. })) = message;
        // Another process of this node has asked, once this one was handed over.
        if from == self.node && !self.inner.lock().is_handed_over {
            self.on_message(message);
        } else {
            self.tell(from, message);
        }
    }

    fn tell(&self, node: NodeId, message: SlotsMessage) {
        // Without an answer, the next holder is asked after a second.
        let _ = self.messages.try_send((node, message));
    }
}
