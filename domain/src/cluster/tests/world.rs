//! One schedule: machines with clocks of their own, a network, the engine, the provider, and what goes wrong.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::engine::Engine;
use super::provider::Provider;
use super::random::Random;
use crate::cluster::owner::ChannelRole;
use crate::cluster::record::{
    BootId, ClusterRecord, Incarnation, JobName, LeaseId, MemberState, NodeId, PoolId, ProcessId, RecordKey,
    Revision, SlotPurpose, SlotState,
};
use crate::cluster::rules::{ClusterRule, ClusterRules};
use crate::cluster::slots::SlotRequest;
use crate::cluster::{BootTime, ClusterNode, NodeEffect, NodeInput, SwapOutcome, WriteNumber};
use crate::ids::{AccountId, ProfileId, ServerGroupId};
use crate::plan::{SharedPool, SlotPool};

/// Time without an answer after which a request has failed, or has an unknown outcome, in milliseconds.
const ENGINE_TIMEOUT_MS: u64 = 2_000;
/// Time at which the last fault ends.
const FAULTS_END_MS: u64 = 70_000;
/// Time at which the last viewer leaves.
const SESSIONS_END_MS: u64 = 95_000;
/// Time at which everything must have recovered: the faults, a take-over, and the cooling of lost leases.
const RECOVERED_MS: u64 = 138_000;
/// Time within which the requests after that must be granted.
const END_MS: u64 = RECOVERED_MS + 20_000;

const POOL: PoolId = PoolId::Group(ServerGroupId(1));
const CHANNEL: Uuid = Uuid::from_u128(7);
const JOB: JobName = JobName::Importer;

/// Runs one schedule. Returns the first violation.
pub(super) fn run(seed: u64, broken: Option<ClusterRule>) -> Result<(), String> {
    let mut world = World::new(seed, broken);
    world.run();
    world.violation.map_or(Ok(()), Err)
}

/// Anything that happens at a time.
#[derive(Debug)]
enum Event {
    /// A write reaches the engine.
    Apply {
        write: Rc<Write>,
        reply: Reply,
    },
    /// A read reaches the engine.
    Serve {
        from: Sender,
        key: RecordKey,
    },
    /// An input reaches a process.
    Input {
        to: Sender,
        input: Box<NodeInput>,
    },
    /// A record reaches a process, over a connection that may be gone.
    Deliver {
        to: Sender,
        key: RecordKey,
        revision: Revision,
        record: Option<Rc<ClusterRecord>>,
        is_reply: bool,
    },
    Tick {
        machine: usize,
        process: ProcessId,
    },
    /// A machine connects to the engine again.
    Connect(usize),
    NewSession(usize),
    EndSession {
        machine: usize,
        process: ProcessId,
        lease: u64,
    },
    SocketClosed {
        machine: usize,
        process: ProcessId,
        lease: u64,
    },
    AskedToYield {
        machine: usize,
        lease: LeaseId,
        from: Sender,
        asked_by: u64,
    },
    PullTried {
        machine: usize,
        process: ProcessId,
        from: usize,
        epoch: u64,
        is_last: bool,
    },
    Fault {
        fault: Fault,
        machine: usize,
        is_over: bool,
    },
    /// The guard looks at a process that was frozen at this time.
    Guard {
        machine: usize,
        frozen_at: u64,
    },
    Start(usize),
    Probe,
    Check,
}

/// A write on its way.
#[derive(Debug)]
struct Write {
    from: Sender,
    sent_at: u64,
    n_restarts: u64,
    key: RecordKey,
    number: WriteNumber,
    expected: Option<Revision>,
    record: Rc<ClusterRecord>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Sent,
    Lost,
}

/// A process and its connection to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sender {
    machine: usize,
    process: ProcessId,
    connection: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The machine does not reach the engine.
    Cut,
    /// Its messages to and from the engine become slow, and are lost after some seconds.
    Fading,
    /// Its messages to and from the engine take up to two seconds.
    Slow,
    /// Its messages are lost now and then.
    Lossy,
    /// It does not reach the other machines.
    Alone,
    /// Its process is killed, and starts again at the end.
    Killed,
    /// Its process is killed, and starts again at once.
    Restarted,
    /// It loses power, and boots again at the end.
    PowerLost,
    /// It loses power and stays away.
    Gone,
    /// Its process is stopped by a signal.
    Frozen,
    Suspended,
    /// Its wall clock jumps.
    ClockJump,
    /// The engine replaces its leader.
    EngineDown,
    /// The engine restarts.
    EngineRestart,
    /// The engine restarts, and has lost its last writes.
    EngineRollback,
}

const FAULTS: [Fault; 15] = [
    Fault::Cut,
    Fault::Fading,
    Fault::Slow,
    Fault::Lossy,
    Fault::Alone,
    Fault::Killed,
    Fault::Restarted,
    Fault::PowerLost,
    Fault::Gone,
    Fault::Frozen,
    Fault::Suspended,
    Fault::ClockJump,
    Fault::EngineDown,
    Fault::EngineRestart,
    Fault::EngineRollback,
];

