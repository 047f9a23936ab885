//! A TCP socket that resets its connection when it is dropped.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::net::connect_unspec;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A connected socket that resets the connection when it is dropped, even while another process holds a copy
/// of it. A program that is being started inherits all open files between its fork and its exec; a socket
/// that is only closed meanwhile would stay open until then.
pub(super) struct ResetOnDrop(TcpStream);

impl ResetOnDrop {
    /// # Errors
    /// When the kernel refuses the option.
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        // Fallback in case the reset in `drop` fails.
        SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
        Ok(Self(stream))
    }
}

impl Drop for ResetOnDrop {
    fn drop(&mut self) {
        // An error means that the connection is already gone.
        let _ = connect_unspec(&self.0);
    }
}

impl AsyncRead for ResetOnDrop {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for ResetOnDrop {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
