//! One writer, many tails, bounded bytes: the recent past of a live channel.
//!
//! The writer never waits for a tail. A tail that stands still loses its place, is told so in its meter and goes
//! on at the newest random-access point. Bytes are shared, never copied for a tail; what a tail holds itself is a
//! number and a slot for its waker.

mod budget;
mod state;
mod tail;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

pub use self::budget::Budget;
use self::state::State;
pub use self::tail::Tail;
use crate::chunk::{Chunk, Chunker};
pub use crate::join_point::JoinPoint;
use crate::meter::RingMeter;
use crate::ts::packet::{PACKET, packets};
use crate::ts::tables::Tables;

/// How much a ring keeps, and how much a slow tail may miss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingSettings {
    /// Chunks older than this leave, but for those of the newest group of pictures.
    pub seconds: Duration,
    /// The oldest chunks leave when there are more bytes than this, but for those of the newest group of pictures.
    pub bytes: usize,
    /// Beyond this many bytes even the newest group of pictures is cut.
    pub gop_bytes: usize,
    /// A tail that loses its place more often than this within a minute ends with [`EndReason::TooSlow`].
    pub slow_client_limit: u32,
}

impl Default for RingSettings {
    fn default() -> Self {
        Self {
            seconds: Duration::from_secs(10),
            bytes: 16 * 1024 * 1024,
            gop_bytes: 32 * 1024 * 1024,
            slow_client_limit: 6,
        }
    }
}

/// Why a tail ends. `Display` completes the sentence "the stream ended because …".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The writer is gone.
    Closed,
    /// The channel was stopped.
    Stopped,
    /// No stream of the channel plays; the text says why.
    NothingPlays(Arc<str>),
    /// No slot came free; the text says on which account.
    NoSlot(Arc<str>),
    /// The viewer was sent away.
    Kicked,
    /// The viewer lost its place too often.
    TooSlow,
    /// No packet came for longer than viewers are held.
    Silent,
}

impl EndReason {
    /// Whether what is still in the ring is withheld.
    fn is_abrupt(&self) -> bool {
        matches!(self, Self::Kicked | Self::TooSlow)
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => write!(f, "the channel closed"),
            Self::Stopped => write!(f, "the channel was stopped"),
            Self::NothingPlays(reason) => write!(f, "no stream plays: {reason}"),
            Self::NoSlot(reason) => write!(f, "no slot is free: {reason}"),
            Self::Kicked => write!(f, "the viewer was disconnected"),
            Self::TooSlow => write!(f, "the viewer could not keep up"),
            Self::Silent => write!(f, "no packet came for too long"),
        }
    }
}

impl std::error::Error for EndReason {}

/// How full a ring is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RingUsage {
    /// Bytes kept.
    pub bytes: usize,
    /// Age of the oldest chunk less the age of the newest.
    pub seconds: f64,
    /// Chunks kept.
    pub chunks: usize,
    /// Number of the next chunk to come.
    pub head_sequence: u64,
    /// Number of the oldest chunk kept.
    pub tail_sequence: u64,
}

/// Makes a ring whose bytes count towards `budget`.
pub fn ring(settings: RingSettings, budget: &Budget) -> (Writer, Ring) {
    let shared = Arc::new(Shared {
        settings,
        state: Mutex::new(State::new()),
        n_tails: AtomicUsize::new(0),
        meter: Arc::new(RingMeter::new()),
        budget: budget.clone(),
    });
    budget.register(&shared);
    let writer =
        Writer { shared: shared.clone(), chunker: Chunker::new(), closed: Vec::new(), to_wake: Vec::new() };
    (writer, Ring { shared })
}

struct Shared {
    settings: RingSettings,
    state: Mutex<State>,
    n_tails: AtomicUsize,
    meter: Arc<RingMeter>,
    budget: Budget,
}

impl Shared {
    /// Ends the ring unless it has ended; wakes everyone.
    fn end(&self, end: EndReason) {
        let mut to_wake = Vec::new();
        {
            let mut state = self.state.lock();
            if state.end.is_some() {
                return;
            }
            state.end = Some(end);
            state.take_wakers(&mut to_wake);
        }
        to_wake.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.budget.give_back(self.state.get_mut().bytes());
    }
}

/// The writing end of a ring. Dropping it ends the ring with [`EndReason::Closed`].
pub struct Writer {
    shared: Arc<Shared>,
    chunker: Chunker,
    /// Chunks closed by the present call; kept for its memory.
    closed: Vec<Chunk>,
    /// Tails to wake after the present call; kept for its memory.
    to_wake: Vec<Waker>,
}

