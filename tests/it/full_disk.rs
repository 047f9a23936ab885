//! A full disk: everybody who has to know learns it, playback goes on, and so do writes once there is room.

use domain::stream::Stream;
use domain::time::iso_millis;
use serde_json::{Value, json};

use crate::support::api::{ADMIN, Api, ApiReply, PASSWORD};
use crate::support::client::{Request, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::random::Random;
use crate::support::signal::Picture;
use crate::support::small_disk::SmallDisk;
use crate::support::until_async;
use crate::support::upstream::{MockResponse, Provider};
use crate::support::websocket::WebSocketClient;

const NEWS: &str = "/live/anna/news.ts";

async fn health(gateway: &TestGateway) -> (u16, String) {
    let answer = fetch(gateway.api, Request::get("/healthz")).await;
    (answer.status(), answer.text())
}

/// Sends a request of a page to the routes of the login that a browser keeps in a cookie.
async fn page_request(gateway: &TestGateway, route: &str, cookie: &str, body: Value) -> ApiReply {
    let request = Request::get(format!("/api/accounts/auth/browser/{route}")).method("POST");
    let request = request.header("Origin", &format!("http://{}", gateway.address)).header("Cookie", cookie);
    let request = request.body("application/json", body.to_string());
    Api::stranger(gateway).ask(request).await
}

/// Signs the admin in to the page, and works with it until the log-out.
async fn sign_in_to_the_page(gateway: &TestGateway) {
    let login = json!({ "username": ADMIN, "password": PASSWORD });
    let signed_in = page_request(gateway, "", "", login).await;
    assert_eq!(signed_in.status, 200, "{}", signed_in.body);
    let cookie = signed_in.answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let renewed = page_request(gateway, "renew/", &cookie, json!({})).await;
    let page = Api::stranger(gateway).bearer(renewed.text("access"));
    assert_eq!(page.get("/api/core/health/").await.body["status"], "error");
    let path = format!("/ws/?token={}", renewed.text("access"));
    let mut socket = WebSocketClient::open(gateway.address, &path, &[]).await.unwrap();
    let signed_out = page_request(gateway, "logout/", &cookie, json!({})).await;
    assert_eq!((signed_out.status, signed_out.body), (200, json!({ "access": null })));
    assert_eq!(page.get("/api/core/health/").await.status, 401);
    assert_eq!(socket.remaining().await.1, Some(1008), "the open socket ends too");
    assert_eq!(page_request(gateway, "renew/", &cookie, json!({})).await.body, json!({ "access": null }));
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
    sign_in_to_the_page(&gateway).await;

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

/// Path of the list of the provider.
const LIST: &str = "/get.php";

/// Answers with a list of this many entries. The name of an entry takes about 100 bytes when it is compressed.
fn serve_list(provider: &Provider, n: usize) {
    let (mut random, mut list) = (Random(7), "#EXTM3U\n".to_owned());
    for number in 0..n {
        let name: String = (0..50).map(|_| format!("{:04x}", random.below(1 << 16))).collect();
        let (group, url) = (number / 200, provider.url(&format!("/{number}.ts")));
        list += &format!("#EXTINF:-1 group-title=\"Group {group}\",{name}\n{url}\n");
    }
    provider.path(LIST).answers(MockResponse::text("audio/x-mpegurl", list));
}

/// Refreshes the account with this id, and returns the result.
async fn refreshed(admin: &Api, account: &Value) -> Value {
    let path = format!("/api/m3u/refresh/{account}/");
    let started = admin.post(&path, json!({})).await;
    assert_eq!(started.status, 202, "{}", started.body);
    let mut seen = Value::Null;
    until_async("the end of the refresh", async || {
        seen = admin.get(&path).await.body;
        seen["task_id"] == started.body["task_id"] && seen["phase"] == "done"
    })
    .await;
    seen
}

// Holds T-disk.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_on_a_full_disk_is_refused_as_a_whole_and_goes_on_once_there_is_room() {
    const N: usize = 30_000;
    let disk = SmallDisk::new(64);
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    let playing = provider.playlist(&[("news", "News", NEWS)]);
    let gateway = Setup::new().list(&playing).folder(disk.path()).start().await;
    let admin = Api::first_admin(&gateway).await;
    let player = gateway.watch("News").await;
    player.sees("news").await;
    serve_list(&provider, 200);
    let body = json!({ "name": "Provider", "server_url": provider.url(LIST), "is_active": true });
    let made = admin.post("/api/m3u/accounts/", body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let account = &made.body["id"];
    let first = refreshed(&admin, account).await;
    assert_eq!((&first["outcome"], &first["good_entries"]), (&json!("success"), &json!(200)), "{first}");
    let stored = || gateway.models().store.collection::<Stream>().all().unwrap();
    let groups = async || admin.get("/api/channels/groups/").await.body["results"].clone();
    // Counts of streams follow the store.
    until_async("the account of the group", async || groups().await[0]["m3u_account_count"] == 1).await;
    let (streams_before, groups_before) = (stored(), groups().await);
    let is_unchanged = async |refresh: &Value| {
        assert_eq!(
            (&refresh["outcome"], &refresh["good_entries"]),
            (&json!("error"), &json!(200)),
            "{refresh}"
        );
        let message = refresh["message"].as_str().unwrap();
        assert!(message.contains("disk") && message.contains("free some space"), "{message}");
        assert_eq!(stored(), streams_before);
        assert_eq!(groups().await, groups_before);
    };

    // The room ends during the import.
    serve_list(&provider, N);
    let other_data = disk.available_mib() - 18;
    disk.fill(other_data);
    is_unchanged(&refreshed(&admin, account).await).await;

    // There is none from the beginning.
    let other_data = disk.fill(other_data + 4);
    assert!(disk.available_mib() < 16);
    is_unchanged(&refreshed(&admin, account).await).await;
    let (status, reason) = health(&gateway).await;
    assert!(status == 503 && reason.contains("the disk is full"), "{status} {reason}");
    let account_now = admin.get(&format!("/api/m3u/accounts/{account}/")).await.body;
    assert_eq!((&account_now["status"], &account_now["stream_count"]), (&json!("error"), &json!(200)));
    player.more_bytes(500_000).await;

    std::fs::remove_file(other_data).unwrap();
    until_async("writes to go on", async || health(&gateway).await.0 == 200).await;
    let done = refreshed(&admin, account).await;
    assert_eq!((&done["outcome"], &done["good_entries"]), (&json!("success"), &json!(N)), "{done}");
    assert_eq!(stored().len(), N + 1, "with the stream that plays");
    assert!(player.is_watching());
}

// The recording asked the provider for the channel every few seconds, and the log had 66 lines in 20 s.
// Holds T-disk.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_on_a_full_disk_leaves_the_provider_alone_and_goes_on_once_there_is_room() {
    const RECORDINGS: &str = "/api/channels/recordings/";
    let disk = SmallDisk::new(128);
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    let list = provider.playlist(&[("news", "News", NEWS)]);
    let gateway = Setup::new().list(&list).folder(disk.path()).start().await;
    let admin = Api::first_admin(&gateway).await;
    let time = |after_ms: i64| iso_millis(actors::now_ms() + after_ms);
    let channel = gateway.channel("News").id;
    let body = json!({ "channel": channel, "start_time": time(0), "end_time": time(3_600_000) });
    let made = admin.post(RECORDINGS, body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let path = format!("{RECORDINGS}{}/", made.body["id"]);
    let recording = async || admin.get(&path).await.body;
    until_async("the first packets", async || recording().await["file_size"].as_u64() > Some(200_000)).await;

    let other_data = disk.fill_up();
    until_async("the end of the connection", async || provider.open_on(NEWS) == 0).await;
    let n_asked = provider.path(NEWS).n_requests();
    assert_eq!(admin.post("/api/channels/groups/", json!({ "name": "one" })).await.status, 503);
    assert_eq!(recording().await["status"], "recording");
    std::fs::remove_file(other_data).unwrap();
    until_async("the rest of the recording", async || {
        let gap = recording().await["gaps"][0].clone();
        gap["reason"] == "the disk is full" && gap["end"].is_string()
    })
    .await;
    assert_eq!(provider.path(NEWS).n_requests(), n_asked + 1);
}
