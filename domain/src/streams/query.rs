//! Queries for streams.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashSet};

use memchr::memmem::Finder;

use super::{Row, Shard, StreamSnapshot};
use crate::ids::{AccountId, StreamId};
use crate::playlist::content::StreamContent;

/// The filters and the order of a query. The default returns all streams by id.
///
/// Texts match anywhere and in any case; an empty one matches everything.
#[derive(Debug, Clone, Default)]
pub struct StreamQuery {
    pub ids: Option<HashSet<StreamId>>,
    pub name: Option<String>,
    pub tvg_id: Option<String>,
    /// Matches the name, the guide id or the group.
    pub search: Option<String>,
    /// Any of these groups, by exact name.
    pub groups: Option<HashSet<String>>,
    pub accounts: Option<HashSet<AccountId>>,
    /// An additional restriction to these ids, for callers that add one to the filters of a client.
    pub only: Option<HashSet<StreamId>>,
    /// Excludes these streams.
    pub without: Option<BTreeSet<StreamId>>,
    pub hide_stale: bool,
    /// Whether the provider keeps an archive.
    pub has_archive: Option<bool>,
    /// Any of these contents.
    pub contents: Option<Vec<StreamContent>>,
    pub order: StreamOrder,
    pub descending: bool,
}

/// The order of streams. Texts are compared without case, missing ones first; equal ones are sorted by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StreamOrder {
    #[default]
    Id,
    Name,
    Group,
    TvgId,
    /// By the account's id.
    Account,
}

/// A part of the matching streams, with their total number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamPage {
    pub count: usize,
    pub ids: Vec<StreamId>,
}

impl StreamSnapshot {
    /// Returns at most `limit` of the matching streams, after the first `offset`.
    pub fn find(&self, query: &StreamQuery, offset: usize, limit: usize) -> StreamPage {
        let lists = self.lists(query);
        let count = lists.iter().map(SortedRows::len).sum();
        let n = limit.min(count - offset.min(count));
        let ids = if n == 0 {
            Vec::new()
        } else if offset <= count - offset - n {
            merge(&lists, query, query.descending, offset, n)
        } else {
            // From the nearer end.
            let mut ids = merge(&lists, query, !query.descending, count - offset - n, n);
            ids.reverse();
            ids
        };
        StreamPage { count, ids }
    }

    /// Returns all matching streams in order.
    pub fn ids(&self, query: &StreamQuery) -> Vec<StreamId> {
        self.find(query, 0, usize::MAX).ids
    }

    /// Returns the matching streams as sorted lists.
    fn lists(&self, query: &StreamQuery) -> Vec<SortedRows<'_>> {
        let matcher = Matcher::new(query);
        let is_asked = |account| query.accounts.as_ref().is_none_or(|it| it.contains(&account));
        let shards = self.shards.iter().filter(|it| is_asked(it.account()));
        let mut lists: Vec<_> =
            shards.map(|it| SortedRows::Shard(it, self.rows(it, query, &matcher))).collect();
        let edited = self.edited.iter().filter(|(_, row)| is_asked(row.account));
        let edited =
            edited.filter(|(id, row)| matcher.has_id(**id) && matcher.has(&RowValues::from_row(row)));
        let mut edited: Vec<_> = edited.map(|(id, row)| (*id, &**row)).collect();
        edited.sort_by_cached_key(|(id, row)| edited_key(*id, row, query.order));
        lists.push(SortedRows::Edited(edited));
        lists.retain(|it| it.len() > 0);
        lists
    }

    /// Returns the matching rows of a shard in order.
    fn rows<'a>(&self, shard: &'a Shard, query: &StreamQuery, matcher: &Matcher<'_>) -> Rows<'a> {
        let is_hidden = |id: &StreamId| self.hidden.contains(&(*id, shard.account()));
        let few = [&query.ids, &query.only].into_iter().flatten().min_by_key(|it| it.len());
        if let Some(few) = few {
            let ids = few.iter().filter(|id| matcher.has_id(**id) && !is_hidden(id));
            let rows = ids.filter_map(|id| shard.row_of(*id));
            let rows = rows.filter(|row| matcher.has(&RowValues::at(shard, *row))).map(|row| row as u32);
            return Rows::Some(sorted(shard, rows.collect(), query.order));
        }
        let has_hidden = self.hidden.iter().any(|it| it.1 == shard.account());
        if !has_hidden && query.without.is_none() && matcher.has_all() {
            return shard.rows_by(query.order).map_or(Rows::All(shard.len()), Rows::Sorted);
        }
        let mut marks = vec![true; shard.len()];
        matcher.mark(shard, &mut marks);
        if let Some(unwanted) = &query.without {
            shard.rows_of(unwanted.iter().copied(), |row| marks[row] = false);
        }
        shard.rows_of(self.hidden.iter().map(|it| it.0).filter(|id| is_hidden(id)), |row| marks[row] = false);
        let n = marks.iter().filter(|it| **it).count();
        let marked = |row: &u32| marks[*row as usize];
        if n * SORT_SHARE < shard.len() {
            let rows = (0..shard.len() as u32).filter(marked).collect();
            return Rows::Some(sorted(shard, rows, query.order));
        }
        Rows::Some(match shard.rows_by(query.order) {
            Some(rows) => rows.iter().copied().filter(marked).collect(),
            None => (0..shard.len() as u32).filter(marked).collect(),
        })
    }
}

