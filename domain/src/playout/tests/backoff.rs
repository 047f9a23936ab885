//! Backoffs between rounds, and giving up. The channel never retries in a busy loop.

use std::time::Duration;

use super::script::{Script, check, check_with, failure, settings};
use crate::playout::{Action, AttemptStep, Input, PlayoutChange, PlayoutSettings, PlayoutState};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn patient() -> PlayoutSettings {
    PlayoutSettings { give_up_after: DAY, ..settings() }
}

#[test]
fn after_the_last_candidate_the_channel_backs_off_and_starts_over() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is lost: 404", "release, ask b"),
            ("b is lost: 404", "back off 1s"),
            ("time passes", "after 1s: ask a b"),
            ("a is lost: 404", "ask b"),
            ("b plays", "failed over from a to b"),
        ],
    );
}

#[test]
fn backoffs_grow_to_fifteen_seconds() {
    let mut script = Script::new("a b", patient());
    script.happens("start");
    script.happens("a plays");
    script.happens("a is lost: 404");
    for pause in ["1s", "2s", "4s", "8s", "15s", "15s"] {
        assert_eq!(script.happens("b is lost: 404"), format!("back off {pause}"));
        assert_eq!(script.happens("time passes"), format!("after {pause}: ask a b"));
        assert_eq!(script.happens("a is lost: 404"), "ask b");
    }
}

#[test]
fn a_channel_with_one_stream_backs_off_between_a_quarter_of_a_second_and_ten_seconds() {
    let mut script = Script::new("a1 a2", patient());
    script.happens("start");
    script.happens("a1 plays");
    script.happens("a1 is lost: 404");
    for pause in ["250ms", "500ms", "1s", "2s", "4s", "8s", "10s", "10s"] {
        assert_eq!(script.happens("a2 is lost: 404"), format!("back off {pause}"));
        assert_eq!(script.happens("time passes"), format!("after {pause}: ask a1 a2"));
        assert_eq!(script.happens("a1 is lost: 404"), "ask a2");
    }
}

#[test]
fn backoffs_have_a_jitter_of_one_fifth() {
    let mut seen = Vec::new();
    for seed in 0..200 {
        let candidates = Script::new("a b", settings()).playout.candidates().collect();
        let mut script = Script::new("a b", settings());
        script.playout = crate::playout::Playout::new(candidates, PlayoutSettings::default(), seed);
        script.happens("start");
        script.happens("a plays");
        script.happens("a is lost: 404");
        script.happens("b is lost: 404");
        let PlayoutState::Backoff { until } = script.playout.state() else { panic!("not resting") };
        seen.push((*until - script.now).as_secs_f64());
    }
    seen.sort_by(f64::total_cmp);
    let (shortest, longest) = (seen[0], seen[seen.len() - 1]);
    assert!((0.8..0.83).contains(&shortest) && (1.17..=1.2).contains(&longest), "{shortest} to {longest}");
}

#[test]
fn half_a_minute_of_play_ends_the_incident_and_less_does_not() {
    let lines = |play, then| {
        [
            ("start", "ask a"),
            ("a plays", "started with a"),
            ("a is lost: 404", "release, back off 250ms"),
            ("time passes", "after 250ms: ask a"),
            ("a is lost: 404", "back off 500ms"),
            ("time passes", "after 500ms: ask a"),
            ("a plays", "a is back"),
            (play, "nothing"),
            ("a is lost: 404", then),
        ]
    };
    check("a", &lines("after 29 s", "release, back off 1s"));
    check("a", &lines("after 30 s", "release, back off 250ms"));
}

#[test]
fn candidates_that_play_only_briefly_do_not_alternate_for_ever() {
    // Because of silence a stream is opened again at most every 15 s.
    for (why, second_pause) in [("stall", "15s"), ("timeout", "2s")] {
        let (a_is_lost, b_is_lost) = (format!("a is lost: {why}"), format!("b is lost: {why}"));
        check(
            "a b",
            &[
                ("start", "ask a b"),
                ("a plays", "started with a"),
                (&a_is_lost, "release, ask b"),
                ("b plays", "failed over from a to b"),
                (&b_is_lost, "release, back off 1s"),
                ("time passes", "after 1s: ask a b"),
                ("a plays", "failed over from b to a"),
                (&a_is_lost, "release, ask b"),
                ("b plays", "failed over from a to b"),
                (&b_is_lost, &format!("release, back off {second_pause}")),
            ],
        );
    }
}

#[test]
fn when_no_slot_is_free_in_a_gap_the_channel_backs_off() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("a is lost: 404", "release, ask b"),
            ("full", "back off 1s"),
            ("time passes", "after 1s: ask b a"),
            ("full", "back off 2s"),
            ("time passes", "after 2s: ask b a"),
            ("a plays", "a is back"),
        ],
    );
}

#[test]
fn a_channel_gives_up_after_a_minute_without_a_packet() {
    check(
        "a b",
        &[
            ("start", "ask a b"),
            ("a plays", "started with a"),
            ("after 5 min", "nothing"),
            ("a is lost: 404", "release, ask b"),
            ("full", "back off 1s"),
            ("time passes", "after 1s: ask b a"),
            ("full", "back off 2s"),
            ("time passes", "after 2s: ask b a"),
            ("full", "back off 4s"),
            ("time passes", "after 4s: ask b a"),
            ("full", "back off 8s"),
            ("time passes", "after 8s: ask b a"),
            ("full", "back off 15s"),
            ("time passes", "after 15s: ask b a"),
            ("full", "back off 15s"),
            ("time passes", "after 15s: ask b a"),
            ("full", "back off 15s"),
            ("time passes", "after 15s: give up: silent"),
            ("start", "nothing"),
        ],
    );
}

