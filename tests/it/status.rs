//! An admin looks at what plays, takes control of it, and asks afterwards why it happened.

use std::time::Duration;

use domain::settings::Settings;
use serde_json::{Value, json};

use crate::support::api::{Api, Said};
use crate::support::client::Player;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::{Answer, Cut, Provider};
use crate::support::{eventually, until_async};

/// Part of the addresses of streams, and of nothing that anybody is told.
const SECRET: &str = "hidden-5p1c3";
const FIRST: &str = "/live/anna/hidden-5p1c3/first.ts";
const SECOND: &str = "/live/anna/hidden-5p1c3/second.ts";

struct House {
    provider: Provider,
    gateway: TestGateway,
    admin: Api,
}

/// One channel of two streams.
async fn house_with(change: impl FnOnce(&mut Settings)) -> House {
    let provider = Provider::start();
    provider.path(FIRST).plays(Picture::new("first"));
    provider.path(SECOND).plays(Picture::new("second").pids(0x20, 0x41, 0x42).starts_at(77));
    let list = provider.playlist(&[("news", "News", FIRST), ("news", "News backup", SECOND)]);
    let gateway = Setup::new().list(&list).engine(change).start().await;
    let admin = Api::first_admin(&gateway).await;
    House { provider, gateway, admin }
}

async fn house() -> House {
    house_with(|_| {}).await
}

impl House {
    /// The path of an action on the channel.
    fn on(&self, action: &str) -> String {
        format!("/proxy/ts/{action}/{}", self.gateway.channel("News").uuid)
    }

    async fn get(&self, action: &str) -> Said {
        told(self.admin.get(&self.on(action)).await)
    }

