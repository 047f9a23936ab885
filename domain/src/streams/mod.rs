//! All streams in memory, in columns: for lists, filters and exact counts of half a million streams.
//!
//! A [`StreamSnapshot`] is immutable; each commit creates the next one, which shares the unchanged parts. It consists
//! of one [`Shard`] per account, and of the few streams that were edited since their shard was built.
//!
//! It contains only the values by which a list is filtered and sorted; the records of a page are read from the store.
//! With 500,000 streams (names of 17 bytes, guide ids of 21) it takes 28 MiB, and 2 MiB for every text order in use;
//! `benches/stream_list.rs` measures it.

mod query;
mod shard;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crate::entry_details::ChannelMarks;
use crate::ids::{AccountId, StreamId, StreamProfileId};
use crate::playlist::content::StreamContent;
use crate::stream::Stream;

pub use self::query::{StreamOrder, StreamPage, StreamQuery};
pub(crate) use self::shard::Column;
pub use self::shard::{Shard, ShardBuilder};

/// Number of edited streams above which shards should be rebuilt: see [`StreamSnapshot::n_edited`].
pub const EDITED_MAX: usize = 1000;

/// All streams at one moment.
#[derive(Clone, Default)]
pub struct StreamSnapshot {
    /// Sorted by account; each once.
    shards: Vec<Arc<Shard>>,
    /// Streams added or changed since their shard was built.
    edited: BTreeMap<StreamId, Arc<Row>>,
    /// Streams whose shard is outdated, with the account of the shard: edited or deleted.
    hidden: BTreeSet<(StreamId, AccountId)>,
}

/// The searchable values of a stream. Texts are in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    account: AccountId,
    name: String,
    tvg_id: String,
    /// As written; empty if there is none.
    group: String,
    content: StreamContent,
    is_stale: bool,
    /// As [`Stream::archive_days`].
    archive_days: u16,
    /// As [`Stream::guide_offset`].
    guide_offset: i16,
    marks: Option<Arc<ChannelMarks>>,
    stream_profile: Option<StreamProfileId>,
    /// A page of a video site.
    is_page: bool,
}

impl Row {
    fn from_stream(stream: &Stream) -> Self {
        Self {
            account: stream.account,
            name: stream.name().to_lowercase(),
            tvg_id: stream.tvg_id().unwrap_or_default().to_lowercase(),
            group: stream.group().unwrap_or_default().to_owned(),
            content: stream.content(),
            is_stale: stream.is_stale(),
            archive_days: u16::try_from(stream.archive_days()).unwrap_or(u16::MAX),
            guide_offset: stream.guide_offset(),
            marks: stream.marks().map(|it| Arc::new(it.clone())),
            stream_profile: stream.stream_profile,
            is_page: stream.profile_of_page().is_some(),
        }
    }
}

/// Numbers of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamCounts {
    pub n: usize,
    pub n_stale: usize,
}

impl StreamSnapshot {
    /// Returns a snapshot in which this shard replaces the one of its account.
    pub fn with(&self, shard: Shard) -> Self {
        let account = shard.account();
        let mut next = self.without(account);
        let at = next.shards.partition_point(|it| it.account() < account);
        next.shards.insert(at, Arc::new(shard));
        next
    }

    /// Returns a snapshot without the streams of an account.
    pub fn without(&self, account: AccountId) -> Self {
        let mut next = self.clone();
        next.shards.retain(|it| it.account() != account);
        next.edited.retain(|_, it| it.account != account);
        next.hidden.retain(|it| it.1 != account);
        next
    }

