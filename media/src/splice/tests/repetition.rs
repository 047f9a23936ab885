//! Sources that begin with their past: with what was sent already, or on another time line.
use std::collections::HashMap;

use super::frames::held;
use super::*;

/// Position in the programme at time zero, ms.
const NOW_MS: u64 = 60_000;

/// One response of a provider that begins with some of its past.
#[derive(Clone, Debug)]
struct Response {
    spec: Spec,
    connects_ms: u64,
    lost_ms: u64,
    /// Length of the past.
    burst_ms: u64,
    /// Rate of the past, in multiples of that of the programme.
    speed: f64,
    /// Packets arrive together in pieces of this much programme.
    piece_ms: u64,
}

impl Response {
    fn arrivals(&self) -> Vec<(Duration, PacketBytes)> {
        let from = NOW_MS + self.connects_ms - self.burst_ms;
        let length = self.lost_ms - self.connects_ms + self.burst_ms;
        let arrival = |ms: u64| {
            let position = (ms - from) / self.piece_ms * self.piece_ms;
            let sent_ms = (position as f64 / self.speed) as u64;
            ms_after(self.connects_ms, sent_ms.max(position.saturating_sub(self.burst_ms)))
        };
        let packets = self.spec.packets(from, length).into_iter().map(|(ms, packet)| (arrival(ms), packet));
        packets.take_while(|(at, _)| *at < ms(self.lost_ms)).collect()
    }
}

fn ms_after(from_ms: u64, after_ms: u64) -> Duration {
    ms(from_ms + after_ms)
}

/// Responses of this many ms one after the other, with these gaps between them.
fn responses(spec: &Spec, n: u64, length_ms: u64, gap_ms: u64, burst_ms: u64, speed: f64) -> Vec<Response> {
    let response = |n: u64| {
        let connects_ms = n * (length_ms + gap_ms);
        // The counters of a response begin anywhere.
        let spec = Spec { counter: (n * 5 % 16) as u8, ..spec.clone() };
        Response { spec, connects_ms, lost_ms: connects_ms + length_ms, burst_ms, speed, piece_ms: 1 }
    };
    (0..n).map(response).collect()
}

fn play_responses(responses: &[Response]) -> Played {
    play_responses_known(responses, GroupLength::Unknown)
}

fn play_responses_known(responses: &[Response], group: GroupLength) -> Played {
    let mut test = TestSplice::new();
    test.splice.set_group(group);
    for (n, response) in responses.iter().enumerate() {
        if n > 0 {
            test.change(ms(responses[n - 1].lost_ms));
        }
        for (at, packet) in response.arrivals() {
            test.packet(&packet, at);
        }
        test.wait_until(ms(response.lost_ms));
    }
    test.finish()
}

/// Checks that every unit of every stream was sent once, with the distance in time that it has in the source.
#[track_caller]
fn check_whole(played: &Played, context: &str) {
    let mut last: HashMap<u16, (u32, i64)> = HashMap::new();
    for pes in &played.checker.pes {
        let interval = if pes.is_video { 40 } else { 24 };
        if let Some((number, decode)) = last.insert(pes.pid, (pes.number, pes.decode)) {
            let found = (pes.number, (pes.decode - decode) / 90);
            assert_eq!(found, (number + 1, interval), "{context}: PID {:#x} at {:?}", pes.pid, pes.at);
        }
    }
    assert_eq!(played.checker.n_declared, 0, "{context}");
}

fn lead_of(played: &Played, response: &Response) -> i64 {
    lead_ms(played, ms(response.lost_ms - 1_000), ms(response.lost_ms))
}

/// Checks that nothing is lost or repeated, and that the output gets no later.
fn check_continuations(responses: &[Response]) -> Played {
    let played = play_responses(responses);
    let Response { spec, burst_ms, speed, .. } = &responses[0];
    let context = format!("{burst_ms} ms at rate {speed}, {spec:?}");
    check_whole(&played, &context);
    let first = lead_of(&played, &responses[0]);
    for (n, response) in responses.iter().enumerate() {
        let grown = lead_of(&played, response) - first;
        assert!(grown.abs() <= 60, "{context}: the lead has grown by {grown} ms after {n} changes");
    }
    assert!(played.pictures.is_empty(), "{context}: {:?}", played.pictures);
    played
}

