//! Writes of clients of this node, which the node that writes the configuration answers.
//!
//! A request to the API that may write is forwarded before anything of it is looked at: the writer has the same users and
//! authenticates it. It is answered once the store of this node has what was written, so that the client sees its change
//! here at once.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use actors::{Cluster, ClusterView, Configuration, NodeState};
use domain::cluster::record::{Incarnation, NodeId};
use domain::cluster::token::NodeRole;
use domain::origin::Origin;
use futures_util::StreamExt;
use http::header::{
    CONNECTION, EXPECT, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, Method, Request, Response, Version};
use http_body_util::BodyDataStream;
use hyper::body::Incoming;
use serde::{Deserialize, Serialize};
use server::accept::LocalAddr;
use server::reply::Refusal;
use storage::Store;
use storage::log::LogRole;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::warn;
use warp::Reply as _;
use warp::reply::Response as Reply;

use super::client::NodeAddress;
use super::edge;
use super::time_limits::{FOLLOW_TIMEOUT, FORWARD_TIMEOUT, WRITER_WAIT};
use super::trust::NodeTrust;

/// Header with which a node describes the client of a forwarded request.
pub(super) const FORWARD_HEADER: HeaderName = HeaderName::from_static("headwater-forwarded");
/// Header of the answer: the last commit of the node that has answered.
pub(super) const POSITION_HEADER: HeaderName = HeaderName::from_static("headwater-position");

/// Below these paths of the API, requests concern this node alone: the files of its back-ups, and its sessions.
const OWN_PATHS: [&str; 2] = ["/api/backups/", "/api/catchup/sessions/"];
/// The exception: a setting.
const SHARED_PATH: &str = "/api/backups/schedule/";

/// Returns whether a request with this path concerns the drain of a node, which this one passes on itself.
fn is_drain(path: &str) -> bool {
    path.starts_with("/api/core/nodes/") && path.ends_with("/drain/")
}
/// Below these paths, what is read is at the node that writes as well: it delivers, runs plugins, and refreshes.
const WRITER_PATHS: [&str; 3] = ["/api/connect/", "/api/plugins/", "/api/m3u/refresh/"];

/// The client of a forwarded request.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Forwarded {
    pub(super) origin: Origin,
    /// The address to which it has connected.
    pub(super) local: Option<SocketAddr>,
}

impl Forwarded {
    pub(super) fn header(&self) -> Option<HeaderValue> {
        HeaderValue::try_from(serde_json::to_string(self).ok()?).ok()
    }
}

/// Makes the headers of a request of a client those of a forwarded one.
pub(super) fn describe(headers: &mut HeaderMap, context: HeaderValue) {
    let names: Vec<_> = headers.keys().cloned().collect();
    for name in names.iter().filter(|it| it.as_str().starts_with("headwater-")) {
        headers.remove(name);
    }
    headers.remove(EXPECT);
    remove_hop_headers(headers);
    headers.insert(FORWARD_HEADER, context);
}

/// Returns a number for the connection of a forwarded request, which no connection of this node has.
pub(super) fn connection_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 63);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Forwards writes.
pub struct Forwarder {
    store: Store,
    trust: Arc<NodeTrust>,
    configuration: Arc<Configuration>,
    members: watch::Receiver<Arc<ClusterView>>,
}

impl fmt::Debug for Forwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Forwarder(…)")
    }
}

/// Where a request is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriterPlace {
    Here,
    There(NodeAddress),
    Nowhere,
}

impl Forwarder {
    pub(super) fn new(
        store: Store,
        trust: Arc<NodeTrust>,
        configuration: Arc<Configuration>,
        cluster: &Cluster,
    ) -> Self {
        Self { store, trust, configuration, members: cluster.changes() }
    }

    pub(super) fn trust(&self) -> &NodeTrust {
        &self.trust
    }

    /// Forwards a request that may write, if another node writes. Returns the request if it is to be answered here.
    pub async fn forward(&self, request: Request<Incoming>) -> Result<Reply, Request<Incoming>> {
        if self.trust.role() == NodeRole::Edge
            && let Some(text) = edge::refusal(request.uri().path())
        {
            return Ok(Refusal::unavailable(text).into_response());
        }
        if self.is_own(request.method(), request.uri().path()) {
            return Err(request);
        }
        match self.target().await {
            WriterPlace::Here => Err(request),
            WriterPlace::There(address) => Ok(self.send(&address, request).await),
            // This node knows the records; what is delivered and runs, nobody knows now.
            WriterPlace::Nowhere if request.method().is_safe() => Err(request),
            WriterPlace::Nowhere => {
                let text =
                    "No node of the cluster writes the configuration at present. Try again in a few seconds.";
                Ok(Refusal::unavailable(text).retry_soon().into_response())
            }
        }
    }

