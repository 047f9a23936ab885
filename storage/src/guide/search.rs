//! Searches a guide file.
//!
//! The search index gives a set of programmes. The columns of times and the guide channels narrow it. Conditions that the
//! index does not answer are checked last, on the texts of what is left, up to a limit.

use domain::guide::programme::ProgrammeId;
use domain::guide::words::words;
use domain::ids::GuideChannelId;

use super::bitmap::Bitmap;
use super::file::GuideFile;
use super::query::{Found, GuideQuery, QUERY_WORDS_MAX, SearchLimits, TextQuery};
use super::tables::{TIMES_PER_BLOCK, times_bytes};
use super::unix_of;
use crate::error::{Error, Result};

/// Start and number of a programme, in the order of results: programmes are numbered by guide channel.
type Rank = u64;

fn rank(start: u32, number: u32) -> Rank {
    u64::from(start) << 32 | u64::from(number)
}

impl GuideFile {
    /// Finds programmes. Takes time in proportion to the index entries of the words, and to the programmes that are
    /// checked; see [`SearchLimits`].
    ///
    /// # Errors
    /// [`Error::TooLarge`] for a query with more than [`QUERY_WORDS_MAX`] words and other conditions.
    pub fn search(&self, query: &GuideQuery, limits: &SearchLimits) -> Result<Found> {
        let size = query.text.as_ref().map_or(0, TextQuery::size);
        if size > QUERY_WORDS_MAX {
            return Err(Error::TooLarge { what: "search", size, max: QUERY_WORDS_MAX });
        }
        let mut set = match &query.text {
            Some(text) => self.candidates(text)?,
            None => Bitmap::full(self.n_programmes),
        };
        if let Some(channels) = &query.channels {
            let mut end = 0;
            for channel in channels {
                let (from, until) = self.numbers_of(*channel);
                if from < until {
                    set.clear(end, from);
                    end = until;
                }
            }
            set.clear(end, self.n_programmes);
        }
        match query.text.as_ref().filter(|it| !it.is_indexed()) {
            Some(text) => {
                let mut ranks = Vec::new();
                self.for_each_in_time(&set, query, |it| {
                    ranks.push(it);
                    ranks.len() <= limits.checked_max
                })?;
                match ranks.len() <= limits.checked_max {
                    true => self.check(text, ranks, limits.n_max),
                    false => Ok(Found { ids: Vec::new(), count: 0, is_too_wide: true }),
                }
            }
            None => {
                let mut first = First::new(limits.n_max);
                self.for_each_in_time(&set, query, |it| {
                    first.add(it);
                    true
                })?;
                let (ranks, count) = first.finish();
                Ok(Found { ids: self.ids_of(&ranks)?, count, is_too_wide: false })
            }
        }
    }

    /// Counts the programmes that end after a moment, in Unix seconds. Those of a damaged part do not count. Blocks.
    pub fn n_ending_after(&self, moment: i64) -> u64 {
        let mut n = 0;
        let query = GuideQuery { stops: moment.saturating_add(1)..i64::MAX, ..GuideQuery::default() };
        // The error is logged and remembered where it is found.
        let _ = self.for_each_in_time(&Bitmap::full(self.n_programmes), &query, |_| {
            n += 1;
            true
        });
        n
    }

    /// Returns the programmes that meet a condition, as far as the index can tell.
    fn candidates(&self, text: &TextQuery) -> Result<Bitmap> {
        match text {
            TextQuery::Words { field, text, whole } => {
                let mut found: Option<Bitmap> = None;
                for word in words(text) {
                    let with_word = self.with_word(*field, &word, *whole)?;
                    match &mut found {
                        Some(found) => found.intersect(&with_word),
                        None => found = Some(with_word),
                    }
                }
                Ok(found.unwrap_or_else(|| Bitmap::empty(self.n_programmes)))
            }
            TextQuery::Contains { .. } | TextQuery::Matches { .. } => Ok(Bitmap::full(self.n_programmes)),
            TextQuery::All(parts) => {
                let mut found = Bitmap::full(self.n_programmes);
                for part in parts {
                    found.intersect(&self.candidates(part)?);
                }
                Ok(found)
            }
            TextQuery::Any(parts) => {
                let mut found = Bitmap::empty(self.n_programmes);
                for part in parts {
                    found.unite(&self.candidates(part)?);
                }
                Ok(found)
            }
        }
    }

