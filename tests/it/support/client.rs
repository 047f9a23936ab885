//! A player: an HTTP client on a real socket that records what it receives and when. It can also misbehave like real
//! players: stop reading, read slowly, or leave with a reset.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::ts_check::Checker;
use super::{WAIT_MAX, eventually};

/// The user agent of requests that name none. It is that of a library, so it stands for any number of viewers, and a request
/// without a user ends nothing.
pub const PLAYER_AGENT: &str = "Lavf/60.16.100";

/// How fast a player takes bytes from its socket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reading {
    Freely,
    /// The socket stays open and nothing is read, as on a phone that sleeps.
    Nothing,
    BytesPerSecond(u32),
}

/// How the response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The body is complete: last chunk, content length, or connection close.
    Whole,
    /// The connection ended in the middle of a chunked or counted body.
    Cut,
    Reset,
}

/// A request, built in steps: `Request::get("/playlist.m3u").header("Range", "bytes=0-")`.
#[derive(Debug, Clone)]
pub struct Request {
    method: &'static str,
    path: String,
    version: &'static str,
    headers: Vec<(String, String)>,
    body: String,
    receive_buffer: Option<u32>,
    reading: Reading,
    records: bool,
}

impl Request {
    pub fn get(path: impl Into<String>) -> Request {
        Request {
            method: "GET",
            path: path.into(),
            version: "HTTP/1.1",
            headers: Vec::new(),
            body: String::new(),
            receive_buffer: None,
            reading: Reading::Freely,
            records: true,
        }
    }

    pub fn head(path: impl Into<String>) -> Request {
        Request { method: "HEAD", ..Request::get(path) }
    }

    pub fn method(mut self, method: &'static str) -> Request {
        self.method = method;
        self
    }

    pub fn http_10(mut self) -> Request {
        self.version = "HTTP/1.0";
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a body with its length.
    pub fn body(mut self, content_type: &str, body: impl Into<String>) -> Request {
        self.body = body.into();
        let length = self.body.len().to_string();
        self.header("Content-Type", content_type).header("Content-Length", &length)
    }

    /// Sets a small receive buffer, so that the kernel buffers little for the player.
    pub fn receive_buffer(mut self, bytes: u32) -> Request {
        self.receive_buffer = Some(bytes);
        self
    }

    pub fn reading(mut self, reading: Reading) -> Request {
        self.reading = reading;
        self
    }

    /// Keeps counters and checks, but not the bytes.
    pub fn without_recording(mut self) -> Request {
        self.records = false;
        self
    }

    fn text(&self, address: SocketAddr) -> String {
        let mut text = format!("{} {} {}\r\n", self.method, self.path, self.version);
        for (default, value) in [("Host", address.to_string()), ("User-Agent", PLAYER_AGENT.to_owned())] {
            if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(default)) {
                text.push_str(&format!("{default}: {value}\r\n"));
            }
        }
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text + "\r\n" + &self.body
    }
}

/// Status line and headers of a response.
#[derive(Debug, Clone, Default)]
pub struct Head {
    pub status: u16,
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// Returns the value of a header; the name is case-insensitive.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    fn parse(text: &str) -> Head {
        let mut lines = text.split("\r\n");
        let code = lines.next().unwrap_or_default().split(' ').nth(1);
        let status = code.and_then(|code| code.parse().ok()).unwrap_or(0);
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
            .collect();
        Head { status, headers }
    }
}

/// Everything that a player has received so far.
#[derive(Debug, Default)]
pub struct Received {
    pub head: Option<Head>,
    pub bytes: Vec<u8>,
    /// Time of each read, with the total number of body bytes after it.
    pub arrivals: Vec<(Instant, u64)>,
    /// Time of each read that contained payload of an elementary stream.
    pub payload_arrivals: Vec<Instant>,
    pub n_bytes: u64,
    pub ended: Option<Ended>,
    pub ts: Checker,
}

impl Received {
    /// Returns the longest time between two reads of payload; filler does not count.
    pub fn longest_silence_of_payload(&self) -> Duration {
        self.payload_arrivals.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
    }
}

/// A complete response.
#[derive(Debug, Clone)]
pub struct Response {
    pub head: Head,
    pub bytes: Vec<u8>,
}

