//! How soon does a playlist of 20,000 channels begin and end, and how much memory does it take?
//!
//! A gateway in this process serves the channels to clients on loopback sockets, one after the other: the whole playlist
//! and guide, plain and compressed, and the answer that nothing has changed. Then 200 clients request the playlist at the
//! same moment and read slowly; the peak memory before and after shows that pieces of the text are in memory and not the
//! texts.
//!
//! `cargo bench --bench playlist_output -- [--channels 20000]`

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "this bench does not pause time")]

#[path = "support/gateway.rs"]
mod gateway;
#[path = "support/memory.rs"]
mod memory;
mod support;
#[path = "support/timed_get.rs"]
mod timed_get;

use std::time::Duration;

use serde_json::{Map, Value, json};

use self::memory::peak_resident_bytes;
use self::support::percentile;
use self::timed_get::{TimedAnswer, timed_get};

const MIB: f64 = 1024.0 * 1024.0;
/// Requests of each kind.
const REPEATS: usize = 30;
/// Clients that read at the same time.
const CLIENTS: usize = 200;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let n =
        arguments.iter().position(|it| it == "--channels").and_then(|at| arguments.get(at + 1)?.parse().ok());
    let n: u32 = n.unwrap_or(20_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let gateway = runtime.block_on(gateway::start(n, |_| None));
    let address = gateway.player_addr();

    let mut kinds = Map::new();
    let whole = |path: &str, header: &str| timed_get(address, path, header, Duration::ZERO);
    for (name, path, header) in [
        ("playlist", "/output/m3u", ""),
        ("playlist, gzip", "/output/m3u", "Accept-Encoding: gzip\r\n"),
        ("guide", "/output/epg", ""),
        ("guide, gzip", "/output/epg", "Accept-Encoding: gzip\r\n"),
    ] {
        let tag = whole(path, header).tag.expect("an entity tag");
        let known = format!("If-None-Match: {tag}\r\n");
        let answers: Vec<TimedAnswer> = (0..REPEATS).map(|_| whole(path, header)).collect();
        let mut firsts: Vec<f64> = answers.iter().map(|it| it.first_ms).collect();
        let mut ends: Vec<f64> = answers.iter().map(|it| it.end_ms).collect();
        let mut unchanged: Vec<f64> = (0..REPEATS).map(|_| whole(path, &known).end_ms).collect();
        let [first, end, same] = [&mut firsts, &mut ends, &mut unchanged].map(|it| percentile(it, 0.95));
        let kib = answers[0].bytes / 1024;
        println!("{name:>16}: first byte {first:.1} ms, end {end:.1} ms, 304 {same:.1} ms (p95); {kib} KiB");
        let results = json!({ "first_byte_ms": first, "end_ms": end, "unchanged_ms": same, "kib": kib });
        kinds.insert(name.to_owned(), results);
    }

    let before = peak_resident_bytes() as f64 / MIB;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| std::thread::spawn(move || timed_get(address, "/output/m3u", "", Duration::from_millis(1))))
        .collect();
    let answers: Vec<TimedAnswer> = clients.into_iter().map(|it| it.join().expect("a client")).collect();
    let growth = peak_resident_bytes() as f64 / MIB - before;
    let mut firsts: Vec<f64> = answers.iter().map(|it| it.first_ms).collect();
    let first = percentile(&mut firsts, 0.95);
    println!("{CLIENTS} clients at once: first byte {first:.1} ms (p95), {growth:.0} MiB more at the peak");
    let many = json!({ "clients": CLIENTS, "first_byte_ms": first, "peak_growth_mib": growth });
    let results = json!({ "channels": n, "one_at_a_time": Value::Object(kinds), "at_once": many });
    support::record("playlist_output", results);
    runtime.block_on(gateway.stop());
}
