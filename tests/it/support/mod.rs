//! What the stories are told with: a provider that counts and misbehaves, a gateway on port 0, players,
//! and programs that are not ours.

pub mod api;
pub mod binary;
pub mod browser;
pub mod client;
pub mod gateway;
pub mod people;
pub mod push;
pub mod random;
pub mod signal;
pub mod tools;
pub mod ts_check;
pub mod upstream;

use std::time::Duration;

use tokio::time::Instant;

/// Longest wait for anything that must happen. Tests wait for events; this only ends those that would never end.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a condition holds; fails with its name after a generous while.
#[track_caller]
pub fn eventually<'a>(what: &'a str, condition: impl Fn() -> bool + 'a) -> impl Future<Output = ()> + 'a {
    let story = std::panic::Location::caller();
    async move {
        let deadline = Instant::now() + PATIENCE;
        while !condition() {
            assert!(Instant::now() < deadline, "{story}: this never came: {what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// The same for a condition that has to ask.
pub async fn until_async(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < deadline, "this never came: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
