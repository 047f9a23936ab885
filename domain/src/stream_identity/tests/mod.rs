//! Tests of the identity of streams, list by list.

mod thirty_days;

use proptest::collection::vec;
use proptest::prelude::*;

use super::model::assign_simply;
use super::*;
use crate::entry_details::EntryDetails;
use crate::source_url::SourceUrl;
use crate::stream::StreamProperties;

/// Parses `NAME | GROUP | GUIDE ID | ADDRESS`; empty parts are missing.
fn properties(line: &str) -> StreamProperties {
    let parts: Vec<&str> = line.split(';').map(str::trim).collect();
    let [name, group, guide_id, url] = parts.as_slice() else { panic!("{line}") };
    let text = |it: &str| Some(it.to_owned()).filter(|it| !it.is_empty());
    let mut properties = StreamProperties::new(*name, SourceUrl::new(*url));
    (properties.group, properties.tvg_id) = (text(group), text(guide_id));
    properties
}

/// Assigns entries to known streams, in the order of the lines.
fn assigned(order: &[IdentityKey], known: &[StreamProperties], entries: &[StreamProperties]) -> Assignment {
    let mut reader = KeyReader::new(vec!["anna".to_owned(), "hunter2".to_owned()]);
    let known: Vec<_> = known.iter().map(|it| reader.read(it)).collect();
    let entries: Vec<_> = entries.iter().map(|it| reader.read(it)).collect();
    let rank = |at: usize| at as u64;
    let done = assign(order, &known, &entries, &rank);
    let of_entries: Vec<_> = (0..entries.len()).map(|it| done.known_of_entry(it)).collect();
    assert_eq!(of_entries, assign_simply(order, &known, &entries, &rank));
    done
}

/// Checks which key recognises the stream of each entry, written as `POSITION KEY` or `new`.
#[track_caller]
fn check(known: &[&str], entries: &[&str], expected: &[&str]) {
    let known: Vec<_> = known.iter().map(|it| properties(it)).collect();
    let entries: Vec<_> = entries.iter().map(|it| properties(it)).collect();
    let done = assigned(&IdentityKey::ALL, &known, &entries);
    let described: Vec<String> = (0..entries.len())
        .map(|it| match done.known_of_entry(it) {
            Some(at) => {
                format!("{at} {}", done.key_of_known(at).map(|it| it.to_string()).unwrap_or_default())
            }
            None => "new".to_owned(),
        })
        .collect();
    assert_eq!(described, expected);
}

#[test]
fn the_first_key_that_agrees_decides() {
    check(
        &["News;G;n;http://h/live/u/p/7.ts"],
        &["Other;H;x;http://i/live/v/q/7.ts"],
        &["0 number at the panel"],
    );
    check(&["News;G;n;http://h/1"], &["Other;H;x;http://h/1"], &["0 address"]);
    check(
        &["News;;;http://h/a.ts?token=1", "Sport;;;http://h/b.ts?token=1"],
        &["Sports;;;http://h/b.ts?token=2", "The News;;;https://h/a.ts?token=2"],
        &["1 address without its token", "0 address without its token"],
    );
    check(&["News;G;n;http://h/1"], &["Nachrichten;H;n;http://i/2"], &["0 guide id"]);
    check(
        &["News;G;;http://h/1", "News;H;;http://h/2"],
        &["News;H;;http://i/1", "NEWS;G;;http://i/2"],
        &["1 name and group", "0 name and group"],
    );
    check(&["News;G;;http://h/1"], &["news ;H;;http://i/1"], &["0 name"]);
    check(&["News;G;n;http://h/1"], &["Sport;G;s;http://i/1"], &["new"]);
}

