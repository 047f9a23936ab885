//! One connection to the provider, from its first request to its end.

use super::response::{Body, Head};
use super::signal::{FRAME, Tuned};
use super::*;

const TICK: Duration = Duration::from_millis(10);
const PACKET: usize = 188;

/// Counts a new connection, after it has removed those that ended.
pub(super) fn register(state: &Mutex<State>, socket: &Arc<TcpStream>) -> u64 {
    let mut state = state.lock();
    state.sweep();
    let id = state.accepted;
    state.accepted += 1;
    let beside = state.connections.iter().filter(|(_, c)| c.closed_at.is_none()).map(|(id, _)| *id).collect();
    let connection = Connection {
        socket: Some(Arc::clone(socket)),
        account: None,
        path: None,
        accepted_at: Instant::now(),
        beside,
        closed_at: None,
        cuts_seen: 0,
        resets_seen: state.resets,
        refused: false,
    };
    state.connections.insert(id, connection);
    state.peak = state.peak.max(state.open(None));
    id
}

/// The next action of a connection, decided under the lock.
enum Order {
    Send(Behavior),
    Cut(Cut),
}

pub(super) async fn serve(state: &Mutex<State>, began: Instant, id: u64, socket: &TcpStream) {
    let outcome = converse(state, began, id, socket).await;
    if outcome.is_none() {
        let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
    }
    let mut state = state.lock();
    if let Some(connection) = state.connections.get_mut(&id) {
        connection.closed_at.get_or_insert_with(Instant::now);
        connection.socket = None;
    }
}

/// Serves one connection until its end; returns `None` if it must end with a reset.
async fn converse(state: &Mutex<State>, began: Instant, id: u64, socket: &TcpStream) -> Option<()> {
    let mut is_first = true;
    loop {
        let Some(head) = read_head(socket).await else { return Some(()) };
        let mut words = head.split(' ');
        let method = words.next().unwrap_or_default().to_owned();
        let path = words.next().unwrap_or_default().to_owned();
        let request = RecordedRequest { at: Instant::now(), method, path: path.clone(), head };
        let (refused, answer, computed) = {
            let mut state = state.lock();
            let refused = if is_first { state.assign(id, &path) } else { None };
            state.requests.push(request.clone());
            let first = state.first_answers.get_mut(&path).and_then(VecDeque::pop_front);
            (refused, first.or_else(|| state.answers.get(&path).cloned()), state.computed.clone())
        };
        is_first = false;
        let answer = match refused {
            Some(code) => MockResponse::status(code),
            None => answer
                .or_else(|| computed.and_then(|it| it.answer(&request)))
                .unwrap_or_else(|| MockResponse::status(404)),
        };
        let is_kept = answer.is_kept;
        let exchange = Exchange { state, id, socket, path };
        let Some(end) = exchange.answer(answer, began).await else { return Some(()) };
        match end {
            Cut::Reset => return None,
            Cut::End if is_kept => {}
            Cut::End => return Some(()),
            Cut::Stall => {
                exchange.hold().await;
                return Some(());
            }
        }
    }
}

