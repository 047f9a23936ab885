//! Films and episodes while they are watched.
//!
//! A request for bytes of a film joins the *session* of its viewer, so that all requests of one player share one slot and
//! one connection. [`domain::vod_session`] decides what the connection reads; the parts here carry that out:
//!
//! ```text
//!  request ─► seat ─► session (table) ─► reader ─► answer, with a body that reads
//!                        └ driver ─► source: slot, connection ─► provider
//!                              └───► cache: beginning and end of files
//! ```

mod cache;
mod disk;
mod part_clock;
mod past;
mod session;
mod source;
mod stream;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use domain::byte_range::{ByteRanges, SelectedBytes, if_range_holds};
use domain::event::{Event, EventBody, VodRef};
use domain::ids::{AccountId, ProfileId};
use domain::limits::SeatRules;
use domain::plan::{Redirection, TitleCandidate};
use domain::vod_session::{Failure, Read};
use media::error::{Cause, UpstreamError};
use media::meter::Connection;
use media::spawn_blocking;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};
use uuid::Uuid;

use self::cache::FileCache;
pub use self::cache::FilmCacheSettings;
pub use self::part_clock::PartClock;
pub(crate) use self::past::{PastEvent, PastReader};
use self::session::{BodyReader, OpenError, SessionTable, VodSession};
use self::source::{FileSource, probe};
use self::stream::StreamReader;
use crate::channel::LiveEnv;
use crate::clock::now_ms;
use crate::events::account_full;
use crate::plans::Target;
use crate::seats::{Seat, SeatRequest, SeatTable};
use crate::slots::FullPool;
use crate::viewer::Viewer;

/// A connection without data for this long counts as lost. Longer than for live streams: disks of providers sleep.
const STALL_TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of a film after which the tasks of other viewers run. Players that read in bursts would otherwise delay live
/// channels.
const TURN_BYTES_MAX: usize = 128 << 10;
/// Maximum number of sessions. Each has at most half a megabyte of film and one connection.
const SESSIONS_MAX: usize = 4_096;
/// How often a request selects its bytes again because the provider has another file than a moment ago.
const SELECTIONS_MAX: usize = 3;
/// Maximum number of files of one title that are looked for on disk.
const RECALLED_MAX: usize = 8;
/// Maximum wait for connections to close when the system stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// A film or an episode, as statistics and events show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VodTitle {
    pub target: Target,
    pub name: String,
}

/// A request for a film or an episode.
#[derive(Debug, Clone)]
pub struct VodRequest {
    pub title: VodTitle,
    /// The files that can be played, best first.
    pub candidates: Arc<[TitleCandidate]>,
    pub viewer: Viewer,
    /// The connection of the client; cancelled to end the answer.
    pub connection: Arc<Connection>,
    /// The seat to take; `None` without a login.
    pub seat: Option<SeatRequest>,
    /// Distinguishes players with the same address and program, if they send it.
    pub session: Option<String>,
    pub ranges: Option<ByteRanges>,
    /// The condition under which the ranges count.
    pub if_range: Option<String>,
}

/// Identifies and describes a file in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VodFacts {
    pub length: u64,
    /// Strong entity tag, with its quotes.
    pub tag: String,
    pub content_type: &'static str,
}

/// The answer to a request.
#[derive(Debug)]
pub enum VodAnswer {
    /// The whole file.
    Whole(VodFacts, VodBody),
    Part(VodFacts, Range<u64>, VodBody),
    /// A transport stream of unknown length without ranges, because the provider has a playlist of segments.
    Stream(VodBody),
    /// No requested byte exists.
    Unsatisfiable(VodFacts),
    /// The provider serves the viewer itself.
    Redirect(Redirection),
}

