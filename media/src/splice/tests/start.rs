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
