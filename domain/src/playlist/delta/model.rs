//! A simple implementation of a refresh, with which the optimised one is compared. The property tests and the fuzz
//! target use it.

use std::convert::Infallible;

use super::{
    EntryChange, KnownStreams, MissingAction, MissingStream, SizeCheck, StalePolicy, check_size,
    stream_properties,
};
use crate::account::{Rule, RuleField};
use crate::ids::{AccountId, StreamId};
use crate::playlist::m3u::{self, PlaylistEntry, PlaylistItem, PlaylistLimits};
use crate::playlist::rules::Rules;
use crate::stream::Stream;
use crate::stream_identity::model::assign_simply;
use crate::stream_identity::{IdentityKey, IdentityKeys, KeyReader};

/// The only account.
pub const ACCOUNT: AccountId = AccountId(2);

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The conditions of a refresh.
#[derive(Debug, Clone)]
pub struct RefreshCase {
    /// The order in which keys are compared.
    pub order: Vec<IdentityKey>,
    pub rules: Rules,
    pub at: StalePolicy,
    /// Ids of streams that channels use.
    pub used: Vec<StreamId>,
}

impl RefreshCase {
    /// Creates a case at a time; the previous refresh was an hour ago.
    pub fn new(now: i64) -> Self {
        let at = StalePolicy { last_good: now - 3_600_000, now, stale_stream_days: 7 };
        Self { order: IdentityKey::ALL.to_vec(), rules: Rules::default(), at, used: Vec::new() }
    }
}

/// Returns the comparison of a playlist with these streams, before its first entry.
pub fn compare(streams: &[Stream], list: &[PlaylistEntry], case: &RefreshCase) -> KnownStreams {
    let mut reader = KeyReader::new(Vec::new());
    let keys: Vec<IdentityKeys> = list.iter().map(|it| reader.read(&stream_properties(it.clone()))).collect();
    let mut known = KnownStreams::new(ACCOUNT, &case.order, reader, case.rules.clone());
    known.reserve(streams.len());
    streams.iter().for_each(|it| known.add(it));
    known.assign(&keys);
    known
}

/// Returns the streams after a refresh, by id. Does the same as the importer: one pass that compares, one that writes.
pub fn refresh(
    streams: &[Stream],
    list: &[PlaylistEntry],
    case: &RefreshCase,
    last_id: &mut u32,
) -> Vec<Stream> {
    let mut known = compare(streams, list, case);
    let changes: Vec<EntryChange> = list.iter().map(|it| known.match_entry(it.clone()).change).collect();
    let counts = known.counts();
    let gone = known.finish(case.at, |id| case.used.contains(&id));
    known.rewind();

    let mut after = Vec::new();
    for (entry, change) in list.iter().zip(changes) {
        let matched = known.match_entry(entry.clone());
        assert_eq!(matched.change, change, "the second pass differs from the first");
        let new_id = || {
            *last_id += 1;
            Ok::<_, Infallible>(StreamId(*last_id))
        };
        let before = |id| Ok(streams.iter().find(|it| it.id == id).cloned());
        let Ok(stream) = matched.into_stream(case.at.now, new_id, before);
        let is_as_before = streams.contains(&stream);
        assert_eq!(matches!(change, EntryChange::Unchanged(_)), is_as_before, "{change:?}");
        after.push(stream);
    }
    assert_eq!(known.counts(), counts);
    assert_eq!(counts.n_new + counts.n_changed + counts.n_same, list.len() as u64);
    assert_eq!(known.finish(case.at, |id| case.used.contains(&id)), gone);
    assert_eq!(counts.n_changed + counts.n_same + gone.len() as u64, streams.len() as u64);
    for MissingStream { id, action } in gone {
        let mut stream = streams.iter().find(|it| it.id == id).cloned().expect("it was known");
        match action {
            MissingAction::Remove => continue,
            MissingAction::MarkStale => stream.mark_stale(case.at),
            MissingAction::KeepStale => {}
        }
        after.push(stream);
    }
    after.sort_unstable_by_key(|it| it.id);
    after
}

