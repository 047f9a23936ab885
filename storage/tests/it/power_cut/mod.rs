//! The power is cut at any moment: all answered writes are present, and no write is partly present. And single system
//! calls fail.
//!
//! *Dramatis personae*: the *child*, this same binary under `strace`, writes and prints each answered round; the
//! *traced disk* knows what was durable at each moment; the *test* opens the store as a power cut would leave it.

mod traced_disk;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use storage::{Error, Store};

use self::traced_disk::{Event, Random, TRACED, TracedDisk, events};
use crate::support::{Item, Note, Place, item, note, replace, schema};

/// Environment variables with the folder of the store, and the number of rounds.
const FOLDER: &str = "HEADWATER_POWER_CUT_FOLDER";
const ROUNDS: &str = "HEADWATER_POWER_CUT_ROUNDS";
const ITEMS: u32 = 220;
const LARGE: std::ops::Range<u32> = 100..220;

/// Returns a text that does not compress, for a round and an id.
fn noise(round: u32, id: u32, length: usize) -> String {
    let mut random = Random((u64::from(round) << 32 | u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..length).map(|_| char::from(b' ' + random.below(95) as u8)).collect()
}

fn long_of(n: u32) -> storage::Result<Note> {
    Ok(note(10 + n % 7, &format!("{n} {}", noise(n, 0, 60_000))))
}

fn bulk_of(n: u32) -> Vec<Item> {
    (0..ITEMS).map(|at| item(100_000 + at, 1, &format!("{n} {}", noise(n, at, 1_500)))).collect()
}

fn large_of(n: u32) -> impl Iterator<Item = Note> {
    LARGE.map(move |id| note(id, &format!("{n} {id} {}", noise(n, id, 2_500))))
}

/// Runs round `n` of the child: a long record, a bulk write, a large write, or a small one in two collections.
fn write_round(store: &Store, n: u32) -> Result<(), Error> {
    let round = note(n % 4, &n.to_string());
    match n % 4 {
        0 => store.write_blocking(move |write| {
            write.put(&long_of(n)?)?;
            write.put(&round)
        }),
        1 => {
            let mut bulk = store.bulk_write::<Item>(1)?;
            bulk_of(n).iter().try_for_each(|it| bulk.put(it))?;
            bulk.commit(move |write, _| write.put(&round))
        }
        2 => store.write_blocking(move |write| {
            large_of(n).try_for_each(|it| write.put(&it))?;
            write.put(&round)
        }),
        _ => store.write_blocking(move |write| {
            write.put(&round)?;
            write.put(&item(1, 2, &n.to_string()))?;
            write.remove::<Note>(300 + n % 7)?;
            write.put(&note(400 + n % 50, &format!("row {n}"))).map(drop)
        }),
    }
}

#[test]
#[ignore = "started as a child process by the other tests of this module"]
fn child() {
    let (Some(folder), Some(rounds)) = (std::env::var_os(FOLDER), std::env::var_os(ROUNDS)) else { return };
    let folder = PathBuf::from(folder);
    let Ok(store) = Store::open(&folder.join("store"), &folder.join("key"), schema()) else { return };
    let mut out = std::io::stdout();
    let first = latest(&store) + 1;
    for n in first..first + rounds.to_str().unwrap().parse::<u32>().unwrap() {
        if write_round(&store, n).is_err() || (n % 9 == 8 && store.compact().is_err()) {
            return;
        }
        writeln!(out, "answered {n}").unwrap();
        out.flush().unwrap();
    }
}

/// Returns the last round with a record in the store.
fn latest(store: &Store) -> u32 {
    (0..4).filter_map(|id| named(store, id)).max().unwrap_or(0)
}

fn named(store: &Store, id: u32) -> Option<u32> {
    store.collection::<Note>().get(id).unwrap()?.name.parse().ok()
}

fn verify(store: &Store, answered: u32) {
    let (notes, items) = (store.collection::<Note>(), store.collection::<Item>());
    for kind in 0..4 {
        let due = (1..=answered).rev().find(|n| n % 4 == kind);
        let found = named(store, kind);
        assert!(found >= due, "{due:?} was answered, the store has {found:?}");
    }
    if let Some(round) = named(store, 0) {
        let long = long_of(round).unwrap();
        assert_eq!(notes.get(long.id).unwrap(), Some(long), "a long record is partly present");
    }
    let mut bulk = Vec::new();
    items.for_each_of(1, |it| bulk.push(it)).unwrap();
    assert!(bulk == named(store, 1).map_or(Vec::new(), bulk_of), "a bulk write is partly present");
    let large: Vec<_> = LARGE.filter_map(|id| notes.get(id).unwrap()).collect();
    let expected: Vec<_> = named(store, 2).map_or(Vec::new(), |n| large_of(n).collect());
    assert!(large == expected, "a large write is partly present");
    assert_eq!(items.get(1).unwrap().map(|it| it.name), notes.get(3).unwrap().map(|it| it.name));
    for it in notes.all().unwrap() {
        assert_eq!(notes.by("name", &it.name).unwrap(), [it]);
    }
}

/// Starts the child under `strace`, and returns what it printed.
fn run_child(folder: &Path, rounds: u32, options: &[&str]) -> String {
    let output = Command::new("strace")
        .args(["-f", "-y", "-qq"])
        .args(options)
        // sled can wait for ever after an error.
        .args(["timeout", "-s", "KILL", "60"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "power_cut::child", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .env(ROUNDS, rounds.to_string())
        .stderr(Stdio::null())
        .output()
        .expect("strace is installed: apt-get install strace");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the last round that a text of the child names.
fn answered_in(text: &str) -> Option<u32> {
    text.lines().filter_map(|line| line.rsplit_once("answered ")?.1.trim().parse().ok()).max()
}

/// Runs the child on a folder, cuts the power at random moments, and opens what is left. Returns a state with writes that
/// were not synced.
fn cut_power(place: &Place, rounds: u32, n_cuts: usize, random: &mut Random) -> Place {
    let mut disk = TracedDisk::new(place.folder.path());
    let mut answered = latest_of(place);
    let trace = place.folder.path().with_extension("trace");
    let trace_option = trace.to_str().unwrap();
    let options = ["-s", "8000000", "-e", &format!("trace={TRACED}"), "-o", trace_option];
    let printed = run_child(place.folder.path(), rounds, &options);
    assert_eq!(answered_in(&printed), Some(answered + rounds), "the child did not end: {printed}");
    let events = events(&String::from_utf8_lossy(&fs::read(&trace).unwrap()));
    fs::remove_file(&trace).unwrap();
    let mut cuts: Vec<usize> = (0..n_cuts).map(|_| random.below(events.len())).collect();
    cuts.sort_unstable();
    let mut left = None;
    for (at, event) in events.iter().enumerate() {
        disk.apply(event);
        if let Event::Ended(_, call) = event
            && let Some(round) = call.printed().as_deref().and_then(answered_in)
        {
            answered = round;
        }
        for number in cuts.iter().filter(|it| **it == at) {
            let after = Place::new();
            let is_random = !(number + answered as usize).is_multiple_of(4);
            disk.write_after_power_cut(after.folder.path(), is_random.then_some(&mut *random));
            match after.try_open() {
                Ok(store) => verify(&store, answered),
                Err(error) => {
                    panic!("round {answered} was answered, event {at} of {}: {error}", events.len())
                }
            }
            // Not closed properly: as the next power cut finds it.
            let again = Place::new();
            disk.write_after_power_cut(again.folder.path(), is_random.then_some(&mut *random));
            left = Some(again);
        }
    }
    // sled reuses a segment of 2 MiB two segments after its values were moved at the earliest.
    let mib = disk.unsynced_max as f64 / (1024.0 * 1024.0);
    assert!(mib < 6.0, "{mib:.1} MiB were written between two syncs");
    left.expect("the power was cut at least once")
}

fn latest_of(place: &Place) -> u32 {
    let is_there = place.store().join("commit").exists();
    let copy = Place::new();
    if is_there {
        TracedDisk::new(place.folder.path()).write_after_power_cut(copy.folder.path(), None);
        return latest(&copy.open());
    }
    0
}

/// Makes one system call of the child fail, opens the store, and checks it.
fn fail_call(call: &str, error: &str, when: u32) {
    let place = Place::new();
    let store = place.open();
    for n in 1..9 {
        write_round(&store, n).unwrap();
    }
    drop(store);
    let inject = format!("inject={call}:error={error}:when={when}");
    let printed = run_child(place.folder.path(), 6, &["-e", "trace=none", "-e", &inject, "-o", "/dev/null"]);
    let store = place.try_open().unwrap_or_else(|it| panic!("after {error} of {call} {when}: {it}"));
    verify(&store, answered_in(&printed).unwrap_or(8));
    replace(&store, 9, &[item(1_000_000, 9, "after")]).unwrap();
}

/// Every kind of call that a write needs.
const CALLS: [(&str, &str); 8] = [
    ("pwrite64", "ENOSPC"),
    ("pwrite64", "EIO"),
    ("write", "ENOSPC"),
    ("fdatasync", "EIO"),
    ("fsync", "EIO"),
    ("ftruncate", "EIO"),
    ("mkdir", "ENOSPC"),
    ("rename", "ENOSPC"),
];

mod slow {
    use super::*;

    // Holds T-store.1.
    #[test]
    fn a_power_cut_loses_no_answered_write() {
        let mut random = Random(0x5eed);
        let first = Place::new();
        let left = cut_power(&first, 10, 10, &mut random);
        // The power fails again, also during the start that follows.
        cut_power(&left, 5, 6, &mut random);
    }

    #[test]
    fn a_full_or_failing_disk_loses_no_answered_write() {
        for (at, (call, error)) in CALLS.into_iter().enumerate() {
            fail_call(call, error, 1 + at as u32 % 3);
        }
    }
}

mod night {
    use super::*;

    #[test]
    fn a_hundred_power_cuts_lose_no_answered_write() {
        // More rounds by hand: `HEADWATER_POWER_CUTS=1000`.
        let n: usize = std::env::var("HEADWATER_POWER_CUTS").ok().map_or(100, |it| it.parse().unwrap());
        let mut random = Random(std::process::id().into());
        let mut place = Place::new();
        for _ in 0..n.div_ceil(25) {
            place = cut_power(&place, 9, 25, &mut random);
        }
    }

    #[test]
    fn every_call_may_fail_a_dozen_times_without_a_loss() {
        for (call, error) in CALLS {
            (1..=12).for_each(|when| fail_call(call, error, when));
        }
    }
}
