//! The live channels of all nodes. A node asks the others when somebody looks, at most once a second, and only for the
//! clients that somebody looks at: nothing is sent otherwise.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Read, Write};
use std::sync::Arc;

use actors::{ChannelOverview, ChannelStatus, MetricsSnapshot, VodSessionInfo};
use domain::cluster::record::NodeId;
use domain::ids::RecordingId;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use futures_util::future::join_all;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use http::{HeaderMap, Request};
use http_body_util::Full;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tracing::warn;
use uuid::Uuid;

use super::peers::{OtherNode, OtherNodes};
use super::time_limits::{SILENT_NODE_PAUSE, STATUS_ANSWER_TIMEOUT, STATUS_FRESH_TIME};

/// Path on the node port.
pub(super) const STATUS_PATH: &str = "/node/v1/status";
/// Maximum size of the status of a node, compressed or not: that of 100,000 viewers.
const STATUS_BYTES_MAX: usize = 64 << 20;
/// Maximum number of channels that are named in a request. If the clients of more are wanted, those of all are sent.
const CHANNELS_NAMED_MAX: usize = 64;

/// The channels whose clients are wanted of other nodes. The clients of the others are only counted, because those of ten
/// thousand viewers are megabytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedClients {
    All,
    Of(BTreeSet<Uuid>),
}

impl WantedClients {
    pub const NONE: Self = Self::Of(BTreeSet::new());

    pub fn for_channel(channel: Uuid) -> Self {
        Self::Of(BTreeSet::from([channel]))
    }

    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Of(_), Self::All) => false,
            (Self::Of(here), Self::Of(wanted)) => wanted.is_subset(here),
        }
    }

    fn path(&self) -> String {
        match self {
            Self::Of(channels) if channels.len() <= CHANNELS_NAMED_MAX => {
                let channels: Vec<_> = channels.iter().map(Uuid::to_string).collect();
                format!("{STATUS_PATH}?clients={}", channels.join(","))
            }
            Self::Of(_) | Self::All => STATUS_PATH.to_owned(),
        }
    }

    /// Reads the query of a request. All clients are wanted if it does not name channels.
    fn from_query(query: Option<&str>) -> Self {
        let Some(channels) = query.and_then(|it| it.strip_prefix("clients=")) else { return Self::All };
        Self::Of(channels.split(',').filter_map(|it| Uuid::try_parse(it).ok()).collect())
    }
}

/// The live channels and players of a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Channels that did not answer in time are left out.
    #[serde(deserialize_with = "known")]
    pub(crate) channels: Vec<ChannelStatus>,
    #[serde(default)]
    pub(crate) totals: NodeTotals,
    /// Players of films and episodes, and of the past of channels.
    #[serde(default, deserialize_with = "known")]
    pub(crate) films: Vec<VodSessionInfo>,
    #[serde(default, deserialize_with = "known")]
    pub(crate) past: Vec<VodSessionInfo>,
    /// The progress of refreshes, as sockets of admins show it.
    #[serde(default)]
    pub(crate) refreshes: Vec<Value>,
    /// The recordings that run, with the sizes of their files in bytes.
    #[serde(default)]
    pub(crate) recordings: Vec<(RecordingId, u64)>,
}

impl NodeStatus {
    /// Removes what edge nodes do not show.
    pub(super) fn for_edge(mut self) -> Self {
        self.refreshes.clear();
        self
    }
}

/// Reads the rows that this version knows. A later version may have others.
pub(super) fn known<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let rows = Vec::<Value>::deserialize(deserializer)?;
    let n_rows = rows.len();
    let known: Vec<T> = rows.into_iter().filter_map(|it| serde_json::from_value(it).ok()).collect();
    if known.len() < n_rows {
        warn!(rows = n_rows - known.len(), "a node of another version sends what this one does not know");
    }
    Ok(known)
}

/// The counters of a node in statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeTotals {
    pub clients: usize,
    /// Provider slots in use.
    pub leases: usize,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

impl From<&MetricsSnapshot> for NodeTotals {
    fn from(it: &MetricsSnapshot) -> Self {
        Self { clients: it.clients, leases: it.leases, bytes_in: it.bytes_in, bytes_out: it.bytes_out }
    }
}

/// The answers of the other nodes, with their names.
type Answers = Arc<Vec<(Arc<str>, NodeStatus)>>;

#[derive(Debug)]
struct LastAnswers {
    at: Instant,
    clients: WantedClients,
    answers: Answers,
}

/// The last answers of the other nodes.
#[derive(Debug, Default)]
pub struct NodeStatuses {
    /// Held while the nodes are asked, so that everybody else waits for these answers.
    last: Mutex<Option<LastAnswers>>,
    /// Until when nodes that did not answer are not asked again. Bounded by the nodes.
    silent: parking_lot::Mutex<HashMap<NodeId, Instant>>,
}

