//! Tests of the files of a history.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use domain::history::block::{Block, Resolution};
use domain::history::{HistorySample, HistorySubject};
use domain::ids::{ChannelId, StreamId, UserId};
use tempfile::TempDir;

use super::files::{HistoryFiles, RingFile};

const NEWS: HistorySubject = HistorySubject::Channel(ChannelId(7));
const ANNA: HistorySubject = HistorySubject::User(UserId(3));
const BEN: HistorySubject = HistorySubject::User(UserId(4));
/// A whole hour, in seconds since 1970.
const HOUR: i64 = 500_000 * 3_600;

/// Returns the block of a step in which a channel and two users got this many bytes.
fn block(start: i64, bytes: u64) -> Block {
    let mut block = Block::new(start, Resolution::FINE);
    let sample = HistorySample { seconds: 300, bytes_out: bytes, viewers_max: 2, ..HistorySample::default() };
    for subject in [HistorySubject::Gateway, NEWS, ANNA, BEN] {
        block.add(subject, &sample, 10);
    }
    block
}

fn files() -> (TempDir, HistoryFiles) {
    let folder = TempDir::new().unwrap();
    let files = HistoryFiles::new(&folder.path().join("history"));
    (folder, files)
}

/// Returns the bytes that a file has of a subject at these times; `None` where nothing is known.
fn read<const N: usize>(file: &RingFile, subject: HistorySubject, starts: [i64; N]) -> [Option<u64>; N] {
    let mut found = [None; N];
    let mut note = |block: Block| {
        let at = starts.iter().position(|it| *it == block.start).unwrap();
        found[at] = block.sample(subject).map(|it| it.bytes_out);
    };
    file.read(&mut starts.into_iter(), &mut note).unwrap();
    found
}

fn size_of(folder: &Path, name: &str) -> u64 {
    fs::metadata(folder.join("history").join(name)).unwrap().len()
}

#[test]
fn a_file_has_a_fixed_size_and_the_newest_steps() {
    let (folder, files) = files();
    let span = Resolution::FINE.span_seconds();
    for (start, bytes) in [(HOUR, 1), (HOUR + 300, 2), (HOUR + span, 3)] {
        files.shared.add(&block(start, bytes)).unwrap();
    }
    let starts = [HOUR, HOUR + 300, HOUR + span];
    assert_eq!(read(&files.shared.fine, NEWS, starts), [None, Some(2), Some(3)]);
    assert_eq!(size_of(folder.path(), "gateway-5m.ring"), 576 * 24_576);
    assert_eq!(read(&files.shared.fine, ANNA, [HOUR + 300]), [Some(0)], "users have files of their own");
}

#[test]
fn streams_have_files_of_their_own_within_their_size() {
    let (folder, files) = files();
    let stream = HistorySubject::Stream(StreamId(5));
    let mut both = block(HOUR, 4);
    for id in 1..=400 {
        let sample = HistorySample { seconds: 300, bytes_out: id.into(), ..HistorySample::default() };
        both.add(HistorySubject::Stream(StreamId(id)), &sample, 1_000);
    }
    let losses = HistorySample { losses: 1, ..HistorySample::default() };
    both.add(stream, &losses, 1_000);
    files.shared.add(&both).unwrap();
    files.streams.add(&both).unwrap();
    files.streams.close_hours(HOUR + 3_600).unwrap();
    assert_eq!(files.with(stream).fine.resolution, Resolution::FINE);
    for file in [&files.streams.fine, &files.streams.coarse] {
        assert_eq!(read(file, stream, [HOUR]), [Some(5)]);
        assert_eq!(
            read(file, HistorySubject::Stream(StreamId(6)), [HOUR]),
            [None],
            "it was not one of the busiest"
        );
    }
    assert_eq!(read(&files.streams.fine, NEWS, [HOUR]), [Some(0)]);
    let sizes = ["streams-5m.ring", "streams-1h.ring"].map(|it| size_of(folder.path(), it));
    assert_eq!(sizes, [576 * 16_384, 1_440 * 16_384]);
    assert_eq!(size_of(folder.path(), "gateway-5m.ring"), 576 * 24_576, "not larger than without streams");
}

