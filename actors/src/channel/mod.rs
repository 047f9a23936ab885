//! A live channel: the actor of a channel that is being watched now.
//!
//! It owns the failover order, the present source (through its pump), the ring and its clients, and decides; the pump
//! carries. What to do next is said by [`domain::playout`], a pure state machine: the actor turns messages into its
//! inputs and carries its actions out. No handler here waits for anybody.
//!
//! ```text
//!   Join ─► parked until granted ─► tail            Left ─► linger ─► Idle(n) ─► Retire
//!   playout: Ask ─► slots ─► Granted ─► Open ─► opener ─► Opened ─► Follow ─► pump ─► Playing
//!                                                  └─► Lost          pump ─► Lost ─► Ask …
//! ```
//!
//! Its end is the end of all of it: aborting tasks drops the source, whose socket the closer closes before the lease
//! returns. A live channel that dies is not restarted; the next join starts a new one.

mod actor;
mod clients;
mod message;
mod status;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

pub(crate) use self::actor::{Actor, Arguments, ChannelReport, LiveEnv, open_request};
pub(crate) use self::message::{Join, Message};
pub use self::status::{ChannelStatus, ClientStatus};
use domain::source_url::SourceUrl;
use media::meter::Connection;
use media::ring::Tail;

use crate::seats::Seat;
use crate::slots::FullPool;

/// Who watches, as far as it is known: decides whether a new request replaces an old one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Viewer {
    /// The user; `None` where nobody logged in.
    pub user: Option<String>,
    /// The address the connection came from.
    pub address: IpAddr,
    /// The `User-Agent` as sent, shortened by whoever made it.
    pub agent: String,
}

impl Viewer {
    /// Whether both are one known user on one device.
    pub(crate) fn is_same_device(&self, other: &Viewer) -> bool {
        self.user.is_some() && self == other
    }
}

/// The answer to a join.
#[derive(Debug)]
pub enum WatchReply {
    /// A place in the ring. The first real chunk may still be on its way: wait for it on the tail.
    Tail {
        /// The number of the client.
        client: u64,
        /// Its place.
        tail: Tail,
    },
    /// The player is sent to the original address; nothing was opened and no lease taken.
    Redirect(SourceUrl),
    /// The client cannot have it.
    Refused(WatchRefusal),
}

/// Why a client cannot have a channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchRefusal {
    /// There is no such channel.
    #[error("no such channel")]
    NotFound,
    /// The channel has no stream that could be tried.
    #[error("the channel has no streams")]
    NoStreams,
    /// Every stream of the channel is of a kind that cannot be played.
    #[error("{0}")]
    Unplayable(String),
    /// Every slot is taken and none came free.
    #[error("account \"{}\" is at its limit of {} streams", .0.account, .0.max_streams)]
    Full(FullPool),
    /// The user watches as many things as the user may.
    #[error("this user is at the limit of {limit} streams at one time")]
    Seats {
        /// Things this user may watch at one time.
        limit: u32,
    },
    /// Every stream was tried and none plays.
    #[error("no stream of the channel plays: {0}")]
    NothingPlays(String),
    /// The channel or the gateway is being stopped; asking again helps.
    #[error("the channel is stopping")]
    Stopping,
}

/// Which stream a manual switch goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchTo {
    /// The next in the failover order.
    Next,
    /// This stream.
    Stream(domain::ids::StreamId),
}

/// What came of a manual switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchOutcome {
    /// This stream plays now.
    Switched {
        /// The stream that plays.
        stream: domain::ids::StreamId,
        /// The stream that played before.
        previous: Option<domain::ids::StreamId>,
        /// Milliseconds without a source that played; 0 where the old one played until the new one did.
        gap_ms: u64,
    },
    /// The new stream did not play; what plays now, if anything.
    Failed {
        /// The stream that plays instead.
        playing: Option<domain::ids::StreamId>,
        /// Why, for the caller.
        reason: String,
    },
    /// Another switch is under way.
    Busy,
    /// The channel is not being watched.
    NotLive,
    /// The channel has no such stream.
    NoSuchStream,
}

/// A request to watch, as the switchboard hands it on.
#[derive(Clone, Debug)]
pub(crate) struct JoinRequest {
    pub(crate) viewer: Viewer,
    pub(crate) connection: Arc<Connection>,
    /// The seat of a viewer with a user. Whoever waits for the answer holds it until a client does.
    pub(crate) seat: Option<Weak<Seat>>,
}

/// Whoever made a wish no longer waits for it.
pub(crate) struct AskerGone;

impl JoinRequest {
    /// The seat for its client to hold.
    ///
    /// # Errors
    /// When the asker, and with it the seat, is gone.
    pub(crate) fn seat(&self) -> Result<Option<Arc<Seat>>, AskerGone> {
        self.seat.as_ref().map(|it| it.upgrade().ok_or(AskerGone)).transpose()
    }
}

/// How long the clients of an ending channel have to take their last chunks.
const FAREWELL: Duration = Duration::from_secs(2);

/// How often a channel that nobody watches says so.
const IDLE_AGAIN: Duration = Duration::from_secs(5);

/// Most callers that wait for one channel's clients to be gone.
const KICKING_MAX: usize = 256;

/// Most joins that wait for one channel's first slot.
const WAITING_MAX: usize = 4096;
