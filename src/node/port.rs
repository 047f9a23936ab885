//! The node port: where other nodes of the cluster connect to, with a certificate on both sides, and machines that join.
//!
//! | Request | From | Answer |
//! |---|---|---|
//! | `POST /node/v1/join` | a machine that joins | certificate and data keys, for a valid token |
//! | `GET /node/v1/snapshot` | a node | all shared records, encrypted with the data keys |
//! | `GET /node/v1/keys` | a node | the data keys, sealed for it |
//! | `GET /node/v1/ring/…` | a node | the ring of a live channel of which this node is the origin |
//! | `GET /node/v1/status` | a node | what this node plays, see [`super::status`] |
//! | `GET /node/v1/archives` | a node | how far back the past of channels can be watched, see [`super::archives`] |
//! | `GET /node/v1/timeline/…` | a node | the history of a channel on this node, see [`super::timelines`] |
//! | `POST /node/v1/control` | a node | the outcome of an order of an admin there; see [`crate::playing_control`] |
//! | `POST /node/v1/operator` | a full node | the outcome of a request of its operator; see [`super::operator`] |
//! | `GET /node/v1/recordings/…` | a node | the file of a recording on this node, or its playlist |
//! | `POST /node/v1/recordings/report` | a node | nothing: it reports files of recordings, see [`super::recordings`] |
//! | `GET`, `HEAD /node/v1/play/…` | a node | that of the player port, for a player of that node; see [`super::play`] |
//! | `POST /node/v1/events` | a node | takes its events for integrations, see [`super::events`] |
//! | `POST /node/v1/fetch` | a full node | that of a provider, for an account that this node may use; see [`super::fetch`] |
//! | `PUT`, `DELETE /node/v1/drain` | a node | begins and ends the drain of this node |
//! | `/node/v1/api/…` | a node | that of the API, for a client of that node; see [`forward`] |

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actors::{
    AccountAddresses, FileReport, IntegrationError, Integrations, NodeDrain, SharedChannels, now_ms,
};
use bytes::Bytes;
use config::DataFolder;
use domain::cluster::record::NodeId;
use domain::cluster::token::NodeRole;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use media::{Connection, RING_PATH, RingProgress, answer_ring};
use rustls::server::Acceptor;
use serde::de::DeserializeOwned;
use serde_json::json;
use server::ApiHandler;
use server::accept::LocalAddr;
use server::reply::Refusal;
use server::socket::prepare;
use storage::Store;
use storage::log::{LogRole, create_snapshot};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};
use tokio_rustls::LazyConfigAcceptor;
use tokio_util::io::ReaderStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info, warn};

use super::archives::ARCHIVES_PATH;
use super::control::{CONTROL_BYTES_MAX, CONTROL_PATH};
use super::drain::DRAIN_PATH;
use super::events::{EVENTS_BYTES_MAX, EVENTS_PATH};
use super::fetch::{FETCH_PATH, FetchForNodes};
use super::forward::{FORWARD_HEADER, Forwarded, POSITION_HEADER};
use super::join::{JoinRequest, REQUEST_BYTES_MAX, admit};
use super::operator::{OPERATOR_BYTES_MAX, OPERATOR_PATH};
use super::play::{PLAY_PATH, PlayForNodes};
use super::recordings::{RECORDINGS_PATH, REPORT_BYTES_MAX, REPORT_PATH};
use super::status::{STATUS_PATH, own_status};
use super::timelines::TIMELINE_PATH;
use super::trust::NodeTrust;
use super::work::{NodeWork, STOPPING};
use super::{NodeError, archives, events, forward, recordings, status, timelines};
use crate::control::{ControlRequest, execute_here};
use crate::playing_control::{Order, perform_for};

/// Maximum number of connections of other nodes. A node that forwards needs one for each request.
const CONNECTIONS_MAX: usize = 1024;
/// Longest time until a connection is encrypted, and for the head of its request.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a head: that of a client, and what a node adds.
const HEAD_BYTES_MAX: usize = 32 << 10;
const HEADERS_MAX: usize = 128;
/// Pause after an accept that failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(super) const JOIN_PATH: &str = "/node/v1/join";
pub(super) const SNAPSHOT_PATH: &str = "/node/v1/snapshot";
pub(super) const KEYS_PATH: &str = "/node/v1/keys";

/// The services of the port.
pub(crate) struct NodePortParts {
    pub(crate) trust: Arc<NodeTrust>,
    pub(crate) store: Store,
    pub(crate) api: ApiHandler,
    pub(crate) play: PlayForNodes,
    pub(crate) fetch: FetchForNodes,
    pub(crate) work: NodeWork,
    /// Folder for a snapshot while it is sent.
    pub(crate) folder: PathBuf,
    /// The live channels that other nodes may read.
    pub(crate) rings: Option<Arc<SharedChannels>>,
    pub(crate) drain: Arc<NodeDrain>,
    pub(crate) integrations: Integrations,
    pub(crate) addresses: AccountAddresses,
}

