//! Plugins: each one is a process that talks to the gateway over its pipes, and that cannot harm it.
//!
//! ```text
//! Plugins (handle) ─► Life (a task per plugin) ─► Session (while there is a process) ─► pipes ─► Python host ─► plugin
//! ```
//!
//! A [`Life`] decides when there is a process, and keeps the runs that wait. A [session](mod@session)
//! speaks the [protocol](domain::plugin::protocol) with it and looks after it: time limits, use of memory, answers to pings. What a process may
//! access is decided in [`confine`] and enforced by the launcher of programs.
//!
//! The records of plugins, the interface and the events are behind [`PluginBackend`].

mod api;
mod confine;
mod crashes;
mod environment;
mod groups;
mod host_files;
mod life;
mod log;
mod packages;
mod python;
mod run;
mod scan;
mod schedules;
mod session;
mod store;
#[cfg(test)]
mod tests;
mod update;
mod usage;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::plugin::{
    Enforcement, Limits, Manifest, Permissions, Plugin, PluginGap, PluginKey, PluginState, ReportedParts,
    RunCause,
};
use media::closer::Closer;
use media::{Launcher, can_restrict_files, can_restrict_ports, can_restrict_signals};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use storage::Store;
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, Semaphore, mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use self::api::ProcessTokens;
pub use self::api::{API_BODY_BYTES_MAX, ApiAnswer, ApiCall, PluginCaller};
use self::confine::OwnFolders;
use self::groups::ControlGroups;
use self::life::{Command, Life};
use self::log::PluginLog;
use self::python::Python;
pub(crate) use self::run::RunOrder;
pub use self::run::{PluginRun, RunAnswer, RunRefusal, RunResult, RunStage};
use self::run::{RunRequest, Runs};
use self::scan::Scans;
pub use self::scan::{PluginScan, UnsupportedName};
pub(crate) use self::schedules::Schedules;
pub use self::schedules::ShownSchedule;
pub use self::usage::PluginResources;
use crate::clock::now_ms;

/// Number of plugins that start at the same time.
const STARTS_MAX: usize = 4;
/// Maximum number of commands that wait for one plugin.
const COMMANDS_MAX: usize = 64;
/// Maximum wait for all plugins to end when the gateway stops.
const END_TIMEOUT: Duration = Duration::from_secs(8);
/// Processes are not measured again within this time.
const SAMPLE_PERIOD: Duration = Duration::from_millis(900);

/// The work of a [`PluginBackend`].
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The parts of the gateway that plugins need.
pub trait PluginBackend: Send + Sync + 'static {
    /// Returns the keys of all installed plugins.
    fn keys(&self) -> Vec<PluginKey>;

    /// Returns a plugin as it is installed now; `None` if there is none. Blocks while the manifest is read.
    fn installed(&self, key: &PluginKey) -> Option<InstalledPlugin>;

    /// Stores something about a plugin. An error is a sentence.
    fn note(&self, key: PluginKey, note: PluginNote) -> Pending<'_, Result<(), String>>;

    /// Returns the store for the values of plugins; `None` while other nodes of the cluster could not read them there.
    /// Blocks.
    ///
    /// # Errors
    /// The sentence why that is not known.
    fn value_store(&self) -> Result<Option<Store>, String>;

    /// Answers a call to the API as this plugin.
    fn call_api(&self, caller: Arc<PluginCaller>, call: ApiCall) -> Pending<'_, ApiAnswer>;

    /// Passes a notification on to interested clients. Never blocks.
    fn notify(&self, notification: PluginNotification);
}

/// An installed plugin.
#[derive(Clone, Debug)]
pub struct InstalledPlugin {
    pub record: Plugin,
    pub manifest: Manifest,
}

impl InstalledPlugin {
    /// Returns the limits that an admin set, else those of the manifest.
    pub fn limits(&self) -> Limits {
        self.record.limits.over(self.manifest.limits)
    }

    /// Returns the permissions that an admin granted and the installed version still declares; `None` before they are
    /// granted.
    pub fn permissions(&self) -> Option<Permissions> {
        Some(self.record.granted.as_ref()?.within(&self.manifest.permissions))
    }
}

/// Something to be stored about a plugin.
#[derive(Clone, Debug, PartialEq)]
pub enum PluginNote {
    /// Attributes that its code reported.
    Reported(ReportedParts),
    /// It has failed for this reason, or no longer.
    Failed(Option<String>),
    /// Starts of the gateway in a row at which it crashed.
    FailedStarts(u32),
}

