//! Viewers keep their streams over a restart, with the real binary and a provider that allows one connection.

use std::time::Duration;

use tokio::time::Instant;

use crate::data_folder::Data;
use crate::restart::{NEWS, child_of, n_starts, set_up};
use crate::support::binary::Binary;
use crate::support::client::{Ended, Player, Request, fetch};
use crate::support::eventually;

/// More than a second of the stream.
const SOME: u64 = 2_000_000;

/// Starts a gateway with a viewer, and restarts it.
async fn restarted(data: &Data, drain_time: &str) -> (Binary, Player, String) {
    let drain_time = format!("limits.drain_time={drain_time}");
    let program = data.run(&["serve", "--set", &drain_time]);
    let address = program.address().await;
    let path = program.streams().await.remove(0);
    let viewer = Player::watch(address, &path).await;
    viewer.sees("news").await;
    let (code, reply) = data.ran(&["restart"]).await;
    assert_eq!(code, Some(0), "{reply}");
    eventually("the new process to start", || n_starts(&program) == 2).await;
    (program, viewer, path)
}

/// Whether the process that was started is the small one that waits for the new one.
pub(crate) fn is_only_parent(program: &Binary) -> bool {
    let command = std::fs::read(format!("/proc/{}/cmdline", program.id())).unwrap_or_default();
    String::from_utf8_lossy(&command).contains("parent-of-gateway")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn viewers_on_both_sides_of_a_restart_share_one_connection_and_none_is_cut() {
    let (provider, data) = set_up().await;
    let (mut program, before, path) = restarted(&data, "3600").await;
    let address = program.address().await;
    before.more_bytes(SOME).await;
    let after = Player::watch(address, &path).await;
    after.sees("news").await;
    after.more_bytes(SOME).await;
    before.more_bytes(SOME).await;
    assert!(before.is_watching() && after.is_watching() && !is_only_parent(&program));
    assert_eq!((provider.path(NEWS).n_requests(), provider.open()), (1, 1));
    before.received(|it| it.ts.assert_clean());

    // The new process opens the channel when the old one has returned its slot.
    before.leave().await;
    eventually("the old process to end", || is_only_parent(&program)).await;
    eventually("the new process to open the channel", || provider.path(NEWS).n_requests() == 2).await;
    after.more_bytes(2 * SOME).await;
    after.received(|it| it.ts.assert_clean());
    assert!(after.is_watching() && program.is_running());
    assert_eq!((provider.peak_of("anna"), provider.refusals()), (1, 0));

    program.signal("TERM");
    assert_eq!(program.ended().await.code(), Some(0));
    assert_eq!(after.ended().await, Ended::Whole);
    eventually("the provider's connections to close", || provider.open() == 0).await;
    assert_eq!(data.ran(&["check"]).await.0, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connection_of_the_old_process_counts_for_other_channels_until_its_viewer_leaves() {
    let (provider, data) = set_up().await;
    let (mut program, before, _path) = restarted(&data, "3600").await;
    let address = program.address().await;
    let sport = program.streams().await.remove(1);
    let refused = fetch(address, Request::get(&sport)).await;
    assert_eq!(refused.status(), 503, "{}", refused.text());
    assert_eq!((provider.peak_of("anna"), provider.refusals()), (1, 0));
    before.received(|it| it.ts.assert_clean());
    before.leave().await;
    let after = Player::watch(address, &sport).await;
    after.sees("sport").await;
    assert_eq!((provider.peak_of("anna"), provider.refusals()), (1, 0));
    program.signal("TERM");
    assert_eq!(program.ended().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_drain_time_the_streams_of_the_old_process_end() {
    let (provider, data) = set_up().await;
    let began = Instant::now();
    let (mut program, before, path) = restarted(&data, "4").await;
    let address = program.address().await;
    let after = Player::watch(address, &path).await;
    after.sees("news").await;
    assert_eq!(before.ended().await, Ended::Whole);
    assert!(began.elapsed() >= Duration::from_secs(4), "{:?}", began.elapsed());
    before.received(|it| it.ts.assert_clean());
    eventually("the old process to end", || is_only_parent(&program)).await;
    eventually("the new process to open the channel", || provider.path(NEWS).n_requests() == 2).await;
    after.more_bytes(2 * SOME).await;
    assert!(after.is_watching());
    assert_eq!((provider.peak_of("anna"), provider.refusals()), (1, 0));
    program.signal("TERM");
    assert_eq!(program.ended().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_restart_waits_for_the_viewers_of_the_first_and_a_stop_ends_both() {
    let (_provider, data) = set_up().await;
    let (mut program, before, _path) = restarted(&data, "3600").await;
    let (code, reply) = data.ran(&["restart"]).await;
    assert!(code == Some(1) && reply.contains("still serves viewers"), "{code:?}: {reply}");
    before.more_bytes(SOME).await;
    program.signal("TERM");
    assert_eq!(program.ended().await.code(), Some(0));
    assert_eq!(before.ended().await, Ended::Whole);
    before.received(|it| it.ts.assert_clean());
    assert_eq!(data.ran(&["check"]).await.0, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn if_the_new_process_is_killed_the_old_one_ends_with_its_viewers() {
    let (provider, data) = set_up().await;
    let (mut program, before, path) = restarted(&data, "3600").await;
    // The old process serves it the channel, so it knows that the new one has started.
    let after = Player::watch(program.address().await, &path).await;
    after.sees("news").await;
    let killed = child_of(program.id()).expect("the new process runs");
    assert!(std::process::Command::new("kill").args(["-KILL", &killed]).status().unwrap().success());
    assert_eq!(program.ended().await.code(), Some(137));
    assert_eq!(before.ended().await, Ended::Whole);
    eventually("the provider's connections to close", || provider.open() == 0).await;
}
