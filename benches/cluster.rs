//! What do several nodes add to the times of one?
//!
//! Real programs and three real NATS servers on this machine. One gateway alone is measured first: opening a channel of an
//! account with a limit, joining a channel that plays, and a write of the configuration. Then two nodes: the same at the
//! node that writes, and at the other one; joining a channel that the other node plays; a slot that the other node has to
//! give up; and the silence that a viewer sees when the node with the upstream is killed. A provider answers at once with
//! two seconds of the past, so that the times are those of the gateway.
//!
//! `cargo bench --bench cluster -- [--samples 40] [--kills 5]`

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]

#[path = "support/options.rs"]
#[expect(dead_code, reason = "this bench has one process")]
mod options;
mod support;
#[path = "../tests/it/support/mod.rs"]
#[expect(dead_code, reason = "benches use a part of the test support")]
mod test_support;

use std::net::SocketAddr;
use std::time::Duration;

use cluster::testing::NatsServers;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use self::options::Options;
use self::support::percentile;
use self::test_support::api::Api;
use self::test_support::binary::Binary;
use self::test_support::client::{Player, Received};
use self::test_support::cluster::{Machine, Node, nodes};
use self::test_support::signal::Picture;
use self::test_support::upstream::{MockResponse, Provider};
use self::test_support::{tools, until_async};

const LIST: &str = "/lists/all.m3u";
/// The time of the past that the provider sends at once.
const BURST: Duration = Duration::from_secs(2);
const WAIT_MAX: Duration = Duration::from_secs(120);
/// A viewer with payload in this time is watching.
const PLAYING: Duration = Duration::from_secs(1);
/// The bytes after which a channel counts as playing.
const ENOUGH: usize = 188 * 20;

/// The members of the results that have a goal, and the goal.
const GOALS: [(&str, &str, f64); 6] = [
    ("p99 of joining a channel of another node, ms", "/join/of_the_other_node/p99_ms", 100.0),
    ("p99 of a lease beyond one node's, ms", "/lease_p99_ms", 10.0),
    ("p99 of a lease of the other node beyond one node's, ms", "/lease_of_the_other_p99_ms", 10.0),
    ("p99 of a slot that the other node gives up, beyond one node's, ms", "/yield_p99_ms", 50.0),
    ("p99 of a write beyond one node's, ms", "/write_beyond_p99_ms", 20.0),
    ("silence after the origin is killed, p99, ms", "/take_over/p99_ms", 1_500.0),
];

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let options = Options::from_process();
    let samples = options.number("--samples", 40_usize);
    let kills = options.number("--kills", 5_usize);
    let provider = Provider::start();
    let nats = NatsServers::start(&tools::installed("bin/nats-server"), 3);
    let attic = Machine::new("attic", &nats);
    let (alone, channels) = alone(&provider, &attic, samples).await;
    let mut both = nodes([attic, Machine::new("cellar", &nats)]).await;
    let mut results = pair(&both, &channels, samples).await;
    results["alone"] = alone;
    let (origin, edge) = (both.remove(0), both.remove(0));
    results["take_over"] = take_over(origin, &edge, &channels.free[0], kills).await;
    let of =
        |results: &Value, place: &str| results.pointer(place).and_then(Value::as_f64).unwrap_or(f64::NAN);
    results["lease_p99_ms"] =
        json!(of(&results, "/open/limited/p99_ms") - of(&results, "/alone/open/limited/p99_ms"));
    results["lease_of_the_other_p99_ms"] =
        json!(of(&results, "/open/limited_at_the_other/p99_ms") - of(&results, "/alone/open/limited/p99_ms"));
    results["yield_p99_ms"] = json!(
        of(&results, "/open_after_a_yield_of_the_other_node/p99_ms")
            - of(&results, "/alone/open_after_a_yield/p99_ms")
    );
    results["write_beyond_p99_ms"] =
        json!(of(&results, "/write/at_the_other/p99_ms") - of(&results, "/alone/write/p99_ms"));
    println!("{results:#}\n");
    for (what, place, goal) in GOALS {
        let value = of(&results, place);
        let verdict = if value <= goal { "reached" } else { "missed" };
        println!("{what:>65}: {value:>8.2} (goal {goal}: {verdict})");
    }
    support::record("cluster", results);
}

