//! A request to watch a live channel, and its reply.

use std::sync::{Arc, Weak};

use domain::output_format::StreamFormat;
use domain::output_profile::Rendition;
use domain::plan::Redirection;
use domain::udp_output::UdpOutputAddress;
use media::meter::Connection;
use media::ring::Tail;

use super::recording_reader::RecordingReader;
use super::viewing::SegmentViewing;
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
    Redirect(Redirection),
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
    pub(crate) recording: Option<RecordingReader>,
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
