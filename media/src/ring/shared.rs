//! The shared part of a ring.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::Waker;

use parking_lot::Mutex;

use super::budget::Budget;
use super::end::EndReason;
use super::settings::RingSettings;
use super::state::RingState;
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

impl Drop for RingShared {
    fn drop(&mut self) {
        self.budget.release(self.state.get_mut().bytes());
    }
}
