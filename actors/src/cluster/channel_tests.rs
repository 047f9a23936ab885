//! Live channels of several nodes, over the engine in memory and a provider in memory, with paused time.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use cluster::testing::{MemoryEngine, MemoryStore};
use cluster::{Engine, NodeInfo, NodeLoad, node_id};
use domain::cluster::record::NodeId;
use media::ring::EndReason;
use media::testing::{Behaviour, Break, TsReader, labels_in};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::clock::BootClock;
use super::{BootTimeReader, Cluster, ClusterLeases, ClusterParts, NodeDrain};
use crate::channel::{
    ChannelNode, ChannelParts, NodeConnecting, NodeDialer, NodeSocket, SharedChannels, SwitchOutcome,
    SwitchTo, WatchReply,
};
use crate::slots::{LeaseTable, SlotTable};
use crate::testing::{Scenario, Stream, TestViewer, channel, settings, stream};
use crate::timeline::RunEntryKind;

pub(super) const SECOND: Duration = Duration::from_secs(1);
/// After this time in a new cluster, nodes may become origins.
const SETTLED: Duration = Duration::from_secs(30);
/// Time for which viewers of a drained node keep their streams.
const DRAIN_TIME: Duration = Duration::from_secs(60);

/// The nodes that can be reached, and the connections to each.
#[derive(Default)]
pub(super) struct Network {
    nodes: Mutex<HashMap<NodeId, (&'static str, Arc<SharedChannels>)>>,
    connections: Mutex<Vec<(NodeId, JoinHandle<io::Result<()>>)>>,
}

impl Network {
    /// Closes all connections to a node, and lets nobody connect any more.
    pub(super) fn cut(&self, name: &str) {
        self.nodes.lock().remove(&node_id(name));
        self.break_connections(name);
    }

    /// Closes all connections to a node.
    fn break_connections(&self, name: &str) {
        let id = node_id(name);
        self.connections.lock().iter().filter(|it| it.0 == id).for_each(|it| it.1.abort());
    }

    /// Returns how many connections to a node are open.
    fn n_open(&self, name: &str) -> usize {
        let id = node_id(name);
        self.connections.lock().iter().filter(|it| it.0 == id && !it.1.is_finished()).count()
    }
}

struct MemoryNetworkDialer(Arc<Network>);

impl NodeDialer for MemoryNetworkDialer {
    fn name(&self, node: NodeId) -> String {
        self.0.nodes.lock().get(&node).map_or("?", |it| it.0).to_owned()
    }

    fn full_nodes(&self) -> Vec<NodeId> {
        let nodes = self.0.nodes.lock();
        let mut all: Vec<_> =
            nodes.iter().filter(|it| it.1.1.may_originate()).map(|it| (it.1.0, *it.0)).collect();
        all.sort_unstable();
        all.into_iter().map(|it| it.1).collect()
    }

