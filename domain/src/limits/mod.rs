//! Decides about slots for upstream connections and about seats for sessions. The caller keeps track of the holders.

mod observed;
mod scope;
mod seats;

pub use self::observed::{ObservedLimit, may_open_beside};
pub use self::scope::LimitScope;
pub use self::seats::{HeldSeat, SeatDecision, SeatHolder, SeatRules, decide_seat};
use crate::ids::{AccountId, ProfileId};

/// Returns how many of these connections of one address may be without a login: three quarters. The rest is for users, so that
/// nobody without a login can take all of a shared address. `0`, which means no limit, stays.
pub fn anonymous_share(max: usize) -> usize {
    max - max / 4
}

/// A slot that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldSlot {
    /// The account profile of the slot.
    pub pool: ProfileId,
    /// The connections that the provider counts together with it.
    pub scope: LimitScope,
    /// The account of the profile.
    pub account: AccountId,
    /// The holder, as any key chosen by the caller. `None` for a cooling slot: its connection is closed, but the
    /// provider keeps counting it for a while.
    pub holder: Option<u64>,
    /// Its connection is being closed; the slot becomes free within a moment.
    pub closing: bool,
}

/// The decision about a request for a slot. The number is an index into the order of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotDecision {
    /// This candidate has a free slot.
    Grant(usize),
    /// A slot of this candidate becomes free soon, so nobody has to yield.
    Wait(usize),
    /// No slot is free, and none becomes free soon.
    Full,
}

/// The pools that one slot of a candidate belongs to. It is free only if all of them have room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotDemand<'a> {
    /// The account profile.
    pub pool: ProfileId,
    /// The connections that its limit counts, if that is a discovered one; `Unknown` are those of the account profile.
    pub scope: LimitScope,
    /// Its limit; 0 is unlimited.
    pub max: u32,
    /// The accounts of its server group, and their common limit.
    pub shared: Option<(&'a [AccountId], u32)>,
}

