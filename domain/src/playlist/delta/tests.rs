//! Tests of refreshes, playlist by playlist.

use proptest::collection::vec;
use proptest::prelude::*;

use super::model::{RefreshCase, compare, refresh, run_bytes};
use super::*;
use crate::account::{Rule, RuleField};
use crate::ids::StreamProfileId;
use crate::playlist::m3u::{PlaylistItem, PlaylistLimits, parse};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// Parses `NAME ADDRESS` lines into entries. A name may contain spaces.
fn list(lines: &[String]) -> Vec<PlaylistEntry> {
    let text: String = lines
        .iter()
        .filter_map(|it| it.rsplit_once(' '))
        .map(|(name, url)| format!("#EXTINF:-1,{name}\n{url}\n"))
        .collect();
    let entry = |it| match it {
        PlaylistItem::Entry(entry) => Some(entry),
        _ => None,
    };
    parse(text.as_bytes(), PlaylistLimits::default()).0.into_iter().filter_map(entry).collect()
}

/// An account that is refreshed once a day.
struct Account {
    case: RefreshCase,
    streams: Vec<Stream>,
    last_id: u32,
}

impl Account {
    fn new() -> Self {
        Self { case: RefreshCase::new(100 * DAY), streams: Vec::new(), last_id: 0 }
    }

    fn refresh(&mut self, lines: &[&str]) -> &mut Self {
        self.refresh_after(self.case.at.now, lines)
    }

    /// Refreshes a day later than the clock says; the last refresh was at `last_good`.
    fn refresh_after(&mut self, last_good: i64, lines: &[&str]) -> &mut Self {
        let lines: Vec<String> = lines.iter().map(|it| (*it).to_owned()).collect();
        self.case.at.last_good = last_good;
        self.case.at.now += DAY;
        self.streams = refresh(&self.streams, &list(&lines), &self.case, &mut self.last_id);
        self
    }

    /// Compares a playlist with the streams, and changes nothing.
    fn compare(&self, lines: &[&str]) -> KnownStreams {
        let lines: Vec<String> = lines.iter().map(|it| (*it).to_owned()).collect();
        let list = list(&lines);
        let mut known = compare(&self.streams, &list, &self.case);
        list.into_iter().for_each(|it| drop(known.match_entry(it)));
        known
    }

    /// Compares the streams, written as `ID:NAME` with a `~` if stale.
    #[track_caller]
    fn check(&mut self, expected: &[&str]) -> &mut Self {
        let mark = |it: &Stream| if it.is_stale() { "~" } else { "" };
        let described: Vec<_> =
            self.streams.iter().map(|it| format!("{}{}:{}", mark(it), it.id, it.name())).collect();
        assert_eq!(described, expected);
        self
    }
}

#[test]
fn two_entries_of_one_address_with_other_programmes_are_two_streams() {
    for address in ["http://h/live/u/p/7.ts", "http://h/news.ts"] {
        let mut account = Account::new();
        let (one, two) = (format!("one {address}#program=1"), format!("two {address}#program=2"));
        let whole = format!("whole {address}");
        account.refresh(&[&one, &two, &whole]).check(&["1:one", "2:two", "3:whole"]);
        // In another order they are the same.
        account.refresh(&[&whole, &two, &one]).check(&["1:one", "2:two", "3:whole"]);
        account.refresh(&[&two]).check(&["~1:one", "2:two", "~3:whole"]);
    }
    // The login may change where the panel's number is the identity.
    let mut account = Account::new();
    account.refresh(&["one http://h/live/u/p/7.ts#program=1", "two http://h/live/u/p/7.ts#program=2"]);
    account.refresh(&["two http://i/live/v/q/7.ts#program=2", "one http://i/live/v/q/7.ts#program=1"]);
    account.check(&["1:one", "2:two"]);
}

