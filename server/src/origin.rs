//! Determines the origins of requests, with the configuration and the network of the container. The rule itself is
//! [`domain::origin`].

use std::net::IpAddr;

use config::{Config, ContainerProxy, NetworkClass, Networks};
use domain::origin::Origin;
use http::HeaderMap;
use tracing::{info, warn};

use super::container::Container;

/// Determines the origins of requests.
#[derive(Debug)]
pub struct Origins {
    trusted: Networks,
    container: Option<Container>,
}

impl Origins {
    /// Reads the network of the container from the kernel, unless the configuration says otherwise.
    pub fn new(config: &Config) -> Self {
        let container = match config.container_proxy {
            ContainerProxy::Detect => Container::detect(),
            ContainerProxy::None => None,
        };
        Origins { trusted: config.trusted_proxies.clone(), container }
    }

    /// Returns the origin of a request on a connection from `peer`, which arrived at the address `local`.
    pub fn origin(&self, peer: IpAddr, local: IpAddr, headers: &HeaderMap) -> Origin {
        let local = local.to_canonical();
        let hides = |address| self.container.as_ref().is_some_and(|it| it.may_hide_clients(address, local));
        let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        Origin::from_request(peer, &self.trusted, hides, headers)
    }

    /// Logs which clients need no credentials and whose address is believed.
    pub fn log(&self, config: &Config) {
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
        let origins = origins("", in_container());
        let via = HeaderMap::from_iter([(http::header::VIA, HeaderValue::from_static("1.1 proxy"))]);
        let in_networks = |headers: &HeaderMap, networks: &str| {
            let peer = "172.17.0.1".parse().unwrap();
            let origin = origins.origin(peer, LOCAL.parse().unwrap(), headers);
            origin.is_in(&networks.parse::<Networks>().unwrap())
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
            assert_eq!(in_networks(&HeaderMap::new(), networks), hidden, "{networks}");
            assert_eq!(in_networks(&via, networks), unproven, "{networks}");
        }
    }
}
