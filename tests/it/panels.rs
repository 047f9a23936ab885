//! Panel accounts: from the login at a panel to a picture, and what happens when the panel lies.

use std::time::{SystemTime, UNIX_EPOCH};

use actors::now_ms;
use domain::event::EventBody;
use domain::time::iso_millis;
use domain::user::UserLevel;
use serde_json::{Value, json};

use crate::support::api::{Api, ApiReply};
use crate::support::client::{Player, Request};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::panel::{Panel, listed};
use crate::support::signal::Picture;
use crate::support::upstream::{Cut, MockResponse, Provider};
use crate::support::users::create_user;
use crate::support::{eventually, until_async};

const ACCOUNTS: &str = "/api/m3u/accounts/";
const STREAMS: &str = "/api/channels/streams/?ordering=id";
const USER: &str = "anna-at-panel";
const PASSWORD: &str = "hunter2-kept";

struct PanelFixture {
    panel: Panel,
    gateway: TestGateway,
    admin: Api,
}

impl PanelFixture {
    async fn new() -> PanelFixture {
        let panel = Panel::start(USER, PASSWORD);
        panel.offers(&[(7, "One"), (8, "Two")]);
        let gateway = Setup::new().start().await;
        let admin = Api::first_admin(&gateway).await;
        PanelFixture { panel, gateway, admin }
    }

