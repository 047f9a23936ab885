//! One open socket.
//!
//! ```text
//! established ─► tell, answer, ask whether they live ─┬─ access lost ──► close 1008
//!                                                     ├─ door closing ─► close 1001
//!                                                     ├─ hub ended ────► close 1011
//!                                                     ├─ takes nothing, cancelled ─► reset
//!                                                     └─ closed, says nothing ─────► dropped
//! ```

use std::sync::Arc;
use std::time::Duration;

use domain::user::UserLevel;
use futures_util::{SinkExt as _, StreamExt as _};
use media::Connection;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::debug;
use warp::ws::{Message, WebSocket};

use super::access::{Access, Lost};
use super::frames;
use super::heartbeat::{Heartbeat, Need};
use super::hub::{Heard, Hub, Listener};
use super::places::Place;
use super::statistics::may_see;
use crate::app::App;
use crate::http::accept::Stay;

/// How long the other side may take nothing while there is something to tell.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// How long it may take to say farewell.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// One socket, before and while it is open.
pub(super) struct Session {
    hub: Hub,
    app: Arc<App>,
    access: Access,
    connection: Arc<Connection>,
    _place: Place,
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The other side closed, said nothing for too long, or broke the protocol.
    Gone,
    /// What is on its way to the other side is not to arrive, or never would.
    Cut,
    Stopping,
    Lost(Lost),
    /// There is nothing more to listen to.
    Silence,
}

impl Session {
    pub(super) fn new(
        hub: Hub,
        app: Arc<App>,
        access: Access,
        connection: Arc<Connection>,
        place: Place,
    ) -> Self {
        Self { hub, app, access, connection, _place: place }
    }

    /// Serves the socket to its end.
    pub(super) async fn run(mut self, mut socket: WebSocket, stay: &Stay) {
        let (user, client) = (self.access.user().clone(), self.connection.peer);
        debug!(user.name = user.username, client.address = %client, "a push socket opened");
        let end = self.serve(&mut socket, stay).await;
        debug!(user.name = user.username, client.address = %client, "a push socket ends: {end:?}");
        let (code, reason) = match end {
            End::Gone => return,
            // What lies in buffers goes with the connection.
            End::Cut => return self.connection.cancel.cancel(),
            End::Stopping => (1001_u16, "the gateway is stopping"),
            End::Lost(Lost::Credentials) => (1008, "the credentials are not good any more"),
            End::Lost(Lost::Level) => (1008, "the user level has changed"),
            End::Silence => (1011, "internal error"),
        };
        let farewell = async {
            if socket.send(Message::close_with(code, reason)).await.is_ok() {
                // Until the other side closed too: what it sent and nobody read would reset the connection, and it
                // would never see why.
                while let Some(Ok(_)) = socket.next().await {}
            }
        };
        tokio::select! {
            () = self.connection.cancel.cancelled() => {}
            _ = timeout(CLOSE_TIMEOUT, farewell) => {}
        }
    }

    async fn serve(&mut self, socket: &mut WebSocket, stay: &Stay) -> End {
        // Before anything is said, and before it is known what: what happens from now on is heard.
        let mut listener = self.access.user().may(UserLevel::Standard).then(|| self.hub.listen());
        let mut heartbeat = Heartbeat::new(Instant::now());
        let mut next = Some(Message::text(frames::established(self.access.user())));
        loop {
            if let Some(message) = next.take() {
                // Also when nobody has told of a change yet: nothing leaves here that the user may not see now.
                if let Err(lost) = self.access.look() {
                    return End::Lost(lost);
                }
                tokio::select! {
                    biased;
                    sent = timeout(SEND_TIMEOUT, socket.send(message)) => match sent {
                        Ok(Ok(())) => {}
                        Ok(Err(_)) => return End::Gone,
                        Err(_) => return End::Cut,
                    },
                    end = ended(&mut self.access, &self.connection, stay) => return match end {
                        // Half of what they may not see any more is still here.
                        End::Lost(_) => End::Cut,
                        end => end,
                    },
                }
            }
            let wake = match heartbeat.need(Instant::now()) {
                Need::End => return End::Gone,
                Need::Ping => {
                    heartbeat.asked(Instant::now());
                    next = Some(Message::ping(Vec::new()));
                    continue;
                }
                Need::Nothing(until) => until,
            };
            next = tokio::select! {
                biased;
                end = ended(&mut self.access, &self.connection, stay) => return end,
                came = socket.next() => match came {
                    Some(Ok(message)) => {
                        heartbeat.heard(Instant::now());
                        if message.is_close() {
                            // The answer goes with the next read.
                            let _ = timeout(CLOSE_TIMEOUT, socket.next()).await;
                            return End::Gone;
                        }
                        let is_said = message.is_text() || message.is_binary();
                        is_said.then(|| Message::text(frames::answer(message.to_str().ok())))
                    }
                    Some(Err(_)) | None => return End::Gone,
                },
                heard = hear(&mut listener) => match heard {
                    Heard::Silence => return End::Silence,
                    heard => self.worded(heard).map(Message::text),
                },
                () = sleep_until(wake) => None,
            };
        }
    }

    /// What was heard, in the words for this user; `None` when it is not for them.
    fn worded(&self, heard: Heard) -> Option<String> {
        let user = self.access.user();
        let is_admin = user.may(UserLevel::Admin);
        match heard {
            Heard::Missed(count) => Some(frames::missed(count)),
            Heard::Happening(it) if is_admin => Some(it.admin.clone()),
            Heard::Happening(it) => {
                let (channel, text) = it.standard.as_ref()?;
                may_see(user, &self.app.models.channels.load(), *channel).then(|| text.clone())
            }
            Heard::Statistics(it) if is_admin => Some(it.for_admins()),
            Heard::Statistics(it) => Some(it.for_user(user, &self.app.models.channels.load())),
            Heard::Silence => None,
        }
    }
}

async fn hear(listener: &mut Option<Listener>) -> Heard {
    match listener {
        Some(listener) => listener.next().await,
        None => std::future::pending().await,
    }
}

/// What ends a session from this side.
async fn ended(access: &mut Access, connection: &Connection, stay: &Stay) -> End {
    tokio::select! {
        biased;
        () = connection.cancel.cancelled() => End::Cut,
        () = stay.draining() => End::Stopping,
        lost = access.lost() => End::Lost(lost),
    }
}
