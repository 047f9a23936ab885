//! Sound that crosses a jump of the clock before or after its picture. It has its place only beside pictures of its own time
//! line: early sound waits for them, and sound of the former time line is dropped.

use std::collections::VecDeque;

use super::demux::Pes;
use crate::ts::clock::{STAMP_HZ, STAMP_MODULUS, distance};

/// Sound farther from the newest picture has another time line.
const JUMP: i64 = 10 * STAMP_HZ as i64;
/// A longer step backwards of sound is a break.
const STEP_MAX: i64 = STAMP_HZ as i64;
/// Sound of another time line waits until pictures are this much further.
const EARLY_MAX: u64 = STAMP_HZ;
/// Maximum number of bytes of sound that waits for pictures of its time line.
const EARLY_BYTES_MAX: usize = 2 << 20;
/// Sound of the time before a jump back is dropped for this long after it.
const STRAGGLE_MAX: u64 = 2 * STAMP_HZ;

/// The pictures that sound is compared with, and the sound that waits for others.
#[derive(Debug, Default)]
pub(super) struct EarlySound {
    /// Presentation time of the newest picture, as the stream has it and on the time line.
    newest: Option<(u64, u64)>,
    /// Presentation time of the newest picture before the last jump back, as the stream has it, and when it is forgotten.
    former: Option<(u64, u64)>,
    /// Time stamp of the newest sound that has its place.
    last_stamp: Option<u64>,
    /// Sound that crossed a jump before its picture, with the time of the newest picture at its arrival.
    waiting: VecDeque<(u64, Pes)>,
}

impl EarlySound {
    /// Other pictures follow, or none.
    pub(super) fn forget_pictures(&mut self) {
        (self.newest, self.former) = (None, None);
    }

    /// Other sound follows, or none.
    pub(super) fn forget_sound(&mut self) {
        self.last_stamp = None;
        self.waiting.clear();
    }

    /// A picture has this time stamp, and this presentation time on the time line.
    pub(super) fn picture(&mut self, stamp: u64, time: u64) {
        self.newest = Some((stamp, time));
        self.former = self.former.filter(|it| time < it.1);
    }

    /// The time line continues at `to` with a picture that was at `from`, because time stamps went back. After a short jump,
    /// new sound is soon nearer to the former pictures.
    pub(super) fn jumped_back(&mut self, from: u64, to: u64) {
        let kept_for = |newest: u64| (newest.saturating_sub(from) / 3).min(STRAGGLE_MAX);
        self.former = self.newest.map(|(stamp, newest)| (stamp, to + kept_for(newest)));
        self.last_stamp = None;
    }

    /// Sound with this time stamp has its place.
    pub(super) fn placed(&mut self, stamp: u64) {
        self.last_stamp = Some(stamp);
    }

    /// Takes sound beside pictures. Returns it if it has its place now; otherwise it waits, or is dropped.
    pub(super) fn push(&mut self, pes: Pes) -> Option<Pes> {
        let Some((newest, time)) = self.newest else { return Some(pes) };
        let Some(stamp) = pes.stamps.pts else {
            // It continues the one before.
            return if self.waiting.is_empty() { Some(pes) } else { self.wait(time, pes) };
        };
        let ahead = distance(newest, stamp, STAMP_MODULUS);
        let is_straggler = self.former.is_some_and(|(former, _)| {
            distance(former, stamp, STAMP_MODULUS).unsigned_abs() < ahead.unsigned_abs()
        });
        if is_straggler {
            return None;
        }
        if ahead.abs() > JUMP || self.is_back(stamp) { self.wait(time, pes) } else { Some(pes) }
    }

    fn is_back(&self, stamp: u64) -> bool {
        self.last_stamp.is_some_and(|it| distance(it, stamp, STAMP_MODULUS) < -STEP_MAX)
    }

    fn wait(&mut self, time: u64, pes: Pes) -> Option<Pes> {
        self.waiting.push_back((time, pes));
        let mut n_bytes: usize = self.waiting.iter().map(|it| it.1.data.len()).sum();
        while n_bytes > EARLY_BYTES_MAX
            && let Some((_, oldest)) = self.waiting.pop_front()
        {
            n_bytes -= oldest.data.len();
        }
        None
    }

    /// Returns how much sound waits. After each picture, [`Self::next_placed`] is called as often.
    pub(super) fn n_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Judges the sound that has waited longest. Returns it if it has its place now; otherwise it waits on, or is dropped.
    pub(super) fn next_placed(&mut self) -> Option<Pes> {
        let (newest, time) = self.newest?;
        let (since, pes) = self.waiting.pop_front()?;
        // A jump back has moved the time line, so the clock of the picture decides.
        let ahead = pes.stamps.pts.map(|it| distance(newest, it, STAMP_MODULUS));
        let is_near = ahead.is_none_or(|it| it.abs() <= JUMP);
        let is_overdue = time > since + EARLY_MAX;
        if is_near && (is_overdue || !pes.stamps.pts.is_some_and(|it| self.is_back(it))) {
            return Some(pes);
        }
        if !is_overdue {
            self.waiting.push_back((since, pes));
        }
        None
    }
}
