//! Over real sockets, because the sockets are what is promised here. Nothing sleeps in hope: tests wait for what
//! they expect, and only its absence for ever fails them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::*;

/// Long enough for a busy machine, short enough for a person.
const PATIENCE: Duration = Duration::from_secs(20);
const NEVER: Duration = Duration::from_secs(3600);

type TestBody = UnsyncBoxBody<Bytes, Infallible>;

/// Answers `/endless` with an endless body, `/never` never, and everything else with the number of the connection.
#[derive(Clone)]
struct Guests {
    seen: mpsc::UnboundedSender<Arc<Connection>>,
    n_waiting: Arc<AtomicUsize>,
}

impl Handler for Guests {
    type Body = TestBody;

    async fn answer(&self, request: Request<Incoming>) -> Response<TestBody> {
        let connection = Arc::clone(request.extensions().get::<Arc<Connection>>().unwrap());
        let id = connection.id;
        self.seen.send(connection).unwrap();
        match request.uri().path() {
            "/endless" => {
                let piece = Bytes::from(vec![b'x'; 64 << 10]);
                let pieces = futures_util::stream::repeat_with(move || Ok(Frame::data(piece.clone())));
                Response::new(StreamBody::new(pieces).boxed_unsync())
            }
            "/never" => {
                let _waiting = Waiting::begin(&self.n_waiting);
                std::future::pending().await
            }
            _ => Response::new(Full::from(id.to_string()).boxed_unsync()),
        }
    }
}

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

struct Host {
    address: SocketAddr,
    door: Door,
    admission: Arc<Admission>,
    seen: mpsc::UnboundedReceiver<Arc<Connection>>,
    n_waiting: Arc<AtomicUsize>,
}

async fn host(admission: Arc<Admission>, header_timeout: Duration) -> Host {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    host_on(listener, address, admission, header_timeout)
}

fn host_on(
    listener: impl Listen,
    address: SocketAddr,
    admission: Arc<Admission>,
    header_timeout: Duration,
) -> Host {
    let (tx, seen) = mpsc::unbounded_channel();
    let n_waiting = Arc::new(AtomicUsize::new(0));
    let guests = Guests { seen: tx, n_waiting: Arc::clone(&n_waiting) };
    let door = Door::open(listener, guests, Arc::clone(&admission), header_timeout, &Handle::current());
    Host { address, door, admission, seen, n_waiting }
}

impl Host {
    async fn send(&self, request: &str) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        socket
    }

    async fn ask(&self, request: &str) -> String {
        read_all(&mut self.send(request).await).await
    }
}