impl NodeStatuses {
    /// Returns what the other nodes play, as of now or of the last moment. A node that does not answer is left out.
    pub(crate) async fn answers(&self, nodes: &OtherNodes, clients: &WantedClients) -> Answers {
        let mut last = self.last.lock().await;
        if let Some(last) = &*last
            && last.at.elapsed() < STATUS_FRESH_TIME
            && last.clients.covers(clients)
        {
            return last.answers.clone();
        }
        let running = nodes.running();
        let asked = running.iter().filter(|it| !self.is_silent(it.id));
        let asking = asked.map(async |node| {
            let asked = timeout(STATUS_ANSWER_TIMEOUT, ask(nodes, node, clients)).await;
            match asked.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
                Ok(status) => Some((Arc::from(node.name.as_str()), status)),
                Err(reason) => {
                    warn!(node = node.name, "a node does not say what it plays: {reason}");
                    self.set_silent(node.id);
                    None
                }
            }
        });
        let answers = Arc::new(join_all(asking).await.into_iter().flatten().collect());
        let (at, clients) = (Instant::now(), clients.clone());
        *last = Some(LastAnswers { at, clients, answers: Arc::clone(&answers) });
        answers
    }

    /// Notes that a node did not answer.
    pub(super) fn set_silent(&self, node: NodeId) {
        self.silent.lock().insert(node, Instant::now() + SILENT_NODE_PAUSE);
    }

    /// Returns whether a node did not answer a moment ago.
    pub(super) fn is_silent(&self, node: NodeId) -> bool {
        let mut silent = self.silent.lock();
        silent.retain(|_, until| *until > Instant::now());
        silent.contains_key(&node)
    }
}

async fn ask(nodes: &OtherNodes, node: &OtherNode, clients: &WantedClients) -> Result<NodeStatus, String> {
    let request = Request::get(clients.path()).header(ACCEPT_ENCODING, "gzip");
    let request = request.body(Full::default()).map_err(|it| it.to_string())?;
    let (head, body) = nodes.exchange(node, request, STATUS_BYTES_MAX).await?;
    let is_compressed = head.headers.get(CONTENT_ENCODING).is_some_and(|it| it == "gzip");
    read(&body, is_compressed).map_err(|it| it.to_string())
}

