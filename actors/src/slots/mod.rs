//! The limit per account profile: no upstream connection opens without a lease on a slot of its profile.
//!
//! The [`SlotTable`] is a plain value owned by the system that contains all leases. A [`Lease`] is a guard on it,
//! returned by its `Drop`. The slots actor adds the queue and the policy: it grants leases, lets a request wait for at
//! most [`LEASE_WAIT`], and asks holders, one at a time, to yield. If the actor dies, no lease is forgotten and none is
//! granted twice.
//!
//! No actor waits for another one here: a request and its outcome are two messages, and a holder replies by returning
//! its lease or with `Kept`.

mod actor;
mod lease;
mod message;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::actor::{Actor, Arguments};
pub(crate) use self::lease::Lease;
pub(crate) use self::message::{Asking, HolderPort, Message, Request, SlotMessage};
pub(crate) use self::table::SlotTable;
pub use self::table::{LeaseInfo, LeasePurpose};
#[cfg(doc)]
use domain::settings::LEASE_WAIT;

use crate::ask::Address;

/// Maximum number of waiting requests. Beyond it, a request is refused as `Full` immediately: each waiting request
/// belongs to a live channel, so this many requests at their limit are an overload that waiting does not resolve.
const PARKED_MAX: usize = 1024;

/// The account that is at its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullPool {
    /// Name of the account.
    pub account: String,
    /// Age of its oldest lease.
    pub since: Duration,
    /// Its maximum number of connections.
    pub max_streams: u32,
}

/// The handle of the slots actor.
#[derive(Clone)]
pub(crate) struct Slots {
    address: Address<Message>,
    table: Arc<SlotTable>,
}

impl Slots {
    pub(crate) fn new(address: Address<Message>, table: Arc<SlotTable>) -> Self {
        Self { address, table }
    }

    /// Requests the first free slot. The holder's port receives `Granted` or `Full`; the deadline of the holder covers
    /// a lost request.
    pub(crate) fn request(&self, request: Request) {
        self.address.tell(Message::Request(request));
    }

    /// Cancels a request.
    pub(crate) fn cancel(&self, holder: u64, attempt: domain::playout::Attempt) {
        self.address.tell(Message::Cancel { holder, attempt });
    }

    /// Marks a lease as closing, because its source is being closed. A later request can wait for it.
    pub(crate) fn closing(&self, lease: u64) {
        self.table.closing(lease);
    }

    /// Reports that nobody watches the channel of this holder any more: it would yield now.
    pub(crate) fn lingering(&self, holder: u64) {
        self.address.tell(Message::Lingering { holder });
    }

    /// Reports that a holder that was asked to yield keeps its lease.
    pub(crate) fn kept(&self, holder: u64, asked_by: u64) {
        self.address.tell(Message::Kept { holder, asked_by });
    }
}
