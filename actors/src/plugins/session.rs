//! The time in which a plugin has a process: the conversation with it, its limits, and its end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::plugin::protocol::{
    self, Fault, Incoming, MessageReader, PROTOCOL, REFUSED, Rate, UNKNOWN_METHOD, Violation, text_of,
};
use domain::plugin::{
    ACTION_SECONDS_DEFAULT, Lifetime, Permissions, PluginState, ReportedParts, RunCause, TASK_ACTION,
    actions_of_plugin,
};
use media::source::{PipedCommand, PipedProgram, Pipes, ProgramEnd};
use media::spawn_blocking;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{SemaphorePermit, mpsc};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tracing::info;
use uuid::Uuid;

use super::api::{ApiCalls, OutgoingLine, line as api_line};
use super::call::PluginCaller;
use super::command::{Command, NextStep};
use super::life::{Life, settings_of};
use super::log::{LINE_BYTES_MAX, PluginLog};
use super::run::{RunRequest, RunResult, RunStage};
use super::tokens::HeldToken;
use super::{InstalledPlugin, PluginNote, PluginNotification, confine};
use crate::clock::now_ms;

/// Maximum number of messages that wait to be sent or handled.
const MESSAGES_WAITING_MAX: usize = 32;
/// Size of the read buffers.
const READ_BYTES: usize = 32 << 10;
/// Pause after each read of the log, which limits the work for a plugin that floods it.
const LOG_PAUSE: Duration = Duration::from_millis(5);
/// Maximum number of messages to the interface in a second.
const PUBLISHED_MAX: u32 = 10;
/// Maximum size of a message to the interface, in bytes.
const PUBLISHED_BYTES_MAX: usize = 16 << 10;
/// Maximum length of a text about progress, in characters.
const PROGRESS_CHARS_MAX: usize = 500;
/// Expensive measurements are made at each of this many looks.
const RARE_LOOKS: u64 = 10;
/// A plugin that was ready for this long is well.
const WELL: Duration = Duration::from_secs(600);
/// Time for what a process sent before its end to arrive.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// The number of the first request.
const INITIALIZE: u64 = 1;

/// How the time with a process ended. The process and its group are gone.
pub(super) enum SessionEnd {
    /// As asked.
    Asked(NextStep),
    /// By itself, or because it broke a rule, after having been ready for this long.
    Crashed { reason: String, ready: Duration },
}

/// A process.
struct Session {
    program: PipedProgram,
    outgoing: mpsc::Sender<OutgoingLine>,
    incoming: mpsc::Receiver<Result<Incoming, Violation>>,
    /// The last line that the process wrote to its log.
    last_line: Arc<Mutex<String>>,
    next_id: u64,
    began: Instant,
    ready_at: Option<Instant>,
    /// It is asked to end.
    is_ending: bool,
    /// The request that pings, and when it was sent.
    ping: Option<(u64, Instant)>,
    pinged_at: Instant,
    /// Runs by the numbers of their requests.
    running: HashMap<u64, Running>,
    /// Since when nothing runs.
    idle_since: Instant,
    published: Rate,
    calls: ApiCalls,
    looks: u64,
    is_well: bool,
    _tasks: [AbortOnDropHandle<()>; 3],
}

struct Running {
    run: RunRequest,
    deadline: Instant,
    /// Since when it is asked to end, and how it then ends.
    cancelled: Option<(Instant, RunResult)>,
}

/// Something that happened.
enum Happened {
    Message(Option<Result<Incoming, Violation>>),
    Exited(ProgramEnd),
    Told(Option<Command>),
    Look,
    GatewayStops,
}

