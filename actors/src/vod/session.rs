//! One viewer of one film: carries out what [`domain::vod_session`] decides.
//!
//! The state is behind a lock that is never held across a wait. The *driver* is the one task that opens, reads and closes
//! the connection; readers take bytes out of the state, and wake it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use domain::container;
use domain::plan::TitleCandidate;
use domain::settings::AtLimit;
use domain::vod_session::{Failure, FileSession, KnownBytes, PIECE_BYTES_MAX, Read, ReaderId, Step};
use media::error::{Cause, UpstreamError};
use media::meter::Connection;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};
use uuid::Uuid;

use super::cache::{FileCache, FileVersion, KnownFile};
use super::source::{COMPARED_BYTES, Expected, FileSource, OpenFailure, OpenedFile, SourceEvent};
use super::stream::StreamState;
use super::{ReportedPosition, STALL_TIMEOUT, SessionKey, TURN_BYTES_MAX, VodFacts, VodRefusal, VodTitle};
use crate::channel::LiveEnv;
use crate::plans::Target;
use crate::slots::{Asking, SlotMessage};
use crate::viewer::Viewer;

const _: () = assert!(media::source::FILE_PIECE_BYTES_MAX <= PIECE_BYTES_MAX);

/// Time without requests after which a session is over. Players that read a film in parts pause between them.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Time without a read after which the slot of a paused archive is returned.
pub(super) const ARCHIVE_PAUSE: Duration = Duration::from_secs(60);

/// One viewer of one film.
pub(super) struct VodSession {
    pub(super) number: u64,
    pub(super) key: SessionKey,
    pub(super) title: VodTitle,
    pub(super) viewer: Viewer,
    /// Milliseconds since 1970.
    pub(super) started_at: i64,
    pub(super) started: Instant,
    pub(super) env: Arc<LiveEnv>,
    cache: Arc<FileCache>,
    pub(super) state: Mutex<State>,
    /// Wakes the driver.
    pub(super) changed: Notify,
}

pub(super) struct State {
    pub(super) session: FileSession,
    known: KnownFile,
    pub(super) candidates: Arc<[TitleCandidate]>,
    /// The candidate that was opened last.
    pub(super) opened: Option<TitleCandidate>,
    /// The title as a stream, if it turned out to be a playlist of segments.
    pub(super) stream: StreamState,
    readers: BTreeMap<ReaderId, ReaderState>,
    /// Why the last connection could not be opened.
    refusal: Option<VodRefusal>,
    /// The driver waits, and has to be woken when bytes are taken.
    driver_waits: bool,
    /// The driver reads, and looks for what is needed after the next bytes.
    driver_reads: bool,
    /// Requests that have not become readers yet.
    n_pending: usize,
    pub(super) idle_since: Instant,
    is_over: bool,
    /// The viewer got an answer, so that the session has begun for others.
    has_begun: bool,
    pub(super) n_connections: u64,
    pub(super) bytes_read: u64,
    pub(super) bytes_sent: u64,
    pub(super) reported: Option<ReportedPosition>,
}

struct ReaderState {
    waker: Option<Waker>,
    connection: Arc<Connection>,
}

/// The state of a session at one moment.
pub(super) struct SessionReading {
    pub(super) opened: Option<TitleCandidate>,
    pub(super) connections: Vec<Arc<Connection>>,
    pub(super) n_connections: u64,
    pub(super) bytes_read: u64,
    pub(super) bytes_sent: u64,
    pub(super) position: u64,
    pub(super) length: Option<u64>,
    pub(super) has_slot: bool,
    pub(super) reported: Option<ReportedPosition>,
}

impl VodSession {
    pub(super) fn new(
        (number, key, title, viewer): (u64, SessionKey, VodTitle, Viewer),
        env: Arc<LiveEnv>,
        cache: Arc<FileCache>,
        started_at: i64,
    ) -> Self {
        let now = Instant::now();
        let known = KnownFile { cache: cache.clone(), version: None };
        let state = State {
            session: new_session(title.target, None),
            known,
            candidates: Arc::default(),
            opened: None,
            stream: StreamState::default(),
            readers: BTreeMap::new(),
            refusal: None,
            driver_waits: false,
            driver_reads: false,
            n_pending: 0,
            idle_since: now,
            is_over: false,
            has_begun: false,
            n_connections: 0,
            bytes_read: 0,
            bytes_sent: 0,
            reported: None,
        };
        let (changed, state) = (Notify::new(), Mutex::new(state));
        Self { number, key, title, viewer, started_at, started: now, env, cache, state, changed }
    }

