//! What the splice promises, told with made-up sources and read with a strict reader of its own.
mod builder;
mod checker;
mod random;

use std::time::Duration;

use bytes::BytesMut;

use self::builder::{AAC, AC3, Clock, H264, HEVC, MP2, MPEG2, Spec};
use self::checker::Checker;
use super::{Splice, SpliceSettings};
use crate::ts::packet::{Packet, PacketBytes, packets, set_cc};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A source in a story: it connects, sends `burst_ms` of its past at once, plays, and is lost.
#[derive(Clone, Debug)]
struct Act {
    spec: Spec,
    connects: Duration,
    burst_ms: u64,
    lost: Duration,
}

/// What came out, and when.
struct Played {
    output: Vec<(Duration, Vec<u8>)>,
    checker: Checker,
    /// Per act: when its output began.
    began: Vec<Option<Duration>>,
}

/// Plays sources one after the other through a splice, with a strict reader at the end.
fn play(acts: &[Act]) -> Played {
    let mut stage = Stage::new();
    for (n, act) in acts.iter().enumerate() {
        if n > 0 {
            stage.change(acts[n - 1].lost);
        }
        for (at, packet) in act.spec.arrivals(act.connects, act.burst_ms, act.lost) {
            stage.packet(&packet, at);
        }
        stage.wait_until(act.lost);
    }
    stage.finish()
}

/// A splice, ticked when it asks for it.
struct Stage {
    splice: Splice,
    now: Duration,
    output: Vec<(Duration, Vec<u8>)>,
    began: Vec<Option<Duration>>,
}

impl Stage {
    fn new() -> Self {
        let splice = Splice::new(SpliceSettings::default());
        Stage { splice, now: Duration::ZERO, output: Vec::new(), began: vec![None] }
    }

    fn change(&mut self, at: Duration) {
        self.wait_until(at);
        self.splice.change(at);
        self.began.push(None);
        assert!(!self.splice.is_forwarding());
    }

    fn wait_until(&mut self, at: Duration) {
        for n in 0.. {
            let Some(deadline) = self.splice.deadline().filter(|deadline| *deadline <= at) else { break };
            assert!(n < 10, "the deadline at {deadline:?} does not go away");
            let now = deadline.max(self.now);
            let mut out = BytesMut::new();
            self.splice.tick(now, &mut out);
            self.keep(out, now);
        }
        self.now = at;
    }

    fn packet(&mut self, packet: &PacketBytes, at: Duration) {
        self.wait_until(at);
        let mut out = BytesMut::new();
        self.splice.packet(Packet::new(packet), at, &mut out);
        self.keep(out, at);
    }

    fn keep(&mut self, out: BytesMut, now: Duration) {
        if !out.is_empty() {
            assert!(self.splice.is_forwarding());
            self.began.last_mut().unwrap().get_or_insert(now);
            self.output.push((now, out.to_vec()));
        }
    }

    fn finish(self) -> Played {
        self.finish_with(Checker::default())
    }

    fn finish_with(self, mut checker: Checker) -> Played {
        for (at, bytes) in &self.output {
            checker.read(bytes, *at);
        }
        checker.check_seams();
        Played { output: self.output, checker, began: self.began }
    }
}

/// Programme time less wall time of the newest packet of a source, in ms: its clock, or without one its stamps.
fn lead_ms(played: &Played, from: Duration, to: Duration) -> i64 {
    let during = |at: Duration| at >= from && at < to;
    let clocks = played.checker.clocks.iter().filter(|clock| during(clock.0));
    let clocks = clocks.map(|(at, clock)| clock / 90 - at.as_millis() as i64).max();
    let stamps = played.checker.pes.iter().filter(|pes| during(pes.at));
    clocks.or_else(|| stamps.map(|pes| pes.decode / 90 - 300 - pes.at.as_millis() as i64).max()).unwrap()
}

/// After each source the programme is as far ahead of the wall clock as it was at the end of the first: its length
/// is wall time over any number of gaps.
fn check_length(played: &Played, acts: &[Act]) {
    let last_second = |act: &Act| lead_ms(played, act.lost.saturating_sub(ms(1_000)), act.lost);
    let first = last_second(&acts[0]);
    for act in &acts[1..] {
        let lead = last_second(act);
        assert!((lead - first).abs() <= 200, "source {}: {} ms from wall time", act.spec.id, lead - first);
    }
}

