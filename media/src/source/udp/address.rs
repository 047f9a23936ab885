//! Parses `udp://` and `rtp://` addresses, in the forms that players and ffmpeg understand:
//!
//! ```text
//! udp://@239.0.0.1:1234                          a group
//! udp://239.0.0.1:1234?localaddr=192.0.2.1       a group on one interface
//! udp://198.51.100.7@232.0.0.1:1234              a group, packets of one source only
//! udp://232.0.0.1:1234?sources=198.51.100.7      the same
//! udp://@:1234                                   a port of this machine
//! udp://@[ff15::1%eth0]:1234                     a group of IPv6 on one interface
//! ```

use std::net::{IpAddr, Ipv4Addr};

use crate::error::Cause;
use crate::source::target::decode;
use crate::udp::Interface;

/// Maximum length of an address.
const URL_BYTES_MAX: usize = 2048;
/// Maximum number of sources of a group.
pub(super) const SOURCES_MAX: usize = 16;
/// The port of an address without one, as in VLC.
const UDP_PORT: u16 = 1234;
const RTP_PORT: u16 = 5004;

/// A parsed `udp://` or `rtp://` address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UdpAddress {
    pub(super) host: UdpHost,
    pub(super) port: u16,
    /// Only packets of these senders are taken; of all if there are none.
    pub(super) sources: Vec<IpAddr>,
    /// The interface on which a group is joined.
    pub(super) interface: Option<Interface>,
}

/// The host of an address: a group, an address of this machine, or the sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UdpHost {
    /// Every address of this machine.
    Any,
    Address(IpAddr),
    Name(String),
}

impl UdpAddress {
    /// Parses an address. `None` if it has another scheme.
    pub(super) fn parse(url: &str) -> Option<Result<Self, Cause>> {
        let (scheme, rest) = url.trim().split_once("://")?;
        let port = match scheme.to_ascii_lowercase().as_str() {
            "udp" => UDP_PORT,
            "rtp" => RTP_PORT,
            _ => return None,
        };
        let parsed =
            if rest.len() > URL_BYTES_MAX { Err("it is too long") } else { Self::parse_rest(rest, port) };
        Some(parsed.map_err(|why| Cause::Address(why.to_owned())))
    }

