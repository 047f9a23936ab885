//! Programmes that move, and their recordings.

use super::*;
use crate::recording::RecordingStatus;

/// Holds T-dvr.4.
#[test]
fn a_moved_programme_moves_its_recording_and_edits_stay() {
    let mut stage =
        Stage::new([rule(exact("Show"))]).guide("a", &[1], [episode(5, "Show", 1), programme(5, 6, "x")]);
    assert_eq!(stage.scheduled(), ["1@5-6"]);
    for hour in 6..26 {
        let filler = programme(0, 40, "other");
        stage = stage.guide("a", &[1], [filler, episode(hour, "Show", 1)]);
        assert_eq!(stage.scheduled(), [format!("1@{hour}-{}", hour + 1)], "no second recording");
        assert_eq!(
            stage.recordings[0].programme.as_ref().unwrap().id,
            Some(format!("a-{}", NOW + hour * HOUR))
        );
    }
    stage.edit(0, |it| it.end += 1_800_000);
    let filler = || programme(0, 40, "other");
    stage = stage.guide("a", &[1], [filler(), episode(24, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@24-26.5"], "the end was edited");
    stage.edit(0, |it| it.start += 900_000);
    stage = stage.guide("a", &[1], [filler(), episode(10, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@24.25-26.5"], "both were edited");
}

#[test]
fn a_programme_without_an_identity_is_followed_by_its_title() {
    let filler = || programme(-10, 40, "other");
    let shown = |hours: [i64; 2]| hours.map(|it| programme(it, it + 1, "News"));
    let mut stage = Stage::new([rule(exact("News"))]).guide("a", &[1], shown([5, 10]));
    assert_eq!(stage.scheduled(), ["1@5-6", "1@10-11"]);
    let all = |hours| [filler()].into_iter().chain(shown(hours));
    stage = stage.guide("a", &[1], all([6, 10]));
    assert_eq!(stage.scheduled(), ["1@6-7", "1@10-11"]);
    stage = stage.guide("a", &[1], all([6, 30]));
    assert_eq!(stage.scheduled(), ["1@6-7", "1@10-11", "1@30-31"], "too far away to be the same");
}

#[test]
fn the_end_of_a_running_recording_follows_its_programme() {
    let mut stage = Stage::new([rule(exact("Match"))]).guide("a", &[1], [programme(1, 3, "Match")]);
    assert_eq!(stage.scheduled(), ["1@1-3"]);
    stage.now = NOW + 2 * HOUR;
    stage.edit(0, |it| it.status = RecordingStatus::Recording);
    let mut stage = stage.guide("a", &[1], [programme(1, 4, "Match")]);
    assert_eq!(stage.scheduled(), ["1@1-4"], "it takes longer");
    let mut stage = stage.guide("a", &[1], [programme(0, 2, "Before"), programme(2, 5, "Match")]);
    assert_eq!(stage.scheduled(), ["1@1-5"], "it began later; what runs has begun");
    let mut stage = stage.guide("a", &[1], [programme(0, 1, "Match")]);
    assert_eq!(stage.scheduled(), ["1@1-5"], "an end in the past is none");
}

/// Another offset of the guide moved a recording only if the guide had another programme at the old time.
#[test]
fn a_recording_follows_its_programme_when_the_offset_of_the_guide_changes() {
    let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], [episode(5, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@5-6"]);
    for (hours, expected) in [(1, "1@6-7"), (-4, "1@1-2"), (30, "1@35-36"), (0, "1@5-6")] {
        stage.offset = hours * HOUR;
        assert_eq!(stage.scheduled(), [expected], "the guide has nothing else");
        assert_eq!(stage.evaluate(), 0);
    }
    // Each recording stays with its own programme, although another one of the same name is shown at its old time.
    let shown = || [5, 6, 7].map(|it| programme(it, it + 1, "News"));
    let mut stage = Stage::new([rule(exact("News"))]).guide("a", &[1], shown());
    assert_eq!(stage.scheduled(), ["1@5-6", "1@6-7", "1@7-8"]);
    stage.recordings.truncate(1);
    stage.rules.clear();
    stage.edit(0, |it| it.followed.as_mut().unwrap().rule = None);
    stage.offset = HOUR;
    assert_eq!(stage.scheduled(), ["1@6-7"], "made by hand");
    // A programme that has begun at its new time is recorded from now on, and one that is over is not.
    let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], [episode(5, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@5-6"]);
    stage.now = NOW + HOUR / 2;
    stage.offset = -5 * HOUR;
    assert_eq!(stage.scheduled(), ["1@0-1"]);
    let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], [episode(5, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@5-6"]);
    stage.offset = -9 * HOUR;
    assert_eq!(stage.scheduled(), ["1@5-6"]);
    // The programme at this place of the guide is another one now.
    let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], [episode(5, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@5-6"]);
    let mut stage = stage.guide("a", &[1], [episode(5, "Show", 2)]);
    stage.offset = HOUR;
    assert_eq!(stage.scheduled(), ["1@5-6", "1@6-7"]);
}

/// Only the channels of one stream are late.
#[test]
fn a_recording_stays_on_its_channel_when_only_that_one_gets_an_offset() {
    let shown = || [episode(5, "Show", 1)];
    let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], shown()).guide("b", &[2], []);
    assert_eq!(stage.scheduled(), ["1@5-6"]);
    let all = stage.planned(|input| input.airings);
    let one = Arc::clone(&all[0].1);
    let late = Airing { start: one.start + HOUR * 1000, end: one.end + HOUR * 1000, ..Airing::clone(&one) };
    let other = Airing { channels: Arc::new([ChannelId(2)]), ..Airing::clone(&one) };
    let changes = stage.planned(|input| {
        let airings = [other, late].map(|it| (RuleSubject::Rule(0), Arc::new(it))).to_vec();
        plan(PlanInput { airings, ..input })
    });
    let [PlannedChange::Update { after, .. }] = &*changes else { panic!("{changes:?}") };
    assert_eq!((after.channel, after.start), (ChannelId(1), (NOW + 6 * HOUR) * 1000));
}

#[test]
fn a_broken_guide_cancels_nothing() {
    let mut stage =
        Stage::new([rule(exact("Show"))]).guide("a", &[1], [episode(5, "Show", 1), episode(50, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@5-6"]);
    for rest in
        [vec![], vec![episode(50, "Show", 1)], vec![programme(20, 60, "other"), episode(50, "Show", 1)]]
    {
        stage = stage.guide("a", &[1], rest);
        assert_eq!(stage.scheduled(), ["1@5-6"], "the guide has nothing at that time");
    }
    stage = stage.guide("a", &[1], [programme(4, 8, "Football"), episode(50, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@50-51"], "something else is shown at that time");
    stage = stage.guide("a", &[1], [programme(4, 80, "Football")]);
    assert_eq!(stage.scheduled(), ["1@50-51"]);
}

#[test]
fn a_recording_by_hand_follows_its_programme_and_takes_the_episode_of_a_rule() {
    let filler = || programme(-10, 40, "other");
    let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], [episode(5, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@5-6"]);
    stage.edit(0, |it| it.followed.as_mut().unwrap().rule = None);
    stage.rules = vec![Arc::new(RecordingRule { id: RecordingRuleId(2), ..rule(exact("Show")) })];
    stage = stage.guide("a", &[1], [filler(), episode(7, "Show", 1), episode(30, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@7-8"]);
    stage.rules.clear();
    stage = stage.guide("a", &[1], [filler(), episode(9, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@9-10"], "also without any rule");
    stage = stage.guide("a", &[1], [filler(), episode(39, "Show", 1)]);
    assert_eq!(stage.scheduled(), ["1@9-10"], "another day is another showing");
}

#[test]
fn two_showings_that_move_and_turn_out_to_be_one_episode_cancel_nothing() {
    let shown = [programme(64, 67, "Show"), programme(162, 163, "Show")];
    let mut stage = Stage::new([rule(exact("Show"))]).guide("a", &[1], shown);
    assert_eq!(stage.scheduled(), ["1@64-67", "1@162-163"]);
    // The first one is that episode now. The other one stays, because its programme may only be missing.
    let mut stage = stage.guide(
        "a",
        &[1],
        [episode(65, "Show", 2), Programme { stop: NOW + 163 * HOUR, ..episode(160, "Show", 2) }],
    );
    assert_eq!(stage.scheduled(), ["1@65-66", "1@162-163"]);
    assert_eq!(stage.evaluate(), 0);
}
