//! The part of recordings that a kill takes, and the time until they continue.
//!
//! A client watches each recorded channel. The clock of its last packet, and the time from the arrival of this packet to
//! the kill, are the clock that the file would have if nothing were lost; the file is read before the program starts again.
//! A client gets its packets some 50 ms late, and by so much is the loss too small. A recording *continues* once its file
//! has grown by a tenth of a second of the stream; the time counts from the start of the process.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use actors::now_ms;
use serde_json::{Value, json};

use super::client_pool::{self, Client, ClientPool, PACKET};
use super::process::free_port;
use super::support::percentile;
use super::test_support::api::{ADMIN, Api, PASSWORD};
use super::test_support::upstream::Provider;
use super::{BEGINNING, BITS_PER_SECOND, LIST, NO_LIMITS, channel, program, record};

/// Time in which the clients watch before the kill.
const WATCHING: Duration = Duration::from_secs(3);
/// Bytes of the end of a file in which its last clock lies: some seconds.
const END_BYTES: u64 = PACKET as u64 * 20_000;
/// Growth of a file after which its recording continues.
const GROWTH_BYTES: u64 = BITS_PER_SECOND / 8 / 10;
/// Upper half of a programme clock: ticks in a millisecond.
const TICKS_PER_MS: f64 = 45.0;
/// Longest wait for a recording that continues.
const WAIT_MAX: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
const HOUR_MS: i64 = 3_600_000;

pub(crate) const LOST_GOAL_S: f64 = 1.0;
pub(crate) const CONTINUES_GOAL_S: f64 = 3.0;

/// The file of a recording that was interrupted.
struct Interrupted {
    path: PathBuf,
    size: u64,
}

