//! Limits of users over several nodes, over the engine in memory, with paused time.

use std::sync::Arc;
use std::time::Duration;

use cluster::testing::{MemoryEngine, MemoryStore};
use cluster::{Engine, NodeInfo, NodeLoad};
use domain::ids::UserId;
use domain::limits::SeatRules;
use domain::settings::AtLimit;
use domain::user_limits::UserLimits;
use media::meter::Connection;
use tokio::time::{Instant, sleep};

use super::Cluster;
use super::clock::{BootClock, BootTimeReader};
use crate::events::tests::events;
use crate::plans::Target;
use crate::seats::{Seat, SeatParts, SeatRequest, SeatTable, SeatsTaken};
use crate::testing::channel;
use crate::viewer::{Identity, Viewer};

/// After this time in a new cluster, all nodes are members.
const SETTLED: Duration = Duration::from_secs(30);
/// A node that is lost has expired after this time.
const EXPIRED: Duration = Duration::from_secs(30);

struct Node {
    engine: MemoryEngine,
    seats: Arc<SeatTable>,
    cluster: Cluster,
}

async fn node(store: &MemoryStore, name: &str) -> Node {
    let (engine, begin) = (store.connect(), Instant::now());
    let shared: Arc<dyn Engine> = Arc::new(engine.clone());
    let (link, ends, effects) = super::link();
    let seats = SeatTable::new();
    let parts = SeatParts { link: link.clone(), effects: effects.seats };
    seats.share(parts, BootTimeReader::Tokio(begin));
    let info = NodeInfo { name: name.to_owned(), ..NodeInfo::default() };
    let (load, clock) = (Arc::new(NodeLoad::default), BootClock::Tokio(begin));
    let events = events().await;
    let cluster =
        Cluster::start_with((link, ends), shared, info, load, events, (None, clock, || ()), None).unwrap();
    Node { engine, seats, cluster }
}

async fn nodes() -> (MemoryStore, Node, Node) {
    let store = MemoryStore::default();
    let (a, b) = (node(&store, "attic").await, node(&store, "cellar").await);
    sleep(SETTLED).await;
    (store, a, b)
}

/// A session that runs.
struct Watching {
    seat: Seat,
    connection: Arc<Connection>,
}

impl Watching {
    fn is_cut(&self) -> bool {
        self.connection.cancel.is_cancelled()
    }
}

impl Node {
    async fn asks(
        &self,
        device: &str,
        target: Target,
        limit: u32,
        rules: SeatRules,
    ) -> Result<Watching, SeatsTaken> {
        let address = "10.0.0.1:1".parse().unwrap();
        let connection = Arc::new(Connection::new(1, address));
        let viewer = Viewer {
            user: None,
            address: address.ip(),
            agent: device.to_owned(),
            identity: Identity::default(),
        };
        let request = SeatRequest { user: UserId(1), limit };
        let seat = self.seats.take_soon(request, &viewer, target, &connection, rules).await?;
        Ok(Watching { seat, connection })
    }

