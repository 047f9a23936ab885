//! The accept loop: one task per listener, one per connection.
//!
//! This replaces the accept loop of the HTTP framework, which sets no socket options, has no header time-out and no
//! connection limit, and hides the peer. Every accepted connection gets an id, a meter and a cancel token; the handler
//! finds all three in the request's extensions as [`Connection`]. Cancelling the token closes the connection at once,
//! even while its socket is full. A response that is a stream ends HTTP on its connection, see [`stream`](super::stream).
//!
//! ```text
//! accept ─ over the limit ─► fixed 503 response, closed
//!    └──── admitted ───────► serve ── stream ──► leaves HTTP; the task sends the stream, then closes
//!                              ├───── drain ───► finishes the current response, accepts no further request
//!                              ├───── cancel ──► reset
//!                              └───── hang-up ─► closed; a client that only closed its side still gets its responses
//! ```

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderMap, Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use media::{Connection, ConnectionMeter};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::admission::{Admission, AdmissionGuard, LimitReached, RequestPlace};
use super::socket::{FileBody, HangUpWatch, LongBody, MeteredIo, prepare};
use super::stream::{Stream, StreamSender};

/// Maximum size of a request head, and of the buffer that a connection reads and writes with, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Maximum number of header lines of a request.
const HEADERS_MAX: usize = 100;
/// Maximum number of simultaneous 503 responses to refused connections; more are closed without a response.
const REFUSALS_MAX: usize = 64;
/// Time limit for sending a 503 response to a refused connection.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for the first request of a connection while another process takes over. The library closes a connection without
/// one at once.
const FIRST_REQUEST_TIME: Duration = Duration::from_secs(if cfg!(test) { 3_600 } else { 2 });
/// Range of pauses after a failed accept, such as when no file descriptor is free.
const BACKOFF: std::ops::Range<Duration> = Duration::from_millis(10)..Duration::from_secs(1);

/// Handles requests.
pub trait Handler: Clone + Send + Sync + 'static {
    type Body: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + 'static;

    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// Local address of a connection, for requests without a `Host` header.
#[derive(Clone, Copy, Debug)]
pub struct LocalAddr(pub SocketAddr);

/// Keeps an upgraded connection counted against the connection limit after HTTP has ended. The owner of the connection
/// holds it until the connection closes.
#[derive(Clone)]
pub struct ConnectionGuard {
    admission: Arc<AdmissionGuard>,
    drain: CancellationToken,
    tasks: TaskTracker,
    answers: TaskTracker,
}

impl ConnectionGuard {
    /// Returns tokens that a draining server waits for until they are dropped.
    pub fn token(&self) -> [TaskTrackerToken; 2] {
        [self.tasks.token(), self.answers.token()]
    }

    /// Counts the connection for the client of its present request, whom a proxy may have named.
    ///
    /// # Errors
    /// This client has too many connections. The connection stays counted as before.
    pub(crate) fn count_for(&self, client: IpAddr) -> Result<(), LimitReached> {
        self.admission.count_for(client)
    }

    /// Returns the place of the present request, for what it shows about its client.
    pub(crate) fn request_place(&self) -> RequestPlace {
        self.admission.request_place()
    }

    /// Waits until the server drains, so that the connection can close in an orderly way.
    pub async fn draining(&self) {
        self.drain.cancelled().await;
    }
}

/// A source of connections: a TCP listener, or a failing one in tests.
pub trait Listen: Send + 'static {
    fn accept(&mut self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send;
}

impl Listen for TcpListener {
    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        TcpListener::accept(self).await
    }
}

/// A running HTTP server on one port. Its accept loop runs until [`Server::drain`] or until the server is dropped.
///
/// Dropping the server cancels every connection.
#[derive(Debug)]
pub struct Server {
    drain: CancellationToken,
    is_patient: Arc<AtomicBool>,
    cancel: CancellationToken,
    tasks: TaskTracker,
    /// Everything of `tasks` that may still use the store: connections apart from those that only send a live stream.
    answers: TaskTracker,
    cancel_answers: CancellationToken,
}

