//! Yield and stop release everything, from every state.

use super::script::{Script, check, settings};
use crate::playout::PlayoutState;

/// Lines that lead to each state, and the actions that leave it.
const WAYS: [(&[&str], &str); 8] = [
    (&[], "nothing"),
    (&["start"], "abandon"),
    (&["start", "a is granted"], "abandon"),
    (&["start", "a opens"], "release"),
    (&["start", "a plays"], "release"),
    (&["start", "a is lost: 403 too soon"], "nothing"),
    (&["start", "a plays", "a is lost: 404", "b is lost: 404"], "nothing"),
    (&["start", "a plays", "switch to b"], "abandon, release, switch to b failed, nothing plays"),
];

#[test]
fn a_yield_releases_everything_and_the_channel_can_start_again() {
    for (way, dropped) in WAYS {
        let mut script = Script::new("a b", settings());
        way.iter().for_each(|line| drop(script.happens(line)));
        assert_eq!(script.happens("yield"), dropped, "after {way:?}");
        assert_eq!(script.playout.state(), &PlayoutState::Idle);
        assert_eq!(script.playout.deadline(), None);
        assert!(script.happens("start").starts_with("ask "), "after {way:?}");
    }
}

#[test]
fn after_a_stop_no_input_has_an_effect() {
    for (way, dropped) in WAYS {
        let mut script = Script::new("a b", settings());
        way.iter().for_each(|line| drop(script.happens(line)));
        assert_eq!(script.happens("stop"), dropped, "after {way:?}");
        assert_eq!(script.playout.state(), &PlayoutState::Stopped);
        assert_eq!(script.playout.deadline(), None);
        for line in ["start", "tick", "switch to next", "the plan is c d", "yield", "stop"] {
            assert_eq!(script.happens(line), "nothing", "after {way:?}: {line}");
        }
    }
}

#[test]
fn tokens_and_failures_are_remembered_over_a_yield() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is lost: reset", "release, ask a b"),
            ("a plays", "a is back"),
            ("a is lost: reset", "release, ask a b"),
            ("a plays", "a is back"),
            ("yield", "release"),
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is lost: reset", "release, ask b"),
            ("yield", "abandon"),
            ("start", "ask b a"),
        ],
    );
}