/// The answer to a question about a file.
#[derive(Debug, Clone, PartialEq)]
pub enum VodHead {
    File(VodFacts),
    /// As in [`VodAnswer::Stream`].
    Stream,
    Redirect(Redirection),
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VodRefusal {
    /// No active account offers the title.
    #[error("no active account offers this title")]
    NoVersions,
    /// No slot came free in time.
    #[error("{0}")]
    Full(FullPool),
    /// The user watches as much as allowed.
    #[error("all {limit} streams of the user are in use")]
    Seats { limit: u32 },
    /// No account could deliver the file.
    #[error("failed to read the file: {0}")]
    Upstream(UpstreamError),
    /// The provider keeps changing the file.
    #[error("the provider keeps changing the file")]
    Changing,
    /// Somebody ended the session.
    #[error("the session was ended")]
    Ended,
    /// Too many sessions.
    #[error("too many films are being watched")]
    Busy,
    /// No answer in time.
    #[error("the gateway did not answer in time")]
    NoAnswer,
    /// The gateway is stopping.
    #[error("the gateway is stopping")]
    Stopping,
}

/// Requests with the same key belong to one session: the same player asks for the same title.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SessionKey {
    user: Option<String>,
    address: IpAddr,
    agent: String,
    session: Option<String>,
    target: Target,
}

/// The account profile that a file is read with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VodProfile {
    pub account: AccountId,
    pub account_name: String,
    pub profile: ProfileId,
    /// Maximum number of simultaneous connections; 0 is unlimited.
    pub max_streams: u32,
}

impl From<&TitleCandidate> for VodProfile {
    fn from(it: &TitleCandidate) -> Self {
        let pool = &it.candidate.pool;
        let (account, account_name) = (pool.account, pool.account_name.clone());
        Self { account, account_name, profile: pool.profile, max_streams: pool.max_streams }
    }
}

/// A session at one moment. Nodes of a cluster send it to each other as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VodSessionInfo {
    /// Identifies the session.
    pub id: u64,
    /// Name of its node, if those of several nodes are shown together.
    #[serde(default, skip)]
    pub node: Option<Arc<str>>,
    pub title: VodTitle,
    pub viewer: Viewer,
    /// The name that the player gave it.
    pub name: Option<String>,
    /// Milliseconds since 1970.
    pub started_at: i64,
    pub age: Duration,
    /// That of the file that was opened last.
    pub profile: Option<VodProfile>,
    /// The start of the part of the past of a channel that was opened last, in seconds since 1970.
    pub programme_start: Option<i64>,
    /// Requests in progress.
    pub n_requests: usize,
    /// Connections to the provider since the start.
    pub n_connections: u64,
    pub bytes_read: u64,
    pub bytes_sent: u64,
    /// The next byte of the newest request.
    pub position: u64,
    pub length: Option<u64>,
    pub has_slot: bool,
    /// The position that the player reported since the last seek.
    pub reported: Option<ReportedPosition>,
}

/// Where a player says that its viewer is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportedPosition {
    /// Seconds since the start of what it plays.
    pub seconds: f64,
    pub is_paused: bool,
    /// When it was reported, in milliseconds since 1970.
    pub at: i64,
}

/// The handle for films, shared between clones.
#[derive(Clone)]
pub struct Vod {
    shared: Arc<Shared>,
}

struct Shared {
    env: Arc<LiveEnv>,
    counter: Arc<AtomicU64>,
    seats: Arc<SeatTable>,
    cache: Arc<FileCache>,
    sessions: Mutex<SessionTable>,
    drivers: TaskTracker,
    stop: CancellationToken,
}

impl Vod {
    /// Creates the handle. Sessions end when `stop` is cancelled.
    pub(crate) fn new(
        env: Arc<LiveEnv>,
        counter: Arc<AtomicU64>,
        seats: Arc<SeatTable>,
        stop: CancellationToken,
        cache: FilmCacheSettings,
    ) -> Self {
        let cache = Arc::new(FileCache::new(cache));
        let (sessions, drivers) = Default::default();
        Self { shared: Arc::new(Shared { env, counter, seats, cache, sessions, drivers, stop }) }
    }

