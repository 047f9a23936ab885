//! What does it cost to play films: how long does a seek take, and what do many viewers need?
//!
//! A provider in this process has one film of 8 GiB. *Seek* is the time from the connection to the first byte of the film:
//! at the provider itself, through the gateway, and through the gateway from its cache; the three are measured in turn.
//! Then viewers read at 20 Mbit/s each, everyone over a connection to the provider of their own: first through the
//! gateway, then through nginx with `proxy_pass` and one process, if it is installed. The servers are separate processes.
//! A viewer is *late* if at any moment a second of film was missing.
//!
//! `cargo bench --bench vod_play -- [--viewers 200] [--seconds 20] [--seeks 300]`

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "threads without tokio measure the time")]

#[path = "support/client_pool.rs"]
#[expect(dead_code, reason = "this bench has clients of its own")]
mod client_pool;
#[path = "support/options.rs"]
#[expect(dead_code, reason = "this bench has one role")]
mod options;
#[path = "support/process.rs"]
#[expect(dead_code, reason = "this bench sends no commands and reads no peak")]
mod process;
#[path = "support/program.rs"]
#[expect(dead_code, reason = "this bench plays films only")]
mod program;
mod support;
#[path = "../tests/it/support/mod.rs"]
#[expect(dead_code, reason = "benches use a part of the test support")]
mod test_support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::options::Options;
use self::process::{Process, free_port};
use self::support::percentile;
use self::test_support::api::Api;

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
const LENGTH: u64 = 8 << 30;
const BYTES_PER_SECOND: u64 = 20_000_000 / 8;
/// Bytes that the provider sends at once.
const BLOCK_BYTES: usize = 1 << 20;
/// Time before the measurement, in which everybody connects.
const WARM_UP: Duration = Duration::from_secs(3);
const NO_LIMITS: [&str; 3] =
    ["limits.connections_max=0", "limits.connections_per_address_max=0", "limits.anonymous_viewers_max=0"];
const FILM: &str = "/movie/u/p/7.mp4";

fn main() {
    let options = Options::of_process();
    let (viewers, seconds) = (options.number("--viewers", 200), options.number("--seconds", 20));
    let n_seeks = options.number("--seeks", 300);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let provider = provider();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let address = free_port();
    let (server, path) = runtime.block_on(async {
        let server = program::start(address, folder.path(), &NO_LIMITS).await;
        (server, film(address, provider).await)
    });

    let seeks = seeks(n_seeks, provider, address, &path);
    println!("{:>10} {:>9} {:>9} {:>9}", "seek", "p50", "p99", "max");
    for row in seeks.as_array().into_iter().flatten() {
        let of = |name: &str| row[name].as_f64().unwrap_or(f64::NAN);
        let name = row["name"].as_str().unwrap_or_default();
        println!("{name:>10} {:>6.2} ms {:>6.2} ms {:>6.2} ms", of("p50_ms"), of("p99_ms"), of("max_ms"));
    }

    println!(
        "\n{:>10} {:>8} {:>9} {:>6} {:>10} {:>5} {:>9}",
        "server", "viewers", "CPU s/GiB", "cores", "KiB/viewer", "late", "delivered"
    );
    let own =
        watched("headwater", &server, address, viewers, seconds, |it| format!("{path}?session_id={it}"));
    drop(server);
    let nginx = nginx(folder.path(), provider)
        .map(|(server, address)| watched("nginx", &server, address, viewers, seconds, |_| FILM.to_owned()));
    let rows: Vec<Value> = std::iter::once(own).chain(nginx).collect();
    support::record(
        "vod_play",
        json!({ "bytes_per_second": BYTES_PER_SECOND, "seconds": seconds, "seeks": seeks, "rows": rows }),
    );
}

/// Creates an account with the film, and returns the path that plays it.
async fn film(address: SocketAddr, provider: SocketAddr) -> String {
    let admin = Api::stranger_at(address).become_first_admin().await;
    let account = json!({
        "name": "Films", "server_url": format!("http://{provider}/list.m3u"), "enable_vod": true,
        "auto_enable_new_groups_vod": true,
    });
    let made = admin.post("/api/m3u/accounts/", account).await;
    assert_eq!(made.status, 201, "{made:?}");
    loop {
        let films = admin.get("/api/vod/movies/").await;
        if let Some(uuid) = films.body["results"][0]["uuid"].as_str() {
            return format!("/proxy/vod/movie/{uuid}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Starts the provider: a playlist with one film, and the film.
fn provider() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let block: Arc<[u8]> = (0..BLOCK_BYTES).map(|it| (it % 251) as u8).collect();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let block = block.clone();
            // A client that leaves ends the thread.
            thread::spawn(move || serve(socket, address, &block));
        }
    });
    address
}