/// If fewer than one row in this many match, they are sorted on demand; otherwise they are selected from the order of
/// all rows.
const SORT_SHARE: usize = 64;

/// Sorts some rows of a shard.
fn sorted(shard: &Shard, mut rows: Vec<u32>, order: StreamOrder) -> Vec<u32> {
    rows.sort_unstable_by_key(|row| key_at(shard, *row as usize, order));
    rows
}

/// Rows of a shard in ascending order.
enum Rows<'a> {
    /// All rows as they are.
    All(usize),
    /// All rows in an order that the shard keeps.
    Sorted(&'a [u32]),
    Some(Vec<u32>),
}

impl Rows<'_> {
    fn len(&self) -> usize {
        match self {
            Self::All(n) => *n,
            Self::Sorted(rows) => rows.len(),
            Self::Some(rows) => rows.len(),
        }
    }

    fn at(&self, at: usize) -> usize {
        match self {
            Self::All(_) => at,
            Self::Sorted(rows) => rows[at] as usize,
            Self::Some(rows) => rows[at] as usize,
        }
    }
}

/// Matching streams in ascending order.
enum SortedRows<'a> {
    Shard(&'a Shard, Rows<'a>),
    Edited(Vec<(StreamId, &'a Row)>),
}

/// The sort key of a stream.
type Key<'a> = (AccountId, std::borrow::Cow<'a, [u8]>, StreamId);

impl SortedRows<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Shard(_, rows) => rows.len(),
            Self::Edited(rows) => rows.len(),
        }
    }

    fn id(&self, at: usize) -> StreamId {
        match self {
            Self::Shard(shard, rows) => shard.id(rows.at(at)),
            Self::Edited(rows) => rows[at].0,
        }
    }

    fn key(&self, at: usize, order: StreamOrder) -> Key<'_> {
        match self {
            Self::Shard(shard, rows) => key_at(shard, rows.at(at), order),
            Self::Edited(rows) => edited_key(rows[at].0, rows[at].1, order),
        }
    }
}

fn key_at(shard: &Shard, row: usize, order: StreamOrder) -> Key<'_> {
    let text = match order {
        StreamOrder::Name => shard.name(row),
        StreamOrder::TvgId => shard.tvg_id(row),
        StreamOrder::Group => shard.group_lower(row).as_bytes(),
        StreamOrder::Id | StreamOrder::Account => &[],
    };
    let account = if order == StreamOrder::Account { shard.account() } else { AccountId(0) };
    (account, text.into(), shard.id(row))
}

