//! Accounts in the REST API, with a provider behind them: from the URL of a playlist to a picture.

use domain::channel::Channel;
use domain::ids::{ChannelId, StreamId};
use domain::stream::Stream;
use domain::user::UserLevel;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::client::{Player, say};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::{Cut, MockResponse, Provider};
use crate::support::users::{TestUser, create_user};
use crate::support::{eventually, until_async};

const ACCOUNTS: &str = "/api/m3u/accounts/";
/// Path of the provider's playlist, with the password.
const LIST: &str = "/get.php?username=anna&password=hunter2-kept";
const SECRET: &str = "hunter2-kept";

/// A gateway with an admin only, and a provider with any number of streams.
struct AccountFixture {
    provider: Provider,
    gateway: TestGateway,
    admin: TestUser,
}

fn path(login: &str, number: usize) -> String {
    format!("/live/{login}/{SECRET}/{number}.ts")
}

impl AccountFixture {
    async fn new() -> AccountFixture {
        AccountFixture::with_setup(Setup::new()).await
    }

    async fn with_setup(setup: Setup) -> AccountFixture {
        let provider = Provider::start();
        let gateway = setup.start().await;
        let admin = create_user(&gateway, "admin", |it| it.level = UserLevel::Admin).await;
        AccountFixture { provider, gateway, admin }
    }

    /// Sets the streams that the provider offers and lists, for two logins.
    fn serve_list(&self, numbers: std::ops::Range<usize>) {
        let mut list = "#EXTM3U\n".to_owned();
        for number in numbers {
            for login in ["anna", "bert"] {
                let picture =
                    Picture::new(&format!("{login} {number}")).bits_per_second(300_000).frames_per_gop(3);
                self.provider.path(&path(login, number)).plays(picture);
            }
            let url = self.provider.url(&path("anna", number));
            list += &format!("#EXTINF:-1 group-title=\"Group\",Stream {number}\n{url}\n");
        }
        self.answers(MockResponse::text("audio/x-mpegurl", list));
    }

    fn answers(&self, answer: MockResponse) {
        self.provider.path(LIST).answers(answer);
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let key = [("X-API-Key", self.admin.api_key.as_str())];
        let (status, text) = ask(&self.gateway, method, path, &key, body).await;
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// Creates an account with the provider's playlist, which starts its first refresh; returns its path.
    async fn account(&self, more: Value) -> String {
        let mut body = json!({ "name": "Provider", "server_url": self.provider.url(LIST) });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, made) = self.ask("POST", ACCOUNTS, body).await;
        assert_eq!(status, 201, "{made}");
        format!("{ACCOUNTS}{}/", made["id"])
    }

    /// Waits for this refresh status of the account.
    async fn is_at(&self, account: &str, status: &str) -> Value {
        let mut seen = Value::Null;
        until_async(&format!("the status {status}"), async || {
            seen = self.ask("GET", account, Value::Null).await.1;
            seen["status"] == status
        })
        .await;
        seen
    }

    /// Refreshes the account and waits for the end of this refresh.
    async fn refreshed(&self, account: &str, query: &str) -> Value {
        let path = account.replace("accounts", "refresh");
        let (status, begun) = self.ask("POST", &format!("{path}{query}"), Value::Null).await;
        assert_eq!((status, &begun["success"]), (202, &json!(true)), "{begun}");
        let mut seen = Value::Null;
        until_async("the end of the refresh", async || {
            seen = self.ask("GET", &path, Value::Null).await.1;
            assert_eq!(seen["task_id"], begun["task_id"]);
            seen["phase"] == "done"
        })
        .await;
        seen
    }

    fn streams(&self) -> Vec<StreamId> {
        self.gateway.models().store.collection::<Stream>().ids().into_iter().map(StreamId).collect()
    }

    /// Creates a channel with these streams and returns its stream path.
    async fn channel(&self, id: u32, streams: &[StreamId]) -> String {
        let uuid = Uuid::from_u128(u128::from(id));
        let mut channel = Channel::new(ChannelId(id), uuid, format!("Channel {id}"), 0);
        channel.streams = streams.to_vec();
        self.gateway.change(move |write| write.put(&channel)).await;
        format!("/proxy/ts/stream/{uuid}")
    }

    async fn watch(&self, path: &str) -> Player {
        Player::watch(self.gateway.address, path).await
    }
}

