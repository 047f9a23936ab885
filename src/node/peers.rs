//! Requests of this node to the others, over their ports.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actors::{ClusterView, NodeDialer, NodeState};
use bytes::Bytes;
use domain::cluster::record::NodeId;
use futures_util::future::join_all;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

/// The other nodes of the cluster.
pub(crate) struct Peers {
    dialer: Arc<dyn NodeDialer>,
    view: watch::Receiver<Arc<ClusterView>>,
}

/// A request to all other nodes.
#[derive(Clone, Debug)]
pub(crate) struct PeerRequest {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) body: Bytes,
    /// Maximum size of an answer.
    pub(crate) bytes_max: usize,
    /// Longest wait for an answer. A node that takes longer is left out.
    pub(crate) wait: Duration,
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Peers(…)")
    }
}

impl Peers {
    pub(crate) fn new(dialer: Arc<dyn NodeDialer>, view: watch::Receiver<Arc<ClusterView>>) -> Self {
        Self { dialer, view }
    }

    /// Returns the name of this node.
    pub(crate) fn own_name(&self) -> Arc<str> {
        self.view.borrow().own().map_or_else(|| Arc::from(""), |it| it.info.name.as_str().into())
    }

    /// Asks all other nodes that are members, at the same time. Returns the answers with the names of the nodes; one that does
    /// not answer is left out.
    pub(crate) async fn ask_all<A: DeserializeOwned>(&self, request: &PeerRequest) -> Vec<(Arc<str>, A)> {
        let view = self.view.borrow().clone();
        let others = view.nodes.iter().filter(|it| !it.is_own && it.state == NodeState::Alive);
        let asking = others.map(async |it| {
            let (name, path) = (it.info.name.as_str(), request.path);
            match timeout(request.wait, self.ask(it.id, request)).await {
                Ok(Ok(answer)) => return Some((Arc::from(name), answer)),
                Ok(Err(error)) => warn!(node = name, path, "failed to ask a node: {error}"),
                Err(_) => warn!(node = name, path, "a node did not answer in time"),
            }
            None
        });
        join_all(asking).await.into_iter().flatten().collect()
    }

    async fn ask<A: DeserializeOwned>(
        &self,
        node: NodeId,
        request: &PeerRequest,
    ) -> Result<A, Box<dyn std::error::Error + Send + Sync>> {
        let stream = self.dialer.connect(node).await?;
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
        let _connection = AbortOnDropHandle::new(tokio::spawn(async move {
            // An error also ends the request, which reports it.
            let _ = connection.await;
        }));
        let PeerRequest { method, path, body, bytes_max, .. } = request.clone();
        let request = Request::builder().method(method).uri(path).body(Full::new(body))?;
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), bytes_max).collect().await?.to_bytes();
        if status != StatusCode::OK {
            return Err(format!("it answers {status}").into());
        }
        Ok(serde_json::from_slice(&body)?)
    }
}
