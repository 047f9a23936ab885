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
}

impl PesCollector {
    pub(super) fn new() -> Self {
        Self {
            bytes: BytesMut::new(),
            length: None,
            is_open: false,
            is_point: false,
            arrived: Instant::now(),
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
            before = self.take();
            self.is_open = is_pes_start(packet);
            self.length = pes_length(packet.payload());
            (self.is_point, self.arrived) = (is_point, arrived);
        }
        if !self.is_open {
            return [before, None];
        }
        self.bytes.extend_from_slice(packet.payload());
        if self.bytes.len() > PES_BYTES_MAX {
            self.drop_open();
        }
        let is_complete = self.length.is_some_and(|it| self.bytes.len() >= it);
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
        self.bytes.clear();
        self.is_open = false;
    }
}
