//! What the bandwidth actor can be told, and what it tells those it measures.

use std::time::Duration;

use ractor::DerivedActorRef;

/// Where a live channel hears that its source is slow.
pub(crate) type ChannelPort = DerivedActorRef<Slow>;

/// Where a client hears that it stands still.
pub(crate) type ClientPort = DerivedActorRef<Stalled>;

/// The programme clock of this attempt's source fell behind the wall clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slow {
    pub(crate) attempt: u64,
    pub(crate) behind: Duration,
}

/// The client's socket took no byte for this long while some were on offer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stalled {
    pub(crate) blocked: Duration,
}

/// Everything the bandwidth actor can be told.
pub(crate) enum Message {
    /// A second passed.
    Look,
}
