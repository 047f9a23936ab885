//! Clients that are slow, stand still or vanish: nobody else notices, and what they held comes back.

use std::time::Duration;

use domain::event::EventBody;
use domain::settings::Settings;

use crate::support::client::{Ended, Player, Reading};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::Provider;
use crate::support::{PATIENCE, eventually};

const NEWS: &str = "/live/anna/news.ts";

/// A fast channel with a short past, so that a slow client falls out of it soon.
async fn house(change: impl FnOnce(&mut Settings)) -> (Provider, TestGateway) {
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
async fn a_slow_client_misses_something_that_is_declared_and_slows_nobody() {
    // Holds T-view.3: a quarter of the rate.
    let (provider, gateway) = house(|it| it.slow_client_limit = u32::MAX).await;
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
    // One past and what it is handing on: bounded, however long the slow one takes.
    assert!(counts.ring_bytes <= 2 << 20, "{} bytes kept", counts.ring_bytes);
    assert_eq!(provider.peak(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_misses_too_often_is_let_go() {
    let (_provider, gateway) = house(|it| it.slow_client_limit = 2).await;
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
    eventually("the disconnect to be told", || reason().is_some()).await;
    assert!(reason().unwrap().contains("slow"), "{:?}", reason());
    slow.read(Reading::Freely);
    slow.ended().await;
    assert!(fast.is_watching());
    fast.received(|r| r.ts.assert_clean());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_in_any_way_is_gone_at_once() {
    let (provider, gateway) = house(|_| {}).await;
    for round in 0..6 {
        let player = gateway.watch("News").await;
        player.sees("news").await;
        gateway.has_clients(1).await;
        // Also with its socket full of what it never read.
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
    gateway.is_quiet().await;
    assert_eq!(provider.open(), 0);
}

/// These wait for time-outs that are fixed on purpose.
mod slow {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_phone_that_stops_reading_without_closing_is_hung_up_on_and_its_slot_comes_back() {
        let (provider, gateway) = house(|it| it.slow_client_limit = u32::MAX).await;
        let phone = Player::ask(gateway.address, gateway.get("News").receive_buffer(16 << 10)).await;
        phone.sees("news").await;
        phone.read(Reading::Nothing);
        let asleep = tokio::time::Instant::now();
        gateway.is_quiet().await;
        assert!(asleep.elapsed() > Duration::from_secs(20), "a short sleep is forgiven");
        assert_eq!(provider.open(), 0);
        phone.read(Reading::Freely);
        assert_eq!(phone.ended().await, Ended::Reset);
        assert!(asleep.elapsed() < PATIENCE, "thirty seconds and what it takes to notice");
        let again = gateway.watch("News").await;
        again.sees("news").await;
    }
}
