//! Requests of this node to the others, over their ports.

use std::fmt;
use std::sync::Arc;

use actors::{ClusterView, NodeState, NodeView};
use bytes::Bytes;
use cluster::NodeRole;
use domain::cluster::record::NodeId;
use http::response::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::client::NodeAddress;
use super::trust::NodeTrust;

/// Another node that has joined.
#[derive(Clone, Debug)]
pub struct OtherNode {
    pub id: NodeId,
    pub name: String,
    address: NodeAddress,
}

/// The other nodes of the cluster.
pub struct OtherNodes {
    trust: Arc<NodeTrust>,
    members: watch::Receiver<Arc<ClusterView>>,
}

impl fmt::Debug for OtherNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OtherNodes(…)")
    }
}

impl OtherNodes {
    pub(super) fn new(trust: Arc<NodeTrust>, members: watch::Receiver<Arc<ClusterView>>) -> Self {
        Self { trust, members }
    }

    /// Returns the name of this node; empty before the membership has begun.
    pub fn own_name(&self) -> String {
        self.members.borrow().own().map(|it| it.info.name.clone()).unwrap_or_default()
    }

    /// Lists the nodes that may run, by name. Without NATS, those that ran when it was last there.
    pub fn running(&self) -> Vec<OtherNode> {
        let view = self.members.borrow().clone();
        let may_run =
            |it: &&NodeView| !it.is_own && matches!(it.state, NodeState::Alive | NodeState::Unknown);
        let node = |it: &NodeView| {
            let address = NodeAddress::from_info(&it.info)?;
            Some(OtherNode { id: it.id, name: it.info.name.clone(), address })
        };
        view.nodes.iter().filter(may_run).filter_map(node).collect()
    }

    /// Lists the full nodes that may run and are not drained.
    pub(super) fn full(&self) -> Vec<OtherNode> {
        let view = self.members.borrow().clone();
        let is_full = |it: &NodeView| it.info.role == NodeRole::Full && !it.info.load.is_draining;
        let mut nodes = self.running();
        nodes.retain(|it| view.nodes.iter().any(|of| of.id == it.id && is_full(of)));
        nodes
    }

    /// Lists the nodes with these names that may run, in this order; those that are drained come last.
    pub(super) fn named(&self, names: &[String]) -> Vec<OtherNode> {
        let (running, view) = (self.running(), self.members.borrow().clone());
        let named = |name: &String| running.iter().find(|it| it.name == *name).cloned();
        let mut nodes: Vec<_> = names.iter().filter_map(named).collect();
        nodes.sort_by_key(|it| view.nodes.iter().any(|of| of.id == it.id && of.info.load.is_draining));
        nodes
    }

    /// Sends a request to a node, on a connection of its own. Returns its answer, with a body of at most this size. The caller
    /// limits the wait.
    ///
    /// # Errors
    /// The node cannot be reached, refuses the request, or sends more.
    pub(super) async fn exchange(
        &self,
        node: &OtherNode,
        request: Request<Full<Bytes>>,
        bytes_max: usize,
    ) -> Result<(Parts, Bytes), String> {
        let (response, _connection) = self.open(node, request).await?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, bytes_max).collect().await;
        let body = body.map_err(|it| it.to_string())?.to_bytes();
        if head.status != StatusCode::OK {
            return Err(format!("status {}", head.status));
        }
        Ok((head, body))
    }

    /// Sends a request to a node, on a connection of its own. Returns the answer, whose body arrives as long as the connection
    /// is kept. The caller limits the wait.
    ///
    /// # Errors
    /// The node cannot be reached.
    pub(super) async fn open(
        &self,
        node: &OtherNode,
        request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, AbortOnDropHandle<()>), String> {
        let text = |error: &dyn fmt::Display| error.to_string();
        let config = self.trust.client().map_err(|it| text(&it))?;
        let mut connection = node.address.connect(config).await.map_err(|it| text(&it))?;
        let response = connection.sender.send_request(request).await.map_err(|it| text(&it))?;
        Ok((response, connection.task))
    }
}
