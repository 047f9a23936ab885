//! A provider on a real socket that counts its own connections and can simulate every known misbehavior.
//!
//! It has its own thread and runtime, like a separate machine, so that a busy gateway cannot distort its counters. An
//! *account* is the second segment of a path: `/live/anna/news.ts` belongs to `anna`.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, SockRef, Socket, Type};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::signal::{Programme, Tuned};

const TICK: Duration = Duration::from_millis(10);
const PACKET: usize = 188;

/// The response of a path to a new request.
#[derive(Debug, Clone)]
pub struct MockResponse {
    head: Head,
    body: Body,
    /// Delay before the first byte of the head.
    delay: Duration,
    /// How much of its past a live programme sends at once.
    burst: Duration,
    /// The programme is sent in pieces of this length, each at once; zero sends it evenly.
    clump: Duration,
    /// Number of body bytes after which this connection ends by itself.
    ends_after: Option<(u64, Cut)>,
}

#[derive(Debug, Clone)]
enum Head {
    Plain,
    Chunked,
    Icy,
    /// Only the body, like very old servers.
    None,
    Status(u16, String),
    Redirect(String),
    /// The request is read and never answered.
    Never,
}

#[derive(Debug, Clone)]
enum Body {
    Programme(Programme),
    /// With its content type.
    Bytes(&'static str, Vec<u8>),
    /// The head announces a stream, but no data follows.
    Nothing,
    /// The head announces a stream, then the connection ends.
    Empty,
}

impl MockResponse {
    pub fn play(programme: impl Into<Programme>) -> MockResponse {
        MockResponse::of(Head::Plain, Body::Programme(programme.into()))
    }

    pub fn status(code: u16) -> MockResponse {
        MockResponse::of(
            Head::Status(code, String::new()),
            Body::Bytes("text/plain", format!("status {code}\n").into()),
        )
    }

    /// Responds with a status and further header lines, each terminated by CR LF.
    pub fn status_with(code: u16, headers: &str) -> MockResponse {
        MockResponse::of(
            Head::Status(code, headers.into()),
            Body::Bytes("text/plain", format!("status {code}\n").into()),
        )
    }

    pub fn html() -> MockResponse {
        let page =
            "<!DOCTYPE html><html><body><h1>Your subscription has expired</h1></body></html>".repeat(40);
        MockResponse::text("text/html", page)
    }

    pub fn text(content_type: &'static str, body: impl Into<Vec<u8>>) -> MockResponse {
        MockResponse::of(Head::Plain, Body::Bytes(content_type, body.into()))
    }

    /// Sends a file as a web server does: with its length, and as fast as it is read.
    pub fn recording(bytes: &[u8]) -> MockResponse {
        MockResponse::text("video/mp2t", bytes)
    }

    pub fn empty() -> MockResponse {
        MockResponse::of(Head::Plain, Body::Empty)
    }

    /// Reads the request and sends nothing.
    pub fn mute() -> MockResponse {
        MockResponse::of(Head::Never, Body::Nothing)
    }

    /// Sends a valid head and no body.
    pub fn silent_body() -> MockResponse {
        MockResponse::of(Head::Plain, Body::Nothing)
    }

    pub fn redirect(to: impl Into<String>) -> MockResponse {
        MockResponse::of(Head::Redirect(to.into()), Body::Bytes("text/plain", "moved\n".into()))
    }

    fn of(head: Head, body: Body) -> MockResponse {
        MockResponse {
            head,
            body,
            delay: Duration::ZERO,
            burst: Duration::ZERO,
            clump: Duration::ZERO,
            ends_after: None,
        }
    }

    pub fn chunked(mut self) -> MockResponse {
        self.head = Head::Chunked;
        self
    }

    pub fn icy(mut self) -> MockResponse {
        self.head = Head::Icy;
        self
    }

    pub fn headless(mut self) -> MockResponse {
        self.head = Head::None;
        self
    }

    pub fn after(mut self, delay: Duration) -> MockResponse {
        self.delay = delay;
        self
    }

