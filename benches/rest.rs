//! How fast is the REST API on a large store?
//!
//! The real program imports a playlist of 500,000 entries and makes 20,000 channels of them, while 100 clients watch
//! ten channels at 1 Mbit/s. Then pages of 50 entries with their count are read over one connection, with filters,
//! searches and orders; 10,000 channels are edited, and the edits are undone; single channels are edited while a refresh
//! changes every entry, each next to one plain write and flush on the same disk; and the store is backed up and
//! restored. The program and the clients are separate processes; the provider, the server of the playlist and the caller
//! are in this one, so that all of them share the machine.
//!
//! A restoration takes from its request to the first page of the restarted program. *Lost* counts clients whose
//! connection ended, or that received nothing in the last second, until the end of the back-up; the restart ends all.
//!
//! `cargo bench --bench rest -- [--streams 500000] [--channels 20000] [--requests 1000] [--clients 100]`

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]

#[path = "support/client_pool.rs"]
mod client_pool;
#[path = "mixed_load/clients.rs"]
mod clients;
#[path = "support/keep_alive.rs"]
mod keep_alive;
#[path = "support/list.rs"]
mod list;
#[path = "support/options.rs"]
mod options;
#[path = "support/process.rs"]
#[expect(dead_code, reason = "this bench measures no CPU time")]
mod process;
#[path = "support/program.rs"]
mod program;
mod support;
#[path = "../tests/it/support/mod.rs"]
#[expect(dead_code, reason = "benches use a part of the test support")]
mod test_support;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use self::client_pool::now;
use self::keep_alive::{KeepAlive, Reply};
use self::options::Options;
use self::process::{Process, free_port};
use self::support::percentile;
use self::test_support::api::{ADMIN, Api, PASSWORD};
use self::test_support::upstream::Provider;

const STREAMS: &str = "/api/channels/streams/";
const CHANNELS: &str = "/api/channels/channels/";
/// Entries on a page.
const PAGE: u64 = 50;
/// Channels of one bulk operation: its limit.
const MANY: usize = 10_000;
/// Runs of each bulk operation.
const BULK_RUNS: usize = 5;
/// Channels that clients watch.
const WATCHED: u64 = 10;

const PAGE_GOAL_MS: f64 = 10.0;
const BULK_GOAL_MS: f64 = 1_000.0;
const WRITE_GOAL_MS: f64 = 5.0;
const BACKUP_GOAL_MS: f64 = 5_000.0;
const RESTORE_GOAL_MS: f64 = 15_000.0;

fn main() {
    let options = Options::from_process();
    if let Some(arguments) = options.role("clients") {
        return clients::run(arguments);
    }
    let size = Size {
        streams: options.number("--streams", 500_000),
        channels: options.number("--channels", 20_000),
        requests: options.number("--requests", 1_000),
        clients: options.number("--clients", 100),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure(&size));
}

struct Size {
    streams: u64,
    channels: u64,
    /// Number of pages of each kind.
    requests: u64,
    clients: u64,
}

async fn measure(size: &Size) {
    let provider = Provider::start();
    let changed_every = Arc::new(AtomicU64::new(u64::MAX));
    let list = list::serve(size.streams, Arc::clone(&changed_every));
    let folder = tempfile::tempdir().expect("a temporary directory");
    let address = free_port();
    let _server = program::start(address, folder.path(), &[]).await;
    let admin = Api::stranger_at(address).become_first_admin().await;
    let mut arguments = vec![address.to_string(), size.clients.to_string()];
    for number in 0..WATCHED {
        arguments.push(program::channel(&provider, &admin, number).await);
    }
    let account = program::import(&admin, &list, size.streams).await;
    let mut caller = caller(address, &admin).await;
    let channels = make_channels(&mut caller, size.channels);
    println!("{} streams, {} channels; {} clients join", size.streams, channels.len(), size.clients);
    let mut watching = Process::role("clients", &arguments);
    assert_eq!(watching.line(), "watching");

    let mut table = Table::default();
    watching.send_line("pages");
    pages(&mut caller, size.requests, &mut table);
    watching.send_line("bulk edits");
    bulk_edits(&mut caller, &channels[..channels.len().min(MANY)], &mut table);
    watching.send_line("refresh");
    changed_every.store(1, Ordering::SeqCst);
    let is_importing = Arc::new(AtomicBool::new(true));
    let writer = {
        let (goes_on, path) = (Arc::clone(&is_importing), folder.path().join("bare"));
        std::thread::spawn(move || {
            single_writes(&mut caller, &channels, &path, || goes_on.load(Ordering::SeqCst))
        })
    };
    program::refresh(&admin, account, size.streams).await;
    is_importing.store(false, Ordering::SeqCst);
    let (mut writes, mut bare) = writer.join().expect("the writes end");
    let bare = table.put("bare flush, during a refresh", &mut bare, None);
    table.put("write of a channel, during a refresh", &mut writes, Some(bare + WRITE_GOAL_MS));
    watching.send_line("back-up");
    let (mut took, archive) = back_up(&admin).await;
    table.put("back-up", &mut took, Some(BACKUP_GOAL_MS));
    watching.send_line("end");
    let parts: Vec<Value> = ["pages", "bulk edits", "refresh", "back-up"]
        .iter()
        .map(|name| {
            let mut report: Value = serde_json::from_str(&watching.line()).expect("clients report");
            assert_eq!(report["name"], *name);
            report.as_object_mut().expect("a report has members").remove("spans");
            report
        })
        .collect();
    let mut took = restore(&admin, address, &archive, size.streams + WATCHED).await;
    table.put("restoration", &mut took, Some(RESTORE_GOAL_MS));
    table.end(size, parts);
}

