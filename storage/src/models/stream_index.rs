//! The index of all streams in memory, which follows the commits on a thread of its own.
//!
//! Reading half a million streams takes a second, so the index cannot be updated while a commit waits. A few edited
//! streams are read one by one and kept in addition to their shard. After larger changes, the accounts with a changed
//! fingerprint are read again, and no others.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use domain::streams::StreamSnapshot;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::error::{Error, Result};
use crate::models::follower::{Follower, IndexSnapshot, PendingChanges};
use crate::store::Store;

/// Maximum wait until the index contains a commit. Reading all accounts again takes some seconds.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// All streams in memory. Clones share one index; its thread ends with the last clone, or with the store.
#[derive(Clone)]
pub struct StreamIndex {
    /// Declared before the thread, so that it still exists while the thread is joined.
    snapshot: watch::Receiver<IndexSnapshot>,
    _thread: Arc<Thread>,
}

/// The reason why the index does not contain a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    #[error("the list of streams is not up to date yet")]
    Late,
    #[error("the list of streams is no longer updated")]
    Ended,
}

impl StreamIndex {
    /// Reads all streams, and follows the commits from then on. Blocks for as long as reading takes. Does not keep the
    /// store open.
    pub fn start(store: &Store) -> Result<Self> {
        let changes = store.changes();
        let (stop, stopped) = watch::channel(());
        let mut follower = Follower::new(store, stopped);
        follower.follow(store.shared(), &PendingChanges::default())?;
        let (sender, snapshot) = watch::channel(follower.snapshot());
        let thread = std::thread::Builder::new()
            .name("stream-index".to_owned())
            .spawn(move || follower.run(changes, &sender, Follower::follow))
            .map_err(|error| Error::disk("start the thread of the stream index", error))?;
        let thread = Thread { stop: Mutex::new(Some(stop)), thread: Mutex::new(Some(thread)) };
        Ok(Self { snapshot, _thread: Arc::new(thread) })
    }

    /// Returns the streams as last read: usually as of the last commit, sometimes as of a second ago. Never waits.
    pub fn load(&self) -> Arc<StreamSnapshot> {
        Arc::clone(&self.snapshot.borrow().index)
    }

    /// Waits until the index contains this commit, as returned by [`Store::version`] after a write, and returns the
    /// index. Waits at most 30 seconds.
    pub async fn at(&self, version: u64) -> Result<Arc<StreamSnapshot>, NotReady> {
        let mut snapshot = self.snapshot.clone();
        match tokio::time::timeout(WAIT_MAX, snapshot.wait_for(|it| it.version >= version)).await {
            Ok(Ok(snapshot)) => Ok(Arc::clone(&snapshot.index)),
            Ok(Err(_)) => Err(NotReady::Ended),
            Err(_) => Err(NotReady::Late),
        }
    }
}

/// The thread of the index. Dropping it stops and joins the thread.
struct Thread {
    stop: Mutex<Option<watch::Sender<()>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        drop(self.stop.lock().take());
        if let Some(thread) = self.thread.lock().take() {
            drop(thread.join());
        }
    }
}
