//! Targets that hang: neither viewers nor other integrations, requests or the end of the program wait for a webhook, a
//! script or a plugin that never ends what it began.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use crate::plugins::{PLUGINS, install, package};
use crate::recordings::Studio;
use crate::support::client::{Ended, Player, Request};
use crate::support::eventually;
use crate::support::web_target::WebTarget;

const INTEGRATIONS: &str = "/api/connect/integrations/";
const EVENTS: [&str; 5] =
    ["client_connect", "channel_start", "client_disconnect", "channel_stop", "login_failed"];
/// How often something is tried that has to happen before an attempt ends.
const TRIES_MAX: usize = 5;

/// Notes its process id, and stops its process, which then answers nothing any more.
const PLUGIN: &str = "
import os, signal
class Plugin:
    def run(self, action, params, context):
        with open(os.path.join(context.data_dir, 'pids'), 'a') as file:
            file.write('%d\\n' % os.getpid())
        os.kill(os.getpid(), signal.SIGSTOP)
";

/// A target that hangs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Hung {
    Webhook,
    Script,
    Plugin,
}

/// The numbers of attempts that began, and of those that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Attempts {
    begun: usize,
    ended: usize,
}

/// A server that reads requests and never answers.
struct SilentServer {
    address: SocketAddr,
    attempts: Arc<Mutex<Attempts>>,
    _task: AbortOnDropHandle<()>,
}

impl SilentServer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let attempts: Arc<Mutex<Attempts>> = Arc::default();
        let counted = attempts.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(hold(socket, counted.clone()));
            }
        });
        Self { address, attempts, _task: AbortOnDropHandle::new(task) }
    }
}

/// Reads until the other side closes.
async fn hold(mut socket: TcpStream, attempts: Arc<Mutex<Attempts>>) {
    let (mut buffer, mut is_asked) = ([0; 4096], false);
    while socket.read(&mut buffer).await.is_ok_and(|n| n > 0) {
        if !std::mem::replace(&mut is_asked, true) {
            attempts.lock().begun += 1;
        }
    }
    if is_asked {
        attempts.lock().ended += 1;
    }
}

/// The program with a target that hangs, and with one that works.
struct Stage {
    studio: Studio,
    hung: Hung,
    silent: SilentServer,
    good: WebTarget,
    /// The file with the ids of the processes that hang.
    pids: PathBuf,
    /// The uuid of the channel.
    channel: String,
    _folder: tempfile::TempDir,
}

impl Stage {
    async fn start(hung: Hung) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scripts = folder.path().join("scripts");
        std::fs::create_dir(&scripts).unwrap();
        let dirs = format!("integrations.script_dirs=[\"{}\"]", scripts.display());
        let studio = Studio::start_with(&[dirs, "auth.failure_delay_max=0".to_owned()]).await;
        let (silent, good, admin) = (SilentServer::start().await, WebTarget::start(), &studio.admin);
        let subscribe = async |members: Value| {
            let mut body = json!({ "name": "Target", "events": EVENTS });
            body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            let made = admin.post(INTEGRATIONS, body).await;
            assert_eq!(made.status, 201, "{made:?}");
        };
        let pids = match hung {
            Hung::Webhook => {
                let url = format!("http://{}/", silent.address);
                subscribe(json!({ "type": "webhook", "url": url })).await;
                PathBuf::new()
            }
            Hung::Script => {
                let (script, pids) = (scripts.join("hang.sh"), scripts.join("pids"));
                let text = format!("#!/bin/sh\necho $$ >> '{}'\nexec sleep 100000\n", pids.display());
                std::fs::write(&script, text).unwrap();
                std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
                let config = json!({ "path": script.display().to_string(), "timeout": 600 });
                subscribe(json!({ "type": "script", "config": config })).await;
                pids
            }
            Hung::Plugin => {
                let actions = json!([{ "id": "hang", "label": "Hang", "events": ["client_connect"] }]);
                let archive = package("hung", json!({ "actions": actions }), PLUGIN);
                install(&studio.program, admin, "hung", &archive).await;
                studio.data.path().join("plugin-data/hung/files/pids")
            }
        };
        subscribe(json!({ "type": "webhook", "url": good.url("/good") })).await;
        let channels = admin.get("/api/channels/channels/").await;
        let channel = channels.body["results"][0]["uuid"].as_str().unwrap().to_owned();
        Self { studio, hung, silent, good, pids, channel, _folder: folder }
    }

    fn attempts(&self) -> Attempts {
        if self.hung == Hung::Webhook {
            return *self.silent.attempts.lock();
        }
        let text = std::fs::read_to_string(&self.pids).unwrap_or_default();
        let pids = || text.split_inclusive('\n').filter_map(|it| it.strip_suffix('\n'));
        Attempts { begun: pids().count(), ended: pids().filter(|it| !runs(it)).count() }
    }

    async fn until_hanging(&self) -> Attempts {
        let is_hanging = || {
            let Attempts { begun, ended } = self.attempts();
            begun > ended
        };
        eventually("an attempt that hangs", is_hanging).await;
        self.attempts()
    }

    /// Does something that has to be done before the attempt ends that hangs. A busy machine may need several tries.
    async fn while_hanging(&self, what: &str, mut work: impl AsyncFnMut()) {
        for _ in 0..TRIES_MAX {
            let before = self.until_hanging().await;
            work().await;
            if self.attempts().ended == before.ended {
                return;
            }
        }
        panic!("{what} had to wait for the {:?}", self.hung);
    }

    async fn watch(&self) -> Player {
        let player = Player::watch(self.studio.address, &format!("/proxy/ts/stream/{}", self.channel)).await;
        player.sees("news").await;
        player
    }

    /// Causes an event, and waits until the target that works has it.
    async fn deliver(&self) {
        let device = Uuid::new_v4().to_string();
        let body = json!({ "username": "nobody", "password": "wrong" }).to_string();
        let login = Request::get("/api/accounts/token/").method("POST").header("User-Agent", &device);
        let login = login.body("application/json", body);
        assert_eq!(self.studio.admin.without_credentials().ask(login).await.status, 401);
        let is_there = || self.good.requests("/good").iter().any(|it| it.json()["user_agent"] == *device);
        eventually("the other target", is_there).await;
    }
}

