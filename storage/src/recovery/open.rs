//! Opening the database of a store without ever making damage worse.
//!
//! sled repairs what it opens: it cuts the end of a log that it cannot read and overwrites segments that it takes for
//! free. So a database is opened in place only if it is, byte for byte, what the last clean stop left. Otherwise sled gets
//! a copy, under the number of the next generation. If the copy is complete, it replaces the original, and if not, the
//! original is still there for [`salvage`](crate::salvage()).
//!
//! All this writes to the disk. If that is full, the copy is in memory, and the files of the store stay as they are. The
//! store then refuses writes until the disk has room, and the writer opens the database there, as the start would have done:
//! see `write/stop.rs`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::engine::commit_file::{CommitFile, CommitMark};
use crate::engine::disk::Disk;
use crate::engine::folder::{checksum, database_folder, open_copy, open_copy_of};
use crate::engine::memory_copy::open_in_memory;
use crate::engine::vault::Vault;
use crate::error::{Error, Result};
use crate::recovery::migration::{Formats, migrate};

/// Name of a damaged snapshot that was kept, in the folder of the store.
const DAMAGED_SNAPSHOT: &str = "damaged-snapshot";

/// Opens the database that the commit file names, in the current format. Returns it with the mark that its records have
/// to agree with; the commit file names it only after they were loaded. Until then it is removed when it is dropped,
/// unless it was opened in place.
pub(crate) fn open_database(
    folder: &Path,
    mark: CommitMark,
    commit_file: &mut CommitFile,
    vault: &Vault,
    formats: &Formats,
) -> Result<(Disk, CommitMark)> {
    let database = present_database(folder, &mark)?;
    let is_unchanged = mark.closed.is_some() && checksum(&database).ok() == mark.closed;
    if is_unchanged && mark.format == formats.now {
        let mark = CommitMark { closed: None, ..mark };
        // From here on a crash is noticed.
        commit_file.write(&mark)?;
        return Ok((Disk::open(&database)?, mark));
    }
    tracing::debug!(
        "checking the store on a copy, because it was not stopped properly, or was changed or updated"
    );
    let mark = CommitMark { generation: mark.generation + 1, closed: None, ..mark };
    let target = database_folder(folder, mark.generation);
    let copy = open_copy(&database, &target)
        .or_else(|error| open_without_snapshot(folder, &database, &target, error))?;
    migrate(folder, copy, mark, vault, formats)
}

/// Opens a copy without the snapshot of sled, which says where the values are in the log. Without it, sled reads the whole log.
/// The records of the copy have to agree with the commit file like those of any other copy. The damaged snapshot is kept in
/// the folder of the store.
///
/// # Errors
/// That of the database with its snapshot, unless the copy opens without it.
fn open_without_snapshot(folder: &Path, database: &Path, target: &Path, error: Error) -> Result<Disk> {
    let snapshots = snapshots(database);
    if !matches!(error, Error::Damaged { .. }) || snapshots.is_empty() {
        return Err(error);
    }
    let opened = open_copy_of(database, target, |it| snapshots.contains(&database.join(it)));
    let Ok(copy) = opened else { return Err(error) };
    for path in &snapshots {
        let kept = folder.join(DAMAGED_SNAPSHOT);
        if let Err(why) = fs::copy(path, &kept) {
            tracing::warn!("failed to keep {}: {why}", path.display());
        }
    }
    tracing::warn!("the snapshot of the database is damaged, so the store is read without it: {error}");
    Ok(copy)
}

/// Lists the snapshots of a database.
fn snapshots(database: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(database).into_iter().flatten().flatten();
    let is_snapshot =
        |it: &PathBuf| it.file_name().is_some_and(|it| it.as_encoded_bytes().starts_with(b"snap."));
    entries.map(|it| it.path()).filter(is_snapshot).collect()
}

/// Copies the database that the commit file names to memory, and opens the copy. Returns it with the mark that its records
/// have to agree with. Writes nothing to the disk.
pub(crate) fn open_copy_in_memory(
    folder: &Path,
    mark: CommitMark,
    formats: &Formats,
) -> Result<(Disk, CommitMark)> {
    let database = present_database(folder, &mark)?;
    if mark.format != formats.now {
        // The new one would be in a folder, where programs can read it.
        return Err(Error::disk("open the database in memory", "it has to be migrated first"));
    }
    Ok((open_in_memory(folder, &database)?, CommitMark { closed: None, ..mark }))
}

/// Returns the folder of the database that the commit file names.
fn present_database(folder: &Path, mark: &CommitMark) -> Result<PathBuf> {
    let database = database_folder(folder, mark.generation);
    if !database.join("db").exists() {
        let what = format!("the database {} is missing", database.display());
        return Err(Error::Damaged { at: folder.to_owned(), what });
    }
    Ok(database)
}
