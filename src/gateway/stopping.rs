//! The end of a gateway: at once, or after its last viewers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actors::{Draining, OtherSlot, System};
use domain::cluster::BootTime;
use domain::cluster::record::Incarnation;
use media::{RingDirectory, spawn_blocking};
use node::port::NodePort;
use rest::context::RestContext;
use server::accept::Server;
use tokio::time::Instant;
use tracing::info;

use super::Gateway;

/// Time for the last streams of a process that was restarted to end after their last packets.
const LAST_STREAMS_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time for moving channels to other nodes before the gateway stops.
const MOVE_TIME: Duration = Duration::from_secs(4);

/// Outcome of [`Gateway::stop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// True if no connection had to be cancelled and every actor ended in time.
    pub is_clean: bool,
}

impl Gateway {
    /// Stops in the reverse order of the start: accepts no new connection, ends every stream after its last packets,
    /// lets open responses finish until the drain time-out, closes upstream sockets, and finally closes the store.
    pub async fn stop(self) -> Stopped {
        self.end(false).await
    }

    /// Stops like [`Gateway::stop`], for a process that has handles of the listening sockets: connections that this one
    /// has accepted may send their first request.
    pub async fn stop_for_successor(self) -> Stopped {
        self.end(true).await
    }

    /// Stops for a process that has handles of the listening sockets, apart from the viewers that read a live channel over a
    /// connection of their own, if there are any: these are served on, with a store that is closed.
    pub async fn drain(mut self) -> Drained {
        // Nodes that read live channels here go on until they read them from the new process.
        let node_port = self.node_port.take().map(NodePort::retire);
        let deadline = self.begin_stop(true).await;
        let (draining, (), ()) =
            tokio::join!(self.system.drain(), self.api.answered(deadline), self.player.answered(deadline));
        let mut incarnation = None;
        if draining.n_channels() > 0 {
            if let Some(node) = self.context.nodes.node() {
                node.retire();
            }
            if let Some(cluster) = self.context.nodes.cluster.get() {
                incarnation = cluster.hand_over(self.context.nodes.node().is_some()).await;
            }
        }
        let store = self.context.models.store.clone();
        let is_served =
            draining.n_channels() > 0 && spawn_blocking(move || store.release()).await.unwrap_or_default();
        if !is_served {
            return Drained::Ended(self.finish_stop(deadline).await);
        }
        info!(channels = draining.n_channels(), "gateway stopped, apart from its viewers");
        let Self { system, context, api, player, .. } = self;
        let gateway =
            DrainingGateway { system, context, draining, api, player, incarnation, _node_port: node_port };
        Drained::Serving(Box::new(gateway))
    }

    async fn end(mut self, has_successor: bool) -> Stopped {
        let deadline = self.begin_stop(has_successor).await;
        self.finish_stop(deadline).await
    }

    /// Accepts no new connection. Returns until when open responses may finish.
    async fn begin_stop(&mut self, has_successor: bool) -> Instant {
        info!("gateway stopping");
        drop(self.listeners.take());
        if let Some(node) = self.context.nodes.node().filter(|_| !has_successor) {
            node.drain.stop();
            if let Some(shared) = self.system.shared_channels() {
                // Their viewers on other nodes get no gap if another node has opened the source before this one ends.
                shared.moved(MOVE_TIME.min(self.context.config.limits.drain_timeout)).await;
            }
        }
        drop((self.control.take(), self.node_port.take()));
        if let Some(discovery) = self.discovery.take() {
            discovery.stop(&self.context.models).await;
        }
        drop(self.backup_schedule.take());
        if self.history.take().is_some() {
            self.context.operation.history.flush().await;
        }
        for task in [
            &self.strm_schedule,
            &self.names,
            &self.completions,
            &self.matching,
            &self.recording_rules,
            &self.archives,
        ] {
            task.abort();
        }
        drop(self.cluster_plugins.take());
        self.context.operation.has_successor.store(has_successor, Ordering::Relaxed);
        self.context.operation.is_draining.store(true, Ordering::Release);
        for server in [&self.api, &self.player] {
            if has_successor { server.drain_after_first_requests() } else { server.drain() }
        }
        Instant::now() + self.context.config.limits.drain_timeout
    }

    /// Ends what is left, and closes the store.
    async fn finish_stop(self, deadline: Instant) -> Stopped {
        let (actors_ended, api_ended, player_ended) =
            tokio::join!(self.system.stop(), self.api.drained(deadline), self.player.drained(deadline));
        if let Some(cluster) = self.context.nodes.cluster.get() {
            // After the last source was closed, because the others may open sources in its place now.
            cluster.leave().await;
        }
        // Not earlier: until the last response, a handler may still write.
        let store = self.context.models.store.clone();
        let closed = spawn_blocking(move || store.close()).await.is_ok();
        let is_clean = actors_ended && api_ended && player_ended && closed;
        info!(clean = is_clean, "gateway stopped");
        Stopped { is_clean }
    }
}

/// Outcome of [`Gateway::drain`].
pub enum Drained {
    /// Nobody watched a live channel over a connection, or the store could not be closed beside viewers.
    Ended(Stopped),
    /// Viewers are left.
    Serving(Box<DrainingGateway>),
}

/// A gateway without a store that serves its last viewers. Dropping it cancels their connections.
pub struct DrainingGateway {
    system: Arc<System>,
    /// Has the member of a cluster.
    context: Arc<RestContext>,
    draining: Draining,
    api: Server,
    player: Server,
    /// Its incarnation in a cluster, which the successor keeps valid.
    incarnation: Option<Incarnation>,
    /// The connections of nodes that read live channels.
    _node_port: Option<NodePort>,
}

impl DrainingGateway {
    /// Returns the slots in use, which the successor has to count.
    pub(crate) fn slots(&self) -> Vec<OtherSlot> {
        self.draining.slots()
    }

    /// Returns the rings of the channels.
    pub(crate) fn rings(&self) -> Arc<dyn RingDirectory> {
        self.draining.rings()
    }

    /// Waits until the next live channel has ended and its slots are free. Returns its number. Cancel-safe.
    pub(crate) async fn next_return(&self) -> u64 {
        self.draining.next_return().await
    }

    /// Returns its incarnation in a cluster.
    pub(crate) fn incarnation(&self) -> Option<Incarnation> {
        self.incarnation
    }

    /// Notes until when its incarnation is valid.
    pub(crate) fn prolonged(&self, until: BootTime) {
        if let Some(cluster) = self.context.nodes.cluster.get() {
            cluster.prolonged(until);
        }
    }

    /// Closes all connections with leases of the cluster.
    pub(crate) fn end_leases(&self) {
        if let Some(cluster) = self.context.nodes.cluster.get() {
            cluster.end_handed_over();
        }
    }

    /// Waits until all connections with leases of the cluster are closed because their time is over. Cancel-safe.
    pub(crate) async fn leases_closed(&self) {
        self.draining.shared_closed().await;
    }

    /// Waits until the last viewer has left.
    pub(crate) async fn emptied(&self) {
        self.draining.emptied().await;
    }

    /// Ends the streams that are left after their last packets.
    pub(crate) async fn stop(self) {
        let deadline = Instant::now() + LAST_STREAMS_TIMEOUT;
        let stopping = (self.system.stop(), self.api.drained(deadline), self.player.drained(deadline));
        tokio::join!(stopping.0, stopping.1, stopping.2);
    }
}
