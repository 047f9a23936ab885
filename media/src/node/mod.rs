//! Carries the ring of a live channel from one process to another, with the numbers and the heads of its chunks.
//!
//! The *origin* has the upstream and the ring; [`server`] answers requests for it. The *edge* has a ring of its own that
//! a pump fills from [`source::node`](crate::source). Both rings have the same chunks with the same numbers, so what is
//! derived from them is the same. The stream between them may be any that carries HTTP/1.1: a Unix socket, TLS.
//!
//! ```text
//!   GET /node/v1/ring/TARGET?after=EPOCH.SEQUENCE HTTP/1.1
//!
//!   200   Content-Type: application/vnd.headwater.ring     a prologue and frames, until the ring ends
//!   400   the request is not understood                    404   the target does not play here
//!   409   the ring has not reached that chunk              505   the version is not 1
//! ```
//!
//! `after` is optional: the last chunk that the edge has. If the origin still stores the next one, the frames begin with
//! it, otherwise with the newest random-access point. The *epoch* is the number of the life of a ring. Positions of
//! different epochs are not related, unless the origin has taken over: then its ring continues that of the epoch before,
//! up to the last chunk that it got of it. If the ring of the origin contains the chunk `after`, or contained it, the
//! response has the header `Ring-After` with the same value: the numbers that follow are those of the same ring.
//!
//! # Frames
//!
//! All numbers are unsigned and big-endian. The body begins with a prologue of 16 bytes:
//!
//! | Bytes | Content |
//! |---|---|
//! | 4 | `HWRG` |
//! | 1 | version, 1 |
//! | 3 | zero |
//! | 8 | epoch |
//!
//! Each frame has a head of 5 bytes, the kind (1) and the length of its content (4), and the content:
//!
//! | Kind | Content |
//! |---|---|
//! | 1, chunk | number (8), age in µs (4), flags (1), the fields that the flags announce, counters, packets |
//! | 2, alive | nothing; sent when no chunk was sent for a second |
//! | 3, skip | lost bytes (8): the reader was too slow, and the next chunk starts at a random-access point |
//! | 4, end | reason (1), its text in UTF-8 (0 to 512); nothing follows |
//!
//! | Flag of a chunk | Meaning |
//! |---|---|
//! | 0x01 | the first packet starts a random-access point |
//! | 0x02 | packets are missing before it, or a new source starts with it |
//! | 0x04 | it contains only null packets |
//! | 0x08 | the programme clock before it follows: ticks of 27 MHz, unwrapped (8) |
//! | 0x10 | tables are in force before it: those of the last frame that had tables, unless 0x20 is set |
//! | 0x20 | these tables follow: length (2) and section of the PAT, PID of the PMT (2), length (2) and section of the PMT |
//!
//! Counters: their number (2), then for each PID in ascending order the PID (2) and the last continuity counter before
//! the chunk (1). Packets: 1 to 348 packets of 188 bytes. The number of a chunk is that of the chunk before it plus one,
//! except after a skip, where it is any higher number.
//!
//! A decoder refuses everything else: an error ends the connection.

mod body;
mod decode;
mod encode;
mod server;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

pub use self::decode::{FrameDecoder, FrameError};
pub use self::encode::FrameEncoder;
pub(crate) use self::server::is_target;
pub use self::server::{
    FoundRing, NodeMeter, RingDirectory, RingProgress, RingReply, answer_ring, serve_rings,
};
use crate::chunk::Chunk;
use crate::ring::EndReason;

/// The version of the format.
pub const RING_FORMAT_VERSION: u8 = 1;
/// The content type of a response with frames.
pub(crate) const RING_CONTENT_TYPE: &str = "application/vnd.headwater.ring";
/// The header that confirms the position of the edge.
pub(crate) const RING_AFTER: &str = "ring-after";
/// The path before the target.
pub const RING_PATH: &str = "/node/v1/ring/";
/// Longest target in a request.
pub(crate) const TARGET_BYTES_MAX: usize = 256;

const MAGIC: [u8; 4] = *b"HWRG";
const PROLOGUE_BYTES: usize = 16;
const FRAME_HEAD_BYTES: usize = 5;
/// Maximum length of the content of a frame: the longest chunk, two sections and the counters of all PIDs.
const FRAME_BYTES_MAX: usize = 100 * 1024;
/// Maximum length of the text of an end.
const END_TEXT_BYTES_MAX: usize = 512;

const KIND_CHUNK: u8 = 1;
const KIND_ALIVE: u8 = 2;
const KIND_SKIP: u8 = 3;
const KIND_END: u8 = 4;

const FLAG_RANDOM_ACCESS: u8 = 0x01;
const FLAG_DISCONTINUITY: u8 = 0x02;
const FLAG_FILLER: u8 = 0x04;
const FLAG_PROGRAMME_TIME: u8 = 0x08;
const FLAG_TABLES: u8 = 0x10;
const FLAG_NEW_TABLES: u8 = 0x20;
const FLAGS: u8 = 0x3F;

/// A chunk of a ring, by the life of the ring and the number of the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RingPosition {
    /// The life of the ring.
    pub epoch: u64,
    /// The number of the chunk.
    pub sequence: u64,
}

impl fmt::Display for RingPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.sequence)
    }
}

/// The text is not `EPOCH.SEQUENCE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected EPOCH.SEQUENCE")]
pub struct PositionError;

impl FromStr for RingPosition {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
            if is_number { text.parse().map_err(|_| PositionError) } else { Err(PositionError) }
        };
        let (epoch, sequence) = text.split_once('.').ok_or(PositionError)?;
        Ok(Self { epoch: number(epoch)?, sequence: number(sequence)? })
    }
}

/// The content of a frame.
#[derive(Clone, Debug)]
pub enum NodeFrame {
    /// The next chunk.
    Chunk(Chunk),
    /// The origin has no chunk at present.
    Alive,
    /// Bytes before the next chunk are lost, because they left the origin's ring before they were sent.
    Skip {
        /// Number of lost bytes.
        n_bytes: u64,
    },
    /// The ring has ended.
    End(EndReason),
}
