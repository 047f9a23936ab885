//! How the output of the first source starts.

use super::*;

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
fn an_opening_burst_of_the_first_source_is_part_of_the_programme() {
    let mut segments = two(Spec::default(), another(), 1_000, 3_000).to_vec();
    segments[0].burst_ms = 6_000;
    let played = play(&segments);
    check_length(&played, &segments);
    // The burst is delivered at once.
    assert_eq!(played.began[0], Some(ms(0)));
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
    test.splice.set_recording(true);
    for (n, (_, packet)) in (Spec { id: 1, ..another() }).packets(0, 120_000).iter().enumerate() {
        test.packet(packet, lost + ms(200 + n as u64 / 40));
    }
    let played = test.finish();
    let begin = played.began[1].unwrap() - lost;
    assert!(begin <= ms(200 + 300 + 50), "{begin:?}");
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

/// Returns the segments of a change to a source that connects in the middle of a group of pictures.
fn into_a_group(
    first: Spec,
    second: Spec,
    skipped_ms: u64,
    gap_ms: u64,
) -> (Spec, Vec<(Duration, PacketBytes)>, Duration) {
    let connects = ms(5_000 + gap_ms);
    let second = Spec { id: 1, ..second };
    let arrivals = second.packets(skipped_ms, 20_000).into_iter();
    let arrivals = arrivals.map(|(at, packet)| (connects + ms(at - skipped_ms), packet)).collect();
    (first, arrivals, connects)
}

/// Plays a source for 5 s and then another one, which connects `skipped_ms` after its first key frame.
fn change_into_a_group(
    second: &Spec,
    skipped_ms: u64,
    gap_ms: u64,
    group: GroupLength,
) -> (Played, Duration) {
    let first = Spec { b_frames: second.b_frames, video: second.video, ..Spec::default() };
    let (first, arrivals, connects) = into_a_group(first, second.clone(), skipped_ms, gap_ms);
    let mut test = TestSplice::new();
    for (at, packet) in first.arrivals(ms(0), 0, ms(5_000)) {
        test.packet(&packet, at);
    }
    test.splice.set_group(group);
    test.change(ms(5_000));
    for (at, packet) in &arrivals {
        test.packet(packet, *at);
    }
    (test.finish(), connects)
}

// Holds T-fo.10 for the splice.
#[test]
fn a_change_starts_with_sound_and_the_picture_follows_at_its_key_frame() {
    for video in [H264, MPEG2, HEVC] {
        for (gop, skipped_ms, gap_ms, b_frames) in [
            (100, 500, 300, 0),
            (100, 3_500, 0, 2),
            (250, 500, 1_000, 0),
            (250, 9_000, 300, 3),
            (30, 100, 2_000, 2),
        ] {
            let second = Spec { video: Some(video), gop, b_frames, ..another() };
            let (played, connects) = change_into_a_group(&second, skipped_ms, gap_ms, GroupLength::Unknown);
            let what = format!("{video:#x}, {gop} pictures, {skipped_ms} ms into the group, {gap_ms} ms gap");
            let pes = |is_video: bool| {
                played.checker.pes.iter().filter(move |it| it.source == 1 && it.is_video == is_video)
            };
            let sound = pes(false).next().unwrap();
            assert!(sound.at <= connects + ms(350), "{what}: sound at {:?}", sound.at);
            let picture = pes(true).next().unwrap();
            assert!(picture.is_key, "{what}: picture {}", picture.number);
            let waits_ms = 40 * u64::from(gop) - skipped_ms;
            let expected = connects + ms(waits_ms);
            assert!(picture.at >= expected && picture.at <= expected + ms(60), "{what}: {:?}", picture.at);
            // Nothing that refers to pictures before it follows.
            let early = pes(true).skip(1).find(|it| it.presentation < picture.presentation);
            assert!(early.is_none(), "{what}: {early:?}");
            // Its clock goes on meanwhile.
            let clocks: Vec<Duration> = played.checker.clocks.iter().map(|it| it.0).collect();
            let longest =
                clocks.windows(2).filter(|it| it[0] >= connects + ms(350)).map(|it| it[1] - it[0]).max();
            assert!(longest <= Some(ms(100)), "{what}: {longest:?} without a clock");
            let events: Vec<PictureEvent> = played.pictures.iter().map(|it| it.1).collect();
            let [PictureEvent::Awaited { at_most }, PictureEvent::Began { waited }] = events[..] else {
                panic!("{what}: {events:?}")
            };
            assert!(at_most <= ms(12_000) && at_most >= ms(11_600), "{what}: {at_most:?}");
            assert!(waited.as_millis().abs_diff(u128::from(waits_ms)) <= 350, "{what}: {waited:?}");
        }
    }
}

#[test]
fn a_picture_without_a_key_frame_is_waited_for_one_and_a_half_groups() {
    let second = Spec { gop: 100_000, ..another() };
    for (group, wait_ms) in [
        (GroupLength::Unknown, 12_000),
        (GroupLength::Known(ms(2_000)), 3_000),
        (GroupLength::Known(ms(5_000)), 7_500),
        (GroupLength::Known(ms(10_000)), 12_000),
        (GroupLength::Known(ms(100)), 1_000),
    ] {
        let (played, connects) = change_into_a_group(&second, 500, 300, group);
        let picture = first_pes(&played, 1);
        let expected = connects + ms(wait_ms);
        assert!(picture.at >= expected && picture.at <= expected + ms(80), "{group:?}: {:?}", picture.at);
        assert!(!picture.is_key);
        let sound = played.checker.pes.iter().find(|it| it.source == 1 && !it.is_video).unwrap();
        assert!(sound.at <= connects + ms(350), "{group:?}: sound at {:?}", sound.at);
        assert!(matches!(
            played.pictures[..],
            [(_, PictureEvent::Awaited { .. }), (_, PictureEvent::NoKeyFrame)]
        ));
    }
}

#[test]
fn a_stream_that_has_no_key_frames_starts_with_its_picture() {
    let second = Spec { gop: 100_000, ..another() };
    let (played, connects) = change_into_a_group(&second, 500, 300, GroupLength::None);
    let picture = first_pes(&played, 1);
    assert!(picture.at >= connects + ms(1_000) && picture.at <= connects + ms(1_080), "{:?}", picture.at);
    assert_eq!(played.began[1], Some(picture.at));
    assert!(matches!(played.pictures[..], [(_, PictureEvent::NoKeyFrame)]));
}

#[test]
fn a_picture_without_sound_waits_for_its_key_frame() {
    let second = Spec { gop: 100, audio: vec![], ..another() };
    let (played, connects) = change_into_a_group(&second, 500, 300, GroupLength::Unknown);
    let picture = first_pes(&played, 1);
    assert!(picture.is_key);
    assert_eq!(played.began[1], Some(connects + ms(3_500)));
    assert!(played.pictures.is_empty());
    // After the wait it begins anyway.
    let second = Spec { gop: 100_000, audio: vec![], ..another() };
    let (played, connects) = change_into_a_group(&second, 500, 300, GroupLength::Known(ms(4_000)));
    let began = played.began[1].unwrap() - connects;
    assert!(began >= ms(6_000) && began <= ms(6_080), "{began:?}");
    assert!(matches!(played.pictures[..], [(_, PictureEvent::NoKeyFrame)]));
}

#[test]
fn a_source_that_is_lost_while_its_picture_is_awaited_is_followed_by_another() {
    let (first, arrivals, connects) = into_a_group(Spec::default(), Spec { gop: 100, ..another() }, 500, 300);
    let mut test = TestSplice::new();
    for (at, packet) in first.arrivals(ms(0), 0, ms(5_000)) {
        test.packet(&packet, at);
    }
    test.change(ms(5_000));
    let lost = connects + ms(2_000);
    for (at, packet) in arrivals.iter().filter(|it| it.0 < lost) {
        test.packet(packet, *at);
    }
    test.change(lost);
    let third = Spec { id: 2, ..Spec::default() };
    for (at, packet) in third.arrivals(lost + ms(500), 0, lost + ms(5_000)) {
        test.packet(&packet, at);
    }
    let played = test.finish();
    assert!(!played.checker.pes.iter().any(|it| it.source == 1 && it.is_video));
    assert!(first_pes(&played, 2).is_key);
}
