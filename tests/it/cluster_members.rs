//! Nodes of a cluster: two gateways in processes of their own, and NATS.

mod slow {
    use std::net::SocketAddr;
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;

    use cluster::testing::NatsServers;
    use serde_json::{Value, json};
    use tempfile::TempDir;

    use crate::support::api::{ADMIN, Api, PASSWORD};
    use crate::support::binary::Binary;
    use crate::support::client::{Request, fetch};
    use crate::support::web::Web;
    use crate::support::websocket::WebSocketClient;
    use crate::support::{tools, until_async};
    use crate::web_audit::slow::{axe, check};
    use crate::web_pages::page::Page;

    /// A gateway that is a node, and its admin.
    struct Node {
        folder: TempDir,
        name: &'static str,
        servers: String,
        program: Binary,
        address: SocketAddr,
        api: Api,
    }

    fn nats() -> NatsServers {
        NatsServers::start(&tools::installed("bin/nats-server"), 1)
    }

    fn run(folder: &Path, name: &str, servers: &str) -> Binary {
        let (folder, name) = (folder.display().to_string(), format!("cluster.node_name={name}"));
        let servers = format!("cluster.servers={servers}");
        Binary::start(&["serve", "--data-dir", &folder, "--set", &servers, "--set", &name])
    }

    impl Node {
        async fn start(name: &'static str, nats: &NatsServers) -> Node {
            let folder = tempfile::tempdir().unwrap();
            let servers = json!(nats.options().servers).to_string();
            let program = run(folder.path(), name, &servers);
            let address = program.address().await;
            let api = Api::stranger_at(address).become_first_admin().await;
            Node { folder, name, servers, program, address, api }
        }

        /// Starts the gateway again on the same data.
        async fn restart(&mut self) {
            self.program = run(self.folder.path(), self.name, &self.servers);
            self.address = self.program.address().await;
            self.api = Api::stranger_at(self.address).become_first_admin().await;
        }

        async fn nodes(&self) -> Value {
            let reply = self.api.get("/api/core/nodes/").await;
            assert_eq!(reply.status, 200, "{reply:?}");
            reply.body
        }

        async fn node(&self, name: &str) -> Value {
            let body = self.nodes().await;
            let found = body["nodes"].as_array().unwrap().iter().find(|it| it["name"] == name).cloned();
            found.unwrap_or(Value::Null)
        }

        async fn sees(&self, name: &str, state: &str) {
            let what = format!("{} to see {name} as {state}; {}", self.name, self.program.output());
            until_async(&what, async || self.node(name).await["state"] == state).await;
        }

        /// Returns the kinds of the problems that health reports.
        async fn problems(&self) -> Vec<String> {
            let health = self.api.get("/api/core/health/").await.body;
            let problems = health["problems"].as_array().unwrap();
            problems.iter().map(|it| it["kind"].as_str().unwrap().to_owned()).collect()
        }

        async fn has_problem(&self, kind: &str, wanted: bool) {
            let has = async || self.problems().await.iter().any(|it| it == kind);
            until_async(&format!("{kind}: {wanted}"), async || has().await == wanted).await;
        }

        async fn socket(&self) -> WebSocketClient {
            let token = self.api.token(ADMIN, PASSWORD).await;
            let path = format!("/ws/?token={}", token.text("access"));
            WebSocketClient::open(self.address, &path, &[]).await.expect("admins may listen")
        }

