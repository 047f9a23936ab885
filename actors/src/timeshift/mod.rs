//! Own time-shift: the past of channels, which the gateway keeps itself in a ring of files for each channel.
//!
//! A ring is written by a reader of the live channel, as a recording is one: it takes no seat, and survives failover. The
//! keeper starts a run for each channel whose past is wanted, and removes what is above a limit. Before recordings run out
//! of room, rings give up their oldest files, and at last pause.
//!
//! ```text
//!  settings, viewers ─► keeper ─► run ─► switchboard ─► ring of the live channel
//!                                  └► ring (files) ─► readers
//! ```

mod read;
mod ring;
mod run;
mod sessions;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::core_settings::TIMESHIFT_SETTINGS;
use domain::recording::retention::DISK_BYTES_RESERVED;
use domain::timeshift::{TimeShiftMode, TimeShiftSettings, room_left, surplus};
use media::spawn_blocking;
use parking_lot::Mutex;
use storage::Models;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};
use uuid::Uuid;

pub use self::read::{PastPart, PastReader};
use self::ring::Ring;
pub use self::sessions::PastSession;
use self::sessions::ReadingSession;
use crate::channel::RecordingReader;
use crate::clock::now_ms;
use crate::plans::Target;
use crate::recording_files::{FolderError, RecordingsFolder, dvr_settings};
use crate::switchboard::Switchboard;
use crate::tasks::{self, RespawnedTask};

/// How often settings, viewers and the disk are looked at.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// The past of a channel that is kept while it is watched is kept this long after its last viewer.
const LINGER: Duration = Duration::from_secs(5);
/// Maximum wait for runs to end.
const END_TIMEOUT: Duration = Duration::from_secs(3);
/// Rings that paused because of the disk continue when it has this much more room than they leave, in bytes.
const RESUME_BYTES: u64 = 32 << 20;

/// The handle for the past of channels, shared between clones.
#[derive(Clone)]
pub struct TimeShift {
    shared: Arc<Shared>,
}

struct Shared {
    switchboard: Switchboard,
    packets: tokio::runtime::Handle,
    parts: OnceLock<Parts>,
    /// By the UUID of the channel: those that are written, or have files.
    rings: Mutex<HashMap<Uuid, Arc<Ring>>>,
    running: Mutex<HashMap<Uuid, Running>>,
    /// Notified when a run ends.
    ended: Notify,
    /// Whether nothing is written, because the disk is short of room.
    is_paused: AtomicBool,
    /// Held while files are removed because of a limit.
    room_turn: tokio::sync::Mutex<()>,
    /// Those who read the past, by number.
    sessions: Mutex<BTreeMap<u64, Arc<ReadingSession>>>,
    counter: Arc<AtomicU64>,
    runs: TaskTracker,
    stop: CancellationToken,
    keeper: Mutex<Option<RespawnedTask>>,
}

/// The parts of the gateway that are used.
struct Parts {
    models: Models,
    folder: RecordingsFolder,
    /// The folder of recordings, which may be on the same disk.
    recordings: RecordingsFolder,
}

struct Running {
    stop: CancellationToken,
    /// When the channel was last found to be wanted.
    wanted_at: Instant,
}

impl TimeShift {
    pub(crate) fn new(
        switchboard: Switchboard,
        packets: tokio::runtime::Handle,
        counter: Arc<AtomicU64>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                switchboard,
                packets,
                parts: OnceLock::new(),
                rings: Mutex::default(),
                running: Mutex::default(),
                ended: Notify::new(),
                is_paused: AtomicBool::new(false),
                room_turn: tokio::sync::Mutex::default(),
                sessions: Mutex::default(),
                counter,
                runs: TaskTracker::new(),
                stop,
                keeper: Mutex::default(),
            }),
        }
    }

    /// Starts to keep the past of the channels of a store in a folder. Only the first call has an effect.
    pub(crate) fn start(&self, models: Models, folder: RecordingsFolder, recordings: RecordingsFolder) {
        if self.shared.parts.set(Parts { models, folder, recordings }).is_err() {
            return;
        }
        let shared = Arc::downgrade(&self.shared);
        let task = tasks::respawn("the keeper of the past of channels", move || {
            let shared = shared.upgrade();
            async move {
                if let Some(shared) = shared {
                    shared.keep().await;
                }
            }
        });
        *self.shared.keeper.lock() = Some(task);
    }

    /// Returns the part of the past of a channel from one time to another, in milliseconds since 1970. One whose end is to
    /// come is followed. `None` if the gateway has not kept its start.
    ///
    /// # Errors
    /// The files cannot be read.
    pub async fn part(&self, channel: Uuid, start: i64, end: i64) -> io::Result<Option<PastPart>> {
        let Some(ring) = self.shared.rings.lock().get(&channel).cloned() else { return Ok(None) };
        spawn_blocking(move || read::find(ring, start, end)).await.map_err(io::Error::other)?
    }

    /// Returns the first time of a channel that is kept, in milliseconds since 1970.
    pub fn since(&self, channel: Uuid) -> Option<i64> {
        self.shared.rings.lock().get(&channel)?.since()
    }

    /// Removes files until the rings keep their limits and leave the room that recordings need.
    pub(crate) async fn make_room(&self) {
        self.shared.make_room().await;
    }

    /// Waits until every file is closed, after the system was told to stop.
    pub(crate) async fn ended(&self) {
        self.shared.keeper.lock().take();
        self.shared.runs.close();
        // A run that does not end in time ends with the runtime.
        let _ = timeout(END_TIMEOUT, self.shared.runs.wait()).await;
    }
}

