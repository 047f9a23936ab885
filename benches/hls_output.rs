//! What does it cost to send one channel with HLS to many viewers, compared with nginx and the same segments as files?
//!
//! A provider in this process sends 8 Mbit/s. The gateway makes segments of it; viewers read the playlist and the newest
//! segment in every target duration, each on a connection that is kept open, with a session of its own. Then nginx serves
//! copies of these segments, as one process with `sendfile`, to viewers that read in the same way. The servers and the
//! viewers are separate processes. A viewer is *late* if a segment took longer than its duration.
//!
//! `cargo bench --bench hls_output -- [--viewers 2000] [--seconds 20] [--container ts] [--clip FILE.ts]`
//!
//! The generated channel has no codec that fMP4 can describe: `--container fmp4` needs a clip of 8 Mbit/s, of two minutes
//! or more.

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "threads without tokio measure the time")]

#[path = "support/client_pool.rs"]
#[expect(dead_code, reason = "this bench has clients of its own")]
mod client_pool;
#[path = "support/options.rs"]
#[expect(dead_code, reason = "this bench reads numbers only")]
mod options;
#[path = "support/process.rs"]
#[expect(dead_code, reason = "this bench sends no commands and reads no peak")]
mod process;
#[expect(dead_code, reason = "this bench needs no percentiles")]
mod support;
#[path = "../tests/it/support/mod.rs"]
#[expect(dead_code, reason = "benches use a part of the test support")]
mod test_support;
#[path = "hls_output/viewers.rs"]
mod viewers;

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use self::options::Options;
use self::process::{Process, free_port};
use self::test_support::signal::{Clip, Picture, Programme};
use self::test_support::upstream::{MockResponse, Provider};
use self::viewers::{Connection, names};

const SOURCE: &str = "/live/bench/channel.ts";
const BITS_PER_SECOND: u64 = 8_000_000;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().map(String::as_str) == Some("viewers") {
        return viewers::run(&arguments[1..]);
    }
    let options = Options::from_process();
    let (viewers, seconds) = (options.number("--viewers", 2_000), options.number("--seconds", 20));
    let text = |name: &str| {
        let at = arguments.iter().position(|it| it == name)?;
        arguments.get(at + 1).cloned()
    };
    let container = text("--container").unwrap_or_else(|| "ts".to_owned());

    let provider = Provider::start();
    let programme = match text("--clip") {
        Some(file) => {
            Programme::from(Arc::new(Clip::from_bytes(std::fs::read(file).expect("the clip can be read"))))
        }
        None => Picture::new("bench").bits_per_second(BITS_PER_SECOND).frames_per_gop(50).into(),
    };
    provider.path(SOURCE).answers(MockResponse::play(programme));
    let folder = tempfile::tempdir().expect("a temporary directory");
    let address = free_port();
    let (gateway, path) = gateway(&provider, address, folder.path());
    let path = format!("{path}?container={container}");

    println!(
        "{:>10} {:>8} {:>9} {:>6} {:>10} {:>5} {:>9}",
        "server", "viewers", "CPU s/GiB", "cores", "KiB/viewer", "late", "delivered"
    );
    // The first viewer keeps the segmenter running, and the segments become files.
    let first = Process::role("viewers", &arguments_of(address, &path, "live", 1, 3_600));
    let nginx = nginx(folder.path(), address, &path);
    let own = measured("headwater", &gateway, address, &path, "live", viewers, seconds);
    drop(first);
    drop(gateway);
    let beside = nginx.map(|(server, address)| {
        measured("nginx", &server, address, "/index.m3u8", "files", viewers, seconds)
    });
    let rows: Vec<Value> = std::iter::once(own).chain(beside).collect();
    if let [own, beside] = &rows[..] {
        let of = |row: &Value| row["cpu_seconds_per_gib"].as_f64().unwrap_or(f64::NAN);
        println!("\nratio: {:.2}", of(own) / of(beside));
    }
    support::record(
        "hls_output",
        json!({ "bits_per_second": BITS_PER_SECOND, "container": container, "seconds": seconds, "rows": rows }),
    );
}

fn arguments_of(address: SocketAddr, path: &str, kind: &str, viewers: usize, seconds: usize) -> [String; 5] {
    [address.to_string(), path.to_owned(), kind.to_owned(), viewers.to_string(), seconds.to_string()]
}

