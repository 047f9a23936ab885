//! Restarts after which the old process keeps its connections beside the new one.
//!
//! Messages between the two take a while, and may be lost. The end of a process does not stay unnoticed.

use std::time::Duration;

use super::event::Event;
use super::network::Sender;
use super::{POOL, World};
use crate::cluster::NodeInput;
use crate::cluster::predecessor::MemberPredecessor;
use crate::cluster::record::{LeaseId, ProcessId};
use crate::cluster::rules::ClusterRule;

impl World {
    pub(super) fn hand_over(&mut self, machine: usize) {
        let clock = self.clock(machine);
        let it = &mut self.machines[machine];
        let incarnation = it.process.as_ref().and_then(|it| it.node.incarnation(clock));
        // There is one predecessor at a time.
        let Some(incarnation) = incarnation.filter(|_| it.old.is_none()) else { return };
        it.old = it.process.take();
        let Some(old) = &mut it.old else { return };
        old.handed_over = incarnation;
        let id = old.id;
        self.input_to(machine, id, NodeInput::HandOver);
        let delay = if self.random.permille(100) { 8_000..20_000 } else { 100..3_000 };
        let delay = self.random.number_in(delay);
        self.after(delay, Event::Start(machine));
        self.end_old_if_idle(machine);
    }

    /// Returns what a process that starts takes over.
    pub(super) fn predecessor(&self, machine: usize) -> Option<MemberPredecessor> {
        let old = self.machines[machine].old.as_ref()?;
        let lease = |number: &u64| (LeaseId { process: old.id, number: *number }, POOL);
        let leases = old.sessions.keys().map(lease).collect();
        Some(MemberPredecessor { incarnation: old.handed_over, leases })
    }

    pub(super) fn tell_old(&mut self, machine: usize, input: NodeInput) {
        let Some(id) = self.machines[machine].old.as_ref().map(|it| it.id) else { return };
        if !self.random.permille(100) {
            let delay = self.random.number_in(0..400);
            self.tell(machine, id, input, delay);
        }
    }

    fn tell_new(&mut self, machine: usize, lease: Option<LeaseId>, is_certain: bool) {
        let Some(id) = self.machines[machine].process.as_ref().map(|it| it.id) else { return };
        if is_certain || !self.random.permille(100) {
            let delay = self.random.number_in(0..400);
            self.tell(machine, id, NodeInput::PredecessorClosed { lease }, delay);
        }
    }

    fn tell(&mut self, machine: usize, process: ProcessId, input: NodeInput, delay: u64) {
        let to = Sender { machine, process, connection: 0 };
        self.after(delay, Event::Input { to, input: Box::new(input) });
    }

    /// Ends one of the processes of a machine; the kernel closes its connections.
    pub(super) fn kill_one(&mut self, machine: usize, process: ProcessId) {
        self.guard_saw_end(machine, process);
        self.provider.process_ended(process, self.now);
        let it = &mut self.machines[machine];
        if it.old.take_if(|it| it.id == process).is_some() {
            return self.tell_new(machine, None, true);
        }
        it.process.take_if(|it| it.id == process);
        // Before the new process runs, another one is started; after that, the old one ends.
        if let Some(old) = it.old.as_ref().map(|it| it.id)
            && self.random.permille(500)
        {
            let delay = self.random.number_in(0..400);
            self.tell(machine, old, NodeInput::EndHandedOver, delay);
        }
    }

    pub(super) fn close_handed_over(&mut self, machine: usize, process: ProcessId) {
        let sessions =
            self.machines[machine].process(process).map(|it| it.sessions.keys().copied().collect());
        let sessions: Vec<u64> = sessions.unwrap_or_default();
        for lease in sessions {
            self.close(machine, process, lease);
        }
        self.end_old_if_idle(machine);
    }

    /// The old process has closed a connection. It may open it again with the same lease.
    pub(super) fn closed_by_old(&mut self, machine: usize, lease: u64) {
        let Some(old) = &mut self.machines[machine].old else { return };
        let process = old.id;
        let Some(session) = old.sessions.get_mut(&lease) else { return };
        if session.reopens
            && let Some((index, _)) = session.granted
        {
            session.is_closing = false;
            let wait = session.order[index].release_delay + Duration::from_millis(1);
            let wait = wait.as_millis() as u64 * 10 / 9 + self.random.number_in(0..1_000);
            return self.after(wait, Event::Reopen { machine, process, lease });
        }
        old.sessions.remove(&lease);
        self.tell_new(machine, Some(LeaseId { process, number: lease }), false);
        self.end_old_if_idle(machine);
    }

    pub(super) fn reopen(&mut self, machine: usize, process: ProcessId, lease: u64) {
        let clock = self.clock(machine);
        let Some(old) = self.machines[machine].old.as_ref().filter(|it| it.id == process) else { return };
        let Some(session) = old.sessions.get(&lease).filter(|it| !it.is_closing) else { return };
        let Some((index, incarnation)) = session.granted else { return };
        let pool = session.order[index].clone();
        let holds = self.holds(ClusterRule::CloseHandedOver);
        let is_valid = old.node.member().valid_until().is_some_and(|it| clock < it || !holds);
        if is_valid && !self.provider.is_open(process, lease) {
            let opened = self.provider.open(machine, (process, lease), incarnation, &pool, self.now);
            if let Err(text) = opened {
                return self.violated(text);
            }
        }
        let length = self.random.number_in(300..15_000);
        self.after(length, Event::EndSession { machine, process, lease });
    }

    /// The machine is back from a suspend. The provider may have dropped connections, which open again.
    pub(super) fn old_woke(&mut self, machine: usize) {
        let Some(old) = &self.machines[machine].old else { return };
        let process = old.id;
        let leases: Vec<u64> = old.sessions.keys().copied().collect();
        self.input_to(machine, process, NodeInput::Tick);
        for lease in leases {
            // One that waits for the release delay opens at its time.
            let old = self.machines[machine].old.as_ref();
            if old.is_some_and(|it| it.sessions.get(&lease).is_some_and(|it| !it.reopens)) {
                self.reopen(machine, process, lease);
            }
        }
    }

    /// A process that was handed over ends after its last connection. Its successor notices that in any case.
    fn end_old_if_idle(&mut self, machine: usize) {
        let Some(old) = self.machines[machine].old.as_ref().filter(|it| it.sessions.is_empty()) else {
            return;
        };
        let process = old.id;
        self.input_to(machine, process, NodeInput::HandedOverClosed);
        self.tell_new(machine, None, false);
        let delay = self.random.number_in(0..5_000);
        self.after(delay, Event::OldEnded { machine, process });
    }

    pub(super) fn old_ended(&mut self, machine: usize, process: ProcessId) {
        if self.machines[machine].old.take_if(|it| it.id == process).is_some() {
            self.provider.process_ended(process, self.now);
            self.tell_new(machine, None, true);
        }
    }
}