/// What comes until the other side closes. A reset is an end like any other.
async fn read_all(socket: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, socket.read_to_end(&mut answer)).await.expect("the connection ends");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Waits for something that will be.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_request_that_never_ends_its_head_is_closed_without_an_answer() {
    let host = host(Admission::new(0, 0), Duration::from_millis(200)).await;
    let answer = host.ask("GET / HTTP/1.1\r\nhost: a\r\nx-slow: ").await;
    assert!(!answer.contains("200"), "{answer}");
    let silent = host.ask("").await;
    assert_eq!(silent, "");
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let host = host(Admission::new(0, 0), NEVER).await;
    let many = (0..150).map(|number| format!("x-{number}: y\r\n")).collect::<String>();
    for headers in [many, format!("x-long: {}\r\n", "y".repeat(20 << 10))] {
        let answer = host.ask(&format!("GET / HTTP/1.1\r\nhost: a\r\n{headers}\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
}

#[tokio::test]
async fn a_connection_over_the_limit_is_told_so_and_the_next_one_after_a_place_came_free_is_served() {
    let mut host = host(Admission::new(1, 0), NEVER).await;
    let first = host.send("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n").await;
    host.seen.recv().await.unwrap();

    let refused = host.ask("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{refused}");
    assert!(refused.contains("Retry-After: 3\r\n") && refused.ends_with("}"), "{refused}");

    drop(first);
    until("the place comes free", || host.admission.n_open() == 0).await;
    let served = host.ask("GET / HTTP/1.0\r\n\r\n").await;
    assert!(served.starts_with("HTTP/1.0 200"), "{served}");
}

#[tokio::test]
async fn one_address_cannot_take_all_places() {
    let mut host = host(Admission::new(0, 1), NEVER).await;
    let _first = host.send("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n").await;
    host.seen.recv().await.unwrap();
    let refused = host.ask("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert!(refused.contains("from this address"), "{refused}");
}

#[tokio::test]
async fn an_old_client_gets_an_unframed_body_and_a_new_one_chunks() {
    let host = host(Admission::new(0, 0), NEVER).await;
    let mut old = host.send("GET /endless HTTP/1.0\r\n\r\n").await;
    let mut new = host.send("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n").await;
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
async fn the_meter_of_a_connection_sees_that_its_socket_is_full_and_cancelling_ends_it_all_the_same() {
    let mut host = host(Admission::new(0, 0), NEVER).await;
    let mut stalled = host.send("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let connection = host.seen.recv().await.unwrap();
    until("the socket is full", || connection.meter.blocked_for(Instant::now()).is_some()).await;
    let taken = connection.meter.bytes();
    assert!(taken > 0);

    connection.cancel.cancel();
    until("the connection is gone", || host.admission.n_open() == 0).await;
    // It was reset, so of what the kernel still held for it nothing is delivered for ever after.
    let mut rest = Vec::new();
    let ended = timeout(PATIENCE, stalled.read_to_end(&mut rest)).await.expect("the connection ends");
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_client_that_reads_again_is_not_blocked_any_more() {
    let mut host = host(Admission::new(0, 0), NEVER).await;
    let mut slow = host.send("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let connection = host.seen.recv().await.unwrap();
    until("the socket is full", || connection.meter.blocked_for(Instant::now()).is_some()).await;
    let taken = connection.meter.bytes();
    let mut piece = vec![0; 1 << 20];
    while connection.meter.bytes() == taken {
        timeout(PATIENCE, slow.read_exact(&mut piece)).await.expect("bytes come").unwrap();
    }
}

#[tokio::test]
async fn when_a_client_leaves_before_the_answer_the_handler_ends() {
    let mut host = host(Admission::new(0, 0), NEVER).await;
    let socket = host.send("GET /never HTTP/1.1\r\nhost: a\r\n\r\n").await;
    host.seen.recv().await.unwrap();
    until("the handler waits", || host.n_waiting.load(Ordering::SeqCst) == 1).await;
    drop(socket);
    until("the handler ends", || host.n_waiting.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn requests_of_one_connection_have_one_context_and_connections_have_different_ones() {
    let mut host = host(Admission::new(0, 0), NEVER).await;
    let two = "GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    host.ask(two).await;
    let (first, second) = (host.seen.recv().await.unwrap(), host.seen.recv().await.unwrap());
    assert_eq!(first.id, second.id);
    host.ask("GET / HTTP/1.0\r\n\r\n").await;
    assert_ne!(host.seen.recv().await.unwrap().id, first.id);
}

#[tokio::test]
async fn a_draining_door_lets_idle_connections_go_and_cancels_the_others_at_the_deadline() {
    let mut host = host(Admission::new(0, 0), NEVER).await;
    let mut idle = host.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    host.seen.recv().await.unwrap();
    let mut watching = host.send("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n").await;
    host.seen.recv().await.unwrap();

    host.door.drain();
    assert!(read_all(&mut idle).await.starts_with("HTTP/1.1 200"));
    let is_clean = timeout(PATIENCE, host.door.drained(Instant::now())).await.expect("it drains");
    assert!(!is_clean);
    read_all(&mut watching).await;
    assert_eq!(host.admission.n_open(), 0);
    assert!(TcpStream::connect(host.address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn a_door_without_connections_drains_at_once() {
    let host = host(Admission::new(0, 0), NEVER).await;
    host.door.drain();
    assert!(timeout(PATIENCE, host.door.drained(Instant::now() + NEVER)).await.expect("it drains"));
}

/// Fails some times before it accepts.
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
async fn errors_of_accept_end_nothing() {
    const EMFILE: i32 = 24;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let too_many_files = || io::Error::from_raw_os_error(EMFILE);
    let errors = vec![too_many_files(), io::ErrorKind::ConnectionAborted.into(), too_many_files()];
    let host = host_on(Failing { listener, errors }, address, Admission::new(0, 0), NEVER);
    assert!(host.ask("GET / HTTP/1.0\r\n\r\n").await.starts_with("HTTP/1.0 200"));
}

#[tokio::test]
async fn a_panic_in_a_handler_is_an_answer_of_500_and_the_connection_goes_on() {
    use warp::Filter;

    let panics = warp::path("panic").map(|| -> warp::reply::Response { panic!("on purpose") });
    let fine = warp::path("fine").map(|| crate::http::reply::text(http::StatusCode::OK, "fine"));
    let routes = panics.or(fine).unify().boxed();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let handler = crate::http::route_table(routes, Handle::current());
    let _door = Door::open(listener, handler, Admission::new(0, 0), NEVER, &Handle::current());

    let mut socket = TcpStream::connect(address).await.unwrap();
    let requests =
        "GET /panic HTTP/1.1\r\nhost: a\r\n\r\nGET /fine HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    socket.write_all(requests.as_bytes()).await.unwrap();
    let answers = read_all(&mut socket).await;
    assert!(answers.starts_with("HTTP/1.1 500"), "{answers}");
    assert!(answers.contains("{\"detail\":\"internal error\"}") && answers.ends_with("fine"), "{answers}");
}

/// Cannot be given to the first connection.
struct Fragile {
    guests: Guests,
    n_given: Arc<AtomicUsize>,
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(self.n_given.fetch_add(1, Ordering::SeqCst) > 0, "a defect");
        Fragile { guests: self.guests.clone(), n_given: Arc::clone(&self.n_given) }
    }
}

impl Handler for Fragile {
    type Body = TestBody;

    async fn answer(&self, request: Request<Incoming>) -> Response<TestBody> {
        self.guests.answer(request).await
    }
}

/// What could happen: whatever panicked between two connections ended the loop, and the port took no connection any
/// more.
#[tokio::test(flavor = "multi_thread")]
async fn a_defect_while_a_connection_is_admitted_costs_that_connection_and_not_the_port() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (seen, _kept) = mpsc::unbounded_channel();
    let guests = Guests { seen, n_waiting: Arc::default() };
    let fragile = Fragile { guests, n_given: Arc::default() };
    let _door = Door::open(listener, fragile, Admission::new(0, 0), NEVER, &Handle::current());
    let answers = async || {
        let mut socket = TcpStream::connect(address).await.unwrap();
        // The first one may be closed before it is written to.
        let _ = socket.write_all(b"GET / HTTP/1.0\r\n\r\n").await;
        read_all(&mut socket).await
    };
    assert_eq!(answers().await, "");
    assert!(answers().await.starts_with("HTTP/1.0 200"));
}