    /// Sends the programme in bursts of this length, starting with one.
    pub fn in_bursts(mut self, length: Duration) -> MockResponse {
        (self.burst, self.clump) = (length, length);
        self
    }

    pub fn with_burst(mut self, past: Duration) -> MockResponse {
        self.burst = past;
        self
    }

    /// Ends every connection in this way after this many body bytes.
    pub fn until(mut self, bytes: u64, cut: Cut) -> MockResponse {
        self.ends_after = Some((bytes, cut));
        self
    }
}

/// The packets that the running connections of a path send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Behavior {
    Healthy,
    Stalled,
    /// Valid packets, at this fraction of their rate.
    Trickle(f64),
    Garbage,
    OnlyNulls,
    /// Complete packets of a programme that no table announces.
    Unannounced,
    /// Clear tables and scrambled streams.
    Scrambled,
    /// Some bytes are missing now and then, so packets are torn.
    Torn,
}

/// How a connection ends, always in the middle of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    Reset,
    End,
    /// The connection stays open and no more data comes.
    Stall,
}

/// A recorded request.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub at: Instant,
    pub method: String,
    pub path: String,
    pub head: String,
}

impl RecordedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.split("\r\n").filter_map(|line| line.split_once(':'));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// The limits of an account.
#[derive(Debug, Clone)]
struct Account {
    max: usize,
    refusal: u16,
    /// How long a closed connection still counts.
    release: Duration,
}

#[derive(Debug)]
struct Connection {
    socket: Option<Arc<TcpStream>>,
    account: Option<String>,
    path: Option<String>,
    accepted_at: Instant,
    /// Connections that were open when this one was accepted.
    beside: Vec<u64>,
    closed_at: Option<Instant>,
    /// Number of cuts of its path when it started.
    cuts_seen: usize,
    resets_seen: usize,
    /// A refused connection never counts as a stream.
    refused: bool,
}

#[derive(Debug, Default)]
struct State {
    connections: BTreeMap<u64, Connection>,
    accepted: u64,
    peak: usize,
    peaks: BTreeMap<String, usize>,
    requests: Vec<RecordedRequest>,
    answers: BTreeMap<String, MockResponse>,
    /// Responses to the next requests, each used once, before those of `answers`.
    first_answers: BTreeMap<String, VecDeque<MockResponse>>,
    behaviors: BTreeMap<String, Behavior>,
    cuts: BTreeMap<String, Vec<Cut>>,
    accounts: BTreeMap<String, Account>,
    resets: usize,
    close_delay: Duration,
    refusals: usize,
}

impl State {
    /// Asks the kernel which connections have ended, before anything is counted.
    fn sweep(&mut self) {
        let delayed = !self.close_delay.is_zero();
        for connection in self.connections.values_mut().filter(|c| c.closed_at.is_none()) {
            let Some(socket) = &connection.socket else { continue };
            // Polled, not read: an unread request would hide the end of the connection.
            let mut look = [PollFd::new(socket.as_ref(), PollFlags::RDHUP)];
            let looked = poll(&mut look, Some(&Timespec::default()));
            let seen = look[0].revents();
            let broken = looked.is_err() || seen.intersects(PollFlags::ERR | PollFlags::HUP);
            let finished = seen.contains(PollFlags::RDHUP);
            if broken || (finished && !delayed) {
                connection.closed_at = Some(Instant::now());
            }
        }
    }

    fn open(&self, account: Option<&str>) -> usize {
        let of_account = |c: &&Connection| account.is_none() || c.account.as_deref() == account;
        self.connections.values().filter(|c| c.closed_at.is_none()).filter(of_account).count()
    }

