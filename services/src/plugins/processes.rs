//! The processes of plugins, with the records of this gateway.

use std::net::SocketAddr;
use std::sync::Arc;

use actors::{
    ApiAnswer, ApiCall, ButtonLog, InstalledPlugin, Integrations, Pending, PluginBackend, PluginCaller,
    PluginFolders, PluginNote, PluginNotification, PluginSettings, Plugins, System,
};
use config::Config;
use domain::cluster::version::PLUGIN_VALUES_VERSION;
use domain::core_settings::{SYSTEM_SETTINGS, time_zone};
use domain::plugin::{Plugin, PluginKey};
use futures_util::future::BoxFuture;
use storage::plugin_files::PluginFiles;
use storage::{Models, Store, Write};
use tokio::sync::broadcast;
use tracing::warn;

use crate::files::{Files, Folder};
use crate::written_version::may_have;

/// Maximum number of notifications that a slow reader may fall behind.
const LAG_MAX: usize = 256;

/// Answers calls of plugins to the API.
pub type ApiCalls = Arc<dyn Fn(Arc<PluginCaller>, ApiCall) -> BoxFuture<'static, ApiAnswer> + Send + Sync>;

/// The processes of plugins.
pub struct PluginProcesses {
    pub handle: Plugins,
    notifications: broadcast::Sender<PluginNotification>,
    /// Logs the runs by buttons.
    integrations: Integrations,
}

/// Plugins as they are stored and unpacked.
struct StoredPlugins {
    models: Models,
    files: PluginFiles,
    notifications: broadcast::Sender<PluginNotification>,
    calls: ApiCalls,
    buttons: ButtonLog,
}

impl PluginProcesses {
    pub fn new(system: &System) -> Self {
        let notifications = broadcast::Sender::new(LAG_MAX);
        Self { handle: system.plugins(), notifications, integrations: system.integrations() }
    }

    /// Subscribes to what happens to plugins from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<PluginNotification> {
        self.notifications.subscribe()
    }

    /// Starts the enabled plugins in the background. Blocks while their folders are read.
    pub fn start(&self, models: Models, config: &Config, files: &PluginFiles, calls: ApiCalls) {
        let core_settings = models.settings.load();
        let system = core_settings.one_by("key", SYSTEM_SETTINGS).map(|it| &it.value);
        let zone = time_zone(system).to_owned();
        let settings = PluginSettings {
            folders: PluginFolders {
                code: absolute(config.data_dir.join("plugins")),
                data: absolute(config.data_dir.join("plugin-data")),
                recordings: absolute(config.recordings_folder()),
                logos: absolute(Files::new(&config.data_dir).folder(Folder::Logos)),
            },
            python: config.plugins.python.clone(),
            time_zone: zone,
            api_url: api_url(config),
            accepted_gaps: config.plugins.accept_gaps.clone(),
            is_safe_mode: config.plugins.is_safe_mode,
            timings: config.plugins.timings(),
        };
        if settings.is_safe_mode {
            warn!("safe mode: no plugin starts");
        }
        let (notifications, buttons) = (self.notifications.clone(), self.integrations.button_log());
        let backend = StoredPlugins { models, files: files.clone(), notifications, calls, buttons };
        self.handle.start(Arc::new(backend), settings);
    }
}

/// Returns the address of the API on loopback; `None` if no port is there.
fn api_url(config: &Config) -> Option<String> {
    let addresses = [config.api_listen, config.player_listen].map(|it| it.address());
    let on_loopback = |it: &SocketAddr| it.ip().is_unspecified() || it.ip().is_loopback();
    let address = addresses.into_iter().find(on_loopback)?;
    Some(match address.ip().is_loopback() {
        true => format!("http://{address}"),
        false => format!("http://127.0.0.1:{}", address.port()),
    })
}

/// Returns a path that does not depend on the working folder, which plugins do not share.
fn absolute(path: std::path::PathBuf) -> std::path::PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

impl PluginBackend for StoredPlugins {
    fn keys(&self) -> Vec<PluginKey> {
        self.models.plugins.load().iter().map(|it| it.key.clone()).collect()
    }

    fn installed(&self, key: &PluginKey) -> Option<InstalledPlugin> {
        let record = self.models.plugins.load().iter().find(|it| it.key == *key).cloned()?;
        let manifest = self.files.manifest(key).ok()?;
        let mut record = Plugin::clone(&record);
        if !self.models.store.writes_shared() {
            // Its process is on another node of the cluster, which also keeps the record.
            (record.is_enabled, record.failed, record.failed_starts) = (false, None, 0);
        }
        Some(InstalledPlugin { record, manifest })
    }

    fn note(&self, key: PluginKey, note: PluginNote) -> Pending<'_, Result<(), String>> {
        Box::pin(async move {
            let written = self.models.store.write(move |write: &mut Write<'_>| {
                let Some(mut record) = write.by::<Plugin>("key", key.as_str())?.into_iter().next() else {
                    return Ok(());
                };
                match note {
                    PluginNote::Reported(reported) => record.reported = Some(reported),
                    PluginNote::Failed(reason) => record.failed = reason,
                    PluginNote::FailedStarts(starts) => record.failed_starts = starts,
                }
                write.put(&record)?;
                Ok::<_, storage::Error>(())
            });
            written.await.map_err(|error| error.to_string())
        })
    }

    fn value_store(&self) -> Result<Option<Store>, String> {
        let store = &self.models.store;
        let may_have = may_have(store, PLUGIN_VALUES_VERSION).map_err(|error| error.to_string())?;
        Ok(may_have.then(|| store.clone()))
    }

    fn call_api(&self, caller: Arc<PluginCaller>, call: ApiCall) -> Pending<'_, ApiAnswer> {
        (self.calls)(caller, call)
    }

    fn notify(&self, notification: PluginNotification) {
        if let PluginNotification::Run(run) = &notification {
            self.buttons.note(run);
        }
        // An error means that nobody listens.
        let _ = self.notifications.send(notification);
    }
}
