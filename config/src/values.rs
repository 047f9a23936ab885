//! Types of configuration values that are neither numbers nor plain text.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use domain::source_url::SourceUrl;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Reads a list of texts, or one text. `expected` names such a list in errors.
pub(crate) fn texts<'de, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
) -> Result<Vec<String>, D::Error> {
    struct Texts(&'static str);

    impl<'de> Visitor<'de> for Texts {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Vec<String>, E> {
            Ok(vec![text.to_owned()])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut texts: A) -> Result<Vec<String>, A::Error> {
            let mut all = Vec::new();
            while let Some(text) = texts.next_element()? {
                all.push(text);
            }
            Ok(all)
        }
    }

    deserializer.deserialize_any(Texts(expected))
}

/// Address to listen on: `ADDRESS:PORT`, `localhost:PORT` for 127.0.0.1, or a port alone for all IPv4 and IPv6 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen(SocketAddr);

impl Listen {
    /// Listens on all addresses of this machine.
    pub fn everywhere(port: u16) -> Self {
        Listen(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port))
    }

    /// Listens on one address. Port 0 chooses a free port.
    pub fn at(address: SocketAddr) -> Self {
        Listen(address)
    }

    /// Returns the same address with the port that was bound.
    pub fn with_port(self, bound: SocketAddr) -> Self {
        Listen(SocketAddr::new(self.0.ip(), bound.port()))
    }

    pub fn address(self) -> SocketAddr {
        self.0
    }

    /// Returns true for the wildcard address, which falls back to IPv4 on machines without IPv6.
    pub fn is_everywhere(self) -> bool {
        self.0.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    }
}

/// Error for a malformed listen address.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid listen address `{0}`: expected ADDRESS:PORT (0.0.0.0:9191, [::]:9191, localhost:9191) or PORT"
)]
pub struct ListenError(String);

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        let port = text.strip_prefix(':').unwrap_or(text);
        if let Ok(port) = port.parse() {
            return Ok(Listen::everywhere(port));
        }
        if let Some(Ok(port)) = text.strip_prefix("localhost:").map(str::parse) {
            return Ok(Listen(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        text.parse().map(Listen).map_err(|_| ListenError(text.to_owned()))
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Listen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(Error::custom)
    }
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Human-readable lines.
    Text,
    /// One JSON object per line.
    Json,
}

/// Whether a program that forwards ports into a container may hide the addresses of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerProxy {
    /// In a container, the default gateway may, and loopback under rootless networking.
    Detect,
    /// No: the peer of a connection is the client, or a proxy that adds headers.
    None,
}

/// Location of a playlist: a file, or a URL of which only the host is ever printed.
#[derive(Clone, PartialEq, Eq)]
pub enum ListSource {
    File(PathBuf),
    Url(SourceUrl),
    /// A text that names no file and looks like an address without a scheme, such as `tv.example.com/get.php`. Only its host
    /// is printed, because the rest may contain credentials.
    NoScheme(String),
}

impl From<&str> for ListSource {
    /// Looks for a file with this name if the text could be both a file and an address without a scheme.
    fn from(text: &str) -> Self {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            Some("http" | "https") => ListSource::Url(SourceUrl::new(text)),
            Some("file") => ListSource::File(PathBuf::from(&text["file://".len()..])),
            _ if host_of(text).is_some() && !Path::new(text).exists() => {
                ListSource::NoScheme(text.to_owned())
            }
            _ => ListSource::File(PathBuf::from(text)),
        }
    }
}

/// Returns the host if the text looks like an address without a scheme.
fn host_of(text: &str) -> Option<&str> {
    let (host, _) = text.split_once(['/', '?'])?;
    let is_of_host = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | ':');
    let is_host = host.contains(['.', ':']) || host == "localhost";
    (is_host && host.starts_with(|it: char| it.is_ascii_alphanumeric()) && host.chars().all(is_of_host))
        .then_some(host)
}

impl fmt::Display for ListSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListSource::File(path) => path.display().fmt(f),
            ListSource::Url(url) => url.fmt(f),
            ListSource::NoScheme(text) => write!(f, "{}/…", host_of(text).unwrap_or_default()),
        }
    }
}

impl fmt::Debug for ListSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ListSource({self})")
    }
}

impl Serialize for ListSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ListSource::File(path) => path.serialize(serializer),
            ListSource::Url(url) => url.serialize(serializer),
            ListSource::NoScheme(text) => text.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ListSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(ListSource::from(String::deserialize(deserializer)?.as_str()))
    }
}
