//! What does it cost to play films: how long does a seek take, and what do many viewers need?
//!
//! A provider in this process has one film of 8 GiB. *Seek* is the time from the connection to the first byte of the film:
//! at the provider itself, through the gateway, and through the gateway from its cache; the three are measured in turn.
//! *Catch-up* is the same for the past of a channel: each request is for another time, as when a viewer seeks. *Catch-up
//! adds* is the difference of its times to those of the archive, of which each is asked directly before.
//! Then viewers read at 20 Mbit/s each, everyone over a connection to the provider of their own: first through the
//! gateway, then through nginx with `proxy_pass` and one process, if it is installed. The servers are separate processes.
//! A viewer is *late* if at any moment a second of film was missing.
//!
//! Without viewers, only the times are measured.
//!
//! `cargo bench --bench vod_play -- [--viewers 200] [--seconds 20] [--seeks 300]`

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "threads without tokio measure the time")]

#[path = "support/client_pool.rs"]
#[expect(dead_code, reason = "this bench has clients of its own")]
mod client_pool;
#[path = "support/film.rs"]
mod film;
#[path = "support/options.rs"]
#[expect(dead_code, reason = "this bench has one role")]
mod options;
#[path = "support/process.rs"]
#[expect(dead_code, reason = "this bench sends no commands and reads no peak")]
mod process;
#[path = "support/program.rs"]
#[expect(dead_code, reason = "this bench plays films only")]
mod program;
mod support;
#[path = "../tests/it/support/mod.rs"]
#[expect(dead_code, reason = "benches use a part of the test support")]
mod test_support;

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::film::{BYTES_PER_SECOND, FILM, LENGTH, Viewers, film, provider, request};
use self::options::Options;
use self::process::{Process, free_port};
use self::support::percentile;
use self::test_support::api::Api;

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
/// Maximum time that catch-up may add to the first byte of the provider.
const CATCH_UP_GOAL_MS: f64 = 20.0;
const NO_LIMITS: [&str; 3] =
    ["limits.connections_max=0", "limits.connections_per_address_max=0", "limits.anonymous_viewers_max=0"];

fn main() {
    let options = Options::from_process();
    let (viewers, seconds) = (options.number("--viewers", 200), options.number("--seconds", 20));
    let n_seeks = options.number("--seeks", 300);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let provider = provider();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let address = free_port();
    let (server, path, past) = runtime.block_on(async {
        let server = program::start(address, folder.path(), &NO_LIMITS).await;
        let admin = Api::stranger_at(address).become_first_admin().await;
        let film = film(&admin, provider).await;
        let past = past(&admin).await;
        (server, film, past)
    });

    let (seeks, added) = seeks(n_seeks, provider, address, &path, &past);
    println!("{:>10} {:>9} {:>9} {:>9}", "seek", "p50", "p99", "max");
    for row in seeks.as_array().into_iter().flatten() {
        let of = |name: &str| row[name].as_f64().unwrap_or(f64::NAN);
        let name = row["name"].as_str().unwrap_or_default();
        println!("{name:>10} {:>6.2} ms {:>6.2} ms {:>6.2} ms", of("p50_ms"), of("p99_ms"), of("max_ms"));
    }
    let of = |name: &str| added[name].as_f64().unwrap_or(f64::NAN);
    println!(
        "catch-up adds {:.2} ms to the provider's first byte (p50), {:.2} ms (p99, goal {CATCH_UP_GOAL_MS} ms)",
        of("p50_ms"),
        of("p99_ms")
    );
    if viewers == 0 {
        support::record("vod_play-seeks", json!({ "seeks": seeks, "catch_up_adds": added }));
        return;
    }

    println!(
        "\n{:>10} {:>8} {:>9} {:>6} {:>10} {:>5} {:>9}",
        "server", "viewers", "CPU s/GiB", "cores", "KiB/viewer", "late", "delivered"
    );
    let own =
        watched("headwater", &server, address, viewers, seconds, |it| format!("{path}?session_id={it}"));
    drop(server);
    let nginx = nginx(folder.path(), provider)
        .map(|(server, address)| watched("nginx", &server, address, viewers, seconds, |_| FILM.to_owned()));
    let rows: Vec<Value> = std::iter::once(own).chain(nginx).collect();
    support::record(
        "vod_play",
        json!({
            "bytes_per_second": BYTES_PER_SECOND, "seconds": seconds, "seeks": seeks, "catch_up_adds": added,
            "rows": rows,
        }),
    );
}

/// Makes a channel of the stream of the provider, and returns the path that plays its past.
async fn past(admin: &Api) -> String {
    let streams = admin.get("/api/channels/streams/?page=1").await;
    let channel = json!({ "stream_id": streams.body["results"][0]["id"] });
    let channel = admin.post("/api/channels/channels/from-stream/", channel).await;
    assert_eq!(channel.status, 201, "{channel:?}");
    format!("/proxy/catchup/{}", channel.text("uuid"))
}

/// Returns the time to the first byte in milliseconds, and closes the connection like a player that seeks.
fn seek(address: SocketAddr, path: &str, range: &str) -> f64 {
    let started = Instant::now();
    let mut socket = request(address, path, range);
    socket.read_exact(&mut [0]).expect("a byte of the film");
    started.elapsed().as_secs_f64() * 1_000.0
}

