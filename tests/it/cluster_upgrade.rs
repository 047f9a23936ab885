//! Nodes of several versions: gateways in processes of their own, NATS, and a provider that counts its sockets.

mod night {
    use std::io::{Write as _, stderr};
    use std::time::Duration;

    use cluster::codec::{encode, key};
    use cluster::nats::NatsEngine;
    use cluster::{Engine, NodeInfo, NodeLoad, Revision, SwapOutcome, node_id};
    use domain::cluster::record::{
        BootId, ClusterRecord, Incarnation, MemberRecord, MemberState, ProcessId, RecordKey,
    };
    use domain::cluster::version::{OWN_VERSIONS, VersionRange};
    use serde_json::{Value, json};
    use tokio::time::Instant;
    use uuid::Uuid;

    use crate::support::binary::BINARY;
    use crate::support::client::{Ended, Player};
    use crate::support::cluster::{Machine, Node, nats, nodes};
    use crate::support::cluster_content::fill_account;
    use crate::support::until_async;
    use crate::support::upstream::Provider;

    const NEWS: &str = "News";
    /// Connections that the account of the channel allows.
    const LIMIT: usize = 2;
    /// More than a second of the stream.
    const SOME: u64 = 60_000;

    /// Returns the programs before and after the upgrade. `just upgrade-test` names them.
    fn programs() -> [String; 2] {
        ["HEADWATER_OLD", "HEADWATER_NEW"].map(|name| {
            let named = std::env::var(name).ok().filter(|it| !it.is_empty());
            named.unwrap_or_else(|| BINARY.to_owned())
        })
    }

    /// Asks for a channel until it plays. A new cluster grants nothing for 20 s.
    async fn plays(node: &Node, path: &str) -> Player {
        let mut player = None;
        until_async(&format!("{NEWS} at {}: {}", node.machine.name, node.program.output()), async || {
            let asked = Player::watch(node.address, path).await;
            let is_playing = asked.status().await == 200;
            player = Some(asked);
            is_playing
        })
        .await;
        let player = player.expect("waited for it");
        player.sees(NEWS).await;
        player
    }

    /// A node with the players that a balancer has sent there.
    struct Place {
        node: Node,
        players: Vec<Player>,
    }

    impl Place {
        async fn is_playing(&self) {
            for player in &self.players {
                player.more_bytes(SOME).await;
                let name = self.node.machine.name;
                assert!(player.is_watching(), "a stream ended on {name}: {}", self.node.program.output());
                player.received(|it| it.ts.assert_clean());
            }
        }
    }

    /// Gives the channel and the jobs of a node to others.
    async fn drain(node: &Node, path: &str) {
        let name = node.machine.name;
        let drained = node.api.post(&format!("/api/core/nodes/{name}/drain/"), json!({})).await;
        assert_eq!(drained.status, 204, "{drained:?}");
        let uuid = path.rsplit('/').next().unwrap();
        until_async(&format!("{name} to give its channel away: {}", node.program.output()), async || {
            let status: Value = node.api.get(&format!("/proxy/ts/status/{uuid}")).await.body;
            status["source_node"].as_str().is_some_and(|it| it != name)
        })
        .await;
        assert_eq!(node.api.get("/readyz").await.status, 503);
    }

