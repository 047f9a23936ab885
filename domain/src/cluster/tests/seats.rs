//! The seats of a user: single cases, and random orders with delays and unknown outcomes.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::cases::{Cluster, restart};
use super::engine::Engine;
use super::random::Random;
use crate::cluster::record::{
    BootId, ClusterRecord, NodeId, ProcessId, RecordKey, Revision, SeatEnd, SeatRecord,
};
use crate::cluster::rules::{ClusterRules, SEAT_RETURN};
use crate::cluster::seats::SeatRequest;
use crate::cluster::{BootTime, ClusterNode, NodeEffect, NodeInput, SwapOutcome};
use crate::ids::UserId;
use crate::limits::SeatRules;

const USER: UserId = UserId(5);
const KEY: RecordKey = RecordKey::Seats(USER);

fn request(limit: u32, device: u128, target: u128, now: BootTime) -> SeatRequest {
    SeatRequest {
        limit,
        device: Uuid::from_u128(device),
        target: Uuid::from_u128(target),
        rules: SeatRules::default(),
        shared: Arc::default(),
        until: now + Duration::from_secs(1),
    }
}

impl Cluster {
    /// Takes a seat at a limit of one. A number of a seat is also that of its node.
    fn take(&mut self, node: usize, seat: u64, device: u128, target: u128) {
        let request = request(1, device, target, self.now);
        self.on(node, NodeInput::TakeSeat { user: USER, seat, request });
    }

    /// Ends a session, and waits until its entry is removed.
    fn give_back_seat(&mut self, node: usize, seat: u64) {
        self.on(node, NodeInput::ReturnSeat { user: USER, seat });
        self.now = self.now + SEAT_RETURN;
        self.on(node, NodeInput::Tick);
    }

    /// Returns the effects since the last call, in words.
    fn told(&mut self) -> Vec<(usize, u64, &'static str)> {
        let told = |(node, effect): (usize, NodeEffect)| match effect {
            NodeEffect::Seated { seat, is_certain: true, .. } => Some((node, seat, "seated")),
            NodeEffect::Seated { seat, is_certain: false, .. } => {
                Some((node, seat, "seated without the engine"))
            }
            NodeEffect::NotSeated { seat, .. } => Some((node, seat, "full")),
            NodeEffect::EndSession { seat, why: SeatEnd::Replaced, .. } => Some((node, seat, "replaced")),
            NodeEffect::EndSession { seat, why: SeatEnd::OverLimit, .. } => {
                Some((node, seat, "over the limit"))
            }
            _ => None,
        };
        std::mem::take(&mut self.effects).into_iter().filter_map(told).collect()
    }

    fn sessions(&self) -> usize {
        sessions(&self.engine).sessions.len()
    }
}

fn sessions(engine: &Engine) -> SeatRecord {
    match engine.present(KEY).1.as_deref() {
        Some(ClusterRecord::Seats(it)) => it.clone(),
        _ => SeatRecord::default(),
    }
}

#[test]
fn a_limit_counts_over_all_nodes_and_a_seat_that_comes_free_in_time_is_given_to_the_next() {
    let mut cluster = Cluster::new(2);
    cluster.take(0, 1, 1, 1);
    cluster.take(1, 2, 2, 2);
    assert_eq!(cluster.told(), [(0, 1, "seated")]);
    cluster.wait(2);
    assert_eq!(cluster.told(), [(1, 2, "full")]);
    cluster.take(1, 3, 2, 2);
    cluster.give_back_seat(0, 1);
    assert_eq!(cluster.told(), [(1, 3, "seated")]);
    cluster.give_back_seat(1, 3);
    assert_eq!(cluster.sessions(), 0);
    assert!(cluster.nodes.iter().flatten().all(|it| it.seats(USER).is_none()));
}

#[test]
fn a_device_that_changes_the_channel_on_another_node_ends_its_session() {
    let mut cluster = Cluster::new(2);
    cluster.take(0, 1, 1, 1);
    cluster.take(1, 2, 1, 2);
    assert_eq!(cluster.told(), [(0, 1, "seated"), (1, 2, "seated"), (0, 1, "replaced")]);
    assert!(!cluster.nodes[0].as_ref().unwrap().seats(USER).unwrap().is_seated(1));
    cluster.give_back_seat(0, 1);
    assert_eq!(cluster.sessions(), 1);
}

