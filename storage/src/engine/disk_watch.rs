//! Notices a disk that hangs: an operation of the writer that does not return within a limit.
//!
//! Nothing can end such a wait: not even a signal reaches a thread that waits for a broken disk or a lost network storage.
//! So a thread of its own watches how long the present operation takes, and tells those who wait for the writer.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::{Error, Fault, Result, StopReason};

/// An operation that takes longer than this hangs, unless another limit is set.
const LIMIT: Duration = Duration::from_secs(10);

/// Watches the operations of one writer.
pub(crate) struct DiskWatch {
    watched: Mutex<Watched>,
    changed: Condvar,
    /// Why the store refuses writes.
    stop: watch::Sender<Option<StopReason>>,
    /// Set while an operation hangs: the reason why the store refuses writes.
    hang: watch::Sender<Option<StopReason>>,
}

struct Watched {
    limit: Duration,
    /// Start of the present operation.
    since: Option<Instant>,
    /// Operations that are parts of each other.
    n_open: usize,
    is_hanging: bool,
    /// The thread waits for an operation to begin.
    is_idle: bool,
    is_over: bool,
}

impl DiskWatch {
    pub(crate) fn new(stop: watch::Sender<Option<StopReason>>) -> Arc<Self> {
        let watched = Watched {
            limit: LIMIT,
            since: None,
            n_open: 0,
            is_hanging: false,
            is_idle: false,
            is_over: false,
        };
        Arc::new(Self {
            watched: Mutex::new(watched),
            changed: Condvar::new(),
            stop,
            hang: watch::channel(None).0,
        })
    }

    /// Starts the thread, which ends with the returned guard.
    pub(crate) fn start(self: &Arc<Self>) -> Result<WatchThread> {
        let watch = Arc::clone(self);
        std::thread::Builder::new()
            .name("disk-watch".to_owned())
            .spawn(move || watch.run())
            .map_err(|error| Error::disk("start the thread that watches the disk", error))?;
        Ok(WatchThread(Arc::clone(self)))
    }

    /// Sets the limit for later operations.
    pub(crate) fn set_limit(&self, limit: Duration) {
        self.watched.lock().limit = limit;
    }

    /// Notes that an operation begins. It ends with the returned guard, and may have parts that begin and end meanwhile.
    pub(crate) fn begin(&self) -> DiskOperation<'_> {
        let mut watched = self.watched.lock();
        watched.n_open += 1;
        watched.since.get_or_insert_with(Instant::now);
        if std::mem::take(&mut watched.is_idle) {
            self.changed.notify_one();
        }
        DiskOperation(self)
    }

    /// Returns how long the present operation has hung.
    pub(crate) fn hanging_for(&self) -> Option<Duration> {
        let watched = self.watched.lock();
        watched.since.filter(|_| watched.is_hanging).map(|it| it.elapsed())
    }

    /// Returns why the store refuses writes, if an operation hangs.
    pub(crate) fn present_hang(&self) -> Option<StopReason> {
        self.hang.borrow().clone()
    }

    /// Waits until an operation hangs, and returns why the store refuses writes.
    pub(crate) async fn hang(&self) -> StopReason {
        let mut hang = self.hang.subscribe();
        loop {
            if let Some(why) = hang.borrow_and_update().clone() {
                return why;
            }
            // The sender is in `self`.
            drop(hang.changed().await);
        }
    }

    fn run(&self) {
        let mut watched = self.watched.lock();
        while !watched.is_over {
            match watched.since {
                Some(since) if !watched.is_hanging => {
                    let left = watched.limit.saturating_sub(since.elapsed());
                    if left.is_zero() {
                        watched.is_hanging = true;
                        self.report(watched.limit);
                    } else {
                        self.changed.wait_for(&mut watched, left);
                    }
                }
                since => {
                    watched.is_idle = since.is_none();
                    self.changed.wait(&mut watched);
                }
            }
        }
    }

    fn report(&self, limit: Duration) {
        let cause = format!("an operation of the disk has not returned for {} s", limit.as_secs_f64());
        let reason = StopReason { fault: Fault::Hanging, cause };
        tracing::error!("the store refuses writes: {}; {}", reason.cause, reason.advice());
        self.stop.send_if_modified(|stop| {
            let is_new = stop.is_none();
            stop.get_or_insert(reason);
            is_new
        });
        self.hang.send_replace(self.stop.borrow().clone());
    }
}

/// An operation of the disk that has begun; it has returned when this is dropped.
pub(crate) struct DiskOperation<'a>(&'a DiskWatch);

impl Drop for DiskOperation<'_> {
    fn drop(&mut self) {
        let watch = self.0;
        let mut watched = watch.watched.lock();
        watched.n_open -= 1;
        if watched.n_open > 0 {
            return;
        }
        let since = watched.since.take();
        if std::mem::take(&mut watched.is_hanging) {
            let seconds = since.map_or(0.0, |it| it.elapsed().as_secs_f64());
            tracing::warn!("the disk answers again after {seconds:.1} s");
            watch.hang.send_replace(None);
            watch.stop.send_if_modified(|stop| stop.take_if(|it| it.fault == Fault::Hanging).is_some());
            watch.changed.notify_one();
        }
    }
}

/// The thread that watches; dropping this ends it.
pub(crate) struct WatchThread(Arc<DiskWatch>);

impl Drop for WatchThread {
    fn drop(&mut self) {
        self.0.watched.lock().is_over = true;
        self.0.changed.notify_one();
    }
}
