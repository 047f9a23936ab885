//! One schedule: machines with clocks of their own, a network, the engine, the provider, and what goes wrong.

mod channels;
mod event;
mod faults;
pub(super) mod full;
mod guard;
mod hand_over;
mod invariants;
mod machines;
mod network;
mod viewers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use self::event::{Event, receiver};
use self::faults::{FAULTS, Fault};
use self::full::Viewing;
use self::machines::{Machine, Power, Process};
use super::engine::Engine;
use super::provider::Provider;
use super::random::Random;
use crate::cluster::NodeInput;
use crate::cluster::record::{BootId, JobName, PoolId};
use crate::cluster::rules::ClusterRule;
use crate::ids::{AccountId, ProfileId, ServerGroupId};
use crate::limits::LimitScope;
use crate::plan::{SharedPool, SlotPool};

/// Time without an answer after which a request has failed, or has an unknown outcome, in milliseconds.
const ENGINE_TIMEOUT_MS: u64 = 2_000;
/// Time at which the last fault ends.
const FAULTS_END_MS: u64 = 70_000;
/// Time at which the last viewer leaves.
const SESSIONS_END_MS: u64 = 95_000;
/// Time by which everything must have recovered: the faults, a take-over, and the cooling of lost leases.
const RECOVERED_MS: u64 = 138_000;
/// Time within which the requests after that must be granted.
const PROBE_MS: u64 = 20_000;

const POOL: PoolId = PoolId::Group(ServerGroupId(1));
const CHANNEL: Uuid = Uuid::from_u128(7);
const JOB: JobName = JobName::Importer;

/// Runs one schedule. Returns the first violation.
pub(super) fn run(seed: u64, broken: Option<ClusterRule>) -> Result<(), String> {
    let mut world = World::new(seed, broken);
    world.plan();
    world.run();
    world.violation.map_or(Ok(()), Err)
}

/// Runs one schedule in which the account is full and viewers watch on every machine. They end after this time without a
/// packet. Returns the first violation.
pub(super) fn run_full(seed: u64, give_up_ms: u64) -> Result<(), String> {
    let mut world = World::new(seed, None);
    world.viewing = Some(Viewing::new(world.machines.len(), give_up_ms));
    world.plan_full();
    world.run();
    world.violation.map_or(Ok(()), Err)
}

struct World {
    random: Random,
    broken: Option<ClusterRule>,
    now: u64,
    serial: u64,
    /// The events to come, by time and serial number.
    queue: BTreeMap<(u64, u64), Event>,
    engine: Engine,
    provider: Provider,
    machines: Vec<Machine>,
    pools: Vec<SlotPool>,
    last_process: u64,
    n_probes_granted: usize,
    is_over: bool,
    violation: Option<String>,
    /// Prints what happens; for the replay of a single schedule.
    is_traced: bool,
    /// The viewers of the channel, in schedules with a full account.
    viewing: Option<Viewing>,
}

impl World {
    fn new(seed: u64, broken: Option<ClusterRule>) -> Self {
        let mut random = Random::new(seed);
        let n_machines = random.number_in(2..4) as usize;
        let release_delay = Duration::from_millis([0, 500, 2_000, 5_000][random.number_in(0..4) as usize]);
        let group_max = random.number_in(0..3) as u32;
        let accounts: Arc<[AccountId]> = [AccountId(1), AccountId(2)].into();
        let pool = |id: u32, max_streams: u32| SlotPool {
            account: AccountId(id),
            account_name: String::new(),
            profile: ProfileId(id),
            max_streams,
            release_delay,
            crash_cooling: None,
            changed_at: 0,
            scope: LimitScope::Unknown,
            shared: Some(SharedPool {
                group: ServerGroupId(1),
                name: String::new(),
                max_streams: group_max,
                accounts: accounts.clone(),
            }),
        };
        let pools = vec![pool(1, 1), pool(2, random.number_in(1..3) as u32)];
        let machines = (0..n_machines)
            .map(|it| Machine {
                rate: [900, 900, 1_000, 1_000, 1_100, 1_100][random.number_in(0..6) as usize],
                booted_at: 0,
                boot: BootId(Uuid::from_u128(it as u128)),
                power: Power::Off,
                stopped_at: 0,
                woke_at: 0,
                suspended_ms: 0,
                jump_ms: 0,
                process: None,
                old: None,
                is_cut: false,
                is_slow: false,
                is_lossy: false,
                is_alone: false,
                is_connected: false,
                connection: 0,
                inbox: Vec::new(),
            })
            .collect();
        Self {
            random,
            broken,
            now: 0,
            serial: 0,
            queue: BTreeMap::new(),
            engine: Engine::default(),
            provider: Provider::default(),
            machines,
            pools,
            last_process: 0,
            n_probes_granted: 0,
            is_over: false,
            violation: None,
            is_traced: std::env::var_os("CLUSTER_TRACE").is_some(),
            viewing: None,
        }
    }

