//! Who watches: those who stay and keep up, those who zap, those who do not read, and those who only look.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::house::{House, Spot};
use super::ledger::Got;
use crate::support::client::{Ended, Player, Reading, Received, Request, fetch};
use crate::support::random::Random;

const PACKET: u64 = 188;

/// Bytes of stream that a player has, without those that bridge gaps.
fn own_bytes(received: &Received) -> u64 {
    received.n_bytes - received.ts.filler_packets * PACKET
}

/// A way to a channel, for somebody with a user or without.
fn asks(house: &House, random: &mut Random, spot: &Spot, device: &str) -> Request {
    let person = random.pick(&house.people);
    let request = match random.below(4) {
        0 => Request::get(person.live(&format!("{}.ts", spot.id))),
        1 => Request::get(person.path(&spot.id.to_string())),
        2 => Request::get(format!("/proxy/ts/stream/{}", spot.uuid)).header("X-API-Key", &person.api_key),
        _ => Request::get(format!("/proxy/ts/stream/{}", spot.uuid)),
    };
    request.header("User-Agent", device).without_recording()
}

/// What must be true of everything that any player gets, whenever one looks.
fn look(house: &House, player: &Player, name: &str, spot: &Spot) {
    let (complaints, status, labels) = player.received(|r| {
        let status = r.head.as_ref().map(|head| head.status);
        (r.ts.complaints.clone(), status, r.ts.labels.clone())
    });
    // What has gaps at the provider's has them here.
    if !spot.is_rough {
        assert!(
            complaints.is_empty(),
            "{name} at {:?}, {labels:?}:\n  {}",
            spot.name,
            complaints.join("\n  ")
        );
    }
    house.ledger.note(|it| match status {
        None => {}
        Some(200) => {
            it.served += 1;
            it.seams += labels.len().saturating_sub(1) as u64;
        }
        Some(503) => it.refused += 1,
        // Made inactive, or the channel is gone.
        Some(401 | 403 | 404) => it.turned_away += 1,
        Some(other) => panic!("{name} at {:?} is answered {other}", spot.name),
    });
}

async fn leave(player: Player, random: &mut Random) {
    if random.once_in(2) { player.leave().await } else { player.reset().await }
}

/// Watches one channel after the other, reads all that comes, and has it accounted for.
pub async fn keeper(house: &House, number: u64, mut random: Random, until: Instant) {
    let mut n = 0;
    while Instant::now() < until {
        n += 1;
        let name = format!("keeper {number}/{n}/{}", random.below(1 << 31));
        let spot = house.any(&mut random);
        let player = Player::ask(house.gateway.address, asks(house, &mut random, &spot, &name)).await;
        let stays = Instant::now() + random.millis(100, 6_000);
        while Instant::now() < stays && player.received(|r| r.ended.is_none()) {
            if random.once_in(3) {
                is_accounted_for(house, &player, &name).await;
            }
            random.pause(900).await;
        }
        look(house, &player, &name, &spot);
        let got = player.received(|r| {
            let is_whole =
                r.ended == Some(Ended::Whole) && r.head.as_ref().is_some_and(|it| it.status == 200);
            Got { bytes: own_bytes(r), is_whole }
        });
        house.ledger.left(name, got);
        leave(player, &mut random).await;
        random.pause(200).await;
    }
}

/// What the status says was sent is no less than what is here, and comes; and nothing was missed.
async fn is_accounted_for(house: &House, player: &Player, name: &str) {
    let before = player.received(own_bytes);
    let status = house.call("GET", "/proxy/ts/status", Value::Null).await;
    let channels = status.body["channels"].as_array().cloned().unwrap_or_default();
    let clients = channels.iter().flat_map(|it| it["clients"].as_array().cloned().unwrap_or_default());
    let Some(client) = clients.into_iter().find(|it| it["user_agent"] == name) else { return };
    let sent = client["bytes_sent"].as_u64().unwrap();
    assert!(before < sent + PACKET, "{name} has {before} bytes of {client}");
    assert_eq!((&client["misses"], &client["missed_bytes"]), (&0.into(), &0.into()), "{name}: {client}");
    let arrives = async {
        while player.received(|r| own_bytes(r) < sent && r.ended.is_none()) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let came = timeout(crate::support::PATIENCE, arrives).await;
    house.ledger.note(|it| it.looks += 1);
    assert!(came.is_ok(), "{name} has {} bytes of {client}", player.received(own_bytes));
}

/// One device that goes from channel to channel, and opens the next one before it closes the last one.
pub async fn zapper(house: &House, number: u64, mut random: Random, until: Instant) {
    let device = format!("remote control {number}");
    let mut before: Option<(Player, Spot)> = None;
    while Instant::now() < until {
        let spot = house.any(&mut random);
        let player = Player::ask(house.gateway.address, asks(house, &mut random, &spot, &device)).await;
        if let Some((player, spot)) = before.take() {
            look(house, &player, &device, &spot);
            leave(player, &mut random).await;
        }
        // Fast through the list, and then some while of one of them.
        let longest = if random.once_in(5) { 2_500 } else { 250 };
        random.pause(longest).await;
        before = Some((player, spot));
    }
    if let Some((player, spot)) = before {
        look(house, &player, &device, &spot);
        leave(player, &mut random).await;
    }
}

/// A phone in a pocket: reads slowly, not at all, and freely in between.
pub async fn idler(house: &House, number: u64, mut random: Random, until: Instant) {
    let device = format!("phone {number}");
    while Instant::now() < until {
        let spot = house.any(&mut random);
        let request = asks(house, &mut random, &spot, &device).receive_buffer(16 << 10);
        let player = Player::ask(house.gateway.address, request).await;
        for _ in 0..random.below(6) {
            player.read(match random.below(4) {
                0 => Reading::Nothing,
                1 => Reading::Freely,
                _ => Reading::BytesPerSecond(5_000 + random.below(100_000) as u32),
            });
            random.pause(2_000).await;
        }
        look(house, &player, &device, &spot);
        leave(player, &mut random).await;
        random.pause(500).await;
    }
}

/// Asks for heads, looks at single streams as admins do, and knocks with the wrong password.
pub async fn prober(house: &House, mut random: Random, until: Instant) {
    let address = house.gateway.address;
    while Instant::now() < until {
        let spot = house.any(&mut random);
        let path = format!("/proxy/ts/stream/{}", spot.uuid);
        match random.below(6) {
            0 | 1 => {
                let status = fetch(address, Request::head(&path)).await.status();
                assert!(matches!(status, 200 | 404), "HEAD {path}: {status}");
            }
            2 => {
                let stream = *random.pick(&spot.streams);
                let request = Request::get(format!("/proxy/ts/stream/{stream}"));
                let request =
                    request.header("X-API-Key", &house.root.api_key).header("User-Agent", "browser");
                let player = Player::ask(address, request.without_recording()).await;
                random.pause(1_500).await;
                look(house, &player, "a preview", &spot);
                leave(player, &mut random).await;
            }
            3 => {
                let wrong = format!("/live/{}/wrong/{}.ts", random.pick(&house.people).name, spot.id);
                assert_eq!(fetch(address, Request::get(wrong)).await.status(), 401);
            }
            4 => {
                let list = fetch(address, Request::get("/playlist.m3u")).await;
                assert_eq!(list.status(), 200);
            }
            _ => drop(house.gateway.metrics().await),
        }
        random.pause(700).await;
    }
}
