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
//! request that has waited in vain may try to exceed it.
//!
//! No actor waits for another one here: a request and its outcome are two messages, and a holder replies by returning
//! its lease or with `Kept`.

mod actor;
mod holder;
mod lease;
mod lease_table;
mod message;
mod reserved;
#[cfg(test)]
pub(crate) mod revocable;
mod snapshot;
mod table;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::time::Duration;

pub(crate) use self::actor::{Actor, Arguments};
pub(crate) use self::holder::{CloseReason, Holder};
pub(crate) use self::lease::Lease;
pub(crate) use self::lease_table::LeaseTable;
pub(crate) use self::message::{Asking, HolderPort, Message, Request, SlotCandidate, SlotMessage};
pub(crate) use self::reserved::ReservedSlots;
pub use self::snapshot::{CoolingSlot, SlotElsewhere, SlotsSnapshot, WaitingRequest};
pub use self::table::{LeaseInfo, LeasePurpose, OtherSlot, SharedLease};
pub(crate) use self::table::{SlotTable, WaitingEntry};
#[cfg(doc)]
use domain::settings::LEASE_WAIT;

/// Maximum number of waiting requests. Beyond it, a request is refused as `Full` immediately: each waiting request
/// belongs to a live channel, so this many requests at their limit are an overload that waiting does not resolve.
pub(crate) const PARKED_MAX: usize = 1024;

/// The account that is at its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullPool {
    /// Name of the account.
    pub account: String,
    /// Name of its server group, if that is at its limit and not the account.
    pub server_group: Option<String>,
    /// Age of its oldest lease.
    pub since: Duration,
    /// Its maximum number of connections.
    pub max_streams: u32,
    /// The maximum was not configured but discovered by a refusal of the provider.
    pub is_discovered: bool,
    /// How many of its connections are reserved for recordings that begin soon.
    pub n_reserved: u32,
    /// The nodes of the cluster could not be asked, so it is not known whether it is at its limit.
    pub is_unknown: bool,
}

impl fmt::Display for FullPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, max_streams: max, .. } = self;
        if self.is_unknown {
            return write!(
                f,
                "account \"{account}\" has a limit of connections, and this node cannot ask the other nodes of the \
                 cluster for one"
            );
        }
        let streams = if *max == 1 { "stream" } else { "streams" };
        match (&self.server_group, self.is_discovered) {
            (Some(group), _) => write!(
                f,
                "server group \"{group}\" of account \"{account}\" is at its limit of {max} {streams}"
            )?,
            (None, false) => write!(f, "account \"{account}\" is at its limit of {max} {streams}")?,
            (None, true) => {
                write!(f, "the provider of account \"{account}\" refuses more than {max} {streams} at once")?
            }
        }
        match self.n_reserved {
            0 => Ok(()),
            1 => f.write_str(", of which 1 is reserved for a recording"),
            n => write!(f, ", of which {n} are reserved for recordings"),
        }
    }
}
