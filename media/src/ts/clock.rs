//! Clocks, time stamps and random-access points.

use super::packet::{Packet, PacketBytes};
use super::tables::{ElementaryStream, StreamKind, Tables};

/// PTS and DTS wrap at 2³³ ticks of 90 kHz.
pub const STAMP_MODULUS: u64 = 1 << 33;
/// The PCR wraps at the same time, in ticks of 27 MHz.
pub const PCR_MODULUS: u64 = STAMP_MODULUS * 300;
/// Ticks of the PCR in a second.
pub const PCR_HZ: u64 = 27_000_000;
/// Ticks of PTS and DTS in a second.
pub const STAMP_HZ: u64 = 90_000;

/// A larger step of the programme clock, or a step backwards, is a jump.
const PCR_STEP_MAX: u64 = 5 * PCR_HZ;

/// Returns the programme time between two clock references in ticks of the PCR; `None` if the clock jumped in
/// between. `is_break` is true if the stream declares a discontinuity.
pub fn pcr_step(last: u64, pcr: u64, is_break: bool) -> Option<u64> {
    let step = (pcr + PCR_MODULUS - last) % PCR_MODULUS;
    Some(step).filter(|it| !is_break && *it <= PCR_STEP_MAX)
}

/// Unwraps a counter: each value is taken to be the nearest to the one before.
#[derive(Clone, Debug)]
pub struct Unwrap {
    modulus: u64,
    last: Option<u64>,
}

/// An unwrapper of 33-bit stamps.
pub type Unwrap33 = Unwrap;

impl Unwrap {
    /// Creates an unwrapper for PTS and DTS, in ticks of 90 kHz.
    pub fn stamps() -> Self {
        Self { modulus: STAMP_MODULUS, last: None }
    }

    /// Creates an unwrapper for the PCR, in ticks of 27 MHz.
    pub fn pcr() -> Self {
        Self { modulus: PCR_MODULUS, last: None }
    }

    /// Returns the unwrapped value. The first value is returned unchanged; a value before zero is returned
    /// one period later.
    pub fn unwrap(&mut self, value: u64) -> u64 {
        let value = value % self.modulus;
        let next = match self.last {
            None => value,
            Some(last) => {
                let forward = (value + self.modulus - last % self.modulus) % self.modulus;
                if forward <= self.modulus / 2 {
                    last.saturating_add(forward)
                } else {
                    let back = self.modulus - forward;
                    last.checked_sub(back).unwrap_or(last + self.modulus - back)
                }
            }
        };
        self.last = Some(next);
        next
    }

    /// Resets the state: the next value is treated as the first.
    pub fn reset(&mut self) {
        self.last = None;
    }
}

/// Returns the signed distance between two stamps modulo `modulus`, at most half a period.
pub fn distance(from: u64, to: u64, modulus: u64) -> i64 {
    let forward = (to % modulus + modulus - from % modulus) % modulus;
    if forward <= modulus / 2 { forward as i64 } else { -((modulus - forward) as i64) }
}

/// Time stamps of a PES packet in ticks of 90 kHz.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// Presentation time.
    pub pts: Option<u64>,
    /// Decoding time, if it differs.
    pub dts: Option<u64>,
}

impl Stamps {
    /// Returns the decoding time: the DTS, otherwise the PTS.
    pub fn decode(self) -> Option<u64> {
        self.dts.or(self.pts)
    }
}

/// Offset of the PTS in a PES packet that has one.
const PES_PTS: usize = 9;
const PES_DTS: usize = 14;

/// Returns whether the PES header at the start of `pes` has a PTS and a DTS.
fn stamp_flags(pes: &[u8]) -> (bool, bool) {
    let [0, 0, 1, stream_id, _, _, marker, flags, length, ..] = pes else { return (false, false) };
    // These stream ids have no optional PES header.
    let bare = matches!(stream_id, 0xBC | 0xBE | 0xBF | 0xF0 | 0xF1 | 0xF2 | 0xF8 | 0xFF);
    if bare || marker & 0xC0 != 0x80 {
        return (false, false);
    }
    let pts = flags & 0x80 != 0 && *length >= 5 && pes.len() >= PES_PTS + 5;
    let dts = pts && flags & 0x40 != 0 && *length >= 10 && pes.len() >= PES_DTS + 5;
    (pts, dts)
}

fn read_stamp(at: &[u8]) -> u64 {
    u64::from(at[0] >> 1 & 0x07) << 30
        | u64::from(u16::from_be_bytes([at[1], at[2]]) >> 1) << 15
        | u64::from(u16::from_be_bytes([at[3], at[4]]) >> 1)
}

fn write_stamp(at: &mut [u8], stamp: u64) {
    let stamp = stamp % STAMP_MODULUS;
    at[0] = at[0] & 0xF0 | (stamp >> 30 << 1) as u8 | 1;
    at[1..3].copy_from_slice(&(((stamp >> 15 & 0x7FFF) << 1) as u16 | 1).to_be_bytes());
    at[3..5].copy_from_slice(&(((stamp & 0x7FFF) << 1) as u16 | 1).to_be_bytes());
}

/// Returns the time stamps of the PES packet that starts in this packet.
pub fn stamps(packet: Packet<'_>) -> Stamps {
    if !packet.pusi() || packet.is_scrambled() {
        return Stamps::default();
    }
    let pes = packet.payload();
    let (pts, dts) = stamp_flags(pes);
    Stamps { pts: pts.then(|| read_stamp(&pes[PES_PTS..])), dts: dts.then(|| read_stamp(&pes[PES_DTS..])) }
}

/// Replaces PTS and DTS of the PES packet that starts in this packet by the result of `change`, modulo 2³³.
///
/// Returns whether there was a PTS.
pub fn map_stamps(packet: &mut PacketBytes, mut change: impl FnMut(u64) -> u64) -> bool {
    let view = Packet::new(packet);
    if !view.pusi() || view.is_scrambled() {
        return false;
    }
    let offset = view.payload_offset();
    let pes = &mut packet[offset..];
    let (pts, dts) = stamp_flags(pes);
    for (is_present, at) in [(pts, PES_PTS), (dts, PES_DTS)] {
        if is_present {
            let stamp = change(read_stamp(&pes[at..]));
            write_stamp(&mut pes[at..], stamp);
        }
    }
    pts
}

/// Returns whether a PES packet starts in this packet.
pub fn is_pes_start(packet: Packet<'_>) -> bool {
    packet.pusi()
        && (packet.is_scrambled() && packet.has_payload() || packet.payload().starts_with(&[0, 0, 1]))
}

/// Returns whether the PES header that starts in this packet continues in the next packet, so that its time stamps
/// cannot be edited.
pub(crate) fn is_pes_header_cut(packet: Packet<'_>) -> bool {
    match packet.payload() {
        [_, _, _, _, _, _, _, flags, _, ..] => {
            let needed = if flags & 0x40 != 0 { 19 } else { 14 };
            flags & 0x80 != 0 && packet.payload().len() < needed
        }
        _ => true,
    }
}

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
    pub fn of(tables: &Tables) -> Option<Self> {
        if let Some(ElementaryStream { stream_type, pid, .. }) = tables.video() {
            return Some(Self::Video { pid: *pid, stream_type: *stream_type });
        }
        let streams = &tables.pmt.streams;
        let first = streams.iter().find(|it| it.kind() == StreamKind::Audio).or(streams.first());
        first.map(|it| Self::Audio { pid: it.pid })
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