fn edited_key(id: StreamId, row: &Row, order: StreamOrder) -> Key<'_> {
    let text = match order {
        StreamOrder::Name => row.name.as_bytes().into(),
        StreamOrder::TvgId => row.tvg_id.as_bytes().into(),
        StreamOrder::Group => row.group.to_lowercase().into_bytes().into(),
        StreamOrder::Id | StreamOrder::Account => Default::default(),
    };
    let account = if order == StreamOrder::Account { row.account } else { AccountId(0) };
    (account, text, id)
}

/// Returns `n` ids after the first `offset` of sorted lists, which contain that many.
fn merge(
    lists: &[SortedRows<'_>],
    query: &StreamQuery,
    descending: bool,
    offset: usize,
    n: usize,
) -> Vec<StreamId> {
    let position = |list: &SortedRows<'_>, at: usize| if descending { list.len() - 1 - at } else { at };
    if let [list] = lists {
        return (offset..offset + n).map(|at| list.id(position(list, at))).collect();
    }
    // The heap returns the largest key first, so keys are reversed for ascending order.
    let key = |list: usize, at: usize| {
        let key = lists[list].key(position(&lists[list], at), query.order);
        if descending { (Some(key), None) } else { (None, Some(Reverse(key))) }
    };
    let lens: Vec<usize> = lists.iter().map(SortedRows::len).collect();
    let starts = split(&lens, offset, key).into_iter().enumerate();
    let begun = starts.filter(|(list, at)| *at < lens[*list]);
    let mut heads: BinaryHeap<_> = begun.map(|(list, at)| (key(list, at), list, at)).collect();
    let mut ids = Vec::with_capacity(n);
    while ids.len() < n
        && let Some((_, list, at)) = heads.pop()
    {
        ids.push(lists[list].id(position(&lists[list], at)));
        if at + 1 < lens[list] {
            heads.push((key(list, at + 1), list, at + 1));
        }
    }
    ids
}

/// Returns the number of entries that each list contributes to the first `n` of all lists. The keys of each list descend,
/// and all are different. Takes logarithmic time, so that the last page costs as much as the first one.
fn split<K: Ord>(lens: &[usize], n: usize, key: impl Fn(usize, usize) -> K) -> Vec<usize> {
    // The numbers are between these bounds.
    let (mut low, mut high) = (vec![0; lens.len()], lens.to_vec());
    while let Some(widest) = (0..lens.len()).max_by_key(|list| high[*list] - low[*list])
        && low[widest] < high[widest]
    {
        let middle = low[widest].midpoint(high[widest]);
        let pivot = key(widest, middle);
        let n_before = |list: usize| {
            let (mut from, mut to) = (low[list], high[list]);
            while from < to {
                let at = from.midpoint(to);
                if key(list, at) > pivot { from = at + 1 } else { to = at }
            }
            from
        };
        let before: Vec<usize> = (0..lens.len()).map(n_before).collect();
        if before.iter().sum::<usize>() < n {
            low = before;
            low[widest] = middle + 1;
        } else {
            high = before;
        }
    }
    low
}

/// A query, prepared for matching rows.
struct Matcher<'a> {
    query: &'a StreamQuery,
    name: Option<Finder<'static>>,
    tvg_id: Option<Finder<'static>>,
    search: Option<Finder<'static>>,
}

/// The values of one row of either origin.
struct RowValues<'a> {
    name: &'a [u8],
    tvg_id: &'a [u8],
    group: &'a str,
    group_lower: std::borrow::Cow<'a, str>,
    content: StreamContent,
    is_stale: bool,
    has_archive: bool,
}

impl<'a> RowValues<'a> {
    fn from_row(row: &'a Row) -> Self {
        Self {
            name: row.name.as_bytes(),
            tvg_id: row.tvg_id.as_bytes(),
            group: &row.group,
            group_lower: row.group.to_lowercase().into(),
            content: row.content,
            is_stale: row.is_stale,
            has_archive: row.archive_days > 0,
        }
    }

