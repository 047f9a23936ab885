//! Continues continuity counters where one segment ends and the next one begins.
//!
//! Common packagers write each segment as a file of its own, with counters that begin anew. Nothing is lost there, so a
//! viewer must not see an error. Within a segment the same number is added to all counters of a PID: a packet that is
//! missing stays visible, and a packet that is sent twice stays a duplicate.
//!
//! Pure: packets in, packets out.

use bytes::{Bytes, BytesMut};

use crate::ts::packet::{NULL_PID, Packet, PacketBytes, packets, packets_mut, set_cc};

/// Number of possible PIDs.
const PIDS: usize = 0x2000;
/// Marks a PID whose value is not known yet.
const UNKNOWN: u8 = 0xFF;

/// The counters of a source that arrives in segments.
#[derive(Debug)]
pub(super) struct SegmentCounters {
    /// Last counter of each PID after the change.
    last: Box<[u8; PIDS]>,
    /// Added to the counters of each PID in the present segment; unknown before its first payload.
    shifts: Box<[u8; PIDS]>,
    /// The last packet of the previous run, as it arrived.
    newest: Option<PacketBytes>,
    /// Number of packets before the first one of the next segment; `None` until a segment begins.
    n_before_segment: Option<usize>,
}

impl SegmentCounters {
    /// Creates the state before the first segment, which passes unchanged.
    pub(super) fn new() -> Self {
        Self {
            last: Box::new([UNKNOWN; PIDS]),
            shifts: Box::new([UNKNOWN; PIDS]),
            newest: None,
            n_before_segment: None,
        }
    }

    /// Announces that the next packets are those of another segment. The first of them begins in the previous segment if
    /// `has_partial_packet`.
    pub(super) fn begin_segment(&mut self, has_partial_packet: bool) {
        self.n_before_segment = Some(usize::from(has_partial_packet));
    }

    /// Returns a run of whole packets whose counters continue those before it. Unchanged packets are not copied.
    pub(super) fn run(&mut self, run: Bytes) -> Bytes {
        let mut changed: Option<BytesMut> = None;
        let mut before = self.newest;
        for (index, bytes) in packets(&run).enumerate() {
            let packet = Packet::new(bytes);
            match self.n_before_segment {
                None => {}
                Some(0) => self.start_segment(before.as_ref(), packet),
                Some(n) => {
                    self.n_before_segment = Some(n - 1);
                    before = Some(*bytes);
                }
            }
            let cc = self.counter(packet);
            if cc != packet.cc() {
                let changed = changed.get_or_insert_with(|| BytesMut::from(&run[..]));
                packets_mut(changed).skip(index).take(1).for_each(|it| set_cc(it, cc));
            }
        }
        self.newest = packets(&run).last().copied().or(self.newest);
        changed.map_or(run, BytesMut::freeze)
    }

    /// Starts a segment with its first packet, which may repeat the last one of the previous segment.
    fn start_segment(&mut self, before: Option<&PacketBytes>, first: Packet<'_>) {
        self.n_before_segment = None;
        self.shifts.fill(UNKNOWN);
        let pid = usize::from(first.pid());
        if before.is_some_and(|it| is_repeated(Packet::new(it), first)) && self.last[pid] != UNKNOWN {
            self.shifts[pid] = self.last[pid].wrapping_sub(first.cc()) & 0x0F;
        }
    }

    /// Returns the counter with which a packet continues its PID.
    fn counter(&mut self, packet: Packet<'_>) -> u8 {
        let (pid, cc) = (packet.pid(), packet.cc());
        // A decoder discards such packets, or their counter is undefined.
        let is_counted = packet.is_valid() && (packet.has_payload() || packet.has_adaptation());
        if !is_counted || pid == NULL_PID {
            return cc;
        }
        let (last, shift) = (&mut self.last[usize::from(pid)], &mut self.shifts[usize::from(pid)]);
        if *shift == UNKNOWN {
            *shift = match *last {
                UNKNOWN => 0,
                // It repeats the counter of the last payload. Packagers differ in the number before their first payload.
                last if !packet.has_payload() => return last,
                last => last.wrapping_add(1).wrapping_sub(cc) & 0x0F,
            };
        }
        *last = cc.wrapping_add(*shift) & 0x0F;
        *last
    }
}

