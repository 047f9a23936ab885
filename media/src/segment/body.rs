//! The bytes of a segment or of a part.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, pwrite};

/// Shorter runs of packets are copied together, so that a segment has few pieces.
const PIECE_BYTES_MIN: usize = 4 << 10;

/// The bytes of a segment, a part or an initialisation segment. Clones share the bytes.
#[derive(Clone, Debug)]
pub struct SegmentBody {
    pieces: Arc<[Bytes]>,
    n_bytes: usize,
    file: Arc<OnceLock<Option<OwnedFd>>>,
}

impl SegmentBody {
    /// Creates a body of these pieces.
    pub(crate) fn new(pieces: Vec<Bytes>) -> Self {
        let n_bytes = pieces.iter().map(Bytes::len).sum();
        Self { pieces: pieces.into(), n_bytes, file: Arc::default() }
    }

    /// Returns the bytes in order, without copying.
    pub fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }

    /// Returns the number of bytes.
    #[expect(clippy::len_without_is_empty, reason = "a body is never empty")]
    pub fn len(&self) -> usize {
        self.n_bytes
    }

    /// Returns the bytes as one, which copies them if there are several pieces.
    pub fn to_bytes(&self) -> Bytes {
        if let [only] = &*self.pieces {
            return only.clone();
        }
        let mut bytes = BytesMut::with_capacity(self.n_bytes);
        self.pieces.iter().for_each(|it| bytes.extend_from_slice(it));
        bytes.freeze()
    }

    /// Returns a memory file with exactly these bytes, for `sendfile`. The first call writes it, which costs one copy and
    /// holds the bytes a second time until the segment leaves the window; it is worth it when many viewers follow.
    /// `None` where memory files are forbidden.
    pub fn file(&self) -> Option<&OwnedFd> {
        self.file.get_or_init(|| write_file(&self.pieces).ok()).as_ref()
    }

    /// Returns the memory that the body uses, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let has_file = matches!(self.file.get(), Some(Some(_)));
        size_of_val(&*self.pieces) + self.n_bytes * if has_file { 2 } else { 1 }
    }
}

fn write_file(pieces: &[Bytes]) -> io::Result<OwnedFd> {
    let file = memfd_create("headwater-segment", MemfdFlags::CLOEXEC)?;
    let mut at = 0;
    for piece in pieces {
        let mut left = &piece[..];
        while !left.is_empty() {
            match pwrite(&file, left, at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    left = &left[n..];
                    at += n as u64;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(file)
}

/// Collects the pieces of a segment. Long runs stay references to the chunks of the ring; short ones are copied.
#[derive(Debug, Default)]
pub(crate) struct BodyBuilder {
    pieces: Vec<Bytes>,
    short: BytesMut,
    n_bytes: usize,
}

impl BodyBuilder {
    pub(crate) fn push(&mut self, run: Bytes) {
        self.n_bytes += run.len();
        if run.len() < PIECE_BYTES_MIN {
            self.short.extend_from_slice(&run);
            return;
        }
        self.flush();
        self.pieces.push(run);
    }

    pub(crate) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    pub(crate) fn build(mut self) -> SegmentBody {
        self.flush();
        SegmentBody::new(self.pieces)
    }

    fn flush(&mut self) {
        if !self.short.is_empty() {
            self.pieces.push(self.short.split().freeze());
        }
    }
}
