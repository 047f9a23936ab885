//! This gateway as a node of a cluster. Without servers in the configuration, nothing of it exists.
//!
//! The membership is prepared before the system starts, which gets its parts of it, and begins after that.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Weak};
use std::thread::available_parallelism;

use actors::{
    ChannelParts, Cluster, ClusterLink, ClusterParts, ClusterView, Configuration, EffectReceivers,
    FileExchange, MemberEnds, NodeDrain, NodeFetcher, NodeState, NodeView, PredecessorPort, ReadLoad,
    SeatParts, SnapshotParts, cluster_link,
};
use cluster::nats::NatsEngine;
use cluster::{EndNotice, Engine, NodeInfo, NodeLoad, NodeRole, node_id};
use config::{ClusterConfig, Config, DataFolder, Listen};
use domain::cluster::NodeEffect;
use domain::cluster::predecessor::MemberPredecessor;
use media::{Guard, spawn_blocking};
use parking_lot::Mutex;
use server::listening::{ListenError, bind_on};
use services::open_store::complete;
use storage::Store;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use super::NodeError;
use super::events::EventPasser;
use super::fetch::AccountFetcher;
use super::file::NodeFile;
use super::files::SharedFiles;
use super::forward::Forwarder;
use super::own_node::Node;
use super::peers::OtherNodes;
use super::rejoin::Rejoining;
use super::rings::RingDialer;
use super::status::NodeStatuses;
use super::time_limits::{BIND_PAUSE, BIND_TIME};
use super::trust::NodeTrust;
use super::versions::WrittenVersion;
use crate::context::NodeContext;

/// Why a node that was removed does not start, and its choices.
pub const REMOVED: &str = "take part in the cluster: this node was removed from it; make this a gateway of its own with \
                                  `headwater cluster leave`, or move its data folder away and join again with a new token";

/// Why this machine does not take part in its cluster.
#[derive(Debug, thiserror::Error)]
pub enum MembershipError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("failed to read the store")]
    Store(#[source] storage::Error),
    #[error("failed to take part in the cluster: failed to {0}")]
    Cluster(String),
    #[error("a runtime has shut down")]
    Runtime,
}

/// The way of this node into the cluster, before it is a member.
pub struct Membership {
    info: NodeInfo,
    engine: Arc<dyn Engine>,
    /// The guard tells the others with it that this process has ended.
    end_notice: EndNotice,
    ends: (ClusterLink, MemberEnds),
    /// Present if this machine has joined.
    joined: Option<Joined>,
}

/// The parts of a machine that has joined.
struct Joined {
    trust: Arc<NodeTrust>,
    dialer: Arc<RingDialer>,
    fetcher: Arc<AccountFetcher>,
    jobs: UnboundedReceiver<NodeEffect>,
    listener: TcpListener,
    drain: Arc<NodeDrain>,
    written: WrittenVersion,
}

/// The parts with which the system acts as one gateway with the other nodes.
pub struct NodeParts {
    pub leases: ClusterParts,
    pub channels: ChannelParts,
    pub seats: SeatParts,
    pub fetcher: Arc<dyn NodeFetcher>,
}

