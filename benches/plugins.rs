//! How soon is a plugin ready, what does a call of it cost, and what do idle plugins and crashes leave?
//!
//! The real program runs plugins in Python, as a process of its own. *Ready* is the time of the request that enables a
//! plugin, which is answered when its process has started; the first one also searches for Python. A *call* is the whole
//! request that runs an action which does nothing, over a connection that is kept open: HTTP, login, the queue of the
//! plugin and its process; nothing is taken off. Then a number of plugins do nothing: the memory of each that no other
//! process shares, and the CPU time of all. Last, a plugin crashes while it runs an action, and is started again, many
//! times; the program holds the same before and after if nothing leaks. The calls come before that, because the program
//! keeps the last thousand runs, and a tenth of the crashes happens before the first count.
//!
//! `cargo bench --bench plugins -- [--enablings 20] [--calls 1000] [--idle 10] [--seconds 30] [--crashes 1000]`

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]

#[path = "support/client_pool.rs"]
#[expect(dead_code, reason = "this bench has no clients")]
mod client_pool;
#[path = "support/keep_alive.rs"]
mod keep_alive;
#[path = "support/options.rs"]
#[expect(dead_code, reason = "this bench has no roles")]
mod options;
mod support;
#[path = "../tests/it/support/mod.rs"]
#[expect(dead_code, reason = "benches use a part of the test support")]
mod test_support;
#[path = "plugins/usage.rs"]
mod usage;

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use storage::plugin_files::testing::{archive, part};

use self::keep_alive::{KeepAlive, Reply};
use self::options::Options;
use self::support::percentile;
use self::test_support::api::{ADMIN, Api, PASSWORD};
use self::test_support::binary::Binary;
use self::test_support::client::say;
use self::usage::{Held, cpu, private_memory, process_of_plugin};

/// Time between two calls.
const CALL_PAUSE: Duration = Duration::from_millis(5);
const PLUGINS: &str = "/api/plugins/plugins/";
/// The plugin that is enabled, called and crashed.
const KEY: &str = "demo";
const MIB: f64 = 1024.0 * 1024.0;
/// Calls before the first one that is measured.
const FIRST_CALLS: u64 = 20;
/// Time until work that follows an answer is done.
const CALM: Duration = Duration::from_secs(5);

const READY_GOAL_MS: f64 = 500.0;
const CALL_GOAL_MS: f64 = 5.0;
const PRIVATE_GOAL_MIB: f64 = 16.0;
const IDLE_GOAL_CORE: f64 = 0.001;

const CODE: &[u8] = b"
import os

class Plugin:
    def run(self, action, params, context):
        if action == 'crash':
            os._exit(3)
        return {'status': 'ok'}
";

/// The program with its first admin.
struct Server {
    program: Binary,
    address: SocketAddr,
    admin: Api,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let options = Options::from_process();
    let n_enablings = options.number("--enablings", 20_u64).max(1);
    let n_calls = options.number("--calls", 1_000_u64).max(1);
    let n_idle = options.number("--idle", 10_u64).max(1);
    let seconds = options.number("--seconds", 30_u64).max(1);
    let n_crashes = options.number("--crashes", 1_000_u64);
    let data = tempfile::tempdir().expect("a temporary directory");
    let folder = data.path().display().to_string();
    let program = Binary::start(&["serve", "--log-level", "error", "--data-dir", &folder]);
    let address = program.address().await;
    let admin = Api::stranger_at(address).become_first_admin().await;
    let server = Server { program, address, admin };

