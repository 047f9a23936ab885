//! Parses and edits the headers of 188-byte packets.

use bytes::BytesMut;

/// Bytes in a transport stream packet.
pub const PACKET: usize = 188;
/// First byte of every packet.
pub const SYNC: u8 = 0x47;
/// PID of the programme association table.
pub const PAT_PID: u16 = 0;
/// PID of null packets.
pub const NULL_PID: u16 = 0x1FFF;

/// Offset of the length of the adaptation field.
const ADAPTATION: usize = 4;
/// Offset of the flags of the adaptation field, if its length is not zero.
const FLAGS: usize = 5;
/// Offset of the PCR, if the flags announce one.
const PCR: usize = 6;

/// The bytes of one packet.
pub type PacketBytes = [u8; PACKET];

/// A packet with its parsed header. Any bytes are accepted: fields that are not present read as absent.
///
/// The header and the flags of the adaptation field are read from memory once, by [`Packet::new`]. The value is then
/// passed on from the source to the ring.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    bytes: &'a PacketBytes,
    /// The first four bytes, big-endian.
    header: u32,
    /// The flags of the adaptation field; zero without one.
    flags: u8,
}

impl<'a> Packet<'a> {
    /// Parses the header.
    #[inline]
    pub fn new(bytes: &'a PacketBytes) -> Self {
        let header = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let has_flags = header & 0x20 != 0 && bytes[ADAPTATION] > 0;
        Self { bytes, header, flags: if has_flags { bytes[FLAGS] } else { 0 } }
    }

    /// Returns the bytes of the packet.
    #[inline]
    pub fn bytes(self) -> &'a PacketBytes {
        self.bytes
    }

    /// Returns whether the packet starts with the sync byte.
    #[inline]
    pub fn has_sync(self) -> bool {
        self.header >> 24 == u32::from(SYNC)
    }

    /// Returns whether the packet starts with the sync byte and has no transport error indicator.
    #[inline]
    pub fn is_valid(self) -> bool {
        self.header & 0xFF80_0000 == u32::from(SYNC) << 24
    }

    /// Returns the packet identifier, 13 bits.
    #[inline]
    pub fn pid(self) -> u16 {
        (self.header >> 8 & 0x1FFF) as u16
    }

    /// Returns whether a PES packet or a section starts in this packet (`payload_unit_start_indicator`).
    #[inline]
    pub fn pusi(self) -> bool {
        self.header & 0x40_0000 != 0
    }

    /// Returns whether the payload is scrambled and cannot be parsed.
    #[inline]
    pub fn is_scrambled(self) -> bool {
        self.header & 0xC0 != 0
    }

    /// Returns whether the header announces a payload.
    #[inline]
    pub fn has_payload(self) -> bool {
        self.header & 0x10 != 0
    }

    /// Returns whether the header announces an adaptation field.
    #[inline]
    pub fn has_adaptation(self) -> bool {
        self.header & 0x20 != 0
    }

    /// Returns the continuity counter, 4 bits.
    #[inline]
    pub fn cc(self) -> u8 {
        (self.header & 0x0F) as u8
    }

    /// Returns the `discontinuity_indicator`: a break of the counter or of the clock is declared.
    #[inline]
    pub fn discontinuity(self) -> bool {
        self.flags & 0x80 != 0
    }

    /// Returns the `random_access_indicator`: a decoder can start here.
    #[inline]
    pub fn random_access(self) -> bool {
        self.flags & 0x40 != 0
    }

    /// Returns the programme clock reference in ticks of 27 MHz, below 2³³ × 300.
    pub fn pcr(self) -> Option<u64> {
        if self.flags & 0x10 == 0 || self.bytes[ADAPTATION] < 7 {
            return None;
        }
        let field = &self.bytes[PCR..PCR + 6];
        let base = u64::from(u32::from_be_bytes([field[0], field[1], field[2], field[3]])) << 1
            | u64::from(field[4] >> 7);
        let extension = u64::from(u16::from_be_bytes([field[4] & 0x01, field[5]]));
        // An invalid extension of 300..511 would carry into the base; the sum stays monotonic, but must stay
        // in range.
        Some((base * 300 + extension.min(299)).min(super::clock::PCR_MODULUS - 1))
    }

    /// Returns the offset of the payload; [`PACKET`] without a payload.
    pub fn payload_offset(self) -> usize {
        if !self.has_payload() {
            return PACKET;
        }
        if !self.has_adaptation() {
            return ADAPTATION;
        }
        (FLAGS + usize::from(self.bytes[ADAPTATION])).min(PACKET)
    }

    /// Returns whether the adaptation field has bytes only to make the payload shorter, as in the last packet of most
    /// PES packets.
    pub fn has_stuffing(self) -> bool {
        if !self.has_adaptation() {
            return false;
        }
        let length = usize::from(self.bytes[ADAPTATION]).min(PACKET - FLAGS);
        if length == 0 || self.flags == 0 {
            return true;
        }
        let has = |flag: u8| usize::from(self.flags & flag != 0);
        // Flags, PCR, OPCR and splice countdown, then private data and an extension with their lengths.
        let mut needed = 1 + 6 * has(0x10) + 6 * has(0x08) + has(0x04);
        for flag in [0x02, 0x01] {
            if has(flag) == 1 {
                needed += 1 + self.bytes.get(FLAGS + needed).map_or(0, |it| usize::from(*it));
            }
        }
        length > needed
    }

    /// Returns the payload, which may be empty.
    pub fn payload(self) -> &'a [u8] {
        &self.bytes[self.payload_offset()..]
    }
}

