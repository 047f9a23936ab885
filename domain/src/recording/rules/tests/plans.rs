//! The recordings that follow from rules, and their previews.

use proptest::prelude::*;

use super::*;
use crate::guide::programme::PreviouslyShown;
use crate::recording::{RecordedFile, RecordingStatus};

#[test]
fn the_preferred_channel_comes_first_and_forbidden_ones_never() {
    let on = |channel: Option<u32>| RecordingRule { channel: channel.map(ChannelId), ..rule(exact("Show")) };
    let check = |channel: Option<u32>, expected: &[&str]| {
        let mut stage = Stage::new([on(channel)])
            .guide("a", &[66, 1, 2], [episode(1, "Show", 1), episode(3, "Show", 2)])
            .guide("b", &[3], [episode(5, "Show", 1)]);
        assert_eq!(stage.scheduled(), expected);
    };
    check(None, &["1@1-2", "1@3-4"]);
    check(Some(2), &["2@1-2", "2@3-4"]);
    check(Some(3), &["1@3-4", "3@5-6"]);
    check(Some(66), &["1@1-2", "1@3-4"]);
}

#[test]
fn only_the_newest_recordings_stay_if_a_rule_keeps_some() {
    let mut stage = Stage::new([RecordingRule { keep: 2, ..rule(exact("Show")) }]);
    stage = stage.guide("a", &[1], (1..6).map(|n| episode(n, "Show", n as u32)));
    assert_eq!(stage.scheduled().len(), 5, "those to come do not count");
    for at in 0..4 {
        let file =
            RecordedFile { path: at.to_string(), bytes: 1, started_at: 0, ended_at: Some(1), node: None };
        stage.edit(at, |it| (it.status, it.file) = (RecordingStatus::Completed, Some(file)));
    }
    stage.now = NOW + 5 * HOUR - 60;
    stage.guide.clear();
    assert_eq!(stage.scheduled(), ["1@3-4", "1@4-5", "1@5-6"]);
}

#[test]
fn two_rules_of_one_user_make_one_recording_and_the_limit_holds() {
    let other =
        RecordingRule { id: RecordingRuleId(2), priority: 90, ..rule(title(TextMode::Contains, "sho")) };
    let shown = || (1..9).map(|n| episode(n, "Show", n as u32));
    let mut stage = Stage::new([rule(exact("Show")), other]).guide("a", &[1], shown());
    stage.n_new_max = 3;
    assert_eq!(stage.scheduled(), ["1@1-2", "1@2-3", "1@3-4"]);
    assert!(stage.recordings.iter().all(|it| it.rule() == Some(RecordingRuleId(2)) && it.priority == 90));
}

#[test]
fn a_preview_names_the_result_of_each_showing_and_its_reason() {
    let shown = [
        episode(-30, "Show", 9),
        episode(1, "Show", 1),
        episode(2, "Show", 2),
        episode(3, "Show", 1),
        episode(4, "Show", 3),
        episode(5, "Show", 4),
        programme(6, 70, "Show"),
        episode(80, "Show", 9),
    ];
    let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], shown);
    stage.n_new_max = 4;
    let fresh = [
        "1@1 Scheduled",
        "1@2 Scheduled",
        "1@3 Alternative",
        "1@4 Scheduled",
        "1@5 Skipped TooMany",
        "1@6 Skipped TooMany",
        "1@80 Scheduled",
    ];
    assert_eq!(stage.preview(), fresh);
    assert_eq!(stage.recordings, [], "a preview makes nothing");
    stage.n_new_max = 20_000;
    // Episode 9 was shown first.
    assert_eq!(stage.scheduled(), ["1@1-2", "1@2-3", "1@4-5", "1@5-6", "1@80-81"]);
    stage.edit(1, |it| it.status = RecordingStatus::Recording);
    stage.edit(3, |it| it.status = RecordingStatus::Stopped);
    stage.edit(4, |it| it.followed.as_mut().unwrap().rule = None);
    let deleted = stage.recordings.remove(2);
    let mut memory = RuleMemory::new(RecordingRuleId(1));
    memory.add_done(deleted.followed.as_ref().unwrap().episode);
    stage.memories.insert(memory.id, Arc::new(memory));
    stage.now = NOW + HOUR + 60;
    let later = [
        "1@1 Scheduled Running",
        "1@2 Recorded Deleted",
        "1@3 Alternative",
        "1@4 Recorded Stopped",
        "1@5 Scheduled ByHand",
        "1@6 Skipped TooLong",
        "1@80 Scheduled",
    ];
    assert_eq!(stage.preview(), later);

    let channels = [episode(-1, "Show", 1), episode(2, "Show", 2)];
    let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], channels);
    stage = stage.guide("b", &[66], [episode(3, "Show", 2), episode(4, "Show", 3)]);
    stage.now = NOW - 60;
    let hidden = ["1@-1 Skipped Begun", "1@2 Scheduled", "-@3 Skipped NoChannel", "-@4 Skipped NoChannel"];
    assert_eq!(stage.preview(), hidden);
}

