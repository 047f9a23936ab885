//! Nodes of a cluster share the limits of accounts: two gateways in processes of their own, NATS, and a provider that
//! counts its own connections.

mod slow {
    use std::fs;
    use std::net::SocketAddr;
    use std::path::Path;
    use std::time::Duration;

    use cluster::testing::NatsServers;
    use headwater::node::file::begin_cluster;
    use serde_json::{Value, json};
    use storage::Store;
    use tempfile::TempDir;
    use tokio::time::Instant;

    use crate::support::api::Api;
    use crate::support::binary::Binary;
    use crate::support::client::Player;
    use crate::support::signal::Picture;
    use crate::support::upstream::{MockResponse, Provider};
    use crate::support::{tools, until_async};

    const LIST: &str = "/lists/all.m3u";
    /// Longest time until a slot of a lost node is granted again: 23 s until it has expired, and 30 s of cooling. This only
    /// ends a wait that would last forever.
    const WAIT_MAX: Duration = Duration::from_secs(300);

    struct Node {
        folder: TempDir,
        name: &'static str,
        program: Binary,
        address: SocketAddr,
        api: Api,
    }

    fn run(folder: &Path, name: &str, nats: &NatsServers) -> Binary {
        let folder = folder.display().to_string();
        let servers = format!("cluster.servers={}", json!(nats.options().servers));
        let name = format!("cluster.node_name={name}");
        Binary::start(&["serve", "--data-dir", &folder, "--set", &servers, "--set", &name])
    }

    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            let (kind, to) = (entry.file_type().unwrap(), to.join(entry.file_name()));
            if kind.is_dir() {
                copy(&entry.path(), &to);
            } else if kind.is_file() {
                fs::copy(entry.path(), to).unwrap();
            }
        }
    }

    impl Node {
        /// Starts a node on a copy of these data.
        async fn start(name: &'static str, data: &Path, nats: &NatsServers) -> Node {
            let folder = tempfile::tempdir().unwrap();
            copy(data, folder.path());
            let authority = Store::temporary(storage::records::schema()).unwrap();
            begin_cluster(&authority, &folder.path().join("node.json"), 0).unwrap();
            let program = run(folder.path(), name, nats);
            let address = program.address().await;
            let api = Api::stranger_at(address).become_first_admin().await;
            let node = Node { folder, name, program, address, api };
            node.is_member(name).await;
            node
        }

        async fn restart(&mut self, nats: &NatsServers) {
            self.program = run(self.folder.path(), self.name, nats);
            self.address = self.program.address().await;
            self.api = Api::stranger_at(self.address).become_first_admin().await;
            self.is_member(self.name).await;
        }

        async fn is_member(&self, name: &str) {
            until_async("a member", async || {
                let nodes = self.api.get("/api/core/nodes/").await.body["nodes"].clone();
                nodes
                    .as_array()
                    .is_some_and(|it| it.iter().any(|it| it["name"] == name && it["state"] == "alive"))
            })
            .await;
        }

        /// Asks for a channel until it plays.
        async fn plays(&self, path: &str, picture: &str) -> Player {
            let begin = Instant::now();
            loop {
                let player = Player::watch(self.address, path).await;
                let status = player.status().await;
                if status == 200 {
                    player.sees(picture).await;
                    return player;
                }
                assert_eq!(status, 503);
                assert!(begin.elapsed() < WAIT_MAX, "no slot on {}:\n{}", self.name, self.program.output());
            }
        }

        async fn slots(&self) -> Value {
            let seen = self.api.get("/api/m3u/slots/").await.body;
            let profiles = seen["profiles"].as_array().unwrap();
            profiles.iter().find(|it| it["account_name"] == "Provider").unwrap().clone()
        }
    }

    /// Makes the data of a gateway with the channels `One` and `Two` of an account with one connection. Returns them with
    /// the paths of the channels.
    async fn data(provider: &Provider) -> (TempDir, [String; 2]) {
        let mut list = String::from("#EXTM3U\n");
        for name in ["One", "Two"] {
            let path = format!("/live/anna/{name}.ts");
            provider.path(&path).plays(Picture::new(name).bits_per_second(300_000).frames_per_gop(3));
            list.push_str(&format!("#EXTINF:-1,{name}\n{}\n", provider.url(&path)));
        }
        provider.path(LIST).answers(MockResponse::text("audio/x-mpegurl", list));
        let folder = tempfile::tempdir().unwrap();
        let mut program = Binary::start(&["serve", "--data-dir", &folder.path().display().to_string()]);
        let admin = Api::stranger_at(program.address().await).become_first_admin().await;
        let account = json!({ "name": "Provider", "server_url": provider.url(LIST), "max_streams": 1 });
        let made = admin.post("/api/m3u/accounts/", account).await;
        assert_eq!(made.status, 201, "{made:?}");
        let account = format!("/api/m3u/accounts/{}/", made.body["id"]);
        until_async("the import", async || admin.get(&account).await.body["status"] == "success").await;
        let streams = admin.get("/api/channels/streams/?ordering=id").await.body["results"].clone();
        let mut paths = Vec::new();
        for name in ["One", "Two"] {
            let stream = streams.as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
            let channel = json!({ "stream_id": stream["id"] });
            let made = admin.post("/api/channels/channels/from-stream/", channel).await;
            assert_eq!(made.status, 201, "{made:?}");
            paths.push(format!("/proxy/ts/stream/{}", made.text("uuid")));
        }
        program.signal("TERM");
        assert!(program.ended().await.success(), "{}", program.output());
        (folder, paths.try_into().unwrap())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_gateways_never_open_more_connections_than_the_account_allows() {
        let provider = Provider::start();
        let (data, [one, two]) = data(&provider).await;
        provider.limit("anna", 1, 403, Duration::ZERO);
        let nats = NatsServers::start(&tools::installed("bin/nats-server"), 1);
        let attic = Node::start("attic", data.path(), &nats).await;
        let mut cellar = Node::start("cellar", data.path(), &nats).await;

        // The first one has it as long as it watches.
        let first = attic.plays(&one, "One").await;
        let refused = Player::watch(cellar.address, &two).await;
        assert_eq!(refused.status().await, 503);
        let slots = cellar.slots().await;
        assert_eq!((&slots["current_viewers"], &slots["free"]), (&json!(1), &json!(0)), "{slots}");
        assert_eq!((provider.open(), provider.peak_of("anna")), (1, 1));
        first.more_bytes(50_000).await;
        first.leave().await;
        // The channel lingers, and yields to a viewer of the other node.
        let second = cellar.plays(&two, "Two").await;
        assert_eq!(provider.peak_of("anna"), 1, "{:?}", provider.overlaps("anna"));

        // The slot of a node that is lost is granted after the time in which the node would have closed its connection.
        cellar.program.signal("KILL");
        let killed = Instant::now();
        cellar.program.ended().await;
        drop(second);
        let third = attic.plays(&one, "One").await;
        assert!(killed.elapsed() > Duration::from_secs(40), "{:?}", killed.elapsed());
        third.leave().await;

        // A node that returns takes part again, and one that stops gives its slot back at once.
        cellar.restart(&nats).await;
        let fourth = cellar.plays(&two, "Two").await;
        cellar.program.signal("TERM");
        assert!(cellar.program.ended().await.success(), "{}", cellar.program.output());
        drop(fourth);
        until_async("a free slot", async || attic.slots().await["free"] == 1).await;
        let _fifth = attic.plays(&one, "One").await;
        assert_eq!(
            (provider.peak_of("anna"), provider.refusals()),
            (1, 0),
            "{:?}",
            provider.overlaps("anna")
        );
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_gateway_without_nats_closes_its_limited_connection_before_the_other_opens_one() {
        let provider = Provider::start();
        let (data, [one, two]) = data(&provider).await;
        provider.limit("anna", 1, 403, Duration::ZERO);
        let mut nats = NatsServers::start(&tools::installed("bin/nats-server"), 1);
        let attic = Node::start("attic", data.path(), &nats).await;
        let cellar = Node::start("cellar", data.path(), &nats).await;
        let _first = attic.plays(&one, "One").await;
        nats.kill(0);
        until_async("the connection to be closed", async || provider.open() == 0).await;
        nats.restart(0);
        let _second = cellar.plays(&two, "Two").await;
        assert_eq!(
            (provider.peak_of("anna"), provider.refusals()),
            (1, 0),
            "{:?}",
            provider.overlaps("anna")
        );
    }
}
