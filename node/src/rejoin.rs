//! A node whose store the log no longer continues: it was off while the log was trimmed, or another node has begun a new log.
//!
//! The store of the cluster is built beside the present one, from a snapshot in NATS or from another node. Then the gateway
//! restarts, which swaps the stores (see [`PendingRestore`]), and follows the log from there. Everything that is of this node
//! alone stays.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use actors::{ClusterView, Configuration, NodeState, SnapshotName, read_usable_snapshot};
use cluster::{Engine, NodeRole};
use config::DataFolder;
use media::spawn_blocking;
use services::backups::{Backups, PendingRestore};
use storage::Error;
use storage::backup::BackupError;
use storage::log::{log_of, verify_snapshot};
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{info, warn};
use uuid::Uuid;

use super::joining::{FoundNode, download_snapshot, fetch_keys};
use super::time_limits::REJOIN_RETRY_PAUSE;
use super::trust::NodeTrust;

/// The snapshot, in the data folder. That of an interrupted attempt is overwritten.
const FILE: &str = "log-snapshot.new";
/// Maximum number of snapshots that are tried. The object store has two, and more only for a moment.
const TRIES: usize = 4;

/// Replaces the store of this node when it has to.
pub(super) struct Rejoining {
    pub(super) configuration: Arc<Configuration>,
    pub(super) engine: Arc<dyn Engine>,
    pub(super) trust: Arc<NodeTrust>,
    pub(super) members: watch::Receiver<Arc<ClusterView>>,
    pub(super) folder: DataFolder,
    pub(super) backups: Backups,
}

impl Rejoining {
    /// Waits until the store needs a snapshot, prepares it and asks for a restart.
    pub(super) async fn run(self) {
        let mut changes = self.configuration.changes();
        let mut last_reason = String::new();
        while changes.wait_for(|it| it.needs_snapshot).await.is_ok() {
            match self.prepare().await {
                Ok(sequence) => {
                    info!(sequence, "a snapshot of the configuration is ready; this node restarts to use it");
                    self.backups.restart();
                    return;
                }
                Err(reason) => {
                    if reason != last_reason {
                        warn!("failed to get a snapshot of the configuration, trying again: {reason}");
                    }
                    last_reason = reason;
                }
            }
            sleep(REJOIN_RETRY_PAUSE).await;
        }
    }

    /// Builds the store of the cluster beside the present one. Returns its position.
    async fn prepare(&self) -> Result<u64, String> {
        let path = self.folder.root().join(FILE);
        let prepared = match self.get_from_engine(&path).await {
            Ok(sequence) => Ok(sequence),
            Err(of_engine) => self.get_from_nodes(&path).await.map_err(|it| format!("{of_engine}; {it}")),
        };
        // Overwritten the next time otherwise.
        let _ = std::fs::remove_file(path);
        prepared
    }

    fn session(&self) -> Result<u64, String> {
        let session = self.engine.state().borrow().session();
        session.map(|it| it.number).ok_or_else(|| "NATS cannot be reached".to_owned())
    }

    async fn get_from_engine(&self, path: &Path) -> Result<u64, String> {
        let session = self.session()?;
        let mut skipped: Vec<SnapshotName> = Vec::new();
        let mut reasons = Vec::new();
        for _ in 0..TRIES {
            let name = match read_usable_snapshot(&*self.engine, session, path, &skipped).await {
                Ok(name) => name,
                Err(reason) => {
                    reasons.push(reason);
                    break;
                }
            };
            let built = match self.verified(path.to_owned()).await {
                Ok(position) if position == (name.log, name.sequence) => self.build(path.to_owned()).await,
                Ok(_) => Err("the snapshot stands at another entry than its name says".to_owned()),
                Err(reason) => Err(reason),
            };
            match built {
                Ok(sequence) => return Ok(sequence),
                Err(reason) => reasons.push(reason),
            }
            skipped.push(name);
        }
        Err(reasons.join("; "))
    }