    fn is_own(&self, method: &Method, path: &str) -> bool {
        let is_read = method.is_safe() && WRITER_PATHS.iter().any(|it| path.starts_with(it));
        let is_for_writer = is_read || !method.is_safe() && path.starts_with("/api/");
        let is_of_node = is_drain(path)
            || OWN_PATHS.iter().any(|it| path.starts_with(it)) && !path.starts_with(SHARED_PATH);
        // A store that is read-only says why.
        let follows = || {
            let status = self.store.log_status();
            let status = status.borrow();
            status.as_ref().is_some_and(|it| it.role == LogRole::Follower)
        };
        !is_for_writer || is_of_node || !follows()
    }

    /// Waits for a node that writes, during a take-over for some time.
    pub(super) async fn target(&self) -> WriterPlace {
        let until = Instant::now() + WRITER_WAIT;
        let (mut status, mut members) = (self.store.log_status(), self.members.clone());
        let mut log = self.configuration.changes();
        loop {
            let is_follower =
                status.borrow_and_update().as_ref().is_some_and(|it| it.role == LogRole::Follower);
            if !is_follower {
                return WriterPlace::Here;
            }
            let writer = log.borrow_and_update().writer;
            let view = members.borrow_and_update().clone();
            if let Some(address) = writer.and_then(|it| address_of(&view, it)) {
                return WriterPlace::There(address);
            }
            let changed = async {
                tokio::select! {
                    changed = status.changed() => changed,
                    changed = log.changed() => changed,
                    changed = members.changed() => changed,
                }
            };
            match timeout_at(until, changed).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return WriterPlace::Nowhere,
            }
        }
    }

    async fn send(&self, address: &NodeAddress, mut request: Request<Incoming>) -> Reply {
        let unavailable = |text: &str| Refusal::unavailable(text).retry_soon().into_response();
        let extensions = request.extensions();
        let local = extensions.get::<LocalAddr>().map(|it| it.0);
        let context = extensions.get::<Origin>().map(|origin| Forwarded { origin: *origin, local });
        let context = context.and_then(|it| it.header());
        let path = request.uri().path_and_query().map_or("/", |it| it.as_str());
        let (Some(context), Ok(uri)) = (context, format!("/node/v1{path}").parse()) else {
            return Refusal::bug().into_response();
        };
        *request.uri_mut() = uri;
        *request.version_mut() = Version::HTTP_11;
        describe(request.headers_mut(), context);
        *request.extensions_mut() = http::Extensions::new();
        let connected = match self.trust.client() {
            Ok(config) => address.connect(config).await.map_err(|it| it.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let mut connection = match connected {
            Ok(it) => it,
            Err(error) => {
                warn!("failed to reach the node that writes the configuration at {address}: {error}");
                let text =
                    "The node that writes the configuration cannot be reached. Try again in a few seconds.";
                return unavailable(text);
            }
        };
        let response = match timeout(FORWARD_TIMEOUT, connection.sender.send_request(request)).await {
            Ok(Ok(it)) => it,
            Ok(Err(_)) | Err(_) => {
                let text = "The node that writes the configuration did not answer. The change may or may not be kept.";
                return unavailable(text);
            }
        };
        self.follow(response.headers()).await;
        into_reply(response, connection.task)
    }

    /// Waits until the store has the commit that the headers of another node name.
    pub(super) async fn follow(&self, headers: &HeaderMap) {
        let position = headers.get(POSITION_HEADER).and_then(|it| it.to_str().ok()?.parse().ok());
        let Some(position) = position else { return };
        let position: u64 = position;
        let mut status = self.store.log_status();
        let has = status.wait_for(|it| it.as_ref().is_none_or(|it| it.position.sequence >= position));
        if timeout(FOLLOW_TIMEOUT, has).await.is_err() {
            warn!(position, "this node does not have yet what another one has written");
        }
    }
}

fn address_of(view: &ClusterView, (id, incarnation): (NodeId, Incarnation)) -> Option<NodeAddress> {
    let is_it = |it: &&actors::NodeView| {
        it.id == id && !it.is_own && it.state == NodeState::Alive && it.incarnation == Some(incarnation)
    };
    NodeAddress::from_info(&view.nodes.iter().find(is_it)?.info)
}

/// Removes the headers that concern one connection.
pub(super) fn remove_hop_headers(headers: &mut HeaderMap) {
    for name in [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION]
    {
        headers.remove(name);
    }
    headers.remove("keep-alive");
}

/// Returns the answer for the client. The connection ends with its body.
fn into_reply(response: Response<Incoming>, connection: tokio_util::task::AbortOnDropHandle<()>) -> Reply {
    let (mut parts, body) = response.into_parts();
    remove_hop_headers(&mut parts.headers);
    parts.headers.remove(POSITION_HEADER);
    let body = BodyDataStream::new(body).map(move |part| {
        let _open = &connection;
        part
    });
    let mut reply = warp::reply::stream(body).into_response();
    *reply.status_mut() = parts.status;
    *reply.headers_mut() = parts.headers;
    reply
}
