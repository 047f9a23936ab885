//! The only file that knows sled, and everything that has to be held off it.
//!
//! One tree holds all keys, because one batch on one tree lands as a whole or not at all. A batch holds a lock that is
//! shared by the whole process and on which readers wait, so a [`Slice`] is small. Opening and reading may panic on a
//! damaged file; here a panic becomes an error. `flush` asks the system to write but not to finish writing, so
//! [`Disk::sync`] does that on a handle of its own.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::error::{Error, Result};

/// What one slice may weigh: a hundred single records, or twenty blocks.
pub(crate) const SLICE_WEIGHT_MAX: usize = 100;
pub(crate) const BLOCK_WEIGHT: usize = 5;
/// A value of this many bytes weighs one more, so that a few large records are a slice too.
const BYTES_PER_WEIGHT: usize = 8 * 1024;
/// sled lets go of its own lock a little after its last handle is gone.
const LOCK_TRIES: u32 = 40;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// What is put and removed in one go.
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

    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Bookkeeping, such as the number of the commit, weighs nothing: there is one of it in each slice.
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
    db: sled::Db,
    file: File,
    n_slices: AtomicUsize,
    weight_max: AtomicUsize,
    written_bytes: AtomicU64,
    /// The last of all fields, so that sled has let go of its files.
    end: End,
}

/// Removes the folder of a database that another has taken the place of.
struct End {
    folder: PathBuf,
    is_replaced: AtomicBool,
}

impl Drop for End {
    fn drop(&mut self) {
        if self.is_replaced.load(Ordering::SeqCst)
            && let Err(error) = fs::remove_dir_all(&self.folder)
        {
            tracing::warn!("an old database stays until the next start: {error}");
        }
    }
}

impl Disk {
    /// Opens what is in the folder, or makes it. Whether it has to be there already is for the caller to check.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let damaged = |what: String| Error::Damaged { at: folder.to_owned(), what };
        let open = || {
            sled::Config::new()
                .path(folder)
                // Bounds little, but nothing is gained by a larger one: blocks are cached by ourselves.
                .cache_capacity(8 * 1024 * 1024)
                // The writer flushes; a thread that does it at other times would only take the lock.
                .flush_every_ms(None)
                .open()
        };
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
                Ok(Err(error)) => return Err(damaged(format!("the database does not open: {error}"))),
                Err(panic) => {
                    return Err(damaged(format!("the database does not open: {}", words_of(&*panic))));
                }
            }
        };
        let file =
            File::open(folder.join("db")).map_err(|error| Error::disk("open the database file", error))?;
        Ok(Self {
            db,
            file,
            n_slices: AtomicUsize::new(0),
            weight_max: AtomicUsize::new(0),
            written_bytes: AtomicU64::new(0),
            end: End { folder: folder.to_owned(), is_replaced: AtomicBool::new(false) },
        })
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.guarded("read the database", || Ok(self.db.get(key)?.map(|value| value.to_vec())))
    }

    /// Puts and removes all of it or nothing. Not durable yet.
    pub(crate) fn apply(&self, slice: Slice) -> Result<()> {
        if slice.is_empty() {
            return Ok(());
        }
        self.n_slices.fetch_add(1, Ordering::Relaxed);
        // One value heavier than a slice is a slice by itself.
        let weight = if slice.operations.len() == 1 { 1 } else { slice.weight };
        self.weight_max.fetch_max(weight, Ordering::Relaxed);
        let bytes = |it: (&Vec<u8>, &Option<Vec<u8>>)| it.0.len() + it.1.as_ref().map_or(0, Vec::len);
        let bytes: usize = slice.operations.iter().map(bytes).sum();
        self.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.guarded("write the database", || {
            let mut batch = sled::Batch::default();
            for (key, value) in slice.operations {
                match value {
                    Some(value) => batch.insert(key, value),
                    None => batch.remove(key),
                }
            }
            self.db.apply_batch(batch)
        })
    }

    /// Hands what was applied to the system: it survives the end of this process, not that of the machine.
    pub(crate) fn flush(&self) -> Result<()> {
        self.guarded("flush the database", || self.db.flush().map(drop))
    }

    /// Returns once everything applied is on the disk.
    pub(crate) fn sync(&self) -> Result<()> {
        self.flush()?;
        self.file.sync_data().map_err(|error| Error::disk("sync the database", error))
    }

    /// Everything whose key begins with this, in the order of keys. Ends after the first error.
    pub(crate) fn scan(&self, prefix: &[u8]) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>> + '_ {
        let mut items = self.db.scan_prefix(prefix);
        let mut is_over = false;
        std::iter::from_fn(move || {
            if is_over {
                return None;
            }
            let item = self
                .guarded("read the database", || {
                    items.next().transpose().map(|it| it.map(|(key, value)| (key.to_vec(), value.to_vec())))
                })
                .transpose();
            is_over = !matches!(item, Some(Ok(_)));
            item
        })
    }

    /// What the database takes of the disk.
    pub(crate) fn bytes(&self) -> u64 {
        folder_bytes(&self.end.folder)
    }

    /// Bytes of keys and values applied so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Another has taken its place: its files go when nobody reads in them any more. sled keeps large values in files
    /// of their own and opens them to read, so they must not go before.
    pub(crate) fn remove_with_last_reader(&self) {
        self.end.is_replaced.store(true, Ordering::SeqCst);
    }

    /// Slices applied so far, and the weight of the heaviest.
    pub(crate) fn slices(&self) -> (usize, usize) {
        (self.n_slices.load(Ordering::Relaxed), self.weight_max.load(Ordering::Relaxed))
    }

    fn guarded<T>(&self, what: &'static str, work: impl FnOnce() -> sled::Result<T>) -> Result<T> {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(done) => done.map_err(|error| Error::disk(what, error)),
            Err(panic) => Err(Error::disk(what, words_of(&*panic))),
        }
    }
}

/// What a panic said.
pub(crate) fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let said = panic.downcast_ref::<String>().cloned();
    said.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()))
        .unwrap_or_else(|| "it panicked".to_owned())
}

/// All files below a folder.
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
