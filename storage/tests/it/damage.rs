//! What the store says when its files are not what they were, and what can be saved then.

use std::fs;
use std::os::unix::fs::FileExt;

use proptest::prelude::*;
use storage::{Error, Store};

use crate::support::{Item, Note, Place, item, note, put, replace, schema};

const NOTES: u32 = 400;
const ITEMS: u32 = 1_500;

fn filled() -> Place {
    let place = Place::new();
    let store = place.open();
    for start in (1..=NOTES).step_by(50) {
        put(&store, (start..start + 50).map(|id| note(id, &format!("note {id}")))).unwrap();
    }
    replace(&store, 1, &(0..ITEMS).map(|at| item(1 + at, 1, &format!("item {at}"))).collect::<Vec<_>>())
        .unwrap();
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

/// The store says in words that it is damaged.
#[track_caller]
fn refused(place: &Place) -> String {
    match place.try_open() {
        Ok(store) => panic!("it opened, with {} notes", store.collection::<Note>().len()),
        Err(error @ Error::Damaged { .. }) => {
            let words = error.to_string();
            assert!(words.contains("headwater store salvage"), "{words}");
            words
        }
        Err(other) => panic!("another error: {other}"),
    }
}

/// Salvages, opens, and checks that nothing is there that never was. Gives how many notes and items were saved.
fn salvaged(place: &Place) -> (usize, usize) {
    let into = place.folder.path().join("salvaged");
    let report = place.salvage(&into).unwrap();
    if !report.is_saved {
        assert!(!report.problems.is_empty() && !into.exists());
        return (0, 0);
    }
    let store = Store::open(&into, &place.key(), schema()).unwrap();
    let notes = store.collection::<Note>().all().unwrap();
    let items = store.collection::<Item>().all().unwrap();
    assert!(notes.iter().all(|it| it.name == format!("note {}", it.id)));
    assert!(items.iter().all(|it| it.name == format!("item {}", it.id - 1)));
    put(&store, [note(100_000, "it takes writes")]).unwrap();
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
fn an_older_copy_of_the_database_is_noticed() {
    let place = filled();
    let older = fs::read(place.database()).unwrap();
    put(&place.open(), [note(1_000, "later")]).unwrap();
    fs::write(place.database(), older).unwrap();
    assert!(refused(&place).contains("was acknowledged"));
    let report = place.check().unwrap();
    assert!(report.problems.iter().any(|it| it.contains("was acknowledged")), "{report:?}");
}

#[test]
fn a_missing_or_broken_commit_file_is_told_and_everything_can_be_saved() {
    let place = filled();
    fs::write(place.store().join("commit"), "nonsense").unwrap();
    assert!(refused(&place).contains("commit file"));
    fs::remove_file(place.store().join("commit")).unwrap();
    assert!(refused(&place).contains("commit file"));
    assert_eq!(salvaged(&place), (NOTES as usize, ITEMS as usize));
}

#[test]
fn a_database_cut_in_half_is_refused_and_its_first_half_can_be_saved() {
    let place = filled();
    let length = fs::metadata(place.database()).unwrap().len();
    fs::File::options().write(true).open(place.database()).unwrap().set_len(length / 2).unwrap();
    refused(&place);
    assert!(!place.check().unwrap().is_ok());
    salvaged(&place);
}

#[test]
fn a_healthy_store_is_well_and_salvage_takes_all_of_it() {
    let place = filled();
    let report = place.check().unwrap();
    assert!(report.is_ok(), "{report:?}");
    assert_eq!(report.values["notes"], u64::from(NOTES));
    assert_eq!(report.acknowledged["items"], u64::from(ITEMS));
    assert!(report.disk_bytes > report.live_bytes);
    assert_eq!(salvaged(&place), (NOTES as usize, ITEMS as usize));
    assert!(is_as_filled(&place.open()), "checking and saving left the store as it was");
}

#[test]
fn salvage_does_not_write_into_a_store_that_is_there() {
    let (one, other) = (filled(), filled());
    assert!(one.salvage(&other.store()).is_err());
    assert!(is_as_filled(&other.open()));
}

/// What may happen to a file.
#[derive(Debug, Clone)]
enum Harm {
    /// The rest is gone.
    Cut,
    /// The rest is something else.
    Overwrite(u8),
    Flip(u8),
    /// Some KiB of zeros, as a lost write leaves them.
    Hole,
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        Just(Harm::Cut),
        any::<u8>().prop_map(Harm::Overwrite),
        (0u8..8).prop_map(Harm::Flip),
        Just(Harm::Hole)
    ]
}

fn harm_and_open(file: &str, at: f64, harm: &Harm) {
    let place = filled();
    let path = place.database().parent().unwrap().join(file);
    let length = fs::metadata(&path).unwrap().len();
    let at = ((length as f64 * at) as u64).min(length - 1);
    let open = fs::File::options().read(true).write(true).open(&path).unwrap();
    match harm {
        Harm::Cut => open.set_len(at).unwrap(),
        Harm::Overwrite(byte) => open.write_all_at(&vec![*byte; (length - at) as usize], at).unwrap(),
        Harm::Flip(bit) => {
            let mut byte = [0];
            open.read_exact_at(&mut byte, at).unwrap();
            open.write_all_at(&[byte[0] ^ (1 << bit)], at).unwrap();
        }
        Harm::Hole => open.write_all_at(&vec![0; 4096.min((length - at) as usize)], at).unwrap(),
    }
    drop(open);
    match place.try_open() {
        // Nothing that counts was hit.
        Ok(store) => assert!(is_as_filled(&store), "records were lost without a word"),
        Err(Error::Damaged { .. }) => {
            salvaged(&place);
        }
        Err(other) => panic!("not in plain words: {other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 30, ..ProptestConfig::default() })]

    #[test]
    fn a_harmed_database_is_whole_or_refused_and_never_panics(at in 0f64..1.0, harm in harm()) {
        harm_and_open("db", at, &harm);
    }

    #[test]
    fn a_harmed_configuration_of_the_database_is_whole_or_refused(at in 0f64..1.0, harm in harm()) {
        harm_and_open("conf", at, &harm);
    }
}

mod slow {
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 30, ..ProptestConfig::default() })]

        #[test]
        fn a_harmed_database_is_whole_or_refused_two_hundred_times(at in 0f64..1.0, harm in harm()) {
            harm_and_open("db", at, &harm);
        }
    }
}
