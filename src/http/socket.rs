//! Accepted sockets: their options, and a meter on what they send.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use media::Connection;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Time after which the kernel closes a socket whose peer acknowledges nothing and answers no probe.
const PEER_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum unsent bytes in the kernel. This bounds memory and lag; a fixed send buffer would also do so, but would
/// limit the throughput of viewers with a long round-trip time.
const NOTSENT_BYTES_MAX: u32 = 128 << 10;

/// Sets the options of an accepted connection. A failure is only logged, because the connection works without them.
pub(crate) fn prepare(socket: &TcpStream) {
    let options = SockRef::from(socket);
    let keepalive =
        TcpKeepalive::new().with_time(PEER_TIMEOUT / 2).with_interval(PEER_TIMEOUT / 6).with_retries(3);
    let set = socket
        .set_nodelay(true)
        .and_then(|()| options.set_tcp_user_timeout(Some(PEER_TIMEOUT)))
        .and_then(|()| options.set_tcp_keepalive(&keepalive))
        .and_then(|()| options.set_tcp_notsent_lowat(NOTSENT_BYTES_MAX));
    if let Err(error) = set {
        tracing::debug!("failed to set a socket option: {error}");
    }
}

/// An accepted socket that reports written bytes and blocked writes to the meter of its connection.
///
/// The stall clock is here, below hyper, because hyper buffers bytes that the socket has not accepted yet.
pub(crate) struct MeteredIo {
    socket: TcpStream,
    connection: Arc<Connection>,
}

impl MeteredIo {
    pub(crate) fn new(socket: TcpStream, connection: Arc<Connection>) -> Self {
        MeteredIo { socket, connection }
    }

    fn record(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Ready(Ok(n_bytes)) => self.connection.meter.wrote(*n_bytes, Instant::now()),
            Poll::Pending => self.connection.meter.blocked(Instant::now()),
            Poll::Ready(Err(_)) => {}
        }
    }
}

impl Drop for MeteredIo {
    /// Resets a cancelled connection, so that the kernel discards unsent bytes instead of keeping them for a peer that
    /// may never read.
    fn drop(&mut self) {
        if self.connection.cancel.is_cancelled()
            && let Err(error) = self.socket.set_zero_linger()
        {
            tracing::debug!("failed to reset a cancelled connection: {error}");
        }
    }
}

impl AsyncRead for MeteredIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl AsyncWrite for MeteredIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.record(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, slices);
        self.record(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
