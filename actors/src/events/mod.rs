//! One place where everything that happened arrives.
//!
//! Whoever knows tells; nobody waits. The bus keeps the newest [`HISTORY_MAX`] events and passes each on to whoever
//! subscribed. A subscriber that falls behind loses the oldest and is told how many.

mod actor;
mod message;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

pub(crate) use self::actor::{Actor, Arguments};
pub(crate) use self::message::Message;
use domain::event::Event;
use parking_lot::Mutex;
use tokio::sync::broadcast;

use crate::ask::Address;

/// Events kept for whoever looks later.
pub(crate) const HISTORY_MAX: usize = 200;

/// Events a subscriber may fall behind before it loses the oldest.
const SUBSCRIBER_LAG_MAX: usize = 256;

/// An event of the past, by its number since the start: the first is 1, and none is given twice.
pub type NumberedEvent = (u64, Arc<Event>);

/// What outlives the actor: the recent past, and the line to subscribers.
pub(crate) struct Bus {
    history: Mutex<VecDeque<NumberedEvent>>,
    line: broadcast::Sender<Arc<Event>>,
}

impl Bus {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            history: Mutex::new(VecDeque::with_capacity(HISTORY_MAX)),
            line: broadcast::Sender::new(SUBSCRIBER_LAG_MAX),
        })
    }
}

/// The door of the events actor.
#[derive(Clone)]
pub struct Events {
    address: Address<Message>,
    bus: Arc<Bus>,
}

impl Events {
    pub(crate) fn new(address: Address<Message>, bus: Arc<Bus>) -> Self {
        Self { address, bus }
    }

    /// Something happened. No answer, no wait.
    pub fn happened(&self, event: Event) {
        self.address.tell(Message::Happened(Arc::new(event)));
    }

    /// Every event from now on. Who lags more than 256 events behind loses the oldest.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.bus.line.subscribe()
    }

    /// The newest events, oldest first; at most 200.
    pub fn recent(&self) -> Vec<Arc<Event>> {
        self.bus.history.lock().iter().map(|it| it.1.clone()).collect()
    }

    /// The same with their numbers, newest first.
    pub fn history(&self) -> Vec<NumberedEvent> {
        self.bus.history.lock().iter().rev().cloned().collect()
    }
}