impl Fault {
    /// Connections of the machine may outlast their leases at the provider. Only their entries, which cool, count then.
    fn vanishes(self) -> bool {
        matches!(self, Self::PowerLost | Self::Gone | Self::Suspended)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Power {
    On,
    /// The process is stopped; the machine works.
    Frozen,
    Suspended,
    Off,
}

struct Machine {
    /// Speed of its clock, per thousand.
    rate: u64,
    booted_at: u64,
    boot: BootId,
    power: Power,
    /// Time since which it is frozen or suspended, and the end of the last such time.
    stopped_at: u64,
    woke_at: u64,
    /// Total time of suspend, which only a broken clock leaves out.
    suspended_ms: u64,
    /// Jump of the wall clock, which only a broken clock shows.
    jump_ms: i64,
    process: Option<Process>,
    is_cut: bool,
    is_slow: bool,
    is_lossy: bool,
    is_alone: bool,
    is_connected: bool,
    connection: u64,
    /// The events that arrived while the process was stopped.
    inbox: Vec<Event>,
}

struct Process {
    id: ProcessId,
    node: ClusterNode,
    sessions: BTreeMap<u64, Session>,
    last_lease: u64,
    tick_at: u64,
    /// The number of restarts of the engine that it knows of. None: it was never connected.
    n_restarts: Option<u64>,
}

/// A viewer that needs a connection.
struct Session {
    order: Arc<[SlotPool]>,
    /// The index of the granted candidate.
    granted: Option<(usize, Incarnation)>,
    is_closing: bool,
    is_probe: bool,
}

struct Scheduled {
    at: u64,
    serial: u64,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.serial == other.serial
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.serial).cmp(&(self.at, self.serial))
    }
}

struct World {
    random: Random,
    broken: Option<ClusterRule>,
    now: u64,
    serial: u64,
    queue: BinaryHeap<Scheduled>,
    engine: Engine,
    provider: Provider,
    machines: Vec<Machine>,
    pools: Vec<SlotPool>,
    last_process: u64,
    n_probes_granted: usize,
    violation: Option<String>,
    /// Prints what happens; for the replay of a single schedule.
    is_traced: bool,
}

impl World {
    fn new(seed: u64, broken: Option<ClusterRule>) -> Self {
        let mut random = Random::new(seed);
        let n_machines = random.of(2..4) as usize;
        let release_delay = Duration::from_millis([0, 500, 2_000, 5_000][random.of(0..4) as usize]);
        let group_max = random.of(0..3) as u32;
        let accounts: Arc<[AccountId]> = [AccountId(1), AccountId(2)].into();
        let pool = |id: u32, max_streams: u32| SlotPool {
            account: AccountId(id),
            account_name: String::new(),
            profile: ProfileId(id),
            max_streams,
            release_delay,
            changed_at: 0,
            shared: Some(SharedPool {
                group: ServerGroupId(1),
                name: String::new(),
                max_streams: group_max,
                accounts: accounts.clone(),
            }),
        };
        let pools = vec![pool(1, 1), pool(2, random.of(1..3) as u32)];
        let machines = (0..n_machines)
            .map(|it| Machine {
                rate: [900, 900, 1_000, 1_000, 1_100, 1_100][random.of(0..6) as usize],
                booted_at: 0,
                boot: BootId(Uuid::from_u128(it as u128)),
                power: Power::Off,
                stopped_at: 0,
                woke_at: 0,
                suspended_ms: 0,
                jump_ms: 0,
                process: None,
                is_cut: false,
                is_slow: false,
                is_lossy: false,
                is_alone: false,
                is_connected: false,
                connection: 0,
                inbox: Vec::new(),
            })
            .collect();
        let mut world = Self {
            random,
            broken,
            now: 0,
            serial: 0,
            queue: BinaryHeap::new(),
            engine: Engine::default(),
            provider: Provider::default(),
            machines,
            pools,
            last_process: 0,
            n_probes_granted: 0,
            violation: None,
            is_traced: std::env::var_os("CLUSTER_TRACE").is_some(),
        };
        world.plan();
        world
    }

    /// Schedules the start of the machines, the faults, and the checks at the end.
    fn plan(&mut self) {
        for machine in 0..self.machines.len() {
            let at = self.random.of(0..4_000);
            self.machines[machine].power = Power::On;
            self.at(at, Event::Start(machine));
            let first = self.random.of(2_000..25_000);
            self.at(first, Event::NewSession(machine));
            // Whatever happened, a machine with power runs in the end.
            self.at(FAULTS_END_MS + 500, Event::Start(machine));
        }
        let mut may_go = true;
        // No rule covers a machine that vanishes while the engine loses the entries of its leases.
        let may_vanish = self.random.permille(500);
        for _ in 0..self.random.of(1..6) {
            let fault = FAULTS[self.random.of(0..FAULTS.len() as u64) as usize];
            let machine = self.random.of(0..self.machines.len() as u64) as usize;
            let at = self.random.of(12_000..FAULTS_END_MS - 10_000);
            let length = match fault {
                Fault::Fading => 20_000..40_000,
                _ if self.random.permille(500) => 200..8_000,
                _ => 200..40_000,
            };
            let until = (at + self.random.of(length)).min(FAULTS_END_MS);
            let is_excluded = if may_vanish { fault == Fault::EngineRollback } else { fault.vanishes() };
            if is_excluded {
                continue;
            }
            if fault == Fault::Gone && !std::mem::take(&mut may_go) {
                continue;
            }
            self.at(at, Event::Fault { fault, machine, is_over: false });
            if fault != Fault::Gone {
                self.at(until, Event::Fault { fault, machine, is_over: true });
            }
        }
        self.at(RECOVERED_MS, Event::Probe);
        self.at(END_MS, Event::Check);
    }

