//! The rings of live channels of other nodes: connections to their ports.

use std::io;
use std::sync::{Arc, OnceLock};

use actors::{ClusterView, NodeConnecting, NodeDialer, NodeSocket, NodeState, NodeView};
use cluster::{NodeInfo, NodeRole};
use domain::cluster::record::NodeId;
use tokio::sync::watch;

use super::client::NodeAddress;
use super::trust::NodeTrust;

/// Connects to the ports of other nodes.
pub(super) struct RingDialer {
    trust: Arc<NodeTrust>,
    /// Set when the membership has begun. Before that, no other node is known.
    view: OnceLock<watch::Receiver<Arc<ClusterView>>>,
}

impl RingDialer {
    pub(super) fn new(trust: Arc<NodeTrust>) -> Self {
        Self { trust, view: OnceLock::new() }
    }

    pub(super) fn follow(&self, view: watch::Receiver<Arc<ClusterView>>) {
        // Called once.
        let _ = self.view.set(view);
    }

    fn find(&self, node: NodeId) -> Option<NodeInfo> {
        let view = self.view.get()?.borrow().clone();
        view.nodes.iter().find(|it| it.id == node).map(|it| it.info.clone())
    }
}

impl NodeDialer for RingDialer {
    fn name(&self, node: NodeId) -> String {
        self.find(node).map_or_else(|| node.0.to_string(), |it| it.name)
    }

    fn full_nodes(&self) -> Vec<NodeId> {
        let Some(view) = self.view.get().map(|it| it.borrow().clone()) else { return Vec::new() };
        let may_open = |it: &&NodeView| {
            let NodeInfo { role, load, .. } = &it.info;
            !it.is_own && it.state == NodeState::Alive && *role == NodeRole::Full && !load.is_draining
        };
        let mut nodes: Vec<_> = view.nodes.iter().filter(may_open).collect();
        nodes.sort_by_key(|it| (it.info.load.channels, it.info.load.clients, it.info.load.cpu_percent));
        nodes.iter().map(|it| it.id).collect()
    }

    fn connect(&self, node: NodeId) -> NodeConnecting {
        let (config, found) = (self.trust.client(), self.find(node));
        Box::pin(async move {
            let config = config.map_err(io::Error::other)?;
            let address = found.as_ref().and_then(NodeAddress::from_info);
            let address =
                address.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the node has no address"))?;
            Ok(Box::new(address.dial(config).await?) as NodeSocket)
        })
    }
}
