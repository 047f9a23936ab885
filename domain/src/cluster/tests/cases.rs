//! Single cases with an engine that answers at once.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::engine::Engine;
use crate::cluster::owner::ChannelRole;
use crate::cluster::predecessor::MemberPredecessor;
use crate::cluster::record::{
    BootId, ClusterRecord, JobName, LeaseId, MemberState, NodeId, PoolId, ProcessId, RecordKey, SlotPurpose,
};
use crate::cluster::rules::{ClusterRules, WAITERS_MAX};
use crate::cluster::slots::{SlotRequest, SlotWait};
use crate::cluster::{BootTime, ClusterNode, NodeEffect, NodeInput, SwapOutcome};
use crate::ids::{AccountId, ProfileId, ServerGroupId};
use crate::limits::LimitScope;
use crate::plan::{SharedPool, SlotPool};

pub(super) const POOL: PoolId = PoolId::Group(ServerGroupId(1));
const CHANNEL: Uuid = Uuid::from_u128(1);
const JOB: JobName = JobName::Backup;

/// Nodes whose requests are answered at once, and whose watches are immediate.
pub(super) struct Cluster {
    pub(super) engine: Engine,
    /// `None`: it is lost.
    pub(super) nodes: Vec<Option<ClusterNode>>,
    pub(super) now: BootTime,
    /// Effects for the surroundings, each with the number of its node.
    pub(super) effects: Vec<(usize, NodeEffect)>,
    /// Watches deliver a write before it is answered.
    watch_is_first: bool,
    /// The next write is not applied, and its node does not know that.
    loses_write: bool,
}

impl Cluster {
    /// Starts nodes and waits until they may grant.
    pub(super) fn new(n_nodes: u32) -> Self {
        let now = BootTime(Duration::from_secs(1_000));
        let node = |it: u32| {
            let boot = BootId(Uuid::from_u128(u128::from(it)));
            let process = ProcessId(u64::from(it));
            Some(ClusterNode::new(NodeId(it), boot, process, ClusterRules::default(), now))
        };
        let nodes = (0..n_nodes).map(node).collect();
        let (engine, effects) = (Engine::default(), Vec::new());
        let mut cluster = Self { engine, nodes, now, effects, watch_is_first: false, loses_write: false };
        cluster.wait(25);
        cluster.effects.clear();
        cluster
    }

    /// Gives a node an input, and carries out everything that follows from it.
    pub(super) fn on(&mut self, node: usize, input: NodeInput) {
        let mut inputs = VecDeque::from([(node, input)]);
        while let Some((node, input)) = inputs.pop_front() {
            let Some(it) = &mut self.nodes[node] else { continue };
            for effect in it.on(input, self.now) {
                match effect {
                    NodeEffect::Read(key) => {
                        let (revision, record) = self.engine.present(key);
                        let record = record.map(|it| (*it).clone());
                        inputs.push_back((node, NodeInput::Seen { key, revision, record }));
                    }
                    NodeEffect::Write { key, number, .. } if std::mem::take(&mut self.loses_write) => {
                        let outcome = SwapOutcome::Unknown;
                        inputs.push_back((node, NodeInput::Written { key, number, outcome }));
                    }
                    NodeEffect::Write { key, number, expected, record } => {
                        let record = Rc::new(record);
                        let applied = self.engine.swap(key, expected, record.clone());
                        let outcome = applied.map_or(SwapOutcome::Conflict, SwapOutcome::Applied);
                        let answer = (node, NodeInput::Written { key, number, outcome });
                        let all = 0..self.nodes.len();
                        let seen = all.filter_map(|it| {
                            let (revision, record) = (applied?, Some((*record).clone()));
                            Some((it, NodeInput::Seen { key, revision, record }))
                        });
                        if self.watch_is_first {
                            inputs.extend(seen.chain([answer]));
                        } else {
                            inputs.extend([answer].into_iter().chain(seen));
                        }
                        assert!(self.engine.len() < 10_000, "the nodes write without end");
                    }
                    NodeEffect::ReadAll => {
                        for key in self.engine.keys() {
                            let (revision, record) = self.engine.present(key);
                            let record = record.map(|it| (*it).clone());
                            inputs.push_back((node, NodeInput::Seen { key, revision, record }));
                        }
                    }
                    effect => self.effects.push((node, effect)),
                }
            }
        }
    }

