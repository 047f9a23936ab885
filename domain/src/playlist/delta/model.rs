//! A simple implementation of a refresh, with which the optimised one is compared. The property tests and the fuzz
//! target use it.

use std::convert::Infallible;

use super::{
    EntryChange, KnownStreams, MissingAction, MissingStream, SizeCheck, StalePolicy, check_size, identity,
};
use crate::account::{Rule, RuleField, StreamIdentity};
use crate::ids::{AccountId, StreamId};
use crate::playlist::m3u::{self, PlaylistEntry, PlaylistItem, PlaylistLimits};
use crate::playlist::rules::Rules;
use crate::stream::Stream;

/// The only account.
pub const ACCOUNT: AccountId = AccountId(2);

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The conditions of a refresh.
#[derive(Debug, Clone)]
pub struct RefreshCase {
    pub identity: StreamIdentity,
    pub rules: Rules,
    pub at: StalePolicy,
    /// Ids of streams that channels use.
    pub used: Vec<StreamId>,
}

impl RefreshCase {
    /// Creates a case at a time; the previous refresh was an hour ago.
    pub fn new(identity: StreamIdentity, now: i64) -> Self {
        let at = StalePolicy { last_good: now - 3_600_000, now, stale_stream_days: 7 };
        Self { identity, rules: Rules::default(), at, used: Vec::new() }
    }
}

/// Returns the streams after a refresh, by id. Does the same as the importer: one pass that compares, one that writes.
pub fn refresh(
    streams: &[Stream],
    list: &[PlaylistEntry],
    case: &RefreshCase,
    last_id: &mut u32,
) -> Vec<Stream> {
    let mut known = KnownStreams::new(ACCOUNT, case.identity, case.rules.clone());
    known.reserve(streams.len());
    streams.iter().for_each(|it| known.add(it));
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
    for MissingStream { id, action, nth } in gone {
        let mut stream = streams.iter().find(|it| it.id == id).cloned().expect("it was known");
        match action {
            MissingAction::Remove => continue,
            MissingAction::MarkStale => stream.mark_stale(nth, case.at),
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
    let name = |stream: &Stream| match identity::panel_id(&stream.provider.url) {
        Some(id) if case.identity == StreamIdentity::StreamId => {
            format!("{id:?} {:?}", stream.provider.url.split_program().1)
        }
        _ => stream.provider.url.expose().to_owned(),
    };
    // If two streams have the same name and position, the one with the larger id moves to the next free position.
    let mut positions: Vec<(String, u32, StreamId)> =
        streams.iter().map(|it| (name(it), it.nth, it.id)).collect();
    positions.sort();
    for at in 1..positions.len() {
        if positions[at].0 == positions[at - 1].0 && positions[at].1 <= positions[at - 1].1 {
            positions[at].1 = positions[at - 1].1 + 1;
        }
    }
    let mut after: Vec<Stream> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for entry in list {
        let properties = super::stream_properties(entry.clone());
        let rule = case.rules.apply(&properties);
        let mut stream = Stream::new(StreamId(0), ACCOUNT, properties.clone(), case.at.now);
        let name = name(&stream);
        let nth = seen.iter().filter(|it| **it == name).count() as u32;
        seen.push(name.clone());
        let position = positions.iter().find(|it| it.0 == name && it.1 == nth);
        if let Some(old) = position.and_then(|position| streams.iter().find(|it| it.id == position.2)) {
            stream = old.clone();
        } else {
            *last_id += 1;
            stream.id = StreamId(*last_id);
        }
        stream.refreshed(properties, rule, nth, case.at.now);
        after.push(stream);
    }
    for stream in streams {
        if after.iter().any(|it| it.id == stream.id) {
            continue;
        }
        let mut stream = stream.clone();
        let stale_ms = i64::from(case.at.stale_stream_days) * DAY_MS;
        let nth = positions.iter().find(|it| it.2 == stream.id).map_or(0, |it| it.1);
        let StalePolicy { last_good, now, .. } = case.at;
        let is_clock_right = (last_good..=last_good + 90 * DAY_MS).contains(&now);
        match stream.last_seen {
            Some(then) if is_clock_right && now - then >= stale_ms && !case.used.contains(&stream.id) => {
                continue;
            }
            Some(then) if nth == stream.nth && is_clock_right && then <= now => {}
            Some(then) if nth == stream.nth && then == now => {}
            before => {
                stream.nth = nth;
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
    let identity = if choice & 1 == 0 { StreamIdentity::Url } else { StreamIdentity::StreamId };
    let rule = Rule { field: RuleField::Name, find: "([a-f]+)".to_owned(), replace: "<$1>".to_owned() };
    let rules = if choice & 2 == 0 { Vec::new() } else { vec![rule] };
    let mut case = RefreshCase::new(identity, 1_000_000_000);
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
        4 => case.identity = StreamIdentity::StreamId,
        5 => case.identity = StreamIdentity::Url,
        _ => {}
    }
}