async fn read_head(socket: &TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        socket.readable().await.ok()?;
        let mut buffer = [0; 4096];
        match socket.try_read(&mut buffer) {
            Ok(0) => return None,
            Ok(n) => head.extend_from_slice(&buffer[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// A connection with its request.
struct Exchange<'a> {
    state: &'a Mutex<State>,
    id: u64,
    socket: &'a TcpStream,
    path: String,
}

impl Exchange<'_> {
    /// Returns how the connection is to end, or `None` if the client has closed it.
    async fn answer(&self, answer: MockResponse, began: Instant) -> Option<Cut> {
        let type_of_body = match &answer.body {
            Body::Bytes(kind, _) if matches!(answer.head, Head::Chunked) => {
                format!("Content-Type: {kind}\r\n")
            }
            Body::Bytes(kind, bytes) => {
                format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", bytes.len())
            }
            _ => "Content-Type: video/mp2t\r\n".into(),
        };
        let chunked = matches!(answer.head, Head::Chunked);
        let type_of_body = format!("{}{type_of_body}", answer.headers);
        let close = if answer.is_kept { "" } else { "Connection: close\r\n" };
        let head = match &answer.head {
            Head::Plain => format!("HTTP/1.1 200 OK\r\n{close}{type_of_body}\r\n"),
            Head::Chunked => format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{type_of_body}\r\n"),
            Head::Icy => "ICY 200 OK\r\nicy-name: test\r\nContent-Type: video/mp2t\r\n\r\n".into(),
            Head::None => String::new(),
            Head::Status(code, more) => {
                format!("HTTP/1.1 {code} Whatever\r\n{close}{more}{type_of_body}\r\n")
            }
            Head::Redirect(to) => {
                format!("HTTP/1.1 302 Found\r\n{close}Location: {to}\r\n{type_of_body}\r\n")
            }
            Head::Never => return Some(Cut::Stall),
        };
        self.wait(answer.delay).await?;
        self.write(head.as_bytes()).await?;
        match answer.body {
            Body::Bytes(_, bytes) => {
                let (n_bytes, cut) = answer.ends_after.unwrap_or((u64::MAX, Cut::End));
                let sent = bytes.len().min(usize::try_from(n_bytes).unwrap_or(usize::MAX));
                if chunked {
                    self.write(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
                }
                self.write(&bytes[..sent]).await?;
                if chunked && sent == bytes.len() {
                    self.write(b"\r\n0\r\n\r\n").await?;
                }
                Some(cut)
            }
            Body::Nothing => Some(Cut::Stall),
            Body::Empty => Some(Cut::End),
            Body::Programme(programme) => {
                // The past of a provider is what its connections have sent before.
                let number = if answer.burst_speed.is_some() { 0 } else { self.id };
                // It is on the air for that much longer, so that no connection begins with its first frame.
                let past = if answer.burst_speed.is_some() { Duration::ZERO } else { answer.burst };
                let tuned = programme.tune_in(began.elapsed().saturating_sub(past)).numbered(number);
                let sender = Sender {
                    exchange: self,
                    chunked,
                    sent: 0,
                    ends_after: answer.ends_after,
                    burst_speed: answer.burst_speed,
                };
                sender.play(tuned, answer.burst, answer.clump).await
            }
        }
    }

    fn order(&self) -> Order {
        let mut state = self.state.lock();
        let behavior = state.behaviors.get(&self.path).copied().unwrap_or(Behavior::Healthy);
        let resets = state.resets;
        let cuts = state.cuts.get(&self.path).cloned().unwrap_or_default();
        let Some(connection) = state.connections.get_mut(&self.id) else { return Order::Cut(Cut::Reset) };
        if connection.resets_seen < resets {
            return Order::Cut(Cut::Reset);
        }
        if let Some(&cut) = cuts.get(connection.cuts_seen) {
            connection.cuts_seen += 1;
            return Order::Cut(cut);
        }
        Order::Send(behavior)
    }

    /// Writes all bytes; returns `None` if the client has closed the connection.
    async fn write(&self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            tokio::select! {
                _ = self.gone() => return None,
                ready = self.socket.writable() => ready.ok()?,
            }
            match self.socket.try_write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if let Order::Cut(Cut::Reset) = self.order() {
                        let _ = SockRef::from(self.socket).set_linger(Some(Duration::ZERO));
                        return None;
                    }
                }
                Err(_) => return None,
            }
        }
        Some(())
    }

    async fn wait(&self, time: Duration) -> Option<()> {
        tokio::select! {
            _ = self.gone() => None,
            _ = tokio::time::sleep(time) => Some(()),
        }
    }

    /// Keeps the connection open without data until the client closes it or a cut ends it.
    async fn hold(&self) {
        while self.wait(TICK).await.is_some() {
            if let Order::Cut(cut) = self.order() {
                if cut == Cut::Reset {
                    let _ = SockRef::from(self.socket).set_linger(Some(Duration::ZERO));
                }
                if cut != Cut::Stall {
                    return;
                }
            }
        }
    }

    /// Returns when the client has closed the connection and the close delay has passed.
    async fn gone(&self) {
        let mut buffer = [0; 512];
        loop {
            if self.socket.readable().await.is_err() {
                return;
            }
            match self.socket.try_read(&mut buffer) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
        let delay = self.state.lock().close_delay;
        if !delay.is_zero() {
            let reset = async {
                while matches!(SockRef::from(self.socket).take_error(), Ok(None)) {
                    tokio::time::sleep(TICK).await;
                }
            };
            let _ = tokio::time::timeout(delay, reset).await;
        }
    }
}

/// Sends a programme at the pace of its clock.
struct Sender<'a> {
    exchange: &'a Exchange<'a>,
    chunked: bool,
    sent: u64,
    ends_after: Option<(u64, Cut)>,
    burst_speed: Option<f64>,
}