    /// Announces a request, unless the session is over.
    pub(super) fn join(self: &Arc<Self>, candidates: Arc<[TitleCandidate]>) -> Option<Joined> {
        let mut state = self.state.lock();
        if state.is_over {
            return None;
        }
        // Another time in the archive of a channel: the player seeks.
        let is_known = |it: &TitleCandidate| state.candidates.iter().any(|known| known.file == it.file);
        if self.is_archive() && !state.candidates.is_empty() && !candidates.iter().any(is_known) {
            state.session.replace();
            state.known.version = None;
            state.refusal = None;
            state.reported = None;
            state.stream.end();
            state.stream.is_found = false;
            state.wake_all();
        }
        // What was remembered of the file counts until a connection shows another content.
        if state.known.version.is_none() && state.session.is_unused() {
            let remembered = candidates.first().and_then(|it| self.cache.version(it.file));
            if let Some(version) = remembered {
                state.session = new_session(self.title.target, Some(version.length));
                state.known.version = Some(version);
            }
        }
        state.candidates = candidates;
        state.n_pending += 1;
        drop(state);
        self.changed.notify_one();
        Some(Joined { session: self.clone() })
    }

    /// Returns whether the past of a channel is watched, and not a film.
    pub(super) fn is_archive(&self) -> bool {
        matches!(self.title.target, Target::Archive(_))
    }

