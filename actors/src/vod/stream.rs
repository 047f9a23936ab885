//! Titles that are playlists of segments: a program reads them, and sends a transport stream without length and ranges.
//!
//! A session plays one stream at a time. A newer request of the player ends the older one, whose program is gone before
//! the next one starts, because both need the same slot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use domain::vod_session::{Failure, PAUSED_AFTER, Read};
use media::meter::Connection;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::session::{ARCHIVE_PAUSE, Joined, VodSession};
use super::source::{FileSource, SourceEvent};
use super::{STALL_TIMEOUT, VodRefusal};
use crate::slots::Asking;

/// Maximum number of pieces between the program and the client. A piece is what a pipe holds, 64 KiB.
const PIECES_MAX: usize = 8;

/// The stream of a session.
#[derive(Default)]
pub(super) struct StreamState {
    /// The title is a playlist of segments.
    pub(super) is_found: bool,
    /// The request that plays or is about to.
    current: Option<Current>,
    /// The request that the driver has not taken yet.
    waiting: Option<StreamRequest>,
    n_requests: u64,
}

struct Current {
    number: u64,
    connection: Arc<Connection>,
    end: CancellationToken,
}

/// A request that waits for its stream.
pub(super) struct StreamRequest {
    pieces: mpsc::Sender<Bytes>,
    started: oneshot::Sender<Result<(), VodRefusal>>,
    /// Ends the stream.
    end: CancellationToken,
    is_complete: Arc<AtomicBool>,
}

impl StreamState {
    pub(super) fn is_requested(&self) -> bool {
        self.current.is_some()
    }

    pub(super) fn connection(&self) -> Option<&Arc<Connection>> {
        self.current.as_ref().map(|it| &it.connection)
    }

    pub(super) fn end(&mut self) {
        self.waiting = None;
        if let Some(current) = &self.current {
            current.end.cancel();
        }
    }
}

impl VodSession {
    pub(super) fn stream_request(&self) -> Option<StreamRequest> {
        self.state.lock().stream.waiting.take()
    }

    /// Plays a stream until its end, or until the client leaves.
    pub(super) async fn play(
        &self,
        source: &mut FileSource,
        request: StreamRequest,
        stop: &CancellationToken,
    ) {
        let StreamRequest { pieces, started, end, is_complete } = request;
        let candidates = self.state.lock().candidates.clone();
        let asking = Asking::Join(Some(self.viewer.clone()));
        let granted = || self.state.lock().session.granted();
        let opened = tokio::select! {
            biased;
            () = end.cancelled() => None,
            () = stop.cancelled() => None,
            () = pieces.closed() => None,
            opened = source.open_stream(&candidates, asking, granted) => Some(opened),
        };
        match opened {
            None => {}
            Some(Err(failure)) => {
                debug!(vod.session = self.number, "failed to open a stream: {}", failure.why);
                // A client that left needs no answer.
                let _ = started.send(Err(failure.why));
            }
            Some(Ok(candidate)) => {
                {
                    let mut state = self.state.lock();
                    state.opened = Some(candidate);
                    state.n_connections += 1;
                }
                if started.send(Ok(())).is_ok() {
                    tokio::select! {
                        biased;
                        () = end.cancelled() => {}
                        () = stop.cancelled() => {}
                        () = pieces.closed() => {}
                        () = self.pass_on(source, &pieces, &is_complete) => {}
                    }
                }
            }
        }
        source.release();
        self.state.lock().session.released();
    }

    /// Passes on what the program sends, until its end or until another viewer gets the slot of a paused player.
    async fn pass_on(&self, source: &mut FileSource, pieces: &mpsc::Sender<Bytes>, is_complete: &AtomicBool) {
        loop {
            let paused_at = Instant::now() + PAUSED_AFTER;
            let given_up_at = paused_at + (ARCHIVE_PAUSE - PAUSED_AFTER);
            let mut was_told = false;
            let room = loop {
                tokio::select! {
                    biased;
                    room = pieces.reserve() => match room {
                        Ok(room) => break room,
                        Err(_) => return,
                    },
                    event = source.next_of_stream(false) => {
                        match event {
                            SourceEvent::Message(message) => {
                                if self.answer(message, source, Instant::now() >= paused_at) {
                                    return;
                                }
                            }
                            SourceEvent::Revoked => return,
                            SourceEvent::Read(_) => {}
                        }
                    }
                    () = sleep_until(given_up_at), if self.is_archive() => return,
                    () = sleep_until(paused_at), if !was_told => {
                        // Waiting requests may ask again.
                        was_told = true;
                        source.holder().inspect(|it| self.env.slots.lingering(*it));
                    }
                }
            };
            let event = match timeout(STALL_TIMEOUT, source.next_of_stream(true)).await {
                Ok(event) => event,
                Err(_) => {
                    debug!(vod.session = self.number, "stream lost: no data arrived in time");
                    return;
                }
            };
            match event {
                SourceEvent::Message(message) => {
                    self.answer(message, source, false);
                }
                SourceEvent::Revoked => return,
                SourceEvent::Read(Ok(Some(bytes))) => {
                    self.env.registry.vod_bytes_in.add(bytes.len() as u64);
                    self.state.lock().bytes_read += bytes.len() as u64;
                    room.send(bytes);
                }
                SourceEvent::Read(Ok(None)) => return is_complete.store(true, Ordering::Release),
                SourceEvent::Read(Err(error)) => {
                    debug!(vod.session = self.number, "stream lost: {error}");
                    return;
                }
            }
        }
    }
}

impl Joined {
    /// Starts the stream, in place of an older one of the session. Returns when its first bytes are at hand.
    pub(super) async fn open_stream(&self, connection: &Arc<Connection>) -> Result<StreamReader, VodRefusal> {
        let (pieces, received) = mpsc::channel(PIECES_MAX);
        let (started, starting) = oneshot::channel();
        let (end, is_complete) = (CancellationToken::new(), Arc::<AtomicBool>::default());
        let session = self.session();
        let number = {
            let stream = &mut session.state.lock().stream;
            stream.n_requests += 1;
            let number = stream.n_requests;
            stream.end();
            stream.current = Some(Current { number, connection: connection.clone(), end: end.clone() });
            let is_complete = is_complete.clone();
            stream.waiting = Some(StreamRequest { pieces, started, end: end.clone(), is_complete });
            number
        };
        let reader = StreamReader { session: session.clone(), number, pieces: received, is_complete, end };
        session.changed.notify_one();
        // Without an answer, a newer request replaced this one, or somebody ended the session.
        starting.await.unwrap_or(Err(VodRefusal::Ended))?;
        Ok(reader)
    }
}

/// One request that reads the stream.
pub(super) struct StreamReader {
    session: Arc<VodSession>,
    number: u64,
    pieces: mpsc::Receiver<Bytes>,
    is_complete: Arc<AtomicBool>,
    end: CancellationToken,
}

impl StreamReader {
    /// Returns the next bytes.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Read> {
        Poll::Ready(match ready!(self.pieces.poll_recv(cx)) {
            Some(bytes) => {
                self.session.state.lock().bytes_sent += bytes.len() as u64;
                Read::Piece(bytes)
            }
            None if self.is_complete.load(Ordering::Acquire) => Read::End,
            None => Read::Failed(Failure::Lost),
        })
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        self.end.cancel();
        let mut state = self.session.state.lock();
        state.stream.current.take_if(|it| it.number == self.number);
        state.idle_since = Instant::now();
        drop(state);
        self.session.changed.notify_one();
    }
}
