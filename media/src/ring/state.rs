//! The state of a ring behind its lock: the chunks, the points at which tails can start, and the wakers of
//! waiting tails.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::end::EndReason;
use super::memory_files::FileRange;
use super::settings::RingSettings;
use crate::chunk::Chunk;
use crate::groups::PICTURE_WAIT_MAX;
use crate::join_point::{JoinPoint, RandomAccessPoints};
use crate::ts::tables::Tables;

/// The most bytes that count as lost at once when a ring continues with another number.
const LOST_BYTES_MAX: u64 = 1 << 40;

/// The usage of a ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RingUsage {
    /// Memory of the stored chunks and of what is stored for each of them.
    pub bytes: usize,
    /// Bytes of the newest chunks that are stored a second time, in memory files.
    pub file_bytes: usize,
    /// Time between the arrivals of the oldest and the newest chunk.
    pub seconds: f64,
    /// Chunks stored.
    pub chunks: usize,
    /// Number of the next chunk to be written.
    pub head_sequence: u64,
    /// Number of the oldest stored chunk.
    pub tail_sequence: u64,
}

/// A stored chunk.
pub(super) struct StoredChunk {
    pub(super) chunk: Chunk,
    /// Bytes, without filler, that were written before it.
    pub(super) offset: u64,
    /// Memory of the chunk and of its head.
    memory: usize,
    /// The same bytes in a memory file.
    pub(super) file: Option<FileRange>,
}

impl StoredChunk {
    /// Returns the number of bytes that it occupies in a memory file.
    fn file_bytes(&self) -> usize {
        if self.file.is_some() { self.chunk.len() } else { 0 }
    }
}

/// The bytes of a group beyond this are left out. A picture of 100 Mbit/s video has less than 4 MB.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// A random-access point and the chunks after it, up to the next one, a discontinuity or filler.
pub(crate) struct StoredGroup {
    /// Number of the first chunk.
    pub(crate) sequence: u64,
    /// The tables in force before it.
    pub(crate) tables: Option<Arc<Tables>>,
    pub(crate) chunks: Vec<Bytes>,
    /// Whether the next random-access point follows: then its last picture is whole.
    pub(crate) is_closed: bool,
}

/// The demands of a budget on a ring.
#[derive(Clone, Copy)]
pub(super) struct Pressure {
    /// Bytes to free.
    pub(super) wanted: usize,
    /// The newest group of pictures is kept up to this many bytes.
    pub(super) gop_bytes: usize,
}

impl Pressure {
    /// Only the limits of the ring itself count.
    pub(super) const NONE: Self = Self { wanted: 0, gop_bytes: usize::MAX };
}

pub(super) struct RingState {
    chunks: VecDeque<StoredChunk>,
    /// Number of the next chunk to be written.
    next: u64,
    /// Memory of the stored chunks.
    bytes: usize,
    /// Bytes stored in memory files.
    file_bytes: usize,
    /// Bytes written, without filler.
    written: u64,
    points: RandomAccessPoints,
    /// Number of the chunk that starts the newest group of pictures, while it is stored, or starts what is left of the
    /// group after it was cut for the budget. Filler after it changes nothing.
    newest_gop: Option<u64>,
    newest_filler: Option<u64>,
    /// Number of the first chunk after the newest gap between two sources.
    after_gap: u64,
    /// When the present source began, until its first random-access point is written.
    without_picture_since: Option<Instant>,
    /// Whether any random-access point was ever written. Nobody waits for those of a stream that has none.
    has_had_points: bool,
    /// Chunks are kept this much longer than the settings require …
    lead: Duration,
    /// … until the newest of them is due.
    due: Option<Instant>,
    pub(super) end: Option<EndReason>,
    wakers: Vec<Option<Waker>>,
    free_slots: Vec<usize>,
}

impl RingState {
    pub(super) fn new() -> Self {
        Self {
            chunks: VecDeque::new(),
            next: 0,
            bytes: 0,
            file_bytes: 0,
            written: 0,
            points: RandomAccessPoints::default(),
            newest_gop: None,
            newest_filler: None,
            after_gap: 0,
            without_picture_since: None,
            has_had_points: false,
            lead: Duration::ZERO,
            due: None,
            end: None,
            wakers: Vec::new(),
            free_slots: Vec::new(),
        }
    }

    /// Returns the bytes that count towards the budget.
    pub(super) fn memory(&self) -> usize {
        self.bytes + self.file_bytes
    }

    /// Returns the number of the oldest stored chunk, or of the next chunk if the ring is empty.
    pub(super) fn oldest(&self) -> u64 {
        self.next - self.chunks.len() as u64
    }

