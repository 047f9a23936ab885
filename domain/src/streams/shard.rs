//! The streams of one account, in columns.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use memchr::memmem::Finder;

use super::{Row, StreamCounts, StreamOrder};
use crate::entry_details::ChannelMarks;
use crate::ids::{AccountId, StreamId, StreamProfileId};
use crate::playlist::content::StreamContent;
use crate::stream::Stream;

/// The streams of one account. Rows are in the order in which they were added.
pub struct Shard {
    account: AccountId,
    ids: Vec<StreamId>,
    /// Rows sorted by id; empty if the rows are in that order.
    by_id: Vec<u32>,
    names: Column,
    tvg_ids: Column,
    /// Index of each row's group in `group_names`.
    groups: Vec<u32>,
    group_names: Vec<GroupName>,
    contents: Vec<StreamContent>,
    stale: Vec<bool>,
    n_stale: usize,
    /// The rows with an archive, in order, each with its depth in days.
    archives: Vec<(u32, u16)>,
    /// The rows whose guide has an offset, in order, each with its minutes.
    guide_offsets: Vec<(u32, i16)>,
    /// The rows with marks of their provider. Equal marks are shared.
    marks: Vec<(u32, Arc<ChannelMarks>)>,
    /// Memory of the marks, each shared one once.
    marks_bytes: usize,
    /// The rows with a stream profile of their own.
    stream_profiles: Vec<(u32, StreamProfileId)>,
    /// The rows that are pages of video sites.
    pages: Vec<u32>,
    by_name: OnceLock<Vec<u32>>,
    by_tvg_id: OnceLock<Vec<u32>>,
    by_group: OnceLock<Vec<u32>>,
}

/// A group and its number of rows. The empty name is that of rows without a group.
struct GroupName {
    name: String,
    lower: String,
    n_rows: usize,
}

/// Builds a shard from the streams of an account.
pub struct ShardBuilder {
    shard: Shard,
    numbers: HashMap<String, u32>,
    /// The marks so far.
    marks: HashSet<Arc<ChannelMarks>>,
}

impl ShardBuilder {
    pub fn new(account: AccountId) -> Self {
        let shard = Shard {
            account,
            ids: Vec::new(),
            by_id: Vec::new(),
            names: Column::default(),
            tvg_ids: Column::default(),
            groups: Vec::new(),
            group_names: Vec::new(),
            contents: Vec::new(),
            stale: Vec::new(),
            n_stale: 0,
            archives: Vec::new(),
            guide_offsets: Vec::new(),
            marks: Vec::new(),
            marks_bytes: 0,
            stream_profiles: Vec::new(),
            pages: Vec::new(),
            by_name: OnceLock::new(),
            by_tvg_id: OnceLock::new(),
            by_group: OnceLock::new(),
        };
        Self { shard, numbers: HashMap::new(), marks: HashSet::new() }
    }

    /// Adds a stream of this account. Each may be added once.
    pub fn add(&mut self, stream: &Stream) {
        let row = Row::from_stream(stream);
        let shard = &mut self.shard;
        let group = *self.numbers.entry(row.group).or_insert_with_key(|name| {
            let (name, lower) = (name.clone(), name.to_lowercase());
            shard.group_names.push(GroupName { name, lower, n_rows: 0 });
            number(shard.group_names.len() - 1)
        });
        shard.group_names[group as usize].n_rows += 1;
        shard.ids.push(stream.id);
        shard.names.push(&row.name);
        shard.tvg_ids.push(&row.tvg_id);
        shard.groups.push(group);
        shard.contents.push(row.content);
        shard.stale.push(row.is_stale);
        shard.n_stale += usize::from(row.is_stale);
        if row.archive_days > 0 {
            let at = u32::try_from(shard.ids.len() - 1);
            shard.archives.extend(at.ok().map(|it| (it, row.archive_days)));
        }
        let at = number(shard.ids.len() - 1);
        shard.stream_profiles.extend(row.stream_profile.map(|it| (at, it)));
        shard.pages.extend(row.is_page.then_some(at));
        shard.guide_offsets.extend((row.guide_offset != 0).then_some((at, row.guide_offset)));
        if let Some(marks) = row.marks {
            let shared = self.marks.get(&marks).map(Arc::clone);
            shard.marks.push((at, Arc::clone(shared.as_ref().unwrap_or(&marks))));
            if shared.is_none() {
                shard.marks_bytes += size_of::<ChannelMarks>() + marks.text_bytes();
                self.marks.insert(marks);
            }
        }
    }

