//! Permits that are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Permit;

/// Hands out permits and counts them.
#[derive(Clone, Default)]
pub struct PermitCount {
    n_out: Arc<AtomicUsize>,
    n_closing: Arc<AtomicUsize>,
}

impl PermitCount {
    /// A new permit; `returned` is called when it comes back.
    pub fn permit(&self, returned: impl FnOnce() + Send + 'static) -> Box<TestPermit> {
        self.n_out.fetch_add(1, Ordering::SeqCst);
        Box::new(TestPermit { count: self.clone(), is_closing: false, returned: Some(Box::new(returned)) })
    }

    /// Permits that have not come back, those closing included.
    pub fn n_out(&self) -> usize {
        self.n_out.load(Ordering::SeqCst)
    }

    /// Permits that have been told that their socket is closing and have not come back.
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
    fn closing(&mut self) {
        assert!(!self.is_closing, "told twice that it is closing");
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
