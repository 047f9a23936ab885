//! This gateway as a node of a cluster. Without servers in the configuration, nothing of it exists.

use std::fs;
use std::sync::{Arc, Weak};
use std::thread::available_parallelism;

use actors::{ChannelParts, Cluster, ClusterLink, MemberEnds, ReadLoad, SharedChannels, cluster_link};
use cluster::nats::NatsEngine;
use cluster::{NodeLoad, NodeRole};
use media::Guard;
use storage::Store;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use super::ring_port::{self, RingDialer, RingTls, with_port};
use crate::app::App;
use crate::config::Config;
use crate::data::DataFolder;
use crate::gateway::StartError;

/// The parts that exist before the membership begins.
pub(crate) struct Preparation {
    ways: (ClusterLink, MemberEnds),
    rings: Option<(RingTls, Arc<RingDialer>)>,
    /// Present if this machine has joined the cluster.
    pub(crate) channels: Option<ChannelParts>,
}

/// Prepares to take part in the cluster, if the configuration names one.
pub(crate) async fn prepare(config: &Config, store: &Store) -> Result<Option<Preparation>, StartError> {
    if !config.cluster.is_enabled() {
        return Ok(None);
    }
    let (store, path, of_cluster) =
        (store.clone(), DataFolder::new(&config.data_dir).node(), config.cluster.clone());
    let read = tokio::task::spawn_blocking(move || {
        let tls = RingTls::read(&path, &store).map_err(|it| it.to_string())?;
        Ok((tls, of_cluster.name()?))
    });
    let (tls, name) = read.await.map_err(|_| StartError::Runtime)?.map_err(StartError::Cluster)?;
    let (link, ends, effects) = cluster_link();
    let rings = tls.map(|tls| {
        let dialer = tls.dialer();
        (tls, dialer)
    });
    let channels = rings.as_ref().map(|(_, dialer)| ChannelParts {
        name,
        link: link.clone(),
        effects: effects.channels,
        dialer: dialer.clone(),
        may_originate: config.cluster.role == NodeRole::Full,
    });
    Ok(Some(Preparation { ways: (link, ends), rings, channels }))
}

/// Begins to take part in the cluster, if the configuration names one. Returns the task that serves the rings of this node,
/// if it has joined and has an address.
///
/// The engine need not be reachable: the node joins as soon as it is.
pub(crate) async fn start(
    app: &Arc<App>,
    preparation: Option<Preparation>,
    channels: Option<Arc<SharedChannels>>,
    packets: &Handle,
) -> Result<Option<AbortOnDropHandle<()>>, StartError> {
    let config = app.config.cluster.clone();
    let Some(Preparation { ways, rings, .. }) = preparation else { return Ok(None) };
    let address = config.addresses.first().map(|it| with_port(it));
    let read = tokio::task::spawn_blocking(move || Ok((config.node()?, config.nats()?)));
    let (info, options) = read.await.map_err(|_| StartError::Runtime)?.map_err(StartError::Cluster)?;
    let engine = Arc::new(NatsEngine::start(options));
    let of_app = Arc::downgrade(app);
    let load: ReadLoad = Arc::new(move || load(&of_app));
    let guard = app.config.programs.launcher.clone().map(Guard::start).transpose();
    let guard = guard.map_err(|it| StartError::Cluster(format!("start the guard: {it}")))?;
    let serving = match (&rings, address, channels) {
        (Some((tls, _)), Some(address), Some(channels)) => {
            let listener = TcpListener::bind(&address).await;
            let listener = listener.and_then(TcpListener::into_std);
            let listener = listener
                .map_err(|it| StartError::Cluster(format!("listen on {address} for other nodes: {it}")))?;
            let _entered = packets.enter();
            let listener = TcpListener::from_std(listener)
                .map_err(|it| StartError::Cluster(format!("listen on {address} for other nodes: {it}")))?;
            let serving = ring_port::serve(listener, tls.server.clone(), channels);
            Some(AbortOnDropHandle::new(packets.spawn(serving)))
        }
        _ => None,
    };
    // Nothing asks for slots, jobs or seats yet.
    let cluster = Cluster::start(ways, engine, info, load, app.events.clone(), guard)
        .map_err(|it| StartError::Cluster(format!("read the clock: {it}")))?;
    if let Some((_, dialer)) = rings {
        dialer.follow(cluster.changes());
    }
    // Called once.
    let _ = app.cluster.set(cluster);
    Ok(serving)
}

fn load(app: &Weak<App>) -> NodeLoad {
    let counts = app.upgrade().map(|it| it.counts()).unwrap_or_default();
    NodeLoad { channels: counts.channels as u64, clients: counts.clients as u64, cpu_percent: cpu_percent() }
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
}
