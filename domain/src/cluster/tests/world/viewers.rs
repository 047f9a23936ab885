//! Viewers, which need connections to the provider.

use std::sync::Arc;
use std::time::Duration;

use super::event::Event;
use super::machines::{Process, Session};
use super::network::Sender;
use super::{FAULTS_END_MS, POOL, SESSIONS_END_MS, World};
use crate::cluster::NodeInput;
use crate::cluster::record::{LeaseId, ProcessId, SlotPurpose};
use crate::cluster::slots::{SlotRequest, SlotWait};
use crate::plan::SlotPool;

impl World {
    pub(super) fn new_session(&mut self, machine: usize) {
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
        let wait = self.random.number_in(500..6_000);
        self.ask(machine, order.into(), wait, false);
        let next = self.random.number_in(300..9_000);
        self.after(next, Event::NewSession(machine));
    }

    pub(super) fn ask(&mut self, machine: usize, order: Arc<[SlotPool]>, wait_ms: u64, is_probe: bool) {
        let until = self.clock(machine) + Duration::from_millis(wait_ms);
        let waits_for_others = is_probe || self.random.permille(800);
        let Some(process) = &mut self.machines[machine].process else { return };
        process.last_lease += 1;
        let lease = process.last_lease;
        let session = Session {
            order: order.clone(),
            granted: None,
            is_closing: false,
            is_probe,
            reopens: false,
            is_source: false,
        };
        process.sessions.insert(lease, session);
        let wait = match waits_for_others {
            true => SlotWait::Others,
            false if lease.is_multiple_of(2) => SlotWait::OwnReturn,
            false => SlotWait::Returns,
        };
        let request = SlotRequest { order, holder: lease, purpose: SlotPurpose::Live, wait, until };
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

    pub(super) fn granted(&mut self, machine: usize, lease: u64, index: usize) {
        let now = self.clock(machine);
        let length = if self.random.permille(300) {
            self.random.number_in(20_000..50_000)
        } else {
            self.random.number_in(300..15_000)
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
        let is_source = session.is_source;
        self.open(machine, lease);
        if is_source {
            return;
        }
        self.after(length, Event::EndSession { machine, process: id, lease });
    }

    /// Opens the connection of a lease, or opens it again after the provider dropped it.
    pub(super) fn open(&mut self, machine: usize, lease: u64) {
        let Some(process) = &self.machines[machine].process else { return };
        let Some(session) = process.sessions.get(&lease) else { return };
        let Some((index, incarnation)) = session.granted else { return };
        let opened =
            self.provider.open(machine, (process.id, lease), incarnation, &session.order[index], self.now);
        if let Err(text) = opened {
            self.violated(text);
        }
    }

    pub(super) fn end_session(&mut self, machine: usize, process: ProcessId, lease: u64) {
        if !self.is_running(machine, process) {
            return;
        }
        // One that waits to open again ends for good.
        let may_reopen = self.random.permille(300) && self.provider.is_open(process, lease);
        let it = &mut self.machines[machine];
        let is_old = it.old.as_ref().is_some_and(|it| it.id == process);
        let Some(process) = it.process_mut(process) else { return };
        let Some(session) = process.sessions.get_mut(&lease) else { return };
        if session.is_closing || session.granted.is_none() {
            return;
        }
        session.is_closing = true;
        session.reopens = is_old && may_reopen;
        let id = process.id;
        self.input_to(machine, id, NodeInput::Closing { pool: POOL, lease });
        let delay = self.random.number_in(0..450);
        self.after(delay, Event::SocketClosed { machine, process: id, lease });
    }

    pub(super) fn close(&mut self, machine: usize, process: ProcessId, lease: u64) {
        let Some(it) = self.machines[machine].process_mut(process) else { return };
        let Some(session) = it.sessions.get_mut(&lease) else { return };
        session.reopens = false;
        if !std::mem::replace(&mut session.is_closing, true) {
            let delay = self.random.number_in(0..450);
            self.after(delay, Event::SocketClosed { machine, process, lease });
        }
    }

    pub(super) fn socket_closed(&mut self, machine: usize, process: ProcessId, lease: u64) {
        // The kernel has closed the connections of a process that ended; a machine without power closes nothing.
        if !self.is_running(machine, process) {
            return;
        }
        self.provider.close(process, lease, self.now);
        if self.machines[machine].old.as_ref().is_some_and(|it| it.id == process) {
            return self.closed_by_old(machine, lease);
        }
        if let Some(it) = &mut self.machines[machine].process {
            it.sessions.remove(&lease);
        }
        self.input(machine, NodeInput::Returned { pool: POOL, lease });
        self.source_ended(machine);
    }

    pub(super) fn asked_to_yield(&mut self, machine: usize, lease: LeaseId, from: Sender, asked_by: u64) {
        if !self.is_running(machine, lease.process) {
            return;
        }
        let is_source = |it: &Process| it.sessions.get(&lease.number).is_some_and(|it| it.is_source);
        let is_source = self.machines[machine].process(lease.process).is_some_and(is_source);
        if !is_source && self.random.permille(400) {
            self.end_session(machine, lease.process, lease.number);
        } else if self.random.permille(900) && self.is_linked(machine, from.machine) {
            let input = Box::new(NodeInput::Kept { pool: POOL, asked_by, by: lease });
            let delay = self.random.number_in(1..20);
            self.after(delay, Event::Input { to: from, input });
        }
    }

    pub(super) fn is_linked(&self, one: usize, other: usize) -> bool {
        one == other || !self.machines[one].is_alone && !self.machines[other].is_alone
    }
}