fn two_soundtracks() -> Spec {
    Spec { audio: vec![AAC, AAC], ..Spec::default() }
}

#[test]
fn a_source_that_sends_its_past_again_continues_after_the_last_unit() {
    for (burst_ms, speed) in [(10_000, 4.0), (10_000, 1_000.0), (20_000, 8.0), (3_000, 2.0), (12_500, 5.0)] {
        check_continuations(&responses(&two_soundtracks(), 11, 5_013, 300, burst_ms, speed));
    }
}

#[test]
fn a_continuation_is_found_in_streams_of_every_shape() {
    let end = 1u64 << 33;
    let soundtracks = two_soundtracks();
    let wraps = |at_ms: u64| Spec { start: end - at_ms * 90, ..soundtracks.clone() };
    for (gap_ms, spec) in [
        (0, Spec { b_frames: 2, gop: 13, ..soundtracks.clone() }),
        (1_000, Spec { b_frames: 3, video: Some(HEVC), spread_ms: 20, gop: 250, ..soundtracks.clone() }),
        (301, Spec { spread_ms: 15, audio_lead_ms: 400, ..soundtracks.clone() }),
        (517, Spec { spread_ms: 20, audio_lead_ms: -300, video: Some(MPEG2), ..soundtracks.clone() }),
        (300, Spec { video: None, ..soundtracks.clone() }),
        (300, Spec { clock: Clock::Separate, duplicate_every: 7, has_nulls: true, ..soundtracks.clone() }),
        (300, Spec { clock: Clock::Absent, ..soundtracks.clone() }),
        (300, wraps(NOW_MS + 3_000)),
        (300, wraps(NOW_MS + 8_111)),
    ] {
        check_continuations(&responses(&spec, 4, 5_013, gap_ms, 10_000, 4.0));
    }
}

#[test]
fn segments_that_are_sent_again_continue_after_the_last_unit() {
    for piece_ms in [2_000, 4_000, 6_000] {
        let mut responses = responses(&two_soundtracks(), 4, 13_000, 300, 3 * piece_ms, 1_000.0);
        for response in &mut responses {
            // They are the same segments, whenever they are requested.
            let begins = (NOW_MS + response.connects_ms) / piece_ms * piece_ms - 2 * piece_ms;
            response.burst_ms = NOW_MS + response.connects_ms - begins;
            response.piece_ms = piece_ms;
        }
        check_whole(&play_responses(&responses), &format!("segments of {piece_ms} ms"));
    }
}

#[test]
fn another_account_with_the_same_encoder_continues_after_the_last_unit() {
    let mut responses = responses(&two_soundtracks(), 4, 5_013, 300, 10_000, 4.0);
    let other = Spec { first_pid: 0x44, pmt_pid: 0x30, program: 77, ..two_soundtracks() };
    (responses[1].spec, responses[2].spec) = (other.clone(), other);
    // Further behind, and with less of its past.
    (responses[1].burst_ms, responses[2].burst_ms) = (6_000, 14_000);
    let played = check_continuations(&responses);
    assert_eq!(played.checker.types.len(), 3);
}

/// Plays a source for some seconds, and then one that starts at this position for this long, 300 ms after the loss.
fn restart(first: &Spec, second: &Spec, at_ms: u64, length_ms: u64, speed: f64) -> (Played, Duration) {
    let mut test = TestSplice::new();
    for (at, packet) in first.packets(0, 15_000) {
        test.packet(&packet, ms(at));
    }
    test.change(ms(15_000));
    let connects = ms(15_300);
    for (at, packet) in second.packets(at_ms, length_ms) {
        test.packet(&packet, connects + Duration::from_secs_f64((at - at_ms) as f64 / speed / 1_000.0));
    }
    (test.finish(), connects)
}

#[test]
fn a_repetition_that_ends_soon_is_waited_for_at_any_rate() {
    for (behind_ms, speed) in [(2_000, 1.0), (800, 1.0), (2_500, 1.2), (11_000, 1.7), (14_000, 2.0)] {
        let spec = two_soundtracks();
        let (played, connects) = restart(&spec, &spec, 15_000 - behind_ms, behind_ms + 3_000, speed);
        check_whole(&played, &format!("{behind_ms} ms behind at rate {speed}"));
        let begins = played.began[1].unwrap() - connects;
        let expected = behind_ms as f64 / speed;
        assert!((begins.as_millis() as f64 - expected).abs() < 60.0, "{begins:?}, not {expected} ms");
    }
}

