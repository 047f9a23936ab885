//! A lineup that moves from one provider to another.

use serde_json::{Value, json};

use crate::account_groups::GroupFixture;

const CHANNELS: &str = "/api/channels/channels/";

/// Returns the channel with this number.
async fn channel(fixture: &GroupFixture, number: f64) -> Value {
    let listed = fixture.get(&format!("{CHANNELS}?ordering=channel_number&page_size=100")).await;
    let channels = listed["results"].as_array().unwrap();
    channels.iter().find(|it| it["channel_number"].as_f64() == Some(number)).unwrap().clone()
}

fn stream_path(channel: &Value) -> String {
    format!("/proxy/ts/stream/{}", channel["uuid"].as_str().unwrap())
}

async fn refresh(fixture: &GroupFixture, accounts: [&str; 2]) {
    for account in accounts {
        let (outcome, message) = fixture.refresh(account).await;
        assert_eq!(outcome, "success", "{message}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lineup_moves_to_another_provider_and_back_without_duplicates_by_refreshes() {
    let fixture = GroupFixture::new().await;
    fixture
        .serve("anna", &[(1, "News", "UK: News One HD"), (2, "News", "Sport Today"), (3, "News", "Local")]);
    fixture.serve("bert", &[(11, "All", "News One FHD"), (12, "All", "sport today"), (13, "All", "Other")]);
    let old = fixture.account("anna", json!({})).await;
    let new = fixture.account("bert", json!({})).await;
    let starts_at = |it: u32| json!({ "auto_channel_sync": true, "auto_sync_channel_start": it });
    fixture.group(&old, "News", starts_at(100)).await;
    fixture.group(&new, "All", starts_at(200)).await;
    refresh(&fixture, [&old, &new]).await;
    let sport = channel(&fixture, 101.0).await;
    fixture.change(&format!("{CHANNELS}{}/", sport["id"]), json!({ "name": "My sport" })).await;
    let before = fixture.channels().await;
    assert_eq!(
        before,
        [
            "100 UK: News One HD",
            "101 My sport",
            "102 Local",
            "200 News One FHD",
            "201 sport today",
            "202 Other"
        ]
    );

    let id = new.trim_end_matches('/').rsplit('/').next().unwrap().parse::<u32>().unwrap();
    let path = format!("{old}replace-with/");
    let shown = fixture.admin.post(&path, json!({ "account": id, "preview": true })).await;
    assert_eq!(shown.status, 200, "{}", shown.body);
    let counts = ["pairs_count", "unpaired_count", "channels_count", "duplicates_count"];
    assert_eq!(counts.map(|it| shown.body[it].as_u64()), [Some(2), Some(1), Some(2), Some(2)]);
    assert_eq!(fixture.channels().await, before);

    let done = fixture.admin.post(&path, json!({ "account": id })).await;
    assert_eq!(done.status, 200, "{}", done.body);
    let moved = ["100 UK: News One HD", "101 My sport", "102 Local", "202 Other"];
    assert_eq!(fixture.channels().await, moved);
    let news = channel(&fixture, 100.0).await;
    let player = fixture.watch(&stream_path(&news)).await;
    player.sees("bert 11").await;
    drop(player);
    assert_eq!(channel(&fixture, 101.0).await["id"], sport["id"]);
    refresh(&fixture, [&old, &new]).await;
    // What the old provider changes does not reach the moved channels.
    fixture.serve("anna", &[(1, "News", "Renamed"), (2, "News", "Sport Today"), (3, "News", "Local")]);
    refresh(&fixture, [&new, &old]).await;
    assert_eq!(fixture.channels().await, ["100 UK: News One HD", "101 My sport", "102 Local", "202 Other"]);

    let undone = fixture.admin.post(done.body["undo"]["url"].as_str().unwrap(), json!({})).await;
    assert_eq!(undone.status, 200, "{}", undone.body);
    refresh(&fixture, [&old, &new]).await;
    let after = fixture.channels().await;
    assert_eq!(
        after,
        ["100 Renamed", "101 My sport", "102 Local", "200 News One FHD", "201 sport today", "202 Other"]
    );
    let player = fixture.watch(&stream_path(&news)).await;
    player.sees("anna 1").await;
}
