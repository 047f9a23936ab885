//! Callers without credentials: what they see and watch once users exist, how many may watch, and from which networks.

use config::{ClassNetworks, Config};
use domain::channel::Channel;
use domain::stream_profile::{Delivery, StreamProfile};
use domain::user::UserLevel;

use crate::support::api::Api;
use crate::support::client::{Player, Request, Response, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::until_async;
use crate::support::upstream::Provider;
use crate::support::users::{TestUser, create_user};
use crate::support::websocket::WebSocketClient;

const PLAYLIST: &str = "/playlist.m3u";

/// Starts a gateway with the channels News, Late (adult) and Members (level 1).
async fn gateway(change: impl FnOnce(&mut Config)) -> (Provider, TestGateway) {
    let provider = Provider::start();
    let names = ["News", "Late", "Members"];
    let paths = names.map(|it| format!("/{it}.ts"));
    for path in &paths {
        provider.path(path).plays(Picture::new("picture"));
    }
    let entries: Vec<_> =
        names.iter().zip(&paths).map(|(name, path)| (*name, *name, path.as_str())).collect();
    let gateway = Setup::new().list(&provider.playlist(&entries)).config(change).start().await;
    let late = Channel { is_adult: true, ..gateway.channel("Late").clone() };
    let members = Channel { user_level: UserLevel::Standard, ..gateway.channel("Members").clone() };
    gateway.change(move |write| write.put(&late).and_then(|()| write.put(&members))).await;
    (provider, gateway)
}

fn networks(connect: &str, anonymous: Option<&str>) -> ClassNetworks {
    ClassNetworks { connect: connect.parse().unwrap(), anonymous: anonymous.map(|it| it.parse().unwrap()) }
}

async fn get(gateway: &TestGateway, path: &str) -> Response {
    fetch(gateway.address, Request::get(path)).await
}

async fn get_as(gateway: &TestGateway, user: &TestUser, path: &str) -> Response {
    fetch(gateway.address, Request::get(path).header("X-API-Key", &user.api_key)).await
}

/// Returns the statuses of HEAD requests for the three channels.
async fn statuses(gateway: &TestGateway) -> Vec<u16> {
    let mut statuses = Vec::new();
    for name in ["News", "Late", "Members"] {
        statuses.push(fetch(gateway.address, Request::head(gateway.path(name))).await.status());
    }
    statuses
}

/// Returns the names in a playlist.
fn names(playlist: &Response) -> Vec<String> {
    let text = playlist.text();
    text.lines().filter_map(|it| it.rsplit_once(',')).map(|it| it.1.to_owned()).collect()
}

/// Holds T-acc.10.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn once_a_user_exists_callers_without_credentials_are_viewers_who_see_no_adult_channels() {
    let (provider, gateway) = gateway(|_| {}).await;
    assert_eq!(names(&get(&gateway, PLAYLIST).await), ["News", "Late", "Members"]);
    assert_eq!(statuses(&gateway).await, [200, 200, 200]);

    let anna = create_user(&gateway, "anna", |it| it.level = UserLevel::Standard).await;
    assert_eq!(names(&get(&gateway, PLAYLIST).await), ["News"]);
    assert_eq!(statuses(&gateway).await, [200, 404, 404]);
    assert_eq!(get(&gateway, &gateway.path("Late")).await.status(), 404);
    assert_eq!(provider.accepted(), 0);

    // With credentials, the user decides.
    assert_eq!(names(&get_as(&gateway, &anna, PLAYLIST).await), ["News", "Late", "Members"]);
    let child = create_user(&gateway, "child", |it| it.hide_adult = true).await;
    assert_eq!(names(&get_as(&gateway, &child, PLAYLIST).await), ["News"]);
    let player = gateway.watch("News").await;
    player.sees("picture").await;
}

/// Holds T-acc.10.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_without_credentials_is_never_redirected_to_the_provider() {
    let (provider, gateway) = gateway(|it| it.engine.default_stream_profile = Delivery::Redirect).await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    let channel = gateway.path("News");
    let refused = get(&gateway, &channel).await;
    assert_eq!((refused.status(), refused.header("location")), (401, None));
    assert!(!refused.text().contains(&provider.address.to_string()), "{}", refused.text());

    let redirected = get_as(&gateway, &anna, &channel).await;
    assert_eq!((redirected.status(), redirected.header("location")), (302, Some(&*provider.url("/News.ts"))));
}

/// Tuners of media servers on the local network have no login.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_profile_can_redirect_callers_without_credentials() {
    let (provider, gateway) = gateway(|it| it.engine.default_stream_profile = Delivery::Redirect).await;
    create_user(&gateway, "anna", |_| {}).await;
    let channel = gateway.path("News");
    let set = async |redirect_without_login: bool| {
        let profile =
            StreamProfile { redirect_without_login, ..StreamProfile::from_delivery(Delivery::Redirect) };
        gateway.change(move |write| write.put(&profile)).await;
    };
    for (is_open, expected) in [(false, 401), (true, 302), (false, 401)] {
        set(is_open).await;
        let location = is_open.then(|| provider.url("/News.ts"));
        until_async("the plans follow the profile", async || {
            let answer = get(&gateway, &channel).await;
            (answer.status(), answer.header("location")) == (expected, location.as_deref())
        })
        .await;
        assert_eq!(get(&gateway, &gateway.path("Late")).await.status(), 404, "still hidden");
    }
}