#[test]
fn a_repetition_that_takes_too_long_is_played() {
    for (behind_ms, speed) in [(5_000, 1.0), (12_000, 1.0), (3_500, 1.2)] {
        let spec = Spec::default();
        let (played, connects) = restart(&spec, &spec, 15_000 - behind_ms, 12_000, speed);
        let begins = played.began[1].unwrap() - connects;
        assert!(begins <= ms(450), "{behind_ms} ms behind at rate {speed}: {begins:?}");
    }
}

#[test]
fn equal_times_with_other_pictures_are_not_the_same_time_line() {
    // The other one begins with the same time, and even with the same picture.
    for (first, second) in [
        (Spec::default(), Spec { id: 1, ..Spec::default() }),
        (Spec::default(), Spec { gop: 25, ..Spec::default() }),
    ] {
        let (played, connects) = restart(&first, &second, 12_000, 6_000, 1.0);
        let begins = played.began[1].unwrap() - connects;
        assert!(begins <= ms(800), "{begins:?}");
        let pictures: Vec<_> =
            played.checker.pes.iter().filter(|it| it.is_video && it.at >= connects).collect();
        assert!(pictures[0].is_key && pictures[0].number <= 320, "picture {}", pictures[0].number);
    }
}

#[test]
fn a_source_that_played_before_the_last_one_is_not_continued() {
    let mut responses = responses(&Spec::default(), 3, 5_013, 300, 10_000, 1_000.0);
    responses[1].spec = Spec { id: 1, ..another() };
    let played = play_responses(&responses);
    let returned: Vec<_> =
        played.checker.pes.iter().filter(|it| it.at >= ms(responses[2].connects_ms)).collect();
    let picture = returned.iter().find(|it| it.is_video).unwrap();
    assert!(picture.is_key, "picture {}", picture.number);
    assert!(picture.at <= ms(responses[2].connects_ms) + ms(700), "{:?}", picture.at);
}

#[test]
fn a_picture_that_was_missing_before_the_loss_is_not_continued() {
    let spec = Spec { clock: Clock::Separate, ..Spec::default() };
    let mut test = TestSplice::new();
    for (at, packet) in spec.packets(0, 15_000) {
        if at < 9_000 || Packet::new(&packet).pid() != spec.first_pid {
            test.packet(&packet, ms(at));
        }
    }
    test.change(ms(15_000));
    for (at, packet) in spec.packets(5_000, 15_000) {
        test.packet(&packet, ms(15_300 + at.saturating_sub(15_300)));
    }
    let played = test.finish();
    let pictures: Vec<_> =
        played.checker.pes.iter().filter(|it| it.is_video && it.at >= ms(15_300)).collect();
    assert!(pictures[0].is_key && pictures[0].number > 370, "picture {}", pictures[0].number);
}

#[test]
fn a_short_recording_that_is_played_again_and_again_is_not_a_repetition() {
    for video in [Some(H264), None] {
        let clip = Spec { video, ..two_soundtracks() };
        let mut test = TestSplice::new();
        for n in 0..4 {
            let connects = ms(n * 8_000);
            if n > 0 {
                test.change(connects);
            }
            // Ten seconds within one.
            for (at, packet) in clip.packets(0, 10_000) {
                test.packet(&packet, connects + ms(at / 10));
            }
            test.wait_until(connects + ms(7_000));
        }
        let played = test.finish();
        assert!(played.began.iter().all(Option::is_some), "{:?}", played.began);
    }
}

#[test]
fn a_source_that_ends_again_and_again_before_it_has_sent_anything_new_is_played() {
    let spec = two_soundtracks();
    let mut test = TestSplice::new();
    for (at, packet) in spec.packets(0, 15_000) {
        test.packet(&packet, ms(at));
    }
    for n in 0..4 {
        test.change(ms(15_000 + n * 1_000));
        for (at, packet) in spec.packets(7_000, 4_000) {
            test.packet(&packet, ms(15_200 + n * 1_000 + (at - 7_000) / 10));
        }
        test.wait_until(ms(15_900 + n * 1_000));
    }
    let played = test.finish();
    let has_output: Vec<_> = played.began.iter().map(Option::is_some).collect();
    assert_eq!(has_output, [true, false, false, false, true]);
}

