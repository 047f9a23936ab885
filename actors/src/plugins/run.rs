//! Runs of actions: what they were asked for, how they go, and how they ended.

use std::collections::VecDeque;

use domain::plugin::{PluginKey, RunCause};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use uuid::Uuid;

/// Maximum number of runs that are remembered. Those that go on are not forgotten.
const RUNS_MAX: usize = 1_000;

/// An action to run.
#[derive(Clone, Debug)]
pub(crate) struct RunOrder {
    /// The id of the run, for the plugin and the interface. A repeated run has the same.
    pub(crate) id: Uuid,
    pub(crate) action: String,
    pub(crate) params: Map<String, Value>,
    pub(crate) cause: RunCause,
}

/// The first answer about a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunAnswer {
    /// It ended.
    Ended(Uuid, RunResult),
    /// It still runs; its end is reported by [`Plugins::job`](super::Plugins::job).
    Running(Uuid),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum RunResult {
    /// The action returned this object, usually with a `status`.
    Returned(Value),
    /// The plugin has no such action.
    UnknownAction,
    /// The action raised this exception.
    Raised(String),
    /// The process ended before the action did; a sentence.
    Crashed(String),
    /// It took longer than its time.
    TimedOut,
    /// Somebody cancelled it.
    Cancelled,
    /// The plugin was stopped.
    Stopped,
}

/// Why a run did not begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunRefusal {
    #[error("there is no such plugin")]
    UnknownPlugin,
    #[error("the plugin is disabled")]
    Disabled,
    #[error("the plugin has failed: {0}")]
    Failed(String),
    #[error("the gateway runs without plugins")]
    SafeMode,
    #[error("too many runs of the plugin wait")]
    TooMany,
}

/// Where a run is.
#[derive(Clone, Debug, PartialEq)]
pub enum RunStage {
    Waiting,
    Running,
    Ended(RunResult),
}

/// A run as others see it.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginRun {
    pub id: Uuid,
    pub key: PluginKey,
    pub action: String,
    pub cause: RunCause,
    pub stage: RunStage,
    /// As the action reported it, from 0 to 100.
    pub percent: Option<f64>,
    /// As the action reported it.
    pub message: Option<String>,
    /// Milliseconds since 1970.
    pub requested_at: i64,
    /// Milliseconds since 1970.
    pub ended_at: Option<i64>,
}

/// A run that waits or goes on.
pub(super) struct RunRequest {
    pub(super) order: RunOrder,
    pub(super) reply: Option<oneshot::Sender<Result<RunResult, RunRefusal>>>,
}

/// The runs of all plugins since the start, newest last.
#[derive(Default)]
pub(super) struct Runs(Mutex<VecDeque<PluginRun>>);

impl Runs {
    /// Remembers a run. One that is repeated replaces its earlier attempt.
    pub(super) fn begin(&self, key: &PluginKey, order: &RunOrder, now_ms: i64) -> PluginRun {
        let run = PluginRun {
            id: order.id,
            key: key.clone(),
            action: order.action.clone(),
            cause: order.cause,
            stage: RunStage::Waiting,
            percent: None,
            message: None,
            requested_at: now_ms,
            ended_at: None,
        };
        let mut runs = self.0.lock();
        runs.retain(|it| it.id != run.id);
        if runs.len() >= RUNS_MAX
            && let Some(oldest) = runs.iter().position(|it| it.ended_at.is_some())
        {
            runs.remove(oldest);
        }
        runs.push_back(run.clone());
        run
    }

    /// Changes a run, and returns it.
    pub(super) fn change(&self, id: Uuid, change: impl FnOnce(&mut PluginRun)) -> Option<PluginRun> {
        let mut runs = self.0.lock();
        let run = runs.iter_mut().find(|it| it.id == id)?;
        change(run);
        Some(run.clone())
    }

    pub(super) fn forget(&self, id: Uuid) {
        self.0.lock().retain(|it| it.id != id);
    }

    pub(super) fn get(&self, id: Uuid) -> Option<PluginRun> {
        self.0.lock().iter().find(|it| it.id == id).cloned()
    }

    pub(super) fn by_plugin(&self, key: &PluginKey) -> Vec<PluginRun> {
        self.0.lock().iter().rev().filter(|it| it.key == *key).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_ended_runs_are_forgotten() {
        let (runs, key) = (Runs::default(), PluginKey::from_folder("demo").unwrap());
        let order = |cause| RunOrder { id: Uuid::new_v4(), action: "a".into(), params: Map::new(), cause };
        let going_on = runs.begin(&key, &order(RunCause::Button), 0);
        for at in 0..2_000 {
            let run = runs.begin(&key, &order(RunCause::Event), at);
            runs.change(run.id, |it| it.ended_at = Some(at));
        }
        assert_eq!(runs.by_plugin(&key).len(), RUNS_MAX);
        assert_eq!(runs.get(going_on.id), Some(going_on.clone()));
        assert_eq!(runs.by_plugin(&key)[0].requested_at, 1_999);
        let repeated = RunOrder { id: going_on.id, ..order(RunCause::Event) };
        runs.begin(&key, &repeated, 2_000);
        assert_eq!(runs.by_plugin(&key).iter().filter(|it| it.id == going_on.id).count(), 1);
    }
}
