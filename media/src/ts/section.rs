//! Sections: the units in which tables are sent.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::packet::{PACKET, Packet, PacketBytes, SYNC, set_cc, set_pid};

/// Maximum length of a section with a 12-bit length, including its three-byte header.
const SECTION_BYTES_MAX: usize = 3 + 0xFFF;

/// Number of equal sections with a wrong checksum after which a PID that has sent no right one is believed.
const WRONG_SECTIONS_MIN: u8 = 10;
/// The same for a PID that is known to send only wrong checksums.
const WRONG_SECTIONS_MIN_KNOWN: u8 = 2;
/// Maximum number of different sections with a wrong checksum that are counted on one PID.
const WRONG_SECTIONS_MAX: usize = 8;

/// Assembles the sections of one PID. Sections with a lost packet are dropped, and those with a wrong checksum as
/// [`WrongChecksums`] says.
#[derive(Clone, Debug, Default)]
pub(super) struct SectionAssembler {
    section: Vec<u8>,
    /// Whether `section` contains the start of a section.
    open: bool,
    last: Option<PacketBytes>,
    wrong_checksums: WrongChecksums,
    /// Whether any checksum was wrong.
    had_wrong_checksum: bool,
    /// Whether checksums are read while a fuzzer runs.
    is_checked: bool,
}

/// The treatment of sections with a wrong checksum.
#[derive(Clone, Debug, Default)]
enum WrongChecksums {
    /// They are dropped.
    #[default]
    Dropped,
    /// They are dropped until so many equal ones came without a right one.
    Counted {
        needed: u8,
        /// Whether one was accepted.
        has_accepted: bool,
        /// Hash and number of each different section, oldest first.
        seen: Vec<(u64, u8)>,
    },
}

impl WrongChecksums {
    /// Counts a section with a wrong checksum and returns whether it is accepted.
    fn accepts(&mut self, section: &[u8]) -> bool {
        let Self::Counted { needed, has_accepted, seen } = self else { return false };
        let mut hasher = DefaultHasher::new();
        section.hash(&mut hasher);
        let hash = hasher.finish();
        let at = seen.iter().position(|it| it.0 == hash).unwrap_or_else(|| {
            if seen.len() == WRONG_SECTIONS_MAX {
                seen.remove(0);
            }
            seen.push((hash, 0));
            seen.len() - 1
        });
        seen[at].1 = seen[at].1.saturating_add(1);
        let is_accepted = seen[at].1 >= *needed;
        if is_accepted {
            *has_accepted = true;
            *needed = WRONG_SECTIONS_MIN_KNOWN;
        }
        is_accepted
    }
}

impl SectionAssembler {
    /// Creates an assembler for a PID of a provider, some of which compute checksums wrongly. `is_known` is true if all
    /// checksums of this PID were wrong before.
    pub(super) fn tolerant(is_known: bool) -> Self {
        let needed = if is_known { WRONG_SECTIONS_MIN_KNOWN } else { WRONG_SECTIONS_MIN };
        let counted = WrongChecksums::Counted { needed, has_accepted: false, seen: Vec::new() };
        Self { wrong_checksums: counted, ..Self::default() }
    }

    /// Reads checksums also while a fuzzer runs.
    pub(super) fn with_checked_sums(self, is_checked: bool) -> Self {
        Self { is_checked, ..self }
    }

    /// Returns whether a section with a wrong checksum was accepted, and no right one came.
    pub(super) fn accepts_wrong_checksums(&self) -> bool {
        matches!(self.wrong_checksums, WrongChecksums::Counted { has_accepted: true, .. })
    }

    /// Returns whether any checksum was wrong.
    pub(super) fn had_wrong_checksum(&self) -> bool {
        self.had_wrong_checksum
    }

    /// Reads one packet and calls `done` with every complete section.
    pub(super) fn packet(&mut self, packet: Packet<'_>, mut done: impl FnMut(&[u8])) {
        if !packet.is_valid() || !packet.has_payload() || packet.is_scrambled() {
            return;
        }
        // The standard allows duplicate packets. The counter alone does not identify them, because that of some
        // multiplexers stands still in tables.
        let last = self.last.replace(*packet.bytes());
        if last.as_ref() == Some(packet.bytes()) && !packet.pusi() {
            return;
        }
        let step = last.map(|it| packet.cc().wrapping_sub(Packet::new(&it).cc()) & 0x0F);
        if step.is_some_and(|it| it > 1) {
            self.open = false;
        }
        let payload = packet.payload();
        if !packet.pusi() {
            self.take(payload, &mut done);
            return;
        }
        let Some((pointer, rest)) = payload.split_first() else { return };
        let Some((end_of_last, mut rest)) = rest.split_at_checked(usize::from(*pointer)) else {
            self.open = false;
            return;
        };
        self.take(end_of_last, &mut done);
        // Sections follow one another until stuffing or the end of the packet.
        while rest.first().is_some_and(|it| *it != 0xFF) {
            self.section.clear();
            self.open = true;
            let taken = self.take(rest, &mut done);
            rest = &rest[taken..];
        }
    }

