//! `/api/catchup/sessions/`, `/proxy/catchup/stats` and `/proxy/catchup/stop_client`: who watches the past of channels.
//!
//! A session is one player that watches one channel, whatever time it watches. `player/src/catchup.rs` serves it.

use actors::{ReportedPosition, VodSessionInfo, now_ms};
use domain::catchup::{ArchiveTimes, MINUTES_DEFAULT, MINUTES_MAX, parse_start};
use http::StatusCode;
use node::overview::{own_past, past};
use node::playing_control::{Controlled, Order, Outcome};
use player::catchup::{source_of, visible};
use resource_derive::{Body, View};
use route_frame::access::{ADMIN, STREAMER};
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use url::form_urlencoded::Serializer;
use uuid::Uuid;

use super::catchup_view::{CatchupSessionView, CatchupStatsView, session_name, sessions_view};
use super::control::{node_unanswered, on, order};
use crate::context::{RestCall, RestContext};
use crate::list::{Page, WholeOrPages};

/// A part of the past of a channel.
#[derive(Clone, Debug, Body)]
pub(crate) struct CatchupRequest {
    /// UUID of the channel.
    channel_uuid: Uuid,
    /// Start in UTC: ISO 8601, seconds since 1970, or `2026-01-31:18-30`.
    #[field(chars_max = 100, example = "2026-01-31T18:30:00Z")]
    start: String,
    /// Duration in minutes; 120 by default, at most 480.
    #[field(example = "60")]
    duration: Option<u32>,
}

/// Where the viewer of a session is.
#[derive(Clone, Debug, Body)]
pub(crate) struct CatchupPosition {
    /// Seconds since the start of the part that plays.
    #[field(at_least = 0, example = "754.5")]
    position_secs: f64,
    /// Whether the player is paused; false by default.
    paused: Option<bool>,
}

/// Where a part of the past of a channel is played.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct CatchupAddressView {
    /// Name of the session. Another address with the same name continues it.
    session_id: Uuid,
    /// Address without further credentials.
    playback_url: String,
    /// When the address expires, in seconds since 1970.
    #[field(example = "1769900000")]
    expires_at: i64,
    /// UUID of the channel.
    channel_uuid: Uuid,
    /// Start of the part.
    start: Time,
    /// Duration in minutes.
    #[field(example = "60")]
    duration: i64,
}

/// Selects a player.
#[derive(Clone, Debug, Body)]
pub(crate) struct StopCatchupClient {
    /// Id of the player, from the statistics.
    #[field(chars_max = 255, example = "17")]
    client_id: String,
}

/// A player whose requests were ended.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct StoppedCatchupClientView {
    /// Message for people.
    #[field(example = "The player 17 was disconnected.")]
    message: String,
    /// Always `stopped`.
    #[field(example = "stopped")]
    outcome: &'static str,
    /// Id of the player.
    #[field(example = "17")]
    client_id: String,
    /// UUID of the channel.
    channel_uuid: Uuid,
}

const SESSIONS: &str = "/api/catchup/sessions/";

pub(super) fn routes() -> Vec<Route> {
    const UNKNOWN: &str = "The caller has no session with this id.";
    vec![
        Route::get(
            SESSIONS,
            STREAMER,
            "Lists the players that watch the past of channels: those of the user, or all for admins.",
            sessions,
        ),
        Route::post(
            SESSIONS,
            STREAMER,
            "Returns an address that plays a part of the past of a channel without further credentials.",
            create,
        )
        .refuses(StatusCode::BAD_REQUEST, "The start is invalid, or the channel has no archive.")
        .refuses(StatusCode::FORBIDDEN, "The user may not watch the past of channels.")
        .refuses(
            StatusCode::NOT_FOUND,
            "The channel does not exist, or its archive does not have this part.",
        ),
        Route::delete(
            "/api/catchup/sessions/{session}/",
            STREAMER,
            "Ends a session of the user, or of anybody for admins.",
            end,
        )
        .refuses(StatusCode::NOT_FOUND, UNKNOWN),
        Route::post(
            "/api/catchup/sessions/{session}/position/",
            STREAMER,
            "Sets where the viewer of a session is, for the statistics.",
            report,
        )
        .refuses(StatusCode::NOT_FOUND, UNKNOWN),
        Route::get(
            "/proxy/catchup/stats",
            ADMIN,
            "Lists the players that watch the past of channels.",
            catchup_stats,
        ),
        Route::post(
            "/proxy/catchup/stop_client",
            ADMIN,
            "Ends the requests of a player that watches the past of a channel.",
            stop_client,
        )
        .refuses(StatusCode::NOT_FOUND, "No player has this id."),
    ]
}

