//! Delivers events to integrations, which are webhooks, scripts and actions of plugins, and to plugins whose actions want
//! them. Scheduled runs of actions take the same way.
//!
//! ```text
//! event ─► outbox ─► store (deliveries) ─► follower ─► lane of the integration ─► worker ─► attempt
//!                        ▲                                                                    │
//!                        └──────────── outcome and log entry, in one write ◄──────────────────┘
//! ```
//!
//! - The **outbox** stores a delivery for each integration that wants an event: in the write of the change that the event
//!   reports, or in one of its own.
//! - The **follower** reads the commits of the store, and adds new deliveries to the queues in memory.
//! - A **lane** is what is known of the deliveries to one integration or plugin. Its **worker** attempts them, so that a
//!   target that hangs delays no other.
//!
//! In a cluster, all this happens on the node that writes the configuration. Other nodes pass their events on; see
//! [`passing`].
//!
//! A delivery leaves the store only with the write that logs its success. After a crash the attempts that were running
//! are made again, with the same `webhook-id`, and no others.

mod attempt;
mod client;
mod follow;
mod lane;
mod log_index;
mod outbox;
mod passing;
mod plugins;
mod redact;
mod script;
#[cfg(test)]
mod tests;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use domain::egress::Distance;
use domain::event::EventBody;
use domain::ids::{DeliveryId, IntegrationId, LogEntryId};
use domain::integration::{
    Delivery, DeliveryLogEntry, DeliveryLogLimits, IntegrationState, Recipient, Script, Target, Webhook,
    WrongIntegrationField,
};
use domain::plugin::RunCause;
use media::closer::Closer;
use media::launcher::Launcher;
use parking_lot::Mutex;
use storage::Models;
use tokio::sync::{Mutex as AsyncMutex, Notify, Semaphore, mpsc, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use self::lane::Lane;
use self::log_index::LogIndex;
pub(crate) use self::outbox::{Courier, Outbox};
use self::passing::TakenIds;
pub use self::plugins::PluginTargets;
use crate::clock::now_ms;
use crate::plugins::{PluginRun, Plugins, RunStage};
use crate::tasks::{self, RespawnedTask};

/// Maximum wait for the attempts that run when the gateway stops. They are made again after the next start.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of scripts that run at the same time.
const SCRIPTS_MAX: usize = 4;
/// Maximum number of events that a test of an integration sends at the same time.
const TESTS_MAX: usize = 4;
/// Maximum number of dead letters that are replayed or deleted in one write.
const DEAD_PER_WRITE: usize = 1_000;
/// Maximum number of runs by buttons that wait for the log.
const ENDED_RUNS_MAX: usize = 1_024;

/// The external dependencies of the deliveries.
pub struct IntegrationParts {
    pub models: Models,
    pub plugins: PluginTargets,
    /// The addresses of the gateway itself, to which no webhook may lead.
    pub own_listeners: Arc<[SocketAddr]>,
    pub settings: IntegrationSettings,
    /// This is an edge node of a cluster, which has no integrations and passes all events on.
    pub is_edge: bool,
}

/// Settings of the operator.
#[derive(Debug, Clone, PartialEq)]
pub struct IntegrationSettings {
    /// Folders whose programs may be run. Empty allows none.
    pub script_dirs: Vec<PathBuf>,
    /// The nearest networks that webhooks may lead to.
    pub nearest_network: Distance,
    pub log: DeliveryLogLimits,
    /// The `User-Agent` of webhooks.
    pub user_agent: Option<String>,
}

impl Default for IntegrationSettings {
    fn default() -> Self {
        Self {
            script_dirs: Vec::new(),
            nearest_network: Distance::Loopback,
            log: DeliveryLogLimits::default(),
            user_agent: None,
        }
    }
}

/// The handle for integrations. Cheap to clone.
#[derive(Clone)]
pub struct Integrations {
    shared: Arc<Shared>,
}

/// How an integration fares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntegrationStatus {
    pub id: IntegrationId,
    pub n_waiting: usize,
    /// Those of the waiting ones that are attempted now.
    pub n_running: usize,
    pub n_dead: usize,
    /// Milliseconds since 1970.
    pub failing_since: Option<i64>,
    /// Why nothing is attempted until an admin resumes it.
    pub paused: Option<String>,
}

/// The numbers of deliveries at one moment, and of those that were lost since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeliveryCounts {
    pub n_waiting: usize,
    pub n_running: usize,
    pub n_dead: usize,
    /// Events that no integration got, because too many waited for the disk.
    pub n_lost: u64,
    /// Deliveries that became dead letters, because too many waited for their target.
    pub n_overflowed: u64,
}

