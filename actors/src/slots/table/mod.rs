//! The table of leases.

mod hand_over;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use domain::cluster::record::{SlotPurpose, SlotState};
use domain::ids::{AccountId, ProfileId, StreamId};
use domain::limits::{self, HeldSlot, LimitScope, ObservedLimit, SlotDecision, SlotDemand};
use domain::plan::{SharedPool, SlotPool};
use domain::playout::Attempt;
use domain::settings::{LEASE_WAIT, TOLD_WAIT};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;
use tracing::{info, warn};

use self::hand_over::{Allowance, AllowedPlace};
use super::device_question::{DeviceAddress, DeviceQuestion, QUESTIONS_MAX};
use super::other_slot::OtherSlot;
use super::reserved::reserved_slots;
use super::snapshot::{CoolingSlot, SlotElsewhere, SlotsSnapshot, WaitingRequest};
use super::{
    Asking, FullPool, HolderPort, Lease, LeaseInfo, LeasePurpose, LeaseTable, Message, Request,
    ReservedSlots, SlotCandidate,
};
use crate::ask::Address;
use crate::plans::Target;

/// Time after the return of a slot during which a refusal by the provider may be caused by its delayed counting.
const JUST_RELEASED: Duration = Duration::from_secs(5);

/// Maximum number of logins and hosts about which observations are kept. Beyond it, any one is forgotten.
const OBSERVED_MAX: usize = 4_096;

struct Entry {
    pool: SlotPool,
    holder: u64,
    target: Target,
    stream: StreamId,
    port: HolderPort,
    purpose: LeasePurpose,
    /// The source has delivered packets.
    has_delivered: bool,
    closing: bool,
    since: Instant,
}

/// The last returns of slots of an account profile and scope.
#[derive(Clone, Copy, Default)]
struct Released {
    account: Option<AccountId>,
    last: Option<Instant>,
    /// The last return by a connection that had delivered packets.
    last_delivered: Option<Instant>,
}

/// A login or host, and the account profile if neither is known.
type ObservedKey = (LimitScope, Option<ProfileId>);

fn observed_key(pool: &SlotPool) -> ObservedKey {
    (pool.scope, (pool.scope == LimitScope::Unknown).then_some(pool.profile))
}

/// Observations about the connections of a login or host since the last change of their accounts.
struct Observed {
    /// The newest change of the accounts.
    changed_at: i64,
    /// The account profiles that have used it. Bounded by their number.
    profiles: BTreeSet<ProfileId>,
    limit: ObservedLimit,
}

/// A slot that the provider may still count although the connection is closed (`release_delay`).
struct Cooling {
    profile: ProfileId,
    scope: LimitScope,
    account: AccountId,
    until: Instant,
}

#[derive(Default)]
struct Inner {
    leases: BTreeMap<u64, Entry>,
    /// Bounded by the number of leases returned within the longest `release_delay`.
    cooling: Vec<Cooling>,
    /// The slots of other nodes of the cluster. They do not count for a grant of this table, which grants slots without
    /// a limit only, in a cluster.
    elsewhere: Vec<SlotElsewhere>,
    /// The recent returns of slots of each profile and scope.
    released: HashMap<(ProfileId, LimitScope), Released>,
    /// Logins and hosts of which more is known than that one connection plays. At most [`OBSERVED_MAX`].
    observed: BTreeMap<ObservedKey, Observed>,
    /// The last address that was opened at each host whose device can be asked. At most [`OBSERVED_MAX`].
    devices: BTreeMap<LimitScope, DeviceAddress>,
    /// Where questions to devices go, if anybody asks them.
    questions: Option<mpsc::Sender<DeviceQuestion>>,
    /// The slots that the process before this one still uses. Bounded by what it may use.
    predecessor: Vec<OtherSlot>,
    /// Set once the slots are handed over to another process.
    allowance: Option<Allowance>,
    /// The slots that recordings need soon.
    reserved: ReservedSlots,
    /// The waiting requests in the order of their arrival, as far as others may see them. The slots actor keeps the
    /// requests themselves. Bounded by their number.
    waiting: Vec<Waiting>,
    last_id: u64,
}

/// The visible part of a waiting request.
struct Waiting {
    id: u64,
    holder: u64,
    attempt: Attempt,
    target: Target,
    purpose: LeasePurpose,
    /// The account profiles of its candidates, best first.
    pools: Vec<(AccountId, ProfileId)>,
    since: Instant,
}

