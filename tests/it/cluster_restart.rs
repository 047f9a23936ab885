//! Viewers keep their streams when a node of a cluster restarts: two gateways in processes of their own, NATS, and a
//! provider that allows one connection and counts its own.

mod night {
    use std::process::Command;
    use std::time::Duration;

    use cluster::testing::NatsServers;
    use tokio::time::Instant;

    use crate::restart::{NEWS, child_of, n_starts};
    use crate::restart_viewers::is_only_parent;
    use crate::support::client::{Ended, Player};
    use crate::support::cluster::{Machine, Node, nats, two_nodes};
    use crate::support::cluster_content::fill_account;
    use crate::support::upstream::Provider;
    use crate::support::{eventually, until_async};

    /// Some seconds of the stream.
    const SOME: u64 = 150_000;
    /// The stream of more than the time after which a process closes its connections that no renewal keeps.
    const MORE_THAN_A_DEADLINE: u64 = 800_000;
    /// Longest time until a slot of a lost node is granted again. This only ends a wait that would last forever.
    const WAIT_MAX: Duration = Duration::from_secs(300);

    /// Asks for a channel until it plays.
    async fn plays(node: &Node, path: &str, picture: &str) -> Player {
        let begin = Instant::now();
        loop {
            let player = Player::watch(node.address, path).await;
            let status = player.status().await;
            if status == 200 {
                player.sees(picture).await;
                return player;
            }
            assert_eq!(status, 503);
            let (name, output) = (node.machine.name, node.program.output());
            assert!(begin.elapsed() < WAIT_MAX, "no slot on {name}:\n{output}");
        }
    }

    /// Fails if the account had two connections at once, or the provider refused one.
    fn assert_limit_held(provider: &Provider) {
        let counts = (provider.peak_of("anna"), provider.refusals());
        assert_eq!(counts, (1, 0), "{:?}", provider.overlaps("anna"));
    }

    /// Fails if the stream of a viewer of the other node is not clean, apart from the change to the new process: its ring
    /// begins at another random-access point than the last chunk that the other node has.
    fn assert_changed_once(player: &Player) {
        player.received(|it| {
            let is_gap = |it: &&String| it.contains("lost something of news");
            let n_gaps = it.ts.complaints.iter().filter(is_gap).count();
            assert!(n_gaps == it.ts.complaints.len() && n_gaps <= 2, "{:?}", it.ts.complaints);
        });
    }

    /// A node that has restarted while a viewer of each node watches the same channel.
    struct Restarted {
        provider: Provider,
        nats: NatsServers,
        attic: Node,
        cellar: Node,
        /// The viewer of the node that has restarted, and that of the other one.
        here: Player,
        there: Player,
        news: String,
        sport: String,
    }

    impl Restarted {
        async fn start() -> Self {
            let (provider, nats) = (Provider::start(), nats());
            let machine = Machine::new("attic", &nats);
            let paths = fill_account(&machine, &provider, &["news", "sport"], 1).await;
            let [news, sport] = paths.try_into().expect("two");
            provider.limit("anna", 1, 403, Duration::ZERO);
            let [attic, cellar] = two_nodes(machine, Machine::new("cellar", &nats)).await;
            let here = plays(&attic, &news, "news").await;
            let uuid = news.rsplit('/').next().expect("a uuid");
            attic.until_origin_is(uuid, "attic").await;
            let there = plays(&cellar, &news, "news").await;
            attic.machine.succeeds(&["restart"]).await;
            eventually("the new process to start", || n_starts(&attic.program) == 2).await;
            Self { provider, nats, attic, cellar, here, there, news, sport }
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn viewers_of_all_nodes_keep_one_connection_over_a_restart_and_its_slot_is_free_afterwards() {
        let test = Restarted::start().await;
        let Restarted { provider, attic, cellar, here, there, news, sport, .. } = &test;
        let new = plays(attic, news, "news").await;
        here.more_bytes(MORE_THAN_A_DEADLINE).await;
        for player in [here, there, &new] {
            player.more_bytes(SOME).await;
            assert!(player.is_watching(), "{}", attic.program.output());
        }
        assert_eq!((provider.path(NEWS).n_requests(), provider.open()), (1, 1), "{}", attic.program.output());
        assert!(!is_only_parent(&attic.program));
        assert_limit_held(provider);
        for player in [here, &new] {
            player.received(|it| it.ts.assert_clean());
        }
        assert_changed_once(there);
        // No other channel gets the slot meanwhile.
        assert_eq!(Player::watch(cellar.address, sport).await.status().await, 503);

        // The other node reads from the new process, so the old one ends with its own viewer.
        let Restarted { provider, nats: _nats, attic, cellar, here, there, sport, .. } = test;
        here.leave().await;
        eventually("the old process to end", || is_only_parent(&attic.program)).await;
        eventually("the new process to open the channel", || provider.path(NEWS).n_requests() == 2).await;
        for player in [&there, &new] {
            player.more_bytes(SOME).await;
            assert!(player.is_watching());
        }
        new.received(|it| it.ts.assert_clean());
        assert_changed_once(&there);
        new.leave().await;
        there.leave().await;
        let other = plays(&cellar, &sport, "sport").await;
        assert_limit_held(&provider);
        other.leave().await;
        attic.stops().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn if_the_new_process_is_killed_the_slot_of_the_old_one_is_free_after_its_connection_is_closed() {
        let test = Restarted::start().await;
        let Restarted { provider, nats: _nats, mut attic, cellar, here, there, sport, .. } = test;
        here.more_bytes(SOME).await;
        there.leave().await;
        let killed = child_of(attic.program.id()).expect("the new process runs");
        assert!(Command::new("kill").args(["-KILL", &killed]).status().expect("kill runs").success());
        assert_eq!(attic.program.ended().await.code(), Some(137));
        assert_eq!(here.ended().await, Ended::Whole);
        eventually("the provider's connections to close", || provider.open() == 0).await;
        let _other = plays(&cellar, &sport, "sport").await;
        assert_limit_held(&provider);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_old_process_closes_its_connection_when_the_new_one_stops_being_a_member() {
        let test = Restarted::start().await;
        let Restarted { provider, mut nats, attic: _attic, cellar, here, there, sport, .. } = test;
        here.more_bytes(SOME).await;
        nats.kill(0);
        until_async("the connection to be closed", async || provider.open() == 0).await;
        drop((here, there));
        nats.restart(0);
        let _other = plays(&cellar, &sport, "sport").await;
        assert_limit_held(&provider);
    }
}
