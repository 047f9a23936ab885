//! Writing of guide files: blocks with checksums, and files without a name for parts that are sorted.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use crate::engine::space::ensure_room;
use crate::error::{Error, Result};
use crate::folders;

/// Extension of a file that is being written. Those that exist at a start are left over from a crash.
pub(super) const UNFINISHED: &str = "part~";
/// Completes "failed to …" and "not enough room on the disk to …".
const WRITE: &str = "write the guide";
/// The room on the disk is checked each time this many bytes were written.
const ROOM_BYTES: u64 = 4 * 1024 * 1024;
const BUFFER_BYTES: usize = 256 * 1024;

pub(super) fn write_error(error: std::io::Error) -> Error {
    Error::disk(WRITE, error)
}

/// Refuses to write this many bytes if the disk would be full afterwards.
pub(super) fn check_room(folder: &Path, n_bytes: u64) -> Result<()> {
    ensure_room(folder, WRITE, n_bytes)
}

/// Creates the folder of guide files, with access for the owner only.
pub(super) fn create_folder(folder: &Path) -> Result<()> {
    let created = folders::create_folder(folder, 0o700);
    created.map_err(|error| Error::disk("create the folder of guide files", error))
}

/// Creates or empties a file that only the owner can access.
fn create(path: &Path) -> Result<File> {
    let options = File::options().read(true).write(true).create(true).truncate(true).mode(0o600).open(path);
    options.map_err(write_error)
}

/// Makes changes of the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder).and_then(|it| it.sync_all()).map_err(write_error)
}

/// A guide file that is being written. Dropping it removes it.
pub(super) struct Output<'a> {
    folder: &'a Path,
    name: String,
    file: BufWriter<File>,
    n_bytes: u64,
    checked_bytes: u64,
}

impl<'a> Output<'a> {
    /// Begins a file that gets this name when it is finished.
    pub(super) fn create(folder: &'a Path, name: String) -> Result<Self> {
        let file = create(&folder.join(format!("{name}.{UNFINISHED}")))?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Self { folder, name, file, n_bytes: 0, checked_bytes: 0 })
    }

    /// Writes bytes without a checksum.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.n_bytes += bytes.len() as u64;
        if self.n_bytes > self.checked_bytes {
            check_room(self.folder, ROOM_BYTES)?;
            self.checked_bytes = self.n_bytes + ROOM_BYTES;
        }
        self.file.write_all(bytes).map_err(write_error)
    }

    /// Writes a block and its checksum. Returns its place.
    pub(super) fn block(&mut self, bytes: &[u8]) -> Result<u64> {
        let offset = self.n_bytes;
        self.write(bytes)?;
        self.write(&crc32fast::hash(bytes).to_le_bytes())?;
        Ok(offset)
    }

    /// Gives the file its name, once it is on the disk. The name is on the disk when this returns.
    pub(super) fn finish(mut self) -> Result<()> {
        self.file.flush().map_err(write_error)?;
        self.file.get_ref().sync_all().map_err(write_error)?;
        fs::rename(self.unfinished(), self.folder.join(&self.name)).map_err(write_error)?;
        sync_folder(self.folder)
    }

    fn unfinished(&self) -> std::path::PathBuf {
        self.folder.join(format!("{}.{UNFINISHED}", self.name))
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        // After `finish` it has another name.
        let _ = fs::remove_file(self.unfinished());
    }
}

/// Creates a file without a name. Its space is free again when it is closed, also after a crash.
pub(super) fn unnamed(folder: &Path) -> Result<File> {
    let n = getrandom::u64().map_err(|error| Error::disk("get random bytes from the system", error))?;
    let path = folder.join(format!("{n:016x}.{UNFINISHED}"));
    let file = create(&path)?;
    fs::remove_file(&path).map_err(write_error)?;
    Ok(file)
}

/// A file without a name, for parts that are written one after another and then read side by side.
pub(super) struct Scratch {
    file: Arc<File>,
    n_bytes: u64,
}

/// A part of a scratch file: where it begins and ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    begin: u64,
    end: u64,
}

impl Scratch {
    /// Creates the file. Its space is free again when it and all readers are dropped, also after a crash.
    pub(super) fn create(folder: &Path) -> Result<Self> {
        Ok(Self { file: Arc::new(unnamed(folder)?), n_bytes: 0 })
    }

    /// Appends a part of at most `n_bytes_max` bytes.
    pub(super) fn append(
        &mut self,
        folder: &Path,
        n_bytes_max: u64,
        fill: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
    ) -> Result<Part> {
        check_room(folder, n_bytes_max)?;
        let begin = self.n_bytes;
        let mut end = begin;
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, &*self.file);
        fill(&mut |bytes| {
            end += bytes.len() as u64;
            out.write_all(bytes).map_err(write_error)
        })?;
        out.flush().map_err(write_error)?;
        drop(out);
        self.n_bytes = end;
        Ok(Part { begin, end })
    }

    pub(super) fn read(&self, part: Part) -> BufReader<PartReader> {
        let reader = PartReader { file: Arc::clone(&self.file), at: part.begin, end: part.end };
        BufReader::with_capacity(BUFFER_BYTES / 4, reader)
    }
}

/// Reads a part of a scratch file.
pub(super) struct PartReader {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for PartReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        let n_read = self.file.read_at(&mut buffer[..n], self.at)?;
        self.at += n_read as u64;
        Ok(n_read)
    }
}
