//! Which programmes a rule selects, and which rules are invalid.

use super::*;

#[test]
fn texts_are_compared_in_the_way_of_the_mode() {
    let check = |test: ProgrammeTest, title: &str, description: &str, expected: bool| {
        let descriptions = vec![LocalText::new(description)];
        let shown = Programme { descriptions, ..programme(1, 2, title) };
        let mut stage = Stage::new([rule(test.clone())]).guide("a.tv", &[1], [shown]);
        assert_eq!(!stage.scheduled().is_empty(), expected, "{test:?} {title}");
    };
    use TextMode::{Contains, Exact, Regex, Search};
    check(title(Exact, "The  Show "), "the show", "", true);
    check(title(Exact, "Müller & Söhne"), "MÜLLER & SÖHNE", "", true);
    check(title(Exact, "The Show"), "The Show Two", "", false);
    check(title(Contains, "HOW t"), "The Show Two", "", true);
    check(title(Contains, "how x"), "The Show Two", "", false);
    check(title(Search, "two show"), "The Show: Two", "", true);
    check(title(Search, "two sho"), "The Show: Two", "", false);
    check(title(Search, "news OR two"), "The Show: Two", "", true);
    check(title(Search, "\"show: two\""), "The Show: Two", "", true);
    check(title(Regex, "^the .* two$"), "The Show: Two", "", true);
    check(title(Regex, "^show"), "The Show: Two", "", false);
    let on = |id: &str| ProgrammeTest { tvg_id: Some(id.to_owned()), ..exact("The Show") };
    check(on("A.TV"), "The Show", "", true);
    check(on("b.tv"), "The Show", "", false);
    let about = |mode, text: &str| Some(TextTest { mode, text: text.to_owned() });
    check(ProgrammeTest { description: about(Contains, "murder"), ..exact("x") }, "x", "A Murder.", true);
    check(ProgrammeTest { description: about(Contains, "murder"), ..exact("x") }, "x", "Love.", false);
    let only_description = ProgrammeTest { description: about(Regex, "mur+der"), ..ProgrammeTest::default() };
    check(only_description, "any", "A murder.", true);
}

#[test]
fn titles_are_compared_without_their_marks() {
    use TextMode::{Contains, Exact, Regex};
    let check = |test: ProgrammeTest, title: &str, expected: bool| {
        for tvg_id in [None, Some("a.tv".to_owned())] {
            let test = ProgrammeTest { tvg_id, ..test.clone() };
            let mut stage = Stage::new([rule(test.clone())]).guide("a.tv", &[1], [programme(1, 2, title)]);
            assert_eq!(!stage.scheduled().is_empty(), expected, "{test:?} {title}");
        }
    };
    check(title(Exact, "Harbour Lights"), "Harbour Lights ᴺᵉʷ", true);
    check(title(Exact, "Harbour Lights"), "New: Harbour Lights S01 E05 [HD]", true);
    check(title(Exact, "Harbour Lights"), "Harbour Lights Extra ᴺᵉʷ", false);
    check(title(Exact, "Harbour Lights ᴺᵉʷ"), "Harbour Lights", true);
    check(title(Exact, "Harbour Lights (N)"), "Harbour Lights ᴺᵉʷ", true);
    check(title(Exact, "Harbour Lights S01 E05"), "Harbour Lights S01 E05", true);
    check(title(Exact, "Harbour Lights S01 E05"), "Harbour Lights S01 E06", false);
    check(title(Exact, "Harbour Lights (2005)"), "Harbour Lights (1963)", false);
    check(title(Regex, "lights$"), "Harbour Lights ᴺᵉʷ", true);
    check(title(Regex, "ᴺᵉʷ$"), "Harbour Lights ᴺᵉʷ", true);
    check(title(Contains, "our lights"), "Harbour (New) Lights", true);
}

#[test]
fn a_rule_with_a_guide_id_means_the_channel_with_its_case_first() {
    let of = |tvg_id: &str| rule(ProgrammeTest { tvg_id: Some(tvg_id.to_owned()), ..exact("Show") });
    let both = |tvg_id: &str| {
        Stage::new([of(tvg_id)])
            .guide("News.uk", &[1], [episode(1, "Show", 1)])
            .guide("news.uk", &[2], [episode(2, "Show", 2)])
            .scheduled()
    };
    assert_eq!(both("News.uk"), ["1@1-2"]);
    assert_eq!(both(" news.uk"), ["2@2-3"]);
    // No channel has this one.
    assert_eq!(both("NEWS.UK"), ["1@1-2", "2@2-3"]);
    // The channel that is meant shows nothing of it.
    let mut other = Stage::new([of("News.uk")]).guide("News.uk", &[1], [episode(1, "Film", 1)]).guide(
        "news.uk",
        &[2],
        [episode(2, "Show", 2)],
    );
    assert_eq!(other.scheduled(), [] as [&str; 0]);
}

#[test]
fn every_invalid_field_of_a_rule_is_named() {
    let check = |rule: RecordingRule, expected: &[&str]| {
        let wrong = rule.check().err().unwrap_or_default();
        assert_eq!(wrong.iter().map(|it| it.field).collect::<Vec<_>>(), expected, "{wrong:?}");
    };
    check(rule(exact("x")), &[]);
    check(rule(ProgrammeTest::default()), &["title"]);
    check(rule(exact("  ")), &["title"]);
    for pattern in ["(", "a(?=b)", "(a)\\1", "((((a{1000}){1000}){1000}))", &"a".repeat(501)] {
        check(rule(title(TextMode::Regex, pattern)), &["title"]);
    }
    check(rule(title(TextMode::Search, "\"open")), &["title"]);
    check(RecordingRule { priority: 101, keep: KEEP_MAX + 1, ..rule(exact("x")) }, &["priority", "keep"]);
    check(RecordingRule { padding_before: Some(i32::MIN), ..rule(exact("x")) }, &["padding_before"]);
    let weekly = |days: &[u8], start, end| {
        let times = WeeklyTimes { days: days.to_vec(), start, end, from: None, until: None, zone: None };
        RecordingRule {
            selection: RuleSelection::Weekly(times),
            channel: Some(ChannelId(1)),
            ..rule(exact("x"))
        }
    };
    check(weekly(&[0, 6], 0, 60), &[]);
    check(weekly(&[7], 0, 60), &["days_of_week"]);
    check(weekly(&[], 60, 60), &["days_of_week", "end_time"]);
    check(RecordingRule { channel: None, ..weekly(&[0], 0, 60) }, &["channel"]);
}

#[test]
fn only_rules_that_no_map_finds_are_compared_with_every_programme() {
    let check = |test: ProgrammeTest, expected: bool| assert_eq!(rule(test).is_pattern(), expected);
    let on = |test| ProgrammeTest { tvg_id: Some("a.tv".to_owned()), ..test };
    check(exact("x"), false);
    check(on(title(TextMode::Contains, "x")), false);
    check(title(TextMode::Contains, "x"), true);
    check(on(title(TextMode::Regex, "x")), true);
}
