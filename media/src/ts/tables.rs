//! Programme tables: which programme there is, on which PIDs its streams are.

use super::packet::{PACKET, PAT_PID, Packet, PacketBytes, SYNC, set_cc, set_pid};

/// Longest section that fits a 12-bit length, its three-byte head included.
const SECTION_BYTES_MAX: usize = 3 + 0xFFF;
/// How often the table of programmes must have come by before a programme other than the first is taken: a
/// first programme that is announced but not carried must not leave the stream without tables.
const PATIENCE_FOR_FIRST: u32 = 4;
/// Most programmes of one stream whose tables are followed.
const PROGRAMS_MAX: usize = 64;

/// Programme association table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pat {
    /// `transport_stream_id`.
    pub stream_id: u16,
    /// `version_number`, 5 bits.
    pub version: u8,
    /// Programme number and the PID of its map; number 0 names the network table.
    pub programs: Vec<(u16, u16)>,
}

/// Programme map table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmt {
    /// `program_number`.
    pub program: u16,
    /// `version_number`, 5 bits.
    pub version: u8,
    /// PID that carries the programme's clock; [`super::packet::NULL_PID`] where none does.
    pub pcr_pid: u16,
    /// Descriptors of the programme, as they came.
    pub program_info: Vec<u8>,
    /// The streams in the order of the table.
    pub streams: Vec<ElementaryStream>,
}

/// One stream of a programme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementaryStream {
    /// `stream_type` of the table, for example 0x1B.
    pub stream_type: u8,
    /// Where its packets are.
    pub pid: u16,
    /// Descriptors, as they came.
    pub descriptors: Vec<u8>,
}

/// What an elementary stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// Pictures.
    Video,
    /// Sound.
    Audio,
    /// Subtitles, teletext, data, or unknown.
    Other,
}

impl ElementaryStream {
    /// What it carries, by stream type and, for private data, by descriptor.
    pub fn kind(&self) -> StreamKind {
        match self.stream_type {
            0x01 | 0x02 | 0x10 | 0x1B | 0x1E | 0x1F | 0x20 | 0x21 | 0x24 | 0x33 | 0x42 | 0xD1 | 0xD2
            | 0xEA => StreamKind::Video,
            0x03 | 0x04 | 0x0F | 0x11 | 0x1C | 0x81 | 0x82 | 0x83 | 0x84 | 0x85 | 0x86 | 0x87 => {
                StreamKind::Audio
            }
            // Private data: AC-3, E-AC-3, DTS, AAC, or an extension as AC-4 is, by their descriptors.
            0x06 if self.has_descriptor(&[0x6A, 0x7A, 0x7B, 0x7C]) => StreamKind::Audio,
            0x06 if self.registration().is_some_and(|it| {
                matches!(&it, b"AC-3" | b"EAC3" | b"Opus" | b"DTS1" | b"DTS2" | b"DTS3" | b"BSSD")
            }) =>
            {
                StreamKind::Audio
            }
            0x06 if self.registration().is_some_and(|it| matches!(&it, b"HEVC" | b"AV01" | b"VVC ")) => {
                StreamKind::Video
            }
            _ => StreamKind::Other,
        }
    }

    /// Short name of the codec for people, for example `H.264`.
    pub fn codec(&self) -> &'static str {
        match self.stream_type {
            0x01 => "MPEG-1 video",
            0x02 => "MPEG-2 video",
            0x03 | 0x04 => "MPEG audio",
            0x0F | 0x11 | 0x1C => "AAC",
            0x10 => "MPEG-4 video",
            0x1B | 0x1F | 0x20 => "H.264",
            0x24 => "H.265",
            0x33 => "H.266",
            0x42 | 0xD2 => "AVS",
            0xD1 => "Dirac",
            0xEA => "VC-1",
            0x81 => "AC-3",
            0x82 | 0x85 | 0x86 => "DTS",
            0x83 => "TrueHD",
            0x84 | 0x87 => "E-AC-3",
            0x06 if self.has_descriptor(&[0x6A]) => "AC-3",
            0x06 if self.has_descriptor(&[0x7A]) => "E-AC-3",
            0x06 if self.has_descriptor(&[0x7B]) => "DTS",
            0x06 if self.has_descriptor(&[0x7C]) => "AAC",
            0x06 if self.has_descriptor(&[0x56]) => "teletext",
            0x06 if self.has_descriptor(&[0x59]) => "DVB subtitles",
            0x06 => match self.registration().as_ref() {
                Some(b"AC-3") => "AC-3",
                Some(b"EAC3") => "E-AC-3",
                Some(b"Opus") => "Opus",
                Some(b"HEVC") => "H.265",
                Some(b"AV01") => "AV1",
                _ => "private data",
            },
            _ => "data",
        }
    }

    fn has_descriptor(&self, tags: &[u8]) -> bool {
        descriptors(&self.descriptors).any(|(tag, _)| tags.contains(&tag))
    }

    fn registration(&self) -> Option<[u8; 4]> {
        descriptors(&self.descriptors)
            .find(|(tag, _)| *tag == 0x05)
            .and_then(|(_, data)| data.first_chunk::<4>().copied())
    }
}

