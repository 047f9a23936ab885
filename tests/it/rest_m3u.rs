//! Accounts through the REST interface, with a provider behind them: from the address of a list to a picture.

use domain::channel::Channel;
use domain::ids::{ChannelId, StreamId};
use domain::stream::Stream;
use domain::user::UserLevel;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::client::{Player, say};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::people::{Person, person};
use crate::support::signal::Picture;
use crate::support::upstream::{Answer, Cut, Provider};
use crate::support::{eventually, until_async};

const ACCOUNTS: &str = "/api/m3u/accounts/";
/// Where the provider has its list; with the password in it.
const LIST: &str = "/get.php?username=anna&password=hunter2-kept";
const SECRET: &str = "hunter2-kept";

/// A gateway without anything but an admin, and a provider with as many streams as wanted.
struct House {
    provider: Provider,
    gateway: TestGateway,
    admin: Person,
}

fn path(login: &str, number: usize) -> String {
    format!("/live/{login}/{SECRET}/{number}.ts")
}

impl House {
    async fn new() -> House {
        House::of(Setup::new()).await
    }

    async fn of(setup: Setup) -> House {
        let provider = Provider::start();
        let gateway = setup.start().await;
        let admin = person(&gateway, "admin", |it| it.level = UserLevel::Admin).await;
        House { provider, gateway, admin }
    }

    /// The provider has these streams from now on, for two logins, and says so in its list.
    fn lists(&self, numbers: std::ops::Range<usize>) {
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
        self.answers(Answer::text("audio/x-mpegurl", list));
    }

    fn answers(&self, answer: Answer) {
        self.provider.path(LIST).answers(answer);
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let key = [("X-API-Key", self.admin.api_key.as_str())];
        let (status, text) = ask(&self.gateway, method, path, &key, body).await;
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// An account of the provider's list: its path. Its first refresh has begun.
    async fn account(&self, more: Value) -> String {
        let mut body = json!({ "name": "Provider", "server_url": self.provider.url(LIST) });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, made) = self.ask("POST", ACCOUNTS, body).await;
        assert_eq!(status, 201, "{made}");
        format!("{ACCOUNTS}{}/", made["id"])
    }

    /// Waits until the account says so of its list.
    async fn is_at(&self, account: &str, status: &str) -> Value {
        let mut seen = Value::Null;
        until_async(&format!("the status {status}"), async || {
            seen = self.ask("GET", account, Value::Null).await.1;
            seen["status"] == status
        })
        .await;
        seen
    }

    /// Refreshes the account and waits for the end of that very refresh.
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

