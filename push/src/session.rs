//! One open socket.
//!
//! ```text
//! established ─► send, reply, ping ─┬─ access lost ─────────────────► close 1008
//!                                   ├─ server draining ─────────────► close 1001
//!                                   ├─ hub ended ───────────────────► close 1011
//!                                   ├─ send time-out, cancelled ────► reset
//!                                   └─ closed by client, no frames ─► dropped
//! ```

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use actors::view_limits;
use domain::user::{User, UserLevel};
use domain::user_group::VIEW_CHANNEL;
use futures_util::{SinkExt as _, StreamExt as _};
use media::Connection;
use server::accept::ConnectionGuard;
use server::caller::Caller;
use services::recording_rules::dvr_settings;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::debug;
use warp::ws::{Message, WebSocket};

use super::access::{Access, AccessLoss};
use super::frames::{self, ForOthers};
use super::heartbeat::{Heartbeat, HeartbeatAction};
use super::hub::{Hub, HubMessage, Listener};
use super::socket_limit::SocketPermit;
use super::statistics::{ClientsOf, may_see};
use crate::context::PushContext;

/// Time limit for sending one frame.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for the closing handshake.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// One WebSocket connection.
pub(super) struct Session {
    listener: Listener,
    context: Arc<PushContext>,
    access: Access,
    connection: Arc<Connection>,
    client: IpAddr,
    /// The channels whose clients the socket gets.
    clients_of: ClientsOf,
    _permit: SocketPermit,
}

/// Reason why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The client closed the socket, was silent for too long, or violated the protocol.
    Gone,
    /// The connection must be reset: pending frames must not arrive, or the client does not read them.
    Cut,
    Stopping,
    AccessLost(AccessLoss),
    /// The hub has ended.
    HubClosed,
}

impl Session {
    /// Subscribes, so that the client misses nothing that happens after the response to its upgrade.
    pub(super) fn new(
        hub: &Hub,
        context: Arc<PushContext>,
        access: Access,
        caller: Caller,
        permit: SocketPermit,
    ) -> Self {
        let client = caller.address();
        let (listener, connection) = (hub.listen(), caller.connection);
        Self { listener, context, access, connection, client, clients_of: ClientsOf::All, _permit: permit }
    }

    /// Serves the socket until it ends.
    pub(super) async fn run(mut self, mut socket: WebSocket, guard: &ConnectionGuard) {
        let (user, client) = (self.access.user().clone(), self.client);
        debug!(user.name = user.username, client.address = %client, "WebSocket opened");
        let end = self.serve(&mut socket, guard).await;
        debug!(user.name = user.username, client.address = %client, "WebSocket closed: {end:?}");
        let (code, reason) = match end {
            End::Gone => return,
            // The reset also discards buffered frames.
            End::Cut => return self.connection.cancel.cancel(),
            End::Stopping => (1001_u16, "the gateway is stopping"),
            End::AccessLost(AccessLoss::Credentials) => (1008, "the credentials are no longer valid"),
            End::AccessLost(AccessLoss::Level) => (1008, "the user level has changed"),
            End::HubClosed => (1011, "internal error"),
        };
        let close = async {
            if socket.send(Message::close_with(code, reason)).await.is_ok() {
                // Read until the client closes too: unread frames would reset the connection before the client
                // sees the close code.
                while let Some(Ok(_)) = socket.next().await {}
            }
        };
        tokio::select! {
            () = self.connection.cancel.cancelled() => {}
            _ = timeout(CLOSE_TIMEOUT, close) => {}
        }
    }

