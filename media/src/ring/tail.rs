//! One reader's place in a ring.

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

use super::state::State;
use super::{EndReason, Shared};
use crate::chunk::{Chunk, ChunkHead};
use crate::join_point::{JoinPoint, preamble, preamble_after_overrun};
use crate::meter::TailMeter;

/// Misses are counted over this time.
const OVERRUN_WINDOW: Duration = Duration::from_secs(60);

/// One reader's place in a ring. It holds no bytes.
///
/// It begins where its entry says, with PAT and PMT made for that place, and then yields chunk after chunk.
/// After the end of the ring it yields what is left, then the [`EndReason`], again and again.
pub struct Tail {
    shared: Arc<Shared>,
    cursor: Cursor,
    slot: usize,
    meter: Arc<TailMeter>,
    /// Whoever made the tail hears of its end by the drop of this.
    _guard: Option<Box<dyn Any + Send + Sync>>,
}

/// Where a tail stands.
struct Cursor {
    entry: JoinPoint,
    /// The chunk to read next; nothing until there is one to begin at.
    next: Option<u64>,
    /// Bytes of the ring, filler apart, that lie before that chunk.
    offset: u64,
    seam: Seam,
    /// Whether a real chunk was handed out: filler before the first is not for us.
    has_begun: bool,
    /// The latest misses, no more than the limit allows.
    overruns: VecDeque<Instant>,
    ended: Option<EndReason>,
}

/// What has to be said before the next real chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seam {
    /// The tables: the tail begins here.
    Join,
    /// The tables and a declared discontinuity: bytes are missing here.
    Overrun,
    /// Nothing.
    None,
}

/// What a look at the ring found.
enum Found {
    /// This chunk is next.
    Chunk(Next),
    /// Nothing yet.
    Wait,
    /// Nothing any more.
    End(EndReason),
}

/// What a tail needs of its next chunk: a clone of the whole would touch more shared counters, once per viewer.
struct Next {
    bytes: Bytes,
    sequence: u64,
    arrived: Instant,
    is_filler: bool,
    /// Where something has to be said before it.
    head: Option<ChunkHead>,
}

impl Tail {
    pub(super) fn new(
        shared: Arc<Shared>,
        entry: JoinPoint,
        guard: Option<Box<dyn Any + Send + Sync>>,
    ) -> Self {
        shared.n_tails.fetch_add(1, Ordering::Relaxed);
        let slot = shared.state.lock().take_slot();
        let meter = Arc::new(TailMeter::new(shared.meter.clone()));
        let cursor = Cursor {
            entry,
            next: None,
            offset: 0,
            seam: Seam::Join,
            has_begun: false,
            overruns: VecDeque::new(),
            ended: None,
        };
        Self { shared, cursor, slot, meter, _guard: guard }
    }

