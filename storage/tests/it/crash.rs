//! A writing process is killed at arbitrary moments: all answered writes are present, and no write is partly present.
//!
//! *Dramatis personae*: the *child*, this same binary, writes and prints each answered round; the *test* kills it and
//! reads the store.

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use storage::{Error, Store};

use crate::support::{Item, Note, Place, item, note, replace, schema};

/// Environment variable with the folder of the store.
const FOLDER: &str = "HEADWATER_CRASH_FOLDER";
/// Ids of the notes of one large write; nothing else uses them.
const LARGE: std::ops::Range<u32> = 10_000..10_250;
const ITEMS: u32 = 2_500;

/// Runs round `n` of the child: a small write to two collections, a large write, or a bulk write.
fn write_round(store: &Store, n: u32) -> Result<(), Error> {
    let round = n.to_string();
    match n % 5 {
        3 => {
            let name = round.clone();
            store.write_blocking(move |write| {
                LARGE.clone().try_for_each(|id| write.put(&note(id, &format!("{name} {id}"))))?;
                write.put(&note(3, &name))
            })
        }
        4 => {
            let items: Vec<_> = (0..ITEMS).map(|at| item(100_000 + at, 1, &round)).collect();
            let mut bulk = store.bulk_write::<Item>(1)?;
            items.iter().try_for_each(|it| bulk.put(it))?;
            bulk.commit(move |write, _| write.put(&note(4, &round)))
        }
        other => store.write_blocking(move |write| {
            write.put(&note(other, &round))?;
            write.put(&item(other + 1, 2, &round))?;
            // Each round adds and removes a record.
            write.remove::<Note>(100 + n % 7)?;
            write.put(&note(200 + n % 50, &format!("row {n}")))
        }),
    }
}

#[test]
#[ignore = "started as a child process by the other tests of this module"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = PathBuf::from(folder);
    let store = Store::open(&folder.join("store"), &folder.join("key"), schema()).unwrap();
    let first = latest(&store) + 1;
    let mut out = std::io::stdout();
    for n in first.. {
        write_round(&store, n).unwrap();
        writeln!(out, "answered {n}").unwrap();
        out.flush().unwrap();
    }
}

/// Returns the last round with a record in the store.
fn latest(store: &Store) -> u32 {
    let notes = store.collection::<Note>();
    (0..5).filter_map(|id| notes.get(id).unwrap()?.name.parse().ok()).max().unwrap_or(0)
}

/// Starts the child, kills it after a delay, and returns its last answered round.
fn kill_after(folder: &Path, delay: Duration) -> u32 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        let answered = |line: String| line.rsplit_once("answered ")?.1.parse::<u32>().ok();
        lines.lines().map_while(Result::ok).filter_map(answered).last().unwrap_or(0)
    });
    std::thread::sleep(delay);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

fn verify(store: &Store, answered: u32) {
    let notes = store.collection::<Note>();
    let items = store.collection::<Item>();
    let named = |id: u32| notes.get(id).unwrap().and_then(|it| it.name.parse::<u32>().ok());
    let found = latest(store);
    assert!(found >= answered, "round {answered} was answered, the last round in the store is {found}");
    for kind in 0..5 {
        // The last answered round of each kind, or a later one.
        let due = (1..=answered).rev().find(|n| n % 5 == kind);
        assert!(named(kind) >= due, "{due:?} was answered, the store has {:?}", named(kind));
    }
    for id in 0..3 {
        let other = items.get(id + 1).unwrap().map(|it| it.name);
        assert_eq!(other, notes.get(id).unwrap().map(|it| it.name), "a small write is partly present");
    }
    let large: Vec<_> = LARGE.filter_map(|id| notes.get(id).unwrap()).collect();
    if let Some(round) = named(3) {
        let all: Vec<_> = LARGE.map(|id| note(id, &format!("{round} {id}"))).collect();
        assert_eq!(large, all, "a large write is partly present");
    } else {
        assert!(large.is_empty());
    }
    let mut bulk = Vec::new();
    items.for_each_of(1, |it| bulk.push(it)).unwrap();
    if let Some(round) = named(4) {
        let all: Vec<_> = (0..ITEMS).map(|at| item(100_000 + at, 1, &round.to_string())).collect();
        assert_eq!(bulk, all, "a bulk write is partly present");
    } else {
        assert!(bulk.is_empty());
    }
    for it in notes.all().unwrap() {
        assert_eq!(notes.by("name", &it.name).unwrap(), [it]);
    }
}

fn rounds(n: u64, seed: u64) {
    let place = Place::new();
    drop(place.open());
    let mut total = 0;
    for round in 0..n {
        // Delays spread over the duration of a child's rounds, including its start.
        let delay = Duration::from_millis(60 + (round * 7919 + seed * 104_729) % 700);
        let answered = kill_after(place.folder.path(), delay);
        let store = place.open();
        verify(&store, answered);
        total = total.max(answered);
        // The store accepts further writes.
        replace(&store, 9, &[item(1_000_000, 9, "after")]).unwrap();
    }
    assert!(total > 0, "the child never wrote anything");
    let report = place.check().unwrap();
    assert!(report.is_ok(), "{report:?}");
}

#[test]
fn a_killed_process_loses_no_answered_write() {
    rounds(4, 1);
}

mod slow {
    #[test]
    fn fifty_killed_processes_lose_no_answered_write() {
        super::rounds(50, 2);
    }
}
