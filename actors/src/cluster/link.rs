//! The way between the task of the member and the parts of the gateway that use the cluster.
//!
//! ```text
//!   a part ── ClusterLink ──▶ member.rs ── EffectPorts ──▶ EffectReceivers, one for each kind of record
//! ```

use std::collections::BTreeMap;

use domain::cluster::record::{PoolId, PoolTable, ProcessId};
use domain::cluster::{NodeEffect, NodeInput};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

/// Passes inputs to the task of the member. Inputs that are sent before it runs wait for it.
///
/// The queue has no limit, because no input may be lost: the number of inputs is bounded by the leases, requests, sessions
/// and jobs of this node, each of which sends a few in its life.
#[derive(Clone, Debug)]
pub struct ClusterLink {
    inputs: UnboundedSender<NodeInput>,
}

impl ClusterLink {
    /// Passes an input on. Without a member any more, the input is dropped: the process is about to end.
    pub(crate) fn send(&self, input: NodeInput) {
        let _ = self.inputs.send(input);
    }
}

/// The ends of the task of the member.
#[derive(Debug)]
pub struct MemberEnds {
    pub(super) inputs: UnboundedReceiver<NodeInput>,
    pub(super) ports: EffectPorts,
}

/// Where the effects of each kind go.
///
/// The queues have no limit, as those of the inputs: an effect answers an input, or ends what an input began.
#[derive(Debug)]
pub(super) struct EffectPorts {
    slots: UnboundedSender<NodeEffect>,
    seats: UnboundedSender<NodeEffect>,
    channels: UnboundedSender<NodeEffect>,
    jobs: UnboundedSender<NodeEffect>,
    /// The newest slot tables. Up to date before the effects that follow from them.
    pub(super) tables: watch::Sender<SlotTables>,
}

/// The slots of the cluster, as the task of the member shows them.
#[derive(Debug, Default)]
pub struct SlotTables {
    /// The process of this node. `None`: its member has not begun.
    pub(crate) process: Option<ProcessId>,
    /// This node is a member now.
    pub(crate) is_member: bool,
    pub(crate) tables: BTreeMap<PoolId, PoolTable>,
}

impl EffectPorts {
    /// Passes an effect on to its part. Effects of the member itself, and effects for parts that are not there, are dropped.
    pub(super) fn send(&self, effect: NodeEffect) {
        let port = match &effect {
            NodeEffect::Read(_)
            | NodeEffect::ReadAll
            | NodeEffect::Write { .. }
            | NodeEffect::ProlongPredecessor { .. }
            | NodeEffect::EndPredecessor
            | NodeEffect::Joined(_)
            | NodeEffect::Lost(_) => return,
            NodeEffect::Granted { .. }
            | NodeEffect::Refused { .. }
            | NodeEffect::Close { .. }
            | NodeEffect::CloseHandedOver
            | NodeEffect::AskToYield { .. } => &self.slots,
            NodeEffect::Originate { .. }
            | NodeEffect::Pull { .. }
            | NodeEffect::SeekOrigin { .. }
            | NodeEffect::ReleaseSource { .. } => &self.channels,
            NodeEffect::RunJob { .. } | NodeEffect::StopJob { .. } => &self.jobs,
            NodeEffect::Seated { .. } | NodeEffect::NotSeated { .. } | NodeEffect::EndSession { .. } => {
                &self.seats
            }
        };
        let _ = port.send(effect);
    }
}

/// The effects for the parts of the gateway, in the order in which they were decided.
#[derive(Debug)]
pub struct EffectReceivers {
    pub slots: UnboundedReceiver<NodeEffect>,
    pub seats: UnboundedReceiver<NodeEffect>,
    pub channels: UnboundedReceiver<NodeEffect>,
    pub jobs: UnboundedReceiver<NodeEffect>,
    pub tables: watch::Receiver<SlotTables>,
}

/// Creates the ways between the task of a member and the other parts. They can be used before the task runs.
pub fn link() -> (ClusterLink, MemberEnds, EffectReceivers) {
    let (input, inputs) = unbounded_channel();
    let (slots, of_slots) = unbounded_channel();
    let (seats, of_seats) = unbounded_channel();
    let (channels, of_channels) = unbounded_channel();
    let (jobs, of_jobs) = unbounded_channel();
    let (tables, of_tables) = watch::channel(SlotTables::default());
    let ports = EffectPorts { slots, seats, channels, jobs, tables };
    let receivers = EffectReceivers {
        slots: of_slots,
        seats: of_seats,
        channels: of_channels,
        jobs: of_jobs,
        tables: of_tables,
    };
    (ClusterLink { inputs: input }, MemberEnds { inputs, ports }, receivers)
}
