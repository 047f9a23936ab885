//! Closes what was dropped, so that nobody has to wait for it.
//!
//! A dropped future cannot wait, and a socket that is merely dropped is still open in the provider's
//! eyes for a while. So whoever drops a socket hands it to the closer together with the permit to hold
//! it; the permit comes back only when the socket is gone.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::Permit;
use crate::dial::BoxedSocket;

/// Longest time that a socket may take to close. A provider that does not hear us by then hears a reset.
pub const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Where sockets go to be closed. Its tasks are the only ones that nobody aborts.
#[derive(Clone)]
pub struct Closer {
    packets: Handle,
    tasks: TaskTracker,
    n_sockets: Arc<AtomicUsize>,
    /// Whether it was said that programs have no warden.
    said: Arc<Once>,
}

impl Closer {
    /// A closer whose tasks run on `packets`.
    pub fn new(packets: Handle) -> Self {
        let tasks = TaskTracker::new();
        // A closed tracker still takes tasks; closed is what lets `idle` return.
        tasks.close();
        Self { packets, tasks, n_sockets: Arc::default(), said: Arc::new(Once::new()) }
    }

    /// Takes over a socket and the permit for it; returns at once.
    ///
    /// Our side is shut down, what still comes is read and discarded until the other side closes too or
    /// [`CLOSE_TIMEOUT`] is over, then the socket is dropped, then the permit.
    pub fn close(&self, socket: BoxedSocket, permit: Box<dyn Permit>) {
        // First of all together, so that nothing can part them in the wrong order.
        let mut held = Held { socket, permit };
        held.permit.closing();
        // If the runtime is shutting down the task is dropped unrun: socket first, then permit, all the same.
        self.tasks.spawn_on(
            async move {
                // Names the whole of `held`, so that it is captured whole and dropped in field order.
                let held = &mut held;
                close_gently(&mut held.socket).await;
            },
            &self.packets,
        );
    }

    /// Runs what ends something else than a socket: a program.
    pub(crate) fn run(&self, ending: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_on(ending, &self.packets);
    }

    /// Says that programs run without a warden. Only the first call says it; the machine stays the same.
    pub(crate) fn say_once(&self, say: impl FnOnce()) {
        self.said.call_once(say);
    }

    /// Waits until nothing is closing any more.
    pub async fn idle(&self) {
        self.tasks.wait().await;
    }

    /// Sockets and programs that are closing now.
    pub fn n_closing(&self) -> usize {
        self.tasks.len()
    }

    /// Sockets that a provider can see: being dialled, open, or closing. A program counts as one.
    pub fn n_sockets(&self) -> usize {
        self.n_sockets.load(Ordering::SeqCst)
    }

    /// Counts a socket that is about to be dialled, until the answer is dropped.
    pub(crate) fn count(&self) -> SocketCount {
        self.n_sockets.fetch_add(1, Ordering::SeqCst);
        SocketCount(self.n_sockets.clone())
    }
}

/// Field order is drop order: the permit may come back only when the socket is gone.
struct Held {
    socket: BoxedSocket,
    permit: Box<dyn Permit>,
}

/// Shuts down our side and reads until the other side closes too, for at most [`CLOSE_TIMEOUT`].
/// The caller drops the socket afterwards. May be cancelled at any point.
pub(crate) async fn close_gently(socket: &mut BoxedSocket) {
    let closing = async {
        // An error means that there is nothing left to close.
        if socket.shutdown().await.is_err() {
            return;
        }
        let mut discarded = [0; 4096];
        poll_fn(|cx| {
            // Bounded work per poll: a provider that keeps sending must not hold the thread.
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
    // Out of time is no failure: the socket is set to close hard when it is dropped.
    let _ = timeout(CLOSE_TIMEOUT, closing).await;
}

/// One socket in [`Closer::n_sockets`].
pub(crate) struct SocketCount(Arc<AtomicUsize>);

impl Drop for SocketCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl SocketCount {
    /// The socket, counted until it is dropped.
    pub(crate) fn on(self, socket: BoxedSocket) -> BoxedSocket {
        Box::new(Counted { socket, _count: self })
    }
}

/// A socket with its place in the count; the count goes down after the socket is gone.
struct Counted {
    socket: BoxedSocket,
    _count: SocketCount,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Counted {
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
