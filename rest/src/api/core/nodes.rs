//! `/api/core/nodes/`: the nodes of the cluster, as this one sees them.

use actors::{ClusterView, ConfigurationView, NodeState, NodeView, now_ms};
use cluster::{NodeRole, written_version};
use domain::cluster::record::NodeId;
use domain::cluster::token::{self, TOKEN_MS};
use http::StatusCode;
use node::NodeError;
use node::drain::DrainError;
use node::join::{create_token, remove_node};
use node::versions::{self, Raised};
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;

use crate::choice::{Named, choice};
use crate::context::RestCall;

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
    /// Version of their data that the nodes write. It is raised after all of them were updated.
    #[field(example = "2")]
    written_version: Option<u64>,
    /// Later version that all nodes read, also those that do not run. `POST finalize/` raises the written version to it, and
    /// older nodes cannot take part any more. `null` if there is none.
    #[field(example = "3")]
    finalizable_version: Option<u64>,
    /// All nodes by name, also those that left or do not answer.
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
    /// Its state. A node is draining if it gives its channels to other nodes and opens no more.
    state: Named<ShownState>,
    /// When the streams of the viewers that it then still has end, if it is draining (`limits.drain_time`).
    drain_ends: Option<Time>,
    /// Whether it is the node that answers.
    is_own: bool,
    /// Its version of the gateway.
    #[field(example = "0.2.0")]
    version: String,
    /// Oldest version of the nodes' data that it reads.
    #[field(example = "1")]
    oldest_version: u64,
    /// Newest version of the nodes' data that it reads.
    #[field(example = "2")]
    newest_version: u64,
    /// Whether it reads the version that the nodes write. Otherwise it cannot be a member until it is updated.
    fits: bool,
    /// Addresses under which other nodes reach it.
    #[field(example = "[\"10.0.0.1\"]")]
    addresses: Vec<String>,
    /// Grows each time the node becomes a member again.
    #[field(example = "17")]
    incarnation: Option<u64>,
    /// When the answering node last saw a sign of life of it.
    last_seen: Option<Time>,
    /// By how many milliseconds its clock is ahead of that of the answering node; negative if it is behind. `null` if it is
    /// not known.
    #[field(example = "-3")]
    clock_offset_ms: Option<i64>,
    /// Number of channels that it plays.
    #[field(example = "3")]
    channels: u64,
    /// Number of viewers that it serves.
    #[field(example = "12")]
    clients: u64,
    /// Number of connections to providers that it holds.
    #[field(example = "2")]
    leases: u64,
    /// Load of its processors in the last minute, in percent.
    #[field(example = "40")]
    cpu_percent: Option<u64>,
    /// Whether it writes the configuration that the nodes share.
    is_writer: bool,
    /// Number of commits of that configuration that it did not have when it last gave a sign of life; `null` if it shares none.
    #[field(example = "0")]
    commits_behind: Option<u64>,
}

/// How the version that the nodes write is raised.
#[derive(Clone, Debug, Body)]
pub(crate) struct FinalizeOrder {
    /// Whether to leave out nodes that do not run.
    force: Option<bool>,
}

/// The version of their data that the nodes write.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct FinalizedView {
    /// Version before the operation.
    #[field(example = "1")]
    previous_version: u64,
    /// Version from now on.
    #[field(example = "2")]
    written_version: u64,
}

choice!(NodeRole { Full = "full", Edge = "edge" });

/// A machine that is to join the cluster.
#[derive(Clone, Debug, Body)]
pub(crate) struct NewNode {
    /// Its task; `full` by default.
    role: Option<Named<NodeRole>>,
}

/// The means by which a machine joins the cluster.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct NodeTokenView {
    /// For `headwater serve --join`, on one machine. It is not shown again.
    token: String,
    /// Its task.
    role: Named<NodeRole>,
    /// When the token expires.
    expires_at: Time,
}

/// The reason why plugins do not decide who belongs to the cluster.
const NOT_FOR_PLUGINS: &str = "Plugins do not add or remove nodes.";

/// The state of a node, as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShownState {
    Joining,
    Alive,
    Draining,
    Expired,
    Left,
    Unknown,
}

choice!(ShownState {
    Joining = "joining",
    Alive = "alive",
    Draining = "draining",
    Expired = "expired",
    Left = "left",
    Unknown = "unknown",
});

