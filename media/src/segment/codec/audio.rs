//! Frames of audio codecs, and how fMP4 describes them.

use crate::segment::boxes::{esds, make_box};
use crate::ts::audio_frame::{FrameCodec, FrameHeader, ac3_frame_bytes, adts_header, mpeg_header};
use crate::ts::tables::{ElementaryStream, descriptors};

/// The properties of an audio stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AudioConfig {
    /// The name of RFC 6381.
    pub(crate) codec: String,
    /// The type of its sample entry.
    pub(crate) entry: [u8; 4],
    /// Samples per second, which is also the time scale of the track.
    pub(crate) rate: u32,
    pub(crate) channels: u16,
    /// The box of the codec in the sample entry.
    pub(crate) config: Vec<u8>,
}

/// The format of an audio stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AudioFormat {
    Adts,
    /// AC-3 and E-AC-3.
    Ac3,
    Mpeg,
    /// Opus, with the channel configuration of its descriptor.
    Opus(u8),
}

/// The result of a search for a frame at the beginning of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FrameSearch {
    /// More bytes are needed.
    Short,
    /// No frame begins here; this many bytes can be skipped.
    Garbage(usize),
    Frame(Frame),
}

/// A frame at the beginning of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Bytes to be removed.
    pub(crate) length: usize,
    /// Bytes before the data that a sample contains.
    pub(crate) header: usize,
    /// Samples per channel.
    pub(crate) n_samples: u32,
    pub(crate) config: AudioConfig,
    /// Whether it belongs to the frame before, as a dependent substream does.
    pub(crate) is_continuation: bool,
}

impl AudioFormat {
    /// Returns the format of a stream; `None` for one that fMP4 cannot carry.
    pub(crate) fn from_stream(stream: &ElementaryStream) -> Option<Self> {
        match (stream.codec(), stream.stream_type) {
            // The other types carry AAC without headers of their own.
            ("AAC", 0x0F) => Some(Self::Adts),
            ("AC-3" | "E-AC-3", _) => Some(Self::Ac3),
            ("MPEG audio", _) => Some(Self::Mpeg),
            ("Opus", _) => {
                // The extension descriptor with this tag has the channel configuration.
                let code = descriptors(&stream.descriptors).find_map(|it| match it {
                    (0x7F, [0x80, code, ..]) => Some(*code),
                    _ => None,
                });
                Some(Self::Opus(code.unwrap_or(2)))
            }
            _ => None,
        }
    }

    /// Finds a frame at the beginning of `bytes`.
    pub(crate) fn find(self, bytes: &[u8]) -> FrameSearch {
        match self {
            Self::Adts => adts(bytes),
            Self::Ac3 => ac3(bytes),
            Self::Mpeg => mpeg(bytes),
            Self::Opus(channels) => opus(bytes, channels),
        }
    }
}

/// Returns the number of bytes before the next byte with this value.
fn skip_to(bytes: &[u8], value: u8) -> FrameSearch {
    let rest = bytes.get(1..).unwrap_or_default();
    FrameSearch::Garbage(1 + memchr::memchr(value, rest).unwrap_or(rest.len()))
}

fn adts(bytes: &[u8]) -> FrameSearch {
    let Some(head) = bytes.first_chunk() else { return FrameSearch::Short };
    let Some((frame, header)) = adts_header(head) else { return skip_to(bytes, 0xFF) };
    if bytes.len() < frame.length {
        return FrameSearch::Short;
    }
    let FrameHeader { length, n_samples, channels, format } = frame;
    let FrameCodec::Adts { object, rate_index: index, channels: configuration } = format.codec else {
        return skip_to(bytes, 0xFF);
    };
    let specific = [object << 3 | index >> 1, (index & 1) << 7 | configuration << 3];
    let config = AudioConfig {
        codec: format!("mp4a.40.{object}"),
        entry: *b"mp4a",
        rate: format.rate,
        channels,
        config: esds(0x40, 0x15, &specific),
    };
    FrameSearch::Frame(Frame { length, header, n_samples, config, is_continuation: false })
}

