//! A transport stream in datagrams: UDP or RTP, to a port of this machine or to a multicast group.
//!
//! A group is joined when the source is opened, and left when the source is dropped. All viewers of a channel share one
//! source, so they share the join.

mod address;
mod senders;
mod socket;
#[cfg(test)]
mod tests;

use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::{Bytes, BytesMut};
use tokio::time::{Instant, sleep_until};

use self::address::{UdpAddress, UdpHost};
use self::socket::Receiver;
use crate::closer::{Closer, SocketCount};
use crate::dial::{Dial, DialAddress};
use crate::error::{Cause, UpstreamError};
use crate::permit::Permit;
use crate::rtp::{RtpCounts, RtpHeader, RtpSequence};
use crate::source::request::AddressPolicy;
use crate::source::settings::SourceSettings;
use crate::ts::packet::PACKET;

/// Maximum length of a datagram.
const DATAGRAM_BYTES_MAX: usize = 64 << 10;
/// Bytes after which what has arrived is passed on.
const READ_BYTES: usize = 128 << 10;
/// Number of datagrams after which other work gets its turn.
const DATAGRAMS_PER_TURN: usize = 256;
/// Number of RTP packets without a transport stream after which the source counts as something else.
const FOREIGN_MAX: u32 = 64;

/// A bound socket and the permit to read it.
pub(super) struct UdpSource {
    // Field order is drop order: the permit is returned when the socket is gone.
    receiver: Receiver,
    _count: SocketCount,
    /// The last datagram.
    datagram: Box<[u8]>,
    out: BytesMut,
    sequence: RtpSequence,
    framing: Framing,
    /// Packets whose loss was reported.
    n_reported: u64,
    place: String,
    permit: Box<dyn Permit>,
}

/// How the packets are in the datagrams. It can change when the sender starts again.
enum Framing {
    /// Nothing has arrived. Contains the number of RTP packets with another payload.
    Unknown(u32),
    Plain,
    Rtp,
}

/// Returns the parsed address if it is one of UDP or RTP.
pub(super) fn parse(url: &str) -> Option<Result<UdpTarget, Cause>> {
    Some(UdpAddress::parse(url)?.map(UdpTarget))
}

/// An address of UDP or RTP.
pub(super) struct UdpTarget(UdpAddress);

impl UdpSource {
    /// Joins the group, or listens on the port.
    pub(super) async fn open(
        target: UdpTarget,
        policy: Option<&dyn AddressPolicy>,
        permit: Box<dyn Permit>,
        dial: &dyn Dial,
        closer: &Closer,
        settings: &SourceSettings,
    ) -> Result<Self, UpstreamError> {
        let UdpTarget(address) = target;
        let host = match &address.host {
            UdpHost::Any => None,
            UdpHost::Address(host) => Some(*host),
            UdpHost::Name(name) => {
                let name = DialAddress { secure: false, host: name.clone(), port: address.port };
                let found = dial.resolve(&name, settings.connect_timeout).await?;
                Some(found.first().ok_or(Cause::Dns)?.ip().to_canonical())
            }
        };
        // A group is joined, and nobody is asked for anything. Anything else opens a port of this machine.
        let group = host.filter(IpAddr::is_multicast);
        let opened = SocketAddr::new(group.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), address.port);
        if let Some(policy) = policy {
            policy.check(opened, None).map_err(Cause::Forbidden)?;
        }
        let count = closer.count_socket();
        let receiver = socket::open(&address, host, &settings.udp)?;
        Ok(Self {
            receiver,
            _count: count,
            datagram: vec![0; DATAGRAM_BYTES_MAX].into_boxed_slice(),
            out: BytesMut::new(),
            sequence: RtpSequence::default(),
            framing: Framing::Unknown(0),
            n_reported: 0,
            place: SocketAddr::new(host.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), address.port).to_string(),
            permit,
        })
    }

    /// Returns the group or address, and the port.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Records that payload arrives.
    pub(super) fn delivers(&mut self) {
        self.permit.delivers();
    }

    /// Reads what has arrived. Cancel-safe.
    pub(super) async fn read(&mut self) -> Result<Bytes, UpstreamError> {
        loop {
            self.receive()?;
            if !self.out.is_empty() {
                return Ok(self.out.split().freeze());
            }
            let deadline = self.sequence.deadline();
            tokio::select! {
                ready = self.receiver.socket.readable() => ready.map_err(|it| UpstreamError::from_read(&it))?,
                () = until(deadline) => self.sequence.expire(Instant::now(), &mut self.out),
            }
        }
    }

    /// Takes the datagrams that have arrived, without waiting.
    fn receive(&mut self) -> Result<(), UpstreamError> {
        for _ in 0..DATAGRAMS_PER_TURN {
            if self.out.len() >= READ_BYTES {
                break;
            }
            match self.receiver.socket.try_recv_from(&mut self.datagram) {
                Ok((length, from)) => {
                    let senders = &self.receiver.senders;
                    if senders.is_empty() || senders.contains(&from.ip().to_canonical()) {
                        self.take(length)?;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(UpstreamError::from_read(&error)),
            }
        }
        Ok(())
    }

    /// Takes the datagram with this length.
    fn take(&mut self, length: usize) -> Result<(), UpstreamError> {
        let datagram = &self.datagram[..length];
        if let Some((header, payload)) = RtpHeader::parse_ts(datagram) {
            self.framing = Framing::Rtp;
            self.sequence.push(&header, payload, Instant::now(), &mut self.out);
            return Ok(());
        }
        let is_foreign = RtpHeader::parse(datagram).is_some();
        match &mut self.framing {
            // Error correction and reports, which some senders send to the same port.
            Framing::Rtp if !is_plain_ts(datagram) => {}
            Framing::Unknown(n_foreign) if is_foreign => {
                *n_foreign += 1;
                if *n_foreign > FOREIGN_MAX {
                    return Err(Cause::NotTs("RTP with another payload".to_owned()).into());
                }
            }
            _ => {
                self.framing = Framing::Plain;
                self.out.extend_from_slice(datagram);
            }
        }
        Ok(())
    }

    /// Returns the number of packets that were lost since the last call.
    pub(super) fn take_lost(&mut self) -> u64 {
        let RtpCounts { lost, .. } = self.sequence.counts();
        lost - std::mem::replace(&mut self.n_reported, lost)
    }
}

/// Returns whether a datagram consists of transport stream packets.
fn is_plain_ts(datagram: &[u8]) -> bool {
    datagram.first() == Some(&0x47) && datagram.len().is_multiple_of(PACKET)
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
