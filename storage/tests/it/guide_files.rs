//! A process that writes guides is killed at arbitrary moments: the guide of the next start is the last one that was
//! committed, and complete.
//!
//! *Dramatis personae*: the *child*, this same binary, writes guides and prints each one that is in use; the *test* kills
//! it and reads the guide.

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use domain::guide::state::GuideState;
use domain::ids::{GuideChannelId, GuideSourceId};
use storage::Store;
use storage::guide::{GuideFile, GuideFiles};
use storage::records::schema;

/// Environment variable with the data folder.
const FOLDER: &str = "HEADWATER_GUIDE_FOLDER";
const SOURCE: GuideSourceId = GuideSourceId(1);
/// 2026-01-01.
const BEGIN: i64 = 1_767_225_600;
const CHANNELS: u32 = 20;
const PER_CHANNEL: i64 = 400;

fn open(folder: &Path) -> (Store, GuideFiles) {
    let store = Store::open(&folder.join("store"), &folder.join("key"), schema()).unwrap();
    let files = GuideFiles::from_store(&store).unwrap();
    (store, files)
}

fn state(store: &Store) -> Option<GuideState> {
    store.collection::<GuideState>().get(SOURCE.0).unwrap()
}

/// Writes a guide and takes it into use, like a refresh.
fn refresh(store: &Store, files: &GuideFiles, round: u32) {
    let mut writer = files.begin(SOURCE).unwrap();
    // Not in the order of the file.
    for at in (0..PER_CHANNEL).rev() {
        for channel in 1..=CHANNELS {
            let start = BEGIN + 600 * at;
            let inner = format!("<title>Round {round}</title><desc>{}</desc>", "word ".repeat(40));
            writer.add(GuideChannelId(channel), start, start + 600, &inner).unwrap();
        }
    }
    let finished = writer.finish().unwrap();
    let mut state = GuideState::new(SOURCE);
    (state.generation, state.message) = (finished.generation(), round.to_string());
    store.write_blocking(move |write| write.put(&state)).unwrap();
    files.install(finished);
}

#[test]
#[ignore = "started as a child process by the other test of this module"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let (store, files) = open(&PathBuf::from(folder));
    let first = round_of(&store) + 1;
    let mut out = std::io::stdout();
    for round in first.. {
        refresh(&store, &files, round);
        writeln!(out, "in use {round}").unwrap();
        out.flush().unwrap();
    }
}

/// Returns the round that the state names.
fn round_of(store: &Store) -> u32 {
    state(store).map_or(0, |it| it.message.parse().unwrap())
}

/// Starts the child, kills it after a delay, and returns the last round that was in use. The delay begins with the start
/// of the child, or with its first round.
fn kill_after(folder: &Path, delay: Duration, is_after_first_round: bool) -> u32 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "guide_files::child", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    let (sender, rounds) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let used = |line: String| line.rsplit_once("in use ")?.1.parse::<u32>().ok();
        for round in lines.lines().map_while(Result::ok).filter_map(used) {
            sender.send(round).unwrap();
        }
    });
    let first = is_after_first_round.then(|| rounds.recv().expect("the child writes a guide"));
    std::thread::sleep(delay);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
    rounds.try_iter().last().or(first).unwrap_or(0)
}

/// Checks that a file is the complete guide of one round.
fn verify(file: &GuideFile, round: u32) {
    assert_eq!(file.n_programmes(), u64::from(CHANNELS) * PER_CHANNEL as u64);
    let title = format!("<title>Round {round}</title>");
    for channel in 1..=CHANNELS {
        let found = file.programmes(GuideChannelId(channel), i64::MIN, i64::MAX).unwrap();
        assert_eq!(found.len(), PER_CHANNEL as usize);
        assert!(
            found.iter().all(|it| it.inner.starts_with(&title)),
            "the guide is not that of round {round}"
        );
    }
}

#[test]
fn a_killed_process_leaves_the_last_committed_guide_complete() {
    let folder = tempfile::tempdir().unwrap();
    let mut last = 0;
    for round in 0..6u64 {
        // Delays spread over the duration of a child's rounds, including its start.
        let delay = Duration::from_millis(100 + round * 7919 % 600);
        let used = kill_after(folder.path(), delay, round % 2 == 1);
        let (store, files) = open(folder.path());
        let found = round_of(&store);
        assert!(found >= used.max(last), "round {used} was in use, the state names {found}");
        last = found;
        match files.file(SOURCE) {
            Some(file) => verify(&file, found),
            None => assert_eq!(found, 0),
        }
        assert_eq!(files.damaged(), []);
        // Whatever was unfinished is gone.
        let n_files = std::fs::read_dir(folder.path().join("guides")).unwrap().count();
        assert_eq!(n_files, usize::from(found > 0));
    }
    assert!(last > 0, "no guide was in use");
}