    /// The next bytes, always whole packets: a preamble where one is due, else a chunk.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, EndReason>> {
        let next = match self.look(cx) {
            Found::Chunk(next) => next,
            Found::Wait => return Poll::Pending,
            Found::End(end) => return Poll::Ready(Err(end)),
        };
        if let Some(head) = &next.head {
            let packets = self.cursor.take_preamble(head);
            if !packets.is_empty() {
                self.count(packets.len());
                return Poll::Ready(Ok(packets));
            }
        }
        self.cursor.pass(&next);
        if next.is_filler {
            self.meter.filler_bytes.add(next.bytes.len() as u64);
        } else {
            self.count(next.bytes.len());
            self.meter.sequence.set(next.sequence);
            self.meter.arrival.set(self.shared.meter.micros(next.arrived) + 1);
        }
        Poll::Ready(Ok(next.bytes))
    }

    /// Waits for the next bytes. Cancel-safe.
    pub async fn chunk(&mut self) -> Result<Bytes, EndReason> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Waits until there are bytes to be had, and for a tail that has not begun: real ones, not filler.
    /// Takes nothing. Cancel-safe.
    pub async fn ready(&mut self) -> Result<(), EndReason> {
        poll_fn(|cx| match self.look(cx) {
            Found::Chunk(_) => Poll::Ready(Ok(())),
            Found::Wait => Poll::Pending,
            Found::End(end) => Poll::Ready(Err(end)),
        })
        .await
    }

    /// What was handed out.
    pub fn meter(&self) -> &Arc<TailMeter> {
        &self.meter
    }

    /// Finds the next chunk or registers to be woken.
    fn look(&mut self, cx: &mut Context<'_>) -> Found {
        let Self { shared, cursor, meter, .. } = self;
        if let Some(end) = &cursor.ended {
            return Found::End(end.clone());
        }
        let mut state = shared.state.lock();
        if let Some(end) = state.end.as_ref().filter(|it| it.is_abrupt()) {
            return Found::End(end.clone());
        }
        while let Some(next) = cursor.place(&state) {
            if next < state.oldest() {
                let missed = cursor.go_on(&state);
                if let Some(n_bytes) = missed {
                    meter.count_overrun(n_bytes);
                    if let Err(end) = cursor.count_overrun(shared.settings.slow_client_limit) {
                        meter.too_slow.store(true, Ordering::Relaxed);
                        return Found::End(end);
                    }
                }
                continue;
            }
            let Some(kept) = state.kept(next) else { break };
            if kept.chunk.head().filler && !cursor.has_begun {
                cursor.next = Some(next + 1);
                continue;
            }
            return Found::Chunk(cursor.next_chunk(&kept.chunk));
        }
        if let Some(end) = &state.end {
            return Found::End(end.clone());
        }
        state.wait(self.slot, cx.waker());
        Found::Wait
    }

    fn count(&self, n_bytes: usize) {
        self.meter.bytes.add(n_bytes as u64);
        self.shared.meter.bytes_out.add(n_bytes as u64);
    }
}

impl Cursor {
    /// The chunk to read next, chosen now if it was not before.
    fn place(&mut self, state: &State) -> Option<u64> {
        if self.next.is_none() {
            let next = state.enter(self.entry, Instant::now())?;
            self.offset = state.kept(next)?.offset;
            self.next = Some(next);
        }
        self.next
    }

    fn next_chunk(&self, chunk: &Chunk) -> Next {
        let head = chunk.head();
        let has_seam = self.seam != Seam::None && !head.filler;
        Next {
            bytes: chunk.bytes(),
            sequence: head.sequence,
            arrived: head.arrived,
            is_filler: head.filler,
            head: has_seam.then(|| head.clone()),
        }
    }

    /// This chunk was handed out.
    fn pass(&mut self, chunk: &Next) {
        self.next = Some(chunk.sequence + 1);
        if !chunk.is_filler {
            self.has_begun = true;
            self.offset += chunk.bytes.len() as u64;
        }
    }

    /// The place has left the ring: goes on behind what has left. Returns how many bytes were missed, if any were.
    fn go_on(&mut self, state: &State) -> Option<u64> {
        if self.seam == Seam::Join {
            // Nothing was handed out yet, so nothing is missed: begin anew.
            self.next = None;
            return None;
        }
        let oldest = state.kept(state.oldest()).map(|it| it.offset);
        if oldest == Some(self.offset) {
            // Only filler has left: nobody misses that.
            self.next = Some(state.oldest());
            return None;
        }
        let next = state.after_overrun();
        let offset = state.kept(next).map_or(self.offset, |it| it.offset);
        let missed = offset.saturating_sub(self.offset);
        (self.next, self.offset, self.seam) = (Some(next), offset, Seam::Overrun);
        Some(missed)
    }

    /// Counts a miss; too many within a minute are the end.
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

    /// What has to be said before the chunk of this head.
    fn take_preamble(&mut self, head: &ChunkHead) -> Bytes {
        match std::mem::replace(&mut self.seam, Seam::None) {
            Seam::Join => preamble(head),
            Seam::Overrun => preamble_after_overrun(head),
            Seam::None => Bytes::new(),
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