/// Keeps a request in the list of waiting ones until it is dropped.
pub(crate) struct WaitingEntry {
    id: u64,
    table: Arc<SlotTable>,
}

impl Drop for WaitingEntry {
    fn drop(&mut self) {
        self.table.inner.lock().waiting.retain(|it| it.id != self.id);
    }
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
pub(crate) struct SlotTable {
    /// The slots actor.
    actor: Address<Message>,
    inner: Mutex<Inner>,
    /// Notified when a lease is returned.
    returned: Notify,
    /// Whether this process, after its hand-over, has no connection with a lease of the cluster any more.
    shared_closed: watch::Sender<bool>,
}

impl SlotTable {
    /// Creates an empty table: at the start no socket is open.
    pub(crate) fn new(actor: Address<Message>) -> Arc<Self> {
        Arc::new(Self {
            actor,
            inner: Mutex::default(),
            returned: Notify::default(),
            shared_closed: watch::Sender::new(false),
        })
    }

    /// Locks the table without the slots that have cooled by now.
    fn lock(&self, now: Instant) -> MutexGuard<'_, Inner> {
        let mut inner = self.inner.lock();
        inner.cooling.retain(|it| it.until > now);
        inner.observed.values_mut().for_each(|it| it.limit.expire(now.into_std()));
        inner
    }

    /// Takes the first free slot for a request, in one step.
    pub(super) fn take(self: &Arc<Self>, request: &Request) -> Taken {
        let now = Instant::now();
        let mut inner = self.lock(now);
        if let Some(allowance) = &inner.allowance {
            return match inner.place_after_hand_over(allowance, request) {
                AllowedPlace::Free(place) => {
                    let (index, lease) = self.lease(&mut inner, request, place, now, self.clone());
                    Taken::Granted(index, lease)
                }
                AllowedPlace::Closing => Taken::Wait,
                AllowedPlace::None => Taken::Full,
            };
        }
        let places: Vec<_> = request.order.iter().map(|it| inner.demand(&it.pool)).collect();
        let mut held = inner.held();
        if inner.is_kept_out(request) {
            let mut seen = BTreeSet::new();
            let pools = request.order.iter().map(|it| &it.pool).filter(|it| seen.insert(it.profile));
            held.extend(pools.flat_map(|it| reserved_slots(it, inner.open_reserved(it))));
        }
        match limits::decide_slot(&places, &held, request.holder) {
            SlotDecision::Grant(place) => {
                let (index, lease) = self.lease(&mut inner, request, place, now, self.clone());
                Taken::Granted(index, lease)
            }
            SlotDecision::Wait(_) => Taken::Wait,
            SlotDecision::Full => Taken::Full,
        }
    }

    /// Takes a slot for a second connection of the holder, if one may be opened. `is_awaited` returns whether a request
    /// waits for a slot of one of the pools.
    pub(super) fn take_beside(
        self: &Arc<Self>,
        request: &Request,
        is_awaited: impl Fn(&SlotPool) -> bool,
    ) -> Option<(usize, Lease)> {
        let now = Instant::now();
        let mut inner = self.lock(now);
        if inner.allowance.is_some() {
            return None;
        }
        let is_kept_out = inner.is_kept_out(request);
        let may_open = |SlotCandidate { pool, .. }: &SlotCandidate| {
            if is_kept_out && inner.open_reserved(pool) != (0, 0) {
                return false;
            }
            let (max, n_used) = (pool.max_streams, inner.n_used(pool));
            limits::may_open_beside(max, inner.observed(pool), n_used, is_awaited(pool))
                && inner.has_shared_room(pool)
        };
        let place = request.order.iter().position(may_open)?;
        Some(self.lease(&mut inner, request, place, now, self.clone()))
    }

    /// Takes one slot more than a discovered limit allows, in order to find out whether it still holds. Only one at a
    /// time is in use.
    pub(crate) fn take_beyond_discovered(self: &Arc<Self>, request: &Request) -> Option<(usize, Lease)> {
        let now = Instant::now();
        let mut inner = self.lock(now);
        if inner.allowance.is_some() {
            return None;
        }
        let may_exceed = |SlotCandidate { pool, stream, .. }: &SlotCandidate| {
            let (max, is_discovered) = inner.limit(pool);
            is_discovered
                && inner.n_used(pool) == max
                && inner.has_shared_room(pool)
                && inner.observed(pool).may_exceed(*stream, now.into_std())
        };
        let place = request.order.iter().position(may_exceed)?;
        Some(self.lease(&mut inner, request, place, now, self.clone()))
    }

