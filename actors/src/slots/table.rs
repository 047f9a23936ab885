//! The table of leases.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use domain::ids::ProfileId;
use domain::limits::{self, HeldSlot, SlotDecision};
use domain::plan::SlotPool;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{FullPool, HolderPort, Lease};

/// Time after the return of a slot during which a refusal by the provider may be caused by its delayed counting.
const JUST_RELEASED: Duration = Duration::from_secs(5);

/// Purpose of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeasePurpose {
    /// A live channel.
    Live,
    /// A preview of one stream.
    Preview,
    /// A trial of a stream profile.
    Trial,
}

/// The current state of a lease.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseInfo {
    /// Number of the lease; never reused.
    pub id: u64,
    /// Account profile of the slot.
    pub profile: ProfileId,
    /// Name of the account.
    pub account: String,
    /// Purpose of the lease.
    pub purpose: LeasePurpose,
    /// The socket is closing; the provider may still see it.
    pub closing: bool,
    /// Time since the grant.
    pub age: Duration,
}

struct Entry {
    pool: SlotPool,
    holder: u64,
    port: HolderPort,
    purpose: LeasePurpose,
    closing: bool,
    since: Instant,
}

/// A slot that the provider may still count although the connection is closed (`release_delay`).
struct Cooling {
    profile: ProfileId,
    until: Instant,
}

#[derive(Default)]
struct Inner {
    leases: BTreeMap<u64, Entry>,
    /// Bounded by the number of leases returned within the longest `release_delay`.
    cooling: Vec<Cooling>,
    /// Time of the last return of a slot of each profile, if it was recent.
    released: HashMap<ProfileId, Instant>,
    last_id: u64,
}

/// The outcome of a request.
pub(super) enum Taken {
    /// The lease, and the index of its candidate.
    Granted(usize, Lease),
    /// A slot of an earlier candidate is about to be returned.
    Wait,
    /// No slot is free; the account of the first candidate is at its limit.
    Full,
}

/// All leases: a plain value owned by the system. Leases are guards on it, so the table and the existing leases cannot
/// differ.
#[derive(Default)]
pub(crate) struct SlotTable {
    inner: Mutex<Inner>,
    /// Notified when a lease is returned.
    returned: Notify,
}

impl SlotTable {
    /// Creates an empty table: at the start no socket is open.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Takes the first free slot of `order` for `holder`, in one step.
    pub(super) fn take(
        self: &Arc<Self>,
        order: &[(usize, SlotPool)],
        holder: u64,
        port: &HolderPort,
        purpose: LeasePurpose,
    ) -> Taken {
        let now = Instant::now();
        let mut inner = self.inner.lock();
        inner.cooling.retain(|it| it.until > now);
        let places: Vec<_> = order.iter().map(|(_, pool)| (pool.profile, pool.max_streams)).collect();
        match limits::decide_slot(&places, &inner.held(), holder) {
            SlotDecision::Grant(place) => {
                let (index, pool) = &order[place];
                inner.last_id += 1;
                let id = inner.last_id;
                let just_released = inner
                    .released
                    .get(&pool.profile)
                    .is_some_and(|it| now.duration_since(*it) < JUST_RELEASED);
                inner.leases.insert(
                    id,
                    Entry {
                        pool: pool.clone(),
                        holder,
                        port: port.clone(),
                        purpose,
                        closing: false,
                        since: now,
                    },
                );
                Taken::Granted(*index, Lease { id, table: self.clone(), just_released })
            }
            SlotDecision::Wait(_) => Taken::Wait,
            SlotDecision::Full => Taken::Full,
        }
    }

    /// Returns the account that prevents a grant.
    pub(super) fn full(&self, order: &[(usize, SlotPool)]) -> FullPool {
        self.inner.lock().full(order, Instant::now())
    }

    /// Marks the socket of a lease as closing.
    pub(super) fn closing(&self, id: u64) {
        if let Some(entry) = self.inner.lock().leases.get_mut(&id) {
            entry.closing = true;
        }
    }

