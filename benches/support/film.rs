//! A provider with one film, and viewers that read it at its rate.

#![expect(clippy::disallowed_methods, reason = "threads without tokio measure the time")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::test_support::api::Api;

/// Length of the film in bytes.
pub const LENGTH: u64 = 8 << 30;
/// Rate of the film, 20 Mbit/s.
pub const BYTES_PER_SECOND: u64 = 20_000_000 / 8;
/// Path of the film at the provider.
pub const FILM: &str = "/movie/u/p/7.mp4";
/// Bytes that the provider sends at once.
const BLOCK_BYTES: usize = 1 << 20;
/// Time after the last start, in which buffers fill.
const WARM_UP: Duration = Duration::from_secs(3);
const START_INTERVAL: Duration = Duration::from_millis(5);

/// Creates an account with the film, and returns the path that plays it.
pub async fn film(admin: &Api, provider: SocketAddr) -> String {
    let account = json!({
        "name": "Films", "server_url": format!("http://{provider}/list.m3u"), "enable_vod": true,
        "auto_enable_new_groups_vod": true,
    });
    let made = admin.post("/api/m3u/accounts/", account).await;
    assert_eq!(made.status, 201, "{made:?}");
    loop {
        let films = admin.get("/api/vod/movies/").await;
        if let Some(uuid) = films.body["results"][0]["uuid"].as_str() {
            return format!("/proxy/vod/movie/{uuid}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Starts the provider: a playlist with one film, and the film.
pub fn provider() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let block: Arc<[u8]> = (0..BLOCK_BYTES).map(|it| (it % 251) as u8).collect();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let block = block.clone();
            // A client that leaves ends the thread.
            thread::spawn(move || serve(socket, address, &block));
        }
    });
    address
}

fn serve(mut socket: TcpStream, address: SocketAddr, block: &[u8]) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let head = read_head(&mut socket)?;
    if head.starts_with("GET /list.m3u") {
        let list = format!(
            "#EXTM3U\n#EXTINF:-1 group-title=\"Films\",Film (2020)\nhttp://{address}{FILM}\n\
             #EXTINF:-1 catchup=\"default\" catchup-days=\"7\" catchup-source=\"http://{address}/past/{{utc}}.ts\",News\n\
             http://{address}/live/1.ts\n"
        );
        let length = list.len();
        return write!(
            socket,
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{list}"
        );
    }
    let range =
        head.lines().find_map(|it| it.to_ascii_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
    let (start, end) = range.as_deref().and_then(|it| it.split_once('-')).unwrap_or_default();
    let start: u64 = start.parse().unwrap_or(0);
    let end: u64 = end.parse().map_or(LENGTH, |it: u64| it + 1);
    let (status, length) = (if range.is_some() { "206 Partial Content" } else { "200 OK" }, end - start);
    write!(
        socket,
        "HTTP/1.1 {status}\r\nContent-Type: video/mp4\r\nETag: \"film\"\r\nContent-Length: {length}\r\n\
         Content-Range: bytes {start}-{}/{LENGTH}\r\nConnection: close\r\n\r\n",
        end - 1
    )?;
    let mut at = start;
    while at < end {
        let offset = (at % block.len() as u64) as usize;
        let n_bytes = (block.len() - offset).min((end - at) as usize);
        socket.write_all(&block[offset..offset + n_bytes])?;
        at += n_bytes as u64;
    }
    Ok(())
}

/// Reads until the end of the head of a request or of an answer.
pub fn read_head(socket: &mut TcpStream) -> std::io::Result<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Requests a part of the film. Returns the connection, after the head of the answer.
pub fn request(address: SocketAddr, path: &str, range: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).expect("the server accepts");
    socket.set_nodelay(true).expect("a socket");
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench\r\nRange: bytes={range}\r\n\r\n");
    socket.write_all(request.as_bytes()).expect("the server reads");
    let head = read_head(&mut socket).expect("the server answers");
    if !head.starts_with("HTTP/1.1 206") {
        let mut body = [0; 1024];
        let n_bytes = socket.read(&mut body).expect("the server answers");
        panic!("{path}: {head}{}", String::from_utf8_lossy(&body[..n_bytes]));
    }
    socket
}

/// Viewers of the film, each with a thread.
pub struct Viewers {
    watching: Vec<thread::JoinHandle<()>>,
    bytes: Arc<AtomicU64>,
    n_late: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Viewers {
    /// Starts this number of viewers at these paths.
    pub fn start(address: SocketAddr, n: u64, path_of: impl Fn(u64) -> String) -> Self {
        let (bytes, n_late) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let is_over = Arc::<AtomicBool>::default();
        let start = |number: u64| {
            let path = path_of(number);
            let (bytes, n_late, is_over) = (bytes.clone(), n_late.clone(), is_over.clone());
            thread::spawn(move || {
                // Spread over the interval, like real viewers.
                thread::sleep(START_INTERVAL * u32::try_from(number).expect("a small number"));
                let late = watch(request(address, &path, "100000000-"), &bytes, &is_over);
                n_late.fetch_add(u64::from(late), Ordering::Relaxed);
            })
        };
        let watching = (0..n).map(start).collect();
        Self { watching, bytes, n_late, is_over }
    }

    /// Returns the time until all of them read at the rate of the film.
    pub fn warm_up(&self) -> Duration {
        WARM_UP + START_INTERVAL * u32::try_from(self.watching.len()).expect("a small number")
    }

    /// Returns the number of bytes that all of them have read.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Ends all of them. Returns how many were late: a second of film was missing at some moment.
    pub fn end(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.watching.into_iter().for_each(|it| it.join().expect("a viewer"));
        self.n_late.load(Ordering::Relaxed)
    }
}

/// Reads at the rate of the film until the end. Returns whether the viewer was late.
fn watch(mut socket: TcpStream, bytes: &AtomicU64, is_over: &AtomicBool) -> bool {
    const INTERVAL: Duration = Duration::from_millis(50);
    let mut buffer = vec![0; 64 << 10];
    let (started, mut n_read, mut is_late) = (Instant::now(), 0, false);
    while !is_over.load(Ordering::Relaxed) {
        let due = (started.elapsed().as_secs_f64() * BYTES_PER_SECOND as f64) as u64;
        is_late |= due > n_read + BYTES_PER_SECOND;
        while n_read < due {
            let n_bytes = socket.read(&mut buffer).expect("the film continues");
            assert!(n_bytes > 0, "the film ended early");
            n_read += n_bytes as u64;
            bytes.fetch_add(n_bytes as u64, Ordering::Relaxed);
        }
        thread::sleep(INTERVAL);
    }
    is_late
}
