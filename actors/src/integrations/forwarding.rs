//! Events of nodes of a cluster that do not deliver, on their way to the node that does.
//!
//! ```text
//! event ─► OutboxEvent ─┬─► the other node: a delivery for everybody who wants it ─► removed here
//!  delivery of before ──┘   (or this node, if it delivers from now on)
//! ```
//!
//! A part that was not answered is sent again. The node that delivers remembers what it took last, so that this makes no
//! second delivery as long as it runs. After that, the ids of events and runs are the same.

use std::sync::Arc;

use domain::ids::DeliveryId;
use domain::integration::{Delivery, Integration, OutboxEvent, PassedEvents, Recipient};
use domain::plugin::Plugin;
use media::spawn_blocking;
use storage::Write;
use tracing::warn;

use super::error::IntegrationError;
use super::state::{Integrations, IntegrationsState, Running};

/// Maximum number of events and deliveries that are passed on together.
const PASSED_MAX: usize = 256;
/// They are not passed on together beyond this size, in bytes.
const PASSED_BYTES_MAX: usize = 1 << 20;
impl Integrations {
    /// Returns the oldest events and deliveries of this node, for the node that delivers. Deliveries that are attempted now
    /// are left out.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn to_pass_on(&self) -> Result<PassedEvents, IntegrationError> {
        self.running()?;
        let shared = self.shared.clone();
        let read = spawn_blocking(move || match shared.running.get() {
            Some(running) => running.to_pass_on(),
            None => Ok(PassedEvents::default()),
        });
        Ok(read.await.map_err(|_| storage::Error::Panicked)??)
    }

    /// Removes what another node has taken.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn passed_on(&self, passed: PassedEvents) -> Result<(), IntegrationError> {
        let removing = self.running()?.models.store.write(move |write| {
            passed.events.iter().try_for_each(|it| write.remove::<OutboxEvent>(it.id).map(drop))?;
            passed.deliveries.iter().try_for_each(|it| write.remove::<Delivery>(it.id.0).map(drop))
        });
        Ok(removing.await?)
    }

    /// Takes the events and deliveries of another node. When this returns, they are stored.
    ///
    /// # Errors
    /// The store cannot be written, or this node does not deliver.
    pub async fn take(&self, passed: PassedEvents) -> Result<(), IntegrationError> {
        let running = self.running()?;
        let passed = Arc::new(running.new_of(passed));
        let (outbox, taking, store) =
            (self.shared.outbox.clone(), passed.clone(), running.models.store.clone());
        let done = running.models.store.write(move |write| {
            // Otherwise they would be passed on again, in a circle.
            if !store.writes_shared() {
                return Err(storage::Error::NotWriter);
            }
            taking.events.iter().try_for_each(|it| outbox.deliver(write, it))?;
            taking.deliveries.iter().try_for_each(|it| take_delivery(write, it))
        });
        done.await?;
        let mut taken = running.taken.lock();
        passed.events.iter().for_each(|it| taken.add(it.event_id));
        passed.deliveries.iter().for_each(|it| taken.add(it.run_id()));
        Ok(())
    }
}

impl Running {
    /// Reads the oldest events and deliveries. Blocks.
    fn to_pass_on(&self) -> storage::Result<PassedEvents> {
        let (mut passed, mut n_bytes) = (PassedEvents::default(), 0);
        let events = self.models.store.collection::<OutboxEvent>();
        for id in events.ids() {
            if passed.len() >= PASSED_MAX || n_bytes >= PASSED_BYTES_MAX {
                return Ok(passed);
            }
            if let Some(event) = events.get(id)? {
                n_bytes += event.payload.len() + event.summary.len();
                passed.events.push(event);
            }
        }
        let deliveries = self.models.store.collection::<Delivery>();
        for id in deliveries.ids() {
            if passed.len() >= PASSED_MAX || n_bytes >= PASSED_BYTES_MAX {
                break;
            }
            let is_running = self.queues.lock().values().any(|it| it.is_running(DeliveryId(id)));
            if let Some(delivery) = deliveries.get(id)?.filter(|_| !is_running) {
                n_bytes += delivery.payload.len() + delivery.summary.len();
                passed.deliveries.push(delivery);
            }
        }
        Ok(passed)
    }

    /// Returns what this node has not taken already.
    fn new_of(&self, mut passed: PassedEvents) -> PassedEvents {
        let taken = self.taken.lock();
        passed.events.retain(|it| !taken.contains(it.event_id));
        passed.deliveries.retain(|it| !taken.contains(it.run_id()));
        passed
    }
}

impl IntegrationsState {
    /// Makes deliveries of the events that waited for another node: this one delivers now.
    pub(super) async fn deliver_own(&self, running: &Running) {
        let store = &running.models.store;
        let events = store.collection::<OutboxEvent>().ids();
        if events.is_empty() {
            return;
        }
        let outbox = self.outbox.clone();
        let delivering = store.write(move |write| {
            for id in events {
                let Some(event) = write.get::<OutboxEvent>(id)? else { continue };
                outbox.deliver(write, &event)?;
                write.remove::<OutboxEvent>(id)?;
            }
            Ok::<_, storage::Error>(())
        });
        if let Err(cause) = delivering.await {
            warn!("failed to deliver events of this node, which wait for the next start: {cause}");
        }
    }
}

/// Stores a delivery of another node, unless its integration or plugin was deleted.
fn take_delivery(write: &mut Write<'_>, delivery: &Delivery) -> storage::Result<()> {
    let is_wanted = match delivery.to {
        Recipient::Integration(id) => write.get::<Integration>(id.0)?.is_some(),
        Recipient::Plugin(id) => write.get::<Plugin>(id)?.is_some(),
    };
    if !is_wanted {
        return Ok(());
    }
    let id = DeliveryId(write.next_id::<Delivery>()?);
    write.put(&Delivery { id, passed_run: Some(delivery.run_id()), ..delivery.clone() })
}
