//! The HTTP server under bad requests, limits and restricted networks; other clients are not affected.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::api::Api;
use crate::support::client::{Player, Request, connect, fetch, say};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::{MockResponse, Provider};
use crate::support::users::create_user;
use crate::support::{WAIT_MAX, eventually};

const NEWS: &str = "/live/anna/news.ts";
const SPORT: &str = "/live/anna/sport.ts";

fn list() -> (Provider, String) {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    let list = provider.playlist(&[("news", "News", NEWS)]);
    (provider, list)
}

fn status_of(answer: &[u8]) -> u16 {
    let text = String::from_utf8_lossy(answer);
    text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_request_is_rejected_and_the_next_client_is_served() {
    let (provider, list) = list();
    let gateway =
        Setup::new().list(&list).config(|it| it.limits.header_timeout = Duration::from_secs(2)).start().await;
    let long = "x".repeat(40_000);
    let many = "x: y\r\n".repeat(400);
    let rubbish: Vec<(Vec<u8>, &[u16])> = vec![
        (b"\r\n\r\n".to_vec(), &[0, 400]),
        (b"hello\r\n\r\n".to_vec(), &[400]),
        (vec![0; 1000], &[0, 400]),
        (vec![0xFF; 5000], &[0, 400]),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), &[0, 400]),
        (format!("GET /{long} HTTP/1.1\r\n\r\n").into_bytes(), &[400, 414, 431]),
        (format!("GET / HTTP/1.1\r\nHost: {long}\r\n\r\n").into_bytes(), &[400, 431]),
        (format!("GET / HTTP/1.1\r\n{many}\r\n").into_bytes(), &[431]),
        (b"GET / HTTP/9.9\r\n\r\n".to_vec(), &[400, 505]),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), &[0, 400, 505]),
        (b"GET /proxy/ts/stream/%ff%00 HTTP/1.1\r\nConnection: close\r\n\r\n".to_vec(), &[404]),
        (b"GET /proxy/ts/stream/../../etc/passwd HTTP/1.1\r\nConnection: close\r\n\r\n".to_vec(), &[404]),
        (b"GET http://elsewhere.example/ HTTP/1.1\r\nConnection: close\r\n\r\n".to_vec(), &[200, 400, 404]),
        (b"CONNECT elsewhere.example:443 HTTP/1.1\r\nConnection: close\r\n\r\n".to_vec(), &[400, 404, 405]),
        (b"GET elsewhere.example:80 HTTP/1.1\r\nConnection: close\r\n\r\n".to_vec(), &[400, 404]),
        (b"GET http://elsewhere.example HTTP/1.1\r\nConnection: close\r\n\r\n".to_vec(), &[200, 400, 404]),
        (b"OPTIONS * HTTP/1.1\r\nConnection: close\r\n\r\n".to_vec(), &[400, 404, 405]),
        (b"GET /healthz HTTP/1.1\r\nContent-Length: x\r\n\r\n".to_vec(), &[400]),
        (
            b"GET /healthz HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n"
                .to_vec(),
            &[0, 200, 400],
        ),
    ];
    for (bytes, expected) in rubbish {
        for address in [gateway.address, gateway.api] {
            let mut bytes = bytes.clone();
            let answer = say(address, &bytes).await;
            bytes.truncate(60);
            let shown = String::from_utf8_lossy(&bytes).into_owned();
            assert!(
                expected.contains(&status_of(&answer)),
                "{shown:?} got {}",
                String::from_utf8_lossy(&answer)
            );
        }
    }
    gateway.watch("News").await.sees("news").await;
    assert_eq!(provider.accepted(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_incomplete_request_is_closed_after_a_timeout() {
    let (_provider, list) = list();
    let gateway =
        Setup::new().list(&list).config(|it| it.limits.header_timeout = Duration::from_secs(1)).start().await;
    let mut silent = connect(gateway.address, None).await;
    let mut slow = connect(gateway.address, None).await;
    slow.write_all(b"GET /healthz HTTP/1.1\r\nX-Slow: ").await.unwrap();
    for socket in [&mut silent, &mut slow] {
        let mut answer = Vec::new();
        let ended = timeout(WAIT_MAX, socket.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "the gateway closes the connection");
    }
    assert_eq!(fetch(gateway.address, Request::get("/healthz")).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_over_the_limit_gets_503_and_the_others_continue() {
    let (_provider, list) = list();
    for per_address in [false, true] {
        let setup = Setup::new().list(&list).config(|it| match per_address {
            true => it.limits.connections_per_address_max = 3,
            false => it.limits.connections_max = 3,
        });
        let gateway = setup.start().await;
        let mut watching = Vec::new();
        for _ in 0..3 {
            let player = gateway.watch("News").await;
            player.sees("news").await;
            watching.push(player);
        }
        for address in [gateway.address, gateway.api] {
            let answer = fetch(address, Request::get("/healthz")).await;
            assert_eq!(answer.status(), 503);
            assert!(answer.header("retry-after").is_some());
        }
        for player in &watching {
            player.more_bytes(50_000).await;
            player.received(|r| r.ts.assert_clean());
        }
        watching.pop();
        crate::support::until_async("a free connection", async || {
            fetch(gateway.address, Request::get("/healthz")).await.status() == 200
        })
        .await;
    }
}

// Behind the NAT of a provider, players without a login kept everybody else out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn players_without_a_login_leave_a_part_of_the_connections_of_their_address_to_users() {
    let (_provider, list) = list();
    let setup = Setup::new().list(&list).config(|it| it.limits.connections_per_address_max = 8);
    let gateway = setup.start().await;
    let admin = Api::first_admin(&gateway).await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    let mut watching = Vec::new();
    for _ in 0..6 {
        let player = gateway.watch("News").await;
        player.sees("news").await;
        watching.push(player);
    }
    let refused = fetch(gateway.address, gateway.get("News")).await;
    assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("3")));
    let text = refused.text();
    assert!(text.contains("is 6") && text.contains("limits.connections_per_address_max"), "{text}");
    let with_key = gateway.get("News").header("X-API-Key", &anna.api_key);
    let of_user = Player::ask(gateway.address, with_key).await;
    of_user.sees("news").await;
    for player in &watching {
        player.more_bytes(50_000).await;
    }
    let problems = admin.get("/api/core/health/").await.body["problems"].clone();
    let problem = problems.as_array().unwrap().iter().find(|it| it["kind"] == "connections_limit").unwrap();
    let message = problem["message"].as_str().unwrap();
    assert!(message.contains("127.0.0.1") && message.contains("limit of 8"), "{problem}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_from_other_networks_get_only_the_health_check() {
    let (provider, list) = list();
    // Every test client connects from loopback, so only other networks are allowed.
    let setup = Setup::new().list(&list).config(|it| {
        it.stream_networks = "10.0.0.0/8".parse().unwrap();
        it.metrics_networks = "10.0.0.0/8".parse().unwrap();
    });
    let gateway = setup.start().await;
    let stream = gateway.path("News");
    for (path, status) in [(stream.as_str(), 403), ("/playlist.m3u", 401), ("/metrics", 403)] {
        let answer = fetch(gateway.address, Request::get(path)).await;
        assert_eq!(answer.status(), status, "{path}");
        assert!(!answer.text().contains("127.0.0.1"), "{path}: {}", answer.text());
    }
    assert_eq!(fetch(gateway.address, Request::head(&stream)).await.status(), 403);
    assert_eq!(fetch(gateway.api, Request::get("/metrics")).await.status(), 403);
    for address in [gateway.address, gateway.api] {
        assert_eq!(fetch(address, Request::get("/healthz")).await.status(), 200);
    }
    assert_eq!(provider.accepted(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_path_returns_404_and_an_unsupported_method_405() {
    let (_provider, list) = list();
    let gateway = TestGateway::with_list(&list).await;
    let unknown = "/proxy/ts/stream/00000000-0000-4000-8000-000000000000";
    for path in [unknown, "/proxy/ts/stream/", "/proxy/ts/stream/x/y", "/nothing", "/api/nothing/"] {
        let answer = fetch(gateway.address, Request::get(path)).await;
        assert_eq!(answer.status(), 404, "{path}");
        assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
    }
    let stream = gateway.path("News");
    for (path, method) in [(stream.as_str(), "POST"), (stream.as_str(), "DELETE"), ("/playlist.m3u", "PUT")] {
        let answer = fetch(gateway.address, Request::get(path).method(method)).await;
        assert_eq!(answer.status(), 405, "{method} {path}");
        assert!(answer.header("allow").is_some_and(|value| value.contains("GET")), "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_kept_alive_and_pipelined_requests_are_all_answered() {
    let (_provider, list) = list();
    let gateway = TestGateway::with_list(&list).await;
    let one = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    let last = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let answers = say(gateway.address, format!("{one}{one}{last}").as_bytes()).await;
    assert_eq!(String::from_utf8_lossy(&answers).matches("HTTP/1.1 200 OK").count(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn viewers_that_disconnect_leave_no_connection_behind() {
    let (_provider, list) = list();
    let gateway = TestGateway::with_list(&list).await;
    for _ in 0..20 {
        let player = Player::watch(gateway.address, &gateway.path("News")).await;
        player.head().await;
        player.reset().await;
    }
    gateway.until_idle().await;
    crate::support::until_async("only the connection of this request", async || {
        gateway.metrics().await["headwater_connections"] == 1.0
    })
    .await;
    eventually("twenty disconnects", || gateway.n_events("client_disconnect") == 20).await;
}

/// Closes both sides of a connection: the next bytes of the gateway are refused, or, with a reset, it is told at once.
fn leave(socket: TcpStream, is_reset: bool) {
    if is_reset {
        socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
    }
    drop(socket);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_that_leaves_during_a_start_releases_its_slot_despite_pipelined_bytes() {
    let (provider, list) = list();
    provider.path(NEWS).answers(MockResponse::mute());
    let setup = Setup::new().limited_list(&list, 1).engine(|it| {
        it.first_packet_timeout = Duration::from_secs(3600);
        it.start_timeout = Duration::from_secs(3600);
    });
    let gateway = setup.start().await;
    let stream = gateway.path("News");
    let playlist = format!("/proxy/hls/{}/index.m3u8", gateway.channel("News").uuid);
    for path in [stream.clone(), format!("{stream}?output_format=fmp4"), playlist] {
        for (surplus, is_reset, is_half_closed) in [
            ("\n", false, false),
            ("\n", true, false),
            ("", false, false),
            ("", true, true),
            ("\n", false, true),
        ] {
            let mut socket = connect(gateway.address, None).await;
            let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n{surplus}");
            socket.write_all(request.as_bytes()).await.unwrap();
            eventually("the start waits for the source", || provider.open_with_request() == 1).await;
            if is_half_closed {
                socket.shutdown().await.unwrap();
                // It may still wait for the channel, so the response begins, with a byte a second. Behind the last of these,
                // one that does not reset its connection is noticed after a minute, as the tests of `accept` show.
                let mut early = vec![0; if is_reset { 7 } else { 1 }];
                timeout(WAIT_MAX, socket.read_exact(&mut early)).await.expect("early bytes").unwrap();
                let expected = &b"HTTP/1."[..early.len()];
                assert_eq!((&*early, provider.open_with_request()), (expected, 1));
            }
            leave(socket, is_reset);
            gateway.until_idle().await;
            eventually("the connection to the provider is closed", || provider.open() == 0).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_that_half_closes_watches_on_and_its_slot_is_free_when_it_leaves() {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    provider.path(SPORT).plays(Picture::new("sport"));
    let list = provider.playlist(&[("news", "News", NEWS), ("sport", "Sport", SPORT)]);
    let gateway = Setup::new().limited_list(&list, 1).start().await;
    let path = gateway.path("News");
    for (request, is_reset) in [
        (format!("GET {path} HTTP/1.0\r\n\r\n"), false),
        (format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n\n"), true),
        (format!("GET /{path} HTTP/1.1\r\nHost: x\r\n\r\n"), false),
    ] {
        let mut socket = connect(gateway.address, None).await;
        socket.write_all(request.as_bytes()).await.unwrap();
        socket.shutdown().await.unwrap();
        let mut received = Vec::new();
        while received.len() < 100_000 {
            let read = timeout(WAIT_MAX, socket.read_buf(&mut received)).await.expect("the stream plays");
            let text = String::from_utf8_lossy(&received);
            assert!(read.unwrap() > 0, "{request} ends after {} bytes: {text}", received.len());
        }
        assert_eq!(status_of(&received), 200, "{request}");
        assert_eq!(received.windows(7).filter(|it| it == b"HTTP/1.").count(), 1, "{request}");
        gateway.has_clients(1).await;
        leave(socket, is_reset);
        gateway.has_clients(0).await;
        // The account has one connection.
        let next = gateway.watch("Sport").await;
        next.sees("sport").await;
        next.leave().await;
        gateway.until_idle().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_request_is_answered_after_a_half_close() {
    let (_provider, list) = list();
    let gateway = TestGateway::with_list(&list).await;
    let path = gateway.path("News");
    let one = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    for (requests, statuses) in [
        (format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n"), vec![200]),
        ("GET /playlist.m3u HTTP/1.0\r\n\r\n".to_owned(), vec![200]),
        ("GET /api HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), vec![301]),
        ("GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), vec![404]),
        (format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}"), vec![405]),
        (format!("{one}GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n{one}"), vec![200, 404, 200]),
    ] {
        let mut socket = connect(gateway.address, None).await;
        socket.write_all(requests.as_bytes()).await.unwrap();
        socket.shutdown().await.unwrap();
        let mut received = Vec::new();
        timeout(WAIT_MAX, socket.read_to_end(&mut received)).await.expect("the gateway closes").unwrap();
        let text = String::from_utf8_lossy(&received);
        let found: Vec<_> = text.match_indices("HTTP/1.").map(|it| status_of(&received[it.0..])).collect();
        assert_eq!(found, statuses, "{requests}: {text}");
    }
}

/// Programs put a path behind an address that ends with a slash.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slashes_before_a_path_count_as_one_everywhere() {
    let (_provider, list) = list();
    let setup = Setup::new().list(&list).config(|it| it.metrics_networks = "10.0.0.0/8".parse().unwrap());
    let gateway = setup.start().await;
    let stream = gateway.path("News");
    Player::watch(gateway.address, &format!("/{stream}")).await.sees("news").await;
    for path in [
        "/healthz",
        "/playlist.m3u",
        "/metrics",
        "/discover.json",
        "/api/",
        "/api/core/version/",
        "/nothing",
        "/evil.example/api",
    ] {
        for address in [gateway.address, gateway.api] {
            let right = fetch(address, Request::get(path)).await;
            for other in [format!("/{path}"), format!("///{path}"), format!("http://evil.example//{path}")] {
                let answer = fetch(address, Request::get(&other)).await;
                assert_eq!(answer.status(), right.status(), "{other}");
                assert_eq!(answer.header("content-type"), right.header("content-type"), "{other}");
                assert_eq!(answer.header("location"), right.header("location"), "{other}");
            }
        }
    }
    // A failed login delays the next ones, so it is tried once.
    let login = "/live/nobody/wrong/7.ts";
    let [right, other] = [login.to_owned(), format!("/{login}")].map(Request::get);
    assert_eq!(fetch(gateway.address, other).await.status(), fetch(gateway.address, right).await.status());
    // No redirect leads to another host.
    for path in ["//api", "///api?next=//evil.example", "//evil.example/api", "//evil.example/%2f.."] {
        let answer = fetch(gateway.address, Request::get(path)).await;
        let location = answer.header("location").unwrap_or_default();
        assert!(location.is_empty() || location.starts_with("api/"), "{path}: {location}");
    }
    // Slashes inside of a path do not count as one.
    for path in ["/api//", "/proxy//ts/stream/x", "/playlist.m3u//"] {
        assert_eq!(fetch(gateway.address, Request::get(path)).await.status(), 404, "{path}");
    }
}
