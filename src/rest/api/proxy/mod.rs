//! `/proxy/ts/`: what plays at this moment, and control over it. The streams themselves are the players' routes.

mod control;
mod status;
mod timeline;

use actors::{AskError, ChannelStatus, Target};
use http::StatusCode;
use uuid::Uuid;

use crate::http::reply::Refusal;
use crate::rest::frame::call::Call;
use crate::rest::frame::route::Route;

pub(super) fn routes() -> Vec<Route> {
    let routes = [status::routes(), control::routes(), timeline::routes()];
    let timeout = |route: Route| {
        route.refuses(
            StatusCode::GATEWAY_TIMEOUT,
            "The channel does not answer in time; what became of it is unknown.",
        )
    };
    routes.into_iter().flatten().map(timeout).collect()
}

/// The channel, or the preview, that goes by the uuid of the path, and how it is doing.
async fn live(call: &Call) -> Result<(Target, ChannelStatus), Refusal> {
    let uuid = call.uuid()?;
    let switchboard = &call.app.switchboard;
    let channel = Target::Channel(uuid);
    if let Some(status) = switchboard.status(channel).await.map_err(no_answer)? {
        return Ok((channel, status));
    }
    // A preview does not tell its stream by its uuid.
    let all = switchboard.overview().await.map_err(no_answer)?;
    let found = all.into_iter().find(|it| it.target.uuid() == uuid).ok_or_else(|| not_live(uuid))?;
    let status = found.status.ok_or_else(|| no_answer(AskError::Timeout))?;
    Ok((found.target, status))
}

fn not_live(uuid: Uuid) -> Refusal {
    Refusal::not_found(format!("Nobody watches channel {uuid}."))
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
    fn who_waits_in_vain_is_told_whether_to_try_again() {
        for (error, status) in [(AskError::Timeout, 504), (AskError::Gone, 503)] {
            assert_eq!(no_answer(error).into_response().status().as_u16(), status, "{error}");
        }
    }
}
