//! Reads the picture size from the parameter sets before key frames: H.264, H.265, MPEG-1 and MPEG-2.

use std::fmt;

use super::packet::Packet;
use super::tables::Tables;

/// Maximum number of bytes of a picture that are searched. Parameter sets come first and are small.
const HEAD_BYTES_MAX: usize = 2 << 10;
/// Maximum width and height; larger values are parse errors.
const SIDE_MAX: u32 = 16_384;

/// The displayed size of a picture, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureSize {
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
}

impl fmt::Display for PictureSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// Finds the picture size in the packets of the first video stream of a programme.
#[derive(Debug)]
pub struct PictureReader {
    pid: u16,
    stream_type: u8,
    /// The start of the current PES packet; empty before the first.
    head: Vec<u8>,
    size: Option<PictureSize>,
}

impl PictureReader {
    /// Creates a reader for this programme; `None` if it has no video.
    pub fn new(tables: &Tables) -> Option<Self> {
        let video = tables.video()?;
        Some(Self { pid: video.pid, stream_type: video.stream_type, head: Vec::new(), size: None })
    }

    /// Reads one packet of any stream.
    pub fn packet(&mut self, packet: Packet<'_>) {
        if self.size.is_some() || packet.pid() != self.pid || packet.is_scrambled() {
            return;
        }
        if packet.pusi() {
            self.search();
            self.head.clear();
        } else if self.head.is_empty() {
            return;
        }
        self.head.extend_from_slice(packet.payload());
        if self.head.len() >= HEAD_BYTES_MAX {
            self.search();
            self.head.clear();
        }
    }

    /// Returns the size if it was found in complete pictures. Does not search.
    pub fn known_size(&self) -> Option<PictureSize> {
        self.size
    }

    /// Returns the size, if it was found.
    pub fn size(&mut self) -> Option<PictureSize> {
        if self.size.is_none() {
            self.search();
        }
        self.size
    }

    fn search(&mut self) {
        self.size = size_in(&self.head, self.stream_type).or(self.size);
    }
}

/// Returns the size in a sequence parameter set of H.264, without its header.
pub(crate) fn h264_size(set: &[u8]) -> Option<PictureSize> {
    size_in_h264(&mut Bits::new(set))
}

/// Returns the size in a sequence parameter set of H.265, without its header.
pub(crate) fn h265_size(set: &[u8]) -> Option<PictureSize> {
    size_in_h265(&mut Bits::new(set))
}

/// Returns the size in the start of a PES packet.
fn size_in(pes: &[u8], stream_type: u8) -> Option<PictureSize> {
    let [0, 0, 1, 0xE0..=0xEF | 0xFD, _, _, _, _, header, rest @ ..] = pes else { return None };
    let data = rest.get(usize::from(*header)..)?;
    let mut starts = memchr::memmem::find_iter(data, &[0, 0, 1]).peekable();
    let mut units = std::iter::from_fn(|| {
        let at = starts.next()?;
        data.get(at + 3..starts.peek().copied().unwrap_or(data.len()).max(at + 3))
    });
    units.find_map(|unit| match (stream_type, unit) {
        (0x01 | 0x02, [0xB3, a, b, c, ..]) => {
            let sides = u32::from_be_bytes([0, *a, *b, *c]);
            size(sides >> 12, sides & 0xFFF)
        }
        (0x1B | 0x1F | 0x20, [header, set @ ..]) if header & 0x1F == 7 => size_in_h264(&mut Bits::new(set)),
        (0x24, [header, _, set @ ..]) if header >> 1 & 0x3F == 33 => size_in_h265(&mut Bits::new(set)),
        _ => None,
    })
}

fn size(width: u32, height: u32) -> Option<PictureSize> {
    let is_one = (1..=SIDE_MAX).contains(&width) && (1..=SIDE_MAX).contains(&height);
    is_one.then_some(PictureSize { width, height })
}

