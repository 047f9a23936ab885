//! The life of one plugin: when it has a process, and what follows when the process ends.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::plugin::{Lifetime, Limits, PluginGap, PluginKey, PluginState, fields_of_plugin};
use media::source::PipedCommand;
use media::{ProgramUser, find_program, spawn_blocking};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use uuid::Uuid;

use super::command::{Command, NextStep, Reply};
use super::confine::OwnFolders;
use super::crashes::{AfterCrash, Crashes, GATEWAY_STARTS_MAX};
use super::groups::PluginGroup;
use super::host_files::{HOST, compat_arguments};
use super::run::{RunRefusal, RunRequest, RunResult, RunStage};
use super::session::SessionEnd;
use super::state::{KnownPlugin, PluginParts, PluginsState};
use super::store::Storage;
use super::{InstalledPlugin, PluginNote, PluginNotification, PluginStatus, confine, environment};
use crate::clock::now_ms;

/// Maximum number of runs that wait.
const WAITING_MAX: usize = 64;
/// Variables that a plugin inherits.
const INHERITED: [&str; 2] = ["PATH", "LD_LIBRARY_PATH"];
/// Those that it inherits if it may use the network.
const INHERITED_NETWORK: [&str; 9] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "no_proxy",
];

/// The task of one plugin.
pub(super) struct Life {
    pub(super) shared: Arc<PluginsState>,
    pub(super) key: PluginKey,
    pub(super) entry: Arc<KnownPlugin>,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) waiting: VecDeque<RunRequest>,
    /// Told when the plugin is ready, or why it is not.
    pub(super) starters: Vec<Reply>,
    pub(super) storage: Option<Storage>,
    crashes: Crashes,
    /// It has crashed since the gateway started.
    has_crashed: bool,
    began: Instant,
    /// An admin wants it to start although it has failed.
    is_forced: bool,
}

/// A process that can be started.
pub(super) struct Prepared {
    pub(super) command: PipedCommand,
    pub(super) storage: Storage,
    pub(super) user: HeldUser,
}

impl Life {
    pub(super) fn new(
        shared: Arc<PluginsState>,
        key: PluginKey,
        entry: Arc<KnownPlugin>,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        Self {
            shared,
            key,
            entry,
            commands,
            waiting: VecDeque::new(),
            starters: Vec::new(),
            storage: None,
            crashes: Crashes::default(),
            has_crashed: false,
            began: Instant::now(),
            is_forced: false,
        }
    }

    /// Lives until the gateway stops or the plugin is gone.
    pub(super) async fn live(mut self) {
        let stop = self.shared.stop.clone();
        let mut next = self.first().await;
        loop {
            next = match next {
                NextStep::End => break,
                _ if stop.is_cancelled() => break,
                NextStep::Start => self.start().await,
                NextStep::Rest => self.rest(None).await,
                NextStep::Pause(pause) => self.rest(Some(pause)).await,
            };
        }
        self.refuse_waiting(&RunRefusal::Disabled);
    }

    pub(super) fn parts(&self) -> Option<&PluginParts> {
        self.shared.parts.get()
    }

    /// Decides what happens when the gateway starts.
    async fn first(&mut self) -> NextStep {
        match self.read().await {
            Some(it)
                if it.record.is_enabled
                    && it.manifest.lifetime == Lifetime::OnDemand
                    && it.record.failed.is_none() =>
            {
                self.set(PluginState::Idle, None);
                NextStep::Rest
            }
            _ => NextStep::Start,
        }
    }

    /// Reads the plugin as it is installed now.
    pub(super) async fn read(&self) -> Option<InstalledPlugin> {
        let (shared, key) = (self.shared.clone(), self.key.clone());
        let read = spawn_blocking(move || shared.parts.get()?.backend.installed(&key));
        read.await.ok().flatten()
    }

    /// Stores something about the plugin. An error is logged: the next note replaces it.
    pub(super) async fn note(&self, note: PluginNote) {
        let Some(parts) = self.parts() else { return };
        if let Err(error) = parts.backend.note(self.key.clone(), note).await {
            warn!(plugin.key = %self.key, "failed to store the state of a plugin: {error}");
        }
    }

    /// Sets the state, and tells clients if it is another one.
    pub(super) fn set(&self, state: PluginState, reason: Option<String>) {
        self.change(|status| {
            if status.state != state {
                status.since = now_ms();
            }
            (status.state, status.reason) = (state, reason);
        });
    }

