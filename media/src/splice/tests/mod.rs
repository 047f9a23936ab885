//! Tests of the splice with generated sources and an independent checker.
mod beside;
mod builder;
mod checker;
mod frames;
mod jumps;
mod random;
mod repetition;
mod start;
mod tables;
mod times;

use std::time::Duration;

use bytes::BytesMut;

use self::builder::{AAC, AC3, Clock, H264, HEVC, MP2, MPEG2, Spec};
use self::checker::Checker;
use super::{PictureEvent, Splice, SpliceSettings};
use crate::groups::GroupLength;
use crate::ts::build::time_signal_packet;
use crate::ts::clock::STAMP_MODULUS;
use crate::ts::packet::{Packet, PacketBytes, packets, set_cc};
use crate::ts::pes::{map_stamps, stamps};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A source in a scenario: it connects, sends `burst_ms` of past data at once, plays, and is lost.
#[derive(Clone, Debug)]
struct Segment {
    spec: Spec,
    connects: Duration,
    burst_ms: u64,
    lost: Duration,
    /// Further packets that arrive at the moment of the loss, so that the last frame is incomplete.
    n_more: usize,
}

/// The output of a scenario with its times.
struct Played {
    output: Vec<(Duration, Vec<u8>)>,
    checker: Checker,
    /// Start of the output of each source.
    began: Vec<Option<Duration>>,
    /// The events of the pictures of the sources.
    pictures: Vec<(Duration, PictureEvent)>,
}

/// Plays sources one after the other through a splice and checks the output.
fn play(segments: &[Segment]) -> Played {
    play_known(segments, GroupLength::Unknown)
}

/// Does the same with sources of whose random-access points this is known.
fn play_known(segments: &[Segment], group: GroupLength) -> Played {
    let mut test = TestSplice::new();
    test.splice.set_group(group);
    for (n, segment) in segments.iter().enumerate() {
        if n > 0 {
            test.change(segments[n - 1].lost);
        }
        let Segment { spec, connects, burst_ms, lost, n_more } = segment;
        for (at, packet) in spec.arrivals_cut(*connects, *burst_ms, *lost, *n_more) {
            test.packet(&packet, at);
        }
        test.wait_until(segment.lost);
    }
    test.finish()
}

/// A splice that is ticked at its deadlines.
struct TestSplice {
    splice: Splice,
    now: Duration,
    output: Vec<(Duration, Vec<u8>)>,
    began: Vec<Option<Duration>>,
    pictures: Vec<(Duration, PictureEvent)>,
}

impl TestSplice {
    fn new() -> Self {
        let splice = Splice::new(SpliceSettings::default());
        TestSplice { splice, now: Duration::ZERO, output: Vec::new(), began: vec![None], pictures: vec![] }
    }

    fn change(&mut self, at: Duration) {
        self.wait_until(at);
        self.end_source(at);
        self.began.push(None);
        assert!(!self.splice.is_forwarding());
    }

    fn wait_until(&mut self, at: Duration) {
        for n in 0.. {
            let Some(deadline) = self.splice.deadline().filter(|deadline| *deadline <= at) else { break };
            assert!(n < 10, "the deadline at {deadline:?} does not change");
            let now = deadline.max(self.now);
            let mut out = BytesMut::new();
            self.splice.tick(now, &mut out);
            self.record(out, now);
        }
        self.now = at;
    }

    fn packet(&mut self, packet: &PacketBytes, at: Duration) {
        self.wait_until(at);
        let mut out = BytesMut::new();
        self.splice.packet(Packet::new(packet), at, &mut out);
        self.record(out, at);
    }

    fn record(&mut self, out: BytesMut, now: Duration) {
        if !out.is_empty() {
            assert!(self.splice.is_forwarding());
            self.began.last_mut().unwrap().get_or_insert(now);
            self.output.push((now, out.to_vec()));
        }
        self.pictures.extend(self.splice.take_picture_event().map(|it| (now, it)));
    }

