//! Pictures of video codecs, and how fMP4 describes them.

use bytes::{Bytes, BytesMut};

use super::{h264_name, h265_name};
use crate::segment::boxes::{esds, make_box};
use crate::ts::picture::{Bits, PictureSize, h264_size, h265_size, skip_scaling_list, without_emulation};

/// Maximum number of parameter sets of one kind that are stored.
const SETS_MAX: usize = 32;
/// Longer parameter sets are ignored.
const SET_BYTES_MAX: usize = 4 << 10;

/// The format of a video stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VideoFormat {
    H264,
    H265,
    Mpeg1,
    Mpeg2,
}

/// The parameters of a video stream, of which a change needs another initialisation segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VideoConfig {
    /// The name of RFC 6381.
    pub(crate) codec: String,
    pub(crate) entry: [u8; 4],
    pub(crate) size: PictureSize,
    /// The box of the codec in the sample entry.
    pub(crate) config: Vec<u8>,
    /// The sequence parameter sets, or the size of MPEG video: what makes two streams different.
    identity: Vec<Vec<u8>>,
    /// All parameter sets in `config`, which samples need not repeat.
    sets: Vec<Vec<u8>>,
}

impl VideoConfig {
    /// Returns whether samples of both fit the same initialisation segment.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.identity == other.identity && self.entry == other.entry
    }
}

/// A picture, or several if a PES packet has several.
#[derive(Debug)]
pub(crate) struct Picture {
    /// The data of a sample.
    pub(crate) data: Bytes,
    /// The parameters that begin with this picture.
    pub(crate) config: Option<VideoConfig>,
    /// Whether all its slices are independent of other pictures, as far as the unit types say so.
    pub(crate) is_key: bool,
    /// The frame number and parity of a picture that is one field.
    pub(crate) field: Option<(u32, bool)>,
}

/// Reads pictures of one stream.
#[derive(Debug)]
pub(crate) struct VideoReader {
    format: VideoFormat,
    config: Option<VideoConfig>,
    /// The lengths in the newest sequence parameter set of H.264.
    h264: Option<H264Lengths>,
}

/// The fields of a sequence parameter set that are needed to read the header of a slice.
#[derive(Clone, Copy, Debug)]
struct H264Lengths {
    has_separate_planes: bool,
    frame_number_bits: u32,
    has_frames_only: bool,
    chroma: u32,
    depths: (u32, u32),
}

impl VideoReader {
    pub(crate) fn new(format: VideoFormat) -> Self {
        Self { format, config: None, h264: None }
    }

    /// Reads the data of a PES packet; `None` without a picture.
    pub(crate) fn read(&mut self, data: &Bytes) -> Option<Picture> {
        match self.format {
            VideoFormat::H264 | VideoFormat::H265 => self.read_units(data),
            VideoFormat::Mpeg1 | VideoFormat::Mpeg2 => self.read_mpeg(data),
        }
    }

    fn read_units(&mut self, data: &[u8]) -> Option<Picture> {
        let is_h264 = self.format == VideoFormat::H264;
        let mut sets = Sets::default();
        let mut kept: Vec<&[u8]> = Vec::new();
        let (mut is_key, mut has_slice, mut field) = (false, false, None);
        for unit in units(data) {
            let kind = if is_h264 { unit[0] & 0x1F } else { unit[0] >> 1 & 0x3F };
            match (is_h264, kind) {
                (true, 7) => sets.add(1, unit),
                (true, 8) => sets.add(2, unit),
                (false, 32) => sets.add(0, unit),
                (false, 33) => sets.add(1, unit),
                (false, 34) => sets.add(2, unit),
                // Delimiters and filler.
                (true, 9..=12) | (false, 35..=38) => continue,
                _ => {}
            }
            if is_h264 && matches!(kind, 1 | 5) || !is_h264 && kind < 32 {
                is_key |= if is_h264 { kind == 5 } else { (16..=23).contains(&kind) };
                if is_h264 && !has_slice {
                    let lengths = sets.lists[1].first().map_or(self.h264, |it| h264_lengths(it));
                    field = lengths.and_then(|it| field_of(unit, it));
                }
                has_slice = true;
            }
            kept.push(unit);
        }
        if !has_slice {
            return None;
        }
        let config = self.adopt(sets);
        let known = self.config.as_ref().map_or(&[][..], |it| &it.sets);
        let is_known = |unit: &[u8]| known.iter().any(|it| it == unit);
        let kept = kept.into_iter().filter(|it| !is_known(it));
        let mut sample = BytesMut::with_capacity(data.len() + 64);
        for unit in kept {
            sample.extend_from_slice(&(unit.len() as u32).to_be_bytes());
            sample.extend_from_slice(unit);
        }
        (!sample.is_empty()).then(|| Picture { data: sample.freeze(), config, is_key, field })
    }

