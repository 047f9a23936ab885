//! Where a request comes from: the address of its client, and whether that address is certain.
//!
//! [`Origin::from_request`] decides this once for every request. Networks, limits, delays, logs and statistics use its result and
//! never the address of the peer.
//!
//! ```text
//! peer                          headers of a proxy    client
//! trusted proxy                 name the client       that address
//! trusted proxy                 do not name it        unknown
//! trusted proxy                 none                  unknown, unless networks name the proxy
//! may hide clients (container)  none                  unknown, unless networks name the address
//! another                       any                   unknown
//! another                       none                  the peer
//! ```

use std::net::{IpAddr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::forwarded::ProxyHeaders;

/// A list of networks.
pub trait NetworkList {
    /// Returns true if one of the networks contains the address.
    fn contains(&self, address: IpAddr) -> bool;
    /// Returns true if the list contains this address alone, not as a part of a network.
    fn names(&self, address: IpAddr) -> bool;
    /// Returns true if a network contains every address of the family of this one.
    fn contain_everyone(&self, address: IpAddr) -> bool;
}

/// The origin of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The client or, if it is unknown, the peer.
    address: IpAddr,
    client: Client,
    /// Whether the request arrived from a trusted proxy.
    by_trusted_proxy: bool,
}

/// How the client of a request is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Client {
    /// It is the peer of the connection.
    Peer,
    /// A trusted proxy named it.
    Named,
    /// The peer forwards connections, and does not name their clients.
    Hidden,
    /// A proxy forwarded the request that is not trusted, or that did not name the client properly.
    Unproven,
}

impl Origin {
    /// Returns the origin of a request on a connection from `peer`. `headers` are all headers of the request: pairs of a
    /// name in lower case and a value, in order. `hides` returns true for addresses that may forward connections for any
    /// client without naming it.
    ///
    /// `trusted` are the proxies that are believed. One that may hide clients must be named exactly: it belongs to the same
    /// networks as a proxy in the next container, and can be reached without that proxy.
    pub fn from_request<'a>(
        peer: IpAddr,
        trusted: &impl NetworkList,
        hides: impl Fn(IpAddr) -> bool,
        headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Self {
        let trusts = |address: IpAddr| match hides(address) {
            true => trusted.names(address),
            false => trusted.contains(address),
        };
        let (peer, headers) = (peer.to_canonical(), ProxyHeaders::from_headers(headers));
        let by_trusted_proxy = trusts(peer);
        let unknown = |client| Self { address: peer, client, by_trusted_proxy };
        match (by_trusted_proxy, headers.is_forwarded()) {
            (true, true) => match headers.client(trusts) {
                None => unknown(Client::Unproven),
                // The proxy may stand behind a port of the container itself.
                Some(address) if hides(address) => Self { address, client: Client::Hidden, by_trusted_proxy },
                Some(address) => Self { address, client: Client::Named, by_trusted_proxy },
            },
            (false, true) => unknown(Client::Unproven),
            (true, false) => unknown(Client::Hidden),
            (false, false) if hides(peer) => unknown(Client::Hidden),
            (false, false) => Self { address: peer, client: Client::Peer, by_trusted_proxy },
        }
    }

    /// Returns the address of the client. If it is unknown, this is the address of the proxy.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the origin of a call from this address without a proxy.
    pub fn direct(address: IpAddr) -> Self {
        Self { address, client: Client::Peer, by_trusted_proxy: false }
    }

    /// Returns true if the request came over a loopback address and no proxy forwarded it. A proxy that does not say so
    /// looks the same.
    pub fn is_from_loopback(&self) -> bool {
        self.address.is_loopback() && matches!(self.client, Client::Peer | Client::Hidden)
    }

    /// Returns true if the client belongs to one of these networks. An unknown client belongs only to networks that
    /// contain every address, or that name exactly the address behind which clients are hidden.
    pub fn is_in(&self, networks: &impl NetworkList) -> bool {
        match self.client {
            Client::Peer | Client::Named => networks.contains(self.address),
            Client::Hidden => networks.names(self.address) || networks.contain_everyone(self.address),
            Client::Unproven => networks.contain_everyone(self.address),
        }
    }

