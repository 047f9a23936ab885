//! Compares the stored streams of an account with the entries of a playlist, and so finds the changes of a refresh.
//!
//! Designed for half a million entries that are read one by one. It keeps 72 bytes per stored stream and none of its
//! text; an entry is compared and forgotten. One pass over the playlist counts the changes, and a second one, after
//! [`KnownStreams::rewind`], writes them.
//!
//! ```text
//!   store ── add ─▶ KnownStreams ◀─ match_entry ── entries of the playlist
//!                     │  └─────────▶ MatchedEntry: new, unchanged or changed ─▶ record of the next version
//!                     └── finish ──▶ MissingStream: becomes stale, or is removed
//! ```

mod identity;
#[cfg(any(test, feature = "fuzzing"))]
pub mod model;

pub use self::identity::{film_id, live_id};

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::account::StreamIdentity;
use crate::catchup::Archive;
use crate::guide::shift::offset_of_attributes;
use crate::ids::{AccountId, StreamId};
use crate::playlist::catalogue::is_id;
use crate::playlist::m3u::PlaylistEntry;
use crate::playlist::rules::Rules;
use crate::playlist::{adult, attributes, content};
use crate::source_url::SourceUrl;
use crate::stream::{Stream, StreamOverrides, StreamProperties};

/// The result of a size check, before anything of a playlist is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeCheck {
    Accept,
    /// The playlist is empty or not a playlist. It changes nothing, even if an admin confirms it.
    Empty,
    /// Fewer than half of the entries of the last accepted playlist: an admin has to confirm it.
    Shrunk {
        before: u64,
        now: u64,
    },
}

/// Checks the size of a playlist. `n_good_before` is the number of entries of the last accepted one (0 if there was
/// none), `n_entries_now` the number of usable entries of this one.
pub fn check_size(n_good_before: u64, n_entries_now: u64) -> SizeCheck {
    if n_entries_now == 0 {
        SizeCheck::Empty
    } else if n_entries_now < n_good_before.div_ceil(2) {
        SizeCheck::Shrunk { before: n_good_before, now: n_entries_now }
    } else {
        SizeCheck::Accept
    }
}

/// A number of known streams, and how many of them a playlist contains again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeenAgain {
    pub n_known: u64,
    pub n_seen: u64,
}

impl SeenAgain {
    /// Returns whether enough streams were seen again: at least half of them. Otherwise an admin has to confirm the
    /// playlist.
    pub fn is_plausible(self) -> bool {
        self.n_seen >= self.n_known.div_ceil(2)
    }
}

/// The streams of one account before the refresh, and whether the playlist contains them.
pub struct KnownStreams {
    account: AccountId,
    identity: StreamIdentity,
    rules: Rules,
    /// Sorted by identity and position once sealed.
    items: Vec<KnownStream>,
    is_sealed: bool,
    /// Number of entries per identity that no stored stream has. Bounded by the entries of the playlist.
    others: HashMap<IdentityHash, u32>,
    counts: DeltaCounts,
}

/// A 128-bit hash of an identity.
type IdentityHash = [u64; 2];

/// The compact form of a stored stream.
struct KnownStream {
    key: IdentityHash,
    fingerprint: u64,
    added_at: i64,
    updated_at: i64,
    /// When a stale stream was last seen.
    last_seen: Option<i64>,
    id: StreamId,
    nth: u32,
    /// Number of entries with this identity so far. Counted in the first stream of an identity.
    n_seen: u32,
    is_edited: bool,
    /// Its position differs from that in its record.
    is_moved: bool,
    is_seen: bool,
    /// The playlist contains it, and the account does not want it.
    is_left_out: bool,
}

/// Numbers of entries by change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeltaCounts {
    pub n_new: u64,
    pub n_changed: u64,
    pub n_same: u64,
    /// Entries that the account does not want; they are in no other count.
    pub n_left_out: u64,
}

/// The change that an entry causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryChange {
    New,
    Unchanged(StreamId),
    Changed(StreamId),
}

