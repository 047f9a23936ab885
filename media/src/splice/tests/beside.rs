//! A source that is gathered beside the one that plays, and takes over.
use proptest::prelude::*;

use super::random::{spec, start};
use super::*;
use crate::splice::Continuation;
use crate::ts::table_reader::TableHints;

/// Time at which the second source connects, while the first one plays.
const CONNECTS_MS: u64 = 6_000;
const END_MS: u64 = 20_000;

/// Plays the first source until the second one is ready and `hop_ms` have passed, then the second one.
fn play_beside(first: &Spec, second: &Spec, burst_ms: u64, hop_ms: u64) -> (Played, Option<Duration>) {
    play_beside_known(first, second, burst_ms, hop_ms, GroupLength::Unknown)
}

/// Does the same with a second source of whose random-access points this is known.
fn play_beside_known(
    first: &Spec,
    second: &Spec,
    burst_ms: u64,
    hop_ms: u64,
    group: GroupLength,
) -> (Played, Option<Duration>) {
    let mut arrivals: Vec<(Duration, bool, PacketBytes)> = Vec::new();
    arrivals.extend(first.arrivals(ms(0), 0, ms(END_MS)).into_iter().map(|it| (it.0, false, it.1)));
    let beside = second.arrivals(ms(CONNECTS_MS), burst_ms, ms(END_MS));
    arrivals.extend(beside.into_iter().map(|it| (it.0, true, it.1)));
    arrivals.sort_by_key(|it| it.0);
    let mut test = TestSplice::new();
    let (mut is_prepared, mut ready_at, mut has_taken_over) = (false, None::<Duration>, false);
    for (at, is_second, packet) in arrivals {
        if let Some(deadline) = test.splice.prepared_deadline(Continuation::Direct)
            && deadline <= at
            && ready_at.is_none()
        {
            test.splice.is_prepared(Continuation::Direct, at);
            let next = test.splice.prepared_deadline(Continuation::Direct);
            assert!(next.is_none_or(|it| it > at), "the deadline at {deadline:?} does not change");
        }
        if !has_taken_over && ready_at.is_some_and(|it| at >= it + ms(hop_ms)) {
            has_taken_over = true;
            test.change(at);
            let mut out = BytesMut::new();
            test.splice.take_over(Continuation::Direct, at, &mut out);
            test.record(out, at);
        }
        if is_second == has_taken_over {
            test.packet(&packet, at);
        } else if is_second {
            if !std::mem::replace(&mut is_prepared, true) {
                test.splice.prepare(&TableHints::default(), group);
            }
            test.splice.prepared_packet(Packet::new(&packet), at);
        }
        if is_prepared && ready_at.is_none() && test.splice.is_prepared(Continuation::Direct, at) {
            ready_at = Some(at);
        }
    }
    (test.finish(), ready_at)
}

/// Returns the time between the last picture of the first source and the first one of the second, in ms.
fn step_ms(played: &Played) -> i64 {
    (first_pes(played, 1).presentation - last_presentation_on(played, 0, first_pes(played, 1).pid)) / 90
}

fn last_presentation_on(played: &Played, source: u8, pid: u16) -> i64 {
    let pes = played.checker.pes.iter().filter(|pes| pes.source == source && pes.pid == pid);
    pes.map(|pes| pes.presentation).max().unwrap()
}

#[test]
fn a_prepared_source_continues_directly_at_its_next_random_access_point() {
    let second = Spec { id: 1, ..another() };
    // Sources with another clock, another delay, bidirectional pictures, a burst of their past, and a slow answer to
    // the report that they are ready.
    for (first, second, burst_ms, hop_ms) in [
        (Spec::default(), second.clone(), 0, 0),
        (Spec::default(), second.clone(), 4_000, 0),
        (Spec::default(), second.clone(), 0, 400),
        (Spec::default(), Spec { delay_ms: 900, ..second.clone() }, 2_000, 20),
        (Spec { delay_ms: 900, ..Spec::default() }, second.clone(), 2_000, 20),
        (Spec { b_frames: 2, ..Spec::default() }, Spec { b_frames: 2, ..second.clone() }, 0, 20),
        (Spec::default(), Spec { gop: 100, ..second.clone() }, 0, 20),
    ] {
        let (played, ready_at) = play_beside(&first, &second, burst_ms, hop_ms);
        let ready_at = ready_at.expect("it becomes ready");
        let longest = ms(CONNECTS_MS + 400 + 40 * u64::from(second.gop));
        assert!(ready_at <= longest, "ready at {ready_at:?}");
        assert!(first_pes(&played, 1).is_key);
        let step = step_ms(&played);
        assert!((1..=100).contains(&step), "{step} ms between two pictures: {second:?}");
        let lead = lead_ms(&played, ms(END_MS - 1_000), ms(END_MS));
        let before = lead_ms(&played, ms(CONNECTS_MS - 1_000), ms(CONNECTS_MS));
        assert!(
            (lead - before).abs() <= 1_200 + hop_ms as i64,
            "the lead changed from {before} to {lead} ms"
        );
    }
}

#[test]
fn a_source_without_a_random_access_point_starts_at_a_picture_after_the_wait() {
    let second = Spec { id: 1, gop: 1_000, is_flagged: true, ..another() };
    for (group, wait_ms) in [
        (GroupLength::Unknown, 12_000),
        (GroupLength::Known(ms(2_000)), 3_000),
        (GroupLength::Known(ms(200)), 1_000),
        (GroupLength::None, 1_000),
    ] {
        // Its only random-access point is in its burst of past data.
        let (played, ready_at) = play_beside_known(&Spec::default(), &second, 3_000, 0, group);
        let ready_at = ready_at.expect("it becomes ready");
        let expected = ms(CONNECTS_MS + wait_ms);
        assert!(ready_at >= expected && ready_at < expected + ms(500), "{group:?}: {ready_at:?}");
        assert_eq!(played.pictures.iter().map(|it| it.1).collect::<Vec<_>>(), [PictureEvent::NoKeyFrame]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    // Holds T-view.1 for a source that takes over from one that plays.
    #[test]
    fn any_source_that_takes_over_continues_one_conformant_stream(
        first in spec(true),
        second in spec(true),
        burst_ms in 0u64..8_000,
        hop_ms in 0u64..3_000,
        at in start(),
    ) {
        let second = Spec { id: 1, start: at, ..second };
        let (played, ready_at) = play_beside(&first, &second, burst_ms, hop_ms);
        prop_assert!(ready_at.is_some(), "it becomes ready");
        prop_assert!(played.checker.pes.iter().any(|pes| pes.source == 1), "it has output");
    }
}
