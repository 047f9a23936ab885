//! Edge nodes and accounts that only some nodes may use: gateways in processes of their own, NATS, and a provider that
//! counts.

mod slow {
    use std::fs;

    use serde_json::{Value, json};

    use crate::support::api::Api;
    use crate::support::binary::Binary;
    use crate::support::client::Player;
    use crate::support::cluster::{Machine, Node, contains_none, join, nats};
    use crate::support::signal::Picture;
    use crate::support::until_async;
    use crate::support::upstream::{MockResponse, Provider};

    const LIST: &str = "/lists/all.m3u";
    const NEWS: &str = "/live/anna/hunter22/news.ts";
    /// The password at the provider.
    const SECRET: &str = "hunter22";
    const KID: &str = "kid";
    const KID_PASSWORD: &str = "a password of the kid";

    /// Makes a channel of an account without a limit. Returns its uuid and the path of the account in the API.
    async fn fill(machine: &Machine, provider: &Provider) -> (String, String) {
        provider.path(NEWS).plays(Picture::new("news"));
        let list = format!("#EXTM3U\n#EXTINF:-1,News\n{}\n", provider.url(NEWS));
        provider.path(LIST).answers(MockResponse::text("audio/x-mpegurl", list));
        let folder = machine.folder.path().display().to_string();
        let mut program = Binary::start(&["serve", "--data-dir", &folder]);
        let admin = Api::stranger_at(program.address().await).become_first_admin().await;
        let account = json!({ "name": "Provider", "server_url": provider.url(LIST) });
        let account = admin.post("/api/m3u/accounts/", account).await;
        assert_eq!(account.status, 201, "{account:?}");
        let path = format!("/api/m3u/accounts/{}/", account.body["id"]);
        until_async("the import", async || admin.get(&path).await.body["status"] == "success").await;
        let stream = admin.get("/api/channels/streams/").await.body["results"][0]["id"].clone();
        let channel = json!({ "stream_id": stream });
        let channel = admin.post("/api/channels/channels/from-stream/", channel).await;
        assert_eq!(channel.status, 201, "{channel:?}");
        let kid = json!({ "username": KID, "password": KID_PASSWORD, "user_level": 0 });
        let kid = admin.post("/api/accounts/users/", kid).await;
        assert_eq!(kid.status, 201, "{kid:?}");
        program.signal("TERM");
        assert!(program.ended().await.success(), "{}", program.output());
        (channel.text("uuid").to_owned(), path)
    }

    /// Asks for a channel until it plays: a new cluster opens nothing for 20 s.
    async fn plays(node: &Node, path: &str) -> Player {
        loop {
            let player = Player::watch(node.address, path).await;
            match player.status().await {
                200 => {
                    player.sees("news").await;
                    return player;
                }
                status => assert_eq!(status, 503, "{}", node.program.output()),
            }
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_edge_node_has_no_secret_and_plays_what_full_nodes_open_for_it() {
        let nats = nats();
        let provider = Provider::start();
        let machine = Machine::new("attic", &nats);
        let (uuid, _) = fill(&machine, &provider).await;
        let path = format!("/proxy/ts/stream/{uuid}");
        machine.succeeds(&["cluster", "init"]).await;
        let mut attic = machine.serve(&[]).await;
        attic.logs_in().await;
        let cellar = join(&attic, Machine::new("cellar", &nats), "full").await;
        let edge = join(&attic, Machine::new("edge", &nats), "edge").await;
        assert!(edge.machine.folder.path().join("node.json").exists());

        // It serves what viewers need, and says what it does not have.
        edge.lists(&["News"]).await;
        let kid = edge.api.token(KID, KID_PASSWORD).await;
        assert_eq!(kid.status, 200, "{kid:?}");
        for path in ["/api/m3u/accounts/", "/api/channels/streams/", "/api/vod/movies/"] {
            let refused = edge.api.get(path).await;
            assert_eq!(refused.status, 503, "{refused:?}");
            assert!(refused.text("detail").contains("edge node"), "{refused:?}");
        }
        // It passes changes on, also of what it does not show itself.
        edge.creates("Sport").await;
        attic.lists(&["News", "Sport"]).await;

        // Nobody plays the channel: a full node opens it, and keeps it for the viewer of the edge.
        let player = plays(&edge, &path).await;
        let seen = edge.channel(&uuid).await;
        assert_eq!(seen["node_role"], "edge", "{seen}");
        let origin = seen["source_node"].as_str().unwrap().to_owned();
        player.more_bytes(1_000_000).await;
        assert_eq!(provider.open(), 1);

        // The origin is lost, and another full node takes over.
        let (lost, other) = if origin == "attic" { (attic, cellar) } else { (cellar, attic) };
        lost.killed().await;
        edge.until_origin_is(&uuid, other.machine.name).await;
        player.more_bytes(1_000_000).await;
        assert!(player.is_watching());
        assert_eq!(provider.open(), 1);

        contains_none(edge.machine.folder.path(), &[SECRET]);
        let memory = fs::read_to_string(edge.machine.folder.path().join("node.json")).unwrap();
        let file: Value = serde_json::from_str(&memory).unwrap();
        assert_eq!((&file["role"], &file["data_keys"]["provider"]), (&json!("edge"), &Value::Null));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_account_is_opened_by_its_nodes_only_and_the_others_read_from_them() {
        let nats = nats();
        let provider = Provider::start();
        let machine = Machine::new("attic", &nats);
        let (uuid, account) = fill(&machine, &provider).await;
        let path = format!("/proxy/ts/stream/{uuid}");
        machine.succeeds(&["cluster", "init"]).await;
        let mut attic = machine.serve(&[]).await;
        attic.logs_in().await;
        let cellar = join(&attic, Machine::new("cellar", &nats), "full").await;
        let wrong = attic.api.patch(&account, json!({ "nodes": ["no name"] })).await;
        assert_eq!((wrong.status, wrong.body["nodes"].is_array()), (400, true), "{wrong:?}");
        let set = attic.api.patch(&account, json!({ "nodes": ["cellar", "cellar"] })).await;
        assert_eq!((set.status, &set.body["nodes"]), (200, &json!(["cellar"])), "{set:?}");
        let renamed = attic.api.patch(&account, json!({ "name": "Home" })).await;
        assert_eq!(renamed.body["nodes"], json!(["cellar"]), "{renamed:?}");

        let player = plays(&attic, &path).await;
        let seen = attic.channel(&uuid).await;
        assert_eq!((&seen["source_node"], &seen["node_role"]), (&json!("cellar"), &json!("edge")), "{seen}");
        cellar.until_origin_is(&uuid, "cellar").await;
        player.more_bytes(500_000).await;
        assert_eq!(provider.open(), 1);
        // Without that node nobody may open it.
        cellar.stops().await;
        drop(player);
        let refused = loop {
            let player = Player::watch(attic.address, &path).await;
            if player.status().await == 503 {
                break player;
            }
        };
        drop(refused);
        assert_eq!(provider.open(), 0);
    }
}
