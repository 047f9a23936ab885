//! Opens connections to providers: TCP, TLS over TCP, or in-memory pairs in tests.
//!
//! The addresses of a name are tried one after the other and never at the same time as in RFC 8305, because a provider
//! that counts connections would see all of them. Instead the address that worked last is tried first.

mod names;
pub mod proxy;
mod reset;
#[cfg(test)]
mod tests;
pub mod trust;

use std::future::Future;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tracing::debug;

use self::names::Names;
use self::reset::ResetOnDrop;
use self::trust::{CertificateTrust, TlsConfigs};
use crate::certificate::RefusedCertificate;
use crate::error::{Cause, UpstreamError};

pub use self::proxy::{Proxy, ProxyProtocol};

/// Minimum time for an address of a name. An address that would get less is left for the next attempt.
const SHARE_MIN: Duration = Duration::from_secs(1);
/// Maximum time for an address that is not the last one of its name, even if much more time remains. It covers one lost
/// SYN, which is sent again after a second.
const SHARE_MAX: Duration = Duration::from_millis(1500);

/// A connection that is reset when it is dropped.
///
/// A dropped socket must be gone for the provider at once. For TCP this is a reset, which the dialer
/// arranges.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Socket for T {}

/// A socket of any type.
pub type BoxedSocket = Box<dyn Socket>;

/// The future of a connection attempt.
pub type DialFuture<'a> = Pin<Box<dyn Future<Output = Result<Dialled, UpstreamError>> + Send + 'a>>;

/// The future of a name resolution.
pub type ResolveFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<SocketAddr>, UpstreamError>> + Send + 'a>>;

/// The future of a TLS handshake.
pub type SecureFuture<'a> = Pin<Box<dyn Future<Output = Result<BoxedSocket, UpstreamError>> + Send + 'a>>;

/// Decides whether an address may be connected to, or returns the reason why not. It is asked about numeric addresses,
/// after name resolution, so that a name cannot lead elsewhere later.
pub type AddressCheck<'a> = dyn Fn(SocketAddr) -> Result<(), String> + Send + Sync + 'a;

/// A new connection.
pub struct Dialled {
    /// The connection.
    pub socket: BoxedSocket,
    /// The address of the server; `None` for connections in memory.
    pub peer: Option<SocketAddr>,
}

/// Opens connections.
///
/// Dropping the future closes all its sockets. It never holds two connections at the same time.
pub trait Dial: Send + Sync + 'static {
    /// Opens one connection within `timeout`, which covers names, TCP and TLS. Only addresses that `check` accepts are
    /// connected to.
    fn dial<'a>(
        &'a self,
        address: &'a DialAddress,
        check: &'a AddressCheck<'a>,
        timeout: Duration,
    ) -> DialFuture<'a>;

    /// Returns the addresses of a host within `timeout`, for a program that connects by itself.
    fn resolve<'a>(&'a self, address: &'a DialAddress, timeout: Duration) -> ResolveFuture<'a>;

    /// Begins TLS with a host over an open connection, for a server behind a proxy. The caller limits the time.
    fn secure<'a>(&'a self, _socket: BoxedSocket, _host: &'a str) -> SecureFuture<'a> {
        Box::pin(async { Err(Cause::Tls("not available".into()).into()) })
    }

    /// Returns a dialer that accepts these certificates; `None` if it has no TLS.
    fn trusting(&self, _trust: &CertificateTrust) -> Option<Arc<dyn Dial>> {
        None
    }
}

/// The host and port to connect to. Contains no credentials and may be printed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DialAddress {
    /// Whether to use TLS.
    pub secure: bool,
    /// Host name or IP address; an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl fmt::Display for DialAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Settings of [`TcpDial`].
#[derive(Debug, Clone, Default)]
pub struct DialSettings {
    /// Additional certificate authorities, besides those of the machine.
    pub authorities: Vec<CertificateDer<'static>>,
}

/// Connects by TCP, with TLS if the address requires it.
pub struct TcpDial {
    tls: Arc<TlsConfigs>,
    trust: CertificateTrust,
    names: Arc<Names>,
}

impl TcpDial {
    /// Creates a dialer that trusts the authorities of the machine and of `settings`. Share it: it remembers addresses and
    /// TLS sessions.
    ///
    /// # Errors
    /// When the TLS library rejects its own defaults.
    pub fn new(settings: DialSettings) -> Result<Self, UpstreamError> {
        let (tls, trust) = (TlsConfigs::new(settings.authorities), CertificateTrust::default());
        // Reads the certificates of the machine, which takes a moment.
        tls.get(&trust)?;
        let lookup = |host: &str, port| (host, port).to_socket_addrs().map(Iterator::collect);
        Ok(Self { tls: Arc::new(tls), trust, names: Arc::new(Names::new(Arc::new(lookup))) })
    }

