//! One upstream for many viewers, and the content of a stream from its first byte.

use std::time::Duration;

use domain::stream_profile::Delivery;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::client::{Player, Request, connect, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::{Cut, MockResponse, Provider};
use crate::support::{WAIT_MAX, eventually, until_async};

const NEWS: &str = "/live/anna/news.ts";

/// Starts a provider with one channel and a gateway in front of it.
async fn set_up(answer: MockResponse) -> (Provider, TestGateway) {
    let provider = Provider::start();
    provider.path(NEWS).answers(answer);
    let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", NEWS)])).await;
    (provider, gateway)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn viewers_that_arrive_at_the_same_moment_share_one_upstream() {
    // Holds T-life.9.
    let (provider, gateway) = set_up(MockResponse::play(Picture::new("news"))).await;
    let mut arriving = tokio::task::JoinSet::new();
    for _ in 0..60 {
        let (address, path) = (gateway.address, gateway.path("News"));
        arriving.spawn(async move { Player::watch(address, &path).await });
    }
    let players = arriving.join_all().await;
    for player in &players {
        player.sees("news").await;
        player.received(|r| r.ts.assert_clean());
    }
    assert_eq!((provider.accepted(), provider.peak()), (1, 1));
    gateway.has_clients(60).await;
    eventually("the start event", || gateway.n_events("channel_start") == 1).await;
    drop(players);
    gateway.until_idle().await;
    assert_eq!(provider.open(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_viewer_starts_with_the_tables_and_a_random_access_point() {
    let (provider, gateway) = set_up(MockResponse::play(Picture::new("news").frames_per_gop(10))).await;
    let first = gateway.watch("News").await;
    first.until("three seconds", |r| r.ts.programme_seconds() > 3.0).await;
    for _ in 0..5 {
        // The checker complains about packets before the PAT, and about a first picture that is not a key frame.
        let later = gateway.watch("News").await;
        later.until("a second", |r| r.ts.programme_seconds() > 1.0).await;
        later.received(|r| {
            r.ts.assert_clean();
            assert_eq!(r.ts.early_null_run, 0, "no null packets in the first megabyte");
            let tables: Vec<u8> = r.bytes.chunks(188).take(2).map(|packet| packet[2]).collect();
            assert_eq!(tables, [0x00, 0x00], "PAT (PID 0) and PMT (PID 0x1000) come first");
        });
    }
    assert_eq!(provider.accepted(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn head_returns_the_headers_and_opens_no_stream() {
    // Holds T-view.5.
    let (provider, gateway) = set_up(MockResponse::play(Picture::new("news"))).await;
    let path = gateway.path("News");
    for path in [path.clone(), format!("{path}.ts"), format!("{path}?transcode=mobile")] {
        let answer = fetch(gateway.address, Request::head(&path)).await;
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(answer.header("content-type"), Some("video/mp2t"));
        assert_eq!((answer.header("content-length"), answer.header("accept-ranges")), (None, None));
    }
    assert_eq!(provider.accepted(), 0);
    assert_eq!(gateway.gateway.counts().channels, 0);
    assert!(gateway.event_names().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cors_allows_other_origins_to_read_streams_and_errors() {
    let (provider, gateway) = set_up(MockResponse::play(Picture::new("news"))).await;
    let path = gateway.path("News");
    let unknown = "/proxy/ts/stream/00000000-0000-0000-0000-000000000000";
    for (request, status) in [
        (Request::get(&path).method("OPTIONS"), 204),
        (Request::head(&path), 200),
        (Request::get(unknown), 404),
    ] {
        let answer = fetch(gateway.address, request).await;
        assert_eq!((answer.status(), answer.header("access-control-allow-origin")), (status, Some("*")));
    }
    let list = fetch(gateway.address, Request::get("/playlist.m3u")).await;
    assert_eq!((list.status(), list.header("access-control-allow-origin")), (200, None));
    assert_eq!(provider.accepted(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_has_no_length_ranges_or_redirect_for_any_request_headers() {
    let (_provider, gateway) = set_up(MockResponse::play(Picture::new("news"))).await;
    let path = gateway.path("News");
    for request in [
        Request::get(&path),
        Request::get(&path).header("Range", "bytes=0-"),
        Request::get(&path).header("Icy-MetaData", "1"),
        Request::get(format!("{path}.ts?lutc=2&quality=1")),
        Request::get(format!("{path}/")),
    ] {
        let player = Player::ask(gateway.address, request).await;
        let head = player.head().await;
        assert_eq!((head.status, head.header("content-type")), (200, Some("video/mp2t")));
        assert_eq!((head.header("content-length"), head.header("accept-ranges")), (None, None));
        assert!(head.header("cache-control").is_some_and(|value| value.contains("no-cache")));
        assert_eq!(head.header("x-accel-buffering"), Some("no"));
        player.sees("news").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_http_1_0_player_gets_the_stream_without_chunked_encoding() {
    let (_provider, gateway) = set_up(MockResponse::play(Picture::new("news"))).await;
    let player = Player::ask(gateway.address, gateway.get("News").http_10()).await;
    assert_eq!(player.head().await.header("transfer-encoding"), None);
    player.sees("news").await;
    player.more_bytes(100_000).await;
    player.received(|r| r.ts.assert_clean());
    player.leave().await;
    gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_lasts_as_long_as_its_connection_for_every_http_version() {
    let (_provider, gateway) = set_up(MockResponse::play(Picture::new("news"))).await;
    for request in [gateway.get("News"), gateway.get("News").http_10()] {
        let player = Player::ask(gateway.address, request).await;
        let head = player.head().await;
        assert_eq!((head.status, head.header("connection")), (200, Some("close")));
        assert_eq!((head.header("transfer-encoding"), head.header("content-length")), (None, None));
        assert!(head.header("date").is_some_and(|it| it.ends_with(" GMT")), "{head:?}");
        player.sees("news").await;
        player.received(|r| r.ts.assert_clean());
    }
}

/// Some set-top boxes find "Content-Type" only with this capitalisation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_follows_the_responses_before_it_and_has_the_same_form_of_headers() {
    let (_provider, gateway) = set_up(MockResponse::play(Picture::new("news"))).await;
    let path = gateway.path("News");
    let requests = format!("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut socket = connect(gateway.address, None).await;
    socket.write_all(requests.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    let text = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
    let stream_begins = |it: &[u8]| text(it).contains("Content-Type: video/mp2t\r\n") && it.len() > 4096;
    while !stream_begins(&received) {
        let n_read = tokio::time::timeout(WAIT_MAX, socket.read_buf(&mut received)).await.expect("bytes");
        assert!(n_read.unwrap() > 0, "{}", text(&received));
    }
    let text = text(&received);
    assert_eq!(text.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{text}");
    let stream = text.find("video/mp2t").unwrap();
    assert!(text.find("Content-Length: ").is_some_and(|it| it < stream), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probing_and_then_playing_opens_one_upstream() {
    let patterns: [(&str, &[Step]); 4] = [
        ("Jellyfin", &[Step::Head, Step::Get]),
        ("Emby", &[Step::GetAndClose(1_000_000), Step::Get]),
        ("Kodi", &[Step::Head, Step::GetAndClose(10_000), Step::Get]),
        ("Kodi with a tuner", &[Step::GetAndClose(1), Step::Get]),
    ];
    for (name, steps) in patterns {
        let provider = Provider::start();
        provider.path(NEWS).plays(Picture::new("news").bits_per_second(20_000_000));
        let list = provider.playlist(&[("news", "News", NEWS)]);
        let linger = |it: &mut domain::settings::Settings| it.channel_shutdown_delay = WAIT_MAX;
        let gateway = Setup::new().list(&list).engine(linger).start().await;
        let mut playing = None;
        for step in steps {
            match step {
                Step::Head => {
                    assert_eq!(
                        fetch(gateway.address, Request::head(gateway.path("News"))).await.status(),
                        200
                    );
                    assert_eq!(provider.accepted(), 0, "{name}");
                }
                Step::GetAndClose(bytes) => {
                    let player = gateway.watch("News").await;
                    player.until("the start", |r| r.n_bytes >= *bytes).await;
                    // The first bytes may be tables alone.
                    if *bytes >= 10_000 {
                        player.received(|r| r.ts.assert_clean());
                    }
                    player.reset().await;
                }
                Step::Get => playing = Some(gateway.watch("News").await),
            }
        }
        let player = playing.expect("every pattern ends with a player");
        player.sees("news").await;
        player.received(|r| r.ts.assert_clean());
        assert_eq!(provider.accepted(), 1, "{name} opened more than one upstream");
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Head,
    GetAndClose(u64),
    Get,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_of_any_bit_rate_starts_within_its_first_second() {
    // Holds T-view.2 without a clock: the provider sends one second and then nothing, so a gateway that fills a buffer
    // first would never start.
    let rates: [(u64, Picture); 5] = [
        (64_000, Picture::new("news").radio()),
        (500_000, Picture::new("news")),
        (2_000_000, Picture::new("news")),
        (5_000_000, Picture::new("news")),
        (20_000_000, Picture::new("news")),
    ];
    for (bits, picture) in rates {
        let provider = Provider::start();
        let one_second = MockResponse::play(picture.bits_per_second(bits)).until(bits / 8, Cut::Stall);
        provider.path(NEWS).answers(one_second);
        let patient = |it: &mut domain::settings::Settings| {
            it.stall_timeout = WAIT_MAX * 2;
            it.first_packet_timeout = WAIT_MAX * 2;
        };
        let list = provider.playlist(&[("news", "News", NEWS)]);
        let gateway = Setup::new().list(&list).engine(patient).start().await;
        let player = gateway.watch("News").await;
        player.sees("news").await;
        player.received(|r| r.ts.assert_clean());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sources_with_unusual_response_heads_play() {
    let slow = Duration::from_millis(300);
    let cases = [
        ("chunked", MockResponse::play(Picture::new("news")).chunked()),
        ("icy", MockResponse::play(Picture::new("news")).icy()),
        ("headless", MockResponse::play(Picture::new("news")).headless()),
        ("slow", MockResponse::play(Picture::new("news")).after(slow)),
        ("burst", MockResponse::play(Picture::new("news")).with_burst(Duration::from_secs(5))),
    ];
    for (name, answer) in cases {
        let (provider, gateway) = set_up(answer).await;
        let player = gateway.watch("News").await;
        player.until(name, |r| r.ts.programme_seconds() > 1.0).await;
        player.received(|r| r.ts.assert_clean());
        assert_eq!(provider.accepted(), 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_are_followed_one_socket_at_a_time_and_the_original_url_is_kept() {
    let (provider, gateway) = set_up(MockResponse::redirect("/live/anna/hop-1.ts")).await;
    provider.path("/live/anna/hop-1.ts").answers(MockResponse::redirect(provider.url("/live/anna/hop-2.ts")));
    provider.path("/live/anna/hop-2.ts").answers(MockResponse::redirect("final.ts?token=once"));
    provider.path("/live/anna/final.ts?token=once").plays(Picture::new("news"));
    provider.close_delay(Duration::from_millis(100));
    for round in 1..=2 {
        let player = gateway.watch("News").await;
        player.sees("news").await;
        player.leave().await;
        gateway.until_idle().await;
        assert_eq!(provider.path(NEWS).n_requests(), round, "a redirect target is not cached");
    }
    assert_eq!((provider.peak(), provider.requests().len()), (1, 8));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_sets_a_cookie_before_it_redirects_plays() {
    let (first, other) = (Provider::start(), Provider::start());
    let redirect =
        |to: &str| format!("Location: {to}\r\nSet-Cookie: session=s3cret; Path=/live; HttpOnly\r\n");
    first.path(NEWS).answers(MockResponse::status_with(302, &redirect("/live/anna/checked")));
    first.path("/live/anna/checked").answers(MockResponse::status_with(
        302,
        &redirect(&other.url("/live/anna/7").replace("127.0.0.1", "localhost")),
    ));
    other.path("/live/anna/7").plays(Picture::new("news"));
    let gateway = TestGateway::with_list(&first.playlist(&[("news", "News", NEWS)])).await;
    let player = gateway.watch("News").await;
    player.sees("news").await;
    let cookie = |it: &Provider, path: &str| it.path(path).requests()[0].header("cookie").map(str::to_owned);
    assert_eq!(cookie(&first, NEWS), None);
    assert_eq!(cookie(&first, "/live/anna/checked").as_deref(), Some("session=s3cret"));
    assert_eq!(cookie(&other, "/live/anna/7"), None, "another host");
    drop(player);
    gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_of_the_playlist_go_to_the_provider_but_not_to_another_host() {
    let provider = Provider::start();
    let elsewhere = Provider::start();
    elsewhere.path(NEWS).plays(Picture::new("news"));
    let by_name = elsewhere.url(NEWS).replace("127.0.0.1", "localhost");
    provider.path(NEWS).answers(MockResponse::redirect(&by_name));
    let list = format!(
        "#EXTM3U\n#EXTINF:-1,News\n#EXTVLCOPT:http-user-agent=Box/2\n#EXTVLCOPT:http-referrer=http://portal.example/\n{}\n",
        provider.url(NEWS).replace("http://", "http://user:secret@")
    );
    let gateway = TestGateway::with_list(&list).await;
    gateway.watch("News").await.sees("news").await;
    let asked = &provider.path(NEWS).requests()[0];
    assert_eq!(asked.header("user-agent"), Some("Box/2"));
    assert_eq!(asked.header("referer"), Some("http://portal.example/"));
    assert_eq!(asked.header("authorization"), Some("Basic dXNlcjpzZWNyZXQ="));
    let redirected = &elsewhere.path(NEWS).requests()[0];
    assert_eq!(redirected.header("authorization"), None);
    assert_eq!(redirected.header("host"), Some(format!("localhost:{}", elsewhere.address.port()).as_str()));
    assert_eq!(redirected.header("user-agent"), Some("Box/2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_redirect_profile_redirects_the_viewer_and_opens_nothing() {
    let provider = Provider::start();
    let list = provider.playlist(&[("news", "News", NEWS)]);
    let redirect = |it: &mut domain::settings::Settings| it.default_stream_profile = Delivery::Redirect;
    let gateway = Setup::new().limited_list(&list, 1).engine(redirect).start().await;
    let answer = fetch(gateway.address, gateway.get("News")).await;
    assert_eq!((answer.status(), answer.header("location")), (302, Some(provider.url(NEWS).as_str())));
    assert_eq!(provider.accepted(), 0);
    gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_metrics_count_clients_channels_and_bytes() {
    let (_provider, gateway) = set_up(MockResponse::play(Picture::new("news"))).await;
    let viewers = [gateway.watch("News").await, gateway.watch("News").await];
    for viewer in &viewers {
        viewer.sees("news").await;
    }
    gateway.has_clients(2).await;
    let now = gateway.metrics().await;
    for (name, value) in [
        ("headwater_leases", 1.0),
        ("headwater_upstream_sockets", 1.0),
        ("headwater_live_channels", 1.0),
        ("headwater_clients", 2.0),
        ("headwater_channel_starts_total", 1.0),
        ("headwater_channel_start_seconds_count", 1.0),
        ("headwater_failovers_total", 0.0),
        ("headwater_client_misses_total", 0.0),
    ] {
        assert_eq!(now.get(name), Some(&value), "{name} of {now:?}");
    }
    let got: u64 = viewers.iter().map(|viewer| viewer.received(|r| r.n_bytes)).sum();
    until_async("the bytes to be counted", async || {
        gateway.metrics().await["headwater_sent_bytes_total"] >= got as f64
    })
    .await;
    drop(viewers);
    gateway.until_idle().await;
    eventually("the disconnect events", || gateway.n_events("client_disconnect") == 2).await;
    eventually("the stop event", || gateway.n_events("channel_stop") == 1).await;
    assert_eq!(gateway.n_events("client_connect"), 2);
    let text = fetch(gateway.api, Request::get("/metrics")).await.text();
    assert!(text.contains("headwater_live_channels 0"), "{text}");
}

/// These need ffmpeg.
mod slow {
    use super::*;
    use crate::support::signal::Clip;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn packets_of_the_first_source_arrive_unchanged() {
        let clip = Clip::make(
            "unchanged",
            &["-f", "lavfi", "-i", "testsrc=size=320x180:rate=25", "-f", "lavfi", "-i", "sine"],
            &["-t", "6", "-c:v", "mpeg2video", "-g", "12", "-b:v", "800k", "-c:a", "mp2"],
        )
        .await;
        let (_provider, gateway) = set_up(MockResponse::play(clip.clone())).await;
        let player = gateway.watch("News").await;
        player.until("four seconds", |r| r.ts.programme_seconds() > 4.0).await;
        let received = player.recording();
        let packets: Vec<&[u8]> = received.chunks_exact(188).collect();
        let is_picture = |packet: &&[u8]| u16::from_be_bytes([packet[1] & 0x1F, packet[2]]) == 0x100;
        let first = packets.iter().position(is_picture).expect("a picture");
        let sent: Vec<&[u8]> = clip.bytes().chunks_exact(188).collect();
        let at =
            sent.iter().position(|packet| *packet == packets[first]).expect("the provider sent this packet");
        assert_eq!(&packets[first..], &sent[at..at + packets.len() - first]);
    }
}