    /// Lets seconds pass.
    pub(super) fn wait(&mut self, seconds: u64) {
        for _ in 0..seconds * 4 {
            self.now = self.now + Duration::from_millis(250);
            for node in 0..self.nodes.len() {
                self.on(node, NodeInput::Tick);
            }
        }
    }

    pub(super) fn ask(&mut self, node: usize, lease: u64, order: &[SlotPool]) {
        self.ask_of(node, lease, lease, order, SlotWait::Others);
    }

    fn ask_of(&mut self, node: usize, lease: u64, holder: u64, order: &[SlotPool], wait: SlotWait) {
        let until = self.now + Duration::from_secs(100);
        let purpose = SlotPurpose::Live;
        let request = SlotRequest { order: Arc::from(order), holder, purpose, wait, until };
        self.on(node, NodeInput::Ask { pool: POOL, lease, request });
    }

    fn give_back(&mut self, node: usize, lease: u64) {
        self.on(node, NodeInput::Closing { pool: POOL, lease });
        self.on(node, NodeInput::Returned { pool: POOL, lease });
    }

    /// Returns the requests that were refused since the last call, each with its node.
    fn refused(&mut self) -> Vec<(usize, u64)> {
        let refused = self.effects.extract_if(.., |it| matches!(it.1, NodeEffect::Refused { .. }));
        let lease = |(node, effect)| match effect {
            NodeEffect::Refused { lease, .. } => Some((node, lease)),
            _ => None,
        };
        refused.filter_map(lease).collect()
    }

    /// Returns the leases that were granted since the last call, each with its node.
    pub(super) fn granted(&mut self) -> Vec<(usize, u64)> {
        let granted = self.effects.extract_if(.., |it| matches!(it.1, NodeEffect::Granted { .. }));
        let lease = |(node, effect)| match effect {
            NodeEffect::Granted { lease, .. } => Some((node, lease)),
            _ => None,
        };
        granted.filter_map(lease).collect()
    }

    fn member(&self, node: u32) -> MemberState {
        match self.engine.present(RecordKey::Member(NodeId(node))).1.as_deref() {
            Some(ClusterRecord::Member(it)) => it.state,
            record => panic!("no record of a member: {record:?}"),
        }
    }

    fn role(&self, node: usize) -> ChannelRole {
        self.nodes[node].as_ref().unwrap().channel(CHANNEL).unwrap().role()
    }
}

/// An account profile with its limit, in a server group with a limit.
pub(super) fn pool(id: u32, max_streams: u32, group_max: u32) -> SlotPool {
    SlotPool {
        account: AccountId(id),
        account_name: String::new(),
        profile: ProfileId(id),
        max_streams,
        release_delay: Duration::from_secs(2),
        crash_cooling: None,
        changed_at: 0,
        scope: LimitScope::Unknown,
        shared: Some(SharedPool {
            group: ServerGroupId(1),
            name: String::new(),
            max_streams: group_max,
            accounts: [AccountId(1), AccountId(2)].into(),
        }),
    }
}

#[test]
fn a_lease_takes_the_slots_of_the_account_and_of_its_server_group() {
    let mut cluster = Cluster::new(2);
    cluster.ask(0, 1, &[pool(1, 1, 2)]);
    cluster.ask(1, 1, &[pool(1, 1, 2), pool(2, 3, 2)]); // the second account is free
    cluster.ask(0, 2, &[pool(2, 3, 2)]); // the group is full
    assert_eq!(cluster.granted(), [(0, 1), (1, 1)]);
}

#[test]
fn waiting_requests_of_all_nodes_are_served_in_order_after_the_release_delay() {
    let mut cluster = Cluster::new(3);
    let one = [pool(1, 1, 0)];
    for node in [2, 0, 1] {
        cluster.ask(node, 1, &one);
    }
    assert_eq!(cluster.granted(), [(2, 1)]);
    cluster.give_back(2, 1);
    assert_eq!(cluster.granted(), []);
    cluster.ask(2, 2, &one);
    cluster.wait(3);
    assert_eq!(cluster.granted(), [(0, 1)]);
    cluster.give_back(0, 1);
    cluster.on(1, NodeInput::Cancel { pool: POOL, lease: 1 });
    cluster.wait(3);
    assert_eq!(cluster.granted(), [(2, 2)]);
}

