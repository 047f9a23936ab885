//! Channels that are also sent as datagrams, for set-top boxes that know nothing else.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The number of routers that datagrams pass by default: none, so that they stay in the local network.
pub const TTL_DEFAULT: u8 = 1;

/// Where a channel is sent as datagrams, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpOutput {
    pub address: UdpOutputAddress,
    /// Name or address of the interface to send on; `None` leaves the choice to the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Maximum number of routers on the way.
    #[serde(default = "ttl_default")]
    pub ttl: u8,
    #[serde(default)]
    pub mode: UdpOutputMode,
}

/// When a channel is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UdpOutputMode {
    /// At all times: the channel plays for it, and takes a connection of an account.
    #[default]
    Always,
    /// While somebody watches the channel.
    Watched,
}

/// A receiver of datagrams: `udp://239.1.2.3:5000` or `rtp://[ff15::1]:5004`. The host is an IP address, so that no name
/// has to be resolved while the channel plays.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct UdpOutputAddress {
    pub is_rtp: bool,
    pub to: SocketAddr,
}

/// The fault of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UdpOutputError {
    #[error("Enter an address such as udp://239.1.2.3:5000 or rtp://192.0.2.7:5004.")]
    Form,
    #[error("The host must be an IP address, an IPv6 address in brackets.")]
    Host,
    #[error("The port must be from 1 to 65535.")]
    Port,
    #[error("The address must be that of a group or of one receiver.")]
    Receiver,
}

impl FromStr for UdpOutputAddress {
    type Err = UdpOutputError;

    fn from_str(text: &str) -> Result<Self, UdpOutputError> {
        let (scheme, rest) = text.trim().split_once("://").ok_or(UdpOutputError::Form)?;
        let is_rtp = match scheme.to_ascii_lowercase().as_str() {
            "udp" => false,
            "rtp" => true,
            _ => return Err(UdpOutputError::Form),
        };
        // Players write an `@` in front of a group.
        let rest = rest.strip_prefix('@').unwrap_or(rest);
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = rest.rsplit_once(':').ok_or(UdpOutputError::Port)?;
        let host: IpAddr = match host.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            Some(host) => IpAddr::V6(host.parse().map_err(|_| UdpOutputError::Host)?),
            None => IpAddr::V4(host.parse().map_err(|_| UdpOutputError::Host)?),
        };
        let host = host.to_canonical();
        let port = port.parse().ok().filter(|it| *it > 0).ok_or(UdpOutputError::Port)?;
        let is_everyone = matches!(host, IpAddr::V4(it) if it.is_broadcast());
        if host.is_unspecified() || is_everyone {
            return Err(UdpOutputError::Receiver);
        }
        Ok(Self { is_rtp, to: SocketAddr::new(host, port) })
    }
}

impl fmt::Display for UdpOutputAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.is_rtp { "rtp" } else { "udp" }, self.to)
    }
}

impl fmt::Debug for UdpOutputAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UdpOutputAddress({self})")
    }
}

impl Serialize for UdpOutputAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UdpOutputAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

fn ttl_default() -> u8 {
    TTL_DEFAULT
}

/// Returns whether a text can name an interface: a name of the system, or an address.
pub fn is_interface(text: &str) -> bool {
    let is_name = |it: &str| {
        (1..=15).contains(&it.len()) && it.bytes().all(|it| it.is_ascii_graphic() && it != b'/' && it != b':')
    };
    text.parse::<IpAddr>().is_ok() || is_name(text) && text != "." && text != ".."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_sent_to_an_ip_address_and_a_port() {
        let check = |text: &str, expected: Result<&str, UdpOutputError>| {
            let read = text.parse::<UdpOutputAddress>().map(|it| it.to_string());
            assert_eq!(read, expected.map(str::to_owned), "{text}");
        };
        check("udp://239.1.2.3:5000", Ok("udp://239.1.2.3:5000"));
        check(" RTP://@239.1.2.3:5004/ ", Ok("rtp://239.1.2.3:5004"));
        check("udp://192.0.2.7:1234", Ok("udp://192.0.2.7:1234"));
        check("rtp://[ff15::1]:5004", Ok("rtp://[ff15::1]:5004"));
        check("udp://[::ffff:239.1.2.3]:1", Ok("udp://239.1.2.3:1"));
        for text in ["", "239.1.2.3:5000", "http://239.1.2.3:5000", "udp:/239.1.2.3:1"] {
            check(text, Err(UdpOutputError::Form));
        }
        for text in
            ["udp://tv.example:1", "udp://a@239.1.2.3:1", "udp://ff15::1:5004", "udp://:1", "udp://[1"]
        {
            check(text, Err(if text == "udp://[1" { UdpOutputError::Port } else { UdpOutputError::Host }));
        }
        for text in ["udp://239.1.2.3", "udp://239.1.2.3:0", "udp://239.1.2.3:65536", "udp://239.1.2.3:1?a=b"]
        {
            check(text, Err(UdpOutputError::Port));
        }
        for text in ["udp://0.0.0.0:1", "udp://[::]:1", "udp://255.255.255.255:1"] {
            check(text, Err(UdpOutputError::Receiver));
        }
    }

    #[test]
    fn an_output_survives_writing_and_reading() {
        let output = UdpOutput {
            address: "rtp://[ff15::1]:5004".parse().unwrap(),
            interface: Some("eth0".to_owned()),
            ttl: 4,
            mode: UdpOutputMode::Watched,
        };
        let text = serde_json::to_string(&output).unwrap();
        assert_eq!(serde_json::from_str::<UdpOutput>(&text).unwrap(), output);
        let short = serde_json::from_str::<UdpOutput>(r#"{"address":"udp://239.1.2.3:5000"}"#).unwrap();
        assert_eq!((short.interface, short.ttl, short.mode), (None, 1, UdpOutputMode::Always));
    }

    #[test]
    fn an_interface_has_a_name_or_an_address() {
        for text in ["eth0", "br-lan", "192.0.2.1", "2001:db8::1"] {
            assert!(is_interface(text), "{text}");
        }
        for text in ["", "..", "a b", "a/b", "a-name-that-is-too-long", "é"] {
            assert!(!is_interface(text), "{text}");
        }
    }
}