    /// Changes the status, and tells clients if it is another one.
    pub(super) fn change(&self, change: impl FnOnce(&mut PluginStatus)) {
        let mut status = self.entry.status.lock();
        let before = status.clone();
        change(&mut status);
        status.waiting = self.waiting.len();
        if status.state.accepts_runs() != before.state.accepts_runs() {
            self.shared.readiness.send_modify(|it| *it = it.wrapping_add(1));
        }
        if *status != before
            && let Some(parts) = self.parts()
        {
            let notification = PluginNotification::State { key: self.key.clone(), status: status.clone() };
            drop(status);
            parts.backend.notify(notification);
        }
    }

    /// Writes a line to the log of the plugin.
    pub(super) fn log(&self, level: &str, text: &str) {
        self.entry.log.lock().write(now_ms(), level, text);
    }

    /// Answers everybody who waits for the plugin to be ready.
    pub(super) fn answer_starters(&mut self, answer: &Result<(), String>) {
        for reply in self.starters.drain(..) {
            // Without a waiting caller, the answer is dropped.
            let _ = reply.send(answer.clone());
        }
    }

    fn refuse_waiting(&mut self, refusal: &RunRefusal) {
        for run in std::mem::take(&mut self.waiting) {
            self.shared.runs.forget(run.order.id);
            if let Some(reply) = run.reply {
                let _ = reply.send(Err(refusal.clone()));
            }
        }
    }

    /// Ends a run.
    pub(super) fn finish(&self, run: RunRequest, result: RunResult) {
        let ended = self.shared.runs.change(run.order.id, |it| {
            (it.stage, it.ended_at) = (RunStage::Ended(result.clone()), Some(now_ms()));
        });
        if let (Some(ended), Some(parts)) = (ended, self.parts()) {
            parts.backend.notify(PluginNotification::Run(ended));
        }
        if let Some(reply) = run.reply {
            let _ = reply.send(Ok(result));
        }
    }

    /// Adds a run to those that wait, or refuses it.
    pub(super) fn enqueue(&mut self, run: RunRequest) {
        let status = self.entry.status.lock().clone();
        let refusal = match status.state {
            PluginState::Disabled => RunRefusal::Disabled,
            PluginState::Failed => RunRefusal::Failed(status.reason.unwrap_or_default()),
            _ if self.waiting.len() >= WAITING_MAX => RunRefusal::TooMany,
            _ => {
                self.waiting.push_back(run);
                return self.change(|_| {});
            }
        };
        self.shared.runs.forget(run.order.id);
        if let Some(reply) = run.reply {
            let _ = reply.send(Err(refusal));
        }
    }

    /// Cancels a run that waits. Returns whether there was one.
    pub(super) fn cancel_waiting(&mut self, id: Uuid) -> bool {
        let Some(run) =
            self.waiting.iter().position(|it| it.order.id == id).and_then(|it| self.waiting.remove(it))
        else {
            return false;
        };
        self.finish(run, RunResult::Cancelled);
        true
    }

    /// Waits without a process.
    async fn rest(&mut self, pause: Option<Duration>) -> NextStep {
        let until = pause.map(|it| Instant::now() + it);
        let stop = self.shared.stop.clone();
        loop {
            let pause = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            let command = tokio::select! {
                command = self.commands.recv() => command,
                () = pause => return NextStep::Start,
                () = stop.cancelled() => return NextStep::End,
            };
            let Some(command) = command else { return NextStep::End };
            if let Some(next) = self.obey(command) {
                return next;
            }
        }
    }

    /// Obeys a command while there is no process. Returns what follows if that changes.
    fn obey(&mut self, command: Command) -> Option<NextStep> {
        match command {
            Command::Run(run) => {
                self.enqueue(run);
                let is_idle = self.entry.status.lock().state == PluginState::Idle;
                (is_idle && !self.waiting.is_empty()).then_some(NextStep::Start)
            }
            Command::Cancel(run) => {
                self.cancel_waiting(run);
                None
            }
            Command::Restart { reply } => {
                self.force();
                self.starters.push(reply);
                Some(NextStep::Start)
            }
            Command::Stop { reply, .. } => {
                self.stopped();
                let _ = reply.send(Ok(()));
                Some(NextStep::Rest)
            }
            Command::Reload { reply } => {
                self.starters.push(reply);
                Some(NextStep::Start)
            }
            Command::SettingsChanged => None,
        }
    }

    /// Forgets crashes, because an admin wants the plugin to start.
    pub(super) fn force(&mut self) {
        self.is_forced = true;
        self.crashes.clear();
    }