    /// Adopts parameter sets, and returns the parameters if they differ from those before.
    fn adopt(&mut self, sets: Sets) -> Option<VideoConfig> {
        let first = sets.lists[1].first()?;
        if self.format == VideoFormat::H264 {
            self.h264 = h264_lengths(first);
        }
        let is_known = self.config.as_ref().is_some_and(|it| it.identity == sets.lists[1]);
        if is_known || sets.lists[2].is_empty() {
            return None;
        }
        let config = match self.format {
            VideoFormat::H264 => h264_config(&sets, self.h264)?,
            _ => h265_config(&sets)?,
        };
        Some(self.config.insert(config).clone())
    }

    fn read_mpeg(&mut self, data: &Bytes) -> Option<Picture> {
        let mut units = units(data);
        let first = units.clone().find(|it| it[0] == 0xB3);
        let has_picture = units.any(|it| it[0] == 0);
        if !has_picture {
            return None;
        }
        let mut config = None;
        if let Some([_, a, b, c, rest @ ..]) = first {
            let identity = vec![vec![*a, *b, *c, rest.first().copied().unwrap_or(0)]];
            let sides = u32::from_be_bytes([0, *a, *b, *c]);
            let size = PictureSize { width: sides >> 12, height: sides & 0xFFF };
            if size.width > 0
                && size.height > 0
                && self.config.as_ref().is_none_or(|it| it.identity != identity)
            {
                let headers = mpeg_headers(data);
                let (object_type, codec) =
                    if self.format == VideoFormat::Mpeg2 { (0x61, "mp4v.61") } else { (0x6A, "mp4v.6A") };
                let new = VideoConfig {
                    codec: codec.to_owned(),
                    entry: *b"mp4v",
                    size,
                    config: esds(object_type, 0x11, headers),
                    identity,
                    sets: Vec::new(),
                };
                config = Some(self.config.insert(new).clone());
            }
        }
        Some(Picture { data: data.clone(), is_key: first.is_some(), config, field: None })
    }
}

/// Parameter sets of one picture: of the video, of sequences, of pictures.
#[derive(Default)]
struct Sets {
    lists: [Vec<Vec<u8>>; 3],
}

impl Sets {
    fn add(&mut self, kind: usize, unit: &[u8]) {
        let list = &mut self.lists[kind];
        if list.len() < SETS_MAX && unit.len() <= SET_BYTES_MAX && !list.iter().any(|it| it == unit) {
            list.push(unit.to_vec());
        }
    }
}

/// Returns the units between start codes, without the zeros behind them. None is empty.
fn units(data: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let mut starts = memchr::memmem::find_iter(data, &[0, 0, 1]).peekable();
    std::iter::from_fn(move || {
        loop {
            let at = starts.next()? + 3;
            let end = starts.peek().copied().unwrap_or(data.len()).max(at);
            let unit = data.get(at..end)?;
            let n_zeros = unit.iter().rev().take_while(|it| **it == 0).count();
            let unit = &unit[..unit.len() - n_zeros];
            // A picture header of MPEG video begins with a zero.
            match unit {
                [] if n_zeros > 0 => return Some(&data[at..at + 1]),
                [] => {}
                _ => return Some(unit),
            }
        }
    })
}

/// Returns the sequence header of MPEG video and its extensions.
fn mpeg_headers(data: &[u8]) -> &[u8] {
    let mut starts = memchr::memmem::find_iter(data, &[0, 0, 1]);
    let is_header = |at: usize| matches!(data.get(at + 3), Some(0xB3 | 0xB5));
    let Some(from) = starts.by_ref().find(|it| data.get(it + 3) == Some(&0xB3)) else { return &[] };
    let to = starts.find(|it| !is_header(*it)).unwrap_or(data.len());
    &data[from..to.min(from + 512)]
}

fn h264_config(sets: &Sets, lengths: Option<H264Lengths>) -> Option<VideoConfig> {
    let [_, sequences, pictures] = &sets.lists;
    let first = sequences.first()?;
    let [_, profile, constraints, level, ..] = first[..] else { return None };
    let size = h264_size(&first[1..])?;
    let lengths = lengths?;
    let mut record = vec![1, profile, constraints, level, 0xFF, 0xE0 | sequences.len().min(31) as u8];
    put_sets(&mut record, sequences.iter().take(31));
    record.push(pictures.len() as u8);
    put_sets(&mut record, pictures.iter());
    if matches!(profile, 100 | 110 | 122 | 144 | 244) {
        let (luma, chroma) = lengths.depths;
        record.extend([0xFC | lengths.chroma as u8 & 3, 0xF8 | luma as u8 & 7, 0xF8 | chroma as u8 & 7, 0]);
    }
    Some(VideoConfig {
        codec: h264_name(first)?,
        entry: *b"avc1",
        size,
        config: make_box(b"avcC", &[&record]),
        identity: sequences.clone(),
        sets: sequences.iter().chain(pictures).cloned().collect(),
    })
}

fn put_sets<'a>(record: &mut Vec<u8>, sets: impl Iterator<Item = &'a Vec<u8>>) {
    for set in sets {
        record.extend((set.len() as u16).to_be_bytes());
        record.extend(set);
    }
}

