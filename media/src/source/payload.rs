//! Tells payload from noise: null packets, and packets of PIDs that nobody announced, are no sign of life.

use bytes::Bytes;

use crate::ts::align::Aligner;
use crate::ts::packet::{Packet, PacketBytes, packets};
use crate::ts::tables::{TableReader, Tables};

/// Knows the tables of one source and, by them, which of its packets carry the programme.
#[derive(Default)]
pub(crate) struct PayloadWatch {
    tables: TableReader,
    has_news: bool,
}

impl PayloadWatch {
    /// Looks at one packet; true when it carries some of the programme.
    pub(crate) fn packet(&mut self, packet: &PacketBytes) -> bool {
        self.has_news |= self.tables.packet(packet);
        let packet = Packet::new(packet);
        packet.has_payload() && self.tables.tables().is_some_and(|it| it.is_payload(packet.pid()))
    }

    /// The tables in force, once they are known.
    pub(crate) fn tables(&self) -> Option<&Tables> {
        self.tables.tables()
    }

    /// Whether the tables have changed since this was asked last.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }
}

/// The same over raw bytes, for an opener that does not pass packets on.
#[derive(Default)]
pub(super) struct ByteWatch {
    aligner: Aligner,
    watch: PayloadWatch,
    has_synced: bool,
}

impl ByteWatch {
    /// Looks at the next bytes; true when a payload packet was among them.
    pub(super) fn push(&mut self, bytes: Bytes) -> bool {
        self.aligner.push(bytes);
        let mut found = false;
        while let Some(run) = self.aligner.next() {
            self.has_synced = true;
            for packet in packets(&run) {
                found |= self.watch.packet(packet);
            }
        }
        found
    }

    /// Whether packets have been found at all.
    pub(super) fn has_synced(&self) -> bool {
        self.has_synced
    }
}
