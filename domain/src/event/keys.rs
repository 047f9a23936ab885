//! The keys that several events have in their payloads.

use serde::ser::SerializeMap;

use super::{CallerRef, ChannelsRef, ClientRef, RecordingRef, RefreshRef, StreamRef, VodRef};

/// The API promises an address and a profile with every channel event, so they are empty texts without a stream.
/// `channel_url` repeats the address for templates written for similar services, and so do `new_url`, `duration`,
/// `runtime`, `elapsed_time`, `bytes_written`, `client_id`, `account_name` and `programs` with other values.
pub(super) fn stream_keys<M: SerializeMap>(map: &mut M, stream: Option<&StreamRef>) -> Result<(), M::Error> {
    let url = stream.map(|it| it.url.to_string()).unwrap_or_default();
    map.serialize_entry("stream_id", &stream.map(|it| it.id))?;
    map.serialize_entry("stream_name", stream.map_or("", |it| &it.name))?;
    map.serialize_entry("stream_url", &url)?;
    map.serialize_entry("channel_url", &url)?;
    map.serialize_entry("provider_name", stream.map_or("", |it| &it.account_name))?;
    map.serialize_entry("profile_used", stream.map_or("", |it| it.profile_used.name()))
}

pub(super) fn gap_keys<M: SerializeMap>(map: &mut M, cause: &str, gap_ms: u64) -> Result<(), M::Error> {
    map.serialize_entry("reason", cause)?;
    map.serialize_entry("gap_ms", &gap_ms)
}

pub(super) fn client_keys<M: SerializeMap>(map: &mut M, client: &ClientRef) -> Result<(), M::Error> {
    let id = client.connection_id.to_string();
    map.serialize_entry("client_ip", &client.ip)?;
    map.serialize_entry("user_agent", &client.user_agent)?;
    map.serialize_entry("connection_id", &id)?;
    map.serialize_entry("client_id", &id)?;
    map.serialize_entry("username", client.user.as_deref().unwrap_or_default())
}

pub(super) fn vod_keys<M: SerializeMap>(map: &mut M, vod: &VodRef) -> Result<(), M::Error> {
    map.serialize_entry("content_type", if vod.is_episode { "episode" } else { "movie" })?;
    map.serialize_entry("content_name", &vod.name)?;
    map.serialize_entry("content_uuid", &vod.uuid)?;
    map.serialize_entry("client_ip", &vod.ip)?;
    map.serialize_entry("user_agent", &vod.user_agent)?;
    map.serialize_entry("client_id", &vod.session.to_string())?;
    map.serialize_entry("username", vod.user.as_deref().unwrap_or_default())
}

/// The API promises a duration and a size with every recording event; a recording that starts has neither yet.
pub(super) fn recording_keys<M: SerializeMap>(
    map: &mut M,
    recording: &RecordingRef,
    duration_seconds: u64,
    file_size_bytes: u64,
) -> Result<(), M::Error> {
    map.serialize_entry("recording_id", &recording.id.to_string())?;
    map.serialize_entry("program_title", &recording.program_title)?;
    map.serialize_entry("file_path", &recording.file_path)?;
    map.serialize_entry("file_path_changes", &recording.path_changes)?;
    map.serialize_entry("duration_seconds", &duration_seconds)?;
    map.serialize_entry("file_size_bytes", &file_size_bytes)
}

pub(super) fn source_keys<M: SerializeMap>(
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

/// Keys of a refresh that did not succeed.
pub(super) fn failure_keys<M: SerializeMap>(
    map: &mut M,
    source: &RefreshRef,
    status: &str,
    reason: &str,
) -> Result<(), M::Error> {
    map.serialize_entry("source_name", &source.name)?;
    map.serialize_entry("source_id", &source.id)?;
    map.serialize_entry("status", status)?;
    map.serialize_entry("reason", reason)
}

/// Keys of an event about channels. Payloads are flat, so the ids are a text; those of the only channel are empty texts if there
/// are several.
pub(super) fn channels_keys<M: SerializeMap>(map: &mut M, channels: &ChannelsRef) -> Result<(), M::Error> {
    let only = channels.only.as_ref();
    let ids: Vec<String> = channels.ids.iter().map(ToString::to_string).collect();
    map.serialize_entry("count", &channels.count)?;
    map.serialize_entry("ids", &ids.join(","))?;
    map.serialize_entry("channel_id", &only.map(|it| it.uuid.to_string()).unwrap_or_default())?;
    map.serialize_entry("channel_name", only.map_or("", |it| &it.name))?;
    let number = only.and_then(|it| it.number).map(|it| it.to_string()).unwrap_or_default();
    map.serialize_entry("channel_number", &number)
}

/// Keys of an event in which another stream takes over.
pub(super) fn switch_keys<M: SerializeMap>(
    map: &mut M,
    from: &StreamRef,
    to: &StreamRef,
    cause: &str,
    gap_ms: u64,
) -> Result<(), M::Error> {
    stream_keys(map, Some(to))?;
    map.serialize_entry("new_url", &to.url.to_string())?;
    map.serialize_entry("previous_stream_id", &from.id)?;
    map.serialize_entry("previous_stream_name", &from.name)?;
    map.serialize_entry("previous_stream_url", &from.url.to_string())?;
    map.serialize_entry("previous_provider_name", &from.account_name)?;
    gap_keys(map, cause, gap_ms)
}

/// Keys of an event about a client that was refused.
pub(super) fn caller_keys<M: SerializeMap>(
    map: &mut M,
    attempt: &CallerRef,
    reason: &str,
) -> Result<(), M::Error> {
    map.serialize_entry("user", attempt.user.as_deref().unwrap_or_default())?;
    map.serialize_entry("client_ip", &attempt.ip)?;
    map.serialize_entry("user_agent", &attempt.user_agent)?;
    map.serialize_entry("reason", reason)
}