    /// Ends all requests of the session and returns its slot.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.session.end();
        state.session.give_way();
        let connections = state.connections();
        state.stream.end();
        state.wake_all();
        drop(state);
        for connection in connections {
            connection.cancel.cancel();
        }
        self.changed.notify_one();
    }

    /// Records that the viewer got an answer. Returns whether it is the first one.
    pub(super) fn begin(&self) -> bool {
        !std::mem::replace(&mut self.state.lock().has_begun, true)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.state.lock().has_begun
    }

    /// Returns what is known about the file.
    pub(super) fn facts(&self) -> Option<VodFacts> {
        let state = self.state.lock();
        state.facts()
    }

    pub(super) fn reading(&self) -> SessionReading {
        let state = self.state.lock();
        SessionReading {
            opened: state.opened.clone(),
            connections: state.connections(),
            n_connections: state.n_connections,
            bytes_read: state.bytes_read,
            bytes_sent: state.bytes_sent,
            position: state.session.position().unwrap_or(0),
            length: state.session.length(),
            has_slot: state.session.has_slot(),
            reported: state.reported,
        }
    }

    fn open_reader(self: &Arc<Self>, range: Range<u64>, connection: &Arc<Connection>) -> BodyReader {
        let mut state = self.state.lock();
        let id = state.session.open(range, now());
        state.readers.insert(id, ReaderState { waker: None, connection: connection.clone() });
        drop(state);
        self.changed.notify_one();
        BodyReader { session: self.clone(), id }
    }

    /// Runs the session until nobody has used it for a while, or the system stops. `forget` removes it from the table, and
    /// returns false if it was needed again in the meantime.
    pub(super) async fn drive(
        self: Arc<Self>,
        mut source: FileSource,
        stop: CancellationToken,
        forget: impl Fn(&Self) -> bool,
    ) {
        let (mut was_told, mut in_turn) = (false, 0);
        loop {
            if stop.is_cancelled() {
                self.end();
                source.release();
                self.state.lock().is_over = true;
                forget(&self);
                return;
            }
            if let Some(request) = self.stream_request() {
                self.play(&mut source, request, &stop).await;
                continue;
            }
            match self.next_step() {
                Step::Open { at } => self.open(&mut source, at, &stop).await,
                Step::Read => {
                    was_told = false;
                    let event = tokio::select! {
                        biased;
                        () = self.changed.notified() => None,
                        event = timeout(STALL_TIMEOUT, source.next(true)) => Some(event),
                        () = stop.cancelled() => None,
                    };
                    match event {
                        None => {}
                        Some(Ok(SourceEvent::Message(message))) => self.answer_reading(message, &source),
                        Some(Ok(SourceEvent::Revoked)) => self.revoked(),
                        Some(Ok(SourceEvent::Read(Ok(Some(bytes))))) => {
                            in_turn += bytes.len();
                            if let Some(spare) = self.received(bytes) {
                                source.reuse(spare);
                            }
                            if in_turn >= TURN_BYTES_MAX {
                                in_turn = 0;
                                tokio::task::yield_now().await;
                            }
                        }
                        Some(Ok(SourceEvent::Read(Ok(None)))) => self.cut(&mut source, "the part ended"),
                        Some(Ok(SourceEvent::Read(Err(error)))) => {
                            source.lost(&error);
                            self.cut(&mut source, &error.to_string());
                        }
                        Some(Err(_)) => {
                            source.lost(&UpstreamError::new(Cause::Stall));
                            self.cut(&mut source, "no data arrived in time");
                        }
                    }
                }
                Step::Close => {
                    source.reset();
                    self.state.lock().session.closed(source.has_slot());
                }
                Step::Release => {
                    source.release();
                    self.state.lock().session.released();
                }
                Step::Wait(until) => {
                    if self.may_yield() && !was_told {
                        // Waiting requests may ask again.
                        was_told = true;
                        source.holder().inspect(|it| self.env.slots.lingering(*it));
                    }
                    let over_at = self.over_at();
                    let until = until.map(Instant::from_std).into_iter().chain(over_at).min();
                    let sleeping = async {
                        match until {
                            Some(until) => sleep_until(until).await,
                            None => std::future::pending().await,
                        }
                    };
                    let event = tokio::select! {
                        () = self.changed.notified() => None,
                        event = source.next(false) => Some(event),
                        () = sleeping => None,
                        () = stop.cancelled() => None,
                    };
                    match event {
                        Some(SourceEvent::Message(message)) => self.answer_reading(message, &source),
                        Some(SourceEvent::Revoked) => self.revoked(),
                        Some(SourceEvent::Read(_)) | None => {}
                    }
                    if over_at.is_some_and(|it| it <= Instant::now()) && forget(&self) {
                        return;
                    }
                }
            }
        }
    }

    fn next_step(&self) -> Step {
        let state = &mut *self.state.lock();
        let step = state.session.next(&state.known, now());
        state.driver_waits = matches!(step, Step::Wait(_));
        state.driver_reads = matches!(step, Step::Read);
        step
    }

    fn may_yield(&self) -> bool {
        let state = self.state.lock();
        state.session.has_slot() && state.session.may_yield(&state.known, now())
    }

    /// Returns when the session is over, if nobody uses it any more.
    fn over_at(&self) -> Option<Instant> {
        let state = self.state.lock();
        state.is_idle().then_some(state.idle_since + IDLE_MAX)
    }

    /// Marks the session as over if nobody uses it. The table is locked.
    pub(super) fn try_end(&self) -> bool {
        let mut state = self.state.lock();
        state.is_over |= state.is_idle() && state.idle_since.elapsed() >= IDLE_MAX;
        state.is_over
    }

    async fn open(&self, source: &mut FileSource, at: u64, stop: &CancellationToken) {
        let (candidates, expected, asking) = {
            let state = self.state.lock();
            let has_delivered = state.session.has_delivered();
            let expected = state.expected(has_delivered);
            let asking = match has_delivered {
                true => Asking::Failover,
                false => Asking::Join(Some(self.viewer.clone())),
            };
            (state.candidates.clone(), expected, asking)
        };
        let granted = || {
            let mut state = self.state.lock();
            state.session.granted();
            state.wake_all();
        };
        let opened = {
            let mut opening = pin!(source.open(&candidates, expected.as_ref(), at, asking, granted));
            loop {
                tokio::select! {
                    opened = &mut opening => break Ok(opened),
                    () = self.changed.notified() => match self.next_step() {
                        Step::Open { .. } => {}
                        other => break Err(other),
                    },
                    () = stop.cancelled() => break Err(Step::Release),
                }
            }
        };
        match opened {
            Ok(Ok(opened)) => self.opened(source, opened, at),
            Ok(Err(failure)) => self.failed(source, failure),
            Err(Step::Release) => {
                source.release();
                self.state.lock().session.released();
            }
            Err(_) => {
                source.reset();
                self.state.lock().session.closed(source.has_slot());
            }
        }
    }

    fn opened(&self, source: &mut FileSource, opened: OpenedFile, at: u64) {
        let OpenedFile { candidate, part, version, is_compared } = opened;
        debug!(vod.session = self.number, at, place = %part.place, "file opened");
        let state = &mut *self.state.lock();
        if state.session.is_replaced() {
            source.reset();
            return state.session.closed(source.has_slot());
        }
        state.refusal = None;
        state.n_connections += 1;
        let is_same = match &state.known.version {
            None => true,
            Some(known) => is_compared || known.agrees_with(&version),
        };
        if is_same {
            if !is_compared {
                self.cache.remember(&version);
                state.known.version = Some(version);
            }
            state.opened = Some(candidate);
            state.session.opened(at, part.length);
        } else {
            info!(
                vod.session = self.number,
                title = self.title.name,
                "the provider has another file at the address"
            );
            source.reset();
            self.cache.remember(&version);
            state.known.version = Some(version);
            state.session.changed();
        }
        state.wake_all();
    }

    fn failed(&self, source: &FileSource, failure: OpenFailure) {
        let OpenFailure { why, can_retry, is_stream } = failure;
        debug!(vod.session = self.number, "failed to open a file: {why}");
        let state = &mut *self.state.lock();
        if state.session.is_replaced() {
            return state.session.closed(source.has_slot());
        }
        // What follows bytes of a file can only be the rest of it.
        state.stream.is_found |= is_stream && !state.session.has_delivered();
        let can_retry = can_retry && !is_stream;
        // A viewer who has seen nothing yet is told at once that no slot is free.
        let can_retry = can_retry && (!matches!(why, VodRefusal::Full(_)) || state.session.has_delivered());
        state.refusal = Some(why);
        state.session.failed(source.has_slot(), can_retry, now());
        state.wake_all();
    }

    /// Returns an empty buffer for the next bytes, if one is free.
    fn received(&self, bytes: Bytes) -> Option<BytesMut> {
        self.env.registry.vod_bytes_in.add(bytes.len() as u64);
        let state = &mut *self.state.lock();
        if state.session.is_replaced() {
            return None;
        }
        state.bytes_read += bytes.len() as u64;
        if let (Some(version), Some(at)) = (&state.known.version, state.session.connection_at()) {
            self.cache.record(version, at, &bytes);
        }
        state.session.received(bytes, &state.known, now());
        state.wake_all();
        state.session.take_spare()
    }

    fn cut(&self, source: &mut FileSource, why: &str) {
        debug!(vod.session = self.number, "connection lost: {why}");
        source.reset();
        let state = &mut *self.state.lock();
        state.session.cut(now());
        state.wake_all();
    }

    /// Notes that the lease was revoked, and that the connection is closed. What follows needs a new lease.
    fn revoked(&self) {
        debug!(vod.session = self.number, "the lease was revoked");
        let state = &mut *self.state.lock();
        if state.session.connection_at().is_some() {
            state.session.cut(now());
        }
        state.session.released();
        state.wake_all();
    }

    /// Answers another holder that needs the slot of a file.
    fn answer_reading(&self, message: SlotMessage, source: &FileSource) {
        if self.answer(message, source, self.may_yield()) {
            self.state.lock().session.give_way();
        }
    }

    /// Answers another holder that needs the slot. Returns whether it gets the slot because it `may_yield`.
    pub(super) fn answer(&self, message: SlotMessage, source: &FileSource, may_yield: bool) -> bool {
        let SlotMessage::Yield { asked_by, viewer, claim } = message else { return false };
        let is_replaced = self.env.settings().at_limit == AtLimit::ReplaceOwn
            && viewer.is_some_and(|it| self.viewer.is_same_device(&it));
        if is_replaced {
            info!(
                vod.session = self.number,
                title = self.title.name,
                "ended for another request of the same device"
            );
            self.end();
            return false;
        }
        if claim.is_some_and(|it| it.takes_from_viewers()) {
            info!(
                vod.session = self.number,
                title = self.title.name,
                "ended because a recording needs the connection"
            );
            self.end();
            return false;
        }
        if !may_yield && let Some(holder) = source.holder() {
            self.env.slots.kept(holder, asked_by);
        }
        may_yield
    }
}

