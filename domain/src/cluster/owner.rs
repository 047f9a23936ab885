//! The origin of one channel: the node that opens its source. The other nodes with viewers are edges, which pull it.
//!
//! ```text
//!   Idle ──▶ Pulling ──▶ Edge          another node is the origin
//!     │         ▲ │        │ the pull is lost, and fails for 1 s
//!     │ swap    │ ▼        │ swap, epoch + 1
//!     └──────▶ Origin ◀────┘
//!               │ replaced, and the new origin cannot be reached; or the incarnation is over
//!               ▼
//!             Alone          plays for its own viewers for as long as its lease is valid
//! ```
//!
//! The origin changes by a swap of the record only, so each epoch has one origin. Safety at the provider does not rest
//! on it: each source has a lease of its own.

use std::time::Duration;

use uuid::Uuid;

use super::BootTime;
use super::member::Member;
use super::outbox::{NodeEffect, Outbox, next_after};
use super::record::{ClusterRecord, Incarnation, NodeId, OwnerRecord, RecordKey};
use super::rules::ClusterRule;
use super::tracked::{RecordFollower, Tracked};

/// Interval at which a node that plays alone tries to reach the origin again.
const PULL_AGAIN: Duration = Duration::from_secs(10);

/// The part of a node in a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelRole {
    Idle,
    /// It opens the source, and the other nodes pull from it.
    Origin {
        epoch: u64,
    },
    /// It connects to the origin. `has_source`: it was the origin before, and plays its own source until then.
    Pulling {
        from: NodeId,
        epoch: u64,
        has_source: bool,
    },
    Edge {
        from: NodeId,
        epoch: u64,
    },
    /// It was the origin, cannot reach the one of `epoch`, and plays its own source for its own viewers.
    Alone {
        epoch: u64,
    },
}

/// A channel, as one node sees it.
#[derive(Debug, Clone)]
pub struct ChannelOwner {
    channel: Uuid,
    record: Tracked<OwnerRecord>,
    role: ChannelRole,
    is_wanted: bool,
    /// The node may open the sources of this channel.
    may_originate: bool,
    /// The last record that this node wrote since the engine started, by which it recognises a write without a known
    /// outcome.
    wrote: Option<OwnerRecord>,
    /// The epoch whose origin this node could not reach, or is to replace.
    unreachable: Option<u64>,
    /// The last request for another origin: the highest epoch then, and the one to replace.
    sought: Option<(u64, Option<u64>)>,
    /// Time at which a node that plays alone tries to pull again.
    pull_again_at: BootTime,
    /// The highest epoch that was seen, also before a restart of the engine.
    highest_epoch: u64,
    /// The engine has restarted, and the origin has not yet seen its record again.
    is_recovering: bool,
}

impl ChannelOwner {
    pub(super) fn new(channel: Uuid, may_originate: bool, out: &Outbox) -> Self {
        Self {
            channel,
            record: Tracked::new(RecordKey::Channel(channel), out),
            role: ChannelRole::Idle,
            is_wanted: false,
            may_originate,
            wrote: None,
            unreachable: None,
            sought: None,
            pull_again_at: out.now,
            highest_epoch: 0,
            is_recovering: false,
        }
    }

    pub fn role(&self) -> ChannelRole {
        self.role
    }

    /// Notes whether viewers of this node watch the channel, and whether it may become the origin.
    pub(super) fn want(&mut self, is_wanted: bool, may_originate: bool, member: &Member, out: &mut Outbox) {
        (self.is_wanted, self.may_originate) = (is_wanted, may_originate);
        self.advance(member, out);
    }

    /// Notes that the channel is pulled from the origin of this epoch.
    pub(super) fn pulled(&mut self, pulled: u64, member: &Member, out: &mut Outbox) {
        if !self.may_originate && self.unreachable == Some(pulled) {
            // It answers again before another node has taken its place.
            (self.unreachable, self.sought) = (None, None);
        }
        if let ChannelRole::Pulling { from, epoch, has_source } = self.role
            && epoch == pulled
        {
            self.role = ChannelRole::Edge { from, epoch };
            if has_source {
                out.push(NodeEffect::ReleaseSource { channel: self.channel });
            }
            self.advance(member, out);
        }
    }

