//! A job that one node runs for all, such as the importer. It moves when its node ends or gives it up.
//!
//! A node runs the job only while its incarnation is valid, so that a job whose node is lost can begin elsewhere at the
//! take-over, within 30 s. The revision of the record is the fencing number of the job's work.

use super::BootTime;
use super::member::Member;
use super::outbox::{NodeEffect, Outbox, next_after};
use super::record::{ClusterRecord, Incarnation, JobName, JobRecord, NodeId, RecordKey, Revision};
use super::rules::ClusterRule;
use super::tracked::{RecordFollower, Tracked};

/// A job, as one node sees it.
#[derive(Debug, Clone)]
pub struct JobOwner {
    job: JobName,
    record: Tracked<JobRecord>,
    /// This node would run the job.
    is_wanted: bool,
    /// The fencing number with which this node runs the job.
    running: Option<Revision>,
}

impl JobOwner {
    pub(super) fn new(job: JobName, out: &Outbox) -> Self {
        Self { job, record: Tracked::new(RecordKey::Job(job), out), is_wanted: false, running: None }
    }

    /// Returns the fencing number with which this node runs the job.
    pub fn running(&self) -> Option<Revision> {
        self.running
    }

    /// Notes whether this node would run the job.
    pub(super) fn want(&mut self, is_wanted: bool, member: &Member, out: &mut Outbox) {
        self.is_wanted = is_wanted;
        self.advance(member, out);
    }

    /// Stops the job, because the incarnation is over.
    pub(super) fn lost(&mut self, out: &mut Outbox) {
        if self.running.take().is_some() {
            out.push(NodeEffect::StopJob { job: self.job });
        }
    }

    /// Notes that the engine has restarted, and may have lost records.
    pub(super) fn restarted(&mut self, out: &Outbox) {
        self.record.restarted(out);
    }

    /// Runs the job. After a restart of the engine, a record of this node may be an old one that others have replaced.
    fn run(&mut self, fence: Revision, member: &Member, out: &mut Outbox) {
        let may_run = self.running.is_some() || member.may_grant(out.now);
        if may_run && self.running.replace(fence) != Some(fence) {
            out.push(NodeEffect::RunJob { job: self.job, fence });
        }
    }

    fn write(&mut self, owner: Option<(NodeId, Incarnation)>, member: &Member, out: &mut Outbox) {
        if member.is_registered() && self.record.can_write(out) {
            self.record.write(JobRecord { owner }, ClusterRecord::Job, out);
        }
    }

    /// Returns when [`RecordFollower::advance`] has to be called next.
    pub(super) fn deadline(&self, now: BootTime) -> Option<BootTime> {
        next_after(now, self.record.retries())
    }
}

impl RecordFollower for JobOwner {
    type Record = JobRecord;

    fn record(&mut self) -> &mut Tracked<JobRecord> {
        &mut self.record
    }

    fn advance(&mut self, member: &Member, out: &mut Outbox) {
        if !self.is_wanted && self.running.is_none() && self.record.view().is_none() {
            return;
        }
        if !self.record.is_known_or_read(out) {
            return;
        }
        let Some(&(revision, record)) = self.record.view() else { return };
        let Some(incarnation) = member.active(out.now) else { return };
        let me = (out.node, incarnation);
        let is_over = |it: &(NodeId, Incarnation)| member.ending_of(it.0, it.1, out.node).is_some();
        // The process before this one of the same node runs no job any more, also if its incarnation is not over.
        let is_of_predecessor = |it: &(NodeId, Incarnation)| it.0 == out.node && *it != me;
        let is_live = |it: &(NodeId, Incarnation)| *it == me || !is_of_predecessor(it) && !is_over(it);
        match record.owner.filter(is_live) {
            Some(owner) if owner == me && self.is_wanted => self.run(revision, member, out),
            Some(owner) if owner == me => {
                self.lost(out);
                self.write(None, member, out);
            }
            // A job that runs here when the engine has lost that is registered again.
            _ if self.running.is_some() && !member.may_grant(out.now) => {
                self.write(Some(me), member, out);
            }
            Some(_) => self.lost(out),
            None if self.is_wanted && member.may_grant(out.now) => {
                if !out.rules.hold(ClusterRule::OwnBySwap) {
                    self.run(Revision(revision.0 + 1), member, out);
                }
                self.write(Some(me), member, out);
            }
            // The others take it only if they see that it is free.
            None if record.owner.is_some_and(|it| is_of_predecessor(&it) && !is_over(&it)) => {
                self.write(None, member, out);
            }
            None => {}
        }
    }
}
