//! The number of programs that convert streams for output profiles.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use media::Permit;

/// Counts the programs; it belongs to the system. Clones share the count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transcoders(Arc<AtomicU32>);

/// The right to run one program at a time, with restarts. Clones share it, and the last drop returns it.
#[derive(Clone, Debug)]
pub(crate) struct TranscoderSlot {
    _returned: Arc<Returned>,
}

#[derive(Debug)]
struct Returned(Transcoders);

impl Transcoders {
    /// Takes a slot, if fewer than `max` are taken.
    pub(crate) fn take(&self, max: u32) -> Option<TranscoderSlot> {
        let more = |taken: u32| (taken < max).then_some(taken + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(TranscoderSlot { _returned: Arc::new(Returned(self.clone())) })
    }

    /// Returns the number of slots that are taken.
    pub(crate) fn n_taken(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Returned {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A program keeps the slot until no process of it is left.
impl Permit for TranscoderSlot {
    fn delivers(&mut self) {}

    fn closing(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_returned_with_its_last_clone() {
        let transcoders = Transcoders::default();
        assert!(transcoders.take(0).is_none());
        let slot = transcoders.take(1).unwrap();
        let program = slot.clone();
        drop(slot);
        assert!(transcoders.take(1).is_none());
        drop(program);
        assert_eq!(transcoders.n_taken(), 0);
        assert!(transcoders.take(1).is_some());
    }
}
