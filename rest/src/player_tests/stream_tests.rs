//! Which requests the stream routes answer, and with which status and headers.

use domain::channel::Channel;
use domain::ids::ChannelId;
use uuid::Uuid;

use crate::testing::{ADMIN, Answer, Rest, SECRET, STREAMER};

const UUID: Uuid = Uuid::from_u128(1);

async fn with_channel() -> Rest {
    let rest = Rest::start().await;
    rest.put([Channel::new(ChannelId(1), UUID, "one", 0)]).await;
    rest
}

/// Returns status, `Access-Control-Allow-Origin` and the tuner error of an answer.
fn outline(answer: &Answer) -> (u16, Option<&str>, Option<&str>) {
    let header = |name: &str| answer.headers.get(name).map(|it| it.to_str().unwrap());
    (answer.status, header("access-control-allow-origin"), header("x-hdhomerun-error"))
}

const UNKNOWN: Option<&str> = Some("801 Unknown Channel");

#[tokio::test]
async fn pages_of_any_origin_can_read_streams_and_the_reasons_of_refusals() {
    let rest = with_channel().await;
    let (channel, preview) = (format!("/proxy/ts/stream/{UUID}.ts"), "/proxy/ts/stream/1".to_owned());
    let unparsable = "/proxy/ts/stream/seven".to_owned();
    let login = format!("/streamer/{SECRET}%20{STREAMER}");
    let (streamer, admin) = (rest.bearer(STREAMER), rest.bearer(ADMIN));
    let token = admin.trim_start_matches("Bearer ").to_owned();
    for (method, path, bearer, expected) in [
        // The caller's network is not allowed to watch without credentials.
        ("GET", channel.clone(), "", (403, None)),
        ("GET", channel.clone(), "Bearer x", (401, None)),
        ("HEAD", channel.clone(), &*streamer, (200, None)),
        ("HEAD", format!("{channel}/?utc=&lutc=1"), &streamer, (200, None)),
        // A target that cannot be parsed is refused like one that does not exist.
        ("GET", unparsable.clone(), "", (403, None)),
        ("GET", unparsable, &streamer, (404, UNKNOWN)),
        ("GET", "/proxy/ts/stream/%00".to_owned(), &streamer, (404, UNKNOWN)),
        ("GET", format!("/proxy/ts/stream/{}", Uuid::from_u128(2)), &streamer, (404, UNKNOWN)),
        ("GET", preview.clone(), "", (401, None)),
        ("GET", preview.clone(), &streamer, (403, None)),
        ("HEAD", preview.clone(), &admin, (404, UNKNOWN)),
        ("HEAD", format!("{preview}?token={token}"), "", (404, UNKNOWN)),
        ("HEAD", format!("{preview}?token={token}&token={token}"), "", (401, None)),
        ("HEAD", format!("{preview}?token={token}&x=%ff&&=&%"), "", (404, UNKNOWN)),
        ("HEAD", format!("/live{login}/1.ts"), "", (200, None)),
        ("HEAD", format!("{login}/0001/"), "", (200, None)),
        ("HEAD", format!("{login}/1"), "", (200, None)),
        ("HEAD", "/live/streamer/wrong/1".to_owned(), "", (401, None)),
        ("HEAD", "/streamer/wrong/1".to_owned(), "", (401, None)),
        ("GET", format!("{login}/2.ts"), "", (404, UNKNOWN)),
    ] {
        let answer = rest.send(method, &path, &[("authorization", bearer)], "").await;
        let (status, tuner_error) = expected;
        assert_eq!(outline(&answer), (status, Some("*"), tuner_error), "{method} {path}: {}", answer.text);
        if status == 200 {
            assert_eq!(answer.headers["content-type"], "video/mp2t", "{path}");
        }
    }
}

#[tokio::test]
async fn a_stream_address_answers_preflight_requests_and_lists_its_methods() {
    let rest = with_channel().await;
    for path in ["/proxy/ts/stream/1", "/proxy/ts/stream/seven", "/live/a/b/1.ts", "/a/b/999/"] {
        let answer = rest.send("OPTIONS", path, &[], "").await;
        assert_eq!((outline(&answer), answer.text.as_str()), ((204, Some("*"), None), ""), "{path}");
        for (name, value) in [
            ("allow", "GET, HEAD, OPTIONS"),
            ("access-control-allow-methods", "GET, HEAD, OPTIONS"),
            ("access-control-allow-headers", "*, Authorization"),
            ("access-control-max-age", "86400"),
        ] {
            assert_eq!(answer.headers[name], value, "{path}");
        }
        for method in ["POST", "PUT", "DELETE"] {
            let answer = rest.send(method, path, &[], "").await;
            assert_eq!(outline(&answer), (405, None, None), "{method} {path}");
            assert_eq!(answer.headers["allow"], "GET, HEAD, OPTIONS", "{method} {path}");
        }
    }
}

#[tokio::test]
async fn an_address_other_than_a_stream_is_unknown_to_every_method_and_before_any_login() {
    let rest = with_channel().await;
    for path in [
        "/proxy/ts/stream",
        "/proxy/ts/stream/",
        "/proxy/ts/stream//",
        "/proxy/ts/stream/1/2",
        "/proxy/ts/stream/%ff",
        "/proxy/ts/",
        "/proxy/ts/nothing/1",
        "/proxy/a/1",
        "/live/a/b",
        "/live/a/1",
        "/live/a/b/1.mkv",
        "/live/a/b/1/2",
        "/live/a/b/1.ts//",
        "/live//b/1",
        "/live/a//1",
        "/live/a/%ff/1",
        "/live/a/b/+1",
        "/a/b/1.mkv",
        "/a/b/c",
        "/a/b",
        "/a/b/1/2",
        "//a/b/1",
        "/a//1",
        "/a/b/4294967296",
        "/ws/b/1",
        "/LIVE/b/1",
        "/healthz/b/1",
        "/readyz/b/1",
        "/playlist.m3u/b/1",
        "/api/b/1",
    ] {
        for method in ["GET", "HEAD", "POST", "OPTIONS"] {
            let answer = rest.send(method, path, &[], "").await;
            assert_eq!(outline(&answer), (404, None, None), "{method} {path}");
        }
    }
}
