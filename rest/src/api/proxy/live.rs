//! Finds the live channel of a request, or refuses the request.

use actors::{AskError, ChannelStatus, Target};
use http::StatusCode;
use node::playing_control;
use route_frame::call::Call;
use server::reply::Refusal;
use uuid::Uuid;

use crate::context::RestCall;

/// Returns the live channel or preview of this node with the UUID of the path, and its status.
pub(super) async fn live(call: &Call) -> Result<(Target, ChannelStatus), Refusal> {
    let uuid = call.uuid()?;
    let found = playing_control::live(&call.rest().live.switchboard, uuid).await.map_err(no_answer)?;
    found.ok_or_else(|| not_live(uuid))
}

/// Refuses a request for a channel that does not play.
pub(super) fn not_live(uuid: Uuid) -> Refusal {
    Refusal::not_found(format!("Channel {uuid} is not playing."))
}

/// Refuses a request that a channel did not answer.
pub(super) fn no_answer(error: AskError) -> Refusal {
    match error {
        AskError::Timeout => {
            Refusal::status(StatusCode::GATEWAY_TIMEOUT).with_detail("The channel does not answer in time.")
        }
        AskError::Gone => Refusal::unavailable("The gateway is stopping."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_without_an_answer_is_a_gateway_timeout_and_a_stopping_gateway_is_unavailable() {
        for (error, status) in [(AskError::Timeout, 504), (AskError::Gone, 503)] {
            assert_eq!(no_answer(error).into_response().status().as_u16(), status, "{error}");
        }
    }
}
