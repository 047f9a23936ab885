//! Sources whose clock jumps, which each of their PIDs passes at a place of its own.
use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;

use super::random::spec;
use super::*;
use crate::ts::clock::distance;
use crate::ts::packet::set_pcr;

const SECOND: i64 = 90_000;
const HOUR: i64 = 3_600 * SECOND;

/// A jump of the clock of a source.
#[derive(Clone, Debug)]
struct Jump {
    /// Programme time, ms.
    at: u64,
    /// In ticks.
    by: i64,
    /// When the PCR and each stream pass it after that, ms; `None` for never.
    crossings: Vec<Option<u64>>,
}

/// The origin of a PES packet: source, stream of the source, number.
type Origin = (u8, usize, u32);

/// A PES packet of a source or of the output.
#[derive(Clone, Copy, Debug)]
struct Sent {
    origin: Origin,
    at: Duration,
    decode: u64,
}

/// Offset of the number of its stream in the body of a PES packet of audio.
const STREAM_NUMBER: usize = 8;

/// Returns the offset of the body of the PES packet that starts here, behind its header.
fn body(packet: Packet<'_>) -> Option<usize> {
    let pes = packet.payload();
    (packet.pusi() && pes.starts_with(&[0, 0, 1])).then(|| packet.payload_offset() + 9 + usize::from(pes[8]))
}

/// Returns the PES packet that starts here.
fn sent(bytes: &PacketBytes, at: Duration) -> Option<Sent> {
    let packet = Packet::new(bytes);
    let body = &bytes[body(packet)?..];
    let is_video = packet.payload()[3] == 0xE0;
    let stream = if is_video { 0 } else { usize::from(body[STREAM_NUMBER] & 0x7F) };
    let number = body[4..8].iter().fold(0, |number, digit| number << 7 | u32::from(digit & 0x7F));
    Some(Sent { origin: (body[2] & 0x7F, stream, number), at, decode: stamps(packet).decode()? })
}

/// Moves the times in a packet by the jumps that its PID has passed at `ms`, and writes the number of its stream.
fn edit(packet: &mut PacketBytes, spec: &Spec, jumps: &[Jump], ms: u64) {
    let shift = |crossing: usize| {
        let has_passed = |jump: &&Jump| jump.crossings[crossing].is_some_and(|after| ms >= jump.at + after);
        jumps.iter().filter(has_passed).map(|jump| jump.by).sum::<i64>()
    };
    let moved = |stamp: u64, by: i64| (stamp as i64 + by).rem_euclid(STAMP_MODULUS as i64) as u64;
    if let Some(pcr) = Packet::new(packet).pcr() {
        set_pcr(packet, moved(pcr / 300, shift(0)) * 300 + pcr % 300);
    }
    let pid = Packet::new(packet).pid();
    if let Some(stream) = spec.pids().iter().position(|it| it.1 == pid)
        && let Some(body) = body(Packet::new(packet))
    {
        map_stamps(packet, |stamp| moved(stamp, shift(stream + 1)));
        if packet[body + 8] == 0xBB {
            packet[body + STREAM_NUMBER] = 0x80 | stream as u8;
        }
    }
}

/// The PES packets that a splice received and sent.
#[derive(Debug, Default)]
struct Passed {
    input: HashMap<Origin, Sent>,
    output: Vec<Sent>,
}

/// Plays sources one after the other, each for this time in ms and with these jumps.
fn pass(sources: &[(Spec, u64, Vec<Jump>)]) -> Passed {
    let (mut test, mut passed) = (TestSplice::new(), Passed::default());
    let mut now = 0;
    for (n, (spec, length, jumps)) in sources.iter().enumerate() {
        let spec = Spec { id: n as u8, ..spec.clone() };
        if n > 0 {
            test.change(ms(now));
            now += 300;
        }
        for (at, mut packet) in spec.packets(0, *length) {
            edit(&mut packet, &spec, jumps, at);
            let at = ms(now + at);
            passed.input.extend(sent(&packet, at).map(|it| (it.origin, it)));
            test.packet(&packet, at);
        }
        now += length;
    }
    test.end_source(ms(now));
    let output = test.output.iter().flat_map(|(at, bytes)| packets(bytes).map(|packet| (*at, packet)));
    passed.output = output.filter_map(|(at, packet)| sent(packet, at)).collect();
    passed
}

impl Passed {
    /// Returns by how much the source's time of a PES packet was moved, in ticks.
    fn shift(&self, sent: &Sent) -> i64 {
        distance(self.input[&sent.origin].decode, sent.decode, STAMP_MODULUS)
    }

    /// Checks that all PES packets of each source were moved by the same time, and that none of the sound is missing.
    fn check(&self, context: &str) {
        let mut shifts: BTreeMap<u8, i64> = BTreeMap::new();
        let mut last: HashMap<(u8, usize), (u32, bool)> = HashMap::new();
        for sent in &self.output {
            let (source, stream, number) = sent.origin;
            let expected = *shifts.entry(source).or_insert_with(|| self.shift(sent));
            let error = distance(expected as u64, self.shift(sent) as u64, STAMP_MODULUS);
            assert_eq!(error, 0, "{context}: stream {stream} of source {source} at {:?}", sent.at);
            let before = last.insert((source, stream), (number, stream > 0));
            if let Some((before, true)) = before {
                assert!(number == before || number == before + 1, "{context}: {before}, then {number}");
            }
        }
        let n_sources = shifts.len();
        assert!(n_sources > 1 && last.keys().any(|it| it.1 > 0), "{context}: {n_sources} sources are seen");
    }
}

