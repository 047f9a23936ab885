//! A tail as the body of an answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use media::Tail;

/// Hands the chunks of a tail to the connection, one per poll and without copying; ends when the tail ends.
///
/// While the socket is full it is not polled, so nothing that must end a client may rely on it: whoever ends a
/// client cancels its connection. Dropping it drops the tail, and with it the client leaves.
pub(crate) struct TailBody(Tail);

impl TailBody {
    pub(crate) fn new(tail: Tail) -> Self {
        TailBody(tail)
    }
}

impl Stream for TailBody {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_chunk(cx).map(|chunk| chunk.ok().map(Ok))
    }
}
