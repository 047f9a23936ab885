//! Cold starts, and how they end when nothing plays.

use super::script::{check, check_with, settings};
use crate::playout::PlayoutSettings;

#[test]
fn a_start_requests_a_slot_then_opens_then_follows() {
    check(
        "a",
        &[
            ("start", "ask a"),
            ("a is granted", "open a within 15s"),
            ("a opens", "follow a"),
            ("a plays", "started with a"),
            ("after 1 h", "nothing"),
        ],
    );
}

#[test]
fn a_second_viewer_starts_nothing() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("start", "nothing"),
            ("a is lost: refused", "ask a b"),
            ("a plays", "started with a"),
            ("start", "nothing"),
        ],
    );
}

#[test]
fn a_channel_without_candidates_gives_up() {
    check("", &[("start", "give up: no streams"), ("start", "nothing")]);
}

#[test]
fn when_every_slot_is_taken_the_viewer_is_refused_at_once() {
    check("a b", &[("start", "ask a b"), ("full", "give up: no slot")]);
}

#[test]
fn when_the_next_candidate_has_no_slot_the_viewer_is_refused_too() {
    check("a b", &[("start", "ask a b"), ("a is lost: 404", "ask b"), ("full", "give up: no slot")]);
}

/// The first candidate may play at its next attempt.
#[test]
fn a_full_account_does_not_end_a_start_in_which_another_candidate_timed_out() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is lost: timeout", "ask b"),
            ("full", "back off 1s"),
            ("time passes", "after 1s: ask b a"),
            ("a plays", "started with a"),
        ],
    );
}

// Holds T-fo.5: the viewer is refused as soon as it is known that waiting cannot help.
#[test]
fn when_every_candidate_fails_permanently_the_channel_gives_up_at_once() {
    check("a", &[("start", "ask a"), ("a is lost: 404", "give up: nothing plays")]);
    check(
        "a1 a2 b1",
        &[
            ("start", "ask a1 a2 b1"),
            ("a1 is lost: 404", "ask b1 a2"),
            ("b1 is lost: 403", "ask a2"),
            ("a2 is lost: 404", "give up: nothing plays"),
        ],
    );
}

#[test]
fn when_the_only_candidate_times_out_the_channel_backs_off_and_tries_again() {
    for failure in ["timeout", "stall", "429"] {
        check(
            "a",
            &[
                ("start", "ask a"),
                (&format!("a is lost: {failure}"), "back off 250ms"),
                ("time passes", "after 250ms: ask a"),
                ("a plays", "started with a"),
            ],
        );
    }
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is lost: timeout", "ask b"),
            ("b is lost: 404", "back off 1s"),
            ("time passes", "after 1s: ask a b"),
        ],
    );
}

#[test]
fn the_last_untried_candidate_of_a_start_gets_what_is_left_of_the_start_time() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is granted", "open a"),
            ("after 4 s", "nothing"),
            ("a is lost: timeout", "ask b"),
            ("b is granted", "open b within 11s"),
            ("after 9 s", "nothing"),
            ("b opens", "follow b"),
            // The source may also take the rest of the time until its first chunk, but no less than usual.
            ("time passes", "after 4s: release, back off 1s"),
        ],
    );
    check(
        "a",
        &[("start", "ask a"), ("a opens", "follow a"), ("time passes", "after 15s: release, back off 250ms")],
    );
    // The opener reports its own time-out first, because it knows the cause.
    check(
        "a",
        &[
            ("start", "ask a"),
            ("a is granted", "open a within 15s"),
            ("time passes", "after 17s: abandon, back off 250ms"),
            ("time passes", "after 250ms: ask a"),
            ("a is granted", "open a"),
            ("time passes", "after 6s: abandon, back off 500ms"),
        ],
    );
}

#[test]
fn a_new_round_and_a_retry_leave_the_last_candidate_what_is_left() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is lost: timeout", "ask b"),
            ("b is granted", "open b within 15s"),
            ("after 3 s", "nothing"),
            ("b is lost: refused", "ask b"),
            ("b is granted", "open b within 12s"),
            ("b is lost: refused", "back off 1s"),
            ("time passes", "after 1s: ask a b"),
            ("b is granted", "open b"),
            ("b is lost: timeout", "ask a"),
            ("a is granted", "open a within 11s"),
        ],
    );
}

#[test]
fn after_the_first_play_every_attempt_has_its_usual_time_while_others_are_untried() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("after 6 s", "nothing"),
            ("a is lost: reset", "release, ask a b"),
            ("a is granted", "open a"),
            ("time passes", "after 6s: abandon, ask b"),
        ],
    );
    // A start after a yield is a start again.
    check(
        "a",
        &[
            ("start", "ask a"),
            ("a plays", "started with a"),
            ("yield", "release"),
            ("after 60 s", "nothing"),
            ("start", "ask a"),
            ("a is granted", "open a within 15s"),
        ],
    );
}

