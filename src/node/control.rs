//! Orders of admins to other nodes: what they let this node do to channels and players there.
//!
//! An order goes to the port of the other node with the credentials of the admin. That node authenticates the admin as this
//! one did, and carries the order out without asking further nodes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actors::{ClusterView, NodeState, NodeView};
use bytes::Bytes;
use domain::cluster::record::NodeId;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use tokio::sync::watch;
use tokio::time::timeout;

use super::client::NodeAddress;
use super::trust::NodeTrust;
use crate::playing_control::{Controlled, Order};

/// Path on the node port.
pub(super) const CONTROL_PATH: &str = "/node/v1/control";
/// Maximum size of an order and of its outcome.
pub(super) const CONTROL_BYTES_MAX: usize = 64 << 10;
/// Longest time for an answer: a switch takes up to 25 s.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(28);

/// The headers of a client that may be its credentials.
const CREDENTIALS: [HeaderName; 2] = [AUTHORIZATION, HeaderName::from_static("x-api-key")];

/// Another node that has joined.
#[derive(Clone, Debug)]
pub(crate) struct OtherNode {
    pub(crate) id: NodeId,
    pub(crate) name: String,
    address: NodeAddress,
}

/// The other nodes, for orders to them.
pub(crate) struct OtherNodes {
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
    pub(crate) fn own_name(&self) -> String {
        self.members.borrow().own().map(|it| it.info.name.clone()).unwrap_or_default()
    }

    /// Lists the nodes that may run, by name. Without NATS, those that ran when it was last there.
    pub(crate) fn running(&self) -> Vec<OtherNode> {
        let view = self.members.borrow().clone();
        let may_run =
            |it: &&NodeView| !it.is_own && matches!(it.state, NodeState::Alive | NodeState::Unknown);
        let node = |it: &NodeView| {
            let address = NodeAddress::of(&it.info)?;
            Some(OtherNode { id: it.id, name: it.info.name.clone(), address })
        };
        view.nodes.iter().filter(may_run).filter_map(node).collect()
    }

    /// Passes an order to a node, with the credentials in the headers of a client. Returns the outcome there.
    ///
    /// # Errors
    /// The node does not answer in time, or refuses the order. If it does not answer, it may have carried it out.
    pub(crate) async fn pass(
        &self,
        node: &OtherNode,
        headers: &HeaderMap,
        order: Order,
    ) -> Result<Controlled, String> {
        let passing = self.exchange(node, headers, order);
        timeout(ANSWER_TIMEOUT, passing).await.unwrap_or_else(|_| Err("no answer in time".to_owned()))
    }

    async fn exchange(
        &self,
        node: &OtherNode,
        headers: &HeaderMap,
        order: Order,
    ) -> Result<Controlled, String> {
        let text = |error: &dyn fmt::Display| error.to_string();
        let config = self.trust.client().map_err(|it| text(&it))?;
        let body = Full::new(Bytes::from(serde_json::to_vec(&order).map_err(|it| text(&it))?));
        let request = Request::builder().method(Method::POST).uri(CONTROL_PATH).body(body);
        let mut request = request.map_err(|it| text(&it))?;
        for name in CREDENTIALS {
            if let Some(value) = headers.get(&name) {
                request.headers_mut().insert(name, value.clone());
            }
        }
        let mut connection = node.address.connect(config).await.map_err(|it| text(&it))?;
        let response = connection.sender.send_request(request).await.map_err(|it| text(&it))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), CONTROL_BYTES_MAX).collect().await;
        let body = body.map_err(|it| text(&it))?.to_bytes();
        if status != StatusCode::OK {
            return Err(format!("status {status}"));
        }
        serde_json::from_slice(&body).map_err(|it| text(&it))
    }
}
