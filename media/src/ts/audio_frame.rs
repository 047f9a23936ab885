//! Headers of audio frames that describe themselves: MPEG audio, AAC with ADTS headers, and the lengths of frames of AC-3,
//! E-AC-3 and AAC in LOAS.

/// Bytes of a frame that its header is read from, for both codecs.
pub(crate) const FRAME_HEAD_BYTES: usize = 7;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of the frame with its header.
    pub length: usize,
    /// Samples per channel.
    pub n_samples: u32,
    /// The properties that all frames of a stream have in common.
    pub format: FrameFormat,
    /// Number of channels. Frames of one stream of MPEG audio may differ in it.
    pub channels: u16,
}

/// The codec of a frame, and its samples per second. Frames that follow each other have it in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameFormat {
    /// The codec.
    pub codec: FrameCodec,
    /// Samples per second; of AAC the rate of the core, which is half of that of the sound with SBR.
    pub rate: u32,
}

/// The codec of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameCodec {
    /// MPEG audio.
    Mpeg {
        /// Whether it is MPEG-1. The other versions have rates of 24 kHz and less.
        is_first_version: bool,
        /// Layer 1 to 3.
        layer: u8,
    },
    /// AAC with ADTS headers.
    Adts {
        /// The audio object type.
        object: u8,
        /// The index of the rate.
        rate_index: u8,
        /// The channel configuration.
        channels: u8,
    },
}

impl FrameHeader {
    /// Reads the header of a frame of either codec at the beginning of `bytes`. `None` if none begins here, or if its header
    /// is cut.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mpeg = bytes.first_chunk().and_then(mpeg_header);
        mpeg.or_else(|| adts_header(bytes.first_chunk()?).map(|it| it.0))
    }
}

/// Reads the header of a frame of AAC. Returns it with its length, which is larger with a checksum.
pub(crate) fn adts_header(head: &[u8; 7]) -> Option<(FrameHeader, usize)> {
    const RATES: [u32; 13] = [
        96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
    ];
    if head[0] != 0xFF || head[1] & 0xF6 != 0xF0 {
        return None;
    }
    let header_bytes = if head[1] & 1 == 1 { 7 } else { 9 };
    let (object, rate_index) = ((head[2] >> 6) + 1, head[2] >> 2 & 0x0F);
    let channels = (head[2] & 1) << 2 | head[3] >> 6;
    let length = usize::from(head[3] & 3) << 11 | usize::from(head[4]) << 3 | usize::from(head[5] >> 5);
    let rate = *RATES.get(usize::from(rate_index))?;
    if length <= header_bytes || channels == 0 {
        return None;
    }
    let n_blocks = u32::from(head[6] & 3) + 1;
    let format = FrameFormat { codec: FrameCodec::Adts { object, rate_index, channels }, rate };
    let channels = if channels == 7 { 8 } else { u16::from(channels) };
    Some((FrameHeader { length, n_samples: 1024 * n_blocks, format, channels }, header_bytes))
}

/// Reads the header of a frame of MPEG audio.
pub(crate) fn mpeg_header(head: &[u8; 4]) -> Option<FrameHeader> {
    // Kilobits per second of MPEG-1 layers 1 to 3, and of MPEG-2 layer 1 and layers 2 and 3.
    const KILOBITS: [[usize; 14]; 5] = [
        [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
        [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
        [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
        [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
        [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    ];
    const RATES: [u32; 3] = [44_100, 48_000, 32_000];
    let (version, layer) = (head[1] >> 3 & 3, 4 - (head[1] >> 1 & 3));
    let (kilobits, rate) = (usize::from(head[2] >> 4), usize::from(head[2] >> 2 & 3));
    let is_sync = head[0] == 0xFF && head[1] & 0xE0 == 0xE0 && version != 1 && layer != 4;
    if !is_sync || !(1..=14).contains(&kilobits) || rate == 3 {
        return None;
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
    let codec = FrameCodec::Mpeg { is_first_version: version == 3, layer };
    let channels = if head[3] >> 6 == 3 { 1 } else { 2 };
    Some(FrameHeader { length, n_samples, format: FrameFormat { codec, rate }, channels })
}

/// Returns the bytes of the frame of AC-3 or E-AC-3 that begins with this header (ETSI TS 102 366); `None` if none begins here.
pub(crate) fn ac3_frame_bytes(head: &[u8; 6]) -> Option<usize> {
    const KILOBITS: [usize; 19] =
        [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640];
    if head[..2] != [0x0B, 0x77] {
        return None;
    }
    let (code, size) = (head[4] >> 6, head[4] & 0x3F);
    match head[5] >> 3 {
        0..=10 => {
            let kilobits = *KILOBITS.get(usize::from(size >> 1))?;
            let words = match code {
                0 => kilobits * 2,
                1 => kilobits * 320 / 147 + usize::from(size & 1),
                2 => kilobits * 3,
                _ => return None,
            };
            Some(words * 2)
        }
        11..=16 => {
            let length = ((usize::from(head[2] & 7) << 8 | usize::from(head[3])) + 1) * 2;
            (head[2] >> 6 != 3 && length >= 8).then_some(length)
        }
        _ => None,
    }
}

/// Returns the bytes of the LOAS frame that begins with this header (ISO/IEC 14496-3, `AudioSyncStream`), which contains AAC;
/// `None` if none begins here.
pub(crate) fn loas_frame_bytes(head: &[u8; 3]) -> Option<usize> {
    let length = usize::from(head[1] & 0x1F) << 8 | usize::from(head[2]);
    (head[0] == 0x56 && head[1] & 0xE0 == 0xE0 && length > 0).then_some(3 + length)
}
