//! One connection to the REST API that is kept open, so that a measured time is that of one request and its answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longest wait for an answer.
const WAIT_MAX: Duration = Duration::from_secs(120);

pub struct KeepAlive {
    socket: BufReader<TcpStream>,
    token: String,
    body: Vec<u8>,
}

/// An answer that was read to its end.
pub struct Reply {
    pub status: u16,
    pub took: Duration,
    pub body: Value,
}

impl KeepAlive {
    /// Connects with the token of a login.
    pub fn connect(address: SocketAddr, token: &str) -> KeepAlive {
        let socket = TcpStream::connect(address).expect("the program accepts connections");
        socket.set_nodelay(true).and_then(|()| socket.set_read_timeout(Some(WAIT_MAX))).expect("a socket");
        KeepAlive {
            socket: BufReader::with_capacity(1 << 16, socket),
            token: token.to_owned(),
            body: Vec::new(),
        }
    }

    /// Sends a request and reads the answer. The time is that until its last byte.
    pub fn ask(&mut self, method: &str, path: &str, body: &str) -> Reply {
        let token = &self.token;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let asked = super::client_pool::now();
        self.socket.get_mut().write_all(request.as_bytes()).expect("the program reads");
        let (status, length) = self.head();
        self.body.resize(length, 0);
        self.socket.read_exact(&mut self.body).expect("a whole answer");
        let took = asked.elapsed();
        Reply { status, took, body: serde_json::from_slice(&self.body).unwrap_or(Value::Null) }
    }

    /// Reads status and length of an answer.
    fn head(&mut self) -> (u16, usize) {
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            self.socket.read_line(&mut line).expect("an answer");
            let line = line.trim_end();
            if line.is_empty() {
                return (status, length);
            }
            match line.split_once(':') {
                None => status = line.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status"),
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().expect("a length");
                }
                Some((name, _)) => assert!(!name.eq_ignore_ascii_case("transfer-encoding"), "a counted body"),
            }
        }
    }
}
