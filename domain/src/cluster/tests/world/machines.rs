//! Machines with clocks of their own, and their processes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::event::Event;
use super::network::Sender;
use super::{CHANNEL, JOB, World};
use crate::cluster::record::{BootId, Incarnation, NodeId, ProcessId, RecordKey};
use crate::cluster::rules::{ClusterRule, ClusterRules};
use crate::cluster::{BootTime, ClusterNode, NodeEffect, NodeInput};
use crate::plan::SlotPool;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Power {
    On,
    /// The process is stopped; the machine works.
    Frozen,
    Suspended,
    Off,
}

pub(super) struct Machine {
    /// Speed of its clock, per thousand.
    pub(super) rate: u64,
    pub(super) booted_at: u64,
    pub(super) boot: BootId,
    pub(super) power: Power,
    /// Time since which it is frozen or suspended, and the end of the last such time.
    pub(super) stopped_at: u64,
    pub(super) woke_at: u64,
    /// Total time of suspend, which only a broken clock leaves out.
    pub(super) suspended_ms: u64,
    /// Jump of the wall clock, which only a broken clock shows.
    pub(super) jump_ms: i64,
    pub(super) process: Option<Process>,
    /// The process before, if it keeps connections.
    pub(super) old: Option<Process>,
    pub(super) is_cut: bool,
    pub(super) is_slow: bool,
    pub(super) is_lossy: bool,
    pub(super) is_alone: bool,
    pub(super) is_connected: bool,
    pub(super) connection: u64,
    /// The events that arrived while the process was stopped.
    pub(super) inbox: Vec<Event>,
}

pub(super) struct Process {
    pub(super) id: ProcessId,
    pub(super) node: ClusterNode,
    pub(super) sessions: BTreeMap<u64, Session>,
    pub(super) last_lease: u64,
    pub(super) tick_at: u64,
    /// The number of restarts of the engine that it knows of. None: it was never connected.
    pub(super) n_restarts: Option<u64>,
    /// The incarnation that it has handed over.
    pub(super) handed_over: Incarnation,
}

impl Machine {
    pub(super) fn processes(&self) -> impl Iterator<Item = &Process> {
        self.process.iter().chain(&self.old)
    }

    pub(super) fn process(&self, process: ProcessId) -> Option<&Process> {
        self.processes().find(|it| it.id == process)
    }

    pub(super) fn process_mut(&mut self, process: ProcessId) -> Option<&mut Process> {
        self.process.iter_mut().chain(&mut self.old).find(|it| it.id == process)
    }
}

/// A viewer that needs a connection.
pub(super) struct Session {
    pub(super) order: Arc<[SlotPool]>,
    /// The index of the granted candidate.
    pub(super) granted: Option<(usize, Incarnation)>,
    pub(super) is_closing: bool,
    pub(super) is_probe: bool,
    /// Its connection is closed, and opens again with the same lease.
    pub(super) reopens: bool,
    /// The channel plays over it, for as long as this machine is the origin.
    pub(super) is_source: bool,
}

