//! The ring under real threads: nothing is lost for those who keep up, and for the others it is accounted for.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use super::*;

const CHUNKS: u64 = 3000;
const CHUNK_PACKETS: usize = 20;

/// Payload packets that this viewer got, and the bytes it was told to have missed.
async fn watch(
    ring: Ring,
    mut tail: Tail,
    mut viewer: Viewer,
    is_lazy: bool,
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
        // A lazy viewer lets the writer run on, again and again, until the writer has nothing more.
        if is_lazy && n_chunks % 16 == 0 {
            let seen = tail.meter().sequence();
            while ring.usage().tail_sequence < seen + 50 && !stop.load(SeqCst) {
                tokio::task::yield_now().await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keep_up_readers_get_every_byte_and_lazy_ones_account_for_what_they_missed() {
    let mut settings = settings(3600, 200 * CHUNK_PACKETS * PACKET, usize::MAX);
    settings.slow_client_limit = u32::MAX;
    let mut station = Station::new(settings);
    station.tables();
    station.chunk(true, CHUNK_PACKETS);
    let total = |it: &Station| it.ring.meter().bytes_in() / PACKET as u64 - 2;
    let stop = Arc::new(AtomicBool::new(false));
    let mut keepers = Vec::new();
    let mut viewers = Vec::new();
    for index in 0..40 {
        let is_lazy = index % 4 == 0;
        let mut tail = station.live(0);
        // All have begun before the writer goes on, so that all see the same total.
        let mut viewer = Viewer::default();
        viewer.receives(&tail.chunk().await.unwrap());
        viewer.receives(&tail.chunk().await.unwrap());
        assert_eq!(viewer.n_payload, CHUNK_PACKETS);
        if !is_lazy {
            keepers.push(tail.meter().clone());
        }
        viewers.push(tokio::spawn(watch(station.ring.clone(), tail, viewer, is_lazy, stop.clone())));
    }
    let writer = tokio::task::spawn_blocking(move || {
        for number in 2..CHUNKS {
            station.chunk(number % 20 == 0, CHUNK_PACKETS);
            // The keepers are never more than a hundred chunks behind: that is what keeping up means.
            while keepers.iter().any(|it| it.sequence() + 100 < number) {
                std::thread::yield_now();
            }
        }
        stop.store(true, SeqCst);
        total(&station)
    });
    let total = writer.await.unwrap();
    let mut n_missed = 0;
    for (index, viewer) in viewers.into_iter().enumerate() {
        let (payload, overrun_bytes) = viewer.await.unwrap();
        assert_eq!(payload + overrun_bytes / PACKET as u64, total, "viewer {index}");
        assert!(index % 4 == 0 || overrun_bytes == 0);
        n_missed += overrun_bytes;
    }
    assert!(n_missed > 0, "the lazy ones were not lazy enough to be a test");
}