#[test]
fn a_request_waits_for_what_it_says_only() {
    let mut cluster = Cluster::new(2);
    let one = [pool(1, 1, 0)];
    cluster.ask(0, 1, &one);
    for (lease, wait) in [(2, SlotWait::OwnReturn), (3, SlotWait::Returns)] {
        cluster.ask_of(0, lease, 1, &one, wait);
        assert_eq!(cluster.refused(), [(0, lease)], "{wait:?} does not wait for a slot in use");
    }
    cluster.on(0, NodeInput::Closing { pool: POOL, lease: 1 });
    cluster.ask_of(0, 4, 2, &one, SlotWait::OwnReturn);
    assert_eq!(cluster.refused(), [(0, 4)], "another holder returns it");
    cluster.ask_of(0, 5, 1, &one, SlotWait::OwnReturn);
    assert_eq!(cluster.refused(), []);
    cluster.ask_of(1, 2, 1, &one, SlotWait::Returns);
    assert_eq!(cluster.refused(), [(1, 2)], "the slot that comes back is for the earlier one");
    cluster.on(0, NodeInput::Returned { pool: POOL, lease: 1 });
    cluster.wait(3);
    assert_eq!(cluster.granted(), [(0, 1), (0, 5)]);
}

#[test]
fn one_holder_at_a_time_is_asked_to_yield() {
    let mut cluster = Cluster::new(2);
    let two = [pool(1, 2, 0)];
    cluster.ask(0, 1, &two);
    cluster.ask(1, 1, &two);
    cluster.ask(1, 2, &two);
    let asked = |cluster: &mut Cluster| {
        let asked = cluster.effects.extract_if(.., |it| matches!(it.1, NodeEffect::AskToYield { .. }));
        let of = |(from, effect)| match effect {
            NodeEffect::AskToYield { node, lease, asked_by, .. } => Some((from, node.0, lease, asked_by)),
            _ => None,
        };
        asked.filter_map(of).collect::<Vec<_>>()
    };
    let first = asked(&mut cluster);
    assert_eq!(first.iter().map(|it| (it.0, it.1, it.2.number, it.3)).collect::<Vec<_>>(), [(1, 0, 1, 2)]);
    cluster.on(1, NodeInput::Kept { pool: POOL, asked_by: 2, by: first[0].2 });
    let second = asked(&mut cluster);
    assert_eq!(second.iter().map(|it| (it.0, it.1, it.2.number, it.3)).collect::<Vec<_>>(), [(1, 1, 1, 2)]);
    cluster.wait(2); // nobody is left
    assert_eq!(asked(&mut cluster), []);
    // One that kept its slot for a viewer can be asked again when the viewer is gone.
    cluster.on(1, NodeInput::Lingering { pool: POOL, asked_by: 2, by: first[0].2 });
    assert_eq!(asked(&mut cluster), first);
}

#[test]
fn a_request_beyond_the_longest_queue_is_refused() {
    let mut cluster = Cluster::new(1);
    let max = WAITERS_MAX as u64;
    for lease in 0..max + 2 {
        cluster.ask(0, lease, &[pool(1, 1, 0)]);
    }
    let refused = cluster.effects.iter().filter(|it| matches!(it.1, NodeEffect::Refused { .. }));
    assert_eq!(
        refused.map(|it| &it.1).collect::<Vec<_>>(),
        [&NodeEffect::Refused { pool: POOL, lease: max + 1 }]
    );
}

#[test]
fn the_slots_of_a_lost_node_are_granted_after_its_take_over_and_cooling() {
    let mut cluster = Cluster::new(2);
    cluster.ask(0, 1, &[pool(1, 1, 0)]);
    cluster.nodes[0] = None;
    cluster.ask(1, 1, &[pool(1, 1, 0)]);
    cluster.wait(16);
    assert_eq!(cluster.member(0), MemberState::Alive);
    cluster.wait(5);
    assert_eq!(cluster.member(0), MemberState::Expired);
    cluster.granted();
    cluster.wait(27);
    assert_eq!(cluster.granted(), []);
    cluster.wait(4);
    assert_eq!(cluster.granted(), [(1, 1)]);
}

