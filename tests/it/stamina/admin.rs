//! What admins do while everybody watches: control, changes, refreshes of lists that change and break, and mistakes.

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::house::{House, LOGINS, STREAMS};
use crate::support::random::Random;
use crate::support::upstream::Answer;

/// Extra channels at one time.
const EXTRAS_MAX: usize = 4;

/// Controls what plays.
pub async fn controller(house: &House, mut random: Random, until: Instant) {
    while Instant::now() < until {
        let spot = house.any(&mut random);
        let control = |action: &str| format!("/proxy/ts/{action}/{}", spot.uuid);
        match random.below(9) {
            0 => drop(house.call("POST", &control("stop"), json!({})).await),
            1 | 2 => {
                let status = house.call("GET", &control("status"), Value::Null).await;
                let clients = status.body["clients"].as_array().cloned().unwrap_or_default();
                if !clients.is_empty() {
                    let id = random.pick(&clients)["client_id"].clone();
                    house.call("POST", &control("stop_client"), json!({ "client_id": id })).await;
                }
            }
            3..=5 => drop(house.call("POST", &control("next_stream"), json!({})).await),
            _ => {
                let stream = *random.pick(&spot.streams);
                house.call("POST", &control("change_stream"), json!({ "stream_id": stream })).await;
            }
        }
        random.pause(700).await;
    }
}

/// Changes what there is.
pub async fn editor(house: &House, mut random: Random, until: Instant) {
    while Instant::now() < until {
        match random.below(12) {
            0 | 1 => reorder(house, &mut random).await,
            2 => {
                let login = random.pick(&LOGINS[..]);
                if login.max_streams > 0 && login.name != "pair2" {
                    // Never above what the provider allows, and often below what is in use.
                    let max_streams = 1 + random.below(login.max_streams as u64);
                    account(house, login.name, json!({ "max_streams": max_streams })).await;
                }
            }
            3 => {
                let login = *random.pick(&["many", "open", "pair"]);
                account(house, login, json!({ "is_active": false })).await;
                random.pause(600).await;
                account(house, login, json!({ "is_active": true })).await;
            }
            4 | 5 => user(house, &mut random).await,
            6 => {
                let spot = random.pick(&house.lineup);
                let path = format!("/api/channels/channels/{}/", spot.id);
                house.call("PATCH", &path, json!({ "enabled": false })).await;
                random.pause(300).await;
                house.call("PATCH", &path, json!({ "enabled": true })).await;
            }
            7 | 8 => extras(house, &mut random).await,
            9 => settings(house, &mut random).await,
            10 => passing_account(house, &mut random).await,
            _ => passing_stream(house, &mut random).await,
        }
        random.pause(600).await;
    }
}

async fn reorder(house: &House, random: &mut Random) {
    let spot = random.pick(&house.lineup);
    let mut streams = spot.streams.clone();
    random.shuffle(&mut streams);
    streams.truncate(1 + random.below(streams.len() as u64) as usize);
    let path = format!("/api/channels/channels/{}/", spot.id);
    house.call("PATCH", &path, json!({ "streams": streams })).await;
}

async fn account(house: &House, login: &str, change: Value) {
    let path = format!("/api/m3u/accounts/{}/", house.account(login));
    let said = house.call("PATCH", &path, change).await;
    assert!(matches!(said.status, 200 | 503 | 504), "{said:?}");
}

/// The last two users are made other ones for a while.
async fn user(house: &House, random: &mut Random) {
    let person = &house.people[house.people.len() - 1 - random.below(2) as usize];
    let path = format!("/api/accounts/users/{}/", person.id);
    let change = match random.below(4) {
        0 => json!({ "is_active": false }),
        1 => json!({ "user_level": 1 }),
        2 => json!({ "stream_limit": random.below(3) }),
        _ => json!({ "user_level": 0, "is_active": true }),
    };
    house.call("PATCH", &path, change).await;
    random.pause(500).await;
    house.call("PATCH", &path, json!({ "is_active": true })).await;
}

/// Makes channels and deletes them, watched or not.
async fn extras(house: &House, random: &mut Random) {
    let n = house.extras.lock().len();
    if n < EXTRAS_MAX && !random.once_in(3) {
        let one = random.pick(&house.lineup);
        let other = random.pick(&house.lineup);
        let mut streams = one.streams.clone();
        streams.extend(other.streams.iter().filter(|it| !one.streams.contains(it)));
        let mut spot = house.channel("passing", &streams).await;
        spot.is_rough = one.is_rough || other.is_rough;
        house.extras.lock().push(spot);
    } else if n > 0 {
        let spot = house.extras.lock().remove(random.below(n as u64) as usize);
        house.call("DELETE", &format!("/api/channels/channels/{}/", spot.id), Value::Null).await;
    }
}

async fn settings(house: &House, random: &mut Random) {
    let behind = *random.pick(&[0.0, 0.5, 2.0]);
    let value = match random.below(5) {
        0 => json!({ "channel_shutdown_delay": random.below(4) as f64 / 10.0 }),
        1 => json!({ "new_client_behind_seconds": behind }),
        2 => json!({ "at_limit": random.pick(&["refuse", "replace_own"]) }),
        3 => json!({ "return_to_preferred_after": random.pick(&[Some(1.5), None]) }),
        _ => json!({ "stall_timeout": 0.5 + random.below(10) as f64 / 10.0 }),
    };
    house.call("PATCH", "/api/core/settings/1/", json!({ "value": value })).await;
}

