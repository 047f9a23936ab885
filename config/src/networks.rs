//! Lists of networks, and classes of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use domain::origin::NetworkList;
use ipnet::IpNet;
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

use super::values::texts;

/// A list of networks. Each is `loopback`, `private`, `any`, an address, or an address with a prefix length
/// (`192.0.2.0/24`, `2001:db8::/32`). `none` stands for an empty list.
///
/// An IPv4-mapped IPv6 address (`::ffff:192.168.1.7`) counts as the IPv4 address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks(Vec<Network>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    Any,
    Loopback,
    Private,
    Block(IpNet),
}

impl Networks {
    /// Returns loopback and private networks, the default for streams and playlists without credentials.
    pub fn local() -> Self {
        Networks(vec![Network::Loopback, Network::Private])
    }

    /// Returns loopback.
    pub fn loopback() -> Self {
        Networks(vec![Network::Loopback])
    }

    /// Returns the list that contains every address.
    pub fn any() -> Self {
        Networks(vec![Network::Any])
    }

    /// Returns the empty list.
    pub const fn none() -> Self {
        Networks(Vec::new())
    }

    /// Returns true if the list has no network.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a network contains every IPv4 or every IPv6 address.
    pub fn has_everyone(&self) -> bool {
        [IpAddr::from([0; 4]), IpAddr::from([0; 16])].into_iter().any(|it| self.contain_everyone(it))
    }
}

impl NetworkList for Networks {
    fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|it| it.contains(address))
    }

    fn names(&self, address: IpAddr) -> bool {
        let address = IpNet::from(address.to_canonical());
        self.0.contains(&Network::Block(address))
    }

    fn contain_everyone(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|it| match it {
            Network::Any => true,
            Network::Block(block) => block.prefix_len() == 0 && block.contains(&address),
            Network::Loopback | Network::Private => false,
        })
    }
}

impl Default for Networks {
    fn default() -> Self {
        Networks::local()
    }
}

impl Network {
    /// `address` must be canonical.
    fn contains(self, address: IpAddr) -> bool {
        match self {
            Network::Any => true,
            Network::Loopback => address.is_loopback(),
            Network::Private => is_private(address),
            Network::Block(block) => block.contains(&address),
        }
    }
}

/// Returns true for private addresses: RFC 1918, link-local, and unique local IPv6.
///
/// Carrier-grade NAT (100.64.0.0/10) does not count, because customers of one provider share it.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => it.is_private() || it.is_link_local(),
        IpAddr::V6(it) => it.is_unique_local() || it.is_unicast_link_local(),
    }
}

/// Returns the network that limits treat as one client: an IPv4 address, or the /64 of an IPv6 address, because one
/// machine may use a whole /64.
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(it) if !it.is_loopback() => Ipv6Addr::from_bits(it.to_bits() & (u128::MAX << 64)).into(),
        it => it,
    }
}

/// Error for a malformed network.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid network `{0}`: expected `loopback`, `private`, `any`, an address or ADDRESS/PREFIX, or `none` alone"
)]
pub struct NetworkError(String);

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        Ok(match text {
            "any" => Network::Any,
            "loopback" => Network::Loopback,
            "private" => Network::Private,
            _ => {
                let block = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
                Network::Block(block.map_err(|_| NetworkError(text.to_owned()))?)
            }
        })
    }
}

impl FromStr for Networks {
    type Err = NetworkError;

    /// Parses a comma-separated list. An empty text, like `none`, is an empty list, which contains no address.
    fn from_str(text: &str) -> Result<Self, NetworkError> {
        if text.trim() == "none" {
            return Ok(Networks::none());
        }
        let words = text.split(',').map(str::trim).filter(|it| !it.is_empty());
        Ok(Networks(words.map(str::parse).collect::<Result<_, _>>()?))
    }
}

impl fmt::Display for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (index, network) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{network}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Network::Any => f.write_str("any"),
            Network::Loopback => f.write_str("loopback"),
            Network::Private => f.write_str("private"),
            Network::Block(block) => block.fmt(f),
        }
    }
}

