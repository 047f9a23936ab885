//! Where a store lies, and what happens between opening its database and the first write.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::engine::commit_file::CommitMark;
use crate::engine::disk::{Disk, Slice};
use crate::engine::space::is_wasteful;
use crate::engine::state::State;
use crate::engine::value::{Place, Value};
use crate::engine::vault::sync_parent;
use crate::error::{Error, Result};
use crate::recovery::load::{self, Harmed, shown};
use crate::write::writer::{Writer, counts, meta, sweep};

impl Writer {
    /// The first commit of a new store.
    pub(crate) fn begin(&mut self) -> Result<()> {
        self.last = 1;
        let disk = self.shared.disk();
        let mut slice = Slice::default();
        slice.put(Place::Meta.key(), meta(&self.shared, 1)?);
        disk.apply(slice)?;
        disk.sync()?;
        sync_parent(&database(&self.shared.folder, self.generation))
            .map_err(|error| Error::disk("sync the folder of the store", error))?;
        let mut state = self.shared.state.write();
        state.commit = 1;
        let counts = counts(&self.shared, &state.directories);
        let (format, generation) = (self.shared.format, self.generation);
        self.commit_file.write(&CommitMark { format, generation, commit: 1, counts })
    }

    /// Reads everything, compares it with what was acknowledged, and clears away what a crash left.
    pub(crate) fn load(&mut self, mark: &CommitMark) -> Result<()> {
        let loaded = load::load(&self.shared, mark)?;
        self.last = loaded.last.max(mark.commit);
        self.leftovers = loaded.leftovers;
        let disk = self.shared.disk();
        while !self.leftovers.is_empty() {
            sweep(&disk, &mut self.leftovers)?;
        }
        disk.sync()?;
        let mut state = loaded.state;
        // After the sweep: no older version of them is there any more that could count again.
        set_aside(&disk, loaded.harmed, &mut state)?;
        for place in &state.aside {
            tracing::error!("{} does not read and was set aside; all else goes on", shown(place));
        }
        *self.shared.state.write() = state;
        let (disk_bytes, live_bytes) = (disk.bytes(), self.shared.state.read().live_bytes());
        drop(disk);
        if is_wasteful(disk_bytes, live_bytes) {
            tracing::info!(
                disk_bytes,
                live_bytes,
                "the store takes several times what lives in it and is rewritten"
            );
            if let Err(error) = self.compact() {
                tracing::warn!("the store was not rewritten: {error}");
                self.may_write()?;
            }
        }
        Ok(())
    }
}

/// Puts records that do not read out of the way, durably.
fn set_aside(disk: &Disk, harmed: Vec<Harmed>, state: &mut State) -> Result<()> {
    if harmed.is_empty() {
        return Ok(());
    }
    for Harmed { place, bytes, why } in harmed {
        tracing::error!("{} is damaged: {why}", shown(&place));
        let aside = Place::Aside(Box::new(place.clone()));
        let value = Value { key: aside.key(), commit: state.commit, is_gone: false, payload: bytes };
        let mut slice = Slice::default();
        slice.put(aside.key(), value.encode());
        slice.remove(place.key());
        disk.apply(slice)?;
        if !state.aside.contains(&place) {
            state.aside.push(place);
        }
    }
    disk.sync()
}

/// The folder of one generation of the database.
pub(crate) fn database(folder: &Path, generation: u64) -> PathBuf {
    folder.join(format!("db-{generation:06}"))
}

/// All generations that lie there.
pub(crate) fn databases(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| Error::disk("read the folder of the store", error))?;
    let is_database = |it: &PathBuf| {
        let name = it.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        name.strip_prefix("db-").is_some_and(|digits| digits.bytes().all(|it| it.is_ascii_digit()))
    };
    Ok(entries.flatten().map(|it| it.path()).filter(is_database).collect())
}

pub(crate) fn remove_folder(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::disk("remove an old database", error))
        }
        _ => Ok(()),
    }
}

/// Held as long as the file is open; by one store at a time, in this process too.
pub(crate) fn lock(folder: &Path) -> Result<File> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join("lock"))
        .map_err(|error| Error::disk("open the lock of the store", error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(Error::AlreadyRunning(folder.to_owned())),
        Err(fs::TryLockError::Error(error)) => Err(Error::disk("lock the store", error)),
    }
}
