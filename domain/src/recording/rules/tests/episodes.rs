//! How episodes are recognised, and which of them a rule records.

use jiff::Timestamp;

use super::*;
use crate::guide::marks::with_marks;
use crate::guide::programme::PreviouslyShown;
use crate::recording::{RecordingInput, RecordingStatus};

#[test]
fn marks_count_for_new_only_and_for_episodes() {
    let marked = |from: i64, title: &str| {
        let shown = programme(from, from + 1, title);
        with_marks(&shown).into_owned()
    };
    let new_only = rule(ProgrammeTest { only_new: true, ..exact("Lights") });
    let shown = [
        marked(1, "Lights (R)"),
        marked(3, "Lights ᴺᵉʷ S1E5"),
        marked(5, "Lights S1 Ep5 (R)"),
        marked(7, "Lights (N) S1E6"),
    ];
    let mut stage = Stage::new([new_only]).guide("a", &[1], shown);
    assert_eq!(stage.scheduled(), ["1@3-4", "1@7-8"]);
    let titles: Vec<_> = stage.recordings.iter().map(|it| it.title().to_owned()).collect();
    assert_eq!(titles, ["Lights", "Lights"]);
    let shown = [
        Programme { sub_titles: vec![LocalText::new("Boats (New)")], ..programme(1, 2, "Lights (HD)") },
        Programme { sub_titles: vec![LocalText::new("Boats")], ..programme(3, 4, "Lights") },
    ];
    let mut stage = Stage::new([rule(exact("Lights"))]).guide("a", &[1], shown);
    assert_eq!(stage.scheduled(), ["1@1-2"], "one episode");
}

#[test]
fn one_showing_of_an_episode_is_recorded_and_another_one_if_it_fails() {
    let shown = [episode(1, "Show", 1), episode(5, "Show", 2), episode(9, "Show", 1), episode(13, "Show", 1)];
    let mut stage = Stage::new([rule(exact("show"))]).guide("a", &[1], shown);
    assert_eq!(stage.scheduled(), ["1@1-2", "1@5-6"]);
    assert_eq!(stage.evaluate(), 0, "nothing changes the second time");
    stage.now = NOW + 3 * HOUR;
    let fails = |it: &mut Recording| it.apply(RecordingInput::EndedWithoutFile, None, 0).unwrap();
    stage.edit(0, fails);
    assert_eq!(stage.scheduled(), ["1@1-2", "1@5-6", "1@9-10"]);
    stage.edit(2, |it| it.status = RecordingStatus::Completed);
    stage.now = NOW + 11 * HOUR;
    assert_eq!(stage.evaluate(), 0);
}

#[test]
fn episodes_are_recognised_by_id_number_subtitle_or_description() {
    let check = |change: fn(&mut Programme, i64), n_expected: usize| {
        let shown = [1, 2, 11].map(|n| {
            let mut it = programme(n, n + 1, "Show");
            change(&mut it, n % 10);
            it
        });
        let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], shown);
        assert_eq!(stage.scheduled().len(), n_expected);
    };
    check(|_, _| {}, 3);
    check(|it, n| it.sub_titles = vec![LocalText::new(format!("Part {n}"))], 2);
    check(|it, n| it.descriptions = vec![LocalText::new(format!("What happens in {n}."))], 2);
    check(
        |it, n| {
            let value = format!("EP0123.{n}");
            it.episode_numbers = vec![EpisodeNumber { system: Some("dd_progid".to_owned()), value }];
        },
        2,
    );
    // The id of a series identifies no episode.
    check(
        |it, _| {
            let value = "SH0123.0000".to_owned();
            it.episode_numbers = vec![EpisodeNumber { system: Some("dd_progid".to_owned()), value }];
        },
        3,
    );
}

#[test]
fn new_is_what_the_guide_says_or_what_was_never_seen_before() {
    let new = || rule(ProgrammeTest { only_new: true, ..exact("Show") });
    let was_new = Programme { is_new: true, ..episode(20, "Show", 1) };
    let repeat = Programme { previously_shown: Some(PreviouslyShown::default()), ..episode(30, "Show", 4) };
    let shown =
        [episode(-5, "Show", 1), episode(-4, "Show", 2), episode(8, "Show", 2), episode(9, "Show", 3)];
    let mut stage = Stage::new([new()]).guide("a", &[1], shown.into_iter().chain([was_new, repeat]));
    assert_eq!(stage.scheduled(), ["1@9-10", "1@20-21"], "episode 2 was seen, 4 is a repetition");
    // The guide forgets the past; the rule does not.
    let later = [episode(40, "Show", 2), episode(41, "Show", 5)];
    let mut stage = stage.guide("a", &[1], later);
    stage.recordings.clear();
    assert_eq!(stage.scheduled(), ["1@41-42"]);
    // An interrupted recording of a new episode is tried again.
    stage.edit(0, |it| it.status = RecordingStatus::Interrupted);
    stage.now = NOW + 45 * HOUR;
    let mut stage = stage.guide("a", &[1], [episode(41, "Show", 5), episode(50, "Show", 5)]);
    assert_eq!(stage.scheduled(), ["1@41-42", "1@50-51"]);
}