#[test]
fn a_change_of_channel_on_one_node_is_one_write() {
    let mut cluster = Cluster::new(2);
    cluster.take(0, 1, 1, 1);
    let before = cluster.engine.present(KEY).0;
    cluster.on(0, NodeInput::ReturnSeat { user: USER, seat: 1 });
    cluster.take(0, 3, 1, 2);
    assert_eq!(cluster.told(), [(0, 1, "seated"), (0, 3, "seated")]);
    assert_eq!((cluster.sessions(), cluster.engine.present(KEY).0.0), (1, before.0 + 1));
}

#[test]
fn a_session_over_two_nodes_has_one_seat() {
    let mut cluster = Cluster::new(2);
    cluster.take(0, 1, 1, 1);
    cluster.take(1, 2, 1, 1);
    assert_eq!(cluster.told(), [(0, 1, "seated"), (1, 2, "seated")]);
    cluster.give_back_seat(0, 1);
    cluster.take(0, 3, 2, 1);
    cluster.wait(2);
    assert_eq!(cluster.told(), [(0, 3, "full")]);
}

#[test]
fn the_seats_of_a_lost_node_come_free() {
    let mut cluster = Cluster::new(2);
    cluster.take(0, 1, 1, 1);
    cluster.told();
    cluster.nodes[0] = None;
    cluster.wait(18);
    cluster.take(1, 2, 2, 2);
    cluster.wait(2);
    assert_eq!(cluster.told(), [(1, 2, "full")]);
    cluster.wait(5);
    cluster.take(1, 3, 2, 2);
    assert_eq!(cluster.told(), [(1, 3, "seated")]);
    assert_eq!(cluster.sessions(), 1);
}

#[test]
fn the_seats_of_a_process_that_was_handed_over_come_free() {
    let mut cluster = Cluster::new(2);
    cluster.take(0, 1, 1, 1);
    assert_eq!(cluster.told(), [(0, 1, "seated")]);
    restart(&mut cluster, &[]);
    cluster.wait(4);
    assert_eq!(cluster.sessions(), 0);
    cluster.take(1, 2, 2, 2);
    assert_eq!(cluster.told(), [(1, 2, "seated")]);
}

#[test]
fn sessions_that_the_engine_has_lost_are_written_again() {
    let mut cluster = Cluster::new(2);
    cluster.take(0, 1, 1, 1);
    cluster.engine.restart(cluster.engine.len(), 0);
    for node in 0..2 {
        cluster.on(node, NodeInput::EngineRestarted);
    }
    cluster.wait(5);
    assert_eq!(cluster.sessions(), 1);
    cluster.told();
    cluster.take(1, 2, 2, 2);
    cluster.wait(2);
    assert_eq!(cluster.told(), [(1, 2, "full")]);
}

#[test]
fn without_an_answer_of_the_engine_a_session_begins_after_2_s() {
    let now = BootTime(Duration::from_secs(1_000));
    let (boot, process) = (BootId(Uuid::nil()), ProcessId(1));
    let mut node = ClusterNode::new(NodeId(0), boot, process, ClusterRules::default(), now);
    let take = |seat, device| NodeInput::TakeSeat { user: USER, seat, request: request(1, device, 1, now) };
    let is_told = |it: &NodeEffect| matches!(it, NodeEffect::Seated { .. } | NodeEffect::NotSeated { .. });
    let mut told = node.on(take(1, 1), now);
    told.extend(node.on(take(2, 2), now));
    told.extend(node.on(NodeInput::Tick, now + Duration::from_millis(1_999)));
    assert!(!told.iter().any(is_told), "{told:?}");
    let mut told = node.on(NodeInput::Tick, now + Duration::from_secs(2));
    told.retain(is_told);
    // The own sessions of the node count in any case.
    let seated = NodeEffect::Seated { user: USER, seat: 1, is_certain: false };
    assert_eq!(told, [seated, NodeEffect::NotSeated { user: USER, seat: 2 }]);
}

