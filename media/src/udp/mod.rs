//! Datagrams with transport stream packets: the interfaces of the machine, and the sender of a channel. The receiver is a
//! [source](crate::source).

mod interface;
mod schedule;
mod sender;

pub use self::interface::{Interface, InterfaceError};
pub use self::schedule::{DatagramSchedule, PACKETS_PER_DATAGRAM, SCHEDULE_BYTES_MAX};
pub use self::sender::{DatagramSender, SendFormat, SendTarget};