    fn run(&mut self) {
        while let Some(Scheduled { at, event, .. }) = self.queue.pop() {
            self.now = at;
            let is_end = matches!(event, Event::Check);
            self.happens(event);
            if is_end || self.violation.is_some() {
                return;
            }
        }
    }

    fn at(&mut self, at: u64, event: Event) {
        self.serial += 1;
        self.queue.push(Scheduled { at, serial: self.serial, event });
    }

    fn after(&mut self, delay: u64, event: Event) {
        self.at(self.now + delay, event);
    }

    fn violated(&mut self, text: String) {
        let now = self.now;
        self.violation.get_or_insert_with(|| format!("at {now} ms: {text}"));
    }

    fn holds(&self, rule: ClusterRule) -> bool {
        self.broken != Some(rule)
    }

    fn happens(&mut self, event: Event) {
        if self.is_traced && matches!(event, Event::Fault { .. } | Event::Start(_)) {
            println!("{} ms: {event:?}", self.now);
        }
        if let Some(machine) = receiver(&event)
            && matches!(self.machines[machine].power, Power::Frozen | Power::Suspended)
        {
            self.machines[machine].inbox.push(event);
            return;
        }
        match event {
            Event::Apply { write, reply } => self.apply(&write, reply),
            Event::Serve { from, key } => self.serve(from, key),
            Event::Input { to, input } => {
                if self.is_running(to.machine, to.process) {
                    self.input(to.machine, *input);
                }
            }
            Event::Deliver { to, key, revision, record, is_reply } => {
                let is_connected = self.machines[to.machine].connection == to.connection;
                let is_running = self.is_running(to.machine, to.process);
                if is_running && is_connected {
                    let record = record.map(|it| (*it).clone());
                    self.input(to.machine, NodeInput::Seen { key, revision, record });
                } else if is_running && is_reply {
                    self.input(to.machine, NodeInput::ReadFailed(key));
                }
            }
            Event::Tick { machine, process } => {
                let is_due = |it: &Process| it.id == process && it.tick_at <= self.now;
                if self.machines[machine].process.as_ref().is_some_and(is_due) {
                    self.input(machine, NodeInput::Tick);
                }
            }
            Event::Connect(machine) => self.connect(machine),
            Event::NewSession(machine) => self.new_session(machine),
            Event::EndSession { machine, process, lease } => self.end_session(machine, process, lease),
            Event::SocketClosed { machine, process, lease } => self.socket_closed(machine, process, lease),
            Event::AskedToYield { machine, lease, from, asked_by } => {
                self.asked_to_yield(machine, lease, from, asked_by);
            }
            Event::PullTried { machine, process, from, epoch, is_last } => {
                self.pull_tried(machine, process, from, epoch, is_last);
            }
            Event::Fault { fault, machine, is_over: false } => self.begin(fault, machine),
            Event::Fault { fault, machine, is_over: true } => self.end(fault, machine),
            Event::Guard { machine, frozen_at } => {
                let it = &self.machines[machine];
                if it.power == Power::Frozen && it.stopped_at == frozen_at {
                    self.kill(machine);
                    self.machines[machine].power = Power::On;
                    self.after(1_000, Event::Start(machine));
                }
            }
            Event::Start(machine) => self.start(machine),
            Event::Probe => self.probe(),
            Event::Check => self.check(),
        }
    }

    // Clocks.

    fn clock(&self, machine: usize) -> BootTime {
        let it = &self.machines[machine];
        let mut elapsed = self.now - it.booted_at;
        if !self.holds(ClusterRule::SuspendCounts) {
            elapsed -= it.suspended_ms;
        }
        let mut ms = elapsed * it.rate / 1_000 + 100_000;
        if !self.holds(ClusterRule::MonotonicClock) {
            ms = ms.saturating_add_signed(it.jump_ms);
        }
        BootTime(Duration::from_millis(ms))
    }

    /// Schedules the next tick of a process, unless an earlier one is scheduled.
    fn schedule_tick(&mut self, machine: usize) {
        let now = self.clock(machine);
        let it = &mut self.machines[machine];
        let rate = it.rate;
        let Some(process) = &mut it.process else { return };
        let Some(deadline) = process.node.deadline() else { return };
        let left = deadline.since(now).as_millis() as u64;
        let at = self.now + (left * 1_000).div_ceil(rate).max(1);
        if process.tick_at <= self.now || at < process.tick_at {
            process.tick_at = at;
            let process = process.id;
            self.at(at, Event::Tick { machine, process });
        }
    }

    // Processes.

    fn is_running(&self, machine: usize, process: ProcessId) -> bool {
        self.machines[machine].process.as_ref().is_some_and(|it| it.id == process)
    }

    fn sender(&self, machine: usize) -> Option<Sender> {
        let it = &self.machines[machine];
        let process = it.process.as_ref()?.id;
        Some(Sender { machine, process, connection: it.connection })
    }

