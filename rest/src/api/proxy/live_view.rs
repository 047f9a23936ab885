//! Live channels, their clients and their segmenters in answers.

use actors::{ChannelOverview, ChannelStatus, ClientStatus, SegmenterStatus, Target};
use domain::ids::{OutputProfileId, ProfileId, StreamId};
use domain::output_format::SegmentContainer;
use resource_derive::View;
use route_frame::value::Time;
use serde::Serialize;
use storage::Models;
use uuid::Uuid;

use super::live_facts::{avg_bitrate_kbps, bitrate_text, codec, epoch, owner, resolution, tenths};

/// All live channels at one moment.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct LiveChannelsView {
    /// Channels and previews of streams, in the order of their names.
    pub(super) channels: Vec<LiveChannelView>,
    /// Number of live channels.
    #[field(example = "1")]
    pub(super) count: usize,
}

/// A live channel.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct LiveChannelView {
    /// UUID of the channel, or of the preview of a stream.
    channel_id: Uuid,
    /// Name of the channel.
    #[field(example = "News")]
    channel_name: String,
    /// `idle`, `opening`, `playing`, `switching` to another stream while the old one plays, `resting` between two
    /// rounds of attempts, `stopped`; `no_answer` if the channel did not answer in time, and then most other fields are
    /// `null`.
    #[field(example = "playing")]
    state: &'static str,
    /// Id of the stream that plays; `null` if none does.
    #[field(example = "7")]
    stream_id: Option<StreamId>,
    /// Name of the stream.
    #[field(example = "News HD")]
    stream_name: Option<String>,
    /// Title that the stream sent last, if it is a radio station that sends titles; otherwise `null`.
    #[field(example = "Artist - Song")]
    title: Option<String>,
    /// Size of the picture that the stream sends.
    #[field(example = "1280x720")]
    resolution: Option<String>,
    /// Frames per second of the stream.
    #[field(example = "25.0")]
    source_fps: Option<f64>,
    /// Video codec of the stream, by its name in ffmpeg.
    #[field(example = "h264")]
    video_codec: Option<String>,
    /// Audio codec of the stream, by its name in ffmpeg.
    #[field(example = "aac")]
    audio_codec: Option<String>,
    /// URL of the stream, without parts that may be credentials.
    #[field(example = "http://provider.example/…")]
    url: Option<String>,
    /// Name of the account.
    #[field(example = "provider")]
    account_name: Option<String>,
    /// Id of the account profile.
    #[field(example = "1")]
    m3u_profile_id: Option<ProfileId>,
    /// Limit of the account profile that was discovered because the provider refused another connection.
    #[field(example = "1")]
    discovered_max_streams: Option<u32>,
    /// How the stream is delivered.
    #[field(example = "proxy")]
    stream_profile: Option<&'static str>,
    /// Name of the node that has the connection to the provider; `null` without a cluster.
    #[field(example = "attic")]
    source_node: Option<String>,
    /// The part of the node that answers, or of another one if this one does not play the channel: `origin` if it has that
    /// connection, `edge` if it reads from the other node; `null` without a cluster.
    #[field(example = "edge")]
    node_role: Option<&'static str>,
    /// Names of the nodes that play the channel; empty without a cluster.
    #[field(example = "attic")]
    nodes: Vec<String>,
    /// Name of the node that has the connection to the provider; `local` without a cluster.
    #[field(example = "local")]
    owner: Option<String>,
    /// When the channel was first requested.
    started_at: Option<Time>,
    /// The same in seconds since 1970.
    #[field(example = "1764190000.5")]
    started_at_epoch: Option<f64>,
    /// Seconds since the channel was first requested.
    #[field(example = "12.5")]
    uptime: Option<f64>,
    /// Number of bytes received from providers.
    #[field(example = "7500000")]
    bytes_in: Option<u64>,
    /// Same as `bytes_in`.
    #[field(example = "7500000")]
    total_bytes: Option<u64>,
    /// Average bitrate from providers since the first stream played, in kilobits per second; `null` in the first
    /// second.
    #[field(example = "4800.5")]
    avg_bitrate_kbps: Option<f64>,
    /// The same as text.
    #[field(example = "4.80 Mbps")]
    avg_bitrate: Option<String>,
    /// Number of times that another stream took over after a loss.
    #[field(example = "0")]
    failovers: Option<u64>,
    /// Number of times that a stream was lost or failed to start.
    #[field(example = "0")]
    losses: Option<u64>,
    /// Number of segments of HLS that were read from providers.
    #[field(example = "0")]
    segments_read: Option<u64>,
    /// Number of segments of HLS that were not available, or left the playlist before they could be read.
    #[field(example = "0")]
    segments_skipped: Option<u64>,
    /// Number of datagrams that the network lost on the way from providers, as far as they are numbered (RTP).
    #[field(example = "0")]
    lost_datagrams: Option<u64>,
    /// Number of viewers that wait for a slot.
    #[field(example = "0")]
    waiting: Option<usize>,
    /// Number of clients.
    #[field(example = "1")]
    client_count: usize,
    /// The clients; for admins.
    clients: Vec<LiveClientView>,
    /// The tasks that make segments of the channel, for viewers with HLS or fMP4.
    segmenters: Vec<SegmenterView>,
}

