//! Reads as much as possible of a store that may be damaged, for [`check`](crate::check()) and
//! [`salvage`](crate::salvage()).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::engine::commit_file::{self, CommitFile, CommitMark};
use crate::engine::disk::{Disk, folder_bytes};
use crate::engine::folder::{copy_database, database_folder, database_folders, lock};
use crate::engine::pieces::join;
use crate::engine::space::ensure_room;
use crate::engine::value::{DiskKey, MAGIC, PIECE_LETTER, Value};
use crate::engine::vault::random;
use crate::error::{Error, Result};
use crate::recovery::damage::Damage;
use crate::recovery::migration::{FORMATS, refuse_newer};

/// Name of the folder of a temporary copy.
pub(crate) const COPY_FOLDER: &str = "copy-to-read";

/// The contents of the folder of a store.
pub(crate) struct FoundStore {
    pub(crate) database: Option<PathBuf>,
    pub(crate) mark: Option<CommitMark>,
    pub(crate) commit: Option<u64>,
    /// Keeps the store locked until this is dropped.
    _lock: File,
}

/// Finds and locks a store. Returns an error if there is none; never creates one.
pub(crate) fn find_store(folder: &Path, problems: &mut Vec<String>) -> Result<FoundStore> {
    let exists =
        folder.join(commit_file::FILE).exists() || database_folders(folder).is_ok_and(|it| !it.is_empty());
    if !exists {
        return Err(Error::NoStore(folder.to_owned()));
    }
    let lock = lock(folder)?;
    let mark = match CommitFile::open(folder) {
        Ok(Some((_, mark))) => {
            refuse_newer(&mark, &FORMATS)?;
            Some(mark)
        }
        Ok(None) => {
            problems.push("the commit file is missing".to_owned());
            None
        }
        Err(error) if error.is_of_system() => return Err(error),
        Err(error) => {
            problems.push(error.to_string());
            None
        }
    };
    let mut databases = database_folders(folder)?;
    databases.sort();
    let named = mark.as_ref().map(|it| database_folder(folder, it.generation));
    let database = match named {
        Some(named) if named.join("db").exists() => Some(named),
        Some(named) => {
            problems.push(format!("the database {} is missing", named.display()));
            databases.pop()
        }
        None => databases.pop(),
    };
    Ok(FoundStore { database, commit: mark.as_ref().map(|it| it.commit), mark, _lock: lock })
}

/// A temporary copy of a database. sled writes when it opens a database, which could increase the damage.
pub(crate) struct DatabaseCopy {
    pub(crate) folder: PathBuf,
}

impl DatabaseCopy {
    /// Copies a database to a folder of its own in `parent`.
    pub(crate) fn new(database: &Path, parent: &Path) -> Result<Self> {
        Self::at(database, parent.join(COPY_FOLDER))
    }

    /// Copies a database to the folder for temporary files, because the disk of the store may be full, or next to it if
    /// that has no room.
    pub(crate) fn temporary(database: &Path, parent: &Path) -> Result<Self> {
        let (bytes, temporary) = (folder_bytes(database), std::env::temp_dir());
        if ensure_room(&temporary, "copy the database", bytes).is_err() {
            ensure_room(parent, "copy the database", bytes)?;
            return Self::new(database, parent);
        }
        let folder = temporary.join(format!(
            "headwater-check-{}-{:016x}",
            std::process::id(),
            u64::from_ne_bytes(random()?)
        ));
        Self::at(database, folder)
    }

    fn at(database: &Path, folder: PathBuf) -> Result<Self> {
        copy_database(database, &folder)?;
        Ok(Self { folder })
    }
}

