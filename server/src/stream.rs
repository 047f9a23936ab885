//! Streams that the task of a connection sends by itself, without the HTTP library.
//!
//! A handler answers with a [`StreamTail`] in the extensions of its response. The connection then leaves HTTP: its task
//! writes the head and the chunks of the tail to the socket, and closes the connection after the stream. The length of
//! the body is therefore the end of the connection: FIN after a stream that ended, RST after one that was cut.
//!
//! A wake-up for a new chunk takes the lock of its ring once, and touches nothing that connections share.

use std::any::Any;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::{Buf, Bytes};
use http::header::CONNECTION;
use http::{HeaderMap, HeaderName, Response, Version};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use media::{Connection, EndReason, PIECES_MAX, Pieces, Tail};
use parking_lot::Mutex;

use super::socket::{AcceptedSocket, is_unsupported};

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
    /// Bytes of the head that were not sent yet.
    head: Bytes,
    /// Fields are dropped in this order: the guard after the tail.
    tail: Tail,
    _guard: Guard,
    /// Bytes that the client sent after its request.
    n_surplus: usize,
    /// The socket did not accept all bytes.
    is_blocked: bool,
    /// Whether the kernel may send bytes of memory files on this socket; assumed until it refuses.
    sends_files: bool,
}

/// Why a stream is over.
#[derive(Debug)]
enum Outcome {
    /// The stream ended, and all its bytes were sent.
    Ended,
    /// The client closed the connection, or at least its side of it.
    Left,
    /// The connection was cancelled or failed, or the stream ended abruptly.
    Cut,
}

impl StreamSender {
    pub(super) fn new(socket: Arc<AcceptedSocket>, connection: Arc<Connection>, stream: Stream) -> Self {
        let Stream { head, tail, guard } = stream;
        StreamSender {
            socket,
            connection,
            head,
            tail,
            _guard: guard,
            n_surplus: 0,
            is_blocked: false,
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

    /// Reads what the client sends, until it closes at least its side of the connection.
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut surplus = [0; 1024];
        loop {
            match self.socket.poll_discard(cx, &mut surplus) {
                Poll::Ready(Ok(n_bytes)) if n_bytes > 0 && self.n_surplus < SURPLUS_BYTES_MAX => {
                    self.n_surplus += n_bytes;
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
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
                Ok(is_complete) if is_complete && pieces.is_newest() => return Poll::Pending,
                Ok(_) => {}
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

    /// Sends as much of the head and of these pieces as the socket accepts at once. Returns true if that is all.
    fn send(&mut self, pieces: &Pieces) -> io::Result<bool> {
        let n_sent = match self.try_send_file(pieces)? {
            Some(n_sent) => n_sent,
            None => self.try_write(pieces)?,
        };
        self.connection.meter.wrote(n_sent);
        let n_head = n_sent.min(self.head.len());
        let is_complete = n_sent == self.head.len() + pieces.n_bytes();
        self.head.advance(n_head);
        self.tail.sent(pieces, n_sent - n_head);
        Ok(is_complete)
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
    use media::ring::{Budget, JoinPoint, RingSettings, ring};
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::Instant;

    use super::*;
    use crate::socket::MeteredIo;

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
