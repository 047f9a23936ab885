//! The task of a member.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use cluster::codec::{self, StoredMember, StoredRecord};
use cluster::{
    Engine, EngineError, EngineState, NodeInfo, NodeLoad, Record, Revision, Session, SwapOutcome, WatchEvent,
    node_id, written_version,
};
use domain::cluster::predecessor::MemberPredecessor;
use domain::cluster::record::{
    BootId, ClusterRecord, Incarnation, MemberState, NodeId, PoolId, ProcessId, RecordKey,
};
use domain::cluster::rules::ClusterRules;
use domain::cluster::version::unfit;
use domain::cluster::{BootTime, ClusterNode, NodeEffect, NodeInput, WriteNumber};
use domain::event::{Event, EventBody};
use media::Guard;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, info, warn};
use uuid::Uuid;

use super::ReadLoad;
use super::clock::BootClock;
use super::clock_offset::ClockSamples;
use super::link::EffectPorts;
use super::view::{ClusterView, NodeState, NodeView};
use crate::clock::now_ms;
use crate::events::Events;

/// The file in which the kernel names the present boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// How often this process tells the guard that it is not frozen.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

const DAY_MS: i64 = 86_400_000;

/// A member's record as it was last seen.
#[derive(Debug)]
struct Seen {
    revision: Revision,
    stored: StoredMember,
    /// Milliseconds since 1970.
    at: i64,
    clock: ClockSamples,
}

/// A message of the member to the process before this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PredecessorMessage {
    /// Its incarnation is valid until then.
    Prolonged { until: BootTime },
    /// It is to close its connections with leases.
    End,
}

/// Passes a message to the process before this one. It may be lost.
pub type PredecessorPort = Box<dyn Fn(PredecessorMessage) + Send + Sync>;

/// The end of the membership of a process that another one of its node continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HandedOver {
    /// Its incarnation; `None` if it was not a member.
    pub(super) incarnation: Option<Incarnation>,
}

/// The values that the task of a member shows: the nodes, and its end by a hand-over.
pub(super) type MemberViews = (watch::Receiver<Arc<ClusterView>>, watch::Receiver<Option<HandedOver>>);

/// The end of a request.
enum Done {
    Read { session: u64, key: RecordKey, result: Result<Record, EngineError> },
    Written { key: RecordKey, number: WriteNumber, outcome: SwapOutcome },
}

/// The membership of this node.
pub(super) struct MemberTask {
    ports: EffectPorts,
    engine: Arc<dyn Engine>,
    info: NodeInfo,
    load: ReadLoad,
    events: Events,
    clock: BootClock,
    guard: Option<Guard>,
    /// Messages to the process before this one, while it serves viewers.
    predecessor: Option<PredecessorPort>,
    /// Set once another process of this node has taken over.
    handed_over: watch::Sender<Option<HandedOver>>,
    /// The guard cannot be started again.
    is_unguarded: bool,
    id: NodeId,
    process: ProcessId,
    node: ClusterNode,
    records: mpsc::Receiver<WatchEvent>,
    /// The session whose events are being processed. Requests are sent in no other.
    session: Option<Session>,
    /// [`Session::n_restarts`] of the last session that was processed.
    n_restarts: Option<u64>,
    /// At most one for each record that the node reads or writes.
    requests: JoinSet<Done>,
    inputs: VecDeque<NodeInput>,
    members: BTreeMap<NodeId, Seen>,
    /// Members that were reported in the present session, until it is complete. The others are gone then.
    reported: Option<BTreeSet<NodeId>>,
    /// The states of which events were sent. `None` before the first session was complete.
    announced: Option<BTreeMap<NodeId, NodeState>>,
    problem: Option<String>,
    /// Why this node cannot read what the others write. It leaves then.
    unfit: Option<String>,
    view: watch::Sender<Arc<ClusterView>>,
}

