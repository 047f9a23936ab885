//! A provider of films on a real socket, which counts its connections exactly.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// Bytes that are sent at once.
const PIECE_BYTES: usize = 64 << 10;
/// Bytes that a slow response sends at once, and the pause between two of them.
const SLOW_PIECE_BYTES: usize = 4 << 10;
const SLOW_PAUSE: Duration = Duration::from_millis(100);

/// A provider of one film at any path.
pub struct FileProvider {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: AbortHandle,
}

struct State {
    file: Arc<Vec<u8>>,
    tag: Option<String>,
    has_ranges: bool,
    /// Connections are closed after these numbers of bytes, in turn.
    cuts: Vec<usize>,
    n_cuts: usize,
    /// After this number of bytes, a response continues slowly.
    slow_after: usize,
    /// More connections than these are answered with 403.
    limit: usize,
    sockets: Vec<Arc<TcpStream>>,
    peak: usize,
    n_refused: usize,
    /// Path and range of each request.
    requests: Vec<(String, Option<String>)>,
}

impl FileProvider {
    /// Starts a provider of a film with this content.
    pub async fn start(file: Vec<u8>) -> FileProvider {
        Self::start_at(Ipv4Addr::LOCALHOST, file).await
    }

    /// Does the same at another address of this machine.
    pub async fn start_at(host: Ipv4Addr, file: Vec<u8>) -> FileProvider {
        let listener = TcpListener::bind((host, 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(Mutex::new(State {
            file: Arc::new(file),
            tag: Some("\"film\"".to_owned()),
            has_ranges: true,
            cuts: Vec::new(),
            n_cuts: 0,
            slow_after: usize::MAX,
            limit: usize::MAX,
            sockets: Vec::new(),
            peak: 0,
            n_refused: 0,
            requests: Vec::new(),
        }));
        let serving = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let socket = Arc::new(socket);
                let is_allowed = {
                    let mut state = serving.lock();
                    state.sockets.retain(|it| is_open(it));
                    state.sockets.push(socket.clone());
                    state.peak = state.peak.max(state.sockets.len());
                    let is_allowed = state.sockets.len() <= state.limit;
                    state.n_refused += usize::from(!is_allowed);
                    is_allowed
                };
                let state = serving.clone();
                tokio::spawn(async move {
                    let _ = serve(&socket, &state, is_allowed).await;
                    state.lock().sockets.retain(|it| !Arc::ptr_eq(it, &socket));
                });
            }
        });
        FileProvider { address, state, task: task.abort_handle() }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn set_file(&self, file: Vec<u8>, tag: &str) {
        let mut state = self.state.lock();
        (state.file, state.tag) = (Arc::new(file), Some(tag.to_owned()));
    }

    pub fn ignore_ranges(&self) {
        self.state.lock().has_ranges = false;
    }

    /// Closes connections after these numbers of bytes, in turn.
    pub fn cut_after(&self, cuts: Vec<usize>) {
        self.state.lock().cuts = cuts;
    }

    /// Has each response continue slowly after this number of bytes, so that it does not end while somebody looks at it.
    pub fn slow_after(&self, n_bytes: usize) {
        self.state.lock().slow_after = n_bytes;
    }

    /// Refuses more than this number of connections at one time.
    pub fn limit(&self, limit: usize) {
        self.state.lock().limit = limit;
    }

    /// Returns the number of connections that are open for the kernel of the provider.
    pub fn n_open(&self) -> usize {
        let mut state = self.state.lock();
        state.sockets.retain(|it| is_open(it));
        state.sockets.len()
    }

    /// Returns the maximum number of connections at one time.
    pub fn peak(&self) -> usize {
        self.state.lock().peak
    }

    pub fn n_refused(&self) -> usize {
        self.state.lock().n_refused
    }

    /// Returns path and range of each request.
    pub fn requests(&self) -> Vec<(String, Option<String>)> {
        self.state.lock().requests.clone()
    }
}

impl Drop for FileProvider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns whether the client has neither closed nor reset the connection, as the kernel knows at this moment.
fn is_open(socket: &TcpStream) -> bool {
    let mut byte = [std::mem::MaybeUninit::uninit()];
    match SockRef::from(socket).peek(&mut byte) {
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
        // Bytes that were received before a reset can still be read.
        Ok(n_bytes) => n_bytes > 0 && matches!(SockRef::from(socket).take_error(), Ok(None)),
    }
}

async fn serve(socket: &TcpStream, state: &Mutex<State>, is_allowed: bool) -> std::io::Result<()> {
    let head = read_head(socket).await?;
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let range = head.lines().find_map(|it| it.strip_prefix("range: ").or(it.strip_prefix("Range: ")));
    let (file, tag, has_ranges, cut, slow_after) = {
        let mut state = state.lock();
        state.requests.push((path, range.map(str::to_owned)));
        let cut = match state.cuts.len() {
            0 => usize::MAX,
            n => state.cuts[state.n_cuts % n],
        };
        state.n_cuts += 1;
        (state.file.clone(), state.tag.clone(), state.has_ranges, cut, state.slow_after)
    };
    if !is_allowed {
        return write_all(
            socket,
            b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        )
        .await;
    }
    let length = file.len();
    let bounds = range.filter(|_| has_ranges).and_then(|it| it.strip_prefix("bytes=")?.split_once('-'));
    let part = bounds.map_or(0..length, |(first, last)| {
        first.parse().unwrap_or(0)..last.parse::<usize>().map_or(length, |it| (it + 1).min(length))
    });
    if part.start >= part.end {
        let head = format!(
            "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{length}\r\nContent-Length: 0\r\n\r\n"
        );
        return write_all(socket, head.as_bytes()).await;
    }
    let status = if bounds.is_some() { "206 Partial Content" } else { "200 OK" };
    let n_bytes = part.len();
    let mut head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/octet-stream\r\nContent-Length: {n_bytes}\r\nConnection: close\r\n"
    );
    if let Some(tag) = tag {
        head.push_str(&format!("ETag: {tag}\r\n"));
    }
    if bounds.is_some() {
        head.push_str(&format!("Content-Range: bytes {}-{}/{length}\r\n", part.start, part.end - 1));
    }
    write_all(socket, format!("{head}\r\n").as_bytes()).await?;
    let end = part.end.min(part.start.saturating_add(cut));
    let mut at = part.start;
    while at < end {
        let is_slow = at - part.start >= slow_after;
        let next = end.min(at + if is_slow { SLOW_PIECE_BYTES } else { PIECE_BYTES });
        write_all(socket, &file[at..next]).await?;
        at = next;
        if is_slow {
            sleep(SLOW_PAUSE).await;
        }
    }
    Ok(())
}

async fn read_head(socket: &TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < 16 << 10 {
        let mut byte = [0];
        socket.readable().await?;
        match socket.try_read(&mut byte) {
            Ok(0) => break,
            Ok(_) => head.push(byte[0]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Writes, and notices a reset while the client does not read.
async fn write_all(socket: &TcpStream, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        socket.writable().await?;
        match socket.try_write(bytes) {
            Ok(n_bytes) => bytes = &bytes[n_bytes..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
