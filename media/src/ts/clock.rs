//! Clocks and time stamps, and where a decoder can begin.

use super::packet::{Packet, PacketBytes};
use super::tables::{ElementaryStream, StreamKind, Tables};

/// PTS and DTS wrap at 2³³ ticks of 90 kHz.
pub const STAMP_MODULUS: u64 = 1 << 33;
/// The PCR wraps at the same moment, in ticks of 27 MHz.
pub const PCR_MODULUS: u64 = STAMP_MODULUS * 300;
/// Ticks of the PCR in a second.
pub const PCR_HZ: u64 = 27_000_000;
/// Ticks of PTS and DTS in a second.
pub const STAMP_HZ: u64 = 90_000;

/// A programme clock that steps further than this, or back, has been set anew.
const PCR_STEP_MAX: u64 = 5 * PCR_HZ;

/// How much programme lies between two clock references, in ticks of the PCR; `None` where the clock was set anew in
/// between. `is_break` says that the stream declares so.
pub fn pcr_step(last: u64, pcr: u64, is_break: bool) -> Option<u64> {
    let step = (pcr + PCR_MODULUS - last) % PCR_MODULUS;
    Some(step).filter(|it| !is_break && *it <= PCR_STEP_MAX)
}

/// Turns a counter that wraps into one that does not: each value is taken to be the nearest to the one before.
#[derive(Clone, Debug)]
pub struct Unwrap {
    modulus: u64,
    last: Option<u64>,
}

/// The name for what unwraps 33-bit stamps.
pub type Unwrap33 = Unwrap;

impl Unwrap {
    /// For PTS and DTS, in ticks of 90 kHz.
    pub fn stamps() -> Self {
        Self { modulus: STAMP_MODULUS, last: None }
    }

    /// For the PCR, in ticks of 27 MHz.
    pub fn pcr() -> Self {
        Self { modulus: PCR_MODULUS, last: None }
    }

    /// The value on the line that does not wrap. The first stays as it is; one that lies before zero is put a
    /// whole turn later.
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

    /// Forgets what came before: the next value begins a line of its own.
    pub fn reset(&mut self) {
        self.last = None;
    }
}

/// The signed way from one stamp to another on a circle of `modulus` ticks, at most half a turn.
pub fn distance(from: u64, to: u64, modulus: u64) -> i64 {
    let forward = (to % modulus + modulus - from % modulus) % modulus;
    if forward <= modulus / 2 { forward as i64 } else { -((modulus - forward) as i64) }
}

/// Time stamps of a PES packet in ticks of 90 kHz.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// When to show.
    pub pts: Option<u64>,
    /// When to decode, where that differs.
    pub dts: Option<u64>,
}

impl Stamps {
    /// When to decode: DTS, else PTS.
    pub fn decode(self) -> Option<u64> {
        self.dts.or(self.pts)
    }
}

/// Offset of the PTS in a PES packet that has one.
const PES_PTS: usize = 9;
const PES_DTS: usize = 14;

/// Which stamps the header at the beginning of `pes` carries.
fn stamp_flags(pes: &[u8]) -> (bool, bool) {
    let [0, 0, 1, stream_id, _, _, marker, flags, length, ..] = pes else { return (false, false) };
    // These stream ids have no such header.
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

/// The time stamps of the PES packet that begins in this packet.
pub fn stamps(packet: Packet<'_>) -> Stamps {
    if !packet.pusi() || packet.is_scrambled() {
        return Stamps::default();
    }
    let pes = packet.payload();
    let (pts, dts) = stamp_flags(pes);
    Stamps { pts: pts.then(|| read_stamp(&pes[PES_PTS..])), dts: dts.then(|| read_stamp(&pes[PES_DTS..])) }
}

/// Puts PTS and DTS of the PES packet that begins in this packet through `change`; the result wraps at 2³³.
/// False where there is none.
pub fn map_stamps(packet: &mut PacketBytes, mut change: impl FnMut(u64) -> u64) -> bool {
    let view = Packet::new(packet);
    if !view.pusi() || view.is_scrambled() {
        return false;
    }
    let offset = view.payload_offset();
    let pes = &mut packet[offset..];
    let (pts, dts) = stamp_flags(pes);
    for (there, at) in [(pts, PES_PTS), (dts, PES_DTS)] {
        if there {
            let stamp = change(read_stamp(&pes[at..]));
            write_stamp(&mut pes[at..], stamp);
        }
    }
    pts
}

/// Whether a PES packet begins in this packet.
pub fn is_pes_start(packet: Packet<'_>) -> bool {
    packet.pusi()
        && (packet.is_scrambled() && packet.has_payload() || packet.payload().starts_with(&[0, 0, 1]))
}

/// Which packets of a programme begin a random-access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomAccess {
    /// Key frames of the video on this PID, by the encoder's flag or by looking at the picture.
    Video {
        /// Where the video is.
        pid: u16,
        /// How it is coded.
        stream_type: u8,
    },
    /// Every PES start on this PID: there is no video.
    Audio {
        /// Where the sound is.
        pid: u16,
    },
}

impl RandomAccess {
    /// What to look for in this programme; nothing in one without streams.
    pub fn of(tables: &Tables) -> Option<Self> {
        if let Some(ElementaryStream { stream_type, pid, .. }) = tables.video() {
            return Some(Self::Video { pid: *pid, stream_type: *stream_type });
        }
        let streams = &tables.pmt.streams;
        let first = streams.iter().find(|it| it.kind() == StreamKind::Audio).or(streams.first());
        first.map(|it| Self::Audio { pid: it.pid })
    }

    /// Whether a decoder can begin at this packet.
    pub fn begins_at(self, packet: Packet<'_>) -> bool {
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

/// Whether the first bytes of a PES packet of video show the beginning of a key frame. Encoders put parameter
/// sets in front of key frames, so the first packet of the PES packet is enough to see it.
fn has_key_frame(pes: &[u8], stream_type: u8) -> bool {
    let [0, 0, 1, 0xE0..=0xEF | 0xFD, _, _, _, _, header, rest @ ..] = pes else { return false };
    let Some(data) = rest.get(usize::from(*header)..) else { return false };
    let mut starts = memchr::memmem::find_iter(data, &[0, 0, 1]).filter_map(|at| data.get(at + 3));
    match stream_type {
        // H.264: an IDR picture, or the sequence parameters before one.
        0x1B | 0x1F | 0x20 => starts.any(|it| matches!(it & 0x1F, 5 | 7)),
        // H.265: parameter sets, or one of the pictures that a decoder may begin with.
        0x24 => starts.any(|it| matches!(it >> 1 & 0x3F, 16..=23 | 32 | 33)),
        // MPEG-1 and -2: a sequence header.
        0x01 | 0x02 => starts.any(|it| *it == 0xB3),
        _ => false,
    }
}
