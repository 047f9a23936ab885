//! The log of the shared configuration over time: gateways in processes of their own, and NATS.

mod night {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use cluster::nats::NatsEngine;
    use cluster::testing::NatsServers;
    use cluster::{Engine, LogState, ObjectInfo};
    use serde_json::json;

    use crate::support::api::{ADMIN, Api, PASSWORD};
    use crate::support::binary::Binary;
    use crate::support::client::Request;
    use crate::support::cluster::{Machine, Node, nats, two_nodes};
    use crate::support::until_async;

    /// A connection of the test itself.
    struct Watcher(Arc<NatsEngine>);

    impl Watcher {
        fn new(nats: &NatsServers) -> Self {
            Self(Arc::new(NatsEngine::start(nats.options())))
        }

        async fn session(&self) -> u64 {
            let mut state = self.0.state();
            let session = state.wait_for(|it| it.session().is_some()).await.unwrap().session();
            session.unwrap().number
        }

        async fn log(&self) -> LogState {
            self.0.log_state(self.session().await).await.unwrap()
        }

        async fn snapshots(&self) -> Vec<ObjectInfo> {
            let all = self.0.objects(self.session().await).await.unwrap();
            all.into_iter().filter(|it| it.name.starts_with("log-snapshot.")).collect()
        }

        /// Waits until the log has no entry before this one, and two snapshots.
        async fn is_trimmed_after(&self, sequence: u64) {
            until_async(&format!("the log without what is before {sequence}"), async || {
                self.log().await.first > sequence && self.snapshots().await.len() == 2
            })
            .await;
        }
    }

    /// Starts two nodes that make a snapshot after each change.
    async fn nodes(nats: &NatsServers) -> [Node; 2] {
        let attic = machine("attic", nats);
        let folder = attic.folder.path().display().to_string();
        let program = Binary::start(&["serve", "--data-dir", &folder]);
        let address = program.address().await;
        let api = Api::stranger_at(address).become_first_admin().await;
        let attic = Node { machine: attic, program, api, address }.stops().await;
        two_nodes(attic, machine("cellar", nats)).await
    }

    fn machine(name: &'static str, nats: &NatsServers) -> Machine {
        let mut machine = Machine::new(name, nats);
        machine.settings =
            ["cluster.snapshot_bytes=1", "cluster.snapshot_interval=1"].map(str::to_owned).into();
        machine
    }

