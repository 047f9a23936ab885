//! The present guide file of each source.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::guide::state::GuideState;
use domain::ids::GuideSourceId;
use parking_lot::RwLock;

use super::file::GuideFile;
use super::output::{self, UNFINISHED, create_folder};
use super::writer::{FinishedGuide, GuideWriter, file_name, parse_file_name};
use crate::error::{Error, Result};
use crate::store::Store;

/// The folder of guide files, beside that of the store.
pub const FOLDER: &str = "guides";

/// The guide files of a data folder. Clones share them.
#[derive(Clone)]
pub struct GuideFiles(Arc<Folder>);

struct Folder {
    path: PathBuf,
    sources: RwLock<BTreeMap<GuideSourceId, Present>>,
    is_temporary: bool,
}

/// The files of a source.
#[derive(Default)]
struct Present {
    /// The highest generation that was given to a file or named by a state.
    generation: u64,
    file: Option<Arc<GuideFile>>,
    /// Whether the file that the state names is missing or damaged.
    is_damaged: bool,
}

impl GuideFiles {
    /// Opens the files that belong to a store, in the folder `guides` beside it, and takes those into use that its states
    /// name. Those of a temporary store are temporary. Blocks.
    pub fn from_store(store: &Store) -> Result<Self> {
        let Some(folder) = store.lasting_folder() else { return Self::temporary() };
        let files = Self::open(&folder.with_file_name(FOLDER))?;
        let states = store.collection::<GuideState>().all()?;
        files.adopt(states.into_iter().map(|it| (it.source, it.generation)))?;
        if store.log_status().borrow().is_some() {
            // Other nodes of the cluster have those that are missing here.
            files.0.sources.write().values_mut().for_each(|it| it.is_damaged = false);
        }
        Ok(files)
    }

    /// Opens the folder, or creates it; on a full disk, the first file creates it. No source has a file before
    /// [`GuideFiles::adopt`]. Blocks.
    pub fn open(folder: &Path) -> Result<Self> {
        match create_folder(folder) {
            Err(error) if error.is_full() => tracing::warn!("{error}"),
            created => created?,
        }
        Ok(Self::new(folder.to_owned(), false))
    }

    /// Creates a folder that is removed with the last clone.
    pub fn temporary() -> Result<Self> {
        let n = getrandom::u64().map_err(|error| Error::disk("get random bytes from the system", error))?;
        let path = std::env::temp_dir().join(format!("headwater-guides-{}-{n:016x}", std::process::id()));
        create_folder(&path)?;
        Ok(Self::new(path, true))
    }

    /// Returns a new file without a name in the folder, for a download for example. It disappears when it is closed.
    /// Blocks.
    pub fn unnamed(&self) -> Result<File> {
        create_folder(&self.0.path)?;
        output::unnamed(&self.0.path)
    }

    #[cfg(test)]
    pub(super) fn folder(&self) -> PathBuf {
        self.0.path.clone()
    }

    fn new(path: PathBuf, is_temporary: bool) -> Self {
        Self(Arc::new(Folder { path, sources: RwLock::default(), is_temporary }))
    }

