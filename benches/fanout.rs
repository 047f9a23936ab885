//! What does it cost to send one channel to many clients, and how large is the delay?
//!
//! Three servers send the same 8 Mbit/s to the same clients in one run: the gateway; a minimal server with one thread
//! and epoll; and a simple design with `tokio::sync::broadcast`. Each server is a separate process, the clients are
//! another, and the source is in this one.
//!
//! `cargo bench --bench fanout -- [--clients 50,200,800] [--seconds 10] [--rounds 3]`

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]

#[path = "support/client_pool.rs"]
#[expect(dead_code, reason = "this bench does not compare clocks")]
mod client_pool;
#[path = "fanout/clients.rs"]
mod clients;
#[path = "support/process.rs"]
#[expect(dead_code, reason = "this bench sends no commands and reads no peak")]
mod process;
#[path = "fanout/reference_servers.rs"]
mod reference_servers;
mod support;
#[path = "../tests/it/support/mod.rs"]
#[expect(dead_code, reason = "benches use a part of the test support")]
mod test_support;

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};

use self::process::{Process, free_port};
use self::support::percentile;
use self::test_support::signal::Picture;
use self::test_support::upstream::{MockResponse, Provider};

const SOURCE: &str = "/live/bench/channel.ts";
const BITS_PER_SECOND: u64 = 8_000_000;
const SERVERS: [&str; 3] = ["headwater", "epoll", "broadcast"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.first().map(String::as_str) {
        Some("epoll") => reference_servers::epoll(&arguments[1], &arguments[2]),
        Some("broadcast") => reference_servers::broadcast(&arguments[1], &arguments[2]),
        Some("clients") => clients::run(&arguments[1..]),
        _ => measure(&arguments),
    }
}

/// Results of one server with one number of clients.
#[derive(Debug, Clone)]
struct Figures {
    cpu_per_gib: f64,
    memory_per_client: f64,
    lag_p99_ms: f64,
    join_p50_ms: f64,
    join_p99_ms: f64,
    /// Fraction of the source's bytes that each client received.
    delivered: f64,
}

fn measure(arguments: &[String]) {
    let option = |name: &str, default: &str| {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1)).cloned().unwrap_or_else(|| default.to_owned())
    };
    let seconds: u64 = option("--seconds", "10").parse().expect("--seconds N");
    let rounds: usize = option("--rounds", "3").parse().expect("--rounds N");
    let counts: Vec<usize> =
        option("--clients", "50,200,800").split(',').map(|n| n.parse().expect("--clients N,N")).collect();
    let only = option("--servers", &SERVERS.join(","));

    let provider = Provider::start();
    let picture = Picture::new("bench").bits_per_second(BITS_PER_SECOND).frames_per_gop(50);
    provider.path(SOURCE).answers(MockResponse::play(picture));

    println!(
        "{:>9} {:>8}  {:>9} {:>11} {:>9} {:>9} {:>9} {:>10}",
        "server", "clients", "CPU s/GiB", "KiB/client", "lag p99", "join p50", "join p99", "delivered"
    );
    let mut results = Vec::new();
    for &n in &counts {
        for server in SERVERS.into_iter().filter(|server| only.contains(server)) {
            let mut runs: Vec<Figures> = (0..rounds).map(|_| one(&provider, server, n, seconds)).collect();
            runs.sort_by(|a, b| a.cpu_per_gib.total_cmp(&b.cpu_per_gib));
            let middle = &runs[runs.len() / 2];
            println!(
                "{server:>9} {n:>8}  {:>9.3} {:>11.1} {:>6.1} ms {:>6.1} ms {:>6.1} ms {:>9.1}%",
                middle.cpu_per_gib,
                middle.memory_per_client / 1024.0,
                middle.lag_p99_ms,
                middle.join_p50_ms,
                middle.join_p99_ms,
                middle.delivered * 100.0,
            );
            results.push(json!({
                "server": server,
                "clients": n,
                "middle": as_json(middle),
                "runs": runs.iter().map(as_json).collect::<Vec<_>>(),
            }));
        }
    }
    support::record(
        "fanout",
        json!({ "bits_per_second": BITS_PER_SECOND, "seconds": seconds, "rows": results }),
    );
}

