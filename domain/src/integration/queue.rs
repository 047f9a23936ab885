//! The order in which the deliveries of one integration are attempted.
//!
//! With one attempt at a time all deliveries stay in the order of their events. With several at a time those of each
//! channel do, and those without a channel.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::ids::DeliveryId;

/// Maximum number of deliveries that wait for one integration. Beyond it the oldest ones become dead letters.
pub const WAITING_MAX: usize = 10_000;
/// Maximum number of dead letters of one integration. Beyond it the oldest ones are deleted.
pub const DEAD_MAX: usize = 10_000;
/// Dead letters are deleted after this time, in milliseconds.
pub const DEAD_MS_MAX: i64 = 30 * 86_400_000;
/// Maximum number of attempts at a time that can be set.
pub const PARALLEL_MAX: u8 = 8;

/// The deliveries that wait for one integration.
#[derive(Debug)]
pub struct DeliveryQueue {
    waiting: BTreeMap<DeliveryId, Waiting>,
    n_running: usize,
    parallel: usize,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    channel: Option<Uuid>,
    due_at: i64,
    is_running: bool,
}

/// The next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextDelivery {
    /// Attempt this one. It counts as running from now on.
    Attempt(DeliveryId),
    /// Ask again at this time, in milliseconds since 1970, or after a change.
    WaitUntil(i64),
    /// Ask again after a change.
    Wait,
}

impl DeliveryQueue {
    pub fn new(parallel: u8) -> Self {
        let parallel = usize::from(parallel.clamp(1, PARALLEL_MAX));
        Self { waiting: BTreeMap::new(), n_running: 0, parallel }
    }

