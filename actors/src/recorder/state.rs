//! What the tasks of the recorder share.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use domain::core_settings::{SYSTEM_SETTINGS, time_zone};
use domain::ids::RecordingId;
use domain::recording::{DvrSettings, Recording};
use parking_lot::Mutex;
use storage::{ChangeMessage, Models};
use tokio::sync::{Notify, Semaphore, SetOnce};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::after::{AfterSettings, FindArtwork};
use super::file_report::ReportFiles;
use super::forecast::Forecasts;
use super::room::RecordingRoom;
use crate::channel::LiveEnv;
use crate::recording_files::{RecordingsFolder, dvr_settings};
use crate::schedule;
use crate::switchboard::Switchboard;
use crate::tasks::RespawnedTask;
use crate::timeshift::TimeShift;
use crate::vod::Vod;

/// The handle for recordings, shared between clones.
#[derive(Clone)]
pub struct Recorder {
    pub(super) shared: Arc<RecorderState>,
}

pub(super) struct RecorderState {
    pub(super) switchboard: Switchboard,
    pub(super) vod: Vod,
    pub(super) env: Arc<LiveEnv>,
    /// Gives up its files before recordings suffer.
    pub(super) time_shift: TimeShift,
    pub(super) parts: OnceLock<RecorderParts>,
    pub(super) forecasts: OnceLock<Arc<Forecasts>>,
    /// The runs at this moment; at most one for each recording.
    pub(super) running: Mutex<HashMap<RecordingId, Arc<RunCounters>>>,
    /// Notified when a run ends.
    pub(super) ended: Notify,
    pub(super) runs: TaskTracker,
    pub(super) stop: CancellationToken,
    pub(super) schedule: Mutex<Option<RespawnedTask>>,
    /// The task that looks at the files and their disk.
    pub(super) keeper: Mutex<Option<RespawnedTask>>,
    pub(super) room: Mutex<RecordingRoom>,
    /// Set if work is done on files after recordings.
    pub(super) after: OnceLock<AfterSettings>,
    /// Set if pictures can be found; work on them waits for it.
    pub(super) artwork: SetOnce<Arc<dyn FindArtwork>>,
    pub(super) worker: Mutex<Option<RespawnedTask>>,
    /// Set in a cluster.
    pub(super) reporter: OnceLock<Arc<dyn ReportFiles>>,
    /// The task that reserves slots.
    pub(super) reserver: Mutex<Option<RespawnedTask>>,
    /// Held while an index is made of a whole file.
    pub(super) index_turn: Semaphore,
}

/// The parts of the gateway that the recorder uses.
pub(super) struct RecorderParts {
    pub(super) models: Models,
    pub(super) folder: RecordingsFolder,
    pub(super) forecasts: Arc<Forecasts>,
    /// When the recorder started, in milliseconds since 1970.
    pub(super) started_at: i64,
}

/// The counters of a run.
#[derive(Debug, Default)]
pub(super) struct RunCounters {
    pub(super) bytes: AtomicU64,
    pub(super) synced: AtomicU64,
}

/// The progress of a recording that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingProgress {
    /// Size of the file in bytes.
    pub bytes: u64,
    /// How many of them are on the disk for sure.
    pub synced_bytes: u64,
}

impl RecorderState {
    /// Returns the settings of recordings and the time zone.
    pub(super) fn settings(&self) -> (DvrSettings, jiff::tz::TimeZone) {
        let models = self.parts.get().map(|it| &it.models);
        let stored = models.map(|it| it.settings.load());
        let system = stored.as_ref().and_then(|it| it.one_by("key", SYSTEM_SETTINGS)).map(|it| &it.value);
        let zone = schedule::time_zone(time_zone(system));
        (models.map(dvr_settings).unwrap_or_default(), zone)
    }

    /// Returns the record of a recording.
    pub(super) fn recording(&self, id: RecordingId) -> Option<Arc<Recording>> {
        self.parts.get()?.models.recordings.load().get(id.0).cloned()
    }
}

/// Waits for a commit that may have changed one of these collections.
pub(super) async fn any_changed(changes: &mut storage::Changes, collections: &[&str]) {
    loop {
        match changes.next().await {
            ChangeMessage::Changed(change) if collections.iter().all(|it| change.ids(it).is_none()) => {}
            ChangeMessage::Changed(_) | ChangeMessage::Lagged => return,
            ChangeMessage::Closed => std::future::pending().await,
        }
    }
}
