//! Delivers events to integrations, which are webhooks, scripts and actions of plugins, and to plugins whose actions want
//! them. Scheduled runs of actions take the same way.
//!
//! ```text
//! event ─► outbox ─► store (deliveries) ─► follower ─► queue of the integration ─► worker ─► attempt
//!                        ▲                                                                    │
//!                        └──────────── outcome and log entry, in one write ◄──────────────────┘
//! ```
//!
//! - The **outbox** stores a delivery for each integration that wants an event: in the write of the change that the event
//!   reports, or in one of its own.
//! - The **follower** reads the commits of the store, and adds new deliveries to the queues in memory.
//! - A **queue** is what is known of the deliveries to one integration or plugin. Its **worker** attempts them, so that a
//!   target that hangs delays no other.
//!
//! In a cluster, all this happens on the node that writes the configuration. Other nodes pass their events on; see
//! [`forwarding`].
//!
//! A delivery leaves the store only with the write that logs its success. After a crash the attempts that were running
//! are made again, with the same `webhook-id`, and no others.

mod attempt;
mod button_log;
mod client;
mod dead_letters;
mod digest;
mod error;
mod filter;
mod follow;
mod forwarding;
mod log_index;
mod new_delivery;
mod outbox;
mod plugins;
mod recipient_queue;
mod redact;
mod script;
mod settings;
mod state;
mod status;
mod taken_ids;
#[cfg(test)]
mod tests;
mod worker;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::event::EventBody;
use domain::ids::{DeliveryId, IntegrationId};
use domain::integration::{
    Delivery, DeliveryLogEntry, IntegrationState, Recipient, Script, Webhook, WrongIntegrationField,
};
use media::closer::Closer;
use media::launcher::Launcher;
use parking_lot::Mutex;
use storage::Models;
use tokio::sync::{Mutex as AsyncMutex, Notify, Semaphore, mpsc, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub use self::button_log::ButtonLog;
pub use self::dead_letters::DeadLetters;
pub use self::error::IntegrationError;
pub use self::filter::{DeliveryFilter, LogFilter, Page};
pub(crate) use self::outbox::{Courier, Outbox};
pub use self::plugins::PluginTargets;
pub use self::settings::IntegrationSettings;
pub use self::state::Integrations;
use self::state::{IntegrationsState, Running};
pub use self::status::{DeliveryCounts, IntegrationStatus};
use crate::plugins::Plugins;
use crate::tasks;

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

/// The result of a test for one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestResult {
    pub event: String,
    /// The entry of the log, with what was sent and what came back.
    pub entry: DeliveryLogEntry,
}

impl Integrations {
    pub(crate) fn new(
        launcher: Launcher,
        closer: Closer,
        plugins: Plugins,
        outbox: Outbox,
        stop: CancellationToken,
    ) -> Self {
        let shared = IntegrationsState {
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
            queues: Mutex::default(),
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
            running.queues.lock().clear();
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
        let queues = running.queues.lock();
        let counts = queues.values().map(|it| it.counts());
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
        let queue = running.queues.lock().get(&Recipient::Plugin(id)).cloned();
        queue.map(|it| it.counts()).map_or((0, 0), |it| (it.0, it.2))
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
        let queue = running.queue(Recipient::Integration(id), integration.parallel);
        let names: Vec<String> =
            integration.subscriptions.iter().filter(|it| it.is_enabled).map(|it| it.event.clone()).collect();
        if names.is_empty() {
            return Err(IntegrationError::NoEvents);
        }
        let turn = Arc::new(Semaphore::new(TESTS_MAX));
        let begin = |body: EventBody| {
            let (shared, queue, integration) = (self.shared.clone(), queue.clone(), integration.clone());
            let turn = turn.clone();
            // Ends with the request.
            AbortOnDropHandle::new(tasks::spawn(async move {
                let _permit = turn.acquire_owned().await;
                attempt::test(shared, queue, integration, body).await
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
