//! Collects packets into chunks. It inspects every output packet once, for tables, counters, clocks and random-access
//! points.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

use crate::chunk::{Chunk, ChunkHead};
use crate::groups::{GroupLength, GroupMeter};
use crate::ts::clock::Unwrap;
use crate::ts::packet::{NULL_PID, PACKET, Packet, SYNC, packets};
use crate::ts::random_access::RandomAccess;
use crate::ts::table_reader::TableReader;
use crate::ts::tables::Tables;

/// Maximum length of a chunk: the whole packets that fit into 64 KiB.
pub const CHUNK_BYTES_MAX: usize = 64 * 1024 / PACKET * PACKET;
/// Longest time a chunk stays open. A shorter time wakes every viewer more often and costs CPU; a longer one
/// adds delay.
pub const CHUNK_TIME: Duration = Duration::from_millis(50);
/// Minimum time between the ends of two chunks that end with a batch of packets. Packets come in batches of whole frames,
/// and to wait for the next frame would only add delay.
const BATCH_CUT: Duration = Duration::from_millis(30);
/// Minimum age of a chunk that starts at a random-access point and is closed by the next one. A programme without video
/// can start at every PES packet, and some encoders flag every packet of the video, so cutting at each point would
/// create many small chunks.
const RANDOM_ACCESS_CUT: Duration = Duration::from_millis(25);
/// The same limit in bytes, for a burst, in which no time passes.
const RANDOM_ACCESS_CUT_BYTES: usize = 16 * 1024;
/// Size of the memory blocks that hold chunks, so that the small chunks of a radio stream do not occupy a
/// page each.
const BLOCK_BYTES: usize = 128 * 1024;
/// Packets in one filler chunk: as many as one datagram commonly carries.
const FILLER_PACKETS: usize = 7;
/// Maximum number of PIDs whose continuity counters a chunk stores. A real stream has some dozens.
const PIDS_MAX: usize = 256;

/// Collects packets into chunks. A chunk ends at a size limit, after a time limit, and before random-access
/// points.
#[derive(Debug)]
pub struct Chunker {
    buffer: BytesMut,
    open: Option<ChunkHead>,
    sequence: u64,
    discontinuity_next: bool,
    reader: TableReader,
    tables: Option<Arc<Tables>>,
    random_access: Option<RandomAccess>,
    clock: Unwrap,
    programme_time: Option<u64>,
    counters: Counters,
    groups: GroupMeter,
    /// Length of the last chunk, as an estimate for the next.
    last_bytes: usize,
    /// When a chunk last ended with a batch.
    batch_ended: Option<Instant>,
}

impl Default for Chunker {
    fn default() -> Self {
        Self::new()
    }
}

impl Chunker {
    /// Creates a chunker whose first chunk has the number 0.
    pub fn new() -> Self {
        Self {
            buffer: BytesMut::new(),
            open: None,
            sequence: 0,
            discontinuity_next: false,
            reader: TableReader::new(),
            tables: None,
            random_access: None,
            clock: Unwrap::pcr(),
            programme_time: None,
            counters: Counters::default(),
            groups: GroupMeter::default(),
            last_bytes: 0,
            batch_ended: None,
        }
    }

    /// Adds one packet and returns the chunk that ended before it, if one did. Bytes without the sync byte
    /// are ignored.
    pub fn push(&mut self, packet: Packet<'_>, now: Instant) -> Option<Chunk> {
        if !packet.has_sync() {
            return None;
        }
        let is_valid = packet.is_valid();
        let random_access = is_valid && self.random_access.is_some_and(|it| it.is_start(packet));
        let done = if self.must_close(random_access, now) { self.flush() } else { None };
        if is_valid {
            self.read_clock(packet);
        }
        if self.open.is_none() {
            self.open(random_access, now);
        }
        self.buffer.extend_from_slice(packet.bytes());
        if is_valid {
            self.counters.packet(packet);
            if self.reader.packet(packet) {
                self.read_tables();
            }
        }
        done
    }