    /// Answers a request for bytes, once the first one is at hand.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub async fn get(&self, request: VodRequest) -> Result<VodAnswer, VodRefusal> {
        let name = request.title.name.clone();
        let answer = self.answer(request).await;
        if let Err(VodRefusal::Full(pool)) = &answer
            && let Some(body) = account_full(pool, &name)
        {
            self.shared.env.events.emit_paced(pool.account.clone(), Event { at: now_ms(), body });
        }
        answer
    }

    async fn answer(&self, request: VodRequest) -> Result<VodAnswer, VodRefusal> {
        let VodRequest { title, candidates, viewer, connection, seat, session, ranges, if_range } = request;
        if let Some(to) = redirect(&candidates)? {
            return Ok(VodAnswer::Redirect(to));
        }
        let seat = match seat {
            Some(seat) => Some(self.take_seat(seat, &viewer, title.target, &connection).await?),
            None => None,
        };
        let key = SessionKey {
            user: viewer.user.clone(),
            address: viewer.address,
            // A player that says who it is may use several programs.
            agent: if session.is_some() { String::new() } else { viewer.agent.clone() },
            session,
            target: title.target,
        };
        self.shared.recall(&candidates).await;
        let joined = self.join(key, title, viewer, candidates)?;
        let start_timeout = self.shared.env.settings().start_timeout;
        let opening = async {
            let mut likely = ranges.as_ref().map_or(0, ByteRanges::likely_start);
            for _ in 0..SELECTIONS_MAX {
                let select = |facts: &VodFacts| select(facts, ranges.as_ref(), if_range.as_deref());
                match joined.open(likely, &connection, select).await {
                    Ok(opened) => return Ok(Opened::File(opened)),
                    Err(OpenError::Stream) => {
                        return joined.open_stream(&connection).await.map(Opened::Stream);
                    }
                    Err(OpenError::Changed) => {}
                    // The file is shorter than the first requested byte.
                    Err(OpenError::Refused(VodRefusal::Upstream(error)))
                        if likely > 0 && *error.cause() == Cause::Status(416) =>
                    {
                        likely = 0;
                    }
                    Err(OpenError::Refused(why)) => return Err(why),
                }
            }
            Err(VodRefusal::Changing)
        };
        let opened = timeout(start_timeout, opening).await;
        let body = |reader| {
            self.shared.begun(joined.session());
            VodBody { reader: Some(reader), in_turn: 0, shared: self.shared.clone(), _seat: seat }
        };
        Ok(match opened.unwrap_or(Err(VodRefusal::NoAnswer))? {
            Opened::Stream(reader) => VodAnswer::Stream(body(AnyReader::Stream(reader))),
            Opened::File((_, facts, None)) => VodAnswer::Unsatisfiable(facts),
            Opened::File((Some(part), facts, Some(reader))) => {
                VodAnswer::Part(facts, part, body(AnyReader::File(reader)))
            }
            Opened::File((None, facts, Some(reader))) => {
                VodAnswer::Whole(facts, body(AnyReader::File(reader)))
            }
        })
    }

    /// Answers a question about a file: from what is remembered, or by a request for one byte on a free slot.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub async fn head(&self, request: VodRequest) -> Result<VodHead, VodRefusal> {
        let VodRequest { title, candidates, .. } = request;
        if let Some(to) = redirect(&candidates)? {
            return Ok(VodHead::Redirect(to));
        }
        let shared = &self.shared;
        shared.recall(&candidates).await;
        let remembered = |it: &TitleCandidate| Some((it.clone(), shared.cache.version(it.file)?));
        let (candidate, version) = match candidates.iter().find_map(remembered) {
            Some(remembered) => remembered,
            None => {
                let source = FileSource::new(shared.env.clone(), shared.counter.clone(), title.target);
                let probing = timeout(shared.env.settings().start_timeout, probe(source, &candidates));
                let (candidate, version) = probing.await.unwrap_or(Err(VodRefusal::NoAnswer))?;
                let Some(version) = version else { return Ok(VodHead::Stream) };
                shared.cache.remember(&version);
                (candidate, version)
            }
        };
        Ok(VodHead::File(VodFacts::remembered(&shared.cache, version, &candidate.extension)))
    }

    /// Returns the sessions of films and episodes, in the order in which they started.
    pub fn sessions(&self) -> Vec<VodSessionInfo> {
        let mut infos = self.all_sessions();
        infos.retain(|it| !matches!(it.title.target, Target::Archive(_)));
        infos
    }

    /// Returns all sessions, those with the past of a channel included, in the order in which they started.
    pub fn all_sessions(&self) -> Vec<VodSessionInfo> {
        let sessions: Vec<_> = self.shared.sessions.lock().values().cloned().collect();
        let mut infos: Vec<_> = sessions.iter().map(info).collect();
        infos.sort_by_key(|it| it.id);
        infos
    }

    /// Ends a session: its answers end, and its slot is returned. Returns `None` if it does not exist.
    pub fn stop_session(&self, id: u64) -> Option<VodSessionInfo> {
        let session = self.shared.sessions.lock().values().find(|it| it.number == id).cloned()?;
        let info = info(&session);
        session.end();
        Some(info)
    }

    /// Notes where a player says that its viewer is. Returns `None` if the session does not exist.
    pub fn report_position(&self, id: u64, position: ReportedPosition) -> Option<()> {
        let session = self.shared.sessions.lock().values().find(|it| it.number == id).cloned()?;
        session.state.lock().reported = Some(position);
        Some(())
    }

    /// Returns the number of sessions that have a request or a slot.
    pub fn n_sessions(&self) -> usize {
        let sessions: Vec<_> = self.shared.sessions.lock().values().cloned().collect();
        let readings = sessions.iter().map(|it| it.reading());
        readings.filter(|it| it.has_slot || !it.connections.is_empty()).count()
    }

    /// Returns the number of bytes that are kept of the beginnings and ends of files.
    pub fn cached_bytes(&self) -> usize {
        self.shared.cache.n_bytes()
    }

    /// Waits until every connection is closed, after the sessions were stopped.
    pub(crate) async fn ended(&self) {
        self.shared.drivers.close();
        // A driver that does not end in time ends with the runtime.
        let _ = timeout(STOP_TIMEOUT, self.shared.drivers.wait()).await;
    }

    /// Takes a seat for a viewer who reads a file of the gateway. It is returned when it is dropped.
    ///
    /// # Errors
    /// The user is at the limit.
    pub async fn seat(
        &self,
        request: SeatRequest,
        viewer: &Viewer,
        target: Target,
        connection: &Arc<Connection>,
    ) -> Result<impl Send + Sync + 'static + use<>, VodRefusal> {
        self.take_seat(request, viewer, target, connection).await
    }

    async fn take_seat(
        &self,
        request: SeatRequest,
        viewer: &Viewer,
        target: Target,
        connection: &Arc<Connection>,
    ) -> Result<Seat, VodRefusal> {
        let settings = self.shared.env.settings();
        let rules = SeatRules { at_limit: settings.at_limit, user_limits: settings.user_limits };
        let taken = self.shared.seats.take_soon(request, viewer, target, connection, rules).await;
        taken.map_err(|taken| {
            self.shared.env.registry.refused_seats.add_one();
            info!(vod.target = %target, user.id = %request.user, limit = request.limit, "no free seat: {taken}");
            VodRefusal::Seats { limit: request.limit }
        })
    }

    /// Joins the session of a viewer, and starts it if there is none.
    fn join(
        &self,
        key: SessionKey,
        title: VodTitle,
        viewer: Viewer,
        candidates: Arc<[TitleCandidate]>,
    ) -> Result<session::Joined, VodRefusal> {
        let shared = &self.shared;
        if shared.stop.is_cancelled() {
            return Err(VodRefusal::Stopping);
        }
        let mut sessions = shared.sessions.lock();
        if let Some(joined) = sessions.get(&key).and_then(|it| it.join(candidates.clone())) {
            return Ok(joined);
        }
        if sessions.len() >= SESSIONS_MAX {
            return Err(VodRefusal::Busy);
        }
        let number = shared.counter.fetch_add(1, Ordering::Relaxed) + 1;
        let about = (number, key.clone(), title, viewer);
        let session = Arc::new(VodSession::new(about, shared.env.clone(), shared.cache.clone(), now_ms()));
        sessions.insert(key, session.clone());
        let joined = session.join(candidates).ok_or(VodRefusal::Stopping);
        drop(sessions);
        self.start(session);
        joined
    }

    fn start(&self, session: Arc<VodSession>) {
        let shared = self.shared.clone();
        let source = FileSource::new(shared.env.clone(), shared.counter.clone(), session.title.target);
        let (packets, stop) = (shared.env.packets.clone(), shared.stop.clone());
        let running = async move {
            // Forgotten also after a panic.
            let guard = Forget { shared: shared.clone(), session: session.clone() };
            let forget = |it: &VodSession| {
                let mut sessions = shared.sessions.lock();
                let is_over = it.try_end();
                if is_over {
                    sessions.remove(&it.key);
                }
                is_over
            };
            session.drive(source, stop, forget).await;
            drop(guard);
        };
        self.shared.drivers.spawn_on(running, &packets);
    }
}

