//! A lease on a slot.

use std::sync::Arc;

use super::LeaseTable;

/// The right to hold one upstream connection open. It is returned by its drop and in no other way.
pub(crate) struct Lease {
    id: u64,
    /// `None` for a source that needs no slot.
    table: Option<Arc<dyn LeaseTable>>,
    just_released: bool,
}

impl Lease {
    /// Creates the only guard of a lease that `table` has granted. See [`Self::just_released`].
    pub(crate) fn new(id: u64, table: Arc<dyn LeaseTable>, just_released: bool) -> Self {
        Self { id, table: Some(table), just_released }
    }

    /// The number of each lease without a slot; no other one has it.
    pub(crate) const PULLED: u64 = 0;

    /// Creates a lease for a channel that is read from another process or node, which has the slot.
    pub(crate) fn pulled() -> Self {
        Self { id: Self::PULLED, table: None, just_released: false }
    }

    /// Returns whether another process or node has the slot.
    pub(crate) fn is_pulled(&self) -> bool {
        self.table.is_none()
    }

    /// Returns the number of the lease; never reused.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Returns whether a slot of this account profile was returned so recently that the provider may still count it. On
    /// an account without a configured limit only a connection that delivered packets matters: what the provider
    /// refused, it does not count.
    pub(crate) fn just_released(&self) -> bool {
        self.just_released
    }
}

impl media::Permit for Lease {
    fn delivers(&mut self) {
        if let Some(table) = &self.table {
            table.delivers(self.id);
        }
    }

    fn closing(&mut self) {
        if let Some(table) = &self.table {
            table.closing(self.id);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(table) = &self.table {
            table.give_back(self.id);
        }
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lease({})", self.id)
    }
}