/// Something that happened to a plugin.
#[derive(Clone, Debug)]
pub enum PluginNotification {
    /// Its state changed.
    State { key: PluginKey, status: PluginStatus },
    /// A run began, progressed or ended.
    Run(PluginRun),
    /// The plugin sent a message to the interface.
    Message { key: PluginKey, message: Value },
}

/// The folders that plugins use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginFolders {
    /// Their code, in a folder for each key.
    pub code: PathBuf,
    /// Their files, in a folder for each key.
    pub data: PathBuf,
    pub recordings: PathBuf,
    pub logos: PathBuf,
}

/// How plugins run.
#[derive(Clone, Debug)]
pub struct PluginSettings {
    pub folders: PluginFolders,
    /// The Python to use: a name in `PATH` or an absolute path; `None` finds one.
    pub python: Option<String>,
    /// The name of the gateway's time zone.
    pub time_zone: String,
    /// Address of the API for plugins with network, without a slash at the end; `None` if it is not on loopback.
    pub api_url: Option<String>,
    /// No plugin starts.
    pub is_safe_mode: bool,
    pub timings: PluginTimings,
}

/// Time limits of plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginTimings {
    /// Until a process answers that it is ready.
    pub start: Duration,
    /// Between pings.
    pub ping: Duration,
    /// A process that has not answered a ping for this long hangs.
    pub hang: Duration,
    /// From the cancellation of a run to the end of the process.
    pub cancel: Duration,
    /// For the plugin to stop.
    pub stop: Duration,
    /// From the signal to end to the one that kills.
    pub terminate: Duration,
    /// A process that starts on demand ends after this time without a run.
    pub idle: Duration,
    /// After this time, a run is reported as running.
    pub answer: Duration,
    /// For a call to the API, with the time until its turn.
    pub call: Duration,
    /// Between looks at the time limits and at the use of resources.
    pub look: Duration,
    /// The pauses after crashes are divided by this.
    pub pause_divisor: u32,
}

impl Default for PluginTimings {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            start: seconds(20),
            ping: seconds(10),
            hang: seconds(30),
            cancel: seconds(10),
            stop: seconds(5),
            terminate: seconds(2),
            idle: seconds(300),
            answer: seconds(60),
            call: seconds(120),
            look: seconds(1),
            pause_divisor: 1,
        }
    }
}

/// The state of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginStatus {
    pub state: PluginState,
    /// A sentence, for a plugin that crashed or failed.
    pub reason: Option<String>,
    /// Since when it has this state, in milliseconds since 1970.
    pub since: i64,
    /// The id of its process and of its process group.
    pub pid: Option<u32>,
    /// Crashes since the gateway started.
    pub crashes: u32,
    /// Runs that go on.
    pub runs: usize,
    /// Runs that wait.
    pub waiting: usize,
}

/// A request to a plugin that had no effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginError {
    #[error("there is no such plugin")]
    Unknown,
    #[error("the gateway runs without plugins")]
    SafeMode,
    #[error("the gateway is stopping")]
    Stopping,
    #[error("the plugin is busy with other requests")]
    Busy,
    /// The sentence why the plugin is not ready.
    #[error("{0}")]
    NotReady(String),
}

/// The handle for plugins, shared between clones.
#[derive(Clone)]
pub struct Plugins {
    shared: Arc<Shared>,
}

struct Shared {
    launcher: Launcher,
    closer: Closer,
    /// Processes are started there.
    runtime: Handle,
    stop: CancellationToken,
    parts: OnceLock<Parts>,
    entries: Mutex<HashMap<PluginKey, Arc<Entry>>>,
    tasks: TaskTracker,
    starts: Semaphore,
    runs: Runs,
    schedules: Schedules,
    /// Changes when a plugin begins or ceases to accept runs.
    readiness: watch::Sender<u64>,
    /// The Python that was found, until a start fails.
    python: AsyncMutex<Option<Python>>,
    /// Results of reading the code of plugins.
    scans: Mutex<Scans>,
    scan_turn: AsyncMutex<()>,
    sample: Mutex<Sample>,
    tokens: ProcessTokens,
    /// Users of running plugins, if the gateway runs as root.
    users: Mutex<Vec<u32>>,
}

struct Parts {
    backend: Arc<dyn PluginBackend>,
    settings: PluginSettings,
    groups: Option<ControlGroups>,
    enforced: Enforcement,
}

