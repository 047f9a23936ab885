//! Tests over real sockets, because this module is about their behaviour. Each test waits for the expected state with a
//! generous time limit, and none relies on a fixed sleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use config::Config;
use futures_util::StreamExt;
use futures_util::future::join_all;
use http::StatusCode;
use http::header::{LOCATION, UPGRADE};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use media::PACKET;
use media::ring::{Budget, EndReason, JoinPoint, RingSettings, Writer, ring};
use media::ts::packet::null_packet;
use socket2::SockRef;
use tokio::io::copy_bidirectional;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::*;
use crate::origin::Origins;
use crate::socket::PROBE_PAUSE;
use crate::stream::StreamTail;

/// Time limit for every wait, long enough for a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(20);
const NEVER: Duration = Duration::from_secs(3600);

type TestBody = UnsyncBoxBody<Bytes, Infallible>;

/// Answers `/endless` with an endless body, `/silent` with one piece of a body that never continues, `/pieces` with many
/// pieces and short pauses, `/never` never, `/upload` with the body of the request, `/stream` with a live stream, and
/// everything else with the id of the connection. A query is the number of milliseconds until it begins.
#[derive(Clone)]
struct TestHandler {
    seen: mpsc::UnboundedSender<Arc<Connection>>,
    writers: mpsc::UnboundedSender<Writer>,
    n_waiting: Arc<AtomicUsize>,
}

impl Handler for TestHandler {
    type Body = TestBody;

    async fn answer(&self, mut request: Request<Incoming>) -> Response<TestBody> {
        let connection = Arc::clone(request.extensions().get::<Arc<Connection>>().unwrap());
        let id = connection.id;
        if request.uri().path() == "/stream" {
            let guard = request.extensions().get::<ConnectionGuard>().unwrap();
            guard.request_place().note_anonymous().unwrap();
        }
        self.seen.send(connection).unwrap();
        if let Some(delay) = request.uri().query() {
            sleep(Duration::from_millis(delay.parse().unwrap())).await;
        }
        match request.uri().path() {
            "/endless" => {
                let piece = Bytes::from(vec![b'x'; 64 << 10]);
                let pieces = futures_util::stream::repeat_with(move || Ok(Frame::data(piece.clone())));
                Response::new(StreamBody::new(pieces).boxed_unsync())
            }
            "/silent" => {
                let pieces =
                    futures_util::stream::once(async { Ok(Frame::data(Bytes::from_static(b"begin"))) });
                let pieces = pieces.chain(futures_util::stream::pending());
                Response::new(StreamBody::new(pieces).boxed_unsync())
            }
            "/pieces" => {
                let pieces = futures_util::stream::iter(0..PIECES).then(|_| async {
                    sleep(PROBE_PAUSE).await;
                    Ok(Frame::data(Bytes::from_static(b"piece ")))
                });
                Response::new(StreamBody::new(pieces).boxed_unsync())
            }
            "/refused" => {
                let refused = Response::builder().status(StatusCode::SERVICE_UNAVAILABLE);
                refused.body(Full::from("refused").boxed_unsync()).unwrap()
            }
            "/elsewhere" => {
                let redirect = Response::builder().status(StatusCode::FOUND).header(LOCATION, "/there");
                redirect.body(Full::from("").boxed_unsync()).unwrap()
            }
            "/upload" => {
                let body = request.body_mut().collect().await.unwrap().to_bytes();
                sleep(2 * PROBE_PAUSE).await;
                Response::new(Full::from(body).boxed_unsync())
            }
            "/stream" => {
                let (writer, ring) = ring(RingSettings::default(), &Budget::new(64 << 20));
                let tail = StreamTail::new(ring.tail(JoinPoint::Oldest, None), None);
                self.writers.send(writer).unwrap();
                let mut response = Response::new(Full::from("").boxed_unsync());
                response.extensions_mut().insert(tail);
                response
            }
            "/upgrade" => {
                let upgrade = hyper::upgrade::on(&mut request);
                tokio::spawn(async move {
                    let mut upgraded = TokioIo::new(upgrade.await.unwrap());
                    let mut received = Vec::new();
                    upgraded.read_to_end(&mut received).await.unwrap();
                    sleep(20 * PROBE_PAUSE).await;
                    upgraded.write_all(&received).await.unwrap();
                    upgraded.shutdown().await.unwrap();
                });
                let switching = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
                switching.header(UPGRADE, "echo").body(Full::from("").boxed_unsync()).unwrap()
            }
            "/never" => {
                let _waiting = Waiting::begin(&self.n_waiting);
                std::future::pending().await
            }
            _ => Response::new(Full::from(id.to_string()).boxed_unsync()),
        }
    }
}