    /// Assigns a connection to the account of its request. The peak counts the connections that were open when it was
    /// accepted.
    fn assign(&mut self, id: u64, path: &str) -> Option<u16> {
        self.sweep();
        let account = account_of(path);
        let cuts_seen = self.cuts.get(path).map_or(0, Vec::len);
        let connection = self.connections.get_mut(&id)?;
        connection.account = Some(account.clone());
        connection.path = Some(path.into());
        connection.cuts_seen = cuts_seen;
        let beside = std::mem::take(&mut connection.beside);
        let of_account = |c: &&Connection| c.account.as_deref() == Some(account.as_str());
        let n = beside.iter().filter_map(|id| self.connections.get(id)).filter(of_account).count();
        let peak = self.peaks.entry(account.clone()).or_default();
        *peak = (*peak).max(n + 1);
        let limits = self.accounts.get(&account)?;
        let counts = |c: &&Connection| match c.closed_at {
            _ if c.refused => false,
            None => true,
            Some(at) => at.elapsed() < limits.release,
        };
        let others = self.connections.iter().filter(|(other, _)| **other != id).map(|(_, c)| c);
        let taken = others.filter(|c| c.account.as_deref() == Some(account.as_str())).filter(counts).count();
        if limits.max > 0 && taken >= limits.max {
            let refusal = limits.refusal;
            self.refusals += 1;
            self.connections.get_mut(&id)?.refused = true;
            return Some(refusal);
        }
        None
    }
}

fn account_of(path: &str) -> String {
    path.split('/').nth(2).unwrap_or_default().to_owned()
}