/// Returns the decisions for a target. A pause in the past of a channel ends with a new request more often than not.
fn new_session(target: Target, length: Option<u64>) -> FileSession {
    let session = FileSession::new(length, now());
    if matches!(target, Target::Archive(_)) { session.released_after(ARCHIVE_PAUSE) } else { session }
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}

impl State {
    /// Returns whether nobody uses the session.
    fn is_idle(&self) -> bool {
        let has_request = self.n_pending > 0 || !self.readers.is_empty() || self.stream.is_requested();
        !has_request && !self.session.has_slot()
    }

    /// Returns the connections of the clients.
    fn connections(&self) -> Vec<Arc<Connection>> {
        let of_files = self.readers.values().map(|it| &it.connection);
        of_files.chain(self.stream.connection()).cloned().collect()
    }

    fn wake_all(&mut self) {
        for reader in self.readers.values_mut() {
            if let Some(waker) = reader.waker.take() {
                waker.wake();
            }
        }
    }

    fn facts(&self) -> Option<VodFacts> {
        let version = self.known.version.as_ref()?;
        let candidate =
            self.opened.as_ref().or_else(|| self.candidates.iter().find(|it| it.file == version.file));
        let extension = candidate.map_or("", |it| &it.extension);
        let first_bytes = self.session.first_bytes(&self.known).unwrap_or_default();
        Some(VodFacts::new(version, &first_bytes, extension))
    }

