//! Invariants that hold during the load, and the checks of an idle gateway after it.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use headwater::Stopped;
use storage::Error;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::fixture::{LOGINS, LoadTestFixture, TestChannel};
use super::process;
use crate::support::client::Player;
use crate::support::eventually;
use crate::support::random::Random;

/// Interval between checks that leases and sockets agree.
const PERIOD: Duration = Duration::from_millis(40);
/// Sockets and leases are read one after the other; number of retries for one that changes in between.
const LOOKS: usize = 20;

/// Resources in use while the gateway is idle.
#[derive(Debug)]
pub struct Baseline {
    tasks: usize,
    files: usize,
    kinds: BTreeSet<String>,
}

impl Baseline {
    /// Measured after everything was used once, because some resources are allocated on first use.
    pub async fn measure(fixture: &LoadTestFixture) -> Baseline {
        all_channels_play(fixture).await;
        until_idle(fixture).await;
        let kinds = process::kinds_of_files(fixture.folder.path());
        // Tasks and files that just ended may still be counted, so take the minimum of several readings.
        let (mut tasks, mut files) = (usize::MAX, usize::MAX);
        for _ in 0..20 {
            sleep(PERIOD).await;
            tasks = tasks.min(n_tasks());
            files = files.min(process::n_files());
        }
        Baseline { tasks, files, kinds }
    }
}

fn n_tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Checks the invariants repeatedly until the end of the load.
pub async fn check_until(fixture: &LoadTestFixture, until: Instant) {
    while Instant::now() < until {
        check_leases_cover_sockets(fixture).await;
        check_login_limits(fixture);
        sleep(PERIOD).await;
    }
}

/// Checks that the provider never has more sockets than there are leases.
async fn check_leases_cover_sockets(fixture: &LoadTestFixture) {
    let mut seen = (0, 0);
    for _ in 0..LOOKS {
        let before = fixture.gateway.gateway.system().leases().len();
        let sockets = fixture.live.open_with_request() + fixture.programs.open_with_request();
        let after = fixture.gateway.gateway.system().leases().len();
        if sockets <= before.max(after) {
            return;
        }
        seen = (sockets, before.max(after));
        sleep(Duration::from_millis(1)).await;
    }
    panic!("{} sockets are open at the provider, {} leases are out", seen.0, seen.1);
}

fn check_login_limits(fixture: &LoadTestFixture) {
    for login in LOGINS.iter().filter(|it| it.configured_max() > 0) {
        let provider = fixture.provider(login.name);
        let peak = provider.peak_of(login.name);
        assert!(
            peak <= login.max_streams,
            "{peak} simultaneous sockets of {}: {:#?}; leases: {:#?}",
            login.name,
            provider.overlaps(login.name),
            fixture.gateway.gateway.system().leases(),
        );
    }
}

async fn until_idle(fixture: &LoadTestFixture) {
    fixture.gateway.until_idle().await;
    let system = fixture.gateway.gateway.system();
    eventually("all seats to be released", || system.counts().seats == 0).await;
    assert_eq!(system.leases(), []);
    // A connection attempt that was abandoned before its request may still wait to be accepted there.
    for provider in [&fixture.live, &fixture.programs, &fixture.lists] {
        eventually("the provider's sockets to close", || provider.open() == 0).await;
    }
}

/// Checks that every channel of the lineup plays.
async fn all_channels_play(fixture: &LoadTestFixture) {
    for some in fixture.lineup.chunks(3) {
        join_all(some.iter().map(|channel| plays(fixture, channel))).await;
        until_idle(fixture).await;
    }
}

