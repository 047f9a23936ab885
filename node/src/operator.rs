//! Requests of the operator of a node that change what all nodes share, which the node that writes executes: users from the
//! command line, and who belongs to the cluster.

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::timeout;

use super::forward::{Forwarder, WriterPlace};
use super::time_limits::OPERATOR_ANSWER_TIMEOUT;
use crate::local_gateway::OperatorOutcome;

/// Path on the node port.
pub(super) const OPERATOR_PATH: &str = "/node/v1/operator";
/// Maximum size of a request, and of a reply.
pub(super) const OPERATOR_BYTES_MAX: usize = 64 << 10;

impl Forwarder {
    /// Passes a request to the node that writes. `None`: this is the one, so it executes the request itself.
    pub async fn pass(&self, request: &Value) -> Option<OperatorOutcome> {
        let failed = |what: &str| Some(Err(format!("{what}; try again in a few seconds")));
        let address = match self.target().await {
            WriterPlace::Here => return None,
            WriterPlace::There(address) => address,
            WriterPlace::Nowhere => {
                return failed("no node of the cluster writes the configuration at present");
            }
        };
        let Ok(body) = serde_json::to_vec(request) else { return failed("the request has no JSON form") };
        let asking = async {
            let config = self.trust().client().map_err(|it| it.to_string())?;
            let mut connection = address.connect(config).await.map_err(|it| it.to_string())?;
            let request = Request::post(OPERATOR_PATH).body(Full::from(body)).map_err(|it| it.to_string())?;
            let response = connection.sender.send_request(request).await.map_err(|it| it.to_string())?;
            let outcome = self.outcome(response).await;
            drop(connection);
            outcome
        };
        match timeout(OPERATOR_ANSWER_TIMEOUT, asking).await {
            Ok(Ok(outcome)) => Some(outcome),
            Ok(Err(reason)) => {
                failed(&format!("failed to ask the node that writes the configuration: {reason}"))
            }
            Err(_) => failed("the node that writes the configuration does not answer"),
        }
    }

    /// Reads a reply, and waits until the store of this node has what was written.
    async fn outcome(&self, response: Response<Incoming>) -> Result<OperatorOutcome, String> {
        self.follow(response.headers()).await;
        let status = response.status();
        let body = Limited::new(response.into_body(), OPERATOR_BYTES_MAX).collect().await;
        let body = body.map_err(|it| it.to_string())?.to_bytes();
        match status {
            StatusCode::OK => serde_json::from_slice(&body).map_err(|it| it.to_string()),
            status => Err(format!("it answers {status}; is it of another version?")),
        }
    }
}
