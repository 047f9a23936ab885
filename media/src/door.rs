//! What the HTTP side may use of the bytes: reading a tail, one accepted connection, how we dial, which programs there
//! are, and a clip for the demonstration. Packets, rings and sources stay inside.

pub use crate::clip::{Clip, ClipError, ClipPlayer};
pub use crate::dial::{Dial, DialSettings, TcpDial};
pub use crate::meter::{Connection, ConnectionMeter, TailMeter};
pub use crate::ring::{End, RingSettings, Tail};
pub use crate::source::find_program;
#[cfg(any(test, feature = "testing"))]
pub use crate::testing::MemoryDial;
