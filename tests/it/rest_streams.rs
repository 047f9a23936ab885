//! Streams that an admin searches and edits, with a provider behind them.

use serde_json::json;

use crate::support::api::Api;
use crate::support::client::Player;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::Provider;

const STREAMS: &str = "/api/channels/streams/";
const NEWS: &str = "/live/anna/news.ts";
const OTHER: &str = "/live/anna/other.ts";

async fn set_up() -> (Provider, TestGateway, Api) {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    provider.path(OTHER).plays(Picture::new("other"));
    let list = provider.playlist(&[("news", "News", NEWS)]);
    let gateway = Setup::new().list(&list).start().await;
    let admin = Api::first_admin(&gateway).await;
    (provider, gateway, admin)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_custom_stream_is_found_at_once_and_plays_in_a_channel() {
    let (provider, gateway, admin) = set_up().await;
    let made = admin.post(STREAMS, json!({ "name": "By hand", "url": provider.url(OTHER) })).await;
    assert_eq!(made.status, 201, "{made:?}");
    let found = admin.get(&format!("{STREAMS}?search=HAND&unassigned=true")).await;
    assert_eq!(found.body["results"][0]["id"], made.body["id"]);
    let channel = admin
        .post("/api/channels/channels/from-stream/", json!({ "stream_id": made.body["id"], "name": "Hand" }))
        .await;
    assert_eq!(channel.status, 201, "{channel:?}");
    let path = format!("/proxy/ts/stream/{}", channel.text("uuid"));
    Player::watch(gateway.address, &path).await.sees("other").await;
    let left = admin.get(&format!("{STREAMS}?search=HAND&unassigned=true")).await;
    assert_eq!(left.body["count"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_url_of_an_imported_stream_applies_to_the_next_viewer() {
    let (provider, gateway, admin) = set_up().await;
    let found = admin.get(&format!("{STREAMS}?name=news")).await;
    let one = format!("{STREAMS}{}/", found.body["results"][0]["id"]);
    let edited = admin.patch(&one, json!({ "url": provider.url(OTHER) })).await;
    assert_eq!(edited.status, 200, "{edited:?}");
    gateway.watch("News").await.sees("other").await;
    gateway.until_idle().await;
    let back = admin.patch(&one, json!({ "url": null })).await;
    assert_eq!(back.text("url"), provider.url(NEWS));
    gateway.watch("News").await.sees("news").await;
}
