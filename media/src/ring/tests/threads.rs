//! The ring with real threads: viewers who keep up lose nothing, the losses of the others are counted, and rings shrink
//! while viewers come and go.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use super::*;

const CHUNKS: u64 = 3000;
const CHUNK_PACKETS: usize = 20;

/// Returns the payload packets that this viewer received, and the bytes it lost by overruns.
async fn watch(
    ring: Ring,
    mut tail: Tail,
    mut viewer: Viewer,
    is_slow: bool,
    stop: Arc<AtomicBool>,
) -> (u64, u64) {
    let mut n_chunks = 0;
    loop {
        match tail.chunk().await {
            Ok(bytes) => viewer.receives(&bytes),
            Err(end) => {
                assert_eq!(end, EndReason::Closed);
                return (viewer.n_payload as u64, tail.meter().overrun_bytes());
            }
        }
        n_chunks += 1;
        // A slow viewer repeatedly waits until the writer has overtaken it or has finished.
        if is_slow && n_chunks % 16 == 0 {
            let seen = tail.meter().sequence();
            while ring.usage().tail_sequence < seen + 50 && !stop.load(SeqCst) {
                tokio::task::yield_now().await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fast_viewers_get_every_byte_and_slow_viewers_count_their_losses() {
    let mut settings = settings(3600, 200 * CHUNK_PACKETS * PACKET, usize::MAX);
    settings.slow_client_limit = u32::MAX;
    let mut test = TestRing::new(settings);
    test.tables();
    test.chunk(true, CHUNK_PACKETS);
    let total = |it: &TestRing| it.ring.meter().bytes_in() / PACKET as u64 - 2;
    let stop = Arc::new(AtomicBool::new(false));
    let mut fast_meters = Vec::new();
    let mut viewers = Vec::new();
    for index in 0..40 {
        let is_slow = index % 4 == 0;
        let mut tail = test.live(0);
        // All viewers start before the writer continues, so that all expect the same total.
        let mut viewer = Viewer::default();
        viewer.receives(&tail.chunk().await.unwrap());
        viewer.receives(&tail.chunk().await.unwrap());
        assert_eq!(viewer.n_payload, CHUNK_PACKETS);
        if !is_slow {
            fast_meters.push(tail.meter().clone());
        }
        viewers.push(tokio::spawn(watch(test.ring.clone(), tail, viewer, is_slow, stop.clone())));
    }
    let writer = tokio::task::spawn_blocking(move || {
        for number in 2..CHUNKS {
            test.chunk(number % 20 == 0, CHUNK_PACKETS);
            // A viewer that keeps up is never more than a hundred chunks behind.
            while fast_meters.iter().any(|it| it.sequence() + 100 < number) {
                thread::yield_now();
            }
        }
        stop.store(true, SeqCst);
        total(&test)
    });
    let total = writer.await.unwrap();
    let mut n_missed = 0;
    for (index, viewer) in viewers.into_iter().enumerate() {
        let (payload, overrun_bytes) = viewer.await.unwrap();
        assert_eq!(payload + overrun_bytes / PACKET as u64, total, "viewer {index}");
        assert!(index % 4 == 0 || overrun_bytes == 0);
        n_missed += overrun_bytes;
    }
    assert!(n_missed > 0, "no viewer was overrun");
}

/// Regression: the rings were sorted by counters that changed during the sort, which may panic.
#[test]
fn the_budget_is_enforced_while_tails_come_and_go() {
    let budget = Budget::new(0);
    let rings: Vec<TestRing> =
        (0..500).map(|_| TestRing::within(settings(3600, usize::MAX, usize::MAX), &budget)).collect();
    let stop = AtomicBool::new(false);
    let panicked = thread::scope(|scope| {
        for seed in 1..=2_usize {
            let (rings, stop) = (&rings, &stop);
            scope.spawn(move || {
                let mut tails = VecDeque::new();
                let mut index = seed;
                while !stop.load(SeqCst) {
                    index = index.wrapping_mul(48_271) % 0x7FFF_FFFF;
                    tails.push_back(rings[index % rings.len()].live(0));
                    if tails.len() > 2 * rings.len() {
                        tails.pop_front();
                    }
                }
            });
        }
        let enforced = catch_unwind(AssertUnwindSafe(|| {
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(800) {
                // One more byte than at the last attempt.
                budget.adjust(0, 1);
                budget.enforce(Instant::now());
            }
        }));
        stop.store(true, SeqCst);
        enforced.is_err()
    });
    assert!(!panicked, "the sort panicked");
}
