//! Missing and late answers: every state has a deadline, and late messages change nothing.

use super::script::{Script, check, settings};

#[test]
fn an_unanswered_request_is_abandoned() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("time passes", "after 5s: abandon, back off 1s"),
            ("time passes", "after 1s: ask a b"),
            ("a plays", "started with a"),
        ],
    );
}

#[test]
fn a_hanging_opener_is_abandoned_for_the_next_candidate() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is granted", "open a"),
            ("time passes", "after 6s: abandon, ask b"),
            ("b plays", "started with b"),
        ],
    );
}

#[test]
fn a_source_that_never_reaches_the_ring_is_replaced() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a opens", "follow a"),
            ("time passes", "after 4s: release, ask b"),
            ("b plays", "started with b"),
        ],
    );
}

#[test]
fn a_source_that_is_lost_before_it_reaches_the_ring_is_released() {
    check("a b", &[("start", "ask a b"), ("a opens", "follow a"), ("a is lost: 404", "release, ask b")]);
}

#[test]
fn a_hanging_opener_does_not_end_a_cold_start() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is lost: 404", "ask b"),
            ("b is granted", "open b within 15s"),
            ("time passes", "after 17s: abandon, back off 1s"),
        ],
    );
}

#[test]
fn an_early_tick_is_harmless() {
    check(
        "a b",
        &[
            ("tick", "nothing"),
            ("start", "ask a b"),
            ("tick", "nothing"),
            ("after 4.9 s", "nothing"),
            ("tick", "nothing"),
            ("a is granted", "open a"),
            ("after 5.9 s", "nothing"),
            ("tick", "nothing"),
            ("a plays", "started with a"),
            ("tick", "nothing"),
        ],
    );
}

#[test]
fn a_late_tick_has_its_effect() {
    let mut script = Script::new("a b", settings());
    script.happens("start");
    script.happens("a is granted");
    script.now += std::time::Duration::from_secs(30);
    assert_eq!(script.happens("tick"), "abandon, ask b");
    // Each step gets its full time, however late it begins.
    assert_eq!(script.happens("tick"), "nothing");
    assert_eq!(script.happens("time passes"), "after 5s: abandon, back off 1s");
}

#[test]
fn a_late_message_about_an_old_attempt_changes_nothing() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is granted", "open a"),
            ("time passes", "after 6s: abandon, ask b"),
            ("old a plays", "nothing"),
            ("old a is lost: reset", "nothing"),
            ("old a is full", "nothing"),
            ("b plays", "started with b"),
            ("old a is lost: reset", "nothing"),
            ("b is lost: stall", "release, back off 1s"),
            ("old b is lost: stall", "nothing"),
        ],
    );
}

#[test]
fn the_lease_or_source_of_a_late_message_is_dropped() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is granted", "open a"),
            ("time passes", "after 6s: abandon, ask b"),
            ("old a is granted", "abandon"),
            ("old a opens", "abandon"),
            ("b plays", "started with b"),
            ("old a opens", "abandon"),
            ("stop", "release"),
            ("old a opens", "abandon"),
            ("old b plays", "nothing"),
        ],
    );
}