#[test]
fn without_the_engine_a_device_gives_up_its_session_for_another_channel() {
    let now = BootTime(Duration::from_secs(1_000));
    let (boot, process) = (BootId(Uuid::nil()), ProcessId(1));
    let mut node = ClusterNode::new(NodeId(0), boot, process, ClusterRules::default(), now);
    let mut take = |seat, device, channel, at| {
        let request = request(1, device, channel, at);
        node.on(NodeInput::TakeSeat { user: USER, seat, request }, at);
        let mut told = node.on(NodeInput::Tick, at + Duration::from_secs(2));
        let is_told = |it: &NodeEffect| {
            matches!(
                it,
                NodeEffect::Seated { .. } | NodeEffect::NotSeated { .. } | NodeEffect::EndSession { .. }
            )
        };
        told.retain(is_told);
        told
    };
    let seated = |seat| NodeEffect::Seated { user: USER, seat, is_certain: false };
    assert_eq!(take(1, 1, 1, now), [seated(1)]);
    let at = now + Duration::from_secs(5);
    let ended = NodeEffect::EndSession { user: USER, seat: 1, why: SeatEnd::Replaced };
    assert_eq!(take(2, 1, 2, at), [seated(2), ended]);
    // Another device is refused.
    let at = now + Duration::from_secs(10);
    assert_eq!(take(3, 2, 3, at), [NodeEffect::NotSeated { user: USER, seat: 3 }]);
}

#[test]
fn an_entry_that_is_written_after_its_session_was_given_up_is_removed() {
    let mut cluster = Cluster::new(2);
    cluster.take(0, 1, 1, 1);
    let (_, late) = cluster.engine.present(KEY);
    cluster.give_back_seat(0, 1);
    assert!(cluster.nodes[0].as_ref().unwrap().seats(USER).is_none());
    let revision = cluster.engine.swap(KEY, None, late.clone().unwrap()).unwrap();
    for node in [1, 0] {
        let record = late.as_deref().cloned();
        cluster.on(node, NodeInput::Seen { key: KEY, revision, record });
    }
    assert_eq!(cluster.sessions(), 0);
}

/// Nodes whose requests take time, get lost, and are applied late.
struct Delayed {
    engine: Engine,
    nodes: Vec<ClusterNode>,
    /// The events to come, by time in milliseconds and order.
    queue: BTreeMap<(u64, u64), Event>,
    now: u64,
    n_events: u64,
    random: Random,
    /// The sessions that have begun, by node and seat, and whether each was confirmed.
    seated: BTreeMap<(usize, u64), bool>,
    n_uncertain: usize,
}

enum Event {
    Input(usize, NodeInput),
    /// A write arrives at the engine. `None`: its outcome does not arrive.
    Write {
        node: usize,
        key: RecordKey,
        expected: Revision,
        record: Rc<ClusterRecord>,
        number: Option<u64>,
    },
}

impl Delayed {
    fn new(seed: u64) -> Self {
        let start = BootTime(Duration::ZERO);
        let node = |it: u32| {
            let (boot, process) = (BootId(Uuid::from_u128(it.into())), ProcessId(it.into()));
            ClusterNode::new(NodeId(it), boot, process, ClusterRules::default(), start)
        };
        Self {
            engine: Engine::default(),
            nodes: (0..3).map(node).collect(),
            queue: BTreeMap::new(),
            now: 0,
            n_events: 0,
            random: Random::new(seed),
            seated: BTreeMap::new(),
            n_uncertain: 0,
        }
    }

    fn after(&mut self, delay: u64, event: Event) {
        self.n_events += 1;
        self.queue.insert((self.now + delay, self.n_events), event);
    }

    fn soon(&mut self, node: usize, input: NodeInput) {
        let delay = self.random.number_in(1..200);
        self.after(delay, Event::Input(node, input));
    }

    fn run(&mut self, until: u64) {
        while let Some(entry) = self.queue.first_entry().filter(|it| it.key().0 <= until) {
            let ((at, _), event) = entry.remove_entry();
            self.now = at;
            match event {
                Event::Input(node, input) => self.on(node, input),
                Event::Write { node, key, expected, record, number } => {
                    let applied = self.engine.swap(key, Some(expected), record.clone());
                    if let Some(number) = number {
                        let outcome = applied.map_or(SwapOutcome::Conflict, SwapOutcome::Applied);
                        self.soon(node, NodeInput::Written { key, number, outcome });
                    }
                    if let Some(revision) = applied {
                        for node in 0..self.nodes.len() {
                            let record = Some((*record).clone());
                            self.soon(node, NodeInput::Seen { key, revision, record });
                        }
                    }
                }
            }
            self.check();
        }
        self.now = until;
    }

