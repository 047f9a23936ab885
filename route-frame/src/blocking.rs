//! Functions that block, on a thread where they may.

use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use server::reply::Refusal;
use tokio::task::{JoinHandle, spawn_blocking};

/// Runs a function on a thread that may block. `what` completes "failed to …", for the log if the function panics. The
/// function runs to its end even if the future is dropped.
pub fn run_blocking<R: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> R + Send + 'static,
) -> impl Future<Output = Result<R, Refusal>> + Send {
    let result = Arc::new(Mutex::new(None));
    let stored = Arc::clone(&result);
    let work = spawn(Box::new(move || {
        let result = work();
        *stored.lock() = Some(result);
    }));
    take(what, work, result)
}

/// Starts every function in the same way, so that only storing its result is compiled for each.
fn spawn(work: Box<dyn FnOnce() + Send>) -> JoinHandle<()> {
    spawn_blocking(work)
}

async fn take<R>(
    what: &'static str,
    work: JoinHandle<()>,
    result: Arc<Mutex<Option<R>>>,
) -> Result<R, Refusal> {
    let ended = work.await;
    let result = result.lock().take();
    result.ok_or_else(|| match ended {
        Ok(()) => Refusal::fault(what),
        Err(error) => Refusal::fault(format_args!("{what}: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[tokio::test]
    async fn the_result_of_a_function_is_returned_and_a_panic_is_a_fault() {
        assert_eq!(run_blocking("add", || 1 + 1).await.unwrap(), 2);
        let panicked = run_blocking("divide", || -> u32 { panic!("on purpose") }).await.unwrap_err();
        assert_eq!(panicked.reason().0, StatusCode::INTERNAL_SERVER_ERROR);
    }
}
