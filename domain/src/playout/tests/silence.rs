//! A source that plays and falls silent.

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
            // The memory of the failures has ended.
            ("after 61 s", "nothing"),
            ("a is silent", "ask b c beside"),
        ],
    );
}

#[test]
fn a_source_that_often_sends_again_causes_fewer_and_fewer_attempts() {
    let mut script = Script::new("a b", settings());
    script.happens("start");
    script.happens("a plays");
    let mut n_asks = 0;
    for _ in 0..600 {
        n_asks += usize::from(script.happens("a is silent") == "ask b beside");
        script.happens("a sends again");
        script.happens("after 1 s");
    }
    assert!((40..=44).contains(&n_asks), "{n_asks} attempts in ten minutes");
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
