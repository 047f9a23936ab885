//! The routes of the node port: what other nodes of the cluster and machines that join can request.
//!
//! Each node authenticates with its certificate; [`NODE_ROUTES`] is the whole table. A machine that joins has no certificate
//! yet and can only send [`JOIN_PATH`].

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use actors::{
    AccountAddresses, FileReport, IntegrationError, Integrations, NodeDrain, SharedChannels, now_ms,
};
use domain::cluster::record::NodeId;
use domain::cluster::token::NodeRole;
use futures_util::future::BoxFuture;
use http::header::CONTENT_ENCODING;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use media::{Connection, RING_PATH, RingProgress, answer_ring, spawn_blocking};
use serde_json::Value;
use server::ApiHandler;
use server::accept::LocalAddr;
use server::reply::Refusal;
use storage::Store;
use storage::log::{LogRole, create_snapshot};
use tokio_util::io::ReaderStream;
use tracing::{info, warn};

use super::answer::{NodeBody, json_reply, passed_on, read_body, read_json, refuse, reply};
use super::archives::ARCHIVES_PATH;
use super::control::{CONTROL_BYTES_MAX, CONTROL_PATH};
use super::drain::DRAIN_PATH;
use super::events::{EVENTS_BYTES_MAX, EVENTS_PATH};
use super::fetch::{FETCH_PATH, FetchForNodes};
use super::forward::{FORWARD_HEADER, Forwarded, POSITION_HEADER};
use super::join::{JoinRequest, REQUEST_BYTES_MAX, admit};
use super::operator::{OPERATOR_BYTES_MAX, OPERATOR_PATH};
use super::overview::own_status;
use super::play::{PLAY_PATH, PlayForNodes};
use super::recordings::{RECORDINGS_PATH, REPORT_BYTES_MAX, REPORT_PATH};
use super::status::STATUS_PATH;
use super::timelines::TIMELINE_PATH;
use super::trust::NodeTrust;
use super::work::{NodeWork, STOPPING};
use super::{NodeError, archives, events, forward, recordings, status, timelines};
use crate::playing_control::{Order, perform_for};

pub(super) const JOIN_PATH: &str = "/node/v1/join";
pub(super) const SNAPSHOT_PATH: &str = "/node/v1/snapshot";
pub(super) const KEYS_PATH: &str = "/node/v1/keys";
/// Requests to the API, whose path follows.
const API_PATH: &str = "/node/v1/api/";

/// A request of another node.
pub(super) struct NodeCall {
    pub(super) parts: Arc<NodePortParts>,
    pub(super) node: NodeId,
    /// The addresses of that node and of this one.
    pub(super) addresses: (SocketAddr, SocketAddr),
    pub(super) progress: RingProgress,
    pub(super) request: Request<Incoming>,
}

/// A route for other nodes.
struct NodeRoute {
    /// The methods, or [`ANY`].
    methods: &'static [Method],
    /// A path with a slash at its end stands for all paths that begin with it.
    path: &'static str,
    /// Why edge nodes are refused, if they are.
    refused_to_edge: Option<&'static str>,
    handler: fn(NodeCall) -> BoxFuture<'static, Response<NodeBody>>,
}

const GET: &[Method] = &[Method::GET];
const GET_OR_HEAD: &[Method] = &[Method::GET, Method::HEAD];
const POST: &[Method] = &[Method::POST];
const PUT_OR_DELETE: &[Method] = &[Method::PUT, Method::DELETE];
/// Every method.
const ANY: &[Method] = &[];