/// Lets viewers watch and measures the server meanwhile.
fn measured(
    name: &str,
    server: &Process,
    address: SocketAddr,
    path: &str,
    kind: &str,
    n_viewers: usize,
    seconds: usize,
) -> Value {
    let before = server.resident();
    let mut viewers = Process::role("viewers", &arguments_of(address, path, kind, n_viewers, seconds));
    assert_eq!(viewers.line(), "begin");
    let cpu = server.cpu();
    assert_eq!(viewers.line(), "end");
    let cpu = (server.cpu() - cpu).as_secs_f64();
    let memory = (server.resident() as f64 - before as f64) / n_viewers as f64 / 1024.0;
    let report: Value = serde_json::from_str(&viewers.line()).expect("viewers report");
    let of = |key: &str| report[key].as_f64().unwrap_or(f64::NAN);
    let per_gib = cpu / (of("bytes") / GIB);
    let cores = cpu / of("seconds");
    let delivered = of("bytes") / (of("seconds") * n_viewers as f64 * BITS_PER_SECOND as f64 / 8.0);
    println!(
        "{name:>10} {n_viewers:>8} {per_gib:>9.3} {cores:>6.2} {memory:>10.1} {:>5} {:>8.1}%",
        report["late"],
        delivered * 100.0
    );
    json!({
        "server": name,
        "viewers": n_viewers,
        "cpu_seconds_per_gib": per_gib,
        "cores": cores,
        "memory_kib_per_viewer": memory,
        "late_viewers": report["late"],
        "delivered": delivered,
    })
}

/// Starts the gateway with one channel, and returns the path of its master playlist.
fn gateway(provider: &Provider, address: SocketAddr, folder: &Path) -> (Process, String) {
    let list = folder.join("list.m3u");
    std::fs::write(&list, provider.playlist(&[("bench", "Bench", SOURCE)])).expect("a playlist");
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    command.arg("play").arg(&list).arg("--data-dir").arg(folder);
    command.args([
        "--player-listen",
        &address.to_string(),
        "--api-listen",
        "127.0.0.1:0",
        "--log-level",
        "warn",
    ]);
    command.args(["--set", "limits.connections_max=0", "--set", "limits.connections_per_address_max=0"]);
    let process = Process::spawn(&mut command);
    let playlist = loop {
        match client_pool::fetch(address, "/playlist.m3u?output=hls") {
            Some(text) if text.contains("/proxy/hls/") => break text,
            _ => thread::sleep(Duration::from_millis(50)),
        }
    };
    let at = playlist.find("/proxy/hls/").expect("checked above");
    let path = playlist[at..].split_whitespace().next().expect("a path").to_owned();
    (process, path)
}

/// Copies the segments of the channel into files, and starts nginx with one process for them. `None` if it is not
/// installed.
fn nginx(folder: &Path, gateway: SocketAddr, path: &str) -> Option<(Process, SocketAddr)> {
    let program = ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|it| Path::new(it).exists());
    let Some(program) = program else {
        println!("nginx is not installed, so that nothing is compared with it");
        return None;
    };
    let files = folder.join("files");
    std::fs::create_dir_all(&files).expect("a folder");
    let mut connection = Connection::open(gateway, "copy");
    let media = connection.master(path);
    // A full playlist.
    let playlist = loop {
        let playlist = connection.text(&media);
        if names(&playlist).count() >= 6 {
            break playlist;
        }
        thread::sleep(Duration::from_millis(500));
    };
    let base = media.rsplit_once('/').expect("a folder").0;
    for name in names(&playlist) {
        std::fs::write(files.join(name), connection.body(&format!("{base}/{name}"))).expect("a file");
    }
    std::fs::write(files.join("index.m3u8"), playlist).expect("a file");
    let address = free_port();
    let place = folder.display();
    let config = format!(
        "daemon off; master_process off; pid {place}/nginx.pid; error_log stderr warn;\n\
         events {{ worker_connections 16384; }}\n\
         http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; keepalive_timeout 300;\n\
         client_body_temp_path {place}; proxy_temp_path {place}; fastcgi_temp_path {place};\n\
         uwsgi_temp_path {place}; scgi_temp_path {place};\n\
         server {{ listen {address} backlog=8192; root {place}/files; }} }}\n"
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, config).expect("a configuration");
    let process = Process::spawn(Command::new(program).arg("-c").arg(&file).arg("-p").arg(folder));
    while TcpStream::connect(address).is_err() {
        thread::sleep(Duration::from_millis(20));
    }
    Some((process, address))
}