fn serve(mut socket: TcpStream, address: SocketAddr, block: &[u8]) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let head = read_head(&mut socket)?;
    if head.starts_with("GET /list.m3u") {
        let list = format!("#EXTM3U\n#EXTINF:-1 group-title=\"Films\",Film (2020)\nhttp://{address}{FILM}\n");
        let length = list.len();
        return write!(
            socket,
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{list}"
        );
    }
    let range =
        head.lines().find_map(|it| it.to_ascii_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
    let (start, end) = range.as_deref().and_then(|it| it.split_once('-')).unwrap_or_default();
    let start: u64 = start.parse().unwrap_or(0);
    let end: u64 = end.parse().map_or(LENGTH, |it: u64| it + 1);
    let (status, length) = (if range.is_some() { "206 Partial Content" } else { "200 OK" }, end - start);
    write!(
        socket,
        "HTTP/1.1 {status}\r\nContent-Type: video/mp4\r\nETag: \"film\"\r\nContent-Length: {length}\r\n\
         Content-Range: bytes {start}-{}/{LENGTH}\r\nConnection: close\r\n\r\n",
        end - 1
    )?;
    let mut at = start;
    while at < end {
        let offset = (at % block.len() as u64) as usize;
        let n_bytes = (block.len() - offset).min((end - at) as usize);
        socket.write_all(&block[offset..offset + n_bytes])?;
        at += n_bytes as u64;
    }
    Ok(())
}

fn read_head(socket: &mut TcpStream) -> std::io::Result<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Requests a part of the film. Returns the connection, after the head of the answer.
fn request(address: SocketAddr, path: &str, range: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).expect("the server accepts");
    socket.set_nodelay(true).expect("a socket");
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench\r\nRange: bytes={range}\r\n\r\n");
    socket.write_all(request.as_bytes()).expect("the server reads");
    let head = read_head(&mut socket).expect("the server answers");
    assert!(head.starts_with("HTTP/1.1 206"), "{head}");
    socket
}

/// Returns the time to the first byte in milliseconds, and closes the connection like a player that seeks.
fn seek(address: SocketAddr, path: &str, range: &str) -> f64 {
    let started = Instant::now();
    let mut socket = request(address, path, range);
    socket.read_exact(&mut [0]).expect("a byte of the film");
    started.elapsed().as_secs_f64() * 1_000.0
}

fn seeks(n: u64, provider: SocketAddr, address: SocketAddr, path: &str) -> Value {
    let path = format!("{path}?session_id=seek");
    // Fills the cache, and reads the programs into memory.
    for range in ["0-2097151", "8587837440-"] {
        let mut bytes = vec![0; 2 << 20];
        request(address, &path, range).read_exact(&mut bytes).expect("the edge of the film");
    }
    let mut times: [Vec<f64>; 3] = Default::default();
    for number in 0..n {
        // Far from each other and from both edges, so that no connection reads on.
        let at = (64 << 20) + number * 7_919 * (1 << 20) % (LENGTH - (128 << 20));
        let far = format!("{at}-");
        let edge = format!("{}-", number * 3_001 % (1 << 20));
        let near_end = format!("{}-{}", LENGTH - 65_536 - number, LENGTH - 1);
        times[0].push(seek(provider, FILM, &far));
        times[1].push(seek(address, &path, &far));
        times[2].push(seek(address, &path, if number % 2 == 0 { &near_end } else { &edge }));
    }
    let rows = ["provider", "gateway", "cache"].into_iter().zip(&mut times).map(|(name, times)| {
        json!({
            "name": name,
            "p50_ms": percentile(times, 0.5),
            "p99_ms": percentile(times, 0.99),
            "max_ms": percentile(times, 1.0),
        })
    });
    rows.collect()
}

