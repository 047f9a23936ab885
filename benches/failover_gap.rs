//! How long does a viewer receive no programme when its source resets and a healthy second source exists?
//!
//! Fifty channels, one after the other: play, reset the first stream (which then refuses connections), wait for the
//! second. The gap is measured at the viewer, next to the time that the second source itself takes from the request to
//! its first random-access point.
//!
//! Then the same with a source that falls silent and keeps its connection, on two accounts with free slots: there the
//! gateway has to suspect the silence first.
//!
//! `cargo bench --bench failover_gap -- [--channels 50]`

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]

mod support;
#[path = "../tests/it/support/mod.rs"]
#[expect(dead_code, reason = "benches use a part of the test support")]
mod test_support;

use std::time::Duration;

use domain::settings::Settings;
use serde_json::json;

use self::support::percentile;
use self::test_support::gateway::{Setup, TestGateway};
use self::test_support::signal::{FRAME, Picture};
use self::test_support::upstream::{Cut, MockResponse, Provider};

const GOP_FRAMES: u64 = 12;

#[tokio::main(worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let at = arguments.iter().position(|argument| argument == "--channels");
    let n: usize = at.map_or(50, |at| arguments[at + 1].parse().expect("--channels N"));
    let provider = Provider::start();
    let lists = ["first", "second"].map(|label| {
        let mut list = String::from("#EXTM3U\n");
        for number in 0..n {
            let path = format!("/live/bench/{label}-{number}.ts");
            let picture = Picture::new(label).bits_per_second(4_000_000).frames_per_gop(GOP_FRAMES);
            provider.path(&path).plays(picture);
            list.push_str(&format!("#EXTINF:-1 tvg-id=\"{number}\",{number}\n{}\n", provider.url(&path)));
        }
        list
    });
    let gateway = Setup::new().list(&lists.concat()).start().await;
    let (mut gaps, mut own, mut beyond) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..n {
        let (gap, start) = one(&provider, &gateway, number, Cut::Reset).await;
        gaps.push(gap);
        own.push(start);
        beyond.push(gap - start);
    }
    drop(gateway);
    let [first, second] = &lists;
    let defaults = |it: &mut Settings| it.stall_timeout = Settings::default().stall_timeout;
    let gateway = Setup::new().list(first).list(second).engine(defaults).start().await;
    let mut silent_gaps = Vec::new();
    for number in 0..n {
        let path = format!("/live/bench/first-{number}.ts");
        provider
            .path(&path)
            .plays(Picture::new("first").bits_per_second(4_000_000).frames_per_gop(GOP_FRAMES));
        silent_gaps.push(one(&provider, &gateway, number, Cut::Stall).await.0);
    }
    let row = |name: &str, values: &mut Vec<f64>| {
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|p| (percentile(values, p) * 1_000.0).round() / 1_000.0);
        println!("{name:>28}  p50 {p50:6.3} s  p99 {p99:6.3} s  max {max:6.3} s");
        json!({ "p50_seconds": p50, "p99_seconds": p99, "max_seconds": max })
    };
    let results = json!({
        "channels": n,
        "gap_at_the_viewer": row("gap at the viewer", &mut gaps),
        "next_source_own_start": row("the next source's own start", &mut own),
        "beyond_own_start": row("beyond it", &mut beyond),
        "gap_of_a_silent_source": row("gap of a silent source", &mut silent_gaps),
    });
    support::record("failover_gap", results);
}

/// Gap at the viewer, and time that the second source takes by itself, in seconds.
async fn one(provider: &Provider, gateway: &TestGateway, number: usize, cut: Cut) -> (f64, f64) {
    let (first, second) =
        (format!("/live/bench/first-{number}.ts"), format!("/live/bench/second-{number}.ts"));
    let player = gateway.watch(&number.to_string()).await;
    // At another place of the group of pictures each time.
    let played = 1.5 + 0.037 * (number % 13) as f64;
    player.until("the planned play time", |r| r.ts.programme_seconds() > played).await;
    provider.path(&first).answers(MockResponse::status(503)).cut(cut);
    player.sees("second").await;
    let gap = player.received(|r| r.longest_silence_of_payload());
    let asked = provider.path(&second).requests().last().expect("it plays").at;
    let age = asked.duration_since(provider.began());
    let gop = FRAME * GOP_FRAMES as u32;
    let into = Duration::from_nanos((age.as_nanos() % gop.as_nanos()) as u64);
    // A picture that started before the request is sent from its start, so there is nothing to wait for. Close to its
    // end, only the gap shows which of the two cases it was.
    let wait = gop - into;
    let had_the_key_frame = into < FRAME && (into + FRAME / 4 < FRAME || gap < wait);
    let start = if had_the_key_frame { Duration::ZERO } else { wait };
    (gap.as_secs_f64(), start.as_secs_f64())
}
