//! Live channels of a cluster: two gateways in processes of their own, NATS, and a provider that counts.

mod night {
    use serde_json::json;

    use crate::support::client::Player;
    use crate::support::cluster::{Machine, nats};
    use crate::support::cluster_content::TwoNodes;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn viewers_of_two_gateways_share_one_upstream_and_one_takes_over() {
        let nats = nats();
        let machine = Machine::new("attic", &nats);
        let TwoNodes { provider, uuid, path, nodes: [attic, cellar], here: _here } =
            TwoNodes::start(machine, &nats).await;
        let (there, third) =
            (Player::watch(cellar.address, &path).await, Player::watch(cellar.address, &path).await);
        there.sees("news").await;
        third.sees("news").await;
        let seen = cellar.channel(&uuid).await;
        assert_eq!((&seen["source_node"], &seen["node_role"]), (&json!("attic"), &json!("edge")), "{seen}");
        assert_eq!((provider.open(), provider.accepted()), (1, 1));
        there.more_bytes(500_000).await;

        // The origin vanishes with everything that it has open.
        attic.killed().await;
        cellar.until_origin_is(&uuid, "cellar").await;
        there.more_bytes(1_000_000).await;
        third.more_bytes(1_000_000).await;
        assert!(there.is_watching() && third.is_watching());
        assert_eq!(cellar.channel(&uuid).await["node_role"], "origin");
        assert_eq!((provider.open(), provider.accepted()), (1, 2));
        for player in [&there, &third] {
            player.received(|it| it.ts.assert_clean());
        }
    }
}
