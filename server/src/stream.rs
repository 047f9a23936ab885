//! Streams that the task of a connection sends by itself, without the HTTP library.
//!
//! A handler answers with a [`StreamTail`] in the extensions of its response. The connection then leaves HTTP: its task
//! writes the head and the chunks of the tail to the socket, and closes the connection after the stream. The length of
//! the body is therefore the end of the connection: FIN after a stream that ended, RST after one that was cut.
//!
//! A wake-up for a new chunk takes the lock of its ring once, and touches nothing that connections share.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};

use bytes::{Buf, Bytes};
use http::header::CONNECTION;
use http::{HeaderMap, HeaderName, Response, Version};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use media::{Connection, EndReason, PIECES_MAX, Pieces, Tail, null_packet};
use parking_lot::Mutex;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::socket::{AcceptedSocket, PROBE_PAUSE, is_unsupported};

/// Maximum number of bytes that a client may send after its request. They are read, because they would hide its end, and
/// discarded.
const SURPLUS_BYTES_MAX: usize = 64 << 10;
/// Maximum number of writes before other tasks get their turn.
const WRITES_MAX: usize = 16;

/// A value that exists as long as a stream, such as a seat.
pub type Guard = Option<Box<dyn Any + Send>>;

/// The tail of a stream, in the extensions of a response whose body is empty.
#[derive(Clone)]
pub struct StreamTail(Arc<Mutex<Option<(Tail, Guard)>>>);

impl StreamTail {
    /// `guard` is dropped after the stream.
    pub fn new(tail: Tail, guard: Guard) -> Self {
        StreamTail(Arc::new(Mutex::new(Some((tail, guard)))))
    }

    /// Takes the stream, for an answer that sends it after something else.
    pub fn take(&self) -> Option<(Tail, Guard)> {
        self.0.lock().take()
    }
}

/// A stream that a connection has to send after it has left HTTP.
pub(super) struct Stream {
    head: Bytes,
    tail: Tail,
    guard: Guard,
}

impl Stream {
    /// Takes the stream out of the response to a request of this version, if it has one.
    pub(super) fn take<B>(response: &Response<B>, version: Version) -> Option<Stream> {
        let (tail, guard) = response.extensions().get::<StreamTail>()?.0.lock().take()?;
        Some(Stream { head: head(response, version), tail, guard })
    }
}

/// Writes the head of a response whose body ends with the connection.
fn head<B>(response: &Response<B>, version: Version) -> Bytes {
    let status = response.status();
    let version = if version == Version::HTTP_10 { "HTTP/1.0" } else { "HTTP/1.1" };
    let reason = status.canonical_reason().unwrap_or_default();
    let mut head = format!("{version} {} {reason}\r\n", status.as_u16()).into_bytes();
    let mut line = |name: &str, value: &[u8]| {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            head.extend_from_slice(part);
        }
    };
    let headers: &HeaderMap = response.headers();
    for (name, value) in headers.iter().filter(|it| it.0 != CONNECTION) {
        line(&title_case(name), value.as_bytes());
    }
    line("Connection", b"close");
    if let Ok(date) = DateTimePrinter::new().timestamp_to_rfc9110_string(&Timestamp::now()) {
        line("Date", date.as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head.into()
}

/// Capitalises the words of a header name, as in all other responses.
fn title_case(name: &HeaderName) -> String {
    let words = name.as_str().split('-').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    });
    words.collect::<Vec<_>>().join("-")
}

/// Sends a stream on a connection that has left HTTP.
pub(super) struct StreamSender {
    socket: Arc<AcceptedSocket>,
    connection: Arc<Connection>,
    /// Bytes to send before those of the tail: the head of the response, or a null packet.
    head: Bytes,
    /// Fields are dropped in this order: the guard after the tail.
    tail: Tail,
    _guard: Guard,
    /// Bytes that the client sent after its request.
    n_surplus: usize,
    /// Set when the client has closed its side of the connection.
    half_closed: Option<Box<HalfClosed>>,
    /// The socket did not accept all bytes.
    is_blocked: bool,
    /// All bytes that the last write offered were sent, so that a packet may follow.
    is_complete: bool,
    /// Whether the kernel may send bytes of memory files on this socket; assumed until it refuses.
    sends_files: bool,
}

/// How a client that has closed its side of the connection is known to be there: it does not refuse what is written.
struct HalfClosed {
    failed: Pin<Box<dyn Future<Output = ()> + Send>>,
    probes: Interval,
    /// Bytes that the socket will have accepted at the next probe if nothing else is written until then.
    n_bytes: u64,
}

/// Why a stream is over.
#[derive(Debug)]
enum Outcome {
    /// The stream ended, and all its bytes were sent.
    Ended,
    /// The client closed the connection.
    Left,
    /// The connection was cancelled or failed, or the stream ended abruptly.
    Cut,
}

