//! A slot that another process of this node uses during a restart.

use domain::cluster::record::{LeaseId, PoolId};
use domain::ids::{AccountId, ProfileId, StreamId};
use domain::limits::{HeldSlot, LimitScope};
use serde::{Deserialize, Serialize};

use crate::plans::Target;

/// A slot in use by the other process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherSlot {
    /// The live channel of the other process that uses it, or 0 if only the provider still counts it.
    pub(crate) holder: u64,
    pub(crate) profile: ProfileId,
    pub(crate) account: AccountId,
    pub(crate) account_name: String,
    pub(crate) target: Target,
    pub(crate) stream: StreamId,
    /// Time for which the provider counts a connection that is closed, in milliseconds.
    pub(crate) release_delay_ms: u64,
    /// Time for which the provider still counts this one, which is closed; 0 while it is in use.
    pub(crate) cooling_ms: u64,
    /// Its lease in the cluster.
    #[serde(default)]
    pub(crate) lease: Option<SharedLease>,
}

/// A lease of a slot table of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedLease {
    pub(crate) pool: PoolId,
    pub(crate) lease: LeaseId,
}

impl OtherSlot {
    pub(crate) fn holder(&self) -> u64 {
        self.holder
    }

    pub(crate) fn lease(&self) -> Option<SharedLease> {
        self.lease
    }

    pub(super) fn held(&self) -> HeldSlot {
        HeldSlot {
            pool: self.profile,
            scope: LimitScope::Unknown,
            account: self.account,
            holder: Some(u64::MAX),
            closing: false,
        }
    }
}
