//! What plugins need of the rest of the gateway.

use std::pin::Pin;
use std::sync::Arc;

use domain::plugin::{Limits, Manifest, Permissions, Plugin, PluginKey, ReportedParts};
use serde_json::Value;
use storage::Store;

use super::call::{ApiAnswer, ApiCall, PluginCaller};
use super::run::PluginRun;
use super::status::PluginStatus;

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
