//! The sessions of viewers with HLS: one client of a live channel for all requests of a player.
//!
//! A player of HLS has no connection that lasts, so a *session* stands for it. The first request for a playlist opens it:
//! a client of the channel, with the seat of its user. A random token in the addresses of the playlist identifies it, and
//! nothing else does. It lives until three target durations after its last request (two without a user), or until its client
//! has to end. Requests also show whether its player keeps cookies, which tells viewers without a user apart.
//!
//! ```text
//!   request of a playlist ─► key known? ─┬─ yes ─► its session
//!                                        └─ no ──► switchboard ─► first segment ─► session, with a token
//!   request with a token ──► session ─► window
//!   keeper of the session: last request too old, or client cancelled ─► session ends, client leaves, seat is free
//! ```

mod session;
mod table;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use domain::clients::{plays_radio_in_ts, plays_sound};
use domain::ids::OutputProfileId;
use domain::output_format::{self, StreamFormat};
use domain::output_profile::Rendition;
use domain::plan::Redirection;
use domain::settings::PROGRAM_START_TIMEOUT;
use media::meter::Connection;
use media::ring::EndReason;
use media::segment::{SegmentContainer, SegmentDescription, WindowError};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::info;

pub use self::session::{HlsSession, SessionEnd, SessionUse};
use self::table::{Opening, SessionTable};
use crate::ask::AskError;
use crate::channel::{SegmentViewing, WatchRefusal, WatchReply};
use crate::plans::Target;
use crate::seats::SeatRequest;
use crate::switchboard::{Switchboard, WatchRequest};
use crate::viewer::Viewer;

/// Maximum number of sessions. Each has a task and some hundred bytes; the media belongs to the channels.
const SESSIONS_MAX: usize = 16_384;
/// A session of a user ends this many target durations after its last request.
const LIFETIME_TARGET_DURATIONS: u32 = 3;
/// The same without a user. The next channel of the player may not be recognised as its own, and waits for the connection.
const LIFETIME_TARGET_DURATIONS_ANONYMOUS: u32 = 2;

const TS: output_format::SegmentContainer = output_format::SegmentContainer::Ts;

/// A request for the playlist of a channel.
#[derive(Clone, Debug)]
pub struct HlsRequest {
    /// The channel to watch.
    pub target: Target,
    /// The viewer.
    pub viewer: Viewer,
    /// The peer of the connection.
    pub peer: SocketAddr,
    /// The seat to take; `None` without a login.
    pub seat: Option<SeatRequest>,
    /// The rendition that the viewer gets; `None` is the stream as it is.
    pub rendition: Option<Arc<Rendition>>,
    /// The rendition that the viewer gets instead if it would hear nothing otherwise.
    pub other_sound: Option<Arc<Rendition>>,
    /// The form of the stream: one of the formats of HLS.
    pub format: StreamFormat,
    /// Whether the player may get segments in another container: it has not asked for this one.
    pub may_change_container: bool,
    /// Maximum wait for the first segment.
    pub start_timeout: Duration,
    /// Maximum number of sessions from one address; 0 is unlimited.
    pub per_address_max: usize,
}

/// Why a session does not begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HlsRefusal {
    /// The viewer cannot watch.
    #[error("{0}")]
    Watch(WatchRefusal),
    /// The player is sent to the original address.
    #[error("the channel plays at its provider")]
    Redirect(Redirection),
    /// The channel ended before the first segment.
    #[error("{0}")]
    NoMedia(EndReason),
    /// There was no complete segment in time.
    #[error("no segment was complete in time")]
    TooLate,
    /// The client had to end.
    #[error("{0}")]
    Ended(SessionEnd),
    /// Too many sessions.
    #[error("too many players of HLS")]
    Busy,
    /// The live channel did not answer.
    #[error("{0}")]
    NoAnswer(AskError),
}

/// Requests with the same key belong to one session: the same player asks for the same stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SessionKey {
    target: Target,
    user: Option<String>,
    address: IpAddr,
    agent: String,
    format: StreamFormat,
    profile: Option<OutputProfileId>,
}

/// The handle for sessions. Clones share them.
#[derive(Clone)]
pub struct HlsSessions {
    shared: Arc<Shared>,
}

struct Shared {
    switchboard: Switchboard,
    table: Mutex<SessionTable>,
    keepers: TaskTracker,
    stop: CancellationToken,
}

impl HlsSessions {
    /// Creates the handle. Sessions end when `stop` is cancelled.
    pub(crate) fn new(switchboard: Switchboard, stop: CancellationToken) -> Self {
        let (table, keepers) = Default::default();
        Self { shared: Arc::new(Shared { switchboard, table, keepers, stop }) }
    }

