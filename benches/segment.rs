//! How much CPU time does it take to make segments of a GiB of transport stream?
//!
//! One file of a real channel through the segmenter of each container: `cargo bench --bench segment -- FILE.ts`. Each
//! result is the best of its rounds; 8 Mbit/s are a GiB in 1074 s.
#![expect(clippy::print_stdout, reason = "a bench prints its results")]

use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{env, fs};

use bytes::Bytes;
use media::segment::{Packager, SegmentContainer, SegmentSettings, SegmentWindow};
use media::ts::packet::PACKET;
use tokio::time::Instant;

const ROUNDS: usize = 5;
/// Length of a chunk of the ring, in packets.
const CHUNK: usize = 300;
/// Seconds of a stream of 8 Mbit/s in a GiB.
const SECONDS: f64 = (1_u64 << 33) as f64 / 8e6;

fn main() {
    let Some(path) = env::args().skip(1).find(|it| !it.starts_with('-')) else {
        println!("usage: cargo bench --bench segment -- FILE.ts");
        return;
    };
    let bytes = Bytes::from(fs::read(&path).expect("the file can be read"));
    for container in [SegmentContainer::Ts, SegmentContainer::Fmp4] {
        let best = (0..ROUNDS).map(|_| play(&bytes, container)).min().unwrap_or_default();
        let per_gib = best.as_secs_f64() * (1_u64 << 30) as f64 / bytes.len() as f64;
        let share = per_gib / SECONDS * 100.0;
        println!("{container:?}: {per_gib:.3} s of CPU per GiB, {share:.3} % of a core for 8 Mbit/s");
    }
}

fn play(bytes: &Bytes, container: SegmentContainer) -> Duration {
    let window = Arc::new(SegmentWindow::new(container, SegmentSettings::default(), SystemTime::now()));
    let mut packager = Packager::new(Arc::clone(&window));
    let start = Instant::now();
    for at in (0..bytes.len() / PACKET * PACKET).step_by(CHUNK * PACKET) {
        packager.push(&bytes.slice(at..bytes.len().min(at + CHUNK * PACKET)), start);
    }
    packager.finish();
    start.elapsed()
}