#[test]
fn a_value_counts_only_once_in_the_list_and_once_among_all_known_streams() {
    // Two of one id in the list, or known, or both: names decide.
    check(
        &["News HD;G;n;http://h/1", "News SD;G;n;http://h/2"],
        &["News SD;G;n;http://i/1", "News HD;G;n;http://i/2"],
        &["1 name and group", "0 name and group"],
    );
    // One of them disappears in the same night.
    check(
        &["News HD;G;n;http://h/1", "News SD;G;n;http://h/2"],
        &["News SD;G;n;http://i/1"],
        &["1 name and group"],
    );
    // The address decides first, and does not make the id unique for the rest.
    check(
        &["News HD;G;n;http://h/1", "News SD;G;n;http://h/2"],
        &["News HD;G;n;http://h/1", "News;G;n;http://i/2"],
        &["0 address", "new"],
    );
    for filler in ["0", "none", "n/a", "-", "NULL"] {
        let (known, entry) = (format!("A;;{filler};http://h/1"), format!("B;;{filler};http://i/1"));
        check(&[&known], &[&entry], &["new"]);
    }
}

#[test]
fn ids_under_other_names_are_guide_ids_too() {
    let entry =
        |name: &str, tvg_id: Option<&str>, channel_id: Option<&str>, station: Option<&str>, url: &str| {
            let mut properties = StreamProperties::new(name, SourceUrl::new(url));
            let text = |it: Option<&str>| it.map(str::to_owned);
            properties.tvg_id = text(tvg_id);
            let (channel_id, station) = (text(channel_id), text(station));
            properties.details =
                Some(Box::new(EntryDetails { channel_id, station, ..EntryDetails::default() }));
            properties
        };
    let known = [
        entry("A", None, Some("1"), None, "http://h/1"),
        entry("B", Some("none"), None, Some("2"), "http://h/2"),
        entry("C", None, None, Some("3"), "http://h/3"),
    ];
    let entries = [
        entry("X", None, None, Some("2"), "http://i/1"),
        entry("Y", None, Some("1"), Some("9"), "http://i/2"),
        // The id of another guide is not the same one.
        entry("Z", Some("3"), None, None, "http://i/3"),
    ];
    let done = assigned(&IdentityKey::ALL, &known, &entries);
    assert_eq!([0, 1, 2].map(|it| done.known_of_entry(it)), [Some(1), Some(0), None]);
}

#[test]
fn marks_that_contradict_make_other_streams() {
    for (known, entry) in [
        ("Film", "Film +1"),
        ("News HD", "News SD"),
        ("News HD", "News UHD"),
        ("Sport 1", "Sport 2"),
        ("UK: News", "US: News"),
        ("News (EN)", "News (ES)"),
    ] {
        check(&[&format!("{known};G;x;http://h/1")], &[&format!("{entry};G;x;http://i/1")], &["new"]);
        check(&[&format!("{entry};G;x;http://h/1")], &[&format!("{known};G;x;http://i/1")], &["new"]);
        check(
            &[&format!("{known};G;;http://h/a?token=1"), "X;;;http://h/x?token=1"],
            &[&format!("{entry};G;;http://h/a?token=2"), "X;;;http://h/x?token=2"],
            &["new", "1 address without its token"],
        );
        // The address and the number at the panel come before the name.
        check(&[&format!("{known};G;x;http://h/1")], &[&format!("{entry};G;x;http://h/1")], &["0 address"]);
    }
    check(&["News;G;x;http://h/1"], &["News HD;G;x;http://i/1"], &["0 guide id"]);
}

#[test]
fn the_only_address_of_a_host_without_its_token_needs_a_name() {
    check(&["News;;;http://h/play?auth=1"], &["Sport;;;http://h/play?auth=2"], &["new"]);
    check(
        &["News;;;http://h/play?auth=1"],
        &["UK: News HD;;;http://h/play?auth=2"],
        &["0 address without its token"],
    );
    check(
        &["News;;;http://h/play?auth=1", "Sport;;;http://h/play?auth=2"],
        &["News;;;http://h/play?auth=3", "Sport;;;http://h/play?auth=4"],
        &["0 name", "1 name"],
    );
}

