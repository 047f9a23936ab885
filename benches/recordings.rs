//! What does it cost to record, and does it affect viewers?
//!
//! The real program plays channels of 8 Mbit/s to 200 clients, first alone, then while it records as many channels. The
//! difference in CPU time and memory between the two phases is that of the recordings. It is compared with a process that
//! only writes the same bytes: one file per recording, a block every 400 ms, and everything on the disk every four seconds.
//! Then a thousand recordings of one channel begin in the same second; *late* is the time from the start of a recording to
//! its first stored packet. Last, ranges of a stored file are requested; *range* is the time from the connection to the
//! first byte. The same is measured for places in the past of twenty channels that the program keeps itself (*seek*). At
//! the end, the program is killed while it records as many channels again, and started: *lost* is the part of the stream
//! before the kill that the file lacks, and a recording *continues* when its file grows again. The program, the clients and
//! the writer are separate processes; the provider and the clients of the last phase are in this one.
//!
//! With `--only-kills 1` the last phase is the only one.
//!
//! `cargo bench --bench recordings -- [--clients 200] [--recordings 50] [--seconds 20] [--due 1000] [--ranges 300]
//! [--kills 3] [--only-kills 0]`

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "threads without tokio measure the time")]

#[path = "support/client_pool.rs"]
mod client_pool;
#[path = "mixed_load/clients.rs"]
mod clients;
#[path = "support/options.rs"]
mod options;
#[path = "support/process.rs"]
#[expect(dead_code, reason = "this bench reads no peak")]
mod process;
#[path = "support/program.rs"]
#[expect(dead_code, reason = "this bench imports nothing")]
mod program;
#[path = "recordings/restart.rs"]
mod restart;
mod support;
#[path = "../tests/it/support/mod.rs"]
#[expect(dead_code, reason = "benches use a part of the test support")]
mod test_support;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use actors::now_ms;
use domain::time::iso_millis;
use serde_json::{Value, json};

use self::options::Options;
use self::process::{Process, free_port};
use self::support::percentile;
use self::test_support::api::Api;
use self::test_support::signal::Picture;
use self::test_support::upstream::{MockResponse, Provider};

const MIB: f64 = 1024.0 * 1024.0;
const BITS_PER_SECOND: u64 = 8_000_000;
/// The writer writes as often as the program, and waits for the disk as often.
const WRITE_PERIOD: Duration = Duration::from_millis(400);
const WRITES_PER_SYNC: u64 = 10;
/// Time for the recordings of a phase to begin.
const BEGINNING: Duration = Duration::from_secs(5);
/// Time until the recordings that are due at once begin: they have to be created before.
const DUE_IN_MS: i64 = 40_000;
/// Channels whose past is kept, and for how long before it is asked for.
const RINGS_MAX: usize = 20;
const KEPT: Duration = Duration::from_secs(20);
const LIST: &str = "/api/channels/recordings/";
const NO_LIMITS: [&str; 2] = ["limits.connections_max=0", "limits.connections_per_address_max=0"];

const LAG_GOAL_MS: f64 = 100.0;
const CPU_GOAL: f64 = 1.2;
const RECORDING_GOAL_MIB: f64 = 1.0;
const DUE_GOAL_MS: f64 = 250.0;
const RANGE_GOAL_MS: f64 = 5.0;
const SEEK_GOAL_MS: f64 = 50.0;
const RING_GOAL_MIB: f64 = 2.0;

