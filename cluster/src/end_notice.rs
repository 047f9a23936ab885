//! The message of a guard to the other nodes: the process that it guarded has ended with everything that it started.
//!
//! The guard is a small process that outlives the gateway. It gets an [`EndNotice`] from the gateway over a pipe when it
//! starts, and logs in to NATS with it only after the gateway has ended. Its message is a swap of the record of the node,
//! which every node may write, so that it needs neither a form nor a recipient of its own: nodes of all versions
//! understand it. [`domain::cluster::end`] decides which records it may replace.

use std::time::Duration;

use domain::cluster::SwapOutcome;
use domain::cluster::end::record_after_end;
use domain::cluster::record::{ClusterRecord, NodeId, ProcessId, RecordKey};
use domain::cluster::rules::ClusterRules;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::codec::{self, StoredMember, StoredRecord};
use crate::engine::Engine;
use crate::nats::{NatsEngine, NatsOptions, PlainNatsOptions};

/// Pause between two attempts.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// How a guard tells the other nodes that its process has ended.
#[derive(Debug, Clone)]
pub struct EndNotice {
    options: NatsOptions,
    node: NodeId,
}

/// The same with the keys of the login in plain text. It is passed over a pipe only, and cannot be printed.
#[derive(Serialize, Deserialize)]
struct PlainEndNotice {
    options: PlainNatsOptions,
    node: NodeId,
}

impl EndNotice {
    /// Creates the notice of a node that logs in with these options.
    pub fn new(options: &NatsOptions, node: NodeId) -> Self {
        let options = NatsOptions { name: format!("{} (guard)", options.name), ..options.clone() };
        Self { options, node }
    }

    /// Writes it, with the keys of the login, for the pipe to the guard. `None`: the login has no key that can be read.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let plain = PlainEndNotice { options: self.options.to_plain()?, node: self.node };
        serde_json::to_vec(&plain).ok()
    }

    /// Reads it back. `None`: these are other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let PlainEndNotice { options, node } = serde_json::from_slice(bytes).ok()?;
        Some(Self { options: NatsOptions::from_plain(options)?, node })
    }

    /// Tells the other nodes that a process of the node has ended. Waits for the engine without an end.
    pub async fn tell(self, process: ProcessId) {
        tell_end(&NatsEngine::start(self.options), self.node, process).await;
    }
}

/// Tells the other nodes that a process of a node has ended, by a swap of the record of the node. Waits for the engine
/// without an end. Writes nothing if the record is that of another process.
pub async fn tell_end(engine: &dyn Engine, node: NodeId, process: ProcessId) {
    let mut state = engine.state();
    loop {
        // An error means that the engine has ended.
        let Ok(session) = state.wait_for(|it| it.session().is_some()).await.map(|it| it.session()) else {
            return;
        };
        if let Some(session) = session
            && try_to_tell(engine, session.number, node, process).await
        {
            return;
        }
        sleep(RETRY_PAUSE).await;
    }
}

/// Returns whether the record of the node says that the process has ended, or is not about the process.
async fn try_to_tell(engine: &dyn Engine, session: u64, node: NodeId, process: ProcessId) -> bool {
    let at = RecordKey::Member(node);
    let key = codec::key(at);
    let Ok(record) = engine.read(session, &key).await else { return false };
    let decoded = record.value.and_then(|it| codec::decode(&key, at, &it).ok());
    let Some(StoredRecord::Member(StoredMember { record: present, node: info })) = decoded else {
        return true;
    };
    let Some(next) = record_after_end(process, record.revision, &present, ClusterRules::default()) else {
        return true;
    };
    let value = codec::encode(&ClusterRecord::Member(next), &info);
    matches!(engine.swap(session, &key, record.revision, Some(value)).await, SwapOutcome::Applied(_))
}
