//! Errors of the store, worded for the person who runs the gateway.

use std::fmt;
use std::path::PathBuf;

use crate::log::LogUnreachable;

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
    /// A guide file is damaged. Its source has no programmes until its next refresh.
    #[error("the guide file of source {source_id} is damaged: {what}; refresh the source")]
    DamagedGuide { source_id: u32, what: &'static str },
    /// One value cannot be read; the others can.
    #[error("a record of the store is damaged: {0}")]
    DamagedRecord(String),
    /// A later version wrote the store.
    #[error(
        "the store has format {found}, but this version supports formats up to {known}; use a newer Headwater"
    )]
    TooNew { found: u8, known: u8 },
    /// A later version of the program wrote the store, and this one does not know all of it.
    #[error(
        "Headwater {program} wrote the store, with {what}, which this version does not know; use Headwater {program} or a newer one, or restore a back-up of this version"
    )]
    NewerProgram { program: String, what: String },
    /// The key file is missing, invalid or belongs to another store.
    #[error("{0}")]
    Key(String),
    /// Another bulk write of the same owner is in progress.
    #[error("another import of {0} for the same owner is in progress")]
    Busy(&'static str),
    /// A bulk write began before a failure of the disk and has to be repeated.
    #[error("a failure of the disk interrupted the import; repeat it")]
    Interrupted,
    /// Only one snapshot exists at a time.
    #[error("another back-up is being made")]
    SnapshotExists,
    /// Too much was overwritten while a snapshot was read, or the disk failed.
    #[error("too much was changed while the back-up was made; repeat it")]
    SnapshotLost,
    /// A record or a write exceeds its limit.
    #[error("{what} is too large: {size}, at most {max}")]
    TooLarge { what: &'static str, size: usize, max: usize },
    /// The id counter of a collection is exhausted.
    #[error("{0} has no id left")]
    NoIdLeft(&'static str),
    /// The store refuses writes until the cause is gone; then it goes on by itself. The change of an earlier write that
    /// failed half-way may or may not be kept.
    #[error("the store refuses writes: {0}")]
    Stopped(StopReason),
    /// Work that needs much room on the disk was not begun. Small writes go on.
    #[error(
        "not enough room on the disk to {what}: {needed} bytes needed, {available} available; free some space"
    )]
    NoRoom { what: &'static str, needed: u64, available: u64 },
    /// Another node of the cluster writes the shared records, or this one has not become the writer yet. Nothing was
    /// changed.
    #[error("another node of the cluster writes the configuration; repeat the change")]
    NotWriter,
    /// The log did not say whether it has the change. It is applied later, or never.
    #[error("the log of the cluster does not answer; the change may or may not be kept")]
    LogUnknown,
    /// The log cannot be read at present.
    #[error(transparent)]
    LogUnreachable(LogUnreachable),
    /// The log does not continue what this store contains.
    #[error(
        "the configuration is read-only: {0}; run `headwater cluster reseed` on a node with a complete store"
    )]
    LogBroken(String),
    /// The log no longer has what follows this entry.
    #[error(
        "the log of the cluster no longer has what follows entry {0}; this node needs a snapshot, which it gets by itself"
    )]
    LogBehind(u64),
    /// Another log has begun, by a reseed on another node.
    #[error(
        "the cluster has a new log, with which another node has begun; this node needs a snapshot, which it gets by itself"
    )]
    LogReplaced,
    /// A later version wrote an entry of the log.
    #[error("the log of the cluster contains {0}, which this version does not know; update this node")]
    LogTooNew(String),
    /// The store belongs to no log, or its log is not attached.
    #[error("the store has no log")]
    NoLog,
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
    Disk { what: &'static str, fault: Fault, cause: String },
}

impl Error {
    pub(crate) fn disk(what: &'static str, cause: impl fmt::Display) -> Self {
        let cause = cause.to_string();
        let fault = Fault::from_text(&cause);
        Self::Disk { what, fault, cause: fault.text().map_or(cause, str::to_owned) }
    }