impl World {
    pub(super) fn clock(&self, machine: usize) -> BootTime {
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
    pub(super) fn schedule_tick(&mut self, machine: usize, process: ProcessId) {
        let now = self.clock(machine);
        let it = &mut self.machines[machine];
        let rate = it.rate;
        let Some(process) = it.process_mut(process) else { return };
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

    pub(super) fn is_running(&self, machine: usize, process: ProcessId) -> bool {
        self.machines[machine].process(process).is_some()
    }

    pub(super) fn sender(&self, machine: usize, process: ProcessId) -> Option<Sender> {
        let it = &self.machines[machine];
        it.process(process).map(|_| Sender { machine, process, connection: it.connection })
    }

    pub(super) fn start(&mut self, machine: usize) {
        if self.machines[machine].power != Power::On || self.machines[machine].process.is_some() {
            return;
        }
        self.last_process += 1;
        let id = ProcessId(self.last_process);
        let rules = ClusterRules { broken: self.broken };
        let now = self.clock(machine);
        let boot = self.machines[machine].boot;
        let predecessor = self.predecessor(machine);
        let node = ClusterNode::after(predecessor, NodeId(machine as u32), boot, id, rules, now);
        let (sessions, tick_at) = (BTreeMap::new(), self.now);
        self.machines[machine].process = Some(Process {
            id,
            node,
            sessions,
            last_lease: 0,
            tick_at,
            n_restarts: None,
            handed_over: Incarnation::default(),
        });
        self.machines[machine].is_connected = false;
        self.connect(machine);
        self.input(machine, NodeInput::Tick);
        let is_wanted = true;
        let may_originate = true;
        self.input(machine, NodeInput::WantChannel { channel: CHANNEL, is_wanted, may_originate });
        self.input(machine, NodeInput::WantJob { job: JOB, is_wanted });
    }

    /// Ends the process; the kernel closes its connections.
    pub(super) fn kill(&mut self, machine: usize) {
        if let Some(process) = self.machines[machine].process.as_ref().map(|it| it.id) {
            self.kill_one(machine, process);
        }
        if self.machines[machine].old.is_none() {
            self.machines[machine].inbox.clear();
        }
    }

    /// Gives the process an input, and carries out the effects.
    pub(super) fn input(&mut self, machine: usize, input: NodeInput) {
        if let Some(id) = self.machines[machine].process.as_ref().map(|it| it.id) {
            self.input_to(machine, id, input);
        }
    }

    pub(super) fn input_to(&mut self, machine: usize, id: ProcessId, input: NodeInput) {
        let now = self.clock(machine);
        let Some(process) = self.machines[machine].process_mut(id) else { return };
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
        self.schedule_tick(machine, id);
    }

    pub(super) fn carry_out(&mut self, machine: usize, process: ProcessId, effect: NodeEffect) {
        match effect {
            NodeEffect::Read(key) => self.read(machine, process, key),
            NodeEffect::ReadAll => self.deliver_all(machine, process),
            NodeEffect::Write { key, number, expected, record } => {
                let is_old = self.machines[machine].old.as_ref().is_some_and(|it| it.id == process);
                if is_old && !matches!(key, RecordKey::Member(_)) {
                    return self.violated(format!("machine {machine} was handed over and writes {key:?}"));
                }
                self.write(machine, process, key, number, expected, record);
            }
            NodeEffect::Joined(_) | NodeEffect::Lost(_) => {}
            NodeEffect::ProlongPredecessor { until } => {
                self.tell_old(machine, NodeInput::Prolonged { until });
            }
            NodeEffect::EndPredecessor => self.tell_old(machine, NodeInput::EndHandedOver),
            NodeEffect::CloseHandedOver => self.close_handed_over(machine, process),
            NodeEffect::Granted { lease, index, .. } => self.granted(machine, lease, index),
            NodeEffect::Refused { lease, .. } => {
                if let Some(process) = self.machines[machine].process_mut(process) {
                    process.sessions.remove(&lease);
                }
                self.source_ended(machine);
            }
            NodeEffect::Close { lease, .. } => self.close(machine, process, lease),
            NodeEffect::AskToYield { node, lease, asked_by, .. } => {
                let Some(from) = self.sender(machine, process) else { return };
                let to = node.0 as usize;
                if self.is_linked(machine, to) {
                    let delay = self.random.number_in(1..20);
                    self.after(delay, Event::AskedToYield { machine: to, lease, from, asked_by });
                }
            }
            NodeEffect::Originate { epoch, .. } => {
                self.originates(machine, epoch);
                self.source_ended(machine);
            }
            // The connections of its edges stay; one of its own is not in the model.
            NodeEffect::Pull { .. }
                if self.machines[machine].old.as_ref().is_some_and(|it| it.id == process) => {}
            NodeEffect::Pull { from, epoch, .. } => {
                let delay = self.random.number_in(1..50);
                let from = from.0 as usize;
                self.after(delay, Event::PullTried { machine, process, from, epoch, is_last: false });
            }
            NodeEffect::ReleaseSource { .. } => self.release_source(machine),
            NodeEffect::SeekOrigin { .. } | NodeEffect::StopJob { .. } => {}
            NodeEffect::RunJob { .. } => self.runs_job(machine),
            // Seats have schedules of their own.
            NodeEffect::Seated { .. } | NodeEffect::NotSeated { .. } | NodeEffect::EndSession { .. } => {}
        }
    }
}