/// Parses a sequence parameter set of H.264 (7.3.2.1.1).
fn size_in_h264(bits: &mut Bits) -> Option<PictureSize> {
    let profile = bits.take(8)?;
    bits.skip(16)?;
    bits.golomb()?;
    let mut chroma = 1;
    let mut has_separate_planes = false;
    if matches!(profile, 44 | 83 | 86 | 100 | 110 | 118 | 122 | 128 | 134 | 135 | 138 | 139 | 244) {
        chroma = bits.golomb()?;
        if chroma == 3 {
            has_separate_planes = bits.flag()?;
        }
        bits.golomb()?;
        bits.golomb()?;
        bits.skip(1)?;
        if bits.flag()? {
            let n_lists = if chroma == 3 { 12 } else { 8 };
            for list in 0..n_lists {
                if bits.flag()? {
                    skip_scaling_list(bits, if list < 6 { 16 } else { 64 })?;
                }
            }
        }
    }
    bits.golomb()?;
    match bits.golomb()? {
        0 => drop(bits.golomb()?),
        1 => {
            bits.skip(1)?;
            bits.golomb()?;
            bits.golomb()?;
            // Stops at the end of the data if the count is too large.
            for _ in 0..bits.golomb()? {
                bits.golomb()?;
            }
        }
        _ => {}
    }
    bits.golomb()?;
    bits.skip(1)?;
    let (width, height) = (bits.golomb()?.checked_add(1)?, bits.golomb()?.checked_add(1)?);
    let is_frames_only = bits.flag()?;
    if !is_frames_only {
        bits.skip(1)?;
    }
    bits.skip(1)?;
    let fields = if is_frames_only { 1 } else { 2 };
    let units = if has_separate_planes { (1, 1) } else { chroma_units(chroma) };
    cropped(
        bits,
        (width.checked_mul(16)?, height.checked_mul(16)?.checked_mul(fields)?),
        (units.0, units.1 * fields),
    )
}

pub(crate) fn skip_scaling_list(bits: &mut Bits, n: usize) -> Option<()> {
    let (mut last, mut next) = (8, 8);
    for _ in 0..n {
        if next != 0 {
            next = (last + bits.signed_golomb()?).rem_euclid(256);
        }
        last = if next == 0 { last } else { next };
    }
    Some(())
}

/// Parses a sequence parameter set of H.265 (7.3.2.2.1).
fn size_in_h265(bits: &mut Bits) -> Option<PictureSize> {
    bits.skip(4)?;
    let n_layers = bits.take(3)?;
    bits.skip(1)?;
    // Profile and level of the stream, then of its sub-layers.
    bits.skip(96)?;
    let mut layers = Vec::new();
    for _ in 0..n_layers {
        layers.push((bits.flag()?, bits.flag()?));
    }
    if n_layers > 0 {
        bits.skip(2 * (8 - n_layers as usize))?;
    }
    for (has_profile, has_level) in layers {
        bits.skip(if has_profile { 88 } else { 0 } + if has_level { 8 } else { 0 })?;
    }
    bits.golomb()?;
    let chroma = bits.golomb()?;
    if chroma == 3 {
        bits.skip(1)?;
    }
    let sides = (bits.golomb()?, bits.golomb()?);
    cropped(bits, sides, chroma_units(chroma))
}

/// Returns the cropping units for this `chroma_format_idc`.
fn chroma_units(chroma: u32) -> (u32, u32) {
    match chroma {
        1 => (2, 2),
        2 => (2, 1),
        _ => (1, 1),
    }
}

/// Subtracts the cropped area, if a flag announces one.
fn cropped(bits: &mut Bits, (width, height): (u32, u32), units: (u32, u32)) -> Option<PictureSize> {
    if !bits.flag()? {
        return size(width, height);
    }
    let mut off = |unit: u32| bits.golomb()?.checked_add(bits.golomb()?)?.checked_mul(unit);
    let (sides, ends) = (off(units.0)?, off(units.1)?);
    size(width.checked_sub(sides)?, height.checked_sub(ends)?)
}

/// The bits of a parameter set, without emulation prevention bytes.
pub(crate) struct Bits {
    bytes: Vec<u8>,
    at: usize,
}

impl Bits {
    pub(crate) fn new(unit: &[u8]) -> Self {
        Self { bytes: without_emulation(unit), at: 0 }
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        Some(bit == 1)
    }

    pub(crate) fn skip(&mut self, n: usize) -> Option<()> {
        self.at += n;
        (self.at <= self.bytes.len() * 8).then_some(())
    }

    /// Reads a number of up to 32 bits.
    pub(crate) fn take(&mut self, n: u32) -> Option<u32> {
        let mut number = 0;
        for _ in 0..n {
            number = number << 1 | u32::from(self.flag()?);
        }
        Some(number)
    }

    /// Reads an Exp-Golomb code: as many zero bits as bits follow the first one bit.
    pub(crate) fn golomb(&mut self) -> Option<u32> {
        let mut n = 0;
        while !self.flag()? {
            n += 1;
            if n > 31 {
                return None;
            }
        }
        Some((1 << n) - 1 + self.take(n)?)
    }

    fn signed_golomb(&mut self) -> Option<i64> {
        let number = i64::from(self.golomb()?);
        Some(if number % 2 == 0 { -number / 2 } else { number / 2 + 1 })
    }
}

