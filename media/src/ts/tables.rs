//! Programme tables: the PAT and the PMT.

use super::packet::{PACKET, PAT_PID, Packet, PacketBytes, SYNC, set_cc, set_pid};

/// Maximum length of a section with a 12-bit length, including its three-byte header.
const SECTION_BYTES_MAX: usize = 3 + 0xFFF;
/// Number of PATs after which a programme other than the first is accepted: a first programme that is
/// announced but absent must not leave the stream without tables.
const PATS_BEFORE_OTHER_PROGRAM: u32 = 4;
/// Maximum number of programmes whose PMTs are read.
const PROGRAMS_MAX: usize = 64;

/// Programme association table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pat {
    /// `transport_stream_id`.
    pub stream_id: u16,
    /// `version_number`, 5 bits.
    pub version: u8,
    /// Programme number and the PID of its PMT; number 0 is the network information table.
    pub programs: Vec<(u16, u16)>,
}

/// Programme map table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmt {
    /// `program_number`.
    pub program: u16,
    /// `version_number`, 5 bits.
    pub version: u8,
    /// PID of the programme clock; [`super::packet::NULL_PID`] without a clock.
    pub pcr_pid: u16,
    /// Descriptors of the programme, unparsed.
    pub program_info: Vec<u8>,
    /// The streams in the order of the PMT.
    pub streams: Vec<ElementaryStream>,
}

/// One stream of a programme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementaryStream {
    /// `stream_type`, for example 0x1B.
    pub stream_type: u8,
    /// PID of its packets.
    pub pid: u16,
    /// Descriptors, unparsed.
    pub descriptors: Vec<u8>,
}

/// The kind of an elementary stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// Video.
    Video,
    /// Audio.
    Audio,
    /// Subtitles, teletext, data, or unknown.
    Other,
}

impl ElementaryStream {
    /// Returns the kind by stream type and, for private data, by descriptor.
    pub fn kind(&self) -> StreamKind {
        match self.stream_type {
            0x01 | 0x02 | 0x10 | 0x1B | 0x1E | 0x1F | 0x20 | 0x21 | 0x24 | 0x33 | 0x42 | 0xD1 | 0xD2
            | 0xEA => StreamKind::Video,
            0x03 | 0x04 | 0x0F | 0x11 | 0x1C | 0x81 | 0x82 | 0x83 | 0x84 | 0x85 | 0x86 | 0x87 => {
                StreamKind::Audio
            }
            // Private data: AC-3, E-AC-3, DTS, AAC, or an extension such as AC-4, identified by descriptors.
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

    /// Returns the short name of the codec for display, for example `H.264`.
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

/// Returns tag and data of each descriptor, up to the first invalid length.
pub fn descriptors(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let [tag, length, rest @ ..] = bytes else { return None };
        let (data, rest) = rest.split_at_checked(usize::from(*length))?;
        bytes = rest;
        Some((*tag, data))
    })
}

/// The tables in force: the PAT, and the PMT of the followed programme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// The PAT.
    pub pat: Pat,
    /// The PMT of the followed programme.
    pub pmt: Pmt,
    /// PID of the PMT.
    pub pmt_pid: u16,
}

impl Tables {
    /// Returns the first video stream.
    pub fn video(&self) -> Option<&ElementaryStream> {
        self.pmt.streams.iter().find(|it| it.kind() == StreamKind::Video)
    }

    /// Returns the first audio stream.
    pub fn audio(&self) -> Option<&ElementaryStream> {
        self.pmt.streams.iter().find(|it| it.kind() == StreamKind::Audio)
    }

    /// Returns whether packets of this PID carry the programme: its streams and its clock, not the tables.
    pub fn is_payload(&self, pid: u16) -> bool {
        pid != super::packet::NULL_PID
            && (pid == self.pmt.pcr_pid || self.pmt.streams.iter().any(|it| it.pid == pid))
    }

    /// Returns whether this packet has a payload that is a part of the programme.
    pub fn has_payload(&self, packet: Packet<'_>) -> bool {
        packet.has_payload() && self.is_payload(packet.pid())
    }

    /// Returns the PIDs of the streams and of the clock, each once.
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
    /// Parses a complete section, whose checksum was verified before.
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

    /// Returns the encoded section.
    pub fn section(&self) -> Vec<u8> {
        let body = self.programs.iter().flat_map(|(number, pid)| {
            let ([a, b], [c, d]) = (number.to_be_bytes(), (pid | 0xE000).to_be_bytes());
            [a, b, c, d]
        });
        section(0x00, self.stream_id, self.version, &body.collect::<Vec<u8>>())
    }

    /// Returns the packets of the table, the first with the counter `cc`.
    pub fn packets(&self, cc: u8) -> Vec<PacketBytes> {
        packets_of(PAT_PID, &self.section(), cc)
    }
}

impl Pmt {
    /// Parses a complete section, whose checksum was verified before.
    fn parse(section: &[u8]) -> Option<Self> {
        let (program, version, body) = long_section(section, 0x02)?;
        let pcr_pid = pid_at(body.get(..2)?, 0);
        let (program_info, mut rest) = length_prefixed(body.get(2..)?)?;
        let mut streams = Vec::new();
        // A stream with a length beyond the end is ignored; those before it are valid.
        while let Some((head, after)) = rest.split_at_checked(3) {
            let Some((descriptors, after)) = length_prefixed(after) else { break };
            streams.push(ElementaryStream {
                stream_type: head[0],
                pid: pid_at(head, 1),
                descriptors: descriptors.to_vec(),
            });
            rest = after;
        }
        Some(Self { program, version, pcr_pid, program_info: program_info.to_vec(), streams })
    }

