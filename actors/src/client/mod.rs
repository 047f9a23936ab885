//! One watching client.
//!
//! The actor decides, its tail carries: packets never pass here, and the actor sleeps while bytes flow. It ends when
//! its tail is dropped, or ends the client by cancelling the connection (a body whose socket is full is never
//! polled, so that closing the connection is the only way).

mod actor;
mod message;
#[cfg(test)]
mod tests;

use std::any::Any;

pub(crate) use actor::{Actor, Arguments};
pub(crate) use message::Message;
use ractor::ActorRef;

/// Lives inside a tail; its end tells the client that the player left.
struct Departure(ActorRef<Message>);

impl Drop for Departure {
    fn drop(&mut self) {
        // A client that ended first knows already.
        let _ = self.0.cast(Message::Left);
    }
}

/// The guard to put into the tail of this client.
pub(crate) fn departure(client: ActorRef<Message>) -> Box<dyn Any + Send + Sync> {
    Box::new(Departure(client))
}
