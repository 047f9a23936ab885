//! Lists of the size that providers have.

use domain::stream::Stream;

use super::house::{A, HOUR, House, START, plain};

// Holds T-pl.6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_million_entries_are_imported_and_come_again_without_a_change() {
    const ENTRIES: usize = 500_000;
    let house = House::new().await;
    house.server.body(plain(0..ENTRIES));
    assert_eq!(house.import(A, START).await.unwrap().n_new as usize, ENTRIES);
    assert_eq!(house.models.store.collection::<Stream>().len_of(2), ENTRIES);
    let imported = house.import(A, START + HOUR).await.unwrap();
    assert_eq!((imported.n_new, imported.n_changed, imported.n_stale), (0, 0, 0));
}
