//! The history of this gateway: rates, viewers, slots and failovers over days and weeks.
//!
//! It reads the counters of the gateway every ten seconds and writes what they grew by once in five minutes, to files of
//! fixed size outside of the store. A node of a cluster has its own history. Faults of the disk cost history and nothing
//! else: they are logged at most once a minute.

mod files;
mod readings;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fmt, io};

use actors::now_ms;
use domain::core_settings::HISTORY_SETTINGS;
use domain::history::block::{Block, Resolution};
use domain::history::meter::{Meter, Reading};
use domain::history::series::{Series, Steps};
use domain::history::settings::HistorySettings;
use domain::history::{HistorySubject, SubjectKind};
use domain::ids::UserId;
use media::spawn_blocking;
use parking_lot::Mutex;
use storage::Models;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tracing::warn;

use self::files::{HistoryFiles, fine_starts};
pub use self::readings::HistoryParts;

/// Folder in the data folder.
const FOLDER: &str = "history";
/// Interval at which the counters are read.
const PERIOD: Duration = Duration::from_secs(10);
/// A longer time between two readings counts as this long: the machine was suspended.
const SECONDS_MAX: u32 = 300;
/// Number of blocks that wait for the disk; the oldest are dropped first.
const UNWRITTEN_MAX: usize = 12;
/// Time between two warnings.
const WARNING_PAUSE: Duration = Duration::from_secs(60);
/// Longest wait for the last write.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest wait of a request for the files.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
const DAY_SECONDS: i64 = 86_400;

/// A work on the files.
type DiskWork = Box<dyn FnOnce(&Inner) -> io::Result<()> + Send>;

/// A handle of the history; clones share it.
#[derive(Clone)]
pub struct History(Arc<Inner>);

struct Inner {
    parts: HistoryParts,
    state: Mutex<State>,
    /// Locked while the files are read or written.
    files: Mutex<HistoryFiles>,
    warned_at: Mutex<Option<Instant>>,
    /// Whether it measures: a gateway without a data folder does not.
    is_measuring: AtomicBool,
}

/// Measurements that are not in the files yet.
#[derive(Debug, Default)]
struct State {
    meter: Meter,
    read_at: Option<Instant>,
    current: Option<Block>,
    unwritten: VecDeque<Block>,
    /// The settings and the users at the last look; `None` before the first.
    known: Option<(HistorySettings, BTreeSet<UserId>)>,
    /// Start of the hour in which the files were last brought up to date.
    closed_hour: i64,
}

impl History {
    /// Creates the history in this data folder. It measures once [`History::follow`] runs.
    pub fn new(parts: HistoryParts, data_dir: &Path) -> Self {
        let files = HistoryFiles::new(&data_dir.join(FOLDER));
        let (state, warned_at, is_measuring) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
        Self(Arc::new(Inner { parts, state, files: Mutex::new(files), warned_at, is_measuring }))
    }

    /// Keeps the files in another folder from now on, such as that of a temporary store.
    pub fn keep_in(&self, folder: &Path) {
        *self.0.files.lock() = HistoryFiles::new(&folder.join(FOLDER));
    }

    /// Returns whether anything is kept about a subject.
    pub fn keeps(&self, subject: HistorySubject) -> bool {
        let settings = history_settings(&self.0.parts.models);
        let is_wanted =
            if subject.kind() == SubjectKind::User { settings.has_users() } else { settings.is_enabled };
        is_wanted && self.0.is_measuring.load(Ordering::Relaxed)
    }