/// In the extensions of a response: its body is a live channel, which needs nothing of the store.
#[derive(Clone, Copy, Debug)]
pub struct LiveBody;

impl Server {
    /// Starts the accept loop on `packets`. `header_timeout` limits the time that a client takes to send a request
    /// head, measured from the moment it could have started.
    pub fn start(
        listener: impl Listen,
        handler: impl Handler,
        admission: Arc<Admission>,
        header_timeout: Duration,
        packets: &Handle,
    ) -> Server {
        let server = Server {
            drain: CancellationToken::new(),
            is_patient: Arc::default(),
            cancel: CancellationToken::new(),
            tasks: TaskTracker::new(),
            answers: TaskTracker::new(),
            cancel_answers: CancellationToken::new(),
        };
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(header_timeout)
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            // The watch of a connection finds out who has left.
            .half_close(true)
            // Some set-top boxes match "Content-Type" with this capitalisation only.
            .title_case_headers(true);
        let acceptor = Acceptor {
            drain: server.drain.clone(),
            is_patient: Arc::clone(&server.is_patient),
            cancel: server.cancel.clone(),
            tasks: server.tasks.clone(),
            answers: server.answers.clone(),
            cancel_answers: server.cancel_answers.clone(),
            refusals: Arc::new(Semaphore::new(REFUSALS_MAX)),
            packets: packets.clone(),
            admission,
            http,
            handler,
        };
        server.tasks.spawn_on(acceptor.accept_loop(listener), packets);
        server
    }

    /// Accepts no new connection, closes idle ones, and lets current responses finish. Returns at once.
    pub fn drain(&self) {
        self.drain.cancel();
        self.tasks.close();
        self.answers.close();
    }

    /// Does the same as [`Server::drain`], but lets each connection send its first request, for [`FIRST_REQUEST_TIME`] at
    /// most: its client could not connect to another process.
    pub fn drain_after_first_requests(&self) {
        self.is_patient.store(true, Ordering::Release);
        self.drain();
    }

    /// Waits until only live streams are left of a draining server, and cancels the other connections that are still open at
    /// the deadline.
    pub async fn answered(&self, deadline: tokio::time::Instant) {
        let _ = tokio::time::timeout_at(deadline, self.answers.wait()).await;
        self.cancel_answers.cancel();
        self.answers.wait().await;
    }

    /// Waits until the last connection of a draining server has ended, and cancels those still open at the deadline.
    /// Returns true if none had to be cancelled.
    pub async fn drained(&self, deadline: tokio::time::Instant) -> bool {
        let ended = tokio::time::timeout_at(deadline, self.tasks.wait()).await.is_ok();
        self.cancel.cancel();
        self.tasks.wait().await;
        ended
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.drain.cancel();
        self.cancel.cancel();
    }
}

/// State of the accept loop.
struct Acceptor<H> {
    drain: CancellationToken,
    is_patient: Arc<AtomicBool>,
    cancel: CancellationToken,
    tasks: TaskTracker,
    answers: TaskTracker,
    cancel_answers: CancellationToken,
    refusals: Arc<Semaphore>,
    packets: Handle,
    admission: Arc<Admission>,
    http: http1::Builder,
    handler: H,
}

