//! The times of the output over changes of the source.

use super::*;

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
        // The streams have played before: twelve pictures are a group.
        test.splice.set_group(GroupLength::Known(ms(480)));
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
