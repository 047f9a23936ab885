//! Clients behind reverse proxies: who counts as local, and which address networks, limits, delays and statistics use.

use domain::event::EventBody;
use serde_json::json;

use crate::support::api::Api;
use crate::support::client::{Player, Request, fetch};
use crate::support::eventually;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::Provider;
use crate::support::users::create_user;

const PLAYLIST: &str = "/playlist.m3u";
const FORWARDED_FOR: &str = "X-Forwarded-For";

/// Starts a gateway with the channel `News` and these trusted proxies. All test clients connect from 127.0.0.1.
async fn gateway(trusted_proxies: &str) -> (Provider, TestGateway) {
    let provider = Provider::start();
    let list = provider.playlist(&[("news", "News", "/news.ts")]);
    let setup = Setup::new().list(&list).config(|it| {
        it.trusted_proxies = trusted_proxies.parse().unwrap();
        it.auth.failure_delay_max = std::time::Duration::ZERO;
    });
    (provider, setup.start().await)
}

/// Requests a path as a proxy does for the client of this address, and returns the status.
async fn forwarded(gateway: &TestGateway, path: &str, client: &str) -> u16 {
    fetch(gateway.address, Request::get(path).header(FORWARDED_FOR, client)).await.status()
}

/// Holds T-acc.6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_a_proxy_that_is_not_trusted_need_credentials() {
    let (provider, gateway) = gateway("none").await;
    let admin = create_user(&gateway, "root", |it| it.is_superuser = true).await;
    let admin = Api::stranger(&gateway).key(&admin.api_key);
    for path in [PLAYLIST, "/metrics", &gateway.path("News")] {
        assert_eq!(forwarded(&gateway, path, "127.0.0.1").await, 403, "{path}");
        for header in ["Forwarded", "X-Real-IP", "X-Forwarded-Proto", "Via", "CF-Connecting-IP"] {
            let request = Request::get(path).header(header, "for=192.168.1.5");
            assert_eq!(fetch(gateway.address, request).await.status(), 403, "{header} {path}");
        }
    }
    assert_eq!(provider.accepted(), 0);
    // The event tells the operator what to do.
    let reason = |body: &EventBody| match body {
        EventBody::M3uBlocked { reason, .. } => reason.contains("trusted_proxies"),
        _ => false,
    };
    eventually("the event", || gateway.events().iter().any(|it| reason(&it.body))).await;

    let me = Request::get("/api/accounts/users/me/").header(FORWARDED_FOR, "127.0.0.1");
    assert_eq!(admin.ask(me).await.status, 200, "credentials are valid from anywhere");
}

/// Holds T-acc.6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_that_a_trusted_proxy_names_is_the_one_that_counts() {
    let (provider, gateway) = gateway("127.0.0.1").await;
    provider.path("/news.ts").plays(Picture::new("news"));
    let channel = gateway.path("News");
    for (client, expected) in [
        ("192.168.1.5", 200),
        ("fd00::5", 200),
        ("203.0.113.9", 403),
        ("127.0.0.1, 203.0.113.9", 403),
        ("192.168.1.5, 203.0.113.9, 127.0.0.1", 403),
        ("unknown", 403),
        ("", 403),
    ] {
        assert_eq!(forwarded(&gateway, PLAYLIST, client).await, expected, "{client}");
    }
    // A trusted proxy that names no client may be any client.
    assert_eq!(fetch(gateway.address, Request::get(PLAYLIST)).await.status(), 403);

    let player =
        Player::ask(gateway.address, Request::get(&channel).header(FORWARDED_FOR, "192.168.1.5")).await;
    player.sees("news").await;
    let admin = create_user(&gateway, "root", |it| it.is_superuser = true).await;
    let admin = Api::stranger(&gateway).key(&admin.api_key);
    let status = admin.get("/proxy/ts/status").await.body;
    assert_eq!(status["channels"][0]["clients"][0]["ip_address"], "192.168.1.5", "{status}");

    let login = json!({ "username": "nobody", "password": "x" }).to_string();
    let login = Request::get("/api/accounts/token/").method("POST").body("application/json", login);
    assert_eq!(fetch(gateway.address, login.header(FORWARDED_FOR, "203.0.113.9")).await.status(), 401);
    let failed = |body: &EventBody| match body {
        EventBody::LoginFailed { attempt, .. } => attempt.ip.to_string() == "203.0.113.9",
        _ => false,
    };
    eventually("the event", || gateway.events().iter().any(|it| failed(&it.body))).await;
}
