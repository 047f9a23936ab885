//! Reasons why an import failed, in words for an admin.

use std::io;

use domain::account::RefreshOutcome;
use domain::pattern::PatternError;
use domain::playlist::rules::RulesError;

use crate::fetch::FetchError;
use crate::playlist::PlaylistReadError;
use crate::refresh::sentence;

/// Reason why an import failed and changed nothing. No text contains an address beyond its host.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("the account does not exist")]
    NoSuchAccount,
    #[error("the account is not active")]
    Inactive,
    #[error("the account has no playlist")]
    NoList,
    /// The download failed.
    #[error("{}", .0.with_causes())]
    Fetch(FetchError),
    /// The file does not exist, or is not a regular file.
    #[error("open the playlist file: {0}")]
    File(io::Error),
    /// The data cannot be read to its end: it is too long, or its compression is damaged.
    #[error("read the playlist: {0}")]
    Unread(#[from] io::Error),
    #[error("the playlist has no entries")]
    Empty,
    /// The data is not a playlist; contains the reason.
    #[error("{0}")]
    NotAPlaylist(String),
    /// The panel refuses the login, or its answer is not the expected one; contains the reason.
    #[error("{0}")]
    Panel(String),
    /// The file was not uploaded, or was removed.
    #[error("the uploaded file is missing; upload it again")]
    NoUpload,
    /// The import needs the confirmation of an admin.
    #[error(
        "the playlist has {now} entries, and the last good one had {before}; nothing changes until an admin confirms it"
    )]
    Shrunken { before: u64, now: u64 },
    /// Fewer than half of the known streams are in the playlist; it needs the confirmation of an admin.
    #[error(
        "only {n_seen} of the {n_known} known streams are in the playlist; nothing changes until an admin confirms it"
    )]
    Unfamiliar { n_known: u64, n_seen: u64 },
    /// Fewer than half of the streams are left that the playlist had a week ago; it needs the confirmation of an admin.
    #[error(
        "only {n_seen} streams are left of the {n_known} that the playlist had in the last week; nothing changes until an admin confirms it"
    )]
    Dwindled { n_known: u64, n_seen: u64 },
    /// Most streams of a panel have the number that another one had; it needs the confirmation of an admin.
    #[error(
        "only {n_agreeing} of {n_pairs} streams have the name that their number had before, so the provider has probably numbered them anew; nothing changes until an admin confirms it"
    )]
    Renumbered { n_pairs: u64, n_agreeing: u64 },
    #[error("the account has an invalid rule: {0}")]
    Rules(#[from] RulesError),
    #[error("the filter with the id {id} is invalid: {cause}")]
    Filter { id: u32, cause: PatternError },
    /// The account was changed or deleted during the import.
    #[error("the account was changed or deleted during the import")]
    AccountChanged,
    #[error("the refresh was interrupted")]
    Stopped,
    #[error("{0}")]
    Store(#[from] storage::Error),
    #[error("the refresh failed because of an internal error; see the log")]
    Panicked,
}

impl From<PlaylistReadError> for ImportError {
    fn from(error: PlaylistReadError) -> Self {
        match error {
            PlaylistReadError::Fetch(cause) => Self::Fetch(cause),
            PlaylistReadError::Open(cause) => Self::File(cause),
            PlaylistReadError::Read(cause) => Self::Unread(cause),
            PlaylistReadError::Panicked => Self::Panicked,
        }
    }
}

impl ImportError {
    /// Returns the outcome to store; `None` if nothing is stored.
    pub fn outcome(&self) -> Option<RefreshOutcome> {
        match self {
            Self::NoSuchAccount | Self::Inactive | Self::NoList | Self::Stopped => None,
            Self::Shrunken { .. }
            | Self::Unfamiliar { .. }
            | Self::Dwindled { .. }
            | Self::Renumbered { .. } => Some(RefreshOutcome::AwaitingConfirmation),
            _ => Some(RefreshOutcome::Error),
        }
    }

    /// Returns the text as a sentence of its own.
    pub fn sentence(&self) -> String {
        match self {
            Self::File(_) | Self::Unread(_) => sentence(&format!("failed to {self}")),
            Self::Fetch(error) if error.completes_failed_to() => sentence(&format!("failed to {self}")),
            Self::Store(storage::Error::Stopped(why)) => sentence(&format!("{self}; {}", why.advice())),
            _ => sentence(&self.to_string()),
        }
    }
}