    /// A channel that plays these streams: the path of its stream.
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
async fn an_account_that_is_made_fetches_its_list_and_its_streams_can_be_watched() {
    let house = House::new().await;
    house.answers(Answer::mute());
    let account = house.account(json!({ "max_streams": 1 })).await;
    assert_eq!(house.ask("GET", &account, Value::Null).await.1["status"], "fetching");
    eventually("the list to be asked for", || house.provider.path(LIST).n_requests() == 1).await;
    house.lists(0..3);
    house.provider.path(LIST).cut(Cut::End);
    house.is_at(&account, "error").await;
    // Another address is another list, and nobody has to ask for it either.
    let url = house.provider.url(&format!("{LIST}#again"));
    assert_eq!(house.ask("PATCH", &account, json!({ "server_url": url })).await.0, 200);
    let seen = house.is_at(&account, "success").await;
    assert_eq!(seen["stream_count"], 3);
    assert!(seen["last_message"].as_str().unwrap().contains("3 entries: 3 new"), "{seen}");

    let path = house.channel(1, &house.streams()[..1]).await;
    let player = house.watch(&path).await;
    player.sees("anna 0").await;
    let profiles = house.ask("GET", &format!("{account}profiles/"), Value::Null).await.1;
    assert_eq!(profiles["results"][0]["current_viewers"], 1);
    drop(player);
    house.gateway.is_quiet().await;
    let profiles = house.ask("GET", &format!("{account}profiles/"), Value::Null).await.1;
    assert_eq!(profiles["results"][0]["current_viewers"], 0);
}

/// What was seen: accounts that were made over the interface went by another name than the configured one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_is_told_the_configured_user_agent_unless_its_account_has_another() {
    let house = House::of(Setup::new().config(|it| it.user_agent = Some("Box/7".to_owned()))).await;
    house.lists(0..1);
    let account = house.account(json!({})).await;
    house.is_at(&account, "success").await;
    let path = house.channel(1, &house.streams()).await;
    house.watch(&path).await.sees("anna 0").await;
    house.gateway.is_quiet().await;
    assert_eq!(house.ask("PATCH", &account, json!({ "user_agent": "Box/8" })).await.0, 200);
    house.refreshed(&account, "").await;
    house.watch(&path).await.sees("anna 0").await;
    let told = house.provider.requests();
    let told: Vec<_> = told.iter().map(|it| (it.path.contains("get.php"), it.header("User-Agent"))).collect();
    let [seven, eight] = [Some("Box/7"), Some("Box/8")];
    assert_eq!(told, [(true, seven), (false, seven), (true, eight), (false, eight)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_that_changes_while_its_list_is_fetched_has_it_read_as_it_is_to_be_now() {
    let house = House::new().await;
    let other = "/other.php?password=hunter2-kept";
    let list = format!("#EXTM3U\n#EXTINF:-1,Other\n{}\n", house.provider.url(&path("anna", 9)));
    house.provider.path(other).answers(Answer::text("audio/x-mpegurl", list));
    // The provider does not answer, and nobody waits for it any more.
    house.answers(Answer::mute());
    let account = house.account(json!({})).await;
    let requests = || house.provider.path(LIST).requests();
    eventually("the list to be asked for", || requests().len() == 1).await;
    assert_eq!(house.ask("PATCH", &account, json!({ "headers": { "X-Token": "one" } })).await.0, 200);
    eventually("it to be asked for again", || requests().len() == 2).await;
    assert_eq!(requests()[1].header("x-token"), Some("one"));
    let change = json!({ "server_url": house.provider.url(other) });
    assert_eq!(house.ask("PATCH", &account, change).await.0, 200);
    assert_eq!(house.is_at(&account, "success").await["stream_count"], 1);
    eventually("nothing to be asked any more", || house.provider.open() == 0).await;
    assert_eq!((requests().len(), house.provider.path(other).n_requests()), (2, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_is_none_any_more_leaves_everything_as_it_was_and_says_why() {
    // Holds T-sync.1 at the interface.
    let house = House::new().await;
    house.lists(0..4);
    let account = house.account(json!({})).await;
    house.is_at(&account, "success").await;
    let before = house.streams();
    for answer in [
        Answer::html(),
        Answer::text("audio/x-mpegurl", "#EXTM3U\n".to_owned()),
        Answer::status(500),
        Answer::status(401),
        Answer::empty(),
        Answer::text("text/plain", format!("#EXTM3U\n#EXTINF:-1,{}", "x".repeat(400))).until(50, Cut::Reset),
    ] {
        house.answers(answer.clone());
        let ended = house.refreshed(&account, "").await;
        assert_eq!(ended["outcome"], "error", "{answer:?}");
        let message = ended["message"].as_str().unwrap_or_default().to_owned();
        assert!(!message.is_empty() && !message.contains(SECRET), "{message}");
        let seen = house.ask("GET", &account, Value::Null).await.1;
        assert_eq!(
            (&seen["status"], seen["last_message"].as_str()),
            (&json!("error"), Some(message.as_str()))
        );
        assert_eq!(house.streams(), before);
        assert_eq!(ended["good_entries"], 4);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_list_is_taken_only_when_an_admin_says_so() {
    let house = House::new().await;
    house.lists(0..20);
    let account = house.account(json!({ "stale_stream_days": 0 })).await;
    house.is_at(&account, "success").await;
    house.lists(0..3);
    assert_eq!(house.refreshed(&account, "").await["outcome"], "pending_confirmation");
    let seen = house.ask("GET", &account, Value::Null).await.1;
    assert_eq!((&seen["status"], &seen["stream_count"]), (&json!("pending_confirmation"), &json!(20)));
    assert!(seen["last_message"].as_str().unwrap().contains("until it is confirmed"), "{seen}");

    let ended = house.refreshed(&account, "?confirm=true").await;
    assert_eq!((&ended["outcome"], &ended["streams_gone"]), (&json!("success"), &json!(17)), "{ended}");
    // The other way to say it.
    house.lists(0..1);
    assert_eq!(house.refreshed(&account, "").await["outcome"], "pending_confirmation");
    let path = account.replace("accounts", "refresh");
    assert_eq!(house.ask("POST", &path, json!({ "confirm": true })).await.0, 202);
    // The seventeen went with the refresh after the one that missed them.
    assert_eq!(house.is_at(&account, "success").await["stream_count"], 3);
    until_async("the two that are missing now to be counted", async || {
        house.ask("GET", &account, Value::Null).await.1["stale_stream_count"] == 2
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_refresh_that_is_accepted_can_be_followed_to_its_end() {
    // Holds T-ui.1.
    let house = House::new().await;
    house.answers(Answer::mute());
    let one = house.account(json!({})).await;
    let other = house.account(json!({ "name": "Other" })).await;
    house.account(json!({ "name": "Off", "is_active": false })).await;
    house.account(json!({ "name": "By hand", "server_url": null })).await;
    // They hang at the provider: whoever asks is told of the same ones.
    let (status, begun) = house.ask("POST", "/api/m3u/refresh/", Value::Null).await;
    assert_eq!((status, begun["tasks"].as_array().unwrap().len()), (202, 2), "{begun}");
    for (n, account) in [&one, &other].into_iter().enumerate() {
        let path = account.replace("accounts", "refresh");
        let again = house.ask("POST", &path, Value::Null).await.1;
        assert_eq!(again["task_id"], begun["tasks"][n]["task_id"]);
        let seen = house.ask("GET", &path, Value::Null).await.1;
        assert!(["waiting", "fetching"].contains(&seen["phase"].as_str().unwrap()), "{seen}");
        assert_eq!((&seen["task_id"], &seen["outcome"]), (&again["task_id"], &Value::Null));
    }
    house.lists(0..2);
    eventually("both to be asked for", || house.provider.path(LIST).n_requests() == 2).await;
    house.provider.path(LIST).cut(Cut::Reset);
    for account in [&one, &other] {
        house.is_at(account, "error").await;
        assert_eq!(house.refreshed(account, "").await["outcome"], "success");
    }
    let all = house.ask("GET", "/api/m3u/refresh/", Value::Null).await.1;
    let phases: Vec<_> = all["results"].as_array().unwrap().iter().map(|it| it["phase"].as_str()).collect();
    assert_eq!(phases, [None, Some("done"), Some("done"), None, None]);

    for (account, status) in [(99, 404), (1, 400), (4, 400), (5, 400)] {
        let refused = house.ask("POST", &format!("/api/m3u/refresh/{account}/"), Value::Null).await;
        assert_eq!(refused.0, status, "{}", refused.1);
    }
    assert_eq!(house.ask("GET", "/api/m3u/refresh/99/", Value::Null).await.0, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_plays_goes_on_when_its_account_is_deleted_and_its_slot_is_free_after_the_last_viewer() {
    // Holds T-slot.6.
    let house = House::new().await;
    house.lists(0..2);
    let account = house.account(json!({ "max_streams": 1 })).await;
    house.is_at(&account, "success").await;
    let path = house.channel(1, &house.streams()).await;
    let player = house.watch(&path).await;
    player.sees("anna 0").await;

    assert_eq!(house.ask("DELETE", &account, Value::Null).await.0, 204);
    assert_eq!(house.streams(), []);
    let channels = house.gateway.models().channels.load();
    assert_eq!(channels.get(1).unwrap().streams, []);
    player.more_bytes(200_000).await;
    assert_eq!(house.gateway.gateway.counts().leases, 1);

    drop(player);
    house.gateway.is_quiet().await;
    eventually("the provider to see us go", || house.provider.open() == 0).await;
    let late = house.watch(&path).await;
    assert_ne!(late.status().await, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_plays_goes_on_when_its_profile_is_deleted_and_nobody_else_gets_its_login() {
    // Holds T-slot.6.
    let house = House::new().await;
    house.lists(0..2);
    let account = house.account(json!({ "max_streams": 1 })).await;
    house.is_at(&account, "success").await;
    let second = json!({
        "name": "Bert", "max_streams": 1, "search_pattern": "/live/anna/", "replace_pattern": "/live/bert/",
    });
    let (status, second) = house.ask("POST", &format!("{account}profiles/"), second).await;
    assert_eq!(status, 201, "{second}");
    let streams = house.streams();
    let [one, two] = [house.channel(1, &streams[..1]).await, house.channel(2, &streams[1..]).await];
    let first = house.watch(&one).await;
    first.sees("anna 0").await;
    let other = house.watch(&two).await;
    other.sees("bert 1").await;

    let path = format!("{account}profiles/{}/", second["id"]);
    assert_eq!(house.ask("DELETE", &path, Value::Null).await.0, 204);
    other.more_bytes(200_000).await;
    assert!(other.is_watching() && first.is_watching());
    drop(other);
    eventually("the slot to come back", || house.gateway.gateway.counts().leases == 1).await;
    let late = house.watch(&two).await;
    assert_eq!(late.status().await, 503, "the account has one login, and that is busy");
    drop((first, late));
    house.gateway.is_quiet().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lower_limit_ends_nothing_and_lets_nobody_in_until_enough_have_left() {
    // Holds T-slot.8.
    let house = House::new().await;
    house.lists(0..3);
    let account = house.account(json!({ "max_streams": 2 })).await;
    house.is_at(&account, "success").await;
    let streams = house.streams();
    let mut paths = Vec::new();
    for (id, stream) in (1..).zip(&streams) {
        paths.push(house.channel(id, std::slice::from_ref(stream)).await);
    }
    let [first, second] = [house.watch(&paths[0]).await, house.watch(&paths[1]).await];
    first.sees("anna 0").await;
    second.sees("anna 1").await;
    assert_eq!(house.ask("PATCH", &account, json!({ "max_streams": 1 })).await.0, 200);
    for player in [&first, &second] {
        player.more_bytes(100_000).await;
    }
    assert_eq!(house.watch(&paths[2]).await.status().await, 503);
    drop(first);
    eventually("one of them to be gone", || house.gateway.gateway.counts().leases == 1).await;
    assert_eq!(house.watch(&paths[2]).await.status().await, 503);
    drop(second);
    house.gateway.is_quiet().await;
    let third = house.watch(&paths[2]).await;
    third.sees("anna 2").await;
    drop(third);
    house.gateway.is_quiet().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_but_admins_is_told_the_password_of_a_provider_by_any_route() {
    // Holds T-acc.2 after a refresh, a failed one and while somebody watches.
    let house = House::new().await;
    house.lists(0..3);
    let account = house.account(json!({ "headers": { "X-Token": SECRET } })).await;
    house.is_at(&account, "success").await;
    let path = house.channel(1, &house.streams()).await;
    let player = house.watch(&path).await;
    player.sees("anna 0").await;
    house.answers(Answer::status(403));
    house.refreshed(&account, "").await;

    let [zero, one] = [UserLevel::Streamer, UserLevel::Standard];
    let mut told = 0;
    for level in [Some(zero), Some(one), None] {
        let user = match level {
            Some(level) => {
                Some(person(&house.gateway, &format!("level {level}"), |it| it.level = level).await)
            }
            None => None,
        };
        let key = user.as_ref().map(|it| ("X-API-Key", it.api_key.as_str()));
        for route in headwater::rest::table() {
            for id in ["1", "2"] {
                let path = route.path.replace("{id}", id).replace("{profile_id}", id);
                let headers: Vec<_> = key.into_iter().collect();
                let (_, text) = ask(&house.gateway, &route.method, &path, &headers, json!({})).await;
                assert!(!text.contains(SECRET), "{} {path}: {text}", route.method);
                told += usize::from(text.contains("\"Provider\""));
            }
        }
    }
    assert!(told > 0, "nothing was told at all");
}
