//! The proxy of an account: a server through which everything of its provider is fetched.
//!
//! Names of providers are resolved by the proxy, so the name server of this network never sees them.

use std::fmt;
use std::net::Ipv6Addr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::secret::Secret;

/// Maximum length of the user and of the password, in bytes: SOCKS has one byte for each length.
pub const PROXY_LOGIN_BYTES_MAX: usize = 255;
/// Maximum length of the host, in bytes.
const HOST_BYTES_MAX: usize = 253;
/// Stands for the login where it is not shown.
const HIDDEN: &str = "***";
/// Characters that are escaped in a login.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The protocol that a proxy speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProxyScheme {
    /// HTTP with `CONNECT`.
    Http,
    /// The same over TLS.
    Https,
    /// SOCKS 5. The proxy resolves names.
    Socks5,
}

/// The address of a proxy. `Debug` and `Display` print it without user and password; it serialises its whole text, because
/// records must be read back.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyAddress {
    pub scheme: ProxyScheme,
    /// Host name or IP address; an IPv6 address without brackets.
    pub host: String,
    pub port: u16,
    /// User and password.
    pub login: Option<(String, Secret)>,
}

/// Why a text is not the address of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProxyAddressError {
    #[error("the address of a proxy begins with http://, https:// or socks5://")]
    Scheme,
    #[error("the address of the proxy has no valid host")]
    Host,
    #[error("the address of the proxy has no valid port")]
    Port,
    #[error("the address of a proxy ends after its port")]
    Path,
    #[error("user and password of the proxy have at most 255 bytes each")]
    Login,
    #[error("enter user and password of the proxy again, because its host has changed")]
    HiddenLogin,
}

impl ProxyScheme {
    /// Returns the text before `://`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5 => "socks5",
        }
    }

    fn standard_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
            Self::Socks5 => 1080,
        }
    }
}

impl ProxyAddress {
    /// Reads `scheme://user:password@host:port`. The scheme `socks5h` means `socks5`. Login and port may be missing.
    ///
    /// # Errors
    /// It is not the address of a proxy.
    pub fn parse(text: &str) -> Result<Self, ProxyAddressError> {
        let (scheme, rest) = text.trim().split_once("://").ok_or(ProxyAddressError::Scheme)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => ProxyScheme::Http,
            "https" => ProxyScheme::Https,
            "socks5" | "socks5h" => ProxyScheme::Socks5,
            _ => return Err(ProxyAddressError::Scheme),
        };
        // The last `@`, because passwords may contain an unescaped one.
        let (login, place) = rest.rsplit_once('@').map_or((None, rest), |it| (Some(it.0), it.1));
        let place = place.strip_suffix('/').unwrap_or(place);
        if place.contains(['/', '?', '#']) {
            return Err(ProxyAddressError::Path);
        }
        let (host, port) = host_and_port(place)?;
        let port = match port {
            None => scheme.standard_port(),
            Some(port) => port.parse().ok().filter(|it| *it != 0).ok_or(ProxyAddressError::Port)?,
        };
        let login = login.map(login_of).transpose()?.flatten();
        Ok(Self { scheme, host, port, login })
    }

    /// Reads an address that an admin sends back, in which [`HIDDEN`] may stand for the login of `known`.
    ///
    /// # Errors
    /// It is not the address of a proxy, or the hidden login belongs to another host.
    pub fn parse_edited(text: &str, known: Option<&Self>) -> Result<Self, ProxyAddressError> {
        let mut address = Self::parse(text)?;
        if address
            .login
            .as_ref()
            .is_some_and(|(user, password)| user == HIDDEN && password.expose().is_empty())
        {
            let known = known.filter(|it| it.host == address.host && it.login.is_some());
            address.login = known.ok_or(ProxyAddressError::HiddenLogin)?.login.clone();
        }
        Ok(address)
    }

    /// Returns the whole text, with user and password. Never use it in a log, an error or an event.
    pub fn expose(&self) -> String {
        let login = self.login.as_ref().map(|(user, password)| {
            format!(
                "{}:{}@",
                utf8_percent_encode(user, ESCAPED),
                utf8_percent_encode(password.expose(), ESCAPED)
            )
        });
        format!("{}://{}{}", self.scheme.name(), login.unwrap_or_default(), self.place())
    }

    /// Returns host and port.
    pub fn place(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// Splits host and port, and checks the host.
fn host_and_port(place: &str) -> Result<(String, Option<&str>), ProxyAddressError> {
    let (host, port) = match place.strip_prefix('[').and_then(|it| it.split_once(']')) {
        Some((host, rest)) => {
            host.parse::<Ipv6Addr>().map_err(|_| ProxyAddressError::Host)?;
            let port = match rest {
                "" => None,
                rest => Some(rest.strip_prefix(':').ok_or(ProxyAddressError::Port)?),
            };
            return Ok((host.to_ascii_lowercase(), port));
        }
        None => place.split_once(':').map_or((place, None), |it| (it.0, Some(it.1))),
    };
    let is_name = !host.is_empty()
        && host.len() <= HOST_BYTES_MAX
        && host.starts_with(|it: char| it.is_ascii_alphanumeric())
        && host.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'-' | b'_'));
    if is_name { Ok((host.to_ascii_lowercase(), port)) } else { Err(ProxyAddressError::Host) }
}

