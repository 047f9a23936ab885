//! Manual switches, and automatic returns.

use std::time::Duration;

use super::script::{Script, check, check_with, settings};
use crate::playout::PlayoutSettings;

#[test]
fn the_old_source_plays_until_the_output_can_continue_with_the_new_one() {
    let mut script = Script::new("a b c", settings());
    script.happens("start");
    script.happens("a plays");
    assert_eq!(script.happens("switch to c"), "ask c to switch");
    assert_eq!(
        (script.playout.state_name(), script.playout.playing().map(|it| it.1)),
        ("switching", Some(0))
    );
    assert_eq!(script.happens("c is granted"), "open c");
    assert_eq!(script.playout.playing().map(|it| it.1), Some(0));
    assert_eq!(script.happens("c opens"), "prepare c");
    assert_eq!(script.playout.playing().map(|it| it.1), Some(0));
    assert_eq!(script.happens("c is ready"), "follow c");
    assert_eq!(script.playout.playing(), None);
    assert_eq!(script.happens("c plays"), "switched from a to c");
    assert_eq!(script.playout.playing().map(|it| it.1), Some(2));
}

// Holds the pure part of T-fo.6, as do the next three.
#[test]
fn a_switch_that_fails_leaves_the_old_source_playing() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("switch to b", "ask b to switch"),
            ("b is lost: 404", "switch to b failed, a plays"),
            ("after 1 h", "nothing"),
            ("a is lost: 404", "release, ask b"),
        ],
    );
}

#[test]
fn without_a_second_slot_a_switch_releases_the_old_source_first() {
    check(
        "a1 b1",
        &[
            ("start", "ask a1 b1"),
            ("a1 plays", "started with a1"),
            ("switch to b1", "ask b1 to switch"),
            ("full", "release, ask b1 a1 to switch"),
            ("b1 plays", "switched from a1 to b1"),
        ],
    );
}

#[test]
fn a_failed_switch_that_released_the_old_source_returns_to_it() {
    check(
        "a1 b1 c1",
        &[
            ("start", "ask a1 b1 c1"),
            ("b1 plays", "started with b1"),
            ("switch to c1", "ask c1 to switch"),
            ("full", "release, ask c1 b1 to switch"),
            ("c1 is lost: 404", "ask b1 a1"),
            ("b1 plays", "b1 is back, switch to c1 failed, b1 plays"),
        ],
    );
    // Even where a retry of the new source might help, because viewers wait.
    check(
        "a1 b1 c1",
        &[
            ("start", "ask a1 b1 c1"),
            ("b1 plays", "started with b1"),
            ("switch to c1", "ask c1 to switch"),
            ("full", "release, ask c1 b1 to switch"),
            ("c1 is lost: refused", "ask b1 a1"),
        ],
    );
    // Another channel takes the slot first.
    check(
        "a1 b1 c1",
        &[
            ("start", "ask a1 b1 c1"),
            ("b1 plays", "started with b1"),
            ("switch to c1", "ask c1 to switch"),
            ("full", "release, ask c1 b1 to switch"),
            ("b1 plays", "b1 is back, switch to c1 failed, b1 plays"),
        ],
    );
    // Other channels take both slots: from here on it is an ordinary failover.
    check(
        "a1 b1 c2",
        &[
            ("start", "ask a1 b1 c2"),
            ("a1 plays", "started with a1"),
            ("switch to b1", "ask b1 to switch"),
            ("full", "release, ask b1 a1 to switch"),
            ("full", "ask a1 b1 c2"),
            ("c2 plays", "failed over from a1 to c2, switch to b1 failed, c2 plays"),
        ],
    );
}

#[test]
fn the_old_source_is_not_released_when_others_hold_the_slots() {
    check(
        "a1 b2",
        &[
            ("start", "ask a1 b2"),
            ("a1 plays", "started with a1"),
            ("switch to b2", "ask b2 to switch"),
            // An account without a limit refuses only a second connection that is not needed.
            ("full", "ask b2 to switch"),
            ("full", "switch to b2 failed, a1 plays"),
        ],
    );
}

