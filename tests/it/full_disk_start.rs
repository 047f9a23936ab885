//! A start on a full disk: the gateway plays, says that nothing is saved, and writes once there is room.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::api::Api;
use crate::support::binary::Binary;
use crate::support::client::{Player, Request, fetch};
use crate::support::signal::Picture;
use crate::support::small_disk::SmallDisk;
use crate::support::until_async;
use crate::support::upstream::{MockResponse, Provider};

const NEWS: &str = "/live/anna/news.ts";

/// Reads all files below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => drop(found.insert(entry.path(), fs::read(entry.path()).unwrap())),
        }
    }
    found
}

// The gateway did not start on a full disk, not even after a clean stop: "failed to open the database: the disk is full".
// Holds T-disk.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_on_a_full_disk_plays_and_writes_go_on_once_there_is_room() {
    let disk = SmallDisk::new(80);
    let provider = Provider::start();
    provider.path(NEWS).answers(MockResponse::play(Picture::new("news")));
    let folder = disk.path().join("data");
    let serve = || Binary::start(&["serve", "--data-dir", &folder.display().to_string()]);
    let mut program = serve();
    let admin = Api::stranger_at(program.address().await).become_first_admin().await;
    let stream = json!({ "name": "News", "url": provider.url(NEWS) });
    let stream = admin.post("/api/channels/streams/", stream).await;
    let channel = json!({ "name": "News", "streams": [stream.body["id"]] });
    let channel = admin.post("/api/channels/channels/", channel).await;
    assert_eq!(channel.status, 201, "{channel:?}");
    let path = format!("/proxy/ts/stream/{}", channel.text("uuid"));

    for (signal, group) in [("TERM", "one"), ("KILL", "two")] {
        let other_data = disk.fill_up();
        program.signal(signal);
        program.ended().await;
        let stored = files(&folder.join("store"));

        program = serve();
        let address = program.address().await;
        let admin = admin.at(address);
        let player = Player::watch(address, &path).await;
        player.sees("news").await;
        let refused = admin.post("/api/channels/groups/", json!({ "name": group })).await;
        let detail = refused.text("detail");
        assert!(refused.status == 503 && detail.contains("the disk is full"), "{}", refused.body);
        let health = fetch(address, Request::get("/healthz")).await;
        assert_eq!((health.status(), health.text().trim_end()), (503, detail));
        let state = admin.get("/api/core/health/").await;
        assert!(state.body.to_string().contains("store_stopped"), "{}", state.body);
        let channels = admin.get("/api/channels/channels/").await;
        assert_eq!(channels.body["results"][0]["name"], json!("News"), "{}", channels.body);
        assert!(files(&folder.join("store")) == stored, "the store was changed on the full disk");
        assert!(program.output().contains("nothing is saved"), "{}", program.output());

        fs::remove_file(other_data).unwrap();
        until_async("writes to go on", async || {
            admin.post("/api/channels/groups/", json!({ "name": group })).await.status == 201
        })
        .await;
        assert_eq!(fetch(address, Request::get("/healthz")).await.status(), 200);
        player.more_bytes(500_000).await;
        assert!(player.is_watching());
    }
    program.signal("TERM");
    assert!(program.ended().await.success(), "{}", program.output());

    // What was written after each start is there at the next one.
    let program = serve();
    let groups = admin.at(program.address().await).get("/api/channels/groups/").await.body.to_string();
    assert!(groups.contains("\"one\"") && groups.contains("\"two\""), "{groups}");
}
