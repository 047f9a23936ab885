//! What has to be true while everything happens, and when it is quiet again.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use headwater::Stopped;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::house::{House, LOGINS, Spot};
use super::process;
use crate::support::client::Player;
use crate::support::eventually;
use crate::support::random::Random;

/// How often it is looked whether leases and sockets agree.
const PERIOD: Duration = Duration::from_millis(40);
/// A socket and its lease are looked at one after the other; so often one may come or go in between.
const LOOKS: usize = 20;

/// What the house holds when nothing happens.
#[derive(Debug)]
pub struct Baseline {
    tasks: usize,
    files: usize,
    kinds: BTreeSet<String>,
}

impl Baseline {
    /// Read after everything was used once: some things are there from their first use on.
    pub async fn of(house: &House) -> Baseline {
        works(house).await;
        is_quiet(house).await;
        let kinds = process::kinds_of_files(house.folder.path());
        // What has just ended is still on its way out: the smallest reading of some.
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

/// Looks on while everything happens.
pub async fn watches(house: &House, until: Instant) {
    while Instant::now() < until {
        leases_outlive_sockets(house).await;
        no_login_is_overdrawn(house);
        sleep(PERIOD).await;
    }
}

/// Never more sockets at the provider than leases are out.
async fn leases_outlive_sockets(house: &House) {
    let mut seen = (0, 0);
    for _ in 0..LOOKS {
        let before = house.gateway.gateway.system().leases().len();
        let sockets = house.live.open_with_request() + house.programs.open_with_request();
        let after = house.gateway.gateway.system().leases().len();
        if sockets <= before.max(after) {
            return;
        }
        seen = (sockets, before.max(after));
        sleep(Duration::from_millis(1)).await;
    }
    panic!("{} sockets are open at the provider, {} leases are out", seen.0, seen.1);
}

fn no_login_is_overdrawn(house: &House) {
    for login in LOGINS.iter().filter(|it| it.max_streams > 0) {
        let provider = house.provider(login.name);
        let peak = provider.peak_of(login.name);
        assert!(
            peak <= login.max_streams,
            "{peak} sockets of {} at once: {:#?}; leases: {:#?}",
            login.name,
            provider.overlaps(login.name),
            house.gateway.gateway.system().leases(),
        );
    }
}

async fn is_quiet(house: &House) {
    house.gateway.is_quiet().await;
    let system = house.gateway.gateway.system();
    eventually("no seat taken", || system.counts().seats == 0).await;
    assert_eq!(system.leases(), []);
    // A dial that was given up before its request may still wait to be accepted there.
    for provider in [&house.live, &house.programs, &house.lists] {
        eventually("the provider's sockets to be gone", || provider.open() == 0).await;
    }
}

/// Every channel of the lineup plays.
async fn works(house: &House) {
    for some in house.lineup.chunks(3) {
        join_all(some.iter().map(|spot| plays(house, spot))).await;
        is_quiet(house).await;
    }
}

async fn plays(house: &House, spot: &Spot) {
    let path = format!("/proxy/ts/stream/{}", spot.uuid);
    // A slot that its account keeps back for a while is worth another try.
    for _ in 0..10 {
        let player = Player::watch(house.gateway.address, &path).await;
        let status = player.status().await;
        if status == 200 {
            player.until("a while of the channel", |r| r.ts.programme_seconds() > 0.5).await;
            player.received(|r| r.ts.assert_clean());
            return;
        }
        assert_eq!(status, 503, "{}: {}", spot.name, player.answer().await.text());
        sleep(Duration::from_millis(300)).await;
    }
    panic!("{} does not play", spot.name);
}

/// Waits until it is quiet, and sees to it that everything works and nothing is left. Tells how the round was, and how
/// much memory is in use.
pub async fn rests(house: &House, random: &mut Random, baseline: &Baseline) -> (String, u64) {
    house.tidy().await;
    house.heal(random);
    is_quiet(house).await;
    for (login, id) in &house.accounts {
        let path = format!("/api/m3u/refresh/{id}/");
        crate::support::until_async(&format!("the last refresh of {login}"), async || {
            let phase = house.call("GET", &path, serde_json::Value::Null).await.body["phase"].clone();
            phase.is_null() || phase == "done"
        })
        .await;
    }
    works(house).await;
    is_quiet(house).await;
    no_login_is_overdrawn(house);
    eventually("the last task to end", || n_tasks() <= baseline.tasks).await;
    eventually("the last program to end", || process::with_word(&house.word).is_empty()).await;
    eventually("the last child to be waited for", || process::children().is_empty()).await;
    for provider in [&house.live, &house.programs, &house.lists] {
        provider.forget();
    }
    eventually("the last file to be closed", || process::n_files() <= baseline.files).await;
    let left: Vec<_> =
        process::kinds_of_files(house.folder.path()).difference(&baseline.kinds).cloned().collect();
    assert!(left.is_empty(), "files are left: {left:?}");

    let tally = house.ledger.close();
    let (counts, figures) = (house.gateway.gateway.counts(), house.gateway.models().store.statistics());
    // The store's own cache has a bound that is far away.
    let kib = process::in_use_kib().saturating_sub(figures.cache_bytes as u64 >> 10);
    let line = format!(
        "{kib} KiB in use and {} cached, {} KiB of {} on disk live, {} MiB resident, {} tasks, {} files, {tally:?}, {} losses, {} failovers, {} reconnects, {} switches, {} starts, \
         {} MB in, {} MB out, {} missed",
        figures.cache_bytes >> 10,
        figures.live_bytes >> 10,
        figures.disk_bytes >> 10,
        process::resident_kib() >> 10,
        n_tasks(),
        process::n_files(),
        counts.losses,
        counts.failovers,
        counts.reconnects,
        counts.switches,
        counts.channel_starts,
        counts.bytes_in / 1_000_000,
        counts.bytes_out / 1_000_000,
        counts.misses,
    );
    assert!(
        tally.served > 10 && tally.compared > 2 && tally.kills > 2 && tally.calls > 20,
        "nothing happened: {line}"
    );
    (line, kib)
}

/// Stops it all; what is kept is well.
pub async fn ends(house: House, baseline: &Baseline) {
    let House { gateway, folder, .. } = house;
    assert_eq!(gateway.gateway.stop().await, Stopped { is_clean: true });
    let (store, key) = (folder.path().join("store"), folder.path().join("key"));
    let found = storage::check(&store, &key, &storage::records::schema()).unwrap();
    assert!(found.is_ok(), "{found}");
    let left: Vec<_> = process::kinds_of_files(folder.path()).difference(&baseline.kinds).cloned().collect();
    assert!(left.is_empty(), "files are left: {left:?}");
}