    /// Closes and returns the open chunk, if there is one.
    pub fn flush(&mut self) -> Option<Chunk> {
        let head = self.open.take()?;
        self.last_bytes = self.buffer.len();
        Some(Chunk { head, bytes: self.buffer.split().freeze() })
    }

    /// Closes and returns the open chunk after the last packet of a batch, unless another batch has just ended.
    pub fn end_batch(&mut self, now: Instant) -> Option<Chunk> {
        if self.open.is_none() || self.batch_ended.is_some_and(|it| now < it + BATCH_CUT) {
            return None;
        }
        self.batch_ended = Some(now);
        self.flush()
    }

    /// Creates a chunk of null packets. The open chunk must have been flushed, because chunks are numbered in
    /// order.
    pub fn filler(&mut self, now: Instant) -> Chunk {
        debug_assert!(self.open.is_none(), "the open chunk is flushed before filler");
        let head = ChunkHead { filler: true, discontinuity: false, ..self.head(false, now) };
        Chunk { head, bytes: Bytes::from_static(&FILLER) }
    }

    /// Returns the number of the next chunk. The open chunk must have been flushed.
    pub(crate) fn next_sequence(&self) -> u64 {
        debug_assert!(self.open.is_none(), "the open chunk is flushed before");
        self.sequence
    }

    /// Continues after a chunk of another ring. The open chunk must have been flushed.
    pub(crate) fn adopt(&mut self, chunk: &Chunk) {
        let head = chunk.head();
        if self.next_sequence() != head.sequence || self.tables.is_none() {
            self.counters.continue_from(&head.counters);
            self.reader = head.tables.as_deref().map(TableReader::from_tables).unwrap_or_default();
            self.read_tables();
            self.tables.clone_from(&head.tables);
            self.clock.continue_from(head.programme_time);
            self.programme_time = head.programme_time;
        }
        for packet in packets(&chunk.bytes).map(Packet::new).filter(|it| it.is_valid()) {
            self.read_clock(packet);
            self.counters.packet(packet);
            if self.reader.packet(packet) {
                self.read_tables();
            }
        }
        self.sequence = head.sequence + 1;
        self.discontinuity_next = false;
    }

    /// Marks the next chunk, which starts with the next packet, as a discontinuity.
    pub fn discontinuity_next(&mut self) {
        self.discontinuity_next = true;
        self.groups.interrupt();
    }

    /// Begins to measure the distance of the random-access points of a stream of which this is known.
    pub(crate) fn measure_groups(&mut self, known: GroupLength) {
        self.groups = GroupMeter::new(known);
    }

    /// Returns what is known of the distance of the random-access points.
    pub(crate) fn group(&self) -> GroupLength {
        self.groups.length()
    }

    /// Returns the time by which the open chunk must be flushed.
    pub fn deadline(&self) -> Option<Instant> {
        self.open.as_ref().map(|it| it.arrived + CHUNK_TIME)
    }

    /// Returns the tables that are in force after the last packet.
    pub fn tables(&self) -> Option<&Arc<Tables>> {
        self.tables.as_ref()
    }

    /// Returns the number of continuity errors that no packet declared.
    pub fn n_continuity_errors(&self) -> u64 {
        self.counters.n_errors
    }

    fn must_close(&self, random_access: bool, now: Instant) -> bool {
        let Some(open) = &self.open else { return false };
        let bytes = self.buffer.len();
        if self.discontinuity_next || now >= open.arrived + CHUNK_TIME || bytes + PACKET > CHUNK_BYTES_MAX {
            return true;
        }
        let is_small = now < open.arrived + RANDOM_ACCESS_CUT && bytes < RANDOM_ACCESS_CUT_BYTES;
        random_access && !(open.random_access && is_small)
    }

