//! The seam between the holders of slots and what grants them.

use std::collections::HashMap;
use std::pin::Pin;

use domain::ids::{ProfileId, StreamId};
use domain::plan::SlotPool;
use domain::playout::Attempt;
use media::error::UpstreamError;

use super::{FullPool, LeaseInfo, LeasePurpose, OtherSlot, Request, ReservedSlots, SlotsSnapshot};
use crate::plans::Target;

/// The meaning of a provider's refusal for the slots.
pub(crate) struct ProviderRefusal {
    /// Other connections of the gateway may have caused it, and may yield.
    pub(crate) is_crowded: bool,
    /// The provider says that all its connections are in use.
    pub(crate) full: Option<FullPool>,
}

/// Grants leases, and knows all of them. A single node has the [`SlotTable`](super::SlotTable); the nodes of a cluster
/// share the tables in their engine.
///
/// No operation waits, except [`Self::all_back`]: a request and its outcome are two messages. It is a trait object and
/// not an enum, because a table of a cluster is generic over its engine. No operation is on the path of a packet.
pub(crate) trait LeaseTable: Send + Sync {
    /// Records how the provider refused the connection of a lease, if a limit may be the cause.
    fn provider_refused(
        &self,
        lease: u64,
        pool: &SlotPool,
        stream: StreamId,
        error: &UpstreamError,
    ) -> ProviderRefusal {
        if error.is_full_now() {
            let n_others = self.full_now(lease, pool);
            let full = Some(FullPool::told(pool, n_others));
            return ProviderRefusal { is_crowded: n_others > 0, full };
        }
        let is_crowded = error.can_be_connection_limit() && self.refused(lease, pool, stream);
        ProviderRefusal { is_crowded, full: None }
    }

    /// Requests the first free slot. The holder's port receives [`Granted`](super::SlotMessage::Granted) or
    /// [`Full`](super::SlotMessage::Full); the deadline of the holder covers a lost request.
    fn request(&self, request: Request);

    /// Cancels a request.
    fn cancel(&self, holder: u64, attempt: Attempt);

    /// Reports that a holder that was asked to yield keeps its lease.
    fn kept(&self, holder: u64, asked_by: u64);

    /// Reports that nobody watches the channel of this holder any more: it would yield now.
    fn lingering(&self, holder: u64);

    /// Asks all other holders on this account profile, and on the accounts of its server group, to give up their slots if
    /// nobody watches.
    fn make_room(&self, holder: u64, pool: SlotPool);

    /// Records that the source of a lease has delivered packets.
    fn delivers(&self, lease: u64);

    /// Marks a lease as closing, because its source is being closed. A later request can wait for it.
    fn closing(&self, lease: u64);

    /// Removes a returned lease. The drop of the [`Lease`](super::Lease) calls it, and nothing else does.
    fn give_back(&self, lease: u64);

    /// Records that the provider refused the connection of a lease in a way that can mean "too many connections".
    ///
    /// Returns whether other connections on the account profile are open or closing: then its limit may be the cause.
    /// False on accounts with a configured limit, which is never changed.
    fn refused(&self, lease: u64, pool: &SlotPool, stream: StreamId) -> bool;

    /// Records that the provider of a lease says that all its connections are in use now. Returns the number of other
    /// connections of the gateway there: they may yield. A configured limit is not changed.
    fn full_now(&self, lease: u64, pool: &SlotPool) -> u32;

    /// Reserves slots for recordings, instead of those reserved before.
    fn reserve(&self, reserved: ReservedSlots);

    /// Sets the purpose of the slots of a holder.
    fn set_purpose(&self, holder: u64, purpose: LeasePurpose);

    /// Returns whether a holder would get a slot of this pool if all recordings gave up theirs.
    fn has_room_beside_recordings(&self, holder: u64, pool: &SlotPool) -> bool;

    /// Returns the limit of an account profile that was discovered since `changed_at`, the last change of its account.
    fn discovered_limit(&self, profile: ProfileId, changed_at: i64) -> Option<u32>;

    /// Returns everything at one moment.
    fn snapshot(&self) -> SlotsSnapshot;

    /// Returns the number of leases of this node, and how many of them are closing.
    fn counts(&self) -> (usize, usize);

    /// Returns all leases of this node.
    fn leases(&self) -> Vec<LeaseInfo>;

    /// Returns whether this holder has a lease.
    fn holds(&self, holder: u64) -> bool;

    /// Waits until all leases of a holder are returned. Bounded by the closer, which takes at most half a second per
    /// socket.
    fn all_back(&self, holder: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Leaves each holder the slots that it has, until it ends, and no others of accounts with a limit. Returns the slots in
    /// use, which another process counts from now on.
    fn hand_over(&self) -> Vec<OtherSlot>;

    /// Returns the account profile of each target that viewers of this node watch.
    fn watched(&self) -> HashMap<Target, ProfileId> {
        let leases = self.leases().into_iter();
        let watched = leases.filter(|it| !it.closing && it.purpose != LeasePurpose::Recording);
        watched.map(|it| (it.target, it.profile)).collect()
    }
}
