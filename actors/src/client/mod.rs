//! One client that watches a live channel.
//!
//! The actor makes decisions; the tail carries the packets, and the actor sleeps while bytes flow. The actor ends when
//! its tail is dropped. It disconnects the client by cancelling the connection: a stream whose socket is full does not
//! read its tail, so closing the connection is the only way.

mod actor;
mod message;
mod meter;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use self::actor::{Actor, State};
pub(crate) use self::message::Message;
pub(crate) use self::meter::ClientMeter;
pub use self::meter::SegmentMeter;
use ractor::ActorRef;

use crate::seats::Seat;

/// A guard inside of what a client reads from. Its drop reports to the client actor that the player left, and releases
/// the seat.
pub(crate) struct Departure {
    client: ActorRef<Message>,
    seat: Option<Arc<Seat>>,
}

impl Departure {
    pub(crate) fn new(client: ActorRef<Message>, seat: Option<Arc<Seat>>) -> Self {
        Self { client, seat }
    }

    /// Returns why the gateway ended the session of the user, if it did.
    pub(crate) fn why_ended(&self) -> Option<&'static str> {
        self.seat.as_ref().and_then(|it| it.why_ended())
    }
}

impl Drop for Departure {
    fn drop(&mut self) {
        // The cast fails if the client actor ended first.
        let _ = self.client.cast(Message::Left(self.why_ended().unwrap_or("its stream was closed")));
    }
}