    pub fn build(mut self) -> Shard {
        let shard = &mut self.shard;
        if !shard.ids.is_sorted() {
            let mut rows: Vec<u32> = (0..number(shard.ids.len())).collect();
            rows.sort_unstable_by_key(|row| shard.ids[*row as usize]);
            shard.by_id = rows;
        }
        shard.ids.shrink_to_fit();
        shard.names.shrink_to_fit();
        shard.tvg_ids.shrink_to_fit();
        shard.groups.shrink_to_fit();
        shard.contents.shrink_to_fit();
        shard.stale.shrink_to_fit();
        shard.archives.shrink_to_fit();
        shard.guide_offsets.shrink_to_fit();
        shard.marks.shrink_to_fit();
        shard.stream_profiles.shrink_to_fit();
        self.shard
    }
}

/// Converts a row or group index.
fn number(at: usize) -> u32 {
    u32::try_from(at).expect("rows have 32-bit indices because stream ids have 32 bits")
}

impl Shard {
    pub fn account(&self) -> AccountId {
        self.account
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(super) fn has(&self, id: StreamId) -> bool {
        self.row_of(id).is_some()
    }

    pub(super) fn row_of(&self, id: StreamId) -> Option<usize> {
        if self.by_id.is_empty() {
            return self.ids.binary_search(&id).ok();
        }
        let at = self.by_id.binary_search_by_key(&id, |row| self.ids[*row as usize]).ok()?;
        Some(self.by_id[at] as usize)
    }

    /// Visits the rows of those of these ids that it contains. The ids ascend.
    pub(super) fn rows_of(&self, ids: impl Iterator<Item = StreamId>, mut visit: impl FnMut(usize)) {
        if !self.by_id.is_empty() {
            return ids.filter_map(|id| self.row_of(id)).for_each(visit);
        }
        // The next one is usually near, so the distance is doubled until it is passed.
        let mut rest = 0;
        for id in ids {
            let mut step = 1;
            while self.ids.get(rest + step).is_some_and(|it| *it < id) {
                rest += step;
                step *= 2;
            }
            let end = self.ids.len().min(rest + step + 1);
            rest += self.ids[rest..end].partition_point(|it| *it < id);
            if self.ids.get(rest) == Some(&id) {
                visit(rest);
            }
        }
    }

    pub(super) fn id(&self, row: usize) -> StreamId {
        self.ids[row]
    }

    pub(super) fn name(&self, row: usize) -> &[u8] {
        self.names.get(row)
    }

    pub(super) fn tvg_id(&self, row: usize) -> &[u8] {
        self.tvg_ids.get(row)
    }

    pub(super) fn group(&self, row: usize) -> &str {
        &self.group_names[self.groups[row] as usize].name
    }

    pub(super) fn group_lower(&self, row: usize) -> &str {
        &self.group_names[self.groups[row] as usize].lower
    }

    pub(super) fn content(&self, row: usize) -> StreamContent {
        self.contents[row]
    }

    pub(super) fn is_stale(&self, row: usize) -> bool {
        self.stale[row]
    }

    pub(super) fn has_archive(&self, row: usize) -> bool {
        self.archives.binary_search_by_key(&number(row), |it| it.0).is_ok()
    }

    /// Returns the rows with an archive and its depth in days.
    pub(super) fn archives(&self) -> impl Iterator<Item = (usize, u16)> {
        self.archives.iter().map(|it| (it.0 as usize, it.1))
    }

    /// Returns the streams whose guide has an offset, each with its minutes.
    pub(super) fn guide_offsets(&self) -> impl Iterator<Item = (StreamId, i16)> {
        self.guide_offsets.iter().map(|(row, minutes)| (self.ids[*row as usize], *minutes))
    }

    /// Returns the offset of the guide of a stream, if it has one.
    pub(super) fn guide_offset(&self, id: StreamId) -> Option<i16> {
        // Nearly all playlists have none.
        let row = number((!self.guide_offsets.is_empty()).then(|| self.row_of(id))??);
        let at = self.guide_offsets.binary_search_by_key(&row, |it| it.0).ok()?;
        self.guide_offsets.get(at).map(|it| it.1)
    }

    /// Returns the rows with marks of their provider.
    pub(super) fn marks(&self) -> impl Iterator<Item = (usize, &Arc<ChannelMarks>)> {
        self.marks.iter().map(|it| (it.0 as usize, &it.1))
    }

    /// Returns the rows with a stream profile of their own.
    pub(super) fn stream_profiles(&self) -> impl Iterator<Item = (usize, StreamProfileId)> {
        self.stream_profiles.iter().map(|it| (it.0 as usize, it.1))
    }

    /// Returns the rows that are pages of video sites.
    pub(super) fn pages(&self) -> impl Iterator<Item = usize> {
        self.pages.iter().map(|it| *it as usize)
    }

    pub(super) fn counts(&self) -> StreamCounts {
        StreamCounts { n: self.len(), n_stale: self.n_stale }
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = (&str, usize)> {
        self.group_names.iter().map(|it| (&*it.name, it.n_rows))
    }

    /// Marks the rows whose name contains the text.
    pub(super) fn mark_names(&self, finder: &Finder<'_>, marks: &mut [bool]) {
        self.names.mark(finder, marks);
    }

    /// Marks the rows whose guide id contains the text.
    pub(super) fn mark_tvg_ids(&self, finder: &Finder<'_>, marks: &mut [bool]) {
        self.tvg_ids.mark(finder, marks);
    }

    /// Marks the rows of the groups selected by name and lower-case name.
    pub(super) fn mark_groups(&self, is_meant: impl Fn(&str, &str) -> bool, marks: &mut [bool]) {
        let meant: Vec<bool> = self.group_names.iter().map(|it| is_meant(&it.name, &it.lower)).collect();
        if meant.contains(&true) {
            for (mark, group) in marks.iter_mut().zip(&self.groups) {
                *mark |= meant[*group as usize];
            }
        }
    }

    /// Returns all rows in this order. A text order is sorted on first use and kept: 4 bytes per row.
    pub(super) fn rows_by(&self, order: StreamOrder) -> Option<&[u32]> {
        match order {
            StreamOrder::Id | StreamOrder::Account if self.by_id.is_empty() => None,
            StreamOrder::Id | StreamOrder::Account => Some(&self.by_id),
            StreamOrder::Name => Some(self.by_name.get_or_init(|| self.sorted(|row| self.name(row)))),
            StreamOrder::TvgId => Some(self.by_tvg_id.get_or_init(|| self.sorted(|row| self.tvg_id(row)))),
            StreamOrder::Group => {
                Some(self.by_group.get_or_init(|| self.sorted(|row| self.group_lower(row).as_bytes())))
            }
        }
    }

    /// Returns all rows sorted by a text, then by id.
    fn sorted<'a>(&'a self, text: impl Fn(usize) -> &'a [u8]) -> Vec<u32> {
        sorted_rows(self.len(), text, |row| self.ids[row])
    }

    pub(super) fn bytes(&self) -> usize {
        let kept = [&self.by_name, &self.by_tvg_id, &self.by_group];
        let kept: usize = kept.iter().filter_map(|it| it.get()).map(|it| it.len() * 4).sum();
        let groups: usize = self.group_names.iter().map(|it| size_of_val(it) + it.name.len() * 2).sum();
        let rows = self.len() * (size_of::<StreamId>() + 4 + 1 + 1) + self.by_id.len() * 4;
        let rows = rows + size_of_val(&*self.archives) + size_of_val(&*self.guide_offsets);
        let rows = rows + size_of_val(&*self.marks) + self.marks_bytes + size_of_val(&*self.stream_profiles);
        rows + self.names.bytes() + self.tvg_ids.bytes() + groups + kept
    }
}

/// Returns all rows sorted by a text, then by id.
fn sorted_rows<'a, I: Ord>(
    n_rows: usize,
    text: impl Fn(usize) -> &'a [u8],
    id: impl Fn(usize) -> I,
) -> Vec<u32> {
    // The beginning of each text is kept beside its row, so that most comparisons stay in the cache.
    let prefix = |row: usize| {
        let mut bytes = [0; 16];
        let n = text(row).len().min(bytes.len());
        bytes[..n].copy_from_slice(&text(row)[..n]);
        u128::from_be_bytes(bytes)
    };
    let mut rows: Vec<(u128, u32)> = (0..n_rows).map(|row| (prefix(row), number(row))).collect();
    rows.sort_unstable_by(|one, other| {
        one.0.cmp(&other.0).then_with(|| {
            let [one, other] = [one.1 as usize, other.1 as usize];
            text(one).cmp(text(other)).then(id(one).cmp(&id(other)))
        })
    });
    rows.into_iter().map(|it| it.1).collect()
}

