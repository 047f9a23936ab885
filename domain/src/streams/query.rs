//! Queries for streams.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

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
    pub without: Option<HashSet<StreamId>>,
    pub hide_stale: bool,
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
        let edited = edited.filter(|(id, row)| matcher.has_id(**id) && matcher.has(&RowValues::of(row)));
        let mut edited: Vec<_> = edited.map(|(id, row)| (*id, &**row)).collect();
        edited.sort_by_cached_key(|(id, row)| edited_key(*id, row, query.order));
        lists.push(SortedRows::Edited(edited));
        lists.retain(|it| it.len() > 0);
        lists
    }

    /// Returns the matching rows of a shard in order.
    fn rows(&self, shard: &Shard, query: &StreamQuery, matcher: &Matcher<'_>) -> Vec<u32> {
        let is_hidden = |id: &StreamId| self.hidden.contains(&(*id, shard.account()));
        let few = [&query.ids, &query.only].into_iter().flatten().min_by_key(|it| it.len());
        if let Some(few) = few {
            let ids = few.iter().filter(|id| matcher.has_id(**id) && !is_hidden(id));
            let rows = ids.filter_map(|id| shard.row_of(*id));
            let rows = rows.filter(|row| matcher.has(&RowValues::at(shard, *row))).map(|row| row as u32);
            return sorted(shard, rows.collect(), query.order);
        }
        let mut marks = vec![true; shard.len()];
        matcher.mark(shard, &mut marks);
        let unwanted = query.without.iter().flatten();
        for id in unwanted.chain(self.hidden.iter().map(|it| &it.0).filter(|id| is_hidden(id))) {
            if let Some(row) = shard.row_of(*id) {
                marks[row] = false;
            }
        }
        let n = marks.iter().filter(|it| **it).count();
        let marked = |row: &u32| marks[*row as usize];
        if n * SORT_SHARE < shard.len() {
            return sorted(shard, (0..shard.len() as u32).filter(marked).collect(), query.order);
        }
        match shard.rows_by(query.order) {
            Some(rows) => rows.iter().copied().filter(marked).collect(),
            None => (0..shard.len() as u32).filter(marked).collect(),
        }
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

/// Matching streams in ascending order.
enum SortedRows<'a> {
    Shard(&'a Shard, Vec<u32>),
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
            Self::Shard(shard, rows) => shard.id(rows[at] as usize),
            Self::Edited(rows) => rows[at].0,
        }
    }

    fn key(&self, at: usize, order: StreamOrder) -> Key<'_> {
        match self {
            Self::Shard(shard, rows) => key_at(shard, rows[at] as usize, order),
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
    let mut heads: BinaryHeap<_> = (0..lists.len()).map(|list| (key(list, 0), list, 0)).collect();
    let mut ids = Vec::with_capacity(n);
    for passed in 0..offset + n {
        let Some((_, list, at)) = heads.pop() else { break };
        if passed >= offset {
            ids.push(lists[list].id(position(&lists[list], at)));
        }
        if at + 1 < lists[list].len() {
            heads.push((key(list, at + 1), list, at + 1));
        }
    }
    ids
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
}

impl<'a> RowValues<'a> {
    fn of(row: &'a Row) -> Self {
        Self {
            name: row.name.as_bytes(),
            tvg_id: row.tvg_id.as_bytes(),
            group: &row.group,
            group_lower: row.group.to_lowercase().into(),
            content: row.content,
            is_stale: row.is_stale,
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
        if self.query.hide_stale {
            marks.iter_mut().enumerate().for_each(|(row, mark)| *mark &= !shard.is_stale(row));
        }
    }
}
