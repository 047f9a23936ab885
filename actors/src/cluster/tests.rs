//! Members over the engine in memory, with the time of tokio.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cluster::codec::{self, StoredMember};
use cluster::testing::{MemoryEngine, MemoryStore, WriteFault};
use cluster::{Engine, NodeInfo, NodeLoad, Revision, SwapOutcome, node_id};
use domain::cluster::record::{MemberState, RecordKey};
use domain::cluster::version::VersionRange;
use domain::event::{Event, EventBody};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::clock::BootClock;
use super::{Cluster, ClusterView, NodeState};
use crate::events::Events;
use crate::events::tests::events;

/// Longest virtual time for anything.
const WAIT_MAX: Duration = Duration::from_secs(300);

struct Node {
    engine: MemoryEngine,
    cluster: Cluster,
    events: Events,
}

async fn node(store: &MemoryStore, name: &str) -> Node {
    let info = NodeInfo { name: name.to_owned(), version: "1.0.0".to_owned(), ..NodeInfo::default() };
    start(store, info, NodeLoad { clients: 3, ..NodeLoad::default() }).await
}

/// Begins a node that describes itself like this.
async fn start(store: &MemoryStore, info: NodeInfo, load: NodeLoad) -> Node {
    let (engine, events) = (store.connect(), events().await);
    let load = Arc::new(move || load);
    let clock = BootClock::Tokio(Instant::now());
    let shared: Arc<dyn Engine> = Arc::new(engine.clone());
    let (link, ends, _) = super::link();
    let cluster =
        Cluster::start_with((link, ends), shared, info, load, events.clone(), (None, clock, || ()), None)
            .unwrap();
    Node { engine, cluster, events }
}

fn state_of(view: &ClusterView, name: &str) -> Option<NodeState> {
    view.nodes.iter().find(|it| it.info.name == name).map(|it| it.state)
}

impl Node {
    /// Waits until this node sees these states.
    async fn sees(&self, states: &[(&str, NodeState)]) {
        let mut view = self.cluster.changes();
        let holds = |view: &Arc<ClusterView>| states.iter().all(|it| state_of(view, it.0) == Some(it.1));
        let found = timeout(WAIT_MAX, view.wait_for(holds)).await;
        assert!(found.is_ok(), "{states:?} in {:?}", self.cluster.view());
    }