/// Does the same in the simple way.
fn expected(
    streams: &[Stream],
    list: &[PlaylistEntry],
    case: &RefreshCase,
    last_id: &mut u32,
) -> Vec<Stream> {
    let mut reader = KeyReader::new(Vec::new());
    let known: Vec<IdentityKeys> = streams.iter().map(|it| reader.read(&it.provider)).collect();
    let properties: Vec<_> = list.iter().map(|it| stream_properties(it.clone())).collect();
    let entries: Vec<IdentityKeys> = properties.iter().map(|it| reader.read(it)).collect();
    let rank = |at: usize| {
        let Stream { nth, id, last_seen, .. } = &streams[at];
        u64::from(last_seen.is_some()) << 63 | u64::from(*nth) << 32 | u64::from(id.0)
    };
    let of_entries = assign_simply(&case.order, &known, &entries, &rank);
    let mut after: Vec<Stream> = Vec::new();
    for (properties, of_entry) in properties.into_iter().zip(of_entries) {
        let rule = case.rules.apply(&properties);
        let mut stream = Stream::new(StreamId(0), ACCOUNT, properties.clone(), case.at.now);
        if let Some(old) = of_entry {
            stream = streams[old].clone();
        } else {
            *last_id += 1;
            stream.id = StreamId(*last_id);
            let is_new = |it: &&Stream| streams.iter().all(|old| old.id != it.id);
            let same = streams.iter().chain(after.iter().filter(is_new));
            let same = same.filter(|it| it.provider.url == properties.url);
            stream.nth = same.map(|it| it.nth + 1).max().unwrap_or(0);
        }
        let nth = stream.nth;
        stream.refreshed(properties, rule, nth, case.at.now);
        after.push(stream);
    }
    for stream in streams {
        if after.iter().any(|it| it.id == stream.id) {
            continue;
        }
        let mut stream = stream.clone();
        let stale_ms = i64::from(case.at.stale_stream_days) * DAY_MS;
        let StalePolicy { last_good, now, .. } = case.at;
        let is_clock_right = (last_good..=last_good + 90 * DAY_MS).contains(&now);
        match stream.last_seen {
            Some(then) if is_clock_right && now - then >= stale_ms && !case.used.contains(&stream.id) => {
                continue;
            }
            Some(then) if is_clock_right && then <= now => {}
            Some(then) if then == now => {}
            before => {
                let then = before.unwrap_or(last_good);
                stream.last_seen = Some(if is_clock_right { then.min(now) } else { now });
                stream.updated_at = now;
            }
        }
        after.push(stream);
    }
    after.sort_unstable_by_key(|it| it.id);
    after
}

/// Decodes a case and several playlists, and refreshes with one after the other.
///
/// The first byte selects identity and rules; playlists end with a byte 0xff, and the following byte encodes an admin's
/// action before the next one.
pub fn run_bytes(bytes: &[u8]) {
    const LIMITS: PlaylistLimits = PlaylistLimits {
        line_bytes_max: 256,
        name_chars_max: 32,
        url_bytes_max: 64,
        attributes_max: 3,
        entries_max: 40,
    };
    let Some((choice, mut rest)) = bytes.split_first() else { return };
    let rule = Rule { field: RuleField::Name, find: "([a-f]+)".to_owned(), replace: "<$1>".to_owned() };
    let rules = if choice & 2 == 0 { Vec::new() } else { vec![rule] };
    let mut case = RefreshCase::new(1_000_000_000);
    if choice & 1 == 1 {
        case.order.reverse();
    }
    case.rules = Rules::new(&rules).expect("the rules are valid");
    case.at.stale_stream_days = u32::from(choice >> 2 & 3);
    let (mut streams, mut last_id, mut last_id_expected) = (Vec::new(), 0, 0);
    for _ in 0..8 {
        let end = rest.iter().position(|it| *it == 0xff).unwrap_or(rest.len());
        let (list, behind) = rest.split_at(end);
        let mut entries: Vec<PlaylistEntry> = Vec::new();
        for item in m3u::parse(list, LIMITS).0 {
            if let PlaylistItem::Entry(entry) = item {
                entries.push(entry);
            }
        }
        if check_size(streams.len() as u64, entries.len() as u64) != SizeCheck::Empty {
            let after = refresh(&streams, &entries, &case, &mut last_id);
            assert_eq!(after, expected(&streams, &entries, &case, &mut last_id_expected));
            // The same playlist again at the same time changes nothing, except that overdue streams are removed.
            case.at.last_good = case.at.now;
            let is_overdue = |it: &Stream| {
                let stale_ms = i64::from(case.at.stale_stream_days) * DAY_MS;
                it.last_seen.is_some_and(|then| case.at.now - then >= stale_ms) && !case.used.contains(&it.id)
            };
            let again = refresh(&after, &entries, &case, &mut last_id);
            assert!(again.iter().eq(after.iter().filter(|it| !is_overdue(it))));
            streams = after;
        }
        let [_, what, behind @ ..] = behind else { return };
        admin(&mut streams, *what, &mut case);
        case.at.last_good = case.at.now;
        // Seven is a clock that is set: forwards by decades, or back.
        case.at.now = match what >> 5 {
            7 if case.at.now > 100 * 365 * DAY_MS => 1_000_000_000,
            7 => case.at.now + 200 * 365 * DAY_MS,
            halves => case.at.now + i64::from(halves) * 12 * 3_600_000,
        };
        rest = behind;
    }
}

/// Carries out an admin's action between two refreshes.
fn admin(streams: &mut [Stream], what: u8, case: &mut RefreshCase) {
    let at = usize::from(what >> 3) % streams.len().max(1);
    let Some(stream) = streams.get_mut(at) else { return };
    match what & 7 {
        0 => stream.manual.name = Some("edited".to_owned()),
        1 => stream.manual = Default::default(),
        2 => stream.stream_profile = Some(crate::ids::StreamProfileId(1)),
        3 => case.used.push(stream.id),
        4 => case.order.rotate_left(1),
        5 => case.order = vec![IdentityKey::Address],
        _ => {}
    }
}
