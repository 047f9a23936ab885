//! The node port: where other nodes of the cluster connect to, with a certificate on both sides, and machines that join.
//!
//! [`super::routes`] is the table of what they can request.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use domain::cluster::record::NodeId;
use http::StatusCode;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use media::RingProgress;
use rustls::server::Acceptor;
use server::socket::prepare;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::LazyConfigAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, warn};

use super::answer::refuse;
use super::routes::{NodeCall, NodePortParts, answer, answer_joining};
use super::time_limits::{ACCEPT_PAUSE, HANDSHAKE_TIMEOUT};
use super::work::STOPPING;

/// Maximum number of connections of other nodes. A node that forwards needs one for each request.
const CONNECTIONS_MAX: usize = 1024;
/// Maximum size of a head: that of a client, and what a node adds.
const HEAD_BYTES_MAX: usize = 32 << 10;
const HEADERS_MAX: usize = 128;

/// The open port. Dropping it closes all its connections.
#[derive(Debug)]
pub struct NodePort {
    /// Cancelled once another process of this node has the port.
    retired: CancellationToken,
    _task: AbortOnDropHandle<()>,
}

/// The other side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodePeer {
    /// A machine without a certificate.
    Joining,
    Node(NodeId),
}

impl NodePort {
    /// Accepts connections. To be called in the runtime that serves them.
    pub fn start(listener: TcpListener, parts: NodePortParts) -> Self {
        let retired = CancellationToken::new();
        let task = actors::spawn(accept_loop(listener, Arc::new(parts), retired.clone()));
        Self { retired, _task: AbortOnDropHandle::new(task) }
    }

    /// Closes the port for another process of this node, and answers no further request. Nodes that read a live channel go
    /// on.
    pub fn retire(self) -> Self {
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
                false => match peer {
                    NodePeer::Joining => answer_joining(&parts, request).await,
                    NodePeer::Node(node) => {
                        answer(NodeCall { parts, node, addresses: (address, local), progress, request }).await
                    }
                },
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
