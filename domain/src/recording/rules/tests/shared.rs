//! One airing is one recording, however many want it and whatever channel shows it.

use proptest::prelude::*;

use super::*;
use crate::ids::UserId;
use crate::recording::{RecordedProgramme, RecordingStatus};

fn rule_of(id: u32, test: ProgrammeTest) -> RecordingRule {
    RecordingRule { id: RecordingRuleId(id), ..rule(test) }
}

fn ids(it: &Recording) -> Vec<u32> {
    it.rules().map(|it| it.0).collect()
}

fn with_id(id: &str, it: Programme) -> Programme {
    let id = EpisodeNumber { system: Some("dd_progid".to_owned()), value: id.to_owned() };
    let episode_numbers = [id].into_iter().chain(it.episode_numbers.iter().cloned()).collect();
    Programme { episode_numbers, ..it }
}

fn with_sub_title(text: &str, it: Programme) -> Programme {
    Programme { sub_titles: vec![LocalText::new(text)], ..it }
}

#[test]
fn a_programme_that_several_rules_want_is_one_recording_that_names_them() {
    let padded = |id: u32, priority: u8, padding: i32| RecordingRule {
        priority,
        padding_before: Some(padding),
        ..rule_of(id, title(TextMode::Contains, "sho"))
    };
    let shown = || [episode(1, "Show", 1), episode(3, "Show", 2)];
    let rules = [rule_of(1, exact("Show")), padded(2, 90, 30), padded(3, 50, 600)];
    let mut stage = Stage::new(rules).guide("a", &[1], shown());
    assert_eq!(stage.scheduled(), ["1@1-2", "1@3-4"]);
    for it in &stage.recordings {
        assert_eq!(ids(it), [2, 1, 3], "the highest priority first");
        assert_eq!((it.priority, it.padding_before, it.padding_after), (90, 600, 120));
    }
    assert_eq!(stage.evaluate(), 0, "nothing changes the second time");
    // A part of the rules leaves the others alone.
    let all = std::mem::take(&mut stage.rules);
    stage.rules = vec![Arc::clone(&all[0])];
    assert_eq!(stage.evaluate(), 0);
    // Disabled, a rule wants nothing.
    let mut off = all.clone();
    Arc::make_mut(&mut off[2]).enabled = false;
    stage.rules = off;
    assert_eq!(stage.evaluate(), 2);
    for it in &stage.recordings {
        assert_eq!((ids(it), it.padding_before), (vec![2, 1], 60));
    }
    // What a user edited stays.
    stage.edit(0, |it| it.padding_before = 1);
    stage.rules = all;
    stage.evaluate();
    let paddings: Vec<_> = stage.recordings.iter().map(|it| it.padding_before).collect();
    assert_eq!((ids(&stage.recordings[0]), paddings), (vec![2, 1, 3], vec![1, 600]));
}

#[test]
fn another_rule_takes_the_place_of_the_one_that_made_a_recording() {
    let rules = [rule_of(1, exact("Show")), rule_of(2, title(TextMode::Contains, "how"))];
    let mut stage = Stage::new(rules).guide("a", &[1], [episode(1, "Show", 1)]);
    stage.evaluate();
    let recording = Arc::make_mut(&mut stage.recordings[0]);
    assert!(recording.leave_rule(RecordingRuleId(1)), "another rule wants it");
    assert_eq!(ids(recording), [2]);
    stage.rules.remove(0);
    assert_eq!((stage.scheduled(), ids(&stage.recordings[0])), (vec!["1@1-2".to_owned()], vec![2]));
    let recording = Arc::make_mut(&mut stage.recordings[0]);
    assert!(recording.leave_rule(RecordingRuleId(7)) && !recording.leave_rule(RecordingRuleId(2)));
    // A user made it: no rule removes it.
    recording.followed.as_mut().unwrap().rule = None;
    assert!(recording.leave_rule(RecordingRuleId(2)));
}

#[test]
fn a_twin_on_another_channel_is_recognised_by_whatever_both_guides_say() {
    let check = |of_sd: Programme, of_hd: Programme, expected: &[&str]| {
        let text = format!("{of_sd:?} {of_hd:?}");
        let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], [of_sd]).guide("b", &[2], [of_hd]);
        assert_eq!(stage.scheduled(), expected, "{text}");
        assert_eq!(stage.evaluate(), 0, "{text}");
    };
    let one = ["1@1-2"];
    let both = ["1@1-2", "2@1-2"];
    let show = || programme(1, 2, "Show");
    check(with_id("EP1", show()), with_id("EP1", show()), &one);
    check(with_id("EP1", episode(1, "Show", 4)), episode(1, "Show", 4), &one);
    check(with_sub_title("Boats", show()), with_sub_title("boats (HD)", episode(1, "Show", 4)), &one);
    check(with_id("EP1", show()), with_id("EP2", show()), &both);
    check(episode(1, "Show", 4), episode(1, "Show", 5), &both);
    check(with_sub_title("Boats", show()), with_sub_title("Ships", show()), &both);
    // Titles alone can be those of two programmes, such as the news of two stations.
    check(show(), show(), &both);
    check(with_sub_title("Boats", show()), with_sub_title("Boats", programme(3, 4, "Show")), &one);
}

