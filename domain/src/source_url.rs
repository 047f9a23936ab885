//! An address at a provider. It often contains a user and a password, so it prints without them.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The schemes of addresses in the network that may be passed to programs, and that admins can give to streams.
///
/// A list of what is allowed, because programs know many further schemes that read local files: ffmpeg reads
/// `hls+file://`, `concat:`, `subfile,` and `cache:`, for example.
pub const NETWORK_SCHEMES: [&str; 20] = [
    "http", "https", "rtsp", "rtsps", "rtspt", "rtspu", "rtmp", "rtmpe", "rtmps", "rtmpt", "rtmpte",
    "rtmpts", "rtp", "srtp", "udp", "srt", "rist", "mms", "mmsh", "mmst",
];

/// The address of a stream or of a guide, as the provider gave it.
///
/// `Debug` and `Display` print `scheme://host:port/…` and nothing else, because credentials also hide in paths and
/// queries. [`SourceUrl::expose`] returns the whole text. It serialises its whole text, because records must be read
/// back; payloads use `Display`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceUrl(Arc<str>);

impl SourceUrl {
    /// Takes the text unchecked. An invalid address is reported when it is opened.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the whole text, including credentials. Never use it in a log, an error or an event.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the text before `://`, as written. Empty if the address has no scheme.
    pub fn scheme(&self) -> &str {
        match self.0.split_once("://") {
            Some((scheme, _)) if is_scheme(scheme) => scheme,
            _ => "",
        }
    }

    /// Returns whether it is an `http` or `https` address.
    pub fn is_http(&self) -> bool {
        ["http", "https"].iter().any(|it| self.scheme().eq_ignore_ascii_case(it))
    }

    /// Returns whether its scheme is one of [`NETWORK_SCHEMES`].
    pub fn is_network(&self) -> bool {
        NETWORK_SCHEMES.iter().any(|it| self.scheme().eq_ignore_ascii_case(it))
    }

    /// Returns whether its scheme is `file`.
    pub fn is_file(&self) -> bool {
        self.scheme().eq_ignore_ascii_case("file")
    }

    /// Returns the host without user, password and port; an IPv6 address without its brackets. `None` for an address
    /// without a host, such as `file:///films/one.ts`.
    pub fn host(&self) -> Option<&str> {
        let (host, _) = split_port(self.authority()?);
        let host = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
        (!host.is_empty()).then_some(host)
    }

    /// Returns the path without query and fragment. Empty if there is none.
    pub fn path(&self) -> &str {
        let rest = self.after_scheme();
        let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
        rest.find('/').map_or("", |start| &rest[start..])
    }

    /// Splits the address from the number of a programme at its end, as in `udp://@239.0.0.1:1234#program=5`. The number is
    /// for the gateway alone. Any other fragment belongs to the address.
    pub fn split_program(&self) -> (Self, Option<u16>) {
        const KEY: &str = "program=";
        let number = || {
            let (address, fragment) = self.0.rsplit_once('#')?;
            let (key, number) = fragment.split_at_checked(KEY.len())?;
            let is_number = key.eq_ignore_ascii_case(KEY) && number.bytes().all(|it| it.is_ascii_digit());
            let number = number.parse().ok().filter(|it| is_number && *it != 0)?;
            Some((Self::new(address), number))
        };
        match number() {
            Some((address, number)) => (address, Some(number)),
            None => (self.clone(), None),
        }
    }

    fn after_scheme(&self) -> &str {
        let scheme = self.scheme();
        if scheme.is_empty() { &self.0 } else { &self.0[scheme.len() + "://".len()..] }
    }

    /// Returns the host and, if the address contains one, the port, without user and password.
    pub(crate) fn authority(&self) -> Option<&str> {
        if self.scheme().is_empty() {
            return None;
        }
        let rest = self.after_scheme();
        let authority = &rest[..rest.find(['/', '?', '#', '\\', '|']).unwrap_or(rest.len())];
        // The last `@`, because passwords may contain an unescaped one, and a part of them must not be printed as a
        // host.
        Some(authority.rsplit_once('@').map_or(authority, |(_, host)| host))
    }
}

impl fmt::Display for SourceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The beginning of a password with an unescaped slash would look like the host, so nothing is printed then.
        match self.authority() {
            Some(authority) if is_printable_authority(authority) && !self.path().contains('@') => {
                write!(f, "{}://{authority}/…", self.scheme())
            }
            Some(_) => write!(f, "{}://…", self.scheme()),
            None => f.write_str("…"),
        }
    }
}

