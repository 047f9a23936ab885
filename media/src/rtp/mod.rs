//! RTP with a transport stream inside (RFC 3550, RFC 2250): the header, and the order of received packets.

mod header;
mod sequence;

pub use self::header::{PAYLOAD_TYPE_TS, RTP_HEADER_BYTES, RtpHeader, write_header};
pub use self::sequence::{
    REORDER_BYTES_MAX, REORDER_PACKETS_MAX, REORDER_TIME_MAX, RtpCounts, RtpSequence, SENDER_SILENCE,
};