impl MemberTask {
    pub(super) fn new(
        ports: EffectPorts,
        engine: Arc<dyn Engine>,
        info: NodeInfo,
        load: ReadLoad,
        events: Events,
        (guard, clock): (Option<Guard>, BootClock),
        predecessor: Option<(MemberPredecessor, PredecessorPort)>,
    ) -> io::Result<(Self, MemberViews)> {
        let boot = fs::read_to_string(BOOT_ID)?;
        let boot = Uuid::parse_str(boot.trim()).map_err(io::Error::other)?;
        let process = ProcessId(getrandom::u64().map_err(io::Error::other)?);
        let id = node_id(&info.name);
        let (kept, predecessor) = predecessor.unzip();
        let rules = ClusterRules::default();
        let node = ClusterNode::after(kept, id, BootId(boot), process, rules, clock.now());
        let (handed_over, of_hand_over) = watch::channel(None);
        let nodes = Vec::new();
        let disconnected = Some("not connected yet".to_owned());
        let empty = ClusterView { disconnected, problem: None, is_unfit: false, nodes };
        let (view, receiver) = watch::channel(Arc::new(empty));
        let records = engine.watch(None);
        ports.tables.send_modify(|it| it.process = Some(process));
        let task = Self {
            ports,
            engine,
            info,
            load,
            events,
            clock,
            guard,
            predecessor,
            handed_over,
            is_unguarded: false,
            id,
            process,
            node,
            records,
            session: None,
            n_restarts: None,
            requests: JoinSet::new(),
            inputs: VecDeque::new(),
            members: BTreeMap::new(),
            reported: None,
            announced: None,
            problem: None,
            unfit: None,
            view,
        };
        Ok((task, (receiver, of_hand_over)))
    }

