//! The plan changes under a running channel.

use std::time::Duration;

use super::script::{Script, check, check_with, settings};
use crate::playout::PlayoutSettings;

#[test]
fn what_plays_plays_on_wherever_it_is_in_the_new_plan() {
    let mut script = Script::new("a b", settings());
    script.happens("start");
    script.happens("a plays");
    assert_eq!(script.happens("the plan is c b a"), "nothing");
    assert_eq!(script.playout.playing().map(|it| it.1), Some(2));
    assert_eq!(script.happens("a is lost: 404"), "let go, ask c b");
    assert_eq!(script.happens("b plays"), "failed over from a to b");
}

#[test]
fn what_plays_plays_on_even_if_it_left_the_plan_and_is_not_asked_for_again() {
    let mut script = Script::new("a b", settings());
    script.happens("start");
    script.happens("a plays");
    assert_eq!(script.happens("the plan is b c"), "nothing");
    // It keeps an index behind the plan.
    assert_eq!(script.playout.playing().map(|it| it.1), Some(2));
    assert_eq!(script.playout.candidates().len(), 3);
    assert_eq!(script.happens("a is lost: reset"), "let go, ask b c");
    assert_eq!(script.happens("b plays"), "failed over from a to b");
    assert_eq!(script.happens("the plan is b"), "nothing");
    assert_eq!(script.playout.candidates().len(), 1);
}

#[test]
fn a_plan_that_says_the_same_changes_nothing() {
    check("a b", &[("start", "ask a b"), ("the plan is a b", "nothing"), ("a plays", "started with a")]);
}

#[test]
fn a_request_under_way_is_put_anew() {
    check(
        "a b",
        &[("start", "ask a b"), ("the plan is c a b", "abandon, ask c a b"), ("c plays", "started with c")],
    );
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("a is lost: 404", "let go, ask b c"),
            ("the plan is d c", "abandon, ask c d"),
        ],
    );
}

#[test]
fn a_second_chance_is_remembered_under_a_new_plan() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is lost: reset", "let go, ask a b"),
            ("the plan is c a b", "abandon, ask a b c"),
            ("a is lost: refused", "ask b c"),
        ],
    );
}

#[test]
fn an_attempt_goes_on_if_its_place_is_still_in_the_plan() {
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
fn an_attempt_at_a_place_that_left_the_plan_is_dropped_for_another() {
    check("a b", &[("start", "ask a b"), ("a is granted", "open a"), ("the plan is b", "abandon, ask b")]);
    check("a b", &[("start", "ask a b"), ("a opens", "follow a"), ("the plan is b", "let go, ask b")]);
    check("a b", &[("start", "ask a b"), ("a is lost: 429 too soon", "nothing"), ("the plan is b", "ask b")]);
}

#[test]
fn a_plan_without_places_ends_the_channel_when_nothing_plays() {
    check("a", &[("start", "ask a"), ("the plan is", "abandon, give up: no streams")]);
    check(
        "a",
        &[
            ("start", "ask a"),
            ("a plays", "started with a"),
            ("the plan is", "nothing"),
            ("after 1 h", "nothing"),
            ("a is lost: reset", "let go, give up: no streams"),
        ],
    );
}

#[test]
fn before_anybody_was_told_to_wait_a_new_plan_may_redirect() {
    check("a b", &[("start", "ask a b"), ("the plan is c> a", "abandon, redirect to c")]);
    check("a b", &[("start", "ask a b"), ("a is granted", "open a"), ("the plan is c> b", "abandon, ask b")]);
}

#[test]
fn what_is_known_of_a_place_goes_with_it() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is lost: 404", "ask b"),
            ("b plays", "started with b"),
            ("the plan is c a b", "nothing"),
            ("yield", "let go"),
            ("start", "ask c b a"),
        ],
    );
}

#[test]
fn a_switch_goes_on_under_a_new_plan_and_fails_when_its_stream_left_it() {
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
            ("a is lost: 404", "let go, ask b"),
        ],
    );
}

#[test]
fn a_better_place_in_a_new_plan_is_returned_to() {
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