/// Finds the first candidate of `order` with a free slot for `requester`.
///
/// `order` contains the candidates, best first; a profile may occur more than once.
///
/// - A candidate that is full only because the requester's own old lease is still closing is worth waiting for: the
///   requester keeps its position in the order instead of moving on to a worse candidate.
/// - A free candidate is used before waiting for slots of others.
/// - Only if nothing is free, the result names a candidate whose closing or cooling slots will suffice.
pub fn decide_slot(order: &[SlotDemand<'_>], held: &[HeldSlot], requester: u64) -> SlotDecision {
    for (index, candidate) in order.iter().enumerate() {
        if candidate.has_room(held, |_| true) {
            return SlotDecision::Grant(index);
        }
        if candidate.has_room(held, |it| !(it.closing && it.holder == Some(requester))) {
            return SlotDecision::Wait(index);
        }
    }
    let comes_back = |it: &HeldSlot| it.closing || it.holder.is_none();
    order
        .iter()
        .position(|candidate| candidate.has_room(held, |it| !comes_back(it)))
        .map_or(SlotDecision::Full, SlotDecision::Wait)
}

/// Returns whether a limit of this account profile and scope counts a connection of another one. Where one of the scopes is
/// not known, the profiles decide.
pub fn counts_together(limit: (ProfileId, LimitScope), connection: (ProfileId, LimitScope)) -> bool {
    match (limit.1, connection.1) {
        (LimitScope::Unknown, _) | (_, LimitScope::Unknown) => limit.0 == connection.0,
        (own, other) => own == other,
    }
}

impl SlotDemand<'_> {
    /// Returns whether one more would fit into all pools if only the slots selected by `counts` were in use.
    fn has_room(&self, held: &[HeldSlot], counts: impl Fn(&HeldSlot) -> bool) -> bool {
        let fits = |max: u32, is_in: &dyn Fn(&HeldSlot) -> bool| {
            max == 0 || held.iter().filter(|it| is_in(it) && counts(it)).count() < max as usize
        };
        fits(self.max, &|it| counts_together((self.pool, self.scope), (it.pool, it.scope)))
            && self.shared.is_none_or(|(accounts, max)| fits(max, &|it| accounts.contains(&it.account)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parses `order` and `held`: `"a:1 b:0"` is two candidates with their limits; `"a1 a2! a~"` is a slot of pool a
    /// held by 1, a closing one held by 2, and a cooling one. Requester is 1.
    #[track_caller]
    fn check(order: &str, held: &str, expected: SlotDecision) {
        check_shared(None, order, held, expected);
    }

    /// Does the same with a server group: the names of its accounts, which are those of their pools, and its limit.
    #[track_caller]
    fn check_shared(group: Option<(&str, u32)>, order: &str, held: &str, expected: SlotDecision) {
        let number = |name: &str| u32::from(name.as_bytes()[0]);
        let accounts: Vec<_> =
            group.iter().flat_map(|it| it.0.bytes()).map(|it| AccountId(u32::from(it))).collect();
        let mut demands = Vec::new();
        for (name, max) in order.split_whitespace().map(|it| it.split_once(':').unwrap()) {
            let is_member = accounts.contains(&AccountId(number(name)));
            let shared = group.filter(|_| is_member).map(|(_, max)| (&accounts[..], max));
            let (pool, max) = (ProfileId(number(name)), max.parse().unwrap());
            demands.push(SlotDemand { pool, scope: LimitScope::Unknown, max, shared });
        }
        let slot = |it: &str| HeldSlot {
            pool: ProfileId(number(it)),
            scope: LimitScope::Unknown,
            account: AccountId(number(it)),
            holder: it[1..2].parse().ok(),
            closing: it.ends_with('!'),
        };
        let held: Vec<_> = held.split_whitespace().map(slot).collect();
        assert_eq!(decide_slot(&demands, &held, 1), expected);
    }

    #[test]
    fn a_slot_of_a_server_group_needs_room_in_both_pools() {
        use SlotDecision::{Full, Grant, Wait};
        let one = Some(("ab", 1));
        check_shared(one, "a:1 b:1", "", Grant(0));
        check_shared(one, "b:1", "a2", Full);
        check_shared(one, "b:0", "a2", Full); // no limit of its own
        check_shared(one, "b:1 c:1", "a2", Grant(1)); // another account is not affected
        check_shared(one, "a:1", "c2", Grant(0));
        check_shared(Some(("ab", 2)), "a:1 b:1", "a2", Grant(1)); // the group has room, the profile has none
        check_shared(Some(("ab", 2)), "a:1", "a2", Full);
        check_shared(Some(("ab", 0)), "a:1 b:1", "a2", Grant(1)); // no limit of the group
        // Own and foreign slots that come back count for both pools.
        check_shared(one, "b:1 c:1", "a1!", Wait(0));
        check_shared(one, "b:1 c:1", "a2!", Grant(1));
        check_shared(one, "b:1", "a2!", Wait(0));
        check_shared(one, "b:1", "a~", Wait(0));
        check_shared(Some(("ab", 2)), "b:1", "a~ b2", Full);
    }

    #[test]
    fn the_first_free_candidate_is_granted() {
        use SlotDecision::{Full, Grant, Wait};
        check("a:1 b:1", "", Grant(0));
        check("a:1 b:1", "a2", Grant(1));
        check("a:2 b:1", "a2", Grant(0));
        check("a:0", "a2 a3 a4", Grant(0)); // 0 is unlimited
        check("a:1 a:1 b:1", "a2", Grant(2)); // two streams of one account
        check("a:1 b:1", "a2 b3", Full);
        check("", "", Full);
        // The requester's own closing lease is worth waiting for, even if a later candidate is free …
        check("a:1 b:1", "a1!", Wait(0));
        check("b:1 a:1", "a1!", Grant(0));
        // … but not if others hold enough slots to keep it full, as after the limit was lowered.
        check("a:1 b:1", "a1! a2", Grant(1));
        check("a:1", "a1", Full); // its own slot, but not closing
        // Slots of others are waited for only when nothing is free.
        check("a:1 b:1", "a2!", Grant(1));
        check("a:1 b:1", "a2! b3", Wait(0));
        check("a:1 b:1", "a2 b3!", Wait(1));
        check("a:1 b:1", "a~", Grant(1));
        check("a:1 b:1", "a2 b~", Wait(1));
        check("a:1", "a~ a2", Full); // full without the cooling one
    }

    #[test]
    fn a_limit_of_a_login_counts_it_everywhere_and_that_of_a_host_counts_no_other_host() {
        let (a, b) = (LimitScope::Host(1), LimitScope::Host(2));
        let held = |pool, scope| HeldSlot {
            pool: ProfileId(pool),
            scope,
            account: AccountId(pool),
            holder: Some(9),
            closing: false,
        };
        let decide = |scope, held: &[HeldSlot]| {
            let demand = SlotDemand { pool: ProfileId(1), scope, max: 1, shared: None };
            decide_slot(&[demand], held, 1)
        };
        assert_eq!(decide(a, &[held(1, b)]), SlotDecision::Grant(0));
        assert_eq!(decide(a, &[held(1, a)]), SlotDecision::Full);
        assert_eq!(decide(a, &[held(2, a)]), SlotDecision::Full, "the same login in another account");
        // Slots of other processes say nothing of their login.
        assert_eq!(decide(a, &[held(1, LimitScope::Unknown)]), SlotDecision::Full);
        assert_eq!(decide(a, &[held(2, LimitScope::Unknown)]), SlotDecision::Grant(0));
        // A configured limit counts the whole profile.
        assert_eq!(decide(LimitScope::Unknown, &[held(1, b)]), SlotDecision::Full);
    }

    /// Events of leases, as the provider sees them.
    #[derive(Debug, Clone)]
    enum Step {
        Ask {
            holder: u64,
            order: Vec<usize>,
        },
        BeginClosing(usize),
        /// The connection is closed; the flag says whether its slot cools down.
        Closed(usize, bool),
        Cooled(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..5_u64, prop::collection::vec(0..3_usize, 0..5)).prop_map(|(holder, order)| Step::Ask { holder, order }),
            2 => (0..9_usize).prop_map(Step::BeginClosing),
            2 => (0..9_usize, any::<bool>()).prop_map(|(at, cools)| Step::Closed(at, cools)),
            1 => (0..9_usize).prop_map(Step::Cooled),
        ]
    }

    fn used(held: &[HeldSlot], pool: ProfileId) -> u32 {
        held.iter().filter(|it| it.pool == pool).count() as u32
    }

    // Holds T-slot.1 as far as it concerns counting.
    proptest! {
        #[test]
        fn no_pool_is_exceeded_and_no_free_candidate_is_skipped(
            maxima in prop::array::uniform3(0..3_u32),
            shared_max in 0..3_u32,
            steps in prop::collection::vec(step(), 0..60),
        ) {
            // The first two accounts are a server group.
            let accounts = [AccountId(1), AccountId(2)];
            let demand = |(max, id): (&u32, u32)| {
                let shared = accounts.contains(&AccountId(id)).then_some((&accounts[..], shared_max));
                SlotDemand { pool: ProfileId(id), scope: LimitScope::Unknown, max: *max, shared }
            };
            let pools: Vec<_> = maxima.iter().zip(1..).map(demand).collect();
            let is_shared = |it: &HeldSlot| accounts.contains(&it.account);
            let mut held: Vec<HeldSlot> = Vec::new();
            for step in steps {
                match step {
                    Step::Ask { holder, order } => {
                        let order: Vec<_> = order.iter().map(|it| pools[*it]).collect();
                        let fits = |it: &SlotDemand<'_>, held: &[HeldSlot]| {
                            let n_shared = held.iter().filter(|it| is_shared(it)).count() as u32;
                            (it.max == 0 || used(held, it.pool) < it.max)
                                && (it.shared.is_none() || shared_max == 0 || n_shared < shared_max)
                        };
                        let free = |it: &SlotDemand<'_>| fits(it, &held);
                        let is_in = |slot: &HeldSlot, it: &SlotDemand<'_>| {
                            slot.pool == it.pool || (it.shared.is_some() && is_shared(slot))
                        };
                        let is_own = |it: &SlotDemand<'_>| {
                            let is_other = |it: &&HeldSlot| !(it.closing && it.holder == Some(holder));
                            let others: Vec<_> = held.iter().filter(is_other).copied().collect();
                            !free(it) && fits(it, &others)
                        };
                        match decide_slot(&order, &held, holder) {
                            SlotDecision::Grant(index) => {
                                prop_assert!(free(&order[index]));
                                prop_assert!(!order[..index].iter().any(|it| free(it) || is_own(it)), "order is kept");
                                let pool = order[index].pool;
                                let (scope, account) = (LimitScope::Unknown, AccountId(pool.0));
                                held.push(HeldSlot { pool, scope, account, holder: Some(holder), closing: false });
                            }
                            SlotDecision::Wait(index) => {
                                prop_assert!(!order[..=index].iter().any(free));
                                let returns = |it: &&HeldSlot| is_in(it, &order[index]) && (it.closing || it.holder.is_none());
                                prop_assert!(held.iter().any(|it| returns(&it)), "a slot becomes free");
                                prop_assert!(is_own(&order[index]) || !order.iter().any(free));
                            }
                            SlotDecision::Full => prop_assert!(!order.iter().any(|it| free(it) || is_own(it))),
                        }
                    }
                    Step::BeginClosing(at) => {
                        if let Some(it) = held.get_mut(at) {
                            it.closing = it.holder.is_some();
                        }
                    }
                    Step::Closed(at, cools) => {
                        if held.get(at).is_some_and(|it| it.closing) {
                            if cools { held[at] = HeldSlot { holder: None, closing: false, ..held[at] } } else { held.swap_remove(at); }
                        }
                    }
                    Step::Cooled(at) => {
                        if held.get(at).is_some_and(|it| it.holder.is_none()) {
                            held.swap_remove(at);
                        }
                    }
                }
                for it in &pools {
                    prop_assert!(it.max == 0 || used(&held, it.pool) <= it.max, "{:?}", held);
                }
                let n_shared = held.iter().filter(|it| is_shared(it)).count() as u32;
                prop_assert!(shared_max == 0 || n_shared <= shared_max, "{:?}", held);
            }
        }
    }
}
