//! Status of a live channel and its clients.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::event::StreamRef;
use domain::ids::{OutputProfileId, ProfileId, StreamId, UserId};
use domain::output_format::{SegmentContainer, StreamFormat};
use domain::udp_output::UdpOutputAddress;
use media::InputCounts;
use uuid::Uuid;

use crate::plans::Target;

/// The part of a node in a live channel of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelNode {
    /// Name of the node that has the source.
    pub origin: Arc<str>,
    /// It is this node. Otherwise this one is an edge.
    pub is_origin: bool,
    /// Number of the origin. Each change of the origin increases it.
    pub epoch: u64,
}

/// Status of a live channel.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelStatus {
    /// Watched target.
    pub target: Target,
    /// Uuid of the channel.
    pub uuid: Uuid,
    /// Name of the channel.
    pub name: String,
    /// State of the playout: `idle`, `opening`, `playing`, `switching`, `resting`, `stopped`.
    pub state: &'static str,
    /// The part of this node; `None` without a cluster, and before the cluster has decided.
    pub node: Option<ChannelNode>,
    /// The stream that plays.
    pub playing: Option<StreamId>,
    /// The stream that plays, as events name it.
    pub stream: Option<StreamRef>,
    /// Account profile of the stream that plays.
    pub profile: Option<ProfileId>,
    /// The discovered limit of this account profile.
    pub discovered_max_streams: Option<u32>,
    /// Start time, in milliseconds since 1970.
    pub started_at: i64,
    /// Time since the first join.
    pub uptime: Duration,
    /// Time since the first stream played.
    pub since_first_play: Option<Duration>,
    /// Upstream losses since the start.
    pub n_losses: u64,
    /// Failovers since the start.
    pub n_failovers: u64,
    /// Why the last attempt failed, without addresses. `None` if none has, and while a stream plays.
    pub last_failure: Option<String>,
    /// Bytes written to the ring.
    pub bytes_in: u64,
    /// Segments and datagrams of sources.
    pub input: InputCounts,
    /// Bytes in the ring now.
    pub ring_bytes: usize,
    /// Connected clients.
    pub clients: Vec<ClientStatus>,
    /// Number of joins that wait for a slot.
    pub n_waiting: usize,
    /// The segmenters that run.
    pub segmenters: Vec<SegmenterStatus>,
}

/// Status of a segmenter, which serves all viewers of the channel with the same container and output profile.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmenterStatus {
    /// Container of the segments.
    pub container: SegmentContainer,
    /// Output profile that changes the stream before it.
    pub output_profile: Option<OutputProfileId>,
    /// Number of viewers.
    pub n_viewers: usize,
    /// Announced maximum duration of a segment; `None` before the first.
    pub target_duration: Option<Duration>,
    /// Number of the newest complete segment; `None` before the first.
    pub newest_segment: Option<u64>,
    /// Complete segments that players can request.
    pub n_segments: usize,
    /// Bytes in memory.
    pub bytes: usize,
    /// Age of the newest media that players can request; `None` before the first.
    pub latency: Option<Duration>,
    /// Codecs, as playlists name them.
    pub codecs: Option<String>,
    /// Names of elementary streams that the container cannot carry, with reasons.
    pub left_out: Vec<String>,
}

/// Status of one client.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientStatus {
    /// Client number.
    pub id: u64,
    /// Address of the peer.
    pub address: IpAddr,
    /// `User-Agent` header.
    pub agent: String,
    /// User name; `None` without a login.
    pub user: Option<String>,
    /// User id, if the client holds a seat.
    pub user_id: Option<UserId>,
    /// Output profile that changes the stream for the client.
    pub output_profile: Option<OutputProfileId>,
    /// The form in which the client gets the stream.
    pub format: StreamFormat,
    /// The receiver of datagrams, if the client is an output of the channel.
    pub datagrams: Option<UdpOutputAddress>,
    /// Time of the join, in milliseconds since 1970.
    pub joined_at: i64,
    /// Time since the join.
    pub watching: Duration,
    /// Bytes passed to the connection.
    pub bytes: u64,
    /// Bytes that the client missed because it was too slow.
    pub missed_bytes: u64,
    /// Number of overruns: the ring overwrote the client's position.
    pub misses: u64,
}

impl ClientStatus {
    /// Returns the name of the form in which the client gets the stream.
    pub fn format_name(&self) -> &'static str {
        match self.datagrams {
            Some(UdpOutputAddress { is_rtp: true, .. }) => "rtp",
            Some(UdpOutputAddress { is_rtp: false, .. }) => "udp",
            None => self.format.name(),
        }
    }
}
