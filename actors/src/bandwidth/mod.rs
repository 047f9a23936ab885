//! Reads every meter and the clocks of the pumps once a second; reports slow sources and stalled clients.
//!
//! The measurements belong to the system's registry, so a restarted actor continues where its predecessor died.

mod actor;
mod message;
#[cfg(test)]
mod tests;

pub(crate) use self::actor::{Actor, Arguments};
pub(crate) use self::message::Message;
