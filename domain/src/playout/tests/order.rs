//! The order of the candidates. Holds T-fo.1 with the tables of `start` and `replan`; the slots actor decides which
//! candidate is full, and inactive accounts never get into the plan.

use super::script::check;

#[test]
fn candidates_are_requested_in_channel_order() {
    check("a b c", &[("start", "ask a b c"), ("a plays", "started with a")]);
}

#[test]
fn the_first_candidate_with_a_slot_plays() {
    check("a b c", &[("start", "ask a b c"), ("b is granted", "open b"), ("b plays", "started with b")]);
}

#[test]
fn after_a_loss_the_order_continues_with_the_next_candidate_and_wraps_around() {
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("b plays", "started with b"),
            ("b is lost: stall", "release, ask c a"),
            ("c plays", "failed over from b to c"),
        ],
    );
}

#[test]
fn a_lost_source_is_released_before_the_next_is_requested() {
    check(
        "a b",
        &[("start", "ask a b"), ("a plays", "started with a"), ("a is lost: 404", "release, ask b")],
    );
}

#[test]
fn several_dead_candidates_in_a_row_are_skipped_one_by_one() {
    check(
        "a b c d",
        &[
            ("start", "ask a b c d"),
            ("a plays", "started with a"),
            ("a is lost: 404", "release, ask b c d"),
            ("b is lost: 404", "ask c d"),
            ("c is lost: 404", "ask d"),
            ("d plays", "failed over from a to d"),
        ],
    );
}

#[test]
fn a_round_continues_after_the_last_candidate_instead_of_the_first() {
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("a is lost: 404", "release, ask b c"),
            ("b plays", "failed over from a to b"),
            ("after 10 min", "nothing"),
            ("b is lost: 404", "release, ask c a"),
            ("c plays", "failed over from b to c"),
        ],
    );
}

#[test]
fn a_refused_login_affects_only_its_account_profile() {
    check("a1 a2 b1", &[("start", "ask a1 a2 b1"), ("a1 is lost: 403", "ask a2 b1")]);
}

#[test]
fn a_stream_failure_moves_all_profiles_of_the_stream_to_the_end_of_the_order() {
    check(
        "a1 a2 b1",
        &[
            ("start", "ask a1 a2 b1"),
            ("a1 is lost: 404", "ask b1 a2"),
            ("b1 is lost: 404", "ask a2"),
            ("a2 plays", "started with a2"),
        ],
    );
}

#[test]
fn another_profile_of_the_same_account_is_tried_for_the_only_stream() {
    check(
        "a1 a2",
        &[
            ("start", "ask a1 a2"),
            ("a1 plays", "started with a1"),
            ("a1 is lost: stall", "release, ask a2"),
            ("a2 plays", "failed over from a1 to a2"),
        ],
    );
}

#[test]
fn a_failed_candidate_is_tried_last_for_a_minute() {
    let until_b_plays: [(&str, &str); 5] = [
        ("start", "ask a b c"),
        ("a is lost: 404", "ask b c"),
        ("b plays", "started with b"),
        ("after 50 s", "nothing"),
        ("yield", "release"),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&until_b_plays, more].concat();
    check("a b c", &with(&[("start", "ask b c a")]));
    check("a b c", &with(&[("after 9 s", "nothing"), ("start", "ask b c a")]));
    check("a b c", &with(&[("after 10 s", "nothing"), ("start", "ask a b c")]));
}

#[test]
fn a_candidate_that_plays_again_loses_its_failure_mark() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is lost: 404", "ask b"),
            ("b plays", "started with b"),
            ("switch to a", "ask a to switch"),
            ("a plays", "switched from b to a"),
            ("yield", "release"),
            ("start", "ask a b"),
        ],
    );
}

#[test]
fn the_failure_of_one_stream_does_not_affect_another_of_the_same_account() {
    check(
        "a1 b1 c1",
        &[
            ("start", "ask a1 b1 c1"),
            ("a1 is lost: 404", "ask b1 c1"),
            ("b1 plays", "started with b1"),
            ("yield", "release"),
            ("start", "ask b1 c1 a1"),
        ],
    );
}

#[test]
fn a_stream_listed_twice_counts_as_two_candidates() {
    check("a a", &[("start", "ask a a"), ("a is lost: 403", "ask a"), ("a plays", "started with a")]);
}
