//! Sends datagrams to a set-top box or a multicast group.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::Bytes;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::time::Instant;

use crate::rtp::{PAYLOAD_TYPE_TS, RTP_HEADER_BYTES, RtpHeader, write_header};
use crate::ts::packet::PACKET;
use crate::udp::Interface;
use crate::udp::schedule::PACKETS_PER_DATAGRAM;

/// The form of the datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendFormat {
    /// Transport stream packets and nothing else.
    Udp,
    /// The same in RTP.
    Rtp,
}

/// A receiver of datagrams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendTarget {
    pub format: SendFormat,
    /// A multicast group or one receiver.
    pub address: SocketAddr,
    /// The interface to send on; `None` leaves the choice to the system.
    pub interface: Option<Interface>,
    /// Maximum number of routers on the way.
    pub ttl: u8,
}

/// A socket that sends to one receiver.
#[derive(Debug)]
pub struct DatagramSender {
    socket: UdpSocket,
    to: SocketAddr,
    /// The header of the next packet of RTP, and the time of its first one.
    rtp: Option<(RtpHeader, Instant)>,
    buffer: Vec<u8>,
}

impl DatagramSender {
    /// Creates the socket. `chance` determines the first numbers of RTP, which have to differ between two starts.
    ///
    /// # Errors
    /// The interface does not exist, or the system refuses the socket.
    pub fn open(target: &SendTarget, chance: u64) -> io::Result<Self> {
        let address = target.address;
        let (domain, any): (_, IpAddr) = match address {
            SocketAddr::V4(_) => (Domain::IPV4, Ipv4Addr::UNSPECIFIED.into()),
            SocketAddr::V6(_) => (Domain::IPV6, Ipv6Addr::UNSPECIFIED.into()),
        };
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        let (ttl, is_group) = (u32::from(target.ttl), address.ip().is_multicast());
        match (address, is_group) {
            (SocketAddr::V4(_), true) => socket.set_multicast_ttl_v4(ttl)?,
            (SocketAddr::V4(_), false) => socket.set_ttl_v4(ttl)?,
            (SocketAddr::V6(_), true) => socket.set_multicast_hops_v6(ttl)?,
            (SocketAddr::V6(_), false) => socket.set_unicast_hops_v6(ttl)?,
        }
        let mut bound = SocketAddr::new(any, 0);
        match &target.interface {
            None => {}
            Some(interface) if !interface.fits(address.ip()) => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            Some(Interface::Name(name)) => socket.bind_device(Some(name.as_bytes()))?,
            Some(interface @ Interface::Address(own)) => {
                bound.set_ip(*own);
                match own {
                    IpAddr::V4(own) => socket.set_multicast_if_v4(own)?,
                    IpAddr::V6(_) => socket.set_multicast_if_v6(interface.index()?)?,
                }
            }
        }
        socket.bind(&bound.into())?;
        let first = RtpHeader {
            payload_type: PAYLOAD_TYPE_TS,
            sequence: chance as u16,
            timestamp: (chance >> 16) as u32,
            sender: (chance >> 32) as u32,
        };
        let rtp = (target.format == SendFormat::Rtp).then(|| (first, Instant::now()));
        let buffer = Vec::with_capacity(RTP_HEADER_BYTES + PACKETS_PER_DATAGRAM * PACKET);
        Ok(Self { socket: UdpSocket::from_std(socket.into())?, to: address, rtp, buffer })
    }

    /// Sends one datagram, which was due at this time.
    ///
    /// # Errors
    /// The system cannot send it, for example because no route leads to the receiver.
    pub async fn send(&mut self, due: Instant, packets: &Bytes) -> io::Result<()> {
        let Some((header, start)) = &mut self.rtp else {
            return self.socket.send_to(packets, self.to).await.map(drop);
        };
        let ticks = due.saturating_duration_since(*start).as_micros() * 9 / 100;
        let timestamp = header.timestamp.wrapping_add(ticks as u32);
        self.buffer.clear();
        write_header(&RtpHeader { timestamp, ..*header }, &mut self.buffer);
        self.buffer.extend_from_slice(packets);
        header.sequence = header.sequence.wrapping_add(1);
        self.socket.send_to(&self.buffer, self.to).await.map(drop)
    }
}
