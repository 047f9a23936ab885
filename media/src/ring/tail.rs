//! The position of one reader in a ring.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::time::Instant;

use super::chunks::ReadChunk;
use super::end::EndReason;
use super::memory_files::FileRange;
use super::pieces::{CHUNKS_MAX, Piece, PieceKind, Pieces, SentChunk};
use super::settings::RingSettings;
use super::shared::RingShared;
use super::state::RingState;
use crate::chunk::ChunkHead;
use crate::join_point::{JoinPoint, preamble, preamble_after_overrun};
use crate::meter::TailMeter;
use crate::ts::packet::PACKET;

/// Overruns are counted over this time.
const OVERRUN_WINDOW: Duration = Duration::from_secs(60);

/// A reader of a ring. It stores no bytes.
///
/// It starts at its join point with a PAT and a PMT that fit that position, and then yields chunk after chunk.
/// After the end of the ring it yields the remaining chunks, and then the [`EndReason`] on every call.
pub struct Tail {
    shared: Arc<RingShared>,
    cursor: Cursor,
    slot: usize,
    meter: Arc<TailMeter>,
    /// Dropped with the tail, which informs its creator.
    _guard: Option<Box<dyn Any + Send + Sync>>,
}

/// The next bytes of a tail, whole packets.
pub(crate) struct TailPart {
    pub(crate) bytes: Bytes,
    /// Whether they are null packets that fill a gap.
    pub(crate) is_filler: bool,
    /// When they arrived.
    pub(crate) arrived: Instant,
}

/// The position of a tail and what to send next.
struct Cursor {
    join_point: JoinPoint,
    /// Number of the next chunk; `None` until the tail has started.
    next: Option<u64>,
    /// Bytes of that chunk that were sent, whole packets.
    n_sent: usize,
    /// The rest of a packet or of a preamble whose beginning was sent.
    rest: Bytes,
    /// Bytes written to the ring before the next byte of that chunk, without filler.
    offset: u64,
    preamble: PreamblePending,
    /// Whether a chunk other than filler was delivered. A tail skips filler before its first chunk.
    has_begun: bool,
    /// Whether it reads whole chunks for another process: it does not end after overruns, and does not wait for a picture,
    /// because the other ring lets its own viewers wait.
    reads_chunks: bool,
    /// Times of the latest overruns, at most as many as the limit allows.
    overruns: VecDeque<Instant>,
    ended: Option<EndReason>,
}

/// The packets to send before the next chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PreamblePending {
    /// The tables, because the tail starts here.
    Join,
    /// The tables and a declared discontinuity, because bytes are missing here.
    Overrun,
    /// No packets.
    None,
}

/// The result of a search for the next chunk.
enum Lookup {
    /// The number of the next chunk, which is stored.
    Chunk(u64),
    /// The next chunk is not written yet.
    Wait,
    /// No more chunks.
    End(EndReason),
}

impl Tail {
    pub(super) fn new(
        shared: Arc<RingShared>,
        join_point: JoinPoint,
        guard: Option<Box<dyn Any + Send + Sync>>,
        is_counted: bool,
    ) -> Self {
        shared.n_tails.fetch_add(1, Ordering::Relaxed);
        let slot = shared.state.lock().take_slot();
        let meter = if is_counted { shared.meter.add_tail(slot) } else { shared.meter.uncounted_tail() };
        let cursor = Cursor {
            join_point,
            next: None,
            n_sent: 0,
            rest: Bytes::new(),
            offset: 0,
            preamble: PreamblePending::Join,
            has_begun: false,
            reads_chunks: false,
            overruns: VecDeque::new(),
            ended: None,
        };
        Self { shared, cursor, slot, meter, _guard: guard }
    }

    /// Replaces `pieces` by what to send next, and takes the lock of the ring once.
    ///
    /// The position of the tail changes when [`Tail::sent`] is called.
    pub fn poll_pieces(&mut self, cx: &mut Context<'_>, pieces: &mut Pieces) -> Poll<Result<(), EndReason>> {
        self.poll_pieces_up_to(CHUNKS_MAX, cx, pieces)
    }

