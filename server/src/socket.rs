//! Accepted sockets: their options, a meter on what they send, and a watch for clients that hang up.

use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use media::{Connection, SegmentBody};
use parking_lot::Mutex;
use rustix::fs::sendfile;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// Time after which the kernel closes a socket whose peer acknowledges nothing and answers no probe.
const PEER_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum unsent bytes in the kernel. This bounds memory and lag; a fixed send buffer would also do so, but would
/// limit the throughput of viewers with a long round-trip time.
const NOTSENT_BYTES_MAX: u32 = 128 << 10;
/// The same for the body of a file, which has no lag: the client reads it at its own rate, and fewer and longer writes cost
/// less.
const FILE_NOTSENT_BYTES_MAX: u32 = 1 << 20;
/// The first bytes of every response.
const RESPONSE_BEGIN: &[u8] = b"HTTP/1.";
/// Time that a response may take after the end of the client's data before its first byte is sent early. A response that
/// is soon ready leaves in one piece.
const EARLY_BYTE_DELAY: Duration = Duration::from_millis(50);
/// Pause between two writes to a client that has closed its side of the connection. Behind a proxy that forwards bytes, the
/// second write is the first one that fails.
pub(super) const PROBE_PAUSE: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1_000 });
/// Number of these pauses in which nothing of a response is written before its client is considered gone.
const SILENT_PAUSES_MAX: u32 = 10;
/// The same before a response, after its first bytes were sent. Longer than a channel may take to start.
const DUE_PAUSES_MAX: u32 = 60;

/// Sets the options of an accepted connection. A failure is only logged, because the connection works without them.
pub fn prepare(socket: &TcpStream) {
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
    socket: Arc<AcceptedSocket>,
    connection: Arc<Connection>,
}

/// A socket and the state of its response, shared by a connection, its watch, and the sender of a stream.
pub(super) struct AcceptedSocket {
    tcp: TcpStream,
    /// Whether a request has no response yet.
    is_response_due: AtomicBool,
    /// Whether the client asked to keep the connection for its next request, so that the end of its data says that it has
    /// left.
    keeps_open: AtomicBool,
    /// Number of bytes of [`RESPONSE_BEGIN`] that were sent before the response that they belong to.
    n_early: AtomicUsize,
    /// Bytes of the present response that are also in a file.
    in_file: Mutex<Option<FileBody>>,
    /// Whether there are such bytes, so that other connections need not look.
    has_file: AtomicBool,
    /// Whether the present response is one with a [`LongBody`].
    is_long: AtomicBool,
}

/// The body of a response, in the extensions of the response, that is a file of a provider.
#[derive(Clone, Copy, Debug)]
pub struct LongBody;

/// The body of a response, in the extensions of the response, whose bytes are also in a memory file: where the library
/// writes these bytes, the kernel sends them from the file, without a copy. The bytes are recognised by their place in
/// memory, which they keep as long as this value exists.
#[derive(Clone)]
pub struct FileBody(pub SegmentBody);

impl FileBody {
    /// Returns where the bytes of these slices are in the file, from the first one on and as far as they follow each other
    /// there: the position, and their number. `None` if the first one is not in it.
    fn place_of(&self, slices: &[io::IoSlice<'_>]) -> Option<(u64, usize)> {
        let (mut place, mut n_bytes): (Option<u64>, usize) = (None, 0);
        for slice in slices.iter().filter(|it| !it.is_empty()) {
            let Some((at, n)) = self.place_of_slice(slice) else { break };
            if place.is_some_and(|it| it + n_bytes as u64 != at) {
                break;
            }
            place.get_or_insert(at);
            n_bytes += n;
            if n < slice.len() {
                break;
            }
        }
        place.map(|it| (it, n_bytes))
    }

    fn place_of_slice(&self, slice: &[u8]) -> Option<(u64, usize)> {
        let wanted = slice.as_ptr().addr();
        let mut at = 0;
        for piece in self.0.pieces() {
            let begin = piece.as_ptr().addr();
            if (begin..begin + piece.len()).contains(&wanted) {
                let offset = wanted - begin;
                return Some(((at + offset) as u64, slice.len().min(piece.len() - offset)));
            }
            at += piece.len();
        }
        None
    }
}

/// Operations without the HTTP library, for its watch and for a connection that has left HTTP.
impl AcceptedSocket {
    /// Waits until the client has closed at least its side of the connection, also behind unread bytes: this interest
    /// includes a closed read side, and the socket is not registered for priority data itself.
    async fn ended(&self) {
        let _ = self.tcp.ready(Interest::PRIORITY).await;
    }

    /// Waits until the connection has failed, as it does soon after a write to a client that has left.
    pub(super) async fn failed(&self) {
        let _ = self.tcp.ready(Interest::ERROR).await;
    }

