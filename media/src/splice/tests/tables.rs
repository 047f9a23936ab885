//! Tables and sections, within a source and after a change.

use super::*;

#[test]
fn tables_with_the_same_content_keep_their_versions() {
    let segments = two(Spec::default(), Spec::default(), 500, 0);
    let mut segments = segments.to_vec();
    segments[1].spec.id = 0;
    let played = play(&segments);
    assert_eq!((played.checker.pat_versions, played.checker.pmt_versions), (vec![5], vec![9]));
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
fn tables_that_are_wrong_are_right_in_the_output() {
    // The number of the PMT, or every checksum.
    for has_other_number in [true, false] {
        let spec = Spec::default();
        let mut other = spec.tables().1;
        other.program = 77;
        let mut test = TestSplice::new();
        for (at, mut packet) in spec.packets(0, 8_000) {
            let pid = Packet::new(&packet).pid();
            if has_other_number && pid == spec.pmt_pid {
                let cc = packet[3];
                packet = other.packets(pid, 0).remove(0);
                set_cc(&mut packet, cc);
            } else if !has_other_number && (pid == 0 || pid == spec.pmt_pid) {
                let length = usize::from(packet[7]);
                packet[7 + length] ^= 0x55;
            }
            test.packet(&packet, ms(at));
        }
        // The checker refuses tables with another number or a wrong checksum.
        let checker = test.finish().checker;
        assert_eq!(checker.programs.iter().copied().collect::<Vec<_>>(), [(7, 1, 0x1000)]);
        assert!(checker.pes.iter().any(|pes| pes.at > ms(7_000)), "other number: {has_other_number}");
    }
}

#[test]
fn the_first_programme_with_a_picture_is_sent() {
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
