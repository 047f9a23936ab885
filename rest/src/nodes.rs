//! This machine as a node of a cluster, for those who have the application context.

use std::sync::Arc;

use node::context::NodeContext;
use route_frame::app::App;

/// This machine and its cluster.
pub trait Nodes {
    /// Returns what nodes use.
    fn nodes(&self) -> &Arc<NodeContext>;
}

impl Nodes for App {
    fn nodes(&self) -> &Arc<NodeContext> {
        self.state()
    }
}