    /// Stops a node, whose players go to another one, and starts it again with another program.
    async fn replace(place: Place, other: &mut Place, path: &str, program: &str) -> Place {
        let Place { node, players } = place;
        let name = node.machine.name;
        let moving = async {
            for player in players {
                assert_eq!(player.ended().await, Ended::Whole);
                player.received(|it| it.ts.assert_clean());
                let since = Instant::now();
                other.players.push(plays(&other.node, path).await);
                let (to, time) = (other.node.machine.name, since.elapsed());
                let _ = writeln!(stderr(), "a player of {name} sees the picture at {to} after {time:?}");
            }
        };
        let (mut machine, ()) = tokio::join!(node.stops(), moving);
        program.clone_into(&mut machine.program);
        let mut node = machine.serve(&[]).await;
        node.logs_in().await;
        Place { node, players: Vec::new() }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn three_nodes_get_another_version_one_after_another_while_viewers_play() {
        let [old, new] = programs();
        let nats = nats();
        let provider = Provider::start();
        let machines = ["attic", "barn", "cellar"].map(|name| {
            let mut machine = Machine::new(name, &nats);
            machine.program.clone_from(&old);
            machine
        });
        let path = fill_account(&machines[0], &provider, &[NEWS], LIMIT).await.remove(0);
        provider.limit("anna", LIMIT, 403, Duration::ZERO);
        let mut places = Vec::new();
        for node in nodes(machines).await {
            let players = vec![plays(&node, &path).await];
            places.push(Place { node, players });
        }
        let newest = json!(OWN_VERSIONS.newest);
        let written = places[0].node.api.get("/api/core/nodes/").await.body["written_version"].take();
        // Two programs may write the same version.
        let raises_version = written != newest;
        let mut names = vec![NEWS.to_owned()];
        for n in 0..places.len() {
            // Those that were not replaced yet come first.
            let place = places.remove(0);
            drain(&place.node, &path).await;
            if raises_version && n == places.len() {
                // The node that writes is one of the others now, which know this.
                let name = place.node.machine.name;
                until_async(&format!("{name} to be named as too old"), async || {
                    let reply = places[0].node.api.post("/api/core/nodes/finalize/", json!({})).await;
                    assert_ne!(reply.status, 200, "{reply:?}");
                    reply.status == 409 && reply.text("detail").contains(&format!("no later one: {name}."))
                })
                .await;
            }
            let next = replace(place, &mut places[0], &path, &new).await;
            places.push(next);
            for (one, other) in [(0, 2), (1, 2), (2, 0), (2, 1)] {
                places[one].node.sees(places[other].node.machine.name).await;
            }
            let player = plays(&places[2].node, &path).await;
            places[2].players.push(player);
            for place in &places {
                place.is_playing().await;
            }
            let name = format!("Channel {n}");
            places[2].node.creates(&name).await;
            names.push(name);
            names.sort();
            for place in &places {
                place.node.lists(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
            }
        }
        let mut raised = Value::Null;
        until_async("the version to be raised", async || {
            let reply = places[0].node.api.post("/api/core/nodes/finalize/", json!({})).await;
            raised = reply.body;
            reply.status == 200
        })
        .await;
        let _ = writeln!(stderr(), "{raised}");
        assert_eq!((&raised["previous_version"], &raised["written_version"]), (&written, &newest));
        for Place { node, .. } in &places {
            until_async(&format!("{} to write the newest version", node.machine.name), async || {
                let body = node.api.get("/api/core/nodes/").await.body;
                let nodes = body["nodes"].as_array().cloned().unwrap_or_default();
                body["written_version"] == newest && nodes.iter().all(|it| it["fits"] == true)
            })
            .await;
        }
        let status = places[0].node.machine.succeeds(&["cluster", "status"]).await;
        assert!(status.contains(&format!("The nodes write version {newest}")), "{status}");
        for place in &places {
            place.is_playing().await;
        }
        let (peak, refusals) = (provider.peak_of("anna"), provider.refusals());
        let _ = writeln!(stderr(), "at most {peak} connections at once, {} in all", provider.accepted());
        assert!(peak <= LIMIT && refusals == 0, "{peak}, {refusals}: {:#?}", provider.overlaps("anna"));
        for Place { node, players } in places {
            drop(players);
            node.stops().await;
        }
    }

    /// Writes the record of a node of a later version, which has joined this cluster.
    async fn announce(nats: &NatsEngine, name: &str, versions: VersionRange, written: u32) {
        let record = MemberRecord {
            state: MemberState::Left,
            boot: BootId(Uuid::nil()),
            process: ProcessId(1),
            write: 1,
            incarnation: None,
            over: Incarnation(0),
            closed_after: Incarnation(0),
            closed: Incarnation(0),
            highest: Revision(0),
            settled: true,
        };
        let node = NodeInfo {
            name: name.to_owned(),
            certificate: Some(77),
            versions,
            load: NodeLoad { written: Some(written), ..NodeLoad::default() },
            ..NodeInfo::default()
        };
        let mut state = nats.state();
        let session = state.wait_for(|it| it.session().is_some()).await.unwrap().session().unwrap();
        let key = key(RecordKey::Member(node_id(name)));
        let value = encode(&ClusterRecord::Member(record), &node);
        let outcome = nats.swap(session.number, &key, Revision(0), Some(value)).await;
        assert!(matches!(outcome, SwapOutcome::Applied(_)), "{outcome:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_node_that_cannot_read_what_the_others_write_says_so_and_does_not_run() {
        let nats = nats();
        let attic = Machine::new("attic", &nats).with_admin().await;
        let mut nodes = nodes([attic]).await;
        let mut attic = nodes.remove(0);
        let mut token = String::new();
        until_async("a join token", async || {
            let (code, text) = attic.machine.command(&["cluster", "token"]).await;
            text.trim().clone_into(&mut token);
            code == Some(0)
        })
        .await;
        let status = attic.machine.succeeds(&["cluster", "finalize"]).await;
        assert!(status.contains("none of them reads a later one"), "{status}");

        let later = OWN_VERSIONS.newest + 1;
        let engine = NatsEngine::start(nats.options());
        let versions = VersionRange { oldest: OWN_VERSIONS.newest, newest: later };
        announce(&engine, "den", versions, later).await;
        let reason = format!("the cluster writes version {later} of its data");
        assert_eq!(attic.program.ended().await.code(), Some(1), "{}", attic.program.output());
        let output = attic.program.output();
        assert!(output.contains(&reason) && output.contains("update this node"), "{output}");

        let status = attic.machine.succeeds(&["cluster", "status"]).await;
        assert!(status.contains(&format!("The nodes write version {later}")), "{status}");
        assert!(status.contains(&format!("attic reads {OWN_VERSIONS} and cannot be a member")), "{status}");
        // Neither a node that was off nor a new one joins.
        let (code, output) = attic.machine.run(&["serve"]).outcome().await;
        assert!(code == Some(1) && output.contains(&reason), "{code:?}: {output}");
        assert!(!output.contains("this node is a member"), "{output}");
        let (code, output) = Machine::new("barn", &nats).command(&["serve", "--join", &token]).await;
        assert!(code == Some(1) && output.contains(&reason), "{code:?}: {output}");
    }
}
