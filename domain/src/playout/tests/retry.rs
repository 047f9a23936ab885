//! Immediate retries of the same candidate: token buckets, and providers that still count a closed connection.

use super::script::{Script, check, settings};

// Holds T-fo.4, its first half.
#[test]
fn three_drops_in_a_day_do_not_change_the_source() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("after 8 h", "nothing"),
            ("a is lost: reset", "release, ask a b"),
            ("a plays", "a is back"),
            ("after 8 h", "nothing"),
            ("a is lost: reset", "release, ask a b"),
            ("a plays", "a is back"),
            ("after 8 h", "nothing"),
            ("a is lost: reset", "release, ask a b"),
            ("a plays", "a is back"),
        ],
    );
}

#[test]
fn a_hundred_drops_with_stable_play_between_them_do_not_change_the_source() {
    let mut script = Script::new("a b", settings());
    script.happens("start");
    script.happens("a plays");
    for _ in 0..100 {
        script.happens("after 10 min");
        assert_eq!(script.happens("a is lost: reset"), "release, ask a b");
        assert_eq!(script.happens("a plays"), "a is back");
    }
}

// Holds T-fo.4, its second half.
#[test]
fn three_drops_in_a_minute_change_the_source() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("after 20 s", "nothing"),
            ("a is lost: reset", "release, ask a b"),
            ("a plays", "a is back"),
            ("after 20 s", "nothing"),
            ("a is lost: reset", "release, ask a b"),
            ("a plays", "a is back"),
            ("after 20 s", "nothing"),
            ("a is lost: reset", "release, ask b a"),
            ("b plays", "failed over from a to b"),
        ],
    );
}

// Holds T-fo.8, its half about responses that end.
#[test]
fn a_response_that_ends_after_healthy_play_does_not_count_as_a_failure() {
    for play in ["after 2 s", "after 6 s", "after 11 s", "after 29 s", "after 31 s"] {
        let mut script = Script::new("a", settings());
        script.happens("start");
        script.happens("a plays");
        for n in 0..100 {
            script.happens(play);
            assert_eq!(script.happens("a is lost: reset"), "release, ask a", "{play}, {n}");
            assert_eq!(script.happens("a plays"), "a is back", "{play}, {n}");
        }
    }
    // A response that is too short to be played well causes growing pauses.
    let mut script = Script::new("a", settings());
    script.happens("start");
    script.happens("a plays");
    for expected in ["release, ask a", "release, ask a", "release, back off 250ms"] {
        script.happens("after 1.9 s");
        assert_eq!(script.happens("a is lost: reset"), expected);
        if expected == "release, ask a" {
            script.happens("a plays");
        }
    }
}

/// Healthy play counts from the first packet, not from the moment at which the pump has found a picture to begin with.
#[test]
fn the_play_of_a_response_counts_from_its_first_packet() {
    let mut script = Script::new("a", settings());
    script.happens("start");
    script.happens("a plays");
    for _ in 0..10 {
        script.happens("after 1.2 s");
        assert_eq!(script.happens("a is lost: reset"), "release, ask a");
        script.happens("a opens");
        script.happens("after 0.8 s");
        script.happens("a plays");
    }
}

#[test]
fn if_the_responses_of_all_streams_end_early_the_source_changes_once_and_none_is_set_aside() {
    for (candidates, next) in [("a b", "b"), ("a1 a2", "a2")] {
        let mut script = Script::new(candidates, settings());
        script.happens("start");
        let first = candidates.split(' ').next().expect("a candidate");
        script.happens(&format!("{first} plays"));
        let (mut playing, mut changes) = (first, 0);
        // Five minutes, within the memory of ten.
        for n in 0..50 {
            script.happens("after 6 s");
            let asked = script.happens(&format!("{playing} is lost: reset"));
            let others: Vec<_> = candidates.split(' ').filter(|it| *it != playing).collect();
            if asked == format!("release, ask {next} {first}") && playing == first {
                (playing, changes) = (next, changes + 1);
            } else {
                assert_eq!(asked, format!("release, ask {playing} {}", others.join(" ")), "{n}");
            }
            script.happens(&format!("{playing} plays"));
        }
        assert_eq!((playing, changes), (next, 1), "{candidates}");
    }
}

#[test]
fn a_stream_that_failed_lately_is_not_played_instead_of_one_whose_responses_end() {
    let mut script = Script::new("a b", settings());
    script.happens("start");
    script.happens("b is lost: 404");
    script.happens("a plays");
    for _ in 0..9 {
        script.happens("after 6 s");
        assert_eq!(script.happens("a is lost: reset"), "release, ask a b");
        script.happens("a plays");
    }
}

#[test]
fn the_end_of_a_response_during_another_attempt_leaves_that_attempt_and_no_mark() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("after 6 s", "nothing"),
            ("a is silent", "ask b beside"),
            ("a is lost: reset", "release, abandon, ask a b"),
            ("a plays", "a is back"),
            ("after 6 s", "nothing"),
            ("a is silent", "ask b beside"),
            ("b is granted", "open b"),
            ("a is lost: reset", "release"),
            ("new b is lost: 404", "ask a"),
            ("a plays", "a is back"),
        ],
    );
}

