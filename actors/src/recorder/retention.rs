//! Looks at the files and their disk: old recordings go as the settings say, and recordings end before the disk is full.
//!
//! A look follows each change of recordings, rules, users and settings, and comes every second while something is recorded.
//! Nothing is done while the folder lacks its marker, because then the room that is seen is that of another disk.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::ids::RecordingId;
use domain::recording::retention::{
    DISK_BYTES_RESERVED, GrowingFile, RetentionCause, RetentionInput, RetentionPlan, retention, user_quota,
};
use domain::recording::rules::RecordingRule;
use domain::recording::{LeftFiles, Recording, RecordingInput};
use domain::setting::CoreSetting;
use domain::user::User;
use media::spawn_blocking;
use storage::{Record, Write};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::removal::remember_deleted;
use super::room::RecordingRoom;
use super::state::{Recorder, RecorderParts, RecorderState, any_changed};
use crate::clock::now_ms;

/// Pause between looks while something is recorded.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// The same while nothing is.
const IDLE_PERIOD: Duration = Duration::from_secs(30);
/// Pause while the node that writes the records has not stored what this one reports.
const REPORT_PERIOD: Duration = Duration::from_secs(3);

/// A change of one of these may be a reason for other recordings to go.
const COLLECTIONS: [&str; 5] = [
    Recording::COLLECTION,
    LeftFiles::COLLECTION,
    RecordingRule::COLLECTION,
    CoreSetting::COLLECTION,
    User::COLLECTION,
];

/// The sizes of growing files at the last look.
#[derive(Default)]
struct Sizes {
    at: Option<Instant>,
    bytes: HashMap<RecordingId, u64>,
}

impl Sizes {
    /// Returns the growing files, and notes their sizes.
    fn look(&mut self, sizes: HashMap<RecordingId, u64>) -> HashMap<RecordingId, GrowingFile> {
        let now = Instant::now();
        let millis = self.at.map_or(0, |it| now.duration_since(it).as_millis());
        let grown = |id: &RecordingId, bytes: u64| {
            let before = self.bytes.get(id).copied().unwrap_or(bytes);
            let per_second = u128::from(bytes.saturating_sub(before)) * 1000 / millis.max(1);
            let bytes_per_second = u64::try_from(per_second).unwrap_or(u64::MAX);
            GrowingFile { bytes, bytes_per_second }
        };
        let growing = sizes.iter().map(|(id, bytes)| (*id, grown(id, *bytes))).collect();
        *self = Self { at: Some(now), bytes: sizes };
        growing
    }
}