    /// Sets how many attempts are made at a time.
    pub fn set_parallel(&mut self, parallel: u8) {
        self.parallel = usize::from(parallel.clamp(1, PARALLEL_MAX));
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns how many are attempted now.
    pub fn n_running(&self) -> usize {
        self.n_running
    }

    /// Iterates over all deliveries, oldest first.
    pub fn ids(&self) -> impl Iterator<Item = DeliveryId> {
        self.waiting.keys().copied()
    }

    /// Forgets which deliveries are attempted, after their attempts were lost.
    pub fn forget_running(&mut self) {
        self.waiting.values_mut().for_each(|it| it.is_running = false);
        self.n_running = 0;
    }

    /// Adds a delivery. Ids grow with the order of events.
    pub fn add(&mut self, id: DeliveryId, channel: Option<Uuid>, due_at: i64) {
        self.waiting.entry(id).or_insert(Waiting { channel, due_at, is_running: false });
    }

    /// Returns the oldest deliveries beyond [`WAITING_MAX`] and removes them. Those that are attempted now stay.
    pub fn take_overflow(&mut self) -> Vec<DeliveryId> {
        let n_beyond = self.waiting.len().saturating_sub(WAITING_MAX);
        let oldest = self.waiting.iter().filter(|it| !it.1.is_running).map(|it| *it.0);
        let oldest: Vec<DeliveryId> = oldest.take(n_beyond).collect();
        for id in &oldest {
            self.waiting.remove(id);
        }
        oldest
    }

    /// Returns the next delivery to attempt.
    pub fn next(&mut self, now: i64) -> NextDelivery {
        if self.n_running >= self.parallel {
            return NextDelivery::Wait;
        }
        let (mut blocked, mut earliest) = (BTreeSet::new(), None);
        for (id, waiting) in &mut self.waiting {
            // One at a time means that nothing overtakes anything.
            let order = if self.parallel == 1 { None } else { waiting.channel };
            if !blocked.insert(order) || waiting.is_running {
                continue;
            }
            if waiting.due_at <= now {
                waiting.is_running = true;
                self.n_running += 1;
                return NextDelivery::Attempt(*id);
            }
            earliest = Some(earliest.map_or(waiting.due_at, |it: i64| it.min(waiting.due_at)));
            if self.parallel == 1 {
                break;
            }
        }
        earliest.map_or(NextDelivery::Wait, NextDelivery::WaitUntil)
    }

    /// Takes the end of an attempt: the delivery is removed, or due again at this time.
    pub fn ended(&mut self, id: DeliveryId, due_at: Option<i64>) {
        let Some(waiting) = self.waiting.get_mut(&id).filter(|it| it.is_running) else { return };
        self.n_running -= 1;
        match due_at {
            Some(due_at) => (waiting.is_running, waiting.due_at) = (false, due_at),
            None => {
                self.waiting.remove(&id);
            }
        }
    }

    /// Removes a delivery that an admin deleted. One that is attempted now stays until its attempt ends.
    pub fn remove(&mut self, id: DeliveryId) {
        if self.waiting.get(&id).is_some_and(|it| !it.is_running) {
            self.waiting.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_queue_that_is_too_long_loses_its_oldest_deliveries() {
        let mut queue = DeliveryQueue::new(1);
        for id in 0..WAITING_MAX as u32 {
            queue.add(DeliveryId(id), None, 0);
        }
        assert_eq!(queue.next(0), NextDelivery::Attempt(DeliveryId(0)));
        assert!(queue.take_overflow().is_empty());
        queue.add(DeliveryId(WAITING_MAX as u32), None, 0);
        // The one that is attempted stays.
        assert_eq!(queue.take_overflow(), [DeliveryId(1)]);
        assert_eq!(queue.len(), WAITING_MAX);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Add {
            channel: Option<u8>,
        },
        Next,
        /// The n-th attempt that runs ends, and the delivery is removed or due again after this time.
        End {
            n: usize,
            pause: Option<i64>,
        },
        Pass {
            time: i64,
        },
        Delete {
            n: usize,
        },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => proptest::option::of(0..3_u8).prop_map(|channel| Step::Add { channel }),
            4 => Just(Step::Next),
            3 => (0..8_usize, proptest::option::of(0..50_i64)).prop_map(|(n, pause)| Step::End { n, pause }),
            1 => (0..60_i64).prop_map(|time| Step::Pass { time }),
            1 => (0..20_usize).prop_map(|n| Step::Delete { n }),
        ];
        proptest::collection::vec(step, 1..200)
    }

    proptest! {
        /// Against a model that knows only the promises: an attempt is due, nothing of its order stands before it, and no more
        /// run than allowed; nothing is lost, and what is due and free is attempted.
        #[test]
        fn each_delivery_is_attempted_in_order_and_none_is_lost(steps in steps(), parallel in 1..4_u8) {
            let mut queue = DeliveryQueue::new(parallel);
            // Deliveries that are not removed: their order, when they are due, and whether they run.
            let mut all: BTreeMap<u32, (Option<u8>, i64, bool)> = BTreeMap::new();
            let (mut now, mut next_id) = (0, 0);
            let order = |it: Option<u8>| if parallel == 1 { None } else { it };
            for step in steps {
                match step {
                    Step::Add { channel } => {
                        queue.add(DeliveryId(next_id), channel.map(|it| Uuid::from_u128(it.into())), now);
                        all.insert(next_id, (channel, now, false));
                        next_id += 1;
                    }
                    Step::Next => {
                        let n_running = all.values().filter(|it| it.2).count();
                        let is_first = |id: u32| {
                            let own = order(all[&id].0);
                            !all.range(..id).any(|it| order(it.1.0) == own) && !all[&id].2
                        };
                        let free: Vec<u32> = match n_running < usize::from(parallel) {
                            true => all.keys().copied().filter(|it| is_first(*it)).collect(),
                            false => Vec::new(),
                        };
                        let due = free.iter().copied().find(|it| all[it].1 <= now);
                        let expected = match (due, free.iter().map(|it| all[it].1).min()) {
                            (Some(id), _) => NextDelivery::Attempt(DeliveryId(id)),
                            (None, Some(at)) => NextDelivery::WaitUntil(at),
                            (None, None) => NextDelivery::Wait,
                        };
                        prop_assert_eq!(queue.next(now), expected);
                        if let Some(running) = due.and_then(|it| all.get_mut(&it)) {
                            running.2 = true;
                        }
                    }
                    Step::End { n, pause } => {
                        let Some(id) = all.iter().filter(|it| it.1.2).map(|it| *it.0).nth(n) else { continue };
                        queue.ended(DeliveryId(id), pause.map(|it| now + it));
                        match pause {
                            Some(pause) => all.insert(id, (all[&id].0, now + pause, false)),
                            None => all.remove(&id),
                        };
                    }
                    Step::Pass { time } => now += time,
                    Step::Delete { n } => {
                        let Some(id) = all.keys().copied().nth(n) else { continue };
                        queue.remove(DeliveryId(id));
                        if !all[&id].2 {
                            all.remove(&id);
                        }
                    }
                }
                prop_assert_eq!(queue.len(), all.len());
            }
        }
    }
}