    fn start(&mut self, machine: usize) {
        if self.machines[machine].power != Power::On || self.machines[machine].process.is_some() {
            return;
        }
        self.last_process += 1;
        let id = ProcessId(self.last_process);
        let rules = ClusterRules { broken: self.broken };
        let now = self.clock(machine);
        let boot = self.machines[machine].boot;
        let node = ClusterNode::new(NodeId(machine as u32), boot, id, rules, now);
        let (sessions, tick_at) = (BTreeMap::new(), self.now);
        self.machines[machine].process =
            Some(Process { id, node, sessions, last_lease: 0, tick_at, n_restarts: None });
        self.machines[machine].is_connected = false;
        self.connect(machine);
        self.input(machine, NodeInput::Tick);
        let is_wanted = true;
        let may_originate = true;
        self.input(machine, NodeInput::WantChannel { channel: CHANNEL, is_wanted, may_originate });
        self.input(machine, NodeInput::WantJob { job: JOB, is_wanted });
    }

    /// Ends a process; the kernel closes its connections.
    fn kill(&mut self, machine: usize) {
        if let Some(process) = self.machines[machine].process.take() {
            self.provider.process_ended(process.id, self.now);
        }
        self.machines[machine].inbox.clear();
    }

    fn connect(&mut self, machine: usize) {
        let it = &mut self.machines[machine];
        if it.is_connected || it.is_cut || it.process.is_none() {
            return;
        }
        if self.now < self.engine.down_until {
            let at = self.engine.down_until + self.random.of(1..500);
            return self.at(at, Event::Connect(machine));
        }
        it.is_connected = true;
        it.connection += 1;
        let Some(process) = &mut it.process else { return };
        let before = process.n_restarts.replace(self.engine.n_restarts);
        if before.is_some_and(|it| it != self.engine.n_restarts) {
            self.input(machine, NodeInput::EngineRestarted);
        } else {
            self.deliver_all(machine);
        }
    }

    fn disconnect(&mut self, machine: usize) {
        let it = &mut self.machines[machine];
        it.is_connected = false;
        it.connection += 1;
    }

    fn deliver_all(&mut self, machine: usize) {
        for key in self.engine.keys() {
            let (revision, record) = self.engine.present(key);
            self.deliver(machine, key, revision, record);
        }
    }

    fn deliver(
        &mut self,
        machine: usize,
        key: RecordKey,
        revision: Revision,
        record: Option<Rc<ClusterRecord>>,
    ) {
        let Some(to) = self.sender(machine) else { return };
        if !self.machines[machine].is_connected {
            return;
        }
        let delay = self.delay(machine);
        // A follower of the engine may be late.
        let lag = if self.random.permille(30) { self.random.of(100..3_000) } else { 0 };
        self.after(delay + lag, Event::Deliver { to, key, revision, record, is_reply: false });
    }

    /// Returns the time of one message between a machine and the engine.
    fn delay(&mut self, machine: usize) -> u64 {
        if self.machines[machine].is_slow { self.random.of(10..1_900) } else { self.random.of(1..20) }
    }

    /// Gives a process an input, and carries out the effects.
    fn input(&mut self, machine: usize, input: NodeInput) {
        let now = self.clock(machine);
        let Some(process) = &mut self.machines[machine].process else { return };
        let id = process.id;
        let text = self.is_traced.then(|| format!("{input:?}"));
        let effects = process.node.on(input, now);
        if let Some(text) = text.filter(|it| it != "Tick" || !effects.is_empty()) {
            println!("{} ms, machine {machine}, {id:?}, {now:?}: {text}\n    {effects:?}", self.now);
        }
        for effect in effects {
            if self.violation.is_none() && self.is_running(machine, id) {
                self.carry_out(machine, id, effect);
            }
        }
        self.schedule_tick(machine);
    }

    fn carry_out(&mut self, machine: usize, process: ProcessId, effect: NodeEffect) {
        match effect {
            NodeEffect::Read(key) => self.read(machine, key),
            NodeEffect::ReadAll => self.deliver_all(machine),
            NodeEffect::Write { key, number, expected, record } => {
                self.write(machine, key, number, expected, record);
            }
            NodeEffect::Joined(_) | NodeEffect::Lost(_) => {}
            NodeEffect::Granted { lease, index, .. } => self.granted(machine, lease, index),
            NodeEffect::Refused { lease, .. } => {
                if let Some(process) = &mut self.machines[machine].process {
                    process.sessions.remove(&lease);
                }
            }
            NodeEffect::Close { lease, .. } => self.close(machine, process, lease),
            NodeEffect::AskToYield { node, lease, asked_by, .. } => {
                let Some(from) = self.sender(machine) else { return };
                let to = node.0 as usize;
                if self.is_linked(machine, to) {
                    let delay = self.random.of(1..20);
                    self.after(delay, Event::AskedToYield { machine: to, lease, from, asked_by });
                }
            }
            NodeEffect::Originate { epoch, .. } => self.originates(machine, epoch),
            NodeEffect::Pull { from, epoch, .. } => {
                let delay = self.random.of(1..50);
                let from = from.0 as usize;
                self.after(delay, Event::PullTried { machine, process, from, epoch, is_last: false });
            }
            NodeEffect::ReleaseSource { .. } | NodeEffect::StopJob { .. } => {}
            NodeEffect::RunJob { .. } => self.runs_job(machine),
        }
    }

    // The engine.

    fn read(&mut self, machine: usize, key: RecordKey) {
        let Some(from) = self.sender(machine) else { return };
        let it = &self.machines[machine];
        let is_lost = !it.is_connected || it.is_lossy && self.random.permille(200);
        if is_lost || self.now < self.engine.down_until {
            let input = Box::new(NodeInput::ReadFailed(key));
            return self.after(ENGINE_TIMEOUT_MS, Event::Input { to: from, input });
        }
        let delay = self.delay(machine);
        self.after(delay, Event::Serve { from, key });
    }