/// The provider. Dropping it closes all its sockets.
#[derive(Debug)]
pub struct Provider {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
    began: Instant,
    stop: CancellationToken,
    listener: Mutex<Option<(CancellationToken, JoinHandle<()>)>>,
    /// Keeps the port reserved while nothing listens on it.
    reserved: Mutex<Option<Socket>>,
    runtime: tokio::runtime::Handle,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Provider {
    pub fn start() -> Provider {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let handle = runtime.handle().clone();
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let thread = std::thread::spawn(move || runtime.block_on(stopped));
        let socket = bound(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let address = socket.local_addr().ok().and_then(|address| address.as_socket()).expect("an address");
        let provider = Provider {
            address,
            state: Arc::default(),
            began: Instant::now(),
            stop,
            listener: Mutex::new(None),
            reserved: Mutex::new(Some(socket)),
            runtime: handle,
            thread: Some(thread),
        };
        provider.plug_in();
        provider
    }

    /// Returns one path of the provider; it responds with 404 until it is configured.
    pub fn path<'a>(&'a self, path: &'a str) -> Path<'a> {
        Path { provider: self, path }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the start time of its programmes.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Limits an account to `max` connections; further ones are answered with `refusal`, and a closed one still counts
    /// for `release`.
    pub fn limit(&self, account: &str, max: usize, refusal: u16, release: Duration) {
        self.state.lock().accounts.insert(account.into(), Account { max, refusal, release });
    }

    /// Sets how long the provider waits to close its side after the gateway did; the connection counts meanwhile.
    pub fn close_delay(&self, delay: Duration) {
        self.state.lock().close_delay = delay;
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> usize {
        let mut state = self.state.lock();
        state.sweep();
        state.open(None)
    }

    /// Returns the number of open connections on a path.
    pub fn open_on(&self, path: &str) -> usize {
        let mut state = self.state.lock();
        state.sweep();
        let open = state.connections.values().filter(|c| c.closed_at.is_none());
        open.filter(|c| c.path.as_deref() == Some(path)).count()
    }

    /// Returns the number of open connections that have sent a request. Others may have been abandoned before they were
    /// accepted.
    pub fn open_with_request(&self) -> usize {
        let mut state = self.state.lock();
        state.sweep();
        state.connections.values().filter(|it| it.closed_at.is_none() && it.path.is_some()).count()
    }

    /// Forgets ended connections and recorded requests, which would fill the memory in a long run. Does nothing while a
    /// connection is open.
    pub fn forget(&self) {
        let mut state = self.state.lock();
        state.sweep();
        if state.open(None) == 0 {
            state.connections.clear();
            state.requests = Vec::new();
            state.cuts.clear();
        }
    }

    /// Returns the highest number of simultaneous connections.
    pub fn peak(&self) -> usize {
        self.state.lock().peak
    }

    pub fn peak_of(&self, account: &str) -> usize {
        self.state.lock().peaks.get(account).copied().unwrap_or(0)
    }

    /// Describes for how long each pair of connections of an account was open together, oldest first.
    pub fn overlaps(&self, account: &str) -> Vec<String> {
        let state = self.state.lock();
        let of_account = |c: &&Connection| c.account.as_deref() == Some(account);
        let all: Vec<_> = state.connections.values().filter(of_account).collect();
        let mut told = Vec::new();
        for (at, later) in all.iter().enumerate() {
            for earlier in &all[..at] {
                let ended = earlier.closed_at.unwrap_or_else(Instant::now);
                let together = ended.saturating_duration_since(later.accepted_at);
                if !together.is_zero() {
                    let is_open = if earlier.closed_at.is_none() { ", still open" } else { "" };
                    let paths = [&earlier.path, &later.path].map(|it| it.as_deref().unwrap_or_default());
                    told.push(format!("{} and {}: {together:?}{is_open}", paths[0], paths[1]));
                }
            }
        }
        told
    }

    /// Returns the number of accepted connections, with or without a request.
    pub fn accepted(&self) -> u64 {
        self.state.lock().accepted
    }

    /// Returns the number of requests refused because the account was at its limit.
    pub fn refusals(&self) -> usize {
        self.state.lock().refusals
    }

    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.state.lock().requests.clone()
    }

    /// Returns a playlist of (tvg-id, name, path).
    pub fn playlist(&self, entries: &[(&str, &str, &str)]) -> String {
        let mut text = String::from("#EXTM3U\n");
        for (id, name, path) in entries {
            let id = if id.is_empty() { String::new() } else { format!(" tvg-id=\"{id}\"") };
            text.push_str(&format!("#EXTINF:-1{id} tvg-name=\"{name}\",{name}\n{}\n", self.url(path)));
        }
        text
    }

    /// Resets all connections and refuses new ones, like a pulled plug.
    pub async fn unplug(&self) {
        let listener = self.listener.lock().take();
        let Some((listening, task)) = listener else { return };
        // Bind the port again before it is released, so that no other process takes it.
        let reserved = bound(self.address);
        listening.cancel();
        let _ = task.await;
        *self.reserved.lock() = Some(reserved);
        self.state.lock().resets += 1;
        super::eventually("the provider's sockets to be reset", || self.open() == 0).await;
    }

    /// Listens again on the same port.
    pub fn plug_in(&self) {
        let Some(socket) = self.reserved.lock().take() else { return };
        socket.listen(1024).expect("the port is reserved");
        socket.set_nonblocking(true).expect("a socket can be made non-blocking");
        let listening = self.stop.child_token();
        let stopped = listening.clone();
        let (state, began) = (Arc::clone(&self.state), self.began);
        let task = self.runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(socket.into()).expect("a listening socket");
            loop {
                let accepted = tokio::select! {
                    _ = stopped.cancelled() => return,
                    accepted = listener.accept() => accepted,
                };
                let Ok((socket, _)) = accepted else { continue };
                let socket = Arc::new(socket);
                let id = register(&state, &socket);
                let state = Arc::clone(&state);
                tokio::spawn(async move {
                    serve(&state, began, id, &socket).await;
                });
            }
        });
        *self.listener.lock() = Some((listening, task));
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A reserved port without a listener: connections are refused.
#[derive(Debug)]
pub struct ClosedPort(Socket);

impl ClosedPort {
    pub fn new() -> ClosedPort {
        ClosedPort(bound(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))
    }

    pub fn url(&self, path: &str) -> String {
        let address = self.0.local_addr().ok().and_then(|address| address.as_socket()).expect("an address");
        format!("http://{address}{path}")
    }
}

/// The behavior and the statistics of one path.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    provider: &'a Provider,
    path: &'a str,
}

impl Path<'_> {
    /// Sets the response to future requests.
    pub fn answers(self, answer: MockResponse) -> Self {
        self.provider.state.lock().answers.insert(self.path.into(), answer);
        self
    }

    /// Sets the responses to the next requests, one each; after them follow those of [`Path::answers`].
    pub fn answers_first(self, answers: impl IntoIterator<Item = MockResponse>) -> Self {
        let mut state = self.provider.state.lock();
        state.first_answers.insert(self.path.into(), answers.into_iter().collect());
        drop(state);
        self
    }

    pub fn plays(self, programme: impl Into<Programme>) -> Self {
        self.answers(MockResponse::play(programme))
    }

    /// Sets the behavior of current and future connections.
    pub fn behaves(self, behavior: Behavior) -> Self {
        self.provider.state.lock().behaviors.insert(self.path.into(), behavior);
        self
    }

    /// Ends the current connections on this path, each in the middle of a packet.
    pub fn cut(self, cut: Cut) -> Self {
        self.provider.state.lock().cuts.entry(self.path.into()).or_default().push(cut);
        self
    }

    pub fn requests(self) -> Vec<RecordedRequest> {
        self.provider.requests().into_iter().filter(|seen| seen.path == self.path).collect()
    }

    pub fn n_requests(self) -> usize {
        self.requests().len()
    }

    pub fn open(self) -> usize {
        self.provider.open_on(self.path)
    }
}

fn bound(address: SocketAddr) -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_reuse_address(true).expect("an address can be used again");
    // Allows the next socket to bind while this one listens.
    socket.set_reuse_port(true).expect("an address can be bound twice");
    socket.bind(&address.into()).expect("the port is free");
    socket
}

