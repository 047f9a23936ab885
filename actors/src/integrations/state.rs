//! What the tasks of integrations share.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use domain::ids::{DeliveryId, IntegrationId};
use domain::integration::{Recipient, Target};
use media::closer::Closer;
use media::launcher::Launcher;
use parking_lot::Mutex;
use storage::Models;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::filter::DeliveryFilter;
use super::log_index::LogIndex;
use super::outbox::Outbox;
use super::plugins::PluginTargets;
use super::recipient_queue::RecipientQueue;
use super::settings::IntegrationSettings;
use super::status::IntegrationStatus;
use super::taken_ids::TakenIds;
use crate::plugins::{PluginRun, Plugins};
use crate::tasks::RespawnedTask;

/// The handle for integrations. Cheap to clone.
#[derive(Clone)]
pub struct Integrations {
    pub(super) shared: Arc<IntegrationsState>,
}

/// The state that outlives the tasks.
pub(super) struct IntegrationsState {
    pub(super) running: OnceLock<Running>,
    pub(super) launcher: Launcher,
    pub(super) closer: Closer,
    pub(super) plugins: Plugins,
    pub(super) outbox: Outbox,
    /// Cancelled when the gateway stops.
    pub(super) stop: CancellationToken,
    /// The follower and what it keeps running; ends with the system.
    pub(super) tasks: Mutex<Vec<RespawnedTask>>,
    /// Changes with every change of a status.
    pub(super) changed: watch::Sender<u64>,
    /// The folder of a plugin has another content.
    pub(super) installed: Notify,
}

/// The state of the deliveries once they have started.
pub(super) struct Running {
    pub(super) models: Models,
    pub(super) plugins: PluginTargets,
    pub(super) own_listeners: Arc<[SocketAddr]>,
    pub(super) settings: IntegrationSettings,
    pub(super) queues: Mutex<BTreeMap<Recipient, Arc<RecipientQueue>>>,
    pub(super) log: Mutex<LogIndex>,
    pub(super) scripts: Semaphore,
    pub(super) n_overflowed: AtomicU64,
    /// Runs by buttons that ended, to be logged.
    pub(super) ended_runs: mpsc::Sender<PluginRun>,
    pub(super) taken: Mutex<TakenIds>,
}

impl IntegrationsState {
    pub(super) fn status(&self, running: &Running, id: IntegrationId) -> IntegrationStatus {
        let queue = running.queues.lock().get(&Recipient::Integration(id)).cloned();
        let (n_waiting, n_running, n_dead) = queue.map(|it| it.counts()).unwrap_or_default();
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

    /// Returns the queue of an integration or a plugin.
    pub(super) fn queue(&self, to: Recipient, parallel: u8) -> Arc<RecipientQueue> {
        let new = || Arc::new(RecipientQueue::new(to, parallel));
        self.queues.lock().entry(to).or_insert_with(new).clone()
    }

    /// Returns the ids that a filter may select, in order: exact for the integration, the state and the ids.
    pub(super) fn delivery_ids(&self, filter: &DeliveryFilter) -> Vec<DeliveryId> {
        let queues: Vec<_> = match filter.to {
            Some(to) => self.queues.lock().get(&to).cloned().into_iter().collect(),
            None => self.queues.lock().values().cloned().collect(),
        };
        let mut ids = Vec::new();
        for queue in queues {
            queue.add_ids(filter.is_dead, &mut ids);
        }
        if let Some(wanted) = &filter.ids {
            ids.retain(|it| wanted.contains(it));
        }
        ids.sort_unstable();
        ids
    }
}
