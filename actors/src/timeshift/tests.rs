//! Tests of the past of channels, with files on the disk and a provider in memory.

use std::time::Duration;

use domain::channel::Channel;
use domain::ids::ChannelId;
use domain::setting::CoreSetting;
use media::testing::{TsSource, labels_in};
use media::ts::packet::{PACKET, Packet, packets};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::ring::RingWriter;
use super::*;
use crate::recording_files::file::Arrived;
use crate::testing::{Scenario, channel, models, settings, stream};

/// Longest wait for anything.
const WAIT_MAX: Duration = Duration::from_secs(60);
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

/// A gateway that keeps the past of channel 1, whose stream is `a`.
struct Studio {
    scenario: Scenario,
    models: Models,
    folder: tempfile::TempDir,
}

impl Studio {
    async fn new(mode: &str) -> Self {
        let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
        let studio = Self { scenario, models: models(&[]), folder: tempfile::tempdir().unwrap() };
        let record = Channel::new(ChannelId(1), channel(1).uuid(), "News", 0);
        studio.models.store.write(move |write| write.put(&record)).await.unwrap();
        studio.set(json!({ "mode": mode })).await;
        studio.start();
        studio
    }

    async fn set(&self, value: Value) {
        let set = move |write: &mut storage::Write<'_>| {
            let found: Vec<CoreSetting> = write.by("key", TIMESHIFT_SETTINGS)?;
            let id = match found.first() {
                Some(setting) => setting.id,
                None => write.next_id::<CoreSetting>()?,
            };
            write.put(&CoreSetting { id, key: TIMESHIFT_SETTINGS.to_owned(), name: String::new(), value })
        };
        self.models.store.write(set).await.unwrap();
    }

    fn start(&self) {
        let folder = |name: &str| RecordingsFolder::new(self.folder.path().join(name));
        self.scenario.system.keep_past_in(self.models.clone(), folder("timeshift"), folder("recordings"));
    }

    /// Ends the system as a crash would, tears the newest file, and starts another system on the same files.
    async fn crash(self) -> Self {
        let Self { scenario, models, folder } = self;
        drop(scenario);
        let ring = folder.path().join("timeshift").join(channel(1).uuid().to_string());
        let paths = std::fs::read_dir(&ring).unwrap().map(|it| it.unwrap().path());
        let newest = paths.filter(|it| it.extension().is_some_and(|it| it == "ts")).max().unwrap();
        for (path, n_torn) in [(newest.with_extension("index"), 5), (newest, 100)] {
            let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(file.metadata().unwrap().len() - n_torn).unwrap();
        }
        let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
        let studio = Self { scenario, models, folder };
        studio.start();
        studio
    }

    fn shift(&self) -> TimeShift {
        self.scenario.system.time_shift()
    }

    fn ring(&self) -> Option<Arc<Ring>> {
        self.shift().shared.rings.lock().get(&channel(1).uuid()).cloned()
    }

    fn size(&self) -> u64 {
        self.ring().map_or(0, |it| it.files().iter().map(|it| it.bytes).sum())
    }

    async fn until(&self, what: &str, is_true: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + WAIT_MAX;
        while !is_true(self) {
            assert!(Instant::now() < deadline, "{what}: {} bytes", self.size());
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn until_larger(&self, bytes: u64) {
        let wanted = self.size() + bytes;
        self.until("the past grows", |it| it.size() >= wanted).await;
    }

    async fn part(&self, from: i64, to: i64) -> PastPart {
        self.shift().part(channel(1).uuid(), from, to).await.unwrap().expect("the time is covered")
    }
}

/// Reads this many bytes, or all.
async fn read(mut reader: PastReader, bytes: usize) -> Vec<u8> {
    let mut read = Vec::new();
    while read.len() < bytes {
        let block = timeout(WAIT_MAX, reader.next()).await.expect("the past is followed");
        let Some(block) = block.unwrap() else { break };
        read.extend_from_slice(&block);
    }
    read
}

/// Checks that the clock never goes back, and never jumps by more than a second.
fn check(bytes: &[u8]) {
    let mut last = None;
    for (n, packet) in packets(bytes).enumerate() {
        if let Some(pcr) = Packet::new(packet).pcr() {
            let is_next = last.is_none_or(|it| (it..it + 27_000_000).contains(&pcr));
            assert!(is_next, "packet {n} of {}: {last:?} {pcr}", bytes.len() / PACKET);
            last = Some(pcr);
        }
    }
    assert!(last.is_some());
}

#[tokio::test]
async fn the_past_of_a_channel_is_read_from_a_time_on_and_followed_into_the_present() {
    let studio = Studio::new("always").await;
    studio.until_larger(500_000).await;
    let begin = studio.ring().unwrap().since().unwrap();
    let kept = usize::try_from(studio.size()).unwrap();
    let followed = studio.part(begin + 500, now_ms() + HOUR).await;
    assert!(followed.length().is_none() && followed.is_whole());
    let bytes = read(followed.read(None), kept + 500_000).await;
    check(&bytes);
    assert!(labels_in(&bytes).iter().all(|it| it == "a"));
    assert_eq!(studio.scenario.provider.n_accepted(), 1);
    assert_eq!(studio.scenario.system.counts().seats, 0);
    let uuid = channel(1).uuid();
    let before = studio.shift().part(uuid, begin - HOUR, begin).await.unwrap();
    assert!(before.is_none(), "the provider's archive may have it");
    assert!(studio.shift().part(uuid, now_ms() + HOUR, now_ms() + 2 * HOUR).await.unwrap().is_none());
    // A part that is over has a length, and can be read from its middle.
    let end = begin + 3_000;
    studio.until("three seconds", |it| it.ring().unwrap().files()[0].ended_at > end + 1_000).await;
    let part = studio.part(begin, end).await;
    let length = part.length().unwrap();
    let whole = read(part.read(None), usize::MAX).await;
    assert_eq!(whole.len() as u64, length);
    let rest = read(studio.part(begin, end).await.read(Some(length / 2..length)), usize::MAX).await;
    assert_eq!(rest, whole[usize::try_from(length / 2).unwrap()..]);
}

#[tokio::test]
async fn the_past_survives_a_crash_that_tears_its_end() {
    let studio = Studio::new("always").await;
    studio.until_larger(500_000).await;
    let begin = studio.ring().unwrap().since().unwrap();
    let studio = studio.crash().await;
    studio.until("the files are found", |it| it.size() > 0).await;
    studio.until("a second file", |it| it.ring().unwrap().files().len() == 2).await;
    let before = usize::try_from(studio.ring().unwrap().files()[0].bytes).unwrap();
    assert_eq!(before % PACKET, 0);
    let bytes = read(studio.part(begin, now_ms() + HOUR).await.read(None), before + 300_000).await;
    check(&bytes);
}

#[tokio::test]
async fn the_past_of_a_watched_channel_is_kept_as_long_as_somebody_watches() {
    let studio = Studio::new("watched").await;
    let viewer = studio.scenario.watch(channel(1)).await;
    studio.until_larger(300_000).await;
    assert_eq!(studio.scenario.provider.n_accepted(), 1);
    drop(viewer);
    studio.scenario.is_quiet().await;
    assert!(studio.size() > 0 && !studio.ring().unwrap().is_written(), "the past stays");
    // It goes when it is not to be kept any more.
    studio.set(json!({ "mode": "off" })).await;
    let folder = studio.folder.path().join("timeshift").join(channel(1).uuid().to_string());
    studio.until("the files go", |it| it.ring().is_none() && !folder.exists()).await;
}

#[tokio::test]
async fn rings_give_up_everything_for_the_room_that_recordings_need_and_continue_afterwards() {
    let studio = Studio::new("always").await;
    studio.until_larger(300_000).await;
    RecordingsFolder::new(studio.folder.path().join("recordings")).mark().unwrap();
    let keep_free = async |bytes: u64| {
        let key = domain::core_settings::DVR_SETTINGS;
        let set = move |write: &mut storage::Write<'_>| {
            let found: Vec<CoreSetting> = write.by("key", key)?;
            let id = found.first().map_or_else(|| write.next_id::<CoreSetting>(), |it| Ok(it.id))?;
            let value = json!({ "retention_free_bytes": bytes });
            write.put(&CoreSetting { id, key: key.to_owned(), name: String::new(), value })
        };
        studio.models.store.write(set).await.unwrap();
    };
    // More than any disk has.
    keep_free(1 << 52).await;
    studio.shift().make_room().await;
    assert_eq!(studio.size(), 0);
    assert!(!studio.ring().unwrap().is_written());
    keep_free(0).await;
    studio.until_larger(300_000).await;
}

