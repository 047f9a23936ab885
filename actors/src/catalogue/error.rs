//! Reasons why films and series were not imported, in words for an admin.

use std::io;
use std::time::Duration;

use domain::account::RefreshOutcome;
use domain::panel::vod::TitleAnswerError;
use domain::panel::{ListEnd, NotAList};
use domain::vod::TitleKind;

use crate::fetch::FetchError;
use crate::playlist::PlaylistReadError;
use crate::portals::PortalFailure;
use crate::refresh::sentence;

/// Reason why films and series, or the details of one, were not imported. Nothing was changed. No text contains an
/// address beyond its host.
#[derive(Debug, thiserror::Error)]
pub enum VodError {
    #[error("the account does not exist, or wants no films and series")]
    NotWanted,
    #[error("the account was changed or deleted meanwhile")]
    AccountChanged,
    #[error("{}", .0.with_causes())]
    Fetch(FetchError),
    /// The answer cannot be read to its end.
    #[error("read the answer of the panel: {0}")]
    Unread(#[from] io::Error),
    #[error("{reason} of {what}")]
    NotAList { reason: NotAList, what: &'static str },
    #[error("the panel's list of {what} is cut off")]
    Truncated { what: &'static str },
    #[error("the list of {what} is empty; nothing changes")]
    Empty { what: &'static str },
    #[error("the account lists too many {what}")]
    TooMany { what: &'static str },
    #[error("the panel refuses to list its {what} for this login")]
    Refused { what: &'static str },
    #[error(
        "only {n_seen} of the {n_known} known {what} are listed; nothing changes until an admin confirms it"
    )]
    Dwindled { what: &'static str, n_known: u64, n_seen: u64 },
    #[error("{0}")]
    Title(TitleAnswerError),
    /// The portal gave no usable answer.
    #[error("{reason}")]
    Portal { reason: String, is_refusal: bool },
    #[error("the import was interrupted")]
    Stopped,
    #[error("{0}")]
    Store(#[from] storage::Error),
    #[error("the import failed because of an internal error; see the log")]
    Panicked,
}

impl From<PortalFailure> for VodError {
    fn from(failure: PortalFailure) -> Self {
        let is_refusal = failure.is_refusal();
        match failure {
            PortalFailure::Fetch(cause) => Self::Fetch(cause),
            failure => Self::Portal { reason: failure.to_string(), is_refusal },
        }
    }
}

impl From<PlaylistReadError> for VodError {
    fn from(error: PlaylistReadError) -> Self {
        match error {
            PlaylistReadError::Fetch(cause) => Self::Fetch(cause),
            PlaylistReadError::Open(cause) | PlaylistReadError::Read(cause) => Self::Unread(cause),
            PlaylistReadError::Panicked => Self::Panicked,
        }
    }
}

impl VodError {
    /// Returns the text as a sentence of its own.
    pub fn sentence(&self) -> String {
        match self {
            Self::Unread(_) => sentence(&format!("failed to {self}")),
            Self::Fetch(error) if error.completes_failed_to() => sentence(&format!("failed to {self}")),
            _ => sentence(&self.to_string()),
        }
    }

    /// Returns the outcome to store; `None` if nothing is stored.
    pub(super) fn outcome(&self) -> Option<RefreshOutcome> {
        match self {
            Self::NotWanted | Self::Stopped | Self::AccountChanged => None,
            Self::Dwindled { .. } => Some(RefreshOutcome::AwaitingConfirmation),
            _ => Some(RefreshOutcome::Error),
        }
    }

    /// Returns whether the panel asks for a pause, and of what length if it names one.
    pub(super) fn asks_to_wait(&self) -> Option<Option<Duration>> {
        match self {
            Self::Fetch(error) => error.asks_to_wait(),
            _ => None,
        }
    }

    /// Returns whether the reason concerns all questions to the panel, so that the next one is of no use now.
    pub(super) fn is_of_panel(&self) -> bool {
        match self {
            // An answer with an error says nothing about the next question.
            Self::Fetch(error) if error.is_answer() => self.asks_to_wait().is_some(),
            Self::Portal { is_refusal, .. } => *is_refusal,
            Self::Fetch(_) | Self::Stopped | Self::AccountChanged | Self::NotWanted | Self::Store(_) => true,
            _ => false,
        }
    }
}

/// Refuses a list that is not complete: what is missing from it would count as removed.
pub(super) fn check_end(end: ListEnd, what: &'static str) -> Result<(), VodError> {
    match end {
        ListEnd::Complete => Ok(()),
        ListEnd::Truncated => Err(VodError::Truncated { what }),
        ListEnd::NotAList(reason) => Err(VodError::NotAList { reason, what }),
    }
}

/// Returns the word for titles of a kind, and for their categories.
pub(super) fn words_of(kind: TitleKind) -> (&'static str, &'static str) {
    match kind {
        TitleKind::Movie => ("films", "categories of films"),
        TitleKind::Series => ("series", "categories of series"),
    }
}
