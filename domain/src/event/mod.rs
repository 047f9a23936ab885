//! The events that integrations can subscribe to, the events of the gateway itself, and their payloads.
//!
//! A payload is one flat JSON object. Keys of the same meaning have the same name in every event, every event always
//! has all of its keys, and no payload contains credentials of a provider.

mod sample;
mod summary;

use std::net::IpAddr;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

use crate::channel::ChannelNumber;
use crate::ids::{StreamId, UserId};
use crate::source_url::SourceUrl;
use crate::stream_profile::Delivery;
use crate::time::iso_millis;

/// An event. It serialises as its payload.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Milliseconds since 1970.
    pub at: i64,
    pub body: EventBody,
}

/// The kind of an event, with its values.
#[derive(Debug, Clone, PartialEq)]
pub enum EventBody {
    /// The first stream of a channel plays.
    ChannelStart {
        channel: ChannelRef,
        stream: StreamRef,
    },
    /// A channel ended. `stream` is the one that played last.
    ChannelStop {
        channel: ChannelRef,
        stream: Option<StreamRef>,
        reason: String,
        runtime_seconds: u64,
        total_bytes: u64,
    },
    /// The same stream plays again after a loss.
    ChannelReconnect {
        channel: ChannelRef,
        stream: StreamRef,
        cause: String,
        gap_ms: u64,
    },
    /// A channel could not start, or gave up.
    ChannelError {
        channel: ChannelRef,
        error_message: String,
        stream: Option<StreamRef>,
    },
    /// Another stream plays after a loss.
    ChannelFailover {
        channel: ChannelRef,
        from: StreamRef,
        to: StreamRef,
        cause: String,
        gap_ms: u64,
    },
    /// Another stream plays because of a request or a rule.
    StreamSwitch {
        channel: ChannelRef,
        from: StreamRef,
        to: StreamRef,
        cause: String,
        gap_ms: u64,
    },
    ClientConnect {
        channel: ChannelRef,
        client: ClientRef,
    },
    ClientDisconnect {
        channel: ChannelRef,
        client: ClientRef,
        reason: String,
        duration_seconds: u64,
        bytes_sent: u64,
    },
    RecordingStart {
        channel: ChannelRef,
        recording: RecordingRef,
    },
    RecordingEnd {
        channel: ChannelRef,
        recording: RecordingRef,
        duration_seconds: u64,
        file_size_bytes: u64,
        interrupted: bool,
    },
    /// The search for commercials in a recording has begun or ended.
    ComskipStatus {
        channel: ChannelRef,
        recording: RecordingRef,
        /// `started`, `completed`, `skipped` (there are none) or `error`.
        status: &'static str,
        /// The number of commercials, or why the search failed.
        detail: String,
    },
    EpgRefresh {
        source: RefreshRef,
        /// Channels of the guide.
        channels: u64,
        /// Its programmes.
        programs_updated: u64,
        /// Channels and programmes that were left out because they are damaged.
        skipped_programs: u64,
        /// Channels of the guide that no channel uses.
        unmapped_channels: u64,
        /// Whether the guide is the one that was in use before.
        is_unchanged: bool,
        duration_seconds: u64,
    },
    M3uRefresh {
        source: RefreshRef,
        /// Usable entries of the playlist.
        total_processed: u64,
        streams_created: u64,
        streams_updated: u64,
        /// Streams that are missing from the playlist since this refresh.
        streams_stale: u64,
        streams_deleted: u64,
        duration_seconds: u64,
    },
    LoginFailed {
        attempt: CallerRef,
        reason: String,
    },
    EpgBlocked {
        attempt: CallerRef,
        reason: String,
    },
    M3uBlocked {
        attempt: CallerRef,
        reason: String,
    },
    /// The credentials of an account profile end soon, or have ended. Once per end and number of days; not for
    /// subscribers.
    AccountExpiring {
        account: RefreshRef,
        profile_id: u32,
        profile_name: String,
        /// Milliseconds since 1970.
        expires_at: i64,
        /// At most this many days are left; 0 if none is.
        days: u32,
    },
    /// A viewer begins to watch a film or an episode.
    VodStart {
        vod: VodRef,
    },
    /// A viewer has stopped watching a film or an episode.
    VodStop {
        vod: VodRef,
        duration_seconds: u64,
        bytes_sent: u64,
    },
    /// The store refuses writes. Not for subscribers: their integrations are in the store.
    StoreStopped {
        /// The cause, and the remedy.
        reason: String,
    },
    /// The store accepts writes again. Not for subscribers.
    StoreResumed,
    /// A back-up was verified and replaces the store at the next start. Not for subscribers.
    RestorePending {
        /// Name of the archive.
        backup: String,
        /// Whether the gateway restarts now.
        restarts_now: bool,
    },
    /// A node of the cluster has joined, left or expired. Every node sees it, and one delivers it.
    NodeState {
        node: String,
        /// `alive`, `expired` or `left`.
        state: &'static str,
    },
}

