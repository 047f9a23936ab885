//! What the slots actor can be told, and what it tells holders.

use domain::plan::SlotPool;
use domain::playout::Attempt;
use ractor::DerivedActorRef;

use super::{FullPool, Lease, LeasePurpose};
use crate::viewer::Viewer;

/// Where a holder hears of grants and is asked to yield.
pub(crate) type HolderPort = DerivedActorRef<SlotMessage>;

/// What a holder is told.
#[derive(Debug)]
pub(crate) enum SlotMessage {
    /// The slot is yours. `index` is the place's, as it was asked for.
    Granted { attempt: Attempt, index: usize, lease: Lease },
    /// None was free in time.
    Full { attempt: Attempt, full: FullPool },
    /// Someone waits for your slot. Give it back, or answer `Kept`.
    Yield { asked_by: u64, viewer: Option<Viewer> },
}

/// Who asks for a slot, which decides how long it may wait and whom it may replace.
#[derive(Clone, Debug)]
pub(crate) enum Asking {
    /// A client joins: may wait, and may replace lingering channels and the same viewer's own.
    Join(Option<Viewer>),
    /// A viewer's channel lost its source: may wait, and may replace lingering channels only.
    Failover,
    /// A manual switch: a slot that is free now, or the asker's own that is coming back.
    Switch,
}

/// A request for the first free of some places, in order.
#[derive(Debug)]
pub(crate) struct Request {
    /// The live channel that asks (its serial).
    pub(crate) holder: u64,
    pub(crate) port: HolderPort,
    pub(crate) attempt: Attempt,
    /// The places in order: index in the holder's plan, and the pool it stands on.
    pub(crate) order: Vec<(usize, SlotPool)>,
    pub(crate) asking: Asking,
    pub(crate) purpose: LeasePurpose,
}

/// Everything the slots actor can be told.
pub(crate) enum Message {
    /// A live channel wants the first free slot.
    Request(Request),
    /// It no longer wants it.
    Cancel { holder: u64, attempt: Attempt },
    /// A lease came back, or a cooling slot became free.
    Returned,
    /// A holder that was asked to yield keeps its lease.
    Kept { holder: u64, asked_by: u64 },
    /// A holder's channel has nobody watching any more; asked again, it yields.
    Lingering { holder: u64 },
    /// The wait of a parked request is over.
    Expired { request: u64 },
}
