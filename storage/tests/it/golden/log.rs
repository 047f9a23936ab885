//! Entries of the log and snapshots that an earlier version wrote are read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::sync::Arc;

use domain::channel::Channel;
use domain::ids::AccountId;
use domain::stream::Stream;
use domain::user::User;
use storage::log::{Append, CommitLog, LogKeys, LogRead, LogUnreachable, create_snapshot, restore_snapshot};
use storage::records::schema;
use storage::{Error, Store};
use uuid::Uuid;

use super::{golden, samples};

/// The keys of the golden entries.
const KEYS: &str = r#"{
    "cluster": {"1": "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"},
    "provider": {"1": "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"}
}"#;

/// A log in memory.
#[derive(Default)]
struct MemoryLog(std::sync::Mutex<BTreeMap<u64, Vec<u8>>>);

impl CommitLog for MemoryLog {
    fn append(&self, expected_last: u64, entry: &[u8]) -> Append {
        let mut entries = self.0.lock().unwrap();
        if entries.len() as u64 != expected_last {
            return Append::Conflict;
        }
        entries.insert(expected_last + 1, entry.to_vec());
        Append::Appended
    }

    fn read(&self, sequence: u64) -> Result<LogRead, LogUnreachable> {
        Ok(self.0.lock().unwrap().get(&sequence).map_or(LogRead::End, |it| LogRead::Entry(it.clone())))
    }

    fn last(&self) -> Result<u64, LogUnreachable> {
        Ok(self.0.lock().unwrap().len() as u64)
    }
}

fn keys() -> LogKeys {
    serde_json::from_str(KEYS).unwrap()
}

fn open(log: &Arc<MemoryLog>) -> Store {
    let store = Store::temporary(schema()).unwrap();
    store.begin_log(Uuid::from_u128(0x10c), 0).unwrap();
    store.attach_log(Arc::clone(log) as Arc<_>, keys()).unwrap();
    store
}

fn account_stream(id: u32) -> Stream {
    Stream { account: AccountId(9), ..samples::stream(id) }
}

#[test]
fn entries_of_the_first_format_are_read() {
    let log = Arc::new(MemoryLog::default());
    log.0.lock().unwrap().extend((1..).zip(entries()));
    let store = open(&log);
    assert_eq!(store.catch_up().unwrap().sequence, log.last().unwrap());
    assert_eq!(store.collection::<User>().all().unwrap(), [samples::user()]);
    assert_eq!(store.collection::<Channel>().len(), 0);
    let streams = store.collection::<Stream>();
    assert_eq!(streams.len(), 150);
    assert_eq!(streams.get(1_001).unwrap(), Some(account_stream(1_001)));
    // And continued.
    store.become_writer().unwrap();
    store.write_blocking(|write| write.put(&samples::channel())).unwrap();
}

#[test]
fn a_snapshot_of_the_first_format_is_restored_and_followed_by_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let (at, key) = (folder.path().join("store"), folder.path().join("key"));
    let mut no_files = |_: &str, _: &str, _: &[u8]| panic!("the snapshot has no files");
    let position =
        restore_snapshot(&golden("snapshot-1.tar.gz"), &keys(), &at, &key, &schema(), &mut no_files).unwrap();
    assert_eq!(position.sequence, 2);
    let store = Store::open(&at, &key, schema()).unwrap();
    assert_eq!(store.collection::<User>().all().unwrap(), [samples::user()]);
    assert_eq!(store.collection::<Stream>().len(), 0);
    // The golden log goes on where it stands.
    let log = Arc::new(MemoryLog::default());
    log.0.lock().unwrap().extend((1..).zip(entries()));
    store.attach_log(Arc::clone(&log) as Arc<_>, keys()).unwrap();
    assert_eq!(store.catch_up().unwrap().sequence, log.last().unwrap());
    assert_eq!(store.collection::<Stream>().len(), 150);
}

fn entries() -> Vec<Vec<u8>> {
    rmp_serde::from_slice(&fs::read(golden("log-1.bin")).unwrap()).unwrap()
}

/// Writes a snapshot of the golden log before its import.
fn write_snapshot() {
    if golden("snapshot-1.tar.gz").exists() {
        return;
    }
    let log = Arc::new(MemoryLog::default());
    log.0.lock().unwrap().extend((1..).zip(entries().into_iter().take(2)));
    let store = open(&log);
    store.catch_up().unwrap();
    let mut file =
        File::options().read(true).write(true).create_new(true).open(golden("snapshot-1.tar.gz")).unwrap();
    create_snapshot(&store, &[], &keys(), 1_700_000_000_000, &mut file).unwrap();
}

/// Writes a small commit, one with a removal, and an import.
pub(super) fn write() {
    if !golden("log-1.bin").exists() {
        write_log();
    }
    write_snapshot();
}

fn write_log() {
    let log = Arc::new(MemoryLog::default());
    let store = open(&log);
    store.become_writer().unwrap();
    store
        .write_blocking(|write| {
            write.put(&samples::user())?;
            write.put(&samples::channel())
        })
        .unwrap();
    let channel = samples::channel().id.0;
    store.write_blocking(move |write| write.remove::<Channel>(channel)).unwrap();
    let mut bulk = store.bulk_write::<Stream>(9).unwrap();
    (1_001..=1_150).try_for_each(|id| bulk.put(&account_stream(id))).unwrap();
    bulk.commit(|_, _| Ok::<_, Error>(())).unwrap();
    let entries: Vec<Vec<u8>> = log.0.lock().unwrap().values().cloned().collect();
    fs::write(golden("log-1.bin"), rmp_serde::to_vec(&entries).unwrap()).unwrap();
}
