//! Yield and stop: from every state, nothing is left.

use super::script::{Script, check, settings};
use crate::playout::PlayoutState;

/// Lines that lead into each state, and what is dropped when it ends.
const WAYS: [(&[&str], &str); 8] = [
    (&[], "nothing"),
    (&["start"], "abandon"),
    (&["start", "a is granted"], "abandon"),
    (&["start", "a opens"], "let go"),
    (&["start", "a plays"], "let go"),
    (&["start", "a is lost: 429 too soon"], "nothing"),
    (&["start", "a plays", "a is lost: 404", "b is lost: 404"], "nothing"),
    (&["start", "a plays", "switch to b"], "abandon, let go, switch to b failed, nothing plays"),
];

#[test]
fn whoever_yields_gives_up_all_it_has_and_may_start_again() {
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
fn after_a_stop_nothing_does_anything() {
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
            ("a is lost: reset", "let go, ask a b"),
            ("a plays", "a is back"),
            ("a is lost: reset", "let go, ask a b"),
            ("a plays", "a is back"),
            ("yield", "let go"),
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is lost: reset", "let go, ask b"),
            ("yield", "abandon"),
            ("start", "ask b a"),
        ],
    );
}
