//! One client that watches a live channel.
//!
//! The actor makes decisions; the tail carries the packets, and the actor sleeps while bytes flow. The actor ends when
//! its tail is dropped. It disconnects the client by cancelling the connection: a stream whose socket is full does not
//! read its tail, so closing the connection is the only way.

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

/// A guard inside a tail. Its drop reports to the client actor that the player left, and releases the seat.
struct Departure {
    client: ActorRef<Message>,
    seat: Option<Arc<Seat>>,
}

impl Drop for Departure {
    fn drop(&mut self) {
        let why = self.seat.as_ref().and_then(|it| it.why_ended());
        // The cast fails if the client actor ended first.
        let _ = self.client.cast(Message::Left(why.unwrap_or("its stream was closed")));
    }
}

/// Creates the guard for the tail of a client. The seat is held as long as the tail exists.
pub(crate) fn departure(client: ActorRef<Message>, seat: Option<Arc<Seat>>) -> Box<dyn Any + Send + Sync> {
    Box::new(Departure { client, seat })
}