/// The channel that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelRef {
    pub uuid: Uuid,
    pub name: String,
    pub number: Option<ChannelNumber>,
}

/// A stream that plays or played.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRef {
    pub id: StreamId,
    pub name: String,
    /// Printed, and sent to other nodes, without its credentials.
    #[serde(serialize_with = "without_credentials")]
    pub url: SourceUrl,
    pub profile_used: Delivery,
    pub account_name: String,
}

fn without_credentials<S: Serializer>(url: &SourceUrl, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(url)
}

/// A connected client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRef {
    pub connection_id: u64,
    pub ip: IpAddr,
    pub user_agent: String,
    /// `None` for an anonymous viewer.
    pub user: Option<String>,
}

/// A recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingRef {
    pub id: u32,
    /// The user who made it. Not part of the event as it is sent.
    pub owner: Option<UserId>,
    pub program_title: String,
    pub file_path: String,
}

/// A playlist account or a guide source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshRef {
    pub id: u32,
    pub name: String,
}

/// A film or an episode, and who watches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VodRef {
    /// Number of the session.
    pub session: u64,
    pub uuid: Uuid,
    pub is_episode: bool,
    pub name: String,
    pub ip: IpAddr,
    pub user_agent: String,
    /// `None` for an anonymous viewer.
    pub user: Option<String>,
}

/// A client that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerRef {
    pub user: Option<String>,
    pub ip: IpAddr,
    pub user_agent: String,
}

impl EventBody {
    /// The names of the events that integrations can subscribe to, in the order of the API.
    pub const NAMES: [&'static str; 18] = [
        "channel_start",
        "channel_stop",
        "channel_reconnect",
        "channel_error",
        "channel_failover",
        "stream_switch",
        "recording_start",
        "recording_end",
        "epg_refresh",
        "m3u_refresh",
        "client_connect",
        "client_disconnect",
        "login_failed",
        "epg_blocked",
        "m3u_blocked",
        "vod_start",
        "vod_stop",
        "node_state",
    ];

    /// Returns the name of the event.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ChannelStart { .. } => "channel_start",
            Self::ChannelStop { .. } => "channel_stop",
            Self::ChannelReconnect { .. } => "channel_reconnect",
            Self::ChannelError { .. } => "channel_error",
            Self::ChannelFailover { .. } => "channel_failover",
            Self::StreamSwitch { .. } => "stream_switch",
            Self::RecordingStart { .. } => "recording_start",
            Self::RecordingEnd { .. } => "recording_end",
            Self::ComskipStatus { .. } => "comskip_status",
            Self::EpgRefresh { .. } => "epg_refresh",
            Self::M3uRefresh { .. } => "m3u_refresh",
            Self::ClientConnect { .. } => "client_connect",
            Self::ClientDisconnect { .. } => "client_disconnect",
            Self::LoginFailed { .. } => "login_failed",
            Self::EpgBlocked { .. } => "epg_blocked",
            Self::M3uBlocked { .. } => "m3u_blocked",
            Self::AccountExpiring { .. } => "account_expiring",
            Self::VodStart { .. } => "vod_start",
            Self::VodStop { .. } => "vod_stop",
            Self::StoreStopped { .. } => "store_stopped",
            Self::StoreResumed => "store_resumed",
            Self::RestorePending { .. } => "restore_pending",
            Self::NodeState { .. } => "node_state",
        }
    }

    /// Returns the channel of the event, if it has one.
    pub fn channel(&self) -> Option<&ChannelRef> {
        match self {
            Self::ChannelStart { channel, .. }
            | Self::ChannelStop { channel, .. }
            | Self::ChannelReconnect { channel, .. }
            | Self::ChannelError { channel, .. }
            | Self::ChannelFailover { channel, .. }
            | Self::StreamSwitch { channel, .. }
            | Self::ClientConnect { channel, .. }
            | Self::ClientDisconnect { channel, .. }
            | Self::RecordingStart { channel, .. }
            | Self::RecordingEnd { channel, .. }
            | Self::ComskipStatus { channel, .. } => Some(channel),
            Self::EpgRefresh { .. }
            | Self::M3uRefresh { .. }
            | Self::LoginFailed { .. }
            | Self::EpgBlocked { .. }
            | Self::M3uBlocked { .. }
            | Self::AccountExpiring { .. }
            | Self::VodStart { .. }
            | Self::VodStop { .. }
            | Self::StoreStopped { .. }
            | Self::StoreResumed
            | Self::RestorePending { .. }
            | Self::NodeState { .. } => None,
        }
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("event_type", self.body.name())?;
        map.serialize_entry("timestamp", &iso_millis(self.at))?;
        if let Some(channel) = self.body.channel() {
            map.serialize_entry("channel_id", &channel.uuid)?;
            map.serialize_entry("channel_name", &channel.name)?;
            map.serialize_entry(
                "channel_number",
                &channel.number.map(|it| it.to_string()).unwrap_or_default(),
            )?;
        }
        body(&mut map, &self.body)?;
        map.end()
    }
}