    /// Takes a slot without a wait, if one is free now.
    pub(crate) fn take_now(self: &Arc<Self>, request: &Request) -> Option<(usize, Lease)> {
        if matches!(request.asking, Asking::Beside) {
            return self.take_beside(request, |_| false);
        }
        match self.take(request) {
            Taken::Granted(index, lease) => Some((index, lease)),
            Taken::Wait | Taken::Full => None,
        }
    }

    /// Adds a lease that `table` has granted for the candidate at this place of a request. It is returned to `table`, which
    /// passes it on.
    pub(crate) fn add(&self, request: &Request, place: usize, table: Arc<dyn LeaseTable>) -> (usize, Lease) {
        self.lease(&mut self.inner.lock(), request, place, Instant::now(), table)
    }

    /// Sets the slots of other nodes of the cluster.
    pub(crate) fn set_elsewhere(&self, elsewhere: Vec<SlotElsewhere>) {
        let mut inner = self.inner.lock();
        // Slots in use before, minus those in use now. The provider may count those that were returned for a while.
        let mut returned: BTreeMap<(ProfileId, AccountId), isize> = BTreeMap::new();
        for (slots, step) in [(&inner.elsewhere, 1), (&elsewhere, -1)] {
            for it in slots.iter().filter(|it| !matches!(it.state, SlotState::Cooling(_))) {
                *returned.entry((it.profile, it.account)).or_default() += step;
            }
        }
        let now = Some(Instant::now());
        for ((profile, account), _) in returned.into_iter().filter(|it| it.1 > 0) {
            let released = Released { account: Some(account), last: now, last_delivered: now };
            inner.released.insert((profile, LimitScope::Unknown), released);
        }
        inner.elsewhere = elsewhere;
    }

    /// Returns how many slots of a pool, and of its server group, are reserved for others than this request.
    pub(crate) fn reserved_for_others(&self, request: &Request, pool: &SlotPool) -> (u32, u32) {
        let inner = self.inner.lock();
        if inner.is_kept_out(request) { inner.open_reserved(pool) } else { (0, 0) }
    }

    /// Creates the lease for one candidate of a request.
    fn lease(
        &self,
        inner: &mut Inner,
        request: &Request,
        place: usize,
        now: Instant,
        table: Arc<dyn LeaseTable>,
    ) -> (usize, Lease) {
        let SlotCandidate { index, pool, stream, device } = &request.order[place];
        if let Some(device) = device {
            inner.devices.insert(pool.scope, device.clone());
            if inner.devices.len() > OBSERVED_MAX {
                inner.devices.pop_first();
            }
        }
        inner.last_id += 1;
        let id = inner.last_id;
        let released = inner.released(pool);
        // In the same step, so that nobody sees a request that waits and has a slot.
        inner.waiting.retain(|it| it.holder != request.holder || it.attempt != request.attempt);
        let released = if pool.max_streams == 0 { released.last_delivered } else { released.last };
        let just_released = released.is_some_and(|it| now.duration_since(it) < JUST_RELEASED);
        inner.leases.insert(
            id,
            Entry {
                pool: pool.clone(),
                holder: request.holder,
                target: request.target,
                stream: *stream,
                port: request.port.clone(),
                purpose: request.purpose,
                has_delivered: false,
                closing: false,
                since: now,
            },
        );
        (*index, Lease::new(id, table, just_released))
    }

    /// Returns for how long a request may wait for a slot. A device that says that it is full is answered sooner: other programs
    /// use it too, so waiting helps less.
    pub(crate) fn longest_wait(&self, request: &Request) -> Duration {
        let inner = self.lock(Instant::now());
        let is_told = |it: &SlotCandidate| it.pool.max_streams == 0 && inner.observed(&it.pool).is_told();
        match !request.order.is_empty() && request.order.iter().all(is_told) {
            true => TOLD_WAIT,
            false => LEASE_WAIT,
        }
    }

    /// Returns the questions to devices from now on, instead of any former receiver of them.
    pub(super) fn device_questions(&self) -> mpsc::Receiver<DeviceQuestion> {
        let (questions, receiver) = mpsc::channel(QUESTIONS_MAX);
        self.inner.lock().questions = Some(questions);
        receiver
    }

