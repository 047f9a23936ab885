//! Pictures of channels that play, for pages that show what is on.

use domain::channel::Channel;
use domain::user::UserLevel;

use crate::support::client::{Player, Request, Response, fetch};
use crate::support::gateway::TestGateway;
use crate::support::signal::{Clip, Picture};
use crate::support::until_async;
use crate::support::upstream::Provider;
use crate::support::users::{TestUser, create_user};

const NEWS: &str = "/live/anna/news.ts";
const RADIO: &str = "/live/anna/radio.ts";

async fn set_up() -> (Provider, TestGateway) {
    let provider = Provider::start();
    // A picture of a real encoder, with its parameters.
    let inputs = ["-f", "lavfi", "-i", "testsrc2=size=160x90:rate=25"];
    let encoder = ["-t", "20", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "25"];
    provider.path(NEWS).plays(Clip::make("stills.ts", &inputs, &encoder).await);
    provider.path(RADIO).plays(Picture::new("radio").radio());
    let list = provider.playlist(&[("news", "News", NEWS), ("radio", "Radio", RADIO)]);
    (provider, TestGateway::with_list(&list).await)
}

async fn still(gateway: &TestGateway, user: &TestUser, channel: &str, tag: &str) -> Response {
    let path = format!("/proxy/ts/still/{}", gateway.channel(channel).uuid);
    let request = Request::get(path).header("X-API-Key", &user.api_key).header("If-None-Match", tag);
    fetch(gateway.address, request).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_picture_of_a_channel_that_plays_is_for_its_users_and_starts_nothing() {
    let (provider, gateway) = set_up().await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    let child = create_user(&gateway, "child", |it| it.hide_adult = true).await;
    let news = gateway.channel("News").clone();
    gateway.change(move |write| write.put(&Channel { is_adult: true, ..news })).await;

    let idle = still(&gateway, &anna, "News", "").await;
    assert_eq!((idle.status(), provider.accepted()), (404, 0), "{}", idle.text());

    let player = Player::ask(gateway.address, anna.asks(&gateway, "News", "television")).await;
    player.until("a second of the channel", |it| it.n_bytes > 20_000).await;
    until_async("a whole key frame", async || still(&gateway, &anna, "News", "").await.status() == 200).await;
    let picture = still(&gateway, &anna, "News", "").await;
    assert_eq!(picture.header("content-type"), Some("video/mp4"));
    assert_eq!(picture.header("cache-control"), Some("private, no-store"));
    assert_eq!(&picture.bytes[4..8], b"ftyp");
    let tag = picture.header("etag").unwrap().to_owned();
    until_async("the same picture twice", async || {
        let again = still(&gateway, &anna, "News", "").await;
        still(&gateway, &anna, "News", again.header("etag").unwrap_or(&tag)).await.status() == 304
    })
    .await;
    assert_eq!(still(&gateway, &child, "News", "").await.status(), 404);
    gateway.has_clients(1).await;
    assert_eq!((provider.accepted(), gateway.n_events("client_connect")), (1, 1));
    player.leave().await;
    gateway.until_idle().await;
    assert_eq!(still(&gateway, &anna, "News", "").await.status(), 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_without_a_picture_says_so() {
    let (_provider, gateway) = set_up().await;
    let admin = create_user(&gateway, "admin", |it| it.level = UserLevel::Admin).await;
    let player = gateway.watch("Radio").await;
    player.sees("radio").await;
    let answer = still(&gateway, &admin, "Radio", "").await;
    assert_eq!(answer.status(), 404);
    assert!(answer.text().contains("it has no picture"), "{}", answer.text());
}
