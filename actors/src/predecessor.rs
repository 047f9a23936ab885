//! The process before this one, while it still serves viewers after a restart.
//!
//! It keeps its connections to providers as long as its own viewers watch. Until then this process counts their slots as in
//! use, and reads a channel that plays there from its ring instead of a second connection to the provider. When the last
//! viewer there has left, the old process closes its connection and returns the slot; channels here continue with a
//! connection of their own. In a cluster, the leases of that process stay in the slot tables until then.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};

use domain::cluster::NodeInput;
use domain::cluster::predecessor::MemberPredecessor;
use domain::cluster::record::Incarnation;
use domain::ids::{ProfileId, StreamId};
use media::error::{Cause, UpstreamError};
use media::source::{self, NodeRequest, Source, Upstream};

use crate::cluster::ClusterLink;
use crate::plans::Target;
use crate::slots::{Lease, OtherSlot, SlotTable};

/// Opens a connection to the rings of the process before this one.
pub type RingConnector = Box<dyn Fn() -> io::Result<UnixStream> + Send + Sync>;

/// The slots and the membership of the process before this one.
#[derive(Clone, Debug, Default)]
pub struct PredecessorParts {
    /// The slots that it uses.
    pub slots: Vec<OtherSlot>,
    /// Its incarnation in a cluster; `None` without a cluster, or if it was not a member.
    pub incarnation: Option<Incarnation>,
}

impl PredecessorParts {
    /// Returns what the membership of this process keeps valid.
    pub fn membership(&self) -> Option<MemberPredecessor> {
        let incarnation = self.incarnation?;
        let leases = self.slots.iter().filter_map(OtherSlot::lease).map(|it| (it.lease, it.pool)).collect();
        Some(MemberPredecessor { incarnation, leases })
    }
}

/// The process before this one, if it still has slots. Clones share it.
#[derive(Clone, Default)]
pub struct Predecessor {
    inner: Arc<OnceLock<Inner>>,
}

struct Inner {
    slots: Arc<SlotTable>,
    connect: RingConnector,
    /// The way to the member, in a cluster.
    link: Option<ClusterLink>,
}

impl Predecessor {
    /// Counts the slots of that process from now on. Only the first call has an effect.
    pub(crate) fn follow(
        &self,
        table: Arc<SlotTable>,
        slots: Vec<OtherSlot>,
        connect: RingConnector,
        link: Option<ClusterLink>,
    ) {
        table.count_predecessor(slots);
        let _ = self.inner.set(Inner { slots: table, connect, link });
    }

    /// Notes that a live channel of that process has ended.
    pub fn returned(&self, holder: u64) {
        let Some(inner) = self.inner.get() else { return };
        for it in inner.slots.returned_by_predecessor(|it| it.holder() == holder) {
            inner.tell(NodeInput::PredecessorClosed { lease: Some(it.lease) });
        }
    }

    /// Notes that the process has closed all connections with leases of the cluster. Others stay.
    pub fn closed_shared(&self) {
        let Some(inner) = self.inner.get() else { return };
        inner.slots.returned_by_predecessor(|it| it.lease().is_some());
        inner.tell(NodeInput::PredecessorClosed { lease: None });
    }

    /// Notes that the process has ended.
    pub fn ended(&self) {
        let Some(inner) = self.inner.get() else { return };
        inner.slots.returned_by_predecessor(|_| true);
        inner.tell(NodeInput::PredecessorClosed { lease: None });
    }

    /// Returns the targets that the process plays.
    pub(crate) fn targets(&self) -> Vec<Target> {
        self.inner.get().map(|it| it.slots.predecessor_targets()).unwrap_or_default()
    }

    /// Returns whether the process still has slots.
    pub fn is_serving(&self) -> bool {
        self.inner.get().is_some_and(|it| it.slots.is_used_by_predecessor())
    }

    /// Returns the stream and the account profile with which that process plays a target.
    pub(crate) fn plays(&self, target: &Target) -> Option<(StreamId, ProfileId)> {
        self.inner.get()?.slots.predecessor_plays(target)
    }

    /// Reads the ring of a target. To be called on a runtime with sockets.
    pub(crate) async fn open(
        &self,
        target: Target,
        lease: Lease,
        upstream: &Upstream,
    ) -> Result<Source, UpstreamError> {
        let failed = |error: io::Error| UpstreamError::from(Cause::Connect(error.to_string()));
        let inner = self.inner.get().ok_or(Cause::Ended)?;
        let stream = (inner.connect)().and_then(|it| {
            it.set_nonblocking(true)?;
            tokio::net::UnixStream::from_std(it)
        });
        let request = NodeRequest {
            target: ring_name(target),
            after: None,
            place: "the process before the restart".to_owned(),
        };
        source::open_node(Box::new(stream.map_err(failed)?), &request, Box::new(lease), upstream).await
    }
}

impl Inner {
    fn tell(&self, input: NodeInput) {
        if let Some(link) = &self.link {
            link.send(input);
        }
    }
}

/// Returns the name of a target in requests for rings.
pub(crate) fn ring_name(target: Target) -> String {
    let kind = match target {
        Target::Channel(_) => "channel",
        Target::Stream(_) => "stream",
        Target::Movie(_) => "movie",
        Target::Episode(_) => "episode",
        Target::Archive(_) => "archive",
        Target::Recording(_) => "recording",
    };
    format!("{kind}:{}", target.uuid())
}
