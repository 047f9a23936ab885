//! Do imports and films affect playback?
//!
//! The real program plays ten channels at 1 Mbit/s to a thousand clients, before, during and after the import of a
//! playlist of 500,000 entries: first new, then refreshed without a change, then with another name in every tenth
//! entry. Then a guide of 2,000,000 programmes: first new, then refreshed without a change, then with other titles. The
//! program and the clients are separate processes; the provider of the channels and the servers of the playlist and of
//! the guide are in this one, so that all of them share the machine.
//!
//! *Lag* is the delay of the programme clock at a client relative to its minimum over the whole run. The source sends a
//! picture every 40 ms and the gateway sends chunks of up to 50 ms, so most of the lag is always there; the difference
//! between the phases is the effect of the import. *Missing* is the difference between the bytes that the source sent
//! between the first and the last clock that a client read in a phase, and the bytes that the client received. *Missed*
//! is the gateway's own counter of skipped bytes. *Lost* counts clients whose connection ended or that received nothing
//! in the last second of the phase.
//!
//! With `--film-viewers`, so many viewers then read a film at 20 Mbit/s each for a phase, everyone over a connection to the
//! provider of their own. They and the provider of the film are threads of this process.
//!
//! `cargo bench --bench mixed_load -- [--clients 1000] [--channels 10] [--entries 500000] [--programmes 2000000]
//! [--film-viewers 0] [--seconds 20]`; `--entries 0` leaves out the playlist, and `--programmes 0` the guide.

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]

#[path = "support/client_pool.rs"]
mod client_pool;
#[path = "mixed_load/clients.rs"]
mod clients;
#[path = "support/film.rs"]
mod film;
#[path = "mixed_load/guide.rs"]
mod guide;
#[path = "support/list.rs"]
mod list;
#[path = "support/options.rs"]
mod options;
#[path = "support/process.rs"]
#[expect(dead_code, reason = "this bench includes the time of ended threads")]
mod process;
#[path = "support/program.rs"]
mod program;
mod support;
#[path = "../tests/it/support/mod.rs"]
#[expect(dead_code, reason = "benches use a part of the test support")]
mod test_support;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use self::options::Options;
use self::process::{Process, free_port};
use self::program::{BITS_PER_SECOND, channel, import, picture, refresh};
use self::test_support::api::Api;
use self::test_support::signal::{FRAME, Programme};
use self::test_support::upstream::Provider;

const MIB: f64 = 1024.0 * 1024.0;
/// Any number of clients may connect from one address.
const NO_LIMITS: [&str; 3] =
    ["limits.connections_max=0", "limits.connections_per_address_max=0", "limits.anonymous_viewers_max=0"];
/// Interval of the entries that have another name in the last refresh.
const CHANGED_EVERY: u64 = 10;

fn main() {
    let options = Options::from_process();
    if let Some(arguments) = options.role("clients") {
        return clients::run(arguments);
    }
    let size = Size {
        clients: options.number("--clients", 1_000),
        channels: options.number("--channels", 10),
        entries: options.number("--entries", 500_000),
        programmes: options.number("--programmes", 2_000_000),
        film_viewers: options.number("--film-viewers", 0),
        seconds: options.number("--seconds", 20),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure(&size));
}

struct Size {
    clients: u64,
    channels: u64,
    entries: u64,
    programmes: u64,
    film_viewers: u64,
    /// Duration of the phases before and after the imports.
    seconds: u64,
}

