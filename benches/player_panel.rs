//! How fast does the panel answer player apps, and do many of them affect playback?
//!
//! The real program has 20,000 channels with logos in 400 groups, and 500 users. First one app lists the channels: after a
//! change, so that the list is built, and then again, compressed, and with the entity tag that it got. Then 500 viewers
//! watch ten channels at 1 Mbit/s, and as many apps log in at the same moment, each as another user, and request the
//! account, the categories and the channels: first with their player passwords, which are compared at once, and then with
//! their account passwords, none of which the program has verified since its start. The apps have addresses of their own.
//! *Lag* is as in `mixed_load`.
//!
//! `cargo bench --bench player_panel -- [--channels 20000] [--viewers 500] [--logins 500]`

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]

#[path = "support/client_pool.rs"]
mod client_pool;
#[path = "mixed_load/clients.rs"]
mod clients;
#[path = "support/options.rs"]
mod options;
#[path = "support/process.rs"]
#[expect(dead_code, reason = "this bench measures memory and time only")]
mod process;
#[path = "support/program.rs"]
#[expect(dead_code, reason = "this bench imports no playlist")]
mod program;
mod support;
#[path = "../tests/it/support/mod.rs"]
#[expect(dead_code, reason = "benches use a part of the test support")]
mod test_support;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use domain::channel::{Channel, ChannelNumber};
use domain::group::Group;
use domain::ids::{ChannelId, GroupId, LogoId, UserId};
use domain::logo::Logo;
use domain::secret::Secret;
use domain::user::{User, UserLevel};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use storage::Store;
use uuid::Uuid;

use self::client_pool::now;
use self::options::Options;
use self::process::{Process, free_port};
use self::support::percentile;
use self::test_support::api::Api;
use self::test_support::upstream::Provider;

const GROUPS: u32 = 400;
/// A write takes a bounded number of records; a channel has two.
const CHANNELS_OF_A_WRITE: usize = 10_000;
const N_WATCHED: u64 = 10;
/// The clients are on this machine.
const NO_LIMITS: [&str; 2] = ["limits.connections_max=0", "limits.connections_per_address_max=0"];
const N_REQUESTS: usize = 50;
const MIB: f64 = 1024.0 * 1024.0;
const PASSWORD: &str = "player";
const ACCOUNT_PASSWORD: &str = "right and long enough";

fn main() {
    let options = Options::from_process();
    if let Some(arguments) = options.role("clients") {
        return clients::run(arguments);
    }
    let (channels, viewers) = (options.number("--channels", 20_000), options.number("--viewers", 500));
    let logins = options.number("--logins", 500);
    let folder = tempfile::tempdir().expect("a temporary directory");
    fill(folder.path(), channels, logins);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure(folder.path(), channels, viewers, logins));
}

/// Creates the store.
fn fill(folder: &Path, channels: u32, users: u32) {
    let store = folder.join("store");
    std::fs::create_dir_all(&store).expect("the folder can be written");
    let store = Store::open(&store, &folder.join("key"), storage::records::schema()).expect("a store");
    storage::seed(&store).expect("the store can be written");
    // One hash takes as long to verify as another.
    let hash = services::auth::hash_password(ACCOUNT_PASSWORD);
    let write = move |write: &mut storage::Write<'_>| {
        for id in 1..=GROUPS {
            write.put(&Group::new(GroupId(id + 100), format!("Group {id}, all")))?;
        }
        for id in 1..=users {
            let user = User::new(UserId(id), format!("user{id}"), UserLevel::Streamer, 0);
            let (password, player_password) = (Some(hash.clone()), Some(Secret::new(PASSWORD)));
            write.put(&User { password, player_password, ..user })?;
        }
        Ok::<_, storage::Error>(())
    };
    store.write_blocking(write).expect("the store can be written");
    for first in (1..=channels).step_by(CHANNELS_OF_A_WRITE) {
        let last = channels.min(first + CHANNELS_OF_A_WRITE as u32 - 1);
        let write =
            move |write: &mut storage::Write<'_>| (first..=last).try_for_each(|id| put_channel(write, id));
        store.write_blocking(write).expect("the store can be written");
    }
}

fn put_channel(write: &mut storage::Write<'_>, id: u32) -> Result<(), storage::Error> {
    let url = format!("http://logos.example/images/{id}.png");
    let name = format!("Channel {id} HD");
    let logo = LogoId(id);
    write.put(&Logo {
        id: logo,
        name: name.clone(),
        url: url.clone(),
        file: None,
        named_by: None,
        guide_source: None,
        updated_at: 0,
    })?;
    write.put(&Channel {
        number: ChannelNumber::whole(id),
        group: Some(GroupId(id % GROUPS + 101)),
        logo: Some(url),
        logo_id: Some(logo),
        ..Channel::new(ChannelId(id), Uuid::from_u128(id.into()), name, 1_600_000_000_000)
    })
}