#[test]
fn a_new_source_that_never_becomes_playable_leaves_the_old_one_playing() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("switch to b", "ask b to switch"),
            ("b opens", "prepare b"),
            ("new b is lost: stall", "switch to b failed, a plays"),
        ],
    );
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("switch to b", "ask b to switch"),
            ("b opens", "prepare b"),
            ("time passes", "after 16s: abandon, switch to b failed, a plays"),
        ],
    );
}

#[test]
fn a_new_source_that_was_told_to_play_and_fails_is_replaced_by_the_old_one() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("switch to b", "ask b to switch"),
            ("b opens", "prepare b"),
            ("b is ready", "follow b"),
            ("new b is lost: stall", "release, ask a"),
            ("a plays", "a is back, switch to b failed, a plays"),
        ],
    );
}

#[test]
fn a_source_that_is_lost_while_the_next_one_is_prepared_is_replaced_at_once() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("switch to b", "ask b to switch"),
            ("b opens", "prepare b"),
            ("a is lost: reset", "follow b"),
            ("b plays", "switched from a to b"),
        ],
    );
}

// Holds T-fo.7: losses, judgements and requests meanwhile do not start a second switch.
#[test]
fn nothing_starts_a_second_switch_while_one_runs() {
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("switch to b", "ask b to switch"),
            ("switch to c", "refused: busy"),
            ("b is granted", "open b"),
            ("switch to next", "refused: busy"),
            ("a is lost: stall", "release"),
            ("switch to c", "refused: busy"),
            ("b opens", "follow b"),
            ("switch to c", "refused: busy"),
            ("b plays", "switched from a to b"),
            ("switch to c", "ask c to switch"),
        ],
    );
}

#[test]
fn when_the_old_source_is_lost_during_a_switch_the_new_one_keeps_opening() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("switch to b", "ask b to switch"),
            ("a is lost: reset", "release"),
            ("b plays", "switched from a to b"),
        ],
    );
}

#[test]
fn when_both_sources_are_lost_others_are_tried_and_the_caller_learns_the_result() {
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("switch to b", "ask b to switch"),
            ("b is granted", "open b"),
            ("a is lost: stall", "release"),
            ("b is lost: 404", "ask c"),
            ("c plays", "failed over from a to c, switch to b failed, c plays"),
        ],
    );
    // A source that may be retried has its turn again.
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("switch to b", "ask b to switch"),
            ("b is granted", "open b"),
            ("a is lost: reset", "release"),
            ("b is lost: 404", "ask a c"),
            ("a plays", "a is back, switch to b failed, a plays"),
        ],
    );
}

#[test]
fn when_the_old_source_is_lost_and_the_new_one_has_no_slot_others_are_requested() {
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("switch to b", "ask b to switch"),
            ("a is lost: 404", "release"),
            ("full", "ask b c"),
        ],
    );
}

#[test]
fn the_caller_is_answered_within_twenty_seconds() {
    // While the old source plays, the answer comes with the first deadline of the attempt.
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("switch to b", "ask b to switch"),
            ("time passes", "after 5s: abandon, switch to b failed, a plays"),
        ],
    );
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("switch to b", "ask b to switch"),
            ("b is granted", "open b"),
            ("time passes", "after 6s: abandon, switch to b failed, a plays"),
        ],
    );
    // While nothing plays, the answer is that nothing plays yet. The channel keeps trying.
    let short = PlayoutSettings { switch_timeout: Duration::from_secs(5), ..settings() };
    check_with(
        "a1 b1",
        short,
        &[
            ("start", "ask a1 b1"),
            ("a1 plays", "started with a1"),
            ("switch to b1", "ask b1 to switch"),
            ("after 3 s", "nothing"),
            ("full", "release, ask b1 a1 to switch"),
            ("b1 is granted", "open b1"),
            ("time passes", "after 2s: switch to b1 failed, nothing plays"),
            ("b1 plays", "failed over from a1 to b1"),
        ],
    );
}