/// Measures a server while viewers read at their rate.
fn watched(
    name: &str,
    server: &Process,
    address: SocketAddr,
    viewers: u64,
    seconds: u64,
    path_of: impl Fn(u64) -> String,
) -> Value {
    // One viewer starts every thread, so that the difference in memory is that of the viewers.
    seek(address, &path_of(viewers), "100000000-");
    thread::sleep(Duration::from_millis(500));
    let before = server.resident();
    let (bytes, n_late) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let is_over = Arc::<AtomicBool>::default();
    let watching: Vec<_> = (0..viewers)
        .map(|number| {
            let (path, bytes, n_late, is_over) =
                (path_of(number), bytes.clone(), n_late.clone(), is_over.clone());
            thread::spawn(move || {
                // Spread over the interval, like real viewers.
                thread::sleep(Duration::from_millis(number * 5));
                let late = watch(request(address, &path, "100000000-"), &bytes, &is_over);
                n_late.fetch_add(u64::from(late), Ordering::Relaxed);
            })
        })
        .collect();
    thread::sleep(WARM_UP + Duration::from_millis(viewers * 5));
    let (cpu, started, first) = (server.cpu(), Instant::now(), bytes.load(Ordering::Relaxed));
    thread::sleep(Duration::from_secs(seconds));
    let (cpu, measured) = (server.cpu() - cpu, started.elapsed().as_secs_f64());
    let delivered = (bytes.load(Ordering::Relaxed) - first) as f64;
    let resident = server.resident();
    is_over.store(true, Ordering::Relaxed);
    watching.into_iter().for_each(|it| it.join().expect("a viewer"));
    let n_late = n_late.load(Ordering::Relaxed);
    let cpu_per_gib = cpu.as_secs_f64() / (delivered / GIB);
    let cores = cpu.as_secs_f64() / measured;
    let kib = (resident as f64 - before as f64) / viewers as f64 / 1024.0;
    let fraction = delivered / (measured * (viewers * BYTES_PER_SECOND) as f64);
    println!(
        "{name:>10} {viewers:>8} {cpu_per_gib:>9.3} {cores:>6.2} {kib:>10.1} {n_late:>5} {:>8.1}%",
        fraction * 100.0
    );
    json!({
        "server": name,
        "viewers": viewers,
        "cpu_seconds_per_gib": cpu_per_gib,
        "cores": cores,
        "memory_kib_per_viewer": kib,
        "late_viewers": n_late,
        "delivered": fraction,
    })
}

/// Reads at the rate of the film until the end. Returns whether the viewer was late.
fn watch(mut socket: TcpStream, bytes: &AtomicU64, is_over: &AtomicBool) -> bool {
    const INTERVAL: Duration = Duration::from_millis(50);
    let mut buffer = vec![0; 64 << 10];
    let (started, mut n_read, mut is_late) = (Instant::now(), 0, false);
    while !is_over.load(Ordering::Relaxed) {
        let due = (started.elapsed().as_secs_f64() * BYTES_PER_SECOND as f64) as u64;
        is_late |= due > n_read + BYTES_PER_SECOND;
        while n_read < due {
            let n_bytes = socket.read(&mut buffer).expect("the film continues");
            assert!(n_bytes > 0, "the film ended early");
            n_read += n_bytes as u64;
            bytes.fetch_add(n_bytes as u64, Ordering::Relaxed);
        }
        thread::sleep(INTERVAL);
    }
    is_late
}

/// Starts nginx as one process that passes requests on. `None` if it is not installed.
fn nginx(folder: &std::path::Path, provider: SocketAddr) -> Option<(Process, SocketAddr)> {
    let address = free_port();
    let temporary = folder.join("nginx");
    std::fs::create_dir_all(&temporary).expect("a folder");
    let place = temporary.display();
    let config = format!(
        "daemon off; master_process off; pid {place}/pid; error_log stderr warn;\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; client_body_temp_path {place}; proxy_temp_path {place}; fastcgi_temp_path {place};\n\
         uwsgi_temp_path {place}; scgi_temp_path {place};\n\
         server {{ listen {address}; location / {{ proxy_pass http://{provider}; proxy_http_version 1.1;\n\
         proxy_max_temp_file_size 0; }} }} }}\n"
    );
    let file = temporary.join("nginx.conf");
    std::fs::write(&file, config).expect("a configuration");
    let program =
        ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|it| std::path::Path::new(it).exists());
    let Some(program) = program else {
        println!("nginx is not installed, so that nothing is compared with it");
        return None;
    };
    let process = Process::spawn(Command::new(program).arg("-c").arg(&file).arg("-p").arg(&temporary));
    while TcpStream::connect(address).is_err() {
        thread::sleep(Duration::from_millis(20));
    }
    Some((process, address))
}
