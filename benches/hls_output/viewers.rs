//! Viewers with HLS: each has a thread and a connection that is kept open.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

/// The duration of a segment.
const SEGMENT: Duration = Duration::from_secs(4);
/// Time for all viewers to begin.
const WARM_UP: Duration = Duration::from_secs(12);
/// Bytes that a viewer reads at once.
const READ_BYTES: usize = 64 << 10;

/// One connection that is kept open.
pub struct Connection {
    socket: BufReader<TcpStream>,
    agent: String,
}

impl Connection {
    pub fn open(address: SocketAddr, agent: &str) -> Connection {
        let socket = loop {
            match TcpStream::connect(address) {
                Ok(socket) => break socket,
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        };
        socket.set_nodelay(true).expect("a socket");
        Connection { socket: BufReader::with_capacity(4 << 10, socket), agent: agent.to_owned() }
    }

    /// Sends a request, and returns the length of the body of the answer.
    fn ask(&mut self, path: &str) -> usize {
        let agent = &self.agent;
        let request = format!("GET {path} HTTP/1.1\r\nHost: bench\r\nUser-Agent: {agent}\r\n\r\n");
        self.socket.get_mut().write_all(request.as_bytes()).expect("the server reads");
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            self.socket.read_line(&mut line).expect("an answer");
            let text = line.trim_end();
            if text.is_empty() {
                return length;
            }
            match text.split_once(':') {
                None => assert!(text.contains(" 200 "), "{path}: {text}"),
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().expect("a length");
                }
                Some(_) => {}
            }
        }
    }

    pub fn body(&mut self, path: &str) -> Vec<u8> {
        let length = self.ask(path);
        let mut body = vec![0; length];
        self.socket.read_exact(&mut body).expect("a whole answer");
        body
    }

    pub fn text(&mut self, path: &str) -> String {
        String::from_utf8(self.body(path)).expect("a text")
    }

    /// Returns the path of the media playlist that a master playlist names.
    pub fn master(&mut self, path: &str) -> String {
        let text = self.text(path);
        names(&text).next().expect("a media playlist").to_owned()
    }

    /// Reads a body and counts its bytes as they come.
    fn drain(&mut self, path: &str, buffer: &mut [u8], bytes: &AtomicU64) {
        let mut left = self.ask(path);
        while left > 0 {
            let most = left.min(buffer.len());
            let n = self.socket.read(&mut buffer[..most]).expect("an answer");
            assert!(n > 0, "an answer ended early");
            bytes.fetch_add(n as u64, Ordering::Relaxed);
            left -= n;
        }
    }
}

/// Returns the addresses in a playlist.
pub fn names(playlist: &str) -> impl Iterator<Item = &str> {
    playlist.lines().filter(|it| !it.starts_with('#') && !it.is_empty())
}

/// Watches with many viewers: `ADDRESS PATH live|files VIEWERS SECONDS`.
pub fn run(arguments: &[String]) {
    let [address, path, kind, viewers, seconds] = arguments else { panic!("five arguments") };
    let address: SocketAddr = address.parse().expect("an address");
    let (n, seconds): (usize, u64) = (viewers.parse().expect("a number"), seconds.parse().expect("a number"));
    let (bytes, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let late: Arc<AtomicU64> = Arc::default();
    let begin = Instant::now();
    for number in 0..n {
        let (path, is_live) = (path.clone(), kind == "live");
        let (bytes, is_over, late) = (Arc::clone(&bytes), Arc::clone(&is_over), Arc::clone(&late));
        // Spread over a segment, as viewers are.
        let start = begin + SEGMENT * number as u32 / n as u32;
        let viewer = move || {
            thread::sleep(start.saturating_duration_since(Instant::now()));
            let is_late = watch(address, &path, is_live, number, &bytes, &is_over);
            late.fetch_add(u64::from(is_late), Ordering::Relaxed);
        };
        thread::Builder::new().stack_size(128 << 10).spawn(viewer).expect("a thread");
    }
    thread::sleep(WARM_UP);
    let (before, measured) = (bytes.load(Ordering::Relaxed), Instant::now());
    println!("begin");
    thread::sleep(Duration::from_secs(seconds));
    println!("end");
    let read = bytes.load(Ordering::Relaxed) - before;
    let took = measured.elapsed().as_secs_f64();
    is_over.store(true, Ordering::Relaxed);
    thread::sleep(SEGMENT + SEGMENT / 2);
    println!("{}", json!({ "bytes": read, "seconds": took, "late": late.load(Ordering::Relaxed) }));
}

/// Reads the playlist and one segment in each duration of a segment. Returns whether a segment took longer.
fn watch(
    address: SocketAddr,
    path: &str,
    is_live: bool,
    number: usize,
    bytes: &AtomicU64,
    is_over: &AtomicBool,
) -> bool {
    let mut connection = Connection::open(address, &format!("viewer {number}"));
    let media = if is_live { connection.master(path) } else { path.to_owned() };
    let base = media.rsplit_once('/').expect("a folder").0.to_owned();
    let mut buffer = vec![0; READ_BYTES];
    let (mut is_late, mut last, mut n_read) = (false, String::new(), number);
    let mut due = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        let playlist = connection.text(&media);
        let names: Vec<&str> = names(&playlist).collect();
        let name = match is_live {
            // The next one; the newest at the beginning, and if the viewer fell behind the playlist.
            true => {
                let after = names.iter().position(|it| **it == last).map_or(names.len() - 1, |it| it + 1);
                names.get(after).copied()
            }
            false => Some(names[n_read % names.len()]),
        };
        let Some(name) = name else {
            thread::sleep(SEGMENT / 8);
            continue;
        };
        let begun = Instant::now();
        connection.drain(&format!("{base}/{name}"), &mut buffer, bytes);
        is_late |= begun.elapsed() > SEGMENT;
        last = name.to_owned();
        n_read += 1;
        due += SEGMENT;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    is_late
}