    /// Returns what another connection has to agree with.
    fn expected(&self, is_required: bool) -> Option<Expected> {
        let version = self.known.version.clone()?;
        let start = version.length.saturating_sub(COMPARED_BYTES);
        let mut tail = BytesMut::new();
        while let Some(piece) = self.known.piece(start + tail.len() as u64) {
            tail.extend_from_slice(&piece);
        }
        let is_whole = start + tail.len() as u64 == version.length && !tail.is_empty();
        Some(Expected { version, tail: is_whole.then(|| tail.freeze()), is_required })
    }
}

/// A request that has been announced.
pub(super) struct Joined {
    session: Arc<VodSession>,
}

impl Joined {
    pub(super) fn session(&self) -> &Arc<VodSession> {
        &self.session
    }

    /// Learns the length of the file by a connection at the byte `likely`, if it is unknown, and opens a reader of the bytes
    /// that `select` chooses, which may be none.
    ///
    /// Returns when the first byte is at hand.
    pub(super) async fn open<T>(
        &self,
        likely: u64,
        connection: &Arc<Connection>,
        select: impl Fn(&VodFacts) -> (T, Option<Range<u64>>),
    ) -> Result<(T, VodFacts, Option<BodyReader>), OpenError> {
        if self.session.state.lock().stream.is_found {
            return Err(OpenError::Stream);
        }
        // Keeps the connection until the real reader is open.
        let mut probe = None;
        let facts = match self.session.facts() {
            Some(facts) => facts,
            None => {
                let reader = probe.insert(self.session.open_reader(likely..u64::MAX, connection));
                reader.ready(false).await?;
                self.session.facts().ok_or(OpenError::Changed)?
            }
        };
        let (selected, range) = select(&facts);
        let Some(range) = range else { return Ok((selected, facts, None)) };
        let reader = self.session.open_reader(range, connection);
        drop(probe);
        reader.ready(true).await?;
        // The first bytes may have shown the container.
        let facts = self.session.facts().ok_or(OpenError::Changed)?;
        Ok((selected, facts, Some(reader)))
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let mut state = self.session.state.lock();
        state.n_pending -= 1;
        state.idle_since = Instant::now();
        drop(state);
        self.session.changed.notify_one();
    }
}

