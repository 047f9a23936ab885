//! The nodes of the cluster, as this one sees them.

use cluster::NodeInfo;
use domain::cluster::record::{Incarnation, NodeId};

/// The state of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeState {
    /// This node, which has no confirmed record yet, or no longer.
    Joining,
    /// A member.
    Alive,
    /// It has not renewed its record for 20 s, and another node has ended its membership; or its guard has, because the
    /// process has ended.
    Expired,
    /// It has left.
    Left,
    /// The engine cannot be reached, so this node does not know.
    Unknown,
}

impl NodeState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Joining => "joining",
            Self::Alive => "alive",
            Self::Expired => "expired",
            Self::Left => "left",
            Self::Unknown => "unknown",
        }
    }
}

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    pub id: NodeId,
    pub info: NodeInfo,
    pub state: NodeState,
    /// The time for which the node has been a member without interruption, as a number that grows.
    pub incarnation: Option<Incarnation>,
    /// Milliseconds since 1970 at which this node last saw a new record of it. `None`: never.
    pub last_seen: Option<i64>,
    /// By how many milliseconds its wall clock is ahead of that of this node. `None`: not known.
    pub clock_offset_ms: Option<i64>,
    /// This is the node that answers.
    pub is_own: bool,
}

/// The cluster, as this node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterView {
    /// The reason why the engine cannot be reached; `None` if it can.
    pub disconnected: Option<String>,
    /// The reason why this node cannot be a member, apart from the engine. A sentence with what to do.
    pub problem: Option<String>,
    /// The problem is that this node cannot read what the others write. The gateway ends.
    pub is_unfit: bool,
    /// By name.
    pub nodes: Vec<NodeView>,
}

impl ClusterView {
    /// Returns this node.
    pub fn own(&self) -> Option<&NodeView> {
        self.nodes.iter().find(|it| it.is_own)
    }
}