/// Number of pieces of `/pieces`, which take longer than a silent response may.
const PIECES: usize = 30;

struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    fn begin(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Waiting(Arc::clone(count))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

struct TestServer {
    address: SocketAddr,
    server: Server,
    admission: Arc<Admission>,
    seen: mpsc::UnboundedReceiver<Arc<Connection>>,
    writers: mpsc::UnboundedReceiver<Writer>,
    n_waiting: Arc<AtomicUsize>,
}

async fn start(admission: Arc<Admission>, header_timeout: Duration) -> TestServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    start_on(listener, address, admission, header_timeout)
}

fn start_on(
    listener: impl Listen,
    address: SocketAddr,
    admission: Arc<Admission>,
    header_timeout: Duration,
) -> TestServer {
    let (tx, seen) = mpsc::unbounded_channel();
    let (writers_tx, writers) = mpsc::unbounded_channel();
    let n_waiting = Arc::new(AtomicUsize::new(0));
    let inner = TestHandler { seen: tx, writers: writers_tx, n_waiting: Arc::clone(&n_waiting) };
    let server = Server::start(listener, inner, Arc::clone(&admission), header_timeout, &Handle::current());
    TestServer { address, server, admission, seen, writers, n_waiting }
}

impl TestServer {
    async fn send(&self, request: &str) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        socket
    }

    async fn ask(&self, request: &str) -> String {
        read_all(&mut self.send(request).await).await
    }

    /// Sends bytes, closes the client's side of the connection, and reads to the end of the server's.
    async fn ask_and_half_close(&self, requests: &str) -> String {
        let mut socket = self.send(requests).await;
        socket.shutdown().await.unwrap();
        read_all(&mut socket).await
    }
}

/// Closes both sides of a connection: the next bytes of the server are refused, or, with a reset, it is told at once.
fn leave(socket: TcpStream, is_reset: bool) {
    if is_reset {
        SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
    }
    drop(socket);
}