    /// Schedules the start of the machines, the faults, and the checks at the end.
    fn plan(&mut self) {
        for machine in 0..self.machines.len() {
            let at = self.random.number_in(0..4_000);
            self.machines[machine].power = Power::On;
            self.at(at, Event::Start(machine));
            let first = self.random.number_in(2_000..25_000);
            self.at(first, Event::NewSession(machine));
            // Whatever happened, a machine with power runs in the end.
            self.at(FAULTS_END_MS + 500, Event::Start(machine));
        }
        let mut may_go = true;
        // No rule covers a machine that vanishes while the engine loses the entries of its leases.
        let may_vanish = self.random.permille(500);
        for _ in 0..self.random.number_in(1..6) {
            let fault = match self.random.permille(150) {
                true => Fault::HandedOver,
                false => FAULTS[self.random.number_in(0..FAULTS.len() as u64) as usize],
            };
            let machine = self.random.number_in(0..self.machines.len() as u64) as usize;
            let at = self.random.number_in(12_000..FAULTS_END_MS - 10_000);
            let length = match fault {
                Fault::Fading => 20_000..40_000,
                _ if self.random.permille(500) => 200..8_000,
                _ => 200..40_000,
            };
            let until = (at + self.random.number_in(length)).min(FAULTS_END_MS);
            let is_excluded = if may_vanish { fault == Fault::EngineRollback } else { fault.vanishes() };
            if is_excluded {
                continue;
            }
            if fault == Fault::Gone && !std::mem::take(&mut may_go) {
                continue;
            }
            self.at(at, Event::Fault { fault, machine, is_over: false });
            if fault == Fault::HandedOver && !may_vanish && self.random.permille(300) {
                // The engine loses leases that nobody can register again.
                let fault = Fault::EngineRollback;
                let at = at + self.random.number_in(500..9_000);
                self.at(at, Event::Fault { fault, machine, is_over: false });
            }
            if fault != Fault::Gone {
                self.at(until, Event::Fault { fault, machine, is_over: true });
            }
        }
        // By then, also the latest writes have reached the engine.
        self.at(SESSIONS_END_MS + 2_000, Event::Probe);
    }

    fn run(&mut self) {
        while let Some(((at, _), event)) = self.queue.pop_first() {
            self.now = at;
            self.happens(event);
            if self.is_over || self.violation.is_some() {
                return;
            }
        }
    }

    fn at(&mut self, at: u64, event: Event) {
        self.serial += 1;
        self.queue.insert((at, self.serial), event);
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
                self.input_to(to.machine, to.process, *input);
            }
            Event::Deliver { to, key, revision, record, is_reply } => {
                let is_connected = self.machines[to.machine].connection == to.connection;
                let is_running = self.is_running(to.machine, to.process);
                if is_running && is_connected {
                    let record = record.map(|it| (*it).clone());
                    self.input_to(to.machine, to.process, NodeInput::Seen { key, revision, record });
                } else if is_running && is_reply {
                    self.input_to(to.machine, to.process, NodeInput::ReadFailed(key));
                }
            }
            Event::Tick { machine, process } => {
                let is_due = |it: &Process| it.tick_at <= self.now;
                if self.machines[machine].process(process).is_some_and(is_due) {
                    self.input_to(machine, process, NodeInput::Tick);
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
            Event::Reopen { machine, process, lease } => {
                let old = self.machines[machine].old.as_mut().filter(|it| it.id == process);
                if let Some(session) = old.and_then(|it| it.sessions.get_mut(&lease)) {
                    session.reopens = false;
                }
                self.reopen(machine, process, lease);
            }
            Event::OldEnded { machine, process } => self.old_ended(machine, process),
            Event::Guard { machine, process, frozen_at } => {
                let it = &self.machines[machine];
                if it.power == Power::Frozen && it.stopped_at == frozen_at {
                    self.kill_one(machine, process);
                    let it = &mut self.machines[machine];
                    if it.process.is_none() && it.old.is_none() {
                        it.power = Power::On;
                        self.after(1_000, Event::Start(machine));
                    }
                }
            }
            Event::GuardReads { machine, process, n_attempts_left } => {
                self.guard_reads(machine, process, n_attempts_left);
            }
            Event::GuardSwaps { machine, process, n_attempts_left, n_restarts, read } => {
                self.guard_swaps(machine, process, (n_attempts_left, n_restarts), read);
            }
            Event::Start(machine) => self.start(machine),
            Event::NeedsSource(machine) => self.needs_source(machine),
            Event::Look => self.look(),
            Event::Probe => self.probe(),
            Event::Check { until } => self.check(until),
        }
    }
}