    /// Adds bytes to the open section and returns how many belonged to it.
    fn take(&mut self, bytes: &[u8], done: &mut impl FnMut(&[u8])) -> usize {
        if !self.open {
            return bytes.len();
        }
        let had = self.section.len();
        self.section.extend_from_slice(bytes);
        let Some(length) = section_length(&self.section) else { return bytes.len() };
        if self.section.len() < length {
            return bytes.len();
        }
        self.open = false;
        self.section.truncate(length);
        if length > SECTION_BYTES_MAX {
            return length.saturating_sub(had);
        }
        // A fuzzer cannot guess a checksum and would never reach the code behind it.
        if cfg!(fuzzing) && !self.is_checked {
            done(&self.section);
        } else if crc(&self.section) == 0 {
            self.wrong_checksums = WrongChecksums::Dropped;
            done(&self.section);
        } else {
            self.had_wrong_checksum = true;
            if self.wrong_checksums.accepts(&self.section) {
                done(&self.section);
            }
        }
        length.saturating_sub(had)
    }
}

/// Returns the total length of a section, once its first three bytes are known.
fn section_length(section: &[u8]) -> Option<usize> {
    let [_, high, low, ..] = section else { return None };
    Some(3 + usize::from(u16::from_be_bytes([high & 0x0F, *low])))
}

/// Returns whether these bytes are one whole section with a valid checksum.
pub(crate) fn is_whole_section(bytes: &[u8]) -> bool {
    bytes.len() <= SECTION_BYTES_MAX && section_length(bytes) == Some(bytes.len())
        // A fuzzer cannot guess a checksum.
        && (cfg!(fuzzing) || crc(bytes) == 0)
}

/// Returns table id extension, version and body of a section, if it belongs to the wanted table and is
/// current.
pub(super) fn long_section(section: &[u8], table: u8) -> Option<(u16, u8, &[u8])> {
    let head = section.first_chunk::<8>()?;
    let is_current = head[5] & 0x01 != 0;
    if head[0] != table || head[1] & 0x80 == 0 || !is_current {
        return None;
    }
    let body = section.get(8..section.len().checked_sub(4)?)?;
    Some((u16::from_be_bytes([head[3], head[4]]), head[5] >> 1 & 0x1F, body))
}

/// Splits bytes with a 12-bit length in front from the rest.
pub(super) fn length_prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length) & 0x0FFF))
}

/// Returns the 13-bit PID at this offset.
pub(super) fn pid_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at] & 0x1F, bytes[at + 1]])
}

/// Encodes a current section with its CRC.
pub(super) fn section(table: u8, extension: u16, version: u8, body: &[u8]) -> Vec<u8> {
    let length = (5 + body.len() + 4) as u16;
    let mut section = vec![table];
    section.extend((length & 0x0FFF | 0xB000).to_be_bytes());
    section.extend(extension.to_be_bytes());
    section.extend([0xC1 | (version & 0x1F) << 1, 0, 0]);
    section.extend(body);
    with_crc(section)
}

/// Adds the checksum to the bytes of a section.
pub(super) fn with_crc(mut section: Vec<u8>) -> Vec<u8> {
    let crc = crc(&section);
    section.extend(crc.to_be_bytes());
    section
}

/// Splits a section into packets of `pid`, the first with the counter `cc`.
pub(super) fn packets_of(pid: u16, section: &[u8], cc: u8) -> Vec<PacketBytes> {
    let mut payload = vec![0]; // The pointer field: the section starts at once.
    payload.extend(section);
    let pieces = payload.chunks(PACKET - 4).enumerate();
    pieces
        .map(|(index, piece)| {
            let mut packet = [0xFF; PACKET];
            packet[..4].copy_from_slice(&[SYNC, if index == 0 { 0x40 } else { 0 }, 0, 0x10]);
            set_pid(&mut packet, pid);
            set_cc(&mut packet, cc.wrapping_add(index as u8));
            packet[4..4 + piece.len()].copy_from_slice(piece);
            packet
        })
        .collect()
}

/// Returns the CRC of a section; zero for a section that ends with its own CRC.
fn crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0xFFFF_FFFF, |crc, byte| crc << 8 ^ CRC_TABLE[usize::from((crc >> 24) as u8 ^ byte)])
}

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = (index as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 0x8000_0000 != 0 { value << 1 ^ 0x04C1_1DB7 } else { value << 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
};