/// Tag and data of each descriptor; ends where the lengths stop making sense.
pub fn descriptors(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let [tag, length, rest @ ..] = bytes else { return None };
        let (data, rest) = rest.split_at_checked(usize::from(*length))?;
        bytes = rest;
        Some((*tag, data))
    })
}

/// The tables in force: the table of programmes, and the map of the programme that we follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// Table of programmes.
    pub pat: Pat,
    /// Map of the programme followed.
    pub pmt: Pmt,
    /// PID of that map.
    pub pmt_pid: u16,
}

impl Tables {
    /// The first stream that carries pictures.
    pub fn video(&self) -> Option<&ElementaryStream> {
        self.pmt.streams.iter().find(|it| it.kind() == StreamKind::Video)
    }

    /// The first stream that carries sound.
    pub fn audio(&self) -> Option<&ElementaryStream> {
        self.pmt.streams.iter().find(|it| it.kind() == StreamKind::Audio)
    }

    /// Whether packets of this PID carry the programme: its streams and its clock, not the tables.
    pub fn is_payload(&self, pid: u16) -> bool {
        pid != super::packet::NULL_PID
            && (pid == self.pmt.pcr_pid || self.pmt.streams.iter().any(|it| it.pid == pid))
    }

    /// PIDs of the programme's streams and of its clock, each once.
    pub fn pids(&self) -> impl Iterator<Item = u16> {
        let clock = self.pmt.pcr_pid;
        let clock_alone =
            clock != super::packet::NULL_PID && self.pmt.streams.iter().all(|it| it.pid != clock);
        let streams = &self.pmt.streams;
        let first_of = move |(index, it): &(usize, &ElementaryStream)| {
            streams[..*index].iter().all(|other| other.pid != it.pid)
        };
        streams.iter().enumerate().filter(first_of).map(|(_, it)| it.pid).chain(clock_alone.then_some(clock))
    }
}

impl Pat {
    /// Reads a complete section; its checksum has been looked at.
    fn parse(section: &[u8]) -> Option<Self> {
        let (extension, version, body) = long_section(section, 0x00)?;
        let programs = body
            .as_chunks::<4>()
            .0
            .iter()
            .map(|it| (u16::from_be_bytes([it[0], it[1]]), pid_at(it, 2)))
            .collect();
        Some(Self { stream_id: extension, version, programs })
    }

    /// The section as it goes into packets.
    pub fn section(&self) -> Vec<u8> {
        let body = self.programs.iter().flat_map(|(number, pid)| {
            let ([a, b], [c, d]) = (number.to_be_bytes(), (pid | 0xE000).to_be_bytes());
            [a, b, c, d]
        });
        section(0x00, self.stream_id, self.version, &body.collect::<Vec<u8>>())
    }

    /// The packets of this table, the first with the counter `cc`.
    pub fn packets(&self, cc: u8) -> Vec<PacketBytes> {
        packets_of(PAT_PID, &self.section(), cc)
    }
}