impl Life {
    /// Starts a process, and stays with it until it has ended.
    pub(super) async fn converse(
        &mut self,
        mut installed: InstalledPlugin,
        command: PipedCommand,
        permit: SemaphorePermit<'_>,
    ) -> SessionEnd {
        let (settings, mut hidden) = settings_of(&installed);
        let permissions = installed.permissions().unwrap_or_else(Permissions::none);
        let granted = self.parts().map(|it| confine::granted(&permissions, &it.settings.folders));
        let caller = Arc::new(PluginCaller { key: self.key.clone(), permissions });
        // A plugin without a socket could not use one.
        let token = Some(caller.clone()).filter(|it| it.permissions.network);
        let token = token.map(|it| HeldToken::new(self.shared.clone(), it));
        let token = token.as_ref().map(|it| it.token.expose());
        hidden.extend(token.map(str::to_owned));
        self.entry.log.lock().hide(&hidden);
        let never_ready = |reason| SessionEnd::Crashed { reason, ready: Duration::ZERO };
        let Some(parts) = self.parts() else { return SessionEnd::Asked(NextStep::Rest) };
        let (timings, time_zone) = (parts.settings.timings, parts.settings.time_zone.clone());
        let api = json!({ "url": parts.settings.api_url, "token": token });
        let data_dir = command.folder.display().to_string();
        let started = PipedProgram::start(command, &self.shared.launcher, self.shared.closer.clone()).await;
        let mut session = match started {
            Ok((program, pipes)) => {
                let calls = ApiCalls::new(caller, timings.call);
                Session::new(program, pipes, self.entry.log.clone(), calls)
            }
            Err(reason) => return never_ready(reason),
        };
        let group = session.program.id();
        self.shared.sample.lock().groups.insert(group);
        self.change(|it| it.pid = Some(group));
        let manifest = &installed.manifest;
        let actions: Vec<Value> =
            manifest.actions.iter().flatten().map(|it| it.json().clone().into()).collect();
        let begun = session.request(
            "initialize",
            &json!({
                "protocol": PROTOCOL,
                "key": self.key.as_str(),
                "settings": settings,
                "actions": actions,
                "api": api,
                "data_dir": data_dir,
                "folders": granted,
                "time_zone": time_zone,
                "reason": "start",
            }),
        );
        let mut permit = Some(permit);
        let mut look = interval(timings.look);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stop = self.shared.stop.clone();
        let mut fault = begun.err();
        let end = loop {
            if let Some(reason) = fault {
                break self.crash(session, reason).await;
            }
            if session.ready_at.is_some() {
                permit = None;
                if let Err(reason) = self.begin_runs(&mut session, &installed) {
                    fault = Some(reason);
                    continue;
                }
            }
            let happened = tokio::select! {
                message = session.incoming.recv() => Happened::Message(message),
                end = session.program.exited() => Happened::Exited(end),
                command = self.commands.recv() => Happened::Told(command),
                _ = look.tick() => Happened::Look,
                () = stop.cancelled() => Happened::GatewayStops,
            };
            fault = match happened {
                Happened::Message(Some(Ok(message))) => {
                    self.receive(&mut session, &mut installed, message).await.err()
                }
                Happened::Message(Some(Err(violation))) => Some(violation.to_string()),
                Happened::Message(None) => match timeout(DRAIN_TIMEOUT, session.program.exited()).await {
                    Ok(end) => Some(session.describe(end)),
                    Err(_) => Some("it closed its connection".to_owned()),
                },
                Happened::Exited(end) => {
                    // Others of the group may hold the pipes open.
                    session.program.kill_now();
                    self.drain(&mut session, &mut installed).await;
                    Some(session.describe(end))
                }
                Happened::Look => match self.look(&mut session, &installed).await {
                    Ok(false) => None,
                    Ok(true) => {
                        self.end_process(session, &mut installed, "idle").await;
                        self.set(PluginState::Idle, None);
                        break SessionEnd::Asked(if self.waiting.is_empty() {
                            NextStep::Rest
                        } else {
                            NextStep::Start
                        });
                    }
                    Err(reason) => Some(reason),
                },
                Happened::GatewayStops | Happened::Told(None) => {
                    if !self.has_crashed() {
                        self.is_well().await;
                    }
                    self.end_process(session, &mut installed, "shutdown").await;
                    break SessionEnd::Asked(NextStep::End);
                }
                Happened::Told(Some(command)) => match command {
                    Command::Run(run) => {
                        self.enqueue(run);
                        None
                    }
                    Command::Cancel(run) => {
                        if self.cancel_waiting(run) {
                            None
                        } else {
                            session.cancel(run).err()
                        }
                    }
                    Command::SettingsChanged => {
                        if let Some(new) = self.read().await {
                            installed = new;
                        }
                        let (settings, mut hidden) = settings_of(&installed);
                        hidden.extend(token.map(str::to_owned));
                        self.entry.log.lock().hide(&hidden);
                        session.request("settings_changed", &json!({ "settings": settings })).map(drop).err()
                    }
                    Command::Stop { reason, reply } => {
                        self.end_process(session, &mut installed, &reason).await;
                        self.stopped();
                        let _ = reply.send(Ok(()));
                        break SessionEnd::Asked(NextStep::Rest);
                    }
                    Command::Restart { reply } => {
                        self.force();
                        self.starters.push(reply);
                        self.end_process(session, &mut installed, "restart").await;
                        break SessionEnd::Asked(NextStep::Start);
                    }
                    Command::Reload { reply } => {
                        self.starters.push(reply);
                        self.end_process(session, &mut installed, "reload").await;
                        break SessionEnd::Asked(NextStep::Start);
                    }
                },
            };
        };
        drop(permit);
        self.shared.sample.lock().groups.remove(&group);
        end
    }