/// Two sources: the second takes over from the first after `gap_ms` with a burst of `burst_ms`.
fn two(first: Spec, second: Spec, gap_ms: u64, burst_ms: u64) -> [Act; 2] {
    let second = Spec { id: 1, ..second };
    [
        Act { spec: first, connects: ms(0), burst_ms: 0, lost: ms(5_000) },
        Act { spec: second, connects: ms(5_000 + gap_ms), burst_ms, lost: ms(12_000 + gap_ms) },
    ]
}

/// Plays two sources and checks all that holds for every change.
fn check(first: Spec, second: Spec, gap_ms: u64, burst_ms: u64) -> Played {
    let acts = two(first, second, gap_ms, burst_ms);
    let played = play(&acts);
    check_length(&played, &acts);
    let kinds = |id| played.checker.pes.iter().any(|pes| pes.source == id);
    assert!(kinds(0) && kinds(1), "both sources are seen");
    played
}

fn first_pes(played: &Played, source: u8) -> &checker::Pes {
    played.checker.pes.iter().find(|pes| pes.source == source).unwrap()
}

fn last_show(played: &Played, source: u8) -> i64 {
    played.checker.pes.iter().filter(|pes| pes.source == source).map(|pes| pes.show).max().unwrap()
}

fn another() -> Spec {
    Spec { first_pid: 0x44, pmt_pid: 0x30, program: 77, start: 4_000_000_000, counter: 9, ..Spec::default() }
}