/// Returns a connection of the admin that is kept open.
async fn caller(address: SocketAddr, admin: &Api) -> KeepAlive {
    KeepAlive::connect(address, admin.token(ADMIN, PASSWORD).await.text("access"))
}

/// Makes channels of the first streams and returns their ids.
fn make_channels(caller: &mut KeepAlive, n: u64) -> Vec<u64> {
    let streams = ids(&caller.ask("GET", &format!("{STREAMS}ids/"), "").body["ids"]);
    let mut channels = Vec::new();
    for streams in streams.iter().take(n as usize).collect::<Vec<_>>().chunks(MANY) {
        let made = caller.ask(
            "POST",
            &format!("{CHANNELS}from-stream/bulk/"),
            &json!({ "stream_ids": streams }).to_string(),
        );
        assert_eq!(made.status, 201, "{}", made.body);
        channels.extend(ids(&made.body["channel_ids"]));
    }
    channels
}

fn ids(list: &Value) -> Vec<u64> {
    list.as_array().expect("a list").iter().filter_map(Value::as_u64).collect()
}

/// Reads pages of each kind, from the whole list in turn.
fn pages(caller: &mut KeepAlive, n: u64, table: &mut Table) {
    let kinds = [
        ("streams", STREAMS, ""),
        ("streams, by name", STREAMS, "&ordering=name"),
        ("streams, one group", STREAMS, "&channel_group_name=Group%2012,%20all"),
        ("streams, search", STREAMS, "&search=4321"),
        ("streams, name ~ 1 in 10, by name", STREAMS, "&name=7%20hd&ordering=name"),
        ("streams, without a channel", STREAMS, "&unassigned=true&ordering=-name"),
        ("channels", CHANNELS, ""),
        ("channels, by name", CHANNELS, "&ordering=-name"),
        ("channels, one group", CHANNELS, "&channel_group=Group%2012,%20all"),
        ("channels, search", CHANNELS, "&search=432"),
    ];
    for (name, list, filter) in kinds {
        let count = page(caller, list, filter, 1).body["count"].as_u64().expect("a count");
        let n_pages = count.div_ceil(PAGE).max(1);
        // Strides over the pages, so that neighbours do not follow each other.
        let number = |at: u64| at * 7_919 % n_pages + 1;
        let mut took: Vec<f64> =
            (0..n).map(|at| millis(page(caller, list, filter, number(at)).took)).collect();
        table.put(&format!("page of {name} ({count} found)"), &mut took, Some(PAGE_GOAL_MS));
    }
}

fn page(caller: &mut KeepAlive, list: &str, filter: &str, number: u64) -> Reply {
    let reply = caller.ask("GET", &format!("{list}?page={number}&page_size={PAGE}{filter}"), "");
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply
}

/// Edits many channels, with the same values and each with its own, and takes each edit back.
fn bulk_edits(caller: &mut KeepAlive, ids: &[u64], table: &mut Table) {
    let same = json!({ "ids": ids, "values": { "enabled": false } });
    let own: Vec<Value> =
        ids.iter().map(|id| json!({ "id": id, "name": format!("Renamed {id}"), "enabled": false })).collect();
    let kinds = [("the same values", "POST", same), ("its own values", "PATCH", Value::from(own))];
    for (name, method, body) in kinds {
        let body = body.to_string();
        let (mut edits, mut undos) = (Vec::new(), Vec::new());
        for _ in 0..BULK_RUNS {
            let edited = caller.ask(method, &format!("{CHANNELS}edit/bulk/"), &body);
            assert_eq!((edited.status, &edited.body["updated_count"]), (200, &json!(ids.len())));
            edits.push(millis(edited.took));
            let undo = edited.body["undo"]["url"].as_str().expect("the edit can be undone");
            let undone = caller.ask("POST", undo, "{}");
            assert_eq!(undone.status, 200, "{}", undone.body);
            undos.push(millis(undone.took));
        }
        let n = ids.len();
        table.put(&format!("edit of {n} channels, {name}"), &mut edits, Some(BULK_GOAL_MS));
        table.put(&format!("undo of {n} channels, {name}"), &mut undos, Some(BULK_GOAL_MS));
    }
}

