//! From where a request comes: classes of addresses, and lists of them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// A list of networks; an address is allowed when one of them contains it.
///
/// Written as a list of words: `loopback`, `private`, `any`, an address, or an address with a prefix
/// length (`192.0.2.0/24`, `2001:db8::/32`).
/// An IPv4 address that arrives inside an IPv6 one (`::ffff:192.168.1.7`) counts as the IPv4 address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks(Vec<Network>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    Any,
    Loopback,
    Private,
    Block { base: IpAddr, prefix: u8 },
}

impl Networks {
    /// Loopback and private addresses: the default wherever nobody has shown credentials.
    pub fn at_home() -> Self {
        Networks(vec![Network::Loopback, Network::Private])
    }

    /// Does one of these networks contain `address`?
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|it| it.contains(address))
    }
}

impl Default for Networks {
    fn default() -> Self {
        Networks::at_home()
    }
}

impl Network {
    /// `address` is canonical already.
    fn contains(self, address: IpAddr) -> bool {
        match self {
            Network::Any => true,
            Network::Loopback => address.is_loopback(),
            Network::Private => is_private(address),
            Network::Block { base, prefix } => in_block(address, base, prefix),
        }
    }
}

/// Addresses that a home or an office gives itself: RFC 1918, link-local, and unique local IPv6.
///
/// Carrier-grade NAT (100.64.0.0/10) is not among them: the neighbours there are strangers.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => it.is_private() || it.is_link_local(),
        IpAddr::V6(it) => it.is_unique_local() || it.is_unicast_link_local(),
    }
}

fn in_block(address: IpAddr, base: IpAddr, prefix: u8) -> bool {
    match (address, base) {
        (IpAddr::V4(address), IpAddr::V4(base)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            address.to_bits() & mask == base.to_bits() & mask
        }
        (IpAddr::V6(address), IpAddr::V6(base)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            address.to_bits() & mask == base.to_bits() & mask
        }
        _ => false,
    }
}

/// The unit in which connections of one neighbour are counted: an IPv4 address, or the /64 of an IPv6 one,
/// because one machine may use all of a /64.
pub(crate) fn neighbour(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(it) if !it.is_loopback() => Ipv6Addr::from_bits(it.to_bits() & (u128::MAX << 64)).into(),
        it => it,
    }
}

/// What is wrong with the text of a network.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no network: expected `loopback`, `private`, `any`, an address or ADDRESS/PREFIX")]
pub struct NetworkError(String);

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let error = || NetworkError(text.to_owned());
        match text {
            "any" => return Ok(Network::Any),
            "loopback" => return Ok(Network::Loopback),
            "private" => return Ok(Network::Private),
            _ => {}
        }
        let (base, prefix) = match text.split_once('/') {
            Some((base, prefix)) => (base, Some(prefix.parse::<u8>().map_err(|_| error())?)),
            None => (text, None),
        };
        let base: IpAddr = base.parse().map_err(|_| error())?;
        let longest = match base {
            IpAddr::V4(_) => Ipv4Addr::BITS as u8,
            IpAddr::V6(_) => Ipv6Addr::BITS as u8,
        };
        let prefix = prefix.unwrap_or(longest);
        if prefix > longest { Err(error()) } else { Ok(Network::Block { base, prefix }) }
    }
}

impl FromStr for Networks {
    type Err = NetworkError;

    /// Words with commas between them; an empty text is an empty list, which allows nobody.
    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let words = text.split(',').map(str::trim).filter(|it| !it.is_empty());
        Ok(Networks(words.map(str::parse).collect::<Result<_, _>>()?))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Network::Any => f.write_str("any"),
            Network::Loopback => f.write_str("loopback"),
            Network::Private => f.write_str("private"),
            Network::Block { base, prefix } => write!(f, "{base}/{prefix}"),
        }
    }
}

impl Serialize for Networks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Network::to_string))
    }
}

impl<'de> Deserialize<'de> for Networks {
    /// A list of words, or one text with commas.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;

        impl<'de> Visitor<'de> for Words {
            type Value = Networks;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of networks")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Networks, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut words: A) -> Result<Networks, A::Error> {
                let mut networks = Vec::new();
                while let Some(word) = words.next_element::<String>()? {
                    networks.push(word.parse().map_err(serde::de::Error::custom)?);
                }
                Ok(Networks(networks))
            }
        }

        deserializer.deserialize_any(Words)
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
    fn loopback_and_private_addresses_are_at_home_and_others_are_not() {
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
    fn an_ipv4_address_inside_an_ipv6_one_counts_as_the_ipv4_address() {
        check("loopback", "::ffff:127.0.0.1", true);
        check("private", "::ffff:192.168.1.7", true);
        check("private", "::ffff:8.8.8.8", false);
        check("192.0.2.0/24", "::ffff:192.0.2.9", true);
    }

    #[test]
    fn blocks_are_cut_at_their_prefix() {
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
    fn what_is_no_network_is_refused_with_its_name() {
        for text in ["lan", "1.2.3.4/33", "::/129", "1.2.3", "10.0.0.0/x", "10.0.0.0/"] {
            let error = text.parse::<Networks>().unwrap_err();
            assert_eq!(error, NetworkError(text.to_owned()));
        }
    }

    #[test]
    fn a_neighbour_is_an_ipv4_address_or_an_ipv6_network_of_64_bits() {
        let same = |a: &str, b: &str| neighbour(a.parse().unwrap()) == neighbour(b.parse().unwrap());
        assert!(same("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"));
        assert!(!same("2001:db8:1:2::1", "2001:db8:1:3::1"));
        assert!(same("::ffff:10.0.0.1", "10.0.0.1"));
        assert!(!same("10.0.0.1", "10.0.0.2"));
    }
}
