//! `/proxy/vod/stats`, `/proxy/vod/stop_client` and `/proxy/stats`: films and episodes that are being watched, and
//! everything that is.

use actors::{Target, VodProfile, VodSessionInfo, now_ms};
use domain::ids::{AccountId, ProfileId};
use domain::vod::{Title, TitleKind};
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
use storage::Models;
use uuid::Uuid;

use super::catchup::{self, CatchupStatsView};
use super::control::{node_unanswered, on, order};
use super::status::{LiveChannelsView, list};
use crate::nodes::Nodes;

/// The films and episodes that are being watched.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct VodStatsView {
    /// Films and episodes, each with the players that watch it.
    vod_connections: Vec<WatchedTitleView>,
    /// Number of players.
    #[field(example = "1")]
    total_connections: usize,
    /// When the statistics were read.
    timestamp: Time,
}

/// A film or an episode that is being watched.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct WatchedTitleView {
    /// `movie` or `episode`.
    #[field(example = "movie")]
    content_type: &'static str,
    /// Name of the film, or of the series with season and number.
    #[field(example = "Metropolis")]
    content_name: String,
    /// Part of the URL of the film or episode.
    content_uuid: Uuid,
    /// Its properties; `null` if it was deleted.
    content_metadata: Option<WatchedMetadataView>,
    /// Number of players.
    #[field(example = "1")]
    connection_count: usize,
    /// The players.
    connections: Vec<VodConnectionView>,
}

/// Properties of a film or an episode.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct WatchedMetadataView {
    /// Year of the film or the series.
    #[field(example = "1927")]
    year: Option<u16>,
    /// Rating.
    #[field(example = "8.3")]
    rating: Option<String>,
    /// Genre.
    #[field(example = "Drama")]
    genre: Option<String>,
    /// Duration in seconds.
    #[field(example = "9180")]
    duration_secs: Option<u32>,
    /// Description.
    #[field(example = "A city of the future.")]
    description: Option<String>,
    /// Id at TMDB.
    #[field(example = "19")]
    tmdb_id: Option<String>,
    /// Id at IMDb.
    #[field(example = "tt0017136")]
    imdb_id: Option<String>,
    /// Name of the series of an episode.
    #[field(example = "The Series")]
    series_name: Option<String>,
    /// Season of an episode.
    #[field(example = "1")]
    season_number: Option<u32>,
    /// Number of an episode in its season.
    #[field(example = "2")]
    episode_number: Option<u32>,
}

/// A player that watches a film, an episode or the past of a channel. All its requests share one connection to the provider.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct VodConnectionView {
    /// Id of the player, for `stop_client`.
    #[field(example = "17")]
    client_id: String,
    /// Name of the node that serves the player; `null` without a cluster.
    #[field(example = "attic")]
    node: Option<String>,
    /// IP address of the player.
    #[field(example = "192.0.2.7")]
    client_ip: String,
    /// User agent of the player; empty if it sends none.
    #[field(example = "VLC/3.0.20")]
    user_agent: String,
    /// Name of the user; `null` without a login.
    #[field(example = "anna")]
    username: Option<String>,
    /// When the player sent its first request.
    connected_at: Time,
    /// Seconds since then.
    #[field(example = "12.5")]
    duration: f64,
    /// Requests in progress.
    #[field(example = "1")]
    requests: usize,
    /// Number of bytes handed to the player.
    #[field(example = "7500000")]
    bytes_sent: u64,
    /// Number of bytes received from the provider.
    #[field(example = "7500000")]
    bytes_received: u64,
    /// Connections to the provider so far, one after the other.
    #[field(example = "2")]
    upstream_connections: u64,
    /// Whether a slot of the account is in use at the moment.
    uses_slot: bool,
    /// The next byte that the player gets.
    #[field(example = "7500000")]
    position_bytes: u64,
    /// Length of the file in bytes, once it is known.
    #[field(example = "1500000000")]
    content_length: Option<u64>,
    /// The account profile that the file is read with; `null` if it was not opened yet.
    m3u_profile: Option<VodProfileView>,
}

/// An account profile.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct VodProfileView {
    /// Name of the profile.
    #[field(example = "Default")]
    profile_name: String,
    /// Name of the account.
    #[field(example = "provider")]
    account_name: String,
    /// Id of the account.
    #[field(example = "1")]
    account_id: AccountId,
    /// Maximum number of simultaneous connections; 0 is unlimited.
    #[field(example = "1")]
    max_streams: u32,
    /// Id of the profile.
    #[field(example = "1")]
    m3u_profile_id: ProfileId,
}

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
    let vod = sessions_view(&call.app.models, &films(call.app.nodes()).await)?;
    let catchup = catchup::stats(&call.app).await;
    Ok(StatsView { live: list(call).await?, vod, catchup, timestamp: Time(now_ms()) })
}