#[test]
fn panel_ids_count_only_while_most_names_agree() {
    let line = |name: &str, id: u32| format!("{name};G;;http://h/live/u/p/{id}.ts");
    let known: Vec<String> = ["A", "B", "C", "D"].iter().zip(1..).map(|(it, id)| line(it, id)).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let list = |names: [&str; 4]| names.iter().zip(1..).map(|(it, id)| line(it, id)).collect::<Vec<_>>();
    let check = |names: [&str; 4], expected: &[&str]| {
        let entries = list(names);
        check(&known, &entries.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    };
    let panel = |at: u32| format!("{at} number at the panel");
    let all: Vec<String> = (0..4).map(panel).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    check(["A", "B", "X", "Y"], &all);
    // Numbered anew: the names decide, and the address, which contains the number, does not count either.
    check(
        ["B", "A", "D", "C"],
        &["1 name and group", "0 name and group", "3 name and group", "2 name and group"],
    );
    check(["B", "X", "Y", "D"], &["1 name and group", "new", "new", "3 address"]);
}

/// Returns entries with these names, ids of a guide and numbers at a panel.
fn panel_lines(names: &[&str], guide_ids: bool) -> Vec<StreamProperties> {
    let line = |(name, id): (&&str, u32)| {
        let guide_id = if guide_ids { format!("id-{}", name.to_lowercase()) } else { String::new() };
        properties(&format!("{name};G;{guide_id};http://h/live/u/p/{id}.ts"))
    };
    names.iter().zip(1..).map(line).collect()
}

#[test]
fn a_panel_that_numbers_anew_is_noticed_in_every_order_of_keys() {
    use IdentityKey::{Address, BareAddress, GuideId, Name};
    let (before, after) = (["A", "B", "C", "D"], ["B", "A", "D", "C"]);
    for order in [&[GuideId, Address][..], &[Address], &[BareAddress, Address], &[Address, Name]] {
        let done = assigned(order, &panel_lines(&before, false), &panel_lines(&after, false));
        assert_eq!(done.panel_ids, PanelAgreement { n_pairs: 4, n_agreeing: 0 }, "{order:?}");
        let of_entries: Vec<_> = (0..4).map(|it| done.known_of_entry(it)).collect();
        let expected = if order.contains(&Name) { [1, 0, 3, 2].map(Some) } else { [None; 4] };
        assert_eq!(of_entries, expected, "no stream gets the address of another one: {order:?}");
    }
    let done = assigned(&[GuideId, Address], &panel_lines(&before, true), &panel_lines(&after, true));
    assert!(!done.panel_ids.is_trusted());
    assert_eq!((done.known_of_entry(0), done.known_of_entry(1)), (Some(1), Some(0)), "the guide id decides");
}

#[test]
fn names_that_differ_in_a_number_or_a_mark_do_not_confirm_panel_ids() {
    for (before, after) in [
        // A new entry at the beginning moves all others by one number.
        (["Event 1", "Event 2", "Event 3", "Event 4"], ["Event", "Event 1", "Event 2", "Event 3"]),
        (["News HD", "News SD", "Film HD", "Film SD"], ["News SD", "News HD", "Film SD", "Film HD"]),
        (["UK: News", "US: News", "UK: Film", "US: Film"], ["US: News", "UK: News", "US: Film", "UK: Film"]),
    ] {
        let (known, mut entries) = (panel_lines(&before, false), panel_lines(&after, false));
        let done = assigned(&IdentityKey::ALL, &known, &entries);
        assert!(!done.panel_ids.is_trusted(), "{after:?}: {:?}", done.panel_ids);
        for (at, name) in after.iter().enumerate() {
            assert_eq!(done.known_of_entry(at), before.iter().position(|it| it == name), "{name}");
        }
        // One guide id for all of them confirms nothing either.
        let mut known = known.clone();
        known.iter_mut().chain(&mut entries).for_each(|it| it.tvg_id = Some("dummy".to_owned()));
        assert!(!assigned(&IdentityKey::ALL, &known, &entries).panel_ids.is_trusted(), "{after:?}");
    }
    let (known, entries) = (["UK: News", "Film", "Sport 1"], ["News HD", "UK | Film FHD", "Sport 01 UHD"]);
    let done = assigned(&IdentityKey::ALL, &panel_lines(&known, false), &panel_lines(&entries, false));
    assert_eq!(done.panel_ids, PanelAgreement { n_pairs: 3, n_agreeing: 3 });
}

#[test]
fn a_random_part_that_may_be_the_id_of_a_stream_needs_a_name() {
    const A: &str = "550e8400-e29b-41d4-a716-446655440000";
    const B: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
    for address in ["http://h/{}/master.m3u8", "http://h/play.m3u8?id={}", "http://h/play.m3u8?key={}"] {
        let of = |name: &str, guide_id: &str, part: &str| {
            format!("{name};;{guide_id};{}", address.replace("{}", part))
        };
        let other = "Film;;;http://h/film.m3u8";
        // The stream is gone, and another one has the form of its address.
        check(&[&of("News", "news", A), other], &[&of("Sport", "sport", B), other], &["new", "1 address"]);
        if !address.contains("key") {
            check(&[&of("News", "", A), other], &[&of("Sport", "", B), other], &["new", "1 address"]);
        }
        // The part is a token: the name is the same.
        check(
            &[&of("News", "", A), other],
            &[&of("UK: News HD", "", B), other],
            &["0 address without its token", "1 address"],
        );
    }
    // A list with tokens in all addresses and no guide ids keeps its streams.
    let line = |at: usize, token: &str| format!("Channel {at};;;http://h/{token}/{at}/index.m3u8");
    let known: Vec<_> = (0..5).map(|it| line(it, A)).collect();
    let entries: Vec<_> = (0..5).map(|it| line(it, B)).collect();
    let expected: Vec<_> = (0..5).map(|it| format!("{it} address without its token")).collect();
    check(
        &known.iter().map(String::as_str).collect::<Vec<_>>(),
        &entries.iter().map(String::as_str).collect::<Vec<_>>(),
        &expected.iter().map(String::as_str).collect::<Vec<_>>(),
    );
}

#[test]
fn equal_numbers_of_two_providers_in_one_list_are_other_streams() {
    let known = ["News;A;;http://a/live/u/p/1.ts", "Kino;B;;http://b/live/v/q/2.ts"];
    // Each provider gives the number of the other one to a new stream.
    let entries = ["Sport;A;;http://a/live/u/p/2.ts", "Music;B;;http://b/live/v/q/1.ts"];
    check(&known, &entries, &["new", "new"]);
    // A provider that moves takes its numbers along.
    check(&known, &["News;A;;http://c/live/u/p/1.ts"], &["0 number at the panel"]);
}

#[test]
fn entries_that_want_one_stream_are_new_and_counted_unless_they_have_its_address() {
    let known = [properties("News;G;n;http://h/1")];
    let two = [properties("News;G;n;http://i/1"), properties("News;G;n;http://i/2")];
    let done = assigned(&IdentityKey::ALL, &known, &two);
    assert_eq!((done.known_of_entry(0), done.known_of_entry(1), done.n_contested), (None, None, 1));
    let two = [properties("News;G;n;http://i/1"), properties("News;G;n;http://h/1")];
    let done = assigned(&IdentityKey::ALL, &known, &two);
    assert_eq!((done.known_of_entry(0), done.known_of_entry(1), done.n_contested), (None, Some(0), 0));
    // The next key that is unique decides.
    let two = [properties("News;H;n;http://i/1"), properties("News;G;n;http://i/2")];
    assert_eq!(assigned(&IdentityKey::ALL, &known, &two).known_of_entry(1), Some(0));
}

#[test]
fn an_order_of_keys_has_the_address_and_no_key_twice() {
    use IdentityKey::{Address, Name};
    assert_eq!(check_order(&[]), Ok(()));
    assert_eq!(check_order(&IdentityKey::ALL), Ok(()));
    assert_eq!(check_order(&[Name, Address]), Ok(()));
    assert_eq!(check_order(&[Name]), Err(IdentityOrderError::NoAddress));
    assert_eq!(check_order(&[Address, Name, Address]), Err(IdentityOrderError::Repeated));
}

/// An entry with few different values, so that all kinds of coincidence occur.
fn any_entry() -> impl Strategy<Value = StreamProperties> {
    let name = prop_oneof![
        Just("News"),
        Just("News HD"),
        Just("News SD"),
        Just("Film"),
        Just("Film +1"),
        Just("Sport 1"),
        Just("none")
    ];
    let url = prop_oneof![
        (0..4, 0..2).prop_map(|(id, login)| format!("http://h{login}/live/u{login}/p/{id}.ts")),
        (0..4, 0..3).prop_map(|(id, token)| format!("http://c/{id}.m3u8?token={token}")),
        (0..6).prop_map(|id| format!("http://d/{id}")),
        (0..3, 0..3).prop_map(|(id, token)| format!("http://e/{token}a1b2c3d4e5f6a7b8/{id}.m3u8")),
        (0..3, 0..3).prop_map(|(id, token)| format!("http://e/{id}?x={token}a1b2c3d4e5f6a7b8")),
    ];
    (name, 0..3, 0..4, url).prop_map(|(name, group, id, url)| {
        let id = if id == 0 { String::new() } else { format!("id{id}") };
        properties(&format!("{name};G{group};{id};{url}"))
    })
}

/// Returns an order in which the positions of a list can be shuffled.
fn shuffled<T: Clone>(list: &[T], seed: u64) -> Vec<T> {
    let mut order: Vec<(u64, usize)> = (0..list.len())
        .map(|at| ((at as u64 + 1).wrapping_mul(seed | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15), at))
        .collect();
    order.sort_unstable();
    order.into_iter().map(|it| list[it.1].clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_fast_assignment_agrees_with_the_simple_one(
        known in vec(any_entry(), 0..10),
        entries in vec(any_entry(), 0..10),
        seed in any::<u64>(),
        n_keys in 1usize..=6,
    ) {
        let mut order = shuffled(&IdentityKey::ALL, seed);
        order.truncate(n_keys);
        if !order.contains(&IdentityKey::Address) {
            order.push(IdentityKey::Address);
        }
        assigned(&order, &known, &entries);
    }

    // Holds T-id.1: entries that differ in more than their order get the same streams in every order.
    #[test]
    fn any_permutation_of_a_list_leaves_the_same_streams(
        known in vec(any_entry(), 0..10),
        entries in vec(any_entry(), 0..10),
        seed in any::<u64>(),
    ) {
        let key = |it: &StreamProperties| {
            (it.name.clone(), it.group.clone(), it.tvg_id.clone(), it.url.clone())
        };
        // Several entries of one address without anything else to tell them apart are taken in their order.
        let mut unique = entries.clone();
        unique.sort_by_key(|it| it.url.clone());
        unique.dedup_by_key(|it| it.url.clone());
        let of = |list: &[StreamProperties]| {
            let done = assigned(&IdentityKey::ALL, &known, list);
            let mut of: Vec<_> = list.iter().enumerate().map(|(at, it)| (key(it), done.known_of_entry(at))).collect();
            of.sort();
            of
        };
        prop_assert_eq!(of(&unique), of(&shuffled(&unique, seed)));
    }

    #[test]
    fn any_change_of_addresses_with_unique_ids_leaves_the_same_streams(
        addresses in vec((0u32..1000, 0u32..1000), 1..40),
        seed in any::<u64>(),
    ) {
        let line = |at: usize, form: u32, value: u32| {
            let url = match form % 3 {
                0 => format!("http://h{}/{value}/play.m3u8", form % 5),
                1 => format!("http://cdn/{at}/{value}.ts?token={value}"),
                _ => format!("http://t{value}.example/x?auth={value}{at}"),
            };
            properties(&format!("Channel;G;id{at};{url}"))
        };
        let known: Vec<_> = addresses.iter().enumerate().map(|(at, it)| line(at, it.0, it.1)).collect();
        let entries: Vec<_> = addresses.iter().enumerate().map(|(at, it)| line(at, it.1, it.0)).collect();
        let entries = shuffled(&entries, seed);
        // Some addresses stay, perhaps with another id, and decide then.
        let stays = |it: &StreamProperties| known.iter().any(|old| old.url == it.url);
        prop_assume!(!entries.iter().any(stays));
        let done = assigned(&[IdentityKey::Address, IdentityKey::GuideId], &known, &entries);
        for (at, entry) in entries.iter().enumerate() {
            let same = known.iter().position(|it| it.tvg_id == entry.tvg_id);
            prop_assert_eq!(done.known_of_entry(at), same);
        }
    }
}
