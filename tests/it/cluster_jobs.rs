//! Jobs of a cluster: the node that writes the configuration refreshes, delivers events and runs plugins. Gateways in
//! processes of their own, NATS, a provider that notes who asks, and a webhook.

mod night {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use serde_json::{Value, json};
    use tokio::time::sleep;

    use crate::guide::fixture::guide;
    use crate::plugins::{PLUGINS, install, package};
    use crate::support::client::{Player, Request};
    use crate::support::cluster::{Machine, Node, join, nats, two_nodes, upgraded};
    use crate::support::cluster_content::{ClusterChannel, fill};
    use crate::support::until_async;
    use crate::support::upstream::{MockResponse, Provider};
    use crate::support::web_target::WebTarget;

    const LIST: &str = "/lists/all.m3u";
    const GUIDE: &str = "/guide.xml";
    const HOOK: &str = "/hook";

    /// A machine whose requests to the provider have its name.
    fn named(name: &'static str, nats: &cluster::testing::NatsServers) -> Machine {
        let mut machine = Machine::new(name, nats);
        machine.settings.push(format!("user_agent=\"{name}\""));
        machine
    }

    /// Returns how often a node has asked the provider for the playlist, or for the guide.
    fn asked(provider: &Provider, path: &str, name: &str) -> usize {
        let requests = provider.path(path).requests();
        requests.iter().filter(|it| it.header("user-agent") == Some(name)).count()
    }

