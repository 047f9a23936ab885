//! Requests of other nodes that need the whole gateway.

use std::fmt;
use std::sync::{Arc, Weak};

use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use crate::app::App;

/// Why such a request fails while the gateway ends.
pub(super) const STOPPING: &str = "the gateway is stopping";

/// Runs requests on the runtime of the control plane, because the port belongs to that of packets.
#[derive(Clone)]
pub(crate) struct NodeWork {
    app: Weak<App>,
    work: Handle,
}

impl fmt::Debug for NodeWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeWork(…)")
    }
}

impl NodeWork {
    pub(crate) fn new(app: &Arc<App>, work: Handle) -> Self {
        Self { app: Arc::downgrade(app), work }
    }

    /// Runs a request, which ends when the caller stops to wait. `None`: the gateway is stopping.
    pub(super) async fn run<T, F>(&self, request: impl FnOnce(Arc<App>) -> F) -> Option<T>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let request = request(self.app.upgrade()?);
        AbortOnDropHandle::new(self.work.spawn(request)).await.ok()
    }
}
