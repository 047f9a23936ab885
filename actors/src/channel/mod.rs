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
mod renditions;
mod segmenters;
mod status;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Weak};
use std::time::Duration;

pub(crate) use self::actor::{Actor, Arguments, open_request};
pub(crate) use self::env::LiveEnv;
pub(crate) use self::message::{HostFor, Join, Message};
pub use self::segmenters::SegmentViewing;
pub use self::status::{ChannelNode, ChannelStatus, ClientStatus, SegmenterStatus};
use domain::output_format::StreamFormat;
use domain::output_profile::Rendition;
use domain::source_url::SourceUrl;
use domain::udp_output::UdpOutputAddress;
use media::meter::Connection;
use media::ring::Tail;

use crate::recorder::ReadingRecording;
use crate::seats::Seat;
use crate::slots::FullPool;
use crate::viewer::Viewer;

/// The reply to a request to watch.
#[derive(Debug)]
pub enum WatchReply {
    /// A tail of the ring. The first real chunk may not have arrived yet: wait for it on the tail.
    Tail {
        /// Client number.
        client: u64,
        /// Position in the ring.
        tail: Tail,
    },
    /// A window of segments. The first one may not be complete yet.
    Segments {
        /// Client number.
        client: u64,
        /// The window, with what ends the client when it is dropped.
        viewing: Box<SegmentViewing>,
    },
    /// The player is sent to the original address; no upstream was opened and no lease taken.
    Redirect(SourceUrl),
    /// The client cannot watch.
    Refused(WatchRefusal),
}

/// Reason why a client cannot watch a channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchRefusal {
    /// The channel does not exist.
    #[error("no such channel")]
    NotFound,
    /// The channel has no stream that can be tried.
    #[error("the channel has no streams")]
    NoStreams,
    /// No stream of the channel is of a supported kind.
    #[error("{0}")]
    Unplayable(String),
    /// All slots are in use and none came free in time.
    #[error("{0}")]
    Full(FullPool),
    /// The user is at the limit of simultaneous streams.
    #[error("this user is at the limit of {limit} streams at one time")]
    Seats {
        /// Maximum number of simultaneous streams of this user.
        limit: u32,
    },
    /// The output profile of the client needs a program, and no more may run.
    #[error("the limit of {limit} conversions for output profiles at one time is reached")]
    Transcoders {
        /// Maximum number of programs.
        limit: u32,
    },
    /// Every stream was tried, and none plays.
    #[error("no stream of the channel plays: {0}")]
    NothingPlays(String),
    /// The channel or the gateway is stopping; the client can retry.
    #[error("the channel is stopping")]
    Stopping,
}

/// Destination of a manual switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchTo {
    /// The next stream in the failover order.
    Next,
    /// A certain stream.
    Stream(domain::ids::StreamId),
}

/// Outcome of a manual switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchOutcome {
    /// The new stream plays.
    Switched {
        /// The stream that plays.
        stream: domain::ids::StreamId,
        /// The stream that played before.
        previous: Option<domain::ids::StreamId>,
        /// Milliseconds during which no source played; 0 if the old one played until the new one started.
        gap_ms: u64,
    },
    /// The new stream did not play.
    Failed {
        /// The stream that plays now, if any.
        playing: Option<domain::ids::StreamId>,
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

/// A request to watch, as the switchboard forwards it.
#[derive(Clone, Debug)]
pub(crate) struct JoinRequest {
    pub(crate) viewer: Viewer,
    pub(crate) connection: Arc<Connection>,
    /// Seat of a logged-in viewer. The waiting caller holds the seat until a client does.
    pub(crate) seat: Option<Weak<Seat>>,
    /// The rendition that the viewer gets; `None` is the stream as it is.
    pub(crate) rendition: Option<Arc<Rendition>>,
    pub(crate) format: StreamFormat,
    /// The recording that reads, if one does: it starts at the newest random-access point instead of some seconds before.
    pub(crate) recording: Option<ReadingRecording>,
    /// The receiver of the datagrams that the channel is sent as, if an output reads.
    pub(crate) datagrams: Option<UdpOutputAddress>,
}

/// The caller of a join no longer waits for it.
pub(crate) struct CallerGone;

impl JoinRequest {
    /// Returns the seat for the client to hold.
    ///
    /// # Errors
    /// The caller, and with it the seat, is gone.
    pub(crate) fn seat(&self) -> Result<Option<Arc<Seat>>, CallerGone> {
        self.seat.as_ref().map(|it| it.upgrade().ok_or(CallerGone)).transpose()
    }
}

/// A report of a live channel to the switchboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelReport {
    /// Nobody has watched for the linger time. The number is that of the last join.
    Idle(u64),
    /// A join arrived before the order to retire.
    Awake,
    /// The channel accepts no more joins and ends soon.
    Ending,
}

/// Time for the clients of an ending channel to read their last chunks.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval at which a channel without viewers repeats its report.
const IDLE_REPORT_PERIOD: Duration = Duration::from_secs(5);

/// Maximum number of callers that wait until a client of the channel is gone.
const KICKING_MAX: usize = 256;

/// Maximum number of joins that wait for the first slot of a channel.
const WAITING_MAX: usize = 4096;
