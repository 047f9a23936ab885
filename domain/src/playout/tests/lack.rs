//! A source that plays and lacks its picture, its sound or the motion of its picture.

use super::script::{Script, check, settings};

#[test]
fn a_source_that_lacks_a_part_is_replaced_by_one_that_has_shown_it() {
    for part in ["picture", "sound"] {
        let lacks = format!("a lacks its {part}");
        let left = format!("a is left without {part}, follow b");
        let mut script = Script::new("a b c", settings());
        script.happens("start");
        script.happens("a plays");
        assert_eq!(script.happens(&lacks), "ask b c beside");
        assert_eq!(script.playout.state_name(), "playing");
        assert_eq!(script.happens("b opens"), "prepare b");
        assert_eq!(script.happens("b is ready"), left);
        assert_eq!(script.happens("b plays"), "failed over from a to b");
        // It has not failed.
        assert_eq!(script.happens("b is lost: timeout"), "release, ask c a");
    }
}

#[test]
fn a_part_that_comes_again_ends_the_attempt_at_any_step() {
    for steps in [&[][..], &["b is granted"], &["b opens"]] {
        let mut script = Script::new("a b", settings());
        script.happens("start");
        script.happens("a plays");
        assert_eq!(script.happens("a lacks its picture"), "ask b beside");
        for step in steps {
            script.happens(step);
        }
        assert_eq!(script.happens("a has its picture again"), "abandon", "{steps:?}");
        // The source did not change.
        assert_eq!(script.happens("a lacks its picture"), "ask b beside", "{steps:?}");
    }
}

#[test]
fn without_a_second_slot_the_source_is_released_first_and_is_the_last_to_be_asked_again() {
    check(
        "a1 b1",
        &[
            ("start", "ask a1 b1"),
            ("a1 plays", "started with a1"),
            ("a1 lacks its picture", "ask b1 beside"),
            ("full", "a1 is left without picture, release, ask b1 a1"),
            ("b1 plays", "failed over from a1 to b1"),
        ],
    );
    // The other one does not open: this one returns, and stays.
    check(
        "a1 b1",
        &[
            ("start", "ask a1 b1"),
            ("a1 plays", "started with a1"),
            ("a1 lacks its picture", "ask b1 beside"),
            ("full", "a1 is left without picture, release, ask b1 a1"),
            ("b1 is lost: 404", "ask a1"),
            ("a1 plays", "a1 is back"),
            ("a1 lacks its picture", "a1 plays without picture"),
            // The other one may play again.
            ("time passes", "after 600s: ask b1 beside"),
        ],
    );
}

#[test]
fn a_slot_of_another_account_is_requested_as_an_ordinary_one() {
    check(
        "a1 b2",
        &[
            ("start", "ask a1 b2"),
            ("a1 plays", "started with a1"),
            ("a1 lacks its sound", "ask b2 beside"),
            ("full", "ask b2"),
            ("full", "a1 plays without sound"),
        ],
    );
    check(
        "a1 b2",
        &[
            ("start", "ask a1 b2"),
            ("a1 plays", "started with a1"),
            ("a1 lacks its sound", "ask b2 beside"),
            ("full", "ask b2"),
            ("b2 opens", "prepare b2"),
            ("b2 is ready", "a1 is left without sound, follow b2"),
            ("b2 plays", "failed over from a1 to b2"),
        ],
    );
}

#[test]
fn a_source_that_no_other_one_can_replace_plays_as_it_is() {
    for candidates in ["a", "a1 a2", "a b>"] {
        let mut script = Script::new(candidates, settings());
        script.happens("start");
        let first = script.name(0);
        script.happens(&format!("{first} plays"));
        let stays = format!("{first} plays without picture");
        assert_eq!(script.happens(&format!("{first} lacks its picture")), stays, "{candidates}");
        assert_eq!(script.happens("after 1 h"), "nothing", "{candidates}");
    }
    // Every other one has failed, or was not ready in time because it lacks the same.
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("a lacks its picture", "ask b c beside"),
            ("b is lost: 404", "ask c beside"),
            ("c opens", "prepare c"),
            ("time passes", "after 16s: abandon, a plays without picture"),
            ("time passes", "after 600s: ask b c beside"),
            ("a has its picture again", "abandon"),
            ("after 1 h", "nothing"),
        ],
    );
}