    fn serve(&mut self, from: Sender, key: RecordKey) {
        let it = &self.machines[from.machine];
        if !it.is_connected || it.connection != from.connection || self.now < self.engine.down_until {
            let input = Box::new(NodeInput::ReadFailed(key));
            return self.after(ENGINE_TIMEOUT_MS, Event::Input { to: from, input });
        }
        let lag = if self.random.permille(100) { self.random.of(0..12) as usize } else { 0 };
        let (revision, record) = self.engine.read(key, self.engine.len().saturating_sub(lag));
        let delay = self.delay(from.machine);
        self.after(delay, Event::Deliver { to: from, key, revision, record, is_reply: true });
    }

    fn write(
        &mut self,
        machine: usize,
        key: RecordKey,
        number: WriteNumber,
        expected: Option<Revision>,
        record: ClusterRecord,
    ) {
        let Some(from) = self.sender(machine) else { return };
        let (sent_at, n_restarts) = (self.now, self.engine.n_restarts);
        let record = Rc::new(record);
        let write = Rc::new(Write { from, sent_at, n_restarts, key, number, expected, record });
        let it = &self.machines[machine];
        let is_lossy = it.is_lossy;
        if !it.is_connected || is_lossy && self.random.permille(150) {
            return self.unknown(&write);
        }
        let delay = self.delay(machine);
        let chance = if is_lossy { 10 } else { 1 };
        if self.random.permille(15 * chance) {
            // The reply is lost.
            self.unknown(&write);
            self.after(delay, Event::Apply { write, reply: Reply::Lost });
        } else if self.random.permille(8 * chance) {
            // It is applied seconds after the time-out.
            self.unknown(&write);
            let late = self.random.of(ENGINE_TIMEOUT_MS..25_000);
            self.after(late, Event::Apply { write, reply: Reply::Lost });
        } else if self.random.permille(10 * chance) {
            // It arrives twice, and the reply to the second one is sent.
            let again = delay + self.random.of(1..900);
            self.after(delay, Event::Apply { write: write.clone(), reply: Reply::Lost });
            self.after(again, Event::Apply { write, reply: Reply::Sent });
        } else {
            self.after(delay, Event::Apply { write, reply: Reply::Sent });
        }
    }

    /// The sender of a write learns nothing about it.
    fn unknown(&mut self, write: &Write) {
        let (key, number, outcome) = (write.key, write.number, SwapOutcome::Unknown);
        let input = Box::new(NodeInput::Written { key, number, outcome });
        let at = (write.sent_at + ENGINE_TIMEOUT_MS).max(self.now);
        self.at(at, Event::Input { to: write.from, input });
    }

    fn apply(&mut self, write: &Write, reply: Reply) {
        if self.now < self.engine.down_until || write.n_restarts != self.engine.n_restarts {
            if reply == Reply::Sent {
                self.unknown(write);
            }
            return;
        }
        let applied = self.engine.swap(write.key, write.expected, write.record.clone());
        if reply == Reply::Sent {
            let it = &self.machines[write.from.machine];
            let is_connected = it.is_connected && it.connection == write.from.connection;
            let delay = self.delay(write.from.machine);
            if !is_connected || self.now + delay > write.sent_at + ENGINE_TIMEOUT_MS {
                self.unknown(write);
            } else {
                let outcome = applied.map_or(SwapOutcome::Conflict, SwapOutcome::Applied);
                let (key, number) = (write.key, write.number);
                let input = Box::new(NodeInput::Written { key, number, outcome });
                self.after(delay, Event::Input { to: write.from, input });
            }
        }
        let Some(revision) = applied else { return };
        for machine in 0..self.machines.len() {
            self.deliver(machine, write.key, revision, Some(write.record.clone()));
        }
        match &*write.record {
            ClusterRecord::Member(it) if it.state == MemberState::Expired => self.expired(write.key, it.over),
            ClusterRecord::Pool(_) => self.check_leases(),
            _ => {}
        }
    }

    // Viewers.

    fn new_session(&mut self, machine: usize) {
        if self.now >= FAULTS_END_MS {
            return;
        }
        let mut order: Vec<_> = self.pools.clone();
        if self.random.permille(500) {
            order.reverse();
        }
        if self.random.permille(400) {
            order.truncate(1);
        }
        let wait = self.random.of(500..6_000);
        self.ask(machine, order.into(), wait, false);
        let next = self.random.of(300..9_000);
        self.after(next, Event::NewSession(machine));
    }

    fn ask(&mut self, machine: usize, order: Arc<[SlotPool]>, wait_ms: u64, is_probe: bool) {
        let until = self.clock(machine) + Duration::from_millis(wait_ms);
        let may_wait = is_probe || self.random.permille(800);
        let Some(process) = &mut self.machines[machine].process else { return };
        process.last_lease += 1;
        let lease = process.last_lease;
        let session = Session { order: order.clone(), granted: None, is_closing: false, is_probe };
        process.sessions.insert(lease, session);
        let request = SlotRequest { order, holder: lease, purpose: SlotPurpose::Live, may_wait, until };
        self.input(machine, NodeInput::Ask { pool: POOL, lease, request });
        if self.random.permille(50) && !is_probe {
            let is_waiting = |it: &Process| it.sessions.get(&lease).is_some_and(|it| it.granted.is_none());
            if self.machines[machine].process.as_ref().is_some_and(is_waiting) {
                if let Some(process) = &mut self.machines[machine].process {
                    process.sessions.remove(&lease);
                }
                self.input(machine, NodeInput::Cancel { pool: POOL, lease });
            }
        }
    }

