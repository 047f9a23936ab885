//! The steps between opening the database and the first job: the first commit of a new store, or loading an old one. And
//! the step after the last job.

use std::sync::Arc;

use crate::engine::commit_file::CommitMark;
use crate::engine::disk::{Disk, Slice};
use crate::engine::folder::{
    checksum, database_folder, database_folders, remove_folder, sync_parent, sync_whole,
};
use crate::engine::shared::Shared;
use crate::engine::slice_writer::SliceWriter;
use crate::engine::space::is_wasteful;
use crate::engine::state::State;
use crate::engine::value::{DiskKey, Value};
use crate::error::{Error, Result};
use crate::recovery::load::{self, DamagedValue, Loaded};
use crate::write::commit::meta;
use crate::write::sweep::sweep;
use crate::write::writer::Writer;

impl Writer {
    /// Writes the first commit of a new store.
    pub(crate) fn first_commit(&mut self) -> Result<()> {
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
    pub(crate) fn load(&mut self, mark: &CommitMark) -> Result<()> {
        let disk = self.shared.disk()?;
        let LoadedDatabase { state, last, is_sealing } = load_and_clean(&self.shared, &disk, mark)?;
        self.last = last.max(mark.commit);
        for disk_key in &state.set_aside {
            tracing::error!("{disk_key} is damaged and was set aside; the store opens without it");
        }
        *self.shared.state.write() = state;
        let database = database_folder(&self.shared.folder, self.generation);
        sync_whole(&database)?;
        let mark = self.shared.mark(self.generation, &self.shared.state.read());
        self.write_mark(&mark)?;
        disk.keep();
        for other in database_folders(&self.shared.folder)?.iter().filter(|it| **it != database) {
            remove_folder(other)?;
        }
        let (disk_bytes, live_bytes) = (disk.bytes(), self.shared.state.read().live_bytes());
        drop(disk);
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
    is_sealing: bool,
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
