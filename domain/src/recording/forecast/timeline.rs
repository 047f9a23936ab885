//! How many connections are in use at each time.

use std::collections::BTreeMap;

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
            let count = self.at(at);
            self.0.entry(at).or_insert(count);
        }
        self.0.range_mut(start..end).for_each(|(_, count)| *count += 1);
    }

    fn at(&self, at: i64) -> u32 {
        self.0.range(..=at).next_back().map_or(0, |it| *it.1)
    }

    /// Iterates over the parts of a time with their counts.
    fn parts(&self, start: i64, end: i64) -> impl DoubleEndedIterator<Item = (i64, i64, u32)> {
        let inside = self.0.range(start.saturating_add(1)..end.max(start.saturating_add(1)));
        let begins: Vec<_> =
            [(start, self.at(start))].into_iter().chain(inside.map(|it| (*it.0, *it.1))).collect();
        let ends: Vec<_> = begins.iter().skip(1).map(|it| it.0).chain([end]).collect();
        begins.into_iter().zip(ends).map(|((from, count), until)| (from, until, count))
    }

    /// Returns the first time within `start..end` in which the count is at least this.
    pub(super) fn first_at_least(&self, count: u32, start: i64, end: i64) -> Option<(i64, i64)> {
        if start >= end {
            return None;
        }
        let mut found: Option<(i64, i64)> = None;
        for (from, until, n) in self.parts(start, end) {
            match (&mut found, n >= count) {
                (None, true) => found = Some((from, until)),
                (Some(it), true) => it.1 = until,
                (Some(_), false) => break,
                (None, false) => {}
            }
        }
        found
    }

    /// Returns the end of the last time within `start..end` in which the count is at least this.
    pub(super) fn last_end_at_least(&self, count: u32, start: i64, end: i64) -> Option<i64> {
        if start >= end {
            return None;
        }
        self.parts(start, end).rev().find(|it| it.2 >= count).map(|it| it.1)
    }
}
