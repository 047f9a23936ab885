//! The REST API over sockets. Its responses are tested without sockets in `rest`.

use crate::support::client::{Request, fetch, say};
use crate::support::gateway::Setup;

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_is_available_on_both_ports() {
    let gateway = Setup::new().start().await;
    for address in [gateway.api, gateway.address] {
        let answer = fetch(address, Request::get("/api/core/version/")).await;
        assert_eq!(answer.status(), 200);
        assert!(answer.text().contains(env!("CARGO_PKG_VERSION")), "{}", answer.text());
        let answer = fetch(address, Request::get("/api")).await;
        assert_eq!((answer.status(), answer.header("location")), (301, Some("api/")));
        let answer = fetch(address, Request::get("/api/channels/groups/")).await;
        assert_eq!((answer.status(), answer.header("content-type")), (401, Some("application/json")));
        let answer = fetch(address, Request::get("/api/a/b")).await;
        assert_eq!(
            (answer.status(), answer.text().as_str()),
            (404, "{\"code\":\"not_found\",\"detail\":\"Not found.\",\"values\":{}}")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn head_returns_the_content_length_without_a_body() {
    let gateway = Setup::new().start().await;
    let get = fetch(gateway.api, Request::get("/api/core/version/")).await;
    let head = fetch(gateway.api, Request::head("/api/core/version/")).await;
    assert_eq!((head.status(), head.text().as_str()), (200, ""));
    assert_eq!(head.header("content-length"), get.header("content-length"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_after_an_unread_body_is_answered_or_the_connection_is_closed() {
    let gateway = Setup::new().start().await;
    let body = "x".repeat(1000);
    let request = format!(
        "POST /api/channels/groups/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{body}\
         GET /api/core/version/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    );
    let answer = text(say(gateway.api, request.as_bytes()).await);
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let others: Vec<_> = answer.match_indices("HTTP/1.1 ").skip(1).map(|it| &answer[it.0..][..12]).collect();
    assert!(others.is_empty() || others == ["HTTP/1.1 200"], "{answer}");
}