impl Drop for DatabaseCopy {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// Intact values by key.
#[derive(Default)]
pub(crate) struct ScannedValues {
    pub(crate) values: HashMap<Vec<u8>, Value>,
}

impl ScannedValues {
    /// Reads all values through sled. Returns false if damage ended the reading.
    ///
    /// # Errors
    /// If the operating system refuses to read, which says nothing about the values.
    pub(crate) fn open(
        &mut self,
        database: &Path,
        problems: &mut Vec<String>,
        damage: &mut Damage,
    ) -> Result<bool> {
        let disk = match Disk::open(database) {
            Ok(disk) => disk,
            Err(error) if error.is_of_system() => return Err(error),
            Err(error) => {
                problems.push(error.to_string());
                return Ok(false);
            }
        };
        for item in disk.scan(b"") {
            let (key, bytes) = match item {
                Ok(item) => item,
                Err(error) if error.is_of_system() => return Err(error),
                Err(error) => {
                    problems.push(error.to_string());
                    return Ok(false);
                }
            };
            let Some(disk_key) = DiskKey::parse(&key) else {
                problems.push("unknown key in the database".to_owned());
                continue;
            };
            match Value::decode_at(&key, &bytes) {
                Ok(value) => drop(self.values.insert(key, value)),
                Err(error) => damage.add(disk_key.to_string(), &error),
            }
        }
        Ok(true)
    }

    /// Searches the files for intact values at any position. Takes the newest of several with the same key.
    pub(crate) fn search(&mut self, database: &Path) -> Result<()> {
        let mut files = vec![database.join("db")];
        files
            .extend(fs::read_dir(database.join("blobs")).into_iter().flatten().flatten().map(|it| it.path()));
        for file in files {
            let Ok(bytes) = fs::read(&file) else { continue };
            for at in 0..bytes.len().saturating_sub(MAGIC.len()) {
                if bytes[at..].starts_with(&MAGIC)
                    && let Ok(value) = Value::decode(&bytes[at..])
                    && DiskKey::parse(&value.key).is_some()
                {
                    let is_newer = self.values.get(&value.key).is_none_or(|it| it.commit < value.commit);
                    if is_newer {
                        self.values.insert(value.key.clone(), value);
                    }
                }
            }
        }
        self.join_pieces();
        Ok(())
    }

    /// Joins the pieces of long values, and forgets those that are not complete.
    fn join_pieces(&mut self) {
        let heads: Vec<_> = self.values.values().filter(|it| it.is_split).cloned().collect();
        for head in heads {
            let piece = |key: &[u8]| Ok::<_, Infallible>(self.values.get(key).cloned());
            let joined = join(&head.key, &head.encode(), piece).unwrap_or_else(|never| match never {});
            match joined.and_then(|bytes| Value::decode_at(&head.key, &bytes).ok()) {
                Some(value) => self.values.insert(head.key, value),
                None => self.values.remove(&head.key),
            };
        }
        self.values.retain(|key, _| key.first() != Some(&PIECE_LETTER));
    }

    /// Lists the current values: of each record and block the highest version that belongs to no incomplete stage and is
    /// no tombstone. Without stage marks and metadata.
    pub(crate) fn current(&self) -> Vec<(DiskKey, Value)> {
        let places = || self.values.iter().filter_map(|(key, value)| Some((DiskKey::parse(key)?, value)));
        let stages: HashSet<u64> = places()
            .filter(|(_, value)| !value.is_tombstone)
            .filter_map(
                |(disk_key, _)| if let DiskKey::Stage(number) = disk_key { Some(number) } else { None },
            )
            .collect();
        let mut newest: BTreeMap<Vec<u8>, (DiskKey, &Value)> = BTreeMap::new();
        for (disk_key, value) in places() {
            let is_candidate = !matches!(disk_key, DiskKey::Stage(_) | DiskKey::Meta)
                && !stages.contains(&disk_key.version());
            let stem = disk_key.stem();
            if is_candidate && newest.get(&stem).is_none_or(|it| it.0.version() < disk_key.version()) {
                newest.insert(stem, (disk_key, value));
            }
        }
        newest
            .into_values()
            .filter(|it| !it.1.is_tombstone)
            .map(|(disk_key, value)| (disk_key, value.clone()))
            .collect()
    }
}