    async fn get_from_nodes(&self, path: &Path) -> Result<u64, String> {
        let session = self.session()?;
        let log = self.engine.log_state(session).await.map_err(|it| it.to_string())?;
        let last = self.engine.read_log(session, log.last).await.map_err(|it| it.to_string())?;
        let identity = last.and_then(|it| log_of(&it.payload)).ok_or("the log has no entry")?;
        let mut reasons = Vec::new();
        for node in self.nodes() {
            let failed = |error: &dyn Display| format!("the node \"{}\": {error}", node.name);
            let client = self.trust.client().map_err(|it| failed(&it))?;
            if let Err(reason) = download_snapshot(&node, &client, path).await {
                reasons.push(reason);
                continue;
            }
            let built = match self.verified(path.to_owned()).await {
                Ok((of_log, sequence)) if of_log == identity && sequence + 1 >= log.first => {
                    self.build(path.to_owned()).await
                }
                // A node that has not heard of a new log yet sends its old store.
                Ok(_) => Err("it has an old configuration itself".to_owned()),
                Err(reason) => Err(reason),
            };
            match built {
                Ok(sequence) => return Ok(sequence),
                Err(reason) => reasons.push(failed(&reason)),
            }
        }
        if reasons.is_empty() {
            reasons.push("no other node is running".to_owned());
        }
        Err(reasons.join("; "))
    }

    /// Lists the other full nodes that are members.
    fn nodes(&self) -> Vec<FoundNode> {
        let view = self.members.borrow().clone();
        let is_useful = |it: &&actors::NodeView| {
            let is_full = it.info.role == NodeRole::Full && it.info.certificate.is_some();
            is_full && !it.is_own && it.state == NodeState::Alive
        };
        let nodes = view.nodes.iter().filter(is_useful);
        nodes
            .map(|it| FoundNode { name: it.info.name.clone(), addresses: it.info.addresses.clone() })
            .collect()
    }

    /// Verifies a snapshot, and gets the data keys with which it was made if this node does not have them.
    async fn verified(&self, path: PathBuf) -> Result<(Uuid, u64), String> {
        let mut has_asked = false;
        loop {
            let (keys, path) = (self.trust.data_keys(), path.clone());
            let verifying = spawn_blocking(move || verify_snapshot(&path, &keys));
            match verifying.await.map_err(|it| it.to_string())? {
                Ok(position) => return Ok((position.log, position.sequence)),
                Err(BackupError::Store(Error::Key(_))) if !has_asked => {
                    has_asked = true;
                    self.take_keys().await?;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Gets the present data keys, which were rotated while this node was off.
    async fn take_keys(&self) -> Result<(), String> {
        let mut reasons = Vec::new();
        for node in self.nodes() {
            let client = self.trust.client().map_err(|it| it.to_string())?;
            match fetch_keys(&node, &client).await {
                Ok(sealed) => {
                    let trust = Arc::clone(&self.trust);
                    let taking = spawn_blocking(move || trust.take_sealed_keys(&sealed));
                    return taking.await.map_err(|it| it.to_string())?.map_err(|it| it.to_string());
                }
                Err(reason) => reasons.push(reason),
            }
        }
        Err(format!(
            "the data keys were rotated while this node was off, and no other node gives them: {}",
            if reasons.is_empty() { "none is running".to_owned() } else { reasons.join("; ") }
        ))
    }

    /// Restores a verified snapshot, to be used from the next start. Returns its position.
    async fn build(&self, path: PathBuf) -> Result<u64, String> {
        let (keys, folder) = (self.trust.data_keys(), self.folder.clone());
        let building = spawn_blocking(move || {
            PendingRestore::new(&folder).prepare_snapshot(&path, &keys, &folder.key())
        });
        let position = building.await.map_err(|it| it.to_string())?.map_err(|it| it.to_string())?;
        Ok(position.sequence)
    }
}
