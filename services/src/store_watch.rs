//! Reports as events that the store refuses writes, and that it accepts them again.

use actors::{Events, now_ms};
use domain::event::{Event, EventBody};
use media::spawn_blocking;
use server::refusals::refused_writes;
use storage::Store;
use tracing::warn;

use crate::open_store::complete;

/// Emits an event for each change, until the store is dropped. After a start on a full disk, adds the records that the start
/// could not add.
pub async fn follow(store: Store, events: Events) {
    let mut stop_reason = store.stop_reason();
    let mut incomplete = stop_reason.borrow().is_some().then_some(store);
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
        if !was_stopped && let Some(store) = incomplete.take() {
            // Does not keep the events waiting.
            drop(spawn_blocking(move || {
                if store.writes_shared()
                    && let Err(error) = complete(&store)
                {
                    warn!(
                        "failed to add the records that every store needs; the next start adds them: {error}"
                    );
                }
            }));
        }
        if stop_reason.changed().await.is_err() {
            return;
        }
    }
}
