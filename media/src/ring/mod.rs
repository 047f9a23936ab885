//! The recent past of a live channel: one writer, many readers (tails), bounded in bytes and in time.
//!
//! The writer never waits for a tail. A tail that falls behind is overrun: its meter counts the loss, and it
//! continues at the newest random-access point. Bytes are shared between tails and never copied; a tail
//! stores only a sequence number and a slot for its waker.

mod budget;
mod chunks;
mod end;
mod memory_files;
mod pieces;
mod settings;
mod shared;
mod state;
mod tail;
#[cfg(test)]
mod tests;
mod wake;

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;

use parking_lot::Mutex;
use tokio::time::Instant;

pub use self::budget::Budget;
pub(crate) use self::chunks::ReadChunk;
pub use self::chunks::{AheadError, ChunkReader};
pub use self::end::EndReason;
use self::memory_files::{FileRange, MemoryFiles, TAILS_MIN};
pub use self::pieces::{PIECES_MAX, Pieces};
pub use self::settings::RingSettings;
use self::shared::RingShared;
pub use self::state::RingUsage;
pub(crate) use self::state::StoredGroup;
use self::state::{Pressure, RingState};
pub use self::tail::Tail;
use crate::chunk::Chunk;
use crate::chunker::Chunker;
use crate::groups::GroupLength;
pub use crate::join_point::JoinPoint;
use crate::meter::{InputCounts, RingMeter};
use crate::ts::packet::{PACKET, Packet, PacketSink, packets};
use crate::ts::tables::Tables;

/// Creates a ring whose bytes count towards `budget`.
pub fn ring(settings: RingSettings, budget: &Budget) -> (Writer, Ring) {
    let shared = Arc::new(RingShared {
        settings,
        state: Mutex::new(RingState::new()),
        n_tails: AtomicUsize::new(0),
        meter: Arc::new(RingMeter::new()),
        budget: budget.clone(),
    });
    let weak: Weak<RingShared> = Arc::downgrade(&shared);
    budget.register(weak);
    let writer = Writer {
        shared: shared.clone(),
        chunker: Chunker::new(),
        memory_files: MemoryFiles::new(),
        closed: Vec::new(),
        files: Vec::new(),
        to_wake: Vec::new(),
    };
    (writer, Ring { shared })
}

/// The writer of a ring. Dropping it ends the ring with [`EndReason::Closed`].
pub struct Writer {
    shared: Arc<RingShared>,
    chunker: Chunker,
    memory_files: MemoryFiles,
    /// Chunks closed by the current call. Stored to reuse the allocation.
    closed: Vec<Chunk>,
    /// The places of these chunks in memory files. Stored to reuse the allocation.
    files: Vec<Option<FileRange>>,
    /// Tails to wake after the current call. Stored to reuse the allocation.
    to_wake: Vec<Waker>,
}

