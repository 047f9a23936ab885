//! How a live channel is doing.

use std::net::IpAddr;
use std::time::Duration;

use domain::event::StreamRef;
use domain::ids::{ProfileId, StreamId, UserId};
use uuid::Uuid;

use crate::plans::Target;

/// How a live channel is doing.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelStatus {
    /// What is watched.
    pub target: Target,
    /// The channel.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// The playout's state: `idle`, `opening`, `playing`, `switching`, `resting`, `stopped`.
    pub state: &'static str,
    /// The stream that plays.
    pub playing: Option<StreamId>,
    /// The same as events name it.
    pub stream: Option<StreamRef>,
    /// The account profile it plays from.
    pub profile: Option<ProfileId>,
    /// When it began, in milliseconds since 1970.
    pub started_at: i64,
    /// Since the first join.
    pub uptime: Duration,
    /// Since its first stream played.
    pub since_first_play: Option<Duration>,
    /// Upstream losses since it lives.
    pub n_losses: u64,
    /// Failovers since it lives.
    pub n_failovers: u64,
    /// Bytes taken into the ring.
    pub bytes_in: u64,
    /// Bytes in the ring now.
    pub ring_bytes: usize,
    /// Who watches.
    pub clients: Vec<ClientStatus>,
    /// Joins that wait for a slot.
    pub n_waiting: usize,
}

/// How one client is doing.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientStatus {
    /// The number of the client.
    pub id: u64,
    /// Where it came from.
    pub address: IpAddr,
    /// Its `User-Agent`.
    pub agent: String,
    /// Who logged in.
    pub user: Option<String>,
    /// The user's id, where a seat is held.
    pub user_id: Option<UserId>,
    /// When it came, in milliseconds since 1970.
    pub joined_at: i64,
    /// For how long it watches.
    pub watching: Duration,
    /// Bytes handed to its connection.
    pub bytes: u64,
    /// Bytes it missed because it was slow.
    pub missed_bytes: u64,
    /// How often its place had left the ring.
    pub misses: u64,
}