impl Shared {
    fn settings(&self) -> TimeShiftSettings {
        let settings = self.parts.get().map(|it| it.models.settings.load());
        let setting = settings.as_ref().and_then(|it| it.one_by("key", TIMESHIFT_SETTINGS));
        TimeShiftSettings::from_setting(setting.map(|it| &it.value))
    }

    async fn keep(self: Arc<Self>) {
        let Some(parts) = self.parts.get() else { return };
        self.load(parts).await;
        loop {
            let settings = self.settings();
            let channels = parts.models.channels.load();
            let modes: HashMap<Uuid, TimeShiftMode> = channels
                .iter()
                .map(|it| (it.uuid, settings.mode_of(it)))
                .filter(|it| it.1 != TimeShiftMode::Off)
                .collect();
            let watched = match modes.values().any(|it| *it == TimeShiftMode::Watched) {
                true => self.watched().await,
                false => HashSet::new(),
            };
            let is_wanted = |it: &(&Uuid, &TimeShiftMode)| match it.1 {
                TimeShiftMode::Off => false,
                TimeShiftMode::Always => true,
                TimeShiftMode::Watched => watched.contains(it.0),
            };
            let wanted = modes.iter().filter(is_wanted).map(|it| (*it.0, *it.1)).collect();
            self.apply(&wanted, |it| modes.contains_key(it));
            self.remove_others(|it| modes.contains_key(it)).await;
            self.make_room().await;
            tokio::select! {
                () = sleep(LOOK_PERIOD) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Finds the files that an earlier process left.
    async fn load(&self, parts: &Parts) {
        let folder = parts.folder.clone();
        let load = move || {
            if !folder.is_marked() {
                return Ok(Vec::new());
            }
            let uuids = folder.list("")?.into_iter().filter_map(|it| Uuid::try_parse(&it).ok());
            let rings = uuids.map(|uuid| Ok((uuid, Arc::new(Ring::load(uuid, folder.clone())?))));
            rings.collect::<Result<Vec<_>, FolderError>>()
        };
        match blocking(load).await {
            Ok(Ok(found)) => {
                let mut rings = self.rings.lock();
                for (uuid, ring) in found {
                    // A keeper that starts again finds those of the one before.
                    rings.entry(uuid).or_insert(ring);
                }
            }
            Ok(Err(cause)) => warn!("failed to read the past of channels: {cause}"),
            Err(cause) => warn!("failed to read the past of channels: {cause}"),
        }
    }

    /// Returns the channels that somebody watches now, or whose past somebody follows.
    async fn watched(&self) -> HashSet<Uuid> {
        let mut watched = HashSet::new();
        for it in self.switchboard.overview().await.unwrap_or_default() {
            let is_viewer = |agent: &str| !RecordingReader::is_agent(agent);
            let has_viewer = it.status.is_some_and(|it| it.clients.iter().any(|it| is_viewer(&it.agent)));
            if let (Target::Channel(uuid), true) = (it.target, has_viewer) {
                watched.insert(uuid);
            }
        }
        watched.extend(self.rings.lock().iter().filter(|it| it.1.is_followed()).map(|it| *it.0));
        watched
    }

    /// Starts and stops runs.
    fn apply(self: &Arc<Self>, wanted: &HashMap<Uuid, TimeShiftMode>, is_kept: impl Fn(&Uuid) -> bool) {
        let (now, is_paused) = (Instant::now(), self.is_paused.load(Ordering::Relaxed));
        let mut running = self.running.lock();
        for (uuid, run) in running.iter_mut() {
            if wanted.contains_key(uuid) {
                run.wanted_at = now;
            } else if !is_kept(uuid) || now.duration_since(run.wanted_at) > LINGER {
                run.stop.cancel();
            }
        }
        for (uuid, mode) in wanted.iter().map(|it| (*it.0, *it.1)) {
            if is_paused || running.contains_key(&uuid) || self.stop.is_cancelled() {
                continue;
            }
            let Some(parts) = self.parts.get() else { return };
            let new = || Arc::new(Ring::new(uuid, parts.folder.clone()));
            let ring = Arc::clone(self.rings.lock().entry(uuid).or_insert_with(new));
            let stop = self.stop.child_token();
            running.insert(uuid, Running { stop: stop.clone(), wanted_at: now });
            // Also after a panic, so that the keeper starts another run.
            let forget = Forget { shared: Arc::clone(self), uuid };
            let run = async move {
                let forget = forget;
                run::run(Arc::clone(&forget.shared), uuid, ring, mode, stop).await;
            };
            self.runs.spawn_on(run, &self.packets);
        }
    }

    /// Removes the past of channels that is not kept any more, after their runs have ended.
    async fn remove_others(&self, is_kept: impl Fn(&Uuid) -> bool) {
        let others: Vec<Arc<Ring>> = {
            let (running, mut rings) = (self.running.lock(), self.rings.lock());
            let is_over = |it: &Uuid| !is_kept(it) && !running.contains_key(it);
            rings.extract_if(|it, _| is_over(it)).map(|it| it.1).collect()
        };
        for ring in others {
            if let Ok(Err(cause)) = blocking(move || ring.close()).await {
                warn!("failed to remove the past of a channel: {cause}");
            }
        }
    }

    async fn make_room(&self) {
        let Some(parts) = self.parts.get() else { return };
        let _turn = self.room_turn.lock().await;
        let was_paused = self.is_paused.load(Ordering::Relaxed);
        if self.rings.lock().is_empty() {
            return;
        }
        let (missing, _) = self.trim(parts).await;
        if missing > 0 {
            // What is left is written: it can go after its end.
            self.is_paused.store(true, Ordering::Relaxed);
            if !was_paused {
                warn!("the past of channels is not kept for now: the disk is short of room for recordings");
            }
            self.running.lock().values().for_each(|it| it.stop.cancel());
            let _ = timeout(END_TIMEOUT, self.no_runs()).await;
            self.trim(parts).await;
        } else if was_paused {
            let (_, spare) = self.trim(parts).await;
            if spare >= RESUME_BYTES {
                self.is_paused.store(false, Ordering::Relaxed);
                info!("the past of channels is kept again");
            }
        }
    }

    /// Waits until nothing is written.
    async fn no_runs(&self) {
        loop {
            let ended = self.ended.notified();
            if self.running.lock().is_empty() {
                return;
            }
            ended.await;
        }
    }

    /// Removes files above the limits. Returns how many bytes of the disk are missing then, and how many are to spare.
    async fn trim(&self, parts: &Parts) -> (u64, u64) {
        let rings: Vec<Arc<Ring>> = self.rings.lock().values().cloned().collect();
        let (settings, dvr) = (self.settings(), dvr_settings(&parts.models));
        let (folder, recordings) = (parts.folder.clone(), parts.recordings.clone());
        let trim = move || {
            let disk = folder.disk();
            let is_shared =
                disk.is_some_and(|it| recordings.disk().is_some_and(|other| other.device == it.device));
            let kept_free = if is_shared { dvr.retention_free_bytes } else { 0 };
            let wanted = disk.map_or(0, |it| room_left(it.bytes, kept_free.max(DISK_BYTES_RESERVED)));
            let missing = disk.map_or(0, |it| wanted.saturating_sub(it.available));
            let files: Vec<_> = rings
                .iter()
                .flat_map(|ring| ring.for_limits().into_iter().map(move |it| (ring, it)))
                .collect();
            let sizes: Vec<_> = files.iter().map(|it| it.1.1).collect();
            let mut freed = 0;
            for n in surplus(&sizes, &settings, now_ms(), missing) {
                let (ring, (started_at, file)) = &files[n];
                match ring.remove(*started_at) {
                    Ok(()) => freed += file.bytes,
                    Err(cause) => warn!(channel.uuid = %file.channel, "failed to remove a file: {cause}"),
                }
            }
            let available = disk.map_or(u64::MAX, |it| it.available).saturating_add(freed);
            (missing.saturating_sub(freed), available.saturating_sub(wanted))
        };
        blocking(trim).await.unwrap_or((0, 0))
    }
}

/// Removes a run from the table when it ends.
struct Forget {
    shared: Arc<Shared>,
    uuid: Uuid,
}

impl Drop for Forget {
    fn drop(&mut self) {
        self.shared.running.lock().remove(&self.uuid);
        self.shared.ended.notify_waiters();
    }
}

/// Runs a function on a thread that may block.
async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Result<R, String> {
    spawn_blocking(work).await.map_err(|_| "a thread for files failed".to_owned())
}