/// Writes some seconds of a source that arrive at a time.
fn arrive(writer: &mut RingWriter, at: i64, settings: &TimeShiftSettings) {
    let mut stream = TsSource::new("a").stream(Duration::ZERO);
    while stream.at() < Duration::from_secs(3) {
        let at = at + i64::try_from(stream.at().as_millis()).unwrap();
        writer.append(&[Arrived { at, bytes: stream.frame() }], settings, 1).unwrap();
    }
}

fn ring_in(folder: &tempfile::TempDir) -> Arc<Ring> {
    Arc::new(Ring::new(Uuid::from_u128(1), RecordingsFolder::new(folder.path().join("timeshift"))))
}

#[test]
fn files_end_after_some_time_and_at_a_pause_and_a_later_process_finds_them() {
    let folder = tempfile::tempdir().unwrap();
    let (ring, settings) = (ring_in(&folder), TimeShiftSettings::default());
    let begin = 1_900_000_000_000;
    let mut writer = RingWriter::new(Arc::clone(&ring)).unwrap();
    for minutes in [0, 1, 2, 30] {
        arrive(&mut writer, begin + minutes * MINUTE, &settings);
    }
    let starts = |ring: &Ring| -> Vec<i64> {
        ring.files().iter().map(|it| (it.started_at - begin) / MINUTE).collect()
    };
    assert_eq!(starts(&ring), [0, 1, 2, 30]);
    writer.finish().unwrap();
    drop(writer);
    let found = |at: i64| {
        let part = read::find(Arc::clone(&ring), begin + at, begin + at + MINUTE).unwrap();
        part.map(|it| (it.begins_at() - begin) / MINUTE)
    };
    assert_eq!((found(2_000), found(MINUTE + 2_000)), (Some(0), Some(1)));
    assert_eq!(found(30_000), Some(1), "the next packets follow soon");
    assert_eq!(found(-30_000), Some(0), "programmes begin at a minute");
    assert_eq!((found(8 * MINUTE), found(-2 * MINUTE), found(31 * MINUTE)), (None, None, None));
    let again =
        Ring::load(Uuid::from_u128(1), RecordingsFolder::new(folder.path().join("timeshift"))).unwrap();
    assert_eq!(starts(&again), starts(&ring));
    for (found, written) in again.files().iter().zip(ring.files()) {
        assert_eq!(found.bytes, written.bytes);
        assert!(found.ended_at.abs_diff(written.ended_at) < 1_000, "{found:?} {written:?}");
    }
    // A new reader continues in a file of its own, whose clock continues.
    let again = Arc::new(again);
    let mut writer = RingWriter::new(Arc::clone(&again)).unwrap();
    arrive(&mut writer, now_ms(), &settings);
    writer.finish().unwrap();
    assert_eq!(again.files().len(), 5);
    again.remove(begin).unwrap();
    assert_eq!(again.since(), Some(begin + MINUTE));
    drop(writer);
    again.close().unwrap();
    assert_eq!(std::fs::read_dir(folder.path().join("timeshift")).unwrap().count(), 1, "the marker is left");
}

