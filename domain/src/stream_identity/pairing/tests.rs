use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::source_url::SourceUrl;

/// Reads `ID; NAME; GROUP; GUIDE ID; ADDRESS`. Missing parts at the end are empty.
fn stream(line: &str) -> PairStream {
    let mut parts = line.split(';').map(str::trim);
    let mut next = || parts.next().unwrap_or_default();
    let id = StreamId(next().parse().unwrap());
    let name = next();
    let text = |it: &str| Some(it.to_owned()).filter(|it| !it.is_empty());
    let (group, tvg_id) = (text(next()), text(next()));
    let mut properties = StreamProperties::new(name, SourceUrl::new(next()));
    (properties.group, properties.tvg_id) = (group, tvg_id);
    PairStream { id, properties }
}

fn streams(lines: &[&str]) -> Vec<PairStream> {
    lines.iter().map(|it| stream(it)).collect()
}

/// Checks the pairs, written as `FROM TO KEY POINTS`, and the contested streams, written as `FROM ?`.
#[track_caller]
fn check(from: &[&str], to: &[&str], expected: &[&str]) {
    let found = pair_streams(&streams(from), &streams(to), PAIR_POINTS_MIN);
    let pair = |it: &StreamPair| format!("{} {} {:?} {}", it.from, it.to, it.key, it.points);
    let mut described: Vec<String> = found.pairs.iter().map(pair).collect();
    described.extend(found.contested.iter().map(|it| format!("{it} ?")));
    assert_eq!(described, expected);
}

#[test]
fn the_number_at_the_panel_counts_on_one_host_only() {
    check(
        &["1;News;;;http://h:80/live/a/b/7.ts", "2;Sport;;;http://h/live/a/b/8.ts"],
        &["11;Sport;;;http://H/live/c/d/8.ts", "12;News;;;http://h/c/d/7"],
        &["1 12 PanelId 1000", "2 11 PanelId 1000"],
    );
    check(&["1;News;;;http://h/live/a/b/7.ts"], &["11;Sport;;;http://i/live/c/d/7.ts"], &[]);
    // A name of its own does not contradict the number, but another number in the name does.
    check(
        &["1;News;;;http://h/live/a/b/7.ts", "2;Sport 1;;;http://h/live/a/b/8.ts"],
        &["11;World Today;;;http://h/live/c/d/7.ts", "12;Sport 2;;;http://h/live/c/d/8.ts"],
        &["1 11 PanelId 900"],
    );
    // The panel numbers its streams anew.
    check(
        &[
            "1;A a;;;http://h/u/p/1",
            "2;B b;;;http://h/u/p/2",
            "3;C c;;;http://h/u/p/3",
            "4;D d;;;http://h/u/p/4",
        ],
        &["11;B b;;;http://h/u/p/1", "12;C c;;;http://h/u/p/2", "13;D d;;;http://h/u/p/3"],
        &["2 11 Name 1000", "3 12 Name 1000", "4 13 Name 1000"],
    );
}

#[test]
fn one_guide_id_pairs_what_its_names_do_not_contradict() {
    check(
        &["1;News HD;;news.uk", "2;News SD;;news.uk", "3;News;;news.uk", "4;News +1;;news.uk"],
        &["11;News;;news.uk", "12;UK: News FHD;;news.uk", "13;News +1;;news.uk", "14;News HD;;news.uk"],
        &["1 14 GuideId 1000", "3 11 GuideId 1000", "4 13 GuideId 1000"],
    );
    // Of two that differ in the words only, the name decides; other words pair while the id tells something.
    check(&["1;Das Erste;;ard.de"], &["11;ARD;;ard.de"], &["1 11 GuideId 900"]);
    // The exact case comes first, then any other.
    check(&["1;Das Erste;;ARD.de"], &["11;ARD;;ard.de"], &["1 11 GuideId 900"]);
    check(&["1;News;;n.UK"], &["11;News;;n.uk", "12;News;;n.UK"], &["1 12 GuideId 1000"]);
    check(&["1;News;;12", "2;Sport;;13"], &["11;Weather;;12", "12;Sport;;13"], &["2 12 GuideId 1000"]);
    check(&["1;News;;0", "2;Film;;none"], &["11;Sport;;0", "12;Drama;;none"], &[]);
    // Each provider has ids of its own.
    check(
        &["1;Aa;;ch.a", "2;Bb;;ch.b", "3;Cc;;ch.c"],
        &["11;Cc;;ch.a", "12;Dd;;ch.b", "13;Ee;;ch.c"],
        &["3 11 Name 1000"],
    );
}