impl fmt::Debug for SourceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceUrl({self})")
    }
}

impl Serialize for SourceUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SourceUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// `http`, `rtsp`, `svn+ssh`: a letter, then letters, digits and `+-.`.
pub(crate) fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'-' | b'.'))
}

/// Splits host and port; an IPv6 address keeps its brackets. The port is empty if there is none.
pub(crate) fn split_port(authority: &str) -> (&str, &str) {
    match authority.rsplit_once(':') {
        // In `[::1]` the last colon belongs to the address.
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (authority, ""),
    }
}

fn is_printable_authority(authority: &str) -> bool {
    let (_, port) = split_port(authority);
    port.bytes().all(|it| it.is_ascii_digit()) && !authority.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, printed: &str, scheme: &str, host: Option<&str>) {
        let url = SourceUrl::new(url);
        assert_eq!(url.to_string(), printed);
        assert_eq!(format!("{url:?}"), format!("SourceUrl({printed})"));
        assert_eq!(url.scheme(), scheme);
        assert_eq!(url.host(), host);
    }

    // Part of T-acc.2: printed addresses contain no password.
    #[test]
    fn an_address_prints_without_possible_credentials() {
        check(
            "http://tv.example:8080/live/user/secret/7.ts",
            "http://tv.example:8080/…",
            "http",
            Some("tv.example"),
        );
        check("http://user:secret@tv.example/7", "http://tv.example/…", "http", Some("tv.example"));
        check("http://user:se@cret@tv.example/7", "http://tv.example/…", "http", Some("tv.example"));
        check("https://tv.example?token=secret", "https://tv.example/…", "https", Some("tv.example"));
        check("http://user:sec/ret@tv.example/7", "http://…", "http", Some("user"));
        check("http://user:secret", "http://…", "http", Some("user"));
        check("http://[2001:db8::1]:80/x", "http://[2001:db8::1]:80/…", "http", Some("2001:db8::1"));
        check("udp://@239.0.0.1:1234", "udp://239.0.0.1:1234/…", "udp", Some("239.0.0.1"));
        check("file:///films/one.ts", "file:///…", "file", None);
        check("no address, secret", "…", "", None);
        check("", "…", "", None);
    }

    #[test]
    fn a_record_keeps_the_whole_address() {
        let url = SourceUrl::new("http://user:secret@tv.example/7");
        let text = serde_json::to_string(&url).unwrap();
        assert_eq!(text, r#""http://user:secret@tv.example/7""#);
        assert_eq!(serde_json::from_str::<SourceUrl>(&text).unwrap(), url);
    }

    #[test]
    fn a_fragment_at_the_end_names_a_programme() {
        let check = |url: &str, address: &str, number: Option<u16>| {
            assert_eq!(SourceUrl::new(url).split_program(), (SourceUrl::new(address), number), "{url}");
        };
        check("http://h/1.ts#program=2", "http://h/1.ts", Some(2));
        check("http://h/1.ts?a=b#Program=65535", "http://h/1.ts?a=b", Some(65535));
        check("udp://@239.0.0.1:1234#program=007", "udp://@239.0.0.1:1234", Some(7));
        check("http://h/#a#program=1", "http://h/#a", Some(1));
        for other in [
            "http://h/1.ts",
            "http://h/1.ts?program=2",
            "http://h/1.ts#",
            "http://h/1.ts#program=",
            "http://h/1.ts#program=0",
            "http://h/1.ts#program=65536",
            "http://h/1.ts#program=+2",
            "http://h/1.ts#program=-2",
            "http://h/1.ts#program=2 ",
            "http://h/1.ts#program=2&x=1",
            "http://h/1.ts#program2",
            "http://h/1.ts#programme=2",
            "http://h/1.ts#x=1",
            "http://h/1.ts#program=2#",
            "http://h/1.ts#prograé=2",
            "#",
        ] {
            check(other, other, None);
        }
    }

    #[test]
    fn the_path_ends_where_the_query_begins() {
        assert_eq!(SourceUrl::new("http://a.example/b/c.ts?d/e").path(), "/b/c.ts");
        assert_eq!(SourceUrl::new("http://a.example?x=/y").path(), "");
        assert_eq!(SourceUrl::new("file:///films/one.ts").path(), "/films/one.ts");
    }
}
