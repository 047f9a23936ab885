//! Finds an origin for a channel that this node may not open: asks full nodes, that with the least work first.
//!
//! ```text
//!   SeekOrigin ─▶ Open ──▶ the other node: starts the channel, and writes itself into the record of its origin
//!                 ◀── Opening, Refused, or nothing within a second: the next one is asked
//! ```
//!
//! The answer decides nothing: this node pulls when the record names an origin. Each message may be lost.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cluster::{Engine, Key, Message};
use domain::cluster::record::NodeId;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::{NodeDialer, SharedChannels};
use crate::plans::Target;

/// Longest wait for the answer of a node.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest wait for the record of the origin after a node said that it opens the channel.
const RECORD_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of nodes that are asked in one round.
const ASKED_MAX: usize = 16;
/// Maximum number of requests of other nodes that are answered at one time. More get no answer.
const OPENING_MAX: usize = 64;
/// Maximum length of a reason, in bytes. Longer ones are left out.
const REASON_BYTES_MAX: usize = 500;

/// A message between nodes about who opens a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OriginMessage {
    /// The receiver is asked to become the origin.
    Open {
        from: NodeId,
        /// The number of the request, which its answer repeats.
        number: u64,
        target: Target,
        /// The epoch of the origin that it is to replace; `None`: nobody plays the channel.
        replaces: Option<u64>,
        /// Viewers have watched the channel, and wait for an origin. Nodes of the version before do not say so.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_watched: bool,
    },
    /// The sender becomes the origin, or there is another one.
    Opening {
        number: u64,
    },
    Refused {
        number: u64,
        reason: String,
    },
}

impl OriginMessage {
    /// Reads a message. `None`: a node of another version sent it.
    fn read(payload: &Bytes) -> Option<Self> {
        serde_json::from_slice(payload)
            .inspect_err(|it| debug!("a message about the origin of a channel is unknown: {it}"))
            .ok()
    }
}

/// A channel that another node is asked to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WantedOrigin {
    pub(super) target: Target,
    /// The epoch of the origin that it is to replace.
    pub(super) replaces: Option<u64>,
    /// Viewers have watched the channel, and wait for an origin.
    pub(super) is_watched: bool,
}

/// Starts live channels for the viewers of other nodes.
pub(crate) trait HostChannels: Send + Sync {
    /// Starts a channel, which another node has some seconds to read. With an epoch, this node takes the place of the origin
    /// of that epoch. `is_watched`: the viewers have watched it before. The error is a reason for people.
    fn host(
        &self,
        target: Target,
        replaces: Option<u64>,
        is_watched: bool,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>>;
}

fn subject(node: NodeId) -> Key {
    Key::new(format!("node.{}.origins", node.0)).expect("this text is a key")
}

/// Asks other nodes.
pub(super) struct Origins {
    node: NodeId,
    engine: Arc<dyn Engine>,
    dialer: Arc<dyn NodeDialer>,
    last_number: AtomicU64,
    /// The requests without an answer. Bounded by the live channels of this node.
    asked: Mutex<HashMap<u64, oneshot::Sender<Result<(), String>>>>,
}

impl Origins {
    pub(super) fn new(node: NodeId, engine: Arc<dyn Engine>, dialer: Arc<dyn NodeDialer>) -> Self {
        Self { node, engine, dialer, last_number: AtomicU64::new(0), asked: Mutex::default() }
    }

    pub(super) fn subscribe(&self) -> mpsc::Receiver<Message> {
        self.engine.subscribe(subject(self.node))
    }

    /// Asks one node after the other. Returns why none has become the origin; the caller drops this future when one has.
    pub(super) async fn seek(&self, wanted: WantedOrigin) -> String {
        let mut reasons = Vec::new();
        for node in self.dialer.full_nodes().into_iter().take(ASKED_MAX) {
            let reason = match self.ask(node, wanted).await {
                Ok(()) => {
                    sleep(RECORD_TIMEOUT).await;
                    "it did not become the origin".to_owned()
                }
                Err(reason) => reason,
            };
            reasons.push(format!("node {}: {reason}", self.dialer.name(node)));
        }
        if reasons.is_empty() {
            return "no full node of the cluster runs that could open it".to_owned();
        }
        reasons.join("; ")
    }

