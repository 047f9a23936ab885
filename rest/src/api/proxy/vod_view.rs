//! Films and episodes that are being watched, in answers.

use actors::{Target, VodSessionInfo, now_ms};
use domain::vod::{Title, TitleKind};
use resource_derive::View;
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use storage::Models;
use uuid::Uuid;

use super::connection::{VodConnectionView, connection};

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

/// Returns the films and episodes of these sessions, each with its players.
pub(super) fn sessions_view(models: &Models, sessions: &[VodSessionInfo]) -> Result<VodStatsView, Refusal> {
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
pub fn pushed_stats(models: &Models, sessions: &[VodSessionInfo]) -> Option<serde_json::Value> {
    serde_json::to_value(sessions_view(models, sessions).ok()?).ok()
}