    /// Returns the session of a player, and opens it if it has none. The first segment is complete then.
    ///
    /// # Errors
    /// The reason why the player cannot watch.
    pub async fn open(&self, request: HlsRequest) -> Result<Arc<HlsSession>, HlsRefusal> {
        let key = SessionKey {
            target: request.target,
            user: request.viewer.user.clone(),
            address: request.viewer.address,
            agent: request.viewer.agent.clone(),
            format: request.format,
            profile: request.rendition.as_ref().map(|it| it.profile),
        };
        loop {
            let place = self.place(&key, request.per_address_max)?;
            let is_old = place.opening.initialized();
            // Of several requests of a player, the first one opens the session and the others wait for it.
            let session = place.opening.get_or_try_init(|| self.begin(&request, &key)).await?;
            if !(is_old && session.is_over()) && session.touch() {
                session.requested_by(&request.viewer);
                return Ok(Arc::clone(session));
            }
            // It has just ended, or its channel has.
            self.shared.table.lock().forget(&key, session);
        }
    }

    /// Returns the session with this token.
    ///
    /// # Errors
    /// Why it has ended, or `None` if there was none or it ended long ago.
    pub fn find(&self, token: &str) -> Result<Arc<HlsSession>, Option<SessionEnd>> {
        let table = self.shared.table.lock();
        match table.find(token) {
            Some(session) if session.touch() => Ok(Arc::clone(session)),
            Some(session) => Err(Some(session.end().unwrap_or_else(|| session.why_cancelled()))),
            None => Err(table.why_ended(token)),
        }
    }

    /// Returns the number of sessions.
    pub fn len(&self) -> usize {
        self.shared.table.lock().len()
    }

    /// Returns whether there are no sessions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn place<'a>(&'a self, key: &'a SessionKey, per_address_max: usize) -> Result<Place<'a>, HlsRefusal> {
        let opening = self.shared.table.lock().opening(key, SESSIONS_MAX, per_address_max);
        let opening = opening.ok_or(HlsRefusal::Busy)?;
        Ok(Place { table: &self.shared.table, key, opening })
    }

    async fn begin(&self, request: &HlsRequest, key: &SessionKey) -> Result<Arc<HlsSession>, HlsRefusal> {
        // Stands for the player: to end the client, this is cancelled.
        let mut connection = Arc::new(Connection::new(0, request.peer));
        let mut viewing = self.watch(request, &connection, request.rendition.clone()).await?;
        first_segment(&viewing, &connection, request.start_timeout).await?;
        let mut request = request;
        let in_ts = HlsRequest { format: StreamFormat::Hls(TS), ..request.clone() };
        if gets_radio_in_ts(request, &viewing) {
            // Joined before the other one leaves, so that the channel and the seat stay. Its connection must live on.
            let other = Arc::new(Connection::new(0, request.peer));
            let changed = self.watch(&in_ts, &other, request.rendition.clone()).await?;
            first_segment(&changed, &other, request.start_timeout).await?;
            (viewing, connection, request) = (changed, other, &in_ts);
        }
        if let Some(sound) = &request.other_sound
            && lacks_sound(
                viewing.window().container(),
                &viewing.window().description(),
                &request.viewer.agent,
            )
        {
            info!(
                channel.target = %request.target, client.agent = request.viewer.agent,
                "the sound is converted, because the player does not play it"
            );
            // Joined before the other one leaves, so that the channel and the seat stay. Its connection must live on.
            let other = Arc::new(Connection::new(0, request.peer));
            let converted = self.watch(request, &other, Some(Arc::clone(sound))).await?;
            first_segment(&converted, &other, request.start_timeout + PROGRAM_START_TIMEOUT).await?;
            (viewing, connection) = (converted, other);
        }
        let session = Arc::new(HlsSession::new(viewing, connection, request));
        self.shared.table.lock().insert(Arc::clone(&session));
        let (shared, key) = (Arc::clone(&self.shared), key.clone());
        let kept = Arc::clone(&session);
        self.shared.keepers.spawn(async move { shared.keep(key, kept).await });
        Ok(session)
    }

    async fn watch(
        &self,
        request: &HlsRequest,
        connection: &Arc<Connection>,
        rendition: Option<Arc<Rendition>>,
    ) -> Result<Box<SegmentViewing>, HlsRefusal> {
        let watch = WatchRequest {
            target: request.target,
            viewer: request.viewer.clone(),
            connection: Arc::clone(connection),
            seat: request.seat,
            rendition,
            format: request.format,
        };
        match self.shared.switchboard.watch(watch).await {
            Ok(WatchReply::Segments { viewing, .. }) => Ok(viewing),
            Ok(WatchReply::Redirect(to)) => Err(HlsRefusal::Redirect(to)),
            Ok(WatchReply::Refused(refusal)) => Err(HlsRefusal::Watch(refusal)),
            // Only if the format is not one of HLS.
            Ok(WatchReply::Tail { .. }) => Err(HlsRefusal::Busy),
            Err(error) => Err(HlsRefusal::NoAnswer(error)),
        }
    }
}

