//! Channels that are matched together, and what they say about each other.

use super::*;

/// Matches channels of one group that are named like this, and returns the keys that are linked.
fn together(
    guide: &Matcher,
    rows: &[(&'static str, &str)],
    names: &[&str],
    linked: &[(&str, u32)],
) -> Vec<&'static str> {
    let subjects: Vec<Subject<'_>> =
        names.iter().map(|it| Subject { group: Some("Bouquet 7"), ..named(it) }).collect();
    let mut results: Vec<MatchResult> = subjects.iter().map(|it| guide.find(it, false)).collect();
    let linked = linked.iter().map(|it| (it.0, GuideChannelId(it.1)));
    guide.settle_ties(&subjects, linked, &mut results);
    let key = |it: &MatchResult| match it.decision {
        Decision::Link(id) => rows[id.0 as usize - 1].0,
        Decision::Tie => "tie",
        _ => "",
    };
    results.iter().map(key).collect()
}

const ROWS: &[(&str, &str)] = &[
    ("gold.uk", "Gold"),
    ("gold.us", "Gold"),
    ("one.us", "Network One"),
    ("two.us", "Network Two"),
    ("three.us", "Network Three"),
    ("four.us", "Network Four"),
    ("five.us", "Network Five"),
    ("six.uk", "Crown Six"),
    ("dub.uk", "Silver"),
    ("dub.de", "Silver"),
    ("east1.us", "Amber"),
    ("east2.us", "Amber"),
    ("amber.uk", "Amber"),
];

#[test]
fn the_other_channels_of_a_group_say_of_which_country_a_name_is() {
    let guide = guide(ROWS);
    let five = ["Network 1", "Network 2", "Network 3", "Network 4", "Network 5"];
    let with = |more: &[&str]| {
        let names = [&five[..], more].concat();
        together(&guide, ROWS, &names, &[]).split_off(5)
    };
    assert_eq!(with(&["Gold HD"]), ["gold.us"]);
    let found = guide.find(&named("Gold HD"), false);
    assert_eq!(found.decision, Decision::Tie, "without its group");
    // The country of the group helps nothing here.
    assert_eq!(with(&["UK: Gold", "Silver", "Amber"]), ["gold.uk", "tie", "tie"]);
    // Too few channels, or some of another country.
    assert_eq!(together(&guide, ROWS, &["Network 1", "Network 2", "Gold"], &[])[2], "tie");
    assert_eq!(with(&["Crown Six", "Gold"]), ["six.uk", "tie"]);
    // Channels that are linked already count, those of other groups do not.
    let linked: Vec<(&str, u32)> = (3..8).map(|it| ("Bouquet 7", it)).collect();
    assert_eq!(together(&guide, ROWS, &["Gold"], &linked), ["gold.us"]);
    let linked: Vec<(&str, u32)> = (3..8).map(|it| ("Bouquet 8", it)).collect();
    assert_eq!(together(&guide, ROWS, &["Gold"], &linked), ["tie"]);
}

#[test]
fn a_tie_that_the_group_settles_says_so_and_lists_the_others() {
    let guide = guide(ROWS);
    let subject = [Subject { group: Some("Bouquet 7"), ..named("Gold") }];
    let mut results = vec![guide.find(&subject[0], true)];
    let linked = (3..8).map(|it| ("Bouquet 7", GuideChannelId(it)));
    guide.settle_ties(&subject, linked, &mut results);
    let us = Country::from_text("us").unwrap();
    assert!(results[0].candidates[0].reasons.contains(&Reason::CountryOfGroup(us)), "{results:?}");
    assert_eq!(results[0].candidates[1].channel, GuideChannelId(1));
}
