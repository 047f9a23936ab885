//! Plan changes of a running channel.

use std::time::Duration;

use super::script::{Script, check, check_with, settings};
use crate::playout::PlayoutSettings;

#[test]
fn the_playing_source_keeps_playing_at_its_index_in_the_new_plan() {
    let mut script = Script::new("a b", settings());
    script.happens("start");
    script.happens("a plays");
    assert_eq!(script.happens("the plan is c b a"), "nothing");
    assert_eq!(script.playout.playing().map(|it| it.1), Some(2));
    assert_eq!(script.happens("a is lost: 404"), "release, ask c b");
    assert_eq!(script.happens("b plays"), "failed over from a to b");
}

#[test]
fn a_source_that_left_the_plan_keeps_playing_but_is_not_requested_again() {
    let mut script = Script::new("a b", settings());
    script.happens("start");
    script.happens("a plays");
    assert_eq!(script.happens("the plan is b c"), "nothing");
    // It keeps an index after those of the plan.
    assert_eq!(script.playout.playing().map(|it| it.1), Some(2));
    assert_eq!(script.playout.candidates().len(), 3);
    assert_eq!(script.happens("a is lost: reset"), "release, ask b c");
    assert_eq!(script.happens("b plays"), "failed over from a to b");
    assert_eq!(script.happens("the plan is b"), "nothing");
    assert_eq!(script.playout.candidates().len(), 1);
}

#[test]
fn an_identical_plan_changes_nothing() {
    check("a b", &[("start", "ask a b"), ("the plan is a b", "nothing"), ("a plays", "started with a")]);
}

#[test]
fn a_new_plan_repeats_the_pending_request() {
    check(
        "a b",
        &[("start", "ask a b"), ("the plan is c a b", "abandon, ask c a b"), ("c plays", "started with c")],
    );
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("a is lost: 404", "release, ask b c"),
            ("the plan is d c", "abandon, ask c d"),
        ],
    );
}

#[test]
fn a_retry_is_remembered_under_a_new_plan() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is lost: reset", "release, ask a b"),
            ("the plan is c a b", "abandon, ask a b c"),
            ("a is lost: refused", "ask b c"),
        ],
    );
}

#[test]
fn an_attempt_continues_if_its_candidate_is_still_in_the_plan() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is granted", "open a"),
            ("the plan is b a", "nothing"),
            ("a opens", "follow a"),
            ("the plan is c a", "nothing"),
            ("a plays", "started with a"),
        ],
    );
}

#[test]
fn an_attempt_at_a_candidate_that_left_the_plan_is_replaced() {
    check("a b", &[("start", "ask a b"), ("a is granted", "open a"), ("the plan is b", "abandon, ask b")]);
    check("a b", &[("start", "ask a b"), ("a opens", "follow a"), ("the plan is b", "release, ask b")]);
    check("a b", &[("start", "ask a b"), ("a is lost: 403 too soon", "nothing"), ("the plan is b", "ask b")]);
}

#[test]
fn a_plan_without_candidates_ends_the_channel_when_nothing_plays() {
    check("a", &[("start", "ask a"), ("the plan is", "abandon, give up: no streams")]);
    check(
        "a",
        &[
            ("start", "ask a"),
            ("a plays", "started with a"),
            ("the plan is", "nothing"),
            ("after 1 h", "nothing"),
            ("a is lost: reset", "release, give up: no streams"),
        ],
    );
}

#[test]
fn a_new_plan_may_redirect_before_a_lease_was_granted() {
    check("a b", &[("start", "ask a b"), ("the plan is c> a", "abandon, redirect to c")]);
    check("a b", &[("start", "ask a b"), ("a is granted", "open a"), ("the plan is c> b", "abandon, ask b")]);
}

#[test]
fn the_history_of_a_candidate_survives_a_new_plan() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is lost: 404", "ask b"),
            ("b plays", "started with b"),
            ("the plan is c a b", "nothing"),
            ("yield", "release"),
            ("start", "ask c b a"),
        ],
    );
}

#[test]
fn a_switch_continues_under_a_new_plan_and_fails_when_its_stream_left_it() {
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("switch to c", "ask c to switch"),
            ("the plan is c d", "abandon, ask c to switch"),
            ("c is granted", "open c"),
            ("the plan is d c", "nothing"),
            ("c plays", "switched from a to c"),
        ],
    );
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("switch to c", "ask c to switch"),
            ("c is granted", "open c"),
            ("the plan is a b", "abandon, switch to c failed, a plays"),
            ("a is lost: 404", "release, ask b"),
        ],
    );
}

#[test]
fn the_channel_returns_to_a_better_candidate_of_a_new_plan() {
    let returning =
        PlayoutSettings { return_to_preferred_after: Some(Duration::from_secs(300)), ..settings() };
    check_with(
        "b c",
        returning,
        &[
            ("start", "ask b c"),
            ("b plays", "started with b"),
            ("after 1 h", "nothing"),
            ("the plan is a b c", "nothing"),
            ("after 200 s", "nothing"),
            ("the plan is a b", "nothing"),
            ("time passes", "after 100s: ask a to switch"),
        ],
    );
}
