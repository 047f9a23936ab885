//! What does it cost to store 500,000 streams, and what does a small write cost next to an import?
//!
//! The streams are written by a bulk write, as an import does; then they are read, and the store is opened again by a
//! separate process, whose memory is the part of the store in an idle gateway: once after it was closed, and once after
//! the process that wrote to it was killed. A small durable write (one channel) is timed next to one plain write and flush on the same disk, alone and during an import. redb does the same work for
//! comparison, without compression, encryption, or checks of its contents at open.
//!
//! With `--writes`, a process of its own writes that many records instead, each one of 5,000 channels, a hundred in a
//! commit. Its memory and the files of its store have to stay bounded.
//!
//! `cargo bench -p storage --bench store -- [--streams 500000]`, or `-- --writes 10000000`

#![expect(clippy::print_stdout, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "this bench does not pause time")]

#[path = "support/measure.rs"]
mod measure;
#[path = "store/plain.rs"]
mod plain;
mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use domain::channel::Channel;
use domain::ids::{AccountId, ChannelId, StreamId};
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use serde_json::{Value, json};
use storage::records::schema;
use storage::{Error, Store};
use uuid::Uuid;

use self::measure::{micros, resident_bytes, seconds};
use self::plain::Plain;
use self::support::percentile;

const MIB: f64 = 1024.0 * 1024.0;
const SMALL_WRITES: usize = 500;
const CHANNELS: u32 = 5_000;
/// As many as fit one slice.
const RECORDS_PER_COMMIT: usize = 100;
/// Bounds of a process that writes for ever. A store of 1.4 MiB takes 64 MiB before it is compacted, and is copied then.
const MEMORY_MAX_MIB: f64 = 96.0;
const DISK_MAX_MIB: f64 = 96.0;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match &*arguments {
        [command, folder] if command == "open" || command == "open-plain" => {
            return open_only(Path::new(folder), command == "open-plain");
        }
        [command, folder] if command == "write" => return write_until_killed(Path::new(folder)),
        [option, n] if option == "--writes" => return many_writes(n.parse().expect("--writes N")),
        _ => {}
    }
    let at = arguments.iter().position(|argument| argument == "--streams");
    let n: u32 = at.map_or(500_000, |at| arguments[at + 1].parse().expect("--streams N"));
    let folder = tempfile::tempdir().expect("a folder");

    let before = resident_bytes();
    let store = open(folder.path());
    let load = seconds(|| import(&store, 1, n));
    let memory = resident_bytes() - before;
    let disk = store.statistics().disk_bytes as f64;
    println!("{n} streams loaded in {load:.2} s; memory {:.0} MiB, disk {:.0} MiB", memory / MIB, disk / MIB);
    let before = resident_bytes();
    let plain = Plain::open(folder.path());
    let plain_load = seconds(|| plain.import((1..=n).map(|id| stream(id, 1))));
    let plain_memory = resident_bytes() - before;
    let plain_disk = fs::metadata(folder.path().join("plain.redb")).expect("a file").len() as f64;
    println!(
        "{:>24}: {plain_load:.2} s; memory {:.0} MiB, disk {:.0} MiB",
        "redb",
        plain_memory / MIB,
        plain_disk / MIB
    );
    put_channels(&store, &plain);

    let streams = store.collection::<Stream>();
    let mut n_read = 0;
    let all = seconds(|| streams.for_each(|_| n_read += 1).expect("the store can be read"));
    assert_eq!(n_read, n);
    let mut one: Vec<f64> = (0..1_000u32)
        .map(|at| {
            let id = at.wrapping_mul(2_654_435_761) % n + 1;
            micros(|| drop(streams.get(id).expect("the store can be read").expect("the record exists")))
        })
        .collect();
    println!("all read in {all:.2} s; one in {:.0} us (p50)", percentile(&mut one, 0.5));
    let mut n_read = 0;
    let plain_all = seconds(|| plain.for_each(|_| n_read += 1));
    assert_eq!(n_read, n);
    let mut plain_one: Vec<f64> = (0..1_000u32)
        .map(|at| {
            let id = at.wrapping_mul(2_654_435_761) % n + 1;
            micros(|| assert!(plain.stream(id).is_some()))
        })
        .collect();
    println!("{:>24}: {plain_all:.2} s; one in {:.0} us (p50)", "redb", percentile(&mut plain_one, 0.5));

    let alone = small_writes(&store, Some(&plain), folder.path(), SMALL_WRITES, || true);
    let is_importing = Arc::new(AtomicBool::new(true));
    let importer = {
        let (store, is_importing) = (store.clone(), Arc::clone(&is_importing));
        std::thread::spawn(move || {
            let took = seconds(|| import(&store, 2, n));
            is_importing.store(false, Ordering::SeqCst);
            took
        })
    };
    let beside =
        small_writes(&store, None, folder.path(), usize::MAX, || is_importing.load(Ordering::SeqCst));
    let import_beside = importer.join().expect("the import ends");
    println!("a second import during these writes took {import_beside:.2} s");
    let heaviest = store.statistics().slice_weight_max;
    store
        .write_blocking(|write| {
            write.remove_owner::<Stream>(2);
            Ok::<_, Error>(())
        })
        .expect("the write is committed");
    drop(store);
    drop(plain);

    let opened = open_elsewhere("open", folder.path());
    println!("opened by a process of its own: {opened}");
    let plain_opened = open_elsewhere("open-plain", folder.path());
    println!("{:>24}: {plain_opened}", "redb");
    kill_writer(folder.path());
    let opened_after_kill = open_elsewhere("open", folder.path());
    println!("opened after a kill: {opened_after_kill}");
    support::record(
        "store",
        json!({
            "streams": n,
            "load_seconds": load,
            "memory_after_load_mib": memory / MIB,
            "disk_mib": disk / MIB,
            "read_all_seconds": all,
            "read_one_p50_us": percentile(&mut one, 0.5),
            "small_write_alone": alone,
            "small_write_beside_an_import": beside,
            "import_beside_small_writes_seconds": import_beside,
            "heaviest_slice": heaviest,
            "open": opened,
            "open_after_kill": opened_after_kill,
            "redb": {
                "load_seconds": plain_load,
                "memory_after_load_mib": plain_memory / MIB,
                "disk_mib": plain_disk / MIB,
                "read_all_seconds": plain_all,
                "read_one_p50_us": percentile(&mut plain_one, 0.5),
                "open": plain_opened,
            },
        }),
    );
}