    /// Ends the runs of a process that crashed, and what is left of the process.
    async fn crash(&mut self, mut session: Session, reason: String) -> SessionEnd {
        let ready = session.ready_at.map(|it| it.elapsed()).unwrap_or_default();
        for (_, running) in session.running.drain() {
            let Running { run, cancelled, .. } = running;
            match cancelled {
                Some((_, result)) => self.finish(run, result),
                None => self.finish(run, RunResult::Crashed(format!("the plugin crashed: {reason}"))),
            }
        }
        session.program.kill().await;
        SessionEnd::Crashed { reason, ready }
    }

    /// Asks a process to end, and ends it.
    async fn end_process(&mut self, mut session: Session, installed: &mut InstalledPlugin, reason: &str) {
        let Some(timings) = self.parts().map(|it| it.settings.timings) else { return };
        self.set(PluginState::Stopping, None);
        session.is_ending = true;
        let asked = session.request("stop", &json!({ "reason": reason }));
        let _ = timeout(timings.stop, async {
            if asked.is_err() {
                return;
            }
            loop {
                // What it still sends is handled, so that it is not blocked.
                tokio::select! {
                    message = session.incoming.recv() => match message {
                        Some(Ok(message)) => drop(self.receive(&mut session, installed, message).await),
                        Some(Err(_)) => return,
                        None => {
                            session.program.exited().await;
                            return;
                        }
                    },
                    _ = session.program.exited() => return,
                }
            }
        })
        .await;
        session.program.ask_to_end();
        let _ = timeout(timings.terminate, session.program.exited()).await;
        for (_, running) in session.running.drain() {
            self.finish(running.run, RunResult::Stopped);
        }
        session.program.kill().await;
    }

    /// Handles what a process sent before it ended.
    async fn drain(&mut self, session: &mut Session, installed: &mut InstalledPlugin) {
        let _ = timeout(DRAIN_TIMEOUT, async {
            while let Some(Ok(message)) = session.incoming.recv().await {
                let _ = self.receive(session, installed, message).await;
            }
        })
        .await;
    }