    /// Notes that the origin of this epoch has not answered for 1 s.
    pub(super) fn pull_lost(&mut self, lost: u64, member: &Member, out: &mut Outbox) {
        match self.role {
            ChannelRole::Pulling { epoch, has_source: true, .. } if epoch == lost => {
                self.role = ChannelRole::Alone { epoch };
                self.pull_again_at = out.now + PULL_AGAIN;
            }
            ChannelRole::Pulling { epoch, .. } | ChannelRole::Edge { epoch, .. } if epoch == lost => {
                self.unreachable = Some(epoch);
            }
            _ => return,
        }
        self.advance(member, out);
    }

    /// Takes the place of the origin of this epoch, unless another node has done so.
    pub(super) fn replace(&mut self, epoch: u64, member: &Member, out: &mut Outbox) {
        if self.is_wanted && self.may_originate && self.highest_epoch <= epoch {
            self.unreachable = Some(epoch);
            self.advance(member, out);
        }
    }

    /// Notes that the source that this node played alone has ended.
    pub(super) fn source_lost(&mut self, member: &Member, out: &mut Outbox) {
        match &mut self.role {
            role @ ChannelRole::Alone { .. } => *role = ChannelRole::Idle,
            ChannelRole::Pulling { has_source, .. } => *has_source = false,
            _ => return,
        }
        self.advance(member, out);
    }

    /// Notes that the incarnation is over: others may become the origin.
    pub(super) fn lost(&mut self) {
        if let ChannelRole::Origin { epoch } = self.role {
            self.role = ChannelRole::Alone { epoch };
        }
    }

    /// Notes that the engine has restarted, and may have lost records.
    pub(super) fn restarted(&mut self, out: &Outbox) {
        self.record.restarted(out);
        // The engine may have lost an older record of this node, which others have replaced since, and found it again.
        self.wrote = None;
        self.sought = None;
        self.is_recovering = matches!(self.role, ChannelRole::Origin { .. });
    }

    /// Returns the present epoch of this node, if it is the origin and the engine has lost that. The node writes it
    /// again at once, while others pause. It writes the same number: the engine may also have lost records with higher
    /// numbers, which this node never saw.
    fn lost_epoch(&self, record: OwnerRecord) -> Option<u64> {
        match self.role {
            ChannelRole::Origin { epoch } if self.is_recovering && record.epoch < epoch => Some(epoch),
            _ => None,
        }
    }

    /// Returns whether this node was made the origin by a write of its own, and not by one that the engine has lost and
    /// found again.
    fn is_known_as_origin(&self, record: OwnerRecord) -> bool {
        self.role == (ChannelRole::Origin { epoch: record.epoch }) || self.wrote == Some(record)
    }

    fn originate(&mut self, epoch: u64, out: &mut Outbox) {
        if self.role != (ChannelRole::Origin { epoch }) {
            self.role = ChannelRole::Origin { epoch };
            out.push(NodeEffect::Originate { channel: self.channel, epoch });
        }
    }

    fn follow(&mut self, from: NodeId, epoch: u64, out: &mut Outbox) {
        let has_source = match self.role {
            ChannelRole::Pulling { from: of, epoch: present, .. }
            | ChannelRole::Edge { from: of, epoch: present }
                if (of, present) == (from, epoch) =>
            {
                return;
            }
            ChannelRole::Alone { epoch: present } if present == epoch && out.now < self.pull_again_at => {
                return;
            }
            ChannelRole::Origin { .. } | ChannelRole::Alone { .. } => true,
            ChannelRole::Pulling { has_source, .. } => has_source,
            ChannelRole::Idle | ChannelRole::Edge { .. } => false,
        };
        self.role = ChannelRole::Pulling { from, epoch, has_source };
        out.push(NodeEffect::Pull { channel: self.channel, from, epoch });
    }