    /// Returns true if the disk has no room for what was to be written.
    pub(crate) fn is_full(&self) -> bool {
        StopReason::new(self).fault == Fault::Full
    }

    /// Returns true if the operating system refused to read or write, which says nothing about the data.
    pub(crate) fn is_of_system(&self) -> bool {
        matches!(self, Self::Disk { fault, .. } if *fault != Fault::Other)
    }
}

/// The cause of a failed disk operation, as the operating system reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No space left, or a quota is used up.
    Full,
    /// Missing rights.
    Denied,
    ReadOnly,
    /// Input/output error.
    Device,
    /// An operation did not return within a limit.
    Hanging,
    /// Anything else, such as a defect of sled.
    Other,
}

impl Fault {
    /// Reads the code of the operating system from the text of an error. sled keeps only the text: as `os error 28`, or
    /// as `code: 28` after it was passed between threads.
    fn from_text(cause: &str) -> Self {
        let code = ["os error ", "code: "].iter().find_map(|label| {
            let digits = cause.split_once(label)?.1;
            digits.split(|it: char| !it.is_ascii_digit()).next()?.parse::<i32>().ok()
        });
        match code {
            // ENOSPC, EDQUOT, EFBIG.
            Some(28 | 122 | 27) => Self::Full,
            // EPERM, EACCES.
            Some(1 | 13) => Self::Denied,
            // EROFS.
            Some(30) => Self::ReadOnly,
            // EIO, ENXIO, ENODEV, EUCLEAN.
            Some(5 | 6 | 19 | 117) => Self::Device,
            _ => Self::Other,
        }
    }

    /// Returns what happened, unless it is unknown.
    fn text(self) -> Option<&'static str> {
        match self {
            Self::Full => Some("the disk is full"),
            Self::Denied => Some("the rights to the data folder are missing"),
            Self::ReadOnly => Some("the file system is read-only"),
            Self::Device => Some("the disk reported an input/output error"),
            Self::Hanging => Some("the disk hangs"),
            Self::Other => None,
        }
    }
}

/// The reason why a store refuses writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopReason {
    pub fault: Fault,
    /// The error, for the log.
    pub cause: String,
}

impl StopReason {
    pub(crate) fn new(error: &Error) -> Self {
        let fault = match error {
            Error::Disk { fault, .. } => *fault,
            Error::NoRoom { .. } => Fault::Full,
            _ => Fault::Other,
        };
        Self { fault, cause: error.to_string() }
    }

    /// Returns what the person who runs the gateway should do. Names no path.
    pub fn advice(&self) -> &'static str {
        match self.fault {
            Fault::Full => "free some space",
            Fault::Denied => "give the gateway's user write access to the data folder",
            Fault::ReadOnly => "mount the file system with write access",
            Fault::Device => "check the disk and its cable",
            Fault::Hanging => "check the disk and its cable, or the connection of a network storage",
            Fault::Other => "see the log",
        }
    }
}

/// Prints the cause, without paths.
impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.fault.text().unwrap_or("a write failed"))
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_are_named_as_such() {
        let of_code = |code| std::io::Error::from_raw_os_error(code);
        for (error, fault, text) in [
            (Error::disk("write", of_code(28)), Fault::Full, "failed to write: the disk is full"),
            (Error::disk("write", of_code(122)), Fault::Full, "failed to write: the disk is full"),
            (
                Error::disk("write", of_code(30)),
                Fault::ReadOnly,
                "failed to write: the file system is read-only",
            ),
            (
                Error::disk("open", of_code(13)),
                Fault::Denied,
                "failed to open: the rights to the data folder are missing",
            ),
            // sled passes an error between threads like this.
            (
                Error::disk("write", format!("IO error: {:?}", of_code(5))),
                Fault::Device,
                "failed to write: the disk reported an input/output error",
            ),
            (Error::disk("read", "Read corrupted data"), Fault::Other, "failed to read: Read corrupted data"),
        ] {
            assert_eq!((StopReason::new(&error).fault, error.to_string().as_str()), (fault, text));
            assert_eq!(error.is_of_system(), fault != Fault::Other);
        }
    }
}