impl StreamSender {
    pub(super) fn new(socket: Arc<AcceptedSocket>, connection: Arc<Connection>, stream: Stream) -> Self {
        let Stream { mut head, tail, guard } = stream;
        head.advance(socket.take_early());
        StreamSender {
            socket,
            connection,
            head,
            tail,
            _guard: guard,
            n_surplus: 0,
            half_closed: None,
            is_blocked: false,
            is_complete: true,
            sends_files: true,
        }
    }

    /// Sends the stream until it ends, the client leaves, or the connection is cancelled. A draining server waits for
    /// this, as for every response.
    pub(super) async fn run(mut self) {
        // From the beginning, so that it also holds after a panic and after the process was killed.
        self.socket.reset_on_close(true);
        let cancel = self.connection.cancel.clone();
        let mut cancelled = pin!(cancel.cancelled());
        let mut alarm: Option<Arc<Alarm>> = None;
        let outcome = poll_fn(|cx| {
            let alarm = match &mut alarm {
                Some(it) if it.task.will_wake(cx.waker()) => it,
                other => other.insert(Alarm::new(cx.waker())),
            };
            if alarm.is_raised.swap(false, Ordering::Acquire) {
                let waker = Waker::from(Arc::clone(alarm));
                let mut cx = Context::from_waker(&waker);
                if cancelled.as_mut().poll(&mut cx).is_ready() {
                    return Poll::Ready(Outcome::Cut);
                }
                if self.poll_left(&mut cx).is_ready() {
                    return Poll::Ready(Outcome::Left);
                }
            }
            self.poll_send(cx)
        })
        .await;
        if matches!(outcome, Outcome::Ended | Outcome::Left) {
            self.socket.reset_on_close(false);
        }
    }

    /// Waits until the client has left. After the end of its data, null packets go out where nothing else does, because only
    /// a write tells whether it has closed both sides of the connection.
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let n_bytes = self.connection.meter.bytes();
        if self.half_closed.is_none() && (ready!(self.poll_end(cx)).is_err() || self.socket.keeps_open()) {
            return Poll::Ready(());
        }
        let half_closed = self.half_closed.get_or_insert_with(|| HalfClosed::new(&self.socket, n_bytes));
        while half_closed.probes.poll_tick(cx).is_ready() {
            let is_silent = half_closed.n_bytes == n_bytes;
            half_closed.n_bytes = n_bytes;
            if is_silent && self.head.is_empty() && self.is_complete {
                self.head = Bytes::copy_from_slice(&null_packet());
                half_closed.n_bytes += self.head.len() as u64;
            }
        }
        half_closed.failed.as_mut().poll(cx)
    }

    /// Reads what the client sends, until it closes at least its side of the connection. An error if it has left, or sends
    /// too much.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut surplus = [0; 1024];
        loop {
            match ready!(self.socket.poll_discard(cx, &mut surplus))? {
                0 => return Poll::Ready(Ok(())),
                n_bytes => self.n_surplus += n_bytes,
            }
            if self.n_surplus > SURPLUS_BYTES_MAX {
                return Poll::Ready(Err(io::ErrorKind::QuotaExceeded.into()));
            }
        }
    }

    /// Writes until the tail has no more bytes or the socket accepts no more.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        for _ in 0..WRITES_MAX {
            if self.is_blocked {
                match self.socket.poll_writable(cx) {
                    Poll::Ready(Ok(())) => self.is_blocked = false,
                    Poll::Ready(Err(_)) => return Poll::Ready(Outcome::Cut),
                    Poll::Pending => return Poll::Pending,
                }
            }
            let mut pieces = Pieces::new();
            match self.tail.poll_pieces(cx, &mut pieces) {
                Poll::Ready(Err(end)) if self.head.is_empty() => return Poll::Ready(outcome(&end)),
                Poll::Pending if self.head.is_empty() => return Poll::Pending,
                _ => {}
            }
            match self.send(&pieces) {
                Ok(()) if self.is_complete && pieces.is_newest() => return Poll::Pending,
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    self.connection.meter.blocked(tokio::time::Instant::now());
                }
                Err(_) => return Poll::Ready(Outcome::Left),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Lets the kernel send the pieces from a memory file without copying; `None` if this is not possible.
    fn try_send_file(&mut self, pieces: &Pieces) -> io::Result<Option<usize>> {
        let Some((file, at)) = pieces.file().filter(|_| self.sends_files && self.head.is_empty()) else {
            return Ok(None);
        };
        match self.socket.try_send_file(file, at, pieces.n_bytes()) {
            Ok(n_sent) if n_sent > 0 => Ok(Some(n_sent)),
            Err(error) if !is_unsupported(&error) => Err(error),
            Ok(_) | Err(_) => {
                self.sends_files = false;
                Ok(None)
            }
        }
    }

    fn try_write(&self, pieces: &Pieces) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); 1 + PIECES_MAX];
        slices[0] = IoSlice::new(&self.head);
        let n_slices = 1 + pieces.slices(&mut slices[1..]);
        let first = usize::from(self.head.is_empty());
        self.socket.try_write(&slices[first..n_slices])
    }

    /// Sends as much of the head and of these pieces as the socket accepts at once.
    fn send(&mut self, pieces: &Pieces) -> io::Result<()> {
        let n_sent = match self.try_send_file(pieces)? {
            Some(n_sent) => n_sent,
            None => self.try_write(pieces)?,
        };
        self.connection.meter.wrote(n_sent);
        let n_head = n_sent.min(self.head.len());
        self.is_complete = n_sent == self.head.len() + pieces.n_bytes();
        self.head.advance(n_head);
        self.tail.sent(pieces, n_sent - n_head);
        Ok(())
    }
}