#[test]
fn the_first_source_passes_byte_by_byte_from_a_random_access_point_on() {
    let spec = Spec { has_nulls: true, duplicate_every: 7, ..Spec::default() };
    // It is joined in the middle of a group of pictures, and bursts.
    let input: Vec<PacketBytes> = spec.packets(240, 5_000).into_iter().map(|it| it.1).collect();
    let mut stage = Stage::new();
    for (n, packet) in input.iter().enumerate() {
        stage.packet(packet, ms(n as u64 / 20));
    }
    let played = stage.finish();
    let output: Vec<u8> = played.output.into_iter().flat_map(|it| it.1).collect();
    let output: Vec<&PacketBytes> = packets(&output).collect();
    // Tables, then the key frame at 480 ms, then everything but the sound before its first PES start.
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
fn a_key_frame_is_found_by_looking_where_the_encoder_sets_no_flag() {
    for video in [H264, MPEG2, HEVC] {
        let spec = Spec { video: Some(video), is_flagged: false, ..Spec::default() };
        let mut stage = Stage::new();
        for (at, packet) in spec.packets(240, 1_000) {
            stage.packet(&packet, ms(at));
        }
        let played = stage.finish();
        assert_eq!((played.checker.pes[0].number, played.checker.pes[0].is_key), (12, true), "{video:#x}");
    }
}

#[test]
fn without_a_random_access_point_output_begins_after_a_second_at_a_pes_start() {
    let spec = Spec { gop: 100_000, ..Spec::default() };
    let mut stage = Stage::new();
    for (at, packet) in spec.packets(40, 3_000) {
        stage.packet(&packet, ms(500 + at));
    }
    let played = stage.finish();
    assert_eq!(played.began, [Some(ms(1_540))]);
    // Nothing of what was held meanwhile is lost.
    assert_eq!((played.checker.pes[0].number, played.checker.pes[0].is_key), (1, false));
}

#[test]
fn a_radio_begins_with_its_first_pes_packet() {
    let spec = Spec { video: None, audio: vec![MP2], ..Spec::default() };
    let mut stage = Stage::new();
    for (at, packet) in spec.packets(0, 300) {
        stage.packet(&packet, ms(at));
    }
    let played = stage.finish();
    assert_eq!(played.began, [Some(ms(0))]);
}

#[test]
fn what_was_sent_before_the_tables_came_is_not_lost() {
    let mut input = Spec::default().packets(0, 1_000);
    // The tables come 90 ms late.
    let tables: Vec<_> = input.drain(..2).map(|(_, packet)| (90, packet)).collect();
    let place = input.iter().position(|it| it.0 >= 90).unwrap();
    input.splice(place..place, tables);
    let mut stage = Stage::new();
    for (at, packet) in &input {
        stage.packet(packet, ms(*at));
    }
    let played = stage.finish();
    assert_eq!((played.checker.pes[0].number, played.checker.pes[0].is_key), (0, true));
}

#[test]
fn another_source_goes_on_where_the_programme_stands_now() {
    let played = check(Spec::default(), another(), 3_000, 0);
    let checker = &played.checker;
    // Same kinds, same PIDs, same programme; new content of the map, so a new version.
    assert_eq!(checker.types.keys().copied().collect::<Vec<_>>(), [0x100, 0x101]);
    assert_eq!(checker.programs.iter().copied().collect::<Vec<_>>(), [(7, 1, 0x1000)]);
    assert_eq!((checker.pat_versions.as_slice(), checker.pmt_versions.as_slice()), (&[5][..], &[9, 10][..]));
    assert_eq!(checker.n_declared, 1);
    let begins = first_pes(&played, 1);
    assert!(begins.is_key);
    let step = (begins.show - last_show(&played, 0)) / 90;
    // The gap, and what passes until the burst is judged and a key frame comes.
    assert!((3_000..3_200 + 480).contains(&step), "{step} ms");
}

#[test]
fn the_same_source_may_come_back() {
    // It goes on where it was: same clock, 2 s later.
    let again = Spec { start: 900_000 + 7_000 * 90, ..Spec::default() };
    let played = check(Spec::default(), again, 2_000, 0);
    assert_eq!(played.checker.pmt_versions, [9, 10]);
    // Or it begins anew, from the same clock.
    check(Spec::default(), Spec::default(), 2_000, 0);
    check(Spec::default(), Spec::default(), 0, 0);
}

#[test]
fn tables_with_the_same_content_keep_their_versions() {
    let acts = two(Spec::default(), Spec::default(), 500, 0);
    let mut acts = acts.to_vec();
    acts[1].spec.id = 0;
    let played = play(&acts);
    assert_eq!((played.checker.pat_versions, played.checker.pmt_versions), (vec![5], vec![9]));
}

#[test]
fn a_burst_of_the_past_does_not_move_the_programme() {
    for burst_ms in [0, 400, 2_000, 6_000, 12_000] {
        for gap_ms in [0, 100, 1_000, 4_000] {
            let played = check(Spec::default(), another(), gap_ms, burst_ms);
            let begins = first_pes(&played, 1);
            assert!(begins.is_key, "burst {burst_ms} ms, gap {gap_ms} ms");
            let step = (begins.decode - last_show(&played, 0)) / 90;
            assert!(step <= gap_ms as i64 + 1_000, "burst {burst_ms} ms, gap {gap_ms} ms: step {step} ms");
            // What the provider has of the gap is used.
            if burst_ms > gap_ms && gap_ms > 1_000 {
                assert!(step <= 520, "burst {burst_ms} ms, gap {gap_ms} ms: step {step} ms");
            }
        }
    }
}

#[test]
fn a_burst_of_the_first_source_belongs_to_the_programme() {
    let mut acts = two(Spec::default(), another(), 1_000, 3_000).to_vec();
    acts[0].burst_ms = 6_000;
    let played = play(&acts);
    check_length(&played, &acts);
    // And is delivered at once.
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
fn the_programme_clock_may_be_anywhere_or_nowhere() {
    for clock in [Clock::Stream, Clock::Own, Clock::Nobody] {
        for next in [Clock::Stream, Clock::Own, Clock::Nobody] {
            check(Spec { clock, ..Spec::default() }, Spec { clock: next, ..another() }, 1_500, 2_000);
        }
    }
}

#[test]
fn b_frames_and_sound_that_leads_never_run_back() {
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
fn a_decoder_delay_of_the_next_source_is_its_own() {
    for (delay_ms, next_delay_ms) in [(1_200, 100), (100, 1_200), (700, 650)] {
        for gap_ms in [0, 300, 3_000] {
            let first = Spec { delay_ms, ..Spec::default() };
            check(first, Spec { delay_ms: next_delay_ms, ..another() }, gap_ms, 500);
        }
    }
}

#[test]
fn packets_sent_twice_stay_packets_sent_twice() {
    let first = Spec { duplicate_every: 5, ..Spec::default() };
    check(first, Spec { duplicate_every: 3, has_nulls: true, ..another() }, 300, 0);
}

#[test]
fn many_changes_keep_to_wall_time() {
    let mut acts = Vec::new();
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
        acts.push(Act { spec, connects: ms(now), burst_ms: u64::from(n % 3) * 1_500, lost: ms(lost) });
        now = lost + u64::from(n % 5) * 700;
    }
    let played = play(&acts);
    check_length(&played, &acts);
    assert!(played.began.iter().all(Option::is_some));
    assert_eq!(played.checker.types.len(), 3);
}

/// A server that hands on what it has every so many milliseconds, by a clock of its own, and what it had last at
/// once to whoever connects: the first packets are older than all that follow.
fn in_lumps(spec: &Spec, connects: u64, lump_ms: u64, lost: u64) -> Vec<(Duration, PacketBytes)> {
    let first = connects / lump_ms * lump_ms;
    let packets = spec.packets(first.saturating_sub(1_000), lost + 1_000 - first);
    let arrival = |made: u64| ms(made.div_ceil(lump_ms).max(1) * lump_ms).max(ms(connects + 20));
    let arrivals = packets.into_iter().map(|(made, packet)| (arrival(made), packet));
    arrivals.take_while(|it| it.0 < ms(lost)).collect()
}

/// The error of each change is small and always to the same side: what a source held back when it began shows later,
/// and programme that had been ahead by so much was never taken back. After a day of changes it was a minute.
#[test]
fn the_errors_of_hundreds_of_changes_do_not_add_up() {
    for lump_ms in [120, 500] {
        let mut stage = Stage::new();
        let mut acts = Vec::new();
        let mut now = 0;
        for n in 0..300u64 {
            if n > 0 {
                stage.change(ms(now));
                now += n * 37 % 450;
            }
            let spec = Spec { id: (n % 250) as u8, start: n * 777_777_777 % (1 << 33), ..Spec::default() };
            let lost = now + 2_500 + n * 91 % 700;
            for (at, packet) in in_lumps(&spec, now, lump_ms, lost) {
                stage.packet(&packet, at);
            }
            stage.wait_until(ms(lost));
            acts.push((now, lost));
            now = lost;
        }
        let played = stage.finish();
        let lead = |(_, lost): &(u64, u64)| lead_ms(&played, ms(lost - 1_000), ms(*lost));
        let first = lead(&acts[0]);
        let furthest = acts.iter().map(|it| (lead(it) - first).abs()).max().unwrap();
        assert!(furthest <= 500, "lumps of {lump_ms} ms: {furthest} ms from wall time");
    }
}

#[test]
fn a_source_that_never_begins_leaves_no_trace() {
    let acts = two(Spec::default(), another(), 2_000, 0);
    let mut stage = Stage::new();
    for (at, packet) in acts[0].spec.arrivals(ms(0), 0, ms(5_000)) {
        stage.packet(&packet, at);
    }
    stage.change(ms(5_000));
    for (_, packet) in (Spec { start: 55, ..another() }).packets(0, 30) {
        stage.packet(&packet, ms(5_500));
    }
    stage.change(ms(5_520));
    for (at, packet) in acts[1].spec.arrivals(ms(7_000), 0, acts[1].lost) {
        stage.packet(&packet, at);
    }
    let played = stage.finish();
    assert_eq!(played.began[1], None);
    check_length(&played, &two(Spec::default(), another(), 2_000, 0));
}

#[test]
fn a_server_without_pacing_breaks_nothing() {
    // A file: two minutes arrive in a second, the next source is one too.
    let mut stage = Stage::new();
    for (n, (_, packet)) in Spec::default().packets(0, 120_000).iter().enumerate() {
        stage.packet(packet, ms(n as u64 / 40));
    }
    let lost = stage.now + ms(100);
    stage.change(lost);
    for (n, (_, packet)) in (Spec { id: 1, ..another() }).packets(0, 120_000).iter().enumerate() {
        stage.packet(packet, lost + ms(200 + n as u64 / 40));
    }
    let played = stage.finish();
    let begin = played.began[1].unwrap() - lost;
    assert!(begin <= ms(200 + 300 + 50), "{begin:?}");
}

#[test]
fn a_source_whose_clock_stands_still_is_moved_forward_in_the_end() {
    let mut stage = Stage::new();
    for (at, packet) in Spec::default().arrivals(ms(0), 0, ms(3_000)) {
        stage.packet(&packet, at);
    }
    stage.change(ms(3_000));
    // A tenth of the programme rate: its time stamps come to lie after the last output far too late.
    let slow = Spec { id: 1, delay_ms: 0, ..another() };
    for (at, packet) in slow.packets(0, 1_000) {
        stage.packet(&packet, ms(3_010 + at * 10));
    }
    let played = stage.finish();
    let begin = played.began[1].expect("it begins");
    assert!(begin <= ms(3_010 + 3_000 + 500), "{begin:?}");
}

#[test]
fn a_new_map_in_the_middle_of_a_source_moves_no_pid() {
    // After a change, the source announces another sound in front of the one it had.
    let one = Spec { id: 1, audio: vec![AAC], ..another() };
    let mut stage = Stage::new();
    for (at, packet) in Spec::default().arrivals(ms(0), 0, ms(3_000)) {
        stage.packet(&packet, at);
    }
    stage.change(ms(3_000));
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
            stage.packet(&new_map, ms(3_500 + at));
        } else {
            stage.packet(&packet, ms(3_500 + at));
        }
    }
    let played = stage.finish();
    assert_eq!(played.checker.pmt_versions, [9, 10, 11]);
    let sound: Vec<_> = played.checker.pes.iter().filter(|pes| pes.pid == 0x101).collect();
    assert!(sound.iter().any(|pes| pes.at > ms(6_000)));
    assert_eq!(played.checker.streams.keys().copied().collect::<Vec<_>>(), [0x60, 0x100, 0x101]);
}