impl<H: Handler> Acceptor<H> {
    /// Accepts connections until the server drains. No error ends the loop, because most are temporary and a gateway
    /// without it is useless.
    async fn accept_loop(self, mut listener: impl Listen) {
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
                    // A panic must cost only this connection; in the loop it would cost all later ones.
                    if catch_unwind(AssertUnwindSafe(|| self.admit(socket, peer))).is_err() {
                        tracing::error!(client.address = %peer, "admitting a connection panicked");
                    }
                }
                Err(error) if is_connection_error(&error) => {}
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
        let cancel = self.cancel.child_token();
        match self.admission.admit(peer.ip(), cancel.clone()) {
            Ok(admission) => self.serve(socket, peer, admission, cancel),
            Err(limit) => {
                tracing::debug!(client.address = %peer, "connection refused: {limit}");
                if let Ok(permit) = Arc::clone(&self.refusals).try_acquire_owned() {
                    let refusal = async move {
                        let _ = timeout(REFUSAL_TIMEOUT, refuse(socket, limit)).await;
                        drop(permit);
                    };
                    self.tasks.spawn_on(refusal, &self.packets);
                }
            }
        }
    }

    fn serve(
        &self,
        socket: TcpStream,
        peer: SocketAddr,
        admission: AdmissionGuard,
        cancel: CancellationToken,
    ) {
        prepare(&socket);
        let local = LocalAddr(socket.local_addr().unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0))));
        let connection = Arc::new(Connection {
            id: admission.id(),
            peer: SocketAddr::new(peer.ip().to_canonical(), peer.port()),
            cancel,
            meter: ConnectionMeter::default(),
        });
        let io = MeteredIo::new(socket, Arc::clone(&connection));
        let watch = io.hang_up_watch();
        let socket = io.socket();
        let take_over = TakeOver::new(&connection);
        let handler = self.handler.clone();
        let admission = Arc::new(admission);
        let guard = ConnectionGuard {
            admission: Arc::clone(&admission),
            drain: self.drain.clone(),
            tasks: self.tasks.clone(),
            answers: self.answers.clone(),
        };
        let answering = Arc::new(Mutex::new(Some(self.answers.token())));
        let of_service = Arc::clone(&answering);
        let (context, stream) = (Arc::clone(&connection), Arc::clone(&take_over));
        let of_response = Arc::clone(&socket);
        let first_request = CancellationToken::new();
        let began = first_request.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            began.cancel();
            request.extensions_mut().insert(Arc::clone(&context));
            request.extensions_mut().insert(guard.clone());
            request.extensions_mut().insert(local);
            let handler = handler.clone();
            let (version, take_over) = (request.version(), Arc::clone(&stream));
            let socket = Arc::clone(&of_response);
            let answering = Arc::clone(&of_service);
            socket.set_response_due(true);
            socket.set_keeps_open(asks_to_keep_connection(request.headers()));
            async move {
                let response = handler.answer(request).await;
                if let Some(stream) = Stream::take(&response, version) {
                    take_over.offer(stream);
                    // The library must not respond. Taking the stream drops this future.
                    std::future::pending::<()>().await;
                }
                socket.set_response_due(false);
                // The response before has been written: the library reads the next request only then.
                socket.set_file(response.extensions().get::<FileBody>().cloned());
                socket.set_long(response.extensions().get::<LongBody>().is_some());
                if response.extensions().get::<LiveBody>().is_some() {
                    answering.lock().take();
                }
                Ok::<_, Infallible>(response)
            }
        });
        let served = self.http.serve_connection(TokioIo::new(io), service).with_upgrades();
        let drain = DrainSignal {
            drain: self.drain.clone(),
            is_patient: Arc::clone(&self.is_patient),
            first_request,
            cancel_answers: self.cancel_answers.clone(),
            answering,
        };
        // In a box made here, so that the task of a stream has no space for the state of HTTP.
        let http = Box::pin(serve_http(served, Arc::clone(&connection), take_over, watch, drain));
        let task = async move {
            let _admission = admission;
            let ended = http.await;
            match ended {
                Ok(Some(stream)) => StreamSender::new(socket, connection, stream).run().await,
                Ok(None) => {}
                Err(error) => tracing::trace!(client.address = %peer, "connection ended: {error}"),
            }
        };
        self.tasks.spawn_on(task, &self.packets);
    }
}

