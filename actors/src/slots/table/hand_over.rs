//! Slots during a restart, while the process before still serves viewers beside its successor.
//!
//! The old process *hands over*: each slot that a holder has at that moment stays its own until the holder ends, and it
//! gets no other one of an account with a limit. The successor counts these slots as in use until the old process reports
//! the end of their holder. So both together never exceed a limit, although neither asks the other.

use std::collections::HashMap;
use std::time::Duration;

use domain::cluster::record::ProcessId;
use domain::ids::{ProfileId, StreamId};
use domain::limits::LimitScope;
use domain::plan::SlotPool;
use tokio::time::Instant;

use super::{Cooling, Entry, Inner, SlotTable};
use crate::plans::Target;
use crate::slots::{HolderPort, LeaseInfo, LeasePurpose, OtherSlot, Request, SharedLease, SlotCandidate};

/// How many slots of an account profile each holder may use after the hand-over.
#[derive(Debug, Default)]
pub(super) struct Allowance(HashMap<(u64, ProfileId), usize>);

impl Allowance {
    pub(super) fn add(&mut self, holder: u64, profile: ProfileId) {
        *self.0.entry((holder, profile)).or_default() += 1;
    }

    /// Returns whether a holder that has this many slots of a pool may take another one. The slot is counted already.
    pub(super) fn allows(&self, holder: u64, pool: &SlotPool, n_held: usize) -> bool {
        self.0.get(&(holder, pool.profile)).is_some_and(|it| n_held < *it)
    }
}

/// The place of a request after the hand-over.
pub(super) enum AllowedPlace {
    Free(usize),
    /// The holder's own connection is being closed.
    Closing,
    None,
}

impl SlotTable {
    /// Leaves each holder the slots that it has, until it ends, and no others of accounts with a limit. Returns the slots in
    /// use, which another process counts from now on. `shared_lease` returns the lease of the cluster for one of this table;
    /// `is_shared` returns whether a pool needs one. A lease without it is being returned.
    pub(crate) fn hand_over_with(
        &self,
        shared_lease: impl Fn(u64) -> Option<SharedLease>,
        is_shared: impl Fn(&SlotPool) -> bool,
    ) -> Vec<OtherSlot> {
        let mut inner = self.lock(Instant::now());
        let (mut allowance, mut slots) = (Allowance::default(), Vec::new());
        for (id, it) in &inner.leases {
            let lease = shared_lease(*id);
            if lease.is_some() || !is_shared(&it.pool) {
                allowance.add(it.holder, it.pool.profile);
                slots.push(OtherSlot { lease, ..it.for_other() });
            }
        }
        inner.allowance = Some(allowance);
        slots
    }

    /// Allows no holder another slot of an account with a limit, after the hand-over. Returns the leases of such pools that
    /// are in use, with their holders.
    pub(crate) fn end_allowance(&self, is_limited: impl Fn(&SlotPool) -> bool) -> Vec<(u64, HolderPort)> {
        let mut inner = self.inner.lock();
        inner.allowance = Some(Allowance::default());
        let limited = inner.leases.iter().filter(|(_, it)| is_limited(&it.pool));
        limited.map(|(id, it)| (*id, it.port.clone())).collect()
    }

    /// Waits until the connections of all leases of such pools are closed. Bounded by the closer, once they are revoked.
    pub(crate) async fn closed(&self, is_limited: impl Fn(&SlotPool) -> bool) {
        loop {
            let mut next = std::pin::pin!(self.next_return());
            next.as_mut().enable();
            if !self.inner.lock().leases.values().any(|it| is_limited(&it.pool)) {
                return;
            }
            next.await;
        }
    }

    /// Returns the slots that are closed and that providers may still count.
    pub(crate) fn cooling_for_other(&self) -> Vec<OtherSlot> {
        let now = Instant::now();
        let inner = self.lock(now);
        inner.cooling.iter().map(|it| it.for_other(now)).collect()
    }

    /// Counts slots that the process before this one uses, instead of those counted before.
    pub(crate) fn count_predecessor(&self, slots: Vec<OtherSlot>) {
        let now = Instant::now();
        let (cooling, in_use): (Vec<_>, Vec<_>) = slots.into_iter().partition(|it| it.cooling_ms > 0);
        let mut inner = self.inner.lock();
        inner.predecessor = in_use;
        inner.cooling.extend(cooling.into_iter().map(|it| Cooling {
            profile: it.profile,
            scope: LimitScope::Unknown,
            account: it.account,
            until: now + Duration::from_millis(it.cooling_ms),
        }));
    }

