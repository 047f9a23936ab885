//! This gateway as a node of a cluster. Without servers in the configuration, nothing of it exists.

use std::fs;
use std::sync::{Arc, Weak};
use std::thread::available_parallelism;

use actors::{Cluster, ClusterLink, ClusterParts, EffectReceivers, MemberEnds, ReadLoad, cluster_link};
use cluster::nats::NatsEngine;
use cluster::{Engine, NodeInfo, NodeLoad, node_id};
use media::Guard;

use super::file::NodeFile;
use crate::app::App;
use crate::config::Config;
use crate::data::DataFolder;
use crate::gateway::StartError;

/// The way of this node into the cluster, before it is a member.
pub(crate) struct Membership {
    info: NodeInfo,
    engine: Arc<dyn Engine>,
    ends: (ClusterLink, MemberEnds),
}

/// Connects to the engine, if the configuration names a cluster. The engine need not be reachable.
///
/// The second value is there if this machine has the file of a node: then it shares the limits of accounts with the other
/// nodes. Without the file, it is only shown as a member.
pub(crate) async fn prepare(
    config: &Config,
) -> Result<(Option<Membership>, Option<ClusterParts>), StartError> {
    if !config.cluster.is_enabled() {
        return Ok((None, None));
    }
    let (cluster, path) = (config.cluster.clone(), DataFolder::new(&config.data_dir).node());
    let read = tokio::task::spawn_blocking(move || {
        let file = NodeFile::read(&path).map_err(|it| it.to_string())?;
        Ok((cluster.node()?, cluster.nats()?, file.is_some()))
    });
    let (info, options, is_node) =
        read.await.map_err(|_| StartError::Runtime)?.map_err(StartError::Cluster)?;
    let engine: Arc<dyn Engine> = Arc::new(NatsEngine::start(options));
    let (link, ends, EffectReceivers { slots, tables, .. }) = cluster_link();
    let node = node_id(&info.name);
    let parts = ClusterParts { link: link.clone(), slots, tables, engine: engine.clone(), node };
    Ok((Some(Membership { info, engine, ends: (link, ends) }), is_node.then_some(parts)))
}

/// Begins to take part in the cluster: the node joins as soon as the engine can be reached.
pub(crate) fn start(app: &Arc<App>, membership: Membership) -> Result<(), StartError> {
    let Membership { info, engine, ends } = membership;
    let of_app = Arc::downgrade(app);
    let load: ReadLoad = Arc::new(move || load(&of_app));
    let guard = app.config.programs.launcher.clone().map(Guard::start).transpose();
    let guard = guard.map_err(|it| StartError::Cluster(format!("start the guard: {it}")))?;
    let cluster = Cluster::start(ends, engine, info, load, app.events.clone(), guard)
        .map_err(|it| StartError::Cluster(format!("read the clock: {it}")))?;
    // Called once.
    let _ = app.cluster.set(cluster);
    Ok(())
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
