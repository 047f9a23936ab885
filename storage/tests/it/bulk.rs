//! Bulk writes: replacing all records of an owner during other reads and writes.

use storage::{ChangeMessage, ChangedIds, Error, Store, StoreStatistics};

use crate::support::{Item, Note, Place, item, note, put, replace, schema};

fn items(owner: u64, ids: std::ops::Range<u32>, name: &str) -> Vec<Item> {
    ids.map(|id| item(id, owner, name)).collect()
}

#[test]
fn a_bulk_write_is_visible_after_its_commit_and_not_before() {
    let store = Store::temporary(schema()).unwrap();
    replace(&store, 1, &items(1, 1..1_001, "old")).unwrap();
    let mut changes = store.changes();
    let mut bulk = store.bulk_write::<Item>(1).unwrap();
    for item in items(1, 500..4_000, "new") {
        bulk.put(&item).unwrap();
    }
    assert_eq!(store.collection::<Item>().len_of(1), 1_000);
    assert!(store.collection::<Item>().by("name", "new").unwrap().is_empty());
    bulk.commit(|write, changed| {
        assert!(changed.is_empty());
        assert_eq!(write.get::<Item>(600)?, Some(item(600, 1, "new")));
        assert_eq!(write.get::<Item>(1)?, None);
        write.put(&note(1, "refreshed"))
    })
    .unwrap();
    assert_eq!(store.collection::<Item>().ids(), (500..4_000).collect::<Vec<_>>());
    assert!(store.collection::<Item>().by("name", "old").unwrap().is_empty());
    assert_eq!(store.collection::<Note>().len(), 1);
    let Some(ChangeMessage::Changed(change)) = changes.try_next() else { panic!("no change was sent") };
    assert_eq!(
        (change.ids("items"), change.ids("notes")),
        (Some(&ChangedIds::Many), Some(&ChangedIds::Few(vec![1])))
    );
    assert_eq!(changes.try_next(), None);
    assert!(store.statistics().slice_weight_max <= StoreStatistics::SLICE_WEIGHT_MAX);
}

#[test]
fn a_bulk_write_gets_the_ids_that_other_writes_changed_meanwhile() {
    let store = Store::temporary(schema()).unwrap();
    replace(&store, 1, &items(1, 1..301, "old")).unwrap();
    let mut bulk = store.bulk_write::<Item>(1).unwrap();
    for item in items(1, 1..201, "new") {
        bulk.put(&item).unwrap();
    }
    put(&store, [note(1, "meanwhile")]).unwrap();
    store
        .write_blocking(|write| {
            write.put(&item(7, 1, "edited"))?;
            write.put(&item(900, 1, "added"))?;
            write.put(&item(901, 2, "of another owner"))?;
            write.remove::<Item>(250).map(drop)
        })
        .unwrap();
    let changed = bulk
        .commit(|write, changed| {
            write.put(&item(7, 1, "edited again"))?;
            Ok::<_, Error>(changed.to_vec())
        })
        .unwrap();
    assert_eq!(changed, [7, 250, 900]);
    let found = store.collection::<Item>();
    assert_eq!(found.get(7).unwrap(), Some(item(7, 1, "edited again")));
    assert_eq!((found.get(900).unwrap(), found.get(250).unwrap()), (None, None));
    assert_eq!((found.len_of(1), found.len_of(2)), (200, 1));
}

#[test]
fn records_added_during_a_bulk_write_do_not_come_back_after_reopening() {
    let place = Place::new();
    let store = place.open();
    replace(&store, 1, &items(1, 1..101, "old")).unwrap();
    let mut bulk = store.bulk_write::<Item>(1).unwrap();
    for item in items(1, 1..51, "new") {
        bulk.put(&item).unwrap();
    }
    // Enough records for more blocks than the bulk write has.
    store
        .write_blocking(|write| (1_000..1_300).try_for_each(|id| write.put(&item(id, 1, "meanwhile"))))
        .unwrap();
    bulk.commit(|_, _| Ok::<_, Error>(())).unwrap();
    store.write_blocking(|write| write.put(&item(2_000, 1, "after"))).unwrap();
    let all = store.collection::<Item>().ids();
    assert_eq!(all.len(), 51);
    drop(store);
    assert_eq!(place.open().collection::<Item>().ids(), all);
}