    /// Records the number of tuners that the device of a pool states.
    pub(super) fn tuners_stated(&self, pool: &SlotPool, n_tuners: u32) {
        let now = Instant::now().into_std();
        let is_possible = self.inner.lock().observe(pool, |it| it.tuners_stated(n_tuners, now));
        let (account, believed) =
            (&pool.account_name, if is_possible { "" } else { ", but more have played at once" });
        info!(account, profile.id = %pool.profile, "the device says that it has {n_tuners} tuners{believed}");
    }

    /// Returns the account that prevents a grant.
    pub(crate) fn full(&self, request: &Request) -> FullPool {
        self.inner.lock().full(request, Instant::now())
    }

    /// Resolves when a lease is returned. Has to be created before the table is checked, so that no return is missed.
    pub(crate) fn next_return(&self) -> tokio::sync::futures::Notified<'_> {
        self.returned.notified()
    }

    /// Returns when the next cooling slot becomes free.
    pub(super) fn cooled_at(&self) -> Option<Instant> {
        self.inner.lock().cooling.iter().map(|it| it.until).min()
    }

    /// Returns the holders that could make room for a request, except its own and leases that are already closing; in
    /// the order of the candidates, the youngest lease last. Where the account profile has room and its server group
    /// has none, these are the holders of the whole group.
    pub(super) fn who_could_yield(&self, request: &Request) -> Vec<(u64, HolderPort)> {
        let inner = self.lock(Instant::now());
        let mut holders: Vec<(u64, HolderPort)> = Vec::new();
        for SlotCandidate { pool, .. } in &request.order {
            let needs_group = inner.has_own_room(pool) && !inner.has_shared_room(pool);
            let of_candidate = match pool.shared.as_ref().filter(|_| needs_group) {
                Some(shared) => {
                    inner.holders(request.holder, |it| shared.accounts.contains(&it.pool.account))
                }
                None => inner.holders(request.holder, |it| it.counts_for(pool)),
            };
            for (holder, port) in of_candidate {
                if !holders.iter().any(|it| it.0 == holder) {
                    holders.push((holder, port));
                }
            }
        }
        holders
    }

    /// Returns the holders on an account profile and on the accounts of its server group, except `holder` itself and
    /// leases that are already closing, the youngest lease last.
    pub(super) fn holders_on(&self, pool: &SlotPool, holder: u64) -> Vec<(u64, HolderPort)> {
        let is_in_group = |it: &Entry| {
            pool.shared.as_ref().is_some_and(|shared| shared.accounts.contains(&it.pool.account))
        };
        self.inner.lock().holders(holder, |it| it.counts_for(pool) || is_in_group(it))
    }

    /// Lists a request as waiting until the result is dropped, or until it is granted.
    pub(crate) fn wait(self: &Arc<Self>, request: &Request) -> WaitingEntry {
        let mut inner = self.inner.lock();
        inner.last_id += 1;
        let id = inner.last_id;
        let mut pools: Vec<_> = request.order.iter().map(|it| (it.pool.account, it.pool.profile)).collect();
        pools.dedup();
        inner.waiting.push(Waiting {
            id,
            holder: request.holder,
            attempt: request.attempt,
            target: request.target,
            purpose: request.purpose,
            pools,
            since: Instant::now(),
        });
        WaitingEntry { id, table: self.clone() }
    }

    /// Returns the number of entries about returned slots.
    #[cfg(test)]
    pub(crate) fn n_remembered(&self) -> usize {
        let inner = self.inner.lock();
        inner.cooling.len() + inner.released.len()
    }
}

/// For leases whose requests the slots actor processes.
impl LeaseTable for SlotTable {
    fn request(&self, request: Request) {
        self.actor.tell(Message::Request(request));
    }

    fn cancel(&self, holder: u64, attempt: Attempt) {
        self.actor.tell(Message::Cancel { holder, attempt });
    }

    fn kept(&self, holder: u64, asked_by: u64) {
        self.actor.tell(Message::Kept { holder, asked_by });
    }

    fn lingering(&self, holder: u64) {
        self.actor.tell(Message::Lingering { holder });
    }

    fn make_room(&self, holder: u64, pool: SlotPool) {
        self.actor.tell(Message::MakeRoom { holder, pool });
    }