async fn sessions(call: Call, paging: WholeOrPages) -> Result<Page<CatchupSessionView>, Refusal> {
    let models = &call.rest().models;
    paging.render_with(&call, &own(&call)?, |it| CatchupSessionView::new(models, it))
}

async fn create(call: Call, body: CatchupRequest) -> Result<Created<CatchupAddressView>, Refusal> {
    let CatchupRequest { channel_uuid, start, duration } = body;
    let channel = visible(&call, |it| it.one_by("uuid", channel_uuid.as_bytes()))?;
    let start = parse_start(&start).map_err(|error| Refusal::bad_request(error.to_string()))?;
    let minutes = duration.map(i64::from).filter(|it| *it > 0).unwrap_or(MINUTES_DEFAULT).min(MINUTES_MAX);
    let times = ArchiveTimes { start, duration: minutes * 60, now: now_ms() / 1000 };
    source_of(&call, &channel, times).await?;
    let (token, expires_at) = call.rest().auth.play_token(call.user()?, &call.headers, channel_uuid);
    let session_id = Uuid::new_v4();
    let query = Serializer::new(String::new())
        .append_pair("start", &start.to_string())
        .append_pair("duration", &minutes.to_string())
        .append_pair("session_id", &session_id.to_string())
        .append_pair("token", &token)
        .finish();
    Ok(Created(CatchupAddressView {
        session_id,
        playback_url: format!("{}/proxy/catchup/{channel_uuid}?{query}", call.player_origin()),
        expires_at: expires_at / 1000,
        channel_uuid,
        start: Time(start * 1000),
        duration: minutes,
    }))
}

async fn report(call: Call, body: CatchupPosition) -> Result<NoContent, Refusal> {
    let seconds = body.position_secs;
    let position = ReportedPosition { seconds, is_paused: body.paused.unwrap_or(false), at: now_ms() };
    let reported = wanted(&call)?.and_then(|it| note_position(&call, it.id, position));
    reported.map(|()| NoContent).ok_or_else(|| Refusal::not_found("No active playback for this session"))
}

/// Returns the session of the path, if it is one of the caller.
fn wanted(call: &Call) -> Result<Option<VodSessionInfo>, Refusal> {
    let wanted = call.text("session")?;
    let is_wanted = |it: &VodSessionInfo| session_name(it) == wanted || it.id.to_string() == wanted;
    Ok(own(call)?.into_iter().find(is_wanted))
}

async fn end(call: Call) -> Result<NoContent, Refusal> {
    let stopped = wanted(&call)?.and_then(|it| stop(&call, it.id));
    stopped.map(|_| NoContent).ok_or_else(|| Refusal::not_found("No session has this id."))
}

async fn catchup_stats(call: Call) -> Result<CatchupStatsView, Refusal> {
    Ok(stats(call.rest()).await)
}

/// Returns everybody who watches the past of a channel.
pub(super) async fn stats(context: &RestContext) -> CatchupStatsView {
    sessions_view(&context.models, &past(&context.nodes).await)
}

async fn stop_client(call: Call, body: StopCatchupClient) -> Result<StoppedCatchupClientView, Refusal> {
    let client_id = body.client_id;
    let unknown = || Refusal::not_found(format!("No player {client_id} watches the past of a channel."));
    let id = client_id.parse().map_err(|_| unknown())?;
    let Outcome { done, nodes } = order(&call, Order::EndPast(id)).await?;
    let channel_uuid = match done {
        Controlled::Ended(uuid) => uuid,
        Controlled::NodeUnanswered(node) => return Err(node_unanswered(&node)),
        _ => return Err(unknown()),
    };
    let message = format!("The player {client_id} was disconnected{}.", on(&nodes));
    Ok(StoppedCatchupClientView { message, outcome: "stopped", client_id, channel_uuid })
}

/// Ends a session. Returns `None` if it does not exist.
fn stop(call: &Call, id: u64) -> Option<VodSessionInfo> {
    call.rest().live.vod.stop_session(id).or_else(|| call.rest().live.time_shift.stop_session(id))
}

/// Notes where the player of a session says that its viewer is. Returns `None` if the session does not exist.
fn note_position(call: &Call, id: u64, position: ReportedPosition) -> Option<()> {
    call.rest()
        .live
        .vod
        .report_position(id, position)
        .or_else(|| call.rest().live.time_shift.report_position(id, position))
}

/// Returns those of the caller; admins have all.
fn own(call: &Call) -> Result<Vec<VodSessionInfo>, Refusal> {
    let (user, is_admin) = (call.identity()?, call.is_admin());
    let is_own = |it: &VodSessionInfo| is_admin || it.viewer.user.as_ref() == Some(&user.username);
    Ok(own_past(&call.rest().nodes).into_iter().filter(is_own).collect())
}
