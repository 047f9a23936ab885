//! The accept loop: one task per listener, one per connection.
//!
//! It is ours because the HTTP framework's own sets no socket option, has no header time-out and no limit on
//! connections, and hides who is calling. Every accepted connection gets a number, a meter and a cancel token; all
//! three reach the handler in the request's extensions as [`Connection`]. Cancelling the token closes the
//! connection at once, also while its socket is full and nobody polls the body.
//!
//! ```text
//! accept ─ crowded ──► 503 without HTTP machinery, closed
//!    └──── admitted ─► serve ── drain ──► finishes the answer it is writing, takes no further request
//!                        └───── cancel ─► reset
//! ```

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use media::{Connection, ConnectionMeter};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::admission::{Admission, Admitted, Crowded};
use super::socket::{MeteredIo, prepare};

/// Bytes of a request's head, at most; also what one connection may buffer while it is read or written.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Header lines of a request, at most.
const HEADERS_MAX: usize = 100;
/// How many refused connections may be told so at the same time; more are closed without a word.
const POLITE_REFUSALS_MAX: usize = 64;
/// How long a refused connection may take to hear why.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Pauses after an accept that failed, such as for want of file descriptors.
const BACKOFF: std::ops::Range<Duration> = Duration::from_millis(10)..Duration::from_secs(1);

/// Answers one request.
pub(crate) trait Handler: Clone + Send + Sync + 'static {
    type Body: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + 'static;

    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// The address of ours that a connection came in on, for requests that do not say which host they mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalAddr(pub(crate) SocketAddr);

/// What keeps a connection counted after it stopped speaking HTTP: its place among those admitted, and among those
/// that a closing door waits for. Whoever upgrades a connection holds it for as long as the connection is open.
#[derive(Clone)]
pub(crate) struct Stay {
    _admitted: Arc<Admitted>,
    drain: CancellationToken,
    tasks: TaskTracker,
}

impl Stay {
    /// From now on the door waits for whoever holds what this returns.
    pub(crate) fn token(&self) -> TaskTrackerToken {
        self.tasks.token()
    }

    /// Waits until the door is closing. The connection may say farewell then.
    pub(crate) async fn draining(&self) {
        self.drain.cancelled().await;
    }
}

/// Where connections come from: a listener, or in tests one that fails.
pub(crate) trait Listen: Send + 'static {
    fn accept(&mut self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send;
}

impl Listen for TcpListener {
    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        TcpListener::accept(self).await
    }
}

/// An open door: its accept loop runs until [`Door::drain`], or until it is dropped.
///
/// Dropping it cancels every connection.
#[derive(Debug)]
pub(crate) struct Door {
    drain: CancellationToken,
    cancel: CancellationToken,
    tasks: TaskTracker,
}