/// Writes the keys of one kind of event, except those of its channel.
fn body<M: SerializeMap>(map: &mut M, event: &EventBody) -> Result<(), M::Error> {
    match event {
        EventBody::ChannelStart { stream, .. } => stream_keys(map, Some(stream)),
        EventBody::ChannelStop { stream, reason, runtime_seconds, total_bytes, .. } => {
            stream_keys(map, stream.as_ref())?;
            map.serialize_entry("reason", reason)?;
            map.serialize_entry("duration_seconds", runtime_seconds)?;
            map.serialize_entry("runtime", runtime_seconds)?;
            map.serialize_entry("total_bytes", total_bytes)
        }
        EventBody::ChannelReconnect { stream, cause, gap_ms, .. } => {
            stream_keys(map, Some(stream))?;
            gap_keys(map, cause, *gap_ms)
        }
        EventBody::ChannelError { error_message, stream, .. } => {
            stream_keys(map, stream.as_ref())?;
            map.serialize_entry("error_message", error_message)
        }
        EventBody::ChannelFailover { from, to, cause, gap_ms, .. }
        | EventBody::StreamSwitch { from, to, cause, gap_ms, .. } => {
            stream_keys(map, Some(to))?;
            map.serialize_entry("new_url", &to.url.to_string())?;
            map.serialize_entry("previous_stream_id", &from.id)?;
            map.serialize_entry("previous_stream_name", &from.name)?;
            map.serialize_entry("previous_stream_url", &from.url.to_string())?;
            map.serialize_entry("previous_provider_name", &from.account_name)?;
            gap_keys(map, cause, *gap_ms)
        }
        EventBody::ClientConnect { client, .. } => client_keys(map, client),
        EventBody::ClientDisconnect { client, reason, duration_seconds, bytes_sent, .. } => {
            client_keys(map, client)?;
            map.serialize_entry("reason", reason)?;
            map.serialize_entry("duration_seconds", duration_seconds)?;
            map.serialize_entry("duration", duration_seconds)?;
            map.serialize_entry("bytes_sent", bytes_sent)
        }
        EventBody::RecordingStart { recording, .. } => recording_keys(map, recording, 0, 0),
        EventBody::RecordingEnd { recording, duration_seconds, file_size_bytes, interrupted, .. } => {
            recording_keys(map, recording, *duration_seconds, *file_size_bytes)?;
            map.serialize_entry("bytes_written", file_size_bytes)?;
            map.serialize_entry("interrupted", interrupted)
        }
        EventBody::ComskipStatus { recording, status, detail, .. } => {
            map.serialize_entry("recording_id", &recording.id.to_string())?;
            map.serialize_entry("program_title", &recording.program_title)?;
            map.serialize_entry("status", status)?;
            map.serialize_entry("detail", detail)
        }
        EventBody::EpgRefresh {
            source,
            channels,
            programs_updated,
            skipped_programs,
            unmapped_channels,
            is_unchanged,
            duration_seconds,
        } => {
            source_keys(map, source, *programs_updated, *duration_seconds)?;
            map.serialize_entry("programs", programs_updated)?;
            map.serialize_entry("channels", channels)?;
            map.serialize_entry("skipped_programs", skipped_programs)?;
            map.serialize_entry("unmapped_channels", unmapped_channels)?;
            map.serialize_entry("unchanged", is_unchanged)
        }
        EventBody::M3uRefresh {
            source,
            total_processed,
            streams_created,
            streams_updated,
            streams_stale,
            streams_deleted,
            duration_seconds,
        } => {
            source_keys(map, source, 0, *duration_seconds)?;
            map.serialize_entry("account_name", &source.name)?;
            map.serialize_entry("elapsed_time", duration_seconds)?;
            map.serialize_entry("total_processed", total_processed)?;
            map.serialize_entry("streams_created", streams_created)?;
            map.serialize_entry("streams_updated", streams_updated)?;
            map.serialize_entry("streams_stale", streams_stale)?;
            map.serialize_entry("streams_deleted", streams_deleted)
        }
        EventBody::LoginFailed { attempt, reason }
        | EventBody::EpgBlocked { attempt, reason }
        | EventBody::M3uBlocked { attempt, reason } => {
            map.serialize_entry("user", attempt.user.as_deref().unwrap_or_default())?;
            map.serialize_entry("client_ip", &attempt.ip)?;
            map.serialize_entry("user_agent", &attempt.user_agent)?;
            map.serialize_entry("reason", reason)
        }
        EventBody::AccountExpiring { account, profile_id, profile_name, expires_at, days } => {
            map.serialize_entry("account_id", &account.id)?;
            map.serialize_entry("account_name", &account.name)?;
            map.serialize_entry("profile_id", profile_id)?;
            map.serialize_entry("profile_name", profile_name)?;
            map.serialize_entry("exp_date", &iso_millis(*expires_at))?;
            map.serialize_entry("days", days)
        }
        EventBody::VodStart { vod } => vod_keys(map, vod),
        EventBody::VodStop { vod, duration_seconds, bytes_sent } => {
            vod_keys(map, vod)?;
            map.serialize_entry("duration_seconds", duration_seconds)?;
            map.serialize_entry("bytes_sent", bytes_sent)
        }
        EventBody::StoreStopped { reason } => map.serialize_entry("reason", reason),
        EventBody::StoreResumed => Ok(()),
        EventBody::RestorePending { backup, restarts_now } => {
            map.serialize_entry("backup", backup)?;
            map.serialize_entry("restarts_now", restarts_now)
        }
        EventBody::NodeState { node, state } => {
            map.serialize_entry("node", node)?;
            map.serialize_entry("state", state)
        }
    }
}

