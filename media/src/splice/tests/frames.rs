//! Packets that wait for the end of their frame.

use super::*;

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
        crate::splice::Phase::Gathering(_) => 0,
        crate::splice::Phase::Forwarding(forwarder) => forwarder.n_waiting(),
    }
}

pub(super) fn held(splice: &Splice) -> usize {
    match &splice.phase {
        crate::splice::Phase::Gathering(gathering) => gathering.held.len(),
        crate::splice::Phase::Forwarding(_) => 0,
    }
}
