//! Requests through the proxy of an account, which resolves the names of servers.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use domain::account::Account;
use domain::account_addresses::HostFailure;
use domain::proxy::{ProxyAddress, ProxyScheme};
use reqwest::{ClientBuilder, Proxy, Response, StatusCode, Url};
use tokio::net::lookup_host;
use tokio::time::timeout;
use url::Host;

use super::{Fetch, FetchError, Way, with_causes};
use crate::certificates::certificate_trust;
use crate::egress::Egress;

/// Stands for a server behind a proxy, whose address is unknown: what it names is judged as if it was in the internet.
const SOMEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

impl Fetch {
    /// Returns a client for the servers of an account from this machine: through its proxy, if it has one, and with the
    /// certificates that it accepts.
    pub fn to_account_servers(&self, account: &Account) -> Self {
        let way = account.proxy.clone().map_or(Way::Direct, |it| Way::Proxy(Arc::new(it)));
        let check = Some(&account.certificates).filter(|it| !it.is_default());
        Self { way, trust: check.map(certificate_trust), ..self.clone() }
    }

    /// Returns a client whose connections lead to the proxy. A server is judged only if its address is numeric.
    pub(super) async fn through_proxy(
        &self,
        proxy: &ProxyAddress,
        url: &Url,
        egress: &Egress,
    ) -> Result<ClientBuilder, FetchError> {
        if let Some(numeric) = numeric(url) {
            let host = url.host_str().unwrap_or_default().to_owned();
            egress.check(numeric).map_err(|reason| FetchError::Forbidden { host, reason })?;
        }
        let found = match proxy.host.parse() {
            Ok(ip) => vec![SocketAddr::new(ip, proxy.port)],
            Err(_) => {
                let looked_up = lookup_host((proxy.host.as_str(), proxy.port));
                match timeout(self.limits.connect_timeout, looked_up).await {
                    // An admin typed the address of the proxy, and such addresses lead anywhere.
                    Ok(found) => found.map_err(FetchError::ProxyName)?.collect(),
                    Err(_) => return Err(FetchError::ProxyName(io::ErrorKind::TimedOut.into())),
                }
            }
        };
        let address = proxy.expose();
        let address = match proxy.scheme {
            // The library resolves names itself for the scheme without the letter.
            ProxyScheme::Socks5 => address.replacen("socks5://", "socks5h://", 1),
            ProxyScheme::Http | ProxyScheme::Https => address,
        };
        let proxy = Proxy::all(address).map_err(|error| FetchError::Client(error.without_url()))?;
        Ok(self.client_for(found)?.proxy(proxy))
    }

    /// Turns errors of the proxy into such.
    pub(super) fn judged(
        &self,
        host: &str,
        sent: Result<Response, FetchError>,
    ) -> Result<Response, FetchError> {
        if !matches!(self.way, Way::Proxy(_)) {
            return sent;
        }
        match sent {
            Ok(response) if response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                Err(FetchError::ProxyLogin)
            }
            Err(FetchError::Transfer { cause, .. }) if cause.is_connect() => {
                let text = with_causes(&cause);
                let is_login = LOGIN_TEXTS.iter().any(|it| text.contains(it));
                if is_login {
                    Err(FetchError::ProxyLogin)
                } else {
                    Err(FetchError::Proxy { host: host.to_owned(), cause })
                }
            }
            sent => sent,
        }
    }

    /// Returns the address of the server that answered. With a proxy, the connection leads to the proxy instead.
    pub(super) fn peer_of(&self, url: &Url, response: &Response) -> Option<SocketAddr> {
        match self.way {
            Way::Proxy(_) => {
                let port = url.port_or_known_default().unwrap_or_default();
                Some(numeric(url).unwrap_or(SocketAddr::new(SOMEWHERE, port)))
            }
            Way::Direct | Way::Node(_) => response.remote_addr(),
        }
    }
}

/// Parts of the texts of the library for a login that a proxy refuses.
const LOGIN_TEXTS: [&str; 4] = [
    "proxy authorization required",
    "credentials not accepted",
    "does not support user/pass",
    "implements authentication incorrectly",
];
/// Parts of its texts for a proxy that is itself out of reach.
const PROXY_TEXTS: [&str; 2] = ["failed to create underlying connection", "tcp connect error"];

impl FetchError {
    /// Returns how the server of a request failed. `host` is the host that was asked first: a failure of another one that
    /// it redirected to says nothing about it.
    pub(crate) fn host_failure(&self, asked: &str) -> HostFailure {
        let is_asked = |host: &str| host.eq_ignore_ascii_case(asked);
        match self {
            Self::Name { host, .. } if is_asked(host) => HostFailure::NoAddress,
            Self::Transfer { host, cause } if is_asked(host) => {
                if cause.is_timeout() {
                    HostFailure::TimedOut
                } else if cause.is_connect() {
                    HostFailure::NoConnection
                } else {
                    HostFailure::Other
                }
            }
            Self::Certificate { host, .. } if is_asked(host) => HostFailure::Tls,
            Self::Status { host, status, .. } if is_asked(host) => HostFailure::Status(status.as_u16()),
            Self::Proxy { host, cause } if is_asked(host) => {
                let text = with_causes(cause);
                let is_proxy = PROXY_TEXTS.iter().any(|it| text.contains(it));
                if is_proxy { HostFailure::Other } else { HostFailure::NotReachedByProxy }
            }
            Self::AtNode { error, .. } => error.host_failure,
            _ => HostFailure::Other,
        }
    }
}

/// Returns the address of a server whose host is not a name, or a name that means the machine of the proxy.
fn numeric(url: &Url) -> Option<SocketAddr> {
    let port = url.port_or_known_default().unwrap_or_default();
    let ip = match url.host()? {
        Host::Ipv4(it) => it.into(),
        Host::Ipv6(it) => it.into(),
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            let is_local = name == "localhost" || name.ends_with(".localhost");
            is_local.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST))?
        }
    };
    Some(SocketAddr::new(ip, port))
}
