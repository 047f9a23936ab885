//! Reads whole chunks with their heads, to carry a ring to another process.

use std::fmt;
use std::task::{Context, Poll};

use super::end::EndReason;
use super::{JoinPoint, Ring, Tail};
use crate::chunk::Chunk;

/// A reader of whole chunks. It may be overrun like any tail, but does not end for that.
pub struct ChunkReader {
    tail: Tail,
}

/// A chunk, and what is missing before it.
#[derive(Debug)]
pub(crate) struct ReadChunk {
    pub(crate) chunk: Chunk,
    /// Bytes that left the ring before they were read, without filler.
    pub(crate) n_lost: u64,
}

/// The chunk after which a reader should begin is not written yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ring has not reached this chunk")]
pub struct AheadError;

impl Ring {
    /// Creates a reader that begins with the chunk after this one if it is stored or is the next, otherwise with the newest
    /// random-access point.
    ///
    /// # Errors
    /// The ring has not reached the chunk.
    pub fn chunks_after(&self, after: Option<u64>) -> Result<ChunkReader, AheadError> {
        let mut tail = self.uncounted_tail(JoinPoint::Live { behind: std::time::Duration::ZERO });
        match tail.read_chunks_from(after.map(|it| it.saturating_add(1))) {
            true => Ok(ChunkReader { tail }),
            false => Err(AheadError),
        }
    }
}

impl ChunkReader {
    /// Returns the next chunk; after the end of the ring and its last chunk, the reason.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<ReadChunk, EndReason>> {
        self.tail.poll_stored(cx)
    }
}

impl fmt::Debug for ChunkReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChunkReader").field(&self.tail).finish()
    }
}
