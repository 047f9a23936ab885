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
    guide.compare_groups(&subjects, linked, &mut results);
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
    ("velvet.fr", "Velvet"),
    ("limits.no", "Limits"),
    ("harbour1.no", "Harbour One"),
    ("harbour2.no", "Harbour Two"),
    ("harbour3.no", "Harbour Three"),
    ("harbour4.no", "Harbour Four"),
    ("harbour5.no", "Harbour Five"),
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

/// A guide that lacks the channel in its country may have another one of this name elsewhere.
#[test]
fn a_link_with_a_guide_channel_of_another_country_than_the_group_is_taken_back() {
    let guide = guide(ROWS);
    let twenty: Vec<String> = (0..20).map(|it| format!("Network {} HD", 1 + it % 5)).collect();
    let with = |n: usize, more: &[&str]| {
        let names: Vec<&str> = twenty[..n].iter().map(String::as_str).chain(more.iter().copied()).collect();
        together(&guide, ROWS, &names, &[]).split_off(n)
    };
    assert_eq!(with(20, &["Velvet", "Gold"]), ["", "gold.us"]);
    assert_eq!(with(20, &["FR: Velvet", "Crown Six (UK)"]), ["velvet.fr", "six.uk"], "the name says it");
    assert_eq!(with(10, &["Velvet", "Gold"]), ["velvet.fr", "tie"], "too few others");
    assert_eq!(with(20, &["Velvet", "Crown Six"]), ["velvet.fr", "six.uk"], "a mixed group");
    let twenty: Vec<(&str, GuideChannelId)> = (0..20).map(|_| ("Bouquet 7", GuideChannelId(3))).collect();
    let subject = [Subject { group: Some("Bouquet 7"), ..named("Velvet") }];
    let mut results = vec![guide.find(&subject[0], true)];
    assert!(results[0].depends_on_group());
    guide.compare_groups(&subject, twenty, &mut results);
    let [us, fr] = ["us", "fr"].map(|it| Country::from_text(it).unwrap());
    assert_eq!(results[0].decision, Decision::BelowThreshold);
    assert!(results[0].candidates[0].reasons.contains(&Reason::OtherCountry(us, fr)), "{results:?}");
}

/// `NO LIMITS` may be a name, but not among channels of Norway that all begin like this.
#[test]
fn a_code_that_is_a_word_is_a_country_if_other_names_of_the_group_begin_with_it() {
    let guide = guide(ROWS);
    let five = ["NO Harbour 1", "NO Harbour 2 HD", "NO Harbour 3", "NO HARBOUR 4 FHD", "#NO Harbour 5"];
    let with = |n: usize, more: &[&str]| {
        let names = [&five[..n], more].concat();
        together(&guide, ROWS, &names, &[]).split_off(n)
    };
    assert_eq!(with(5, &["NO LIMITS", "NO HARBOUR ONE"]), ["limits.no", "harbour1.no"]);
    assert_eq!(with(5, &["NO SILVER", "IT LIMITS", "No limits"]), ["", "", ""], "another code, or none");
    assert_eq!(with(4, &["NO LIMITS"]), [""], "too few others");
    let written_out =
        ["Norway: Harbour 1", "Harbour 2 (NO)", "NO: Harbour 3", "NO | Harbour 4", "NO: Harbour 5"];
    let names = [&written_out[..], &["NO LIMITS"]].concat();
    assert_eq!(together(&guide, ROWS, &names, &[])[5], "", "others have separators");
}

#[test]
fn a_tie_that_the_group_settles_says_so_and_lists_the_others() {
    let guide = guide(ROWS);
    let subject = [Subject { group: Some("Bouquet 7"), ..named("Gold") }];
    let mut results = vec![guide.find(&subject[0], true)];
    let linked = (3..8).map(|it| ("Bouquet 7", GuideChannelId(it)));
    guide.compare_groups(&subject, linked, &mut results);
    let us = Country::from_text("us").unwrap();
    assert!(results[0].candidates[0].reasons.contains(&Reason::CountryOfGroup(us)), "{results:?}");
    assert_eq!(results[0].candidates[1].channel, GuideChannelId(1));
}
