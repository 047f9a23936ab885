//! Events: each cause creates one event, in order and without secrets, the same in the history, on the WebSocket and at a
//! webhook.

use std::time::Duration;

use actors::Target;
use domain::event::EventBody;
use domain::settings::Settings;
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use crate::support::api::{ADMIN, Api, PASSWORD};
use crate::support::client::{PLAYER_AGENT, Player, Request, fetch};
use crate::support::gateway::{SIDE_EVENTS, Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::{Cut, MockResponse, Provider};
use crate::support::webhook::WebhookTarget;
use crate::support::websocket::WebSocketClient;
use crate::support::{WAIT_MAX, eventually, until_async};

const FIRST: &str = "/live/anna/hunter2/first.ts";
const SECOND: &str = "/live/anna/hunter2/second.ts";
/// Strings that no event may contain: the provider's password, and passwords of failed logins.
const SECRETS: [&str; 2] = ["hunter2", "swordfish"];

/// The keys that the API documents for each group of events.
const CHANNEL: &[&str] = &["channel_id", "channel_name", "channel_number", "stream_url", "profile_used"];
const CLIENT: &[&str] = &["channel_id", "channel_name", "client_ip", "user_agent", "connection_id"];
const REFRESH: &[&str] = &["source_name", "source_id", "programs_updated", "duration_seconds"];
const CALLER: &[&str] = &["client_ip", "user_agent", "reason"];

/// Sets long timeouts, so that no stream ends because the machine is busy.
fn long_timeouts(settings: &mut Settings) {
    settings.first_packet_timeout = Duration::from_secs(50);
    settings.stall_timeout = Duration::from_secs(50);
    settings.start_timeout = Duration::from_secs(50);
    settings.give_up_after = Duration::from_secs(50);
}

/// Returns a playlist of one channel with two streams, whose URLs contain the login in every possible place.
fn list(provider: &Provider) -> String {
    let list = provider.playlist(&[("news", "News", FIRST), ("news", "News backup", SECOND)]);
    list.replace("http://", "http://anna:hunter2@")
}

/// A gateway with an admin who is connected to the WebSocket from the start.
struct EventFixture {
    gateway: TestGateway,
    admin: Api,
    listener: WebSocketClient,
    target: WebhookTarget,
}

impl EventFixture {
    async fn with_setup(setup: Setup) -> EventFixture {
        let gateway = setup.start().await;
        let admin = Api::first_admin(&gateway).await;
        let token = admin.token(ADMIN, PASSWORD).await;
        let path = format!("/ws/?token={}", token.text("access"));
        let mut listener = WebSocketClient::open(gateway.address, &path, &[]).await.unwrap();
        // The client receives every event from here on.
        assert_eq!(listener.next().await.unwrap()["type"], "connection_established");
        let target = WebhookTarget::start(Duration::ZERO).await;
        let names: Vec<&str> =
            EventBody::NAMES.iter().copied().filter(|it| !SIDE_EVENTS.contains(it)).collect();
        gateway.change(target.subscribe(1, &names)).await;
        EventFixture { gateway, admin, listener, target }
    }

    /// Waits for exactly these events, in this order, and returns them. Checks that history and WebSocket agree.
    async fn expect_events(&mut self, names: &[&str]) -> Vec<Value> {
        eventually(&format!("the events {names:?}"), || self.gateway.event_names().len() >= names.len())
            .await;
        let history = self.admin.get("/api/core/system-events/").await.body;
        let history = history["events"].as_array().unwrap().iter().rev();
        let recorded: Vec<_> = history.cloned().map(payload).filter(|it| !is_aside(it)).collect();
        assert_eq!(recorded.len(), names.len(), "{recorded:?}");
        let pushed = timeout(WAIT_MAX, self.next_events(names.len())).await;
        assert_eq!(pushed.expect("the WebSocket sends as many"), recorded);
        let events: Vec<_> = recorded.iter().map(|it| it["event_type"].as_str().unwrap()).collect();
        assert_eq!(events, names);
        eventually("the webhook", || self.target.len() >= names.len()).await;
        let delivered: Vec<_> = self.target.received().into_iter().map(|it| it.1).map(delivered).collect();
        assert_eq!(delivered, recorded.iter().cloned().map(without_duration).collect::<Vec<_>>());
        for event in &recorded {
            assert_keys(event);
            let text = event.to_string();
            assert!(!SECRETS.iter().any(|it| text.contains(it)), "{text}");
        }
        recorded
    }

    /// Returns the next `n` events of the WebSocket.
    async fn next_events(&mut self, n: usize) -> Vec<Value> {
        let mut events = Vec::new();
        while events.len() < n {
            let mut frame = self.listener.next().await.unwrap();
            let is_aside = is_aside(&frame["data"]);
            let data = frame["data"].as_object_mut().unwrap();
            if data.contains_key("event_type") && !is_aside {
                data.remove("type");
                // The code of `reason`, which only frames have.
                data.retain(|name, _| !["code", "values"].contains(&&**name));
                let has_failed = data["event_type"] == "m3u_error";
                assert_eq!(data.remove("success"), Some(json!(!has_failed)));
                events.push(frame["data"].take());
            }
        }
        events
    }
}

fn is_aside(event: &Value) -> bool {
    event["event_type"].as_str().is_some_and(|it| SIDE_EVENTS.contains(&it))
}

/// Converts a row of the history to the payload of the WebSocket.
fn payload(mut row: Value) -> Value {
    let mut payload = row["details"].take();
    for key in ["event_type", "timestamp", "channel_id", "channel_name"] {
        if !row[key].is_null() {
            payload[key] = row[key].take();
        }
    }
    payload
}

/// Removes what only webhooks get.
fn delivered(mut event: Value) -> Value {
    let id = event.as_object_mut().unwrap().remove("event_id");
    assert!(id.is_some_and(|it| it.as_str().unwrap().parse::<Uuid>().is_ok()), "{event}");
    without_duration(event)
}

/// Removes the duration of a refresh, which includes the write of the event in one of two cases.
fn without_duration(mut event: Value) -> Value {
    if event["event_type"] == "m3u_refresh" {
        let keys = event.as_object_mut().unwrap();
        keys.retain(|key, _| !["duration_seconds", "elapsed_time", "timestamp"].contains(&&**key));
    }
    event
}

fn assert_keys(event: &Value) {
    let name = event["event_type"].as_str().unwrap();
    let keys = match name {
        "client_connect" | "client_disconnect" => CLIENT,
        "m3u_refresh" => REFRESH,
        "m3u_error" => &["source_id", "source_name", "status", "reason"],
        "login_failed" | "epg_blocked" | "m3u_blocked" => CALLER,
        "channel_error" => &[CHANNEL, &["error_message"]].concat(),
        _ => CHANNEL,
    };
    let timestamp = event["timestamp"].as_str().unwrap();
    assert!(timestamp.len() == "2026-01-01T00:00:00.000Z".len() && timestamp.ends_with('Z'), "{timestamp}");
    for key in keys {
        assert!(!event[key].is_null(), "{name} without {key}: {event}");
    }
}

// Holds T-int.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_of_a_channel_is_sent_once_and_in_order() {
    let provider = Provider::start();
    provider.path(FIRST).plays(Picture::new("first"));
    provider.path(SECOND).plays(Picture::new("second"));
    let mut fixture =
        EventFixture::with_setup(Setup::new().list(&list(&provider)).engine(long_timeouts)).await;
    let gateway = &fixture.gateway;

    let player = gateway.watch("News").await;
    player.sees("first").await;
    provider.path(FIRST).cut(Cut::Reset);
    eventually("the reconnect", || gateway.n_events("channel_reconnect") == 1).await;
    provider.path(FIRST).answers(MockResponse::status(404)).cut(Cut::Reset);
    player.sees("second").await;
    provider.path(FIRST).plays(Picture::new("first"));
    let uuid = gateway.channel("News").uuid;
    let switched = fixture.admin.post(&format!("/proxy/ts/next_stream/{uuid}"), json!({})).await;
    assert_eq!(switched.status, 200, "{switched:?}");
    player.sees("first").await;
    player.leave().await;
    gateway.until_idle().await;

    let [connect, start, reconnect, failover, switch, disconnect, stop] = &fixture
        .expect_events(&[
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
        assert_eq!(event["user_agent"], PLAYER_AGENT);
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
async fn a_channel_that_cannot_play_sends_an_event_with_the_reason() {
    let provider = Provider::start();
    let mut fixture = EventFixture::with_setup(Setup::new().list(&list(&provider)).engine(|it| {
        long_timeouts(it);
        it.start_timeout = Duration::from_millis(500);
    }))
    .await;
    let answer = Player::ask(fixture.gateway.address, fixture.gateway.get("News")).await;
    assert!(answer.status().await >= 500);
    fixture.gateway.until_idle().await;
    let names = fixture.gateway.event_names();
    let events = fixture.expect_events(&names).await;
    let errors: Vec<_> = events.iter().filter(|it| it["event_type"] == "channel_error").collect();
    assert_eq!(errors.len(), 1, "{names:?}");
    let message = errors[0]["error_message"].as_str().unwrap();
    assert!(message.contains("404"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_panics_sends_its_stop_event_after_those_of_its_clients() {
    let provider = Provider::start();
    provider.path(FIRST).plays(Picture::new("first"));
    let mut fixture =
        EventFixture::with_setup(Setup::new().list(&list(&provider)).engine(long_timeouts)).await;
    let gateway = &fixture.gateway;
    let player = gateway.watch("News").await;
    player.sees("first").await;
    // The player may see the stream before the channel does.
    eventually("the start of the channel", || gateway.event_names().len() >= 2).await;
    gateway.gateway.system().kill_channel(Target::Channel(gateway.channel("News").uuid));
    player.ended().await;
    gateway.until_idle().await;
    let events = fixture
        .expect_events(&["client_connect", "channel_start", "client_disconnect", "channel_stop"])
        .await;
    let reasons = [&events[2]["reason"], &events[3]["reason"]];
    assert_eq!(reasons, [&json!("the channel failed"); 2]);
    assert!(events[2]["bytes_sent"].as_u64() > Some(0) && events[3]["total_bytes"].as_u64() > Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_login_sends_an_event_with_the_caller_and_without_the_password() {
    let mut fixture = EventFixture::with_setup(Setup::new()).await;
    let (gateway, admin) = (&fixture.gateway, &fixture.admin);
    assert_eq!(admin.token("nobody", "swordfish").await.status, 401);
    assert_eq!(admin.token(ADMIN, "swordfish").await.status, 401);
    let path = format!("/live/{ADMIN}/swordfish/1.ts");
    let player = fetch(gateway.address, Request::get(path).header("User-Agent", "TV/1")).await;
    assert_eq!(player.status(), 401);
    let events = fixture.expect_events(&["login_failed"; 3]).await;
    let seen: Vec<_> = events.iter().map(|it| [&it["user"], &it["user_agent"], &it["reason"]]).collect();
    let expected = [
        json!(["", PLAYER_AGENT, "unknown user"]),
        json!([ADMIN, PLAYER_AGENT, "wrong password"]),
        json!([ADMIN, "TV/1", "wrong password"]),
    ];
    assert_eq!(json!(seen), json!(expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_network_sends_one_event_and_not_one_for_each_request() {
    let provider = Provider::start();
    for (what, event) in [("playlist", "m3u_blocked"), ("stream", "m3u_blocked"), ("guide", "epg_blocked")] {
        // Every test client connects from loopback, so only other networks are allowed.
        let setup = Setup::new().list(&list(&provider));
        let setup = setup.config(|it| it.stream_networks = "10.0.0.0/8".parse().unwrap());
        let mut fixture = EventFixture::with_setup(setup).await;
        let gateway = &fixture.gateway;
        let path = match what {
            "stream" => gateway.path("News"),
            "guide" => "/output/epg".to_owned(),
            _ => "/playlist.m3u".to_owned(),
        };
        for _ in 0..3 {
            let refused = fetch(gateway.address, Request::get(path.clone())).await;
            // Where a login in the address would help, the answer asks for it.
            assert_eq!(refused.status(), if what == "stream" { 403 } else { 401 });
        }
        let events = &fixture.expect_events(&[event]).await[0];
        assert_eq!(
            (&events["client_ip"], &events["user_agent"]),
            (&json!("127.0.0.1"), &json!(PLAYER_AGENT))
        );
        assert!(events["reason"].as_str().unwrap().contains(what), "{events}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_sends_an_event_with_its_counts_or_with_the_reason_of_its_failure() {
    let provider = Provider::start();
    let mut fixture = EventFixture::with_setup(Setup::new()).await;
    let at = "/get.php?username=anna&password=hunter2";
    let account = |name: &str| json!({ "name": name, "server_url": provider.url(at), "max_streams": 1 });
    let ended = async |fixture: &EventFixture, made: Value, status: &str| {
        let path = format!("/api/m3u/accounts/{}/", made["id"]);
        let is = async || fixture.admin.get(&path).await.body["status"] == status;
        until_async(status, is).await;
    };
    let failing = fixture.admin.post("/api/m3u/accounts/", account("Gone")).await;
    ended(&fixture, failing.body, "error").await;
    provider.path(at).answers(MockResponse::text("audio/x-mpegurl", list(&provider)));
    let made = fixture.admin.post("/api/m3u/accounts/", account("Provider")).await;
    let id = made.body["id"].clone();
    ended(&fixture, made.body, "success").await;

    let sent = fixture.expect_events(&["m3u_error", "m3u_refresh"]).await;
    assert_eq!((&sent[0]["source_name"], &sent[0]["status"]), (&json!("Gone"), &json!("error")));
    let reason = sent[0]["reason"].as_str().unwrap();
    assert!(!reason.is_empty() && !reason.contains("hunter2"), "{reason}");
    let events = &sent[1];
    assert_eq!((&events["source_name"], &events["source_id"]), (&json!("Provider"), &id));
    assert_eq!((&events["total_processed"], &events["streams_created"]), (&json!(2), &json!(2)));
    let others = [&events["programs_updated"], &events["streams_updated"], &events["streams_deleted"]];
    assert_eq!(others, [&json!(0); 3]);
}
