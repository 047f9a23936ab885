//! The part of this node in a channel of a cluster.

use std::sync::Arc;

use domain::cluster::record::NodeId;
use domain::playout::Attempt;
use tokio_util::task::AbortOnDropHandle;

use crate::channel::{ChannelClaim, ChannelNode};

/// Attempts from this number on are connections to origins; those of the playout are lower.
const FIRST_PULL: u64 = 1 << 63;

/// The part of this node.
pub(super) enum Role {
    /// Nobody has asked yet.
    Unasked,
    /// The decision is awaited.
    Asked {
        _timeout: AbortOnDropHandle<()>,
    },
    /// The cluster did not decide in time.
    Alone,
    Origin {
        epoch: u64,
    },
    Edge(Edge),
}

/// The connection to an origin.
pub(super) struct Edge {
    pub(super) epoch: u64,
    /// The name of the origin.
    pub(super) node: Arc<str>,
    pub(super) from: NodeId,
    /// The present connection, or attempt to connect.
    pub(super) attempt: Attempt,
    /// Present while no connection exists.
    pub(super) connecting: Option<AbortOnDropHandle<()>>,
    /// The origin answers. This node plays a source of its own until the origin has something to show.
    pub(super) is_reached: bool,
    /// Something of this origin was shown.
    pub(super) has_played: bool,
}

/// The part of this node in its channel.
pub(super) struct Sharing {
    /// `None` before the first join, after the end, and without a cluster.
    pub(super) claim: Option<ChannelClaim>,
    pub(super) role: Role,
    /// Nodes that read the ring.
    pub(super) n_edges: usize,
    /// Present while a node that has asked for the channel does not read it yet.
    pub(super) hosting: Option<AbortOnDropHandle<()>>,
    /// Other nodes read here what the process before this one plays.
    pub(super) relays_predecessor: bool,
    /// Viewers have seen something of the channel that was not of a source of this node, or that was before another node
    /// became the origin. Their streams do not end because no slot is free for a moment.
    pub(super) continues: bool,
    pub(super) last_pull: u64,
}

impl Default for Sharing {
    fn default() -> Self {
        Self {
            claim: None,
            role: Role::Unasked,
            n_edges: 0,
            hosting: None,
            relays_predecessor: false,
            continues: false,
            last_pull: FIRST_PULL,
        }
    }
}

/// Returns whether an attempt is a connection to an origin.
pub(super) fn is_pull(attempt: Attempt) -> bool {
    attempt.0 >= FIRST_PULL
}

impl Sharing {
    pub(super) fn n_edges(&self) -> usize {
        self.n_edges
    }

    /// Returns the part of this node, for people.
    pub(super) fn status(&self) -> Option<ChannelNode> {
        match &self.role {
            Role::Origin { epoch } => {
                let origin = self.claim.as_ref()?.shared().name().clone();
                Some(ChannelNode { origin, is_origin: true, epoch: *epoch })
            }
            Role::Edge(edge) => {
                Some(ChannelNode { origin: edge.node.clone(), is_origin: false, epoch: edge.epoch })
            }
            Role::Unasked | Role::Asked { .. } | Role::Alone => None,
        }
    }

    /// Returns whether the ring of another node is shown.
    pub(super) fn is_pulling(&self) -> bool {
        matches!(&self.role, Role::Edge(Edge { connecting: None, has_played: true, .. }))
    }

    pub(super) fn is_edge(&self) -> bool {
        matches!(self.role, Role::Edge(_))
    }

    pub(super) fn edge(&mut self, attempt: Attempt) -> Option<&mut Edge> {
        match &mut self.role {
            Role::Edge(edge) if edge.attempt == attempt => Some(edge),
            _ => None,
        }
    }

    /// Ends the part of this node.
    pub(super) fn end(&mut self) {
        self.role = Role::Unasked;
        self.claim = None;
        self.continues = false;
    }

    /// Notes that nobody watches the channel any more who has seen something of it.
    pub(super) fn viewers_left(&mut self) {
        self.continues = false;
    }
}