    /// Begins as many waiting runs as the plugin runs at the same time. An error ends the process.
    fn begin_runs(&mut self, session: &mut Session, installed: &InstalledPlugin) -> Result<(), String> {
        while session.running.len() < usize::from(installed.manifest.concurrency.max(1)) {
            let Some(run) = self.waiting.pop_front() else { break };
            let actions = actions_of_plugin(Some(&installed.manifest), installed.record.reported.as_ref());
            let order = &run.order;
            let is_task = order.action == TASK_ACTION && order.cause == RunCause::Schedule;
            let action = actions.into_iter().find(|it| it.id == order.action);
            let Some(seconds) = action.map(|it| it.timeout_s).or(is_task.then_some(ACTION_SECONDS_DEFAULT))
            else {
                self.finish(run, RunResult::UnknownAction);
                continue;
            };
            let time_max = Duration::from_secs(seconds.into());
            let params = json!({
                "run": order.id,
                "action": order.action,
                "params": order.params,
                "settings": settings_of(installed).0,
                "cause": order.cause.name(),
                "deadline_ms": u64::from(seconds) * 1_000,
            });
            let begun = self.shared.runs.change(order.id, |it| it.stage = RunStage::Running);
            if let (Some(begun), Some(parts)) = (begun, self.parts()) {
                parts.backend.notify(PluginNotification::Run(begun));
            }
            match session.request("run", &params) {
                Ok(id) => {
                    let running = Running { run, deadline: Instant::now() + time_max, cancelled: None };
                    session.running.insert(id, running);
                }
                Err(reason) => {
                    self.finish(run, RunResult::Crashed(reason.clone()));
                    return Err(reason);
                }
            }
        }
        self.show_runs(session);
        Ok(())
    }

    fn show_runs(&self, session: &Session) {
        let (n_runs, is_ready) = (session.running.len(), session.ready_at.is_some());
        self.change(|it| {
            it.runs = n_runs;
            let state = match (is_ready, n_runs) {
                (true, 0) => PluginState::Ready,
                (true, _) => PluginState::Busy,
                (false, _) => return,
            };
            if it.state != state && it.state != PluginState::Stopping {
                (it.state, it.since) = (state, now_ms());
            }
        });
    }

    /// Handles a message. An error ends the process.
    async fn receive(
        &mut self,
        session: &mut Session,
        installed: &mut InstalledPlugin,
        message: Incoming,
    ) -> Result<(), String> {
        match message {
            Incoming::Stray => Ok(()),
            Incoming::Answer { id: INITIALIZE, result } if session.ready_at.is_none() => {
                self.initialized(session, installed, result).await
            }
            Incoming::Answer { id, result } => {
                if session.ping.is_some_and(|it| it.0 == id) {
                    session.ping = None;
                } else if let Some(Running { run, cancelled, .. }) = session.running.remove(&id) {
                    session.idle_since = Instant::now();
                    let result = match (cancelled, result) {
                        (Some((_, result)), _) => result,
                        (None, Ok(value)) => RunResult::Returned(value),
                        (None, Err(fault)) => RunResult::Raised(self.entry.log.lock().redact(&fault.message)),
                    };
                    self.finish(run, result);
                    self.show_runs(session);
                }
                Ok(())
            }
            Incoming::Call { id, method, params } if method == "api" => {
                let begun = session.calls.begin(&self.shared, id.clone(), params, session.outgoing.clone());
                match (id, begun) {
                    (Some(id), Err(refusal)) => session.send(Some(api_line(&id, &refusal))),
                    _ => Ok(()),
                }
            }
            Incoming::Call { id, method, params } => {
                let answer = match method.as_str() {
                    "log" => {
                        let level = text_of(&params, "level").unwrap_or("info").to_owned();
                        let level = if level.len() <= 8 { level } else { "info".to_owned() };
                        let text = text_of(&params, "message").unwrap_or_default().to_owned();
                        let log = self.entry.log.clone();
                        let _ = spawn_blocking(move || log.lock().write(now_ms(), &level, &text)).await;
                        Ok(json!({}))
                    }
                    "progress" => {
                        self.progress(session, &params);
                        Ok(json!({}))
                    }
                    "publish" => self.publish(session, params),
                    "storage.get" | "storage.set" | "storage.delete" | "storage.keys" => {
                        self.store(&method, params).await
                    }
                    "schedule.set" | "schedule.delete" | "schedule.list" => {
                        self.schedule(&method, params, installed).await
                    }
                    _ => Err(Fault { code: UNKNOWN_METHOD, message: format!("unknown method {method:.50}") }),
                };
                match id {
                    Some(id) => session.send(protocol::answer(&id, &answer)),
                    None => Ok(()),
                }
            }
        }
    }

