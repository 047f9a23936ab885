//! Do guessing, slow uploads and a compaction of the store affect viewers?
//!
//! The real program plays four channels at 1 Mbit/s to 100 viewers: first calmly, then while 2,000 connections guess
//! passwords, then while 1,000 more send the body of a login byte by byte. A device that has logged in before logs in
//! once a second, and each login is verified anew. Then a playlist is imported, and refreshed with another name in each
//! entry until the store is compacted. At the end the program is killed and started again on its data folder. The program
//! and the viewers are separate processes; the provider and the hostile clients are in this one, so that all of them share
//! the machine.
//!
//! *Lag* is the delay of the programme clock at a viewer relative to its minimum over the whole run. *Missed* is the
//! gateway's counter of skipped bytes. *Lost* counts viewers whose connection ended or that received nothing in the last
//! second of the phase. *Login* is the time of a login of the known device. *Reopened* is the time from the start after
//! the kill to the first answer.
//!
//! `cargo bench --bench hostile_load -- [--viewers 100] [--channels 4] [--guessers 2000] [--slow 1000] [--seconds 20]
//! [--entries 500000]`

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]

#[path = "support/client_pool.rs"]
mod client_pool;
#[path = "mixed_load/clients.rs"]
mod clients;
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

use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use self::options::Options;
use self::process::{Process, free_port};
use self::program::{BITS_PER_SECOND, channel, import, refresh};
use self::support::percentile;
use self::test_support::api::Api;
use self::test_support::hostile::Hostile;
use self::test_support::upstream::Provider;

const MIB: f64 = 1024.0 * 1024.0;
const USER: &str = "anna";
const PASSWORD: &str = "right and long enough";
/// So that each login is verified.
const SETTINGS: [&str; 1] = ["auth.remember_login=0"];

fn main() {
    let options = Options::from_process();
    if let Some(arguments) = options.role("clients") {
        return clients::run(arguments);
    }
    let size = Size {
        viewers: options.number("--viewers", 100),
        channels: options.number("--channels", 4),
        guessers: options.number("--guessers", 2_000),
        slow: options.number("--slow", 1_000),
        seconds: options.number("--seconds", 20),
        entries: options.number("--entries", 500_000),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure(&size));
}

struct Size {
    viewers: u32,
    channels: u32,
    guessers: u32,
    slow: u32,
    /// Duration of each phase before the import.
    seconds: u32,
    /// Entries of the playlist.
    entries: u64,
}