    /// Makes this node the origin.
    fn take(&mut self, epoch: u64, incarnation: Incarnation, out: &mut Outbox) {
        if !self.may_originate {
            return self.seek(out);
        }
        if !self.record.can_write(out) {
            return;
        }
        let record = OwnerRecord { origin: Some((out.node, incarnation)), epoch };
        self.wrote = Some(record);
        self.record.write(record, ClusterRecord::Channel, out);
        if !out.rules.hold(ClusterRule::OwnBySwap) {
            self.originate(record.epoch, out);
        }
    }

    /// Lets another node be asked for the channel.
    fn seek(&mut self, out: &mut Outbox) {
        let replaces = self.unreachable.filter(|_| self.role != ChannelRole::Idle);
        let sought = (self.highest_epoch, replaces);
        if self.sought.replace(sought) != Some(sought) {
            out.push(NodeEffect::SeekOrigin { channel: self.channel, replaces });
        }
    }

    /// Ends the part of this node, and its ownership.
    fn release(&mut self, member: &Member, out: &mut Outbox) {
        self.sought = None;
        if self.role != ChannelRole::Idle {
            self.role = ChannelRole::Idle;
            self.unreachable = None;
            self.is_recovering = false;
            out.push(NodeEffect::ReleaseSource { channel: self.channel });
        }
        let Some(&(_, record)) = self.record.view() else { return };
        let me = member.active(out.now).map(|it| (out.node, it));
        if record.origin.is_some()
            && record.origin == me
            && self.record.is_known_or_read(out)
            && self.record.can_write(out)
            && member.is_registered()
        {
            let record = OwnerRecord { origin: None, ..record };
            self.wrote = Some(record);
            self.record.write(record, ClusterRecord::Channel, out);
        }
    }

    /// Returns when [`RecordFollower::advance`] has to be called next.
    pub(super) fn deadline(&self, now: BootTime) -> Option<BootTime> {
        let is_alone = matches!(self.role, ChannelRole::Alone { .. });
        next_after(now, self.record.retries().chain(is_alone.then_some(self.pull_again_at)))
    }
}

impl RecordFollower for ChannelOwner {
    type Record = OwnerRecord;

    fn record(&mut self) -> &mut Tracked<OwnerRecord> {
        &mut self.record
    }

    fn advance(&mut self, member: &Member, out: &mut Outbox) {
        if !self.is_wanted {
            return self.release(member, out);
        }
        if !self.record.is_known_or_read(out) {
            return;
        }
        let Some(&(_, record)) = self.record.view() else { return };
        self.highest_epoch = self.highest_epoch.max(record.epoch);
        if member.is_handed_over() {
            // It follows another node, but never the process that reads from it.
            let others = record.origin.filter(|it| it.0 != out.node);
            if let Some((from, _)) = others.filter(|it| member.ending_of(it.0, it.1, out.node).is_none()) {
                self.follow(from, record.epoch, out);
            }
            return;
        }
        let Some(incarnation) = member.active(out.now) else { return };
        let me = (out.node, incarnation);
        let is_live =
            |it: &(NodeId, Incarnation)| *it == me || member.ending_of(it.0, it.1, out.node).is_none();
        let lost_epoch = self.lost_epoch(record);
        match record.origin.filter(is_live) {
            Some(origin) if origin == me && self.is_known_as_origin(record) => {
                self.is_recovering = false;
                self.originate(record.epoch, out);
            }
            Some((from, _)) if from != out.node && lost_epoch.is_none() => {
                self.is_recovering = false;
                self.follow(from, record.epoch, out);
                if self.unreachable == Some(record.epoch) && member.may_grant(out.now) {
                    self.take(self.highest_epoch + 1, incarnation, out);
                }
            }
            _ => match lost_epoch {
                Some(epoch) if member.is_registered() => self.take(epoch, incarnation, out),
                None if member.may_grant(out.now) => self.take(self.highest_epoch + 1, incarnation, out),
                _ => {}
            },
        }
    }
}
