//! A provider on a real socket that counts its own connections and can simulate every known misbehavior.
//!
//! It has its own thread and runtime, like a separate machine, so that a busy gateway cannot distort its counters. An
//! *account* is the second segment of a path: `/live/anna/news.ts` belongs to `anna`.

mod connection;
mod response;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
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

use self::connection::{register, serve};
pub use self::response::{Behavior, Cut, MockResponse};
use super::signal::{self, Programme};

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

type Compute = dyn Fn(&RecordedRequest) -> Option<MockResponse> + Send + Sync;

/// Computes responses.
#[derive(Clone)]
struct Computed(Arc<Compute>);

impl Computed {
    fn answer(&self, request: &RecordedRequest) -> Option<MockResponse> {
        (self.0)(request)
    }
}

impl fmt::Debug for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Computed")
    }
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
    /// Computes the responses to requests for other paths.
    computed: Option<Computed>,
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
        Provider::start_at(Ipv4Addr::LOCALHOST)
    }

    pub fn start_at(host: Ipv4Addr) -> Provider {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let handle = runtime.handle().clone();
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let thread = std::thread::spawn(move || runtime.block_on(stopped));
        let socket = bound(SocketAddr::from((host, 0)));
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

    /// Computes the responses to requests for paths that have no response of their own.
    pub fn computes<F>(&self, answer: F)
    where
        F: Fn(&RecordedRequest) -> Option<MockResponse> + Send + Sync + 'static,
    {
        self.state.lock().computed = Some(Computed(Arc::new(answer)));
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