async fn vod_stats(call: Call) -> Result<VodStatsView, Refusal> {
    sessions_view(&call.app.models, &films(call.app.nodes()).await)
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

fn sessions_view(models: &Models, sessions: &[VodSessionInfo]) -> Result<VodStatsView, Refusal> {
    let mut titles: Vec<WatchedTitleView> = Vec::new();
    let active: Vec<_> = sessions.iter().filter(|it| it.n_requests > 0 || it.has_slot).collect();
    for session in &active {
        let connection = connection(models, session);
        match titles.iter_mut().find(|it| it.content_uuid == session.uuid()) {
            Some(title) => title.connections.push(connection),
            None => titles.push(WatchedTitleView {
                content_type: if is_episode(session) { "episode" } else { "movie" },
                content_name: session.title.name.clone(),
                content_uuid: session.uuid(),
                content_metadata: metadata(models, session.title.target)?,
                connection_count: 0,
                connections: vec![connection],
            }),
        }
    }
    for title in &mut titles {
        title.connection_count = title.connections.len();
    }
    Ok(VodStatsView { vod_connections: titles, total_connections: active.len(), timestamp: Time(now_ms()) })
}

fn is_episode(session: &VodSessionInfo) -> bool {
    matches!(session.title.target, Target::Episode(_))
}

pub(super) fn connection(models: &Models, session: &VodSessionInfo) -> VodConnectionView {
    VodConnectionView {
        client_id: session.id.to_string(),
        node: session.node.as_ref().map(|it| it.to_string()),
        client_ip: session.viewer.address.to_string(),
        user_agent: session.viewer.agent.clone(),
        username: session.viewer.user.clone(),
        connected_at: Time(session.started_at),
        duration: (session.age.as_secs_f64() * 10.0).round() / 10.0,
        requests: session.n_requests,
        bytes_sent: session.bytes_sent,
        bytes_received: session.bytes_read,
        upstream_connections: session.n_connections,
        uses_slot: session.has_slot,
        position_bytes: session.position,
        content_length: session.length,
        m3u_profile: session.profile.as_ref().map(|it| profile(models, it)),
    }
}

fn profile(models: &Models, pool: &VodProfile) -> VodProfileView {
    let accounts = models.accounts.load();
    let account = accounts.get(pool.account.0);
    let profile = account.and_then(|it| it.profiles.iter().find(|it| it.id == pool.profile));
    VodProfileView {
        profile_name: profile.map(|it| it.name.clone()).unwrap_or_default(),
        account_name: pool.account_name.clone(),
        account_id: pool.account,
        max_streams: pool.max_streams,
        m3u_profile_id: pool.profile,
    }
}

fn metadata(models: &Models, target: Target) -> Result<Option<WatchedMetadataView>, Refusal> {
    match target {
        Target::Movie(uuid) => Ok(models.vod.by_uuid(TitleKind::Movie, uuid)?.as_ref().map(metadata_view)),
        Target::Episode(uuid) => {
            let Some(episode) = models.vod.episode_by_uuid(uuid)? else { return Ok(None) };
            let Some(series) = models.vod.get(episode.series)? else { return Ok(None) };
            Ok(Some(WatchedMetadataView {
                duration_secs: episode.first(|it| it.duration_secs),
                description: episode.first(|it| it.description.clone()),
                series_name: Some(series.name().to_owned()),
                season_number: Some(episode.season),
                episode_number: Some(episode.number),
                ..metadata_view(&series)
            }))
        }
        Target::Channel(_) | Target::Stream(_) | Target::Archive(_) | Target::Recording(_) => Ok(None),
    }
}

fn metadata_view(title: &Title) -> WatchedMetadataView {
    WatchedMetadataView {
        year: title.year(),
        rating: title.rating().map(str::to_owned),
        genre: title.genre().map(str::to_owned),
        duration_secs: title.duration_secs(),
        description: title.description().map(str::to_owned),
        tmdb_id: title.tmdb_id().map(str::to_owned),
        imdb_id: title.imdb_id().map(str::to_owned),
        series_name: None,
        season_number: None,
        episode_number: None,
    }
}

/// Returns the statistics as the WebSocket sends them.
pub(crate) fn pushed_stats(models: &Models, sessions: &[VodSessionInfo]) -> Option<serde_json::Value> {
    serde_json::to_value(sessions_view(models, sessions).ok()?).ok()
}