/// Prepares to take part in the cluster, if the configuration names one. The engine need not be reachable.
///
/// The second value is there if this machine has joined: then it shares limits and channels with the other nodes. Otherwise it
/// is only shown as a member. `packets` is the runtime that serves the port for other nodes.
pub async fn prepare(
    config: &Config,
    store: &Store,
    packets: &Handle,
) -> Result<(Option<Membership>, Option<NodeParts>), MembershipError> {
    let file = read_file(config, store).await?;
    if !config.cluster.is_enabled() {
        return Ok((None, None));
    }
    let of_cluster = config.cluster.clone();
    let read = spawn_blocking(move || Ok((of_cluster.node()?, of_cluster.nats()?)));
    let (mut info, options) =
        read.await.map_err(|_| MembershipError::Runtime)?.map_err(MembershipError::Cluster)?;
    let end_notice = EndNotice::new(&options, node_id(&info.name));
    let (link, ends, EffectReceivers { slots, seats, tables, channels, jobs }) = cluster_link();
    let Some(file) = file else {
        let engine = Arc::new(NatsEngine::start(options));
        return Ok((Some(Membership { info, engine, end_notice, ends: (link, ends), joined: None }), None));
    };
    let listener = bind(config.cluster.listen(), packets).await?;
    let port = listener.local_addr().map_err(|it| failed("listen for other nodes", &it))?.port();
    info.certificate = Some(file.node.0);
    if file.role == domain::cluster::token::NodeRole::Edge {
        // It lacks the records of a full node, whatever the configuration says.
        info.role = NodeRole::Edge;
    }
    info.addresses = addresses(&config.cluster, &info, port);
    let (of_store, path) = (store.clone(), DataFolder::new(&config.data_dir).node());
    let opening = spawn_blocking(move || {
        let written = WrittenVersion::read(&of_store)?;
        Ok::<_, NodeError>((NodeTrust::new(file, path, of_store)?, written))
    });
    let opened = opening.await.map_err(|_| MembershipError::Runtime)?;
    let (trust, written) = opened.map_err(|it| MembershipError::Cluster(it.to_string()))?;
    let trust = Arc::new(trust);
    if trust.is_removed(trust.node()) {
        return Err(MembershipError::Cluster(REMOVED.to_owned()));
    }
    let dialer = Arc::new(RingDialer::new(Arc::clone(&trust)));
    let fetcher = Arc::new(AccountFetcher::new(store.clone()));
    let engine: Arc<dyn Engine> = Arc::new(NatsEngine::start(options));
    let drain = Arc::new(NodeDrain::new(config.limits.drain_time));
    let parts = NodeParts {
        leases: ClusterParts {
            link: link.clone(),
            slots,
            tables,
            engine: Arc::clone(&engine),
            node: node_id(&info.name),
        },
        channels: ChannelParts {
            name: info.name.clone(),
            link: link.clone(),
            effects: channels,
            dialer: Arc::<RingDialer>::clone(&dialer),
            engine: Arc::clone(&engine),
            node: node_id(&info.name),
            drain: Arc::clone(&drain),
            may_originate: info.role == NodeRole::Full,
        },
        seats: SeatParts { link: link.clone(), effects: seats },
        fetcher: Arc::<AccountFetcher>::clone(&fetcher),
    };
    let joined = Some(Joined { trust, dialer, fetcher, jobs, listener, drain, written });
    Ok((Some(Membership { info, engine, end_notice, ends: (link, ends), joined }), Some(parts)))
}