/// Holds T-acc.10.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_becomes_hidden_ends_for_viewers_without_credentials_and_others_keep_it() {
    let (_provider, gateway) = gateway(|_| {}).await;
    let anna = create_user(&gateway, "anna", |it| it.level = UserLevel::Standard).await;
    let hides: [fn(&mut Channel); 2] = [|it| it.is_adult = true, |it| it.user_level = UserLevel::Standard];
    for hide in hides {
        let shown = gateway.channel("News").clone();
        let mut hidden = shown.clone();
        hide(&mut hidden);
        gateway.change(move |write| write.put(&shown)).await;
        let nameless = gateway.watch("News").await;
        let user = Player::ask(gateway.address, gateway.get("News").header("X-API-Key", &anna.api_key)).await;
        for player in [&nameless, &user] {
            player.sees("picture").await;
        }
        gateway.change(move |write| write.put(&hidden)).await;
        nameless.ended().await;
        user.more_bytes(20_000).await;
        assert_eq!(get(&gateway, &gateway.path("News")).await.status(), 404);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_viewers_without_credentials_can_be_limited() {
    let (_provider, gateway) = gateway(|it| it.limits.anonymous_viewers_max = 1).await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    let channel = gateway.path("News");
    let device = |name: &str| Request::get(&channel).header("User-Agent", name);
    let first = Player::ask(gateway.address, device("TV/1")).await;
    first.sees("picture").await;

    let second = fetch(gateway.address, device("TV/2")).await;
    assert_eq!((second.status(), second.header("retry-after")), (503, Some("3")));
    assert!(second.text().contains("limit of 1 viewers without credentials"), "{}", second.text());
    // A change of users ends nobody's stream.
    create_user(&gateway, "bert", |_| {}).await;
    // A user is not counted, and the same device may connect again.
    let user = Player::ask(gateway.address, device("TV/3").header("X-API-Key", &anna.api_key)).await;
    user.sees("picture").await;
    let again = Player::ask(gateway.address, device("TV/1")).await;
    again.sees("picture").await;
    assert!(first.is_watching());

    first.leave().await;
    again.leave().await;
    user.leave().await;
    gateway.until_idle().await;
    let third = Player::ask(gateway.address, device("TV/2")).await;
    third.sees("picture").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_need_no_credentials_from_loopback_and_those_of_an_admin_from_elsewhere() {
    let (_provider, gateway) = gateway(|it| it.trusted_proxies = "127.0.0.1".parse().unwrap()).await;
    let anna = create_user(&gateway, "anna", |it| it.level = UserLevel::Standard).await;
    let admin = create_user(&gateway, "root", |it| it.level = UserLevel::Admin).await;
    let from = |client: &str| Request::get("/metrics").header("X-Forwarded-For", client);
    for (client, key, expected) in [
        ("127.0.0.1", "", 200),
        ("192.168.1.5", "", 403),
        ("203.0.113.9", "", 403),
        ("192.168.1.5", anna.api_key.as_str(), 403),
        ("192.168.1.5", &admin.api_key, 200),
        ("203.0.113.9", "wrong", 401),
    ] {
        let request = if key.is_empty() { from(client) } else { from(client).header("X-API-Key", key) };
        for port in [gateway.address, gateway.api] {
            assert_eq!(fetch(port, request.clone()).await.status(), expected, "{client} {key}");
        }
    }
}

/// Holds T-acc.11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_class_of_requests_has_its_own_networks() {
    let (_provider, gateway) = gateway(|it| {
        it.network_access.ui = networks("10.0.0.0/8", None);
        it.network_access.streams = networks("any", Some("none"));
        it.network_access.m3u_epg = networks("any", Some("loopback"));
        it.network_access.metrics = networks("10.0.0.0/8", Some("any"));
    })
    .await;
    let admin = create_user(&gateway, "root", |it| it.is_superuser = true).await;
    let channel = gateway.path("News");
    for (path, anonymous, with_key) in [
        ("/api/", 403, 403),
        ("/api/accounts/users/me/", 403, 403),
        ("/api/accounts/initialize-superuser/", 403, 403),
        ("/proxy/ts/status", 403, 403),
        ("/", 403, 403),
        ("/metrics", 403, 403),
        (PLAYLIST, 200, 200),
        ("/healthz", 200, 200),
        ("/nothing", 404, 404),
    ] {
        assert_eq!(get(&gateway, path).await.status(), anonymous, "{path}");
        assert_eq!(get_as(&gateway, &admin, path).await.status(), with_key, "{path}");
    }
    let key = [("X-API-Key", admin.api_key.as_str())];
    let socket = WebSocketClient::open(gateway.address, "/ws/", &key).await;
    assert_eq!(socket.err(), Some(403));
    assert_eq!(fetch(gateway.address, Request::head(&channel)).await.status(), 403);
    let with_key = Request::head(&channel).header("X-API-Key", &admin.api_key);
    assert_eq!(fetch(gateway.address, with_key).await.status(), 200);
    let file = format!("{}.ts", gateway.channel("News").id);
    assert_eq!(fetch(gateway.address, Request::head(admin.live(&file))).await.status(), 200);
}

/// Holds T-acc.11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_may_not_watch_is_refused_before_its_login_is_checked() {
    let (_provider, gateway) = gateway(|it| it.network_access.streams = networks("10.0.0.0/8", None)).await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    let file = format!("{}.ts", gateway.channel("News").id);
    for path in [anna.live(&file), anna.path(&file), "/live/anna/wrong/1.ts".to_owned(), gateway.path("News")]
    {
        assert_eq!(get_as(&gateway, &anna, &path).await.status(), 403, "{path}");
    }
    assert_eq!(gateway.n_events("login_failed"), 0);
    assert_eq!(Api::stranger(&gateway).key(&anna.api_key).get("/api/").await.status, 200);
}