#[test]
fn a_rule_makes_no_second_recording_of_what_a_user_or_another_rule_records_at_that_time() {
    let by_hand = |channel: u32, programme: RecordedProgramme, owner: Option<u32>| {
        let times = (NOW + HOUR) * 1000..(NOW + 2 * HOUR) * 1000;
        let uuid = Uuid::from_u128(channel.into());
        let recording = Recording::new(RecordingId(1), ChannelId(channel), uuid, "x", times, NOW * 1000);
        Recording { programme: Some(programme), owner: owner.map(UserId), ..recording }
    };
    let named = |title: &str| RecordedProgramme { title: title.to_owned(), ..RecordedProgramme::default() };
    let numbered = |episode: u32| RecordedProgramme { episode: Some(episode), ..named("Show") };
    for (recording, expected) in [
        (by_hand(1, named("show"), None), 1),
        (by_hand(1, named("Other"), None), 2),
        (by_hand(1, named("show"), Some(7)), 2),
        // Another channel needs more than the title.
        (by_hand(5, named("Show"), None), 2),
        (by_hand(5, numbered(4), None), 1),
        (by_hand(5, numbered(5), None), 2),
    ] {
        let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], [episode(1, "Show", 4)]);
        let text = format!("{recording:?}");
        stage.recordings.push(Arc::new(recording));
        let marked = stage.preview();
        assert_eq!(stage.scheduled().len(), expected, "{text}");
        let is_taken = marked.iter().all(|it| it.contains("ByHand"));
        assert_eq!(is_taken, expected == 1, "{marked:?}");
    }
    // One that failed leaves the airing to the rule.
    let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], [episode(1, "Show", 4)]);
    let failed = Recording { status: RecordingStatus::Failed, ..by_hand(1, named("Show"), None) };
    stage.recordings.push(Arc::new(failed));
    assert_eq!(stage.scheduled().len(), 2);
}

#[test]
fn two_weekly_rules_of_one_time_and_channel_make_one_recording() {
    let weekly = |id: u32, channel: u32, end: u32| {
        let times = WeeklyTimes { days: vec![0], start: 72_000, end, from: None, until: None, zone: None };
        let selection = RuleSelection::Weekly(times);
        RecordingRule { selection, channel: Some(ChannelId(channel)), ..rule_of(id, exact("x")) }
    };
    let rules = [weekly(1, 1, 75_600), weekly(2, 1, 75_600), weekly(3, 2, 75_600), weekly(4, 1, 79_200)];
    let mut stage = Stage::new(rules);
    // Two Mondays of three times.
    assert_eq!(stage.scheduled().len(), 6);
    let mut named: Vec<_> = stage.recordings.iter().map(|it| ids(it)).collect();
    named.sort();
    named.dedup();
    assert_eq!(named, [vec![1, 2], vec![3], vec![4]]);
    assert_eq!(stage.evaluate(), 0);
}

fn any_guide() -> impl Strategy<Value = Vec<Programme>> {
    let one = (0..30i64, 0..4u32, 0..3u32, any::<bool>()).prop_map(|(from, number, id, has_sub_title)| {
        let it = if number == 0 { programme(from, from + 1, "Show") } else { episode(from, "Show", number) };
        // Ids and sub-titles fit to the numbers, as in guides of two sources that are both right.
        let it = if has_sub_title && number > 0 { with_sub_title(&format!("Part {number}"), it) } else { it };
        if id > 0 && number > 0 { with_id(&format!("EP{number}"), it) } else { it }
    });
    prop::collection::vec(one, 0..12).prop_map(|mut all| {
        all.sort_by_key(|it| it.start);
        all.dedup_by_key(|it| it.start);
        all
    })
}

proptest! {
    /// Whatever two guides say of one station and however many rules want it, no airing is recorded twice, and a second
    /// evaluation changes nothing.
    #[test]
    fn no_airing_is_recorded_twice(sd in any_guide(), hd in any_guide(), n_rules in 1..4u32) {
        let rules = (1..=n_rules).map(|id| rule_of(id, exact("Show")));
        let mut stage = Stage::new(rules).guide("sd", &[1], sd).guide("hd", &[2], hd);
        stage.evaluate();
        for (at, one) in stage.recordings.iter().enumerate() {
            for other in &stage.recordings[at + 1..] {
                prop_assert!(!one.is_of_same_airing(other), "{one:?} {other:?}");
            }
            prop_assert_eq!(ids(one), (1..=n_rules).collect::<Vec<_>>());
        }
        prop_assert_eq!(stage.evaluate(), 0);
    }
}