    /// Notes that the process before this one does not have these slots any more.
    /// Returns its leases in the cluster.
    pub(crate) fn returned_by_predecessor(&self, is_back: impl Fn(&OtherSlot) -> bool) -> Vec<SharedLease> {
        let now = Instant::now();
        let mut leases = Vec::new();
        {
            let mut inner = self.inner.lock();
            let (back, kept) = std::mem::take(&mut inner.predecessor).into_iter().partition(is_back);
            inner.predecessor = kept;
            for OtherSlot { profile, account, release_delay_ms, lease, .. } in back {
                leases.extend(lease);
                let scope = LimitScope::Unknown;
                let released = inner.released.entry((profile, scope)).or_default();
                released.account = Some(account);
                (released.last, released.last_delivered) = (Some(now), Some(now));
                if release_delay_ms > 0 {
                    let until = now + Duration::from_millis(release_delay_ms);
                    inner.cooling.push(Cooling { profile, scope, account, until });
                }
            }
        }
        self.returned.notify_waiters();
        leases
    }

    /// Returns the process before this one as the cluster knows it, if it has leases there.
    pub(crate) fn predecessor_process(&self) -> Option<ProcessId> {
        self.inner.lock().predecessor.iter().find_map(|it| it.lease).map(|it| it.lease.process)
    }

    /// Notes that the connections of all leases of the cluster are closed for good, after the hand-over.
    pub(crate) fn all_shared_closed(&self) {
        self.shared_closed.send_replace(true);
    }

    /// Waits until the connections of all leases of the cluster are closed for good, after the hand-over.
    pub(crate) async fn shared_closed(&self) {
        // The sender is in this table.
        let _ = self.shared_closed.subscribe().wait_for(|it| *it).await;
    }

    /// Returns the targets that the process before this one plays.
    pub(crate) fn predecessor_targets(&self) -> Vec<Target> {
        let mut targets: Vec<_> = self.inner.lock().predecessor.iter().map(|it| it.target).collect();
        targets.dedup();
        targets
    }

    /// Returns the stream and the account profile with which the process before this one plays a target.
    pub(crate) fn predecessor_plays(&self, target: &Target) -> Option<(StreamId, ProfileId)> {
        let inner = self.inner.lock();
        inner.predecessor.iter().find(|it| it.target == *target).map(|it| (it.stream, it.profile))
    }

    /// Returns whether the process before this one still uses slots.
    pub(crate) fn is_used_by_predecessor(&self) -> bool {
        !self.inner.lock().predecessor.is_empty()
    }
}

impl Entry {
    fn for_other(&self) -> OtherSlot {
        OtherSlot {
            holder: self.holder,
            profile: self.pool.profile,
            account: self.pool.account,
            account_name: self.pool.account_name.clone(),
            target: self.target,
            stream: self.stream,
            release_delay_ms: milliseconds(self.pool.release_delay),
            cooling_ms: 0,
            lease: None,
        }
    }
}

impl Cooling {
    fn for_other(&self, now: Instant) -> OtherSlot {
        OtherSlot {
            holder: 0,
            profile: self.profile,
            account: self.account,
            account_name: String::new(),
            target: Target::Stream(StreamId(0)),
            stream: StreamId(0),
            release_delay_ms: 0,
            cooling_ms: milliseconds(self.until.duration_since(now)).max(1),
            lease: None,
        }
    }
}

impl Inner {
    /// Returns the first candidate that a holder may open although another process grants slots now.
    pub(super) fn place_after_hand_over(&self, allowance: &Allowance, request: &Request) -> AllowedPlace {
        let mut found = AllowedPlace::None;
        for (place, SlotCandidate { pool, .. }) in request.order.iter().enumerate() {
            let has_limit =
                self.limit(pool).0 != 0 || pool.shared.as_ref().is_some_and(|it| it.max_streams != 0);
            let is_own = |it: &&Entry| it.holder == request.holder && it.pool.profile == pool.profile;
            let n_held = self.leases.values().filter(is_own).count();
            let is_cooling = self.cooling.iter().any(|it| it.profile == pool.profile);
            if !has_limit || (allowance.allows(request.holder, pool, n_held) && !is_cooling) {
                return AllowedPlace::Free(place);
            }
            if n_held > 0 || (is_cooling && allowance.allows(request.holder, pool, 0)) {
                found = AllowedPlace::Closing;
            }
        }
        found
    }

    /// Returns the slots of the process before this one, whose numbers say nothing here.
    pub(super) fn predecessor_infos(&self) -> impl Iterator<Item = LeaseInfo> {
        self.predecessor.iter().map(|it| LeaseInfo {
            id: 0,
            profile: it.profile,
            account_id: it.account,
            target: it.target,
            stream: it.stream,
            account: it.account_name.clone(),
            purpose: LeasePurpose::Live,
            closing: false,
            age: Duration::ZERO,
        })
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