// Holds T-fo.9.
#[test]
fn if_all_lack_the_picture_the_first_with_sound_stays() {
    // With a second slot nothing is left, because no other one shows a picture.
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a lacks its picture", "ask b beside"),
            ("b opens", "prepare b"),
            ("time passes", "after 16s: abandon, a plays without picture"),
            ("after 599 s", "nothing"),
        ],
    );
    // Without one, the others are tried once.
    check(
        "a1 b1 c1",
        &[
            ("start", "ask a1 b1 c1"),
            ("a1 plays", "started with a1"),
            ("a1 lacks its picture", "ask b1 c1 beside"),
            ("full", "a1 is left without picture, release, ask b1 c1 a1"),
            ("b1 plays", "failed over from a1 to b1"),
            ("b1 lacks its picture", "ask c1 beside"),
            ("full", "b1 is left without picture, release, ask c1 b1"),
            ("c1 plays", "failed over from b1 to c1"),
            ("c1 lacks its picture", "c1 plays without picture"),
            // It has no sound either, and the first one had.
            ("c1 lacks its sound", "ask a1 b1 beside"),
            ("full", "c1 is left without sound, release, ask a1 b1 c1"),
            ("a1 plays", "failed over from c1 to a1"),
            ("a1 lacks its picture", "a1 plays without picture"),
            ("after 1 h", "nothing"),
        ],
    );
}

#[test]
fn sound_is_not_left_for_a_source_without_picture_and_the_reverse() {
    for (part, other) in [("picture", "sound"), ("sound", "picture")] {
        check(
            "a1 b1",
            &[
                ("start", "ask a1 b1"),
                ("a1 plays", "started with a1"),
                (&format!("a1 lacks its {part}"), "ask b1 beside"),
                ("full", &format!("a1 is left without {part}, release, ask b1 a1")),
                ("b1 plays", "failed over from a1 to b1"),
                (&format!("b1 lacks its {other}"), &format!("b1 plays without {other}")),
                ("after 1 h", "nothing"),
            ],
        );
    }
}

#[test]
fn a_stream_is_left_for_a_part_once_in_ten_minutes() {
    let again = |time, then| {
        [
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a lacks its picture", "ask b beside"),
            ("b opens", "prepare b"),
            ("b is ready", "a is left without picture, follow b"),
            ("b plays", "failed over from a to b"),
            ("b is lost: 404", "release, ask a"),
            ("a plays", "failed over from b to a"),
            (time, "nothing"),
            ("a lacks its picture", then),
        ]
    };
    check("a b", &again("after 599 s", "a plays without picture"));
    check("a b", &again("after 601 s", "ask b beside"));
}

#[test]
fn streams_that_lacked_the_same_the_last_time_are_not_tried() {
    check(
        "a b c",
        &[
            ("start", "ask a b c"),
            ("a plays", "started with a"),
            ("a lacks its picture as once did a b", "ask c beside"),
            ("c is lost: 404", "a plays without picture"),
        ],
    );
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a lacks its picture as once did b", "a plays without picture"),
        ],
    );
}

#[test]
fn a_lack_is_considered_after_a_silence_and_after_a_switch_that_failed() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is silent", "ask b beside"),
            ("a lacks its picture", "nothing"),
            ("a sends again", "abandon, ask b beside"),
            ("switch to b", "abandon, ask b to switch"),
            ("b is lost: 404", "switch to b failed, a plays, a plays without picture"),
        ],
    );
}