    /// Connects to the first address that answers. Each address gets a share of the remaining time, so that one
    /// unreachable address cannot use up the time of the others, and the last one gets what is left. The address that
    /// answered is tried first next time; if none did, the first one that there was no time for.
    async fn connect_in_turn(
        &self,
        address: &DialAddress,
        addresses: &[SocketAddr],
        deadline: Instant,
    ) -> Result<Dialled, UpstreamError> {
        let mut last = Cause::ConnectTimeout;
        for (index, &it) in addresses.iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(share) = share(left, addresses.len() - index, index == 0) else {
                self.names.remember(address, it);
                break;
            };
            last = match timeout(share, self.connect(address, it)).await {
                Ok(Ok(socket)) => {
                    self.names.remember(address, it);
                    return Ok(Dialled { socket, peer: Some(it) });
                }
                // Another address of the same name presents the same certificate.
                Ok(Err(cause @ (Cause::Tls(_) | Cause::Certificate(_)))) => return Err(cause.into()),
                Ok(Err(cause)) => cause,
                Err(_) => Cause::ConnectTimeout,
            };
            debug!(address = %it, "connection attempt failed: {last}");
        }
        Err(last.into())
    }

    async fn connect(&self, address: &DialAddress, it: SocketAddr) -> Result<BoxedSocket, Cause> {
        let connect = |error: io::Error| Cause::Connect(io_text(&error));
        let stream = TcpStream::connect(it).await.map_err(connect)?;
        stream.set_nodelay(true).map_err(connect)?;
        // Set before anything else, so that a socket dropped at any point is gone for the provider at once.
        let stream = ResetOnDrop::new(stream).map_err(connect)?;
        if !address.secure {
            return Ok(Box::new(stream));
        }
        self.begin_tls(stream, &address.host).await
    }

    async fn begin_tls(&self, stream: impl Socket + 'static, host: &str) -> Result<BoxedSocket, Cause> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Cause::Tls("the host name is not valid in a certificate".into()))?;
        let config = self.tls.get(&self.trust).map_err(|error| error.cause().clone())?;
        match TlsConnector::from(config).connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(tls_cause(&error)),
        }
    }
}

impl Dial for TcpDial {
    fn dial<'a>(
        &'a self,
        address: &'a DialAddress,
        check: &'a AddressCheck<'a>,
        limit: Duration,
    ) -> DialFuture<'a> {
        Box::pin(async move {
            let deadline = Instant::now() + limit;
            let dialled = async {
                let addresses = self.names.resolve(address, time_for_lookup(limit)).await?;
                let addresses = permitted(addresses, check)?;
                self.connect_in_turn(address, &addresses, deadline).await
            };
            match timeout_at(deadline, dialled).await {
                Ok(result) => result,
                Err(_) => Err(Cause::ConnectTimeout.into()),
            }
        })
    }

    fn resolve<'a>(&'a self, address: &'a DialAddress, limit: Duration) -> ResolveFuture<'a> {
        Box::pin(async move { Ok(self.names.resolve(address, limit).await?) })
    }

    fn secure<'a>(&'a self, socket: BoxedSocket, host: &'a str) -> SecureFuture<'a> {
        Box::pin(async move { Ok(self.begin_tls(socket, host).await?) })
    }

    fn trusting(&self, trust: &CertificateTrust) -> Option<Arc<dyn Dial>> {
        let dial = Self { tls: self.tls.clone(), trust: trust.clone(), names: self.names.clone() };
        Some(Arc::new(dial))
    }
}

/// Returns the addresses that may be connected to.
fn permitted(addresses: Vec<SocketAddr>, check: &AddressCheck<'_>) -> Result<Vec<SocketAddr>, Cause> {
    let mut refusal = None;
    let is_permitted = |it: &SocketAddr| check(*it).map_err(|reason| refusal = Some(reason)).is_ok();
    let permitted: Vec<_> = addresses.into_iter().filter(is_permitted).collect();
    match refusal {
        Some(reason) if permitted.is_empty() => Err(Cause::Forbidden(reason)),
        _ => Ok(permitted),
    }
}

/// Returns how much of the time for a connection its name resolution may use: the rest is enough for one address.
fn time_for_lookup(limit: Duration) -> Duration {
    limit.saturating_sub(SHARE_MIN).max(limit / 2)
}

/// Returns the time for the next one of `n_left` addresses, or `None` if too little is left. The first one is always
/// tried.
fn share(left: Duration, n_left: usize, is_first: bool) -> Option<Duration> {
    if left < SHARE_MIN && !is_first {
        return None;
    }
    let n_left = u32::try_from(n_left).unwrap_or(u32::MAX);
    let share = (left / n_left).clamp(SHARE_MIN, SHARE_MAX);
    // No time that is too short for the next address is kept back.
    let is_last = n_left == 1 || left < share + SHARE_MIN;
    Some(if is_last { left } else { share })
}

/// Converts an error of the handshake: a TLS error if the peer caused it, otherwise a broken connection.
fn tls_cause(error: &io::Error) -> Cause {
    if let Some(refused) = RefusedCertificate::in_error(error) {
        return Cause::Certificate(Box::new(refused.clone()));
    }
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(error) => Cause::Tls(error.to_string()),
        None => Cause::Connect(format!("{} during the TLS handshake", io_text(error))),
    }
}

/// Returns only the kind of the error, because the full text may contain the address.
fn io_text(error: &io::Error) -> String {
    error.kind().to_string()
}
