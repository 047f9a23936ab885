//! What rules demand besides a title, one table for each condition.

use super::*;
use crate::guide::programme::PreviouslyShown;
use crate::ids::GroupId;

fn with(conditions: ProgrammeConditions) -> RecordingRule {
    rule(ProgrammeTest { conditions, ..exact("Show") })
}

/// Checks which of these showings on channel 1 are recorded, as hours from NOW: Monday, 12:00 in UTC.
fn check(rule: RecordingRule, shown: impl IntoIterator<Item = Programme>, expected: &[i64]) {
    let text = format!("{:?}", rule.conditions());
    let mut stage = Stage::new([rule]).guide("a", &[1], shown);
    let marked = stage.planned(preview);
    stage.evaluate();
    let hours = |ms: i64| (ms / 1000 - NOW) / HOUR;
    let mut recorded: Vec<_> = stage.recordings.iter().map(|it| hours(it.start)).collect();
    recorded.sort_unstable();
    assert_eq!(recorded, expected, "{text}");
    let scheduled = marked.iter().filter(|it| it.mark == AiringMark::Scheduled);
    let scheduled: Vec<_> = scheduled.map(|it| hours(it.airing.start)).collect();
    assert_eq!(scheduled, expected, "the preview says the same: {text}");
}

fn at(hours: &[i64]) -> Vec<Programme> {
    hours.iter().map(|it| programme(*it, it + 1, "Show")).collect()
}

fn hours(from: u32, until: u32) -> Option<DayHours> {
    Some(DayHours { from: from * 3600, until: until * 3600 })
}

#[test]
fn days_and_hours_are_those_of_the_time_zone_of_the_rule() {
    let on = |days: &[u8], hours: Option<DayHours>, zone: Option<&str>| {
        let zone = zone.map(str::to_owned);
        with(ProgrammeConditions { days: days.to_vec(), hours, zone, ..ProgrammeConditions::default() })
    };
    // Monday 13:00, 23:00, Tuesday 0:00, 1:00, 13:00, Sunday 12:00.
    let shown = || at(&[1, 11, 12, 13, 25, 144]);
    check(on(&[], None, None), shown(), &[1, 11, 12, 13, 25, 144]);
    check(on(&[0], None, None), shown(), &[1, 11]);
    check(on(&[1, 6], None, None), shown(), &[12, 13, 25, 144]);
    check(on(&[], hours(13, 23), None), shown(), &[1, 25]);
    check(on(&[], hours(12, 14), None), shown(), &[1, 25, 144]);
    // The night of Monday lasts until Tuesday.
    check(on(&[0], hours(22, 1), None), shown(), &[11, 12]);
    check(on(&[1], hours(22, 1), None), shown(), &[]);
    check(on(&[0], hours(22, 0), None), shown(), &[11]);
    // One hour later in Berlin: Monday 14:00, Tuesday 0:00, 1:00, 2:00, 14:00, Sunday 13:00.
    check(on(&[0], None, Some("Europe/Berlin")), shown(), &[1]);
    check(on(&[], hours(0, 2), Some("Europe/Berlin")), shown(), &[11, 12]);
    check(on(&[], hours(13, 14), Some("Europe/Berlin")), shown(), &[144]);
}

#[test]
fn hours_follow_the_clock_over_a_change_of_it() {
    // The clocks of New York change on 2027-03-14: 20:00 is 1:00 in UTC before, and 0:00 afterwards.
    let rule = with(ProgrammeConditions {
        hours: hours(20, 21),
        zone: Some("America/New_York".to_owned()),
        ..ProgrammeConditions::default()
    });
    let mut stage = Stage::new([rule]).guide("a", &[1], at(&[2652, 2653, 2676, 2677]));
    stage.now = NOW + 2_600 * HOUR;
    assert_eq!(stage.scheduled(), ["1@2653-2654", "1@2676-2677"]);
}

#[test]
fn a_rule_records_from_a_season_on() {
    let of_season = |from: i64, season: u32| {
        let value = format!("{}.0.", season - 1);
        let number = EpisodeNumber { system: Some("xmltv_ns".to_owned()), value };
        Programme { episode_numbers: vec![number], ..programme(from, from + 1, "Show") }
    };
    let from = |season_from: Option<u32>| {
        with(ProgrammeConditions { season_from, ..ProgrammeConditions::default() })
    };
    let shown = || [of_season(1, 2), of_season(3, 3), of_season(5, 4), programme(7, 8, "Show")];
    check(from(None), shown(), &[1, 3, 5, 7]);
    check(from(Some(3)), shown(), &[3, 5]);
    check(from(Some(0)), shown(), &[1, 3, 5]);
    check(from(Some(9)), shown(), &[]);
}

