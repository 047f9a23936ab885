//! Signals, with the real binary.

use crate::support::binary::Binary;
use crate::support::client::{Ended, Player, Reading, Request};
use crate::support::signal::Picture;
use crate::support::upstream::Provider;
use crate::support::{eventually, tools};

const NEWS: &str = "/live/anna/news.ts";

/// Returns a provider, and a file with its playlist.
fn provider() -> (Provider, tempfile::NamedTempFile) {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news").bits_per_second(8_000_000));
    let list = tools::saved(provider.playlist(&[("news", "News", NEWS)]).as_bytes());
    (provider, list)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_sigterm_ends_every_stream_after_whole_packets_and_exits_with_0() {
    let (provider, list) = provider();
    for signal in ["TERM", "INT"] {
        let mut program = Binary::start(&["play", &list.path().to_string_lossy()]);
        let address = program.address().await;
        let path = program.streams().await.remove(0);
        let players = [Player::watch(address, &path).await, Player::watch(address, &path).await];
        for player in &players {
            player.sees("news").await;
        }
        program.signal(signal);
        for player in &players {
            assert_eq!(player.ended().await, Ended::Whole);
            player.received(|r| r.ts.assert_clean());
        }
        assert_eq!(program.ended().await.code(), Some(0), "{}", program.output());
        eventually("the provider's connections to close", || provider.open() == 0).await;
    }
}

/// Holds T-bak.3. The drain would last longer than the test if one viewer were forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_viewers_do_not_keep_the_program_from_ending() {
    let (provider, list) = provider();
    let list = list.path().to_string_lossy().into_owned();
    let mut program = Binary::start(&["play", &list, "--set", "limits.drain_timeout=600"]);
    let address = program.address().await;
    let path = program.streams().await.remove(0);
    let mut players = Vec::new();
    for _ in 0..50 {
        players.push(Player::watch(address, &path).await);
    }
    for player in &players {
        player.sees("news").await;
    }
    program.signal("TERM");
    assert_eq!(program.ended().await.code(), Some(0), "{}", program.output());
    for player in &players {
        assert_eq!(player.ended().await, Ended::Whole);
    }
    eventually("the provider's connections to close", || provider.open() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_sigterm_exits_at_once() {
    let (_provider, list) = provider();
    // A viewer that does not read keeps the drain waiting until its timeout.
    let list = list.path().to_string_lossy().into_owned();
    let mut program = Binary::start(&["play", &list, "--set", "limits.drain_timeout=600"]);
    let address = program.address().await;
    let path = program.streams().await.remove(0);
    let player = Player::ask(address, Request::get(&path).receive_buffer(8 << 10)).await;
    player.sees("news").await;
    player.read(Reading::Nothing);
    // Fills all buffers between gateway and player, so that the drain has to wait.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    program.signal("TERM");
    eventually("the drain to begin", || program.output().contains("gateway stopping")).await;
    assert!(program.is_running());
    program.signal("TERM");
    assert_eq!(program.ended().await.code(), Some(143), "{}", program.output());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_the_next_run_holds_no_slot() {
    // Holds T-slot.7.
    let (provider, list) = provider();
    let list = list.path().to_string_lossy().into_owned();
    let mut last_path = None;
    for _ in 0..2 {
        let mut program = Binary::start(&["play", "--max-streams", "1", &list]);
        let address = program.address().await;
        let path = program.streams().await.remove(0);
        assert_eq!(last_path.get_or_insert(path.clone()), &path, "URLs are permanent");
        let player = Player::watch(address, &path).await;
        player.sees("news").await;
        program.signal("KILL");
        assert_eq!(program.ended().await.code(), None);
        assert_ne!(player.ended().await, Ended::Whole, "the player can tell that the response is incomplete");
        eventually("the provider's connections to close", || provider.open() == 0).await;
    }
    assert_eq!((provider.peak(), provider.accepted()), (1, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_arguments_are_reported_before_a_port_is_bound() {
    let (_provider, list) = provider();
    let list = list.path().to_string_lossy().into_owned();
    let cases: [(&[&str], &str); 4] = [
        (&["play", &list, "--set", "engine.stall_timeout=-1"], "stall_timeout"),
        (&["play", &list, "--set", "engine.no_such_key=1"], "no_such_key"),
        (&["play", "/no/such/list.m3u"], "/no/such/list.m3u"),
        (&["play"], "playlist"),
    ];
    for (arguments, expected) in cases {
        let mut program = Binary::start(arguments);
        let status = program.ended().await;
        eventually(expected, || program.output().contains(expected)).await;
        assert!(!status.success(), "{arguments:?}");
        assert!(!program.output().contains("gateway started"), "{arguments:?}");
    }
}