/// A segmenter, which serves all viewers of a channel with the same container and output profile.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct SegmenterView {
    /// Container of the segments: `ts` or `fmp4`.
    #[field(example = "fmp4")]
    container: &'static str,
    /// Id of the output profile that changes the stream before it; `null` without one.
    #[field(example = "1")]
    output_profile: Option<OutputProfileId>,
    /// Number of viewers.
    #[field(example = "3")]
    viewers: usize,
    /// Announced maximum duration of a segment, in seconds; `null` before the first one is complete.
    #[field(example = "4")]
    target_duration: Option<u64>,
    /// Number of the newest complete segment.
    #[field(example = "1764190000")]
    newest_segment: Option<u64>,
    /// Number of segments in playlists.
    #[field(example = "6")]
    segments: usize,
    /// Bytes in memory.
    #[field(example = "24000000")]
    bytes: usize,
    /// Age of the newest media that players can request, in seconds.
    #[field(example = "1.5")]
    latency: Option<f64>,
    /// Codecs, as playlists name them.
    #[field(example = "avc1.64001f,mp4a.40.2")]
    codecs: Option<String>,
    /// Names of elementary streams that the container cannot carry, with reasons.
    left_out: Vec<String>,
}

/// A client of a live channel.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct LiveClientView {
    /// Client id, for `stop_client`.
    #[field(example = "17")]
    client_id: String,
    /// Name of the node that serves the client; `null` without a cluster.
    #[field(example = "attic")]
    node: Option<String>,
    /// IP address of the client.
    #[field(example = "192.0.2.7")]
    ip_address: String,
    /// User agent of the client; empty if it sends none.
    #[field(example = "VLC/3.0.20")]
    user_agent: String,
    /// Id of the user; `0` without a login.
    #[field(example = "3")]
    user_id: String,
    /// Name of the user; `null` without a login.
    #[field(example = "anna")]
    username: Option<String>,
    /// When the client connected.
    connected_at: Time,
    /// Format of the output: `mpegts`, `hls-ts`, `hls-fmp4`, `ll-hls` or `fmp4`; `udp` or `rtp` for the output of the
    /// channel as datagrams, whose receiver is `ip_address`.
    #[field(example = "mpegts")]
    output_format: &'static str,
    /// Id of the output profile that changes the stream for the client; `null` without one.
    #[field(example = "1")]
    output_profile: Option<OutputProfileId>,
    /// Number of bytes handed to the connection.
    #[field(example = "7500000")]
    bytes_sent: u64,
    /// Number of times that the client was too slow and missed data.
    #[field(example = "0")]
    misses: u64,
    /// Number of missed bytes.
    #[field(example = "0")]
    missed_bytes: u64,
}

impl LiveChannelView {
    /// Returns what is known of a channel, also if it does not answer.
    pub(super) fn new(models: &Models, overview: &ChannelOverview) -> Self {
        match &overview.status {
            Some(status) => Self::from_status(status.clone()),
            None => Self::unanswered(models, overview.target),
        }
    }

