//! A tail as a response body.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use media::Tail;

/// Passes the chunks of a tail to the connection, one per poll and without copying, until the tail ends.
///
/// It is not polled while the socket is full, so disconnecting a client must not depend on it; cancel the connection
/// instead. Dropping the body drops the tail, and the client leaves.
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