impl Pmt {
    /// Reads a complete section; its checksum has been looked at.
    fn parse(section: &[u8]) -> Option<Self> {
        let (program, version, body) = long_section(section, 0x02)?;
        let pcr_pid = pid_at(body.get(..2)?, 0);
        let (program_info, mut rest) = counted(body.get(2..)?)?;
        let mut streams = Vec::new();
        // A stream whose lengths run over the end is left out; those before it are good.
        while let Some((head, after)) = rest.split_at_checked(3) {
            let Some((descriptors, after)) = counted(after) else { break };
            streams.push(ElementaryStream {
                stream_type: head[0],
                pid: pid_at(head, 1),
                descriptors: descriptors.to_vec(),
            });
            rest = after;
        }
        Some(Self { program, version, pcr_pid, program_info: program_info.to_vec(), streams })
    }

    /// The section as it goes into packets.
    pub fn section(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend((self.pcr_pid | 0xE000).to_be_bytes());
        body.extend((self.program_info.len() as u16 & 0x0FFF | 0xF000).to_be_bytes());
        body.extend(&self.program_info);
        for stream in &self.streams {
            body.push(stream.stream_type);
            body.extend((stream.pid | 0xE000).to_be_bytes());
            body.extend((stream.descriptors.len() as u16 & 0x0FFF | 0xF000).to_be_bytes());
            body.extend(&stream.descriptors);
        }
        section(0x02, self.program, self.version, &body)
    }

    /// The packets of this table on `pid`, the first with the counter `cc`.
    pub fn packets(&self, pid: u16, cc: u8) -> Vec<PacketBytes> {
        packets_of(pid, &self.section(), cc)
    }
}

/// Follows the tables of a stream, packet by packet.
#[derive(Debug, Default)]
pub struct TableReader {
    pat_section: Assembler,
    pat: Option<Pat>,
    /// How often the present table of programmes has come by.
    n_pats: u32,
    /// One for each programme announced, in the order announced.
    maps: Vec<(u16, u16, Assembler)>,
    tables: Option<Tables>,
}

impl TableReader {
    /// A reader that knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The tables in force, once both are known.
    pub fn tables(&self) -> Option<&Tables> {
        self.tables.as_ref()
    }

    /// Whether this PID carries a table that is followed.
    pub fn is_table(&self, pid: u16) -> bool {
        pid == PAT_PID || self.maps.iter().any(|(_, map_pid, _)| *map_pid == pid)
    }

    /// Takes one packet; true when the content of the tables in force has changed (or is known for the first time).
    /// Packets that carry no table cost a comparison.
    pub fn packet(&mut self, packet: &PacketBytes) -> bool {
        let packet = Packet::new(packet);
        let pid = packet.pid();
        if pid == PAT_PID {
            return self.pat_packet(packet);
        }
        if !self.maps.iter().any(|(_, map_pid, _)| *map_pid == pid) {
            return false;
        }
        self.map_packet(packet, pid)
    }

    fn pat_packet(&mut self, packet: Packet<'_>) -> bool {
        let mut found = None;
        let mut n = 0;
        self.pat_section.packet(packet, |section| {
            // The first section of a very long table is enough: it names the first programmes.
            if section.get(6) == Some(&0)
                && let Some(pat) = Pat::parse(section)
            {
                n += 1;
                found = Some(pat);
            }
        });
        let Some(pat) = found else { return false };
        self.n_pats = self.n_pats.saturating_add(n);
        if self.pat.as_ref() == Some(&pat) {
            return false;
        }
        self.n_pats = 1;
        let kept = std::mem::take(&mut self.maps);
        let programs = pat.programs.iter().filter(|(number, pid)| *number != 0 && *pid != PAT_PID);
        self.maps = programs
            .take(PROGRAMS_MAX)
            .map(|(number, pid)| {
                let known = kept.iter().find(|(_, map_pid, _)| map_pid == pid);
                (*number, *pid, known.map(|(_, _, it)| it.clone()).unwrap_or_default())
            })
            .collect();
        let pat = self.pat.insert(pat);
        // The map in force stays in force when its programme stays where it was.
        let Some(tables) = &mut self.tables else { return false };
        if pat.programs.contains(&(tables.pmt.program, tables.pmt_pid)) {
            tables.pat = pat.clone();
        } else {
            self.tables = None;
        }
        true
    }