impl Shared {
    /// Reads what the disk has of files of which the memory has nothing.
    async fn recall(&self, candidates: &[TitleCandidate]) {
        let Some(disk) = self.cache.disk() else { return };
        let mut files: Vec<Uuid> = candidates.iter().map(|it| it.file).collect();
        files.dedup();
        for file in files.into_iter().take(RECALLED_MAX).filter(|it| self.cache.lacks(*it)) {
            let disk = disk.clone();
            if let Ok(Some((version, parts))) = spawn_blocking(move || disk.load(file)).await {
                self.cache.restore(&version, parts);
            }
        }
    }

    /// Writes to the disk what was read of a file.
    fn save(&self, file: Uuid) {
        let Some(disk) = self.cache.disk().cloned() else { return };
        let Some((version, parts)) = self.cache.take_unsaved(file) else { return };
        let saving = move || {
            if let Err(error) = disk.save(&version, &parts) {
                warn!("failed to keep the beginning of a film on disk: {error}");
            }
        };
        let saved = async move {
            if let Err(error) = spawn_blocking(saving).await {
                warn!("failed to keep the beginning of a film on disk: {error}");
            }
        };
        self.drivers.spawn_on(saved, &self.env.packets);
    }

    /// Reports that a viewer watches, at the first answer of the session.
    fn begun(&self, session: &VodSession) {
        if !session.begin() {
            return;
        }
        info!(
            vod.session = session.number, vod.target = %session.title.target, client.address = %session.viewer.address,
            "\"{}\" is watched", session.title.name
        );
        self.env.registry.vod_sessions_started.add_one();
        if session.is_archive() {
            return;
        }
        let body = EventBody::VodStart { vod: event_ref(session) };
        self.env.events.emit(Event { at: session.started_at, body });
    }
}