    /// Returns the number of bytes, without filler, that were written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn get(&self, sequence: u64) -> Option<&StoredChunk> {
        self.chunks.get(usize::try_from(sequence.checked_sub(self.oldest())?).ok()?)
    }

    /// Returns whether this is the number of the next chunk to be written.
    pub(super) fn is_next(&self, sequence: u64) -> bool {
        sequence == self.next
    }

    /// Drops the memory files of the chunks before this one, and returns the number of bytes freed.
    pub(super) fn drop_files_before(&mut self, sequence: u64) -> usize {
        let before = self.file_bytes;
        let n_before = sequence.saturating_sub(self.oldest()).min(self.chunks.len() as u64) as usize;
        // Only the newest chunks have files, without a break.
        for stored in self.chunks.range_mut(..n_before).rev().take_while(|it| it.file.is_some()) {
            self.file_bytes -= stored.file_bytes();
            stored.file = None;
        }
        before - self.file_bytes
    }

    pub(super) fn push(&mut self, chunk: Chunk, file: Option<FileRange>) {
        let head = chunk.head();
        debug_assert_eq!(head.sequence, self.next, "chunks come in order");
        let offset = self.written;
        let before = self.chunks.back().map(|it| it.chunk.head());
        let memory = size_of::<StoredChunk>() + chunk.len() + head.memory(before);
        self.next += 1;
        self.bytes += memory;
        if head.filler {
            self.newest_filler = Some(head.sequence);
            self.points.clear();
        } else {
            self.written += chunk.len() as u64;
            if head.discontinuity {
                self.without_picture_since = Some(head.arrived);
            }
            if head.random_access {
                (self.without_picture_since, self.has_had_points) = (None, true);
                self.newest_gop = Some(head.sequence);
                self.points.push(head.sequence, head.arrived);
            }
        }
        let stored = StoredChunk { chunk, offset, memory, file };
        self.file_bytes += stored.file_bytes();
        self.chunks.push_back(stored);
    }

    /// Drops all chunks, and continues with this number after a loss.
    pub(super) fn restart_at(&mut self, sequence: u64, n_lost: u64) {
        self.chunks.clear();
        (self.bytes, self.file_bytes) = (0, 0);
        self.written = self.written.saturating_add(n_lost.min(LOST_BYTES_MAX));
        self.points.clear();
        (self.newest_gop, self.newest_filler) = (None, None);
        (self.next, self.after_gap) = (sequence, sequence);
        self.without_picture_since = None;
    }

    /// Keeps chunks longer, until the newest is due at `due`.
    pub(super) fn keep_longer(&mut self, due: Instant, now: Instant) {
        self.lead = due.saturating_duration_since(now);
        self.due = Some(due);
    }

    /// Returns the time for which chunks are kept.
    fn kept_for(&self, settings: &RingSettings, now: Instant) -> Duration {
        let has_undue = self.due.is_some_and(|it| now <= it + settings.seconds);
        if has_undue { settings.seconds + self.lead } else { settings.seconds }
    }

    /// Removes the oldest chunks while the limits are exceeded, and further chunks as `pressure` demands. Returns the
    /// number of bytes freed.
    ///
    /// Never removes the last chunk. Removes chunks of the newest group of pictures only above the limits for the
    /// group.
    pub(super) fn evict(&mut self, settings: &RingSettings, now: Instant, pressure: Pressure) -> usize {
        let kept_for = self.kept_for(settings, now);
        let mut freed = 0;
        while self.chunks.len() > 1
            && let Some(oldest) = self.chunks.front()
        {
            let head = oldest.chunk.head();
            let is_surplus = freed < pressure.wanted
                || self.bytes > settings.bytes
                || now.saturating_duration_since(head.arrived) > kept_for;
            let is_newest_gop = self.newest_gop.is_some_and(|it| head.sequence >= it);
            let is_long_gop = self.bytes > settings.gop_bytes;
            if !is_surplus || (is_newest_gop && !is_long_gop && self.bytes <= pressure.gop_bytes) {
                break;
            }
            let n_file_bytes = oldest.file_bytes();
            freed += oldest.memory + n_file_bytes;
            self.bytes -= oldest.memory;
            self.file_bytes -= n_file_bytes;
            if is_newest_gop {
                self.newest_gop = (!is_long_gop).then_some(head.sequence + 1);
            }
            self.chunks.pop_front();
        }
        self.points.remove_before(self.oldest());
        freed
    }

    /// Ends the source of the chunks so far: tails that have not started do not start at them any more.
    pub(super) fn begin_gap(&mut self) {
        self.after_gap = self.next;
        self.points.clear();
    }

    /// Lets tails start although no random-access point of the present source was written.
    pub(super) fn allow_joins(&mut self) {
        self.without_picture_since = None;
    }

    /// Returns whether the picture of the present source is awaited, while other streams of it are written.
    fn awaits_picture(&self, now: Instant) -> bool {
        let awaits = |since| now.saturating_duration_since(since) < PICTURE_WAIT_MAX;
        self.has_had_points
            && self.points.newest().is_none()
            && self.without_picture_since.is_some_and(awaits)
    }

    /// Returns the number of the oldest chunk that neither filler nor a gap follows.
    pub(super) fn first_joinable(&self) -> Option<u64> {
        let after_filler = self.newest_filler.map_or(0, |it| it + 1);
        Some(self.oldest().max(after_filler).max(self.after_gap)).filter(|it| *it < self.next)
    }

    /// Returns the first chunk of a tail with this join point; `None` if the tail has to wait. `is_viewer`: it waits for the
    /// picture as well.
    pub(super) fn first_chunk(&self, join_point: JoinPoint, is_viewer: bool, now: Instant) -> Option<u64> {
        let first = self.first_joinable()?;
        match join_point {
            JoinPoint::Live { .. } if is_viewer && self.awaits_picture(now) => None,
            JoinPoint::Live { behind } => Some(self.points.live(behind, now).unwrap_or(first)),
            JoinPoint::Oldest => Some(self.points.oldest().unwrap_or(first)),
            JoinPoint::At(sequence) => Some(sequence.max(first)).filter(|it| *it < self.next),
        }
    }

    /// Returns the chunk at which an overrun tail continues: the newest random-access point, otherwise the
    /// chunk after the newest filler, otherwise that filler.
    pub(super) fn after_overrun(&self) -> u64 {
        let filler = self.newest_filler.filter(|it| *it >= self.after_gap);
        let first = self.first_joinable().or(filler);
        self.points.newest().or(first).unwrap_or(self.next).max(self.oldest())
    }

    /// Returns the newest groups, at most two, the newest first.
    pub(super) fn newest_groups(&self) -> Vec<StoredGroup> {
        let is_point = |at: &usize| self.chunks[*at].chunk.head().random_access;
        let newest = (0..self.chunks.len()).rev().filter(is_point).take(2);
        let mut until = None;
        newest.map(|at| self.group(at, until.replace(at))).collect()
    }

    /// Returns the group that begins with the chunk at this position. `until` is that of the next one.
    fn group(&self, from: usize, until: Option<usize>) -> StoredGroup {
        let head = self.chunks[from].chunk.head();
        let mut group = StoredGroup {
            sequence: head.sequence,
            tables: head.tables.clone(),
            chunks: Vec::new(),
            is_closed: until.is_some(),
        };
        let mut n_bytes = 0;
        for (n, stored) in self.chunks.range(from..until.unwrap_or(self.chunks.len())).enumerate() {
            let head = stored.chunk.head();
            if head.filler || n > 0 && head.discontinuity || n_bytes >= GROUP_BYTES_MAX {
                group.is_closed = false;
                break;
            }
            n_bytes += stored.chunk.len();
            group.chunks.push(stored.chunk.bytes());
        }
        group
    }

    pub(super) fn usage(&self) -> RingUsage {
        let arrived = |it: Option<&StoredChunk>| it.map(|it| it.chunk.head().arrived);
        let span = arrived(self.chunks.back()).zip(arrived(self.chunks.front()));
        RingUsage {
            bytes: self.bytes,
            file_bytes: self.file_bytes,
            seconds: span.map_or(0.0, |(newest, oldest)| (newest - oldest).as_secs_f64()),
            chunks: self.chunks.len(),
            head_sequence: self.next,
            tail_sequence: self.oldest(),
        }
    }

    /// Reserves a slot for the waker of one tail.
    pub(super) fn take_slot(&mut self) -> usize {
        self.free_slots.pop().unwrap_or_else(|| {
            self.wakers.push(None);
            self.wakers.len() - 1
        })
    }

    /// Frees a slot. The caller drops the returned waker outside the lock.
    pub(super) fn free_slot(&mut self, slot: usize) -> Option<Waker> {
        self.free_slots.push(slot);
        self.wakers[slot].take()
    }

    pub(super) fn wait(&mut self, slot: usize, waker: &Waker) {
        match &mut self.wakers[slot] {
            Some(known) => known.clone_from(waker),
            empty => *empty = Some(waker.clone()),
        }
    }

    pub(super) fn take_wakers(&mut self, to: &mut Vec<Waker>) {
        to.extend(self.wakers.iter_mut().filter_map(Option::take));
    }
}
