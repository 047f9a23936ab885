//! A sentence about an event, for people.

use super::{CallerRef, EventBody, VodRef};

impl EventBody {
    /// Returns a sentence that says what happened.
    pub fn summary(&self) -> String {
        let sentence = match self {
            Self::ChannelStart { channel, stream } => {
                format!("{} plays \"{}\" of {}", channel.name, stream.name, stream.account_name)
            }
            Self::ChannelStop { channel, reason, .. } => format!("{} stopped: {reason}", channel.name),
            Self::ChannelReconnect { channel, gap_ms, .. } => {
                format!("{} plays again after {gap_ms} ms", channel.name)
            }
            Self::ChannelError { channel, error_message, .. } => {
                format!("{} does not play: {error_message}", channel.name)
            }
            Self::ChannelFailover { channel, from, to, cause, .. } => format!(
                "{} plays \"{}\" of {} instead of \"{}\" of {}: {cause}",
                channel.name, to.name, to.account_name, from.name, from.account_name
            ),
            Self::StreamSwitch { channel, to, .. } => {
                format!("{} was switched to \"{}\" of {}", channel.name, to.name, to.account_name)
            }
            Self::ClientConnect { channel, client } => {
                format!("{} watches {}", who(client.user.as_deref(), client.ip), channel.name)
            }
            Self::ClientDisconnect { channel, client, duration_seconds, .. } => format!(
                "{} watched {} for {duration_seconds} s",
                who(client.user.as_deref(), client.ip),
                channel.name
            ),
            Self::RecordingStart { channel, recording } => {
                format!("The recording of \"{}\" on {} began", recording.program_title, channel.name)
            }
            Self::RecordingEnd { channel, recording, interrupted, .. } => {
                let end = if *interrupted { "was interrupted" } else { "is complete" };
                format!("The recording of \"{}\" on {} {end}", recording.program_title, channel.name)
            }
            Self::ComskipStatus { recording, status, detail, .. } => {
                format!("The search for commercials in \"{}\": {status}, {detail}", recording.program_title)
            }
            Self::EpgRefresh { source, channels, programs_updated, .. } => {
                format!("The guide {} has {programs_updated} programmes of {channels} channels", source.name)
            }
            Self::M3uRefresh { source, streams_created, streams_updated, streams_deleted, .. } => format!(
                "The playlist of {} was refreshed: {streams_created} new streams, {streams_updated} changed, \
                 {streams_deleted} deleted",
                source.name
            ),
            Self::LoginFailed { attempt, reason } => {
                format!("The login of {} failed: {reason}", caller(attempt))
            }
            Self::EpgBlocked { attempt, reason } => {
                format!("The guide was refused to {}: {reason}", caller(attempt))
            }
            Self::M3uBlocked { attempt, reason } => {
                format!("The playlist was refused to {}: {reason}", caller(attempt))
            }
            Self::AccountExpiring { account, profile_name, days, .. } => match days {
                0 => format!("The profile {profile_name} of {} has expired", account.name),
                1 => format!("The profile {profile_name} of {} expires within a day", account.name),
                _ => format!("The profile {profile_name} of {} expires within {days} days", account.name),
            },
            Self::VodStart { vod } => format!("{} watches \"{}\"", viewer(vod), vod.name),
            Self::VodStop { vod, duration_seconds, .. } => {
                format!("{} watched \"{}\" for {duration_seconds} s", viewer(vod), vod.name)
            }
            Self::StoreStopped { reason } => format!("Changes cannot be stored: {reason}"),
            Self::StoreResumed => "Changes can be stored again".to_owned(),
            Self::RestorePending { backup, .. } => {
                format!("The back-up {backup} is restored at the next start")
            }
            Self::NodeState { node, state } => match *state {
                "alive" => format!("The node {node} has joined the cluster"),
                "left" => format!("The node {node} has left the cluster"),
                _ => format!("The node {node} of the cluster no longer answers"),
            },
        };
        sentence.trim_end_matches('.').to_owned() + "."
    }
}

fn who(user: Option<&str>, ip: std::net::IpAddr) -> String {
    user.map_or_else(|| format!("A viewer at {ip}"), str::to_owned)
}

fn viewer(vod: &VodRef) -> String {
    who(vod.user.as_deref(), vod.ip)
}

fn caller(attempt: &CallerRef) -> String {
    match &attempt.user {
        Some(user) => format!("{user} from {}", attempt.ip),
        None => format!("a client at {}", attempt.ip),
    }
}