    /// Waits for refreshes by schedule, which takes longer than other waits: up to a minute until they are due. A test that
    /// never gets them is ended from outside.
    async fn asks_again(provider: &Provider, name: &str) {
        let n_asked = || [LIST, GUIDE].map(|path| asked(provider, path, name));
        let before = n_asked();
        while n_asked().iter().zip(&before).any(|(now, before)| now == before) {
            sleep(Duration::from_millis(100)).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn refreshes_by_schedule_run_on_the_node_that_writes_and_move_with_it() {
        let nats = nats();
        let provider = Provider::start();
        let list = "#EXTM3U\n#EXTINF:-1,News\nhttp://127.0.0.1:9/news.ts\n";
        provider.path(LIST).answers(MockResponse::text("audio/x-mpegurl", list));
        let guide = guide(2, 20, actors::now_ms() / 1000);
        provider.path(GUIDE).answers(MockResponse::text("text/xml", guide));
        let attic = named("attic", &nats).with_admin().await;
        let [attic, cellar] = two_nodes(attic, named("cellar", &nats)).await;
        let account = json!({
            "name": "Provider", "server_url": provider.url(LIST), "cron_expression": "* * * * *",
        });
        let account = cellar.api.post("/api/m3u/accounts/", account).await;
        assert_eq!(account.status, 201, "{account:?}");
        let guide = json!({
            "name": "Guide", "source_type": "xmltv", "url": provider.url(GUIDE), "cron_expression": "* * * * *",
        });
        let guide = cellar.api.post("/api/epg/sources/", guide).await;
        assert_eq!(guide.status, 201, "{guide:?}");
        until_async("the import", async || asked(&provider, LIST, "attic") > 0).await;
        asks_again(&provider, "attic").await;
        assert_eq!([LIST, GUIDE].map(|path| asked(&provider, path, "cellar")), [0, 0]);

        attic.killed().await;
        // What was due meanwhile is made up for.
        asks_again(&provider, "cellar").await;
        for (path, made) in [("/api/m3u/accounts/", account), ("/api/epg/sources/", guide)] {
            let path = format!("{path}{}/", made.body["id"]);
            until_async("the refresh by the other node", async || {
                cellar.api.get(&path).await.body["status"] == "success"
            })
            .await;
        }
    }

    /// A target of webhooks that can refuse what it gets.
    struct Hook {
        target: WebTarget,
        refuses: Arc<AtomicBool>,
    }

    impl Hook {
        fn start() -> Self {
            let (target, refuses) = (WebTarget::start(), Arc::new(AtomicBool::new(false)));
            let refusing = Arc::clone(&refuses);
            target.serves(HOOK, move |_| {
                let status = if refusing.load(Ordering::Relaxed) { 503 } else { 204 };
                (status, String::new())
            });
            Self { target, refuses }
        }

        fn refuse(&self, refuses: bool) {
            self.refuses.store(refuses, Ordering::Relaxed);
        }

        /// Lets a node subscribe it to some events.
        async fn subscribe(&self, node: &Node, events: &[&str]) -> Value {
            let body = json!({
                "name": "Hook", "type": "webhook", "url": self.target.url(HOOK), "events": events,
            });
            let made = node.api.post("/api/connect/integrations/", body).await;
            assert_eq!(made.status, 201, "{made:?}");
            made.body["id"].clone()
        }

        /// Returns how often it was sent each event that has these values, by the id of the message.
        fn sent(&self, wanted: &Value) -> BTreeMap<String, usize> {
            let mut sent = BTreeMap::new();
            for request in self.target.requests(HOOK) {
                let body = request.json();
                let has = |(key, value): (&String, &Value)| body[key] == *value;
                if wanted.as_object().unwrap().iter().all(has) {
                    *sent.entry(request.header("webhook-id").to_owned()).or_default() += 1;
                }
            }
            sent
        }

        async fn is_sent(&self, wanted: &Value, node: &Node) {
            let what = format!("{wanted}: {:?}\n{}", self.bodies(), node.program.output());
            until_async(&what, async || !self.sent(wanted).is_empty()).await;
        }

        fn bodies(&self) -> Vec<String> {
            self.target.requests(HOOK).into_iter().map(|it| it.body).collect()
        }
    }

    /// Asks for a channel until it plays: a new cluster opens nothing for 20 s.
    async fn plays(node: &Node, channel: &ClusterChannel, agent: &str) -> Player {
        loop {
            let request = Request::get(channel.path()).header("User-Agent", agent);
            let player = Player::ask(node.address, request).await;
            match player.status().await {
                200 => return player,
                status => assert_eq!(status, 503, "{}", node.program.output()),
            }
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn events_of_all_nodes_are_delivered_by_the_one_that_writes_and_by_its_successor() {
        let nats = nats();
        let (provider, hook) = (Provider::start(), Hook::start());
        let machine = Machine::new("attic", &nats);
        let [news] = fill(&machine, &provider, ["news"], &[]).await;
        let [attic, cellar] = two_nodes(machine, Machine::new("cellar", &nats)).await;
        let edge = join(&attic, Machine::new("edge", &nats), "edge").await;
        let events = ["channel_start", "client_connect", "client_disconnect"];
        hook.subscribe(&cellar, &events).await;

        // Events of a node that only follows, and of one that does not know who wants them.
        let player = plays(&cellar, &news, "viewer of cellar").await;
        let of_edge = plays(&edge, &news, "viewer of edge").await;
        let connected = |agent: &str| json!({ "event_type": "client_connect", "user_agent": agent });
        for agent in ["viewer of cellar", "viewer of edge"] {
            hook.is_sent(&connected(agent), &attic).await;
            assert!(hook.sent(&connected(agent)).values().all(|it| *it == 1), "{:?}", hook.bodies());
        }
        let started = hook.sent(&json!({ "event_type": "channel_start" }));
        assert_eq!(started.into_values().collect::<Vec<_>>(), [1]);

        edge.killed().await;
        drop(of_edge);

        // An event of cellar that the other node has taken, and that its target refuses.
        let leaver = plays(&cellar, &news, "leaver").await;
        hook.is_sent(&connected("leaver"), &attic).await;
        hook.refuse(true);
        leaver.leave().await;
        let left = json!({ "event_type": "client_disconnect", "user_agent": "leaver" });
        hook.is_sent(&left, &attic).await;
        let attic = attic.killed().await;
        let n_refused = hook.sent(&left).into_values().collect::<Vec<_>>();

        // No node delivers when this event happens. The other node takes over, and delivers it.
        let late = plays(&cellar, &news, "late viewer").await;
        hook.refuse(false);
        hook.is_sent(&connected("late viewer"), &cellar).await;
        assert_eq!(hook.sent(&connected("late viewer")).into_values().collect::<Vec<_>>(), [1]);
        assert_eq!(hook.sent(&left).into_values().collect::<Vec<_>>(), n_refused);

        // What lay on the disk of the lost node comes with it, under its id.
        let attic = attic.serve(&[]).await;
        let what = format!("the refused event: {}", attic.program.output());
        until_async(&what, async || hook.sent(&left).into_values().collect::<Vec<_>>() > n_refused).await;
        assert_eq!(hook.sent(&left).len(), 1);
        late.leave().await;
        player.leave().await;
    }

    /// A webhook gets one message about each state of a node, however many nodes see it: from the node that writes, also if
    /// that was lost itself.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_integration_gets_each_state_of_a_node_once() {
        let nats = nats();
        let hook = Hook::start();
        let attic = Machine::new("attic", &nats).with_admin().await;
        let [attic, cellar] = two_nodes(attic, Machine::new("cellar", &nats)).await;
        hook.subscribe(&attic, &["node_state"]).await;
        let told = |node: &str, state: &str| {
            let wanted = json!({ "event_type": "node_state", "node": node, "state": state });
            hook.sent(&wanted).into_values().collect::<Vec<_>>()
        };
        let is_told = async |node: &str, state: &str, teller: &Node| {
            let what = format!("{node} to be {state}: {:?}\n{}", hook.bodies(), teller.program.output());
            until_async(&what, async || !told(node, state).is_empty()).await;
        };

        // A node that does not write stops.
        let cellar = cellar.stops().await;
        is_told("cellar", "left", &attic).await;
        let cellar = cellar.serve(&[]).await;
        is_told("cellar", "alive", &attic).await;

        // The node that writes is lost. The other one tells so once it writes.
        let attic = attic.killed().await;
        is_told("attic", "expired", &cellar).await;
        // Both see this.
        let mut attic = attic.serve(&[]).await;
        is_told("attic", "alive", &cellar).await;
        attic.logs_in().await;
        attic.sees("cellar").await;

        // The node that writes stops.
        let cellar = cellar.stops().await;
        is_told("cellar", "left", &attic).await;
        until_async("the second stop", async || told("cellar", "left").len() == 2).await;
        let _cellar = cellar.serve(&[]).await;
        until_async("the second start", async || told("cellar", "alive").len() == 2).await;
        assert_eq!(told("cellar", "left"), [1, 1]);
        assert_eq!(told("attic", "expired"), [1]);
        assert_eq!(told("attic", "left"), [0; 0]);
    }

    /// A plugin that says where it runs, and counts its runs in its storage.
    const PLUGIN: &str = "
class Plugin:
    actions = [{'id': 'where', 'label': 'Where'}]

    def run(self, action, params, context):
        context.storage.set('runs', context.storage.get('runs', 0) + 1)
        return {'status': 'ok', 'message': __file__, 'runs': context.storage.get('runs')}
";

    /// Asks a node to run the plugin, until it runs in the folder of a node. Returns how many runs it has stored.
    async fn runs_at(asked: &Node, folder: &Path) -> u64 {
        let mut last = None;
        let body = json!({ "action": "where", "params": {} });
        let path = format!("{PLUGINS}finder/run/");
        let folder = folder.display().to_string();
        until_async(&format!("the plugin to run in {folder}: {}", asked.program.output()), async || {
            let reply = asked.api.post(&path, body.clone()).await;
            let is_there = reply.body["result"]["message"].as_str().is_some_and(|it| it.starts_with(&folder));
            last = Some(reply);
            is_there
        })
        .await;
        let last = last.expect("it was asked");
        assert_eq!(last.status, 200);
        last.body["result"]["runs"].as_u64().expect("a number of runs")
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_plugin_runs_on_the_node_that_writes_and_moves_with_it() {
        let nats = nats();
        let attic = Machine::new("attic", &nats).with_admin().await;
        let [attic, cellar] = two_nodes(attic, Machine::new("cellar", &nats)).await;
        // Through the node that only passes requests on; it becomes ready at the other one.
        install(&cellar.program, &cellar.api, "finder", &package("finder", json!({}), PLUGIN)).await;
        let (of_attic, of_cellar) =
            (attic.machine.folder.path().to_owned(), cellar.machine.folder.path().to_owned());
        let n_runs = runs_at(&cellar, &of_attic).await;
        let shown = cellar.api.get(PLUGINS).await.body;
        assert_eq!(shown["plugins"][0]["state"], "ready", "{shown}");
        // The other node has the code, and does not run it.
        until_async(&format!("the code at cellar: {}", cellar.program.output()), async || {
            of_cellar.join("plugins/finder/plugin.py").exists()
        })
        .await;

        let attic = attic.killed().await;
        assert!(runs_at(&cellar, &of_cellar).await > n_runs, "it finds its values");
        let mut attic = attic.serve(&[]).await;
        attic.logs_in().await;
        runs_at(&attic, &of_cellar).await;
        let runs = attic.api.get(&format!("{PLUGINS}finder/runs/")).await.body;
        assert!(runs["runs"].as_array().is_some_and(|it| it.len() >= 2), "{runs}");

        let deleted = attic.api.delete(&format!("{PLUGINS}finder/delete/")).await;
        assert_eq!(deleted.status, 200, "{deleted:?}");
        for folder in [of_attic, of_cellar] {
            until_async("the code is gone", async || !folder.join("plugins/finder").exists()).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn values_of_plugins_are_shared_once_the_upgrade_of_the_cluster_is_finalized() {
        let nats = nats();
        let mut attic = upgraded(Machine::new("attic", &nats).with_admin().await).await;
        attic.logs_in().await;
        attic.creates("attic writes").await;
        install(&attic.program, &attic.api, "finder", &package("finder", json!({}), PLUGIN)).await;
        let folder = attic.machine.folder.path().to_owned();
        let file = folder.join("plugin-data/finder/storage.json");
        assert_eq!(runs_at(&attic, &folder).await, 1);
        assert!(file.exists(), "nodes of the version before do not know these records");

        let finalized = attic.api.post("/api/core/nodes/finalize/", json!({})).await;
        assert_eq!(finalized.status, 200, "{finalized:?}");
        assert_eq!(runs_at(&attic, &folder).await, 2);
        assert!(file.exists(), "the process goes on as it began");
        let restarted = attic.api.post(&format!("{PLUGINS}finder/restart/"), json!({})).await;
        assert_eq!(restarted.status, 200, "{restarted:?}");
        assert_eq!(runs_at(&attic, &folder).await, 3);
        assert!(!file.exists(), "{}", attic.program.output());
    }

    /// A plugin that writes down its runs, and does not end one for an event while a file is there.
    const NOTES: &str = "
import json, os, time
class Plugin:
    def run(self, action, params, context):
        with open(os.path.join(context.data_dir, 'runs'), 'a') as file:
            file.write(json.dumps({'cause': context.cause}) + '\\n')
        while action == 'note' and os.path.exists(os.path.join(context.data_dir, 'hold')):
            time.sleep(0.05)
        return {'status': 'ok', 'message': 'done'}
";

    /// Returns how often the plugin ran on a machine for this cause.
    fn n_runs(files: &Path, cause: &str) -> usize {
        let text = std::fs::read_to_string(files.join("runs")).unwrap_or_default();
        text.lines().filter(|it| it.contains(&format!("\"{cause}\""))).count()
    }

    /// Returns the ids of the known runs of the plugin for events that are over, or are not.
    async fn event_runs(node: &Node, is_over: bool) -> Vec<String> {
        let runs = node.api.get(&format!("{PLUGINS}notes/runs/")).await.body["runs"].clone();
        let runs = runs.as_array().cloned().unwrap_or_default();
        let wanted = |it: &&Value| it["cause"] == "event" && it["ended_at"].is_string() == is_over;
        runs.iter().filter(wanted).map(|it| it["id"].to_string()).collect()
    }

    /// Makes an account, whose import is an event.
    async fn imports(node: &Node, provider: &Provider, name: &str) {
        let account = json!({ "name": name, "server_url": provider.url(LIST) });
        let made = node.api.post("/api/m3u/accounts/", account).await;
        assert_eq!(made.status, 201, "{made:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn schedules_and_event_actions_of_plugins_move_with_the_writing_and_repeat_what_was_lost() {
        let (nats, provider) = (nats(), Provider::start());
        let list = "#EXTM3U\n#EXTINF:-1,News\nhttp://127.0.0.1:9/news.ts\n";
        provider.path(LIST).answers(MockResponse::text("audio/x-mpegurl", list));
        let machines = ["attic", "cellar"].map(|it| Machine::new(it, &nats));
        for it in &machines {
            // A gateway that runs as root gives its plugins another user, who has to reach the data folder.
            std::fs::set_permissions(it.folder.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        }
        let [attic, cellar] = machines;
        let [attic, cellar] = two_nodes(attic.with_admin().await, cellar).await;
        let actions = json!([
            { "id": "note", "label": "Note", "events": ["m3u_refresh"] },
            { "id": "tick", "label": "Tick", "schedule": "* * * * *" },
        ]);
        let archive = package("notes", json!({ "actions": actions }), NOTES);
        install(&cellar.program, &cellar.api, "notes", &archive).await;
        let files = |it: &Node| it.machine.folder.path().join("plugin-data/notes/files");
        let (of_attic, of_cellar) = (files(&attic), files(&cellar));
        until_async("the files of the plugin", async || of_attic.exists()).await;
        std::fs::write(of_attic.join("hold"), "").unwrap();

        // Begun on a node that is killed before it ends.
        imports(&cellar, &provider, "First").await;
        let what = format!("the run for the event: {}", attic.program.output());
        until_async(&what, async || n_runs(&of_attic, "event") > 0).await;
        let begun = event_runs(&attic, false).await;
        assert_eq!(begun.len(), 1);
        let attic = attic.killed().await;
        cellar.creates("the other node writes").await;
        imports(&cellar, &provider, "Second").await;
        let what = format!("the event on the other node: {}", cellar.program.output());
        until_async(&what, async || n_runs(&of_cellar, "event") == 1).await;
        // At the next minute, or what was due when no node wrote.
        while n_runs(&of_cellar, "schedule") == 0 {
            sleep(Duration::from_millis(100)).await;
        }

        let attic = attic.serve(&[]).await;
        let what = format!("the lost run again: {}", attic.program.output());
        until_async(&what, async || event_runs(&cellar, true).await.contains(&begun[0])).await;
        assert_eq!((n_runs(&of_cellar, "event"), n_runs(&of_attic, "event")), (2, 1));
    }
}
