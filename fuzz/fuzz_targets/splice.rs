//! A sequence of hostile sources through the splice.
//!
//! A byte 0x47 followed by 187 bytes is a packet; any other byte is an event: the source changes, a tick is due, time
//! passes, the clock of the source jumps, the distance of key frames becomes known. So a plain transport stream is a valid input.

#![no_main]

use std::time::Duration;

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use media::groups::GroupLength;
use media::splice::{Splice, SpliceSettings};
use media::ts::clock::STAMP_MODULUS;
use media::ts::packet::{PACKET, PAT_PID, Packet, PacketBytes, SYNC, packets, set_pcr};
use media::ts::pes::map_stamps;

fuzz_target!(|data: &[u8]| {
    // Small enough that an input can reach it.
    let settings = SpliceSettings { held_bytes_max: 40 * PACKET, ..SpliceSettings::default() };
    let mut splice = Splice::new(settings);
    let mut now = Duration::ZERO;
    // Added to all later times of the source.
    let mut jump = 0;
    let mut rest = data;
    while let Some((first, after)) = rest.split_first() {
        let mut out = BytesMut::new();
        let was_through = splice.is_forwarding();
        let mut n_most = 1;
        if *first == SYNC
            && let Some((packet, after)) = rest.split_first_chunk::<PACKET>()
        {
            now += Duration::from_millis(1);
            splice.packet(Packet::new(&with_jump(packet, jump)), now, &mut out);
            rest = after;
        } else {
            rest = after;
            match first % 4 {
                _ if *first >= 0xFB => {
                    jump = (jump + JUMPS[usize::from(first - 0xFB)] * 90_000) % STAMP_MODULUS
                }
                _ if *first >= 0xF8 => splice.set_group(GROUPS[usize::from(first - 0xF8)]),
                0 => splice.change(now, &mut out),
                1 => splice.tick(now, &mut out),
                2 => now += Duration::from_millis(u64::from(*first)),
                // Sometimes longer than the clocks need to wrap.
                _ => now += Duration::from_secs(u64::from(*first).pow(2)),
            }
        }
        n_most += n_ticks(&mut splice, now, &mut out);
        assert!(n_most < 6, "a deadline that stays due");
        check(&out, was_through);
    }
});

/// Seconds by which the clock of a source jumps; most of 2³³ ticks is a jump back.
const JUMPS: [u64; 5] = [2, 11, 50, 26 * 3_600, 95_400];

const GROUPS: [GroupLength; 3] =
    [GroupLength::Unknown, GroupLength::Known(Duration::from_secs(2)), GroupLength::None];

/// Returns a packet with its times moved by this many ticks.
fn with_jump(packet: &PacketBytes, jump: u64) -> PacketBytes {
    let mut moved = *packet;
    map_stamps(&mut moved, |stamp| stamp + jump);
    if let Some(pcr) = Packet::new(packet).pcr() {
        set_pcr(&mut moved, (pcr / 300 + jump) % STAMP_MODULUS * 300 + pcr % 300);
    }
    moved
}

/// Ticks while a deadline is due, and returns the number of ticks.
fn n_ticks(splice: &mut Splice, now: Duration, out: &mut BytesMut) -> u32 {
    let mut n = 0;
    while n < 10 && splice.deadline().is_some_and(|deadline| deadline <= now) {
        splice.tick(now, out);
        n += 1;
    }
    n
}

/// Checks that the output consists of complete packets and that a source starts with its tables.
fn check(out: &[u8], was_through: bool) {
    assert_eq!(out.len() % PACKET, 0);
    for (index, bytes) in packets(out).enumerate() {
        assert_eq!(bytes[0], SYNC);
        let packet = Packet::new(bytes);
        if !was_through && index == 0 {
            assert!(packet.pid() == PAT_PID && packet.pusi() && packet.has_payload());
        }
    }
}
