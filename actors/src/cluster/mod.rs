//! This node as a member of a cluster: renews its record in the engine, watches the others, and says who is there.
//!
//! ```text
//!   member.rs    the task: events of the engine, answers and time go into `domain::cluster::ClusterNode`, and its
//!      │         effects become requests
//!      ├─ link.rs     its inputs from the other parts of the gateway, and its effects for them
//!      ├─ configuration.rs   the shared configuration: this node follows its log, or writes it
//!      ├─ snapshots.rs       snapshots of it, and the removal of old entries of its log
//!      ├─ files.rs    files in the object store
//!      ├─ drain.rs    whether this node gives its channels away, and when the streams of its viewers end
//!      ├─ clock.rs    the clock and the timer of the rules, which count suspend
//!      ├─ clock_offset.rs   how far the wall clocks of other nodes are away
//!      ├─ view.rs     who is there, for people and programs
//!      └─ slots/      grants leases: those of pools with a limit are passed through the cluster
//! ```
//!
//! The limits of users count the sessions of all nodes by [`crate::seats`].

#[cfg(test)]
mod channel_tests;
mod clock;
mod clock_offset;
mod configuration;
mod drain;
mod files;
mod link;
mod member;
#[cfg(test)]
mod seat_tests;
mod slots;
#[cfg(test)]
mod snapshot_tests;
mod snapshots;
#[cfg(test)]
mod take_over_tests;
#[cfg(feature = "testing")]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod view;

use std::sync::Arc;
use std::time::Duration;

use cluster::{Engine, NodeInfo, NodeLoad};
use domain::cluster::predecessor::MemberPredecessor;
use domain::cluster::record::{Incarnation, NodeId};
use domain::cluster::{BootTime, NodeEffect, NodeInput};
use media::Guard;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use tracing::error;

use self::clock::BootClock;
pub(crate) use self::clock::BootTimeReader;
pub use self::configuration::{CompleteStore, Configuration, ConfigurationView};
pub use self::drain::{DrainChanges, NodeDrain};
pub use self::files::{FileError, FileExchange, StoredObject, digest_of};
pub use self::link::{ClusterLink, EffectReceivers, MemberEnds, SlotTables, link};
use self::member::{HandedOver, MemberTask};
pub use self::member::{PredecessorMessage, PredecessorPort};
pub(crate) use self::slots::ClusterLeases;
pub use self::snapshots::{
    ReadKeys, SnapshotLimits, SnapshotName, SnapshotParts, SnapshotView, read_usable_snapshot, store_snapshot,
};
pub use self::view::{ClusterView, NodeState, NodeView};
use crate::events::Events;

/// Longest time for telling the others that this node leaves. Without an answer, they notice after 20 s.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(4);

/// Longest wait until the task of the member has noticed a hand-over.
const HAND_OVER_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads the work of this node.
pub type ReadLoad = Arc<dyn Fn() -> NodeLoad + Send + Sync>;

/// The means by which a system shares limits with the other nodes of a cluster. The member may begin later, see
/// [`Cluster::start`].
pub struct ClusterParts {
    pub link: ClusterLink,
    /// The effects about slots.
    pub slots: UnboundedReceiver<NodeEffect>,
    pub tables: watch::Receiver<SlotTables>,
    pub engine: Arc<dyn Engine>,
    /// The id of this node.
    pub node: NodeId,
}

/// This node as a member of a cluster. Dropping it ends the membership without a word; see [`leave`](Self::leave).
#[derive(Debug)]
pub struct Cluster {
    view: watch::Receiver<Arc<ClusterView>>,
    handed_over: watch::Receiver<Option<HandedOver>>,
    link: ClusterLink,
    _task: AbortOnDropHandle<()>,
}

/// Ends this process, because its member has panicked. Without it, nothing would close the sources when other nodes may
/// open theirs, and the guard has gone with it. The kernel closes all connections; a new process is another incarnation.
fn end_process() {
    error!("the part of the gateway that is a member of the cluster has failed; the process ends");
    std::process::exit(1);
}

impl Cluster {
    /// Begins to join with a link and its ends from [`link()`], and stays a member as far as the engine allows it. The guard
    /// kills this process if it is frozen. The incarnation of the process before this one, if there is one, stays valid.
    /// Fails if the system has no boot clock.
    pub fn start(
        (link, ends): (ClusterLink, MemberEnds),
        engine: Arc<dyn Engine>,
        info: NodeInfo,
        load: ReadLoad,
        events: Events,
        guard: Option<Guard>,
        predecessor: Option<(MemberPredecessor, PredecessorPort)>,
    ) -> std::io::Result<Self> {
        let clock = BootClock::new()?;
        let of_member = (link, ends);
        Self::start_with(of_member, engine, info, load, events, (guard, clock, end_process), predecessor)
    }

    fn start_with(
        (link, ends): (ClusterLink, MemberEnds),
        engine: Arc<dyn Engine>,
        info: NodeInfo,
        load: ReadLoad,
        events: Events,
        (guard, clock, on_panic): (Option<Guard>, BootClock, fn()),
        predecessor: Option<(MemberPredecessor, PredecessorPort)>,
    ) -> std::io::Result<Self> {
        let (task, (view, handed_over)) =
            MemberTask::new(ends.ports, engine, info, load, events, (guard, clock), predecessor)?;
        let member = AbortOnDropHandle::new(crate::tasks::spawn(task.run(ends.inputs)));
        let task = AbortOnDropHandle::new(crate::tasks::spawn(async move {
            if member.await.is_err_and(|it| it.is_panic()) {
                on_panic();
            }
        }));
        Ok(Self { view, handed_over, link, _task: task })
    }

    /// Returns who is there.
    pub fn view(&self) -> Arc<ClusterView> {
        self.view.borrow().clone()
    }

    /// Returns who is there, and the changes.
    pub fn changes(&self) -> watch::Receiver<Arc<ClusterView>> {
        self.view.clone()
    }

    /// Leaves the membership to another process of this node, and writes nothing any more. `has_leases`: this process has
    /// connections with leases of the cluster, or may get some. Returns its incarnation, unless it is not a member.
    pub async fn hand_over(&self, has_leases: bool) -> Option<Incarnation> {
        self.link.send(NodeInput::HandOver);
        if !has_leases {
            self.link.send(NodeInput::HandedOverClosed);
        }
        let mut handed_over = self.handed_over.clone();
        let done = timeout(HAND_OVER_TIMEOUT, handed_over.wait_for(Option::is_some)).await;
        done.ok()?.ok()?.and_then(|it| it.incarnation)
    }

    /// Notes that the process that has taken over has renewed the membership.
    pub fn prolonged(&self, until: BootTime) {
        self.link.send(NodeInput::Prolonged { until });
    }

    /// Closes all connections with leases of this process, which was handed over.
    pub fn end_handed_over(&self) {
        self.link.send(NodeInput::EndHandedOver);
    }

    /// Tells the others that this node leaves, so that they need not wait. Returns whether the engine has confirmed it.
    pub async fn leave(&self) -> bool {
        self.link.send(NodeInput::Leave);
        let mut view = self.view.clone();
        let has_left = |it: &Arc<ClusterView>| it.own().is_some_and(|it| it.state == NodeState::Left);
        matches!(timeout(LEAVE_TIMEOUT, view.wait_for(has_left)).await, Ok(Ok(_)))
    }
}