/// Begins to take part in the cluster: the node joins as soon as the engine can be reached. Returns the port for other nodes,
/// if this machine has joined.
///
/// `predecessor` is the process before this one, whose incarnation stays valid while it serves viewers.
pub async fn start(
    context: &Arc<NodeContext>,
    membership: Membership,
    predecessor: Option<(MemberPredecessor, PredecessorPort)>,
) -> Result<Option<TcpListener>, MembershipError> {
    let Membership { info, engine, end_notice, ends: (link, ends), joined } = membership;
    let of_context = Arc::downgrade(context);
    let written = joined.as_ref().map(|it| it.written.clone());
    let load: ReadLoad = Arc::new(move || load(&of_context, written.as_ref()));
    let launcher = context.system.upgrade().ok_or(MembershipError::Runtime)?.launcher();
    // Without a message, the guard kills a frozen process and says nothing.
    let guard = Guard::start(&launcher, end_notice.to_bytes().unwrap_or_default());
    let guard = guard.map_err(|it| failed("start the guard", &it))?;
    let of_member = (link.clone(), ends);
    let (of_cluster, events) = (Arc::clone(&engine), context.events.clone());
    let cluster = Cluster::start(of_member, of_cluster, info, load, events, guard, predecessor)
        .map_err(|it| failed("read the clock", &it))?;
    let mut port = None;
    if let Some(Joined { trust, dialer, fetcher, jobs, listener, drain, .. }) = joined {
        dialer.follow(cluster.changes());
        fetcher.follow(OtherNodes::new(Arc::clone(&trust), cluster.changes()));
        let node = share_configuration(context, trust, &cluster, engine, link, (jobs, drain)).await?;
        // Called once, like the next.
        let _ = context.node.set(node);
        port = Some(listener);
    }
    let _ = context.cluster.set(cluster);
    Ok(port)
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> MembershipError {
    MembershipError::Cluster(format!("{what}: {error}"))
}

/// Reads the file of the node, and checks that it and the store are of the same cluster.
async fn read_file(config: &Config, store: &Store) -> Result<Option<NodeFile>, MembershipError> {
    if store.lasting_folder().is_none() {
        // A temporary store, beside the one of this installation.
        return Ok(None);
    }
    let path = DataFolder::new(&config.data_dir).node();
    let read = spawn_blocking(move || NodeFile::read(&path));
    let file = read.await.map_err(|_| MembershipError::Runtime)?;
    let file = file.map_err(|it| MembershipError::Cluster(it.to_string()))?;
    let has_log = store.log_status().borrow().is_some();
    let problem = match (&file, has_log, config.cluster.is_enabled()) {
        (Some(_), true, true) | (None, false, _) => return Ok(file),
        (Some(_), true, false) => {
            "find the NATS servers: this machine is a node of a cluster, and `servers` is missing in the table [cluster] of \
             the configuration; set it, or make this a gateway of its own with `headwater cluster leave`"
        }
        (Some(_), false, _) => {
            "use the store: it does not belong to the cluster of this node, because it was restored or repaired; make \
             it the configuration of all nodes with `headwater cluster reseed`, or this a gateway of its own with `headwater \
             cluster leave`, or remove the store, and the node gets that of the cluster at the next start"
        }
        (None, true, _) => {
            "use the store: it belongs to a cluster, and the file `node.json` of this node is missing in the data folder; \
             put it back, or make this a gateway of its own with `headwater cluster leave`"
        }
    };
    Err(MembershipError::Cluster(problem.to_owned()))
}

async fn share_configuration(
    context: &NodeContext,
    trust: Arc<NodeTrust>,
    cluster: &Cluster,
    engine: Arc<dyn Engine>,
    link: ClusterLink,
    (jobs, drain): (UnboundedReceiver<NodeEffect>, Arc<NodeDrain>),
) -> Result<Node, MembershipError> {
    let (store, exchange) = (context.models.store.clone(), FileExchange::new(Arc::clone(&engine)));
    let of_snapshots = Arc::clone(&trust);
    let snapshots = SnapshotParts {
        folder: context.config.data_dir.clone(),
        keys: Arc::new(move || of_snapshots.data_keys()),
        limits: context.config.cluster.snapshots(),
    };
    let starting =
        Configuration::start(store.clone(), snapshots, Arc::clone(&engine), link, jobs, complete_store);
    let configuration = starting.await;
    let configuration = Arc::new(configuration.map_err(MembershipError::Store)?);
    let forwarder = Forwarder::new(store, Arc::clone(&trust), Arc::clone(&configuration), cluster);
    let rejoining = Rejoining {
        configuration: Arc::clone(&configuration),
        engine,
        trust: Arc::clone(&trust),
        members: cluster.changes(),
        folder: DataFolder::new(&context.config.data_dir),
        backups: context.backups.clone(),
    };
    let (of_files, models, uploads) = (Arc::clone(&trust), context.models.clone(), context.files.clone());
    let guides = context.guide_files.clone();
    let files = spawn_blocking(move || SharedFiles::new(exchange, of_files, models, uploads, guides));
    let files = Arc::new(files.await.map_err(|_| MembershipError::Runtime)?.map_err(MembershipError::Store)?);
    let keys = actors::spawn(Arc::clone(&trust).follow_keys());
    let giving =
        actors::spawn(give_up_jobs(Arc::clone(&configuration), Arc::clone(&drain), cluster.changes()));
    let passer = EventPasser {
        integrations: context.integrations.clone(),
        addresses: context.plans.addresses(),
        store: context.models.store.clone(),
        configuration: Arc::clone(&configuration),
        others: OtherNodes::new(Arc::clone(&trust), cluster.changes()),
    };
    let passing = actors::spawn(passer.run());
    let sharing = actors::spawn(Arc::clone(&files).run());
    let tasks = [keys, actors::spawn(rejoining.run()), sharing, giving, passing];
    let tasks = Mutex::new(Some(tasks.map(AbortOnDropHandle::new)));
    let others = OtherNodes::new(Arc::clone(&trust), cluster.changes());
    let (forwarder, statuses) = (Arc::new(forwarder), NodeStatuses::default());
    Ok(Node { trust, configuration, forwarder, files, others, statuses, drain, tasks })
}

/// Lets another node write the configuration while this one is drained, if there is one.
async fn give_up_jobs(
    configuration: Arc<Configuration>,
    drain: Arc<NodeDrain>,
    mut members: watch::Receiver<Arc<ClusterView>>,
) {
    let mut draining = drain.changes();
    let mut wanted = true;
    loop {
        let view = members.borrow_and_update().clone();
        let is_other = |it: &NodeView| {
            let info = &it.info;
            let is_full = info.role == NodeRole::Full && info.certificate.is_some();
            !it.is_own && it.state == NodeState::Alive && is_full && !info.load.is_draining
        };
        let wants = !drain.gives_up_jobs() || !view.nodes.iter().any(is_other);
        if std::mem::replace(&mut wanted, wants) != wants {
            configuration.want_to_write(wants);
        }
        let is_running = tokio::select! {
            changed = members.changed() => changed.is_ok(),
            is_running = draining.next() => is_running,
        };
        if !is_running {
            return;
        }
    }
}

fn complete_store(store: &Store) -> Result<(), storage::Error> {
    complete(store)
}

async fn bind(listen: Listen, runtime: &Handle) -> Result<TcpListener, MembershipError> {
    let until = Instant::now() + BIND_TIME;
    loop {
        match bind_on(listen, runtime) {
            Err(error) if error.source.kind() == std::io::ErrorKind::AddrInUse && Instant::now() < until => {
                sleep(BIND_PAUSE).await;
            }
            bound => return Ok(bound?.0),
        }
    }
}

/// Returns the addresses for other nodes: those of the configuration, with the port if it is not the usual one. Without
/// any, the address with which this machine reaches NATS.
fn addresses(config: &ClusterConfig, info: &NodeInfo, port: u16) -> Vec<String> {
    if info.addresses.is_empty() {
        let own = config.servers.iter().find_map(|it| own_address(it));
        if own.is_none() {
            warn!("no address for other nodes was found; set cluster.addresses");
        }
        return own.map(|it| SocketAddr::new(it, port).to_string()).into_iter().collect();
    }
    let with_port = |address: &String| {
        let plain = super::port_of(address);
        let is_given = *address == plain;
        match plain.rsplit_once(':').filter(|_| !is_given) {
            Some((host, _)) => format!("{host}:{port}"),
            None => plain,
        }
    };
    info.addresses.iter().map(with_port).collect()
}

/// Returns the address of this machine towards a server. Sends nothing.
fn own_address(server: &str) -> Option<std::net::IpAddr> {
    let host = server.split_once("://")?.1;
    let host = if host.rsplit_once(':').is_some_and(|it| it.1.parse::<u16>().is_ok()) {
        host.to_owned()
    } else {
        format!("{host}:4222")
    };
    let any = if host.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(host).ok()?;
    socket.local_addr().ok().map(|it| it.ip())
}

fn load(context: &Weak<NodeContext>, written: Option<&WrittenVersion>) -> NodeLoad {
    let written = written.map(WrittenVersion::get);
    let Some(context) = context.upgrade() else { return NodeLoad { written, ..NodeLoad::default() } };
    let counts = context.counts();
    NodeLoad {
        channels: counts.channels as u64,
        clients: counts.clients as u64,
        leases: counts.leases as u64,
        cpu_percent: cpu_percent(),
        is_draining: context.node().is_some_and(|it| it.drain.is_draining()),
        drain_ends: context.node().and_then(|it| it.drain.ends_at()),
        written,
        // The member says it when it writes.
        at: None,
        configuration: context.models.store.log_status().borrow().as_ref().map(|it| it.position.sequence),
    }
}

/// Returns the load average of the last minute over the number of processors, in percent.
fn cpu_percent() -> Option<u32> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let average: f64 = text.split(' ').next()?.parse().ok()?;
    let n_processors = available_parallelism().ok()?.get() as f64;
    // Saturates, and is never negative.
    Some((average / n_processors * 100.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_of_this_machine_is_known() {
        assert!(cpu_percent().is_some());
    }

    #[test]
    fn addresses_for_other_nodes_have_a_port() {
        let check = |address: &str, expected: &str| {
            let info = NodeInfo { addresses: vec![address.to_owned()], ..NodeInfo::default() };
            assert_eq!(addresses(&ClusterConfig::default(), &info, 9000), [expected]);
        };
        check("10.0.0.1", "10.0.0.1:9000");
        check("attic", "attic:9000");
        check("attic:80", "attic:80");
        check("2001:db8::1", "[2001:db8::1]:9000");
        let config =
            ClusterConfig { servers: vec!["nats://127.0.0.1:4222".to_owned()], ..ClusterConfig::default() };
        assert_eq!(addresses(&config, &NodeInfo::default(), 9000), ["127.0.0.1:9000"]);
    }
}
