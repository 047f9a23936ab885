//! The players that watch the past of channels, in answers.

use actors::{VodSessionInfo, now_ms};
use domain::ids::{ChannelId, LogoId};
use resource_derive::View;
use route_frame::value::Time;
use serde::Serialize;
use serde_json::Value;
use storage::Models;
use uuid::Uuid;

use super::connection::{VodConnectionView, connection};

/// The players that watch the past of channels.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct CatchupStatsView {
    /// One session for each player and channel.
    timeshift_sessions: Vec<CatchupSessionView>,
    /// Number of sessions.
    #[field(example = "1")]
    total_connections: usize,
    /// When the statistics were read.
    timestamp: Time,
}

/// A player that watches the past of a channel. It uses one slot and one connection, whatever times it asks for.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct CatchupSessionView {
    /// The name that the player gave the session, or the id of the player.
    #[field(example = "17")]
    session_id: String,
    /// Id of the channel; `null` if it was deleted.
    #[field(example = "7")]
    channel_id: Option<ChannelId>,
    /// UUID of the channel.
    channel_uuid: Uuid,
    /// Name of the channel.
    #[field(example = "News")]
    channel_name: String,
    /// Id of the logo of the channel.
    #[field(example = "5")]
    logo_id: Option<LogoId>,
    /// Start of the part that was opened last; `null` before the first one.
    programme_start: Option<Time>,
    /// Seconds from there to where the viewer is, as the player reported it since it opened this part.
    #[field(example = "754.5")]
    playback_base_secs: Option<f64>,
    /// When the player reported it.
    position_anchor_at: Option<Time>,
    /// Whether the player reported that it is paused.
    paused: bool,
    /// Number of players: 1.
    #[field(example = "1")]
    connection_count: usize,
    /// The player.
    connections: Vec<VodConnectionView>,
}

impl CatchupSessionView {
    pub(super) fn new(models: &Models, session: &VodSessionInfo) -> Self {
        let channels = models.channels.load();
        let channel = channels.one_by("uuid", session.uuid().as_bytes());
        Self {
            session_id: session_name(session),
            channel_id: channel.map(|it| it.id),
            channel_uuid: session.uuid(),
            channel_name: session.title.name.clone(),
            logo_id: channel.and_then(|it| it.logo_id),
            programme_start: session.programme_start.map(|it| Time(it * 1000)),
            playback_base_secs: session.reported.map(|it| it.seconds),
            position_anchor_at: session.reported.map(|it| Time(it.at)),
            paused: session.reported.is_some_and(|it| it.is_paused),
            connection_count: 1,
            connections: vec![connection(models, session)],
        }
    }
}

/// Returns the statistics as the WebSocket sends them.
pub fn pushed_past_stats(models: &Models, sessions: &[VodSessionInfo]) -> Option<Value> {
    serde_json::to_value(sessions_view(models, sessions)).ok()
}

/// Returns the statistics of these sessions.
pub(super) fn sessions_view(models: &Models, sessions: &[VodSessionInfo]) -> CatchupStatsView {
    let timeshift_sessions: Vec<_> = sessions.iter().map(|it| CatchupSessionView::new(models, it)).collect();
    let total_connections = timeshift_sessions.len();
    CatchupStatsView { timeshift_sessions, total_connections, timestamp: Time(now_ms()) }
}

/// Returns the name that the player gave the session, or the id of the player.
pub(super) fn session_name(session: &VodSessionInfo) -> String {
    session.name.clone().unwrap_or_else(|| session.id.to_string())
}
