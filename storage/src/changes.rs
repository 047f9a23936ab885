//! What was committed, told to whoever subscribed.

use std::sync::Arc;

use tokio::sync::broadcast;

/// Changes that wait for a slow subscriber before the oldest is forgotten.
pub(crate) const BACKLOG: usize = 256;
/// More ids than this are told as [`Ids::Many`].
pub(crate) const IDS_MAX: usize = 1000;

/// One commit: what it touched, not what stands there now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The number of the commit. Grows, with gaps.
    pub version: u64,
    pub touched: Vec<Touched>,
}

impl Change {
    /// What the commit did to a collection, if anything.
    pub fn of(&self, collection: &str) -> Option<&Ids> {
        self.touched.iter().find(|it| it.collection == collection).map(|it| &it.ids)
    }
}

/// What a commit did to one collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    pub collection: &'static str,
    pub ids: Ids,
}

/// Records that were put or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ids {
    Few(Vec<u32>),
    /// So many that reading the collection again is simpler.
    Many,
}

impl Ids {
    pub fn may_have(&self, id: u32) -> bool {
        match self {
            Self::Few(ids) => ids.contains(&id),
            Self::Many => true,
        }
    }
}

/// What a subscriber hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    Changed(Arc<Change>),
    /// It was too slow and some commits are forgotten: read everything again.
    Missed,
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
    pub async fn next(&mut self) -> News {
        match self.receiver.recv().await {
            Ok(change) => News::Changed(change),
            Err(broadcast::error::RecvError::Lagged(_)) => News::Missed,
            Err(broadcast::error::RecvError::Closed) => News::Closed,
        }
    }

    /// The next commit, if it was already told.
    pub fn try_next(&mut self) -> Option<News> {
        match self.receiver.try_recv() {
            Ok(change) => Some(News::Changed(change)),
            Err(broadcast::error::TryRecvError::Lagged(_)) => Some(News::Missed),
            Err(broadcast::error::TryRecvError::Closed) => Some(News::Closed),
            Err(broadcast::error::TryRecvError::Empty) => None,
        }
    }
}
