//! The origin of the channel, its edges, and the job.

use super::event::Event;
use super::machines::{Machine, Power};
use super::{CHANNEL, JOB, World};
use crate::cluster::NodeInput;
use crate::cluster::owner::ChannelRole;
use crate::cluster::record::{NodeId, ProcessId};

impl World {
    pub(super) fn role(&self, machine: usize) -> Option<ChannelRole> {
        Some(self.machines[machine].process.as_ref()?.node.channel(CHANNEL)?.role())
    }

    /// Returns the part of the process before, which keeps the connections of its edges.
    fn old_role(&self, machine: usize) -> Option<ChannelRole> {
        Some(self.machines[machine].old.as_ref()?.node.channel(CHANNEL)?.role())
    }

    pub(super) fn originates(&mut self, machine: usize, epoch: u64) {
        let is_other = |it: &usize| {
            *it != machine
                && self.machines[*it].power == Power::On
                && self.role(*it) == Some(ChannelRole::Origin { epoch })
        };
        if let Some(other) = (0..self.machines.len()).find(is_other) {
            self.violated(format!("machines {other} and {machine} are both the origin of epoch {epoch}"));
        }
    }

    pub(super) fn pull_tried(
        &mut self,
        machine: usize,
        process: ProcessId,
        from: usize,
        epoch: u64,
        is_last: bool,
    ) {
        if !self.is_running(machine, process) {
            return;
        }
        let is_origin = self.machines[from].power == Power::On
            && (self.role(from) == Some(ChannelRole::Origin { epoch })
                || self.old_role(from) == Some(ChannelRole::Origin { epoch }))
            && self.is_linked(machine, from);
        let is_edge = self.role(machine) == Some(ChannelRole::Edge { from: NodeId(from as u32), epoch });
        if !is_origin && is_last {
            return self.input(machine, NodeInput::PullLost { channel: CHANNEL, epoch });
        }
        if is_origin && !is_edge && self.follows(machine, from) {
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

    pub(super) fn runs_job(&mut self, machine: usize) {
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
}
