//! `/proxy/ts/`, `/proxy/vod/` and `/proxy/catchup/`: status and control of live channels, films, episodes and catch-up. `player` serves the streams
//! themselves.

mod catchup;
mod control;
mod status;
mod timeline;
mod vod;

use actors::{AskError, ChannelStatus, Target};
use http::StatusCode;
use node::playing_control;
use route_frame::call::Call;
use route_frame::route::Route;
use server::reply::Refusal;
use uuid::Uuid;

pub(crate) use self::catchup::pushed_past_stats;
pub(crate) use self::status::pushed_segmenter;
pub(super) use self::status::visible_targets;
pub(crate) use self::vod::pushed_stats;

pub(super) fn routes() -> Vec<Route> {
    let routes = [status::routes(), control::routes(), timeline::routes(), vod::routes(), catchup::routes()];
    let timeout = |route: Route| {
        route.refuses(
            StatusCode::GATEWAY_TIMEOUT,
            "The channel does not answer in time. The result is unknown.",
        )
    };
    routes.into_iter().flatten().map(timeout).collect()
}

/// Returns the live channel or preview of this node with the UUID of the path, and its status.
async fn live(call: &Call) -> Result<(Target, ChannelStatus), Refusal> {
    let uuid = call.uuid()?;
    let found = playing_control::live(&call.app.switchboard, uuid).await.map_err(no_answer)?;
    found.ok_or_else(|| not_live(uuid))
}

fn not_live(uuid: Uuid) -> Refusal {
    Refusal::not_found(format!("Channel {uuid} is not playing."))
}

fn no_answer(error: AskError) -> Refusal {
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
