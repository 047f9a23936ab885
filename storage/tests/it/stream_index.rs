//! The index of all streams follows a store that changes.

use std::sync::Arc;

use domain::ids::{AccountId, StreamId};
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use domain::streams::{EDITED_MAX, StreamQuery, StreamSnapshot};
use storage::records::schema;
use storage::{Error, NotReady, Store, StreamIndex};

use crate::support::Place;

fn stream(id: u32, account: u32, name: &str) -> Stream {
    let facts = StreamProperties {
        group: Some(format!("group {}", id % 3)),
        ..StreamProperties::new(name, SourceUrl::new("http://h/1"))
    };
    Stream::new(StreamId(id), AccountId(account), facts, 0)
}

fn import(store: &Store, account: u32, ids: impl IntoIterator<Item = u32>) {
    let mut bulk = store.bulk_write::<Stream>(account.into()).unwrap();
    for id in ids {
        bulk.put(&stream(id, account, &format!("stream {id}"))).unwrap();
    }
    bulk.commit(|_, _| Ok::<_, Error>(())).unwrap();
}

fn put(store: &Store, streams: Vec<Stream>) {
    store.write_blocking(move |write| streams.iter().try_for_each(|it| write.put(it))).unwrap();
}

fn remove(store: &Store, ids: Vec<u32>) {
    store
        .write_blocking(move |write| ids.iter().try_for_each(|id| write.remove::<Stream>(*id).map(drop)))
        .unwrap();
}

/// Returns the index with all answered writes.
fn now(store: &Store, index: &StreamIndex) -> Arc<StreamSnapshot> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(index.at(store.version())).unwrap()
}

/// Checks that the index equals the store.
#[track_caller]
fn agrees(store: &Store, index: &StreamIndex) -> Arc<StreamSnapshot> {
    let index = now(store, index);
    let streams = store.collection::<Stream>();
    let mut all = streams.all().unwrap();
    all.sort_by_key(|it| it.id);
    assert_eq!(index.ids(&StreamQuery::default()), all.iter().map(|it| it.id).collect::<Vec<_>>());
    for text in ["", "stream 1", "edited"] {
        let found = index.find(&StreamQuery { name: Some(text.to_owned()), ..StreamQuery::default() }, 0, 5);
        let expected: Vec<_> = all.iter().filter(|it| it.name().contains(text)).map(|it| it.id).collect();
        assert_eq!(found.count, expected.len(), "{text}");
        assert_eq!(found.ids, &expected[..expected.len().min(5)], "{text}");
    }
    for owner in streams.owners() {
        let n = index.account_counts(AccountId(owner as u32)).n;
        assert_eq!(n, streams.len_of(owner), "account {owner}");
    }
    index
}

#[test]
fn the_index_at_a_commit_contains_the_edits_of_that_commit() {
    let store = Store::temporary(schema()).unwrap();
    import(&store, 2, 1..=300);
    let index = StreamIndex::start(&store).unwrap();
    let before = agrees(&store, &index);
    put(&store, vec![stream(7, 2, "edited"), stream(1000, 1, "edited, by hand")]);
    let after = agrees(&store, &index);
    assert_eq!(after.contains(StreamId(1000)), Some(AccountId(1)));
    remove(&store, vec![8, 1000]);
    agrees(&store, &index);
    // Moved to another account.
    put(&store, vec![stream(9, 3, "edited")]);
    let after = agrees(&store, &index);
    assert_eq!(after.contains(StreamId(9)), Some(AccountId(3)));
    assert_eq!(before.len(), 300, "a loaded index changed");
    let shard = |index: &StreamSnapshot| Arc::clone(index.shard(AccountId(2)).unwrap());
    assert!(Arc::ptr_eq(&shard(&before), &shard(&after)), "an account was read again after a few edits");
}

