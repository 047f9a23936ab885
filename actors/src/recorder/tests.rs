//! Tests of recordings, with files on the disk and a provider in memory.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::channel::Channel;
use domain::core_settings::DVR_SETTINGS;
use domain::event::EventBody;
use domain::ids::{ChannelId, LineupId, RecordingId, UserId};
use domain::lineup::Lineup;
use domain::recording::{
    FilledFile, Gap, MissedWork, RecordedFile, Recording, RecordingInput, RecordingStatus,
};
use domain::setting::CoreSetting;
use domain::user::{RECORDINGS_ENABLED, User, UserLevel};
use media::testing::{Behaviour, TsSource, labels_in};
use media::ts::packet::{NULL_PID, PACKET, Packet, packets};
use storage::Models;
use tokio::time::{Instant, sleep};

use super::permission::owner_refusal;
use crate::clock::now_ms;
use crate::recording_files::RecordingsFolder;
use crate::recording_files::file::{Arrived, RecordingFile};
use crate::slots::LeasePurpose;
use crate::testing::{Scenario, Stream, channel, models, settings, stream};

/// Longest wait for anything.
const WAIT_MAX: Duration = Duration::from_secs(60);
pub(super) const HOUR: i64 = 3_600_000;

/// A gateway that records.
pub(super) struct Studio {
    pub(super) scenario: Scenario,
    pub(super) models: Models,
    folder: tempfile::TempDir,
    /// The folders from before power cuts. The last tasks of a system that was ended must not find their files deleted.
    former: Vec<tempfile::TempDir>,
}

impl Studio {
    /// Creates a gateway with channel 1, whose stream is `a`.
    pub(super) async fn new() -> Self {
        Self::with_channels([&[stream(1, "a")]]).await
    }

    /// Creates a gateway with channels 1, 2, … of these streams.
    pub(super) async fn with_channels<const N: usize>(channels: [&[Stream]; N]) -> Self {
        let scenario = Scenario::new(settings(), channels).await;
        let folder = tempfile::tempdir().unwrap();
        let studio = Self { scenario, models: models(&[]), folder, former: Vec::new() };
        studio.start();
        studio
    }

    fn start(&self) {
        self.scenario
            .system
            .record_into(self.models.clone(), RecordingsFolder::new(self.folder.path().join("recordings")));
    }

    /// Ends the system as a crash would, and starts another one on the same store and files.
    async fn crash(self) -> Self {
        let Self { scenario, models, folder, former } = self;
        drop(scenario);
        let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
        let studio = Self { scenario, models, folder, former };
        studio.start();
        studio
    }

