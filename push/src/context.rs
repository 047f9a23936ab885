//! The parts of the gateway that the WebSocket uses.

use std::fmt;
use std::sync::Arc;

use actors::{ChannelStatus, Events, GuideRefreshes, Importer, Integrations, VodImporter, VodSessionInfo};
use node::context::NodeContext;
use route_frame::network_access::NetworkAccess;
use serde_json::Value;
use services::auth::Auth;
use services::matching::Matching;
use services::plugins::PluginProcesses;
use storage::Models;

/// The parts of the gateway that this crate uses. Everything of it is shared with the rest of the gateway.
pub struct PushContext {
    /// The stored records.
    pub models: Models,
    /// Authenticates users.
    pub auth: Auth,
    /// The networks that may use the gateway.
    pub networks: Arc<NetworkAccess>,
    /// Events, which sockets get.
    pub events: Events,
    /// Runs of the matching.
    pub matching: Arc<Matching>,
    /// Processes of plugins.
    pub plugin_processes: Arc<PluginProcesses>,
    /// Deliveries to integrations.
    pub integrations: Integrations,
    /// Refreshes of playlists.
    pub importer: Importer,
    /// Refreshes of films and series.
    pub vod_importer: VodImporter,
    /// Refreshes of guides.
    pub guide_refreshes: GuideRefreshes,
    /// This machine as a node.
    pub nodes: Arc<NodeContext>,
    /// Maximum number of open WebSockets per user; 0 means no limit.
    pub sockets_per_user_max: usize,
    /// The form of some statistics.
    pub views: StatisticsViews,
}

impl fmt::Debug for PushContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PushContext(…)")
    }
}

/// The form of statistics that clients also get as answers of resources.
#[derive(Clone, Copy, Debug)]
pub struct StatisticsViews {
    /// Players of films and episodes. `None` if the store cannot be read.
    pub films: fn(&Models, &[VodSessionInfo]) -> Option<Value>,
    /// Players of the past of channels.
    pub past: fn(&Models, &[VodSessionInfo]) -> Option<Value>,
    /// Tells what admins get about a live channel.
    pub channel: fn(&ChannelStatus) -> Value,
}
