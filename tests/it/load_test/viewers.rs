//! Viewers: steady ones, ones that zap, slow readers, and probes.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::byte_audit::Got;
use super::fixture::{LoadTestFixture, TestChannel};
use crate::support::client::{Ended, Player, Reading, Received, Request, fetch};
use crate::support::random::Random;

const PACKET: u64 = 188;

/// Returns the number of bytes that a player received, without filler.
fn own_bytes(received: &Received) -> u64 {
    received.n_bytes - received.ts.filler_packets * PACKET
}

/// Returns a request for a channel, with credentials or without.
fn asks(fixture: &LoadTestFixture, random: &mut Random, channel: &TestChannel, device: &str) -> Request {
    let person = random.pick(&fixture.users);
    let request = match random.below(4) {
        0 => Request::get(person.live(&format!("{}.ts", channel.id))),
        1 => Request::get(person.path(&channel.id.to_string())),
        2 => Request::get(format!("/proxy/ts/stream/{}", channel.uuid)).header("X-API-Key", &person.api_key),
        _ => Request::get(format!("/proxy/ts/stream/{}", channel.uuid)),
    };
    request.header("User-Agent", device).without_recording()
}

/// Checks the invariants of every response so far.
fn check_stream(fixture: &LoadTestFixture, player: &Player, name: &str, channel: &TestChannel) {
    let (complaints, status, labels) = player.received(|r| {
        let status = r.head.as_ref().map(|head| head.status);
        (r.ts.complaints.clone(), status, r.ts.labels.clone())
    });
    // Gaps of the provider are passed on.
    if !channel.is_rough {
        assert!(
            complaints.is_empty(),
            "{name} at {:?}, {labels:?}:\n  {}",
            channel.name,
            complaints.join("\n  ")
        );
    }
    fixture.audit.note(|it| match status {
        None => {}
        Some(200) => {
            it.served += 1;
            it.seams += labels.len().saturating_sub(1) as u64;
        }
        Some(503) => it.refused += 1,
        // The user is inactive, or the channel is deleted.
        Some(401 | 403 | 404) => it.turned_away += 1,
        Some(other) => panic!("{name} at {:?} got status {other}", channel.name),
    });
}

async fn leave(player: Player, random: &mut Random) {
    if random.once_in(2) { player.leave().await } else { player.reset().await }
}

/// Watches one channel after another, reads everything, and has its bytes compared.
pub async fn steady_viewer(fixture: &LoadTestFixture, number: u64, mut random: Random, until: Instant) {
    let mut n = 0;
    while Instant::now() < until {
        n += 1;
        let name = format!("steady_viewer {number}/{n}/{}", random.below(1 << 31));
        let channel = fixture.any(&mut random);
        let player = Player::ask(fixture.gateway.address, asks(fixture, &mut random, &channel, &name)).await;
        let stays = Instant::now() + random.millis(100, 6_000);
        while Instant::now() < stays && player.received(|r| r.ended.is_none()) {
            if random.once_in(3) {
                check_byte_counts(fixture, &player, &name).await;
            }
            random.pause(900).await;
        }
        check_stream(fixture, &player, &name, &channel);
        let got = player.received(|r| {
            let is_whole =
                r.ended == Some(Ended::Whole) && r.head.as_ref().is_some_and(|it| it.status == 200);
            Got { bytes: own_bytes(r), is_whole }
        });
        fixture.audit.left(name, got);
        leave(player, &mut random).await;
        random.pause(200).await;
    }
}

