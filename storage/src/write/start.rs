//! The steps between the lock of the store and the first job: opening the database, and the first commit of a new store or
//! loading an old one. And the step after the last job.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use crate::changes::BACKLOG;
use crate::engine::block_cache::BlockCache;
use crate::engine::commit_file::{CommitFile, CommitMark};
use crate::engine::disk::{Disk, Slice};
use crate::engine::disk_watch::DiskWatch;
use crate::engine::folder::{
    checksum, database_folder, database_folders, remove_folder, sync_parent, sync_whole,
};
use crate::engine::shared::Shared;
use crate::engine::slice_writer::SliceWriter;
use crate::engine::space::{ensure_room, is_wasteful};
use crate::engine::state::{Directory, State};
use crate::engine::value::{DiskKey, Value};
use crate::engine::vault::Vault;
use crate::error::{Error, Result};
use crate::record::Schema;
use crate::recovery::load::{self, DamagedValue, Loaded};
use crate::recovery::migration::Formats;
use crate::recovery::open::{open_copy_in_memory, open_database};
use crate::write::commit::meta;
use crate::write::sweep::sweep;
use crate::write::writer::Writer;

/// The parts of a start beside the commit file.
pub(crate) struct Start<'a> {
    /// Folder of the store, which is locked.
    pub(crate) folder: &'a Path,
    pub(crate) lock: &'a File,
    pub(crate) schema: &'a Schema,
    pub(crate) vault: &'a Vault,
    pub(crate) formats: &'a Formats,
}

impl Start<'_> {
    /// Creates the database of a new store.
    pub(crate) fn create(&self, commit_file: CommitFile, mark: &CommitMark) -> Result<Writer> {
        let database = database_folder(self.folder, mark.generation);
        remove_folder(&database)?;
        let mut writer = self.writer(Disk::open(&database)?, commit_file, mark.generation)?;
        writer.first_commit()?;
        writer.load_log()?;
        Ok(writer)
    }

    /// Opens the database of an existing store. On a full disk, opens a copy in memory, and the store refuses writes until
    /// there is room.
    pub(crate) fn open(&self) -> Result<Writer> {
        // With less room the store would refuse writes anyway, and sled should not meet the end of it half-way.
        if let Err(error) = ensure_room(self.folder, "write", 0) {
            return self.open_in_memory(&error).or_else(|why| {
                tracing::warn!(
                    "opening the database on the full disk, because a copy in memory failed: {why}"
                );
                self.open_here()
            });
        }
        self.open_here().or_else(|error| match error.is_full() {
            true => self.open_in_memory(&error).map_err(|why| {
                tracing::warn!("failed to open a copy of the database in memory: {why}");
                error
            }),
            false => Err(error),
        })
    }

    /// Opens the database on the disk of the store.
    fn open_here(&self) -> Result<Writer> {
        let (mut commit_file, mark) = self.commit_file()?;
        let (disk, mark) = open_database(self.folder, mark, &mut commit_file, self.vault, self.formats)?;
        let mut writer = self.writer(disk, commit_file, mark.generation)?;
        writer.load(&mark)?;
        writer.load_log()?;
        Ok(writer)
    }

    /// Opens a copy of the database in memory, because the disk is full. Changes nothing on the disk.
    fn open_in_memory(&self, full: &Error) -> Result<Writer> {
        let (commit_file, mark) = self.commit_file()?;
        let (disk, mark) = open_copy_in_memory(self.folder, mark, self.formats)?;
        let mut writer = self.writer(disk, commit_file, mark.generation)?;
        writer.load_copy(&mark)?;
        writer.load_log()?;
        tracing::warn!("the disk is full: the store was read from a copy in memory, and nothing is saved");
        writer.refuse(full, true);
        Ok(writer)
    }

    fn commit_file(&self) -> Result<(CommitFile, CommitMark)> {
        CommitFile::open(self.folder)?.ok_or_else(|| Error::Damaged {
            at: self.folder.to_owned(),
            what: "the commit file is missing".to_owned(),
        })
    }

    fn writer(&self, disk: Disk, commit_file: CommitFile, generation: u64) -> Result<Writer> {
        let stop = watch::channel(None).0;
        let disk_watch = DiskWatch::new(stop.clone());
        let lock = self.lock.try_clone().map_err(|error| Error::disk("keep the lock of the store", error))?;
        let directories = self.schema.record_types.iter().map(|it| Directory::new(it.kind)).collect();
        let shared = Arc::new(Shared {
            folder: self.folder.to_owned(),
            schema: self.schema.clone(),
            format: self.formats.now,
            state: RwLock::new(State { directories, commit: 0, set_aside: Vec::new() }),
            disk: RwLock::new(Some(Arc::new(disk.watched_by(&disk_watch)))),
            vault: self.vault.clone(),
            cache: Mutex::new(BlockCache::default()),
            changes: broadcast::channel(BACKLOG).0,
            n_scans: 0.into(),
            is_compacting: false.into(),
            n_compactions: 0.into(),
            n_reads: 0.into(),
            kept: Mutex::default(),
            backing_up: Mutex::default(),
            disk_watch,
            last_statistics: Mutex::default(),
            stop,
            committed_at: Mutex::new(Instant::now()),
            log_status: watch::channel(None).0,
            following: Mutex::default(),
            lock: Mutex::new(Some(lock)),
        });
        Ok(Writer::new(shared, commit_file, generation, *self.formats))
    }
}