    /// Runs until the handle is dropped.
    pub(super) async fn run(mut self, mut inputs: UnboundedReceiver<NodeInput>) {
        let mut state = self.engine.state();
        self.inputs.push_back(NodeInput::Tick);
        let mut report = interval(REPORT_PERIOD);
        report.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.process();
            self.report();
            self.show(&state.borrow_and_update().clone());
            // A node that may not write has nothing to do at any time.
            let deadline = self.node.deadline().filter(|_| self.problem.is_none());
            tokio::select! {
                // In this order: a restart of the engine is known before the answers of the new session.
                biased;
                event = self.records.recv() => match event {
                    Some(it) => self.on_record(it),
                    // The engine has ended, which only happens with the process.
                    None => return,
                },
                Some(done) = self.requests.join_next() => match done {
                    Ok(it) => self.on_done(it),
                    Err(it) => error!("a request to the cluster's engine failed: {it}"),
                },
                Some(input) = inputs.recv() => self.inputs.push_back(input),
                _ = state.changed() => {}
                () = self.clock.wait_until(deadline) => self.inputs.push_back(NodeInput::Tick),
                _ = report.tick(), if self.guard.is_some() => {}
            }
        }
    }

    /// Tells the guard that this process is not frozen, and whether it tells the others when this process has ended.
    fn report(&mut self) {
        let Some(guard) = &mut self.guard else { return };
        let process = self.node.guarded().map(|it| it.0);
        let reported = guard.report(self.node.guard_at(self.clock.now()).0, process);
        if let Err(error) = &reported
            && !self.is_unguarded
        {
            error!("nothing ends this gateway if it is frozen: the guard cannot be started: {error}");
        }
        self.is_unguarded = reported.is_err();
    }

    fn on_record(&mut self, event: WatchEvent) {
        match event {
            WatchEvent::Session(session) => {
                let is_restart = self.n_restarts.is_some_and(|it| it != session.n_restarts);
                self.n_restarts = Some(session.n_restarts);
                self.session = Some(session);
                self.reported = Some(BTreeSet::new());
                if is_restart {
                    self.inputs.push_back(NodeInput::EngineRestarted);
                }
                self.inputs.push_back(NodeInput::Tick);
            }
            WatchEvent::Record(record) => self.on_seen(record),
            WatchEvent::Complete => {
                if let Some(reported) = self.reported.take() {
                    self.members.retain(|id, _| reported.contains(id));
                }
                self.announced.get_or_insert_default();
                self.check_version();
            }
        }
    }

    fn on_seen(&mut self, record: Record) {
        let Some(key) = codec::record_key(&record.key) else { return };
        let value = record.value.as_ref().map(|it| codec::decode(&record.key, key, it)).transpose();
        let value = match value {
            Ok(it) => it,
            Err(error) => {
                error!("{error}");
                return;
            }
        };
        if let RecordKey::Member(id) = key {
            self.note_member(id, record.revision, value.as_ref());
        }
        // A node with the same id and another name: neither may write.
        if self.problem.is_some() {
            return;
        }
        let record_value = value.map(|it| match it {
            StoredRecord::Member(it) => ClusterRecord::Member(it.record),
            StoredRecord::Other(it) => it,
        });
        self.inputs.push_back(NodeInput::Seen { key, revision: record.revision, record: record_value });
    }

    fn note_member(&mut self, id: NodeId, revision: Revision, value: Option<&StoredRecord>) {
        if let Some(reported) = &mut self.reported {
            reported.insert(id);
        }
        let Some(StoredRecord::Member(stored)) = value else {
            self.members.remove(&id);
            return;
        };
        if id == self.id {
            self.check_own(stored);
        }
        let is_new = self.members.get(&id).is_none_or(|it| it.revision != revision);
        if is_new {
            let at = now_ms();
            let mut clock = self.members.remove(&id).map(|it| it.clock).unwrap_or_default();
            // Records that were there before this connection to the engine are of any age.
            let written_at = stored.node.load.at.filter(|_| stored.record.state == MemberState::Alive);
            if let Some(written_at) = written_at.filter(|_| self.reported.is_none()) {
                clock.add(written_at, at);
            }
            self.members.insert(id, Seen { revision, stored: stored.clone(), at, clock });
            self.check_version();
        }
    }

    /// Leaves if this node cannot read what the others write. Before all their records are known, it cannot tell.
    fn check_version(&mut self) {
        if self.info.certificate.is_none() || self.announced.is_none() || self.unfit.is_some() {
            return;
        }
        // The process that has taken over decides.
        if self.handed_over.borrow().is_some() {
            return;
        }
        let written = written_version(self.members.values().map(|it| &it.stored.node));
        if let Some(reason) = written.and_then(|it| unfit(self.info.versions, it)) {
            error!("this node cannot be a member of the cluster: {reason}");
            self.unfit = Some(format!("This node cannot be a member: {reason}."));
            self.inputs.push_back(NodeInput::Leave);
        }
    }

    /// Notes if another node uses the id of this one.
    fn check_own(&mut self, stored: &StoredMember) {
        let other = &stored.node.name;
        let is_other = !other.is_empty() && *other != self.info.name;
        if is_other && stored.record.state == MemberState::Alive {
            let own = &self.info.name;
            let text = format!(
                "The node names \"{own}\" and \"{other}\" have the same short form, so \"{own}\" cannot be a member. Give \
                 one of the nodes another name (`cluster.node_name`)."
            );
            error!("{text}");
            self.problem = Some(text);
        } else if stored.record.state == MemberState::Alive
            && stored.record.process != self.process
            && self.node.incarnation(self.clock.now()).is_some()
        {
            let name = &self.info.name;
            error!(
                "another process takes part in the cluster as \"{name}\"; each node needs a name of its own"
            );
        }
    }

    fn on_done(&mut self, done: Done) {
        match done {
            Done::Read { session, key, result } => {
                let is_present = self.session.is_some_and(|it| it.number == session);
                match result {
                    Ok(record) if is_present => self.on_seen(record),
                    // A value of an earlier session may be of another engine.
                    Ok(_) | Err(_) => self.inputs.push_back(NodeInput::ReadFailed(key)),
                }
            }
            Done::Written { key, number, outcome } => {
                self.inputs.push_back(NodeInput::Written { key, number, outcome });
            }
        }
    }

    /// Processes all inputs, and those that follow from them.
    fn process(&mut self) {
        while let Some(input) = self.inputs.pop_front() {
            if self.problem.is_some() {
                self.inputs.clear();
                return;
            }
            let pool = match &input {
                NodeInput::Seen { key: RecordKey::Pool(id), .. }
                | NodeInput::Written { key: RecordKey::Pool(id), .. } => Some(*id),
                NodeInput::EngineRestarted => {
                    self.ports.tables.send_modify(|it| it.tables.clear());
                    None
                }
                _ => None,
            };
            let is_hand_over = matches!(input, NodeInput::HandOver);
            let before = is_hand_over.then(|| self.node.incarnation(self.clock.now()));
            let effects = self.node.on(input, self.clock.now());
            if let Some(incarnation) = before {
                let incarnation = incarnation.filter(|_| self.node.member().is_handed_over());
                self.handed_over.send_replace(Some(HandedOver { incarnation }));
            }
            self.show_slots(pool);
            for effect in effects {
                self.carry_out(effect);
            }
        }
    }

    /// Shows a slot table that may have changed, and whether this node is a member.
    fn show_slots(&self, pool: Option<PoolId>) {
        let is_member = self.node.incarnation(self.clock.now()).is_some();
        let table = pool.and_then(|id| Some((id, &self.node.pool(id)?.view()?.1)));
        self.ports.tables.send_if_modified(|shown| {
            let mut is_new = shown.is_member != is_member;
            shown.is_member = is_member;
            if let Some((id, table)) = table
                && shown.tables.get(&id) != Some(table)
            {
                shown.tables.insert(id, table.clone());
                is_new = true;
            }
            is_new
        });
    }

    fn carry_out(&mut self, effect: NodeEffect) {
        match effect {
            NodeEffect::Read(key) => self.read(key),
            // The new watch begins with all records.
            NodeEffect::ReadAll => self.records = self.engine.watch(None),
            NodeEffect::Write { key, number, expected, record } => self.write(key, number, expected, &record),
            NodeEffect::Joined(incarnation) => {
                info!(
                    node = self.info.name,
                    incarnation = incarnation.0,
                    "this node is a member of the cluster"
                );
            }
            NodeEffect::Lost(incarnation) => {
                warn!(
                    node = self.info.name,
                    incarnation = incarnation.0,
                    "this node has stopped being a member of the cluster"
                );
            }
            NodeEffect::ProlongPredecessor { until } => {
                self.tell_predecessor(PredecessorMessage::Prolonged { until });
            }
            NodeEffect::EndPredecessor => self.tell_predecessor(PredecessorMessage::End),
            other => self.ports.send(other),
        }
    }

    fn tell_predecessor(&self, message: PredecessorMessage) {
        if let Some(tell) = &self.predecessor {
            tell(message);
        }
    }

    fn read(&mut self, key: RecordKey) {
        // Without a session, the request fails at once.
        let (engine, session) = (self.engine.clone(), self.session.map_or(0, |it| it.number));
        self.requests.spawn(async move {
            let result = engine.read(session, &codec::key(key)).await;
            Done::Read { session, key, result }
        });
    }

    fn write(
        &mut self,
        key: RecordKey,
        number: WriteNumber,
        expected: Option<Revision>,
        record: &ClusterRecord,
    ) {
        let node = match key {
            RecordKey::Member(id) if id == self.id => {
                let load = NodeLoad { at: Some(now_ms()), ..(self.load)() };
                NodeInfo { load, ..self.info.clone() }
            }
            RecordKey::Member(id) => {
                self.members.get(&id).map(|it| it.stored.node.clone()).unwrap_or_default()
            }
            _ => NodeInfo::default(),
        };
        // The others may write what this node cannot read, so it does not join before it knows. The model tries again.
        if key == RecordKey::Member(self.id) && self.announced.is_none() {
            self.requests.spawn(async move { Done::Written { key, number, outcome: SwapOutcome::Unknown } });
            return;
        }
        let value = codec::encode(record, &node);
        let (engine, session) = (self.engine.clone(), self.session.map_or(0, |it| it.number));
        self.requests.spawn(async move {
            let outcome = match expected {
                Some(it) => engine.swap(session, &codec::key(key), it, Some(value)).await,
                // Only the model writes without an expectation.
                None => SwapOutcome::Unknown,
            };
            Done::Written { key, number, outcome }
        });
    }

    /// Publishes who is there, and sends the events about it.
    fn show(&mut self, state: &EngineState) {
        let disconnected = match state {
            EngineState::Connected(_) => None,
            EngineState::Disconnected { reason } => Some(reason.clone()),
        };
        let now = self.clock.now();
        let mut nodes: Vec<_> = self
            .members
            .iter()
            .map(|(id, seen)| self.node_view(*id, seen, disconnected.is_some(), now))
            .collect();
        if !self.members.contains_key(&self.id) {
            let (info, state) = (self.info.clone(), NodeState::Joining);
            nodes.push(NodeView {
                id: self.id,
                info,
                state,
                incarnation: None,
                last_seen: None,
                clock_offset_ms: None,
                is_own: true,
            });
        }
        nodes.sort_by(|a, b| a.info.name.cmp(&b.info.name).then(a.id.cmp(&b.id)));
        self.announce(&nodes);
        let (problem, is_unfit) = (self.problem.clone().or(self.unfit.clone()), self.unfit.is_some());
        let view = ClusterView { disconnected, problem, is_unfit, nodes };
        self.view.send_if_modified(|present| {
            let is_new = **present != view;
            *present = Arc::new(view);
            is_new
        });
    }

    fn node_view(&self, id: NodeId, seen: &Seen, is_disconnected: bool, now: BootTime) -> NodeView {
        let is_own = id == self.id;
        let record = &seen.stored.record;
        let is_ours = is_own && record.process == self.process;
        let state = match record.state {
            MemberState::Left if is_ours || !is_own => NodeState::Left,
            _ if is_own && self.node.incarnation(now).is_some() => NodeState::Alive,
            _ if is_own => NodeState::Joining,
            _ if is_disconnected => NodeState::Unknown,
            MemberState::Alive => NodeState::Alive,
            MemberState::Expired => NodeState::Expired,
            MemberState::Left => NodeState::Left,
        };
        let info = if is_own {
            NodeInfo { load: seen.stored.node.load, ..self.info.clone() }
        } else {
            seen.stored.node.clone()
        };
        let incarnation = Some(record.incarnation_at(seen.revision));
        let clock_offset_ms = seen.clock.ahead_ms().filter(|_| !is_own && state == NodeState::Alive);
        NodeView { id, info, state, incarnation, last_seen: Some(seen.at), clock_offset_ms, is_own }
    }

    /// Sends an event for each node whose state has changed.
    fn announce(&mut self, nodes: &[NodeView]) {
        let Some(announced) = &mut self.announced else { return };
        let is_first = announced.is_empty();
        for node in nodes {
            // Joining and not knowing are states of this node, which health reports.
            let is_state = matches!(node.state, NodeState::Alive | NodeState::Expired | NodeState::Left);
            if !is_state || announced.insert(node.id, node.state) == Some(node.state) {
                continue;
            }
            // Those that were there before this node are known.
            if !is_first || node.is_own {
                let (name, state) = (node.info.name.clone(), node.state.as_str());
                let (at, id) = (now_ms(), id_of_state(node));
                self.events
                    .emit_seen_by_all(id, Event { at, body: EventBody::NodeState { node: name, state } });
            }
        }
    }
}

/// Returns the id of the event that a node has a state, which is the same on all nodes.
fn id_of_state(node: &NodeView) -> Uuid {
    let incarnation = node.incarnation.map_or(0, |it| it.0);
    // Numbers of incarnations begin again if NATS loses its data, but hardly on the same day.
    let text = format!(
        "headwater:node_state:{}:{incarnation}:{}:{}",
        node.id.0,
        node.state.as_str(),
        now_ms() / DAY_MS
    );
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes())
}
