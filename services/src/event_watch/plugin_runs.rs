//! Reports runs of actions of plugins that have ended.
//!
//! Runs for events are left out: a plugin that runs for this event would run for ever.

use actors::{Events, PluginNotification, PluginRun, RunResult, RunStage, now_ms};
use domain::event::{Event, EventBody};
use domain::plugin::RunCause;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// Emits events for as long as plugins can run.
pub(super) async fn follow(mut notifications: Receiver<PluginNotification>, events: Events) {
    loop {
        match notifications.recv().await {
            Ok(PluginNotification::Run(run)) => {
                if let Some(body) = event(&run) {
                    events.emit(Event { at: now_ms(), body });
                }
            }
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            // No plugin runs any more; the other events go on.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Returns the event of a run; `None` for one that goes on, or that an event has caused.
fn event(run: &PluginRun) -> Option<EventBody> {
    let RunStage::Ended(result) = &run.stage else { return None };
    if run.cause == RunCause::Event {
        return None;
    }
    let status = match result {
        RunResult::Returned(value) if value.get("status").is_some_and(|it| it == "error") => "error",
        RunResult::Returned(_) => "success",
        RunResult::Cancelled | RunResult::Stopped => "cancelled",
        RunResult::UnknownAction | RunResult::Raised(_) | RunResult::Crashed(_) | RunResult::TimedOut => {
            "error"
        }
    };
    let duration_ms = run.ended_at.unwrap_or_else(now_ms).saturating_sub(run.requested_at);
    Some(EventBody::PluginRun {
        plugin: run.key.as_str().to_owned(),
        action: run.action.clone(),
        cause: run.cause.name(),
        status,
        duration_seconds: u64::try_from(duration_ms / 1000).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use domain::plugin::PluginKey;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_run_is_reported_when_it_has_ended_unless_an_event_caused_it() {
        let run = |cause, stage| PluginRun {
            id: Uuid::nil(),
            key: PluginKey::from_folder("demo").unwrap(),
            action: "clean".to_owned(),
            cause,
            stage,
            percent: None,
            message: None,
            requested_at: 1_000,
            ended_at: Some(4_500),
        };
        let ended = |result| RunStage::Ended(result);
        for (cause, stage, expected) in [
            (RunCause::Button, RunStage::Running, None),
            (RunCause::Button, ended(RunResult::Returned(json!({ "status": "ok" }))), Some("success")),
            (RunCause::Schedule, ended(RunResult::Returned(json!({ "status": "error" }))), Some("error")),
            (RunCause::Schedule, ended(RunResult::Raised("no".to_owned())), Some("error")),
            (RunCause::Button, ended(RunResult::Cancelled), Some("cancelled")),
            (RunCause::Event, ended(RunResult::TimedOut), None),
        ] {
            let event = event(&run(cause, stage.clone()));
            let status = match &event {
                Some(EventBody::PluginRun { status, duration_seconds: 3, .. }) => Some(*status),
                _ => None,
            };
            assert_eq!((status, event.is_some()), (expected, expected.is_some()), "{cause:?} {stage:?}");
        }
    }
}
