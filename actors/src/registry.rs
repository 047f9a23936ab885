//! All measurements, in one value that the system owns.
//!
//! Live channels and clients register their meters. The registration is a guard; its drop adds the final values to the
//! totals in the same step, so that a total never decreases.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use media::StillCache;
use media::meter::{Connection, InputCounts};
use media::pump::PumpHandle;
use media::ring::Ring;
use parking_lot::Mutex;
use ractor::DerivedActorRef;
use tokio::sync::Mutex as AsyncMutex;
use uuid::Uuid;

use crate::plans::Target;

/// Upper bounds of the histograms, in seconds: from a fast channel change to the start time-out.
const DURATION_BUCKETS: [f64; 10] = [0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0, 15.0, 30.0];

/// The address to which a slow source is reported.
pub(crate) type ChannelPort = DerivedActorRef<SourceSlow>;

/// The address to which a stalled client is reported.
pub(crate) type ClientPort = DerivedActorRef<ClientStalled>;

/// The programme clock of this attempt's source fell behind the wall clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceSlow {
    pub(crate) attempt: u64,
    pub(crate) behind: Duration,
}

/// The client's socket accepted no byte for this long, although data was available.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientStalled {
    pub(crate) blocked: Duration,
}

/// The parts of a live channel that are read from outside.
pub(crate) struct WatchedChannel {
    pub(crate) target: Target,
    pub(crate) pump: PumpHandle,
    pub(crate) ring: Ring,
    pub(crate) port: ChannelPort,
    /// The last picture that somebody asked for.
    pub(crate) still: Arc<AsyncMutex<StillCache>>,
}

/// The parts of a client that are read from outside.
pub(crate) struct WatchedClient {
    pub(crate) connection: Arc<Connection>,
    pub(crate) port: ClientPort,
}

/// Histogram of durations.
#[derive(Clone, Debug, PartialEq)]
pub struct DurationCounts {
    /// Upper bounds in seconds, each with the number of durations of at most that length (cumulative).
    pub buckets: Vec<(f64, u64)>,
    /// Sum of all durations, in seconds.
    pub sum_seconds: f64,
    /// Number of durations.
    pub count: u64,
}

impl Default for DurationCounts {
    fn default() -> Self {
        Self { buckets: DURATION_BUCKETS.map(|it| (it, 0)).to_vec(), sum_seconds: 0.0, count: 0 }
    }
}

impl DurationCounts {
    fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        self.count += 1;
        self.sum_seconds += seconds;
        for (bound, count) in &mut self.buckets {
            *count += u64::from(seconds <= *bound);
        }
    }
}

/// One reading of all metrics. Totals never decrease while the process runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricsSnapshot {
    /// Leases in use, including those that are closing.
    pub leases: usize,
    /// Leases whose socket is closing.
    pub leases_closing: usize,
    /// Open upstream sockets, including those that are closing.
    pub sockets_open: usize,
    /// Sessions of users; each holds a seat.
    pub seats: usize,
    /// Programs that convert streams for output profiles.
    pub transcoders: u32,
    /// Live channels.
    pub channels: usize,
    /// Connected clients.
    pub clients: usize,
    /// Bytes written to rings, since start.
    pub bytes_in: u64,
    /// Segments and datagrams of sources, since start.
    pub input: InputCounts,
    /// Bytes passed to clients' connections, since start.
    pub bytes_out: u64,
    /// Overruns of clients, since start: the ring overwrote a client's position.
    pub misses: u64,
    /// Bytes that clients missed by overruns, since start.
    pub missed_bytes: u64,
    /// Failovers to another stream, since start.
    pub failovers: u64,
    /// Reconnects to the same stream, since start.
    pub reconnects: u64,
    /// Manual switches that succeeded, since start.
    pub switches: u64,
    /// Streams that failed to open, and sources lost, since start, by their cause as the log names it.
    pub losses_by_cause: BTreeMap<&'static str, u64>,
    /// Streams opened beside a silent one, since start.
    pub speculative_openings: u64,
    /// Live channels started, since start.
    pub channel_starts: u64,
    /// Joins refused because no slot was free, since start.
    pub refused_full: u64,
    /// Requests refused because a user had no free seat, since start.
    pub refused_seats: u64,
    /// Films and episodes that viewers began, since start.
    pub vod_starts: u64,
    /// Films and episodes that viewers watch, each with at most one connection to a provider.
    pub vod_sessions: usize,
    /// Bytes of films read from providers, since start.
    pub vod_bytes_in: u64,
    /// Bytes of films passed to clients' connections, since start.
    pub vod_bytes_out: u64,
    /// Bytes kept of the beginnings and ends of films.
    pub vod_cache_bytes: usize,
    /// Bytes held by all rings.
    pub ring_bytes: usize,
    /// Times from the first join of a live channel to its first packets in the ring.
    pub starts: DurationCounts,
    /// Gaps of reconnects and failovers: what viewers missed.
    pub gaps: DurationCounts,
}

