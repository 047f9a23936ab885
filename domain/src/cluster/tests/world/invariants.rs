//! What must hold at any time, and in the end.

use super::event::Event;
use super::machines::{Machine, Power};
use super::{JOB, POOL, PROBE_MS, RECOVERED_MS, World};
use crate::cluster::owner::ChannelRole;
use crate::cluster::record::{ClusterRecord, Incarnation, LeaseId, RecordKey, SlotState};

impl World {
    /// An incarnation that others declare over has no open connection on a process that runs. A process that was
    /// stopped needs a moment for closing.
    pub(super) fn expired(&mut self, key: RecordKey, incarnation: Incarnation) {
        let RecordKey::Member(node) = key else { return };
        let it = &self.machines[node.0 as usize];
        let has_run = it.power == Power::On && self.now > it.woke_at + 500;
        if has_run && it.processes().any(|it| self.provider.has_open(it.id, incarnation)) {
            self.violated(format!("{incarnation:?} of machine {} expired with an open connection", node.0));
        }
    }

    /// No acknowledged lease of a valid incarnation is missing in the table, unless the engine has lost it.
    pub(super) fn check_leases(&mut self) {
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
        for (machine, it) in self.machines.iter().enumerate() {
            let Some(old) = it.old.as_ref().filter(|_| it.power == Power::On) else { continue };
            // It closes its connections after its deadline, and then the entries may be cooling.
            if old.node.member().valid_until().is_none_or(|it| self.clock(machine) >= it) {
                continue;
            }
            for lease in old.sessions.keys().filter(|it| self.provider.is_open(old.id, **it)) {
                let is_it = LeaseId { process: old.id, number: *lease };
                let mut entries = table.entries.iter();
                if !entries.any(|it| it.lease == is_it && !matches!(it.state, SlotState::Cooling(_))) {
                    missing = missing.or(Some((machine, *lease)));
                }
            }
        }
        if let Some(missing) = missing {
            self.violated(format!("the entry of the acknowledged lease {missing:?} is lost"));
        }
    }

    /// When everything has recovered, a machine gets a connection of each account.
    pub(super) fn probe(&mut self) {
        if self.now < RECOVERED_MS && !self.is_calm() {
            return self.after(2_000, Event::Probe);
        }
        self.after(1_000, Event::Check { until: self.now + PROBE_MS });
        let machine = (0..self.machines.len()).find(|it| self.machines[*it].process.is_some());
        let Some(machine) = machine else { return };
        for pool in self.pools.clone() {
            self.ask(machine, [pool].into(), 15_000, true);
        }
    }

    /// Returns whether all slots are free, and all machines may grant them.
    fn is_calm(&self) -> bool {
        let table = self.engine.present(RecordKey::Pool(POOL)).1;
        let is_free = match table.as_deref() {
            Some(ClusterRecord::Pool(it)) => it.entries.is_empty() && it.waiters.is_empty(),
            _ => true,
        };
        let may_grant = |(machine, it): (usize, &Machine)| {
            it.process.as_ref().is_none_or(|it| it.node.member().may_grant(self.clock(machine)))
        };
        is_free && self.machines.iter().enumerate().all(may_grant) && self.unrecovered().is_none()
    }

    /// Waits until the requests after the faults are granted, at most until this time.
    pub(super) fn check(&mut self, until: u64) {
        let n_expected = self.pools.len();
        let text = if self.n_probes_granted == n_expected {
            self.unrecovered()
        } else {
            let table = self.engine.present(RecordKey::Pool(POOL)).1;
            Some(format!("{} of {n_expected} requests are granted: {table:?}", self.n_probes_granted))
        };
        match text {
            None => self.is_over = true,
            Some(_) if self.now < until => self.after(1_000, Event::Check { until }),
            Some(text) => self.violated(text),
        }
    }

    /// Returns what does not work.
    fn unrecovered(&self) -> Option<String> {
        for (machine, it) in self.machines.iter().enumerate() {
            let is_member = it.process.as_ref().is_none_or(|it| {
                it.node.incarnation(self.clock(machine)).is_some_and(|_| it.sessions.is_empty())
            });
            if !is_member || it.old.is_some() {
                return Some(format!("machine {machine} has not recovered"));
            }
        }
        let running = || (0..self.machines.len()).filter(|it| self.machines[*it].process.is_some());
        let n_origins =
            running().filter(|it| matches!(self.role(*it), Some(ChannelRole::Origin { .. }))).count();
        let n_edges = running().filter(|it| matches!(self.role(*it), Some(ChannelRole::Edge { .. }))).count();
        if n_origins != 1 || n_origins + n_edges != running().count() {
            let roles: Vec<_> = running().map(|it| self.role(it)).collect();
            return Some(format!("the channel has not recovered: {roles:?}"));
        }
        let job = |it: &usize| self.machines[*it].process.as_ref().and_then(|it| it.node.job(JOB)?.running());
        let n_running = running().filter_map(|it| job(&it)).count();
        (n_running != 1).then(|| format!("{n_running} machines run the job"))
    }
}