impl Parts {
    /// Blocks.
    fn new(backend: Arc<dyn PluginBackend>, settings: PluginSettings) -> Self {
        let groups = Some(()).filter(|()| !settings.is_safe_mode).and_then(|()| ControlGroups::find());
        let enforced = Enforcement {
            files: can_restrict_files(),
            ports: can_restrict_ports(),
            signals: can_restrict_signals(),
            own_user: confine::any_user().is_some(),
            control_group: groups.is_some(),
        };
        Self { backend, settings, groups, enforced }
    }
}

/// The use of resources by the processes of plugins when they were measured last.
#[derive(Default)]
struct Sample {
    groups: HashSet<u32>,
    at: Option<Instant>,
    used: HashMap<u32, PluginResources>,
}

/// A plugin as the handle sees it.
struct Entry {
    commands: mpsc::Sender<Command>,
    status: Mutex<PluginStatus>,
    log: Arc<Mutex<PluginLog>>,
    folders: OwnFolders,
    data_bytes: Mutex<u64>,
    /// Held while the folders are given to the user of the next process.
    preparation: Mutex<()>,
}

impl Plugins {
    /// Creates the handle. No plugin starts before [`start`](Self::start). All end when `stop` is cancelled.
    pub(crate) fn new(launcher: Launcher, closer: Closer, runtime: Handle, stop: CancellationToken) -> Self {
        Self {
            shared: Arc::new(Shared {
                launcher,
                closer,
                runtime,
                stop,
                parts: OnceLock::new(),
                entries: Mutex::default(),
                tasks: TaskTracker::new(),
                starts: Semaphore::new(STARTS_MAX),
                runs: Runs::default(),
                schedules: Schedules::default(),
                readiness: watch::Sender::new(0),
                python: AsyncMutex::default(),
                scans: Mutex::default(),
                scan_turn: AsyncMutex::default(),
                sample: Mutex::default(),
                tokens: ProcessTokens::default(),
                users: Mutex::default(),
            }),
        }
    }

    /// Starts all enabled plugins, a few at a time, and returns soon. Later calls do nothing. Blocks while the restrictions
    /// of this machine are examined.
    pub fn start(&self, backend: Arc<dyn PluginBackend>, settings: PluginSettings) {
        if self.shared.parts.get().is_some() {
            return;
        }
        let keys = backend.keys();
        if self.shared.parts.set(Parts::new(backend, settings)).is_err() || self.is_safe_mode() {
            return;
        }
        for key in keys {
            // Which ones are enabled, their tasks find out.
            let _ = self.entry(&key);
        }
    }

    /// Returns whether no plugin starts.
    pub fn is_safe_mode(&self) -> bool {
        self.shared.parts.get().is_some_and(|it| it.settings.is_safe_mode)
    }

    /// Runs an action, and waits for its end for a limited time. The run goes on after that, and when the future is dropped.
    ///
    /// # Errors
    /// The run did not begin.
    pub async fn run(
        &self,
        key: &PluginKey,
        action: &str,
        params: Map<String, Value>,
        cause: RunCause,
    ) -> Result<RunAnswer, RunRefusal> {
        let answer = self.shared.parts.get().ok_or(RunRefusal::SafeMode)?.settings.timings.answer;
        let order = RunOrder { id: Uuid::new_v4(), action: action.to_owned(), params, cause };
        let id = order.id;
        match tokio::time::timeout(answer, self.begin_run(key, order)?).await {
            Err(_) => Ok(RunAnswer::Running(id)),
            Ok(Ok(ended)) => Ok(RunAnswer::Ended(id, ended?)),
            Ok(Err(_)) => Ok(RunAnswer::Ended(id, RunResult::Stopped)),
        }
    }

    /// Runs an action for a stored delivery, and waits for its end however long it takes.
    ///
    /// # Errors
    /// The run did not begin.
    pub(crate) async fn run_to_end(&self, key: &PluginKey, order: RunOrder) -> Result<RunResult, RunRefusal> {
        self.begin_run(key, order)?.await.unwrap_or(Ok(RunResult::Stopped))
    }