#[test]
fn a_map_of_many_packets_goes_on_counting() {
    let audio = vec![AAC; 60];
    let first = Spec { audio: audio.clone(), ..Spec::default() };
    assert!(first.tables().1.packets(0x1000, 0).len() > 2);
    check(first, Spec { audio, ..another() }, 500, 0);
}

#[test]
fn of_several_programmes_only_the_first_is_sent() {
    let spec = Spec::default();
    let (mut pat, _) = spec.tables();
    pat.programs.push((2, 0x1100));
    let other = Spec { id: 5, first_pid: 0x600, pmt_pid: 0x1100, program: 2, ..Spec::default() };
    let mut stage = Stage::new();
    for ((at, packet), (_, foreign)) in spec.packets(0, 3_000).iter().zip(other.packets(0, 3_000)) {
        let mut packet = *packet;
        if packet[1] & 0x1F == 0 && packet[2] == 0 {
            let cc = packet[3];
            packet = pat.packets(0).remove(0);
            set_cc(&mut packet, cc);
        }
        stage.packet(&packet, ms(*at));
        if foreign[1] & 0x1F != 0 {
            stage.packet(&foreign, ms(*at));
        }
    }
    stage.change(ms(3_000));
    for (at, packet) in (Spec { id: 1, ..another() }).arrivals(ms(3_500), 0, ms(6_000)) {
        stage.packet(&packet, at);
    }
    let checker = stage.finish().checker;
    assert_eq!(checker.pes.iter().map(|pes| pes.source).max(), Some(1));
    assert_eq!(checker.programs.len(), 1);
}

