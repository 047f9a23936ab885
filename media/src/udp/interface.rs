//! Network interfaces, as operators and addresses of streams name them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4};
use std::str::FromStr;
use std::{fmt, fs, io};

use rustix::net::netdevice::name_to_index;
use socket2::{Domain, Socket, Type};

/// Maximum length of the name of an interface, in bytes.
const NAME_BYTES_MAX: usize = 15;
/// The interfaces with IPv6 addresses, one address per line.
const IPV6_ADDRESSES: &str = "/proc/net/if_inet6";

/// A network interface, by its name or one of its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interface {
    Address(IpAddr),
    Name(String),
}

/// The reason why a text names no interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an interface is named by its name, such as eth0, or by one of its addresses")]
pub struct InterfaceError;

impl FromStr for Interface {
    type Err = InterfaceError;

    fn from_str(text: &str) -> Result<Self, InterfaceError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        let is_name_character = |it: char| it.is_ascii_graphic() && it != '/' && it != ':';
        let is_name = (1..=NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(is_name_character);
        if is_name && text != "." && text != ".." {
            Ok(Self::Name(text.to_owned()))
        } else {
            Err(InterfaceError)
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl Interface {
    /// Returns whether it can be used for addresses of this family. A name can be used for both.
    pub(crate) fn fits(&self, address: IpAddr) -> bool {
        match self {
            Self::Address(own) => own.is_ipv4() == address.is_ipv4(),
            Self::Name(_) => true,
        }
    }

    /// Returns its number. An IPv4 address alone does not determine it.
    pub(crate) fn index(&self) -> io::Result<u32> {
        match self {
            Self::Name(name) => {
                let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
                name_to_index(&socket, name).map_err(io::Error::from)
            }
            Self::Address(IpAddr::V6(address)) => {
                let table = fs::read_to_string(IPV6_ADDRESSES)?;
                index_of(*address, &table).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
            }
            Self::Address(IpAddr::V4(_)) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Returns its IPv4 address.
    pub(crate) fn v4_address(&self) -> io::Result<Ipv4Addr> {
        match self {
            Self::Address(IpAddr::V4(address)) => Ok(*address),
            Self::Address(IpAddr::V6(_)) => Err(io::ErrorKind::InvalidInput.into()),
            Self::Name(name) => {
                // The kernel chooses the address from which it would send to a group. No packet is sent.
                const ANY_GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 255, 255);
                let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
                socket.bind_device(Some(name.as_bytes()))?;
                socket.connect(&SocketAddrV4::new(ANY_GROUP, 9).into())?;
                let address = socket.local_addr()?.as_socket_ipv4().map(|it| *it.ip());
                address
                    .filter(|it| !it.is_unspecified())
                    .ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
            }
        }
    }
}

/// Returns the number of the interface with this address. Each line of the table has an address as 32 digits, the number of
/// its interface as hexadecimal digits, and further columns.
fn index_of(address: Ipv6Addr, table: &str) -> Option<u32> {
    table.lines().find_map(|line| {
        let mut columns = line.split_ascii_whitespace();
        let found = u128::from_str_radix(columns.next()?, 16).ok()?;
        let index = u32::from_str_radix(columns.next()?, 16).ok()?;
        (Ipv6Addr::from(found) == address).then_some(index)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_named_by_name_or_address() {
        let check = |text: &str, expected: Option<Interface>| {
            assert_eq!(text.parse().ok(), expected, "{text}");
        };
        let name = |it: &str| Some(Interface::Name(it.to_owned()));
        check("eth0", name("eth0"));
        check("eth0.100", name("eth0.100"));
        check("192.0.2.1", Some(Interface::Address(IpAddr::from([192, 0, 2, 1]))));
        check("::ffff:192.0.2.1", Some(Interface::Address(IpAddr::from([192, 0, 2, 1]))));
        check("2001:db8::1", Some(Interface::Address("2001:db8::1".parse().unwrap())));
        for text in ["", ".", "..", "a/b", "a b", "a:1", "sixteen-letters-", "é"] {
            check(text, None);
        }
    }

    #[test]
    fn the_number_of_an_interface_is_found_by_its_ipv6_address() {
        let table = "00000000000000000000000000000001 01 80 10 80       lo\n\
                     20010db8000000000000000000000005 1f 40 00 80     eth0\n\
                     broken\n";
        assert_eq!(index_of("2001:db8::5".parse().unwrap(), table), Some(31));
        assert_eq!(index_of("::1".parse().unwrap(), table), Some(1));
        assert_eq!(index_of("2001:db8::6".parse().unwrap(), table), None);
    }

    #[test]
    fn the_loopback_interface_has_a_number() {
        assert!(Interface::Name("lo".to_owned()).index().is_ok_and(|it| it > 0));
        assert!(Interface::Name("no-such".to_owned()).index().is_err());
        assert!(Interface::Address(IpAddr::from([127, 0, 0, 1])).index().is_err());
    }
}
