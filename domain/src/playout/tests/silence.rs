//! A source that plays and falls silent.

use std::time::{Duration, Instant};

use super::script::{Script, check, settings};

#[test]
fn the_next_candidate_is_opened_beside_a_silent_source_and_replaces_it() {
    let mut script = Script::new("a b c", settings());
    script.happens("start");
    script.happens("a plays");
    assert_eq!(script.happens("a is silent"), "ask b c beside");
    assert_eq!(script.playout.state_name(), "playing");
    assert_eq!(script.happens("b opens"), "prepare b");
    assert_eq!(script.playout.playing().map(|it| it.1), Some(0), "the silent source may still send");
    assert_eq!(script.happens("b is ready"), "a is left, follow b");
    assert_eq!(script.happens("b plays"), "failed over from a to b");
    // The source that fell silent is tried last.
    assert_eq!(script.happens("b is lost: 404"), "release, ask c");
}

#[test]
fn a_source_that_sends_again_ends_the_speculative_attempt_at_any_step() {
    for steps in [&[][..], &["b is granted"], &["b opens"]] {
        let mut script = Script::new("a b", settings());
        script.happens("start");
        script.happens("a plays");
        assert_eq!(script.happens("a is silent"), "ask b beside");
        for step in steps {
            script.happens(step);
        }
        assert_eq!(script.happens("a sends again"), "abandon", "{steps:?}");
        assert_eq!(script.playout.playing().map(|it| it.1), Some(0));
    }
    // Too late: the new one was told to play.
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is silent", "ask b beside"),
            ("b opens", "prepare b"),
            ("b is ready", "a is left, follow b"),
            ("b plays", "failed over from a to b"),
        ],
    );
}

#[test]
fn without_a_free_slot_a_silent_source_is_lost_after_the_stall_timeout_as_before() {
    check(
        "a1 b1",
        &[
            ("start", "ask a1 b1"),
            ("a1 plays", "started with a1"),
            ("a1 is silent", "ask b1 beside"),
            ("full", "nothing"),
            ("after 1 h", "nothing"),
            ("a1 is lost: stall", "release, ask b1"),
        ],
    );
}

#[test]
fn a_loss_before_the_answer_about_a_slot_requests_an_ordinary_one() {
    check(
        "a1 b1",
        &[
            ("start", "ask a1 b1"),
            ("a1 plays", "started with a1"),
            ("a1 is silent", "ask b1 beside"),
            ("a1 is lost: stall", "release, abandon, ask b1"),
        ],
    );
}

#[test]
fn a_silent_source_that_is_lost_leaves_the_attempt_beside_it() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is silent", "ask b beside"),
            ("b is granted", "open b"),
            ("a is lost: stall", "release"),
            ("b plays", "failed over from a to b"),
        ],
    );
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is silent", "ask b beside"),
            ("b opens", "prepare b"),
            ("a is lost: stall", "follow b"),
            ("b plays", "failed over from a to b"),
        ],
    );
}

#[test]
fn a_candidate_that_fails_beside_a_silent_source_is_followed_by_the_next_and_not_repeated() {
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("a is silent", "ask b c beside"),
            ("b is lost: 404", "ask c beside"),
            ("c is lost: 404", "nothing"),
            ("a sends again", "nothing"),
            ("a is silent", "nothing"),
            ("a sends again", "nothing"),
            // The memory of the failures has ended, that of the openings in vain has not.
            ("after 61 s", "nothing"),
            ("a is silent", "nothing"),
            ("a sends again", "nothing"),
            ("after 540 s", "nothing"),
            ("a is silent", "ask b c beside"),
        ],
    );
}

#[test]
fn a_source_that_often_sends_again_opens_one_connection_in_ten_minutes() {
    let mut script = Script::new("a b", settings());
    script.happens("start");
    script.happens("a plays");
    let mut n_opened = 0;
    for _ in 0..1_800 {
        if script.happens("a is silent") == "ask b beside" {
            script.happens("b is granted");
            n_opened += 1;
        }
        script.happens("a sends again");
        script.happens("after 1 s");
    }
    assert_eq!(n_opened, 3, "connections in half an hour");
}

#[test]
fn a_request_without_a_connection_is_not_in_vain() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is silent", "ask b beside"),
            ("full", "nothing"),
            ("a sends again", "nothing"),
            ("a is silent", "ask b beside"),
            ("a sends again", "abandon"),
            ("a is silent", "ask b beside"),
            ("b is granted", "open b"),
            ("a sends again", "abandon"),
            ("a is silent", "nothing"),
        ],
    );
}

