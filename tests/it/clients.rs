//! Clients that are slow, stop reading or disappear: other clients are not affected, and their resources are released.

use std::time::Duration;

use domain::event::EventBody;
use domain::settings::Settings;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::client::{Ended, Player, Reading, connect};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::{Cut, MockResponse, Provider};
use crate::support::{WAIT_MAX, eventually};

const NEWS: &str = "/live/anna/news.ts";

/// Starts a fast channel with a short ring, so that a slow client soon falls behind it.
async fn set_up(change: impl FnOnce(&mut Settings)) -> (Provider, TestGateway) {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news").bits_per_second(16_000_000).frames_per_gop(5));
    let list = provider.playlist(&[("news", "News", NEWS)]);
    let short = |it: &mut Settings| {
        it.new_client_behind_seconds = Duration::ZERO;
        it.ring_seconds = Duration::from_secs(1);
        it.ring_bytes = 1 << 20;
        it.ring_gop_bytes = 1 << 20;
        change(it);
    };
    let gateway = Setup::new().limited_list(&list, 1).engine(short).start().await;
    (provider, gateway)
}

fn slow_player(gateway: &TestGateway, rate: u32) -> impl Future<Output = Player> {
    let request = gateway.get("News").receive_buffer(16 << 10).reading(Reading::BytesPerSecond(rate));
    Player::ask(gateway.address, request)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_client_skips_data_with_a_declared_discontinuity_and_slows_nobody() {
    // Holds T-view.3: the client reads a quarter of the rate.
    let (provider, gateway) = set_up(|it| it.slow_client_limit = u32::MAX).await;
    let fast = [gateway.watch("News").await, gateway.watch("News").await];
    let slow = slow_player(&gateway, 500_000).await;
    slow.until("a jump", |r| r.ts.declared_discontinuities > 2 && r.ts.steps.len() > 2).await;
    slow.received(|r| {
        r.ts.assert_clean();
        assert!(r.ended.is_none());
    });
    for player in &fast {
        player.received(|r| {
            r.ts.assert_clean();
            assert_eq!((r.ts.declared_discontinuities, r.ts.steps.len()), (0, 0), "{:?}", r.ts.steps);
        });
    }
    let counts = gateway.gateway.counts();
    assert!(counts.misses > 0 && counts.missed_bytes > 0, "{counts:?}");
    // Bounded to one ring and the chunks in transit, no matter how long the slow client takes.
    assert!(counts.ring_bytes <= 2 << 20, "{} bytes in the ring", counts.ring_bytes);
    assert_eq!(provider.peak(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_overrun_too_often_is_disconnected() {
    let (_provider, gateway) = set_up(|it| it.slow_client_limit = 2).await;
    let fast = gateway.watch("News").await;
    let slow = slow_player(&gateway, 200_000).await;
    slow.until("the stream", |r| r.n_bytes > 0).await;
    gateway.has_clients(1).await;
    let reason = || {
        gateway.events().iter().find_map(|event| match &event.body {
            EventBody::ClientDisconnect { reason, .. } => Some(reason.clone()),
            _ => None,
        })
    };
    eventually("the disconnect event", || reason().is_some()).await;
    assert!(reason().unwrap().contains("slow"), "{:?}", reason());
    slow.read(Reading::Freely);
    assert_eq!(slow.ended().await, Ended::Reset, "the stream is not complete");
    assert!(fast.is_watching());
    fast.received(|r| r.ts.assert_clean());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_in_any_way_is_removed_at_once() {
    let (provider, gateway) = set_up(|_| {}).await;
    for round in 0..6 {
        let player = gateway.watch("News").await;
        player.sees("news").await;
        gateway.has_clients(1).await;
        // Also with unread data in its socket.
        if round >= 3 {
            player.read(Reading::Nothing);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        if round % 2 == 0 {
            player.reset().await
        } else {
            player.leave().await
        }
        gateway.has_clients(0).await;
    }
    gateway.until_idle().await;
    assert_eq!(provider.open(), 0);
}

/// Starts a channel that sends a second of programme and then nothing.
async fn idle_set_up() -> (Provider, TestGateway) {
    let provider = Provider::start();
    let second = MockResponse::play(Picture::new("news").bits_per_second(2_000_000));
    provider.path(NEWS).answers(second.until(250_000, Cut::Stall));
    let patient = |it: &mut Settings| it.stall_timeout = WAIT_MAX * 2;
    let list = provider.playlist(&[("news", "News", NEWS)]);
    let gateway = Setup::new().list(&list).engine(patient).start().await;
    (provider, gateway)
}

/// Sends raw bytes and reads until the programme has begun.
async fn watch_by(gateway: &TestGateway, bytes: &[u8]) -> (TcpStream, Vec<u8>) {
    let mut socket = connect(gateway.address, None).await;
    socket.write_all(bytes).await.unwrap();
    let mut received = Vec::new();
    let begun = async {
        while !received.windows(2).any(|it| it == b"\x47\x40") {
            assert!(socket.read_buf(&mut received).await.unwrap() > 0, "the stream begins");
        }
    };
    tokio::time::timeout(WAIT_MAX, begun).await.expect("the stream begins");
    (socket, received)
}

/// The end of the client's data is behind the surplus bytes, and nothing is written that could fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_an_idle_stream_is_removed_although_it_sent_more_than_its_request() {
    let (_provider, gateway) = idle_set_up().await;
    let path = gateway.path("News");
    let next = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    for surplus in [String::new(), "\n".to_owned(), next.repeat(100)] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n{surplus}");
        let (socket, _) = watch_by(&gateway, request.as_bytes()).await;
        gateway.has_clients(1).await;
        drop(socket);
        gateway.has_clients(0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_sends_without_end_is_disconnected() {
    let (_provider, gateway) = idle_set_up().await;
    let request = format!("GET {} HTTP/1.0\r\n\r\n", gateway.path("News"));
    let (mut socket, _) = watch_by(&gateway, request.as_bytes()).await;
    gateway.has_clients(1).await;
    let sending = async { while socket.write_all(&[b'x'; 4096]).await.is_ok() {} };
    tokio::time::timeout(WAIT_MAX, sending).await.expect("the gateway closes the connection");
    gateway.has_clients(0).await;
}

/// These wait for fixed timeouts.
mod slow {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_client_that_stops_reading_is_disconnected_and_its_slot_is_released() {
        let (provider, gateway) = set_up(|it| it.slow_client_limit = u32::MAX).await;
        let phone = Player::ask(gateway.address, gateway.get("News").receive_buffer(16 << 10)).await;
        phone.sees("news").await;
        phone.read(Reading::Nothing);
        let asleep = tokio::time::Instant::now();
        gateway.until_idle().await;
        assert!(asleep.elapsed() > Duration::from_secs(20), "a short pause is tolerated");
        assert_eq!(provider.open(), 0);
        phone.read(Reading::Freely);
        assert_eq!(phone.ended().await, Ended::Reset);
        assert!(asleep.elapsed() < WAIT_MAX, "the timeout of thirty seconds and some margin");
        let again = gateway.watch("News").await;
        again.sees("news").await;
    }
}
