//! Requests of other nodes that need the whole gateway.

use std::fmt;
use std::sync::{Arc, Weak};

use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use crate::context::NodeContext;
use crate::local_gateway::LocalGateway;

/// Why such a request fails while the gateway ends.
pub const STOPPING: &str = "the gateway is stopping";

/// Runs requests on the runtime of the control plane, because the port belongs to that of packets.
#[derive(Clone)]
pub struct NodeWork {
    context: Weak<NodeContext>,
    /// The parts above this crate.
    pub(crate) gateway: Arc<dyn LocalGateway>,
    work: Handle,
}

impl fmt::Debug for NodeWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeWork(…)")
    }
}

impl NodeWork {
    /// `work` is the runtime of the control plane.
    pub fn new(context: &Arc<NodeContext>, gateway: Arc<dyn LocalGateway>, work: Handle) -> Self {
        Self { context: Arc::downgrade(context), gateway, work }
    }

    /// Runs a request, which ends when the caller stops to wait. `None`: the gateway is stopping.
    pub(super) async fn run<T, F>(&self, request: impl FnOnce(Arc<NodeContext>) -> F) -> Option<T>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let request = request(self.context.upgrade()?);
        AbortOnDropHandle::new(self.work.spawn(request)).await.ok()
    }
}
