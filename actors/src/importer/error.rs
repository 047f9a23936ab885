//! Why an import changed nothing, in words for the admin.

use std::io;

use domain::account::RefreshOutcome;
use domain::playlist::rules::RulesError;

use crate::fetch::FetchError;
use crate::playlist::PlaylistReadError;

/// Why an import changed nothing. No text names an address beyond its host.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("there is no such account")]
    NoSuchAccount,
    #[error("the account is not active")]
    Inactive,
    #[error("the account has no list")]
    NoList,
    /// The list did not come.
    #[error("{}", .0.with_causes())]
    Fetch(FetchError),
    /// The file is not there, or is none.
    #[error("open the file of the list: {0}")]
    File(io::Error),
    /// What came could not be read to its end: it is too long, or what is compressed is broken.
    #[error("read the list to its end: {0}")]
    Unread(#[from] io::Error),
    #[error("there is no entry in the list")]
    Empty,
    /// What came is something else; says what.
    #[error("{0}")]
    NotAPlaylist(String),
    /// An admin has to agree.
    #[error(
        "the list has {now} entries where the last good one had {before}; nothing is changed until it is confirmed"
    )]
    Shrunken { before: u64, now: u64 },
    #[error("the account has a rule that cannot be used: {0}")]
    Rules(#[from] RulesError),
    /// Somebody else's decision came first.
    #[error("the account was changed or deleted while its list was read")]
    AccountChanged,
    #[error("the refresh was broken off")]
    Stopped,
    #[error("{0}")]
    Store(#[from] storage::Error),
    #[error("the refresh met a fault of the gateway's own; the log has more of it")]
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
    /// How a refresh that ends so is remembered; `None` is not at all.
    pub fn outcome(&self) -> Option<RefreshOutcome> {
        match self {
            Self::NoSuchAccount | Self::Inactive | Self::NoList | Self::Stopped => None,
            Self::Shrunken { .. } => Some(RefreshOutcome::AwaitingConfirmation),
            _ => Some(RefreshOutcome::Error),
        }
    }

    /// The text as a sentence of its own.
    pub fn sentence(&self) -> String {
        let text = match self {
            Self::File(_)
            | Self::Unread(_)
            | Self::Fetch(FetchError::Transfer { .. } | FetchError::Client(_)) => {
                format!("failed to {self}")
            }
            _ => self.to_string(),
        };
        let mut chars = text.chars();
        let first = chars.next().map(|it| it.to_ascii_uppercase());
        let end = if text.ends_with('.') { "" } else { "." };
        first.into_iter().chain(chars).chain(end.chars()).collect()
    }
}