    /// Ends the system as a power cut would, and starts another one: of each file that is named, this many bytes are left, and
    /// some that were never written. Of the others nothing is.
    async fn power_cut(
        self,
        kept: &[(u32, usize)],
        change: impl FnOnce(&mut Recording) + Send + 'static,
    ) -> Self {
        // What the old system still writes is lost, in files and in records.
        let after = tempfile::tempdir().unwrap();
        RecordingsFolder::new(after.path().join("recordings")).mark().unwrap();
        for (id, n_bytes) in kept {
            let file = self.get(*id).unwrap().file.clone().expect("a file");
            let mut bytes = self.bytes(*id)[..*n_bytes].to_vec();
            bytes.extend_from_slice(&[0; 5_000]);
            let path = after.path().join("recordings").join(file.path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        let mut recording = Recording::clone(&self.get(1).expect("a recording"));
        let Self { scenario, models, folder, mut former } = self;
        // Otherwise its last tasks could still end the recording, and report that to nobody.
        scenario.system.stop().await;
        drop(scenario);
        let changed = models.store.write(move |write| {
            change(&mut recording);
            write.put(&recording)
        });
        changed.await.unwrap();
        former.push(folder);
        let scenario = Scenario::new(settings(), [&[stream(1, "a")]]).await;
        let studio = Self { scenario, models, folder: after, former };
        studio.start();
        studio
    }

    /// Waits until some bytes are on the disk for sure, and returns their number.
    async fn until_synced(&self, id: u32) -> usize {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            let progress = self.scenario.system.recorder().progress(RecordingId(id));
            if let Some(n) = progress.map(|it| it.synced_bytes).filter(|it| *it > 0) {
                return usize::try_from(n).unwrap();
            }
            assert!(Instant::now() < deadline, "nothing is on the disk");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Records channel 1.
    async fn record(&self, id: u32, start: i64, end: i64) {
        self.record_channel(1, id, start..end, |_| {}).await;
    }

    /// Records a channel; `change` changes the recording before.
    pub(super) async fn record_channel(
        &self,
        number: u32,
        id: u32,
        times: Range<i64>,
        change: impl FnOnce(&mut Recording),
    ) {
        let uuid = channel(number).uuid();
        let mut recording = Recording::new(RecordingId(id), ChannelId(number), uuid, "News", times, now_ms());
        change(&mut recording);
        self.models.store.write(move |write| write.put(&recording)).await.unwrap();
    }

    pub(super) fn get(&self, id: u32) -> Option<Arc<Recording>> {
        self.models.recordings.load().get(id).cloned()
    }

    pub(super) async fn apply(&self, id: u32, input: RecordingInput) {
        let applied = self.models.store.write(move |write| {
            let mut recording = write.get::<Recording>(id)?.expect("a recording");
            recording.apply(input, None, now_ms()).expect("a running recording");
            write.put(&recording)
        });
        applied.await.unwrap();
    }

    pub(super) async fn change(&self, id: u32, change: impl FnOnce(&mut Recording) + Send + 'static) {
        let changed = self.models.store.write(move |write| {
            let mut recording = write.get::<Recording>(id)?.expect("a recording");
            change(&mut recording);
            write.put(&recording)
        });
        changed.await.unwrap();
    }

    /// Waits until the record fulfils a condition.
    #[track_caller]
    pub(super) fn until(
        &self,
        id: u32,
        is_met: impl Fn(&Recording) -> bool,
    ) -> impl Future<Output = Arc<Recording>> {
        let caller = std::panic::Location::caller();
        async move {
            let deadline = Instant::now() + WAIT_MAX;
            loop {
                let recording = self.get(id).expect("a recording");
                if is_met(&recording) {
                    return recording;
                }
                assert!(Instant::now() < deadline, "{caller}: {recording:?}");
                sleep(Duration::from_millis(20)).await;
            }
        }
    }

    pub(super) fn root(&self) -> PathBuf {
        self.folder.path().join("recordings")
    }

    pub(super) fn path(&self, recording: &Recording) -> PathBuf {
        self.root().join(&recording.file.as_ref().expect("a file").path)
    }

    pub(super) fn bytes(&self, id: u32) -> Vec<u8> {
        std::fs::read(self.path(&self.get(id).expect("a recording"))).expect("a file")
    }

    /// Waits until the file has this many bytes more than now.
    pub(super) async fn until_longer(&self, id: u32, n_bytes: usize) {
        let wanted = self.bytes(id).len() + n_bytes;
        let deadline = Instant::now() + WAIT_MAX;
        while self.bytes(id).len() < wanted {
            assert!(Instant::now() < deadline, "the file does not grow: {:?}", self.get(id));
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Deletes a recording as the interface does.
    async fn remove(&self, recording: &Recording) {
        let (recorder, removed) = (self.scenario.system.recorder(), recording.clone());
        let reporting = recorder.clone();
        let report = self.models.store.write(move |write| {
            write.remove::<Recording>(removed.id.0)?;
            reporting.report_removal(write, &removed)
        });
        report.await.unwrap().announce();
        recorder.remove_file(recording).await;
    }

    fn n_events(&self, name: &str) -> usize {
        self.scenario.event_names().iter().filter(|it| **it == name).count()
    }

    /// Waits until the end of a recording is reported, which may be after its record says so.
    pub(super) async fn until_end_is_reported(&self, id: u32) {
        let deadline = Instant::now() + WAIT_MAX;
        let is_end =
            |it: &EventBody| matches!(it, EventBody::RecordingEnd { recording, .. } if recording.id == id);
        while !self.scenario.system.events().recent().iter().any(|it| is_end(&it.body)) {
            assert!(Instant::now() < deadline, "the end is not reported");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Checks that a file is a transport stream without null packets whose clock never goes back, and that counters only jump
/// where that is declared. Returns the length of its programme.
#[track_caller]
pub(super) fn check(bytes: &[u8]) -> Duration {
    assert_eq!(bytes.len() % PACKET, 0);
    let mut counters = std::collections::HashMap::new();
    let (mut first, mut last) = (None, 0);
    for (n, packet) in packets(bytes).enumerate() {
        let packet = Packet::new(packet);
        assert!(packet.is_valid() && packet.pid() != NULL_PID, "packet {n}");
        let before = counters.insert(packet.pid(), packet.cc());
        if let Some(before) = before.filter(|_| !packet.discontinuity()) {
            let expected = if packet.has_payload() { (before + 1) & 0x0f } else { before };
            assert_eq!(packet.cc(), expected, "packet {n} of PID {:#x}", packet.pid());
        }
        if let Some(pcr) = packet.pcr() {
            assert!(pcr >= last, "packet {n}: the clock goes back from {last} to {pcr}");
            last = pcr;
            first.get_or_insert(pcr);
        }
    }
    Duration::from_micros((last - first.expect("a clock")) / 27)
}

#[tokio::test]
async fn a_recording_is_made_without_a_seat_and_reported_once() {
    let studio = Studio::new().await;
    let now = now_ms();
    studio.record(1, now, now + 3_000).await;
    let running = studio.until(1, |it| it.status == RecordingStatus::Recording).await;
    assert_eq!(running.file.as_ref().unwrap().ended_at, None);
    let purposes: Vec<_> = studio.scenario.system.leases().iter().map(|it| it.purpose).collect();
    assert_eq!(purposes, [LeasePurpose::Recording]);
    assert_eq!(studio.scenario.system.counts().seats, 0);
    let done = studio.until(1, |it| it.status.is_final()).await;
    let done = studio.until(1, |_| done.file.as_ref().is_some_and(|it| it.ended_at.is_some())).await;
    assert_eq!((done.status, &done.gaps), (RecordingStatus::Completed, &Vec::new()), "{done:?}");
    let bytes = studio.bytes(1);
    assert_eq!(done.file.as_ref().unwrap().bytes, bytes.len() as u64);
    assert_eq!(Packet::new(packets(&bytes).next().unwrap()).pid(), 0, "the file begins with a table");
    assert!(check(&bytes) > Duration::from_secs(1));
    assert!(labels_in(&bytes).iter().all(|it| it == "a"));
    studio.scenario.is_quiet().await;
    studio.until_end_is_reported(1).await;
    assert_eq!((studio.n_events("recording_start"), studio.n_events("recording_end")), (1, 1));
    let ended = studio.scenario.system.events().recent().into_iter().find_map(|it| match &it.body {
        EventBody::RecordingEnd { recording, file_size_bytes, interrupted, .. } => {
            Some((recording.file_path.clone(), recording.path_changes, *file_size_bytes, *interrupted))
        }
        _ => None,
    });
    let path = studio.path(&done).display().to_string();
    assert_eq!(
        ended,
        Some((path, false, bytes.len() as u64, false)),
        "nothing is converted, so the path stays"
    );
}

/// Holds T-dvr.3.
#[tokio::test]
async fn overlapping_recordings_and_a_viewer_share_one_connection_and_end_alone() {
    let studio = Studio::new().await;
    let now = now_ms();
    studio.record(1, now, now + HOUR).await;
    studio.record(2, now, now + HOUR).await;
    for id in [1, 2] {
        studio.until(id, |it| it.status == RecordingStatus::Recording).await;
    }
    let viewer = studio.scenario.watch(channel(1)).await;
    assert_eq!(studio.scenario.provider.n_accepted(), 1);
    assert_ne!(studio.path(&studio.get(1).unwrap()), studio.path(&studio.get(2).unwrap()));
    drop(viewer);
    studio.apply(1, RecordingInput::Stop).await;
    studio.until(1, |it| it.file.as_ref().is_some_and(|it| it.ended_at.is_some())).await;
    studio.until_longer(2, 200_000).await;
    studio.apply(2, RecordingInput::Complete).await;
    studio.until(2, |it| it.file.as_ref().is_some_and(|it| it.ended_at.is_some())).await;
    let statuses = [1, 2].map(|id| studio.get(id).unwrap().status);
    assert_eq!(statuses, [RecordingStatus::Stopped, RecordingStatus::Completed]);
    for id in [1, 2] {
        assert_eq!(studio.get(id).unwrap().gaps, []);
        check(&studio.bytes(id));
    }
    assert_eq!(studio.scenario.provider.n_accepted(), 1);
    studio.scenario.is_quiet().await;
}

#[tokio::test]
async fn stopping_the_channel_does_not_end_a_recording() {
    let studio = Studio::new().await;
    let now = now_ms();
    studio.record(1, now, now + HOUR).await;
    studio.until(1, |it| it.status == RecordingStatus::Recording).await;
    studio.until_longer(1, 500_000).await;
    studio.scenario.system.switchboard().stop(channel(1)).await.unwrap();
    studio.until_longer(1, 1_000_000).await;
    studio.apply(1, RecordingInput::Stop).await;
    studio.until(1, |it| it.file.as_ref().is_some_and(|it| it.ended_at.is_some())).await;
    assert!(studio.scenario.provider.n_accepted() >= 2, "it has joined again");
    check(&studio.bytes(1));
    studio.until_end_is_reported(1).await;
    assert_eq!((studio.n_events("recording_start"), studio.n_events("recording_end")), (1, 1));
}

/// Holds T-dvr.2 for a recording that runs.
#[tokio::test]
async fn a_recording_continues_in_its_file_after_a_crash() {
    let studio = Studio::new().await;
    let now = now_ms();
    studio.record(1, now, now + HOUR).await;
    studio.until(1, |it| it.status == RecordingStatus::Recording).await;
    studio.until_longer(1, 500_000).await;
    let path = studio.path(&studio.get(1).unwrap());
    let studio = studio.crash().await;
    let before = std::fs::read(&path).unwrap();
    studio.until_longer(1, 1_000_000).await;
    assert_eq!(studio.path(&studio.get(1).unwrap()), path);
    studio.apply(1, RecordingInput::Stop).await;
    let done = studio.until(1, |it| it.file.as_ref().is_some_and(|it| it.ended_at.is_some())).await;
    assert_eq!(done.gaps.len(), 1, "{done:?}");
    assert!(done.gaps[0].end.is_some());
    let bytes = studio.bytes(1);
    let n_whole = before.len() / PACKET * PACKET;
    assert_eq!(bytes[..n_whole.min(400_000)], before[..n_whole.min(400_000)]);
    check(&bytes);
    assert_eq!(studio.n_events("recording_start"), 0, "it was reported before the crash");
}

/// Holds T-dvr.2 for a power cut.
#[tokio::test]
async fn a_recording_continues_after_a_power_cut_with_what_was_on_the_disk() {
    let studio = Studio::new().await;
    let now = now_ms();
    studio.record(1, now, now + HOUR).await;
    studio.until(1, |it| it.status == RecordingStatus::Recording).await;
    let n_synced = studio.until_synced(1).await;
    let before = studio.bytes(1)[..n_synced].to_vec();
    let studio = studio.power_cut(&[(1, n_synced)], |_| {}).await;
    studio.until_longer(1, 1_000_000).await;
    studio.apply(1, RecordingInput::Stop).await;
    let done = studio.until(1, |it| it.file.as_ref().is_some_and(|it| it.ended_at.is_some())).await;
    assert_eq!((done.status, done.gaps.len()), (RecordingStatus::Stopped, 1), "{done:?}");
    let bytes = studio.bytes(1);
    assert!(bytes.starts_with(&before), "what was on the disk is kept");
    check(&bytes);
}

/// Holds T-dvr.2 for a power cut before the first packets are on the disk.
#[tokio::test]
async fn a_recording_whose_file_was_lost_begins_again_and_lists_the_gap() {
    let studio = Studio::new().await;
    let now = now_ms();
    studio.record(1, now, now + HOUR).await;
    studio.until(1, |it| it.status == RecordingStatus::Recording).await;
    let studio = studio.power_cut(&[], |_| {}).await;
    let running = studio.until(1, |it| it.gaps.first().is_some_and(|it| it.end.is_some())).await;
    assert_eq!(running.status, RecordingStatus::Recording);
    studio.until_longer(1, 500_000).await;
    studio.apply(1, RecordingInput::Stop).await;
    let done = studio.until(1, |it| it.file.as_ref().is_some_and(|it| it.ended_at.is_some())).await;
    assert_eq!((done.status, done.gaps.len()), (RecordingStatus::Stopped, 1), "{done:?}");
    check(&studio.bytes(1));
}

/// Holds T-dvr.2 for a power cut while a file is finished.
#[tokio::test]
async fn a_recording_that_was_ended_before_a_power_cut_is_finished_afterwards() {
    let studio = Studio::new().await;
    let now = now_ms();
    studio.record(1, now, now + HOUR).await;
    studio.until(1, |it| it.status == RecordingStatus::Recording).await;
    let n_synced = studio.until_synced(1).await;
    let end = |it: &mut Recording| it.apply(RecordingInput::Complete, None, now_ms()).expect("it runs");
    let studio = studio.power_cut(&[(1, n_synced)], end).await;
    let done = studio.until(1, |it| it.file.as_ref().is_some_and(|it| it.ended_at.is_some())).await;
    let bytes = studio.bytes(1);
    assert_eq!((done.status, bytes.len()), (RecordingStatus::Completed, n_synced));
    assert_eq!(done.file.as_ref().unwrap().bytes, bytes.len() as u64);
    check(&bytes);
    studio.scenario.is_quiet().await;
    studio.until_end_is_reported(1).await;
    assert_eq!((studio.n_events("recording_start"), studio.n_events("recording_end")), (0, 1));
}

#[tokio::test]
async fn a_channel_that_never_plays_fails_with_the_reason() {
    let studio = Studio::new().await;
    studio.scenario.provider.set("/a", Behaviour::Status(404));
    let now = now_ms();
    studio.record(1, now, now + 3_000).await;
    let done = studio.until(1, |it| it.status.is_final()).await;
    assert_eq!((done.status, &done.file), (RecordingStatus::Failed, &None));
    assert!(done.reason.as_deref().is_some_and(|it| it.contains("404")), "{done:?}");
    let deadline = Instant::now() + WAIT_MAX;
    while studio.n_events("recording_failed") == 0 {
        assert!(Instant::now() < deadline, "the failure is not reported");
        sleep(Duration::from_millis(20)).await;
    }
    let names = ["recording_start", "recording_end", "recording_failed"];
    assert_eq!(names.map(|it| studio.n_events(it)), [0, 0, 1]);
    let failed = studio.scenario.system.events().recent().into_iter().find_map(|it| match &it.body {
        EventBody::RecordingFailed { recording, reason, .. } => Some((recording.id, reason.clone())),
        _ => None,
    });
    assert_eq!(failed, Some((1, done.reason.clone().unwrap_or_default())));
}

#[tokio::test]
async fn a_recording_that_begins_late_lists_the_gap_with_its_reason() {
    let studio = Studio::new().await;
    studio.scenario.provider.set("/a", Behaviour::Status(404));
    let now = now_ms();
    studio.record(1, now - 5_000, now + HOUR).await;
    studio.until(1, |it| it.reason.as_deref().is_some_and(|it| it.contains("404"))).await;
    sleep(Duration::from_millis(2_500)).await;
    studio.scenario.provider.set("/a", Behaviour::play("a"));
    let running = studio.until(1, |it| it.status == RecordingStatus::Recording).await;
    assert_eq!((running.gaps.len(), &running.reason), (1, &None), "{running:?}");
    assert!(running.gaps[0].reason.contains("404") && running.gaps[0].end.is_some(), "{running:?}");
    studio.apply(1, RecordingInput::Stop).await;
    studio.until(1, |it| it.file.as_ref().is_some_and(|it| it.ended_at.is_some())).await;
}

/// Holds T-dvr.1.
#[tokio::test]
async fn many_recordings_that_are_due_at_once_start_once_each() {
    const N: u32 = 200;
    let studio = Studio::new().await;
    let now = now_ms();
    for id in 1..=N {
        studio.record(id, now + 8_000, now + HOUR).await;
    }
    for id in 1..=N {
        studio.until(id, |it| it.status == RecordingStatus::Recording).await;
    }
    assert_eq!(studio.scenario.provider.n_accepted(), 1);
    let files = std::fs::read_dir(studio.folder.path().join("recordings/TV_Shows/News")).unwrap().count();
    assert_eq!(files, N as usize);
    studio
        .models
        .store
        .write(|write| {
            for id in 1..=N {
                let mut recording = write.get::<Recording>(id)?.expect("a recording");
                recording.apply(RecordingInput::Stop, None, now_ms()).expect("it runs");
                write.put(&recording)?;
            }
            Ok::<_, storage::Error>(())
        })
        .await
        .unwrap();
    for id in 1..=N {
        studio.until(id, |it| it.file.as_ref().is_some_and(|it| it.ended_at.is_some())).await;
    }
    studio.scenario.is_quiet().await;
}

/// A user lost the right to record, and what was scheduled before was recorded all the same.
#[tokio::test]
async fn a_recording_begins_only_while_its_owner_may_make_it() {
    let studio = Studio::new().await;
    let user = |is_active| {
        let custom_properties = [(RECORDINGS_ENABLED.to_owned(), true.into())].into_iter().collect();
        User { is_active, custom_properties, ..User::new(UserId(7), "anna", UserLevel::Standard, 0) }
    };
    let put = async |user: User| studio.models.store.write(move |write| write.put(&user)).await.unwrap();
    put(user(false)).await;
    let now = now_ms();
    studio.record_channel(1, 1, now..now + HOUR, |it| it.owner = Some(UserId(7))).await;
    studio.record_channel(1, 2, now..now + HOUR, |it| it.owner = Some(UserId(9))).await;
    studio.record_channel(1, 3, now - HOUR..now - 1_000, |it| it.owner = Some(UserId(9))).await;
    for (id, reason) in [(1, "inactive"), (2, "deleted"), (3, "deleted")] {
        let waiting = studio.until(id, |it| it.reason.is_some()).await;
        assert!(waiting.reason.as_ref().is_some_and(|it| it.contains(reason)), "{waiting:?}");
    }
    let failed = studio.until(3, |it| it.status.is_final()).await;
    assert_eq!((failed.status, &failed.file), (RecordingStatus::Failed, &None), "{failed:?}");
    assert_eq!(studio.scenario.provider.n_accepted(), 0);
    put(user(true)).await;
    studio.until(1, |it| it.status == RecordingStatus::Recording).await;
    assert_eq!(studio.get(2).map(|it| it.status), Some(RecordingStatus::Scheduled));
    studio.apply(1, RecordingInput::Stop).await;
    studio.until(1, |it| it.file.as_ref().is_some_and(|it| it.ended_at.is_some())).await;
}

#[tokio::test]
async fn the_right_to_record_is_that_of_the_user_the_settings_and_the_lineups_now() {
    let studio = Studio::new().await;
    let (channel, at) = (channel(1).uuid(), now_ms());
    let user = User { lineups: vec![LineupId(3)], ..User::new(UserId(7), "anna", UserLevel::Standard, 0) };
    let setting = |is_on: bool| {
        let value = serde_json::json!({ "standard_users_record": is_on });
        CoreSetting { id: 1, key: DVR_SETTINGS.to_owned(), name: "DVR".to_owned(), value }
    };
    let written = studio.models.store.write({
        let user = user.clone();
        let setting = setting(true);
        move |write| {
            write.put(&Channel::new(ChannelId(1), channel, "News", 0))?;
            write.put(&Lineup::new(LineupId(3), "all", true))?;
            write.put(&setting)?;
            write.put(&user)
        }
    });
    written.await.unwrap();
    let own = |id| Recording {
        owner: Some(UserId(id)),
        ..Recording::new(RecordingId(1), ChannelId(1), channel, "News", at..at + HOUR, at)
    };
    let check = |id: u32, expected: Option<&str>| {
        let found = owner_refusal(&studio.models, &own(id));
        assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
        assert!(found.zip(expected).is_none_or(|(found, part)| found.contains(part)), "{found:?}");
    };
    check(7, None);
    check(8, Some("deleted"));
    let put = async |lineup: Lineup, setting: CoreSetting, user: User| {
        let written = studio.models.store.write(move |write| {
            write.put(&lineup)?;
            write.put(&setting)?;
            write.put(&user)
        });
        written.await.unwrap();
    };
    let (all, none) = (Lineup::new(LineupId(3), "all", true), Lineup::new(LineupId(3), "all", false));
    put(none.clone(), setting(true), user.clone()).await;
    check(7, Some("watch"));
    put(all, setting(false), user.clone()).await;
    check(7, Some("no longer record"));
    put(none, setting(false), User { is_superuser: true, ..user.clone() }).await;
    check(7, None);
    assert_eq!(owner_refusal(&studio.models, &Recording { owner: None, ..own(7) }), None);
}

/// A listener, such as a script that moves files after their end, would wait for ever.
#[tokio::test]
async fn the_end_of_a_running_recording_that_is_deleted_is_reported_once() {
    let studio = Studio::new().await;
    let now = now_ms();
    studio.record(1, now, now + HOUR).await;
    studio.record(2, now + HOUR, now + 2 * HOUR).await;
    studio.until(1, |it| it.status == RecordingStatus::Recording).await;
    studio.until_longer(1, 100_000).await;
    for id in [1, 2] {
        studio.remove(&studio.get(id).unwrap()).await;
    }
    studio.scenario.is_quiet().await;
    let ends = studio.scenario.system.events().recent();
    let ends = ends.iter().filter_map(|it| match &it.body {
        EventBody::RecordingEnd { recording, interrupted, file_size_bytes, .. } => {
            Some((recording.id, *interrupted, *file_size_bytes > 0))
        }
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [(1, true, true)], "the other one had not begun");
}

#[tokio::test]
async fn a_deleted_recording_ends_and_its_file_goes() {
    let studio = Studio::new().await;
    let now = now_ms();
    for id in [1, 2] {
        studio.record(id, now, now + HOUR).await;
    }
    for id in [1, 2] {
        studio.until(id, |it| it.status == RecordingStatus::Recording).await;
    }
    let deleted = studio.get(1).unwrap();
    studio.remove(&deleted).await;
    assert!(!studio.path(&deleted).exists());
    studio.until_longer(2, 300_000).await;
    studio.apply(2, RecordingInput::Stop).await;
    studio.scenario.is_quiet().await;
}

/// A new file with what the archive had may be in its place or not when the gateway is killed.
#[tokio::test]
async fn a_new_file_counts_from_the_moment_on_at_which_it_is_in_its_place() {
    for is_in_place in [true, false] {
        let studio = Studio::new().await;
        let now = now_ms();
        let (start, end) = (now - HOUR, now - HOUR / 2);
        let path = "a.ts";
        let folder = RecordingsFolder::new(studio.folder.path().join("recordings"));
        folder.mark().unwrap();
        let root = studio.folder.path().join("recordings");
        std::fs::write(root.join(path), vec![0x47; if is_in_place { 400 } else { 300 } * PACKET]).unwrap();
        folder.create_beside(RecordingId(1)).unwrap();
        let gap = Gap { start: start + 1_000, end: Some(end), reason: "lost".to_owned(), is_lost: false };
        let new =
            FilledFile { bytes: 400 * PACKET as u64, started_at: start, ended_at: end, gaps: Vec::new() };
        studio
            .record_channel(1, 1, start..end, |it| {
                let (started_at, ended_at) = (start, Some(start + 1_000));
                it.status = RecordingStatus::Interrupted;
                it.gaps = vec![gap.clone()];
                it.file = Some(RecordedFile {
                    path: path.to_owned(),
                    bytes: 300 * PACKET as u64,
                    started_at,
                    ended_at,
                    node: None,
                });
                it.after.missed = Some(MissedWork { replacement: Some(new) });
            })
            .await;
        let done = studio.until(1, |it| it.after.missed.is_none()).await;
        let file = done.file.as_ref().unwrap();
        match is_in_place {
            true => {
                assert_eq!((done.status, &done.gaps), (RecordingStatus::Completed, &Vec::new()));
                assert_eq!((file.bytes, file.ended_at), (400 * PACKET as u64, Some(end)));
            }
            // No archive has the rest any more.
            false => {
                assert_eq!((done.status, &done.gaps), (RecordingStatus::Interrupted, &vec![gap]));
                assert_eq!((file.bytes, file.ended_at), (300 * PACKET as u64, Some(start + 1_000)));
            }
        }
        let deadline = Instant::now() + WAIT_MAX;
        while folder.open_beside(RecordingId(1)).unwrap().is_some() {
            assert!(Instant::now() < deadline, "the file beside the recording is left");
            sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(studio.n_events("recording_end"), 0, "it was reported when it ended");
    }
}

/// Writes the packets of a source as they arrive in real time. Returns the time of the last ones.
pub(super) fn arrive(file: &mut RecordingFile, source: &TsSource, seconds: u64, from: i64) -> i64 {
    let mut stream = source.stream(Duration::ZERO);
    let mut at = from;
    while stream.at() < Duration::from_secs(seconds) {
        at = from + i64::try_from(stream.at().as_millis()).unwrap();
        file.append(&[Arrived { at, bytes: stream.frame() }], at).unwrap();
    }
    at
}

#[test]
fn a_file_that_was_cut_anywhere_continues_with_rising_clocks() {
    let folder = tempfile::tempdir().unwrap();
    for cut in [0, 1, 187, 188, 1_000, 70_000] {
        let path = folder.path().join(format!("{cut}.ts"));
        let open =
            || std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = RecordingFile::new(open().unwrap());
        let last_at = arrive(&mut file, &TsSource::new("first"), 6, 1_000_000);
        drop(file);
        let length = std::fs::metadata(&path).unwrap().len();
        open().unwrap().set_len(length - cut).unwrap();
        let mut file = RecordingFile::reopened(open().unwrap()).unwrap().0;
        assert_eq!(file.length(), (length - cut) / 188 * 188);
        // Ten seconds later, from a source whose clock is far behind.
        let later = last_at + 10_000;
        file.change_reader(last_at, later).unwrap();
        let second = TsSource { start: 1_000, ..TsSource::new("second") };
        let ended = arrive(&mut file, &second, 6, later);
        file.finish(ended).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let programme = check(&bytes);
        let expected = Duration::from_secs(22);
        assert!(programme.abs_diff(expected) < Duration::from_secs(2), "{cut}: {programme:?}");
        assert_eq!(labels_in(&bytes).last().map(String::as_str), Some("second"));
    }
}

#[test]
fn null_packets_are_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ts");
    let open = || std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = RecordingFile::new(open().unwrap());
    let frame = TsSource::new("a").stream(Duration::ZERO).frame();
    let null = media::ts::packet::null_packet();
    let mut sent = null.to_vec();
    sent.extend_from_slice(&frame[..PACKET * 2]);
    sent.extend_from_slice(&null);
    sent.extend_from_slice(&frame[PACKET * 2..]);
    sent.extend_from_slice(&null);
    file.append(&[Arrived { at: 0, bytes: sent.into() }], 0).unwrap();
    let stored: Vec<u8> =
        packets(&frame).filter(|it| Packet::new(it).pid() != NULL_PID).flat_map(|it| it.to_vec()).collect();
    assert_eq!(std::fs::read(&path).unwrap(), stored);
}
