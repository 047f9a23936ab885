//! What a pump reports about its sources.

use std::time::Duration;

use crate::error::UpstreamError;
use crate::splice::PictureEvent;

/// A part that is missing of a source that otherwise goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lack {
    /// No access unit of the picture.
    Picture,
    /// No access unit of any sound.
    Sound,
    /// The picture stands still: the same access units come again and again.
    Motion,
}

/// A message from the pump. `Ready`, `Playing` and `Lost` are sent at most once per attempt, and `Lost` is the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PumpMessage {
    /// The output can continue with the prepared source of this attempt.
    Ready(u64),
    /// The source of this attempt, which plays, has sent no payload for longer than usual.
    Silent {
        /// Number of the attempt.
        attempt: u64,
        /// Time since its last payload.
        silence: Duration,
    },
    /// The source of this attempt, which was silent, sends payload again.
    Resumed(u64),
    /// A part of the programme is missing in the source of this attempt, which plays and otherwise goes on.
    Lacks {
        /// Number of the attempt.
        attempt: u64,
        /// The part.
        lack: Lack,
        /// Whether it has never come from this source, although its tables announce it.
        never: bool,
    },
    /// The source of this attempt sends this part again, which was missing.
    Complete {
        /// Number of the attempt.
        attempt: u64,
        /// The part.
        lack: Lack,
    },
    /// The first packets of the source of this attempt become readable directly after this message. What a viewer does
    /// after it got them is therefore reported later.
    Playing(u64),
    /// How the picture of the source of this attempt begins, which replaces another; only if it does not begin with the
    /// other streams at a random-access point.
    Picture {
        /// Number of the attempt.
        attempt: u64,
        /// The event.
        event: PictureEvent,
    },
    /// The source of this attempt was lost. Its socket is already closing.
    Lost {
        /// Number of the attempt.
        attempt: u64,
        /// The reason.
        cause: UpstreamError,
    },
}
