//! Messages to and from the slots actor.

use std::time::Duration;

use domain::ids::StreamId;
use domain::plan::{Candidate, SlotPool};
use domain::playout::Attempt;
use domain::recording::RecordingClaim;
use ractor::DerivedActorRef;

use super::device_question::DeviceAddress;
use super::{FullPool, Lease, LeasePurpose};
use crate::plans::Target;
use crate::viewer::Viewer;

/// Stands for a request to yield for which no request waits.
pub(super) const NO_REQUEST: u64 = 0;

/// The address of a holder, for grants and requests to yield.
pub(crate) type HolderPort = DerivedActorRef<SlotMessage>;

/// A message to a holder.
#[derive(Debug)]
pub(crate) enum SlotMessage {
    /// A slot is granted. `index` is the candidate's index in the request.
    Granted { attempt: Attempt, index: usize, lease: Lease },
    /// No slot came free in time.
    Full { attempt: Attempt, full: FullPool },
    /// Another holder needs the slot. The receiver returns its lease or replies `Kept`. `asked_by` is the waiting
    /// request, or [`NO_REQUEST`]; `claim` is that of the recordings of a channel.
    Yield { asked_by: u64, viewer: Option<Viewer>, claim: Option<RecordingClaim> },
    /// The lease with this number ends: another node may open its connection after this time. The receiver closes its
    /// source at once and returns the lease. Sent in a cluster only, by a node that has lost contact with the others.
    Revoked { lease: u64, within: Duration },
}

/// The reason of a request. It decides how long the request may wait and whom it may replace.
#[derive(Clone, Debug)]
pub(crate) enum Asking {
    /// A client joins. The request may wait, and may replace lingering channels and the same viewer's own channel.
    Join(Option<Viewer>),
    /// A channel lost its source. The request may wait, and may replace lingering channels only.
    Failover,
    /// A manual switch. It gets a slot that is free now, or the holder's own slot that is being returned.
    Switch,
    /// A second connection of the holder, beside the one that it has. It is granted or refused at once, and nobody
    /// yields to it. It needs a free slot for which nobody waits, or, without a configured limit, an account without
    /// another connection or a provider that has carried two connections at once.
    Beside,
}

/// A candidate of a request.
#[derive(Clone, Debug)]
pub(crate) struct SlotCandidate {
    /// Index in the holder's plan.
    pub(crate) index: usize,
    pub(crate) stream: StreamId,
    pub(crate) pool: SlotPool,
    /// Where its device can be asked for the number of its tuners.
    pub(crate) device: Option<DeviceAddress>,
}

impl SlotCandidate {
    pub(crate) fn new(index: usize, candidate: &Candidate) -> Self {
        let device = DeviceAddress::new(candidate);
        Self { index, stream: candidate.stream, pool: candidate.pool.clone(), device }
    }
}

/// A request for the first free slot of some candidates, in order.
#[derive(Debug)]
pub(crate) struct Request {
    /// Serial of the live channel that sends the request.
    pub(crate) holder: u64,
    /// The channel, preview or trial that needs the slot.
    pub(crate) target: Target,
    pub(crate) port: HolderPort,
    pub(crate) attempt: Attempt,
    /// The candidates, best first.
    pub(crate) order: Vec<SlotCandidate>,
    pub(crate) asking: Asking,
    /// The connections that the recordings of a channel may take from others.
    pub(crate) claim: Option<RecordingClaim>,
    pub(crate) purpose: LeasePurpose,
}

impl Request {
    /// Returns the same request with these candidates only.
    pub(crate) fn with_candidates(&self, places: &[usize]) -> Self {
        Self {
            port: self.port.clone(),
            order: places.iter().map(|it| self.order[*it].clone()).collect(),
            asking: self.asking.clone(),
            ..*self
        }
    }
}

/// The messages of the slots actor.
pub(crate) enum Message {
    /// Requests the first free slot.
    Request(Request),
    /// Cancels a request.
    Cancel { holder: u64, attempt: Attempt },
    /// A lease came back, or a cooling slot became free.
    Returned,
    /// A holder that was asked to yield keeps its lease.
    Kept { holder: u64, asked_by: u64 },
    /// Nobody watches the holder's channel any more; if it is asked again, it yields.
    Lingering { holder: u64 },
    /// The provider refused this holder a connection on an account profile: everybody there, or in the same server group,
    /// that nobody watches yields.
    MakeRoom { holder: u64, pool: SlotPool },
    /// The wait of a request is over.
    Expired { request: u64 },
}
