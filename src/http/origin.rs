//! Where a request comes from: the address of its client, and whether that address is certain.
//!
//! [`Origins::origin`] decides this once for every request. Networks, limits, delays, logs and statistics use its result
//! and never the address of the peer.
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

use std::net::IpAddr;

use http::HeaderMap;
use tracing::{info, warn};

use super::container::Container;
use super::forwarded;
use super::network::Networks;
use crate::config::{Config, ContainerProxy, NetworkClass};

/// The origin of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The client or, if it is unknown, the peer.
    address: IpAddr,
    client: Client,
    /// Whether the request arrived from a trusted proxy.
    by_trusted_proxy: bool,
}

/// How the client of a request is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Returns the address of the client. If it is unknown, this is the address of the proxy.
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns true if the client belongs to one of these networks. An unknown client belongs only to networks that
    /// contain every address, or that name exactly the address behind which clients are hidden.
    pub(crate) fn is_in(&self, networks: &Networks) -> bool {
        match self.client {
            Client::Peer | Client::Named => networks.contains(self.address),
            Client::Hidden => networks.names(self.address) || networks.contain_everyone(self.address),
            Client::Unproven => networks.contain_everyone(self.address),
        }
    }

    /// Returns true if the client is the peer itself: no proxy is in between, as far as that can be known.
    pub(crate) fn is_direct(&self) -> bool {
        self.client == Client::Peer
    }

    /// Returns true if the request arrived from a trusted proxy, whose headers are believed.
    pub(crate) fn is_by_trusted_proxy(&self) -> bool {
        self.by_trusted_proxy
    }

    /// Returns why the client is unknown, for logs and events. `None` if it is known.
    pub(crate) fn doubt(&self) -> Option<&'static str> {
        match self.client {
            Client::Peer | Client::Named => None,
            Client::Hidden => Some("this address may forward for any client, and does not name it"),
            Client::Unproven => {
                Some("a proxy forwarded the request, and trusted_proxies does not contain it")
            }
        }
    }
}

/// Determines the origins of requests.
#[derive(Debug)]
pub(crate) struct Origins {
    trusted: Networks,
    container: Option<Container>,
}

impl Origins {
    /// Reads the network of the container from the kernel, unless the configuration says otherwise.
    pub(crate) fn new(config: &Config) -> Self {
        let container = match config.container_proxy {
            ContainerProxy::Detect => Container::detect(),
            ContainerProxy::None => None,
        };
        Origins { trusted: config.trusted_proxies.clone(), container }
    }

    /// Returns the origin of a request on a connection from `peer`, which arrived at the address `local`.
    pub(crate) fn origin(&self, peer: IpAddr, local: IpAddr, headers: &HeaderMap) -> Origin {
        let (peer, local) = (peer.to_canonical(), local.to_canonical());
        let by_trusted_proxy = self.trusts(peer, local);
        let unknown = |client| Origin { address: peer, client, by_trusted_proxy };
        match (by_trusted_proxy, forwarded::is_forwarded(headers)) {
            (true, true) => match forwarded::client(headers, |it| self.trusts(it, local)) {
                None => unknown(Client::Unproven),
                // The proxy may stand behind a port of the container itself.
                Some(address) if self.hides(address, local) => {
                    Origin { address, client: Client::Hidden, by_trusted_proxy }
                }
                Some(address) => Origin { address, client: Client::Named, by_trusted_proxy },
            },
            (false, true) => unknown(Client::Unproven),
            (true, false) => unknown(Client::Hidden),
            (false, false) if self.hides(peer, local) => unknown(Client::Hidden),
            (false, false) => Origin { address: peer, client: Client::Peer, by_trusted_proxy },
        }
    }

    /// Returns true for trusted proxies. An address that may hide clients must be named exactly: it belongs to the same
    /// networks as a proxy in the next container, and can be reached without that proxy.
    fn trusts(&self, address: IpAddr, local: IpAddr) -> bool {
        match self.hides(address, local) {
            true => self.trusted.names(address),
            false => self.trusted.contains(address.to_canonical()),
        }
    }

    fn hides(&self, address: IpAddr, local: IpAddr) -> bool {
        self.container.as_ref().is_some_and(|it| it.may_hide_clients(address, local))
    }

    /// Logs which clients need no credentials and whose address is believed.
    pub(crate) fn log(&self, config: &Config) {
        let anonymous = |class| config.anonymous_networks(class);
        info!(
            streams = %anonymous(NetworkClass::Streams),
            playlists = %anonymous(NetworkClass::M3uEpg),
            metrics = %anonymous(NetworkClass::Metrics),
            "networks that need no credentials"
        );
        for class in NetworkClass::ALL {
            let networks = config.connect_networks(class);
            if !networks.has_everyone() {
                info!(%networks, "only these networks may use {class}");
            }
        }
        if self.trusted.is_empty() {
            info!("requests that a proxy forwards need credentials, because trusted_proxies is empty");
        } else {
            info!(trusted_proxies = %self.trusted, "the clients of these proxies are known by X-Forwarded-For or Forwarded");
        }
        let Some(container) = &self.container else { return };
        let mut hidden: Vec<String> = container.gateways.iter().map(IpAddr::to_string).collect();
        if container.is_rootless {
            hidden.extend(["loopback".to_owned(), "the container's own address".to_owned()]);
        }
        if hidden.is_empty() {
            return warn!(
                "running in a container without a default gateway; published ports may hide the addresses of clients"
            );
        }
        info!(
            addresses = hidden.join(", "),
            "running in a container: connections from these addresses need credentials, because published ports may \
             hide clients behind them; name an address in stream_networks to let it in, or set container_proxy to none"
        );
    }
}

