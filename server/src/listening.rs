//! The sockets on which a gateway listens.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use config::Listen;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::runtime::Handle;

/// A port that cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("failed to listen on {listen}")]
pub struct ListenError {
    /// The wanted address.
    pub listen: Listen,
    /// Why.
    pub source: io::Error,
}

/// Length of the kernel's queue of connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Accepts connections of a socket on the runtime of packets. Returns the address that it is bound to.
///
/// # Errors
/// The system refuses it.
pub fn listen_on(
    (listen, listener): &(Listen, std::net::TcpListener),
    packets: &Handle,
) -> Result<(TcpListener, SocketAddr), ListenError> {
    let _entered = packets.enter();
    let accepting = listener.try_clone().and_then(TcpListener::from_std);
    accepting
        .and_then(|listener| Ok((listener.local_addr()?, listener)))
        .map(|(address, listener)| (listener, address))
        .map_err(|source| ListenError { listen: *listen, source })
}

/// Binds a port, and accepts its connections on the runtime of packets.
///
/// # Errors
/// The system refuses it.
pub fn bind_on(listen: Listen, packets: &Handle) -> Result<(TcpListener, SocketAddr), ListenError> {
    bind(listen).and_then(|it| listen_on(&(listen, it), packets))
}

/// Binds a port. A wildcard address binds both IPv6 and IPv4, or IPv4 alone where the kernel has no IPv6.
///
/// # Errors
/// The system refuses it.
pub fn bind(listen: Listen) -> Result<std::net::TcpListener, ListenError> {
    let address = listen.address();
    let bound = match bind_to(address) {
        Err(error) if listen.is_everywhere() && lacks_ipv6(&error) => {
            bind_to(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port()))
        }
        bound => bound,
    };
    bound.map_err(|source| ListenError { listen, source })
}

fn bind_to(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // Otherwise a restart would wait until the connections of the previous process leave TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Returns true if the kernel has no IPv6 or no IPv6 address. (The error "address family not supported" is 97 on Linux
/// and has no `ErrorKind` in the standard library.)
fn lacks_ipv6(error: &io::Error) -> bool {
    const EAFNOSUPPORT: i32 = 97;
    error.raw_os_error() == Some(EAFNOSUPPORT) || error.kind() == io::ErrorKind::AddrNotAvailable
}
