//! Nodes of a cluster that share one configuration: gateways in processes of their own, and NATS.

mod slow {
    use std::fs;
    use std::path::Path;

    use cluster::testing::NatsServers;
    use serde_json::{Value, json};

    use crate::support::api::{Api, PASSWORD};
    use crate::support::binary::Binary;
    use crate::support::cluster::{Machine, Node, nats, two_nodes};
    use crate::support::{tools, until_async};

    /// The host of a provider, which is part of a secret.
    const PROVIDER: &str = "panel.provider.example";
    const KID: &str = "kid";
    const KID_PASSWORD: &str = "a password of the kid";

    /// Starts a gateway on its own and fills it.
    async fn filled(machine: Machine) -> Machine {
        let folder = machine.folder.path().display().to_string();
        let program = Binary::start(&["serve", "--data-dir", &folder]);
        let address = program.address().await;
        let api = Api::stranger_at(address).become_first_admin().await;
        for (path, body) in [
            ("/api/channels/channels/", json!({ "name": "News" })),
            ("/api/accounts/users/", json!({ "username": KID, "password": KID_PASSWORD, "user_level": 0 })),
            (
                "/api/m3u/accounts/",
                json!({
                    "name": "Home", "is_active": false,
                    "server_url": format!("http://{PROVIDER}/get.php?username=u&password=hunter22"),
                }),
            ),
        ] {
            let reply = api.post(path, body).await;
            assert_eq!(reply.status, 201, "{path}: {reply:?}");
        }
        let node = Node { machine, program, address, api };
        node.stops().await
    }

