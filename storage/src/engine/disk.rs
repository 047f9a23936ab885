//! The only file that uses sled, with workarounds for its faults.
//!
//! One tree holds all keys, because sled applies one batch on one tree atomically. A batch holds a process-wide lock
//! that readers wait for, so a [`Slice`] is small. Opening and reading a damaged file may panic; this module turns the
//! panic into an error. `flush` hands the data to the operating system but does not sync it, so [`Disk::sync`] does that
//! with its own file handle. sled reuses a segment as soon as its values were moved and flushed, which a power cut may
//! undo, so the file is synced before sled can fill another segment. Long values are stored in
//! [`pieces`](crate::engine::pieces), because sled does not sync the files that it would write them to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::engine::disk_watch::DiskWatch;
use crate::engine::pieces::{is_head, join, number_of_pieces, parse_piece_key, piece_key, split};
use crate::engine::value::{PIECE_LETTER, Value};
use crate::error::{Error, Result};

/// Maximum weight of a slice: a hundred single records, or twenty blocks.
pub(crate) const SLICE_WEIGHT_MAX: usize = 100;
pub(crate) const BLOCK_WEIGHT: usize = 5;
/// Adds one to the weight per this many bytes of a value, so that a few large records fill a slice.
const BYTES_PER_WEIGHT: usize = 8 * 1024;
/// Size of a segment of a new database, in bytes. A quarter of it holds a leaf full of pieces, so sled writes no blob
/// file.
const SEGMENT_BYTES: usize = 2 * 1024 * 1024;
/// Size of a segment of the first format of the store.
const FIRST_SEGMENT_BYTES: usize = 512 * 1024;
/// Bytes that may be written between two syncs. A segment whose values were moved elsewhere is reused after two more
/// segments at the earliest.
const UNSYNCED_MAX: u64 = SEGMENT_BYTES as u64 / 2;
/// Bytes that sled writes for a key beside its value: the share of the key in the leaves that are rewritten.
const LEAF_SHARE: u64 = 24 * 1024;
/// sled releases its own lock a little after its last handle was dropped.
const LOCK_TRIES: u32 = 40;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Keys that are put and removed in one batch.
#[derive(Debug, Default)]
pub(crate) struct Slice {
    operations: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    weight: usize,
}

impl Slice {
    pub(crate) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.weight += Self::weight_of(&key, value.len());
        self.operations.insert(key, Some(value));
    }

    pub(crate) fn remove(&mut self, key: Vec<u8>) {
        self.weight += 1;
        self.operations.insert(key, None);
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.operations.keys()
    }

    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Metadata, such as the number of the commit, weighs nothing: each slice has one.
    pub(crate) fn weight_of(key: &[u8], length: usize) -> usize {
        match key.first() {
            Some(b'p') => BLOCK_WEIGHT.max(length / BYTES_PER_WEIGHT),
            Some(b'r' | b'a') => 1 + length / BYTES_PER_WEIGHT,
            _ => 0,
        }
    }
}

/// An open database.
pub(crate) struct Disk {
    db: Db,
    file: File,
    n_slices: AtomicUsize,
    weight_max: AtomicUsize,
    written_bytes: AtomicU64,
    /// Estimate of the bytes written since the last sync.
    unsynced_bytes: AtomicU64,
    /// Number of pieces by the key of the value they belong to.
    pieces: Mutex<HashMap<Vec<u8>, u16>>,
    /// Is told when a write begins and ends.
    watch: Option<Arc<DiskWatch>>,
    /// Keys that were put or removed since a compaction began.
    journal: Mutex<Option<BTreeSet<Vec<u8>>>>,
    /// Size of the database that this is a copy of, in bytes, if the copy is in memory and has no folder any more.
    copied_bytes: Option<u64>,
    /// The last field, because sled has to close its files first.
    cleanup: Cleanup,
}

/// sled waits for ever when it is dropped after some failures, and panics if its last sync fails.
struct Db {
    db: Option<sled::Db>,
    /// Whether a write failed.
    has_failed: AtomicBool,
}

impl Deref for Db {
    type Target = sled::Db;

