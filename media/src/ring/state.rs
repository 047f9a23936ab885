//! What a ring keeps, behind its lock: chunks in order, where one may enter, who waits.

use std::collections::VecDeque;
use std::task::Waker;

use tokio::time::Instant;

use super::{EndReason, RingSettings, RingUsage};
use crate::chunk::Chunk;
use crate::join_point::{JoinPoint, Points};

/// A chunk and the number of bytes, filler apart, that were written before it.
pub(super) struct Kept {
    pub(super) chunk: Chunk,
    pub(super) offset: u64,
}

pub(super) struct State {
    chunks: VecDeque<Kept>,
    /// Number of the next chunk to come.
    next: u64,
    /// Bytes kept.
    bytes: usize,
    /// Bytes written, filler apart.
    written: u64,
    points: Points,
    /// Where the newest group of pictures begins, while that is kept; filler after it changes nothing.
    newest_gop: Option<u64>,
    newest_filler: Option<u64>,
    pub(super) end: Option<EndReason>,
    wakers: Vec<Option<Waker>>,
    free_slots: Vec<usize>,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            chunks: VecDeque::new(),
            next: 0,
            bytes: 0,
            written: 0,
            points: Points::default(),
            newest_gop: None,
            newest_filler: None,
            end: None,
            wakers: Vec::new(),
            free_slots: Vec::new(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of the oldest chunk kept, or of the next to come where none is.
    pub(super) fn oldest(&self) -> u64 {
        self.next - self.chunks.len() as u64
    }

    pub(super) fn kept(&self, sequence: u64) -> Option<&Kept> {
        self.chunks.get(usize::try_from(sequence.checked_sub(self.oldest())?).ok()?)
    }

    pub(super) fn push(&mut self, chunk: Chunk) {
        let head = chunk.head();
        debug_assert_eq!(head.sequence, self.next, "chunks come in order");
        let offset = self.written;
        self.next += 1;
        self.bytes += chunk.len();
        if head.filler {
            self.newest_filler = Some(head.sequence);
            self.points.clear();
        } else {
            self.written += chunk.len() as u64;
            if head.random_access {
                self.newest_gop = Some(head.sequence);
                self.points.push(head.sequence, head.arrived);
            }
        }
        self.chunks.push_back(Kept { chunk, offset });
    }

    /// Drops the oldest chunks while there is too much, and on until `wanted` bytes are free. Never drops the
    /// last chunk, and of the newest group of pictures only what goes beyond its own limit.
    pub(super) fn evict(&mut self, settings: &RingSettings, now: Instant, wanted: usize) -> usize {
        let mut freed = 0;
        while self.chunks.len() > 1
            && let Some(oldest) = self.chunks.front()
        {
            let head = oldest.chunk.head();
            let is_surplus = freed < wanted
                || self.bytes > settings.bytes
                || now.saturating_duration_since(head.arrived) > settings.seconds;
            let is_newest_gop = self.newest_gop.is_some_and(|it| head.sequence >= it);
            if !is_surplus || (is_newest_gop && self.bytes <= settings.gop_bytes) {
                break;
            }
            freed += oldest.chunk.len();
            self.bytes -= oldest.chunk.len();
            if is_newest_gop {
                self.newest_gop = None;
            }
            self.chunks.pop_front();
        }
        self.points.forget_before(self.oldest());
        freed
    }

    /// The oldest chunk that no filler follows.
    pub(super) fn first_enterable(&self) -> Option<u64> {
        let after_filler = self.newest_filler.map_or(0, |it| it + 1);
        Some(self.oldest().max(after_filler)).filter(|it| *it < self.next)
    }

    /// Where a tail with this entry begins; nothing where it has to wait.
    pub(super) fn enter(&self, entry: JoinPoint, now: Instant) -> Option<u64> {
        let first = self.first_enterable()?;
        match entry {
            JoinPoint::Live { behind } => Some(self.points.live(behind, now).unwrap_or(first)),
            JoinPoint::Oldest => Some(self.points.oldest().unwrap_or(first)),
            JoinPoint::At(sequence) => Some(sequence.max(first)).filter(|it| *it < self.next),
        }
    }

    /// Where a tail goes on whose place has left: at the newest random-access point, else behind the newest
    /// filler, else at that filler.
    pub(super) fn after_overrun(&self) -> u64 {
        let first = self.first_enterable().or(self.newest_filler);
        self.points.newest().or(first).unwrap_or(self.next).max(self.oldest())
    }

    pub(super) fn usage(&self) -> RingUsage {
        let arrived = |it: Option<&Kept>| it.map(|it| it.chunk.head().arrived);
        let span = arrived(self.chunks.back()).zip(arrived(self.chunks.front()));
        RingUsage {
            bytes: self.bytes,
            seconds: span.map_or(0.0, |(newest, oldest)| (newest - oldest).as_secs_f64()),
            chunks: self.chunks.len(),
            head_sequence: self.next,
            tail_sequence: self.oldest(),
        }
    }

    /// A place for the waker of one tail.
    pub(super) fn take_slot(&mut self) -> usize {
        self.free_slots.pop().unwrap_or_else(|| {
            self.wakers.push(None);
            self.wakers.len() - 1
        })
    }

    /// Gives the place back; what was in it is returned, to be dropped outside the lock.
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
