//! This gateway as a node of a cluster. Without servers in the configuration, nothing of it exists.

use std::fs;
use std::sync::{Arc, Weak};
use std::thread::available_parallelism;

use actors::{Cluster, ReadLoad, cluster_link};
use cluster::NodeLoad;
use cluster::nats::NatsEngine;
use media::Guard;

use crate::app::App;
use crate::gateway::StartError;

/// Begins to take part in the cluster, if the configuration names one.
///
/// The engine need not be reachable: the node joins as soon as it is.
pub(crate) async fn start(app: &Arc<App>) -> Result<(), StartError> {
    let config = app.config.cluster.clone();
    if !config.is_enabled() {
        return Ok(());
    }
    let read = tokio::task::spawn_blocking(move || Ok((config.node()?, config.nats()?)));
    let (info, options) = read.await.map_err(|_| StartError::Runtime)?.map_err(StartError::Cluster)?;
    let engine = Arc::new(NatsEngine::start(options));
    let of_app = Arc::downgrade(app);
    let load: ReadLoad = Arc::new(move || load(&of_app));
    let guard = app.config.programs.launcher.clone().map(Guard::start).transpose();
    let guard = guard.map_err(|it| StartError::Cluster(format!("start the guard: {it}")))?;
    // Nothing asks for slots, channels, jobs or seats yet.
    let (link, ends, _) = cluster_link();
    let cluster = Cluster::start((link, ends), engine, info, load, app.events.clone(), guard)
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