async fn ask(
    gateway: &TestGateway,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Value,
) -> (u16, String) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    let answer = String::from_utf8(say(gateway.api, request.as_bytes()).await).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0), body.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_account_fetches_its_list_and_its_streams_can_be_watched() {
    let fixture = AccountFixture::new().await;
    fixture.answers(MockResponse::mute());
    let account = fixture.account(json!({ "max_streams": 1 })).await;
    assert_eq!(fixture.ask("GET", &account, Value::Null).await.1["status"], "fetching");
    eventually("the request for the list", || fixture.provider.path(LIST).n_requests() == 1).await;
    fixture.serve_list(0..3);
    fixture.provider.path(LIST).cut(Cut::End);
    fixture.is_at(&account, "error").await;
    // A changed URL is fetched without a request to refresh.
    let url = fixture.provider.url(&format!("{LIST}#again"));
    assert_eq!(fixture.ask("PATCH", &account, json!({ "server_url": url })).await.0, 200);
    let seen = fixture.is_at(&account, "success").await;
    assert_eq!(seen["stream_count"], 3);
    assert!(seen["last_message"].as_str().unwrap().contains("3 entries: 3 new"), "{seen}");

    let path = fixture.channel(1, &fixture.streams()[..1]).await;
    let player = fixture.watch(&path).await;
    player.sees("anna 0").await;
    let profiles = fixture.ask("GET", &format!("{account}profiles/"), Value::Null).await.1;
    assert_eq!(profiles["results"][0]["current_viewers"], 1);
    drop(player);
    fixture.gateway.until_idle().await;
    let profiles = fixture.ask("GET", &format!("{account}profiles/"), Value::Null).await.1;
    assert_eq!(profiles["results"][0]["current_viewers"], 0);
}

