//! Compaction: copies the current values to a new database, which replaces the present one in a single step.
//!
//! While the store runs, this happens in slices, once the database or sled's memory has grown much and the store is
//! quiet. On request and at open, all values are copied at once.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use crate::engine::disk::{Disk, SLICE_WEIGHT_MAX, Slice};
use crate::engine::folder::{create_database, database_folder, remove_folder, reopen_complete};
use crate::engine::shared::Shared;
use crate::engine::slice_writer::SliceWriter;
use crate::engine::space::{SpaceMonitor, ensure_room, is_wasteful};
use crate::engine::value::{DiskKey, Location};
use crate::error::{Error, Result};
use crate::write::writer::{Compaction, Worth, Writer};

/// Room that the new database may take, compared with its records: sled writes some pages more than once.
const ROOM_PER_LIVE_BYTE: u64 = 2;

/// Bytes after which a new database is worth the work although the disk has room: sled keeps parts of all earlier
/// updates in memory, two to three times their size. Twice as many do not wait for a quiet time.
const WRITTEN_BYTES_MAX: u64 = if cfg!(test) { 1024 * 1024 } else { 64 * 1024 * 1024 };
/// A time without writes is quiet. Compaction in slices starts then.
const QUIET: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 60 });
/// Pause between two slices, so that readers, writes and the disk have time for others.
const SLICE_PAUSE: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 10 });
/// Pause before a bulk write is expected to be complete.
const STAGE_PAUSE: Duration = Duration::from_secs(1);
/// Keys that may change during a compaction in slices; with more it is given up.
const CHANGED_KEYS_MAX: usize = 100_000;

fn worth(written_bytes: u64, disk_bytes: u64, live_bytes: u64) -> Worth {
    let limit = WRITTEN_BYTES_MAX.max(2 * live_bytes);
    match written_bytes {
        _ if written_bytes > 2 * limit => Worth::Now,
        _ if written_bytes > limit || is_wasteful(disk_bytes, live_bytes) => Worth::WhenQuiet,
        _ => Worth::No,
    }
}

impl Writer {
    /// Replaces the database by a new one with the current values only. After a failure the present database stays in
    /// use.
    pub(crate) fn compact(&mut self) -> Result<()> {
        self.abandon_compaction();
        let shared = Arc::clone(&self.shared);
        self.ensure_room_to_compact()?;
        let old = shared.disk()?;
        // A scan that begins from now on reads current values, so only an older scan can still need replaced ones.
        let is_swept = shared.n_scans.load(Ordering::SeqCst) == 0;
        let nothing = BTreeSet::new();
        let skipped = if is_swept { &self.leftovers } else { &nothing };
        let folder = database_folder(&shared.folder, self.generation + 1);
        shared.is_compacting.store(true, Ordering::Relaxed);
        let created = create_database(&folder, |new| copy(&old, new, skipped));
        shared.is_compacting.store(false, Ordering::Relaxed);
        self.switch_to(created?, is_swept)
    }

    fn ensure_room_to_compact(&self) -> Result<()> {
        let live_bytes = self.shared.state.read().live_bytes();
        ensure_room(&self.shared.folder, "compact the store", ROOM_PER_LIVE_BYTE * live_bytes)
    }

