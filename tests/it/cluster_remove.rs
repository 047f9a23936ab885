//! Nodes are added and removed from any node, and one that is removed stops.

mod night {
    use serde_json::json;

    use crate::support::client::Player;
    use crate::support::cluster::{Machine, Node, join, nats, two_nodes};
    use crate::support::cluster_content::fill;
    use crate::support::until_async;
    use crate::support::upstream::Provider;

    async fn names(node: &Node) -> Vec<String> {
        let nodes = node.api.get("/api/core/nodes/").await.body["nodes"].clone();
        let names = nodes.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned());
        names.collect()
    }

    /// Waits until a node has ended because it was removed.
    async fn ends(node: &mut Node) {
        let code = node.program.ended().await.code();
        let output = node.program.output();
        assert_eq!(code, Some(1), "{output}");
        assert!(output.contains("this node was removed from the cluster"), "{output}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nodes_are_added_and_removed_through_any_node_and_a_removed_one_stops() {
        let (nats, provider) = (nats(), Provider::start());
        let machine = Machine::new("attic", &nats);
        let [news] = fill(&machine, &provider, ["News"], &[]).await;
        let [attic, cellar] = two_nodes(machine, Machine::new("cellar", &nats)).await;
        until_async("attic to write", async || {
            let nodes = attic.api.get("/api/core/nodes/").await.body["nodes"].clone();
            nodes.as_array().unwrap().iter().any(|it| it["name"] == "attic" && it["is_writer"] == true)
        })
        .await;

        // The token of a node that follows; then that of the interface.
        let mut loft = join(&cellar, Machine::new("loft", &nats), "full").await;
        assert_eq!(names(&attic).await, ["attic", "cellar", "loft"]);
        let made = cellar.api.post("/api/core/nodes/tokens/", json!({ "role": "edge" })).await;
        assert_eq!((made.status, &made.body["role"]), (201, &json!("edge")), "{made:?}");
        let shed = Machine::new("shed", &nats).serve(&["--join", made.text("token")]).await;
        attic.sees("shed").await;
        let refused = shed.machine.command(&["cluster", "token"]).await;
        assert!(refused.0 == Some(1) && refused.1.contains("403"), "{refused:?}");

        // A node that plays is removed through one that follows.
        let viewer = Player::watch(loft.address, &news.path()).await;
        viewer.sees("News").await;
        let text = cellar.machine.succeeds(&["cluster", "remove", "loft"]).await;
        assert!(text.contains("\"loft\" is removed"), "{text}");
        ends(&mut loft).await;
        until_async("the connection to be closed", async || provider.open() == 0).await;
        for node in [&attic, &cellar] {
            until_async("the node to disappear", async || names(node).await == ["attic", "cellar", "shed"])
                .await;
        }
        let mut again = loft.machine.run(&["serve"]);
        assert_eq!(again.ended().await.code(), Some(1));
        assert!(again.output().contains("headwater cluster leave"), "{}", again.output());

        // One that is off, through the interface. It notices at its next start.
        let machine = cellar.stops().await;
        let removed = attic.api.delete("/api/core/nodes/cellar/").await;
        assert_eq!(removed.status, 204, "{removed:?}");
        assert_eq!(names(&attic).await, ["attic", "shed"]);
        let mut cellar = machine.serve(&[]).await;
        ends(&mut cellar).await;

        // A machine joins anew under its name. Its first certificate has a number only, and is refused afterwards.
        let before = shed.stops().await;
        let shed = join(&attic, Machine::new("shed", &nats), "edge").await;
        let (code, text) = attic.machine.command(&["cluster", "remove", "#9"]).await;
        assert!(code == Some(1) && text.contains("there is no node 9"), "{code:?}: {text}");
        let text = attic.machine.succeeds(&["cluster", "remove", "#4"]).await;
        assert!(text.contains("\"#4\" is removed"), "{text}");
        let shed = shed.stops().await;
        ends(&mut before.serve(&[]).await).await;
        let _shed = shed.serve(&[]).await;
        attic.sees("shed").await;
        assert_eq!(names(&attic).await, ["attic", "shed"]);

        // The node that writes is not removed, and a name must be known.
        let refused = attic.api.delete("/api/core/nodes/attic/").await;
        assert_eq!(refused.status, 409, "{refused:?}");
        assert_eq!(attic.api.delete("/api/core/nodes/hut/").await.status, 404);
        assert_eq!(attic.api.post("/api/core/nodes/tokens/", json!({ "role": "king" })).await.status, 400);
        let problems = attic.api.get("/api/core/health/").await.body;
        assert!(!problems.to_string().contains("no longer answers"), "{problems}");
        assert_eq!(attic.api.post("/api/core/nodes/tokens/", json!({})).await.status, 201);
    }
}
