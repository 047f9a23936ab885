//! The networking of the container that the gateway runs in, if it runs in one.
//!
//! A program that forwards a published port into a container, such as docker's user-space proxy or rootlesskit, opens a
//! connection of its own and adds no headers. The gateway then sees the address of that program for clients from
//! anywhere: usually the default gateway of the container or, under rootless networking, loopback or the container's own
//! address.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// Files that container engines create in every container.
const MARKS: [&str; 2] = ["/.dockerenv", "/run/.containerenv"];
/// Environment variables that container engines and orchestrators set.
const VARIABLES: [&str; 2] = ["container", "KUBERNETES_SERVICE_HOST"];
/// Flag of a route that leads through a gateway, in the tables of the kernel.
const RTF_GATEWAY: u32 = 2;

/// The container that the gateway runs in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Container {
    /// The default gateways of its network.
    pub(super) gateways: Vec<IpAddr>,
    /// Whether it runs in a user namespace, as rootless containers do.
    pub(super) is_rootless: bool,
}

impl Container {
    /// Returns the container of this process, or `None` if it runs in none. Reads files of the kernel.
    pub(crate) fn detect() -> Option<Self> {
        let is_container = MARKS.iter().any(|it| Path::new(it).exists())
            || VARIABLES.iter().any(|it| std::env::var_os(it).is_some_and(|it| !it.is_empty()));
        is_container.then(|| {
            let read = |path| fs::read_to_string(path).unwrap_or_default();
            Container {
                gateways: gateways_v4(&read("/proc/net/route"))
                    .chain(gateways_v6(&read("/proc/net/ipv6_route")))
                    .collect(),
                is_rootless: is_mapped(&read("/proc/self/uid_map")),
            }
        })
    }

    /// Returns true if a program that forwards ports may use this address for connections of clients from anywhere.
    /// `local` is the address at which the connection arrived.
    pub(super) fn may_hide_clients(&self, address: IpAddr, local: IpAddr) -> bool {
        let is_own = address.is_loopback() || address == local;
        self.gateways.contains(&address) || (self.is_rootless && is_own)
    }
}

/// Returns the default gateways in `/proc/net/route`, whose addresses are hexadecimal in the byte order of the machine.
fn gateways_v4(table: &str) -> impl Iterator<Item = IpAddr> {
    table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (destination, gateway, flags) = (*fields.get(1)?, *fields.get(2)?, *fields.get(3)?);
        let is_gateway = u32::from_str_radix(flags, 16).ok()? & RTF_GATEWAY != 0;
        let gateway = u32::from_str_radix(gateway, 16).ok()?;
        (is_gateway && destination == "00000000").then(|| Ipv4Addr::from(gateway.to_ne_bytes()).into())
    })
}

/// Returns the default gateways in `/proc/net/ipv6_route`, whose addresses are hexadecimal in network byte order.
fn gateways_v6(table: &str) -> impl Iterator<Item = IpAddr> {
    table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (destination, prefix) = (u128::from_str_radix(fields.first()?, 16).ok()?, *fields.get(1)?);
        let gateway = u128::from_str_radix(fields.get(4)?, 16).ok()?;
        let is_gateway = u32::from_str_radix(fields.get(8)?, 16).ok()? & RTF_GATEWAY != 0;
        (is_gateway && destination == 0 && prefix == "00").then(|| Ipv6Addr::from(gateway).into())
    })
}

/// Returns true if this map of user ids is not the one of the whole machine.
fn is_mapped(uid_map: &str) -> bool {
    let fields: Vec<&str> = uid_map.split_ascii_whitespace().collect();
    !fields.is_empty() && fields != ["0", "0", "4294967295"]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(addresses: impl Iterator<Item = IpAddr>) -> Vec<String> {
        addresses.map(|it| it.to_string()).collect()
    }

    #[test]
    fn default_gateways_are_read_from_the_tables_of_the_kernel() {
        let gateway = u32::from_ne_bytes([172, 17, 0, 1]);
        let table = format!(
            "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n\
             eth0\t00000000\t{gateway:08X}\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
             eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
             eth0\t0000000A\t{gateway:08X}\t0003\t0\t0\t0\t000000FF\t0\t0\t0\n\
             tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0\nbroken\n"
        );
        assert_eq!(texts(gateways_v4(&table)), ["172.17.0.1"]);
        let zero = "0".repeat(32);
        let table = format!(
            "fd000000000000000000000000000000 40 {zero} 00 {zero} 00000100 00000001 00000000 00000001 eth0\n\
             {zero} 00 {zero} 00 fd000000000000000000000000000001 00000400 00000003 00000000 00000003 eth0\n\
             {zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200 lo\nbroken\n"
        );
        assert_eq!(texts(gateways_v6(&table)), ["fd00::1"]);
    }

    #[test]
    fn a_user_namespace_is_recognised_by_its_map() {
        assert!(!is_mapped("         0          0 4294967295\n"));
        assert!(!is_mapped(""));
        assert!(is_mapped("         0       1000          1\n         1     100000      65536\n"));
    }

    #[test]
    fn the_gateway_hides_clients_and_loopback_does_under_rootless_networking() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let rooted = Container { gateways: vec![address("172.17.0.1")], is_rootless: false };
        let rootless = Container { is_rootless: true, ..rooted.clone() };
        for (text, in_rooted, in_rootless) in [
            ("172.17.0.1", true, true),
            ("172.17.0.9", false, false),
            ("192.168.1.5", false, false),
            ("127.0.0.1", false, true),
            ("::1", false, true),
            // The address at which the connection arrived.
            ("172.17.0.2", false, true),
        ] {
            let hides = |it: &Container| it.may_hide_clients(address(text), address("172.17.0.2"));
            assert_eq!((hides(&rooted), hides(&rootless)), (in_rooted, in_rootless), "{text}");
        }
    }
}
