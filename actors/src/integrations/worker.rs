//! The worker of one integration: attempts its deliveries one after the other, or some at a time.

use std::sync::Arc;
use std::time::Duration;

use domain::ids::DeliveryId;
use domain::integration::NextDelivery;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::lane::Lane;
use super::{Shared, attempt};
use crate::clock::now_ms;

/// Longest sleep until a delivery is due. The wall clock may be set meanwhile.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Runs until the gateway stops, and its attempts have ended.
pub(super) async fn run(shared: Arc<Shared>, lane: Arc<Lane>) {
    // Those of an earlier run of this task have ended with it.
    lane.forget_running();
    let mut attempts = JoinSet::new();
    let mut not_before = Instant::now();
    loop {
        let wait_until = match next(&shared, &lane, not_before) {
            Next::Attempt(id) => {
                let pause = pause(&shared, &lane);
                not_before = Instant::now() + pause;
                let (shared, lane) = (shared.clone(), lane.clone());
                attempts.spawn(async move {
                    shared.touch();
                    if let Some(running) = shared.running.get() {
                        attempt::deliver(&shared, running, &lane, id).await;
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
            () = lane.wake.notified() => {}
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
fn next(shared: &Shared, lane: &Lane, not_before: Instant) -> Next {
    if shared.stop.is_cancelled() {
        return Next::Stop;
    }
    let Some(running) = shared.running.get() else { return Next::Wait };
    let is_enabled = running.models.integrations.load().get(lane.id.0).is_some_and(|it| it.is_enabled);
    let states = running.models.integration_states.load();
    let is_paused = states.get(lane.id.0).is_some_and(|it| it.paused.is_some());
    if !is_enabled || is_paused {
        return Next::Wait;
    }
    if Instant::now() < not_before {
        return Next::WaitUntil(not_before);
    }
    let now = now_ms();
    match lane.next(now) {
        NextDelivery::Attempt(id) => Next::Attempt(id),
        NextDelivery::Wait => Next::Wait,
        NextDelivery::WaitUntil(at) => {
            let wait = Duration::from_millis(u64::try_from(at.saturating_sub(now)).unwrap_or(0));
            Next::WaitUntil(Instant::now() + wait.min(SLEEP_MAX))
        }
    }
}

/// Returns the least time between two messages.
fn pause(shared: &Shared, lane: &Lane) -> Duration {
    let running = shared.running.get();
    let integration = running.and_then(|it| it.models.integrations.load().get(lane.id.0).cloned());
    integration.and_then(|it| it.preset()).map_or(Duration::ZERO, |it| it.pause())
}