async fn plays(fixture: &LoadTestFixture, channel: &TestChannel) {
    let path = format!("/proxy/ts/stream/{}", channel.uuid);
    // Retry while an account holds a slot back after its release.
    for _ in 0..10 {
        let player = Player::watch(fixture.gateway.address, &path).await;
        let status = player.status().await;
        if status == 200 {
            player.until("half a second of the channel", |r| r.ts.programme_seconds() > 0.5).await;
            player.received(|r| r.ts.assert_clean());
            return;
        }
        assert_eq!(status, 503, "{}: {}", channel.name, player.answer().await.text());
        sleep(Duration::from_millis(300)).await;
    }
    panic!("{} does not play", channel.name);
}

/// Waits until the gateway is idle, then checks that everything works and that nothing is left over. Returns a summary
/// of the round and the memory in use, in KiB.
pub async fn check_idle(
    fixture: &LoadTestFixture,
    random: &mut Random,
    baseline: &Baseline,
) -> (String, u64) {
    fixture.undo_changes().await;
    fixture.restore_sources(random);
    until_idle(fixture).await;
    for (login, id) in &fixture.accounts {
        let path = format!("/api/m3u/refresh/{id}/");
        crate::support::until_async(&format!("the last refresh of {login}"), async || {
            let phase = fixture.call("GET", &path, serde_json::Value::Null).await.body["phase"].clone();
            phase.is_null() || phase == "done"
        })
        .await;
    }
    all_channels_play(fixture).await;
    until_idle(fixture).await;
    check_login_limits(fixture);
    eventually("the last task to end", || n_tasks() <= baseline.tasks).await;
    eventually("the last program to end", || process::with_marker(&fixture.marker).is_empty()).await;
    eventually("the last child process to be reaped", || process::children().is_empty()).await;
    for provider in [&fixture.live, &fixture.programs, &fixture.lists] {
        provider.forget();
    }
    eventually("the last file to be closed", || process::n_files() <= baseline.files).await;
    let left: Vec<_> =
        process::kinds_of_files(fixture.folder.path()).difference(&baseline.kinds).cloned().collect();
    assert!(left.is_empty(), "files are left: {left:?}");

    let counted = fixture.audit.close();
    let (counts, figures) = (fixture.gateway.gateway.counts(), fixture.gateway.models().store.statistics());
    // The cache of the store is limited separately, and its limit is far away.
    let kib = process::in_use_kib().saturating_sub(figures.cache_bytes as u64 >> 10);
    let line = format!(
        "{kib} KiB in use and {} cached, {} KiB of {} on disk live, {} MiB resident, {} tasks, {} files, {counted:?}, {} losses, {} failovers, {} reconnects, {} switches, {} starts, \
         {} MB in, {} MB out, {} missed",
        figures.cache_bytes >> 10,
        figures.live_bytes >> 10,
        figures.disk_bytes >> 10,
        process::resident_kib() >> 10,
        n_tasks(),
        process::n_files(),
        counts.losses(),
        counts.failovers,
        counts.reconnects,
        counts.switches,
        counts.channel_starts,
        counts.bytes_in / 1_000_000,
        counts.bytes_out / 1_000_000,
        counts.misses,
    );
    assert!(
        counted.served > 10 && counted.compared > 2 && counted.kills > 2 && counted.calls > 20,
        "nothing happened: {line}"
    );
    (line, kib)
}

/// Stops the gateway and checks the store.
pub async fn shut_down(fixture: LoadTestFixture, baseline: &Baseline) {
    let LoadTestFixture { gateway, folder, .. } = fixture;
    assert_eq!(gateway.gateway.stop().await, Stopped { is_clean: true });
    let (store, key) = (folder.path().join("store"), folder.path().join("key"));
    // Work of a blocking thread that was begun before the end may hold the store for a moment.
    let check = || storage::check(&store, &key, &storage::records::schema());
    eventually("the store to be unlocked", || !matches!(check(), Err(Error::AlreadyRunning(_)))).await;
    let found = check().unwrap();
    assert!(found.is_ok(), "{found}");
    let left: Vec<_> = process::kinds_of_files(folder.path()).difference(&baseline.kinds).cloned().collect();
    assert!(left.is_empty(), "files are left: {left:?}");
}
