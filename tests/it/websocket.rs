//! The WebSocket: authentication, messages for each user level, revoked permissions, and slow clients.

use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::channel::Channel;
use domain::event::{CallerRef, Event, EventBody};
use domain::ids::{AccountId, ProfileId};
use domain::notice::{Notice, NoticeKind, NoticePriority};
use domain::source_url::SourceUrl;
use domain::user::UserLevel;
use headwater::Stopped;
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use super::support::api::Api;
use super::support::client::{PLAYER_AGENT, Player, Request, fetch};
use super::support::gateway::{Setup, TestGateway};
use super::support::signal::Picture;
use super::support::until_async;
use super::support::upstream::{Cut, MockResponse, Provider};
use super::support::users::{TestUser, change_user, create_user, delete_user};
use super::support::websocket::{WebSocketClient, upgrade};

const FIRST: &str = "/live/anna/first.ts";
const SECOND: &str = "/live/anna/second.ts";

/// Starts one channel with two streams and without viewers.
async fn set_up() -> (Provider, TestGateway) {
    let provider = Provider::start();
    provider.path(FIRST).plays(Picture::new("first"));
    provider.path(SECOND).plays(Picture::new("second"));
    let list = provider.playlist(&[("news", "News", FIRST), ("news", "News backup", SECOND)]);
    let gateway = Setup::new().list(&list).start().await;
    (provider, gateway)
}

async fn new_user(gateway: &TestGateway, name: &str, level: UserLevel) -> TestUser {
    create_user(gateway, name, |it| it.level = level).await
}

/// Opens a socket with the user's token and reads its first frame.
async fn connect(gateway: &TestGateway, person: &TestUser) -> WebSocketClient {
    let path = format!("/ws/?token={}", person.token(gateway));
    let mut listener = WebSocketClient::open(gateway.address, &path, &[]).await.unwrap();
    let first = listener.next().await.unwrap();
    assert_eq!(first["type"], "connection_established");
    listener
}

/// Stores an account with a playlist at this URL.
async fn with_list(gateway: &TestGateway, url: &str) -> AccountId {
    let (id, list) = (AccountId(40), PlaylistLocation::Url(SourceUrl::new(url)));
    let profile = AccountProfile::default_of(ProfileId(40), "default", 1);
    let account = Account::new(id, "a list", list, profile, 0);
    gateway.change(move |write| write.put(&account)).await;
    id
}

/// Raises an event with a number and about this size.
fn raise_event(gateway: &TestGateway, number: i64, bytes: usize) {
    let attempt = CallerRef { user: None, ip: "10.0.0.1".parse().unwrap(), user_agent: "x".repeat(bytes) };
    let body = EventBody::LoginFailed { attempt, reason: number.to_string() };
    gateway.gateway.events().emit(Event { at: number, body });
}

