//! The connections to the engine: delays, losses, duplicates, late writes and stale reads.

use std::rc::Rc;

use super::event::Event;
use super::{ENGINE_TIMEOUT_MS, World};
use crate::cluster::record::{ClusterRecord, MemberState, ProcessId, RecordKey, Revision};
use crate::cluster::{NodeInput, SwapOutcome, WriteNumber};

/// A write on its way.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) from: Sender,
    pub(super) sent_at: u64,
    pub(super) n_restarts: u64,
    pub(super) key: RecordKey,
    pub(super) number: WriteNumber,
    pub(super) expected: Option<Revision>,
    pub(super) record: Rc<ClusterRecord>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    Sent,
    Lost,
}

/// A process and its connection to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sender {
    pub(super) machine: usize,
    pub(super) process: ProcessId,
    pub(super) connection: u64,
}

impl World {
    pub(super) fn connect(&mut self, machine: usize) {
        let it = &mut self.machines[machine];
        if it.is_connected || it.is_cut || it.processes().next().is_none() {
            return;
        }
        if self.now < self.engine.down_until {
            let at = self.engine.down_until + self.random.number_in(1..500);
            return self.at(at, Event::Connect(machine));
        }
        it.is_connected = true;
        it.connection += 1;
        let n_restarts = self.engine.n_restarts;
        let mut all = Vec::new();
        for process in it.process.iter_mut().chain(&mut it.old) {
            let before = process.n_restarts.replace(n_restarts);
            all.push((process.id, before.is_some_and(|it| it != n_restarts)));
        }
        for (process, is_restarted) in all {
            if is_restarted {
                self.input_to(machine, process, NodeInput::EngineRestarted);
            } else {
                self.deliver_all(machine, process);
            }
        }
    }

    pub(super) fn disconnect(&mut self, machine: usize) {
        let it = &mut self.machines[machine];
        it.is_connected = false;
        it.connection += 1;
    }

    pub(super) fn deliver_all(&mut self, machine: usize, process: ProcessId) {
        for key in self.engine.keys() {
            let (revision, record) = self.engine.present(key);
            self.deliver(machine, process, key, revision, record);
        }
    }

    pub(super) fn deliver(
        &mut self,
        machine: usize,
        process: ProcessId,
        key: RecordKey,
        revision: Revision,
        record: Option<Rc<ClusterRecord>>,
    ) {
        let Some(to) = self.sender(machine, process) else { return };
        if !self.machines[machine].is_connected {
            return;
        }
        let delay = self.delay(machine);
        // A follower of the engine may be late.
        let lag = if self.random.permille(30) { self.random.number_in(100..3_000) } else { 0 };
        self.after(delay + lag, Event::Deliver { to, key, revision, record, is_reply: false });
    }

    /// Returns the time of one message between a machine and the engine.
    pub(super) fn delay(&mut self, machine: usize) -> u64 {
        if self.machines[machine].is_slow {
            self.random.number_in(10..1_900)
        } else {
            self.random.number_in(1..20)
        }
    }

    pub(super) fn read(&mut self, machine: usize, process: ProcessId, key: RecordKey) {
        let Some(from) = self.sender(machine, process) else { return };
        let it = &self.machines[machine];
        let is_lost = !it.is_connected || it.is_lossy && self.random.permille(200);
        if is_lost || self.now < self.engine.down_until {
            let input = Box::new(NodeInput::ReadFailed(key));
            return self.after(ENGINE_TIMEOUT_MS, Event::Input { to: from, input });
        }
        let delay = self.delay(machine);
        self.after(delay, Event::Serve { from, key });
    }

    pub(super) fn serve(&mut self, from: Sender, key: RecordKey) {
        let it = &self.machines[from.machine];
        if !it.is_connected || it.connection != from.connection || self.now < self.engine.down_until {
            let input = Box::new(NodeInput::ReadFailed(key));
            return self.after(ENGINE_TIMEOUT_MS, Event::Input { to: from, input });
        }
        let lag = if self.random.permille(100) { self.random.number_in(0..12) as usize } else { 0 };
        let (revision, record) = self.engine.read(key, self.engine.len().saturating_sub(lag));
        let delay = self.delay(from.machine);
        self.after(delay, Event::Deliver { to: from, key, revision, record, is_reply: true });
    }

    pub(super) fn write(
        &mut self,
        machine: usize,
        process: ProcessId,
        key: RecordKey,
        number: WriteNumber,
        expected: Option<Revision>,
        record: ClusterRecord,
    ) {
        let Some(from) = self.sender(machine, process) else { return };
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
            let late = self.random.number_in(ENGINE_TIMEOUT_MS..25_000);
            self.after(late, Event::Apply { write, reply: Reply::Lost });
        } else if self.random.permille(10 * chance) {
            // It arrives twice, and the reply to the second one is sent.
            let again = delay + self.random.number_in(1..900);
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

    pub(super) fn apply(&mut self, write: &Write, reply: Reply) {
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
        if let Some(revision) = applied {
            self.applied(write.key, revision, &write.record);
        }
    }

    /// A write was applied.
    pub(super) fn applied(&mut self, key: RecordKey, revision: Revision, record: &Rc<ClusterRecord>) {
        for machine in 0..self.machines.len() {
            let ids: Vec<_> = self.machines[machine].processes().map(|it| it.id).collect();
            for process in ids {
                self.deliver(machine, process, key, revision, Some(record.clone()));
            }
        }
        match &**record {
            ClusterRecord::Member(it) if it.state == MemberState::Expired => self.expired(key, it.over),
            ClusterRecord::Pool(_) => self.check_leases(),
            _ => {}
        }
    }
}
