//! Playlists of realistic size.

use domain::stream::Stream;

use super::fixture::{A, HOUR, ImportFixture, START, plain};
use crate::MEMORY;

// Holds T-pl.6.
async fn are_imported_twice_without_a_change(n_entries: usize) {
    let fixture = ImportFixture::new().await;
    fixture.server.body(plain(0..n_entries));
    assert_eq!(fixture.import(A, START).await.unwrap().n_new as usize, n_entries);
    assert_eq!(fixture.models.store.collection::<Stream>().len_of(2), n_entries);
    let imported = fixture.import(A, START + HOUR).await.unwrap();
    assert_eq!((imported.n_new, imported.n_changed, imported.n_stale), (0, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_thousand_entries_are_imported_twice_without_a_change() {
    are_imported_twice_without_a_change(50_000).await;
}

/// Holds T-mem.2. Every second refresh leaves out a quarter of the entries, so that streams become stale and come back.
async fn refreshes_take_hardly_more_memory_than_two(n_refreshes: usize) {
    const ENTRIES: usize = 20_000;
    /// The pages that the store caches (8 MiB) and what finds them. The entries of a list take about 10 MiB, so a leak of a
    /// tenth of them would exceed it.
    const GROWTH_MAX: usize = 16 << 20;
    let fixture = ImportFixture::new().await;
    let mut after_two = 0;
    for at in 0..n_refreshes {
        fixture.server.body(plain(at % 2 * ENTRIES / 4..ENTRIES));
        fixture.import(A, START + at as i64 * HOUR).await.unwrap();
        if at == 1 {
            after_two = MEMORY.allocated();
        }
    }
    let (before, after) = (after_two >> 10, MEMORY.allocated() >> 10);
    assert!(
        after <= before + (GROWTH_MAX >> 10),
        "{before} KiB after two refreshes, {after} KiB after {n_refreshes}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_refreshes_take_hardly_more_memory_than_two() {
    refreshes_take_hardly_more_memory_than_two(4).await;
}

mod night {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn half_a_million_entries_are_imported_twice_without_a_change() {
        super::are_imported_twice_without_a_change(500_000).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn twenty_refreshes_take_hardly_more_memory_than_two() {
        super::refreshes_take_hardly_more_memory_than_two(20).await;
    }
}
