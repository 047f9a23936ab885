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
use std::sync::Arc;

pub(crate) use self::actor::{Actor, State};
pub(crate) use self::message::Message;
use ractor::ActorRef;

use crate::seats::Seat;

/// Lives inside a tail; its end tells the client that the player left, and returns the seat.
struct Departure {
    client: ActorRef<Message>,
    seat: Option<Arc<Seat>>,
}

impl Drop for Departure {
    fn drop(&mut self) {
        let why = self.seat.as_ref().and_then(|it| it.why_ended());
        // A client that ended first knows already.
        let _ = self.client.cast(Message::Left(why.unwrap_or("its stream was closed")));
    }
}

/// The guard to put into the tail of this client. The seat is taken as long as the tail is there.
pub(crate) fn departure(client: ActorRef<Message>, seat: Option<Arc<Seat>>) -> Box<dyn Any + Send + Sync> {
    Box::new(Departure { client, seat })
}
