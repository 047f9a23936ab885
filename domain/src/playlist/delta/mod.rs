//! What a refresh changes: the streams of an account that are known, and the entries of the list that came.
//!
//! Made for half a million entries that are read one by one. Of a known stream 72 bytes are kept and none of
//! its text; an entry is answered with a verdict and forgotten. So one pass over the list tells what would change, and
//! a second one, after [`KnownStreams::rewind`], writes it.
//!
//! ```text
//!   store ── add ─▶ Known ◀─ take ── entries of the list
//!                     │  └─────────▶ MatchedEntry: new, same or changed ─▶ the record of the next version
//!                     └── finish ──▶ what is not in the list any more: stale, or removed
//! ```

mod identity;
#[cfg(any(test, fuzzing))]
pub mod model;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::account::StreamIdentity;
use crate::ids::{AccountId, StreamId};
use crate::playlist::catalogue::is_id;
use crate::playlist::m3u::PlaylistEntry;
use crate::playlist::rules::Rules;
use crate::stream::{Stream, StreamOverrides, StreamProperties};

/// What is to be done with a list, before anything of it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeCheck {
    Accept,
    /// There is nothing in it, or it is no playlist: it changes nothing, whoever agrees.
    Empty,
    /// Under half of the last good list: an admin has to agree.
    Shrunk {
        before: u64,
        now: u64,
    },
}

/// Looks at the size of a list: `n_good_before` entries had the last good one (0 where there was none), `n_entries_now`
/// can be used of this one.
pub fn check_size(n_good_before: u64, n_entries_now: u64) -> SizeCheck {
    if n_entries_now == 0 {
        SizeCheck::Empty
    } else if n_entries_now < n_good_before.div_ceil(2) {
        SizeCheck::Shrunk { before: n_good_before, now: n_entries_now }
    } else {
        SizeCheck::Accept
    }
}

/// The streams of one account as they were before the refresh, and which of them the list has.
pub struct KnownStreams {
    account: AccountId,
    identity: StreamIdentity,
    rules: Rules,
    /// Once sealed in the order of key and place.
    items: Vec<KnownStream>,
    is_sealed: bool,
    /// How often the list had an identity that no known stream has. Bounded by the entries of the list.
    others: HashMap<IdentityHash, u32>,
    counts: DeltaCounts,
}

/// An identity as 128 bits of hash.
type IdentityHash = [u64; 2];

/// What is kept of a known stream.
struct KnownStream {
    key: IdentityHash,
    fingerprint: u64,
    added_at: i64,
    updated_at: i64,
    /// When it was last seen, of one that is stale.
    last_seen: Option<i64>,
    id: StreamId,
    nth: u32,
    /// How often the list has had this identity so far. Counted in the first item of a key.
    n_seen: u32,
    is_edited: bool,
    /// Its place is another one than in its record.
    is_moved: bool,
    is_seen: bool,
}

/// Entries and streams, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeltaCounts {
    pub n_new: u64,
    pub n_changed: u64,
    pub n_same: u64,
}

/// What an entry is to the streams that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryChange {
    New,
    Unchanged(StreamId),
    Changed(StreamId),
}

/// An entry that was taken.
#[derive(Debug)]
pub struct MatchedEntry {
    pub change: EntryChange,
    pub properties: StreamProperties,
    /// What the account's rules make of the facts.
    pub rule: StreamOverrides,
    /// Which one it is of those with its identity in this list.
    pub nth: u32,
    account: AccountId,
    added_at: i64,
    updated_at: i64,
    is_edited: bool,
}

/// When streams vanish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StalePolicy {
    /// When the last good refresh ended, in milliseconds since 1970: until then they were there.
    pub last_good: i64,
    /// Milliseconds since 1970.
    pub now: i64,
    /// Days after which a stale stream is removed; 0 is at the next refresh.
    pub stale_stream_days: u32,
}

/// A known stream that is not in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingStream {
    pub id: StreamId,
    pub action: MissingAction,
    /// For [`Stream::mark_stale`].
    pub nth: u32,
}

/// What becomes of a known stream that is not in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingAction {
    /// It is stale already, and nothing else changes.
    KeepStale,
    /// It vanishes: see [`Stream::mark_stale`].
    MarkStale,
    Remove,
}

