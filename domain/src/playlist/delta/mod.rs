//! Compares the stored streams of an account with the entries of a playlist, and so finds the changes of a refresh.
//!
//! Designed for half a million entries that are read one by one. It keeps the keys of each stored stream and of each entry,
//! about 150 and 100 bytes, and none of their text. First all entries are [assigned](KnownStreams::assign) to streams by
//! their keys; then one pass over the playlist counts the changes, and a second one, after [`KnownStreams::rewind`],
//! writes them. The second pass knows what the first one has compared.
//!
//! ```text
//!   store ── add ─▶ KnownStreams ◀─ assign ─────── keys of all entries
//!                     │  ▲ └──────▶ MatchedEntry: new, unchanged or changed ─▶ record of the next version
//!                     │  └───────── match_properties ── entries of the playlist
//!                     └── finish ──▶ MissingStream: becomes stale, or is removed
//! ```

#[cfg(any(test, feature = "fuzzing"))]
pub mod model;

pub use crate::stream_identity::{film_id, live_id};

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
use crate::stream_identity::{
    Assignment, IdentityKey, IdentityKeys, KeyReader, PanelAgreement, assign, panel_id,
};

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
    /// The order in which keys are compared.
    order: Vec<IdentityKey>,
    reader: KeyReader,
    rules: Rules,
    items: Vec<KnownStream>,
    /// The keys of `items`.
    keys: Vec<IdentityKeys>,
    assignment: Assignment,
    /// Positions of new entries with the address of another one. All others are the first.
    new_nths: HashMap<usize, u32>,
    /// The state of each entry that is known after comparing.
    entries: Vec<EntryState>,
    /// Position of the next entry in the playlist.
    next: usize,
    counts: DeltaCounts,
}

/// The compact form of a stored stream.
struct KnownStream {
    fingerprint: u64,
    added_at: i64,
    updated_at: i64,
    /// When a stale stream was last seen.
    last_seen: Option<i64>,
    id: StreamId,
    nth: u32,
    is_edited: bool,
    is_seen: bool,
    /// The playlist contains it, and the account does not want it.
    is_left_out: bool,
}

/// The comparison of an entry with its stream.
#[derive(Clone, Copy, Default)]
struct EntryState {
    /// It has another address.
    is_moved: bool,
    /// It has the same values; `None` until the first pass has compared them.
    is_same: Option<bool>,
}

