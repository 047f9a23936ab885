//! Damaged files: errors when the store opens, and salvage.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use proptest::prelude::*;
use storage::{Error, Store};

use crate::support::{Item, Note, Place, item, note, put, replace, schema};

const NOTES: u32 = 400;
const ITEMS: u32 = 1_500;

/// Creates a store in which every record was written three times, so that damage can bring back older ones.
fn filled() -> Place {
    let place = Place::new();
    for round in ["older", "old", ""] {
        let store = place.open();
        for start in (1..=NOTES).step_by(50) {
            put(&store, (start..start + 50).map(|id| note(id, &format!("{round}note {id}")))).unwrap();
        }
        let items = (0..ITEMS).map(|at| item(1 + at, 1, &format!("{round}item {at}")));
        replace(&store, 1, &items.collect::<Vec<_>>()).unwrap();
    }
    place
}

fn is_as_filled(store: &Store) -> bool {
    store.collection::<Note>().len() == NOTES as usize
        && store.collection::<Item>().len() == ITEMS as usize
        && store
            .collection::<Note>()
            .all()
            .is_ok_and(|it| it.iter().all(|it| it.name == format!("note {}", it.id)))
        && store
            .collection::<Item>()
            .all()
            .is_ok_and(|it| it.iter().all(|it| it.name == format!("item {}", it.id - 1)))
}

/// Checks that the store refuses to open because it is damaged, and returns the error text.
#[track_caller]
fn refused(place: &Place) -> String {
    match place.try_open() {
        Ok(store) => panic!("it opened, with {} notes", store.collection::<Note>().len()),
        Err(error @ Error::Damaged { .. }) => {
            let text = error.to_string();
            assert!(text.contains("headwater store salvage"), "{text}");
            text
        }
        Err(other) => panic!("another error: {other}"),
    }
}

/// Salvages the store, opens the result, and checks that it contains only records that existed. Returns the number of
/// salvaged notes and items.
fn salvaged(place: &Place) -> (usize, usize) {
    let into = place.folder.path().join("salvaged");
    let report = place.salvage(&into).unwrap();
    let may_be_older = report.problems.iter().any(|it| it.contains("removed records may be back"));
    if !report.is_saved {
        assert!(!report.problems.is_empty() && !into.exists());
        return (0, 0);
    }
    let store = Store::open(&into, &place.key(), schema()).unwrap();
    let notes = store.collection::<Note>().all().unwrap();
    let items = store.collection::<Item>().all().unwrap();
    let is_last = |name: &str, last: String| match may_be_older {
        true => name.ends_with(&last),
        false => name == last,
    };
    assert!(notes.iter().all(|it| is_last(&it.name, format!("note {}", it.id))));
    assert!(items.iter().all(|it| is_last(&it.name, format!("item {}", it.id - 1))));
    put(&store, [note(100_000, "accepts writes")]).unwrap();
    (notes.len(), items.len())
}

#[test]
fn a_missing_database_is_never_taken_for_a_new_store() {
    let place = filled();
    let database = place.database();
    fs::rename(&database, place.folder.path().join("away")).unwrap();
    assert!(refused(&place).contains("is missing"));
    fs::remove_dir_all(database.parent().unwrap()).unwrap();
    assert!(refused(&place).contains("is missing"));
    assert!(!place.check().unwrap().is_ok());
}

#[test]
fn an_older_copy_of_the_database_is_detected() {
    let place = filled();
    let older = fs::read(place.database()).unwrap();
    put(&place.open(), [note(1_000, "later")]).unwrap();
    fs::write(place.database(), older).unwrap();
    assert!(refused(&place).contains("was acknowledged"));
    let report = place.check().unwrap();
    assert!(report.problems.iter().any(|it| it.contains("was acknowledged")), "{report:?}");
}

#[test]
fn a_missing_or_broken_commit_file_is_reported_and_all_records_can_be_salvaged() {
    let place = filled();
    fs::write(place.store().join("commit"), "nonsense").unwrap();
    assert!(refused(&place).contains("commit file"));
    fs::remove_file(place.store().join("commit")).unwrap();
    assert!(refused(&place).contains("commit file"));
    assert_eq!(salvaged(&place), (NOTES as usize, ITEMS as usize));
}

#[test]
fn a_truncated_database_is_refused_and_can_be_salvaged() {
    let place = filled();
    // The end of the file is not in use.
    let used = fs::read(place.database()).unwrap().iter().rposition(|byte| *byte != 0).unwrap();
    fs::File::options().write(true).open(place.database()).unwrap().set_len(used as u64 / 2).unwrap();
    refused(&place);
    assert!(!place.check().unwrap().is_ok());
    salvaged(&place);
}

/// Returns the names and contents of all files of the database.
fn files_of_database(place: &Place) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = place.database().parent().unwrap().to_owned();
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.retain(|it| it.is_file());
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

