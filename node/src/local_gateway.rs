//! What the node port needs of the parts of the gateway that are built on this crate.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, Uri};
use serde_json::Value;
use server::reply::Refusal;
use warp::reply::Response as Reply;

/// The outcome of a request of an operator: a reply, or the reason of a refusal.
pub type OperatorOutcome = Result<Value, String>;

/// This gateway, as other nodes use it.
pub trait LocalGateway: Send + Sync {
    /// Serves the file of a recording that this node has, its playlist or its picture, at the rest of a path below
    /// [`RECORDINGS_PATH`](crate::recordings::RECORDINGS_PATH).
    fn recording(
        self: Arc<Self>,
        method: Method,
        uri: Uri,
        headers: HeaderMap,
    ) -> BoxFuture<'static, Result<Reply, Refusal>>;

    /// Returns the progress of refreshes on this node, as sockets of admins show it, without credentials.
    fn refreshes(&self) -> Vec<Value>;

    /// Executes a request of the operator of another node. `None` if this version does not know it.
    fn execute(self: Arc<Self>, request: Value) -> BoxFuture<'static, Option<OperatorOutcome>>;
}

impl fmt::Debug for dyn LocalGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalGateway(…)")
    }
}
