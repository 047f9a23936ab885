//! A reason on the screen: players that show no errors get a clip instead, if the option is on.

use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::client::{Player, Request, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::tools;
use crate::support::upstream::{MockResponse, Provider};
use crate::support::users::{TestUser, create_user};

/// Starts a gateway with the channel Good on an account with one connection, and Bad, which never plays.
async fn set_up(folder: &std::path::Path) -> (Provider, TestGateway, Api) {
    let provider = Provider::start();
    provider.path("/good.ts").plays(Picture::new("good"));
    provider.path("/other.ts").plays(Picture::new("other"));
    provider.path("/bad.ts").answers(MockResponse::status(404));
    let one = provider.playlist(&[("good", "Good", "/good.ts"), ("other", "Other", "/other.ts")]);
    let setup = Setup::new().limited_list(&one, 1).list(&provider.playlist(&[("bad", "Bad", "/bad.ts")]));
    let data_dir = folder.to_owned();
    let gateway = setup.config(move |it| it.data_dir = data_dir).start().await;
    let root = create_user(&gateway, "root", |it| it.is_superuser = true).await;
    let admin = Api::stranger(&gateway).key(&root.api_key);
    (provider, gateway, admin)
}

async fn set_option(admin: &Api, value: &str) {
    let settings = admin.get("/api/core/settings/").await.body;
    let rows = settings["results"].as_array().unwrap();
    let id = &rows.iter().find(|it| it["key"] == "stream_settings").unwrap()["id"];
    let sent: Value = json!({ "value": { "reason_on_screen": value } });
    let set = admin.patch(&format!("/api/core/settings/{id}/"), sent).await;
    assert_eq!(set.status, 200, "{set:?}");
}

fn request(gateway: &TestGateway, user: &TestUser, channel: &str) -> Request {
    user.asks(gateway, channel, "tv")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_gets_a_clip_with_the_reason_that_ends_after_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let (_provider, gateway, admin) = set_up(folder.path()).await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    let refused = fetch(gateway.address, request(&gateway, &anna, "Bad")).await;
    assert_eq!(refused.status(), 503, "off by default");

    set_option(&admin, "unavailable").await;
    let clip = Player::ask(gateway.address, request(&gateway, &anna, "Bad")).await;
    let head = clip.head().await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("video/mp2t")));
    clip.until("two seconds of the clip", |it| it.n_bytes > 20_000).await;
    let file = tools::saved(&clip.recording());
    let show = ["-v", "error", "-show_entries", "stream=codec_type,width,height", "-of", "csv=p=0"];
    let shown = tools::text_of("ffprobe", &[&show[..], &[file.path().to_str().unwrap()]].concat()).await;
    assert!(shown.contains("video,1280,720") && shown.contains("audio"), "{shown}");
    assert_eq!(gateway.gateway.counts().leases, 0, "a clip takes no slot");
    assert_eq!(gateway.gateway.counts().clients, 0);
    clip.leave().await;
    // Made once, and kept.
    let kept = || std::fs::read_dir(folder.path().join("cache/screens")).unwrap().count();
    assert_eq!(kept(), 1);
    let again = Player::ask(gateway.address, request(&gateway, &anna, "Bad")).await;
    assert_eq!(again.status().await, 200);
    assert_eq!(kept(), 1);

    // Another reason: the account is full.
    let player = Player::ask(gateway.address, anna.asks(&gateway, "Good", "tv")).await;
    player.sees("good").await;
    let bert = create_user(&gateway, "bert", |_| {}).await;
    let full = Player::ask(gateway.address, bert.asks(&gateway, "Other", "phone")).await;
    assert_eq!(full.status().await, 200);
    assert_eq!(kept(), 2);
    assert!(player.is_watching());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_understand_errors_get_them_and_a_wrong_password_is_shown_only_if_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let (_provider, gateway, admin) = set_up(folder.path()).await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    set_option(&admin, "unavailable").await;
    let accepts_json = request(&gateway, &anna, "Bad").header("Accept", "application/json");
    assert_eq!(fetch(gateway.address, accepts_json).await.status(), 503);
    let wrong = Request::get(anna.live("1.ts").replace("anna", "nobody"));
    assert_eq!(fetch(gateway.address, wrong.clone()).await.status(), 401);
    assert_eq!(fetch(gateway.address, Request::get("/proxy/ts/stream/unknown")).await.status(), 404);

    set_option(&admin, "all").await;
    for request in [wrong.clone(), Request::get("/proxy/ts/stream/unknown")] {
        assert_eq!(Player::ask(gateway.address, request).await.status().await, 200);
    }
    let head = Request::head(anna.live("1.ts").replace("anna", "nobody"));
    assert_eq!(fetch(gateway.address, head).await.status(), 401);
    // A media server with a tuner.
    assert_eq!(fetch(gateway.address, Request::get("/lineup.json")).await.status(), 200);
    assert_eq!(fetch(gateway.address, wrong).await.status(), 401);
}
