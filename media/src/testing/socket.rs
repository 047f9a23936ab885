//! The client end of an in-memory connection, and the state that both ends share.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// The state that both ends of a connection share.
#[derive(Default)]
pub(super) struct SocketState {
    /// The client has shut down its side.
    pub(super) is_shut: AtomicBool,
    /// The client end was dropped.
    pub(super) is_gone: AtomicBool,
    /// The provider reset the connection: the client reads an error instead of an end.
    pub(super) is_reset: AtomicBool,
}

/// The client end of a connection.
pub(super) struct MemorySocket {
    stream: DuplexStream,
    state: Arc<SocketState>,
}

impl MemorySocket {
    /// Creates a connection: the client end, the provider end and their shared state.
    pub(super) fn pair(buffer_bytes: usize) -> (Self, DuplexStream, Arc<SocketState>) {
        let (stream, provider) = tokio::io::duplex(buffer_bytes);
        let state = Arc::new(SocketState::default());
        (Self { stream, state: state.clone() }, provider, state)
    }
}

impl Drop for MemorySocket {
    fn drop(&mut self) {
        self.state.is_gone.store(true, Ordering::SeqCst);
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
        if buffer.filled().len() == before && self.state.is_reset.load(Ordering::SeqCst) {
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
        self.state.is_shut.store(true, Ordering::SeqCst);
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
