//! Slots during a restart, while the process before still serves viewers beside its successor.
//!
//! The old process *hands over*: each slot that a holder has at that moment stays its own until the holder ends, and it
//! gets no other one of an account with a limit. The successor counts these slots as in use until the old process reports
//! the end of their holder. So both together never exceed a limit, although neither asks the other.

use std::collections::HashMap;

use domain::ids::{AccountId, ProfileId, StreamId};
use domain::limits::HeldSlot;
use domain::plan::SlotPool;
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
}

impl OtherSlot {
    pub(crate) fn holder(&self) -> u64 {
        self.holder
    }

    pub(super) fn held(&self) -> HeldSlot {
        HeldSlot { pool: self.profile, account: self.account, holder: Some(u64::MAX), closing: false }
    }
}

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