async fn measure(size: &Size) {
    let provider = Provider::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let address = free_port();
    let server = program::start(address, folder.path(), &NO_LIMITS).await;
    let admin = Api::stranger_at(address).become_first_admin().await;
    let mut arguments = vec![address.to_string(), size.clients.to_string()];
    for number in 0..size.channels {
        arguments.push(channel(&provider, &admin, number).await);
    }
    let watching = Process::role("clients", &arguments);
    let mut run = Run { address, server, watching, parts: Vec::new() };
    assert_eq!(run.watching.line(), "watching");

    let wait = Duration::from_secs(size.seconds);
    run.part("before", tokio::time::sleep(wait)).await;
    if size.entries > 0 {
        playlist_parts(&mut run, &admin, size.entries).await;
    }
    if size.programmes > 0 {
        guide_parts(&mut run, &admin, size.programmes).await;
    }
    if size.film_viewers > 0 {
        film_part(&mut run, &admin, size).await;
    }
    run.part("after", tokio::time::sleep(wait)).await;
    run.end(|| Source::until(provider.began().elapsed()), size);
}

async fn playlist_parts(run: &mut Run, admin: &Api, entries: u64) {
    let changed_every = Arc::new(AtomicU64::new(u64::MAX));
    let list = list::serve(entries, changed_every.clone());
    let account = run.part("import", import(admin, &list, entries)).await;
    run.part("refresh", refresh(admin, account, 0)).await;
    changed_every.store(CHANGED_EVERY, Ordering::SeqCst);
    run.part("tenth changed", refresh(admin, account, entries.div_ceil(CHANGED_EVERY))).await;
}

async fn film_part(run: &mut Run, admin: &Api, size: &Size) {
    let path = film::film(admin, film::provider()).await;
    let path_of = |number: u64| format!("{path}?session_id={number}");
    let viewers = film::Viewers::start(run.address, size.film_viewers, path_of);
    tokio::time::sleep(viewers.warm_up()).await;
    let (before, wait) = (viewers.bytes(), Duration::from_secs(size.seconds));
    run.part("films", tokio::time::sleep(wait)).await;
    let rate = (viewers.bytes() - before) as f64 / wait.as_secs_f64() / 1e6;
    // Waits for threads, which end at once.
    let n_late = viewers.end();
    println!("{} viewers of films read {rate:.0} MB/s, and {n_late} of them were late", size.film_viewers);
}

async fn guide_parts(run: &mut Run, admin: &Api, programmes: u64) {
    let version = Arc::new(AtomicU64::new(1));
    let url = guide::serve(programmes, version.clone());
    let source = run.part("guide", guide::import(admin, &url, programmes)).await;
    run.part("same guide", guide::refresh(admin, source, programmes)).await;
    version.store(2, Ordering::SeqCst);
    run.part("other guide", guide::refresh(admin, source, programmes)).await;
}

/// Measurements of one phase, except those of the clients.
struct Part {
    name: &'static str,
    seconds: f64,
    /// CPU time of the program and of the clients.
    cpu: Duration,
    clients_cpu: Duration,
    peak: u64,
    missed_bytes: u64,
    losses: u64,
}

struct Run {
    address: SocketAddr,
    server: Process,
    watching: Process,
    parts: Vec<Part>,
}

impl Run {
    /// Measures one phase while the future runs.
    async fn part<T>(&mut self, name: &'static str, what: impl Future<Output = T>) -> T {
        self.watching.send_line(name);
        self.server.reset_peak();
        let (cpu, clients_cpu) = (self.server.cpu_with_ended_threads(), self.watching.cpu());
        let before = self.metrics();
        let started = tokio::time::Instant::now();
        let done = what.await;
        let seconds = started.elapsed().as_secs_f64();
        let after = self.metrics();
        self.parts.push(Part {
            name,
            seconds,
            cpu: self.server.cpu_with_ended_threads() - cpu,
            clients_cpu: self.watching.cpu() - clients_cpu,
            peak: self.server.peak(),
            missed_bytes: after.missed_bytes - before.missed_bytes,
            losses: after.losses - before.losses,
        });
        done
    }

