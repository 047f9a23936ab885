//! Live channels of a cluster: two gateways in processes of their own, NATS, and a provider that counts.

mod slow {
    use serde_json::{Value, json};

    use crate::support::api::Api;
    use crate::support::binary::Binary;
    use crate::support::client::Player;
    use crate::support::cluster::{Machine, Node, nats, two_nodes};
    use crate::support::signal::Picture;
    use crate::support::until_async;
    use crate::support::upstream::Provider;

    const NEWS: &str = "/live/anna/news.ts";

    /// Makes a channel of a stream without a limit. Returns its uuid.
    async fn fill(machine: &Machine, provider: &Provider) -> String {
        let folder = machine.folder.path().display().to_string();
        let mut program = Binary::start(&["serve", "--data-dir", &folder]);
        let admin = Api::stranger_at(program.address().await).become_first_admin().await;
        let stream = json!({ "name": "News", "url": provider.url(NEWS) });
        let stream = admin.post("/api/channels/streams/", stream).await;
        assert_eq!(stream.status, 201, "{stream:?}");
        let channel = json!({ "stream_id": stream.body["id"] });
        let channel = admin.post("/api/channels/channels/from-stream/", channel).await;
        assert_eq!(channel.status, 201, "{channel:?}");
        program.signal("TERM");
        assert!(program.ended().await.success(), "{}", program.output());
        channel.text("uuid").to_owned()
    }

    /// Returns the status of a channel as a node has it.
    async fn status(node: &Node, uuid: &str) -> Value {
        node.api.get(&format!("/proxy/ts/status/{uuid}")).await.body
    }

    async fn until_origin_is(node: &Node, uuid: &str, name: &str) {
        let what = format!("{} to have the origin {name}", node.machine.name);
        until_async(&what, async || status(node, uuid).await["source_node"] == name).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn viewers_of_two_gateways_share_one_upstream_and_one_takes_over() {
        let nats = nats();
        let provider = Provider::start();
        provider.path(NEWS).plays(Picture::new("news"));
        let machine = Machine::new("attic", &nats);
        let uuid = fill(&machine, &provider).await;
        let path = format!("/proxy/ts/stream/{uuid}");
        let [attic, cellar] = two_nodes(machine, Machine::new("cellar", &nats)).await;
        let here = Player::watch(attic.address, &path).await;
        here.sees("news").await;
        // A new cluster grants nothing for 20 s; until then, each node plays for itself.
        until_origin_is(&attic, &uuid, "attic").await;
        let (there, third) =
            (Player::watch(cellar.address, &path).await, Player::watch(cellar.address, &path).await);
        there.sees("news").await;
        third.sees("news").await;
        let seen = status(&cellar, &uuid).await;
        assert_eq!((&seen["source_node"], &seen["node_role"]), (&json!("attic"), &json!("edge")), "{seen}");
        assert_eq!((provider.open(), provider.accepted()), (1, 1));
        there.more_bytes(500_000).await;

        // The origin vanishes with everything that it has open.
        attic.killed().await;
        until_origin_is(&cellar, &uuid, "cellar").await;
        there.more_bytes(1_000_000).await;
        third.more_bytes(1_000_000).await;
        assert!(there.is_watching() && third.is_watching());
        assert_eq!(status(&cellar, &uuid).await["node_role"], "origin");
        assert_eq!((provider.open(), provider.accepted()), (1, 2));
        for player in [&there, &third] {
            player.received(|it| it.ts.assert_clean());
        }
    }
}