    /// The plugin has no process, and gets none until an admin acts.
    pub(super) fn stopped(&mut self) {
        self.set(PluginState::Disabled, None);
        self.refuse_waiting(&RunRefusal::Disabled);
        self.answer_starters(&Err("the plugin was stopped".to_owned()));
    }

    /// The plugin cannot run until an admin acts.
    fn failed(&mut self, reason: String) {
        warn!(plugin.key = %self.key, "plugin failed: {reason}");
        self.log("error", &reason);
        self.set(PluginState::Failed, Some(reason.clone()));
        self.refuse_waiting(&RunRefusal::Failed(reason.clone()));
        self.answer_starters(&Err(reason));
    }

    /// Starts a process if the plugin is enabled, and stays with it until it ends.
    async fn start(&mut self) -> NextStep {
        let Some(installed) = self.read().await else {
            self.set(PluginState::Disabled, None);
            self.answer_starters(&Ok(()));
            return NextStep::End;
        };
        if !installed.record.is_enabled {
            self.stopped_by_record(&installed).await;
            return NextStep::Rest;
        }
        if std::mem::take(&mut self.is_forced) {
            if installed.record.failed.is_some() {
                self.note(PluginNote::Failed(None)).await;
            }
            if installed.record.failed_starts > 0 {
                self.note(PluginNote::FailedStarts(0)).await;
            }
        } else if let Some(reason) = &installed.record.failed {
            self.failed(reason.clone());
            return NextStep::Rest;
        }
        self.set(PluginState::Preparing, None);
        let (shared, key) = (self.shared.clone(), self.key.clone());
        let prepared = {
            let (shared, installed, entry) = (shared.clone(), installed.clone(), self.entry.clone());
            self.unless_told(async move { prepare(&shared, &key, &entry, &installed).await }).await
        };
        let prepared = match prepared {
            Ok(Ok(prepared)) => prepared,
            Ok(Err(reason)) => {
                self.failed(reason);
                return NextStep::Rest;
            }
            Err(next) => return next,
        };
        let end = self.run_process(installed, prepared).await;
        self.storage = None;
        self.change(|it| (it.pid, it.runs) = (None, 0));
        match end {
            SessionEnd::Asked(next) => next,
            SessionEnd::Crashed { reason, ready } => self.crashed(reason, ready).await,
        }
    }

    /// The record says that the plugin is disabled, which also ends the state `failed`.
    async fn stopped_by_record(&mut self, installed: &InstalledPlugin) {
        self.crashes.clear();
        if installed.record.failed.is_some() {
            self.note(PluginNote::Failed(None)).await;
        }
        if installed.record.failed_starts > 0 {
            self.note(PluginNote::FailedStarts(0)).await;
        }
        self.set(PluginState::Disabled, None);
        self.refuse_waiting(&RunRefusal::Disabled);
        self.answer_starters(&Ok(()));
    }

    /// Does work while runs are accepted. Another command ends the work.
    async fn unless_told<T>(&mut self, work: impl Future<Output = T>) -> Result<T, NextStep> {
        let mut work = std::pin::pin!(work);
        let stop = self.shared.stop.clone();
        loop {
            let command = tokio::select! {
                done = &mut work => return Ok(done),
                command = self.commands.recv() => command,
                () = stop.cancelled() => return Err(NextStep::End),
            };
            if let Some(next) = command.map_or(Some(NextStep::End), |it| self.obey(it)) {
                return Err(next);
            }
        }
    }

    /// Decides what follows a crash of a process that was ready for this long.
    async fn crashed(&mut self, reason: String, ready: Duration) -> NextStep {
        self.log("error", &format!("the plugin crashed: {reason}"));
        warn!(plugin.key = %self.key, "plugin crashed: {reason}");
        self.change(|it| it.crashes += 1);
        // A crash makes the Python suspect: it may have been replaced.
        *self.shared.python.lock().await = None;
        let is_first = !std::mem::replace(&mut self.has_crashed, true);
        if is_first && let Some(installed) = self.read().await {
            let starts = installed.record.failed_starts + 1;
            self.note(PluginNote::FailedStarts(starts)).await;
            if starts >= GATEWAY_STARTS_MAX {
                let reason = format!("it crashed after {starts} starts of the gateway in a row: {reason}");
                self.note(PluginNote::Failed(Some(reason.clone()))).await;
                self.failed(reason);
                return NextStep::Rest;
            }
        }
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let ready_ms = u64::try_from(ready.as_millis()).unwrap_or(u64::MAX);
        match self.crashes.note(now_ms, ready_ms) {
            AfterCrash::Fail => {
                let reason = format!("it crashed five times in ten minutes: {reason}");
                self.note(PluginNote::Failed(Some(reason.clone()))).await;
                self.failed(reason);
                NextStep::Rest
            }
            AfterCrash::Restart(pause) => {
                self.set(PluginState::Restarting, Some(reason.clone()));
                self.answer_starters(&Err(reason));
                let divisor = self.parts().map_or(1, |it| it.settings.timings.pause_divisor.max(1));
                NextStep::Pause(pause / divisor)
            }
        }
    }

