//! The rings of live channels between nodes: the port where edges read them, and the connections to the ports of others.
//! Both sides have a certificate of the cluster that is not revoked.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actors::{ClusterView, NodeConnecting, NodeDialer, NodeSocket, SharedChannels};
use domain::cluster::certificate::NodeCertificate;
use domain::cluster::record::NodeId;
use rustls::pki_types::ServerName;
use rustls::server::Acceptor;
use storage::Store;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::{LazyConfigAcceptor, TlsConnector};
use tracing::{debug, warn};

use super::authority::{JOIN_NAME, read_authority};
use super::file::NodeFile;
use super::tls::{NodeIdentity, NodeTls, client_config};
use super::{NodeError, revoked_serials};

/// The port that an address of a node means without one.
const PORT: u16 = 9292;
/// Maximum number of connections of other nodes: one for each edge and channel.
const CONNECTIONS_MAX: usize = 4096;
/// Longest time until a connection is encrypted.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after an accept that failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The encryption of the connections for rings.
pub(super) struct RingTls {
    pub(super) server: NodeTls,
    client: TlsConnector,
}

impl RingTls {
    /// Reads the file of the node. `None` if this machine has not joined a cluster. Blocks.
    pub(super) fn read(path: &Path, store: &Store) -> Result<Option<Self>, NodeError> {
        let Some(file) = NodeFile::read(path)? else { return Ok(None) };
        let certificates = store.collection::<NodeCertificate>().all()?;
        let identity = NodeIdentity {
            certificates: file.certificates(),
            key: file.private_key(),
            revoked: read_authority(store)?.revocation_list(&revoked_serials(&certificates))?,
        };
        let failed = |error: rustls::Error| NodeError::Certificate {
            what: "use the certificate of this node",
            cause: error.to_string(),
        };
        let server = NodeTls::new(&identity).map_err(failed)?;
        let client = TlsConnector::from(Arc::new(client_config(&identity).map_err(failed)?));
        Ok(Some(Self { server, client }))
    }

    pub(super) fn dialer(&self) -> Arc<RingDialer> {
        Arc::new(RingDialer { tls: self.client.clone(), view: OnceLock::new() })
    }
}

/// Connects to the ports of other nodes.
pub(super) struct RingDialer {
    tls: TlsConnector,
    /// Set when the membership has begun. Before that, no other node is known.
    view: OnceLock<watch::Receiver<Arc<ClusterView>>>,
}

impl RingDialer {
    pub(super) fn follow(&self, view: watch::Receiver<Arc<ClusterView>>) {
        // Called once.
        let _ = self.view.set(view);
    }

    /// Returns the name and the addresses of a node.
    fn find(&self, node: NodeId) -> Option<(String, Vec<String>)> {
        let view = self.view.get()?.borrow().clone();
        let info = &view.nodes.iter().find(|it| it.id == node)?.info;
        Some((info.name.clone(), info.addresses.clone()))
    }
}

impl NodeDialer for RingDialer {
    fn name(&self, node: NodeId) -> String {
        self.find(node).map_or_else(|| node.0.to_string(), |it| it.0)
    }

    fn connect(&self, node: NodeId) -> NodeConnecting {
        let (tls, found) = (self.tls.clone(), self.find(node));
        Box::pin(async move {
            let addresses = found.map(|it| it.1).unwrap_or_default();
            let mut failure = io::Error::new(io::ErrorKind::NotFound, "the node has no address");
            for address in &addresses {
                match connect(&tls, address).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => failure = error,
                }
            }
            Err(failure)
        })
    }
}

async fn connect(tls: &TlsConnector, address: &str) -> io::Result<NodeSocket> {
    let socket = TcpStream::connect(with_port(address)).await?;
    socket.set_nodelay(true)?;
    // The name that the certificates of all nodes have.
    let name = ServerName::try_from(JOIN_NAME).map_err(io::Error::other)?;
    Ok(Box::new(tls.connect(name, socket).await?))
}

/// Returns an address of a node with a port.
pub(super) fn with_port(address: &str) -> String {
    let has_port = address.rsplit_once(':').is_some_and(|(host, port)| {
        port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']'))
    });
    match (has_port, address.contains(':') && !address.starts_with('[')) {
        (true, _) => address.to_owned(),
        (false, true) => format!("[{address}]:{PORT}"),
        (false, false) => format!("{address}:{PORT}"),
    }
}

/// Serves the rings of this node until the future is dropped.
pub(super) async fn serve(listener: TcpListener, tls: NodeTls, channels: Arc<SharedChannels>) {
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((socket, peer)) => {
                let (tls, channels) = (tls.clone(), Arc::clone(&channels));
                connections.spawn(async move {
                    if let Err(reason) = serve_one(socket, tls, channels).await {
                        debug!(client.address = %peer, "a connection to the node port ended: {reason}");
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                warn!("failed to accept a connection of a node: {error}");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve_one(socket: TcpStream, tls: NodeTls, channels: Arc<SharedChannels>) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let accepting = async {
        let start = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
        let config = tls.config_for(&start.client_hello()).filter(|it| !it.1);
        let (config, _) =
            config.ok_or_else(|| io::Error::other("it does not speak the protocol of nodes"))?;
        start.into_stream(config).await
    };
    let stream = timeout(HANDSHAKE_TIMEOUT, accepting).await.map_err(|_| io::ErrorKind::TimedOut)??;
    channels.serve(stream).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_nodes_get_the_usual_port_if_they_have_none() {
        for (address, expected) in [
            ("attic", "attic:9292"),
            ("attic:80", "attic:80"),
            ("10.0.0.1", "10.0.0.1:9292"),
            ("fd00::1", "[fd00::1]:9292"),
            ("[fd00::1]", "[fd00::1]:9292"),
            ("[fd00::1]:80", "[fd00::1]:80"),
        ] {
            assert_eq!(with_port(address), expected);
        }
    }
}