    /// Makes a complete and durable copy the current database.
    fn switch_to(&mut self, new: Disk, is_swept: bool) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let generation = self.generation + 1;
        let mark = shared.mark(generation, &shared.state.read());
        // This write switches from the old database to the new one.
        let done = self.write_mark(&mark);
        self.stop_after(&done);
        done?;
        if is_swept {
            self.leftovers.clear();
        }
        self.generation = generation;
        self.space_monitor = SpaceMonitor::default();
        self.worth = Worth::No;
        shared.n_compactions.fetch_add(1, Ordering::Relaxed);
        let old = shared.disk.write().replace(Arc::new(new.watched_by(&shared.disk_watch)));
        // Readers may still use it.
        if let Some(old) = old {
            old.remove_with_last_reader();
        }
        Ok(())
    }

    /// Measures whether the store should be compacted, and logs a warning when the database has become much larger than
    /// its records.
    pub(crate) fn monitor_space(&mut self) {
        let Ok(disk) = self.shared.disk() else { return };
        if !self.space_monitor.is_due(disk.written_bytes()) {
            return;
        }
        let (disk_bytes, live_bytes) = (disk.bytes(), self.shared.state.read().live_bytes());
        self.worth = worth(disk.written_bytes(), disk_bytes, live_bytes);
        if self.space_monitor.should_warn(disk_bytes, live_bytes) {
            tracing::warn!(
                disk_bytes,
                live_bytes,
                "the store is several times larger than its data; it is compacted in a quiet time"
            );
        }
    }

    /// Returns when the compaction in slices begins or goes on, unless a job comes first.
    pub(crate) fn compaction_at(&self) -> Option<Instant> {
        match (&self.compaction, self.worth) {
            (Some(compaction), _) => Some(compaction.next_at),
            (None, Worth::No) => None,
            (None, Worth::WhenQuiet) => Some(self.last_job_at + QUIET),
            (None, Worth::Now) => Some(self.last_job_at),
        }
    }

    /// Begins a compaction in slices, or copies one slice, if it is time. After a failure the present database stays in
    /// use.
    pub(crate) fn compact_one_slice(&mut self) {
        if self.compaction_at().is_none_or(|at| at > Instant::now()) || self.refusing.is_some() {
            return;
        }
        let done = match self.compaction.take() {
            None => self.begin_compaction(),
            Some(compaction) => self.advance(compaction),
        };
        self.shared.is_compacting.store(self.compaction.is_some(), Ordering::Relaxed);
        if let Err(error) = done {
            tracing::warn!("failed to compact the store: {error}");
            self.abandon_compaction();
            self.worth = Worth::No;
        }
    }

    fn begin_compaction(&mut self) -> Result<()> {
        // An open bulk write has values that the directory does not know.
        if !self.stages.is_empty() {
            self.last_job_at = Instant::now() + STAGE_PAUSE;
            return Ok(());
        }
        self.ensure_room_to_compact()?;
        let shared = Arc::clone(&self.shared);
        let folder = database_folder(&shared.folder, self.generation + 1);
        let new = create_database(&folder, |_| Ok(()))?;
        let old = shared.disk()?;
        old.begin_journal();
        let keys = current_keys(&shared);
        tracing::info!(values = keys.len(), disk_bytes = old.bytes(), "compacting the store");
        self.compaction = Some(Compaction { new, folder, keys, next_at: Instant::now() });
        Ok(())
    }

    fn advance(&mut self, mut compaction: Compaction) -> Result<()> {
        let copied = self.copy_slice(&mut compaction);
        if matches!(copied, Ok(false)) {
            compaction.next_at = Instant::now() + SLICE_PAUSE;
            self.compaction = Some(compaction);
            return Ok(());
        }
        let is_swept = self.shared.n_scans.load(Ordering::SeqCst) == 0;
        let completed = copied.and_then(|_| self.copy_changes(&compaction.new, is_swept));
        let Compaction { new, folder, .. } = compaction;
        let reopened = match completed {
            Ok(()) => reopen_complete(new, &folder),
            Err(error) => {
                drop(new);
                Err(error)
            }
        };
        let new = reopened.inspect_err(|_| drop(remove_folder(&folder)))?;
        self.switch_to(new, is_swept)
    }

    /// Copies some values. Returns true after the last.
    fn copy_slice(&self, compaction: &mut Compaction) -> Result<bool> {
        let old = self.shared.disk()?;
        if old.journal_len() > CHANGED_KEYS_MAX {
            return Err(Error::disk("compact the store", "too much changes at the moment"));
        }
        let mut slice = Slice::default();
        while slice.weight() < SLICE_WEIGHT_MAX
            && let Some(key) = compaction.keys.pop_front()
        {
            // Otherwise it was removed meanwhile.
            if let Some(value) = old.get(&key)? {
                slice.put(key, value);
            }
        }
        let _operation = self.shared.disk_watch.begin();
        compaction.new.apply(slice)?;
        compaction.new.flush()?;
        Ok(compaction.keys.is_empty())
    }

    /// Copies what changed since the beginning.
    fn copy_changes(&self, new: &Disk, is_swept: bool) -> Result<()> {
        let old = self.shared.disk()?;
        let changed = old.end_journal();
        let mut writer = SliceWriter::staged(new);
        for key in changed.union(&self.leftovers) {
            // An older scan still needs replaced values. Otherwise nothing removes them later, also those that were copied
            // before they were replaced.
            let is_removed = is_swept && self.leftovers.contains(key);
            match old.get(key)?.filter(|_| !is_removed) {
                Some(value) => writer.add(key.clone(), value)?,
                None => writer.remove(key.clone())?,
            }
        }
        writer.send()
    }

    /// Removes what a compaction in slices has written so far.
    pub(crate) fn abandon_compaction(&mut self) {
        if let Ok(disk) = self.shared.disk() {
            disk.end_journal();
        }
        self.shared.is_compacting.store(false, Ordering::Relaxed);
        if let Some(Compaction { new, folder, .. }) = self.compaction.take() {
            drop(new);
            drop(remove_folder(&folder));
        }
    }
}

