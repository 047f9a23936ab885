//! Measures, once a second: reads every meter and the pumps' clocks, calls a channel slow and a client stalled.
//!
//! What is measured is owned by the system's registry, so a restarted Bandwidth goes on where its predecessor died.

mod actor;
mod message;
#[cfg(test)]
mod tests;

pub(crate) use self::actor::{Actor, Arguments};
pub(crate) use self::message::{ChannelPort, ClientPort, Message, Slow, Stalled};