    fn map_packet(&mut self, packet: Packet<'_>, pid: u16) -> bool {
        let followed = self.tables.as_ref().map(|it| it.pmt.program);
        let mut found = None;
        // Several programmes may keep their maps on one PID: each has its own number in the section.
        let numbers: Vec<u16> = self.maps.iter().filter(|it| it.1 == pid).map(|it| it.0).collect();
        let Some((_, _, assembler)) = self.maps.iter_mut().find(|it| it.1 == pid) else { return false };
        let (first, patient) = (self.pat.as_ref(), self.n_pats < PATIENCE_FOR_FIRST);
        let first = first.and_then(|it| it.programs.iter().find(|(number, _)| *number != 0)).map(|it| it.0);
        assembler.packet(packet, |section| {
            let Some(pmt) = Pmt::parse(section) else { return };
            let wanted = match followed {
                Some(program) => program == pmt.program,
                None => first == Some(pmt.program) || !patient,
            };
            if wanted && numbers.contains(&pmt.program) {
                found = Some(pmt);
            }
        });
        let (Some(pmt), Some(pat)) = (found, &self.pat) else { return false };
        if self.tables.as_ref().is_some_and(|it| it.pmt == pmt && it.pmt_pid == pid) {
            return false;
        }
        self.tables = Some(Tables { pat: pat.clone(), pmt, pmt_pid: pid });
        true
    }
}

/// Puts the sections of one PID together. Those with a wrong checksum or a lost packet are dropped.
#[derive(Clone, Debug, Default)]
struct Assembler {
    section: Vec<u8>,
    /// Whether `section` is the beginning of a section rather than nothing.
    open: bool,
    cc: Option<u8>,
}

impl Assembler {
    fn packet(&mut self, packet: Packet<'_>, mut done: impl FnMut(&[u8])) {
        if !packet.is_valid() || !packet.has_payload() || packet.is_scrambled() {
            return;
        }
        let cc = packet.cc();
        let before = self.cc.replace(cc);
        if before == Some(cc) && !packet.discontinuity() {
            return; // Sent twice, as the standard allows.
        }
        if before.is_some_and(|it| (it + 1) & 0x0F != cc) {
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

    /// Adds to the open section; returns how many bytes belonged to it.
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
        // A fuzzer cannot guess a checksum and would never see what is behind it.
        if length <= SECTION_BYTES_MAX && (cfg!(fuzzing) || crc(&self.section) == 0) {
            done(&self.section);
        }
        length.saturating_sub(had)
    }
}

/// Length of the section in all, once its first three bytes are there.
fn section_length(section: &[u8]) -> Option<usize> {
    let [_, high, low, ..] = section else { return None };
    Some(3 + usize::from(u16::from_be_bytes([high & 0x0F, *low])))
}

/// Table id extension, version and body of a section of the wanted table that is in force.
fn long_section(section: &[u8], table: u8) -> Option<(u16, u8, &[u8])> {
    let head = section.first_chunk::<8>()?;
    let is_current = head[5] & 0x01 != 0;
    if head[0] != table || head[1] & 0x80 == 0 || !is_current {
        return None;
    }
    let body = section.get(8..section.len().checked_sub(4)?)?;
    Some((u16::from_be_bytes([head[3], head[4]]), head[5] >> 1 & 0x1F, body))
}

/// A 12-bit length and as many bytes, then the rest.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length) & 0x0FFF))
}

fn pid_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at] & 0x1F, bytes[at + 1]])
}

fn section(table: u8, extension: u16, version: u8, body: &[u8]) -> Vec<u8> {
    let length = (5 + body.len() + 4) as u16;
    let mut section = vec![table];
    section.extend((length & 0x0FFF | 0xB000).to_be_bytes());
    section.extend(extension.to_be_bytes());
    section.extend([0xC1 | (version & 0x1F) << 1, 0, 0]);
    section.extend(body);
    let crc = crc(&section);
    section.extend(crc.to_be_bytes());
    section
}

/// Cuts a section into packets of `pid`, the first with the counter `cc`.
pub fn packets_of(pid: u16, section: &[u8], cc: u8) -> Vec<PacketBytes> {
    let mut payload = vec![0]; // The pointer: the section begins at once.
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

/// Checksum of sections; zero over a section that ends with its own.
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
