//! Errors of the store, worded for the person who runs the gateway.

use std::path::PathBuf;

/// An error of the store. Texts complete "failed to …" or stand alone.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another record has the same value of a unique index.
    #[error("{collection} already has a record with the same {index}")]
    Taken { collection: &'static str, index: &'static str, by: u32 },
    /// A record type of a paged collection has a unique index, which the store does not enforce. A bug of that type.
    #[error("{collection} are paged and cannot have the unique index {index}; make it a plain one")]
    NotUnique { collection: &'static str, index: &'static str },
    /// The store is already open, in another process or in this one.
    #[error("the store at {0} is in use: Headwater is already running")]
    AlreadyRunning(PathBuf),
    /// The folder contains no store.
    #[error("there is no store at {0}")]
    NoStore(PathBuf),
    /// The store has less than was acknowledged, contains something unknown, or cannot be read.
    #[error("the store at {at} is damaged: {what}; restore a back-up, or run `headwater store salvage`")]
    Damaged { at: PathBuf, what: String },
    /// One value cannot be read; the others can.
    #[error("a record of the store is damaged: {0}")]
    DamagedRecord(String),
    /// A later version wrote the store.
    #[error(
        "the store has format {found}, but this version supports formats up to {known}; use a newer Headwater"
    )]
    TooNew { found: u8, known: u8 },
    /// The key file is missing, invalid or belongs to another store.
    #[error("{0}")]
    Key(String),
    /// Another bulk write of the same owner is in progress.
    #[error("another import of {0} for the same owner is in progress")]
    Busy(&'static str),
    /// A record or a write exceeds its limit.
    #[error("{what} is too large: {size}, at most {max}")]
    TooLarge { what: &'static str, size: usize, max: usize },
    /// The id counter of a collection is exhausted.
    #[error("{0} has no id left")]
    NoIdLeft(&'static str),
    /// An earlier write failed half-way; all writes are refused until the store is opened again.
    #[error("the store refuses all writes until it is opened again: {0}")]
    Stopped(String),
    /// The store was closed before the write ran.
    #[error("the store is closed")]
    Closed,
    /// The function of a write panicked. None of its changes were written.
    #[error("a write panicked and was rolled back")]
    Panicked,
    /// A record could not be encoded.
    #[error("failed to encode a record of {collection}: {cause}")]
    Encode { collection: &'static str, cause: String },
    /// The disk or sled failed.
    #[error("failed to {what}: {cause}")]
    Disk { what: &'static str, cause: String },
}

impl Error {
    pub(crate) fn disk(what: &'static str, cause: impl std::fmt::Display) -> Self {
        Self::Disk { what, cause: cause.to_string() }
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
