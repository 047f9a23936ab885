//! Tasks beside the actors: what has no mailbox, and is needed all the same.

#[cfg(test)]
mod tests;

use std::time::Duration;

use ractor::{ActorRef, Message};
use tokio::task::JoinError;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;
use tracing::error;

/// Between a death and the next life: one that cannot live costs a line of the log a second, and no more.
pub(crate) const RESPAWN_DELAY: Duration = Duration::from_secs(1);

/// A task that begins anew when it dies, and ends when it is done or when this is dropped.
pub(crate) struct RespawnedTask {
    _keeper: AbortOnDropHandle<()>,
    #[cfg(any(test, feature = "testing"))]
    now: std::sync::Arc<parking_lot::Mutex<Option<tokio::task::AbortHandle>>>,
}

/// Keeps what `begin` makes running on the current runtime. `begin` is called for each life, and brings with it all
/// that a life needs: what the one before knew is lost.
pub(crate) fn respawn<F>(name: &'static str, mut begin: impl FnMut() -> F + Send + 'static) -> RespawnedTask
where
    F: Future<Output = ()> + Send + 'static,
{
    #[cfg(any(test, feature = "testing"))]
    let now = std::sync::Arc::new(parking_lot::Mutex::new(None));
    #[cfg(any(test, feature = "testing"))]
    let shown = now.clone();
    let keeper = tokio::spawn(async move {
        loop {
            let life = AbortOnDropHandle::new(tokio::spawn(begin()));
            #[cfg(any(test, feature = "testing"))]
            shown.lock().replace(life.abort_handle());
            let Err(death) = life.await else { return };
            error!(task = name, "a task ended and begins anew: {}", how(death));
            sleep(RESPAWN_DELAY).await;
        }
    });
    RespawnedTask {
        _keeper: AbortOnDropHandle::new(keeper),
        #[cfg(any(test, feature = "testing"))]
        now,
    }
}

impl RespawnedTask {
    /// Ends this life at its next await, as a defect in it would.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn kill(&self) {
        if let Some(life) = &*self.now.lock() {
            life.abort();
        }
    }
}

/// How a task died, in words.
fn how(death: JoinError) -> String {
    let Ok(panic) = death.try_into_panic() else { return "it was aborted".to_owned() };
    let said = panic.downcast_ref::<String>().cloned();
    said.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()))
        .unwrap_or_else(|| "it panicked".to_owned())
}

/// Runs a task that an actor cannot do without: should it end, the actor ends too, and whoever supervises the actor
/// starts both again. It ends with what is returned.
pub(crate) fn linked<M: Message>(
    actor: &ActorRef<M>,
    task: impl Future<Output = ()> + Send + 'static,
) -> AbortOnDropHandle<()> {
    /// Also when the task panics.
    struct Last<M>(ActorRef<M>);
    impl<M> Drop for Last<M> {
        fn drop(&mut self) {
            self.0.stop(Some("a task of it ended".to_owned()));
        }
    }
    let last = Last(actor.clone());
    AbortOnDropHandle::new(tokio::spawn(async move {
        let _last = last;
        task.await;
    }))
}