/// Returns the bytes of a unit without emulation prevention bytes.
pub(crate) fn without_emulation(unit: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(unit.len());
    let mut n_zeros = 0;
    for byte in unit {
        if n_zeros >= 2 && *byte == 3 {
            n_zeros = 0;
            continue;
        }
        n_zeros = if *byte == 0 { n_zeros + 1 } else { 0 };
        bytes.push(*byte);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::packet::{PACKET, PacketBytes, set_pid};
    use crate::ts::tables::{ElementaryStream, Pat, Pmt};

    const PID: u16 = 0x100;

    fn reader(stream_type: u8) -> PictureReader {
        let video = ElementaryStream { stream_type, pid: PID, descriptors: Vec::new() };
        let pmt =
            Pmt { program: 1, version: 0, pcr_pid: PID, program_info: Vec::new(), streams: vec![video] };
        let pat = Pat { stream_id: 1, version: 0, programs: vec![(1, 0x50)] };
        PictureReader::new(&Tables { pat, pmt, pmt_pid: 0x50 }).unwrap()
    }

    /// Creates packets with these bytes of a picture; the first packet starts it.
    fn packets(picture: &[u8]) -> Vec<PacketBytes> {
        let pes = [&[0, 0, 1, 0xE0, 0, 0, 0x80, 0, 0], picture].concat();
        let pieces = pes.chunks(PACKET - 4).enumerate();
        let packet = |(n, piece): (usize, &[u8])| {
            let mut packet = [0xFF; PACKET];
            packet[..4].copy_from_slice(&[0x47, if n == 0 { 0x40 } else { 0 }, 0, 0x10]);
            packet[4..4 + piece.len()].copy_from_slice(piece);
            set_pid(&mut packet, PID);
            packet
        };
        pieces.map(packet).collect()
    }

    #[track_caller]
    fn check(stream_type: u8, hex: &str, expected: Option<&str>) {
        let digits: Vec<u8> = hex.chars().filter_map(|it| it.to_digit(16)).map(|it| it as u8).collect();
        let picture: Vec<u8> = digits.chunks(2).map(|it| it[0] << 4 | it[1]).collect();
        for lead in [0, 150] {
            // Bytes in front move the set across a packet boundary.
            let lead = [&[0, 0, 1, 0x09], &vec![0xF0; lead][..]].concat();
            let mut reader = reader(stream_type);
            packets(&[&lead, &picture[..]].concat()).iter().for_each(|it| reader.packet(Packet::new(it)));
            assert_eq!(reader.size().map(|it| it.to_string()).as_deref(), expected, "{hex}");
        }
    }

    #[test]
    fn the_size_is_read_from_the_output_of_encoders() {
        // Output of the encoders of ffmpeg.
        check(
            0x1B,
            "00 00 00 01 67 64001facd9405005bb011000000300100000030320f1831960 00 00 00 01 68",
            Some("1280x720"),
        );
        check(
            0x1B,
            "00 00 00 01 67 640028acd940780227e5c044000003000400000300c83c60c658 00 00 00 01",
            Some("1920x1080"),
        );
        check(0x1B, "00 00 00 01 67 f4000d919b282a33c7c5e022000003000200000300641e28532c", Some("322x182"));
        check(0x1B, "00 00 00 01 67 7a000dbcd941519e2237011000000300100000030320f14299 60", Some("322x180"));
        // Interlaced.
        check(0x1B, "00 00 00 01 67 640028acd94078044fde0220000003002000000643e2c5b2c0", Some("1920x1080"));
        check(0x02, "00 00 01 b3 2d024013ffffe018 000001b5148a000100000000", Some("720x576"));
        let parameters = "00000001 40010c01ffff0160000003009000000300000300789598090000 000001 \
                          420101016000000300900000030000030078a003c480110724996566924caf016808";
        check(0x24, parameters, Some("1922x1082"));
    }

    #[test]
    fn missing_and_impossible_sizes_are_ignored() {
        check(0x1B, "00 00 01 67 00 00 01 68", None);
        check(0x1B, "00 00 01 67 64 00 1f 00 00 01 68", None);
        check(0x24, "00 00 01 42 01 00 00 01 68", None);
        check(0x02, "00 00 01 b3 00 00 00 00 00 01 00", None);
        check(0x1B, "00 00 01 67 42 00 1e fc 00 01 ff ff ff ff", None);
        check(0x42, "00 00 01 b3 14 00 b4", None);
        let mut reader = reader(0x02);
        let mut scrambled = packets(&[0, 0, 1, 0xB3, 0x14, 0, 0xB4])[0];
        scrambled[3] |= 0x80;
        reader.packet(Packet::new(&scrambled));
        assert_eq!(reader.size(), None);
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_cause_no_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
            for (stream_type, header) in [(0x1B, &[0x67][..]), (0x24, &[0x42, 1]), (0x02, &[0xB3])] {
                let mut reader = reader(stream_type);
                let picture = [&[0, 0, 1], header, &bytes[..]].concat();
                packets(&picture).iter().for_each(|it| reader.packet(Packet::new(it)));
                reader.size();
            }
        }
    }
}
