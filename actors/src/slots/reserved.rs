//! Slots that are kept for recordings, so that new viewers do not get them.

use std::collections::{BTreeMap, HashSet};

use domain::ids::ProfileId;
use domain::limits::{HeldSlot, LimitScope};
use domain::plan::SlotPool;
use domain::recording::forecast::LimitId;

use super::LeasePurpose;
use crate::plans::Target;

/// The slots that recordings need soon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReservedSlots {
    /// How many slots of each limit they need at once.
    pub(crate) peaks: BTreeMap<LimitId, u32>,
    /// The channels that they read.
    pub(crate) channels: HashSet<Target>,
}

impl ReservedSlots {
    /// Returns whether a request may use the reserved slots.
    pub(super) fn serves(&self, target: &Target, purpose: LeasePurpose) -> bool {
        self.peaks.is_empty() || purpose == LeasePurpose::Recording || self.channels.contains(target)
    }

    /// Iterates over the account profiles with the slots that are reserved and not in use yet. `in_use` returns the slots in
    /// use with their targets.
    pub(super) fn by_profile<'a, I>(&self, in_use: impl Fn() -> I) -> impl Iterator<Item = (ProfileId, u32)>
    where
        I: Iterator<Item = (ProfileId, &'a Target)>,
    {
        self.peaks.iter().filter_map(move |(limit, peak)| {
            let LimitId::Profile(profile) = *limit else { return None };
            let n_used = in_use().filter(|it| it.0 == profile && self.channels.contains(it.1)).count() as u32;
            Some((profile, peak.saturating_sub(n_used)))
        })
    }

    /// Returns how many slots of a pool, and of its server group, are reserved and not in use yet. `in_use` are the slots
    /// in use with their targets.
    pub(super) fn open<'a>(
        &self,
        pool: &SlotPool,
        in_use: impl Iterator<Item = (&'a SlotPool, &'a Target)> + Clone,
    ) -> (u32, u32) {
        let n_used = |is_in: &dyn Fn(&SlotPool) -> bool| {
            in_use.clone().filter(|it| is_in(it.0) && self.channels.contains(it.1)).count() as u32
        };
        let peak = |limit| self.peaks.get(&limit).copied().unwrap_or_default();
        let own = match pool.max_streams {
            0 => 0,
            _ => {
                peak(LimitId::Profile(pool.profile)).saturating_sub(n_used(&|it| it.profile == pool.profile))
            }
        };
        let shared = pool.shared.as_ref().filter(|it| it.max_streams > 0).map_or(0, |group| {
            let n_used = n_used(&|it| group.accounts.contains(&it.account));
            peak(LimitId::ServerGroup(group.group)).saturating_sub(n_used)
        });
        (own, shared)
    }
}

/// Returns the slots that stand for reserved ones of a pool.
pub(super) fn reserved_slots(pool: &SlotPool, (own, shared): (u32, u32)) -> impl Iterator<Item = HeldSlot> {
    let SlotPool { profile, account, .. } = *pool;
    let scope = LimitScope::Unknown;
    let slot = move |pool| HeldSlot { pool, scope, account, holder: Some(u64::MAX), closing: false };
    // Those of the profile count for its group too.
    let of_group = std::iter::repeat_n(slot(ProfileId(u32::MAX)), shared.saturating_sub(own) as usize);
    std::iter::repeat_n(slot(profile), own as usize).chain(of_group)
}