#[test]
fn a_source_that_is_lost_meanwhile_is_followed_by_the_one_that_was_opened() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a lacks its picture", "ask b beside"),
            ("b opens", "prepare b"),
            ("a is lost: 404", "follow b"),
            ("b plays", "failed over from a to b"),
        ],
    );
}

#[test]
fn a_preferred_stream_is_returned_to_ten_minutes_after_it_was_left_for_what_it_lacked() {
    let settings = crate::playout::PlayoutSettings {
        return_to_preferred_after: Some(std::time::Duration::from_secs(60)),
        ..settings()
    };
    super::script::check_with(
        "a b",
        settings,
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a lacks its picture", "ask b beside"),
            ("b opens", "prepare b"),
            ("b is ready", "a is left without picture, follow b"),
            ("b plays", "failed over from a to b"),
            ("time passes", "after 600s: ask a to switch"),
        ],
    );
}

#[test]
fn a_still_picture_changes_the_source_only_with_the_setting_of_its_stream() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a lacks its motion", "nothing"),
            ("after 1 h", "nothing"),
            ("a lacks its picture", "ask b beside"),
        ],
    );
    check(
        "a! b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a lacks its motion", "ask b beside"),
            ("b opens", "prepare b"),
            ("b is ready", "a is left without motion, follow b"),
            ("b plays", "failed over from a to b"),
            // The setting is that of the stream.
            ("b lacks its motion", "nothing"),
        ],
    );
    check(
        "a! b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a lacks its motion", "ask b beside"),
            ("b opens", "prepare b"),
            ("a has its motion again", "abandon"),
        ],
    );
}

#[test]
fn if_all_pictures_stand_still_the_first_one_stays() {
    check(
        "a! b!",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a lacks its motion", "ask b beside"),
            ("b opens", "prepare b"),
            // It shows no picture that moves.
            ("time passes", "after 16s: abandon, a plays without motion"),
            ("after 599 s", "nothing"),
        ],
    );
    check(
        "a! b!",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a lacks its motion as once did b", "a plays without motion"),
        ],
    );
    // Without a second slot the others are tried once.
    check(
        "a1! b1!",
        &[
            ("start", "ask a1 b1"),
            ("a1 plays", "started with a1"),
            ("a1 lacks its motion", "ask b1 beside"),
            ("full", "a1 is left without motion, release, ask b1 a1"),
            ("b1 plays", "failed over from a1 to b1"),
            ("b1 lacks its motion", "b1 plays without motion"),
            ("after 1 h", "nothing"),
        ],
    );
}

#[test]
fn a_stream_is_left_for_a_still_picture_once_in_ten_minutes() {
    let again = |time, then| {
        [
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a lacks its motion", "ask b beside"),
            ("b opens", "prepare b"),
            ("b is ready", "a is left without motion, follow b"),
            ("b plays", "failed over from a to b"),
            ("b is lost: 404", "release, ask a"),
            ("a plays", "failed over from b to a"),
            (time, "nothing"),
            ("a lacks its motion", then),
        ]
    };
    check("a! b", &again("after 599 s", "a plays without motion"));
    check("a! b", &again("after 601 s", "ask b beside"));
}

#[test]
fn a_still_picture_is_better_than_none_and_than_no_sound() {
    for part in ["picture", "sound"] {
        check(
            "a! b!",
            &[
                ("start", "ask a b"),
                ("a plays", "started with a"),
                ("a lacks its motion as once did b", "a plays without motion"),
                (&format!("a lacks its {part}"), "ask b beside"),
                ("b opens", "prepare b"),
                ("b is ready", &format!("a is left without {part}, follow b")),
                ("b plays", "failed over from a to b"),
                // The other one has less.
                ("b lacks its motion", "b plays without motion"),
            ],
        );
    }
}

#[test]
fn the_setting_holds_from_the_moment_at_which_it_changes() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a lacks its motion", "nothing"),
            ("the plan is a! b", "ask b beside"),
            ("b opens", "prepare b"),
            ("the plan is a b", "abandon"),
            ("the plan is a! b", "ask b beside"),
        ],
    );
}