    fn at(shard: &'a Shard, row: usize) -> Self {
        Self {
            name: shard.name(row),
            tvg_id: shard.tvg_id(row),
            group: shard.group(row),
            group_lower: shard.group_lower(row).into(),
            content: shard.content(row),
            is_stale: shard.is_stale(row),
            has_archive: shard.has_archive(row),
        }
    }
}

impl<'a> Matcher<'a> {
    fn new(query: &'a StreamQuery) -> Self {
        let finder = |text: &Option<String>| {
            let text = text.as_deref().filter(|it| !it.is_empty())?;
            Some(Finder::new(text.to_lowercase().as_bytes()).into_owned())
        };
        Self {
            query,
            name: finder(&query.name),
            tvg_id: finder(&query.tvg_id),
            search: finder(&query.search),
        }
    }

    /// Returns whether every row matches, apart from its id and account.
    fn has_all(&self) -> bool {
        let is_any_text = self.name.is_some() || self.tvg_id.is_some() || self.search.is_some();
        let query = self.query;
        let is_any = query.groups.is_some() || query.contents.is_some() || query.has_archive.is_some();
        !is_any_text && !is_any && !query.hide_stale
    }

    fn has_id(&self, id: StreamId) -> bool {
        let may_be = |ids: &Option<HashSet<StreamId>>| ids.as_ref().is_none_or(|it| it.contains(&id));
        may_be(&self.query.ids)
            && may_be(&self.query.only)
            && self.query.without.as_ref().is_none_or(|it| !it.contains(&id))
    }

    /// Returns whether a row matches, apart from its id and account.
    fn has(&self, row: &RowValues<'_>) -> bool {
        let has = |finder: &Option<Finder<'_>>, text: &[u8]| {
            finder.as_ref().is_none_or(|it| it.find(text).is_some())
        };
        has(&self.name, row.name)
            && has(&self.tvg_id, row.tvg_id)
            && self.search.as_ref().is_none_or(|it| {
                [row.name, row.tvg_id, row.group_lower.as_bytes()].iter().any(|text| it.find(text).is_some())
            })
            && self.query.groups.as_ref().is_none_or(|it| it.contains(row.group))
            && !(self.query.hide_stale && row.is_stale)
            && self.query.has_archive.is_none_or(|it| it == row.has_archive)
            && self.query.contents.as_ref().is_none_or(|it| it.contains(&row.content))
    }

    /// Does the same for all rows of a shard at once: removes the marks of rows that do not match.
    fn mark(&self, shard: &Shard, marks: &mut [bool]) {
        let mut keep = |fill: &dyn Fn(&mut [bool])| {
            let mut found = vec![false; shard.len()];
            fill(&mut found);
            marks.iter_mut().zip(found).for_each(|(mark, found)| *mark &= found);
        };
        if let Some(finder) = &self.name {
            keep(&|found| shard.mark_names(finder, found));
        }
        if let Some(finder) = &self.tvg_id {
            keep(&|found| shard.mark_tvg_ids(finder, found));
        }
        if let Some(finder) = &self.search {
            keep(&|found| {
                shard.mark_names(finder, found);
                shard.mark_tvg_ids(finder, found);
                shard.mark_groups(|_, lower| finder.find(lower.as_bytes()).is_some(), found);
            });
        }
        if let Some(groups) = &self.query.groups {
            keep(&|found| shard.mark_groups(|name, _| groups.contains(name), found));
        }
        if let Some(contents) = &self.query.contents {
            marks
                .iter_mut()
                .enumerate()
                .for_each(|(row, mark)| *mark &= contents.contains(&shard.content(row)));
        }
        if let Some(wanted) = self.query.has_archive {
            let mut found = vec![!wanted; shard.len()];
            shard.archives().for_each(|(row, _)| found[row] = wanted);
            marks.iter_mut().zip(found).for_each(|(mark, found)| *mark &= found);
        }
        if self.query.hide_stale {
            marks.iter_mut().enumerate().for_each(|(row, mark)| *mark &= !shard.is_stale(row));
        }
    }
}
