//! Many clients in one thread: they count bytes, and read from the programme clock how late it arrives.

use super::support::percentile;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const PACKET: usize = 188;
const WARM_UP: Duration = Duration::from_secs(3);

/// One connection.
struct Client {
    socket: TcpStream,
    path: String,
    asked: Instant,
    asking: bool,
    /// What is left of the head, then of a packet.
    carry: Vec<u8>,
    in_body: bool,
    bytes: u64,
    joined: Option<Duration>,
    lags: Vec<f64>,
    is_over: bool,
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
            joined: None,
            lags: Vec::new(),
            is_over: false,
        }
    }

    fn ready(&mut self, began: Instant, buffer: &mut [u8], measuring: bool) {
        if self.asking {
            // 1.0, so that the body comes without a transfer coding and packets stay where they are.
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
        }
        let mut packets = bytes.chunks_exact(PACKET);
        for packet in &mut packets {
            // Nearly all packets end here: no adaptation field.
            if packet[3] & 0x20 != 0 {
                self.packet(packet, began, measuring);
            }
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
        if measuring && packet[5] & 0x10 != 0 && packet[4] >= 7 {
            let clock = f64::from(u32::from_be_bytes([packet[6], packet[7], packet[8], packet[9]])) / 45.0;
            self.lags.push(began.elapsed().as_secs_f64() * 1_000.0 - clock);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a thread of its own, without tokio")]
fn now() -> Instant {
    Instant::now()
}

/// Arguments: address, path, number of clients, seconds, probes. Says `begin` and `end` around what is measured,
/// then reports.
pub fn run(arguments: &[String]) {
    let address: SocketAddr = arguments[0].parse().expect("an address");
    let path = &arguments[1];
    let number = |at: usize| arguments[at].parse::<usize>().expect("a number");
    let (n, seconds, probes) = (number(2), number(3) as u64, number(4));
    let mut poll = Poll::new().expect("epoll");
    let began = now();
    let mut buffer = vec![0; 256 << 10];
    let mut clients = Vec::new();
    let mut crowd =
        Crowd { poll: &mut poll, events: Events::with_capacity(1024), began, buffer: &mut buffer };
    for token in 0..n {
        clients.push(Client::new(address, path, crowd.poll, token));
        crowd.turn(&mut clients, Duration::from_millis(2), false);
    }
    while clients.iter().any(|client| client.joined.is_none()) {
        crowd.turn(&mut clients, Duration::from_millis(50), false);
    }
    crowd.run(&mut clients, WARM_UP, false);
    let start = now();
    let before: u64 = clients.iter().map(|client| client.bytes).sum();
    say("begin");
    crowd.run(&mut clients, Duration::from_secs(seconds), true);
    say("end");
    let measured = start.elapsed().as_secs_f64();
    let bytes = clients.iter().map(|client| client.bytes).sum::<u64>() - before;
    assert!(clients.iter().all(|client| !client.is_over), "the server dropped a client");
    let mut joins = Vec::new();
    for _ in 0..probes {
        let token = clients.len();
        clients.push(Client::new(address, path, crowd.poll, token));
        while clients[token].joined.is_none() {
            crowd.turn(&mut clients, Duration::from_millis(50), false);
        }
        let probe = clients.pop().expect("pushed above");
        joins.push(probe.joined.map_or(f64::NAN, |time| time.as_secs_f64() * 1_000.0));
    }
    let lags: Vec<f64> = clients.iter_mut().flat_map(own_lags).collect();
    let report = json!({ "bytes": bytes, "seconds": measured, "lag_ms": lags, "join_ms": joins });
    say(&report.to_string());
}

/// How late, compared with the client's own best; thinned to the worst per cent and the middle.
fn own_lags(client: &mut Client) -> Vec<f64> {
    let least = percentile(&mut client.lags, 0.0);
    client.lags.iter().map(|lag| ((lag - least) * 100.0).round() / 100.0).collect()
}

/// All clients on one poll.
struct Crowd<'a> {
    poll: &'a mut Poll,
    events: Events,
    began: Instant,
    buffer: &'a mut [u8],
}

impl Crowd<'_> {
    fn turn(&mut self, clients: &mut [Client], wait: Duration, measuring: bool) {
        match self.poll.poll(&mut self.events, Some(wait)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => panic!("epoll: {error}"),
            _ => {}
        }
        for event in &self.events {
            if let Some(client) = clients.get_mut(event.token().0) {
                client.ready(self.began, self.buffer, measuring);
            }
        }
    }

    fn run(&mut self, clients: &mut [Client], time: Duration, measuring: bool) {
        let end = now() + time;
        while now() < end {
            self.turn(clients, Duration::from_millis(50), measuring);
        }
    }
}

fn say(line: &str) {
    println!("{line}");
    std::io::stdout().flush().expect("the parent reads");
}

/// A small answer, or nothing while the server is not there yet.
pub fn fetch(address: SocketAddr, path: &str) -> Option<String> {
    let mut socket = std::net::TcpStream::connect(address).ok()?;
    write!(socket, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    Some(answer)
}
