//! Reasons why the guide of a source was not replaced, in words for an admin.

use std::io;

use crate::fetch::FetchError;
use crate::refresh::sentence;

/// Reason why a guide was not replaced. The former guide stays in use. No text contains an address beyond its host.
#[derive(Debug, thiserror::Error)]
pub enum GuideError {
    /// The source was deleted or changed during the refresh.
    #[error("the guide source was changed or deleted during the refresh")]
    SourceChanged,
    /// The source has neither an address nor an uploaded file.
    #[error("the guide source has neither an address nor an uploaded file")]
    NoLocation,
    /// The account of the source does not exist, or is neither at a panel nor at a portal.
    #[error("the guide source needs an active account of the type XC or STALKER")]
    NoPanel,
    /// The channels of the portal have not been imported, so that nobody knows what its guide names.
    #[error("the channels of the portal have not been imported yet")]
    NoChannels,
    /// The portal refuses the device; contains the reason.
    #[error("{0}")]
    Refused(String),
    /// The request failed.
    #[error("{}", .0.with_causes())]
    Fetch(FetchError),
    /// The download failed after it had begun, so the server is alive.
    #[error("{}", .0.with_causes())]
    BrokenOff(FetchError),
    /// The service refuses the login, or its answer is not the expected one; contains the reason.
    #[error("{0}")]
    Service(String),
    /// The uploaded file is missing.
    #[error("the uploaded file is missing; upload it again")]
    NoUpload,
    /// The data cannot be read to its end: it is too long, or its compression is damaged.
    #[error("read the guide: {0}")]
    Unread(#[from] io::Error),
    /// The data is not a guide; contains the reason.
    #[error("{0}")]
    NotAGuide(String),
    /// Another node wrote the present guide, and this one does not have its file yet.
    #[error("this node is still fetching the guide from the others")]
    NotHere,
    /// The guide was not read in time.
    #[error("the guide was not read within {seconds} seconds")]
    Slow { seconds: u64 },
    /// The guide names no channels.
    #[error("the guide is empty: it names no channels")]
    Empty,
    /// The guide ends in the middle.
    #[error(
        "the guide is cut off after {n_programmes} programmes; the former guide stays, unless an admin confirms it"
    )]
    Truncated { n_programmes: u64 },
    /// The guide has less than half of the known channels.
    #[error(
        "the guide has {now} channels, and the former one had {before}; it stays, unless an admin confirms the change"
    )]
    FewerChannels { before: u64, now: u64 },
    /// The guide has less than half of the known programmes that have not ended.
    #[error(
        "the guide has {now} programmes that have not ended, and the former one has {before}; it stays, unless an admin \
         confirms the change"
    )]
    FewerProgrammes { before: u64, now: u64 },
    /// A limit of guides is exceeded.
    #[error("the guide has more than {max} {what}")]
    TooMany { what: &'static str, max: u64 },
    #[error("the refresh was interrupted")]
    Stopped,
    #[error("{0}")]
    Store(#[from] storage::Error),
    #[error("the refresh failed because of an internal error; see the log")]
    Panicked,
}

impl GuideError {
    /// Returns the text as a sentence of its own.
    pub fn sentence(&self) -> String {
        match self {
            Self::Unread(_) => sentence(&format!("failed to {self}")),
            Self::Fetch(error) | Self::BrokenOff(error) if error.completes_failed_to() => {
                sentence(&format!("failed to {self}"))
            }
            _ => sentence(&self.to_string()),
        }
    }

    /// Returns whether another try soon may help, without a change by an admin or by the provider.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Fetch(error) | Self::BrokenOff(error) => error.is_temporary(),
            Self::Unread(_) | Self::Store(_) | Self::NoChannels => true,
            _ => false,
        }
    }
}