impl Sender<'_> {
    async fn play(mut self, mut tuned: Tuned, burst: Duration, clump: Duration) -> Option<Cut> {
        let start = Instant::now();
        let mut noise = 0x2545_F491_4F6C_DD1D_u64;
        // After a trickle the programme stays behind; it never catches up.
        let (mut programme_time, mut last) = (burst, start);
        let mut lossy = false;
        let mut due = Vec::new();
        loop {
            let order = self.exchange.order();
            let now = Instant::now();
            let step = now - last;
            last = now;
            let behavior = match order {
                // After data loss the stream must not continue as if nothing were missing.
                Order::Cut(cut) if lossy => return Some(cut),
                Order::Cut(cut) => return self.torn(&mut tuned, programme_time, cut).await,
                Order::Send(behavior) => behavior,
            };
            lossy = !matches!(behavior, Behavior::Healthy | Behavior::Trickle(_));
            programme_time +=
                if let Behavior::Trickle(share) = behavior { step.mul_f64(share) } else { step };
            due.clear();
            let reached = self.burst_speed.map(|speed| (now - start).mul_f64(speed));
            let programme_time = reached.map_or(programme_time, |reached| reached.min(programme_time));
            let n_clumps = programme_time.as_nanos().checked_div(clump.as_nanos());
            tuned.take(n_clumps.map_or(programme_time, |n| clump * n as u32), &mut due);
            spoil(behavior, &mut due, &mut noise);
            if let Some((bytes, cut)) = self.ends_after
                && self.sent + due.len() as u64 >= bytes
            {
                due.truncate((bytes - self.sent) as usize);
                self.send(&due).await?;
                return Some(cut);
            }
            self.send(&due).await?;
            if tuned.is_over() {
                if self.chunked {
                    self.exchange.write(b"0\r\n\r\n").await?;
                }
                return Some(Cut::End);
            }
            self.exchange.wait(TICK).await?;
        }
    }

    /// Ends the connection in the middle of a packet.
    async fn torn(&mut self, tuned: &mut Tuned, time: Duration, cut: Cut) -> Option<Cut> {
        let mut due = Vec::new();
        tuned.take(time + FRAME * 2, &mut due);
        due.truncate((due.len() / PACKET).saturating_sub(1) * PACKET + 77);
        self.send(&due).await?;
        Some(cut)
    }

    async fn send(&mut self, bytes: &[u8]) -> Option<()> {
        if bytes.is_empty() {
            return Some(());
        }
        self.sent += bytes.len() as u64;
        if !self.chunked {
            return self.exchange.write(bytes).await;
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.exchange.write(&chunk).await
    }
}

/// Modifies good packets according to the behavior.
fn spoil(behavior: Behavior, packets: &mut Vec<u8>, noise: &mut u64) {
    match behavior {
        Behavior::Healthy | Behavior::Trickle(_) => {}
        Behavior::Stalled => packets.clear(),
        Behavior::Garbage => packets.iter_mut().for_each(|byte| {
            *noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = ((*noise >> 56) as u8 & 0xBF).max(1) ^ 0x80;
        }),
        Behavior::OnlyNulls => packets.chunks_mut(PACKET).for_each(|packet| {
            packet[1..4].copy_from_slice(&[0x1F, 0xFF, 0x10]);
        }),
        Behavior::Unannounced => packets.chunks_mut(PACKET).for_each(|packet| {
            // Tables stay unchanged, so they keep announcing streams that do not come.
            if packet[1] & 0x1F != 0x10 && packet[1..3] != [0x40, 0] {
                (packet[1], packet[2]) = (0x1A, 0x80 | packet[2]);
            }
        }),
        Behavior::Scrambled => packets.chunks_mut(PACKET).for_each(|packet| {
            if packet[1] & 0x1F != 0x10 && packet[1..3] != [0x40, 0] {
                packet[3] |= 0x80;
            }
        }),
        Behavior::NoPicture => packets.chunks_mut(PACKET).for_each(|packet| {
            let has_clock = packet[3] & 0x20 != 0 && packet[4] > 0 && packet[5] & 0x10 != 0;
            let is_video = packet[1] & 0x1F == 1 && packet[2] == 0;
            if is_video && has_clock {
                // Of the packet with the clock only the adaptation field remains.
                (packet[1], packet[3]) = (packet[1] & !0x40, packet[3] & 0x0F | 0x20);
                (packet[4], packet[5]) = ((PACKET - 5) as u8, 0x10);
                packet[12..].fill(0xFF);
            } else if is_video {
                packet[1..4].copy_from_slice(&[0x1F, 0xFF, 0x10]);
            }
        }),
        Behavior::Torn => {
            if packets.len() > 20 * PACKET {
                packets.drain(5 * PACKET + 31..6 * PACKET);
            }
        }
    }
}
