//! A disk that hangs or fails while the program runs: it is reported, nobody waits for long, playback goes on, and so do
//! writes once the disk works again.
//!
//! `strace` stops the system calls of the running program, or lets them fail.

use std::net::SocketAddr;
use std::process::Stdio;

use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::support::api::Api;
use crate::support::binary::Binary;
use crate::support::client::{Player, Request, fetch};
use crate::support::signal::Picture;
use crate::support::until_async;
use crate::support::upstream::{MockResponse, Provider};

const NEWS: &str = "/live/anna/news.ts";

/// Changes the effect of a system call of a program, until it is ended.
struct Interference(Child);

impl Interference {
    async fn begin(program: &Binary, effect: &str) -> Self {
        let mut strace = Command::new("strace")
            .args(["-f", "-p", &program.id().to_string(), "-e", "trace=fdatasync", "-o", "/dev/null"])
            .args(["-e", &format!("inject=fdatasync:{effect}")])
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("strace is installed: apt-get install strace");
        let mut lines = BufReader::new(strace.stderr.take().expect("piped")).lines();
        let first = lines.next_line().await.unwrap().unwrap_or_default();
        assert!(first.contains("attached"), "{first}");
        Self(strace)
    }

    async fn end(mut self) {
        let id = self.0.id().expect("it runs").to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
        self.0.wait().await.unwrap();
    }
}

/// A program with a viewer of its only channel.
struct Running {
    program: Binary,
    address: SocketAddr,
    admin: Api,
    player: Player,
    _provider: Provider,
    _folder: TempDir,
}

impl Running {
    async fn start() -> Self {
        let provider = Provider::start();
        provider.path(NEWS).answers(MockResponse::play(Picture::new("news")));
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().display().to_string();
        let program = Binary::start(&["serve", "--data-dir", &data, "--set", "limits.disk_timeout=0.2"]);
        let address = program.address().await;
        let admin = Api::stranger_at(address).become_first_admin().await;
        let stream = json!({ "name": "News", "url": provider.url(NEWS) });
        let stream = admin.post("/api/channels/streams/", stream).await;
        let channel = json!({ "name": "News", "streams": [stream.body["id"]] });
        let channel = admin.post("/api/channels/channels/", channel).await;
        assert_eq!(channel.status, 201, "{channel:?}");
        let path = format!("/proxy/ts/stream/{}", channel.text("uuid"));
        let player = Player::watch(address, &path).await;
        player.sees("news").await;
        Self { program, address, admin, player, _provider: provider, _folder: folder }
    }

    async fn health(&self) -> (u16, String) {
        let answer = fetch(self.address, Request::get("/healthz")).await;
        (answer.status(), answer.text())
    }

    async fn metric(&self, name: &str) -> u64 {
        let page = fetch(self.address, Request::get("/metrics")).await.text();
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("no {name} in {page}"))
    }

    async fn n_events(&self, kind: &str) -> u64 {
        let path = format!("/api/core/system-events/?event_type={kind}");
        self.admin.get(&path).await.body["total"].as_u64().unwrap()
    }

    /// Looks at everything that reports the state of the store.
    async fn is_reported(&self, cause: &str) {
        let refused = self.admin.post("/api/channels/groups/", json!({ "name": "refused" })).await;
        assert_eq!(refused.status, 503, "{}", refused.body);
        let detail = refused.text("detail");
        assert!(detail.contains(cause), "{detail}");
        assert_eq!(refused.answer.header("retry-after"), Some("3"));
        let (status, text) = self.health().await;
        assert_eq!((status, text.trim_end()), (503, detail));
        assert_eq!(self.metric("headwater_store_writable").await, 0);
        assert_eq!(self.n_events("store_stopped").await, 1);
        assert!(self.program.output().contains("the store refuses writes"), "{}", self.program.output());
        self.player.more_bytes(500_000).await;
        assert_eq!(self.admin.get("/api/channels/channels/").await.status, 200);
    }

    /// Waits until writes are accepted, and looks at everything that says so.
    async fn goes_on(&self) {
        until_async("writes to go on", async || {
            self.admin.post("/api/channels/groups/", json!({ "name": "accepted" })).await.status == 201
        })
        .await;
        assert_eq!(self.health().await, (200, "ok\n".to_owned()));
        assert_eq!(self.metric("headwater_store_writable").await, 1);
        until_async("the event", async || self.n_events("store_resumed").await == 1).await;
        assert!(self.player.is_watching());
        let groups = self.admin.get("/api/channels/groups/").await.body;
        let named =
            |name: &str| groups["results"].as_array().unwrap().iter().filter(|it| it["name"] == name).count();
        assert_eq!((named("refused"), named("accepted")), (0, 1), "{groups}");
    }
}

// Holds T-run.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_hangs_is_reported_everywhere_and_everything_goes_on_when_it_answers() {
    let running = Running::start().await;
    let interference = Interference::begin(&running.program, "delay_enter=3600000000").await;
    // This write begins, and waits for the disk. It may be kept.
    let begun = running.admin.post("/api/channels/groups/", json!({ "name": "begun" })).await;
    assert_eq!(begun.status, 503, "{}", begun.body);
    running.is_reported("the disk hangs").await;
    until_async("a second of waiting", async || running.metric("headwater_store_hanging_seconds").await > 0)
        .await;
    interference.end().await;
    running.goes_on().await;
    assert_eq!(running.metric("headwater_store_hanging_seconds").await, 0);
    assert!(running.program.output().contains("the disk answers again"), "{}", running.program.output());
}

// Holds T-disk.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_the_disk_is_reported_everywhere_and_writes_go_on_when_it_works_again() {
    let running = Running::start().await;
    let interference = Interference::begin(&running.program, "error=EIO").await;
    let begun = running.admin.post("/api/channels/groups/", json!({ "name": "begun" })).await;
    assert_eq!(begun.status, 503, "{}", begun.body);
    running.is_reported("the disk reported an input/output error").await;
    interference.end().await;
    running.goes_on().await;
}
