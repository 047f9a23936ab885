//! The limit of a user counts the sessions on all nodes: two gateways in processes of their own, and NATS.

mod night {
    use std::time::Duration;

    use tokio::time::Instant;

    use crate::support::client::Player;
    use crate::support::cluster::{Machine, Node, nats, two_nodes};
    use crate::support::cluster_content::{ClusterChannel, fill};
    use crate::support::upstream::Provider;

    /// Longest time until the seats of a lost node are free: 23 s until it has expired. This only ends a wait that would last
    /// forever.
    const WAIT_MAX: Duration = Duration::from_secs(300);

    /// Lets a device of a user ask for a channel. Returns its player with the status.
    async fn ask(node: &Node, channel: &ClusterChannel, user: &str, device: &str) -> (Player, u16) {
        let player = Player::ask(node.address, channel.asked_by(user, device)).await;
        let status = player.status().await;
        (player, status)
    }

    async fn plays(node: &Node, channel: &ClusterChannel, user: &str, device: &str) -> Player {
        let (player, status) = ask(node, channel, user, device).await;
        assert_eq!(status, 200, "{user} with {device} on {}: {}", node.machine.name, node.program.output());
        player.more_bytes(20_000).await;
        player
    }

    async fn is_refused(node: &Node, channel: &ClusterChannel, user: &str, device: &str) {
        let (_, status) = ask(node, channel, user, device).await;
        assert_eq!(status, 503, "{user} with {device} on {}", node.machine.name);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_limit_of_a_user_counts_the_sessions_of_both_gateways() {
        let (nats, provider) = (nats(), Provider::start());
        let machine = Machine::new("attic", &nats);
        let [one, two] = fill(&machine, &provider, ["One", "Two"], &[("anna", 1), ("bert", 2)]).await;
        let [attic, cellar] = two_nodes(machine, Machine::new("cellar", &nats)).await;

        // A device that opens something else on the other node gives up its session.
        let before = plays(&attic, &one, "anna", "tv").await;
        let after = plays(&cellar, &two, "anna", "tv").await;
        before.ended().await;
        // Another device is refused on each node.
        is_refused(&attic, &one, "anna", "phone").await;
        is_refused(&cellar, &one, "anna", "phone").await;
        after.more_bytes(20_000).await;
        // A session that ends gives its seat back.
        after.leave().await;
        let phone = plays(&attic, &one, "anna", "phone").await;
        phone.leave().await;

        // Two seats, on both nodes; other users do not count.
        let here = plays(&attic, &one, "bert", "tv").await;
        let there = plays(&cellar, &two, "bert", "phone").await;
        is_refused(&attic, &two, "bert", "tablet").await;
        let anna = plays(&attic, &two, "anna", "tv").await;
        here.more_bytes(20_000).await;
        there.more_bytes(20_000).await;
        anna.leave().await;

        // The seat of a node that is lost comes free.
        let begin = Instant::now();
        cellar.killed().await;
        loop {
            let (_tablet, status) = ask(&attic, &two, "bert", "tablet").await;
            if status == 200 {
                break;
            }
            assert_eq!(status, 503);
            assert!(begin.elapsed() < WAIT_MAX, "no seat:\n{}", attic.program.output());
        }
        here.more_bytes(20_000).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn without_nats_each_gateway_counts_its_own_sessions() {
        let (mut nats, provider) = (nats(), Provider::start());
        let machine = Machine::new("attic", &nats);
        let [one, two] = fill(&machine, &provider, ["One", "Two"], &[("anna", 1)]).await;
        let [attic, cellar] = two_nodes(machine, Machine::new("cellar", &nats)).await;
        let tv = plays(&attic, &one, "anna", "tv").await;
        nats.kill(0);
        // The limit is exceeded, and nobody waits for NATS.
        let phone = plays(&cellar, &two, "anna", "phone").await;
        is_refused(&cellar, &one, "anna", "tablet").await;
        is_refused(&attic, &two, "anna", "tablet").await;
        // The same device may always change the channel.
        let zapped = plays(&cellar, &one, "anna", "phone").await;
        phone.ended().await;

        // Nobody is ended for it when NATS is back, and the limit counts both.
        nats.restart(0);
        attic.sees("cellar").await;
        cellar.sees("attic").await;
        is_refused(&cellar, &two, "anna", "tablet").await;
        tv.more_bytes(20_000).await;
        zapped.more_bytes(20_000).await;
    }
}
