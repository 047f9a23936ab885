//! The provider slots of accounts: how many are not free, and how many are left.

use actors::SlotsSnapshot;
use domain::account::{Account, AccountProfile};
use domain::ids::{AccountId, ProfileId};

/// Returns the limit of an account profile: the configured one, or else the one that the gateway discovered. `None` if it
/// has none.
pub fn limit(slots: &SlotsSnapshot, account: &Account, profile: &AccountProfile) -> Option<u32> {
    match profile.max_streams {
        0 => slots.discovered_limit(profile.id, account.updated_at),
        limit => Some(limit),
    }
}

/// Returns the number of slots of the selected accounts and profiles that are in use, closing or cooling, on all nodes.
pub fn n_used(slots: &SlotsSnapshot, is_in: impl Fn(AccountId, ProfileId) -> bool) -> usize {
    let in_use = slots.in_use.iter().filter(|it| is_in(it.account_id, it.profile));
    let cooling = slots.cooling.iter().filter(|it| is_in(it.account, it.profile));
    let elsewhere = slots.elsewhere.iter().filter(|it| is_in(it.account, it.profile));
    in_use.count() + cooling.count() + elsewhere.count()
}

/// Returns the number of free slots; none is below zero, as after a limit was lowered. `None` without a limit.
pub fn free(limit: Option<u32>, n_used: usize) -> Option<usize> {
    limit.filter(|it| *it > 0).map(|it| (it as usize).saturating_sub(n_used))
}