#[test]
fn the_caller_gets_an_answer_when_the_channel_ends_first() {
    let short = PlayoutSettings { give_up_after: Duration::from_secs(4), ..settings() };
    check_with(
        "a1 b1",
        short,
        &[
            ("start", "ask a1 b1"),
            ("a1 plays", "started with a1"),
            ("switch to b1", "ask b1 to switch"),
            ("full", "release, ask b1 a1 to switch"),
            ("b1 is granted", "open b1"),
            ("time passes", "after 4s: abandon, switch to b1 failed, nothing plays, give up: silent"),
        ],
    );
}

#[test]
fn a_switch_to_the_playing_stream_opens_it_again() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("switch to a", "ask a to switch"),
            ("a is granted", "open a"),
            ("a opens", "prepare a"),
            ("a plays", "switched from a to a"),
            ("old a is lost: reset", "nothing"),
        ],
    );
    // With one slot the old source is released first.
    check(
        "a",
        &[
            ("start", "ask a"),
            ("a plays", "started with a"),
            ("switch to a", "ask a to switch"),
            ("full", "release, ask a to switch"),
            ("a plays", "switched from a to a"),
        ],
    );
}

#[test]
fn a_switch_to_next_selects_the_next_stream_not_another_profile() {
    check(
        "a1 a2 b1 c1",
        &[
            ("start", "ask a1 a2 b1 c1"),
            ("a1 plays", "started with a1"),
            ("switch to next", "ask b1 c1 to switch"),
            ("b1 plays", "switched from a1 to b1"),
            ("switch to next", "ask c1 a1 a2 to switch"),
            ("c1 is lost: 404", "switch to c1 failed, b1 plays"),
            ("switch to next", "ask a1 a2 c1 to switch"),
            ("a1 plays", "switched from b1 to a1"),
        ],
    );
}

#[test]
fn a_switch_to_next_with_one_stream_opens_it_again() {
    check(
        "a1",
        &[("start", "ask a1"), ("a1 plays", "started with a1"), ("switch to next", "ask a1 to switch")],
    );
}

#[test]
fn a_switch_to_a_stream_accepts_any_of_its_profiles() {
    check(
        "a1 b1 b2",
        &[
            ("start", "ask a1 b1 b2"),
            ("a1 plays", "started with a1"),
            ("switch to b1", "ask b1 b2 to switch"),
            ("b2 plays", "switched from a1 to b2"),
            // But not the playing profile when another one is requested.
            ("switch to b1", "ask b1 to switch"),
            ("b1 plays", "switched from b2 to b1"),
        ],
    );
}

#[test]
fn a_switch_to_an_unknown_candidate_or_a_redirect_is_refused() {
    check(
        "a b>",
        &[
            ("start", "ask a"),
            ("a plays", "started with a"),
            ("switch to nowhere", "refused: no such candidate"),
            ("switch to b", "refused: no such candidate"),
            ("switch to preferred", "ask a to switch"),
        ],
    );
    check("", &[("switch to next", "refused: no such candidate")]);
}

#[test]
fn while_nothing_plays_a_requested_stream_is_tried_first_next() {
    check("a b c", &[("switch to c", "noted c"), ("start", "ask c a b")]);
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("a is lost: 404", "release, ask b c"),
            ("switch to c", "noted c"),
            ("b is lost: 404", "ask c"),
        ],
    );
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("a is lost: 404", "release, ask b c"),
            ("full", "back off 1s"),
            ("switch to c", "noted c"),
            ("time passes", "after 1s: ask c b a"),
        ],
    );
}

#[test]
fn a_requested_stream_comes_before_a_retry() {
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a is granted", "open a"),
            ("switch to c", "noted c"),
            ("a is lost: refused", "ask c b"),
        ],
    );
}