/// Counts a new connection, after it has removed those that ended.
fn register(state: &Mutex<State>, socket: &Arc<TcpStream>) -> u64 {
    let mut state = state.lock();
    state.sweep();
    let id = state.accepted;
    state.accepted += 1;
    let beside = state.connections.iter().filter(|(_, c)| c.closed_at.is_none()).map(|(id, _)| *id).collect();
    let connection = Connection {
        socket: Some(Arc::clone(socket)),
        account: None,
        path: None,
        accepted_at: Instant::now(),
        beside,
        closed_at: None,
        cuts_seen: 0,
        resets_seen: state.resets,
        refused: false,
    };
    state.connections.insert(id, connection);
    state.peak = state.peak.max(state.open(None));
    id
}

/// The next action of a connection, decided under the lock.
enum Order {
    Send(Behavior),
    Cut(Cut),
}

async fn serve(state: &Mutex<State>, began: Instant, id: u64, socket: &TcpStream) {
    let outcome = converse(state, began, id, socket).await;
    if outcome.is_none() {
        let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
    }
    let mut state = state.lock();
    if let Some(connection) = state.connections.get_mut(&id) {
        connection.closed_at.get_or_insert_with(Instant::now);
        connection.socket = None;
    }
}

/// Serves one connection until its end; returns `None` if it must end with a reset.
async fn converse(state: &Mutex<State>, began: Instant, id: u64, socket: &TcpStream) -> Option<()> {
    let Some(head) = read_head(socket).await else { return Some(()) };
    let mut words = head.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let (refused, answer) = {
        let mut state = state.lock();
        let refused = state.assign(id, &path);
        state.requests.push(RecordedRequest { at: Instant::now(), method, path: path.clone(), head });
        let first = state.first_answers.get_mut(&path).and_then(VecDeque::pop_front);
        (refused, first.or_else(|| state.answers.get(&path).cloned()))
    };
    let answer = match refused {
        Some(code) => MockResponse::status(code),
        None => answer.unwrap_or_else(|| MockResponse::status(404)),
    };
    let exchange = Exchange { state, id, socket, path };
    let Some(end) = exchange.answer(answer, began).await else { return Some(()) };
    match end {
        Cut::Reset => None,
        Cut::End => Some(()),
        Cut::Stall => {
            exchange.hold().await;
            Some(())
        }
    }
}

