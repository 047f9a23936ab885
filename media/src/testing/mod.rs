//! The other side of the wire, for tests under paused time.
//!
//! Dramatis personae: the [`MemoryDial`], which connects to whoever is registered; the [`MemoryProvider`],
//! which counts the sockets that it sees and behaves or misbehaves as told; the [`TsSource`], which makes a
//! transport stream that names itself; the [`TsReader`], which holds what a viewer gets against the standard and
//! the clock; and the [`TestPermit`], which says when it came back.
//!
//! Paused time and real sockets do not go together, so everything here is made of in-memory pairs.

mod permit;
mod provider;
mod reader;
mod socket;
mod ts;

pub use self::permit::{PermitCount, TestPermit};
pub use self::provider::{
    Behaviour, Break, MemoryDial, MemoryProvider, Play, Reachability, ResponseHead, SeenRequest,
};
pub use self::reader::TsReader;
pub use self::ts::{TsSource, TsStream, labels_in};
