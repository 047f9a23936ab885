//! How soon do readers get the programmes of 20,000 channels, and how much memory does it take?
//!
//! A gateway in this process has one guide with 2,000,000 programmes of 14 days, and serves clients on loopback sockets.
//! One after the other, they request the whole guide in XMLTV, plain, compressed, and with the entity tag that it had; then
//! short lists of apps, grids of 50 channels and 6 hours, and pages of searches. Then 200 apps request a short list at the
//! same moment, and 20 clients the whole guide; the peak memory before and after shows that pieces of the guide are in
//! memory and not the guide.
//!
//! `cargo bench --bench guide_readers -- [--channels 20000] [--programmes 2000000]`

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "this bench does not pause time")]

#[path = "support/gateway.rs"]
mod gateway;
#[path = "support/memory.rs"]
mod memory;
mod support;
#[path = "../tests/it/support/mod.rs"]
#[expect(dead_code, reason = "benches use a part of the test support")]
mod test_support;
#[path = "support/timed_get.rs"]
mod timed_get;

use std::net::SocketAddr;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use domain::guide::channel::GuideChannel;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::guide::state::{GuideState, GuideStatus};
use domain::ids::{GuideChannelId, GuideSourceId, UserId};
use domain::secret::Secret;
use domain::user::{User, UserLevel};
use serde_json::{Map, Value, json};
use storage::Models;
use storage::guide::GuideFiles;

use self::memory::peak_resident_bytes;
use self::support::percentile;
use self::test_support::api::{ADMIN, Api, PASSWORD};
use self::timed_get::{TimedAnswer, timed_get};

const MIB: f64 = 1024.0 * 1024.0;
const SOURCE: GuideSourceId = GuideSourceId(1);
const HOUR: i64 = 3_600;
const DAYS: i64 = 14;
/// Words of titles.
const WORDS: u64 = 20_000;
/// Requests of each kind of output, and of each other kind.
const OUTPUTS: usize = 5;
const REQUESTS: usize = 200;
/// Apps that ask at the same moment, and clients that read the whole guide.
const APPS: usize = 200;
const CLIENTS: usize = 20;
/// A write takes a bounded number of records; a channel has two.
const CHANNELS_OF_A_WRITE: u32 = 10_000;
const PLAYER: &str = "username=player&password=player";

/// The path of the request at a position.
type PathOf<'a> = Box<dyn Fn(usize) -> String + 'a>;

