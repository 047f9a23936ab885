//! How soon does a playlist of 20,000 channels begin and end, and how much memory does it take?
//!
//! A gateway in this process serves the channels to clients on loopback sockets, one after the other: the whole playlist
//! and guide, plain and compressed, and the answer that nothing has changed. Then 200 clients request the playlist at the
//! same moment and read slowly; the peak memory before and after shows that pieces of the text are in memory and not the
//! texts.
//!
//! `cargo bench --bench playlist_output -- [--channels 20000]`

#![expect(clippy::print_stdout, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "this bench does not pause time")]

#[path = "support/memory.rs"]
mod memory;
mod support;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use domain::channel::Channel;
use domain::ids::ChannelId;
use domain::playlist::catalogue::Catalogue;
use headwater::config::{Config, ContainerProxy, Listen};
use headwater::{Gateway, Runtimes};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use self::memory::peak_resident_bytes;
use self::support::percentile;

const MIB: f64 = 1024.0 * 1024.0;
/// Requests of each kind.
const REPEATS: usize = 30;
/// Clients that read at the same time.
const CLIENTS: usize = 200;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let n =
        arguments.iter().position(|it| it == "--channels").and_then(|at| arguments.get(at + 1)?.parse().ok());
    let n: u32 = n.unwrap_or(20_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let gateway = runtime.block_on(start(n));
    let address = gateway.player_addr();

    let mut kinds = Map::new();
    let whole = |path: &str, header: &str| get(address, path, header, Duration::ZERO);
    for (name, path, header) in [
        ("playlist", "/output/m3u", ""),
        ("playlist, gzip", "/output/m3u", "Accept-Encoding: gzip\r\n"),
        ("guide", "/output/epg", ""),
        ("guide, gzip", "/output/epg", "Accept-Encoding: gzip\r\n"),
    ] {
        let tag = whole(path, header).tag.expect("an entity tag");
        let known = format!("If-None-Match: {tag}\r\n");
        let answers: Vec<Answer> = (0..REPEATS).map(|_| whole(path, header)).collect();
        let mut firsts: Vec<f64> = answers.iter().map(|it| it.first_ms).collect();
        let mut ends: Vec<f64> = answers.iter().map(|it| it.end_ms).collect();
        let mut unchanged: Vec<f64> = (0..REPEATS).map(|_| whole(path, &known).end_ms).collect();
        let [first, end, same] = [&mut firsts, &mut ends, &mut unchanged].map(|it| percentile(it, 0.95));
        let kib = answers[0].bytes / 1024;
        println!("{name:>16}: first byte {first:.1} ms, end {end:.1} ms, 304 {same:.1} ms (p95); {kib} KiB");
        let results = json!({ "first_byte_ms": first, "end_ms": end, "unchanged_ms": same, "kib": kib });
        kinds.insert(name.to_owned(), results);
    }

    let before = peak_resident_bytes() as f64 / MIB;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| std::thread::spawn(move || get(address, "/output/m3u", "", Duration::from_millis(1))))
        .collect();
    let answers: Vec<Answer> = clients.into_iter().map(|it| it.join().expect("a client")).collect();
    let growth = peak_resident_bytes() as f64 / MIB - before;
    let mut firsts: Vec<f64> = answers.iter().map(|it| it.first_ms).collect();
    let first = percentile(&mut firsts, 0.95);
    println!("{CLIENTS} clients at once: first byte {first:.1} ms (p95), {growth:.0} MiB more at the peak");
    let many = json!({ "clients": CLIENTS, "first_byte_ms": first, "peak_growth_mib": growth });
    let results = json!({ "channels": n, "one_at_a_time": Value::Object(kinds), "at_once": many });
    support::record("playlist_output", results);
    runtime.block_on(gateway.stop());
}

async fn start(n: u32) -> Gateway {
    let channel = |id: u32| {
        let uuid = Uuid::from_u128(0xfeed_0000_0000_0000 + u128::from(id));
        let number = id.to_string().parse().ok();
        let name = format!("Channel with a name of usual length {id}");
        Channel { number, ..Channel::new(ChannelId(id), uuid, name, 0) }
    };
    let catalogue = Catalogue { channels: (1..=n).map(channel).collect(), ..Catalogue::default() };
    let local = Listen::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let config = Config {
        api_listen: local,
        player_listen: local,
        container_proxy: ContainerProxy::None,
        ..Config::default()
    };
    headwater::install_tls();
    let store = headwater::play::temporary(catalogue).await.expect("a store");
    Gateway::start(config, store, Runtimes::current()).await.expect("the gateway starts")
}

/// An answer that was read to its end.
struct Answer {
    tag: Option<String>,
    first_ms: f64,
    end_ms: f64,
    bytes: usize,
}

/// Requests a path on a new connection, and pauses after each read.
fn get(address: SocketAddr, path: &str, header: &str, pause: Duration) -> Answer {
    let begun = Instant::now();
    let mut socket = TcpStream::connect(address).expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{header}\r\n");
    socket.write_all(request.as_bytes()).expect("a request");
    let (mut text, mut first, mut buffer) = (Vec::new(), None, vec![0; 64 << 10]);
    loop {
        let n = socket.read(&mut buffer).expect("an answer");
        first.get_or_insert(begun.elapsed());
        if n == 0 {
            break;
        }
        text.extend_from_slice(&buffer[..n]);
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    }
    let head = String::from_utf8_lossy(&text[..text.len().min(2_000)]).into_owned();
    assert!(head.starts_with("HTTP/1.1 200") || head.starts_with("HTTP/1.1 304"), "{head}");
    let tag = head.lines().find_map(|it| it.strip_prefix("Etag: ")).map(|it| it.trim().to_owned());
    let millis = |it: Duration| it.as_secs_f64() * 1e3;
    Answer {
        tag,
        first_ms: millis(first.unwrap_or_default()),
        end_ms: millis(begun.elapsed()),
        bytes: text.len(),
    }
}