/// Checks that the number of bytes sent in the status is at least what was received, that the rest arrives, and that
/// nothing was skipped.
async fn check_byte_counts(fixture: &LoadTestFixture, player: &Player, name: &str) {
    let before = player.received(own_bytes);
    let deadline = Instant::now() + crate::support::WAIT_MAX;
    let (client, sent) = loop {
        let status = fixture.call("GET", "/proxy/ts/status", Value::Null).await;
        let channels = status.body["channels"].as_array().cloned().unwrap_or_default();
        let clients = channels.iter().flat_map(|it| it["clients"].as_array().cloned().unwrap_or_default());
        let Some(client) = clients.into_iter().find(|it| it["user_agent"] == name) else { return };
        let sent = client["bytes_sent"].as_u64().unwrap();
        if before < sent + PACKET {
            break (client, sent);
        }
        // The gateway may be interrupted between sending and counting. The sums are compared at the end.
        assert!(Instant::now() < deadline, "{name} has {before} bytes of {client}");
        sleep(Duration::from_millis(10)).await;
    };
    assert_eq!((&client["misses"], &client["missed_bytes"]), (&0.into(), &0.into()), "{name}: {client}");
    let arrives = async {
        while player.received(|r| own_bytes(r) < sent && r.ended.is_none()) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let came = timeout(crate::support::WAIT_MAX, arrives).await;
    fixture.audit.note(|it| it.looks += 1);
    assert!(came.is_ok(), "{name} has {} bytes of {client}", player.received(own_bytes));
}

/// One device that changes channels, and opens the next one before it closes the last one.
pub async fn zapper(fixture: &LoadTestFixture, number: u64, mut random: Random, until: Instant) {
    let device = format!("remote control {number}");
    let mut before: Option<(Player, TestChannel)> = None;
    while Instant::now() < until {
        let channel = fixture.any(&mut random);
        let player =
            Player::ask(fixture.gateway.address, asks(fixture, &mut random, &channel, &device)).await;
        if let Some((player, channel)) = before.take() {
            check_stream(fixture, &player, &device, &channel);
            leave(player, &mut random).await;
        }
        // Quickly through the channels, with a longer stay now and then.
        let longest = if random.once_in(5) { 2_500 } else { 250 };
        random.pause(longest).await;
        before = Some((player, channel));
    }
    if let Some((player, channel)) = before {
        check_stream(fixture, &player, &device, &channel);
        leave(player, &mut random).await;
    }
}

/// A viewer that reads slowly, not at all, and freely in turn.
pub async fn slow_viewer(fixture: &LoadTestFixture, number: u64, mut random: Random, until: Instant) {
    let device = format!("phone {number}");
    while Instant::now() < until {
        let channel = fixture.any(&mut random);
        let request = asks(fixture, &mut random, &channel, &device).receive_buffer(16 << 10);
        let player = Player::ask(fixture.gateway.address, request).await;
        for _ in 0..random.below(6) {
            player.read(match random.below(4) {
                0 => Reading::Nothing,
                1 => Reading::Freely,
                _ => Reading::BytesPerSecond(5_000 + random.below(100_000) as u32),
            });
            random.pause(2_000).await;
        }
        check_stream(fixture, &player, &device, &channel);
        leave(player, &mut random).await;
        random.pause(500).await;
    }
}

/// Sends HEAD requests, previews single streams, and logs in with a wrong password.
pub async fn prober(fixture: &LoadTestFixture, mut random: Random, until: Instant) {
    let address = fixture.gateway.address;
    while Instant::now() < until {
        let channel = fixture.any(&mut random);
        let path = format!("/proxy/ts/stream/{}", channel.uuid);
        match random.below(6) {
            0 | 1 => {
                let status = fetch(address, Request::head(&path)).await.status();
                assert!(matches!(status, 200 | 404), "HEAD {path}: {status}");
            }
            2 => {
                let stream = *random.pick(&channel.streams);
                let request = Request::get(format!("/proxy/ts/stream/{stream}"));
                let request =
                    request.header("X-API-Key", &fixture.root.api_key).header("User-Agent", "browser");
                let player = Player::ask(address, request.without_recording()).await;
                random.pause(1_500).await;
                check_stream(fixture, &player, "a preview", &channel);
                leave(player, &mut random).await;
            }
            3 => {
                let wrong = format!("/live/{}/wrong/{}.ts", random.pick(&fixture.users).name, channel.id);
                assert_eq!(fetch(address, Request::get(wrong)).await.status(), 401);
            }
            4 => {
                let list = fetch(address, Request::get("/playlist.m3u")).await;
                assert_eq!(list.status(), 200);
            }
            _ => drop(fixture.gateway.metrics().await),
        }
        random.pause(700).await;
    }
}