    async fn initialized(
        &mut self,
        session: &mut Session,
        installed: &mut InstalledPlugin,
        result: Result<Value, Fault>,
    ) -> Result<(), String> {
        let redact = |text: &str| self.entry.log.lock().redact(text);
        let answer = result.map_err(|fault| format!("it did not start: {}", redact(&fault.message)))?;
        if answer.get("protocol").and_then(Value::as_u64) != Some(PROTOCOL.into()) {
            return Err(format!("it does not speak version {PROTOCOL} of the protocol"));
        }
        let list = |name: &str| answer.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        let text = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
        let reported = ReportedParts {
            fields: list("fields"),
            actions: list("actions"),
            name: text("name"),
            version: text("version"),
            description: text("description"),
        };
        if installed.record.reported.as_ref() != Some(&reported) {
            installed.record.reported = Some(reported.clone());
            self.note(PluginNote::Reported(reported)).await;
        }
        session.ready_at = Some(Instant::now());
        session.idle_since = Instant::now();
        // Those that wait for the plugin wait for its next process.
        if session.is_ending {
            return Ok(());
        }
        info!(plugin.key = %self.key, "plugin is ready");
        self.set(PluginState::Ready, None);
        self.answer_starters(&Ok(()));
        Ok(())
    }

    fn progress(&self, session: &Session, params: &Map<String, Value>) {
        let run = text_of(params, "run").and_then(|it| it.parse::<Uuid>().ok());
        let is_own = |id: &Uuid| session.running.values().any(|it| it.run.order.id == *id);
        let Some(run) = run.filter(is_own) else { return };
        let message = text_of(params, "message");
        let message: Option<String> = message.map(|it| it.chars().take(PROGRESS_CHARS_MAX).collect());
        let message = message.map(|it| self.entry.log.lock().redact(&it));
        let percent = params.get("percent").and_then(Value::as_f64).map(|it| it.clamp(0.0, 100.0));
        let changed = self.shared.runs.change(run, |it| {
            it.percent = percent.or(it.percent);
            it.message = message.or(it.message.take());
        });
        if let (Some(changed), Some(parts)) = (changed, self.parts()) {
            parts.backend.notify(PluginNotification::Run(changed));
        }
    }

    fn publish(&self, session: &mut Session, mut params: Map<String, Value>) -> Result<Value, Fault> {
        let message = params.remove("message").unwrap_or_default();
        let refused = |message: &str| Err(Fault { code: REFUSED, message: message.to_owned() });
        if message.to_string().len() > PUBLISHED_BYTES_MAX {
            return refused("a message to the interface has at most 16 KiB");
        }
        if !session.published.allows(now_ms().unsigned_abs()) {
            return refused("at most 10 messages to the interface are sent in a second");
        }
        if let Some(parts) = self.parts() {
            parts.backend.notify(PluginNotification::Message { key: self.key.clone(), message });
        }
        Ok(json!({}))
    }

    async fn store(&mut self, method: &str, mut params: Map<String, Value>) -> Result<Value, Fault> {
        let refused = |message: String| Fault { code: REFUSED, message };
        let Some(storage) = &mut self.storage else {
            return Err(refused("the storage is not available".to_owned()));
        };
        let key = text_of(&params, "key").unwrap_or_default().to_owned();
        let value = match method {
            "storage.get" => {
                let value = storage.get(&key);
                return Ok(json!({"found": value.is_some(), "value": value}));
            }
            "storage.keys" => return Ok(json!({"keys": storage.keys()})),
            "storage.set" => Some(params.remove("value").unwrap_or_default()),
            _ => None,
        };
        storage.set(&key, value).await.map(|()| json!({})).map_err(refused)
    }