#[test]
fn the_slots_of_a_lost_node_cool_for_the_time_of_their_account() {
    for (own, release_delay, until) in [(3, 0, 25), (3, 10, 32), (60, 0, 82)] {
        let own = Some(Duration::from_secs(own));
        let of_account = [SlotPool {
            crash_cooling: own,
            release_delay: Duration::from_secs(release_delay),
            ..pool(1, 1, 0)
        }];
        let mut cluster = Cluster::new(2);
        cluster.ask(0, 1, &of_account);
        // Slots of the time before the engine started may still cool.
        cluster.wait(release_delay);
        assert_eq!(cluster.granted(), [(0, 1)]);
        cluster.nodes[0] = None;
        cluster.ask(1, 1, &of_account);
        cluster.wait(until - 8);
        assert_eq!(cluster.granted(), [], "{own:?}, {release_delay} s");
        cluster.wait(8);
        assert_eq!(cluster.granted(), [(1, 1)], "{own:?}, {release_delay} s");
    }
}

#[test]
fn the_slots_of_a_process_that_restarts_on_the_same_boot_cool_for_the_release_delay_only() {
    let mut cluster = Cluster::new(2);
    cluster.ask(0, 1, &[pool(1, 1, 0)]);
    let (boot, process) = (BootId(Uuid::from_u128(0)), ProcessId(77));
    let node = ClusterNode::new(NodeId(0), boot, process, ClusterRules::default(), cluster.now);
    cluster.nodes[0] = Some(node);
    cluster.ask(1, 1, &[pool(1, 1, 0)]);
    cluster.granted();
    cluster.wait(3);
    assert_eq!(cluster.granted(), [(1, 1)]);
}

#[test]
fn a_node_without_the_engine_closes_its_sources_after_15_s() {
    let mut cluster = Cluster::new(1);
    cluster.ask(0, 1, &[pool(1, 1, 0)]);
    let mut node = cluster.nodes[0].take().unwrap();
    let close = NodeEffect::Close { pool: POOL, lease: 1 };
    for tenths in 0..200 {
        let effects = node.on(NodeInput::Tick, cluster.now + Duration::from_millis(tenths * 100));
        if effects.contains(&close) {
            assert!((120..=150).contains(&tenths), "{tenths}");
            return;
        }
    }
    panic!("the source is not closed");
}

#[test]
fn a_revision_that_is_lower_than_a_known_one_stops_grants_for_20_s() {
    let mut cluster = Cluster::new(1);
    cluster.ask(0, 1, &[pool(1, 2, 0)]);
    assert_eq!(cluster.granted(), [(0, 1)]);
    cluster.engine.restart(4, 0);
    cluster.wait(6);
    let node = cluster.nodes[0].as_ref().unwrap();
    assert!(node.pool(POOL).unwrap().holds(1)); // it is registered again
    cluster.ask(0, 2, &[pool(1, 2, 0)]);
    cluster.wait(14);
    assert_eq!(cluster.granted(), []);
    cluster.wait(8);
    assert_eq!(cluster.granted(), [(0, 2)]);
}

#[test]
fn a_process_that_starts_without_the_engine_grants_nothing_for_20_s_after_its_first_answer() {
    let mut cluster = Cluster::new(0);
    let (boot, process) = (BootId(Uuid::nil()), ProcessId(1));
    let mut node = ClusterNode::new(NodeId(0), boot, process, ClusterRules::default(), cluster.now);
    for _ in 0..30 {
        node.on(NodeInput::Tick, cluster.now);
        cluster.now = cluster.now + Duration::from_secs(1);
        node.on(NodeInput::ReadFailed(RecordKey::Member(NodeId(0))), cluster.now);
    }
    cluster.nodes.push(Some(node));
    cluster.ask(0, 1, &[pool(1, 1, 0)]);
    cluster.wait(18);
    assert_eq!(cluster.granted(), []);
    cluster.wait(6);
    assert_eq!(cluster.granted(), [(0, 1)]);
}

