//! Who is local: any peer, in a container or not, with any headers of proxies and any host. A request that a proxy
//! forwarded is local only if a trusted proxy names a local client.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use arbitrary::Arbitrary;
use domain::origin::{NetworkList, Origin};
use libfuzzer_sys::fuzz_target;

/// Appended by a proxy; neither trusted nor local.
const REMOTE: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9));
/// The default gateway of the container.
const GATEWAY: IpAddr = IpAddr::V4(Ipv4Addr::new(172, 17, 0, 1));
/// Names of headers: those of proxies first.
const NAMES: [&str; 12] = [
    "x-forwarded-for",
    "forwarded",
    "via",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "cf-connecting-ip",
    "true-client-ip",
    "host",
    "origin",
    "user-agent",
    "x-forward",
];
const N_PROXY_NAMES: usize = 8;

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Address {
    Loopback(u8),
    LoopbackV6,
    MappedLoopback,
    Gateway,
    /// In the network of the container, where trusted proxies are.
    Neighbour(u8),
    Private(u8),
    V4([u8; 4]),
    V6([u8; 16]),
    Mapped([u8; 4]),
}

impl Address {
    fn ip(self) -> IpAddr {
        match self {
            Self::Loopback(last) => IpAddr::from([127, 0, 0, last]),
            Self::LoopbackV6 => Ipv6Addr::LOCALHOST.into(),
            Self::MappedLoopback => Ipv4Addr::LOCALHOST.to_ipv6_mapped().into(),
            Self::Gateway => GATEWAY,
            Self::Neighbour(last) => IpAddr::from([172, 17, 0, last]),
            Self::Private(last) => IpAddr::from([192, 168, 1, last]),
            Self::V4(bytes) => bytes.into(),
            Self::V6(bytes) => bytes.into(),
            Self::Mapped(bytes) => Ipv4Addr::from(bytes).to_ipv6_mapped().into(),
        }
    }
}

/// Lists of networks, as a configuration may have them.
#[derive(Debug, Clone, Copy, Arbitrary)]
enum List {
    Nothing,
    /// Loopback and private networks.
    Home,
    /// The network of the container.
    Neighbours,
    OnlyGateway,
    Everyone,
}

impl NetworkList for List {
    fn contains(&self, address: IpAddr) -> bool {
        let IpAddr::V4(v4) = address.to_canonical() else {
            return match self {
                Self::Everyone => true,
                Self::Home => address.is_loopback(),
                _ => false,
            };
        };
        match self {
            Self::Nothing => false,
            Self::Home => v4.is_loopback() || v4.is_private(),
            Self::Neighbours => v4.octets()[..2] == [172, 17],
            Self::OnlyGateway => v4 == GATEWAY,
            Self::Everyone => true,
        }
    }

    fn names(&self, address: IpAddr) -> bool {
        matches!(self, Self::OnlyGateway) && address.to_canonical() == GATEWAY
    }

    fn contain_everyone(&self, _: IpAddr) -> bool {
        matches!(self, Self::Everyone)
    }
}

#[derive(Debug, Arbitrary)]
struct Case<'a> {
    peer: Address,
    /// The address at which the connection arrived.
    local: Address,
    trusted: List,
    has_gateway: bool,
    is_rootless: bool,
    headers: Vec<(u8, &'a [u8])>,
    host: Option<&'a [u8]>,
    page: Option<&'a [u8]>,
}

fuzz_target!(|case: Case<'_>| {
    let (peer, local) = (case.peer.ip(), case.local.ip().to_canonical());
    let hides = |address: IpAddr| {
        let is_own = address.is_loopback() || address == local;
        (case.has_gateway && address == GATEWAY) || (case.is_rootless && is_own)
    };
    let headers: Vec<(&str, &[u8])> =
        case.headers.iter().map(|(name, value)| (NAMES[usize::from(*name) % NAMES.len()], *value)).collect();
    let is_forwarded = headers.iter().any(|it| NAMES[..N_PROXY_NAMES].contains(&it.0));
    let origin = Origin::from_request(peer, &case.trusted, hides, headers.iter().copied());
    let peer = peer.to_canonical();
    let is_local = origin.is_in(&List::Home);
    let is_on_this_machine = origin.is_on_this_machine(case.host, case.page);

    let is_trusted = match hides(peer) {
        true => case.trusted.names(peer),
        false => case.trusted.contains(peer),
    };
    assert_eq!(origin.is_by_trusted_proxy(), is_trusted);
    assert!(!origin.is_in(&List::Nothing) && origin.is_in(&List::Everyone));
    // Headers of a proxy that is not trusted change no address and never make anybody local.
    if is_forwarded && !is_trusted {
        assert_eq!(origin.address(), peer);
        assert!(!is_local && !is_on_this_machine && origin.doubt().is_some());
    }
    // Nobody is local through an address that may hide clients.
    if is_local {
        assert!(List::Home.contains(origin.address()) && !hides(origin.address()));
        assert_eq!(is_trusted, is_forwarded, "a proxy itself is not a client, and only a proxy names one");
    }
    // Without headers and trust, the peer alone decides.
    if !is_forwarded && !is_trusted {
        assert_eq!(is_local, List::Home.contains(peer) && !hides(peer));
    }
    if is_on_this_machine {
        assert!(is_local && peer.is_loopback() && !is_forwarded && !is_trusted);
        let host = str::from_utf8(case.host.expect("a host")).expect("visible text").to_ascii_lowercase();
        let is_name = host.starts_with(|it: char| it.is_ascii_alphabetic());
        assert!(!is_name || host == "localhost" || host.starts_with("localhost:"), "{host}");
        assert!(!host.contains(['@', '/', ' ']), "{host}");
        assert!(case.page.is_none_or(|it| it.ends_with(case.host.expect("a host"))));
    }
    // What a trusted proxy appends counts, whatever the client sent before.
    if is_trusted && !headers.iter().any(|it| it.0 == "forwarded") && !matches!(case.trusted, List::Everyone)
    {
        let remote = REMOTE.to_string();
        let appended = headers.iter().copied().chain([("x-forwarded-for", remote.as_bytes())]);
        let origin = Origin::from_request(peer, &case.trusted, hides, appended);
        if REMOTE != local {
            assert_eq!(origin.address(), REMOTE);
        }
        assert!(!origin.is_in(&List::Home));
    }
});