/// The result of a test for one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestResult {
    pub event: String,
    /// The entry of the log, with what was sent and what came back.
    pub entry: DeliveryLogEntry,
}

/// Selects deliveries. The default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    pub to: Option<Recipient>,
    /// `Some(true)` for dead letters, `Some(false)` for those that wait.
    pub is_dead: Option<bool>,
    /// Name of the event.
    pub event: Option<String>,
    /// These deliveries only.
    pub ids: Option<BTreeSet<DeliveryId>>,
    /// Those of events from this time on, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Those of events before this time, in milliseconds since 1970.
    pub before: Option<i64>,
}

/// Selects entries of the log. The default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilter {
    pub to: Option<Recipient>,
    /// One of these.
    pub to_one_of: Option<Vec<Recipient>>,
    pub cause: Option<RunCause>,
    /// Name of the event.
    pub event: Option<String>,
    pub is_success: Option<bool>,
    pub is_test: Option<bool>,
    /// Milliseconds since 1970.
    pub since: Option<i64>,
    /// Milliseconds since 1970.
    pub before: Option<i64>,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The number of all that the filter selects.
    pub n_all: usize,
    pub items: Vec<T>,
}

/// Reason why a call about integrations fails.
#[derive(Debug, thiserror::Error)]
pub enum IntegrationError {
    #[error("there is no such integration")]
    NotFound,
    #[error("no event of this integration is enabled")]
    NoEvents,
    #[error("integrations do not run")]
    NotRunning,
    #[error("a bug: the test of an integration panicked")]
    TestPanicked,
    #[error(transparent)]
    Store(#[from] storage::Error),
}

/// The state that outlives the tasks.
struct Shared {
    running: OnceLock<Running>,
    launcher: Launcher,
    closer: Closer,
    plugins: Plugins,
    outbox: Outbox,
    /// Cancelled when the gateway stops.
    stop: CancellationToken,
    /// The follower and what it keeps running; ends with the system.
    tasks: Mutex<Vec<RespawnedTask>>,
    /// Changes with every change of a status.
    changed: watch::Sender<u64>,
    /// The folder of a plugin has another content.
    installed: Notify,
}

/// The state of the deliveries once they have started.
struct Running {
    models: Models,
    plugins: PluginTargets,
    own_listeners: Arc<[SocketAddr]>,
    settings: IntegrationSettings,
    lanes: Mutex<BTreeMap<Recipient, Arc<Lane>>>,
    log: Mutex<LogIndex>,
    scripts: Semaphore,
    n_overflowed: AtomicU64,
    /// Runs by buttons that ended, to be logged.
    ended_runs: mpsc::Sender<PluginRun>,
    taken: Mutex<TakenIds>,
}

impl Integrations {
    pub(crate) fn new(
        launcher: Launcher,
        closer: Closer,
        plugins: Plugins,
        outbox: Outbox,
        stop: CancellationToken,
    ) -> Self {
        let shared = Shared {
            running: OnceLock::new(),
            launcher,
            closer,
            plugins,
            outbox,
            stop,
            tasks: Mutex::default(),
            changed: watch::channel(0).0,
            installed: Notify::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Starts delivering on the current runtime. Only the first call has an effect.
    pub(crate) fn start(&self, parts: IntegrationParts) {
        let IntegrationParts { models, plugins, own_listeners, settings, is_edge: _ } = parts;
        let (ended_runs, to_log) = mpsc::channel(ENDED_RUNS_MAX);
        self.shared.plugins.schedules().start(models.clone());
        let running = Running {
            models,
            plugins,
            own_listeners,
            settings,
            lanes: Mutex::default(),
            log: Mutex::default(),
            scripts: Semaphore::new(SCRIPTS_MAX),
            n_overflowed: AtomicU64::new(0),
            ended_runs,
            taken: Mutex::default(),
        };
        if self.shared.running.set(running).is_err() {
            return;
        }
        // The task ends when `stop` is cancelled, so that it may hold what it runs for.
        let shared = self.shared.clone();
        let follower = tasks::respawn("the follower of deliveries", move || follow::run(shared.clone()));
        let (schedules, stop) = (self.shared.plugins.schedules().clone(), self.shared.stop.clone());
        let schedules =
            tasks::respawn("the schedules of plugins", move || schedules.clone().run(stop.clone()));
        let (shared, to_log) = (self.shared.clone(), Arc::new(AsyncMutex::new(to_log)));
        let log = tasks::respawn("the log of buttons", move || {
            attempt::log_buttons(shared.clone(), to_log.clone())
        });
        self.shared.tasks.lock().extend([follower, schedules, log]);
    }

    /// Waits until no attempt runs any more, at most for [`STOP_TIMEOUT`], and ends the tasks.
    pub(crate) async fn ended(&self) {
        let deadline = Instant::now() + STOP_TIMEOUT;
        while Instant::now() < deadline && self.counts().n_running > 0 {
            sleep(Duration::from_millis(10)).await;
        }
        self.shared.tasks.lock().clear();
        if let Some(running) = self.shared.running.get() {
            running.lanes.lock().clear();
        }
    }

    fn running(&self) -> Result<&Running, IntegrationError> {
        self.shared.running.get().ok_or(IntegrationError::NotRunning)
    }

    /// Returns the numbers of all deliveries.
    pub fn counts(&self) -> DeliveryCounts {
        let n_lost = self.shared.outbox.n_lost();
        let Some(running) = self.shared.running.get() else { return DeliveryCounts::default() };
        let n_overflowed = running.n_overflowed.load(Ordering::Relaxed);
        let lanes = running.lanes.lock();
        let counts = lanes.values().map(|it| it.counts());
        let none = DeliveryCounts { n_lost, n_overflowed, ..DeliveryCounts::default() };
        counts.fold(none, |all, (n_waiting, n_running, n_dead)| DeliveryCounts {
            n_waiting: all.n_waiting + n_waiting,
            n_running: all.n_running + n_running,
            n_dead: all.n_dead + n_dead,
            ..all
        })
    }

    /// Returns what logs the runs of actions by their buttons.
    pub fn button_log(&self) -> ButtonLog {
        ButtonLog { shared: Arc::downgrade(&self.shared) }
    }

    /// Reads the plugins again, because the folder of one has another content although its record is the same.
    pub fn plugin_installed(&self) {
        self.shared.installed.notify_one();
    }

    /// Returns how many deliveries wait for the plugin with this id, and how many dead letters it has.
    pub fn counts_of_plugin(&self, id: u32) -> (usize, usize) {
        let Some(running) = self.shared.running.get() else { return (0, 0) };
        let lane = running.lanes.lock().get(&Recipient::Plugin(id)).cloned();
        lane.map(|it| it.counts()).map_or((0, 0), |it| (it.0, it.2))
    }

    /// Follows the statuses: the number changes with each change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// Returns how an integration fares; `None` if there is no such integration.
    pub fn status(&self, id: IntegrationId) -> Option<IntegrationStatus> {
        let running = self.shared.running.get()?;
        running.models.integrations.load().get(id.0)?;
        Some(self.shared.status(running, id))
    }

    /// Returns how all integrations fare, by id.
    pub fn statuses(&self) -> Vec<IntegrationStatus> {
        let Some(running) = self.shared.running.get() else { return Vec::new() };
        running.models.integrations.load().iter().map(|it| self.shared.status(running, it.id)).collect()
    }

    /// Sends an example of each enabled event, a few at the same time, whether the integration is enabled or not. Each is
    /// logged, in the order of the events. An answer in time is not guaranteed: each event may take as long as its
    /// target.
    ///
    /// # Errors
    /// There is no such integration, or it has no enabled event.
    pub async fn test(&self, id: IntegrationId) -> Result<Vec<TestResult>, IntegrationError> {
        let running = self.running()?;
        let integration =
            running.models.integrations.load().get(id.0).cloned().ok_or(IntegrationError::NotFound)?;
        let lane = running.lane(Recipient::Integration(id), integration.parallel);
        let names: Vec<String> =
            integration.subscriptions.iter().filter(|it| it.is_enabled).map(|it| it.event.clone()).collect();
        if names.is_empty() {
            return Err(IntegrationError::NoEvents);
        }
        let turn = Arc::new(Semaphore::new(TESTS_MAX));
        let begin = |body: EventBody| {
            let (shared, lane, integration) = (self.shared.clone(), lane.clone(), integration.clone());
            let turn = turn.clone();
            // Ends with the request.
            AbortOnDropHandle::new(tokio::spawn(async move {
                let _permit = turn.acquire_owned().await;
                attempt::test(shared, lane, integration, body).await
            }))
        };
        let samples = names.into_iter().filter_map(|event| Some((EventBody::sample(&event)?, event)));
        let tests: Vec<_> = samples.map(|(body, event)| (event, begin(body))).collect();
        let mut results = Vec::with_capacity(tests.len());
        for (event, test) in tests {
            let entry = test.await.map_err(|_| IntegrationError::TestPanicked)?;
            results.push(TestResult { event, entry: attempt::log_test(running, entry).await? });
        }
        Ok(results)
    }

    /// Lets a paused integration deliver again. Returns whether it was paused or failing.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn resume(&self, id: IntegrationId) -> Result<bool, IntegrationError> {
        let resume = move |write: &mut storage::Write<'_>| {
            let Some(mut state) = write.get::<IntegrationState>(id.0)? else { return Ok(false) };
            let before = state.clone();
            state.resume();
            write.put(&state)?;
            Ok::<_, storage::Error>(state != before)
        };
        Ok(self.running()?.models.store.write(resume).await?)
    }

