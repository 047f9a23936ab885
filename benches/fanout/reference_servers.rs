//! Two servers for comparison. Both read the same source, cut it every 50 ms and send every piece to every client; they
//! have no random-access points, no limits, and no special handling of slow clients.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const CUT: Duration = Duration::from_millis(50);
const PACKET: usize = 188;
const HEAD: &[u8] = b"HTTP/1.0 200 OK\r\nContent-Type: video/mp2t\r\n\r\n";
/// Maximum number of pieces queued for one client: three seconds.
const WAITING_MAX: usize = 60;

fn source(url: &str) -> (std::net::TcpStream, Vec<u8>) {
    let rest = url.strip_prefix("http://").expect("a plain address");
    let (host, path) = rest.split_once('/').expect("a path");
    let mut socket = std::net::TcpStream::connect(host).expect("the source accepts");
    write!(socket, "GET /{path} HTTP/1.0\r\n\r\n").expect("the source reads");
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte).expect("the source answers");
        head.push(byte[0]);
    }
    (socket, Vec::new())
}

fn ready() {
    println!("ready");
    std::io::stdout().flush().expect("the parent reads");
}

/// Takes the complete packets from the bytes read so far.
fn piece(read: &mut Vec<u8>) -> Arc<[u8]> {
    let whole = read.len() / PACKET * PACKET;
    let rest = read.split_off(whole);
    Arc::from(std::mem::replace(read, rest))
}

struct Client {
    socket: TcpStream,
    asked: bool,
    waiting: VecDeque<Arc<[u8]>>,
    /// Number of bytes of the first piece that are sent.
    sent: usize,
}

impl Client {
    /// Sends queued pieces; returns false if the client has left.
    fn write(&mut self) -> bool {
        while let Some(piece) = self.waiting.front() {
            match self.socket.write(&piece[self.sent..]) {
                Ok(n) if self.sent + n == piece.len() => {
                    self.sent = 0;
                    self.waiting.pop_front();
                }
                Ok(n) => self.sent += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return self.waiting.len() < WAITING_MAX;
                }
                Err(_) => return false,
            }
        }
        true
    }

    fn read(&mut self, buffer: &mut [u8]) -> bool {
        loop {
            match self.socket.read(buffer) {
                Ok(0) => return false,
                Ok(_) if !self.asked => {
                    self.asked = true;
                    self.waiting.push_back(Arc::from(HEAD));
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a separate process without tokio")]
fn now() -> Instant {
    Instant::now()
}

/// Runs one thread with edge-triggered epoll and shared buffers.
pub fn epoll(address: &str, url: &str) {
    let mut poll = Poll::new().expect("epoll");
    let mut listener = TcpListener::bind(address.parse().expect("an address")).expect("a free port");
    let (socket, mut read) = source(url);
    socket.set_nonblocking(true).expect("a socket can be made non-blocking");
    let mut source = TcpStream::from_std(socket);
    let (listening, sending) = (Token(usize::MAX - 1), Token(usize::MAX - 2));
    poll.registry().register(&mut listener, listening, Interest::READABLE).expect("a descriptor");
    poll.registry().register(&mut source, sending, Interest::READABLE).expect("a descriptor");
    ready();
    let mut clients: Vec<Option<Client>> = Vec::new();
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; 256 << 10];
    let mut due = now() + CUT;
    loop {
        let _ = poll.poll(&mut events, Some(due.saturating_duration_since(now())));
        for event in &events {
            if event.token() == listening {
                while let Ok((mut socket, _)) = listener.accept() {
                    let _ = socket.set_nodelay(true);
                    let token = Token(clients.len());
                    let interest = Interest::READABLE | Interest::WRITABLE;
                    poll.registry().register(&mut socket, token, interest).expect("a descriptor");
                    clients.push(Some(Client { socket, asked: false, waiting: VecDeque::new(), sent: 0 }));
                }
            } else if event.token() == sending {
                while let Ok(n @ 1..) = source.read(&mut buffer) {
                    read.extend_from_slice(&buffer[..n]);
                }
            } else if let Some(place) = clients.get_mut(event.token().0)
                && let Some(client) = place
                && !(client.read(&mut buffer) && client.write())
            {
                *place = None;
            }
        }
        if now() >= due {
            due += CUT;
            let piece = piece(&mut read);
            for place in &mut clients {
                if let Some(client) = place.as_mut().filter(|client| client.asked && !piece.is_empty()) {
                    client.waiting.push_back(Arc::clone(&piece));
                    if !client.write() {
                        *place = None;
                    }
                }
            }
        }
    }
}

/// Runs the simplest tokio design: a task per client, each with a receiver of one broadcast channel.
#[tokio::main]
pub async fn broadcast(address: &str, url: &str) {
    let listener = tokio::net::TcpListener::bind(address).await.expect("a free port");
    let (pieces, _) = tokio::sync::broadcast::channel::<Arc<[u8]>>(WAITING_MAX);
    let (socket, mut read) = source(url);
    socket.set_nonblocking(true).expect("a socket can be made non-blocking");
    let mut source = tokio::net::TcpStream::from_std(socket).expect("a socket");
    let sender = pieces.clone();
    tokio::spawn(async move {
        let mut buffer = vec![0; 64 << 10];
        let mut due = tokio::time::interval(CUT);
        loop {
            tokio::select! {
                n = source.read(&mut buffer) => match n {
                    Ok(n @ 1..) => read.extend_from_slice(&buffer[..n]),
                    _ => return,
                },
                _ = due.tick() => {
                    let _ = sender.send(piece(&mut read));
                }
            }
        }
    });
    ready();
    loop {
        let Ok((mut socket, _)) = listener.accept().await else { continue };
        let mut pieces = pieces.subscribe();
        tokio::spawn(async move {
            let _ = socket.set_nodelay(true);
            let mut request = [0; 1024];
            if !matches!(socket.read(&mut request).await, Ok(1..)) || socket.write_all(HEAD).await.is_err() {
                return;
            }
            loop {
                match pieces.recv().await {
                    Ok(piece) if socket.write_all(&piece).await.is_err() => return,
                    Ok(_) | Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => {}
                    Err(_) => return,
                }
            }
        });
    }
}