    /// Measures for as long as the gateway runs.
    pub async fn follow(self) {
        self.0.is_measuring.store(true, Ordering::Relaxed);
        let check = |inner: &Inner| {
            let files = inner.files.lock();
            files.shared.check()?;
            files.streams.check()?;
            files.users.check()
        };
        self.on_disk("check", Box::new(check)).await;
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.measure(now_ms().div_euclid(1_000)).await;
        }
    }

    /// Adds measurements that wait for the disk, and looks after the files once.
    #[cfg(any(test, feature = "testing"))]
    pub async fn measured(&self, block: Block) {
        self.0.is_measuring.store(true, Ordering::Relaxed);
        self.0.state.lock().unwritten.push_back(block);
        self.measure(now_ms().div_euclid(1_000)).await;
    }

    /// Reads the counters once, at this time in seconds since 1970, and writes what is due.
    async fn measure(&self, now: i64) {
        let settings = history_settings(&self.0.parts.models);
        self.forget(settings, now).await;
        if !settings.is_enabled {
            self.0.state.lock().pause();
        } else if let Some(reading) = self.0.parts.read(settings.has_users()).await {
            self.0.state.lock().add(&reading, now);
        }
        let is_write_due = !self.0.state.lock().unwritten.is_empty();
        if is_write_due {
            self.on_disk("write", Box::new(Inner::write)).await;
        }
        let hour = Resolution::COARSE.start(now);
        if settings.is_enabled && std::mem::replace(&mut self.0.state.lock().closed_hour, hour) != hour {
            self.on_disk("write", Box::new(move |inner| inner.close_hours(settings, now))).await;
        }
    }

    /// Writes what was measured since the last write. Returns after two seconds, even if the disk hangs.
    pub async fn flush(&self) {
        self.0.state.lock().end_step();
        // Without a result, the last five minutes are missing.
        let _ = timeout(FLUSH_TIMEOUT, self.on_disk("write", Box::new(Inner::write))).await;
    }

    /// Returns what is known about a subject between two times, in seconds since 1970, in at most this many steps. Faults of
    /// the disk make it unknown.
    pub async fn series(&self, subject: HistorySubject, from: i64, until: i64, points: usize) -> Series {
        let now = now_ms().div_euclid(1_000);
        let steps = Steps::new(from, until, points, now);
        let inner = Arc::clone(&self.0);
        let read = spawn_blocking(move || {
            let mut series = Series::new(steps);
            let result = inner.read(subject, now, &mut series);
            (series, result)
        });
        match read.await {
            Ok((series, result)) => {
                self.note("read", result);
                series
            }
            Err(_) => Series::new(steps),
        }
    }

    /// Removes what is kept of users if the setting is off, of users who do not exist any more, and what is older than their
    /// days.
    async fn forget(&self, settings: HistorySettings, now: i64) {
        let users: BTreeSet<UserId> = self.0.parts.models.users.load().iter().map(|it| it.id).collect();
        if self.0.state.lock().has_forgotten(settings, &users, now) {
            return;
        }
        let kept = users.clone();
        let forget = move |inner: &Inner| inner.forget(settings, &kept, now);
        let is_done = self.on_disk("write", Box::new(forget)).await;
        // Tried again at the next reading otherwise.
        self.0.state.lock().known = is_done.then_some((settings, users));
    }

    /// Runs a work on the files. Returns whether it succeeded.
    async fn on_disk(&self, what: &'static str, work: DiskWork) -> bool {
        let inner = Arc::clone(&self.0);
        let done = spawn_blocking(move || work(&inner)).await;
        self.note(what, done.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
    }

    /// Logs an error, at most once a minute. Returns whether there is none.
    fn note(&self, what: &str, result: io::Result<()>) -> bool {
        let Err(error) = result else { return true };
        let (mut warned_at, now) = (self.0.warned_at.lock(), Instant::now());
        if warned_at.is_none_or(|it| now.duration_since(it) >= WARNING_PAUSE) {
            *warned_at = Some(now);
            warn!("failed to {what} the history: {error}");
        }
        false
    }
}

impl State {
    fn add(&mut self, reading: &Reading, now: i64) {
        let start = Resolution::FINE.start(now);
        if self.current.as_ref().is_some_and(|it| it.start != start) {
            self.end_step();
        }
        let at = Instant::now();
        let passed = self.read_at.replace(at).map_or(Duration::ZERO, |it| at.duration_since(it));
        let rounded = passed.saturating_add(Duration::from_millis(500)).as_secs();
        let seconds = u32::try_from(rounded).unwrap_or(SECONDS_MAX).min(SECONDS_MAX);
        let block = self.current.get_or_insert_with(|| Block::new(start, Resolution::FINE));
        self.meter.read(reading, seconds, block);
    }

    /// Moves the block of the current step to those that wait for the disk.
    fn end_step(&mut self) {
        let Some(block) = self.current.take().filter(|it| !it.samples().is_empty()) else { return };
        if self.unwritten.len() >= UNWRITTEN_MAX {
            self.unwritten.pop_front();
        }
        self.unwritten.push_back(block);
    }

