//! The address that a client used to reach the gateway: scheme, host, port, and the path that a proxy removed.
//!
//! A proxy names them in `X-Forwarded-Proto`, `X-Forwarded-Host`, `X-Forwarded-Port` and `X-Forwarded-Prefix`; only those
//! of trusted proxies count. Of several values the first one counts, which the proxy next to the client wrote: a client
//! that sends such a header itself only changes the addresses in its own answers.

use std::fmt;
use std::net::SocketAddr;

use http::HeaderMap;
use http::header::{HOST, HeaderName};

const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// Maximum length of the path in front of all addresses, in bytes.
const PREFIX_BYTES_MAX: usize = 255;

/// Scheme, host, port and path prefix of an address, safe to put into a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    is_https: bool,
    /// Host and port. A default port is left out, unless the client wrote it.
    authority: String,
    /// Empty, or a path that begins with a slash and does not end with one.
    prefix: String,
}

impl BaseUrl {
    /// Reads the headers of a request. `local` is the authority for requests without a valid one.
    pub(super) fn new(headers: &HeaderMap, is_by_trusted_proxy: bool, local: &str) -> Self {
        let forwarded = |name: &HeaderName| {
            let value = headers.get(name).filter(|_| is_by_trusted_proxy)?.to_str().ok()?;
            Some(value.split(',').next().unwrap_or_default().trim())
        };
        let is_https = forwarded(&PROTO).is_some_and(|it| it.eq_ignore_ascii_case("https"));
        let sent = || headers.get(HOST).and_then(|it| it.to_str().ok()).and_then(host);
        let named = forwarded(&FORWARDED_HOST).and_then(host).or_else(sent).unwrap_or(local);
        let port = forwarded(&PORT).and_then(|it| it.parse::<u16>().ok().filter(|it| *it != 0));
        let default_port = if is_https { 443 } else { 80 };
        let authority = match port.filter(|it| *it != default_port && !has_port(named)) {
            Some(port) => format!("{named}:{port}"),
            None => named.to_owned(),
        };
        let prefix = forwarded(&PREFIX).and_then(prefix).unwrap_or_default().to_owned();
        Self { is_https, authority, prefix }
    }

    /// Returns host and port.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Replaces host and port.
    pub fn with_authority(self, authority: String) -> Self {
        Self { authority, ..self }
    }
}

/// Formats the address without a slash at the end.
impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.prefix)
    }
}

fn has_port(host: &str) -> bool {
    host.rsplit_once(']').map_or(host, |it| it.1).contains(':')
}

/// Returns a path prefix that is safe to put into a URL, without a slash at the end.
fn prefix(text: &str) -> Option<&str> {
    let text = text.trim_end_matches('/');
    let is_safe = |it: u8| it.is_ascii_alphanumeric() || b"/-._~%".contains(&it);
    let is_path = text.starts_with('/') && !text.contains("//") && !text.contains("..");
    (is_path && text.len() <= PREFIX_BYTES_MAX && text.bytes().all(is_safe)).then_some(text)
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
pub(super) fn authority(local: SocketAddr) -> String {
    SocketAddr::new(local.ip().to_canonical(), local.port()).to_string()
}

#[cfg(test)]
mod tests {
    use http::header::HeaderValue;

    use super::*;

    fn url(lines: &[(&'static str, &'static str)], is_by_trusted_proxy: bool) -> String {
        let line = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let headers = lines.iter().map(line).collect();
        BaseUrl::new(&headers, is_by_trusted_proxy, "192.0.2.1:9191").to_string()
    }

    const HOST_LINE: (&str, &str) = ("host", "tv.example:9191");

    #[test]
    fn a_trusted_proxy_names_scheme_host_port_and_path() {
        let (proto, port, prefix) = ("x-forwarded-proto", "x-forwarded-port", "x-forwarded-prefix");
        let host = "x-forwarded-host";
        for (lines, expected) in [
            (&[][..], "http://192.0.2.1:9191"),
            (&[HOST_LINE], "http://tv.example:9191"),
            (&[HOST_LINE, (proto, "https")], "https://tv.example:9191"),
            (&[HOST_LINE, (proto, "HTTPS, http")], "https://tv.example:9191"),
            (&[HOST_LINE, (proto, "javascript")], "http://tv.example:9191"),
            (&[HOST_LINE, (host, "out.example, in.example"), (proto, "https")], "https://out.example"),
            (&[HOST_LINE, (host, "a/b")], "http://tv.example:9191"),
            (&[HOST_LINE, (host, "out.example:8443"), (port, "443")], "http://out.example:8443"),
            (&[("host", "tv.example"), (proto, "https"), (port, "443")], "https://tv.example"),
            (&[("host", "tv.example"), (proto, "https"), (port, "8443")], "https://tv.example:8443"),
            (&[("host", "[fd00::5]"), (port, "8080")], "http://[fd00::5]:8080"),
            (&[("host", "tv.example"), (port, "0")], "http://tv.example"),
            (&[("host", "tv.example"), (port, "x")], "http://tv.example"),
            (&[("host", "tv.example"), (prefix, "/tv/")], "http://tv.example/tv"),
            (&[("host", "tv.example"), (prefix, "/")], "http://tv.example"),
            (&[("host", "tv.example"), (prefix, "//evil.example")], "http://tv.example"),
            (&[("host", "tv.example"), (prefix, "/a/../b")], "http://tv.example"),
            (&[("host", "tv.example"), (prefix, "/a\"b")], "http://tv.example"),
            (&[("host", "tv.example"), (prefix, "tv")], "http://tv.example"),
        ] {
            assert_eq!(url(lines, true), expected, "{lines:?}");
        }
    }

    #[test]
    fn headers_of_other_proxies_are_ignored() {
        let lines = [
            HOST_LINE,
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "evil.example"),
            ("x-forwarded-port", "1"),
            ("x-forwarded-prefix", "/evil"),
        ];
        assert_eq!(url(&lines, false), "http://tv.example:9191");
    }

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
}