async fn measure(folder: &Path, channels: u32, viewers: u32, logins: u32) {
    let provider = Provider::start();
    let address = free_port();
    let server = program::start(address, folder, &NO_LIMITS).await;
    let lists = lists(address, channels);
    println!("memory of the program: {:.0} MiB", server.resident() as f64 / MIB);

    let admin = add_admin(folder, address).await;
    let mut arguments = vec![address.to_string(), viewers.to_string()];
    for number in 0..N_WATCHED {
        arguments.push(program::channel(&provider, &admin, number).await);
    }
    let mut watching = Process::role("clients", &arguments);
    assert_eq!(watching.line(), "watching");
    watching.send_line("before");
    tokio::time::sleep(Duration::from_secs(10)).await;
    let mut apps = Vec::new();
    for (name, password) in [("player passwords", PASSWORD), ("account passwords", ACCOUNT_PASSWORD)] {
        watching.send_line(name);
        server.reset_peak();
        let times = tokio::task::spawn_blocking(move || log_in(address, logins, password)).await;
        let mut times = times.expect("the apps are answered");
        times["peak_resident_mib"] = json!(server.peak() as f64 / MIB);
        println!("{logins} apps with {name}: {times}");
        apps.push(json!({ "name": name, "times": times }));
        watching.send_line(&format!("after {name}"));
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    watching.send_line("end");
    let mut parts = Vec::new();
    for _ in 0..5 {
        let mut part: Value = serde_json::from_str(&watching.line()).expect("clients report");
        part.as_object_mut().map(|it| it.remove("spans"));
        println!("{}: lag p99 {} ms, lost {}", part["name"], part["lag_p99_ms"], part["lost"]);
        parts.push(part);
    }
    let results = json!({
        "channels": channels, "viewers": viewers, "lists": lists, "logins": logins, "apps": apps, "playback": parts,
    });
    support::record("player_panel", results);
}

/// Adds an admin with the command of the program, and logs in.
async fn add_admin(folder: &Path, address: SocketAddr) -> Api {
    let (name, password) = ("root", "correct horse");
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    command.args(["user", "add", name, "--superuser", "--data-dir"]).arg(folder);
    let done = command.env("HEADWATER_PASSWORD", password).output().expect("the program runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Api::stranger_at(address).login(name, password).await
}

/// Measures the list of channels as one app requests it.
fn lists(address: SocketAddr, channels: u32) -> Value {
    let app = (1, PASSWORD);
    let built = request(address, app, "get_live_streams", "");
    let tag = built.head.lines().find_map(|it| it.strip_prefix("Etag: ")).expect("an entity tag").to_owned();
    println!(
        "built: {:.1} ms to the first byte, {:.1} ms in all, {} bytes",
        built.first_ms, built.all_ms, built.bytes
    );
    assert!(built.bytes > channels as usize * 100);
    let mut rows = vec![
        json!({ "name": "built", "first_ms": built.first_ms, "all_ms": built.all_ms, "bytes": built.bytes }),
    ];
    for (name, header) in [
        ("again", String::new()),
        ("gzip", "Accept-Encoding: gzip\r\n".to_owned()),
        ("not modified", format!("If-None-Match: {tag}\r\n")),
    ] {
        let answers: Vec<Timed> =
            (0..N_REQUESTS).map(|_| request(address, app, "get_live_streams", &header)).collect();
        let mut first: Vec<f64> = answers.iter().map(|it| it.first_ms).collect();
        let mut all: Vec<f64> = answers.iter().map(|it| it.all_ms).collect();
        let figures = [
            percentile(&mut first, 0.5),
            percentile(&mut first, 1.0),
            percentile(&mut all, 0.5),
            percentile(&mut all, 1.0),
        ];
        println!(
            "{name}: first byte p50 {:.1} ms, max {:.1} ms; all p50 {:.1} ms, max {:.1} ms; {} bytes",
            figures[0], figures[1], figures[2], figures[3], answers[0].bytes
        );
        rows.push(json!({
            "name": name, "first_p50_ms": figures[0], "first_max_ms": figures[1], "all_p50_ms": figures[2],
            "all_max_ms": figures[3], "bytes": answers[0].bytes,
        }));
    }
    rows.into()
}

/// Opens as many apps as there are users at the same moment; each requests one thing after the other. Fails if one of them
/// is refused.
fn log_in(address: SocketAddr, users: u32, password: &'static str) -> Value {
    let barrier = std::sync::Barrier::new(users as usize);
    let mut times: Vec<f64> = std::thread::scope(|scope| {
        let apps: Vec<_> = (1..=users)
            .map(|user| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    let begun = now();
                    for action in ["", "get_live_categories", "get_live_streams"] {
                        request(address, (user, password), action, "Accept-Encoding: gzip\r\n");
                    }
                    milliseconds(begun)
                })
            })
            .collect();
        apps.into_iter().map(|it| it.join().expect("an app is answered")).collect()
    });
    let [p50, p99, max] = [0.5, 0.99, 1.0].map(|p| percentile(&mut times, p));
    json!({ "p50_ms": p50, "p99_ms": p99, "max_ms": max })
}

/// An answer and how long it took.
struct Timed {
    head: String,
    first_ms: f64,
    all_ms: f64,
    bytes: usize,
}

fn request(address: SocketAddr, (user, password): (u32, &str), action: &str, header: &str) -> Timed {
    let begun = now();
    let mut socket = connect(address, user);
    let password = password.replace(' ', "+");
    let path = format!("/player_api.php?username=user{user}&password={password}&action={action}");
    write!(socket, "GET {path} HTTP/1.1\r\nHost: {address}\r\n{header}Connection: close\r\n\r\n")
        .expect("the server reads");
    let mut answer = vec![0; 64 << 10];
    let n = socket.read(&mut answer).expect("the server answers");
    let first_ms = milliseconds(begun);
    answer.truncate(n);
    socket.read_to_end(&mut answer).expect("the server answers");
    let all_ms = milliseconds(begun);
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    assert!(head.starts_with("HTTP/1.1 200") || head.starts_with("HTTP/1.1 304"), "{head}");
    Timed { head, first_ms, all_ms, bytes: answer.len() - end }
}

/// Connects from an address of this user.
fn connect(address: SocketAddr, user: u32) -> TcpStream {
    let own = SocketAddr::from((Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() + (user << 8)), 0));
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&own.into()).expect("all of 127.0.0.0/8 is this machine");
    socket.connect(&address.into()).expect("the server accepts");
    socket.into()
}

fn milliseconds(begun: Instant) -> f64 {
    (now() - begun).as_secs_f64() * 1_000.0
}