/// Returns whether a process runs.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|it| it.rsplit_once(") ").is_some_and(|it| !it.1.starts_with('Z')))
}

async fn nothing_waits_for(hung: Hung) {
    let stage = Stage::start(hung).await;
    let (admin, stop) = (&stage.studio.admin, format!("/proxy/ts/stop/{}", stage.channel));
    // Its events are the first that the target gets.
    let first = stage.watch().await;
    stage
        .while_hanging("the stop of a channel", async || {
            let player = stage.watch().await;
            assert_eq!(admin.post(&stop, json!({})).await.status, 200);
            player.ended().await;
            eventually("the end of the channel", || stage.studio.provider.open() == 0).await;
        })
        .await;
    assert_eq!(first.ended().await, Ended::Whole);

    let player = stage.watch().await;
    stage.while_hanging("a viewer", async || player.more_bytes(500_000).await).await;
    stage.while_hanging("another integration", async || stage.deliver().await).await;
    let mut n_groups = 0;
    stage
        .while_hanging("a request", async || {
            for path in [INTEGRATIONS, PLUGINS, "/api/connect/deliveries/", "/api/core/health/"] {
                let answer = admin.get(path).await;
                assert_eq!(answer.status, 200, "{path}: {answer:?}");
            }
            n_groups += 1;
            let group = json!({ "name": format!("Group {n_groups}") });
            let made = admin.post("/api/channels/groups/", group).await;
            assert_eq!(made.status, 201, "{made:?}");
        })
        .await;
    let metrics = admin.get("/metrics").await.answer.text();
    let misses = metrics.lines().find_map(|it| it.strip_prefix("headwater_client_misses_total "));
    assert_eq!(misses, Some("0"), "no viewer fell behind: {metrics}");
    let waiting = admin.get("/api/connect/deliveries/?state=waiting").await;
    assert!(waiting.body["count"].as_u64() > Some(0), "{waiting:?}");

    stage.until_hanging().await;
    let Stage { studio, silent, pids, .. } = stage;
    let mut program = studio.program;
    program.signal("TERM");
    assert_eq!(player.ended().await, Ended::Whole, "{}", program.output());
    player.received(|r| r.ts.assert_clean());
    // A script may run for ten minutes, and the queue of the webhook for a day.
    assert_eq!(program.ended().await.code(), Some(0), "{}", program.output());
    eventually("the end of what hung", || {
        let attempts = *silent.attempts.lock();
        let pids = std::fs::read_to_string(&pids).unwrap_or_default();
        attempts.begun == attempts.ended && !pids.lines().any(runs)
    })
    .await;
}

// Holds T-life.4, T-run.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_waits_for_a_webhook_that_never_answers() {
    nothing_waits_for(Hung::Webhook).await;
}

// Holds T-life.4, T-run.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_waits_for_a_script_that_never_ends() {
    nothing_waits_for(Hung::Script).await;
}

// Holds T-life.4, T-run.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_waits_for_a_plugin_that_hangs() {
    nothing_waits_for(Hung::Plugin).await;
}
