//! The guards, which tell the other nodes that their process has ended. They share the connection of their machine to the
//! engine, and their messages may be late or repeated.

use std::rc::Rc;

use super::World;
use super::event::Event;
use super::machines::Power;
use crate::cluster::end::record_after_end;
use crate::cluster::record::{ClusterRecord, MemberRecord, NodeId, ProcessId, RecordKey, Revision};
use crate::cluster::rules::ClusterRules;

/// The number of times that a guard reads the record.
const N_ATTEMPTS: u32 = 3;

impl World {
    /// A process of a machine that has power ends; its guard may notice that, and send its message once or twice.
    pub(super) fn guard_saw_end(&mut self, machine: usize, process: ProcessId) {
        let guarded = self.machines[machine].process(process).and_then(|it| it.node.guarded());
        if guarded != Some(process) || self.random.permille(300) {
            return;
        }
        let delay = self.random.number_in(5..1_500);
        self.after(delay, Event::GuardReads { machine, process, n_attempts_left: N_ATTEMPTS });
        if self.random.permille(200) {
            let delay = self.random.number_in(1_000..40_000);
            self.after(delay, Event::GuardReads { machine, process, n_attempts_left: N_ATTEMPTS });
        }
    }

    fn reaches_engine(&self, machine: usize) -> bool {
        let it = &self.machines[machine];
        let has_power = matches!(it.power, Power::On | Power::Frozen);
        has_power && !it.is_cut && self.now >= self.engine.down_until
    }

    fn guard_tries_again(&mut self, machine: usize, process: ProcessId, n_attempts_left: u32) {
        if n_attempts_left > 1 {
            let delay = self.random.number_in(100..2_000);
            let n_attempts_left = n_attempts_left - 1;
            self.after(delay, Event::GuardReads { machine, process, n_attempts_left });
        }
    }

    pub(super) fn guard_reads(&mut self, machine: usize, process: ProcessId, n_attempts_left: u32) {
        if !self.reaches_engine(machine) {
            return self.guard_tries_again(machine, process, n_attempts_left);
        }
        let lag = if self.random.permille(100) { self.random.number_in(0..12) as usize } else { 0 };
        let key = RecordKey::Member(NodeId(machine as u32));
        let (revision, record) = self.engine.read(key, self.engine.len().saturating_sub(lag));
        let Some(ClusterRecord::Member(record)) = record.as_deref() else { return };
        let (read, n_restarts) = ((revision, record.clone()), self.engine.n_restarts);
        let delay = self.delay(machine);
        self.after(delay, Event::GuardSwaps { machine, process, n_attempts_left, n_restarts, read });
    }

    pub(super) fn guard_swaps(
        &mut self,
        machine: usize,
        process: ProcessId,
        (n_attempts_left, n_restarts): (u32, u64),
        (revision, read): (Revision, MemberRecord),
    ) {
        let rules = ClusterRules { broken: self.broken };
        let Some(next) = record_after_end(process, revision, &read, rules) else { return };
        if !self.reaches_engine(machine) || n_restarts != self.engine.n_restarts {
            return self.guard_tries_again(machine, process, n_attempts_left);
        }
        let key = RecordKey::Member(NodeId(machine as u32));
        let record = Rc::new(ClusterRecord::Member(next));
        match self.engine.swap(key, Some(revision), record.clone()) {
            Some(applied) => {
                self.applied(key, applied, &record);
                self.guard_told(machine);
            }
            None => self.guard_tries_again(machine, process, n_attempts_left),
        }
    }
}