fn ac3(bytes: &[u8]) -> FrameSearch {
    const RATES: [u32; 3] = [48_000, 44_100, 32_000];
    const CHANNELS: [u16; 8] = [2, 1, 2, 3, 3, 4, 4, 5];
    let Some(head) = bytes.first_chunk::<8>() else { return FrameSearch::Short };
    if head[..2] != [0x0B, 0x77] {
        return skip_to(bytes, 0x0B);
    }
    let (code, bsid) = (head[4] >> 6, head[5] >> 3);
    let frame = if bsid <= 10 { ac3_frame(head) } else { eac3_frame(head) };
    let Some((length, mode, has_lfe, box_of, n_blocks, is_continuation)) = frame else {
        return skip_to(bytes, 0x0B);
    };
    if bytes.len() < length {
        return FrameSearch::Short;
    }
    let rate = match RATES.get(usize::from(code)) {
        Some(rate) => *rate,
        None if bsid > 10 => RATES.get(usize::from(head[4] >> 4 & 3)).map_or(48_000, |it| it / 2),
        None => return skip_to(bytes, 0x0B),
    };
    let is_ac3 = bsid <= 10;
    let config = AudioConfig {
        codec: if is_ac3 { "ac-3" } else { "ec-3" }.to_owned(),
        entry: if is_ac3 { *b"ac-3" } else { *b"ec-3" },
        rate,
        channels: CHANNELS[usize::from(mode & 7)] + u16::from(has_lfe),
        config: box_of,
    };
    FrameSearch::Frame(Frame { length, header: 0, n_samples: 256 * n_blocks, config, is_continuation })
}

type Ac3Frame = (usize, u8, bool, Vec<u8>, u32, bool);

fn ac3_frame(head: &[u8; 8]) -> Option<Ac3Frame> {
    let length = ac3_frame_bytes(head.first_chunk()?)?;
    let (code, size) = (head[4] >> 6, head[4] & 0x3F);
    let (bsid, bsmod, mode) = (head[5] >> 3, head[5] & 7, head[6] >> 5);
    // The flag for the low-frequency channel follows two bits for each of these fields.
    let n_fields =
        usize::from(mode & 1 == 1 && mode != 1) + usize::from(mode & 4 != 0) + usize::from(mode == 2);
    let bits = u16::from_be_bytes([head[6], head[7]]);
    let has_lfe = bits >> (12 - 2 * n_fields) & 1 == 1;
    let value = u32::from(code) << 22
        | u32::from(bsid) << 17
        | u32::from(bsmod) << 14
        | u32::from(mode) << 11
        | u32::from(has_lfe) << 10
        | u32::from(size >> 1) << 5;
    let config = make_box(b"dac3", &[&value.to_be_bytes()[1..]]);
    Some((length, mode, has_lfe, config, 6, false))
}

fn eac3_frame(head: &[u8; 8]) -> Option<Ac3Frame> {
    let (kind, substream) = (head[2] >> 6, head[2] >> 3 & 7);
    let length = ac3_frame_bytes(head.first_chunk()?)?;
    let (code, blocks) = (head[4] >> 6, head[4] >> 4 & 3);
    let n_blocks = if code == 3 { 6 } else { [1, 2, 3, 6][usize::from(blocks)] };
    let (mode, has_lfe, bsid) = (head[4] >> 1 & 7, head[4] & 1 == 1, head[5] >> 3);
    // One independent substream. The data rate is informative, and not known from one frame.
    let first = u16::from(code) << 14 | u16::from(bsid) << 9 | u16::from(mode) << 1 | u16::from(has_lfe);
    let config = make_box(b"dec3", &[&[0, 0], &first.to_be_bytes(), &[0]]);
    Some((length, mode, has_lfe, config, n_blocks, kind == 1 || substream > 0))
}