impl Response {
    pub fn status(&self) -> u16 {
        self.head.status
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// One connection with one request on it. Dropping it closes the socket.
#[derive(Debug)]
pub struct Player {
    received: Arc<Mutex<Received>>,
    orders: watch::Sender<Orders>,
    task: JoinHandle<()>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Orders {
    reading: Reading,
    leave: Option<Leave>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Leave {
    Politely,
    ByReset,
}

impl Player {
    /// Sends the request and returns at once; the answer is recorded in the background.
    pub async fn ask(address: SocketAddr, request: Request) -> Player {
        let socket = connect(address, request.receive_buffer).await;
        let received = Arc::new(Mutex::new(Received::default()));
        let (orders, heard) = watch::channel(Orders { reading: request.reading, leave: None });
        let recording = Arc::clone(&received);
        let task = tokio::spawn(async move { listen(socket, address, request, recording, heard).await });
        Player { received, orders, task }
    }

    /// Watches a channel or any other path that streams.
    pub async fn watch(address: SocketAddr, path: &str) -> Player {
        Player::ask(address, Request::get(path)).await
    }

    pub fn received<T>(&self, look: impl FnOnce(&Received) -> T) -> T {
        look(&self.received.lock())
    }

    /// Waits for the head of the response.
    pub async fn head(&self) -> Head {
        let head = || self.received(|r| r.head.clone().or_else(|| r.ended.map(|_| Head::default())));
        eventually("the head of the response", || head().is_some()).await;
        head().expect("waited for it")
    }

    pub async fn status(&self) -> u16 {
        self.head().await.status
    }

    /// Waits until a condition on the received data holds.
    #[track_caller]
    pub fn until<'a>(
        &'a self,
        what: &'a str,
        condition: impl Fn(&Received) -> bool + 'a,
    ) -> impl Future<Output = ()> + 'a {
        let caller = std::panic::Location::caller();
        async move {
            let deadline = Instant::now() + WAIT_MAX;
            while !self.received(&condition) {
                if Instant::now() > deadline {
                    let state = self.received(|r| {
                        let head = r.head.as_ref().map(|head| head.status);
                        format!(
                            "status {head:?}, {} bytes, labels {:?}, ended {:?}",
                            r.n_bytes, r.ts.labels, r.ended
                        )
                    });
                    panic!("{caller}: timeout waiting for {what}; state: {state}");
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }

    /// Waits until this picture plays.
    #[track_caller]
    pub fn sees<'a>(&'a self, label: &'a str) -> impl Future<Output = ()> + 'a {
        self.until(label, move |r| r.ts.showing() == Some(label))
    }

    /// Waits for `n` more body bytes.
    #[track_caller]
    pub fn more_bytes(&self, n: u64) -> impl Future<Output = ()> + '_ {
        let goal = self.received(|r| r.n_bytes) + n;
        self.until("more bytes", move |r| r.n_bytes >= goal)
    }

    pub async fn ended(&self) -> Ended {
        self.until("the end of the response", |r| r.ended.is_some()).await;
        self.received(|r| r.ended).expect("waited for it")
    }

    pub fn is_watching(&self) -> bool {
        self.received(|r| r.head.is_some() && r.ended.is_none())
    }

    /// Waits for the complete response.
    pub async fn answer(&self) -> Response {
        self.ended().await;
        self.received(|r| Response { head: r.head.clone().unwrap_or_default(), bytes: r.bytes.clone() })
    }

    pub fn read(&self, reading: Reading) {
        self.orders.send_modify(|orders| orders.reading = reading);
    }

    /// Closes the connection with FIN, like a player that is stopped. Returns when the socket is closed.
    pub async fn leave(mut self) {
        self.orders.send_modify(|orders| orders.leave = Some(Leave::Politely));
        let _ = (&mut self.task).await;
    }

    /// Closes the connection with RST, like a player that is killed. Returns when the socket is closed.
    pub async fn reset(mut self) {
        self.orders.send_modify(|orders| orders.leave = Some(Leave::ByReset));
        let _ = (&mut self.task).await;
    }

    /// Returns all bytes received so far.
    pub fn recording(&self) -> Vec<u8> {
        self.received(|r| r.bytes.clone())
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Sends one request and waits for the complete response.
pub async fn fetch(address: SocketAddr, request: Request) -> Response {
    Player::ask(address, request.header("Connection", "close")).await.answer().await
}

/// Sends raw bytes and returns everything that is received until the gateway closes.
pub async fn say(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut socket = connect(address, None).await;
    let mut answer = Vec::new();
    // The gateway may close before everything is written; what it sent before counts.
    let _ = socket.write_all(bytes).await;
    let _ =
        tokio::time::timeout(WAIT_MAX, socket.read_to_end(&mut answer)).await.expect("the gateway closes");
    answer
}

pub async fn connect(address: SocketAddr, receive_buffer: Option<u32>) -> TcpStream {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.expect("a socket");
    if let Some(bytes) = receive_buffer {
        socket.set_recv_buffer_size(bytes).expect("a receive buffer");
    }
    socket.connect(address).await.expect("the gateway accepts connections")
}

async fn listen(
    mut socket: TcpStream,
    address: SocketAddr,
    request: Request,
    received: Arc<Mutex<Received>>,
    mut orders: watch::Receiver<Orders>,
) {
    let mut unwrapper = Unwrapper::new(request.method == "HEAD");
    let mut buffer = vec![0; 64 << 10];
    let mut ended = None;
    if socket.write_all(request.text(address).as_bytes()).await.is_err() {
        ended = Some(Ended::Reset);
    }
    while ended.is_none() {
        let order = *orders.borrow_and_update();
        match order.leave {
            Some(Leave::ByReset) => {
                let _ = socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO));
                return;
            }
            Some(Leave::Politely) => return,
            None => {}
        }
        let window = match order.reading {
            Reading::Freely => buffer.len(),
            Reading::Nothing => {
                let _ = orders.changed().await;
                continue;
            }
            Reading::BytesPerSecond(rate) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                (rate as usize / 50).clamp(1, buffer.len())
            }
        };
        let n = tokio::select! {
            _ = orders.changed() => continue,
            n = socket.read(&mut buffer[..window]) => n,
        };
        match n {
            Ok(0) => ended = Some(unwrapper.at_eof()),
            Err(_) => ended = Some(Ended::Reset),
            Ok(n) => {
                let mut received = received.lock();
                if unwrapper.push(&buffer[..n], &mut received, request.records) {
                    ended = Some(Ended::Whole);
                }
            }
        }
    }
    let mut received = received.lock();
    if ended == Some(Ended::Whole) {
        // A stream that was cut off may end anywhere.
        received.ts.finish();
    }
    received.ended = ended;
}

/// Removes the head and the transfer coding from a response.
#[derive(Debug)]
struct Unwrapper {
    head: Vec<u8>,
    framing: Option<Framing>,
    is_head_request: bool,
}

#[derive(Debug)]
enum Framing {
    Chunked { left: u64, line: Vec<u8>, after_data: bool },
    Counted { left: u64 },
    UntilClosed,
}

impl Unwrapper {
    fn new(is_head_request: bool) -> Unwrapper {
        Unwrapper { head: Vec::new(), framing: None, is_head_request }
    }

    /// Returns true when the response is complete.
    fn push(&mut self, bytes: &[u8], received: &mut Received, records: bool) -> bool {
        let mut rest = bytes;
        if self.framing.is_none() {
            self.head.extend_from_slice(rest);
            let Some(end) = self.head.windows(4).position(|window| window == b"\r\n\r\n") else {
                return false;
            };
            let head = Head::parse(&String::from_utf8_lossy(&self.head[..end]));
            // The bytes after the head in this read are the start of the body.
            rest = &rest[rest.len() - (self.head.len() - end - 4)..];
            self.framing =
                Some(if head.header("transfer-encoding").is_some_and(|value| value == "chunked") {
                    Framing::Chunked { left: 0, line: Vec::new(), after_data: false }
                } else if let Some(left) = head.header("content-length").and_then(|value| value.parse().ok())
                {
                    Framing::Counted { left }
                } else {
                    Framing::UntilClosed
                });
            let without_body = self.is_head_request || matches!(head.status, 204 | 304);
            received.head = Some(head);
            if without_body {
                return true;
            }
        }
        match self.framing.as_mut().expect("set above") {
            Framing::UntilClosed => {
                record(rest, received, records);
                false
            }
            Framing::Counted { left } => {
                let taken = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                record(&rest[..taken], received, records);
                *left -= taken as u64;
                *left == 0
            }
            Framing::Chunked { left, line, after_data } => {
                while !rest.is_empty() {
                    if *left > 0 {
                        let taken = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                        record(&rest[..taken], received, records);
                        rest = &rest[taken..];
                        *left -= taken as u64;
                        *after_data = *left == 0;
                        continue;
                    }
                    line.push(rest[0]);
                    rest = &rest[1..];
                    if !line.ends_with(b"\r\n") {
                        continue;
                    }
                    if std::mem::take(after_data) {
                        assert_eq!(line.as_slice(), b"\r\n", "a chunk ends with a line break");
                    } else {
                        let text = String::from_utf8_lossy(&line[..line.len() - 2]).into_owned();
                        let size = text.split(';').next().unwrap_or_default();
                        *left = u64::from_str_radix(size.trim(), 16).expect("a chunk begins with its size");
                        if *left == 0 {
                            return true;
                        }
                    }
                    line.clear();
                }
                false
            }
        }
    }

    fn at_eof(&self) -> Ended {
        match self.framing {
            Some(Framing::UntilClosed) => Ended::Whole,
            _ => Ended::Cut,
        }
    }
}

fn record(bytes: &[u8], received: &mut Received, records: bool) {
    if bytes.is_empty() {
        return;
    }
    received.n_bytes += bytes.len() as u64;
    let total = received.n_bytes;
    received.arrivals.push((Instant::now(), total));
    let is_stream = received.head.as_ref().and_then(|head| head.header("content-type")) == Some("video/mp2t");
    if is_stream {
        let before = received.ts.payload_packets;
        received.ts.push(bytes);
        if received.ts.payload_packets > before {
            received.payload_arrivals.push(Instant::now());
        }
    }
    if records {
        received.bytes.extend_from_slice(bytes);
    }
}
