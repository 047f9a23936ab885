//! The limit per account profile and per server group: no upstream connection opens without a lease, which takes a
//! slot of both.
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
mod message;
mod reserved;
mod snapshot;
mod table;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use domain::ids::{ProfileId, StreamId};
use domain::plan::SlotPool;

pub(crate) use self::actor::{Actor, Arguments};
pub(crate) use self::holder::Holder;
pub(crate) use self::lease::Lease;
pub(crate) use self::message::{Asking, HolderPort, Message, Request, SlotCandidate, SlotMessage};
pub(crate) use self::reserved::ReservedSlots;
pub use self::snapshot::{CoolingSlot, SlotsSnapshot, WaitingRequest};
pub(crate) use self::table::SlotTable;
pub use self::table::{LeaseInfo, LeasePurpose};
#[cfg(doc)]
use domain::settings::LEASE_WAIT;

use crate::ask::Address;
use crate::plans::Target;

/// Maximum number of waiting requests. Beyond it, a request is refused as `Full` immediately: each waiting request
/// belongs to a live channel, so this many requests at their limit are an overload that waiting does not resolve.
const PARKED_MAX: usize = 1024;

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
}

impl fmt::Display for FullPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, max_streams: max, .. } = self;
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

    /// Reports that the provider refused the connection of this lease in a way that can mean "too many connections".
    ///
    /// Returns whether other connections on the account profile are open or closing: then its limit may be the cause.
    pub(crate) fn refused(&self, lease: u64, pool: &SlotPool, stream: StreamId) -> bool {
        self.table.refused(lease, pool, stream)
    }

    /// Asks all other holders on this account profile, and on the accounts of its server group, to give up their slots if
    /// nobody watches.
    pub(crate) fn make_room(&self, holder: u64, pool: SlotPool) {
        self.address.tell(Message::MakeRoom { holder, pool });
    }

    /// Returns the account profile of each target that viewers watch.
    pub(crate) fn watched(&self) -> HashMap<Target, ProfileId> {
        let leases = self.table.leases().into_iter();
        let watched = leases.filter(|it| !it.closing && it.purpose != LeasePurpose::Recording);
        watched.map(|it| (it.target, it.profile)).collect()
    }

    /// Reserves slots for recordings, instead of those reserved before.
    pub(crate) fn reserve(&self, reserved: ReservedSlots) {
        self.table.reserve(reserved);
    }

    /// Sets the purpose of the slots of a holder.
    pub(crate) fn set_purpose(&self, holder: u64, purpose: LeasePurpose) {
        self.table.set_purpose(holder, purpose);
    }

    /// Returns whether a holder would get a slot of this pool if all recordings gave up theirs.
    pub(crate) fn has_room_beside_recordings(&self, holder: u64, pool: &SlotPool) -> bool {
        self.table.has_room_beside_recordings(holder, pool)
    }

    /// Returns the limit of an account profile that was discovered since `changed_at`, the last change of its account.
    pub(crate) fn discovered_limit(&self, profile: ProfileId, changed_at: i64) -> Option<u32> {
        self.table.discovered_limit(profile, changed_at)
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
