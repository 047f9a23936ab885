//! What `headwater check` and `headwater store salvage` say, and when they refuse.

use std::fs;
use std::path::{Path, PathBuf};

use storage::{Error, Schema, Store};

use crate::support::{Credential, Item, Note, Place, item, note, put, replace, schema};

fn filled() -> Place {
    let place = Place::new();
    let store = place.open();
    put(&store, (1..=20).map(|id| note(id, &id.to_string()))).unwrap();
    replace(&store, 1, &(1..=250).map(|id| item(id, 1, "x")).collect::<Vec<_>>()).unwrap();
    store.write_blocking(|write| write.put(&Credential { id: 1, password: "hunter2".to_owned() })).unwrap();
    place
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path()).collect();
    found.sort();
    found
}

/// What both say; neither makes a file.
#[track_caller]
fn refused(place: &Place) -> [Error; 2] {
    let before = (files(place.folder.path()), files(&place.store()));
    let into = place.folder.path().join("salvaged");
    let both = [place.check().unwrap_err(), place.salvage(&into).unwrap_err()];
    assert_eq!((files(place.folder.path()), files(&place.store())), before, "something was made");
    both
}

#[test]
fn where_there_is_no_store_both_say_so_and_make_nothing() {
    let place = Place::new();
    for error in refused(&place) {
        assert!(matches!(error, Error::NoStore(_)), "{error}");
        assert!(error.to_string().contains("there is no store at"), "{error}");
    }
    fs::create_dir(place.store()).unwrap();
    fs::write(place.store().join("something.txt"), "else").unwrap();
    assert!(refused(&place).iter().all(|it| matches!(it, Error::NoStore(_))));
}

#[test]
fn beside_a_running_server_both_refuse() {
    let place = filled();
    let _store = place.open();
    for error in refused(&place) {
        assert!(matches!(error, Error::AlreadyRunning(_)), "{error}");
    }
}

#[test]
fn without_the_key_file_or_with_another_both_refuse() {
    let place = filled();
    fs::remove_file(place.key()).unwrap();
    for error in refused(&place) {
        assert!(matches!(error, Error::Key(_)) && error.to_string().contains("is missing"), "{error}");
    }
    drop(Store::open(&place.folder.path().join("other"), &place.key(), schema()).unwrap());
    for error in refused(&place) {
        assert!(matches!(error, Error::Key(_)) && error.to_string().contains("does not open"), "{error}");
    }
}

#[test]
fn the_report_of_a_healthy_store_has_its_figures() {
    let place = filled();
    let live_bytes = place.open().statistics().live_bytes;
    let report = place.check().unwrap();
    assert_eq!(report.live_bytes, live_bytes);
    // Sealed ones too.
    assert_eq!(report.records.values().copied().collect::<Vec<_>>(), [1, 250, 20]);
    let text = report.to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], format!("the store at {} is well", place.store().display()));
    assert_eq!(lines[1..4], ["          1 credentials", "        250 items", "         20 notes"]);
    assert!(lines[4].contains(" live in it, it takes ") && lines[4].ends_with(" times"), "{text}");
    assert_eq!(lines.len(), 5);
}

#[test]
fn what_salvage_did_is_told_in_lines() {
    let place = filled();
    let into = place.folder.path().join("salvaged");
    let text = place.salvage(&into).unwrap().to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines,
        [
            format!("what could be read was written into a new store at {}", into.display()).as_str(),
            "          1 credentials",
            "        250 items",
            "         20 notes",
            "start Headwater with the new store and look through it before the old one goes",
        ]
    );
    let store = Store::open(&into, &place.key(), schema()).unwrap();
    assert_eq!((store.collection::<Note>().len(), store.collection::<Item>().len()), (20, 250));
}

#[test]
fn a_collection_that_this_version_does_not_know_is_told_and_left_out_of_what_is_saved() {
    let place = filled();
    let smaller = || Schema::new().with::<Note>().with::<Credential>();
    let report = storage::check(&place.store(), &place.key(), &smaller()).unwrap();
    assert!(
        report.to_string().contains("a collection \"items\" that this version does not know"),
        "{report}"
    );
    assert!(report.to_string().ends_with("`headwater store salvage`\n"), "{report}");
    let into = place.folder.path().join("salvaged");
    let saved = storage::salvage(&place.store(), &into, &place.key(), &smaller()).unwrap();
    assert!(saved.to_string().contains("items are not known to this version and were left out"), "{saved}");
    assert_eq!(Store::open(&into, &place.key(), smaller()).unwrap().collection::<Note>().len(), 20);
}
