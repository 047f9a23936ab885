//! The log of runs of actions by their buttons.

use std::sync::Weak;

use domain::plugin::RunCause;
use tracing::warn;

use super::state::IntegrationsState;
use crate::plugins::{PluginRun, RunStage};

/// Logs the runs of actions by their buttons. It does not keep the integrations alive, because these hold the plugins.
pub struct ButtonLog {
    pub(super) shared: Weak<IntegrationsState>,
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
