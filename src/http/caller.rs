//! Who is calling, once known. Until there are users: from which address and with which program.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::HeaderMap;
use http::header::{HOST, USER_AGENT};
use media::Connection;
use warp::Filter;

use super::accept::LocalAddr;

/// Characters of a user agent that are worth keeping.
const AGENT_CHARS_MAX: usize = 255;

/// One request's caller.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) connection: Arc<Connection>,
    /// What the program calls itself; empty when it does not say.
    pub(crate) agent: String,
    /// Host and port by which the caller reached us, fit for a URL.
    pub(crate) host: String,
}

impl Caller {
    pub(crate) fn address(&self) -> IpAddr {
        self.connection.peer.ip()
    }
}

/// The caller of the present request. Never rejects: every request comes in by our own accept loop.
pub(crate) fn caller() -> impl Filter<Extract = (Caller,), Error = warp::Rejection> + Copy {
    warp::ext::get::<Arc<Connection>>()
        .and(warp::ext::get::<LocalAddr>())
        .and(warp::header::headers_cloned())
        .map(|connection, LocalAddr(local), headers: HeaderMap| Caller {
            connection,
            agent: headers.get(USER_AGENT).map(|it| agent(it.as_bytes())).unwrap_or_default(),
            host: headers
                .get(HOST)
                .and_then(|it| it.to_str().ok())
                .and_then(host)
                .map_or_else(|| reachable(local), str::to_owned),
        })
}

/// A user agent as it may stand in logs and events: printable and of bounded length.
fn agent(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().filter(|it| !it.is_control()).take(AGENT_CHARS_MAX).collect()
}

/// A `Host` header that may be put into a URL: a name or an address, perhaps with a port. Anything else could
/// smuggle a path, a user or a line end into what we write.
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

/// The address that a connection came in on, as the authority of a URL.
fn reachable(local: SocketAddr) -> String {
    SocketAddr::new(local.ip().to_canonical(), local.port()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_header_is_taken_when_it_is_a_host() {
        for text in
            ["tv.example.com", "tv.example.com:9191", "192.168.1.5:9191", "[::1]:9191", "[fd00::5]", "nas_1"]
        {
            assert_eq!(host(text), Some(text));
        }
    }

    #[test]
    fn a_host_header_that_could_smuggle_something_is_not_taken() {
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
    fn without_a_host_the_address_of_the_connection_stands_in() {
        let local = |text: &str| reachable(text.parse().unwrap());
        assert_eq!(local("192.168.1.5:9191"), "192.168.1.5:9191");
        assert_eq!(local("[::ffff:192.168.1.5]:9191"), "192.168.1.5:9191");
        assert_eq!(local("[fd00::5]:9191"), "[fd00::5]:9191");
    }

    #[test]
    fn a_user_agent_is_printable_and_short() {
        assert_eq!(agent(b"VLC/3.0.20\tx"), "VLC/3.0.20x");
        assert_eq!(agent(&[b'a'; 1000]).len(), AGENT_CHARS_MAX);
    }
}
