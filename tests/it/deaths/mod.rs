//! Each actor, and each task beside them, dies under load: what comes back, and what a viewer sees of it.

mod house;
mod people;

use std::sync::Arc;

use actors::{RefreshPhase, SystemActor};
use domain::account::RefreshOutcome;
use domain::ids::AccountId;
use tokio::time::sleep;

use self::house::{FREE, House, WATCHED};
use self::people::Viewer;
use crate::support::client::Ended;
use crate::support::eventually;
use crate::support::people::{changed, person};
use crate::support::upstream::Answer;

/// Who can die without a viewer noticing.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Actor(SystemActor),
    /// What follows the store.
    Follower,
    /// What makes the frames of the WebSocket.
    Hub,
}

const VICTIMS: [Victim; 7] = [
    Victim::Actor(SystemActor::Events),
    Victim::Actor(SystemActor::Slots),
    Victim::Actor(SystemActor::Bandwidth),
    Victim::Actor(SystemActor::Switchboard),
    Victim::Actor(SystemActor::Importer),
    Victim::Follower,
    Victim::Hub,
];

impl Victim {
    /// Dies, and what comes after it is there.
    async fn dies(self, house: &House) {
        let system = house.gateway.gateway.system();
        match self {
            Victim::Actor(who) => {
                let before = system.life(who);
                system.kill(who);
                let is_another = || system.life(who).is_some_and(|it| Some(it) != before);
                eventually("the next life of an actor", is_another).await;
            }
            Victim::Follower => {
                system.kill_follower();
                // Commits of just now are followed, too: the next one begins from the beginning.
                house.sets_stall_timeout(7.5).await;
                eventually("the setting to be in force", || house.has_stall_timeout(7.5)).await;
            }
            Victim::Hub => {
                let n_closed = house.listener.closed().len();
                system.fail_next_count();
                // Its sockets are told; the listener opens another.
                eventually("the socket to be closed", || house.listener.closed().len() > n_closed).await;
                assert_eq!(house.listener.closed().last(), Some(&Some(1011)));
            }
        }
    }
}

#[track_caller]
fn noticed_nothing(viewers: &[Viewer], meanwhile: &str) {
    viewers.iter().for_each(|it| it.noticed_nothing(meanwhile));
}

/// The number of the newest event since the start.
fn newest_event(house: &House) -> u64 {
    house.gateway.gateway.events().history().first().map_or(0, |it| it.0)
}

