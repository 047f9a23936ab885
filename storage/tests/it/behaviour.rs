//! Guarantees of a write, and what readers see of it.

use std::sync::mpsc;

use serde::{Deserialize, Serialize};
use storage::{
    ChangeMessage, ChangedIds, CollectionKind, Error, Record, Result, Schema, Sharing, Store, StoreStatistics,
};

use crate::support::{Credential, Item, Note, Place, item, note, put, schema};

#[test]
fn a_write_changes_all_its_collections_or_none() {
    let store = Store::temporary(schema()).unwrap();
    let refused: Result<()> = store.write_blocking(|write| {
        write.put(&note(1, "one"))?;
        write.put(&item(1, 7, "one"))?;
        assert!(write.get::<Note>(1)?.is_some() && write.get::<Item>(1)?.is_some());
        Err(Error::Closed)
    });
    assert!(refused.is_err());
    assert_eq!((store.collection::<Note>().len(), store.collection::<Item>().len()), (0, 0));

    store
        .write_blocking(|write| {
            write.put(&note(1, "one"))?;
            write.put(&item(1, 7, "one"))
        })
        .unwrap();
    assert_eq!(store.collection::<Note>().get(1).unwrap(), Some(note(1, "one")));
    assert_eq!(store.collection::<Item>().get(1).unwrap(), Some(item(1, 7, "one")));
}

#[test]
fn a_second_record_with_the_same_unique_value_is_refused_with_the_id_of_the_first() {
    let store = Store::temporary(schema()).unwrap();
    put(&store, [note(1, "one"), note(2, "two")]).unwrap();
    let taken = put(&store, [note(3, "one")]).unwrap_err();
    assert!(matches!(taken, Error::Taken { collection: "notes", index: "name", by: 1 }), "{taken}");
    // Also within one write. A value that is no longer used is free at once.
    assert!(put(&store, [note(3, "three"), note(4, "three")]).is_err());
    put(&store, [note(1, "three"), note(2, "one"), note(1, "two")]).unwrap();
    put(&store, [note(1, "two")]).unwrap();
    assert_eq!(store.collection::<Note>().one_by("name", "one").unwrap(), Some(note(2, "one")));
    assert_eq!(store.collection::<Note>().one_by("name", "three").unwrap(), None);
}

#[test]
fn records_are_found_by_their_current_keys_and_not_by_old_ones() {
    let store = Store::temporary(schema()).unwrap();
    put(&store, (1..=9).map(|id| note(id, &id.to_string()))).unwrap();
    let tagged = |tag: u8| -> Vec<u32> {
        store.collection::<Note>().by("tag", [tag]).unwrap().iter().map(|it| it.id).collect()
    };
    assert_eq!(tagged(0), [3, 6, 9]);
    put(&store, [Note { tag: 1, ..note(3, "3") }]).unwrap();
    store.write_blocking(|write| write.remove::<Note>(6).map(drop)).unwrap();
    assert_eq!((tagged(0), tagged(1)), (vec![9], vec![1, 3, 4, 7]));
}

#[test]
fn an_id_is_never_assigned_twice_even_after_its_record_was_removed() {
    let place = Place::new();
    let take = |store: &Store| {
        store.write_blocking(|write| {
            let id = write.next_id::<Note>()?;
            write.put(&note(id, &id.to_string()))?;
            Ok::<_, Error>(id)
        })
    };
    let store = place.open();
    assert_eq!((take(&store).unwrap(), take(&store).unwrap()), (1, 2));
    store.write_blocking(|write| write.remove::<Note>(2).map(drop)).unwrap();
    drop(store);
    let store = place.open();
    assert_eq!(take(&store).unwrap(), 3);
    // An id chosen by the caller counts as assigned.
    put(&store, [note(40, "forty")]).unwrap();
    assert_eq!(take(&store).unwrap(), 41);
}

#[test]
fn answered_writes_survive_reopening() {
    let place = Place::new();
    let store = place.open();
    put(&store, (1..=250).map(|id| note(id, &id.to_string()))).unwrap();
    store
        .write_blocking(|write| (1..=250).try_for_each(|id| write.put(&item(id, u64::from(id % 2), "x"))))
        .unwrap();
    drop(store);
    let store = place.open();
    assert_eq!(store.collection::<Note>().all().unwrap().len(), 250);
    assert_eq!(store.collection::<Note>().by("tag", [1]).unwrap().len(), 84);
    assert_eq!(store.collection::<Item>().owners(), [0, 1]);
    assert_eq!(store.collection::<Item>().len_of(1), 125);
    assert_eq!(store.collection::<Item>().by("name", "x").unwrap().len(), 250);
}