    fn open(&mut self, random_access: bool, now: Instant) {
        let room = (self.last_bytes + self.last_bytes / 4).clamp(8 * 1024, CHUNK_BYTES_MAX);
        if self.buffer.capacity() < room {
            self.buffer.reserve(BLOCK_BYTES);
        }
        let discontinuity = std::mem::take(&mut self.discontinuity_next);
        self.groups.chunk(self.programme_time, random_access);
        self.open = Some(ChunkHead { discontinuity, ..self.head(random_access, now) });
    }

    fn head(&mut self, random_access: bool, now: Instant) -> ChunkHead {
        let sequence = self.sequence;
        self.sequence += 1;
        ChunkHead {
            sequence,
            arrived: now,
            programme_time: self.programme_time,
            random_access,
            discontinuity: false,
            filler: false,
            tables: self.tables.clone(),
            counters: self.counters.snapshot(),
        }
    }

    fn read_clock(&mut self, packet: Packet<'_>) {
        let Some(pcr) = packet.pcr() else { return };
        if self.tables.as_ref().is_some_and(|it| it.pmt.pcr_pid == packet.pid()) {
            self.programme_time = Some(self.clock.unwrap(pcr));
        }
    }

    fn read_tables(&mut self) {
        let tables = self.reader.tables().cloned().map(Arc::new);
        let pcr_pid = |it: &Option<Arc<Tables>>| it.as_ref().map(|it| it.pmt.pcr_pid);
        if pcr_pid(&tables) != pcr_pid(&self.tables) {
            self.clock.reset();
            self.programme_time = None;
        }
        self.random_access = tables.as_deref().and_then(RandomAccess::new);
        self.tables = tables;
    }
}

static FILLER: [u8; FILLER_PACKETS * PACKET] = {
    let mut bytes = [0xFF; FILLER_PACKETS * PACKET];
    let mut index = 0;
    while index < FILLER_PACKETS {
        let at = index * PACKET;
        bytes[at] = SYNC;
        bytes[at + 1] = (NULL_PID >> 8) as u8;
        bytes[at + 2] = (NULL_PID & 0xFF) as u8;
        bytes[at + 3] = 0x10;
        index += 1;
    }
    bytes
};

/// The last continuity counter of every PID.
#[derive(Debug)]
struct Counters {
    /// Indexed by PID; [`UNSEEN`] before the first packet of a PID.
    last: Box<[u8]>,
    /// PIDs with at least one packet, in ascending order.
    pids: Vec<u16>,
    n_errors: u64,
}

const UNSEEN: u8 = 0xFF;

impl Default for Counters {
    fn default() -> Self {
        Self { last: vec![UNSEEN; usize::from(NULL_PID) + 1].into(), pids: Vec::new(), n_errors: 0 }
    }
}

impl Counters {
    fn packet(&mut self, packet: Packet<'_>) {
        let (pid, cc) = (packet.pid(), packet.cc());
        if pid == NULL_PID {
            return;
        }
        let before = std::mem::replace(&mut self.last[usize::from(pid)], cc);
        if before == UNSEEN {
            if self.pids.len() < PIDS_MAX
                && let Err(index) = self.pids.binary_search(&pid)
            {
                self.pids.insert(index, pid);
            }
            return;
        }
        // A packet may be sent twice, and a packet without payload does not increase the counter.
        let fits = cc == before || (packet.has_payload() && cc == (before + 1) & 0x0F);
        if !fits && !packet.discontinuity() {
            self.n_errors += 1;
        }
    }

    /// Continues a stream in which these were the last counters.
    fn continue_from(&mut self, counters: &[(u16, u8)]) {
        for pid in self.pids.drain(..) {
            self.last[usize::from(pid)] = UNSEEN;
        }
        for (pid, cc) in counters.iter().take(PIDS_MAX) {
            if let Some(last) = self.last.get_mut(usize::from(*pid)).filter(|_| *pid != NULL_PID) {
                *last = cc & 0x0F;
                self.pids.push(*pid);
            }
        }
    }