    /// Returns deliveries, newest first. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn deliveries(
        &self,
        filter: &DeliveryFilter,
        offset: usize,
        limit: usize,
    ) -> Result<Page<Delivery>, IntegrationError> {
        let running = self.running()?;
        let mut ids = running.delivery_ids(filter);
        ids.reverse();
        let collection = running.models.store.collection::<Delivery>();
        if filter.is_by_record() {
            let mut items = Vec::new();
            for id in ids {
                items.extend(collection.get(id.0)?.filter(|it| filter.selects(it)));
            }
            let n_all = items.len();
            return Ok(Page { n_all, items: items.into_iter().skip(offset).take(limit).collect() });
        }
        let n_all = ids.len();
        let mut items = Vec::new();
        for id in ids.into_iter().skip(offset).take(limit) {
            items.extend(collection.get(id.0)?.filter(|it| filter.selects(it)));
        }
        Ok(Page { n_all, items })
    }

    /// Returns the dead letters that a filter selects, in parts that are changed in one write each. Blocks: there may be
    /// many.
    pub fn dead_letters(&self, filter: &DeliveryFilter) -> Vec<DeadLetters> {
        let Some(running) = self.shared.running.get() else { return Vec::new() };
        let filter = DeliveryFilter { is_dead: Some(true), ..filter.clone() };
        let ids = running.delivery_ids(&filter);
        // The parts have only ids that it selects.
        let filter = DeliveryFilter { ids: None, ..filter };
        let part = |ids: &[DeliveryId]| DeadLetters { ids: ids.to_vec(), filter: filter.clone() };
        ids.chunks(DEAD_PER_WRITE).map(part).collect()
    }