async fn read_head(socket: &TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        socket.readable().await.ok()?;
        let mut buffer = [0; 4096];
        match socket.try_read(&mut buffer) {
            Ok(0) => return None,
            Ok(n) => head.extend_from_slice(&buffer[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// A connection with its request.
struct Exchange<'a> {
    state: &'a Mutex<State>,
    id: u64,
    socket: &'a TcpStream,
    path: String,
}

impl Exchange<'_> {
    /// Returns how the connection is to end, or `None` if the client has closed it.
    async fn answer(&self, answer: MockResponse, began: Instant) -> Option<Cut> {
        let type_of_body = match &answer.body {
            Body::Bytes(kind, bytes) => {
                format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", bytes.len())
            }
            _ => "Content-Type: video/mp2t\r\n".into(),
        };
        let chunked = matches!(answer.head, Head::Chunked);
        let head = match &answer.head {
            Head::Plain => format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{type_of_body}\r\n"),
            Head::Chunked => format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{type_of_body}\r\n"),
            Head::Icy => "ICY 200 OK\r\nicy-name: test\r\nContent-Type: video/mp2t\r\n\r\n".into(),
            Head::None => String::new(),
            Head::Status(code, more) => {
                format!("HTTP/1.1 {code} Whatever\r\nConnection: close\r\n{more}{type_of_body}\r\n")
            }
            Head::Redirect(to) => {
                format!("HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: {to}\r\n{type_of_body}\r\n")
            }
            Head::Never => return Some(Cut::Stall),
        };
        self.wait(answer.delay).await?;
        self.write(head.as_bytes()).await?;
        match answer.body {
            Body::Bytes(_, bytes) => {
                self.write(&bytes).await?;
                Some(Cut::End)
            }
            Body::Nothing => Some(Cut::Stall),
            Body::Empty => Some(Cut::End),
            Body::Programme(programme) => {
                let tuned = programme.tune_in(began.elapsed().saturating_sub(answer.burst)).numbered(self.id);
                let sender = Sender { exchange: self, chunked, sent: 0, ends_after: answer.ends_after };
                sender.play(tuned, answer.burst, answer.clump).await
            }
        }
    }

    fn order(&self) -> Order {
        let mut state = self.state.lock();
        let behavior = state.behaviors.get(&self.path).copied().unwrap_or(Behavior::Healthy);
        let resets = state.resets;
        let cuts = state.cuts.get(&self.path).cloned().unwrap_or_default();
        let Some(connection) = state.connections.get_mut(&self.id) else { return Order::Cut(Cut::Reset) };
        if connection.resets_seen < resets {
            return Order::Cut(Cut::Reset);
        }
        if let Some(&cut) = cuts.get(connection.cuts_seen) {
            connection.cuts_seen += 1;
            return Order::Cut(cut);
        }
        Order::Send(behavior)
    }

    /// Writes all bytes; returns `None` if the client has closed the connection.
    async fn write(&self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            tokio::select! {
                _ = self.gone() => return None,
                ready = self.socket.writable() => ready.ok()?,
            }
            match self.socket.try_write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if let Order::Cut(Cut::Reset) = self.order() {
                        let _ = SockRef::from(self.socket).set_linger(Some(Duration::ZERO));
                        return None;
                    }
                }
                Err(_) => return None,
            }
        }
        Some(())
    }

    async fn wait(&self, time: Duration) -> Option<()> {
        tokio::select! {
            _ = self.gone() => None,
            _ = tokio::time::sleep(time) => Some(()),
        }
    }

    /// Keeps the connection open without data until the client closes it or a cut ends it.
    async fn hold(&self) {
        while self.wait(TICK).await.is_some() {
            if let Order::Cut(cut) = self.order() {
                if cut == Cut::Reset {
                    let _ = SockRef::from(self.socket).set_linger(Some(Duration::ZERO));
                }
                if cut != Cut::Stall {
                    return;
                }
            }
        }
    }

    /// Returns when the client has closed the connection and the close delay has passed.
    async fn gone(&self) {
        let mut buffer = [0; 512];
        loop {
            if self.socket.readable().await.is_err() {
                return;
            }
            match self.socket.try_read(&mut buffer) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
        let delay = self.state.lock().close_delay;
        if !delay.is_zero() {
            let reset = async {
                while matches!(SockRef::from(self.socket).take_error(), Ok(None)) {
                    tokio::time::sleep(TICK).await;
                }
            };
            let _ = tokio::time::timeout(delay, reset).await;
        }
    }
}

