//! Nodes of a cluster share the limits of accounts: two gateways in processes of their own, NATS, and a provider that
//! counts its own connections.

mod night {
    use std::time::Duration;

    use cluster::testing::NatsServers;
    use jiff::{Span, Timestamp};
    use serde_json::{Value, json};
    use tokio::time::Instant;

    use crate::support::api::Api;
    use crate::support::binary::Binary;
    use crate::support::client::Player;
    use crate::support::cluster::{Machine, Node, nats, two_nodes};
    use crate::support::signal::Picture;
    use crate::support::upstream::{MockResponse, Provider};
    use crate::support::{tools, until_async};

    const LIST: &str = "/lists/all.m3u";
    /// Longest time until a slot of a lost node is granted again: 23 s until it has expired, and 30 s of cooling. This only
    /// ends a wait that would last forever.
    const WAIT_MAX: Duration = Duration::from_secs(300);

    /// Asks for a channel until it plays.
    async fn plays(node: &Node, path: &str, picture: &str) -> Player {
        let begin = Instant::now();
        loop {
            let player = Player::watch(node.address, path).await;
            let status = player.status().await;
            if status == 200 {
                player.sees(picture).await;
                return player;
            }
            assert_eq!(status, 503);
            let (name, output) = (node.machine.name, node.program.output());
            assert!(begin.elapsed() < WAIT_MAX, "no slot on {name}:\n{output}");
        }
    }

    async fn slots(node: &Node) -> Value {
        let seen = node.api.get("/api/m3u/slots/").await.body;
        let profiles = seen["profiles"].as_array().unwrap();
        profiles.iter().find(|it| it["account_name"] == "Provider").unwrap().clone()
    }

    /// Starts two nodes with the channels `One` and `Two` of an account with one connection. Returns them with the paths of
    /// the channels.
    async fn start(provider: &Provider, nats: &NatsServers, second: Machine) -> ([Node; 2], [String; 2]) {
        let mut list = String::from("#EXTM3U\n");
        for name in ["One", "Two"] {
            let path = format!("/live/anna/{name}.ts");
            provider.path(&path).plays(Picture::new(name).bits_per_second(300_000).frames_per_gop(3));
            list.push_str(&format!("#EXTINF:-1,{name}\n{}\n", provider.url(&path)));
        }
        provider.path(LIST).answers(MockResponse::text("audio/x-mpegurl", list));
        let machine = Machine::new("attic", nats);
        let folder = machine.folder.path().display().to_string();
        let mut program = Binary::start(&["serve", "--data-dir", &folder]);
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
        let nodes = two_nodes(machine, second).await;
        (nodes, paths.try_into().unwrap())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_gateways_never_open_more_connections_than_the_account_allows() {
        let provider = Provider::start();
        let nats = nats();
        let ([attic, cellar], [one, two]) = start(&provider, &nats, Machine::new("cellar", &nats)).await;
        provider.limit("anna", 1, 403, Duration::ZERO);

        // The first one has it as long as it watches.
        let first = plays(&attic, &one, "One").await;
        let refused = Player::watch(cellar.address, &two).await;
        assert_eq!(refused.status().await, 503);
        let seen = slots(&cellar).await;
        assert_eq!((&seen["current_viewers"], &seen["free"]), (&json!(1), &json!(0)), "{seen}");
        assert_eq!((provider.open(), provider.peak_of("anna")), (1, 1));
        first.more_bytes(50_000).await;
        first.leave().await;
        // The channel lingers, and yields to a viewer of the other node.
        let second = plays(&cellar, &two, "Two").await;
        assert_eq!(provider.peak_of("anna"), 1, "{:?}", provider.overlaps("anna"));

        // The slot of a node that is lost is granted after the time in which the node would have closed its connection.
        let killed = Instant::now();
        let cellar = cellar.vanishes().await;
        drop(second);
        let third = plays(&attic, &one, "One").await;
        assert!(killed.elapsed() > Duration::from_secs(40), "{:?}", killed.elapsed());
        third.leave().await;

        // A node that returns takes part again, and one that stops gives its slot back at once.
        let cellar = cellar.serve(&[]).await;
        let fourth = plays(&cellar, &two, "Two").await;
        cellar.stops().await;
        drop(fourth);
        until_async("a free slot", async || slots(&attic).await["free"] == 1).await;
        let _fifth = plays(&attic, &one, "One").await;
        assert_eq!(
            (provider.peak_of("anna"), provider.refusals()),
            (1, 0),
            "{:?}",
            provider.overlaps("anna")
        );
    }

    /// Longest time from the end of a process to the next connection of its account, which another node opens.
    const TOLD_AFTER: Duration = Duration::from_secs(3);
    /// Longest time until a frozen process is killed: 10 s after its last report.
    const KILLED_AFTER: Duration = Duration::from_secs(12);

    /// A gateway ends while its account is full, and its guard tells the other node. The viewer there keeps its response.
    async fn takes_over_within(time: Duration, signal: &str) {
        let provider = Provider::start();
        let nats = nats();
        let ([attic, cellar], [one, two]) = start(&provider, &nats, Machine::new("cellar", &nats)).await;
        provider.limit("anna", 1, 403, Duration::ZERO);
        let _here = plays(&attic, &one, "One").await;
        let there = plays(&cellar, &one, "One").await;
        let uuid = one.rsplit('/').next().unwrap();
        cellar.until_origin_is(uuid, "attic").await;
        assert_eq!(Player::watch(cellar.address, &two).await.status().await, 503, "the account is full");
        let n_accepted = provider.accepted();
        let next = Picture::new("Next").bits_per_second(300_000).frames_per_gop(3);
        provider.path("/live/anna/One.ts").plays(next);

        let (ended, mut attic) = (Instant::now(), attic);
        attic.program.signal(signal);
        attic.program.ended().await;
        until_async("the next connection", async || provider.accepted() > n_accepted).await;
        assert!(ended.elapsed() < time, "{:?}:\n{}", ended.elapsed(), cellar.program.output());
        there.sees("Next").await;
        there.more_bytes(50_000).await;
        assert!(there.is_watching());
        assert_eq!(cellar.channel(uuid).await["node_role"], "origin");

        // A late message of the guard would end the membership of the next process.
        let attic = attic.machine.serve(&[]).await;
        cellar.sees("attic").await;
        let _again = plays(&attic, &one, "Next").await;
        there.more_bytes(50_000).await;
        assert_eq!(
            (provider.peak_of("anna"), provider.refusals()),
            (1, 0),
            "{:?}",
            provider.overlaps("anna")
        );
    }

    // Holds T-clu.1.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_viewers_of_other_nodes_play_on_3_s_after_the_end_of_a_process_that_was_killed() {
        takes_over_within(TOLD_AFTER, "KILL").await;
    }