    async fn serve(&mut self, socket: &mut WebSocket, guard: &ConnectionGuard) -> End {
        self.ask_for_clients();
        let mut heartbeat = Heartbeat::new(Instant::now());
        let stop_reason = self.context.models.store.stop_reason().borrow().clone();
        let mut next = Some(Message::text(frames::established(self.access.user(), stop_reason.as_ref())));
        loop {
            if let Some(message) = next.take() {
                // Check again before each frame, because the change message may not have arrived yet.
                if let Err(lost) = self.access.check() {
                    return End::AccessLost(lost);
                }
                tokio::select! {
                    biased;
                    sent = timeout(SEND_TIMEOUT, socket.send(message)) => match sent {
                        Ok(Ok(())) => {}
                        Ok(Err(_)) => return End::Gone,
                        Err(_) => return End::Cut,
                    },
                    end = ended(&mut self.access, &self.connection, guard) => return match end {
                        // Part of a frame that the user may no longer see is still buffered.
                        End::AccessLost(_) => End::Cut,
                        end => end,
                    },
                }
            }
            let wake = match heartbeat.action(Instant::now()) {
                HeartbeatAction::Close => return End::Gone,
                HeartbeatAction::Ping => {
                    heartbeat.pinged(Instant::now());
                    next = Some(Message::ping(Vec::new()));
                    continue;
                }
                HeartbeatAction::Wait(until) => until,
            };
            next = tokio::select! {
                biased;
                end = ended(&mut self.access, &self.connection, guard) => return end,
                received = socket.next() => match received {
                    Some(Ok(message)) => {
                        heartbeat.received(Instant::now());
                        if message.is_close() {
                            // The next read sends the reply to the close frame.
                            let _ = timeout(CLOSE_TIMEOUT, socket.next()).await;
                            return End::Gone;
                        }
                        let is_data = message.is_text() || message.is_binary();
                        let answer = is_data.then(|| self.answer(message.to_str().ok()));
                        self.ask_for_clients();
                        answer
                    }
                    Some(Err(_)) | None => return End::Gone,
                },
                message = self.listener.next() => match message {
                    HubMessage::Closed => return End::HubClosed,
                    message => self.frame(message).map(Message::text),
                },
                () = sleep_until(wake) => None,
            };
        }
    }

    /// Returns the reply to a message of the client, and remembers what it asks for.
    fn answer(&mut self, text: Option<&str>) -> Message {
        let (reply, clients_of) = frames::reply(text);
        self.clients_of = clients_of.unwrap_or(self.clients_of);
        Message::text(reply)
    }

    /// Tells the hub whose clients it needs of other nodes.
    fn ask_for_clients(&self) {
        let is_admin = self.access.user().may(UserLevel::Admin);
        self.listener.wants(if is_admin { self.clients_of } else { ClientsOf::None });
    }

    /// Returns whether a user finds recordings in the interface.
    fn may_record(&self, user: &User) -> bool {
        dvr_settings(&self.context.models).permit(user)
    }

    /// Returns the frame for this user, or `None` if the message is not meant for them.
    fn frame(&self, message: HubMessage) -> Option<String> {
        let user = self.access.user();
        let is_admin = user.may(UserLevel::Admin);
        match message {
            HubMessage::Missed(count) => Some(frames::missed(count)),
            HubMessage::Notification(it) if is_admin => Some(it.admin.clone()),
            HubMessage::Notification(it) => {
                let (channel, text) = match &it.others {
                    ForOthers::ForAll(text) => return Some(text.clone()),
                    ForOthers::OfChannel(channel, text) if sees_channels(user) => (channel, text),
                    ForOthers::OfOwners(own) => {
                        let own = own.iter().find(|it| it.0 == user.id);
                        return own.filter(|_| self.may_record(user)).map(|it| it.1.clone());
                    }
                    ForOthers::ForRecorders(text) => return self.may_record(user).then(|| text.clone()),
                    ForOthers::OfChannel(..) | ForOthers::Nothing => return None,
                };
                let limits = view_limits(&self.context.models, Some(user));
                may_see(&limits, &self.context.models.channels.load(), *channel).then(|| text.clone())
            }
            HubMessage::Statistics(it) if is_admin => Some(it.for_admins(self.clients_of)),
            HubMessage::Statistics(_) if !sees_channels(user) => None,
            HubMessage::Statistics(it) => {
                let limits = view_limits(&self.context.models, Some(user));
                Some(it.for_viewer(&limits, &self.context.models.channels.load()))
            }
            HubMessage::Closed => None,
        }
    }
}

/// Returns whether a user reads in the interface whether the visible channels play.
fn sees_channels(user: &User) -> bool {
    user.may_with(UserLevel::Standard, Some(VIEW_CHANNEL))
}

/// Waits for a reason to end the session from the server side.
async fn ended(access: &mut Access, connection: &Connection, guard: &ConnectionGuard) -> End {
    tokio::select! {
        biased;
        () = connection.cancel.cancelled() => End::Cut,
        () = guard.draining() => End::Stopping,
        lost = access.lost() => End::AccessLost(lost),
    }
}
