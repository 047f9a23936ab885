//! Closes dropped sockets in the background, so that their owners do not have to wait.
//!
//! `Drop` cannot wait, and the provider can still see a socket for a while after it was dropped. The owner of a
//! socket therefore hands it to the closer together with its permit, and the permit is dropped only after the
//! socket is gone.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::dial::BoxedSocket;
use crate::permit::Permit;

/// Longest time for an orderly close. After it the connection is reset.
pub const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Closes sockets and ends programs in tasks that are never aborted.
#[derive(Clone)]
pub struct Closer {
    packets: Handle,
    tasks: TaskTracker,
    n_sockets: Arc<AtomicUsize>,
}

impl Closer {
    /// Creates a closer whose tasks run on `packets`.
    pub fn new(packets: Handle) -> Self {
        let tasks = TaskTracker::new();
        // A closed tracker still accepts tasks; only a closed one lets `idle` return.
        tasks.close();
        Self { packets, tasks, n_sockets: Arc::default() }
    }

    /// Takes over a socket and its permit, and returns at once.
    ///
    /// Shuts down the local side and discards incoming bytes until the remote side closes or [`CLOSE_TIMEOUT`]
    /// is over. Then it drops the socket, and after that the permit.
    pub fn close(&self, socket: BoxedSocket, permit: Box<dyn Permit>) {
        // Both in one value from the start, so that they are always dropped in this order.
        let mut held = ClosingSocket { socket, permit };
        held.permit.closing();
        // A runtime that shuts down drops the task without running it; the order socket, then permit, is the
        // same.
        self.tasks.spawn_on(
            async move {
                // Borrows all of `held`, so that the block captures it as a whole and drops it in field order.
                let held = &mut held;
                close_gently(&mut held.socket).await;
            },
            &self.packets,
        );
    }

    /// Runs a task that ends a program.
    pub(crate) fn spawn(&self, ending: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_on(ending, &self.packets);
    }

    /// Waits until no socket or program is closing.
    pub async fn idle(&self) {
        self.tasks.wait().await;
    }

    /// Returns the number of sockets and programs that are closing.
    pub fn n_closing(&self) -> usize {
        self.tasks.len()
    }

    /// Returns the number of sockets that providers can see: connecting, open or closing. A program counts as
    /// one.
    pub fn n_sockets(&self) -> usize {
        self.n_sockets.load(Ordering::SeqCst)
    }

    /// Counts a socket that is about to connect, until the returned value is dropped.
    pub(crate) fn count_socket(&self) -> SocketCount {
        self.n_sockets.fetch_add(1, Ordering::SeqCst);
        SocketCount(self.n_sockets.clone())
    }
}

/// Field order is drop order: the permit is dropped after the socket.
struct ClosingSocket {
    socket: BoxedSocket,
    permit: Box<dyn Permit>,
}

/// Shuts down the local side and reads until the remote side closes, for at most [`CLOSE_TIMEOUT`].
///
/// The caller drops the socket afterwards. Cancel-safe.
pub(crate) async fn close_gently(socket: &mut BoxedSocket) {
    let closing = async {
        // After an error nothing is left to close.
        if socket.shutdown().await.is_err() {
            return;
        }
        let mut discarded = [0; 4096];
        poll_fn(|cx| {
            // Bounded work per poll: a provider that keeps sending must not block the thread.
            for _ in 0..32 {
                let mut buffer = ReadBuf::new(&mut discarded);
                match Pin::new(&mut *socket).poll_read(cx, &mut buffer) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                    Poll::Ready(_) => return Poll::Ready(()),
                }
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    };
    // A timeout is not a failure: the socket resets the connection when it is dropped.
    let _ = timeout(CLOSE_TIMEOUT, closing).await;
}

/// Counts one socket in [`Closer::n_sockets`].
pub(crate) struct SocketCount(Arc<AtomicUsize>);

impl Drop for SocketCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl SocketCount {
    /// Returns the socket, which is counted until it is dropped.
    pub(crate) fn attach(self, socket: BoxedSocket) -> BoxedSocket {
        Box::new(CountedSocket { socket, _count: self })
    }
}

/// A counted socket. Field order is drop order: the count decreases after the socket is gone.
struct CountedSocket {
    socket: BoxedSocket,
    _count: SocketCount,
}

impl AsyncRead for CountedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl AsyncWrite for CountedSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
