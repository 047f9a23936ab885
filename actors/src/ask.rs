//! Questions with a deadline, to actors that may be restarted meanwhile.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use ractor::{ActorRef, Message, RpcReplyPort};
use tokio::sync::oneshot;

/// Longest wait for any answer (a join and a manual switch apart). An actor that takes longer is stuck, not slow.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a question waits for an actor that is being restarted before it is sent once more.
const RESTART_PATIENCE: Duration = Duration::from_millis(100);

/// Why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// No answer within the deadline.
    #[error("no answer in time")]
    Timeout,
    /// The actor is gone and was not restarted; the gateway is stopping.
    #[error("the gateway is stopping")]
    Gone,
}

/// The address of an actor that may be restarted: the address stays, who lives there changes.
pub(crate) struct Address<M> {
    current: Arc<RwLock<Option<ActorRef<M>>>>,
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        Self { current: self.current.clone() }
    }
}

impl<M: Message> Address<M> {
    /// A door nobody lives behind yet.
    pub(crate) fn new() -> Self {
        Self { current: Arc::new(RwLock::new(None)) }
    }

    /// From now on messages go to this actor.
    pub(crate) fn set(&self, actor: ActorRef<M>) {
        *self.current.write() = Some(actor);
    }

    /// Who lives behind the door now.
    pub(crate) fn current(&self) -> Option<ActorRef<M>> {
        self.current.read().clone()
    }

    /// Tells, and waits for nothing. The message is lost when the actor is dead; whoever must know of that asks.
    pub(crate) fn tell(&self, message: M) {
        if let Some(actor) = self.current() {
            // A dead actor is restarted with what it must know; a lost message is part of its death.
            let _ = actor.cast(message);
        }
    }

    /// Asks, at most for `timeout`. A question lost with a dying actor is sent once more to its successor.
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

/// Answers whoever is still there. An answer nobody waits for is dropped, and what it holds cleans up after itself.
pub(crate) fn answer<R>(reply: RpcReplyPort<R>, value: R) {
    let _ = reply.send(value);
}
