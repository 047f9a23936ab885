//! The shared part of a ring.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::budget::{Budget, Shrink};
use super::end::EndReason;
use super::settings::RingSettings;
use super::state::{Pressure, RingState};
use crate::meter::RingMeter;

/// The state that the writer, the tails and the budget share.
pub(super) struct RingShared {
    pub(super) settings: RingSettings,
    pub(super) state: Mutex<RingState>,
    pub(super) n_tails: AtomicUsize,
    pub(super) meter: Arc<RingMeter>,
    pub(super) budget: Budget,
}

impl RingShared {
    /// Ends the ring unless it has ended, and wakes all tails.
    pub(super) fn end(&self, end: EndReason) {
        let mut to_wake = Vec::new();
        {
            let mut state = self.state.lock();
            if state.end.is_some() {
                return;
            }
            state.end = Some(end);
            state.take_wakers(&mut to_wake);
        }
        to_wake.into_iter().for_each(Waker::wake);
    }
}

impl Shrink for RingShared {
    fn n_tails(&self) -> usize {
        self.n_tails.load(Ordering::Relaxed)
    }

    fn shrink(&self, now: Instant, wanted: usize, gop_bytes: usize) -> usize {
        let mut state = self.state.lock();
        // The second copies go first.
        let freed = state.drop_files_before(u64::MAX);
        freed + state.evict(&self.settings, now, Pressure { wanted: wanted.saturating_sub(freed), gop_bytes })
    }
}

impl Drop for RingShared {
    fn drop(&mut self) {
        self.budget.release(self.state.get_mut().memory());
    }
}
