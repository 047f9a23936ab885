//! The live channels of all nodes. A node asks the others when somebody looks, at most once a second: nothing is sent
//! otherwise.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use actors::{AskError, ChannelOverview, ChannelStatus, MetricsSnapshot, VodSessionInfo};
use domain::cluster::record::NodeId;
use futures_util::future::join_all;
use http::Request;
use http_body_util::Full;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tracing::warn;

use super::peers::{OtherNode, OtherNodes};
use crate::app::App;
use crate::rest::past_sessions;

/// Path on the node port.
pub(super) const STATUS_PATH: &str = "/node/v1/status";
/// Maximum size of the status of a node: that of 100,000 viewers.
const STATUS_BYTES_MAX: usize = 64 << 20;
/// Longest wait for another node. One that does not answer is not shown.
const STATUS_WAIT: Duration = Duration::from_secs(2);
/// A node that did not answer is not asked for this time, so that nobody waits for it again and again.
const SILENT_TIME: Duration = Duration::from_secs(10);
/// Answers of other nodes are used again for this time, so that several who look cost as much as one.
const FRESH: Duration = Duration::from_millis(900);

/// The live channels and players of a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct NodeStatus {
    /// Channels that did not answer in time are left out.
    #[serde(deserialize_with = "known")]
    channels: Vec<ChannelStatus>,
    #[serde(default)]
    totals: NodeTotals,
    /// Players of films and episodes, and of the past of channels.
    #[serde(default, deserialize_with = "known")]
    films: Vec<VodSessionInfo>,
    #[serde(default, deserialize_with = "known")]
    past: Vec<VodSessionInfo>,
}

/// Reads the rows that this version knows. A later version may have others.
fn known<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let rows = Vec::<Value>::deserialize(deserializer)?;
    let n_rows = rows.len();
    let known: Vec<T> = rows.into_iter().filter_map(|it| serde_json::from_value(it).ok()).collect();
    if known.len() < n_rows {
        warn!(rows = n_rows - known.len(), "a node of another version plays what this one does not know");
    }
    Ok(known)
}

/// The counters of a node in statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NodeTotals {
    pub(crate) clients: usize,
    /// Provider slots in use.
    pub(crate) leases: usize,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

impl From<&MetricsSnapshot> for NodeTotals {
    fn from(it: &MetricsSnapshot) -> Self {
        Self { clients: it.clients, leases: it.leases, bytes_in: it.bytes_in, bytes_out: it.bytes_out }
    }
}

/// The answers of the other nodes, with their names.
type Answers = Arc<Vec<(Arc<str>, NodeStatus)>>;

/// The last answers of the other nodes.
#[derive(Debug, Default)]
pub(crate) struct NodeStatuses {
    /// Held while the nodes are asked, so that everybody else waits for these answers.
    last: Mutex<Option<(Instant, Answers)>>,
    /// Until when nodes that did not answer are not asked again. Bounded by the nodes.
    silent: parking_lot::Mutex<HashMap<NodeId, Instant>>,
}

impl NodeStatuses {
    /// Returns what the other nodes play, as of now or of the last moment. A node that does not answer is left out.
    async fn of(&self, nodes: &OtherNodes) -> Answers {
        let mut last = self.last.lock().await;
        if let Some((at, answers)) = &*last
            && at.elapsed() < FRESH
        {
            return answers.clone();
        }
        let running = nodes.running();
        let asked = running.iter().filter(|it| !self.is_silent(it.id));
        let asking = asked.map(async |node| {
            let asked = timeout(STATUS_WAIT, ask(nodes, node)).await;
            match asked.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
                Ok(status) => Some((Arc::from(node.name.as_str()), status)),
                Err(reason) => {
                    warn!(node = node.name, "a node does not say what it plays: {reason}");
                    self.silent.lock().insert(node.id, Instant::now() + SILENT_TIME);
                    None
                }
            }
        });
        let answers = Arc::new(join_all(asking).await.into_iter().flatten().collect());
        *last = Some((Instant::now(), Arc::clone(&answers)));
        answers
    }

    fn is_silent(&self, node: NodeId) -> bool {
        let mut silent = self.silent.lock();
        silent.retain(|_, until| *until > Instant::now());
        silent.contains_key(&node)
    }
}

async fn ask(nodes: &OtherNodes, node: &OtherNode) -> Result<NodeStatus, String> {
    let request = Request::get(STATUS_PATH).body(Full::default()).map_err(|it| it.to_string())?;
    let body = nodes.exchange(node, request, STATUS_BYTES_MAX).await?;
    serde_json::from_slice(&body).map_err(|it| it.to_string())
}

/// Returns what this node plays.
pub(crate) async fn own_status(app: &App) -> NodeStatus {
    let overview = app.switchboard.overview().await.unwrap_or_default();
    let channels = overview.into_iter().filter_map(|it| it.status).collect();
    let (totals, films, past) = (NodeTotals::from(&app.counts()), app.vod.sessions(), past_sessions(app));
    NodeStatus { channels, totals, films, past }
}

/// Returns all live channels of this node, and in a cluster those of all nodes, sorted by name.
///
/// # Errors
/// This node does not answer in time.
pub(crate) async fn overview(app: &App) -> Result<Vec<ChannelOverview>, AskError> {
    let Some(node) = app.node.get() else { return app.switchboard.overview().await };
    let (own, others) = tokio::join!(app.switchboard.overview(), node.statuses.of(&node.others));
    Ok(together(own?, &node.others.own_name().into(), &others))
}

/// Returns the counters of each node with its name, beginning with this one. Its name is empty without a cluster.
pub(crate) async fn totals(app: &App) -> Vec<(Arc<str>, NodeTotals)> {
    let own = NodeTotals::from(&app.counts());
    let Some(node) = app.node.get() else { return vec![(Arc::from(""), own)] };
    let others = node.statuses.of(&node.others).await;
    let others = others.iter().map(|(name, status)| (name.clone(), status.totals));
    [(node.others.own_name().into(), own)].into_iter().chain(others).collect()
}

/// Returns the players of films and episodes, in a cluster those of all nodes.
pub(crate) async fn films(app: &App) -> Vec<VodSessionInfo> {
    sessions(app, app.vod.sessions(), |it| &it.films).await
}

/// Returns the players of the past of channels, in a cluster those of all nodes.
pub(crate) async fn past(app: &App) -> Vec<VodSessionInfo> {
    sessions(app, past_sessions(app), |it| &it.past).await
}

async fn sessions(
    app: &App,
    mut all: Vec<VodSessionInfo>,
    of: fn(&NodeStatus) -> &Vec<VodSessionInfo>,
) -> Vec<VodSessionInfo> {
    let Some(node) = app.node.get() else { return all };
    let name: Arc<str> = node.others.own_name().into();
    all.iter_mut().for_each(|it| it.node = Some(name.clone()));
    for (name, status) in &*node.statuses.of(&node.others).await {
        let of_node = of(status).iter().cloned();
        all.extend(of_node.map(|it| VodSessionInfo { node: Some(name.clone()), ..it }));
    }
    all
}

/// Returns the live channels of this node together with those of others.
fn together(
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

    #[test]
    fn rows_of_a_later_version_are_left_out_and_the_others_are_shown() {
        let film = json!({
            "id": 4, "title": { "target": { "Movie": uuid::Uuid::nil() }, "name": "Film" },
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
