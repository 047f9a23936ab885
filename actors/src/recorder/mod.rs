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
mod events;
mod file_report;
mod forecast;
#[cfg(test)]
mod lost_tests;
mod missed;
mod node_files;
mod permission;
mod priority;
#[cfg(test)]
mod rank_tests;
mod record_changes;
mod removal;
mod reserve;
mod retention;
mod room;
mod run;
mod schedule;
mod state;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::ids::RecordingId;
use domain::recording::Recording;
use domain::recording::forecast::Forecast;
use media::spawn_blocking;
use parking_lot::Mutex;
use storage::Models;
use tokio::sync::{Notify, Semaphore, SetOnce};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

pub use self::after::{AfterSettings, Artwork, FindArtwork};
pub use self::file_report::{FileReport, ReportFiles};
use self::forecast::Forecasts;
pub use self::forecast::RecordingPools;
pub use self::removal::{RemovalReport, remember_deleted};
pub use self::room::RecordingRoom;
pub use self::state::{Recorder, RecordingProgress};
use self::state::{RecorderParts, RecorderState};
use crate::channel::LiveEnv;
use crate::clock::now_ms;
use crate::recording_files::{RecordingIndex, RecordingsFolder, index};
use crate::switchboard::Switchboard;
use crate::tasks::{self, RespawnedTask};
use crate::timeshift::TimeShift;
use crate::vod::Vod;

/// Maximum wait for runs to end when the gateway stops, and for one run whose recording is deleted.
const END_TIMEOUT: Duration = Duration::from_secs(3);

impl Recorder {
    pub(crate) fn new(
        switchboard: Switchboard,
        vod: Vod,
        env: Arc<LiveEnv>,
        time_shift: TimeShift,
        stop: CancellationToken,
    ) -> Self {
        Self {
            shared: Arc::new(RecorderState {
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
        if self.shared.parts.set(RecorderParts { models, folder, forecasts, started_at: now_ms() }).is_err() {
            return;
        }
        let task = self.respawned("the schedule of recordings", RecorderState::follow_schedule);
        *self.shared.schedule.lock() = Some(task);
        let task = self.respawned("the keeper of recordings", RecorderState::keep_room);
        *self.shared.keeper.lock() = Some(task);
        let task = self.respawned("the reserved slots of recordings", RecorderState::reserve_slots);
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
        run: impl Fn(Arc<RecorderState>) -> F + Send + 'static,
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
            spawn_blocking(move || folder.remove_beside(id).and(folder.remove_index(id))).await
        {
            warn!(recording.id = %recording.id, "failed to remove the index of a recording: {cause}");
        }
        for path in recording.paths_where(|it| parts.folder.has(it)) {
            let folder = parts.folder.clone();
            let removed = spawn_blocking(move || folder.remove(&path)).await;
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