    server.install(KEY).await;
    let ready = ready(&mut server.caller().await, n_enablings);
    println!(
        "ready: first {:.0} ms, p50 {:.0} ms, max {:.0} ms (goal {READY_GOAL_MS} ms)",
        number(&ready, "first_ms"),
        number(&ready, "p50_ms"),
        number(&ready, "max_ms")
    );
    let calls = calls(&mut server.caller().await, n_calls);
    println!(
        "call: p50 {:.2} ms, p99 {:.2} ms (goal {CALL_GOAL_MS} ms), max {:.2} ms",
        number(&calls, "p50_ms"),
        number(&calls, "p99_ms"),
        number(&calls, "max_ms")
    );
    let idle = idle(&server, n_idle, Duration::from_secs(seconds)).await;
    println!(
        "{n_idle} idle plugins: private memory p50 {:.1} MiB, max {:.1} MiB (goal {PRIVATE_GOAL_MIB} MiB);\n\
         CPU of all {:.3} % of a core (goal {:.1} %), of the program {:.3} %",
        number(&idle, "private_p50_mib"),
        number(&idle, "private_max_mib"),
        number(&idle, "cores") * 100.0,
        IDLE_GOAL_CORE * 100.0,
        number(&idle, "cores_of_the_program") * 100.0
    );
    let crashes = crashes(&server, n_crashes).await;
    println!("{n_crashes} crashes, each with a start: {:.0} ms (p50)", number(&crashes, "p50_ms"));
    for name in ["descriptors", "threads", "children", "zombies", "temporary_files"] {
        println!("{name:>16}: {} before, {} after", crashes["before"][name], crashes["after"][name]);
    }
    for name in ["resident_bytes", "private_bytes"] {
        let at = |moment: &str| number(&crashes[moment], name);
        println!(
            "{name:>16}: {:.1} MiB before, {:.1} MiB after half of them, {:.1} MiB after",
            at("before") / MIB,
            at("middle") / MIB,
            at("after") / MIB
        );
    }
    support::record(
        "plugins",
        json!({
            "ready": ready, "ready_goal_ms": READY_GOAL_MS, "call": calls, "call_goal_p99_ms": CALL_GOAL_MS,
            "idle": idle, "private_goal_mib": PRIVATE_GOAL_MIB, "idle_goal_cores": IDLE_GOAL_CORE,
            "crashes": crashes,
        }),
    );
}

impl Server {
    /// Returns a connection of the admin.
    async fn caller(&self) -> KeepAlive {
        let token = self.admin.token(ADMIN, PASSWORD).await;
        KeepAlive::connect(self.address, token.text("access"))
    }

