//! The process before this one, while it still serves viewers after a restart.
//!
//! It keeps its connections to providers as long as its own viewers watch. Until then this process counts their slots as in
//! use, and reads a channel that plays there from its ring instead of a second connection to the provider. When the last
//! viewer there has left, the old process closes its connection and returns the slot; channels here continue with a
//! connection of their own.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};

use domain::ids::{ProfileId, StreamId};
use media::error::{Cause, UpstreamError};
use media::source::{self, NodeRequest, Source, Upstream};

use crate::plans::Target;
use crate::slots::{Lease, OtherSlot, SlotTable};

/// Opens a connection to the rings of the process before this one.
pub type RingConnector = Box<dyn Fn() -> io::Result<UnixStream> + Send + Sync>;

/// The process before this one, if it still has slots. Clones share it.
#[derive(Clone, Default)]
pub struct Predecessor {
    inner: Arc<OnceLock<Inner>>,
}

struct Inner {
    slots: Arc<SlotTable>,
    connect: RingConnector,
}

impl Predecessor {
    /// Counts the slots of that process from now on. Only the first call has an effect.
    pub(crate) fn follow(&self, table: Arc<SlotTable>, slots: Vec<OtherSlot>, connect: RingConnector) {
        table.count_predecessor(slots);
        let _ = self.inner.set(Inner { slots: table, connect });
    }

    /// Notes that a live channel of that process has ended.
    pub fn returned(&self, holder: u64) {
        if let Some(inner) = self.inner.get() {
            inner.slots.returned_by_predecessor(Some(holder));
        }
    }

    /// Notes that the process has ended.
    pub fn ended(&self) {
        if let Some(inner) = self.inner.get() {
            inner.slots.returned_by_predecessor(None);
        }
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
