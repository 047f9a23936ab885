//! Playlists of realistic size.

use domain::stream::Stream;

use super::fixture::{A, HOUR, ImportFixture, START, plain};

// Holds T-pl.6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_million_entries_are_imported_twice_without_a_change() {
    const ENTRIES: usize = 500_000;
    let fixture = ImportFixture::new().await;
    fixture.server.body(plain(0..ENTRIES));
    assert_eq!(fixture.import(A, START).await.unwrap().n_new as usize, ENTRIES);
    assert_eq!(fixture.models.store.collection::<Stream>().len_of(2), ENTRIES);
    let imported = fixture.import(A, START + HOUR).await.unwrap();
    assert_eq!((imported.n_new, imported.n_changed, imported.n_stale), (0, 0, 0));
}
