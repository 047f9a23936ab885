//! Stores a delivery for each integration, and for each action of a plugin, that wants an event.
//!
//! An event that reports a change of the store is stored with that change, so that neither is ever without the other. All
//! other events go through the courier: a bounded queue, and a task that writes whatever waits there in one write. While
//! the disk writes, the next events gather.
//!
//! A node of a cluster that does not deliver stores the events themselves, and passes them on; see [`super::forwarding`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::event::Event;
use domain::ids::DeliveryId;
use domain::integration::{ActionRun, Delivery, Integration, OutboxEvent, Recipient};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use storage::{Table, View, Write};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;
use uuid::Uuid;

use super::digest::OpenDigests;
use super::new_delivery::new_delivery;
use super::plugins::PluginTargets;

/// Maximum number of events that wait for the disk.
pub(super) const WAITING_EVENTS_MAX: usize = 8_192;
/// Maximum number of events in one write.
const EVENTS_PER_WRITE: usize = 256;
/// Pause before a write is repeated that the store refused.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Maximum wait for the events that are left when the gateway stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of events that wait for the node that delivers. Further ones are lost.
pub(super) const PASSED_EVENTS_MAX: usize = 10_000;
/// Time for which a node keeps an event that every node sees: longer than it takes to notice that the node is lost that
/// delivers.
const SEEN_TIME: Duration = Duration::from_secs(45);
/// Maximum number of events that every node sees and that are kept.
const SEEN_MAX: usize = 64;

/// Where events are stored for integrations. Clones share it. Until deliveries start, it takes nothing.
#[derive(Clone, Default)]
pub(crate) struct Outbox {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    wanting: OnceLock<Wanting>,
    sender: Mutex<Option<mpsc::Sender<Identified>>>,
    n_lost: AtomicU64,
    /// Events that every node sees, and that this one has not delivered.
    seen: Mutex<VecDeque<(Instant, Identified)>>,
    /// Those of integrations that want several events as one message.
    digests: OpenDigests,
}

/// Those that may want an event.
struct Wanting {
    store: storage::Store,
    integrations: View<Table<Integration>>,
    plugins: PluginTargets,
    /// This node does not know who wants an event: it passes all on.
    is_edge: bool,
}

impl Wanting {
    /// Returns whether a target that wants an event gets whole addresses.
    fn trusts_any(&self, event: &str) -> bool {
        self.integrations.load().iter().any(|it| it.gets_addresses() && wants(it, event))
    }
}

/// An event with its id.
type Identified = (Uuid, Arc<Event>);

/// The task that stores events. Dropping it ends the task.
pub(crate) struct Courier {
    outbox: Outbox,
    task: AbortOnDropHandle<()>,
}

impl Outbox {
    /// Begins to store events. An edge node of a cluster has no integrations, and passes all events on.
    pub(crate) fn start(
        &self,
        store: storage::Store,
        integrations: View<Table<Integration>>,
        plugins: PluginTargets,
        is_edge: bool,
    ) -> Courier {
        // Fails at the second start, with the same integrations.
        let _ = self.inner.wanting.set(Wanting { store: store.clone(), integrations, plugins, is_edge });
        let (sender, events) = mpsc::channel(WAITING_EVENTS_MAX);
        *self.inner.sender.lock() = Some(sender);
        let task = AbortOnDropHandle::new(crate::tasks::spawn(carry(self.clone(), store, events)));
        Courier { outbox: self.clone(), task }
    }

    /// Takes an event that reports no change of the store. Never waits.
    pub(crate) fn offer(&self, event: &Arc<Event>) {
        self.offer_as(Uuid::new_v4(), event);
    }

    fn offer_as(&self, event_id: Uuid, event: &Arc<Event>) {
        if !self.is_wanted(event) {
            return;
        }
        let Some(sender) = self.inner.sender.lock().clone() else { return };
        if sender.try_send((event_id, event.clone())).is_err() {
            self.note_lost(1);
        }
    }

    /// Takes an event that every node of a cluster sees, under the same id. Only the node that delivers stores it; others
    /// keep it for a while, because that node may be lost. Never waits.
    pub(crate) fn offer_seen_by_all(&self, event_id: Uuid, event: &Arc<Event>) {
        // Locked first, so that an event is not kept after `offer_seen` has taken the others.
        let mut seen = self.inner.seen.lock();
        if self.inner.wanting.get().is_some_and(|it| it.store.writes_shared()) {
            return self.offer_as(event_id, event);
        }
        seen.retain(|it| it.0.elapsed() < SEEN_TIME);
        if seen.len() == SEEN_MAX {
            seen.pop_front();
        }
        seen.push_back((Instant::now(), (event_id, event.clone())));
    }

    /// Takes the events of the last time that every node has seen, because this node delivers now.
    pub(super) fn offer_seen(&self) {
        let seen = std::mem::take(&mut *self.inner.seen.lock());
        for (_, (event_id, event)) in seen.into_iter().filter(|it| it.0.elapsed() < SEEN_TIME) {
            self.offer_as(event_id, &event);
        }
    }

    fn note_lost(&self, n: u64) {
        let before = self.inner.n_lost.fetch_add(n, Ordering::Relaxed);
        let n_lost = before + n;
        // Logged at the first, and then rarely.
        if n_lost.checked_ilog2() != before.checked_ilog2() {
            warn!(n_lost, "too many events wait, so integrations do not get some of them");
        }
    }