impl Writer {
    /// Writes the first commit of a new store.
    fn first_commit(&mut self) -> Result<()> {
        self.last = 1;
        let disk = self.shared.disk()?;
        let mut slice = Slice::default();
        slice.put(DiskKey::Meta.encode(), meta(&self.shared, 1)?);
        disk.apply(slice)?;
        disk.sync()?;
        sync_whole(&database_folder(&self.shared.folder, self.generation))?;
        // The folder of the store may be new too.
        sync_parent(&self.shared.folder)
            .map_err(|error| Error::disk("sync the folder above the store", error))?;
        let mut state = self.shared.state.write();
        state.commit = 1;
        let mark = self.shared.mark(self.generation, &state);
        drop(state);
        self.write_mark(&mark)
    }

    /// Writes the commit file; returns once it is durable.
    pub(crate) fn write_mark(&mut self, mark: &CommitMark) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let _operation = shared.disk_watch.begin();
        self.commit_file.write(mark)
    }

    /// Reads all records, compares them with the last acknowledged commit, and removes the leftovers of a crash. Then
    /// this database replaces all others.
    fn load(&mut self, mark: &CommitMark) -> Result<()> {
        let is_sealing = self.load_copy(mark)?;
        let disk = self.shared.disk()?;
        let database = database_folder(&self.shared.folder, self.generation);
        sync_whole(&database)?;
        let mark = self.shared.mark(self.generation, &self.shared.state.read());
        self.write_mark(&mark)?;
        disk.keep();
        for other in database_folders(&self.shared.folder)?.iter().filter(|it| **it != database) {
            remove_folder(other)?;
        }
        drop(disk);
        self.compact_if_needed(is_sealing)
    }

    /// Reads all records, and compares them with the last acknowledged commit. Returns whether the database contained secrets
    /// that were not encrypted.
    fn load_copy(&mut self, mark: &CommitMark) -> Result<bool> {
        let disk = self.shared.disk()?;
        let LoadedDatabase { state, last, is_sealing } = load_and_clean(&self.shared, &disk, mark)?;
        self.last = last.max(mark.commit);
        for disk_key in &state.set_aside {
            tracing::error!("{disk_key} is damaged and was set aside; the store opens without it");
        }
        *self.shared.state.write() = state;
        Ok(is_sealing)
    }

    /// Compacts a database that was just opened, if it is much too large or contained secrets that were not encrypted.
    pub(crate) fn compact_if_needed(&mut self, is_sealing: bool) -> Result<()> {
        let disk_bytes = self.shared.disk()?.bytes();
        let live_bytes = self.shared.state.read().live_bytes();
        if is_wasteful(disk_bytes, live_bytes) || is_sealing {
            let reason = match is_sealing {
                true => "it contains secrets that were not encrypted",
                false => "it is several times larger than its data",
            };
            tracing::info!(disk_bytes, live_bytes, "compacting the store: {reason}");
            if let Err(error) = self.compact() {
                tracing::warn!("failed to compact the store: {error}");
                self.ensure_not_stopped()?;
            }
        }
        Ok(())
    }

    /// Makes everything durable and notes the state of the database, so that the next start can tell whether it changed
    /// since.
    pub(crate) fn close(&mut self) -> Result<()> {
        if self.is_disk_unknown() {
            return self.ensure_not_stopped();
        }
        self.shared.disk()?.sync()?;
        let closed = checksum(&database_folder(&self.shared.folder, self.generation))?;
        let mark = self.shared.mark(self.generation, &self.shared.state.read());
        self.write_mark(&CommitMark { closed: Some(closed), ..mark })
    }
}

/// A database that was read and cleaned.
pub(crate) struct LoadedDatabase {
    pub(crate) state: State,
    /// The largest number of a commit or stage found.
    pub(crate) last: u64,
    /// It contained records that an earlier version wrote unencrypted.
    pub(crate) is_sealing: bool,
}

/// Reads all records, compares them with the last acknowledged commit, removes the leftovers of a crash, encrypts what is
/// not, and sets damaged records aside.
pub(crate) fn load_and_clean(shared: &Shared, disk: &Disk, mark: &CommitMark) -> Result<LoadedDatabase> {
    let Loaded { mut state, last, mut leftovers, damaged, sealed } = load::load(shared, disk, mark)?;
    while !leftovers.is_empty() {
        sweep(disk, &mut leftovers)?;
    }
    let is_sealing = !sealed.is_empty();
    seal(disk, sealed)?;
    disk.sync()?;
    // After the sweep, so that no older version of a damaged record can become current again.
    set_aside(disk, damaged, &mut state)?;
    Ok(LoadedDatabase { state, last, is_sealing })
}

/// Overwrites records that were not encrypted.
fn seal(disk: &Disk, sealed: Vec<(Vec<u8>, Vec<u8>)>) -> Result<()> {
    let mut writer = SliceWriter::staged(disk);
    for (key, value) in sealed {
        writer.add(key, value)?;
    }
    writer.send()
}

/// Moves damaged records to keys of their own, durably.
fn set_aside(disk: &Disk, damaged: Vec<DamagedValue>, state: &mut State) -> Result<()> {
    if damaged.is_empty() {
        return Ok(());
    }
    for DamagedValue { disk_key, bytes, why } in damaged {
        tracing::error!("{disk_key} is damaged: {why}");
        let aside = DiskKey::SetAside(Box::new(disk_key.clone()));
        let value = Value::new(aside.encode(), state.commit, bytes);
        let mut slice = Slice::default();
        slice.put(aside.encode(), value.encode());
        slice.remove(disk_key.encode());
        disk.apply(slice)?;
        if !state.set_aside.contains(&disk_key) {
            state.set_aside.push(disk_key);
        }
    }
    disk.sync()
}