    // Holds T-clu.1.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_viewers_of_other_nodes_play_on_3_s_after_the_guard_has_killed_a_frozen_process() {
        takes_over_within(KILLED_AFTER + TOLD_AFTER, "STOP").await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_gateway_without_nats_closes_its_limited_connection_before_the_other_opens_one() {
        let provider = Provider::start();
        let mut nats = nats();
        let ([attic, cellar], [one, two]) = start(&provider, &nats, Machine::new("cellar", &nats)).await;
        provider.limit("anna", 1, 403, Duration::ZERO);
        let first = plays(&attic, &one, "One").await;
        nats.kill(0);
        until_async("the connection to be closed", async || provider.open() == 0).await;
        // Otherwise both nodes want the slot when NATS is back, and either may get it.
        drop(first);
        nats.restart(0);
        let _second = plays(&cellar, &two, "Two").await;
        assert_eq!(
            (provider.peak_of("anna"), provider.refusals()),
            (1, 0),
            "{:?}",
            provider.overlaps("anna")
        );
    }

    /// Returns when a node last saw a new record of another one, by the name of that one.
    async fn last_seen(api: &Api, name: &str) -> Value {
        let nodes = api.get("/api/core/nodes/").await.body["nodes"].clone();
        let row = nodes.as_array().unwrap().iter().find(|it| it["name"] == name).unwrap().clone();
        assert_eq!(row["state"], "alive", "{row}");
        row["last_seen"].clone()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_clock_that_jumps_ends_no_membership_and_no_stream() {
        let (provider, nats) = (Provider::start(), nats());
        let folder = tempfile::tempdir().unwrap();
        let clock = folder.path().join("clock");
        let jumps = |by: &str| std::fs::write(&clock, by).unwrap();
        jumps("+0");
        let command = tools::with_clock(&clock);
        let second = Machine::new_at("cellar", &nats, command, "127.0.0.1".to_owned());
        let ([attic, cellar], [one, two]) = start(&provider, &nats, second).await;
        provider.limit("anna", 1, 403, Duration::ZERO);
        let viewer = plays(&cellar, &one, "One").await;
        // Tokens expire by the clock of the node, and keys do not.
        let made = attic.api.post("/api/accounts/api-keys/generate/", json!({})).await;
        let by_key = Api::stranger_at(cellar.address).key(made.text("key"));
        until_async("the key at the other node", async || by_key.get("/api/core/nodes/").await.status == 200)
            .await;
        let before = Timestamp::now();
        for (by, is_there) in [
            ("+3d", (|now, before| now > before + Span::new().hours(71)) as fn(Timestamp, Timestamp) -> bool),
            ("-9d", |now, before| now < before - Span::new().hours(215)),
        ] {
            jumps(by);
            until_async("the clock of the node to jump", async || {
                let seen = last_seen(&by_key, "attic").await;
                is_there(seen.as_str().unwrap().parse().unwrap(), before)
            })
            .await;
            // More renewals than fit into the time after which a node is lost; the account stays full all the time.
            for _ in 0..8 {
                let seen = last_seen(&attic.api, "cellar").await;
                until_async("a renewal", async || last_seen(&attic.api, "cellar").await != seen).await;
                assert_eq!(slots(&attic).await["free"], 0);
            }
            viewer.more_bytes(100_000).await;
        }
        // The channel plays on both nodes, and the other one has no slot.
        let edge = Player::watch(attic.address, &one).await;
        edge.sees("One").await;
        assert_eq!(Player::watch(attic.address, &two).await.status().await, 503);
        viewer.more_bytes(100_000).await;
        assert_eq!(
            (provider.peak_of("anna"), provider.refusals()),
            (1, 0),
            "{:?}",
            provider.overlaps("anna")
        );
    }
}