#[test]
fn a_rule_records_programmes_of_a_length() {
    let of = |minutes_min: Option<u32>, minutes_max: Option<u32>| {
        with(ProgrammeConditions { minutes_min, minutes_max, ..ProgrammeConditions::default() })
    };
    let long = |from: i64, minutes: i64| {
        let it = programme(from, from + 1, "Show");
        Programme { stop: it.start + minutes * 60, ..it }
    };
    let shown = || [long(1, 5), long(3, 30), long(5, 60), long(7, 180)];
    check(of(None, None), shown(), &[1, 3, 5, 7]);
    check(of(Some(30), None), shown(), &[3, 5, 7]);
    check(of(None, Some(30)), shown(), &[1, 3]);
    check(of(Some(30), Some(60)), shown(), &[3, 5]);
    check(of(Some(61), Some(62)), shown(), &[]);
}

#[test]
fn a_rule_records_on_any_of_its_channels() {
    let on = |channels: &[u32], preferred: Option<u32>| {
        let channels = channels.iter().map(|it| ChannelId(*it)).collect();
        let conditions = ProgrammeConditions { channels, ..ProgrammeConditions::default() };
        RecordingRule { channel: preferred.map(ChannelId), ..with(conditions) }
    };
    let check = |rule: RecordingRule, expected: &[&str]| {
        let text = format!("{:?}", rule.conditions());
        let stage = Stage::new([rule]);
        let stage = stage.guide("a", &[1, 2], [episode(1, "Show", 1)]);
        let mut stage = stage.guide("b", &[3], [episode(3, "Show", 1), episode(5, "Show", 2)]);
        assert_eq!(stage.scheduled(), expected, "{text}");
    };
    check(on(&[], None), &["1@1-2", "3@5-6"]);
    check(on(&[1], None), &["1@1-2"]);
    check(on(&[2], None), &["2@1-2"]);
    check(on(&[2, 3], None), &["2@1-2", "3@5-6"]);
    check(on(&[3], None), &["3@3-4", "3@5-6"]);
    check(on(&[1, 2, 3], Some(2)), &["2@1-2", "3@5-6"]);
    check(on(&[9], None), &[]);
    let conditions = ProgrammeConditions {
        channels: vec![ChannelId(1)],
        groups: vec![GroupId(7)],
        ..ProgrammeConditions::default()
    };
    let takes = [(1, None), (2, None), (2, Some(7)), (2, Some(8))]
        .map(|(channel, group)| conditions.takes(ChannelId(channel), group.map(GroupId)));
    assert_eq!(takes, [true, false, true, false]);
    // A group without channels is not the same as no group.
    let empty = ProgrammeConditions { groups: vec![GroupId(7)], ..ProgrammeConditions::default() };
    check(with(empty), &[]);
}

#[test]
fn the_preferred_quality_comes_first_and_then_the_next_showing() {
    let of = |quality: QualityWish| with(ProgrammeConditions { quality, ..ProgrammeConditions::default() });
    let check = |rule: RecordingRule, expected: &[&str]| {
        let text = format!("{:?}", rule.conditions());
        let stage = Stage::new([rule]);
        let stage = stage.guide("sd", &[1, 2], [episode(1, "Show", 1), episode(2, "Show", 2)]);
        let stage = stage.guide("hd", &[3, 20], [episode(9, "Show", 1)]);
        let mut stage = stage.guide("uhd", &[40], [episode(5, "Show", 1)]);
        assert_eq!(stage.scheduled(), expected, "{text}");
        assert_eq!(stage.evaluate(), 0, "{text}");
    };
    check(of(QualityWish::Any), &["1@1-2", "1@2-3"]);
    check(of(QualityWish::High), &["1@2-3", "20@9-10"]);
    check(of(QualityWish::Ultra), &["1@2-3", "40@5-6"]);
    check(of(QualityWish::Standard), &["1@1-2", "1@2-3"]);
    // The channel that is preferred by name comes before the quality.
    check(RecordingRule { channel: Some(ChannelId(2)), ..of(QualityWish::High) }, &["2@1-2", "2@2-3"]);
}

#[test]
fn new_episodes_are_those_with_the_mark_those_never_seen_or_either() {
    let of = |new_by: NewBy| {
        let conditions = ProgrammeConditions { new_by, ..ProgrammeConditions::default() };
        rule(ProgrammeTest { only_new: true, conditions, ..exact("Show") })
    };
    let marked = |it: Programme| Programme { is_new: true, ..it };
    let repeat = |it| Programme { previously_shown: Some(PreviouslyShown::default()), ..it };
    let shown = || {
        [
            episode(-5, "Show", 1),
            episode(1, "Show", 1),
            marked(episode(3, "Show", 1)),
            episode(5, "Show", 2),
            marked(episode(7, "Show", 3)),
            repeat(episode(9, "Show", 4)),
        ]
    };
    check(of(NewBy::Either), shown(), &[1, 5, 7]);
    check(of(NewBy::Mark), shown(), &[1, 7]);
    check(of(NewBy::Identity), shown(), &[5, 7, 9]);
    let stage = Stage::new([of(NewBy::Mark)]).guide("a", &[1], shown());
    assert!(stage.preview().contains(&"1@5 NotNew NotMarked".to_owned()), "{:?}", stage.preview());
}

