//! What this crate uses of the gateway, and this machine as a node.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use actors::{
    Cluster, Events, Integrations, MetricsSnapshot, Plans, Recorder, Switchboard, System, TimeShift, Vod,
};
use config::Config;
use services::archives::ArchiveCache;
use services::auth::Auth;
use services::backups::Backups;
use services::files::Files;
use storage::Models;
use storage::guide::GuideFiles;

use crate::own_node::Node;

/// The parts of the gateway that this crate uses. Everything of it is shared with the rest of the gateway.
pub struct NodeContext {
    pub config: Config,
    pub models: Models,
    pub files: Files,
    pub guide_files: GuideFiles,
    /// How far back the past of channels can be watched.
    pub archives: Arc<ArchiveCache>,
    pub backups: Backups,
    pub auth: Auth,
    pub switchboard: Switchboard,
    pub vod: Vod,
    pub time_shift: TimeShift,
    pub recorder: Recorder,
    pub events: Events,
    pub integrations: Integrations,
    pub plans: Arc<dyn Plans>,
    /// Weak, because connections keep this, and must not keep the actors running.
    pub system: Weak<System>,
    /// Set once the configuration names a cluster.
    pub cluster: OnceLock<Cluster>,
    /// Set once this machine shares the configuration.
    pub node: OnceLock<Node>,
}

impl NodeContext {
    /// Returns this machine as a node that shares the configuration; `None` if it does not.
    pub fn node(&self) -> Option<&Node> {
        self.node.get()
    }

    /// Reads all counters of the system. All are zero once the system has been dropped.
    pub fn counts(&self) -> MetricsSnapshot {
        self.system.upgrade().map(|it| it.counts()).unwrap_or_default()
    }
}

impl fmt::Debug for NodeContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeContext(…)")
    }
}