/// All routes for other nodes. The first one with the method and the path answers.
const NODE_ROUTES: &[NodeRoute] = &[
    // All shared records, encrypted with the data keys.
    NodeRoute::new(GET, SNAPSHOT_PATH, |it| Box::pin(snapshot(it))),
    // The data keys, sealed for the node.
    NodeRoute::new(GET, KEYS_PATH, |it| Box::pin(async move { keys(&it) })),
    // The ring of a live channel of which this node is the origin.
    NodeRoute::new(ANY, RING_PATH, |it| Box::pin(async move { ring(&it) })),
    // What this node plays.
    NodeRoute::new(GET, STATUS_PATH, |it| Box::pin(status(it))),
    // How far back the past of channels can be watched.
    NodeRoute::new(GET, ARCHIVES_PATH, |it| Box::pin(archives(it))),
    // The history of a channel on this node.
    NodeRoute::new(GET, TIMELINE_PATH, |it| Box::pin(timeline(it))),
    // The outcome of an order of an admin there.
    NodeRoute::new(POST, CONTROL_PATH, |it| Box::pin(control(it))),
    // The outcome of a request of its operator.
    NodeRoute::new(POST, OPERATOR_PATH, |it| Box::pin(operator(it)))
        .not_for_edge("an edge node changes nothing for all nodes"),
    // Nothing: the node reports files of recordings.
    NodeRoute::new(POST, REPORT_PATH, |it| Box::pin(report(it)))
        .not_for_edge("an edge node has no recordings"),
    // The file of a recording on this node, or its playlist.
    NodeRoute::new(GET_OR_HEAD, RECORDINGS_PATH, |it| Box::pin(recording(it))),
    // What the player port answers, for a player of that node.
    NodeRoute::new(GET_OR_HEAD, PLAY_PATH, |it| Box::pin(play(it))),
    // What a provider answers, for an account that this node may use.
    NodeRoute::new(POST, FETCH_PATH, |it| Box::pin(fetch(it)))
        .not_for_edge("an edge node gets nothing of providers"),
    // Nothing: this node takes the events of that node for integrations.
    NodeRoute::new(POST, EVENTS_PATH, |it| Box::pin(take_events(it))),
    // Nothing: the drain of this node begins or ends.
    NodeRoute::new(PUT_OR_DELETE, DRAIN_PATH, |it| Box::pin(async move { drain(&it) })),
    // What the API answers, for a client of that node.
    NodeRoute::new(ANY, API_PATH, |it| Box::pin(forwarded(it))),
];

impl NodeRoute {
    const fn new(
        methods: &'static [Method],
        path: &'static str,
        handler: fn(NodeCall) -> BoxFuture<'static, Response<NodeBody>>,
    ) -> Self {
        NodeRoute { methods, path, refused_to_edge: None, handler }
    }

    /// Refuses edge nodes with this reason.
    const fn not_for_edge(self, reason: &'static str) -> Self {
        NodeRoute { refused_to_edge: Some(reason), ..self }
    }

    fn has(&self, method: &Method, path: &str) -> bool {
        let has_path = if self.path.ends_with('/') { path.starts_with(self.path) } else { path == self.path };
        has_path && (self.methods.is_empty() || self.methods.contains(method))
    }
}

/// Answers a request of another node.
pub(super) async fn answer(call: NodeCall) -> Response<NodeBody> {
    let (method, path) = (call.request.method(), call.request.uri().path());
    let Some(route) = NODE_ROUTES.iter().find(|it| it.has(method, path)) else {
        return refuse(StatusCode::NOT_FOUND, "Not found.");
    };
    match route.refused_to_edge {
        Some(reason) if call.role() != Some(NodeRole::Full) => refuse(StatusCode::FORBIDDEN, reason),
        _ => (route.handler)(call).await,
    }
}

/// Answers a request of a machine without a certificate.
pub(super) async fn answer_joining(parts: &NodePortParts, request: Request<Incoming>) -> Response<NodeBody> {
    match (request.method(), request.uri().path()) {
        (&Method::POST, JOIN_PATH) => join(parts, request).await,
        _ => refuse(StatusCode::NOT_FOUND, "Not found."),
    }
}

impl NodeCall {
    /// Returns the role of the node; `None` if its certificate is not known any more.
    fn role(&self) -> Option<NodeRole> {
        self.parts.trust.role_of(self.node)
    }
}

/// The services of the port.
pub struct NodePortParts {
    pub trust: Arc<NodeTrust>,
    pub store: Store,
    pub api: ApiHandler,
    pub play: PlayForNodes,
    pub fetch: FetchForNodes,
    pub work: NodeWork,
    /// Folder for a snapshot while it is sent.
    pub folder: PathBuf,
    /// The live channels that other nodes may read.
    pub rings: Option<Arc<SharedChannels>>,
    pub drain: Arc<NodeDrain>,
    pub integrations: Integrations,
    pub addresses: AccountAddresses,
}

