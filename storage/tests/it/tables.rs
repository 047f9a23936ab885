//! Tables, stamps and fingerprints.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use storage::{ChangeMessage, Error, Record, Schema, Sharing, Store, Table};
use tokio::time::Instant;

use crate::support::{Item, Note, Place, item, note, put, replace, schema};

/// Checks that the table equals the collection.
#[track_caller]
fn agrees(table: &Table<Note>, store: &Store) {
    let notes = store.collection::<Note>();
    let all = notes.all().unwrap();
    assert!(table.iter().map(|it| &**it).eq(&all));
    assert_eq!((table.len(), table.is_empty()), (all.len(), all.is_empty()));
    for tag in 0..3 {
        assert!(table.by("tag", [tag]).map(|it| &**it).eq(&notes.by("tag", [tag]).unwrap()));
    }
    for it in &all {
        assert_eq!(table.get(it.id).map(|it| &**it), Some(it));
        assert_eq!(table.one_by("name", &it.name).map(|it| it.id), Some(it.id));
    }
}

#[test]
fn a_table_contains_a_write_before_the_write_is_answered() {
    let store = Store::temporary(schema()).unwrap();
    put(&store, (1..=600).map(|id| note(id, &id.to_string()))).unwrap();
    let view = store.table::<Note>().unwrap();
    agrees(&view.load(), &store);
    let before = view.load();

    put(&store, [note(5, "five"), note(1_000, "new")]).unwrap();
    store.write_blocking(|write| write.remove::<Note>(7).map(drop)).unwrap();
    let after = view.load();
    agrees(&after, &store);
    assert_eq!(after.get(5).unwrap().name, "five");
    assert!(after.one_by("name", "5").is_none() && after.get(7).is_none());
    // A loaded table does not change, and unchanged records are shared instead of copied.
    assert_eq!((before.len(), &*before.get(5).unwrap().name), (600, "5"));
    assert!(Arc::ptr_eq(before.get(6).unwrap(), after.get(6).unwrap()));
}

#[test]
fn a_table_follows_a_write_that_is_too_large_to_list_its_ids() {
    let store = Store::temporary(schema()).unwrap();
    put(&store, (1..=3_000).map(|id| note(id, &id.to_string()))).unwrap();
    let view = store.table::<Note>().unwrap();
    let before = view.load();
    store
        .write_blocking(|write| {
            (1..=1_500).try_for_each(|id| write.remove::<Note>(id).map(drop))?;
            (4_000..5_000).try_for_each(|id| write.put(&note(id, &id.to_string())))
        })
        .unwrap();
    agrees(&view.load(), &store);
    assert!(Arc::ptr_eq(before.get(2_000).unwrap(), view.load().get(2_000).unwrap()));
}

#[test]
fn a_table_is_unchanged_by_failed_writes_and_writes_to_other_collections() {
    let store = Store::temporary(schema()).unwrap();
    put(&store, [note(1, "one")]).unwrap();
    let view = store.table::<Note>().unwrap();
    let before = view.load();
    store.write_blocking(|write| write.put(&item(1, 1, "one"))).unwrap();
    let refused: Result<(), _> = store.write_blocking(|write| {
        write.put(&note(2, "two"))?;
        Err(Error::Closed)
    });
    assert!(refused.is_err());
    assert!(Arc::ptr_eq(&before, &view.load()));
    put(&store, [note(2, "two")]).unwrap();
    assert_eq!(view.load().len(), 2);
}

#[test]
fn a_stamp_changes_with_its_record_and_survives_reopening() {
    let place = Place::new();
    let store = place.open();
    let stamp = |store: &Store, id| store.collection::<Note>().stamp(id);
    put(&store, [note(1, "one"), note(2, "two")]).unwrap();
    let first = stamp(&store, 1);
    assert!(first.is_some() && stamp(&store, 3).is_none());
    put(&store, [note(2, "another")]).unwrap();
    assert_eq!(stamp(&store, 1), first);
    put(&store, [note(1, "changed")]).unwrap();
    let second = stamp(&store, 1);
    assert_ne!(second, first);
    store.write_blocking(|write| write.remove::<Note>(1).map(drop)).unwrap();
    assert_eq!(stamp(&store, 1), None);
    put(&store, [note(1, "changed")]).unwrap();
    let third = stamp(&store, 1);
    assert!(third.is_some() && third != second && third != first);
    // More than one slice.
    put(&store, (1..=300).map(|id| note(id, &format!("many {id}")))).unwrap();
    let fourth = stamp(&store, 1);
    assert_ne!(fourth, third);
    store.compact().unwrap();
    let version = store.version();
    drop(store);
    let store = place.open();
    assert_eq!((stamp(&store, 1), store.version()), (fourth, version));
}

#[test]
fn a_stamp_of_a_paged_record_changes_with_its_block() {
    let store = Store::temporary(schema()).unwrap();
    let stamp = |id| store.collection::<Item>().stamp(id);
    replace(&store, 1, &(1..=250).map(|id| item(id, 1, "x")).collect::<Vec<_>>()).unwrap();
    let (first, last) = (stamp(1), stamp(250));
    assert!(first.is_some() && stamp(251).is_none());
    store.write_blocking(|write| write.put(&item(1, 1, "y"))).unwrap();
    assert_ne!(stamp(1), first);
    assert_eq!(stamp(250), last);
    replace(&store, 1, &(1..=250).map(|id| item(id, 1, "x")).collect::<Vec<_>>()).unwrap();
    assert_ne!(stamp(250), last);
}