#[test]
fn versions_of_the_map_go_round() {
    let mut stage = Stage::new();
    let mut now = ms(0);
    for id in 0..40 {
        let spec = Spec { id, ..Spec::default() };
        for (at, packet) in spec.arrivals(now, 0, now + ms(700)) {
            stage.packet(&packet, at);
        }
        now += ms(700);
        stage.change(now);
    }
    // The checker wants each to be one more than the last, modulo 32.
    let versions = stage.finish().checker.pmt_versions;
    assert_eq!((versions.len(), versions.first(), versions.last()), (40, Some(&9), Some(&16)));
}

#[test]
fn silence_after_a_burst_is_enough_to_begin() {
    let mut stage = Stage::new();
    for (at, packet) in Spec::default().arrivals(ms(0), 0, ms(2_000)) {
        stage.packet(&packet, at);
    }
    stage.change(ms(2_000));
    // Three seconds of the past, then nothing.
    for (_, packet) in (Spec { id: 1, ..another() }).packets(0, 3_000) {
        stage.packet(&packet, ms(4_000));
    }
    stage.wait_until(ms(5_000));
    assert!(stage.splice.deadline().is_none());
    let played = stage.finish();
    assert_eq!(played.began[1], Some(ms(4_100)));
}

#[test]
fn a_clock_that_jumps_within_a_source_does_not_confuse_the_next() {
    for jump in [-40_000_000_i64, -3_000_000, 50_000_000, 4_000_000_000] {
        let first = Spec::default();
        let jumped = Spec { start: (900_000 + jump).rem_euclid(1 << 33) as u64, ..Spec::default() };
        let mut stage = Stage::new();
        for (at, packet) in first.packets(0, 4_000) {
            stage.packet(&packet, ms(at));
        }
        let mut last = 0;
        for (at, packet) in jumped.packets(4_000, 4_000) {
            stage.packet(&packet, ms(at));
            last = crate::ts::clock::stamps(Packet::new(&packet)).pts.unwrap_or(last);
        }
        stage.change(ms(8_000));
        for (at, packet) in (Spec { id: 1, ..another() }).arrivals(ms(9_000), 0, ms(12_000)) {
            stage.packet(&packet, at);
        }
        let output = stage.output.iter().filter(|it| it.0 >= ms(9_000)).flat_map(|it| it.1.clone());
        let output: Vec<u8> = output.collect();
        let stamp =
            packets(&output).find_map(|packet| crate::ts::clock::stamps(Packet::new(packet)).pts).unwrap();
        let step = crate::ts::clock::distance(last, stamp, 1 << 33) / 90;
        assert!((1_000..2_000).contains(&step), "jump {jump}: then a step of {step} ms");
    }
}

