//! The live channels of all nodes. A node asks the others when somebody looks, at most once a second: nothing is sent
//! otherwise.

use std::sync::Arc;
use std::time::Duration;

use actors::{AskError, ChannelOverview, ChannelStatus, MetricsSnapshot, VodSessionInfo};
use futures_util::future::join_all;
use http::Request;
use http_body_util::Full;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tracing::debug;

use super::peers::{OtherNode, OtherNodes};
use crate::app::App;
use crate::rest::past_sessions;

/// Path on the node port.
pub(super) const STATUS_PATH: &str = "/node/v1/status";
/// Maximum size of the status of a node: that of 100,000 viewers.
const STATUS_BYTES_MAX: usize = 64 << 20;
/// Longest wait for another node. One that does not answer is not shown.
const STATUS_WAIT: Duration = Duration::from_secs(2);
/// Answers of other nodes are used again for this time, so that several who look cost as much as one.
const FRESH: Duration = Duration::from_millis(900);

/// The live channels and players of a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct NodeStatus {
    /// Channels that did not answer in time are left out.
    channels: Vec<ChannelStatus>,
    #[serde(default)]
    totals: NodeTotals,
    /// Players of films and episodes, and of the past of channels.
    #[serde(default)]
    films: Vec<VodSessionInfo>,
    #[serde(default)]
    past: Vec<VodSessionInfo>,
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
        let asking = running.iter().map(async |node| {
            let asked = timeout(STATUS_WAIT, ask(nodes, node)).await;
            match asked.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
                Ok(status) => Some((Arc::from(node.name.as_str()), status)),
                Err(reason) => {
                    debug!(node = node.name, "a node does not say what it plays: {reason}");
                    None
                }
            }
        });
        let answers = Arc::new(join_all(asking).await.into_iter().flatten().collect());
        *last = Some((Instant::now(), Arc::clone(&answers)));
        answers
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
    Ok(overview_with_totals(app).await?.0)
}

/// Returns the same, and the counters of each node with its name, beginning with this one. Its name is empty without a cluster.
///
/// # Errors
/// This node does not answer in time.
pub(crate) async fn overview_with_totals(
    app: &App,
) -> Result<(Vec<ChannelOverview>, Vec<(Arc<str>, NodeTotals)>), AskError> {
    let own_totals = NodeTotals::from(&app.counts());
    let Some(node) = app.node.get() else {
        return Ok((app.switchboard.overview().await?, vec![(Arc::from(""), own_totals)]));
    };
    let (own, others) = tokio::join!(app.switchboard.overview(), node.statuses.of(&node.others));
    let name: Arc<str> = node.others.own_name().into();
    let mut totals = vec![(name.clone(), own_totals)];
    totals.extend(others.iter().map(|(name, status)| (name.clone(), status.totals)));
    Ok((together(own?, &name, &others), totals))
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
    for (name, of_node) in others {
        for mut status in of_node.channels.iter().cloned() {
            status.set_node(name);
            match all.iter_mut().find(|it| it.target == status.target) {
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