/// Removes a session from the table when its driver ends.
struct Forget {
    shared: Arc<Shared>,
    session: Arc<VodSession>,
}

impl Drop for Forget {
    fn drop(&mut self) {
        let session = &self.session;
        {
            let mut sessions = self.shared.sessions.lock();
            if sessions.get(&session.key).is_some_and(|it| it.number == session.number) {
                sessions.remove(&session.key);
            }
        }
        session.end();
        if !session.has_begun() {
            return;
        }
        let reading = session.reading();
        if let Some(opened) = &reading.opened {
            self.shared.save(opened.file);
        }
        info!(
            vod.session = session.number, vod.target = %session.title.target, bytes = reading.bytes_sent,
            "nobody watches \"{}\" any more", session.title.name
        );
        if session.is_archive() {
            return;
        }
        self.shared.env.events.emit(Event {
            at: now_ms(),
            body: EventBody::VodStop {
                vod: event_ref(session),
                duration_seconds: session.started.elapsed().as_secs(),
                bytes_sent: reading.bytes_sent,
            },
        });
    }
}

fn event_ref(session: &VodSession) -> VodRef {
    VodRef {
        session: session.number,
        uuid: session.title.target.uuid(),
        is_episode: matches!(session.title.target, Target::Episode(_)),
        name: session.title.name.clone(),
        ip: session.viewer.address,
        user_agent: session.viewer.agent.clone(),
        user: session.viewer.user.clone(),
    }
}