/// An entry after the comparison with the stored streams.
#[derive(Debug)]
pub struct MatchedEntry {
    pub change: EntryChange,
    pub properties: StreamProperties,
    /// Values changed by the account's rules.
    pub rule: StreamOverrides,
    /// Position among the entries with the same identity in this playlist.
    pub nth: u32,
    account: AccountId,
    added_at: i64,
    updated_at: i64,
    is_edited: bool,
    /// Position of the stored stream.
    item: Option<usize>,
}

/// Longest plausible time between two successful refreshes, in milliseconds. If the clock says that more has passed, or
/// less than none, it was probably set, and times before that say nothing about how long a stream has been stale.
const REFRESH_GAP_MAX: i64 = 90 * 24 * 60 * 60 * 1000;

/// The times that decide when streams become stale and when they are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StalePolicy {
    /// End of the last successful refresh, in milliseconds since 1970: streams that become stale were last seen then.
    pub last_good: i64,
    /// Milliseconds since 1970.
    pub now: i64,
    /// Days after which a stale stream is removed; 0 removes it at the next refresh.
    pub stale_stream_days: u32,
}

impl StalePolicy {
    /// Returns whether the clock was set since the last successful refresh.
    fn has_clock_jumped(self) -> bool {
        !(0..=REFRESH_GAP_MAX).contains(&self.now.saturating_sub(self.last_good))
    }

    /// Returns when a missing stream was last seen, if the record says `recorded`. A time that a wrong clock has recorded
    /// becomes the present one, so that the stream is kept for the whole time again.
    pub(crate) fn last_seen(self, recorded: Option<i64>) -> i64 {
        match recorded {
            _ if self.has_clock_jumped() => self.now,
            Some(then) => then.min(self.now),
            None => self.last_good,
        }
    }

    /// Returns whether a stream that was last seen at `then` has been stale for long enough to be removed.
    pub fn is_over(self, then: i64) -> bool {
        let stale_ms = i64::from(self.stale_stream_days) * 24 * 60 * 60 * 1000;
        !self.has_clock_jumped() && self.now.saturating_sub(then) >= stale_ms
    }
}

/// A stored stream that is missing from the playlist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingStream {
    pub id: StreamId,
    pub action: MissingAction,
    /// The position for [`Stream::mark_stale`].
    pub nth: u32,
}

