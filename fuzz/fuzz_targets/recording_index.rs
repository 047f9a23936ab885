//! The index of a recording: damaged bytes become points in order and within the file, written points are read again, and
//! the packets of the file go on after any point.
//!
//! Four bytes are the length of the file in packets and two the size of the index, little-endian. The index follows, and the
//! packets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use media::ts::access_points::{
    AccessPoint, INDEX_BYTES_MAX, PointFinder, index_head, push_entry, read_index,
};
use media::ts::packet::{PACKET, Packet, packets};

/// The number of the file.
const FILE: u64 = 1;

fuzz_target!(|data: &[u8]| {
    let Some((length, rest)) = data.split_first_chunk() else { return };
    let Some((size, rest)) = rest.split_first_chunk() else { return };
    let length = u64::from(u32::from_le_bytes(*length)) * PACKET as u64;
    let (index, bytes) = rest.split_at(usize::from(u16::from_le_bytes(*size)).min(rest.len()));
    check(&read_index(index, FILE, length), length);

    let mut with_head = index_head(FILE).to_vec();
    with_head.extend_from_slice(index);
    let points = read_index(&with_head, FILE, length);
    check(&points, length);
    let mut written = index_head(FILE).to_vec();
    points.iter().for_each(|it| push_entry(&mut written, *it));
    assert!(written.len() <= with_head.len() && written.len() <= INDEX_BYTES_MAX);
    assert_eq!(read_index(&written, FILE, length), points);
    assert!(read_index(&written, FILE + 1, length).is_empty());

    continue_after(None, bytes);
    continue_after(points.last().copied(), bytes);
});

fn check(points: &[AccessPoint], length: u64) {
    assert!(
        points.iter().all(|it| it.offset < length && it.offset.is_multiple_of(PACKET as u64)),
        "{points:?}"
    );
    assert!(points.is_sorted_by(is_before), "{points:?}");
}

fn is_before(one: &AccessPoint, other: &AccessPoint) -> bool {
    one.offset < other.offset && one.time <= other.time
}

/// Reads packets after a point.
fn continue_after(point: Option<AccessPoint>, bytes: &[u8]) {
    let mut finder = PointFinder::after(point, bytes);
    let mut last = point;
    for packet in packets(bytes) {
        let at = finder.offset();
        let Some(found) = finder.packet(Packet::new(packet)) else { continue };
        assert!(found.offset <= at && found.offset % PACKET as u64 == 0, "{found:?} at {at}");
        assert!(last.is_none_or(|it| is_before(&it, &found)), "{found:?} after {last:?}");
        last = Some(found);
    }
    assert!(last.is_none_or(|it| it.time <= finder.milliseconds()));
}