/// The paths of the channels of an account without a limit, of one with a limit that is never reached, and of one with one
/// connection.
struct Channels {
    free: Vec<String>,
    limited: Vec<String>,
    single: Vec<String>,
}

/// Fills the store of a machine with a gateway alone, and measures it.
async fn alone(provider: &Provider, machine: &Machine, samples: usize) -> (Value, Channels) {
    let folder = machine.folder.path().display().to_string();
    let mut program = Binary::start(&["serve", "--data-dir", &folder]);
    let address = program.address().await;
    let api = Api::stranger_at(address).become_first_admin().await;
    let free = account(provider, &api, "free", 0, 2 * samples).await;
    let limited = account(provider, &api, "limited", 10_000, 3 * samples).await;
    let single = account(provider, &api, "single", 1, 2).await;
    let playing = zap(address, &free[0]).await;
    let mut joins = Vec::new();
    for _ in 0..samples {
        joins.push(zap(address, &free[0]).await.time);
    }
    drop(playing);
    let mut yields = Vec::new();
    for at in 0..samples.min(20) {
        // The last one lingers.
        yields.push(zap(address, &single[at % 2]).await.time);
    }
    let measured = json!({
        "open_after_a_yield": summary(yields),
        "open": {
            "unlimited": opened(address, &free[1..=samples.min(free.len() - 1)]).await,
            "limited": opened(address, &limited[..samples]).await,
        },
        "join": summary(joins),
        "write": writes(&api, "alone", samples).await,
    });
    program.signal("TERM");
    assert!(program.ended().await.success(), "{}", program.output());
    (measured, Channels { free, limited, single })
}

/// Creates an account with as many channels, and returns their paths.
async fn account(provider: &Provider, api: &Api, name: &str, limit: u32, n: usize) -> Vec<String> {
    let mut list = String::from("#EXTM3U\n");
    for at in 0..n {
        let (path, title) = (format!("/live/{name}/{at}.ts"), format!("{name} {at}"));
        let picture = Picture::new(&title).bits_per_second(300_000).frames_per_gop(3);
        provider.path(&path).answers(MockResponse::play(picture).with_burst(BURST));
        list.push_str(&format!("#EXTINF:-1,{title}\n{}\n", provider.url(&path)));
    }
    let path = format!("{LIST}.{name}");
    provider.path(&path).answers(MockResponse::text("audio/x-mpegurl", list));
    let account = json!({ "name": name, "server_url": provider.url(&path), "max_streams": limit });
    let made = api.post("/api/m3u/accounts/", account).await;
    assert_eq!(made.status, 201, "{made:?}");
    let (account, id) = (format!("/api/m3u/accounts/{}/", made.body["id"]), made.body["id"].clone());
    until_async("the import", async || api.get(&account).await.body["status"] == "success").await;
    let streams = format!("/api/channels/streams/?m3u_account={id}&page_size=1000");
    let streams = api.get(&streams).await.body["results"].clone();
    let mut paths = Vec::new();
    for stream in streams.as_array().expect("a list") {
        let made =
            api.post("/api/channels/channels/from-stream/", json!({ "stream_id": stream["id"] })).await;
        assert_eq!(made.status, 201, "{made:?}");
        paths.push(format!("/proxy/ts/stream/{}", made.text("uuid")));
    }
    assert_eq!(paths.len(), n);
    paths
}