/// Returns the times of all kinds, and the time that catch-up adds.
fn seeks(n: u64, provider: SocketAddr, address: SocketAddr, path: &str, past: &str) -> (Value, Value) {
    let path = format!("{path}?session_id=seek");
    // Fills the cache, and reads the programs into memory.
    for range in ["0-2097151", "8587837440-"] {
        let mut bytes = vec![0; 2 << 20];
        request(address, &path, range).read_exact(&mut bytes).expect("the edge of the film");
    }
    let yesterday = jiff::Timestamp::now().as_second() - 2 * 86_400;
    let mut times: [Vec<f64>; 5] = Default::default();
    for number in 0..n {
        // Far from each other and from both edges, so that no connection reads on.
        let at = (64 << 20) + number * 7_919 * (1 << 20) % (LENGTH - (128 << 20));
        let far = format!("{at}-");
        let edge = format!("{}-", number * 3_001 % (1 << 20));
        let near_end = format!("{}-{}", LENGTH - 65_536 - number, LENGTH - 1);
        times[0].push(seek(provider, FILM, &far));
        times[1].push(seek(address, &path, &far));
        times[2].push(seek(address, &path, if number % 2 == 0 { &near_end } else { &edge }));
        let start = yesterday + number as i64 * 60;
        times[3].push(seek(provider, &format!("/past/{start}.ts"), "0-"));
        times[4].push(seek(address, &format!("{past}?start={start}&duration=60"), "0-"));
    }
    let mut added: Vec<f64> = times[3].iter().zip(&times[4]).map(|it| it.1 - it.0).collect();
    let added = json!({
        "n": n,
        "p50_ms": percentile(&mut added, 0.5),
        "p99_ms": percentile(&mut added, 0.99),
        "max_ms": percentile(&mut added, 1.0),
        "goal_p99_ms": CATCH_UP_GOAL_MS,
    });
    let rows = ["provider", "gateway", "cache", "archive", "catch-up"];
    let rows = rows.into_iter().zip(&mut times).map(|(name, times)| {
        json!({
            "name": name,
            "p50_ms": percentile(times, 0.5),
            "p99_ms": percentile(times, 0.99),
            "max_ms": percentile(times, 1.0),
        })
    });
    (rows.collect(), added)
}

/// Measures a server while viewers read at their rate.
fn watched(
    name: &str,
    server: &Process,
    address: SocketAddr,
    viewers: u64,
    seconds: u64,
    path_of: impl Fn(u64) -> String,
) -> Value {
    // One viewer starts every thread, so that the difference in memory is that of the viewers.
    seek(address, &path_of(viewers), "100000000-");
    thread::sleep(Duration::from_millis(500));
    let before = server.resident();
    let watching = Viewers::start(address, viewers, path_of);
    thread::sleep(watching.warm_up());
    let (cpu, started, first) = (server.cpu(), Instant::now(), watching.bytes());
    thread::sleep(Duration::from_secs(seconds));
    let (cpu, measured) = (server.cpu() - cpu, started.elapsed().as_secs_f64());
    let delivered = (watching.bytes() - first) as f64;
    let resident = server.resident();
    let n_late = watching.end();
    let cpu_per_gib = cpu.as_secs_f64() / (delivered / GIB);
    let cores = cpu.as_secs_f64() / measured;
    let kib = (resident as f64 - before as f64) / viewers as f64 / 1024.0;
    let fraction = delivered / (measured * (viewers * BYTES_PER_SECOND) as f64);
    println!(
        "{name:>10} {viewers:>8} {cpu_per_gib:>9.3} {cores:>6.2} {kib:>10.1} {n_late:>5} {:>8.1}%",
        fraction * 100.0
    );
    json!({
        "server": name,
        "viewers": viewers,
        "cpu_seconds_per_gib": cpu_per_gib,
        "cores": cores,
        "memory_kib_per_viewer": kib,
        "late_viewers": n_late,
        "delivered": fraction,
    })
}

/// Starts nginx as one process that passes requests on. `None` if it is not installed.
fn nginx(folder: &std::path::Path, provider: SocketAddr) -> Option<(Process, SocketAddr)> {
    let address = free_port();
    let temporary = folder.join("nginx");
    std::fs::create_dir_all(&temporary).expect("a folder");
    let place = temporary.display();
    let config = format!(
        "daemon off; master_process off; pid {place}/pid; error_log stderr warn;\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; client_body_temp_path {place}; proxy_temp_path {place}; fastcgi_temp_path {place};\n\
         uwsgi_temp_path {place}; scgi_temp_path {place};\n\
         server {{ listen {address}; location / {{ proxy_pass http://{provider}; proxy_http_version 1.1;\n\
         proxy_max_temp_file_size 0; }} }} }}\n"
    );
    let file = temporary.join("nginx.conf");
    std::fs::write(&file, config).expect("a configuration");
    let program =
        ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|it| std::path::Path::new(it).exists());
    let Some(program) = program else {
        println!("nginx is not installed, so that nothing is compared with it");
        return None;
    };
    let process = Process::spawn(Command::new(program).arg("-c").arg(&file).arg("-p").arg(&temporary));
    while TcpStream::connect(address).is_err() {
        thread::sleep(Duration::from_millis(20));
    }
    Some((process, address))
}
