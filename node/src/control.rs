//! Orders of admins to other nodes: what they let this node do to channels and players there.
//!
//! An order goes to the port of the other node with the credentials of the admin. That node authenticates the admin as this
//! one did, and carries the order out without asking further nodes.

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, Method, Request};
use http_body_util::Full;
use tokio::time::timeout;

use super::peers::{OtherNode, OtherNodes};
use super::time_limits::CONTROL_ANSWER_TIMEOUT;
use crate::playing_control::{Controlled, Order};

/// Path on the node port.
pub(super) const CONTROL_PATH: &str = "/node/v1/control";
/// Maximum size of an order and of its outcome.
pub(super) const CONTROL_BYTES_MAX: usize = 64 << 10;

/// The headers of a client that may be its credentials.
const CREDENTIALS: [HeaderName; 2] = [AUTHORIZATION, HeaderName::from_static("x-api-key")];

impl OtherNodes {
    /// Passes an order to a node, with the credentials in the headers of a client. Returns the outcome there.
    ///
    /// # Errors
    /// The node does not answer in time, or refuses the order. If it does not answer, it may have carried it out.
    pub async fn pass(
        &self,
        node: &OtherNode,
        headers: &HeaderMap,
        order: Order,
    ) -> Result<Controlled, String> {
        let passing = self.send_order(node, headers, order);
        timeout(CONTROL_ANSWER_TIMEOUT, passing).await.unwrap_or_else(|_| Err("no answer in time".to_owned()))
    }

    async fn send_order(
        &self,
        node: &OtherNode,
        headers: &HeaderMap,
        order: Order,
    ) -> Result<Controlled, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let body = Full::new(Bytes::from(serde_json::to_vec(&order).map_err(|it| text(&it))?));
        let request = Request::builder().method(Method::POST).uri(CONTROL_PATH).body(body);
        let mut request = request.map_err(|it| text(&it))?;
        for name in CREDENTIALS {
            if let Some(value) = headers.get(&name) {
                request.headers_mut().insert(name, value.clone());
            }
        }
        let (_, body) = self.exchange(node, request, CONTROL_BYTES_MAX).await?;
        serde_json::from_slice(&body).map_err(|it| text(&it))
    }
}