impl HalfClosed {
    /// Creates the state of a client that has just closed its side, after this many bytes. The first probe is due at once.
    fn new(socket: &Arc<AcceptedSocket>, n_bytes: u64) -> Box<Self> {
        let socket = Arc::clone(socket);
        let mut probes = interval(PROBE_PAUSE);
        probes.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Box::new(HalfClosed { failed: Box::pin(async move { socket.failed().await }), probes, n_bytes })
    }
}

fn outcome(end: &EndReason) -> Outcome {
    if end.is_abrupt() { Outcome::Cut } else { Outcome::Ended }
}

/// Wakes the task of a connection, and records that the cause was not the next chunk: the connection was cancelled, or
/// its client sent or closed something. Only then does the task look for these causes, which costs several locks.
struct Alarm {
    is_raised: AtomicBool,
    task: Waker,
}

impl Alarm {
    /// Creates an alarm that is raised, so that the task looks at both causes once.
    fn new(task: &Waker) -> Arc<Self> {
        Arc::new(Alarm { is_raised: AtomicBool::new(true), task: task.clone() })
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_raised.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use media::PACKET;
    use media::ring::{Budget, JoinPoint, RingSettings, Writer, ring};
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    use socket2::SockRef;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpSocket, TcpStream};
    use tokio::task::JoinHandle;
    use tokio::time::{Instant, sleep, timeout};

    use super::*;
    use crate::socket::{MeteredIo, prepare};

    /// Returns numbered packets of one PID.
    fn packets(numbers: std::ops::Range<u32>) -> Vec<u8> {
        let packet = |number: u32| {
            let mut packet = [number as u8; 188];
            packet[..8].copy_from_slice(
                &[&[0x47, 1, 0, 0x10 | number as u8 & 15], &number.to_be_bytes()[..]].concat(),
            );
            packet
        };
        numbers.flat_map(packet).collect()
    }

    /// A connection that has left HTTP, and the writer of its stream.
    struct Watched {
        client: TcpStream,
        connection: Arc<Connection>,
        writer: Writer,
        /// Whether the stream has ended, and how.
        ended: JoinHandle<()>,
    }

