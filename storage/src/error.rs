//! What can go wrong with the store, in words for the person who runs it.

use std::path::PathBuf;

/// Why the store could not do what it was asked for. Texts complete "failed to …" or stand alone.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A record with this value of a unique index is there already, under another id.
    #[error("{collection} already has a record with the same {index}")]
    Taken { collection: &'static str, index: &'static str, by: u32 },
    /// A noun of a paged collection names a unique index, which nobody would keep unique. A bug in the noun.
    #[error("{collection} are paged and cannot have the unique index {index}; make it a plain one")]
    NotUnique { collection: &'static str, index: &'static str },
    /// The store is open already, by another process or by this one.
    #[error("the store at {0} is in use: Headwater is already running")]
    AlreadyRunning(PathBuf),
    /// Nothing in this folder is a store.
    #[error("there is no store at {0}")]
    NoStore(PathBuf),
    /// What is on the disk is less than what was acknowledged, or is not ours, or cannot be read.
    #[error("the store at {at} is damaged: {what}; restore a back-up, or run `headwater store salvage`")]
    Damaged { at: PathBuf, what: String },
    /// One value that cannot be read; the others can.
    #[error("a record of the store is damaged: {0}")]
    DamagedRecord(String),
    /// Written by a later version.
    #[error("the store has format {found}, this version reads up to {known}; use a newer Headwater")]
    TooNew { found: u8, known: u8 },
    /// The key file is missing or is not the one that the store was written with.
    #[error("{0}")]
    Key(String),
    /// Another bulk write of the same owner is under way.
    #[error("{0} of this owner are being replaced already")]
    Busy(&'static str),
    /// More than one record may have, or one write.
    #[error("{what} is too large: {size}, at most {max}")]
    TooLarge { what: &'static str, size: usize, max: usize },
    /// A counter of ids has no next one.
    #[error("{0} has no id left")]
    NoIdLeft(&'static str),
    /// An earlier write failed in the middle; nothing is written until the store is opened again.
    #[error("the store takes no more writes until it is opened again: {0}")]
    Stopped(String),
    /// The store was closed while the write waited.
    #[error("the store is closed")]
    Closed,
    /// The function that should have filled the write panicked. Nothing of it was written.
    #[error("a write panicked and was taken back")]
    Panicked,
    /// A record could not be turned into bytes.
    #[error("failed to encode a record of {collection}: {cause}")]
    Encode { collection: &'static str, cause: String },
    /// The disk, or sled below us.
    #[error("failed to {what}: {cause}")]
    Disk { what: &'static str, cause: String },
}

impl Error {
    pub(crate) fn disk(what: &'static str, cause: impl std::fmt::Display) -> Self {
        Self::Disk { what, cause: cause.to_string() }
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
