//! The identity of a live channel and its links to other actors.

use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;
use tokio_util::task::AbortOnDropHandle;

use crate::channel::{ChannelReport, LiveEnv, Message};
use crate::plans::Target;

/// The identity of a live channel and its links to other actors; does not change during its life.
pub(super) struct Context {
    pub(super) env: Arc<LiveEnv>,
    pub(super) target: Target,
    /// Number of this live channel; never reused.
    pub(super) serial: u64,
    pub(super) report: Box<dyn Fn(ChannelReport) + Send + Sync>,
    pub(super) myself: ActorRef<Message>,
}

impl Context {
    /// Sends `message` to this channel after `delay`, unless the returned handle is dropped first.
    pub(super) fn after(&self, delay: Duration, message: Message) -> AbortOnDropHandle<()> {
        let myself = self.myself.clone();
        AbortOnDropHandle::new(crate::tasks::spawn(async move {
            tokio::time::sleep(delay).await;
            let _ = myself.cast(message);
        }))
    }
}

/// Sends a message when it is dropped, so that a task that ends unexpectedly is noticed even after a panic.
pub(super) struct DropAlarm {
    to: ActorRef<Message>,
    message: Option<Message>,
}

impl DropAlarm {
    pub(super) fn new(to: ActorRef<Message>, message: Message) -> Self {
        Self { to, message: Some(message) }
    }

    pub(super) fn disarm(&mut self) {
        self.message = None;
    }
}

impl Drop for DropAlarm {
    fn drop(&mut self) {
        if let Some(message) = self.message.take() {
            let _ = self.to.cast(message);
        }
    }
}