/// Receives packets one after the other.
pub trait PacketSink {
    /// Takes the next packet.
    fn push(&mut self, packet: Packet<'_>);
}

impl PacketSink for BytesMut {
    fn push(&mut self, packet: Packet<'_>) {
        self.extend_from_slice(packet.bytes());
    }
}

/// Returns the whole packets of `bytes` in order, without a partial one at the end.
pub fn packets(bytes: &[u8]) -> impl ExactSizeIterator<Item = &PacketBytes> {
    bytes.as_chunks::<PACKET>().0.iter()
}

/// Like [`packets`], for editing in place.
pub fn packets_mut(bytes: &mut [u8]) -> impl ExactSizeIterator<Item = &mut PacketBytes> {
    bytes.as_chunks_mut::<PACKET>().0.iter_mut()
}

/// Sets the PID.
pub fn set_pid(packet: &mut PacketBytes, pid: u16) {
    let [high, low] = (pid & 0x1FFF).to_be_bytes();
    packet[1] = packet[1] & 0xE0 | high;
    packet[2] = low;
}

/// Sets the continuity counter; only the low four bits of `cc` are used.
pub fn set_cc(packet: &mut PacketBytes, cc: u8) {
    packet[3] = packet[3] & 0xF0 | cc & 0x0F;
}

/// Replaces the PCR, in ticks of 27 MHz. Returns false if the packet has none, because a PCR cannot be added.
pub fn set_pcr(packet: &mut PacketBytes, pcr: u64) -> bool {
    if Packet::new(packet).pcr().is_none() {
        return false;
    }
    let pcr = pcr % super::clock::PCR_MODULUS;
    let (base, extension) = (pcr / 300, pcr % 300);
    let field = base << 15 | 0x3F << 9 | extension;
    packet[PCR..PCR + 6].copy_from_slice(&field.to_be_bytes()[2..]);
    true
}

/// Sets `discontinuity_indicator`. Returns false if the packet has no adaptation field for it.
pub fn set_discontinuity(packet: &mut PacketBytes) -> bool {
    let has_room = Packet::new(packet).has_adaptation() && packet[ADAPTATION] > 0;
    if has_room {
        packet[FLAGS] |= 0x80;
    }
    has_room
}

/// Replaces the PCR, and the optional fields after it in the adaptation field, by stuffing.
pub(crate) fn remove_pcr(bytes: &mut PacketBytes) {
    let length = usize::from(bytes[4]).min(183);
    bytes[5] &= 0xE0;
    bytes[6..5 + length].fill(0xFF);
}

/// Removes the payload and everything in the adaptation field that describes it.
pub(crate) fn remove_payload(bytes: &mut PacketBytes) {
    let end = Packet::new(bytes).payload_offset();
    bytes[end..].fill(0xFF);
    bytes[1] &= !0x40;
    bytes[3] = bytes[3] & 0x0F | 0x20;
    bytes[4] = 183;
    // Only the clock remains: the fields after it become stuffing.
    bytes[5] &= 0x90;
    bytes[12..].fill(0xFF);
}

/// Returns a valid null packet. Its counter is undefined in the standard.
pub fn null_packet() -> PacketBytes {
    let mut packet = [0xFF; PACKET];
    packet[..4].copy_from_slice(&[SYNC, 0x1F, 0xFF, 0x10]);
    packet
}

/// Returns a packet without payload that declares a discontinuity on `pid`. It repeats the counter `cc`,
/// because packets without payload do not increase the counter.
pub fn discontinuity_packet(pid: u16, cc: u8) -> PacketBytes {
    let mut packet = [0xFF; PACKET];
    packet[..6].copy_from_slice(&[SYNC, 0, 0, 0x20, (PACKET - FLAGS) as u8, 0x80]);
    set_pid(&mut packet, pid);
    set_cc(&mut packet, cc);
    packet
}
