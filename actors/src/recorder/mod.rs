//! Recordings while they are made.
//!
//! A recording reads the ring of its channel like any client, so it opens no connection of its own and takes no seat. The
//! [`schedule`](Recorder::start) starts a run for each recording that is due; a run ends when its record says that it is
//! over. What has to survive a restart is in the record, so that the next process continues where this one ended.
//!
//! ```text
//!  store ─► schedule ─► run ─► switchboard ─► ring
//!                        └► file (threads that may block)
//! ```

mod after;
pub(crate) mod file;
mod folder;
mod forecast;
pub(crate) mod index;
pub(crate) mod intake;
mod keeper;
mod loss;
#[cfg(test)]
mod lost_tests;
mod missed;
mod node_files;
mod permission;
#[cfg(test)]
mod rank_tests;
mod reading;
mod removal;
mod reserve;
mod run;
mod seen;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::core_settings::{DVR_SETTINGS, SYSTEM_SETTINGS, time_zone};
use domain::ids::RecordingId;
use domain::recording::forecast::Forecast;
use domain::recording::{DvrSettings, Recording};
use parking_lot::Mutex;
use storage::{ChangeMessage, Models, Record};
use tokio::sync::{Notify, Semaphore, SetOnce};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, error, warn};

pub use self::after::{AfterSettings, Artwork, FindArtwork};
pub(crate) use self::folder::FolderError;
pub use self::folder::RecordingsFolder;
use self::forecast::Forecasts;
pub use self::forecast::RecordingPools;
pub use self::index::{AccessPoint, RecordingIndex};
pub use self::keeper::{RecordingRoom, remember_deleted};
pub use self::node_files::{FileReport, ReportFiles};
pub(crate) use self::reading::ReadingRecording;
pub use self::removal::RemovalReport;
pub use self::seen::SeenRecordings;
use crate::channel::LiveEnv;
use crate::clock::now_ms;
use crate::schedule;
use crate::switchboard::Switchboard;
use crate::tasks::{self, RESPAWN_DELAY, RespawnedTask};
use crate::timeshift::TimeShift;
use crate::vod::Vod;
use crate::writer::role_changed;

/// An idle channel starts this long before a recording, in milliseconds, so that it plays in time.
const LEAD_MS: i64 = 10_000;
/// Longest wait of the schedule, so that a change of the wall clock is noticed, in milliseconds.
const LOOK_MS_MAX: i64 = 30_000;
/// Maximum wait for runs to end when the gateway stops, and for one run whose recording is deleted.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// The handle for recordings, shared between clones.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

struct Shared {
    switchboard: Switchboard,
    vod: Vod,
    env: Arc<LiveEnv>,
    /// Gives up its files before recordings suffer.
    time_shift: TimeShift,
    parts: OnceLock<Parts>,
    forecasts: OnceLock<Arc<Forecasts>>,
    /// The runs at this moment; at most one for each recording.
    running: Mutex<HashMap<RecordingId, Arc<RunCounters>>>,
    /// Notified when a run ends.
    ended: Notify,
    runs: TaskTracker,
    stop: CancellationToken,
    schedule: Mutex<Option<RespawnedTask>>,
    /// The task that looks at the files and their disk.
    keeper: Mutex<Option<RespawnedTask>>,
    room: Mutex<RecordingRoom>,
    /// Set if work is done on files after recordings.
    after: OnceLock<AfterSettings>,
    /// Set if pictures can be found; work on them waits for it.
    artwork: SetOnce<Arc<dyn FindArtwork>>,
    worker: Mutex<Option<RespawnedTask>>,
    /// Set in a cluster.
    reporter: OnceLock<Arc<dyn ReportFiles>>,
    /// The task that reserves slots.
    reserver: Mutex<Option<RespawnedTask>>,
    /// Held while an index is made of a whole file.
    index_turn: Semaphore,
}

/// The parts of the gateway that the recorder uses.
struct Parts {
    models: Models,
    folder: RecordingsFolder,
    forecasts: Arc<Forecasts>,
    /// When the recorder started, in milliseconds since 1970.
    started_at: i64,
}

/// The counters of a run.
#[derive(Debug, Default)]
struct RunCounters {
    bytes: AtomicU64,
    synced: AtomicU64,
}

/// The progress of a recording that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingProgress {
    /// Size of the file in bytes.
    pub bytes: u64,
    /// How many of them are on the disk for sure.
    pub synced_bytes: u64,
}

