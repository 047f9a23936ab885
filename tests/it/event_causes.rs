//! Events about guides, recordings and films at the target of a webhook: once for each cause, with all their values.

use std::collections::BTreeSet;

use domain::event::{Event, EventBody};
use domain::user::UserLevel;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::guide::fixture::guide;
use crate::recordings::{LIST as RECORDINGS, Studio};
use crate::support::api::{ADMIN, Api};
use crate::support::client::Request;
use crate::support::upstream::MockResponse;
use crate::support::users::create_user;
use crate::support::web_target::WebTarget;
use crate::support::{eventually, until_async};
use crate::vod_play::{Cinema, movie_uuid};

const SOURCES: &str = "/api/epg/sources/";
const IMPORT: &str = "/api/epg/import/";
const HOOK: &str = "/hook";

/// A target that is subscribed to some events, and to the mark at the end of them.
struct Subscriber {
    target: WebTarget,
    admin: Api,
    names: &'static [&'static str],
}

impl Subscriber {
    async fn to(names: &'static [&'static str], admin: &Api) -> Self {
        let target = WebTarget::start();
        let events: Vec<&str> = names.iter().copied().chain(["login_failed"]).collect();
        let body = json!({ "name": "Hook", "type": "webhook", "url": target.url(HOOK), "events": events });
        let made = admin.post("/api/connect/integrations/", body).await;
        assert_eq!(made.status, 201, "{made:?}");
        Self { target, admin: admin.clone(), names }
    }

    fn named(&self, name: &str) -> Vec<Value> {
        let all = self.target.requests(HOOK).into_iter().map(|it| it.json());
        all.filter(|it| it["event_type"] == name).collect()
    }

    async fn until(&self, name: &str, n: usize) {
        eventually(name, || self.named(name).len() >= n).await;
    }

    /// Waits until each event has arrived `n` times, and until everything that was caused before has arrived: a webhook
    /// gets one delivery after the other. Returns the events in the order of their names.
    async fn exactly(&self, n: usize) -> Vec<Vec<Value>> {
        for name in self.names {
            self.until(name, n).await;
        }
        let mark = Uuid::new_v4().to_string();
        let body = json!({ "username": "nobody", "password": "wrong" }).to_string();
        let login = Request::get("/api/accounts/token/").method("POST").header("User-Agent", &mark);
        self.admin.without_credentials().ask(login.body("application/json", body)).await;
        eventually("the mark", || self.named("login_failed").iter().any(|it| it["user_agent"] == *mark))
            .await;
        let all: Vec<_> = self.names.iter().map(|it| self.named(it)).collect();
        for (name, events) in self.names.iter().zip(&all) {
            assert_eq!(events.len(), n, "{name}: {events:?}");
            events.iter().for_each(check_payload);
        }
        let ids = all.iter().flatten().map(|it| it["event_id"].as_str().unwrap().parse::<Uuid>().unwrap());
        assert_eq!(ids.collect::<BTreeSet<_>>().len(), n * self.names.len(), "{all:?}");
        all
    }
}

/// Checks that a payload has the keys that the event has, with values of the same types, and its id.
fn check_payload(payload: &Value) {
    let name = payload["event_type"].as_str().unwrap();
    let body = EventBody::sample(name).unwrap();
    let mut expected = serde_json::to_value(Event { at: 0, body }).unwrap();
    expected["event_id"] = json!("");
    let types = |it: &Value| -> Vec<(String, String)> {
        let type_of = |it: &Value| match it {
            Value::String(_) => "a text",
            Value::Number(_) => "a number",
            Value::Bool(_) => "a truth value",
            _ => "something else",
        };
        let members = it.as_object().unwrap().iter();
        members.map(|(key, value)| (key.clone(), type_of(value).to_owned())).collect()
    };
    assert_eq!(types(payload), types(&expected), "{payload}");
    let at = payload["timestamp"].as_str().unwrap();
    assert!(at.parse::<jiff::Timestamp>().is_ok() && at.ends_with('Z'), "{payload}");
}

