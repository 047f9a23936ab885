//! Draining a node from any other one.

use std::fmt;

use http::{Method, Request};
use http_body_util::Full;
use tokio::time::timeout;
use tracing::warn;

use super::peers::OtherNodes;
use super::time_limits::DRAIN_ANSWER_TIMEOUT;

/// `PUT` begins the drain of the node that is asked, `DELETE` ends it.
pub(super) const DRAIN_PATH: &str = "/node/v1/drain";

/// Maximum size of that answer.
const ANSWER_BYTES_MAX: usize = 4 << 10;

/// Why a node was not drained.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DrainError {
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
pub(super) async fn set_drain(nodes: &OtherNodes, name: &str, is_draining: bool) -> Result<(), DrainError> {
    let node = nodes.running().into_iter().find(|it| it.name == name).ok_or(DrainError::NotRunning)?;
    let failed = |error: &dyn fmt::Display| {
        warn!(node = name, "failed to drain a node: {error}");
        DrainError::Unreachable
    };
    let method = if is_draining { Method::PUT } else { Method::DELETE };
    let request = Request::builder().method(method).uri(DRAIN_PATH).body(Full::default());
    let asking = nodes.exchange(&node, request.map_err(|it| failed(&it))?, ANSWER_BYTES_MAX);
    match timeout(DRAIN_ANSWER_TIMEOUT, asking).await {
        Ok(answer) => answer.map(drop).map_err(|it| failed(&it)),
        Err(_) => Err(failed(&"no answer in time")),
    }
}