#[test]
fn the_guard_waits_until_the_connections_should_be_closed_and_never_longer_than_10_s() {
    let mut cluster = Cluster::new(1);
    cluster.ask(0, 1, &[pool(1, 1, 0)]);
    let node = cluster.nodes[0].as_mut().unwrap();
    assert_eq!(node.guard_at(cluster.now), cluster.now + Duration::from_secs(10));
    let deadline = node.member().valid_until().unwrap();
    let closing = Duration::from_millis(600);
    assert_eq!(node.guard_at(deadline), deadline + closing);
    let late = deadline + Duration::from_millis(300);
    assert!(node.on(NodeInput::Tick, late).contains(&NodeEffect::Close { pool: POOL, lease: 1 }));
    assert_eq!(node.guard_at(late), late + closing);
    node.on(NodeInput::Returned { pool: POOL, lease: 1 }, late);
    assert_eq!(node.guard_at(late), late + Duration::from_secs(10));
}

#[test]
fn a_node_that_leaves_closes_its_sources_first() {
    let mut cluster = Cluster::new(2);
    cluster.ask(0, 1, &[pool(1, 1, 0)]);
    cluster.on(0, NodeInput::Leave);
    assert!(cluster.effects.contains(&(0, NodeEffect::Close { pool: POOL, lease: 1 })));
    assert_eq!(cluster.member(0), MemberState::Alive);
    cluster.on(0, NodeInput::Returned { pool: POOL, lease: 1 });
    assert_eq!(cluster.member(0), MemberState::Left);
    cluster.granted();
    cluster.ask(1, 1, &[pool(1, 1, 0)]);
    cluster.wait(3);
    assert_eq!(cluster.granted(), [(1, 1)]);
}

#[test]
fn a_job_moves_within_30_s_of_the_loss_of_its_node() {
    let mut cluster = Cluster::new(2);
    for node in [0, 1] {
        cluster.on(node, NodeInput::WantJob { job: JOB, is_wanted: true });
    }
    let runs = |cluster: &Cluster, node: usize| {
        cluster.nodes[node].as_ref().unwrap().job(JOB).unwrap().running().is_some()
    };
    assert!(runs(&cluster, 0) && !runs(&cluster, 1));
    cluster.nodes[0] = None;
    cluster.wait(30);
    assert!(runs(&cluster, 1));
    cluster.on(1, NodeInput::WantJob { job: JOB, is_wanted: false });
    assert!(!runs(&cluster, 1));
}

#[test]
fn an_edge_becomes_the_origin_when_it_loses_the_old_one_which_then_pulls_from_it() {
    let mut cluster = Cluster::new(2);
    for node in [0, 1] {
        let (is_wanted, may_originate) = (true, true);
        cluster.on(node, NodeInput::WantChannel { channel: CHANNEL, is_wanted, may_originate });
    }
    assert_eq!(cluster.role(0), ChannelRole::Origin { epoch: 1 });
    cluster.on(1, NodeInput::Pulled { channel: CHANNEL, epoch: 1 });
    assert_eq!(cluster.role(1), ChannelRole::Edge { from: NodeId(0), epoch: 1 });
    cluster.on(1, NodeInput::PullLost { channel: CHANNEL, epoch: 1 });
    assert_eq!(cluster.role(1), ChannelRole::Origin { epoch: 2 });
    // The old origin plays its own source until it pulls from the new one.
    assert_eq!(cluster.role(0), ChannelRole::Pulling { from: NodeId(1), epoch: 2, has_source: true });
    cluster.on(0, NodeInput::PullLost { channel: CHANNEL, epoch: 2 });
    assert_eq!(cluster.role(0), ChannelRole::Alone { epoch: 2 });
    cluster.wait(11);
    cluster.effects.clear();
    cluster.on(0, NodeInput::Pulled { channel: CHANNEL, epoch: 2 });
    assert_eq!(cluster.role(0), ChannelRole::Edge { from: NodeId(1), epoch: 2 });
    assert_eq!(cluster.effects, [(0, NodeEffect::ReleaseSource { channel: CHANNEL })]);
}

#[test]
fn an_origin_whose_record_the_engine_has_lost_writes_it_again_once_and_stays_the_origin() {
    let mut cluster = Cluster::new(2);
    for node in [0, 1] {
        let (is_wanted, may_originate) = (true, true);
        cluster.on(node, NodeInput::WantChannel { channel: CHANNEL, is_wanted, may_originate });
        cluster.on(1, NodeInput::Pulled { channel: CHANNEL, epoch: 1 });
    }
    cluster.engine.restart(cluster.engine.len(), 0);
    cluster.effects.clear();
    cluster.on(1, NodeInput::EngineRestarted);
    cluster.on(0, NodeInput::EngineRestarted);
    cluster.wait(5);
    assert_eq!(cluster.role(0), ChannelRole::Origin { epoch: 1 });
    assert_eq!(cluster.role(1), ChannelRole::Edge { from: NodeId(0), epoch: 1 });
    assert_eq!(cluster.effects, []);
    assert!(cluster.engine.len() < 20, "{} writes", cluster.engine.len());
}

