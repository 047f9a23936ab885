//! Hostile bytes through everything that reads packets: alignment, tables, clocks, chunks, a ring's preambles. The
//! first byte determines the size of the pieces.

#![no_main]

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use media::ring::{Budget, JoinPoint, RingSettings, Tail, ring};
use media::ts::align::Aligner;
use media::ts::clock::{PCR_MODULUS, STAMP_MODULUS, Unwrap};
use media::ts::packet::{
    PACKET, Packet, PacketBytes, SYNC, packets, set_cc, set_discontinuity, set_pcr, set_pid,
};
use media::ts::pes::{map_stamps, stamps};
use media::ts::picture::PictureReader;
use media::ts::random_access::RandomAccess;
use media::ts::table_reader::TableReader;
use media::ts::tables::descriptors;
use tokio::time::Instant;

fuzz_target!(|data: &[u8]| {
    let Some((first, data)) = data.split_first() else { return };
    let aligned = align(data, usize::from(*first) * 3 + 1);
    read(&aligned);
    // Once aligned, and once without alignment.
    play(&aligned);
    play(&data[..data.len() / PACKET * PACKET]);
});

fn align(data: &[u8], piece: usize) -> Vec<u8> {
    let mut aligner = Aligner::new();
    let mut out = Vec::new();
    for piece in data.chunks(piece) {
        aligner.push(Bytes::copy_from_slice(piece));
        while let Some(run) = aligner.next() {
            assert!(!run.is_empty() && run.len() % PACKET == 0);
            assert!(packets(&run).all(|it| it[0] == SYNC));
            out.extend_from_slice(&run);
        }
    }
    assert!(out.len() as u64 + aligner.n_skipped() <= data.len() as u64);
    out
}

fn read(aligned: &[u8]) {
    let mut reader = TableReader::new();
    let mut picture = None;
    let (mut pcr, mut time) = (Unwrap::pcr(), Unwrap::stamps());
    for packet in packets(aligned) {
        if reader.packet(Packet::new(packet)) {
            picture = reader.tables().and_then(PictureReader::new);
        }
        let view = Packet::new(packet);
        if let Some(value) = view.pcr() {
            assert_eq!(pcr.unwrap(value) % PCR_MODULUS, value);
        }
        if let Some(value) = stamps(view).decode() {
            assert_eq!(time.unwrap(value) % STAMP_MODULUS, value);
        }
        if let Some(picture) = &mut picture {
            picture.packet(view);
            assert!(picture.size().is_none_or(|it| it.width > 0 && it.height > 0));
        }
        if let Some(tables) = reader.tables() {
            if let Some(wanted) = RandomAccess::new(tables) {
                wanted.is_start(view);
            }
            assert!(tables.pids().count() <= tables.pmt.streams.len() + 1);
            for stream in &tables.pmt.streams {
                let _ = (tables.pmt.kind(stream), stream.codec());
                descriptors(&stream.descriptors).for_each(drop);
            }
        }
        change(*packet);
    }
}

/// Checks that written fields are read back.
fn change(mut packet: PacketBytes) {
    let before = stamps(Packet::new(&packet));
    set_pid(&mut packet, 0x123);
    set_cc(&mut packet, 9);
    let has_pcr = set_pcr(&mut packet, 7);
    let has_flag = set_discontinuity(&mut packet);
    let has_stamps = map_stamps(&mut packet, |it| it + STAMP_MODULUS - 1);
    let after = Packet::new(&packet);
    assert_eq!((after.pid(), after.cc()), (0x123, 9));
    assert_eq!((after.pcr().is_some(), after.discontinuity()), (has_pcr, has_flag));
    assert_eq!(before.pts.is_some(), has_stamps);
    let earlier = |it: u64| (it + STAMP_MODULUS - 1) % STAMP_MODULUS;
    assert_eq!(stamps(after).pts, before.pts.map(earlier));
}

/// Fills a ring that is too small, with a viewer from the start, one that pauses, and one that joins late.
fn play(bytes: &[u8]) {
    let budget = Budget::new(60 * PACKET);
    let settings = RingSettings {
        seconds: Duration::from_millis(300),
        bytes: 30 * PACKET,
        gop_bytes: 50 * PACKET,
        slow_client_limit: 6,
    };
    let (mut writer, ring) = ring(settings, &budget);
    let mut now = Instant::now();
    let (mut viewer, mut paused) = (ring.tail(JoinPoint::Oldest, None), ring.tail(JoinPoint::Oldest, None));
    for (index, run) in bytes.chunks(7 * PACKET).enumerate() {
        now += Duration::from_millis(20);
        writer.push_packets(run, now);
        if index % 9 == 8 {
            writer.filler(now);
        }
        drain(&mut viewer);
        if index % 8 == 7 {
            drain(&mut paused);
        }
    }
    let mut late = ring.tail(JoinPoint::Live { behind: Duration::from_millis(60) }, None);
    drain(&mut late);
    drop(writer);
    for tail in [&mut viewer, &mut paused, &mut late] {
        drain(tail);
    }
    drop((ring, viewer, paused, late));
    assert_eq!(budget.used(), 0);
}

fn drain(tail: &mut Tail) {
    while let Poll::Ready(Ok(bytes)) = tail.poll_chunk(&mut Context::from_waker(Waker::noop())) {
        assert!(!bytes.is_empty() && bytes.len() % PACKET == 0);
        assert!(packets(&bytes).all(|it| it[0] == SYNC));
    }
}
