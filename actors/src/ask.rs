//! Requests with a deadline, to actors that may be restarted meanwhile.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use ractor::{ActorRef, Message, RpcReplyPort};
use tokio::sync::oneshot;

/// Maximum wait for any reply (except for a join and a manual switch). An actor that takes longer is stuck, not slow.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Delay before a request is repeated to an actor that is being restarted.
const RESTART_PATIENCE: Duration = Duration::from_millis(100);

/// Reason why a request got no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The actor did not reply within the deadline.
    #[error("the gateway did not answer in time")]
    Timeout,
    /// The actor ended and was not restarted, because the gateway is stopping.
    #[error("the gateway is stopping")]
    Gone,
}

/// The address of an actor that may be restarted: the address stays the same, and refers to the current actor.
pub(crate) struct Address<M> {
    current: Arc<RwLock<Option<ActorRef<M>>>>,
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        Self { current: self.current.clone() }
    }
}

impl<M: Message> Address<M> {
    /// Creates an address without an actor.
    pub(crate) fn new() -> Self {
        Self { current: Arc::new(RwLock::new(None)) }
    }

    /// Sets the actor that receives messages from now on.
    pub(crate) fn set(&self, actor: ActorRef<M>) {
        *self.current.write() = Some(actor);
    }

    /// Returns the current actor.
    pub(crate) fn current(&self) -> Option<ActorRef<M>> {
        self.current.read().clone()
    }

    /// Sends a message without waiting. The message is lost if the actor is dead; a caller that has to know this uses
    /// [`Self::ask`].
    pub(crate) fn tell(&self, message: M) {
        if let Some(actor) = self.current() {
            // The successor of a dead actor reads its state from values that outlive it; losing the message is part of
            // the failure.
            let _ = actor.cast(message);
        }
    }

    /// Sends a request and waits for the reply, at most for `timeout`. A request that was lost with a dying actor is
    /// repeated once to its successor.
    pub(crate) async fn ask<R: Send + 'static>(
        &self,
        timeout: Duration,
        message: impl Fn(RpcReplyPort<R>) -> M,
    ) -> Result<R, AskError> {
        let asking = async {
            for last in [false, true] {
                let (tx, rx) = oneshot::channel();
                let sent = self.current().is_some_and(|actor| actor.cast(message(tx.into())).is_ok());
                if sent && let Ok(answer) = rx.await {
                    return Ok(answer);
                }
                if !last {
                    tokio::time::sleep(RESTART_PATIENCE).await;
                }
            }
            Err(AskError::Gone)
        };
        tokio::time::timeout(timeout, asking).await.map_err(|_| AskError::Timeout)?
    }
}

/// Sends a reply. If the caller no longer waits, the reply is dropped, and its drop releases what it holds.
pub(crate) fn answer<R>(reply: RpcReplyPort<R>, value: R) {
    let _ = reply.send(value);
}
