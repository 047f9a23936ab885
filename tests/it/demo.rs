//! `headwater demo`: it plays within seconds, and its streams can be stopped.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::binary::Binary;
use crate::support::client::{Player, Request, fetch};
use crate::support::eventually;

/// Returns address and path of the printed command that stops this stream.
fn order(program: &Binary, stream: &str) -> (SocketAddr, String) {
    let output = program.output();
    let line = output
        .lines()
        .find(|line| line.contains("curl -X POST") && line.contains(stream) && line.contains("stop"));
    let url = line.and_then(|line| line.split("http://").nth(1)).expect("the command that stops it").trim();
    let (host, path) = url.split_once('/').expect("a path");
    (host.parse().expect("an address"), format!("/{path}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_plays_through_the_stop_of_its_first_stream_and_leaves_no_files() {
    let mut program = Binary::start(&["demo", "--source-listen", "127.0.0.1:0"]);
    let address = program.address().await;
    let paths = program.streams().await;
    assert_eq!(paths.len(), 3);
    let player = Player::watch(address, &paths[0]).await;
    player.until("one second of programme", |r| r.ts.programme_seconds() > 1.0).await;
    let (source, path) = order(&program, "testcard-a");
    let answer = fetch(source, Request::get(path).method("POST")).await;
    assert!(answer.status() < 300, "{}", answer.text());
    eventually("the other stream", || program.output().contains("stream.to=4")).await;
    let before = player.received(|r| r.ts.programme_seconds());
    player.until("two more seconds of programme", |r| r.ts.programme_seconds() > before + 2.0).await;
    player.received(|r| r.ts.assert_clean());
    let others = [Player::watch(address, &paths[1]).await, Player::watch(address, &paths[2]).await];
    for other in &others {
        other.until("one second of programme", |r| r.ts.programme_seconds() > 1.0).await;
        other.received(|r| r.ts.assert_clean());
    }
    assert_eq!(program.temporary_files().len(), 2, "the store and the guides of the demo");
    program.signal("TERM");
    assert_eq!(program.ended().await.code(), Some(0));
    // Regression: each demo left its store behind, because the process exited before the last owner closed it.
    assert!(program.temporary_files().is_empty(), "{:?}", program.temporary_files());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_page_on_the_machine_of_the_demo_is_signed_in_without_a_password() {
    let program = Binary::start(&["demo", "--source-listen", "127.0.0.1:0"]);
    let address = program.address().await;
    let renew = async |host: &str, headers: &[(&str, &str)]| {
        let request = Request::get("/api/accounts/auth/browser/renew/").method("POST");
        let request = request.header("Content-Type", "application/json").header("Host", host);
        let request = request.header("Origin", &format!("http://{host}"));
        let request = headers.iter().fold(request, |it, (name, value)| it.header(name, value));
        fetch(address, request).await.text()
    };
    let own = address.to_string();
    let access = serde_json::from_str::<Value>(&renew(&own, &[]).await).expect("JSON")["access"].take();
    let token = access.as_str().expect("the page is signed in");
    for (host, headers) in [
        // The page of another site that points its name at this machine, and a proxy.
        ("evil.example:9191", &[][..]),
        (&*own, &[("X-Forwarded-For", "192.0.2.7")]),
    ] {
        assert_eq!(renew(host, headers).await, "{\"access\":null}", "{host}");
    }
    let api = Api::stranger_at(address).bearer(token);
    let sources = api.get("/api/demo/sources/").await.body["results"].take();
    assert_eq!((sources.as_array().map(Vec::len), &sources[0]["is_running"]), (Some(6), &json!(true)));
    // Regression: the page said that the history is off.
    let history = api.get("/api/core/history/").await.body;
    assert_eq!((&history["scope"], &history["is_kept"]), (&json!("gateway"), &json!(true)));
    let stopped = api.post("/api/demo/sources/testcard-a/", json!({ "is_running": false })).await;
    assert_eq!((stopped.status, &stopped.body["is_running"]), (200, &json!(false)));
    assert_eq!(api.get("/api/demo/sources/").await.body["results"][0]["is_running"], false);
}

/// These need ffmpeg.
mod slow {
    use super::*;
    use crate::support::tools;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn ffprobe_reads_every_channel_of_the_demo() {
        let program = Binary::start(&["demo", "--source-listen", "127.0.0.1:0"]);
        let address = program.address().await;
        for path in program.streams().await {
            let url = format!("http://{address}{path}");
            let shown = ["-v", "error", "-show_entries", "stream=codec_type,width", "-of", "csv=p=0", &url];
            let text = tools::text_of("ffprobe", &shown).await;
            assert!(text.contains("video,") && text.contains("audio"), "{text}");
        }
    }
}