#[test]
fn a_preview_names_the_episodes_that_are_not_new() {
    let new = RecordingRule { channel: Some(ChannelId(2)), ..rule(exact("Show")) };
    let new = RecordingRule {
        selection: RuleSelection::Programmes(ProgrammeTest { only_new: true, ..exact("Show") }),
        ..new
    };
    let repeat = Programme { previously_shown: Some(PreviouslyShown::default()), ..episode(5, "Show", 2) };
    let marked_new = Programme { is_new: true, ..episode(6, "Show", 3) };
    let shown = [episode(-30, "Show", 1), episode(-29, "Show", 3), episode(4, "Show", 1), repeat, marked_new];
    let stage = Stage::new([new]).guide("a", &[1, 2], shown);
    assert_eq!(stage.preview(), ["2@4 NotNew ShownBefore", "2@5 NotNew Repeat", "2@6 Scheduled"]);
}

fn any_programmes() -> impl Strategy<Value = Vec<Programme>> {
    let one = (-20..200i64, 1..4i64, 0..4u32, any::<bool>()).prop_map(|(from, hours, n, is_new)| {
        let it = if n == 0 { programme(from, from + hours, "Show") } else { episode(from, "Show", n) };
        Programme { stop: it.start + hours * HOUR, is_new, ..it }
    });
    prop::collection::vec(one, 0..12).prop_map(|mut all| {
        all.sort_by_key(|it| it.start);
        all.dedup_by_key(|it| it.start);
        all
    })
}

proptest! {
    /// Holds T-dvr.4: whatever guides follow each other, no episode is recorded twice, nothing that is scheduled disappears,
    /// and an unchanged guide ends the changes.
    #[test]
    fn any_sequence_of_guides_schedules_each_episode_once(
        guides in prop::collection::vec((any_programmes(), any_programmes()), 1..6),
        only_new: bool,
    ) {
        let mut stage = Stage::new([rule(ProgrammeTest { only_new, ..exact("Show") })]);
        for (a, b) in guides {
            stage = stage.guide("a", &[1], a).guide("b", &[2], b);
            let before = stage.recordings.clone();
            let marked = stage.planned(preview);
            stage.evaluate();
            // The preview says which of the showings have a recording.
            for it in marked {
                let is_followed = |of: &Arc<Recording>| {
                    let followed = of.followed.as_ref().unwrap();
                    let place = (followed.guide_key.as_str(), followed.start, followed.episode);
                    place == (&*it.airing.guide_key, it.airing.start, it.airing.episode)
                };
                let is_scheduled = it.mark == AiringMark::Scheduled;
                prop_assert_eq!(stage.recordings.iter().any(is_followed), is_scheduled, "{:?}", it);
            }
            let shows = |key: &str, start: i64| {
                let of_key = stage.guide.iter().filter(|it| it.0 == key).flat_map(|it| &it.2);
                of_key.filter(|it| it.start * 1000 == start).map(|it| EpisodeKey::from_programme(it, key)).next()
            };
            for gone in before.iter().filter(|it| stage.recordings.iter().all(|left| left.id != it.id)) {
                let followed = gone.followed.as_ref().unwrap();
                let episode = shows(&followed.guide_key, gone.start);
                let has_other = stage.recordings.iter().any(|it| it.followed.as_ref().map(|it| it.episode) == episode);
                prop_assert!(episode.is_some() && has_other, "a guide cancels nothing but doubles: {:?}", gone);
            }
            let known = stage.recordings.iter().filter_map(|it| it.followed.as_ref()).filter(|it| it.episode.is_known());
            let mut episodes: Vec<_> = known.map(|it| it.episode).collect();
            let n = episodes.len();
            episodes.sort_unstable();
            episodes.dedup();
            prop_assert_eq!(episodes.len(), n, "each episode once");
            for it in &stage.recordings {
                prop_assert!(it.start < it.end && it.start > NOW * 1000, "{:?}", it);
            }
            // What the first plan frees or takes can matter to the next one, but it ends.
            prop_assert!((0..3).any(|_| stage.evaluate() == 0), "the same guide again");
        }
    }
}