    /// Returns the encoded section.
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

    /// Returns the packets of the table on `pid`, the first with the counter `cc`.
    pub fn packets(&self, pid: u16, cc: u8) -> Vec<PacketBytes> {
        packets_of(pid, &self.section(), cc)
    }
}

/// Reads the tables of a stream, packet by packet.
#[derive(Debug, Default)]
pub struct TableReader {
    pat_section: Assembler,
    pat: Option<Pat>,
    /// Number of times the current PAT was received.
    n_pats: u32,
    /// Programme number, PMT PID and section assembler of each announced programme, in the order of the PAT.
    maps: Vec<(u16, u16, Assembler)>,
    tables: Option<Tables>,
    /// Whether the tables have changed since [`TableReader::take_change`].
    has_change: bool,
}

impl TableReader {
    /// Creates a reader without tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the tables in force, once both are known.
    pub fn tables(&self) -> Option<&Tables> {
        self.tables.as_ref()
    }

    /// Returns whether this PID carries a table that is read.
    pub fn is_table(&self, pid: u16) -> bool {
        pid == PAT_PID || self.maps.iter().any(|(_, map_pid, _)| *map_pid == pid)
    }

    /// Reads one packet and returns whether the content of the tables in force has changed or is known for
    /// the first time. Packets without tables cost a few comparisons.
    #[inline]
    pub fn packet(&mut self, packet: Packet<'_>) -> bool {
        self.is_table(packet.pid()) && self.table_packet(packet)
    }

    /// Returns whether the tables have changed since the last call.
    pub fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.has_change)
    }

    fn table_packet(&mut self, packet: Packet<'_>) -> bool {
        let pid = packet.pid();
        let has_changed = if pid == PAT_PID { self.pat_packet(packet) } else { self.map_packet(packet, pid) };
        self.has_change |= has_changed;
        has_changed
    }

    fn pat_packet(&mut self, packet: Packet<'_>) -> bool {
        let mut found = None;
        let mut n = 0;
        self.pat_section.packet(packet, |section| {
            // The first section of a very long PAT is sufficient, because it contains the first programmes.
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
        let earlier = std::mem::take(&mut self.maps);
        let programs = pat.programs.iter().filter(|(number, pid)| *number != 0 && *pid != PAT_PID);
        self.maps = programs
            .take(PROGRAMS_MAX)
            .map(|(number, pid)| {
                let known = earlier.iter().find(|(_, map_pid, _)| map_pid == pid);
                (*number, *pid, known.map(|(_, _, it)| it.clone()).unwrap_or_default())
            })
            .collect();
        let pat = self.pat.insert(pat);
        // The PMT stays in force if the entry of its programme is unchanged.
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
        // Several programmes may share one PMT PID; each section contains its programme number.
        let numbers: Vec<u16> = self.maps.iter().filter(|it| it.1 == pid).map(|it| it.0).collect();
        let Some((_, _, assembler)) = self.maps.iter_mut().find(|it| it.1 == pid) else { return false };
        let (first, prefers_first) = (self.pat.as_ref(), self.n_pats < PATS_BEFORE_OTHER_PROGRAM);
        let first = first.and_then(|it| it.programs.iter().find(|(number, _)| *number != 0)).map(|it| it.0);
        assembler.packet(packet, |section| {
            let Some(pmt) = Pmt::parse(section) else { return };
            let wanted = match followed {
                Some(program) => program == pmt.program,
                None => first == Some(pmt.program) || !prefers_first,
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

/// Assembles the sections of one PID. Sections with a wrong checksum or a lost packet are dropped.
#[derive(Clone, Debug, Default)]
struct Assembler {
    section: Vec<u8>,
    /// Whether `section` contains the start of a section.
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
            return; // A duplicate packet, which the standard allows.
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
        // A fuzzer cannot guess a checksum and would never reach the code behind it.
        if length <= SECTION_BYTES_MAX && (cfg!(fuzzing) || crc(&self.section) == 0) {
            done(&self.section);
        }
        length.saturating_sub(had)
    }
}

/// Returns the total length of a section, once its first three bytes are known.
fn section_length(section: &[u8]) -> Option<usize> {
    let [_, high, low, ..] = section else { return None };
    Some(3 + usize::from(u16::from_be_bytes([high & 0x0F, *low])))
}

/// Returns table id extension, version and body of a section, if it belongs to the wanted table and is
/// current.
fn long_section(section: &[u8], table: u8) -> Option<(u16, u8, &[u8])> {
    let head = section.first_chunk::<8>()?;
    let is_current = head[5] & 0x01 != 0;
    if head[0] != table || head[1] & 0x80 == 0 || !is_current {
        return None;
    }
    let body = section.get(8..section.len().checked_sub(4)?)?;
    Some((u16::from_be_bytes([head[3], head[4]]), head[5] >> 1 & 0x1F, body))
}

/// Splits bytes with a 12-bit length in front from the rest.
fn length_prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
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

/// Splits a section into packets of `pid`, the first with the counter `cc`.
pub fn packets_of(pid: u16, section: &[u8], cc: u8) -> Vec<PacketBytes> {
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
