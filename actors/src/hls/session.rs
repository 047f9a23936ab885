//! One session: the requests of one player.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use domain::output_format::StreamFormat;
use media::meter::Connection;
use media::segment::SegmentWindow;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{HlsRequest, LIFETIME_TARGET_DURATIONS, LIFETIME_TARGET_DURATIONS_ANONYMOUS};
use crate::channel::SegmentViewing;
use crate::client::SegmentMeter;
use crate::plans::Target;
use crate::registry::Registry;
use crate::viewer::Viewer;

/// Time for a player to read the end of a channel that has ended.
pub(super) const FAREWELL_MAX: Duration = Duration::from_secs(60);
/// Maximum number of requests of a session at the same time. Players have at most six connections to a host.
const USES_MAX: usize = 32;
/// The target duration of a window whose first segment is not complete, which has no sessions.
const TARGET_DEFAULT: Duration = Duration::from_secs(10);
/// Number of random bytes of a token.
const TOKEN_BYTES: usize = 16;

/// Why a session has ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionEnd {
    /// The player sent no request for too long.
    #[error("the player sent no request for too long")]
    Expired,
    /// Somebody or a rule ended it.
    #[error("{0}")]
    Ended(&'static str),
    /// The channel has ended.
    #[error("the channel has ended: {0}")]
    Channel(String),
    /// The gateway is stopping.
    #[error("the gateway is stopping")]
    Stopping,
}

impl SessionEnd {
    /// The reason of a client that was disconnected by somebody.
    pub(super) const KICKED: &'static str = "this player was disconnected";
}

/// The requests of one player for one stream. It exists until its end, and requests in progress keep it in memory.
pub struct HlsSession {
    /// Identifies the session. It gives access to the media, so it is not printed.
    token: String,
    target: Target,
    viewer: Viewer,
    format: StreamFormat,
    window: Arc<SegmentWindow>,
    /// Does not change in a window.
    target_duration: Duration,
    meter: Arc<SegmentMeter>,
    registry: Arc<Registry>,
    /// Stands for the player: cancelled when the client has to end.
    connection: Arc<Connection>,
    state: Mutex<State>,
}

struct State {
    /// `None` after the client has left.
    viewing: Option<Box<SegmentViewing>>,
    last_request: Instant,
    /// The connections of the requests in progress, at most [`USES_MAX`].
    uses: BTreeMap<u64, Arc<Connection>>,
    last_use: u64,
    /// Requests that wait for media that does not exist yet.
    n_waiting: usize,
    end: Option<SessionEnd>,
}

/// A request of a session in progress.
pub struct SessionUse {
    session: Arc<HlsSession>,
    number: u64,
}

impl HlsSession {
    pub(super) fn new(
        viewing: Box<SegmentViewing>,
        connection: Arc<Connection>,
        request: &HlsRequest,
    ) -> Self {
        Self {
            token: random_token(),
            target: request.target,
            viewer: request.viewer.clone(),
            format: request.format,
            window: Arc::clone(viewing.window()),
            target_duration: viewing.window().description().target_duration.unwrap_or(TARGET_DEFAULT),
            meter: Arc::clone(viewing.meter()),
            registry: Arc::clone(viewing.registry()),
            connection,
            state: Mutex::new(State {
                viewing: Some(viewing),
                last_request: Instant::now(),
                uses: BTreeMap::new(),
                last_use: 0,
                n_waiting: 0,
                end: None,
            }),
        }
    }

    /// Returns the text in the addresses of its playlists.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Returns the target that the player watches.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Returns the viewer who opened it.
    pub fn viewer(&self) -> &Viewer {
        &self.viewer
    }

    /// Records who asked for the playlist of the channel and got this session.
    pub(super) fn requested_by(&self, viewer: &Viewer) {
        // Without cookies, two browsers of the same version behind one address share the session.
        if self.viewer != *viewer && !self.viewer.is_same_device(viewer) {
            self.meter.set_shared();
        }
        self.sent_cookie(viewer.identity.cookie.filter(|_| viewer.identity.keeps_cookies));
    }

    /// Records the cookie of a request.
    pub fn sent_cookie(&self, cookie: Option<u64>) {
        if cookie.is_some() && cookie == self.viewer.identity.cookie {
            self.meter.set_keeps_cookies();
        }
    }

    /// Returns the form of the stream that the player asked for.
    pub fn format(&self) -> StreamFormat {
        self.format
    }

    /// Returns whether the channel has ended, so that no media follows.
    pub fn is_over(&self) -> bool {
        self.window.ended().is_some()
    }

    /// Returns the announced maximum duration of a segment.
    pub fn target_duration(&self) -> Duration {
        self.target_duration
    }

    /// Returns the number of viewers of the same segments.
    pub fn n_viewers(&self) -> usize {
        self.state.lock().viewing.as_ref().map_or(0, |it| it.n_viewers())
    }

