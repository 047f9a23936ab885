//! The event bus.
//!
//! Emitting an event never waits. The bus keeps the newest [`HISTORY_MAX`] events and passes each on to its
//! subscribers. A subscriber that falls behind loses the oldest events and learns how many.

mod actor;
mod causes;
mod message;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::actor::{Actor, Arguments};
pub(crate) use self::causes::account_full;
pub(crate) use self::message::Message;
use domain::event::Event;
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio::time::Instant;
use uuid::Uuid;

use crate::ask::Address;
use crate::integrations::Outbox;

/// Maximum number of events in the history.
pub(crate) const HISTORY_MAX: usize = 200;

/// Maximum number of events that a subscriber may fall behind before it loses the oldest.
const SUBSCRIBER_LAG_MAX: usize = 256;

/// Pause between two events of one name for the same cause, of those that are emitted rarely.
const PACE: Duration = Duration::from_secs(300);

/// Maximum number of causes for which such events are emitted in this time.
const PACED_MAX: usize = 1_000;

/// An event with its number since the start. The first number is 1; no number is used twice.
pub type NumberedEvent = (u64, Arc<Event>);

/// The state that outlives the actor: the recent events and the channel to subscribers.
pub(crate) struct Bus {
    history: Mutex<VecDeque<NumberedEvent>>,
    sender: broadcast::Sender<Arc<Event>>,
    /// When an event of this name and cause was last emitted, of those that are rare. Bounded by [`PACED_MAX`].
    paced: Mutex<HashMap<(&'static str, String), Instant>>,
}

impl Bus {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            history: Mutex::new(VecDeque::with_capacity(HISTORY_MAX)),
            sender: broadcast::Sender::new(SUBSCRIBER_LAG_MAX),
            paced: Mutex::default(),
        })
    }
}

/// The handle of the events actor.
#[derive(Clone)]
pub struct Events {
    address: Address<Message>,
    bus: Arc<Bus>,
    outbox: Outbox,
}

/// An event that is stored for integrations in the write of the change that it reports.
#[derive(Clone)]
pub(crate) struct StoredEvent {
    pub(crate) events: Events,
    pub(crate) event: Event,
}

impl StoredEvent {
    /// Adds the event to a write.
    ///
    /// # Errors
    /// As of [`storage::Write::put`].
    pub(crate) fn enqueue(&self, write: &mut storage::Write<'_>) -> storage::Result<()> {
        self.events.outbox.enqueue(write, &self.event)
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events(…)")
    }
}

impl Events {
    pub(crate) fn new(address: Address<Message>, bus: Arc<Bus>, outbox: Outbox) -> Self {
        Self { address, bus, outbox }
    }

    /// Returns events that nobody hears, for a load without a gateway.
    #[cfg(feature = "testing")]
    pub(crate) fn unheard() -> Self {
        Self::new(Address::new(), Bus::new(), Outbox::default())
    }

    /// Emits an event without waiting. Integrations get it once it is in the store, soon after.
    pub fn emit(&self, event: Event) {
        let event = Arc::new(event);
        self.outbox.offer(&event);
        self.address.tell(Message::Emit(event));
    }

    /// Emits an event, unless one of its name was emitted for the same cause in the last minutes.
    pub(crate) fn emit_paced(&self, cause: String, event: Event) {
        let now = Instant::now();
        {
            let mut paced = self.bus.paced.lock();
            paced.retain(|_, at| now.duration_since(*at) < PACE);
            // So many causes at a time are one, of which somebody has heard already.
            if paced.len() >= PACED_MAX || paced.contains_key(&(event.body.name(), cause.clone())) {
                return;
            }
            paced.insert((event.body.name(), cause), now);
        }
        self.emit(event);
    }

    /// Emits an event that every node of a cluster sees, with an id that is the same on all of them. Integrations get it
    /// from the node that delivers only.
    pub(crate) fn emit_seen_by_all(&self, event_id: Uuid, event: Event) {
        let event = Arc::new(event);
        self.outbox.offer_seen_by_all(event_id, &event);
        self.address.tell(Message::Emit(event));
    }

    /// Emits an event that was stored for integrations as a [`StoredEvent`], after its write was committed.
    pub(crate) fn announce(&self, event: Event) {
        self.address.tell(Message::Emit(Arc::new(event)));
    }

    /// Subscribes to all events from now on. A subscriber that lags more than 256 events behind loses the oldest.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.bus.sender.subscribe()
    }

    /// Returns the newest events, oldest first; at most 200.
    pub fn recent(&self) -> Vec<Arc<Event>> {
        self.bus.history.lock().iter().map(|it| it.1.clone()).collect()
    }

    /// Returns the newest events with their numbers, newest first.
    pub fn history(&self) -> Vec<NumberedEvent> {
        self.bus.history.lock().iter().rev().cloned().collect()
    }
}
