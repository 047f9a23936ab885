//! The process with the viewers of one gateway: each reads one channel, and some change it.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::task::AbortOnDropHandle;

/// Viewers who connect at the same time.
const AT_ONCE: u64 = 100;
/// A viewer who was refused tries again after this time.
const RETRY: Duration = Duration::from_millis(500);

#[derive(Default)]
struct Counters {
    bytes: AtomicU64,
    asked: AtomicU64,
    watching: AtomicU64,
    ended: AtomicU64,
    refused: AtomicU64,
    /// Milliseconds until the first bytes of a channel.
    joins: Mutex<Vec<f64>>,
}

/// Arguments: the address of the gateway, the number of viewers, how many of them change channels each second, and the paths
/// of the channels. Prints `watching` when all receive a channel; reads `change` and `end`, and prints a report.
pub fn run(arguments: &[String]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(watch(arguments));
}

async fn watch(arguments: &[String]) {
    let address: SocketAddr = arguments[0].parse().expect("an address");
    let n: usize = arguments[1].parse().expect("a number of viewers");
    let zaps: u32 = arguments[2].parse().expect("a number of changes");
    let paths: Arc<[String]> = arguments[3..].into();
    let counters = Arc::new(Counters::default());
    let mut viewers = Vec::with_capacity(n);
    let start = |at: usize| {
        let (paths, counters) = (Arc::clone(&paths), Arc::clone(&counters));
        counters.asked.fetch_add(1, Relaxed);
        AbortOnDropHandle::new(tokio::spawn(async move {
            view(address, &paths[at % paths.len()], &counters).await;
        }))
    };
    for at in 0..n {
        while counters.asked.load(Relaxed) - counters.watching.load(Relaxed) > AT_ONCE {
            sleep(Duration::from_millis(5)).await;
        }
        viewers.push(start(at));
    }
    while counters.watching.load(Relaxed) < n as u64 {
        sleep(Duration::from_millis(20)).await;
    }
    println!("watching");
    let mut lines = lines();
    assert_eq!(lines.recv().await.as_deref(), Some("change"));
    counters.joins.lock().expect("a list").clear();
    let (begun, before) = (Instant::now(), counters.bytes.load(Relaxed));
    let mut ticks = (zaps > 0).then(|| interval(Duration::from_secs(1) / zaps));
    if let Some(ticks) = &mut ticks {
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    }
    for turn in 1_usize.. {
        let tick = async {
            match &mut ticks {
                Some(ticks) => drop(ticks.tick().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            line = lines.recv() => {
                assert_eq!(line.as_deref(), Some("end"));
                break;
            }
            () = tick => {}
        }
        // A fixed sequence that meets all viewers and channels.
        let at = turn * 7919 % n;
        viewers[at] = start(at + turn * 13);
    }
    let bytes = counters.bytes.load(Relaxed) - before;
    println!(
        "{}",
        json!({
            "joins_ms": *counters.joins.lock().expect("a list"),
            "ended": counters.ended.load(Relaxed),
            "refused": counters.refused.load(Relaxed),
            "bytes_per_second": (bytes as f64 / begun.elapsed().as_secs_f64()) as u64,
        })
    );
}

/// Returns the lines that the bench sends.
fn lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Reads a channel until this is dropped.
async fn view(address: SocketAddr, path: &str, counters: &Counters) {
    let asked = Instant::now();
    let mut buffer = [0; 4096];
    loop {
        let mut socket = TcpStream::connect(address).await.expect("the gateway listens");
        let request = format!("GET {path} HTTP/1.0\r\nUser-Agent: bench\r\n\r\n");
        socket.write_all(request.as_bytes()).await.expect("the gateway reads");
        let n = socket.read(&mut buffer).await.unwrap_or_default();
        if !buffer[..n].starts_with(b"HTTP/1.0 200") && !buffer[..n].starts_with(b"HTTP/1.1 200") {
            counters.refused.fetch_add(1, Relaxed);
            sleep(RETRY).await;
            continue;
        }
        let mut is_first =
            !buffer[..n].windows(4).any(|it| it == b"\r\n\r\n") || buffer[..n].ends_with(b"\r\n\r\n");
        let joined = |counters: &Counters| {
            counters.watching.fetch_add(1, Relaxed);
            counters.joins.lock().expect("a list").push(asked.elapsed().as_secs_f64() * 1_000.0);
        };
        if !is_first {
            joined(counters);
        }
        while let Ok(n @ 1..) = socket.read(&mut buffer).await {
            if std::mem::take(&mut is_first) {
                joined(counters);
            }
            counters.bytes.fetch_add(n as u64, Relaxed);
        }
        counters.ended.fetch_add(1, Relaxed);
        return;
    }
}
