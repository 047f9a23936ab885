//! Cue messages (SCTE 35): sections that announce moments of the programme, such as the start of an advertisement.

use super::packet::{Packet, PacketBytes};
use super::section::{SectionAssembler, packets_of, with_crc};

const CUE_TABLE: u8 = 0xFC;
/// Offset of the 33 bits that a receiver adds to all times in the message. They are never encrypted.
const ADJUSTMENT: usize = 4;
/// Length of a message without a command, with its checksum.
const MESSAGE_BYTES_MIN: usize = 20;

/// Reads the cue messages of one PID.
#[derive(Debug, Default)]
pub(crate) struct CueReader {
    sections: SectionAssembler,
}

impl CueReader {
    /// Reads one packet and returns the messages that it completes, with all times moved by `shift`, in ticks of
    /// 90 kHz.
    pub(crate) fn packet(&mut self, packet: Packet<'_>, shift: u64) -> Vec<CueMessage> {
        let mut messages = Vec::new();
        self.sections.packet(packet, |section| messages.extend(CueMessage::moved(section, shift)));
        messages
    }
}

/// A complete section.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CueMessage(Vec<u8>);

impl CueMessage {
    fn moved(section: &[u8], shift: u64) -> Option<CueMessage> {
        if section.first() != Some(&CUE_TABLE) || section.len() < MESSAGE_BYTES_MIN {
            return None;
        }
        let mut section = section.to_vec();
        let field = section.get_mut(ADJUSTMENT..).and_then(|it| it.first_chunk_mut::<5>())?;
        let [high, low @ ..] = *field;
        let adjustment = u64::from(high & 1) << 32 | u64::from(u32::from_be_bytes(low));
        let moved = adjustment.wrapping_add(shift);
        field[0] = high & 0xFE | (moved >> 32) as u8 & 1;
        field[1..].copy_from_slice(&(moved as u32).to_be_bytes());
        section.truncate(section.len() - 4);
        Some(CueMessage(with_crc(section)))
    }

    /// Returns the packets of the message on `pid`, the first with the counter `cc`.
    pub(crate) fn packets(&self, pid: u16, cc: u8) -> Vec<PacketBytes> {
        packets_of(pid, &self.0, cc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::build;

    const PID: u16 = 0x120;

    fn read(section: &[u8], shift: u64) -> Vec<CueMessage> {
        let mut reader = CueReader::default();
        let packets = packets_of(PID, section, 7);
        packets.iter().flat_map(|packet| reader.packet(Packet::new(packet), shift)).collect()
    }

    #[test]
    fn the_times_of_a_cue_message_move_with_the_programme() {
        let wrap = 1 << 33;
        for (before, shift, after) in
            [(0, 0, 0), (0, 90_000, 90_000), (5, wrap - 5, 0), (wrap - 1, 2, 1), ((1 << 32) - 1, 1, 1 << 32)]
        {
            assert_eq!(
                read(&build::time_signal(90_000, before, 0), shift),
                [CueMessage(build::time_signal(90_000, after, 0))]
            );
        }
    }

    #[test]
    fn a_cue_message_in_several_packets_is_moved_as_a_whole() {
        let moved = read(&build::time_signal(90_000, 1, 230), 2);
        assert_eq!(moved, [CueMessage(build::time_signal(90_000, 3, 230))]);
        let packets = moved[0].packets(PID, 15);
        assert_eq!(packets.iter().map(|it| Packet::new(it).cc()).collect::<Vec<_>>(), [15, 0]);
    }

    #[test]
    fn other_sections_and_damaged_messages_are_dropped() {
        let mut other_table = build::time_signal(90_000, 0, 0);
        other_table[0] = 0x40;
        other_table.truncate(other_table.len() - 4);
        let mut damaged = build::time_signal(90_000, 0, 0);
        damaged[9] ^= 1;
        for section in [with_crc(other_table), damaged, with_crc(vec![CUE_TABLE, 0x30, 5, 0])] {
            assert_eq!(read(&section, 1), []);
        }
    }
}
