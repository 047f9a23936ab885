//! Channels that played at another node until it was lost: their viewers wait for its slot.

use std::time::Duration;

use super::script::{Script, check, check_with, settings};
use crate::playout::{Action, AttemptReason, Input, PlayoutSettings};

#[test]
fn a_channel_of_a_lost_node_waits_for_a_slot_and_plays_with_it() {
    check(
        "a",
        &[
            ("take over", "ask a"),
            ("full", "back off 250ms"),
            ("time passes", "after 250ms: ask a"),
            ("full", "back off 250ms"),
            ("time passes", "after 250ms: ask a"),
            ("a plays", "started with a"),
            ("after 1 h", "nothing"),
        ],
    );
    check(
        "a b",
        &[
            ("take over", "ask a b"),
            ("full", "back off 1s"),
            ("time passes", "after 1s: ask a b"),
            ("full", "back off 1s"),
            ("time passes", "after 1s: ask a b"),
            ("b plays", "started with b"),
        ],
    );
}

/// A request waits for three seconds. The slot of a node that was killed is free after fifty.
#[test]
fn a_channel_of_a_lost_node_always_has_a_request_and_gives_up_after_a_minute() {
    let mut script = Script::new("a", settings());
    let began = script.now;
    assert_eq!(script.happens("take over"), "ask a");
    for _ in 0..18 {
        assert_eq!(script.happens("after 3 s"), "nothing");
        assert_eq!(script.happens("full"), "back off 250ms");
        assert_eq!(script.happens("time passes"), "after 250ms: ask a");
    }
    assert_eq!(script.now - began, Duration::from_millis(58_500));
    assert_eq!(script.happens("time passes"), "after 1.5s: abandon, give up: silent");
    assert_eq!(script.happens("start"), "nothing");
}

#[test]
fn the_time_to_give_up_counts_from_the_last_packet_of_the_lost_node() {
    let short = PlayoutSettings { give_up_after: Duration::from_secs(10), ..settings() };
    check_with(
        "a",
        short.clone(),
        &[
            ("take over after 9 s", "ask a"),
            ("full", "back off 250ms"),
            ("time passes", "after 250ms: ask a"),
            ("time passes", "after 750ms: abandon, give up: silent"),
        ],
    );
    // The node before has waited for the whole time.
    check_with("a", short, &[("take over after 10 s", "give up: silent")]);
}

#[test]
fn other_failures_of_a_channel_of_a_lost_node_are_those_of_a_gap() {
    // The provider may still count the connection of the lost node, whatever it answers.
    check(
        "a",
        &[
            ("take over", "ask a"),
            ("a is lost: 403", "back off 250ms"),
            ("time passes", "after 250ms: ask a"),
            ("a is lost: 403", "back off 500ms"),
            ("time passes", "after 500ms: ask a"),
            ("a plays", "started with a"),
        ],
    );
    // A provider that was asked and failed gets longer and longer pauses.
    check(
        "a b",
        &[
            ("take over", "ask a b"),
            ("a is lost: timeout", "ask b"),
            ("full", "back off 1s"),
            ("time passes", "after 1s: ask b a"),
            ("a is lost: timeout", "ask b"),
            ("full", "back off 2s"),
        ],
    );
}

#[test]
fn a_request_of_a_channel_of_a_lost_node_is_that_of_a_failover() {
    let mut script = Script::new("a b", settings());
    let actions = script.playout.on(Input::TakeOver { silent_since: script.now }, script.now);
    let is_failover =
        |it: &Action| matches!(it, Action::Ask { why: AttemptReason::Failover, beside: false, .. });
    assert!(actions.iter().all(is_failover), "{actions:?}");
    assert!(script.playout.has_played());
}

#[test]
fn viewers_of_a_lost_node_are_not_redirected() {
    check(
        "a> b c>",
        &[
            ("take over", "ask b"),
            ("full", "back off 250ms"),
            ("time passes", "after 250ms: ask b"),
            ("b plays", "started with b"),
        ],
    );
    check("a>", &[("take over", "give up: no streams")]);
}

/// A start after the viewers of the lost node have left is an ordinary one.
#[test]
fn after_a_yield_a_start_is_refused_at_once_again() {
    check(
        "a",
        &[
            ("take over", "ask a"),
            ("take over", "nothing"),
            ("start", "nothing"),
            ("yield", "abandon"),
            ("start", "ask a"),
            ("full", "give up: no slot"),
        ],
    );
}

#[test]
fn once_it_plays_here_a_full_account_leads_to_the_usual_pauses() {
    check(
        "a b",
        &[
            ("take over", "ask a b"),
            ("a plays", "started with a"),
            ("a is lost: 404", "release, ask b"),
            ("full", "back off 1s"),
            ("time passes", "after 1s: ask b a"),
            ("full", "back off 2s"),
        ],
    );
}