pub(super) fn routes() -> Vec<Route> {
    let path = "/api/core/nodes/{name}/drain/";
    vec![
        Route::get("/api/core/nodes/", ADMIN, "Lists the nodes of the cluster.", list),
        Route::post(
            path,
            ADMIN,
            "Starts the drain of a node: its channels and jobs move to other nodes.",
            drain,
        ),
        Route::delete(path, ADMIN, "Ends the drain of a node, which may open channels again.", end_drain),
        Route::post(
            "/api/core/nodes/tokens/",
            ADMIN,
            "Creates a token with which one machine joins the cluster.",
            create,
        )
        .refuses(StatusCode::NOT_FOUND, "This gateway is not a node of a cluster.")
        .not_for_plugins(NOT_FOR_PLUGINS),
        Route::delete(
            "/api/core/nodes/{name}/",
            ADMIN,
            "Removes a node from the cluster: other nodes refuse its certificate, and it stops.",
            remove,
        )
        .refuses(StatusCode::CONFLICT, "The node writes the configuration. Drain it first.")
        .not_for_plugins(NOT_FOR_PLUGINS),
        Route::post(
            "/api/core/nodes/finalize/",
            ADMIN,
            "Updates the version of their data that the nodes write, to the newest that all of them read.",
            finalize,
        )
        .refuses(StatusCode::NOT_FOUND, "The gateway is not a node of a cluster.")
        .refuses(StatusCode::CONFLICT, "Nodes are too old. The detail names them."),
    ]
}

/// Answered by the node that writes, as all changes are.
async fn create(call: Call, body: NewNode) -> Result<Created<NodeTokenView>, Refusal> {
    let shown = body.role.map_or(NodeRole::Full, |it| it.0);
    let role = match shown {
        NodeRole::Full => token::NodeRole::Full,
        NodeRole::Edge => token::NodeRole::Edge,
    };
    let (store, now) = (call.rest().models.store.clone(), now_ms());
    let token = run_blocking("create a token for a node", move || create_token(&store, role, now)).await?;
    let token = token.map_err(refusal)?;
    let (role, expires_at) = (Named(shown), Time(now + TOKEN_MS));
    Ok(Created(NodeTokenView { token: token.to_text(), role, expires_at }))
}

/// Answered by the node that writes, as all changes are.
async fn remove(call: Call) -> Result<NoContent, Refusal> {
    let name = call.text("name")?;
    let (Some(cluster), Some(node)) = (call.rest().nodes.cluster.get(), call.rest().nodes.node()) else {
        return Err(refusal(NodeError::NoCluster));
    };
    let view = cluster.view();
    let found = view.nodes.iter().find(|it| it.info.name == name).and_then(|it| it.info.certificate);
    // One without a record has no name.
    let Some(number) = found.or(versions::number_in(name)) else {
        return Err(Refusal::not_found("The cluster has no node with this name that has joined."));
    };
    let (trust, store) = (node.trust.clone(), call.rest().models.store.clone());
    let removed =
        run_blocking("remove a node", move || remove_node(&store, trust.file(), NodeId(number), now_ms()));
    removed.await?.map(|()| NoContent).map_err(refusal)
}

fn refusal(error: NodeError) -> Refusal {
    match error {
        NodeError::NoCluster => Refusal::not_found("This gateway is not a node of a cluster."),
        NodeError::UnknownNode(_) => {
            Refusal::not_found("The cluster has no node with this name that has joined.")
        }
        NodeError::RemovesWriter => Refusal::status(StatusCode::CONFLICT).with_detail(error.to_string()),
        NodeError::Store(error) => Refusal::from(error),
        error => Refusal::unavailable(error.to_string()),
    }
}

async fn finalize(call: Call, order: FinalizeOrder) -> Result<FinalizedView, Refusal> {
    let Some(cluster) = call.rest().nodes.cluster.get().filter(|_| call.rest().nodes.node().is_some()) else {
        return Err(Refusal::not_found("This gateway is not a node of a cluster."));
    };
    let members = versions::members(&cluster.view());
    let raising = call.write(move |write| {
        versions::raise(write, members, order.force == Some(true)).map_err(|error| match error {
            NodeError::Raise(it) => Refusal::status(StatusCode::CONFLICT).with_detail(it.to_string()),
            NodeError::Store(it) => it.into(),
            other => Refusal::not_found(other.to_string()),
        })
    });
    let Raised { from, to } = raising.await?;
    Ok(FinalizedView { previous_version: from.into(), written_version: to.into() })
}