fn as_json(figures: &Figures) -> Value {
    let rounded = |value: f64| (value * 1_000.0).round() / 1_000.0;
    json!({
        "cpu_seconds_per_gib": rounded(figures.cpu_per_gib),
        "memory_bytes_per_client": figures.memory_per_client.round(),
        "lag_p99_ms": rounded(figures.lag_p99_ms),
        "join_p50_ms": rounded(figures.join_p50_ms),
        "join_p99_ms": rounded(figures.join_p99_ms),
        "delivered": rounded(figures.delivered),
    })
}

fn one(provider: &Provider, server: &str, n: usize, seconds: u64) -> Figures {
    let (process, address, path, _files) = start(provider, server);
    // One client fills the ring and starts every thread, so that the difference in memory is that of the clients.
    let first = join(address, &path, 1, 12, 0);
    let before = process.resident();
    // The clients of the reference servers wait for the next random-access point, so a few of them are enough.
    let probes = if server == "headwater" { 100 } else { 10 };
    let mut clients = join(address, &path, n, seconds, probes);
    assert_eq!(clients.line(), "begin");
    let cpu = process.cpu();
    assert_eq!(clients.line(), "end");
    let cpu = process.cpu() - cpu;
    let resident = process.resident();
    let report: Value = serde_json::from_str(&clients.line()).expect("clients report");
    drop(first);
    let numbers = |name: &str| -> Vec<f64> {
        report[name]
            .as_array()
            .map(|list| list.iter().filter_map(Value::as_f64).collect())
            .unwrap_or_default()
    };
    let bytes = report["bytes"].as_f64().unwrap_or(0.0);
    let measured = report["seconds"].as_f64().unwrap_or(1.0);
    let (mut lags, mut joins) = (numbers("lag_ms"), numbers("join_ms"));
    Figures {
        cpu_per_gib: cpu.as_secs_f64() / (bytes / f64::from(1 << 30)),
        memory_per_client: (resident as f64 - before as f64) / n as f64,
        lag_p99_ms: percentile(&mut lags, 0.99),
        join_p50_ms: percentile(&mut joins, 0.5),
        join_p99_ms: percentile(&mut joins, 0.99),
        delivered: bytes / (measured * n as f64 * BITS_PER_SECOND as f64 / 8.0),
    }
}

/// Starts a client process; a single client is waited for until it watches.
fn join(address: SocketAddr, path: &str, n: usize, seconds: u64, probes: usize) -> Process {
    let arguments =
        [address.to_string(), path.into(), n.to_string(), seconds.to_string(), probes.to_string()];
    let mut process = Process::role("clients", &arguments);
    if n == 1 {
        assert_eq!(process.line(), "begin");
        std::thread::sleep(Duration::from_secs(11));
    }
    process
}

/// Starts a server and returns the address and path of the channel.
fn start(provider: &Provider, server: &str) -> (Process, SocketAddr, String, Option<tempfile::TempDir>) {
    let address = free_port();
    if server != "headwater" {
        let mut process = Process::role(server, &[address.to_string(), provider.url(SOURCE)]);
        assert_eq!(process.line(), "ready");
        return (process, address, "/".into(), None);
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let list = folder.path().join("list.m3u");
    std::fs::write(&list, provider.playlist(&[("bench", "Bench", SOURCE)])).expect("a playlist");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_headwater"));
    command.arg("play").arg(&list).arg("--data-dir").arg(folder.path());
    command.args([
        "--player-listen",
        &address.to_string(),
        "--api-listen",
        "127.0.0.1:0",
        "--log-level",
        "warn",
    ]);
    command.args(["--set", "limits.connections_max=0", "--set", "limits.connections_per_address_max=0"]);
    let process = Process::spawn(&mut command);
    let playlist = loop {
        match client_pool::fetch(address, "/playlist.m3u") {
            Some(text) if text.contains("/proxy/ts/stream/") => break text,
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    let at = playlist.find("/proxy/ts/stream/").expect("checked above");
    let path = playlist[at..].split_whitespace().next().expect("a path").to_owned();
    (process, address, path, Some(folder))
}