    /// Creates an account and waits for the end of its first refresh; returns its path.
    async fn account(&self, more: Value) -> String {
        let mut body = json!({
            "name": "Panel", "account_type": "XC", "server_url": self.panel.url(), "username": USER,
            "password": PASSWORD,
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let made = self.admin.post(ACCOUNTS, body).await;
        assert_eq!(made.status, 201, "{made:?}");
        let path = format!("{ACCOUNTS}{}/", made.body["id"]);
        self.ended(&path).await;
        path
    }

    /// Waits until no refresh of the account runs; returns the account.
    async fn ended(&self, account: &str) -> Value {
        let mut seen = Value::Null;
        until_async("the end of the refresh", async || {
            seen = self.admin.get(account).await.body;
            !["idle", "fetching", "parsing"].contains(&seen["status"].as_str().unwrap())
        })
        .await;
        seen
    }

    async fn refreshed(&self, account: &str) -> Value {
        let begun = self.admin.post(&account.replace("accounts", "refresh"), json!({})).await;
        assert_eq!(begun.status, 202, "{begun:?}");
        self.ended(account).await
    }

    async fn streams(&self) -> Vec<Value> {
        let listed = self.admin.get(STREAMS).await;
        listed.body["results"].as_array().unwrap_or_else(|| panic!("{listed:?}")).clone()
    }

    async fn channel_from(&self, stream: &Value) -> String {
        let made = self
            .admin
            .post("/api/channels/channels/from-stream/", json!({ "stream_id": stream["id"] }))
            .await;
        assert_eq!(made.status, 201, "{made:?}");
        format!("/proxy/ts/stream/{}", made.text("uuid"))
    }

    async fn watch(&self, path: &str) -> Player {
        Player::watch(self.gateway.address, path).await
    }
}

fn names(streams: &[Value]) -> Vec<&str> {
    streams.iter().map(|it| it["name"].as_str().unwrap()).collect()
}

fn in_days(days: u64) -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + days * 24 * 3600
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_of_a_panel_becomes_channels_that_play() {
    let fixture = PanelFixture::new().await;
    fixture.panel.account(json!({ "exp_date": "1893456000", "max_connections": "1" }));
    // As it is pasted.
    let account =
        fixture.account(json!({ "server_url": format!("{}/player_api.php", fixture.panel.url()) })).await;
    let seen = fixture.admin.get(&account).await.body;
    assert_eq!((&seen["status"], &seen["account_type"]), (&json!("success"), &json!("XC")), "{seen}");
    assert_eq!((&seen["server_url"], &seen["username"]), (&json!(fixture.panel.url()), &json!(USER)));
    assert_eq!((&seen["password"], &seen["stream_count"]), (&Value::Null, &json!(2)));
    let end = json!("2030-01-01T00:00:00.000Z");
    assert_eq!((&seen["exp_date"], &seen["earliest_expiration"]), (&end, &end));
    let profile = &seen["profiles"][0];
    let expirations = json!([
        { "profile_id": profile["id"], "profile_name": "Default", "exp_date": end, "is_active": true }
    ]);
    assert_eq!(seen["all_expirations"], expirations);
    assert_eq!((&profile["max_streams"], &profile["panel_max_streams"]), (&json!(0), &json!(1)));
    assert_eq!((&profile["login_state"], &profile["login_error"]), (&json!("active"), &Value::Null));
    assert_eq!(profile["custom_properties"]["user_info"]["status"], "Active");
    assert_eq!(profile["custom_properties"]["server_info"]["timezone"], "Europe/Paris");
    assert!(!seen.to_string().contains(PASSWORD), "{seen}");

    let streams = fixture.streams().await;
    assert_eq!(names(&streams), ["One", "Two"]);
    let one = &streams[0];
    assert_eq!(one["url"], fixture.panel.provider.url(&fixture.panel.stream(7)));
    assert_eq!((&one["channel_group_name"], &one["tvg_id"]), (&json!("News"), &json!("7.example")));
    assert_eq!((&one["stream_chno"], &one["content_type"]), (&json!(7), &json!("live")));
    let path = fixture.channel_from(one).await;
    let other = fixture.channel_from(&streams[1]).await;
    let player = fixture.watch(&path).await;
    player.sees("One").await;
    // The panel allows one connection.
    assert_eq!(fixture.watch(&other).await.status().await, 503);
    let changed = fixture.admin.patch(&account, json!({ "max_streams": 2 })).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    fixture.watch(&other).await.sees("Two").await;
    drop(player);
    fixture.gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_a_panel_keep_their_ids_and_edits_after_a_change_of_password_and_host() {
    let mut fixture = PanelFixture::new().await;
    let account = fixture.account(json!({})).await;
    let before = fixture.streams().await;
    let edited = format!("/api/channels/streams/{}/", before[1]["id"]);
    assert_eq!(fixture.admin.patch(&edited, json!({ "name": "My Two" })).await.status, 200);
    let path = fixture.channel_from(&before[0]).await;

    fixture.panel.change_password("second");
    fixture.panel.offers(&[(7, "One HD"), (8, "Two")]);
    let failed = fixture.refreshed(&account).await;
    assert_eq!(failed["status"], "error");
    assert_eq!(failed["last_message"], "The panel refuses the user name or the password.");
    assert_eq!(failed["profiles"][0]["login_state"], "refused");
    let host = fixture.panel.url().replace("127.0.0.1", "localhost");
    let changed = fixture.admin.patch(&account, json!({ "password": "second", "server_url": host })).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    until_async("the streams of the new login", async || {
        names(&fixture.streams().await) == ["One HD", "My Two"]
    })
    .await;
    let after = fixture.streams().await;
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((&before["id"], &before["stream_hash"]), (&after["id"], &after["stream_hash"]));
        assert!(after["url"].as_str().unwrap().contains("/second/"), "{after}");
    }
    fixture.watch(&path).await.sees("One HD").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_lie_of_a_panel_leaves_the_former_streams_and_is_told() {
    let fixture = PanelFixture::new().await;
    let account = fixture.account(json!({})).await;
    let before = fixture.streams().await;
    assert_eq!(names(&before), ["One", "Two"]);
    let text = |it: &str| MockResponse::text("application/json", it);
    let whole = json!([listed(7, "One"), listed(8, "Two")]).to_string();
    let status = |it: &str| text(&json!({ "user_info": { "auth": 1, "status": it } }).to_string());
    let refused = text(&json!({ "user_info": { "auth": 0 } }).to_string());
    let cases = [
        ("", status("Expired"), "The panel says that the account has expired."),
        ("", status("Banned"), "The panel says that the account is banned."),
        ("", status("Disabled"), "The panel says that the account is disabled."),
        ("", refused.clone(), "The panel refuses the user name or the password."),
        ("", MockResponse::html(), "The panel sent a web page instead of its list."),
        ("", text("{\"user_info\":{"), "The answer of the panel is cut off, or is not valid JSON."),
        ("", text("[]"), "The server does not answer like a panel; check its address."),
        ("", text(&" ".repeat(300 * 1024)), "The answer of the panel about the account is too long."),
        ("", MockResponse::status(403), "\"127.0.0.1\" answered 403 Forbidden."),
        (
            "get_live_categories",
            MockResponse::html(),
            "The panel sent a web page instead of its list of categories.",
        ),
        ("get_live_categories", text("[{"), "The panel's list of categories is cut off."),
        ("get_live_categories", text("[]"), "The panel lists no categories, although its streams have some."),
        (
            "get_live_streams",
            MockResponse::html(),
            "The panel sent a web page instead of its list of streams.",
        ),
        ("get_live_streams", text(""), "The panel sent an empty answer of streams."),
        ("get_live_streams", text("null"), "The panel sent something else instead of its list of streams."),
        ("get_live_streams", text(&whole[..whole.len() - 9]), "The panel's list of streams is cut off."),
        ("get_live_streams", text("[]"), "The playlist has no entries."),
        ("get_live_streams", text("[7, null, {\"name\": \"x\"}]"), "The playlist has no entries."),
        ("get_live_streams", refused, "The panel refuses to list its streams for this login."),
        ("get_live_streams", text(&whole).until(40, Cut::End), "Failed to fetch from \"127.0.0.1\""),
    ];
    for (action, lie, reason) in cases {
        fixture.panel.is_valid();
        fixture.panel.offers(&[(7, "One"), (8, "Two")]);
        fixture.panel.answers(action, lie);
        let seen = fixture.refreshed(&account).await;
        let message = seen["last_message"].as_str().unwrap();
        assert!(seen["status"] == "error" && message.starts_with(reason), "{action}, {reason}: {message}");
        assert_eq!(fixture.streams().await, before, "{reason}");
    }
    // One element that cannot be read is a problem of its own.
    fixture.panel.offers(&[(7, "One"), (8, "Two")]);
    let lists = json!({ "0": listed(7, "One"), "3": "oops", "4": listed(8, "Two") });
    fixture.panel.says("get_live_streams", &lists);
    let seen = fixture.refreshed(&account).await;
    let message = seen["last_message"].as_str().unwrap();
    assert_eq!(seen["status"], "success", "{message}");
    assert!(message.ends_with("1 problems; stream 2 was left out: it is not a JSON object."), "{message}");
    assert_eq!(names(&fixture.streams().await), ["One", "Two"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_login_is_told_once() {
    let fixture = PanelFixture::new().await;
    fixture.panel.account(json!({ "exp_date": in_days(3) }));
    let account = fixture.account(json!({})).await;
    let told = || fixture.gateway.n_events("account_expiring");
    eventually("the notice", || told() == 1).await;
    let events = fixture.gateway.events();
    let event = events.iter().find(|it| it.body.name() == "account_expiring").unwrap();
    let EventBody::AccountExpiring { account: of, days, profile_name, .. } = &event.body else { panic!() };
    assert_eq!((of.name.as_str(), *days, profile_name.as_str()), ("Panel", 7, "Default"));
    for _ in 0..2 {
        fixture.refreshed(&account).await;
    }
    let seen = fixture.admin.get("/api/core/system-events/?event_type=account_expiring").await;
    assert_eq!(seen.body["events"].as_array().unwrap().len(), 1, "{seen:?}");
    assert_eq!(seen.body["events"][0]["details"]["days"], 7);

    // The last day is another notice.
    fixture.panel.account(json!({ "exp_date": in_days(0) + 3600 }));
    let profile = fixture.admin.get(&account).await.body["profiles"][0]["id"].clone();
    let check = format!("/api/m3u/refresh-account-info/{profile}/");
    let begun = fixture.admin.post(&check, json!({})).await;
    assert_eq!((begun.status, &begun.body["success"]), (202, &json!(true)), "{begun:?}");
    eventually("the second notice", || told() == 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_account_of_a_user_is_told_once() {
    let fixture = PanelFixture::new().await;
    let end = iso_millis(now_ms() + 3 * 86_400_000);
    let user = json!({ "username": "berta", "password": "x", "user_level": 0, "exp_date": end });
    assert_eq!(fixture.admin.post("/api/accounts/users/", user).await.status, 201);
    let account = fixture.account(json!({})).await;
    eventually("the notice", || fixture.gateway.n_events("user_expiring") == 1).await;
    let events = fixture.gateway.events();
    let event = events.iter().find(|it| it.body.name() == "user_expiring").unwrap();
    let EventBody::UserExpiring { username, days, .. } = &event.body else { panic!() };
    assert_eq!((username.as_str(), *days), ("berta", 7));
    for _ in 0..2 {
        fixture.refreshed(&account).await;
    }
    assert_eq!(fixture.gateway.n_events("user_expiring"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_account_information_of_every_profile_is_kept_and_can_be_asked_for() {
    let fixture = PanelFixture::new().await;
    let account = fixture.account(json!({})).await;
    let other = Panel::start("bert", "second");
    other.account(json!({ "exp_date": 1_893_456_000, "max_connections": 4 }));
    let patterns = json!({
        "name": "Bert", "search_pattern": format!("{}/live/{USER}/{PASSWORD}/", fixture.panel.url()),
        "replace_pattern": format!("{}/live/bert/second/", other.url()),
    });
    let made = fixture.admin.post(&format!("{account}profiles/"), patterns).await;
    assert_eq!(made.status, 201, "{made:?}");
    let profile = format!("{account}profiles/{}/", made.body["id"]);
    let check = format!("/api/m3u/refresh-account-info/{}/", made.body["id"]);
    let begun = fixture.admin.post(&check, json!({})).await;
    assert_eq!(begun.status, 202, "{begun:?}");
    let mut seen = Value::Null;
    until_async("the answer", async || {
        seen = fixture.admin.get(&profile).await.body;
        seen["login_state"] == "active"
    })
    .await;
    assert_eq!(
        (&seen["panel_max_streams"], &seen["exp_date"]),
        (&json!(4), &json!("2030-01-01T00:00:00.000Z"))
    );
    assert_eq!(other.n_questions(""), 1);
    // Clients send the answer back with their own data.
    let sent = json!({ "custom_properties": seen["custom_properties"] });
    let changed = fixture.admin.patch(&profile, sent).await;
    assert_eq!(changed.body["custom_properties"], seen["custom_properties"]);

    let list = fixture.admin.post(ACCOUNTS, json!({ "name": "List" })).await.body;
    for (id, status) in [(json!(9999), 404), (list["profiles"][0]["id"].clone(), 400)] {
        let refused = fixture.admin.post(&format!("/api/m3u/refresh-account-info/{id}/"), json!({})).await;
        assert_eq!(refused.status, status, "{refused:?}");
    }
}

/// Returns the ends of the addresses at which a live stream was asked for, in order.
fn forms_of(panel: &Panel, id: u32) -> Vec<String> {
    let start = format!("/live/{USER}/{PASSWORD}/{id}");
    let requests = panel.provider.requests().into_iter();
    requests.filter_map(|it| Some(it.path.strip_prefix(&start)?.to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panel_that_serves_other_addresses_is_found_out_once_a_day_and_remembered() {
    let fixture = PanelFixture::new().await;
    let panel = &fixture.panel;
    panel.offers(&[(7, "One"), (8, "Two"), (9, "Off air")]);
    for (id, name) in [(7, "One"), (8, "Two"), (9, "Off air")] {
        let address = panel.stream(id);
        let other = address.trim_end_matches(".ts");
        panel.provider.path(&address).answers(MockResponse::status(404));
        match name {
            "Off air" => panel.provider.path(other).answers(MockResponse::status(404)),
            _ => panel.provider.path(other).plays(Picture::new(name)),
        };
    }
    let account = fixture.account(json!({})).await;
    let mut paths = Vec::new();
    for stream in fixture.streams().await {
        assert!(stream["url"].as_str().unwrap().ends_with(".ts"), "{stream}");
        paths.push(fixture.channel_from(&stream).await);
    }
    let is_in_use = async |form: &str, source: &str| {
        until_async("the form in use", async || {
            let seen = fixture.admin.get(&account).await.body;
            seen["live_form_in_use"] == form && seen["live_form_source"] == source
        })
        .await;
    };
    let sees = async |path: &str, picture: &str| {
        let player = fixture.watch(path).await;
        player.sees(picture).await;
        player.leave().await;
        fixture.gateway.until_idle().await;
    };
    is_in_use("ts", "login").await;
    sees(&paths[0], "One").await;
    assert_eq!(forms_of(panel, 7), [".ts", ""]);
    assert_eq!(panel.provider.peak(), 1, "one connection at a time");
    is_in_use("none", "found").await;

    // It is known for the other streams, and a stream that is off air costs one request.
    sees(&paths[1], "Two").await;
    assert_eq!(forms_of(panel, 8), [""]);
    let refused = fixture.watch(&paths[2]).await;
    assert!(refused.status().await >= 400);
    fixture.gateway.until_idle().await;
    assert_eq!(forms_of(panel, 9), [""]);

    // An admin decides otherwise.
    let change = async |form: &str| {
        panel.provider.forget();
        let changed = fixture.admin.patch(&account, json!({ "live_form": form })).await;
        assert_eq!(changed.status, 200, "{changed:?}");
    };
    change("ts").await;
    is_in_use("ts", "setting").await;
    assert!(fixture.watch(&paths[0]).await.status().await >= 400);
    fixture.gateway.until_idle().await;
    assert_eq!(forms_of(panel, 7), [".ts"]);
    change("auto").await;
    is_in_use("ts", "login").await;
    sees(&paths[1], "Two").await;
    assert_eq!(forms_of(panel, 8), [".ts", ""]);
    is_in_use("none", "found").await;

    // The panel changes, and says so.
    panel.account(json!({ "allowed_output_formats": ["m3u8", "rtmp"] }));
    let list = panel.stream(7).replace(".ts", ".m3u8");
    panel.provider.path(&list).plays(Picture::new("One in a list"));
    fixture.refreshed(&account).await;
    is_in_use("m3u8", "login").await;
    panel.provider.forget();
    sees(&paths[0], "One in a list").await;
    assert_eq!(forms_of(panel, 7), [".m3u8"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_admins_see_the_login_at_a_panel() {
    let fixture = PanelFixture::new().await;
    let account = fixture.account(json!({})).await;
    let id = account.trim_start_matches(ACCOUNTS).trim_end_matches('/').to_owned();
    fixture.panel.answers("get_live_streams", MockResponse::html());
    fixture.refreshed(&account).await;
    let user = create_user(&fixture.gateway, "standard", |it| it.level = UserLevel::Standard).await;
    let standard = fixture.admin.without_credentials().key(&user.api_key);
    let profiles = format!("{account}profiles/");
    let refresh = format!("/api/m3u/refresh/{id}/");
    let mut told = 0;
    for path in [ACCOUNTS, &account, &profiles, &refresh, "/api/m3u/refresh/", STREAMS] {
        let ApiReply { status, body, .. } = standard.get(path).await;
        let text = body.to_string();
        assert!(!text.contains(USER) && !text.contains(PASSWORD), "{path}: {text}");
        told += usize::from(status == 200 && text.contains("Panel"));
    }
    assert!(told >= 4);
    let events: Vec<String> = fixture.gateway.events().iter().map(|it| format!("{it:?}")).collect();
    assert!(!events.concat().contains(PASSWORD));
}

const BOUNDARY: &str = "multipart/form-data; boundary=XX";

/// Returns a multipart body with fields and a playlist.
fn multipart(fields: &[(&str, &str)], list: &str) -> String {
    let field = |(name, value): &(&str, &str)| {
        format!("--XX\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let file = "--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"list.m3u\"\r\n\r\n";
    fields.iter().map(field).collect::<String>() + file + list + "\r\n--XX--\r\n"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uploaded_playlist_is_imported_like_one_from_the_internet_and_removed_with_its_account() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_owned();
    let gateway = Setup::new().config(|it| it.data_dir = data.clone()).start().await;
    let admin = Api::first_admin(&gateway).await;
    let panel = Panel::start(USER, PASSWORD);
    let fixture = PanelFixture { panel, gateway, admin };
    let files = || match std::fs::read_dir(data.join("uploads/playlists")) {
        Ok(files) => files.count(),
        Err(_) => 0,
    };
    let list =
        "#EXTM3U\n#EXTINF:-1,One\nhttp://127.0.0.1:9/live/u/p/1.ts\n#EXTINF:-1,Film\nfile:///etc/passwd\n";
    let body = multipart(&[("name", "Uploaded"), ("max_streams", "2"), ("is_active", "true")], list);
    let made = fixture.admin.ask(Request::get(ACCOUNTS).method("POST").body(BOUNDARY, body)).await;
    assert_eq!((made.status, &made.body["max_streams"]), (201, &json!(2)), "{made:?}");
    let account = format!("{ACCOUNTS}{}/", made.body["id"]);
    let seen = fixture.ended(&account).await;
    assert_eq!(
        (&seen["status"], &seen["stream_count"], files()),
        (&json!("success"), &json!(1), 1),
        "{seen}"
    );
    assert!(seen["last_message"].as_str().unwrap().contains("1 problems"), "{seen}");
    assert!(seen["uploaded_file"].as_str().unwrap().ends_with(".m3u"));
    // The list may not lead to this machine.
    let path = fixture.channel_from(&fixture.streams().await[0]).await;
    let refused = fixture.watch(&path).await;
    assert_eq!(refused.status().await, 503);
    assert!(refused.answer().await.text().contains("may not lead to this machine"));

    // The next file replaces the first, and a refresh reads it again.
    let list = list.replace("One", "Two");
    let upload = Request::get(format!("{account}upload/")).method("POST").body("audio/x-mpegurl", list);
    let replaced = fixture.admin.ask(upload).await;
    assert_eq!(replaced.status, 200, "{replaced:?}");
    until_async("the new list", async || names(&fixture.streams().await) == ["Two"]).await;
    assert_eq!(fixture.refreshed(&account).await["status"], "success");
    eventually("the former file to be removed", || files() == 1).await;

    let both = multipart(&[("server_url", "http://h.example/list")], "#EXTM3U\n");
    let refused = fixture.admin.ask(Request::get(account.clone()).method("PATCH").body(BOUNDARY, both)).await;
    assert_eq!((refused.status, &refused.body["file"].is_array()), (400, &true), "{refused:?}");
    assert_eq!(fixture.admin.delete(&account).await.status, 204);
    assert_eq!(files(), 0);
}

/// A list of the local network that an admin uploaded never played, and nothing but the API could change that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uploaded_list_plays_from_the_networks_that_are_allowed_with_it_and_from_no_nearer_ones() {
    let fixture = PanelFixture::new().await;
    let provider = Provider::start();
    provider.path("/one.ts").plays(Picture::new("one"));
    let local = "http://10.255.255.1:9/1";
    let list = provider.playlist(&[("one", "One", "/one.ts")]) + "#EXTINF:-1,Local\n" + local + "\n";
    let upload = async |name: &str, networks: Option<&str>| {
        let mut fields = vec![("name", name)];
        fields.extend(networks.map(|it| ("allowed_networks", it)));
        let body = multipart(&fields, &list);
        let made = fixture.admin.ask(Request::get(ACCOUNTS).method("POST").body(BOUNDARY, body)).await;
        assert_eq!(made.status, 201, "{made:?}");
        let account = format!("{ACCOUNTS}{}/", made.body["id"]);
        fixture.ended(&account).await;
        account
    };
    let channels = async |account: &str| {
        let id = account.trim_end_matches('/').rsplit('/').next().unwrap();
        let streams = fixture.admin.get(&format!("{STREAMS}&m3u_account={id}")).await.body["results"].clone();
        let mut paths = Vec::new();
        for stream in streams.as_array().unwrap() {
            paths.push(fixture.channel_from(stream).await);
        }
        paths
    };
    let is_refused = async |path: &str, reason: &str| {
        let answer = fixture.watch(path).await.answer().await;
        assert!(answer.status() == 503 && answer.text().contains(reason), "{}", answer.text());
    };

    let strict = upload("Strict", None).await;
    let hosts = fixture.admin.get(&format!("{strict}local-hosts/")).await.body;
    assert_eq!(hosts, json!({ "count": 1, "hosts": ["10.255.255.1"] }), "not this machine");
    let [one, local] = channels(&strict).await.try_into().unwrap();
    is_refused(&one, "may not lead to this machine").await;
    is_refused(&local, "may not lead into a private network").await;

    let private = upload("Private", Some("private")).await;
    let one = &channels(&private).await[0];
    is_refused(one, "may not lead to this machine").await;
    assert_eq!(provider.accepted(), 0, "nothing was connected to");

    let loopback = upload("Loopback", Some("loopback")).await;
    let one = &channels(&loopback).await[0];
    let player = fixture.watch(one).await;
    player.sees("one").await;
    player.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn films_series_and_headlines_of_a_list_are_streams_of_their_own_kind() {
    let fixture = PanelFixture::new().await;
    let list = "#EXTM3U\n\
        #EXTINF:-1 group-title=\"News\",##### NEWS #####\nhttp://tv.example/live/u/p/1.ts\n\
        #EXTINF:-1 group-title=\"News\",News One\nhttp://tv.example/live/u/p/2.ts\n\
        #EXTINF:-1 group-title=\"VOD\",A Film\nhttp://tv.example/movie/u/p/3.mkv\n\
        #EXTINF:-1 group-title=\"Series\",A Series S01E02\nhttp://tv.example/series/u/p/4.mkv\n";
    fixture.panel.provider.path("/list").answers(MockResponse::text("audio/x-mpegurl", list));
    let url = fixture.panel.provider.url("/list");
    let made = fixture.admin.post(ACCOUNTS, json!({ "name": "List", "server_url": url })).await;
    assert_eq!(made.status, 201, "{made:?}");
    fixture.ended(&format!("{ACCOUNTS}{}/", made.body["id"])).await;
    for (content, expected) in [
        ("live", &["News One"][..]),
        ("movie", &["A Film"]),
        ("series", &["A Series S01E02"]),
        ("separator", &["##### NEWS #####"]),
        ("movie,series", &["A Film", "A Series S01E02"]),
    ] {
        let listed = fixture.admin.get(&format!("{STREAMS}&content_type={content}")).await;
        assert_eq!(names(listed.body["results"].as_array().unwrap()), expected, "{content}");
    }
    let refused = fixture.admin.get(&format!("{STREAMS}&content_type=film")).await;
    assert_eq!(refused.status, 400);
}
