//! An admin reads the status of live channels, controls them, and reads the timeline afterwards.

use std::time::Duration;

use domain::settings::Settings;
use serde_json::{Value, json};

use crate::support::api::{Api, ApiReply};
use crate::support::client::Player;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::{Cut, MockResponse, Provider};
use crate::support::{eventually, until_async};

/// Occurs in stream URLs only, and must not occur in any response.
const SECRET: &str = "hidden-5p1c3";
const FIRST: &str = "/live/anna/hidden-5p1c3/first.ts";
const SECOND: &str = "/live/anna/hidden-5p1c3/second.ts";

struct StatusFixture {
    provider: Provider,
    gateway: TestGateway,
    admin: Api,
}

/// Starts one channel with two streams.
async fn set_up_with(change: impl FnOnce(&mut Settings)) -> StatusFixture {
    let provider = Provider::start();
    provider.path(FIRST).plays(Picture::new("first"));
    provider.path(SECOND).plays(Picture::new("second").pids(0x20, 0x41, 0x42).starts_at(77));
    let list = provider.playlist(&[("news", "News", FIRST), ("news", "News backup", SECOND)]);
    // A switch may open a second connection.
    let gateway = Setup::new().limited_list(&list, 2).engine(change).start().await;
    let admin = Api::first_admin(&gateway).await;
    StatusFixture { provider, gateway, admin }
}

async fn set_up() -> StatusFixture {
    set_up_with(|_| {}).await
}

impl StatusFixture {
    /// Returns the path of an action on the channel.
    fn on(&self, action: &str) -> String {
        format!("/proxy/ts/{action}/{}", self.gateway.channel("News").uuid)
    }

    async fn get(&self, action: &str) -> ApiReply {
        checked(self.admin.get(&self.on(action)).await)
    }

    async fn post(&self, action: &str, body: Value) -> ApiReply {
        checked(self.admin.post(&self.on(action), body).await)
    }

    async fn watch(&self) -> Player {
        let player = self.gateway.watch("News").await;
        player.sees("first").await;
        player
    }

    fn stream(&self, number: usize) -> u32 {
        self.gateway.catalogue.streams[number].id.0
    }
}