    /// Visits the programmes of a set in the window of the query, by number, until `visit` returns false.
    fn for_each_in_time(
        &self,
        set: &Bitmap,
        query: &GuideQuery,
        mut visit: impl FnMut(Rank) -> bool,
    ) -> Result<()> {
        for (at, offset) in (0..).zip(&self.tables.times) {
            let first = at * TIMES_PER_BLOCK;
            let mut numbers = set.iter(first, (first + TIMES_PER_BLOCK).min(self.n_programmes)).peekable();
            if numbers.peek().is_none() {
                continue;
            }
            let times = self.block(*offset, times_bytes(at, self.n_programmes))?;
            let (pairs, _) = times.as_chunks::<8>();
            for number in numbers {
                let Some([a, b, c, d, e, f, g, h]) = pairs.get((number - first) as usize).copied() else {
                    return Err(self.damaged("a block of times is too short"));
                };
                let [start, stop] = [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])];
                let is_within =
                    query.starts.contains(&unix_of(start)) && query.stops.contains(&unix_of(stop));
                if is_within && !visit(rank(start, number)) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Checks the texts of programmes, which are sorted by number, so that each cell is read once.
    fn check(&self, text: &TextQuery, ranks: Vec<Rank>, n_max: usize) -> Result<Found> {
        let check = text.check();
        let (mut found, mut buffer) = (Vec::new(), String::new());
        let mut rest = &ranks[..];
        while let Some(number) = rest.first().map(|it| *it as u32) {
            let at = self.tables.cells.partition_point(|it| it.first <= number).saturating_sub(1);
            let end = self.tables.cells.get(at + 1).map_or(self.n_programmes, |it| it.first);
            let n = rest.partition_point(|it| (*it as u32) < end);
            let (of_cell, after) = rest.split_at(n);
            let entry = &self.tables.cells[at];
            rest = after;
            let cell = match self.cell(entry) {
                // Its programmes are not found, and the others are.
                Err(Error::DamagedGuide { .. }) => continue,
                cell => cell?,
            };
            for it in of_cell {
                let inner = cell.inner_at((*it as u32 - entry.first) as usize);
                if check.passes(self.valid(inner, "a cell has too few programmes")?, &mut buffer) {
                    found.push(*it);
                }
            }
        }
        let count = found.len() as u64;
        found.sort_unstable();
        found.truncate(n_max);
        Ok(Found { ids: self.ids_of(&found)?, count, is_too_wide: false })
    }

    fn ids_of(&self, ranks: &[Rank]) -> Result<Vec<ProgrammeId>> {
        let id_of = |rank: &Rank| {
            let number = *rank as u32;
            let cells = &self.tables.cells;
            let cell = cells.partition_point(|it| it.first <= number).checked_sub(1)? as u32;
            let channels = &self.tables.channels;
            let channel = channels.get(channels.partition_point(|it| it.cell <= cell).checked_sub(1)?)?;
            ProgrammeId::new(GuideChannelId(channel.id), unix_of((rank >> 32) as u32))
        };
        let ids: Option<Vec<_>> = ranks.iter().map(id_of).collect();
        self.valid(ids, "a guide channel has an invalid id")
    }
}

/// Keeps the lowest ranks, and counts all.
struct First {
    n_max: usize,
    kept: Vec<Rank>,
    count: u64,
    /// A rank that is not below this one is not among the lowest.
    limit: Rank,
}

impl First {
    /// The kept ranks are reduced when there are this many more than needed.
    const MORE: usize = 16 * 1024;

    fn new(n_max: usize) -> Self {
        Self { n_max, kept: Vec::new(), count: 0, limit: Rank::MAX }
    }

    fn add(&mut self, rank: Rank) {
        self.count += 1;
        if rank < self.limit {
            self.kept.push(rank);
            if self.kept.len() >= self.n_max.saturating_mul(2).saturating_add(Self::MORE) {
                self.reduce();
            }
        }
    }

    fn reduce(&mut self) {
        if self.n_max == 0 {
            (self.limit, self.kept) = (0, Vec::new());
        } else if self.kept.len() > self.n_max {
            let (_, highest, _) = self.kept.select_nth_unstable(self.n_max - 1);
            self.limit = *highest;
            self.kept.truncate(self.n_max);
        }
    }

    /// Returns the lowest ranks in order, and the number of all.
    fn finish(mut self) -> (Vec<Rank>, u64) {
        self.reduce();
        self.kept.sort_unstable();
        (self.kept, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_ranks_are_kept_and_all_are_counted() {
        let n = 3 * First::MORE as u64;
        for n_max in [0, 1, 100, usize::MAX] {
            let mut first = First::new(n_max);
            // In an order without a pattern.
            (0..n).for_each(|it| first.add(it * 7919 % n));
            let expected: Vec<_> = (0..n).take(n_max).collect();
            assert_eq!(first.finish(), (expected, n), "{n_max}");
        }
    }
}