/// Concatenated texts.
#[derive(Default)]
pub(crate) struct Column {
    text: Vec<u8>,
    /// End of each text.
    ends: Vec<u32>,
}

impl Column {
    pub(crate) fn push(&mut self, text: &str) {
        self.push_bytes(text.as_bytes());
    }

    /// Adds a text of another column.
    pub(crate) fn push_bytes(&mut self, text: &[u8]) {
        // No account has four GiB of names; texts beyond that cannot be found.
        if u32::try_from(self.text.len() + text.len()).is_ok() {
            self.text.extend_from_slice(text);
        }
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    fn start(&self, row: usize) -> usize {
        row.checked_sub(1).map_or(0, |before| self.ends[before] as usize)
    }

    pub(crate) fn get(&self, row: usize) -> &[u8] {
        &self.text[self.start(row)..self.ends[row] as usize]
    }

    /// Marks the rows that contain the text. Searches all texts as one, then determines the row of each match.
    pub(crate) fn mark(&self, finder: &Finder<'_>, marks: &mut [bool]) {
        let n = finder.needle().len();
        let (mut at, mut row) = (0, 0);
        while let Some(found) = finder.find(&self.text[at..]) {
            let found = at + found;
            row = self.row_at(found, row);
            let end = self.ends[row] as usize;
            if found + n <= end {
                marks[row] = true;
                at = end;
            } else {
                // The match spans the end of one text and the beginning of the next.
                at = found + 1;
            }
        }
    }

    /// Returns all rows sorted by text, equal ones in their order.
    pub(crate) fn sorted_rows(&self) -> Vec<u32> {
        sorted_rows(self.ends.len(), |row| self.get(row), |row| row)
    }

    /// Returns the row that contains this byte; it is not before `row`.
    fn row_at(&self, byte: usize, row: usize) -> usize {
        // Usually it is one of the next rows.
        let near = self.ends[row..].iter().take(8).position(|end| *end as usize > byte);
        near.map_or_else(
            || row + self.ends[row..].partition_point(|end| *end as usize <= byte),
            |near| row + near,
        )
    }

    pub(crate) fn bytes(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * 4
    }
}
