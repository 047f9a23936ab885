//! Detects payload: packets of the programme. Null packets and packets of PIDs that no table announces do not
//! show that a source is alive.

use bytes::Bytes;

use crate::ts::align::Aligner;
use crate::ts::packet::{Packet, packets};
use crate::ts::table_reader::TableReader;
use crate::ts::tables::Tables;

/// Reads the tables of one source and recognises by them the packets that carry the programme.
#[derive(Default)]
pub(crate) struct PayloadDetector {
    tables: TableReader,
}

impl PayloadDetector {
    /// Reads one packet and returns whether it carries a part of the programme.
    pub(crate) fn packet(&mut self, packet: Packet<'_>) -> bool {
        self.tables.packet(packet);
        self.tables.tables().is_some_and(|it| it.has_payload(packet))
    }

    /// Returns the tables in force, once they are known.
    pub(crate) fn tables(&self) -> Option<&Tables> {
        self.tables.tables()
    }

    /// Returns whether the tables have changed since the last call.
    pub(crate) fn take_change(&mut self) -> bool {
        self.tables.take_change()
    }
}

/// Detects payload in raw bytes, for an opener that does not pass packets on.
#[derive(Default)]
pub(super) struct BytePayloadDetector {
    aligner: Aligner,
    detector: PayloadDetector,
    has_synced: bool,
}

impl BytePayloadDetector {
    /// Reads the next bytes and returns whether they contain a payload packet.
    pub(super) fn push(&mut self, bytes: Bytes) -> bool {
        self.aligner.push(bytes);
        let mut has_payload = false;
        while let Some(run) = self.aligner.next() {
            self.has_synced = true;
            for packet in packets(&run) {
                has_payload |= self.detector.packet(Packet::new(packet));
            }
        }
        has_payload
    }

    /// Returns whether any packet was found.
    pub(super) fn has_synced(&self) -> bool {
        self.has_synced
    }
}
