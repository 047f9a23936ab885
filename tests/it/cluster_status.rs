//! Each node of a cluster shows what all nodes play.

mod slow {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use crate::support::api::{ADMIN, Api, PASSWORD};
    use crate::support::client::Player;
    use crate::support::cluster::{Machine, Node, nats, two_nodes};
    use crate::support::cluster_content::{fill, fill_account};
    use crate::support::until_async;
    use crate::support::upstream::Provider;
    use crate::support::websocket::WebSocketClient;

    /// Returns the names of the nodes of the clients of a channel.
    fn nodes_of(channel: &Value) -> Vec<&str> {
        let clients = channel["clients"].as_array().unwrap();
        let mut nodes: Vec<_> = clients.iter().map(|it| it["node"].as_str().unwrap()).collect();
        nodes.sort_unstable();
        nodes
    }

    fn channel_of<'a>(list: &'a Value, uuid: &str) -> Option<&'a Value> {
        list["channels"].as_array()?.iter().find(|it| it["channel_id"] == uuid)
    }

    /// Waits until a node lists a channel with clients of these nodes, and returns its row.
    async fn lists(node: &Node, uuid: &str, of: &[&str]) -> Value {
        let mut row = Value::Null;
        until_async(&format!("{} to list clients of {of:?}", node.machine.name), async || {
            let reply = node.api.get("/proxy/ts/status").await;
            row = channel_of(&reply.body, uuid).cloned().unwrap_or_default();
            row.is_object() && nodes_of(&row) == of
        })
        .await;
        row
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn every_node_shows_the_viewers_of_all_with_their_nodes() {
        let (nats, provider) = (nats(), Provider::start());
        let machine = Machine::new("attic", &nats);
        let channels = fill(&machine, &provider, ["News", "Weather"], &[]).await;
        let [news, weather] = channels.each_ref().map(|it| it.uuid.as_str());
        let [attic, cellar] = two_nodes(machine, Machine::new("cellar", &nats)).await;
        let here = Player::watch(attic.address, &channels[0].path()).await;
        here.sees("News").await;
        // A new cluster grants nothing for 20 s; until then, each node plays for itself.
        let origin =
            || async { attic.api.get(&format!("/proxy/ts/status/{news}")).await.body["source_node"].clone() };
        until_async("an origin", async || origin().await == "attic").await;
        let there = Player::watch(cellar.address, &channels[0].path()).await;
        there.sees("News").await;
        let alone = Player::watch(cellar.address, &channels[1].path()).await;
        alone.sees("Weather").await;

        let (code, text) = attic.machine.command(&["cluster", "check"]).await;
        assert!(code == Some(0) && text.contains("node cellar: this machine reaches it"), "{code:?}: {text}");
        for (node, role) in [(&attic, "origin"), (&cellar, "edge")] {
            // One channel with the viewers of both; the edge that reads it is none.
            let row = lists(node, news, &["attic", "cellar"]).await;
            assert_eq!((&row["client_count"], &row["source_node"]), (&json!(2), &json!("attic")), "{row}");
            assert_eq!(
                (&row["node_role"], &row["nodes"]),
                (&json!(role), &json!(["attic", "cellar"])),
                "{row}"
            );
            assert_eq!(row["stream_name"], "News", "{row}");
            let row = lists(node, weather, &["cellar"]).await;
            assert_eq!((&row["client_count"], &row["nodes"]), (&json!(1), &json!(["cellar"])), "{row}");
            let one = node.api.get(&format!("/proxy/ts/status/{weather}")).await;
            assert_eq!((one.status, nodes_of(&one.body)), (200, vec!["cellar"]), "{one:?}");
            // The timeline has what both did.
            let timeline = node.api.get(&format!("/proxy/ts/timeline/{news}")).await;
            let run = &timeline.body["runs"][0];
            assert_eq!(run["nodes"], json!(["attic", "cellar"]), "{timeline:?}");
            assert_eq!(timeline.body["missing_nodes"], json!([]), "{timeline:?}");
            let entries = run["entries"].as_array().unwrap();
            let has =
                |of: &str, event: &str| entries.iter().any(|it| it["node"] == of && it["event"] == event);
            assert!(has("attic", "opening") && has("attic", "started"), "{timeline:?}");
            assert!(has("cellar", "pulled") && !has("attic", "pulled"), "{timeline:?}");
            let times: Vec<_> = entries.iter().map(|it| it["timestamp"].as_str().unwrap()).collect();
            assert!(times.is_sorted(), "{times:?}");
            let timeline = node.api.get(&format!("/proxy/ts/timeline/{weather}")).await;
            assert_eq!(timeline.body["runs"][0]["nodes"], json!(["cellar"]), "{timeline:?}");
            let all = node.api.get("/proxy/stats").await;
            assert_eq!(all.body["live"]["count"], 2, "{all:?}");
        }
        let mut ids = BTreeSet::new();
        for row in
            [lists(&attic, news, &["attic", "cellar"]).await, lists(&attic, weather, &["cellar"]).await]
        {
            ids.extend(row["clients"].as_array().unwrap().iter().map(|it| it["client_id"].to_string()));
        }
        assert_eq!(ids.len(), 3);

        // The WebSocket has the same rows, and the totals of both.
        let token = Api::stranger_at(attic.address).token(ADMIN, PASSWORD).await.text("access").to_owned();
        let mut socket =
            WebSocketClient::open(attic.address, &format!("/ws/?token={token}"), &[]).await.unwrap();
        let is_whole = |it: &Value| {
            let of = |uuid: &str| channel_of(&it["stats"], uuid).map(nodes_of).unwrap_or_default();
            of(news) == ["attic", "cellar"] && of(weather) == ["cellar"]
        };
        let frame = socket.until("channel_stats", is_whole).await;
        let row = channel_of(&frame["stats"], weather).unwrap();
        assert_eq!((&row["client_count"], &row["nodes"]), (&json!(1), &json!(["cellar"])), "{row}");
        assert_eq!(frame["stats"]["totals"]["client_count"], 3, "{frame}");
        // Clients that it does not look at are counted only, on their own node already.
        socket.send(&json!({ "type": "subscribe", "clients": news }).to_string()).await;
        let is_counted = |it: &Value| {
            let row = |uuid: &str| channel_of(&it["stats"], uuid).cloned().unwrap_or_default();
            let (news, weather) = (row(news), row(weather));
            weather.get("clients").is_none()
                && weather["client_count"] == 1
                && news.get("clients").is_some()
                && nodes_of(&news) == ["attic", "cellar"]
        };
        socket.until("channel_stats", is_counted).await;

        // One of them writes the configuration, and the other one has all of it.
        until_async("the nodes with their commits", async || {
            let nodes = cellar.api.get("/api/core/nodes/").await.body["nodes"].clone();
            let nodes = nodes.as_array().cloned().unwrap_or_default();
            let writers = nodes.iter().filter(|it| it["is_writer"] == true).count();
            writers == 1 && nodes.len() == 2 && nodes.iter().all(|it| it["commits_behind"] == 0)
        })
        .await;

        // What a node that is gone has played is not shown any more; a timeline says who is missing.
        let mut machine = cellar.vanishes().await;
        let timeline = attic.api.get(&format!("/proxy/ts/timeline/{news}")).await;
        assert_eq!(timeline.body["missing_nodes"], json!(["cellar"]), "{timeline:?}");
        assert_eq!(timeline.body["runs"][0]["nodes"], json!(["attic"]), "{timeline:?}");
        lists(&attic, news, &["attic"]).await;
        until_async("the channel of the other node to disappear", async || {
            channel_of(&attic.api.get("/proxy/ts/status").await.body, weather).is_none()
        })
        .await;
        here.more_bytes(100_000).await;

        // A node at an address where others do not reach it.
        machine.settings.push(r#"cluster.addresses=["127.0.0.9"]"#.to_owned());
        let _cellar = machine.serve(&[]).await;
        let problem = "PROBLEM  node cellar: this machine does not reach it at 127.0.0.9:";
        until_async("a check that finds the problem", async || {
            let (code, text) = attic.machine.command(&["cluster", "check"]).await;
            code == Some(1) && text.contains(problem)
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_progress_of_a_refresh_is_shown_on_every_node() {
        let (nats, provider) = (nats(), Provider::start());
        let machine = Machine::new("attic", &nats);
        fill_account(&machine, &provider, &["news"], 0).await;
        let [attic, cellar] = two_nodes(machine, Machine::new("cellar", &nats)).await;
        let mut sockets = Vec::new();
        for node in [&attic, &cellar] {
            let token = Api::stranger_at(node.address).token(ADMIN, PASSWORD).await.text("access").to_owned();
            let path = format!("/ws/?token={token}");
            sockets.push(WebSocketClient::open(node.address, &path, &[]).await.unwrap());
        }
        let accounts = cellar.api.get("/api/m3u/accounts/").await.body;
        let all = accounts["results"].as_array().or(accounts.as_array()).cloned().unwrap();
        let account = &all.iter().find(|it| it["name"] == "Provider").unwrap()["id"];
        let path = format!("/api/m3u/refresh/{account}/");
        let started = cellar.api.post(&path, json!({})).await;
        assert_eq!(started.status, 202, "{started:?}");
        for socket in &mut sockets {
            let is_done = |it: &Value| it["account"] == *account && it["action"] == "done";
            let done = socket.until("m3u_refresh", is_done).await;
            assert_eq!(done["status"], "success", "{done}");
        }
        for node in [&attic, &cellar] {
            let shown = node.api.get(&path).await;
            assert_eq!((shown.status, shown.body["task_id"].is_string()), (200, true), "{shown:?}");
        }
    }
}