    /// Called when the plugin has been well for long enough, or ends without having crashed.
    pub(super) async fn is_well(&mut self) {
        if self.read().await.is_some_and(|it| it.record.failed_starts > 0) {
            self.note(PluginNote::FailedStarts(0)).await;
        }
    }

    /// Returns whether it has crashed since the gateway started.
    pub(super) fn has_crashed(&self) -> bool {
        self.has_crashed
    }

    async fn run_process(&mut self, installed: InstalledPlugin, prepared: Prepared) -> SessionEnd {
        let shared = self.shared.clone();
        // Held until the plugin is ready, so that few start at the same time.
        let permit = match self.unless_told(shared.starts.acquire()).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return SessionEnd::Asked(NextStep::End),
            Err(next) => return SessionEnd::Asked(next),
        };
        self.set(PluginState::Starting, None);
        info!(plugin.key = %self.key, "starting a plugin");
        let Prepared { mut command, storage, user } = prepared;
        self.storage = Some(storage);
        let limits = installed.limits();
        let group = match self.join_group(limits, &mut command).await {
            Ok(group) => group,
            Err(reason) => return SessionEnd::Crashed { reason, ready: Duration::ZERO },
        };
        let mut end = self.converse(installed, command, permit).await;
        if let Some(group) = group {
            let removed = spawn_blocking(move || {
                let ran_out = group.ran_out_of_memory();
                group.remove();
                ran_out
            });
            let ran_out = removed.await.unwrap_or_default();
            if let SessionEnd::Crashed { reason, .. } = &mut end
                && ran_out
            {
                *reason = format!("it used more than {} MiB of memory", limits.memory_mib);
            }
        }
        drop(user);
        end
    }

    /// Creates the control group of the plugin, if the gateway has one, and lets the process join it.
    async fn join_group(
        &self,
        limits: Limits,
        command: &mut PipedCommand,
    ) -> Result<Option<PluginGroup>, String> {
        let Some(groups) = self.parts().and_then(|it| it.groups.clone()) else { return Ok(None) };
        let key = self.key.clone();
        let created = spawn_blocking(move || groups.create(&key, &limits)).await;
        let group = created.map_err(|_| "a bug: its control group cannot be created".to_owned())??;
        if let Some(strictness) = &mut command.confinement.strictness {
            strictness.control_group = Some(group.folder.clone());
            if strictness.user.is_none() {
                // The kernel would also count the processes of the gateway.
                command.confinement.limits.processes_max = 0;
            }
        }
        Ok(Some(group))
    }
}