/// Admits a machine.
async fn join(parts: &NodePortParts, request: Request<Incoming>) -> Response<NodeBody> {
    let Some(body) = read_body(request.into_body(), REQUEST_BYTES_MAX).await else {
        return refuse(StatusCode::BAD_REQUEST, "the request is too long, or did not arrive");
    };
    let (store, keys) = (parts.store.clone(), parts.trust.data_keys());
    let admitting = spawn_blocking(move || admit(&store, &keys, &JoinRequest::parse(&body)?, now_ms()));
    match admitting.await {
        Ok(Ok(answer)) => {
            info!(node = answer.node.0, "admitted a new node to the cluster");
            json_reply(StatusCode::OK, &answer)
        }
        Ok(Err(error)) => {
            let status = match &error {
                NodeError::Refused(_) => StatusCode::FORBIDDEN,
                NodeError::InvalidRequest => StatusCode::BAD_REQUEST,
                _ => StatusCode::SERVICE_UNAVAILABLE,
            };
            refuse(status, &error.to_string())
        }
        Err(_) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "internal error"),
    }
}

/// Returns what this node plays.
async fn status(call: NodeCall) -> Response<NodeBody> {
    let gateway = Arc::clone(&call.parts.work.gateway);
    let status = call.parts.work.run(|context| async move { own_status(&context, &*gateway).await }).await;
    let (mut status, request) = (status.unwrap_or_default(), &call.request);
    if call.role() != Some(NodeRole::Full) {
        status = status.for_edge();
    }
    let Ok((body, is_compressed)) = status::write(status, request.uri().query(), request.headers()) else {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, "internal error");
    };
    let mut response = reply(StatusCode::OK, "application/json", body);
    if is_compressed {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Returns how far back the past of each channel can be watched.
async fn archives(call: NodeCall) -> Response<NodeBody> {
    let query = call.request.uri().query().map(str::to_owned);
    let archives =
        call.parts.work.run(|context| async move { archives::answer(&context, query.as_deref()) }).await;
    match archives {
        Some(archives) => json_reply(StatusCode::OK, &archives),
        None => refuse(StatusCode::SERVICE_UNAVAILABLE, STOPPING),
    }
}

/// Returns what this node did for a channel.
async fn timeline(call: NodeCall) -> Response<NodeBody> {
    let path = call.request.uri().path().to_owned();
    let runs =
        call.parts.work.run(|context| async move { timelines::answer(&context, &path) }).await.flatten();
    match runs {
        Some(runs) => json_reply(StatusCode::OK, &runs),
        None => refuse(StatusCode::NOT_FOUND, "Not found."),
    }
}

/// Carries out an order of an admin of another node, who authenticates here as there.
async fn control(call: NodeCall) -> Response<NodeBody> {
    let (head, body) = call.request.into_parts();
    let Some(order) = read_json::<Order>(body, CONTROL_BYTES_MAX).await else {
        warn!("an order of another node is unknown to this version, or did not arrive");
        return refuse(StatusCode::BAD_REQUEST, "the order is unknown to this version, or did not arrive");
    };
    let performing =
        call.parts.work.run(|context| async move { perform_for(&context, &head.headers, order).await });
    match performing.await.unwrap_or_else(|| Err(Refusal::unavailable(STOPPING))) {
        Ok(done) => json_reply(StatusCode::OK, &done),
        Err(refusal) => passed_on(refusal.into_response()),
    }
}

/// Executes a request of the operator of another node.
async fn operator(call: NodeCall) -> Response<NodeBody> {
    let NodeCall { parts, node, request, .. } = call;
    let request = read_json::<Value>(request.into_body(), OPERATOR_BYTES_MAX).await;
    let outcome = match request {
        Some(request) => {
            let gateway = Arc::clone(&parts.work.gateway);
            let executed = parts.work.run(|_| gateway.execute(request)).await;
            executed.unwrap_or_else(|| Some(Err(STOPPING.to_owned())))
        }
        None => None,
    };
    let Some(outcome) = outcome else {
        warn!(
            by = node.0,
            "a request of the operator of another node is unknown to this version, or did not arrive"
        );
        return refuse(StatusCode::BAD_REQUEST, "the request is unknown to this version, or did not arrive");
    };
    let mut response = json_reply(StatusCode::OK, &outcome);
    add_position(&parts, &mut response);
    response
}

/// Names the last commit of this node in an answer. To be called after what was written.
fn add_position<T>(parts: &NodePortParts, response: &mut Response<T>) {
    if let Some(status) = &*parts.store.log_status().borrow() {
        response.headers_mut().insert(POSITION_HEADER, status.position.sequence.into());
    }
}

/// Stores what another node reports of its files.
async fn report(call: NodeCall) -> Response<NodeBody> {
    let Some(report) = read_json::<FileReport>(call.request.into_body(), REPORT_BYTES_MAX).await else {
        warn!("a report of another node is unknown to this version, or did not arrive");
        return refuse(StatusCode::BAD_REQUEST, "the report is unknown to this version, or did not arrive");
    };
    let accepting =
        call.parts.work.run(|context| async move { context.recorder.accept_report(report).await });
    match accepting.await.unwrap_or_else(|| Err(STOPPING.to_owned())) {
        Ok(()) => nothing(),
        Err(reason) => refuse(StatusCode::SERVICE_UNAVAILABLE, &reason),
    }
}

/// Takes the events of another node. When it is answered, they are stored.
async fn take_events(call: NodeCall) -> Response<NodeBody> {
    let is_edge = call.role() != Some(NodeRole::Full);
    let NodeCall { parts, node, request, .. } = call;
    let body = read_body(request.into_body(), EVENTS_BYTES_MAX).await;
    let Some(passed) = body.and_then(|it| events::read(&it, is_edge)) else {
        warn!(node = node.0, "the events of another node are not valid, or did not arrive");
        return refuse(StatusCode::BAD_REQUEST, "the events are not valid, or did not arrive");
    };
    let taking = async {
        parts.integrations.take(passed.events).await?;
        parts.addresses.take(passed.addresses).await.map_err(IntegrationError::from)
    };
    match taking.await {
        Ok(()) => nothing(),
        Err(error) => {
            if !matches!(error, IntegrationError::Store(storage::Error::NotWriter)) {
                warn!(node = node.0, "failed to take the events of another node: {error}");
            }
            refuse(StatusCode::SERVICE_UNAVAILABLE, &error.to_string())
        }
    }
}

/// Sends a snapshot.
async fn snapshot(call: NodeCall) -> Response<NodeBody> {
    let NodeCall { parts, node, .. } = call;
    let (store, keys, folder) = (parts.store.clone(), parts.trust.data_keys(), parts.folder.clone());
    let making = spawn_blocking(move || {
        let failed = |error: &dyn std::fmt::Display| error.to_string();
        // Without a name, so that nothing of it is left.
        let mut file = tempfile::tempfile_in(folder).map_err(|it| failed(&it))?;
        let position = create_snapshot(&store, &[], &keys, now_ms(), &mut file).map_err(|it| failed(&it))?;
        io::Seek::rewind(&mut file).map_err(|it| failed(&it))?;
        Ok::<_, String>((file, position))
    });
    match making.await {
        Ok(Ok((file, position))) => {
            info!(node = node.0, sequence = position.sequence, "sending a snapshot of the configuration");
            let parts = ReaderStream::new(tokio::fs::File::from_std(file));
            let frames = futures_util::StreamExt::map(parts, |it| it.map(Frame::data));
            Response::new(StreamBody::new(frames).boxed_unsync())
        }
        Ok(Err(reason)) => {
            warn!("failed to make a snapshot for a node: {reason}");
            refuse(StatusCode::SERVICE_UNAVAILABLE, &reason)
        }
        Err(_) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "internal error"),
    }
}