    fn granted(&mut self, machine: usize, lease: u64, index: usize) {
        let now = self.clock(machine);
        let length = if self.random.permille(300) {
            self.random.of(20_000..50_000)
        } else {
            self.random.of(300..15_000)
        };
        let length = length.min(SESSIONS_END_MS.saturating_sub(self.now));
        let Some(process) = &mut self.machines[machine].process else { return };
        let id = process.id;
        let Some(incarnation) = process.node.incarnation(now) else {
            return self
                .violated(format!("machine {machine} was granted lease {lease} without being a member"));
        };
        let Some(session) = process.sessions.get_mut(&lease) else {
            return self
                .violated(format!("machine {machine} was granted lease {lease}, which it does not need"));
        };
        session.granted = Some((index, incarnation));
        if session.is_probe {
            self.n_probes_granted += 1;
        }
        let length = if session.is_probe { 100 } else { length };
        self.open(machine, lease);
        self.after(length, Event::EndSession { machine, process: id, lease });
    }

    /// Opens the connection of a lease, or opens it again after the provider dropped it.
    fn open(&mut self, machine: usize, lease: u64) {
        let Some(process) = &self.machines[machine].process else { return };
        let Some(session) = process.sessions.get(&lease) else { return };
        let Some((index, incarnation)) = session.granted else { return };
        let opened =
            self.provider.open(machine, (process.id, lease), incarnation, &session.order[index], self.now);
        if let Err(text) = opened {
            self.violated(text);
        }
    }

    fn end_session(&mut self, machine: usize, process: ProcessId, lease: u64) {
        if !self.is_running(machine, process) {
            return;
        }
        let Some(process) = &mut self.machines[machine].process else { return };
        let Some(session) = process.sessions.get_mut(&lease) else { return };
        if session.is_closing || session.granted.is_none() {
            return;
        }
        session.is_closing = true;
        let id = process.id;
        self.input(machine, NodeInput::Closing { pool: POOL, lease });
        let delay = self.random.of(0..450);
        self.after(delay, Event::SocketClosed { machine, process: id, lease });
    }

    fn close(&mut self, machine: usize, process: ProcessId, lease: u64) {
        let Some(it) = &mut self.machines[machine].process else { return };
        let Some(session) = it.sessions.get_mut(&lease) else { return };
        if !std::mem::replace(&mut session.is_closing, true) {
            let delay = self.random.of(0..450);
            self.after(delay, Event::SocketClosed { machine, process, lease });
        }
    }

    fn socket_closed(&mut self, machine: usize, process: ProcessId, lease: u64) {
        // The kernel has closed the connections of a process that ended; a machine without power closes nothing.
        if !self.is_running(machine, process) {
            return;
        }
        self.provider.close(process, lease, self.now);
        if let Some(it) = &mut self.machines[machine].process {
            it.sessions.remove(&lease);
        }
        self.input(machine, NodeInput::Returned { pool: POOL, lease });
    }

    fn asked_to_yield(&mut self, machine: usize, lease: LeaseId, from: Sender, asked_by: u64) {
        if !self.is_running(machine, lease.process) {
            return;
        }
        if self.random.permille(400) {
            self.end_session(machine, lease.process, lease.number);
        } else if self.random.permille(900) && self.is_linked(machine, from.machine) {
            let input = Box::new(NodeInput::Kept { pool: POOL, asked_by, by: lease });
            let delay = self.random.of(1..20);
            self.after(delay, Event::Input { to: from, input });
        }
    }

    fn is_linked(&self, one: usize, other: usize) -> bool {
        one == other || !self.machines[one].is_alone && !self.machines[other].is_alone
    }

    // Channels and jobs.

    fn role(&self, machine: usize) -> Option<ChannelRole> {
        Some(self.machines[machine].process.as_ref()?.node.channel(CHANNEL)?.role())
    }

    fn originates(&mut self, machine: usize, epoch: u64) {
        let is_other = |it: &usize| {
            *it != machine
                && self.machines[*it].power == Power::On
                && self.role(*it) == Some(ChannelRole::Origin { epoch })
        };
        if let Some(other) = (0..self.machines.len()).find(is_other) {
            self.violated(format!("machines {other} and {machine} are both the origin of epoch {epoch}"));
        }
    }

    fn pull_tried(&mut self, machine: usize, process: ProcessId, from: usize, epoch: u64, is_last: bool) {
        if !self.is_running(machine, process) {
            return;
        }
        let is_origin = self.machines[from].power == Power::On
            && self.role(from) == Some(ChannelRole::Origin { epoch })
            && self.is_linked(machine, from);
        let is_edge = self.role(machine) == Some(ChannelRole::Edge { from: NodeId(from as u32), epoch });
        if !is_origin && is_last {
            return self.input(machine, NodeInput::PullLost { channel: CHANNEL, epoch });
        }
        if is_origin && !is_edge {
            self.input(machine, NodeInput::Pulled { channel: CHANNEL, epoch });
        }
        // The pull is looked at once a second; a loss of one second is reported.
        let is_last = !is_origin;
        let from_node = NodeId(from as u32);
        let pulls = |it: Option<ChannelRole>| match it {
            Some(
                ChannelRole::Pulling { from, epoch: present, .. }
                | ChannelRole::Edge { from, epoch: present },
            ) => from == from_node && present == epoch,
            _ => false,
        };
        if pulls(self.role(machine)) {
            self.after(1_000, Event::PullTried { machine, process, from, epoch, is_last });
        }
    }

