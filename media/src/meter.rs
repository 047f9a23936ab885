//! Counters that any thread can read at any time. Each counter has one writer, so that counting needs no atomic addition
//! and no cache line that several connections write to.

use std::net::SocketAddr;
use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A counter that only one task writes to.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.set(self.get() + n);
    }

    pub(crate) fn set(&self, n: u64) {
        self.0.store(n, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The counters of sources that deliver segments or datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputCounts {
    /// Segments of HLS that were read, at least in part.
    pub segments_read: u64,
    /// Segments of HLS that were not available, or left the playlist before they could be read.
    pub segments_skipped: u64,
    /// Datagrams that the network lost, as far as they are numbered (RTP).
    pub lost_datagrams: u64,
}

impl InputCounts {
    /// Returns what was counted after an earlier state.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            segments_read: self.segments_read.saturating_sub(before.segments_read),
            segments_skipped: self.segments_skipped.saturating_sub(before.segments_skipped),
            lost_datagrams: self.lost_datagrams.saturating_sub(before.lost_datagrams),
        }
    }
}

impl AddAssign for InputCounts {
    fn add_assign(&mut self, more: Self) {
        self.segments_read += more.segments_read;
        self.segments_skipped += more.segments_skipped;
        self.lost_datagrams += more.lost_datagrams;
    }
}

/// The counters of a ring, and the sums over all its tails.
#[derive(Debug)]
pub struct RingMeter {
    /// Arrival times below are microseconds since this instant.
    base: Instant,
    pub(crate) bytes_in: Counter,
    pub(crate) packets: Counter,
    pub(crate) chunks: Counter,
    pub(crate) random_access_points: Counter,
    pub(crate) filler_bytes: Counter,
    pub(crate) continuity_errors: Counter,
    segments_read: Counter,
    segments_skipped: Counter,
    lost_datagrams: Counter,
    pub(crate) newest_arrival: Counter,
    tails: Mutex<Tails>,
}

/// The meters of the tails of a ring, and the sums over those that were dropped.
#[derive(Debug, Default)]
struct Tails {
    /// By the slot of the tail.
    present: Vec<Option<Arc<TailMeter>>>,
    past: TailSums,
}

#[derive(Clone, Copy, Debug, Default)]
struct TailSums {
    bytes: u64,
    overruns: u64,
    overrun_bytes: u64,
}

impl TailSums {
    fn with(self, tail: &TailMeter) -> Self {
        Self {
            bytes: self.bytes + tail.bytes(),
            overruns: self.overruns + tail.overruns(),
            overrun_bytes: self.overrun_bytes + tail.overrun_bytes(),
        }
    }
}

impl RingMeter {
    pub(crate) fn new() -> Self {
        Self {
            base: Instant::now(),
            bytes_in: Counter::default(),
            packets: Counter::default(),
            chunks: Counter::default(),
            random_access_points: Counter::default(),
            filler_bytes: Counter::default(),
            continuity_errors: Counter::default(),
            segments_read: Counter::default(),
            segments_skipped: Counter::default(),
            lost_datagrams: Counter::default(),
            newest_arrival: Counter::default(),
            tails: Mutex::default(),
        }
    }

    /// Creates the meter of the tail in this slot.
    pub(crate) fn add_tail(self: &Arc<Self>, slot: usize) -> Arc<TailMeter> {
        let meter = Arc::new(TailMeter::new(Arc::clone(self)));
        let mut tails = self.tails.lock();
        if tails.present.len() <= slot {
            tails.present.resize(slot + 1, None);
        }
        tails.present[slot] = Some(Arc::clone(&meter));
        meter
    }

    /// Creates the meter of a tail. The sums leave it out.
    pub(crate) fn uncounted_tail(self: &Arc<Self>) -> Arc<TailMeter> {
        Arc::new(TailMeter::new(Arc::clone(self)))
    }

    /// Keeps the counters of the tail in this slot as a part of the sums.
    pub(crate) fn remove_tail(&self, slot: usize) {
        let mut tails = self.tails.lock();
        if let Some(meter) = tails.present.get_mut(slot).and_then(Option::take) {
            tails.past = tails.past.with(&meter);
        }
    }

    fn sums(&self) -> TailSums {
        let tails = self.tails.lock();
        tails.present.iter().flatten().fold(tails.past, |sums, it| sums.with(it))
    }

    /// Returns the bytes written to the ring, without filler.
    pub fn bytes_in(&self) -> u64 {
        self.bytes_in.get()
    }

    /// Returns the packets written to the ring, without filler.
    pub fn packets(&self) -> u64 {
        self.packets.get()
    }

    /// Returns the chunks written to the ring, without filler.
    pub fn chunks(&self) -> u64 {
        self.chunks.get()
    }

    /// Returns the chunks that start with a random-access point.
    pub fn random_access_points(&self) -> u64 {
        self.random_access_points.get()
    }

    /// Returns the bytes of null packets written to bridge gaps.
    pub fn filler_bytes(&self) -> u64 {
        self.filler_bytes.get()
    }

    /// Returns the continuity counter errors that no packet declared.
    pub fn continuity_errors(&self) -> u64 {
        self.continuity_errors.get()
    }

    /// Adds what was counted of a source.
    pub(crate) fn count_input(&self, counts: InputCounts) {
        self.segments_read.add(counts.segments_read);
        self.segments_skipped.add(counts.segments_skipped);
        self.lost_datagrams.add(counts.lost_datagrams);
    }

    /// Returns what was counted of all sources.
    pub fn input(&self) -> InputCounts {
        InputCounts {
            segments_read: self.segments_read.get(),
            segments_skipped: self.segments_skipped.get(),
            lost_datagrams: self.lost_datagrams.get(),
        }
    }

