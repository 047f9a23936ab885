//! A TCP socket that ends for the provider the moment it is dropped.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::net::connect_unspec;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A connected socket. Dropping it resets the connection, even while somebody else holds a copy of it: a program that
/// is being started has all our files from its fork to its exec, and a socket that is merely closed meanwhile stays
/// open for as long.
pub(super) struct Abrupt(TcpStream);

impl Abrupt {
    /// # Errors
    /// When the kernel refuses the option.
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        // For where the reset below is refused.
        SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
        Ok(Self(stream))
    }
}

impl Drop for Abrupt {
    fn drop(&mut self) {
        // An error means that there is no connection any more.
        let _ = connect_unspec(&self.0);
    }
}

impl AsyncRead for Abrupt {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Abrupt {
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
