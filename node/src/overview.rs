//! What this node plays, and what all nodes play.

use std::collections::BTreeMap;
use std::sync::Arc;

use actors::{AskError, ChannelOverview, Target, VodSessionInfo};
use domain::ids::RecordingId;
use serde_json::Value;

use crate::context::NodeContext;
use crate::local_gateway::LocalGateway;
use crate::status::{NodeStatus, NodeTotals, WantedClients, together};

/// Returns what this node plays.
pub(super) async fn own_status(context: &NodeContext, gateway: &dyn LocalGateway) -> NodeStatus {
    let overview = context.switchboard.overview().await.unwrap_or_default();
    let channels = overview.into_iter().filter_map(|it| it.status).collect();
    let (totals, films, past) =
        (NodeTotals::from(&context.counts()), context.vod.sessions(), own_past(context));
    let (refreshes, recordings) = (gateway.refreshes(), context.recorder.running());
    NodeStatus { channels, totals, films, past, refreshes, recordings }
}

/// Returns the progress of refreshes on other nodes, as sockets show it.
pub async fn refreshes(context: &NodeContext) -> Vec<Value> {
    let Some(node) = context.node() else { return Vec::new() };
    let others = node.statuses.answers(&node.others, &WantedClients::NONE).await;
    others.iter().flat_map(|(_, status)| status.refreshes.iter().cloned()).collect()
}

/// Returns the recordings that run, in a cluster those of all nodes, with the sizes of their files. One that two nodes record
/// for a moment has the larger size.
pub async fn recordings(context: &NodeContext) -> BTreeMap<RecordingId, u64> {
    let mut all: BTreeMap<_, _> = context.recorder.running().into_iter().collect();
    let Some(node) = context.node() else { return all };
    for (_, status) in &*node.statuses.answers(&node.others, &WantedClients::NONE).await {
        for (id, bytes) in &status.recordings {
            let known = all.entry(*id).or_default();
            *known = (*known).max(*bytes);
        }
    }
    all
}

/// Returns all live channels of this node, and in a cluster those of all nodes, sorted by name. Of other nodes, it contains
/// the clients that are wanted, and the number of the others.
///
/// # Errors
/// This node does not answer in time.
pub async fn overview(
    context: &NodeContext,
    clients: &WantedClients,
) -> Result<Vec<ChannelOverview>, AskError> {
    let Some(node) = context.node() else { return context.switchboard.overview().await };
    let (own, others) =
        tokio::join!(context.switchboard.overview(), node.statuses.answers(&node.others, clients));
    Ok(together(own?, &node.others.own_name().into(), &others))
}

/// Returns the counters of each node with its name, beginning with this one. Its name is empty without a cluster.
pub async fn totals(context: &NodeContext) -> Vec<(Arc<str>, NodeTotals)> {
    let own = NodeTotals::from(&context.counts());
    let Some(node) = context.node() else { return vec![(Arc::from(""), own)] };
    let others = node.statuses.answers(&node.others, &WantedClients::NONE).await;
    let others = others.iter().map(|(name, status)| (name.clone(), status.totals));
    [(node.others.own_name().into(), own)].into_iter().chain(others).collect()
}

/// Returns the players of films and episodes, in a cluster those of all nodes.
pub async fn films(context: &NodeContext) -> Vec<VodSessionInfo> {
    sessions(context, context.vod.sessions(), |it| &it.films).await
}

/// Returns the players of the past of channels, in a cluster those of all nodes.
pub async fn past(context: &NodeContext) -> Vec<VodSessionInfo> {
    sessions(context, own_past(context), |it| &it.past).await
}

/// Returns the players of the past of channels on this node.
pub fn own_past(context: &NodeContext) -> Vec<VodSessionInfo> {
    let mut sessions = context.vod.all_sessions();
    sessions.retain(|it| matches!(it.title.target, Target::Archive(_)) && (it.n_requests > 0 || it.has_slot));
    sessions.extend(context.time_shift.sessions());
    sessions
}

async fn sessions(
    context: &NodeContext,
    mut all: Vec<VodSessionInfo>,
    of: fn(&NodeStatus) -> &Vec<VodSessionInfo>,
) -> Vec<VodSessionInfo> {
    let Some(node) = context.node() else { return all };
    let name: Arc<str> = node.others.own_name().into();
    all.iter_mut().for_each(|it| it.node = Some(name.clone()));
    for (name, status) in &*node.statuses.answers(&node.others, &WantedClients::NONE).await {
        let of_node = of(status).iter().cloned();
        all.extend(of_node.map(|it| VodSessionInfo { node: Some(name.clone()), ..it }));
    }
    all
}