#[test]
fn a_deleted_recording_is_not_made_again() {
    let shown = || [episode(1, "Show", 1), episode(5, "Show", 1), programme(8, 9, "Show")];
    let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], shown());
    assert_eq!(stage.scheduled(), ["1@1-2", "1@8-9"]);
    let mut memory = RuleMemory::new(RecordingRuleId(1));
    for it in std::mem::take(&mut stage.recordings) {
        memory.add_done(it.followed.as_ref().unwrap().episode);
    }
    stage.memories.insert(memory.id, Arc::new(memory));
    assert_eq!(stage.scheduled(), [] as [&str; 0]);
}

#[test]
fn episodes_that_a_former_version_stored_are_recognised() {
    // As they were computed while texts counted with their marks, and numbers in texts did not count.
    let cases: [(Programme, u64); 5] = [
        (
            Programme { sub_titles: vec![LocalText::new("Boats")], ..programme(1, 2, "Lights (New)") },
            0x8e28_346d_21bf_ded7,
        ),
        (episode(1, "Lights ᴺᵉʷ", 5), 0xcfc5_54d5_f368_f099),
        (
            Programme { sub_titles: vec![LocalText::new("Boats")], ..programme(1, 2, "Lights S1E5") },
            0x839d_1529_7cb8_ec9c,
        ),
        (
            Programme { descriptions: vec![LocalText::new("Of boats. (R)")], ..programme(1, 2, "Lights") },
            0x66c2_d4d2_4fbe_8f86,
        ),
        (episode(1, "Lights (1998)", 5), 0xedd3_67b2_e069_33d0),
    ];
    for (shown, former) in cases {
        let shown = with_marks(&shown).into_owned();
        let stored: EpisodeKey =
            serde_json::from_value(serde_json::json!({ "hash": former, "is_known": true })).unwrap();
        assert_ne!(EpisodeKey::from_programme(&shown, "a"), stored);
        let title = shown.title().to_owned();
        // A deleted recording, and one that the former version made.
        let stage = || Stage::new([rule(exact("Lights"))]).guide("a", &[1], [shown.clone()]);
        assert_eq!(stage().scheduled(), ["1@1-2"], "{title}");
        let mut deleted = stage();
        let memory = RuleMemory { done: vec![stored], ..RuleMemory::new(RecordingRuleId(1)) };
        deleted.memories.insert(memory.id, Arc::new(memory));
        assert_eq!(
            deleted.scheduled(),
            [] as [&str; 0],
            "{title}: {:x?}",
            EpisodeKey::former_of(&shown, "a")
        );
        let mut old = stage();
        old.rules = vec![Arc::new(rule(ProgrammeTest { only_new: true, ..exact("Lights") }))];
        let memory = RuleMemory { old: vec![stored], ..RuleMemory::new(RecordingRuleId(1)) };
        old.memories.insert(memory.id, Arc::new(memory));
        let is_new = shown.is_new();
        assert_eq!(old.scheduled().len(), usize::from(is_new), "{title}");
        let mut planned = stage();
        planned.scheduled();
        let recording = Arc::make_mut(&mut planned.recordings[0]);
        recording.followed.as_mut().unwrap().episode = stored;
        assert_eq!(planned.scheduled(), ["1@1-2"], "{title}: one recording");
    }
}

#[test]
fn what_a_rule_remembers_is_bounded() {
    let mut memory = RuleMemory::new(RecordingRuleId(1));
    let day = |n: i64| {
        EpisodeKey::from_day(CivilDay(
            Timestamp::from_second(n * 86_400).unwrap().to_zoned(TimeZone::UTC).date(),
        ))
    };
    for n in 0..REMEMBERED_MAX as i64 + 10 {
        memory.add_done(day(n));
        memory.add_done(day(n));
    }
    assert_eq!((memory.done.len(), memory.done[0]), (REMEMBERED_MAX, day(10)));
}

#[test]
fn programmes_without_marks_have_one_identity_and_others_the_same_as_before() {
    let plain = programme(1, 2, "Lights");
    let with_text = |sub_title: &str, description: &str| Programme {
        sub_titles: vec![LocalText::new(sub_title)],
        descriptions: vec![LocalText::new(description)],
        ..plain.clone()
    };
    for (shown, n_former) in [
        (plain.clone(), 0),
        (episode(1, "Lights", 5), 0),
        (with_text("Boats", "Of boats."), 0),
        (with_text("", " "), 0),
        (with_text("Boats (R)", ""), 1),
        (programme(1, 2, "Lights (1998)"), 1),
        (with_marks(&programme(1, 2, "Lights S1E5")).into_owned(), 2),
    ] {
        let (present, former) = EpisodeKey::with_former(&shown, "a");
        assert_eq!(present, EpisodeKey::from_programme(&shown, "a"), "{shown:?}");
        assert_eq!(former, EpisodeKey::former_of(&shown, "a"), "{shown:?}");
        assert_eq!(former.len(), n_former, "{shown:?}");
    }
}