#[test]
fn the_time_to_give_up_counts_from_the_last_packet() {
    let short = PlayoutSettings { give_up_after: Duration::from_secs(10), ..settings() };
    check_with(
        "a",
        short,
        &[
            ("start", "ask a"),
            ("a plays", "started with a"),
            ("a is lost: reset", "release, ask a"),
            ("after 4 s", "nothing"),
            ("a plays", "a is back"),
            ("a is lost: 404", "release, back off 250ms"),
            ("time passes", "after 250ms: ask a"),
            // It has what is left of that time.
            ("a is granted", "open a within 9.75s once connected"),
            ("time passes", "after 9.75s: abandon, give up: silent"),
        ],
    );
}

/// Grants every request, and then answers with `answer`. Returns the number of requests, the number of openings, and
/// the most requests within ten seconds.
fn one_hour(candidates: &str, settings: PlayoutSettings, answer: &str) -> (usize, usize, usize) {
    let mut script = Script::new(candidates, settings);
    let (begin, hour) = (script.now, Duration::from_secs(3600));
    let (mut asked, mut n_opened) = (Vec::new(), 0);
    let mut inputs = vec![Input::Start];
    while script.now < begin + hour {
        let actions = match inputs.pop() {
            Some(input) => script.playout.on(input, script.now),
            None => match script.playout.deadline() {
                Some(deadline) => {
                    script.now = deadline.max(script.now);
                    script.playout.on(Input::Tick, script.now)
                }
                None => break,
            },
        };
        for action in actions {
            match action {
                Action::Ask { attempt, order, .. } => {
                    asked.push(script.now);
                    inputs.push(match answer {
                        "full" => Input::Full { attempt },
                        _ => Input::Granted { attempt, index: order[0] },
                    });
                }
                Action::Open { attempt, .. } => {
                    n_opened += 1;
                    inputs.push(match answer {
                        "plays for a moment" => Input::Opened { attempt },
                        _ => Input::Lost { attempt, failure: failure(answer) },
                    });
                }
                Action::Follow { attempt } => {
                    inputs.push(Input::Lost { attempt, failure: failure("reset") });
                    inputs.push(Input::Playing { attempt });
                }
                _ => {}
            }
        }
    }
    let within_ten_seconds = |from: usize| {
        asked[from..].iter().take_while(|it| **it < asked[from] + Duration::from_secs(10)).count()
    };
    let most = (0..asked.len()).map(within_ten_seconds).max().unwrap_or(0);
    (asked.len(), n_opened, most)
}

// Holds T-fo.5, its half about requests to the provider: few at once, and fewer as time goes on.
#[test]
fn an_hour_of_failures_causes_few_requests() {
    // A fast provider that refuses everything: one pass and its retries at once, then a round every 10 or 15 s.
    for (candidates, answer, hourly, in_ten_seconds) in [
        ("a", "refused", 370, 9),
        ("a", "503", 370, 9),
        ("a", "plays for a moment", 370, 9),
        ("a b c", "refused", 3 * 250, 18),
        ("a b c", "plays for a moment", 3 * 250, 20),
        ("a1 a2 b1 b2", "503", 4 * 250, 24),
    ] {
        let (n_asked, n_opened, most) = one_hour(candidates, patient(), answer);
        assert!(n_opened > 100, "{candidates}, {answer}: it kept trying");
        assert!(
            n_asked <= hourly && n_opened <= hourly,
            "{candidates}, {answer}: {n_asked} requests in an hour"
        );
        assert!(most <= in_ten_seconds, "{candidates}, {answer}: {most} requests in ten seconds");
    }
}

#[test]
fn with_default_settings_a_dead_provider_gets_a_few_requests_and_then_none() {
    let (_, n_opened, _) = one_hour("a", settings(), "refused");
    assert!((5..=16).contains(&n_opened), "{n_opened}");
    let (_, n_opened, _) = one_hour("a b c", settings(), "refused");
    assert!((5..=30).contains(&n_opened), "{n_opened}");
    // The channel does not wait when waiting cannot help.
    assert_eq!(one_hour("a b c", settings(), "404"), (3, 3, 3));
    assert_eq!(one_hour("a b c", settings(), "full"), (1, 0, 1));
}

#[test]
fn a_backoff_is_reported_with_its_end() {
    let mut script = Script::new("a b", settings());
    for line in ["start", "a plays", "a is lost: 404", "b is granted"] {
        script.happens(line);
    }
    let PlayoutState::Opening(opening) = script.playout.state() else { panic!("not opening") };
    assert!(matches!(opening.step, AttemptStep::Dialling { index: 1, .. }));
    let lost = Input::Lost { attempt: opening.attempt, failure: failure("404") };
    let until = script.now + Duration::from_secs(1);
    assert_eq!(script.playout.on(lost, script.now), [Action::Changed(PlayoutChange::BackingOff { until })]);
    assert_eq!(script.playout.deadline(), Some(until));
}