/// Waits until the first segment is complete. A player may wait longer for the first key frame: with the playlist of the
/// session.
async fn first_segment(
    viewing: &SegmentViewing,
    connection: &Connection,
    start_timeout: Duration,
) -> Result<(), HlsRefusal> {
    let first = tokio::select! {
        first = timeout(start_timeout, viewing.window().ready()) => first,
        () = connection.cancel.cancelled() => {
            let why = viewing.why_ended().unwrap_or(SessionEnd::KICKED);
            return Err(HlsRefusal::Ended(SessionEnd::Ended(why)));
        }
    };
    match first {
        Ok(Ok(())) => Ok(()),
        Ok(Err(WindowError::Ended(end))) => Err(HlsRefusal::NoMedia(end)),
        Ok(Err(_)) | Err(_) if viewing.window().awaits_key_frame() => Ok(()),
        Ok(Err(_)) | Err(_) => Err(HlsRefusal::TooLate),
    }
}

/// Returns whether a player gets a channel without a picture in transport streams although it plays fMP4.
fn gets_radio_in_ts(request: &HlsRequest, viewing: &SegmentViewing) -> bool {
    let window = viewing.window();
    request.may_change_container
        && window.container() == SegmentContainer::Fmp4
        && is_radio(&window.description())
        && plays_radio_in_ts(&request.viewer.agent)
}

/// Returns whether a channel has sound and nothing else.
fn is_radio(description: &SegmentDescription) -> bool {
    let mut names = description.tracks.iter().map(|it| it.name);
    let has_picture = description.tracks.iter().any(|it| it.is_video);
    let has_sound = names.any(is_sound) || description.left_out.iter().any(|it| is_sound(it.name));
    // A picture that fMP4 cannot carry is left out.
    has_sound && !has_picture && description.left_out.iter().all(|it| is_sound(it.name))
}

/// Returns whether the program with this user agent would hear nothing: it plays none of the sounds in fMP4, or fMP4 cannot
/// carry them. Transport streams are for programs that play what television sends.
pub fn lacks_sound(container: SegmentContainer, description: &SegmentDescription, agent: &str) -> bool {
    let mut sounds = description.tracks.iter().filter(|it| !it.is_video).peekable();
    let has_sound = sounds.peek().is_some() || description.left_out.iter().any(|it| is_sound(it.name));
    let is_played = |codec: Option<&str>| codec.is_none_or(|it| plays_sound(agent, it));
    container == SegmentContainer::Fmp4 && has_sound && !sounds.any(|it| is_played(it.codec.as_deref()))
}

fn is_sound(name: &str) -> bool {
    ["AAC", "AC-3", "E-AC-3", "AC-4", "MPEG audio", "Opus", "DTS"].iter().any(|it| name.starts_with(it))
}

/// The place of a session in the table while a request waits for the session. Removes the place if it stays empty.
struct Place<'a> {
    table: &'a Mutex<SessionTable>,
    key: &'a SessionKey,
    opening: Opening,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.table.lock().give_up(self.key, &self.opening);
    }
}

impl Shared {
    /// Ends a session when its player has gone, or when its client has to end.
    async fn keep(&self, key: SessionKey, session: Arc<HlsSession>) {
        let end = loop {
            tokio::select! {
                () = session.cancelled() => break session.why_cancelled(),
                () = tokio::time::sleep_until(session.expires_at()) => {
                    if session.expires_at() <= Instant::now() {
                        break SessionEnd::Expired;
                    }
                }
                () = self.stop.cancelled() => break SessionEnd::Stopping,
            }
        };
        self.table.lock().forget(&key, &session);
        session.leave(&end);
        if let SessionEnd::Channel(_) = end {
            // The player gets the last segments and the end of the playlist. It has neither client nor seat any more.
            let until = Instant::now() + session::FAREWELL_MAX;
            while Instant::now() < session.expires_at().min(until) && !self.stop.is_cancelled() {
                tokio::select! {
                    () = tokio::time::sleep_until(session.expires_at().min(until)) => {}
                    () = self.stop.cancelled() => {}
                }
            }
        }
        session.close(end.clone());
        self.table.lock().remove(&session, end);
    }
}