    fn delivers(&self, id: u64) {
        let mut inner = self.inner.lock();
        let Some(entry) = inner.leases.get_mut(&id) else { return };
        entry.has_delivered = true;
        let pool = entry.pool.clone();
        let plays = |it: &&Entry| it.counts_for(&pool) && it.has_delivered && !it.closing;
        let n_playing = inner.leases.values().filter(plays).count() as u32;
        if n_playing < 2 {
            return;
        }
        let disproved = inner.observe(&pool, |it| it.plays(n_playing));
        drop(inner);
        if let Some(limit) = disproved {
            info!(
                account = pool.account_name, profile.id = %pool.profile,
                "the provider carries {n_playing} streams at once, so the limit of {limit} that was believed is forgotten"
            );
        }
    }

    fn closing(&self, id: u64) {
        if let Some(entry) = self.inner.lock().leases.get_mut(&id) {
            entry.closing = true;
        }
    }

    fn give_back(&self, id: u64) {
        {
            let mut inner = self.inner.lock();
            if let Some(entry) = inner.leases.remove(&id) {
                let now = Instant::now();
                // Old entries are removed, because profiles are deleted together with their accounts.
                inner.released.retain(|_, it| it.last.is_some_and(|at| now - at < JUST_RELEASED));
                let released = inner.released.entry((entry.pool.profile, entry.pool.scope)).or_default();
                released.account = Some(entry.pool.account);
                released.last = Some(now);
                if entry.has_delivered {
                    released.last_delivered = Some(now);
                }
                if !entry.pool.release_delay.is_zero() {
                    let SlotPool { profile, scope, account, release_delay, .. } = entry.pool;
                    inner.cooling.push(Cooling { profile, scope, account, until: now + release_delay });
                }
            }
        }
        self.returned.notify_waiters();
    }

    fn refused(&self, id: u64, pool: &SlotPool, stream: StreamId) -> bool {
        if pool.max_streams != 0 {
            return false;
        }
        let now = Instant::now();
        let mut inner = self.lock(now);
        let (n_others, n_carried) = inner.others(id, pool);
        let is_cooling = inner.cooling.iter().any(|it| pool.counts(it.profile, it.scope));
        // Without a connection of the gateway, it was refused for another reason.
        let discovered = match n_carried {
            0 => None,
            _ => inner.observe(pool, |it| it.refused(stream, n_carried, now.into_std())),
        };
        drop(inner);
        if let Some(limit) = discovered {
            warn!(
                account = pool.account_name, profile.id = %pool.profile, max_streams = limit,
                "the provider refused another stream while {limit} played, so this login is treated as limited to {limit}; \
                 set max_streams of the account to {limit} to keep this limit, or to another number if it is wrong"
            );
        }
        n_others > 0 || is_cooling
    }

    fn full_now(&self, id: u64, pool: &SlotPool) -> u32 {
        let now = Instant::now();
        let mut inner = self.lock(now);
        let (n_others, n_carried) = inner.others(id, pool);
        if pool.max_streams != 0 {
            return n_others;
        }
        inner.ask_device(pool, now);
        // The device may still count a connection that was closed a moment ago.
        let returned = inner.released(pool).last_delivered;
        let counts_late = returned.is_some_and(|it| now.duration_since(it) < JUST_RELEASED);
        let told = match counts_late {
            true => None,
            false => inner.observe(pool, |it| it.told(n_carried, now.into_std())),
        };
        drop(inner);
        if let Some(n) = told {
            info!(
                account = pool.account_name, profile.id = %pool.profile,
                "the device says that all its tuners are in use while {n} of its streams play here; this is believed for a \
                 minute"
            );
        }
        n_others
    }

    fn reserve(&self, reserved: ReservedSlots) {
        let mut inner = self.inner.lock();
        if inner.reserved != reserved {
            inner.reserved = reserved;
            drop(inner);
            // Waiting requests may get what is reserved no more.
            self.returned.notify_waiters();
        }
    }

    fn set_purpose(&self, holder: u64, purpose: LeasePurpose) {
        let mut inner = self.inner.lock();
        inner.leases.values_mut().filter(|it| it.holder == holder).for_each(|it| it.purpose = purpose);
    }