    /// Looks at time limits and at the use of resources. Returns whether the process is not needed any more. An error ends
    /// it.
    async fn look(&mut self, session: &mut Session, installed: &InstalledPlugin) -> Result<bool, String> {
        let Some(timings) = self.parts().map(|it| it.settings.timings) else { return Ok(false) };
        session.looks += 1;
        let Some(ready_at) = session.ready_at else {
            return match session.began.elapsed() > timings.start {
                true => Err(format!("it was not ready after {} s", timings.start.as_secs())),
                false => Ok(false),
            };
        };
        match session.ping {
            Some((_, sent)) if sent.elapsed() > timings.hang => {
                return Err(format!("it has not answered for {} s", timings.hang.as_secs()));
            }
            None if session.pinged_at.elapsed() >= timings.ping => {
                let id = session.request("ping", &json!({}))?;
                session.pinged_at = Instant::now();
                session.ping = Some((id, session.pinged_at));
            }
            _ => {}
        }
        session.look_at_runs(timings.cancel)?;
        let is_rare = session.looks.is_multiple_of(RARE_LOOKS);
        if is_rare || !session.running.is_empty() {
            let used = self.shared.sample(session.program.id()).await.unwrap_or_default();
            let limit = installed.limits().memory_mib;
            let limit_bytes = u64::from(limit) << 20;
            let (mut bytes, group) = (used.memory_bytes, session.program.id());
            if bytes > limit_bytes {
                let measured = spawn_blocking(move || super::usage::shared_memory_of(group)).await;
                bytes = measured.ok().flatten().unwrap_or(bytes);
            }
            if bytes > limit_bytes {
                return Err(format!("it used more than {limit} MiB of memory"));
            }
        }
        if is_rare {
            let folder = self.entry.folders.data.clone();
            let bytes = spawn_blocking(move || super::usage::folder_bytes(&folder)).await;
            let bytes = bytes.unwrap_or_default();
            *self.entry.data_bytes.lock() = bytes;
            let limit = installed.limits().data_mib;
            if bytes > u64::from(limit) << 20 {
                return Err(format!("it has more than {limit} MiB of files"));
            }
        }
        if !session.is_well && ready_at.elapsed() >= WELL {
            session.is_well = true;
            self.is_well().await;
        }
        let is_idle = session.running.is_empty() && session.idle_since.elapsed() >= timings.idle;
        Ok(installed.manifest.lifetime == Lifetime::OnDemand && is_idle)
    }
}

impl Session {
    fn new(program: PipedProgram, pipes: Pipes, log: Arc<Mutex<PluginLog>>, calls: ApiCalls) -> Self {
        let (outgoing, to_write) = mpsc::channel(MESSAGES_WAITING_MAX);
        let (read, incoming) = mpsc::channel(MESSAGES_WAITING_MAX);
        let last_line = Arc::new(Mutex::new(String::new()));
        let tasks = [
            crate::tasks::spawn(write(pipes.stdin, to_write)),
            crate::tasks::spawn(read_messages(pipes.stdout, read)),
            crate::tasks::spawn(read_log(pipes.stderr, log, last_line.clone())),
        ];
        let now = Instant::now();
        Self {
            program,
            outgoing,
            incoming,
            last_line,
            next_id: INITIALIZE,
            began: now,
            ready_at: None,
            is_ending: false,
            ping: None,
            pinged_at: now,
            running: HashMap::new(),
            idle_since: now,
            published: Rate::new(PUBLISHED_MAX),
            calls,
            looks: 0,
            is_well: false,
            _tasks: tasks.map(AbortOnDropHandle::new),
        }
    }

