//! A small deterministic generator (SplitMix64), so that a seed replays a schedule.

use std::ops::Range;

#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        it ^ (it >> 31)
    }

    /// Returns a number of a range that is not empty.
    pub(super) fn number_in(&mut self, range: Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }

    /// Returns true in this many of a thousand cases.
    pub(super) fn permille(&mut self, chance: u64) -> bool {
        self.next() % 1_000 < chance
    }
}
