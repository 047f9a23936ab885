//! Messages to and from the bandwidth actor.

use std::time::Duration;

use ractor::DerivedActorRef;

/// The address to which a slow source is reported.
pub(crate) type ChannelPort = DerivedActorRef<Slow>;

/// The address to which a stalled client is reported.
pub(crate) type ClientPort = DerivedActorRef<Stalled>;

/// The programme clock of this attempt's source fell behind the wall clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slow {
    pub(crate) attempt: u64,
    pub(crate) behind: Duration,
}

/// The client's socket accepted no byte for this long, although data was available.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stalled {
    pub(crate) blocked: Duration,
}

/// The messages of the bandwidth actor.
pub(crate) enum Message {
    /// Reads the meters.
    Measure,
}
