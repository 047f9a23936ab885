//! How many bytes per second can one core move from packets into the ring?
//!
//! Three parts: finding packets, cutting chunks (tables, counters, clocks, random access), and both with a ring and a
//! viewer. `cargo bench --bench ts_scan`; each result is the best of its rounds.
#![expect(clippy::print_stdout, reason = "a bench prints its results")]

use std::hint::black_box;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use media::chunker::Chunker;
use media::ring::{Budget, JoinPoint, RingSettings, ring};
use media::ts::align::Aligner;
use media::ts::packet::{PACKET, Packet, SYNC, packets, set_cc, set_pid};
use media::ts::tables::{ElementaryStream, Pat, Pmt};
use tokio::time::Instant;

const PACKETS: usize = 400_000;
const ROUNDS: usize = 7;
/// Typical size of one read from a socket; not a multiple of a packet.
const READ_BYTES: usize = 16 * 1024;

fn main() {
    let stream = Bytes::from(stream());
    report("find packets", &stream, || {
        let mut aligner = Aligner::new();
        read(&stream, &mut aligner, |run| drop(black_box(run)));
    });
    report("find packets, cut chunks", &stream, || {
        let (mut aligner, mut chunker) = (Aligner::new(), Chunker::new());
        let now = Instant::now();
        read(&stream, &mut aligner, |run| {
            packets(&run).for_each(|it| drop(black_box(chunker.push(Packet::new(it), now))));
        });
    });
    report("find packets, cut chunks, ring, one viewer", &stream, || {
        let (mut writer, ring) = ring(RingSettings::default(), &Budget::new(usize::MAX));
        let mut tail = ring.tail(JoinPoint::Oldest, None);
        let mut aligner = Aligner::new();
        let mut context = Context::from_waker(Waker::noop());
        read(&stream, &mut aligner, |run| {
            writer.push_packets(&run, Instant::now());
            while let Poll::Ready(Ok(bytes)) = tail.poll_chunk(&mut context) {
                black_box(bytes);
            }
        });
        assert_eq!(tail.meter().overruns(), 0);
    });
}

fn read(stream: &Bytes, aligner: &mut Aligner, mut run: impl FnMut(Bytes)) {
    for start in (0..stream.len()).step_by(READ_BYTES) {
        aligner.push(stream.slice(start..stream.len().min(start + READ_BYTES)));
        while let Some(packets) = aligner.next() {
            run(packets);
        }
    }
}

fn report(name: &str, stream: &Bytes, mut round: impl FnMut()) {
    let best = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            round();
            start.elapsed()
        })
        .min()
        .unwrap_or_default();
    let seconds = best.as_secs_f64();
    let (rate, each) = (stream.len() as f64 / seconds / 1e9, seconds * 1e9 / PACKETS as f64);
    println!("{name:45} {rate:6.2} GB/s  {each:6.1} ns per packet");
}

/// An 8 Mbit/s channel: video with a key frame each second, audio, tables every 100 ms.
fn stream() -> Vec<u8> {
    let stream = |stream_type, pid| ElementaryStream { stream_type, pid, descriptors: Vec::new() };
    let pat = Pat { stream_id: 1, version: 0, programs: vec![(1, 0x100)] };
    let pmt = Pmt {
        program: 1,
        version: 0,
        pcr_pid: 0x101,
        program_info: Vec::new(),
        streams: vec![stream(0x1B, 0x101), stream(0x0F, 0x102)],
    };
    let mut counters = [0_u8; 8192];
    let mut bytes = Vec::with_capacity(PACKETS * PACKET);
    for number in 0..PACKETS {
        let mut packet = match number % 532 {
            0 => pat.packets(0)[0],
            1 => pmt.packets(0x100, 0)[0],
            _ => [0xA5; PACKET],
        };
        let pid = match number % 532 {
            0 => 0,
            1 => 0x100,
            it if it % 20 == 19 => 0x102,
            _ => 0x101,
        };
        if pid > 0x100 {
            packet[..4].copy_from_slice(&[SYNC, 0, 0, 0x10]);
            set_pid(&mut packet, pid);
            // A picture starts every 213 packets.
            if pid == 0x101 && number % 213 == 2 {
                packet[1] |= 0x40;
                let slice = if number % 5325 == 2 { 0x65 } else { 0x41 };
                packet[4..18].copy_from_slice(&[0, 0, 1, 0xE0, 0, 0, 0x80, 0, 0, 0, 0, 1, slice, 0]);
            }
        }
        let counter = &mut counters[usize::from(pid)];
        set_cc(&mut packet, *counter);
        *counter = (*counter + 1) & 0x0F;
        bytes.extend_from_slice(&packet);
    }
    bytes
}
