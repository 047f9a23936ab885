//! State shared by readers and the writer.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use crate::changes::Change;
use crate::engine::block::Block;
use crate::engine::block_cache::BlockCache;
use crate::engine::commit_file::CommitMark;
use crate::engine::disk::Disk;
use crate::engine::disk_watch::DiskWatch;
use crate::engine::kept_values::KeptValues;
use crate::engine::state::{State, record_counts, value_sums};
use crate::engine::statistics::StoreStatistics;
use crate::engine::value::{DiskKey, Location, Value};
use crate::engine::vault::Vault;
use crate::error::{Error, Result, StopReason};
use crate::log::LogStatus;
use crate::record::{RecordType, Schema};

pub(crate) struct Shared {
    pub(crate) folder: PathBuf,
    pub(crate) schema: Schema,
    /// Format of the store as a whole that is written.
    pub(crate) format: u8,
    /// Changed by the writer alone, together with the slice that makes a commit current.
    pub(crate) state: RwLock<State>,
    /// Replaced by a compaction. `None` once the folder was released.
    pub(crate) disk: RwLock<Option<Arc<Disk>>>,
    pub(crate) vault: Vault,
    pub(crate) cache: Mutex<BlockCache>,
    pub(crate) changes: broadcast::Sender<Arc<Change>>,
    /// Number of readers that scan a whole partition. Replaced values are not swept while there are any.
    pub(crate) n_scans: AtomicUsize,
    /// Whether the database is being copied to a new one.
    pub(crate) is_compacting: AtomicBool,
    /// Number of databases that replaced a larger one since the store was opened.
    pub(crate) n_compactions: AtomicU64,
    /// Number of records and blocks that were read since the store was opened.
    pub(crate) n_reads: AtomicU64,
    /// Values that commits have replaced since the snapshot, while there is one.
    pub(crate) kept: Mutex<Option<KeptValues>>,
    /// Held while a back-up reads all records, because only one snapshot exists at a time.
    pub(crate) backing_up: Mutex<()>,
    /// Notices a disk that hangs.
    pub(crate) disk_watch: Arc<DiskWatch>,
    /// The last result of [`Store::statistics`](crate::Store::statistics).
    pub(crate) last_statistics: Mutex<Option<StoreStatistics>>,
    /// Reason why writes are refused.
    pub(crate) stop: watch::Sender<Option<StopReason>>,
    /// When the last commit became durable, or the store was opened.
    pub(crate) committed_at: Mutex<Instant>,
    /// Role and position in the log, if there is one.
    pub(crate) log_status: watch::Sender<Option<LogStatus>>,
    /// Held by the one who follows the log.
    pub(crate) following: Mutex<()>,
    /// Held as long as the store is open.
    pub(crate) lock: Mutex<Option<File>>,
}

impl Shared {
    pub(crate) fn record_type(&self, number: usize) -> &RecordType {
        &self.schema.record_types[number]
    }

    /// Returns the database.
    ///
    /// # Errors
    /// The folder was released.
    pub(crate) fn disk(&self) -> Result<Arc<Disk>> {
        self.disk.read().clone().ok_or(Error::Closed)
    }

    /// Returns the mark of a state that is on the disk in this generation of the database.
    pub(crate) fn mark(&self, generation: u64, state: &State) -> CommitMark {
        CommitMark {
            generation,
            commit: state.commit,
            counts: record_counts(&self.schema, &state.directories),
            sums: Some(value_sums(&self.schema, &state.directories)),
            ..CommitMark::first(self.format)
        }
    }

    pub(crate) fn single_key(&self, type_number: usize, id: u32, version: u64) -> DiskKey {
        DiskKey::Single { collection: self.record_type(type_number).name.to_owned(), id, version }
    }

    pub(crate) fn block_key(&self, type_number: usize, owner: u64, block: u32, version: u64) -> DiskKey {
        DiskKey::Block { collection: self.record_type(type_number).name.to_owned(), owner, block, version }
    }

    /// Encodes a value for the disk, encrypted if the record type requires it.
    pub(crate) fn seal(
        &self,
        type_number: usize,
        disk_key: &DiskKey,
        commit: u64,
        payload: &[u8],
    ) -> Result<Vec<u8>> {
        let payload = match self.record_type(type_number).is_sealed {
            true => self.vault.seal(&disk_key.stem(), payload)?,
            false => payload.to_vec(),
        };
        Ok(Value::new(disk_key.encode(), commit, payload).encode())
    }

    pub(crate) fn unseal(&self, type_number: usize, disk_key: &DiskKey, value: &Value) -> Result<Vec<u8>> {
        self.record_type(type_number).unseal(&self.vault, disk_key, &value.payload)
    }

    /// Returns `None` if the key does not exist.
    fn read(&self, type_number: usize, disk_key: &DiskKey) -> Result<Option<Vec<u8>>> {
        let key = disk_key.encode();
        let Some(bytes) = self.disk()?.get(&key)? else { return Ok(None) };
        let value = Value::decode_at(&key, &bytes)?;
        self.unseal(type_number, disk_key, &value).map(Some)
    }

    /// Returns the encoded single record of this version.
    pub(crate) fn single(&self, type_number: usize, id: u32, version: u64) -> Result<Vec<u8>> {
        self.n_reads.fetch_add(1, Ordering::Relaxed);
        let disk_key = self.single_key(type_number, id, version);
        self.read(type_number, &disk_key)?.ok_or_else(|| self.missing(type_number, id))
    }

    /// Returns `None` if the block was replaced and swept in the meantime.
    pub(crate) fn block(
        &self,
        type_number: usize,
        owner: u64,
        block: u32,
        at: Location,
    ) -> Result<Option<Arc<Block>>> {
        let cache_key = (type_number, owner, block, at.commit);
        if let Some(cached) = self.cache.lock().get(&cache_key) {
            self.n_reads.fetch_add(1, Ordering::Relaxed);
            return Ok(Some(cached));
        }
        let Some(block) = self.block_uncached(type_number, owner, block, at)? else { return Ok(None) };
        let block = Arc::new(block);
        self.cache.lock().put(cache_key, Arc::clone(&block));
        Ok(Some(block))
    }

    /// Reads a block without the cache: a full scan must not evict what other readers use.
    pub(crate) fn block_uncached(
        &self,
        type_number: usize,
        owner: u64,
        block: u32,
        at: Location,
    ) -> Result<Option<Block>> {
        self.n_reads.fetch_add(1, Ordering::Relaxed);
        let disk_key = self.block_key(type_number, owner, block, at.version);
        self.read(type_number, &disk_key)?.map(|payload| Block::decode(&payload)).transpose()
    }

    pub(crate) fn missing(&self, type_number: usize, id: u32) -> Error {
        Error::DamagedRecord(format!("{} {id} is missing", self.record_type(type_number).name))
    }

    pub(crate) fn missing_block(&self, type_number: usize, block: u32) -> Error {
        Error::DamagedRecord(format!("block {block} of {} is missing", self.record_type(type_number).name))
    }

    /// Keeps replaced values on the disk until the guard is dropped.
    pub(crate) fn begin_scan(&self) -> ScanGuard<'_> {
        self.n_scans.fetch_add(1, Ordering::SeqCst);
        ScanGuard(self)
    }
}

/// Held by a reader while it scans a whole partition.
pub(crate) struct ScanGuard<'a>(&'a Shared);

impl Drop for ScanGuard<'_> {
    fn drop(&mut self) {
        self.0.n_scans.fetch_sub(1, Ordering::SeqCst);
    }
}