        async fn metrics(&self) -> String {
            fetch(self.address, Request::get("/metrics")).await.text()
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_admin_sees_the_nodes_in_the_web_interface() {
        let nats = nats();
        let attic = Node::start("attic", &nats).await;
        let mut cellar = Node::start("cellar", &nats).await;
        attic.sees("cellar", "alive").await;
        let page = Page::new(Web::at(attic.address).await);
        page.web.opens("/health").await;
        page.web.signs_in_as(ADMIN, PASSWORD).await;
        page.web.clicks("2 of 2 are members").await;
        page.web.is_at("/nodes").await;
        let states = "return [...document.querySelectorAll('tbody tr')]
            .map((it) => [it.cells[0].querySelector('bdi').textContent, it.cells[1].textContent.trim()])";
        page.until_is("both", states, json!([["attic", "member"], ["cellar", "member"]])).await;
        page.shows("answers now").await;
        // The page follows by itself.
        cellar.program.signal("TERM");
        cellar.program.ended().await;
        page.until_is("the end", states, json!([["attic", "member"], ["cellar", "has left"]])).await;
        check(&page.web, &axe(), "/nodes").await;
        drop(nats);
        page.until("NATS is away", "return document.querySelector('[role=alert]') !== null", |it| {
            *it == true
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_gateway_that_is_frozen_is_killed_and_can_return() {
        let nats = nats();
        let attic = Node::start("attic", &nats).await;
        let mut cellar = Node::start("cellar", &nats).await;
        attic.sees("cellar", "alive").await;
        cellar.program.signal("STOP");
        assert_eq!(cellar.program.ended().await.signal(), Some(9));
        attic.sees("cellar", "expired").await;
        // Its guard has ended with it, and a new process joins.
        cellar.restart().await;
        attic.sees("cellar", "alive").await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_gateways_see_each_other_come_vanish_return_and_leave() {
        let nats = nats();
        let attic = Node::start("attic", &nats).await;
        let mut cellar = Node::start("cellar", &nats).await;
        for node in [&attic, &cellar] {
            node.sees("attic", "alive").await;
            node.sees("cellar", "alive").await;
        }
        let other = attic.node("cellar").await;
        assert_eq!(
            (&other["role"], &other["version"], &other["is_own"]),
            (&json!("full"), &json!(env!("CARGO_PKG_VERSION")), &json!(false))
        );
        assert!(other["last_seen"].is_string() && other["cpu_percent"].is_number(), "{other}");
        let metrics = attic.metrics().await;
        for line in [
            "headwater_cluster_connected 1",
            "headwater_cluster_member 1",
            "headwater_cluster_nodes{state=\"alive\"} 2",
        ] {
            assert!(metrics.contains(line), "{line} in {metrics}");
        }
        assert_eq!(attic.api.without_credentials().get("/api/core/nodes/").await.status, 401);

        let mut socket = attic.socket().await;
        cellar.program.signal("KILL");
        cellar.program.ended().await;
        attic.sees("cellar", "expired").await;
        let frame = socket.until("node_state", |it| it["node"] == "cellar").await;
        assert_eq!((&frame["state"], &frame["success"]), (&json!("expired"), &json!(false)));
        attic.has_problem("cluster_node", true).await;

        cellar.restart().await;
        attic.sees("cellar", "alive").await;
        cellar.sees("cellar", "alive").await;
        socket.until("node_state", |it| it["node"] == "cellar" && it["state"] == "alive").await;
        attic.has_problem("cluster_node", false).await;
        let back = attic.node("cellar").await;
        assert!(back["incarnation"].as_u64() > other["incarnation"].as_u64(), "{back} after {other}");

        cellar.program.signal("TERM");
        assert_eq!(cellar.program.ended().await.code(), Some(0), "{}", cellar.program.output());
        // Known when the program has ended, without waiting for its expiry.
        socket.until("node_state", |it| it["node"] == "cellar" && it["state"] == "left").await;
        assert_eq!(attic.node("cellar").await["state"], "left");
        assert!(!attic.problems().await.contains(&"cluster_node".to_owned()));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_gateway_without_nats_works_and_says_so_and_joins_again() {
        let mut nats = nats();
        let attic = Node::start("attic", &nats).await;
        attic.sees("attic", "alive").await;
        nats.kill(0);
        attic.has_problem("cluster_engine", true).await;
        // It is a member until its deadline, 15 s after the last renewal.
        attic.sees("attic", "joining").await;
        let nodes = attic.nodes().await;
        assert_eq!(nodes["is_connected"], false);
        assert!(nodes["reason"].as_str().is_some_and(|it| it.contains("NATS")), "{nodes}");
        let metrics = attic.metrics().await;
        assert!(metrics.contains("headwater_cluster_connected 0"), "{metrics}");
        assert_eq!(fetch(attic.address, Request::get("/healthz")).await.status(), 200);
        let new = json!({ "name": "News" });
        assert_eq!(attic.api.post("/api/channels/channels/", new).await.status, 201);
        nats.restart(0);
        attic.sees("attic", "alive").await;
        attic.has_problem("cluster_engine", false).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_commands_of_the_cluster_say_what_is_wrong_and_who_is_there() {
        let mut nats = nats();
        let servers = format!("cluster.servers={}", json!(nats.options().servers));
        let command = async |name: &str, more: &[String]| {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path().display().to_string();
            let mut arguments = vec!["cluster", name, "--data-dir", &folder, "--set", &servers];
            arguments.extend(more.iter().flat_map(|it| ["--set", it.as_str()]));
            Binary::start(&arguments).outcome().await
        };
        let monitors = format!("cluster.monitors={}", json!([nats.monitor(0)]));
        until_async("the server to start", async || command("check", &[]).await.0 == Some(0)).await;
        let (code, text) = command("status", &[]).await;
        assert_eq!((code, text.trim()), (Some(0), "No node has joined yet."));
        let (_, text) = command("check", &[]).await;
        assert!(text.contains("there is one NATS server") && text.contains("it was not checked"), "{text}");
        let attic = Node::start("attic", &nats).await;
        attic.sees("attic", "alive").await;
        let (code, text) = command("check", &[monitors]).await;
        assert_eq!(code, Some(0), "{text}");
        for part in [
            "version 2.",
            "writes to disk before it acknowledges",
            "its clock is 0.",
            "stream KV_HW has 1 of 1",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let (code, text) = command("status", &[]).await;
        let line = text.lines().find(|it| it.starts_with("attic")).unwrap_or_default();
        assert!(code == Some(0) && line.contains("full") && line.contains("alive"), "{text}");

        nats.kill(0);
        for name in ["check", "status"] {
            let (code, text) = command(name, &[]).await;
            assert!(code == Some(1) && text.contains("cannot be reached"), "{text}");
        }
    }
}
