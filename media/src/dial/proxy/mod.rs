//! Connects to providers through a proxy: first to the proxy, then by `CONNECT` or SOCKS 5 to the provider, then with TLS
//! inside if the provider needs it. One connection in all of these steps.
//!
//! The proxy resolves the name of the provider, so this machine sends no question about it to its name server. Therefore
//! the rule for addresses can judge a provider only where its address is numeric.

mod connect;
mod socks;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

use super::{
    AddressCheck, BoxedSocket, Dial, DialAddress, DialFuture, Dialled, ResolveFuture, SecureFuture, io_text,
};
use crate::error::{Cause, UpstreamError};

/// Stands for a server behind a proxy, whose address is unknown: what it names is judged as if it was in the internet.
const SOMEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// The protocol of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyProtocol {
    /// HTTP with `CONNECT`.
    Http,
    /// The same over TLS.
    Https,
    /// SOCKS 5, with names resolved by the proxy.
    Socks5,
}

/// A proxy. `Debug` prints no login.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Its protocol.
    pub protocol: ProxyProtocol,
    /// Host name or IP address; an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// User and password.
    pub login: Option<(String, String)>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({:?} {}:{})", self.protocol, self.host, self.port)
    }
}

/// A dialer that connects through a proxy.
pub(crate) struct ProxyDial {
    inner: Arc<dyn Dial>,
    /// Begins TLS with the provider behind the proxy.
    inside: Arc<dyn Dial>,
    proxy: Arc<Proxy>,
}

impl ProxyDial {
    /// Creates a dialer that reaches the proxy with `inner`, and begins TLS behind it with `inside`.
    pub(crate) fn new(inner: Arc<dyn Dial>, inside: Arc<dyn Dial>, proxy: Arc<Proxy>) -> Self {
        Self { inner, inside, proxy }
    }

    async fn connect(&self, address: &DialAddress, deadline: Instant) -> Result<BoxedSocket, UpstreamError> {
        let Proxy { protocol, host, port, .. } = &*self.proxy;
        let server =
            DialAddress { secure: *protocol == ProxyProtocol::Https, host: host.clone(), port: *port };
        let left = deadline.saturating_duration_since(Instant::now());
        // An admin typed the address of the proxy, and such addresses lead anywhere.
        let dialled = self.inner.dial(&server, &|_| Ok(()), left).await.map_err(proxy_error)?;
        let mut socket = dialled.socket;
        tunnel(&mut socket, &self.proxy, address).await?;
        if address.secure { self.inside.secure(socket, &address.host).await } else { Ok(socket) }
    }
}

impl Dial for ProxyDial {
    fn dial<'a>(
        &'a self,
        address: &'a DialAddress,
        check: &'a AddressCheck<'a>,
        limit: Duration,
    ) -> DialFuture<'a> {
        Box::pin(async move {
            let numeric = numeric(&address.host);
            if let Some(numeric) = numeric {
                check(SocketAddr::new(numeric, address.port)).map_err(Cause::Forbidden)?;
            }
            let deadline = Instant::now() + limit;
            let connected = timeout_at(deadline, self.connect(address, deadline)).await;
            let socket = connected.unwrap_or_else(|_| Err(Cause::ConnectTimeout.into()))?;
            let peer = SocketAddr::new(numeric.unwrap_or(SOMEWHERE), address.port);
            Ok(Dialled { socket, peer: Some(peer) })
        })
    }

    fn resolve<'a>(&'a self, _: &'a DialAddress, _: Duration) -> ResolveFuture<'a> {
        // Programs get no address: they would connect around the proxy.
        Box::pin(async { Err(Cause::Unsupported("a program behind this proxy".into()).into()) })
    }

    fn secure<'a>(&'a self, socket: BoxedSocket, host: &'a str) -> SecureFuture<'a> {
        self.inside.secure(socket, host)
    }
}

/// Returns the address of a host that is not a name, or a name that means the machine of the proxy.
fn numeric(host: &str) -> Option<IpAddr> {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let is_local = name == "localhost" || name.ends_with(".localhost");
    host.parse().ok().or(is_local.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)))
}

/// Converts an error of the connection to the proxy itself.
fn proxy_error(error: UpstreamError) -> UpstreamError {
    match error.cause() {
        Cause::Dns => Cause::Proxy("its name has no address".into()).into(),
        Cause::Connect(why) => Cause::Proxy(format!("connection failed: {why}")).into(),
        Cause::ConnectTimeout => Cause::Proxy("it does not answer".into()).into(),
        Cause::Tls(why) => Cause::Proxy(format!("TLS handshake failed: {why}")).into(),
        Cause::Certificate(refused) => Cause::Proxy(refused.to_string()).into(),
        _ => error,
    }
}

/// Asks a proxy to connect to a server. Afterwards the socket leads to that server.
///
/// # Errors
/// The proxy refuses, cannot reach the server, or does not speak its protocol.
async fn tunnel<S>(socket: &mut S, proxy: &Proxy, to: &DialAddress) -> Result<(), UpstreamError>
where
    S: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    let login = proxy.login.as_ref();
    let done = match proxy.protocol {
        ProxyProtocol::Http | ProxyProtocol::Https => connect::handshake(socket, login, to).await,
        ProxyProtocol::Socks5 => socks::handshake(socket, login, to).await,
    };
    done.map_err(UpstreamError::new)
}

/// Runs the handshake of a proxy that answers with these bytes, whatever it is asked.
#[cfg(any(test, feature = "testing"))]
pub async fn handshake_with(answer: &[u8], proxy: &Proxy, to: &DialAddress) -> Result<usize, UpstreamError> {
    let mut socket = tokio::io::join(answer, tokio::io::sink());
    tunnel(&mut socket, proxy, to).await?;
    Ok(socket.reader().len())
}

async fn send<S: AsyncWrite + Unpin + ?Sized>(socket: &mut S, bytes: &[u8]) -> Result<(), Cause> {
    let broken = |error: std::io::Error| Cause::Proxy(format!("the connection broke: {}", io_text(&error)));
    socket.write_all(bytes).await.map_err(broken)?;
    socket.flush().await.map_err(broken)
}

async fn receive<S: AsyncRead + Unpin + ?Sized, const N: usize>(socket: &mut S) -> Result<[u8; N], Cause> {
    let mut bytes = [0; N];
    match socket.read_exact(&mut bytes).await {
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Err(Cause::Proxy("it closed the connection".into()))
        }
        Err(error) => Err(Cause::Proxy(format!("the connection broke: {}", io_text(&error)))),
    }
}