    /// Returns the segments.
    pub fn window(&self) -> &Arc<SegmentWindow> {
        &self.window
    }

    /// Records whether the player asked for parts of segments.
    pub fn set_low_latency(&self, is_low_latency: bool) {
        self.meter.set_low_latency(is_low_latency);
    }

    /// Begins a request on this connection, which is closed when the session has to end.
    ///
    /// # Errors
    /// The reason of the end, or `None` if the player has too many requests in progress.
    pub fn begin(self: &Arc<Self>, connection: &Arc<Connection>) -> Result<SessionUse, Option<SessionEnd>> {
        let mut state = self.state.lock();
        if state.end.is_some() {
            return Err(state.end.clone());
        }
        if state.viewing.is_some() && self.window.ended().is_some() {
            // The channel or the rendition is over; the keeper of the session takes note of it.
            self.connection.cancel.cancel();
        }
        if state.uses.len() >= USES_MAX {
            return Err(None);
        }
        state.last_request = Instant::now();
        state.last_use += 1;
        let number = state.last_use;
        state.uses.insert(number, Arc::clone(connection));
        Ok(SessionUse { session: Arc::clone(self), number })
    }

    /// Ends the session as for a viewer who may no longer watch.
    pub fn end_now(&self) {
        self.connection.cancel.cancel();
    }

    /// Returns why it has ended, if it has.
    pub fn end(&self) -> Option<SessionEnd> {
        self.state.lock().end.clone()
    }

    /// Records a request. Returns false if the session has ended, or is about to. While the last segments of a channel that
    /// is over can be read, it has not.
    pub(super) fn touch(&self) -> bool {
        let mut state = self.state.lock();
        state.last_request = Instant::now();
        state.end.is_none()
            && (!self.connection.cancel.is_cancelled() || state.viewing.is_none() || self.is_over())
    }

    /// Returns when it ends, unless there is another request.
    pub(super) fn expires_at(&self) -> Instant {
        let lifetime = self.target_duration
            * match self.viewer.user {
                Some(_) => LIFETIME_TARGET_DURATIONS,
                None => LIFETIME_TARGET_DURATIONS_ANONYMOUS,
            };
        let state = self.state.lock();
        // A request for media that does not exist yet takes at most this long.
        let from = if state.n_waiting > 0 { Instant::now() } else { state.last_request };
        from + lifetime
    }

    /// Waits until the client has to end.
    pub(super) async fn cancelled(&self) {
        self.connection.cancel.cancelled().await;
    }

    /// Returns why the client had to end.
    pub(super) fn why_cancelled(&self) -> SessionEnd {
        let why = self.state.lock().viewing.as_ref().and_then(|it| it.why_ended());
        match (why, self.window.ended()) {
            (Some(why), _) => SessionEnd::Ended(why),
            (None, Some(end)) => SessionEnd::Channel(end.to_string()),
            (None, None) => SessionEnd::Ended(SessionEnd::KICKED),
        }
    }

    /// Lets the client leave the channel, which frees its seat.
    pub(super) fn leave(&self, end: &SessionEnd) {
        let viewing = {
            let mut state = self.state.lock();
            if !matches!(end, SessionEnd::Channel(_)) {
                state.end = Some(end.clone());
            }
            state.viewing.take()
        };
        drop(viewing);
    }

    /// Ends the session, and its requests in progress.
    pub(super) fn close(&self, end: SessionEnd) {
        let uses = {
            let mut state = self.state.lock();
            state.end = Some(end);
            std::mem::take(&mut state.uses)
        };
        for connection in uses.into_values() {
            connection.cancel.cancel();
        }
    }
}

/// The token gives access.
impl fmt::Debug for HlsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HlsSession")
            .field("target", &self.target)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

impl SessionUse {
    /// Returns the session.
    pub fn session(&self) -> &Arc<HlsSession> {
        &self.session
    }

    /// Counts bytes that were handed to the connection. They show that the player is there.
    pub fn sent(&self, n: usize) {
        self.session.meter.sent(n);
        self.session.registry.segment_bytes_out.add(n as u64);
        self.session.state.lock().last_request = Instant::now();
    }

    /// Waits for media, at most as long as the caller limits it. The session does not end meanwhile because of the silence
    /// of its player.
    pub async fn waiting<T>(&self, media: impl Future<Output = T>) -> T {
        struct Waiting<'a>(&'a HlsSession);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                let mut state = self.0.state.lock();
                state.n_waiting -= 1;
                state.last_request = Instant::now();
            }
        }
        self.session.state.lock().n_waiting += 1;
        let _waiting = Waiting(&self.session);
        media.await
    }
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        let mut state = self.session.state.lock();
        state.uses.remove(&self.number);
        state.last_request = Instant::now();
    }
}

fn random_token() -> String {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).expect("the operating system provides random bytes");
    HEXLOWER.encode(&bytes)
}
