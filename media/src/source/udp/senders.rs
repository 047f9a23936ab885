//! Joins a group of IPv6 for the packets of one sender only, with MLDv2. `socket2` can do this for IPv4 only.

use std::io;
use std::net::{Ipv6Addr, SocketAddrV6};

use nix::sys::socket::SetSockOpt;
use nix::sys::socket::sockopt::SetStruct;
use socket2::{SockAddr, SockAddrStorage, Socket};

/// `struct group_source_req` of RFC 3678.
#[repr(C)]
struct GroupSourceRequest {
    interface: u32,
    group: SockAddrStorage,
    source: SockAddrStorage,
}

/// The option of a socket that joins a group.
#[derive(Clone)]
struct JoinSourceGroup;

nix::setsockopt_impl!(
    JoinSourceGroup,
    libc::IPPROTO_IPV6,
    libc::MCAST_JOIN_SOURCE_GROUP,
    GroupSourceRequest,
    SetStruct<'_, GroupSourceRequest>
);

/// Joins `group` for the packets of `sender`, on the interface with this number; 0 leaves the choice to the system.
pub(super) fn join(socket: &Socket, group: Ipv6Addr, sender: Ipv6Addr, interface: u32) -> io::Result<()> {
    let address = |it| SockAddr::from(SocketAddrV6::new(it, 0, 0, 0)).as_storage();
    let request = GroupSourceRequest { interface, group: address(group), source: address(sender) };
    JoinSourceGroup.set(socket, &request).map_err(io::Error::from)
}
