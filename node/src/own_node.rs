//! This gateway as a node that shares the configuration.

use std::sync::Arc;

use actors::{ClusterView, Configuration, NodeDrain, NodeState, NodeView};
use domain::cluster::record::NodeId;
use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

use super::drain::{DrainError, set_drain};
use super::files::SharedFiles;
use super::forward::Forwarder;
use super::peers::OtherNodes;
use super::status::NodeStatuses;
use super::trust::NodeTrust;

/// This gateway as a node that shares the configuration.
#[derive(Debug)]
pub struct Node {
    pub trust: Arc<NodeTrust>,
    pub configuration: Arc<Configuration>,
    pub forwarder: Arc<Forwarder>,
    pub files: Arc<SharedFiles>,
    pub others: OtherNodes,
    pub statuses: NodeStatuses,
    pub drain: Arc<NodeDrain>,
    /// Follow the data keys, whether the store needs a snapshot, the shared files, the drain, and the events for
    /// integrations.
    pub(crate) tasks: Mutex<Option<[AbortOnDropHandle<()>; 5]>>,
}

impl Node {
    /// Ends what follows the cluster with the store of this node, because another process will.
    pub fn retire(&self) {
        drop(self.tasks.lock().take());
        self.configuration.retire();
    }

    /// Returns whether a node was removed from the cluster and takes no part any more. Its record stays in NATS.
    pub fn has_removed(&self, node: &NodeView) -> bool {
        let is_removed = node.info.certificate.is_some_and(|it| self.trust.is_removed(NodeId(it)));
        is_removed && node.state != NodeState::Alive
    }

    /// Begins or ends the drain of a node of the cluster.
    ///
    /// # Errors
    /// If there is no such node, or if it does not answer.
    pub async fn set_drain(
        &self,
        view: &ClusterView,
        name: &str,
        is_draining: bool,
    ) -> Result<(), DrainError> {
        let node = view.nodes.iter().find(|it| it.info.name == name).ok_or(DrainError::Unknown)?;
        if node.is_own {
            self.drain.set(is_draining);
            return Ok(());
        }
        set_drain(&self.others, name, is_draining).await
    }
}