impl Serialize for Networks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Network::to_string))
    }
}

impl<'de> Deserialize<'de> for Networks {
    /// Accepts a list of texts, or one comma-separated text.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut networks = Vec::new();
        for text in texts(deserializer, "a list of networks")? {
            networks.extend(text.parse::<Networks>().map_err(Error::custom)?.0);
        }
        Ok(Networks(networks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(networks: &str, address: &str, expected: bool) {
        let contains = networks.parse::<Networks>().unwrap().contains(address.parse().unwrap());
        assert_eq!(contains, expected, "{address} in {networks}");
    }

    #[test]
    fn loopback_and_private_addresses_are_local_and_others_are_not() {
        let home = "loopback, private";
        for address in ["127.0.0.1", "127.9.9.9", "::1", "10.1.2.3", "172.16.0.1", "172.31.255.255"] {
            check(home, address, true);
        }
        for address in ["192.168.178.20", "169.254.1.1", "fe80::1", "fd12:3456::1", "fc00::1"] {
            check(home, address, true);
        }
        for address in ["8.8.8.8", "172.32.0.1", "100.64.0.1", "192.169.0.1", "2001:db8::1", "0.0.0.0", "::"]
        {
            check(home, address, false);
        }
    }

    #[test]
    fn an_ipv4_mapped_ipv6_address_counts_as_the_ipv4_address() {
        check("loopback", "::ffff:127.0.0.1", true);
        check("private", "::ffff:192.168.1.7", true);
        check("private", "::ffff:8.8.8.8", false);
        check("192.0.2.0/24", "::ffff:192.0.2.9", true);
    }

    #[test]
    fn a_block_contains_the_addresses_with_its_prefix() {
        check("192.0.2.0/25", "192.0.2.127", true);
        check("192.0.2.0/25", "192.0.2.128", false);
        check("192.0.2.7", "192.0.2.7", true);
        check("192.0.2.7", "192.0.2.8", false);
        check("2001:db8::/32", "2001:db8:ffff::1", true);
        check("2001:db8::/32", "2001:db9::1", false);
        check("0.0.0.0/0", "8.8.8.8", true);
        check("0.0.0.0/0", "2001:db8::1", false);
        check("any", "2001:db8::1", true);
        check("", "127.0.0.1", false);
    }

    #[test]
    fn an_empty_list_is_written_as_none() {
        for text in ["none", " none ", "", " , "] {
            let networks = text.parse::<Networks>().unwrap();
            assert!(networks.is_empty(), "{text:?}");
            assert_eq!(networks.to_string(), "none");
        }
        let text = "loopback, private, 192.0.2.7/32, 2001:db8::/32";
        assert_eq!(text.parse::<Networks>().unwrap().to_string(), text);
        assert!("none, private".parse::<Networks>().is_err());
    }

    #[test]
    fn a_list_names_only_single_addresses() {
        let names = |networks: &str| networks.parse::<Networks>().unwrap().names("10.0.0.1".parse().unwrap());
        assert!(names("10.0.0.1") && names("private, 10.0.0.1/32"));
        assert!(!names("10.0.0.0/31") && !names("private") && !names("any") && !names("10.0.0.2"));
    }

    #[test]
    fn the_error_for_an_invalid_network_names_it() {
        for text in ["lan", "1.2.3.4/33", "::/129", "1.2.3", "10.0.0.0/x", "10.0.0.0/"] {
            let error = text.parse::<Networks>().unwrap_err();
            assert_eq!(error, NetworkError(text.to_owned()));
        }
    }

    #[test]
    fn a_client_network_is_an_ipv4_address_or_an_ipv6_network_of_64_bits() {
        let same =
            |a: &str, b: &str| client_network(a.parse().unwrap()) == client_network(b.parse().unwrap());
        assert!(same("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"));
        assert!(!same("2001:db8:1:2::1", "2001:db8:1:3::1"));
        assert!(same("::ffff:10.0.0.1", "10.0.0.1"));
        assert!(!same("10.0.0.1", "10.0.0.2"));
    }
}
