//! What can be done with a store that does not open: telling what is wrong, and saving what is whole.
//!
//! Neither needs the key file: checksums are outside of what is encrypted, and values are moved as they are.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::block::Block;
use crate::disk::{Disk, Slice, folder_bytes};
use crate::error::{Error, Result};
use crate::format::FORMATS;
use crate::load::shown;
use crate::store::{database, databases, lock};
use crate::value::{MAGIC, Place, Value};
use crate::witness::{Statement, Witness};
use crate::writer::Batch;

/// What [`check`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Sentences; none when all is well.
    pub problems: Vec<String>,
    /// Values that are whole and count, per collection: records, or blocks of a paged one.
    pub values: BTreeMap<String, u64>,
    /// Records per collection at the last acknowledged commit.
    pub acknowledged: BTreeMap<String, u64>,
    pub live_bytes: u64,
    pub disk_bytes: u64,
}

impl Report {
    pub fn is_well(&self) -> bool {
        self.problems.is_empty()
    }

    /// How many times what lives in it the store takes of the disk.
    pub fn amplification(&self) -> f64 {
        self.disk_bytes as f64 / self.live_bytes.max(1) as f64
    }
}

/// What [`salvage`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Values written to the new store, per collection: records, or blocks of a paged one.
    pub values: BTreeMap<String, u64>,
    /// What could not be read, and what to be aware of.
    pub problems: Vec<String>,
    /// The database did not open and its file was searched: removed records may be back.
    pub was_searched: bool,
}

/// Reads a store without changing it, and tells what is wrong with it. Refuses beside a running server.
pub fn check(folder: &Path) -> Result<Report> {
    let _lock = lock(folder)?;
    let mut report = Report::default();
    let found = find(folder, &mut report.problems)?;
    report.acknowledged = found.statement.map(|it| it.counts).unwrap_or_default();
    let Some(database) = found.database else { return Ok(report) };
    report.disk_bytes = folder_bytes(&database);
    let copy = ReadCopy::of(&database, folder)?;
    let mut read = Values::default();
    read.open(&copy.folder, &mut report.problems);
    let live = read.current();
    report.live_bytes = live.iter().map(|it| it.1.encode().len() as u64 + it.1.key.len() as u64).sum();
    report.values = count(&live);
    let last = read.values.get(&Place::Meta.key()).map(|it| it.commit);
    match (last, found.commit) {
        (None, _) => report.problems.push("the number of the last commit is missing".to_owned()),
        (Some(last), Some(acknowledged)) if last < acknowledged => report
            .problems
            .push(format!("commit {acknowledged} was acknowledged, the database ends at {last}")),
        _ => {}
    }
    if last == found.commit {
        let counted = records(&live);
        for (name, acknowledged) in &report.acknowledged {
            let found = counted.get(name).copied().unwrap_or(0);
            // Blocks that are encrypted do not tell how many records they have.
            if let Some(found) = found_or_none(found, &live, name)
                && found != *acknowledged
            {
                report.problems.push(format!("{name} has {found} records, {acknowledged} were acknowledged"));
            }
        }
    }
    Ok(report)
}

/// Writes what can be read of a store into a new one in an empty folder; the old one stays as it is.
pub fn salvage(folder: &Path, into: &Path) -> Result<Salvaged> {
    let _lock = lock(folder)?;
    fs::create_dir_all(into).map_err(|error| Error::disk("make the folder of the new store", error))?;
    let _new_lock = lock(into)?;
    if !databases(into)?.is_empty() || Witness::open(into)?.is_some() {
        return Err(Error::disk("salvage", "there is a store already where the new one should go"));
    }
    let mut salvaged = Salvaged::default();
    let found = find(folder, &mut salvaged.problems)?;
    let Some(database_folder) = found.database else { return Ok(salvaged) };
    let copy = ReadCopy::of(&database_folder, into)?;
    let mut read = Values::default();
    let is_whole = read.open(&copy.folder, &mut salvaged.problems);
    let is_short = read.values.get(&Place::Meta.key()).map(|it| it.commit) < found.commit;
    if !is_whole || is_short {
        salvaged.was_searched = true;
        salvaged.problems.push("the file was searched for records; removed ones may be back".to_owned());
        read.search(&database_folder)?;
    }
    drop(copy);
    let mut live = read.current();
    let Some(commit) = read.values.values().map(|it| it.commit).max() else {
        salvaged.problems.push("nothing could be read".to_owned());
        return Ok(salvaged);
    };
    match read.values.get(&Place::Meta.key()) {
        Some(meta) => {
            // The last commit of what was found, whatever the lost one was.
            let mut meta = meta.clone();
            meta.commit = commit;
            live.push((Place::Meta, meta));
        }
        None => {
            salvaged.problems.push("the proof of the key was not found; nothing can be opened".to_owned());
            return Ok(salvaged);
        }
    }
    salvaged.values = count(&live);
    // The counts are not known until the store is opened: commit 1 is before every commit there is.
    let statement = Statement { commit: 1, ..Statement::first(FORMATS.now) };
    let disk = Disk::open(&database(into, 1))?;
    let mut batch = Batch { disk: &disk, slice: Slice::default(), is_staged: true };
    for (_, value) in live {
        batch.add(value.key.clone(), value.encode())?;
    }
    batch.send()?;
    disk.sync()?;
    Witness::create(into, &statement)?;
    Ok(salvaged)
}

/// What lies in the folder of a store.
struct Found {
    database: Option<PathBuf>,
    statement: Option<Statement>,
    commit: Option<u64>,
}

