//! The discovery of HDHomeRun devices: UDP packets on port 65001, as in `hdhomerun_pkt.h` of libhdhomerun.
//!
//! ```text
//! type: 2 bytes ─ length of the payload: 2 bytes ─ payload: tags ─ CRC-32 of all before: 4 bytes, little-endian
//! tag: 1 byte ─ length: 1 byte, or 2 with 7 bits in the first ─ value
//! ```

use super::AnnouncedDevice;
use crate::tuner::device_uuid;

/// Port on which devices listen.
pub const PORT: u16 = 65_001;
/// Maximum length of a packet, in bytes.
pub const PACKET_BYTES_MAX: usize = 1_460;

const DISCOVER_REQUEST: u16 = 0x0002;
const DISCOVER_REPLY: u16 = 0x0003;

const TAG_DEVICE_TYPE: u8 = 0x01;
const TAG_DEVICE_ID: u8 = 0x02;
const TAG_TUNER_COUNT: u8 = 0x10;
const TAG_LINEUP_URL: u8 = 0x27;
const TAG_BASE_URL: u8 = 0x2A;
const TAG_DEVICE_TYPES: u8 = 0x2D;

const TYPE_TUNER: u32 = 0x0000_0001;
/// Any type, or any device.
const WILDCARD: u32 = 0xFFFF_FFFF;

/// A request for tuners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiscoverRequest {
    /// Number of the wanted device; `None` is any device.
    pub device: Option<u32>,
}

impl DiscoverRequest {
    /// Reads a packet. `None` if it is not a valid request for tuners.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        if packet.len() > PACKET_BYTES_MAX {
            return None;
        }
        let (content, crc) = packet.split_last_chunk::<4>()?;
        let (head, mut tags) = content.split_first_chunk::<4>()?;
        let [kind_high, kind_low, length_high, length_low] = *head;
        let is_request = u16::from_be_bytes([kind_high, kind_low]) == DISCOVER_REQUEST;
        let length = usize::from(u16::from_be_bytes([length_high, length_low]));
        if !is_request || length != tags.len() || u32::from_le_bytes(*crc) != crc32(content) {
            return None;
        }
        let (mut wants_tuners, mut device) = (false, None);
        while !tags.is_empty() {
            let (tag, value, rest) = split_tag(tags)?;
            tags = rest;
            match tag {
                TAG_DEVICE_TYPE | TAG_DEVICE_TYPES => {
                    let mut types = value.chunks_exact(4).map(number);
                    wants_tuners |= types.any(|it| it == TYPE_TUNER || it == WILDCARD);
                }
                TAG_DEVICE_ID if value.len() == 4 => device = Some(number(value)),
                _ => {}
            }
        }
        wants_tuners.then_some(Self { device: device.filter(|it| *it != WILDCARD) })
    }

    /// Returns whether the request is for this device.
    pub fn is_for(self, device: &AnnouncedDevice) -> bool {
        self.device.is_none_or(|it| it == device_number(&device.device_id))
    }
}

/// Returns the packet that announces a device. `None` if its address is too long for a packet.
pub fn reply(device: &AnnouncedDevice) -> Option<Vec<u8>> {
    let lineup_url = format!("{}/lineup.json", device.base_url);
    let mut payload = Vec::new();
    push_tag(&mut payload, TAG_DEVICE_TYPE, &TYPE_TUNER.to_be_bytes());
    push_tag(&mut payload, TAG_DEVICE_ID, &device_number(&device.device_id).to_be_bytes());
    push_tag(&mut payload, TAG_TUNER_COUNT, &[u8::try_from(device.tuner_count).unwrap_or(u8::MAX)]);
    push_tag(&mut payload, TAG_BASE_URL, device.base_url.as_bytes());
    push_tag(&mut payload, TAG_LINEUP_URL, lineup_url.as_bytes());
    packet(DISCOVER_REPLY, &payload)
}

/// Returns a request for tuners, as clients send it.
pub fn request(device: Option<u32>) -> Vec<u8> {
    let mut payload = Vec::new();
    push_tag(&mut payload, TAG_DEVICE_TYPE, &TYPE_TUNER.to_be_bytes());
    push_tag(&mut payload, TAG_DEVICE_ID, &device.unwrap_or(WILDCARD).to_be_bytes());
    packet(DISCOVER_REQUEST, &payload).unwrap_or_default()
}

fn packet(kind: u16, payload: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(payload.len()).ok()?;
    let mut packet = [kind.to_be_bytes(), length.to_be_bytes()].concat();
    packet.extend_from_slice(payload);
    packet.extend_from_slice(&crc32(&packet).to_le_bytes());
    (packet.len() <= PACKET_BYTES_MAX).then_some(packet)
}

/// Splits the first tag off: its kind, its value, and the rest.
fn split_tag(tags: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = tags.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first & 0x80 {
        0 => (usize::from(*first), rest),
        _ => {
            let (second, rest) = rest.split_first()?;
            (usize::from(first & 0x7F) | usize::from(*second) << 7, rest)
        }
    };
    let (value, rest) = rest.split_at_checked(length)?;
    Some((*tag, value, rest))
}

/// Adds a tag. A value that is too long for one is cut off, and the packet is then too long as well.
fn push_tag(payload: &mut Vec<u8>, tag: u8, value: &[u8]) {
    let value = &value[..value.len().min(0x7FFF)];
    payload.push(tag);
    match value.len() {
        length @ 0..0x80 => payload.push(length as u8),
        length => payload.extend_from_slice(&[(length & 0x7F) as u8 | 0x80, (length >> 7) as u8]),
    }
    payload.extend_from_slice(value);
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, it| number << 8 | u32::from(*it))
}