/// The action for a stored stream that is missing from the playlist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingAction {
    /// It is stale already, and nothing changes.
    KeepStale,
    /// Call [`Stream::mark_stale`].
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

    /// Reserves memory for this many streams. Otherwise adding them takes up to twice the memory.
    pub fn reserve(&mut self, n_streams: usize) {
        self.items.reserve_exact(n_streams);
    }

    /// Adds a stored stream of the account. Call before the first entry.
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
            is_left_out: false,
        });
    }

    /// Compares the next entry of the playlist.
    pub fn match_entry(&mut self, entry: PlaylistEntry) -> MatchedEntry {
        self.match_properties(stream_properties(entry))
    }

    /// Matches the properties of the next entry; see [`stream_properties`].
    pub fn match_properties(&mut self, properties: StreamProperties) -> MatchedEntry {
        self.seal();
        let rule = self.rules.apply(&properties);
        let key = key(self.identity, &properties);
        let first = self.items.partition_point(|it| it.key < key);
        let n_seen = match self.items.get_mut(first) {
            Some(item) if item.key == key => &mut item.n_seen,
            _ => self.others.entry(key).or_default(),
        };
        let nth = *n_seen;
        *n_seen = n_seen.saturating_add(1);
        let same_key = self.items[first..].partition_point(|it| it.key == key && it.nth < nth);
        let mut matched = MatchedEntry {
            change: EntryChange::New,
            properties,
            rule,
            nth,
            account: self.account,
            added_at: 0,
            updated_at: 0,
            is_edited: false,
            item: None,
        };
        match self.items.get_mut(first + same_key) {
            Some(item) if item.key == key && item.nth == nth => {
                item.is_seen = true;
                matched.item = Some(first + same_key);
                matched.added_at = item.added_at;
                matched.updated_at = item.updated_at;
                matched.is_edited = item.is_edited;
                let is_same = item.fingerprint == fingerprint(&matched.properties, &matched.rule, nth);
                if is_same && item.last_seen.is_none() {
                    self.counts.n_same += 1;
                    matched.change = EntryChange::Unchanged(item.id);
                } else {
                    self.counts.n_changed += 1;
                    matched.change = EntryChange::Changed(item.id);
                }
            }
            _ => self.counts.n_new += 1,
        }
        matched
    }

    /// Leaves out an entry that was just matched: it is not imported. Its stream, if it is stored, counts as seen when the
    /// playlist is compared with the last one, and as missing otherwise.
    pub fn leave_out(&mut self, matched: &MatchedEntry) {
        match matched.change {
            EntryChange::New => self.counts.n_new -= 1,
            EntryChange::Unchanged(_) => self.counts.n_same -= 1,
            EntryChange::Changed(_) => self.counts.n_changed -= 1,
        }
        self.counts.n_left_out += 1;
        if let Some(item) = matched.item.and_then(|it| self.items.get_mut(it)) {
            (item.is_seen, item.is_left_out) = (false, true);
        }
    }

    /// Returns the numbers of changes so far.
    pub fn counts(&self) -> DeltaCounts {
        self.counts
    }

    /// Forgets the entries, so that a second pass over the same playlist gives the same results.
    pub fn rewind(&mut self) {
        for item in &mut self.items {
            item.n_seen = 0;
            (item.is_seen, item.is_left_out) = (false, false);
        }
        self.others.clear();
        self.counts = DeltaCounts::default();
    }

    /// Returns how many streams of the last good playlist this one contains. Call after the last entry.
    pub fn seen_again(&self) -> SeenAgain {
        self.count_seen(|it| it.last_seen.is_none())
    }

    /// Returns how many of the streams that the playlist contained at `since` it contains now. Streams that vanished in
    /// several small steps since then count as known. Call after the last entry.
    pub fn seen_again_since(&self, since: i64) -> SeenAgain {
        self.count_seen(|it| it.added_at <= since && it.last_seen.is_none_or(|then| then >= since))
    }

    fn count_seen(&self, is_known: impl Fn(&KnownStream) -> bool) -> SeenAgain {
        let known = self.items.iter().filter(|it| is_known(it));
        known.fold(SeenAgain::default(), |sum, it| SeenAgain {
            n_known: sum.n_known + 1,
            n_seen: sum.n_seen + u64::from(it.is_seen || it.is_left_out),
        })
    }

    /// Returns all stored streams that the playlist does not contain, by id. Call after the last entry. A stream used
    /// by a channel is never removed.
    ///
    /// A missing stream becomes stale first and is removed by a later refresh, even if weeks pass between the two. One that
    /// was left out is removed at once, unless an admin changed it.
    pub fn finish(&mut self, at: StalePolicy, is_used: impl Fn(StreamId) -> bool) -> Vec<MissingStream> {
        self.seal();
        let action = |item: &KnownStream| match item.last_seen {
            _ if item.is_left_out && !item.is_edited && !is_used(item.id) => MissingAction::Remove,
            Some(then) if at.is_over(then) && !is_used(item.id) => MissingAction::Remove,
            Some(then) if !item.is_moved && at.last_seen(Some(then)) == then => MissingAction::KeepStale,
            _ => MissingAction::MarkStale,
        };
        let gone = self.items.iter().filter(|it| !it.is_seen);
        let mut gone: Vec<_> =
            gone.map(|it| MissingStream { id: it.id, action: action(it), nth: it.nth }).collect();
        gone.sort_unstable_by_key(|it| it.id);
        gone
    }

    /// Sorts the streams, and separates streams with the same identity and position, which occur after the account's
    /// identity setting was changed.
    fn seal(&mut self) {
        if std::mem::replace(&mut self.is_sealed, true) {
            return;
        }
        // The older stream keeps its position, because channels use it.
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
    /// Returns the record of the next version. It is built from the entry if possible; `before` is called only for a
    /// stream that an admin changed, `new_id` only for a new stream.
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
    /// Applies the provider's present values to a stream that the playlist contains, and keeps all edits. Returns
    /// whether anything changed.
    pub fn refreshed(
        &mut self,
        properties: StreamProperties,
        rule: StreamOverrides,
        nth: u32,
        now: i64,
    ) -> bool {
        let is_same =
            self.provider == properties && self.rule == rule && self.nth == nth && self.last_seen.is_none();
        if !is_same {
            self.provider = properties;
            self.rule = rule;
            self.nth = nth;
            self.last_seen = None;
            self.updated_at = now;
        }
        !is_same
    }

    /// Marks a stream that the playlist does not contain as stale.
    pub fn mark_stale(&mut self, nth: u32, at: StalePolicy) {
        let last_seen = Some(at.last_seen(self.last_seen));
        if self.last_seen != last_seen || self.nth != nth {
            self.last_seen = last_seen;
            self.nth = nth;
            self.updated_at = at.now;
        }
    }
}

