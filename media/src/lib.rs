//! The bytes: transport stream packets on their way from one upstream to many viewers.
//!
//! One *pump* per live channel reads a *source*, carries it through the *splice* and writes *chunks* into a
//! *ring*; every viewer reads the ring through a *tail* of its own. Nothing here knows a channel, a user or an
//! account, nothing here spawns a task by itself, and no packet waits for a disk or a mailbox.
//!
//! Reading order: [`ts`] (packets), [`chunk`] (runs of packets), [`ring`] and [`join_point`] (who reads from where),
//! [`source`], [`splice`] and [`pump`] (how packets get in). [`sample`] measures a source that nobody watches.
//! The HTTP crate uses only the items that are re-exported here.

pub mod chunk;
pub mod clip;
pub mod closer;
pub mod dial;
pub mod error;
pub mod join_point;
pub mod meter;
pub mod pump;
pub mod ring;
pub mod sample;
pub mod source;
pub mod splice;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod ts;

pub use crate::clip::{Clip, ClipError, ClipPlayer};
pub use crate::dial::{Dial, DialSettings, TcpDial};
pub use crate::meter::{Connection, ConnectionMeter, TailMeter};
pub use crate::ring::{EndReason, RingSettings, Tail};
pub use crate::source::find_program;
#[cfg(any(test, feature = "testing"))]
pub use crate::testing::MemoryDial;

/// The right to keep one upstream connection open.
///
/// Whoever holds the socket holds the permit; it goes back by `Drop`, after the socket is gone, on every way out.
pub trait Permit: Send + 'static {
    /// The connection is being closed: the permit comes back soon.
    fn closing(&mut self);
}