    fn on(&mut self, node: usize, input: NodeInput) {
        if matches!(input, NodeInput::Tick) {
            self.after(100, Event::Input(node, NodeInput::Tick));
        }
        let now = BootTime(Duration::from_millis(self.now));
        for effect in self.nodes[node].on(input, now) {
            match effect {
                NodeEffect::Read(key) => {
                    let (revision, record) = self.engine.present(key);
                    let record = record.map(|it| (*it).clone());
                    self.soon(node, NodeInput::Seen { key, revision, record });
                }
                NodeEffect::Write { key, number, expected, record } => {
                    let (expected, record) = (expected.unwrap(), Rc::new(record));
                    let is_unknown = matches!(key, KEY) && self.random.permille(100);
                    if is_unknown {
                        let outcome = SwapOutcome::Unknown;
                        self.after(1_000, Event::Input(node, NodeInput::Written { key, number, outcome }));
                    }
                    if !is_unknown || self.random.permille(500) {
                        let delay = self.random.number_in(1..if is_unknown { 3_000 } else { 100 });
                        let number = (!is_unknown).then_some(number);
                        self.after(delay, Event::Write { node, key, expected, record, number });
                    }
                }
                NodeEffect::Seated { seat, is_certain, .. } => {
                    self.seated.insert((node, seat), is_certain);
                    self.n_uncertain += usize::from(!is_certain);
                }
                NodeEffect::EndSession { seat, user, .. } => {
                    self.soon(node, NodeInput::ReturnSeat { user, seat });
                }
                _ => {}
            }
        }
    }

    /// The sessions of the record are within the limit, and every confirmed session is in the record.
    fn check(&mut self) {
        let record = sessions(&self.engine);
        let counted = record.sessions.iter().filter(|it| it.ended.is_none());
        let counted: BTreeSet<_> = counted.map(|it| (it.device, it.target)).collect();
        assert!(counted.len() <= LIMIT as usize + self.n_uncertain, "{record:?}");
        for (&(node, seat), is_certain) in &self.seated {
            let is_entry = |it: &&crate::cluster::record::SeatEntry| {
                (it.seat.process.0, it.seat.number) == (node as u64, seat)
            };
            let is_there = record.sessions.iter().any(|it| is_entry(&it));
            let is_seated = self.nodes[node].seats(USER).is_some_and(|it| it.is_seated(seat));
            assert!(is_there || !is_certain || !is_seated, "{node} {seat}: {record:?}");
        }
    }
}

const LIMIT: u32 = 2;

#[test]
fn limits_hold_and_no_entry_stays_behind_in_any_order_of_events() {
    let (mut n_seated, mut n_uncertain) = (0, 0);
    for seed in 0..300 {
        let mut world = Delayed::new(seed);
        for node in 0..3 {
            world.soon(node, NodeInput::Tick);
        }
        world.run(25_000);
        for seat in 0..150 {
            let until = world.now + world.random.number_in(1..600);
            world.run(until);
            let node = world.random.number_in(0..3) as usize;
            if world.random.permille(550) {
                let (device, target) =
                    (world.random.number_in(0..3).into(), world.random.number_in(0..3).into());
                let request = request(LIMIT, device, target, BootTime(Duration::from_millis(world.now)));
                world.on(node, NodeInput::TakeSeat { user: USER, seat, request });
            } else if !world.seated.is_empty() {
                let at = world.random.number_in(0..world.seated.len() as u64) as usize;
                let (&(node, seat), _) = world.seated.iter().nth(at).unwrap();
                world.seated.remove(&(node, seat));
                world.on(node, NodeInput::ReturnSeat { user: USER, seat });
            }
            world.check();
        }
        n_seated += world.seated.len();
        n_uncertain += world.n_uncertain;
        // Everyone leaves.
        let until = world.now + 5_000;
        world.run(until);
        for (node, seat) in std::mem::take(&mut world.seated).into_keys() {
            world.on(node, NodeInput::ReturnSeat { user: USER, seat });
        }
        let until = world.now + 20_000;
        world.run(until);
        let left = sessions(&world.engine);
        assert_eq!(left, SeatRecord::default(), "seed {seed}");
        assert!(world.nodes.iter().all(|it| it.seats(USER).is_none()), "seed {seed}");
    }
    // The schedules show something.
    assert!(n_seated > 300 && n_uncertain > 30, "{n_seated} {n_uncertain}");
}
