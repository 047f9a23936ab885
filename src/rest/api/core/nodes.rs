//! `/api/core/nodes/`: the nodes of the cluster, as this one sees them.

use actors::{NodeState, NodeView};
use cluster::NodeRole;
use resource_derive::View;
use serde::Serialize;

use crate::http::reply::Refusal;
use crate::rest::frame::access::ADMIN;
use crate::rest::frame::call::Call;
use crate::rest::frame::route::Route;
use crate::rest::frame::value::{Named, Time, choice};

/// The cluster, as the answering node sees it.
#[derive(Clone, Debug, Default, Serialize, View)]
pub(crate) struct ClusterNodesView {
    /// Whether this gateway takes part in a cluster. If not, there are no nodes.
    is_enabled: bool,
    /// Whether the NATS servers of the cluster can be reached.
    is_connected: bool,
    /// Why they cannot be reached.
    reason: Option<String>,
    /// Why this node cannot be a member, and what to do.
    problem: Option<String>,
    /// All nodes by name, also those that left or no longer answer.
    nodes: Vec<ClusterNodeView>,
    /// Number of nodes in the answer.
    #[field(example = "2")]
    count: usize,
}

/// A node of the cluster.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ClusterNodeView {
    /// Number of the node, which follows from its name.
    #[field(example = "2850521")]
    id: u64,
    /// Its name.
    #[field(example = "attic")]
    name: String,
    /// Its task.
    role: Named<NodeRole>,
    /// Its state.
    state: Named<NodeState>,
    /// Whether it is the node that answers.
    is_own: bool,
    /// Its version of the gateway.
    #[field(example = "0.1.0")]
    version: String,
    /// Addresses under which other nodes reach it.
    #[field(example = "[\"10.0.0.1\"]")]
    addresses: Vec<String>,
    /// Grows each time the node becomes a member again.
    #[field(example = "17")]
    incarnation: Option<u64>,
    /// When the answering node last saw a sign of life of it.
    last_seen: Option<Time>,
    /// Number of channels that it plays.
    #[field(example = "3")]
    channels: u64,
    /// Number of viewers that it serves.
    #[field(example = "12")]
    clients: u64,
    /// Load of its processors in the last minute, in percent.
    #[field(example = "40")]
    cpu_percent: Option<u64>,
}

choice!(NodeRole { Full = "full", Edge = "edge" });
choice!(NodeState {
    Joining = "joining",
    Alive = "alive",
    Expired = "expired",
    Left = "left",
    Unknown = "unknown",
});

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/api/core/nodes/", ADMIN, "Lists the nodes of the cluster.", list)]
}

async fn list(call: Call) -> Result<ClusterNodesView, Refusal> {
    let Some(cluster) = call.app.cluster.get() else { return Ok(ClusterNodesView::default()) };
    let view = cluster.view();
    let nodes: Vec<_> = view.nodes.iter().map(node).collect();
    Ok(ClusterNodesView {
        is_enabled: true,
        is_connected: view.disconnected.is_none(),
        reason: view.disconnected.clone(),
        problem: view.problem.clone(),
        count: nodes.len(),
        nodes,
    })
}

fn node(node: &NodeView) -> ClusterNodeView {
    let load = node.info.load;
    ClusterNodeView {
        id: u64::from(node.id.0),
        name: node.info.name.clone(),
        role: Named(node.info.role),
        state: Named(node.state),
        is_own: node.is_own,
        version: node.info.version.clone(),
        addresses: node.info.addresses.clone(),
        incarnation: node.incarnation.map(|it| it.0),
        last_seen: node.last_seen.map(Time),
        channels: load.channels,
        clients: load.clients,
        cpu_percent: load.cpu_percent.map(u64::from),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::rest::frame::testing::Rest;

    #[tokio::test]
    async fn a_gateway_on_its_own_has_no_nodes() {
        let rest = Rest::start().await;
        let path = "/api/core/nodes/";
        assert_eq!(rest.standard("GET", path, Value::Null).await.status, 403);
        let answer = rest.admin("GET", path, Value::Null).await.body;
        assert_eq!((&answer["is_enabled"], &answer["nodes"]), (&json!(false), &json!([])));
    }
}