    /// Returns true if the client is a program on this machine, or a page of the gateway in a browser there. `host` is the
    /// header `Host`, and `page` the header `Origin`.
    ///
    /// A proxy may name any client, so not even a trusted one is enough here.
    pub fn is_on_this_machine(&self, host: Option<&[u8]>, page: Option<&[u8]>) -> bool {
        let host = host.and_then(|it| str::from_utf8(it).ok()).filter(|it| is_address_or_localhost(it));
        // A browser on this machine may run a page from any site. It names that site.
        let is_own = |page: &[u8]| {
            let page = str::from_utf8(page).ok().and_then(|it| it.split_once("://"));
            page.is_some_and(|(_, page)| Some(page) == host)
        };
        self.client == Client::Peer && self.address.is_loopback() && host.is_some() && page.is_none_or(is_own)
    }

    /// Returns true if the request arrived from a trusted proxy, whose headers are believed.
    pub fn is_by_trusted_proxy(&self) -> bool {
        self.by_trusted_proxy
    }

    /// Returns why the client is unknown, for logs and events. `None` if it is known.
    pub fn doubt(&self) -> Option<&'static str> {
        match self.client {
            Client::Peer | Client::Named => None,
            Client::Hidden => Some("this address may forward for any client, and does not name it"),
            Client::Unproven => {
                Some("a proxy forwarded the request, and trusted_proxies does not contain it")
            }
        }
    }
}

/// Returns true if a host, with or without a port, is an address or `localhost`.
///
/// A page of any site can point its own host name at this machine, and is then of the same site. It cannot do so with an
/// address or `localhost`.
fn is_address_or_localhost(host: &str) -> bool {
    let is_port = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    match host.strip_prefix('[').map(|it| it.split_once(']')) {
        Some(Some((address, rest))) => {
            let is_whole = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
            is_whole && address.parse::<Ipv6Addr>().is_ok()
        }
        Some(None) => false,
        None => {
            let (name, port) = host.split_once(':').unwrap_or((host, ""));
            is_port(port) && (name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One address, a network of one byte, or everyone.
    enum List {
        One(IpAddr),
        FirstByte(u8),
        Everyone,
    }

    impl NetworkList for List {
        fn contains(&self, address: IpAddr) -> bool {
            match self {
                Self::One(one) => *one == address,
                Self::FirstByte(first) => matches!(address, IpAddr::V4(it) if it.octets()[0] == *first),
                Self::Everyone => true,
            }
        }

        fn names(&self, address: IpAddr) -> bool {
            matches!(self, Self::One(one) if *one == address)
        }

        fn contain_everyone(&self, _: IpAddr) -> bool {
            matches!(self, Self::Everyone)
        }
    }

    #[test]
    fn an_unknown_client_is_let_in_only_by_networks_that_mean_it() {
        let address = IpAddr::from([172, 17, 0, 1]);
        for (client, by_name, by_network, by_all) in [
            (Client::Peer, true, true, true),
            (Client::Named, true, true, true),
            (Client::Hidden, true, false, true),
            (Client::Unproven, false, false, true),
        ] {
            let origin = Origin { address, client, by_trusted_proxy: false };
            let found =
                [List::One(address), List::FirstByte(172), List::Everyone].map(|it| origin.is_in(&it));
            assert_eq!(found, [by_name, by_network, by_all], "{client:?}");
        }
    }

    #[test]
    fn a_host_is_an_address_or_localhost_only_as_a_whole() {
        for host in
            ["localhost", "LOCALHOST:", "localhost:80", "10.0.0.1", "10.0.0.1:80", "[::1]", "[fe80::1]:9"]
        {
            assert!(is_address_or_localhost(host), "{host}");
        }
        for host in [
            "",
            ":80",
            "tv",
            "localhost.",
            "localhost.tv.example",
            "10.0.0.1.tv.example",
            "localhost@tv.example",
            "anna@localhost",
            "localhost:80@tv.example",
            "localhost:tv",
            "::1",
            "[::1",
            "[::1]tv.example",
            "[::1]:80.tv",
            "[10.0.0.1]",
            "[]",
            "10.0.1",
            " localhost",
        ] {
            assert!(!is_address_or_localhost(host), "{host}");
        }
    }
}
