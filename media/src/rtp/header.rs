//! The header of an RTP packet.

use crate::ts::packet::PACKET;

/// Length of a header without sources and extension.
pub const RTP_HEADER_BYTES: usize = 12;
/// The payload type of MPEG transport streams.
pub const PAYLOAD_TYPE_TS: u8 = 33;
/// First byte of each transport stream packet.
const SYNC: u8 = 0x47;

/// The fields of an RTP header that matter for a transport stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtpHeader {
    pub payload_type: u8,
    pub sequence: u16,
    /// In units of 1/90,000 s.
    pub timestamp: u32,
    /// The number that the sender chose for its stream, by chance.
    pub sender: u32,
}

impl RtpHeader {
    /// Splits a datagram into header and payload. Contributing sources, the extension and the padding are left out.
    /// `None` if it is not an RTP packet.
    pub fn parse(datagram: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, mut rest) = datagram.split_at_checked(RTP_HEADER_BYTES)?;
        let [flags, marker_and_type, s0, s1, t0, t1, t2, t3, i0, i1, i2, i3] = *fixed else { return None };
        if flags >> 6 != 2 {
            return None;
        }
        rest = rest.get(usize::from(flags & 0x0f) * 4..)?;
        if flags & 0x10 != 0 {
            let (extension, after) = rest.split_at_checked(4)?;
            let n_words = u16::from_be_bytes([extension[2], extension[3]]);
            rest = after.get(usize::from(n_words) * 4..)?;
        }
        if flags & 0x20 != 0 {
            let n_padding = usize::from(*rest.last()?);
            let n_payload = rest.len().checked_sub(n_padding).filter(|_| n_padding > 0)?;
            rest = &rest[..n_payload];
        }
        let header = Self {
            payload_type: marker_and_type & 0x7f,
            sequence: u16::from_be_bytes([s0, s1]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            sender: u32::from_be_bytes([i0, i1, i2, i3]),
        };
        Some((header, rest))
    }

    /// Does the same for a packet with whole transport stream packets inside, whatever its payload type: senders also use
    /// dynamic ones. `None` for every other datagram.
    pub fn parse_ts(datagram: &[u8]) -> Option<(Self, &[u8])> {
        let is_ts = |it: &&[u8]| it.first() == Some(&SYNC) && it.len().is_multiple_of(PACKET);
        Self::parse(datagram).filter(|(_, payload)| is_ts(payload))
    }
}

/// Appends the header of a packet with transport stream packets.
pub fn write_header(header: &RtpHeader, out: &mut Vec<u8>) {
    out.extend([0x80, header.payload_type & 0x7f]);
    out.extend(header.sequence.to_be_bytes());
    out.extend(header.timestamp.to_be_bytes());
    out.extend(header.sender.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: RtpHeader =
        RtpHeader { payload_type: PAYLOAD_TYPE_TS, sequence: 0xfffe, timestamp: 90_000, sender: 7 };

    /// Returns a packet with these flags in the first byte and these bytes after the fixed header.
    fn packet(flags: u8, rest: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        write_header(&HEADER, &mut packet);
        packet[0] |= flags;
        packet.extend(rest);
        packet
    }

    #[test]
    fn sources_extension_and_padding_are_not_payload() {
        let check = |flags: u8, rest: &[u8], expected: Option<&[u8]>| {
            let packet = packet(flags, rest);
            let parsed = RtpHeader::parse(&packet);
            assert_eq!(parsed.map(|it| it.1), expected, "{flags:#x} {rest:?}");
            assert!(parsed.is_none_or(|it| it.0 == HEADER));
        };
        check(0, &[], Some(&[]));
        check(0, &[1, 2], Some(&[1, 2]));
        check(2, &[0, 0, 0, 1, 0, 0, 0, 2, 9], Some(&[9]));
        check(2, &[0, 0, 0, 1, 0, 0, 0], None);
        check(0x10, &[0xab, 0xcd, 0, 1, 5, 5, 5, 5, 9], Some(&[9]));
        check(0x10, &[0xab, 0xcd, 0, 0, 9], Some(&[9]));
        check(0x10, &[0xab, 0xcd, 0xff, 0xff, 9], None);
        check(0x10, &[0xab], None);
        check(0x20, &[9, 0, 2], Some(&[9]));
        check(0x20, &[9, 1], Some(&[9]));
        check(0x20, &[1], Some(&[]));
        check(0x20, &[9, 0], None);
        check(0x20, &[9, 4], None);
        check(0x20, &[], None);
        check(0x31, &[0, 0, 0, 1, 0, 0, 0, 1, 5, 5, 5, 5, 9, 8, 0, 2], Some(&[9, 8]));
        for n in 0..RTP_HEADER_BYTES {
            assert_eq!(RtpHeader::parse(&packet(0, &[])[..n]), None, "{n} bytes");
        }
    }

    #[test]
    fn only_whole_transport_stream_packets_make_it_one() {
        let ts = |n: usize| vec![SYNC; n];
        for (rest, expected) in [(188, true), (7 * 188, true), (187, false), (0, false), (192, false)] {
            assert_eq!(RtpHeader::parse_ts(&packet(0, &ts(rest))).is_some(), expected, "{rest} bytes");
        }
        assert_eq!(RtpHeader::parse_ts(&packet(0, &[0; 188])), None, "another payload");
        assert_eq!(RtpHeader::parse_ts(&ts(7 * 188)), None, "a transport stream without RTP");
        let mut version_one = packet(0, &ts(188));
        version_one[0] = 0x40;
        assert_eq!(RtpHeader::parse_ts(&version_one), None);
    }
}