#[test]
fn an_origin_that_missed_its_replacement_follows_when_the_engine_loses_that_record() {
    let mut cluster = Cluster::new(2);
    for node in [0, 1] {
        let (is_wanted, may_originate) = (true, true);
        cluster.on(node, NodeInput::WantChannel { channel: CHANNEL, is_wanted, may_originate });
    }
    let frozen = cluster.nodes[0].take();
    cluster.on(1, NodeInput::PullLost { channel: CHANNEL, epoch: 1 });
    assert_eq!(cluster.role(1), ChannelRole::Origin { epoch: 2 });
    cluster.engine.restart(cluster.engine.len(), 0);
    cluster.nodes[0] = frozen;
    cluster.on(0, NodeInput::EngineRestarted);
    assert_eq!(cluster.role(0), ChannelRole::Origin { epoch: 1 });
    cluster.on(1, NodeInput::EngineRestarted);
    assert_eq!(cluster.role(1), ChannelRole::Origin { epoch: 2 });
    assert_eq!(cluster.role(0), ChannelRole::Pulling { from: NodeId(1), epoch: 2, has_source: true });
}

#[test]
fn a_lease_is_confirmed_once_if_its_table_is_seen_before_the_write_is_answered() {
    // It was written again and again, as fast as the engine answered.
    let mut cluster = Cluster::new(2);
    cluster.ask(0, 1, &[pool(1, 1, 0)]);
    cluster.watch_is_first = true;
    cluster.engine.restart(cluster.engine.len(), 0);
    cluster.on(0, NodeInput::EngineRestarted);
    cluster.on(1, NodeInput::EngineRestarted);
    let before = cluster.engine.len();
    cluster.wait(2); // before the next renewal
    assert_eq!(cluster.engine.len(), before);
    cluster.wait(60);
    cluster.ask(1, 1, &[pool(1, 1, 0)]);
    assert_eq!(cluster.granted(), [(0, 1)]);
}

/// NATS refuses a write while another one of the same record is on its way, and does not say whether that one succeeds.
#[test]
fn a_write_without_a_known_outcome_is_repeated_when_a_newer_table_is_seen() {
    let mut cluster = Cluster::new(2);
    let pools = [SlotPool { release_delay: Duration::ZERO, ..pool(1, 1, 9) }];
    cluster.ask(0, 1, &pools);
    cluster.ask(1, 2, &pools);
    assert_eq!(cluster.granted(), [(0, 1)]);
    cluster.loses_write = true;
    cluster.give_back(0, 1);
    assert_eq!(cluster.granted(), []);
    cluster.ask(1, 3, &pools);
    assert_eq!(cluster.granted(), [(1, 2)], "at once");
}

