//! `headwater demo`: it plays within seconds, and its streams can be stopped.

use std::net::SocketAddr;

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
    assert_eq!(program.temporary_files().len(), 1, "the store of the demo");
    program.signal("TERM");
    assert_eq!(program.ended().await.code(), Some(0));
    // Regression: each demo left its store behind, because the process exited before the last owner closed it.
    assert!(program.temporary_files().is_empty(), "{:?}", program.temporary_files());
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