    /// Starts a stream with this head. Its client has a small receive buffer.
    async fn watch(head: &'static [u8]) -> Watched {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpSocket::new_v4().unwrap();
        client.set_recv_buffer_size(16 << 10).unwrap();
        let client = client.connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, peer) = listener.accept().await.unwrap();
        prepare(&socket);
        let (writer, ring) = ring(RingSettings::default(), &Budget::new(64 << 20));
        let tail = ring.tail(JoinPoint::Oldest, None);
        let connection = Arc::new(Connection::new(1, peer));
        let accepted = MeteredIo::new(socket, connection.clone()).socket();
        let stream = Stream { head: Bytes::from_static(head), tail, guard: None };
        let sender = StreamSender::new(accepted, Arc::clone(&connection), stream);
        Watched { client, connection, writer, ended: tokio::spawn(sender.run()) }
    }

    const WAIT_MAX: Duration = Duration::from_secs(20);

    impl Watched {
        async fn read(&mut self, n_bytes: usize) -> Vec<u8> {
            let mut received = vec![0; n_bytes];
            timeout(WAIT_MAX, self.client.read_exact(&mut received)).await.expect("bytes come").unwrap();
            received
        }

        /// Ends the stream, and reads to its end.
        async fn end(mut self) -> Vec<u8> {
            self.writer.end(EndReason::Stopped);
            let mut received = Vec::new();
            timeout(WAIT_MAX, self.client.read_to_end(&mut received)).await.expect("an end").unwrap();
            received
        }
    }

    #[tokio::test]
    async fn a_half_closed_viewer_gets_the_stream_and_null_packets_where_it_pauses() {
        let mut watched = watch(b"head").await;
        watched.writer.push_packets(&packets(0..10), Instant::now());
        assert_eq!(watched.read(4 + 10 * PACKET).await, [b"head", &packets(0..10)[..]].concat());
        watched.client.shutdown().await.unwrap();
        // One at once, and others because nothing else is written.
        assert_eq!(watched.read(3 * PACKET).await, null_packet().repeat(3));
        watched.writer.push_packets(&packets(10..20), Instant::now());
        let rest = watched.end().await;
        let (nulls, programme): (Vec<_>, Vec<_>) = rest.chunks(PACKET).partition(|it| *it == null_packet());
        assert_eq!(programme.concat(), packets(10..20));
        assert!(nulls.len() < 1000, "{} null packets", nulls.len());
    }

    #[tokio::test]
    async fn no_null_packet_splits_a_packet_of_a_viewer_that_pauses_after_its_half_close() {
        let mut watched = watch(b"head").await;
        watched.client.shutdown().await.unwrap();
        // More than the socket takes, so that it is blocked somewhere in a packet.
        for part in 0..40 {
            watched.writer.push_packets(&packets(part * 500..part * 500 + 500), Instant::now());
            tokio::task::yield_now().await;
        }
        assert_eq!(watched.read(4).await, b"head");
        let meter = &watched.connection.meter;
        let is_paused = || meter.blocked_for(Instant::now()).is_some_and(|it| it > 3 * PROBE_PAUSE);
        let pause = async {
            while !is_paused() {
                sleep(PROBE_PAUSE).await;
            }
        };
        timeout(WAIT_MAX, pause).await.expect("the socket is full");
        let received = watched.end().await;
        let programme: Vec<_> = received.chunks(PACKET).filter(|it| *it != null_packet()).collect();
        assert!(programme.concat() == packets(0..20_000), "{} packets", programme.len());
    }

    #[tokio::test]
    async fn a_viewer_that_leaves_is_noticed_although_the_stream_pauses() {
        for (is_reset, is_half_closed) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut watched = watch(b"head").await;
            watched.writer.push_packets(&packets(0..10), Instant::now());
            watched.read(4 + 10 * PACKET).await;
            if is_half_closed {
                watched.client.shutdown().await.unwrap();
                watched.read(PACKET).await;
                assert!(!watched.ended.is_finished());
            }
            if is_reset {
                SockRef::from(&watched.client).set_linger(Some(Duration::ZERO)).unwrap();
            }
            let Watched { client, writer: _writer, ended, .. } = watched;
            drop(client);
            timeout(WAIT_MAX, ended).await.expect("the stream ends").unwrap();
        }
    }

    /// A filter of system calls may forbid `sendfile`, and some kinds of sockets do not have it.
    #[tokio::test]
    async fn a_stream_is_whole_where_the_kernel_refuses_to_send_files() {
        for is_refused in [false, true] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (socket, peer) = listener.accept().await.unwrap();
            if is_refused {
                // The kernel sends no file to a descriptor in append mode; writes to a socket ignore the mode.
                fcntl_setfl(&socket, fcntl_getfl(&socket).unwrap() | OFlags::APPEND).unwrap();
            }
            let (mut writer, ring) = ring(RingSettings::default(), &Budget::new(64 << 20));
            let tail = ring.tail(JoinPoint::Oldest, None);
            // Enough tails for memory files.
            let _others: Vec<_> = (0..20).map(|_| ring.tail(JoinPoint::Oldest, None)).collect();
            writer.push_packets(&packets(0..1_000), Instant::now());
            let connection = Arc::new(Connection::new(1, peer));
            let accepted = MeteredIo::new(socket, connection.clone()).socket();
            let stream = Stream { head: Bytes::from_static(b"head"), tail, guard: None };
            let mut sender = StreamSender::new(accepted, connection, stream);
            let received = tokio::spawn(async move {
                let mut received = Vec::new();
                client.read_to_end(&mut received).await.unwrap();
                received
            });
            let mut sent = pin!(async move {
                let outcome = poll_fn(|cx| sender.poll_send(cx)).await;
                assert!(matches!(outcome, Outcome::Ended), "{outcome:?}");
                assert_eq!(sender.sends_files, !is_refused);
                drop(sender);
            });
            // The second part comes while the stream is being sent.
            let is_pending = poll_fn(|cx| Poll::Ready(sent.as_mut().poll(cx).is_pending())).await;
            assert!(is_pending);
            writer.push_packets(&packets(1_000..5_000), Instant::now());
            writer.end(EndReason::Stopped);
            sent.await;
            let received = received.await.unwrap();
            assert!(received == [b"head", &packets(0..5_000)[..]].concat(), "{} bytes", received.len());
        }
    }
}