fn open(folder: &Path) -> Store {
    Store::open(&folder.join("store"), &folder.join("key"), schema()).expect("the store opens")
}

/// Opens the store in a separate process; adds the total time of that process.
fn open_elsewhere(command: &str, folder: &Path) -> Value {
    let program = std::env::current_exe().expect("the path of this program");
    let mut opened = Value::Null;
    let took = seconds(|| {
        let output = Command::new(program).arg(command).arg(folder).output().expect("the process runs");
        opened = serde_json::from_slice(&output.stdout).expect("a valid report");
    });
    opened["process_seconds"] = json!(took);
    opened
}

/// Runs the other process: opens the store, and prints the time and memory used.
fn open_only(folder: &Path, is_plain: bool) {
    let before = resident_bytes();
    if is_plain {
        let mut plain = None;
        let took = seconds(|| plain = Some(Plain::open(folder)));
        let is_there = plain.is_some_and(|it| it.stream(1).is_some());
        let memory = (resident_bytes() - before) / MIB;
        return println!("{}", json!({ "seconds": took, "memory_mib": memory, "is_there": is_there }));
    }
    let mut store = None;
    let took = seconds(|| store = Some(open(folder)));
    let store = store.expect("the store was opened");
    let mut channels = None;
    let tables = seconds(|| channels = Some(store.table::<Channel>().expect("a table")));
    let row = json!({
        "seconds": took,
        "table_of_channels_seconds": tables,
        "channels": channels.map(|it| it.load().len()),
        "memory_mib": (resident_bytes() - before) / MIB,
        "streams": store.collection::<Stream>().len(),
    });
    println!("{row}");
}

/// Runs a process that writes, and kills it in the middle of its writes.
fn kill_writer(folder: &Path) {
    let program = std::env::current_exe().expect("the path of this program");
    let mut command = Command::new(program);
    let mut writer =
        command.arg("write").arg(folder).stdout(Stdio::piped()).spawn().expect("the process starts");
    let lines = BufReader::new(writer.stdout.take().expect("piped")).lines();
    let n_answered = lines.map_while(Result::ok).take(SMALL_WRITES).count();
    assert_eq!(n_answered, SMALL_WRITES, "the process writes");
    writer.kill().and_then(|()| writer.wait()).expect("the process ends");
}

/// Writes channels, one after the other, and prints a line for each.
fn write_until_killed(folder: &Path) {
    let store = open(folder);
    for round in 0.. {
        let channel = channel(round as u32 % CHANNELS + 1, round);
        store.write_blocking(move |write| write.put(&channel)).expect("the write is committed");
        println!("{round}");
    }
}

