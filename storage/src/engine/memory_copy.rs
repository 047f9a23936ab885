//! A copy of a database in memory, for a store whose disk is full.
//!
//! sled wants a folder, and programs that the gateway starts can read all files outside of the data folder. So the log with
//! all values is in a memory file, which has no name that other processes can open; the folder has a link to it, and is
//! removed as soon as sled has opened it.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::engine::disk::{Disk, folder_bytes};
use crate::error::{Error, Result};

/// Completes "failed to …" and "not enough room on the disk to …".
const COPY: &str = "copy the database to memory";
/// A file system in memory, which Linux mounts for shared memory.
const SHARED_MEMORY: &str = "/dev/shm";
/// Maximum size of a copy, in bytes. Half of the memory that is available is another bound.
const COPY_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Copies a database to memory and opens the copy. Changes nothing on the disk. `store` is the folder of the store, which
/// the caller has locked.
pub(crate) fn open_in_memory(store: &Path, database: &Path) -> Result<Disk> {
    let n_bytes = folder_bytes(database);
    let n_bytes_max = memory_available().map_or(COPY_BYTES_MAX, |it| COPY_BYTES_MAX.min(it / 2));
    if n_bytes > n_bytes_max {
        return Err(Error::NoRoom { what: COPY, needed: n_bytes, available: n_bytes_max });
    }
    let failed = |error: io::Error| Error::disk(COPY, error);
    let [first, second] = names(store).map_err(failed)?;
    let folder =
        TemporaryFolder::create(first).or_else(|_| TemporaryFolder::create(second)).map_err(failed)?;
    let log =
        File::from(memfd_create("headwater-store", MemfdFlags::CLOEXEC).map_err(|it| failed(it.into()))?);
    copy(database, &folder.0, &log).map_err(failed)?;
    Ok(Disk::open(&folder.0)?.in_memory(n_bytes))
}

/// A folder that only its owner can access. Dropping it removes it; files that are open can still be read.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn create(path: PathBuf) -> io::Result<Self> {
        // That of a process that was killed. Nobody else uses the name, because the store is locked.
        drop(fs::remove_dir_all(&path));
        // Fails if it exists, so another user cannot prepare it.
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // An error means that somebody else has removed it.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Copies a database to a folder, and its log to a file.
fn copy(database: &Path, folder: &Path, mut log: &File) -> io::Result<()> {
    for entry in fs::read_dir(database)? {
        let (path, name) = entry.map(|it| (it.path(), it.file_name()))?;
        if name == "db" {
            io::copy(&mut File::open(path)?, &mut log)?;
            symlink(format!("/proc/self/fd/{}", log.as_raw_fd()), folder.join(name))?;
        } else if path.is_file() {
            // The settings of sled, and where values are in the log.
            fs::copy(path, folder.join(name))?;
        }
    }
    Ok(())
}

/// Returns the folders that a copy of this store may use for the moment. No other store has the same.
pub(crate) fn names(store: &Path) -> io::Result<[PathBuf; 2]> {
    let found = fs::metadata(store)?;
    let name = format!("headwater-store-{:x}-{:x}", found.dev(), found.ino());
    Ok([Path::new(SHARED_MEMORY).join(&name), std::env::temp_dir().join(&name)])
}

/// Returns the memory that new data can use, in bytes, if the system says it.
fn memory_available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|it| it.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}
