//! The past of a channel at every address that offers it, and what admins see of it.

use std::time::Duration;

use domain::user::CATCHUP_ENABLED;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::api::{ADMIN, Api, PASSWORD};
use crate::support::client::{Player, Reading, Request, fetch};
use crate::support::files::FileProvider;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::{Picture, Programme};
use crate::support::ts_check::Checker;
use crate::support::upstream::{Cut, MockResponse, Provider};
use crate::support::users::{TestUser, change_user, create_user};
use crate::support::websocket::WebSocketClient;
use crate::support::{eventually, until_async};

/// A rate at which no part of these tests ends.
const SLOWLY: Reading = Reading::BytesPerSecond(50_000);

/// A provider that admits one connection, with an archive of two days of the channel News; Other has none.
struct Broadcaster {
    provider: FileProvider,
    gateway: TestGateway,
    anna: TestUser,
    file: Vec<u8>,
}

impl Broadcaster {
    async fn start() -> Broadcaster {
        let file: Vec<u8> =
            (0..3_000_000_u32).map(|it| (it.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let provider = FileProvider::start(file.clone()).await;
        provider.limit(1);
        let list = format!(
            "#EXTM3U\n#EXTINF:-1 catchup=\"default\" catchup-days=\"2\" catchup-source=\"{}\",News\n{}\n\
             #EXTINF:-1,Other\n{}\n",
            provider.url("/past/{utc}-{duration}.ts"),
            provider.url("/live/1.ts"),
            provider.url("/live/2.ts"),
        );
        let gateway = Setup::new().limited_list(&list, 1).start().await;
        let anna = create_user(&gateway, "anna", |_| {}).await;
        Broadcaster { provider, gateway, anna, file }
    }

    /// Returns the path without the number of the request: `/past/START-DURATION.ts`.
    fn last_part(&self) -> String {
        self.provider.requests().last().expect("a request").0.clone()
    }

    async fn plays(&self, path: &str) {
        let answer = fetch(self.gateway.address, Request::get(path)).await;
        assert_eq!(answer.status(), 200, "{path}: {}", answer.text());
        assert!(answer.bytes == self.file, "{path}: other bytes");
    }
}

/// Returns name and password as the parameters of a query.
fn login(user: &TestUser) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("username", &user.name).append_pair("password", &user.password).finish()
}

fn now() -> i64 {
    Timestamp::now().as_second()
}

fn written(at: i64, format: &str) -> String {
    Timestamp::from_second(at).unwrap().strftime(format).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_address_with_a_time_plays_the_past_of_the_channel() {
    let tv = Broadcaster::start().await;
    let news = tv.gateway.channel("News");
    let yesterday = now() / 60 * 60 - 86_400;
    let live = tv.anna.live(&news.id.to_string());
    let short = tv.anna.path(&news.id.to_string());
    let by_uuid = format!("/proxy/ts/stream/{}", news.uuid);
    let by_number = format!("/auto/v{}", news.number.expect("a number"));
    let parts = [
        (format!("{live}?utc={yesterday}&lutc={}", now()), 7_200),
        (format!("{live}.ts?utc={yesterday}&duration=600"), 600),
        (format!("{live}?utc={yesterday}&lutc={{lutc}}&duration={{duration}}"), 7_200),
        (format!("{live}?utc={yesterday}&utcend={}", yesterday + 900), 900),
        (format!("{live}?utc={yesterday}&duration=99999999"), 28_800),
        (format!("{short}?utc={}&lutc=1", written(yesterday, "%Y-%m-%dT%H:%M:%SZ")), 7_200),
        (format!("{by_uuid}?utc={}", written(yesterday, "%Y-%m-%d:%H-%M")), 7_200),
        (format!("{by_number}?utc={}&duration=60", written(yesterday, "%Y%m%d%H%M%S")), 60),
    ];
    for (path, duration) in parts {
        tv.plays(&path).await;
        assert_eq!(tv.last_part(), format!("/past/{yesterday}-{duration}.ts"), "{path}");
    }
    let ranged = Request::get(format!("{live}?utc={yesterday}")).header("Range", "bytes=2000000-");
    let part = fetch(tv.gateway.address, ranged).await;
    assert_eq!((part.status(), part.bytes == tv.file[2_000_000..]), (206, true));
    let other = tv.anna.live(&tv.gateway.channel("Other").id.to_string());
    for (path, status, reason) in [
        (format!("{live}?utc=yesterday"), 400, "invalid start"),
        (format!("{other}?utc={yesterday}"), 400, "the channel has no archive"),
        (format!("{live}?utc={}", yesterday - 2 * 86_400), 404, "2 days"),
    ] {
        let answer = fetch(tv.gateway.address, Request::get(&path)).await;
        assert_eq!(answer.status(), status, "{path}: {}", answer.text());
        assert!(answer.text().contains(reason), "{path}: {}", answer.text());
    }
    // A time that is not past plays the channel.
    let before = tv.provider.requests().len();
    let player = Player::ask(tv.gateway.address, Request::get(format!("{live}?utc={}", now() + 60))).await;
    eventually("the live stream", || tv.provider.requests().len() > before).await;
    assert_eq!(tv.last_part(), "/live/1.ts");
    drop(player);
    tv.gateway.until_idle().await;
    assert_eq!((tv.provider.peak(), tv.provider.n_refused()), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_playlists_offer_plays_in_the_form_of_players() {
    let tv = Broadcaster::start().await;
    let login = login(&tv.anna);
    let playlist = fetch(tv.gateway.address, Request::get(format!("/get.php?{login}"))).await.text();
    let (_, source) = playlist.split_once("catchup-source=\"").expect("a source");
    let source = source.split('"').next().unwrap();
    let origin = format!("http://{}", tv.gateway.address);
    let start = now() - 7_200;
    let path = source.strip_prefix(&origin).expect("an address of the gateway");
    let path = path.replace("{utc}", &start.to_string()).replace("{lutc}", &now().to_string());
    tv.plays(&path.replace("{duration}", "1800")).await;
    assert_eq!(tv.last_part(), format!("/past/{start}-1800.ts"));
    assert_eq!(playlist.matches("catchup-source").count(), 1, "{playlist}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admins_are_told_who_watches_the_past_of_channels() {
    let tv = Broadcaster::start().await;
    let news = tv.gateway.channel("News").uuid;
    let admin = Api::first_admin(&tv.gateway).await;
    let token = admin.token(ADMIN, PASSWORD).await;
    let path = format!("/ws/?token={}", token.text("access"));
    let mut listener = WebSocketClient::open(tv.gateway.address, &path, &[]).await.unwrap();
    let api = Api::stranger(&tv.gateway).key(&tv.anna.api_key);
    let body = json!({ "channel_uuid": news, "start": (now() - 3_600).to_string(), "duration": 30 });
    let made = api.post("/api/catchup/sessions/", body).await;
    let origin = format!("http://{}", tv.gateway.address);
    let path = made.text("playback_url").strip_prefix(&origin).unwrap().to_owned();
    let request = Request::get(path).without_recording().reading(SLOWLY);
    let player = Player::ask(tv.gateway.address, request).await;
    assert_eq!(player.status().await, 200);
    let n_sessions = |it: &Value| it["stats"]["total_connections"].as_u64().unwrap();
    let began = listener.until("timeshift_stats", |it| n_sessions(it) == 1).await;
    let session = &began["stats"]["timeshift_sessions"][0];
    assert_eq!((&session["channel_name"], &session["playback_base_secs"]), (&json!("News"), &Value::Null));
    let name = session["session_id"].as_str().unwrap();
    let told = json!({ "position_secs": 12.5, "paused": true });
    assert_eq!(api.post(&format!("/api/catchup/sessions/{name}/position/"), told).await.status, 204);
    let is_told = |it: &Value| it["stats"]["timeshift_sessions"][0]["playback_base_secs"] == 12.5;
    listener.until("timeshift_stats", is_told).await;
    assert_eq!(admin.delete(&format!("/api/catchup/sessions/{name}/")).await.status, 204);
    player.read(Reading::Freely);
    player.ended().await;
    listener.until("timeshift_stats", |it| n_sessions(it) == 0).await;
    tv.gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_plays_the_past_with_an_address_of_its_own_and_admins_see_and_end_it() {
    let tv = Broadcaster::start().await;
    let news = tv.gateway.channel("News").uuid;
    let api = Api::stranger(&tv.gateway).key(&tv.anna.api_key);
    let start = now() - 3_600;
    let body = json!({ "channel_uuid": news, "start": start.to_string(), "duration": 30 });
    let made = api.post("/api/catchup/sessions/", body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let origin = format!("http://{}", tv.gateway.address);
    let path = made.text("playback_url").strip_prefix(&origin).unwrap().to_owned();
    // For this channel and nothing else.
    let other = path.replace(&news.to_string(), &tv.gateway.channel("Other").uuid.to_string());
    assert_eq!(fetch(tv.gateway.address, Request::get(other)).await.status(), 401);
    let request = Request::get(&path).without_recording().reading(SLOWLY);
    let player = Player::ask(tv.gateway.address, request).await;
    assert_eq!(player.status().await, 200);
    assert_eq!(tv.last_part(), format!("/past/{start}-1800.ts"));
    let admin = Api::first_admin(&tv.gateway).await;
    let session = made.text("session_id").to_owned();
    let stats = admin.get("/proxy/catchup/stats").await.body;
    let seen = &stats["timeshift_sessions"][0];
    assert_eq!(
        (&seen["session_id"], &seen["channel_name"], &seen["connections"][0]["username"]),
        (&json!(session), &json!("News"), &json!("anna"))
    );
    let programme_start: Timestamp = seen["programme_start"].as_str().unwrap().parse().unwrap();
    assert_eq!((programme_start.as_second(), &stats["total_connections"]), (start, &json!(1)));
    let all = admin.get("/proxy/stats").await.body;
    assert_eq!(
        (&all["catchup"]["total_connections"], &all["vod"]["total_connections"]),
        (&json!(1), &json!(0))
    );
    // The player tells where its viewer is.
    let position = format!("/api/catchup/sessions/{session}/position/");
    let told = json!({ "position_secs": 12.5, "paused": true });
    assert_eq!(api.post(&position, told.clone()).await.status, 204);
    let seen = admin.get("/proxy/catchup/stats").await.body["timeshift_sessions"][0].clone();
    assert_eq!((&seen["playback_base_secs"], &seen["paused"]), (&json!(12.5), &json!(true)));
    assert!(seen["position_anchor_at"].is_string(), "{seen}");
    let wrong = api.post(&position, json!({ "position_secs": -1 })).await;
    assert!(wrong.status == 400 && wrong.body["position_secs"].is_array(), "{wrong:?}");
    let slots = admin.get("/api/m3u/slots/").await.body;
    let slot = slots["profiles"].as_array().unwrap().iter().find_map(|it| it["slots"].get(0));
    assert_eq!(slot.expect("a slot in use")["purpose"], "catchup");
    // Another user neither sees nor ends it.
    let bert = create_user(&tv.gateway, "bert", |_| {}).await;
    let bert = Api::stranger(&tv.gateway).key(&bert.api_key);
    assert_eq!(bert.get("/api/catchup/sessions/").await.body["count"], 0);
    let path = format!("/api/catchup/sessions/{session}/");
    assert_eq!(bert.delete(&path).await.status, 404);
    assert_eq!(bert.post(&position, told).await.status, 404);
    assert_eq!(bert.get("/proxy/catchup/stats").await.status, 403);
    let listed = api.get("/api/catchup/sessions/").await.body["results"].take();
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["session_id"]), (Some(1), &json!(session)));
    assert_eq!(admin.delete(&path).await.status, 204);
    player.read(Reading::Freely);
    player.ended().await;
    until_async("the end of the session", async || {
        admin.get("/api/catchup/sessions/").await.body["count"] == 0
    })
    .await;
    assert_eq!(admin.delete(&path).await.status, 404);
    let wrong = json!({ "channel_uuid": news, "start": "zzz" });
    assert_eq!(api.post("/api/catchup/sessions/", wrong).await.status, 400);
    let early = json!({ "channel_uuid": news, "start": (start - 3 * 86_400).to_string() });
    assert_eq!(api.post("/api/catchup/sessions/", early).await.status, 404);
    tv.gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_without_catch_up_plays_only_what_is_live() {
    let tv = Broadcaster::start().await;
    change_user(&tv.gateway, &tv.anna, |it| {
        it.custom_properties.insert(CATCHUP_ENABLED.to_owned(), json!(false));
    })
    .await;
    let news = tv.gateway.channel("News");
    let start = now() - 3_600;
    let api = Api::stranger(&tv.gateway).key(&tv.anna.api_key);
    let login = login(&tv.anna);
    for path in [
        format!("{}?utc={start}", tv.anna.live(&news.id.to_string())),
        format!("/timeshift{}", tv.anna.path(&format!("60/{start}/{}.ts", news.id))),
        format!("/streaming/timeshift.php?{login}&stream={}&start={start}", news.id),
    ] {
        let answer = fetch(tv.gateway.address, Request::get(&path)).await;
        assert_eq!(answer.status(), 403, "{path}: {}", answer.text());
        assert!(answer.text().contains("catch-up is off"), "{path}: {}", answer.text());
    }
    let of_uuid = format!("/proxy/catchup/{}?start={start}", news.uuid);
    assert_eq!(api.get(&of_uuid).await.status, 403);
    let body = json!({ "channel_uuid": news.uuid, "start": start.to_string() });
    assert_eq!(api.post("/api/catchup/sessions/", body).await.status, 403);
    assert_eq!(tv.provider.requests().iter().filter(|it| it.0.starts_with("/past/")).count(), 0);
}

/// Returns some seconds of a picture, as an archive sends them.
fn part(label: &str, seconds: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut tuned = Programme::from(Picture::new(label)).tune_in(Duration::from_secs(100));
    tuned.take(Duration::from_secs(seconds), &mut bytes);
    bytes
}

/// A provider whose channel shows "live", and whose archive has the addresses of `/past/a/START.ts`.
async fn with_archive(provider: &Provider) -> (TestGateway, TestUser, String) {
    provider.path("/live/a/news.ts").plays(Picture::new("live"));
    let list = format!(
        "#EXTM3U\n#EXTINF:-1 catchup=\"default\" catchup-days=\"2\" catchup-source=\"{}\",News\n{}\n",
        provider.url("/past/a/{utc}.ts"),
        provider.url("/live/a/news.ts"),
    );
    let gateway = Setup::new().limited_list(&list, 1).start().await;
    let anna = create_user(&gateway, "anna", |it| it.stream_limit = 1).await;
    let live = anna.live(&gateway.channel("News").id.to_string());
    (gateway, anna, live)
}

/// Lets the archive begin with this answer at one of these times: the clock of a part does not show its last frames.
fn answers_from(provider: &Provider, starts: std::ops::RangeInclusive<i64>, answer: &MockResponse) {
    for start in starts {
        provider.path(&format!("/past/a/{start}.ts")).answers(answer.clone());
    }
}

/// Returns the starts that the archive was asked for.
fn asked(provider: &Provider) -> Vec<i64> {
    let start = |it: &str| it.strip_prefix("/past/a/")?.strip_suffix(".ts")?.parse().ok();
    provider.requests().iter().filter_map(|it| start(&it.path)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_programme_that_is_started_over_goes_on_into_the_live_channel() {
    let provider = Provider::start();
    let (gateway, _anna, live) = with_archive(&provider).await;
    let start = now() - 120;
    answers_from(&provider, start..=start, &MockResponse::recording(&part("one", 40)));
    answers_from(&provider, start + 37..=start + 40, &MockResponse::recording(&part("two", 120)));
    let request = Request::get(format!("{live}?utc={start}&duration=3600")).header("Range", "bytes=0-");
    let player = Player::ask(gateway.address, request).await;
    player.sees("live").await;
    assert_eq!(player.received(|it| it.ts.labels.clone()), ["one", "two", "live"]);
    let head = player.head().await;
    assert_eq!(
        (head.status, head.header("accept-ranges"), head.header("content-length")),
        (200, Some("none"), None)
    );
    let asked = asked(&provider);
    assert!(asked.first() == Some(&start) && *asked.last().unwrap() >= start + 37, "{asked:?} from {start}");
    assert_eq!(gateway.gateway.counts().seats, 1);
    drop(player);
    gateway.until_idle().await;
    assert_eq!(provider.peak(), 1, "one connection at a time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_archive_ends_the_channel_follows_if_it_is_near_and_else_the_answer_ends() {
    let provider = Provider::start();
    let (gateway, _anna, live) = with_archive(&provider).await;
    let near = now() - 200;
    answers_from(&provider, near..=near, &MockResponse::recording(&part("near", 40)));
    let player = Player::ask(gateway.address, Request::get(format!("{live}?utc={near}"))).await;
    player.sees("live").await;
    assert_eq!(player.received(|it| it.ts.labels.clone()), ["near", "live"]);
    drop(player);
    gateway.until_idle().await;
    let far = now() - 3_000;
    answers_from(&provider, far..=far, &MockResponse::recording(&part("far", 40)));
    let player = Player::ask(gateway.address, Request::get(format!("{live}?utc={far}"))).await;
    player.ended().await;
    assert_eq!(player.received(|it| it.ts.labels.clone()), ["far"]);
    gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_without_a_length_that_is_cut_goes_on_without_repeating() {
    for cut in [Cut::Reset, Cut::End] {
        let provider = Provider::start();
        let (gateway, _anna, live) = with_archive(&provider).await;
        let start = now() - 3_600;
        // At each second of a programme of one minute, the archive has the rest of it.
        let rest = |from: u64| {
            let (mut bytes, age) = (Vec::new(), Duration::from_secs(100 + from));
            Programme::from(Picture::new("one"))
                .tune_in(age)
                .take(Duration::from_secs(60 - from), &mut bytes);
            bytes
        };
        for (from, second) in (0..59).zip(start..) {
            let answer = MockResponse::recording(&rest(from)).chunked();
            provider.path(&format!("/past/a/{second}.ts")).answers(answer);
        }
        let whole = rest(0);
        let half = MockResponse::recording(&whole).chunked().until(whole.len() as u64 / 2, cut);
        // The first answer shows that there is no length.
        provider.path(&format!("/past/a/{start}.ts")).answers_first([half.clone(), half]);
        let answer = fetch(gateway.address, Request::get(format!("{live}?utc={start}&duration=60"))).await;
        assert_eq!(answer.status(), 200, "{cut:?}");
        let checker = Checker::from_bytes(&answer.bytes);
        let back: Vec<_> = checker.complaints.iter().filter(|it| it.contains("back")).collect();
        assert!(back.is_empty(), "{cut:?}: {back:?}");
        let seconds = checker.programme_seconds();
        assert!((57.0..=60.0).contains(&seconds), "{cut:?}: {seconds} s");
        assert!(checker.steps.iter().all(|it| it.seconds < 2.0), "{cut:?}: {:?}", checker.steps);
        assert_eq!(checker.labels, ["one"], "{cut:?}");
        assert!(*asked(&provider).last().unwrap() > start, "{cut:?}: {:?}", asked(&provider));
        gateway.until_idle().await;
        assert_eq!(provider.peak(), 1, "{cut:?}");
    }
}
