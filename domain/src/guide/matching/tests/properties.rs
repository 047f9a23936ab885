//! What holds for all names.

use proptest::prelude::*;

use super::*;

/// Names that providers could write, of few words so that they often resemble each other.
fn names() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "BBC",
        "One",
        "Two",
        "1",
        "2",
        "Sky",
        "Sport",
        "Sports",
        "HD",
        "4K",
        "UK:",
        "DE |",
        "(US)",
        "+1",
        "TV",
        "Channel",
        "East",
        "Première",
        "ТНТ",
        "Nickelodeon",
        "Nickelodean",
        "&",
        "+",
        "[Backup]",
        "Austria",
        "##",
        "RAW",
    ]);
    prop::collection::vec(part, 0..5).prop_map(|it| it.join(" "))
}

proptest! {
    #[test]
    fn no_text_causes_a_panic(name in "\\PC*", prefix in "\\PC{0,3}", part in "\\PC{0,2}") {
        let rules = NameRules { prefixes: vec![prefix.clone()], suffixes: vec![prefix], parts: vec![part] };
        let it = NormalName::new(&name, &rules);
        prop_assert!(it.words.len() <= 130);
        let _ = (NormalKey::parse(&name), station(&name, true), AliasName::from_channel(&named(&name)));
    }

    #[test]
    fn the_words_of_a_name_are_a_name_with_the_same_words(name in names()) {
        let rules = NameRules::default();
        let words = NormalName::new(&name, &rules).words;
        let again = NormalName::new(&words.join(" "), &rules).words;
        prop_assert_eq!(again, words);
    }

    #[test]
    fn the_decision_depends_neither_on_the_order_nor_on_the_list_of_candidates(
        guide in prop::collection::vec(names(), 1..8),
        channel in names(),
    ) {
        let keys: Vec<String> = (0..guide.len()).map(|it| format!("k{it}x.zz")).collect();
        let rows: Vec<(&str, &str)> = keys.iter().map(String::as_str).zip(guide.iter().map(String::as_str)).collect();
        let key_of = |matcher: &Matcher, reversed: bool, lists_all| match matcher.find(&named(&channel), lists_all).decision {
            Decision::Link(id) => {
                let at = id.0 as usize - 1;
                Some(if reversed { guide.len() - 1 - at } else { at })
            }
            _ => None,
        };
        let found = key_of(&super::guide(&rows), false, false);
        prop_assert_eq!(key_of(&super::guide(&rows), false, true), found);
        let reversed: Vec<_> = rows.iter().rev().copied().collect();
        prop_assert_eq!(key_of(&super::guide(&reversed), true, false), found);
    }

    #[test]
    fn a_guide_channel_that_occurs_twice_is_never_linked_by_name(name in names(), others in prop::collection::vec(names(), 0..4)) {
        let mut rows = vec![("twin1xx", name.as_str()), ("twin2yy", name.as_str())];
        rows.extend(others.iter().map(|it| ("otherzz", it.as_str())));
        let decision = guide(&rows[..2]).find(&named(&name), false).decision;
        prop_assert!(!matches!(decision, Decision::Link(_)));
        let decision = guide(&rows).find(&named(&name), false).decision;
        prop_assert!(!matches!(decision, Decision::Link(id) if id.0 <= 2));
    }

    #[test]
    fn links_agree_in_time_shift_and_country(guide in prop::collection::vec(names(), 1..8), channel in names()) {
        let rows: Vec<(&str, &str)> = guide.iter().map(|it| ("", it.as_str())).collect();
        if let Decision::Link(id) = super::guide(&rows).find(&named(&channel), false).decision {
            let rules = NameRules::default();
            let (a, b) = (NormalName::new(&channel, &rules), NormalName::new(&guide[id.0 as usize - 1], &rules));
            prop_assert_eq!(a.shift, b.shift);
            prop_assert!(a.country.is_none() || b.country.is_none() || a.country == b.country);
        }
    }
}