/// Numbers of entries by change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeltaCounts {
    pub n_new: u64,
    pub n_changed: u64,
    pub n_same: u64,
    /// Entries that the account does not want; they are in no other count.
    pub n_left_out: u64,
    /// Known streams under another address. They are also in `n_changed`.
    pub n_moved: u64,
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
    /// Position among the streams with the same address when it was created.
    pub nth: u32,
    /// The key by which its stream was recognised.
    pub key: Option<IdentityKey>,
    /// Whether it has another address than its stream.
    pub is_moved: bool,
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
    /// Creates an empty set. `reader` is the one that reads the keys of the entries, and `order` that of the account.
    pub fn new(account: AccountId, order: &[IdentityKey], reader: KeyReader, rules: Rules) -> Self {
        Self {
            account,
            order: order.to_vec(),
            reader,
            rules,
            items: Vec::new(),
            keys: Vec::new(),
            assignment: Assignment::default(),
            new_nths: HashMap::new(),
            entries: Vec::new(),
            next: 0,
            counts: DeltaCounts::default(),
        }
    }

    /// Reserves memory for this many streams. Otherwise adding them takes up to twice the memory.
    pub fn reserve(&mut self, n_streams: usize) {
        self.items.reserve_exact(n_streams);
        self.keys.reserve_exact(n_streams);
    }

    /// Adds a stored stream of the account. Call before [`KnownStreams::assign`].
    pub fn add(&mut self, stream: &Stream) {
        self.keys.push(self.reader.read(&stream.provider));
        self.items.push(KnownStream {
            fingerprint: fingerprint(&stream.provider, &stream.rule),
            added_at: stream.added_at,
            updated_at: stream.updated_at,
            last_seen: stream.last_seen,
            id: stream.id,
            nth: stream.nth,
            is_edited: stream.has_edits(),
            is_seen: false,
            is_left_out: false,
        });
    }

    /// Assigns all entries of a playlist, in its order, to the streams. Call before the first entry.
    pub fn assign(&mut self, entries: &[IdentityKeys]) {
        // Streams that are not stale come first, then the one that was first in the playlist, then the oldest.
        let rank = |at: usize| {
            let item = &self.items[at];
            let nth = u64::from(item.nth.min(u32::MAX >> 1));
            u64::from(item.last_seen.is_some()) << 63 | nth << 32 | u64::from(item.id.0)
        };
        self.assignment = assign(&self.order, &self.keys, entries, &rank);
        self.new_nths = self.positions_of_new(entries);
        let is_moved = |(at, entry): (usize, &IdentityKeys)| {
            let known = self.assignment.known_of_entry(at);
            known.is_some_and(|it| self.keys[it].address() != entry.address())
        };
        let moved = entries.iter().enumerate().map(is_moved);
        self.entries = moved.map(|is_moved| EntryState { is_moved, is_same: None }).collect();
    }

    /// Returns the positions of new entries whose address a known stream or an entry before has.
    fn positions_of_new(&self, entries: &[IdentityKeys]) -> HashMap<usize, u32> {
        let of_new = (0..entries.len()).filter(|at| self.assignment.known_of_entry(*at).is_none());
        let mut new: Vec<(u64, usize)> = of_new.map(|at| (entries[at].address(), at)).collect();
        new.sort_unstable();
        let mut next: HashMap<u64, u32> = HashMap::new();
        for (keys, item) in self.keys.iter().zip(&self.items) {
            if new.binary_search_by_key(&keys.address(), |it| it.0).is_ok() {
                let next = next.entry(keys.address()).or_default();
                *next = (*next).max(item.nth.saturating_add(1));
            }
        }
        let mut positions = HashMap::new();
        for run in new.chunk_by(|a, b| a.0 == b.0) {
            let first = next.get(&run[0].0).copied().unwrap_or(0);
            let nths = (first..=u32::MAX).zip(run).filter(|it| it.0 > 0);
            positions.extend(nths.map(|(nth, (_, at))| (*at, nth)));
        }
        positions
    }

    /// Compares the next entry of the playlist.
    pub fn match_entry(&mut self, entry: PlaylistEntry) -> MatchedEntry {
        self.match_properties(stream_properties(entry))
    }

    /// Matches the properties of the next entry; see [`stream_properties`].
    pub fn match_properties(&mut self, properties: StreamProperties) -> MatchedEntry {
        let at = self.next;
        self.next += 1;
        let rule = self.rules.apply(&properties);
        let known = self.assignment.known_of_entry(at);
        let mut matched = MatchedEntry {
            change: EntryChange::New,
            nth: self.new_nths.get(&at).copied().unwrap_or(0),
            key: known.and_then(|it| self.assignment.key_of_known(it)),
            is_moved: false,
            account: self.account,
            added_at: 0,
            updated_at: 0,
            is_edited: false,
            item: known,
            properties,
            rule,
        };
        let Some(known) = known else {
            self.counts.n_new += 1;
            return matched;
        };
        let state = &mut self.entries[at];
        matched.is_moved = state.is_moved;
        let item = &mut self.items[known];
        item.is_seen = true;
        (matched.nth, matched.added_at, matched.updated_at) = (item.nth, item.added_at, item.updated_at);
        matched.is_edited = item.is_edited;
        let compare = || item.fingerprint == fingerprint(&matched.properties, &matched.rule);
        let is_same = *state.is_same.get_or_insert_with(compare);
        if is_same && item.last_seen.is_none() {
            self.counts.n_same += 1;
            matched.change = EntryChange::Unchanged(item.id);
        } else {
            self.counts.n_changed += 1;
            self.counts.n_moved += u64::from(matched.is_moved);
            matched.change = EntryChange::Changed(item.id);
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
        self.counts.n_moved -= u64::from(matched.is_moved);
        self.counts.n_left_out += 1;
        if let Some(item) = matched.item.and_then(|it| self.items.get_mut(it)) {
            (item.is_seen, item.is_left_out) = (false, true);
        }
    }

    /// Returns the numbers of changes so far.
    pub fn counts(&self) -> DeltaCounts {
        self.counts
    }

    /// Returns how far names confirm panel ids. They do not count unless it [is trusted](PanelAgreement::is_trusted).
    pub fn panel_ids(&self) -> PanelAgreement {
        self.assignment.panel_ids
    }

    /// Returns the number of known streams that several entries could be, so that none is.
    pub fn n_contested(&self) -> u64 {
        self.assignment.n_contested
    }

    /// Returns the number of streams that each key recognised, in the order of the keys.
    pub fn recognised(&self) -> Vec<(IdentityKey, u64)> {
        let n = |key: IdentityKey| {
            (0..self.items.len()).filter(|it| self.assignment.key_of_known(*it) == Some(key)).count() as u64
        };
        self.order.iter().map(|it| (*it, n(*it))).collect()
    }

    /// Begins again with the first entry, so that a second pass over the same playlist gives the same results.
    pub fn rewind(&mut self) {
        for item in &mut self.items {
            (item.is_seen, item.is_left_out) = (false, false);
        }
        self.next = 0;
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

    /// A stream of which only the name agrees does not count as seen: the list of somebody else has the same names.
    fn count_seen(&self, is_known: impl Fn(&KnownStream) -> bool) -> SeenAgain {
        let known = self.items.iter().enumerate().filter(|it| is_known(it.1));
        known.fold(SeenAgain::default(), |sum, (at, it)| SeenAgain {
            n_known: sum.n_known + 1,
            n_seen: sum.n_seen
                + u64::from(
                    (it.is_seen || it.is_left_out)
                        && self.assignment.key_of_known(at) != Some(IdentityKey::Name),
                ),
        })
    }

    /// Returns all stored streams that the playlist does not contain, by id. Call after the last entry. A stream used
    /// by a channel is never removed.
    ///
    /// A missing stream becomes stale first and is removed by a later refresh, even if weeks pass between the two. One that
    /// was left out is removed at once, unless an admin changed it.
    pub fn finish(&self, at: StalePolicy, is_used: impl Fn(StreamId) -> bool) -> Vec<MissingStream> {
        let action = |item: &KnownStream| match item.last_seen {
            _ if item.is_left_out && !item.is_edited && !is_used(item.id) => MissingAction::Remove,
            Some(then) if at.is_over(then) && !is_used(item.id) => MissingAction::Remove,
            Some(then) if at.last_seen(Some(then)) == then => MissingAction::KeepStale,
            _ => MissingAction::MarkStale,
        };
        let gone = self.items.iter().filter(|it| !it.is_seen);
        let mut gone: Vec<_> = gone.map(|it| MissingStream { id: it.id, action: action(it) }).collect();
        gone.sort_unstable_by_key(|it| it.id);
        gone
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
    pub fn mark_stale(&mut self, at: StalePolicy) {
        let last_seen = Some(at.last_seen(self.last_seen));
        if self.last_seen != last_seen {
            self.last_seen = last_seen;
            self.updated_at = at.now;
        }
    }

    /// Returns whether an admin changed it, so that a refresh must not build its record from the playlist alone.
    fn has_edits(&self) -> bool {
        // By name, so that a new field does not compile until it is handled here.
        let Self {
            id: _,
            account: _,
            provider: _,
            rule: _,
            manual,
            nth: _,
            stream_profile,
            program,
            leaves_still_picture,
            added_at: _,
            updated_at: _,
            last_seen: _,
        } = self;
        !manual.is_empty() || stream_profile.is_some() || program.is_some() || *leaves_still_picture
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
            let (content, id) = panel_id(url)?;
            let program = url.split_program().1.map(|it| format!(" program {it}"));
            Some(format!("{content:?} {id}{}", program.unwrap_or_default()))
        }
    }
}

/// Returns a hash of all values that a playlist can change.
fn fingerprint(properties: &StreamProperties, rule: &StreamOverrides) -> u64 {
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
    (name, url, tvg_id, group, logo, number, content, archive, is_adult, details, guide_offset)
        .hash(&mut hasher);
    (&headers.user_agent, &headers.referrer, &headers.extra).hash(&mut hasher);
    // Rules change no headers.
    let StreamOverrides { name, url, tvg_id, group, logo, headers: _ } = rule;
    (name, url, tvg_id, group, logo).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