    /// Returns the bytes delivered to all tails, without filler.
    pub fn bytes_out(&self) -> u64 {
        self.sums().bytes
    }

    /// Returns how often a tail was overrun.
    pub fn overruns(&self) -> u64 {
        self.sums().overruns
    }

    /// Returns the bytes that tails lost by overruns.
    pub fn overrun_bytes(&self) -> u64 {
        self.sums().overrun_bytes
    }

    pub(crate) fn micros_at(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.base).as_micros() as u64
    }
}

/// The counters of one tail.
#[derive(Debug)]
pub struct TailMeter {
    ring: Arc<RingMeter>,
    pub(crate) bytes: Counter,
    pub(crate) filler_bytes: Counter,
    pub(crate) overruns: Counter,
    pub(crate) overrun_bytes: Counter,
    pub(crate) sequence: Counter,
    /// Arrival of the last delivered chunk plus one; 0 before the first.
    pub(crate) arrival: Counter,
    /// Set when the tail ends because of too many overruns.
    pub(crate) too_slow: AtomicBool,
}

impl TailMeter {
    fn new(ring: Arc<RingMeter>) -> Self {
        Self {
            ring,
            bytes: Counter::default(),
            filler_bytes: Counter::default(),
            overruns: Counter::default(),
            overrun_bytes: Counter::default(),
            sequence: Counter::default(),
            arrival: Counter::default(),
            too_slow: AtomicBool::new(false),
        }
    }

    /// Returns whether the tail ended because of too many overruns.
    pub fn was_too_slow(&self) -> bool {
        self.too_slow.load(Relaxed)
    }

    /// Counts an overrun in which the tail lost this many bytes.
    pub(crate) fn count_overrun(&self, n_bytes: u64) {
        self.overruns.add(1);
        self.overrun_bytes.add(n_bytes);
    }

    /// Returns the bytes delivered, with preambles and without filler.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Returns the bytes of filler delivered.
    pub fn filler_bytes(&self) -> u64 {
        self.filler_bytes.get()
    }

    /// Returns how often the tail was overrun.
    pub fn overruns(&self) -> u64 {
        self.overruns.get()
    }

    /// Returns the bytes that the tail lost by overruns.
    pub fn overrun_bytes(&self) -> u64 {
        self.overrun_bytes.get()
    }

    /// Returns the number of the last delivered chunk.
    pub fn sequence(&self) -> u64 {
        self.sequence.get()
    }

    /// Returns the age of the last delivered chunk relative to the newest chunk of the ring; zero before the
    /// first.
    pub fn behind(&self) -> Duration {
        match self.arrival.get() {
            0 => Duration::ZERO,
            arrival => Duration::from_micros(self.ring.newest_arrival.get().saturating_sub(arrival - 1)),
        }
    }
}

/// Counts the bytes that a socket accepted.
#[derive(Debug)]
pub struct ConnectionMeter {
    base: Instant,
    bytes: Counter,
    /// Microseconds from `base` to the time the socket stopped accepting bytes, plus one; 0 while it accepts.
    blocked_since: Counter,
}

impl Default for ConnectionMeter {
    fn default() -> Self {
        Self::new()
    }
}

impl ConnectionMeter {
    /// Creates the meter of a connection that has sent nothing.
    pub fn new() -> Self {
        Self { base: Instant::now(), bytes: Counter::default(), blocked_since: Counter::default() }
    }

    /// Records that the socket accepted `n` bytes.
    pub fn wrote(&self, n: usize) {
        self.bytes.add(n as u64);
        if n > 0 && self.is_blocked() {
            self.blocked_since.set(0);
        }
    }

    /// Returns whether the socket did not accept all bytes that were offered last.
    pub fn is_blocked(&self) -> bool {
        self.blocked_since.get() != 0
    }

    /// Records that the socket did not accept offered bytes. Only the first call since the last accepted byte
    /// counts.
    pub fn blocked(&self, now: Instant) {
        let since = now.saturating_duration_since(self.base).as_micros() as u64 + 1;
        // Only one task writes to a socket, so the value cannot change between the check and the store.
        if self.blocked_since.get() == 0 {
            self.blocked_since.set(since);
        }
    }

    /// Returns for how long the socket has not accepted offered bytes; `None` while it accepts.
    pub fn blocked_for(&self, now: Instant) -> Option<Duration> {
        let since = Duration::from_micros(self.blocked_since.get().checked_sub(1)?);
        Some(now.saturating_duration_since(self.base).saturating_sub(since))
    }

    /// Returns the bytes that the socket accepted.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }
}

/// An accepted client connection, as used outside the accept loop.
#[derive(Debug)]
pub struct Connection {
    /// Unique number of the connection in this process.
    pub id: u64,
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Closes the connection when cancelled, even while its socket is full and its tail is not read.
    pub cancel: CancellationToken,
    /// Bytes that its socket accepted.
    pub meter: ConnectionMeter,
}

impl Connection {
    /// Creates a connection that was just accepted.
    pub fn new(id: u64, peer: SocketAddr) -> Self {
        Self { id, peer, cancel: CancellationToken::new(), meter: ConnectionMeter::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_socket_is_blocked_from_its_first_refusal_until_it_accepts_a_byte() {
        let meter = ConnectionMeter::new();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(meter.blocked_for(at(9)), None);
        meter.blocked(at(10));
        meter.blocked(at(15));
        assert_eq!(meter.blocked_for(at(20)), Some(Duration::from_secs(10)));
        meter.wrote(0);
        assert_eq!(meter.blocked_for(at(21)), Some(Duration::from_secs(11)));
        meter.wrote(100);
        assert_eq!(meter.blocked_for(at(90)), None);
        assert_eq!(meter.bytes(), 100);
    }
}
