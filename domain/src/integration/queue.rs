//! The order in which the deliveries to one integration or one plugin are attempted.
//!
//! With one attempt at a time all deliveries stay in the order of their events. With several at a time those of each
//! channel and of each schedule do, and those of events without a channel.

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

/// The deliveries that wait for one integration or plugin.
#[derive(Debug)]
pub struct DeliveryQueue {
    waiting: BTreeMap<DeliveryId, Waiting>,
    n_running: usize,
    parallel: usize,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    order: Option<Uuid>,
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

    /// Returns whether a delivery is attempted now.
    pub fn is_running(&self, id: DeliveryId) -> bool {
        self.waiting.get(&id).is_some_and(|it| it.is_running)
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

    /// Adds a delivery, which keeps the [order](super::Delivery::order) of those with the same one. Ids grow with the order
    /// of events.
    pub fn add(&mut self, id: DeliveryId, order: Option<Uuid>, due_at: i64) {
        self.waiting.entry(id).or_insert(Waiting { order, due_at, is_running: false });
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
            let order = if self.parallel == 1 { None } else { waiting.order };
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
    use crate::integration::{ActionRun, AfterAttempt, Delivery, Outcome, Recipient};

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

    /// The fate of the runs of a plugin.
    #[derive(Debug, Clone)]
    enum PluginStep {
        /// An event of a channel, an event without one, or a time of a schedule.
        Add { channel: Option<u8>, schedule: Option<u8> },
        /// The plugin begins what it can.
        Begin,
        /// The n-th run returns, or fails.
        End { n: usize, is_success: bool },
        /// The process ends by itself, and with it all runs.
        Crash,
        /// An admin or the gateway ends the process.
        Stop,
        /// The gateway was killed: what ran is read from the store again.
        Kill,
    }

    fn plugin_steps() -> impl Strategy<Value = Vec<PluginStep>> {
        let of = || proptest::option::of(0..2_u8);
        let step = prop_oneof![
            4 => (of(), of()).prop_map(|(channel, schedule)| PluginStep::Add { channel, schedule }),
            5 => Just(PluginStep::Begin),
            4 => (0..4_usize, any::<bool>()).prop_map(|(n, is_success)| PluginStep::End { n, is_success }),
            1 => Just(PluginStep::Crash),
            1 => Just(PluginStep::Stop),
            1 => Just(PluginStep::Kill),
        ];
        proptest::collection::vec(step, 1..150)
    }

    /// The runs of a plugin: the records in the store, the queue, and what was begun in which order.
    struct PluginModel {
        parallel: u8,
        queue: DeliveryQueue,
        stored: BTreeMap<DeliveryId, Delivery>,
        running: Vec<DeliveryId>,
        /// Every beginning of a run, by its order.
        begun: BTreeMap<Option<Uuid>, Vec<DeliveryId>>,
        n_dead: usize,
    }

    impl PluginModel {
        fn add(&mut self, id: u32, channel: Option<u8>, schedule: Option<u8>) {
            let schedule = schedule.map(|it| it.to_string());
            let delivery = Delivery {
                id: DeliveryId(id),
                to: Recipient::Plugin(1),
                event_id: Uuid::from_u128(id.into()),
                event: "m3u_refresh".to_owned(),
                created_at: 0,
                payload: "{}".to_owned(),
                summary: String::new(),
                channel: channel.map(|it| Uuid::from_u128(it.into())),
                n_attempts: 0,
                due_at: 0,
                reason: None,
                dead_at: None,
                run: Some(ActionRun { action: "sync".to_owned(), schedule }),
                n_crashes: 0,
                passed_run: None,
                addresses: BTreeMap::new(),
            };
            self.queue.add(delivery.id, delivery.order(), 0);
            self.stored.insert(delivery.id, delivery);
        }

        /// Begins a run if one is due. Returns whether it did.
        fn begin(&mut self) -> bool {
            let NextDelivery::Attempt(id) = self.queue.next(0) else { return false };
            assert!(!self.running.contains(&id), "never twice at the same time");
            self.running.push(id);
            assert!(self.running.len() <= usize::from(self.parallel), "no more than allowed");
            let order = if self.parallel == 1 { None } else { self.stored[&id].order() };
            self.begun.entry(order).or_default().push(id);
            true
        }

        fn end(&mut self, id: DeliveryId, outcome: Outcome) {
            self.running.retain(|it| *it != id);
            let delivery = self.stored.get_mut(&id).unwrap();
            let after = delivery.after_attempt(outcome, 0, 60, 0.5);
            match after {
                AfterAttempt::Waits => self.queue.ended(id, Some(delivery.due_at)),
                AfterAttempt::Removed => self.queue.ended(id, None),
                AfterAttempt::Dead => {
                    self.n_dead += 1;
                    self.queue.ended(id, None);
                }
            }
            if after == AfterAttempt::Removed {
                self.stored.remove(&id);
            }
        }

        fn end_all(&mut self, outcome: &Outcome) {
            for id in std::mem::take(&mut self.running) {
                self.end(id, outcome.clone());
            }
        }
    }

    proptest! {
        /// However processes and gateways end: every run ends once or is a dead letter, one that crashed was repeated
        /// once, and none overtakes an earlier one of its order.
        #[test]
        fn a_plugin_runs_each_delivery_in_order_and_repeats_a_crashed_one_once(
            steps in plugin_steps(), parallel in 1..4_u8
        ) {
            let mut it = PluginModel {
                parallel, queue: DeliveryQueue::new(parallel), stored: BTreeMap::new(), running: Vec::new(),
                begun: BTreeMap::new(), n_dead: 0,
            };
            let (mut n_added, mut n_ended) = (0, 0);
            for step in steps {
                match step {
                    PluginStep::Add { channel, schedule } => {
                        it.add(n_added, channel, schedule);
                        n_added += 1;
                    }
                    PluginStep::Begin => while it.begin() {},
                    PluginStep::End { n, is_success } => {
                        let Some(id) = it.running.get(n).copied() else { continue };
                        let failed = Outcome::Never { reason: "it failed".to_owned() };
                        it.end(id, if is_success { Outcome::Delivered } else { failed });
                        n_ended += usize::from(is_success);
                    }
                    PluginStep::Crash => it.end_all(&Outcome::Crashed { reason: "it crashed".to_owned() }),
                    PluginStep::Stop => it.end_all(&Outcome::Interrupted { reason: "it was stopped".to_owned() }),
                    PluginStep::Kill => {
                        it.running.clear();
                        it.queue = DeliveryQueue::new(parallel);
                        for delivery in it.stored.values().filter(|it| it.dead_at.is_none()) {
                            it.queue.add(delivery.id, delivery.order(), delivery.due_at);
                        }
                    }
                }
                let is_repeated_once = |it: &Delivery| match it.n_crashes {
                    0 | 1 => true,
                    n => n == 2 && it.dead_at.is_some(),
                };
                prop_assert!(it.stored.values().all(is_repeated_once));
            }
            while it.begin() || !it.running.is_empty() {
                n_ended += it.running.len();
                it.end_all(&Outcome::Delivered);
            }
            prop_assert_eq!(n_ended + it.n_dead, n_added as usize, "none is lost");
            prop_assert!(it.queue.is_empty() && it.stored.len() == it.n_dead);
            for begun in it.begun.values() {
                prop_assert!(begun.is_sorted(), "{begun:?}");
            }
        }
    }
}