impl RecorderState {
    /// Looks at the files until the gateway stops.
    pub(super) async fn keep_room(self: Arc<Self>) {
        let Some(parts) = self.parts.get() else { return };
        let mut changes = parts.models.store.changes();
        let (mut sizes, mut was_full) = (Sizes::default(), false);
        let mut has_adopted = false;
        loop {
            let room = self.room(parts, &mut sizes).await;
            if room.is_disk_full() && !was_full {
                let mib = room.available.unwrap_or(0) >> 20;
                warn!(
                    "the disk of the recordings is almost full: {mib} MiB are left, and the last {} MiB are not used",
                    DISK_BYTES_RESERVED >> 20
                );
            }
            was_full = room.is_disk_full();
            *self.room.lock() = room.clone();
            if parts.models.store.writes_shared() {
                has_adopted = has_adopted || self.adopt_files(parts).await;
                self.carry_out(parts, &room.plan).await;
            } else {
                has_adopted = false;
            }
            let is_settled = self.settle_files(parts).await;
            let is_idle = self.running.lock().is_empty();
            let pause = match is_idle {
                true if is_settled => IDLE_PERIOD,
                true => REPORT_PERIOD,
                false => LOOK_PERIOD,
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = any_changed(&mut changes, &COLLECTIONS), if is_idle => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    async fn room(&self, parts: &RecorderParts, sizes: &mut Sizes) -> RecordingRoom {
        self.time_shift.make_room().await;
        let (folder, looked_at) = (parts.folder.clone(), Some(Instant::now()));
        let looked = spawn_blocking(move || (folder.is_marked(), folder.available()));
        let (is_marked, available) = looked.await.unwrap_or((false, None));
        let recordings: Vec<_> = parts.models.recordings.load().iter().cloned().collect();
        if !is_marked {
            let is_unmarked = recordings.iter().any(|it| it.parts().any(|it| parts.folder.has(it)));
            return RecordingRoom { is_unmarked, looked_at, ..RecordingRoom::default() };
        }
        let running = self.running.lock();
        let running: HashMap<_, _> =
            running.iter().map(|(id, it)| (*id, it.bytes.load(Ordering::Relaxed))).collect();
        let (settings, _) = self.settings();
        let (rules, users) = (parts.models.recording_rules.load(), parts.models.users.load());
        let plan = retention(&RetentionInput {
            recordings: &recordings,
            growing: &sizes.look(running),
            settings: &settings,
            rule_quota: &|id| rules.get(id.0).map_or(0, |it| it.quota_bytes),
            user_quota: &|id| users.get(id.0).map_or(0, |it| user_quota(it, &settings)),
            is_here: &|it| it.file.as_ref().is_some_and(|it| parts.folder.has(it)),
            available,
            now: now_ms(),
        });
        RecordingRoom { is_unmarked: false, available, plan, looked_at }
    }

    async fn carry_out(self: &Arc<Self>, parts: &RecorderParts, plan: &RetentionPlan) {
        for (id, cause) in &plan.removed {
            self.remove_recording(parts, *id, *cause).await;
        }
        // The end could not be noted, and would be tried again each second.
        let is_writable = parts.models.store.stop_reason().borrow().is_none();
        for (id, cause) in plan.ended.iter().filter(|_| is_writable) {
            let (id, reason) = (id.0, cause.to_string());
            warn!(recording.id = %id, "a recording ends early: {reason}");
            let ended = parts.models.store.write(move |write: &mut Write<'_>| {
                let Some(mut recording) = write.get::<Recording>(id)? else { return Ok(()) };
                // One that has ended by itself refuses it.
                if recording.apply(RecordingInput::EndedIncomplete, Some(reason), now_ms()).is_ok() {
                    write.put(&recording)?;
                }
                Ok::<_, storage::Error>(())
            });
            if let Err(cause) = ended.await {
                warn!(recording.id = %id, "failed to end a recording: {cause}");
            }
        }
    }

    /// Removes a finished recording with its file, unless it was protected meanwhile.
    async fn remove_recording(
        self: &Arc<Self>,
        parts: &RecorderParts,
        id: RecordingId,
        cause: RetentionCause,
    ) {
        let recorder = Recorder { shared: Arc::clone(self) };
        let removed = parts.models.store.write(move |write: &mut Write<'_>| {
            let may_go = |it: &Recording| it.status.is_final() && !it.protected;
            let Some(recording) = write.get::<Recording>(id.0)?.filter(may_go) else { return Ok(None) };
            write.remove::<Recording>(id.0)?;
            if recording.file.is_some() {
                remember_deleted(write, &recording)?;
            }
            recorder.leave_files(write, &recording)?;
            let report = recorder.report_removal(write, &recording)?;
            Ok::<_, storage::Error>(Some((recording, report)))
        });
        let recording = match removed.await {
            Ok(Some((recording, report))) => {
                report.announce();
                recording
            }
            Ok(None) => return,
            // A full disk can be the reason. The record goes when the store can be written again.
            Err(error) => {
                warn!(recording.id = %id, "failed to remove the record of a recording: {error}");
                let kept = parts.models.recordings.load().get(id.0).cloned();
                let Some(kept) = kept.filter(|it| !it.protected && cause == RetentionCause::Disk) else {
                    return;
                };
                Recording::clone(&kept)
            }
        };
        info!(recording.id = %id, "recording of \"{}\" is removed: {cause}", recording.title());
        Recorder { shared: Arc::clone(self) }.remove_file(&recording).await;
    }
}
