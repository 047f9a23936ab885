//! A socket of ours: the options every accepted connection gets, and the meter on what it takes.

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

/// How long the kernel waits for a vanished neighbour, unacknowledged or silent, before it gives the socket up.
const VANISHED_AFTER: Duration = Duration::from_secs(30);
/// Bytes that may lie in the kernel unsent. A bound on memory and on lag, which a fixed send buffer would not be
/// without starving viewers far away.
const NOTSENT_BYTES_MAX: u32 = 128 << 10;

/// Sets the options of an accepted connection. An option that the system refuses is not worth a connection.
pub(crate) fn prepare(socket: &TcpStream) {
    let options = SockRef::from(socket);
    let keepalive =
        TcpKeepalive::new().with_time(VANISHED_AFTER / 2).with_interval(VANISHED_AFTER / 6).with_retries(3);
    let set = socket
        .set_nodelay(true)
        .and_then(|()| options.set_tcp_user_timeout(Some(VANISHED_AFTER)))
        .and_then(|()| options.set_tcp_keepalive(&keepalive))
        .and_then(|()| options.set_tcp_notsent_lowat(NOTSENT_BYTES_MAX));
    if let Err(error) = set {
        tracing::debug!("a socket option was refused: {error}");
    }
}

/// An accepted socket that tells the meter of its connection what it took and since when it takes nothing.
///
/// What hyper took is not what the socket took, so the stall clock has to sit here, below hyper.
pub(crate) struct MeteredIo {
    socket: TcpStream,
    connection: Arc<Connection>,
}

impl MeteredIo {
    pub(crate) fn new(socket: TcpStream, connection: Arc<Connection>) -> Self {
        MeteredIo { socket, connection }
    }

    fn note(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Ready(Ok(n_bytes)) => self.connection.meter.wrote(*n_bytes, Instant::now()),
            Poll::Pending => self.connection.meter.blocked(Instant::now()),
            Poll::Ready(Err(_)) => {}
        }
    }
}

impl Drop for MeteredIo {
    /// A cancelled connection ends at once: what the kernel still holds for it is thrown away, instead of being
    /// kept for a reader who may never read.
    fn drop(&mut self) {
        if self.connection.cancel.is_cancelled()
            && let Err(error) = self.socket.set_zero_linger()
        {
            tracing::debug!("a cancelled connection could not be reset: {error}");
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
        self.note(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, slices);
        self.note(&written);
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