/// Finds everything that a process needs. If the future is dropped, the folders are not changed any more.
async fn prepare(
    shared: &Arc<PluginsState>,
    key: &PluginKey,
    entry: &Arc<KnownPlugin>,
    installed: &InstalledPlugin,
) -> Result<Prepared, String> {
    let Some(parts) = shared.parts.get() else { return Err("the gateway is starting".to_owned()) };
    if !shared.launcher.restricts() {
        return Err("plugins cannot be confined: this gateway has no launcher of programs".to_owned());
    }
    let (settings, manifest) = (&parts.settings, &installed.manifest);
    // Permissions that were not granted do not count.
    let permissions = installed.permissions().ok_or("its permissions have not been granted")?;
    let accepted = &installed.record.accepted_gaps | &settings.accepted_gaps;
    if let Some(reason) = new_gaps(&PluginGap::from_permissions(&permissions, &parts.enforced), &accepted) {
        return Err(reason);
    }
    let folders = OwnFolders::new(&settings.folders, key.as_str());
    let python = match &manifest.command {
        Some(_) => None,
        None => Some(shared.find_python(settings.python.as_deref()).await?),
    };
    let command = match (&python, &manifest.command) {
        (Some(python), _) => {
            let [program, code, packages] =
                [&python.program, &folders.code, &folders.environment].map(|it| it.display().to_string());
            let command = [&program, "-I", "-B", "-c", HOST, &code, &packages].map(str::to_owned);
            command.into_iter().chain(compat_arguments()).collect()
        }
        (None, command) => own_command(command.as_deref().unwrap_or_default(), &folders.code)?,
    };
    let environment = [
        ("HOME", folders.data.display().to_string()),
        ("TMPDIR", folders.temporary.display().to_string()),
        ("LANG", "C.UTF-8".to_owned()),
        ("TZ", settings.time_zone.clone()),
    ];
    let (all, limits) = (settings.folders.clone(), installed.limits());
    let (own, of_plugin, holder, entry) = (folders.clone(), python.clone(), shared.clone(), entry.clone());
    let (backend, key) = (parts.backend.clone(), key.clone());
    let given_up = CancellationToken::new();
    let _gives_up = given_up.clone().drop_guard();
    let blocking = spawn_blocking(move || {
        // Another preparation, which was given up, would otherwise give the files to its own user after this one.
        let _turn = entry.preparation.lock();
        if given_up.is_cancelled() {
            return Err("another start takes its place".to_owned());
        }
        let user = HeldUser::choose(holder, &own.code);
        own.prepare(&all, user.user)?;
        let program = PathBuf::from(&command[0]);
        let confinement =
            confine::confinement(&permissions, &limits, &own, &all, of_plugin.as_ref(), &program, user.user);
        let storage = Storage::open(key, backend.value_store()?, own.storage.clone())
            .map_err(|error| format!("its stored values cannot be read: {error}"))?;
        let inherited = if permissions.network { INHERITED_NETWORK.to_vec() } else { INHERITED.to_vec() };
        let environment = environment.into_iter().map(|it| (it.0.to_owned(), it.1.into())).collect();
        let command = PipedCommand { command, environment, inherited, folder: own.data, confinement };
        Ok::<_, String>(Prepared { command, storage, user })
    });
    let prepared = blocking.await.map_err(|_| "a bug: the preparation of a plugin panicked".to_owned())??;
    if let Some(python) = &python {
        let (command, user) = (&prepared.command, prepared.user.user);
        let (launcher, closer) = (&shared.launcher, &shared.closer);
        environment::make(installed, &folders, python, user, command, launcher, closer).await?;
    }
    Ok(prepared)
}

/// Returns the sentence why a plugin does not start: something is not enforced, and no admin accepted that.
fn new_gaps(gaps: &BTreeSet<PluginGap>, accepted: &BTreeSet<PluginGap>) -> Option<String> {
    let sentences: Vec<&str> = gaps.difference(accepted).map(|it| it.sentence()).collect();
    (!sentences.is_empty()).then(|| {
        format!("its restrictions are not enforced, and an admin has to accept that: {}", sentences.join(" "))
    })
}

/// The user of a running plugin, which no other one gets meanwhile.
pub(super) struct HeldUser {
    user: Option<ProgramUser>,
    shared: Arc<PluginsState>,
}

impl HeldUser {
    /// Blocks.
    fn choose(shared: Arc<PluginsState>, code: &Path) -> Self {
        let user = {
            let mut users = shared.users.lock();
            let user = confine::choose_user(code, &users);
            users.extend(user.map(|it| it.uid));
            user
        };
        Self { user, shared }
    }
}

impl Drop for HeldUser {
    fn drop(&mut self) {
        let mut users = self.shared.users.lock();
        if let Some(at) = users.iter().position(|it| self.user.is_some_and(|user| user.uid == *it)) {
            users.swap_remove(at);
        }
    }
}

/// Returns the command of a plugin without the Python host: a file of the plugin, or a program in `PATH`.
fn own_command(command: &[String], code: &Path) -> Result<Vec<String>, String> {
    let Some((program, arguments)) = command.split_first() else {
        return Err("its command is empty".to_owned());
    };
    let found = match program.contains('/') {
        true => Some(code.join(program)).filter(|it| it.is_file()),
        false => find_program(program),
    };
    let found = found.ok_or_else(|| format!("its program {program} is not installed"))?;
    Ok([&[found.display().to_string()], arguments].concat())
}

/// Returns the settings of a plugin with defaults, and the passwords among them.
pub(super) fn settings_of(installed: &InstalledPlugin) -> (Value, Vec<String>) {
    let fields = fields_of_plugin(Some(&installed.manifest), installed.record.reported.as_ref());
    let settings = &installed.record.settings;
    let passwords = settings.passwords(&fields).map(str::to_owned).collect();
    (Value::Object(settings.with_defaults(&fields)), passwords)
}