#[test]
fn an_empty_playlist_is_rejected_and_one_below_half_size_needs_confirmation() {
    for (before, now, expected) in [
        (0, 0, SizeCheck::Empty),
        (100, 0, SizeCheck::Empty),
        (0, 1, SizeCheck::Accept),
        (100, 50, SizeCheck::Accept),
        (100, 49, SizeCheck::Shrunk { before: 100, now: 49 }),
        (101, 50, SizeCheck::Shrunk { before: 101, now: 50 }),
        (1, 1, SizeCheck::Accept),
        (100, 1000, SizeCheck::Accept),
        (u64::MAX, 1, SizeCheck::Shrunk { before: u64::MAX, now: 1 }),
    ] {
        assert_eq!(check_size(before, now), expected, "{before} {now}");
    }
}

#[test]
fn a_playlist_without_half_of_the_known_streams_is_implausible_whatever_its_size() {
    let check = |lines: &[&str], expected: (u64, u64), is_plausible: bool| {
        let mut account = Account::new();
        // The fifth stream is stale before, and does not count.
        account.refresh(&["a http://h/1", "b http://h/2", "c http://h/3", "d http://h/4", "e http://h/5"]);
        account.refresh(&["a http://h/1", "b http://h/2", "c http://h/3", "d http://h/4"]);
        let seen = account.compare(lines).seen_again();
        assert_eq!(((seen.n_known, seen.n_seen), seen.is_plausible()), (expected, is_plausible), "{lines:?}");
    };
    check(&["A http://h/1", "x http://i/2", "x http://i/3", "x http://i/4", "x http://h/5"], (4, 1), false);
    check(&["A http://h/1", "B http://h/2"], (4, 2), true);
    check(&[], (4, 0), false);
    assert!(SeenAgain::default().is_plausible(), "a new account knows nothing");
}

#[test]
fn a_stream_of_which_only_the_name_agrees_does_not_count_as_seen() {
    let mut account = Account::new();
    account.refresh(&["a http://h/1", "b http://h/2", "c http://h/a.ts?token=1", "d http://h/b.ts?token=1"]);
    let list = ["a http://i/1", "b http://i/2", "c http://h/a.ts?token=2", "d http://h/b.ts?token=2"];
    let seen = account.compare(&list).seen_again();
    assert_eq!((seen.n_known, seen.n_seen), (4, 2));
    // They keep their ids nevertheless.
    account.refresh(&list).check(&["1:a", "2:b", "3:c", "4:d"]);
    assert_eq!(account.streams[0].url().expose(), "http://i/1");
}

#[test]
fn a_refresh_keeps_everything_that_an_admin_set() {
    let mut account = Account::new();
    account.refresh(&["a http://h/1", "b http://h/2", "c http://h/3"]);
    account.streams[0].program = Some(3);
    account.streams[1].leaves_still_picture = true;
    account.refresh(&["a http://i/1", "B http://h/2", "c http://i/3"]).check(&["1:a", "2:B", "3:c"]);
    let edits = |it: &Stream| (it.program, it.leaves_still_picture);
    assert_eq!(
        account.streams.iter().map(edits).collect::<Vec<_>>(),
        [(Some(3), false), (None, true), (None, false)]
    );
}

