//! The state of a plugin, and the errors of requests to it.

use domain::plugin::PluginState;

use crate::clock::now_ms;

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

impl PluginStatus {
    pub(super) fn new(state: PluginState) -> Self {
        Self { state, reason: None, since: now_ms(), pid: None, crashes: 0, runs: 0, waiting: 0 }
    }
}