/// The open port. Dropping it closes all its connections.
#[derive(Debug)]
pub(crate) struct NodePort {
    /// Cancelled once another process of this node has the port.
    retired: CancellationToken,
    _task: AbortOnDropHandle<()>,
}

pub(super) type NodeBody = UnsyncBoxBody<Bytes, io::Error>;

/// The other side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodePeer {
    /// A machine without a certificate.
    Joining,
    Node(NodeId),
}

impl NodePort {
    /// Accepts connections. To be called in the runtime that serves them.
    pub(crate) fn start(listener: TcpListener, parts: NodePortParts) -> Self {
        let retired = CancellationToken::new();
        let task = tokio::spawn(accept_loop(listener, Arc::new(parts), retired.clone()));
        Self { retired, _task: AbortOnDropHandle::new(task) }
    }

    /// Closes the port for another process of this node, and answers no further request. Nodes that read a live channel go
    /// on.
    pub(crate) fn retire(self) -> Self {
        self.retired.cancel();
        self
    }
}

async fn accept_loop(listener: TcpListener, parts: Arc<NodePortParts>, retired: CancellationToken) {
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepting = async {
            // The semaphore is never closed.
            let permit = Arc::clone(&free).acquire_owned().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>((permit, listener.accept().await?))
        };
        match retired.run_until_cancelled(accepting).await {
            None => break,
            Some(Ok((permit, (socket, peer)))) => {
                let (parts, retired) = (Arc::clone(&parts), retired.clone());
                connections.spawn(async move {
                    if let Err(reason) = serve(parts, socket, peer, retired).await {
                        debug!(client.address = %peer, "a connection to the node port ended: {reason}");
                    }
                    drop(permit);
                });
            }
            Some(Err(error)) => {
                warn!("failed to accept a connection of a node: {error}");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn serve(
    parts: Arc<NodePortParts>,
    socket: TcpStream,
    address: SocketAddr,
    retired: CancellationToken,
) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    prepare(&socket);
    let local = socket.local_addr().map_err(|it| text(&it))?;
    let tls = parts.trust.server().map_err(|it| text(&it))?;
    let accepting = async {
        let start = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
        let (config, is_joining) = tls
            .config_for(&start.client_hello())
            .ok_or_else(|| io::Error::other("it does not speak the protocol of nodes"))?;
        Ok::<_, io::Error>((start.into_stream(config).await?, is_joining))
    };
    let accepted = timeout(HANDSHAKE_TIMEOUT, accepting).await;
    let (stream, is_joining) =
        accepted.map_err(|_| "the handshake took too long".to_owned())?.map_err(|it| text(&it))?;
    let peer = if is_joining {
        NodePeer::Joining
    } else {
        let certificate = stream.get_ref().1.peer_certificates().and_then(|it| it.first());
        let node = certificate.and_then(|it| parts.trust.node_of(it));
        NodePeer::Node(node.ok_or("its certificate is not one of the cluster")?.0)
    };
    let progress = RingProgress::default();
    let of_rings = progress.clone();
    let service = service_fn(move |request| {
        let (parts, progress, is_retired) = (Arc::clone(&parts), of_rings.clone(), retired.is_cancelled());
        async move {
            Ok::<_, io::Error>(match is_retired {
                true => refuse(StatusCode::SERVICE_UNAVAILABLE, STOPPING),
                false => answer(&parts, peer, (address, local), &progress, request).await,
            })
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HANDSHAKE_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        // The certificate is checked with each connection.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        served = served => served.map_err(|it| text(&it)),
        () = progress.stuck() => Err("it takes nothing of a ring".to_owned()),
    }
}

async fn answer(
    parts: &Arc<NodePortParts>,
    peer: NodePeer,
    addresses: (SocketAddr, SocketAddr),
    progress: &RingProgress,
    request: Request<Incoming>,
) -> Response<NodeBody> {
    match (peer, request.method(), request.uri().path()) {
        (NodePeer::Joining, &Method::POST, JOIN_PATH) => join(parts, request).await,
        (NodePeer::Node(node), &Method::GET, SNAPSHOT_PATH) => snapshot(parts, node).await,
        (NodePeer::Node(node), &Method::GET, KEYS_PATH) => keys(parts, node),
        (NodePeer::Node(_), method, path) if path.starts_with(RING_PATH) => match &parts.rings {
            Some(rings) => {
                let answer = answer_ring(method, request.uri(), &**rings, progress);
                answer.map(|body| body.map_err(|never| match never {}).boxed_unsync())
            }
            None => refuse(StatusCode::NOT_FOUND, "Not found."),
        },
        (NodePeer::Node(node), &Method::GET, STATUS_PATH) => status(parts, node, &request).await,
        (NodePeer::Node(_), &Method::GET, ARCHIVES_PATH) => archives(parts, request.uri().query()).await,
        (NodePeer::Node(_), &Method::GET, path) if path.starts_with(TIMELINE_PATH) => {
            timeline(parts, path.to_owned()).await
        }
        (NodePeer::Node(_), &Method::POST, CONTROL_PATH) => control(parts, request).await,
        (NodePeer::Node(node), &Method::POST, OPERATOR_PATH) => operator(parts, node, request).await,
        (NodePeer::Node(node), &Method::POST, REPORT_PATH) => report(parts, node, request).await,
        (NodePeer::Node(_), &(Method::GET | Method::HEAD), path) if path.starts_with(RECORDINGS_PATH) => {
            let (head, _) = request.into_parts();
            let answer = recordings::answer(&parts.work, head.method, head.uri, head.headers).await;
            answer.map(|body| body.map_err(io::Error::other).boxed_unsync())
        }
        (NodePeer::Node(node), &(Method::GET | Method::HEAD), path) if path.starts_with(PLAY_PATH) => {
            parts.play.answer(parts.trust.role_of(node), addresses, request).await
        }
        (NodePeer::Node(node), &Method::POST, FETCH_PATH) => {
            parts.fetch.answer(parts.trust.role_of(node), &parts.work, request).await
        }
        (NodePeer::Node(node), &Method::POST, EVENTS_PATH) => take_events(parts, node, request).await,
        (NodePeer::Node(node), &(Method::PUT | Method::DELETE), DRAIN_PATH) => {
            let is_draining = request.method() == Method::PUT;
            if parts.drain.set(is_draining) {
                info!(by = node.0, is_draining, "another node has changed whether this node is drained");
            }
            reply(StatusCode::OK, "application/json", b"{}".to_vec())
        }
        (NodePeer::Node(_), _, path) if path.starts_with("/node/v1/api/") => {
            forwarded(parts, addresses, request).await
        }
        _ => refuse(StatusCode::NOT_FOUND, "Not found."),
    }
}

pub(super) fn refuse(status: StatusCode, detail: &str) -> Response<NodeBody> {
    let body = json!({ "detail": detail }).to_string();
    reply(status, "application/json", body.into_bytes())
}

pub(super) fn reply(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Response<NodeBody> {
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response
}

/// Reads a body of at most this size; `None` if it is longer, or does not arrive in time.
async fn read_body(body: Incoming, bytes_max: usize) -> Option<Bytes> {
    let reading = timeout(HANDSHAKE_TIMEOUT, Limited::new(body, bytes_max).collect());
    Some(reading.await.ok()?.ok()?.to_bytes())
}

/// Reads a body as [`read_body`] does; `None` also if this version does not know its content.
pub(super) async fn read_json<T: DeserializeOwned>(body: Incoming, bytes_max: usize) -> Option<T> {
    serde_json::from_slice(&read_body(body, bytes_max).await?).ok()
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
            let body = serde_json::to_vec(&answer).unwrap_or_default();
            reply(StatusCode::OK, "application/json", body)
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

/// Tells what this node plays.
async fn status(parts: &NodePortParts, node: NodeId, request: &Request<Incoming>) -> Response<NodeBody> {
    let mut status = parts.work.run(|app| async move { own_status(&app).await }).await.unwrap_or_default();
    if parts.trust.role_of(node) != Some(NodeRole::Full) {
        status = status.for_edge();
    }
    let Ok((body, is_compressed)) = status::write(status, request.uri().query(), request.headers()) else {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, "internal error");
    };
    let mut response = reply(StatusCode::OK, "application/json", body);
    if is_compressed {
        response.headers_mut().insert(CONTENT_ENCODING, http::HeaderValue::from_static("gzip"));
    }
    response
}

/// Tells how far back the past of each channel can be watched.
async fn archives(parts: &NodePortParts, query: Option<&str>) -> Response<NodeBody> {
    let query = query.map(str::to_owned);
    let archives = parts.work.run(|app| async move { archives::answer(&app, query.as_deref()) }).await;
    match archives.and_then(|it| serde_json::to_vec(&it).ok()) {
        Some(body) => reply(StatusCode::OK, "application/json", body),
        None => refuse(StatusCode::SERVICE_UNAVAILABLE, STOPPING),
    }
}

/// Tells what this node did for a channel.
async fn timeline(parts: &NodePortParts, path: String) -> Response<NodeBody> {
    let runs = parts.work.run(|app| async move { timelines::answer(&app, &path) }).await.flatten();
    match runs.and_then(|it| serde_json::to_vec(&it).ok()) {
        Some(body) => reply(StatusCode::OK, "application/json", body),
        None => refuse(StatusCode::NOT_FOUND, "Not found."),
    }
}

/// Carries out an order of an admin of another node, who authenticates here as there.
async fn control(parts: &NodePortParts, request: Request<Incoming>) -> Response<NodeBody> {
    let (head, body) = request.into_parts();
    let Some(order) = read_json::<Order>(body, CONTROL_BYTES_MAX).await else {
        warn!("an order of another node is unknown to this version, or did not arrive");
        return refuse(StatusCode::BAD_REQUEST, "the order is unknown to this version, or did not arrive");
    };
    let performing = parts.work.run(|app| async move { perform_for(&app, &head.headers, order).await });
    match performing.await.unwrap_or_else(|| Err(Refusal::unavailable(STOPPING))) {
        Ok(done) => reply(StatusCode::OK, "application/json", serde_json::to_vec(&done).unwrap_or_default()),
        Err(refusal) => refusal.into_response().map(|body| body.map_err(io::Error::other).boxed_unsync()),
    }
}

/// Executes a request of the operator of another node. An edge node has no say in what all nodes share.
async fn operator(parts: &NodePortParts, node: NodeId, request: Request<Incoming>) -> Response<NodeBody> {
    if parts.trust.role_of(node) != Some(NodeRole::Full) {
        return refuse(StatusCode::FORBIDDEN, "an edge node changes nothing for all nodes");
    }
    let Some(request) = read_json::<ControlRequest>(request.into_body(), OPERATOR_BYTES_MAX).await else {
        warn!(
            by = node.0,
            "a request of the operator of another node is unknown to this version, or did not arrive"
        );
        return refuse(StatusCode::BAD_REQUEST, "the request is unknown to this version, or did not arrive");
    };
    let executing = parts.work.run(|app| async move {
        execute_here(DataFolder::new(&app.config.data_dir), app.models.clone(), request).await
    });
    let outcome = executing.await.unwrap_or_else(|| Err(STOPPING.to_owned()));
    let mut response =
        reply(StatusCode::OK, "application/json", serde_json::to_vec(&outcome).unwrap_or_default());
    add_position(parts, &mut response);
    response
}

/// Names the last commit of this node in an answer. To be called after what was written.
fn add_position<T>(parts: &NodePortParts, response: &mut Response<T>) {
    if let Some(status) = &*parts.store.log_status().borrow() {
        response.headers_mut().insert(POSITION_HEADER, status.position.sequence.into());
    }
}

/// Stores what another node reports of its files. An edge node has none.
async fn report(parts: &NodePortParts, node: NodeId, request: Request<Incoming>) -> Response<NodeBody> {
    if parts.trust.role_of(node) != Some(NodeRole::Full) {
        return refuse(StatusCode::FORBIDDEN, "an edge node has no recordings");
    }
    let Some(report) = read_json::<FileReport>(request.into_body(), REPORT_BYTES_MAX).await else {
        warn!("a report of another node is unknown to this version, or did not arrive");
        return refuse(StatusCode::BAD_REQUEST, "the report is unknown to this version, or did not arrive");
    };
    let accepting = parts.work.run(|app| async move { app.recorder.accept_report(report).await });
    match accepting.await.unwrap_or_else(|| Err(STOPPING.to_owned())) {
        Ok(()) => reply(StatusCode::OK, "application/json", b"{}".to_vec()),
        Err(reason) => refuse(StatusCode::SERVICE_UNAVAILABLE, &reason),
    }
}

/// Takes the events of another node. When it is answered, they are stored.
async fn take_events(parts: &NodePortParts, node: NodeId, request: Request<Incoming>) -> Response<NodeBody> {
    let is_edge = parts.trust.role_of(node) != Some(NodeRole::Full);
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
        Ok(()) => reply(StatusCode::OK, "application/json", b"{}".to_vec()),
        Err(error) => {
            if !matches!(error, IntegrationError::Store(storage::Error::NotWriter)) {
                warn!(node = node.0, "failed to take the events of another node: {error}");
            }
            refuse(StatusCode::SERVICE_UNAVAILABLE, &error.to_string())
        }
    }
}

/// Sends a snapshot.
async fn snapshot(parts: &NodePortParts, node: NodeId) -> Response<NodeBody> {
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
fn keys(parts: &NodePortParts, node: NodeId) -> Response<NodeBody> {
    match parts.trust.keys_for(node) {
        Ok(Some(sealed)) => {
            info!(node = node.0, "sending the data keys to a node");
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
async fn forwarded(
    parts: &NodePortParts,
    (peer, local): (SocketAddr, SocketAddr),
    mut request: Request<Incoming>,
) -> Response<NodeBody> {
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
    add_position(parts, &mut response);
    response.map(|body| body.map_err(io::Error::other).boxed_unsync())
}