#[test]
fn a_fingerprint_changes_with_any_record_of_the_owner_and_survives_reopening() {
    let place = Place::new();
    let store = place.open();
    let of = |store: &Store, owner| store.collection::<Item>().fingerprint_of(owner);
    let mut seen = vec![of(&store, 1)];
    assert_eq!(of(&store, 1), of(&store, 2));
    let many = (1..=350).map(|id| item(id, 1, "x")).collect::<Vec<_>>();
    type Step = Box<dyn Fn(&Store)>;
    let steps: [Step; 6] = [
        Box::new(move |store| replace(store, 1, &many).unwrap()),
        Box::new(|store| store.write_blocking(|write| write.put(&item(7, 1, "y"))).unwrap()),
        // Removes the last block, and changes nothing else.
        Box::new(|store| {
            store
                .write_blocking(|write| (301..=350).try_for_each(|id| write.remove::<Item>(id).map(drop)))
                .unwrap();
        }),
        Box::new(|store| store.write_blocking(|write| write.put(&item(301, 1, "x"))).unwrap()),
        // Moves a record to another owner.
        Box::new(|store| store.write_blocking(|write| write.put(&item(20, 2, "x"))).unwrap()),
        Box::new(|store| store.write_blocking(|write| write.put(&item(20, 1, "x"))).unwrap()),
    ];
    for (n, step) in steps.iter().enumerate() {
        step(&store);
        let now = of(&store, 1);
        assert!(!seen.contains(&now), "step {n} produced an earlier fingerprint");
        seen.push(now);
    }
    put(&store, [note(1, "of another collection")]).unwrap();
    store.write_blocking(|write| write.put(&item(900, 3, "of another owner"))).unwrap();
    assert_eq!(of(&store, 1), *seen.last().unwrap());
    drop(store);
    let store = place.open();
    assert_eq!(of(&store, 1), *seen.last().unwrap());
    store
        .write_blocking(|write| {
            write.remove_owner::<Item>(1);
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!(of(&store, 1), seen[0], "differs from an owner without records");
}

/// While set, texts that begin with `!` cannot be read.
static IS_UNREADABLE: AtomicBool = AtomicBool::new(false);

fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    match IS_UNREADABLE.load(Ordering::SeqCst) && text.starts_with('!') {
        true => Err(serde::de::Error::custom("unreadable")),
        false => Ok(text),
    }
}

#[derive(Serialize, Deserialize)]
struct Permission {
    id: u32,
    #[serde(deserialize_with = "text")]
    text: String,
}

impl Record for Permission {
    const COLLECTION: &'static str = "permissions";
    const SHARING: Sharing = Sharing::Local;
    const GRANTS_ACCESS: bool = true;

    fn id(&self) -> u32 {
        self.id
    }
}

#[derive(Serialize, Deserialize)]
struct Label {
    id: u32,
    #[serde(deserialize_with = "text")]
    text: String,
}

impl Record for Label {
    const COLLECTION: &'static str = "labels";
    const SHARING: Sharing = Sharing::Local;

    fn id(&self) -> u32 {
        self.id
    }
}

#[test]
fn a_permission_that_cannot_be_read_after_a_commit_is_absent_until_it_can() {
    let store = Store::temporary(Schema::new().with::<Permission>().with::<Label>()).unwrap();
    let put = |id: u32, text: &'static str| {
        store.write_blocking(move |write| {
            write.put(&Permission { id, text: text.to_owned() })?;
            write.put(&Label { id, text: text.to_owned() })
        })
    };
    put(1, "may watch everything").unwrap();
    put(2, "may watch news").unwrap();
    let (permissions, labels) = (store.table::<Permission>().unwrap(), store.table::<Label>().unwrap());
    let shown = |id: u32| {
        let (permission, label) = (permissions.load(), labels.load());
        (permission.get(id).map(|it| it.text.clone()), label.get(id).map(|it| it.text.clone()))
    };
    let both = |text: &str| (Some(text.to_owned()), Some(text.to_owned()));

    IS_UNREADABLE.store(true, Ordering::SeqCst);
    put(1, "!may watch nothing").unwrap();
    assert_eq!(shown(1), (None, Some("may watch everything".to_owned())));
    assert_eq!(shown(2), both("may watch news"));

    let mut changes = store.changes();
    IS_UNREADABLE.store(false, Ordering::SeqCst);
    let deadline = Instant::now() + Duration::from_secs(60);
    while shown(1) != both("!may watch nothing") {
        assert!(Instant::now() < deadline, "the tables do not follow");
        std::thread::sleep(Duration::from_millis(10));
    }
    // Those who follow the tables learn of it.
    let changed = std::iter::from_fn(|| changes.try_next()).next();
    assert!(matches!(changed, Some(ChangeMessage::Changed(it)) if it.ids("permissions").is_some()));
}
