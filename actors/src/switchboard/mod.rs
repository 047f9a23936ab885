//! Finds or starts the live channel that a client requests. A live channel can be joined in no other way.
//!
//! All joins of a target pass through this actor one by one, so a thousand simultaneous first clients start one live
//! channel. A channel that is ending accepts no more joins: they wait until it has ended and its leases are returned,
//! then a new live channel starts. So a provider never sees two sockets for one channel.
//!
//! ```text
//!   (absent) ─Watch─► Live ─Idle(n), no join since─► Leaving ─Ended─► Draining ─leases back─► (absent, or Live again)
//! ```

mod actor;
mod message;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::actor::{Actor, Arguments};
pub(crate) use self::message::Message;
use domain::ids::UserId;
use domain::limits::SeatRules;
use domain::output_format::StreamFormat;
use domain::output_profile::Rendition;
use domain::udp_output::UdpOutputAddress;
use media::meter::Connection;
use media::ring::EndReason;
use media::{BlockingError, Still, StillError, spawn_blocking};
use tracing::info;
use uuid::Uuid;

use crate::ask::{ANSWER_TIMEOUT, Address, AskError};
use crate::channel::{
    ChannelStatus, HostChannels, HostFor, JoinRequest, LiveEnv, RecordingReader, SwitchOutcome, SwitchTo,
    WatchRefusal, WatchReply,
};
use crate::plans::Target;
use crate::seats::{SeatInfo, SeatRequest, SeatTable, SeatsTaken};
use crate::timeline::ChannelRun;
use crate::viewer::{Identity, Viewer};

/// The program that an output of a channel as datagrams is shown as in lists of clients.
pub(crate) const OUTPUT_AGENT: &str = "Headwater output";

/// Maximum wait for the reply to a join: the farewell of an ending channel, the close of its sockets, and the wait for
/// a slot.
const WATCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum wait for the status of all live channels together; shorter than the wait of the caller.
const OVERVIEW_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum wait for the outcome of a manual switch; the playout decides within 20 s.
const SWITCH_TIMEOUT: Duration = Duration::from_secs(25);

/// Delay before the start of a live channel is tried again.
const START_PAUSE: Duration = Duration::from_millis(100);

/// Maximum number of joins that wait for the end of one channel.
const PARKED_MAX: usize = 4096;

/// A request to watch.
#[derive(Clone, Debug)]
pub struct WatchRequest {
    /// The channel or stream to watch.
    pub target: Target,
    /// The viewer.
    pub viewer: Viewer,
    /// The connection for the data; cancelled to disconnect the client.
    pub connection: Arc<Connection>,
    /// The seat to take; `None` without a login.
    pub seat: Option<SeatRequest>,
    /// The rendition that the viewer gets; `None` is the stream as it is.
    pub rendition: Option<Arc<Rendition>>,
    /// The form in which the viewer gets the stream.
    pub format: StreamFormat,
}

/// Outcome of stopping a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopOutcome {
    /// The channel is ending; its clients read their last chunks.
    Stopping,
    /// Nobody watched the channel.
    NotLive,
}

/// The status of one live channel.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelOverview {
    /// Watched target.
    pub target: Target,
    /// Its status; `None` if it did not reply in time.
    pub status: Option<ChannelStatus>,
}