    /// Returns entries of the log, newest first. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn log(
        &self,
        filter: &LogFilter,
        offset: usize,
        limit: usize,
    ) -> Result<Page<DeliveryLogEntry>, IntegrationError> {
        let running = self.running()?;
        let (n_all, ids) = running.log.lock().page(filter, offset, limit);
        let collection = running.models.store.collection::<DeliveryLogEntry>();
        let mut items = Vec::with_capacity(ids.len());
        for id in ids {
            items.extend(collection.get(id)?);
        }
        Ok(Page { n_all, items })
    }

    /// Returns an entry of the log.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn log_entry(&self, id: LogEntryId) -> Result<Option<DeliveryLogEntry>, IntegrationError> {
        Ok(self.running()?.models.store.collection::<DeliveryLogEntry>().get(id.0)?)
    }

    /// Checks that a script may be run: it is below a folder of scripts, executable, and nobody else can write it. Blocks.
    ///
    /// # Errors
    /// The field and a sentence about it.
    pub fn check_script(&self, script: &Script) -> Result<(), WrongIntegrationField> {
        let dirs = self.shared.running.get().map(|it| &it.settings.script_dirs[..]).unwrap_or_default();
        script::check(script, dirs).map(drop)
    }

    /// Checks what only the client of webhooks can tell: that the CA certificate can be read.
    ///
    /// # Errors
    /// The field and a sentence about it.
    pub fn check_webhook(&self, webhook: &Webhook) -> Result<(), WrongIntegrationField> {
        let is_valid = webhook.ca_certificate.as_deref().is_none_or(|it| client::certificates(it).is_some());
        let reason = "Enter certificates in PEM, which begin with -----BEGIN CERTIFICATE-----.".to_owned();
        if is_valid { Ok(()) } else { Err(WrongIntegrationField { field: "ca_certificate", reason }) }
    }
}

/// Logs the runs of actions by their buttons. It does not keep the integrations alive, because these hold the plugins.
pub struct ButtonLog {
    shared: Weak<Shared>,
}

