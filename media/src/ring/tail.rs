//! The position of one reader in a ring.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::end::EndReason;
use super::shared::RingShared;
use super::state::RingState;
use crate::chunk::{Chunk, ChunkHead};
use crate::join_point::{JoinPoint, preamble, preamble_after_overrun};
use crate::meter::TailMeter;

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

/// The position of a tail and what to send next.
struct Cursor {
    join_point: JoinPoint,
    /// Number of the next chunk; `None` until the tail has started.
    next: Option<u64>,
    /// Bytes written to the ring before that chunk, without filler.
    offset: u64,
    preamble: PreamblePending,
    /// Whether a chunk other than filler was delivered. A tail skips filler before its first chunk.
    has_begun: bool,
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
    /// The next chunk.
    Chunk(NextChunk),
    /// The next chunk is not written yet.
    Wait,
    /// No more chunks.
    End(EndReason),
}

/// The parts of the next chunk that a tail needs. Cloning the whole chunk would touch more shared counters
/// for every viewer.
struct NextChunk {
    bytes: Bytes,
    sequence: u64,
    arrived: Instant,
    is_filler: bool,
    /// Set when a preamble is due before the chunk.
    head: Option<ChunkHead>,
}

impl Tail {
    pub(super) fn new(
        shared: Arc<RingShared>,
        join_point: JoinPoint,
        guard: Option<Box<dyn Any + Send + Sync>>,
    ) -> Self {
        shared.n_tails.fetch_add(1, Ordering::Relaxed);
        let slot = shared.state.lock().take_slot();
        let meter = Arc::new(TailMeter::new(shared.meter.clone()));
        let cursor = Cursor {
            join_point,
            next: None,
            offset: 0,
            preamble: PreamblePending::Join,
            has_begun: false,
            overruns: VecDeque::new(),
            ended: None,
        };
        Self { shared, cursor, slot, meter, _guard: guard }
    }

    /// Returns the next bytes, always whole packets: a preamble where one is due, otherwise a chunk.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, EndReason>> {
        let next = match self.next_or_wait(cx) {
            Lookup::Chunk(next) => next,
            Lookup::Wait => return Poll::Pending,
            Lookup::End(end) => return Poll::Ready(Err(end)),
        };
        if let Some(head) = &next.head {
            let packets = self.cursor.take_preamble(head);
            if !packets.is_empty() {
                self.count(packets.len());
                return Poll::Ready(Ok(packets));
            }
        }
        self.cursor.advance(&next);
        if next.is_filler {
            self.meter.filler_bytes.add(next.bytes.len() as u64);
        } else {
            self.count(next.bytes.len());
            self.meter.sequence.set(next.sequence);
            self.meter.arrival.set(self.shared.meter.micros_at(next.arrived) + 1);
        }
        Poll::Ready(Ok(next.bytes))
    }

    /// Waits for the next bytes. Cancel-safe.
    pub async fn chunk(&mut self) -> Result<Bytes, EndReason> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Waits until bytes are available; a tail that has not started waits for a chunk other than filler.
    /// Consumes nothing. Cancel-safe.
    pub async fn ready(&mut self) -> Result<(), EndReason> {
        poll_fn(|cx| match self.next_or_wait(cx) {
            Lookup::Chunk(_) => Poll::Ready(Ok(())),
            Lookup::Wait => Poll::Pending,
            Lookup::End(end) => Poll::Ready(Err(end)),
        })
        .await
    }

    /// Returns the counters of this tail.
    pub fn meter(&self) -> &Arc<TailMeter> {
        &self.meter
    }

    /// Finds the next chunk, or registers the waker.
    fn next_or_wait(&mut self, cx: &mut Context<'_>) -> Lookup {
        let Self { shared, cursor, meter, .. } = self;
        if let Some(end) = &cursor.ended {
            return Lookup::End(end.clone());
        }
        let mut state = shared.state.lock();
        if let Some(end) = state.end.as_ref().filter(|it| it.is_abrupt()) {
            return Lookup::End(end.clone());
        }
        while let Some(next) = cursor.position(&state) {
            if next < state.oldest() {
                let lost = cursor.skip_evicted(&state);
                if let Some(n_bytes) = lost {
                    meter.count_overrun(n_bytes);
                    if let Err(end) = cursor.count_overrun(shared.settings.slow_client_limit) {
                        meter.too_slow.store(true, Ordering::Relaxed);
                        return Lookup::End(end);
                    }
                }
                continue;
            }
            let Some(stored) = state.get(next) else { break };
            if stored.chunk.head().filler && !cursor.has_begun {
                cursor.next = Some(next + 1);
                continue;
            }
            return Lookup::Chunk(cursor.next_chunk(&stored.chunk));
        }
        if let Some(end) = &state.end {
            return Lookup::End(end.clone());
        }
        state.wait(self.slot, cx.waker());
        Lookup::Wait
    }

    fn count(&self, n_bytes: usize) {
        self.meter.bytes.add(n_bytes as u64);
        self.shared.meter.bytes_out.add(n_bytes as u64);
    }
}

impl Cursor {
    /// Returns the number of the next chunk, and selects it if the tail has not started.
    fn position(&mut self, state: &RingState) -> Option<u64> {
        if self.next.is_none() {
            let next = state.first_chunk(self.join_point, Instant::now())?;
            self.offset = state.get(next)?.offset;
            self.next = Some(next);
        }
        self.next
    }

    fn next_chunk(&self, chunk: &Chunk) -> NextChunk {
        let head = chunk.head();
        let has_preamble = self.preamble != PreamblePending::None && !head.filler;
        NextChunk {
            bytes: chunk.bytes(),
            sequence: head.sequence,
            arrived: head.arrived,
            is_filler: head.filler,
            head: has_preamble.then(|| head.clone()),
        }
    }

    /// Moves past a chunk that was delivered.
    fn advance(&mut self, chunk: &NextChunk) {
        self.next = Some(chunk.sequence + 1);
        if !chunk.is_filler {
            self.has_begun = true;
            self.offset += chunk.bytes.len() as u64;
        }
    }

    /// Moves the cursor to a stored chunk because its position has left the ring. Returns the number of lost
    /// bytes, if any were lost.
    fn skip_evicted(&mut self, state: &RingState) -> Option<u64> {
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
        let now = Instant::now();
        self.overruns.push_back(now);
        self.overruns.retain(|it| now.saturating_duration_since(*it) <= OVERRUN_WINDOW);
        if self.overruns.len() <= limit as usize {
            return Ok(());
        }
        self.ended = Some(EndReason::TooSlow);
        Err(EndReason::TooSlow)
    }

    /// Returns the preamble to send before the chunk of this head.
    fn take_preamble(&mut self, head: &ChunkHead) -> Bytes {
        match std::mem::replace(&mut self.preamble, PreamblePending::None) {
            PreamblePending::Join => preamble(head),
            PreamblePending::Overrun => preamble_after_overrun(head),
            PreamblePending::None => Bytes::new(),
        }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
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
