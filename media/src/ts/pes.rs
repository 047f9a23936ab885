//! PES headers: time stamps and the start of PES packets.

use super::clock::STAMP_MODULUS;
use super::packet::{Packet, PacketBytes};

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

/// Bytes before those that the length of a PES packet counts.
const PES_PREFIX: usize = 6;
/// Offset of the PTS in a PES packet that has one.
const PES_PTS: usize = 9;
const PES_DTS: usize = 14;

/// Returns whether PES packets with this stream id have no optional header.
fn is_bare(stream_id: u8) -> bool {
    matches!(stream_id, 0xBC | 0xBE | 0xBF | 0xF0 | 0xF1 | 0xF2 | 0xF8 | 0xFF)
}

/// Returns whether the PES header at the start of `pes` has a PTS and a DTS.
fn stamp_flags(pes: &[u8]) -> (bool, bool) {
    let [0, 0, 1, stream_id, _, _, marker, flags, length, ..] = pes else { return (false, false) };
    if is_bare(*stream_id) || marker & 0xC0 != 0x80 {
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

/// Writes a time stamp behind the four bits of its prefix, modulo 2³³.
pub(crate) fn write_stamp(at: &mut [u8], stamp: u64) {
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

/// Returns the time stamps of a PES packet and the offset of its data; `None` if its header is invalid or incomplete.
pub(crate) fn pes_header(pes: &[u8]) -> Option<(Stamps, usize)> {
    let [0, 0, 1, stream_id, _, _, ..] = pes else { return None };
    if is_bare(*stream_id) {
        return Some((Stamps::default(), PES_PREFIX));
    }
    let (pts, dts) = stamp_flags(pes);
    let data = PES_PTS + usize::from(*pes.get(PES_PTS - 1)?);
    let stamps = Stamps {
        pts: pts.then(|| read_stamp(&pes[PES_PTS..])),
        dts: dts.then(|| read_stamp(&pes[PES_DTS..])),
    };
    (pes.len() >= data).then_some((stamps, data))
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

/// Returns the number of bytes of the PES packet that starts with these bytes, header included; `None` if it has no
/// length, which is allowed for video.
pub(crate) fn pes_length(pes: &[u8]) -> Option<usize> {
    let [0, 0, 1, _, high, low, ..] = pes else { return None };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    (length > 0).then_some(PES_PREFIX + length)
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
        [_, _, _, stream_id, ..] if is_bare(*stream_id) => false,
        [_, _, _, _, _, _, _, flags, _, ..] => {
            let needed = if flags & 0x40 != 0 { 19 } else { 14 };
            flags & 0x80 != 0 && packet.payload().len() < needed
        }
        _ => true,
    }
}