    /// Creates channels until the entries so far are removed from the log. Returns their names.
    async fn creates_until_trimmed(node: &Node, watcher: &Watcher, names: &[&'static str]) {
        for name in names {
            let before = watcher.log().await.last;
            node.creates(name).await;
            // The next snapshot contains it.
            until_async("a snapshot", async || {
                let all = watcher.snapshots().await;
                let sequence = |it: &ObjectInfo| it.name.split('.').nth(2)?.parse::<u64>().ok();
                all.iter().filter_map(sequence).any(|it| it > before)
            })
            .await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_node_that_was_off_while_the_log_was_trimmed_comes_back_with_everything() {
        let nats = nats();
        let watcher = Watcher::new(&nats);
        let [attic, cellar] = nodes(&nats).await;
        attic.creates("Before").await;
        cellar.lists(&["Before"]).await;
        let cellar = cellar.stops().await;
        let has = watcher.log().await.last;
        creates_until_trimmed(&attic, &watcher, &["A", "B", "C"]).await;
        watcher.is_trimmed_after(has + 1).await;

        let mut cellar = cellar.serve(&[]).await;
        cellar.has_restarted().await;
        let all = ["A", "B", "Before", "C"];
        cellar.lists(&all).await;
        assert!(!cellar.machine.folder.path().join("restore").exists());
        // Alone, it writes, and has what it needs.
        attic.stops().await;
        cellar.creates("Alone").await;
        cellar.lists(&["A", "Alone", "B", "Before", "C"]).await;
    }

    /// Waits until the node makes a snapshot at this moment, or has made one that is not among these.
    async fn makes_a_snapshot(folder: &Path, watcher: &Watcher, before: &[ObjectInfo]) {
        until_async("a snapshot", async || {
            // As often as possible: the files exist for some milliseconds.
            for _ in 0..20 {
                if ["log-snapshot.part", "log-snapshot.check"].iter().any(|it| folder.join(it).exists()) {
                    return true;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let now = watcher.snapshots().await;
            now.iter().any(|it| before.iter().all(|other| other.name != it.name))
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_writer_that_is_killed_during_a_snapshot_costs_nothing() {
        let nats = nats();
        let watcher = Watcher::new(&nats);
        let [attic, cellar] = nodes(&nats).await;
        let before = watcher.snapshots().await;
        let folder = attic.machine.folder.path();
        // Looked for from the beginning, because a snapshot takes some milliseconds.
        tokio::join!(attic.creates("One"), makes_a_snapshot(folder, &watcher, &before));
        let attic = attic.killed().await;
        let has = watcher.log().await.last;
        // The other node makes the next ones, and trims.
        creates_until_trimmed(&cellar, &watcher, &["Two", "Three", "Four"]).await;
        watcher.is_trimmed_after(has + 1).await;
        let mut attic = attic.serve(&[]).await;
        attic.has_restarted().await;
        attic.lists(&["Four", "One", "Three", "Two"]).await;
        attic.creates("Five").await;
        cellar.lists(&["Five", "Four", "One", "Three", "Two"]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_log_that_was_removed_begins_anew_from_one_node_and_the_other_rejoins() {
        let nats = nats();
        let [attic, mut cellar] = nodes(&nats).await;
        for name in ["One", "Two"] {
            attic.creates(name).await;
        }
        cellar.lists(&["One", "Two"]).await;
        // A log that is well is not replaced by mistake.
        let attic = attic.stops().await;
        let (code, text) = attic.command(&["cluster", "reseed"]).await;
        assert!(code == Some(1) && text.contains("nothing to do"), "{text}");
        let attic = attic.serve(&[]).await;

        nats.remove_stream(0, "HW_LOG").await;
        // Changes are refused from then on, and the reason says what to do.
        let mut text = String::new();
        until_async("a configuration that is read-only", async || {
            let reply = cellar.api.post("/api/channels/channels/", json!({ "name": "Lost" })).await;
            assert_eq!(reply.status, 503, "{reply:?}");
            text = reply.body.to_string();
            text.contains("headwater cluster reseed")
        })
        .await;
        assert_eq!(cellar.channels().await, ["One", "Two"]);
        // An admin signs in to the page all the same, and all nodes accept the token.
        let login = json!({ "username": ADMIN, "password": PASSWORD }).to_string();
        let sign_in = Request::get("/api/accounts/auth/browser/").method("POST").header("Host", "headwater");
        let sign_in = sign_in.header("Origin", "http://headwater").body("application/json", login);
        let signed_in = cellar.api.without_credentials().ask(sign_in).await;
        assert_eq!(signed_in.status, 200, "{signed_in:?}");
        for node in [&attic, &cellar] {
            let page = node.api.bearer(signed_in.text("access"));
            assert_eq!(page.get("/api/accounts/users/me/").await.status, 200);
        }

        let attic = attic.stops().await;
        let text = attic.succeeds(&["cluster", "reseed"]).await;
        assert!(text.contains("now that of the cluster"), "{text}");
        let mut attic = attic.serve(&[]).await;
        attic.logs_in().await;
        cellar.has_restarted().await;
        cellar.lists(&["One", "Two"]).await;
        cellar.creates("Three").await;
        attic.lists(&["One", "Three", "Two"]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_back_up_restored_on_one_node_becomes_the_configuration_of_all() {
        let nats = nats();
        let [attic, mut cellar] = nodes(&nats).await;
        attic.creates("Then").await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("backup.tar.gz").display().to_string();
        attic.machine.succeeds(&["backup", &file]).await;
        attic.creates("Now").await;
        cellar.lists(&["Now", "Then"]).await;
        let (code, text) = attic.machine.command(&["restore", &file]).await;
        assert!(code == Some(1) && text.contains("stop it"), "{text}");

        // The other node writes meanwhile.
        let attic = attic.stops().await;
        cellar.creates("Meanwhile").await;
        let text = attic.succeeds(&["restore", &file]).await;
        assert!(text.contains("headwater cluster reseed"), "{text}");
        let (code, text) = attic.command(&["serve"]).await;
        assert!(code == Some(1) && text.contains("headwater cluster reseed"), "{text}");
        attic.succeeds(&["cluster", "reseed"]).await;
        cellar.has_restarted().await;
        cellar.lists(&["Then"]).await;
        let mut attic = attic.serve(&[]).await;
        attic.logs_in().await;
        attic.lists(&["Then"]).await;
        // Both are still nodes of one cluster.
        attic.creates("After").await;
        cellar.lists(&["After", "Then"]).await;
        cellar.creates("Again").await;
        attic.lists(&["After", "Again", "Then"]).await;
    }
}