impl Recorder {
    pub(crate) fn new(
        switchboard: Switchboard,
        vod: Vod,
        env: Arc<LiveEnv>,
        time_shift: TimeShift,
        stop: CancellationToken,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                switchboard,
                vod,
                env,
                time_shift,
                parts: OnceLock::new(),
                forecasts: OnceLock::new(),
                running: Mutex::default(),
                ended: Notify::new(),
                runs: TaskTracker::new(),
                stop,
                schedule: Mutex::default(),
                keeper: Mutex::default(),
                room: Mutex::default(),
                after: OnceLock::new(),
                artwork: SetOnce::new(),
                worker: Mutex::default(),
                reporter: OnceLock::new(),
                reserver: Mutex::default(),
                index_turn: Semaphore::new(1),
            }),
        }
    }

    /// Starts to make the recordings of a store. Only the first call has an effect.
    pub(crate) fn start(&self, models: Models, folder: RecordingsFolder) {
        let forecasts = self.forecasts(&models);
        if self.shared.parts.set(Parts { models, folder, forecasts, started_at: now_ms() }).is_err() {
            return;
        }
        let task = self.respawned("the schedule of recordings", Shared::follow_schedule);
        *self.shared.schedule.lock() = Some(task);
        let task = self.respawned("the keeper of recordings", Shared::keep_room);
        *self.shared.keeper.lock() = Some(task);
        let task = self.respawned("the reserved slots of recordings", Shared::reserve_slots);
        *self.shared.reserver.lock() = Some(task);
    }

    /// Starts the work on files after recordings. Only the first call after [`Recorder::start`] has an effect.
    pub(crate) fn work_after(&self, settings: AfterSettings) {
        if self.shared.after.set(settings).is_err() {
            return;
        }
        let task = self.respawned("the work after recordings", |shared| async move {
            let runs = shared.runs.clone();
            runs.track_future(shared.follow_work()).await;
        });
        *self.shared.worker.lock() = Some(task);
    }

    /// Sets what finds the pictures of recordings. Only the first call has an effect.
    pub fn find_artwork_with(&self, finder: Arc<dyn FindArtwork>) {
        if self.shared.artwork.set(finder).is_err() {
            debug!("pictures of recordings are found already");
        }
    }

    /// Starts a task that does not keep the recorder, and starts again after a failure.
    fn respawned<F>(
        &self,
        name: &'static str,
        run: impl Fn(Arc<Shared>) -> F + Send + 'static,
    ) -> RespawnedTask
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let shared = Arc::downgrade(&self.shared);
        tasks::respawn(name, move || {
            let running = shared.upgrade().map(&run);
            async move {
                if let Some(running) = running {
                    running.await;
                }
            }
        })
    }

    /// Returns the folder of recordings; `None` before the recorder has started.
    pub fn folder(&self) -> Option<&RecordingsFolder> {
        self.shared.parts.get().map(|it| &it.folder)
    }

    /// Returns the forecast of the recordings of the next two weeks. May block.
    pub fn forecast(&self, models: &Models) -> Arc<Forecast> {
        self.forecasts(models).current()
    }

    fn forecasts(&self, models: &Models) -> Arc<Forecasts> {
        let new = || Arc::new(Forecasts::new(models.clone(), self.shared.env.clone()));
        Arc::clone(self.shared.forecasts.get_or_init(new))
    }

    /// Returns the room for recordings at the last look at their disk.
    pub fn room(&self) -> RecordingRoom {
        self.shared.room.lock().clone()
    }

    /// Returns the progress of a recording that runs.
    pub fn progress(&self, id: RecordingId) -> Option<RecordingProgress> {
        let running = self.shared.running.lock();
        running.get(&id).map(|it| RecordingProgress {
            bytes: it.bytes.load(Ordering::Relaxed),
            synced_bytes: it.synced.load(Ordering::Relaxed),
        })
    }

    /// Lists the recordings that run on this node, with the sizes of their files in bytes.
    pub fn running(&self) -> Vec<(RecordingId, u64)> {
        let running = self.shared.running.lock();
        running.iter().map(|it| (*it.0, it.1.bytes.load(Ordering::Relaxed))).collect()
    }

    /// Returns the points of a recording at which playing can begin; `None` if it has no file on this node. What its index
    /// lacks is read from the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn index(&self, recording: &Recording) -> io::Result<Option<RecordingIndex>> {
        let (Some(parts), Some(file)) = (self.shared.parts.get(), &recording.file) else { return Ok(None) };
        if !parts.folder.has(file) {
            return Ok(None);
        }
        let known = index::Known::load(parts.folder.clone(), recording.id, file.path.clone()).await?;
        let Some(known) = known else { return Ok(None) };
        // One file at a time is read whole.
        let _turn = match known.is_short() {
            true => None,
            false => self.shared.index_turn.acquire().await.ok(),
        };
        known.complete(file.ended_at.is_some()).await.map(Some)
    }

    /// Removes the files of a recording whose record was removed from this node, after its run has ended. A file that cannot
    /// be removed is logged.
    pub async fn remove_file(&self, recording: &Recording) {
        let Some(parts) = self.shared.parts.get() else { return };
        let ended = async {
            loop {
                let notified = self.shared.ended.notified();
                if !self.shared.running.lock().contains_key(&recording.id) {
                    return;
                }
                notified.await;
            }
        };
        // The file of a run that does not end in time is removed all the same: its writer keeps a file without a name.
        let _ = timeout(END_TIMEOUT, ended).await;
        let (folder, id) = (parts.folder.clone(), recording.id);
        if let Ok(Err(cause)) =
            tokio::task::spawn_blocking(move || folder.remove_beside(id).and(folder.remove_index(id))).await
        {
            warn!(recording.id = %recording.id, "failed to remove the index of a recording: {cause}");
        }
        for path in recording.paths_where(|it| parts.folder.has(it)) {
            let folder = parts.folder.clone();
            let removed = tokio::task::spawn_blocking(move || folder.remove(&path)).await;
            if let Ok(Err(cause)) = removed {
                warn!(recording.id = %recording.id, "failed to remove a file of a recording: {cause}");
            }
        }
    }

    /// Waits until every file is closed, after the system was told to stop.
    pub(crate) async fn ended(&self) {
        self.shared.schedule.lock().take();
        self.shared.keeper.lock().take();
        self.shared.reserver.lock().take();
        self.shared.runs.close();
        // A run that does not end in time ends with the runtime.
        let _ = timeout(END_TIMEOUT, self.shared.runs.wait()).await;
        self.shared.worker.lock().take();
    }
}

