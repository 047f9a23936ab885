//! Background tasks that are not actors.

#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::time::Duration;

use ractor::{ActorRef, Message};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::task::AbortOnDropHandle;
use tracing::error;

/// Delay before a failed task is started again. It limits a task that always fails to one log line per second.
pub(crate) const RESPAWN_DELAY: Duration = Duration::from_secs(1);

/// Runs a future as a task of its own. The future is boxed: what the runtime does with a task exists once for each type of
/// result, and not once for each future. Tasks that run for each chunk of each viewer do without this.
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    spawn_boxed(Box::pin(future))
}

fn spawn_boxed<T: Send + 'static>(future: Pin<Box<dyn Future<Output = T> + Send>>) -> JoinHandle<T> {
    tokio::spawn(future)
}

/// A task that is restarted when it dies. It ends when it returns, or when this value is dropped.
pub(crate) struct RespawnedTask {
    _keeper: AbortOnDropHandle<()>,
    #[cfg(any(test, feature = "testing"))]
    now: std::sync::Arc<parking_lot::Mutex<Option<tokio::task::AbortHandle>>>,
}

/// Runs the future that `begin` returns on the current runtime, and restarts it when it panics. `begin` is called for
/// each run and provides everything that a run needs; the state of the previous run is lost.
pub(crate) fn respawn<F>(name: &'static str, mut begin: impl FnMut() -> F + Send + 'static) -> RespawnedTask
where
    F: Future<Output = ()> + Send + 'static,
{
    respawn_boxed(name, Box::new(move || Box::pin(begin())))
}

type BeginTask = Box<dyn FnMut() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

fn respawn_boxed(name: &'static str, mut begin: BeginTask) -> RespawnedTask {
    #[cfg(any(test, feature = "testing"))]
    let now = std::sync::Arc::new(parking_lot::Mutex::new(None));
    #[cfg(any(test, feature = "testing"))]
    let shown = now.clone();
    let keeper = spawn(async move {
        loop {
            let life = AbortOnDropHandle::new(tokio::spawn(begin()));
            #[cfg(any(test, feature = "testing"))]
            shown.lock().replace(life.abort_handle());
            let Err(death) = life.await else { return };
            error!(task = name, "task failed and is restarted: {}", panic_text(death));
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
    /// Aborts the current run at its next await, as a defect in it would.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn kill(&self) {
        if let Some(life) = &*self.now.lock() {
            life.abort();
        }
    }
}

/// Returns the panic message of a task.
fn panic_text(death: JoinError) -> String {
    let Ok(panic) = death.try_into_panic() else { return "it was aborted".to_owned() };
    let said = panic.downcast_ref::<String>().cloned();
    said.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()))
        .unwrap_or_else(|| "it panicked".to_owned())
}

/// Sends this message to an actor at once and again after each `period`, until the returned handle is dropped. If one is
/// sent late, those after it are late too.
pub(crate) fn ticks<M: Message>(
    actor: &ActorRef<M>,
    period: Duration,
    message: impl Fn() -> M + Send + 'static,
) -> AbortOnDropHandle<()> {
    let to = actor.clone();
    linked(actor, async move {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if to.cast(message()).is_err() {
                return;
            }
        }
    })
}

/// Runs a task that an actor depends on. If the task ends, the actor ends too, and the supervisor of the actor restarts
/// both. The task ends when the returned handle is dropped.
pub(crate) fn linked<M: Message>(
    actor: &ActorRef<M>,
    task: impl Future<Output = ()> + Send + 'static,
) -> AbortOnDropHandle<()> {
    linked_boxed(actor.clone(), Box::pin(task))
}

fn linked_boxed<M: Message>(
    actor: ActorRef<M>,
    task: Pin<Box<dyn Future<Output = ()> + Send>>,
) -> AbortOnDropHandle<()> {
    /// Stops the actor on drop, so also after a panic.
    struct StopOnDrop<M>(ActorRef<M>);
    impl<M> Drop for StopOnDrop<M> {
        fn drop(&mut self) {
            self.0.stop(Some("one of its tasks ended".to_owned()));
        }
    }
    let guard = StopOnDrop(actor);
    AbortOnDropHandle::new(spawn(async move {
        let _guard = guard;
        task.await;
    }))
}