    async fn post(&self, action: &str, body: Value) -> Said {
        told(self.admin.post(&self.on(action), body).await)
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

/// Whatever is told, no credential is.
#[track_caller]
fn told(said: Said) -> Said {
    let text = said.answer.text();
    assert!(!text.contains(SECRET) && !text.contains("/live/"), "{text}");
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_shows_what_plays_and_to_whom_until_it_has_ended() {
    let house = house().await;
    let nothing = json!({ "channels": [], "count": 0 });
    assert_eq!(house.admin.get("/proxy/ts/status").await.body, nothing);
    assert_eq!(house.get("status").await.status, 404);

    let players = [house.watch().await, house.watch().await];
    for address in [house.gateway.address, house.gateway.api] {
        let all = told(house.admin.at(address).get("/proxy/ts/status").await);
        assert_eq!((all.status, &all.body["count"]), (200, &json!(1)));
        assert_eq!(all.body["channels"].as_array().map(Vec::len), Some(1));
        let one = &all.body["channels"][0];
        let uuid = house.gateway.channel("News").uuid;
        assert_eq!((&one["channel_id"], &one["channel_name"]), (&json!(uuid), &json!("News")));
        assert_eq!((&one["state"], &one["stream_id"]), (&json!("playing"), &json!(house.stream(0))));
        assert_eq!((&one["stream_name"], &one["client_count"]), (&json!("News"), &json!(2)));
        assert_eq!((&one["failovers"], &one["losses"]), (&json!(0), &json!(0)));
        assert_eq!(one["url"], format!("http://{}/…", house.provider.address));
        assert!(one["bytes_in"].as_u64() > Some(0), "{one}");
        let clients = one["clients"].as_array().unwrap();
        assert_eq!(clients.len(), 2);
        for client in clients {
            assert_eq!((&client["ip_address"], &client["user_id"]), (&json!("127.0.0.1"), &json!("0")));
            assert!(client["bytes_sent"].as_u64() > Some(0), "{client}");
            assert!(client["connected_at"].as_str().is_some_and(|it| it.ends_with('Z')), "{client}");
        }
        let alone = house.get("status").await.body;
        assert_eq!((&alone["state"], &alone["client_count"]), (&one["state"], &one["client_count"]));
    }
    for player in players {
        player.leave().await;
    }
    house.gateway.is_quiet().await;
    assert_eq!(house.get("status").await.status, 404);
    assert_eq!(house.admin.get("/proxy/ts/status").await.body, nothing);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_is_true_while_nothing_plays() {
    let house = house().await;
    let player = house.watch().await;
    for path in [FIRST, SECOND] {
        house.provider.path(path).answers(Answer::status(404)).cut(Cut::Reset);
    }
    until_async("a channel without a stream", async || house.get("status").await.body["stream_id"].is_null())
        .await;
    let status = house.get("status").await.body;
    assert!(["opening", "resting"].contains(&status["state"].as_str().unwrap()), "{status}");
    assert!(status["losses"].as_u64() >= Some(1), "{status}");
    assert_eq!(
        (&status["client_count"], &status["stream_name"], &status["url"]),
        (&json!(1), &Value::Null, &Value::Null)
    );
    assert!(player.is_watching());
    house.provider.path(SECOND).plays(Picture::new("second"));
    player.sees("second").await;
    let status = house.get("status").await.body;
    assert_eq!((&status["stream_id"], &status["failovers"]), (&json!(house.stream(1)), &json!(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_is_stopped_has_ended_for_everybody_when_the_answer_is_there() {
    let house = house().await;
    for method in ["POST", "DELETE"] {
        let player = house.watch().await;
        let said = house.admin.send(method, &house.on("stop"), json!({})).await;
        assert_eq!(
            (said.status, said.text("outcome"), said.text("previous_state")),
            (200, "stopped", "playing")
        );
        assert_eq!((said.text("channel_name"), &said.body["client_count"]), ("News", &json!(1)));
        assert_eq!(house.get("status").await.status, 404);
        player.ended().await;
        assert_eq!(house.admin.send(method, &house.on("stop"), json!({})).await.status, 404);
        house.gateway.is_quiet().await;
    }
    assert_eq!(house.provider.open(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_stopped_is_gone_the_others_watch_on_and_an_unknown_one_is_not_found() {
    let house = house().await;
    let players = [house.watch().await, house.watch().await];
    let clients = house.get("status").await.body["clients"].clone();
    let id = clients[0]["client_id"].as_str().unwrap();
    let said = house.post("stop_client", json!({ "client_id": id })).await;
    assert_eq!((said.status, said.text("client_id")), (200, id));
    let status = house.get("status").await.body;
    assert_eq!(
        (&status["client_count"], &status["clients"][0]["client_id"]),
        (&json!(1), &clients[1]["client_id"])
    );
    eventually("one who watches", || players.iter().filter(|it| it.is_watching()).count() == 1).await;
    for unknown in [id, "4711", "nobody", "-1"] {
        let said = house.post("stop_client", json!({ "client_id": unknown })).await;
        assert_eq!(
            (said.status, said.text("detail")),
            (404, &*format!("The channel has no client {unknown}."))
        );
    }
    let rest = players.iter().find(|it| it.is_watching()).unwrap();
    rest.more_bytes(50_000).await;
}

/// Holds T-fo.6 at this door, the half that goes well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_stream_plays_when_the_answer_says_so_whichever_way_it_was_asked_for() {
    let house = house().await;
    let player = house.watch().await;
    let (first, second) = (house.stream(0), house.stream(1));
    let url = |path: &str| json!({ "url": house.provider.url(path) });
    for (action, body, to, from, label) in [
        ("next_stream", json!({}), second, first, "second"),
        ("change_stream", json!({ "stream_id": first }), first, second, "first"),
        ("change_stream", url(SECOND), second, first, "second"),
        ("next_stream", Value::Null, first, second, "first"),
    ] {
        let said = house.post(action, body).await;
        assert_eq!((said.status, said.text("outcome")), (200, "switched"), "{said:?}");
        assert_eq!((&said.body["stream_id"], &said.body["new_stream_id"]), (&json!(to), &json!(to)));
        assert_eq!((&said.body["previous_stream_id"], &said.body["gap_ms"]), (&json!(from), &json!(0)));
        let status = house.get("status").await.body;
        assert_eq!((&status["stream_id"], &status["stream_name"]), (&json!(to), &said.body["stream_name"]));
        player.sees(label).await;
    }
    player.received(|r| r.ts.assert_clean());
    let asked = house.provider.requests().len();
    for (field, value) in [
        ("url", json!("http://127.0.0.1:1/elsewhere.ts")),
        ("stream_id", json!(99)),
        ("url", json!(house.provider.url("/other.ts"))),
    ] {
        let said = house.post("change_stream", json!({ field: value })).await;
        let error = "This is no stream of this channel that could be played.";
        assert_eq!((said.status, said.body), (400, json!({ field: [error] })));
    }
    assert_eq!(house.provider.requests().len(), asked, "nothing is opened that is no stream of the channel");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_stream_of_a_channel_with_only_one_is_that_one_opened_again() {
    let provider = Provider::start();
    provider.path(FIRST).plays(Picture::new("first"));
    let gateway = TestGateway::of(&provider.playlist(&[("news", "News", FIRST)])).await;
    let admin = Api::first_admin(&gateway).await;
    let house = House { provider, gateway, admin };
    let player = house.watch().await;
    let said = house.post("next_stream", json!({})).await;
    assert_eq!((said.status, said.text("outcome")), (200, "reopened"), "{said:?}");
    assert_eq!(
        (&said.body["previous_stream_id"], &said.body["stream_id"]),
        (&json!(house.stream(0)), &json!(house.stream(0)))
    );
    assert_eq!(house.provider.path(FIRST).n_requests(), 2);
    player.more_bytes(50_000).await;
}

/// Holds T-fo.6 at this door, the half that goes wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_to_a_stream_that_does_not_play_leaves_the_old_one_and_says_so() {
    let house = house().await;
    let player = house.watch().await;
    house.provider.path(SECOND).answers(Answer::status(404));
    let said = house.post("change_stream", json!({ "stream_id": house.stream(1) })).await;
    assert_eq!((said.status, said.text("outcome")), (502, "failed"), "{said:?}");
    assert_eq!(said.body["stream_id"], json!(house.stream(0)));
    assert!(said.text("reason").contains("404"), "{said:?}");
    assert!(said.text("detail").ends_with(&format!("Stream {} plays.", house.stream(0))), "{said:?}");
    let status = house.get("status").await.body;
    assert_eq!((&status["state"], &status["stream_id"]), (&json!("playing"), &json!(house.stream(0))));
    player.more_bytes(50_000).await;
    player.received(|r| assert_eq!(r.ts.labels, ["first"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_switches_at_once_the_second_is_told_that_one_is_under_way() {
    let house = house_with(|it| it.first_packet_timeout = Duration::from_secs(4)).await;
    let _player = house.watch().await;
    house.provider.path(SECOND).answers(Answer::mute());
    let slow = house.post("next_stream", json!({}));
    let quick = async {
        eventually("the slow one to be tried", || house.provider.path(SECOND).n_requests() == 1).await;
        let shown = house.get("status").await.body;
        assert_eq!((&shown["state"], &shown["stream_id"]), (&json!("switching"), &json!(house.stream(0))));
        house.post("change_stream", json!({ "stream_id": house.stream(0) })).await
    };
    let (slow, quick) = tokio::join!(slow, quick);
    assert_eq!((quick.status, quick.text("detail")), (409, "Another switch of this channel is under way."));
    assert_eq!((slow.status, &slow.body["stream_id"]), (502, &json!(house.stream(0))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_timeline_says_why_a_channel_failed_over_and_why_it_stopped_also_afterwards() {
    let house = house().await;
    assert_eq!(house.get("timeline").await.status, 404);
    let player = house.watch().await;
    house.provider.path(FIRST).answers(Answer::status(404)).cut(Cut::Reset);
    player.sees("second").await;
    let before = house.get("timeline").await.body;
    assert_eq!((&before["count"], &before["runs"][0]["ended_at"]), (&json!(1), &Value::Null));
    let entries = before["runs"][0]["entries"].as_array().unwrap();
    let of = |event: &str| entries.iter().filter(|it| it["event"] == event).collect::<Vec<_>>();
    let (lost, failed_over) = (of("lost"), of("failed_over"));
    assert_eq!((&lost[0]["cause"], &lost[0]["stream_id"]), (&json!("reset"), &json!(house.stream(0))));
    assert_eq!((&lost[1]["cause"], &lost[1]["upstream_status"]), (&json!("status"), &json!(404)));
    assert_eq!(failed_over.len(), 1);
    let failed_over = failed_over[0];
    assert_eq!(
        (&failed_over["cause"], &failed_over["stream_id"]),
        (&json!("reset"), &json!(house.stream(1)))
    );
    assert_eq!((&failed_over["state"], &failed_over["account_name"]), (&json!("playing"), &json!("list 1")));
    assert!(failed_over["gap_ms"].is_u64() && failed_over["bytes_in"].as_u64() > Some(0), "{failed_over}");

    assert_eq!(house.post("stop", json!({})).await.status, 200);
    player.ended().await;
    house.gateway.is_quiet().await;
    let after = house.get("timeline").await.body;
    let run = &after["runs"][0];
    let last = run["entries"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["event"], &last["cause"], &last["state"]),
        (&json!("ended"), &json!("stopped"), &json!("stopped"))
    );
    assert!(run["ended_at"].is_string(), "{run}");

    let events = told(house.admin.get("/api/core/system-events/?event_type=channel_failover").await).body;
    assert_eq!((&events["total"], &events["events"][0]["details"]["reason"]), (&json!(1), &json!("reset")));
    assert_eq!(events["events"][0]["channel_id"], after["channel_id"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_looked_at_by_itself_is_shown_and_stopped_under_a_uuid_of_its_own() {
    let house = house().await;
    let token = house.admin.token(crate::support::api::ADMIN, crate::support::api::PASSWORD).await;
    let path = format!("/proxy/ts/stream/{}?token={}", house.stream(1), token.text("access"));
    let player = Player::watch(house.gateway.address, &path).await;
    player.sees("second").await;
    let shown = told(house.admin.get("/proxy/ts/status").await).body["channels"][0].clone();
    assert_eq!(
        (&shown["channel_name"], &shown["stream_id"]),
        (&json!("News backup"), &json!(house.stream(1)))
    );
    assert_eq!(shown["clients"][0]["username"], crate::support::api::ADMIN);
    let uuid = shown["channel_id"].as_str().unwrap();
    assert_eq!(house.admin.get(&format!("/proxy/ts/status/{uuid}")).await.status, 200);
    assert_eq!(house.admin.post(&format!("/proxy/ts/stop/{uuid}"), json!({})).await.status, 200);
    player.ended().await;
    assert_eq!(house.admin.get(&format!("/proxy/ts/status/{uuid}")).await.status, 404);
}
