//! A node that is drained gives its channels and jobs to other nodes: gateways in processes of their own, and NATS.

mod night {
    use std::time::Duration;

    use serde_json::{Value, json};
    use tokio::time::Instant;

    use crate::support::client::{Ended, Player};
    use crate::support::cluster::{Machine, Node, nats};
    use crate::support::cluster_content::TwoNodes;
    use crate::support::until_async;

    /// Waits until a node shows another one in a state.
    async fn until_shown(node: &Node, name: &str, state: &str) {
        until_async(&format!("{name} to be {state}: {}", node.program.output()), async || {
            let body = node.api.get("/api/core/nodes/").await.body;
            let nodes = body["nodes"].as_array().cloned().unwrap_or_default();
            nodes.iter().any(|it| it["name"] == name && it["state"] == state)
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_drained_node_gives_its_channels_and_jobs_away_and_its_viewers_stay() {
        let nats = nats();
        let machine = Machine::new("attic", &nats);
        let TwoNodes { provider, uuid, path, nodes: [attic, cellar], here } =
            TwoNodes::start(machine, &nats).await;
        assert_eq!(attic.api.get("/readyz").await.status, 200);

        // Asked at the other node.
        let drain = "/api/core/nodes/attic/drain/";
        let unknown = cellar.api.post("/api/core/nodes/nobody/drain/", json!({})).await;
        assert_eq!(unknown.status, 404, "{unknown:?}");
        let drained = cellar.api.post(drain, json!({})).await;
        assert_eq!(drained.status, 204, "{drained:?}");
        attic.until_origin_is(&uuid, "cellar").await;
        until_shown(&cellar, "attic", "draining").await;
        assert_eq!(attic.api.get("/readyz").await.status, 503);
        assert_eq!(attic.api.get("/healthz").await.status, 200);
        here.more_bytes(1_000_000).await;
        until_async("one upstream", async || provider.open() == 1).await;
        assert_eq!(provider.accepted(), 2);
        // The configuration is written by the other node.
        let writes = async || cellar.machine.succeeds(&["cluster", "status"]).await;
        until_async("the other node to write", async || {
            writes().await.lines().any(|it| it.starts_with("cellar") && it.ends_with("writes"))
        })
        .await;
        attic.creates("Sport").await;

        // It ends, also by the command.
        assert_eq!(cellar.api.delete(drain).await.status, 204);
        until_shown(&cellar, "attic", "alive").await;
        attic.machine.succeeds(&["cluster", "drain"]).await;
        until_shown(&cellar, "attic", "draining").await;
        attic.machine.succeeds(&["cluster", "drain", "--end"]).await;
        until_async("the node to be ready", async || attic.api.get("/readyz").await.status == 200).await;
        here.received(|it| it.ts.assert_clean());

        // A node that is stopped gives its channels to those who read them.
        let there = Player::watch(attic.address, &path).await;
        there.sees("news").await;
        cellar.stops().await;
        attic.until_origin_is(&uuid, "attic").await;
        there.more_bytes(1_000_000).await;
        here.more_bytes(1_000_000).await;
        here.received(|it| it.ts.assert_clean());
    }

    /// Returns when the drain of a node ends, as another node shows it.
    async fn drain_end(node: &Node, name: &str) -> Value {
        let body = node.api.get("/api/core/nodes/").await.body;
        let nodes = body["nodes"].as_array().cloned().unwrap_or_default();
        let found = nodes.into_iter().find(|it| it["name"] == name).expect("the node is listed");
        found["drain_ends"].clone()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_streams_of_viewers_who_stay_at_a_drained_node_end_after_the_drain_time() {
        const DRAIN_TIME: Duration = Duration::from_secs(5);
        let nats = nats();
        let mut machine = Machine::new("attic", &nats);
        machine.settings.push(format!("limits.drain_time={}", DRAIN_TIME.as_secs()));
        let TwoNodes { provider, uuid, path, nodes: [attic, cellar], here } =
            TwoNodes::start(machine, &nats).await;
        let there = Player::watch(cellar.address, &path).await;
        there.sees("news").await;
        assert_eq!(drain_end(&cellar, "attic").await, Value::Null);

        let began = Instant::now();
        let drain = "/api/core/nodes/attic/drain/";
        assert_eq!(cellar.api.post(drain, json!({})).await.status, 204);
        let is_known = async || drain_end(&cellar, "attic").await.is_string();
        until_async("the other node to know the end", is_known).await;
        assert_eq!(here.ended().await, Ended::Whole);
        assert!(began.elapsed() >= DRAIN_TIME, "{:?}", began.elapsed());
        here.received(|it| {
            it.ts.assert_clean();
            assert_eq!(it.n_bytes % 188, 0);
        });
        // Those of the other node watch on; it has the channel now.
        cellar.until_origin_is(&uuid, "cellar").await;
        there.more_bytes(1_000_000).await;
        assert!(there.is_watching());
        // Who comes nevertheless stays.
        let late = Player::watch(attic.address, &path).await;
        late.sees("news").await;
        late.more_bytes(1_000_000).await;
        until_async("one upstream", async || provider.open() == 1).await;
        assert_eq!(cellar.api.delete(drain).await.status, 204);
        until_async("the end to be forgotten", async || drain_end(&cellar, "attic").await.is_null()).await;
        assert!(late.is_watching());
        there.received(|it| it.ts.assert_clean());
    }
}