    /// Uploads a plugin as a browser does.
    async fn install(&self, key: &str) {
        let manifest = json!({
            "name": key, "version": "1.0.0", "description": "", "permissions": {},
            "actions": [{ "id": "main", "label": "Main" }, { "id": "crash", "label": "Crash" }],
        });
        let manifest = manifest.to_string();
        let content = archive(&[
            part(&format!("{key}/plugin.json"), manifest.as_bytes()),
            part(&format!("{key}/plugin.py"), CODE),
        ]);
        let head = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"plugin.zip\"\r\n\r\n";
        let body = [head.as_bytes(), &content[..], b"\r\n--b--\r\n".as_slice()].concat();
        let token = self.admin.token(ADMIN, PASSWORD).await;
        let request = format!(
            "POST {PLUGINS}import/ HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\n\
             Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            token.text("access"),
            body.len()
        );
        let answer = say(self.address, &[request.as_bytes(), &body[..]].concat()).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    fn held(&self) -> Value {
        let mut held = Held::by(self.program.id()).json();
        held["temporary_files"] = self.program.temporary_files().len().into();
        held
    }
}

fn number(of: &Value, name: &str) -> f64 {
    of[name].as_f64().unwrap_or(f64::NAN)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn row(mut times: Vec<f64>) -> Value {
    json!({
        "n": times.len(),
        "first_ms": times.first(),
        "p50_ms": percentile(&mut times, 0.5),
        "p99_ms": percentile(&mut times, 0.99),
        "max_ms": percentile(&mut times, 1.0),
    })
}

/// Sends a request about a plugin that has to be answered with this status.
fn ask(caller: &mut KeepAlive, key: &str, what: &str, body: &Value, status: u16) -> Reply {
    let reply = caller.ask("POST", &format!("{PLUGINS}{key}/{what}/"), &body.to_string());
    assert_eq!(reply.status, status, "{what} of {key}: {}", reply.body);
    reply
}

fn enable(caller: &mut KeepAlive, key: &str) -> Duration {
    let reply = ask(caller, key, "enabled", &json!({ "enabled": true, "accept_gaps": true }), 200);
    assert_eq!(reply.body["plugin"]["state"], "ready", "{}", reply.body);
    reply.took
}

fn run(caller: &mut KeepAlive, key: &str) -> Duration {
    let reply = ask(caller, key, "run", &json!({ "action": "main", "params": {} }), 200);
    assert_eq!(reply.body["result"]["status"], "ok", "{}", reply.body);
    reply.took
}

/// Enables the plugin, and disables it in between.
fn ready(caller: &mut KeepAlive, n: u64) -> Value {
    let mut times = vec![milliseconds(enable(caller, KEY))];
    for _ in 1..n {
        ask(caller, KEY, "enabled", &json!({ "enabled": false }), 200);
        times.push(milliseconds(enable(caller, KEY)));
    }
    row(times)
}

/// Runs the action that does nothing.
fn calls(caller: &mut KeepAlive, n: u64) -> Value {
    for _ in 0..FIRST_CALLS {
        std::thread::sleep(CALL_PAUSE);
        run(caller, KEY);
    }
    let paced = (0..n).map(|_| {
        // A plugin may send so many messages in a second, and each call is two.
        std::thread::sleep(CALL_PAUSE);
        milliseconds(run(caller, KEY))
    });
    row(paced.collect())
}

/// Enables plugins, runs each once, and measures them while nothing happens.
async fn idle(server: &Server, n: u64, wait: Duration) -> Value {
    let keys: Vec<String> = (0..n).map(|it| format!("idle{it}")).collect();
    let mut caller = server.caller().await;
    for key in &keys {
        server.install(key).await;
        enable(&mut caller, key);
        run(&mut caller, key);
    }
    tokio::time::sleep(CALM).await;
    let program = server.program.id();
    let processes: Vec<u32> = keys.iter().map(|it| process_of_plugin(program, it)).collect();
    let all = || processes.iter().map(|it| cpu(*it)).collect::<Vec<_>>();
    let (before, of_program) = (all(), cpu(program));
    tokio::time::sleep(wait).await;
    let (after, of_program) = (all(), cpu(program).saturating_sub(of_program));
    let cores = |time: Duration| time.as_secs_f64() / wait.as_secs_f64();
    let mut each: Vec<f64> = before.iter().zip(&after).map(|it| cores(it.1.saturating_sub(*it.0))).collect();
    let mut private: Vec<f64> = processes.iter().map(|it| private_memory(*it) as f64 / MIB).collect();
    for key in &keys {
        let deleted = server.admin.delete(&format!("{PLUGINS}{key}/delete/")).await;
        assert_eq!(deleted.status, 200, "{deleted:?}");
    }
    json!({
        "plugins": n,
        "seconds": wait.as_secs(),
        "cores": each.iter().sum::<f64>(),
        "cores_max": percentile(&mut each, 1.0),
        "cores_of_the_program": cores(of_program),
        "private_p50_mib": percentile(&mut private, 0.5),
        "private_max_mib": percentile(&mut private, 1.0),
    })
}

/// Lets the plugin crash, and starts it again each time. Returns what the program holds before and after.
async fn crashes(server: &Server, n: u64) -> Value {
    let mut caller = server.caller().await;
    let mut crash = |n: u64| -> Vec<f64> {
        let one = |_| {
            let crashed = ask(&mut caller, KEY, "run", &json!({ "action": "crash", "params": {} }), 502);
            let restarted = ask(&mut caller, KEY, "restart", &json!({}), 200);
            assert_eq!(restarted.body["plugin"]["state"], "ready", "{}", restarted.body);
            milliseconds(crashed.took + restarted.took)
        };
        (0..n).map(one).collect()
    };
    crash(n / 10);
    tokio::time::sleep(CALM).await;
    let before = server.held();
    let mut times = crash(n / 2);
    tokio::time::sleep(CALM).await;
    let middle = server.held();
    times.extend(crash(n - n / 2));
    tokio::time::sleep(CALM).await;
    let after = server.held();
    json!({
        "n": n, "p50_ms": percentile(&mut times, 0.5), "max_ms": percentile(&mut times, 1.0),
        "before": before, "middle": middle, "after": after,
    })
}