/// Kills and starts the program this many times while it records a number of channels.
pub(crate) async fn kills(provider: &Provider, n_recordings: u64, n_kills: u64) -> Value {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut address = free_port();
    let mut server = program::start(address, folder.path(), &NO_LIMITS).await;
    let mut admin = Api::stranger_at(address).become_first_admin().await;
    let mut channels = Vec::new();
    for number in 0..n_recordings {
        channels.push(channel(provider, &admin, number).await);
    }
    let (mut lost, mut continued, mut answered, mut gaps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n_kills {
        let (begin, mut ids) = (now_ms(), Vec::new());
        for channel in &channels {
            ids.push(record(&admin, channel.id, begin, begin + HOUR_MS).await);
        }
        let (mut pool, mut clients) = (ClientPool::new(), Vec::new());
        for channel in &channels {
            pool.join(&mut clients, address, &channel.path);
            pool.turn(&mut clients, POLL_INTERVAL, false);
        }
        pool.wait_for_all(&mut clients);
        pool.run(&mut clients, BEGINNING, false);
        let paths = files(&admin, folder.path(), &ids).await;
        pool.run(&mut clients, WATCHING, false);
        let (killed, killed_ms) = (client_pool::now(), now_ms());
        // Killed with SIGKILL, and waited for.
        drop(server);
        let mut interrupted = Vec::new();
        for (path, client) in paths.into_iter().zip(&clients) {
            let (size, clock) = end_of(&path);
            lost.push(seconds_between(clock, clock_at(client, killed)));
            interrupted.push(Interrupted { path, size });
        }
        drop((clients, pool));

        address = free_port();
        let started = client_pool::now();
        let waiting = thread::spawn(move || continuing(interrupted, started));
        server = program::start(address, folder.path(), &NO_LIMITS).await;
        answered.push(started.elapsed().as_secs_f64());
        continued.extend(waiting.join().expect("all recordings continue"));
        admin = Api::stranger_at(address).login(ADMIN, PASSWORD).await;
        for id in ids {
            gaps.push(gap_of(&admin, id, killed_ms).await);
            let deleted = admin.delete(&format!("{LIST}{id}/")).await;
            assert_eq!(deleted.status, 204, "{deleted:?}");
        }
    }
    drop(server);
    let row = |values: &mut Vec<f64>| {
        let (p50, p99, max) = (percentile(values, 0.5), percentile(values, 0.99), percentile(values, 1.0));
        json!({ "p50_s": p50, "p99_s": p99, "max_s": max })
    };
    json!({
        "kills": n_kills, "recordings": n_recordings,
        "lost": row(&mut lost), "lost_goal_s": LOST_GOAL_S,
        "continues_after": row(&mut continued), "continues_after_goal_s": CONTINUES_GOAL_S,
        "answers_after": row(&mut answered), "gap": row(&mut gaps),
    })
}

/// Returns the files of recordings that run.
async fn files(admin: &Api, folder: &Path, ids: &[u64]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for id in ids {
        let recording = admin.get(&format!("{LIST}{id}/")).await.body;
        assert_eq!(recording["status"], "recording", "{recording}");
        let name = recording["file_name"].as_str().expect("a recording that runs has a file");
        files.push(folder.join("recordings").join(name));
    }
    files
}

/// Returns the size of a file, and its last clock.
fn end_of(path: &Path) -> (u64, u32) {
    let mut file = File::open(path).expect("the file of a recording");
    let size = file.metadata().expect("a file has a size").len();
    let whole = size - size % PACKET as u64;
    let begin = whole.saturating_sub(END_BYTES);
    let mut end = vec![0; usize::try_from(whole - begin).expect("some megabytes")];
    file.seek(SeekFrom::Start(begin)).and_then(|_| file.read_exact(&mut end)).expect("the file can be read");
    let clock = end.chunks_exact(PACKET).rev().find_map(client_pool::clock);
    (size, clock.expect("seconds of a stream have a clock"))
}

/// Returns the clock that a channel had at this time, as its client knows it.
fn clock_at(client: &Client, at: Instant) -> u32 {
    let newest = client.newest.expect("a client receives clocks");
    let since_ms = at.saturating_duration_since(newest.at).as_secs_f64() * 1e3;
    newest.clock.wrapping_add((since_ms * TICKS_PER_MS) as u32)
}

fn seconds_between(from: u32, to: u32) -> f64 {
    f64::from(to.wrapping_sub(from).cast_signed()) / TICKS_PER_MS / 1e3
}

/// Waits until all files have grown. Returns the seconds from the start to the growth of each.
fn continuing(mut interrupted: Vec<Interrupted>, started: Instant) -> Vec<f64> {
    let mut times = Vec::new();
    while !interrupted.is_empty() {
        interrupted.retain(|it| {
            let size = std::fs::metadata(&it.path).map_or(0, |it| it.len());
            let has_grown = size >= it.size + GROWTH_BYTES;
            if has_grown {
                times.push(started.elapsed().as_secs_f64());
            }
            !has_grown
        });
        assert!(started.elapsed() < WAIT_MAX, "{} recordings do not continue", interrupted.len());
        thread::sleep(POLL_INTERVAL);
    }
    times
}

/// Waits until the gap that a kill left in a recording is over, and returns its length in seconds.
async fn gap_of(admin: &Api, id: u64, killed_ms: i64) -> f64 {
    let began = client_pool::now();
    loop {
        let recording = admin.get(&format!("{LIST}{id}/")).await.body;
        let time = |gap: &Value, name: &str| {
            let time = gap[name].as_str()?.parse::<jiff::Timestamp>().ok()?;
            Some(time.as_millisecond())
        };
        // Those before the kill are not counted.
        let gaps = recording["gaps"].as_array().into_iter().flatten();
        let gaps = gaps.filter(|it| time(it, "end").is_none_or(|it| it > killed_ms));
        let lengths = gaps.map(|it| Some(time(it, "end")? - time(it, "start")?));
        let lengths: Option<Vec<i64>> = lengths.collect();
        if let Some(lengths) = lengths.filter(|it| !it.is_empty()) {
            return lengths.iter().sum::<i64>() as f64 / 1e3;
        }
        assert!(began.elapsed() < WAIT_MAX, "the gap has no end: {recording}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
