//! The caller of a request: address, program, and the host it was sent to.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::HeaderMap;
use http::header::{HOST, USER_AGENT};
use media::Connection;
use warp::Filter;

use super::accept::LocalAddr;
use super::network::Networks;
use super::origin::Origin;

/// Maximum length of a stored user agent, in characters.
const AGENT_CHARS_MAX: usize = 255;

/// The caller of one request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// Its peer may be a proxy. The client is [`Caller::address`].
    pub(crate) connection: Arc<Connection>,
    pub(crate) origin: Origin,
    /// The `User-Agent`; empty if the request has none.
    pub(crate) agent: String,
    /// Host and port that the caller used, safe to put into a URL.
    pub(crate) host: String,
}

impl Caller {
    /// Returns the address of the client, also behind a trusted proxy.
    pub(crate) fn address(&self) -> IpAddr {
        self.origin.address()
    }

    /// Returns true if the client belongs to one of these networks. This is the only check of networks.
    pub(crate) fn is_in(&self, networks: &Networks) -> bool {
        self.origin.is_in(networks)
    }
}

/// Extracts the caller. Never rejects, because the connection and the origin are added to every request.
pub(crate) fn caller() -> impl Filter<Extract = (Caller,), Error = warp::Rejection> + Copy {
    warp::ext::get::<Arc<Connection>>()
        .and(warp::ext::get::<LocalAddr>())
        .and(warp::ext::get::<Origin>())
        .and(warp::header::headers_cloned())
        .map(|connection, LocalAddr(local), origin, headers: HeaderMap| Caller {
            connection,
            origin,
            agent: headers.get(USER_AGENT).map(|it| agent(it.as_bytes())).unwrap_or_default(),
            host: headers
                .get(HOST)
                .and_then(|it| it.to_str().ok())
                .and_then(host)
                .map_or_else(|| authority(local), str::to_owned),
        })
}

/// Cleans a user agent for logs and events: printable characters only, of bounded length.
fn agent(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().filter(|it| !it.is_control()).take(AGENT_CHARS_MAX).collect()
}

/// Returns a `Host` header that is safe to put into a URL: a name or an address, with an optional port. Anything else
/// could inject a path, a user name or a line break.
fn host(text: &str) -> Option<&str> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']')?;
            address.parse::<std::net::Ipv6Addr>().ok()?;
            (address, rest.strip_prefix(':').or(if rest.is_empty() { None } else { Some("?") }))
        }
        None => match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    let is_name = !name.is_empty()
        && name.len() <= 253
        && name.bytes().all(|it| it.is_ascii_alphanumeric() || b".-_:".contains(&it));
    let is_port = port.is_none_or(|it| it.bytes().all(|it| it.is_ascii_digit()) && it.parse::<u16>().is_ok());
    (is_name && is_port).then_some(text)
}

/// Formats the local address of a connection as the authority of a URL.
fn authority(local: SocketAddr) -> String {
    SocketAddr::new(local.ip().to_canonical(), local.port()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_host_header_is_accepted() {
        for text in
            ["tv.example.com", "tv.example.com:9191", "192.168.1.5:9191", "[::1]:9191", "[fd00::5]", "nas_1"]
        {
            assert_eq!(host(text), Some(text));
        }
    }

    #[test]
    fn a_host_header_that_could_inject_text_into_a_url_is_rejected() {
        for text in [
            "",
            ":9191",
            "a b",
            "a/b",
            "user@host",
            "a\"b",
            "a:b",
            "a:99999",
            "a:+1",
            "[::1",
            "[::1]x",
            "[tv]:1",
            "a?b",
            "a#b",
            "[::1]:",
            "host:",
        ] {
            assert_eq!(host(text), None, "{text}");
        }
    }

    #[test]
    fn without_a_host_header_the_local_address_is_used() {
        let local = |text: &str| authority(text.parse().unwrap());
        assert_eq!(local("192.168.1.5:9191"), "192.168.1.5:9191");
        assert_eq!(local("[::ffff:192.168.1.5]:9191"), "192.168.1.5:9191");
        assert_eq!(local("[fd00::5]:9191"), "[fd00::5]:9191");
    }

    #[test]
    fn a_user_agent_is_cleaned_and_shortened() {
        assert_eq!(agent(b"VLC/3.0.20\tx"), "VLC/3.0.20x");
        assert_eq!(agent(&[b'a'; 1000]).len(), AGENT_CHARS_MAX);
    }
}