/// Writes this many records, and prints and records memory and disk after each tenth of them. Fails if they exceed their
/// bounds.
fn many_writes(n: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let n_commits = n.div_ceil(RECORDS_PER_COMMIT).max(10);
    let mut rows = Vec::new();
    let (mut memory_max, mut disk_max) = (0.0_f64, 0.0_f64);
    let started = Instant::now();
    for commit in 1..=n_commits {
        let first = commit * RECORDS_PER_COMMIT;
        let channels: Vec<_> =
            (first..first + RECORDS_PER_COMMIT).map(|at| channel(at as u32 % CHANNELS + 1, at)).collect();
        store
            .write_blocking(move |write| channels.iter().try_for_each(|it| write.put(it)))
            .expect("the write is committed");
        if commit % 100 == 0 || commit == n_commits {
            memory_max = memory_max.max(resident_bytes() / MIB);
            disk_max = disk_max.max(store.statistics().disk_bytes as f64 / MIB);
        }
        if commit % (n_commits / 10) == 0 {
            let row = json!({
                "writes": commit * RECORDS_PER_COMMIT,
                "seconds": started.elapsed().as_secs_f64(),
                "memory_max_mib": std::mem::take(&mut memory_max),
                "disk_max_mib": std::mem::take(&mut disk_max),
                "compactions": store.statistics().n_compactions,
            });
            println!("{row}");
            for (name, bound) in [("memory_max_mib", MEMORY_MAX_MIB), ("disk_max_mib", DISK_MAX_MIB)] {
                let is_bounded = row[name].as_f64().is_some_and(|it| it <= bound);
                assert!(is_bounded, "{name} exceeds {bound} MiB after {} writes", row["writes"]);
            }
            rows.push(row);
        }
    }
    let live_mib = store.statistics().live_bytes as f64 / MIB;
    support::record(
        "store-writes",
        json!({
            "live_mib": live_mib, "memory_bound_mib": MEMORY_MAX_MIB, "disk_bound_mib": DISK_MAX_MIB, "rows": rows,
        }),
    );
}

/// Stores channels in both databases.
fn put_channels(store: &Store, plain: &Plain) {
    let channels: Vec<Channel> = (1..=CHANNELS).map(|id| channel(id, 0)).collect();
    channels.iter().take(50).for_each(|it| plain.put(it));
    store
        .write_blocking(move |write| channels.iter().try_for_each(|it| write.put(it)))
        .expect("the writes are committed");
}

fn channel(id: u32, round: usize) -> Channel {
    let uuid = Uuid::from_u128(u128::from(id));
    let name = format!("Channel {id} {round}");
    Channel { streams: vec![StreamId(id)], ..Channel::new(ChannelId(id), uuid, name, 0) }
}

fn import(store: &Store, account: u32, n: u32) {
    let mut bulk = store.bulk_write::<Stream>(u64::from(account)).expect("the transaction starts");
    for _ in 0..n {
        let id = bulk.next_id().expect("there are ids");
        bulk.put(&stream(id, account)).expect("the record is accepted");
    }
    bulk.commit(|_, _| Ok::<_, Error>(())).expect("the write is committed");
}

fn stream(id: u32, account: u32) -> Stream {
    let facts = StreamProperties {
        tvg_id: Some(format!("channel{id}.example")),
        group: Some(format!("Group {}, all", id / 250)),
        logo: Some(format!("http://logos.example/images/{id}.png")),
        ..StreamProperties::new(
            format!("Channel {id} HD"),
            SourceUrl::new(format!("http://provider.example:8080/live/user/password/{id}.ts")),
        )
    };
    Stream::new(StreamId(id), AccountId(account), facts, 0)
}

/// Times durable writes of one channel, each followed by one plain write and flush, in milliseconds.
fn small_writes(
    store: &Store,
    plain: Option<&Plain>,
    folder: &Path,
    n_max: usize,
    go_on: impl Fn() -> bool,
) -> Value {
    let mut file = fs::File::create(folder.join("bare")).expect("a file");
    let (mut ours, mut bare, mut redb) = (Vec::new(), Vec::new(), Vec::new());
    while ours.len() < n_max && go_on() {
        let id = u32::try_from(ours.len() % 50).expect("small") + 1;
        let channel = channel(id, ours.len());
        if let Some(plain) = plain {
            redb.push(micros(|| plain.put(&channel)) / 1e3);
        }
        ours.push(
            micros(|| {
                store.write_blocking(move |write| write.put(&channel)).expect("the write is committed")
            }) / 1e3,
        );
        bare.push(
            micros(|| file.write_all(&[7; 200]).and_then(|()| file.sync_data()).expect("a disk")) / 1e3,
        );
    }
    let row = |name: &str, values: &mut Vec<f64>| {
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|p| (percentile(values, p) * 1e3).round() / 1e3);
        println!("{name:>24}: p50 {p50:.2} ms  p99 {p99:.2} ms  max {max:.2} ms  ({} times)", values.len());
        json!({ "p50_ms": p50, "p99_ms": p99, "max_ms": max, "n": values.len() })
    };
    let mut rows =
        json!({ "write": row("small durable write", &mut ours), "bare_flush": row("bare flush", &mut bare) });
    if !redb.is_empty() {
        rows["redb"] = row("redb", &mut redb);
    }
    rows
}
