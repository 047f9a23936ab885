//! How many connections are in use at each time.

use std::collections::BTreeMap;
use std::ops::Bound::Excluded;

/// A count for each moment. Each entry is the count from its time to that of the next entry; before the first it is 0.
#[derive(Debug, Default)]
pub(super) struct Timeline(BTreeMap<i64, u32>);

impl Timeline {
    /// Adds one from `start` to `end`, which is not part of it.
    pub(super) fn add(&mut self, start: i64, end: i64) {
        if start >= end {
            return;
        }
        for at in [start, end] {
            let before = self.0.range(..=at).next_back().map(|it| (*it.0, *it.1));
            if before.is_none_or(|before| before.0 < at) {
                self.0.insert(at, before.map_or(0, |it| it.1));
            }
        }
        self.0.range_mut(start..end).for_each(|(_, count)| *count += 1);
    }

    /// Takes back what was added from `start` to `end`.
    pub(super) fn remove(&mut self, start: i64, end: i64) {
        if start < end {
            self.0.range_mut(start..end).for_each(|(_, count)| *count = count.saturating_sub(1));
        }
    }

    fn at(&self, at: i64) -> u32 {
        self.0.range(..=at).next_back().map_or(0, |it| *it.1)
    }

    /// Returns the highest count within `start..end`.
    pub(super) fn peak(&self, start: i64, end: i64) -> u32 {
        let inside = self.0.range((Excluded(start), Excluded(end.max(start.saturating_add(1)))));
        inside.map(|it| *it.1).fold(self.at(start), u32::max)
    }

    /// Returns the first time within `start..end` in which the count is at least this.
    pub(super) fn first_at_least(&self, count: u32, start: i64, end: i64) -> Option<(i64, i64)> {
        if start >= end {
            return None;
        }
        let mut full_from = (self.at(start) >= count).then_some(start);
        for (at, n) in self.0.range((Excluded(start), Excluded(end))) {
            match full_from {
                None if *n >= count => full_from = Some(*at),
                Some(from) if *n < count => return Some((from, *at)),
                _ => {}
            }
        }
        full_from.map(|from| (from, end))
    }
}