impl ButtonLog {
    /// Logs a run by a button once it has ended. Never waits. Other runs are logged with their deliveries.
    pub fn note(&self, run: &PluginRun) {
        if run.cause != RunCause::Button || !matches!(run.stage, RunStage::Ended(_)) {
            return;
        }
        let Some(shared) = self.shared.upgrade() else { return };
        if let Some(running) = shared.running.get()
            && running.ended_runs.try_send(run.clone()).is_err()
        {
            warn!(plugin.key = %run.key, "too many runs wait for the log, so one is not logged");
        }
    }
}

/// Some dead letters.
#[derive(Debug, Clone)]
pub struct DeadLetters {
    ids: Vec<DeliveryId>,
    filter: DeliveryFilter,
}

impl DeadLetters {
    /// Lets them be attempted again, as if their events had happened now. Returns how many there still were.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn replay(self, write: &mut storage::Write<'_>) -> storage::Result<usize> {
        let now = now_ms();
        self.change(write, |write, mut delivery| {
            delivery.replay(now);
            write.put(&delivery)
        })
    }

    /// Deletes them. Returns how many there still were.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn delete(self, write: &mut storage::Write<'_>) -> storage::Result<usize> {
        self.change(write, |write, delivery| write.remove::<Delivery>(delivery.id.0).map(drop))
    }

    fn change(
        self,
        write: &mut storage::Write<'_>,
        change: impl Fn(&mut storage::Write<'_>, Delivery) -> storage::Result<()>,
    ) -> storage::Result<usize> {
        let mut n_changed = 0;
        for id in &self.ids {
            let delivery = write.get::<Delivery>(id.0)?;
            if let Some(delivery) = delivery.filter(|it| self.filter.selects(it)) {
                change(write, delivery)?;
                n_changed += 1;
            }
        }
        Ok(n_changed)
    }
}

impl DeliveryFilter {
    /// Returns whether the records have to be read to apply it.
    fn is_by_record(&self) -> bool {
        self.event.is_some() || self.since.is_some() || self.before.is_some()
    }

    fn selects(&self, it: &Delivery) -> bool {
        self.to.is_none_or(|to| it.to == to)
            && self.is_dead.is_none_or(|is_dead| it.dead_at.is_some() == is_dead)
            && self.event.as_ref().is_none_or(|event| it.event == *event)
            && self.ids.as_ref().is_none_or(|ids| ids.contains(&it.id))
            && self.since.is_none_or(|at| it.created_at >= at)
            && self.before.is_none_or(|at| it.created_at < at)
    }
}

impl Shared {
    fn status(&self, running: &Running, id: IntegrationId) -> IntegrationStatus {
        let lane = running.lanes.lock().get(&Recipient::Integration(id)).cloned();
        let (n_waiting, n_running, n_dead) = lane.map(|it| it.counts()).unwrap_or_default();
        let state = running.models.integration_states.load().get(id.0).cloned();
        let (failing_since, paused) =
            state.map(|it| (it.failing_since, it.paused.clone())).unwrap_or_default();
        let integration = running.models.integrations.load().get(id.0).cloned();
        let paused = paused.or_else(|| running.missing_plugin(&integration?.target));
        IntegrationStatus { id, n_waiting, n_running, n_dead, failing_since, paused }
    }
}

impl Running {
    /// Returns the reason why nothing is attempted, if the target is an action of a plugin that cannot run.
    fn missing_plugin(&self, target: &Target) -> Option<String> {
        let Target::Plugin(action) = target else { return None };
        let plugins = self.models.plugins.load();
        match plugins.one_by("key", &action.key) {
            None => Some(format!("the plugin \"{}\" is not installed", action.key)),
            Some(plugin) if !plugin.is_enabled => Some(format!("the plugin \"{}\" is disabled", action.key)),
            Some(_) => None,
        }
    }

    /// Returns the lane of an integration or a plugin.
    fn lane(&self, to: Recipient, parallel: u8) -> Arc<Lane> {
        let new = || Arc::new(Lane::new(to, parallel));
        self.lanes.lock().entry(to).or_insert_with(new).clone()
    }

    /// Returns the ids that a filter may select, in order: exact for the integration, the state and the ids.
    fn delivery_ids(&self, filter: &DeliveryFilter) -> Vec<DeliveryId> {
        let lanes: Vec<_> = match filter.to {
            Some(to) => self.lanes.lock().get(&to).cloned().into_iter().collect(),
            None => self.lanes.lock().values().cloned().collect(),
        };
        let mut ids = Vec::new();
        for lane in lanes {
            lane.add_ids(filter.is_dead, &mut ids);
        }
        if let Some(wanted) = &filter.ids {
            ids.retain(|it| wanted.contains(it));
        }
        ids.sort_unstable();
        ids
    }
}