    /// Moves past the first `n_bytes` of the pieces, and counts them.
    ///
    /// If they end inside a packet, the tail keeps the rest of this packet, and otherwise no bytes: a viewer that takes
    /// nothing does not keep chunks in memory that have left the ring.
    pub fn sent(&mut self, pieces: &Pieces, n_bytes: usize) {
        let mut left = n_bytes;
        for piece in pieces.iter() {
            let n_sent = left.min(piece.bytes.len());
            left -= n_sent;
            self.sent_piece(piece, n_sent);
            if n_sent < piece.bytes.len() {
                break;
            }
        }
    }

    /// Returns the next bytes, always whole packets: a preamble where one is due, otherwise a chunk.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, EndReason>> {
        let mut pieces = Pieces::new();
        ready!(self.poll_pieces_up_to(1, cx, &mut pieces))?;
        let bytes = pieces.iter().next().map(|it| it.bytes.clone()).unwrap_or_default();
        self.sent(&pieces, bytes.len());
        Poll::Ready(Ok(bytes))
    }

    /// Waits for the next bytes. Cancel-safe.
    pub async fn chunk(&mut self) -> Result<Bytes, EndReason> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Waits for the next bytes, like [`Tail::chunk`]. Cancel-safe.
    pub(crate) async fn part(&mut self) -> Result<TailPart, EndReason> {
        poll_fn(|cx| {
            let mut pieces = Pieces::new();
            ready!(self.poll_pieces_up_to(1, cx, &mut pieces))?;
            let Some(piece) = pieces.iter().next() else { return Poll::Pending };
            let (is_filler, arrived) = match piece.kind {
                PieceKind::Chunk(SentChunk { is_filler, arrived, .. }) => (is_filler, arrived),
                PieceKind::Rest | PieceKind::Preamble => (false, Instant::now()),
            };
            let part = TailPart { bytes: piece.bytes.clone(), is_filler, arrived };
            self.sent(&pieces, part.bytes.len());
            Poll::Ready(Ok(part))
        })
        .await
    }

    /// Waits until bytes are available; a tail that has not started waits for a chunk other than filler.
    /// Consumes nothing. Cancel-safe.
    pub async fn ready(&mut self) -> Result<(), EndReason> {
        poll_fn(|cx| {
            let Self { shared, cursor, meter, .. } = self;
            let mut state = shared.state.lock();
            match cursor.find(&state, &shared.settings, meter) {
                Lookup::Chunk(_) => Poll::Ready(Ok(())),
                Lookup::Wait => {
                    state.wait(self.slot, cx.waker());
                    Poll::Pending
                }
                Lookup::End(end) => Poll::Ready(Err(end)),
            }
        })
        .await
    }

    /// Makes this a tail that reads whole chunks with [`Tail::poll_stored`], which has to be called before anything is
    /// read. It begins with the chunk of this number if that is stored or is the next one. Returns whether the ring has
    /// reached it.
    pub(super) fn read_chunks_from(&mut self, first: Option<u64>) -> bool {
        let Self { shared, cursor, .. } = self;
        let state = shared.state.lock();
        cursor.reads_chunks = true;
        let Some(first) = first.filter(|it| *it >= state.oldest()) else { return true };
        let is_next = state.is_next(first);
        let Some(offset) = state.get(first).map(|it| it.offset).or_else(|| is_next.then(|| state.written()))
        else {
            return false;
        };
        (cursor.next, cursor.offset) = (Some(first), offset);
        (cursor.has_begun, cursor.preamble) = (true, PreamblePending::None);
        true
    }

    /// Returns the next chunk, and the bytes that are lost before it.
    pub(super) fn poll_stored(&mut self, cx: &mut Context<'_>) -> Poll<Result<ReadChunk, EndReason>> {
        let Self { shared, cursor, meter, .. } = self;
        let lost_before = meter.overrun_bytes();
        let chunk = {
            let mut state = shared.state.lock();
            match cursor.find(&state, &shared.settings, meter) {
                Lookup::Chunk(next) => state.get(next).map(|it| it.chunk.clone()),
                Lookup::Wait => {
                    state.wait(self.slot, cx.waker());
                    None
                }
                Lookup::End(end) => return Poll::Ready(Err(end)),
            }
        };
        let Some(chunk) = chunk else { return Poll::Pending };
        let head = chunk.head();
        let sent = SentChunk { sequence: head.sequence, arrived: head.arrived, is_filler: head.filler };
        cursor.advance(&sent, chunk.len(), true);
        let counter = if head.filler { &meter.filler_bytes } else { &meter.bytes };
        counter.add(chunk.len() as u64);
        Poll::Ready(Ok(ReadChunk { chunk, n_lost: meter.overrun_bytes() - lost_before }))
    }

    /// Returns the counters of this tail.
    pub fn meter(&self) -> &Arc<TailMeter> {
        &self.meter
    }

    fn poll_pieces_up_to(
        &mut self,
        n_chunks_max: usize,
        cx: &mut Context<'_>,
        pieces: &mut Pieces,
    ) -> Poll<Result<(), EndReason>> {
        pieces.clear();
        let Self { shared, cursor, meter, .. } = self;
        let preamble_before = {
            let mut state = shared.state.lock();
            let found = cursor.find(&state, &shared.settings, meter);
            let is_cut = matches!(&found, Lookup::End(end) if end.is_abrupt());
            if !cursor.rest.is_empty() && !is_cut {
                pieces.push(Piece { bytes: cursor.rest.clone(), kind: PieceKind::Rest });
            }
            let preamble_before = match found {
                Lookup::Chunk(next) => cursor.collect(&state, next, n_chunks_max, pieces),
                Lookup::Wait => {
                    pieces.is_newest = true;
                    None
                }
                Lookup::End(end) if pieces.is_empty() => return Poll::Ready(Err(end)),
                Lookup::End(_) => None,
            };
            if pieces.is_newest {
                state.wait(self.slot, cx.waker());
            }
            preamble_before
        };
        if let Some(head) = preamble_before {
            pieces.insert_preamble(cursor.preamble(&head));
        }
        if pieces.is_empty() { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    fn sent_piece(&mut self, piece: &Piece, n_sent: usize) {
        let Self { cursor, meter, shared, .. } = self;
        match piece.kind {
            PieceKind::Rest => cursor.rest.advance(n_sent),
            _ if n_sent == 0 => {}
            PieceKind::Preamble => {
                cursor.preamble = PreamblePending::None;
                cursor.rest = piece.bytes.slice(n_sent..);
                meter.bytes.add(piece.bytes.len() as u64);
            }
            PieceKind::Chunk(chunk) => {
                let n_whole = n_sent.next_multiple_of(PACKET);
                // A copy, because a reference would keep the whole chunk in memory.
                cursor.rest = Bytes::copy_from_slice(&piece.bytes[n_sent..n_whole]);
                cursor.advance(&chunk, n_whole, n_whole == piece.bytes.len());
                if chunk.is_filler {
                    meter.filler_bytes.add(n_whole as u64);
                } else {
                    meter.bytes.add(n_whole as u64);
                    meter.sequence.set(chunk.sequence);
                    meter.arrival.set(shared.meter.micros_at(chunk.arrived) + 1);
                }
            }
        }
    }
}

impl Cursor {
    /// Finds the next chunk. Counts an overrun if its position has left the ring.
    fn find(&mut self, state: &RingState, settings: &RingSettings, meter: &TailMeter) -> Lookup {
        if let Some(end) = &self.ended {
            return Lookup::End(end.clone());
        }
        if let Some(end) = state.end.as_ref().filter(|it| it.is_abrupt()) {
            return Lookup::End(end.clone());
        }
        while let Some(next) = self.position(state) {
            if next < state.oldest() {
                let lost = self.skip_evicted(state);
                if let Some(n_bytes) = lost {
                    meter.count_overrun(n_bytes);
                    if let Err(end) = self.count_overrun(settings.slow_client_limit) {
                        meter.too_slow.store(true, Ordering::Relaxed);
                        return Lookup::End(end);
                    }
                }
                continue;
            }
            let Some(stored) = state.get(next) else { break };
            if stored.chunk.head().filler && !self.has_begun {
                self.next = Some(next + 1);
                continue;
            }
            return Lookup::Chunk(next);
        }
        state.end.clone().map_or(Lookup::Wait, Lookup::End)
    }

    /// Returns the number of the next chunk, and selects it if the tail has not started.
    fn position(&mut self, state: &RingState) -> Option<u64> {
        if self.next.is_none() {
            let next = state.first_chunk(self.join_point, !self.reads_chunks, Instant::now())?;
            self.offset = state.get(next)?.offset;
            self.next = Some(next);
        }
        self.next
    }

    /// Collects stored chunks from `first` on, as far as one preamble fits all of them. Returns the head of the first
    /// chunk if a preamble is due before it.
    fn collect(
        &self,
        state: &RingState,
        first: u64,
        n_chunks_max: usize,
        pieces: &mut Pieces,
    ) -> Option<ChunkHead> {
        let is_due = |it: &ChunkHead| self.preamble != PreamblePending::None && !it.filler;
        let mut preamble_before = None;
        let mut next = first;
        for _ in 0..n_chunks_max {
            if !pieces.has_space() {
                return preamble_before;
            }
            let Some(stored) = state.get(next) else { break };
            let head = stored.chunk.head();
            if preamble_before.is_none() && is_due(head) {
                if next > first {
                    return preamble_before;
                }
                preamble_before = Some(head.clone());
            }
            let mut bytes = stored.chunk.bytes();
            if next == first {
                bytes.advance(self.n_sent);
                // The rest of a packet and a preamble are in no file.
                let file = stored.file.as_ref().filter(|_| pieces.is_empty() && preamble_before.is_none());
                pieces.file =
                    file.map(|it| FileRange { file: Arc::clone(&it.file), at: it.at + self.n_sent as u64 });
            } else if let Some(begin) = &pieces.file
                && !stored.file.as_ref().is_some_and(|it| it.follows(begin, pieces.n_bytes()))
            {
                return None;
            }
            let chunk = SentChunk { sequence: head.sequence, arrived: head.arrived, is_filler: head.filler };
            pieces.push(Piece { bytes, kind: PieceKind::Chunk(chunk) });
            next += 1;
        }
        pieces.is_newest = state.is_next(next) && state.end.is_none();
        preamble_before
    }

    /// Moves past bytes of a chunk, whole packets that were sent.
    fn advance(&mut self, chunk: &SentChunk, n_bytes: usize, is_end: bool) {
        (self.next, self.n_sent) = match is_end {
            true => (Some(chunk.sequence + 1), 0),
            false => (Some(chunk.sequence), self.n_sent + n_bytes),
        };
        if !chunk.is_filler {
            self.has_begun = true;
            self.preamble = PreamblePending::None;
            self.offset += n_bytes as u64;
        }
    }

    /// Moves the cursor to a stored chunk because its position has left the ring. Returns the number of lost
    /// bytes, if any were lost.
    fn skip_evicted(&mut self, state: &RingState) -> Option<u64> {
        self.n_sent = 0;
        if self.preamble == PreamblePending::Join {
            // Nothing was delivered yet, so nothing is lost: select the first chunk again.
            self.next = None;
            return None;
        }
        let oldest = state.get(state.oldest()).map(|it| it.offset);
        if oldest == Some(self.offset) {
            // Only filler was evicted, so nothing is lost.
            self.next = Some(state.oldest());
            return None;
        }
        let next = state.after_overrun();
        let offset = state.get(next).map_or(self.offset, |it| it.offset);
        let lost = offset.saturating_sub(self.offset);
        (self.next, self.offset, self.preamble) = (Some(next), offset, PreamblePending::Overrun);
        Some(lost)
    }

    /// Counts an overrun. Returns the end if there were too many within a minute.
    fn count_overrun(&mut self, limit: u32) -> Result<(), EndReason> {
        if self.reads_chunks {
            return Ok(());
        }
        let now = Instant::now();
        self.overruns.push_back(now);
        self.overruns.retain(|it| now.saturating_duration_since(*it) <= OVERRUN_WINDOW);
        if self.overruns.len() <= limit as usize {
            return Ok(());
        }
        self.ended = Some(EndReason::TooSlow);
        Err(EndReason::TooSlow)
    }

    /// Returns the preamble that is due before the chunk of this head.
    fn preamble(&self, head: &ChunkHead) -> Bytes {
        match self.preamble {
            PreamblePending::Join => preamble(head),
            PreamblePending::Overrun => preamble_after_overrun(head),
            PreamblePending::None => Bytes::new(),
        }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.shared.meter.remove_tail(self.slot);
        let waker = self.shared.state.lock().free_slot(self.slot);
        drop(waker);
        self.shared.n_tails.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tail")
            .field("next", &self.cursor.next)
            .field("ended", &self.cursor.ended)
            .finish_non_exhaustive()
    }
}
