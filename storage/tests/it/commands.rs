//! Reports of `headwater check` and `headwater store salvage`, and the cases that they refuse.

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

/// Returns the errors of both, and checks that neither creates a file.
#[track_caller]
fn refused(place: &Place) -> [Error; 2] {
    let before = (files(place.folder.path()), files(&place.store()));
    let into = place.folder.path().join("salvaged");
    let both = [place.check().unwrap_err(), place.salvage(&into).unwrap_err()];
    assert_eq!((files(place.folder.path()), files(&place.store())), before, "a file was created");
    both
}

#[test]
fn without_a_store_both_report_it_and_create_nothing() {
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
fn both_refuse_while_a_server_is_running() {
    let place = filled();
    let _store = place.open();
    for error in refused(&place) {
        assert!(matches!(error, Error::AlreadyRunning(_)), "{error}");
    }
}

#[test]
fn both_refuse_a_missing_or_wrong_key_file() {
    let place = filled();
    fs::remove_file(place.key()).unwrap();
    for error in refused(&place) {
        assert!(matches!(error, Error::Key(_)) && error.to_string().contains("is missing"), "{error}");
    }
    drop(Store::open(&place.folder.path().join("other"), &place.key(), schema()).unwrap());
    for error in refused(&place) {
        assert!(
            matches!(error, Error::Key(_)) && error.to_string().contains("does not belong to this store"),
            "{error}"
        );
    }
}

#[test]
fn the_report_of_an_intact_store_has_its_sizes_and_counts() {
    let place = filled();
    let live_bytes = place.open().statistics().live_bytes;
    let report = place.check().unwrap();
    assert_eq!(report.live_bytes, live_bytes);
    // Includes encrypted records.
    assert_eq!(report.records.values().copied().collect::<Vec<_>>(), [1, 250, 20]);
    let text = report.to_string();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("store OK; ") && lines[0].contains(" of data, "), "{text}");
    assert!(lines[0].ends_with(" on disk"), "{text}");
    assert_eq!(lines[1], format!("  folder: {}", place.store().display()));
    assert_eq!(lines[2..5], ["          1 credentials", "        250 items", "         20 notes"]);
    assert_eq!(lines.len(), 5);
}

#[test]
fn salvage_reports_what_it_wrote() {
    let place = filled();
    let into = place.folder.path().join("salvaged");
    let text = place.salvage(&into).unwrap().to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines,
        [
            format!("readable records were written to a new store at {}", into.display()).as_str(),
            "          1 credentials",
            "        250 items",
            "         20 notes",
            "start Headwater with the new store and check its contents before deleting the old one",
        ]
    );
    let store = Store::open(&into, &place.key(), schema()).unwrap();
    assert_eq!((store.collection::<Note>().len(), store.collection::<Item>().len()), (20, 250));
}

#[test]
fn salvage_reports_and_leaves_out_an_unknown_collection() {
    let place = filled();
    let smaller = || Schema::new().with::<Note>().with::<Credential>();
    let report = storage::check(&place.store(), &place.key(), &smaller()).unwrap();
    assert!(report.to_string().contains("unknown collection \"items\""), "{report}");
    assert!(report.to_string().ends_with("`headwater store salvage`\n"), "{report}");
    let into = place.folder.path().join("salvaged");
    let salvaged = storage::salvage(&place.store(), &into, &place.key(), &smaller()).unwrap();
    assert!(salvaged.to_string().contains("unknown collection \"items\" was left out"), "{salvaged}");
    assert_eq!(Store::open(&into, &place.key(), smaller()).unwrap().collection::<Note>().len(), 20);
}