/// Converts an entry to the properties of a stream.
pub fn stream_properties(entry: PlaylistEntry) -> StreamProperties {
    let content = content::from_entry(&entry);
    // A film is never a channel, whatever the playlist says.
    let archive =
        content.is_live().then(|| Archive::from_attributes(&entry.attributes)).flatten().map(Box::new);
    let details = attributes::details_of(&entry.attributes, entry.options);
    let number_in_id = || details.channel_id.as_deref().and_then(attributes::number_in_id);
    StreamProperties {
        guide_offset: offset_of_attributes(&entry.attributes),
        is_adult: adult::is_marked(&entry.attributes),
        name: entry.name,
        url: entry.url,
        headers: entry.headers,
        tvg_id: entry.tvg_id.filter(|it| is_id(it)),
        group: entry.group,
        logo: entry.tvg_logo,
        number: entry.tvg_chno.or_else(number_in_id),
        content,
        archive,
        details: (!details.is_empty()).then(|| Box::new(details)),
    }
}

/// Returns the kind and the number by which a panel knows a stream, if they identify it within its account.
pub(crate) fn panel_id_of(identity: StreamIdentity, url: &SourceUrl) -> Option<String> {
    match identity {
        StreamIdentity::Url => None,
        StreamIdentity::StreamId => {
            let (content, id) = identity::panel_id(url)?;
            let program = url.split_program().1.map(|it| format!(" program {it}"));
            Some(format!("{content:?} {id}{}", program.unwrap_or_default()))
        }
    }
}

/// Returns the hash of an identity. Valid for one refresh only, never stored.
fn key(identity: StreamIdentity, properties: &StreamProperties) -> IdentityHash {
    let panel_id = match identity {
        StreamIdentity::Url => None,
        StreamIdentity::StreamId => identity::panel_id(&properties.url),
    };
    [0u8, 1].map(|half| {
        let mut hasher = DefaultHasher::new();
        (half, panel_id).hash(&mut hasher);
        match panel_id {
            Some(_) => properties.url.split_program().1.hash(&mut hasher),
            None => properties.url.hash(&mut hasher),
        }
        hasher.finish()
    })
}

/// Returns a hash of all values that a playlist can change.
fn fingerprint(properties: &StreamProperties, rule: &StreamOverrides, nth: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    // By name, so that a new field does not compile until it is handled here.
    let StreamProperties {
        name,
        url,
        headers,
        tvg_id,
        group,
        logo,
        number,
        content,
        archive,
        is_adult,
        guide_offset,
        details,
    } = properties;
    (name, url, tvg_id, group, logo, number, content, archive, is_adult, details, nth, guide_offset)
        .hash(&mut hasher);
    (&headers.user_agent, &headers.referrer, &headers.extra).hash(&mut hasher);
    // Rules change no headers.
    let StreamOverrides { name, url, tvg_id, group, logo, headers: _ } = rule;
    (name, url, tvg_id, group, logo).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
