//! Hostile clients: connections that guess passwords, and connections that send their bodies slowly. Each has an address
//! of its own, among the loopback addresses.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// Pause of a guesser after each answer: the round trip of a client elsewhere.
const ROUND_TRIP: Duration = Duration::from_millis(100);
/// Pause of a slow client after each byte.
const BYTE_PAUSE: Duration = Duration::from_millis(500);

/// Number of answers by status.
pub type Answers = BTreeMap<u16, u64>;

/// Hostile connections. They end when this is dropped.
pub struct Hostile {
    answers: Arc<Mutex<Answers>>,
    _tasks: JoinSet<()>,
}

impl Hostile {
    /// Starts `n` connections that guess passwords without end: half of them for this user, half for unknown names.
    pub fn guessers(address: SocketAddr, username: &'static str, n: u32) -> Hostile {
        Self::start(n, move |number, answers| async move {
            for round in 0_u64.. {
                let socket = connect(address, number).await;
                // A connection that was refused is opened again.
                if let Ok(socket) = socket {
                    let _ = guess(socket, username, number, round, &answers).await;
                }
                tokio::time::sleep(ROUND_TRIP).await;
            }
        })
    }

    /// Starts `n` connections that send the body of a login byte by byte.
    pub fn slow_bodies(address: SocketAddr, n: u32) -> Hostile {
        Self::start(n, move |number, answers| async move {
            loop {
                // Other addresses than those of the guessers.
                if let Ok(socket) = connect(address, 100_000 + number).await {
                    let _ = send_slowly(socket, &answers).await;
                }
                tokio::time::sleep(ROUND_TRIP).await;
            }
        })
    }

    fn start<F>(n: u32, run: impl Fn(u32, Arc<Mutex<Answers>>) -> F) -> Hostile
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let answers = Arc::default();
        let mut tasks = JoinSet::new();
        for number in 0..n {
            tasks.spawn(run(number, Arc::clone(&answers)));
        }
        Hostile { answers, _tasks: tasks }
    }

    /// Returns the number of answers so far, by status.
    pub fn answers(&self) -> Answers {
        self.answers.lock().clone()
    }
}

async fn connect(address: SocketAddr, number: u32) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    // From 127.1.0.1 on, so that none of them is the address of other clients.
    let own = Ipv4Addr::from_bits(0x7f01_0000 + (number / 250) * 256 + number % 250 + 1);
    socket.bind((own, 0).into())?;
    socket.connect(address).await
}

async fn guess(
    mut socket: TcpStream,
    username: &str,
    number: u32,
    round: u64,
    answers: &Mutex<Answers>,
) -> io::Result<()> {
    for n in 0_u64.. {
        let username = if number.is_multiple_of(2) { username.to_owned() } else { format!("nobody{number}") };
        let body = format!("{{\"username\":\"{username}\",\"password\":\"guess {number} {round} {n}\"}}");
        let length = body.len();
        let head = format!(
            "POST /api/accounts/token/ HTTP/1.1\r\nHost: tv.example\r\nUser-Agent: guesser\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        socket.write_all((head + &body).as_bytes()).await?;
        let status = read_answer(&mut socket).await?;
        *answers.lock().entry(status).or_default() += 1;
        tokio::time::sleep(ROUND_TRIP).await;
    }
    Ok(())
}

async fn send_slowly(mut socket: TcpStream, answers: &Mutex<Answers>) -> io::Result<()> {
    let head = "POST /api/accounts/token/ HTTP/1.1\r\nHost: tv.example\r\nContent-Type: application/json\r\n\
        Content-Length: 4000\r\n\r\n";
    socket.write_all(head.as_bytes()).await?;
    loop {
        tokio::select! {
            status = read_answer(&mut socket) => {
                *answers.lock().entry(status?).or_default() += 1;
                return Ok(());
            }
            () = tokio::time::sleep(BYTE_PAUSE) => socket.write_all(b" ").await?,
        }
    }
}

/// Reads an answer with a length, and returns its status.
async fn read_answer(socket: &mut TcpStream) -> io::Result<u16> {
    let mut answer = Vec::new();
    loop {
        if socket.read_buf(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).and_then(|it| it.lines().next()?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
            return status.ok_or_else(|| io::ErrorKind::InvalidData.into());
        }
    }
}
