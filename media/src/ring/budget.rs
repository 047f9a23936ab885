//! One limit for the bytes of all rings in the process.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::time::Instant;

/// After an attempt that freed too little, the next one waits until this fraction of the budget is used in
/// addition. Otherwise every new chunk would search the rings that cannot shrink.
const RETRY_FRACTION: usize = 64;

/// A ring, as far as the budget knows it.
pub(super) trait Shrink: Send + Sync {
    /// Returns the number of readers.
    fn n_tails(&self) -> usize;

    /// Removes old chunks until `wanted` bytes are free, and returns how many were freed. The newest group of pictures
    /// stays, up to `gop_bytes`.
    fn shrink(&self, now: Instant, wanted: usize, gop_bytes: usize) -> usize;
}

/// The number of bytes that all rings together may store.
///
/// Above it, the rings with the fewest tails shrink first, each down to its newest group of pictures. If these groups
/// alone exceed the budget, they are cut as well, but none below its equal share of the budget.
/// Clones share one budget.
#[derive(Clone)]
pub struct Budget {
    inner: Arc<BudgetState>,
}

struct BudgetState {
    total: usize,
    used: AtomicUsize,
    /// Rings are shrunk when more bytes than this are used.
    shrink_above: AtomicUsize,
    rings: Mutex<Vec<Weak<dyn Shrink>>>,
}

impl Budget {
    /// Creates a budget of this many bytes.
    pub fn new(bytes: usize) -> Self {
        let inner = BudgetState {
            total: bytes,
            used: AtomicUsize::new(0),
            shrink_above: AtomicUsize::new(bytes),
            rings: Mutex::new(Vec::new()),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the bytes that all rings store now.
    pub fn used(&self) -> usize {
        self.inner.used.load(Relaxed)
    }

    /// Returns the bytes that all rings may store.
    pub fn total(&self) -> usize {
        self.inner.total
    }

    pub(super) fn register(&self, ring: Weak<dyn Shrink>) {
        let mut rings = self.inner.rings.lock();
        rings.retain(|it| it.strong_count() > 0);
        rings.push(ring);
    }

    /// Records that a ring stored `before` bytes and now stores `after`. Called under the lock of that ring,
    /// so that the sum is exact.
    pub(super) fn adjust(&self, before: usize, after: usize) {
        if after >= before {
            self.inner.used.fetch_add(after - before, Relaxed);
        } else {
            self.release(before - after);
        }
    }

    pub(super) fn release(&self, bytes: usize) {
        self.inner.used.fetch_sub(bytes, Relaxed);
    }

    /// Shrinks rings if they store too much together. Must be called without the lock of any ring.
    pub(super) fn enforce(&self, now: Instant) {
        let BudgetState { total, used, shrink_above, rings } = &*self.inner;
        if used.load(Relaxed) <= shrink_above.load(Relaxed) {
            if used.load(Relaxed) <= *total {
                shrink_above.store(*total, Relaxed);
            }
            return;
        }
        // If another thread is already trimming, skip.
        let Some(rings) = rings.try_lock() else { return };
        let mut rings: Vec<Arc<dyn Shrink>> = rings.iter().filter_map(Weak::upgrade).collect();
        // Each key is read once: tails come and go during the sort, and a key that changes may make it panic.
        rings.sort_by_cached_key(|it| it.n_tails());
        let share = total / rings.len().max(1);
        for (gop_bytes, ring) in
            [usize::MAX, share].iter().flat_map(|it| rings.iter().map(move |ring| (*it, ring)))
        {
            let surplus = used.load(Relaxed).saturating_sub(*total);
            if surplus == 0 {
                break;
            }
            self.release(ring.shrink(now, surplus, gop_bytes));
        }
        let left = used.load(Relaxed);
        shrink_above.store(if left <= *total { *total } else { left + total / RETRY_FRACTION }, Relaxed);
    }
}

impl std::fmt::Debug for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget").field("total", &self.total()).field("used", &self.used()).finish()
    }
}