    async fn ask(&self, node: NodeId, wanted: WantedOrigin) -> Result<(), String> {
        let WantedOrigin { target, replaces, is_watched } = wanted;
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let (answer, answered) = oneshot::channel();
        self.asked.lock().insert(number, answer);
        let _asked = Asked { origins: self, number };
        let message = OriginMessage::Open { from: self.node, number, target, replaces, is_watched };
        self.send(node, &message).await;
        match timeout(ANSWER_TIMEOUT, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Err("it does not answer".to_owned()),
        }
    }

    async fn send(&self, node: NodeId, message: &OriginMessage) {
        let Some(session) = self.engine.state().borrow().session() else { return };
        let Ok(payload) = serde_json::to_vec(message) else { return };
        if let Err(error) = self.engine.publish(session.number, &subject(node), payload.into()).await {
            debug!("a message about the origin of a channel was not sent: {error}");
        }
    }

    fn answered(&self, number: u64, answer: Result<(), String>) {
        if let Some(asked) = self.asked.lock().remove(&number) {
            // The request may be over.
            let _ = asked.send(answer);
        }
    }
}

/// A request, whose number is removed when nobody waits any more.
struct Asked<'a> {
    origins: &'a Origins,
    number: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.origins.asked.lock().remove(&self.number);
    }
}

/// Answers other nodes, and passes their answers on, until the queue ends.
pub(super) async fn serve(
    shared: Arc<SharedChannels>,
    host: Arc<dyn HostChannels>,
    mut messages: mpsc::Receiver<Message>,
) {
    let mut opening = JoinSet::new();
    while let Some(message) = messages.recv().await {
        while opening.try_join_next().is_some() {}
        match OriginMessage::read(&message.payload) {
            Some(OriginMessage::Open { from, number, target, replaces, is_watched })
                if opening.len() < OPENING_MAX =>
            {
                let wanted = WantedOrigin { target, replaces, is_watched };
                let (shared, host) = (Arc::clone(&shared), Arc::clone(&host));
                opening.spawn(async move {
                    let answer = match shared.open(&*host, wanted).await {
                        Ok(()) => OriginMessage::Opening { number },
                        Err(reason) => OriginMessage::Refused { number, reason },
                    };
                    shared.origins().send(from, &answer).await;
                });
            }
            Some(OriginMessage::Open { .. }) | None => {}
            Some(OriginMessage::Opening { number }) => shared.origins().answered(number, Ok(())),
            Some(OriginMessage::Refused { number, reason }) => {
                let is_short = reason.len() <= REASON_BYTES_MAX;
                let reason = if is_short { reason } else { "it refuses".to_owned() };
                shared.origins().answered(number, Err(reason));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::ids::StreamId;

    use super::*;

    #[test]
    fn messages_about_origins_are_read_as_written_and_rubbish_is_ignored() {
        for message in [
            OriginMessage::Open {
                from: NodeId(7),
                number: u64::MAX,
                target: Target::Stream(StreamId(3)),
                replaces: Some(2),
                is_watched: true,
            },
            OriginMessage::Opening { number: 1 },
            OriginMessage::Refused { number: 1, reason: "full".to_owned() },
        ] {
            let payload = Bytes::from(serde_json::to_vec(&message).unwrap());
            assert_eq!(OriginMessage::read(&payload), Some(message));
        }
        // Nodes of neighbouring versions understand each other: a change needs another version of the cluster.
        for golden in [
            r#"{"open":{"from":7,"number":18446744073709551615,"target":{"Stream":3},"replaces":2}}"#,
            r#"{"open":{"from":7,"number":1,"target":{"Stream":3},"replaces":null,"is_watched":true}}"#,
            r#"{"opening":{"number":1}}"#,
            r#"{"refused":{"number":1,"reason":"full"}}"#,
        ] {
            let message = OriginMessage::read(&Bytes::from(golden)).unwrap();
            assert_eq!(serde_json::to_string(&message).unwrap(), golden);
        }
        for payload in ["", "{}", "{\"open\":{}}", "{\"later\":1}", "[]", "\u{0}"] {
            assert_eq!(OriginMessage::read(&Bytes::from(payload)), None, "{payload}");
        }
    }
}