/// Responses of sources with clocks of their own, all of which show the same programme.
fn unrelated(n: u64, gop: u32, gap_ms: u64, burst_ms: u64, speed: f64) -> Vec<Response> {
    let mut responses = responses(&Spec { gop, ..two_soundtracks() }, n, 8_013, gap_ms, burst_ms, speed);
    for (n, response) in responses.iter_mut().enumerate() {
        response.spec.id = n as u8;
        response.spec.start = n as u64 * 777_777_777;
    }
    responses
}

#[test]
fn the_past_of_another_time_line_is_cut_at_a_key_frame() {
    for (gop, gap_ms, burst_ms, speed) in [
        (12, 300, 10_000, 4.0),
        (25, 300, 10_000, 1_000.0),
        (50, 1_000, 20_000, 8.0),
        (100, 300, 10_000, 4.0),
        (25, 2_500, 6_000, 2.5),
        (250, 300, 10_000, 4.0),
    ] {
        let responses = unrelated(11, gop, gap_ms, burst_ms, speed);
        let group = GroupLength::Known(ms(40 * u64::from(gop)));
        let played = play_responses_known(&responses, group);
        let context = format!("groups of {gop}, {burst_ms} ms at rate {speed}, {gap_ms} ms gap");
        let first = lead_of(&played, &responses[0]);
        // From the end of the output to the next key frame.
        let left_out_max = 40 * i64::from(gop) + 500;
        for (n, response) in responses.iter().enumerate().skip(1) {
            let pes =
                |source: usize| played.checker.pes.iter().filter(move |it| usize::from(it.source) == source);
            let later = lead_of(&played, response) - first;
            assert!((-200..=2_100).contains(&later), "{context}: {later} ms later after {n} changes");
            let sound = pes(n).find(|it| !it.is_video).unwrap();
            let last = pes(n - 1).rfind(|it| !it.is_video).unwrap();
            let step = (i64::from(sound.number) - i64::from(last.number)) * 24;
            assert!(
                (-2_100..=left_out_max).contains(&step),
                "{context}: {step} ms of sound left out at change {n}"
            );
            let step = (sound.presentation - last.presentation) / 90;
            assert!((0..=left_out_max).contains(&step), "{context}: a step of {step} ms at change {n}");
            let picture = pes(n).find(|it| it.is_video);
            assert!(picture.is_none_or(|it| it.is_key), "{context}: change {n}");
            assert!(picture.is_some() || gop == 250, "{context}: no picture after change {n}");
        }
    }
}

/// Sends this much of the past at this rate after a loss, and returns the greatest number of held packets.
fn held_of_burst(second: &Spec, burst_ms: u64, speed: u64) -> (usize, usize) {
    let settings = SpliceSettings { held_bytes_max: 4 << 20, ..SpliceSettings::default() };
    let mut test = TestSplice { splice: Splice::new(settings), ..TestSplice::new() };
    for (at, packet) in two_soundtracks().packets(60_000, 30_000) {
        test.packet(&packet, ms(at - 60_000));
    }
    test.change(ms(30_000));
    let packets = second.packets(90_300 - burst_ms, burst_ms + 6_000);
    let (mut most, n_packets) = (0, packets.len());
    for (at, packet) in packets {
        let position = at - (90_300 - burst_ms);
        test.packet(&packet, ms(30_300) + ms((position / speed).max(position.saturating_sub(burst_ms))));
        most = most.max(held(&test.splice));
    }
    assert!(test.splice.is_forwarding());
    test.finish();
    (most, n_packets)
}

#[test]
fn a_long_burst_is_not_held_whole() {
    // The newest picture of a repetition, and the last seconds before it.
    let (most, n_packets) = held_of_burst(&two_soundtracks(), 28_000, 10);
    assert!(most < 2_500 && n_packets > 6_000, "{most} of {n_packets} packets were held");
    let (most, n_packets) = held_of_burst(&Spec { id: 1, ..another() }, 55_000, 20);
    assert!(most < 7_000 && n_packets > 10_000, "{most} of {n_packets} packets were held");
}
