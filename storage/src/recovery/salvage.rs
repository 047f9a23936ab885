//! Saving what is whole from a store that does not open.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use crate::engine::commit_file::{CommitFile, CommitMark};
use crate::engine::disk::Slice;
use crate::engine::value::Place;
use crate::engine::vault::Vault;
use crate::error::{Error, Result};
use crate::record::Schema;
use crate::recovery::damage::{Damage, print_lines};
use crate::recovery::format::FORMATS;
use crate::recovery::scan::{Found, Inspector, ReadCopy, Values, collection_of, find};
use crate::write::compact::fresh;
use crate::write::start::{database, databases, lock};
use crate::write::writer::Batch;

/// What [`salvage`] did. Prints itself for the person who asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SalvageReport {
    pub into: PathBuf,
    /// Records written to the new store, per collection. None when nothing could be saved.
    pub records: BTreeMap<String, u64>,
    /// What was there and did not read.
    pub damage: Damage,
    /// What else could not be read, and what to be aware of.
    pub problems: Vec<String>,
    /// The database did not open and its file was searched: removed records may be back.
    pub was_searched: bool,
    /// Whether there is a new store.
    pub is_saved: bool,
}

impl fmt::Display for SalvageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_saved {
            true => {
                writeln!(f, "what could be read was written into a new store at {}", self.into.display())?
            }
            false => writeln!(f, "nothing could be saved")?,
        }
        print_lines(f, &self.records, &self.damage, &self.problems)?;
        match self.is_saved {
            true => {
                writeln!(f, "start Headwater with the new store and look through it before the old one goes")
            }
            false => writeln!(f, "restore a back-up"),
        }
    }
}

/// Writes what can be read of a store into a new one in an empty folder; the old one stays as it is.
///
/// # Errors
/// Where there is no store, beside a running server, without the key file or with that of another store, when a later
/// version wrote it, and when there is a store where the new one should go. Then nothing is made.
pub fn salvage(folder: &Path, into: &Path, key_file: &Path, schema: &Schema) -> Result<SalvageReport> {
    let mut salvaged = SalvageReport { into: into.to_owned(), ..SalvageReport::default() };
    let found = find(folder, &mut salvaged.problems)?;
    let vault = Vault::open(key_file, false)?;
    let was_there = into.exists();
    let done = save(&found, into, &Inspector { schema, vault: &vault }, &mut salvaged);
    if !was_there && !salvaged.is_saved {
        drop(fs::remove_dir_all(into));
    }
    done.map(|()| salvaged)
}

fn save(found: &Found, into: &Path, inspector: &Inspector<'_>, salvaged: &mut SalvageReport) -> Result<()> {
    fs::create_dir_all(into).map_err(|error| Error::disk("make the folder of the new store", error))?;
    let _lock = lock(into)?;
    if !databases(into)?.is_empty() || into.join(crate::engine::commit_file::FILE).exists() {
        return Err(Error::disk("salvage", "there is a store already where the new one should go"));
    }
    let Some(folder) = &found.database else { return Ok(()) };
    let read = read(found, folder, into, salvaged)?;
    inspector.refuse_other_key(&read)?;
    let Some(commit) = read.values.values().map(|it| it.commit).max() else {
        salvaged.problems.push("nothing could be read".to_owned());
        return Ok(());
    };
    let Some(mut meta) = read.values.get(&Place::Meta.key()).cloned() else {
        salvaged.problems.push("the proof of the key was not found; nothing can be opened".to_owned());
        return Ok(());
    };
    // The last commit of what was found, whatever the lost one was.
    meta.commit = commit;
    fresh(&database(into, 1), |disk| {
        let mut batch = Batch { disk, slice: Slice::default(), is_staged: true };
        write(&read, inspector, &mut batch, salvaged)?;
        batch.add(meta.key.clone(), meta.encode())?;
        batch.send()
    })?;
    // The counts are not known until the store is opened: commit 1 is before every commit there is.
    CommitFile::create(into, &CommitMark { commit: 1, ..CommitMark::first(FORMATS.now) })?;
    salvaged.is_saved = true;
    Ok(())
}

/// All that counts and reads.
fn write(
    read: &Values,
    inspector: &Inspector<'_>,
    batch: &mut Batch<'_>,
    salvaged: &mut SalvageReport,
) -> Result<()> {
    let mut unknown = BTreeSet::new();
    for (place, value) in read.current() {
        if !inspector.knows(&place) {
            unknown.extend(collection_of(&place).map(str::to_owned));
            continue;
        }
        if let Some((value, n)) = inspector.keep(&place, value, &mut salvaged.damage) {
            batch.add(value.key.clone(), value.encode())?;
            if let Some(collection) = collection_of(&place) {
                *salvaged.records.entry(collection.to_owned()).or_default() += n;
            }
        }
    }
    let unknown = unknown.iter().map(|it| format!("{it} are not known to this version and were left out"));
    salvaged.problems.extend(unknown);
    Ok(())
}

/// Through sled if it can, and byte by byte if it cannot.
fn read(found: &Found, folder: &Path, into: &Path, salvaged: &mut SalvageReport) -> Result<Values> {
    let copy = ReadCopy::of(folder, into)?;
    let mut read = Values::default();
    let is_read = read.open(&copy.folder, &mut salvaged.problems, &mut salvaged.damage);
    let is_short = read.values.get(&Place::Meta.key()).map(|it| it.commit) < found.commit;
    if !is_read || is_short {
        salvaged.was_searched = true;
        salvaged.problems.push("the file was searched for records; removed ones may be back".to_owned());
        read.search(folder)?;
    }
    Ok(read)
}