    /// Waits for an event.
    async fn hears(&self, node: &str, state: &str) {
        let is_it = |it: &Arc<Event>| matches!(&it.body, EventBody::NodeState { node: n, state: s } if n == node && *s == state);
        let heard = async {
            while !self.events.recent().iter().any(is_it) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        assert!(timeout(WAIT_MAX, heard).await.is_ok(), "{node} {state} in {:?}", self.events.recent());
    }
}

async fn stored(engine: &MemoryEngine, name: &str) -> (Revision, StoredMember) {
    let session = engine.state().borrow().session().unwrap().number;
    let record = engine.read(session, &codec::key(RecordKey::Member(node_id(name)))).await.unwrap();
    (record.revision, serde_json::from_slice(&record.value.unwrap()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_member_that_panics_ends_the_process() {
    static ENDED: Notify = Notify::const_new();
    let info = NodeInfo { name: "attic".to_owned(), ..NodeInfo::default() };
    let engine: Arc<dyn Engine> = Arc::new(MemoryStore::default().connect());
    // Called by the member before each renewal.
    let load = Arc::new(|| -> NodeLoad { panic!("a fault") });
    let (link, ends, _) = super::link();
    let clock = BootClock::Tokio(Instant::now());
    let on_panic = || ENDED.notify_one();
    let _cluster =
        Cluster::start_with((link, ends), engine, info, load, events().await, (None, clock, on_panic), None)
            .unwrap();
    assert!(timeout(WAIT_MAX, ENDED.notified()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn nodes_see_each_other_and_what_they_say_about_themselves() {
    let store = MemoryStore::default();
    let (a, b) = (node(&store, "attic").await, node(&store, "cellar").await);
    let both = [("attic", NodeState::Alive), ("cellar", NodeState::Alive)];
    a.sees(&both).await;
    b.sees(&both).await;
    let view = a.cluster.view();
    assert_eq!((view.nodes.len(), view.disconnected.as_ref(), view.problem.as_ref()), (2, None, None));
    let cellar = &view.nodes[1];
    assert_eq!((cellar.info.version.as_str(), cellar.info.load.clients), ("1.0.0", 3));
    assert!(!cellar.is_own && cellar.incarnation.is_some() && cellar.last_seen.is_some());
    assert_eq!(view.own().map(|it| it.info.name.as_str()), Some("attic"));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_is_shown_as_left_at_once() {
    let store = MemoryStore::default();
    let (a, b) = (node(&store, "attic").await, node(&store, "cellar").await);
    a.sees(&[("attic", NodeState::Alive), ("cellar", NodeState::Alive)]).await;
    let begin = Instant::now();
    assert!(b.cluster.leave().await);
    a.sees(&[("cellar", NodeState::Left)]).await;
    assert!(begin.elapsed() < Duration::from_secs(3));
    a.hears("cellar", "left").await;
    // It returns with another incarnation.
    let left = stored(&a.engine, "cellar").await.1.record;
    drop(b);
    let b = node(&store, "cellar").await;
    a.sees(&[("cellar", NodeState::Alive)]).await;
    b.sees(&[("attic", NodeState::Alive), ("cellar", NodeState::Alive)]).await;
    let (revision, back) = stored(&a.engine, "cellar").await;
    assert!(back.record.incarnation_at(revision) > left.incarnation.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_vanishes_expires_after_20_seconds_and_keeps_its_name() {
    let store = MemoryStore::default();
    let (a, b) = (node(&store, "attic").await, node(&store, "cellar").await);
    a.sees(&[("attic", NodeState::Alive), ("cellar", NodeState::Alive)]).await;
    let begin = Instant::now();
    drop(b);
    a.sees(&[("cellar", NodeState::Expired)]).await;
    // The last renewal was up to 3 s earlier.
    assert!(begin.elapsed() >= Duration::from_secs(17), "{:?}", begin.elapsed());
    assert_eq!(stored(&a.engine, "cellar").await.1.record.state, MemberState::Expired);
    a.hears("cellar", "expired").await;
}

#[tokio::test(start_paused = true)]
async fn a_node_without_the_engine_stops_being_a_member_and_returns() {
    let store = MemoryStore::default();
    let (a, b) = (node(&store, "attic").await, node(&store, "cellar").await);
    b.sees(&[("attic", NodeState::Alive), ("cellar", NodeState::Alive)]).await;
    b.engine.disconnect();
    b.sees(&[("attic", NodeState::Unknown), ("cellar", NodeState::Joining)]).await;
    assert!(b.cluster.view().disconnected.is_some());
    a.sees(&[("cellar", NodeState::Expired)]).await;
    let expired = stored(&a.engine, "cellar").await.1.record;
    b.engine.reconnect();
    b.sees(&[("attic", NodeState::Alive), ("cellar", NodeState::Alive)]).await;
    a.sees(&[("cellar", NodeState::Alive)]).await;
    let (revision, back) = stored(&a.engine, "cellar").await;
    assert!(back.record.incarnation_at(revision) > expired.incarnation.unwrap());
}

#[tokio::test(start_paused = true)]
async fn lost_answers_and_late_writes_do_not_end_a_membership() {
    let store = MemoryStore::default();
    let a = node(&store, "attic").await;
    a.sees(&[("attic", NodeState::Alive)]).await;
    let late = WriteFault::AppliedAfter(Duration::from_secs(5));
    a.engine.fail_writes([WriteFault::AnswerLost, late, WriteFault::Lost]);
    let incarnation = a.cluster.view().own().unwrap().incarnation;
    tokio::time::sleep(Duration::from_secs(60)).await;
    a.sees(&[("attic", NodeState::Alive)]).await;
    assert_eq!(a.cluster.view().own().unwrap().incarnation, incarnation);
}

#[tokio::test(start_paused = true)]
async fn after_an_engine_that_lost_its_records_all_nodes_register_again() {
    let store = MemoryStore::default();
    let (a, b) = (node(&store, "attic").await, node(&store, "cellar").await);
    let both = [("attic", NodeState::Alive), ("cellar", NodeState::Alive)];
    a.sees(&both).await;
    store.restart(usize::MAX, 0);
    a.sees(&both).await;
    b.sees(&both).await;
    // Not a record of before the restart.
    tokio::time::sleep(Duration::from_secs(30)).await;
    a.sees(&both).await;
    assert!(stored(&a.engine, "attic").await.0 > Revision(2));
}

#[tokio::test(start_paused = true)]
async fn two_names_with_one_id_are_reported_and_neither_is_overwritten() {
    let store = MemoryStore::default();
    let (a, other) = (node(&store, "attic").await, store.connect());
    a.sees(&[("attic", NodeState::Alive)]).await;
    let (_, mut stored) = stored(&a.engine, "attic").await;
    stored.node.name = "other".to_owned();
    let key = codec::key(RecordKey::Member(node_id("cellar")));
    let value = Bytes::from(serde_json::to_vec(&stored).unwrap());
    assert!(matches!(other.swap(1, &key, Revision(0), Some(value.clone())).await, SwapOutcome::Applied(_)));
    let b = node(&store, "cellar").await;
    let mut view = b.cluster.changes();
    let view = timeout(WAIT_MAX, view.wait_for(|it| it.problem.is_some())).await.unwrap().unwrap().clone();
    assert!(
        view.problem.as_ref().is_some_and(|it| it.contains("\"other\"") && it.contains("cluster.node_name"))
    );
    let session = a.engine.state().borrow().session().unwrap().number;
    assert_eq!(a.engine.read(session, &key).await.unwrap().value, Some(value));
}

/// Begins a node that has joined, reads these versions, and writes one.
async fn node_of_version(store: &MemoryStore, name: &str, versions: VersionRange, written: u32) -> Node {
    let (name, certificate) = (name.to_owned(), Some(1));
    let info = NodeInfo { name, certificate, versions, ..NodeInfo::default() };
    start(store, info, NodeLoad { written: Some(written), ..NodeLoad::default() }).await
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_read_what_the_others_write_never_becomes_a_member() {
    let store = MemoryStore::default();
    let versions = |oldest, newest| VersionRange { oldest, newest };
    let a = node_of_version(&store, "attic", versions(1, 3), 2).await;
    let b = node_of_version(&store, "barn", versions(2, 3), 2).await;
    a.sees(&[("attic", NodeState::Alive), ("barn", NodeState::Alive)]).await;
    let old = node_of_version(&store, "cellar", versions(1, 1), 1).await;
    let new = node_of_version(&store, "den", versions(3, 4), 3).await;
    for unfit in [&old, &new] {
        let mut view = unfit.cluster.changes();
        assert!(timeout(WAIT_MAX, view.wait_for(|it| it.is_unfit)).await.is_ok());
        let view = unfit.cluster.view();
        assert!(view.problem.as_ref().is_some_and(|it| it.contains("writes version 2")), "{view:?}");
    }
    tokio::time::sleep(WAIT_MAX).await;
    a.sees(&[("attic", NodeState::Alive), ("barn", NodeState::Alive)]).await;
    assert_eq!(a.cluster.view().nodes.len(), 2, "{:?}", a.cluster.view());
    assert!(!a.cluster.view().is_unfit && !b.cluster.view().is_unfit);
}

#[tokio::test(start_paused = true)]
async fn a_member_leaves_when_the_others_write_what_it_cannot_read() {
    let store = MemoryStore::default();
    let versions = |oldest, newest| VersionRange { oldest, newest };
    let a = node_of_version(&store, "attic", versions(1, 1), 1).await;
    a.sees(&[("attic", NodeState::Alive)]).await;
    let b = node_of_version(&store, "barn", versions(1, 2), 2).await;
    b.sees(&[("attic", NodeState::Left), ("barn", NodeState::Alive)]).await;
    assert!(a.cluster.view().is_unfit && !b.cluster.view().is_unfit);
}

#[tokio::test(start_paused = true)]
async fn a_node_sees_how_far_the_clock_of_another_one_is_away() {
    let store = MemoryStore::default();
    let a = node(&store, "attic").await;
    let b = node(&store, "barn").await;
    a.sees(&[("attic", NodeState::Alive), ("barn", NodeState::Alive)]).await;
    let offset_of = |view: &ClusterView, name: &str| {
        view.nodes.iter().find(|it| it.info.name == name).and_then(|it| it.clock_offset_ms)
    };
    let mut view = a.cluster.changes();
    // An hour is more than this process can be held up between writing and reading.
    const HOUR_MS: i64 = 3_600_000;
    let is_near = |it: &Arc<ClusterView>| offset_of(it, "barn").is_some_and(|it| it.abs() < HOUR_MS / 2);
    assert!(timeout(WAIT_MAX, view.wait_for(is_near)).await.is_ok(), "{:?}", a.cluster.view());
    assert_eq!(offset_of(&a.cluster.view(), "attic"), None);
    // A record as a node would write it whose clock is an hour ahead.
    drop(b.cluster);
    let (revision, mut member) = stored(&a.engine, "barn").await;
    member.node.load.at = Some(crate::clock::now_ms() + HOUR_MS);
    let (key, session) =
        (codec::key(RecordKey::Member(node_id("barn"))), a.engine.state().borrow().session());
    let value = Bytes::from(serde_json::to_vec(&member).unwrap());
    let outcome = a.engine.swap(session.unwrap().number, &key, revision, Some(value)).await;
    assert!(matches!(outcome, SwapOutcome::Applied(_)), "{outcome:?}");
    let is_far = |it: &Arc<ClusterView>| offset_of(it, "barn").is_some_and(|it| it > HOUR_MS / 2);
    assert!(timeout(WAIT_MAX, view.wait_for(is_far)).await.is_ok(), "{:?}", a.cluster.view());
}
