//! Events: what each cause tells, once, in order and without a secret, in the history and on the WebSocket alike.

use std::time::Duration;

use actors::Target;
use domain::settings::Settings;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::api::{ADMIN, Api, PASSWORD};
use crate::support::client::{Player, Request, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::push::Listener;
use crate::support::signal::Picture;
use crate::support::upstream::{Answer, Cut, Provider};
use crate::support::{PATIENCE, eventually, until_async};

const FIRST: &str = "/live/anna/hunter2/first.ts";
const SECOND: &str = "/live/anna/hunter2/second.ts";
/// What no event may tell: the provider's login, and the passwords that were tried.
const SECRETS: [&str; 2] = ["hunter2", "swordfish"];

/// What the interface promises of each group of events.
const CHANNEL: &[&str] = &["channel_id", "channel_name", "channel_number", "stream_url", "profile_used"];
const CLIENT: &[&str] = &["channel_id", "channel_name", "client_ip", "user_agent", "connection_id"];
const REFRESH: &[&str] = &["source_name", "source_id", "programs_updated", "duration_seconds"];
const CALLER: &[&str] = &["client_ip", "user_agent", "reason"];

/// However busy the machine is, only what the story does ends a stream.
fn patient(settings: &mut Settings) {
    settings.first_packet_timeout = Duration::from_secs(50);
    settings.stall_timeout = Duration::from_secs(50);
    settings.start_timeout = Duration::from_secs(50);
    settings.give_up_after = Duration::from_secs(50);
}

/// One channel of two streams, whose addresses have the login in every place there is.
fn list(provider: &Provider) -> String {
    let list = provider.playlist(&[("news", "News", FIRST), ("news", "News backup", SECOND)]);
    list.replace("http://", "http://anna:hunter2@")
}

/// A gateway with an admin who listens from its first moment on.
struct Story {
    gateway: TestGateway,
    admin: Api,
    listener: Listener,
}

impl Story {
    async fn of(setup: Setup) -> Story {
        let gateway = setup.start().await;
        let admin = Api::first_admin(&gateway).await;
        let token = admin.token(ADMIN, PASSWORD).await;
        let path = format!("/ws/?token={}", token.text("access"));
        let mut listener = Listener::open(gateway.address, &path, &[]).await.unwrap();
        // From here on it hears everything.
        assert_eq!(listener.next().await.unwrap()["type"], "connection_established");
        Story { gateway, admin, listener }
    }

    /// Waits until exactly these events have happened, in this order, and returns what an admin is told of them: the
    /// same from the history and by the WebSocket.
    async fn tells(&mut self, names: &[&str]) -> Vec<Value> {
        eventually(&format!("the events {names:?}"), || self.gateway.event_names().len() >= names.len())
            .await;
        let history = self.admin.get("/api/core/system-events/").await.body;
        assert_eq!(history["total"], names.len(), "{history}");
        let history = history["events"].as_array().unwrap().iter().rev();
        let remembered: Vec<_> = history.cloned().map(payload).collect();
        let pushed = timeout(PATIENCE, self.hears(names.len())).await;
        assert_eq!(pushed.expect("the WebSocket tells as many"), remembered);
        let told: Vec<_> = remembered.iter().map(|it| it["event_type"].as_str().unwrap()).collect();
        assert_eq!(told, names);
        for event in &remembered {
            has_its_keys(event);
            let text = event.to_string();
            assert!(!SECRETS.iter().any(|it| text.contains(it)), "{text}");
        }
        remembered
    }

    /// So many events of the WebSocket.
    async fn hears(&mut self, n: usize) -> Vec<Value> {
        let mut events = Vec::new();
        while events.len() < n {
            let mut frame = self.listener.next().await.unwrap();
            let data = frame["data"].as_object_mut().unwrap();
            if data.contains_key("event_type") {
                data.remove("type");
                assert_eq!(data.remove("success"), Some(json!(true)));
                events.push(frame["data"].take());
            }
        }
        events
    }
}

/// A row of the history as subscribers are told.
fn payload(mut row: Value) -> Value {
    let mut payload = row["details"].take();
    for key in ["event_type", "timestamp", "channel_id", "channel_name"] {
        if !row[key].is_null() {
            payload[key] = row[key].take();
        }
    }
    payload
}

fn has_its_keys(event: &Value) {
    let name = event["event_type"].as_str().unwrap();
    let keys = match name {
        "client_connect" | "client_disconnect" => CLIENT,
        "m3u_refresh" => REFRESH,
        "login_failed" | "m3u_blocked" => CALLER,
        "channel_error" => &[CHANNEL, &["error_message"]].concat(),
        _ => CHANNEL,
    };
    let timestamp = event["timestamp"].as_str().unwrap();
    assert!(timestamp.len() == "2026-01-01T00:00:00.000Z".len() && timestamp.ends_with('Z'), "{timestamp}");
    for key in keys {
        assert!(!event[key].is_null(), "{name} without {key}: {event}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_in_the_life_of_a_channel_is_told_once_and_in_order() {
    let provider = Provider::start();
    provider.path(FIRST).plays(Picture::new("first"));
    provider.path(SECOND).plays(Picture::new("second"));
    let mut story = Story::of(Setup::new().list(&list(&provider)).engine(patient)).await;
    let gateway = &story.gateway;

    let player = gateway.watch("News").await;
    player.sees("first").await;
    provider.path(FIRST).cut(Cut::Reset);
    eventually("the reconnect", || gateway.n_events("channel_reconnect") == 1).await;
    provider.path(FIRST).answers(Answer::status(404)).cut(Cut::Reset);
    player.sees("second").await;
    provider.path(FIRST).plays(Picture::new("first"));
    let uuid = gateway.channel("News").uuid;
    let switched = story.admin.post(&format!("/proxy/ts/next_stream/{uuid}"), json!({})).await;
    assert_eq!(switched.status, 200, "{switched:?}");
    player.sees("first").await;
    player.leave().await;
    gateway.is_quiet().await;

    let [connect, start, reconnect, failover, switch, disconnect, stop] = &story
        .tells(&[
            "client_connect",
            "channel_start",
            "channel_reconnect",
            "channel_failover",
            "stream_switch",
            "client_disconnect",
            "channel_stop",
        ])
        .await[..]
    else {
        panic!("seven events")
    };
    let url = format!("http://{}/…", provider.address);
    for event in [start, reconnect, failover, switch, stop] {
        assert_eq!((&event["channel_id"], &event["channel_name"]), (&json!(uuid), &json!("News")));
        assert_eq!((&event["stream_url"], &event["profile_used"]), (&json!(url), &json!("proxy")));
        let name = if event == failover { "News backup" } else { "News" };
        assert_eq!((&event["stream_name"], &event["provider_name"]), (&json!(name), &json!("list 1")));
    }
    for event in [connect, disconnect] {
        assert_eq!((&event["client_ip"], &event["channel_id"]), (&json!("127.0.0.1"), &json!(uuid)));
        assert_eq!(event["user_agent"], "TestPlayer/1.0");
        assert_eq!(event["connection_id"], connect["connection_id"]);
    }
    assert_eq!((&failover["previous_stream_name"], &failover["reason"]), (&json!("News"), &json!("reset")));
    assert_eq!(
        (&switch["previous_stream_name"], &switch["reason"]),
        (&json!("News backup"), &json!("manual"))
    );
    assert!(disconnect["bytes_sent"].as_u64() > Some(0) && stop["total_bytes"].as_u64() > Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_nothing_plays_is_told_with_the_reason() {
    let provider = Provider::start();
    let mut story = Story::of(Setup::new().list(&list(&provider)).engine(|it| {
        patient(it);
        it.start_timeout = Duration::from_millis(500);
    }))
    .await;
    let answer = Player::ask(story.gateway.address, story.gateway.get("News")).await;
    assert!(answer.status().await >= 500);
    story.gateway.is_quiet().await;
    let names = story.gateway.event_names();
    let told = story.tells(&names).await;
    let errors: Vec<_> = told.iter().filter(|it| it["event_type"] == "channel_error").collect();
    assert_eq!(errors.len(), 1, "{names:?}");
    let message = errors[0]["error_message"].as_str().unwrap();
    assert!(message.contains("404"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_fails_of_a_bug_is_told_to_have_stopped_after_its_clients() {
    let provider = Provider::start();
    provider.path(FIRST).plays(Picture::new("first"));
    let mut story = Story::of(Setup::new().list(&list(&provider)).engine(patient)).await;
    let gateway = &story.gateway;
    let player = gateway.watch("News").await;
    player.sees("first").await;
    gateway.gateway.system().kill_channel(Target::Channel(gateway.channel("News").uuid));
    player.ended().await;
    gateway.is_quiet().await;
    let told = story.tells(&["client_connect", "channel_start", "client_disconnect", "channel_stop"]).await;
    let reasons = [&told[2]["reason"], &told[3]["reason"]];
    assert_eq!(reasons, [&json!("the channel failed"); 2]);
    assert!(told[2]["bytes_sent"].as_u64() > Some(0) && told[3]["total_bytes"].as_u64() > Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_that_fails_is_told_with_who_tried_it_and_without_the_password() {
    let mut story = Story::of(Setup::new()).await;
    let (gateway, admin) = (&story.gateway, &story.admin);
    assert_eq!(admin.token("nobody", "swordfish").await.status, 401);
    assert_eq!(admin.token(ADMIN, "swordfish").await.status, 401);
    let path = format!("/live/{ADMIN}/swordfish/1.ts");
    let player = fetch(gateway.address, Request::get(path).header("User-Agent", "TV/1")).await;
    assert_eq!(player.status(), 401);
    let told = story.tells(&["login_failed"; 3]).await;
    let seen: Vec<_> = told.iter().map(|it| [&it["user"], &it["user_agent"], &it["reason"]]).collect();
    let expected = [
        json!(["nobody", "TestPlayer/1.0", "unknown user"]),
        json!([ADMIN, "TestPlayer/1.0", "wrong password"]),
        json!([ADMIN, "TV/1", "wrong password"]),
    ];
    assert_eq!(json!(seen), json!(expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_is_refused_a_playlist_or_a_stream_is_told_and_not_again_with_each_try() {
    let provider = Provider::start();
    for what in ["playlist", "stream"] {
        // Loopback is all that a test has, so the networks that are allowed are others.
        let setup = Setup::new().list(&list(&provider));
        let setup = setup.config(|it| it.stream_networks = "10.0.0.0/8".parse().unwrap());
        let mut story = Story::of(setup).await;
        let gateway = &story.gateway;
        let path = if what == "stream" { gateway.path("News") } else { "/playlist.m3u".to_owned() };
        for _ in 0..3 {
            let refused = fetch(gateway.address, Request::get(path.clone())).await;
            assert_eq!(refused.status(), 403);
        }
        let told = &story.tells(&["m3u_blocked"]).await[0];
        assert_eq!(
            (&told["client_ip"], &told["user_agent"]),
            (&json!("127.0.0.1"), &json!("TestPlayer/1.0"))
        );
        assert!(told["reason"].as_str().unwrap().contains(what), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_playlist_that_was_refreshed_is_told_with_its_counts_and_one_that_failed_is_not() {
    let provider = Provider::start();
    let mut story = Story::of(Setup::new()).await;
    let at = "/get.php?username=anna&password=hunter2";
    let account = |name: &str| json!({ "name": name, "server_url": provider.url(at), "max_streams": 1 });
    let ended = async |story: &Story, made: Value, status: &str| {
        let path = format!("/api/m3u/accounts/{}/", made["id"]);
        let is = async || story.admin.get(&path).await.body["status"] == status;
        until_async(status, is).await;
    };
    let failing = story.admin.post("/api/m3u/accounts/", account("Gone")).await;
    ended(&story, failing.body, "error").await;
    provider.path(at).answers(Answer::text("audio/x-mpegurl", list(&provider)));
    let made = story.admin.post("/api/m3u/accounts/", account("Provider")).await;
    let id = made.body["id"].clone();
    ended(&story, made.body, "success").await;

    let told = &story.tells(&["m3u_refresh"]).await[0];
    assert_eq!((&told["source_name"], &told["source_id"]), (&json!("Provider"), &id));
    assert_eq!((&told["total_processed"], &told["streams_created"]), (&json!(2), &json!(2)));
    let others = [&told["programs_updated"], &told["streams_updated"], &told["streams_deleted"]];
    assert_eq!(others, [&json!(0); 3]);
}