#[tokio::test]
async fn a_reader_that_follows_goes_on_after_a_removed_file_and_ends_where_much_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let (ring, settings) = (ring_in(&folder), TimeShiftSettings::default());
    // A part whose end is to come.
    let begin = now_ms() - HOUR;
    let mut writer = RingWriter::new(Arc::clone(&ring)).unwrap();
    for minutes in [0, 1, 2, 30] {
        arrive(&mut writer, begin + minutes * MINUTE, &settings);
    }
    writer.finish().unwrap();
    let files = ring.files();
    let part = read::find(Arc::clone(&ring), begin, now_ms() + HOUR).unwrap().unwrap();
    assert!(part.length().is_none() && !part.is_whole() && ring.is_followed());
    let mut reader = part.read(None);
    assert!(reader.next().await.unwrap().is_some());
    for file in &files[..2] {
        ring.remove(file.started_at).unwrap();
    }
    // The open file is read to its end, and the second one is gone.
    let mut n_bytes = 0;
    let mut read = Vec::new();
    while let Some(block) = reader.next().await.unwrap() {
        n_bytes += block.len() as u64;
        read.extend_from_slice(&block);
    }
    assert!(n_bytes < files[0].bytes + files[2].bytes && n_bytes >= files[2].bytes);
    let last = std::fs::read(folder.path().join(format!(
        "timeshift/{}/{}.ts",
        Uuid::from_u128(1),
        files[2].started_at
    )));
    assert!(read.ends_with(&last.unwrap()), "the file before the hole is the last one");
    drop(reader);
    assert!(!ring.is_followed());
    drop(writer);
}
