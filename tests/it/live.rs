//! Players that log in: with the URL of a stream, or with credentials in a header.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use config::Config;
use domain::channel::Channel;
use domain::event::EventBody;
use domain::user::{self, UserLevel};
use parking_lot::Mutex;

use crate::support::client::{Player, Request, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::Provider;
use crate::support::users::{TestUser, create_user};
use crate::support::{WAIT_MAX, eventually, tools};

const NEWS: &str = "/live/anna/news.ts";
const FILM: &str = "/live/anna/film.ts";

/// Starts a gateway with the channels "News" and "Film".
async fn set_up(config: impl FnOnce(&mut Config)) -> (Provider, TestGateway) {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    provider.path(FILM).plays(Picture::new("film"));
    let list = provider.playlist(&[("news", "News", NEWS), ("film", "Film", FILM)]);
    let gateway = Setup::new().list(&list).config(config).start().await;
    (provider, gateway)
}

/// Requires credentials: every test client connects from loopback, so only other networks are allowed.
fn only_elsewhere(config: &mut Config) {
    config.stream_networks = "10.0.0.0/8".parse().unwrap();
}

async fn status(gateway: &TestGateway, request: Request) -> u16 {
    fetch(gateway.address, request).await.status()
}

async fn channel_changed(gateway: &TestGateway, name: &str, change: impl FnOnce(&mut Channel)) {
    let mut channel = gateway.channel(name).clone();
    change(&mut channel);
    gateway.change(move |write| write.put(&channel)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_logs_in_by_url_and_watches_from_any_network() {
    let (provider, gateway) = set_up(only_elsewhere).await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    let id = gateway.channel("News").id;
    let mut players = Vec::new();
    for path in [
        anna.live(&format!("{id}.ts")),
        anna.live(&format!("{id}")),
        anna.path(&format!("{id}.ts")),
        anna.path(&format!("{id}")),
        anna.live(&format!("{id}.ts/?quality=1&transcode=mobile")),
    ] {
        let player = Player::ask(gateway.address, Request::get(&path).header("Range", "bytes=0-")).await;
        let head = player.head().await;
        assert_eq!((head.status, head.header("content-type")), (200, Some("video/mp2t")), "{path}");
        assert_eq!((head.header("content-length"), head.header("accept-ranges")), (None, None));
        assert_eq!(head.header("x-accel-buffering"), Some("no"));
        assert_eq!(head.header("access-control-allow-origin"), Some("*"));
        player.sees("news").await;
        players.push(player);
    }
    assert_eq!(provider.accepted(), 1);
    assert_eq!(status(&gateway, gateway.get("News")).await, 403, "without credentials the network decides");
    drop(players);
    gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_in_a_url_are_percent_decoded_and_a_plus_stays_a_plus() {
    let (_provider, gateway) = set_up(|_| {}).await;
    let anna = create_user(&gateway, "Anna+Maria@tv.example", |_| {}).await;
    let id = gateway.channel("News").id;
    // Encodes only the necessary characters, as some players do.
    let (name, password) = ("anna+maria@tv.example", anna.password.replace('%', "%25").replace('/', "%2F"));
    let bare = format!("/live/{name}/{}/{id}.ts", password.replace(' ', "%20"));
    for path in [anna.live(&format!("{id}.ts")), bare.clone()] {
        assert_eq!(status(&gateway, Request::head(&path)).await, 200, "{path}");
    }
    assert_eq!(status(&gateway, Request::head(bare.replace("%20", "+"))).await, 401);
    assert_eq!(status(&gateway, Request::head(format!("/live/%ff/%00/{id}.ts"))).await, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_user_wrong_password_and_inactive_user_get_the_same_response() {
    let (provider, gateway) = set_up(|it| it.auth.failure_delay_max = Duration::ZERO).await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    let gone = create_user(&gateway, "gone", |it| it.is_active = false).await;
    let unknown = TestUser { name: "nobody".to_owned(), ..create_user(&gateway, "somebody", |_| {}).await };
    let wrong = TestUser { password: "wrong".to_owned(), ..anna };
    for file in ["1.ts", "1", "999999.ts"] {
        for of in [TestUser::live, TestUser::path] {
            let mut answers = Vec::new();
            for who in [&unknown, &wrong, &gone] {
                let answer = fetch(gateway.address, Request::get(of(who, file))).await;
                assert_eq!(answer.header("content-type"), Some("application/json"));
                assert_eq!(status(&gateway, Request::head(of(who, file))).await, 401);
                answers.push((answer.status(), answer.text()));
            }
            assert_eq!(answers[0].0, 401);
            assert!(answers.iter().all(|it| *it == answers[0]), "{answers:?}");
        }
    }
    assert_eq!(provider.accepted(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hidden_channel_is_answered_like_an_unknown_one() {
    let (provider, gateway) = set_up(|_| {}).await;
    let child = create_user(&gateway, "child", |it| it.hide_adult = true).await;
    let (id, path) = (gateway.channel("Film").id, gateway.path("Film"));
    let unknown_uuid = "/proxy/ts/stream/00000000-0000-4000-8000-000000000000";
    let with_key = |path: &str| Request::get(path).header("X-API-Key", &child.api_key);
    let unknown = fetch(gateway.address, Request::get(child.live("999999.ts"))).await;
    let unknown_by_uuid = fetch(gateway.address, with_key(unknown_uuid)).await;
    assert_eq!((unknown.status(), unknown_by_uuid.status()), (404, 404));
    let hide: [fn(&mut Channel); 3] =
        [|it| it.is_adult = true, |it| it.user_level = UserLevel::Standard, |it| it.enabled = false];
    for hidden in hide {
        channel_changed(&gateway, "Film", hidden).await;
        for (request, unknown) in [
            (Request::get(child.live(&format!("{id}.ts"))), &unknown),
            (Request::get(child.path(&format!("{id}"))), &unknown),
            (with_key(&path), &unknown_by_uuid),
        ] {
            let answer = fetch(gateway.address, request).await;
            assert_eq!((answer.status(), answer.text()), (404, unknown.text()));
        }
        assert_eq!(status(&gateway, Request::head(child.live(&format!("{id}.ts")))).await, 404);
    }
    assert_eq!(provider.accepted(), 0);
    channel_changed(&gateway, "Film", |_| {}).await;
    assert_eq!(status(&gateway, Request::head(child.live(&format!("{id}.ts")))).await, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_channel_or_format_returns_404_without_a_login() {
    let (_provider, gateway) = set_up(|_| {}).await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    for file in
        ["1.mpd", "1.mkv", "abc.ts", "abc", "+1.ts", "-1", "1.0", "4294967296.ts", "%31x", ".ts", "1/2"]
    {
        for path in [anna.live(file), anna.path(file), anna.live(file).replace("anna", "nobody")] {
            let answer = fetch(gateway.address, Request::get(&path)).await;
            assert_eq!(answer.status(), 404, "{file}");
            assert_eq!(answer.header("content-type"), Some("application/json"), "{file}");
        }
    }
    assert!(gateway.event_names().is_empty(), "{:?}", gateway.event_names());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn head_opens_no_stream_and_cors_preflight_needs_no_login() {
    let (provider, gateway) = set_up(|_| {}).await;
    let anna = create_user(&gateway, "anna", |it| it.stream_limit = 1).await;
    for path in [anna.live("1.ts"), anna.path("1")] {
        let answer = fetch(gateway.address, Request::head(&path)).await;
        assert_eq!((answer.status(), answer.header("content-type")), (200, Some("video/mp2t")));
        let answer = fetch(gateway.address, Request::get(path.replace("anna", "x")).method("OPTIONS")).await;
        assert_eq!(answer.status(), 204);
        let allowed = answer.header("access-control-allow-headers").unwrap();
        assert!(allowed.contains("Authorization"), "{allowed}");
        let answer = fetch(gateway.address, Request::get(&path).method("POST")).await;
        assert_eq!(answer.status(), 405);
        assert!(answer.header("allow").is_some_and(|it| it.contains("HEAD")));
    }
    let counts = gateway.gateway.counts();
    assert_eq!((provider.accepted(), counts.seats, counts.channels), (0, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_names_equal_to_route_prefixes_are_reserved_and_all_others_play() {
    // Holds T-url.2.
    let (_provider, gateway) = set_up(|_| {}).await;
    let id = gateway.channel("News").id;
    for name in ["admin", "api", "live", "movie", "series", "proxy", "hdhr", "static", "ws", "Live", "livetv"]
    {
        if user::check_username(name).is_err() {
            // Such a user cannot be created, and the path is not treated as a login.
            let answer = fetch(gateway.address, Request::get(format!("/{name}/secret/{id}.ts"))).await;
            assert_eq!(answer.status(), 404, "{name}");
            continue;
        }
        let person = create_user(&gateway, name, |_| {}).await;
        for path in [person.path(&format!("{id}.ts")), person.live(&format!("{id}"))] {
            assert_eq!(status(&gateway, Request::head(path)).await, 200, "{name}");
        }
    }
    assert!(gateway.event_names().is_empty(), "{:?}", gateway.event_names());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_on_an_open_url_authenticate_the_user_from_any_network() {
    let (_provider, gateway) = set_up(only_elsewhere).await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    let path = gateway.path("News");
    let bearer = format!("Bearer {}", anna.token(&gateway));
    for (header, value) in [("X-API-Key", anna.api_key.as_str()), ("Authorization", bearer.as_str())] {
        let player = Player::ask(gateway.address, Request::get(&path).header(header, value)).await;
        player.sees("news").await;
        assert_eq!(gateway.gateway.counts().seats, 1, "{header}");
        player.leave().await;
        gateway.until_idle().await;
    }
    let users: Vec<_> = gateway
        .events()
        .iter()
        .filter_map(|it| match &it.body {
            EventBody::ClientConnect { client, .. } => client.user.clone(),
            _ => None,
        })
        .collect();
    assert_eq!(users, ["anna", "anna"]);
    assert_eq!(status(&gateway, Request::get(&path).header("X-API-Key", "wrong")).await, 401);
    // Tokens in the query are for previews only; on player URLs a parameter of this name has no meaning.
    let with_token = format!("{path}?token={}", anna.token(&gateway));
    assert_eq!(status(&gateway, Request::get(with_token)).await, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_admins_may_preview_a_stream_from_any_network() {
    for config in [only_elsewhere, |_: &mut Config| {}] {
        let (provider, gateway) = set_up(config).await;
        let admin = create_user(&gateway, "admin", |it| it.level = UserLevel::Admin).await;
        let standard = create_user(&gateway, "standard", |it| it.level = UserLevel::Standard).await;
        let gone =
            create_user(&gateway, "gone", |it| (it.level, it.is_active) = (UserLevel::Admin, false)).await;
        let stream = gateway.catalogue.streams.iter().find(|it| it.name() == "News").unwrap().id;
        let path = format!("/proxy/ts/stream/{stream}");
        let with_token = |token: &str| Request::get(format!("{path}?x=1&token={token}"));
        let with_key = |key: &str| Request::get(&path).header("X-API-Key", key);
        for (request, expected) in [
            (Request::get(&path), 401),
            (Request::head(&path), 401),
            (Request::get("/proxy/ts/stream/999999"), 401),
            (with_token("rubbish"), 401),
            (with_token(&gone.token(&gateway)), 401),
            (with_key("wrong"), 401),
            (with_key(&gone.api_key), 401),
            (with_key(&standard.api_key), 403),
            (with_token(&standard.token(&gateway)), 403),
            (with_key(&admin.api_key).method("HEAD"), 200),
            (Request::get("/proxy/ts/stream/999999").header("X-API-Key", &admin.api_key), 404),
            (Request::get(&path).method("OPTIONS"), 204),
        ] {
            let answer = fetch(gateway.address, request.clone()).await;
            assert_eq!(answer.status(), expected, "{request:?}");
        }
        assert_eq!(provider.accepted(), 0);
        let bearer = format!("Bearer {}", admin.token(&gateway));
        for request in [
            with_key(&admin.api_key),
            Request::get(format!("{path}.ts")).header("Authorization", &bearer),
            with_token(&admin.token(&gateway)),
        ] {
            let player = Player::ask(gateway.address, request).await;
            player.sees("news").await;
            assert_eq!(gateway.gateway.counts().seats, 1);
            player.leave().await;
            gateway.until_idle().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preview_and_a_channel_with_the_same_number_use_two_leases_and_release_both() {
    // Holds T-slot.5 over HTTP.
    let (provider, gateway) = set_up(|_| {}).await;
    let admin = create_user(&gateway, "admin", |it| it.level = UserLevel::Admin).await;
    // The first channel and the first stream.
    assert_eq!(gateway.channel("News").id.0, gateway.catalogue.streams[0].id.0);
    let number = gateway.channel("News").id;
    for channel_first in [true, false] {
        let channel = Player::watch(gateway.address, &admin.live(&format!("{number}.ts"))).await;
        let preview = format!("/proxy/ts/stream/{number}");
        let preview = Request::get(preview).header("X-API-Key", &admin.api_key);
        let preview = Player::ask(gateway.address, preview).await;
        channel.sees("news").await;
        preview.sees("news").await;
        assert_eq!((gateway.gateway.counts().leases, provider.open_on(NEWS)), (2, 2));
        let (first, second) = if channel_first { (channel, preview) } else { (preview, channel) };
        first.leave().await;
        eventually("one lease", || gateway.gateway.counts().leases == 1).await;
        second.more_bytes(100_000).await;
        second.leave().await;
        gateway.until_idle().await;
        assert_eq!(provider.open(), 0);
    }
}

/// The captured log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// On a single thread, so that the log contains this test only.
#[tokio::test]
async fn logs_events_and_refusals_contain_no_password_key_or_token() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone());
    let _guard = tracing::subscriber::set_default(subscriber.finish());

    let (_provider, gateway) = set_up(only_elsewhere).await;
    let admin =
        create_user(&gateway, "admin", |it| (it.level, it.stream_limit) = (UserLevel::Admin, 1)).await;
    let wrong = TestUser {
        password: "Wrong-Password".to_owned(),
        api_key: "Wrong-Key".to_owned(),
        ..create_user(&gateway, "b", |_| {}).await
    };
    let token = admin.token(&gateway);
    let player = Player::ask(gateway.address, admin.asks(&gateway, "News", "tv")).await;
    player.sees("news").await;
    let preview = format!("/proxy/ts/stream/1?token={token}");
    let mut bodies = String::new();
    for request in [
        admin.asks(&gateway, "Film", "phone"), // no seat is free
        Request::get(admin.live("999999.ts")),
        Request::get(admin.live("1.m3u8")),
        Request::get(admin.path("1.ts")).method("POST"),
        Request::get(wrong.live("1.ts")),
        Request::get(wrong.path("1")),
        Request::get(gateway.path("News")).header("X-API-Key", &wrong.api_key),
        Request::get("/proxy/ts/stream/1?token=Wrong-Key"),
        Request::get(&preview).header("User-Agent", "phone"),
        Request::get(gateway.path("News")).header("Authorization", &format!("Bearer {token}x")),
    ] {
        let answer = fetch(gateway.address, request).await;
        assert!(answer.status() >= 400);
        bodies += &answer.text();
    }
    // Changes the channel, then leaves.
    let next = Player::ask(gateway.address, Request::get(&preview).header("User-Agent", "tv")).await;
    next.sees("news").await;
    player.ended().await;
    next.reset().await;
    gateway.until_idle().await;

    let events: String = gateway.events().iter().map(|it| serde_json::to_string(&**it).unwrap()).collect();
    let log = String::from_utf8_lossy(&lines.0.lock()).into_owned();
    assert!(
        log.contains("client joined") && log.contains("request handled") && events.contains("client_connect")
    );
    for secret in [
        &admin.password,
        &admin.live("").split('/').nth(3).unwrap().to_owned(),
        &admin.api_key,
        &token,
        &wrong.password,
        &wrong.api_key,
    ] {
        for (what, text) in [("the log", &log), ("an event", &events), ("a refusal", &bodies)] {
            let line = text.lines().find(|it| it.contains(secret.as_str()));
            assert!(line.is_none(), "{what} has {secret}: {line:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ffprobe_plays_a_panel_style_url() {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", NEWS)])).await;
    let anna = create_user(&gateway, "anna", |it| it.stream_limit = 1).await;
    let url = format!("http://{}{}", gateway.address, anna.live("1.ts"));
    let packets = ["-read_intervals", "%+#60", "-show_entries", "packet=codec_type", "-of", "csv=p=0"];
    let hurried = ["-v", "error", "-analyzeduration", "1000000", "-probesize", "500000", &url];
    let arguments: Vec<&str> = packets.into_iter().chain(hurried).collect();
    let text = tokio::time::timeout(WAIT_MAX, tools::text_of("ffprobe", &arguments)).await.unwrap();
    assert!(text.lines().filter(|it| it.starts_with("video")).count() > 10, "{text}");
    gateway.until_idle().await;
    assert_eq!(provider.peak(), 1);
}