    fn runs_job(&mut self, machine: usize) {
        let runs = |it: &Machine| {
            let job = it.process.as_ref().and_then(|it| it.node.job(JOB));
            it.power == Power::On && job.is_some_and(|it| it.running().is_some())
        };
        let other = (0..self.machines.len()).find(|it| *it != machine && runs(&self.machines[*it]));
        let is_unsettled = self.engine.restarted_at.is_some_and(|it| self.now < it + 40_000);
        if let Some(other) = other.filter(|_| !is_unsettled) {
            self.violated(format!("machines {other} and {machine} both run the job"));
        }
    }

    // Faults.

    fn begin(&mut self, fault: Fault, machine: usize) {
        let now = self.now;
        let is_of_process = matches!(fault, Fault::Killed | Fault::Restarted);
        match self.machines[machine].power {
            Power::Off => return,
            Power::Suspended if is_of_process => return,
            _ => {}
        }
        match fault {
            Fault::Cut => {
                self.machines[machine].is_cut = true;
                self.disconnect(machine);
            }
            Fault::Fading => {
                self.machines[machine].is_slow = true;
                let delay = self.random.of(1_000..8_000);
                self.after(delay, Event::Fault { fault: Fault::Cut, machine, is_over: false });
            }
            Fault::Slow => self.machines[machine].is_slow = true,
            Fault::Lossy => self.machines[machine].is_lossy = true,
            Fault::Alone => self.machines[machine].is_alone = true,
            Fault::Killed | Fault::Restarted => {
                self.kill(machine);
                if self.machines[machine].power == Power::Frozen {
                    self.machines[machine].power = Power::On;
                }
                if fault == Fault::Restarted {
                    let delay = self.random.of(100..2_000);
                    self.after(delay, Event::Start(machine));
                }
            }
            Fault::PowerLost | Fault::Gone => {
                self.provider.machine_vanished(machine, now);
                let it = &mut self.machines[machine];
                it.process = None;
                it.inbox.clear();
                it.power = Power::Off;
            }
            Fault::Frozen | Fault::Suspended => {
                let it = &mut self.machines[machine];
                if it.power != Power::On {
                    return;
                }
                it.stopped_at = now;
                if fault == Fault::Suspended {
                    it.power = Power::Suspended;
                    self.provider.machine_vanished(machine, now);
                } else {
                    it.power = Power::Frozen;
                    let rate = it.rate;
                    let clock = self.clock(machine);
                    let process = self.machines[machine].process.as_ref();
                    let left = process.map_or(Duration::ZERO, |it| it.node.guard_at(clock).since(clock));
                    let limit = left.as_millis() as u64 * 1_000 / rate;
                    if self.holds(ClusterRule::GuardKillsFrozen) {
                        self.after(limit, Event::Guard { machine, frozen_at: now });
                    }
                }
            }
            Fault::ClockJump => {
                let jump = self.random.of(0..60_000) as i64 - 30_000;
                self.machines[machine].jump_ms += jump;
                self.input_if_on(machine);
            }
            Fault::EngineDown => {
                self.engine.down_until = now + self.random.of(1_000..8_000);
            }
            Fault::EngineRestart | Fault::EngineRollback => {
                let n_lost = if fault == Fault::EngineRollback { self.random.of(1..40) as usize } else { 0 };
                self.engine.restart(n_lost, now);
                self.engine.down_until = now + self.random.of(200..6_000);
                for machine in 0..self.machines.len() {
                    self.disconnect(machine);
                    let delay = if self.random.permille(700) { 500 } else { 15_000 };
                    let at = self.engine.down_until + self.random.of(1..delay);
                    self.at(at, Event::Connect(machine));
                }
            }
        }
    }

    fn end(&mut self, fault: Fault, machine: usize) {
        match fault {
            Fault::Cut | Fault::Fading => {
                self.machines[machine].is_slow &= fault != Fault::Fading;
                self.machines[machine].is_cut = false;
                let delay = self.random.of(1..1_000);
                self.after(delay, Event::Connect(machine));
            }
            Fault::Slow => self.machines[machine].is_slow = false,
            Fault::Lossy => self.machines[machine].is_lossy = false,
            Fault::Alone => self.machines[machine].is_alone = false,
            Fault::Killed => self.start(machine),
            Fault::PowerLost if self.machines[machine].power == Power::Off => {
                self.last_process += 1;
                let boot = BootId(Uuid::from_u128(1_000 + u128::from(self.last_process)));
                let now = self.now;
                let it = &mut self.machines[machine];
                (it.boot, it.booted_at, it.suspended_ms, it.power) = (boot, now, 0, Power::On);
                self.start(machine);
            }
            Fault::Frozen if self.machines[machine].power == Power::Frozen => self.wake(machine),
            Fault::Suspended if self.machines[machine].power == Power::Suspended => {
                let it = &mut self.machines[machine];
                it.suspended_ms += self.now - it.stopped_at;
                if let Some(process) = &it.process {
                    self.provider.process_resumed(process.id, self.now);
                }
                self.wake(machine);
            }
            _ => {}
        }
    }