    /// Returns the view of a channel that has answered.
    pub(super) fn from_status(status: ChannelStatus) -> Self {
        let (client_count, kbps, owner) = (status.n_clients(), avg_bitrate_kbps(&status), owner(&status));
        let clients: Vec<_> = status.clients.into_iter().map(client).collect();
        let stream = status.stream;
        let facts = &status.facts;
        Self {
            channel_id: status.target.uuid(),
            channel_name: status.name,
            state: status.state,
            stream_id: status.playing,
            title: status.title,
            resolution: resolution(facts),
            source_fps: facts.frame_rate,
            video_codec: codec(facts.video_codec.as_deref()).map(str::to_owned),
            audio_codec: codec(facts.audio_codec.as_deref()).map(str::to_owned),
            url: stream.as_ref().map(|it| it.url.to_string()),
            account_name: stream.as_ref().map(|it| it.account_name.clone()),
            stream_profile: stream.as_ref().map(|it| it.profile_used.name()),
            stream_name: stream.map(|it| it.name),
            source_node: status.node.as_ref().map(|it| it.origin.to_string()),
            nodes: status.nodes.iter().map(|it| it.to_string()).collect(),
            node_role: status.node.map(|it| if it.is_origin { "origin" } else { "edge" }),
            m3u_profile_id: status.profile,
            discovered_max_streams: status.discovered_max_streams,
            owner: Some(owner),
            started_at: Some(Time(status.started_at)),
            started_at_epoch: Some(epoch(status.started_at)),
            uptime: Some(tenths(status.uptime.as_secs_f64())),
            bytes_in: Some(status.bytes_in),
            total_bytes: Some(status.bytes_in),
            avg_bitrate_kbps: kbps,
            avg_bitrate: kbps.map(bitrate_text),
            failovers: Some(status.n_failovers),
            losses: Some(status.n_losses),
            segments_read: Some(status.input.segments_read),
            segments_skipped: Some(status.input.segments_skipped),
            lost_datagrams: Some(status.input.lost_datagrams),
            waiting: Some(status.n_waiting),
            client_count,
            clients,
            segmenters: status.segmenters.iter().map(SegmenterView::new).collect(),
        }
    }

    /// Returns the part of the status that is known without the channel.
    fn unanswered(models: &Models, target: Target) -> Self {
        let uuid = target.uuid();
        let channels = models.channels.load();
        let name = channels.one_by("uuid", uuid.as_bytes()).map(|it| it.name.clone());
        Self {
            channel_id: uuid,
            channel_name: name.unwrap_or_else(|| target.to_string()),
            state: "no_answer",
            stream_id: None,
            stream_name: None,
            title: None,
            resolution: None,
            source_fps: None,
            video_codec: None,
            audio_codec: None,
            url: None,
            account_name: None,
            m3u_profile_id: None,
            discovered_max_streams: None,
            stream_profile: None,
            source_node: None,
            node_role: None,
            nodes: Vec::new(),
            owner: None,
            started_at: None,
            started_at_epoch: None,
            uptime: None,
            bytes_in: None,
            total_bytes: None,
            avg_bitrate_kbps: None,
            avg_bitrate: None,
            failovers: None,
            losses: None,
            segments_read: None,
            segments_skipped: None,
            lost_datagrams: None,
            waiting: None,
            client_count: 0,
            clients: Vec::new(),
            segmenters: Vec::new(),
        }
    }

    /// Reduces the status to state and counts, for users who see neither providers nor other users.
    pub(super) fn reduced(self) -> Self {
        LiveChannelView {
            stream_id: None,
            stream_name: None,
            title: None,
            url: None,
            account_name: None,
            m3u_profile_id: None,
            discovered_max_streams: None,
            stream_profile: None,
            source_node: None,
            node_role: None,
            nodes: Vec::new(),
            owner: None,
            clients: Vec::new(),
            ..self
        }
    }
}

impl SegmenterView {
    pub(super) fn new(status: &SegmenterStatus) -> Self {
        Self {
            container: match status.container {
                SegmentContainer::Ts => "ts",
                SegmentContainer::Fmp4 => "fmp4",
            },
            output_profile: status.output_profile,
            viewers: status.n_viewers,
            target_duration: status.target_duration.map(|it| it.as_secs()),
            newest_segment: status.newest_segment,
            segments: status.n_segments,
            bytes: status.bytes,
            latency: status.latency.map(|it| tenths(it.as_secs_f64())),
            codecs: status.codecs.clone(),
            left_out: status.left_out.clone(),
        }
    }
}