/// An account that is made, fetched, and deleted while one of its streams may play.
async fn passing_account(house: &House, random: &mut Random) {
    let name = format!("passing {}", random.below(1 << 31));
    let url = house.lists.url("/list/open.m3u");
    let body = json!({ "name": name, "server_url": url, "refresh_interval": 0, "max_streams": 1 });
    let made = house.call("POST", "/api/m3u/accounts/", body).await;
    let Some(id) = made.body["id"].as_u64() else { return };
    random.pause(800).await;
    let streams = house.call("GET", &format!("/api/channels/streams/?m3u_account={id}"), Value::Null).await;
    let all =
        streams.body["results"].as_array().or_else(|| streams.body.as_array()).cloned().unwrap_or_default();
    let found: Vec<_> = all.iter().filter_map(|it| it["id"].as_u64()).take(3).collect();
    if !found.is_empty() {
        let spot = house.channel("of a passing account", &found).await;
        house.extras.lock().push(spot);
        random.pause(1_500).await;
    }
    house.call("DELETE", &format!("/api/m3u/accounts/{id}/"), Value::Null).await;
}

/// A stream made by hand that is put in front of a channel and deleted there.
async fn passing_stream(house: &House, random: &mut Random) {
    let url = house.live.url(&super::house::path("open", random.below(STREAMS)));
    let made = house.call("POST", "/api/channels/streams/", json!({ "name": "by hand", "url": url })).await;
    let Some(id) = made.body["id"].as_u64() else { return };
    let spot = random.pick(&house.lineup);
    let streams: Vec<_> = std::iter::once(id).chain(spot.streams.iter().copied()).collect();
    let path = format!("/api/channels/channels/{}/", spot.id);
    house.call("PATCH", &path, json!({ "streams": streams })).await;
    house.call("POST", &format!("/proxy/ts/change_stream/{}", spot.uuid), json!({ "stream_id": id })).await;
    random.pause(800).await;
    house.call("DELETE", &format!("/api/channels/streams/{id}/"), Value::Null).await;
}

/// Has lists refreshed again and again, while they change, break, and lose half of what was in them.
pub async fn importer(house: &House, mut random: Random, until: Instant) {
    while Instant::now() < until {
        let (login, id) = *random.pick(&house.accounts);
        let from = random.below(500);
        let others: Vec<_> = (from..from + random.below(400)).collect();
        let mut streams: Vec<_> = (0..STREAMS).collect();
        random.shuffle(&mut streams);
        let whole = house.list(login, streams.iter().copied(), &others);
        house.offers(
            login,
            match random.below(8) {
                0 => Answer::html(),
                1 => Answer::status(*random.pick(&[401, 404, 500])),
                2 => Answer::empty(),
                3 => {
                    let half = house.list(login, streams.iter().copied().take(STREAMS as usize / 2), &[]);
                    Answer::text("audio/x-mpegurl", half)
                }
                4 => {
                    let mut torn = whole.clone();
                    torn.truncate(torn.len() * 2 / 3);
                    Answer::text("audio/x-mpegurl", torn)
                }
                _ => Answer::text("audio/x-mpegurl", whole),
            },
        );
        let path = format!("/api/m3u/refresh/{id}/");
        let said = house.call("POST", &path, json!({ "confirm": random.once_in(2) })).await;
        if said.status == 202 {
            house.ledger.note(|it| it.imports += 1);
        }
        random.pause(1_200).await;
        house.call("GET", &path, Value::Null).await;
    }
}

/// Looks at everything there is to see, and makes every mistake.
pub async fn reader(house: &House, mut random: Random, until: Instant) {
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
        ("PATCH", format!("/api/m3u/accounts/{}/", house.account("solo")), json!({ "max_streams": -1 })),
        ("PATCH", "/api/core/settings/1/".into(), json!({ "value": { "stall_timeout": -1 } })),
        ("DELETE", "/api/core/streamprofiles/1/".into(), Value::Null),
        ("GET", "/api/channels/channels/seven/".into(), Value::Null),
        ("POST", format!("/proxy/ts/change_stream/{unknown}"), json!({ "stream_id": 1 })),
        ("POST", format!("/proxy/ts/change_stream/{}", house.lineup[0].uuid), json!({})),
        ("POST", format!("/proxy/ts/stop_client/{}", house.lineup[0].uuid), json!({ "client_id": "no" })),
        ("POST", "/api/accounts/token/".into(), json!({ "username": 7 })),
        ("PUT", "/proxy/ts/status".into(), json!({})),
        ("POST", "/api/m3u/refresh/999999/".into(), json!({})),
    ];
    while Instant::now() < until {
        let (method, path, body) = random.pick(&mistakes);
        let said = house.call(method, path, body.clone()).await;
        let is_slow = path.starts_with("/proxy") && matches!(said.status, 503 | 504);
        assert!((400..500).contains(&said.status) || is_slow, "{method} {path} {body}: {said:?}");
        let said = house.call("GET", pages[random.below(10) as usize], Value::Null).await;
        assert!(matches!(said.status, 200 | 503 | 504), "{said:?}");
        let timeline = format!("/proxy/ts/timeline/{}", house.any(&mut random).uuid);
        house.call("GET", &timeline, Value::Null).await;
        sleep(random.millis(100, 600)).await;
    }
}