    fn snapshot(&self) -> Arc<[(u16, u8)]> {
        self.pids.iter().map(|pid| (*pid, self.last[usize::from(*pid)])).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ts::build::{AUDIO_PID, Builder, VIDEO_PID};
    use crate::ts::packet::{PacketBytes, discontinuity_packet};

    /// Pushes packets at these times in milliseconds and returns all chunks.
    fn chunks(packets: impl IntoIterator<Item = (u64, PacketBytes)>) -> Vec<Chunk> {
        let start = Instant::now();
        let mut chunker = Chunker::new();
        let mut all: Vec<Chunk> = packets
            .into_iter()
            .filter_map(|(millis, packet)| {
                chunker.push(Packet::new(&packet), start + Duration::from_millis(millis))
            })
            .collect();
        all.extend(chunker.flush());
        all
    }

    fn lengths(chunks: &[Chunk]) -> Vec<usize> {
        chunks.iter().map(|it| it.len() / PACKET).collect()
    }

    #[test]
    fn a_chunk_ends_at_its_size() {
        let mut builder = Builder::video();
        let all = chunks((0..1000).map(|_| (0, builder.data(VIDEO_PID))));
        assert_eq!(lengths(&all), [348, 348, 304]);
    }

    #[test]
    fn a_chunk_ends_after_its_time() {
        let mut builder = Builder::video();
        let all = chunks((0..100).map(|it| (it * 10, builder.data(VIDEO_PID))));
        assert!(lengths(&all).iter().all(|it| *it == 5));
    }

    #[test]
    fn a_chunk_ends_with_a_frame_but_not_with_each_of_many_short_ones() {
        for (frame_ms, frames_per_chunk) in [(40, 1), (20, 2), (10, 3)] {
            let mut builder = Builder::video();
            let mut chunker = Chunker::new();
            let now = Instant::now();
            let mut ended = Vec::new();
            for frame in 0..=12 {
                let at = now + Duration::from_millis(frame * frame_ms);
                for _ in 0..20 {
                    ended.extend(chunker.push(Packet::new(&builder.data(VIDEO_PID)), at));
                }
                ended.extend(chunker.end_batch(at));
            }
            // The first one ends at once.
            assert_eq!(lengths(&ended)[0], 20);
            assert!(ended.len() > 12 / frames_per_chunk);
            assert!(lengths(&ended)[1..].iter().all(|it| *it == 20 * frames_per_chunk), "{ended:?}");
        }
    }

    #[test]
    fn a_chunk_ends_before_a_random_access_point_and_stores_the_state_before_its_first_packet() {
        let mut builder = Builder::video();
        let mut packets = builder.tables();
        packets.extend([builder.data(AUDIO_PID), builder.key(77), builder.data(VIDEO_PID)]);
        packets.extend([builder.data(AUDIO_PID), builder.key(27_000_077), builder.data(VIDEO_PID)]);
        let all = chunks(packets.into_iter().enumerate().map(|(index, it)| (index as u64 * 9, it)));
        assert_eq!(lengths(&all), [3, 3, 2]);
        let heads: Vec<_> = all.iter().map(Chunk::head).collect();
        assert_eq!(heads.iter().map(|it| it.sequence).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(heads.iter().map(|it| it.random_access).collect::<Vec<_>>(), [false, true, true]);
        let times: Vec<_> = heads.iter().map(|it| it.programme_time).collect();
        assert_eq!(times, [None, Some(77), Some(27_000_077)]);
        assert!(heads[0].tables.is_none() && heads[1].tables.is_some());
        assert_eq!(*heads[0].counters, []);
        assert_eq!(*heads[1].counters, [(0, 0), (0x100, 0), (AUDIO_PID, 0)]);
        assert_eq!(*heads[2].counters, [(0, 0), (0x100, 0), (VIDEO_PID, 1), (AUDIO_PID, 1)]);
    }

    #[test]
    fn chunks_without_video_are_cut_by_time_and_start_at_pes_starts() {
        let mut builder = Builder::radio();
        let mut packets: Vec<(u64, PacketBytes)> = builder.tables().into_iter().map(|it| (0, it)).collect();
        // A PES packet of two transport stream packets every 24 ms.
        for frame in 0..100 {
            packets.push((frame * 24, builder.pes(AUDIO_PID, &[])));
            packets.push((frame * 24 + 12, builder.data(AUDIO_PID)));
        }
        let all = chunks(packets);
        assert!(all[1..].iter().all(|it| it.head().random_access));
        assert_eq!(lengths(&all[..4]), [2, 4, 4, 4]);
    }

    #[test]
    fn a_random_access_flag_on_every_packet_does_not_make_every_packet_a_chunk() {
        let mut builder = Builder::video();
        let mut packets: Vec<(u64, PacketBytes)> = builder.tables().into_iter().map(|it| (0, it)).collect();
        // A packet per millisecond, then a burst.
        packets.extend((0..200).map(|it| (it, builder.key(it * 27_000))));
        packets.extend((0..870).map(|_| (200, builder.key(200 * 27_000))));
        let all = chunks(packets);
        assert!(all[1..].iter().all(|it| it.head().random_access));
        assert_eq!(lengths(&all[..9]), [2, 25, 25, 25, 25, 25, 25, 25, 25]);
        assert!(all[9..].iter().rev().skip(1).all(|it| it.len() > 16 * 1024), "{:?}", lengths(&all));
    }

    #[test]
    fn a_declared_discontinuity_starts_a_marked_chunk() {
        let mut builder = Builder::video();
        let mut chunker = Chunker::new();
        let now = Instant::now();
        assert!(chunker.push(Packet::new(&builder.data(VIDEO_PID)), now).is_none());
        chunker.discontinuity_next();
        let before = chunker.push(Packet::new(&builder.data(VIDEO_PID)), now).unwrap();
        let after = chunker.flush().unwrap();
        assert!(!before.head().discontinuity && after.head().discontinuity);
    }

    #[test]
    fn undeclared_breaks_of_a_counter_are_counted() {
        let mut builder = Builder::video();
        let mut chunker = Chunker::new();
        let [first, _lost, third] = [0; 3].map(|_| builder.data(VIDEO_PID));
        for packet in [&first, &first, &third] {
            chunker.push(Packet::new(packet), Instant::now());
        }
        assert_eq!(chunker.n_continuity_errors(), 1);
        chunker.push(Packet::new(&discontinuity_packet(VIDEO_PID, 9)), Instant::now());
        assert_eq!(chunker.n_continuity_errors(), 1);
    }

    proptest! {
        #[test]
        fn chunks_together_are_the_packets_that_were_pushed(
            all in prop::collection::vec((0..30_u64, 0..6_u8, prop::collection::vec(any::<u8>(), PACKET)), 0..200),
        ) {
            let mut builder = Builder::video();
            let mut now = 0;
            let mut packets = Vec::new();
            for (millis, kind, bytes) in all {
                now += millis;
                let new = match kind {
                    0 => builder.tables(),
                    1 => vec![builder.key(now * 27_000)],
                    2 => vec![builder.pes(AUDIO_PID, &[])],
                    3 => vec![builder.data(AUDIO_PID)],
                    4 => vec![builder.data(VIDEO_PID)],
                    _ => vec![bytes.try_into().unwrap()], // Arbitrary bytes.
                };
                packets.extend(new.into_iter().map(|it| (now, it)));
            }
            let chunks = chunks(packets.clone());
            let out: Vec<u8> = chunks.iter().flat_map(|it| it.bytes()).collect();
            let whole = packets.iter().filter(|it| it.1[0] == SYNC);
            prop_assert_eq!(out, whole.flat_map(|it| it.1).collect::<Vec<u8>>());
            for (index, chunk) in chunks.iter().enumerate() {
                prop_assert_eq!(chunk.head().sequence, index as u64);
                prop_assert!(chunk.len() <= CHUNK_BYTES_MAX && chunk.len() % PACKET == 0 && chunk.len() > 0);
            }
        }
    }
}
