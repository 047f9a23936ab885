//! A live channel: the actor of a channel that has viewers.
//!
//! The actor owns the failover order, the current source (through its pump), the ring and the clients. It makes the
//! decisions; the pump moves the packets. [`domain::playout`], a pure state machine, decides which stream plays next:
//! the actor turns messages into its inputs and carries out its actions. No handler waits for another actor.
//!
//! ```text
//!   Join ─► waits until granted ─► tail             Left ─► linger ─► Idle(n) ─► Retire
//!   playout: Ask ─► slots ─► Granted ─► Open ─► opener ─► Opened ─► Follow ─► pump ─► Playing
//!                                                  └─► Lost          pump ─► Lost ─► Ask …
//! ```
//!
//! When the actor ends, everything it owns ends: aborting its tasks drops the source, whose socket the closer closes
//! before the lease returns. A live channel that dies is not restarted; the next join starts a new one.

mod actor;
mod clients;
mod env;
mod message;
mod open_request;
mod recording_reader;
mod renditions;
mod segmenters;
mod shared;
mod status;
mod switch;
#[cfg(test)]
mod tests;
mod viewing;
mod watch;

pub(crate) use self::actor::{Actor, Arguments};
pub(crate) use self::env::LiveEnv;
pub(crate) use self::message::{ChannelReport, HostFor, Join, Message, OwnerDecision};
pub(crate) use self::open_request::open_request;
pub(crate) use self::recording_reader::{RecordingPriority, RecordingReader};
pub(crate) use self::shared::{ChannelClaim, HostChannels};
pub use self::shared::{ChannelParts, NodeConnecting, NodeDialer, NodeSocket, SharedChannels};
pub use self::status::{ChannelNode, ChannelStatus, ClientStatus, SegmenterStatus};
pub use self::switch::{SwitchOutcome, SwitchTo};
pub use self::viewing::SegmentViewing;
pub(crate) use self::watch::JoinRequest;
pub use self::watch::{WatchRefusal, WatchReply};