#[test]
fn a_requested_stream_is_switched_to_even_if_another_attempt_plays_first() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is granted", "open a"),
            ("switch to b", "noted b"),
            ("a plays", "started with a, ask b to switch"),
            ("b plays", "switched from a to b"),
        ],
    );
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is granted", "open a"),
            ("switch to a", "noted a"),
            ("a plays", "started with a"),
        ],
    );
}

#[test]
fn a_provider_that_still_counts_the_old_connection_is_asked_again_while_the_switch_runs() {
    check(
        "a1 b1",
        &[
            ("start", "ask a1 b1"),
            ("a1 plays", "started with a1"),
            ("switch to b1", "ask b1 to switch"),
            ("full", "release, ask b1 a1 to switch"),
            ("b1 is lost: 403 too soon", "nothing"),
            ("time passes", "after 500ms: ask b1 to switch"),
            ("b1 plays", "switched from a1 to b1"),
        ],
    );
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("switch to b", "ask b to switch"),
            ("b is lost: 403 too soon", "nothing"),
            ("time passes", "after 500ms: ask b to switch"),
            ("b plays", "switched from a to b"),
        ],
    );
}

fn returning(after: u64) -> PlayoutSettings {
    PlayoutSettings { return_to_preferred_after: Some(Duration::from_secs(after)), ..settings() }
}

#[test]
fn by_default_a_channel_does_not_return_to_a_preferred_stream() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a is lost: 404", "ask b"),
            ("b plays", "started with b"),
            ("after 24 h", "nothing"),
        ],
    );
}

#[test]
fn after_the_configured_play_the_channel_returns_to_the_preferred_stream() {
    check_with(
        "a b c",
        returning(300),
        &[
            ("start", "ask a b c"),
            ("c plays", "started with c"),
            ("time passes", "after 300s: ask a b to switch"),
            ("b plays", "returned from c to b"),
            ("time passes", "after 300s: ask a to switch"),
            ("a plays", "returned from b to a"),
            ("after 24 h", "nothing"),
        ],
    );
}

#[test]
fn a_return_that_fails_or_gets_no_slot_is_not_reported_and_tried_again_later() {
    check_with(
        "a1 b1",
        returning(300),
        &[
            ("start", "ask a1 b1"),
            ("b1 plays", "started with b1"),
            ("time passes", "after 300s: ask a1 to switch"),
            ("full", "nothing"),
            ("time passes", "after 300s: ask a1 to switch"),
            ("a1 is lost: 404", "nothing"),
            ("time passes", "after 300s: ask a1 to switch"),
            ("time passes", "after 5s: abandon"),
        ],
    );
}

#[test]
fn a_return_does_not_hammer_a_stream_that_fails() {
    check_with(
        "a b",
        returning(1),
        &[
            ("start", "ask a b"),
            ("b plays", "started with b"),
            ("time passes", "after 1s: ask a to switch"),
            ("a is lost: 404", "nothing"),
            ("time passes", "after 60s: ask a to switch"),
        ],
    );
}

#[test]
fn a_manual_switch_takes_precedence_over_a_return() {
    check_with(
        "a b c",
        returning(300),
        &[
            ("start", "ask a b c"),
            ("b plays", "started with b"),
            ("time passes", "after 300s: ask a to switch"),
            ("switch to c", "abandon, ask c to switch"),
            ("c plays", "switched from b to c"),
            ("after 24 h", "nothing"),
            ("c is lost: 404", "release, ask a b"),
            ("b plays", "failed over from c to b"),
            ("time passes", "after 300s: ask a to switch"),
        ],
    );
}

#[test]
fn another_profile_of_the_preferred_stream_causes_no_return() {
    check_with(
        "a1 a2",
        returning(300),
        &[("start", "ask a1 a2"), ("a2 plays", "started with a2"), ("after 24 h", "nothing")],
    );
}
