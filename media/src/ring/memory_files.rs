//! A second copy of the newest chunks of a ring with many tails, in memory files from which the kernel sends to sockets
//! without copying.
//!
//! A file is only appended to, never changed: its pages may still be in the queue of a socket. The ring keeps the newest
//! two; a tail that is further behind is sent the chunks themselves.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, pwrite};

use crate::chunk::Chunk;

/// Number of tails from which on sending from a file saves more than writing it costs.
pub(super) const TAILS_MIN: usize = 8;
/// Length at which the next file begins.
const FILE_BYTES: u64 = 1 << 20;

/// The place of a chunk in a memory file.
#[derive(Clone, Debug)]
pub(super) struct FileRange {
    pub(super) file: Arc<OwnedFd>,
    pub(super) at: u64,
}

impl FileRange {
    /// Returns whether this range lies `n_bytes` behind another one in the same file.
    pub(super) fn follows(&self, other: &FileRange, n_bytes: usize) -> bool {
        Arc::ptr_eq(&self.file, &other.file) && self.at == other.at + n_bytes as u64
    }
}

/// Writes chunks into files.
#[derive(Debug)]
pub(super) struct MemoryFiles {
    newest: Option<MemoryFile>,
    /// The chunks before this one were dropped from the files.
    kept_from: u64,
    create: fn() -> io::Result<OwnedFd>,
    /// Whether a file could not be created or written. The ring then does without.
    is_unavailable: bool,
}

#[derive(Debug)]
struct MemoryFile {
    file: Arc<OwnedFd>,
    n_bytes: u64,
    /// Number of its first chunk.
    first: u64,
}

impl MemoryFiles {
    pub(super) fn new() -> Self {
        Self::created_by(|| Ok(memfd_create("headwater-ring", MemfdFlags::CLOEXEC)?))
    }

    fn created_by(create: fn() -> io::Result<OwnedFd>) -> Self {
        Self { newest: None, kept_from: 0, create, is_unavailable: false }
    }

    /// Appends a chunk and returns its place; `None` where files are missing or forbidden.
    pub(super) fn append(&mut self, chunk: &Chunk) -> Option<FileRange> {
        if self.is_unavailable {
            return None;
        }
        let appended = self.try_append(chunk);
        appended
            .inspect_err(|error| {
                tracing::info!(
                    "failed to use a memory file, so each viewer gets a copy of the stream: {error}"
                );
                self.is_unavailable = true;
                self.drop_all();
            })
            .ok()
    }

    /// Drops all files. The next chunk begins a new one.
    pub(super) fn drop_all(&mut self) {
        self.newest = None;
        self.kept_from = u64::MAX;
    }

    /// Returns the number of the first chunk that stays in a file.
    pub(super) fn kept_from(&self) -> u64 {
        self.kept_from
    }

    fn try_append(&mut self, chunk: &Chunk) -> io::Result<FileRange> {
        let newest = match &mut self.newest {
            Some(newest) if newest.n_bytes < FILE_BYTES => newest,
            full => {
                let first = chunk.head().sequence;
                self.kept_from = full.as_ref().map_or(first, |it| it.first);
                full.insert(MemoryFile { file: Arc::new((self.create)()?), n_bytes: 0, first })
            }
        };
        let at = newest.n_bytes;
        let mut left = &chunk.bytes[..];
        while !left.is_empty() {
            match pwrite(&newest.file, left, newest.n_bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    left = &left[n..];
                    newest.n_bytes += n as u64;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(FileRange { file: Arc::clone(&newest.file), at })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::chunker::Chunker;

    #[test]
    fn a_ring_does_without_memory_files_where_they_are_forbidden() {
        let mut files = MemoryFiles::created_by(|| Err(io::ErrorKind::PermissionDenied.into()));
        let chunk = Chunker::new().filler(Instant::now());
        assert!(files.append(&chunk).is_none());
        files.create = MemoryFiles::new().create;
        assert!(files.append(&chunk).is_none(), "it does not try again with each chunk");
    }

    #[test]
    fn the_newest_two_files_are_kept() {
        let mut files = MemoryFiles::new();
        let mut chunker = Chunker::new();
        let mut all = Vec::new();
        while all.len() < 3000 {
            let chunk = chunker.filler(Instant::now());
            all.push(files.append(&chunk).unwrap());
        }
        let kept = usize::try_from(files.kept_from()).unwrap();
        let newest = all.iter().rposition(|it| it.at == 0).unwrap();
        assert!(Arc::ptr_eq(&all[kept].file, &all[newest - 1].file) && all[kept].at == 0);
        assert!(all[newest].follows(&all[newest], 0) && !all[newest].follows(&all[newest - 1], 0));
        files.drop_all();
        assert_eq!(files.kept_from(), u64::MAX);
    }
}