#[test]
fn every_commit_is_sent_once_and_a_slow_subscriber_gets_a_lag_message() {
    let store = Store::temporary(schema()).unwrap();
    let mut changes = store.changes();
    store
        .write_blocking(|write| {
            write.put(&note(1, "one"))?;
            write.put(&note(2, "two"))?;
            write.put(&item(5, 1, "five"))
        })
        .unwrap();
    let Some(ChangeMessage::Changed(change)) = changes.try_next() else { panic!("no change was sent") };
    assert_eq!(change.ids("notes"), Some(&ChangedIds::Few(vec![1, 2])));
    assert_eq!(change.ids("items"), Some(&ChangedIds::Few(vec![5])));
    assert_eq!(change.ids("credentials"), None);
    assert_eq!(change.version, store.statistics().version);
    assert_eq!(changes.try_next(), None);

    for round in 0..300 {
        put(&store, [note(1, &round.to_string())]).unwrap();
    }
    assert_eq!(changes.try_next(), Some(ChangeMessage::Lagged));
    assert!(matches!(changes.try_next(), Some(ChangeMessage::Changed(_))));
}

#[test]
fn a_view_contains_a_write_before_the_write_is_answered() {
    let store = Store::temporary(schema()).unwrap();
    put(&store, [note(1, "one")]).unwrap();
    let names = store
        .view(&["notes"], |reader, _| {
            Ok(reader.collection::<Note>().all()?.into_iter().map(|it| it.name).collect::<Vec<_>>())
        })
        .unwrap();
    let before = names.load();
    put(&store, [note(2, "two")]).unwrap();
    assert_eq!(*names.load(), ["one", "two"]);
    // A value that was loaded does not change.
    assert_eq!(*before, ["one"]);
}

#[test]
fn a_store_opens_once_and_a_second_open_gets_an_error() {
    let place = Place::new();
    let store = place.open();
    let second = place.try_open().err().unwrap();
    assert!(matches!(second, Error::AlreadyRunning(_)));
    assert!(second.to_string().contains("already running"), "{second}");
    assert!(matches!(place.check(), Err(Error::AlreadyRunning(_))));
    drop(store);
    place.open();
}

#[test]
fn a_released_store_is_open_elsewhere_and_answers_errors_here() {
    let place = Place::new();
    let store = place.open();
    put(&store, [note(1, "one")]).unwrap();
    let table = store.table::<Note>().unwrap();
    assert!(store.release());
    let other = place.open();
    put(&other, [note(2, "two")]).unwrap();
    assert!(matches!(put(&store, [note(3, "three")]), Err(Error::Closed)));
    assert!(matches!(store.collection::<Note>().get(1), Err(Error::Closed)));
    assert_eq!(table.load().get(1).map(|it| it.name.clone()), Some("one".to_owned()));
    assert!(store.release(), "a second call does nothing");
    drop(store);
    assert_eq!(other.collection::<Note>().all().unwrap().len(), 2);
}

#[test]
fn a_write_that_panics_is_rolled_back_and_the_next_one_succeeds() {
    let store = Store::temporary(schema()).unwrap();
    let panicked: Result<()> = store.write_blocking(|write| {
        write.put(&note(1, "one"))?;
        panic!("a bug in a handler")
    });
    assert!(matches!(panicked, Err(Error::Panicked)));
    put(&store, [note(2, "two")]).unwrap();
    assert_eq!(store.collection::<Note>().ids(), [2]);
}

#[test]
fn waiting_writes_share_one_commit() {
    let store = Store::temporary(schema()).unwrap();
    let (hold, held) = mpsc::channel::<()>();
    let first = {
        let store = store.clone();
        std::thread::spawn(move || {
            store.write_blocking(move |write| {
                held.recv().unwrap();
                write.put(&note(1, "1"))
            })
        })
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let before = store.statistics().version;
    runtime.block_on(async {
        let writes: Vec<_> = (2..=40)
            .map(|id| {
                let mut write = Box::pin(store.write(move |write| write.put(&note(id, &id.to_string()))));
                // Polled, so that it is in the queue.
                assert!(poll_once(&mut write).is_none());
                write
            })
            .collect();
        hold.send(()).unwrap();
        for write in writes {
            write.await.unwrap();
        }
    });
    first.join().unwrap().unwrap();
    assert_eq!(store.collection::<Note>().len(), 40);
    let n_commits = store.statistics().version - before;
    assert!(n_commits <= 2, "40 writes took {n_commits} commits");
}

/// Polls a future once.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::Pin::new(future).poll(&mut context) {
        std::task::Poll::Ready(done) => Some(done),
        std::task::Poll::Pending => None,
    }
}

