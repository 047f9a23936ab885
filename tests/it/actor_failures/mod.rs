//! Each actor, and each task that is not an actor, fails under load: what restarts, and what viewers notice.

mod fixture;
mod observers;

use std::sync::Arc;

use actors::{RefreshPhase, SystemActor};
use domain::account::RefreshOutcome;
use domain::ids::AccountId;
use tokio::time::sleep;

use self::fixture::{FREE, FailureFixture, WATCHED};
use self::observers::TestViewer;
use crate::support::client::Ended;
use crate::support::eventually;
use crate::support::upstream::MockResponse;
use crate::support::users::{change_user, create_user};

/// A part of the system whose failure no viewer notices.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Actor(SystemActor),
    /// The task that follows commits of the store.
    Follower,
    /// The task that builds the frames of the WebSocket.
    Hub,
}

const VICTIMS: [Victim; 8] = [
    Victim::Actor(SystemActor::Events),
    Victim::Actor(SystemActor::Slots),
    Victim::Actor(SystemActor::Bandwidth),
    Victim::Actor(SystemActor::Switchboard),
    Victim::Actor(SystemActor::Importer),
    Victim::Actor(SystemActor::Guides),
    Victim::Follower,
    Victim::Hub,
];

impl Victim {
    /// Makes the part fail and waits for its replacement.
    async fn fail(self, fixture: &FailureFixture) {
        let system = fixture.gateway.gateway.system();
        match self {
            Victim::Actor(who) => {
                let before = system.life(who);
                system.kill(who);
                let is_another = || system.life(who).is_some_and(|it| Some(it) != before);
                eventually("the restarted actor", is_another).await;
            }
            Victim::Follower => {
                system.kill_follower();
                // A commit between failure and restart is not lost: the new follower starts with a full read.
                fixture.set_stall_timeout(7.5).await;
                eventually("the setting to take effect", || fixture.has_stall_timeout(7.5)).await;
            }
            Victim::Hub => {
                let n_closed = fixture.listener.closed().len();
                system.fail_next_count();
                // Its sockets are closed with a code; the client opens another.
                eventually("the socket to be closed", || fixture.listener.closed().len() > n_closed).await;
                assert_eq!(fixture.listener.closed().last(), Some(&Some(1011)));
            }
        }
    }
}

#[track_caller]
fn is_undisturbed(viewers: &[TestViewer], meanwhile: &str) {
    viewers.iter().for_each(|it| it.is_undisturbed(meanwhile));
}

/// Returns the number of the newest event.
fn newest_event(fixture: &FailureFixture) -> u64 {
    fixture.gateway.gateway.events().history().first().map_or(0, |it| it.0)
}

