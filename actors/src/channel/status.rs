//! How a live channel is doing.

use std::{net::IpAddr, time::Duration};

use domain::ids::{ProfileId, StreamId};
use uuid::Uuid;

/// How a live channel is doing.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The channel.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// The playout's state: `idle`, `opening`, `playing`, `switching`, `resting`, `stopped`.
    pub state: &'static str,
    /// The stream that plays.
    pub playing: Option<StreamId>,
    /// The account profile it plays from.
    pub profile: Option<ProfileId>,
    /// Since the first join.
    pub uptime: Duration,
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
    /// For how long it watches.
    pub watching: Duration,
    /// Bytes handed to its connection.
    pub bytes: u64,
    /// Bytes it missed because it was slow.
    pub missed_bytes: u64,
    /// How often its place had left the ring.
    pub misses: u64,
}