#[test]
fn an_abandoned_bulk_write_leaves_no_trace() {
    let place = Place::new();
    let store = place.open();
    replace(&store, 1, &items(1, 1..101, "old")).unwrap();
    let mut bulk = store.bulk_write::<Item>(1).unwrap();
    for item in items(1, 1..3_001, "new") {
        bulk.put(&item).unwrap();
    }
    assert!(matches!(store.bulk_write::<Item>(1), Err(Error::Busy("items"))));
    drop(bulk);
    // The same owner can begin again, and an error at the commit discards the bulk write.
    let mut bulk = store.bulk_write::<Item>(1).unwrap();
    bulk.put(&item(1, 1, "new")).unwrap();
    assert!(bulk.commit(|_, _| Err::<(), _>(Error::Closed)).is_err());
    assert_eq!(store.collection::<Item>().by("name", "old").unwrap().len(), 100);
    drop(store);
    let store = place.open();
    assert_eq!(store.collection::<Item>().by("name", "old").unwrap().len(), 100);
    drop(store);
    assert_eq!(place.check().unwrap().values["items"], 1);
}

#[test]
fn an_id_belongs_to_one_owner_and_occurs_once() {
    let store = Store::temporary(schema()).unwrap();
    replace(&store, 1, &items(1, 1..11, "x")).unwrap();
    let elsewhere = replace(&store, 2, &items(2, 10..12, "x")).unwrap_err();
    assert!(matches!(elsewhere, Error::Taken { index: "id", by: 10, .. }), "{elsewhere}");
    let twice = replace(&store, 3, &[item(20, 3, "x"), item(20, 3, "y")]).unwrap_err();
    assert!(matches!(twice, Error::Taken { index: "id", by: 20, .. }), "{twice}");
    // A single record may move to another owner.
    store.write_blocking(|write| write.put(&item(10, 2, "moved"))).unwrap();
    assert_eq!(store.collection::<Item>().len_of(1), 9);
    assert_eq!(store.collection::<Item>().len_of(2), 1);
}

#[test]
fn a_reader_of_an_owner_that_is_replaced_sees_the_old_records() {
    let store = Store::temporary(schema()).unwrap();
    replace(&store, 1, &items(1, 1..2_001, "old")).unwrap();
    let mut seen = Vec::new();
    store
        .collection::<Item>()
        .for_each_of(1, |it| {
            if seen.is_empty() {
                replace(&store, 1, &items(1, 1..3_001, "new")).unwrap();
                put(&store, [note(1, "and another write")]).unwrap();
            }
            seen.push(it);
        })
        .unwrap();
    assert_eq!(seen, items(1, 1..2_001, "old"));
    assert_eq!(store.collection::<Item>().len(), 3_000);
}

#[test]
fn ids_of_a_bulk_write_are_new_even_when_others_take_some_meanwhile() {
    let store = Store::temporary(schema()).unwrap();
    let mut bulk = store.bulk_write::<Item>(1).unwrap();
    let mut mine = Vec::new();
    for _ in 0..2_500 {
        let id = bulk.next_id().unwrap();
        bulk.put(&item(id, 1, "x")).unwrap();
        mine.push(id);
    }
    let theirs = store
        .write_blocking(|write| {
            let id = write.next_id::<Item>()?;
            write.put(&item(id, 2, "y"))?;
            Ok::<_, Error>(id)
        })
        .unwrap();
    bulk.commit(|_, _| Ok::<_, Error>(())).unwrap();
    assert!(!mine.contains(&theirs));
    assert_eq!(store.collection::<Item>().len(), 2_501);
}

#[test]
fn replaced_values_never_become_current_again_before_they_are_swept() {
    let place = Place::new();
    let store = place.open();
    let names = |name: &str| (1..=300).map(|id| note(id, &format!("{name} {id}"))).collect::<Vec<_>>();
    put(&store, names("first")).unwrap();
    replace(&store, 1, &items(1, 1..501, "first")).unwrap();
    let image = Place::new();
    let mut is_done = false;
    // Nothing is swept while a reader scans an owner.
    store
        .collection::<Item>()
        .for_each_of(1, |_| {
            if std::mem::replace(&mut is_done, true) {
                return;
            }
            put(&store, names("second")).unwrap();
            replace(&store, 1, &items(1, 1..101, "second")).unwrap();
            // Removed, and removed and added again: the older versions must not become visible.
            store
                .write_blocking(|write| {
                    write.remove::<Note>(5)?;
                    write.remove::<Note>(6)?;
                    (1..101).try_for_each(|id| write.remove::<Item>(id).map(drop))
                })
                .unwrap();
            put(&store, [note(6, "third")]).unwrap();
            store.write_blocking(|write| write.put(&item(7, 1, "third"))).unwrap();
            store
                .write_blocking(|write| (1..=250).try_for_each(|id| write.remove::<Note>(id).map(drop)))
                .unwrap();
            put(&store, [note(9, "fourth")]).unwrap();
            copy(place.folder.path(), image.folder.path());
        })
        .unwrap();
    // The copy is the state after a power failure at that moment.
    for (at, found) in [(&place, store), (&image, image.open())] {
        let notes = found.collection::<Note>().ids();
        assert_eq!(notes, std::iter::once(9).chain(251..=300).collect::<Vec<_>>(), "{:?}", at.folder);
        assert_eq!(found.collection::<Note>().get(9).unwrap(), Some(note(9, "fourth")));
        assert_eq!(found.collection::<Note>().get(300).unwrap(), Some(note(300, "second 300")));
        assert_eq!(found.collection::<Item>().all().unwrap(), [item(7, 1, "third")]);
    }
}