// Holds T-fo.8.
#[test]
fn the_same_stream_is_opened_again_because_of_silence_at_most_every_fifteen_seconds() {
    // The silent source is lost by a stall, or another one is ready beside it first.
    for candidates in ["a", "a b", "a1 a2", "a b c"] {
        for is_beside in [false, true] {
            let mut script = Script::new(candidates, settings());
            script.happens("start");
            script.happens(&format!("{} plays", script.name(0)));
            let mut opened: Vec<(char, Instant)> = Vec::new();
            let end = script.now + Duration::from_secs(3600);
            while script.now < end {
                script.happens("after 1.5 s");
                let mut asked = String::new();
                if let Some((_, index)) = script.playout.playing() {
                    let name = script.name(index);
                    if is_beside {
                        asked = script.happens(&format!("{name} is silent"));
                    }
                    if !asked.contains("ask") {
                        asked = script.happens(&format!("{name} is lost: stall"));
                    }
                }
                while !asked.contains("ask") {
                    asked = script.happens("time passes");
                }
                let next = asked.split("ask ").nth(1).and_then(|it| it.split([' ', ',']).next());
                let next = next.expect("a candidate").to_owned();
                opened.push((next.chars().next().expect("a letter"), script.now));
                script.happens(&format!("{next} plays"));
            }
            assert!(opened.len() > 200, "{candidates}: it plays again and again");
            for stream in ['a', 'b', 'c'] {
                let times: Vec<_> = opened.iter().filter(|it| it.0 == stream).map(|it| it.1).collect();
                let is_rare = |pair: &[Instant]| pair[1] - pair[0] >= Duration::from_secs(15);
                // The first opening was not because of a silence of this stream.
                let first = usize::from(stream != 'a');
                assert!(times[first.min(times.len())..].windows(2).all(is_rare), "{candidates}, {is_beside}");
            }
        }
    }
}

#[test]
fn a_stall_after_long_play_and_an_end_after_a_silence_are_followed_by_an_opening_at_once() {
    check(
        "a",
        &[
            ("start", "ask a"),
            ("a plays", "started with a"),
            ("after 60 s", "nothing"),
            ("a is lost: stall", "release, back off 250ms"),
            ("time passes", "after 250ms: ask a"),
            ("a plays", "a is back"),
            ("after 3 s", "nothing"),
            ("a is lost: reset", "release, ask a"),
            ("a plays", "a is back"),
            ("after 60 s", "nothing"),
            ("a is lost: stall", "release, back off 250ms"),
            ("time passes", "after 250ms: ask a"),
            ("a plays", "a is back"),
            ("after 3 s", "nothing"),
            ("a is lost: stall", "release, back off 12s"),
            ("time passes", "after 12s: ask a"),
        ],
    );
}

/// A provider that restarts is asked as often as after any other loss.
#[test]
fn an_opening_that_fails_after_a_silence_has_the_usual_pauses() {
    check(
        "a",
        &[
            ("start", "ask a"),
            ("a plays", "started with a"),
            ("after 60 s", "nothing"),
            ("a is lost: stall", "release, back off 250ms"),
            ("time passes", "after 250ms: ask a"),
            ("a is lost: refused", "ask a"),
            ("a is lost: refused", "back off 500ms"),
            ("time passes", "after 500ms: ask a"),
        ],
    );
}

#[test]
fn the_only_candidate_is_opened_beside_itself() {
    check(
        "a",
        &[
            ("start", "ask a"),
            ("a plays", "started with a"),
            ("a is silent", "ask a beside"),
            ("a opens", "prepare a"),
            ("a is ready", "a is left, follow a"),
            ("a plays", "a is back"),
        ],
    );
    // With others, the silent one itself is not opened again.
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is silent", "ask b beside"),
            ("b is lost: 404", "nothing"),
        ],
    );
}

#[test]
fn silence_during_a_switch_opens_nothing_until_the_switch_has_failed() {
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("switch to b", "ask b to switch"),
            ("a is silent", "nothing"),
            ("b is lost: 404", "switch to b failed, a plays, ask c beside"),
            ("c plays", "failed over from a to c"),
        ],
    );
}

#[test]
fn a_manual_switch_replaces_a_speculative_attempt() {
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("a is silent", "ask b c beside"),
            ("b opens", "prepare b"),
            ("switch to c", "abandon, ask c to switch"),
            ("c plays", "switched from a to c"),
        ],
    );
}

#[test]
fn a_speculative_attempt_that_hangs_ends_at_its_deadline() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is silent", "ask b beside"),
            ("time passes", "after 5s: abandon"),
            ("a sends again", "nothing"),
            ("a is silent", "ask b beside"),
            ("b is granted", "open b"),
            ("time passes", "after 6s: abandon"),
        ],
    );
}

#[test]
fn a_new_plan_keeps_or_replaces_a_speculative_attempt() {
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("a is silent", "ask b c beside"),
            ("b opens", "prepare b"),
            ("the plan is c b a", "nothing"),
            ("the plan is a c", "abandon, ask c beside"),
            ("the plan is c a", "abandon, ask c beside"),
            ("yield", "abandon, release"),
        ],
    );
}
