//! The profile limit: no upstream opens without a lease on a slot of its account profile.
//!
//! *Dramatis personae.* The [`SlotTable`] is a plain value owned by the system: who holds which lease. A [`Lease`] is
//! a guard on it and is returned by its `Drop`, whatever the way out. The slots actor is queue and policy in front
//! of the table: it grants, parks a request for at most [`LEASE_WAIT`], and tells holders, one at a time, to yield.
//! Were the actor to die, no lease would be forgotten and none granted twice.
//!
//! Nobody waits for anybody here: a request and its outcome are two messages, and a holder's answer is its lease
//! coming back or a `Kept`.

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

/// Most requests parked at once. Beyond it a request is answered `Full` at once: each parked request is a live
/// channel, so that many at their limit is an overload that waiting does not mend.
const PARKED_MAX: usize = 1024;

/// Which account is at its limit, and since when nothing came back on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullPool {
    /// The name of the account.
    pub account: String,
    /// How long the oldest of its leases is out.
    pub since: Duration,
    /// Its limit.
    pub max_streams: u32,
}

/// The door of the slots actor.
#[derive(Clone)]
pub(crate) struct Slots {
    address: Address<Message>,
    table: Arc<SlotTable>,
}

impl Slots {
    pub(crate) fn new(address: Address<Message>, table: Arc<SlotTable>) -> Self {
        Self { address, table }
    }

    /// Asks for the first free slot. `Granted` or `Full` comes to the holder's port; a lost request is found by the
    /// deadline of whoever asked.
    pub(crate) fn request(&self, request: Request) {
        self.address.tell(Message::Request(request));
    }

    /// The request is no longer wanted.
    pub(crate) fn cancel(&self, holder: u64, attempt: domain::playout::Attempt) {
        self.address.tell(Message::Cancel { holder, attempt });
    }

    /// This lease is on its way back: its source was told to go. Whoever asks next may wait for it.
    pub(crate) fn closing(&self, lease: u64) {
        self.table.closing(lease);
    }

    /// Nobody watches this holder's channel any more: it would yield now.
    pub(crate) fn lingering(&self, holder: u64) {
        self.address.tell(Message::Lingering { holder });
    }

    /// A holder was asked to yield and keeps its lease.
    pub(crate) fn kept(&self, holder: u64, asked_by: u64) {
        self.address.tell(Message::Kept { holder, asked_by });
    }
}