#[test]
fn an_import_updates_the_index_without_reading_other_accounts_again() {
    let store = Store::temporary(schema()).unwrap();
    import(&store, 2, 1..=500);
    let index = StreamIndex::start(&store).unwrap();
    // An edited stream of the other account must not cause that account to be read again.
    put(&store, vec![stream(5, 2, "edited")]);
    let before = agrees(&store, &index);
    import(&store, 3, 1000..=2500);
    let after = agrees(&store, &index);
    let shard = |index: &StreamSnapshot, account| index.shard(AccountId(account)).map(Arc::clone);
    assert!(Arc::ptr_eq(&shard(&before, 2).unwrap(), &shard(&after, 2).unwrap()));
    import(&store, 3, 3000..=3100);
    agrees(&store, &index);
    store
        .write_blocking(|write| {
            write.remove_owner::<Stream>(3);
            Ok::<_, Error>(())
        })
        .unwrap();
    let after = agrees(&store, &index);
    assert_eq!((after.len(), after.accounts()), (500, vec![AccountId(2)]));
    assert!(Arc::ptr_eq(&shard(&before, 2).unwrap(), &shard(&after, 2).unwrap()));
}

#[test]
fn too_many_edits_are_merged_into_their_shard() {
    let store = Store::temporary(schema()).unwrap();
    import(&store, 2, 1..=2_000);
    import(&store, 3, 3_001..=3_100);
    let index = StreamIndex::start(&store).unwrap();
    for round in 0..3 {
        let ids = round * 600 + 1..=round * 600 + 600;
        put(&store, ids.map(|id| stream(id, 2, "edited")).collect());
        let now = agrees(&store, &index);
        assert!(now.n_edited() <= EDITED_MAX);
    }
}

#[test]
fn missed_commits_are_detected_by_comparing_fingerprints() {
    let store = Store::temporary(schema()).unwrap();
    import(&store, 2, 1..=300);
    let index = StreamIndex::start(&store).unwrap();
    // Several times the backlog of a slow subscriber. The index must be complete whether it lagged or not.
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for n in 0..300 {
                    let id = writer * 1000 + n % 290 + 1;
                    match n % 3 {
                        2 => remove(store, vec![id]),
                        _ => put(store, vec![stream(id, 2 + writer % 2, &format!("edited {n}"))]),
                    }
                }
            });
        }
        scope.spawn(|| import(&store, 9, 10_000..=12_000));
    });
    agrees(&store, &index);
}

#[test]
fn the_index_at_a_commit_contains_that_commit_with_several_writers() {
    let store = Store::temporary(schema()).unwrap();
    let index = StreamIndex::start(&store).unwrap();
    std::thread::scope(|scope| {
        for writer in 1..=3u32 {
            let (store, index) = (&store, &index);
            scope.spawn(move || {
                for n in 0..40 {
                    let id = writer * 1000 + n;
                    put(store, vec![stream(id, writer, "x")]);
                    assert_eq!(now(store, index).contains(StreamId(id)), Some(AccountId(writer)));
                    if n % 10 == 9 {
                        import(store, writer, writer * 1000..=id + 50);
                        assert!(now(store, index).contains(StreamId(id + 50)).is_some());
                    }
                }
            });
        }
    });
    agrees(&store, &index);
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_commit_ends_after_half_a_minute() {
    let store = Store::temporary(schema()).unwrap();
    let index = StreamIndex::start(&store).unwrap();
    let started = tokio::time::Instant::now();
    assert!(matches!(index.at(store.version() + 1).await, Err(NotReady::Late)));
    assert_eq!(started.elapsed().as_secs(), 30);
    tokio::task::spawn_blocking(move || drop(store)).await.unwrap();
    // The thread of the index notices that by itself, and the clock of this test does not wait for it.
    while !matches!(index.at(u64::MAX).await, Err(NotReady::Ended)) {
        std::thread::yield_now();
    }
    assert!(index.load().is_empty(), "the last state can no longer be loaded");
}

#[test]
fn the_index_neither_keeps_a_store_open_nor_outlives_it() {
    let place = Place::new();
    let open = || Store::open(&place.store(), &place.key(), schema()).unwrap();
    let store = open();
    import(&store, 2, 1..=5_000);
    let index = StreamIndex::start(&store).unwrap();
    import(&store, 2, 1..=5_001);
    drop(index);
    drop(store);
    let store = open();
    let index = StreamIndex::start(&store).unwrap();
    assert_eq!(index.load().len(), 5_001);
    let second = index.clone();
    drop(index);
    put(&store, vec![stream(6_000, 2, "x")]);
    assert_eq!(agrees(&store, &second).len(), 5_002, "the index stopped while a clone was in use");
}