/// Reads until the server closes the connection. A reset counts as a close.
async fn read_all(socket: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = timeout(WAIT_MAX, socket.read_to_end(&mut answer)).await.expect("the connection ends");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Waits until the condition holds.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_MAX;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_request_whose_head_never_ends_is_closed_without_a_response() {
    let server = start(Admission::new(0, 0), Duration::from_millis(200)).await;
    let answer = server.ask("GET / HTTP/1.1\r\nhost: a\r\nx-slow: ").await;
    assert!(!answer.contains("200"), "{answer}");
    let silent = server.ask("").await;
    assert_eq!(silent, "");
}

#[tokio::test]
async fn request_heads_over_the_limit_are_refused() {
    let server = start(Admission::new(0, 0), NEVER).await;
    let many = (0..150).map(|number| format!("x-{number}: y\r\n")).collect::<String>();
    for headers in [many, format!("x-long: {}\r\n", "y".repeat(20 << 10))] {
        let answer = server.ask(&format!("GET / HTTP/1.1\r\nhost: a\r\n{headers}\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
}

#[tokio::test]
async fn a_connection_over_the_limit_gets_503_until_another_one_closes() {
    let mut server = start(Admission::new(1, 0), NEVER).await;
    let first = server.send("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n").await;
    server.seen.recv().await.unwrap();

    let refused = server.ask("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{refused}");
    assert!(refused.contains("Retry-After: 3\r\n") && refused.ends_with("}"), "{refused}");
    assert!(refused.contains("X-Content-Type-Options: nosniff\r\n"), "{refused}");

    drop(first);
    until("the connection is no longer counted", || server.admission.n_open() == 0).await;
    let served = server.ask("GET / HTTP/1.0\r\n\r\n").await;
    assert!(served.starts_with("HTTP/1.0 200"), "{served}");
}

#[tokio::test]
async fn one_address_cannot_use_all_connections() {
    let mut server = start(Admission::new(0, 1), NEVER).await;
    let _first = server.send("GET /stream HTTP/1.1\r\nhost: a\r\n\r\n").await;
    server.seen.recv().await.unwrap();
    let refused = server.ask("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert!(refused.contains("from this address: the limit is 1"), "{refused}");
    assert!(refused.contains("limits.connections_per_address_max"), "{refused}");
}

#[tokio::test]
async fn a_connection_without_a_stream_is_closed_for_a_newer_one_of_its_address() {
    let mut server = start(Admission::new(0, 1), NEVER).await;
    let mut first = server.send("GET /silent HTTP/1.1\r\nhost: a\r\n\r\n").await;
    server.seen.recv().await.unwrap();
    let served = server.ask("GET / HTTP/1.0\r\n\r\n").await;
    assert!(served.starts_with("HTTP/1.0 200"), "{served}");
    read_all(&mut first).await;
}

#[tokio::test]
async fn http_1_0_clients_get_an_unframed_body_and_http_1_1_clients_chunks() {
    let server = start(Admission::new(0, 0), NEVER).await;
    let mut old = server.send("GET /endless HTTP/1.0\r\n\r\n").await;
    let mut new = server.send("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let mut begin = vec![0; 4096];
    old.read_exact(&mut begin).await.unwrap();
    let text = String::from_utf8_lossy(&begin).into_owned();
    assert!(text.starts_with("HTTP/1.0 200") && text.contains("\r\n\r\nxxxx"), "{text}");
    assert!(!text.to_lowercase().contains("transfer-encoding"), "{text}");
    new.read_exact(&mut begin).await.unwrap();
    let text = String::from_utf8_lossy(&begin).into_owned();
    assert!(
        text.contains("Transfer-Encoding: chunked\r\n") && text.contains("\r\n\r\n10000\r\nxxxx"),
        "{text}"
    );
}

#[tokio::test]
async fn the_meter_reports_a_full_socket_and_cancelling_closes_it() {
    let mut server = start(Admission::new(0, 0), NEVER).await;
    let mut stalled = server.send("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let connection = server.seen.recv().await.unwrap();
    until("the socket is full", || connection.meter.blocked_for(Instant::now()).is_some()).await;
    let taken = connection.meter.bytes();
    assert!(taken > 0);

    connection.cancel.cancel();
    until("the connection is gone", || server.admission.n_open() == 0).await;
    // It was reset, so the kernel discarded the unsent bytes.
    let mut rest = Vec::new();
    let ended = timeout(WAIT_MAX, stalled.read_to_end(&mut rest)).await.expect("the connection ends");
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_client_that_resumes_reading_is_served_again() {
    let mut server = start(Admission::new(0, 0), NEVER).await;
    let mut slow = server.send("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let connection = server.seen.recv().await.unwrap();
    until("the socket is full", || connection.meter.blocked_for(Instant::now()).is_some()).await;
    let taken = connection.meter.bytes();
    let mut piece = vec![0; 1 << 20];
    while connection.meter.bytes() == taken {
        timeout(WAIT_MAX, slow.read_exact(&mut piece)).await.expect("bytes come").unwrap();
    }
}

#[tokio::test]
async fn a_client_that_leaves_early_ends_its_handler() {
    let mut server = start(Admission::new(0, 0), NEVER).await;
    for (is_reset, is_half_closed) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut socket = server.send("GET /never HTTP/1.1\r\nhost: a\r\n\r\n").await;
        server.seen.recv().await.unwrap();
        until("the handler waits", || server.n_waiting.load(Ordering::SeqCst) == 1).await;
        if is_half_closed {
            socket.shutdown().await.unwrap();
            let mut early = [0; 7];
            timeout(WAIT_MAX, socket.read_exact(&mut early)).await.expect("early bytes").unwrap();
            assert_eq!(&early, b"HTTP/1.");
            assert_eq!(server.n_waiting.load(Ordering::SeqCst), 1);
        }
        leave(socket, is_reset);
        until("the handler ends", || server.n_waiting.load(Ordering::SeqCst) == 0).await;
        until("the connection is gone", || server.admission.n_open() == 0).await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_during_a_response_is_noticed() {
    let mut server = start(Admission::new(0, 0), NEVER).await;
    for path in ["/silent", "/pieces", "/endless"] {
        for is_reset in [false, true] {
            let mut socket = server.send(&format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
            server.seen.recv().await.unwrap();
            timeout(WAIT_MAX, socket.read_u8()).await.expect("the response begins").unwrap();
            leave(socket, is_reset);
            until("the connection is gone", || server.admission.n_open() == 0).await;
        }
    }
}

/// Programs that publish the ports of a container forward bytes in both directions. They take a first write for a client
/// that has left, and learn only from that one that they must close.
#[tokio::test]
async fn a_client_that_leaves_behind_a_program_that_forwards_its_bytes_is_noticed() {
    let mut server = start(Admission::new(0, 0), NEVER).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let published = listener.local_addr().unwrap();
    let address = server.address;
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut inside = TcpStream::connect(address).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut inside).await.is_ok() });
        }
    });
    for path in ["/never", "/stream"] {
        let mut socket = TcpStream::connect(published).await.unwrap();
        socket.write_all(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).await.unwrap();
        server.seen.recv().await.unwrap();
        drop(socket);
        until("the connection is gone", || server.admission.n_open() == 0).await;
    }
}

/// Regression: hyper does not read while it sends a response and has bytes of a next request, so the end behind them
/// was not noticed.
#[tokio::test]
async fn a_client_that_leaves_after_pipelined_bytes_is_noticed() {
    let mut server = start(Admission::new(0, 0), NEVER).await;
    let next = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    let larger_than_the_buffer = next.repeat(2 * HEAD_BYTES_MAX / next.len());
    for pipelined in ["\n", next, &larger_than_the_buffer] {
        let waiting = server.send(&format!("GET /never HTTP/1.1\r\nhost: a\r\n\r\n{pipelined}")).await;
        server.seen.recv().await.unwrap();
        until("the handler waits", || server.n_waiting.load(Ordering::SeqCst) == 1).await;
        drop(waiting);
        until("the handler ends", || server.n_waiting.load(Ordering::SeqCst) == 0).await;

        let mut watching = server.send(&format!("GET /silent HTTP/1.1\r\nhost: a\r\n\r\n{pipelined}")).await;
        server.seen.recv().await.unwrap();
        let mut received = Vec::new();
        while !received.ends_with(b"begin\r\n") {
            timeout(WAIT_MAX, watching.read_buf(&mut received)).await.expect("the body begins").unwrap();
        }
        drop(watching);
        until("the connection is gone", || server.admission.n_open() == 0).await;
    }
}

/// A program such as `nc` closes its side of the connection after its request; some of them send a surplus line break.
#[tokio::test]
async fn a_client_that_half_closes_after_its_request_is_served() {
    let server = start(Admission::new(0, 0), NEVER).await;
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
    let upload = "content-length: 4\r\n\r\nbody";
    let pieces = "piece ".repeat(PIECES);
    let mut asked = Vec::new();
    // Before the first byte that is sent early, after it, and after the last one.
    for ms in [0, 60, 100, 300] {
        let requests = [
            (format!("GET /pieces?{ms} HTTP/1.0\r\n\r\n"), vec!["HTTP/1.0 200 OK"], pieces.as_str()),
            (get(&format!("/pieces?{ms}")), vec!["HTTP/1.1 200 OK"], "\r\n0\r\n\r\n"),
            (get(&format!("/refused?{ms}")), vec!["HTTP/1.1 503 Service Unavailable"], "refused"),
            (get(&format!("/refused?{ms}")) + "\n", vec!["HTTP/1.1 503 Service Unavailable"], "refused"),
            (get(&format!("/elsewhere?{ms}")), vec!["HTTP/1.1 302 Found"], "\r\n\r\n"),
            (format!("HEAD /refused?{ms} HTTP/1.0\r\n\r\n"), vec!["HTTP/1.0 503"], "\r\n\r\n"),
            (format!("POST /upload?{ms} HTTP/1.1\r\nhost: a\r\n{upload}"), vec!["HTTP/1.1 200 OK"], "body"),
            (
                format!("POST /upload?{ms} HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\n{upload}"),
                vec!["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK"],
                "body",
            ),
            (
                get(&format!("/refused?{ms}")) + &get("/?0") + &get(&format!("/refused?{ms}")),
                vec!["HTTP/1.1 503", "HTTP/1.1 200", "HTTP/1.1 503"],
                "refused",
            ),
        ];
        for (request, heads, end) in requests {
            let server = &server;
            asked.push(async move {
                let answer = server.ask_and_half_close(&request).await;
                let begins: Vec<_> = answer.match_indices("HTTP/1.").map(|it| &answer[it.0..]).collect();
                let is_same = |it: (&&str, &&str)| it.0.starts_with(*it.1);
                assert!(answer.starts_with("HTTP/1.") && begins.len() == heads.len(), "{request}: {answer}");
                assert!(
                    begins.iter().zip(&heads).all(is_same) && answer.ends_with(end),
                    "{request}: {answer}"
                );
            });
        }
    }
    join_all(asked).await;
    until("no connection is left", || server.admission.n_open() == 0).await;
}

#[tokio::test]
async fn a_half_closed_client_gets_a_live_stream() {
    let mut server = start(Admission::new(0, 0), NEVER).await;
    for (ms, pipelined) in [(0, ""), (0, "\n"), (100, ""), (300, "\n")] {
        let mut socket =
            server.send(&format!("GET /stream?{ms} HTTP/1.1\r\nhost: a\r\n\r\n{pipelined}")).await;
        socket.shutdown().await.unwrap();
        let mut writer = server.writers.recv().await.unwrap();
        let mut packet = null_packet();
        packet[1] = 1;
        writer.push_packets(&packet.repeat(100), Instant::now());
        let mut received = Vec::new();
        while received.len() < 120 * PACKET {
            timeout(WAIT_MAX, socket.read_buf(&mut received)).await.expect("null packets").unwrap();
        }
        writer.push_packets(&packet.repeat(100), Instant::now());
        writer.end(EndReason::Stopped);
        timeout(WAIT_MAX, socket.read_to_end(&mut received)).await.expect("the stream ends").unwrap();
        let n_head = received.windows(4).position(|it| it == b"\r\n\r\n").expect("a head") + 4;
        let (head, body) = received.split_at(n_head);
        assert!(head.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", String::from_utf8_lossy(head));
        assert_eq!(body.chunks(PACKET).filter(|it| *it == packet).count(), 200);
        assert!(body.chunks(PACKET).all(|it| it == packet || it == null_packet()));
        until("the connection is gone", || server.admission.n_open() == 0).await;
    }
}

/// A body that is silent for ever must not keep a seat.
#[tokio::test]
async fn a_client_that_half_closed_and_gets_nothing_is_dropped() {
    let server = start(Admission::new(0, 0), NEVER).await;
    for pipelined in ["", "\n"] {
        let answer = server.ask_and_half_close(&format!("GET /silent HTTP/1.0\r\n\r\n{pipelined}")).await;
        assert!(answer.ends_with("begin"), "{answer}");
        until("the connection is gone", || server.admission.n_open() == 0).await;
    }
}

/// A browser that gives up a request closes the connection with FIN where nothing of the answer is unread.
#[tokio::test]
async fn a_client_that_asked_to_keep_the_connection_and_closes_its_side_has_left() {
    let mut server = start(Admission::new(0, 0), NEVER).await;
    for connection in ["keep-alive", "Keep-Alive", "TE, keep-alive"] {
        let head = format!("HTTP/1.1\r\nhost: a\r\nconnection: {connection}\r\n\r\n");
        let answer = server.ask_and_half_close(&format!("GET /refused?60000 {head}")).await;
        assert_eq!(answer, "", "not even an early byte");
        // Also during a live stream.
        let mut socket = server.send(&format!("GET /stream?0 {head}")).await;
        let _writer = server.writers.recv().await.unwrap();
        socket.shutdown().await.unwrap();
        until("the connection is gone", || server.admission.n_open() == 0).await;
    }
}

#[tokio::test]
async fn a_half_closed_client_that_pauses_is_served_again() {
    let mut server = start(Admission::new(0, 0), NEVER).await;
    let mut slow = server.send("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n").await;
    slow.shutdown().await.unwrap();
    let connection = server.seen.recv().await.unwrap();
    let is_paused = || connection.meter.blocked_for(Instant::now()).is_some_and(|it| it > 20 * PROBE_PAUSE);
    until("the socket is full for longer than a response may be silent", is_paused).await;
    let taken = connection.meter.bytes();
    let mut piece = vec![0; 1 << 20];
    while connection.meter.bytes() == taken {
        timeout(WAIT_MAX, slow.read_exact(&mut piece)).await.expect("bytes come").unwrap();
    }
}

#[tokio::test]
async fn an_upgraded_connection_may_be_half_closed_and_silent() {
    let server = start(Admission::new(0, 0), NEVER).await;
    let request = "GET /upgrade HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
    let answer = server.ask_and_half_close(&format!("{request}echo")).await;
    assert!(answer.starts_with("HTTP/1.1 101") && answer.ends_with("\r\n\r\necho"), "{answer}");
}

#[tokio::test]
async fn requests_of_one_connection_share_its_context_and_connections_do_not() {
    let mut server = start(Admission::new(0, 0), NEVER).await;
    let two = "GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    server.ask(two).await;
    let (first, second) = (server.seen.recv().await.unwrap(), server.seen.recv().await.unwrap());
    assert_eq!(first.id, second.id);
    server.ask("GET / HTTP/1.0\r\n\r\n").await;
    assert_ne!(server.seen.recv().await.unwrap().id, first.id);
}

#[tokio::test]
async fn a_draining_server_closes_idle_connections_and_cancels_the_others_at_the_deadline() {
    let mut server = start(Admission::new(0, 0), NEVER).await;
    let mut idle = server.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    server.seen.recv().await.unwrap();
    let mut watching = server.send("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n").await;
    server.seen.recv().await.unwrap();

    server.server.drain();
    assert!(read_all(&mut idle).await.starts_with("HTTP/1.1 200"));
    let is_clean = timeout(WAIT_MAX, server.server.drained(Instant::now())).await.expect("it drains");
    assert!(!is_clean);
    read_all(&mut watching).await;
    assert_eq!(server.admission.n_open(), 0);
    assert!(TcpStream::connect(server.address).await.is_err(), "the port is closed");
}

#[tokio::test]
async fn a_connection_may_send_its_first_request_before_another_process_takes_over() {
    let mut server = start(Admission::new(0, 0), NEVER).await;
    let mut idle = server.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    server.seen.recv().await.unwrap();
    let mut fresh = server.send("").await;
    let accepted = async {
        while server.admission.n_open() < 2 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(WAIT_MAX, accepted).await.expect("it is accepted");

    server.server.drain_after_first_requests();
    assert!(read_all(&mut idle).await.starts_with("HTTP/1.1 200"));
    fresh.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert!(read_all(&mut fresh).await.starts_with("HTTP/1.1 200"));
    assert!(timeout(WAIT_MAX, server.server.drained(Instant::now() + NEVER)).await.expect("it drains"));
}

#[tokio::test]
async fn a_server_without_connections_drains_at_once() {
    let server = start(Admission::new(0, 0), NEVER).await;
    server.server.drain();
    assert!(timeout(WAIT_MAX, server.server.drained(Instant::now() + NEVER)).await.expect("it drains"));
}

/// Fails several times before it accepts.
struct Failing {
    listener: TcpListener,
    errors: Vec<io::Error>,
}

impl Listen for Failing {
    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        match self.errors.pop() {
            Some(error) => Err(error),
            None => self.listener.accept().await,
        }
    }
}

#[tokio::test]
async fn accept_errors_do_not_end_the_loop() {
    const EMFILE: i32 = 24;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let too_many_files = || io::Error::from_raw_os_error(EMFILE);
    let errors = vec![too_many_files(), io::ErrorKind::ConnectionAborted.into(), too_many_files()];
    let server = start_on(Failing { listener, errors }, address, Admission::new(0, 0), NEVER);
    assert!(server.ask("GET / HTTP/1.0\r\n\r\n").await.starts_with("HTTP/1.0 200"));
}

#[tokio::test]
async fn a_panic_in_a_handler_is_a_500_and_the_connection_stays_open() {
    use warp::Filter;

    let panics = warp::path("panic").map(|| -> warp::reply::Response { panic!("on purpose") });
    let fine = warp::path("fine").map(|| warp::Reply::into_response("fine"));
    let routes = panics.or(fine).unify().boxed();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let origins = Arc::new(Origins::new(&Config::default()));
    let handler = crate::route_table(routes, origins, Handle::current(), None);
    let _server = Server::start(listener, handler, Admission::new(0, 0), NEVER, &Handle::current());

    let mut socket = TcpStream::connect(address).await.unwrap();
    let requests =
        "GET /panic HTTP/1.1\r\nhost: a\r\n\r\nGET /fine HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    socket.write_all(requests.as_bytes()).await.unwrap();
    let answers = read_all(&mut socket).await;
    assert!(answers.starts_with("HTTP/1.1 500"), "{answers}");
    assert!(answers.contains("\"detail\":\"internal error\"") && answers.ends_with("fine"), "{answers}");
}

/// Programs put a path behind an address that ends with a slash.
#[tokio::test]
async fn slashes_before_a_path_count_as_one() {
    use warp::Filter;

    let target = warp::path::full().and(warp::query::raw().or(warp::any().map(String::new)).unify());
    let routes = target.map(|path: warp::path::FullPath, query: String| {
        warp::Reply::into_response(format!("<{}?{query}>", path.as_str()))
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let origins = Arc::new(Origins::new(&Config::default()));
    let handler = crate::route_table(routes.boxed(), origins, Handle::current(), None);
    let _server = Server::start(listener, handler, Admission::new(0, 0), NEVER, &Handle::current());
    for (request, expected) in [
        ("GET /proxy/ts HTTP/1.1", "</proxy/ts?>"),
        ("GET //proxy/ts HTTP/1.1", "</proxy/ts?>"),
        ("HEAD //proxy/ts HTTP/1.1", ""),
        ("POST ///proxy/ts?a=//b HTTP/1.0", "</proxy/ts?a=//b>"),
        ("GET // HTTP/1.0", "</?>"),
        ("GET //evil.example/api HTTP/1.1", "</evil.example/api?>"),
        ("GET http://evil.example//proxy//ts?a=b HTTP/1.1", "</proxy//ts?a=b>"),
    ] {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let bytes = format!("{request}\r\nhost: a\r\nconnection: close\r\n\r\n");
        socket.write_all(bytes.as_bytes()).await.unwrap();
        let answer = read_all(&mut socket).await;
        let (head, body) = answer.split_once("\r\n\r\n").expect("a whole head");
        assert!(head.contains(" 200 OK\r\n") && body == expected, "{request}: {answer}");
    }
}

/// Panics when cloned for the first connection.
struct Fragile {
    inner: TestHandler,
    n_clones: Arc<AtomicUsize>,
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(self.n_clones.fetch_add(1, Ordering::SeqCst) > 0, "on purpose");
        Fragile { inner: self.inner.clone(), n_clones: Arc::clone(&self.n_clones) }
    }
}

impl Handler for Fragile {
    type Body = TestBody;

    async fn answer(&self, request: Request<Incoming>) -> Response<TestBody> {
        self.inner.answer(request).await
    }
}

/// Regression: a panic while a connection was admitted ended the loop, and the port accepted no further connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_while_admitting_costs_that_connection_and_not_the_port() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (seen, _receiver) = mpsc::unbounded_channel();
    let inner = TestHandler { seen, writers: mpsc::unbounded_channel().0, n_waiting: Arc::default() };
    let fragile = Fragile { inner, n_clones: Arc::default() };
    let _server = Server::start(listener, fragile, Admission::new(0, 0), NEVER, &Handle::current());
    let answers = async || {
        let mut socket = TcpStream::connect(address).await.unwrap();
        // The first one may be closed before it is written to.
        let _ = socket.write_all(b"GET / HTTP/1.0\r\n\r\n").await;
        read_all(&mut socket).await
    };
    assert_eq!(answers().await, "");
    assert!(answers().await.starts_with("HTTP/1.0 200"));
}
