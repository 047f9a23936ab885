//! A manual switch to another stream.

use std::sync::Arc;

use domain::ids::StreamId;

/// Destination of a manual switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchTo {
    /// The next stream in the failover order.
    Next,
    /// A certain stream.
    Stream(StreamId),
}

/// Outcome of a manual switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchOutcome {
    /// The new stream plays.
    Switched {
        /// The stream that plays.
        stream: StreamId,
        /// The stream that played before.
        previous: Option<StreamId>,
        /// Milliseconds during which no source played; 0 if the old one played until the new one started.
        gap_ms: u64,
    },
    /// The new stream did not play.
    Failed {
        /// The stream that plays now, if any.
        playing: Option<StreamId>,
        /// Reason, for the caller.
        reason: String,
    },
    /// Another switch is in progress.
    Busy,
    /// Nobody watches the channel.
    NotLive,
    /// The node with this name has the source, and has to switch it.
    AtNode(Arc<str>),
    /// The channel does not have this stream.
    NoSuchStream,
}
