//! All streams in memory, in columns: for lists, filters and exact counts over half a million of them.
//!
//! An [`StreamSnapshot`] never changes; each commit makes the next one, which shares what did not change. It is made of one
//! [`Shard`] per account, and of the few streams that were edited since their shard was built.
//!
//! It knows what a list can be filtered and sorted by, and no more: whoever shows a page reads its fifty records. With
//! 500,000 streams (names of 17 bytes, guide ids of 21) it takes 28 MiB, and 2 MiB for every order of texts that somebody
//! asked for; `benches/stream_list.rs` measures it.

mod query;
mod shard;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crate::ids::{AccountId, StreamId};
use crate::stream::Stream;

pub use self::query::{StreamOrder, StreamPage, StreamQuery};
pub use self::shard::{Shard, ShardBuilder};

/// More edited streams than this belong into their shards: see [`StreamSnapshot::n_edited`].
pub const EDITED_MAX: usize = 1000;

/// All streams, as one moment had them.
#[derive(Clone, Default)]
pub struct StreamSnapshot {
    /// By account; each once.
    shards: Vec<Arc<Shard>>,
    /// Streams that came or changed since their shard was built.
    edited: BTreeMap<StreamId, Arc<Row>>,
    /// Those that a shard still has as they were, and which shard. Edited or gone.
    hidden: BTreeSet<(StreamId, AccountId)>,
}

/// What is kept of a stream. Texts that are looked for are in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    account: AccountId,
    name: String,
    tvg_id: String,
    /// As it is written; empty is none.
    group: String,
    is_stale: bool,
}

impl Row {
    fn of(stream: &Stream) -> Self {
        Self {
            account: stream.account,
            name: stream.name().to_lowercase(),
            tvg_id: stream.tvg_id().unwrap_or_default().to_lowercase(),
            group: stream.group().unwrap_or_default().to_owned(),
            is_stale: stream.is_stale(),
        }
    }
}

/// How many streams there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamCounts {
    pub n: usize,
    pub n_stale: usize,
}

impl StreamSnapshot {
    /// The same with another shard in the place of the one that its account had.
    pub fn with(&self, shard: Shard) -> Self {
        let account = shard.account();
        let mut next = self.without(account);
        let at = next.shards.partition_point(|it| it.account() < account);
        next.shards.insert(at, Arc::new(shard));
        next
    }

    /// The same without the streams of an account.
    pub fn without(&self, account: AccountId) -> Self {
        let mut next = self.clone();
        next.shards.retain(|it| it.account() != account);
        next.edited.retain(|_, it| it.account != account);
        next.hidden.retain(|it| it.1 != account);
        next
    }

    /// The same with some streams as they are now; `None` is gone. The time it takes grows with
    /// [`StreamSnapshot::n_edited`], so it is for a few.
    pub fn edited<'a>(&self, streams: impl IntoIterator<Item = (StreamId, Option<&'a Stream>)>) -> Self {
        let mut next = self.clone();
        for (id, stream) in streams {
            let shards = next.shards.iter().filter(|it| it.has(id));
            next.hidden.extend(shards.map(|it| (id, it.account())));
            match stream {
                Some(stream) => drop(next.edited.insert(id, Arc::new(Row::of(stream)))),
                None => drop(next.edited.remove(&id)),
            }
        }
        next
    }

    /// How many streams are kept beside their shards.
    pub fn n_edited(&self) -> usize {
        self.edited.len().max(self.hidden.len())
    }

    /// The accounts of streams that are kept beside their shards, before and after.
    pub fn edited_accounts(&self) -> Vec<AccountId> {
        let mut accounts: Vec<_> = self.edited.values().map(|it| it.account).collect();
        accounts.extend(self.hidden.iter().map(|it| it.1));
        accounts.sort_unstable();
        accounts.dedup();
        accounts
    }

    /// The accounts that have a shard, or streams beside it.
    pub fn accounts(&self) -> Vec<AccountId> {
        let accounts = self.shards.iter().map(|it| it.account());
        let mut accounts: Vec<_> = accounts.chain(self.edited.values().map(|it| it.account)).collect();
        accounts.sort_unstable();
        accounts.dedup();
        accounts
    }

    /// The shard of an account, edits not counted. Who compares pointers sees what was built again.
    pub fn shard(&self, account: AccountId) -> Option<&Arc<Shard>> {
        self.shards.iter().find(|it| it.account() == account)
    }

    /// How many streams there are.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|it| it.len()).sum::<usize>() - self.hidden.len() + self.edited.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The account of a stream, if there is that stream.
    pub fn contains(&self, id: StreamId) -> Option<AccountId> {
        if let Some(row) = self.edited.get(&id) {
            return Some(row.account);
        }
        let mut shards = self.shards.iter().filter(|it| it.has(id)).map(|it| it.account());
        shards.find(|account| !self.hidden.contains(&(id, *account)))
    }

    /// The streams of an account, and how many of them are stale.
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

    /// The groups of these accounts' streams by name, or of all, each with the number of its streams.
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

    /// Bytes of memory, without what many share and what an allocator adds.
    pub fn bytes(&self) -> usize {
        self.shards.iter().map(|it| it.bytes()).sum()
    }

    /// Rows of shards that do not count any more.
    fn hidden_rows(&self) -> impl Iterator<Item = (&Shard, usize)> {
        self.hidden.iter().filter_map(|(id, account)| {
            let shard = self.shard(*account)?;
            Some((&**shard, shard.row_of(*id)?))
        })
    }
}

#[cfg(test)]
mod tests;