fn client(client: ClientStatus) -> LiveClientView {
    let output_format = client.format_name();
    LiveClientView {
        client_id: client.id.to_string(),
        node: client.node.map(|it| it.to_string()),
        ip_address: client.address.to_string(),
        user_agent: client.agent,
        user_id: client.user_id.map_or_else(|| "0".to_owned(), |it| it.to_string()),
        username: client.user,
        connected_at: Time(client.joined_at),
        output_format,
        output_profile: client.output_profile,
        bytes_sent: client.bytes,
        misses: client.misses,
        missed_bytes: client.missed_bytes,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use actors::StreamFacts;
    use domain::channel::Channel;
    use domain::event::StreamRef;
    use domain::ids::{ChannelId, UserId};
    use domain::output_format::StreamFormat;
    use domain::source_url::SourceUrl;
    use domain::stream_profile::Delivery;
    use media::InputCounts;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::proxy::live_push::pushed_channel;
    use crate::testing::{Rest, SECRET};

    fn status() -> ChannelStatus {
        ChannelStatus {
            target: Target::Channel(Uuid::from_u128(1)),
            uuid: Uuid::from_u128(1),
            name: "News".to_owned(),
            state: "playing",
            node: None,
            nodes: Vec::new(),
            playing: Some(StreamId(7)),
            stream: Some(StreamRef {
                id: StreamId(7),
                name: "News HD".to_owned(),
                url: SourceUrl::new(format!("http://anna:{SECRET}@provider.example/live/{SECRET}/7.ts")),
                profile_used: Delivery::Proxy,
                account_name: "provider".to_owned(),
            }),
            title: Some("Artist - Song".to_owned()),
            facts: StreamFacts {
                video_codec: Some("H.264".to_owned()),
                audio_codec: Some("AAC".to_owned()),
                picture: Some((1_280, 720)),
                frame_rate: Some(25.0),
            },
            profile: Some(ProfileId(2)),
            discovered_max_streams: Some(1),
            started_at: 0,
            uptime: Duration::from_millis(12_340),
            since_first_play: Some(Duration::from_secs(10)),
            n_losses: 3,
            n_failovers: 1,
            last_failure: None,
            bytes_in: 1_250_000,
            input: InputCounts { segments_read: 40, segments_skipped: 1, lost_datagrams: 2 },
            ring_bytes: 0,
            clients: vec![ClientStatus {
                id: 17,
                node: None,
                address: "192.0.2.7".parse().unwrap(),
                agent: "VLC".to_owned(),
                user: Some("anna".to_owned()),
                user_id: Some(UserId(3)),
                output_profile: Some(OutputProfileId(5)),
                format: StreamFormat::LowLatencyHls,
                datagrams: None,
                joined_at: 1_000,
                watching: Duration::from_secs(1),
                bytes: 99,
                missed_bytes: 5,
                misses: 1,
            }],
            n_more_clients: 0,
            n_waiting: 0,
            segmenters: vec![SegmenterStatus {
                container: SegmentContainer::Fmp4,
                output_profile: None,
                n_viewers: 1,
                target_duration: Some(Duration::from_secs(4)),
                newest_segment: Some(1_764_190_000),
                n_segments: 6,
                bytes: 24_000_000,
                latency: Some(Duration::from_millis(1_540)),
                codecs: Some("avc1.64001f,mp4a.40.2".to_owned()),
                left_out: vec!["DVB subtitles: fMP4 has no form for it".to_owned()],
            }],
        }
    }

    #[test]
    fn a_live_channel_is_rendered_with_its_clients_and_without_a_credential() {
        let shown = serde_json::to_value(LiveChannelView::from_status(status())).unwrap();
        assert!(!shown.to_string().contains(SECRET), "{shown}");
        let mut expected = json!({
            "channel_id": Uuid::from_u128(1),
            "channel_name": "News",
            "state": "playing",
            "stream_id": 7,
            "stream_name": "News HD",
            "title": "Artist - Song",
            "resolution": "1280x720",
            "source_fps": 25.0,
            "video_codec": "h264",
            "audio_codec": "aac",
            "url": "http://provider.example/…",
            "account_name": "provider",
            "m3u_profile_id": 2,
            "discovered_max_streams": 1,
            "stream_profile": "proxy",
            "source_node": null,
            "node_role": null,
            "nodes": [],
            "owner": "local",
            "started_at": "1970-01-01T00:00:00.000Z",
            "started_at_epoch": 0.0,
            "uptime": 12.3,
            "bytes_in": 1_250_000,
            "total_bytes": 1_250_000,
            "avg_bitrate_kbps": 1000.0,
            "avg_bitrate": "1.00 Mbps",
            "failovers": 1,
            "losses": 3,
            "segments_read": 40,
            "segments_skipped": 1,
            "lost_datagrams": 2,
            "waiting": 0,
            "client_count": 1,
        });
        expected["clients"] = json!([{
            "client_id": "17",
            "node": null,
            "ip_address": "192.0.2.7",
            "user_agent": "VLC",
            "user_id": "3",
            "username": "anna",
            "connected_at": "1970-01-01T00:00:01.000Z",
            "output_format": "ll-hls",
            "output_profile": 5,
            "bytes_sent": 99,
            "misses": 1,
            "missed_bytes": 5,
        }]);
        expected["segmenters"] = json!([{
            "container": "fmp4",
            "output_profile": null,
            "viewers": 1,
            "target_duration": 4,
            "newest_segment": 1_764_190_000_u64,
            "segments": 6,
            "bytes": 24_000_000,
            "latency": 1.5,
            "codecs": "avc1.64001f,mp4a.40.2",
            "left_out": ["DVB subtitles: fMP4 has no form for it"],
        }]);
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_websocket_sends_the_same_facts_as_the_status() {
        let (shown, pushed) = (
            serde_json::to_value(LiveChannelView::from_status(status())).unwrap(),
            pushed_channel(&status()),
        );
        let pushed = pushed.as_object().unwrap();
        assert!(pushed.len() >= 9, "{pushed:?}");
        for (key, value) in pushed {
            assert_eq!(&shown[key], value, "{key}");
        }
    }

    #[test]
    fn a_status_for_other_users_has_state_and_counts_only() {
        let shown = serde_json::to_value(LiveChannelView::from_status(status()).reduced()).unwrap();
        assert_eq!((&shown["state"], &shown["client_count"]), (&json!("playing"), &json!(1)));
        assert_eq!((&shown["clients"], &shown["bytes_in"]), (&json!([]), &json!(1_250_000)));
        let text = shown.to_string();
        for hidden in ["provider", "News HD", "Artist", "192.0.2.7", "anna"] {
            assert!(!text.contains(hidden), "{hidden}: {text}");
        }
    }

    #[test]
    fn unknown_values_are_null() {
        let quiet = ChannelStatus {
            stream: None,
            playing: None,
            profile: None,
            since_first_play: None,
            facts: StreamFacts::default(),
            ..status()
        };
        let shown = serde_json::to_value(LiveChannelView::from_status(quiet)).unwrap();
        let unknown = "stream_id stream_name url m3u_profile_id stream_profile avg_bitrate_kbps avg_bitrate \
                       resolution source_fps video_codec audio_codec";
        for key in unknown.split(' ') {
            assert_eq!(shown[key], Value::Null, "{key}");
        }
    }

    #[tokio::test]
    async fn a_channel_without_an_answer_is_listed_by_name_with_that_state() {
        let rest = Rest::start().await;
        let uuid = Uuid::from_u128(1);
        rest.put([Channel::new(ChannelId(1), uuid, "News", 0)]).await;
        let shown = LiveChannelView::new(
            &rest.models,
            &ChannelOverview { target: Target::Channel(uuid), status: None },
        );
        let shown = serde_json::to_value(shown).unwrap();
        assert_eq!((&shown["channel_id"], &shown["channel_name"]), (&json!(uuid), &json!("News")));
        assert_eq!((&shown["state"], &shown["uptime"]), (&json!("no_answer"), &Value::Null));
        assert_eq!((&shown["client_count"], &shown["clients"]), (&json!(0), &json!([])));
    }
}
