//! Admin activity during the load test: stream control, edits, refreshes of changing and broken playlists, and invalid
//! requests.

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::fixture::{LOGINS, LoadTestFixture, STREAMS};
use crate::support::random::Random;
use crate::support::upstream::MockResponse;

/// Maximum number of extra channels at one time.
const EXTRAS_MAX: usize = 4;

/// Controls live channels.
pub async fn controller(fixture: &LoadTestFixture, mut random: Random, until: Instant) {
    while Instant::now() < until {
        let channel = fixture.any(&mut random);
        let control = |action: &str| format!("/proxy/ts/{action}/{}", channel.uuid);
        match random.below(9) {
            0 => drop(fixture.call("POST", &control("stop"), json!({})).await),
            1 | 2 => {
                let status = fixture.call("GET", &control("status"), Value::Null).await;
                let clients = status.body["clients"].as_array().cloned().unwrap_or_default();
                if !clients.is_empty() {
                    let id = random.pick(&clients)["client_id"].clone();
                    fixture.call("POST", &control("stop_client"), json!({ "client_id": id })).await;
                }
            }
            3..=5 => drop(fixture.call("POST", &control("next_stream"), json!({})).await),
            _ => {
                let stream = *random.pick(&channel.streams);
                fixture.call("POST", &control("change_stream"), json!({ "stream_id": stream })).await;
            }
        }
        random.pause(700).await;
    }
}

/// Edits records.
pub async fn editor(fixture: &LoadTestFixture, mut random: Random, until: Instant) {
    while Instant::now() < until {
        match random.below(12) {
            0 | 1 => reorder(fixture, &mut random).await,
            2 => {
                let login = random.pick(&LOGINS[..]);
                if login.configured_max() > 0 && login.name != "pair2" {
                    // Never above the provider's limit, and often below the current use.
                    let max_streams = 1 + random.below(login.max_streams as u64);
                    account(fixture, login.name, json!({ "max_streams": max_streams })).await;
                }
            }
            3 => {
                let login = *random.pick(&["many", "open", "pair"]);
                account(fixture, login, json!({ "is_active": false })).await;
                random.pause(600).await;
                account(fixture, login, json!({ "is_active": true })).await;
            }
            4 | 5 => user(fixture, &mut random).await,
            6 => {
                let channel = random.pick(&fixture.lineup);
                let path = format!("/api/channels/channels/{}/", channel.id);
                fixture.call("PATCH", &path, json!({ "enabled": false })).await;
                random.pause(300).await;
                fixture.call("PATCH", &path, json!({ "enabled": true })).await;
            }
            7 | 8 => extras(fixture, &mut random).await,
            9 => settings(fixture, &mut random).await,
            10 => temporary_account(fixture, &mut random).await,
            _ => temporary_stream(fixture, &mut random).await,
        }
        random.pause(600).await;
    }
}

async fn reorder(fixture: &LoadTestFixture, random: &mut Random) {
    let channel = random.pick(&fixture.lineup);
    let mut streams = channel.streams.clone();
    random.shuffle(&mut streams);
    streams.truncate(1 + random.below(streams.len() as u64) as usize);
    let path = format!("/api/channels/channels/{}/", channel.id);
    fixture.call("PATCH", &path, json!({ "streams": streams })).await;
}

async fn account(fixture: &LoadTestFixture, login: &str, change: Value) {
    let path = format!("/api/m3u/accounts/{}/", fixture.account(login));
    let reply = fixture.call("PATCH", &path, change).await;
    assert!(matches!(reply.status, 200 | 503 | 504), "{reply:?}");
}

/// Changes one of the last two users for a while.
async fn user(fixture: &LoadTestFixture, random: &mut Random) {
    let person = &fixture.users[fixture.users.len() - 1 - random.below(2) as usize];
    let path = format!("/api/accounts/users/{}/", person.id);
    let change = match random.below(4) {
        0 => json!({ "is_active": false }),
        1 => json!({ "user_level": 1 }),
        2 => json!({ "stream_limit": random.below(3) }),
        _ => json!({ "user_level": 0, "is_active": true }),
    };
    fixture.call("PATCH", &path, change).await;
    random.pause(500).await;
    fixture.call("PATCH", &path, json!({ "is_active": true })).await;
}

