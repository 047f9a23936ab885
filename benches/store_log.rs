//! What does the log of a cluster cost a write, how much of an import does it carry, and how long does a node need to join?
//!
//! The log is in memory, so the figures are those of the store alone: an engine adds its own time to each append. A small
//! write is one channel, as in the bench `store`. The imports are those of an account: a first one, and one of which a
//! hundredth changed.
//!
//! `cargo bench -p storage --bench store_log -- [--streams 500000]`

#![expect(clippy::print_stdout, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "this bench does not pause time")]

#[path = "support/measure.rs"]
mod measure;
mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex};

use domain::channel::Channel;
use domain::ids::{AccountId, ChannelId, StreamId};
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use serde_json::json;
use storage::log::{Append, CommitLog, LogKeys, LogRead, LogUnreachable, create_snapshot, restore_snapshot};
use storage::records::schema;
use storage::{Error, Store};
use uuid::Uuid;

use self::measure::{micros, resident_bytes, seconds};
use self::support::percentile;

const MIB: f64 = 1024.0 * 1024.0;
const SMALL_WRITES: u32 = 500;

/// A log in memory.
#[derive(Default)]
struct MemoryLog(Mutex<BTreeMap<u64, Vec<u8>>>);

impl CommitLog for MemoryLog {
    fn append(&self, expected_last: u64, entry: &[u8]) -> Append {
        let mut entries = self.0.lock().expect("no panic while locked");
        if entries.len() as u64 != expected_last {
            return Append::Conflict;
        }
        entries.insert(expected_last + 1, entry.to_vec());
        Append::Appended
    }

    fn read(&self, sequence: u64) -> Result<LogRead, LogUnreachable> {
        let entries = self.0.lock().expect("no panic while locked");
        Ok(entries.get(&sequence).map_or(LogRead::End, |it| LogRead::Entry(it.clone())))
    }

    fn last(&self) -> Result<u64, LogUnreachable> {
        Ok(self.0.lock().expect("no panic while locked").len() as u64)
    }
}

impl MemoryLog {
    fn bytes(&self) -> f64 {
        self.0.lock().expect("no panic while locked").values().map(Vec::len).sum::<usize>() as f64
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let at = arguments.iter().position(|argument| argument == "--streams");
    let n: u32 = at.map_or(500_000, |at| arguments[at + 1].parse().expect("--streams N"));
    let folder = tempfile::tempdir().expect("a folder");
    let (log, keys) = (Arc::new(MemoryLog::default()), LogKeys::new().expect("random keys"));

    let alone = open(&folder.path().join("alone"));
    let mut plain = small_writes(&alone);
    drop(alone);
    let writer = open(&folder.path().join("writer"));
    let follower = open(&folder.path().join("follower"));
    for store in [&writer, &follower] {
        store.begin_log(Uuid::nil(), 0).expect("a new log");
        store.attach_log(Arc::clone(&log) as Arc<_>, keys.clone()).expect("the log is attached");
    }
    writer.become_writer().expect("nobody else writes");
    let mut logged = small_writes(&writer);
    let entry_bytes = log.bytes() / f64::from(SMALL_WRITES);
    let followed = seconds(|| {
        follower.catch_up().expect("the log is complete");
    });
    let (p50, p99) = (percentile(&mut plain, 0.5), percentile(&mut plain, 0.99));
    let (log_p50, log_p99) = (percentile(&mut logged, 0.5), percentile(&mut logged, 0.99));
    println!("small write, without log: p50 {p50:.0} us, p99 {p99:.0} us");
    println!("small write, with log: p50 {log_p50:.0} us, p99 {log_p99:.0} us; {entry_bytes:.0} bytes each");
    println!("a follower applies {:.0} of them per second", f64::from(SMALL_WRITES) / followed);

    let mut imports = Vec::new();
    for (name, refresh) in [("first", 0), ("refresh", 1)] {
        let before = log.bytes();
        let imported = seconds(|| import(&writer, n, refresh));
        let log_mib = (log.bytes() - before) / MIB;
        let memory = resident_bytes();
        let followed = seconds(|| {
            follower.catch_up().expect("the log is complete");
        });
        let memory_mib = (resident_bytes() - memory) / MIB;
        println!(
            "{name} import of {n} streams: {imported:.2} s, {log_mib:.1} MiB of log; a follower needs {followed:.2} s and \
             {memory_mib:.0} MiB"
        );
        imports.push(json!({ "import": name, "s": imported, "log_mib": log_mib, "follower_s": followed }));
    }

    let path = folder.path().join("snapshot");
    let mut file = File::create(&path).expect("a file");
    let made = seconds(|| {
        create_snapshot(&writer, &[], &keys, 0, &mut file).expect("a snapshot");
    });
    let joined = folder.path().join("joined");
    std::fs::create_dir(&joined).expect("a folder");
    let restored = seconds(|| {
        let (store, key) = (joined.join("store"), joined.join("key"));
        restore_snapshot(&path, &keys, &store, &key, &schema(), &mut |_, _, _| Ok(())).expect("a store");
    });
    let snapshot_mib = file.metadata().expect("a file").len() as f64 / MIB;
    println!("a snapshot has {snapshot_mib:.1} MiB, is made in {made:.2} s and restored in {restored:.2} s");
    support::record(
        "store_log",
        json!({
            "streams": n,
            "small_write_us": { "p50": p50, "p99": p99 },
            "small_write_with_log_us": { "p50": log_p50, "p99": log_p99 },
            "entry_bytes": entry_bytes,
            "followed_per_s": f64::from(SMALL_WRITES) / followed,
            "imports": imports,
            "snapshot": { "mib": snapshot_mib, "made_s": made, "restored_s": restored },
        }),
    );
}

fn open(folder: &Path) -> Store {
    std::fs::create_dir_all(folder).expect("a folder");
    Store::open(&folder.join("store"), &folder.join("key"), schema()).expect("the store opens")
}

/// Returns the time of each write, in microseconds.
fn small_writes(store: &Store) -> Vec<f64> {
    let write = |id: u32| {
        let channel = Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("Channel {id}"), 0);
        micros(|| store.write_blocking(move |write| write.put(&channel)).expect("the write is committed"))
    };
    (1..=SMALL_WRITES).map(write).collect()
}

/// Imports streams of one account. With each refresh, each hundredth has another address.
fn import(store: &Store, n: u32, refresh: u32) {
    let mut bulk = store.bulk_write::<Stream>(1).expect("no other import runs");
    for id in 1..=n {
        let version = if id % 100 == 0 { refresh } else { 0 };
        bulk.put(&stream(id, version)).expect("the record is accepted");
    }
    bulk.commit(|_, _| Ok::<_, Error>(())).expect("the import is committed");
}

fn stream(id: u32, version: u32) -> Stream {
    let facts = StreamProperties {
        tvg_id: Some(format!("channel{id}.example")),
        group: Some(format!("Group {}, all", id / 250)),
        logo: Some(format!("http://logos.example/images/{id}.png")),
        ..StreamProperties::new(
            format!("Channel {id} HD"),
            SourceUrl::new(format!("http://provider.example:8080/live/user/password{version}/{id}.ts")),
        )
    };
    Stream::new(StreamId(id), AccountId(1), facts, 0)
}