#[cfg(test)]
mod tests {
    use http::header::{HeaderName, HeaderValue};

    use super::*;

    const LOCAL: &str = "172.17.0.2";

    fn origins(trusted: &str, container: Option<Container>) -> Origins {
        Origins { trusted: trusted.parse().unwrap(), container }
    }

    fn in_container() -> Option<Container> {
        Some(Container { gateways: vec!["172.17.0.1".parse().unwrap()], is_rootless: true })
    }

    /// Checks the address of the client, and whether it is local.
    #[track_caller]
    fn check(
        origins: &Origins,
        peer: &str,
        header: Option<(&'static str, &'static str)>,
        expected: (&str, bool),
    ) {
        let header =
            header.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let headers = header.into_iter().collect();
        let origin = origins.origin(peer.parse().unwrap(), LOCAL.parse().unwrap(), &headers);
        let found = (origin.address().to_string(), origin.is_in(&Networks::local()));
        assert_eq!((found.0.as_str(), found.1), expected, "{peer} {headers:?}");
    }

    const REMOTE: Option<(&str, &str)> = Some(("x-forwarded-for", "127.0.0.1, 203.0.113.9"));
    const NEAR: Option<(&str, &str)> = Some(("x-forwarded-for", "203.0.113.9, 192.168.1.5"));

    #[test]
    fn a_peer_without_headers_of_a_proxy_is_the_client() {
        let origins = origins("", None);
        check(&origins, "192.168.1.5", None, ("192.168.1.5", true));
        check(&origins, "::ffff:192.168.1.5", None, ("192.168.1.5", true));
        check(&origins, "127.0.0.1", None, ("127.0.0.1", true));
        check(&origins, "203.0.113.9", None, ("203.0.113.9", false));
    }

    /// Holds T-acc.6.
    #[test]
    fn a_client_behind_a_proxy_that_is_not_trusted_is_not_local() {
        let origins = origins("192.168.1.2", None);
        for header in ["x-forwarded-for", "forwarded", "x-real-ip", "via", "x-forwarded-proto"] {
            for value in ["127.0.0.1", "for=127.0.0.1", "192.168.1.5"] {
                check(&origins, "127.0.0.1", Some((header, value)), ("127.0.0.1", false));
                check(&origins, "192.168.1.5", Some((header, value)), ("192.168.1.5", false));
            }
        }
    }

    /// Holds T-acc.6.
    #[test]
    fn a_trusted_proxy_names_the_client_and_is_not_the_client_itself() {
        let origins = origins("192.168.1.2, ::1", None);
        check(&origins, "192.168.1.2", REMOTE, ("203.0.113.9", false));
        check(&origins, "192.168.1.2", NEAR, ("192.168.1.5", true));
        check(&origins, "::1", NEAR, ("192.168.1.5", true));
        check(&origins, "192.168.1.2", None, ("192.168.1.2", false));
        check(&origins, "192.168.1.2", Some(("x-forwarded-for", "unknown")), ("192.168.1.2", false));
        check(&origins, "192.168.1.2", Some(("x-real-ip", "192.168.1.5")), ("192.168.1.2", false));
    }

    #[test]
    fn clients_that_a_container_may_hide_are_not_local() {
        let origins = origins("", in_container());
        for hidden in ["172.17.0.1", "127.0.0.1", "::1", LOCAL] {
            check(&origins, hidden, None, (hidden, false));
        }
        check(&origins, "172.17.0.5", None, ("172.17.0.5", true));
    }

    /// A proxy in the next container sees the same gateway, for clients from anywhere.
    #[test]
    fn the_gateway_of_a_container_is_neither_trusted_by_its_network_nor_local_behind_a_proxy() {
        let broad = origins("172.17.0.0/16", in_container());
        check(&broad, "172.17.0.1", NEAR, ("172.17.0.1", false));
        check(&broad, "172.17.0.3", NEAR, ("192.168.1.5", true));
        let behind = Some(("x-forwarded-for", "127.0.0.1, 172.17.0.1"));
        check(&broad, "172.17.0.3", behind, ("172.17.0.1", false));
        let exact = origins("172.17.0.1", in_container());
        check(&exact, "172.17.0.1", NEAR, ("192.168.1.5", true));
    }

    #[test]
    fn an_unknown_client_is_let_in_only_by_networks_that_mean_it() {
        let in_networks = |client, networks: &str| {
            let address = "172.17.0.1".parse().unwrap();
            let origin = Origin { address, client, by_trusted_proxy: false };
            origin.is_in(&networks.parse().unwrap())
        };
        for (networks, hidden, unproven) in [
            ("loopback, private", false, false),
            ("172.17.0.0/16", false, false),
            ("172.17.0.2", false, false),
            ("private, 172.17.0.1", true, false),
            ("any", true, true),
            ("0.0.0.0/0", true, true),
            ("::/0", false, false),
        ] {
            assert_eq!(in_networks(Client::Hidden, networks), hidden, "{networks}");
            assert_eq!(in_networks(Client::Unproven, networks), unproven, "{networks}");
        }
    }
}