    /// Fails if a file in a folder contains one of these texts.
    fn contains_none(folder: &Path, texts: &[&str]) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                contains_none(&path, texts);
                continue;
            }
            let bytes = fs::read(&path).unwrap();
            for text in texts {
                let is_in = bytes.windows(text.len()).any(|it| it == text.as_bytes());
                assert!(!is_in, "{} contains {text:?}", path.display());
            }
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_cluster_begins_although_most_of_its_servers_have_not_started_yet() {
        let mut nats = NatsServers::start(&tools::installed("bin/nats-server"), 3);
        nats.kill(1);
        nats.kill(2);
        let attic = filled(Machine::new("attic", &nats)).await;
        let begins = attic.run(&["cluster", "init"]);
        nats.restart(1);
        nats.restart(2);
        let (code, text) = begins.outcome().await;
        assert_eq!(code, Some(0), "{text}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_cluster_that_cannot_begin_says_what_to_change_and_the_store_stays_as_it_was() {
        let mut nats = nats();
        let attic = filled(Machine::new("attic", &nats)).await;
        let cellar = filled(Machine::new("cellar", &nats)).await;
        attic.succeeds(&["cluster", "init"]).await;
        let (code, text) = cellar.command(&["cluster", "init"]).await;
        assert!(code == Some(1) && text.contains("another cluster uses it"), "{text}");
        let (code, text) = cellar.command(&["serve", "--join", "hwj1-nonsense"]).await;
        assert!(code == Some(1) && text.contains("not a complete join token"), "{text}");
        nats.kill(0);
        let (code, text) = cellar.command(&["cluster", "init"]).await;
        assert!(code == Some(1) && text.contains("cannot be reached"), "{text}");
        // It is what it was, also without NATS.
        let mut cellar = cellar.serve(&[]).await;
        cellar.logs_in().await;
        cellar.creates("Own").await;
        let cellar = cellar.stops().await;

        // A store does not run without the keys of its node, nor outside of its cluster.
        let (file, aside) = (attic.folder.path().join("node.json"), attic.folder.path().join("node.aside"));
        fs::rename(&file, &aside).unwrap();
        let (code, text) = attic.command(&["serve"]).await;
        assert!(code == Some(1) && text.contains("`node.json` of this node is missing"), "{text}");
        fs::rename(&aside, &file).unwrap();
        let folder = attic.folder.path().display().to_string();
        let (code, text) = Binary::start(&["serve", "--data-dir", &folder]).outcome().await;
        assert!(code == Some(1) && text.contains("`servers` is missing"), "{text}");

        // A node leaves without losing anything.
        let text = attic.succeeds(&["cluster", "leave"]).await;
        assert!(text.contains("of its own again"), "{text}");
        let (code, text) = cellar.command(&["cluster", "leave"]).await;
        assert!(code == Some(1) && text.contains("belongs to no cluster"), "{text}");
        let mut attic = attic.serve(&[]).await;
        attic.logs_in().await;
        attic.creates("Own").await;
        assert_eq!(attic.channels().await, ["News", "Own"]);
    }

    mod night {
        use super::*;

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn two_gateways_share_one_configuration_and_the_second_writes_when_the_first_is_killed() {
            let nats = nats();
            let attic = filled(Machine::new("attic", &nats)).await;
            let text = attic.succeeds(&["cluster", "init"]).await;
            assert!(text.contains("first node") && text.contains("serve --join"), "{text}");
            let (code, text) = attic.command(&["cluster", "init"]).await;
            assert!(code == Some(1) && text.contains("belongs to a cluster already"), "{text}");

            let mut attic = attic.serve(&[]).await;
            attic.logs_in().await;
            attic.creates("Sport").await;
            let token = attic.machine.succeeds(&["cluster", "token"]).await;
            let mut cellar = Machine::new("cellar", &nats).serve(&["--join", token.trim()]).await;
            cellar.logs_in().await;
            cellar.lists(&["News", "Sport"]).await;
            let kid = cellar.api.token(KID, KID_PASSWORD).await;
            assert_eq!(kid.status, 200, "{kid:?}");
            let accounts = cellar.api.get("/api/m3u/accounts/").await.body.to_string();
            assert!(accounts.contains(PROVIDER), "{accounts}");

            // A token is good for one machine.
            let (code, text) = Machine::new("third", &nats).command(&["serve", "--join", token.trim()]).await;
            assert!(code == Some(1) && text.contains("was used already"), "{text}");

            // Written by the other node, and visible here with the answer.
            let films = cellar.api.post("/api/channels/channels/", json!({ "name": "Films" })).await;
            assert_eq!(films.status, 201, "{films:?}");
            assert_eq!(cellar.channels().await, ["Films", "News", "Sport"]);
            attic.lists(&["Films", "News", "Sport"]).await;
            let id = films.body["id"].as_u64().unwrap();
            let renamed =
                cellar.api.patch(&format!("/api/channels/channels/{id}/"), json!({ "name": "Cinema" })).await;
            assert_eq!((renamed.status, &renamed.body["name"]), (200, &json!("Cinema")), "{renamed:?}");
            assert_eq!(cellar.channels().await, ["Cinema", "News", "Sport"]);
            // A refusal of the other node arrives as it is.
            let refused =
                cellar.api.post("/api/channels/channels/", json!({ "name": 7, "logo_id": "x" })).await;
            assert_eq!(refused.status, 400, "{refused:?}");
            let stranger = cellar.api.without_credentials();
            assert_eq!(stranger.post("/api/channels/channels/", json!({ "name": "No" })).await.status, 401);
            let status = cellar.machine.succeeds(&["cluster", "status"]).await;
            let part =
                |name: &str| status.lines().find(|it| it.starts_with(name)).unwrap_or_default().to_owned();
            assert!(part("attic").ends_with("writes"), "{status}");
            assert!(!part("cellar").ends_with("writes") && !part("cellar").ends_with("its own"), "{status}");

            let attic = attic.killed().await;
            cellar.creates("Docs").await;
            cellar.lists(&["Cinema", "Docs", "News", "Sport"]).await;
            let mut attic = attic.serve(&[]).await;
            attic.logs_in().await;
            attic.lists(&["Cinema", "Docs", "News", "Sport"]).await;
            attic.creates("Kids").await;
            assert_eq!(attic.channels().await, ["Cinema", "Docs", "Kids", "News", "Sport"]);
            cellar.lists(&["Cinema", "Docs", "Kids", "News", "Sport"]).await;

            // A third machine joins with a token of a node that follows, through the node that writes now.
            let token = attic.machine.succeeds(&["cluster", "token"]).await;
            let mut third = Machine::new("third", &nats).serve(&["--join", token.trim()]).await;
            third.logs_in().await;
            third.creates("Third").await;
            let all = ["Cinema", "Docs", "Kids", "News", "Sport", "Third"];
            assert_eq!(third.channels().await, all);
            attic.lists(&all).await;
            cellar.sees("third").await;
            cellar.machine.succeeds(&["cluster", "remove", "third"]).await;
            assert_eq!(third.program.ended().await.code(), Some(1), "{}", third.program.output());
            // The others have new keys, with which the log goes on.
            let file = attic.machine.folder.path().join("node.json");
            until_async("the new keys", async || {
                let file: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
                file["data_keys"]["cluster"]["2"].is_string()
                    && file["data_keys"]["provider"]["2"].is_string()
            })
            .await;
            attic.creates("After").await;
            let all = ["After", "Cinema", "Docs", "Kids", "News", "Sport", "Third"];
            assert_eq!(attic.channels().await, all);
            cellar.lists(&all).await;

            contains_none(&nats.data(0), &[PROVIDER, "hunter22", KID_PASSWORD, PASSWORD, "Cinema"]);
            let left: Value = json!(attic.stops().await.name);
            assert_eq!(left, "attic");
            cellar.creates("Late").await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn without_nats_changes_are_refused_and_all_nodes_are_equal_afterwards() {
            let mut nats = nats();
            let machine = filled(Machine::new("attic", &nats)).await;
            let [attic, cellar] = two_nodes(machine, Machine::new("cellar", &nats)).await;
            attic.creates("Sport").await;
            cellar.lists(&["News", "Sport"]).await;
            nats.kill(0);
            for node in [&cellar, &attic] {
                let refused = node.api.post("/api/channels/channels/", json!({ "name": "Lost" })).await;
                assert_eq!(refused.status, 503, "{refused:?}");
                // What is only read goes on.
                assert_eq!(node.channels().await, ["News", "Sport"]);
            }
            nats.restart(0);
            attic.creates("Back").await;
            cellar.creates("Again").await;
            // Either node may write now, and the other one follows. The refused ones may be kept, with the same order on all nodes.
            let mut all = Vec::new();
            until_async("all that was answered", async || {
                all = attic.channels().await;
                ["Again", "Back", "News", "Sport"].iter().all(|name| all.iter().any(|it| it == name))
            })
            .await;
            let all: Vec<_> = all.iter().map(String::as_str).collect();
            cellar.lists(&all).await;
        }
    }
}
