//! Status of a live channel and its clients. Nodes of a cluster send it to each other as JSON.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::event::StreamRef;
use domain::ids::{OutputProfileId, ProfileId, StreamId, UserId};
use domain::output_format::{SegmentContainer, StreamFormat};
use domain::udp_output::UdpOutputAddress;
use media::InputCounts;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::health::StreamFacts;
use crate::plans::Target;

/// The part of a node in a live channel of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelNode {
    /// Name of the node that has the source.
    #[serde(with = "shared_text")]
    pub origin: Arc<str>,
    /// It is this node. Otherwise this one is an edge.
    pub is_origin: bool,
    /// Number of the origin. Each change of the origin increases it.
    pub epoch: u64,
}

/// A name of [`ChannelStatus::state`]. An alias, because serde would take a reference as one into what it reads.
type StateName = &'static str;

/// Status of a live channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChannelStatus {
    /// Watched target.
    pub target: Target,
    /// Uuid of the channel.
    pub uuid: Uuid,
    /// Name of the channel.
    pub name: String,
    /// State of the playout: `idle`, `opening`, `playing`, `switching`, `resting`, `stopped`.
    #[serde(deserialize_with = "state")]
    pub state: StateName,
    /// The part of this node; `None` without a cluster, and before the cluster has decided.
    pub node: Option<ChannelNode>,
    /// Names of the nodes that play the channel, if several are shown together.
    #[serde(default, skip)]
    pub nodes: Vec<Arc<str>>,
    /// The stream that plays.
    pub playing: Option<StreamId>,
    /// The stream that plays, as events name it.
    pub stream: Option<StreamRef>,
    /// The title that the stream sent last, if it is a radio station that sends titles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Codecs and pictures of the stream that plays.
    #[serde(default)]
    pub facts: StreamFacts,
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
    #[serde(with = "SentInputCounts")]
    pub input: InputCounts,
    /// Bytes in the ring now.
    pub ring_bytes: usize,
    /// Connected clients.
    pub clients: Vec<ClientStatus>,
    /// Number of connected clients of other nodes that are not listed.
    #[serde(default)]
    pub n_more_clients: usize,
    /// Number of joins that wait for a slot.
    pub n_waiting: usize,
    /// The segmenters that run.
    pub segmenters: Vec<SegmenterStatus>,
}

/// Status of a segmenter, which serves all viewers of the channel with the same container and output profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// Client number.
    pub id: u64,
    /// Name of its node, if those of several nodes are shown together.
    #[serde(default, skip)]
    pub node: Option<Arc<str>>,
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

/// The counters as nodes send them.
#[derive(Serialize, Deserialize)]
#[serde(remote = "InputCounts")]
struct SentInputCounts {
    segments_read: u64,
    segments_skipped: u64,
    lost_datagrams: u64,
}

/// Reads the state of a playout. A state of a later version is `unknown`.
fn state<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StateName, D::Error> {
    const STATES: [&str; 6] = ["idle", "opening", "playing", "switching", "resting", "stopped"];
    let text = String::deserialize(deserializer)?;
    Ok(STATES.into_iter().find(|it| *it == text).unwrap_or("unknown"))
}

mod shared_text {
    use super::*;

    pub(super) fn serialize<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
        String::deserialize(deserializer).map(Arc::from)
    }
}

impl ChannelStatus {
    /// Adds what another node plays of this channel: its clients, and the source if that node has it.
    pub fn add(&mut self, mut other: ChannelStatus) {
        let is_origin = |it: &ChannelStatus| it.node.as_ref().is_some_and(|node| node.is_origin);
        if is_origin(&other) && !is_origin(self) {
            // The part of this node stays.
            other.node = self.node.take();
            std::mem::swap(self, &mut other);
        }
        self.nodes.append(&mut other.nodes);
        self.nodes.sort_unstable();
        self.clients.append(&mut other.clients);
        self.n_more_clients += other.n_more_clients;
        self.segmenters.append(&mut other.segmenters);
        self.n_waiting += other.n_waiting;
    }

    /// Returns the number of all clients.
    pub fn n_clients(&self) -> usize {
        self.clients.len() + self.n_more_clients
    }

    /// Leaves the clients out, except for their number.
    pub fn count_clients(&mut self) {
        self.n_more_clients = self.n_clients();
        self.clients.clear();
    }

