//! Reports as events that the store refuses writes, and that it accepts them again.

use actors::{Events, now_ms};
use domain::event::{Event, EventBody};
use storage::StopReason;
use tokio::sync::watch;

use crate::rest::frame::refuse::refused_writes;

/// Emits an event for each change, until the store is dropped.
pub(crate) async fn follow(mut stop_reason: watch::Receiver<Option<StopReason>>, events: Events) {
    let mut was_stopped = false;
    loop {
        let why = stop_reason.borrow_and_update().clone();
        let body = match &why {
            Some(why) => Some(EventBody::StoreStopped { reason: refused_writes(why) }),
            None => was_stopped.then_some(EventBody::StoreResumed),
        };
        was_stopped = why.is_some();
        if let Some(body) = body {
            events.emit(Event { at: now_ms(), body });
        }
        if stop_reason.changed().await.is_err() {
            return;
        }
    }
}
