//! Do guessing and slow uploads affect viewers?
//!
//! The real program plays four channels at 1 Mbit/s to 100 viewers: first calmly, then while 2,000 connections guess
//! passwords, then while 1,000 more send the body of a login byte by byte. A device that has logged in before logs in
//! once a second, and each login is verified anew. The program and the viewers are separate processes; the provider and
//! the hostile clients are in this one, so that all of them share the machine.
//!
//! *Lag* is the delay of the programme clock at a viewer relative to its minimum over the whole run. *Missed* is the
//! gateway's counter of skipped bytes. *Lost* counts viewers whose connection ended or that received nothing in the last
//! second of the phase. *Login* is the time of a login of the known device.
//!
//! `cargo bench --bench hostile_load -- [--viewers 100] [--channels 4] [--guessers 2000] [--slow 1000] [--seconds 20]`

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]

#[path = "support/client_pool.rs"]
mod client_pool;
#[path = "mixed_load/clients.rs"]
mod clients;
#[path = "support/process.rs"]
#[expect(dead_code, reason = "this bench includes the time of ended threads")]
mod process;
#[path = "support/program.rs"]
#[expect(dead_code, reason = "this bench imports no playlist")]
mod program;
mod support;
#[path = "../tests/it/support/mod.rs"]
#[expect(dead_code, reason = "benches use a part of the test support")]
mod test_support;

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use self::process::{Process, free_port};
use self::program::{BITS_PER_SECOND, channel};
use self::support::percentile;
use self::test_support::api::Api;
use self::test_support::hostile::Hostile;
use self::test_support::upstream::Provider;

const MIB: f64 = 1024.0 * 1024.0;
const USER: &str = "anna";
const PASSWORD: &str = "right and long enough";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if arguments.first().is_some_and(|it| it == "clients") {
        return clients::run(&arguments[1..]);
    }
    let option = |name: &str, default: u32| -> u32 {
        let at = arguments.iter().position(|argument| argument == name);
        at.map_or(default, |at| arguments[at + 1].parse().unwrap_or_else(|_| panic!("{name} N")))
    };
    let size = Size {
        viewers: option("--viewers", 100),
        channels: option("--channels", 4),
        guessers: option("--guessers", 2_000),
        slow: option("--slow", 1_000),
        seconds: option("--seconds", 20),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure(&size));
}

struct Size {
    viewers: u32,
    channels: u32,
    guessers: u32,
    slow: u32,
    /// Duration of each phase.
    seconds: u32,
}

async fn measure(size: &Size) {
    let provider = Provider::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let address = free_port();
    // So that each login is verified.
    let server = program::start(address, folder.path(), &["auth.remember_login=0"]).await;
    let admin = Api::stranger_at(address).become_first_admin().await;
    let user = json!({ "username": USER, "password": PASSWORD, "user_level": 0 });
    assert_eq!(admin.post("/api/accounts/users/", user).await.status, 201);
    let mut arguments = vec![address.to_string(), size.viewers.to_string()];
    for number in 0..size.channels {
        arguments.push(channel(&provider, &admin, number.into()).await);
    }
    let watching = Process::role("clients", &arguments);
    let mut run = Run { address, server, watching, admin, parts: Vec::new() };
    assert_eq!(run.watching.line(), "watching");

    let time = Duration::from_secs(size.seconds.into());
    run.part("calm", time, || json!(null)).await;
    let guessers = Hostile::guessers(address, USER, size.guessers);
    run.part("guessing", time, || json!(guessers.answers())).await;
    let slow = Hostile::slow_bodies(address, size.slow);
    run.part("slow bodies", time, || json!([guessers.answers(), slow.answers()])).await;
    drop((guessers, slow));
    run.part("after", time, || json!(null)).await;
    run.end(size);
}

struct Run {
    address: SocketAddr,
    server: Process,
    watching: Process,
    admin: Api,
    parts: Vec<Value>,
}

impl Run {
    /// Measures one phase, in which the known device logs in once a second.
    async fn part(&mut self, name: &str, time: Duration, answers: impl Fn() -> Value) {
        self.watching.send_line(name);
        self.server.reset_peak();
        let (cpu, missed, losses) = (self.server.cpu_with_ended_threads(), self.missed(), self.losses());
        let begun = Instant::now();
        let (mut logins, mut n_refused) = (Vec::new(), 0);
        while begun.elapsed() < time {
            let asked = Instant::now();
            let status = self.admin.token(USER, PASSWORD).await.status;
            logins.push(asked.elapsed().as_secs_f64() * 1_000.0);
            n_refused += u32::from(status != 200);
            tokio::time::sleep_until((asked + Duration::from_secs(1)).min(begun + time)).await;
        }
        let seconds = begun.elapsed().as_secs_f64();
        self.parts.push(json!({
            "name": name,
            "server_cores": (self.server.cpu_with_ended_threads() - cpu).as_secs_f64() / seconds,
            "server_peak_resident_mib": self.server.peak() as f64 / MIB,
            "missed_bytes": self.missed() - missed,
            "source_losses": self.losses() - losses,
            "login_p50_ms": percentile(&mut logins, 0.5),
            "login_max_ms": percentile(&mut logins, 1.0),
            "logins_refused": n_refused,
            "hostile_answers": answers(),
        }));
    }

    fn missed(&self) -> u64 {
        self.metric("headwater_client_missed_bytes_total")
    }

    fn losses(&self) -> u64 {
        self.metric("headwater_losses_total")
    }

    fn metric(&self, name: &str) -> u64 {
        let text = client_pool::fetch(self.address, "/metrics").expect("the gateway runs");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
    }

    /// Collects the reports of the viewers, prints and records the results.
    fn end(mut self, size: &Size) {
        self.watching.send_line("end");
        println!(
            "             cores     peak   lag p50      p99      max  missed lost  login p50      max refused"
        );
        for part in &mut self.parts {
            let report: Value = serde_json::from_str(&self.watching.line()).expect("viewers report");
            assert_eq!(report["name"], part["name"]);
            for field in ["lag_p50_ms", "lag_p99_ms", "lag_max_ms", "lost"] {
                part[field] = report[field].clone();
            }
            let number = |field: &str| part[field].as_f64().unwrap_or(f64::NAN);
            println!(
                "{:>12} {:>5.2} {:>4.0} MiB {:>6.1} ms {:>5.1} ms {:>5.1} ms {:>7} {:>4}  {:>6.0} ms {:>5.0} ms {:>7}",
                part["name"].as_str().unwrap_or_default(),
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
        let results = json!({
            "viewers": size.viewers,
            "channels": size.channels,
            "guessers": size.guessers,
            "slow_bodies": size.slow,
            "bits_per_second": BITS_PER_SECOND,
            "parts": self.parts,
        });
        support::record("hostile_load", results);
    }
}
