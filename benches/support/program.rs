//! The real program as a process of its own, and channels that it plays.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::client_pool;
use super::process::Process;
use super::test_support::api::Api;
use super::test_support::signal::Picture;
use super::test_support::upstream::{MockResponse, Provider};

pub const BITS_PER_SECOND: u64 = 1_000_000;

/// Starts the program on a data folder, with these settings besides its own and the environment of the service files, and
/// waits until it answers.
pub async fn start(address: SocketAddr, folder: &Path, settings: &[&str]) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    command.arg("serve").arg("--data-dir").arg(folder).args(["--log-level", "warn"]);
    command.args(["--player-listen", &address.to_string(), "--api-listen", "127.0.0.1:0"]);
    for setting in settings {
        command.args(["--set", setting]);
    }
    let process = Process::spawn(&mut command);
    answers(address).await;
    process
}

/// Waits until the program answers.
pub async fn answers(address: SocketAddr) {
    let is_ready = |answer: String| answer.split(' ').nth(1) == Some("200");
    while !client_pool::fetch(address, "/healthz").is_some_and(is_ready) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Creates a channel with one stream and returns its player path.
pub async fn channel(provider: &Provider, admin: &Api, number: u64) -> String {
    let path = format!("/live/bench/{number}.ts");
    provider.path(&path).answers(MockResponse::play(picture()));
    let name = format!("Bench {number}");
    let stream = json!({ "name": name, "url": provider.url(&path) });
    let stream = admin.post("/api/channels/streams/", stream).await;
    assert_eq!(stream.status, 201, "{stream:?}");
    let channel = json!({ "name": name, "streams": [stream.body["id"]] });
    let channel = admin.post("/api/channels/channels/", channel).await;
    assert_eq!(channel.status, 201, "{channel:?}");
    format!("/proxy/ts/stream/{}", channel.text("uuid"))
}

/// Returns the same programme for every channel, so that the sent bytes are computed once.
pub fn picture() -> Picture {
    Picture::new("bench").bits_per_second(BITS_PER_SECOND).frames_per_gop(50)
}

/// Creates an account with the playlist, waits for its import, and returns its id.
pub async fn import(admin: &Api, list: &str, entries: u64) -> u64 {
    let made = admin.post("/api/m3u/accounts/", json!({ "name": "Large", "server_url": list })).await;
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.body["id"].as_u64().expect("an account has an id");
    let done = over(admin, id, None).await;
    assert_eq!((&done["entries"], &done["streams_created"]), (&json!(entries), &json!(entries)), "{done}");
    id
}

/// Refreshes the account and waits for the end.
pub async fn refresh(admin: &Api, account: u64, n_changed: u64) {
    let begun = admin.post(&format!("/api/m3u/refresh/{account}/"), json!({})).await;
    assert_eq!(begun.status, 202, "{begun:?}");
    let done = over(admin, account, Some(&begun.body["task_id"])).await;
    let made = (&done["streams_created"], &done["streams_updated"]);
    assert_eq!(made, (&json!(0), &json!(n_changed)), "{done}");
}

/// Waits for the end of a refresh, or of the first one.
async fn over(admin: &Api, account: u64, task: Option<&Value>) -> Value {
    loop {
        let refresh = admin.get(&format!("/api/m3u/refresh/{account}/")).await.body;
        if refresh["phase"] == "done" && task.is_none_or(|task| *task == refresh["task_id"]) {
            assert_eq!(refresh["outcome"], "success", "{refresh}");
            return refresh;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
