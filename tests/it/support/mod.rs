//! Test tools: a provider that counts its connections and can misbehave, a gateway on port 0, players, and external
//! programs.

pub mod api;
pub mod binary;
pub mod browser;
pub mod client;
pub mod cluster;
pub mod cluster_content;
pub mod files;
pub mod gateway;
pub mod hostile;
pub mod namespace;
pub mod panel;
pub mod portal;
pub mod portal_offers;
pub mod random;
pub mod reverse_proxy;
pub mod schedules_direct;
pub mod signal;
pub mod small_disk;
pub mod tools;
pub mod ts_check;
pub mod upstream;
pub mod users;
pub mod web;
pub mod web_target;
pub mod webhook;
pub mod websocket;

use std::time::Duration;

use tokio::time::Instant;

/// Longest wait for an event. Tests wait for events; this only ends a wait that would last forever.
pub const WAIT_MAX: Duration = Duration::from_secs(150);

/// Waits until a condition holds; panics with its description after `WAIT_MAX`.
#[track_caller]
pub fn eventually<'a>(what: &'a str, condition: impl Fn() -> bool + 'a) -> impl Future<Output = ()> + 'a {
    let caller = std::panic::Location::caller();
    async move {
        let deadline = Instant::now() + WAIT_MAX;
        while !condition() {
            assert!(Instant::now() < deadline, "{caller}: timeout waiting for {what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Does the same for an asynchronous condition.
pub async fn until_async(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + WAIT_MAX;
    while !condition().await {
        assert!(Instant::now() < deadline, "timeout waiting for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