async fn drain(call: Call) -> Result<NoContent, Refusal> {
    set_drain(call, true).await
}

async fn end_drain(call: Call) -> Result<NoContent, Refusal> {
    set_drain(call, false).await
}

async fn set_drain(call: Call, is_draining: bool) -> Result<NoContent, Refusal> {
    let (Some(cluster), Some(node)) = (call.rest().nodes.cluster.get(), call.rest().nodes.node()) else {
        return Err(Refusal::not_found("This gateway is not a node of a cluster."));
    };
    let set = node.set_drain(&cluster.view(), call.text("name")?, is_draining).await;
    set.map(|()| NoContent).map_err(|error| match error {
        DrainError::Unknown => Refusal::not_found(error.to_string()),
        DrainError::NotRunning => Refusal::unavailable(error.to_string()),
        DrainError::Unreachable => Refusal::unavailable(error.to_string()).retry_soon(),
    })
}

fn shown(node: &NodeView) -> ShownState {
    match node.state {
        NodeState::Joining => ShownState::Joining,
        NodeState::Alive if node.info.load.is_draining => ShownState::Draining,
        NodeState::Alive => ShownState::Alive,
        NodeState::Expired => ShownState::Expired,
        NodeState::Left => ShownState::Left,
        NodeState::Unknown => ShownState::Unknown,
    }
}

async fn list(call: Call) -> Result<ClusterNodesView, Refusal> {
    let Some(cluster) = call.rest().nodes.cluster.get() else { return Ok(ClusterNodesView::default()) };
    let mut view = ClusterView::clone(&cluster.view());
    let configuration = call.rest().nodes.node().map(|it| it.configuration.view()).unwrap_or_default();
    let written = written_version(view.nodes.iter().map(|it| &it.info));
    view.nodes.retain(|it| !call.rest().nodes.node().is_some_and(|own| own.has_removed(it)));
    let finalizable =
        call.rest().nodes.node().and_then(|it| versions::finalizable(&view, &it.trust.valid_nodes()));
    let nodes: Vec<_> = view.nodes.iter().map(|it| node(it, &configuration, written)).collect();
    Ok(ClusterNodesView {
        is_enabled: true,
        is_connected: view.disconnected.is_none(),
        reason: view.disconnected,
        problem: view.problem,
        written_version: written.map(u64::from),
        finalizable_version: finalizable.map(u64::from),
        count: nodes.len(),
        nodes,
    })
}

fn node(node: &NodeView, configuration: &ConfigurationView, written: Option<u32>) -> ClusterNodeView {
    let load = node.info.load;
    let writer = configuration.writer.map(|(id, incarnation)| (id, Some(incarnation)));
    ClusterNodeView {
        id: u64::from(node.id.0),
        name: node.info.name.clone(),
        role: Named(node.info.role),
        state: Named(shown(node)),
        drain_ends: load.drain_ends.filter(|_| shown(node) == ShownState::Draining).map(Time),
        is_own: node.is_own,
        version: node.info.version.clone(),
        oldest_version: node.info.versions.oldest.into(),
        newest_version: node.info.versions.newest.into(),
        fits: written.is_none_or(|it| node.info.versions.contains(it)),
        addresses: node.info.addresses.clone(),
        incarnation: node.incarnation.map(|it| it.0),
        last_seen: node.last_seen.map(Time),
        clock_offset_ms: node.clock_offset_ms,
        channels: load.channels,
        clients: load.clients,
        leases: load.leases,
        cpu_percent: load.cpu_percent.map(u64::from),
        is_writer: writer == Some((node.id, node.incarnation)),
        commits_behind: load.configuration.map(|it| configuration.last.saturating_sub(it)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::Rest;

    #[tokio::test]
    async fn a_gateway_on_its_own_has_no_nodes() {
        let rest = Rest::start().await;
        let path = "/api/core/nodes/";
        assert_eq!(rest.standard("GET", path, Value::Null).await.status, 403);
        let answer = rest.admin("GET", path, Value::Null).await.body;
        assert_eq!((&answer["is_enabled"], &answer["nodes"]), (&json!(false), &json!([])));
        assert_eq!(rest.admin("POST", "/api/core/nodes/finalize/", json!({})).await.status, 404);
    }
}
