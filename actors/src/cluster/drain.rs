//! Whether this node is drained: it opens no channel and begins no job, its channels move to other nodes, and after a time
//! the streams of its viewers end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::clock::now_ms;

/// When the streams of the viewers of a drained node end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DrainEnd {
    at: Instant,
    /// Milliseconds since 1970.
    at_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Drain {
    /// `None`: with the process.
    end: Option<DrainEnd>,
}

/// The drain of a node. It ends with the process.
#[derive(Debug)]
pub struct NodeDrain {
    state: watch::Sender<Option<Drain>>,
    /// For how long viewers keep their streams.
    viewer_time: Duration,
    is_stopping: AtomicBool,
}

impl NodeDrain {
    /// Returns the drain of a node that is not drained yet. When it is, viewers of its live channels keep their streams for
    /// this time.
    pub fn new(viewer_time: Duration) -> Self {
        Self { state: watch::Sender::new(None), viewer_time, is_stopping: AtomicBool::new(false) }
    }

    /// Begins or ends the drain. Returns whether that changed anything.
    pub fn set(&self, is_draining: bool) -> bool {
        let begun = || {
            // A time that no clock has never comes.
            let at = Instant::now().checked_add(self.viewer_time);
            let ms = i64::try_from(self.viewer_time.as_millis()).ok();
            let at_ms = ms.and_then(|it| now_ms().checked_add(it));
            Drain { end: at.zip(at_ms).map(|(at, at_ms)| DrainEnd { at, at_ms }) }
        };
        self.state.send_if_modified(|it| {
            let is_new = it.is_some() != is_draining;
            if is_new {
                *it = is_draining.then(begun);
            }
            is_new
        })
    }

    /// Drains the node because the gateway stops. Its jobs and the streams of its viewers end with it.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.state.send_replace(Some(Drain { end: None }));
    }

    pub fn is_draining(&self) -> bool {
        self.state.borrow().is_some()
    }

    /// Returns when the streams of its viewers end, in milliseconds since 1970. `None`: the node is not drained, or stops.
    pub fn ends_at(&self) -> Option<i64> {
        self.state.borrow().and_then(|it| it.end).map(|it| it.at_ms)
    }

    /// Returns whether the jobs of the node are for other nodes.
    pub fn gives_up_jobs(&self) -> bool {
        self.is_draining() && !self.is_stopping.load(Ordering::Relaxed)
    }

    /// Returns a receiver of the changes.
    pub fn changes(&self) -> DrainChanges {
        DrainChanges(self.state.subscribe())
    }
}

/// The changes of a drain.
#[derive(Debug)]
pub struct DrainChanges(watch::Receiver<Option<Drain>>);

impl DrainChanges {
    /// Waits for the next change. Returns `false` once there can be none. Cancel-safe.
    pub async fn next(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }

    /// Returns when the streams of the viewers of the node end. `None`: the node is not drained, or stops.
    pub(crate) fn end(&mut self) -> Option<Instant> {
        self.0.borrow_and_update().and_then(|it| it.end).map(|it| it.at)
    }
}
