//! What does a large cluster cost, and how fast does it answer an admin?
//!
//! Ten gateways and three NATS servers on this machine, 500 channels, and 100,000 viewers, 10,000 at each gateway, some of whom
//! change channels all the time. A provider sends one picture a second, so that the viewers and not the bytes are the load; with
//! more time between pictures, the packets are not the load of a small machine either.
//! Measured are the CPU time, the memory and the traffic of the servers, the memory of the gateways, the time until a viewer
//! has a packet of another channel, whether a stream ended, and how long the status and the channels of all nodes take.
//!
//! `cargo bench --bench cluster_viewers -- [--nodes 10] [--viewers 100000] [--zaps 200] [--channels 500] [--seconds 60] [--pause 1]`

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]

#[path = "support/nats_use.rs"]
mod nats_use;
#[path = "support/options.rs"]
mod options;
#[path = "support/process.rs"]
#[expect(dead_code, reason = "benches use a part of it")]
mod process;
mod support;
#[path = "../tests/it/support/mod.rs"]
#[expect(dead_code, reason = "benches use a part of the test support")]
mod test_support;
#[path = "cluster_viewers/viewers.rs"]
mod viewers;

use std::net::SocketAddr;
use std::time::Duration;

use cluster::testing::NatsServers;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

use self::nats_use::measure;
use self::options::Options;
use self::process::Process;
use self::support::percentile;
use self::test_support::api::Api;
use self::test_support::cluster::{Machine, Node, nodes};
use self::test_support::signal::{FRAME, Picture, Programme, Tuned};
use self::test_support::{tools, until_async};

/// Time for channels to settle after all viewers have come.
const SETTLED: Duration = Duration::from_secs(15);
/// Time between two requests of the admin.
const LOOK: Duration = Duration::from_millis(500);

fn main() {
    let options = Options::from_process();
    if let Some(arguments) = options.role("viewers") {
        return viewers::run(arguments);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(bench(&options));
}

async fn bench(options: &Options) {
    let n_nodes = options.number("--nodes", 10_usize);
    let n_viewers = options.number("--viewers", 100_000_usize);
    let zaps = options.number("--zaps", 200_usize);
    let n_channels = options.number("--channels", 500_usize);
    let seconds = options.number("--seconds", 60_u64);
    // Seconds between two pictures of the provider.
    let pause = options.number("--pause", 1_u64);
    let provider = provider(Duration::from_secs(pause)).await;
    let nats = NatsServers::start(&tools::installed("bin/nats-server"), 3);
    let machine = |at: usize| {
        let mut machine = Machine::new(format!("node{at}").leak(), &nats);
        let limits = ["connections_max", "connections_per_address_max"];
        machine.settings = limits.map(|it| format!("limits.{it}=19000")).to_vec();
        let patience = ["stall_timeout", "silence_suspected_after"];
        machine.settings.extend(patience.map(|it| format!("engine.{it}={}", pause * 5)));
        machine
    };
    let first = machine(0);
    let paths = fill(&first, provider, n_channels).await;
    let nodes = nodes([first].into_iter().chain((1..n_nodes).map(machine))).await;
    // Each channel begins at another node than the one before, so that all nodes are origins.
    let begun = Instant::now();
    let mut watching = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let of_node: Vec<_> = paths.iter().skip(at).step_by(n_nodes).cloned().collect();
        watching.push(watch(node, of_node.len(), 0, &of_node));
    }
    watching.iter_mut().for_each(until_watching);
    let origins = Instant::now();
    let per_node = n_viewers / n_nodes;
    let mut crowd: Vec<_> = nodes.iter().map(|it| watch(it, per_node, zaps / n_nodes, &paths)).collect();
    crowd.iter_mut().for_each(until_watching);
    let all = Instant::now();
    println!("{n_viewers} viewers watch after {:.0} s", begun.elapsed().as_secs_f64());
    sleep(SETTLED).await;

    let steady = measure(&nats, async || sleep(Duration::from_secs(seconds.min(30))).await).await;
    crowd.iter_mut().for_each(|it| it.send_line("change"));
    let mut looks = None;
    let loaded = measure(&nats, async || looks = Some(look(&nodes, &paths, seconds).await)).await;
    crowd.iter_mut().for_each(|it| it.send_line("end"));
    let reports: Vec<Value> =
        crowd.iter_mut().map(|it| serde_json::from_str(&it.line()).expect("a report")).collect();
    let sum = |name: &str| reports.iter().filter_map(|it| it[name].as_u64()).sum::<u64>();
    let mut joins: Vec<f64> = reports
        .iter()
        .flat_map(|it| it["joins_ms"].as_array().cloned().unwrap_or_default())
        .filter_map(|it| it.as_f64())
        .collect();
    let resident: Vec<u64> = nodes.iter().map(|it| resident_mib(it.program.id())).collect();
    let results = json!({
        "nodes": n_nodes, "viewers": n_viewers, "channels": n_channels, "changes_of_channel_per_second": zaps,
        "seconds": seconds, "seconds_between_pictures": pause,
        "channels_begin_seconds": (origins - begun).as_secs_f64(),
        "viewers_come_seconds": (all - origins).as_secs_f64(),
        "servers_without_changes": steady,
        "servers": loaded,
        "gateways_resident_mib": resident,
        "changes": {
            "n": joins.len(), "p50_ms": percentile(&mut joins, 0.5), "p99_ms": percentile(&mut joins, 0.99),
        },
        "streams_that_ended": sum("ended"),
        "refused": sum("refused"),
        "bytes_per_second": sum("bytes_per_second"),
        "admin": looks,
    });
    println!("{results:#}");
    support::record("cluster_viewers", results);
}