impl MetricsSnapshot {
    /// Returns the number of streams that failed to open and of sources lost, since start.
    pub fn losses(&self) -> u64 {
        self.losses_by_cause.values().sum()
    }
}

#[derive(Default)]
struct Inner {
    channels: HashMap<u64, Arc<WatchedChannel>>,
    clients: HashMap<u64, Arc<WatchedClient>>,
    /// The rings of renditions, whose viewers are clients of channels.
    renditions: HashMap<u64, Ring>,
    last_rendition: u64,
    /// Totals of ended channels.
    bytes_in: u64,
    input: InputCounts,
    bytes_out: u64,
    misses: u64,
    missed_bytes: u64,
    starts: DurationCounts,
    gaps: DurationCounts,
    /// The causes are labels of the program, so their number is bounded.
    losses: BTreeMap<&'static str, u64>,
}

impl Inner {
    /// Adds what the viewers of a ring got to the totals.
    fn add_viewers(&mut self, ring: &Ring) {
        let meter = ring.meter();
        self.bytes_out += meter.bytes_out();
        self.misses += meter.overruns();
        self.missed_bytes += meter.overrun_bytes();
    }
}

/// All measurements.
#[derive(Default)]
pub(crate) struct Registry {
    inner: Mutex<Inner>,
    pub(crate) failovers: Counter,
    pub(crate) reconnects: Counter,
    pub(crate) switches: Counter,
    pub(crate) speculative_openings: Counter,
    pub(crate) channel_starts: Counter,
    pub(crate) refused_full: Counter,
    pub(crate) refused_seats: Counter,
    pub(crate) vod_sessions_started: Counter,
    pub(crate) vod_bytes_in: Counter,
    pub(crate) vod_bytes_out: Counter,
    /// Bytes of segments, which no ring counts.
    pub(crate) segment_bytes_out: Counter,
}

