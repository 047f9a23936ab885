//! Functions that block, on a thread where they may.

use media::{BlockingError, spawn_blocking};
use server::reply::Refusal;

/// Runs a function on a thread that may block. `what` completes "failed to …", for the log if the function panics. The
/// function runs to its end even if the future is dropped.
///
/// # Errors
/// The function panicked, or the system has no thread for it.
pub fn run_blocking<R: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> R + Send + 'static,
) -> impl Future<Output = Result<R, Refusal>> + Send {
    let done = spawn_blocking(work);
    async move { done.await.map_err(|error| refusal(what, error)) }
}

fn refusal(what: &'static str, error: BlockingError) -> Refusal {
    match error {
        BlockingError::Panicked => Refusal::fault(format_args!("{what}: {error}")),
        BlockingError::NoThread | BlockingError::Stopping => {
            tracing::warn!("failed to {what}: {error}");
            Refusal::unavailable(format!("The gateway cannot {what} now, because {error}.")).retry_soon()
        }
    }
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

    #[test]
    fn a_function_without_a_thread_may_be_tried_again() {
        let refused = refusal("list the back-ups", BlockingError::NoThread);
        assert!(refused.is(StatusCode::SERVICE_UNAVAILABLE));
        assert!(refused.to_string().starts_with("The gateway cannot list the back-ups now"), "{refused}");
    }
}
