//! Whether this node is drained: it opens no channel and begins no job, and its channels move to other nodes.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// The drain of a node. It ends with the process.
#[derive(Debug)]
pub struct NodeDrain {
    state: watch::Sender<bool>,
    is_stopping: AtomicBool,
}

impl Default for NodeDrain {
    fn default() -> Self {
        Self { state: watch::Sender::new(false), is_stopping: AtomicBool::new(false) }
    }
}

impl NodeDrain {
    /// Begins or ends the drain. Returns whether that changed anything.
    pub fn set(&self, is_draining: bool) -> bool {
        self.state.send_if_modified(|it| std::mem::replace(it, is_draining) != is_draining)
    }

    /// Drains the node because the gateway stops. Its jobs end with it.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.set(true);
    }

    pub fn is_draining(&self) -> bool {
        *self.state.borrow()
    }

    /// Returns whether the jobs of the node are for other nodes.
    pub fn gives_up_jobs(&self) -> bool {
        self.is_draining() && !self.is_stopping.load(Ordering::Relaxed)
    }

    /// Returns the state, and its changes.
    pub fn changes(&self) -> watch::Receiver<bool> {
        self.state.subscribe()
    }
}
