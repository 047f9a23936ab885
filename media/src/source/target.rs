//! Parses an address into host, path and login.

use std::fmt;

use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use url::{Host, Url};

use crate::dial::DialAddress;
use crate::error::{Cause, UpstreamError};

/// Maximum length of an address, which also bounds redirects.
const URL_BYTES_MAX: usize = 8192;

/// A parsed HTTP or HTTPS address. `Debug` prints neither login, path nor query.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct HttpTarget {
    pub(crate) address: DialAddress,
    /// Path and query unchanged: panels depend on characters that normalisation would change.
    pub(crate) path: String,
    /// User name and password, decoded.
    pub(crate) login: Option<(String, String)>,
}

impl HttpTarget {
    /// Parses an absolute address.
    pub(crate) fn parse(text: &str) -> Result<Self, Cause> {
        let text = text.trim();
        if text.len() > URL_BYTES_MAX {
            return Err(Cause::Address("too long".into()));
        }
        let url = Url::parse(text).map_err(|error| Cause::Address(error.to_string()))?;
        let secure = match url.scheme() {
            "http" => false,
            "https" => true,
            other => return Err(Cause::Unsupported(format!("the address scheme {other}"))),
        };
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err(Cause::Address("it has no host".into())),
        };
        let port = url.port_or_known_default().ok_or_else(|| Cause::Address("it has no port".into()))?;
        let login = (!url.username().is_empty() || url.password().is_some())
            .then(|| (decode(url.username()), decode(url.password().unwrap_or_default())));
        Ok(Self { address: DialAddress { secure, host, port }, path: path_of(text), login })
    }

    /// Resolves a `Location` header, which may be relative.
    ///
    /// The login is kept only for the same host, as in browsers.
    pub(crate) fn join(&self, location: &str) -> Result<Self, Cause> {
        let location = location.trim();
        if location.is_empty() {
            return Err(Cause::BadRedirect);
        }
        let text = if let Some(rest) = location.strip_prefix("//") {
            format!("{}://{rest}", self.scheme())
        } else if has_scheme(location) {
            location.to_owned()
        } else if location.starts_with('/') {
            format!("{}://{}{location}", self.scheme(), self.address)
        } else {
            let base = format!("{}://{}{}", self.scheme(), self.address, self.path);
            let base = Url::parse(&base).map_err(|_| Cause::BadRedirect)?;
            base.join(location).map_err(|_| Cause::BadRedirect)?.to_string()
        };
        let mut target = Self::parse(&text).map_err(|cause| match cause {
            Cause::Unsupported(_) => cause,
            _ => Cause::BadRedirect,
        })?;
        if target.login.is_none() && self.may_share_secrets_with(&target) {
            target.login.clone_from(&self.login);
        }
        Ok(target)
    }

    /// Returns whether secrets for this server may be sent to `other`: the same host and port, or the HTTPS
    /// port of the same host. Another port may belong to another server.
    pub(crate) fn may_share_secrets_with(&self, other: &HttpTarget) -> bool {
        let (own, other) = (&self.address, &other.address);
        let is_same_port = (own.secure, own.port) == (other.secure, other.port);
        let is_upgrade_to_https = (own.secure, own.port, other.secure, other.port) == (false, 80, true, 443);
        own.host.eq_ignore_ascii_case(&other.host) && (is_same_port || is_upgrade_to_https)
    }

    /// Returns the value of the `Host` header.
    pub(crate) fn host_header(&self) -> String {
        let standard = if self.address.secure { 443 } else { 80 };
        let text = self.address.to_string();
        match text.strip_suffix(&format!(":{}", self.address.port)) {
            Some(host) if self.address.port == standard => host.to_owned(),
            _ => text,
        }
    }

    /// Returns the whole address, with its credentials.
    pub(crate) fn expose(&self) -> String {
        let url = format!("{}://{}{}", self.scheme(), self.host_header(), self.path);
        let (Some((user, password)), Ok(mut with_login)) = (&self.login, Url::parse(&url)) else {
            return url;
        };
        // Both succeed for an address with a host.
        let _ = with_login.set_username(user);
        let _ = with_login.set_password(Some(password));
        let login = with_login.as_str().split_once("://").and_then(|it| it.1.split_once('@'));
        // Only the encoded login is taken over: the library would also change the path.
        match login {
            Some((login, _)) => {
                format!("{}://{login}@{}{}", self.scheme(), self.host_header(), self.path)
            }
            None => url,
        }
    }

    fn scheme(&self) -> &'static str {
        if self.address.secure { "https" } else { "http" }
    }
}