fn info(session: &Arc<VodSession>) -> VodSessionInfo {
    let reading = session.reading();
    VodSessionInfo {
        id: session.number,
        node: None,
        title: session.title.clone(),
        viewer: session.viewer.clone(),
        name: session.key.session.clone(),
        started_at: session.started_at,
        age: session.started.elapsed(),
        programme_start: reading.opened.as_ref().and_then(|it| it.start),
        profile: reading.opened.as_ref().map(VodProfile::from),
        n_requests: reading.connections.len(),
        n_connections: reading.n_connections,
        bytes_read: reading.bytes_read,
        bytes_sent: reading.bytes_sent,
        position: reading.position,
        length: reading.length,
        has_slot: reading.has_slot,
        reported: reading.reported,
    }
}

/// Returns where viewers are redirected to, if they are.
fn redirect(candidates: &[TitleCandidate]) -> Result<Option<Redirection>, VodRefusal> {
    Ok(candidates.first().ok_or(VodRefusal::NoVersions)?.candidate.redirection())
}

/// Selects the part that a request asks for, and the bytes to read.
fn select(
    facts: &VodFacts,
    ranges: Option<&ByteRanges>,
    if_range: Option<&str>,
) -> (Option<Range<u64>>, Option<Range<u64>>) {
    let ranges = ranges.filter(|_| if_range.is_none_or(|it| if_range_holds(it, &facts.tag)));
    match ranges.map_or(SelectedBytes::Whole, |it| it.select(facts.length)) {
        SelectedBytes::Whole => (None, Some(0..facts.length)),
        SelectedBytes::Part(part) => (Some(part.clone()), Some(part)),
        SelectedBytes::Unsatisfiable => (None, None),
    }
}

/// An opened request.
enum Opened {
    /// The requested part, what the file is, and the reader of its bytes, if there are any.
    File((Option<Range<u64>>, VodFacts, Option<BodyReader>)),
    Stream(StreamReader),
}

/// The reader of the bytes of an answer.
enum AnyReader {
    File(BodyReader),
    Stream(StreamReader),
}

/// The bytes of an answer. Dropping it ends the request.
pub struct VodBody {
    /// `None` after the end.
    reader: Option<AnyReader>,
    /// Bytes since the last pause.
    in_turn: usize,
    shared: Arc<Shared>,
    _seat: Option<Seat>,
}

/// A body that ends early. The client then asks for the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the rest of the file is not available")]
pub struct VodInterrupted;

impl VodBody {
    /// Returns the next bytes; `None` at the end.
    pub fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, VodInterrupted>>> {
        if self.in_turn >= TURN_BYTES_MAX {
            self.in_turn = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let read = match &mut self.reader {
            None => return Poll::Ready(None),
            Some(AnyReader::File(reader)) => reader.poll_read(cx),
            Some(AnyReader::Stream(reader)) => reader.poll_read(cx),
        };
        if read.is_pending() {
            self.in_turn = 0;
        }
        Poll::Ready(match ready!(read) {
            Read::Piece(bytes) => {
                self.in_turn += bytes.len();
                self.shared.env.registry.vod_bytes_out.add(bytes.len() as u64);
                Some(Ok(bytes))
            }
            Read::End | Read::Wait => {
                self.reader = None;
                None
            }
            Read::Failed(Failure::Changed | Failure::Lost | Failure::Ended) => {
                self.reader = None;
                Some(Err(VodInterrupted))
            }
        })
    }
}

impl std::fmt::Debug for VodBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VodBody").field("is_open", &self.reader.is_some()).finish_non_exhaustive()
    }
}

impl VodSessionInfo {
    /// Returns the uuid of the film or the episode.
    pub fn uuid(&self) -> Uuid {
        self.title.target.uuid()
    }
}
