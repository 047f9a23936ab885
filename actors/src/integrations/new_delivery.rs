//! The delivery of an event.

use std::collections::BTreeMap;

use domain::ids::DeliveryId;
use domain::integration::{Delivery, OutboxEvent, Recipient};

use crate::clock::now_ms;

/// Returns the delivery of an event, which is due now, without whole addresses.
pub(super) fn new_delivery(id: DeliveryId, to: Recipient, event: &OutboxEvent) -> Delivery {
    Delivery {
        id,
        to,
        event_id: event.event_id,
        event: event.event.clone(),
        created_at: event.created_at,
        payload: event.payload.clone(),
        summary: event.summary.clone(),
        channel: event.channel,
        n_attempts: 0,
        due_at: now_ms(),
        reason: None,
        dead_at: None,
        run: None,
        n_crashes: 0,
        passed_run: None,
        addresses: BTreeMap::new(),
    }
}