impl KnownStreams {
    pub fn new(account: AccountId, identity: StreamIdentity, rules: Rules) -> Self {
        Self {
            account,
            identity,
            rules,
            items: Vec::new(),
            is_sealed: false,
            others: HashMap::new(),
            counts: DeltaCounts::default(),
        }
    }

    /// Makes room for so many streams. Without, up to twice the memory is taken while they are added.
    pub fn reserve(&mut self, n_streams: usize) {
        self.items.reserve_exact(n_streams);
    }

    /// A stream of the account as it is now. Before the first entry.
    pub fn add(&mut self, stream: &Stream) {
        self.is_sealed = false;
        self.items.push(KnownStream {
            key: key(self.identity, &stream.provider),
            fingerprint: fingerprint(&stream.provider, &stream.rule, stream.nth),
            added_at: stream.added_at,
            updated_at: stream.updated_at,
            last_seen: stream.last_seen,
            id: stream.id,
            nth: stream.nth,
            n_seen: 0,
            is_edited: !stream.manual.is_empty() || stream.stream_profile.is_some(),
            is_moved: false,
            is_seen: false,
        });
    }

    /// The next entry of the list.
    pub fn match_entry(&mut self, entry: PlaylistEntry) -> MatchedEntry {
        self.seal();
        let facts = facts(entry);
        let rule = self.rules.apply(&facts);
        let key = key(self.identity, &facts);
        let first = self.items.partition_point(|it| it.key < key);
        let n_seen = match self.items.get_mut(first) {
            Some(item) if item.key == key => &mut item.n_seen,
            _ => self.others.entry(key).or_default(),
        };
        let nth = *n_seen;
        *n_seen = n_seen.saturating_add(1);
        let same_key = self.items[first..].partition_point(|it| it.key == key && it.nth < nth);
        let mut taken = MatchedEntry {
            change: EntryChange::New,
            properties: facts,
            rule,
            nth,
            account: self.account,
            added_at: 0,
            updated_at: 0,
            is_edited: false,
        };
        match self.items.get_mut(first + same_key) {
            Some(item) if item.key == key && item.nth == nth => {
                item.is_seen = true;
                taken.added_at = item.added_at;
                taken.updated_at = item.updated_at;
                taken.is_edited = item.is_edited;
                let is_same = item.fingerprint == fingerprint(&taken.properties, &taken.rule, nth);
                if is_same && item.last_seen.is_none() {
                    self.counts.n_same += 1;
                    taken.change = EntryChange::Unchanged(item.id);
                } else {
                    self.counts.n_changed += 1;
                    taken.change = EntryChange::Changed(item.id);
                }
            }
            _ => self.counts.n_new += 1,
        }
        taken
    }

    /// What was taken so far.
    pub fn counts(&self) -> DeltaCounts {
        self.counts
    }

    /// Forgets what was taken, to go through the same list again with the same verdicts.
    pub fn rewind(&mut self) {
        for item in &mut self.items {
            item.n_seen = 0;
            item.is_seen = false;
        }
        self.others.clear();
        self.counts = DeltaCounts::default();
    }

    /// After the last entry: all known streams that the list does not have, by id. One that is used by a channel is
    /// never removed.
    ///
    /// Whoever vanishes is stale first and removed by a later refresh, also where there are weeks between two.
    pub fn finish(&mut self, at: StalePolicy, is_used: impl Fn(StreamId) -> bool) -> Vec<MissingStream> {
        self.seal();
        let stale_ms = i64::from(at.stale_stream_days) * 24 * 60 * 60 * 1000;
        let action = |item: &KnownStream| match item.last_seen {
            Some(then) if at.now.saturating_sub(then) >= stale_ms && !is_used(item.id) => {
                MissingAction::Remove
            }
            Some(_) if !item.is_moved => MissingAction::KeepStale,
            _ => MissingAction::MarkStale,
        };
        let gone = self.items.iter().filter(|it| !it.is_seen);
        let mut gone: Vec<_> =
            gone.map(|it| MissingStream { id: it.id, action: action(it), nth: it.nth }).collect();
        gone.sort_unstable_by_key(|it| it.id);
        gone
    }

