//! The socket that receives the datagrams of one source.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use rustix::io::Errno;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tracing::debug;

use super::address::UdpAddress;
use super::senders;
use crate::error::Cause;
use crate::source::settings::UdpSettings;
use crate::udp::Interface;

/// A bound socket, and the senders whose datagrams are taken; all if there are none.
pub(super) struct Receiver {
    pub(super) socket: UdpSocket,
    pub(super) senders: Vec<IpAddr>,
}

/// Joins a group, or listens on a port of this machine. `host` is the address to which its host was resolved; `None` is every
/// address of this machine.
pub(super) fn open(
    address: &UdpAddress,
    host: Option<IpAddr>,
    settings: &UdpSettings,
) -> Result<Receiver, Cause> {
    let mut senders = address.sources.clone();
    let any = |it: IpAddr| {
        if it.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { IpAddr::from(Ipv6Addr::UNSPECIFIED) }
    };
    let opened = match host {
        Some(group) if group.is_multicast() => join(group, address, settings),
        Some(host) => match bind(SocketAddr::new(host, address.port), settings) {
            // An address of another machine is that of the sender.
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                senders.push(host);
                bind(SocketAddr::new(any(host), address.port), settings)
            }
            other => other,
        },
        None => {
            let of_sources = senders.first().map_or(Ipv4Addr::UNSPECIFIED.into(), |it| any(*it));
            bind(SocketAddr::new(of_sources, address.port), settings)
        }
    };
    let has_interface = address.interface.is_some() || settings.interface.is_some();
    let cause = |error: io::Error| Cause::Connect(reason(&error, has_interface));
    let socket = UdpSocket::from_std(opened.map_err(cause)?.into()).map_err(cause)?;
    Ok(Receiver { socket, senders })
}

/// The message for an interface that does not exist, or not yet.
const MISSING: &str = "the network interface does not exist";

/// Returns a reason without addresses.
fn reason(error: &io::Error, has_interface: bool) -> String {
    let is_missing = error.raw_os_error() == Some(Errno::NODEV.raw_os_error());
    match error.kind() {
        io::ErrorKind::AddrInUse => "the UDP port is in use".to_owned(),
        io::ErrorKind::NotFound | io::ErrorKind::AddrNotAvailable => MISSING.to_owned(),
        _ if is_missing && has_interface => MISSING.to_owned(),
        _ if is_missing => "no network interface leads to the multicast group; choose one".to_owned(),
        kind => kind.to_string(),
    }
}

fn bind(to: SocketAddr, settings: &UdpSettings) -> io::Result<Socket> {
    let socket = socket(to.ip(), settings)?;
    socket.bind(&to.into())?;
    Ok(socket)
}

/// Joins a group. The kernel leaves it when the socket is dropped.
fn join(group: IpAddr, address: &UdpAddress, settings: &UdpSettings) -> io::Result<Socket> {
    let default = settings.interface.as_ref().filter(|it| it.fits(group));
    let interface = address.interface.as_ref().or(default);
    let socket = socket(group, settings)?;
    // Several channels may receive different groups on the same port.
    socket.set_reuse_address(true)?;
    match group {
        IpAddr::V4(group) => {
            // Bound to the group, so that packets of others on the same port stay away.
            socket.bind(&SocketAddr::from((group, address.port)).into())?;
            socket.set_multicast_all_v4(false)?;
            let sources: Vec<_> = address.sources.iter().filter_map(v4).collect();
            if sources.is_empty() {
                let interface = match interface {
                    None => InterfaceIndexOrAddress::Address(Ipv4Addr::UNSPECIFIED),
                    Some(Interface::Address(IpAddr::V4(it))) => InterfaceIndexOrAddress::Address(*it),
                    Some(other) => InterfaceIndexOrAddress::Index(other.index()?),
                };
                socket.join_multicast_v4_n(&group, &interface)?;
            } else {
                let interface = interface.map_or(Ok(Ipv4Addr::UNSPECIFIED), Interface::v4_address)?;
                for source in sources {
                    socket.join_ssm_v4(&source, &group, &interface)?;
                }
            }
        }
        IpAddr::V6(group) => {
            let index = interface.map_or(Ok(0), Interface::index)?;
            let scope = if is_link_local(group) { index } else { 0 };
            socket.bind(&SocketAddr::from(SocketAddrV6::new(group, address.port, 0, scope)).into())?;
            // Kernels before 4.20 do not know the option; the address of the group keeps most others away, too.
            let _ = socket.set_multicast_all_v6(false);
            let sources: Vec<_> = address.sources.iter().filter_map(v6).collect();
            if sources.is_empty() {
                socket.join_multicast_v6(&group, index)?;
            }
            for source in sources {
                senders::join(&socket, group, source, index)?;
            }
        }
    }
    Ok(socket)
}

fn socket(address: IpAddr, settings: &UdpSettings) -> io::Result<Socket> {
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        // `[::]` also receives from IPv4 then, as other programs do.
        socket.set_only_v6(!address.is_unspecified())?;
    }
    socket.set_recv_buffer_size(settings.receive_buffer_bytes)?;
    // The kernel reports twice the size, for its own data.
    let granted = socket.recv_buffer_size()? / 2;
    if granted < settings.receive_buffer_bytes {
        debug!(granted, wanted = settings.receive_buffer_bytes, "the kernel limits the receive buffer");
    }
    Ok(socket)
}

fn v4(address: &IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    }
}

fn v6(address: &IpAddr) -> Option<Ipv6Addr> {
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(*address),
    }
}

/// Returns whether a group is of one link: of interfaces or of the link.
fn is_link_local(group: Ipv6Addr) -> bool {
    matches!(group.segments()[0] & 0x000f, 1 | 2)
}
