//! Many clients in one thread: they count bytes, and measure the delay of the programme clock.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

pub const PACKET: usize = 188;
pub const WARM_UP: Duration = Duration::from_secs(3);

/// A reading of the programme clock.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// The upper 32 bits of the clock: 45 of them are a millisecond.
    pub clock: u32,
    /// Packets of this connection before the one with this clock.
    pub packets: u64,
    pub at: Instant,
}

/// One connection.
pub struct Client {
    socket: TcpStream,
    path: String,
    asked: Instant,
    asking: bool,
    /// The incomplete head or packet.
    carry: Vec<u8>,
    in_body: bool,
    pub bytes: u64,
    packets: u64,
    pub joined: Option<Duration>,
    pub newest: Option<Reading>,
    /// Delay of each reading in milliseconds, plus an unknown constant.
    pub lags: Vec<f64>,
    pub is_over: bool,
}

impl Client {
    fn new(address: SocketAddr, path: &str, poll: &Poll, token: usize) -> Client {
        let asked = now();
        let mut socket = TcpStream::connect(address).expect("the server accepts");
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry().register(&mut socket, Token(token), interest).expect("a descriptor");
        Client {
            socket,
            path: path.into(),
            asked,
            asking: true,
            carry: Vec::new(),
            in_body: false,
            bytes: 0,
            packets: 0,
            joined: None,
            newest: None,
            lags: Vec::new(),
            is_over: false,
        }
    }

    fn ready(&mut self, began: Instant, buffer: &mut [u8], measuring: bool) {
        if self.asking {
            // HTTP/1.0, so that the body has no transfer coding and packets stay aligned.
            let request = format!("GET {} HTTP/1.0\r\nUser-Agent: bench\r\n\r\n", self.path);
            match self.socket.write(request.as_bytes()) {
                Ok(_) => self.asking = false,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    return;
                }
                Err(error) => panic!("a client cannot connect: {error}"),
            }
        }
        loop {
            match self.socket.read(buffer) {
                Ok(0) => return self.is_over = true,
                Ok(n) => self.take(&buffer[..n], began, measuring),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.is_over = true,
            }
        }
    }

    fn take(&mut self, mut bytes: &[u8], began: Instant, measuring: bool) {
        if !self.in_body {
            self.carry.extend_from_slice(bytes);
            let Some(end) = self.carry.windows(4).position(|window| window == b"\r\n\r\n") else { return };
            assert!(self.carry.starts_with(b"HTTP/1.") && self.carry[9..].starts_with(b"200"), "refused");
            self.in_body = true;
            let body = self.carry.split_off(end + 4);
            self.carry.clear();
            return self.take(&body, began, measuring);
        }
        self.bytes += bytes.len() as u64;
        if !self.carry.is_empty() {
            let taken = (PACKET - self.carry.len()).min(bytes.len());
            self.carry.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.carry.len() < PACKET {
                return;
            }
            let packet = std::mem::take(&mut self.carry);
            self.packet(&packet, began, measuring);
            self.packets += 1;
        }
        let mut packets = bytes.chunks_exact(PACKET);
        for packet in &mut packets {
            // Nearly all packets have no adaptation field and end here.
            if packet[3] & 0x20 != 0 {
                self.packet(packet, began, measuring);
            }
            self.packets += 1;
        }
        self.carry.extend_from_slice(packets.remainder());
    }

    fn packet(&mut self, packet: &[u8], began: Instant, measuring: bool) {
        if packet[3] & 0x20 == 0 || packet[4] < 1 {
            return;
        }
        if packet[5] & 0x40 != 0 && self.joined.is_none() {
            self.joined = Some(self.asked.elapsed());
        }
        let Some(clock) = clock(packet) else { return };
        let at = now();
        self.newest = Some(Reading { clock, packets: self.packets, at });
        if measuring {
            self.lags.push((at - began).as_secs_f64() * 1_000.0 - f64::from(clock) / 45.0);
        }
    }
}

/// Returns the upper 32 bits of the programme clock in a packet.
pub fn clock(packet: &[u8]) -> Option<u32> {
    let has_clock = packet[3] & 0x20 != 0 && packet[4] >= 7 && packet[5] & 0x10 != 0;
    has_clock.then(|| u32::from_be_bytes([packet[6], packet[7], packet[8], packet[9]]))
}

#[expect(clippy::disallowed_methods, reason = "a separate thread without tokio")]
pub fn now() -> Instant {
    Instant::now()
}

/// All clients, served by one poll.
pub struct ClientPool {
    poll: Poll,
    events: Events,
    began: Instant,
    buffer: Vec<u8>,
}

impl ClientPool {
    pub fn new() -> ClientPool {
        let poll = Poll::new().expect("epoll");
        ClientPool { poll, events: Events::with_capacity(1024), began: now(), buffer: vec![0; 256 << 10] }
    }

    /// Adds a client.
    pub fn join(&mut self, clients: &mut Vec<Client>, address: SocketAddr, path: &str) {
        clients.push(Client::new(address, path, &self.poll, clients.len()));
    }

    /// Polls until every client has received a random-access point.
    pub fn wait_for_all(&mut self, clients: &mut [Client]) {
        while clients.iter().any(|client| client.joined.is_none()) {
            self.turn(clients, Duration::from_millis(50), false);
        }
    }

    /// Reads the data that has arrived, or waits this long for it.
    pub fn turn(&mut self, clients: &mut [Client], wait: Duration, measuring: bool) {
        match self.poll.poll(&mut self.events, Some(wait)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => panic!("epoll: {error}"),
            _ => {}
        }
        for event in &self.events {
            if let Some(client) = clients.get_mut(event.token().0) {
                client.ready(self.began, &mut self.buffer, measuring);
            }
        }
    }

    pub fn run(&mut self, clients: &mut [Client], time: Duration, measuring: bool) {
        let end = now() + time;
        while now() < end {
            self.turn(clients, Duration::from_millis(50), measuring);
        }
    }
}

pub fn print_line(line: &str) {
    println!("{line}");
    std::io::stdout().flush().expect("the parent reads");
}

/// Returns the body of a small response, or `None` while the server is not reachable.
pub fn fetch(address: SocketAddr, path: &str) -> Option<String> {
    let mut socket = std::net::TcpStream::connect(address).ok()?;
    write!(socket, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    Some(answer)
}