#[test]
fn a_pcr_that_has_nothing_to_do_with_the_time_stamps_is_not_believed() {
    for (first_error, second_error) in [(0, 5_000_000), (5_000_000, 0), (7_000_000, 90_000_000)] {
        let strange = |packets: Vec<(Duration, PacketBytes)>, error: u64| {
            packets.into_iter().map(move |(at, mut packet)| {
                if let Some(pcr) = Packet::new(&packet).pcr() {
                    crate::ts::packet::set_pcr(&mut packet, pcr + error * 300);
                }
                (at, packet)
            })
        };
        let acts = two(Spec::default(), another(), 2_000, 1_000);
        let mut stage = Stage::new();
        for (at, packet) in strange(acts[0].spec.arrivals(ms(0), 0, acts[0].lost), first_error) {
            stage.packet(&packet, at);
        }
        stage.change(acts[0].lost);
        for (at, packet) in
            strange(acts[1].spec.arrivals(acts[1].connects, 1_000, acts[1].lost), second_error)
        {
            stage.packet(&packet, at);
        }
        let played = stage.finish_with(Checker::without_clock());
        let step = (first_pes(&played, 1).show - last_show(&played, 0)) / 90;
        assert!((1_000..3_000).contains(&step), "a step of {step} ms");
    }
}

/// A packet of sections on a PID.
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

/// Which source PIDs of sections come through, in a first source and after a change.
fn section_pids(stream_type: u8, pid: u16) -> (bool, bool) {
    let spec = Spec { audio: vec![AAC, stream_type], ..Spec::default() };
    let mut stage = Stage::new();
    let mut counter = 0;
    for round in 0..2u64 {
        for (at, packet) in spec.packets(0, 3_000) {
            let is_sound = packet[1] & 0x1F == 1 && packet[2] == 2;
            let packet = if is_sound { section_packet(pid, counter) } else { packet };
            counter += u8::from(is_sound) & 15;
            counter &= 15;
            stage.packet(&packet, ms(round * 4_000 + at));
        }
        if round == 0 {
            stage.change(ms(3_000));
        }
    }
    let is_through = |from: u64| {
        let late = stage.output.iter().filter(|it| it.0 >= ms(from) && it.0 < ms(from + 3_000));
        late.flat_map(|it| it.1.chunks(188)).any(|packet| packet[5..7] == [0x74, 0x70])
    };
    (is_through(0), is_through(4_000))
}

