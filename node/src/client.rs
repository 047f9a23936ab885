//! Connections to the node port of other nodes.

use std::sync::Arc;
use std::{fmt, io};

use bytes::Bytes;
use cluster::NodeInfo;
use domain::cluster::record::NodeId;
use hyper::body::Body;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::task::AbortOnDropHandle;

use super::time_limits::{CONNECT_TIMEOUT, KEEPALIVE_INTERVAL, SILENCE_MAX};
use super::{node_name, port_of};

/// A connection to another node. It ends when this is dropped.
pub(super) struct NodeConnection<B> {
    pub(super) sender: SendRequest<B>,
    pub(super) task: AbortOnDropHandle<()>,
}

/// Where a member is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeAddress {
    /// The number in its certificate.
    certificate: NodeId,
    /// The addresses of its port, in the order in which they are tried. Never empty.
    addresses: Vec<String>,
}

impl NodeAddress {
    /// Returns the address of a member; `None` if it has not joined.
    pub(super) fn from_info(info: &NodeInfo) -> Option<Self> {
        let addresses: Vec<_> = info.addresses.iter().map(|it| port_of(it)).collect();
        let certificate = NodeId(info.certificate?);
        (!addresses.is_empty()).then_some(Self { certificate, addresses })
    }

    /// Opens an encrypted connection to the first address that answers.
    pub(super) async fn dial(&self, config: Arc<ClientConfig>) -> io::Result<TlsStream<TcpStream>> {
        let name = node_name(self.certificate);
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        for address in &self.addresses {
            match dial(address, &name, Arc::clone(&config)).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Connects as [`Self::dial`] does, for requests.
    pub(super) async fn connect<B>(&self, config: Arc<ClientConfig>) -> io::Result<NodeConnection<B>>
    where
        B: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + 'static,
    {
        begin(self.dial(config).await?).await
    }
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.addresses.join(", "))
    }
}

/// Opens an encrypted connection to an address, a host with a port, of a node whose certificate has this name.
pub(super) async fn dial(
    address: &str,
    name: &str,
    config: Arc<ClientConfig>,
) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    let connecting = async {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let options = SockRef::from(&socket);
        options.set_tcp_keepalive(
            &TcpKeepalive::new().with_time(KEEPALIVE_INTERVAL).with_interval(KEEPALIVE_INTERVAL),
        )?;
        options.set_tcp_user_timeout(Some(SILENCE_MAX))?;
        TlsConnector::from(config).connect(name, socket).await
    };
    timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Connects as [`dial`] does, for requests.
pub(super) async fn connect<B>(
    address: &str,
    name: &str,
    config: Arc<ClientConfig>,
) -> io::Result<NodeConnection<B>>
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + 'static,
{
    begin(dial(address, name, config).await?).await
}

async fn begin<B>(stream: TlsStream<TcpStream>) -> io::Result<NodeConnection<B>>
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + 'static,
{
    // Sends nothing yet.
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let task = AbortOnDropHandle::new(actors::spawn(async move {
        // An error also ends the request, which reports it.
        let _ = connection.await;
    }));
    Ok(NodeConnection { sender, task })
}
