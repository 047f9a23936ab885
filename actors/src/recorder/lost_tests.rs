//! Tests of recordings whose files are lost while they are made, with files on the disk and a provider in memory.

use std::fs::{self, File};
use std::path::Path;

use domain::event::EventBody;
use domain::recording::{Gap, Recording, RecordingStatus};
use media::testing::Behaviour;
use media::ts::packet::{Packet, packets};

use super::tests::{HOUR, Studio, check};
use crate::clock::now_ms;
use crate::testing::{channel, stream};

/// A change of a file by somebody else.
type Damage = (&'static str, fn(&Path));

const DAMAGES: [Damage; 6] = [
    ("deleted", |it| fs::remove_file(it).unwrap()),
    ("moved", |it| fs::rename(it, it.with_extension("moved")).unwrap()),
    ("replaced", |it| {
        fs::write(it.with_extension("new"), "other").unwrap();
        fs::rename(it.with_extension("new"), it).unwrap();
    }),
    ("replaced", |it| {
        fs::rename(it, it.with_extension("kept")).unwrap();
        fs::write(it, "other").unwrap();
    }),
    ("truncated", |it| shorten(it, |_| 0)),
    ("truncated", |it| shorten(it, |length| length / 2 + 1)),
];

fn shorten(path: &Path, length: fn(u64) -> u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(length(file.metadata().unwrap().len())).unwrap();
}

/// Returns the gap of lost data with this reason.
fn lost<'a>(it: &'a Recording, reason: &str) -> Option<&'a Gap> {
    it.gaps.iter().find(|it| it.is_lost && it.reason.contains(reason))
}

/// Records channel 1. No other recording takes the name of its file when that is free again.
async fn record(studio: &Studio, id: u32) {
    let now = now_ms();
    studio.record_channel(1, id, now..now + HOUR, |it| it.channel_name = format!("News {id}")).await;
}

/// Sets the end of a recording to this moment, and returns it once its end is reported.
async fn end(studio: &Studio, id: u32) -> Recording {
    studio.change(id, |it| it.end = now_ms()).await;
    let is_done =
        |it: &Recording| it.status.is_final() && it.file.as_ref().is_none_or(|it| it.ended_at.is_some());
    Recording::clone(&*studio.until(id, is_done).await)
}

/// Returns the size and whether it was interrupted, for each reported end of a recording.
fn ends(studio: &Studio, id: u32) -> Vec<(u64, bool)> {
    let recent = studio.scenario.system.events().recent();
    let ends = recent.iter().filter_map(|it| match &it.body {
        EventBody::RecordingEnd { recording, file_size_bytes, interrupted, .. } if recording.id == id => {
            Some((*file_size_bytes, *interrupted))
        }
        _ => None,
    });
    ends.collect()
}

/// Such a recording was completed with the size that its file had had, and its file was not found.
#[tokio::test]
async fn a_file_that_is_lost_while_it_is_recorded_is_a_gap_and_the_rest_is_recorded() {
    let studio = Studio::new().await;
    let ids = || (1..).zip(DAMAGES);
    for (id, _) in ids() {
        record(&studio, id).await;
    }
    let mut paths = Vec::new();
    for (id, _) in ids() {
        studio.until(id, |it| it.status == RecordingStatus::Recording).await;
        studio.until_longer(id, 200_000).await;
        paths.push(studio.path(&studio.get(id).unwrap()));
    }
    for ((_, (_, damage)), path) in ids().zip(&paths) {
        damage(path);
    }
    for (id, (reason, _)) in ids() {
        let is_continued =
            |it: &Recording| lost(it, reason).is_some_and(|it| it.end.is_some()) && it.file.is_some();
        let running = studio.until(id, is_continued).await;
        assert_eq!(running.status, RecordingStatus::Recording, "{running:?}");
        studio.until_longer(id, 300_000).await;
    }
    for ((id, (reason, _)), path) in ids().zip(&paths) {
        let done = end(&studio, id).await;
        assert_eq!(done.status, RecordingStatus::Interrupted, "{done:?}");
        assert!(done.reason.as_ref().is_some_and(|it| it.contains(reason)), "{done:?}");
        let (bytes, file) = (studio.bytes(id), done.file.as_ref().unwrap());
        assert_eq!(file.bytes, bytes.len() as u64, "{done:?}");
        check(&bytes);
        assert_eq!(Packet::new(packets(&bytes).next().unwrap()).pid(), 0, "{reason}: it begins with a table");
        // One that was truncated is continued, and nothing of somebody else is touched.
        assert!(reason != "truncated" || studio.path(&done) == *path);
        if reason == "replaced" {
            assert_eq!(fs::read_to_string(path).unwrap(), "other");
        }
        studio.until_end_is_reported(id).await;
        assert_eq!(ends(&studio, id), [(file.bytes, true)]);
    }
    assert_eq!(studio.scenario.provider.n_accepted(), 1, "no reader left the channel");
}

