//! The limit per account profile and per server group: no upstream connection opens without a lease, which takes a
//! slot of both.
//!
//! Holders know only the trait [`LeaseTable`]. A node of a cluster has [`ClusterLeases`](crate::cluster::ClusterLeases) in
//! front of the implementation for a single node, which has two parts:
//!
//! The [`SlotTable`] is a plain value owned by the system that contains all leases. A [`Lease`] is a guard on it,
//! returned by its `Drop`. The slots actor adds the queue and the policy: it grants leases, lets a request wait for at
//! most [`LEASE_WAIT`], and asks holders, one at a time, to yield. If the actor dies, no lease is forgotten and none is
//! granted twice.
//!
//! An account without a configured limit may still have one. The table remembers what its connections showed
//! ([`domain::limits::ObservedLimit`]): a limit discovered by a refusal is treated like a configured one, except that a
//! request that has waited in vain may try to exceed it. So is the number of tuners that a device states.
//!
//! No actor waits for another one here: a request and its outcome are two messages, and a holder replies by returning
//! its lease or with `Kept`.

mod actor;
mod device_question;
mod devices;
mod full_pool;
mod holder;
mod lease;
mod lease_info;
mod lease_table;
mod message;
mod other_slot;
mod reserved;
#[cfg(test)]
pub(crate) mod revocable;
mod snapshot;
mod table;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use self::actor::{Actor, Arguments};
pub(crate) use self::devices::ask_devices;
pub use self::full_pool::FullPool;
pub(crate) use self::holder::{CloseReason, Holder};
pub(crate) use self::lease::Lease;
pub use self::lease_info::{LeaseInfo, LeasePurpose};
pub(crate) use self::lease_table::{LeaseTable, ProviderRefusal};
pub(crate) use self::message::{Asking, HolderPort, Message, Request, SlotCandidate, SlotMessage};
pub use self::other_slot::{OtherSlot, SharedLease};
pub(crate) use self::reserved::ReservedSlots;
pub use self::snapshot::{CoolingSlot, SlotElsewhere, SlotsSnapshot, WaitingRequest};
pub(crate) use self::table::{SlotTable, WaitingEntry};
#[cfg(doc)]
use domain::settings::LEASE_WAIT;

/// Maximum number of waiting requests. Beyond it, a request is refused as `Full` immediately: each waiting request
/// belongs to a live channel, so this many requests at their limit are an overload that waiting does not resolve.
pub(crate) const PARKED_MAX: usize = 1024;
