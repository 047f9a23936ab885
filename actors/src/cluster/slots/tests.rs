//! Two nodes with one engine in memory, and the time of tokio.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cluster::testing::{MemoryEngine, MemoryStore};
use cluster::{Engine, NodeInfo, NodeLoad, node_id};
use domain::cluster::record::SlotState;
use domain::ids::{AccountId, ProfileId, StreamId};
use domain::plan::SlotPool;
use domain::playout::Attempt;
use domain::recording::forecast::LimitId;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::ask::Address;
use crate::cluster::clock::BootClock;
use crate::cluster::{Cluster, NodeState, link};
use crate::events::tests::events;
use crate::panel_counts::{PanelCountParts, PanelPort, follow as follow_panels};
use crate::plans::Target;
use crate::slots::tests::{grouped, pool};
use crate::slots::{Actor, Arguments, SlotCandidate};
use crate::testing::{channel, inbox};
use crate::viewer::{Identity, Viewer};

/// Time after which nodes that have just started grant slots.
const START: Duration = Duration::from_secs(30);

struct Node {
    engine: MemoryEngine,
    leases: Arc<dyn LeaseTable>,
    tables: watch::Receiver<SlotTables>,
    link: ClusterLink,
    _cluster: Cluster,
}

async fn node(store: &MemoryStore, name: &str) -> Node {
    let engine = store.connect();
    let (shared, begin): (Arc<dyn Engine>, _) = (Arc::new(engine.clone()), Instant::now());
    let (link, ends, effects) = link();
    let address = Address::new();
    let local = SlotTable::new(address.clone());
    let arguments = Arguments { table: local.clone() };
    let (actor, _) = ractor::Actor::spawn(None, Actor, arguments).await.unwrap();
    address.set(actor);
    let (tables, of_node) = (effects.tables.clone(), link.clone());
    let parts = ClusterParts {
        link: link.clone(),
        slots: effects.slots,
        tables: effects.tables,
        engine: shared.clone(),
        node: node_id(name),
    };
    let leases = ClusterLeases::start(local, parts, BootTimeReader::Tokio(begin));
    let info = NodeInfo { name: name.to_owned(), ..NodeInfo::default() };
    let (load, clock) = (Arc::new(NodeLoad::default), BootClock::Tokio(begin));
    let cluster =
        Cluster::start_with((link, ends), shared, info, load, events().await, (None, clock, || ()), None)
            .unwrap();
    Node { engine, leases, tables, link: of_node, _cluster: cluster }
}

/// Returns two nodes that grant slots.
async fn nodes() -> (MemoryStore, Node, Node) {
    let store = MemoryStore::default();
    let (a, b) = (node(&store, "attic").await, node(&store, "cellar").await);
    sleep(START).await;
    assert!([&a, &b].iter().all(|it| it._cluster.view().own().unwrap().state == NodeState::Alive));
    (store, a, b)
}

struct Holder {
    id: u64,
    port: HolderPort,
    _actor: ractor::ActorRef<SlotMessage>,
    messages: mpsc::UnboundedReceiver<SlotMessage>,
    leases: Arc<dyn LeaseTable>,
    purpose: LeasePurpose,
}

impl Node {
    async fn holder(&self, id: u64) -> Holder {
        let (actor, messages) = inbox::<SlotMessage>().await;
        let (port, leases) = (actor.get_derived(), self.leases.clone());
        Holder { id, port, _actor: actor, messages, leases, purpose: LeasePurpose::Live }
    }
}

impl Holder {
    fn ask_for(&self, order: &[SlotPool], asking: Asking) {
        let candidate = |(index, pool): (usize, &SlotPool)| SlotCandidate {
            index,
            stream: StreamId(1),
            pool: pool.clone(),
            device: None,
        };
        self.leases.request(Request {
            holder: self.id,
            target: channel(self.id as u32),
            port: self.port.clone(),
            attempt: Attempt(1),
            order: order.iter().enumerate().map(candidate).collect(),
            asking,
            claim: None,
            purpose: self.purpose,
        });
    }