/// Edits one channel after the other, each edit followed by one plain write and flush. Returns both times in ms.
fn single_writes(
    caller: &mut KeepAlive,
    channels: &[u64],
    file: &Path,
    goes_on: impl Fn() -> bool,
) -> (Vec<f64>, Vec<f64>) {
    let mut file = std::fs::File::create(file).expect("a file");
    let (mut writes, mut bare) = (Vec::new(), Vec::new());
    for (n, id) in channels.iter().cycle().enumerate().take_while(|_| goes_on()) {
        let edit = json!({ "name": format!("Edited {n}") }).to_string();
        let edited = caller.ask("PATCH", &format!("{CHANNELS}{id}/"), &edit);
        assert_eq!(edited.status, 200, "{}", edited.body);
        writes.push(millis(edited.took));
        let asked = now();
        file.write_all(&[7; 200]).and_then(|()| file.sync_data()).expect("a disk");
        bare.push(millis(asked.elapsed()));
    }
    (writes, bare)
}

/// Makes a back-up. Returns its time in ms and its name.
async fn back_up(admin: &Api) -> (Vec<f64>, String) {
    let asked = now();
    let begun = admin.post("/api/backups/create/", json!({})).await;
    assert_eq!(begun.status, 202, "{begun:?}");
    let path = format!("/api/backups/status/{}/", begun.text("task_id"));
    loop {
        let status = admin.get(&path).await.body;
        match status["state"].as_str() {
            Some("completed") => {
                let name = status["result"]["filename"].as_str().expect("a name").to_owned();
                return (vec![millis(asked.elapsed())], name);
            }
            Some("pending" | "running") => tokio::time::sleep(Duration::from_millis(10)).await,
            _ => panic!("{status}"),
        }
    }
}

/// Restores a back-up, and waits until the restarted program lists all streams. Returns the time in ms.
async fn restore(admin: &Api, address: SocketAddr, archive: &str, n_streams: u64) -> Vec<f64> {
    let asked = now();
    let begun = admin.post(&format!("/api/backups/{archive}/restore/"), json!({})).await;
    assert_eq!(begun.status, 202, "{begun:?}");
    while client_pool::fetch(address, "/healthz").is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    program::answers(address).await;
    let first = admin.get(&format!("{STREAMS}?page_size={PAGE}")).await;
    let took = millis(asked.elapsed());
    assert_eq!((first.status, &first.body["count"]), (200, &json!(n_streams)), "{first:?}");
    vec![took]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The figures and their goals.
#[derive(Default)]
struct Table {
    rows: Vec<Value>,
}

impl Table {
    /// Adds a row for times in ms, with the goal of their 99th percentile, and returns that percentile.
    fn put(&mut self, name: &str, times: &mut [f64], goal: Option<f64>) -> f64 {
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|p| percentile(times, p));
        self.rows.push(json!({
            "name": name, "n": times.len(), "p50_ms": p50, "p99_ms": p99, "max_ms": max, "goal_ms": goal,
        }));
        p99
    }

    /// Prints and records all figures.
    fn end(self, size: &Size, parts: Vec<Value>) {
        println!("{:>60} {:>6} {:>10} {:>10} {:>10} {:>10}", "in ms", "n", "p50", "p99", "max", "goal");
        for row in &self.rows {
            let number = |name: &str| row[name].as_f64().map_or("-".to_owned(), |it| format!("{it:.2}"));
            let is_missed = row["p99_ms"].as_f64() > row["goal_ms"].as_f64() && !row["goal_ms"].is_null();
            println!(
                "{:>60} {:>6} {:>10} {:>10} {:>10} {:>10} {}",
                row["name"].as_str().unwrap_or_default(),
                row["n"],
                number("p50_ms"),
                number("p99_ms"),
                number("max_ms"),
                number("goal_ms"),
                if is_missed { "missed" } else { "" },
            );
        }
        for part in &parts {
            let lag = |name: &str| part[name].as_f64().unwrap_or(f64::NAN);
            println!(
                "{:>60}: lag p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms, {} lost",
                format!("clients during {}", part["name"].as_str().unwrap_or_default()),
                lag("lag_p50_ms"),
                lag("lag_p99_ms"),
                lag("lag_max_ms"),
                part["lost"],
            );
        }
        let results = json!({
            "streams": size.streams,
            "channels": size.channels,
            "clients": size.clients,
            "rows": self.rows,
            "clients_during": parts,
        });
        support::record("rest", results);
    }
}
