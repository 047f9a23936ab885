//! Collects PES packets from the packets of one stream.

use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

use crate::ts::packet::Packet;
use crate::ts::pes::{Stamps, is_pes_start, pes_header, pes_length};

/// Longer PES packets are dropped. A picture of 100 Mbit/s video has less than 4 MB.
const PES_BYTES_MAX: usize = 16 << 20;

/// A complete PES packet.
#[derive(Clone, Debug)]
pub(super) struct Pes {
    pub(super) stamps: Stamps,
    pub(super) data: Bytes,
    /// Whether a decoder can start here.
    pub(super) is_point: bool,
    pub(super) arrived: Instant,
}

/// Collects the PES packets of one stream.
#[derive(Debug)]
pub(super) struct PesCollector {
    bytes: BytesMut,
    /// Header included; `None` until the next PES packet starts.
    length: Option<usize>,
    is_open: bool,
    is_point: bool,
    arrived: Instant,
    stuffing: Stuffing,
    /// Whether the newest packet of an open PES packet without a length has stuffing.
    has_stuffing: bool,
}

/// The meaning of stuffing in a stream whose PES packets have no length. A multiplexer fills the last packet of a picture
/// with it, so slides need not wait for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stuffing {
    Unknown,
    EndsPes,
    /// It is in the middle of PES packets, too.
    Anywhere,
}

impl PesCollector {
    pub(super) fn new() -> Self {
        Self {
            bytes: BytesMut::new(),
            length: None,
            is_open: false,
            is_point: false,
            arrived: Instant::now(),
            stuffing: Stuffing::Unknown,
            has_stuffing: false,
        }
    }

    /// Takes the next packet of the stream, and returns the PES packets that it completes: the one before, and its own.
    pub(super) fn push(&mut self, packet: Packet<'_>, is_point: bool, arrived: Instant) -> [Option<Pes>; 2] {
        let mut before = None;
        if packet.is_scrambled() {
            self.drop_open();
            return [None, None];
        }
        if packet.pusi() {
            if self.has_stuffing && self.stuffing == Stuffing::Unknown {
                self.stuffing = Stuffing::EndsPes;
            }
            before = self.take();
            self.is_open = is_pes_start(packet);
            self.length = pes_length(packet.payload());
            (self.is_point, self.arrived) = (is_point, arrived);
        } else if self.has_stuffing {
            self.stuffing = Stuffing::Anywhere;
        }
        self.has_stuffing = self.length.is_none() && packet.has_stuffing();
        if !self.is_open {
            return [before, None];
        }
        self.bytes.extend_from_slice(packet.payload());
        if self.bytes.len() > PES_BYTES_MAX {
            self.drop_open();
        }
        let ends_here = self.has_stuffing && self.stuffing == Stuffing::EndsPes;
        let is_complete = self.length.map_or(ends_here, |it| self.bytes.len() >= it);
        [before, if is_complete { self.take() } else { None }]
    }

    /// Returns the PES packet that is not known to be complete, because no packet follows.
    pub(super) fn take(&mut self) -> Option<Pes> {
        if !std::mem::take(&mut self.is_open) {
            return None;
        }
        let mut bytes = self.bytes.split();
        bytes.truncate(self.length.unwrap_or(usize::MAX));
        let bytes = bytes.freeze();
        let (stamps, data) = pes_header(&bytes)?;
        Some(Pes { stamps, data: bytes.slice(data..), is_point: self.is_point, arrived: self.arrived })
    }

    fn drop_open(&mut self) {
        self.has_stuffing = false;
        self.bytes.clear();
        self.is_open = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::packet::{PACKET, PacketBytes, SYNC};

    /// Returns a packet with stuffing of this length.
    fn packet(is_start: bool, n_stuffing: usize) -> PacketBytes {
        let mut packet = [0x55; PACKET];
        packet[..4].copy_from_slice(&[SYNC, if is_start { 0x41 } else { 1 }, 0, 0x10]);
        let mut at = 4;
        if n_stuffing > 0 {
            packet[3] = 0x30;
            packet[4..4 + n_stuffing].fill(0xFF);
            packet[4] = n_stuffing as u8 - 1;
            packet[5] = 0;
            at += n_stuffing;
        }
        if is_start {
            packet[at..at + 9].copy_from_slice(&[0, 0, 1, 0xE0, 0, 0, 0x80, 0, 0]);
        }
        packet
    }

    /// Returns the number of bytes of the PES packets after each of these packets.
    fn collect(packets: &[(bool, usize)]) -> Vec<Vec<usize>> {
        let mut collector = PesCollector::new();
        let sizes = |(is_start, n_stuffing): &(bool, usize)| {
            let bytes = packet(*is_start, *n_stuffing);
            let pes = collector.push(Packet::new(&bytes), false, Instant::now());
            pes.into_iter().flatten().map(|it| it.data.len()).collect()
        };
        packets.iter().map(sizes).collect()
    }

    #[test]
    fn a_pes_packet_without_a_length_ends_with_stuffing_once_that_is_known() {
        let slides = [(true, 0), (false, 20), (true, 0), (false, 0), (false, 50), (true, 0), (false, 2)];
        let sizes: [&[usize]; 7] = [&[], &[], &[339], &[], &[493], &[], &[357]];
        assert_eq!(collect(&slides), sizes);
    }

    #[test]
    fn stuffing_in_the_middle_of_pes_packets_ends_none() {
        let pictures = [(true, 0), (false, 20), (false, 20), (true, 0), (false, 20), (true, 0), (false, 0)];
        let sizes: [&[usize]; 7] = [&[], &[], &[], &[503], &[], &[339], &[]];
        assert_eq!(collect(&pictures), sizes);
    }
}