fn main() {
    let (n_channels, n_programmes) = (option("--channels", 20_000), option("--programmes", 2_000_000));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let gateway = runtime.block_on(gateway::start(n_channels, |id| Some(key(id))));
    let address = gateway.player_addr();
    let (models, files) = (gateway.models().clone(), gateway.guide_files().clone());
    let begin = (actors::now_ms() / 1000).div_euclid(24 * HOUR) * 24 * HOUR - 24 * HOUR;
    fill(&models, &files, n_channels, n_programmes, begin);
    let token = runtime.block_on(async {
        let admin = Api::stranger_at(address).become_first_admin().await;
        admin.token(ADMIN, PASSWORD).await.text("access").to_owned()
    });
    let bearer = format!("Authorization: Bearer {token}\r\n");
    println!("{n_programmes} programmes of {n_channels} channels");

    let outputs = outputs(address);
    let whole = |path: &str| timed_get(address, path, &bearer, Duration::ZERO);
    let mut pages = Map::new();
    let paths: [(&str, PathOf<'_>); 8] = [
        ("short list of 4", Box::new(|at| short_list(at, n_channels))),
        (
            "table of a channel",
            Box::new(|at| short_list(at, n_channels).replace("short_epg", "simple_data_table")),
        ),
        ("grid of 50 channels and 6 hours", Box::new(|at| grid(at, n_channels, begin))),
        ("search of a rare word", Box::new(|at| search(&format!("title=word{}", 19_000 + at)))),
        ("search of a prefix", Box::new(|at| search(&format!("title=word{}", 1 + at % 9)))),
        ("search of two words", Box::new(|at| search(&format!("title=word{}%20word{}", at % 99, at % 98)))),
        (
            "search of what runs",
            Box::new(|at| search(&format!("airing_at={}", iso(begin + at as i64 * HOUR)))),
        ),
        ("search of all", Box::new(|at| search(&format!("page={}", at + 1)))),
    ];
    for (name, path) in paths {
        let mut all: Vec<f64> = (0..REQUESTS).map(|at| whole(&path(at)).end_ms).collect();
        let [p50, p99] = [0.5, 0.99].map(|p| percentile(&mut all, p));
        println!("{name:>32}: p50 {p50:.1} ms, p99 {p99:.1} ms");
        pages.insert(name.to_owned(), json!({ "p50_ms": p50, "p99_ms": p99 }));
    }

    let apps = at_once(APPS, |at| timed_get(address, &short_list(at, n_channels), "", Duration::ZERO));
    let guides = at_once(CLIENTS, |_| timed_get(address, "/output/epg", "", Duration::from_micros(100)));
    println!("{APPS} short lists at once: {apps}");
    println!("{CLIENTS} guides at once: {guides}");
    let results = json!({
        "channels": n_channels, "programmes": n_programmes, "outputs": outputs, "pages": pages,
        "short_lists_at_once": apps, "guides_at_once": guides,
    });
    support::record("guide_readers", results);
    runtime.block_on(gateway.stop());
}

fn key(channel: u32) -> String {
    format!("channel{channel}.example")
}

/// Stores the guide, and the user of apps.
fn fill(models: &Models, files: &GuideFiles, n_channels: u32, n_programmes: u32, begin: i64) {
    let mut writer = files.begin(SOURCE).expect("room on the disk");
    let of_channel = i64::from(n_programmes.div_ceil(n_channels));
    let duration = DAYS * 24 * HOUR / of_channel;
    let mut random = 1u64;
    let mut word = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Small numbers are more frequent, as words of a language are.
        let n = (random >> 33) % WORDS;
        n * n / WORDS
    };
    for channel in 1..=n_channels {
        for slot in 0..of_channel {
            let title = format!("word{} word{}", word(), word());
            let inner = format!("<title>{title}</title><desc>About word{}.</desc>", word());
            let start = begin + slot * duration;
            writer.add(GuideChannelId(channel), start, start + duration, &inner).expect("room on the disk");
        }
    }
    let finished = writer.finish().expect("room on the disk");
    let state = GuideState {
        status: GuideStatus::Success,
        generation: finished.generation(),
        n_channels: n_channels.into(),
        n_programmes: finished.n_programmes(),
        ..GuideState::new(SOURCE)
    };
    for first in (1..=n_channels).step_by(CHANNELS_OF_A_WRITE as usize) {
        let last = n_channels.min(first + CHANNELS_OF_A_WRITE - 1);
        let write = move |write: &mut storage::Write<'_>| {
            (first..=last).try_for_each(|id| {
                let (key, names) = (key(id), vec![format!("Channel {id}")]);
                write.put(&GuideChannel { id: GuideChannelId(id), source: SOURCE, key, names, icon: None })
            })
        };
        models.store.write_blocking(write).expect("the store can be written");
    }
    let write = move |write: &mut storage::Write<'_>| {
        let player = User::new(UserId(write.next_id::<User>()?), "player", UserLevel::Streamer, 0);
        write.put(&User { player_password: Some(Secret::new("player")), ..player })?;
        write.put(&GuideSource::new(SOURCE, "Guide", GuideSourceKind::Xmltv, 0))?;
        write.put(&state)
    };
    models.store.write_blocking(write).expect("the store can be written");
    files.install(finished);
}