/// Creates and deletes channels, watched or not.
async fn extras(fixture: &LoadTestFixture, random: &mut Random) {
    let n = fixture.extras.lock().len();
    if n < EXTRAS_MAX && !random.once_in(3) {
        let one = random.pick(&fixture.lineup);
        let other = random.pick(&fixture.lineup);
        let mut streams = one.streams.clone();
        streams.extend(other.streams.iter().filter(|it| !one.streams.contains(it)));
        let mut channel = fixture.channel("passing", &streams).await;
        channel.is_rough = one.is_rough || other.is_rough;
        fixture.extras.lock().push(channel);
    } else if n > 0 {
        let channel = fixture.extras.lock().remove(random.below(n as u64) as usize);
        fixture.call("DELETE", &format!("/api/channels/channels/{}/", channel.id), Value::Null).await;
    }
}

async fn settings(fixture: &LoadTestFixture, random: &mut Random) {
    let behind = *random.pick(&[0.0, 0.5, 2.0]);
    let value = match random.below(5) {
        0 => json!({ "channel_shutdown_delay": random.below(4) as f64 / 10.0 }),
        1 => json!({ "new_client_behind_seconds": behind }),
        2 => json!({ "at_limit": random.pick(&["refuse", "replace_own"]) }),
        3 => json!({ "return_to_preferred_after": random.pick(&[Some(1.5), None]) }),
        _ => json!({ "stall_timeout": 0.5 + random.below(10) as f64 / 10.0 }),
    };
    fixture.call("PATCH", "/api/core/settings/1/", json!({ "value": value })).await;
}

/// Creates an account, imports it, and deletes it while one of its streams may play.
async fn temporary_account(fixture: &LoadTestFixture, random: &mut Random) {
    let name = format!("passing {}", random.below(1 << 31));
    let url = fixture.lists.url("/list/open.m3u");
    let body = json!({ "name": name, "server_url": url, "refresh_interval": 0, "max_streams": 1 });
    let made = fixture.call("POST", "/api/m3u/accounts/", body).await;
    let Some(id) = made.body["id"].as_u64() else { return };
    random.pause(800).await;
    let streams = fixture.call("GET", &format!("/api/channels/streams/?m3u_account={id}"), Value::Null).await;
    let all =
        streams.body["results"].as_array().or_else(|| streams.body.as_array()).cloned().unwrap_or_default();
    let found: Vec<_> = all.iter().filter_map(|it| it["id"].as_u64()).take(3).collect();
    if !found.is_empty() {
        let channel = fixture.channel("of a passing account", &found).await;
        fixture.extras.lock().push(channel);
        random.pause(1_500).await;
    }
    fixture.call("DELETE", &format!("/api/m3u/accounts/{id}/"), Value::Null).await;
}

/// Creates a stream, puts it first in a channel, and deletes it there.
async fn temporary_stream(fixture: &LoadTestFixture, random: &mut Random) {
    let url = fixture.live.url(&super::fixture::path("open", random.below(STREAMS)));
    let made = fixture.call("POST", "/api/channels/streams/", json!({ "name": "by hand", "url": url })).await;
    let Some(id) = made.body["id"].as_u64() else { return };
    let channel = random.pick(&fixture.lineup);
    let streams: Vec<_> = std::iter::once(id).chain(channel.streams.iter().copied()).collect();
    let path = format!("/api/channels/channels/{}/", channel.id);
    fixture.call("PATCH", &path, json!({ "streams": streams })).await;
    fixture
        .call("POST", &format!("/proxy/ts/change_stream/{}", channel.uuid), json!({ "stream_id": id }))
        .await;
    random.pause(800).await;
    fixture.call("DELETE", &format!("/api/channels/streams/{id}/"), Value::Null).await;
}

