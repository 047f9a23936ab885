//! Values of the configuration that are more than a number or a text.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use domain::source_url::SourceUrl;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Where a port is bound: `ADDRESS:PORT`, or a port alone for all addresses of IPv4 and IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen(SocketAddr);

impl Listen {
    /// All addresses of this machine.
    pub fn everywhere(port: u16) -> Self {
        Listen(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port))
    }

    /// One address and port. Port 0 takes a free one.
    pub fn at(address: SocketAddr) -> Self {
        Listen(address)
    }

    pub(crate) fn address(self) -> SocketAddr {
        self.0
    }

    /// Does this mean all addresses, so that IPv4 alone will do where there is no IPv6?
    pub(crate) fn is_everywhere(self) -> bool {
        self.0.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    }
}

/// What is wrong with the text of an address to listen on.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address to listen on: expected ADDRESS:PORT (0.0.0.0:9191, [::]:9191) or PORT")]
pub struct ListenError(String);

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        let port = text.strip_prefix(':').unwrap_or(text);
        if let Ok(port) = port.parse() {
            return Ok(Listen::everywhere(port));
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
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Where a playlist is: a file, or an address of which only the host is ever printed.
#[derive(Clone, PartialEq, Eq)]
pub enum ListSource {
    File(PathBuf),
    Url(SourceUrl),
}

impl From<&str> for ListSource {
    fn from(text: &str) -> Self {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            Some("http" | "https") => ListSource::Url(SourceUrl::new(text)),
            Some("file") => ListSource::File(PathBuf::from(&text["file://".len()..])),
            _ => ListSource::File(PathBuf::from(text)),
        }
    }
}

impl fmt::Display for ListSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListSource::File(path) => path.display().fmt(f),
            ListSource::Url(url) => url.fmt(f),
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
        }
    }
}

impl<'de> Deserialize<'de> for ListSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(ListSource::from(String::deserialize(deserializer)?.as_str()))
    }
}
