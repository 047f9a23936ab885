//! How much of a core do HLS inputs take, and how long does an idle one take to its first packet?
//!
//! A provider in a thread of its own serves live playlists with segments of four seconds over real sockets. All sources and
//! their pumps run in one other thread, whose processor time is measured: it includes the kernel's part of reading.
//!
//! The start is compared with a plain client that requests the playlist and reads one whole segment, from a provider that
//! sends at a limited rate.
//!
//! `cargo bench --bench hls_input -- [--inputs 200] [--seconds 60]`

#![expect(clippy::print_stdout, reason = "a bench prints its results")]

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use media::closer::Closer;
use media::dial::TcpDial;
use media::launcher::Launcher;
use media::pump::{PumpMessage, PumpSettings, pump};
use media::ring::{Budget, RingSettings, ring};
use media::source::{OpenRequest, Source, SourceSettings, Upstream, open};
use media::testing::TsSource;
use media::{DialSettings, Permit};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use self::support::{percentile, record};

const BITS_PER_SECOND: u64 = 4_000_000;
const SEGMENT: Duration = Duration::from_secs(4);
/// Number of segments that a playlist lists.
const WINDOW: u64 = 6;
/// Number of different segments; later ones are the same again after a discontinuity.
const N_SEGMENTS: u64 = 30;
/// Number of starts that are measured.
const N_STARTS: usize = 20;
/// The rate of the provider for them, in bytes per second.
const START_RATE: usize = 4_000_000;
/// Bytes that are sent at once at that rate.
const PIECE: usize = 40_000;

struct NoPermit;

impl Permit for NoPermit {
    fn delivers(&mut self) {}

    fn closing(&mut self) {}
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str, default: u64| {
        let at = arguments.iter().position(|it| it == name);
        at.map_or(default, |at| arguments[at + 1].parse().expect("a number"))
    };
    let (n_inputs, seconds) = (option("--inputs", 200), option("--seconds", 60));
    let ts = TsSource { bitrate: BITS_PER_SECOND, ..TsSource::new("bench") };
    let segments: Arc<Vec<Bytes>> =
        Arc::new((0..N_SEGMENTS as u32).map(|it| ts.bytes(SEGMENT * it, SEGMENT)).collect());
    let (cpu, n_playing) = load(serve(segments.clone(), None), n_inputs, seconds);
    println!("{n_inputs} inputs of 4 Mbit/s: {:.3} of a core, {n_playing} play", cpu / seconds as f64);
    let slow = serve(segments, Some(START_RATE));
    let (mut own, mut plain) = starts(slow);
    let [own, plain] = [&mut own, &mut plain].map(|it| percentile(it, 0.5));
    println!(
        "start: {own:.3} s; playlist and one segment by a plain client: {plain:.3} s; {:.2} times",
        own / plain
    );
    record(
        "hls_input",
        json!({
            "inputs": n_inputs,
            "inputs_that_play": n_playing,
            "cores": cpu / seconds as f64,
            "start_seconds": own,
            "plain_client_seconds": plain,
            "start_by_plain_client": own / plain,
        }),
    );
}

/// Plays all inputs in this thread. Returns its processor time in seconds, and the number of inputs that still play.
fn load(provider: SocketAddr, n_inputs: u64, seconds: u64) -> (f64, usize) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let budget = Budget::new(4 << 30);
        let (lost, mut losses) = mpsc::unbounded_channel();
        let mut pumps = Vec::new();
        for number in 0..n_inputs {
            let source = opened(provider, number).await;
            let (writer, ring) = ring(RingSettings::default(), &budget);
            let lost = lost.clone();
            let (pump, running) = pump(writer, PumpSettings::default(), None, move |message| {
                if let PumpMessage::Lost { cause, .. } = message {
                    let _ = lost.send(cause);
                }
            });
            tokio::spawn(running);
            pump.follow(1, 1, source);
            pumps.push((pump, ring));
        }
        sleep(Duration::from_secs(10)).await;
        let before = cpu_seconds();
        sleep(Duration::from_secs(seconds)).await;
        let cpu = cpu_seconds() - before;
        let mut n_lost = 0;
        while let Ok(cause) = losses.try_recv() {
            println!("an input was lost: {cause}");
            n_lost += 1;
        }
        (cpu, pumps.len() - n_lost)
    })
}