    async fn watches(&self, device: &str, target: Target, limit: u32) -> Result<Watching, SeatsTaken> {
        self.asks(device, target, limit, SeatRules::default()).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_counts_the_sessions_of_all_nodes_until_they_end() {
    let (_store, a, b) = nodes().await;
    let tv = a.watches("tv", channel(1), 2).await.unwrap();
    let phone = b.watches("phone", channel(2), 2).await.unwrap();
    assert!(a.watches("tablet", channel(3), 2).await.is_err());
    let taken = b.watches("tablet", channel(3), 2).await.err().unwrap();
    assert_eq!(taken.by.len(), 1, "the sessions of this node are named: {taken}");
    assert!(!tv.is_cut() && !phone.is_cut());
    assert_eq!((a.seats.len(), b.seats.len()), (1, 1));
    drop(tv);
    let tablet = b.watches("tablet", channel(3), 2).await.unwrap();
    // A session that ends while another one waits for its place.
    let (waited, ()) = tokio::join!(a.watches("tv", channel(1), 2), async {
        sleep(Duration::from_millis(500)).await;
        drop(phone);
    });
    drop((tablet, waited.unwrap()));
    assert_eq!((a.seats.len(), b.seats.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_device_that_goes_to_another_node_gives_up_its_old_session() {
    let (_store, a, b) = nodes().await;
    let before = a.watches("tv", channel(1), 1).await.unwrap();
    let after = b.watches("tv", channel(2), 1).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert!(before.is_cut() && !after.is_cut());
    assert_eq!(before.seat.why_ended(), Some("replaced by the same device"));
    // The same device and channel are one session, wherever it connects.
    let again = a.watches("tv", channel(2), 1).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert!(!after.is_cut() && !again.is_cut());
    let refuse = SeatRules { at_limit: AtLimit::Refuse, ..SeatRules::default() };
    assert!(a.asks("tv", channel(3), 1, refuse).await.is_err());
    drop((before, after, again));
}

#[tokio::test(start_paused = true)]
async fn the_user_limits_can_end_the_oldest_session_of_another_node() {
    let (_store, a, b) = nodes().await;
    let user_limits = UserLimits { terminate_on_limit_exceeded: true, ..UserLimits::default() };
    let rules = SeatRules { user_limits, ..SeatRules::default() };
    let tv = a.asks("tv", channel(1), 2, rules).await.unwrap();
    let phone = b.asks("phone", channel(2), 2, rules).await.unwrap();
    let tablet = b.asks("tablet", channel(3), 2, rules).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert!(tv.is_cut() && !phone.is_cut() && !tablet.is_cut());
}

#[tokio::test(start_paused = true)]
async fn connections_of_one_session_share_its_seat_also_while_it_is_asked_for() {
    let (_store, a, b) = nodes().await;
    let probe = a.watches("tv", channel(1), 1);
    let (probe, play) = tokio::join!(probe, a.watches("tv", channel(1), 1));
    let (probe, play) = (probe.unwrap(), play.unwrap());
    assert_eq!((a.seats.len(), a.seats.all()[0].n_connections), (1, 2));
    drop(probe);
    sleep(Duration::from_secs(1)).await;
    assert!(b.watches("phone", channel(1), 1).await.is_err());
    drop(play);
    b.watches("phone", channel(1), 1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unlimited_users_do_not_pass_through_the_cluster() {
    let (_store, a, _b) = nodes().await;
    a.engine.disconnect();
    let begin = Instant::now();
    let tv = a.watches("tv", channel(1), 0).await.unwrap();
    let phone = a.watches("phone", channel(2), 0).await.unwrap();
    assert_eq!(begin.elapsed(), Duration::ZERO);
    assert!(!tv.is_cut() && !phone.is_cut());
}

#[tokio::test(start_paused = true)]
async fn without_the_engine_a_session_begins_and_counts_when_the_engine_is_back() {
    let (_store, a, b) = nodes().await;
    let tv = a.watches("tv", channel(1), 1).await.unwrap();
    b.engine.disconnect();
    sleep(Duration::from_secs(5)).await;
    // Nobody is sent away because the engine is away.
    let phone = b.watches("phone", channel(2), 2).await.unwrap();
    b.engine.reconnect();
    sleep(SETTLED).await;
    assert!(!tv.is_cut() && !phone.is_cut());
    assert!(a.watches("tablet", channel(3), 2).await.is_err());
    drop(phone);
    a.watches("tablet", channel(3), 2).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_lost_gives_up_its_seats_when_it_has_expired() {
    let (_store, a, b) = nodes().await;
    let tv = a.watches("tv", channel(1), 1).await.unwrap();
    a.engine.disconnect();
    drop(a.cluster);
    assert!(b.watches("phone", channel(2), 1).await.is_err());
    sleep(EXPIRED).await;
    b.watches("phone", channel(2), 1).await.unwrap();
    drop(tv);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_while_it_waits_holds_no_seat() {
    let (_store, a, b) = nodes().await;
    let tv = a.watches("tv", channel(1), 1).await.unwrap();
    let asked = tokio::time::timeout(Duration::from_millis(100), b.watches("phone", channel(2), 1)).await;
    assert!(asked.is_err(), "it waits");
    drop(tv);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(b.seats.len(), 0);
    a.watches("tablet", channel(3), 1).await.unwrap();
}
