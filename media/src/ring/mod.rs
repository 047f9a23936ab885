//! The recent past of a live channel: one writer, many readers (tails), bounded in bytes and in time.
//!
//! The writer never waits for a tail. A tail that falls behind is overrun: its meter counts the loss, and it
//! continues at the newest random-access point. Bytes are shared between tails and never copied; a tail
//! stores only a sequence number and a slot for its waker.

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
use crate::ts::packet::{PACKET, Packet, PacketSink, packets};
use crate::ts::tables::Tables;

/// The limits of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingSettings {
    /// Older chunks are removed, except those of the newest group of pictures.
    pub seconds: Duration,
    /// Above this many bytes the oldest chunks are removed, except those of the newest group of pictures.
    pub bytes: usize,
    /// Above this many bytes even the newest group of pictures is cut.
    pub gop_bytes: usize,
    /// A tail that is overrun more often than this within a minute ends with [`EndReason::TooSlow`].
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

/// The reason why a tail ends. `Display` completes the sentence "the stream ended because …".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The writer was dropped.
    Closed,
    /// The channel was stopped.
    Stopped,
    /// No stream of the channel plays. The text contains the reason.
    NothingPlays(Arc<str>),
    /// No slot became free. The text names the account.
    NoSlot(Arc<str>),
    /// The viewer was disconnected.
    Kicked,
    /// The viewer was overrun too often.
    TooSlow,
    /// No packet arrived within the longest time that viewers are kept waiting.
    Silent,
}

impl EndReason {
    /// Returns whether the chunks that remain in the ring are withheld.
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

/// The usage of a ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RingUsage {
    /// Bytes stored.
    pub bytes: usize,
    /// Time between the arrivals of the oldest and the newest chunk.
    pub seconds: f64,
    /// Chunks stored.
    pub chunks: usize,
    /// Number of the next chunk to be written.
    pub head_sequence: u64,
    /// Number of the oldest stored chunk.
    pub tail_sequence: u64,
}

/// Creates a ring whose bytes count towards `budget`.
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
    /// Ends the ring unless it has ended, and wakes all tails.
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
        self.budget.release(self.state.get_mut().bytes());
    }
}

/// The writer of a ring. Dropping it ends the ring with [`EndReason::Closed`].
pub struct Writer {
    shared: Arc<Shared>,
    chunker: Chunker,
    /// Chunks closed by the current call. Stored to reuse the allocation.
    closed: Vec<Chunk>,
    /// Tails to wake after the current call. Stored to reuse the allocation.
    to_wake: Vec<Waker>,
}

impl Writer {
    /// Appends whole packets that came at `now`. Chunks that end with them become readable at once, the rest
    /// when it is flushed, at [`Writer::deadline`] at the latest.
    pub fn push_packets(&mut self, bytes: &[u8], now: Instant) {
        debug_assert!(bytes.len().is_multiple_of(PACKET), "packets are whole");
        let mut batch = self.batch(now);
        packets(bytes).for_each(|it| batch.push(Packet::new(it)));
        batch.commit();
    }

    /// Starts a batch of packets that arrived at `now`.
    pub fn batch(&mut self, now: Instant) -> Batch<'_> {
        Batch { writer: self, now, n_packets: 0 }
    }

    /// Appends null packets after the collected packets, to keep players connected in a gap.
    pub fn filler(&mut self, now: Instant) {
        self.closed.extend(self.chunker.flush());
        let filler = self.chunker.filler(now);
        self.closed.push(filler);
        self.commit(now);
    }

    /// Marks the chunk that starts with the next packet as a discontinuity.
    pub fn discontinuity_next(&mut self) {
        self.chunker.discontinuity_next();
    }

    /// Makes the collected packets readable.
    pub fn flush(&mut self, now: Instant) {
        self.closed.extend(self.chunker.flush());
        self.commit(now);
    }

    /// Returns the time by which the collected packets must be flushed; `None` if there are none.
    pub fn deadline(&self) -> Option<Instant> {
        self.chunker.deadline()
    }

    /// Returns the tables that are in force after the last packet.
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
            meter.newest_arrival.set(meter.micros_at(chunk.head().arrived));
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
            shared.budget.adjust(before, state.bytes());
            state.take_wakers(&mut self.to_wake);
        }
        // Outside the lock, because the woken tasks take it at once.
        self.to_wake.drain(..).for_each(Waker::wake);
        shared.budget.enforce(now);
    }
}

/// Packets that arrived at the same time and are appended together.
pub struct Batch<'a> {
    writer: &'a mut Writer,
    now: Instant,
    n_packets: usize,
}

impl Batch<'_> {
    /// Makes the chunks readable that ended with the batch, and returns the number of packets.
    pub fn commit(self) -> usize {
        self.writer.commit(self.now);
        self.n_packets
    }
}

impl PacketSink for Batch<'_> {
    fn push(&mut self, packet: Packet<'_>) {
        self.n_packets += 1;
        if let Some(chunk) = self.writer.chunker.push(packet, self.now) {
            self.writer.closed.push(chunk);
        }
    }
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("n_packets", &self.n_packets).finish_non_exhaustive()
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

/// Creates tails and ends the ring. Clones share one ring.
#[derive(Clone)]
pub struct Ring {
    shared: Arc<Shared>,
}

impl Ring {
    /// Creates a tail. It selects its first chunk by `join_point` when it is first polled. `guard` is dropped with
    /// the tail.
    pub fn tail(&self, join_point: JoinPoint, guard: Option<Box<dyn Any + Send + Sync>>) -> Tail {
        Tail::new(self.shared.clone(), join_point, guard)
    }

    /// Ends the ring for all its tails. The first reason is kept. Stored chunks are still delivered, except
    /// after [`EndReason::Kicked`] and [`EndReason::TooSlow`].
    pub fn end(&self, end: EndReason) {
        self.shared.end(end);
    }

    /// Returns the reason why the ring ended, if it has ended.
    pub fn ended(&self) -> Option<EndReason> {
        self.shared.state.lock().end.clone()
    }

    /// Returns the counters.
    pub fn meter(&self) -> &Arc<RingMeter> {
        &self.shared.meter
    }

    /// Returns the current usage.
    pub fn usage(&self) -> RingUsage {
        self.shared.state.lock().usage()
    }

    /// Returns whether a new tail would get a chunk at once: one that is not filler and that no filler
    /// follows.
    pub fn has_content(&self) -> bool {
        self.shared.state.lock().first_joinable().is_some()
    }

    /// Returns the number of tails.
    pub fn n_tails(&self) -> usize {
        self.shared.n_tails.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("usage", &self.usage()).field("n_tails", &self.n_tails()).finish()
    }
}
