//! Random-access points: packets at which a decoder can start.

use super::packet::Packet;
use super::pes::is_pes_start;
use super::tables::{ElementaryStream, StreamKind, Tables};

/// Determines the random-access points of a programme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomAccess {
    /// Key frames of the video, recognised by the random access indicator or by the start of the picture.
    Video {
        /// PID of the video.
        pid: u16,
        /// Stream type of the video.
        stream_type: u8,
    },
    /// Every PES start of an audio stream, for a programme without video.
    Audio {
        /// PID of the audio.
        pid: u16,
    },
}

impl RandomAccess {
    /// Selects the stream with the random-access points; `None` for a programme without streams.
    pub fn new(tables: &Tables) -> Option<Self> {
        if let Some(ElementaryStream { stream_type, pid, .. }) = tables.video() {
            return Some(Self::Video { pid: *pid, stream_type: *stream_type });
        }
        let streams = &tables.pmt.streams;
        let first = streams.iter().find(|it| tables.pmt.kind(it) == StreamKind::Audio).or(streams.first());
        first.map(|it| Self::Audio { pid: it.pid })
    }

    /// Returns the PID of the stream with the random-access points.
    pub fn pid(self) -> u16 {
        match self {
            Self::Video { pid, .. } | Self::Audio { pid } => pid,
        }
    }

    /// Returns whether a decoder can start at this packet.
    pub fn is_start(self, packet: Packet<'_>) -> bool {
        match self {
            Self::Video { pid, stream_type } => {
                packet.pid() == pid
                    && (packet.random_access()
                        || packet.pusi()
                            && !packet.is_scrambled()
                            && has_key_frame(packet.payload(), stream_type))
            }
            Self::Audio { pid } => packet.pid() == pid && is_pes_start(packet),
        }
    }
}

/// Returns whether a PES packet of video starts with a key frame. Encoders write parameter sets before key
/// frames, so the first packet of the PES packet is sufficient.
fn has_key_frame(pes: &[u8], stream_type: u8) -> bool {
    let [0, 0, 1, 0xE0..=0xEF | 0xFD, _, _, _, _, header, rest @ ..] = pes else { return false };
    let Some(data) = rest.get(usize::from(*header)..) else { return false };
    let mut starts = memchr::memmem::find_iter(data, &[0, 0, 1]).filter_map(|at| data.get(at + 3));
    match stream_type {
        // H.264: an IDR picture, or the sequence parameter set before one.
        0x1B | 0x1F | 0x20 => starts.any(|it| matches!(it & 0x1F, 5 | 7)),
        // H.265: parameter sets, or a random-access picture.
        0x24 => starts.any(|it| matches!(it >> 1 & 0x3F, 16..=23 | 32 | 33)),
        // MPEG-1 and -2: a sequence header.
        0x01 | 0x02 => starts.any(|it| *it == 0xB3),
        _ => false,
    }
}