    /// Removes a returned lease.
    pub(super) fn give_back(&self, id: u64) {
        {
            let mut inner = self.inner.lock();
            if let Some(entry) = inner.leases.remove(&id) {
                let now = Instant::now();
                // Old entries are removed, because profiles are deleted together with their accounts.
                inner.released.retain(|_, at| now.duration_since(*at) < JUST_RELEASED);
                inner.released.insert(entry.pool.profile, now);
                if !entry.pool.release_delay.is_zero() {
                    inner
                        .cooling
                        .push(Cooling { profile: entry.pool.profile, until: now + entry.pool.release_delay });
                }
            }
        }
        self.returned.notify_waiters();
    }

    /// Resolves when a lease is returned. Has to be created before the table is checked, so that no return is missed.
    pub(super) fn next_return(&self) -> tokio::sync::futures::Notified<'_> {
        self.returned.notified()
    }

    /// Returns when the next cooling slot becomes free.
    pub(super) fn cooled_at(&self) -> Option<Instant> {
        self.inner.lock().cooling.iter().map(|it| it.until).min()
    }

    /// Returns the holders that could make room for `order`, except `holder` itself and leases that are already
    /// closing; in the order of the candidates, the youngest lease last.
    pub(super) fn who_could_yield(&self, order: &[(usize, SlotPool)], holder: u64) -> Vec<(u64, HolderPort)> {
        let inner = self.inner.lock();
        let mut holders: Vec<(u64, HolderPort)> = Vec::new();
        for (_, pool) in order {
            for entry in inner.leases.values() {
                let fits = entry.pool.profile == pool.profile && entry.holder != holder && !entry.closing;
                if fits && !holders.iter().any(|it| it.0 == entry.holder) {
                    holders.push((entry.holder, entry.port.clone()));
                }
            }
        }
        holders
    }

    /// Returns the number of entries about returned slots.
    #[cfg(test)]
    pub(crate) fn n_remembered(&self) -> usize {
        let inner = self.inner.lock();
        inner.cooling.len() + inner.released.len()
    }

    /// Returns the number of leases, and how many of them are closing.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        (inner.leases.len(), inner.leases.values().filter(|it| it.closing).count())
    }

    /// Returns all leases.
    pub(crate) fn leases(&self) -> Vec<LeaseInfo> {
        let now = Instant::now();
        let inner = self.inner.lock();
        inner
            .leases
            .iter()
            .map(|(id, entry)| LeaseInfo {
                id: *id,
                profile: entry.pool.profile,
                account: entry.pool.account_name.clone(),
                purpose: entry.purpose,
                closing: entry.closing,
                age: now.duration_since(entry.since),
            })
            .collect()
    }

    /// Returns whether this holder has a lease.
    pub(crate) fn holds(&self, holder: u64) -> bool {
        self.inner.lock().leases.values().any(|it| it.holder == holder)
    }

    /// Waits until all leases of a holder are returned. Bounded by the closer, which takes at most half a second per
    /// socket.
    pub(crate) async fn all_back(&self, holder: u64) {
        loop {
            let next = self.next_return();
            tokio::pin!(next);
            next.as_mut().enable();
            if !self.holds(holder) {
                return;
            }
            next.await;
        }
    }
}

impl Inner {
    fn held(&self) -> Vec<HeldSlot> {
        let leases = self.leases.values().map(|it| HeldSlot {
            pool: it.pool.profile,
            holder: Some(it.holder),
            closing: it.closing,
        });
        let cooling =
            self.cooling.iter().map(|it| HeldSlot { pool: it.profile, holder: None, closing: true });
        leases.chain(cooling).collect()
    }

    fn full(&self, order: &[(usize, SlotPool)], now: Instant) -> FullPool {
        let Some((_, pool)) = order.first() else {
            return FullPool { account: String::new(), since: Duration::ZERO, max_streams: 0 };
        };
        let oldest =
            self.leases.values().filter(|it| it.pool.profile == pool.profile).map(|it| it.since).min();
        FullPool {
            account: pool.account_name.clone(),
            since: oldest.map_or(Duration::ZERO, |it| now.duration_since(it)),
            max_streams: pool.max_streams,
        }
    }
}
