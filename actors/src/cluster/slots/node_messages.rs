//! Messages about slots between nodes. Each may be lost: a request to yield without an answer is over after a second.

use std::sync::Arc;

use bytes::Bytes;
use cluster::{Engine, Key};
use domain::cluster::record::{LeaseId, NodeId, PoolId};
use domain::recording::RecordingClaim;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tracing::debug;

use crate::viewer::Viewer;

/// Maximum number of messages that wait to be sent. More are dropped.
pub(super) const MESSAGES_MAX: usize = 256;

/// A message to another node.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SlotsMessage {
    /// The holder of this lease is asked to yield.
    Yield { asked: YieldId, viewer: Option<Viewer>, claim: Option<RecordingClaim> },
    /// The holder keeps its lease.
    Kept(YieldId),
    /// The holder has kept its lease, and nobody watches its source any more.
    Lingering(YieldId),
}

/// A request to the holder of a lease to yield.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct YieldId {
    /// The node that asks.
    pub(super) from: NodeId,
    pub(super) pool: PoolId,
    /// The number of its request; 0: no request waits.
    pub(super) asked_by: u64,
    /// The lease of the holder.
    pub(super) lease: LeaseId,
}

/// Returns the subject of the messages to a node.
pub(super) fn subject(node: NodeId) -> Key {
    Key::new(format!("node.{}.slots", node.0)).expect("this text is a key")
}

/// Reads a message. `None`: a node of another version sent it.
pub(super) fn read(payload: &Bytes) -> Option<SlotsMessage> {
    serde_json::from_slice(payload).inspect_err(|it| debug!("a message about slots is unknown: {it}")).ok()
}

/// Sends messages until nobody has any.
pub(super) async fn send(engine: Arc<dyn Engine>, mut messages: mpsc::Receiver<(NodeId, SlotsMessage)>) {
    while let Some((node, message)) = messages.recv().await {
        let Some(session) = engine.state().borrow().session() else { continue };
        let Ok(payload) = serde_json::to_vec(&message) else { continue };
        if let Err(error) = engine.publish(session.number, &subject(node), payload.into()).await {
            debug!("a message about slots was not sent: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change needs another version of the cluster.
    #[test]
    fn the_messages_about_slots_stay_as_they_are() {
        let asked = r#"{"from":7,"pool":{"group":3},"asked_by":4,"lease":{"process":5,"number":6}}"#;
        let viewer = r#"{"user":"anna","address":"192.0.2.7","agent":"VLC"}"#;
        for golden in [
            format!(r#"{{"yield":{{"asked":{asked},"viewer":{viewer},"claim":null}}}}"#),
            format!(r#"{{"kept":{asked}}}"#),
            format!(r#"{{"lingering":{asked}}}"#),
        ] {
            let message = read(&Bytes::from(golden.clone())).unwrap();
            assert_eq!(serde_json::to_string(&message).unwrap(), golden);
        }
        assert!(read(&Bytes::from(r#"{"later":1}"#)).is_none());
    }
}
