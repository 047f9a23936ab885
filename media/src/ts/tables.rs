//! Programme tables: the PAT and the PMT.

use super::packet::{NULL_PID, PAT_PID, Packet, PacketBytes};
use super::section::{length_prefixed, long_section, packets_of, pid_at, section};

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
    /// PID of the programme clock; [`NULL_PID`] without a clock.
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
    fn own_kind(&self) -> StreamKind {
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
        registration(&self.descriptors)
    }
}

/// Returns the identifier of the first registration descriptor.
fn registration(all: &[u8]) -> Option<[u8; 4]> {
    descriptors(all).find(|(tag, _)| *tag == 0x05).and_then(|(_, data)| data.first_chunk::<4>().copied())
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
        self.pmt.streams.iter().find(|it| self.pmt.kind(it) == StreamKind::Video)
    }

    /// Returns the first audio stream.
    pub fn audio(&self) -> Option<&ElementaryStream> {
        self.pmt.streams.iter().find(|it| self.pmt.kind(it) == StreamKind::Audio)
    }

    /// Returns the memory of the tables, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let streams = self.pmt.streams.iter().map(|it| size_of::<ElementaryStream>() + it.descriptors.len());
        size_of::<Self>()
            + size_of_val(self.pat.programs.as_slice())
            + self.pmt.program_info.len()
            + streams.sum::<usize>()
    }

    /// Returns whether packets of this PID carry the programme: its streams and its clock, not the tables.
    pub fn is_payload(&self, pid: u16) -> bool {
        pid != NULL_PID && (pid == self.pmt.pcr_pid || self.pmt.streams.iter().any(|it| it.pid == pid))
    }

    /// Returns whether this packet has a payload that is a part of the programme.
    pub fn has_payload(&self, packet: Packet<'_>) -> bool {
        packet.has_payload() && self.is_payload(packet.pid())
    }

    /// Returns the clock reference in this packet, if it is one of the programme clock.
    #[inline]
    pub fn clock_reference(&self, packet: Packet<'_>) -> Option<u64> {
        packet.pcr().filter(|_| self.pmt.pcr_pid == packet.pid())
    }

    /// Returns the PIDs of the streams and of the clock, each once.
    pub fn pids(&self) -> impl Iterator<Item = u16> {
        let clock = self.pmt.pcr_pid;
        let clock_alone = clock != NULL_PID && self.pmt.streams.iter().all(|it| it.pid != clock);
        let streams = &self.pmt.streams;
        let first_of = move |(index, it): &(usize, &ElementaryStream)| {
            streams[..*index].iter().all(|other| other.pid != it.pid)
        };
        streams.iter().enumerate().filter(first_of).map(|(_, it)| it.pid).chain(clock_alone.then_some(clock))
    }
}

impl Pat {
    /// Parses a complete section, whose checksum was verified before.
    pub(crate) fn parse(section: &[u8]) -> Option<Self> {
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
    /// Returns the kind of a stream of this programme.
    pub fn kind(&self, stream: &ElementaryStream) -> StreamKind {
        if self.has_cue_messages(stream) { StreamKind::Other } else { stream.own_kind() }
    }

    /// Returns whether a stream of this programme consists of cue messages (SCTE 35). Its type alone may also mean DTS
    /// audio.
    pub fn has_cue_messages(&self, stream: &ElementaryStream) -> bool {
        const CUE_IDENTIFIER: u8 = 0x8A;
        const CUE_REGISTRATION: Option<[u8; 4]> = Some(*b"CUEI");
        stream.stream_type == 0x86
            && (registration(&self.program_info) == CUE_REGISTRATION
                || stream.registration() == CUE_REGISTRATION
                || stream.has_descriptor(&[CUE_IDENTIFIER]))
    }

    /// Parses a complete section, whose checksum was verified before.
    pub(crate) fn parse(section: &[u8]) -> Option<Self> {
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