    fn connect(&self, node: NodeId) -> NodeConnecting {
        let network = Arc::clone(&self.0);
        Box::pin(async move {
            let found = network.nodes.lock().get(&node).map(|it| Arc::clone(&it.1));
            let shared = found.ok_or(io::ErrorKind::ConnectionRefused)?;
            let (near, far) = tokio::io::duplex(64 << 10);
            network.connections.lock().push((node, tokio::spawn(shared.serve(far))));
            let near: NodeSocket = Box::new(near);
            Ok(near)
        })
    }
}

/// Grants the leases of a node through the cluster.
type Leases = Box<dyn FnOnce(Arc<SlotTable>) -> Arc<dyn LeaseTable>>;

/// A node with its system.
pub(super) struct Node {
    name: &'static str,
    pub(super) scenario: Scenario,
    pub(super) engine: MemoryEngine,
    cluster: Cluster,
    pub(super) drain: Arc<NodeDrain>,
}

/// Nodes with one provider and one engine.
pub(super) struct Nodes {
    pub(super) network: Arc<Network>,
    store: MemoryStore,
}

impl Nodes {
    /// Adds a node; one with `edge` in its name is an edge node. `start` starts its system with these leases.
    async fn join<S: Future<Output = Scenario>>(
        &self,
        name: &'static str,
        start: impl FnOnce(Leases) -> S,
    ) -> Node {
        let (may_originate, drain) = (!name.contains("edge"), Arc::new(NodeDrain::new(DRAIN_TIME)));
        let (engine, begin) = (self.store.connect(), Instant::now());
        let info = NodeInfo { name: name.to_owned(), ..NodeInfo::default() };
        let (link, ends, receivers) = super::link();
        let parts = ClusterParts {
            link: link.clone(),
            slots: receivers.slots,
            tables: receivers.tables,
            engine: Arc::new(engine.clone()),
            node: node_id(name),
        };
        let leases: Leases =
            Box::new(move |local| ClusterLeases::start(local, parts, BootTimeReader::Tokio(begin)));
        let scenario = start(leases).await;
        scenario.system.share_channels(ChannelParts {
            name: name.to_owned(),
            link: link.clone(),
            effects: receivers.channels,
            dialer: Arc::new(MemoryNetworkDialer(Arc::clone(&self.network))),
            engine: Arc::new(engine.clone()),
            node: node_id(name),
            may_originate,
            drain: Arc::clone(&drain),
        });
        let shared = scenario.system.shared_channels().unwrap();
        self.network.nodes.lock().insert(node_id(name), (name, shared));
        let load = Arc::new(NodeLoad::default);
        let clock = BootClock::Tokio(begin);
        let connection: Arc<dyn Engine> = Arc::new(engine.clone());
        let events = scenario.system.events();
        let cluster =
            Cluster::start_with((link, ends), connection, info, load, events, (None, clock, || ()), None)
                .unwrap();
        Node { name, scenario, engine, cluster, drain }
    }
}

/// Starts nodes that share channel 1 with these streams, and waits until they may be origins.
pub(super) async fn nodes<const N: usize>(
    names: [&'static str; N],
    streams: &[Stream],
) -> (Nodes, [Node; N]) {
    nodes_of(names, [streams]).await
}

/// Does the same for channels 1, 2, ….
pub(super) async fn nodes_of<const N: usize, const M: usize>(
    names: [&'static str; N],
    channels: [&[Stream]; M],
) -> (Nodes, [Node; N]) {
    let nodes = Nodes { network: Arc::default(), store: MemoryStore::default() };
    let mut all: Vec<Node> = Vec::new();
    for name in names {
        let before = all.last().map(|it| &it.scenario);
        let start = async |leases: Leases| match before {
            Some(before) => before.beside(settings(), leases).await,
            None => Scenario::with_table(settings(), channels, leases).await,
        };
        let node = nodes.join(name, start).await;
        all.push(node);
    }
    sleep(SETTLED).await;
    let Ok(all) = all.try_into() else { unreachable!("as many as names") };
    (nodes, all)
}

impl Node {
    pub(super) async fn watch(&self) -> TestViewer {
        self.scenario.watch(channel(1)).await
    }

    pub(super) async fn part(&self) -> Option<ChannelNode> {
        self.scenario.status(channel(1)).await.and_then(|it| it.node)
    }

    /// Returns the name of the origin, as this node shows it.
    pub(super) async fn origin(&self) -> Option<String> {
        self.part().await.map(|it| it.origin.to_string())
    }

    fn kinds(&self) -> Vec<RunEntryKind> {
        let runs = self.scenario.system.switchboard().timeline(channel(1).uuid());
        runs[0].entries.iter().map(|it| it.kind).collect()
    }

    /// Ends the node without a word, as a killed process does.
    pub(super) fn kill(self, nodes: &Nodes) {
        nodes.network.cut(self.name);
        self.engine.disconnect();
        drop(self.cluster);
        drop(self.scenario);
    }
}

pub(super) fn part(origin: &str, is_origin: bool, epoch: u64) -> ChannelNode {
    ChannelNode { origin: origin.into(), is_origin, epoch }
}

/// Reads everything that a viewer gets in this time.
pub(super) async fn reads(viewer: &mut TestViewer, time: Duration, into: &mut BytesMut) {
    let until = Instant::now() + time;
    while let Ok(chunk) = tokio::time::timeout_at(until, viewer.tail.chunk()).await {
        into.extend_from_slice(&chunk.unwrap_or_else(|end| panic!("the stream ended: {end}")));
    }
}

#[tokio::test(start_paused = true)]
async fn viewers_of_two_nodes_share_one_upstream() {
    let (nodes, [attic, cellar]) = nodes(["attic", "cellar"], &[stream(1, "a")]).await;
    let mut here = attic.watch().await;
    here.sees("a").await;
    assert_eq!(attic.part().await, Some(part("attic", true, 1)));
    let began = Instant::now();
    let mut there = cellar.watch().await;
    assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
    there.sees("a").await;
    assert_eq!(cellar.part().await, Some(part("attic", false, 1)));
    let mut third = cellar.watch().await;
    third.sees("a").await;
    assert_eq!((attic.scenario.provider.n_accepted(), nodes.network.n_open("attic")), (1, 1));
    let status = cellar.scenario.status(channel(1)).await.unwrap();
    assert_eq!((status.state, status.playing, status.clients.len()), ("playing", None, 2));
    assert_eq!(cellar.kinds(), [RunEntryKind::Pulling, RunEntryKind::Pulled]);
    let mut bytes = BytesMut::new();
    reads(&mut there, 5 * SECOND, &mut bytes).await;
    TsReader::default().read(&bytes, Duration::ZERO).unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_origin_stays_for_the_viewers_of_others_and_ends_after_them() {
    let (nodes, [attic, cellar]) = nodes(["attic", "cellar"], &[stream(1, "a")]).await;
    let here = attic.watch().await;
    let mut there = cellar.watch().await;
    drop(here);
    let mut bytes = BytesMut::new();
    reads(&mut there, settings().channel_shutdown_delay + 10 * SECOND, &mut bytes).await;
    assert_eq!(labels_in(&bytes), ["a"]);
    assert_eq!((cellar.origin().await.as_deref(), attic.scenario.provider.n_accepted()), (Some("attic"), 1));
    drop(there);
    attic.scenario.is_quiet().await;
    assert_eq!(nodes.network.n_open("attic"), 0);
    // Nobody owns it any more: the other node may begin.
    let _there = cellar.watch().await;
    assert_eq!(cellar.part().await, Some(part("cellar", true, 2)));
}

/// Kills the origin of three nodes, and checks what the viewers of the others get.
async fn take_over(streams: &[Stream], longest: Duration) {
    let (nodes, [attic, cellar, shed]) = nodes(["attic", "cellar", "shed"], streams).await;
    let provider = attic.scenario.provider.clone();
    let _here = attic.watch().await;
    let (mut one, mut two) = (cellar.watch().await, shed.watch().await);
    let (mut of_one, mut of_two) = (BytesMut::new(), BytesMut::new());
    tokio::join!(reads(&mut one, 3 * SECOND, &mut of_one), reads(&mut two, 3 * SECOND, &mut of_two));
    assert_eq!(provider.n_accepted(), 1);
    let before = Instant::now();
    attic.kill(&nodes);
    provider.set("/a", Behaviour::play("b"));
    let shows_b = async |viewer: &mut TestViewer, bytes: &mut BytesMut| {
        while !labels_in(&bytes[bytes.len().saturating_sub(20_000)..]).iter().any(|it| it == "b") {
            bytes.extend_from_slice(&viewer.tail.chunk().await.unwrap());
        }
        before.elapsed()
    };
    let (after_one, after_two) = tokio::join!(shows_b(&mut one, &mut of_one), shows_b(&mut two, &mut of_two));
    assert!(after_one.max(after_two) < longest, "{after_one:?} {after_two:?}");
    tokio::join!(reads(&mut one, 3 * SECOND, &mut of_one), reads(&mut two, 3 * SECOND, &mut of_two));
    // One of them is the origin now, and the other one its edge.
    let parts = [cellar.origin().await.unwrap(), shed.origin().await.unwrap()];
    assert!(parts[0] == parts[1] && ["cellar", "shed"].contains(&&*parts[0]), "{parts:?}");
    assert_eq!(cellar.part().await.unwrap().epoch, 2);
    assert_eq!(provider.n_accepted(), 2);
    for bytes in [&of_one, &of_two] {
        assert_eq!(labels_in(bytes), ["a", "b"]);
        TsReader::default().read(bytes, Duration::ZERO).unwrap();
    }
    // The pictures of both are the same from the first to the last common packet.
    let pictures = |bytes: &[u8]| -> Vec<[u8; 188]> {
        let packets = bytes.as_chunks::<188>().0;
        packets.iter().filter(|it| it[1] & 0x1F != 0x1F || it[2] != 0xFF).copied().collect()
    };
    let (a, b) = (pictures(&of_one), pictures(&of_two));
    let n = a.len().min(b.len()) - 500;
    let begin = a.windows(20).position(|it| it == &b[200..220]).unwrap();
    assert!(a[begin..][..n.min(a.len() - begin) - 300] == b[200..][..n.min(a.len() - begin) - 300]);
}

#[tokio::test(start_paused = true)]
async fn the_viewers_of_other_nodes_continue_when_the_origin_is_killed() {
    take_over(&[stream(1, "a")], 3 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn an_origin_that_stops_in_order_is_replaced_without_a_wait() {
    let (nodes, [attic, cellar]) = nodes(["attic", "cellar"], &[stream(1, "a")]).await;
    let _here = attic.watch().await;
    let mut there = cellar.watch().await;
    there.sees("a").await;
    attic.scenario.provider.set("/a", Behaviour::play("b"));
    let before = Instant::now();
    let shown = async {
        there.sees("b").await;
        before.elapsed()
    };
    let (_, shown) = tokio::join!(attic.scenario.system.stop(), shown);
    assert!(shown <= SECOND + Duration::from_millis(100), "{shown:?}");
    let kinds = cellar.kinds();
    assert!(!kinds.contains(&RunEntryKind::OriginUnreachable), "{kinds:?}");
    assert_eq!(cellar.part().await, Some(part("cellar", true, 2)));
    drop(nodes);
}

#[tokio::test(start_paused = true)]
async fn a_failover_of_the_origin_reaches_the_viewers_of_other_nodes() {
    let (_nodes, [attic, cellar]) = nodes(["attic", "cellar"], &[stream(1, "a"), stream(2, "b")]).await;
    let _here = attic.watch().await;
    let mut there = cellar.watch().await;
    let mut bytes = BytesMut::new();
    reads(&mut there, 2 * SECOND, &mut bytes).await;
    attic.scenario.provider.set("/a", Behaviour::Status(404));
    attic.scenario.provider.break_now("/a", Break::Reset);
    reads(&mut there, 5 * SECOND, &mut bytes).await;
    assert_eq!(labels_in(&bytes), ["a", "b"]);
    TsReader::default().read(&bytes, Duration::ZERO).unwrap();
    assert_eq!(cellar.part().await, Some(part("attic", false, 1)));
    assert_eq!(cellar.scenario.system.counts().leases, 0);
    // A switch has to be made where the source is.
    let (near, far) = (attic.scenario.system.switchboard(), cellar.scenario.system.switchboard());
    let refused = far.switch(channel(1), SwitchTo::Next).await.unwrap();
    assert_eq!(refused, SwitchOutcome::AtNode("attic".into()));
    attic.scenario.provider.set("/a", Behaviour::play("c"));
    let switched = near.switch(channel(1), SwitchTo::Next).await.unwrap();
    assert!(matches!(switched, SwitchOutcome::Switched { .. }), "{switched:?}");
    there.sees("c").await;
}

#[tokio::test(start_paused = true)]
async fn without_the_engine_each_node_plays_for_its_own_viewers() {
    let (_nodes, [attic, cellar]) = nodes(["attic", "cellar"], &[stream(1, "a")]).await;
    for node in [&attic, &cellar] {
        node.engine.disconnect();
    }
    sleep(20 * SECOND).await;
    let began = Instant::now();
    let (mut here, mut there) = tokio::join!(attic.watch(), cellar.watch());
    assert!(began.elapsed() < 5 * SECOND, "{:?}", began.elapsed());
    here.sees("a").await;
    there.sees("a").await;
    assert_eq!((attic.part().await, cellar.part().await), (None, None));
    // They agree as soon as they can, and nobody's stream ends.
    for node in [&attic, &cellar] {
        node.engine.reconnect();
    }
    let mut bytes = BytesMut::new();
    reads(&mut there, 60 * SECOND, &mut bytes).await;
    let parts = [attic.origin().await.unwrap(), cellar.origin().await.unwrap()];
    assert!(parts[0] == parts[1], "{parts:?}");
    assert_eq!(attic.scenario.provider.n_open(), 1);
    TsReader::default().read(&bytes, Duration::ZERO).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_short_break_of_the_network_costs_viewers_nothing() {
    let (nodes, [attic, cellar]) = nodes(["attic", "cellar"], &[stream(1, "a")]).await;
    let mut here = attic.watch().await;
    let mut there = cellar.watch().await;
    let (mut of_here, mut of_there) = (BytesMut::new(), BytesMut::new());
    for _ in 0..5 {
        tokio::join!(
            reads(&mut here, 2 * SECOND, &mut of_here),
            reads(&mut there, 2 * SECOND, &mut of_there)
        );
        nodes.network.break_connections("attic");
    }
    tokio::join!(reads(&mut here, 2 * SECOND, &mut of_here), reads(&mut there, 2 * SECOND, &mut of_there));
    assert_eq!(cellar.part().await, Some(part("attic", false, 1)));
    let mut reader = TsReader::default();
    reader.read(&of_there, Duration::ZERO).unwrap();
    assert_eq!((reader.n_filler(), attic.scenario.provider.n_accepted()), (0, 1));
    // Nothing is missing: one got the same packets as the other, in one piece.
    let common = &of_there[100 * 188..of_there.len() - 1_000 * 188];
    assert!(of_here.windows(common.len()).step_by(188).any(|it| it == common));
    let lost = cellar.kinds().iter().filter(|it| **it == RunEntryKind::PullLost).count();
    assert_eq!(lost, 5);
}

#[tokio::test(start_paused = true)]
async fn an_origin_that_others_cannot_reach_becomes_an_edge_and_its_viewers_stay() {
    let (nodes, [attic, cellar]) = nodes(["attic", "cellar"], &[stream(1, "a")]).await;
    let mut here = attic.watch().await;
    let mut there = cellar.watch().await;
    let (mut of_here, mut of_there) = (BytesMut::new(), BytesMut::new());
    tokio::join!(reads(&mut here, 3 * SECOND, &mut of_here), reads(&mut there, 3 * SECOND, &mut of_there));
    nodes.network.cut("attic");
    tokio::join!(reads(&mut here, 10 * SECOND, &mut of_here), reads(&mut there, 10 * SECOND, &mut of_there));
    assert_eq!(cellar.part().await, Some(part("cellar", true, 2)));
    assert_eq!(attic.part().await, Some(part("cellar", false, 2)));
    let provider = &attic.scenario.provider;
    assert_eq!((provider.n_accepted(), provider.n_open(), provider.peak()), (2, 1, 2));
    assert_eq!((attic.scenario.system.counts().leases, cellar.scenario.system.counts().leases), (0, 1));
    for bytes in [&of_here, &of_there] {
        assert_eq!(labels_in(bytes), ["a"]);
        TsReader::default().read(bytes, Duration::ZERO).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_edge_node_lets_a_full_node_open_the_channel_and_another_one_when_that_is_lost() {
    let (nodes, [attic, cellar, edge]) = nodes(["attic", "cellar", "edge"], &[stream(1, "a")]).await;
    let began = Instant::now();
    let mut there = edge.watch().await;
    there.sees("a").await;
    assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
    assert_eq!(edge.part().await, Some(part("attic", false, 1)));
    // Nobody watches there, so the edge keeps the channel.
    let mut bytes = BytesMut::new();
    reads(&mut there, settings().channel_shutdown_delay + 30 * SECOND, &mut bytes).await;
    assert_eq!(attic.part().await, Some(part("attic", true, 1)));
    assert_eq!((attic.scenario.provider.n_accepted(), nodes.network.n_open("attic")), (1, 1));

    attic.kill(&nodes);
    reads(&mut there, 30 * SECOND, &mut bytes).await;
    assert_eq!(edge.part().await, Some(part("cellar", false, 2)));
    assert_eq!(cellar.part().await, Some(part("cellar", true, 2)));
    TsReader::default().read(&bytes, Duration::ZERO).unwrap();

    // The channel ends after its last viewer.
    drop(there);
    sleep(settings().channel_shutdown_delay + 20 * SECOND).await;
    assert_eq!((cellar.part().await, edge.part().await), (None, None));
}

#[tokio::test(start_paused = true)]
async fn viewers_of_an_edge_node_without_any_full_node_are_refused_with_the_reason() {
    let (_nodes, [edge]) = nodes(["edge"], &[stream(1, "a")]).await;
    let WatchReply::Refused(refusal) = edge.scenario.ask(channel(1)).await else {
        panic!("a channel plays that nobody opens");
    };
    assert!(refusal.to_string().contains("no full node"), "{refusal}");
}

#[tokio::test(start_paused = true)]
async fn a_drained_node_gives_its_channel_away_without_a_gap_and_its_viewers_stay() {
    let (_nodes, [attic, cellar]) = nodes(["attic", "cellar"], &[stream(1, "a")]).await;
    let mut here = attic.watch().await;
    here.sees("a").await;
    assert_eq!(attic.part().await, Some(part("attic", true, 1)));
    attic.drain.set(true);
    let mut bytes = BytesMut::new();
    reads(&mut here, 20 * SECOND, &mut bytes).await;
    assert_eq!(attic.part().await, Some(part("cellar", false, 2)));
    assert_eq!(cellar.part().await, Some(part("cellar", true, 2)));
    assert_eq!(attic.scenario.provider.n_open(), 1);
    TsReader::default().read(&bytes, Duration::ZERO).unwrap();

    // It opens nothing while it is drained, and again afterwards.
    drop(here);
    sleep(settings().channel_shutdown_delay + 30 * SECOND).await;
    assert_eq!((attic.part().await, cellar.part().await), (None, None));
    let again = attic.watch().await;
    assert_eq!(attic.part().await, Some(part("cellar", false, 3)));
    drop(again);
    sleep(settings().channel_shutdown_delay + 30 * SECOND).await;
    attic.drain.set(false);
    let _last = attic.watch().await;
    assert_eq!(attic.part().await, Some(part("attic", true, 4)));
}

#[tokio::test(start_paused = true)]
async fn the_streams_of_a_drained_node_end_after_the_drain_time_unless_the_drain_does_before() {
    let (_nodes, [attic, cellar]) = nodes(["attic", "cellar"], &[stream(1, "a")]).await;
    let (mut here, mut there) = (attic.watch().await, cellar.watch().await);
    let mut bytes = BytesMut::new();
    assert!(attic.drain.set(true));
    // Asking again changes nothing.
    assert!(!attic.drain.set(true));
    assert!(attic.drain.ends_at().is_some());
    reads(&mut here, DRAIN_TIME - SECOND, &mut bytes).await;
    attic.drain.set(false);
    assert_eq!(attic.drain.ends_at(), None);
    reads(&mut here, DRAIN_TIME, &mut bytes).await;

    attic.drain.set(true);
    let began = Instant::now();
    reads(&mut here, DRAIN_TIME - SECOND, &mut bytes).await;
    TsReader::default().read(&bytes, Duration::ZERO).unwrap();
    assert_eq!(here.ends().await, EndReason::Stopped);
    let elapsed = began.elapsed();
    assert!((DRAIN_TIME..DRAIN_TIME + SECOND).contains(&elapsed), "{elapsed:?}");
    // Those of the other node stay, and who comes later stays as well.
    let mut again = attic.watch().await;
    bytes.clear();
    reads(&mut again, 2 * DRAIN_TIME, &mut bytes).await;
    bytes.clear();
    reads(&mut there, SECOND, &mut bytes).await;
    assert_eq!(cellar.part().await.map(|it| it.is_origin), Some(true));
}

#[tokio::test(start_paused = true)]
async fn a_channel_of_a_drained_node_that_others_still_read_ends_there_once_another_one_has_it() {
    let (_nodes, [attic, edge]) = nodes(["attic", "edge"], &[stream(1, "a")]).await;
    let (mut here, mut there) = (attic.watch().await, edge.watch().await);
    attic.drain.set(true);
    // No other node may open it.
    let mut bytes = BytesMut::new();
    reads(&mut here, DRAIN_TIME + 10 * SECOND, &mut bytes).await;
    bytes.clear();
    reads(&mut there, SECOND, &mut bytes).await;
    drop(there);
    assert_eq!(here.ends().await, EndReason::Stopped);
}
