//! Adds events to the digest of an integration that wants at most one message in some minutes.
//!
//! A digest is one delivery that waits until its time. Until then, further events are added to it; after that, the next event
//! begins another one.

use std::collections::HashMap;

use domain::ids::{DeliveryId, IntegrationId};
use domain::integration::{DIGEST, Delivery, Digest, OutboxEvent, Recipient};
use parking_lot::Mutex;
use storage::Write;
use uuid::Uuid;

use super::new_delivery::new_delivery;
use crate::clock::now_ms;

const MINUTE_MS: i64 = 60_000;
/// An event is not added to a digest so shortly before its time, in milliseconds: its attempt might have read it already.
const CLOSED_BEFORE_MS: i64 = 5_000;

/// The digests that wait, by integration.
#[derive(Default)]
pub(super) struct OpenDigests(Mutex<HashMap<IntegrationId, DeliveryId>>);

impl OpenDigests {
    /// Adds an event to the digest of an integration, and begins one if none waits.
    pub(super) fn add(
        &self,
        write: &mut Write<'_>,
        id: IntegrationId,
        minutes: u16,
        event: &OutboxEvent,
    ) -> storage::Result<()> {
        let now = now_ms();
        let mut delivery = match self.waiting(write, id, now)? {
            Some(waiting) => waiting,
            None => {
                let due_at = now.saturating_add(i64::from(minutes) * MINUTE_MS);
                let digest = Digest::new(event.created_at);
                let begun = OutboxEvent {
                    id: 0,
                    event_id: Uuid::new_v4(),
                    event: DIGEST.to_owned(),
                    // It is tried for as long as an event of this time.
                    created_at: due_at,
                    payload: digest.to_payload(),
                    summary: String::new(),
                    channel: None,
                    addresses: Default::default(),
                };
                let new = DeliveryId(write.next_id::<Delivery>()?);
                Delivery { due_at, ..new_delivery(new, Recipient::Integration(id), &begun) }
            }
        };
        let mut digest = Digest::read(&delivery.payload).unwrap_or_else(|| Digest::new(event.created_at));
        digest.add(&event.payload, &event.summary);
        (delivery.payload, delivery.summary) = (digest.to_payload(), digest.text());
        self.0.lock().insert(id, delivery.id);
        write.put(&delivery)
    }

    /// Returns the digest of an integration that takes further events. It is looked for in the store after a start, and when
    /// the last one was sent.
    fn waiting(&self, write: &Write<'_>, id: IntegrationId, now: i64) -> storage::Result<Option<Delivery>> {
        let is_open = |it: &Delivery| {
            it.to == Recipient::Integration(id)
                && it.event == DIGEST
                && it.n_attempts == 0
                && it.dead_at.is_none()
                && it.due_at > now + CLOSED_BEFORE_MS
        };
        let known = self.0.lock().get(&id).copied();
        if let Some(known) = known
            && let Some(delivery) = write.get::<Delivery>(known.0)?.filter(is_open)
        {
            return Ok(Some(delivery));
        }
        let stored = write.by::<Delivery>("integration", id.0.to_be_bytes())?;
        Ok(stored.into_iter().find(is_open))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{models, write};

    fn event(summary: &str) -> OutboxEvent {
        OutboxEvent {
            id: 0,
            event_id: Uuid::from_u128(1),
            event: "channel_start".to_owned(),
            created_at: 1_000,
            payload: r#"{"event_type":"channel_start"}"#.to_owned(),
            summary: summary.to_owned(),
            channel: None,
            addresses: Default::default(),
        }
    }

    #[test]
    fn events_gather_in_one_delivery_until_its_time() {
        let (models, digests) = (models(&[]), std::sync::Arc::new(OpenDigests::default()));
        let add = |digests: &std::sync::Arc<OpenDigests>, id: u32, summary: &'static str| {
            let digests = digests.clone();
            write(&models, move |write| digests.add(write, IntegrationId(id), 10, &event(summary)));
        };
        let all = || models.store.collection::<Delivery>().all().unwrap();
        add(&digests, 1, "One.");
        add(&digests, 1, "Two.");
        add(&digests, 2, "Other.");
        // After a restart, the one that waits is found again.
        add(&std::sync::Arc::new(OpenDigests::default()), 1, "Three.");
        let found = all();
        let texts: Vec<_> = found.iter().map(|it| (it.to, it.summary.as_str())).collect();
        let of = |id| Recipient::Integration(IntegrationId(id));
        assert_eq!(texts, [(of(1), "3 events:\n- One.\n- Two.\n- Three."), (of(2), "Other.")]);
        assert!(found.iter().all(|it| it.due_at > now_ms() + 9 * MINUTE_MS && it.event == DIGEST));
        // One whose time has come takes nothing more.
        let due = Delivery { due_at: now_ms(), ..found[0].clone() };
        write(&models, move |write| write.put(&due));
        add(&digests, 1, "Four.");
        assert_eq!(all().iter().filter(|it| it.to == of(1)).count(), 2);
    }
}