    /// Hands a run to the task of its plugin. Returns where its end arrives.
    fn begin_run(
        &self,
        key: &PluginKey,
        order: RunOrder,
    ) -> Result<oneshot::Receiver<Result<RunResult, RunRefusal>>, RunRefusal> {
        let parts = self.shared.parts.get().ok_or(RunRefusal::SafeMode)?;
        if parts.settings.is_safe_mode {
            return Err(RunRefusal::SafeMode);
        }
        let entry = self.entry(key).ok_or(RunRefusal::UnknownPlugin)?;
        let run = self.shared.runs.begin(key, &order, now_ms());
        let (reply, ended) = oneshot::channel();
        if entry.commands.try_send(Command::Run(RunRequest { order, reply: Some(reply) })).is_err() {
            self.shared.runs.forget(run.id);
            return Err(RunRefusal::TooMany);
        }
        Ok(ended)
    }

    /// Returns whether a plugin takes runs now. One that starts on demand does so without a process.
    pub(crate) fn accepts_runs(&self, key: &PluginKey) -> bool {
        self.shared.entries.lock().get(key).is_some_and(|it| it.status.lock().state.accepts_runs())
    }

    /// Follows which plugins take runs: the number changes with each change.
    pub(crate) fn readiness(&self) -> watch::Receiver<u64> {
        self.shared.readiness.subscribe()
    }

    /// Returns a text without the passwords of a plugin.
    pub(crate) fn redact(&self, key: &PluginKey, text: &str) -> String {
        let entry = self.shared.entries.lock().get(key).cloned();
        entry.map_or_else(|| text.to_owned(), |it| it.log.lock().redact(text))
    }

    /// Returns the schedules of the plugins.
    pub(crate) fn schedules(&self) -> &Schedules {
        &self.shared.schedules
    }

    /// Returns the schedules of the plugin with this id, and when each is due next.
    pub fn schedules_of(&self, id: u32) -> Vec<ShownSchedule> {
        self.shared.schedules.of(id)
    }

    /// Returns a run; those that ended long ago are forgotten.
    pub fn job(&self, run: Uuid) -> Option<PluginRun> {
        self.shared.runs.get(run)
    }

    /// Returns the last runs of a plugin, newest first.
    pub fn jobs(&self, key: &PluginKey) -> Vec<PluginRun> {
        self.shared.runs.of(key)
    }

    /// Asks a run to end. One that does not, ends with the process of its plugin.
    ///
    /// # Errors
    /// The plugin is not known, or has too many requests.
    pub fn cancel(&self, key: &PluginKey, run: Uuid) -> Result<(), PluginError> {
        let entry = self.known(key)?;
        entry.commands.try_send(Command::Cancel(run)).map_err(|_| PluginError::Busy)
    }

    /// Starts a plugin again, also one that has failed, and waits until it is ready.
    ///
    /// # Errors
    /// It is not ready.
    pub async fn restart(&self, key: &PluginKey) -> Result<(), PluginError> {
        self.ask(key, |reply| Command::Restart { reply }).await
    }

    /// Ends the process of a plugin and waits for its end, before the plugin is disabled, replaced or removed. It starts
    /// again with [`reload`](Self::reload) or [`restart`](Self::restart).
    ///
    /// # Errors
    /// The plugin is not known.
    pub async fn stop(&self, key: &PluginKey, reason: &str) -> Result<(), PluginError> {
        let reason = reason.to_owned();
        self.ask(key, |reply| Command::Stop { reason, reply }).await
    }

    /// Reads the record and the manifest of a plugin again: starts one that is enabled, and ends one that is not, or that
    /// is gone. Waits until it is ready or has ended.
    ///
    /// # Errors
    /// It is enabled and not ready.
    pub async fn reload(&self, key: &PluginKey) -> Result<(), PluginError> {
        let done = self.ask(key, |reply| Command::Reload { reply }).await;
        let is_gone = self.shared.parts.get().is_some_and(|it| it.backend.installed(key).is_none());
        if is_gone {
            self.shared.entries.lock().remove(key);
        }
        done
    }

    /// Passes new settings on to the process of a plugin, which is not started again.
    pub fn settings_changed(&self, key: &PluginKey) {
        if let Some(entry) = self.shared.entries.lock().get(key) {
            // A process that does not take messages is ended soon; the next one reads the new settings.
            let _ = entry.commands.try_send(Command::SettingsChanged);
        }
    }

    /// Returns the state of a plugin; `None` if it is not installed.
    pub fn state(&self, key: &PluginKey) -> Option<PluginStatus> {
        let found = self.shared.entries.lock().get(key).map(|it| it.status.lock().clone());
        let parts = self.shared.parts.get()?;
        let or_idle = || parts.backend.installed(key).map(|_| PluginStatus::new(PluginState::Disabled));
        found.or_else(or_idle)
    }