/// Returns whether a packet is a duplicate of the one directly before it. Only its clock reference may differ.
fn is_repeated(before: Packet<'_>, packet: Packet<'_>) -> bool {
    packet.has_payload()
        && before.bytes()[..4] == packet.bytes()[..4]
        && before.payload_offset() == packet.payload_offset()
        && before.payload() == packet.payload()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ts::packet::{PACKET, SYNC, set_pid};

    /// Content of a packet: its PID, its counter, and whether it has a payload.
    type Content = (u16, u8, bool);

    const PAYLOAD: bool = true;
    const CLOCK_ONLY: bool = false;

    /// Creates a packet whose payload is `fill`.
    fn packet((pid, cc, has_payload): Content, fill: u8) -> PacketBytes {
        let mut packet = [fill; PACKET];
        packet[..4].copy_from_slice(&[SYNC, 0, 0, if has_payload { 0x10 } else { 0x20 }]);
        if !has_payload {
            packet[4..6].copy_from_slice(&[183, 0]);
        }
        set_pid(&mut packet, pid);
        set_cc(&mut packet, cc);
        packet
    }

    fn segment(contents: &[Content]) -> Vec<u8> {
        contents.iter().zip(0..).flat_map(|(it, fill)| packet(*it, fill)).collect()
    }

    /// Returns the counters of the packets of these segments, and checks that nothing else is changed.
    fn counters(segments: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut counters = SegmentCounters::new();
        let mut found = Vec::new();
        for (number, bytes) in segments.iter().enumerate() {
            if number > 0 {
                counters.begin_segment(false);
            }
            let out = counters.run(Bytes::copy_from_slice(bytes));
            let mut restored = out.to_vec();
            for (changed, original) in packets_mut(&mut restored).zip(packets(bytes)) {
                set_cc(changed, Packet::new(original).cc());
            }
            assert!(restored == *bytes, "only counters change");
            found.push(packets(&out).map(|it| Packet::new(it).cc()).collect());
        }
        found
    }

    #[track_caller]
    fn check(segments: &[&[Content]], expected: &[&[u8]]) {
        let segments: Vec<_> = segments.iter().map(|it| segment(it)).collect();
        assert_eq!(counters(&segments), expected);
    }

    #[test]
    fn counters_continue_whatever_the_numbering_of_the_next_segment_is() {
        for first in 0..16 {
            let next = [(7, first, PAYLOAD), (7, first + 1, PAYLOAD)];
            check(&[&[(7, 14, PAYLOAD), (7, 15, PAYLOAD)], &next], &[&[14, 15], &[0, 1]]);
        }
    }

    #[test]
    fn each_pid_continues_by_itself_also_after_segments_without_it() {
        check(
            &[
                &[(0, 0, PAYLOAD), (7, 4, PAYLOAD), (8, 9, PAYLOAD)],
                &[(0, 0, PAYLOAD), (7, 0, PAYLOAD), (9, 3, PAYLOAD)],
                &[(0, 0, PAYLOAD), (8, 0, PAYLOAD), (9, 0, PAYLOAD), (9, 1, PAYLOAD)],
            ],
            &[&[0, 4, 9], &[1, 5, 3], &[2, 10, 4, 5]],
        );
    }

    #[test]
    fn packets_without_payload_repeat_the_counter() {
        check(
            &[
                // The first segment passes unchanged.
                &[(7, 0, CLOCK_ONLY), (7, 0, PAYLOAD), (7, 1, PAYLOAD)],
                // Before the first payload, packagers write its number, the one before it, or any other.
                &[(7, 0, CLOCK_ONLY), (7, 0, PAYLOAD), (7, 0, CLOCK_ONLY), (7, 1, PAYLOAD)],
                &[(7, 15, CLOCK_ONLY), (7, 15, CLOCK_ONLY), (7, 0, PAYLOAD)],
                &[(7, 9, CLOCK_ONLY)],
                &[(7, 0, PAYLOAD)],
            ],
            &[&[0, 0, 1], &[1, 2, 2, 3], &[3, 3, 4], &[4], &[5]],
        );
        // A PID that has only the clock.
        check(&[&[(7, 3, CLOCK_ONLY)], &[(7, 0, CLOCK_ONLY), (7, 0, CLOCK_ONLY)]], &[&[3], &[3, 3]]);
    }

    #[test]
    fn a_packet_that_is_missing_within_a_segment_stays_visible() {
        check(
            &[&[(7, 0, PAYLOAD), (7, 1, PAYLOAD)], &[(7, 0, PAYLOAD), (7, 3, PAYLOAD), (7, 4, PAYLOAD)]],
            &[&[0, 1], &[2, 5, 6]],
        );
    }

    #[test]
    fn duplicates_stay_duplicates() {
        let twice = |cc: u8, fill: u8| packet((7, cc, PAYLOAD), fill).repeat(2);
        let first = [twice(4, 0), twice(5, 1)].concat();
        let restarted = [twice(0, 2), twice(1, 3)].concat();
        assert_eq!(counters(&[first, restarted]), [[4, 4, 5, 5], [6, 6, 7, 7]]);
        // Ranges of one file, divided between a packet and its duplicate.
        let file = [twice(4, 0), twice(5, 1), twice(6, 2)].concat();
        let (first, second) = file.split_at(3 * PACKET);
        assert_eq!(counters(&[first.to_vec(), second.to_vec()]), [[4, 4, 5], [5, 6, 6]]);
        // The same counter with another payload is the next packet.
        let (first, second) = (packet((7, 4, PAYLOAD), 0), packet((7, 4, PAYLOAD), 1));
        assert_eq!(counters(&[first.to_vec(), second.to_vec()]), [[4], [5]]);
    }

    #[test]
    fn packets_without_a_meaningful_counter_pass_unchanged() {
        let mut damaged = packet((7, 12, PAYLOAD), 0);
        damaged[1] |= 0x80;
        let mut reserved = packet((7, 12, PAYLOAD), 0);
        reserved[3] &= 0x0F;
        let null = packet((NULL_PID, 12, PAYLOAD), 0);
        let first = segment(&[(7, 0, PAYLOAD), (NULL_PID, 3, PAYLOAD)]);
        let second = [&damaged[..], &reserved, &null, &segment(&[(7, 0, PAYLOAD)])].concat();
        assert_eq!(counters(&[first, second]), [vec![0, 3], vec![12, 12, 12, 1]]);
    }

    #[test]
    fn a_packet_that_began_in_the_previous_segment_belongs_to_that() {
        let mut counters = SegmentCounters::new();
        counters.run(segment(&[(7, 4, PAYLOAD)]).into());
        counters.begin_segment(true);
        let run = segment(&[(7, 5, PAYLOAD), (7, 0, PAYLOAD), (7, 1, PAYLOAD)]);
        let out = counters.run(run.into());
        assert_eq!(packets(&out).map(|it| Packet::new(it).cc()).collect::<Vec<_>>(), [5, 6, 7]);
    }

    #[test]
    fn a_run_with_counters_that_continue_is_not_copied() {
        let mut counters = SegmentCounters::new();
        counters.run(segment(&[(7, 4, PAYLOAD), (8, 0, PAYLOAD)]).into());
        counters.begin_segment(false);
        let run = Bytes::from(segment(&[(7, 4, CLOCK_ONLY), (7, 5, PAYLOAD), (8, 1, PAYLOAD)]));
        assert_eq!(counters.run(run.clone()).as_ptr(), run.as_ptr());
    }

    proptest! {
        #[test]
        fn a_stream_is_the_same_wherever_it_is_divided_and_however_its_segments_are_numbered(
            contents in prop::collection::vec((0..4_u16, any::<bool>(), 1..3_usize), 1..60),
            sizes in prop::collection::vec((1..12_usize, prop::array::uniform4(0..16_u8)), 1..20),
        ) {
            let mut cc = [0_u8; 4];
            let mut stream: Vec<PacketBytes> = Vec::new();
            for (number, (pid, has_payload, n_times)) in contents.into_iter().enumerate() {
                let counter = &mut cc[usize::from(pid)];
                *counter += u8::from(has_payload);
                let packet = packet((pid, *counter & 15, has_payload), number as u8);
                stream.extend(std::iter::repeat_n(packet, n_times));
            }
            for is_renumbered in [false, true] {
                let mut counters = SegmentCounters::new();
                let mut out = Vec::new();
                let mut rest = &stream[..];
                // A PID begins with any number in the first segment that contains it.
                let (mut shifts, mut is_known) = ([0; 4], [false; 4]);
                for (at, (size, numbers)) in sizes.iter().cycle().enumerate() {
                    let mut size = (*size).min(rest.len());
                    // A duplicate across a border of renumbered segments has no meaning.
                    while is_renumbered && size < rest.len() && rest[size] == rest[size - 1] {
                        size += 1;
                    }
                    let (segment, others) = rest.split_at(size);
                    rest = others;
                    if segment.is_empty() {
                        break;
                    }
                    if at > 0 {
                        counters.begin_segment(false);
                        shifts = [0, 1, 2, 3]
                            .map(|pid| if is_renumbered && is_known[pid] { numbers[pid] } else { 0 });
                    }
                    let mut bytes = segment.concat();
                    for it in packets_mut(&mut bytes) {
                        let (pid, cc) = (usize::from(Packet::new(it).pid()), Packet::new(it).cc());
                        set_cc(it, cc.wrapping_add(shifts[pid]));
                        is_known[pid] = true;
                    }
                    out.extend_from_slice(&counters.run(bytes.into()));
                }
                prop_assert!(out == stream.concat());
            }
        }
    }
}