/// Returns the CRC-32 of Ethernet.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

/// Returns the number of a device, which clients accept only with a valid checksum: the identity itself if it is such a
/// number in hexadecimal digits, else one that follows from it.
pub fn device_number(device_id: &str) -> u32 {
    let is_hex = device_id.len() == 8 && device_id.bytes().all(|it| it.is_ascii_hexdigit());
    let written = u32::from_str_radix(device_id, 16).ok().filter(|_| is_hex);
    let derived = || number(&device_uuid(device_id).as_bytes()[..4]);
    let wanted = written.unwrap_or_else(derived);
    match wanted & 0xFFFF_FFF0 | checksum(wanted) {
        // Reserved, and valid only by its checksum.
        0 | WILDCARD => 0x1000_0000 | checksum(0x1000_0000),
        number => number,
    }
}

/// Returns the last digit that makes a device number valid (`hdhomerun_discover_validate_device_id`).
fn checksum(number: u32) -> u32 {
    const TABLE: [u32; 16] = [0xA, 0x5, 0xF, 0x6, 0x7, 0xC, 0x1, 0xB, 0x9, 0x2, 0x8, 0xD, 0x4, 0x3, 0xE, 0x0];
    let digit = |n: u32| number >> (4 * n) & 0xF;
    let at = |n: u32| TABLE[digit(n) as usize];
    at(7) ^ digit(6) ^ at(5) ^ digit(4) ^ at(3) ^ digit(2) ^ at(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn device(device_id: &str) -> AnnouncedDevice {
        let base_url = "http://192.168.1.5:9191".to_owned();
        AnnouncedDevice { device_id: device_id.to_owned(), tuner_count: 10, base_url }
    }

    #[test]
    fn a_number_has_a_valid_checksum_and_follows_from_the_identity() {
        for real in ["1013A1B5", "12345678", "service-tuner-Kids", "ffffffff", "00000000", ""] {
            let number = device_number(real);
            assert_eq!(checksum(number), number & 0xF, "{real}");
            assert!(![0, WILDCARD].contains(&number), "{real}");
            assert_eq!(device_number(&format!("{number:08x}")), number, "{real}: a valid number is kept");
        }
        assert_eq!(device_number("12345678") >> 4, 0x0123_4567);
        assert_ne!(device_number("service-tuner-Kids"), device_number("service-tuner-News"));
    }

    #[test]
    fn a_request_for_any_tuner_or_for_this_one_is_answered() {
        let tv = device("12345678");
        let number = device_number("12345678");
        for (packet, expected) in [
            (request(None), true),
            (request(Some(number)), true),
            (request(Some(number ^ 0x10)), false),
            // As newer clients send it, with several types.
            (
                packet(2, &[&[0x2D, 8][..], &5_u32.to_be_bytes(), &1_u32.to_be_bytes()].concat()).unwrap(),
                true,
            ),
            // Storage only.
            (packet(2, &[&[0x01, 4][..], &5_u32.to_be_bytes()].concat()).unwrap(), false),
            (packet(2, &[]).unwrap(), false),
            (packet(3, &request(None)[4..16]).unwrap(), false),
        ] {
            let is_answered = DiscoverRequest::parse(&packet).is_some_and(|it| it.is_for(&tv));
            assert_eq!(is_answered, expected, "{packet:02x?}");
        }
        let mut broken = request(None);
        broken[5] ^= 1;
        assert_eq!(DiscoverRequest::parse(&broken), None);
    }

    #[test]
    fn a_reply_has_the_addresses_of_the_device() {
        // Computed with zlib: crc32(b"123456789").
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        let reply = reply(&device("12345678")).unwrap();
        let (content, crc) = reply.split_last_chunk::<4>().unwrap();
        assert_eq!((u32::from_le_bytes(*crc), &content[..2]), (crc32(content), &[0, 3][..]));
        let mut tags = &content[4..];
        let mut read = Vec::new();
        while let Some((tag, value, rest)) = split_tag(tags) {
            read.push((tag, value));
            tags = rest;
        }
        let number = device_number("12345678").to_be_bytes();
        let expected: [(u8, &[u8]); 5] = [
            (0x01, &[0, 0, 0, 1]),
            (0x02, &number),
            (0x10, &[10]),
            (0x2A, b"http://192.168.1.5:9191"),
            (0x27, b"http://192.168.1.5:9191/lineup.json"),
        ];
        assert_eq!(read, expected);
        let long = AnnouncedDevice { base_url: "x".repeat(2_000), ..device("1") };
        assert_eq!(super::reply(&long), None);
    }

    proptest! {
        #[test]
        fn a_tag_of_any_length_is_read_as_it_was_written(value in proptest::collection::vec(any::<u8>(), 0..1_000)) {
            let mut payload = Vec::new();
            push_tag(&mut payload, 7, &value);
            prop_assert_eq!(split_tag(&payload), Some((7, &value[..], &[][..])));
        }

        #[test]
        fn any_bytes_are_read_without_a_fault(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = DiscoverRequest::parse(&bytes);
            let _ = DiscoverRequest::parse(&packet(2, &bytes).unwrap());
        }
    }
}
