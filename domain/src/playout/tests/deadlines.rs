//! Nobody answers, or too late: no state lasts for ever, and old news changes nothing.

use super::script::{Script, check, settings};

#[test]
fn a_request_that_is_never_answered_is_taken_back() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("time passes", "after 5s: abandon, rest 1s"),
            ("time passes", "after 1s: ask a b"),
            ("a plays", "started with a"),
        ],
    );
}

#[test]
fn an_opener_that_hangs_is_dropped_for_the_next() {
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
fn a_source_that_never_gets_into_the_ring_is_let_go_for_the_next() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a opens", "follow a"),
            ("time passes", "after 4s: let go, ask b"),
            ("b plays", "started with b"),
        ],
    );
}

#[test]
fn a_source_that_is_lost_on_its_way_into_the_ring_is_let_go() {
    check("a b", &[("start", "ask a b"), ("a opens", "follow a"), ("a is lost: 404", "let go, ask b")]);
}

#[test]
fn an_opener_that_hangs_does_not_prove_that_nothing_will_ever_play() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is lost: 404", "ask b"),
            ("b is granted", "open b"),
            ("time passes", "after 6s: abandon, rest 1s"),
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
fn a_tick_that_comes_late_moves_all_the_same() {
    let mut script = Script::new("a b", settings());
    script.happens("start");
    script.happens("a is granted");
    script.now += std::time::Duration::from_secs(30);
    assert_eq!(script.happens("tick"), "abandon, ask b");
    // Each step gets its own time, however late it begins.
    assert_eq!(script.happens("tick"), "nothing");
    assert_eq!(script.happens("time passes"), "after 5s: abandon, rest 1s");
}

#[test]
fn late_news_from_an_old_attempt_changes_nothing() {
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
            ("b is lost: stall", "let go, rest 1s"),
            ("old b is lost: stall", "nothing"),
        ],
    );
}

#[test]
fn what_a_late_grant_or_opening_brought_is_dropped() {
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
            ("stop", "let go"),
            ("old a opens", "abandon"),
            ("old b plays", "nothing"),
        ],
    );
}