    /// Ends the measurement. The next reading is a new base.
    fn pause(&mut self) {
        self.end_step();
        (self.meter, self.read_at) = (Meter::default(), None);
    }

    /// Returns whether the files have nothing that the settings do not keep, or of users who do not exist any more. Notes the
    /// users then.
    fn has_forgotten(&mut self, settings: HistorySettings, users: &BTreeSet<UserId>, now: i64) -> bool {
        let has_expired = settings.has_users() && self.closed_hour != Resolution::COARSE.start(now);
        match &mut self.known {
            Some((before, known)) if !has_expired && *before == settings && known.is_subset(users) => {
                known.clone_from(users);
                true
            }
            _ => false,
        }
    }

    /// Removes the samples of the users that `is_kept` refuses.
    fn retain(&mut self, is_kept: &dyn Fn(UserId) -> bool) {
        for block in self.unwritten.iter_mut().chain(&mut self.current) {
            block.retain(|it| !matches!(it, HistorySubject::User(id) if !is_kept(id)));
        }
    }
}

impl Inner {
    /// Writes the blocks that wait. One that cannot be written waits for the next time.
    fn write(&self) -> io::Result<()> {
        let files = self.files.lock();
        let has_users = history_settings(&self.parts.models).has_users();
        loop {
            let Some(block) = self.state.lock().unwritten.front().cloned() else { return Ok(()) };
            files.shared.add(&block)?;
            // A block that was added is not added again, whatever happens to the parts of the streams and of the users.
            self.state.lock().unwritten.pop_front();
            files.streams.add(&block)?;
            if has_users {
                files.users.add(&block)?;
            }
        }
    }

    fn close_hours(&self, settings: HistorySettings, now: i64) -> io::Result<()> {
        let files = self.files.lock();
        files.shared.close_hours(now)?;
        files.streams.close_hours(now)?;
        if settings.has_users() { files.users.close_hours(now) } else { Ok(()) }
    }

    fn forget(&self, settings: HistorySettings, users: &BTreeSet<UserId>, now: i64) -> io::Result<()> {
        let files = self.files.lock();
        if !settings.has_users() {
            self.state.lock().retain(&|_| false);
            return files.users.remove();
        }
        self.state.lock().retain(&|it| users.contains(&it));
        let oldest = oldest_of_users(settings, now);
        files.users.retain(&|start, subject| match subject {
            HistorySubject::User(id) => start >= oldest && users.contains(&id),
            _ => true,
        })
    }

    fn read(&self, subject: HistorySubject, now: i64, series: &mut Series) -> io::Result<()> {
        let settings = history_settings(&self.parts.models);
        let is_user = matches!(subject, HistorySubject::User(_));
        if is_user && !settings.has_users() {
            return Ok(());
        }
        let oldest = if is_user { oldest_of_users(settings, now) } else { i64::MIN };
        let files = self.files.try_lock_for(READ_TIMEOUT).ok_or(io::ErrorKind::TimedOut)?;
        let pair = files.with(subject);
        let steps = series.steps;
        let mut wanted = steps.block_starts(now).filter(|it| *it >= oldest);
        if steps.resolution == Resolution::FINE {
            pair.fine.read(&mut wanted, &mut |block| series.add(&block, subject))?;
        } else {
            let mut missing: BTreeSet<i64> = wanted.collect();
            pair.coarse.read(&mut missing.clone().into_iter(), &mut |block| {
                missing.remove(&block.start);
                series.add(&block, subject);
            })?;
            // Hours that are not closed, as the present one.
            let oldest = now.saturating_sub(Resolution::FINE.span_seconds());
            let mut fine = missing.range(oldest..).flat_map(|it| fine_starts(*it));
            pair.fine.read(&mut fine, &mut |block| series.add(&block, subject))?;
        }
        let state = self.state.lock();
        state.unwritten.iter().chain(&state.current).for_each(|it| series.add(it, subject));
        Ok(())
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("History(…)")
    }
}

fn history_settings(models: &Models) -> HistorySettings {
    let settings = models.settings.load();
    HistorySettings::from_setting(settings.one_by("key", HISTORY_SETTINGS).map(|it| &it.value))
}

/// Returns the start of what is kept of users, in seconds since 1970.
fn oldest_of_users(settings: HistorySettings, now: i64) -> i64 {
    now.saturating_sub(i64::from(settings.user_days).saturating_mul(DAY_SECONDS))
}