    /// Returns a snapshot with these streams changed; `None` is a deleted one. Takes time in proportion to
    /// [`StreamSnapshot::n_edited`], so it is meant for a few streams.
    pub fn edited<'a>(&self, streams: impl IntoIterator<Item = (StreamId, Option<&'a Stream>)>) -> Self {
        let mut next = self.clone();
        for (id, stream) in streams {
            let shards = next.shards.iter().filter(|it| it.has(id));
            next.hidden.extend(shards.map(|it| (id, it.account())));
            match stream {
                Some(stream) => drop(next.edited.insert(id, Arc::new(Row::from_stream(stream)))),
                None => drop(next.edited.remove(&id)),
            }
        }
        next
    }

    /// Returns the number of streams kept outside their shards.
    pub fn n_edited(&self) -> usize {
        self.edited.len().max(self.hidden.len())
    }

    /// Returns the accounts of streams kept outside their shards, before and after the edit.
    pub fn edited_accounts(&self) -> Vec<AccountId> {
        let mut accounts: Vec<_> = self.edited.values().map(|it| it.account).collect();
        accounts.extend(self.hidden.iter().map(|it| it.1));
        accounts.sort_unstable();
        accounts.dedup();
        accounts
    }

    /// Returns the accounts that have a shard or edited streams.
    pub fn accounts(&self) -> Vec<AccountId> {
        let accounts = self.shards.iter().map(|it| it.account());
        let mut accounts: Vec<_> = accounts.chain(self.edited.values().map(|it| it.account)).collect();
        accounts.sort_unstable();
        accounts.dedup();
        accounts
    }

    /// Returns the shard of an account, without edits. Comparing pointers shows whether it was rebuilt.
    pub fn shard(&self, account: AccountId) -> Option<&Arc<Shard>> {
        self.shards.iter().find(|it| it.account() == account)
    }

    /// Returns the number of streams.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|it| it.len()).sum::<usize>() - self.hidden.len() + self.edited.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the account of a stream, if the stream exists.
    pub fn contains(&self, id: StreamId) -> Option<AccountId> {
        if let Some(row) = self.edited.get(&id) {
            return Some(row.account);
        }
        let mut shards = self.shards.iter().filter(|it| it.has(id)).map(|it| it.account());
        shards.find(|account| !self.hidden.contains(&(id, *account)))
    }

    /// Returns the streams with an archive, each with its account and the depth in days. In no order.
    pub fn archives(&self) -> impl Iterator<Item = (StreamId, AccountId, u16)> {
        let is_hidden = |id, account| !self.hidden.is_empty() && self.hidden.contains(&(id, account));
        let of_shards = self.shards.iter().flat_map(move |shard| {
            let archives = shard.archives().map(|(row, days)| (shard.id(row), shard.account(), days));
            archives.filter(move |it| !is_hidden(it.0, it.1))
        });
        let edited = self.edited.iter().filter(|(_, row)| row.archive_days > 0);
        of_shards.chain(edited.map(|(id, row)| (*id, row.account, row.archive_days)))
    }

    /// Returns the offset of the guide of a stream in minutes: see [`Stream::guide_offset`]. 0 for an unknown stream.
    pub fn guide_offset(&self, id: StreamId) -> i16 {
        if let Some(row) = self.edited.get(&id) {
            return row.guide_offset;
        }
        let mut found = self.shards.iter().filter_map(|it| Some((it.account(), it.guide_offset(id)?)));
        let is_hidden = |account| !self.hidden.is_empty() && self.hidden.contains(&(id, account));
        found.find(|it| !is_hidden(it.0)).map_or(0, |it| it.1)
    }

    /// Returns the streams whose guide has an offset, each with its minutes. In no order.
    pub fn guide_offsets(&self) -> impl Iterator<Item = (StreamId, i16)> {
        let of_shards = self
            .shards
            .iter()
            .flat_map(|shard| shard.guide_offsets().filter(|it| !self.is_hidden(it.0, shard)));
        let edited = self.edited.iter().map(|(id, row)| (*id, row.guide_offset));
        of_shards.chain(edited.filter(|it| it.1 != 0))
    }

    /// Returns the streams with marks of their provider. In no order.
    pub fn marks(&self) -> impl Iterator<Item = (StreamId, &Arc<ChannelMarks>)> {
        let of_shards = self.shards.iter().flat_map(|shard| {
            shard.marks().map(|(row, marks)| (shard.id(row), marks)).filter(|it| !self.is_hidden(it.0, shard))
        });
        of_shards.chain(self.edited.iter().filter_map(|(id, row)| Some((*id, row.marks.as_ref()?))))
    }

    /// Returns the streams with a stream profile of their own. In no order.
    pub fn stream_profiles(&self) -> impl Iterator<Item = (StreamId, StreamProfileId)> {
        let of_shards = self.shards.iter().flat_map(|shard| {
            let profiles = shard.stream_profiles().map(|(row, profile)| (shard.id(row), profile));
            profiles.filter(|it| !self.is_hidden(it.0, shard))
        });
        of_shards.chain(self.edited.iter().filter_map(|(id, row)| Some((*id, row.stream_profile?))))
    }

    /// Returns the number of streams whose addresses are pages of video sites.
    pub fn n_pages(&self) -> usize {
        let is_shown = |id: StreamId, shard: &Shard| !self.is_hidden(id, shard);
        let of_shard = |it: &Arc<Shard>| it.pages().filter(|row| is_shown(it.id(*row), it)).count();
        let of_shards: usize = self.shards.iter().map(of_shard).sum();
        of_shards + self.edited.values().filter(|it| it.is_page).count()
    }

    /// Returns whether the row of a shard is outdated.
    fn is_hidden(&self, id: StreamId, shard: &Shard) -> bool {
        !self.hidden.is_empty() && self.hidden.contains(&(id, shard.account()))
    }

    /// Returns the number of streams of an account, and of the stale ones among them.
    pub fn account_counts(&self, account: AccountId) -> StreamCounts {
        let mut counts = self.shard(account).map_or_else(StreamCounts::default, |it| it.counts());
        for (shard, row) in self.hidden_rows().filter(|(shard, _)| shard.account() == account) {
            counts.n -= 1;
            counts.n_stale -= usize::from(shard.is_stale(row));
        }
        for row in self.edited.values().filter(|it| it.account == account) {
            counts.n += 1;
            counts.n_stale += usize::from(row.is_stale);
        }
        counts
    }

    /// Returns the groups of these accounts, or of all, by name with their numbers of streams.
    pub fn groups(&self, accounts: Option<&HashSet<AccountId>>) -> Vec<(String, usize)> {
        let is_asked = |account: AccountId| accounts.is_none_or(|it| it.contains(&account));
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for shard in self.shards.iter().filter(|it| is_asked(it.account())) {
            for (group, n) in shard.groups() {
                *counts.entry(group).or_default() += n;
            }
        }
        for (shard, row) in self.hidden_rows().filter(|(shard, _)| is_asked(shard.account())) {
            if let Some(n) = counts.get_mut(shard.group(row)) {
                *n -= 1;
            }
        }
        for row in self.edited.values().filter(|it| is_asked(it.account)) {
            *counts.entry(&row.group).or_default() += 1;
        }
        let is_group = |(name, n): &(&str, usize)| !name.is_empty() && *n > 0;
        counts.into_iter().filter(is_group).map(|(name, n)| (name.to_owned(), n)).collect()
    }

    /// Returns the memory in bytes, without shared parts and the allocator's overhead.
    pub fn bytes(&self) -> usize {
        self.shards.iter().map(|it| it.bytes()).sum()
    }

    /// Returns the outdated rows of shards.
    fn hidden_rows(&self) -> impl Iterator<Item = (&Shard, usize)> {
        self.hidden.iter().filter_map(|(id, account)| {
            let shard = self.shard(*account)?;
            Some((&**shard, shard.row_of(*id)?))
        })
    }
}

#[cfg(test)]
mod tests;