async fn go_on(viewers: &[Viewer]) {
    futures_util::future::join_all(viewers.iter().map(Viewer::goes_on)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_viewer_notices_the_death_of_what_only_decides_and_everything_works_again() {
    let house = Arc::new(House::new().await);
    let viewers = house.fills(3).await;
    let mut load = house.loads();
    house.works("the beginning").await;
    for victim in VICTIMS {
        let story = format!("the death of {victim:?}");
        let accepted = house.provider.accepted();
        let told = newest_event(&house);
        victim.dies(&house).await;
        go_on(&viewers).await;
        noticed_nothing(&viewers, &story);
        assert_eq!(house.provider.accepted(), accepted, "{story} opened a connection");
        match victim {
            // It still knows every lease.
            Victim::Actor(SystemActor::Slots) => {
                tokio::join!(house.works(&story), house.refuses_where_it_is_full());
            }
            _ => house.works(&story).await,
        }
        assert!(newest_event(&house) > told, "{story}: the past is forgotten");
        // Whoever joined meanwhile, only the free channel had to be opened.
        assert_eq!(house.provider.accepted(), accepted + 1, "{story} opened a connection later");
        load.finds_nothing_wrong().await;
    }
    noticed_nothing(&viewers, "seven deaths");
    assert_eq!(house.listener.closed(), [Some(1011)], "only the hub's death closes sockets");
    drop((viewers, load));
    house.gateway.is_quiet().await;
    eventually("the provider's sockets to be gone", || house.provider.open() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_that_dies_with_the_importer_is_shown_as_broken_off_and_the_next_one_works() {
    let house = Arc::new(House::new().await);
    let account = AccountId(house.account_id().parse().unwrap());
    let importer = house.gateway.gateway.importer();
    let phase = || importer.progress_of(account).map(|it| it.phase);
    eventually("the first refresh to be over", || phase() == Some(RefreshPhase::Done)).await;

    // In the middle of its request, and in the middle of its writing.
    for wanted in [RefreshPhase::Fetching, RefreshPhase::Writing] {
        let n_streams = house.n_streams(account);
        let listed = house.listed_streams(account);
        assert!(n_streams >= listed && listed > 0);
        match wanted {
            RefreshPhase::Fetching => house.list_is(Answer::silent_body()),
            _ => house.lists_streams(4_000),
        }
        assert_eq!(house.refreshes().await.status, 202);
        eventually("the refresh to be under way", || {
            phase().is_some_and(|it| it == wanted || it == RefreshPhase::Done)
        })
        .await;
        let before = house.gateway.gateway.system().life(SystemActor::Importer);
        house.gateway.gateway.system().kill(SystemActor::Importer);
        let is_another = || house.gateway.gateway.system().life(SystemActor::Importer) != before;
        eventually("the next importer", || is_another() && phase() == Some(RefreshPhase::Done)).await;
        // It may have been quicker than its death.
        let told = importer.progress_of(account).unwrap();
        if wanted == RefreshPhase::Fetching {
            assert_eq!(told.outcome, Some(RefreshOutcome::Error));
            assert_eq!(told.message, "The refresh was broken off.");
            assert_eq!(house.account_status().await, "error");
            assert_eq!(house.n_streams(account), n_streams, "nothing has changed");
        }
        let n_now = house.n_streams(account);
        assert!(n_now == n_streams || n_now == 4_000, "all or nothing, not {n_now}");

        house.lists_streams(listed + 50);
        assert_eq!(house.refreshes().await.status, 202);
        eventually("the next refresh to be over", || phase() == Some(RefreshPhase::Done)).await;
        assert_eq!(importer.progress_of(account).unwrap().outcome, Some(RefreshOutcome::Success));
        assert_eq!(house.account_status().await, "success");
        assert_eq!(house.listed_streams(account), listed + 50);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_dies_loses_its_connection_and_nobody_else_notices() {
    let house = Arc::new(House::new().await);
    let viewers = house.fills(2).await;
    let mut load = house.loads();
    let user = person(&house.gateway, "anna", |it| it.stream_limit = 1).await;
    let (name, label) = WATCHED[0];
    let known = house.clients(name).await;
    for _ in 0..5 {
        let theirs = house.watches_as(&user, name, label).await;
        let clients = house.clients(name).await;
        let id = clients.iter().find(|it| !known.contains(it)).copied().unwrap();
        assert_eq!((clients.len(), house.gateway.gateway.counts().seats), (known.len() + 1, 1));
        house.gateway.gateway.system().kill_client(id);
        assert_ne!(theirs.player.ended().await, Ended::Whole, "it can tell that this was no proper end");
        theirs.saw_only_what_was_whole("the death of its client");
        eventually("its seat to be free", || house.gateway.gateway.counts().seats == 0).await;
        eventually("it to be gone", || house.gateway.gateway.counts().clients == 2 * known.len()).await;
        go_on(&viewers).await;
        noticed_nothing(&viewers, "the death of another client");
    }
    house.works("the death of a client").await;
    noticed_nothing(&viewers, "the death of another client");
    load.finds_nothing_wrong().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_channel_that_dies_ends_its_viewers_and_the_next_one_opens_after_its_socket_closed() {
    let house = Arc::new(House::new().await);
    // Slow to close, so that a second socket beside it would be seen.
    house.provider.close_delay(std::time::Duration::from_millis(100));
    let mut viewers = house.fills(2).await;
    let mut load = house.loads();
    let (name, label) = WATCHED[0];
    for pump in [false, true, false, true] {
        let system = house.gateway.gateway.system();
        match pump {
            false => system.kill_channel(house.target(name)),
            true => system.kill_pump(house.target(name)),
        }
        let (theirs, others): (Vec<_>, Vec<_>) = viewers.into_iter().partition(|it| it.label == label);
        for viewer in &theirs {
            viewer.player.ended().await;
            viewer.saw_only_what_was_whole("the death of its channel");
        }
        viewers = others;
        for _ in 0..2 {
            viewers.push(house.comes_to_watch(name, label).await);
        }
        go_on(&viewers).await;
        noticed_nothing(&viewers, "the death of another channel");
        house.balances().await;
        assert_eq!(house.provider.peak_of("anna"), WATCHED.len());
        assert_eq!(house.provider.peak_of("bert"), 0, "no other stream was needed");
    }
    house.provider.close_delay(std::time::Duration::ZERO);
    house.works("the death of a channel").await;
    load.finds_nothing_wrong().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_live_channels_end_with_their_parent_and_new_ones_start() {
    let house = Arc::new(House::new().await);
    let mut load = house.loads();
    for _ in 0..3 {
        let viewers = house.fills_again(2).await;
        house.gateway.gateway.system().kill(SystemActor::Channels);
        for viewer in &viewers {
            viewer.player.ended().await;
            viewer.saw_only_what_was_whole("the death of all channels");
        }
        house.is_within_limits();
    }
    let viewers = house.fills_again(1).await;
    house.works("the death of all channels").await;
    noticed_nothing(&viewers, "what came after");
    load.finds_nothing_wrong().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_no_longer_watch_is_ended_also_when_that_was_said_while_nobody_followed_the_store() {
    let house = Arc::new(House::new().await);
    for number in 0..2 {
        let user = person(&house.gateway, &format!("user {number}"), |_| {}).await;
        let theirs = house.watches_as(&user, FREE.0, FREE.1).await;
        house.gateway.gateway.system().kill_follower();
        changed(&house.gateway, &user, |it| it.is_active = false).await;
        theirs.player.ended().await;
    }
}

/// Deaths in any order, under load.
mod at_random {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    /// A small generator of random numbers, so that a failed schedule can be tried again.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % n
        }
    }

    /// Watches one channel after another. Whatever it is answered is a picture, whole, or a refusal that says when.
    async fn zaps(house: &House, seed: u64, until: Instant) -> usize {
        let mut random = Random(seed);
        let mut n_watched = 0;
        while Instant::now() < until {
            let (name, label) = [WATCHED[0], WATCHED[1], FREE][random.below(3)];
            let player = house.asks_for(name, label).await;
            sleep(Duration::from_millis(random.below(600) as u64)).await;
            let status = player.player.received(|it| it.head.as_ref().map(|it| it.status));
            assert!(matches!(status, None | Some(200 | 503)), "viewer {seed} is answered with {status:?}");
            if player.player.received(|it| it.ts.payload_packets > 0) {
                player.saw_only_what_was_whole_or_its_backup(&format!("viewer {seed} watches"));
                n_watched += 1;
            }
        }
        n_watched
    }

    async fn kills(house: &House, random: &mut Random) {
        let system = house.gateway.gateway.system();
        let any = [WATCHED[0].0, WATCHED[1].0, FREE.0][random.below(3)];
        match random.below(12) {
            0 => system.kill(SystemActor::Events),
            1 => system.kill(SystemActor::Slots),
            2 => system.kill(SystemActor::Bandwidth),
            3 => system.kill(SystemActor::Switchboard),
            4 => system.kill(SystemActor::Importer),
            5 => system.kill(SystemActor::Channels),
            6 => system.kill_follower(),
            7 => system.kill_channel(house.target(any)),
            8 => system.kill_pump(house.target(any)),
            9 => {
                let clients = house.clients(any).await;
                if !clients.is_empty() {
                    system.kill_client(clients[random.below(clients.len())]);
                }
            }
            // Together, and at once.
            10 => [SystemActor::Switchboard, SystemActor::Channels]
                .map(|it| system.kill(it))
                .into_iter()
                .collect(),
            _ => Victim::Hub.dies(house).await,
        }
    }

    async fn evening(seed: u64, n_deaths: usize) {
        let house = Arc::new(House::new().await);
        let mut load = house.loads();
        let mut random = Random(seed);
        let until = Instant::now() + Duration::from_millis(150) * n_deaths as u32;
        let viewers: Vec<_> = (0..6)
            .map(|number| {
                let house = Arc::clone(&house);
                tokio::spawn(async move { zaps(&house, seed * 100 + number, until).await })
            })
            .collect();
        for _ in 0..n_deaths {
            kills(&house, &mut random).await;
            load.finds_nothing_wrong().await;
            sleep(Duration::from_millis(random.below(300) as u64)).await;
        }
        let mut n_watched = 0;
        for viewer in viewers {
            n_watched += viewer.await.unwrap();
        }
        assert!(n_watched > 0, "an evening without a picture");
        // Nothing is lost: everything can be watched, counts, tells and follows as before.
        let viewers = house.fills_again(2).await;
        house.works(&format!("{n_deaths} deaths of evening {seed}")).await;
        noticed_nothing(&viewers, "what came after");
        load.finds_nothing_wrong().await;
        drop((viewers, load));
        house.gateway.is_quiet().await;
        eventually("the provider's sockets to be gone", || house.provider.open() == 0).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn after_any_deaths_everything_works_and_nothing_was_overdrawn() {
        evening(1, 25).await;
    }

    mod slow {
        use super::*;

        /// Other evenings by `DEATHS_SEEDS=4,5,6`.
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn after_any_evening_of_deaths_everything_works_and_nothing_was_overdrawn() {
            let seeds = std::env::var("DEATHS_SEEDS").unwrap_or_else(|_| "2,3".into());
            for seed in seeds.split(',') {
                evening(seed.trim().parse().unwrap(), 50).await;
            }
        }
    }
}