#[test]
fn sections_without_times_go_on_and_others_end_at_a_change() {
    assert_eq!(section_pids(0x05, 0x102), (true, true));
    // Cue messages name times of the source.
    assert_eq!(section_pids(0x86, 0x102), (true, false));
    // Service information is not announced by the map: it speaks of the first source's services.
    assert_eq!(section_pids(0x05, 0x11), (true, false));
}

#[test]
fn scrambled_packets_do_not_come_through_after_a_change() {
    let mut stage = Stage::new();
    for (at, packet) in Spec::default().packets(0, 2_000) {
        stage.packet(&packet, ms(at));
    }
    stage.change(ms(2_000));
    let other = Spec { id: 1, ..another() };
    for (at, mut packet) in other.packets(0, 3_000) {
        // The sound cannot be read: it could not be moved in time.
        if packet[2] == 0x45 {
            packet[3] |= 0x80;
        }
        stage.packet(&packet, ms(2_500 + at));
    }
    let played = stage.finish();
    assert!(played.checker.pes.iter().filter(|pes| pes.source == 1).all(|pes| pes.pid == 0x100));
}

#[test]
fn a_new_map_in_the_first_source_passes_and_is_remembered() {
    let spec = Spec::default();
    let (_, mut pmt) = spec.tables();
    pmt.version += 1;
    pmt.streams.truncate(1);
    let mut new_map = pmt.packets(spec.pmt_pid, 0).remove(0);
    let mut stage = Stage::new();
    let mut input = Vec::new();
    for (at, packet) in spec.packets(0, 3_000) {
        let pid = u16::from_be_bytes([packet[1] & 0x1F, packet[2]]);
        let mut packet = packet;
        if pid == spec.pmt_pid && at >= 1_000 {
            set_cc(&mut new_map, packet[3]);
            packet = new_map;
        }
        // The sound ends when it is no longer announced.
        if pid != 0x101 || at < 900 {
            input.push(packet);
            stage.packet(&packet, ms(at));
        }
    }
    let passed: Vec<u8> = stage.output.iter().flat_map(|it| it.1.clone()).collect();
    assert_eq!(
        packets(&passed).skip(4).collect::<Vec<_>>(),
        input.iter().skip(2).skip(2).collect::<Vec<_>>()
    );
    stage.change(ms(3_000));
    for (at, packet) in (Spec { id: 1, ..another() }).arrivals(ms(3_500), 0, ms(6_000)) {
        stage.packet(&packet, at);
    }
    let played = stage.finish();
    assert_eq!(played.checker.pmt_versions, [9, 10, 11]);
    assert_eq!(played.checker.streams.keys().copied().collect::<Vec<_>>(), [0x100, 0x101]);
}

#[test]
fn what_is_held_is_bounded() {
    let settings = SpliceSettings { held_bytes_max: 400 * 188, ..SpliceSettings::default() };
    let mut splice = Splice::new(settings.clone());
    let mut out = BytesMut::new();
    // No tables, for ever.
    for (_, packet) in Spec::default().packets(1, 99).into_iter().skip(2) {
        for _ in 0..200 {
            splice.packet(Packet::new(&packet), ms(1), &mut out);
        }
    }
    assert!(out.is_empty());
    assert!(held(&splice) <= 400);
    // A fast source without key frames begins when no more can be held.
    let mut splice = Splice::new(settings);
    for (_, packet) in (Spec { gop: 100_000, ..Spec::default() }).packets(40, 4_000) {
        splice.packet(Packet::new(&packet), ms(1), &mut out);
        assert!(held(&splice) <= 402);
    }
    assert!(splice.is_forwarding());
}

fn held(splice: &Splice) -> usize {
    match &splice.phase {
        super::Phase::Gathering(gathering) => gathering.held.len(),
        super::Phase::Forwarding(_) => 0,
    }
}