fn mpeg(bytes: &[u8]) -> FrameSearch {
    let Some(head) = bytes.first_chunk() else { return FrameSearch::Short };
    let Some(FrameHeader { length, n_samples, channels, format }) = mpeg_header(head) else {
        return skip_to(bytes, 0xFF);
    };
    if bytes.len() < length {
        return FrameSearch::Short;
    }
    let FrameCodec::Mpeg { is_first_version, layer } = format.codec else { return skip_to(bytes, 0xFF) };
    let object_type = if is_first_version { 0x6B } else { 0x69 };
    let config = AudioConfig {
        codec: format!("mp4a.40.{}", 31 + layer),
        entry: *b"mp4a",
        rate: format.rate,
        channels,
        config: esds(object_type, 0x15, &[]),
    };
    FrameSearch::Frame(Frame { length, header: 0, n_samples, config, is_continuation: false })
}

/// Finds an access unit of Opus behind its control header (the mapping of Opus to transport streams).
fn opus(bytes: &[u8], channels: u8) -> FrameSearch {
    let [first, second, rest @ ..] = bytes else { return FrameSearch::Short };
    if *first != 0x7F || second & 0xE0 != 0xE0 {
        return skip_to(bytes, 0x7F);
    }
    let mut at = 0;
    let mut size = 0_usize;
    loop {
        let Some(byte) = rest.get(at) else { return FrameSearch::Short };
        at += 1;
        size += usize::from(*byte);
        if *byte != 0xFF {
            break;
        }
        if size > 1 << 16 {
            return skip_to(bytes, 0x7F);
        }
    }
    at += 2 * usize::from(second & 0x10 != 0) + 2 * usize::from(second & 0x08 != 0);
    if second & 0x04 != 0 {
        let Some(extension) = rest.get(at) else { return FrameSearch::Short };
        at += 1 + usize::from(*extension);
    }
    let header = 2 + at;
    let length = header + size;
    if bytes.len() < length {
        return FrameSearch::Short;
    }
    let n_samples = opus_samples(&bytes[header..length]);
    let (Some(n_samples), Some(config)) = (n_samples, opus_config(channels)) else {
        return FrameSearch::Garbage(length);
    };
    FrameSearch::Frame(Frame { length, header, n_samples, config, is_continuation: false })
}

/// Returns the samples at 48 kHz in a packet of Opus (RFC 6716, 3.1).
fn opus_samples(packet: &[u8]) -> Option<u32> {
    let first = *packet.first()?;
    let frame = match first >> 3 {
        it @ 0..=11 => [480, 960, 1920, 2880][usize::from(it & 3)],
        it @ 12..=15 => [480, 960][usize::from(it & 1)],
        it => [120, 240, 480, 960][usize::from(it & 3)],
    };
    let n_frames = match first & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(packet.get(1)? & 0x3F),
    };
    (n_frames > 0 && n_frames * frame <= 5760).then_some(n_frames * frame)
}

/// Returns the configuration of Opus with this channel configuration; `None` for one that is not defined.
fn opus_config(code: u8) -> Option<AudioConfig> {
    // Streams, coupled streams and mapping of three to eight channels.
    const MAPPINGS: [(u8, u8, &[u8]); 6] = [
        (2, 1, &[0, 2, 1]),
        (2, 2, &[0, 1, 2, 3]),
        (3, 2, &[0, 4, 1, 2, 3]),
        (4, 2, &[0, 4, 1, 2, 3, 5]),
        (4, 3, &[0, 4, 1, 2, 3, 5, 6]),
        (5, 3, &[0, 6, 1, 2, 3, 4, 5, 7]),
    ];
    // Pre-skip is zero, because the stream has been playing for long.
    let head = |channels: u8, family: u8| [0, channels, 0, 0, 0, 0, 0xBB, 0x80, 0, 0, family];
    let (channels, config) = match code {
        1 | 2 => (code, make_box(b"dOps", &[&head(code, 0)])),
        3..=8 => {
            let (streams, coupled, mapping) = MAPPINGS[usize::from(code) - 3];
            (code, make_box(b"dOps", &[&head(code, 1), &[streams, coupled], mapping]))
        }
        _ => return None,
    };
    Some(AudioConfig {
        codec: "opus".to_owned(),
        entry: *b"Opus",
        rate: 48_000,
        channels: channels.into(),
        config,
    })
}