#[test]
fn two_writes_of_one_step_are_added_as_around_a_restart() {
    let (_folder, files) = files();
    files.shared.add(&block(HOUR, 5)).unwrap();
    files.shared.add(&block(HOUR, 6)).unwrap();
    assert_eq!(read(&files.shared.fine, NEWS, [HOUR]), [Some(11)]);
}

#[test]
fn hours_that_have_ended_are_closed_once_also_after_a_pause() {
    let (_folder, files) = files();
    for step in 0..18 {
        files.shared.add(&block(HOUR + step * 300, 10)).unwrap();
    }
    // Half an hour is not closed yet.
    for now in [HOUR + 5_400, HOUR + 5_400, HOUR + 40 * 3_600, HOUR + 40 * 3_600] {
        files.shared.close_hours(now).unwrap();
    }
    let hours = [HOUR, HOUR + 3_600, HOUR + 7_200];
    assert_eq!(read(&files.shared.coarse, NEWS, hours), [Some(120), Some(60), None]);
}

#[test]
fn a_torn_block_costs_its_own_step_only() {
    let (folder, files) = files();
    for step in 0..3 {
        files.shared.add(&block(HOUR + step * 300, 10)).unwrap();
    }
    let path = folder.path().join("history/gateway-5m.ring");
    let place = Resolution::FINE.place(HOUR + 300) as u64 * 24_576;
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(&[0; 40], place + 20).unwrap();
    files.shared.check().unwrap();
    let starts = [HOUR, HOUR + 300, HOUR + 600];
    assert_eq!(read(&files.shared.fine, NEWS, starts), [Some(10), None, Some(10)]);
    files.shared.add(&block(HOUR + 300, 4)).unwrap();
    assert_eq!(read(&files.shared.fine, NEWS, starts), [Some(10), Some(4), Some(10)]);
}

#[test]
fn a_file_of_other_content_is_started_anew_and_a_shorter_one_keeps_its_blocks() {
    let (folder, files) = files();
    let path = folder.path().join("history/gateway-5m.ring");
    fs::create_dir(folder.path().join("history")).unwrap();
    for content in [&b"not a history"[..], &[7; 100_000]] {
        fs::write(&path, content).unwrap();
        files.shared.check().unwrap();
        assert!(!path.exists());
    }
    let first = (0..).find(|it| Resolution::FINE.place(HOUR + it * 300) == 0).unwrap() * 300 + HOUR;
    files.shared.add(&block(first, 8)).unwrap();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(30_000).unwrap();
    files.shared.check().unwrap();
    files.shared.add(&block(first + 300, 9)).unwrap();
    assert_eq!(read(&files.shared.fine, NEWS, [first, first + 300]), [Some(8), Some(9)]);
}

#[test]
fn removed_users_and_old_days_leave_no_trace_in_the_files() {
    let (folder, files) = files();
    for start in [HOUR, HOUR + 300] {
        files.users.add(&block(start, 0x5a5a_5a5a_5a5a)).unwrap();
    }
    files.users.close_hours(HOUR + 3_600).unwrap();
    let is_kept = |start, subject| match subject {
        HistorySubject::User(UserId(id)) => id == 4 && start > HOUR,
        _ => true,
    };
    files.users.retain(&is_kept).unwrap();
    let starts = [HOUR, HOUR + 300];
    assert_eq!(read(&files.users.fine, ANNA, starts), [Some(0), Some(0)]);
    assert_eq!(read(&files.users.fine, BEN, starts), [Some(0), Some(0x5a5a_5a5a_5a5a)]);
    assert_eq!(read(&files.users.coarse, BEN, [HOUR]), [Some(0)]);
    let bytes = fs::read(folder.path().join("history/users-5m.ring")).unwrap();
    let n_left = bytes.windows(6).filter(|it| *it == [0x5a; 6]).count();
    assert_eq!(n_left, 3, "that of the gateway twice, and that of one user");
    files.users.remove().unwrap();
    files.users.remove().unwrap();
    assert!(!folder.path().join("history/users-5m.ring").exists());
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_and_no_panic() {
    let (folder, files) = files();
    fs::write(folder.path().join("history"), "a file in its place").unwrap();
    assert!(files.shared.add(&block(HOUR, 1)).is_err());
    assert!(files.shared.fine.read(&mut [HOUR].into_iter(), &mut |_| ()).is_err());
}