/// Sends a programme at the pace of its clock.
struct Sender<'a> {
    exchange: &'a Exchange<'a>,
    chunked: bool,
    sent: u64,
    ends_after: Option<(u64, Cut)>,
}

impl Sender<'_> {
    async fn play(mut self, mut tuned: Tuned, burst: Duration, clump: Duration) -> Option<Cut> {
        let start = Instant::now();
        let mut noise = 0x2545_F491_4F6C_DD1D_u64;
        // After a trickle the programme stays behind; it never catches up.
        let (mut programme_time, mut last) = (burst, start);
        let mut lossy = false;
        let mut due = Vec::new();
        loop {
            let order = self.exchange.order();
            let now = Instant::now();
            let step = now - last;
            last = now;
            let behavior = match order {
                // After data loss the stream must not continue as if nothing were missing.
                Order::Cut(cut) if lossy => return Some(cut),
                Order::Cut(cut) => return self.torn(&mut tuned, programme_time, cut).await,
                Order::Send(behavior) => behavior,
            };
            lossy = !matches!(behavior, Behavior::Healthy | Behavior::Trickle(_));
            programme_time +=
                if let Behavior::Trickle(share) = behavior { step.mul_f64(share) } else { step };
            due.clear();
            let n_clumps = programme_time.as_nanos().checked_div(clump.as_nanos());
            tuned.take(n_clumps.map_or(programme_time, |n| clump * n as u32), &mut due);
            spoil(behavior, &mut due, &mut noise);
            if let Some((bytes, cut)) = self.ends_after
                && self.sent + due.len() as u64 >= bytes
            {
                due.truncate((bytes - self.sent) as usize);
                self.send(&due).await?;
                return Some(cut);
            }
            self.send(&due).await?;
            if tuned.is_over() {
                if self.chunked {
                    self.exchange.write(b"0\r\n\r\n").await?;
                }
                return Some(Cut::End);
            }
            self.exchange.wait(TICK).await?;
        }
    }

    /// Ends the connection in the middle of a packet.
    async fn torn(&mut self, tuned: &mut Tuned, time: Duration, cut: Cut) -> Option<Cut> {
        let mut due = Vec::new();
        tuned.take(time + super::signal::FRAME * 2, &mut due);
        due.truncate((due.len() / PACKET).saturating_sub(1) * PACKET + 77);
        self.send(&due).await?;
        Some(cut)
    }

    async fn send(&mut self, bytes: &[u8]) -> Option<()> {
        if bytes.is_empty() {
            return Some(());
        }
        self.sent += bytes.len() as u64;
        if !self.chunked {
            return self.exchange.write(bytes).await;
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.exchange.write(&chunk).await
    }
}

/// Modifies good packets according to the behavior.
fn spoil(behavior: Behavior, packets: &mut Vec<u8>, noise: &mut u64) {
    match behavior {
        Behavior::Healthy | Behavior::Trickle(_) => {}
        Behavior::Stalled => packets.clear(),
        Behavior::Garbage => packets.iter_mut().for_each(|byte| {
            *noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = ((*noise >> 56) as u8 & 0xBF).max(1) ^ 0x80;
        }),
        Behavior::OnlyNulls => packets.chunks_mut(PACKET).for_each(|packet| {
            packet[1..4].copy_from_slice(&[0x1F, 0xFF, 0x10]);
        }),
        Behavior::Unannounced => packets.chunks_mut(PACKET).for_each(|packet| {
            // Tables stay unchanged, so they keep announcing streams that do not come.
            if packet[1] & 0x1F != 0x10 && packet[1..3] != [0x40, 0] {
                (packet[1], packet[2]) = (0x1A, 0x80 | packet[2]);
            }
        }),
        Behavior::Scrambled => packets.chunks_mut(PACKET).for_each(|packet| {
            if packet[1] & 0x1F != 0x10 && packet[1..3] != [0x40, 0] {
                packet[3] |= 0x80;
            }
        }),
        Behavior::Torn => {
            if packets.len() > 20 * PACKET {
                packets.drain(5 * PACKET + 31..6 * PACKET);
            }
        }
    }
}
