//! All slots at one moment, for people.

use std::collections::HashMap;
use std::time::Duration;

use domain::cluster::record::{NodeId, SlotPurpose, SlotState};
use domain::ids::{AccountId, ProfileId};

use super::{LeaseInfo, LeasePurpose};
use crate::plans::Target;

/// The slots in use and the requests that wait for one, all at the same moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlotsSnapshot {
    /// In the order in which they were granted.
    pub in_use: Vec<LeaseInfo>,
    pub cooling: Vec<CoolingSlot>,
    /// The slots that other nodes of the cluster have.
    pub elsewhere: Vec<SlotElsewhere>,
    /// In the order of their arrival, which is the order in which they are served.
    pub waiting: Vec<WaitingRequest>,
    /// How many free slots of each account profile are reserved for recordings.
    pub(super) reserved: HashMap<ProfileId, u32>,
    /// The discovered limits, and the last change of the account before the discovery.
    pub(super) discovered: HashMap<ProfileId, (i64, u32)>,
    /// The numbers of tuners that devices state, and the last change of the account before the statement.
    pub(super) stated: HashMap<ProfileId, (i64, u32)>,
}

/// A slot whose connection is closed, and which the provider may still count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoolingSlot {
    pub profile: ProfileId,
    pub account: AccountId,
    /// Time until the slot is free.
    pub left: Duration,
}

/// A slot that another node of the cluster has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotElsewhere {
    pub node: NodeId,
    pub profile: ProfileId,
    pub account: AccountId,
    pub purpose: SlotPurpose,
    pub state: SlotState,
}

/// A request that waits for a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingRequest {
    pub target: Target,
    pub purpose: LeasePurpose,
    /// The account profiles that it would accept, best first.
    pub pools: Vec<(AccountId, ProfileId)>,
    /// Time since its arrival.
    pub age: Duration,
}

impl SlotsSnapshot {
    /// Returns how many free slots of an account profile are reserved for recordings.
    pub fn reserved(&self, profile: ProfileId) -> u32 {
        self.reserved.get(&profile).copied().unwrap_or_default()
    }

    /// Returns the limit of an account profile that was discovered since `changed_at`, the last change of its account.
    pub fn discovered_limit(&self, profile: ProfileId, changed_at: i64) -> Option<u32> {
        self.discovered.get(&profile).filter(|it| it.0 >= changed_at).map(|it| it.1)
    }

    /// Returns the number of tuners that the device of an account profile states, since `changed_at`, the last change of its
    /// account. The smallest one, if the profile has several devices.
    pub fn stated_limit(&self, profile: ProfileId, changed_at: i64) -> Option<u32> {
        self.stated.get(&profile).filter(|it| it.0 >= changed_at).map(|it| it.1)
    }
}
