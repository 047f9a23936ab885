//! Renditions: other streams that are made from the stream of a ring.
//!
//! One task per rendition reads the ring through a tail of its own and leaves elementary streams out ([`filter`]). What
//! remains goes to another ring ([`copy`]), which all viewers of the rendition read, or to the standard input of a
//! program ([`feed`]), whose output a pump writes to that ring. Viewers of the first ring are not affected.

pub mod filter;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::OwnedFd;

use bytes::BytesMut;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::task::yield_now;
use tokio::time::Instant;

pub use self::filter::{LeftOutStreams, StreamFilter, StreamSort};
use crate::ring::{EndReason, Tail, Writer};
use crate::ts::packet::{Packet, packets};

/// Bytes after which a task yields to others. A new rendition begins with some seconds of past data.
const TURN_BYTES: usize = 256 << 10;

/// Copies the stream of a tail without the left-out streams to another ring, and ends that ring with the reason of the
/// first one.
pub async fn copy(mut tail: Tail, mut filter: StreamFilter, mut writer: Writer) {
    let mut n_bytes = 0;
    loop {
        let part = match tail.part().await {
            Ok(part) => part,
            Err(end) => return writer.end(end),
        };
        let now = Instant::now();
        if part.is_filler {
            writer.filler(now);
        } else {
            let mut batch = writer.batch(now);
            packets(&part.bytes).for_each(|it| filter.push(Packet::new(it), &mut batch));
            batch.commit();
            // The chunks of the first ring have waited long enough.
            writer.flush(now);
        }
        n_bytes += part.bytes.len();
        if n_bytes >= TURN_BYTES {
            n_bytes = 0;
            yield_now().await;
        }
    }
}

/// The writing end of the standard input of a program. Dropping it closes the input.
#[derive(Debug)]
pub struct ProgramInput(pipe::Sender);

impl ProgramInput {
    /// Writes some of these bytes as soon as the program takes any, and returns how many. Cancel-safe.
    ///
    /// # Errors
    /// The program no longer reads.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).await
    }
}

/// Creates the standard input of a program: the end to write to, and the end that the program gets.
///
/// # Errors
/// The process has too many open files.
pub fn program_input() -> io::Result<(ProgramInput, OwnedFd)> {
    let (sender, receiver) = pipe::pipe()?;
    Ok((ProgramInput(sender), receiver.into_blocking_fd()?))
}

/// Why a program gets no more input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedEnd {
    /// The ring ended.
    Ring(EndReason),
    /// The program no longer reads.
    Program,
}

/// Writes the stream of a tail without the left-out streams and without filler to a program, as fast as it reads.
pub async fn feed(mut tail: Tail, mut filter: StreamFilter, input: ProgramInput) -> FeedEnd {
    let ProgramInput(mut input) = input;
    let mut bytes = BytesMut::new();
    loop {
        let part = match tail.part().await {
            Ok(part) => part,
            Err(end) => return FeedEnd::Ring(end),
        };
        if part.is_filler {
            continue;
        }
        bytes.clear();
        packets(&part.bytes).for_each(|it| filter.push(Packet::new(it), &mut bytes));
        if input.write_all(&bytes).await.is_err() {
            return FeedEnd::Program;
        }
    }
}