    /// Sends a request and returns its number. An error ends the process.
    fn request(&mut self, method: &str, params: &Value) -> Result<u64, String> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(protocol::request(id, method, params))?;
        Ok(id)
    }

    fn send(&self, line: Option<Vec<u8>>) -> Result<(), String> {
        let line = line.ok_or("a message to it would have more than 4 MiB")?;
        // One that has ended is noticed elsewhere.
        match self.outgoing.try_send(line.into()) {
            Err(mpsc::error::TrySendError::Full(_)) => Err("it does not read its messages".to_owned()),
            _ => Ok(()),
        }
    }

    /// Asks a run to end.
    fn cancel(&mut self, id: Uuid) -> Result<(), String> {
        let Some(running) = self.running.values_mut().find(|it| it.run.order.id == id) else { return Ok(()) };
        if running.cancelled.is_none() {
            running.cancelled = Some((Instant::now(), RunResult::Cancelled));
            return self.send(protocol::notification("cancel", &json!({ "run": id })));
        }
        Ok(())
    }

    /// Ends runs that take too long. An error ends the process.
    fn look_at_runs(&mut self, patience: Duration) -> Result<(), String> {
        let mut late = Vec::new();
        for running in self.running.values_mut() {
            match &running.cancelled {
                Some((since, _)) if since.elapsed() > patience => {
                    return Err("a run did not end when it was asked to".to_owned());
                }
                None if Instant::now() > running.deadline => {
                    running.cancelled = Some((Instant::now(), RunResult::TimedOut));
                    late.push(running.run.order.id);
                }
                _ => {}
            }
        }
        late.into_iter().try_for_each(|id| self.send(protocol::notification("cancel", &json!({ "run": id }))))
    }

    /// Returns how the process ended, with the last line of its log.
    fn describe(&self, end: ProgramEnd) -> String {
        let how = match end {
            ProgramEnd::Code(code) => format!("it ended with status {code}"),
            ProgramEnd::Signal(signal) => format!("it was ended by signal {signal}"),
        };
        match self.last_line.lock().as_str() {
            "" => how,
            line => format!("{how}: {line}"),
        }
    }
}

/// Writes lines until the process has ended.
async fn write(mut stdin: Sender, mut lines: mpsc::Receiver<OutgoingLine>) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(&line.bytes).await.is_err() {
            return;
        }
    }
}

/// Reads messages until the process closes its output or breaks a rule.
async fn read_messages(mut stdout: Receiver, to: mpsc::Sender<Result<Incoming, Violation>>) {
    let (mut reader, began) = (MessageReader::default(), Instant::now());
    let mut bytes = vec![0; READ_BYTES];
    loop {
        let n = match stdout.read(&mut bytes).await {
            Ok(n) if n > 0 => n,
            _ => return,
        };
        if let Err(violation) = reader.push(&bytes[..n]) {
            let _ = to.send(Err(violation)).await;
            return;
        }
        let now_ms = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        while let Some(message) = reader.next_message(now_ms()) {
            let is_last = message.is_err();
            if to.send(message).await.is_err() || is_last {
                return;
            }
        }
    }
}

/// Writes what the process prints to its log.
async fn read_log(mut stderr: Receiver, log: Arc<Mutex<PluginLog>>, last_line: Arc<Mutex<String>>) {
    let (mut bytes, mut line) = (vec![0; READ_BYTES], Vec::new());
    loop {
        let n = match stderr.read(&mut bytes).await {
            Ok(n) if n > 0 => n,
            _ => return,
        };
        let mut text = String::new();
        for byte in &bytes[..n] {
            match byte {
                b'\n' => {
                    text.push_str(&String::from_utf8_lossy(&line));
                    text.push('\n');
                    line.clear();
                }
                byte if line.len() < LINE_BYTES_MAX => line.push(*byte),
                _ => {}
            }
        }
        if text.is_empty() {
            continue;
        }
        if let Some(last) = text.lines().rev().find(|it| !it.trim().is_empty()) {
            *last_line.lock() =
                log.lock().redact(last).chars().filter(|it| !it.is_control()).take(300).collect();
        }
        let log = log.clone();
        let _ = spawn_blocking(move || log.lock().write(now_ms(), "output", &text)).await;
        sleep(LOG_PAUSE).await;
    }
}
