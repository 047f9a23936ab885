//! Channels that an admin edits, and the effect on viewers.

use actors::Target;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::api::Api;
use crate::support::client::{Ended, Player, Request, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::{Cut, MockResponse, Provider};

const CHANNELS: &str = "/api/channels/channels/";
const NEWS: &str = "/live/anna/news.ts";
const FILM: &str = "/live/anna/film.ts";

/// Starts a provider with two streams and a gateway that has imported both; returns an admin client, too.
async fn set_up() -> (Provider, TestGateway, Api) {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    provider.path(FILM).plays(Picture::new("film").pids(0x20, 0x41, 0x42).starts_at(77));
    let list = provider.playlist(&[("news", "News", NEWS), ("film", "Film", FILM)]);
    let gateway = Setup::new().list(&list).start().await;
    let admin = Api::first_admin(&gateway).await;
    (provider, gateway, admin)
}

/// Returns the id of an imported stream, found with a search.
async fn stream(admin: &Api, name: &str) -> Value {
    let found = admin.get(&format!("/api/channels/streams/?name={name}")).await;
    assert_eq!((found.status, &found.body["count"]), (200, &json!(1)), "{found:?}");
    found.body["results"][0]["id"].clone()
}

/// Creates a channel of these imported streams; returns it with its stream path.
async fn make(admin: &Api, name: &str, streams: &[&str]) -> (Value, String) {
    let mut ids = Vec::new();
    for name in streams {
        ids.push(stream(admin, name).await);
    }
    let made = admin.post(CHANNELS, json!({ "name": name, "streams": ids })).await;
    assert_eq!(made.status, 201, "{made:?}");
    let path = format!("/proxy/ts/stream/{}", made.text("uuid"));
    (made.body, path)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_made_of_imported_streams_plays_and_fails_over_in_its_order() {
    let (provider, gateway, admin) = set_up().await;
    let (_, path) = make(&admin, "Both", &["film", "news"]).await;
    let player = Player::watch(gateway.address, &path).await;
    player.sees("film").await;
    provider.path(FILM).answers(MockResponse::status(404));
    provider.path(FILM).cut(Cut::Reset);
    player.sees("news").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_channel_follows_a_new_order_of_its_streams() {
    let (provider, gateway, admin) = set_up().await;
    let (channel, path) = make(&admin, "News first", &["news"]).await;
    let player = Player::watch(gateway.address, &path).await;
    player.sees("news").await;
    let streams = json!([stream(&admin, "film").await, stream(&admin, "news").await]);
    let one = format!("{CHANNELS}{}/", channel["id"]);
    let changed = admin.patch(&one, json!({ "streams": streams })).await;
    assert_eq!((changed.status, &changed.body["streams"]), (200, &streams), "{changed:?}");
    provider.path(NEWS).answers(MockResponse::status(404));
    provider.path(NEWS).cut(Cut::Reset);
    player.sees("film").await;
    assert!(player.is_watching());
}

// Holds T-slot.6 over the interface.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_or_disabling_a_live_channel_ends_it() {
    for by_deleting in [true, false] {
        let (_provider, gateway, admin) = set_up().await;
        let (channel, path) = make(&admin, "Short", &["news"]).await;
        let player = Player::watch(gateway.address, &path).await;
        player.sees("news").await;
        let one = format!("{CHANNELS}{}/", channel["id"]);
        let done = match by_deleting {
            true => admin.delete(&format!("{one}?stop_stream=true")).await,
            false => admin.patch(&one, json!({ "enabled": false })).await,
        };
        assert!(matches!(done.status, 200 | 204), "{done:?}");
        assert_eq!(player.ended().await, Ended::Whole);
        gateway.until_idle().await;
        assert_eq!(Player::watch(gateway.address, &path).await.status().await, 404);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removing_the_current_stream_from_a_channel_switches_to_another_stream() {
    let (_provider, gateway, admin) = set_up().await;
    let (channel, path) = make(&admin, "Both", &["news", "film"]).await;
    let player = Player::watch(gateway.address, &path).await;
    player.sees("news").await;
    let news = channel["streams"][0].clone();
    assert_eq!(admin.delete(&format!("/api/channels/streams/{news}/")).await.status, 204);
    let now = admin.get(&format!("{CHANNELS}{}/", channel["id"])).await;
    assert_eq!(now.body["streams"], json!([channel["streams"][1]]));
    let uuid: Uuid = now.text("uuid").parse().unwrap();
    assert!(player.is_watching());
    let status = gateway.gateway.switchboard().status(Target::Channel(uuid)).await.unwrap();
    assert!(status.is_some(), "the channel is live");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decimal_channel_numbers_are_listed_as_given() {
    let (_provider, gateway, admin) = set_up().await;
    let (channel, _) = make(&admin, "Tenth", &["news"]).await;
    let one = format!("{CHANNELS}{}/", channel["id"]);
    for (sent, shown) in [(json!("104.10"), "104.1"), (json!(104), "104"), (json!(0.001), "0.001")] {
        assert_eq!(admin.patch(&one, json!({ "number": sent })).await.status, 200);
        let text = admin.get(&one).await.answer.text();
        assert!(text.contains(&format!("\"channel_number\":{shown},")), "{text}");
    }
    let list = fetch(gateway.address, Request::get("/playlist.m3u")).await.text();
    assert!(list.contains("tvg-chno=\"0.001\""), "{list}");
}