/// A counter that only increases.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Registry {
    /// Registers a live channel until the guard is dropped.
    pub(crate) fn channel(self: &Arc<Self>, serial: u64, watched: WatchedChannel) -> Registered {
        self.inner.lock().channels.insert(serial, Arc::new(watched));
        Registered { registry: self.clone(), what: RegisteredKind::Channel(serial) }
    }

    /// Returns the ring of a live channel.
    pub(crate) fn ring_of(&self, serial: u64) -> Option<Ring> {
        self.inner.lock().channels.get(&serial).map(|it| it.ring.clone())
    }

    /// Returns the newest live channel or preview with this UUID.
    pub(crate) fn channel_with(&self, uuid: Uuid) -> Option<Arc<WatchedChannel>> {
        let inner = self.inner.lock();
        let found = inner.channels.iter().filter(|(_, it)| it.target.uuid() == uuid);
        found.max_by_key(|(serial, _)| **serial).map(|(_, it)| Arc::clone(it))
    }

    /// Registers a client until the guard is dropped.
    pub(crate) fn client(self: &Arc<Self>, id: u64, watched: WatchedClient) -> Registered {
        self.inner.lock().clients.insert(id, Arc::new(watched));
        Registered { registry: self.clone(), what: RegisteredKind::Client(id) }
    }

    /// Registers the ring of a rendition until the guard is dropped.
    pub(crate) fn rendition(self: &Arc<Self>, ring: Ring) -> Registered {
        let mut inner = self.inner.lock();
        inner.last_rendition += 1;
        let number = inner.last_rendition;
        inner.renditions.insert(number, ring);
        drop(inner);
        Registered { registry: self.clone(), what: RegisteredKind::Rendition(number) }
    }

    pub(crate) fn channels(&self) -> Vec<Arc<WatchedChannel>> {
        self.inner.lock().channels.values().cloned().collect()
    }

    pub(crate) fn clients(&self) -> Vec<Arc<WatchedClient>> {
        self.inner.lock().clients.values().cloned().collect()
    }

    /// Kills the actor of a client, as a defect in it would.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn kill_client(&self, id: u64) {
        if let Some(client) = self.inner.lock().clients.get(&id) {
            client.port.get_cell().kill();
        }
    }

    /// Records the time from the first join of a live channel to its first packets.
    pub(crate) fn started_after(&self, took: Duration) {
        self.channel_starts.add_one();
        self.inner.lock().starts.add(took);
    }

    /// Records a gap that viewers saw.
    pub(crate) fn gap_of(&self, gap: Duration) {
        self.inner.lock().gaps.add(gap);
    }

    /// Records that a stream failed to open, or that its source was lost.
    pub(crate) fn source_failed(&self, cause: &'static str) {
        *self.inner.lock().losses.entry(cause).or_default() += 1;
    }

    /// Returns all metrics except leases, sockets and seats, which other values count.
    pub(crate) fn counts(&self) -> MetricsSnapshot {
        let inner = self.inner.lock();
        let mut counts = MetricsSnapshot {
            channels: inner.channels.len(),
            clients: inner.clients.len(),
            bytes_in: inner.bytes_in,
            input: inner.input,
            bytes_out: inner.bytes_out + self.segment_bytes_out.get(),
            misses: inner.misses,
            missed_bytes: inner.missed_bytes,
            failovers: self.failovers.get(),
            reconnects: self.reconnects.get(),
            switches: self.switches.get(),
            losses_by_cause: inner.losses.clone(),
            speculative_openings: self.speculative_openings.get(),
            channel_starts: self.channel_starts.get(),
            refused_full: self.refused_full.get(),
            refused_seats: self.refused_seats.get(),
            vod_starts: self.vod_sessions_started.get(),
            vod_bytes_in: self.vod_bytes_in.get(),
            vod_bytes_out: self.vod_bytes_out.get(),
            starts: inner.starts.clone(),
            gaps: inner.gaps.clone(),
            ..MetricsSnapshot::default()
        };
        for channel in inner.channels.values() {
            counts.bytes_in += channel.ring.meter().bytes_in();
            counts.input += channel.ring.meter().input();
        }
        for ring in inner.channels.values().map(|it| &it.ring).chain(inner.renditions.values()) {
            let meter = ring.meter();
            counts.bytes_out += meter.bytes_out();
            counts.misses += meter.overruns();
            counts.missed_bytes += meter.overrun_bytes();
            counts.ring_bytes += ring.usage().bytes;
        }
        counts
    }
}

enum RegisteredKind {
    Channel(u64),
    Client(u64),
    Rendition(u64),
}

/// A registration; its drop adds the final values to the totals.
pub(crate) struct Registered {
    registry: Arc<Registry>,
    what: RegisteredKind,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut inner = self.registry.inner.lock();
        match self.what {
            RegisteredKind::Channel(serial) => {
                if let Some(channel) = inner.channels.remove(&serial) {
                    inner.bytes_in += channel.ring.meter().bytes_in();
                    inner.input += channel.ring.meter().input();
                    inner.add_viewers(&channel.ring);
                }
            }
            RegisteredKind::Rendition(number) => {
                if let Some(ring) = inner.renditions.remove(&number) {
                    inner.add_viewers(&ring);
                }
            }
            RegisteredKind::Client(id) => drop(inner.clients.remove(&id)),
        }
    }
}
