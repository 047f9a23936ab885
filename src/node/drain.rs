//! Draining a node from any other one.

use std::time::Duration;

use actors::{NodeState, NodeView};
use bytes::Bytes;
use domain::cluster::record::NodeId;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use tokio::time::timeout;
use tracing::warn;

use super::client::connect;
use super::trust::NodeTrust;
use super::{node_name, port_of};

/// `PUT` begins the drain of the node that is asked, `DELETE` ends it.
pub(super) const DRAIN_PATH: &str = "/node/v1/drain";

/// Longest wait for the answer of the node.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a node was not drained.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DrainError {
    #[error("The cluster has no node with this name.")]
    Unknown,
    #[error("The node does not run at present.")]
    NotRunning,
    #[error("The node cannot be reached. Try again in a few seconds.")]
    Unreachable,
}

/// Begins or ends the drain of another node.
///
/// # Errors
/// If the node does not run, or does not answer.
pub(super) async fn set_drain(
    trust: &NodeTrust,
    node: &NodeView,
    is_draining: bool,
) -> Result<(), DrainError> {
    let certificate = node.info.certificate.filter(|_| node.state == NodeState::Alive);
    let certificate = certificate.ok_or(DrainError::NotRunning)?;
    let method = if is_draining { Method::PUT } else { Method::DELETE };
    let failed = |error: String| {
        warn!(node = node.info.name, "failed to drain a node: {error}");
        DrainError::Unreachable
    };
    let config = trust.client().map_err(|it| failed(it.to_string()))?;
    let name = node_name(NodeId(certificate));
    let mut reason = "it names no address".to_owned();
    for address in &node.info.addresses {
        let asking = async {
            let mut connection =
                connect(&port_of(address), &name, config.clone()).await.map_err(|it| it.to_string())?;
            let request = Request::builder().method(method.clone()).uri(DRAIN_PATH);
            let request = request.body(Full::<Bytes>::default()).map_err(|it| it.to_string())?;
            let answer = connection.sender.send_request(request).await.map_err(|it| it.to_string())?;
            match answer.status() {
                StatusCode::OK => Ok(()),
                status => Err(format!("it answers {status}; is it of an earlier version?")),
            }
        };
        match timeout(ANSWER_TIMEOUT, asking).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => reason = error,
            Err(_) => "it does not answer".clone_into(&mut reason),
        }
    }
    Err(failed(reason))
}
