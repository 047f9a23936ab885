//! All events, each described once: its fields with the values of an example, the keys of its payload, and its sentence.

use serde::ser::SerializeMap;

use super::keys::{
    caller_keys, channels_keys, client_keys, failure_keys, gap_keys, recording_keys, source_keys,
    stream_keys, switch_keys, vod_keys,
};
use super::sample::{caller, channel, channels, client, recording, source, stream, vod};
use super::{
    Audience, CallerRef, ChannelRef, ChannelsRef, ClientRef, RecordingRef, RefreshRef, StreamRef, VodRef,
};
use crate::time::iso_millis;

/// Declares the events. Each one has, in this order:
///
/// - its name;
/// - `about`, if it is about a channel: the field that names it;
/// - its fields, each with the value of the example;
/// - `frame`, if the type of its frame on the WebSocket is not its name;
/// - `to`, if others than admins get a frame, too;
/// - `failed`, if it can report a failure: whether it does;
/// - `keys`, what it writes into the payload besides the keys of its channel;
/// - `summary`, a sentence for people without its end.
macro_rules! events {
    (
        subscribers { $($event:tt)* }
        gateway { $($own:tt)* }
    ) => {
        events!(@names $($event)*);
        events!(@all $($event)* $($own)*);
    };
    (@first $first:expr, $($default:expr,)?) => { $first };
    (@names $(
        $(#[$meta:meta])*
        $variant:ident = $name:literal $(about $channel:ident)? $({ $($fields:tt)* })?
        $(frame $frame:literal)? $(to $audience:expr;)? $(failed $failed:expr;)?
        keys |$map:ident| $keys:expr;
        summary $summary:expr;
    )*) => {
        impl EventBody {
            /// The names of the events that integrations can subscribe to, in the order of the API.
            pub const NAMES: &'static [&'static str] = &[$($name),*];
        }
    };
    (@all $(
        $(#[$meta:meta])*
        $variant:ident = $name:literal $(about $channel:ident)?
        $({ $($(#[$field_meta:meta])* $field:ident: $type:ty = $sample:expr,)* })?
        $(frame $frame:literal)? $(to $audience:expr;)? $(failed $failed:expr;)?
        keys |$map:ident| $keys:expr;
        summary $summary:expr;
    )*) => {
        /// The kind of an event, with its values.
        #[derive(Debug, Clone, PartialEq)]
        pub enum EventBody {
            $($(#[$meta])* $variant $({ $($(#[$field_meta])* $field: $type,)* })?,)*
        }

        impl EventBody {
            /// Returns the name of the event.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $name,)* }
            }

            /// Returns the channel of the event, if it has one.
            pub fn channel(&self) -> Option<&ChannelRef> {
                match self {
                    $($(Self::$variant { $channel, .. } => Some($channel),)?)*
                    _ => None,
                }
            }

            /// Returns the type of its frame on the WebSocket.
            pub fn frame_type(&self) -> &'static str {
                match self {
                    $($(Self::$variant { .. } => $frame,)?)*
                    _ => self.name(),
                }
            }

            /// Returns who gets a frame besides admins.
            pub fn audience(&self) -> Audience<'_> {
                match self {
                    $(Self::$variant $({ $($field,)* })? => {
                        $($(let _ = $field;)*)?
                        events!(@first $($audience,)? Audience::AdminsOnly,)
                    })*
                }
            }

            /// Returns whether it reports a failure.
            pub fn is_failure(&self) -> bool {
                match self {
                    $(Self::$variant $({ $($field,)* })? => {
                        $($(let _ = $field;)*)?
                        events!(@first $($failed,)? false,)
                    })*
                }
            }

            /// Returns a sentence that says what happened.
            pub fn summary(&self) -> String {
                let sentence: String = match self {
                    $(Self::$variant $({ $($field,)* })? => {
                        $($(let _ = $field;)*)?
                        $summary
                    })*
                };
                sentence.trim_end_matches('.').to_owned() + "."
            }

            /// Returns one of each event, with values of an example; first those that integrations can subscribe to.
            pub fn samples() -> Vec<Self> {
                vec![$(Self::$variant $({ $($field: $sample,)* })?,)*]
            }
        }

        /// Writes the keys of one kind of event, except those of its channel.
        pub(super) fn write_keys<M: SerializeMap>(map: &mut M, event: &EventBody) -> Result<(), M::Error> {
            match event {
                $(EventBody::$variant $({ $($field,)* })? => {
                    $($(let _ = $field;)*)?
                    let $map = map;
                    $keys
                })*
            }
        }
    };
}

events! {
    subscribers {
        /// The first stream of a channel plays.
        ChannelStart = "channel_start" about channel {
            channel: ChannelRef = channel(),
            stream: StreamRef = stream(1),
        }
        to Audience::Viewers(channel);
        keys |map| stream_keys(map, Some(stream));
        summary format!("{} plays \"{}\" of {}", channel.name, stream.name, stream.account_name);

        /// A channel ended. `stream` is the one that played last.
        ChannelStop = "channel_stop" about channel {
            channel: ChannelRef = channel(),
            stream: Option<StreamRef> = Some(stream(1)),
            reason: String = "closed".to_owned(),
            runtime_seconds: u64 = 60,
            total_bytes: u64 = 9,
        }
        to Audience::Viewers(channel);
        keys |map| {
            stream_keys(map, stream.as_ref())?;
            map.serialize_entry("reason", reason)?;
            map.serialize_entry("duration_seconds", runtime_seconds)?;
            map.serialize_entry("runtime", runtime_seconds)?;
            map.serialize_entry("total_bytes", total_bytes)
        };
        summary format!("{} stopped: {reason}", channel.name);

        /// The same stream plays again after a loss.
        ChannelReconnect = "channel_reconnect" about channel {
            channel: ChannelRef = channel(),
            stream: StreamRef = stream(1),
            cause: String = "stall".to_owned(),
            gap_ms: u64 = 40,
        }
        to Audience::Viewers(channel);
        keys |map| {
            stream_keys(map, Some(stream))?;
            gap_keys(map, cause, *gap_ms)
        };
        summary format!("{} plays again after {gap_ms} ms", channel.name);

        /// A channel could not start, or gave up.
        ChannelError = "channel_error" about channel {
            channel: ChannelRef = channel(),
            error_message: String = "nothing plays".to_owned(),
            stream: Option<StreamRef> = None,
        }
        to Audience::Viewers(channel);
        keys |map| {
            stream_keys(map, stream.as_ref())?;
            map.serialize_entry("error_message", error_message)
        };
        summary format!("{} does not play: {error_message}", channel.name);

        /// Another stream plays after a loss.
        ChannelFailover = "channel_failover" about channel {
            channel: ChannelRef = channel(),
            from: StreamRef = stream(1),
            to: StreamRef = stream(2),
            cause: String = "stall".to_owned(),
            gap_ms: u64 = 40,
        }
        to Audience::Viewers(channel);
        keys |map| switch_keys(map, from, to, cause, *gap_ms);
        summary format!(
            "{} plays \"{}\" of {} instead of \"{}\" of {}: {cause}",
            channel.name, to.name, to.account_name, from.name, from.account_name
        );

        /// Another stream plays because of a request or a rule.
        StreamSwitch = "stream_switch" about channel {
            channel: ChannelRef = channel(),
            from: StreamRef = stream(1),
            to: StreamRef = stream(2),
            cause: String = "stall".to_owned(),
            gap_ms: u64 = 0,
        }
        to Audience::Viewers(channel);
        keys |map| switch_keys(map, from, to, cause, *gap_ms);
        summary format!("{} was switched to \"{}\" of {}", channel.name, to.name, to.account_name);

        /// A recording begins.
        RecordingStart = "recording_start" about channel {
            channel: ChannelRef = channel(),
            recording: RecordingRef = recording(),
        }
        frame "recording_started"
        to Audience::Owner(recording);
        // The API promises a duration and a size with every recording event; a recording that starts has neither yet.
        keys |map| recording_keys(map, recording, 0, 0);
        summary format!("The recording of \"{}\" on {} began", recording.program_title, channel.name);

        /// A recording ended.
        RecordingEnd = "recording_end" about channel {
            channel: ChannelRef = channel(),
            recording: RecordingRef = recording(),
            duration_seconds: u64 = 60,
            file_size_bytes: u64 = 9,
            interrupted: bool = false,
            /// Why it is incomplete; empty if it is complete or a user ended it.
            reason: String = String::new(),
        }
        frame "recording_ended"
        to Audience::Owner(recording);
        keys |map| {
            recording_keys(map, recording, *duration_seconds, *file_size_bytes)?;
            map.serialize_entry("bytes_written", file_size_bytes)?;
            map.serialize_entry("interrupted", interrupted)?;
            map.serialize_entry("reason", reason)
        };
        summary {
            let end = match (*interrupted, reason.as_str()) {
                (false, _) => "is complete".to_owned(),
                (true, "") => "was interrupted".to_owned(),
                (true, reason) => format!("was interrupted: {reason}"),
            };
            format!("The recording of \"{}\" on {} {end}", recording.program_title, channel.name)
        };

        /// A guide was refreshed.
        EpgRefresh = "epg_refresh" {
            source: RefreshRef = source(),
            /// Channels of the guide.
            channels: u64 = 3,
            /// Its programmes.
            programs_updated: u64 = 10,
            /// Channels and programmes that were left out because they are damaged.
            skipped_programs: u64 = 1,
            /// Channels of the guide that no channel uses.
            unmapped_channels: u64 = 2,
            /// Whether the guide is the one that was in use before.
            is_unchanged: bool = false,
            duration_seconds: u64 = 2,
        }
        // The type `epg_refresh` is that of the frames with the progress of a refresh.
        frame "epg_refreshed"
        keys |map| {
            source_keys(map, source, *programs_updated, *duration_seconds)?;
            map.serialize_entry("programs", programs_updated)?;
            map.serialize_entry("channels", channels)?;
            map.serialize_entry("skipped_programs", skipped_programs)?;
            map.serialize_entry("unmapped_channels", unmapped_channels)?;
            map.serialize_entry("unchanged", is_unchanged)
        };
        summary format!("The guide {} has {programs_updated} programmes of {channels} channels", source.name);

        /// A playlist was refreshed.
        M3uRefresh = "m3u_refresh" {
            source: RefreshRef = source(),
            /// Usable entries of the playlist.
            total_processed: u64 = 9,
            streams_created: u64 = 1,
            streams_updated: u64 = 2,
            /// Streams that are missing from the playlist since this refresh.
            streams_stale: u64 = 4,
            streams_deleted: u64 = 3,
            duration_seconds: u64 = 2,
        }
        // The type `m3u_refresh` is that of the frames with the progress of a refresh.
        frame "m3u_refreshed"
        keys |map| {
            source_keys(map, source, 0, *duration_seconds)?;
            map.serialize_entry("account_name", &source.name)?;
            map.serialize_entry("elapsed_time", duration_seconds)?;
            map.serialize_entry("total_processed", total_processed)?;
            map.serialize_entry("streams_created", streams_created)?;
            map.serialize_entry("streams_updated", streams_updated)?;
            map.serialize_entry("streams_stale", streams_stale)?;
            map.serialize_entry("streams_deleted", streams_deleted)
        };
        summary format!(
            "The playlist of {} was refreshed: {streams_created} new streams, {streams_updated} changed, \
             {streams_deleted} deleted",
            source.name
        );

        /// A client is connected to a channel.
        ClientConnect = "client_connect" about channel {
            channel: ChannelRef = channel(),
            client: ClientRef = client(),
        }
        keys |map| client_keys(map, client);
        summary format!("{} watches {}", client.viewer(), channel.name);

        /// The connection of a client has ended.
        ClientDisconnect = "client_disconnect" about channel {
            channel: ChannelRef = channel(),
            client: ClientRef = client(),
            reason: String = "closed".to_owned(),
            duration_seconds: u64 = 60,
            bytes_sent: u64 = 9,
        }
        keys |map| {
            client_keys(map, client)?;
            map.serialize_entry("reason", reason)?;
            map.serialize_entry("duration_seconds", duration_seconds)?;
            map.serialize_entry("duration", duration_seconds)?;
            map.serialize_entry("bytes_sent", bytes_sent)
        };
        summary format!("{} watched {} for {duration_seconds} s", client.viewer(), channel.name);

        /// A login was refused.
        LoginFailed = "login_failed" {
            attempt: CallerRef = caller(),
            reason: String = "closed".to_owned(),
        }
        keys |map| caller_keys(map, attempt, reason);
        summary format!("The login of {attempt} failed: {reason}");

        /// A client was refused the guide.
        EpgBlocked = "epg_blocked" {
            attempt: CallerRef = caller(),
            reason: String = "closed".to_owned(),
        }
        keys |map| caller_keys(map, attempt, reason);
        summary format!("The guide was refused to {attempt}: {reason}");

        /// A client was refused the playlist.
        M3uBlocked = "m3u_blocked" {
            attempt: CallerRef = caller(),
            reason: String = "closed".to_owned(),
        }
        keys |map| caller_keys(map, attempt, reason);
        summary format!("The playlist was refused to {attempt}: {reason}");

        /// A viewer begins to watch a film or an episode.
        VodStart = "vod_start" {
            vod: VodRef = vod(),
        }
        frame "vod_started"
        keys |map| vod_keys(map, vod);
        summary format!("{} watches \"{}\"", vod.viewer(), vod.name);

        /// A viewer has stopped watching a film or an episode.
        VodStop = "vod_stop" {
            vod: VodRef = vod(),
            duration_seconds: u64 = 60,
            bytes_sent: u64 = 9,
        }
        frame "vod_stopped"
        keys |map| {
            vod_keys(map, vod)?;
            map.serialize_entry("duration_seconds", duration_seconds)?;
            map.serialize_entry("bytes_sent", bytes_sent)
        };
        summary format!("{} watched \"{}\" for {duration_seconds} s", vod.viewer(), vod.name);

        /// A node of the cluster has joined, left or expired. Every node sees it, and one delivers it.
        NodeState = "node_state" {
            node: String = "attic".to_owned(),
            /// `alive`, `expired` or `left`.
            state: &'static str = "expired",
        }
        failed *state == "expired";
        keys |map| {
            map.serialize_entry("node", node)?;
            map.serialize_entry("state", state)
        };
        summary match *state {
            "alive" => format!("The node {node} has joined the cluster"),
            "left" => format!("The node {node} has left the cluster"),
            _ => format!("The node {node} of the cluster no longer answers"),
        };

        /// The file of a recording is as it stays: conversion, commercials and description are done.
        RecordingReady = "recording_ready" about channel {
            channel: ChannelRef = channel(),
            recording: RecordingRef = recording(),
            duration_seconds: u64 = 60,
            file_size_bytes: u64 = 9,
            /// The work that failed, separated by commas, such as `remux`; empty if all is done.
            failed_work: String = "comskip".to_owned(),
        }
        to Audience::Owner(recording);
        keys |map| {
            recording_keys(map, recording, *duration_seconds, *file_size_bytes)?;
            map.serialize_entry("failed_work", failed_work)
        };
        summary format!("The file of the recording of \"{}\" is ready", recording.program_title);

        /// Nothing of a programme was recorded.
        RecordingFailed = "recording_failed" about channel {
            channel: ChannelRef = channel(),
            recording: RecordingRef = recording(),
            reason: String = "no stream plays".to_owned(),
        }
        to Audience::Owner(recording);
        failed true;
        keys |map| {
            recording_keys(map, recording, 0, 0)?;
            map.serialize_entry("reason", reason)
        };
        summary format!("The recording of \"{}\" on {} failed: {reason}", recording.program_title, channel.name);

        /// A refresh of a guide failed.
        EpgError = "epg_error" {
            source: RefreshRef = source(),
            reason: String = "closed".to_owned(),
        }
        failed true;
        keys |map| failure_keys(map, source, "error", reason);
        summary format!("The guide {} was not refreshed: {reason}", source.name);

        /// A refresh of a playlist failed, or waits for the confirmation of an admin.
        M3uError = "m3u_error" {
            source: RefreshRef = source(),
            /// `error` or `pending_confirmation`.
            status: &'static str = "error",
            reason: String = "closed".to_owned(),
        }
        failed true;
        keys |map| failure_keys(map, source, status, reason);
        summary match *status {
            "error" => format!("The playlist of {} was not refreshed: {reason}", source.name),
            _ => format!("The refresh of the playlist of {} waits for a confirmation: {reason}", source.name),
        };

        /// A channel or a title does not play because all connections of an account are in use. At most once in some minutes for
        /// each account.
        AccountFull = "account_full" {
            account_name: String = "Provider".to_owned(),
            /// The channel or title that does not play.
            wanted: String = "News".to_owned(),
            /// Maximum number of connections.
            max_streams: u32 = 2,
            reason: String = "account \"Provider\" is at its limit of 2 streams".to_owned(),
        }
        failed true;
        keys |map| {
            map.serialize_entry("account_name", account_name)?;
            map.serialize_entry("wanted", wanted)?;
            map.serialize_entry("max_streams", max_streams)?;
            map.serialize_entry("reason", reason)
        };
        summary format!("{wanted} does not play: {reason}");

        /// The health of a stream has become bad. At most once in some minutes for each stream.
        StreamUnhealthy = "stream_unhealthy" {
            stream: StreamRef = stream(1),
            /// From 0 to 100.
            score: u8 = 20,
            /// The failure that was counted last; empty if it is not known.
            cause: String = "stall".to_owned(),
        }
        failed true;
        keys |map| {
            stream_keys(map, Some(stream))?;
            map.serialize_entry("score", score)?;
            map.serialize_entry("reason", cause)
        };
        summary format!("The stream \"{}\" of {} is unreliable: {score} of 100", stream.name, stream.account_name);

        /// The disk of a folder is almost full. Once, until there is room again.
        DiskLow = "disk_low" {
            /// `data` or `recordings`.
            folder: &'static str = "data",
            available_bytes: u64 = 500_000_000,
        }
        failed true;
        keys |map| {
            map.serialize_entry("folder", folder)?;
            map.serialize_entry("available_bytes", available_bytes)
        };
        summary {
            let what = if *folder == "data" { "data folder" } else { "recordings" };
            format!("The disk of the {what} is almost full: {} MiB are left", available_bytes >> 20)
        };

        /// A back-up was made.
        BackupDone = "backup_done" {
            backup: String = "headwater-backup-2026-01-31.tar.gz".to_owned(),
            size_bytes: u64 = 9,
            is_scheduled: bool = true,
        }
        keys |map| {
            map.serialize_entry("backup", backup)?;
            map.serialize_entry("size_bytes", size_bytes)?;
            map.serialize_entry("scheduled", is_scheduled)
        };
        summary format!("The back-up {backup} was made");

        /// A back-up could not be made.
        BackupFailed = "backup_failed" {
            reason: String = "closed".to_owned(),
            is_scheduled: bool = true,
        }
        failed true;
        keys |map| {
            map.serialize_entry("reason", reason)?;
            map.serialize_entry("scheduled", is_scheduled)
        };
        summary format!("A back-up failed: {reason}");

        /// Channels were created: one, or several by one change.
        ChannelCreated = "channel_created" {
            channels: ChannelsRef = channels(),
        }
        keys |map| channels_keys(map, channels);
        summary format!("{} created", channels.subject());

        /// Channels were changed: one, or several by one change.
        ChannelChanged = "channel_changed" {
            channels: ChannelsRef = channels(),
        }
        keys |map| channels_keys(map, channels);
        summary format!("{} changed", channels.subject());

        /// Channels were removed: one, or several by one change.
        ChannelRemoved = "channel_removed" {
            channels: ChannelsRef = channels(),
        }
        keys |map| channels_keys(map, channels);
        summary format!("{} removed", channels.subject());

        /// A user has logged in with a password.
        UserLogin = "user_login" {
            caller: CallerRef = caller(),
        }
        keys |map| {
            map.serialize_entry("user", caller.user.as_deref().unwrap_or_default())?;
            map.serialize_entry("client_ip", &caller.ip)?;
            map.serialize_entry("user_agent", &caller.user_agent)
        };
        summary format!("The user {caller} has logged in");

        /// A run of an action of a plugin, by its button or at a time of its schedule, has ended.
        PluginRun = "plugin_run" {
            plugin: String = "cleaner".to_owned(),
            action: String = "clean".to_owned(),
            /// `button` or `schedule`.
            cause: &'static str = "schedule",
            /// `success`, `error` or `cancelled`.
            status: &'static str = "success",
            duration_seconds: u64 = 2,
        }
        // The type `plugin_run` is that of the frames with the progress of a run.
        frame "plugin_ran"
        failed *status == "error";
        keys |map| {
            map.serialize_entry("plugin", plugin)?;
            map.serialize_entry("action", action)?;
            map.serialize_entry("cause", cause)?;
            map.serialize_entry("status", status)?;
            map.serialize_entry("duration_seconds", duration_seconds)
        };
        summary format!("The action {action} of the plugin {plugin} has ended: {status}");

        /// Streams of a user ended because the allowed hours are over, or because the sleep timer has run out.
        ViewingEnded = "viewing_ended" {
            user_id: u32 = 5,
            username: String = "anna".to_owned(),
            /// `allowed_hours` or `sleep_timer`.
            reason: &'static str = "allowed_hours",
            /// Number of streams that ended.
            streams: u32 = 1,
        }
        keys |map| {
            map.serialize_entry("user_id", user_id)?;
            map.serialize_entry("username", username)?;
            map.serialize_entry("reason", reason)?;
            map.serialize_entry("streams", streams)
        };
        summary match *reason {
            "sleep_timer" => format!("The sleep timer of {username} has run out"),
            _ => format!("The allowed hours of {username} are over"),
        };
    }

    gateway {
        /// The credentials of an account profile end soon, or have ended. Once per end and number of days.
        AccountExpiring = "account_expiring" {
            account: RefreshRef = source(),
            profile_id: u32 = 3,
            profile_name: String = "second".to_owned(),
            /// Milliseconds since 1970.
            expires_at: i64 = 1_893_456_000_000,
            /// At most this many days are left; 0 if none is.
            days: u32 = 7,
        }
        keys |map| {
            map.serialize_entry("account_id", &account.id)?;
            map.serialize_entry("account_name", &account.name)?;
            map.serialize_entry("profile_id", profile_id)?;
            map.serialize_entry("profile_name", profile_name)?;
            map.serialize_entry("exp_date", &iso_millis(*expires_at))?;
            map.serialize_entry("days", days)
        };
        summary match days {
            0 => format!("The profile {profile_name} of {} has expired", account.name),
            1 => format!("The profile {profile_name} of {} expires within a day", account.name),
            _ => format!("The profile {profile_name} of {} expires within {days} days", account.name),
        };

        /// The account of a user ends soon, or has ended. Once per end and number of days.
        UserExpiring = "user_expiring" {
            user_id: u32 = 5,
            username: String = "anna".to_owned(),
            /// Milliseconds since 1970.
            expires_at: i64 = 1_893_456_000_000,
            /// At most this many days are left; 0 if none is.
            days: u32 = 7,
        }
        keys |map| {
            map.serialize_entry("user_id", user_id)?;
            map.serialize_entry("username", username)?;
            map.serialize_entry("exp_date", &iso_millis(*expires_at))?;
            map.serialize_entry("days", days)
        };
        summary match days {
            0 => format!("The account of the user {username} has expired"),
            1 => format!("The account of the user {username} expires within a day"),
            _ => format!("The account of the user {username} expires within {days} days"),
        };

        /// The store refuses writes. The integrations of subscribers are in the store.
        StoreStopped = "store_stopped" {
            /// The cause, and the remedy.
            reason: String = "closed".to_owned(),
        }
        failed true;
        keys |map| map.serialize_entry("reason", reason);
        summary format!("Changes cannot be stored: {reason}");

        /// The store accepts writes again.
        StoreResumed = "store_resumed"
        keys |_map| Ok(());
        summary "Changes can be stored again".to_owned();

        /// The search for commercials in a recording has begun or ended.
        ComskipStatus = "comskip_status" about channel {
            channel: ChannelRef = channel(),
            recording: RecordingRef = recording(),
            /// `started`, `completed`, `skipped` (there are none) or `error`.
            status: &'static str = "completed",
            /// The number of commercials, or why the search failed.
            detail: String = "2 commercials".to_owned(),
        }
        to Audience::Owner(recording);
        failed *status == "error";
        keys |map| {
            map.serialize_entry("recording_id", &recording.id.to_string())?;
            map.serialize_entry("program_title", &recording.program_title)?;
            map.serialize_entry("status", status)?;
            map.serialize_entry("detail", detail)
        };
        summary format!("The search for commercials in \"{}\": {status}, {detail}", recording.program_title);

        /// A back-up was verified and replaces the store at the next start.
        RestorePending = "restore_pending" {
            /// Name of the archive.
            backup: String = "nightly.zip".to_owned(),
            /// Whether the gateway restarts now.
            restarts_now: bool = true,
        }
        to Audience::Everyone(&["restarts_now"]);
        keys |map| {
            map.serialize_entry("backup", backup)?;
            map.serialize_entry("restarts_now", restarts_now)
        };
        summary format!("The back-up {backup} is restored at the next start");

        /// A stream plays on without its picture or its sound, or with a still picture, because no other one can help.
        StreamLacking = "stream_lacking" about channel {
            channel: ChannelRef = channel(),
            stream: StreamRef = stream(1),
            cause: String = "picture_lost".to_owned(),
        }
        to Audience::Viewers(channel);
        keys |map| {
            stream_keys(map, Some(stream))?;
            map.serialize_entry("reason", cause)
        };
        summary format!("{} plays on although \"{}\" is not complete: {cause}", channel.name, stream.name);

        /// Streams of another account took the places of those of an account in channels.
        AccountReplaced = "account_replaced" {
            account: RefreshRef = source(),
            /// The account whose streams play now.
            other: RefreshRef = source(),
            /// Number of streams that have a pair.
            streams: u64 = 5,
            /// Number of changed channels.
            channels: u64 = 4,
            /// Number of streams without a pair, which stay.
            streams_left: u64 = 1,
        }
        keys |map| {
            map.serialize_entry("account_id", &account.id)?;
            map.serialize_entry("account_name", &account.name)?;
            map.serialize_entry("other_account_id", &other.id)?;
            map.serialize_entry("other_account_name", &other.name)?;
            map.serialize_entry("streams", streams)?;
            map.serialize_entry("channels", channels)?;
            map.serialize_entry("streams_left", streams_left)
        };
        summary format!(
            "Replaced {streams} streams of {} by streams of {} in {channels} channels; without a pair: {streams_left}",
            account.name, other.name
        );
    }
}

impl EventBody {
    /// Returns the example of the event with this name.
    pub fn sample(name: &str) -> Option<Self> {
        Self::samples().into_iter().find(|it| it.name() == name)
    }
}
