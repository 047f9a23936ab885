//! Frames of audio codecs, and how fMP4 describes them.

use crate::segment::boxes::{esds, make_box};
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
    const RATES: [u32; 13] = [
        96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
    ];
    let Some(head) = bytes.first_chunk::<7>() else { return FrameSearch::Short };
    if head[0] != 0xFF || head[1] & 0xF6 != 0xF0 {
        return skip_to(bytes, 0xFF);
    }
    let header = if head[1] & 1 == 1 { 7 } else { 9 };
    let (object, index) = ((head[2] >> 6) + 1, head[2] >> 2 & 0x0F);
    let channels = (head[2] & 1) << 2 | head[3] >> 6;
    let length = usize::from(head[3] & 3) << 11 | usize::from(head[4]) << 3 | usize::from(head[5] >> 5);
    let Some(rate) = RATES.get(usize::from(index)) else { return skip_to(bytes, 0xFF) };
    if length <= header || channels == 0 {
        return skip_to(bytes, 0xFF);
    }
    if bytes.len() < length {
        return FrameSearch::Short;
    }
    let specific = [object << 3 | index >> 1, (index & 1) << 7 | channels << 3];
    let config = AudioConfig {
        codec: format!("mp4a.40.{object}"),
        entry: *b"mp4a",
        rate: *rate,
        channels: if channels == 7 { 8 } else { u16::from(channels) },
        config: esds(0x40, 0x15, &specific),
    };
    let n_blocks = u32::from(head[6] & 3) + 1;
    FrameSearch::Frame(Frame { length, header, n_samples: 1024 * n_blocks, config, is_continuation: false })
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
    const KILOBITS: [usize; 19] =
        [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640];
    let (code, size) = (head[4] >> 6, head[4] & 0x3F);
    let kilobits = *KILOBITS.get(usize::from(size >> 1))?;
    let words = match code {
        0 => kilobits * 2,
        1 => kilobits * 320 / 147 + usize::from(size & 1),
        2 => kilobits * 3,
        _ => return None,
    };
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
    Some((words * 2, mode, has_lfe, config, 6, false))
}

fn eac3_frame(head: &[u8; 8]) -> Option<Ac3Frame> {
    let (kind, substream) = (head[2] >> 6, head[2] >> 3 & 7);
    let length = ((usize::from(head[2] & 7) << 8 | usize::from(head[3])) + 1) * 2;
    let (code, blocks) = (head[4] >> 6, head[4] >> 4 & 3);
    let n_blocks = if code == 3 { 6 } else { [1, 2, 3, 6][usize::from(blocks)] };
    let (mode, has_lfe, bsid) = (head[4] >> 1 & 7, head[4] & 1 == 1, head[5] >> 3);
    if kind == 3 || bsid > 16 || length < 8 {
        return None;
    }
    // One independent substream. The data rate is informative, and not known from one frame.
    let first = u16::from(code) << 14 | u16::from(bsid) << 9 | u16::from(mode) << 1 | u16::from(has_lfe);
    let config = make_box(b"dec3", &[&[0, 0], &first.to_be_bytes(), &[0]]);
    Some((length, mode, has_lfe, config, n_blocks, kind == 1 || substream > 0))
}

fn mpeg(bytes: &[u8]) -> FrameSearch {
    // Kilobits per second of MPEG-1 layers 1 to 3, and of MPEG-2 layer 1 and layers 2 and 3.
    const KILOBITS: [[usize; 14]; 5] = [
        [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
        [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
        [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
        [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
        [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    ];
    const RATES: [u32; 3] = [44_100, 48_000, 32_000];
    let Some(head) = bytes.first_chunk::<4>() else { return FrameSearch::Short };
    let (version, layer) = (head[1] >> 3 & 3, 4 - (head[1] >> 1 & 3));
    let (kilobits, rate) = (usize::from(head[2] >> 4), usize::from(head[2] >> 2 & 3));
    let is_sync = head[0] == 0xFF && head[1] & 0xE0 == 0xE0 && version != 1 && layer != 4;
    if !is_sync || !(1..=14).contains(&kilobits) || rate == 3 {
        return skip_to(bytes, 0xFF);
    }
    let row = match (version == 3, layer) {
        (true, _) => usize::from(layer) - 1,
        (false, 1) => 3,
        (false, _) => 4,
    };
    let divisor = match version {
        3 => 1,
        2 => 2,
        _ => 4,
    };
    let (bits, rate) = (KILOBITS[row][kilobits - 1] * 1000, RATES[rate] / divisor);
    let padding = usize::from(head[2] >> 1 & 1);
    let n_samples: u32 = match (layer, version) {
        (1, _) => 384,
        (3, 0..=2) => 576,
        _ => 1152,
    };
    let length = match layer {
        1 => (12 * bits / rate as usize + padding) * 4,
        _ => n_samples as usize / 8 * bits / rate as usize + padding,
    };
    if bytes.len() < length {
        return FrameSearch::Short;
    }
    let object_type = if version == 3 { 0x6B } else { 0x69 };
    let config = AudioConfig {
        codec: format!("mp4a.40.{}", 31 + layer),
        entry: *b"mp4a",
        rate,
        channels: if head[3] >> 6 == 3 { 1 } else { 2 },
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