    /// Notes the node that plays this, for a list of what all nodes play.
    pub fn set_node(&mut self, name: &Arc<str>) {
        self.nodes = vec![name.clone()];
        for client in &mut self.clients {
            client.node = Some(name.clone());
        }
    }
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

#[cfg(test)]
mod tests {
    use domain::source_url::SourceUrl;
    use domain::stream_profile::Delivery;

    use super::*;

    fn client(id: u64) -> ClientStatus {
        ClientStatus {
            id,
            node: None,
            address: "192.0.2.7".parse().unwrap(),
            agent: "VLC".to_owned(),
            user: Some("anna".to_owned()),
            user_id: Some(UserId(3)),
            output_profile: Some(OutputProfileId(5)),
            format: StreamFormat::Hls(SegmentContainer::Fmp4),
            datagrams: Some("rtp://239.1.2.3:5000".parse().unwrap()),
            joined_at: 1_000,
            watching: Duration::from_millis(1_500),
            bytes: 99,
            missed_bytes: 5,
            misses: 1,
        }
    }

    fn status(is_origin: bool, id: u64) -> ChannelStatus {
        ChannelStatus {
            target: Target::Channel(Uuid::from_u128(1)),
            uuid: Uuid::from_u128(1),
            name: "News".to_owned(),
            state: "playing",
            node: Some(ChannelNode { origin: "attic".into(), is_origin, epoch: 4 }),
            nodes: Vec::new(),
            playing: Some(StreamId(7)),
            stream: Some(StreamRef {
                id: StreamId(7),
                name: "News HD".to_owned(),
                url: SourceUrl::new("http://anna:hidden@provider.example/live/hidden/7.ts".to_owned()),
                profile_used: Delivery::Proxy,
                account_name: "provider".to_owned(),
            }),
            title: is_origin.then(|| "Artist - Song".to_owned()),
            facts: StreamFacts {
                video_codec: is_origin.then(|| "H.264".to_owned()),
                audio_codec: None,
                picture: is_origin.then_some((1_280, 720)),
                frame_rate: is_origin.then_some(25.0),
            },
            profile: Some(ProfileId(2)),
            discovered_max_streams: None,
            started_at: 0,
            uptime: Duration::from_secs(12),
            since_first_play: None,
            n_losses: 3,
            n_failovers: 1,
            last_failure: None,
            bytes_in: if is_origin { 1_000 } else { 500 },
            input: InputCounts { segments_read: 40, segments_skipped: 1, lost_datagrams: 2 },
            ring_bytes: 0,
            clients: vec![client(id)],
            n_more_clients: 0,
            n_waiting: 1,
            segmenters: Vec::new(),
        }
    }

    #[test]
    fn another_node_gets_the_status_without_a_credential() {
        let sent = serde_json::to_string(&status(true, 17)).unwrap();
        assert!(!sent.contains("hidden"), "{sent}");
        let read: ChannelStatus = serde_json::from_str(&sent).unwrap();
        let (shown, url) = (read.stream.clone().unwrap(), "http://provider.example/…");
        assert_eq!(shown.url.to_string(), url);
        let stream = status(true, 17).stream;
        assert_eq!(ChannelStatus { stream, ..read }, status(true, 17));
        let later = sent.replace("\"playing\"", "\"dreaming\"");
        assert_eq!(serde_json::from_str::<ChannelStatus>(&later).unwrap().state, "unknown");
    }

    #[test]
    fn a_channel_of_two_nodes_has_the_source_of_its_origin_and_the_clients_of_both() {
        let named = |name: &str, is_origin, id| {
            let mut status = status(is_origin, id);
            status.set_node(&name.into());
            status
        };
        for (mut own, other) in [
            (named("attic", true, 1), named("cellar", false, 2)),
            (named("cellar", false, 2), named("attic", true, 1)),
        ] {
            let role = own.node.clone();
            own.add(other);
            assert_eq!((own.bytes_in, own.n_waiting, own.node.clone()), (1_000, 2, role));
            assert_eq!(own.title.as_deref(), Some("Artist - Song"));
            assert_eq!((own.facts.picture, own.facts.frame_rate), (Some((1_280, 720)), Some(25.0)));
            assert_eq!(own.nodes, ["attic".into(), "cellar".into()]);
            let mut clients: Vec<_> = own.clients.iter().map(|it| (it.id, it.node.as_deref())).collect();
            clients.sort_unstable();
            assert_eq!(clients, [(1, Some("attic")), (2, Some("cellar"))]);
        }
    }
}