/// Why a request got no reader.
#[derive(Debug)]
pub(super) enum OpenError {
    /// The provider has another file than before: select again.
    Changed,
    /// The title is a playlist of segments, so that there are no ranges.
    Stream,
    Refused(VodRefusal),
}

/// One request that reads a part of the file.
pub(super) struct BodyReader {
    session: Arc<VodSession>,
    id: ReaderId,
}

impl BodyReader {
    /// Waits until the length of the file is known, or if `has_bytes` until the next byte is at hand and the rest is sure
    /// to come.
    async fn ready(&self, has_bytes: bool) -> Result<(), OpenError> {
        std::future::poll_fn(|cx| {
            let state = &mut *self.session.state.lock();
            match state.session.failure_of(self.id) {
                Some(Failure::Changed) => return Poll::Ready(Err(OpenError::Changed)),
                Some(Failure::Lost) if state.stream.is_found => {
                    return Poll::Ready(Err(OpenError::Stream));
                }
                Some(Failure::Lost) => {
                    let why = state.refusal.clone().unwrap_or(VodRefusal::NoAnswer);
                    return Poll::Ready(Err(OpenError::Refused(why)));
                }
                Some(Failure::Ended) => return Poll::Ready(Err(OpenError::Refused(VodRefusal::Ended))),
                None => {}
            }
            let is_ready = match has_bytes {
                true => {
                    state.session.is_ready(self.id, &state.known)
                        && state.session.is_supplied(self.id, &state.known)
                }
                false => state.session.length().is_some(),
            };
            if is_ready {
                return Poll::Ready(Ok(()));
            }
            if let Some(reader) = state.readers.get_mut(&self.id) {
                reader.waker = Some(cx.waker().clone());
            }
            Poll::Pending
        })
        .await
    }

    /// Returns the next bytes.
    pub(super) fn poll_read(&self, cx: &mut Context<'_>) -> Poll<Read> {
        let state = &mut *self.session.state.lock();
        let now = now();
        let read = state.session.read(self.id, &state.known, now);
        match &read {
            Read::Wait => {
                if let Some(reader) = state.readers.get_mut(&self.id) {
                    reader.waker = Some(cx.waker().clone());
                }
                if !state.driver_reads {
                    self.session.changed.notify_one();
                }
                return Poll::Pending;
            }
            Read::Piece(bytes) => {
                state.bytes_sent += bytes.len() as u64;
                if state.driver_waits && !state.session.is_full(&state.known, now) {
                    state.driver_waits = false;
                    self.session.changed.notify_one();
                }
            }
            Read::End | Read::Failed(_) => {}
        }
        Poll::Ready(read)
    }
}

impl Drop for BodyReader {
    fn drop(&mut self) {
        let mut state = self.session.state.lock();
        state.session.close(self.id);
        state.readers.remove(&self.id);
        state.idle_since = Instant::now();
        drop(state);
        self.session.changed.notify_one();
    }
}

impl VodFacts {
    fn new(version: &FileVersion, first_bytes: &[u8], extension: &str) -> Self {
        let validator = version.validator.as_deref().unwrap_or_default();
        let name = format!("{}/{}/{validator}", version.file, version.length);
        let tag = Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes());
        Self {
            length: version.length,
            tag: format!("\"{}\"", tag.simple()),
            content_type: container::content_type(first_bytes, extension),
        }
    }

    /// Returns what is remembered of a file that nobody reads.
    pub(super) fn remembered(cache: &Arc<FileCache>, version: FileVersion, extension: &str) -> Self {
        let known = KnownFile { cache: cache.clone(), version: Some(version) };
        let first_bytes = known.piece(0).unwrap_or_default();
        let KnownFile { version, .. } = &known;
        let unknown = FileVersion { file: Uuid::nil(), length: 0, validator: None };
        Self::new(version.as_ref().unwrap_or(&unknown), &first_bytes, extension)
    }
}

/// The sessions by what makes them one.
pub(super) type SessionTable = HashMap<SessionKey, Arc<VodSession>>;