// Holds T-int.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_refresh_of_a_guide_is_delivered_once() {
    let studio = Studio::start().await;
    let subscriber = Subscriber::to(&["epg_refresh"], &studio.admin).await;
    let now = actors::now_ms() / 1000;
    let path = "/guide.xml?key=hunter2";
    let text = guide(3, 20, now - now % 3_600);
    studio.provider.path(path).answers(MockResponse::text("text/xml", text));
    let source = json!({ "name": "Guide", "source_type": "xmltv", "url": studio.provider.url(path) });
    let made = studio.admin.post(SOURCES, source).await;
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.body["id"].clone();
    subscriber.until("epg_refresh", 1).await;
    let one = format!("{SOURCES}{id}/");
    let refresh = async || {
        // The event leaves before the refresh has ended, and a refresh that runs is not begun again.
        until_async("no refresh", async || studio.admin.get(&one).await.body["status"] == "success").await;
        let started = studio.admin.post(IMPORT, json!({ "id": id })).await;
        assert_eq!(started.status, 202, "{started:?}");
    };
    refresh().await;
    subscriber.until("epg_refresh", 2).await;
    // One that fails has no event.
    studio.provider.path(path).answers(MockResponse::status(500));
    refresh().await;
    until_async("the failure", async || studio.admin.get(&one).await.body["status"] == "error").await;
    let [events] = &subscriber.exactly(2).await[..] else { panic!("one kind of event") };
    for (event, is_unchanged) in events.iter().zip([false, true]) {
        for (key, value) in [
            ("source_name", json!("Guide")),
            ("source_id", id.clone()),
            ("channels", json!(3)),
            ("programs", json!(60)),
            ("programs_updated", json!(60)),
            ("skipped_programs", json!(0)),
            ("unmapped_channels", json!(3)),
            ("unchanged", json!(is_unchanged)),
        ] {
            assert_eq!(event[key], value, "{key} of {event}");
        }
        assert!(!event.to_string().contains("hunter2"), "{event}");
    }
}

// Holds T-int.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_start_and_the_end_of_each_recording_are_delivered_once() {
    let studio = Studio::start().await;
    let subscriber = Subscriber::to(&["recording_start", "recording_end"], &studio.admin).await;
    let stopped = studio.recorded().await;
    // One that is deleted while it runs ends, too.
    let deleted = studio.record().await;
    studio.until_size(deleted, 100_000).await;
    assert_eq!(studio.admin.delete(&format!("{RECORDINGS}{deleted}/")).await.status, 204);

    let shown = studio.get(stopped).await;
    let channel = studio.admin.get("/api/channels/channels/").await.body["results"][0].clone();
    let [starts, ends] = &subscriber.exactly(2).await[..] else { panic!("two kinds of events") };
    for (n, id) in [stopped, deleted].into_iter().enumerate() {
        for event in [&starts[n], &ends[n]] {
            assert_eq!(event["recording_id"], id.to_string(), "{event}");
            assert_eq!((&event["channel_id"], &event["channel_name"]), (&channel["uuid"], &json!("News")));
            let number = channel["channel_number"].as_f64().map(|it| it.to_string());
            assert_eq!(event["channel_number"].as_str(), Some(&*number.expect("a number")), "{event}");
        }
        assert_eq!(starts[n]["program_title"], ends[n]["program_title"]);
        assert_eq!((&starts[n]["duration_seconds"], &starts[n]["file_size_bytes"]), (&json!(0), &json!(0)));
        assert_eq!(ends[n]["bytes_written"], ends[n]["file_size_bytes"]);
    }
    let end = &ends[0];
    assert_eq!((&end["file_size_bytes"], &end["interrupted"]), (&shown["file_size"], &json!(false)), "{end}");
    let file = end["file_path"].as_str().unwrap();
    assert!(file.ends_with(shown["file_name"].as_str().unwrap()), "{end}");
}

// Holds T-int.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_session_of_a_film_is_delivered_once() {
    let cinema = Cinema::with(1_000_000, 1).await;
    let admin = create_user(&cinema.gateway, ADMIN, |it| it.level = UserLevel::Admin).await;
    let admin = Api::stranger(&cinema.gateway).key(&admin.api_key);
    let subscriber = Subscriber::to(&["vod_start", "vod_stop"], &admin).await;
    // One player that asks for parts watches once.
    for n_watched in 1..=2 {
        cinema.reads("", "TV", 0..1_000_000).await;
        cinema.reads("bytes=500000-599999", "TV", 500_000..600_000).await;
        cinema.is_quiet().await;
        subscriber.until("vod_stop", n_watched).await;
    }
    let [starts, stops] = &subscriber.exactly(2).await[..] else { panic!("two kinds of events") };
    for (start, stop) in starts.iter().zip(stops) {
        for event in [start, stop] {
            for (key, value) in [
                ("content_type", json!("movie")),
                ("content_uuid", json!(movie_uuid())),
                ("client_ip", json!("127.0.0.1")),
                ("user_agent", json!("TV")),
                ("username", json!("anna")),
            ] {
                assert_eq!(event[key], value, "{key} of {event}");
            }
            assert!(event["content_name"].as_str().unwrap().contains("Title 7"), "{event}");
            assert_eq!(event["client_id"], start["client_id"]);
        }
        assert_eq!(stop["bytes_sent"], 1_100_000);
    }
    assert_ne!(starts[0]["client_id"], starts[1]["client_id"]);
}
