//! A web server that receives the requests of webhooks and notes them.
//!
//! It has its own thread and runtime, like a separate machine.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::eventually;

/// A request that was received.
#[derive(Debug, Clone)]
pub struct SentRequest {
    pub at: Instant,
    pub method: String,
    pub path: String,
    /// Names are in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl SentRequest {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Returns the body, which has to be JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Returns the status and the body of an answer to a request.
type Service = Box<dyn Fn(&SentRequest) -> (u16, String) + Send>;

/// The server. It stops when this is dropped.
pub struct WebTarget {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _running: DropGuard,
}

#[derive(Default)]
struct State {
    requests: Vec<SentRequest>,
    /// Statuses of the next answers by path; afterwards it is 204.
    statuses: BTreeMap<String, VecDeque<u16>>,
    services: BTreeMap<String, Service>,
}

impl WebTarget {
    pub fn start() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let stop = CancellationToken::new();
        let (sender, address) = std::sync::mpsc::channel();
        let (shared, stopped) = (state.clone(), stop.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("the test server works");
            runtime.block_on(stopped.run_until_cancelled(async {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
                sender.send(listener.local_addr().expect("an address")).expect("the test waits");
                while let Ok((socket, _)) = listener.accept().await {
                    tokio::spawn(serve(socket, shared.clone()));
                }
            }));
        });
        let address = address.recv().expect("the test server works");
        Self { address, state, _running: stop.drop_guard() }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sets the statuses of the next answers on a path.
    pub fn answers(&self, path: &str, statuses: impl IntoIterator<Item = u16>) {
        self.state.lock().statuses.entry(path.to_owned()).or_default().extend(statuses);
    }

    /// Lets a function answer the requests on a path.
    pub fn serves(&self, path: &str, service: impl Fn(&SentRequest) -> (u16, String) + Send + 'static) {
        self.state.lock().services.insert(path.to_owned(), Box::new(service));
    }

    /// Returns the requests on a path, oldest first.
    pub fn requests(&self, path: &str) -> Vec<SentRequest> {
        self.state.lock().requests.iter().filter(|it| it.path == path).cloned().collect()
    }

    /// Waits for this number of requests on a path, and returns them.
    pub async fn received(&self, path: &str, n: usize) -> Vec<SentRequest> {
        eventually("requests of a webhook", || self.requests(path).len() >= n).await;
        self.requests(path)
    }
}

async fn serve(mut socket: TcpStream, state: Arc<Mutex<State>>) {
    let mut received = Vec::new();
    while let Some(request) = next_request(&mut socket, &mut received).await {
        let (status, body) = answer(&mut state.lock(), request);
        let length = body.len();
        let reply = format!("HTTP/1.1 {status} Answer\r\nContent-Length: {length}\r\n\r\n{body}");
        // A status without a body.
        let reply = match status {
            204 => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
            _ => reply,
        };
        if socket.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn answer(state: &mut State, request: SentRequest) -> (u16, String) {
    let path = request.path.clone();
    let served = state.services.get(&path).map(|it| it(&request));
    state.requests.push(request);
    let status = state.statuses.get_mut(&path).and_then(VecDeque::pop_front);
    served.unwrap_or_else(|| (status.unwrap_or(204), String::new()))
}

/// Reads the next request of a connection; `received` keeps what belongs to the one after it.
async fn next_request(socket: &mut TcpStream, received: &mut Vec<u8>) -> Option<SentRequest> {
    loop {
        if let Some(end) = received.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).into_owned();
            let mut lines = head.split("\r\n");
            let mut words = lines.next()?.split(' ');
            let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
            let header = |line: &str| {
                let (name, value) = line.split_once(':')?;
                Some((name.to_ascii_lowercase(), value.trim().to_owned()))
            };
            let headers: BTreeMap<String, String> = lines.filter_map(header).collect();
            let length: usize = headers.get("content-length").map_or(0, |it| it.parse().unwrap_or(0));
            let whole = end + 4 + length;
            if received.len() >= whole {
                let body = String::from_utf8_lossy(&received[end + 4..whole]).into_owned();
                received.drain(..whole);
                return Some(SentRequest { at: Instant::now(), method, path, headers, body });
            }
        }
        if socket.read_buf(received).await.ok()? == 0 {
            return None;
        }
    }
}