/// Why a channel that plays has no picture to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoStill {
    /// It cannot be packed, or not yet.
    #[error(transparent)]
    Picture(#[from] StillError),
    /// No thread packs it.
    #[error(transparent)]
    Thread(#[from] BlockingError),
}

/// The handle of the switchboard.
#[derive(Clone)]
pub struct Switchboard {
    address: Address<Message>,
    env: Arc<LiveEnv>,
    seats: Arc<SeatTable>,
}

impl Switchboard {
    pub(crate) fn new(address: Address<Message>, env: Arc<LiveEnv>, seats: Arc<SeatTable>) -> Self {
        Self { address, env, seats }
    }

    /// Joins a live channel, and starts it if nobody watches it yet.
    ///
    /// A logged-in viewer needs a seat first, and may wait one second for it; other sessions of the same device end as
    /// decided by [`domain::limits::decide_seat`]. The reply comes when a slot is granted, at the latest ten seconds
    /// after that; the first real chunk may not have arrived by then.
    ///
    /// # Errors
    /// The switchboard does not reply in time, or the gateway is stopping.
    pub async fn watch(&self, request: WatchRequest) -> Result<WatchReply, AskError> {
        let WatchRequest { target, viewer, connection, seat, rendition, format } = request;
        let settings = self.env.settings();
        let rules = SeatRules { at_limit: settings.at_limit, user_limits: settings.user_limits };
        let seat = match seat {
            None => None,
            Some(request) => match self.seats.take_soon(request, &viewer, target, &connection, rules).await {
                Ok(seat) => Some(Arc::new(seat)),
                Err(taken) => return Ok(self.no_seat(request, &viewer, target, &taken)),
            },
        };
        // Held here until a client holds it: if the caller goes away while it waits, the seat is released at once.
        let seat_held = seat.as_ref().map(Arc::downgrade);
        let request = JoinRequest {
            viewer,
            connection,
            seat: seat_held,
            rendition,
            format,
            recording: None,
            datagrams: None,
        };
        self.join(target, request).await
    }

    /// Joins a live channel as a recording: without a seat, at the newest random-access point when it begins to read. A
    /// channel that nobody else watches takes its slot for the purpose of recording.
    ///
    /// # Errors
    /// The switchboard does not reply in time, or the gateway is stopping.
    pub(crate) async fn record(
        &self,
        target: Target,
        connection: Arc<Connection>,
        recording: RecordingReader,
    ) -> Result<WatchReply, AskError> {
        let agent = recording.agent().to_owned();
        let viewer =
            Viewer { user: None, address: connection.peer.ip(), agent, identity: Identity::default() };
        let request = JoinRequest {
            viewer,
            connection,
            seat: None,
            rendition: None,
            format: StreamFormat::Ts,
            recording: Some(recording),
            datagrams: None,
        };
        self.join(target, request).await
    }

    /// Joins a live channel in order to send it as datagrams: without a seat, at the newest random-access point. It counts as
    /// a viewer, so the slot is taken for viewers.
    ///
    /// # Errors
    /// The switchboard does not reply in time, or the gateway is stopping.
    pub(crate) async fn send_out(
        &self,
        target: Target,
        connection: Arc<Connection>,
        to: UdpOutputAddress,
    ) -> Result<WatchReply, AskError> {
        let viewer = Viewer {
            user: None,
            address: to.to.ip(),
            agent: OUTPUT_AGENT.to_owned(),
            identity: Identity::default(),
        };
        let request = JoinRequest {
            viewer,
            connection,
            seat: None,
            rendition: None,
            format: StreamFormat::Ts,
            recording: None,
            datagrams: Some(to),
        };
        self.join(target, request).await
    }

    /// Starts a live channel for what the process before this one plays, until that process has ended it.
    ///
    /// # Errors
    /// The switchboard does not reply in time, or the gateway is stopping.
    pub(crate) async fn relay(&self, target: Target) -> Result<Result<(), String>, AskError> {
        let host = HostFor::Predecessor;
        self.address.ask(ANSWER_TIMEOUT, |reply| Message::Host { target, host, reply }).await
    }

    async fn join(&self, target: Target, request: JoinRequest) -> Result<WatchReply, AskError> {
        self.address
            .ask(WATCH_TIMEOUT, |reply| Message::Watch { target, request: request.clone(), reply })
            .await
            .or_else(|it| {
                if it == AskError::Gone { Ok(WatchReply::Refused(WatchRefusal::Stopping)) } else { Err(it) }
            })
    }

    fn no_seat(
        &self,
        request: SeatRequest,
        viewer: &Viewer,
        target: Target,
        taken: &SeatsTaken,
    ) -> WatchReply {
        self.env.registry.refused_seats.add_one();
        info!(
            channel.target = %target, user.id = %request.user, client.address = %viewer.address, limit = request.limit,
            "no free seat: {taken}"
        );
        WatchReply::Refused(WatchRefusal::Seats { limit: request.limit })
    }

    /// Ends every session for which a reason is given, and disconnects its clients. Returns the users of those that were
    /// watched, with the reasons. A request that is in progress at the same moment has to be checked again after its reply.
    pub(crate) fn end_sessions(
        &self,
        why: impl Fn(UserId, IpAddr, Target) -> Option<&'static str>,
    ) -> Vec<(UserId, &'static str)> {
        self.seats.end_where(why)
    }

    /// Returns all sessions that hold a seat.
    pub fn seats(&self) -> Vec<SeatInfo> {
        self.seats.all()
    }

    /// Stops a live channel and disconnects its clients.
    ///
    /// # Errors
    /// The switchboard does not reply in time.
    pub async fn stop(&self, target: Target) -> Result<StopOutcome, AskError> {
        self.address
            .ask(ANSWER_TIMEOUT, |reply| Message::Stop { target, end: EndReason::Stopped, reply })
            .await
    }

    /// Switches a live channel to another stream. Replies after the switch, at most after 25 seconds.
    ///
    /// # Errors
    /// There is no reply in time.
    pub async fn switch(&self, target: Target, to: SwitchTo) -> Result<SwitchOutcome, AskError> {
        self.address.ask(SWITCH_TIMEOUT, |reply| Message::Switch { target, to, reply }).await
    }

    /// Disconnects one client, and replies when it is gone. Returns whether it existed.
    ///
    /// # Errors
    /// There is no reply in time.
    pub async fn kick(&self, target: Target, client: u64) -> Result<bool, AskError> {
        self.address.ask(ANSWER_TIMEOUT, |reply| Message::Kick { target, client, reply }).await
    }

    /// Returns the status of a live channel; `None` if nobody watches it.
    ///
    /// # Errors
    /// There is no reply in time.
    pub async fn status(&self, target: Target) -> Result<Option<ChannelStatus>, AskError> {
        self.address.ask(ANSWER_TIMEOUT, |reply| Message::Status { target, reply }).await
    }

    /// Returns the status of all live channels, sorted by name. A channel that does not reply within two seconds is
    /// listed without a status.
    ///
    /// # Errors
    /// The switchboard does not reply in time.
    pub async fn overview(&self) -> Result<Vec<ChannelOverview>, AskError> {
        self.address.ask(ANSWER_TIMEOUT, |reply| Message::Overview { reply }).await
    }

    /// Returns the newest key frame that this node has of a live channel or preview with this UUID; `None` if it does not
    /// play here. Opens nothing, and counts as no viewer. Each key frame is packed once.
    ///
    /// # Errors
    /// The channel has no picture that can be packed, or the system has no thread for it.
    pub async fn still(&self, uuid: Uuid) -> Result<Option<Still>, NoStill> {
        let Some(channel) = self.env.registry.channel_with(uuid) else { return Ok(None) };
        let mut cache = Arc::clone(&channel.still).lock_owned().await;
        let packed = spawn_blocking(move || cache.newest(&channel.ring)).await?;
        Ok(Some(packed?))
    }

    /// Returns the runs of the channel with this uuid: the current one and those that ended recently, newest first.
    pub fn timeline(&self, uuid: Uuid) -> Vec<ChannelRun> {
        self.env.timelines.runs(|it| it.uuid() == uuid)
    }

    /// Makes every live channel load its plan again.
    ///
    /// # Errors
    /// The switchboard does not reply in time; the channels may not have been notified.
    pub async fn reload(&self) -> Result<(), AskError> {
        self.address.ask(ANSWER_TIMEOUT, |reply| Message::Reload { reply }).await
    }

    /// Refuses further joins.
    pub(crate) fn refuse(&self) {
        self.address.tell(Message::Refuse);
    }

    /// Refuses further joins and ends every live channel.
    pub(crate) fn close(&self) {
        self.address.tell(Message::Close);
    }
}

impl HostChannels for Switchboard {
    fn host(
        &self,
        target: Target,
        replaces: Option<u64>,
        is_watched: bool,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        let host = HostFor::Node { replaces, is_watched };
        Box::pin(async move {
            let hosted =
                self.address.ask(ANSWER_TIMEOUT, |reply| Message::Host { target, host, reply }).await;
            hosted.unwrap_or_else(|it| Err(it.to_string()))
        })
    }
}
