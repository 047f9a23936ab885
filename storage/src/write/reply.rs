//! How the result of a write gets from the thread of the writer to the caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::error::{Error, Result};

/// Reports the result to the caller, once it is durable.
pub(crate) type Answer = Box<dyn FnOnce(Result<()>) + Send>;

/// Tells the caller of a write whether its function succeeded.
pub(crate) struct Reply {
    sender: oneshot::Sender<Result<bool>>,
    is_given_up: GivenUp,
}

/// Whether the caller was told that the write is not made.
#[derive(Clone, Default)]
pub(crate) struct GivenUp(Arc<AtomicBool>);

impl GivenUp {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Reply {
    pub(crate) fn new(is_given_up: GivenUp) -> (Self, oneshot::Receiver<Result<bool>>) {
        let (sender, answer) = oneshot::channel();
        (Self { sender, is_given_up }, answer)
    }

    /// Runs the function of a write, unless its caller has given up. Replies immediately if the function fails, and
    /// otherwise once its changes are durable.
    pub(crate) fn answer(self, fill: impl FnOnce() -> bool) -> Option<Answer> {
        if self.is_given_up.0.load(Ordering::SeqCst) {
            return None;
        }
        if !fill() {
            drop(self.sender.send(Ok(false)));
            return None;
        }
        // The caller may be gone; the write is committed anyway.
        Some(Box::new(move |done| drop(self.sender.send(done.map(|()| true)))))
    }

    /// Replies that the function cannot run.
    pub(crate) fn refuse(self, error: Error) {
        drop(self.sender.send(Err(error)));
    }
}

/// The result of the function of a caller. The writer does not know its type, so that there is only one writer.
pub(crate) struct Returned<R, E> {
    result: Arc<Mutex<Option<Result<R, E>>>>,
}

impl<R, E: From<Error>> Returned<R, E> {
    /// Returns one for the function, and one for the caller.
    pub(crate) fn new() -> (Self, Self) {
        let result = Arc::new(Mutex::new(None));
        (Self { result: Arc::clone(&result) }, Self { result })
    }

    /// Keeps a result for the caller. Returns whether it is a success.
    pub(crate) fn set(&self, result: Result<R, E>) -> bool {
        let is_ok = result.is_ok();
        *self.result.lock() = Some(result);
        is_ok
    }

    /// Returns the result, after the writer has replied.
    pub(crate) fn take(self) -> Result<R, E> {
        self.result.lock().take().unwrap_or_else(|| Err(Error::Panicked.into()))
    }
}