    fn has_room_beside_recordings(&self, holder: u64, pool: &SlotPool) -> bool {
        let inner = self.lock(Instant::now());
        let others =
            inner.leases.values().filter(|it| it.holder != holder && it.purpose != LeasePurpose::Recording);
        let elsewhere = inner.elsewhere.iter().filter(|it| it.purpose != SlotPurpose::Recording);
        let held = others.map(Entry::held).chain(inner.cooling.iter().map(Cooling::held));
        let held = held.chain(inner.predecessor.iter().map(OtherSlot::held));
        let held: Vec<_> = held.chain(elsewhere.map(|it| it.held())).collect();
        limits::decide_slot(&[inner.demand(pool)], &held, holder) == SlotDecision::Grant(0)
    }

    fn discovered_limit(&self, profile: ProfileId, changed_at: i64) -> Option<u32> {
        self.snapshot().discovered_limit(profile, changed_at)
    }

    fn snapshot(&self) -> SlotsSnapshot {
        let now = Instant::now();
        let inner = self.lock(now);
        let cooling = |it: &Cooling| CoolingSlot {
            profile: it.profile,
            account: it.account,
            left: it.until.duration_since(now),
        };
        let waiting = |it: &Waiting| WaitingRequest {
            target: it.target,
            purpose: it.purpose,
            pools: it.pools.clone(),
            age: now.duration_since(it.since),
        };
        let in_use = || inner.leases.values().map(|it| (it.pool.profile, &it.target));
        SlotsSnapshot {
            reserved: inner.reserved.by_profile(in_use).collect(),
            in_use: inner.predecessor_infos().chain(inner.lease_infos(now)).collect(),
            cooling: inner.cooling.iter().map(cooling).collect(),
            elsewhere: inner.elsewhere.clone(),
            waiting: inner.waiting.iter().map(waiting).collect(),
            discovered: inner.observed_limits(ObservedLimit::lasting),
            stated: inner.observed_limits(ObservedLimit::stated),
        }
    }

    fn counts(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        (inner.leases.len(), inner.leases.values().filter(|it| it.closing).count())
    }

    fn leases(&self) -> Vec<LeaseInfo> {
        self.inner.lock().lease_infos(Instant::now())
    }

    fn holds(&self, holder: u64) -> bool {
        self.inner.lock().leases.values().any(|it| it.holder == holder)
    }

    fn hand_over(&self) -> Vec<OtherSlot> {
        self.hand_over_with(|_| None, |_| false)
    }

    fn all_back(&self, holder: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            loop {
                let next = self.next_return();
                tokio::pin!(next);
                next.as_mut().enable();
                if !self.holds(holder) {
                    return;
                }
                next.await;
            }
        })
    }
}

impl Entry {
    fn held(&self) -> HeldSlot {
        let SlotPool { profile, scope, account, .. } = self.pool;
        HeldSlot { pool: profile, scope, account, holder: Some(self.holder), closing: self.closing }
    }

    /// Returns whether a limit of this pool counts it.
    fn counts_for(&self, pool: &SlotPool) -> bool {
        pool.counts(self.pool.profile, self.pool.scope)
    }
}

impl Cooling {
    fn held(&self) -> HeldSlot {
        let Self { profile, scope, account, .. } = *self;
        HeldSlot { pool: profile, scope, account, holder: None, closing: true }
    }
}

impl SlotElsewhere {
    fn held(&self) -> HeldSlot {
        // Its holder is on another node.
        let scope = LimitScope::Unknown;
        HeldSlot { pool: self.profile, scope, account: self.account, holder: None, closing: false }
    }
}

impl Inner {
    fn held(&self) -> Vec<HeldSlot> {
        let closed = self.cooling.iter().map(Cooling::held);
        let predecessor = self.predecessor.iter().map(OtherSlot::held);
        self.leases.values().map(Entry::held).chain(closed).chain(predecessor).collect()
    }

    /// Returns the limit of an account profile, 0 if there is none, and whether it is a discovered or stated one.
    fn limit(&self, pool: &SlotPool) -> (u32, bool) {
        match self.observed(pool).in_force() {
            Some(observed) if pool.max_streams == 0 => (observed, true),
            _ => (pool.max_streams, false),
        }
    }