/// Decodes user and password. An empty login is none.
fn login_of(text: &str) -> Result<Option<(String, Secret)>, ProxyAddressError> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let decoded = |it: &str| {
        let text = percent_decode_str(it).decode_utf8().map_err(|_| ProxyAddressError::Login)?;
        let is_valid = text.len() <= PROXY_LOGIN_BYTES_MAX && !text.contains(char::is_control);
        if is_valid { Ok(text.into_owned()) } else { Err(ProxyAddressError::Login) }
    };
    let (user, password) = (decoded(user)?, decoded(password)?);
    if user.is_empty() {
        return if password.is_empty() { Ok(None) } else { Err(ProxyAddressError::Login) };
    }
    // HTTP separates both with a colon.
    if user.contains(':') {
        return Err(ProxyAddressError::Login);
    }
    Ok(Some((user, Secret::new(password))))
}

impl fmt::Display for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let login = if self.login.is_some() { "***@" } else { "" };
        write!(f, "{}://{login}{}", self.scheme.name(), self.place())
    }
}

impl fmt::Debug for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProxyAddress({self})")
    }
}

impl Serialize for ProxyAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.expose())
    }
}

impl<'de> Deserialize<'de> for ProxyAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, whole: &str, shown: &str) {
        let address = ProxyAddress::parse(text).unwrap();
        assert_eq!(address.expose(), whole);
        assert_eq!(address.to_string(), shown);
        assert_eq!(format!("{address:?}"), format!("ProxyAddress({shown})"));
        let stored = serde_json::to_string(&address).unwrap();
        assert_eq!(serde_json::from_str::<ProxyAddress>(&stored).unwrap(), address);
    }

    #[test]
    fn the_address_of_a_proxy_prints_without_its_login() {
        check("http://proxy.example:3128", "http://proxy.example:3128", "http://proxy.example:3128");
        check("HTTP://Proxy.Example/", "http://proxy.example:80", "http://proxy.example:80");
        check("https://192.0.2.1", "https://192.0.2.1:443", "https://192.0.2.1:443");
        check("socks5h://anna:secret@h", "socks5://anna:secret@h:1080", "socks5://***@h:1080");
        check("socks5://a:p%40ss%3A@[::1]:9", "socks5://a:p%40ss%3A@[::1]:9", "socks5://***@[::1]:9");
        check("http://a:p@ss@h:1", "http://a:p%40ss@h:1", "http://***@h:1");
        check("http://@h:1", "http://h:1", "http://h:1");
        check("http://anna@h:1", "http://anna:@h:1", "http://***@h:1");
    }

    #[test]
    fn a_text_other_than_the_address_of_a_proxy_is_refused() {
        use ProxyAddressError::*;
        let long = "x".repeat(256);
        for (text, expected) in [
            ("", Scheme),
            ("proxy.example:3128", Scheme),
            ("socks4://h:1", Scheme),
            ("ftp://h:1", Scheme),
            ("http://", Host),
            ("http://:3128", Host),
            ("http://a b:1", Host),
            ("http://h\r\nx:1", Host),
            ("http://[::1", Host),
            ("http://[zz]:1", Host),
            ("http://h:0", Port),
            ("http://h:99999", Port),
            ("http://h:x", Port),
            ("http://[::1]x", Port),
            ("http://h:1/path", Path),
            ("http://h:1?x", Path),
            ("http://:secret@h:1", Login),
            ("http://a%3Ab:c@h:1", Login),
            ("http://a%0d:c@h:1", Login),
            ("http://%ff:c@h:1", Login),
        ] {
            assert_eq!(ProxyAddress::parse(text), Err(expected), "{text}");
        }
        assert_eq!(ProxyAddress::parse(&format!("http://{long}:p@h:1")), Err(Login));
    }

    #[test]
    fn a_hidden_login_that_is_sent_back_stays_on_its_host() {
        let known = ProxyAddress::parse("http://anna:secret@h:1").unwrap();
        let edited = |text: &str, known: Option<&ProxyAddress>| {
            ProxyAddress::parse_edited(text, known).map(|it| it.expose())
        };
        assert_eq!(edited(&known.to_string(), Some(&known)).unwrap(), known.expose());
        assert_eq!(edited("socks5://***@h:2", Some(&known)).unwrap(), "socks5://anna:secret@h:2");
        assert_eq!(edited("http://***@other:1", Some(&known)), Err(ProxyAddressError::HiddenLogin));
        assert_eq!(edited("http://***@h:1", None), Err(ProxyAddressError::HiddenLogin));
        assert_eq!(edited("http://b:c@other:1", Some(&known)).unwrap(), "http://b:c@other:1");
        assert_eq!(edited("http://h:1", Some(&known)).unwrap(), "http://h:1");
    }
}