    /// Sorts what was added, and keeps apart what has one identity and place: that happens where the account's idea of
    /// identity was changed.
    fn seal(&mut self) {
        if std::mem::replace(&mut self.is_sealed, true) {
            return;
        }
        // The older one keeps its place: that is the one which channels use.
        self.items.sort_unstable_by_key(|it| (it.key, it.nth, it.id));
        let mut before: Option<(IdentityHash, u32)> = None;
        for item in &mut self.items {
            if let Some((key, nth)) = before
                && key == item.key
                && item.nth <= nth
            {
                item.nth = nth.saturating_add(1);
                item.is_moved = true;
            }
            before = Some((item.key, item.nth));
        }
    }
}

impl MatchedEntry {
    /// The record of the next version. Made of the entry where that is enough; `before` is asked for the record only
    /// where an admin changed something about it, `new_id` only for a new stream.
    pub fn into_stream<E>(
        self,
        now: i64,
        new_id: impl FnOnce() -> Result<StreamId, E>,
        before: impl FnOnce(StreamId) -> Result<Option<Stream>, E>,
    ) -> Result<Stream, E> {
        let (id, added_at, updated_at) = match self.change {
            EntryChange::New => (new_id()?, now, now),
            EntryChange::Unchanged(id) => (id, self.added_at, self.updated_at),
            EntryChange::Changed(id) => (id, self.added_at, now),
        };
        if self.is_edited
            && let Some(mut stream) = before(id)?
        {
            stream.refreshed(self.properties, self.rule, self.nth, now);
            return Ok(stream);
        }
        let mut stream = Stream::new(id, self.account, self.properties, added_at);
        stream.updated_at = updated_at;
        stream.rule = self.rule;
        stream.nth = self.nth;
        Ok(stream)
    }
}

impl Stream {
    /// It is in the list: takes what the provider says now, and keeps all that is ours. Says whether anything changed.
    pub fn refreshed(&mut self, facts: StreamProperties, rule: StreamOverrides, nth: u32, now: i64) -> bool {
        let is_same =
            self.provider == facts && self.rule == rule && self.nth == nth && self.last_seen.is_none();
        if !is_same {
            self.provider = facts;
            self.rule = rule;
            self.nth = nth;
            self.last_seen = None;
            self.updated_at = now;
        }
        !is_same
    }

    /// It is not in the list any more: it becomes stale, or stays so.
    pub fn mark_stale(&mut self, nth: u32, at: StalePolicy) {
        if self.last_seen.is_none() || self.nth != nth {
            self.last_seen = self.last_seen.or(Some(at.last_good));
            self.nth = nth;
            self.updated_at = at.now;
        }
    }
}

/// What an entry says of a stream.
pub(crate) fn facts(entry: PlaylistEntry) -> StreamProperties {
    StreamProperties {
        name: entry.name,
        url: entry.url,
        headers: entry.headers,
        tvg_id: entry.tvg_id.filter(|it| is_id(it)),
        group: entry.group,
        logo: entry.tvg_logo,
        number: entry.tvg_chno,
    }
}

/// The hash of an identity. For one refresh only, never written down.
fn key(identity: StreamIdentity, facts: &StreamProperties) -> IdentityHash {
    let panel_id = match identity {
        StreamIdentity::Url => None,
        StreamIdentity::StreamId => identity::panel_id(&facts.url),
    };
    [0u8, 1].map(|half| {
        let mut hasher = DefaultHasher::new();
        (half, panel_id).hash(&mut hasher);
        if panel_id.is_none() {
            facts.url.hash(&mut hasher);
        }
        hasher.finish()
    })
}

/// A hash of all that a list can change.
fn fingerprint(facts: &StreamProperties, rule: &StreamOverrides, nth: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    // By name, so that a new field does not compile until it is looked at.
    let StreamProperties { name, url, headers, tvg_id, group, logo, number } = facts;
    (name, url, tvg_id, group, logo, number, nth).hash(&mut hasher);
    (&headers.user_agent, &headers.referrer, &headers.extra).hash(&mut hasher);
    let StreamOverrides { name, url, tvg_id, group, logo } = rule;
    (name, url, tvg_id, group, logo).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