fn main() {
    let options = Options::from_process();
    if let Some(arguments) = options.role("clients") {
        return clients::run(arguments);
    }
    if let Some(arguments) = options.role("writer") {
        return write_blocks(arguments);
    }
    let size = Size {
        clients: options.number("--clients", 200),
        recordings: options.number("--recordings", 50),
        seconds: options.number("--seconds", 20),
        due: options.number("--due", 1_000),
        ranges: options.number("--ranges", 300),
        kills: options.number("--kills", 3),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    if options.number("--only-kills", 0) > 0 {
        let kills = runtime.block_on(restart::kills(&Provider::start(), size.recordings, size.kills));
        print_kills(&kills);
        support::record("recordings-kills", json!({ "bits_per_second": BITS_PER_SECOND, "kills": kills }));
        return;
    }
    runtime.block_on(measure(&size));
}

struct Size {
    clients: u64,
    recordings: u64,
    /// Duration of each phase.
    seconds: u64,
    due: u64,
    ranges: u64,
    /// How often the program is killed.
    kills: u64,
}

async fn measure(size: &Size) {
    let provider = Provider::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let address = free_port();
    let server = program::start(address, folder.path(), &NO_LIMITS).await;
    let admin = Api::stranger_at(address).become_first_admin().await;
    let mut channels = Vec::new();
    for number in 0..size.recordings {
        channels.push(channel(&provider, &admin, number).await);
    }
    let mut arguments = vec![address.to_string(), size.clients.to_string()];
    arguments.extend(channels.iter().map(|it| it.path.clone()));
    let mut watching = Process::role("clients", &arguments);
    assert_eq!(watching.line(), "watching");

    let wait = Duration::from_secs(size.seconds);
    watching.send_line("viewers");
    let alone = cpu_while(&server, wait).await;
    let resident = server.resident();
    watching.send_line("beginning");
    let begin = now_ms();
    let mut ids = Vec::new();
    for channel in &channels {
        ids.push(record(&admin, channel.id, begin, begin + 3_600_000).await);
    }
    tokio::time::sleep(BEGINNING).await;
    watching.send_line("viewers and recordings");
    let stored = stored_bytes(&admin, &ids).await;
    let together = cpu_while(&server, wait).await;
    let stored = stored_bytes(&admin, &ids).await - stored;
    let memory = (server.resident() as f64 - resident as f64) / size.recordings as f64 / MIB;
    watching.send_line("end");
    let reports: Vec<Value> = (0..3).map(|_| report(&mut watching)).collect();
    drop(watching);
    let n_gaps = gaps(&admin, &ids).await;
    for id in &ids {
        admin.post(&format!("{LIST}{id}/stop/"), json!({})).await;
    }
    let bare = bare_writer(folder.path(), size).await;
    let due = due_at_once(&admin, channels[0].id, size.due).await;
    let range = ranges(address, &admin, ids[0], size.ranges).await;
    let seek = seeks(&server, address, &admin, &channels, size.ranges).await;
    drop(server);
    let kills = restart::kills(&provider, size.recordings, size.kills).await;

    let cpu = (together.saturating_sub(alone)).as_secs_f64();
    println!(
        "{:>24} {:>9} {:>9} {:>9} {:>5}  (goal of p99: {LAG_GOAL_MS} ms)",
        "", "lag p50", "p99", "max", "lost"
    );
    for report in &reports {
        let of = |name: &str| report[name].as_f64().unwrap_or(f64::NAN);
        println!(
            "{:>24} {:>6.1} ms {:>6.1} ms {:>6.1} ms {:>5}",
            report["name"].as_str().unwrap_or_default(),
            of("lag_p50_ms"),
            of("lag_p99_ms"),
            of("lag_max_ms"),
            report["lost"]
        );
    }
    let (per_gib, bare_per_gib) = (cpu / stored as f64 * MIB * 1024.0, bare.0 / bare.1 as f64 * MIB * 1024.0);
    println!(
        "\nrecordings: {:.1} MiB/s, {memory:.2} MiB each (goal {RECORDING_GOAL_MIB} MiB), {n_gaps} gaps",
        stored as f64 / MIB / wait.as_secs_f64()
    );
    println!(
        "CPU s/GiB: recordings {per_gib:.3}, bare writer {bare_per_gib:.3}, ratio {:.2} (goal {CPU_GOAL})",
        per_gib / bare_per_gib
    );
    println!(
        "{} due at once: late p50 {:.0} ms, max {:.0} ms (goal {DUE_GOAL_MS} ms)",
        due["recordings"],
        due["p50_ms"].as_f64().unwrap_or(f64::NAN),
        due["max_ms"].as_f64().unwrap_or(f64::NAN)
    );
    println!(
        "range: p50 {:.2} ms, p99 {:.2} ms (goal {RANGE_GOAL_MS} ms)",
        range["p50_ms"].as_f64().unwrap_or(f64::NAN),
        range["p99_ms"].as_f64().unwrap_or(f64::NAN)
    );
    println!(
        "time-shift, {} rings: seek p50 {:.2} ms, p99 {:.2} ms (goal {SEEK_GOAL_MS} ms), {:.2} MiB each \
         (goal {RING_GOAL_MIB} MiB)",
        seek["rings"],
        seek["p50_ms"].as_f64().unwrap_or(f64::NAN),
        seek["p99_ms"].as_f64().unwrap_or(f64::NAN),
        seek["memory_mib_per_ring"].as_f64().unwrap_or(f64::NAN)
    );
    print_kills(&kills);
    let phases: Vec<Value> = reports
        .into_iter()
        .map(|mut it| {
            it.as_object_mut().and_then(|it| it.remove("spans"));
            it
        })
        .collect();
    support::record(
        "recordings",
        json!({
            "clients": size.clients, "recordings": size.recordings, "bits_per_second": BITS_PER_SECOND,
            "phases": phases,
            "cores_alone": alone.as_secs_f64() / wait.as_secs_f64(),
            "cores_together": together.as_secs_f64() / wait.as_secs_f64(),
            "stored_bytes": stored, "gaps": n_gaps, "memory_mib_per_recording": memory,
            "cpu_seconds_per_gib": per_gib, "bare_writer_cpu_seconds_per_gib": bare_per_gib,
            "due_at_once": due, "range": range, "seek": seek, "kills": kills,
        }),
    );
}

fn print_kills(kills: &Value) {
    let of = |what: &str, name: &str| kills[what][name].as_f64().unwrap_or(f64::NAN);
    println!(
        "{} kills with {} recordings each: lost p50 {:.2} s, max {:.2} s (goal {} s)",
        kills["kills"],
        kills["recordings"],
        of("lost", "p50_s"),
        of("lost", "max_s"),
        restart::LOST_GOAL_S
    );
    println!(
        "after the start: answers after {:.2} s (max), continues after p50 {:.2} s, max {:.2} s (goal {} s);\n\
         gap: {:.2} s (max)",
        of("answers_after", "max_s"),
        of("continues_after", "p50_s"),
        of("continues_after", "max_s"),
        restart::CONTINUES_GOAL_S,
        of("gap", "max_s")
    );
}

/// A channel of the program.
struct Channel {
    id: u64,
    /// The path that plays it.
    path: String,
}

async fn channel(provider: &Provider, admin: &Api, number: u64) -> Channel {
    let path = format!("/live/bench/{number}.ts");
    // The same programme for every channel, so that the sent bytes are computed once.
    let picture = Picture::new("bench").bits_per_second(BITS_PER_SECOND).frames_per_gop(50);
    provider.path(&path).answers(MockResponse::play(picture));
    let name = format!("Bench {number}");
    let stream =
        admin.post("/api/channels/streams/", json!({ "name": name, "url": provider.url(&path) })).await;
    assert_eq!(stream.status, 201, "{stream:?}");
    let body = json!({ "name": name, "streams": [stream.body["id"]] });
    let channel = admin.post("/api/channels/channels/", body).await;
    assert_eq!(channel.status, 201, "{channel:?}");
    let id = channel.body["id"].as_u64().expect("a channel has an id");
    Channel { id, path: format!("/proxy/ts/stream/{}", channel.text("uuid")) }
}

/// Creates a recording and returns its id.
async fn record(admin: &Api, channel: u64, start: i64, end: i64) -> u64 {
    let body = json!({
        "channel_id": channel, "start_time": iso_millis(start), "end_time": iso_millis(end),
        "padding_before": 0, "padding_after": 0,
    });
    let made = admin.post(LIST, body).await;
    assert_eq!(made.status, 201, "{made:?}");
    made.body["id"].as_u64().expect("a recording has an id")
}

/// Returns the CPU time of a process in this time.
async fn cpu_while(server: &Process, wait: Duration) -> Duration {
    let before = server.cpu_with_ended_threads();
    tokio::time::sleep(wait).await;
    server.cpu_with_ended_threads() - before
}

fn report(watching: &mut Process) -> Value {
    serde_json::from_str(&watching.line()).expect("clients report")
}

/// Returns the size of the files of these recordings.
async fn stored_bytes(admin: &Api, ids: &[u64]) -> u64 {
    let mut sum = 0;
    for id in ids {
        let recording = admin.get(&format!("{LIST}{id}/")).await.body;
        assert_eq!(recording["status"], "recording", "{recording}");
        sum += recording["file_size"].as_u64().unwrap_or(0);
    }
    sum
}

async fn gaps(admin: &Api, ids: &[u64]) -> usize {
    let mut n = 0;
    for id in ids {
        let recording = admin.get(&format!("{LIST}{id}/")).await.body;
        n += recording["gaps"].as_array().map_or(0, Vec::len);
    }
    n
}

/// Runs the writer. Returns its CPU time in seconds and the bytes that it wrote.
async fn bare_writer(folder: &Path, size: &Size) -> (f64, u64) {
    let block = BITS_PER_SECOND / 8 * u64::try_from(WRITE_PERIOD.as_millis()).unwrap_or(0) / 1000;
    let place = folder.join("bare");
    std::fs::create_dir_all(&place).expect("a folder");
    let arguments = [place.display().to_string(), size.recordings.to_string(), block.to_string()];
    let mut writer = Process::role("writer", &arguments);
    assert_eq!(writer.line(), "writing");
    let cpu = cpu_while(&writer, Duration::from_secs(size.seconds)).await;
    let periods = size.seconds as f64 / WRITE_PERIOD.as_secs_f64();
    (cpu.as_secs_f64(), (periods * (block * size.recordings) as f64) as u64)
}

/// Writes blocks to files until it is killed. Arguments: folder, number of files, bytes of a block.
fn write_blocks(arguments: &[String]) {
    let n_files: usize = arguments[1].parse().expect("a number of files");
    let block: usize = arguments[2].parse().expect("a number of bytes");
    // Each file has memory of its own, as the packets of each channel have: one block for all would stay in the cache.
    let blocks: Vec<Vec<u8>> = (0..n_files).map(|it| vec![0x47 ^ it as u8; block]).collect();
    let create = |number: usize| File::create(Path::new(&arguments[0]).join(format!("{number}.ts")));
    let mut files: Vec<File> = (0..n_files).map(|it| create(it).expect("a file")).collect();
    client_pool::print_line("writing");
    let (began, mut n_turns) = (Instant::now(), 0_u64);
    loop {
        for (number, file) in files.iter_mut().enumerate() {
            file.write_all(&blocks[number]).expect("room on the disk");
            if n_turns % WRITES_PER_SYNC == number as u64 % WRITES_PER_SYNC {
                file.sync_data().expect("a disk");
            }
        }
        n_turns += 1;
        let due = WRITE_PERIOD * u32::try_from(n_turns).unwrap_or(u32::MAX);
        thread::sleep(due.saturating_sub(began.elapsed()));
    }
}

/// Creates recordings that begin in the same second, and returns how late they begin.
async fn due_at_once(admin: &Api, channel: u64, n: u64) -> Value {
    let begin = now_ms() + DUE_IN_MS;
    let mut ids = Vec::new();
    for number in 0..n {
        // Spread over one second.
        let start = begin + i64::try_from(number * 1_000 / n).unwrap_or(0);
        ids.push(record(admin, channel, start, start + 60_000).await);
    }
    assert!(now_ms() < begin, "the recordings were not created in time");
    let left = u64::try_from(begin - now_ms()).unwrap_or(0);
    tokio::time::sleep(Duration::from_millis(left) + BEGINNING).await;
    let mut delays = Vec::new();
    for id in &ids {
        let recording = admin.get(&format!("{LIST}{id}/")).await.body;
        let time = |name: &str| -> jiff::Timestamp {
            let text = recording[name].as_str().unwrap_or_else(|| panic!("no {name} in {recording}"));
            text.parse().expect("a time")
        };
        let late = time("started_at").as_millisecond() - time("start_time").as_millisecond();
        delays.push(late as f64);
    }
    for id in &ids {
        admin.delete(&format!("{LIST}{id}/")).await;
    }
    json!({ "recordings": n, "p50_ms": percentile(&mut delays, 0.5), "max_ms": percentile(&mut delays, 1.0) })
}

/// Requests ranges of a file, each on a connection of its own.
async fn ranges(address: SocketAddr, admin: &Api, id: u64, n: u64) -> Value {
    let recording = admin.get(&format!("{LIST}{id}/")).await.body;
    let length = recording["file_size"].as_u64().expect("a file has a size");
    let token = admin.token(test_support::api::ADMIN, test_support::api::PASSWORD).await;
    let token = token.text("access").to_owned();
    let mut times = Vec::new();
    for number in 0..n {
        let at = number * 7_919 * 1_021 % (length - 65_536);
        let began = Instant::now();
        let mut socket = TcpStream::connect(address).expect("a connection");
        write!(
            socket,
            "GET {LIST}{id}/file/ HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\
             Range: bytes={at}-{}\r\nConnection: close\r\n\r\n",
            at + 65_535
        )
        .expect("a request");
        let mut answer = vec![0; 12];
        socket.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer, b"HTTP/1.1 206", "{}", String::from_utf8_lossy(&answer));
        first_byte(&mut socket);
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    json!({ "requests": n, "p50_ms": percentile(&mut times, 0.5), "p99_ms": percentile(&mut times, 0.99) })
}

/// Reads the rest of a head, and the first byte of the file.
fn first_byte(socket: &mut TcpStream) {
    let mut tail = [0; 4];
    while tail != *b"\r\n\r\n" {
        tail.rotate_left(1);
        socket.read_exact(&mut tail[3..]).expect("a head");
    }
    socket.read_exact(&mut tail[..1]).expect("a byte of the file");
}

/// Keeps the past of some channels, and requests places in it, each on a connection of its own.
async fn seeks(server: &Process, address: SocketAddr, admin: &Api, channels: &[Channel], n: u64) -> Value {
    let channels = &channels[..channels.len().min(RINGS_MAX)];
    let resident = server.resident();
    for channel in channels {
        let path = format!("/api/channels/channels/{}/", channel.id);
        let kept = admin.patch(&path, json!({ "timeshift": "always" })).await;
        assert_eq!(kept.status, 200, "{kept:?}");
    }
    tokio::time::sleep(BEGINNING).await;
    let since = now_ms() / 1000;
    tokio::time::sleep(KEPT).await;
    let memory = (server.resident() as f64 - resident as f64) / channels.len() as f64 / MIB;
    let seconds = i64::try_from(KEPT.as_secs()).unwrap_or(0) - 2;
    let token = admin.token(test_support::api::ADMIN, test_support::api::PASSWORD).await;
    let token = token.text("access").to_owned();
    let mut times = Vec::new();
    for number in 0..n {
        let channel = &channels[usize::try_from(number).unwrap_or(0) % channels.len()];
        let uuid = channel.path.rsplit('/').next().unwrap_or_default();
        let start = since + i64::try_from(number).unwrap_or(0) * 7 % seconds;
        let began = Instant::now();
        let mut socket = TcpStream::connect(address).expect("a connection");
        write!(
            socket,
            "GET /proxy/catchup/{uuid}?start={start} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\n\r\n"
        )
        .expect("a request");
        let mut answer = vec![0; 12];
        socket.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer, b"HTTP/1.1 200", "{}", String::from_utf8_lossy(&answer));
        first_byte(&mut socket);
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    json!({
        "rings": channels.len(), "requests": n, "memory_mib_per_ring": memory,
        "p50_ms": percentile(&mut times, 0.5), "p99_ms": percentile(&mut times, 0.99),
    })
}