    /// Records whether a request has no response yet.
    pub(super) fn set_response_due(&self, is_due: bool) {
        self.is_response_due.store(is_due, Ordering::Relaxed);
    }

    /// Records whether the client asked to keep the connection, in its latest request.
    pub(super) fn set_keeps_open(&self, keeps_open: bool) {
        self.keeps_open.store(keeps_open, Ordering::Relaxed);
    }

    /// Returns whether the client asked to keep the connection.
    pub(super) fn keeps_open(&self) -> bool {
        self.keeps_open.load(Ordering::Relaxed)
    }

    /// Sends the next byte of [`RESPONSE_BEGIN`], and returns the number of bytes that the socket took.
    fn send_early_byte(&self) -> usize {
        let n_early = self.n_early.load(Ordering::Relaxed);
        let Some(next) = RESPONSE_BEGIN.get(n_early..=n_early) else { return 0 };
        // A failure is seen as one of the connection.
        let n_sent = self.tcp.try_write(next).unwrap_or(0);
        self.n_early.store(n_early + n_sent, Ordering::Relaxed);
        n_sent
    }

    /// Returns how many bytes of the response were sent early. The response begins behind them.
    pub(super) fn take_early(&self) -> usize {
        match self.n_early.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.n_early.swap(0, Ordering::Relaxed),
        }
    }

    /// Returns how many bytes of this response were sent early; `None` if none were.
    fn skip_early(&self, bytes: &[u8]) -> Option<io::Result<usize>> {
        let n_early = Some(self.take_early()).filter(|it| *it > 0)?;
        let is_same = bytes.starts_with(&RESPONSE_BEGIN[..n_early]);
        Some(if is_same { Ok(n_early) } else { Err(io::ErrorKind::ConnectionAborted.into()) })
    }

    /// Writes what the socket accepts at once.
    pub(super) fn try_write(&self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.tcp.try_write_vectored(slices)
    }

    /// Sends bytes of a file from this offset on, as many as the socket accepts at once.
    pub(super) fn try_send_file(&self, file: &OwnedFd, at: u64, n_bytes: usize) -> io::Result<usize> {
        let mut at = at;
        self.tcp.try_io(Interest::WRITABLE, || Ok(sendfile(&self.tcp, file, Some(&mut at), n_bytes)?))
    }

    /// Sets the body of the next response, if its bytes are also in a file.
    pub(super) fn set_file(&self, body: Option<FileBody>) {
        let has_file = body.is_some();
        if has_file || self.has_file.load(Ordering::Relaxed) {
            *self.in_file.lock() = body;
            self.has_file.store(has_file, Ordering::Relaxed);
        }
    }

    /// Sets whether the next response has a [`LongBody`].
    pub(super) fn set_long(&self, is_long: bool) {
        if self.is_long.swap(is_long, Ordering::Relaxed) == is_long {
            return;
        }
        let bytes_max = if is_long { FILE_NOTSENT_BYTES_MAX } else { NOTSENT_BYTES_MAX };
        if let Err(error) = SockRef::from(&self.tcp).set_tcp_notsent_lowat(bytes_max) {
            tracing::debug!("failed to set the maximum of unsent bytes: {error}");
        }
    }

    /// Lets the kernel send these bytes from a file; `None` if they are not in one, or if that is not possible.
    fn try_send_from_file(&self, slices: &[io::IoSlice<'_>]) -> Option<io::Result<usize>> {
        if !self.has_file.load(Ordering::Relaxed) {
            return None;
        }
        let body = self.in_file.lock().clone()?;
        let (at, n_bytes) = body.place_of(slices)?;
        match self.try_send_file(body.0.file()?, at, n_bytes) {
            Ok(n_sent) if n_sent > 0 => Some(Ok(n_sent)),
            Err(error) if !is_unsupported(&error) => Some(Err(error)),
            Ok(_) | Err(_) => {
                self.set_file(None);
                None
            }
        }
    }

    /// Waits until the socket may accept bytes again.
    pub(super) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp.poll_write_ready(cx)
    }

    /// Reads bytes of the client; 0 at the end of its data.
    pub(super) fn poll_discard(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.tcp.poll_read_ready(cx))?;
            match self.tcp.try_read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read),
            }
        }
    }

    /// Selects what the kernel does when the socket is closed: send RST and discard unsent bytes, or send them and FIN.
    pub(super) fn reset_on_close(&self, is_reset: bool) {
        let linger = is_reset.then_some(Duration::ZERO);
        if let Err(error) = SockRef::from(&self.tcp).set_linger(linger) {
            tracing::debug!("failed to select how a connection closes: {error}");
        }
    }
}

