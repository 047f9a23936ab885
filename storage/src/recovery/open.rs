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

use std::path::{Path, PathBuf};

use crate::engine::commit_file::{CommitFile, CommitMark};
use crate::engine::disk::Disk;
use crate::engine::folder::{checksum, database_folder, open_copy};
use crate::engine::memory_copy::open_in_memory;
use crate::engine::vault::Vault;
use crate::error::{Error, Result};
use crate::recovery::migration::{Formats, migrate};

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
    let copy = open_copy(&database, &database_folder(folder, mark.generation))?;
    migrate(folder, copy, mark, vault, formats)
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