#[test]
fn names_pair_regardless_of_decorations_unless_they_contradict() {
    for (one, other, expected) in [
        ("News Today", "news today", "1 11 Name 1000"),
        ("UK: News Today HD", "News Today FHD", "1 11 Name 970"),
        ("Sky Sport Bundesliga 1", "Sky Sport Bundesliga 2", ""),
        ("News Today HD", "News Today SD", ""),
        ("News Today", "News Today +1", ""),
        ("UK: News Today", "US: News Today", ""),
        ("News (EN)", "News (ES)", ""),
        ("News", "Newsroom", ""),
        ("---- SPORT ----", "---- SPORT ----", ""),
    ] {
        let lines: &[&str] = if expected.is_empty() { &[] } else { &[expected] };
        check(&[&format!("1;{one}")], &[&format!("11;{other}")], lines);
    }
    // The country of the group or the guide id counts where the name states none.
    check(&["1;News Today;UK | News"], &["11;News Today;US | News"], &[]);
    check(&["1;News Today;;newstoday.uk"], &["11;News Today;;today.us"], &[]);
    check(&["1;News Today;UK | News"], &["11;News Today;UK | All"], &["1 11 Name 1000"]);
    check(&["1;News Today;UK | News"], &["11;News Today;All"], &["1 11 Name 1000"]);
}

#[test]
fn several_that_fit_equally_well_fit_none_unless_nothing_tells_them_apart() {
    check(&["1;News Today"], &["11;News Today;A", "12;News Today;B"], &["1 11 Name 1000"]);
    check(
        &["1;News Today", "2;News Today"],
        &["11;News Today", "12;News Today", "13;News Today"],
        &["1 11 Name 1000", "2 12 Name 1000"],
    );
    check(&["1;News Today", "2;News Today"], &["11;News Today"], &["1 11 Name 1000"]);
    check(&["1;News Today"], &["11;News Today;UK | All", "12;News Today;US | All"], &["1 ?"]);
    check(&["1;News Today;;n.uk"], &["11;Sport;;n.uk", "12;Film;;n.uk"], &["1 ?"]);
    // The next key decides.
    check(&["1;News;;n.uk"], &["11;Sport;;n.uk", "12;Film;;n.uk", "13;News"], &["1 13 Name 1000"]);
}

#[test]
fn a_higher_least_score_leaves_more_without_a_pair() {
    let (from, to) = (streams(&["1;Das Erste;;ard.de", "2;Film"]), streams(&["11;ARD;;ard.de", "12;Film"]));
    let n_pairs = |points| pair_streams(&from, &to, points).pairs.len();
    assert_eq!([n_pairs(850), n_pairs(900), n_pairs(901), n_pairs(1000)], [2, 2, 1, 1]);
}

/// Streams whose names, groups, ids and addresses repeat and contradict in many ways.
fn some_streams(first: u32) -> impl Strategy<Value = Vec<PairStream>> {
    const NAMES: [&str; 10] = [
        "News",
        "News HD",
        "News SD",
        "News +1",
        "UK: News",
        "US: News",
        "Sport 1",
        "Sport 2",
        "Today News",
        "Film",
    ];
    const IDS: [&str; 5] = ["", "news.uk", "news.us", "sport.uk", "12"];
    const GROUPS: [&str; 3] = ["", "UK | All", "US | All"];
    const ADDRESSES: [&str; 4] = ["http://h/1", "http://h/u/p/1", "http://h/u/p/2", "http://i/u/p/1"];
    vec((0..NAMES.len(), 0..IDS.len(), 0..GROUPS.len(), 0..ADDRESSES.len()), 0..14).prop_map(move |all| {
        let line = |(at, (name, id, group, address)): (u32, (usize, usize, usize, usize))| {
            let at = first + at;
            stream(&format!("{at};{};{};{};{}", NAMES[name], GROUPS[group], IDS[id], ADDRESSES[address]))
        };
        (0..).zip(all).map(line).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_stream_is_in_one_pair_and_no_order_of_either_list_changes_the_pairs(
        (from, mixed_from) in some_streams(0).prop_flat_map(|it| (Just(it.clone()), Just(it).prop_shuffle())),
        (to, mixed_to) in some_streams(100).prop_flat_map(|it| (Just(it.clone()), Just(it).prop_shuffle())),
    ) {
        let found = pair_streams(&from, &to, PAIR_POINTS_MIN);
        prop_assert_eq!(&pair_streams(&mixed_from, &mixed_to, PAIR_POINTS_MIN), &found);
        let olds: HashSet<StreamId> = found.pairs.iter().map(|it| it.from).collect();
        let news: HashSet<StreamId> = found.pairs.iter().map(|it| it.to).collect();
        prop_assert_eq!((olds.len(), news.len()), (found.pairs.len(), found.pairs.len()));
        prop_assert!(found.contested.iter().all(|it| !olds.contains(it)));
        let mut reader = KeyReader::new(Vec::new());
        for pair in &found.pairs {
            let one = &from.iter().find(|it| it.id == pair.from).unwrap().properties;
            let other = &to.iter().find(|it| it.id == pair.to).unwrap().properties;
            let (one, other) = (reader.read(one), reader.read(other));
            prop_assert!(!one.marks.contradict(other.marks), "{:?}", pair);
            prop_assert!(pair.points >= PAIR_POINTS_MIN);
            prop_assert!(pair.key != PairKey::PanelId || one.host == other.host);
        }
    }
}