    /// Returns the pools that a slot of a candidate belongs to, with their limits.
    fn demand<'a>(&self, pool: &'a SlotPool) -> SlotDemand<'a> {
        let shared = pool.shared.as_ref().map(|it| (&*it.accounts, it.max_streams));
        let (max, is_discovered) = self.limit(pool);
        let scope = if is_discovered { pool.scope } else { LimitScope::Unknown };
        SlotDemand { pool: pool.profile, scope, max, shared }
    }

    fn has_own_room(&self, pool: &SlotPool) -> bool {
        let max = self.limit(pool).0;
        max == 0 || self.n_used(pool) < max
    }

    /// Returns whether the server group has a free slot. True without a group.
    fn has_shared_room(&self, pool: &SlotPool) -> bool {
        pool.shared.as_ref().is_none_or(|it| it.max_streams == 0 || self.n_shared(it) < it.max_streams)
    }

    /// Returns the number of slots of a server group in use, including closing and cooling ones.
    fn n_shared(&self, shared: &SharedPool) -> u32 {
        let is_member = |it: &AccountId| shared.accounts.contains(it);
        self.n_counted(|_, _, account| is_member(&account))
    }

    /// Returns the last returns of slots that the provider may still count for this pool.
    fn released(&self, pool: &SlotPool) -> Released {
        let is_counted = |(profile, scope): (ProfileId, LimitScope), it: &Released| {
            let is_member = |account| pool.shared.as_ref().is_some_and(|it| it.accounts.contains(&account));
            pool.counts(profile, scope) || it.account.is_some_and(is_member)
        };
        let counted = self.released.iter().filter(|(key, it)| is_counted(**key, it));
        counted.fold(Released::default(), |all, (_, it)| Released {
            account: None,
            last: all.last.max(it.last),
            last_delivered: all.last_delivered.max(it.last_delivered),
        })
    }

    /// Returns the holders of these leases, except `holder` itself and leases that are already closing, the youngest
    /// lease last.
    fn holders(&self, holder: u64, is_asked: impl Fn(&Entry) -> bool) -> Vec<(u64, HolderPort)> {
        let mut holders: Vec<(u64, HolderPort)> = Vec::new();
        for entry in self.leases.values().filter(|it| is_asked(it)) {
            let fits = entry.holder != holder && !entry.closing;
            if fits && !holders.iter().any(|it| it.0 == entry.holder) {
                holders.push((entry.holder, entry.port.clone()));
            }
        }
        holders
    }

    fn lease_infos(&self, now: Instant) -> Vec<LeaseInfo> {
        let info = |(id, entry): (&u64, &Entry)| LeaseInfo {
            id: *id,
            profile: entry.pool.profile,
            account_id: entry.pool.account,
            target: entry.target,
            stream: entry.stream,
            account: entry.pool.account_name.clone(),
            purpose: entry.purpose,
            closing: entry.closing,
            age: now.duration_since(entry.since),
        };
        self.leases.iter().map(info).collect()
    }

    /// Returns the number of slots in use that a limit of this pool counts, including closing and cooling ones.
    fn n_used(&self, pool: &SlotPool) -> u32 {
        self.n_counted(|profile, scope, _| pool.counts(profile, scope))
    }

    /// Returns the number of slots that a provider may count, on this node and on others.
    fn n_counted(&self, is_in: impl Fn(ProfileId, LimitScope, AccountId) -> bool) -> u32 {
        let leases = self.leases.values().map(|it| (it.pool.profile, it.pool.scope, it.pool.account));
        let cooling = self.cooling.iter().map(|it| (it.profile, it.scope, it.account));
        let unknown = LimitScope::Unknown;
        let predecessor = self.predecessor.iter().map(|it| (it.profile, unknown, it.account));
        let elsewhere = self.elsewhere.iter().map(|it| (it.profile, unknown, it.account));
        let all = leases.chain(cooling).chain(predecessor).chain(elsewhere);
        all.filter(|(profile, scope, account)| is_in(*profile, *scope, *account)).count() as u32
    }

    /// Returns the number of other leases that share a limit with a pool, and of those that a discovered limit of it counts
    /// and whose source has delivered packets.
    fn others(&self, lease: u64, pool: &SlotPool) -> (u32, u32) {
        let others = || self.leases.iter().filter(|it| *it.0 != lease).map(|it| it.1);
        let n_others = others().filter(|it| pool.shares_limit_with(&it.pool)).count() as u32;
        let carried = others().filter(|it| it.counts_for(pool) && it.has_delivered);
        (n_others, carried.count() as u32)
    }

    /// Returns what is known about a login or host since the last change of the account.
    fn observed(&self, pool: &SlotPool) -> &ObservedLimit {
        static NOTHING: ObservedLimit = ObservedLimit::NOTHING;
        match self.observed.get(&observed_key(pool)) {
            Some(observed) if observed.changed_at >= pool.changed_at => &observed.limit,
            _ => &NOTHING,
        }
    }

    /// Asks the device of a pool for the number of its tuners, if that is due.
    fn ask_device(&mut self, pool: &SlotPool, now: Instant) {
        let (Some(questions), Some(address)) = (&self.questions, self.devices.get(&pool.scope)) else {
            return;
        };
        let (questions, address) = (questions.clone(), address.clone());
        if self.observe(pool, |it| it.begin_question(now.into_std())) {
            // With a full queue, the device is asked again as one that did not answer.
            let _ = questions.try_send(DeviceQuestion { pool: pool.clone(), address });
        }
    }

    /// Returns what was observed of the limits of account profiles, each with the last change of the account before it. That of
    /// a login comes before the smallest one of hosts without a login.
    fn observed_limits(
        &self,
        limit: impl Fn(&ObservedLimit) -> Option<u32>,
    ) -> HashMap<ProfileId, (i64, u32)> {
        let mut found: BTreeMap<ProfileId, (bool, u32, i64)> = BTreeMap::new();
        for ((scope, _), observed) in &self.observed {
            let Some(limit) = limit(&observed.limit) else { continue };
            let is_host = matches!(scope, LimitScope::Host(_));
            for profile in &observed.profiles {
                let new = (is_host, limit, observed.changed_at);
                let known = found.entry(*profile).or_insert(new);
                *known = new.min(*known);
            }
        }
        found.into_iter().map(|(profile, (_, limit, changed_at))| (profile, (changed_at, limit))).collect()
    }

    /// Records an observation. What was observed before the last change of the account is forgotten.
    fn observe<T>(&mut self, pool: &SlotPool, record: impl FnOnce(&mut ObservedLimit) -> T) -> T {
        let new = || Observed {
            changed_at: pool.changed_at,
            profiles: BTreeSet::new(),
            limit: ObservedLimit::NOTHING,
        };
        let observed = self.observed.entry(observed_key(pool)).or_insert_with(new);
        if observed.changed_at < pool.changed_at {
            *observed = new();
        }
        observed.profiles.insert(pool.profile);
        let recorded = record(&mut observed.limit);
        if self.observed.len() > OBSERVED_MAX {
            self.observed.pop_first();
        }
        recorded
    }

    /// Returns whether reserved slots are not for this request: it is that of a new viewer of a channel that nobody is
    /// about to record.
    fn is_kept_out(&self, request: &Request) -> bool {
        let is_new = matches!(request.asking, Asking::Join(_) | Asking::Beside);
        is_new && !self.reserved.serves(&request.target, request.purpose)
    }

    /// Returns how many slots of a pool and of its server group are reserved and not in use yet.
    fn open_reserved(&self, pool: &SlotPool) -> (u32, u32) {
        self.reserved.open(pool, self.leases.values().map(|it| (&it.pool, &it.target)))
    }

    fn full(&self, request: &Request, now: Instant) -> FullPool {
        let Some(SlotCandidate { pool, .. }) = request.order.first() else {
            return FullPool {
                account: String::new(),
                server_group: None,
                since: Duration::ZERO,
                max_streams: 0,
                is_discovered: false,
                is_told: false,
                n_reserved: 0,
                is_unknown: false,
            };
        };
        let reserved = if self.is_kept_out(request) { self.open_reserved(pool) } else { (0, 0) };
        let max = self.limit(pool).0;
        let has_own_room = max == 0 || self.n_used(pool) + reserved.0 < max;
        let group = pool.shared.as_ref().filter(|it| {
            has_own_room && it.max_streams != 0 && self.n_shared(it) + reserved.1 >= it.max_streams
        });
        let counts = |it: &&Entry| match group {
            Some(group) => group.accounts.contains(&it.pool.account),
            None => it.counts_for(pool),
        };
        let oldest = self.leases.values().filter(counts).map(|it| it.since).min();
        let (max_streams, is_discovered) =
            group.map_or_else(|| self.limit(pool), |it| (it.max_streams, false));
        FullPool {
            account: pool.account_name.clone(),
            server_group: group.map(|it| it.name.clone()),
            since: oldest.map_or(Duration::ZERO, |it| now.duration_since(it)),
            max_streams,
            is_discovered,
            is_told: is_discovered && self.observed(pool).is_told(),
            n_reserved: if group.is_some() { reserved.1.max(reserved.0) } else { reserved.0 },
            is_unknown: false,
        }
    }
}