/// Checks that the documentation of frames explains every member.
#[track_caller]
fn assert_documented(value: &Value) {
    let page = include_str!("../../docs/websocket.md");
    match value {
        Value::Object(members) => {
            // The names in the values of a text are those of its template.
            for (name, value) in members.iter().filter(|it| it.0 != "values") {
                assert!(page.contains(&format!("`{name}`")), "docs/websocket.md does not explain {name}");
                assert_documented(value);
            }
        }
        Value::Array(values) => values.iter().for_each(assert_documented),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_opens_with_every_kind_of_credentials_on_both_ports() {
    let gateway = Setup::new().start().await;
    let anna = new_user(&gateway, "anna", UserLevel::Admin).await;
    let token = anna.token(&gateway);
    let (bearer, in_query) = (format!("Bearer {token}"), format!("/ws/?a=b&token={token}"));
    let (by_scheme, offered) = (format!("ApiKey {}", anna.api_key), format!("bearer, {token}"));
    let cases: [(&str, &[(&str, &str)]); 7] = [
        ("/ws/", &[("authorization", &bearer)]),
        ("/ws", &[("authorization", &bearer)]),
        ("/ws/", &[("authorization", &by_scheme)]),
        ("/ws/", &[("x-api-key", &anna.api_key)]),
        ("/ws/", &[("sec-websocket-protocol", &offered)]),
        (&in_query, &[]),
        (&in_query, &[("authorization", "Basic cHJveHk6cHJveHk=")]),
    ];
    for address in [gateway.address, gateway.api] {
        for (path, headers) in cases {
            let mut listener = WebSocketClient::open(address, path, headers).await.unwrap();
            let chosen = listener.response.headers().get("sec-websocket-protocol");
            let is_offered = headers.iter().any(|it| it.0 == "sec-websocket-protocol");
            assert_eq!(chosen.map(|it| it.to_str().unwrap()), is_offered.then_some("bearer"), "{path}");
            let first = listener.next().await.unwrap();
            assert_eq!(
                (&first["type"], &first["data"]["type"]),
                (&json!("connection_established"), &first["type"])
            );
            assert_eq!((&first["data"]["success"], &first["data"]["user_level"]), (&json!(true), &json!(10)));
            listener.ping().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_has_as_many_sockets_as_the_setting_allows() {
    let gateway = Setup::new().config(|it| it.limits.websockets_per_user_max = 2).start().await;
    let (anna, root) = (
        new_user(&gateway, "anna", UserLevel::Standard).await,
        new_user(&gateway, "root", UserLevel::Admin).await,
    );
    let open = async |user: &TestUser| {
        let path = format!("/ws/?token={}", user.token(&gateway));
        WebSocketClient::open(gateway.address, &path, &[]).await
    };
    let first = open(&anna).await.unwrap();
    let _second = open(&anna).await.unwrap();
    assert_eq!(open(&anna).await.err(), Some(503));
    assert!(open(&root).await.is_ok());
    drop(first);
    until_async("a free socket", async || open(&anna).await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_valid_credentials_the_upgrade_returns_401() {
    let gateway = Setup::new().start().await;
    let anna = new_user(&gateway, "anna", UserLevel::Admin).await;
    let idle = create_user(&gateway, "idle", |it| it.is_active = false).await;
    let with = |token: String| format!("/ws/?token={token}");
    let refused: [(String, &[(&str, &str)]); 8] = [
        ("/ws/".into(), &[]),
        (with(String::new()), &[]),
        (with("nonsense".into()), &[]),
        (with(anna.token_for(&gateway, 0)), &[]),
        (with(idle.token(&gateway)), &[]),
        ("/ws/".into(), &[("x-api-key", "key-of-nobody")]),
        (with(anna.token(&gateway)), &[("authorization", "Bearer nonsense")]),
        ("/ws/".into(), &[("sec-websocket-protocol", "bearer, nonsense")]),
    ];
    for address in [gateway.address, gateway.api] {
        for (path, headers) in &refused {
            assert_eq!(
                WebSocketClient::open(address, path, headers).await.err(),
                Some(401),
                "{path} {headers:?}"
            );
        }
    }
    let token = anna.token(&gateway);
    let plain = fetch(gateway.api, Request::get(with(token.clone()))).await;
    assert_eq!((plain.status(), plain.header("upgrade")), (426, Some("websocket")));
    let posted = fetch(gateway.api, Request::get(with(token)).method("POST")).await;
    assert_eq!((posted.status(), posted.header("allow")), (405, Some("GET")));
    assert_eq!(fetch(gateway.api, Request::get("/ws/")).await.status(), 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_receives_playback_and_failover_in_real_time() {
    let (provider, gateway) = set_up().await;
    let root = new_user(&gateway, "root", UserLevel::Admin).await;
    let mut admin = connect(&gateway, &root).await;
    let idle = admin.kind("channel_stats").await;
    assert_eq!((&idle["stats"]["count"], &idle["stats"]["channels"]), (&json!(0), &json!([])));

    let player = gateway.watch("News").await;
    player.sees("first").await;
    let uuid = json!(gateway.channel("News").uuid);
    let started = admin.kind("channel_start").await;
    assert_eq!((&started["channel_id"], &started["stream_name"]), (&uuid, &json!("News")));
    let plays = |it: &Value| {
        let channel = &it["stats"]["channels"][0];
        let is_watched = channel["state"] == "playing" && channel["client_count"] == 1;
        is_watched && channel["bitrate_kbps"].as_u64() > Some(0)
    };
    let playing = admin.until("channel_stats", plays).await;
    let channel = &playing["stats"]["channels"][0];
    assert_eq!((&channel["channel_id"], &channel["channel_name"]), (&uuid, &json!("News")));
    assert_eq!((&channel["client_count"], &channel["failovers"]), (&json!(1), &json!(0)));
    let client = &channel["clients"][0];
    assert_eq!((&client["ip_address"], &client["user_agent"]), (&json!("127.0.0.1"), &json!(PLAYER_AGENT)));
    assert_eq!(playing["stats"]["totals"]["client_count"], 1);
    let first_stream = channel["stream_id"].clone();
    assert_documented(&playing);

    provider.path(FIRST).answers(MockResponse::status(404)).cut(Cut::Reset);
    let failover = admin.kind("channel_failover").await;
    assert_eq!(
        (&failover["stream_name"], &failover["previous_stream_name"]),
        (&json!("News backup"), &json!("News"))
    );
    let later =
        admin.until("channel_stats", |it| it["stats"]["channels"][0]["failovers"] == 1 && plays(it)).await;
    let channel = &later["stats"]["channels"][0];
    assert_ne!(channel["stream_id"], first_stream);
    assert!(later["sequence"].as_u64() > playing["sequence"].as_u64());
    player.leave().await;
    admin.kind("client_disconnect").await;
    admin.until("channel_stats", |it| it["stats"]["count"] == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_sockets_get_the_same_statistics_and_none_are_collected_without_sockets() {
    let gateway = Setup::new().start().await;
    let root = new_user(&gateway, "root", UserLevel::Admin).await;
    for _ in 0..2 {
        let mut first = connect(&gateway, &root).await;
        assert_eq!(first.kind("channel_stats").await["sequence"], 1, "the sequence starts again");
        first.until("channel_stats", |it| it["sequence"] == 2).await;
        let mut second = connect(&gateway, &root).await;
        let told = second.kind("channel_stats").await;
        assert!(told["sequence"].as_u64() >= Some(2), "the latest reading is sent at once: {told}");
        let told = second.kind("channel_stats").await;
        let same = first.until("channel_stats", |it| it["sequence"] == told["sequence"]).await;
        assert_eq!(same, told);
        drop((first, second));
        let is_alone = async || gateway.metrics().await["headwater_connections"] == 1.0;
        until_async("the sockets to close", is_alone).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_chooses_the_channels_whose_clients_it_gets() {
    let (_provider, gateway) = set_up().await;
    let root = new_user(&gateway, "root", UserLevel::Admin).await;
    let player = gateway.watch("News").await;
    player.sees("first").await;
    let mut admin = connect(&gateway, &root).await;
    let of = |it: &Value| it["stats"]["channels"][0]["clients"].clone();
    admin.until("channel_stats", |it| of(it)[0]["user_agent"] == PLAYER_AGENT).await;
    let news = gateway.channel("News").uuid.to_string();
    let other = uuid::Uuid::nil().to_string();
    for (clients, is_listed) in [("none", false), (&*news, true), (&*other, false), ("all", true)] {
        admin.send(&json!({ "type": "subscribe", "clients": clients }).to_string()).await;
        let answer = admin.kind("subscribed").await;
        assert_eq!(answer["clients"], clients);
        assert_documented(&answer);
        let shown = admin.kind("channel_stats").await;
        assert_eq!(shown["stats"]["channels"][0]["client_count"], 1);
        assert_eq!(of(&shown).is_array(), is_listed, "{clients}: {shown}");
    }
    for wrong in [json!("some"), json!(7), json!(null)] {
        admin.send(&json!({ "type": "subscribe", "clients": wrong }).to_string()).await;
        let refusal = admin.kind("error").await;
        assert!(refusal["message"].as_str().is_some_and(|it| it.contains("`clients`")), "{refusal}");
    }
    assert!(of(&admin.kind("channel_stats").await).is_array(), "a refused message changes nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn level_1_receives_channel_states_and_counts_and_level_0_nothing() {
    let provider = Provider::start();
    provider.path(FIRST).plays(Picture::new("first"));
    provider.path(SECOND).plays(Picture::new("second"));
    let list = provider.playlist(&[("news", "News", FIRST), ("late", "Late", SECOND)]);
    let gateway = Setup::new().list(&list).start().await;
    let late = gateway.channel("Late").id.0;
    gateway
        .change(move |write| {
            let mut late = write.get::<Channel>(late)?.unwrap();
            late.is_adult = true;
            write.put(&late)
        })
        .await;
    let anna =
        create_user(&gateway, "anna", |it| (it.level, it.hide_adult) = (UserLevel::Standard, true)).await;
    let zoe = new_user(&gateway, "zoe", UserLevel::Streamer).await;
    let root = new_user(&gateway, "root", UserLevel::Admin).await;
    let mut standard = connect(&gateway, &anna).await;
    let mut streamer = connect(&gateway, &zoe).await;
    let mut admin = connect(&gateway, &root).await;

    // Without credentials, nobody sees a channel for adults.
    let late = gateway.get("Late").header("X-API-Key", &root.api_key);
    let players = [Player::ask(gateway.address, late).await, gateway.watch("News").await];
    for (player, label) in players.iter().zip(["second", "first"]) {
        player.sees(label).await;
    }
    admin.until("channel_stats", |it| it["stats"]["count"] == 2).await;
    let is_start = |it: &Value| it["data"]["type"] == "channel_start";
    let is_playing = |it: &Value| {
        let channel = &it["data"]["stats"]["channels"][0];
        channel["state"] == "playing" && channel["client_count"] == 1
    };
    let mut frames = Vec::new();
    while !(frames.iter().any(is_start) && frames.iter().any(is_playing)) {
        frames.push(standard.next().await.unwrap());
    }
    let started = &frames.iter().find(|it| is_start(it)).unwrap()["data"];
    let stats = &frames.iter().rfind(|it| is_playing(it)).unwrap()["data"]["stats"];
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let lifecycle =
        ["channel_id", "channel_name", "channel_number", "event_type", "success", "timestamp", "type"];
    assert_eq!(
        (keys(started), &started["channel_name"]),
        (lifecycle.map(str::to_owned).to_vec(), &json!("News"))
    );
    assert_eq!((&stats["count"], keys(stats)), (&json!(1), vec!["channels".to_owned(), "count".to_owned()]));
    let channel = &stats["channels"][0];
    let told = ["channel_id", "channel_name", "channel_number", "client_count", "state", "uptime"];
    assert_eq!(keys(channel), told.map(str::to_owned));
    assert_eq!((&channel["channel_name"], &channel["client_count"]), (&json!("News"), &json!(1)));

    // All frames of these users come before the close frame, and there are only few.
    gateway.gateway.events().emit(gateway.events()[0].as_ref().clone());
    change_user(&gateway, &zoe, |it| it.is_active = false).await;
    assert_eq!(streamer.remaining().await, (vec![], Some(1008)));
    change_user(&gateway, &anna, |it| it.is_active = false).await;
    let (more, closed) = standard.remaining().await;
    assert_eq!(closed, Some(1008));
    for frame in frames.into_iter().chain(more) {
        let text = frame.to_string();
        for secret in ["Late", "127.0.0.1", PLAYER_AGENT, "http", "clients", "username"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_user_is_told_about_notifications_and_restorations() {
    let gateway = Setup::new().start().await;
    let root = new_user(&gateway, "root", UserLevel::Admin).await;
    let zoe = new_user(&gateway, "zoe", UserLevel::Streamer).await;
    let mut admin = connect(&gateway, &root).await;
    let mut streamer = connect(&gateway, &zoe).await;
    admin.kind("channel_stats").await;

    let notice = Notice {
        id: 1,
        key: "tonight".to_owned(),
        kind: NoticeKind::Announcement,
        priority: NoticePriority::Normal,
        title: "Maintenance".to_owned(),
        message: "Tonight.".to_owned(),
        action_data: "null".to_owned(),
        is_active: true,
        for_admins: false,
        expires_at: None,
        created_at: 0,
    };
    gateway.change(move |write| write.put(&notice)).await;
    for socket in [&mut admin, &mut streamer] {
        assert_documented(&socket.kind("notifications_changed").await);
    }
    let body = EventBody::RestorePending { backup: "nightly.zip".to_owned(), restarts_now: true };
    gateway.gateway.events().emit(Event { at: 1, body });
    assert_eq!(admin.kind("restore_pending").await["backup"], "nightly.zip");
    let told = streamer.kind("restore_pending").await;
    assert_eq!((&told["restarts_now"], told.get("backup")), (&json!(true), None));
    assert_documented(&told);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_permission_closes_the_socket_at_once() {
    let gateway = Setup::new().start().await;
    let root = new_user(&gateway, "root", UserLevel::Admin).await;
    let mut stays = connect(&gateway, &root).await;
    for what in ["lowered", "raised", "inactive", "deleted", "new password", "key taken back"] {
        let begin = if what == "raised" { UserLevel::Standard } else { UserLevel::Admin };
        let user = new_user(&gateway, &what.replace(' ', "-"), begin).await;
        let mut listener = match what {
            "key taken back" => {
                let key = [("x-api-key", user.api_key.as_str())];
                WebSocketClient::open(gateway.api, "/ws/", &key).await.unwrap()
            }
            _ => connect(&gateway, &user).await,
        };
        listener.kind("channel_stats").await;
        match what {
            "lowered" => change_user(&gateway, &user, |it| it.level = UserLevel::Standard).await,
            "raised" => change_user(&gateway, &user, |it| it.level = UserLevel::Admin).await,
            "inactive" => change_user(&gateway, &user, |it| it.is_active = false).await,
            "deleted" => delete_user(&gateway, &user).await,
            "new password" => change_user(&gateway, &user, |it| it.generation += 1).await,
            _ => change_user(&gateway, &user, |it| it.api_key = None).await,
        }
        raise_event(&gateway, 7, 0);
        let (frames, closed) = listener.remaining().await;
        assert_eq!(closed, Some(1008), "{what}");
        let told = frames.iter().any(|it| it["data"]["type"] == "login_failed");
        assert!(!told, "{what}: received an event from after the revocation: {frames:?}");
        stays.kind("login_failed").await;
    }
    let path = format!("/ws/?token={}", root.token_for(&gateway, 2));
    let mut short = WebSocketClient::open(gateway.api, &path, &[]).await.unwrap();
    short.kind("channel_stats").await;
    assert_eq!(short.remaining().await.1, Some(1008), "the socket ends when its token expires");
    stays.ping().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_that_does_not_read_delays_nobody_and_loses_the_oldest_messages() {
    // Few and large ones: a socket that takes nothing for half a minute is closed.
    const N_EVENTS: i64 = 1_000;
    const BYTES: usize = 32 << 10;
    let gateway = Setup::new().start().await;
    let root = new_user(&gateway, "root", UserLevel::Admin).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(8 << 10).unwrap();
    let path = format!("/ws/?token={}", root.token(&gateway));
    let mut slow =
        WebSocketClient::over(socket, gateway.api, upgrade(gateway.api, &path, &[])).await.unwrap();
    let mut reading = connect(&gateway, &root).await;
    assert_eq!(slow.next().await.unwrap()["type"], "connection_established");

    // 32 MB of events, in steps that the reading client keeps up with.
    for number in 0..N_EVENTS {
        raise_event(&gateway, number, BYTES);
        let told = reading.kind("login_failed").await;
        assert_eq!(told["reason"], number.to_string());
    }
    raise_event(&gateway, N_EVENTS, 0);
    let (mut n_told, mut n_missed, mut last) = (0, 0, -1);
    while last < N_EVENTS {
        let frame = slow.next().await.unwrap();
        let data = &frame["data"];
        if data["type"] == "missed" {
            n_missed += data["count"].as_i64().unwrap();
        } else if data["type"] == "login_failed" {
            n_told += 1;
            let number: i64 = data["reason"].as_str().unwrap().parse().unwrap();
            assert!(number > last, "in order: {number} after {last}");
            last = number;
        }
    }
    assert_eq!(n_told + n_missed, N_EVENTS + 1, "every missed event is counted");
    // The delivered events were in the 256 places of the queue and in the kernel's buffers; no other buffer exists.
    assert!(n_missed > N_EVENTS / 4, "{n_missed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_socket_gets_a_close_frame_when_the_gateway_stops() {
    let gateway = Setup::new().start().await;
    let root = new_user(&gateway, "root", UserLevel::Admin).await;
    let zoe = new_user(&gateway, "zoe", UserLevel::Streamer).await;
    let mut sockets = vec![connect(&gateway, &root).await, connect(&gateway, &zoe).await];
    let path = format!("/ws/?token={}", root.token(&gateway));
    sockets.push(WebSocketClient::open(gateway.api, &path, &[]).await.unwrap());
    let n_connections = gateway.metrics().await["headwater_connections"];
    assert!(n_connections >= 3.0, "sockets are counted as the connections that they are: {n_connections}");

    let stopping = tokio::spawn(gateway.gateway.stop());
    for socket in &mut sockets {
        assert_eq!(socket.remaining().await.1, Some(1001));
    }
    assert_eq!(stopping.await.unwrap(), Stopped { is_clean: true });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admins_receive_record_changes_and_refresh_progress() {
    let provider = Provider::start();
    provider
        .path("/list.m3u")
        .answers(MockResponse::text("audio/x-mpegurl", provider.playlist(&[("news", "News", FIRST)])));
    let gateway = Setup::new().start().await;
    let api = Api::first_admin(&gateway).await;
    let root = new_user(&gateway, "watcher", UserLevel::Admin).await;
    let mut admin = connect(&gateway, &root).await;
    let made = api.post("/api/channels/groups/", json!({ "name": "Sport" })).await;
    assert_eq!(made.status, 201, "{made:?}");
    let group = made.body["id"].clone();
    let told = admin.until("changed", |it| it["collections"][0]["collection"] == "groups").await;
    assert_eq!(told["collections"], json!([{ "collection": "groups", "ids": [group] }]));
    assert!(told["version"].is_u64());

    let account = with_list(&gateway, &provider.url("/list.m3u")).await;
    let started = gateway.gateway.importer().refresh(account, false).await.unwrap();
    let done = admin.until("m3u_refresh", |it| it["action"] == "done").await;
    assert_eq!((&done["status"], &done["account"]), (&json!("success"), &json!(account)), "{done}");
    assert_eq!((&done["streams_processed"], &done["streams_created"]), (&json!(1), &json!(1)));
    assert_documented(&told);
    assert_documented(&done);
    let job = done["job"].as_str().unwrap();
    assert!(format!("{started:?}").contains(job), "{started:?} {job}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_to_a_socket_are_answered_and_a_too_long_one_closes_it() {
    let gateway = Setup::new().start().await;
    let zoe = new_user(&gateway, "zoe", UserLevel::Streamer).await;
    let mut socket = connect(&gateway, &zoe).await;
    for text in ["no JSON", "{}", "[1]", "{\"type\":\"subscribe\"}", "{\"type\":7}"] {
        socket.send(text).await;
        assert_eq!(socket.next().await.unwrap()["data"]["type"], "error", "{text}");
    }
    socket.send("{\"type\":\"ping\"}").await;
    assert_eq!(socket.next().await.unwrap(), json!({ "type": "pong", "data": { "type": "pong" } }));
    socket.send(&"x".repeat(5 << 10)).await;
    assert_eq!(socket.remaining().await, (vec![], None));
    let is_alone = async || gateway.metrics().await["headwater_connections"] == 1.0;
    until_async("the connection to be released", is_alone).await;
}
