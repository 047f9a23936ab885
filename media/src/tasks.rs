//! Tasks in the background.

use std::pin::Pin;

use tokio::task::JoinHandle;

/// Runs a future as a task of its own. The future is boxed: what the runtime does with a task exists once for each type of
/// result, and not once for each future. Tasks that run for each chunk of each viewer do without this.
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    spawn_boxed(Box::pin(future))
}

fn spawn_boxed<T: Send + 'static>(future: Pin<Box<dyn Future<Output = T> + Send>>) -> JoinHandle<T> {
    tokio::spawn(future)
}