impl fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}/…", self.scheme(), self.address)
    }
}

/// Returns the host and port that a program connects to for this address; `None` if it names no host, such as
/// `udp://@:1234`.
///
/// # Errors
/// Programs could take another part of the address for its host than we do.
pub(crate) fn program_address(url: &str) -> Result<Option<DialAddress>, Cause> {
    let url = url.trim();
    let Some((scheme, rest)) = url.split_once("://") else { return Ok(None) };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let is_ambiguous = |it: char| it.is_whitespace() || it.is_control() || matches!(it, '\\' | '|' | '%');
    let (login, host_and_port) = authority.rsplit_once('@').unwrap_or(("", authority));
    if login.contains('@') || login.contains(['\\', '|']) || host_and_port.contains(is_ambiguous) {
        return Err(Cause::Address("its host is ambiguous".into()));
    }
    if host_and_port.is_empty() || host_and_port.starts_with(':') {
        return Ok(None);
    }
    // As an HTTP address, so that every way to write an IP address is understood.
    let secure = scheme.eq_ignore_ascii_case("https");
    let standard_port = if secure { 443 } else { 80 };
    let parsed =
        Url::parse(&format!("http://{host_and_port}/")).map_err(|it| Cause::Address(it.to_string()))?;
    let host = match parsed.host() {
        Some(Host::Domain(name)) => name.to_owned(),
        Some(Host::Ipv4(address)) => address.to_string(),
        Some(Host::Ipv6(address)) => address.to_string(),
        None => return Ok(None),
    };
    Ok(Some(DialAddress { secure, host, port: parsed.port().unwrap_or(standard_port) }))
}

/// Returns whether a text starts with a scheme such as `http:`.
fn has_scheme(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else { return false };
    scheme.starts_with(|it: char| it.is_ascii_alphabetic())
        && scheme.chars().all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it))
}

/// Returns path and query of an absolute address, changed only where HTTP requires it.
fn path_of(text: &str) -> String {
    let rest = text.split_once(':').map_or(text, |(_, rest)| rest).trim_start_matches(['/', '\\']);
    let path = rest.find(['/', '?', '#', '\\']).map_or("", |at| &rest[at..]);
    let path = path.split('#').next().unwrap_or_default();
    let mut out = String::with_capacity(path.len() + 1);
    if !path.starts_with('/') {
        out.push('/');
    }
    let path = path.strip_prefix('\\').unwrap_or(path);
    for byte in path.bytes() {
        match byte {
            b'\t' | b'\r' | b'\n' => {}
            0..=b' ' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x7f.. => {
                out.push_str(&format!("%{byte:02X}"));
            }
            _ => out.push(char::from(byte)),
        }
    }
    out
}