/// Regression: accounts created over the API did not use the configured user agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_gets_the_configured_user_agent_unless_its_account_has_another() {
    let fixture =
        AccountFixture::with_setup(Setup::new().config(|it| it.user_agent = Some("Box/7".to_owned()))).await;
    fixture.serve_list(0..1);
    let account = fixture.account(json!({})).await;
    fixture.is_at(&account, "success").await;
    let path = fixture.channel(1, &fixture.streams()).await;
    fixture.watch(&path).await.sees("anna 0").await;
    fixture.gateway.until_idle().await;
    assert_eq!(fixture.ask("PATCH", &account, json!({ "user_agent": "Box/8" })).await.0, 200);
    fixture.refreshed(&account, "").await;
    fixture.watch(&path).await.sees("anna 0").await;
    let told = fixture.provider.requests();
    let told: Vec<_> = told.iter().map(|it| (it.path.contains("get.php"), it.header("User-Agent"))).collect();
    let [seven, eight] = [Some("Box/7"), Some("Box/8")];
    assert_eq!(told, [(true, seven), (false, seven), (true, eight), (false, eight)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_an_account_restarts_a_running_fetch_of_its_list() {
    let fixture = AccountFixture::new().await;
    let other = "/other.php?password=hunter2-kept";
    let list = format!("#EXTM3U\n#EXTINF:-1,Other\n{}\n", fixture.provider.url(&path("anna", 9)));
    fixture.provider.path(other).answers(MockResponse::text("audio/x-mpegurl", list));
    // The provider does not answer, and the changed account no longer waits for it.
    fixture.answers(MockResponse::mute());
    let account = fixture.account(json!({})).await;
    let requests = || fixture.provider.path(LIST).requests();
    eventually("the request for the list", || requests().len() == 1).await;
    assert_eq!(fixture.ask("PATCH", &account, json!({ "headers": { "X-Token": "one" } })).await.0, 200);
    eventually("the second request", || requests().len() == 2).await;
    assert_eq!(requests()[1].header("x-token"), Some("one"));
    let change = json!({ "server_url": fixture.provider.url(other) });
    assert_eq!(fixture.ask("PATCH", &account, change).await.0, 200);
    assert_eq!(fixture.is_at(&account, "success").await["stream_count"], 1);
    eventually("all connections to close", || fixture.provider.open() == 0).await;
    assert_eq!((requests().len(), fixture.provider.path(other).n_requests()), (2, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_list_changes_nothing_and_is_reported() {
    // Holds T-sync.1 over the API.
    let fixture = AccountFixture::new().await;
    fixture.serve_list(0..4);
    let account = fixture.account(json!({})).await;
    fixture.is_at(&account, "success").await;
    let before = fixture.streams();
    for answer in [
        MockResponse::html(),
        MockResponse::text("audio/x-mpegurl", "#EXTM3U\n".to_owned()),
        MockResponse::status(500),
        MockResponse::status(401),
        MockResponse::empty(),
        MockResponse::text("text/plain", format!("#EXTM3U\n#EXTINF:-1,{}", "x".repeat(400)))
            .until(50, Cut::Reset),
    ] {
        fixture.answers(answer.clone());
        let ended = fixture.refreshed(&account, "").await;
        assert_eq!(ended["outcome"], "error", "{answer:?}");
        let message = ended["message"].as_str().unwrap_or_default().to_owned();
        assert!(!message.is_empty() && !message.contains(SECRET), "{message}");
        let seen = fixture.ask("GET", &account, Value::Null).await.1;
        assert_eq!(
            (&seen["status"], seen["last_message"].as_str()),
            (&json!("error"), Some(message.as_str()))
        );
        assert_eq!(fixture.streams(), before);
        assert_eq!(ended["good_entries"], 4);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_much_shorter_list_is_imported_only_after_confirmation() {
    let fixture = AccountFixture::new().await;
    fixture.serve_list(0..20);
    let account = fixture.account(json!({ "stale_stream_days": 0 })).await;
    fixture.is_at(&account, "success").await;
    fixture.serve_list(0..3);
    assert_eq!(fixture.refreshed(&account, "").await["outcome"], "pending_confirmation");
    let seen = fixture.ask("GET", &account, Value::Null).await.1;
    assert_eq!((&seen["status"], &seen["stream_count"]), (&json!("pending_confirmation"), &json!(20)));
    assert!(seen["last_message"].as_str().unwrap().contains("until an admin confirms it"), "{seen}");

    let ended = fixture.refreshed(&account, "?confirm=true").await;
    assert_eq!((&ended["outcome"], &ended["streams_gone"]), (&json!("success"), &json!(17)), "{ended}");
    // The other way to confirm.
    fixture.serve_list(0..1);
    assert_eq!(fixture.refreshed(&account, "").await["outcome"], "pending_confirmation");
    let path = account.replace("accounts", "refresh");
    assert_eq!(fixture.ask("POST", &path, json!({ "confirm": true })).await.0, 202);
    // The seventeen were removed by the refresh after the one that missed them.
    assert_eq!(fixture.is_at(&account, "success").await["stream_count"], 3);
    until_async("the two missing streams to be counted", async || {
        fixture.ask("GET", &account, Value::Null).await.1["stale_stream_count"] == 2
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_refresh_that_is_accepted_can_be_followed_to_its_end() {
    // Holds T-ui.1.
    let fixture = AccountFixture::new().await;
    fixture.answers(MockResponse::mute());
    let one = fixture.account(json!({})).await;
    let other = fixture.account(json!({ "name": "Other" })).await;
    fixture.account(json!({ "name": "Off", "is_active": false })).await;
    fixture.account(json!({ "name": "By hand", "server_url": null })).await;
    // Both refreshes wait for the provider, so a second request reports the same tasks.
    let (status, begun) = fixture.ask("POST", "/api/m3u/refresh/", Value::Null).await;
    assert_eq!((status, begun["tasks"].as_array().unwrap().len()), (202, 2), "{begun}");
    for (n, account) in [&one, &other].into_iter().enumerate() {
        let path = account.replace("accounts", "refresh");
        let again = fixture.ask("POST", &path, Value::Null).await.1;
        assert_eq!(again["task_id"], begun["tasks"][n]["task_id"]);
        let seen = fixture.ask("GET", &path, Value::Null).await.1;
        assert!(["waiting", "fetching"].contains(&seen["phase"].as_str().unwrap()), "{seen}");
        assert_eq!((&seen["task_id"], &seen["outcome"]), (&again["task_id"], &Value::Null));
    }
    // Before the list is there, so that both refreshes fail.
    eventually("both requests", || fixture.provider.path(LIST).n_requests() == 2).await;
    fixture.serve_list(0..2);
    fixture.provider.path(LIST).cut(Cut::Reset);
    for account in [&one, &other] {
        fixture.is_at(account, "error").await;
        assert_eq!(fixture.refreshed(account, "").await["outcome"], "success");
    }
    let all = fixture.ask("GET", "/api/m3u/refresh/", Value::Null).await.1;
    let phases: Vec<_> = all["results"].as_array().unwrap().iter().map(|it| it["phase"].as_str()).collect();
    assert_eq!(phases, [None, Some("done"), Some("done"), None, None]);

    for (account, status) in [(99, 404), (1, 400), (4, 400), (5, 400)] {
        let refused = fixture.ask("POST", &format!("/api/m3u/refresh/{account}/"), Value::Null).await;
        assert_eq!(refused.0, status, "{}", refused.1);
    }
    assert_eq!(fixture.ask("GET", "/api/m3u/refresh/99/", Value::Null).await.0, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn playback_continues_when_its_account_is_deleted_and_the_slot_is_released_after_the_last_viewer() {
    // Holds T-slot.6.
    let fixture = AccountFixture::new().await;
    fixture.serve_list(0..2);
    let account = fixture.account(json!({ "max_streams": 1 })).await;
    fixture.is_at(&account, "success").await;
    let path = fixture.channel(1, &fixture.streams()).await;
    let player = fixture.watch(&path).await;
    player.sees("anna 0").await;

    assert_eq!(fixture.ask("DELETE", &account, Value::Null).await.0, 204);
    assert_eq!(fixture.streams(), []);
    let channels = fixture.gateway.models().channels.load();
    assert_eq!(channels.get(1).unwrap().streams, []);
    player.more_bytes(200_000).await;
    assert_eq!(fixture.gateway.gateway.counts().leases, 1);

    drop(player);
    fixture.gateway.until_idle().await;
    eventually("the provider's connections to close", || fixture.provider.open() == 0).await;
    let late = fixture.watch(&path).await;
    assert_ne!(late.status().await, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn playback_continues_when_its_profile_is_deleted_and_the_login_is_not_reused() {
    // Holds T-slot.6.
    let fixture = AccountFixture::new().await;
    fixture.serve_list(0..2);
    let account = fixture.account(json!({ "max_streams": 1 })).await;
    fixture.is_at(&account, "success").await;
    let second = json!({
        "name": "Bert", "max_streams": 1, "search_pattern": "/live/anna/", "replace_pattern": "/live/bert/",
    });
    let (status, second) = fixture.ask("POST", &format!("{account}profiles/"), second).await;
    assert_eq!(status, 201, "{second}");
    let streams = fixture.streams();
    let [one, two] = [fixture.channel(1, &streams[..1]).await, fixture.channel(2, &streams[1..]).await];
    let first = fixture.watch(&one).await;
    first.sees("anna 0").await;
    let other = fixture.watch(&two).await;
    other.sees("bert 1").await;

    let path = format!("{account}profiles/{}/", second["id"]);
    assert_eq!(fixture.ask("DELETE", &path, Value::Null).await.0, 204);
    other.more_bytes(200_000).await;
    assert!(other.is_watching() && first.is_watching());
    drop(other);
    eventually("the slot to be released", || fixture.gateway.gateway.counts().leases == 1).await;
    let late = fixture.watch(&two).await;
    assert_eq!(late.status().await, 503, "the account has one login, which is in use");
    drop((first, late));
    fixture.gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lowered_limit_disconnects_nobody_and_refuses_new_viewers_until_enough_have_left() {
    // Holds T-slot.8.
    let fixture = AccountFixture::new().await;
    fixture.serve_list(0..3);
    let account = fixture.account(json!({ "max_streams": 2 })).await;
    fixture.is_at(&account, "success").await;
    let streams = fixture.streams();
    let mut paths = Vec::new();
    for (id, stream) in (1..).zip(&streams) {
        paths.push(fixture.channel(id, std::slice::from_ref(stream)).await);
    }
    let [first, second] = [fixture.watch(&paths[0]).await, fixture.watch(&paths[1]).await];
    first.sees("anna 0").await;
    second.sees("anna 1").await;
    assert_eq!(fixture.ask("PATCH", &account, json!({ "max_streams": 1 })).await.0, 200);
    for player in [&first, &second] {
        player.more_bytes(100_000).await;
    }
    assert_eq!(fixture.watch(&paths[2]).await.status().await, 503);
    drop(first);
    eventually("one of them to end", || fixture.gateway.gateway.counts().leases == 1).await;
    assert_eq!(fixture.watch(&paths[2]).await.status().await, 503);
    drop(second);
    fixture.gateway.until_idle().await;
    let third = fixture.watch(&paths[2]).await;
    third.sees("anna 2").await;
    drop(third);
    fixture.gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_admins_can_read_the_password_of_a_provider_on_any_route() {
    // Holds T-acc.2 after a refresh, after a failed refresh, and while a viewer watches.
    let fixture = AccountFixture::new().await;
    fixture.serve_list(0..3);
    let account = fixture.account(json!({ "headers": { "X-Token": SECRET } })).await;
    fixture.is_at(&account, "success").await;
    let path = fixture.channel(1, &fixture.streams()).await;
    let player = fixture.watch(&path).await;
    player.sees("anna 0").await;
    fixture.answers(MockResponse::status(403));
    fixture.refreshed(&account, "").await;

    let [zero, one] = [UserLevel::Streamer, UserLevel::Standard];
    let mut told = 0;
    for level in [Some(zero), Some(one), None] {
        let user = match level {
            Some(level) => {
                Some(create_user(&fixture.gateway, &format!("level {level}"), |it| it.level = level).await)
            }
            None => None,
        };
        let key = user.as_ref().map(|it| ("X-API-Key", it.api_key.as_str()));
        for route in rest::table() {
            for id in ["1", "2"] {
                let path = route.path.replace("{id}", id).replace("{profile_id}", id);
                let headers: Vec<_> = key.into_iter().collect();
                let (_, text) = ask(&fixture.gateway, &route.method, &path, &headers, json!({})).await;
                assert!(!text.contains(SECRET), "{} {path}: {text}", route.method);
                told += usize::from(text.contains("\"Provider\""));
            }
        }
    }
    assert!(told > 0, "no response contained the account");
}
