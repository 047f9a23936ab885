//! The folder of a store: its lock, the folders of its databases, and creating a new database.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::engine::disk::Disk;
use crate::error::{Error, Result};

/// Returns the folder of one generation of the database.
pub(crate) fn database_folder(folder: &Path, generation: u64) -> PathBuf {
    folder.join(format!("db-{generation:06}"))
}

/// Lists the folders of all generations that exist.
pub(crate) fn database_folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| Error::disk("read the folder of the store", error))?;
    let is_database = |it: &PathBuf| {
        let name = it.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        name.strip_prefix("db-").is_some_and(|digits| digits.bytes().all(|it| it.is_ascii_digit()))
    };
    Ok(entries.flatten().map(|it| it.path()).filter(is_database).collect())
}

/// Removes a database with everything in it. A missing folder is not an error.
pub(crate) fn remove_folder(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::disk("remove an old database", error))
        }
        _ => Ok(()),
    }
}

/// Creates a database in this folder, fills it, makes it durable, and opens it a second time, as a start would do. Leaves
/// no folder behind after an error.
pub(crate) fn create_database(folder: &Path, fill: impl FnOnce(&Disk) -> Result<()>) -> Result<Disk> {
    remove_folder(folder)?;
    let create = || {
        let new = Disk::open(folder)?;
        fill(&new)?;
        reopen_complete(new, folder)
    };
    create().inspect_err(|_| drop(remove_folder(folder)))
}

/// Makes a new database durable, and opens it again to see that it is complete.
pub(crate) fn reopen_complete(new: Disk, folder: &Path) -> Result<Disk> {
    new.sync()?;
    let n_keys = new.n_keys()?;
    drop(new);
    let new = Disk::open(folder)?;
    if new.n_keys()? != n_keys {
        return Err(Error::disk("create a database", "it lost values when it was opened again"));
    }
    sync_whole(folder)?;
    Ok(new)
}

/// Copies a database to this folder. Shares the space of the files where the file system can.
pub(crate) fn copy_database(from: &Path, to: &Path) -> Result<()> {
    copy_parts(from, to, &|_| false)
}

/// Copies a database without the files whose names are left out.
fn copy_parts(from: &Path, to: &Path, is_left_out: &dyn Fn(&OsStr) -> bool) -> Result<()> {
    remove_folder(to)?;
    copy_folder(from, to, is_left_out).map_err(|error| {
        drop(remove_folder(to));
        Error::disk("copy the database", error)
    })
}

/// Copies a database to this folder and opens the copy, which is removed when it is dropped unless it is
/// [kept](Disk::keep).
pub(crate) fn open_copy(from: &Path, to: &Path) -> Result<Disk> {
    open_copy_of(from, to, |_| false)
}

/// Does the same without the files whose names are left out.
pub(crate) fn open_copy_of(from: &Path, to: &Path, is_left_out: impl Fn(&OsStr) -> bool) -> Result<Disk> {
    copy_parts(from, to, &is_left_out)?;
    let copy = Disk::open(to).inspect_err(|_| drop(remove_folder(to)))?;
    copy.remove_with_last_reader();
    Ok(copy)
}

/// Copies a folder with everything in it that is not left out, for its owner only.
fn copy_folder(from: &Path, to: &Path, is_left_out: &dyn Fn(&OsStr) -> bool) -> std::io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if is_left_out(&entry.file_name()) {
            continue;
        }
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &target, is_left_out)?,
            false => drop(fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}

/// Returns a checksum of the names and contents of all files of a database.
pub(crate) fn checksum(folder: &Path) -> Result<u32> {
    let mut hasher = crc32fast::Hasher::new();
    add_folder(&mut hasher, folder).map_err(|error| Error::disk("read the database", error))?;
    Ok(hasher.finalize())
}

fn add_folder(hasher: &mut crc32fast::Hasher, folder: &Path) -> std::io::Result<()> {
    let mut paths: Vec<_> =
        fs::read_dir(folder)?.map(|it| it.map(|it| it.path())).collect::<Result<_, _>>()?;
    paths.sort();
    let mut buffer = vec![0; 256 * 1024];
    for path in paths {
        hasher.update(path.file_name().map_or(&[][..], |it| it.as_encoded_bytes()));
        if path.is_dir() {
            add_folder(hasher, &path)?;
            continue;
        }
        let mut file = File::open(path)?;
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                n => hasher.update(&buffer[..n]),
            }
        }
    }
    Ok(())
}

/// Makes a database durable: all its files, its folders, and its entry in the store. sled syncs `db` only.
pub(crate) fn sync_whole(folder: &Path) -> Result<()> {
    sync_below(folder)
        .and_then(|()| sync_parent(folder))
        .map_err(|error| Error::disk("sync a new database", error))
}

fn sync_below(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => sync_below(&entry.path())?,
            false => File::open(entry.path())?.sync_all()?,
        }
    }
    File::open(folder)?.sync_all()
}

/// Locks the store until the returned file is closed. Excludes other processes and other stores in this process.
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

/// Makes a new or renamed entry of a directory durable.
pub(crate) fn sync_parent(path: &Path) -> std::io::Result<()> {
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}
