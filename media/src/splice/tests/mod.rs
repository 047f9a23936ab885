//! Tests of the splice with generated sources and an independent checker.
mod beside;
mod builder;
mod checker;
mod random;

use std::time::Duration;

use bytes::BytesMut;

use self::builder::{AAC, AC3, Clock, H264, HEVC, MP2, MPEG2, Spec};
use self::checker::Checker;
use super::{Splice, SpliceSettings};
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
}

/// Plays sources one after the other through a splice and checks the output.
fn play(segments: &[Segment]) -> Played {
    let mut test = TestSplice::new();
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
}

impl TestSplice {
    fn new() -> Self {
        let splice = Splice::new(SpliceSettings::default());
        TestSplice { splice, now: Duration::ZERO, output: Vec::new(), began: vec![None] }
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
        Played { output: self.output, checker, began: self.began }
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

fn first_pes(played: &Played, source: u8) -> &checker::Pes {
    played.checker.pes.iter().find(|pes| pes.source == source).unwrap()
}

fn last_presentation(played: &Played, source: u8) -> i64 {
    played.checker.pes.iter().filter(|pes| pes.source == source).map(|pes| pes.presentation).max().unwrap()
}

fn another() -> Spec {
    Spec { first_pid: 0x44, pmt_pid: 0x30, program: 77, start: 4_000_000_000, counter: 9, ..Spec::default() }
}

#[test]
fn the_first_source_passes_unchanged_from_a_random_access_point_on() {
    let spec = Spec { has_nulls: true, duplicate_every: 7, ..Spec::default() };
    // The source starts in the middle of a group of pictures, with a burst.
    let input: Vec<PacketBytes> = spec.packets(240, 5_000).into_iter().map(|it| it.1).collect();
    let mut test = TestSplice::new();
    for (n, packet) in input.iter().enumerate() {
        test.packet(packet, ms(n as u64 / 20));
    }
    let played = test.finish();
    let output: Vec<u8> = played.output.into_iter().flat_map(|it| it.1).collect();
    let output: Vec<&PacketBytes> = packets(&output).collect();
    // Tables, then the key frame at 480 ms, then everything except the audio before its first PES start.
    assert!(first_key(output[2]));
    let begin = input.iter().position(first_key).unwrap();
    let expected: Vec<&PacketBytes> = input[begin..].iter().collect();
    let pid = |packet: &PacketBytes| (packet[1] & 0x1F, packet[2]);
    let is_sound = |packet: &&PacketBytes| pid(packet) == (1, 1);
    let sound = expected.iter().position(|it| is_sound(it) && it[1] & 0x40 != 0).unwrap();
    let expected: Vec<_> =
        expected.iter().enumerate().filter(|(n, it)| *n >= sound || !is_sound(it)).map(|it| *it.1).collect();
    assert!(output[2..] == expected[..]);
    assert_eq!(first_pes_number(&played.checker), 12);
}

fn first_key(packet: &PacketBytes) -> bool {
    packet[1] & 0x5F == 0x41 && packet[2] == 0 && packet[3] & 0x20 != 0 && packet[5] & 0x40 != 0
}

fn first_pes_number(checker: &Checker) -> u32 {
    checker.pes[0].number
}

#[test]
fn a_key_frame_without_a_flag_is_recognised() {
    for video in [H264, MPEG2, HEVC] {
        let spec = Spec { video: Some(video), is_flagged: false, ..Spec::default() };
        let mut test = TestSplice::new();
        for (at, packet) in spec.packets(240, 1_000) {
            test.packet(&packet, ms(at));
        }
        let played = test.finish();
        assert_eq!((played.checker.pes[0].number, played.checker.pes[0].is_key), (12, true), "{video:#x}");
    }
}

#[test]
fn without_a_random_access_point_output_starts_after_a_second_at_a_pes_start() {
    let spec = Spec { gop: 100_000, ..Spec::default() };
    let mut test = TestSplice::new();
    for (at, packet) in spec.packets(40, 3_000) {
        test.packet(&packet, ms(500 + at));
    }
    let played = test.finish();
    assert_eq!(played.began, [Some(ms(1_540))]);
    // No held packet is lost.
    assert_eq!((played.checker.pes[0].number, played.checker.pes[0].is_key), (1, false));
}

#[test]
fn a_radio_stream_starts_with_its_first_pes_packet() {
    let spec = Spec { video: None, audio: vec![MP2], ..Spec::default() };
    let mut test = TestSplice::new();
    for (at, packet) in spec.packets(0, 300) {
        test.packet(&packet, ms(at));
    }
    let played = test.finish();
    assert_eq!(played.began, [Some(ms(0))]);
}

#[test]
fn packets_before_the_tables_are_not_lost() {
    let mut input = Spec::default().packets(0, 1_000);
    // The tables arrive 90 ms late.
    let tables: Vec<_> = input.drain(..2).map(|(_, packet)| (90, packet)).collect();
    let place = input.iter().position(|it| it.0 >= 90).unwrap();
    input.splice(place..place, tables);
    let mut test = TestSplice::new();
    for (at, packet) in &input {
        test.packet(packet, ms(*at));
    }
    let played = test.finish();
    assert_eq!((played.checker.pes[0].number, played.checker.pes[0].is_key), (0, true));
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
fn a_source_ends_with_whole_frames() {
    for (video, spread_ms, duplicate_every) in
        [(Some(H264), 0, 0), (Some(MPEG2), 15, 0), (Some(HEVC), 20, 2), (None, 10, 3)]
    {
        // The loss is in the middle of a picture, and of an audio frame.
        for (lost, n_more) in
            [(4_800, 1), (4_801, 0), (4_802, 1), (4_805, 2), (4_840, 2), (4_849, 2), (4_920, 9)]
        {
            let first = Spec { video, spread_ms, duplicate_every, ..Spec::default() };
            let mut segments = two(first, Spec { spread_ms, ..another() }, 500, 0);
            (segments[0].lost, segments[0].n_more) = (ms(lost), n_more);
            let played = play(&segments);
            // What was complete is not lost. The source needs 20 ms to connect.
            let last = last_presentation(&played, 0) / 90;
            let newest = |interval: u64| (lost - 21 - spread_ms) / interval * interval;
            let expected = newest(24).max(if video.is_some() { newest(40) } else { 0 });
            assert!(last >= 10_300 + expected as i64, "lost at {lost} ms: the last frame is at {last}");
        }
    }
}

#[test]
fn packets_wait_for_a_frame_only_as_long_as_allowed() {
    let settings = SpliceSettings { frame_wait_max: ms(100), ..SpliceSettings::default() };
    let mut splice = Splice::new(settings);
    let mut out = BytesMut::new();
    let spec = Spec::default();
    // The last video packets are lost: the last picture never ends, and the audio goes on.
    let is_video = |packet: &PacketBytes| packet[1] & 0x1F == 1 && packet[2] == 0;
    let mut n_waiting_max = 0;
    for (at, packet) in spec.packets(0, 3_000) {
        if at > 1_000 && is_video(&packet) || at == 1_000 && is_video(&packet) && packet[1] & 0x40 == 0 {
            continue;
        }
        let before = out.len();
        splice.packet(Packet::new(&packet), ms(at), &mut out);
        n_waiting_max = if out.len() == before { n_waiting_max + 1 } else { 0 };
        assert!(n_waiting_max < 20, "at {at} ms");
    }
    // A frame without end does not fill the memory either.
    let settings = SpliceSettings { frame_bytes_max: 20 * 300, ..SpliceSettings::default() };
    let mut splice = Splice::new(settings);
    let packets = spec.packets(0, 1_000);
    packets.iter().for_each(|(at, packet)| splice.packet(Packet::new(packet), ms(*at), &mut out));
    let start = packets.iter().rfind(|(_, packet)| is_video(packet) && packet[1] & 0x40 != 0).unwrap().1;
    splice.packet(Packet::new(&start), ms(1_000), &mut out);
    for n in 1..1_000u16 {
        let mut packet = [0xAA; 188];
        packet[..4].copy_from_slice(&[0x47, 1, 0, 0x10 | start[3].wrapping_add(n as u8) & 0x0F]);
        splice.packet(Packet::new(&packet), ms(1_000), &mut out);
        assert!(waiting(&splice) <= 30);
    }
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
fn tables_with_the_same_content_keep_their_versions() {
    let segments = two(Spec::default(), Spec::default(), 500, 0);
    let mut segments = segments.to_vec();
    segments[1].spec.id = 0;
    let played = play(&segments);
    assert_eq!((played.checker.pat_versions, played.checker.pmt_versions), (vec![5], vec![9]));
}

#[test]
fn an_opening_burst_does_not_shift_the_programme() {
    for burst_ms in [0, 400, 2_000, 6_000, 12_000] {
        for gap_ms in [0, 100, 1_000, 4_000] {
            let played = check(Spec::default(), another(), gap_ms, burst_ms);
            let begins = first_pes(&played, 1);
            assert!(begins.is_key, "burst {burst_ms} ms, gap {gap_ms} ms");
            let step = (begins.decode - last_presentation(&played, 0)) / 90;
            assert!(step <= gap_ms as i64 + 1_000, "burst {burst_ms} ms, gap {gap_ms} ms: step {step} ms");
            // Past data of the provider fills the gap.
            if burst_ms > gap_ms && gap_ms > 1_000 {
                assert!(step <= 520, "burst {burst_ms} ms, gap {gap_ms} ms: step {step} ms");
            }
        }
    }
}

#[test]
fn an_opening_burst_of_the_first_source_is_part_of_the_programme() {
    let mut segments = two(Spec::default(), another(), 1_000, 3_000).to_vec();
    segments[0].burst_ms = 6_000;
    let played = play(&segments);
    check_length(&played, &segments);
    // The burst is delivered at once.
    assert_eq!(played.began[0], Some(ms(0)));
}

#[test]
fn clocks_may_wrap_before_at_and_after_the_change() {
    let end = 1u64 << 33;
    for first in [end - 2 * 90_000, end - 5 * 90_000, end - 5 * 90_000 - 27_000, end - 6 * 90_000, 1_000] {
        for second in [end - 1, end - 4 * 90_000, 0, 1 << 32] {
            check(
                Spec { start: first, ..Spec::default() },
                Spec { start: second, ..another() },
                1_000,
                1_000,
            );
        }
    }
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
fn the_programme_clock_may_be_on_any_pid_or_absent() {
    for clock in [Clock::Stream, Clock::Separate, Clock::Absent] {
        for next in [Clock::Stream, Clock::Separate, Clock::Absent] {
            check(Spec { clock, ..Spec::default() }, Spec { clock: next, ..another() }, 1_500, 2_000);
        }
    }
}

#[test]
fn time_stamps_never_go_back_with_b_frames_and_leading_audio() {
    for (b_frames, next_b_frames) in [(0, 3), (3, 0), (2, 2)] {
        for (lead, next_lead) in [(0, 800), (800, 0), (900, -400), (-700, 900)] {
            for gap_ms in [0, 50, 2_000] {
                let first = Spec { b_frames, audio_lead_ms: lead, gop: 13, ..Spec::default() };
                let second = Spec { b_frames: next_b_frames, audio_lead_ms: next_lead, gop: 13, ..another() };
                check(first, second, gap_ms, 1_000);
            }
        }
    }
}

#[test]
fn sources_may_have_different_decoder_delays() {
    for (delay_ms, next_delay_ms) in [(1_200, 100), (100, 1_200), (700, 650)] {
        for gap_ms in [0, 300, 3_000] {
            let first = Spec { delay_ms, ..Spec::default() };
            check(first, Spec { delay_ms: next_delay_ms, ..another() }, gap_ms, 500);
        }
    }
}

#[test]
fn duplicate_packets_stay_duplicates() {
    let first = Spec { duplicate_every: 5, ..Spec::default() };
    check(first, Spec { duplicate_every: 3, has_nulls: true, ..another() }, 300, 0);
}

#[test]
fn the_programme_keeps_wall_time_over_many_changes() {
    let mut segments = Vec::new();
    let mut now = 0;
    for n in 0..12u8 {
        let spec = Spec {
            id: n,
            video: [Some(H264), Some(MPEG2), Some(H264), None][usize::from(n) % 4],
            first_pid: 0x40 + u16::from(n) * 0x50,
            start: u64::from(n) * 777_777_777,
            ..Spec::default()
        };
        let lost = now + 4_000 + u64::from(n) * 217;
        segments.push(Segment {
            spec,
            connects: ms(now),
            burst_ms: u64::from(n % 3) * 1_500,
            lost: ms(lost),
            n_more: usize::from(n % 4),
        });
        now = lost + u64::from(n % 5) * 700;
    }
    let played = play(&segments);
    check_length(&played, &segments);
    assert!(played.began.iter().all(Option::is_some));
    assert_eq!(played.checker.types.len(), 3);
}

/// Returns the packets of a server that sends its data every `burst_interval_ms` by its own clock, and sends its latest
/// data at once to a new client: the first packets are older than all that follow.
fn in_bursts(spec: &Spec, connects: u64, burst_interval_ms: u64, lost: u64) -> Vec<(Duration, PacketBytes)> {
    let first = connects / burst_interval_ms * burst_interval_ms;
    let packets = spec.packets(first.saturating_sub(1_000), lost + 1_000 - first);
    let arrival =
        |made: u64| ms(made.div_ceil(burst_interval_ms).max(1) * burst_interval_ms).max(ms(connects + 20));
    let arrivals = packets.into_iter().map(|(made, packet)| (arrival(made), packet));
    arrivals.take_while(|it| it.0 < ms(lost)).collect()
}

/// The error of each change is small but always in the same direction: data that a source held back at its
/// start appears later, and a lead was never corrected. After a day of changes it was a minute.
#[test]
fn the_errors_of_hundreds_of_changes_do_not_accumulate() {
    for burst_interval_ms in [120, 500] {
        let mut test = TestSplice::new();
        let mut segments = Vec::new();
        let mut now = 0;
        for n in 0..300u64 {
            if n > 0 {
                test.change(ms(now));
                now += n * 37 % 450;
            }
            let spec = Spec { id: (n % 250) as u8, start: n * 777_777_777 % (1 << 33), ..Spec::default() };
            let lost = now + 2_500 + n * 91 % 700;
            for (at, packet) in in_bursts(&spec, now, burst_interval_ms, lost) {
                test.packet(&packet, at);
            }
            test.wait_until(ms(lost));
            segments.push((now, lost));
            now = lost;
        }
        let played = test.finish();
        let lead = |(_, lost): &(u64, u64)| lead_ms(&played, ms(lost - 1_000), ms(*lost));
        let first = lead(&segments[0]);
        let furthest = segments.iter().map(|it| (lead(it) - first).abs()).max().unwrap();
        assert!(furthest <= 500, "bursts every {burst_interval_ms} ms: {furthest} ms from wall time");
    }
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

#[test]
fn a_server_without_pacing_is_supported() {
    // A file: two minutes arrive in a second. The next source is a file too.
    let mut test = TestSplice::new();
    for (n, (_, packet)) in Spec::default().packets(0, 120_000).iter().enumerate() {
        test.packet(packet, ms(n as u64 / 40));
    }
    let lost = test.now + ms(100);
    test.change(lost);
    for (n, (_, packet)) in (Spec { id: 1, ..another() }).packets(0, 120_000).iter().enumerate() {
        test.packet(packet, lost + ms(200 + n as u64 / 40));
    }
    let played = test.finish();
    let begin = played.began[1].unwrap() - lost;
    assert!(begin <= ms(200 + 300 + 50), "{begin:?}");
}

#[test]
fn a_source_with_a_slow_clock_is_shifted_forward_after_a_while() {
    let mut test = TestSplice::new();
    for (at, packet) in Spec::default().arrivals(ms(0), 0, ms(3_000)) {
        test.packet(&packet, at);
    }
    test.change(ms(3_000));
    // A tenth of the programme rate: its time stamps pass the last output far too late.
    let slow = Spec { id: 1, delay_ms: 0, ..another() };
    for (at, packet) in slow.packets(0, 1_000) {
        test.packet(&packet, ms(3_010 + at * 10));
    }
    let played = test.finish();
    let begin = played.began[1].expect("it starts");
    assert!(begin <= ms(3_010 + 3_000 + 500), "{begin:?}");
}

#[test]
fn a_new_pmt_within_a_source_changes_no_pid() {
    // After a change the source announces another audio stream before the earlier one.
    let one = Spec { id: 1, audio: vec![AAC], ..another() };
    let mut test = TestSplice::new();
    for (at, packet) in Spec::default().arrivals(ms(0), 0, ms(3_000)) {
        test.packet(&packet, at);
    }
    test.change(ms(3_000));
    let (_, mut pmt) = one.tables();
    pmt.version += 1;
    let mut first = pmt.streams[1].clone();
    first.pid = 0x60;
    pmt.streams.insert(1, first);
    let mut new_map = pmt.packets(one.pmt_pid, 0).remove(0);
    for (at, packet) in one.packets(0, 4_000) {
        let is_map = u16::from_be_bytes([packet[1] & 0x1F, packet[2]]) == one.pmt_pid;
        if is_map && at >= 2_000 {
            set_cc(&mut new_map, packet[3]);
            test.packet(&new_map, ms(3_500 + at));
        } else {
            test.packet(&packet, ms(3_500 + at));
        }
    }
    let played = test.finish();
    assert_eq!(played.checker.pmt_versions, [9, 10, 11]);
    let sound: Vec<_> = played.checker.pes.iter().filter(|pes| pes.pid == 0x101).collect();
    assert!(sound.iter().any(|pes| pes.at > ms(6_000)));
    assert_eq!(played.checker.streams.keys().copied().collect::<Vec<_>>(), [0x60, 0x100, 0x101]);
}

#[test]
fn a_pmt_of_many_packets_continues_its_counter() {
    let audio = vec![AAC; 60];
    let first = Spec { audio: audio.clone(), ..Spec::default() };
    assert!(first.tables().1.packets(0x1000, 0).len() > 2);
    check(first, Spec { audio, ..another() }, 500, 0);
}

#[test]
fn only_the_first_of_several_programmes_is_sent() {
    let spec = Spec::default();
    let (mut pat, _) = spec.tables();
    pat.programs.push((2, 0x1100));
    let other = Spec { id: 5, first_pid: 0x600, pmt_pid: 0x1100, program: 2, ..Spec::default() };
    let mut test = TestSplice::new();
    for ((at, packet), (_, foreign)) in spec.packets(0, 3_000).iter().zip(other.packets(0, 3_000)) {
        let mut packet = *packet;
        if packet[1] & 0x1F == 0 && packet[2] == 0 {
            let cc = packet[3];
            packet = pat.packets(0).remove(0);
            set_cc(&mut packet, cc);
        }
        test.packet(&packet, ms(*at));
        if foreign[1] & 0x1F != 0 {
            test.packet(&foreign, ms(*at));
        }
    }
    test.change(ms(3_000));
    for (at, packet) in (Spec { id: 1, ..another() }).arrivals(ms(3_500), 0, ms(6_000)) {
        test.packet(&packet, at);
    }
    let checker = test.finish().checker;
    assert_eq!(checker.pes.iter().map(|pes| pes.source).max(), Some(1));
    assert_eq!(checker.programs.len(), 1);
}

#[test]
fn pmt_versions_wrap() {
    let mut test = TestSplice::new();
    let mut now = ms(0);
    for id in 0..40 {
        let spec = Spec { id, ..Spec::default() };
        for (at, packet) in spec.arrivals(now, 0, now + ms(700)) {
            test.packet(&packet, at);
        }
        now += ms(700);
        test.change(now);
    }
    // The checker requires each to be one more than the last, modulo 32.
    let versions = test.finish().checker.pmt_versions;
    assert_eq!((versions.len(), versions.first(), versions.last()), (40, Some(&9), Some(&16)));
}

#[test]
fn output_starts_after_a_burst_and_silence() {
    let mut test = TestSplice::new();
    for (at, packet) in Spec::default().arrivals(ms(0), 0, ms(2_000)) {
        test.packet(&packet, at);
    }
    test.change(ms(2_000));
    // Three seconds of past data, then nothing.
    for (_, packet) in (Spec { id: 1, ..another() }).packets(0, 3_000) {
        test.packet(&packet, ms(4_000));
    }
    test.wait_until(ms(5_000));
    assert!(test.splice.deadline().is_none());
    let played = test.finish();
    assert_eq!(played.began[1], Some(ms(4_100)));
}

#[test]
fn a_jump_of_the_clock_does_not_affect_the_next_source() {
    for jump in [-40_000_000_i64, -3_000_000, 50_000_000, 4_000_000_000] {
        let first = Spec::default();
        let jumped = Spec { start: (900_000 + jump).rem_euclid(1 << 33) as u64, ..Spec::default() };
        let mut test = TestSplice::new();
        for (at, packet) in first.packets(0, 4_000) {
            test.packet(&packet, ms(at));
        }
        let mut last = 0;
        for (at, packet) in jumped.packets(4_000, 4_000) {
            test.packet(&packet, ms(at));
            last = stamps(Packet::new(&packet)).pts.unwrap_or(last);
        }
        test.change(ms(8_000));
        for (at, packet) in (Spec { id: 1, ..another() }).arrivals(ms(9_000), 0, ms(12_000)) {
            test.packet(&packet, at);
        }
        let output = test.output.iter().filter(|it| it.0 >= ms(9_000)).flat_map(|it| it.1.clone());
        let output: Vec<u8> = output.collect();
        let stamp = packets(&output).find_map(|packet| stamps(Packet::new(packet)).pts).unwrap();
        let step = crate::ts::clock::distance(last, stamp, 1 << 33) / 90;
        assert!((1_000..2_000).contains(&step), "jump {jump}: then a step of {step} ms");
    }
}

#[test]
fn a_pcr_unrelated_to_the_time_stamps_is_ignored() {
    for (first_error, second_error) in [(0, 5_000_000), (5_000_000, 0), (7_000_000, 90_000_000)] {
        let with_error = |packets: Vec<(Duration, PacketBytes)>, error: u64| {
            packets.into_iter().map(move |(at, mut packet)| {
                if let Some(pcr) = Packet::new(&packet).pcr() {
                    crate::ts::packet::set_pcr(&mut packet, pcr + error * 300);
                }
                (at, packet)
            })
        };
        let segments = two(Spec::default(), another(), 2_000, 1_000);
        let mut test = TestSplice::new();
        for (at, packet) in with_error(segments[0].spec.arrivals(ms(0), 0, segments[0].lost), first_error) {
            test.packet(&packet, at);
        }
        test.change(segments[0].lost);
        for (at, packet) in
            with_error(segments[1].spec.arrivals(segments[1].connects, 1_000, segments[1].lost), second_error)
        {
            test.packet(&packet, at);
        }
        let played = test.finish_with(Checker::without_clock());
        let step = (first_pes(&played, 1).presentation - last_presentation(&played, 0)) / 90;
        assert!((1_000..3_000).contains(&step), "a step of {step} ms");
    }
}

/// Returns a packet with sections on a PID.
fn section_packet(pid: u16, counter: u8) -> PacketBytes {
    let mut packet = [0xFF; 188];
    packet[..9].copy_from_slice(&[
        0x47,
        0x40 | (pid >> 8) as u8,
        pid as u8,
        0x10 | counter & 15,
        0,
        0x74,
        0x70,
        1,
        0,
    ]);
    packet
}

/// Returns whether sections on a PID are forwarded from a first source and after a change.
fn section_pids(stream_type: u8, pid: u16) -> (bool, bool) {
    let spec = Spec { audio: vec![AAC, stream_type], ..Spec::default() };
    let mut test = TestSplice::new();
    let mut counter = 0;
    for round in 0..2u64 {
        for (at, packet) in spec.packets(0, 3_000) {
            let is_sound = packet[1] & 0x1F == 1 && packet[2] == 2;
            let packet = if is_sound { section_packet(pid, counter) } else { packet };
            counter += u8::from(is_sound) & 15;
            counter &= 15;
            test.packet(&packet, ms(round * 4_000 + at));
        }
        if round == 0 {
            test.change(ms(3_000));
        }
    }
    let is_through = |from: u64| {
        let late = test.output.iter().filter(|it| it.0 >= ms(from) && it.0 < ms(from + 3_000));
        late.flat_map(|it| it.1.chunks(188)).any(|packet| packet[5..7] == [0x74, 0x70])
    };
    (is_through(0), is_through(4_000))
}

#[test]
fn sections_without_times_continue_after_a_change_and_others_end() {
    assert_eq!(section_pids(0x05, 0x102), (true, true));
    // Service information is not announced in the PMT and describes the services of the first source.
    assert_eq!(section_pids(0x05, 0x11), (true, false));
}

/// Plays two sources with a stream of private data, whose packets `edit` changes, and returns the time stamps of its PES
/// packets from the second source, each with the last one of the video, in ms.
fn private_data(edit: impl Fn(u8, &mut PacketBytes)) -> Vec<(Option<u64>, u64)> {
    const PRIVATE: u8 = 0x06;
    let first = Spec { audio: vec![AAC, PRIVATE], ..Spec::default() };
    let second = Spec { audio: vec![AAC, PRIVATE], ..another() };
    let mut test = TestSplice::new();
    for segment in two(first, second, 1_000, 0) {
        if segment.spec.id > 0 {
            test.change(ms(5_000));
        }
        for (at, mut packet) in segment.spec.arrivals(segment.connects, 0, segment.lost) {
            if Packet::new(&packet).pid() == segment.spec.first_pid + 2 {
                edit(segment.spec.id, &mut packet);
            }
            test.packet(&packet, at);
        }
    }
    let output: Vec<u8> =
        test.output.iter().filter(|it| it.0 > ms(5_000)).flat_map(|it| it.1.clone()).collect();
    let (mut video, mut found) = (0, Vec::new());
    for packet in packets(&output).map(Packet::new).filter(|it| it.pusi()) {
        let stamp = stamps(packet).decode().map(|stamp| stamp / 90);
        match packet.pid() {
            0x100 => video = stamp.unwrap(),
            0x102 => found.push((stamp, video)),
            _ => {}
        }
    }
    found
}

#[test]
fn a_stream_without_time_stamps_continues_after_a_change() {
    let found = private_data(|_, packet| {
        let start = Packet::new(packet).payload_offset();
        if Packet::new(packet).pusi() {
            // The header keeps its length, with stuffing instead of the stamp.
            packet[start + 7] = 0;
            packet[start + 9..start + 14].fill(0xFF);
        }
    });
    // One PES packet every 24 ms for 7 s.
    assert!(found.len() > 260 && found.iter().all(|it| it.0.is_none()), "{} PES packets", found.len());
}

#[test]
fn time_stamps_far_from_the_programme_are_moved_to_it() {
    for (first, second) in
        [(0, 3_000_000_000), (3_000_000_000, 0), (4_000_000_000, 4_000_000_000), (1_800_000, 0)]
    {
        let found = private_data(|source, packet| {
            let error = if source == 0 { first } else { second };
            map_stamps(packet, |stamp| (stamp + error) % (1 << 33));
        });
        assert!(found.len() > 260, "{} PES packets", found.len());
        let mut last = 0;
        for (stamp, video) in found {
            let stamp = stamp.unwrap();
            assert!(stamp.abs_diff(video) <= 100, "{stamp} ms, but the video is at {video} ms");
            assert!(stamp > last, "{stamp} ms after {last} ms");
            last = stamp;
        }
    }
}

#[test]
fn a_source_without_any_time_stamps_continues_after_a_change() {
    let radio = Spec { video: None, ..Spec::default() };
    let mut test = TestSplice::new();
    for (at, packet) in radio.packets(0, 2_000) {
        test.packet(&packet, ms(at));
    }
    test.change(ms(2_000));
    for (at, mut packet) in (Spec { clock: Clock::Absent, ..radio }).packets(0, 6_000) {
        let view = Packet::new(&packet);
        let start = view.payload_offset();
        if view.pusi() && view.pid() == 0x100 {
            packet[start + 7] = 0;
            packet[start + 9..start + 14].fill(0xFF);
        }
        test.packet(&packet, ms(2_500 + at));
    }
    assert!(test.splice.is_forwarding());
}

#[test]
fn tables_whose_counter_stands_still_are_followed() {
    for is_first in [true, false] {
        let mut test = TestSplice::new();
        let began = if is_first { 0 } else { 3_000 };
        if !is_first {
            for (at, packet) in Spec::default().packets(0, 2_000) {
                test.packet(&packet, ms(at));
            }
            test.change(ms(2_000));
        }
        // The PMT, of several packets, announces the second audio stream after a second.
        let spec = Spec { audio: vec![AAC; 30], ..Spec::default() };
        let (_, mut pmt) = spec.tables();
        pmt.streams.pop();
        for (at, mut packet) in spec.packets(0, 3_000) {
            let pid = Packet::new(&packet).pid();
            if pid == spec.pmt_pid && Packet::new(&packet).pusi() {
                pmt.version = if at < 1_000 { 1 } else { 2 };
                let content = if at < 1_000 { pmt.clone() } else { spec.tables().1 };
                for mut packet in content.packets(spec.pmt_pid, 0) {
                    set_cc(&mut packet, 5);
                    test.packet(&packet, ms(began + at));
                }
            }
            if pid == 0 {
                set_cc(&mut packet, 5);
            }
            if pid != spec.pmt_pid {
                test.packet(&packet, ms(began + at));
            }
        }
        assert_eq!(test.splice.source_tables().unwrap().pmt.streams.len(), 31, "first source: {is_first}");
        if !is_first {
            // The counters of the output run, which the checker requires.
            assert_eq!(test.finish().checker.streams.len(), 31);
        }
    }
}

#[test]
fn scrambled_packets_are_dropped_after_a_change() {
    let mut test = TestSplice::new();
    for (at, packet) in Spec::default().packets(0, 2_000) {
        test.packet(&packet, ms(at));
    }
    test.change(ms(2_000));
    let other = Spec { id: 1, ..another() };
    for (at, mut packet) in other.packets(0, 3_000) {
        // Scrambled audio cannot be shifted in time.
        if packet[2] == 0x45 {
            packet[3] |= 0x80;
        }
        test.packet(&packet, ms(2_500 + at));
    }
    let played = test.finish();
    assert!(played.checker.pes.iter().filter(|pes| pes.source == 1).all(|pes| pes.pid == 0x100));
}

#[test]
fn a_new_pmt_in_the_first_source_passes_and_is_recorded() {
    let spec = Spec::default();
    let (_, mut pmt) = spec.tables();
    pmt.version += 1;
    pmt.streams.truncate(1);
    let mut new_map = pmt.packets(spec.pmt_pid, 0).remove(0);
    let mut test = TestSplice::new();
    let mut input = Vec::new();
    for (at, packet) in spec.packets(0, 3_000) {
        let pid = u16::from_be_bytes([packet[1] & 0x1F, packet[2]]);
        let mut packet = packet;
        if pid == spec.pmt_pid && at >= 1_000 {
            set_cc(&mut new_map, packet[3]);
            packet = new_map;
        }
        // The audio ends when it is no longer announced.
        if pid != 0x101 || at < 900 {
            input.push(packet);
            test.packet(&packet, ms(at));
        }
    }
    let passed: Vec<u8> = test.output.iter().flat_map(|it| it.1.clone()).collect();
    assert_eq!(
        packets(&passed).skip(4).collect::<Vec<_>>(),
        input.iter().skip(2).skip(2).collect::<Vec<_>>()
    );
    test.change(ms(3_000));
    for (at, packet) in (Spec { id: 1, ..another() }).arrivals(ms(3_500), 0, ms(6_000)) {
        test.packet(&packet, at);
    }
    let played = test.finish();
    assert_eq!(played.checker.pmt_versions, [9, 10, 11]);
    assert_eq!(played.checker.streams.keys().copied().collect::<Vec<_>>(), [0x100, 0x101]);
}

#[test]
fn held_packets_are_bounded() {
    let settings = SpliceSettings { held_bytes_max: 400 * 188, ..SpliceSettings::default() };
    let mut splice = Splice::new(settings.clone());
    let mut out = BytesMut::new();
    // Never any tables.
    for (_, packet) in Spec::default().packets(1, 99).into_iter().skip(2) {
        for _ in 0..200 {
            splice.packet(Packet::new(&packet), ms(1), &mut out);
        }
    }
    assert!(out.is_empty());
    assert!(held(&splice) <= 400);
    // A fast source without key frames starts when no more packets can be held.
    let mut splice = Splice::new(settings);
    for (_, packet) in (Spec { gop: 100_000, ..Spec::default() }).packets(40, 4_000) {
        splice.packet(Packet::new(&packet), ms(1), &mut out);
        assert!(held(&splice) <= 402);
    }
    assert!(splice.is_forwarding());
}

fn waiting(splice: &Splice) -> usize {
    match &splice.phase {
        super::Phase::Gathering(_) => 0,
        super::Phase::Forwarding(forwarder) => forwarder.n_waiting(),
    }
}

fn held(splice: &Splice) -> usize {
    match &splice.phase {
        super::Phase::Gathering(gathering) => gathering.held.len(),
        super::Phase::Forwarding(_) => 0,
    }
}

#[test]
fn cue_messages_continue_after_a_change_with_the_times_of_the_output() {
    const CUE: u8 = 0x86;
    let first = Spec { audio: vec![AAC, CUE], ..Spec::default() };
    let second = Spec { audio: vec![AAC, CUE], ..another() };
    let mut test = TestSplice::new();
    for Segment { spec, connects, lost, .. } in two(first, second, 1_000, 0) {
        if spec.id > 0 {
            test.change(ms(5_000));
        }
        let mut cc = spec.counter;
        for (at, bytes) in spec.arrivals(connects, 0, lost) {
            let packet = Packet::new(&bytes);
            let replaced = if packet.pid() == spec.pmt_pid {
                let (_, mut pmt) = spec.tables();
                pmt.program_info = vec![0x05, 4, b'C', b'U', b'E', b'I'];
                pmt.packets(spec.pmt_pid, packet.cc())[0]
            } else if packet.pid() == spec.first_pid + 2 {
                let Some(time) = stamps(packet).decode() else { continue };
                cc = (cc + 1) & 0x0F;
                time_signal_packet(packet.pid(), cc, time)
            } else {
                bytes
            };
            test.packet(&replaced, at);
        }
    }
    let output: Vec<u8> =
        test.output.iter().filter(|it| it.0 > ms(5_000)).flat_map(|it| it.1.clone()).collect();
    let (mut video, mut n_messages, mut counter) = (0, 0, None);
    for packet in packets(&output).map(Packet::new) {
        if packet.pid() == 0x100 && packet.pusi() {
            video = stamps(packet).decode().unwrap();
        } else if packet.pid() == 0x102 {
            let stamp = |at: usize| {
                let [high, low @ ..] = *packet.payload()[1 + at..].first_chunk::<5>().unwrap();
                u64::from(high & 1) << 32 | u64::from(u32::from_be_bytes(low))
            };
            let time = (stamp(4) + stamp(14)) % STAMP_MODULUS;
            assert!(time.abs_diff(video) <= 9_000, "{time}, but the video is at {video}");
            let before = counter.replace(packet.cc());
            assert!(before.is_none_or(|it: u8| (it + 1) & 0x0F == packet.cc()));
            n_messages += 1;
        }
    }
    // One every 24 ms for 7 s.
    assert!(n_messages > 260, "{n_messages} messages");
}