    fn deref(&self) -> &sled::Db {
        self.db.as_ref().expect("taken on drop only")
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        let db = self.db.take();
        // Its memory is lost, but sled would wait for ever, with a lock that all databases of the process need.
        if self.has_failed.load(Ordering::SeqCst) {
            return std::mem::forget(db);
        }
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(db))) {
            tracing::warn!("failed to close the database: {}", panic_message(&*panic));
        }
    }
}

/// Removes the folder of a replaced database.
struct Cleanup {
    folder: PathBuf,
    is_replaced: AtomicBool,
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        if self.is_replaced.load(Ordering::SeqCst)
            && let Err(error) = fs::remove_dir_all(&self.folder)
        {
            tracing::warn!("failed to remove the old database; the next start removes it: {error}");
        }
    }
}

impl Disk {
    /// Opens the database in the folder, or creates it. The caller checks first whether it has to exist.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let damaged = |what: String| Error::Damaged { at: folder.to_owned(), what };
        let open_with = |segment_bytes: usize| {
            sled::Config::new()
                .path(folder)
                .segment_size(segment_bytes)
                // Bounds little, but a larger one gains nothing: `BlockCache` caches the blocks.
                .cache_capacity(8 * 1024 * 1024)
                // The writer flushes; sled's own flush thread would only hold the lock.
                .flush_every_ms(None)
                .open()
        };
        // sled refuses another size than that of the database before it touches it.
        let open = || match open_with(SEGMENT_BYTES) {
            Err(sled::Error::Unsupported(_)) => open_with(FIRST_SEGMENT_BYTES),
            other => other,
        };
        remove_incomplete_snapshots(folder).map_err(|error| Error::disk("open the database", error))?;
        let mut tries = 0;
        let db = loop {
            match catch_unwind(open) {
                Ok(Ok(db)) => break db,
                Ok(Err(error)) if error.to_string().contains("WouldBlock") => {
                    tries += 1;
                    if tries == LOCK_TRIES {
                        return Err(Error::AlreadyRunning(folder.to_owned()));
                    }
                    std::thread::sleep(LOCK_PAUSE);
                }
                failed => {
                    let cause = failed.map_or_else(
                        |panic| panic_message(&*panic),
                        |error| error.err().map(|it| it.to_string()).unwrap_or_default(),
                    );
                    let error = Error::disk("open the database", cause);
                    return Err(if error.is_of_system() { error } else { damaged(error.to_string()) });
                }
            }
        };
        let file =
            File::open(folder.join("db")).map_err(|error| Error::disk("open the database file", error))?;
        let disk = Self {
            db: Db { db: Some(db), has_failed: AtomicBool::new(false) },
            file,
            n_slices: AtomicUsize::new(0),
            weight_max: AtomicUsize::new(0),
            written_bytes: AtomicU64::new(0),
            unsynced_bytes: AtomicU64::new(0),
            pieces: Mutex::new(HashMap::new()),
            watch: None,
            journal: Mutex::new(None),
            copied_bytes: None,
            cleanup: Cleanup { folder: folder.to_owned(), is_replaced: AtomicBool::new(false) },
        };
        disk.count_pieces()
            .map_err(|error| if error.is_of_system() { error } else { damaged(error.to_string()) })?;
        Ok(disk)
    }

    /// Returns whether a write failed. The database stays locked then until the process ends.
    pub(crate) fn has_failed(&self) -> bool {
        self.db.has_failed.load(Ordering::SeqCst)
    }

    /// Lets the writes of this database be watched.
    pub(crate) fn watched_by(mut self, watch: &Arc<DiskWatch>) -> Self {
        self.watch = Some(Arc::clone(watch));
        self
    }

    /// Notes that this is a copy in memory of a database of this size, and that its folder is removed.
    pub(crate) fn in_memory(mut self, copied_bytes: u64) -> Self {
        self.copied_bytes = Some(copied_bytes);
        self
    }

    /// Returns whether this is a copy in memory, because the disk of the store was full.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.copied_bytes.is_some()
    }

    /// Counts the pieces of all long values, so that those of a replaced value can be removed.
    fn count_pieces(&self) -> Result<()> {
        let mut pieces = self.pieces.lock();
        self.guarded("read the database", || {
            for key in self.db.scan_prefix([PIECE_LETTER]).keys() {
                let key = key?;
                if let Some((key, number)) = parse_piece_key(&key) {
                    let n = pieces.entry(key.to_owned()).or_default();
                    *n = (*n).max(number.saturating_add(1));
                }
            }
            Ok(())
        })
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.guarded("read the database", || {
            let mut value = self.db.get(key)?;
            loop {
                let Some(bytes) = value else { return Ok(None) };
                if let Some(joined) = self.joined(key, &bytes)? {
                    return Ok(Some(joined));
                }
                // A commit that replaces the value between two of its pieces is not damage.
                value = self.db.get(key)?;
                if value.as_ref() == Some(&bytes) {
                    return Ok(Some(bytes.to_vec()));
                }
            }
        })
    }

    /// Returns a value as it was put. `None` if pieces of it are missing.
    fn joined(&self, key: &[u8], bytes: &[u8]) -> sled::Result<Option<Vec<u8>>> {
        if !is_head(bytes) {
            return Ok(Some(bytes.to_vec()));
        }
        join(key, bytes, |key| -> sled::Result<_> {
            Ok(self.db.get(key)?.and_then(|it| Value::decode(&it).ok()))
        })
    }

    /// Applies a slice atomically. It is not durable yet.
    pub(crate) fn apply(&self, slice: Slice) -> Result<()> {
        if slice.is_empty() {
            return Ok(());
        }
        self.n_slices.fetch_add(1, Ordering::Relaxed);
        // A single value that is heavier than the limit is allowed.
        let weight = if slice.operations.len() == 1 { 1 } else { slice.weight };
        self.weight_max.fetch_max(weight, Ordering::Relaxed);
        let bytes = |it: (&Vec<u8>, &Option<Vec<u8>>)| it.0.len() + it.1.as_ref().map_or(0, Vec::len);
        let bytes: usize = slice.operations.iter().map(bytes).sum();
        self.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if let Some(journal) = &mut *self.journal.lock() {
            journal.extend(slice.operations.keys().cloned());
        }
        let unsynced = bytes as u64 + slice.operations.len() as u64 * LEAF_SHARE;
        self.unsynced_bytes.fetch_add(unsynced, Ordering::Relaxed);
        let mut batch = sled::Batch::default();
        let mut pieces = self.pieces.lock();
        for (key, value) in slice.operations {
            let n = value.as_ref().map_or(0, |it| number_of_pieces(it.len()));
            let n_before = pieces.remove(&key).unwrap_or_default();
            (n..n_before).for_each(|number| batch.remove(piece_key(&key, number)));
            match value {
                Some(value) if n > 0 => {
                    let (head, parts) = split(&key, &value);
                    parts.into_iter().for_each(|(key, value)| batch.insert(key, value));
                    pieces.insert(key.clone(), n);
                    batch.insert(key, head);
                }
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        drop(pieces);
        self.write("write the database", || self.db.apply_batch(batch))
    }

    /// Hands the applied slices to the operating system: they survive a crash of this process, not a power failure.
    pub(crate) fn flush(&self) -> Result<()> {
        self.write("flush the database", || self.db.flush().map(drop))?;
        match self.unsynced_bytes.load(Ordering::Relaxed) {
            ..UNSYNCED_MAX => Ok(()),
            _ => self.sync_file(),
        }
    }

    /// Returns once all applied slices are durable.
    pub(crate) fn sync(&self) -> Result<()> {
        self.write("flush the database", || self.db.flush().map(drop))?;
        self.sync_file()
    }

    fn sync_file(&self) -> Result<()> {
        self.unsynced_bytes.store(0, Ordering::Relaxed);
        self.write("sync the database", || Ok(self.file.sync_data()?))
    }

    /// Lists all keys with this prefix and their values, in the order of keys and without pieces. Ends after the first
    /// error.
    pub(crate) fn scan(&self, prefix: &[u8]) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>> + '_ {
        let mut items = self.db.scan_prefix(prefix);
        let mut has_ended = false;
        std::iter::from_fn(move || {
            if has_ended {
                return None;
            }
            let item = self
                .guarded("read the database", || {
                    let is_value = |it: &sled::Result<(sled::IVec, sled::IVec)>| {
                        !it.as_ref().is_ok_and(|it| it.0.first() == Some(&PIECE_LETTER))
                    };
                    let Some((key, value)) = items.by_ref().find(is_value).transpose()? else {
                        return Ok(None);
                    };
                    let joined = self.joined(&key, &value)?;
                    Ok(Some((key.to_vec(), joined.unwrap_or_else(|| value.to_vec()))))
                })
                .transpose();
            has_ended = !matches!(item, Some(Ok(_)));
            item
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.cleanup.folder
    }

    /// Size of the database on the disk, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.copied_bytes.unwrap_or_else(|| folder_bytes(&self.cleanup.folder))
    }

    /// Notes from now on which keys change.
    pub(crate) fn begin_journal(&self) {
        *self.journal.lock() = Some(BTreeSet::new());
    }

    /// Returns the number of keys that changed since the journal began.
    pub(crate) fn journal_len(&self) -> usize {
        self.journal.lock().as_ref().map_or(0, BTreeSet::len)
    }

    /// Returns the keys that changed since the journal began, and ends it.
    pub(crate) fn end_journal(&self) -> BTreeSet<Vec<u8>> {
        self.journal.lock().take().unwrap_or_default()
    }

    /// Total size of the keys and values applied so far, in bytes.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Removes the files of this replaced database once its last reader is done. sled stores large values in separate
    /// files and opens them on each read, so the files must exist until then.
    pub(crate) fn remove_with_last_reader(&self) {
        self.cleanup.is_replaced.store(!self.is_in_memory(), Ordering::SeqCst);
    }

    /// Keeps the files of a database that was to be removed.
    pub(crate) fn keep(&self) {
        self.cleanup.is_replaced.store(false, Ordering::SeqCst);
    }

    /// Returns the number of keys, pieces included. Reads the whole database.
    pub(crate) fn n_keys(&self) -> Result<usize> {
        self.guarded("read the database", || self.db.iter().keys().try_fold(0, |n, key| key.map(|_| n + 1)))
    }

    /// Returns the number of slices applied so far and the weight of the heaviest.
    pub(crate) fn slices(&self) -> (usize, usize) {
        (self.n_slices.load(Ordering::Relaxed), self.weight_max.load(Ordering::Relaxed))
    }

    /// Runs a write, and notes whether it failed.
    fn write(&self, what: &'static str, work: impl FnOnce() -> sled::Result<()>) -> Result<()> {
        let _operation = self.watch.as_ref().map(|it| it.begin());
        let done = self.guarded(what, work);
        if done.is_err() {
            self.db.has_failed.store(true, Ordering::SeqCst);
        }
        done
    }

    fn guarded<T>(&self, what: &'static str, work: impl FnOnce() -> sled::Result<T>) -> Result<T> {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(done) => done.map_err(|error| Error::disk(what, error)),
            Err(panic) => Err(Error::disk(what, panic_message(&*panic))),
        }
    }
}

/// Removes the snapshots of the log that a power cut left half-written: sled takes them for whole ones and then refuses to
/// open. Without them it reads more of the log.
fn remove_incomplete_snapshots(folder: &Path) -> std::io::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    let is_incomplete = |it: &PathBuf| it.extension().is_some_and(|it| it == "generating");
    entries.flatten().map(|it| it.path()).filter(is_incomplete).try_for_each(fs::remove_file)
}

/// Returns the message of a panic.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let message = panic.downcast_ref::<String>().cloned();
    message
        .or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()))
        .unwrap_or_else(|| "sled panicked".to_owned())
}

/// Returns the total size of all files below a folder, in bytes.
pub(crate) fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(it) if it.is_dir() => folder_bytes(&entry.path()),
            Ok(it) => it.len(),
            Err(_) => 0,
        })
        .sum()
}
