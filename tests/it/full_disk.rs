//! A full disk: everybody who has to know learns it, playback goes on, and so do writes once there is room.

use serde_json::json;

use crate::support::api::{ADMIN, Api, PASSWORD};
use crate::support::client::{Request, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::small_disk::SmallDisk;
use crate::support::until_async;
use crate::support::upstream::Provider;
use crate::support::websocket::WebSocketClient;

const NEWS: &str = "/live/anna/news.ts";

async fn health(gateway: &TestGateway) -> (u16, String) {
    let answer = fetch(gateway.api, Request::get("/healthz")).await;
    (answer.status(), answer.text())
}

// Holds T-disk.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_reported_everywhere_and_writes_go_on_once_there_is_room() {
    let disk = SmallDisk::new(48);
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    let list = provider.playlist(&[("news", "News", NEWS)]);
    let gateway = Setup::new().list(&list).folder(disk.path()).start().await;
    let admin = Api::first_admin(&gateway).await;
    let player = gateway.watch("News").await;
    player.sees("news").await;
    let token = admin.token(ADMIN, PASSWORD).await;
    let path = format!("/ws/?token={}", token.text("access"));
    let mut socket = WebSocketClient::open(gateway.address, &path, &[]).await.unwrap();
    assert_eq!(socket.next().await.unwrap()["data"]["store_stopped"], json!(null));
    assert_eq!(gateway.metrics().await["headwater_store_writable"], 1.0);
    assert_eq!(health(&gateway).await, (200, "ok\n".to_owned()));

    let other_data = disk.fill(36);
    let group = |name: &str| json!({ "name": name });
    let refused = admin.post("/api/channels/groups/", group("one")).await;
    assert_eq!(refused.status, 503, "{}", refused.body);
    let detail = refused.text("detail");
    assert!(detail.contains("the disk is full") && detail.contains("free some space"), "{detail}");
    assert_eq!(refused.answer.header("retry-after"), Some("3"));
    let (status, text) = health(&gateway).await;
    assert_eq!((status, text.trim_end()), (503, detail));
    let stopped = socket.kind("store_stopped").await;
    assert_eq!((&stopped["reason"], &stopped["success"]), (&json!(detail), &json!(false)));
    let mut later = WebSocketClient::open(gateway.address, &path, &[]).await.unwrap();
    assert_eq!(later.next().await.unwrap()["data"]["store_stopped"], json!(detail));
    let metrics = gateway.metrics().await;
    assert_eq!(metrics["headwater_store_writable"], 0.0);
    assert!(metrics["headwater_store_disk_bytes"] > metrics["headwater_store_live_bytes"]);
    let events = admin.get("/api/core/system-events/?event_type=store_stopped").await;
    assert_eq!(
        (&events.body["total"], &events.body["events"][0]["details"]["reason"]),
        (&json!(1), &json!(detail))
    );
    player.more_bytes(500_000).await;
    assert_eq!(admin.get("/api/channels/channels/").await.status, 200);

    std::fs::remove_file(other_data).unwrap();
    until_async("writes to go on", async || {
        admin.post("/api/channels/groups/", group("two")).await.status == 201
    })
    .await;
    socket.kind("store_resumed").await;
    assert_eq!(health(&gateway).await.0, 200);
    assert_eq!(gateway.metrics().await["headwater_store_writable"], 1.0);
    assert!(player.is_watching());
}