    fn end_source(&mut self, at: Duration) {
        let mut out = BytesMut::new();
        self.splice.change(at, &mut out);
        if !out.is_empty() {
            self.output.push((at, out.to_vec()));
        }
    }

    fn finish(self) -> Played {
        self.finish_with(Checker::default())
    }

    fn finish_with(mut self, mut checker: Checker) -> Played {
        self.end_source(self.now);
        for (at, bytes) in &self.output {
            checker.read(bytes, *at);
        }
        checker.check_seams();
        checker.check_end();
        Played { output: self.output, checker, began: self.began, pictures: self.pictures }
    }
}

/// Returns the programme time less the wall time of the newest packet of a source, in ms: by its clock, or by
/// its time stamps if it has none.
fn lead_ms(played: &Played, from: Duration, to: Duration) -> i64 {
    let during = |at: Duration| at >= from && at < to;
    let clocks = played.checker.clocks.iter().filter(|clock| during(clock.0));
    let clocks = clocks.map(|(at, clock)| clock / 90 - at.as_millis() as i64).max();
    let stamps = played.checker.pes.iter().filter(|pes| during(pes.at));
    clocks.or_else(|| stamps.map(|pes| pes.decode / 90 - 300 - pes.at.as_millis() as i64).max()).unwrap()
}

/// Checks that the lead of the programme over the wall clock after each source is the same as after the
/// first, so that its length is the wall time over any number of gaps.
fn check_length(played: &Played, segments: &[Segment]) {
    let last_second =
        |segment: &Segment| lead_ms(played, segment.lost.saturating_sub(ms(1_000)), segment.lost);
    let first = last_second(&segments[0]);
    for segment in &segments[1..] {
        let lead = last_second(segment);
        assert!(
            (lead - first).abs() <= 200,
            "source {}: {} ms from wall time",
            segment.spec.id,
            lead - first
        );
    }
}

/// Two sources: the second replaces the first after `gap_ms`, with a burst of `burst_ms`.
fn two(first: Spec, second: Spec, gap_ms: u64, burst_ms: u64) -> [Segment; 2] {
    let second = Spec { id: 1, ..second };
    [
        Segment { spec: first, connects: ms(0), burst_ms: 0, lost: ms(5_000), n_more: 0 },
        Segment {
            spec: second,
            connects: ms(5_000 + gap_ms),
            burst_ms,
            lost: ms(12_000 + gap_ms),
            n_more: 0,
        },
    ]
}

/// Plays two sources and checks the properties of every change.
fn check(first: Spec, second: Spec, gap_ms: u64, burst_ms: u64) -> Played {
    let segments = two(first, second, gap_ms, burst_ms);
    let played = play(&segments);
    check_length(&played, &segments);
    let kinds = |id| played.checker.pes.iter().any(|pes| pes.source == id);
    assert!(kinds(0) && kinds(1), "both sources are seen");
    played
}

/// Returns the first picture of a source, or its first sound if it has no picture.
fn first_pes(played: &Played, source: u8) -> &checker::Pes {
    let mut pes = played.checker.pes.iter().filter(|pes| pes.source == source);
    pes.clone().find(|pes| pes.is_video).or_else(|| pes.next()).unwrap()
}

fn last_presentation(played: &Played, source: u8) -> i64 {
    played.checker.pes.iter().filter(|pes| pes.source == source).map(|pes| pes.presentation).max().unwrap()
}

fn another() -> Spec {
    Spec { first_pid: 0x44, pmt_pid: 0x30, program: 77, start: 4_000_000_000, counter: 9, ..Spec::default() }
}

#[test]
fn another_source_continues_at_the_current_programme_time() {
    let played = check(Spec::default(), another(), 3_000, 0);
    let checker = &played.checker;
    // Same kinds, same PIDs, same programme. The content of the PMT is new, so its version is new.
    assert_eq!(checker.types.keys().copied().collect::<Vec<_>>(), [0x100, 0x101]);
    assert_eq!(checker.programs.iter().copied().collect::<Vec<_>>(), [(7, 1, 0x1000)]);
    assert_eq!((checker.pat_versions.as_slice(), checker.pmt_versions.as_slice()), (&[5][..], &[9, 10][..]));
    assert_eq!(checker.n_declared, 1);
    let begins = first_pes(&played, 1);
    assert!(begins.is_key);
    let step = (begins.presentation - last_presentation(&played, 0)) / 90;
    // The gap, and the time until the burst is over and a key frame arrives.
    assert!((3_000..3_200 + 480).contains(&step), "{step} ms");
}