    /// Adds the deliveries of an event to a write.
    ///
    /// # Errors
    /// As of [`Write::put`].
    pub(crate) fn enqueue(&self, write: &mut Write<'_>, event: &Event) -> storage::Result<()> {
        if self.is_wanted(event) { self.enqueue_as(write, Uuid::new_v4(), event) } else { Ok(()) }
    }

    /// Returns how many events were left out.
    pub(crate) fn n_lost(&self) -> u64 {
        self.inner.n_lost.load(Ordering::Relaxed)
    }

    fn is_wanted(&self, event: &Event) -> bool {
        let name = event.body.name();
        self.inner.wanting.get().is_some_and(|it| {
            it.is_edge
                || it.integrations.load().iter().any(|it| wants(it, name))
                || it.plugins.all().values().any(|it| it.wanting(name).next().is_some())
        })
    }

    fn enqueue_as(&self, write: &mut Write<'_>, event_id: Uuid, event: &Event) -> storage::Result<()> {
        let Some(wanting) = self.inner.wanting.get() else { return Ok(()) };
        let event = OutboxEvent {
            id: 0,
            event_id,
            event: event.body.name().to_owned(),
            created_at: event.at,
            payload: serde_json::to_string(&payload(event, event_id)).unwrap_or_default(),
            summary: event.body.summary(),
            channel: event.body.channel().map(|it| it.uuid),
            addresses: if wanting.trusts_any(event.body.name()) {
                event.body.addresses()
            } else {
                BTreeMap::new()
            },
        };
        if wanting.store.writes_shared() {
            return self.deliver(write, &event);
        }
        if wanting.store.collection::<OutboxEvent>().len() >= PASSED_EVENTS_MAX {
            self.note_lost(1);
            return Ok(());
        }
        let id = write.next_id::<OutboxEvent>()?;
        write.put(&OutboxEvent { id, ..event })
    }

    /// Adds a delivery of an event for everybody who wants it.
    pub(super) fn deliver(&self, write: &mut Write<'_>, event: &OutboxEvent) -> storage::Result<()> {
        let Some(wanting) = self.inner.wanting.get() else { return Ok(()) };
        let name = &*event.event;
        let (integrations, plugins) = (wanting.integrations.load(), wanting.plugins.all());
        for (integration, minutes) in integrations.iter().filter_map(|it| Some((it, it.digest_minutes?))) {
            if wants(integration, name) {
                self.inner.digests.add(write, integration.id, minutes, event)?;
            }
        }
        let to_integrations = integrations.iter().filter(|it| it.digest_minutes.is_none() && wants(it, name));
        let to_integrations =
            to_integrations.map(|it| (Recipient::Integration(it.id), None, it.gets_addresses()));
        let to_plugins = plugins.values().flat_map(|plugin| {
            plugin.wanting(name).map(|it| {
                let run = ActionRun { action: it.to_owned(), schedule: None };
                (Recipient::Plugin(plugin.id), Some(run), false)
            })
        });
        for (to, run, is_trusted) in to_integrations.chain(to_plugins) {
            let id = DeliveryId(write.next_id::<Delivery>()?);
            let addresses = if is_trusted { event.addresses.clone() } else { BTreeMap::new() };
            let delivery = Delivery { run, addresses, ..new_delivery(id, to, event) };
            write.put(&delivery)?;
        }
        Ok(())
    }
}

fn wants(integration: &Integration, event: &str) -> bool {
    integration.is_enabled && integration.subscription(event).is_some()
}

/// Returns the payload of an event: its keys, and its id.
pub(super) fn payload(event: &Event, event_id: Uuid) -> Map<String, Value> {
    let Ok(Value::Object(mut payload)) = serde_json::to_value(event) else { return Map::new() };
    payload.insert("event_id".to_owned(), event_id.to_string().into());
    payload
}

impl Courier {
    /// Takes no further events, and waits until those that it has are stored; for two seconds at most.
    pub(crate) async fn stop(self) {
        self.outbox.inner.sender.lock().take();
        if timeout(STOP_TIMEOUT, self.task).await.is_err() {
            warn!("some events could not be stored for integrations before the stop");
        }
    }
}

/// Stores events until nobody sends any more.
async fn carry(outbox: Outbox, store: storage::Store, mut events: mpsc::Receiver<Identified>) {
    let mut batch = Vec::new();
    while events.recv_many(&mut batch, EVENTS_PER_WRITE).await > 0 {
        let events: Arc<[Identified]> = std::mem::take(&mut batch).into();
        let mut has_failed = false;
        loop {
            let (outbox, events) = (outbox.clone(), events.clone());
            let written = store.write(move |write| {
                for (id, event) in &*events {
                    outbox.enqueue_as(write, *id, event)?;
                }
                Ok::<_, storage::Error>(())
            });
            match written.await {
                Ok(()) => break,
                Err(cause) => {
                    if !std::mem::replace(&mut has_failed, true) {
                        warn!("failed to store events for integrations, trying again: {cause}");
                    }
                    sleep(RETRY_DELAY).await;
                }
            }
        }
    }
}