    /// Reads the counters of the gateway.
    fn metrics(&self) -> Metrics {
        let text = client_pool::fetch(self.address, "/metrics").expect("the gateway runs");
        let read = |name: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
        };
        Metrics {
            missed_bytes: read("headwater_client_missed_bytes_total"),
            losses: read("headwater_losses_total"),
        }
    }

    /// Collects the reports of the clients, prints and records the results. The sent bytes are known only after the
    /// clients have ended.
    fn end(mut self, source: impl FnOnce() -> Source, size: &Size) {
        self.watching.send_line("end");
        let reports: Vec<String> = self.parts.iter().map(|_| self.watching.line()).collect();
        let source = source();
        println!(
            "              seconds   lag p50       p99       max  delivered  missing missed lost  server clients     peak"
        );
        let mut rows = Vec::new();
        for (part, report) in self.parts.iter().zip(&reports) {
            let mut report: Value = serde_json::from_str(report).expect("clients report");
            assert_eq!(report["name"], part.name);
            let (delivered, missing) = source.compare(&report["spans"]);
            let row = report.as_object_mut().expect("a report has members");
            row.remove("spans");
            let cores = |cpu: Duration| cpu.as_secs_f64() / part.seconds;
            let figures = json!({
                "seconds": part.seconds,
                "delivered_bytes": delivered,
                "missing_bytes": missing,
                "missed_bytes_of_the_gateway": part.missed_bytes,
                "source_losses": part.losses,
                "server_cores": cores(part.cpu),
                "clients_cores": cores(part.clients_cpu),
                "server_peak_resident_mib": part.peak as f64 / MIB,
            });
            row.extend(figures.as_object().cloned().unwrap_or_default());
            let lag = |name: &str| row[name].as_f64().unwrap_or(f64::NAN);
            println!(
                "{:>13} {:>7.2} {:>6.1} ms {:>6.1} ms {:>6.1} ms  {:>5.0} MiB {missing:>8} {:>6} {:>4}  {:>6.2} {:>7.2} {:>4.0} MiB",
                part.name,
                part.seconds,
                lag("lag_p50_ms"),
                lag("lag_p99_ms"),
                lag("lag_max_ms"),
                delivered as f64 / MIB,
                part.missed_bytes,
                row["lost"],
                cores(part.cpu),
                cores(part.clients_cpu),
                part.peak as f64 / MIB,
            );
            rows.push(report);
        }
        let results = json!({
            "clients": size.clients,
            "channels": size.channels,
            "bits_per_second": BITS_PER_SECOND,
            "entries": size.entries,
            "programmes": size.programmes,
            "film_viewers": size.film_viewers,
            "parts": rows,
        });
        support::record("mixed_load", results);
    }
}

struct Metrics {
    missed_bytes: u64,
    losses: u64,
}

/// The programme of the source: the number of packets before each value of its clock.
struct Source(HashMap<u32, u64>);

impl Source {
    /// Computes the programme from its start to this age.
    fn until(age: Duration) -> Source {
        let mut programme = Programme::from(picture()).tune_in(Duration::ZERO);
        let (mut packets, mut clocks, mut frame) = (0, HashMap::new(), Vec::new());
        let mut time = Duration::ZERO;
        while time <= age {
            programme.take(time, &mut frame);
            for packet in frame.chunks(client_pool::PACKET) {
                clocks.extend(client_pool::clock(packet).map(|clock| (clock, packets)));
                packets += 1;
            }
            frame.clear();
            time += FRAME;
        }
        Source(clocks)
    }

    /// Returns the bytes that the clients received in a phase, and the sum of the differences to the sent bytes. A
    /// client with a clock value that the source never sent counts as if nothing had been sent to it.
    fn compare(&self, spans: &Value) -> (u64, u64) {
        let spans: Vec<(u32, u32, u64)> =
            serde_json::from_value(spans.clone()).expect("a span of each client");
        let sent = |first: u32, last: u32| self.0.get(&last)?.checked_sub(*self.0.get(&first)?);
        let bytes = |packets: u64| packets * client_pool::PACKET as u64;
        let differs = |(first, last, got): &(u32, u32, u64)| got.abs_diff(sent(*first, *last).unwrap_or(0));
        (bytes(spans.iter().map(|it| it.2).sum()), bytes(spans.iter().map(differs).sum()))
    }
}
