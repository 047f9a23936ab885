//! `salvage`: copies the readable records of a damaged store to a new one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use crate::engine::commit_file::{self, CommitFile, CommitMark};
use crate::engine::folder::{create_database, database_folder, database_folders, lock};
use crate::engine::slice_writer::SliceWriter;
use crate::engine::value::DiskKey;
use crate::engine::vault::Vault;
use crate::error::{Error, Result};
use crate::folders::create_folder;
use crate::log::LogPosition;
use crate::record::{Record, Schema};
use crate::recovery::damage::{Damage, print_lines};
use crate::recovery::inspect::{RecordInspector, collection_of};
use crate::recovery::migration::FORMATS;
use crate::recovery::scan::{DatabaseCopy, FoundStore, ScannedValues, find_store};

/// The result of [`salvage`]. `Display` formats it for the person who runs the gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// The folder of the new store.
    pub into: PathBuf,
    /// Number of records written to the new store, per collection. Empty if nothing could be saved.
    pub records: BTreeMap<String, u64>,
    /// Records that exist but could not be read.
    pub damage: Damage,
    /// Other problems, and warnings about the result.
    pub problems: Vec<String>,
    /// Whether a new store was created.
    pub is_saved: bool,
}

impl fmt::Display for SalvageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_saved {
            true => writeln!(f, "readable records were written to a new store at {}", self.into.display())?,
            false => writeln!(f, "no records could be saved")?,
        }
        print_lines(f, &self.records, &self.damage, &self.problems)?;
        match self.is_saved {
            true => {
                writeln!(
                    f,
                    "start Headwater with the new store and check its contents before deleting the old one"
                )
            }
            false => writeln!(f, "restore a back-up"),
        }
    }
}

/// Writes the readable records of a store to a new store in an empty folder. Does not change the old store.
///
/// # Errors
/// If there is no store, if a server is running on it, if the key file is missing or belongs to another store, if a later
/// version wrote the store, and if the target folder already contains a store. Nothing is created then.
pub fn salvage(folder: &Path, into: &Path, key_file: &Path, schema: &Schema) -> Result<SalvageReport> {
    let mut salvaged = SalvageReport { into: into.to_owned(), ..SalvageReport::default() };
    let found = find_store(folder, &mut salvaged.problems)?;
    let vault = Vault::open(key_file, false)?;
    let existed = into.exists();
    let done = save(&found, into, &RecordInspector { schema, vault: &vault }, &mut salvaged);
    if !existed && !salvaged.is_saved {
        drop(fs::remove_dir_all(into));
    }
    done.map(|()| salvaged)
}

fn save(
    found: &FoundStore,
    into: &Path,
    inspector: &RecordInspector<'_>,
    salvaged: &mut SalvageReport,
) -> Result<()> {
    create_folder(into, 0o777).map_err(|error| Error::disk("create the folder of the new store", error))?;
    let _lock = lock(into)?;
    if !database_folders(into)?.is_empty() || into.join(commit_file::FILE).exists() {
        return Err(Error::disk("salvage", "the target folder already contains a store"));
    }
    let Some(folder) = &found.database else { return Ok(()) };
    let read = read(found, folder, into, salvaged)?;
    inspector.refuse_wrong_key(&read)?;
    let Some(commit) = read.values.values().map(|it| it.commit).max() else {
        salvaged.problems.push("no readable value was found".to_owned());
        return Ok(());
    };
    let Some(mut meta) = read.values.get(&DiskKey::Meta.encode()).cloned() else {
        salvaged
            .problems
            .push("the proof of the key file was not found, so no record can be decrypted".to_owned());
        return Ok(());
    };
    // The last commit that was found; later ones are lost.
    meta.commit = commit;
    create_database(&database_folder(into, 1), |disk| {
        let mut writer = SliceWriter::staged(disk);
        write(&read, inspector, &mut writer, salvaged)?;
        writer.add(meta.key.clone(), meta.encode())?;
        writer.send()
    })?;
    // The number of records is known only after opening the store. Commit 1 precedes all commits, so it is not compared.
    CommitFile::create(into, &CommitMark { commit: 1, ..CommitMark::first(FORMATS.now) })?;
    salvaged.is_saved = true;
    Ok(())
}

/// Writes all readable current values.
fn write(
    read: &ScannedValues,
    inspector: &RecordInspector<'_>,
    writer: &mut SliceWriter<'_>,
    salvaged: &mut SalvageReport,
) -> Result<()> {
    let mut unknown = BTreeSet::new();
    for (disk_key, value) in read.current() {
        if !inspector.knows(&disk_key) {
            unknown.extend(collection_of(&disk_key).map(str::to_owned));
            continue;
        }
        // A store that may lack a record must not follow a log as if it were complete.
        if collection_of(&disk_key) == Some(LogPosition::COLLECTION) {
            salvaged.problems.push("the new store belongs to no cluster; let it join again".to_owned());
            continue;
        }
        if let Some((value, n)) = inspector.readable_part(&disk_key, value, &mut salvaged.damage) {
            writer.add(value.key.clone(), value.encode())?;
            if let Some(collection) = collection_of(&disk_key) {
                *salvaged.records.entry(collection.to_owned()).or_default() += n;
            }
        }
    }
    let unknown = unknown.iter().map(|it| format!("unknown collection {it:?} was left out"));
    salvaged.problems.extend(unknown);
    Ok(())
}

/// Reads through sled if possible, and otherwise searches the files byte by byte.
fn read(
    found: &FoundStore,
    folder: &Path,
    into: &Path,
    salvaged: &mut SalvageReport,
) -> Result<ScannedValues> {
    let copy = DatabaseCopy::new(folder, into)?;
    let mut read = ScannedValues::default();
    let opened = read.open(&copy.folder, &mut salvaged.problems, &mut salvaged.damage);
    let is_read = opened.unwrap_or_else(|error| {
        salvaged.problems.push(error.to_string());
        false
    });
    let is_short = read.values.get(&DiskKey::Meta.encode()).map(|it| it.commit) < found.commit;
    if !is_read || is_short {
        salvaged.problems.push("the files were searched for records; removed records may be back".to_owned());
        read.search(folder)?;
    }
    Ok(read)
}
