//! Guide sources over REST, with a running gateway: from an address to programmes, events and progress.

use domain::event::EventBody;
use domain::user::UserLevel;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::fixture::guide;
use crate::support::api::{Api, PASSWORD as ADMIN_PASSWORD};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::panel::Panel;
use crate::support::upstream::{MockResponse, Provider};
use crate::support::users::create_user;
use crate::support::websocket::WebSocketClient;
use crate::support::{eventually, until_async};

pub const SOURCES: &str = "/api/epg/sources/";
const IMPORT: &str = "/api/epg/import/";
const SECRET: &str = "hunter2-guide";

pub struct GuideStory {
    pub gateway: TestGateway,
    pub admin: Api,
    pub provider: Provider,
    pub folder: TempDir,
}

impl GuideStory {
    pub async fn new() -> Self {
        Self::with_setup(tempfile::tempdir().unwrap(), Setup::new()).await
    }

    /// Stores everything in the folder instead of in memory.
    pub async fn lasting() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let setup = Setup::new().folder(folder.path());
        Self::with_setup(folder, setup).await
    }

    async fn with_setup(folder: TempDir, setup: Setup) -> Self {
        let data_dir = folder.path().to_owned();
        let gateway = setup.config(|it| it.data_dir = data_dir).start().await;
        let admin = Api::first_admin(&gateway).await;
        Self { gateway, admin, provider: Provider::start(), folder }
    }

    pub async fn standard_user(&self) -> Api {
        let user = create_user(&self.gateway, "kid", |it| it.level = UserLevel::Standard).await;
        Api::stranger(&self.gateway).key(&user.api_key)
    }

    /// Creates a source and returns its path.
    pub async fn create(&self, body: Value) -> String {
        let made = self.admin.post(SOURCES, body).await;
        assert_eq!(made.status, 201, "{made:?}");
        format!("{SOURCES}{}/", made.body["id"])
    }

    /// Waits until no refresh of the source runs; returns the source.
    pub async fn ended(&self, source: &str) -> Value {
        let mut seen = Value::Null;
        until_async("the end of the refresh", async || {
            seen = self.admin.get(source).await.body;
            !["idle", "fetching", "parsing"].contains(&seen["status"].as_str().unwrap())
        })
        .await;
        seen
    }

    /// Returns a guide with programmes around the present time.
    pub fn guide(&self, n_channels: usize) -> String {
        let now = actors::now_ms() / 1000;
        guide(n_channels, 20, now - now % 3_600)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_becomes_channels_and_programmes_and_is_reported_while_it_does() {
    let story = GuideStory::new().await;
    let path = format!("/guide.xml?key={SECRET}");
    // The server calls it something else.
    let packed = crate::import::fixture::gzip(story.guide(3).as_bytes());
    story.provider.path(&path).answers(MockResponse::text("video/mp2t", packed));
    let token = story.admin.token("root", ADMIN_PASSWORD).await.text("access").to_owned();
    let login = format!("Bearer {token}");
    let mut socket =
        WebSocketClient::open(story.gateway.address, "/ws/", &[("authorization", &login)]).await.unwrap();
    let made = story
        .admin
        .post(SOURCES, json!({ "name": "Guide", "source_type": "xmltv", "url": story.provider.url(&path) }))
        .await;
    assert_eq!(made.status, 201, "{made:?}");
    let mut expected = json!({
        "id": made.body["id"], "name": "Guide", "source_type": "xmltv", "url": story.provider.url(&path),
        "username": null, "account": null, "is_active": true, "file_path": null, "refresh_interval": 24,
        "needs_interval": false, "cron_expression": "", "priority": 0, "history_days": 7, "default_time_zone": null, "offset_minutes": 0, "status": "idle", "last_message": null, "last_message_code": null,
        "created_at": made.body["created_at"], "updated_at": null, "custom_properties": {}, "epg_data_count": 0,
        "program_count": 0, "has_channels": false,
    });
    assert_eq!(made.body, expected);
    let source = format!("{SOURCES}{}/", made.body["id"]);
    let seen = story.ended(&source).await;
    expected["status"] = "success".into();
    expected["last_message"] = "3 channels with 60 programmes. No channel uses them yet.".into();
    expected["last_message_code"] = json!({ "code": "guide_refreshed", "values": {
        "channels": "3", "programmes": "60",
        "more": { "text": "No channel uses them yet.", "code": "guide_unused", "values": {} },
    }});
    expected["updated_at"] = seen["updated_at"].clone();
    (expected["epg_data_count"], expected["program_count"]) = (3.into(), 60.into());
    assert_eq!(seen, expected);

    let done = socket.until("epg_refresh", |it| it["action"] == "done").await;
    assert_eq!((&done["status"], &done["progress"]), (&json!("success"), &json!(100)));
    assert_eq!((&done["source"], &done["programs"]), (&made.body["id"], &json!(60)));
    let event = socket.kind("epg_refreshed").await;
    for (key, value) in [
        ("event_type", json!("epg_refresh")),
        ("source_name", json!("Guide")),
        ("source_id", made.body["id"].clone()),
        ("programs", json!(60)),
        ("programs_updated", json!(60)),
        ("channels", json!(3)),
        ("skipped_programs", json!(0)),
        ("unmapped_channels", json!(3)),
        ("unchanged", json!(false)),
    ] {
        assert_eq!(event[key], value, "{key} of {event}");
    }
    assert!(!event.to_string().contains(SECRET));

    // Only admins see the whole address.
    let user = story.standard_user().await;
    let shown = user.get(&source).await;
    assert_eq!(shown.status, 200);
    assert!(!shown.body.to_string().contains(SECRET), "{shown:?}");
    assert!(shown.text("url").starts_with("http://127.0.0.1:"));
    assert_eq!(user.post(IMPORT, json!({})).await.status, 403);

    // The same guide again.
    let again = story.admin.post(IMPORT, json!({ "id": made.body["id"] })).await;
    let started = json!({ "success": true, "message": "EPG data refresh initiated." });
    assert_eq!((again.status, again.body), (202, started));
    eventually("the second refresh", || story.gateway.n_events("epg_refresh") == 2).await;
    let events = story.gateway.events();
    let last = events.iter().rev().find(|it| matches!(it.body, EventBody::EpgRefresh { .. })).unwrap();
    assert!(matches!(&last.body, EventBody::EpgRefresh { is_unchanged: true, programs_updated: 60, .. }));

    assert_eq!(story.admin.delete(&source).await.status, 204);
    assert_eq!(story.admin.get(&source).await.status, 404);
    assert!(story.gateway.models().guide_states.load().is_empty());
    assert!(story.gateway.models().guide.load().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_cannot_be_reached_says_so_without_its_address() {
    let story = GuideStory::new().await;
    let closed = crate::support::upstream::ClosedPort::new();
    let url = closed.url(&format!("/guide.xml?key={SECRET}"));
    let source = story.create(json!({ "name": "dead", "source_type": "xmltv", "url": url })).await;
    let seen = story.ended(&source).await;
    assert_eq!(seen["status"], "error");
    let message = seen["last_message"].as_str().unwrap();
    assert!(message.contains("127.0.0.1") && !message.contains(SECRET), "{message}");
    // A new address is fetched at once.
    story.provider.path("/guide.xml").answers(MockResponse::text("text/xml", story.guide(2)));
    let changed = story.admin.patch(&source, json!({ "url": story.provider.url("/guide.xml") })).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    until_async("the new guide", async || {
        let seen = story.admin.get(&source).await.body;
        seen["epg_data_count"] == 2 && seen["status"] == "success"
    })
    .await;
    let off = story.admin.patch(&source, json!({ "is_active": false })).await;
    assert_eq!(off.body["status"], "disabled", "{off:?}");
    let refused = story.admin.post(IMPORT, json!({ "id": off.body["id"] })).await;
    let body = json!({ "success": false, "message": "The guide source is not active." });
    assert_eq!((refused.status, refused.body), (400, body));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guide_of_a_panel_is_created_with_its_account_and_its_login_stays_secret() {
    let story = GuideStory::new().await;
    let panel = Panel::start("anna", SECRET);
    panel.offers(&[(7, "One")]);
    let path = format!("/xmltv.php?username=anna&password={SECRET}");
    panel.provider.path(&path).answers(MockResponse::text("text/xml", story.guide(2)));
    let account = json!({
        "name": "Panel", "account_type": "XC", "server_url": panel.url(), "username": "anna", "password": SECRET,
        "create_epg": true, "refresh_interval": 12,
    });
    let made = story.admin.post("/api/m3u/accounts/", account).await;
    assert_eq!(made.status, 201, "{made:?}");
    let sources = story.admin.get(SOURCES).await.body;
    let of_panel = &sources[0];
    assert_eq!(
        (&of_panel["source_type"], &of_panel["account"]),
        (&json!("panel"), &made.body["id"]),
        "{sources}"
    );
    assert_eq!((&of_panel["name"], &of_panel["refresh_interval"]), (&json!("Panel"), &json!(12)));
    let source = format!("{SOURCES}{}/", of_panel["id"]);
    let seen = story.ended(&source).await;
    assert_eq!((&seen["status"], &seen["epg_data_count"]), (&json!("success"), &json!(2)), "{seen}");
    assert!(!seen.to_string().contains(SECRET), "{seen}");
    // Once per account.
    let one = format!("/api/m3u/accounts/{}/", made.body["id"]);
    assert_eq!(story.admin.patch(&one, json!({ "create_epg": true })).await.status, 200);
    assert_eq!(story.admin.get(SOURCES).await.body.as_array().unwrap().len(), 1);
    let plain = story.admin.post("/api/m3u/accounts/", json!({ "name": "plain", "create_epg": true })).await;
    assert_eq!(plain.status, 400, "{plain:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_playlist_that_names_guides_offers_them_to_admins() {
    let story = GuideStory::new().await;
    let url = format!("http://guide.example/guide.xml?key={SECRET}");
    let list = format!(
        "#EXTM3U url-tvg=\"{url}\" x-tvg-url=\"{url},http://other.example/b.xml\"\n#EXTINF:-1,A\nhttp://h/a\n"
    );
    story.provider.path("/list.m3u").answers(MockResponse::text("audio/x-mpegurl", list));
    let account = json!({ "name": "list", "server_url": story.provider.url("/list.m3u") });
    let made = story.admin.post("/api/m3u/accounts/", account).await;
    let one = format!("/api/m3u/accounts/{}/", made.body["id"]);
    let urls = json!([url, "http://other.example/b.xml"]);
    until_async("the addresses of guides", async || story.admin.get(&one).await.body["epg_urls"] == urls)
        .await;
    let user = story.standard_user().await;
    assert_eq!(user.get(&one).await.body["epg_urls"], json!([]));
    assert_eq!(story.admin.get(SOURCES).await.body, json!([]), "nothing is created without an admin");
}

/// A server that sends the first half of its answer, and the rest when the test lets it.
struct HalvedAnswer {
    url: String,
    /// Becomes ready with the request.
    asked: oneshot::Receiver<()>,
    rest: oneshot::Sender<()>,
}

impl HalvedAnswer {
    async fn serve(body: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/guide.xml", listener.local_addr().unwrap());
        let ((asking, asked), (rest, waiting)) = (oneshot::channel(), oneshot::channel());
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.unwrap());
            }
            let (first, second) = body.split_at(body.len() / 2);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            socket.write_all(format!("{head}{first}").as_bytes()).await.unwrap();
            asking.send(()).unwrap();
            waiting.await.unwrap();
            socket.write_all(second.as_bytes()).await.unwrap();
        });
        Self { url, asked, rest }
    }
}

/// Holds T-epg.5. Each channel gets its guide in another way while the guide is on its way: a link, a guide id that only the
/// new guide has, and a link in a list of several.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_gets_its_guide_channel_during_a_refresh_has_its_programmes_afterwards() {
    let story = GuideStory::new().await;
    story.provider.path("/guide.xml").answers(MockResponse::text("text/xml", story.guide(3)));
    let url = story.provider.url("/guide.xml");
    let source = story.create(json!({ "name": "Guide", "source_type": "xmltv", "url": url })).await;
    assert_eq!(story.ended(&source).await["status"], "success");
    let mut channels = Vec::new();
    for name in ["Linked", "Named", "Listed"] {
        let made = story.admin.post("/api/channels/channels/", json!({ "name": name })).await;
        assert_eq!(made.status, 201, "{made:?}");
        channels.push(made.body["id"].clone());
    }
    let known = story.admin.get("/api/epg/epgdata/").await.body;
    let id_of = |key: &str| {
        let mut known = known.as_array().unwrap().iter();
        known.find(|it| it["tvg_id"] == key).expect("the guide names it")["id"].clone()
    };

    let halved = HalvedAnswer::serve(story.guide(4).replace("Show", "Film")).await;
    let changed = story.admin.patch(&source, json!({ "url": halved.url })).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    halved.asked.await.expect("the guide is requested");
    let set = format!("/api/channels/channels/{}/set-epg/", channels[0]);
    let linked = story.admin.post(&set, json!({ "epg_data_id": id_of("c1") })).await;
    assert_eq!(linked.status, 200, "{linked:?}");
    let named = format!("/api/channels/channels/{}/", channels[1]);
    let named = story.admin.patch(&named, json!({ "tvg_id": "c3" })).await;
    assert_eq!(named.status, 200, "{named:?}");
    let links = json!({ "associations": [{ "channel_id": channels[2], "epg_data_id": id_of("c2") }] });
    let listed = story.admin.post("/api/channels/channels/batch-set-epg/", links).await;
    assert_eq!(listed.status, 200, "{listed:?}");
    let titles = async || {
        let grid = story.admin.get("/api/epg/grid/").await.body;
        let rows = grid["data"].as_array().unwrap().clone();
        let row = |it: &Value| (it["channel_ids"].clone(), it["title"].as_str().unwrap().to_owned());
        rows.iter().map(row).collect::<Vec<_>>()
    };
    let before = titles().await;
    assert!(!before.is_empty() && before.iter().all(|it| it.1.starts_with("Show")), "{before:?}");

    halved.rest.send(()).unwrap();
    until_async("the new guide of all channels", async || {
        let after = titles().await;
        let n_new = after.iter().filter(|it| it.1.starts_with("Film")).count();
        assert!([0, after.len()].contains(&n_new), "one guide and not two: {after:?}");
        let has = |(channel, number): (&Value, u32)| {
            let mut of_channel = after.iter().filter(|it| it.0 == json!([channel])).peekable();
            let end = format!(" of {number}");
            of_channel.peek().is_some() && of_channel.all(|it| it.1.ends_with(&end))
        };
        n_new > 0 && channels.iter().zip([1, 3, 2]).all(has)
    })
    .await;
}