impl Writer {
    /// Appends whole packets that arrived at `now`. Chunks that end with them become readable at once, the
    /// rest when it is flushed, at [`Writer::deadline`] at the latest.
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
        self.publish(now);
    }

    /// Marks the chunk that starts with the next packet as a discontinuity.
    pub fn discontinuity_next(&mut self) {
        self.chunker.discontinuity_next();
    }

    /// Begins to measure the distance of the random-access points of a source of which this is known.
    pub(crate) fn measure_groups(&mut self, known: GroupLength) {
        self.chunker.measure_groups(known);
    }

    /// Returns what is known of the distance of the random-access points of the present source.
    pub(crate) fn group(&self) -> GroupLength {
        self.chunker.group()
    }

    /// Lets tails start although no random-access point of the present source was written.
    pub(crate) fn allow_joins(&mut self) {
        self.shared.state.lock().allow_joins();
    }

    /// Returns the number of the next chunk.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.chunker.next_sequence()
    }

    /// Appends a chunk of another ring as it is, with its number and its head. It becomes readable with the next
    /// [`Writer::publish`]. If numbers are missing before it, what is stored is dropped, and tails that are not at the end
    /// are overrun; `n_lost` are the bytes that are missing there.
    ///
    /// The number of the chunk must not be below [`Writer::next_sequence`].
    pub(crate) fn adopt(&mut self, chunk: Chunk, n_lost: u64, now: Instant) {
        self.flush(now);
        let sequence = chunk.head().sequence;
        if sequence != self.chunker.next_sequence() {
            let mut state = self.shared.state.lock();
            let before = state.memory();
            state.restart_at(sequence, n_lost);
            self.shared.budget.adjust(before, state.memory());
        }
        self.chunker.adopt(&chunk);
        self.closed.push(chunk);
    }

    /// Marks the end of a source: a tail that has not started waits for a chunk of the next one.
    pub fn begin_gap(&mut self) {
        self.shared.state.lock().begin_gap();
    }

    /// Adds what was counted of a source.
    pub(crate) fn count_input(&self, counts: InputCounts) {
        if counts != InputCounts::default() {
            self.shared.meter.count_input(counts);
        }
    }

    /// Returns the maximum number of bytes that the ring stores, apart from the newest group of pictures.
    pub fn bytes_max(&self) -> usize {
        self.shared.settings.bytes
    }

    /// Keeps chunks longer, because their newest packet is due only at `due`: a viewer that reads at the rate of the
    /// programme still needs them. The limits in bytes stay.
    pub fn keep_longer(&mut self, due: Instant, now: Instant) {
        self.shared.state.lock().keep_longer(due, now);
    }

    /// Makes the collected packets readable.
    pub fn flush(&mut self, now: Instant) {
        self.closed.extend(self.chunker.flush());
        self.publish(now);
    }

    /// Makes the collected packets readable, and ends the ring with this reason.
    pub fn end(mut self, end: EndReason) {
        self.flush(Instant::now());
        self.shared.end(end);
    }

    /// Returns the time by which the collected packets must be flushed; `None` if there are none.
    pub fn deadline(&self) -> Option<Instant> {
        self.chunker.deadline()
    }

    /// Returns the tables that are in force after the last packet.
    pub fn tables(&self) -> Option<&Arc<Tables>> {
        self.chunker.tables()
    }

    /// Makes the chunks readable that have ended.
    pub fn publish(&mut self, now: Instant) {
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
        // Before the lock, because it copies.
        self.files.clear();
        if shared.n_tails.load(Ordering::Relaxed) >= TAILS_MIN {
            self.files.extend(self.closed.iter().map(|it| self.memory_files.append(it)));
        } else {
            self.memory_files.drop_all();
            self.files.resize(self.closed.len(), None);
        }
        {
            let mut state = shared.state.lock();
            if state.end.is_some() {
                self.closed.clear();
                return;
            }
            let before = state.memory();
            state.drop_files_before(self.memory_files.kept_from());
            for (chunk, file) in self.closed.drain(..).zip(self.files.drain(..)) {
                state.push(chunk, file);
                state.evict(&shared.settings, now, Pressure::NONE);
            }
            shared.budget.adjust(before, state.memory());
            state.take_wakers(&mut self.to_wake);
        }
        // Outside the lock, because the woken tasks take it at once.
        wake::wake(&mut self.to_wake);
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
        let Self { writer, now, n_packets } = self.end();
        writer.publish(now);
        n_packets
    }

    /// Ends the batch and returns the number of packets. Its chunks become readable with the next [`Writer::publish`],
    /// so that something can be done before.
    pub fn close(self) -> usize {
        self.end().n_packets
    }

    fn end(self) -> Self {
        if self.n_packets > 0 {
            self.writer.closed.extend(self.writer.chunker.end_batch(self.now));
        }
        self
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
    shared: Arc<RingShared>,
}

impl Ring {
    /// Creates a tail. It selects its first chunk by `join_point` when it is first polled. `guard` is dropped with
    /// the tail.
    pub fn tail(&self, join_point: JoinPoint, guard: Option<Box<dyn Any + Send + Sync>>) -> Tail {
        Tail::new(self.shared.clone(), join_point, guard, true)
    }

    /// Creates a tail of no viewer: the counters of the ring do not include what it reads.
    pub fn uncounted_tail(&self, join_point: JoinPoint) -> Tail {
        Tail::new(self.shared.clone(), join_point, None, false)
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

    /// Returns the newest random-access points with what follows them, at most two, the newest first. Gaps and filler hide
    /// none of them.
    pub(crate) fn newest_groups(&self) -> Vec<StoredGroup> {
        self.shared.state.lock().newest_groups()
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