#[tokio::test]
async fn a_file_that_is_lost_while_the_source_is_away_is_noticed_then_and_the_rest_is_recorded() {
    let studio = Studio::with_channels([&[stream(1, "a"), stream(2, "b")]]).await;
    for id in 1..=3 {
        record(&studio, id).await;
    }
    for id in 1..=3 {
        studio.until(id, |it| it.status == RecordingStatus::Recording).await;
        studio.until_longer(id, 200_000).await;
    }
    // The channel tries its streams one after the other, or cannot be joined.
    for path in ["/a", "/b"] {
        studio.scenario.provider.set(path, Behaviour::NoAnswer);
    }
    studio.scenario.system.switchboard().stop(channel(1)).await.unwrap();
    for id in 1..=3 {
        studio.until(id, |it| it.gaps.last().is_some_and(|it| it.end.is_none())).await;
    }
    for (id, (reason, damage)) in [(1, DAMAGES[0]), (2, DAMAGES[5])] {
        damage(&studio.path(&studio.get(id).unwrap()));
        studio.until(id, |it| lost(it, reason).is_some_and(|it| it.end.is_none())).await;
    }
    // Nothing is left of one that ends now, and its end is reported all the same.
    DAMAGES[0].1(&studio.path(&studio.get(3).unwrap()));
    studio.until(3, |it| lost(it, "deleted").is_some()).await;
    let failed = end(&studio, 3).await;
    assert_eq!((failed.status, &failed.file), (RecordingStatus::Failed, &None), "{failed:?}");
    assert!(failed.reason.as_ref().is_some_and(|it| it.contains("deleted")), "{failed:?}");
    studio.until_end_is_reported(3).await;
    assert_eq!(ends(&studio, 3), [(0, true)]);
    studio.scenario.provider.set("/a", Behaviour::play("a"));
    for id in [1, 2] {
        studio.until(id, |it| it.file.is_some() && it.gaps.iter().all(|it| it.end.is_some())).await;
        studio.until_longer(id, 200_000).await;
        let done = end(&studio, id).await;
        assert_eq!(done.status, RecordingStatus::Interrupted, "{done:?}");
        let bytes = studio.bytes(id);
        assert_eq!(done.file.as_ref().unwrap().bytes, bytes.len() as u64);
        check(&bytes);
    }
}

#[tokio::test]
async fn a_file_that_is_lost_in_the_last_moment_is_noticed_at_the_end() {
    let studio = Studio::new().await;
    let ids = || (1..).zip(DAMAGES);
    for (id, _) in ids() {
        record(&studio, id).await;
    }
    for (id, (reason, damage)) in ids() {
        studio.until(id, |it| it.status == RecordingStatus::Recording).await;
        studio.until_longer(id, 100_000).await;
        damage(&studio.path(&studio.get(id).unwrap()));
        let done = end(&studio, id).await;
        assert!(done.gaps.iter().any(|it| it.is_lost && it.reason.contains(reason)), "{done:?}");
        // The last packets may have come after the loss.
        match &done.file {
            Some(file) => assert_eq!(
                (done.status, file.bytes),
                (RecordingStatus::Interrupted, studio.bytes(id).len() as u64)
            ),
            None => assert_eq!(done.status, RecordingStatus::Failed),
        }
    }
}

#[tokio::test]
async fn a_recording_whose_folder_was_deleted_continues_in_a_new_one_unless_other_recordings_belong_there() {
    let studio = Studio::new().await;
    record(&studio, 1).await;
    studio.until(1, |it| it.status == RecordingStatus::Recording).await;
    studio.until_longer(1, 100_000).await;
    fs::remove_dir_all(studio.root()).unwrap();
    studio.until(1, |it| lost(it, "deleted").is_some_and(|it| it.end.is_some())).await;
    studio.until_longer(1, 100_000).await;
    let done = end(&studio, 1).await;
    assert_eq!(done.status, RecordingStatus::Interrupted, "{done:?}");
    // The folder of the first recording may be on a disk that comes back.
    record(&studio, 2).await;
    studio.until(2, |it| it.status == RecordingStatus::Recording).await;
    fs::remove_dir_all(studio.root()).unwrap();
    let waiting = studio.until(2, |it| lost(it, "deleted").is_some() && it.reason.is_some()).await;
    assert!(waiting.reason.as_ref().is_some_and(|it| it.contains("mounted")), "{waiting:?}");
    assert!(!studio.root().exists());
}
