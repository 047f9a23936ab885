//! New ids for records of the other service.

use std::collections::HashSet;

/// Chooses the ids of one collection: an id is kept if no record of the store ever had it, otherwise the record gets a
/// new one.
#[derive(Debug, Clone)]
pub struct IdPicker {
    /// The first id that no record of the store ever had.
    unused: u32,
    /// The next new id. Larger than every id of the source.
    next: u32,
    picked: HashSet<u32>,
}

impl IdPicker {
    /// `unused` is the first id that no record of the store ever had, `sources` are the ids of the source.
    pub fn new(unused: u32, sources: impl IntoIterator<Item = u32>) -> Self {
        let largest = sources.into_iter().max().unwrap_or(0);
        Self { unused, next: unused.max(largest.saturating_add(1)), picked: HashSet::new() }
    }

    /// Returns the id for a record of the source.
    pub fn pick(&mut self, source: u32) -> u32 {
        if source >= self.unused && self.picked.insert(source) { source } else { self.fresh() }
    }

    /// Returns a new id.
    pub fn fresh(&mut self) -> u32 {
        let id = self.next;
        // Ids of a source are below 2^31 and their number is limited, so this ends far below the maximum.
        self.next = self.next.saturating_add(1);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_kept_if_it_was_never_used() {
        let mut empty = IdPicker::new(1, [4, 9, 2]);
        assert_eq!([4, 9, 2].map(|it| empty.pick(it)), [4, 9, 2]);
        assert_eq!((empty.pick(9), empty.fresh()), (10, 11), "a duplicate gets a new id");
        let mut used = IdPicker::new(5, [4, 9, 2]);
        assert_eq!([4, 9, 2].map(|it| used.pick(it)), [10, 9, 11]);
        assert_eq!(IdPicker::new(20, [4]).pick(4), 20);
    }
}