/// The API promises an address and a profile with every channel event, so they are empty texts without a stream.
/// `channel_url` repeats the address for templates written for similar services, and so do `new_url`, `duration`,
/// `runtime`, `elapsed_time`, `bytes_written`, `client_id`, `account_name` and `programs` with other values.
fn stream_keys<M: SerializeMap>(map: &mut M, stream: Option<&StreamRef>) -> Result<(), M::Error> {
    let url = stream.map(|it| it.url.to_string()).unwrap_or_default();
    map.serialize_entry("stream_id", &stream.map(|it| it.id))?;
    map.serialize_entry("stream_name", stream.map_or("", |it| &it.name))?;
    map.serialize_entry("stream_url", &url)?;
    map.serialize_entry("channel_url", &url)?;
    map.serialize_entry("provider_name", stream.map_or("", |it| &it.account_name))?;
    map.serialize_entry("profile_used", stream.map_or("", |it| it.profile_used.name()))
}

fn gap_keys<M: SerializeMap>(map: &mut M, cause: &str, gap_ms: u64) -> Result<(), M::Error> {
    map.serialize_entry("reason", cause)?;
    map.serialize_entry("gap_ms", &gap_ms)
}

fn client_keys<M: SerializeMap>(map: &mut M, client: &ClientRef) -> Result<(), M::Error> {
    let id = client.connection_id.to_string();
    map.serialize_entry("client_ip", &client.ip)?;
    map.serialize_entry("user_agent", &client.user_agent)?;
    map.serialize_entry("connection_id", &id)?;
    map.serialize_entry("client_id", &id)?;
    map.serialize_entry("username", client.user.as_deref().unwrap_or_default())
}

fn vod_keys<M: SerializeMap>(map: &mut M, vod: &VodRef) -> Result<(), M::Error> {
    map.serialize_entry("content_type", if vod.is_episode { "episode" } else { "movie" })?;
    map.serialize_entry("content_name", &vod.name)?;
    map.serialize_entry("content_uuid", &vod.uuid)?;
    map.serialize_entry("client_ip", &vod.ip)?;
    map.serialize_entry("user_agent", &vod.user_agent)?;
    map.serialize_entry("client_id", &vod.session.to_string())?;
    map.serialize_entry("username", vod.user.as_deref().unwrap_or_default())
}

/// The API promises a duration and a size with every recording event; a recording that starts has neither yet.
fn recording_keys<M: SerializeMap>(
    map: &mut M,
    recording: &RecordingRef,
    duration_seconds: u64,
    file_size_bytes: u64,
) -> Result<(), M::Error> {
    map.serialize_entry("recording_id", &recording.id.to_string())?;
    map.serialize_entry("program_title", &recording.program_title)?;
    map.serialize_entry("file_path", &recording.file_path)?;
    map.serialize_entry("duration_seconds", &duration_seconds)?;
    map.serialize_entry("file_size_bytes", &file_size_bytes)
}

fn source_keys<M: SerializeMap>(
    map: &mut M,
    source: &RefreshRef,
    programs: u64,
    seconds: u64,
) -> Result<(), M::Error> {
    map.serialize_entry("source_name", &source.name)?;
    map.serialize_entry("source_id", &source.id)?;
    map.serialize_entry("programs_updated", &programs)?;
    map.serialize_entry("duration_seconds", &seconds)
}

#[cfg(test)]
mod tests;