/// Reads a sequence parameter set of H.264 (7.3.2.1.1) up to the lengths of fields in slices.
fn h264_lengths(set: &[u8]) -> Option<H264Lengths> {
    let mut bits = Bits::new(set.get(1..)?);
    let profile = bits.take(8)?;
    bits.skip(16)?;
    bits.golomb()?;
    let (mut chroma, mut has_separate_planes, mut depths) = (1, false, (0, 0));
    if matches!(profile, 44 | 83 | 86 | 100 | 110 | 118 | 122 | 128 | 134 | 135 | 138 | 139 | 244) {
        chroma = bits.golomb()?;
        if chroma == 3 {
            has_separate_planes = bits.flag()?;
        }
        depths = (bits.golomb()?, bits.golomb()?);
        bits.skip(1)?;
        if bits.flag()? {
            for list in 0..if chroma == 3 { 12 } else { 8 } {
                if bits.flag()? {
                    skip_scaling_list(&mut bits, if list < 6 { 16 } else { 64 })?;
                }
            }
        }
    }
    let frame_number_bits = bits.golomb()?.checked_add(4).filter(|it| *it <= 16)?;
    match bits.golomb()? {
        0 => drop(bits.golomb()?),
        1 => {
            bits.skip(1)?;
            bits.golomb()?;
            bits.golomb()?;
            for _ in 0..bits.golomb()?.min(255) {
                bits.golomb()?;
            }
        }
        _ => {}
    }
    bits.golomb()?;
    bits.skip(1)?;
    bits.golomb()?;
    bits.golomb()?;
    let has_frames_only = bits.flag()?;
    Some(H264Lengths { has_separate_planes, frame_number_bits, has_frames_only, chroma, depths })
}

/// Returns the frame number and the parity of a slice of a field; `None` for a frame.
fn field_of(unit: &[u8], lengths: H264Lengths) -> Option<(u32, bool)> {
    if lengths.has_frames_only {
        return None;
    }
    let mut bits = Bits::new(unit.get(1..unit.len().min(32))?);
    bits.golomb()?;
    bits.golomb()?;
    bits.golomb()?;
    if lengths.has_separate_planes {
        bits.skip(2)?;
    }
    let number = bits.take(lengths.frame_number_bits)?;
    if !bits.flag()? {
        return None;
    }
    Some((number, bits.flag()?))
}

/// Writes the configuration record of H.265 (ISO/IEC 14496-15, 8.3.3.1).
fn h265_config(sets: &Sets) -> Option<VideoConfig> {
    let first = sets.lists[1].first()?;
    let plain = without_emulation(first);
    let profile = plain.get(3..15)?;
    let size = h265_size(first.get(2..)?)?;
    let (chroma, depths) = h265_depths(first).unwrap_or((1, (0, 0)));
    let n_layers = (plain[2] >> 1 & 7) + 1;
    let is_nested = plain[2] & 1;
    let mut record = vec![1];
    record.extend(profile);
    record.extend([
        0xF0,
        0,
        0xFC,
        0xFC | chroma as u8 & 3,
        0xF8 | depths.0 as u8 & 7,
        0xF8 | depths.1 as u8 & 7,
    ]);
    record.extend([0, 0, n_layers << 3 | is_nested << 2 | 3]);
    let lists = sets.lists.iter().zip([32_u8, 33, 34]).filter(|(list, _)| !list.is_empty());
    record.push(lists.clone().count() as u8);
    for (list, kind) in lists {
        record.push(0x80 | kind);
        record.extend((list.len() as u16).to_be_bytes());
        put_sets(&mut record, list.iter());
    }
    Some(VideoConfig {
        codec: h265_name(first)?,
        entry: *b"hvc1",
        size,
        config: make_box(b"hvcC", &[&record]),
        identity: sets.lists[1].clone(),
        sets: sets.lists.iter().flatten().cloned().collect(),
    })
}

/// Returns the chroma format and the bit depths minus 8 of a sequence parameter set of H.265.
fn h265_depths(set: &[u8]) -> Option<(u32, (u32, u32))> {
    let mut bits = Bits::new(set.get(2..)?);
    bits.skip(4)?;
    let n_layers = bits.take(3)? as usize;
    bits.skip(1 + 96)?;
    let mut lengths = 0;
    for _ in 0..n_layers {
        lengths += if bits.flag()? { 88 } else { 0 };
        lengths += if bits.flag()? { 8 } else { 0 };
    }
    if n_layers > 0 {
        bits.skip(2 * (8 - n_layers))?;
    }
    bits.skip(lengths)?;
    bits.golomb()?;
    let chroma = bits.golomb()?;
    if chroma == 3 {
        bits.skip(1)?;
    }
    bits.golomb()?;
    bits.golomb()?;
    if bits.flag()? {
        for _ in 0..4 {
            bits.golomb()?;
        }
    }
    Some((chroma, (bits.golomb()?, bits.golomb()?)))
}