#[test]
fn what_the_library_has_is_left_out_and_the_preview_says_so() {
    let shown = || {
        let known = vec![LocalText::new("in the library")];
        [Programme { sub_titles: known, ..episode(1, "Show", 1) }, episode(3, "Show", 2)]
    };
    check(with(ProgrammeConditions::default()), shown(), &[1, 3]);
    let skips = with(ProgrammeConditions { skip_library: true, ..ProgrammeConditions::default() });
    check(skips.clone(), shown(), &[3]);
    let stage = Stage::new([skips]).guide("a", &[1], shown());
    assert_eq!(stage.preview(), ["1@1 Skipped InLibrary", "1@3 Scheduled"]);
}

#[test]
fn negative_padding_shortens_recordings_and_never_to_nothing() {
    let padded = |before: i32, after: i32| RecordingRule {
        padding_before: Some(before),
        padding_after: Some(after),
        ..rule(exact("Show"))
    };
    for (before, after, expected) in
        [(-300, -600, Some((300, 3_000))), (60, -600, Some((-60, 3_000))), (-1_800, -1_800, None)]
    {
        let mut stage = Stage::new([padded(before, after)]).guide("a", &[1], [episode(1, "Show", 1)]);
        let marked = stage.preview();
        stage.evaluate();
        let start = (NOW + HOUR) * 1000;
        let times = |it: &Arc<Recording>| ((it.begins_at() - start) / 1000, (it.ends_at() - start) / 1000);
        assert_eq!(stage.recordings.first().map(times), expected);
        let reason = if expected.is_some() { "1@1 Scheduled" } else { "1@1 Skipped TooShort" };
        assert_eq!(marked, [reason]);
    }
}

#[test]
fn a_weekly_rule_has_a_time_zone_of_its_own() {
    let times = |zone: Option<&str>| WeeklyTimes {
        days: vec![0],
        start: 72_000,
        end: 75_600,
        from: None,
        until: None,
        zone: zone.map(str::to_owned),
    };
    for (zone, expected) in [(None, 8), (Some("Europe/Berlin"), 7), (Some("America/New_York"), 13)] {
        let selection = RuleSelection::Weekly(times(zone));
        let rule = RecordingRule { selection, channel: Some(ChannelId(1)), ..rule(exact("x")) };
        let mut stage = Stage::new([rule]);
        assert_eq!(stage.scheduled().first(), Some(&format!("1@{expected}-{}", expected + 1)));
    }
}

#[test]
fn every_condition_is_checked_by_its_field() {
    let check = |change: fn(&mut ProgrammeConditions), expected: &[&str]| {
        let mut conditions = ProgrammeConditions::default();
        change(&mut conditions);
        let wrong = with(conditions).check().err().unwrap_or_default();
        assert_eq!(wrong.iter().map(|it| it.field).collect::<Vec<_>>(), expected, "{wrong:?}");
    };
    check(|_| {}, &[]);
    check(|it| it.days = vec![0, 6], &[]);
    check(|it| it.days = vec![7], &["days_of_week"]);
    check(|it| it.hours = hours(20, 2), &[]);
    check(|it| it.hours = hours(20, 20), &["start_before"]);
    check(|it| it.hours = hours(20, 24), &["start_after"]);
    check(|it| it.season_from = Some(SEASON_MAX + 1), &["season_from"]);
    check(|it| it.minutes_min = Some(LENGTH_MINUTES_MAX + 1), &["min_minutes"]);
    check(|it| (it.minutes_min, it.minutes_max) = (Some(60), Some(59)), &["max_minutes"]);
    check(|it| (it.minutes_min, it.minutes_max) = (Some(60), Some(60)), &[]);
    check(|it| it.zone = Some("Europe/Berlin".to_owned()), &[]);
    for zone in ["", "Europe/Nowhere", "../../etc/passwd"] {
        let conditions = ProgrammeConditions { zone: Some(zone.to_owned()), ..Default::default() };
        let wrong = with(conditions).check().unwrap_err();
        assert_eq!(wrong[0].field, "time_zone");
        assert!(wrong[0].reason.contains("Europe/Berlin"), "{}", wrong[0].reason);
    }
    check(|it| it.channels = vec![ChannelId(1); RULE_CHANNELS_MAX + 1], &["channel_ids"]);
    check(|it| it.groups = vec![GroupId(1); RULE_CHANNELS_MAX + 1], &["channel_group_ids"]);
}

#[test]
fn a_rule_of_a_former_version_has_no_conditions() {
    let former = serde_json::json!({
        "id": 9, "list": "Series", "enabled": true, "priority": 50, "padding_before": 60,
        "selection": { "Programmes": { "tvg_id": null, "title": null, "description": null, "only_new": true } },
    });
    let read: RecordingRule = serde_json::from_value(former).unwrap();
    assert!(read.conditions().is_some_and(ProgrammeConditions::is_default));
    assert_eq!((read.padding_before, read.takes(ChannelId(1), None)), (Some(60), true));
    let written = serde_json::to_string(&read).unwrap();
    assert!(!written.contains("conditions"), "{written}");
}
