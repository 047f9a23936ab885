//! Why a ring, and with it the stream of a viewer, ends.

use std::fmt;
use std::sync::Arc;

/// The reason why a tail ends. `Display` completes the sentence "the stream ended because …".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The writer was dropped.
    Closed,
    /// The channel was stopped.
    Stopped,
    /// No stream of the channel plays. The text contains the reason.
    NothingPlays(Arc<str>),
    /// No slot became free. The text names the account.
    NoSlot(Arc<str>),
    /// The viewer was disconnected.
    Kicked,
    /// The viewer was overrun too often.
    TooSlow,
    /// No packet arrived within the longest time that viewers are kept waiting.
    Silent,
}

impl EndReason {
    /// Returns whether the chunks that remain in the ring are withheld.
    pub fn is_abrupt(&self) -> bool {
        matches!(self, Self::Kicked | Self::TooSlow)
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => write!(f, "the channel closed"),
            Self::Stopped => write!(f, "the channel was stopped"),
            Self::NothingPlays(reason) => write!(f, "no stream plays: {reason}"),
            Self::NoSlot(reason) => write!(f, "no slot is free: {reason}"),
            Self::Kicked => write!(f, "the viewer was disconnected"),
            Self::TooSlow => write!(f, "the viewer could not keep up"),
            Self::Silent => write!(f, "no packet arrived for too long"),
        }
    }
}

impl std::error::Error for EndReason {}