#[test]
fn a_noted_switch_comes_before_the_stream_whose_response_ended() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("switch to b", "noted b"),
            ("a plays", "started with a, ask b to switch"),
            ("b is lost: 404", "switch to b failed, a plays"),
            ("the plan is b", "nothing"),
            ("after 6 s", "nothing"),
            ("a is lost: reset", "release, ask b"),
        ],
    );
}

#[test]
fn a_spent_token_comes_back_after_ten_minutes_of_play_and_no_earlier() {
    let lines = |play, then| {
        [
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is lost: reset", "release, ask a b"),
            ("a plays", "a is back"),
            ("a is lost: reset", "release, ask a b"),
            ("a plays", "a is back"),
            (play, "nothing"),
            ("a is lost: reset", then),
        ]
    };
    check("a b", &lines("after 599 s", "release, ask b a"));
    check("a b", &lines("after 600 s", "release, ask a b"));
}

#[test]
fn tokens_are_not_saved_up_beyond_two() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("after 100 h", "nothing"),
            ("a is lost: reset", "release, ask a b"),
            ("a plays", "a is back"),
            ("a is lost: reset", "release, ask a b"),
            ("a plays", "a is back"),
            ("a is lost: reset", "release, ask b"),
        ],
    );
}

#[test]
fn the_play_of_one_candidate_earns_no_tokens_for_another() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is lost: reset", "release, ask a b"),
            ("a plays", "a is back"),
            ("a is lost: reset", "release, ask a b"),
            ("a plays", "a is back"),
            ("a is lost: reset", "release, ask b"),
            ("b plays", "failed over from a to b"),
            ("after 24 h", "nothing"),
            ("b is lost: 404", "release, ask a"),
            ("a plays", "failed over from b to a"),
            ("a is lost: reset", "release, back off 1s"),
        ],
    );
}

#[test]
fn a_failure_that_a_retry_cannot_help_is_not_retried() {
    check(
        "a b",
        &[("start", "ask a b"), ("a plays", "started with a"), ("a is lost: 404", "release, ask b")],
    );
}

#[test]
fn a_refused_retry_is_not_retried() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is lost: reset", "release, ask a b"),
            ("a is lost: refused", "ask b"),
            ("b plays", "failed over from a to b"),
        ],
    );
}

#[test]
fn a_retry_requests_the_other_candidates_too_in_case_its_slot_is_lost() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is lost: reset", "release, ask a b"),
            ("b plays", "failed over from a to b"),
        ],
    );
}

#[test]
fn a_provider_that_still_counts_a_closed_connection_is_asked_again_before_the_candidate_counts_as_failed() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is lost: 403 too soon", "nothing"),
            ("time passes", "after 500ms: ask a b"),
            ("a is lost: 403 too soon", "nothing"),
            ("time passes", "after 1s: ask a b"),
            ("a is lost: 403 too soon", "nothing"),
            ("time passes", "after 2s: ask a b"),
            ("a is lost: 403 too soon", "ask b"),
            ("b plays", "started with b"),
        ],
    );
}

#[test]
fn waiting_for_such_a_provider_costs_no_token() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is lost: reset", "release, ask a b"),
            ("a is lost: 403 too soon", "nothing"),
            ("time passes", "after 500ms: ask a b"),
            ("a plays", "a is back"),
            ("a is lost: reset", "release, ask a b"),
            ("a plays", "a is back"),
            ("a is lost: reset", "release, ask b"),
        ],
    );
}

#[test]
fn each_candidate_has_its_own_pauses() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is lost: 403 too soon", "nothing"),
            ("time passes", "after 500ms: ask a b"),
            ("b is lost: 403 too soon", "nothing"),
            ("time passes", "after 500ms: ask b a"),
            ("a is lost: 403 too soon", "nothing"),
            ("time passes", "after 1s: ask a b"),
        ],
    );
}

#[test]
fn a_provider_that_only_needs_time_does_not_end_a_cold_start() {
    check(
        "a",
        &[
            ("start", "ask a"),
            ("a is lost: 403 too soon", "nothing"),
            ("time passes", "after 500ms: ask a"),
            ("a is lost: 403 too soon", "nothing"),
            ("time passes", "after 1s: ask a"),
            ("a is lost: 403 too soon", "nothing"),
            ("time passes", "after 2s: ask a"),
            ("a is lost: 403 too soon", "back off 250ms"),
            ("time passes", "after 250ms: ask a"),
            ("a plays", "started with a"),
        ],
    );
}

/// Other connections of the account are open and stay open.
#[test]
fn a_refusal_beside_other_connections_is_retried_before_it_ends_a_cold_start() {
    check(
        "a",
        &[
            ("start", "ask a"),
            ("a is lost: 403 beside others", "nothing"),
            ("time passes", "after 500ms: ask a"),
            ("a is lost: 403 beside others", "nothing"),
            ("time passes", "after 1s: ask a"),
            ("a is lost: 403 beside others", "nothing"),
            ("time passes", "after 2s: ask a"),
            ("a is lost: 403 beside others", "give up: nothing plays"),
        ],
    );
}

#[test]
fn no_input_shortens_the_pause_before_a_provider_is_asked_again() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is lost: 403 too soon", "nothing"),
            ("start", "nothing"),
            ("tick", "nothing"),
            ("old a is granted", "abandon"),
            ("after 0.4 s", "nothing"),
            ("yield", "nothing"),
        ],
    );
}