impl Shared {
    async fn follow_schedule(self: Arc<Self>) {
        let Some(parts) = self.parts.get() else { return };
        let mut changes = parts.models.store.changes();
        let mut role = parts.models.store.log_status();
        loop {
            let now = now_ms();
            let mut next = now.saturating_add(LOOK_MS_MAX);
            // In a cluster, the node that writes the configuration records. What a file lacks is added where it is.
            let is_here = parts.models.store.writes_shared();
            let names_node = |it: &Recording| it.file.as_ref().is_some_and(|it| it.node.is_some());
            let may_run = |it: &&Arc<Recording>| is_here || it.missed_are_due() && names_node(it);
            for recording in parts.models.recordings.load().iter().filter(may_run) {
                match due_at(recording, &parts.folder) {
                    Some(due) if due <= now => self.start_run(recording.id),
                    Some(due) => next = next.min(due),
                    None => {}
                }
            }
            let wait = Duration::from_millis(u64::try_from(next.saturating_sub(now)).unwrap_or(0));
            tokio::select! {
                () = sleep(wait) => {}
                () = self.ended.notified() => {}
                () = any_changed(&mut changes, &[Recording::COLLECTION]) => {}
                () = role_changed(&mut role, is_here) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    fn start_run(self: &Arc<Self>, id: RecordingId) {
        let counters = Arc::new(RunCounters::default());
        {
            let mut running = self.running.lock();
            if self.stop.is_cancelled() || running.contains_key(&id) {
                return;
            }
            running.insert(id, counters.clone());
        }
        let shared = self.clone();
        let run = async move {
            let _guard = Forget { shared: shared.clone(), id };
            let running = tokio::spawn(run::run(shared, id, counters));
            if let Err(death) = running.await {
                error!(recording.id = %id, "a recording failed and is continued: {death}");
                sleep(RESPAWN_DELAY).await;
            }
        };
        self.runs.spawn_on(run, &self.env.packets);
    }

    /// Returns the settings of recordings and the time zone.
    fn settings(&self) -> (DvrSettings, jiff::tz::TimeZone) {
        let models = self.parts.get().map(|it| &it.models);
        let system = models.and_then(|it| value_of(it, SYSTEM_SETTINGS));
        let zone = schedule::time_zone(time_zone(system.as_ref()));
        (models.map(dvr_settings).unwrap_or_default(), zone)
    }
}

pub(crate) fn dvr_settings(models: &Models) -> DvrSettings {
    DvrSettings::from_setting(value_of(models, DVR_SETTINGS).as_ref())
}

fn value_of(models: &Models, key: &str) -> Option<serde_json::Value> {
    models.settings.load().one_by("key", key).map(|it| it.value.clone())
}

/// Removes a run from the table when it ends.
struct Forget {
    shared: Arc<Shared>,
    id: RecordingId,
}

impl Drop for Forget {
    fn drop(&mut self) {
        self.shared.running.lock().remove(&self.id);
        self.shared.ended.notify_waiters();
        // For a schedule that does not wait at this moment.
        self.shared.ended.notify_one();
    }
}

/// Returns when a recording needs a run; `None` if it needs none any more.
fn due_at(recording: &Recording, folder: &RecordingsFolder) -> Option<i64> {
    match recording.status.is_final() {
        // Its node reports the end of the file.
        true if recording.file.as_ref().is_some_and(|it| !folder.has(it)) => None,
        false => Some(recording.begins_at().saturating_sub(LEAD_MS)),
        // It was ended, and its file is not finished.
        true if recording.file.as_ref().is_some_and(|it| it.ended_at.is_none()) => Some(i64::MIN),
        true => recording.missed_are_due().then_some(i64::MIN),
    }
}

/// Waits for a commit that may have changed one of these collections.
async fn any_changed(changes: &mut storage::Changes, collections: &[&str]) {
    loop {
        match changes.next().await {
            ChangeMessage::Changed(change) if collections.iter().all(|it| change.of(it).is_none()) => {}
            ChangeMessage::Changed(_) | ChangeMessage::Lagged => return,
            ChangeMessage::Closed => std::future::pending().await,
        }
    }
}
