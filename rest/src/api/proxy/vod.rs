//! `/proxy/vod/stats`, `/proxy/vod/stop_client` and `/proxy/stats`: films and episodes that are being watched, and
//! everything that is.

use actors::now_ms;
use http::StatusCode;
use node::overview::films;
use node::playing_control::{Controlled, Order, Outcome};
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use uuid::Uuid;

use super::catchup;
use super::catchup_view::CatchupStatsView;
use super::control::{node_unanswered, on, order};
use super::live_view::LiveChannelsView;
use super::status::list;
use super::vod_view::{VodStatsView, sessions_view};
use crate::context::RestCall;

/// Everything that is being watched.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct StatsView {
    /// Live channels.
    live: LiveChannelsView,
    /// Films and episodes.
    vod: VodStatsView,
    /// The past of channels.
    catchup: CatchupStatsView,
    /// When the statistics were read.
    timestamp: Time,
}

/// Selects a player.
#[derive(Clone, Debug, Body)]
pub(crate) struct StopVodClient {
    /// Id of the player, from the statistics.
    #[field(chars_max = 255, example = "17")]
    client_id: String,
}

/// A player whose requests were ended.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct StoppedVodClientView {
    /// Message for people.
    #[field(example = "The player 17 was disconnected.")]
    message: String,
    /// Always `stopped`.
    #[field(example = "stopped")]
    outcome: &'static str,
    /// Id of the player.
    #[field(example = "17")]
    client_id: String,
    /// Part of the URL of the film or episode.
    content_uuid: Uuid,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/proxy/stats", ADMIN, "Returns everything that is being watched.", stats),
        Route::get(
            "/proxy/vod/stats",
            ADMIN,
            "Lists the films and episodes that are being watched.",
            vod_stats,
        ),
        Route::post(
            "/proxy/vod/stop_client",
            ADMIN,
            "Ends the requests of a player that watches a film or an episode.",
            stop_client,
        )
        .refuses(StatusCode::NOT_FOUND, "No player has this id."),
    ]
}

async fn stats(call: Call) -> Result<StatsView, Refusal> {
    let vod = sessions_view(&call.rest().models, &films(&call.rest().nodes).await)?;
    let catchup = catchup::stats(call.rest()).await;
    Ok(StatsView { live: list(call).await?, vod, catchup, timestamp: Time(now_ms()) })
}

async fn vod_stats(call: Call) -> Result<VodStatsView, Refusal> {
    sessions_view(&call.rest().models, &films(&call.rest().nodes).await)
}

async fn stop_client(call: Call, body: StopVodClient) -> Result<StoppedVodClientView, Refusal> {
    let client_id = body.client_id;
    let unknown = || Refusal::not_found(format!("No player {client_id} watches a film."));
    let id = client_id.parse().map_err(|_| unknown())?;
    let Outcome { done, nodes } = order(&call, Order::EndFilm(id)).await?;
    let content_uuid = match done {
        Controlled::Ended(uuid) => uuid,
        Controlled::NodeUnanswered(node) => return Err(node_unanswered(&node)),
        _ => return Err(unknown()),
    };
    let message = format!("The player {client_id} was disconnected{}.", on(&nodes));
    Ok(StoppedVodClientView { message, outcome: "stopped", client_id, content_uuid })
}