    fn ask(&self, order: &[SlotPool]) {
        self.ask_for(order, Asking::Join(None));
    }

    async fn message(&mut self) -> SlotMessage {
        timeout(Duration::from_secs(100), self.messages.recv()).await.unwrap().unwrap()
    }

    async fn granted(&mut self) -> (usize, Lease) {
        match self.message().await {
            SlotMessage::Granted { index, lease, .. } => (index, lease),
            other => panic!("expected a grant, got {other:?}"),
        }
    }

    async fn full(&mut self) -> FullPool {
        match self.message().await {
            SlotMessage::Full { full, .. } => full,
            other => panic!("expected full, got {other:?}"),
        }
    }

    async fn asked_to_yield(&mut self) -> (u64, Option<Viewer>) {
        match self.message().await {
            SlotMessage::Yield { asked_by, viewer, .. } => (asked_by, viewer),
            other => panic!("expected a request to yield, got {other:?}"),
        }
    }

    /// Asks until a slot is granted. Returns it with the time that it took.
    async fn gets(&mut self, order: &[SlotPool]) -> (Lease, Duration) {
        let begin = Instant::now();
        for _ in 0..100 {
            self.ask(order);
            match self.message().await {
                SlotMessage::Granted { lease, .. } => return (lease, begin.elapsed()),
                SlotMessage::Full { .. } => {}
                other => panic!("expected a grant or a refusal, got {other:?}"),
            }
        }
        panic!("nothing was granted within {:?}", begin.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn two_nodes_share_a_limit_and_waiting_requests_of_both_are_served_in_order() {
    let (_store, a, b) = nodes().await;
    let delayed = [SlotPool { release_delay: Duration::from_secs(1), ..pool(1, 1) }];
    let (mut first, mut second, mut third) = (a.holder(1).await, b.holder(1).await, a.holder(2).await);
    first.ask(&delayed);
    let (index, lease) = first.granted().await;
    assert_eq!((index, a.leases.counts(), b.leases.counts()), (0, (1, 0), (0, 0)));
    second.ask(&delayed);
    let (asked_by, _) = first.asked_to_yield().await;
    a.leases.kept(1, asked_by);
    third.ask(&delayed);
    let (asked_by, _) = first.asked_to_yield().await;
    a.leases.kept(1, asked_by);
    assert_eq!((a.leases.snapshot().waiting.len(), b.leases.snapshot().waiting.len()), (1, 1));
    let begin = Instant::now();
    drop(lease);
    let (_, lease) = second.granted().await;
    let took = begin.elapsed();
    assert!((Duration::from_secs(1)..Duration::from_millis(1_100)).contains(&took), "{took:?}");
    assert_eq!((a.leases.counts(), b.leases.counts()), ((0, 0), (1, 0)));
    let full = third.full().await;
    assert!(full.to_string().contains("at its limit of 1 stream"), "{full}");
    // What the other node has is shown.
    let elsewhere = a.leases.snapshot().elsewhere;
    assert_eq!(elsewhere.len(), 1, "{elsewhere:?}");
    assert_eq!(
        (elsewhere[0].node, elsewhere[0].profile, elsewhere[0].state),
        (node_id("cellar"), ProfileId(1), SlotState::Held)
    );
    drop(lease);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(a.leases.snapshot().elsewhere, []);
}

#[tokio::test(start_paused = true)]
async fn a_holder_of_another_node_is_asked_to_yield_and_knows_for_whom() {
    let (_store, a, b) = nodes().await;
    let (mut first, mut second) = (a.holder(1).await, b.holder(2).await);
    first.ask(&[pool(1, 1)]);
    let (_, lease) = first.granted().await;
    let viewer = Viewer {
        user: Some("kid".to_owned()),
        address: "10.0.0.7".parse().unwrap(),
        agent: "player".to_owned(),
        identity: Identity::default(),
    };
    second.ask_for(&[pool(1, 1)], Asking::Join(Some(viewer.clone())));
    assert_eq!(first.asked_to_yield().await.1, Some(viewer));
    drop(lease);
    second.granted().await;
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_kept_its_slot_is_asked_again_when_nobody_watches_any_more() {
    let (_store, a, b) = nodes().await;
    for (node, other) in [(&a, &a), (&a, &b)] {
        let (mut first, mut second) = (node.holder(1).await, other.holder(2).await);
        first.ask(&[pool(1, 1)]);
        let (_, lease) = first.granted().await;
        second.ask(&[pool(1, 1)]);
        let (asked_by, _) = first.asked_to_yield().await;
        node.leases.kept(1, asked_by);
        sleep(Duration::from_secs(1)).await;
        node.leases.lingering(1);
        let begin = Instant::now();
        first.asked_to_yield().await;
        assert!(begin.elapsed() < Duration::from_millis(100), "{:?}", begin.elapsed());
        drop(lease);
        drop(second.granted().await);
        sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_gets_nothing_and_leaves_the_slot_to_others() {
    let (_store, a, b) = nodes().await;
    let (mut first, mut second, mut third) = (a.holder(1).await, b.holder(2).await, a.holder(3).await);
    first.ask(&[pool(1, 1)]);
    let (_, lease) = first.granted().await;
    second.ask(&[pool(1, 1)]);
    first.asked_to_yield().await;
    b.leases.cancel(2, Attempt(1));
    drop(lease);
    third.ask(&[pool(1, 1)]);
    drop(third.granted().await);
    // Cancelled in the moment in which it is granted.
    second.ask(&[pool(1, 1)]);
    b.leases.cancel(2, Attempt(1));
    let (lease, took) = third.gets(&[pool(1, 1)]).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(second.messages.try_recv().is_err());
    drop(lease);
    assert_eq!((a.leases.counts(), b.leases.counts()), ((0, 0), (0, 0)));
}

#[tokio::test(start_paused = true)]
async fn a_node_without_the_engine_closes_its_limited_sources_before_others_may_open_them() {
    let (_store, a, b) = nodes().await;
    let (mut first, mut second, mut other) = (a.holder(1).await, b.holder(2).await, a.holder(3).await);
    first.ask(&[pool(1, 1)]);
    let (_, lease) = first.granted().await;
    other.ask(&[pool(2, 0)]);
    let (_, unlimited) = other.granted().await;
    a.engine.disconnect();
    let begin = Instant::now();
    let revoked = timeout(Duration::from_secs(16), first.messages.recv()).await.unwrap().unwrap();
    assert!(
        matches!(revoked, SlotMessage::Revoked { lease: it, within } if it == lease.id() && within == CLOSING)
    );
    assert!(begin.elapsed() <= Duration::from_secs(15), "{:?}", begin.elapsed());
    sleep(CLOSING).await;
    drop(lease);
    let (_lease, _) = second.gets(&[pool(1, 1)]).await;
    // 20 s after the last renewal, and the time for which the slot of a lost node cools.
    assert!(begin.elapsed() > Duration::from_secs(45), "{:?}", begin.elapsed());
    // Nothing else ends, and slots without a limit are granted.
    assert!(other.messages.try_recv().is_err());
    drop(unlimited);
    first.ask(&[pool(2, 0)]);
    first.granted().await;
    first.ask(&[pool(1, 1)]);
    let full = first.full().await;
    assert!(full.is_unknown && full.to_string().contains("the other nodes"), "{full}");
    first.ask(&[pool(1, 1), pool(2, 0)]);
    assert_eq!(first.granted().await.0, 1);
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_engine_that_loses_everything_ends_no_lease_and_exceeds_no_limit() {
    let (store, a, b) = nodes().await;
    let (mut first, mut second) = (a.holder(1).await, b.holder(2).await);
    first.ask(&[pool(1, 1)]);
    let (_, lease) = first.granted().await;
    store.restart(usize::MAX, 0);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(60) {
        second.ask(&[pool(1, 1)]);
        second.full().await;
        while let Ok(message) = first.messages.try_recv() {
            assert!(matches!(message, SlotMessage::Yield { .. }), "{message:?}");
        }
    }
    drop(lease);
    second.ask(&[pool(1, 1)]);
    second.granted().await;
}

#[tokio::test(start_paused = true)]
async fn the_accounts_of_a_server_group_share_its_limit_over_nodes() {
    let (_store, a, b) = nodes().await;
    let (mut first, mut second) = (a.holder(1).await, b.holder(2).await);
    first.ask(&[grouped(1, 1, 1)]);
    let (_, lease) = first.granted().await;
    second.ask(&[grouped(2, 1, 1)]);
    first.asked_to_yield().await;
    let full = second.full().await;
    assert_eq!(full.server_group.as_deref(), Some("group"));
    drop(lease);
    second.ask(&[grouped(2, 1, 1)]);
    second.granted().await;
}

#[tokio::test(start_paused = true)]
async fn candidates_of_several_pools_are_tried_in_their_order_before_the_request_waits() {
    let (_store, a, b) = nodes().await;
    let (one, two, unlimited) = (pool(1, 1), pool(2, 1), pool(3, 0));
    let mut holders = [a.holder(1).await, b.holder(2).await, a.holder(3).await, b.holder(4).await];
    let mut leases = Vec::new();
    for (holder, expected) in holders[..3].iter_mut().zip([0, 1, 2]) {
        holder.ask(&[one.clone(), two.clone(), unlimited.clone()]);
        let (index, lease) = holder.granted().await;
        assert_eq!(index, expected);
        leases.push(lease);
    }
    // Without the last one, it waits for both pools.
    holders[3].ask(&[one.clone(), two.clone()]);
    let (asked, _) = holders[1].asked_to_yield().await;
    drop(leases.remove(1));
    let (index, _lease) = holders[3].granted().await;
    assert_eq!(index, 1);
    b.leases.kept(2, asked);
    assert_eq!((a.leases.counts().0, b.leases.counts().0), (2, 1));
    // A second connection is granted at once or never, and nobody is asked to yield.
    let begin = Instant::now();
    holders[1].ask_for(&[one], Asking::Beside);
    holders[1].full().await;
    assert!(begin.elapsed() < Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn slots_that_are_reserved_here_are_not_asked_for_by_new_viewers() {
    let (_store, a, _b) = nodes().await;
    let mut viewer = a.holder(1).await;
    let mut recording = Holder { purpose: LeasePurpose::Recording, ..a.holder(2).await };
    let peaks = BTreeMap::from([(LimitId::Profile(ProfileId(1)), 1)]);
    let channels: HashSet<Target> = [channel(9)].into();
    a.leases.reserve(ReservedSlots { peaks, channels });
    viewer.ask(&[pool(1, 1)]);
    assert_eq!(viewer.full().await.n_reserved, 1);
    recording.ask(&[pool(1, 1)]);
    recording.granted().await;
}

#[tokio::test(start_paused = true)]
async fn a_slot_counts_also_after_its_account_came_into_a_server_group() {
    let (_store, a, b) = nodes().await;
    let (mut first, mut second) = (a.holder(1).await, b.holder(2).await);
    first.ask(&[pool(1, 1)]);
    let (_, lease) = first.granted().await;
    sleep(Duration::from_secs(1)).await;
    second.ask(&[grouped(1, 1, 5)]);
    second.full().await;
    drop(lease);
    sleep(Duration::from_secs(1)).await;
    second.ask(&[grouped(1, 1, 5)]);
    second.granted().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_handed_over_opens_again_with_its_leases_only_and_closes_them_at_its_deadline() {
    let (_store, a, b) = nodes().await;
    let one = [pool(1, 1)];
    let (mut first, mut other, mut elsewhere) = (a.holder(1).await, a.holder(2).await, b.holder(3).await);
    let (lease, _) = first.gets(&one).await;
    let slots = a.leases.hand_over();
    assert_eq!(slots.iter().filter(|it| it.lease().is_some()).count(), 1, "{slots:?}");
    let began = Instant::now();
    assert!(a._cluster.hand_over(true).await.is_some());
    drop(lease);
    let (lease, _) = first.gets(&one).await;
    other.ask(&[pool(1, 1), pool(2, 5)]);
    other.full().await;
    elsewhere.ask(&one);
    elsewhere.full().await;
    // No other process prolongs it.
    let revoked = loop {
        match first.message().await {
            SlotMessage::Revoked { lease, .. } => break lease,
            // For the requests of the others.
            SlotMessage::Yield { .. } => {}
            message => panic!("expected the end of the lease, got {message:?}"),
        }
    };
    assert_eq!(revoked, lease.id());
    let closed = began.elapsed();
    assert!((Duration::from_secs(11)..=Duration::from_secs(15)).contains(&closed), "{closed:?}");
    drop(lease);
    first.ask(&one);
    first.full().await;
    let (_lease, _) = elsewhere.gets(&one).await;
    assert!(began.elapsed() > Duration::from_secs(40), "{:?}", began.elapsed());
}

/// A panel that counts two connections, and then another number.
struct CountingPanel {
    count: Mutex<Option<u32>>,
    n_asked: AtomicUsize,
}

impl PanelPort for CountingPanel {
    fn can_be_asked(&self, _: AccountId, profile: ProfileId) -> bool {
        profile == ProfileId(1)
    }

    fn ask(&self, _: AccountId, _: ProfileId) -> Pin<Box<dyn Future<Output = Option<u32>> + Send + '_>> {
        self.n_asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { *self.count.lock() })
    }
}

#[tokio::test(start_paused = true)]
async fn the_slot_of_a_lost_node_is_granted_earlier_when_the_panel_shows_its_connection_gone() {
    for (counted_later, seconds) in [(Some(1), 20..35), (Some(0), 45..55), (None, 45..55)] {
        let begin = Instant::now();
        let (_store, a, b) = nodes().await;
        let panel = Arc::new(CountingPanel { count: Some(2).into(), n_asked: 0.into() });
        let parts = PanelCountParts {
            tables: b.tables.clone(),
            link: b.link.clone(),
            clock: BootTimeReader::Tokio(begin),
        };
        let port: Arc<dyn PanelPort> = panel.clone();
        let _asking = AbortOnDropHandle::new(tokio::spawn(follow_panels(parts, port)));
        let (mut first, mut own, mut second) = (a.holder(1).await, b.holder(2).await, b.holder(3).await);
        first.ask(&[pool(1, 2)]);
        let (_, lease) = first.granted().await;
        own.ask(&[pool(1, 2)]);
        let _own = own.granted().await;
        sleep(Duration::from_secs(600)).await;
        assert_eq!(panel.n_asked.load(Ordering::Relaxed), 1);
        let lost_at = Instant::now();
        drop(a._cluster);
        a.engine.disconnect();
        // One that counts nothing does not count the connection of this node either, so it is not believed.
        *panel.count.lock() = counted_later;
        loop {
            second.ask(&[pool(1, 2)]);
            match second.message().await {
                SlotMessage::Granted { .. } => break,
                SlotMessage::Full { .. } | SlotMessage::Yield { .. } => {}
                other => panic!("expected a grant or a refusal, got {other:?}"),
            }
            assert!(lost_at.elapsed() < Duration::from_secs(100), "{counted_later:?}");
        }
        let took = lost_at.elapsed();
        assert!(seconds.contains(&took.as_secs()), "{counted_later:?}: {took:?}");
        drop(lease);
    }
}
