//! A live channel starts with its first viewer, and ends with all its resources.

use std::time::Duration;

use actors::Target;
use domain::settings::Settings;

use crate::support::client::Player;
use crate::support::gateway::Setup;
use crate::support::signal::Picture;
use crate::support::upstream::{Behavior, ClosedPort, Cut, MockResponse, Provider};
use crate::support::{WAIT_MAX, eventually, until_async};

const NEWS: &str = "/live/anna/news.ts";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_fails_at_any_step_returns_503_and_leaves_nothing_behind() {
    // Holds T-life.2.
    let provider = Provider::start();
    let closed = ClosedPort::new();
    let mut list = format!("#EXTM3U\n#EXTINF:-1,closed\n{}\n", closed.url("/x.ts"));
    let mut names = vec!["closed".to_owned()];
    for (name, answer) in [
        ("mute", MockResponse::mute()),
        ("refused", MockResponse::status(403)),
        ("missing", MockResponse::status(404)),
        ("page", MockResponse::html()),
        ("silent", MockResponse::silent_body()),
        ("empty", MockResponse::empty()),
        ("short", MockResponse::play(Picture::new("x")).until(100, Cut::End)),
    ] {
        let path = format!("/live/anna/{name}.ts");
        provider.path(&path).answers(answer);
        list.push_str(&format!("#EXTINF:-1,{name}\n{}\n", provider.url(&path)));
        names.push(name.into());
    }
    let brief = |it: &mut Settings| {
        it.start_timeout = Duration::from_secs(3);
        it.give_up_after = Duration::from_secs(3);
        it.first_packet_timeout = Duration::from_secs(1);
    };
    let gateway = Setup::new().list(&list).engine(brief).start().await;
    let mut players = Vec::new();
    for name in &names {
        players.push(gateway.watch(name).await);
    }
    for (name, player) in names.iter().zip(&players) {
        let answer = player.answer().await;
        assert_eq!(answer.status(), 503, "{name}: {}", answer.text());
    }
    gateway.until_idle().await;
    assert_eq!(provider.open(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_stream_plays_even_if_its_first_packet_takes_six_seconds() {
    let provider = Provider::start();
    let slow = MockResponse::play(Picture::new("news")).after(Duration::from_secs(6));
    provider.path(NEWS).answers(slow);
    let list = provider.playlist(&[("news", "News", NEWS)]);
    // Long, so that a busy machine does not end the test.
    let patient = |it: &mut Settings| {
        it.start_timeout = Duration::from_secs(50);
        assert!(it.first_packet_timeout < Duration::from_secs(6), "{:?}", it.first_packet_timeout);
    };
    let gateway = Setup::new().list(&list).engine(patient).start().await;
    let player = gateway.watch("News").await;
    player.sees("news").await;
    assert_eq!((player.status().await, provider.accepted()), (200, 1));
    player.received(|r| r.ts.assert_clean());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_that_joins_while_the_channel_ends_plays_without_a_second_socket() {
    // Holds T-life.3.
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news").frames_per_gop(2));
    provider.close_delay(Duration::from_millis(150));
    let list = provider.playlist(&[("news", "News", NEWS)]);
    let gateway =
        Setup::new().list(&list).engine(|it| it.channel_shutdown_delay = Duration::ZERO).start().await;
    for round in 0..12_u64 {
        let player = gateway.watch("News").await;
        let status = player.status().await;
        if status == 503 {
            assert!(player.head().await.header("retry-after").is_some(), "round {round}");
            continue;
        }
        assert_eq!(status, 200, "round {round}");
        player.sees("news").await;
        player.received(|r| r.ts.assert_clean());
        player.leave().await;
        // The viewer arrives during the shutdown, a little later each time.
        tokio::time::sleep(Duration::from_millis(round * 25)).await;
    }
    assert_eq!(provider.peak(), 1);
    gateway.until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_channel_changes_leave_one_live_channel() {
    // Holds T-life.7.
    let provider = Provider::start();
    let mut list = String::from("#EXTM3U\n");
    for number in 0..20 {
        let path = format!("/live/anna/{number}.ts");
        provider
            .path(&path)
            .plays(Picture::new(&number.to_string()).bits_per_second(300_000).frames_per_gop(1));
        list.push_str(&format!("#EXTINF:-1,Channel {number}\n{}\n", provider.url(&path)));
    }
    let gateway =
        Setup::new().list(&list).engine(|it| it.channel_shutdown_delay = Duration::ZERO).start().await;
    let mut watching: Option<Player> = None;
    for hop in 0..200 {
        let next = gateway.watch(&format!("Channel {}", hop % 20)).await;
        if hop % 10 == 0 {
            next.sees(&(hop % 20).to_string()).await;
        }
        if let Some(before) = watching.replace(next) {
            if hop % 2 == 0 { before.reset().await } else { before.leave().await }
        }
    }
    eventually("one channel", || gateway.gateway.counts().channels == 1).await;
    eventually("one socket", || provider.open() == 1).await;
    watching.expect("the last one").sees("19").await;
    gateway.until_idle().await;
    assert_eq!((gateway.gateway.counts().ring_bytes, provider.open()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lingering_channel_is_joined_without_a_new_upstream() {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    let list = provider.playlist(&[("news", "News", NEWS)]);
    let gateway = Setup::new().list(&list).engine(|it| it.channel_shutdown_delay = WAIT_MAX).start().await;
    for _ in 0..4 {
        let player = gateway.watch("News").await;
        player.sees("news").await;
        player.leave().await;
        gateway.has_clients(0).await;
    }
    assert_eq!((provider.accepted(), gateway.n_events("channel_start")), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_channel_disconnects_its_viewers_and_can_be_watched_again() {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    let list = provider.playlist(&[("news", "News", NEWS)]);
    let gateway = Setup::new().limited_list(&list, 1).start().await;
    let target = Target::Channel(gateway.catalogue.channels[0].uuid);
    for _ in 0..2 {
        let player = gateway.watch("News").await;
        player.sees("news").await;
        gateway.gateway.switchboard().stop(target).await.unwrap();
        player.ended().await;
        player.received(|r| r.ts.assert_clean());
    }
    gateway.until_idle().await;
    assert_eq!(provider.peak(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_ends_when_its_source_fails_after_the_last_viewer_left() {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    let list = provider.playlist(&[("news", "News", NEWS)]);
    let gateway = Setup::new()
        .list(&list)
        .engine(|it| it.channel_shutdown_delay = Duration::from_secs(1))
        .start()
        .await;
    for trouble in [Behavior::Stalled, Behavior::Garbage, Behavior::OnlyNulls] {
        provider.path(NEWS).behaves(Behavior::Healthy);
        let player = gateway.watch("News").await;
        player.sees("news").await;
        provider.path(NEWS).behaves(trouble);
        player.leave().await;
        gateway.until_idle().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_a_channel_are_in_order() {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    let list = provider.playlist(&[("news", "News", NEWS)]);
    let gateway = Setup::new().list(&list).start().await;
    let player = gateway.watch("News").await;
    player.sees("news").await;
    player.leave().await;
    gateway.until_idle().await;
    until_async("the stop event", async || gateway.n_events("channel_stop") == 1).await;
    let expected = ["client_connect", "channel_start", "client_disconnect", "channel_stop"];
    assert_eq!(gateway.event_names(), expected);
    for event in gateway.events() {
        let text = serde_json::to_string(event.as_ref()).unwrap();
        assert!(!text.contains("anna"), "a URL may contain credentials: {text}");
    }
}