/// Measures two nodes, of which the first one writes.
async fn pair(both: &[Node], channels: &Channels, samples: usize) -> Value {
    let [origin, edge] = [&both[0], &both[1]];
    // Watched at one node, and joined at the other one, each for the first time.
    let (mut joins, mut again, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for path in &channels.free[..samples] {
        let watched = zap(origin.address, path).await;
        own.push(zap(origin.address, path).await.time);
        let joined = zap(edge.address, path).await;
        again.push(zap(edge.address, path).await.time);
        joins.push(joined.time);
        drop(watched);
    }
    let second = 2 * samples;
    let opens = json!({
        "unlimited": opened(origin.address, &channels.free[samples..]).await,
        "limited": opened(origin.address, &channels.limited[samples..second]).await,
        "limited_at_the_other": opened(edge.address, &channels.limited[second..]).await,
    });
    let mut yields = Vec::new();
    for _ in 0..samples.min(10) {
        for (node, path) in [(origin, &channels.single[0]), (edge, &channels.single[1])] {
            // The last one lingers at the other node.
            yields.push(zap(node.address, path).await.time);
        }
    }
    json!({
        "join": {
            "own": summary(own), "of_the_other_node": summary(joins), "of_the_other_node_again": summary(again),
        },
        "open": opens,
        "open_after_a_yield_of_the_other_node": summary(yields),
        "write": {
            "at_the_writer": writes(&origin.api, "writer", samples).await,
            "at_the_other": writes(&edge.api, "other", samples).await,
        },
    })
}

/// Kills the node with the upstream, and measures the silence at a viewer of the other one.
async fn take_over(mut origin: Node, edge: &Node, path: &str, kills: usize) -> Value {
    let mut silences = Vec::new();
    for _ in 0..kills {
        let first = Player::watch(origin.address, path).await;
        first.more_bytes(200_000).await;
        let viewer = Player::watch(edge.address, path).await;
        viewer.more_bytes(200_000).await;
        let killed = Instant::now();
        let machine = origin.killed().await;
        // The silence may begin late, because the viewer has what was sent before.
        until_async("a stream some time after the kill", async || {
            let is_playing =
                |it: &Received| it.payload_arrivals.last().is_some_and(|it| it.elapsed() < PLAYING);
            killed.elapsed() > PLAYING * 5 && viewer.received(is_playing)
        })
        .await;
        silences.push(viewer.received(|it| it.longest_silence_of_payload()));
        drop((first, viewer));
        origin = machine.serve(&[]).await;
        origin.logs_in().await;
        origin.sees(edge.machine.name).await;
        // The channel ends before the next round.
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    summary(silences)
}

/// A viewer who stays until this is dropped, and how long it took until the channel played.
struct Viewer {
    time: Duration,
    _reading: AbortOnDropHandle<()>,
}

/// Opens a channel, again if it is refused for want of a slot.
async fn zap(address: SocketAddr, path: &str) -> Viewer {
    let begin = Instant::now();
    loop {
        let mut socket = TcpStream::connect(address).await.expect("the gateway listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        socket.write_all(request.as_bytes()).await.expect("the gateway reads");
        let mut buffer = vec![0; 65_536];
        let mut n = timeout(WAIT_MAX, socket.read(&mut buffer)).await.expect("an answer").expect("an answer");
        if buffer[..n].starts_with(b"HTTP/1.1 503") && begin.elapsed() < WAIT_MAX {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        }
        assert!(buffer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&buffer[..n]));
        while n < ENOUGH {
            let more =
                timeout(WAIT_MAX, socket.read(&mut buffer)).await.expect("a stream").expect("a stream");
            assert_ne!(more, 0, "the stream ended");
            n += more;
        }
        let time = begin.elapsed();
        let reading =
            tokio::spawn(async move { while socket.read(&mut buffer).await.is_ok_and(|it| it > 0) {} });
        return Viewer { time, _reading: AbortOnDropHandle::new(reading) };
    }
}

/// Opens channels that do not play, one after another.
async fn opened(address: SocketAddr, paths: &[String]) -> Value {
    let mut times = Vec::new();
    for path in paths {
        times.push(zap(address, path).await.time);
    }
    summary(times)
}

/// Creates channels, one after another.
async fn writes(api: &Api, name: &str, n: usize) -> Value {
    let mut times = Vec::new();
    for at in 0..n {
        let begin = Instant::now();
        let made = api.post("/api/channels/channels/", json!({ "name": format!("{name} {at}") })).await;
        assert_eq!(made.status, 201, "{made:?}");
        times.push(begin.elapsed());
    }
    summary(times)
}

fn summary(times: Vec<Duration>) -> Value {
    let mut ms: Vec<f64> = times.iter().map(|it| it.as_secs_f64() * 1_000.0).collect();
    let (p50, p99) = (percentile(&mut ms, 0.5), percentile(&mut ms, 0.99));
    json!({ "n": ms.len(), "p50_ms": p50, "p99_ms": p99, "max_ms": ms.last() })
}
