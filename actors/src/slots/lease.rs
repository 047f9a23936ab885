//! The right to use one slot.

use std::sync::Arc;

use super::SlotTable;

/// The right to hold one upstream connection open. Returned by dropping it; there is no other way.
pub(crate) struct Lease {
    pub(super) id: u64,
    pub(super) table: Arc<SlotTable>,
    pub(super) just_released: bool,
}

impl Lease {
    /// Its number; never used again.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Whether a slot of this account profile came back so recently that the provider may still count it.
    pub(crate) fn just_released(&self) -> bool {
        self.just_released
    }
}

impl media::Permit for Lease {
    fn closing(&mut self) {
        self.table.closing(self.id);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.table.give_back(self.id);
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lease({})", self.id)
    }
}
