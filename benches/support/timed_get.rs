//! Requests on new connections, of which the times and the size count and not the text.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Bytes in which the head of an answer ends.
const HEAD_BYTES: usize = 2_000;

/// An answer that was read to its end.
pub struct TimedAnswer {
    /// The entity tag.
    pub tag: Option<String>,
    pub first_ms: f64,
    pub end_ms: f64,
    pub bytes: usize,
}

/// Requests a path with these header lines, and pauses after each read.
pub fn timed_get(address: SocketAddr, path: &str, header: &str, pause: Duration) -> TimedAnswer {
    let begun = Instant::now();
    let mut socket = TcpStream::connect(address).expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{header}\r\n");
    socket.write_all(request.as_bytes()).expect("a request");
    // The text itself is not kept: the memory of this process is measured.
    let (mut head, mut bytes, mut first, mut buffer) = (Vec::new(), 0, None, vec![0; 64 << 10]);
    loop {
        let n = socket.read(&mut buffer).expect("an answer");
        first.get_or_insert(begun.elapsed());
        if n == 0 {
            break;
        }
        bytes += n;
        head.extend_from_slice(&buffer[..n.min(HEAD_BYTES - head.len())]);
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    assert!(head.starts_with("HTTP/1.1 200") || head.starts_with("HTTP/1.1 304"), "{head}");
    let tag = head.lines().find_map(|it| it.strip_prefix("Etag: ")).map(|it| it.trim().to_owned());
    let millis = |it: Duration| it.as_secs_f64() * 1e3;
    TimedAnswer { tag, first_ms: millis(first.unwrap_or_default()), end_ms: millis(begun.elapsed()), bytes }
}
