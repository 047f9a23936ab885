//! Tests of timelines.

use uuid::Uuid;

use super::*;

fn target(number: u128) -> Target {
    Target::Channel(Uuid::from_u128(number))
}

#[tokio::test(start_paused = true)]
async fn a_run_keeps_its_newest_entries_and_counts_the_others() {
    let all = Arc::new(Timelines::default());
    let timeline = all.begin(1, target(1), "News");
    for n in 0..ENTRIES_MAX + 7 {
        timeline.write(RunEntry::new(RunEntryKind::Lost).detail(n));
    }
    let run = all.runs(|it| it == target(1)).remove(0);
    assert_eq!((run.entries.len(), run.n_dropped, run.ended_at), (ENTRIES_MAX, 7, None));
    assert_eq!((run.entries[0].detail.as_str(), run.name.as_str()), ("7", "News"));
    assert_eq!(all.runs(|it| it == target(2)), []);
}

#[tokio::test(start_paused = true)]
async fn the_newest_ended_runs_are_kept_for_a_limited_time() {
    let all = Arc::new(Timelines::default());
    let live = all.begin(0, target(0), "lives on");
    for serial in 1..=ENDED_MAX as u64 + 5 {
        drop(all.begin(serial, target(serial.into()), "ended"));
    }
    assert_eq!(all.runs(|_| true).len(), ENDED_MAX + 1);
    assert_eq!(all.runs(|it| it == target(5)), []);
    assert!(all.runs(|it| it == target(6)).remove(0).ended_at.is_some());
    tokio::time::advance(ENDED_KEPT_FOR).await;
    let left = all.runs(|_| true);
    assert_eq!(left.iter().map(|it| it.target).collect::<Vec<_>>(), [target(0)]);
    drop(live);
}

#[test]
fn a_long_text_of_a_provider_is_cut() {
    let line = RunEntry::new(RunEntryKind::Lost).detail("ä".repeat(10_000));
    assert_eq!(line.detail.chars().count(), DETAIL_CHARS_MAX);
}