/// Sends the data keys to a node that was off while they were rotated.
fn keys(call: &NodeCall) -> Response<NodeBody> {
    match call.parts.trust.keys_for(call.node) {
        Ok(Some(sealed)) => {
            info!(node = call.node.0, "sending the data keys to a node");
            reply(StatusCode::OK, "application/octet-stream", sealed)
        }
        Ok(None) => refuse(StatusCode::SERVICE_UNAVAILABLE, "this node does not have all data keys"),
        Err(error) => {
            warn!("failed to seal the data keys for a node: {error}");
            refuse(StatusCode::INTERNAL_SERVER_ERROR, "internal error")
        }
    }
}

/// Answers a request of a client of another node, which authenticates here as it would there.
async fn forwarded(call: NodeCall) -> Response<NodeBody> {
    let NodeCall { parts, addresses: (peer, local), mut request, .. } = call;
    let context = request.headers_mut().remove(FORWARD_HEADER);
    let context = context.and_then(|it| serde_json::from_slice::<Forwarded>(it.as_bytes()).ok());
    let path = request.uri().path_and_query().and_then(|it| it.as_str().strip_prefix("/node/v1"));
    let uri = path.and_then(|it| it.parse::<Uri>().ok());
    let (Some(context), Some(uri)) = (context, uri) else {
        return refuse(StatusCode::BAD_REQUEST, "the request of the node is invalid");
    };
    *request.uri_mut() = uri;
    let is_writer = parts.store.log_status().borrow().as_ref().is_some_and(|it| it.role == LogRole::Writer);
    let mut response = if is_writer {
        let extensions = request.extensions_mut();
        extensions.insert(Arc::new(Connection::new(forward::connection_id(), peer)));
        extensions.insert(LocalAddr(context.local.unwrap_or(local)));
        extensions.insert(context.origin);
        (parts.api)(request).await
    } else {
        Refusal::unavailable(storage::Error::NotWriter.to_string()).retry_soon().into_response()
    };
    add_position(&parts, &mut response);
    passed_on(response)
}

