//! Guide data of a stream: complete sections of its tables with events and names of services, each once.

use std::collections::HashMap;

use super::packet::Packet;
use super::section::SectionAssembler;

/// PID of names of services (SDT).
const SERVICES_PID: u16 = 0x11;
/// PID of events (EIT).
const EVENTS_PID: u16 = 0x12;

/// Maximum number of sections that are remembered. A multiplex of a satellite sends some thousands.
const SECTIONS_MAX: usize = 16 * 1024;

/// Receives the guide data of a stream. Called on the task of a pump, so nothing here may block.
pub trait ServiceInfoSink: Send + Sync {
    /// Returns whether guide data is wanted at present.
    fn is_open(&self) -> bool;

    /// Receives a section of a source whose programme has this number, and returns whether it was taken. One that was not
    /// taken is offered again when the source repeats it.
    fn section(&self, programme: Option<u16>, section: &[u8]) -> bool;
}

/// Assembles sections with guide data from packets. Sections are repeated every few seconds; a repeated one is left out.
#[derive(Debug, Default)]
pub struct ServiceInfoReader {
    services: SectionAssembler,
    events: SectionAssembler,
    /// The checksum of each section that was taken, by the table, the service and the number of the section.
    taken: HashMap<[u8; 8], [u8; 4]>,
}

impl ServiceInfoReader {
    /// Returns whether packets with this PID carry guide data.
    #[inline]
    pub fn is_of(pid: u16) -> bool {
        matches!(pid, SERVICES_PID | EVENTS_PID)
    }

    /// Reads one packet, and calls `take` with every complete section that was not taken before. `take` returns whether
    /// it has taken the section.
    pub fn packet(&mut self, packet: Packet<'_>, mut take: impl FnMut(&[u8]) -> bool) {
        let assembler = match packet.pid() {
            SERVICES_PID => &mut self.services,
            EVENTS_PID => &mut self.events,
            _ => return,
        };
        let taken = &mut self.taken;
        assembler.packet(packet, |section| {
            let Some((key, checksum)) = identity(section) else { return };
            if taken.get(&key) == Some(&checksum) || !take(section) {
                return;
            }
            if taken.len() >= SECTIONS_MAX {
                taken.clear();
            }
            taken.insert(key, checksum);
        });
    }
}

/// Returns what distinguishes a section from others, and the checksum of its contents.
fn identity(section: &[u8]) -> Option<([u8; 8], [u8; 4])> {
    let head = section.first_chunk::<12>()?;
    let checksum = section.last_chunk::<4>()?;
    // The table, its extension, the number of the section, and the stream and network of events.
    let key = [head[0], head[3], head[4], head[6], head[8], head[9], head[10], head[11]];
    Some((key, *checksum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::packet::PacketBytes;
    use crate::ts::section::{packets_of, section};

    fn read(reader: &mut ServiceInfoReader, packets: &[PacketBytes], takes: bool) -> Vec<Vec<u8>> {
        let mut seen = Vec::new();
        for packet in packets {
            reader.packet(Packet::new(packet), |section| {
                seen.push(section.to_vec());
                takes
            });
        }
        seen
    }

    #[test]
    fn a_section_is_offered_until_it_is_taken_and_again_when_its_contents_change() {
        let mut reader = ServiceInfoReader::default();
        let first = section(0x4E, 7, 0, &[1; 600]);
        let packets = |section: &[u8], cc| packets_of(EVENTS_PID, section, cc);
        assert_eq!(read(&mut reader, &packets(&first, 0), false), std::slice::from_ref(&first));
        assert_eq!(read(&mut reader, &packets(&first, 4), true), std::slice::from_ref(&first));
        assert!(read(&mut reader, &packets(&first, 8), true).is_empty());
        let changed = section(0x4E, 7, 1, &[2; 600]);
        assert_eq!(read(&mut reader, &packets(&changed, 12), true), [changed]);
        let other_service = section(0x4E, 8, 0, &[1; 600]);
        assert_eq!(read(&mut reader, &packets(&other_service, 0), true), [other_service]);
    }

    #[test]
    fn names_and_events_are_assembled_apart_and_other_packets_ignored() {
        let mut reader = ServiceInfoReader::default();
        let (events, names) = (section(0x4E, 7, 0, &[1; 300]), section(0x42, 7, 0, &[2; 300]));
        let (a, b) = (packets_of(EVENTS_PID, &events, 0), packets_of(SERVICES_PID, &names, 0));
        let other = packets_of(0x100, &events, 0);
        let mixed = [a[0], b[0], other[0], a[1], other[1], b[1]];
        assert_eq!(read(&mut reader, &mixed, true), [events, names]);
        assert!(ServiceInfoReader::is_of(0x12) && !ServiceInfoReader::is_of(0x100));
    }

    #[test]
    fn a_section_with_a_wrong_checksum_or_a_lost_packet_is_dropped() {
        let whole = section(0x4E, 7, 0, &[1; 600]);
        let mut wrong = whole.clone();
        wrong[20] ^= 1;
        let mut reader = ServiceInfoReader::default();
        assert!(read(&mut reader, &packets_of(EVENTS_PID, &wrong, 0), true).is_empty());
        let mut packets = packets_of(EVENTS_PID, &whole, 4);
        packets.remove(1);
        assert!(read(&mut reader, &packets, true).is_empty());
    }

    #[test]
    fn the_number_of_remembered_sections_is_bounded() {
        let mut reader = ServiceInfoReader::default();
        for number in 0..=u16::MAX {
            let one = section(0x50, number, 0, &[0; 6]);
            assert_eq!(read(&mut reader, &packets_of(EVENTS_PID, &one, number as u8), true).len(), 1);
            assert!(reader.taken.len() <= SECTIONS_MAX);
        }
    }
}