#[test]
fn the_only_stream_has_the_patience_of_the_start_after_a_drop() {
    // Not for connecting: a host that is down is asked again soon.
    check(
        "a",
        &[
            ("start", "ask a"),
            ("a plays", "started with a"),
            ("a is lost: stall", "release, back off 250ms"),
            ("time passes", "after 250ms: ask a"),
            ("a is granted", "open a within 15s once connected"),
            ("after 14.9 s", "nothing"),
            ("a opens", "follow a"),
            // The pump has its usual time, in which a picture without sound may wait for its key frame.
            ("time passes", "after 15s: release, back off 500ms"),
            ("time passes", "after 500ms: ask a"),
            ("a is granted", "open a within 15s once connected"),
            ("time passes", "after 17s: abandon, back off 1s"),
            ("time passes", "after 1s: ask a"),
            // What is left until the channel gives up.
            ("after 10 s", "abandon, back off 2s, ask a"),
        ],
    );
}

#[test]
fn a_stream_whose_others_failed_lately_has_the_patience_of_the_start_after_a_drop() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("after 10 s", "nothing"),
            ("a is lost: reset", "release, ask a b"),
            ("a is granted", "open a"),
            ("after 4 s", "nothing"),
            ("a is lost: timeout", "ask b"),
            ("b is lost: 404", "back off 1s"),
            ("time passes", "after 1s: ask a b"),
            ("a is granted", "open a within 15s once connected"),
            ("after 6 s", "nothing"),
            ("a plays", "a is back"),
            ("after 10 s", "nothing"),
            ("a is lost: reset", "release, ask a b"),
            ("a is granted", "open a within 15s once connected"),
            // A new stream could use the time.
            ("the plan is a b c", "nothing"),
            ("time passes", "after 6s: abandon, ask c b"),
        ],
    );
}

#[test]
fn when_a_candidate_may_recover_the_channel_backs_off_and_tries_again() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is lost: refused", "ask a b"),
            ("a is lost: refused", "ask b"),
            ("b is lost: 404", "back off 1s"),
            ("time passes", "after 1s: ask a b"),
            ("a plays", "started with a"),
        ],
    );
}

#[test]
fn each_round_decides_anew_whether_waiting_can_help() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is lost: refused", "ask a b"),
            ("a is lost: refused", "ask b"),
            ("b is lost: 404", "back off 1s"),
            ("time passes", "after 1s: ask a b"),
            ("a is lost: 404", "ask b"),
            ("b is lost: 404", "give up: nothing plays"),
        ],
    );
}

#[test]
fn a_start_that_never_plays_gives_up_in_time() {
    let settings = PlayoutSettings { give_up_after: std::time::Duration::from_secs(3), ..settings() };
    check_with(
        "a b",
        settings,
        &[
            ("start", "ask a b"),
            ("a is lost: refused", "ask a b"),
            ("a is lost: refused", "ask b"),
            ("b is granted", "open b within 15s"),
            ("time passes", "after 3s: abandon, give up: nothing plays"),
        ],
    );
}

#[test]
fn after_a_yield_a_start_begins_with_the_first_candidate() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("b plays", "started with b"),
            ("yield", "release"),
            ("start", "ask a b"),
            ("a plays", "started with a"),
        ],
    );
}

#[test]
fn a_redirect_as_first_candidate_answers_the_viewer_and_starts_nothing() {
    check("a> b", &[("start", "redirect to a"), ("start", "redirect to a"), ("after 1 h", "nothing")]);
}

#[test]
fn a_redirect_after_a_playing_candidate_is_not_used() {
    check("a b> c", &[("start", "ask a"), ("a plays", "started with a")]);
}

#[test]
fn a_redirect_is_used_when_the_candidates_before_it_are_full() {
    check("a b> c", &[("start", "ask a"), ("full", "redirect to b"), ("start", "ask a")]);
}

#[test]
fn a_redirect_is_used_when_the_candidates_before_it_failed_lately() {
    check(
        "a b>",
        &[
            ("start", "ask a"),
            ("a is lost: refused", "ask a"),
            ("a is lost: refused", "back off 250ms"),
            ("yield", "nothing"),
            ("start", "redirect to b"),
            ("after 60 s", "nothing"),
            ("start", "ask a"),
        ],
    );
}

#[test]
fn a_candidate_that_is_added_during_a_start_does_not_wait_for_the_extended_time_of_the_last_one() {
    check(
        "a",
        &[
            ("start", "ask a"),
            ("a is granted", "open a within 15s"),
            ("the plan is a b", "nothing"),
            ("time passes", "after 6s: abandon, ask b"),
        ],
    );
}

#[test]
fn a_failover_never_becomes_a_redirect() {
    check(
        "a b> c",
        &[
            ("start", "ask a"),
            ("a is lost: 404", "ask c"),
            ("c plays", "started with c"),
            ("c is lost: 404", "release, back off 1s"),
            ("time passes", "after 1s: ask a c"),
        ],
    );
    // Not even as a last resort: the waiting client was told to wait.
    check("a b>", &[("start", "ask a"), ("a is lost: 404", "give up: nothing plays")]);
    check("a b>", &[("start", "ask a"), ("a is lost: refused", "ask a"), ("full", "give up: no slot")]);
}
