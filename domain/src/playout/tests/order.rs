//! Who is next. Holds T-fo.1 with the tables of `start` and `replan`; which place is full is for Slots to say, and
//! an inactive account never gets into the plan.

use super::script::check;

#[test]
fn the_places_are_asked_for_in_channel_order() {
    check("a b c", &[("start", "ask a b c"), ("a plays", "started with a")]);
}

#[test]
fn the_first_place_with_a_slot_plays() {
    check("a b c", &[("start", "ask a b c"), ("b is granted", "open b"), ("b plays", "started with b")]);
}

#[test]
fn after_a_loss_the_next_in_channel_order_is_asked_for_and_then_around_the_end() {
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("b plays", "started with b"),
            ("b is lost: stall", "let go, ask c a"),
            ("c plays", "failed over from b to c"),
        ],
    );
}

#[test]
fn a_lost_source_is_let_go_before_the_next_is_asked_for() {
    check("a b", &[("start", "ask a b"), ("a plays", "started with a"), ("a is lost: 404", "let go, ask b")]);
}

#[test]
fn several_dead_in_a_row_are_passed_one_by_one() {
    check(
        "a b c d",
        &[
            ("start", "ask a b c d"),
            ("a plays", "started with a"),
            ("a is lost: 404", "let go, ask b c d"),
            ("b is lost: 404", "ask c d"),
            ("c is lost: 404", "ask d"),
            ("d plays", "failed over from a to d"),
        ],
    );
}

#[test]
fn a_round_goes_on_where_the_last_ended_and_does_not_begin_again_at_the_first() {
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("a is lost: 404", "let go, ask b c"),
            ("b plays", "failed over from a to b"),
            ("after 10 min", "nothing"),
            ("b is lost: 404", "let go, ask c a"),
            ("c plays", "failed over from b to c"),
        ],
    );
}

#[test]
fn a_refusal_of_the_account_blames_only_this_profile() {
    check("a1 a2 b1", &[("start", "ask a1 a2 b1"), ("a1 is lost: 403", "ask a2 b1")]);
}

#[test]
fn a_failure_of_the_stream_puts_all_its_profiles_last_but_they_still_have_their_turn() {
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
            ("a1 is lost: stall", "let go, ask a2"),
            ("a2 plays", "failed over from a1 to a2"),
        ],
    );
}

#[test]
fn a_failed_place_is_tried_last_for_a_minute() {
    let until_b_plays: [(&str, &str); 5] = [
        ("start", "ask a b c"),
        ("a is lost: 404", "ask b c"),
        ("b plays", "started with b"),
        ("after 50 s", "nothing"),
        ("yield", "let go"),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&until_b_plays, more].concat();
    check("a b c", &with(&[("start", "ask b c a")]));
    check("a b c", &with(&[("after 9 s", "nothing"), ("start", "ask b c a")]));
    check("a b c", &with(&[("after 10 s", "nothing"), ("start", "ask a b c")]));
}

#[test]
fn a_place_that_plays_again_is_forgiven() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is lost: 404", "ask b"),
            ("b plays", "started with b"),
            ("switch to a", "ask a to switch"),
            ("a plays", "switched from b to a"),
            ("yield", "let go"),
            ("start", "ask a b"),
        ],
    );
}

#[test]
fn the_failure_of_one_stream_says_nothing_of_another_on_the_same_account() {
    check(
        "a1 b1 c1",
        &[
            ("start", "ask a1 b1 c1"),
            ("a1 is lost: 404", "ask b1 c1"),
            ("b1 plays", "started with b1"),
            ("yield", "let go"),
            ("start", "ask b1 c1 a1"),
        ],
    );
}

#[test]
fn the_same_stream_named_twice_is_two_places() {
    check("a a", &[("start", "ask a a"), ("a is lost: 403", "ask a"), ("a plays", "started with a")]);
}