async fn measure(size: &Size) {
    let provider = Provider::start();
    let changed_every = Arc::new(AtomicU64::new(u64::MAX));
    let list = list::serve(size.entries, Arc::clone(&changed_every));
    let folder = tempfile::tempdir().expect("a temporary directory");
    let address = free_port();
    let server = program::start(address, folder.path(), &SETTINGS).await;
    let admin = Api::stranger_at(address).become_first_admin().await;
    let user = json!({ "username": USER, "password": PASSWORD, "user_level": 0 });
    assert_eq!(admin.post("/api/accounts/users/", user).await.status, 201);
    let mut arguments = vec![address.to_string(), size.viewers.to_string()];
    for number in 0..size.channels {
        arguments.push(channel(&provider, &admin, number.into()).await);
    }
    let watching = Process::role("clients", &arguments);
    let mut run = Run { address, server, watching, admin: &admin, parts: Vec::new() };
    assert_eq!(run.watching.line(), "watching");

    let time = || tokio::time::sleep(Duration::from_secs(size.seconds.into()));
    run.part("calm", time(), || json!(null)).await;
    let guessers = Hostile::guessers(address, USER, size.guessers);
    run.part("guessing", time(), || json!(guessers.answers())).await;
    let slow = Hostile::slow_bodies(address, size.slow);
    run.part("slow bodies", time(), || json!([guessers.answers(), slow.answers()])).await;
    drop((guessers, slow));
    run.part("after", time(), || json!(null)).await;

    let account = run.part("import", import(&admin, &list, size.entries), || json!(null)).await;
    let writing = async {
        for round in 0.. {
            if metric(address, "headwater_store_compacting") == 1 || n_compactions(address) > 0 {
                return;
            }
            // Another name for each entry, and its first one in the next round.
            changed_every.store(if round % 2 == 0 { 1 } else { u64::MAX }, Ordering::SeqCst);
            refresh(&admin, account, size.entries).await;
        }
    };
    run.part("refreshes", writing, || json!(null)).await;
    let compaction = async {
        while n_compactions(address) == 0 {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    run.part("compaction", compaction, || json!(null)).await;
    run.part("compacted", time(), || json!(null)).await;
    run.end(size, folder.path()).await;
}

/// Reads one counter or gauge of the gateway.
fn metric(address: SocketAddr, name: &str) -> u64 {
    let text = client_pool::fetch(address, "/metrics").expect("the gateway runs");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
}

fn n_compactions(address: SocketAddr) -> u64 {
    metric(address, "headwater_store_compactions_total")
}

struct Run<'a> {
    address: SocketAddr,
    server: Process,
    watching: Process,
    admin: &'a Api,
    parts: Vec<Value>,
}

impl Run<'_> {
    /// Measures one phase while the future runs. The known device logs in once a second.
    async fn part<T>(&mut self, name: &str, what: impl Future<Output = T>, answers: impl Fn() -> Value) -> T {
        self.watching.send_line(name);
        self.server.reset_peak();
        let (cpu, missed, losses) = (self.server.cpu_with_ended_threads(), self.missed(), self.losses());
        let begun = Instant::now();
        let (mut logins, mut n_refused) = (Vec::new(), 0);
        let mut what = pin!(what);
        let done = loop {
            let asked = Instant::now();
            let status = self.admin.token(USER, PASSWORD).await.status;
            logins.push(asked.elapsed().as_secs_f64() * 1_000.0);
            n_refused += u32::from(status != 200);
            tokio::select! {
                done = &mut what => break done,
                () = tokio::time::sleep_until(asked + Duration::from_secs(1)) => {}
            }
        };
        let seconds = begun.elapsed().as_secs_f64();
        self.parts.push(json!({
            "name": name,
            "seconds": seconds,
            "server_cores": (self.server.cpu_with_ended_threads() - cpu).as_secs_f64() / seconds,
            "server_peak_resident_mib": self.server.peak() as f64 / MIB,
            "missed_bytes": self.missed() - missed,
            "source_losses": self.losses() - losses,
            "login_p50_ms": percentile(&mut logins, 0.5),
            "login_max_ms": percentile(&mut logins, 1.0),
            "logins_refused": n_refused,
            "hostile_answers": answers(),
        }));
        done
    }

    fn missed(&self) -> u64 {
        metric(self.address, "headwater_client_missed_bytes_total")
    }

    fn losses(&self) -> u64 {
        metric(self.address, "headwater_losses_total")
    }

    /// Collects the reports of the viewers, kills the program and starts it again, prints and records the results.
    async fn end(mut self, size: &Size, folder: &Path) {
        self.watching.send_line("end");
        println!(
            "             seconds cores     peak   lag p50      p99      max  missed lost  login p50      max refused"
        );
        for part in &mut self.parts {
            let report: Value = serde_json::from_str(&self.watching.line()).expect("viewers report");
            assert_eq!(report["name"], part["name"]);
            for field in ["lag_p50_ms", "lag_p99_ms", "lag_max_ms", "lost"] {
                part[field] = report[field].clone();
            }
            let number = |field: &str| part[field].as_f64().unwrap_or(f64::NAN);
            println!(
                "{:>12} {:>7.2} {:>5.2} {:>4.0} MiB {:>6.1} ms {:>5.1} ms {:>5.1} ms {:>7} {:>4}  {:>6.0} ms {:>5.0} ms {:>7}",
                part["name"].as_str().unwrap_or_default(),
                number("seconds"),
                number("server_cores"),
                number("server_peak_resident_mib"),
                number("lag_p50_ms"),
                number("lag_p99_ms"),
                number("lag_max_ms"),
                part["missed_bytes"],
                part["lost"],
                number("login_p50_ms"),
                number("login_max_ms"),
                part["logins_refused"],
            );
        }
        for part in &self.parts {
            println!("{}: answers to hostile clients: {}", part["name"], part["hostile_answers"]);
        }
        let disk_bytes = metric(self.address, "headwater_store_disk_bytes");
        // Killed without a chance to stop properly.
        drop(self.server);
        let killed = Instant::now();
        let server = program::start(self.address, folder, &SETTINGS).await;
        let reopened = killed.elapsed().as_secs_f64();
        println!("reopened after a kill, with {} streams: {reopened:.2} s", size.entries);
        let results = json!({
            "viewers": size.viewers,
            "channels": size.channels,
            "guessers": size.guessers,
            "slow_bodies": size.slow,
            "bits_per_second": BITS_PER_SECOND,
            "entries": size.entries,
            "parts": self.parts,
            "store_disk_mib": disk_bytes as f64 / MIB,
            "reopened_after_kill_seconds": reopened,
            "reopened_peak_resident_mib": server.peak() as f64 / MIB,
        });
        support::record("hostile_load", results);
    }
}