/// Measures the guide in XMLTV as one client requests it.
fn outputs(address: SocketAddr) -> Value {
    let mut kinds = Map::new();
    let get = |path: &str, header: &str| timed_get(address, path, header, Duration::ZERO);
    for (name, path, header) in [
        ("all days", "/output/epg", ""),
        ("all days, gzip", "/output/epg", "Accept-Encoding: gzip\r\n"),
        ("one day", "/output/epg?days=1", ""),
    ] {
        let before = peak_since_now();
        let answers: Vec<TimedAnswer> = (0..OUTPUTS).map(|_| get(path, header)).collect();
        let growth = (peak_resident_bytes() - before) as f64 / MIB;
        let known = format!("If-None-Match: {}\r\n", answers[0].tag.as_deref().expect("an entity tag"));
        let mut unchanged: Vec<f64> = (0..OUTPUTS).map(|_| get(path, &known).end_ms).collect();
        let mut firsts: Vec<f64> = answers.iter().map(|it| it.first_ms).collect();
        let mut ends: Vec<f64> = answers.iter().map(|it| it.end_ms).collect();
        let [first, end, same] = [&mut firsts, &mut ends, &mut unchanged].map(|it| percentile(it, 0.95));
        let megabytes = answers[0].bytes as f64 / 1e6;
        let rate = megabytes / (percentile(&mut ends, 0.5) / 1e3);
        println!(
            "{name:>16}: first byte {first:.1} ms, end {end:.0} ms, 304 {same:.1} ms (p95); {megabytes:.0} MB, \
             {rate:.0} MB/s, memory {growth:.1} MiB"
        );
        let results = json!({
            "first_byte_ms": first, "end_ms": end, "unchanged_ms": same, "mb": megabytes, "mb_per_second": rate,
            "peak_growth_mib": growth,
        });
        kinds.insert(name.to_owned(), results);
    }
    Value::Object(kinds)
}

/// Requests something from many threads at the same moment.
fn at_once(n: usize, ask: impl Fn(usize) -> TimedAnswer + Sync) -> Value {
    let barrier = Barrier::new(n);
    let before = peak_since_now();
    let begun = Instant::now();
    let begin = |at: usize| {
        barrier.wait();
        ask(at)
    };
    let begin = &begin;
    let answers: Vec<TimedAnswer> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..n).map(|at| scope.spawn(move || begin(at))).collect();
        clients.into_iter().map(|it| it.join().expect("a client is answered")).collect()
    });
    let all_ms = begun.elapsed().as_secs_f64() * 1e3;
    let growth = (peak_resident_bytes() - before) as f64 / MIB;
    let mut firsts: Vec<f64> = answers.iter().map(|it| it.first_ms).collect();
    let mut ends: Vec<f64> = answers.iter().map(|it| it.end_ms).collect();
    let [first, p50, p99] =
        [percentile(&mut firsts, 0.99), percentile(&mut ends, 0.5), percentile(&mut ends, 0.99)];
    json!({
        "clients": n, "first_byte_p99_ms": first, "p50_ms": p50, "p99_ms": p99, "all_ms": all_ms,
        "peak_growth_mib": growth,
    })
}

fn short_list(at: usize, n_channels: u32) -> String {
    let channel = at * 7_919 % n_channels as usize + 1;
    format!("/player_api.php?{PLAYER}&action=get_short_epg&stream_id={channel}")
}

fn grid(at: usize, n_channels: u32, begin: i64) -> String {
    let ids: Vec<String> =
        (0..50).map(|it| ((at * 31 + it * 7) % n_channels as usize + 1).to_string()).collect();
    let start = begin + HOUR * (at as i64 * 5 % (DAYS * 24 - 6));
    format!("/api/epg/grid/?channels={}&start={}&end={}", ids.join(","), iso(start), iso(start + 6 * HOUR))
}

fn search(query: &str) -> String {
    format!("/api/epg/programs/search/?{query}")
}

fn iso(seconds: i64) -> String {
    domain::time::iso_millis(seconds * 1000)
}

/// Returns the resident memory, and lets the peak begin anew.
fn peak_since_now() -> u64 {
    // Not possible in every container: the peak is then that of the whole run.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    peak_resident_bytes()
}

fn option(name: &str, default: u32) -> u32 {
    let arguments: Vec<String> = std::env::args().collect();
    let at = arguments.iter().position(|it| it == name);
    at.map_or(default, |at| arguments[at + 1].parse().expect("a number"))
}