/// Returns the ring of a live channel.
fn ring(call: &NodeCall) -> Response<NodeBody> {
    let Some(rings) = &call.parts.rings else { return refuse(StatusCode::NOT_FOUND, "Not found.") };
    let (method, uri) = (call.request.method(), call.request.uri());
    let answer = answer_ring(method, uri, &**rings, &call.progress);
    answer.map(|body| body.map_err(|never| match never {}).boxed_unsync())
}

/// Returns the file of a recording or its playlist.
async fn recording(call: NodeCall) -> Response<NodeBody> {
    let (head, _) = call.request.into_parts();
    passed_on(recordings::answer(&call.parts.work, head.method, head.uri, head.headers).await)
}

/// Answers a player of another node.
async fn play(call: NodeCall) -> Response<NodeBody> {
    let role = call.role();
    call.parts.play.answer(role, call.addresses, call.request).await
}

/// Requests something from a provider for another node.
async fn fetch(call: NodeCall) -> Response<NodeBody> {
    call.parts.fetch.answer(&call.parts.work, call.request).await
}

/// Begins or ends the drain of this node.
fn drain(call: &NodeCall) -> Response<NodeBody> {
    let is_draining = call.request.method() == Method::PUT;
    if call.parts.drain.set(is_draining) {
        info!(by = call.node.0, is_draining, "another node has changed whether this node is drained");
    }
    nothing()
}

/// Returns the answer to a request that was carried out.
fn nothing() -> Response<NodeBody> {
    reply(StatusCode::OK, "application/json", b"{}".to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: &Method, path: &str) -> Option<&'static str> {
        NODE_ROUTES.iter().find(|it| it.has(method, path)).map(|it| it.path)
    }

    #[test]
    fn a_request_is_answered_by_the_route_with_its_method_and_path() {
        for (method, path, expected) in [
            (Method::GET, "/node/v1/snapshot", Some(SNAPSHOT_PATH)),
            (Method::POST, "/node/v1/snapshot", None),
            (Method::GET, "/node/v1/snapshot/", None),
            (Method::POST, "/node/v1/recordings/report", Some(REPORT_PATH)),
            (Method::GET, "/node/v1/recordings/report", Some(RECORDINGS_PATH)),
            (Method::POST, "/node/v1/recordings/7/1", None),
            (Method::HEAD, "/node/v1/play/live/a/b/7.ts", Some(PLAY_PATH)),
            (Method::DELETE, "/node/v1/drain", Some(DRAIN_PATH)),
            (Method::DELETE, "/node/v1/api/channels/groups/7/", Some(API_PATH)),
            (Method::POST, "/node/v1/join", None),
            (Method::GET, "/node/v2/status", None),
        ] {
            assert_eq!(found(&method, path), expected, "{method} {path}");
        }
    }
}
