//! The programmes of a channel with several guides: each fills what those before it lack.

use std::sync::Arc;

use domain::guide::merge::{Covered, SAME_START, completed};

use super::DAY;
use super::entry::GuideEntry;
use super::one::OneGuide;

/// The days of several guides. Times are seconds since 1970.
pub struct MergedDays {
    guides: Arc<[OneGuide]>,
    from: i64,
    /// Start of the next part.
    next: i64,
    until: i64,
}

impl MergedDays {
    pub(super) fn new(guides: Arc<[OneGuide]>, from: i64, until: i64) -> Self {
        // Days without a programme need not be read.
        let spans = || guides.iter().filter_map(OneGuide::span);
        let from = from.max(spans().map(|it| it.0).min().unwrap_or(until));
        let until = until.min(spans().map(|it| it.1).max().unwrap_or(from));
        Self { guides, from, next: from, until }
    }
}

impl Iterator for MergedDays {
    type Item = Vec<GuideEntry>;

    fn next(&mut self) -> Option<Vec<GuideEntry>> {
        if self.next >= self.until {
            return None;
        }
        let begin = self.next;
        self.next = (begin.div_euclid(DAY) * DAY + DAY).min(self.until);
        // Those that began before are in the part before, except in the first one.
        if begin > self.from {
            let mut found = merged(&self.guides, begin, self.next);
            found.retain(|it| it.start >= begin);
            return Some(found);
        }
        let mut found = merged(&self.guides, running_since(&self.guides, begin), self.next);
        found.retain(|it| it.stop > begin);
        Some(found)
    }
}

/// Returns the earliest start of the programmes that run at a time. The same showing in another guide can be over.
fn running_since(guides: &[OneGuide], at: i64) -> i64 {
    let running = guides.iter().flat_map(|it| it.programmes(at, at.saturating_add(1)));
    running.map(|it| it.start).min().map_or(at, |it| it.min(at))
}

/// Returns the programmes that overlap `from..until`, by their start.
fn merged(guides: &[OneGuide], from: i64, until: i64) -> Vec<GuideEntry> {
    let Some((last, before)) = guides.split_last() else { return Vec::new() };
    if before.is_empty() {
        return last.programmes(from, until);
    }
    // The same showing can begin on the other side of these times.
    let found = last.programmes(from.saturating_sub(SAME_START), until.saturating_add(SAME_START));
    // What a programme can fill depends on everything at its whole time.
    let (begin, end) = found.iter().fold((from, until), |it, of| (it.0.min(of.start), it.1.max(of.stop)));
    let mut all = merged(before, begin, end);
    fill(&mut all, found);
    all.retain(|it| it.start < until && it.stop > from);
    all.sort_by_key(|it| it.start);
    all
}

/// Adds the programmes of a further guide to the gaps, and their fields to the same showings.
fn fill(all: &mut Vec<GuideEntry>, found: Vec<GuideEntry>) {
    let covered = Covered::new(all.iter().map(|it| (it.start, it.stop)));
    let mut added = Vec::new();
    for entry in found {
        for at in covered.starting_near(entry.start) {
            if let Some(it) = all.get_mut(at)
                && let Some(inner) = completed(&it.inner, &entry.inner)
            {
                it.inner = inner.into();
                break;
            }
        }
        if let Some((start, stop)) = covered.gap(entry.start, entry.stop) {
            added.push(GuideEntry { start, stop, ..entry });
        }
    }
    all.extend(added);
}
