//! `/proxy/ts/status`: live channels, their clients and their health.

use actors::{AskError, ChannelStatus, Target};
use domain::lineup::visible;
use domain::user_group::VIEW_CHANNEL;
use node::overview::overview;
use node::status::WantedClients;
use route_frame::access::STANDARD;
use route_frame::call::Call;
use route_frame::route::Route;
use server::reply::Refusal;

use super::live::{live, no_answer, not_live};
use super::live_view::{LiveChannelView, LiveChannelsView};
use crate::context::RestCall;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/proxy/ts/status",
            STANDARD,
            "Lists live channels. Non-admins see state and counts of visible channels.",
            list,
        )
        .also_with(VIEW_CHANNEL),
        Route::get("/proxy/ts/status/{uuid}", STANDARD, "Returns a live channel.", retrieve)
            .also_with(VIEW_CHANNEL),
    ]
}

pub(super) async fn list(call: Call) -> Result<LiveChannelsView, Refusal> {
    let clients = if call.is_admin() { WantedClients::All } else { WantedClients::NONE };
    let all = overview(&call.rest().nodes, &clients).await.map_err(no_answer)?;
    let channels: Vec<_> = match call.is_admin() {
        true => all.iter().map(|it| LiveChannelView::new(&call.rest().models, it)).collect(),
        false => {
            let is_visible = visible_targets(&call);
            let own = all.iter().filter(|it| is_visible(it.target));
            own.map(|it| LiveChannelView::new(&call.rest().models, it).reduced()).collect()
        }
    };
    Ok(LiveChannelsView { count: channels.len(), channels })
}

async fn retrieve(call: Call) -> Result<LiveChannelView, Refusal> {
    if call.is_admin() {
        return Ok(LiveChannelView::from_status(live_anywhere(&call).await?));
    }
    // The same answer as for a channel that is not playing, which reveals nothing about others.
    let uuid = call.uuid()?;
    if !visible_targets(&call)(Target::Channel(uuid)) {
        return Err(not_live(uuid));
    }
    Ok(LiveChannelView::from_status(live_anywhere(&call).await?).reduced())
}

/// Returns the status of the live channel or preview of the path, on all nodes.
async fn live_anywhere(call: &Call) -> Result<ChannelStatus, Refusal> {
    if call.rest().nodes.node().is_none() {
        return Ok(live(call).await?.1);
    }
    let uuid = call.uuid()?;
    let clients = if call.is_admin() { WantedClients::for_channel(uuid) } else { WantedClients::NONE };
    let all = overview(&call.rest().nodes, &clients).await.map_err(no_answer)?;
    let found = all.into_iter().find(|it| it.target.uuid() == uuid).ok_or_else(|| not_live(uuid))?;
    found.status.ok_or_else(|| no_answer(AskError::Timeout))
}

/// Returns the test whether a target is a channel that the caller may see.
pub(in crate::api) fn visible_targets(call: &Call) -> impl Fn(Target) -> bool + use<> {
    let (channels, limits) = (call.rest().models.channels.load(), call.view_limits());
    move |target| match target {
        Target::Channel(uuid) => {
            channels.one_by("uuid", uuid.as_bytes()).is_some_and(|it| visible(&limits, it))
        }
        Target::Stream(_)
        | Target::Movie(_)
        | Target::Episode(_)
        | Target::Archive(_)
        | Target::Recording(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use crate::testing::Rest;

    #[tokio::test]
    async fn an_idle_gateway_lists_nothing_and_finds_no_channel() {
        let rest = Rest::start().await;
        for path in ["/proxy/ts/status", "/proxy/ts/status/"] {
            let answer = rest.admin("GET", path, Value::Null).await;
            assert_eq!((answer.status, answer.body), (200, json!({ "channels": [], "count": 0 })), "{path}");
        }
        let uuid = Uuid::from_u128(1);
        let answer = rest.admin("GET", &format!("/proxy/ts/status/{uuid}"), Value::Null).await;
        let text = format!("Channel {uuid} is not playing.");
        let detail = json!({ "detail": text, "error": text });
        assert_eq!((answer.status, answer.body), (404, detail));
        let answer = rest.admin("GET", "/proxy/ts/status/seven", Value::Null).await;
        assert_eq!((answer.status, answer.body), (404, json!({ "detail": "Not found." })));
        let answer = rest.admin("POST", "/proxy/ts/status", Value::Null).await;
        assert_eq!((answer.status, &answer.headers["allow"]), (405, &"GET, HEAD, OPTIONS".parse().unwrap()));
    }
}
