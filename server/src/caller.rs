//! The caller of a request: address, program, and the host it was sent to.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use config::Networks;
use domain::origin::Origin;
use http::HeaderMap;
use http::header::USER_AGENT;
use media::Connection;
use warp::Filter;

use super::accept::LocalAddr;
use super::admission::RequestPlace;
use super::base_url::{BaseUrl, authority};

/// Maximum length of a stored user agent, in characters.
const AGENT_CHARS_MAX: usize = 255;

/// The node of a cluster that passed a request on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassedBy {
    FullNode,
    /// It may get no secret of a provider.
    EdgeNode,
}

/// The caller of one request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Its peer may be a proxy. The client is [`Caller::address`].
    pub connection: Arc<Connection>,
    pub origin: Origin,
    /// The `User-Agent`; empty if the request has none.
    pub agent: String,
    /// The address that the caller used, without the path of the request.
    pub base_url: BaseUrl,
    /// `None`: the request arrived from the client.
    pub passed_by: Option<PassedBy>,
    /// The kind as which the connection of the request counts.
    pub place: RequestPlace,
}

impl Caller {
    /// Creates the caller of a request with these headers, which arrived at the address `local`.
    pub fn new(connection: Arc<Connection>, origin: Origin, local: SocketAddr, headers: &HeaderMap) -> Self {
        Caller {
            connection,
            origin,
            agent: headers.get(USER_AGENT).map(|it| agent(it.as_bytes())).unwrap_or_default(),
            base_url: BaseUrl::new(headers, origin.is_by_trusted_proxy(), &authority(local)),
            passed_by: None,
            place: RequestPlace::default(),
        }
    }

    /// Returns the address of the client, also behind a trusted proxy.
    pub fn address(&self) -> IpAddr {
        self.origin.address()
    }

    /// Returns true if the client belongs to one of these networks. This is the only check of networks.
    pub fn is_in(&self, networks: &Networks) -> bool {
        self.origin.is_in(networks)
    }
}

/// Extracts the caller. Never rejects, because the connection and the origin are added to every request.
pub fn caller() -> impl Filter<Extract = (Caller,), Error = warp::Rejection> + Copy {
    warp::ext::get::<Arc<Connection>>()
        .and(warp::ext::get::<LocalAddr>())
        .and(warp::ext::get::<Origin>())
        .and(warp::header::headers_cloned())
        .and(warp::ext::optional::<PassedBy>())
        .and(warp::ext::optional::<RequestPlace>())
        .map(|connection, LocalAddr(local), origin, headers: HeaderMap, passed_by, place: Option<_>| Caller {
            passed_by,
            place: place.unwrap_or_default(),
            ..Caller::new(connection, origin, local, &headers)
        })
}

/// Cleans a user agent for logs and events: printable characters only, of bounded length.
fn agent(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().filter(|it| !it.is_control()).take(AGENT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_agent_is_cleaned_and_shortened() {
        assert_eq!(agent(b"VLC/3.0.20\tx"), "VLC/3.0.20x");
        assert_eq!(agent(&[b'a'; 1000]).len(), AGENT_CHARS_MAX);
    }
}