    /// Returns what the processes of a plugin use now; `None` if it has none.
    pub async fn resources(&self, key: &PluginKey) -> Option<PluginResources> {
        let entry = self.shared.entries.lock().get(key).cloned()?;
        let group = entry.status.lock().pid?;
        let used = self.shared.sample(group).await?;
        Some(PluginResources { data_bytes: *entry.data_bytes.lock(), ..used })
    }

    /// Returns the plugin with a running process that has this token.
    pub fn caller(&self, token: &str) -> Option<Arc<PluginCaller>> {
        self.shared.tokens.caller(token)
    }

    /// Returns what cannot be enforced for a plugin with these permissions. Empty where no plugin starts.
    pub fn gaps(&self, permissions: &Permissions) -> BTreeSet<PluginGap> {
        let parts = self.shared.parts.get().filter(|it| !it.settings.is_safe_mode);
        parts.map(|it| PluginGap::from_permissions(permissions, &it.enforced)).unwrap_or_default()
    }

    /// Returns the last lines of the log of a plugin, oldest first.
    pub async fn logs(&self, key: &PluginKey, lines_max: usize) -> Vec<String> {
        let Some(parts) = self.shared.parts.get() else { return Vec::new() };
        let folder = OwnFolders::of(&parts.settings.folders, key.as_str()).logs;
        let read = tokio::task::spawn_blocking(move || log::last_lines(&folder, lines_max));
        read.await.unwrap_or_default()
    }

    /// Waits until all plugins have ended, after the gateway began to stop.
    pub(crate) async fn ended(&self) {
        self.shared.tasks.close();
        let _ = tokio::time::timeout(END_TIMEOUT, self.shared.tasks.wait()).await;
    }

    fn known(&self, key: &PluginKey) -> Result<Arc<Entry>, PluginError> {
        match self.is_safe_mode() || self.shared.parts.get().is_none() {
            true => Err(PluginError::SafeMode),
            false => self.entry(key).ok_or(PluginError::Unknown),
        }
    }

    async fn ask(
        &self,
        key: &PluginKey,
        command: impl FnOnce(oneshot::Sender<Result<(), String>>) -> Command,
    ) -> Result<(), PluginError> {
        let entry = self.known(key)?;
        let (reply, done) = oneshot::channel();
        entry.commands.send(command(reply)).await.map_err(|_| PluginError::Stopping)?;
        done.await.map_err(|_| PluginError::Stopping)?.map_err(PluginError::NotReady)
    }

    /// Returns the entry of a plugin, and begins its life if it is installed and has none.
    fn entry(&self, key: &PluginKey) -> Option<Arc<Entry>> {
        let shared = &self.shared;
        let parts = shared.parts.get()?;
        if let Some(entry) = shared.entries.lock().get(key) {
            return Some(entry.clone());
        }
        parts.backend.installed(key)?;
        let mut entries = shared.entries.lock();
        if let Some(entry) = entries.get(key) {
            return Some(entry.clone());
        }
        let folders = OwnFolders::of(&parts.settings.folders, key.as_str());
        let (commands, received) = mpsc::channel(COMMANDS_MAX);
        let entry = Arc::new(Entry {
            commands,
            status: Mutex::new(PluginStatus::new(PluginState::Disabled)),
            log: Arc::new(Mutex::new(PluginLog::new(folders.logs.clone()))),
            folders,
            data_bytes: Mutex::new(0),
            preparation: Mutex::new(()),
        });
        entries.insert(key.clone(), entry.clone());
        let life = Life::new(shared.clone(), key.clone(), entry.clone(), received);
        shared.tasks.spawn_on(life.live(), &shared.runtime);
        Some(entry)
    }
}

impl Shared {
    /// Returns what a process group uses, measured within the last second for all plugins together.
    async fn sample(self: &Arc<Self>, group: u32) -> Option<PluginResources> {
        let shared = self.clone();
        let measured = tokio::task::spawn_blocking(move || {
            let mut sample = shared.sample.lock();
            if sample.at.is_none_or(|it| it.elapsed() >= SAMPLE_PERIOD) {
                sample.used = usage::of_groups(&sample.groups);
                sample.at = Some(Instant::now());
            }
            sample.used.get(&group).copied()
        });
        measured.await.ok().flatten()
    }
}

impl PluginStatus {
    fn new(state: PluginState) -> Self {
        Self { state, reason: None, since: now_ms(), pid: None, crashes: 0, runs: 0, waiting: 0 }
    }
}