#[test]
fn a_bulk_write_wins_over_small_writes_made_while_it_was_staged() {
    let place = Place::new();
    let store = place.open();
    replace(&store, 1, &items(1, 1..501, "first")).unwrap();
    let image = Place::new();
    let mut is_done = false;
    store
        .collection::<Item>()
        .for_each_of(1, |_| {
            if std::mem::replace(&mut is_done, true) {
                return;
            }
            replace(&store, 1, &items(1, 1..301, "second")).unwrap();
            store
                .write_blocking(|write| {
                    write.remove_owner::<Item>(1);
                    Ok::<_, Error>(())
                })
                .unwrap();
            let mut bulk = store.bulk_write::<Item>(1).unwrap();
            for item in items(1, 1..151, "third") {
                bulk.put(&item).unwrap();
            }
            // Older versions are not swept yet, so these blocks get a version above that of the stage.
            store
                .write_blocking(|write| (1..351).try_for_each(|id| write.put(&item(id, 1, "meanwhile"))))
                .unwrap();
            bulk.commit(|_, _| Ok::<_, Error>(())).unwrap();
            copy(place.folder.path(), image.folder.path());
        })
        .unwrap();
    for found in [store, image.open()] {
        assert_eq!(found.collection::<Item>().all().unwrap(), items(1, 1..151, "third"));
    }
}

#[test]
fn a_bulk_write_and_what_it_writes_beside_win_over_large_writes_made_while_it_was_staged() {
    let place = Place::new();
    let store = place.open();
    let names = |name: &str| (1..=300).map(|id| note(id, &format!("{name} {id}"))).collect::<Vec<_>>();
    let remove = |ids: std::ops::Range<u32>| {
        store.write_blocking(move |write| ids.clone().try_for_each(|id| write.remove::<Note>(id).map(drop)))
    };
    replace(&store, 1, &items(1, 1..501, "first")).unwrap();
    replace(&store, 2, &items(2, 1_001..1_301, "first")).unwrap();
    put(&store, names("first")).unwrap();
    let image = Place::new();
    let mut is_done = false;
    // Nothing is swept while a reader scans an owner.
    store
        .collection::<Item>()
        .for_each_of(1, |_| {
            if std::mem::replace(&mut is_done, true) {
                return;
            }
            let mut bulk = store.bulk_write::<Item>(1).unwrap();
            for item in items(1, 1..301, "bulk") {
                bulk.put(&item).unwrap();
            }
            // These get later versions than the stage, and leave values and tombstones under them.
            put(&store, names("meanwhile")).unwrap();
            remove(20..30).unwrap();
            replace(&store, 2, &items(2, 1_001..1_301, "meanwhile")).unwrap();
            let remove_owner = || {
                store.write_blocking(|write| {
                    write.remove_owner::<Item>(1);
                    Ok::<_, Error>(())
                })
            };
            remove_owner().unwrap();
            store
                .write_blocking(|write| (1..301).try_for_each(|id| write.put(&item(id, 1, "meanwhile"))))
                .unwrap();
            remove_owner().unwrap();
            bulk.commit(|write, _| {
                (1..11).try_for_each(|id| write.put(&note(id, &format!("bulk {id}"))))?;
                (11..20).try_for_each(|id| write.remove::<Note>(id).map(drop))?;
                (20..25).try_for_each(|id| write.put(&note(id, &format!("bulk {id}"))))?;
                write.put(&item(1_001, 2, "bulk"))?;
                write.put(&item(5, 1, "changed"))?;
                write.remove::<Item>(1_002).map(drop)
            })
            .unwrap();
            copy(place.folder.path(), image.folder.path());
        })
        .unwrap();
    // The copy is the state after a power failure at that moment.
    for found in [store, image.open()] {
        let notes: Vec<_> = found.collection::<Note>().all().unwrap();
        let named = |ids: std::ops::Range<u32>, name: &'static str| {
            ids.map(move |id| note(id, &format!("{name} {id}")))
        };
        let expected: Vec<_> =
            named(1..11, "bulk").chain(named(20..25, "bulk")).chain(named(30..301, "meanwhile")).collect();
        assert_eq!(notes, expected);
        let mut expected = items(1, 1..301, "bulk");
        expected[4].name = "changed".to_owned();
        expected.push(item(1_001, 2, "bulk"));
        expected.extend(items(2, 1_003..1_301, "meanwhile"));
        assert_eq!(found.collection::<Item>().all().unwrap(), expected);
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => {
                std::fs::create_dir(&target).unwrap();
                copy(&entry.path(), &target);
            }
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}