async fn all_keep_playing(viewers: &[TestViewer]) {
    futures_util::future::join_all(viewers.iter().map(TestViewer::keeps_playing)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_viewer_notices_the_failure_of_an_actor_outside_the_data_path() {
    let fixture = Arc::new(FailureFixture::new().await);
    let viewers = fixture.add_viewers(3).await;
    let mut load = fixture.start_load();
    fixture.check_everything_works("the beginning").await;
    for victim in VICTIMS {
        let context = format!("the failure of {victim:?}");
        let accepted = fixture.provider.accepted();
        let told = newest_event(&fixture);
        victim.fail(&fixture).await;
        all_keep_playing(&viewers).await;
        is_undisturbed(&viewers, &context);
        assert_eq!(fixture.provider.accepted(), accepted, "{context} opened a connection");
        match victim {
            // The slot table survives, so it still knows every lease.
            Victim::Actor(SystemActor::Slots) => {
                tokio::join!(fixture.check_everything_works(&context), fixture.check_full_account_refuses());
            }
            _ => fixture.check_everything_works(&context).await,
        }
        assert!(newest_event(&fixture) > told, "{context}: the event history is lost");
        // Only the unlimited channel needed a new connection, no matter who joined in the meantime.
        assert_eq!(fixture.provider.accepted(), accepted + 1, "{context} opened a connection later");
        load.check().await;
    }
    is_undisturbed(&viewers, "seven failures");
    assert_eq!(fixture.listener.closed(), [Some(1011)], "only a failure of the hub closes sockets");
    drop((viewers, load));
    fixture.gateway.until_idle().await;
    eventually("the provider's sockets to close", || fixture.provider.open() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_that_fails_with_the_importer_is_reported_as_interrupted_and_the_next_one_succeeds() {
    let fixture = Arc::new(FailureFixture::new().await);
    let account = AccountId(fixture.account_id().parse().unwrap());
    let importer = fixture.gateway.gateway.importer();
    let phase = || importer.progress_of(account).map(|it| it.phase);
    eventually("the end of the first refresh", || phase() == Some(RefreshPhase::Done)).await;

    // Fails once during the download, and once during the write.
    for wanted in [RefreshPhase::Fetching, RefreshPhase::Writing] {
        let n_streams = fixture.n_streams(account);
        let listed = fixture.listed_streams(account);
        assert!(n_streams >= listed && listed > 0);
        match wanted {
            RefreshPhase::Fetching => fixture.serve_list(MockResponse::silent_body()),
            _ => fixture.serve_streams(4_000),
        }
        assert_eq!(fixture.refresh().await.status, 202);
        eventually("the refresh to be running", || {
            phase().is_some_and(|it| it == wanted || it == RefreshPhase::Done)
        })
        .await;
        let before = fixture.gateway.gateway.system().life(SystemActor::Importer);
        fixture.gateway.gateway.system().kill(SystemActor::Importer);
        let is_another = || fixture.gateway.gateway.system().life(SystemActor::Importer) != before;
        eventually("the next importer", || is_another() && phase() == Some(RefreshPhase::Done)).await;
        // The refresh may have finished before the importer failed.
        let told = importer.progress_of(account).unwrap();
        if wanted == RefreshPhase::Fetching {
            assert_eq!(told.outcome, Some(RefreshOutcome::Error));
            assert_eq!(told.message, "The refresh was interrupted.");
            assert_eq!(fixture.account_status().await, "error");
            assert_eq!(fixture.n_streams(account), n_streams, "nothing changed");
        }
        let n_now = fixture.n_streams(account);
        assert!(n_now == n_streams || n_now == 4_000, "all or nothing, not {n_now}");

        fixture.serve_streams(listed + 50);
        assert_eq!(fixture.refresh().await.status, 202);
        eventually("the end of the next refresh", || phase() == Some(RefreshPhase::Done)).await;
        assert_eq!(importer.progress_of(account).unwrap().outcome, Some(RefreshOutcome::Success));
        assert_eq!(fixture.account_status().await, "success");
        assert_eq!(fixture.listed_streams(account), listed + 50);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_client_loses_its_connection_and_nobody_else_notices() {
    let fixture = Arc::new(FailureFixture::new().await);
    let viewers = fixture.add_viewers(2).await;
    let mut load = fixture.start_load();
    let user = create_user(&fixture.gateway, "anna", |it| it.stream_limit = 1).await;
    let (name, label) = WATCHED[0];
    let known = fixture.clients(name).await;
    let seats = || fixture.gateway.gateway.counts().seats;
    // Those of viewers without credentials, one for each channel.
    let n_others = seats();
    for _ in 0..5 {
        let theirs = fixture.watch_as(&user, name, label).await;
        let clients = fixture.clients(name).await;
        let id = clients.iter().find(|it| !known.contains(it)).copied().unwrap();
        assert_eq!((clients.len(), seats()), (known.len() + 1, n_others + 1));
        fixture.gateway.gateway.system().kill_client(id);
        assert_ne!(
            theirs.player.ended().await,
            Ended::Whole,
            "the client can tell that the response is incomplete"
        );
        theirs.received_clean_stream("the failure of its client");
        eventually("its seat to be released", || seats() == n_others).await;
        eventually("the client to be removed", || {
            fixture.gateway.gateway.counts().clients == 2 * known.len()
        })
        .await;
        all_keep_playing(&viewers).await;
        is_undisturbed(&viewers, "the failure of another client");
    }
    fixture.check_everything_works("the failure of a client").await;
    is_undisturbed(&viewers, "the failure of another client");
    load.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_live_channel_disconnects_its_viewers_and_the_next_one_opens_after_its_socket_closed() {
    let fixture = Arc::new(FailureFixture::new().await);
    // The provider closes slowly, so that a second socket at the same time would be counted.
    fixture.provider.close_delay(std::time::Duration::from_millis(100));
    let mut viewers = fixture.add_viewers(2).await;
    let mut load = fixture.start_load();
    let (name, label) = WATCHED[0];
    for pump in [false, true, false, true] {
        let system = fixture.gateway.gateway.system();
        match pump {
            false => system.kill_channel(fixture.target(name)),
            true => system.kill_pump(fixture.target(name)),
        }
        let (theirs, others): (Vec<_>, Vec<_>) = viewers.into_iter().partition(|it| it.label == label);
        for viewer in &theirs {
            viewer.player.ended().await;
            viewer.received_clean_stream("the failure of its channel");
        }
        viewers = others;
        for _ in 0..2 {
            viewers.push(fixture.watch_with_retry(name, label).await);
        }
        all_keep_playing(&viewers).await;
        is_undisturbed(&viewers, "the failure of another channel");
        fixture.leases_match_sockets().await;
        assert_eq!(fixture.provider.peak_of("anna"), WATCHED.len());
        assert_eq!(fixture.provider.peak_of("bert"), 0, "no other stream was needed");
    }
    fixture.provider.close_delay(std::time::Duration::ZERO);
    fixture.check_everything_works("the failure of a channel").await;
    load.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_live_channels_end_with_their_parent_and_new_ones_start() {
    let fixture = Arc::new(FailureFixture::new().await);
    let mut load = fixture.start_load();
    for _ in 0..3 {
        let viewers = fixture.add_viewers_with_retry(2).await;
        fixture.gateway.gateway.system().kill(SystemActor::Channels);
        for viewer in &viewers {
            viewer.player.ended().await;
            viewer.received_clean_stream("the failure of all channels");
        }
        fixture.check_limits();
    }
    let viewers = fixture.add_viewers_with_retry(1).await;
    fixture.check_everything_works("the failure of all channels").await;
    is_undisturbed(&viewers, "after the failures");
    load.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_permission_disconnects_a_viewer_even_if_the_store_follower_was_down() {
    let fixture = Arc::new(FailureFixture::new().await);
    for number in 0..2 {
        let user = create_user(&fixture.gateway, &format!("user {number}"), |_| {}).await;
        let theirs = fixture.watch_as(&user, FREE.0, FREE.1).await;
        fixture.gateway.gateway.system().kill_follower();
        change_user(&fixture.gateway, &user, |it| it.is_active = false).await;
        theirs.player.ended().await;
    }
}

/// Failures in random order, under load.
mod random_order {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    /// A small random number generator with a seed, so that a failed run can be repeated.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % n
        }
    }

    /// Watches one channel after another. Each response is either a clean stream or a refusal with `Retry-After`.
    async fn zap(fixture: &FailureFixture, seed: u64, until: Instant) -> usize {
        let mut random = Random(seed);
        let mut n_watched = 0;
        while Instant::now() < until {
            let (name, label) = [WATCHED[0], WATCHED[1], FREE][random.below(3)];
            let player = fixture.request_channel(name, label).await;
            sleep(Duration::from_millis(random.below(600) as u64)).await;
            let status = player.player.received(|it| it.head.as_ref().map(|it| it.status));
            assert!(matches!(status, None | Some(200 | 503)), "viewer {seed} got status {status:?}");
            if player.player.received(|it| it.ts.payload_packets > 0) {
                player.received_clean_stream_from_either_source(&format!("viewer {seed} watches"));
                n_watched += 1;
            }
        }
        n_watched
    }

    async fn kill_random(fixture: &FailureFixture, random: &mut Random) {
        let system = fixture.gateway.gateway.system();
        let any = [WATCHED[0].0, WATCHED[1].0, FREE.0][random.below(3)];
        match random.below(12) {
            0 => system.kill(SystemActor::Events),
            1 => system.kill(SystemActor::Slots),
            2 => system.kill(SystemActor::Bandwidth),
            3 => system.kill(SystemActor::Switchboard),
            4 => system.kill(SystemActor::Importer),
            5 => system.kill(SystemActor::Channels),
            6 => system.kill_follower(),
            7 => system.kill_channel(fixture.target(any)),
            8 => system.kill_pump(fixture.target(any)),
            9 => {
                let clients = fixture.clients(any).await;
                if !clients.is_empty() {
                    system.kill_client(clients[random.below(clients.len())]);
                }
            }
            // Two at the same moment.
            10 => [SystemActor::Switchboard, SystemActor::Channels]
                .map(|it| system.kill(it))
                .into_iter()
                .collect(),
            _ => Victim::Hub.fail(fixture).await,
        }
    }

    async fn run_random_failures(seed: u64, n_failures: usize) {
        let fixture = Arc::new(FailureFixture::new().await);
        let mut load = fixture.start_load();
        let mut random = Random(seed);
        let until = Instant::now() + Duration::from_millis(150) * n_failures as u32;
        let viewers: Vec<_> = (0..6)
            .map(|number| {
                let fixture = Arc::clone(&fixture);
                tokio::spawn(async move { zap(&fixture, seed * 100 + number, until).await })
            })
            .collect();
        for _ in 0..n_failures {
            kill_random(&fixture, &mut random).await;
            load.check().await;
            sleep(Duration::from_millis(random.below(300) as u64)).await;
        }
        let mut n_watched = 0;
        for viewer in viewers {
            n_watched += viewer.await.unwrap();
        }
        assert!(n_watched > 0, "no viewer received a picture");
        // Everything works as before: streams, statistics, events and the store follower.
        let viewers = fixture.add_viewers_with_retry(2).await;
        fixture.check_everything_works(&format!("{n_failures} failures with seed {seed}")).await;
        is_undisturbed(&viewers, "after the failures");
        load.check().await;
        drop((viewers, load));
        fixture.gateway.until_idle().await;
        eventually("the provider's sockets to close", || fixture.provider.open() == 0).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn everything_works_after_random_failures_and_no_account_exceeded_its_limit() {
        run_random_failures(1, 25).await;
    }

    mod night {
        use super::*;

        /// Set other seeds with `ACTOR_FAILURE_SEEDS=4,5,6`.
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn everything_works_after_long_runs_of_random_failures() {
            let seeds = std::env::var("ACTOR_FAILURE_SEEDS").unwrap_or_else(|_| "2,3".into());
            for seed in seeds.split(',') {
                run_random_failures(seed.trim().parse().unwrap(), 50).await;
            }
        }
    }
}