fn find(folder: &Path, problems: &mut Vec<String>) -> Result<Found> {
    let statement = match Witness::open(folder) {
        Ok(Some((_, statement))) => Some(statement),
        Ok(None) => {
            problems.push("the commit file is missing".to_owned());
            None
        }
        Err(error) => {
            problems.push(error.to_string());
            None
        }
    };
    let mut there = databases(folder)?;
    there.sort();
    let named = statement.as_ref().map(|it| database(folder, it.generation));
    let database = match named {
        Some(named) if named.join("db").exists() => Some(named),
        Some(named) => {
            problems.push(format!("the database {} is missing", named.display()));
            there.pop()
        }
        None => there.pop(),
    };
    Ok(Found { database, commit: statement.as_ref().map(|it| it.commit), statement })
}

/// A copy of a database: sled writes when it opens, and what is damaged must not get worse.
struct ReadCopy {
    folder: PathBuf,
}

impl ReadCopy {
    fn of(database: &Path, beside: &Path) -> Result<Self> {
        let folder = beside.join("copy-to-read");
        crate::store::remove_folder(&folder)?;
        copy_folder(database, &folder).map_err(|error| Error::disk("copy the database", error))?;
        Ok(Self { folder })
    }
}

impl Drop for ReadCopy {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &target)?,
            false => drop(fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}

/// Whole values by key.
#[derive(Default)]
struct Values {
    values: HashMap<Vec<u8>, Value>,
}

impl Values {
    /// Reads through sled. False if that was not possible to the end.
    fn open(&mut self, database: &Path, problems: &mut Vec<String>) -> bool {
        let disk = match Disk::open(database) {
            Ok(disk) => disk,
            Err(error) => {
                problems.push(error.to_string());
                return false;
            }
        };
        let mut is_whole = true;
        for item in disk.scan(b"") {
            let read = item.and_then(|(key, bytes)| match Place::parse(&key) {
                None => Err(Error::DamagedRecord("a key that this version does not know".to_owned())),
                Some(place) => match Value::of_key(&key, &bytes) {
                    Ok(value) => Ok((key, value)),
                    Err(error) => Err(Error::DamagedRecord(format!("{}: {error}", shown(&place)))),
                },
            });
            match read {
                Ok((key, value)) => drop(self.values.insert(key, value)),
                Err(error) => {
                    problems.push(error.to_string());
                    is_whole = false;
                }
            }
        }
        is_whole
    }

    /// Looks for whole values anywhere in the files. Of several under one key the newest counts.
    fn search(&mut self, database: &Path) -> Result<()> {
        let mut files = vec![database.join("db")];
        files
            .extend(fs::read_dir(database.join("blobs")).into_iter().flatten().flatten().map(|it| it.path()));
        for file in files {
            let Ok(bytes) = fs::read(&file) else { continue };
            for at in 0..bytes.len().saturating_sub(MAGIC.len()) {
                if bytes[at..].starts_with(&MAGIC)
                    && let Ok(value) = Value::decode(&bytes[at..])
                    && Place::parse(&value.key).is_some()
                {
                    let is_newer = self.values.get(&value.key).is_none_or(|it| it.commit < value.commit);
                    if is_newer {
                        self.values.insert(value.key.clone(), value);
                    }
                }
            }
        }
        Ok(())
    }

    /// What counts: of each thing the highest version that was not staged only and is not gone. No marks, no meta.
    fn current(&self) -> Vec<(Place, Value)> {
        let places = || self.values.iter().filter_map(|(key, value)| Some((Place::parse(key)?, value)));
        let stages: HashSet<u64> = places()
            .filter_map(|(place, _)| if let Place::Stage(number) = place { Some(number) } else { None })
            .collect();
        let mut newest: BTreeMap<Vec<u8>, (Place, &Value)> = BTreeMap::new();
        for (place, value) in places() {
            let counts =
                !matches!(place, Place::Stage(_) | Place::Meta) && !stages.contains(&place.version());
            let stem = place.stem();
            if counts && newest.get(&stem).is_none_or(|it| it.0.version() < place.version()) {
                newest.insert(stem, (place, value));
            }
        }
        newest.into_values().filter(|it| !it.1.is_gone).map(|(place, value)| (place, value.clone())).collect()
    }
}

fn collection_of(place: &Place) -> Option<&str> {
    match place {
        Place::Block { collection, .. } | Place::Single { collection, .. } => Some(collection),
        _ => None,
    }
}

fn count(live: &[(Place, Value)]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for name in live.iter().filter_map(|(place, _)| collection_of(place)) {
        *counts.entry(name.to_owned()).or_default() += 1;
    }
    counts
}

/// Records per collection.
fn records(live: &[(Place, Value)]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (place, value) in live {
        let Some(name) = collection_of(place) else { continue };
        let n = match place {
            Place::Block { .. } => Block::decode(&value.payload).map_or(0, |it| it.records.len() as u64),
            _ => 1,
        };
        *counts.entry(name.to_owned()).or_default() += n;
    }
    counts
}

/// `None` if the blocks of this collection cannot be looked into.
fn found_or_none(found: u64, live: &[(Place, Value)], name: &str) -> Option<u64> {
    let mut blocks = live
        .iter()
        .filter(|(place, _)| matches!(place, Place::Block { collection, .. } if collection == name));
    blocks.all(|(_, value)| Block::decode(&value.payload).is_ok()).then_some(found)
}
