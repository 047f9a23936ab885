//! Devices at portals: their tokens, and the questions that they ask.
//!
//! A portal ends the session of a device when the same MAC address shakes hands again, so everything that asks for a
//! device shares one session: refreshes, live channels and what tells the portal that the device is on. A question that is
//! refused leads to one new handshake; [`domain::portal::SessionTimes`] decides when there is none.
//!
//! Sessions are in memory. After a restart a device shakes hands once.

mod client;
mod link;
mod pages;
pub(crate) mod session;
#[cfg(test)]
mod tests;

pub(crate) use self::client::{PortalClient, PortalFailure, PortalRequest};
pub use self::link::PortalLink;
pub(crate) use self::pages::{PAGE_PAUSE, Pages, items_of};