/// Serves every path with the same programme, with this time between two pictures.
async fn provider(pause: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let begun = Instant::now();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.expect("a connection");
            tokio::spawn(send_pictures(socket, begun.elapsed(), pause));
        }
    });
    address
}

/// Answers one request. It ends when the gateway closes the connection.
async fn send_pictures(mut socket: TcpStream, age: Duration, pause: Duration) {
    let mut head = [0; 4096];
    if socket.read(&mut head).await.is_err() {
        return;
    }
    let mut out = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\n\r\n".to_vec();
    let picture = Picture::new("a").bits_per_second(8_000).frames_per_gop(1);
    let mut programme = Programme::from(picture).tune_in(age);
    let begun = Instant::now();
    loop {
        programme.take(begun.elapsed(), &mut out);
        if socket.write_all(&out).await.is_err() {
            return;
        }
        out.clear();
        sleep(pause).await;
        if let Tuned::Picture { first, next, .. } = &mut programme {
            // Only the newest one.
            *next = *first + (begun.elapsed().as_nanos() / FRAME.as_nanos()) as u64;
        }
    }
}

/// Creates an account without a limit and its channels in a gateway alone. Returns the paths of the channels.
async fn fill(machine: &Machine, provider: SocketAddr, n: usize) -> Vec<String> {
    let mut program = machine.run_alone();
    let api = Api::stranger_at(program.address().await).become_first_admin().await;
    let entry = |at: usize| format!("#EXTINF:-1,Channel {at}\nhttp://{provider}/{at}.ts\n");
    let list: String = std::iter::once("#EXTM3U\n".to_owned()).chain((0..n).map(entry)).collect();
    let lists = test_support::upstream::Provider::start();
    lists.path("/list.m3u").answers(test_support::upstream::MockResponse::text("audio/x-mpegurl", list));
    let account = json!({ "name": "All", "server_url": lists.url("/list.m3u"), "max_streams": 0 });
    let made = api.post("/api/m3u/accounts/", account).await;
    assert_eq!(made.status, 201, "{made:?}");
    let account = format!("/api/m3u/accounts/{}/", made.body["id"]);
    until_async("the import", async || api.get(&account).await.body["status"] == "success").await;
    let streams = api.get("/api/channels/streams/?page_size=1000").await.body["results"].clone();
    let mut paths = Vec::new();
    for stream in streams.as_array().expect("a list") {
        let made =
            api.post("/api/channels/channels/from-stream/", json!({ "stream_id": stream["id"] })).await;
        assert_eq!(made.status, 201, "{made:?}");
        paths.push(format!("/proxy/ts/stream/{}", made.text("uuid")));
    }
    assert_eq!(paths.len(), n);
    program.signal("TERM");
    assert!(program.ended().await.success(), "{}", program.output());
    paths
}

/// Returns the resident memory of a process.
fn resident_mib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the gateway runs");
    let line = status.lines().find(|it| it.starts_with("VmRSS:")).expect("a process has memory");
    line.split_whitespace().nth(1).and_then(|it| it.parse::<u64>().ok()).expect("a number of KiB") >> 10
}

/// Starts a process with viewers of a node.
fn watch(node: &Node, n: usize, zaps: usize, paths: &[String]) -> Process {
    let arguments = [node.address.to_string(), n.to_string(), zaps.to_string()];
    Process::role("viewers", &[&arguments, paths].concat())
}

fn until_watching(viewers: &mut Process) {
    assert_eq!(viewers.line(), "watching");
}

/// Looks at the cluster through one node after another, as an admin does: the nodes, the status of one channel with its
/// viewers, and that of all channels with theirs. Returns how long each takes.
async fn look(nodes: &[Node], paths: &[String], seconds: u64) -> Value {
    let begun = Instant::now();
    let [mut members, mut one, mut all] = [const { Vec::new() }; 3];
    let (mut n_rows, mut n_all) = (0, 0);
    for turn in 0.. {
        if begun.elapsed() > Duration::from_secs(seconds) {
            break;
        }
        let api = &nodes[turn % nodes.len()].api;
        let get = async |path: &str, times: &mut Vec<f64>| {
            let asked = Instant::now();
            let reply = api.get(path).await;
            times.push(asked.elapsed().as_secs_f64() * 1_000.0);
            assert_eq!(reply.status, 200, "{path}");
            reply.body
        };
        get("/api/core/nodes/", &mut members).await;
        let path = paths[turn * 37 % paths.len()].replace("/stream/", "/status/");
        let channel = get(&path, &mut one).await;
        n_rows = channel["clients"].as_array().map_or(0, Vec::len);
        // All viewers: tens of megabytes.
        if turn % 10 == 0 {
            let status = get("/proxy/ts/status", &mut all).await;
            n_all = status["channels"].as_array().map_or(0, Vec::len);
        }
        sleep(LOOK).await;
    }
    let summary = |times: &mut Vec<f64>| json!({ "n": times.len(), "p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99) });
    json!({
        "nodes": summary(&mut members),
        "status_of_a_channel": summary(&mut one), "viewers_of_a_channel": n_rows,
        "status_of_all_channels_and_viewers": summary(&mut all), "channels": n_all,
    })
}