// Holds T-store.3.
#[test]
fn a_start_that_refuses_a_damaged_database_leaves_every_byte_and_every_other_database() {
    for at in [0.02, 0.3, 0.95] {
        let place = filled();
        let another = place.store().join("db-000077");
        fs::create_dir(&another).unwrap();
        let length = fs::metadata(place.database()).unwrap().len();
        let file = fs::File::options().write(true).open(place.database()).unwrap();
        file.write_all_at(&vec![0xa5; 200_000], (length as f64 * at) as u64).unwrap();
        file.set_len(length).unwrap();
        let before = files_of_database(&place);
        for _ in 0..2 {
            match place.try_open() {
                // The damage hit no current record.
                Ok(store) => {
                    assert!(is_as_filled(&store), "records were lost silently");
                    assert!(!another.exists(), "an unused database still exists");
                    break;
                }
                Err(error) => {
                    assert!(matches!(error, Error::Damaged { .. }), "{error}");
                    assert!(files_of_database(&place) == before, "the start changed the damaged database");
                    assert!(another.exists(), "the start removed another database");
                }
            }
        }
    }
}

#[test]
fn a_store_that_was_stopped_properly_is_opened_in_place_and_another_one_on_a_copy() {
    let place = filled();
    assert!(place.database().exists(), "the store was copied");
    // As after a crash: the commit file of the open store.
    let store = place.open();
    let commit = fs::read(place.store().join("commit")).unwrap();
    drop(store);
    fs::write(place.store().join("commit"), commit).unwrap();
    assert!(is_as_filled(&place.open()));
    assert!(!place.database().exists() && place.store().join("db-000002").exists());
    assert!(is_as_filled(&place.open()));
    assert!(place.store().join("db-000002").exists());
}

#[test]
fn an_intact_store_is_ok_and_salvage_copies_all_of_it() {
    let place = filled();
    let report = place.check().unwrap();
    assert!(report.is_ok(), "{report:?}");
    assert_eq!(report.values["notes"], u64::from(NOTES));
    assert_eq!(report.acknowledged["items"], u64::from(ITEMS));
    assert!(report.disk_bytes > report.live_bytes);
    assert_eq!(salvaged(&place), (NOTES as usize, ITEMS as usize));
    assert!(is_as_filled(&place.open()), "check or salvage changed the store");
}

#[test]
fn salvage_does_not_write_into_an_existing_store() {
    let (one, other) = (filled(), filled());
    assert!(one.salvage(&other.store()).is_err());
    assert!(is_as_filled(&other.open()));
}

/// Damage to a file.
#[derive(Debug, Clone)]
enum Damage {
    /// Truncates the file.
    Cut,
    /// Overwrites the rest of the file.
    Overwrite(u8),
    /// Flips one bit.
    Flip(u8),
    /// Writes some KiB of zeros, as after a lost write.
    Hole,
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        Just(Damage::Cut),
        any::<u8>().prop_map(Damage::Overwrite),
        (0u8..8).prop_map(Damage::Flip),
        Just(Damage::Hole)
    ]
}

fn damage_and_open(file: &str, at: f64, damage: &Damage) {
    let place = filled();
    let path = place.database().parent().unwrap().join(file);
    let length = fs::metadata(&path).unwrap().len();
    let at = ((length as f64 * at) as u64).min(length - 1);
    let open = fs::File::options().read(true).write(true).open(&path).unwrap();
    match damage {
        Damage::Cut => open.set_len(at).unwrap(),
        Damage::Overwrite(byte) => open.write_all_at(&vec![*byte; (length - at) as usize], at).unwrap(),
        Damage::Flip(bit) => {
            let mut byte = [0];
            open.read_exact_at(&mut byte, at).unwrap();
            open.write_all_at(&[byte[0] ^ (1 << bit)], at).unwrap();
        }
        Damage::Hole => open.write_all_at(&vec![0; 4096.min((length - at) as usize)], at).unwrap(),
    }
    drop(open);
    match place.try_open() {
        // The damage hit no current record.
        Ok(store) => assert!(is_as_filled(&store), "records were lost silently"),
        Err(Error::Damaged { .. }) => {
            salvaged(&place);
        }
        Err(other) => panic!("unexpected error: {other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 30, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_database_is_complete_or_refused_and_never_panics(at in 0f64..1.0, damage in damage()) {
        damage_and_open("db", at, &damage);
    }

    #[test]
    fn a_damaged_configuration_of_the_database_is_complete_or_refused(at in 0f64..1.0, damage in damage()) {
        damage_and_open("conf", at, &damage);
    }
}

mod night {
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 30, ..ProptestConfig::default() })]

        #[test]
        fn a_damaged_database_is_complete_or_refused_two_hundred_times(at in 0f64..1.0, damage in damage()) {
            damage_and_open("db", at, &damage);
        }
    }
}
