//! Restarts the gateway without a refused connection: a new process gets the listening sockets of the old one.
//!
//! ```text
//!   old process                                   new process
//!   starts it, standard input: a socket ────────▶ reads its arguments and its configuration
//!   Listeners, with the sockets ────────────────▶ binds what has changed
//!   ◀──────────────────────────────────────────── Prepared, or Failed: then the old one continues
//!   accepts no connection, ends all but the
//!   live channels with viewers, closes the store
//!   Slot, for each connection to a provider ────▶ counts it as in use
//!   Membership, in a cluster ───────────────────▶ keeps this incarnation valid
//!   Go ─────────────────────────────────────────▶ opens the store, starts, accepts
//!   ◀──────────────────────────────────────────── Ready
//!   serves its viewers, passes signals on ◀────── Ring: reads a channel of the old process
//!   keeps its leases until then ◀──────────────── Prolonged, after each renewal in the cluster
//!   Returned, after the last viewer of a channel ▶ opens the channel itself
//!   becomes the parent: waits for its end
//! ```
//!
//! Connections that arrive between the two wait in the queue of the kernel, because a process always holds the sockets.
//! A new process that fails before `Prepared` changes nothing. One that fails after `Go` is replaced by a process of the old
//! binary, which gets the same sockets. One that fails after `Ready` ends the gateway.
//!
//! The *parent* is the old process after it has replaced itself by a small one of the same id ([`run_parent`]): at once if
//! nobody watches, otherwise when the last viewer has left or the time for it is over. So whatever started the gateway, a
//! service manager, a container or a shell, still sees the process that it knows, and no store, no lock and no memory of
//! the old gateway is left. Every file is closed by that, apart from the sockets in the last message.
//!
//! Two processes never exceed the limit of a provider: the old one keeps the slots that it has when it closes the store and
//! gets no others, and the new one counts them until they are returned. The end of the channel between them returns all.
//!
//! In a cluster, the slots of the old process stay in the tables that all nodes see. It renews its membership no more, and
//! closes their connections at the deadline that it knows from the new process: see `domain::cluster::predecessor`.
//!
//! Reading order: `channel.rs` (messages), `old.rs`, `draining.rs` (both processes run), `parent.rs`, `new.rs`.

mod channel;
mod draining;
mod listeners;
mod new;
mod old;
mod parent;
#[cfg(test)]
mod tests;

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

pub use self::draining::{BesideEnd, serve_beside};
pub use self::listeners::Listeners;
pub use self::new::TakeOver;
pub use self::old::{Invocation, Prepared, prepare};
pub use self::parent::{is_parent, run_parent};

/// Restarts that may wait for the one that is being prepared.
const REQUESTS_MAX: usize = 4;

/// Longest wait until the reply to a request has reached the operator, before the control socket closes.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// A request to restart.
#[derive(Debug)]
pub struct RestartRequest {
    reply: oneshot::Sender<Result<(), String>>,
    /// Dropped when the reply has reached the operator.
    delivered: oneshot::Receiver<()>,
}

/// The other end of a request. Kept until the reply has reached the operator.
#[derive(Debug)]
pub(crate) struct RestartReply {
    outcome: oneshot::Receiver<Result<(), String>>,
    _delivered: oneshot::Sender<()>,
}

impl RestartRequest {
    pub(crate) fn new() -> (Self, RestartReply) {
        let ((reply, outcome), (sender, delivered)) = (oneshot::channel(), oneshot::channel());
        (Self { reply, delivered }, RestartReply { outcome, _delivered: sender })
    }

    /// Replies whether the new process is prepared, and waits until the operator has the reply.
    pub async fn reply(self, outcome: Result<(), String>) {
        if self.reply.send(outcome).is_ok() {
            // Both outcomes mean that nobody waits any more.
            let _ = timeout(REPLY_TIMEOUT, self.delivered).await;
        }
    }
}

impl RestartReply {
    /// Waits for the outcome.
    ///
    /// # Errors
    /// The reason why the gateway does not restart.
    pub(crate) async fn outcome(&mut self) -> Result<(), String> {
        (&mut self.outcome).await.unwrap_or_else(|_| Err("the gateway is stopping".to_owned()))
    }
}

/// Where requests to restart are sent to.
pub(crate) type RestartRequests = mpsc::Sender<RestartRequest>;

/// Creates both ends of the queue of requests.
pub(crate) fn requests() -> (RestartRequests, mpsc::Receiver<RestartRequest>) {
    mpsc::channel(REQUESTS_MAX)
}