    /// Takes the files into use that the states of the sources name by their generation, and removes all others. Call it
    /// once, before anything is written. Blocks.
    ///
    /// If a file is missing or damaged, the source has none until its next refresh, except that an earlier file of the
    /// source is used if there is one.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn adopt(&self, states: impl IntoIterator<Item = (GuideSourceId, u64)>) -> Result<()> {
        let mut found: BTreeMap<GuideSourceId, Vec<u64>> = BTreeMap::new();
        for name in self.0.names()? {
            match parse_file_name(&name) {
                Some((source, generation)) => found.entry(source).or_default().push(generation),
                None if name.ends_with(UNFINISHED) => self.0.remove(&name),
                // Not ours.
                None => {}
            }
        }
        let mut sources = BTreeMap::new();
        for (source, named) in states.into_iter().filter(|it| it.1 > 0) {
            let mut generations = found.remove(&source).unwrap_or_default();
            generations.sort_unstable();
            let highest = generations.last().copied().unwrap_or_default().max(named);
            let usable = generations.iter().rev().filter(|it| **it <= named);
            let file = usable.filter_map(|it| self.0.open(source, *it)).next();
            let is_damaged = file.as_ref().is_none_or(|it| it.generation() != named);
            if is_damaged {
                tracing::error!(%source, generation = named, "the guide file of a source is missing or damaged");
            }
            let used = file.as_ref().map(|it| it.generation());
            for unused in generations.into_iter().filter(|it| Some(*it) != used) {
                self.0.remove(&file_name(source, unused));
            }
            let present = Present { generation: highest, file: file.map(Arc::new), is_damaged };
            sources.insert(source, present);
        }
        for (source, generations) in found {
            generations.into_iter().for_each(|it| self.0.remove(&file_name(source, it)));
        }
        *self.0.sources.write() = sources;
        Ok(())
    }

    /// Returns the present file of a source. `None` if it has none or it is damaged. Does not read the disk.
    pub fn file(&self, source: GuideSourceId) -> Option<Arc<GuideFile>> {
        let file = self.0.sources.read().get(&source)?.file.clone()?;
        (!file.is_damaged()).then_some(file)
    }

    /// Returns the present files of all sources, of one moment. Does not read the disk.
    pub fn present(&self) -> BTreeMap<GuideSourceId, Arc<GuideFile>> {
        let sources = self.0.sources.read();
        sources.iter().filter_map(|(source, it)| Some((*source, it.file.clone()?))).collect()
    }

    /// Lists the sources whose file is missing or damaged. A refresh that finds their guide unchanged does not help: they
    /// need one that writes a new file.
    pub fn damaged(&self) -> Vec<GuideSourceId> {
        let sources = self.0.sources.read();
        let is_damaged = |it: &Present| it.is_damaged || it.file.as_ref().is_some_and(|it| it.is_damaged());
        sources.iter().filter(|it| is_damaged(it.1)).map(|it| *it.0).collect()
    }

    /// Begins the next file of a source. Blocks.
    ///
    /// # Errors
    /// If the disk has no room for a file like the present one.
    pub fn begin(&self, source: GuideSourceId) -> Result<GuideWriter> {
        create_folder(&self.0.path)?;
        let (generation, expected_bytes) = {
            let mut sources = self.0.sources.write();
            let present = sources.entry(source).or_default();
            present.generation += 1;
            (present.generation, present.file.as_ref().map_or(0, |it| it.n_bytes()))
        };
        GuideWriter::begin(&self.0.path, source, generation, expected_bytes)
    }

    /// Takes a file into use, after the commit of the state that names its generation, and removes the earlier one. Readers
    /// of the earlier one can continue. A file that is older than the present one is removed instead. Blocks.
    pub fn install(&self, finished: FinishedGuide) {
        let source = finished.source();
        let mut sources = self.0.sources.write();
        let present = sources.entry(source).or_default();
        if present.file.as_ref().is_some_and(|it| it.generation() > finished.generation()) {
            return;
        }
        present.generation = present.generation.max(finished.generation());
        present.is_damaged = false;
        let before = present.file.replace(finished.into_file());
        drop(sources);
        if let Some(before) = before {
            self.0.remove(&file_name(source, before.generation()));
        }
    }

    /// Returns the path of a file, whether or not it exists.
    pub fn path(&self, source: GuideSourceId, generation: u64) -> PathBuf {
        self.0.path.join(file_name(source, generation))
    }

    /// Returns a new path in the folder, for a file that is being written. What is left of it is removed at a start.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn unfinished_path(&self) -> Result<PathBuf> {
        create_folder(&self.0.path)?;
        let n = getrandom::u64().map_err(|error| Error::disk("get random bytes from the system", error))?;
        Ok(self.0.path.join(format!("{n:016x}.{UNFINISHED}")))
    }

    /// Takes a complete file of another node into use, which is durable at an [unfinished
    /// path](GuideFiles::unfinished_path), and removes the earlier one. A file that is older than the present one is removed
    /// instead. Blocks.
    ///
    /// # Errors
    /// The file does not belong to this source and generation. It is removed.
    pub fn receive(&self, source: GuideSourceId, generation: u64, from: &Path) -> Result<()> {
        let failed = |error| Error::disk("take the guide of another node into use", error);
        let mut sources = self.0.sources.write();
        let present = sources.entry(source).or_default();
        if present.file.as_ref().is_some_and(|it| it.generation() >= generation && !it.is_damaged()) {
            return fs::remove_file(from).map_err(failed);
        }
        // Checked before a damaged file of this generation is replaced.
        let checked = GuideFile::open(from, source, generation).and_then(|_| {
            fs::rename(from, self.path(source, generation)).map_err(failed)?;
            output::sync_folder(&self.0.path)?;
            GuideFile::open(&self.path(source, generation), source, generation)
        });
        let file = checked.inspect_err(|_| drop(fs::remove_file(from)))?;
        present.generation = present.generation.max(generation);
        present.is_damaged = false;
        let before = present.file.replace(Arc::new(file));
        drop(sources);
        if let Some(before) = before.filter(|it| it.generation() != generation) {
            self.0.remove(&file_name(source, before.generation()));
        }
        Ok(())
    }

    /// Keeps the next file of a source from having a number that another node has given.
    pub fn reserve(&self, source: GuideSourceId, generation: u64) {
        let mut sources = self.0.sources.write();
        let present = sources.entry(source).or_default();
        present.generation = present.generation.max(generation);
    }

    /// Reports that the file that the state of a source names is lost.
    pub fn mark_missing(&self, source: GuideSourceId) {
        self.0.sources.write().entry(source).or_default().is_damaged = true;
    }

    /// Removes the file of a source that was deleted, or has no programmes any more. Readers can continue. Blocks.
    pub fn remove(&self, source: GuideSourceId) {
        let before = self.0.sources.write().get_mut(&source).and_then(|it| {
            // The generation stays, so that no number is used twice.
            it.is_damaged = false;
            it.file.take()
        });
        if let Some(before) = before {
            self.0.remove(&file_name(source, before.generation()));
        }
    }
}

impl Folder {
    fn names(&self) -> Result<Vec<String>> {
        let failed = |error| Error::disk("read the folder of guide files", error);
        let mut names = Vec::new();
        let entries = match fs::read_dir(&self.path) {
            // On a full disk, until the first file is written.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(names),
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            // Other names cannot be ours.
            names.extend(entry.map_err(failed)?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn open(&self, source: GuideSourceId, generation: u64) -> Option<GuideFile> {
        let opened = GuideFile::open(&self.path.join(file_name(source, generation)), source, generation);
        opened.inspect_err(|error| tracing::warn!(%source, generation, "{error}")).ok()
    }

    /// Removes a file. One that stays only takes room, until the next start.
    fn remove(&self, name: &str) {
        match fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!("failed to remove the guide file {name}: {error}");
            }
            _ => {}
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_temporary {
            // Nothing depends on it any more.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
