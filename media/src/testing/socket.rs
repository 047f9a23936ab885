//! One end of an in-memory connection, with what the other end can know of it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// What both ends know of a connection.
#[derive(Default)]
pub(super) struct Known {
    /// The client has shut down its side.
    pub(super) is_shut: AtomicBool,
    /// The client's end is gone.
    pub(super) is_gone: AtomicBool,
    /// The provider's end was torn off: the client reads an error instead of an end.
    pub(super) is_reset: AtomicBool,
}

/// The client's end.
pub(super) struct MemorySocket {
    stream: DuplexStream,
    known: Arc<Known>,
}

impl MemorySocket {
    /// A connection: the client's end and the provider's.
    pub(super) fn pair(buffer_bytes: usize) -> (Self, DuplexStream, Arc<Known>) {
        let (stream, provider) = tokio::io::duplex(buffer_bytes);
        let known = Arc::new(Known::default());
        (Self { stream, known: known.clone() }, provider, known)
    }
}

impl Drop for MemorySocket {
    fn drop(&mut self) {
        self.known.is_gone.store(true, Ordering::SeqCst);
    }
}

impl AsyncRead for MemorySocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() == before && self.known.is_reset.load(Ordering::SeqCst) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MemorySocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.known.is_shut.store(true, Ordering::SeqCst);
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