/// Serves HTTP on a connection until it ends, its client hangs up, it is cancelled, or a response is a stream, which is
/// returned. Its response has not begun.
async fn serve_http<S, B>(
    served: http1::UpgradeableConnection<TokioIo<MeteredIo>, S>,
    connection: Arc<Connection>,
    take_over: Arc<TakeOver>,
    watch: HangUpWatch,
    drain: DrainSignal,
) -> hyper::Result<Option<Stream>>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    B: Body<Error: std::error::Error + Send + Sync> + 'static,
{
    let mut served = pin!(served);
    let mut hung_up = pin!(watch.hung_up());
    let mut is_draining = false;
    loop {
        tokio::select! {
            biased;
            () = connection.cancel.cancelled() => return Ok(None),
            ended = poll_fn(|cx| match served.as_mut().poll(cx) {
                Poll::Ready(ended) => Poll::Ready(ended.map(|()| None)),
                Poll::Pending => take_over.poll_take().map(|it| Ok(Some(it))),
            }) => return ended,
            () = hung_up.as_mut() => return Ok(None),
            () = drain.cancelled() => return Ok(None),
            () = drain.due(), if !is_draining => {
                served.as_mut().graceful_shutdown();
                is_draining = true;
            }
        }
    }
}

/// When a connection has to finish.
struct DrainSignal {
    drain: CancellationToken,
    is_patient: Arc<AtomicBool>,
    /// Cancelled by the first request of the connection.
    first_request: CancellationToken,
    /// Cancelled when every answer has to be over.
    cancel_answers: CancellationToken,
    /// Held until the answer is a live stream, or over.
    answering: Arc<Mutex<Option<TaskTrackerToken>>>,
}

impl DrainSignal {
    /// Waits until the answer has to be over. That of a live stream goes on.
    async fn cancelled(&self) {
        self.cancel_answers.cancelled().await;
        if self.answering.lock().is_none() {
            std::future::pending::<()>().await;
        }
    }

    async fn due(&self) {
        self.drain.cancelled().await;
        if self.is_patient.load(Ordering::Acquire) {
            let _ = timeout(FIRST_REQUEST_TIME, self.first_request.cancelled()).await;
        }
    }
}

/// A stream on its way from the response that contains it to the task of its connection.
struct TakeOver {
    connection: Arc<Connection>,
    offered: Mutex<Option<Stream>>,
}

impl TakeOver {
    fn new(connection: &Arc<Connection>) -> Arc<Self> {
        Arc::new(TakeOver { connection: Arc::clone(connection), offered: Mutex::new(None) })
    }

    fn offer(&self, stream: Stream) {
        *self.offered.lock() = Some(stream);
    }

    /// Takes the stream as soon as the library has written the responses before it. Must be called after the library was
    /// polled: it has then written everything, or the socket is blocked and wakes the task.
    fn poll_take(&self) -> Poll<Stream> {
        match self.connection.meter.is_blocked() {
            true => Poll::Pending,
            false => self.offered.lock().take().map_or(Poll::Pending, Poll::Ready),
        }
    }
}

/// Returns whether the client of a request asks to keep the connection for its next one, and not for another protocol.
fn asks_to_keep_connection(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONNECTION).iter().filter_map(|it| it.to_str().ok());
    let options = values.flat_map(|it| it.split(',')).map(str::trim);
    let (mut keeps, mut upgrades) = (false, false);
    options.for_each(|it| {
        keeps |= it.eq_ignore_ascii_case("keep-alive");
        upgrades |= it.eq_ignore_ascii_case("upgrade");
    });
    keeps && !upgrades
}

/// Returns true for errors of `accept` that concern only the connection being accepted.
fn is_connection_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// Sends a 503 response to a refused connection. The request is read and discarded, because closing a socket with
/// unread bytes resets it before the client sees the response.
async fn refuse(mut socket: TcpStream, limit: LimitReached) -> io::Result<()> {
    let body = format!("{{\"detail\":\"{limit}\"}}");
    let response = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n\
         X-Content-Type-Options: nosniff\r\nContent-Length: {}\r\nRetry-After: 3\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(response.as_bytes()).await?;
    socket.shutdown().await?;
    let mut unread = [0; 1024];
    while socket.read(&mut unread).await? > 0 {
        sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
