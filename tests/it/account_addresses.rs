//! Several servers of one account: when one is dead, the next one is used for all streams and lists, and this is
//! remembered.

use std::path::Path;

use actors::now_ms;
use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::account_addresses::{AddressFailure, AddressRecord, RETURN_TIME_MS};
use domain::ids::{AccountId, ProfileId};
use domain::source_url::SourceUrl;
use serde_json::{Value, json};

use crate::guide::fixture::guide;
use crate::support::api::Api;
use crate::support::client::{Player, Request, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::until_async;
use crate::support::upstream::{MockResponse, Provider};

const LIST: &str = "/get.php?username=anna&password=hunter2-kept";
const GUIDE: &str = "/xmltv.php?username=anna&password=hunter2-kept";
const LOGO: &str = "/logo.png";
/// The begin of the logo of each server.
const PNG: &str = "\u{89}PNG\r\n\u{1a}\n";

struct Fixture {
    first: Provider,
    second: Provider,
    gateway: TestGateway,
    admin: Api,
    account: String,
}

/// Offers two streams, which the list names at the server that sends it.
fn offer(provider: &Provider, label: &str) {
    let mut list = "#EXTM3U\n".to_owned();
    for name in ["One", "Two"] {
        let path = format!("/live/anna/hunter2-kept/{name}.ts");
        provider.path(&path).plays(Picture::new(&format!("{label} {name}")));
        let logo = provider.url(LOGO);
        list += &format!("#EXTINF:-1 tvg-logo=\"{logo}\",{name}\n{}\n", provider.url(&path));
    }
    let logo: Vec<u8> = PNG.chars().map(|it| it as u8).chain(label.bytes()).collect();
    provider.path(LOGO).answers(MockResponse::text("image/png", logo));
    let guide = guide(2, 20, now_ms() / 1000);
    provider.path(GUIDE).answers(MockResponse::text("text/xml", guide));
    provider.path(LIST).answers(MockResponse::text("audio/x-mpegurl", list));
}

impl Fixture {
    async fn new() -> Fixture {
        let (first, second) = (Provider::start(), Provider::start());
        offer(&first, "first");
        offer(&second, "second");
        let gateway = Setup::new().start().await;
        let admin = Api::first_admin(&gateway).await;
        let made = admin
            .post(
                "/api/m3u/accounts/",
                json!({
                    "name": "Provider", "server_url": first.url(LIST), "max_streams": 1,
                    "further_addresses": [second.url("")],
                }),
            )
            .await;
        assert_eq!(made.status, 201, "{made:?}");
        let account = format!("/api/m3u/accounts/{}/", made.body["id"]);
        let fixture = Fixture { first, second, gateway, admin, account };
        assert_eq!(fixture.ended().await["status"], "success");
        fixture
    }

    async fn ended(&self) -> Value {
        let mut seen = Value::Null;
        until_async("the end of the refresh", async || {
            seen = self.admin.get(&self.account).await.body;
            !["idle", "fetching", "parsing"].contains(&seen["status"].as_str().unwrap_or("idle"))
        })
        .await;
        seen
    }

    async fn refreshed(&self) -> Value {
        let begun = self.admin.post(&self.account.replace("accounts", "refresh"), json!({})).await;
        assert_eq!(begun.status, 202, "{begun:?}");
        self.ended().await
    }

    async fn channel(&self, stream: &str) -> String {
        let all = self.admin.get("/api/channels/streams/?ordering=id").await.body;
        let found = all["results"].as_array().and_then(|it| it.iter().find(|it| it["name"] == stream));
        let id = found.unwrap_or_else(|| panic!("{all}"))["id"].clone();
        let made = self.admin.post("/api/channels/channels/from-stream/", json!({ "stream_id": id })).await;
        format!("/proxy/ts/stream/{}", made.text("uuid"))
    }

    async fn sees(&self, path: &str, picture: &str) {
        let player = Player::watch(self.gateway.address, path).await;
        player.sees(picture).await;
        player.leave().await;
        self.gateway.until_idle().await;
    }

    async fn uses(&self, provider: &Provider) {
        let expected = json!(provider.url(""));
        until_async("the address in use", async || {
            self.admin.get(&self.account).await.body["active_address"] == expected
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_streams_and_lists_move_to_the_next_server_and_back() {
    let fixture = Fixture::new().await;
    let Fixture { first, second, gateway, admin, account } = &fixture;
    let (one, two) = (fixture.channel("One").await, fixture.channel("Two").await);
    fixture.sees(&one, "first One").await;
    let ids =
        |it: Value| it["results"].as_array().unwrap().iter().map(|it| it["id"].clone()).collect::<Vec<_>>();
    let streams = ids(admin.get("/api/channels/streams/?ordering=id").await.body);

    // While a viewer watches: the same response goes on.
    let player = Player::watch(gateway.address, &one).await;
    player.sees("first One").await;
    first.unplug().await;
    player.sees("second One").await;
    assert!(player.is_watching());
    player.leave().await;
    gateway.until_idle().await;
    fixture.uses(second).await;
    let seen = admin.get(account).await.body;
    assert_eq!(seen["active_address_cause"], "connect", "{seen}");
    let health = admin.get("/api/core/health/").await.body;
    let problems = health["problems"].as_array().unwrap();
    assert!(problems.iter().any(|it| it["kind"] == "account_address"), "{health}");

    // Another channel does not try the dead server at all.
    fixture.sees(&two, "second Two").await;
    assert_eq!(second.peak(), 1, "one connection at a time");

    let seen = fixture.refreshed().await;
    assert_eq!((&seen["status"], &seen["stale_stream_count"]), (&json!("success"), &json!(0)), "{seen}");
    assert_eq!(ids(admin.get("/api/channels/streams/?ordering=id").await.body), streams);
    assert_eq!(second.path(LIST).n_requests(), 1);

    // The first server is not asked again at once.
    first.plug_in();
    fixture.refreshed().await;
    fixture.uses(second).await;
    let id: u32 = account.trim_end_matches('/').rsplit('/').next().unwrap().parse().unwrap();
    gateway
        .change(move |write| {
            let mut record = write.get::<AddressRecord>(id)?.expect("a record");
            for failure in &mut record.failures {
                failure.at -= RETURN_TIME_MS;
            }
            write.put(&record)
        })
        .await;
    assert_eq!(fixture.refreshed().await["status"], "success");
    fixture.uses(first).await;
    fixture.sees(&two, "first Two").await;
    let health = admin.get("/api/core/health/").await.body;
    assert!(!health.to_string().contains("account_address"), "{health}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_list_server_moves_the_streams_and_an_admin_returns_to_the_first_server() {
    let fixture = Fixture::new().await;
    let Fixture { first, second, admin, account, .. } = &fixture;
    let one = fixture.channel("One").await;
    first.unplug().await;
    assert_eq!(fixture.refreshed().await["status"], "success");
    fixture.uses(second).await;
    first.plug_in();
    fixture.sees(&one, "second One").await;
    assert_eq!(admin.patch(account, json!({ "use_first_address": true })).await.status, 200);
    fixture.uses(first).await;
    fixture.sees(&one, "first One").await;
    // A list that cannot be found says nothing about the server.
    first.path(LIST).answers(MockResponse::status(404));
    assert_eq!(fixture.refreshed().await["status"], "error");
    fixture.uses(first).await;
    // An overloaded one does.
    first.path(LIST).answers(MockResponse::status(503));
    assert_eq!(fixture.refreshed().await["status"], "success");
    fixture.uses(second).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guides_and_logos_follow_the_account_to_the_next_server_and_a_flap_does_not_lead_back() {
    let fixture = Fixture::new().await;
    let Fixture { first, second, gateway, admin, .. } = &fixture;
    let one = fixture.channel("One").await;
    let body = json!({ "name": "Guide", "source_type": "xmltv", "url": first.url(GUIDE) });
    let made = admin.post("/api/epg/sources/", body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let source = format!("/api/epg/sources/{}/", made.body["id"]);
    let ended = async || {
        let mut seen = Value::Null;
        until_async("the end of the refresh of the guide", async || {
            seen = admin.get(&source).await.body;
            !["idle", "fetching", "parsing"].contains(&seen["status"].as_str().unwrap_or("idle"))
        })
        .await;
        seen
    };
    let refreshed = async || {
        let asked = admin.post("/api/epg/import/", json!({ "id": made.body["id"] })).await;
        assert_eq!(asked.status, 202, "{asked:?}");
        ended().await
    };
    assert_eq!(ended().await["status"], "success");
    assert_eq!((first.path(GUIDE).n_requests(), second.path(GUIDE).n_requests()), (1, 0));

    // A guide that is missing, or too much for a server, says nothing about the server.
    for status in [404, 503] {
        first.path(GUIDE).answers(MockResponse::status(status));
        assert_eq!(refreshed().await["status"], "error");
        fixture.uses(first).await;
    }

    // Nobody watches, so the guide is the first to find the server dead.
    first.unplug().await;
    let seen = refreshed().await;
    assert_eq!(seen["status"], "success", "{seen}");
    assert_eq!(second.path(GUIDE).n_requests(), 1);
    fixture.uses(second).await;
    first.plug_in();
    let n_before = first.accepted();
    fixture.sees(&one, "second One").await;
    until_async("the logo", async || {
        let Some(id) = admin.first_id("/api/channels/logos/").await else { return false };
        let copy = fetch(gateway.api, Request::get(format!("/api/channels/logos/{id}/cache/"))).await;
        copy.bytes.ends_with(b"second")
    })
    .await;

    // The second server is out of reach for a moment: nothing returns to the first one so soon.
    second.unplug().await;
    assert_eq!(refreshed().await["status"], "error");
    second.plug_in();
    fixture.uses(second).await;
    assert_eq!(refreshed().await["status"], "success");
    fixture.sees(&one, "second One").await;
    assert_eq!(first.accepted(), n_before, "the first server is not asked at all");
}

/// Opens a store as a restarted gateway does, and returns the address record of the account.
fn stored(folder: &Path, account: u32) -> Option<AddressRecord> {
    let (store, key) = (folder.join("store"), folder.join("key"));
    let store = storage::Store::open(&store, &key, storage::records::schema()).expect("a store");
    let record = store.collection::<AddressRecord>().get(account).expect("the record is readable");
    store.close();
    record
}

#[test]
fn the_address_in_use_survives_a_restart_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    std::fs::create_dir_all(&path).unwrap();
    let store = storage::Store::open(&path, &folder.path().join("key"), storage::records::schema()).unwrap();
    let profile = AccountProfile::default_of(ProfileId(2), "Default", 0);
    let list = PlaylistLocation::Url(SourceUrl::new("http://a.invalid/list"));
    let account = Account::new(AccountId(2), "a", list, profile, 0);
    let mut record = AddressRecord::new(AccountId(2));
    record.active = Some(SourceUrl::new("http://b.invalid"));
    record.failures.push(AddressFailure { address: SourceUrl::new("http://a.invalid"), at: 1 });
    let written = record.clone();
    store
        .write_blocking(move |write| {
            write.put(&account)?;
            write.put(&written)
        })
        .unwrap_or_else(|error: storage::Error| panic!("{error}"));
    store.close();
    drop(store);
    assert_eq!(stored(folder.path(), 2), Some(record));
}