#[test]
fn a_key_frame_slightly_before_the_end_of_the_output_is_used() {
    // Key frames are known to be 2 s apart, and the only one of the burst is 160 ms late.
    let segments = two(Spec::default(), Spec { gop: 50, ..another() }, 10, 200);
    let played = play_known(&segments, GroupLength::Known(ms(2_000)));
    check_length(&played, &segments);
    let pictures =
        |source: u8| played.checker.pes.iter().filter(move |pes| pes.pid == 0x100 && pes.source == source);
    let begins = pictures(1).next().unwrap();
    assert_eq!((begins.number, begins.is_key), (0, true));
    let step = (begins.presentation - pictures(0).map(|pes| pes.presentation).max().unwrap()) / 90;
    assert!((20..=60).contains(&step), "{step} ms");
}

#[test]
fn a_key_frame_slightly_after_the_wait_for_one_is_used() {
    // The key frame at the start of a burst of 400 ms is too old, and the next one arrives 1.2 s after the burst.
    let second = Spec { gop: 40, ..another() };
    let played = check(Spec::default(), second, 10, 400);
    let begins = played.checker.pes.iter().find(|pes| pes.pid == 0x100 && pes.source == 1).unwrap();
    assert_eq!((begins.number, begins.is_key), (40, true));
}

#[test]
fn the_same_source_may_return() {
    // The source continues: same clock, 2 s later.
    let again = Spec { start: 900_000 + 7_000 * 90, ..Spec::default() };
    let played = check(Spec::default(), again, 2_000, 0);
    assert_eq!(played.checker.pmt_versions, [9, 10]);
    // The source restarts with the same clock.
    check(Spec::default(), Spec::default(), 2_000, 0);
    check(Spec::default(), Spec::default(), 0, 0);
}

#[test]
fn every_codec_may_follow_every_other() {
    let sources: [(Option<u8>, &[u8]); 5] = [
        (Some(H264), &[AAC]),
        (Some(MPEG2), &[MP2, MP2]),
        (Some(HEVC), &[AC3]),
        (None, &[AAC]),
        (None, &[MP2, AC3]),
    ];
    for (video, audio) in sources {
        for (next_video, next_audio) in sources {
            let first = Spec { video, audio: audio.to_vec(), ..Spec::default() };
            let second = Spec { video: next_video, audio: next_audio.to_vec(), ..Spec::default() };
            let played = check(first, second, 700, 300);
            for (pid, types) in &played.checker.types {
                assert_eq!(types.len(), 1, "PID {pid:#x} is {types:x?}");
            }
        }
    }
}

#[test]
fn duplicate_packets_stay_duplicates() {
    let first = Spec { duplicate_every: 5, ..Spec::default() };
    check(first, Spec { duplicate_every: 3, has_nulls: true, ..another() }, 300, 0);
}

#[test]
fn a_source_without_output_changes_nothing() {
    let segments = two(Spec::default(), another(), 2_000, 0);
    let mut test = TestSplice::new();
    for (at, packet) in segments[0].spec.arrivals(ms(0), 0, ms(5_000)) {
        test.packet(&packet, at);
    }
    test.change(ms(5_000));
    for (_, packet) in (Spec { start: 55, ..another() }).packets(0, 30) {
        test.packet(&packet, ms(5_500));
    }
    test.change(ms(5_520));
    for (at, packet) in segments[1].spec.arrivals(ms(7_000), 0, segments[1].lost) {
        test.packet(&packet, at);
    }
    let played = test.finish();
    assert_eq!(played.began[1], None);
    check_length(&played, &two(Spec::default(), another(), 2_000, 0));
}