/// Returns whether the kernel does not send files on this socket, in contrast to an error of the connection.
pub(super) fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported
    )
}

/// A watch on a connection for clients that have left.
///
/// The end of the client's data does not say that it has left: it may only have closed its side of the connection after its
/// last request. A write tells: a client that has left refuses the bytes, and the connection fails. A client that asked to
/// keep the connection, as browsers do, would not close its side only.
pub(crate) struct HangUpWatch {
    socket: Arc<AcceptedSocket>,
    connection: Arc<Connection>,
}

impl HangUpWatch {
    /// Waits until the client has left. Must be polled after the HTTP library, which has then written everything that is
    /// ready, or the meter says that the socket is blocked.
    ///
    /// While a response is due, its first bytes are sent early, one at a time. A response that has begun is itself what is
    /// written. If nothing is written for [`SILENT_PAUSES_MAX`] pauses, or [`DUE_PAUSES_MAX`] before the response, the client
    /// counts as gone, because one that is silent for ever must not keep a seat.
    pub(crate) async fn hung_up(&self) {
        let meter = &self.connection.meter;
        self.socket.ended().await;
        if self.socket.keeps_open() {
            return;
        }
        let (mut pause, mut n_silent, mut n_bytes) = (EARLY_BYTE_DELAY, 0, meter.bytes());
        loop {
            tokio::select! {
                () = self.socket.failed() => return,
                () = sleep(pause) => pause = PROBE_PAUSE,
            }
            let is_due = self.socket.is_response_due.load(Ordering::Relaxed);
            if is_due && !meter.is_blocked() {
                meter.wrote(self.socket.send_early_byte());
            }
            let is_silent = !meter.is_blocked() && meter.bytes() == n_bytes;
            n_silent = if is_silent { n_silent + 1 } else { 0 };
            if n_silent >= if is_due { DUE_PAUSES_MAX } else { SILENT_PAUSES_MAX } {
                return;
            }
            n_bytes = meter.bytes();
        }
    }
}

impl MeteredIo {
    pub(crate) fn new(tcp: TcpStream, connection: Arc<Connection>) -> Self {
        MeteredIo {
            socket: Arc::new(AcceptedSocket {
                tcp,
                is_response_due: AtomicBool::new(false),
                keeps_open: AtomicBool::new(false),
                n_early: AtomicUsize::new(0),
                in_file: Mutex::new(None),
                has_file: AtomicBool::new(false),
                is_long: AtomicBool::new(false),
            }),
            connection,
        }
    }

    /// Returns the socket, for a sender that takes it over when HTTP has ended.
    pub(super) fn socket(&self) -> Arc<AcceptedSocket> {
        Arc::clone(&self.socket)
    }

    pub(crate) fn hang_up_watch(&self) -> HangUpWatch {
        HangUpWatch { socket: Arc::clone(&self.socket), connection: Arc::clone(&self.connection) }
    }

    /// Writes as soon as the socket accepts bytes, and records the result.
    fn poll_write_with(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let written = loop {
            match self.socket.tcp.poll_write_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                Poll::Pending => break Poll::Pending,
            }
            match write(&self.socket.tcp) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => break Poll::Ready(written),
            }
        };
        match &written {
            Poll::Ready(Ok(n_bytes)) => self.connection.meter.wrote(*n_bytes),
            Poll::Pending => self.connection.meter.blocked(Instant::now()),
            Poll::Ready(Err(_)) => {}
        }
        written
    }
}

impl Drop for MeteredIo {
    /// Resets a cancelled connection, so that the kernel discards unsent bytes instead of keeping them for a peer that
    /// may never read.
    fn drop(&mut self) {
        if self.connection.cancel.is_cancelled() {
            self.socket.reset_on_close(true);
        }
    }
}

impl AsyncRead for MeteredIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let tcp = &self.socket.tcp;
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            ready!(tcp.poll_read_ready(cx))?;
            match tcp.try_read_buf(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read.map(drop)),
            }
        }
    }
}

impl AsyncWrite for MeteredIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(skipped) = self.socket.skip_early(bytes) {
            return Poll::Ready(skipped);
        }
        self.poll_write_with(cx, |tcp| tcp.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = slices.iter().find(|it| !it.is_empty());
        if let Some(skipped) = first.and_then(|it| self.socket.skip_early(it)) {
            return Poll::Ready(skipped);
        }
        self.poll_write_with(cx, |tcp| {
            self.socket.try_send_from_file(slices).unwrap_or_else(|| tcp.try_write_vectored(slices))
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.tcp.is_write_vectored()
    }

    /// Does nothing, because a socket has no buffer of its own.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match SockRef::from(&self.socket.tcp).shutdown(Shutdown::Write) {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }
}
