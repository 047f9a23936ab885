//! The log of a cluster: the order of all commits to shared records.
//!
//! The log is the truth, and the store of each node its materialised state. One node writes at a time. A write of its
//! store becomes a log entry before it is applied:
//!
//! ```text
//!   writer                                                     followers
//!   Store::write ─▶ Overlay                                    Store::catch_up
//!                     │ compose: operations of shared records     │ CommitLog::read, chain verified
//!                     ▼                                           ▼
//!                  LogEntry, encrypted, in a chain of hashes ──▶ LogEntry
//!                     │ CommitLog::append(expected last)          │ operations
//!                     ▼                                           ▼
//!                  commit to sled, with the new position       commit to sled, with the new position
//!                     │                                           │
//!                     ▼ views, Change, answer                     ▼ views, Change
//! ```
//!
//! An append succeeds only if the sequence is the expected one. So a node that another one has replaced as the writer
//! changes nothing: its append fails, its write is refused, and it becomes a follower. A crash between append and commit
//! leaves an entry that the same store applies like one of another node.
//!
//! Without a log nothing of this happens, and the files of a store do not change.
//!
//! Reading order: `position`, `keys`, `link`, `operations`, `entry`, `compose` (from a write to entries), `writing`
//! (appending), `following` (catching up), `apply` (from entries to a write), `snapshot`, `envelope` (data keys for
//! a node that joins), `files` (the encryption of files that nodes share).

mod apply;
pub(crate) mod compose;
mod entry;
mod envelope;
mod files;
mod following;
mod keys;
mod link;
mod operations;
mod position;
mod snapshot;
#[cfg(test)]
mod tests;
mod writing;

use std::fmt;

pub use self::entry::{ENTRY_BYTES_MAX, log_of};
#[cfg(feature = "fuzzing")]
pub(crate) use self::entry::{LogEntry, inflate};
pub use self::envelope::{SealingKey, seal_keys};
pub use self::files::{FILE_CHUNK_BYTES, FILE_HEADER_BYTES, FileOpener, FileSealer, SEALED_CHUNK_BYTES};
pub use self::keys::{DataKey, KeyRing, LogKeys};
pub(crate) use self::link::LogWriter;
#[cfg(feature = "fuzzing")]
pub(crate) use self::operations::{OperationReader, encode as encode_operation};
pub(crate) use self::position::{Applied, POSITION_ID};
pub use self::position::{EntryHash, LogPosition};
pub use self::snapshot::{
    copy_local_records, copy_records, create_snapshot, restore_snapshot, verify_snapshot,
};

/// A sequence of entries that all nodes share.
///
/// The store calls it on its writer thread and on threads that may block. Each call returns within some seconds.
pub trait CommitLog: Send + Sync + 'static {
    /// Appends an entry of at most [`ENTRY_BYTES_MAX`] if this is the sequence of the last entry. The sequence of the new
    /// one is one higher. Returns once the entry is durable.
    fn append(&self, expected_last: u64, entry: &[u8]) -> Append;

    /// Reads an entry that was appended before, from any replica.
    ///
    /// # Errors
    /// If the log does not answer.
    fn read(&self, sequence: u64) -> Result<LogRead, LogUnreachable>;

    /// Returns the sequence of the last entry, or the one after which the log begins. Asks the leader: an answer is never
    /// older than the question.
    ///
    /// # Errors
    /// If the log does not answer.
    fn last(&self) -> Result<u64, LogUnreachable>;
}

/// The outcome of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Append {
    Appended,
    /// The log has another last sequence. Nothing was appended now, but an earlier attempt may have been.
    Conflict,
    /// No answer came in time. The entry may have been appended, may be appended later, or never.
    Unknown,
}

/// The content of a log at a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogRead {
    Entry(Vec<u8>),
    /// The log ends before.
    End,
    /// The entry was compacted; a snapshot contains it.
    Removed,
}

/// The log does not answer. Says why, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the log of the cluster does not answer: {0}")]
pub struct LogUnreachable(pub String);

/// The part of a store in its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogRole {
    /// Applies the entries of another node. Writes to shared records are refused.
    Follower,
    /// Appends entries.
    Writer,
    /// The log and this store contradict each other, for this reason. Writes to shared records are refused on every node
    /// until a new log begins.
    ReadOnly(String),
}

/// The state of a store in its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStatus {
    pub role: LogRole,
    pub position: LogPosition,
}

impl fmt::Display for LogRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Follower => f.write_str("follower"),
            Self::Writer => f.write_str("writer"),
            Self::ReadOnly(why) => write!(f, "read-only: {why}"),
        }
    }
}
