//! The rings of live channels of other nodes: connections to their ports.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actors::{ClusterView, NodeConnecting, NodeDialer, NodeSocket};
use domain::cluster::record::NodeId;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::trust::NodeTrust;
use super::{node_name, port_of};

/// Longest time until a connection is encrypted. The live channel has shorter limits for an origin that does not answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connects to the ports of other nodes.
pub(super) struct RingDialer {
    trust: Arc<NodeTrust>,
    /// Set when the membership has begun. Before that, no other node is known.
    view: OnceLock<watch::Receiver<Arc<ClusterView>>>,
}

/// A node as it can be reached.
struct FoundNode {
    name: String,
    /// The number in its certificate.
    certificate: Option<u32>,
    addresses: Vec<String>,
}

impl RingDialer {
    pub(super) fn new(trust: Arc<NodeTrust>) -> Self {
        Self { trust, view: OnceLock::new() }
    }

    pub(super) fn follow(&self, view: watch::Receiver<Arc<ClusterView>>) {
        // Called once.
        let _ = self.view.set(view);
    }

    fn find(&self, node: NodeId) -> Option<FoundNode> {
        let view = self.view.get()?.borrow().clone();
        let info = &view.nodes.iter().find(|it| it.id == node)?.info;
        let addresses = info.addresses.iter().map(|it| port_of(it)).collect();
        Some(FoundNode { name: info.name.clone(), certificate: info.certificate, addresses })
    }
}

impl NodeDialer for RingDialer {
    fn name(&self, node: NodeId) -> String {
        self.find(node).map_or_else(|| node.0.to_string(), |it| it.name)
    }

    fn connect(&self, node: NodeId) -> NodeConnecting {
        let (tls, found) = (self.trust.client(), self.find(node));
        Box::pin(async move {
            let tls = TlsConnector::from(tls.map_err(io::Error::other)?);
            let mut failure = io::Error::new(io::ErrorKind::NotFound, "the node has no address");
            let Some(FoundNode { certificate: Some(certificate), addresses, .. }) = found else {
                return Err(failure);
            };
            let name = node_name(NodeId(certificate));
            for address in &addresses {
                let connected = timeout(CONNECT_TIMEOUT, connect(&tls, &name, address)).await;
                match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                    Ok(stream) => return Ok(stream),
                    Err(error) => failure = error,
                }
            }
            Err(failure)
        })
    }
}

async fn connect(tls: &TlsConnector, name: &str, address: &str) -> io::Result<NodeSocket> {
    let socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    Ok(Box::new(tls.connect(name, socket).await?))
}