/// Checks that a response contains no credential.
#[track_caller]
fn checked(reply: ApiReply) -> ApiReply {
    let text = reply.answer.text();
    assert!(!text.contains(SECRET) && !text.contains("/live/"), "{text}");
    reply
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_lists_live_channels_and_their_clients() {
    let fixture = set_up().await;
    let nothing = json!({ "channels": [], "count": 0 });
    assert_eq!(fixture.admin.get("/proxy/ts/status").await.body, nothing);
    assert_eq!(fixture.get("status").await.status, 404);

    let players = [fixture.watch().await, fixture.watch().await];
    for address in [fixture.gateway.address, fixture.gateway.api] {
        let all = checked(fixture.admin.at(address).get("/proxy/ts/status").await);
        assert_eq!((all.status, &all.body["count"]), (200, &json!(1)));
        assert_eq!(all.body["channels"].as_array().map(Vec::len), Some(1));
        let one = &all.body["channels"][0];
        let uuid = fixture.gateway.channel("News").uuid;
        assert_eq!((&one["channel_id"], &one["channel_name"]), (&json!(uuid), &json!("News")));
        assert_eq!((&one["state"], &one["stream_id"]), (&json!("playing"), &json!(fixture.stream(0))));
        assert_eq!((&one["stream_name"], &one["client_count"]), (&json!("News"), &json!(2)));
        assert_eq!((&one["failovers"], &one["losses"]), (&json!(0), &json!(0)));
        assert_eq!(one["url"], format!("http://{}/…", fixture.provider.address));
        assert!(one["bytes_in"].as_u64() > Some(0), "{one}");
        let clients = one["clients"].as_array().unwrap();
        assert_eq!(clients.len(), 2);
        for client in clients {
            assert_eq!((&client["ip_address"], &client["user_id"]), (&json!("127.0.0.1"), &json!("0")));
            assert!(client["bytes_sent"].as_u64() > Some(0), "{client}");
            assert!(client["connected_at"].as_str().is_some_and(|it| it.ends_with('Z')), "{client}");
        }
        let alone = fixture.get("status").await.body;
        assert_eq!((&alone["state"], &alone["client_count"]), (&one["state"], &one["client_count"]));
    }
    for player in players {
        player.leave().await;
    }
    fixture.gateway.until_idle().await;
    assert_eq!(fixture.get("status").await.status, 404);
    assert_eq!(fixture.admin.get("/proxy/ts/status").await.body, nothing);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_of_a_channel_without_a_source_is_correct() {
    let fixture = set_up().await;
    let player = fixture.watch().await;
    for path in [FIRST, SECOND] {
        fixture.provider.path(path).answers(MockResponse::status(404)).cut(Cut::Reset);
    }
    until_async("a channel without a stream", async || {
        fixture.get("status").await.body["stream_id"].is_null()
    })
    .await;
    let status = fixture.get("status").await.body;
    assert!(["opening", "resting"].contains(&status["state"].as_str().unwrap()), "{status}");
    assert!(status["losses"].as_u64() >= Some(1), "{status}");
    assert_eq!(
        (&status["client_count"], &status["stream_name"], &status["url"]),
        (&json!(1), &Value::Null, &Value::Null)
    );
    assert!(player.is_watching());
    fixture.provider.path(SECOND).plays(Picture::new("second"));
    player.sees("second").await;
    let status = fixture.get("status").await.body;
    assert_eq!((&status["stream_id"], &status["failovers"]), (&json!(fixture.stream(1)), &json!(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_a_channel_returns_after_it_has_ended_for_all_clients() {
    let fixture = set_up().await;
    for method in ["POST", "DELETE"] {
        let player = fixture.watch().await;
        let reply = fixture.admin.send(method, &fixture.on("stop"), json!({})).await;
        assert_eq!(
            (reply.status, reply.text("outcome"), reply.text("previous_state")),
            (200, "stopped", "playing")
        );
        assert_eq!((reply.text("channel_name"), &reply.body["client_count"]), ("News", &json!(1)));
        assert_eq!(fixture.get("status").await.status, 404);
        player.ended().await;
        assert_eq!(fixture.admin.send(method, &fixture.on("stop"), json!({})).await.status, 404);
        fixture.gateway.until_idle().await;
    }
    assert_eq!(fixture.provider.open(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_a_client_disconnects_only_that_client_and_an_unknown_one_is_not_found() {
    let fixture = set_up().await;
    let players = [fixture.watch().await, fixture.watch().await];
    let clients = fixture.get("status").await.body["clients"].clone();
    let id = clients[0]["client_id"].as_str().unwrap();
    let reply = fixture.post("stop_client", json!({ "client_id": id })).await;
    assert_eq!((reply.status, reply.text("client_id")), (200, id));
    let status = fixture.get("status").await.body;
    assert_eq!(
        (&status["client_count"], &status["clients"][0]["client_id"]),
        (&json!(1), &clients[1]["client_id"])
    );
    eventually("one remaining viewer", || players.iter().filter(|it| it.is_watching()).count() == 1).await;
    for unknown in [id, "4711", "nobody", "-1"] {
        let reply = fixture.post("stop_client", json!({ "client_id": unknown })).await;
        assert_eq!(
            (reply.status, reply.text("detail")),
            (404, &*format!("The channel has no client {unknown}."))
        );
    }
    let rest = players.iter().find(|it| it.is_watching()).unwrap();
    rest.more_bytes(50_000).await;
}

/// Holds T-fo.6 over HTTP, for switches that succeed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manual_switch_has_happened_when_its_response_arrives() {
    let fixture = set_up().await;
    let player = fixture.watch().await;
    let (first, second) = (fixture.stream(0), fixture.stream(1));
    let url = |path: &str| json!({ "url": fixture.provider.url(path) });
    for (action, body, to, from, label) in [
        ("next_stream", json!({}), second, first, "second"),
        ("change_stream", json!({ "stream_id": first }), first, second, "first"),
        ("change_stream", url(SECOND), second, first, "second"),
        ("next_stream", Value::Null, first, second, "first"),
    ] {
        let reply = fixture.post(action, body).await;
        assert_eq!((reply.status, reply.text("outcome")), (200, "switched"), "{reply:?}");
        assert_eq!((&reply.body["stream_id"], &reply.body["new_stream_id"]), (&json!(to), &json!(to)));
        assert_eq!((&reply.body["previous_stream_id"], &reply.body["gap_ms"]), (&json!(from), &json!(0)));
        let status = fixture.get("status").await.body;
        assert_eq!((&status["stream_id"], &status["stream_name"]), (&json!(to), &reply.body["stream_name"]));
        player.sees(label).await;
    }
    player.received(|r| r.ts.assert_clean());
    let asked = fixture.provider.requests().len();
    let (no_url, no_stream) = (
        "No account has a stream with this address, or its login or host. Name the account as m3u_account.",
        "This stream does not exist, or cannot be played.",
    );
    let no_program = "Only addresses that the gateway reads itself can be played by their address.";
    for (field, value, error) in [
        ("url", json!("http://127.0.0.1:1/elsewhere.ts"), no_url),
        ("stream_id", json!(99), no_stream),
        ("url", json!(fixture.provider.url("/other.ts")), no_url),
        ("url", json!("file:///etc/passwd"), no_program),
        ("url", json!("/etc/passwd"), no_program),
    ] {
        let reply = fixture.post("change_stream", json!({ field: value })).await;
        assert_eq!((reply.status, &reply.body[field]), (400, &json!([error])));
    }
    assert_eq!(fixture.provider.requests().len(), asked, "only streams of the channel are opened");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_no_stream_has_plays_with_a_slot_of_the_named_account_until_another_one_plays() {
    const OTHER: &str = "/live/anna/hidden-5p1c3/other.ts";
    let fixture = set_up().await;
    fixture.provider.path(OTHER).plays(Picture::new("other").pids(0x30, 0x51, 0x52).starts_at(33));
    let player = fixture.watch().await;
    let account = fixture.gateway.catalogue.accounts[0].id.0;
    let url = fixture.provider.url(OTHER);
    let body = json!({ "url": url, "m3u_account": account });
    let reply = fixture.post("change_stream", body.clone()).await;
    assert_eq!((reply.status, reply.text("outcome")), (200, "switched"), "{reply:?}");
    player.sees("other").await;
    let status = fixture.get("status").await.body;
    assert_eq!((&status["stream_id"], &status["account_name"]), (&reply.body["stream_id"], &json!("list 1")));
    // The same address again has the same number, and the streams of the channel stay as they are.
    let again = fixture.post("change_stream", body).await;
    assert_eq!((again.status, &again.body["stream_id"]), (200, &reply.body["stream_id"]), "{again:?}");
    let id = reply.body["stream_id"].as_u64().unwrap();
    assert_eq!(fixture.admin.get(&format!("/api/channels/streams/{id}/")).await.status, 404);
    let back = fixture.post("change_stream", json!({ "stream_id": fixture.stream(0) })).await;
    assert_eq!(back.status, 200, "{back:?}");
    player.sees("first").await;
    let nobody = json!({ "url": url, "m3u_account": 9_999 });
    let refused = fixture.post("change_stream", nobody).await;
    let message = "This account does not exist, or is not active.";
    assert_eq!((refused.status, &refused.body["url"]), (400, &json!([message])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_stream_reopens_the_only_stream_of_a_channel() {
    let provider = Provider::start();
    provider.path(FIRST).plays(Picture::new("first"));
    let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", FIRST)])).await;
    let admin = Api::first_admin(&gateway).await;
    let fixture = StatusFixture { provider, gateway, admin };
    let player = fixture.watch().await;
    let reply = fixture.post("next_stream", json!({})).await;
    assert_eq!((reply.status, reply.text("outcome")), (200, "reopened"), "{reply:?}");
    assert_eq!(
        (&reply.body["previous_stream_id"], &reply.body["stream_id"]),
        (&json!(fixture.stream(0)), &json!(fixture.stream(0)))
    );
    assert_eq!(fixture.provider.path(FIRST).n_requests(), 2);
    player.more_bytes(50_000).await;
}

/// Holds T-fo.6 over HTTP, for switches that fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_switch_keeps_the_old_stream_and_reports_the_failure() {
    let fixture = set_up().await;
    let player = fixture.watch().await;
    fixture.provider.path(SECOND).answers(MockResponse::status(404));
    let reply = fixture.post("change_stream", json!({ "stream_id": fixture.stream(1) })).await;
    assert_eq!((reply.status, reply.text("outcome")), (502, "failed"), "{reply:?}");
    assert_eq!(reply.body["stream_id"], json!(fixture.stream(0)));
    assert!(reply.text("reason").contains("404"), "{reply:?}");
    assert!(reply.text("detail").ends_with(&format!("Stream {} plays.", fixture.stream(0))), "{reply:?}");
    let status = fixture.get("status").await.body;
    assert_eq!((&status["state"], &status["stream_id"]), (&json!("playing"), &json!(fixture.stream(0))));
    player.more_bytes(50_000).await;
    player.received(|r| assert_eq!(r.ts.labels, ["first"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_switch_during_a_switch_is_refused() {
    let fixture = set_up_with(|it| it.first_packet_timeout = Duration::from_secs(4)).await;
    let _player = fixture.watch().await;
    fixture.provider.path(SECOND).answers(MockResponse::mute());
    let slow = fixture.post("next_stream", json!({}));
    let quick = async {
        eventually("the request of the slow switch", || fixture.provider.path(SECOND).n_requests() == 1)
            .await;
        let shown = fixture.get("status").await.body;
        assert_eq!((&shown["state"], &shown["stream_id"]), (&json!("switching"), &json!(fixture.stream(0))));
        fixture.post("change_stream", json!({ "stream_id": fixture.stream(0) })).await
    };
    let (slow, quick) = tokio::join!(slow, quick);
    assert_eq!((quick.status, quick.text("detail")), (409, "Another switch of this channel is in progress."));
    assert_eq!((slow.status, &slow.body["stream_id"]), (502, &json!(fixture.stream(0))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_timeline_gives_the_reasons_of_failovers_and_stops_also_after_the_end() {
    let fixture = set_up().await;
    assert_eq!(fixture.get("timeline").await.status, 404);
    let player = fixture.watch().await;
    fixture.provider.path(FIRST).answers(MockResponse::status(404)).cut(Cut::Reset);
    player.sees("second").await;
    // A viewer may have the first bytes before the channel has written them into its timeline.
    let mut before = Value::Null;
    until_async("the failover in the timeline", async || {
        before = fixture.get("timeline").await.body;
        before["runs"][0]["entries"].as_array().unwrap().iter().any(|it| it["event"] == "failed_over")
    })
    .await;
    assert_eq!((&before["count"], &before["runs"][0]["ended_at"]), (&json!(1), &Value::Null));
    let entries = before["runs"][0]["entries"].as_array().unwrap();
    let of = |event: &str| entries.iter().filter(|it| it["event"] == event).collect::<Vec<_>>();
    let (lost, failed_over) = (of("lost"), of("failed_over"));
    assert_eq!((&lost[0]["cause"], &lost[0]["stream_id"]), (&json!("reset"), &json!(fixture.stream(0))));
    assert_eq!((&lost[1]["cause"], &lost[1]["upstream_status"]), (&json!("status"), &json!(404)));
    assert_eq!(failed_over.len(), 1);
    let failed_over = failed_over[0];
    assert_eq!(
        (&failed_over["cause"], &failed_over["stream_id"]),
        (&json!("reset"), &json!(fixture.stream(1)))
    );
    assert_eq!((&failed_over["state"], &failed_over["account_name"]), (&json!("playing"), &json!("list 1")));
    assert!(failed_over["gap_ms"].is_u64() && failed_over["bytes_in"].as_u64() > Some(0), "{failed_over}");

    assert_eq!(fixture.post("stop", json!({})).await.status, 200);
    player.ended().await;
    fixture.gateway.until_idle().await;
    let after = fixture.get("timeline").await.body;
    let run = &after["runs"][0];
    let last = run["entries"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["event"], &last["cause"], &last["state"]),
        (&json!("ended"), &json!("stopped"), &json!("stopped"))
    );
    assert!(run["ended_at"].is_string(), "{run}");

    let events =
        checked(fixture.admin.get("/api/core/system-events/?event_type=channel_failover").await).body;
    assert_eq!((&events["total"], &events["events"][0]["details"]["reason"]), (&json!(1), &json!("reset")));
    assert_eq!(events["events"][0]["channel_id"], after["channel_id"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_previewed_stream_is_listed_and_stopped_under_its_own_uuid() {
    let fixture = set_up().await;
    let token = fixture.admin.token(crate::support::api::ADMIN, crate::support::api::PASSWORD).await;
    let path = format!("/proxy/ts/stream/{}?token={}", fixture.stream(1), token.text("access"));
    let player = Player::watch(fixture.gateway.address, &path).await;
    player.sees("second").await;
    let shown = checked(fixture.admin.get("/proxy/ts/status").await).body["channels"][0].clone();
    assert_eq!(
        (&shown["channel_name"], &shown["stream_id"]),
        (&json!("News backup"), &json!(fixture.stream(1)))
    );
    assert_eq!(shown["clients"][0]["username"], crate::support::api::ADMIN);
    let uuid = shown["channel_id"].as_str().unwrap();
    assert_eq!(fixture.admin.get(&format!("/proxy/ts/status/{uuid}")).await.status, 200);
    assert_eq!(fixture.admin.post(&format!("/proxy/ts/stop/{uuid}"), json!({})).await.status, 200);
    player.ended().await;
    assert_eq!(fixture.admin.get(&format!("/proxy/ts/status/{uuid}")).await.status, 404);
}
