//! One limit for the bytes of all rings of the process.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Shared;

/// After a round that could not free enough, the next waits for this part of the budget to be used in addition:
/// rings that cannot shrink are not asked again with every chunk.
const PATIENCE: usize = 64;

/// How many bytes all rings together may keep. When they keep more, the rings with the fewest tails shrink first,
/// none below its newest group of pictures. Clones are the same budget.
#[derive(Clone)]
pub struct Budget {
    inner: Arc<Inner>,
}

struct Inner {
    total: usize,
    used: AtomicUsize,
    /// Above this many used bytes rings are asked to shrink.
    ask_above: AtomicUsize,
    rings: Mutex<Vec<Weak<Shared>>>,
}

impl Budget {
    /// A budget of this many bytes.
    pub fn new(bytes: usize) -> Self {
        let inner = Inner {
            total: bytes,
            used: AtomicUsize::new(0),
            ask_above: AtomicUsize::new(bytes),
            rings: Mutex::new(Vec::new()),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Bytes that all rings keep at present.
    pub fn used(&self) -> usize {
        self.inner.used.load(Relaxed)
    }

    /// Bytes that all rings may keep.
    pub fn total(&self) -> usize {
        self.inner.total
    }

    pub(super) fn register(&self, ring: &Arc<Shared>) {
        let mut rings = self.inner.rings.lock();
        rings.retain(|it| it.strong_count() > 0);
        rings.push(Arc::downgrade(ring));
    }

    /// A ring kept `before` bytes and now keeps `after`. Called under that ring's lock, so that the sum is right.
    pub(super) fn change(&self, before: usize, after: usize) {
        if after >= before {
            self.inner.used.fetch_add(after - before, Relaxed);
        } else {
            self.give_back(before - after);
        }
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.inner.used.fetch_sub(bytes, Relaxed);
    }

    /// Shrinks rings when they keep too much together. Must be called without any ring's lock held.
    pub(super) fn relieve(&self, now: Instant) {
        let Inner { total, used, ask_above, rings } = &*self.inner;
        if used.load(Relaxed) <= ask_above.load(Relaxed) {
            if used.load(Relaxed) <= *total {
                ask_above.store(*total, Relaxed);
            }
            return;
        }
        // Who is second need not wait: the first is at it.
        let Some(rings) = rings.try_lock() else { return };
        let mut rings: Vec<Arc<Shared>> = rings.iter().filter_map(Weak::upgrade).collect();
        rings.sort_by_key(|it| it.n_tails.load(Relaxed));
        for ring in &rings {
            let surplus = used.load(Relaxed).saturating_sub(*total);
            if surplus == 0 {
                break;
            }
            let freed = ring.state.lock().evict(&ring.settings, now, surplus);
            self.give_back(freed);
        }
        let left = used.load(Relaxed);
        ask_above.store(if left <= *total { *total } else { left + total / PATIENCE }, Relaxed);
    }
}

impl std::fmt::Debug for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget").field("total", &self.total()).field("used", &self.used()).finish()
    }
}
