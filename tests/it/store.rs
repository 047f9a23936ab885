//! Stored records, and the effect of changes on viewers.

use std::time::Duration;

use domain::account::Account;
use domain::channel::Channel;
use domain::core_settings::{PROXY_SETTINGS, STREAM_SETTINGS};
use domain::ids::{ChannelId, StreamId};
use domain::setting::CoreSetting;
use domain::stream::Stream;
use serde_json::json;
use uuid::Uuid;

use crate::support::client::{Ended, Player, Request, fetch};
use crate::support::eventually;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::{MockResponse, Provider};

const NEWS: &str = "/live/anna/news.ts";
const FILM: &str = "/live/anna/film.ts";

/// Starts a provider with two channels, and a gateway with its playlist.
async fn set_up() -> (Provider, TestGateway) {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    provider.path(FILM).plays(Picture::new("film"));
    let list = provider.playlist(&[("news", "News", NEWS), ("film", "Film", FILM)]);
    let gateway = Setup::new().limited_list(&list, 1).start().await;
    (provider, gateway)
}

async fn status(gateway: &TestGateway, path: &str) -> u16 {
    fetch(gateway.address, Request::get(path).method("HEAD")).await.status()
}

fn set(key: &'static str, value: serde_json::Value) -> CoreSetting {
    CoreSetting { id: 1, key: key.to_owned(), name: String::new(), value }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_channel_can_be_watched_and_is_listed_at_once() {
    let (_provider, gateway) = set_up().await;
    let channel = Channel {
        streams: vec![StreamId(2)],
        ..Channel::new(ChannelId(9), Uuid::from_u128(9), "All Films", 0)
    };
    let path = format!("/proxy/ts/stream/{}", channel.uuid);
    assert_eq!(status(&gateway, &path).await, 404);
    gateway.change(move |write| write.put(&channel)).await;
    let list = fetch(gateway.address, Request::get("/playlist.m3u")).await.text();
    assert!(list.contains(",All Films\n") && list.contains(&path), "{list}");
    Player::watch(gateway.address, &path).await.sees("film").await;
}

// Holds T-slot.6 over real sockets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_a_live_channel_ends_it_and_releases_its_slot() {
    let (provider, gateway) = set_up().await;
    let player = gateway.watch("News").await;
    player.sees("news").await;
    gateway.change(|write| write.remove::<Channel>(1).map(drop)).await;
    assert_eq!(player.ended().await, Ended::Whole);
    gateway.until_idle().await;
    assert_eq!(status(&gateway, &gateway.path("News")).await, 404);
    gateway.watch("Film").await.sees("film").await;
    assert_eq!(provider.peak(), 1);
}

// Holds T-slot.6 over real sockets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_the_account_in_use_disconnects_nobody_and_its_slot_ends_with_the_last_viewer() {
    let (provider, gateway) = set_up().await;
    let player = gateway.watch("News").await;
    player.sees("news").await;
    gateway
        .change(|write| {
            write.remove_owner::<Stream>(2);
            write.remove::<Account>(2).map(drop)
        })
        .await;
    let before = player.received(|r| r.ts.programme_seconds());
    player.until("two more seconds of programme", |r| r.ts.programme_seconds() > before + 2.0).await;
    assert_eq!((gateway.gateway.counts().leases, provider.open()), (1, 1));
    drop(player);
    gateway.until_idle().await;
    assert_eq!(gateway.watch("News").await.head().await.status, 503);
    gateway.until_idle().await;
    assert_eq!(provider.accepted(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_settings_apply_to_the_next_viewer_without_a_restart() {
    let (provider, gateway) = set_up().await;
    gateway.change(|write| write.put(&set(STREAM_SETTINGS, json!({"default_stream_profile": 2})))).await;
    assert_eq!(fetch(gateway.address, gateway.get("News")).await.status(), 302);
    gateway.change(|write| write.remove::<CoreSetting>(1).map(drop)).await;

    provider.path(NEWS).answers(MockResponse::mute());
    gateway.change(|write| write.put(&set(PROXY_SETTINGS, json!({"start_timeout": 0.5})))).await;
    let is_set = || gateway.gateway.settings().start_timeout == Duration::from_millis(500);
    eventually("the settings to take effect", is_set).await;
    let answer = fetch(gateway.address, gateway.get("News")).await;
    assert_eq!(answer.status(), 503);
    assert!(answer.text().contains("within 0.5 s"), "{}", answer.text());
}
