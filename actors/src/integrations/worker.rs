//! The worker of one integration or plugin: attempts its deliveries one after the other, or some at a time.

use std::sync::Arc;
use std::time::Duration;

use domain::ids::DeliveryId;
use domain::integration::{Integration, NextDelivery, Recipient, Target};
use domain::plugin::PluginKey;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::attempt;
use super::recipient_queue::RecipientQueue;
use super::state::{IntegrationsState, Running};
use crate::clock::now_ms;

/// Longest sleep until a delivery is due. The wall clock may be set meanwhile.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Runs until the gateway stops, and its attempts have ended.
pub(super) async fn run(shared: Arc<IntegrationsState>, queue: Arc<RecipientQueue>) {
    // Those of an earlier run of this task have ended with it.
    queue.forget_running();
    let mut attempts = JoinSet::new();
    loop {
        let wait_until = match next(&shared, &queue) {
            Next::Attempt(id) => {
                queue.rest(pause(&shared, &queue));
                let (shared, queue) = (shared.clone(), queue.clone());
                attempts.spawn(async move {
                    shared.touch();
                    if let Some(running) = shared.running.get() {
                        attempt::deliver(&shared, running, &queue, id).await;
                    }
                    shared.touch();
                    id
                });
                continue;
            }
            Next::WaitUntil(at) => Some(at),
            Next::Wait => None,
            Next::Stop if attempts.is_empty() => return,
            Next::Stop => None,
        };
        let due = async {
            match wait_until {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = queue.wake.notified() => {}
            () = due => {}
            Some(ended) = attempts.join_next(), if !attempts.is_empty() => {
                // An attempt that died by a defect is made again after this task was started again.
                ended.expect("attempts do not panic");
            }
            () = shared.stop.cancelled(), if !shared.stop.is_cancelled() => {}
        }
    }
}

enum Next {
    Attempt(DeliveryId),
    WaitUntil(Instant),
    Wait,
    Stop,
}

/// Returns what to do now.
fn next(shared: &IntegrationsState, queue: &RecipientQueue) -> Next {
    if shared.stop.is_cancelled() {
        return Next::Stop;
    }
    let Some(running) = shared.running.get() else { return Next::Wait };
    if !is_open(shared, running, queue.id) {
        return Next::Wait;
    }
    let not_before = queue.not_before();
    if Instant::now() < not_before {
        return Next::WaitUntil(not_before);
    }
    let now = now_ms();
    match queue.next(now) {
        NextDelivery::Attempt(id) => Next::Attempt(id),
        NextDelivery::Wait => Next::Wait,
        NextDelivery::WaitUntil(at) => {
            let wait = Duration::from_millis(u64::try_from(at.saturating_sub(now)).unwrap_or(0));
            Next::WaitUntil(Instant::now() + wait.min(SLEEP_MAX))
        }
    }
}

/// Returns whether deliveries may be attempted now. What waits stays meanwhile.
fn is_open(shared: &IntegrationsState, running: &Running, to: Recipient) -> bool {
    // In a cluster, the node that writes the configuration delivers.
    if !running.models.store.writes_shared() {
        return false;
    }
    match to {
        Recipient::Integration(id) => {
            let integrations = running.models.integrations.load();
            let states = running.models.integration_states.load();
            let is_paused = states.get(id.0).is_some_and(|it| it.paused.is_some());
            let takes = |it: &Integration| match &it.target {
                Target::Plugin(action) => {
                    PluginKey::from_folder(&action.key).is_ok_and(|it| shared.plugins.accepts_runs(&it))
                }
                Target::Webhook(_) | Target::Script(_) => true,
            };
            !is_paused && integrations.get(id.0).is_some_and(|it| it.is_enabled && takes(it))
        }
        Recipient::Plugin(id) => {
            let plugin = running.plugins.get(id);
            plugin.is_some_and(|it| it.is_enabled && shared.plugins.accepts_runs(&it.key))
        }
    }
}

/// Returns the least time between two messages.
fn pause(shared: &IntegrationsState, queue: &RecipientQueue) -> Duration {
    let running = shared.running.get();
    let id = queue.id.integration();
    let integration = running.zip(id).and_then(|it| it.0.models.integrations.load().get(it.1.0).cloned());
    integration.and_then(|it| it.preset()).map_or(Duration::ZERO, |it| it.pause())
}