#[test]
fn a_node_that_may_not_open_a_channel_asks_once_for_each_origin_and_another_takes_over() {
    let mut cluster = Cluster::new(3);
    let want = |cluster: &mut Cluster, node, may_originate| {
        cluster.on(node, NodeInput::WantChannel { channel: CHANNEL, is_wanted: true, may_originate });
    };
    let seeks = |cluster: &mut Cluster, replaces| {
        let found: Vec<_> =
            cluster.effects.extract_if(.., |it| matches!(it.1, NodeEffect::SeekOrigin { .. })).collect();
        assert_eq!(found, [(0, NodeEffect::SeekOrigin { channel: CHANNEL, replaces })]);
    };
    want(&mut cluster, 0, false);
    cluster.wait(5);
    seeks(&mut cluster, None);
    assert_eq!(cluster.role(0), ChannelRole::Idle);
    want(&mut cluster, 1, true);
    assert_eq!(cluster.role(1), ChannelRole::Origin { epoch: 1 });
    cluster.on(0, NodeInput::Pulled { channel: CHANNEL, epoch: 1 });
    assert_eq!(cluster.role(0), ChannelRole::Edge { from: NodeId(1), epoch: 1 });

    // It cannot reach the origin, and another node replaces that; an old request for the same changes nothing.
    cluster.on(0, NodeInput::PullLost { channel: CHANNEL, epoch: 1 });
    cluster.wait(5);
    seeks(&mut cluster, Some(1));
    want(&mut cluster, 2, true);
    for _ in 0..2 {
        cluster.on(2, NodeInput::ReplaceOrigin { channel: CHANNEL, epoch: 1 });
        assert_eq!(cluster.role(2), ChannelRole::Origin { epoch: 2 });
    }
    assert_eq!(cluster.role(1), ChannelRole::Pulling { from: NodeId(2), epoch: 2, has_source: true });
    cluster.on(0, NodeInput::Pulled { channel: CHANNEL, epoch: 2 });
    assert_eq!(cluster.role(0), ChannelRole::Edge { from: NodeId(2), epoch: 2 });

    // An origin that is drained stays one until it is replaced, and then opens nothing more.
    cluster.on(1, NodeInput::Pulled { channel: CHANNEL, epoch: 2 });
    want(&mut cluster, 2, false);
    assert_eq!(cluster.role(2), ChannelRole::Origin { epoch: 2 });
    cluster.on(1, NodeInput::ReplaceOrigin { channel: CHANNEL, epoch: 2 });
    assert_eq!(cluster.role(1), ChannelRole::Origin { epoch: 3 });
    assert_eq!(cluster.role(2), ChannelRole::Pulling { from: NodeId(1), epoch: 3, has_source: true });
}

/// Restarts the first node so that the old process serves beside the new one. Returns the place of the old process.
pub(super) fn restart(cluster: &mut Cluster, leases: &[u64]) -> usize {
    let node = cluster.nodes[0].as_ref().expect("it runs");
    let incarnation = node.incarnation(cluster.now).expect("it is a member");
    cluster.on(0, NodeInput::HandOver);
    let old = cluster.nodes[0].take();
    let lease = |number: &u64| (LeaseId { process: ProcessId(0), number: *number }, POOL);
    let predecessor = MemberPredecessor { incarnation, leases: leases.iter().map(lease).collect() };
    let (boot, process, rules) = (BootId(Uuid::nil()), ProcessId(77), ClusterRules::default());
    let new = ClusterNode::after(Some(predecessor), NodeId(0), boot, process, rules, cluster.now);
    cluster.nodes[0] = Some(new);
    cluster.nodes.push(old);
    // Its watch begins with all records.
    for key in cluster.engine.keys() {
        let (revision, record) = cluster.engine.present(key);
        let record = record.map(|it| (*it).clone());
        cluster.on(0, NodeInput::Seen { key, revision, record });
    }
    cluster.nodes.len() - 1
}

/// Lets seconds pass, while the new process tells the old one what it knows.
fn wait_with(cluster: &mut Cluster, old: usize, seconds: u64) {
    for _ in 0..seconds {
        cluster.wait(1);
        let told = cluster.effects.extract_if(.., |it| matches!(it.1, NodeEffect::ProlongPredecessor { .. }));
        for (_, effect) in told.collect::<Vec<_>>() {
            if let NodeEffect::ProlongPredecessor { until } = effect {
                cluster.on(old, NodeInput::Prolonged { until });
            }
        }
    }
}

#[test]
fn a_process_that_takes_over_keeps_the_leases_of_the_one_before_until_they_are_returned() {
    let mut cluster = Cluster::new(2);
    let two = [pool(1, 2, 0)];
    cluster.ask(0, 1, &two);
    cluster.ask(0, 2, &two);
    assert_eq!(cluster.granted(), [(0, 1), (0, 2)]);
    // The second one was just being returned, so the old process does not have it any more.
    let old = restart(&mut cluster, &[1]);
    cluster.ask(1, 1, &two);
    cluster.ask(1, 2, &two);
    wait_with(&mut cluster, old, 100);
    assert_eq!(cluster.granted(), [(1, 1)]);
    assert!(!cluster.effects.contains(&(old, NodeEffect::CloseHandedOver)));
    cluster.ask(1, 3, &two);
    let lease = Some(LeaseId { process: ProcessId(0), number: 1 });
    cluster.on(0, NodeInput::PredecessorClosed { lease });
    wait_with(&mut cluster, old, 4);
    assert_eq!(cluster.granted(), [(1, 3)]);
    // Its incarnation is over when it has ended.
    cluster.on(0, NodeInput::PredecessorClosed { lease: None });
    cluster.wait(4);
    match cluster.engine.present(RecordKey::Member(NodeId(0))).1.as_deref() {
        Some(ClusterRecord::Member(it)) => {
            assert!(it.over == it.closed && it.over.0 + 1 == it.incarnation.unwrap().0, "{it:?}");
        }
        record => panic!("no record of a member: {record:?}"),
    }
}

