//! The events that integrations can subscribe to, the events of the gateway itself, and their payloads.
//!
//! A payload is one flat JSON object. Keys of the same meaning have the same name in every event, every event always
//! has all of its keys, and no payload contains credentials of a provider.

mod keys;
mod list;
mod sample;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

pub use self::list::EventBody;
use self::list::write_keys;
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