fn read(body: &[u8], is_compressed: bool) -> io::Result<NodeStatus> {
    if !is_compressed {
        return Ok(serde_json::from_slice(body)?);
    }
    let mut text = Vec::new();
    GzDecoder::new(body).take(STATUS_BYTES_MAX as u64).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Writes the status for a node that asked with this query and these headers. Returns whether it is compressed with gzip.
///
/// # Errors
/// Never with a status of this program.
pub(super) fn write(
    mut status: NodeStatus,
    query: Option<&str>,
    headers: &HeaderMap,
) -> io::Result<(Vec<u8>, bool)> {
    if let WantedClients::Of(channels) = WantedClients::from_query(query) {
        let is_wanted =
            |it: &ChannelStatus| [it.uuid, it.target.uuid()].iter().any(|it| channels.contains(it));
        status.channels.iter_mut().filter(|it| !is_wanted(it)).for_each(ChannelStatus::count_clients);
    }
    let is_compressed = headers.get(ACCEPT_ENCODING).is_some_and(|it| it == "gzip");
    if !is_compressed {
        return Ok((serde_json::to_vec(&status)?, false));
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&serde_json::to_vec(&status)?)?;
    Ok((encoder.finish()?, true))
}

/// Returns the live channels of this node together with those of others.
pub(crate) fn together(
    mut all: Vec<ChannelOverview>,
    own_name: &Arc<str>,
    others: &[(Arc<str>, NodeStatus)],
) -> Vec<ChannelOverview> {
    for status in all.iter_mut().filter_map(|it| it.status.as_mut()) {
        status.set_node(own_name);
    }
    let mut places: HashMap<_, _> = all.iter().enumerate().map(|(at, it)| (it.target, at)).collect();
    for (name, of_node) in others {
        for mut status in of_node.channels.iter().cloned() {
            status.set_node(name);
            let place = *places.entry(status.target).or_insert(all.len());
            match all.get_mut(place) {
                Some(ChannelOverview { status: Some(own), .. }) => own.add(status),
                Some(own) => own.status = Some(status),
                None => all.push(ChannelOverview { target: status.target, status: Some(status) }),
            }
        }
    }
    let name = |it: &ChannelOverview| it.status.as_ref().map(|it| it.name.clone());
    all.sort_by_cached_key(|it| (name(it), it.target));
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A channel as another node sends it.
    fn channel(uuid: u128, n_clients: usize) -> ChannelStatus {
        let uuid = Uuid::from_u128(uuid);
        let client = |id: usize| {
            json!({
                "id": id, "address": "192.0.2.7", "agent": "VLC/3.0.20 LibVLC/3.0.20", "user": format!("user{id}"),
                "user_id": id, "output_profile": null, "format": "ts", "datagrams": null, "joined_at": 1_764_190_000_000_i64,
                "watching": { "secs": id, "nanos": 7 * id }, "bytes": 9_999_991 * id, "missed_bytes": 0, "misses": 0,
            })
        };
        let channel = json!({
            "target": { "Channel": uuid }, "uuid": uuid, "name": format!("Channel {uuid}"), "state": "playing",
            "node": null, "playing": 7, "stream": null, "profile": 2, "discovered_max_streams": null,
            "started_at": 0, "uptime": { "secs": 12, "nanos": 0 }, "since_first_play": null, "n_losses": 3,
            "n_failovers": 1, "last_failure": null, "bytes_in": 1_000,
            "input": { "segments_read": 40, "segments_skipped": 1, "lost_datagrams": 2 }, "ring_bytes": 0,
            "clients": (0..n_clients).map(client).collect::<Vec<_>>(), "n_waiting": 0, "segmenters": [],
        });
        serde_json::from_value(channel).unwrap()
    }

    fn status(channels: Vec<ChannelStatus>) -> NodeStatus {
        NodeStatus { channels, ..NodeStatus::default() }
    }

    /// Returns what a node gets that wants these clients, and the size of the answer.
    fn sent(status: NodeStatus, wanted: &WantedClients) -> (NodeStatus, usize) {
        let path = wanted.path();
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, http::HeaderValue::from_static("gzip"));
        let query = path.split_once('?').map(|it| it.1);
        let (body, is_compressed) = write(status, query, &headers).unwrap();
        assert!(is_compressed);
        (read(&body, true).unwrap(), body.len())
    }

    #[test]
    fn the_clients_of_other_channels_are_counted_only() {
        let node = || status(vec![channel(1, 2), channel(2, 3)]);
        let counts = |wanted: &WantedClients| -> Vec<_> {
            let (read, _) = sent(node(), wanted);
            read.channels.iter().map(|it| (it.clients.len(), it.n_clients())).collect()
        };
        assert_eq!(counts(&WantedClients::NONE), [(0, 2), (0, 3)]);
        assert_eq!(counts(&WantedClients::for_channel(Uuid::from_u128(2))), [(0, 2), (3, 3)]);
        assert_eq!(counts(&WantedClients::All), [(2, 2), (3, 3)]);
        let many = WantedClients::Of((0..=CHANNELS_NAMED_MAX as u128).map(Uuid::from_u128).collect());
        assert_eq!(counts(&many), [(2, 2), (3, 3)]);
        // A node of an earlier version asks without a query, and without compression.
        let (body, is_compressed) = write(node(), None, &HeaderMap::new()).unwrap();
        assert_eq!((is_compressed, read(&body, false).unwrap().channels), (false, node().channels));
    }

    #[test]
    fn answers_that_have_more_than_what_is_wanted_are_used() {
        let of = |it: u128| WantedClients::for_channel(Uuid::from_u128(it));
        assert!(
            WantedClients::All.covers(&of(1)) && of(1).covers(&of(1)) && of(1).covers(&WantedClients::NONE)
        );
        assert!(!of(1).covers(&of(2)) && !of(1).covers(&WantedClients::All));
    }

    #[test]
    fn ten_thousand_viewers_of_fifty_channels_cost_some_kilobytes_until_somebody_looks_at_them() {
        let node = || status((0..50).map(|it| channel(it, 200)).collect());
        let size = |wanted: &WantedClients| sent(node(), wanted).1;
        let (none, one, all) = (
            size(&WantedClients::NONE),
            size(&WantedClients::for_channel(Uuid::nil())),
            size(&WantedClients::All),
        );
        assert!(none < 4 << 10 && one < 12 << 10 && all < 512 << 10, "{none}, {one}, {all} bytes");
    }

    #[test]
    fn an_answer_that_would_fill_the_memory_is_refused() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let zeros = vec![b' '; 1 << 20];
        for _ in 0..=STATUS_BYTES_MAX >> 20 {
            encoder.write_all(&zeros).unwrap();
        }
        encoder.write_all(br#"{ "channels": [] }"#).unwrap();
        assert!(read(&encoder.finish().unwrap(), true).is_err());
        assert!(read(b"no status", true).is_err() && read(b"no status", false).is_err());
    }

    #[test]
    fn rows_of_a_later_version_are_left_out_and_the_others_are_shown() {
        let film = json!({
            "id": 4, "title": { "target": { "Movie": Uuid::nil() }, "name": "Film" },
            "viewer": { "user": null, "address": "192.0.2.7", "agent": "VLC" }, "name": null, "started_at": 0,
            "age": { "secs": 1, "nanos": 0 }, "profile": null, "programme_start": null, "n_requests": 1,
            "n_connections": 1, "bytes_read": 2, "bytes_sent": 3, "position": 3, "length": null, "has_slot": true,
            "reported": null, "later": true,
        });
        let answer =
            json!({ "channels": [{ "target": "later" }], "films": [film, 7], "totals": { "clients": 2 } });
        let status: NodeStatus = serde_json::from_value(answer).unwrap();
        let films: Vec<_> = status.films.iter().map(|it| it.id).collect();
        assert_eq!((status.channels.len(), films, status.totals.clients), (0, vec![4], 2));
    }
}
