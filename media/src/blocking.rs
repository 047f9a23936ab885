//! Functions that block, on a thread where they may.
//!
//! The runtime panics if the system refuses it a thread, and a task that waits in its queue waits for ever if no thread comes.
//! Callers of this function get an error in both cases, so that what they have begun ends with a cause.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

/// Longest wait for a thread.
const START_TIMEOUT: Duration = if cfg!(test) { Duration::from_millis(100) } else { Duration::from_secs(20) };

/// Why a function that blocks has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockingError {
    /// It has not run, and does not run later.
    #[error(
        "the system has no thread for it: the limit of threads or of memory is reached, or the disk hangs"
    )]
    NoThread,
    /// The thread has logged it.
    #[error("it panicked")]
    Panicked,
    /// It has not run.
    #[error("the gateway is stopping")]
    Stopping,
}

/// The result of a function on a thread that may block. The function runs to its end even if this is dropped.
#[must_use = "an error says that the function has not run"]
pub struct Blocking<T> {
    running: Running,
    result: Arc<Mutex<Option<T>>>,
}

/// A function on a thread that may block, whatever it returns.
struct Running {
    answer: oneshot::Receiver<Result<(), Panic>>,
    turn: Arc<Turn>,
    has_failed: bool,
    /// Set by the first poll.
    deadline: Option<Pin<Box<Sleep>>>,
}

type Panic = Box<dyn Any + Send>;

/// Decides once whether a function runs, or its caller gives up.
#[derive(Default)]
struct Turn(AtomicBool);

impl Turn {
    /// Returns true for the first one that asks.
    fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Runs a function on a thread that may block.
pub fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    let result = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&result);
    let work = move || {
        let done = work();
        *kept.lock() = Some(done);
    };
    Blocking { running: Running::new(Box::new(work)), result }
}

impl<T> Future for Blocking<T> {
    type Output = Result<T, BlockingError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match Pin::new(&mut self.running).poll(context) {
            Poll::Ready(Ok(())) => Poll::Ready(self.result.lock().take().ok_or(BlockingError::Panicked)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Running {
    fn new(work: Box<dyn FnOnce() + Send>) -> Self {
        let (sender, answer) = oneshot::channel();
        let turn = Arc::<Turn>::default();
        let run = move || {
            // An error only means that nobody waits any more.
            let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
        };
        let has_failed = !start(Arc::clone(&turn), Box::new(run)) && turn.take();
        Self { answer, turn, has_failed, deadline: None }
    }
}

/// Hands a function to the runtime. Returns false if that failed; then the function may still be in its queue.
fn start(turn: Arc<Turn>, run: Box<dyn FnOnce() + Send>) -> bool {
    let in_turn = move || {
        if turn.take() {
            run();
        }
    };
    catch_unwind(AssertUnwindSafe(|| drop(tokio::task::spawn_blocking(in_turn)))).is_ok()
}

impl Future for Running {
    type Output = Result<(), BlockingError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.has_failed {
            return Poll::Ready(Err(BlockingError::NoThread));
        }
        match Pin::new(&mut self.answer).poll(context) {
            Poll::Ready(Ok(done)) => return Poll::Ready(done.map_err(|_| BlockingError::Panicked)),
            Poll::Ready(Err(_)) => return Poll::Ready(Err(BlockingError::Stopping)),
            Poll::Pending if self.turn.is_taken() => return Poll::Pending,
            Poll::Pending => {}
        }
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(START_TIMEOUT)));
        match deadline.as_mut().poll(context) {
            Poll::Ready(()) if self.turn.take() => Poll::Ready(Err(BlockingError::NoThread)),
            // It has begun; its end wakes this task.
            Poll::Ready(()) | Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;

    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn the_result_of_a_function_is_returned_and_a_panic_is_an_error() {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            assert_eq!(spawn_blocking(|| 1 + 1).await, Ok(2));
            let panicked = spawn_blocking(|| -> u32 { panic!("on purpose") }).await;
            assert_eq!(panicked, Err(BlockingError::Panicked));
        });
    }

    // A back-up stayed in the state "running" for ever when the system had no thread for it.
    #[test]
    fn a_function_without_a_thread_is_an_error_and_does_not_run_later() {
        let runtime = Builder::new_current_thread().enable_time().max_blocking_threads(1).build().unwrap();
        let n_runs = Arc::new(AtomicUsize::new(0));
        let (release, released) = mpsc::channel::<()>();
        runtime.block_on(async {
            let busy = spawn_blocking(move || released.recv());
            let of_second = Arc::clone(&n_runs);
            let second = spawn_blocking(move || of_second.fetch_add(1, Ordering::SeqCst));
            assert_eq!(second.await, Err(BlockingError::NoThread));
            release.send(()).unwrap();
            assert_eq!(busy.await, Ok(Ok(())));
            let of_third = Arc::clone(&n_runs);
            assert_eq!(spawn_blocking(move || of_third.fetch_add(1, Ordering::SeqCst)).await, Ok(0));
        });
    }

    #[test]
    fn a_runtime_that_panics_instead_of_starting_a_thread_is_an_error() {
        let started = spawn_blocking(|| ());
        // Outside of a runtime, its function panics.
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        assert_eq!(runtime.block_on(started), Err(BlockingError::NoThread));
    }
}
