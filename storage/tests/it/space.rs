//! Size of the store, and compaction during reads and writes.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use storage::{Error, Store};

use crate::support::{Item, Note, Place, item, note, put, replace};

fn databases(place: &Place) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.store()).unwrap().flatten().map(|it| it.path());
    entries.filter(|it| it.file_name().unwrap().to_str().unwrap().starts_with("db-")).collect()
}

#[test]
fn live_bytes_count_current_records_and_no_replaced_ones() {
    let place = Place::new();
    let store = place.open();
    let live = |store: &Store| store.statistics().live_bytes;
    assert_eq!(live(&store), 0);
    let large = "x".repeat(2_000);
    put(&store, (1..=200).map(|id| note(id, &format!("{id} {large}")))).unwrap();
    let filled = live(&store);
    assert!((400_000..440_000).contains(&filled), "{filled}");
    for _ in 0..3 {
        put(&store, (1..=200).map(|id| note(id, &format!("{id} {large}")))).unwrap();
    }
    assert_eq!(live(&store), filled);
    replace(&store, 1, &(1..=1_000).map(|id| item(id, 1, "x")).collect::<Vec<_>>()).unwrap();
    let with_items = live(&store);
    assert!(with_items > filled);
    replace(&store, 1, &(1..=1_000).map(|id| item(id, 1, "x")).collect::<Vec<_>>()).unwrap();
    assert_eq!(live(&store), with_items);
    let report = place.check();
    assert!(matches!(report, Err(Error::AlreadyRunning(_))));
    store.compact().unwrap();
    assert_eq!(live(&store), with_items);
    drop(store);
    let store = place.open();
    assert_eq!(live(&store), with_items);
    store
        .write_blocking(|write| {
            write.remove_owner::<Item>(1);
            (1..=200).try_for_each(|id| write.remove::<Note>(id).map(drop))
        })
        .unwrap();
    assert_eq!(live(&store), 0);
}

/// Returns a text that does not compress.
fn noise(seed: u64, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b' ' + (state % 95) as u8)
    };
    (0..length).map(|_| next()).collect()
}

/// Lists the files that sled wrote beside its log. It never syncs them.
fn blob_files(place: &Place) -> Vec<PathBuf> {
    let of = |database: PathBuf| fs::read_dir(database.join("blobs")).into_iter().flatten().flatten();
    databases(place).into_iter().flat_map(of).map(|it| it.path()).collect()
}

#[test]
fn no_file_appears_beside_the_log_of_the_database_whatever_is_stored() {
    let place = Place::new();
    let mut store = place.open();
    let is_done = Arc::new(AtomicBool::new(false));
    for round in 0..3u64 {
        let reader = {
            let (store, is_done) = (store.clone(), Arc::clone(&is_done));
            std::thread::spawn(move || {
                while !is_done.load(Ordering::SeqCst) {
                    for it in store.collection::<Note>().all().unwrap() {
                        let is_whole = it.name.len() >= 15 && !it.name.contains('\0');
                        assert!(is_whole, "note {} is cut", it.id);
                    }
                }
            })
        };
        // The longest record, records that fill pieces to the brim, leaves full of long values, and blocks that do not
        // compress, overwritten and removed.
        put(&store, [note(1, &noise(round, 1_000_000))]).unwrap();
        for start in (2..80).step_by(13) {
            let name = |id: u32| noise(u64::from(id) + round * 1_000, 15_000 + 700 * (id as usize % 5));
            put(&store, (start..start + 13).map(|id| note(id, &name(id)))).unwrap();
        }
        let items = (0..400).map(|at| item(1 + at, 1, &noise(u64::from(at) + round, 2_600)));
        replace(&store, 1, &items.collect::<Vec<_>>()).unwrap();
        for at in 0..30 {
            let name = noise(round + 77 * at, 200_000);
            let id = 1_000 + at as u32 % 7;
            store.write_blocking(move |write| write.put(&item(id, 2, &name))).unwrap();
        }
        assert_eq!(blob_files(&place), [] as [PathBuf; 0]);
        store.compact().unwrap();
        assert_eq!(blob_files(&place), [] as [PathBuf; 0]);
        store
            .write_blocking(move |write| {
                let first = 2 + round as u32;
                (first..80).step_by(2).try_for_each(|id| write.remove::<Note>(id).map(drop))
            })
            .unwrap();
        is_done.store(true, Ordering::SeqCst);
        reader.join().unwrap();
        is_done.store(false, Ordering::SeqCst);
        drop(store);
        store = place.open();
        assert_eq!(store.collection::<Note>().get(1).unwrap().unwrap().name, noise(round, 1_000_000));
        assert_eq!(store.collection::<Item>().len_of(1), 400);
        for id in 1_000..1_007 {
            assert_eq!(store.collection::<Item>().get(id).unwrap().unwrap().name.len(), 200_000);
        }
    }
    drop(store);
    assert_eq!(blob_files(&place), [] as [PathBuf; 0]);
    assert!(place.check().unwrap().is_ok());
}

