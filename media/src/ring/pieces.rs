//! What a tail sends next, as references to the bytes of the ring.

use std::io::IoSlice;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use tokio::time::Instant;

use super::memory_files::FileRange;

/// Maximum number of chunks in [`Pieces`].
pub(super) const CHUNKS_MAX: usize = 4;
/// No further chunk is added above this many bytes. A socket accepts little more at once.
const BYTES_MAX: usize = 128 * 1024;
/// Maximum number of pieces: the rest of a packet, a preamble, and chunks.
pub const PIECES_MAX: usize = CHUNKS_MAX + 2;

/// Consecutive bytes of a tail. They are valid until the tail is polled again.
#[derive(Debug, Default)]
pub struct Pieces {
    list: [Option<Piece>; PIECES_MAX],
    n_pieces: usize,
    n_bytes: usize,
    pub(super) is_newest: bool,
    /// The place of all bytes in a memory file.
    pub(super) file: Option<FileRange>,
}

/// A part of [`Pieces`].
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Bytes,
    pub(super) kind: PieceKind,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum PieceKind {
    /// The rest of a packet or of a preamble whose beginning was sent.
    Rest,
    Preamble,
    /// A chunk, or the packets of it that were not sent yet.
    Chunk(SentChunk),
}

/// The properties of a chunk that a tail counts when it is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentChunk {
    pub(super) sequence: u64,
    pub(super) arrived: Instant,
    pub(super) is_filler: bool,
}

impl Pieces {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of bytes.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Returns true if no further bytes are available. The tail then wakes its task when there are, even if the task
    /// does not poll it again before.
    pub fn is_newest(&self) -> bool {
        self.is_newest
    }

    /// Fills `slices`, which has at least [`PIECES_MAX`] elements, and returns the number of slices used.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        for (slice, piece) in slices.iter_mut().zip(self.iter()) {
            *slice = IoSlice::new(&piece.bytes);
        }
        self.n_pieces
    }

    /// Returns a memory file with the same bytes, and their offset in it, if there is one.
    pub fn file(&self) -> Option<(&OwnedFd, u64)> {
        self.file.as_ref().map(|it| (&*it.file, it.at))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Piece> {
        self.list[..self.n_pieces].iter().flatten()
    }

    pub(super) fn clear(&mut self) {
        self.list[..self.n_pieces].fill_with(|| None);
        (self.n_pieces, self.n_bytes, self.is_newest, self.file) = (0, 0, false, None);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.n_pieces == 0
    }

    pub(super) fn has_space(&self) -> bool {
        self.n_pieces < PIECES_MAX && self.n_bytes < BYTES_MAX
    }

    pub(super) fn push(&mut self, piece: Piece) {
        self.n_bytes += piece.bytes.len();
        self.list[self.n_pieces] = Some(piece);
        self.n_pieces += 1;
    }

    /// Adds a preamble before the first chunk.
    pub(super) fn insert_preamble(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        let is_chunk = |it: &Piece| matches!(it.kind, PieceKind::Chunk(_));
        let first_chunk = self.iter().position(is_chunk).unwrap_or(self.n_pieces);
        self.push(Piece { bytes, kind: PieceKind::Preamble });
        self.list[first_chunk..self.n_pieces].rotate_right(1);
    }
}