    fn parse_rest(rest: &str, standard_port: u16) -> Result<Self, &'static str> {
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, query) = rest.split_once('?').unwrap_or((rest, ""));
        let authority = authority.split('/').next().unwrap_or_default();
        let (source, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (host, port, zone) = split_host(host)?;
        let mut parsed =
            Self { host, port: port.unwrap_or(standard_port), sources: Vec::new(), interface: None };
        if let Some(zone) = zone {
            parsed.interface = interface(&zone)?;
        }
        if !source.is_empty() {
            match split_host(source)?.0 {
                UdpHost::Address(source) => parsed.sources.push(source),
                UdpHost::Any => {}
                UdpHost::Name(_) => return Err("the source before the @ is not an IP address"),
            }
        }
        for (name, value) in query.split(['&', ';']).filter_map(|it| it.split_once('=')) {
            parsed.option(name, &decode(value))?;
        }
        if parsed.port == 0 {
            return Err("its port is 0");
        }
        if let UdpHost::Address(host) = parsed.host
            && parsed.sources.iter().any(|it| it.is_ipv4() != host.is_ipv4())
        {
            return Err("its source is of another version of IP");
        }
        Ok(parsed)
    }

    /// Applies an option of the query. Options about sizes and times of other programs have no effect.
    fn option(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        match name.to_ascii_lowercase().as_str() {
            "localaddr" | "iface" | "interface" | "ifname" | "miface" => {
                self.interface = interface(value)?.or(self.interface.take());
            }
            "localport" | "localrtpport" => {
                self.port = value.parse().map_err(|_| "its local port is not a number")?;
            }
            "source" | "sources" => {
                for source in value.split(',').map(str::trim).filter(|it| !it.is_empty()) {
                    let source = source.parse::<IpAddr>().map_err(|_| "a source is not an IP address")?;
                    if self.sources.len() == SOURCES_MAX {
                        return Err("it has too many sources");
                    }
                    self.sources.push(source.to_canonical());
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Parses an interface; `None` if the choice is left to the system.
fn interface(text: &str) -> Result<Option<Interface>, &'static str> {
    match text.parse() {
        Ok(Interface::Address(address)) if address.is_unspecified() => Ok(None),
        Ok(interface) => Ok(Some(interface)),
        Err(_) => Err("its interface has neither a name nor an address"),
    }
}

/// Splits `host:port`; returns the zone of an IPv6 address as well.
fn split_host(text: &str) -> Result<(UdpHost, Option<u16>, Option<String>), &'static str> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("its host has no closing bracket")?;
            (host, rest.strip_prefix(':').or(rest.is_empty().then_some("")).ok_or("its port is invalid")?)
        }
        // More than one colon: an IPv6 address without brackets and port.
        None if text.matches(':').count() > 1 => (text, ""),
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let port = match port {
        "" => None,
        port => Some(port.parse().map_err(|_| "its port is invalid")?),
    };
    let host = decode(host);
    let (host, zone) = match host.split_once('%') {
        Some((host, zone)) => (host.to_owned(), Some(zone.to_owned())),
        None => (host, None),
    };
    if host.is_empty() || host == "*" {
        return Ok((UdpHost::Any, port, zone));
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        let address = address.to_canonical();
        let host = if address == Ipv4Addr::UNSPECIFIED { UdpHost::Any } else { UdpHost::Address(address) };
        return Ok((host, port, zone));
    }
    let is_name = host.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.'));
    if !is_name || zone.is_some() {
        return Err("its host is invalid");
    }
    Ok((UdpHost::Name(host), port, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_forms_of_players_and_ffmpeg_are_understood() {
        // Host, port, sources, interface.
        let check = |url: &str, host: &str, port: u16, sources: &[&str], interface: &str| {
            let parsed = UdpAddress::parse(url).unwrap().unwrap();
            let of_parsed = match &parsed.host {
                UdpHost::Any => "any".to_owned(),
                UdpHost::Address(address) => address.to_string(),
                UdpHost::Name(name) => name.clone(),
            };
            let sources: Vec<_> = sources.iter().map(|it| ip(it)).collect();
            let named = parsed.interface.map(|it| it.to_string()).unwrap_or_default();
            assert_eq!(
                (of_parsed.as_str(), parsed.port, parsed.sources, named.as_str()),
                (host, port, sources, interface),
                "{url}"
            );
        };
        check("udp://@239.0.0.1:1234", "239.0.0.1", 1234, &[], "");
        check("udp://239.0.0.1:1234", "239.0.0.1", 1234, &[], "");
        check(" UDP://@239.0.0.1:5000/ ", "239.0.0.1", 5000, &[], "");
        check("rtp://@239.0.0.1", "239.0.0.1", 5004, &[], "");
        check("udp://@239.0.0.1", "239.0.0.1", 1234, &[], "");
        check("udp://239.0.0.1:1234?localaddr=192.0.2.1", "239.0.0.1", 1234, &[], "192.0.2.1");
        check("udp://239.0.0.1:1234?localaddr=0.0.0.0", "239.0.0.1", 1234, &[], "");
        check(
            "udp://@239.0.0.1:1?iface=eth0.7&pkt_size=1316&fifo_size=5000000",
            "239.0.0.1",
            1,
            &[],
            "eth0.7",
        );
        check("udp://@239.0.0.1:1/?interface=eth0;reuse=1;buffer_size=9", "239.0.0.1", 1, &[], "eth0");
        check("udp://198.51.100.7@232.0.0.1:1234", "232.0.0.1", 1234, &["198.51.100.7"], "");
        check("rtp://198.51.100.7:99@232.0.0.1:1234", "232.0.0.1", 1234, &["198.51.100.7"], "");
        check(
            "udp://232.0.0.1:1?sources=192.0.2.1,192.0.2.2",
            "232.0.0.1",
            1,
            &["192.0.2.1", "192.0.2.2"],
            "",
        );
        check(
            "udp://232.0.0.1:1?sources=192.0.2.1%2C192.0.2.2",
            "232.0.0.1",
            1,
            &["192.0.2.1", "192.0.2.2"],
            "",
        );
        check("udp://@[ff15::1]:1234", "ff15::1", 1234, &[], "");
        check("udp://@[ff15::1%25eth0]:1234", "ff15::1", 1234, &[], "eth0");
        check("udp://@[ff15::1%eth0]", "ff15::1", 1234, &[], "eth0");
        check("udp://[2001:db8::1]@[ff35::1]:1234", "ff35::1", 1234, &["2001:db8::1"], "");
        check("udp://@[::ffff:239.0.0.1]:1234", "239.0.0.1", 1234, &[], "");
        check("udp://@:1234", "any", 1234, &[], "");
        check("udp://:1234", "any", 1234, &[], "");
        check("udp://0.0.0.0:1234", "any", 1234, &[], "");
        check("udp://@", "any", 1234, &[], "");
        check("rtp://*:5004", "any", 5004, &[], "");
        check("udp://127.0.0.1:1234?localport=99&timeout=5&ttl", "127.0.0.1", 99, &[], "");
        check("udp://tv.example:1234", "tv.example", 1234, &[], "");
        check("udp://@239.0.0.1%eth0:1234", "239.0.0.1", 1234, &[], "eth0");
        check("udp://@[::]:1234", "::", 1234, &[], "");
        check("udp://192.0.2.9@:1234", "any", 1234, &["192.0.2.9"], "");
    }

    #[test]
    fn an_invalid_address_is_refused_with_a_reason_that_does_not_repeat_it() {
        for url in [
            "udp://@239.0.0.1:0",
            "udp://@239.0.0.1:65536",
            "udp://@239.0.0.1:port",
            "udp://@239.0.0.1:1:2",
            "udp://@[ff15::1:1234",
            "udp://@[ff15::1]1234",
            "udp://a b:1",
            "udp://secret@239.0.0.1:1",
            "udp://192.0.2.1@[ff35::1]:1",
            "udp://@239.0.0.1:1?sources=secret",
            "udp://@239.0.0.1:1?iface=a/b",
            "udp://@239.0.0.1:1?localport=secret",
        ] {
            match UdpAddress::parse(url) {
                Some(Err(Cause::Address(why))) => assert!(!why.contains("secret"), "{url}: {why}"),
                other => panic!("{url}: {other:?}"),
            }
        }
        let many = vec!["192.0.2.1"; SOURCES_MAX + 1].join(",");
        assert!(UdpAddress::parse(&format!("udp://232.0.0.1:1?sources={many}")).unwrap().is_err());
        assert!(UdpAddress::parse(&format!("udp://{}", "a".repeat(URL_BYTES_MAX + 1))).unwrap().is_err());
        for url in ["http://239.0.0.1/", "/udp://", "srt://192.0.2.1:9", "udp:239.0.0.1", ""] {
            assert!(UdpAddress::parse(url).is_none(), "{url}");
        }
    }
}