#[test]
fn a_process_that_was_handed_over_writes_nothing_and_closes_its_sources_at_its_deadline() {
    let mut cluster = Cluster::new(2);
    cluster.ask(0, 1, &[pool(1, 1, 0)]);
    let old = restart(&mut cluster, &[1]);
    wait_with(&mut cluster, old, 10);
    let deadline = cluster.nodes[old].as_ref().unwrap().member().valid_until().unwrap();
    assert!(deadline > cluster.now + Duration::from_secs(10));
    // The new one is lost.
    cluster.nodes[0] = None;
    let close = (old, NodeEffect::CloseHandedOver);
    let mut waited = 0;
    while !cluster.effects.contains(&close) {
        assert!(waited < 15, "the sources are not closed");
        cluster.wait(1);
        waited += 1;
    }
    assert!(waited >= 11, "{waited}");
    let before = cluster.engine.len();
    cluster.on(old, NodeInput::HandedOverClosed);
    cluster.nodes[1] = None;
    cluster.wait(30);
    assert_eq!(cluster.engine.len(), before);
}

#[test]
fn a_process_is_not_prolonged_while_the_engine_lacks_one_of_its_leases() {
    let mut cluster = Cluster::new(1);
    cluster.ask(0, 1, &[pool(1, 1, 0)]);
    let len = cluster.engine.len();
    let old = restart(&mut cluster, &[1]);
    wait_with(&mut cluster, old, 5);
    // It has restarted with all that it had.
    for node in [0, old] {
        cluster.on(node, NodeInput::EngineRestarted);
    }
    wait_with(&mut cluster, old, 30);
    assert!(!cluster.effects.contains(&(old, NodeEffect::CloseHandedOver)));
    // It has lost the lease.
    cluster.engine.restart(cluster.engine.len() - len + 1, 0);
    for node in [0, old] {
        cluster.on(node, NodeInput::EngineRestarted);
    }
    wait_with(&mut cluster, old, 16);
    assert!(cluster.effects.contains(&(old, NodeEffect::CloseHandedOver)));
}

#[test]
fn channels_and_jobs_pass_to_the_process_that_takes_over() {
    let mut cluster = Cluster::new(2);
    let want = |cluster: &mut Cluster, node| {
        let (is_wanted, may_originate) = (true, true);
        cluster.on(node, NodeInput::WantChannel { channel: CHANNEL, is_wanted, may_originate });
        cluster.on(node, NodeInput::WantJob { job: JOB, is_wanted });
    };
    want(&mut cluster, 0);
    want(&mut cluster, 1);
    assert_eq!(cluster.role(0), ChannelRole::Origin { epoch: 1 });
    let runs = |cluster: &Cluster, node: usize| {
        cluster.nodes[node].as_ref().unwrap().job(JOB).is_some_and(|it| it.running().is_some())
    };
    assert!(runs(&cluster, 0));
    let old = restart(&mut cluster, &[]);
    assert!(cluster.effects.contains(&(0, NodeEffect::StopJob { job: JOB })));
    want(&mut cluster, 0);
    wait_with(&mut cluster, old, 5);
    // The old process plays on, and the other node pulls from the new one.
    assert_eq!(cluster.role(old), ChannelRole::Origin { epoch: 1 });
    assert_eq!(cluster.role(0), ChannelRole::Origin { epoch: 2 });
    assert_eq!(cluster.role(1), ChannelRole::Pulling { from: NodeId(0), epoch: 2, has_source: false });
    assert!([0, 1].into_iter().filter(|it| runs(&cluster, *it)).count() == 1 && !runs(&cluster, old));
}