#[test]
fn compaction_during_reads_and_writes_loses_nothing() {
    const ROUNDS: u32 = 60;
    let place = Place::new();
    let store = place.open();
    replace(&store, 1, &(1..=2_000).map(|id| item(id, 1, "0")).collect::<Vec<_>>()).unwrap();
    // A value of this size is in pieces.
    put(&store, [note(1_000, &"large".repeat(150_000))]).unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let small = {
        let store = store.clone();
        std::thread::spawn(move || {
            for round in 1..=ROUNDS {
                put(&store, [note(1, &format!("round {round}")), note(100 + round, &round.to_string())])
                    .unwrap();
                store.write_blocking(move |write| write.put(&item(10_000 + round, 2, "small"))).unwrap();
            }
        })
    };
    let bulk = {
        let store = store.clone();
        std::thread::spawn(move || {
            for round in 1..=5 {
                let name = round.to_string();
                replace(&store, 1, &(1..=2_000).map(|id| item(id, 1, &name)).collect::<Vec<_>>()).unwrap();
            }
        })
    };
    let reader = {
        let (store, is_done) = (store.clone(), Arc::clone(&is_done));
        std::thread::spawn(move || {
            let mut n_scans = 0;
            while !is_done.load(Ordering::SeqCst) || n_scans == 0 {
                let mut names = Vec::new();
                store.collection::<Item>().for_each_of(1, |it| names.push(it.name)).unwrap();
                assert_eq!(names.len(), 2_000);
                assert!(names.iter().all(|it| *it == names[0]), "a scan saw two states of an owner");
                assert_eq!(store.collection::<Note>().get(1_000).unwrap().unwrap().name.len(), 750_000);
                n_scans += 1;
            }
        })
    };
    let mut n_compactions = 0;
    while !small.is_finished() || !bulk.is_finished() || n_compactions < 3 {
        store.compact().unwrap();
        n_compactions += 1;
    }
    small.join().unwrap();
    bulk.join().unwrap();
    is_done.store(true, Ordering::SeqCst);
    reader.join().unwrap();
    assert_eq!(databases(&place).len(), 1, "old databases still exist");

    let compare = |store: &Store| {
        let notes = store.collection::<Note>();
        assert_eq!(notes.get(1).unwrap().unwrap().name, format!("round {ROUNDS}"));
        let rounds = (1..=ROUNDS).map(|round| 100 + round);
        assert_eq!(notes.ids(), std::iter::once(1).chain(rounds).chain([1_000]).collect::<Vec<_>>());
        assert_eq!(store.collection::<Item>().len_of(2), ROUNDS as usize);
        assert_eq!(store.collection::<Item>().by("name", "5").unwrap().len(), 2_000);
    };
    compare(&store);
    drop(store);
    compare(&place.open());
    assert!(place.check().unwrap().is_ok());
}

#[test]
fn a_bulk_write_that_began_before_a_compaction_can_be_committed_after_it() {
    let place = Place::new();
    let store = place.open();
    replace(&store, 1, &(1..=300).map(|id| item(id, 1, "old")).collect::<Vec<_>>()).unwrap();
    let mut bulk = store.bulk_write::<Item>(1).unwrap();
    // Some records are written to the disk already, some are still in memory.
    (1..=2_550).try_for_each(|id| bulk.put(&item(id, 1, "new"))).unwrap();
    store.compact().unwrap();
    assert_eq!(store.collection::<Item>().by("name", "old").unwrap().len(), 300);
    (2_551..=3_000).try_for_each(|id| bulk.put(&item(id, 1, "new"))).unwrap();
    bulk.commit(|_, _| Ok::<_, Error>(())).unwrap();
    store.compact().unwrap();
    drop(store);
    assert_eq!(place.open().collection::<Item>().by("name", "new").unwrap().len(), 3_000);
}

#[test]
fn a_failed_compaction_leaves_the_store_usable() {
    let place = Place::new();
    let store = place.open();
    put(&store, (1..=300).map(|id| note(id, &id.to_string()))).unwrap();
    // A file blocks the folder of the new database.
    let blocking = place.store().join("db-000002");
    fs::write(&blocking, "a file").unwrap();
    store.compact().unwrap_err();
    put(&store, [note(1, "after")]).unwrap();
    fs::remove_file(&blocking).unwrap();
    store.compact().unwrap();
    put(&store, [note(2, "after all")]).unwrap();
    drop(store);
    let store = place.open();
    assert_eq!(store.collection::<Note>().len(), 300);
    assert_eq!(store.collection::<Note>().get(2).unwrap(), Some(note(2, "after all")));
}

mod night {
    use super::*;

    /// Returns the resident memory of this process, in MiB.
    fn resident_mib() -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() >> 10
    }

    /// The test runs in a process of its own. Without compaction the memory grows with every update.
    #[test]
    fn memory_of_a_store_that_is_written_a_million_times_stays_bounded() {
        const AT_ONCE: u32 = 100;
        let place = Place::new();
        let store = place.open();
        let text = "x".repeat(150);
        let mut most = 0;
        for round in 0..10_000 {
            let first = round * AT_ONCE % 5_000;
            put(&store, (0..AT_ONCE).map(|at| note(first + at, &format!("{} {round} {text}", first + at))))
                .unwrap();
            if round % 500 == 0 {
                let statistics = store.statistics();
                most = most.max(resident_mib());
                println!(
                    "{} updates: {} MiB resident, {} MiB on disk, {} KiB live",
                    round * AT_ONCE,
                    resident_mib(),
                    statistics.disk_bytes >> 20,
                    statistics.live_bytes >> 10
                );
            }
        }
        assert!(most < 400, "{most} MiB");
        assert!(!databases(&place)[0].ends_with("db-000001"), "it was not compacted");
        assert_eq!(store.collection::<Note>().len(), 5_000);
    }
}