impl Door {
    /// Starts the accept loop on `packets`. `header_timeout` is how long a client may take to send the head of a
    /// request, counted from when it could have begun.
    pub(crate) fn open(
        listener: impl Listen,
        handler: impl Handler,
        admission: Arc<Admission>,
        header_timeout: Duration,
        packets: &Handle,
    ) -> Door {
        let door = Door {
            drain: CancellationToken::new(),
            cancel: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(header_timeout)
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            // Some set-top boxes look for "Content-Type" and nothing else.
            .title_case_headers(true);
        let host = Host {
            drain: door.drain.clone(),
            cancel: door.cancel.clone(),
            tasks: door.tasks.clone(),
            polite: Arc::new(Semaphore::new(POLITE_REFUSALS_MAX)),
            packets: packets.clone(),
            admission,
            http,
            handler,
        };
        door.tasks.spawn_on(host.welcome(listener), packets);
        door
    }

    /// Takes no new connection, lets idle ones go and those that are answered finish. Returns at once.
    pub(crate) fn drain(&self) {
        self.drain.cancel();
        self.tasks.close();
    }

    /// Waits for the last connection of a draining door; those still open at the deadline are cancelled.
    /// Says whether all ended by themselves.
    pub(crate) async fn drained(&self, deadline: tokio::time::Instant) -> bool {
        let ended = tokio::time::timeout_at(deadline, self.tasks.wait()).await.is_ok();
        self.cancel.cancel();
        self.tasks.wait().await;
        ended
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.drain.cancel();
        self.cancel.cancel();
    }
}

/// What the accept loop needs to serve one more connection.
struct Host<H> {
    drain: CancellationToken,
    cancel: CancellationToken,
    tasks: TaskTracker,
    polite: Arc<Semaphore>,
    packets: Handle,
    admission: Arc<Admission>,
    http: http1::Builder,
    handler: H,
}

impl<H: Handler> Host<H> {
    /// The loop. No error ends it: what failed once may work a moment later, and a gateway that takes no
    /// connections is of no use to anybody.
    async fn welcome(self, mut listener: impl Listen) {
        let mut pause = BACKOFF.start;
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.drain.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((socket, peer)) => {
                    pause = BACKOFF.start;
                    // A defect costs this connection. With the loop it would cost all that come after.
                    if catch_unwind(AssertUnwindSafe(|| self.admit(socket, peer))).is_err() {
                        tracing::error!(client.address = %peer, "admitting a connection panicked");
                    }
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(
                        pause_ms = pause.as_millis() as u64,
                        "failed to accept a connection: {error}"
                    );
                    let _ = timeout(pause, self.drain.cancelled()).await;
                    pause = (pause * 2).min(BACKOFF.end);
                }
            }
        }
    }

    fn admit(&self, socket: TcpStream, peer: SocketAddr) {
        match self.admission.admit(peer.ip()) {
            Ok(admitted) => self.serve(socket, peer, admitted),
            Err(crowded) => {
                tracing::debug!(client.address = %peer, "connection refused: {crowded}");
                if let Ok(permit) = Arc::clone(&self.polite).try_acquire_owned() {
                    let refusal = async move {
                        let _ = timeout(REFUSAL_TIMEOUT, refuse(socket, crowded)).await;
                        drop(permit);
                    };
                    self.tasks.spawn_on(refusal, &self.packets);
                }
            }
        }
    }

    fn serve(&self, socket: TcpStream, peer: SocketAddr, admitted: Admitted) {
        prepare(&socket);
        let local = LocalAddr(socket.local_addr().unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0))));
        let connection = Arc::new(Connection {
            id: admitted.id(),
            peer: SocketAddr::new(peer.ip().to_canonical(), peer.port()),
            cancel: self.cancel.child_token(),
            meter: ConnectionMeter::default(),
        });
        let io = TokioIo::new(MeteredIo::new(socket, Arc::clone(&connection)));
        let cancel = connection.cancel.clone();
        let handler = self.handler.clone();
        let admitted = Arc::new(admitted);
        let stay =
            Stay { _admitted: Arc::clone(&admitted), drain: self.drain.clone(), tasks: self.tasks.clone() };
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Arc::clone(&connection));
            request.extensions_mut().insert(stay.clone());
            request.extensions_mut().insert(local);
            let handler = handler.clone();
            async move { Ok::<_, Infallible>(handler.answer(request).await) }
        });
        let served = self.http.serve_connection(io, service).with_upgrades();
        let drain = self.drain.clone();
        let task = async move {
            let _admitted = admitted;
            let mut served = pin!(served);
            let ended = tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                ended = served.as_mut() => Some(ended),
                () = drain.cancelled() => None,
            };
            let ended = match ended {
                Some(ended) => ended,
                None => {
                    served.as_mut().graceful_shutdown();
                    tokio::select! {
                        biased;
                        () = cancel.cancelled() => return,
                        ended = served => ended,
                    }
                }
            };
            if let Err(error) = ended {
                tracing::trace!(client.address = %peer, "a connection ended: {error}");
            }
        };
        self.tasks.spawn_on(task, &self.packets);
    }
}

/// Errors of `accept` that concern the connection which was about to be accepted, and no other.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Tells a connection that is not served why. What the client has sent meanwhile is read and thrown away: closing
/// a socket with unread bytes resets it, and the client would never see the answer.
async fn refuse(mut socket: TcpStream, crowded: Crowded) -> io::Result<()> {
    let body = format!("{{\"detail\":\"{crowded}\"}}");
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Retry-After: 3\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(answer.as_bytes()).await?;
    socket.shutdown().await?;
    let mut unread = [0; 1024];
    while socket.read(&mut unread).await? > 0 {
        sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
