//! The header of one 188-byte packet, read without copying and changed in place.

/// Bytes in a transport stream packet.
pub const PACKET: usize = 188;
/// First byte of every packet.
pub const SYNC: u8 = 0x47;
/// PID of the programme association table.
pub const PAT_PID: u16 = 0;
/// PID of packets that carry nothing.
pub const NULL_PID: u16 = 0x1FFF;

/// Offset of the adaptation field's length byte.
const ADAPTATION: usize = 4;
/// Offset of the adaptation field's flags, where there is one of at least one byte.
const FLAGS: usize = 5;
/// Offset of the PCR, where the flags say there is one.
const PCR: usize = 6;

/// The bytes of one packet.
pub type PacketBytes = [u8; PACKET];

/// A look at the header of one packet. Any bytes will do: what is not there reads as absent.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a>(&'a PacketBytes);

impl<'a> Packet<'a> {
    /// Looks at `bytes`.
    pub fn new(bytes: &'a PacketBytes) -> Self {
        Self(bytes)
    }

    /// The bytes looked at.
    pub fn bytes(self) -> &'a PacketBytes {
        self.0
    }

    /// Whether it begins with the sync byte and is not marked as damaged on its way.
    pub fn is_valid(self) -> bool {
        self.0[0] == SYNC && self.0[1] & 0x80 == 0
    }

    /// Packet identifier, 13 bits.
    pub fn pid(self) -> u16 {
        u16::from_be_bytes([self.0[1] & 0x1F, self.0[2]])
    }

    /// Whether a PES packet or a section begins in this packet (`payload_unit_start_indicator`).
    pub fn pusi(self) -> bool {
        self.0[1] & 0x40 != 0
    }

    /// Whether the payload is scrambled: its bytes mean nothing to us.
    pub fn is_scrambled(self) -> bool {
        self.0[3] & 0xC0 != 0
    }

    /// Whether the header promises a payload.
    pub fn has_payload(self) -> bool {
        self.0[3] & 0x10 != 0
    }

    /// Whether the header promises an adaptation field.
    pub fn has_adaptation(self) -> bool {
        self.0[3] & 0x20 != 0
    }

    /// Continuity counter, 4 bits.
    pub fn cc(self) -> u8 {
        self.0[3] & 0x0F
    }

    /// The flags of the adaptation field; zero where there is none.
    fn flags(self) -> u8 {
        if self.has_adaptation() && self.0[ADAPTATION] > 0 { self.0[FLAGS] } else { 0 }
    }

    /// `discontinuity_indicator`: a break of the counter or of the clock is meant.
    pub fn discontinuity(self) -> bool {
        self.flags() & 0x80 != 0
    }

    /// `random_access_indicator`: a decoder can begin here.
    pub fn random_access(self) -> bool {
        self.flags() & 0x40 != 0
    }

    /// Programme clock reference in ticks of 27 MHz, below 2³³ × 300.
    pub fn pcr(self) -> Option<u64> {
        if self.flags() & 0x10 == 0 || self.0[ADAPTATION] < 7 {
            return None;
        }
        let field = &self.0[PCR..PCR + 6];
        let base = u64::from(u32::from_be_bytes([field[0], field[1], field[2], field[3]])) << 1
            | u64::from(field[4] >> 7);
        let extension = u64::from(u16::from_be_bytes([field[4] & 0x01, field[5]]));
        // A hostile extension of 300..511 would carry into the base; the sum stays monotonic, but must stay in range.
        Some((base * 300 + extension.min(299)).min(super::clock::PCR_MODULUS - 1))
    }

    /// Where the payload begins; [`PACKET`] where there is none.
    pub fn payload_offset(self) -> usize {
        if !self.has_payload() {
            return PACKET;
        }
        if !self.has_adaptation() {
            return ADAPTATION;
        }
        (FLAGS + usize::from(self.0[ADAPTATION])).min(PACKET)
    }

    /// The payload; empty where there is none.
    pub fn payload(self) -> &'a [u8] {
        &self.0[self.payload_offset()..]
    }
}

/// The whole packets of `bytes`, in order; a partial one at the end is left out.
pub fn packets(bytes: &[u8]) -> impl ExactSizeIterator<Item = &PacketBytes> {
    bytes.as_chunks::<PACKET>().0.iter()
}

/// Like [`packets`], to change them in place.
pub fn packets_mut(bytes: &mut [u8]) -> impl ExactSizeIterator<Item = &mut PacketBytes> {
    bytes.as_chunks_mut::<PACKET>().0.iter_mut()
}

/// Gives the packet another PID.
pub fn set_pid(packet: &mut PacketBytes, pid: u16) {
    let [high, low] = (pid & 0x1FFF).to_be_bytes();
    packet[1] = packet[1] & 0xE0 | high;
    packet[2] = low;
}

/// Gives the packet another continuity counter; only the low four bits count.
pub fn set_cc(packet: &mut PacketBytes, cc: u8) {
    packet[3] = packet[3] & 0xF0 | cc & 0x0F;
}

/// Replaces the PCR, in ticks of 27 MHz. False where the packet has none: there is no room to add one.
pub fn set_pcr(packet: &mut PacketBytes, pcr: u64) -> bool {
    if Packet(packet).pcr().is_none() {
        return false;
    }
    let pcr = pcr % super::clock::PCR_MODULUS;
    let (base, extension) = (pcr / 300, pcr % 300);
    let field = base << 15 | 0x3F << 9 | extension;
    packet[PCR..PCR + 6].copy_from_slice(&field.to_be_bytes()[2..]);
    true
}

/// Sets `discontinuity_indicator`. False where the packet has no adaptation field to hold it.
pub fn set_discontinuity(packet: &mut PacketBytes) -> bool {
    let has_room = Packet(packet).has_adaptation() && packet[ADAPTATION] > 0;
    if has_room {
        packet[FLAGS] |= 0x80;
    }
    has_room
}

/// A valid packet that carries nothing. Its counter is undefined by the standard.
pub fn null_packet() -> PacketBytes {
    let mut packet = [0xFF; PACKET];
    packet[..4].copy_from_slice(&[SYNC, 0x1F, 0xFF, 0x10]);
    packet
}

/// A packet without payload that declares a discontinuity on `pid`. It repeats the counter `cc`, because
/// packets without payload do not count on.
pub fn discontinuity_packet(pid: u16, cc: u8) -> PacketBytes {
    let mut packet = [0xFF; PACKET];
    packet[..6].copy_from_slice(&[SYNC, 0, 0, 0x20, (PACKET - FLAGS) as u8, 0x80]);
    set_pid(&mut packet, pid);
    set_cc(&mut packet, cc);
    packet
}