/// Decodes percent-encoding; invalid sequences stay unchanged.
pub(super) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|it| std::str::from_utf8(it).ok());
        match hex.and_then(|it| u8::from_str_radix(it, 16).ok()) {
            Some(byte) if bytes[at] == b'%' => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Returns the target of a redirect; `None` for other responses.
pub(crate) fn location(status: StatusCode, headers: &HeaderMap) -> Option<Result<String, UpstreamError>> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    // `Location` should be ASCII, but is not always.
    let location = headers.get(LOCATION).map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned());
    Some(location.ok_or_else(|| Cause::BadRedirect.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_parsed_and_its_path_stays_unchanged() {
        let check = |text: &str, address: &str, path: &str, host: &str| {
            let target = HttpTarget::parse(text).unwrap();
            assert_eq!(target.address.to_string(), address, "{text}");
            assert_eq!(target.path, path, "{text}");
            assert_eq!(target.host_header(), host, "{text}");
        };
        check("http://tv.example/live/u/p/1.ts", "tv.example:80", "/live/u/p/1.ts", "tv.example");
        check("http://tv.example:8080/a?b=c#d", "tv.example:8080", "/a?b=c", "tv.example:8080");
        check("https://tv.example", "tv.example:443", "/", "tv.example");
        check("http://tv_1.example?x=1", "tv_1.example:80", "/?x=1", "tv_1.example");
        check("http://u:p@[::1]:81/x", "[::1]:81", "/x", "[::1]:81");
        check("http://a/b/../c/./d//e%2fF%zz", "a:80", "/b/../c/./d//e%2fF%zz", "a");
        check("http://a/ü b|c", "a:80", "/%C3%BC%20b%7Cc", "a");
        check("HTTP://A/x", "a:80", "/x", "a");
    }

    #[test]
    fn an_address_is_written_as_it_was_parsed() {
        for text in [
            "http://tv.example/live/u/p/1.m3u8",
            "https://tv.example:8443/a/../b//c%2f?d=e@f",
            "http://u:p@[::1]:81/x",
            "http://user%40home:p%3Ass@a/x",
        ] {
            assert_eq!(HttpTarget::parse(text).unwrap().expose(), text);
        }
        assert_eq!(HttpTarget::parse("HTTP://A:80/x y#z").unwrap().expose(), "http://a/x%20y");
    }

    #[test]
    fn a_login_is_decoded_and_never_printed() {
        let target = HttpTarget::parse("http://user%40home:p%3Ass@a:81/secret?token=1").unwrap();
        assert_eq!(target.login, Some(("user@home".into(), "p:ss".into())));
        assert_eq!(format!("{target:?}"), "http://a:81/…");
    }

    #[test]
    fn only_http_addresses_with_a_host_are_accepted() {
        for text in ["rtsp://a/b", "udp://@239.0.0.1:1234", "file:///etc/passwd", "javascript:1"] {
            assert!(matches!(HttpTarget::parse(text), Err(Cause::Unsupported(_))), "{text}");
        }
        for text in ["", "a/b", "http://", "http://a:99999/"] {
            assert!(matches!(HttpTarget::parse(text), Err(Cause::Address(_))), "{text}");
        }
    }

    #[test]
    fn a_program_and_the_gateway_see_the_same_host() {
        let check = |url: &str, expected: Option<&str>| {
            let address = program_address(url).unwrap().map(|it| it.to_string());
            assert_eq!(address.as_deref(), expected, "{url}");
        };
        check("http://tv.example/a.m3u8", Some("tv.example:80"));
        check("https://u:p@tv.example/a.m3u8?x=http://b/@c", Some("tv.example:443"));
        check("rtsp://u:p@192.168.1.5:554/1", Some("192.168.1.5:554"));
        check("http://2130706433/", Some("127.0.0.1:80"));
        check("http://0x7f.1/", Some("127.0.0.1:80"));
        check("rtmp://[::1]:1935/a", Some("[::1]:1935"));
        check("udp://@239.0.0.1:1234", Some("239.0.0.1:1234"));
        check("udp://@:1234", None);
        check("file:///a", None);
        check("/a", None);
        for url in [
            "http://tv.example\\@127.0.0.1/a.m3u8",
            "http://a@tv.example@127.0.0.1/a.m3u8",
            "http://tv.example%40127.0.0.1/",
            "http://tv.example |127.0.0.1/",
            "http://tv.example\t.evil/",
            "http://tv.example:99999/",
        ] {
            assert!(matches!(program_address(url), Err(Cause::Address(_))), "{url}");
        }
    }

    #[test]
    fn a_location_may_be_relative() {
        let check = |location: &str, address: &str, path: &str| {
            let target = HttpTarget::parse("http://u:p@a:81/x/y?z=1").unwrap().join(location).unwrap();
            assert_eq!(target.address.to_string(), address, "{location}");
            assert_eq!(target.path, path, "{location}");
        };
        check("http://b/c?d=e", "b:80", "/c?d=e");
        check("//b:82/c", "b:82", "/c");
        check("/c", "a:81", "/c");
        check("c?d=http://e", "a:81", "/x/c?d=http://e");
        check("?d", "a:81", "/x/y?d");
        check("../c", "a:81", "/c");
    }

    #[test]
    fn a_login_follows_a_redirect_to_the_same_server_only() {
        let from = HttpTarget::parse("https://u:p@a/x").unwrap();
        assert!(from.join("/y").unwrap().login.is_some());
        assert!(from.join("https://a:8443/y").unwrap().login.is_none());
        assert!(HttpTarget::parse("http://u:p@a/x").unwrap().join("https://a/y").unwrap().login.is_some());
        assert!(from.join("http://a/y").unwrap().login.is_none());
        assert!(from.join("https://b/y").unwrap().login.is_none());
        assert_eq!(from.join("https://v:q@b/y").unwrap().login, Some(("v".into(), "q".into())));
    }
}