#[test]
fn streams_that_vanish_in_small_steps_count_as_known_for_a_week() {
    let mut account = Account::new();
    account.case.at.stale_stream_days = 30;
    let lines: Vec<String> = (0..10).map(|it| format!("x http://h/{it}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let first = account.refresh(&lines).case.at.now;
    for n_left in [9, 8, 7, 6] {
        account.refresh(&lines[..n_left]);
    }
    let seen = |list: &[&str], since| {
        let seen = account.compare(list).seen_again_since(since);
        (seen.n_known, seen.n_seen)
    };
    assert_eq!(seen(&lines[..4], first), (10, 4));
    assert_eq!(seen(&lines[..4], first + DAY), (9, 4), "the first loss was before");
    assert_eq!(seen(&lines[..4], first - DAY), (0, 0), "nothing was known then");
    assert_eq!(seen(&lines, first), (10, 10), "what came back is not lost");
}

#[test]
fn a_clock_that_is_set_removes_nothing_and_starts_the_time_of_stale_streams_again() {
    let remaining = ["a http://h/1"];
    let mut account = Account::new();
    // The clock begins in 1970, as on a machine without a battery.
    (account.case.at.last_good, account.case.at.now) = (0, 0);
    account.refresh(&["a http://h/1", "b http://h/2"]).refresh(&remaining).check(&["1:a", "~2:b"]);
    let jump = |account: &mut Account, to: i64| account.case.at.now = to - DAY;
    let last_seen = |account: &Account| account.streams[1].last_seen.map(|it| it / DAY);
    for (day, step) in [(20_000, "forwards"), (50_000, "too far"), (20_100, "back")] {
        let before = account.case.at.now;
        jump(&mut account, day * DAY);
        account.refresh_after(before, &remaining).check(&["1:a", "~2:b"]);
        assert_eq!(last_seen(&account), Some(day), "{step}");
        account.refresh(&remaining).check(&["1:a", "~2:b"]);
    }
    for _ in 0..6 {
        account.refresh(&remaining);
    }
    account.check(&["1:a"]);
    // A stream that vanishes with the jump.
    let before = account.case.at.now;
    jump(&mut account, 30_000 * DAY);
    account.refresh_after(before, &["c http://h/3"]);
    account.refresh(&["c http://h/3"]).check(&["~1:a", "3:c"]);
}

#[test]
fn a_known_stream_takes_64_bytes_besides_its_keys() {
    assert!(size_of::<KnownStream>() <= 64, "{}", size_of::<KnownStream>());
}

#[test]
fn a_stream_keeps_its_id_while_its_address_stays_the_same() {
    let mut account = Account::new();
    account.refresh(&["a http://h/1", "b http://h/2"]).check(&["1:a", "2:b"]);
    account.refresh(&["B http://h/2", "a http://h/1"]).check(&["1:a", "2:B"]);
    account.refresh(&["B http://h/2", "c http://h/3"]).check(&["~1:a", "2:B", "3:c"]);
    account.refresh(&["a http://h/1", "B http://h/2"]).check(&["1:a", "2:B", "~3:c"]);
}

#[test]
fn a_panel_stream_keeps_its_id_when_login_and_host_change() {
    let before = ["a http://h/live/u/p/1.ts", "b http://h/live/u/p/2.ts", "m http://h/movie/u/p/1.mkv"];
    let after = ["a http://i/live/v/q/1.ts", "b http://i/v/q/2", "m http://i/movie/v/q/1.mkv"];
    Account::new().refresh(&before).refresh(&after).check(&["1:a", "2:b", "3:m"]);
    // Without panel ids and names, only the addresses are left.
    let mut account = Account::new();
    account.case.order = vec![IdentityKey::Address];
    account.refresh(&before).refresh(&after);
    account.check(&["~1:a", "~2:b", "~3:m", "4:a", "5:b", "6:m"]);
    // An id that two streams have decides nothing, so the addresses do.
    account.case.order = IdentityKey::ALL.to_vec();
    account.refresh(&before).check(&["1:a", "2:b", "3:m", "~4:a", "~5:b", "~6:m"]);
}

#[test]
fn streams_with_the_same_address_are_distinguished_by_their_order() {
    let mut account = Account::new();
    account.refresh(&["a http://h/1", "b http://h/1", "c http://h/2"]).check(&["1:a", "2:b", "3:c"]);
    account.refresh(&["c http://h/2", "a http://h/1", "B http://h/1"]).check(&["1:a", "2:B", "3:c"]);
    account.refresh(&["c http://h/2", "a http://h/1"]).check(&["1:a", "~2:B", "3:c"]);
}

// Holds the pure part of T-sync.2.
#[test]
fn the_same_playlist_twice_changes_nothing() {
    let lines = ["a http://h/1", "b http://h/1", "c http://h/2"];
    let mut account = Account::new();
    let rule = Rule { field: RuleField::Name, find: "a".to_owned(), replace: "A".to_owned() };
    account.case.rules = Rules::new(&[rule]).unwrap();
    account.refresh(&lines);
    let before = account.streams.clone();
    assert_eq!(account.refresh(&lines).streams, before);
    let list = list(&lines.map(str::to_owned));
    let mut known = compare(&before, &list, &account.case);
    let changes: Vec<_> = list.into_iter().map(|it| known.match_entry(it).change).collect();
    assert_eq!(changes, [1, 2, 3].map(|id| EntryChange::Unchanged(StreamId(id))));
    assert_eq!(known.counts(), DeltaCounts { n_same: 3, ..DeltaCounts::default() });
    assert_eq!(known.finish(account.case.at, |_| false), []);
}

// Holds the pure part of T-sync.4.
#[test]
fn an_edit_survives_refreshes_and_removing_it_restores_the_providers_value() {
    let mut account = Account::new();
    account.refresh(&["a http://h/1", "b http://h/2"]);
    account.streams[0].manual.name = Some("mine".to_owned());
    account.streams[0].manual.group = Some(String::new());
    account.streams[1].stream_profile = Some(StreamProfileId(7));
    for name in ["b", "c", "d"] {
        account.refresh(&[&format!("{name} http://h/1"), &format!("{name} http://h/2")]);
        account.check(&["1:mine", &format!("2:{name}")]);
    }
    assert_eq!(account.streams[1].stream_profile, Some(StreamProfileId(7)));
    assert_eq!(account.streams[0].added_at, 101 * DAY);
    account.streams[0].manual = StreamOverrides::default();
    account.check(&["1:d", "2:d"]).refresh(&["d http://h/1", "d http://h/2"]).check(&["1:d", "2:d"]);
}

#[test]
fn a_change_of_rules_changes_their_results_but_not_the_providers_values() {
    let mut account = Account::new();
    let rule = |find: &str| Rule { field: RuleField::Name, find: find.to_owned(), replace: "x".to_owned() };
    account.case.rules = Rules::new(&[rule("a")]).unwrap();
    account.refresh(&["ab http://h/1"]).check(&["1:xb"]);
    account.case.rules = Rules::new(&[rule("b")]).unwrap();
    account.refresh(&["ab http://h/1"]).check(&["1:ax"]);
    account.case.rules = Rules::default();
    account.refresh(&["ab http://h/1"]).check(&["1:ab"]);
    assert_eq!(account.streams[0].rule, StreamOverrides::default());
}

#[test]
fn a_missing_stream_stays_stale_for_the_configured_days_and_is_removed_unless_used() {
    let remaining = ["a http://h/1"];
    let check = |days: u32, n_refreshes: usize, used: &[u32], expected: &[&str]| {
        let mut account = Account::new();
        account.case.at.stale_stream_days = days;
        account.case.used = used.iter().copied().map(StreamId).collect();
        account.refresh(&["a http://h/1", "b http://h/2"]);
        for _ in 0..n_refreshes {
            account.refresh(&remaining);
        }
        account.check(expected);
    };
    check(3, 1, &[], &["1:a", "~2:b"]);
    check(3, 2, &[], &["1:a", "~2:b"]);
    check(3, 3, &[], &["1:a"]);
    check(3, 30, &[2], &["1:a", "~2:b"]);
    // Never without being stale first, because weeks may pass between two refreshes.
    check(0, 1, &[], &["1:a", "~2:b"]);
    check(0, 2, &[], &["1:a"]);
}

#[test]
fn a_stream_records_when_it_was_last_seen_and_last_changed() {
    let mut account = Account::new();
    let times =
        |it: &Stream| [it.added_at, it.updated_at, it.last_seen.unwrap_or_default()].map(|it| it / DAY);
    for (lines, expected) in [
        (["a http://h/1", "b http://h/2"], [101, 101, 0]),
        (["a http://h/1", "b http://h/2"], [101, 101, 0]),
        (["a http://h/1", "c http://h/2"], [101, 103, 0]),
        (["a http://h/1", "d http://h/4"], [101, 104, 103]),
        (["a http://h/1", "d http://h/4"], [101, 104, 103]),
        (["a http://h/1", "c http://h/2"], [101, 106, 0]),
    ] {
        account.refresh(&lines);
        assert_eq!(times(&account.streams[1]), expected, "{lines:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    // Holds T-id.1 for streams.
    #[test]
    fn an_id_identifies_the_same_stream_through_shuffles_renames_and_gaps(
        lists in vec(vec((0u32..12, 0u32..3), 1..20), 2..10),
        is_panel in any::<bool>(),
    ) {
        let mut account = Account::new();
        account.case.at.stale_stream_days = 1000;
        let mut meanings = std::collections::BTreeMap::new();
        for (n, entries) in lists.iter().enumerate() {
            // The login of a panel changes with every playlist, and the name of a stream in a list with addresses.
            let line = |(id, name): &(u32, u32)| match is_panel {
                true => format!("Station {id} http://h/live/u{n}/p/{id}.ts"),
                false => format!("Of {id} as {name} http://h/{id}.ts"),
            };
            let lines: Vec<_> = entries.iter().map(line).collect();
            account.refresh(&lines.iter().map(String::as_str).collect::<Vec<_>>());
            for stream in &account.streams {
                let thing = (stream.provider.url.path().rsplit('/').next().map(str::to_owned), stream.nth);
                prop_assert_eq!(meanings.entry(stream.id).or_insert_with(|| thing.clone()), &thing);
            }
            // The streams that are not stale are those of the playlist.
            let n_present = account.streams.iter().filter(|it| !it.is_stale()).count();
            prop_assert_eq!(n_present, entries.len());
        }
    }

    #[test]
    fn a_refresh_agrees_with_the_simple_model(choice in any::<u8>(), lists in vec((vec((0u32..6, 0u32..3, 0u32..2), 0..12), any::<u8>()), 0..8)) {
        let mut bytes = vec![choice];
        for (entries, admin) in lists {
            for (id, name, login) in entries {
                bytes.extend(format!("#EXTINF:-1,{}\nhttp://h/u{login}/p/{id}.ts\n", ["abc", "x", "y"][name as usize]).bytes());
            }
            bytes.extend([0xff, admin]);
        }
        run_bytes(&bytes);
    }

    #[test]
    fn a_refresh_of_random_bytes_agrees_with_the_simple_model(bytes in vec(prop_oneof![Just(0xffu8), Just(b'\n'), any::<u8>()], 0..200)) {
        run_bytes(&bytes);
    }
}

#[test]
fn an_entry_that_is_left_out_counts_as_seen_and_its_stream_is_removed_unless_used_or_edited() {
    let mut account = Account::new();
    let lines = ["a http://h/1", "b http://h/2", "c http://h/3", "d http://h/4"];
    account.refresh(&lines);
    account.streams[1].manual.name = Some("mine".to_owned());
    let lines: Vec<String> =
        lines.iter().map(|it| (*it).to_owned()).chain(["e http://h/5".to_owned()]).collect();
    let list = list(&lines);
    let mut known = compare(&account.streams, &list, &account.case);
    for entry in list {
        let is_wanted = entry.name == "a";
        let matched = known.match_entry(entry);
        if !is_wanted {
            known.leave_out(&matched);
        }
    }
    assert_eq!(known.counts(), DeltaCounts { n_same: 1, n_left_out: 4, ..DeltaCounts::default() });
    assert_eq!(known.seen_again(), SeenAgain { n_known: 4, n_seen: 4 });
    let gone = known.finish(account.case.at, |id| id == StreamId(3));
    let actions: Vec<_> = gone.iter().map(|it| (it.id.0, it.action)).collect();
    use MissingAction::{MarkStale, Remove};
    assert_eq!(actions, [(2, MarkStale), (3, MarkStale), (4, Remove)]);
}

#[test]
fn a_stream_that_is_marked_as_adult_content_later_is_changed() {
    let entry = |mark: &str| {
        let text = format!("#EXTINF:-1{mark},a\nhttp://h/1\n");
        let entry = |it| match it {
            PlaylistItem::Entry(entry) => Some(entry),
            _ => None,
        };
        parse(text.as_bytes(), PlaylistLimits::default()).0.into_iter().find_map(entry).unwrap()
    };
    let case = RefreshCase::new(100 * DAY);
    let (mut streams, mut last_id) = (Vec::new(), 0);
    for (mark, is_adult) in [("", false), (" is_adult=\"1\"", true), ("", false)] {
        streams = refresh(&streams, &[entry(mark)], &case, &mut last_id);
        assert_eq!((streams.len(), streams[0].id, streams[0].is_adult()), (1, StreamId(1), is_adult));
    }
}
