//! The events that integrations can subscribe to, the events of the gateway itself, and their payloads.
//!
//! A payload is one flat JSON object. Keys of the same meaning have the same name in every event, every event always
//! has all of its keys, and no payload contains credentials of a provider.

mod keys;
mod list;
mod sample;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

pub use self::list::EventBody;
use self::list::write_keys;
use crate::channel::ChannelNumber;
use crate::ids::{ChannelId, StreamId, UserId};
use crate::secret::Secret;
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

/// The recipients of a frame about an event on the WebSocket besides admins, who get all of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience<'a> {
    AdminsOnly,
    /// The users who may see the channel get its keys only.
    Viewers(&'a ChannelRef),
    /// The user who made the recording gets all keys except the path of the file.
    Owner(&'a RecordingRef),
    /// All users get these keys only.
    Everyone(&'static [&'static str]),
}

/// The channel that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelRef {
    pub uuid: Uuid,
    pub name: String,
    pub number: Option<ChannelNumber>,
}

/// Maximum number of ids of channels in one event.
pub const CHANNEL_IDS_MAX: usize = 1_000;

/// The channels that one change is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelsRef {
    pub count: usize,
    /// Their ids, at most [`CHANNEL_IDS_MAX`].
    pub ids: Vec<ChannelId>,
    /// The channel, if it is the only one.
    pub only: Option<ChannelRef>,
}

impl ChannelsRef {
    /// Names these channels.
    pub fn new(channels: impl IntoIterator<Item = (ChannelId, ChannelRef)>) -> Self {
        let (mut ids, mut count, mut only) = (Vec::new(), 0, None);
        for (id, channel) in channels {
            count += 1;
            only = (count == 1).then_some(channel);
            if ids.len() < CHANNEL_IDS_MAX {
                ids.push(id);
            }
        }
        Self { count, ids, only }
    }

    /// Returns the channels as the subject of a sentence, with its auxiliary verb.
    fn subject(&self) -> String {
        match &self.only {
            Some(channel) => format!("The channel {} was", channel.name),
            None => format!("{} channels were", self.count),
        }
    }
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
    /// Whether the path will be another one after the conversion; see `recording_ready`.
    pub path_changes: bool,
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

impl ClientRef {
    /// Returns the viewer as the subject of a sentence.
    fn viewer(&self) -> String {
        viewer(self.user.as_deref(), self.ip)
    }
}

impl VodRef {
    /// Returns the viewer as the subject of a sentence.
    fn viewer(&self) -> String {
        viewer(self.user.as_deref(), self.ip)
    }
}

fn viewer(user: Option<&str>, ip: IpAddr) -> String {
    user.map_or_else(|| format!("A viewer at {ip}"), str::to_owned)
}

/// The client inside of a sentence.
impl fmt::Display for CallerRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.user {
            Some(user) => write!(f, "{user} from {}", self.ip),
            None => write!(f, "a client at {}", self.ip),
        }
    }
}

impl EventBody {
    /// Returns the members of the payload that are addresses of streams, whole and with the logins of providers. Payloads have
    /// them without; these are for targets that an admin trusts.
    pub fn addresses(&self) -> BTreeMap<String, Secret> {
        let of_stream =
            |stream: &StreamRef| ["stream_url", "channel_url"].map(|key| (key, stream.url.clone()));
        let urls: Vec<(&str, SourceUrl)> = match self {
            Self::ChannelStart { stream, .. }
            | Self::ChannelReconnect { stream, .. }
            | Self::StreamLacking { stream, .. }
            | Self::StreamUnhealthy { stream, .. }
            | Self::ChannelStop { stream: Some(stream), .. }
            | Self::ChannelError { stream: Some(stream), .. } => of_stream(stream).into(),
            Self::ChannelFailover { from, to, .. } | Self::StreamSwitch { from, to, .. } => {
                let others = [("new_url", to.url.clone()), ("previous_stream_url", from.url.clone())];
                of_stream(to).into_iter().chain(others).collect()
            }
            _ => Vec::new(),
        };
        urls.into_iter().map(|(key, url)| (key.to_owned(), Secret::new(url.expose()))).collect()
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
        write_keys(&mut map, &self.body)?;
        map.end()
    }
}