/// Returns all orders of `n` numbers.
fn orders(n: usize) -> Vec<Vec<usize>> {
    match n {
        0 => vec![vec![]],
        _ => orders(n - 1)
            .into_iter()
            .flat_map(|order| {
                (0..n).map(move |at| {
                    let mut order = order.clone();
                    order.insert(at, n - 1);
                    order
                })
            })
            .collect(),
    }
}

// Holds T-view.7.
#[test]
fn sound_stays_with_its_picture_when_the_clock_of_a_source_jumps() {
    let jumps = [
        50 * SECOND,
        -50 * SECOND,
        26 * HOUR,
        -26 * HOUR,
        5 * SECOND,
        -98 * SECOND / 10,
        102 * SECOND / 10,
        STAMP_MODULUS as i64 - HOUR / 2,
        STAMP_MODULUS as i64 / 2,
    ];
    // The PCR, the picture and two soundtracks pass the jump in every order.
    for (n, order) in orders(4).into_iter().enumerate() {
        for (m, by) in jumps.into_iter().enumerate() {
            let crossings: Vec<_> = order.iter().map(|place| Some(*place as u64 * 120)).collect();
            let audio_lead_ms = [-400, 0, 400][(n + m) % 3];
            let start = [900_000, STAMP_MODULUS - 3 * 90_000, 4_000_000_000][(n + m / 3) % 3];
            let clock = [Clock::Stream, Clock::Separate, Clock::Absent][m % 3];
            let spec = Spec { audio: vec![AAC, AC3], audio_lead_ms, start, clock, ..Spec::default() };
            let jump = |at: u64| Jump { at, by, crossings: crossings.clone() };
            let source = |length: u64, jumps: Vec<Jump>| (spec.clone(), length, jumps);
            let passed = pass(&[
                source(2_500, vec![]),
                source(4_500, vec![jump(2_000), jump(3_000)]),
                source(3_500, vec![jump(2_000), Jump { by: -by, ..jump(2_600) }]),
            ]);
            passed.check(&format!(
                "a jump by {by} in the order {order:?}, the sound leads by {audio_lead_ms} ms"
            ));
        }
    }
}

/// A second soundtrack that alone passes a jump, and returns later.
fn alone(by: i64, back: u64) -> Passed {
    let spec = Spec { audio: vec![AAC, AAC], ..Spec::default() };
    let jump = Jump { at: 2_000, by, crossings: vec![None, None, None, Some(0)] };
    let back = Jump { at: back, by: -by, ..jump.clone() };
    pass(&[(spec.clone(), 2_500, vec![]), (spec, 6_000, vec![jump, back])])
}

#[test]
fn packets_that_jump_before_the_programme_wait_at_most_half_a_second() {
    for by in [50 * SECOND, -50 * SECOND, 26 * HOUR] {
        let passed = alone(by, 4_000);
        let shift = passed.shift(passed.output.iter().find(|it| it.origin.0 == 1).unwrap());
        let (mut picture, mut n_moved) = (0, 0);
        for sent in passed.output.iter().filter(|it| it.origin.0 == 1) {
            let waited = sent.at - passed.input[&sent.origin].at;
            assert!(waited <= ms(600), "it waited {waited:?}");
            match sent.origin.1 {
                0 => picture = sent.decode,
                // The other soundtrack waits for the start of its source only.
                1 => assert!(waited <= ms(150), "it waited {waited:?}"),
                _ if passed.shift(sent) == shift => {}
                _ => {
                    n_moved += 1;
                    let from_picture = distance(picture, sent.decode, STAMP_MODULUS) / 90;
                    assert!(from_picture.abs() <= 1_000, "{from_picture} ms from the picture");
                }
            }
        }
        // For the two seconds between the jumps, one every 24 ms.
        assert!((75..=85).contains(&n_moved), "{n_moved} PES packets were moved");
    }
}

#[test]
fn packets_that_wait_at_the_end_of_a_source_are_sent() {
    let spec = Spec { audio: vec![AAC, AAC], ..Spec::default() };
    let jump = Jump { at: 3_800, by: 50 * SECOND, crossings: vec![None, None, None, Some(0)] };
    let passed = pass(&[(spec.clone(), 2_500, vec![]), (spec, 4_000, vec![jump])]);
    let last = |stream: usize| {
        let sent = passed.output.iter().filter(|it| it.origin.0 == 1 && it.origin.1 == stream);
        sent.map(|it| it.origin.2).max()
    };
    assert_eq!(last(2), last(1));
}

prop_compose! {
    fn jump()(gap in 600u64..2_500, by in SECOND..26 * HOUR, is_back in any::<bool>(), crossings in prop::collection::vec(0u64..400, 5)) -> (u64, i64, Vec<u64>) {
        (gap, if is_back { -by } else { by }, crossings)
    }
}

fn sources() -> impl Strategy<Value = Vec<(Spec, u64, Vec<Jump>)>> {
    let source = |has_clock| (spec(has_clock), prop::collection::vec(jump(), 0..4));
    any::<bool>().prop_flat_map(move |has_clock| prop::collection::vec(source(has_clock), 2..5)).prop_map(
        |sources| {
            let with_jumps = |(spec, jumps): (Spec, Vec<(u64, i64, Vec<u64>)>)| {
                // The output has begun by then.
                let mut at = 4_000;
                let jumps: Vec<_> = jumps
                    .into_iter()
                    .map(|(gap, by, crossings)| {
                        at += gap;
                        Jump { at, by, crossings: crossings.into_iter().map(Some).collect() }
                    })
                    .collect();
                (spec, at + 1_000, jumps)
            };
            sources.into_iter().map(with_jumps).collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_jumps_leave_all_streams_of_a_source_together(sources in sources()) {
        pass(&sources).check("random sources");
    }
}
