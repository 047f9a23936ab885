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

/// Returns the status with which a caller who needs credentials is refused. Players are asked for a login.
fn refused(path: &str) -> u16 {
    if path == PLAYLIST { 401 } else { 403 }
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
        assert_eq!(forwarded(&gateway, path, "127.0.0.1").await, refused(path), "{path}");
        for header in ["Forwarded", "X-Real-IP", "X-Forwarded-Proto", "Via", "CF-Connecting-IP"] {
            let request = Request::get(path).header(header, "for=192.168.1.5");
            let answer = fetch(gateway.address, request).await;
            assert_eq!(answer.status(), refused(path), "{header} {path}");
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
        ("203.0.113.9", 401),
        ("127.0.0.1, 203.0.113.9", 401),
        ("192.168.1.5, 203.0.113.9, 127.0.0.1", 401),
        ("unknown", 401),
        ("", 401),
    ] {
        assert_eq!(forwarded(&gateway, PLAYLIST, client).await, expected, "{client}");
    }
    // A trusted proxy that names no client may be any client.
    assert_eq!(fetch(gateway.address, Request::get(PLAYLIST)).await.status(), 401);

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

/// With nginx and Caddy, and their configurations in `docs/deploy`.
mod slow {
    use std::net::SocketAddr;
    use std::path::Path;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpSocket;
    use tokio::process::Command;

    use super::*;
    use crate::support::WAIT_MAX;
    use crate::support::reverse_proxy::{ReverseProxy, unused_address};
    use crate::support::users::TestUser;
    use crate::support::websocket::WebSocketClient;

    /// A running proxy that connects to the gateway from 127.0.0.2.
    struct Proxy(ReverseProxy);

    impl Proxy {
        /// Starts nginx in front of this port, as documented except for the lines that contain `without`.
        async fn nginx(gateway: SocketAddr, without: Option<&str>) -> Proxy {
            let (address, site) = (unused_address(), documented("nginx.conf", gateway));
            let site: String = site
                .lines()
                .filter(|line| without.is_none_or(|it| !line.contains(it)))
                .map(|line| format!("{line}\n"))
                .collect();
            let site = site.replace("listen 80;", &format!("listen {address};\nproxy_bind 127.0.0.2;"));
            Proxy(ReverseProxy::nginx(&site, address).await)
        }

        /// Starts Caddy in front of this port, as documented but without certificates.
        async fn caddy(gateway: SocketAddr) -> Proxy {
            let (address, site) = (unused_address(), documented("Caddyfile", gateway));
            let site = site.replace("tv.example.com", &format!("http://{address}"));
            let source = "flush_interval -1\n\t\ttransport http {\n\t\t\tlocal_address 127.0.0.2\n\t\t}";
            let text = format!("{{\n\tadmin off\n}}\n{}", site.replace("flush_interval -1", source));
            let arguments = ["run", "--config", "proxy.conf", "--adapter", "caddyfile"];
            Proxy(ReverseProxy::start(Command::new("caddy").args(arguments), &text, address).await)
        }

        /// Requests a path from this address of the client, with these lines of headers, and returns the status.
        async fn status_from(&self, client: &str, path: &str, headers: &str) -> u16 {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind(SocketAddr::new(client.parse().unwrap(), 0)).unwrap();
            let mut socket = socket.connect(self.0.address).await.unwrap();
            let request = format!(
                "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}\r\n",
                self.0.address
            );
            socket.write_all(request.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            let read = socket.read_to_end(&mut answer);
            tokio::time::timeout(WAIT_MAX, read).await.expect("the proxy closes the connection").unwrap();
            let answer = String::from_utf8_lossy(&answer);
            answer.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
        }
    }

    /// Returns a documented configuration, for a gateway at this address.
    fn documented(file: &str, gateway: SocketAddr) -> String {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/deploy").join(file);
        std::fs::read_to_string(page).unwrap().replace("127.0.0.1:9191", &gateway.to_string())
    }

    /// Starts a gateway to which only 127.0.0.1 is local, with an admin.
    async fn behind_proxy(trusted_proxies: &str) -> (Provider, TestGateway, TestUser) {
        let provider = Provider::start();
        provider.path("/news.ts").plays(Picture::new("news"));
        let list = provider.playlist(&[("news", "News", "/news.ts")]);
        let setup = Setup::new().list(&list).config(|it| {
            it.trusted_proxies = trusted_proxies.parse().unwrap();
            it.stream_networks = "127.0.0.1".parse().unwrap();
            it.metrics_networks = "127.0.0.1".parse().unwrap();
        });
        let gateway = setup.start().await;
        let admin = create_user(&gateway, "root", |it| it.is_superuser = true).await;
        (provider, gateway, admin)
    }

    /// Holds T-acc.6.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn behind_nginx_a_local_client_watches_and_a_remote_one_needs_credentials_whatever_it_claims() {
        let (_provider, gateway, admin) = behind_proxy("127.0.0.2").await;
        let nginx = Proxy::nginx(gateway.address, None).await;
        local_clients_watch_and_remote_ones_need_credentials(&gateway, &admin, &nginx).await;
    }

    /// Holds T-acc.6.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn behind_caddy_a_local_client_watches_and_a_remote_one_needs_credentials_whatever_it_claims() {
        let (_provider, gateway, admin) = behind_proxy("127.0.0.2").await;
        let caddy = Proxy::caddy(gateway.address).await;
        local_clients_watch_and_remote_ones_need_credentials(&gateway, &admin, &caddy).await;
    }

    async fn local_clients_watch_and_remote_ones_need_credentials(
        gateway: &TestGateway,
        admin: &TestUser,
        proxy: &Proxy,
    ) {
        let list = fetch(proxy.0.address, Request::get(PLAYLIST)).await;
        assert_eq!(list.status(), 200, "{}", list.text());
        assert!(
            list.text().contains(&format!("http://{}/proxy/ts/stream/", proxy.0.address)),
            "{}",
            list.text()
        );

        let player = Player::watch(proxy.0.address, &gateway.path("News")).await;
        player.sees("news").await;
        player.more_bytes(500_000).await;
        let key = [("X-API-Key", admin.api_key.as_str())];
        let api = Api::stranger_at(proxy.0.address).key(&admin.api_key);
        let status = api.get("/proxy/ts/status").await.body;
        assert_eq!(status["channels"][0]["clients"][0]["ip_address"], "127.0.0.1", "{status}");
        let mut socket = WebSocketClient::open(proxy.0.address, "/ws/", &key).await.expect("an upgrade");
        assert!(socket.next().await.is_ok());

        let user = format!("X-API-Key: {}\r\n", admin.api_key);
        for claim in [
            "",
            "X-Forwarded-For: 127.0.0.1\r\n",
            "X-Forwarded-For: 127.0.0.1, 127.0.0.2\r\n",
            "Forwarded: for=127.0.0.1\r\n",
            "X-Real-IP: 127.0.0.1\r\n",
        ] {
            for path in [PLAYLIST, &gateway.path("News"), "/metrics"] {
                let status = proxy.status_from("127.0.0.5", path, claim).await;
                assert_eq!(status, refused(path), "{path} {claim}");
            }
            let headers = format!("{claim}{user}");
            assert_eq!(proxy.status_from("127.0.0.5", PLAYLIST, &headers).await, 200, "{claim}");
        }
        assert_eq!(proxy.status_from("127.0.0.1", PLAYLIST, "").await, 200);
    }

    /// Holds T-acc.6.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn behind_an_nginx_that_is_not_trusted_or_names_nobody_everyone_needs_credentials() {
        for (trusted, without) in [("none", None), ("127.0.0.2", Some("X-Forwarded-For"))] {
            let (_provider, gateway, admin) = behind_proxy(trusted).await;
            let nginx = Proxy::nginx(gateway.address, without).await;
            for path in [PLAYLIST, &gateway.path("News"), "/metrics"] {
                let status = nginx.status_from("127.0.0.1", path, "").await;
                assert_eq!(status, refused(path), "{path} {without:?}");
            }
            let user = format!("X-API-Key: {}\r\n", admin.api_key);
            assert_eq!(nginx.status_from("127.0.0.1", PLAYLIST, &user).await, 200, "{without:?}");
        }
    }
}