/// Returns the times of starts, and those of a plain client, in seconds.
fn starts(provider: SocketAddr) -> (Vec<f64>, Vec<f64>) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (mut own, mut plain) = (Vec::new(), Vec::new());
    for number in 0..N_STARTS as u64 {
        own.push(runtime.block_on(async {
            let began = Instant::now();
            let source = opened(provider, number).await;
            let took = began.elapsed().as_secs_f64();
            drop(source);
            took
        }));
        let began = Instant::now();
        let mut socket = TcpStream::connect(provider).expect("the provider listens");
        let list = String::from_utf8(requested(&mut socket, "/list")).expect("text");
        let first = list.lines().rfind(|it| !it.starts_with('#')).expect("a segment").to_owned();
        requested(&mut socket, &first);
        plain.push(began.elapsed().as_secs_f64());
    }
    (own, plain)
}

async fn opened(provider: SocketAddr, number: u64) -> Source {
    let upstream = Upstream {
        dial: Arc::new(TcpDial::new(DialSettings::default()).expect("a dialer")),
        closer: Closer::new(Handle::current()),
        launcher: Launcher::default(),
        settings: SourceSettings::default(),
    };
    let request = OpenRequest { url: format!("http://{provider}/list?{number}"), ..OpenRequest::default() };
    open(request, Box::new(NoPermit), upstream).await.expect("the provider plays")
}

/// Returns the processor time of this thread.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let nanoseconds = text.split(' ').next().and_then(|it| it.parse::<u64>().ok());
    nanoseconds.expect("a number") as f64 / 1e9
}

/// Sends a request over a kept connection and returns the body.
fn requested(socket: &mut TcpStream, path: &str) -> Vec<u8> {
    write!(socket, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").expect("the provider reads");
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        let n = socket.read(&mut buffer).expect("the provider sends");
        bytes.extend_from_slice(&buffer[..n]);
        let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
        let length = head.lines().find_map(|it| it.strip_prefix("Content-Length: ")?.parse::<usize>().ok());
        let end = at + 4 + length.expect("a length");
        while bytes.len() < end {
            let n = socket.read(&mut buffer).expect("the provider sends");
            bytes.extend_from_slice(&buffer[..n]);
        }
        return bytes[at + 4..end].to_vec();
    }
}

/// Serves a live stream in a thread of its own, at `rate` bytes per second for each connection.
fn serve(segments: Arc<Vec<Bytes>>, rate: Option<usize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            let began = Instant::now();
            while let Ok((socket, _)) = listener.accept().await {
                let segments = segments.clone();
                tokio::spawn(async move {
                    // An error means that the client has left.
                    let _ = converse(socket, &segments, began, rate).await;
                });
            }
        });
    });
    address
}

async fn converse(
    mut socket: tokio::net::TcpStream,
    segments: &[Bytes],
    began: Instant,
    rate: Option<usize>,
) -> std::io::Result<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if socket.read_buf(&mut head).await? == 0 {
                return Ok(());
            }
        }
        let text = String::from_utf8_lossy(&head).into_owned();
        let path = text.split(' ').nth(1).unwrap_or_default();
        let number = path.strip_prefix("/s/").and_then(|it| it.parse::<u64>().ok());
        let body = match number {
            Some(number) => segments[(number % N_SEGMENTS) as usize].clone(),
            None => Bytes::from(list(WINDOW + began.elapsed().as_secs() / SEGMENT.as_secs())),
        };
        let is_closing = if text.contains("connection: close") || text.contains("Connection: close") {
            "Connection: close\r\n"
        } else {
            ""
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{is_closing}\r\n", body.len());
        socket.write_all(head.as_bytes()).await?;
        match rate {
            None => socket.write_all(&body).await?,
            Some(rate) => {
                for piece in body.chunks(PIECE) {
                    socket.write_all(piece).await?;
                    sleep(Duration::from_secs_f64(piece.len() as f64 / rate as f64)).await;
                }
            }
        }
        if !is_closing.is_empty() {
            return Ok(());
        }
    }
}

/// Returns the playlist when `end` segments exist.
fn list(end: u64) -> String {
    let segments: String = (end - WINDOW..end)
        .map(|it| {
            let tag = if it.is_multiple_of(N_SEGMENTS) { "#EXT-X-DISCONTINUITY\n" } else { "" };
            format!("{tag}#EXTINF:4,\n/s/{it}\n")
        })
        .collect();
    format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:{}\n{segments}", end - WINDOW)
}
