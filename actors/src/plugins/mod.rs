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
mod backend;
mod call;
mod command;
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
mod schedule_calls;
mod schedules;
mod session;
mod settings;
mod state;
mod status;
mod store;
#[cfg(test)]
mod tests;
mod tokens;
mod update;
mod usage;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::plugin::{LackingPart, Permissions, PluginGap, PluginKey, PluginState, RunCause};
use media::closer::Closer;
use media::{Launcher, spawn_blocking};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, Semaphore, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

pub use self::backend::{InstalledPlugin, Pending, PluginBackend, PluginNote, PluginNotification};
pub use self::call::{API_BODY_BYTES_MAX, ApiAnswer, ApiCall, PluginCaller};
use self::command::Command;
use self::confine::OwnFolders;
use self::life::Life;
use self::log::PluginLog;
pub(crate) use self::run::RunOrder;
pub use self::run::{PluginRun, RunAnswer, RunRefusal, RunResult, RunStage};
use self::run::{RunRequest, Runs};
pub use self::scan::{PluginScan, UnsupportedName};
pub(crate) use self::schedules::Schedules;
pub use self::schedules::ShownSchedule;
pub use self::settings::{PluginFolders, PluginSettings, PluginTimings};
pub use self::state::Plugins;
use self::state::{KnownPlugin, PluginParts, PluginsState};
pub use self::status::{PluginError, PluginStatus};
use self::tokens::ProcessTokens;
pub use self::usage::PluginResources;
use crate::clock::now_ms;

/// Number of plugins that start at the same time.
const STARTS_MAX: usize = 4;
/// Maximum number of commands that wait for one plugin.
const COMMANDS_MAX: usize = 64;
/// Maximum wait for all plugins to end when the gateway stops.
const END_TIMEOUT: Duration = Duration::from_secs(8);
impl Plugins {
    /// Creates the handle. No plugin starts before [`start`](Self::start). All end when `stop` is cancelled.
    pub(crate) fn new(launcher: Launcher, closer: Closer, runtime: Handle, stop: CancellationToken) -> Self {
        Self {
            shared: Arc::new(PluginsState {
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
        if self.shared.parts.set(PluginParts::new(backend, settings)).is_err() || self.is_safe_mode() {
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
        self.shared.schedules.by_plugin(id)
    }

    /// Returns a run; those that ended long ago are forgotten.
    pub fn job(&self, run: Uuid) -> Option<PluginRun> {
        self.shared.runs.get(run)
    }

    /// Returns the last runs of a plugin, newest first.
    pub fn jobs(&self, key: &PluginKey) -> Vec<PluginRun> {
        self.shared.runs.by_plugin(key)
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

    /// Returns the parts of the confinement of plugins that this machine lacks. Empty where no plugin starts, and until the
    /// gateway has started.
    pub fn lacking_parts(&self) -> Vec<LackingPart> {
        let parts = self.shared.parts.get().filter(|it| !it.settings.is_safe_mode);
        parts.map(|it| it.lacking.clone()).unwrap_or_default()
    }

    /// Returns the last lines of the log of a plugin, oldest first.
    pub async fn logs(&self, key: &PluginKey, lines_max: usize) -> Vec<String> {
        let Some(parts) = self.shared.parts.get() else { return Vec::new() };
        let folder = OwnFolders::new(&parts.settings.folders, key.as_str()).logs;
        let read = spawn_blocking(move || log::last_lines(&folder, lines_max));
        read.await.unwrap_or_default()
    }

    /// Waits until all plugins have ended, after the gateway began to stop.
    pub(crate) async fn ended(&self) {
        self.shared.tasks.close();
        let _ = tokio::time::timeout(END_TIMEOUT, self.shared.tasks.wait()).await;
    }

    fn known(&self, key: &PluginKey) -> Result<Arc<KnownPlugin>, PluginError> {
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
    fn entry(&self, key: &PluginKey) -> Option<Arc<KnownPlugin>> {
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
        let folders = OwnFolders::new(&parts.settings.folders, key.as_str());
        let (commands, received) = mpsc::channel(COMMANDS_MAX);
        let entry = Arc::new(KnownPlugin {
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
