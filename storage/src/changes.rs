//! What was committed, told to whoever subscribed.

use std::sync::Arc;

use tokio::sync::broadcast;

/// Changes that wait for a slow subscriber before the oldest is forgotten.
pub(crate) const BACKLOG: usize = 256;
/// More ids than this are told as [`ChangedIds::Many`].
pub(crate) const IDS_MAX: usize = 1000;

/// One commit: what it touched, not what stands there now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The number of the commit. Grows, with gaps.
    pub version: u64,
    pub collections: Vec<CollectionChange>,
}

impl Change {
    /// What the commit did to a collection, if anything.
    pub fn of(&self, collection: &str) -> Option<&ChangedIds> {
        self.collections.iter().find(|it| it.collection == collection).map(|it| &it.ids)
    }
}

/// What a commit did to one collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionChange {
    pub collection: &'static str,
    pub ids: ChangedIds,
}

/// Records that were put or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedIds {
    Few(Vec<u32>),
    /// So many that reading the collection again is simpler.
    Many,
}

impl ChangedIds {
    pub fn may_have(&self, id: u32) -> bool {
        match self {
            Self::Few(ids) => ids.contains(&id),
            Self::Many => true,
        }
    }
}

/// What a subscriber hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeMessage {
    Changed(Arc<Change>),
    /// It was too slow and some commits are forgotten: read everything again.
    Lagged,
    /// The store was closed.
    Closed,
}

/// A subscription; hears of every commit after it was made.
#[derive(Debug)]
pub struct Changes {
    pub(crate) receiver: broadcast::Receiver<Arc<Change>>,
}

impl Changes {
    /// The next commit. Cancel-safe.
    pub async fn next(&mut self) -> ChangeMessage {
        match self.receiver.recv().await {
            Ok(change) => ChangeMessage::Changed(change),
            Err(broadcast::error::RecvError::Lagged(_)) => ChangeMessage::Lagged,
            Err(broadcast::error::RecvError::Closed) => ChangeMessage::Closed,
        }
    }

    /// The next commit, if it was already told.
    pub fn try_next(&mut self) -> Option<ChangeMessage> {
        match self.receiver.try_recv() {
            Ok(change) => Some(ChangeMessage::Changed(change)),
            Err(broadcast::error::TryRecvError::Lagged(_)) => Some(ChangeMessage::Lagged),
            Err(broadcast::error::TryRecvError::Closed) => Some(ChangeMessage::Closed),
            Err(broadcast::error::TryRecvError::Empty) => None,
        }
    }
}
