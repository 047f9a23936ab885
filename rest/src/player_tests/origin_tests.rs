//! Which pages of other origins can read which answers.

use domain::channel::Channel;
use domain::ids::ChannelId;
use uuid::Uuid;

use crate::testing::{ADMIN, Answer, Rest, SECRET, STREAMER};

const PAGE: &str = "http://player.example:8081";
/// The origin in the settings of the gateway.
const ALLOWED: &str = "https://tv.example";
/// Addresses of lists and guides that need no login on a local network.
const LISTS: [&str; 6] = [
    "/output/m3u",
    "/playlist.m3u",
    "/output/epg",
    "/output/epg.xml",
    "/output/epg.xml.gz",
    "/output/recordings.m3u",
];

async fn with_channel() -> Rest {
    let rest = Rest::start_with(|config| {
        config.http.allowed_origins = ALLOWED.parse().unwrap();
        config.stream_networks = "any".parse().unwrap();
    });
    let rest = rest.await;
    rest.put([Channel::new(ChannelId(1), Uuid::from_u128(1), "one", 0)]).await;
    rest
}

fn readers(answer: &Answer) -> Option<&str> {
    answer.headers.get("access-control-allow-origin").map(|it| it.to_str().unwrap())
}

#[tokio::test]
async fn pages_of_any_origin_read_lists_and_guides_with_a_login_of_their_own_only() {
    let rest = with_channel().await;
    let login = rest.query_login(STREAMER);
    let bearer = rest.bearer(STREAMER);
    for path in LISTS {
        let alone = rest.send("GET", path, &[("origin", PAGE)], "").await;
        assert_eq!(readers(&alone), None, "{path}");
        for (path, authorization) in [(format!("{path}?{login}"), ""), (path.to_owned(), &*bearer)] {
            let answer =
                rest.send("GET", &path, &[("origin", PAGE), ("authorization", authorization)], "").await;
            assert_eq!(readers(&answer), Some("*"), "{path}: {}", answer.status);
        }
        let wrong =
            rest.send("GET", &format!("{path}?username=streamer&password=no"), &[("origin", PAGE)], "").await;
        assert_eq!((wrong.status, readers(&wrong)), (401, None), "{path}");
        let preflight = rest.send("OPTIONS", path, &[("origin", PAGE)], "").await;
        assert_eq!((preflight.status, readers(&preflight)), (204, Some("*")), "{path}");
    }
    for path in ["/get.php", "/xmltv.php", "/player_api.php"] {
        let answer = rest.send("GET", &format!("{path}?{login}"), &[("origin", PAGE)], "").await;
        assert_eq!((answer.status, readers(&answer)), (200, Some("*")), "{path}");
    }
}

#[tokio::test]
async fn pages_of_configured_origins_read_everything_and_others_no_tuner_and_no_rest() {
    let rest = with_channel().await;
    let admin = rest.bearer(ADMIN);
    for path in [
        "/tuner/lineup.json",
        "/tuner/discover.json",
        "/api/channels/channels/",
        "/api/nothing/",
        "/output/m3u",
    ] {
        let ask = async |origin: &str| {
            rest.send("GET", path, &[("origin", origin), ("authorization", &admin)], "").await
        };
        let is_list = LISTS.contains(&path);
        for origin in [PAGE, "https://tv.example.evil", "http://tv.example", "null"] {
            let answer = ask(origin).await;
            assert_eq!(readers(&answer), is_list.then_some("*"), "{path} {origin}");
        }
        let answer = ask(ALLOWED).await;
        assert_eq!(readers(&answer), Some(if is_list { "*" } else { ALLOWED }), "{path}");
        assert!(answer.headers.get_all("vary").iter().any(|it| it == "Origin"), "{path}");
        assert!(!answer.headers.contains_key("access-control-allow-credentials"), "{path}");
        assert!(!answer.text.contains(SECRET), "{path}");
    }
    let path = "/api/channels/channels/";
    let preflight = rest.send("OPTIONS", path, &[("origin", ALLOWED)], "").await;
    assert_eq!((preflight.status, readers(&preflight)), (204, Some(ALLOWED)));
    assert_eq!(preflight.headers["access-control-allow-methods"], preflight.headers["allow"]);
    let other = rest.send("OPTIONS", path, &[("origin", PAGE)], "").await;
    assert_eq!((other.status, readers(&other)), (204, None));
}