/// Refreshes playlists repeatedly while they change, break, and lose half of their entries.
pub async fn importer(fixture: &LoadTestFixture, mut random: Random, until: Instant) {
    while Instant::now() < until {
        let (login, id) = *random.pick(&fixture.accounts);
        let from = random.below(500);
        let others: Vec<_> = (from..from + random.below(400)).collect();
        let mut streams: Vec<_> = (0..STREAMS).collect();
        random.shuffle(&mut streams);
        let whole = fixture.list(login, streams.iter().copied(), &others);
        fixture.offers(
            login,
            match random.below(8) {
                0 => MockResponse::html(),
                1 => MockResponse::status(*random.pick(&[401, 404, 500])),
                2 => MockResponse::empty(),
                3 => {
                    let half = fixture.list(login, streams.iter().copied().take(STREAMS as usize / 2), &[]);
                    MockResponse::text("audio/x-mpegurl", half)
                }
                4 => {
                    let mut torn = whole.clone();
                    torn.truncate(torn.len() * 2 / 3);
                    MockResponse::text("audio/x-mpegurl", torn)
                }
                _ => MockResponse::text("audio/x-mpegurl", whole),
            },
        );
        let path = format!("/api/m3u/refresh/{id}/");
        let reply = fixture.call("POST", &path, json!({ "confirm": random.once_in(2) })).await;
        if reply.status == 202 {
            fixture.audit.note(|it| it.imports += 1);
        }
        random.pause(1_200).await;
        fixture.call("GET", &path, Value::Null).await;
    }
}

/// Reads every page and sends every kind of invalid request.
pub async fn reader(fixture: &LoadTestFixture, mut random: Random, until: Instant) {
    let pages = [
        "/api/",
        "/api/accounts/users/",
        "/api/channels/channels/",
        "/api/channels/channels/summary/",
        "/api/channels/groups/",
        "/api/channels/streams/?page_size=50",
        "/api/core/settings/",
        "/api/core/system-events/",
        "/api/m3u/accounts/",
        "/proxy/ts/status",
    ];
    let unknown = "00000000-0000-4000-8000-000000000000";
    let mistakes: Vec<(&'static str, String, Value)> = vec![
        ("POST", "/api/channels/channels/".into(), json!({ "name": "x", "streams": [999_999_999] })),
        ("POST", "/api/channels/channels/".into(), json!({ "name": { "a": 1 } })),
        ("PATCH", "/api/m3u/accounts/999999/".into(), json!({ "max_streams": 1 })),
        ("PATCH", format!("/api/m3u/accounts/{}/", fixture.account("solo")), json!({ "max_streams": -1 })),
        ("PATCH", "/api/core/settings/1/".into(), json!({ "value": { "stall_timeout": -1 } })),
        ("DELETE", "/api/core/streamprofiles/1/".into(), Value::Null),
        ("GET", "/api/channels/channels/seven/".into(), Value::Null),
        ("POST", format!("/proxy/ts/change_stream/{unknown}"), json!({ "stream_id": 1 })),
        ("POST", format!("/proxy/ts/change_stream/{}", fixture.lineup[0].uuid), json!({})),
        ("POST", format!("/proxy/ts/stop_client/{}", fixture.lineup[0].uuid), json!({ "client_id": "no" })),
        ("POST", "/api/accounts/token/".into(), json!({ "username": 7 })),
        ("PUT", "/proxy/ts/status".into(), json!({})),
        ("POST", "/api/m3u/refresh/999999/".into(), json!({})),
    ];
    while Instant::now() < until {
        let (method, path, body) = random.pick(&mistakes);
        let reply = fixture.call(method, path, body.clone()).await;
        let is_slow = path.starts_with("/proxy") && matches!(reply.status, 503 | 504);
        assert!((400..500).contains(&reply.status) || is_slow, "{method} {path} {body}: {reply:?}");
        let reply = fixture.call("GET", pages[random.below(10) as usize], Value::Null).await;
        assert!(matches!(reply.status, 200 | 503 | 504), "{reply:?}");
        let timeline = format!("/proxy/ts/timeline/{}", fixture.any(&mut random).uuid);
        fixture.call("GET", &timeline, Value::Null).await;
        sleep(random.millis(100, 600)).await;
    }
}
