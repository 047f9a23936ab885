//! Random sources and random changes.
use proptest::prelude::*;

use super::*;

/// Returns clocks near the wrap as often as others.
pub(super) fn start() -> impl Strategy<Value = u64> {
    let end = 1u64 << 33;
    prop_oneof![0..end, end - 12 * 90_000..end, 0..900_000u64]
}

pub(super) fn spec(has_clock: bool) -> impl Strategy<Value = Spec> {
    let streams = (
        prop_oneof![3 => Just(Some(H264)), 1 => Just(Some(MPEG2)), 1 => Just(Some(HEVC)), 1 => Just(None)],
        prop::collection::vec(prop_oneof![Just(AAC), Just(MP2), Just(AC3)], 1..4),
        0x20u16..0x1F00,
        0x20u16..0x1F00,
        1u16..,
    );
    let shape = (start(), 2u32..20, 0u32..4, 50i64..1_000, -300i64..300, any::<bool>());
    let counters = (0u8..16, prop_oneof![Just(0usize), 3usize..50], any::<bool>(), 0u64..20);
    let clock = if has_clock {
        prop_oneof![Just(Clock::Stream), Just(Clock::Separate)].boxed()
    } else {
        Just(Clock::Absent).boxed()
    };
    (streams, shape, counters, clock).prop_map(move |(streams, shape, counters, clock)| {
        let (video, audio, first_pid, pmt_pid, program) = streams;
        let (start, gop, b_frames, delay_ms, audio_lead_ms, is_flagged) = shape;
        let is_taken = |pid: u16| (pid..pid + 41).contains(&pmt_pid);
        Spec {
            id: 0,
            video,
            audio,
            first_pid: if is_taken(first_pid) { first_pid - 1 } else { first_pid }.max(0x20),
            pmt_pid: if is_taken(first_pid) { first_pid + 50 } else { pmt_pid },
            program,
            clock,
            start,
            gop,
            b_frames,
            // Without a PCR the time stamps are compared instead, so their delays have to be equal.
            delay_ms: if has_clock { delay_ms } else { 300 },
            audio_lead_ms: if has_clock { audio_lead_ms } else { 0 },
            is_flagged,
            counter: counters.0,
            duplicate_every: counters.1,
            has_nulls: counters.2,
            spread_ms: counters.3,
        }
    })
}

fn segments() -> impl Strategy<Value = Vec<Segment>> {
    let segment = |has_clock| (spec(has_clock), 0u64..5_000, 3_000u64..7_000, 0u64..8_000, 0usize..12);
    any::<bool>().prop_flat_map(move |has_clock| prop::collection::vec(segment(has_clock), 2..5)).prop_map(
        |segments| {
            let mut now = 0;
            let mut result = Vec::new();
            for (n, (spec, gap_ms, length_ms, burst_ms, n_more)) in segments.into_iter().enumerate() {
                let connects = if n == 0 { 0 } else { now + gap_ms };
                now = connects + length_ms;
                let spec = Spec { id: n as u8, ..spec };
                result.push(Segment { spec, connects: ms(connects), burst_ms, lost: ms(now), n_more });
            }
            result
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    // Holds T-view.1 for the splice.
    #[test]
    fn any_sources_give_one_conformant_stream(segments in segments()) {
        let played = play(&segments);
        check_length(&played, &segments);
        for (n, segment) in segments.iter().enumerate() {
            prop_assert!(played.began[n].is_some(), "source {} has output", n);
            let first = first_pes(&played, segment.spec.id);
            prop_assert!(first.is_key, "source {} starts at a random-access point", n);
        }
        for (pid, types) in &played.checker.types {
            prop_assert_eq!(types.len(), 1, "PID {:#x}", pid);
        }
    }

    #[test]
    fn any_input_gives_whole_packets(
        segments in segments(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0usize..188, any::<u8>()), 0..400),
        changes in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut input: Vec<_> = segments.iter().flat_map(|segment| segment.spec.arrivals(segment.connects, 500, segment.lost)).collect();
        for (place, at, byte) in damage {
            let n = input.len();
            input[place.index(n)].1[at] = byte;
        }
        let changes: Vec<usize> = changes.iter().map(|change| change.index(input.len())).collect();
        let mut splice = Splice::new(SpliceSettings::default());
        let mut out = BytesMut::new();
        for (n, (at, packet)) in input.iter().enumerate() {
            if changes.contains(&n) {
                splice.change(*at, &mut out);
            }
            splice.packet(Packet::new(packet), *at, &mut out);
            if n % 50 == 0 {
                splice.tick(*at, &mut out);
            }
        }
        prop_assert_eq!(out.len() % 188, 0);
    }
}