impl Writer {
    /// Appends whole packets that came at `now`. Chunks that end with them become readable at once, the rest
    /// when it is flushed, at [`Writer::deadline`] at the latest.
    pub fn push_packets(&mut self, bytes: &[u8], now: Instant) {
        debug_assert!(bytes.len().is_multiple_of(PACKET), "packets are whole");
        let mut closed = std::mem::take(&mut self.closed);
        closed.extend(packets(bytes).filter_map(|it| self.chunker.push(it, now)));
        self.closed = closed;
        self.commit(now);
    }

    /// Appends null packets, after what was collected so far, to keep players connected in a gap.
    pub fn filler(&mut self, now: Instant) {
        self.closed.extend(self.chunker.flush());
        let filler = self.chunker.filler(now);
        self.closed.push(filler);
        self.commit(now);
    }

    /// The next packet begins a chunk that is marked as a discontinuity.
    pub fn discontinuity_next(&mut self) {
        self.chunker.discontinuity_next();
    }

    /// Makes readable what was collected.
    pub fn flush(&mut self, now: Instant) {
        self.closed.extend(self.chunker.flush());
        self.commit(now);
    }

    /// When what was collected must be flushed; nothing where nothing was.
    pub fn deadline(&self) -> Option<Instant> {
        self.chunker.deadline()
    }

    /// The tables in force after the last packet.
    pub fn tables(&self) -> Option<&Arc<Tables>> {
        self.chunker.tables()
    }

    fn commit(&mut self, now: Instant) {
        if self.closed.is_empty() {
            return;
        }
        let shared = &self.shared;
        let meter = &shared.meter;
        for chunk in &self.closed {
            if chunk.head().filler {
                meter.filler_bytes.add(chunk.len() as u64);
                continue;
            }
            meter.bytes_in.add(chunk.len() as u64);
            meter.packets.add((chunk.len() / PACKET) as u64);
            meter.chunks.add(1);
            meter.random_access_points.add(u64::from(chunk.head().random_access));
            meter.newest_arrival.set(meter.micros(chunk.head().arrived));
        }
        meter.continuity_errors.set(self.chunker.n_continuity_errors());
        {
            let mut state = shared.state.lock();
            if state.end.is_some() {
                self.closed.clear();
                return;
            }
            let before = state.bytes();
            for chunk in self.closed.drain(..) {
                state.push(chunk);
                state.evict(&shared.settings, now, 0);
            }
            shared.budget.change(before, state.bytes());
            state.take_wakers(&mut self.to_wake);
        }
        // Outside the lock: whoever wakes takes it at once.
        self.to_wake.drain(..).for_each(Waker::wake);
        shared.budget.relieve(now);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.flush(Instant::now());
        self.shared.end(EndReason::Closed);
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

/// The side of a ring that hands out tails. Clones are the same ring.
#[derive(Clone)]
pub struct Ring {
    shared: Arc<Shared>,
}

impl Ring {
    /// A new tail. It begins where `entry` says once it is first polled; `guard` is dropped with it.
    pub fn tail(&self, entry: JoinPoint, guard: Option<Box<dyn Any + Send + Sync>>) -> Tail {
        Tail::new(self.shared.clone(), entry, guard)
    }

    /// Ends the ring for all its tails; the first end counts. What is in the ring is still delivered, except
    /// after [`EndReason::Kicked`] and [`EndReason::TooSlow`].
    pub fn end(&self, end: EndReason) {
        self.shared.end(end);
    }

    /// Why the ring ended, if it did.
    pub fn ended(&self) -> Option<EndReason> {
        self.shared.state.lock().end.clone()
    }

    /// What went in and came out.
    pub fn meter(&self) -> &Arc<RingMeter> {
        &self.shared.meter
    }

    /// How full it is.
    pub fn usage(&self) -> RingUsage {
        self.shared.state.lock().usage()
    }

    /// Whether a tail made now would have a chunk at once: one that is not filler and has no filler after it.
    pub fn has_content(&self) -> bool {
        self.shared.state.lock().first_enterable().is_some()
    }

    /// Tails that exist.
    pub fn n_tails(&self) -> usize {
        self.shared.n_tails.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("usage", &self.usage()).field("n_tails", &self.n_tails()).finish()
    }
}
