//! What is known of the deliveries to one integration or one plugin, in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::ids::DeliveryId;
use domain::integration::{DEAD_MAX, DEAD_MS_MAX, Delivery, DeliveryQueue, NextDelivery, Recipient};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::client::ClientCache;

pub(super) struct RecipientQueue {
    pub(super) id: Recipient,
    state: Mutex<State>,
    /// Wakes the worker.
    pub(super) wake: Notify,
    /// The connections to a webhook.
    pub(super) client: ClientCache,
}

struct State {
    queue: DeliveryQueue,
    /// Dead letters, and when each became one.
    dead: BTreeMap<DeliveryId, i64>,
    /// No attempt begins before this moment.
    not_before: Instant,
}

impl RecipientQueue {
    pub(super) fn new(id: Recipient, parallel: u8) -> Self {
        let (queue, not_before) = (DeliveryQueue::new(parallel), Instant::now());
        let state = State { queue, dead: BTreeMap::new(), not_before };
        Self { id, state: Mutex::new(state), wake: Notify::new(), client: ClientCache::default() }
    }

    /// Returns how many wait, how many of these are attempted now, and how many dead letters there are.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let state = self.state.lock();
        (state.queue.len(), state.queue.n_running(), state.dead.len())
    }

    /// Takes a record as it is in the store now.
    pub(super) fn set(&self, delivery: &Delivery) {
        let mut state = self.state.lock();
        match delivery.dead_at {
            Some(dead_at) => {
                state.queue.remove(delivery.id);
                state.dead.insert(delivery.id, dead_at);
            }
            None => {
                state.dead.remove(&delivery.id);
                state.queue.add(delivery.id, delivery.order(), delivery.due_at);
                self.wake.notify_one();
            }
        }
    }

    /// Forgets a delivery that was removed from the store.
    pub(super) fn remove(&self, id: DeliveryId) {
        let mut state = self.state.lock();
        state.dead.remove(&id);
        state.queue.remove(id);
    }

    /// Returns whether a delivery is attempted now.
    pub(super) fn is_running(&self, id: DeliveryId) -> bool {
        self.state.lock().queue.is_running(id)
    }

    /// Forgets all deliveries but these.
    pub(super) fn retain(&self, is_there: impl Fn(DeliveryId) -> bool) {
        let mut state = self.state.lock();
        state.dead.retain(|id, _| is_there(*id));
        let gone: Vec<_> = state.queue.ids().filter(|it| !is_there(*it)).collect();
        gone.into_iter().for_each(|it| state.queue.remove(it));
    }

    pub(super) fn set_parallel(&self, parallel: u8) {
        self.state.lock().queue.set_parallel(parallel);
        self.wake.notify_one();
    }

    pub(super) fn forget_running(&self) {
        self.state.lock().queue.forget_running();
    }

    /// Returns what to attempt next.
    pub(super) fn next(&self, now: i64) -> NextDelivery {
        self.state.lock().queue.next(now)
    }

    /// Lets no attempt begin until this time has passed.
    pub(super) fn rest(&self, pause: Duration) {
        let mut state = self.state.lock();
        state.not_before = state.not_before.max(Instant::now() + pause);
    }

    /// Returns when the next attempt may begin.
    pub(super) fn not_before(&self) -> Instant {
        self.state.lock().not_before
    }

    /// Takes the end of an attempt: the delivery is gone, waits, or is dead.
    pub(super) fn ended(&self, id: DeliveryId, delivery: Option<&Delivery>) {
        let mut state = self.state.lock();
        match delivery {
            Some(it) if it.dead_at.is_none() => state.queue.ended(id, Some(it.due_at)),
            _ => state.queue.ended(id, None),
        }
        if let Some(dead_at) = delivery.and_then(|it| it.dead_at) {
            state.dead.insert(id, dead_at);
        }
        self.wake.notify_one();
    }

    /// Returns the oldest deliveries beyond the limit, which no longer wait.
    pub(super) fn take_overflow(&self) -> Vec<DeliveryId> {
        self.state.lock().queue.take_overflow()
    }

    /// Returns the oldest dead letters beyond the limit.
    pub(super) fn dead_beyond_limit(&self) -> Vec<DeliveryId> {
        let state = self.state.lock();
        let n_beyond = state.dead.len().saturating_sub(DEAD_MAX);
        state.dead.keys().take(n_beyond).copied().collect()
    }

    /// Returns the dead letters that are too old. Looks at all of them.
    pub(super) fn dead_too_old(&self, now: i64) -> Vec<DeliveryId> {
        let state = self.state.lock();
        let old = state.dead.iter().filter(|(_, at)| now.saturating_sub(**at) > DEAD_MS_MAX);
        old.map(|(id, _)| *id).collect()
    }

    /// Adds the ids of dead letters, of those that wait, or of all.
    pub(super) fn add_ids(&self, is_dead: Option<bool>, ids: &mut Vec<DeliveryId>) {
        let state = self.state.lock();
        if is_dead != Some(false) {
            ids.extend(state.dead.keys());
        }
        if is_dead != Some(true) {
            ids.extend(state.queue.ids());
        }
    }
}
