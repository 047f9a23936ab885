//! States of a plugin.

use serde::{Deserialize, Serialize};

/// The state of a plugin and its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PluginState {
    /// An admin has to enable it, or to grant the permissions of a new version.
    Disabled,
    /// Its environment is built.
    Preparing,
    /// Its process has been started, and has not answered yet.
    Starting,
    /// It waits for runs.
    Ready,
    /// An action runs.
    Busy,
    /// It has no process until the next run.
    Idle,
    /// Its process is asked to end.
    Stopping,
    /// It crashed, and starts again after a pause.
    Restarting,
    /// It does not start again until an admin restarts, updates or disables it.
    Failed,
}

impl PluginState {
    /// The name in the interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Preparing => "preparing",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Busy => "busy",
            Self::Idle => "idle",
            Self::Stopping => "stopping",
            Self::Restarting => "restarting",
            Self::Failed => "failed",
        }
    }

    /// States whether runs are accepted.
    pub fn accepts_runs(self) -> bool {
        matches!(self, Self::Ready | Self::Busy | Self::Idle)
    }
}
