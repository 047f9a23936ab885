//! Matches channels without a guide channel after a guide source was refreshed, if the settings want that.

use std::sync::Arc;

use actors::{Events, match_after_refresh};
use domain::event::{Event, EventBody};
use media::spawn_blocking;
use storage::Models;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

/// Waits for refreshes of guide sources until the events end. If this is dropped, a run stops.
pub async fn follow(models: Models, events: &Events) {
    let mut received = events.subscribe();
    let stop = CancellationToken::new();
    let _stop_when_dropped = stop.clone().drop_guard();
    while let Some(()) = next_refresh(&mut received).await {
        let (models, stop) = (models.clone(), stop.clone());
        match spawn_blocking(move || match_after_refresh(&models, &stop)).await {
            Ok(Ok(0)) => {}
            Ok(Ok(n)) => info!(channels = n, "linked channels with guide channels after a refresh"),
            Ok(Err(error)) => error!(%error, "cannot link channels with guide channels"),
            Err(error) => error!(%error, "matching of channels failed"),
        }
    }
}

/// Waits for the next refresh. Events that were missed may have been one. `None` after the last event.
async fn next_refresh(events: &mut broadcast::Receiver<Arc<Event>>) -> Option<()> {
    loop {
        match events.recv().await {
            Ok(event) if matches!(event.body, EventBody::EpgRefresh { .. }) => return Some(()),
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return Some(()),
            Err(RecvError::Closed) => return None,
        }
    }
}