#[test]
fn every_slice_of_a_large_write_stays_below_the_weight_limit() {
    let place = Place::new();
    let store = place.open();
    put(&store, (1..=3_000).map(|id| note(id, &format!("first {id}")))).unwrap();
    put(&store, (1..=3_000).map(|id| note(id, &format!("second {id}")))).unwrap();
    store.write_blocking(|write| (1..=2_500).try_for_each(|id| write.remove::<Note>(id).map(drop))).unwrap();
    store.write_blocking(|write| (1..=9_000).try_for_each(|id| write.put(&item(id, 1, "x")))).unwrap();
    store
        .write_blocking(|write| {
            write.remove_owner::<Item>(1);
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!((store.collection::<Note>().len(), store.collection::<Item>().len()), (500, 0));
    let figures = store.statistics();
    assert!(figures.n_slices > 80, "{figures:?}");
    assert!(figures.slice_weight_max <= StoreStatistics::SLICE_WEIGHT_MAX, "{figures:?}");
    drop(store);
    let store = place.open();
    assert_eq!(
        store.collection::<Note>().all().unwrap(),
        (2_501..=3_000).map(|id| note(id, &format!("second {id}"))).collect::<Vec<_>>()
    );
    assert!(store.collection::<Item>().is_empty());
}

#[test]
fn a_too_large_record_or_write_is_refused_before_anything_is_written() {
    let store = Store::temporary(schema()).unwrap();
    let large = put(&store, [note(1, &"x".repeat(storage::RECORD_BYTES_MAX))]).unwrap_err();
    assert!(matches!(large, Error::TooLarge { what: "a record", .. }), "{large}");
    let many = put(&store, (1..=40_000).map(|id| note(id, &id.to_string()))).unwrap_err();
    assert!(matches!(many, Error::TooLarge { what: "a write", .. }), "{many}");
    assert!(store.collection::<Note>().is_empty());
    put(&store, [note(1, &"x".repeat(500_000)), note(2, &"y".repeat(500_000))]).unwrap();
    assert_eq!(store.collection::<Note>().get(2).unwrap().unwrap().name.len(), 500_000);
}

#[test]
fn secrets_are_unreadable_without_the_key_file() {
    let place = Place::new();
    let store = place.open();
    let secret = Credential { id: 1, password: "correct horse battery staple".to_owned() };
    let kept = secret.clone();
    store.write_blocking(move |write| write.put(&kept)).unwrap();
    put(&store, [note(1, "in plain sight")]).unwrap();
    drop(store);
    let bytes = std::fs::read(place.database()).unwrap();
    let has = |text: &str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
    assert!(has("in plain sight") && !has("correct horse"));
    assert_eq!(place.open().collection::<Credential>().get(1).unwrap(), Some(secret));

    let key = std::fs::read(place.key()).unwrap();
    std::fs::remove_file(place.key()).unwrap();
    let missing = place.try_open().err().unwrap();
    assert!(matches!(missing, Error::Key(_)) && missing.to_string().contains("is missing"), "{missing}");
    assert!(!place.key().exists(), "an existing store must not get a new key");
    Store::open(&place.folder.path().join("other"), &place.key(), schema()).unwrap();
    let wrong = place.try_open().err().unwrap();
    assert!(wrong.to_string().contains("does not belong to this store"), "{wrong}");
    std::fs::write(place.key(), key).unwrap();
    place.open();
}

#[test]
fn a_compacted_store_is_smaller_and_complete() {
    let place = Place::new();
    let store = place.open();
    for round in 0..40 {
        put(&store, (1..=300).map(|id| note(id, &format!("{round} {id} {}", "x".repeat(3_000))))).unwrap();
    }
    let before = store.statistics().disk_bytes;
    let all = store.collection::<Note>().all().unwrap();
    store.compact().unwrap();
    let after = store.statistics().disk_bytes;
    assert!(after * 2 < before, "{before} bytes became {after}");
    assert_eq!(store.collection::<Note>().all().unwrap(), all);
    put(&store, [note(1, "after")]).unwrap();
    drop(store);
    assert!(place.check().unwrap().is_ok());
    let store = place.open();
    assert_eq!(store.collection::<Note>().get(1).unwrap(), Some(note(1, "after")));
    assert_eq!(store.collection::<Note>().len(), 300);
}

#[test]
fn a_closed_store_refuses_writes_and_still_answers_reads() {
    let store = Store::temporary(schema()).unwrap();
    let mut changes = store.changes();
    put(&store, [note(1, "one")]).unwrap();
    store.close();
    assert!(matches!(put(&store, [note(2, "two")]), Err(Error::Closed)));
    assert_eq!(store.collection::<Note>().len(), 1);
    drop(store);
    assert!(matches!(changes.try_next(), Some(ChangeMessage::Changed(_))));
    assert_eq!(changes.try_next(), Some(ChangeMessage::Closed));
}

/// An older version of the record type.
#[derive(Serialize, Deserialize)]
struct OldNote {
    id: u32,
    title: String,
}

impl Record for OldNote {
    const COLLECTION: &'static str = "migrated";
    const SHARING: Sharing = Sharing::Local;

    fn id(&self) -> u32 {
        self.id
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct NewNote {
    id: u32,
    name: String,
    #[serde(default)]
    since: Option<u32>,
}

impl Record for NewNote {
    const COLLECTION: &'static str = "migrated";
    const SHARING: Sharing = Sharing::Local;
    const KIND: CollectionKind = CollectionKind::Single;
    const VERSION: u8 = 2;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut storage::Keys) {
        keys.plain("name", &self.name);
    }

    fn upgrade(version: u8, bytes: Vec<u8>) -> Result<Vec<u8>> {
        assert_eq!(version, 1);
        let damaged = |error: &dyn std::fmt::Display| Error::DamagedRecord(error.to_string());
        let old: OldNote = rmp_serde::from_slice(&bytes).map_err(|error| damaged(&error))?;
        let new = Self { id: old.id, name: old.title, since: None };
        rmp_serde::to_vec_named(&new).map_err(|error| damaged(&error))
    }
}

#[test]
fn records_of_an_older_version_are_upgraded() {
    let place = Place::new();
    let store = Store::open(&place.store(), &place.key(), Schema::new().with::<OldNote>()).unwrap();
    store.write_blocking(|write| write.put(&OldNote { id: 1, title: "old".to_owned() })).unwrap();
    drop(store);
    let store = Store::open(&place.store(), &place.key(), Schema::new().with::<NewNote>()).unwrap();
    let new = NewNote { id: 1, name: "old".to_owned(), since: None };
    assert_eq!(store.collection::<NewNote>().by("name", "old").unwrap(), [new]);
    store
        .write_blocking(|write| write.put(&NewNote { id: 2, name: "new".to_owned(), since: Some(1) }))
        .unwrap();
    drop(store);
    // The old version reports the newer format.
    let old = Store::open(&place.store(), &place.key(), Schema::new().with::<OldNote>()).err().unwrap();
    assert!(matches!(old, Error::TooNew { found: 2, known: 1 }), "{old}");
}

#[test]
fn an_unknown_collection_is_an_error_and_is_not_dropped() {
    let place = Place::new();
    put(&place.open(), [note(1, "one")]).unwrap();
    let unknown = Store::open(&place.store(), &place.key(), Schema::new().with::<Item>()).err().unwrap();
    assert!(unknown.to_string().contains("\"notes\""), "{unknown}");
    assert_eq!(place.open().collection::<Note>().len(), 1);
}

/// A record type with an unsupported unique index.
#[derive(Serialize, Deserialize)]
struct Unsupported {
    id: u32,
    name: String,
}

impl Record for Unsupported {
    const COLLECTION: &'static str = "unsupported";
    const SHARING: Sharing = Sharing::Local;
    const KIND: CollectionKind = CollectionKind::Paged;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut storage::Keys) {
        keys.unique("name", &self.name);
    }
}

#[test]
fn a_unique_index_of_a_paged_collection_is_refused_with_the_first_record() {
    let store = Store::temporary(Schema::new().with::<Unsupported>()).unwrap();
    let one = || Unsupported { id: 1, name: "one".to_owned() };
    let small: Result<()> = store.write_blocking(move |write| write.put(&one()));
    let bulk = store.bulk_write::<Unsupported>(0).unwrap().put(&one());
    for refused in [small.unwrap_err(), bulk.unwrap_err()] {
        assert!(
            matches!(refused, Error::NotUnique { collection: "unsupported", index: "name" }),
            "{refused}"
        );
    }
    assert!(store.collection::<Unsupported>().is_empty());
}
