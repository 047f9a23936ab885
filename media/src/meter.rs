//! Counters that anyone may read at any time, and that cost whoever counts an atomic add.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A counter that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    pub(crate) fn set(&self, n: u64) {
        self.0.store(n, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What went into a ring, and what came out of it over all its tails.
#[derive(Debug)]
pub struct RingMeter {
    /// Arrival times below are micros since then.
    base: Instant,
    pub(crate) bytes_in: Counter,
    pub(crate) packets: Counter,
    pub(crate) chunks: Counter,
    pub(crate) random_access_points: Counter,
    pub(crate) filler_bytes: Counter,
    pub(crate) continuity_errors: Counter,
    pub(crate) newest_arrival: Counter,
    pub(crate) bytes_out: Counter,
    pub(crate) overruns: Counter,
    pub(crate) overrun_bytes: Counter,
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
            newest_arrival: Counter::default(),
            bytes_out: Counter::default(),
            overruns: Counter::default(),
            overrun_bytes: Counter::default(),
        }
    }

    /// Bytes written to the ring, filler apart.
    pub fn bytes_in(&self) -> u64 {
        self.bytes_in.get()
    }

    /// Packets written to the ring, filler apart.
    pub fn packets(&self) -> u64 {
        self.packets.get()
    }

    /// Chunks written to the ring, filler apart.
    pub fn chunks(&self) -> u64 {
        self.chunks.get()
    }

    /// Chunks that begin with a random-access point.
    pub fn random_access_points(&self) -> u64 {
        self.random_access_points.get()
    }

    /// Bytes of null packets written to bridge gaps.
    pub fn filler_bytes(&self) -> u64 {
        self.filler_bytes.get()
    }

    /// Breaks of a continuity counter that no packet declared.
    pub fn continuity_errors(&self) -> u64 {
        self.continuity_errors.get()
    }

    /// Bytes handed to all tails, filler apart.
    pub fn bytes_out(&self) -> u64 {
        self.bytes_out.get()
    }

    /// How often a tail's place had left the ring.
    pub fn overruns(&self) -> u64 {
        self.overruns.get()
    }

    /// Bytes that tails missed that way.
    pub fn overrun_bytes(&self) -> u64 {
        self.overrun_bytes.get()
    }

    pub(crate) fn micros(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.base).as_micros() as u64
    }
}

/// What one tail was handed.
#[derive(Debug)]
pub struct TailMeter {
    ring: Arc<RingMeter>,
    pub(crate) bytes: Counter,
    pub(crate) filler_bytes: Counter,
    pub(crate) overruns: Counter,
    pub(crate) overrun_bytes: Counter,
    pub(crate) sequence: Counter,
    /// One more than the arrival of the last chunk handed out; 0 before the first.
    pub(crate) arrival: Counter,
    /// Set when the tail ends because it missed too often.
    pub(crate) too_slow: AtomicBool,
}

impl TailMeter {
    pub(crate) fn new(ring: Arc<RingMeter>) -> Self {
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

    /// Whether the tail has ended because it missed too often.
    pub fn was_too_slow(&self) -> bool {
        self.too_slow.load(Relaxed)
    }

    /// The tail's place had left the ring; it goes on this many bytes later.
    pub(crate) fn count_overrun(&self, n_bytes: u64) {
        for (overruns, overrun_bytes) in
            [(&self.overruns, &self.overrun_bytes), (&self.ring.overruns, &self.ring.overrun_bytes)]
        {
            overruns.add(1);
            overrun_bytes.add(n_bytes);
        }
    }

    /// Bytes handed out, preambles included, filler apart.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Bytes of filler handed out.
    pub fn filler_bytes(&self) -> u64 {
        self.filler_bytes.get()
    }

    /// How often its place had left the ring.
    pub fn overruns(&self) -> u64 {
        self.overruns.get()
    }

    /// Bytes it missed that way.
    pub fn overrun_bytes(&self) -> u64 {
        self.overrun_bytes.get()
    }

    /// Number of the last chunk handed out.
    pub fn sequence(&self) -> u64 {
        self.sequence.get()
    }

    /// How much earlier than the ring's newest chunk the last chunk handed out had come; zero before the first.
    pub fn behind(&self) -> Duration {
        match self.arrival.get() {
            0 => Duration::ZERO,
            arrival => Duration::from_micros(self.ring.newest_arrival.get().saturating_sub(arrival - 1)),
        }
    }
}

/// What one socket accepted. What an HTTP library took from us is not what the socket took.
#[derive(Debug)]
pub struct ConnectionMeter {
    base: Instant,
    bytes: Counter,
    /// One more than the micros since `base` at which the socket began to refuse; 0 while it accepts.
    blocked_since: Counter,
}

impl Default for ConnectionMeter {
    fn default() -> Self {
        Self::new()
    }
}

impl ConnectionMeter {
    /// A connection that has not been written to.
    pub fn new() -> Self {
        Self { base: Instant::now(), bytes: Counter::default(), blocked_since: Counter::default() }
    }

    /// The socket accepted `n` bytes.
    pub fn wrote(&self, n: usize, _now: Instant) {
        self.bytes.add(n as u64);
        if n > 0 {
            self.blocked_since.set(0);
        }
    }

    /// The socket refused bytes that were on offer. The first refusal since it last accepted any counts.
    pub fn blocked(&self, now: Instant) {
        let since = now.saturating_duration_since(self.base).as_micros() as u64 + 1;
        // One task writes a socket, so nobody else sets this between the look and the store.
        if self.blocked_since.get() == 0 {
            self.blocked_since.set(since);
        }
    }

    /// For how long the socket has accepted nothing while bytes were on offer; nothing while it accepts.
    pub fn blocked_for(&self, now: Instant) -> Option<Duration> {
        let since = Duration::from_micros(self.blocked_since.get().checked_sub(1)?);
        Some(now.saturating_duration_since(self.base).saturating_sub(since))
    }

    /// Bytes the socket accepted.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }
}

/// One accepted connection, as those who did not accept it need to know it.
#[derive(Debug)]
pub struct Connection {
    /// A number that no other connection of this process has.
    pub id: u64,
    /// Who is at the other end.
    pub peer: SocketAddr,
    /// Closes the connection, even while its socket is full and its body is not polled.
    pub cancel: CancellationToken,
    /// What its socket accepted.
    pub meter: ConnectionMeter,
}

impl Connection {
    /// A connection that was just accepted.
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
        meter.wrote(0, at(21));
        assert_eq!(meter.blocked_for(at(21)), Some(Duration::from_secs(11)));
        meter.wrote(100, at(22));
        assert_eq!(meter.blocked_for(at(90)), None);
        assert_eq!(meter.bytes(), 100);
    }
}
