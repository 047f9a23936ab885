//! Player apps that log in at the panel, list channels, and play with the addresses that they build from the answers.

use std::time::Duration;

use config::Config;
use domain::event::EventBody;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use crate::support::api::Api;
use crate::support::client::{Player, Request, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::Provider;
use crate::support::users::{TestUser, change_user, create_user};
use crate::support::{WAIT_MAX, eventually};

const NEWS: &str = "/live/anna/news.ts";
const FILM: &str = "/live/anna/film.ts";

/// Starts a gateway with the channels "News" and "Film".
async fn set_up(config: impl FnOnce(&mut Config)) -> (Provider, TestGateway) {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    provider.path(FILM).plays(Picture::new("film"));
    let list = provider.playlist(&[("news", "News", NEWS), ("film", "Film", FILM)]);
    let undelayed = |it: &mut Config| {
        it.auth.failure_delay_max = Duration::ZERO;
        config(it);
    };
    let gateway = Setup::new().list(&list).config(undelayed).start().await;
    (provider, gateway)
}

/// Returns the parameters of a login, and further ones.
fn parameters(name: &str, password: &str, more: &[(&str, &str)]) -> String {
    let mut query = Serializer::new(String::new());
    query.append_pair("username", name).append_pair("password", password).extend_pairs(more);
    query.finish()
}

/// Requests an action as apps do.
async fn panel(gateway: &TestGateway, user: &TestUser, action: &str) -> Value {
    let query = parameters(&user.name, &user.password, &[("action", action)]);
    let answer = fetch(gateway.address, Request::get(format!("/player_api.php?{query}"))).await;
    assert_eq!((answer.status(), answer.header("content-type")), (200, Some("application/json")));
    serde_json::from_slice(&answer.bytes).unwrap()
}

/// Builds the path of a stream from the account, as apps do that forget what the user typed.
fn path_of(account: &Value, stream: &Value) -> String {
    let part = |value: &Value| utf8_percent_encode(value.as_str().unwrap(), NON_ALPHANUMERIC).to_string();
    let user = &account["user_info"];
    let extension = user["allowed_output_formats"][0].as_str().unwrap();
    format!(
        "/live/{}/{}/{}.{extension}",
        part(&user["username"]),
        part(&user["password"]),
        stream["stream_id"]
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_plays_with_the_addresses_that_it_builds_from_the_answers() {
    let (provider, gateway) = set_up(|_| {}).await;
    let anna = create_user(&gateway, "anna", |it| it.stream_limit = 2).await;
    let account = panel(&gateway, &anna, "").await;
    let server = &account["server_info"];
    assert_eq!(
        (&server["url"], &server["port"], &server["server_protocol"]),
        (&json!("127.0.0.1"), &json!(gateway.address.port().to_string()), &json!("http"))
    );
    assert_eq!(
        (&account["user_info"]["max_connections"], &account["user_info"]["active_cons"]),
        (&json!("2"), &json!("0"))
    );
    let streams = panel(&gateway, &anna, "get_live_streams").await;
    let mut players = Vec::new();
    for stream in streams.as_array().unwrap() {
        let request =
            Request::get(path_of(&account, stream)).header("User-Agent", stream["name"].as_str().unwrap());
        let player = Player::ask(gateway.address, request).await;
        player.sees(&stream["name"].as_str().unwrap().to_lowercase()).await;
        players.push(player);
    }
    assert_eq!((players.len(), provider.accepted()), (2, 2));
    assert_eq!(panel(&gateway, &anna, "").await["user_info"]["active_cons"], "2");
    let other = create_user(&gateway, "other", |_| {}).await;
    assert_eq!(panel(&gateway, &other, "").await["user_info"]["active_cons"], "0", "those of the user only");
    drop(players);
    gateway.until_idle().await;
    assert_eq!(panel(&gateway, &anna, "").await["user_info"]["active_cons"], "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_that_posts_a_form_is_answered_like_one_that_sends_a_query() {
    let (_provider, gateway) = set_up(|_| {}).await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    let form = parameters(&anna.name, &anna.password, &[("action", "get_live_streams")]);
    let request = |path: &str| Request::get(path).method("POST");
    let of_form = request("/player_api.php").body("application/x-www-form-urlencoded", &form);
    let expected = panel(&gateway, &anna, "get_live_streams").await;
    for request in [of_form, request(&format!("/player_api.php?{form}"))] {
        let answer = fetch(gateway.address, request).await;
        assert_eq!((answer.status(), answer.header("access-control-allow-origin")), (200, Some("*")));
        assert_eq!(serde_json::from_slice::<Value>(&answer.bytes).unwrap(), expected);
    }
    let head = fetch(gateway.address, Request::head(format!("/player_api.php?{form}"))).await;
    assert_eq!((head.status(), head.bytes.len()), (200, 0));
    let old = fetch(gateway.address, Request::get(format!("/panel_api.php?{form}"))).await;
    let old: Value = serde_json::from_slice(&old.bytes).unwrap();
    assert_eq!(old["available_channels"].as_object().unwrap().len(), 2);
    assert_eq!(old["user_info"]["username"], "anna");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_login_at_the_panel_is_reported_and_reveals_nothing() {
    let (_provider, gateway) = set_up(|_| {}).await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    change_user(&gateway, &anna, |it| it.is_active = false).await;
    let mut answers = Vec::new();
    for (name, password) in [("anna", anna.password.as_str()), ("anna", "swordfish"), ("nobody", "swordfish")]
    {
        let path = format!("/player_api.php?{}", parameters(name, password, &[]));
        let answer = fetch(gateway.address, Request::get(path)).await;
        answers.push((answer.status(), answer.header("content-type").map(str::to_owned), answer.text()));
    }
    assert_eq!((answers[0].0, answers[0].1.as_deref()), (401, Some("application/json")));
    assert!(answers.iter().all(|it| *it == answers[0]), "{answers:?}");
    let reasons = || {
        let events = gateway.events();
        let reason = |body: &EventBody| match body {
            EventBody::LoginFailed { reason, .. } => Some(reason.clone()),
            _ => None,
        };
        events.iter().filter_map(|it| reason(&it.body)).collect::<Vec<_>>()
    };
    // Two failures of one user are one report.
    eventually("the reports", || reasons().len() == 2).await;
    assert_eq!(reasons().iter().map(|it| &**it).collect::<Vec<_>>(), ["wrong password", "unknown user"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_networks_of_the_panel_apply_to_apps_and_to_each_user() {
    let elsewhere =
        |config: &mut Config| config.network_access.xc_api.connect = "10.0.0.0/8".parse().unwrap();
    for (config, of_user) in [(Some(elsewhere), json!({})), (None, json!({ "XC_API": ["10.0.0.0/8"] }))] {
        let (_provider, gateway) = set_up(|it| config.into_iter().for_each(|change| change(it))).await;
        let anna = create_user(&gateway, "anna", |_| {}).await;
        change_user(&gateway, &anna, move |it| {
            it.custom_properties.insert("allowed_networks".to_owned(), of_user);
        })
        .await;
        for path in ["/player_api.php", "/panel_api.php"] {
            let path = format!("{path}?{}", parameters(&anna.name, &anna.password, &[]));
            let answer = fetch(gateway.address, Request::get(path)).await;
            assert_eq!((answer.status(), answer.header("content-type")), (403, Some("application/json")));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_player_secret_logs_nobody_in_and_ends_no_stream() {
    let (_provider, gateway) = set_up(|_| {}).await;
    let admin = Api::first_admin(&gateway).await;
    let anna = json!({ "username": "anna", "password": "right-as-rain", "user_level": 0 });
    let made = admin.post("/api/accounts/users/", anna).await;
    assert_eq!(made.status, 201, "{made:?}");
    let user = format!("/api/accounts/users/{}", made.body["id"]);
    let addresses = admin.get(&format!("{user}/addresses/")).await;
    let secret = addresses.text("password").to_owned();
    let path = format!("/live/anna/{secret}/{}.ts", gateway.channel("News").id);
    let watching = Player::watch(gateway.address, &path).await;
    watching.sees("news").await;
    let account = format!("/player_api.php?username=anna&password={secret}");
    assert_eq!(fetch(gateway.address, Request::get(&account)).await.status(), 200);

    assert_eq!(admin.post(&format!("{user}/player-secret/revoke/"), json!({})).await.status, 204);
    assert_eq!(fetch(gateway.address, Request::get(&account)).await.status(), 401);
    assert_eq!(fetch(gateway.address, Request::get(&path)).await.status(), 401);
    watching.more_bytes(50_000).await;
    let next = admin.get(&format!("{user}/addresses/")).await;
    assert_ne!(next.text("password"), secret);
    let path = path.replace(&secret, next.text("password"));
    assert_eq!(fetch(gateway.address, Request::head(&path)).await.status(), 200);
    assert_eq!(admin.patch(&format!("{user}/"), json!({ "is_active": false })).await.status, 200);
    assert_eq!(fetch(gateway.address, Request::get(&path)).await.status(), 401);
    watching.ended().await;
}

/// Holds T-load.1 for logins: 200 apps that open at the same moment, each with a user of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_apps_that_open_at_the_same_moment_are_all_answered() {
    let (_provider, gateway) = set_up(|_| {}).await;
    let mut users = Vec::new();
    for number in 0..200 {
        users.push(create_user(&gateway, &format!("user{number}"), |_| {}).await);
    }
    let mut asking = tokio::task::JoinSet::new();
    for user in users {
        let address = gateway.address;
        asking.spawn(async move {
            for action in ["", "get_live_categories", "get_live_streams"] {
                let query = parameters(&user.name, &user.password, &[("action", action)]);
                let answer = fetch(address, Request::get(format!("/player_api.php?{query}"))).await;
                assert_eq!(answer.status(), 200, "{}", answer.text());
            }
        });
    }
    while let Some(done) = asking.join_next().await {
        done.unwrap();
    }
}

/// The sequence of a player app on an account with one connection: login, lists, guide, probe, playback, the next channel.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_probes_plays_and_zaps_on_an_account_with_one_connection() {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    provider.path(FILM).plays(Picture::new("film"));
    provider.limit("anna", 1, 403, Duration::ZERO);
    let list = provider.playlist(&[("news", "News", NEWS), ("film", "Film", FILM)]);
    // The channel of the probe stays until the playback begins, however slow the machine is.
    let setup = Setup::new().limited_list(&list, 1).engine(|it| it.channel_shutdown_delay = WAIT_MAX);
    let gateway = setup.start().await;
    let anna = create_user(&gateway, "anna", |it| it.stream_limit = 1).await;
    let account = panel(&gateway, &anna, "").await;
    let streams = panel(&gateway, &anna, "get_live_streams").await;
    // A scan of the guide: a request for each channel, all at once.
    let scan = (0..200).map(|n| {
        let id = streams[n % 2]["stream_id"].to_string();
        let more = [("action", "get_short_epg"), ("stream_id", &*id)];
        let path = format!("/player_api.php?{}", parameters(&anna.name, &anna.password, &more));
        fetch(gateway.address, Request::get(path))
    });
    for guide in futures_util::future::join_all(scan).await {
        assert_eq!((guide.status(), guide.text()), (200, json!({ "epg_listings": [] }).to_string()));
    }
    assert_eq!(provider.accepted(), 0, "lists and guides are answered without the provider");

    let request = |name: &str| {
        let stream = streams.as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
        // VLC asks for a range of a live stream, too.
        Request::get(path_of(&account, stream)).header("User-Agent", "VLC/3.0.20").header("Range", "bytes=0-")
    };
    let head = fetch(gateway.address, request("News").method("HEAD")).await;
    assert_eq!((head.status(), head.header("content-type")), (200, Some("video/mp2t")));
    assert_eq!(provider.accepted(), 0);
    let probe = Player::ask(gateway.address, request("News")).await;
    probe.sees("news").await;
    probe.reset().await;
    let news = Player::ask(gateway.address, request("News")).await;
    news.sees("news").await;
    assert_eq!(provider.accepted(), 1, "the probe and the playback share a connection");
    let film = Player::ask(gateway.address, request("Film")).await;
    film.sees("film").await;
    news.ended().await;
    assert_eq!((provider.peak_of("anna"), provider.refusals()), (1, 0));
    assert_eq!(panel(&gateway, &anna, "").await["user_info"]["active_cons"], "1");
}

/// These wait for fixed timeouts.
mod slow {
    use super::*;
    use crate::support::client::Reading;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_phone_that_changes_its_network_plays_again_once_the_silent_connection_is_closed() {
        let (provider, gateway) = set_up(|_| {}).await;
        let anna = create_user(&gateway, "anna", |it| it.stream_limit = 1).await;
        let at_home = anna.asks(&gateway, "News", "phone at home").receive_buffer(16 << 10);
        let at_home = Player::ask(gateway.address, at_home).await;
        at_home.sees("news").await;
        // The phone is gone, and its connection does not say so.
        at_home.read(Reading::Nothing);
        let underway =
            async || Player::ask(gateway.address, anna.asks(&gateway, "News", "phone underway")).await;
        let refused = underway().await.answer().await;
        assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("3")));
        eventually("the silent connection to end", || gateway.gateway.counts().seats == 0).await;
        underway().await.sees("news").await;
        assert_eq!(provider.peak(), 1);
    }
}
