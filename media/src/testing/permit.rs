//! Counted permits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::permit::Permit;

/// Creates permits and counts them.
#[derive(Clone, Default)]
pub struct PermitCount {
    n_out: Arc<AtomicUsize>,
    n_closing: Arc<AtomicUsize>,
    n_delivered: Arc<AtomicUsize>,
}

impl PermitCount {
    /// Creates a permit; `returned` is called when it is dropped.
    pub fn permit(&self, returned: impl FnOnce() + Send + 'static) -> Box<TestPermit> {
        self.n_out.fetch_add(1, Ordering::SeqCst);
        Box::new(TestPermit { count: self.clone(), is_closing: false, returned: Some(Box::new(returned)) })
    }

    /// Returns the number of permits that were not returned, including closing ones.
    pub fn n_out(&self) -> usize {
        self.n_out.load(Ordering::SeqCst)
    }

    /// Returns how many permits had a connection that delivered payload, including returned ones.
    pub fn n_delivered(&self) -> usize {
        self.n_delivered.load(Ordering::SeqCst)
    }

    /// Returns the number of permits that were marked as closing and not returned.
    pub fn n_closing(&self) -> usize {
        self.n_closing.load(Ordering::SeqCst)
    }
}

/// A permit of a [`PermitCount`].
pub struct TestPermit {
    count: PermitCount,
    is_closing: bool,
    returned: Option<Box<dyn FnOnce() + Send>>,
}

impl Permit for TestPermit {
    fn delivers(&mut self) {
        assert!(!self.is_closing, "delivers while it closes");
        self.count.n_delivered.fetch_add(1, Ordering::SeqCst);
    }

    fn closing(&mut self) {
        assert!(!self.is_closing, "marked as closing twice");
        self.is_closing = true;
        self.count.n_closing.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for TestPermit {
    fn drop(&mut self) {
        if self.is_closing {
            self.count.n_closing.fetch_sub(1, Ordering::SeqCst);
        }
        self.count.n_out.fetch_sub(1, Ordering::SeqCst);
        if let Some(returned) = self.returned.take() {
            returned();
        }
    }
}
