//! Finds the live channel a client asked for, or has it started; the only way to join one.
//!
//! All joins of a target pass here in one turn each, so that a thousand simultaneous first clients give one live
//! channel. A channel that is ending takes no more joins: they are parked until it is gone and its leases are back,
//! then a new live channel starts. So a provider never sees two sockets for one channel.
//!
//! ```text
//!   (absent) ─Watch─► Live ─Idle(n), no join since─► Leaving ─Ended─► Draining ─leases back─► (absent, or Live again)
//! ```

mod actor;
mod message;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::actor::{Actor, Arguments};
pub(crate) use self::message::Message;
use domain::ids::UserId;
use media::meter::Connection;
use media::ring::EndReason;
use tracing::info;
use uuid::Uuid;

use crate::ask::{ANSWER_TIMEOUT, Address, AskError};
use crate::channel::{
    ChannelStatus, JoinRequest, LiveEnv, SwitchOutcome, SwitchTo, WatchRefusal, WatchReply,
};
use crate::plans::Target;
use crate::seats::{SeatInfo, SeatRequest, SeatTable, SeatsTaken};
use crate::timeline::ChannelRun;
use crate::viewer::Viewer;

/// Longest wait for the answer to a join: an ending channel's farewell, its sockets' close, and the wait for a slot.
const WATCH_TIMEOUT: Duration = Duration::from_secs(10);

/// How long live channels have to say how they are doing when all are asked at once. Less than the asker waits.
const OVERVIEW_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest wait for the outcome of a manual switch; the playout itself decides within 20 s.
const SWITCH_TIMEOUT: Duration = Duration::from_secs(25);

/// After a live channel could not be started, before another is tried for those who wait.
const START_PAUSE: Duration = Duration::from_millis(100);

/// Most joins parked for one channel that is ending.
const PARKED_MAX: usize = 4096;

/// A request to watch.
#[derive(Clone, Debug)]
pub struct WatchRequest {
    /// What to watch.
    pub target: Target,
    /// Who asks.
    pub viewer: Viewer,
    /// The connection the bytes will go to; cancelled when the client is ended.
    pub connection: Arc<Connection>,
    /// Whose seat it takes; `None` where nobody logged in.
    pub seat: Option<SeatRequest>,
}

/// What came of stopping a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopOutcome {
    /// It was told to end; its clients get their last chunks.
    Stopping,
    /// Nobody was watching it.
    NotLive,
}

/// A live channel at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelOverview {
    /// What is watched.
    pub target: Target,
    /// How it is doing; `None` when it did not say so in time.
    pub status: Option<ChannelStatus>,
}

/// The door of the switchboard.
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

    /// Joins a live channel, starting it when nobody watches it yet.
    ///
    /// A viewer with a user needs a seat first, and may wait a second for one; its other sessions end as
    /// [`domain::limits::decide_seat`] says. The answer comes when a slot is granted, at the latest ten seconds after that;
    /// the first real chunk may still be on its way then.
    ///
    /// # Errors
    /// When the switchboard does not answer in time or the gateway is stopping.
    pub async fn watch(&self, request: WatchRequest) -> Result<WatchReply, AskError> {
        let WatchRequest { target, viewer, connection, seat } = request;
        let at_limit = self.env.settings().at_limit;
        let seat = match seat {
            None => None,
            Some(request) => {
                match self.seats.take_soon(request, &viewer, target, &connection, at_limit).await {
                    Ok(seat) => Some(Arc::new(seat)),
                    Err(taken) => return Ok(self.no_seat(request, &viewer, target, &taken)),
                }
            }
        };
        // Held here until a client holds it: an asker that goes away while it waits gives it back at once.
        let request = JoinRequest { viewer, connection, seat: seat.as_ref().map(Arc::downgrade) };
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
            "no seat is free: {taken}"
        );
        WatchReply::Refused(WatchRefusal::Seats { limit: request.limit })
    }

    /// Ends every session whose user may no longer watch, clients and all. Who asks at the same moment has to be
    /// looked at again after the answer.
    pub fn keep_users(&self, may_watch: impl Fn(UserId) -> bool) {
        self.seats.keep_users(may_watch);
    }

    /// Every session that holds a seat.
    pub fn seats(&self) -> Vec<SeatInfo> {
        self.seats.all()
    }

    /// Ends a live channel and closes its clients.
    ///
    /// # Errors
    /// When the switchboard does not answer in time.
    pub async fn stop(&self, target: Target) -> Result<StopOutcome, AskError> {
        self.address
            .ask(ANSWER_TIMEOUT, |reply| Message::Stop { target, end: EndReason::Stopped, reply })
            .await
    }

    /// Plays another stream of a live channel; answers after it happened, at most after 25 seconds.
    ///
    /// # Errors
    /// When there is no answer in time.
    pub async fn switch(&self, target: Target, to: SwitchTo) -> Result<SwitchOutcome, AskError> {
        self.address.ask(SWITCH_TIMEOUT, |reply| Message::Switch { target, to, reply }).await
    }

    /// Ends one client, and answers when it is gone; whether there was such a client.
    ///
    /// # Errors
    /// When there is no answer in time.
    pub async fn kick(&self, target: Target, client: u64) -> Result<bool, AskError> {
        self.address.ask(ANSWER_TIMEOUT, |reply| Message::Kick { target, client, reply }).await
    }

    /// How a live channel is doing; `None` when nobody watches it.
    ///
    /// # Errors
    /// When there is no answer in time.
    pub async fn status(&self, target: Target) -> Result<Option<ChannelStatus>, AskError> {
        self.address.ask(ANSWER_TIMEOUT, |reply| Message::Status { target, reply }).await
    }

    /// How everything that lives at this moment is doing, by name. One that does not say so within two seconds is
    /// named without.
    ///
    /// # Errors
    /// When the switchboard does not answer in time.
    pub async fn overview(&self) -> Result<Vec<ChannelOverview>, AskError> {
        self.address.ask(ANSWER_TIMEOUT, |reply| Message::Overview { reply }).await
    }

    /// What happened to the channel of this uuid: its run that goes on and those that ended lately, newest first.
    pub fn timeline(&self, uuid: Uuid) -> Vec<ChannelRun> {
        self.env.timelines.of(|it| it.uuid() == uuid)
    }

    /// The plans changed: every live channel was told to read its own again.
    ///
    /// # Errors
    /// When the switchboard does not answer in time; they may not have been told then.
    pub async fn reload(&self) -> Result<(), AskError> {
        self.address.ask(ANSWER_TIMEOUT, |reply| Message::Reload { reply }).await
    }

    /// Takes no more joins and ends every live channel.
    pub(crate) fn close(&self) {
        self.address.tell(Message::Close);
    }
}