/// Lists the keys of everything that an opening store reads.
fn current_keys(shared: &Shared) -> VecDeque<Vec<u8>> {
    let state = shared.state.read();
    let mut keys = VecDeque::from([DiskKey::Meta.encode()]);
    keys.extend(state.set_aside.iter().map(|it| DiskKey::SetAside(Box::new(it.clone())).encode()));
    for (type_number, directory) in state.directories.iter().enumerate() {
        keys.push_back(DiskKey::Counter(shared.record_type(type_number).name.to_owned()).encode());
        let single = |(id, at): (&u32, &Location)| shared.single_key(type_number, *id, at.version).encode();
        keys.extend(directory.singles.iter().map(single));
        for (owner, partition) in &directory.partitions {
            let block = |(number, at): (&u32, &Location)| {
                shared.block_key(type_number, *owner, *number, at.version).encode()
            };
            keys.extend(partition.blocks.iter().map(block));
        }
    }
    keys
}

/// Copies all values unchanged, except those of the skipped keys.
fn copy(from: &Disk, to: &Disk, skipped: &BTreeSet<Vec<u8>>) -> Result<()> {
    let mut writer = SliceWriter::staged(to);
    for item in from.scan(b"") {
        let (key, value) = item?;
        if !skipped.contains(&key) {
            writer.add(key, value)?;
        }
    }
    writer.send()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::engine::folder::database_folders;
    use crate::record::{CollectionKind, Record, Schema, Sharing};
    use crate::store::Store;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Note {
        id: u32,
        text: String,
    }

    impl Record for Note {
        const COLLECTION: &'static str = "notes";
        const SHARING: Sharing = Sharing::Local;

        fn id(&self) -> u32 {
            self.id
        }
    }

    #[derive(Serialize, Deserialize)]
    struct Item {
        id: u32,
        round: u32,
    }

    impl Record for Item {
        const COLLECTION: &'static str = "items";
        const SHARING: Sharing = Sharing::Local;
        const KIND: CollectionKind = CollectionKind::Paged;

        fn id(&self) -> u32 {
            self.id
        }
    }

    fn note(id: u32, round: u32) -> Note {
        Note { id, text: format!("{round:02000}") }
    }

    #[test]
    fn a_database_is_worth_compacting_when_it_is_wasteful_or_much_was_written() {
        let limit = WRITTEN_BYTES_MAX;
        for (written, live, expected) in [
            (0, 0, Worth::No),
            (limit, 0, Worth::No),
            (limit + 1, 0, Worth::WhenQuiet),
            (2 * limit + 1, 0, Worth::Now),
            (2 * limit + 1, limit, Worth::WhenQuiet),
            (2 * limit, limit, Worth::No),
        ] {
            assert_eq!(worth(written, 0, live), expected, "{written} {live}");
        }
        assert_eq!(worth(0, u64::MAX, 1), Worth::WhenQuiet);
    }

    #[test]
    fn values_that_are_replaced_after_they_were_copied_are_not_in_the_compacted_store() {
        const N: u32 = 200;
        for has_scan in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let (at, key) = (folder.path().join("store"), folder.path().join("key"));
            let schema = || Schema::new().with::<Note>();
            let store = Store::open(&at, &key, schema()).unwrap();
            // So many that they are not overwritten in place.
            let put = |round| {
                store.write_blocking(move |write| (1..=N).try_for_each(|id| write.put(&note(id, round))))
            };
            put(0).unwrap();
            // Replaced values stay while it lasts.
            let scan = store.shared().begin_scan();
            let copied = store.run(|writer| {
                writer.begin_compaction()?;
                let mut compaction = writer.compaction.take().expect("it has begun");
                while !writer.copy_slice(&mut compaction)? {}
                compaction.next_at = Instant::now() + STAGE_PAUSE * 3_600;
                writer.compaction = Some(compaction);
                Ok(())
            });
            copied.unwrap();
            put(1).unwrap();
            let scan = has_scan.then_some(scan);
            let completed = store.run(|writer| {
                let compaction = writer.compaction.take().expect("it waits");
                writer.advance(compaction)
            });
            completed.unwrap();
            drop(scan);
            // An older value that nobody knows would come back.
            store.write_blocking(|write| write.remove::<Note>(3).map(drop)).unwrap();
            drop(store);
            let report = crate::check(&at, &key, &schema()).unwrap();
            assert!(report.is_ok(), "{report}");
            let store = Store::open(&at, &key, schema()).unwrap();
            let notes = store.collection::<Note>();
            let expected = |id: u32| (id != 3).then(|| note(id, 1));
            (1..=N).for_each(|id| assert_eq!(notes.get(id).unwrap(), expected(id)));
        }
    }

    #[test]
    fn a_store_that_is_written_on_and_on_is_compacted_while_it_runs() {
        const N: u32 = 200;
        const ROUNDS: u32 = 60;
        let folder = tempfile::tempdir().unwrap();
        let (at, key) = (folder.path().join("store"), folder.path().join("key"));
        let schema = || Schema::new().with::<Note>().with::<Item>();
        let store = Store::open(&at, &key, schema()).unwrap();
        let import = |round: u32| {
            let mut bulk = store.bulk_write::<Item>(0).unwrap();
            (1..=2_000).for_each(|id| bulk.put(&Item { id, round }).unwrap());
            bulk.commit(|_, _| Ok::<_, Error>(())).unwrap();
        };
        import(0);
        let first = database_folders(&at).unwrap();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::SeqCst) {
                    let mut rounds = Vec::new();
                    store.collection::<Item>().for_each(|it| rounds.push(it.round)).unwrap();
                    assert!(
                        rounds.len() == 2_000 && rounds.iter().all(|it| *it == rounds[0]),
                        "a mixed scan"
                    );
                    std::thread::sleep(SLICE_PAUSE);
                }
            });
            for round in 1..=ROUNDS {
                store
                    .write_blocking(move |write| (1..=N).try_for_each(|id| write.put(&note(id, round))))
                    .unwrap();
                store.write_blocking(move |write| write.remove::<Note>(round).map(drop)).unwrap();
                if round % 20 == 0 {
                    import(round);
                }
            }
            is_done.store(true, Ordering::SeqCst);
        });
        let complete = |store: &Store| {
            let notes = store.collection::<Note>();
            (1..=N)
                .filter(|id| *id != ROUNDS)
                .for_each(|id| assert_eq!(notes.get(id).unwrap(), Some(note(id, ROUNDS))));
            assert_eq!(notes.len(), N as usize - 1);
            let mut n = 0;
            store.collection::<Item>().for_each(|it| n += u32::from(it.round == ROUNDS)).unwrap();
            assert_eq!(n, 2_000);
        };
        complete(&store);
        let now = database_folders(&at).unwrap();
        assert!(!now.contains(&first[0]), "{now:?}");
        drop(store);
        let report = crate::check(&at, &key, &schema()).unwrap();
        assert!(report.is_ok(), "{report}");
        complete(&Store::open(&at, &key, schema()).unwrap());
        assert_eq!(database_folders(&at).unwrap().len(), 1);
    }
}
