//! Subscriptions: each commit is sent to all subscribers.

use std::sync::Arc;

use tokio::sync::broadcast;

/// Number of changes kept for a slow subscriber before the oldest is dropped.
pub(crate) const BACKLOG: usize = 256;
/// Maximum number of ids in [`ChangedIds::Few`].
pub(crate) const IDS_MAX: usize = 1000;

/// One commit: which records it changed, without their content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The number of the commit. Increases, with gaps.
    pub version: u64,
    pub collections: Vec<CollectionChange>,
}

impl Change {
    /// Returns a change after which these collections have to be read again.
    pub(crate) fn all(version: u64, collections: impl Iterator<Item = &'static str>) -> Self {
        let all = |collection| CollectionChange { collection, ids: ChangedIds::Many };
        Self { version, collections: collections.map(all).collect() }
    }

    /// Returns the changed ids of a collection, if the commit changed it.
    pub fn ids(&self, collection: &str) -> Option<&ChangedIds> {
        self.collections.iter().find(|it| it.collection == collection).map(|it| &it.ids)
    }
}

/// The changes of a commit to one collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionChange {
    pub collection: &'static str,
    pub ids: ChangedIds,
}

/// Ids of the records that were put or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedIds {
    Few(Vec<u32>),
    /// So many that the subscriber should read the collection again.
    Many,
}

/// A message to a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeMessage {
    Changed(Arc<Change>),
    /// The subscriber was too slow and missed some commits: it has to read everything again.
    Lagged,
    /// The store was closed.
    Closed,
}

/// A subscription to all commits after its creation.
#[derive(Debug)]
pub struct Changes {
    pub(crate) receiver: broadcast::Receiver<Arc<Change>>,
}

impl Changes {
    /// Waits for the next message. Cancel-safe.
    pub async fn next(&mut self) -> ChangeMessage {
        match self.receiver.recv().await {
            Ok(change) => ChangeMessage::Changed(change),
            Err(broadcast::error::RecvError::Lagged(_)) => ChangeMessage::Lagged,
            Err(broadcast::error::RecvError::Closed) => ChangeMessage::Closed,
        }
    }

    /// Waits until records of a collection may have changed. Returns false once the store is closed. Cancel-safe.
    pub async fn next_in(&mut self, collection: &str) -> bool {
        loop {
            match self.next().await {
                ChangeMessage::Changed(change) if change.ids(collection).is_none() => {}
                ChangeMessage::Changed(_) | ChangeMessage::Lagged => return true,
                ChangeMessage::Closed => return false,
            }
        }
    }

    /// Returns the next message if one is waiting.
    pub fn try_next(&mut self) -> Option<ChangeMessage> {
        match self.receiver.try_recv() {
            Ok(change) => Some(ChangeMessage::Changed(change)),
            Err(broadcast::error::TryRecvError::Lagged(_)) => Some(ChangeMessage::Lagged),
            Err(broadcast::error::TryRecvError::Closed) => Some(ChangeMessage::Closed),
            Err(broadcast::error::TryRecvError::Empty) => None,
        }
    }
}