    /// Lets a stopped process continue: it processes what has arrived in the meantime, and misses what is lost.
    fn wake(&mut self, machine: usize) {
        let now = self.now;
        let it = &mut self.machines[machine];
        (it.power, it.woke_at) = (Power::On, now);
        let inbox = std::mem::take(&mut self.machines[machine].inbox);
        for event in inbox {
            self.happens(event);
        }
        self.input_if_on(machine);
        let Some(process) = &self.machines[machine].process else { return };
        let id = process.id;
        let dropped = process.sessions.iter().filter(|(lease, it)| {
            let is_open = self.provider.is_open(id, **lease);
            !is_open && !it.is_closing && it.granted.is_some()
        });
        let held = process.node.pool(POOL);
        let holds = |lease: &u64| held.is_some_and(|it| it.holds(*lease));
        let dropped: Vec<u64> = dropped.map(|it| *it.0).filter(holds).collect();
        for lease in dropped {
            self.open(machine, lease);
        }
    }

    fn input_if_on(&mut self, machine: usize) {
        if self.machines[machine].power == Power::On {
            self.input(machine, NodeInput::Tick);
        }
    }

    // Invariants.

    /// An incarnation that others declare over has no open connection on a process that runs. A process that was
    /// stopped needs a moment for closing.
    fn expired(&mut self, key: RecordKey, incarnation: Incarnation) {
        let RecordKey::Member(node) = key else { return };
        let it = &self.machines[node.0 as usize];
        let Some(process) = &it.process else { return };
        let has_run = it.power == Power::On && self.now > it.woke_at + 500;
        if has_run && self.provider.has_open(process.id, incarnation) {
            self.violated(format!("{incarnation:?} of machine {} expired with an open connection", node.0));
        }
    }

    /// No acknowledged lease of a valid incarnation is missing in the table, unless the engine has lost it.
    fn check_leases(&mut self) {
        if self.engine.restarted_at.is_some_and(|it| self.now < it + 40_000) {
            return;
        }
        let (_, record) = self.engine.present(RecordKey::Pool(POOL));
        let Some(ClusterRecord::Pool(table)) = record.as_deref() else { return };
        let mut missing = None;
        for (machine, it) in self.machines.iter().enumerate() {
            let Some(process) = it.process.as_ref().filter(|_| it.power == Power::On) else { continue };
            let Some(present) = process.node.incarnation(self.clock(machine)) else { continue };
            let Some(pool) = process.node.pool(POOL) else { continue };
            for (lease, session) in &process.sessions {
                let is_entry = session.granted.is_none_or(|it| it.1 != present)
                    || !pool.holds(*lease)
                    || table.entries.iter().any(|it| {
                        it.lease == LeaseId { process: process.id, number: *lease }
                            && !matches!(it.state, SlotState::Cooling(_))
                    });
                if !is_entry {
                    missing = Some((machine, *lease));
                }
            }
        }
        if let Some(missing) = missing {
            self.violated(format!("the entry of the acknowledged lease {missing:?} is lost"));
        }
    }

    /// After the faults, each machine gets a connection of each account.
    fn probe(&mut self) {
        let machine = (0..self.machines.len()).find(|it| self.machines[*it].process.is_some());
        let Some(machine) = machine else { return };
        for pool in self.pools.clone() {
            self.ask(machine, [pool].into(), 15_000, true);
        }
    }

    fn check(&mut self) {
        let n_expected = self.pools.len();
        if self.n_probes_granted != n_expected {
            let table = self.engine.present(RecordKey::Pool(POOL)).1;
            let n_granted = self.n_probes_granted;
            return self.violated(format!("{n_granted} of {n_expected} requests are granted: {table:?}"));
        }
        for (machine, it) in self.machines.iter().enumerate() {
            let is_member = it.process.as_ref().is_none_or(|it| {
                it.node.incarnation(self.clock(machine)).is_some_and(|_| it.sessions.is_empty())
            });
            if !is_member {
                return self.violated(format!("machine {machine} has not recovered"));
            }
        }
        let running = || (0..self.machines.len()).filter(|it| self.machines[*it].process.is_some());
        let n_origins =
            running().filter(|it| matches!(self.role(*it), Some(ChannelRole::Origin { .. }))).count();
        let n_edges = running().filter(|it| matches!(self.role(*it), Some(ChannelRole::Edge { .. }))).count();
        if n_origins != 1 || n_origins + n_edges != running().count() {
            let roles: Vec<_> = running().map(|it| self.role(it)).collect();
            return self.violated(format!("the channel has not recovered: {roles:?}"));
        }
        let job = |it: &usize| self.machines[*it].process.as_ref().and_then(|it| it.node.job(JOB)?.running());
        if running().filter_map(|it| job(&it)).count() != 1 {
            self.violated("not exactly one machine runs the job".to_owned());
        }
    }
}

/// Returns the machine whose process handles an event.
fn receiver(event: &Event) -> Option<usize> {
    match event {
        Event::Input { to, .. } | Event::Deliver { to, .. } => Some(to.machine),
        Event::Tick { machine, .. }
        | Event::Connect(machine)
        | Event::NewSession(machine)
        | Event::EndSession { machine, .. }
        | Event::SocketClosed { machine, .. }
        | Event::AskedToYield { machine, .. }
        | Event::PullTried { machine, .. } => Some(*machine),
        _ => None,
    }
}
